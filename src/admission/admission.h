// SPDX-License-Identifier: Apache-2.0
// Admission: pure functions from an object, the old object and a little state to a changed object
// or a refusal. The store's port calls them in process; the webhook server calls only Volcano's
// rules (volcano.h). No I/O here: state arrives through the lookup table.
//
//   admission_decode -> admission_mutate -> (the caller: names, generation, status isolation)
//     -> admission_validate -> write
//
// A rule refuses in one of two ways. Faults of the object itself become field errors, all of them
// at once; a refusal by policy is a negative return with the text of the answer.
#pragma once

#include "api/registry.h"
#include "api/rights.h"
#include "base/err.h"
#include "base/vec.h"
#include "codec/json.h"
#include "codec/quantity.h"

enum admission_verb { ADMIT_CREATE, ADMIT_UPDATE, ADMIT_DELETE, ADMIT_CONNECT };

/* State that admission functions read; kinds are compared by group, version and plural. The result
 * of get is borrowed during the admission call (NULL: no such object), that of each during the call
 * of fn. Both must include staged writes, or quotas can be exceeded. */
struct admission_lookup {
    void *ctx;
    const struct json *(*get)(void *ctx, const struct api_kind *kind, struct hk_str ns,
                              struct hk_str name);
    /* Calls fn for each object of the kind in the namespace (empty: all) until it returns false. */
    void (*each)(void *ctx, const struct api_kind *kind, struct hk_str ns,
                 bool (*fn)(void *arg, const struct json *obj), void *arg);
    /* The same for queues with that spec.parent. NULL: searches all queues. */
    void (*each_child)(void *ctx, struct hk_str parent,
                       bool (*fn)(void *arg, const struct json *obj), void *arg);
    /* Number of objects of "plural.group" in the namespace, including custom resources; for count
     * quotas. NULL: counts only kinds of the registry. */
    uint32_t (*count)(void *ctx, struct hk_str group, struct hk_str plural, struct hk_str ns);
    /* The namespace's usage of a resource under the quota of that name, if a ledger exists. NULL or
     * false: counted from the objects. */
    bool (*used)(void *ctx, struct hk_str ns, struct hk_str quota, struct hk_str resource,
                 struct quantity *ret);
    /* Reads a certificate request (PEM): the organizations of its subject, in mem. NULL: requests
     * are not read. */
    int (*read_request)(struct hk_str pem, struct hk_arena *mem, const char *const **ret_orgs,
                        uint32_t *ret_n, struct hk_err *err);
};

struct volcano_options;

/* Limits for one object; docs/limits.md has the table. */
enum {
    ADMISSION_MAX_REPLICAS = 100000, /* default, the server can change it */
    ADMISSION_MAX_TASKS = 5000,      /* of a job */
    ADMISSION_MAX_FLOWS = 1000,      /* jobs of a JobFlow or HyperJob */
};

/* Default time that pods stay on a node that is not ready or unreachable. */
struct admission_tolerations {
    int64_t not_ready_s, unreachable_s;
};

struct field_error {    /* one cause of a 422 */
    const char *reason; /* "FieldValueRequired", ... */
    char *field;
    char *message; /* what follows "FIELD: ", docs/reference/api.md section 2 */
};

/* Strings in the out vectors live in mem, the vectors themselves on the heap until
 * admission_request_fini. */
struct admission_request {
    enum admission_verb verb;
    const struct api_kind *kind;
    const char *subresource; /* NULL: main */
    struct json *obj;        /* may be changed by mutate; NULL on delete */
    const struct json *old;  /* update, delete */
    struct hk_str ns, name;
    bool dry_run;
    struct hk_arena *mem;
    const struct admission_lookup *lookup; /* NULL: treats everything as missing */
    const struct rights *rights;           /* of the writing user; NULL: may do everything */
    int64_t now_ns;
    const struct volcano_options *volcano;           /* NULL: their defaults */
    const struct admission_tolerations *tolerations; /* NULL: 300 s each */
    /* out */
    const char *denial;  /* a rule of Volcano refused: the whole text; a 400 without a reason */
    const char *refusal; /* on HK_EDENIED the text, when it may be too long for err; else NULL */
    const char *audit;   /* text for the cluster's log about this write, or NULL */
    HK_VEC(struct field_error) errors; /* 422 when not empty; on HK_EDENIED the causes of the 403 */
    HK_VEC(char *) warnings;
    HK_VEC(char *) unknown; /* by decode: paths of unknown fields */
};
void admission_request_fini(struct admission_request *q);

/* Treats a built-in kind as a typed decoder would: refuses wrong types (HK_EINVAL and the whole
 * text of the 400), removes nulls and unknown fields, and lists the latter. Kinds without a known
 * type pass unchanged. */
int admission_decode(struct admission_request *q, struct hk_err *err) HK_CHECKED;
/* Defaults and mutations, in Kubernetes' order (docs/reference/api.md section 1). A new object also
 * gets its initial status: the caller must have removed the client's status before, and set the
 * uid, since a Job's selector is made of it. Returns 0, or negative with the refusal: HK_EDENIED is
 * a 403 and the text what follows "is forbidden: "; HK_ENOTFOUND is the 404 of the namespace with
 * its whole text; HK_EINVAL with a denial is the 400 of a webhook. */
int admission_mutate(struct admission_request *q, struct hk_err *err) HK_CHECKED;
/* Sets only the defaults, for an object that a webhook has changed. */
int admission_default(struct admission_request *q, struct hk_err *err) HK_CHECKED;
/* Validates: field errors go to q->errors; policy and quota rules run only when there are none.
 * Call it for deletions, too. */
int admission_validate(struct admission_request *q, struct hk_err *err) HK_CHECKED;

/* Appends `K "name" is invalid: ...` for the field errors of q. */
void admission_write_invalid(const struct admission_request *q, struct hk_buf *out);

/* Checks labels and annotations only; returns whether there was no field error. */
bool admission_check_labels(struct admission_request *q);

/* "BestEffort", "Burstable" or "Guaranteed", of a pod's spec. */
const char *admission_pod_qos(const struct json *spec);

/* The namespace's usage of the resources in hard (a quota's spec.hard), as a ResourceList for
 * status.used. quota is the ResourceQuota, for its scopes; NULL: without scopes. */
struct json admission_quota_usage(const struct admission_lookup *lookup, struct hk_str ns,
                                  const struct json *hard, const struct json *quota, int64_t now_ns,
                                  struct hk_arena *mem);
/* How much of a quota's resource one object of the kind uses: zero when the quota does not
 * apply. */
struct quantity admission_quota_cost(const struct json *quota, struct hk_str resource,
                                     const struct api_kind *kind, const struct json *obj,
                                     int64_t now_ns);
