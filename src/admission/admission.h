// SPDX-License-Identifier: Apache-2.0
// Admission: pure functions from an object, the old object and the little state they need to a
// changed object or a refusal. The store's port calls them in process; the webhook server will call
// the same ones. No I/O here: state arrives through the lookup table.
//
//   admission_decode -> admission_mutate -> (the caller: names, generation, status isolation)
//     -> admission_validate -> write
//
// What a rule refuses is told in one of two ways. Faults of the object itself become field errors,
// all of them at once; a refusal by policy is a negative return with the words of the answer.
#pragma once

#include "api/registry.h"
#include "base/err.h"
#include "base/vec.h"
#include "codec/json.h"
#include "codec/quantity.h"

enum admission_verb { ADMIT_CREATE, ADMIT_UPDATE, ADMIT_DELETE };

/* What an admission function may ask about, by kinds that are compared by group, version and
 * plural. What get answers is borrowed for the call of admission (NULL: no such object), what each
 * shows for the call of fn. They should show the newest state, staged writes included, or quotas
 * can be overrun. */
struct admission_lookup {
    void *ctx;
    const struct json *(*get)(void *ctx, const struct api_kind *kind, struct hk_str ns,
                              struct hk_str name);
    /* Calls fn for each object of the kind in the namespace (empty: all) until it returns false. */
    void (*each)(void *ctx, const struct api_kind *kind, struct hk_str ns,
                 bool (*fn)(void *arg, const struct json *obj), void *arg);
    /* How many objects of "plural.group" the namespace holds, custom resources included; for
     * quotas on counts. NULL: only the kinds of the registry are counted. */
    uint32_t (*count)(void *ctx, struct hk_str group, struct hk_str plural, struct hk_str ns);
    /* What the namespace uses of a resource under the quota of that name, when a ledger of it is
     * kept. NULL or false: it is counted from the objects. */
    bool (*used)(void *ctx, struct hk_str ns, struct hk_str quota, struct hk_str resource,
                 struct quantity *ret);
};

struct volcano_options;

struct field_error {    /* one cause of a 422 */
    const char *reason; /* "FieldValueRequired", ... */
    char *field;
    char *message; /* the <body> of kube-api.md section 5 */
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
    const struct admission_lookup *lookup; /* NULL: nothing exists, and nothing is looked for */
    int64_t now_ns;
    const struct volcano_options *volcano; /* NULL: their defaults */
    /* out */
    const char *denial; /* a rule of Volcano refused: the whole text; a 400 without a reason */
    HK_VEC(struct field_error) errors; /* 422 when not empty; on HK_EDENIED the causes of the 403 */
    HK_VEC(char *) warnings;
    HK_VEC(char *) unknown; /* by decode: paths of fields the kind does not have */
};
void admission_request_fini(struct admission_request *q);

/* What reading into a typed struct does to a built-in kind: wrong types are refused (HK_EINVAL and
 * the whole text of the 400), nulls and unknown fields fall out, the latter listed. Kinds without a
 * known shape pass untouched. */
int admission_decode(struct admission_request *q, struct hk_err *err) HK_CHECKED;
/* Defaults and mutations, in the order of kube-api.md 4.1. A new object also gets its initial
 * status here, so the client's must be gone before, and its uid must be set: a Job's selector is
 * made of it. 0, or negative with the refusal: HK_EDENIED is
 * a 403 and the text what follows "is forbidden: "; HK_ENOTFOUND is the 404 of the namespace with
 * its whole text; HK_EINVAL with a denial is the 400 of a webhook. */
int admission_mutate(struct admission_request *q, struct hk_err *err) HK_CHECKED;
/* Validation: field errors into q->errors; policy and quota only when there are none. Deletions
 * pass here as well. */
int admission_validate(struct admission_request *q, struct hk_err *err) HK_CHECKED;

/* Appends `K "name" is invalid: ...` for the field errors of q. */
void admission_write_invalid(const struct admission_request *q, struct hk_buf *out);

/* "BestEffort", "Burstable" or "Guaranteed", of a pod's spec. */
const char *admission_pod_qos(const struct json *spec);

/* What the namespace uses of the resources named in hard (a quota's spec.hard), as a ResourceList
 * for status.used. quota is the ResourceQuota, for its scopes; NULL: without scopes. */
struct json admission_quota_usage(const struct admission_lookup *lookup, struct hk_str ns,
                                  const struct json *hard, const struct json *quota, int64_t now_ns,
                                  struct hk_arena *mem);
/* What one object of the kind costs of a resource of the quota: zero when the quota does not look
 * at it. */
struct quantity admission_quota_cost(const struct json *quota, struct hk_str resource,
                                     const struct api_kind *kind, const struct json *obj,
                                     int64_t now_ns);
