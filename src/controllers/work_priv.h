// SPDX-License-Identifier: Apache-2.0
// Shared by the controllers of Kubernetes' own workloads: count and create pods, hash templates and
// keep them as revisions, write changed statuses and conditions.
#pragma once

#include "api/names.h"
#include "controllers/kinds.h"
#include "controllers/pass.h"

#define WORK_SECOND_NS ((int64_t)1000000000)

/* ---- changes ---- */

/* The object itself changed: queues it. */
void work_changed(struct ctl *c, const struct mirror_change *ch);
/* A pod changed: queues its controller if that has this kind. */
void work_pod_changed(struct ctl *c, const struct mirror_change *ch, enum api_kind_id kind);
/* The same for any object whose text is kept. */
void work_part_changed(struct ctl *c, const struct mirror_change *ch, enum api_kind_id kind);
/* A PodGroup needs more members than before: queues the workloads of that kind whose pods are in
 * it. */
void work_group_changed(struct ctl *c, const struct mirror_change *ch, enum api_kind_id kind);

/* ---- reading ---- */

/* The object of the pass; false when it does not exist. */
bool work_find(struct pass *t, enum api_kind_id kind, struct json *ret);
bool work_is_going(const struct json *root);
struct hk_str work_uid(const struct json *root);
/* A time; 0 when there is none. */
int64_t work_time_of(const struct json *v);
/* v is a number or a percentage of total. */
int64_t work_share(const struct json *v, int64_t total, bool round_up, int64_t fallback);
const struct json *work_condition(const struct json *status, const char *type);
bool work_condition_is(const struct json *status, const char *type, const char *status_word);

struct work_pod {
    uint32_t row;
    const struct pod_digest *d;
};

struct work_pods {
    struct work_pod *at;
    uint32_t len;
};

/* The pods that the object controls, sorted by name. */
struct work_pods work_pods(struct pass *t, const struct json *root);
struct hk_str work_pod_name(struct pass *t, const struct work_pod *p);
bool work_pod_is_active(const struct pod_digest *d);
/* Ready for at least min_ready_s. If not yet, schedules a pass for that time. */
bool work_pod_is_available(struct pass *t, const struct pod_digest *d, int64_t min_ready_s);
/* Sorts by deletion preference, first to delete first. */
void work_pods_rank(struct work_pods *pods);

/* ---- making ---- */

/* The pod of a template, owned by the object, in its namespace. */
struct json work_pod(struct pass *t, const struct json *owner, const struct json *template,
                     struct hk_str name);
/* Sets a member of metadata.labels or metadata.annotations, making the map if need be. */
void work_label(struct json *body, struct hk_arena *a, const char *key, struct hk_str value);
void work_annotate(struct json *body, struct hk_arena *a, const char *key, struct hk_str value);
/* The owner's nth name with this prefix; skips names of existing pods. The same names result after
 * a restart, so that no pod is created twice. */
struct hk_str work_fresh_name(struct pass *t, const struct json *owner, struct hk_str base,
                              uint32_t *n);
/* Request the write and record its Event. */
bool work_create_pod(struct pass *t, const struct json *owner, const struct json *pod);
bool work_delete_pod(struct pass *t, const struct json *owner, const struct work_pod *p);
/* How many pods a pass may try to create; after a failure one, as a test. */
uint32_t work_create_limit(const struct pass *t);
/* How many of the pods that the object lacks may exist now; the rest waits as a number
 * (pod_window.h). pods: at least those that wait for a node; have: those that count for want. */
int64_t work_window_room(struct pass *t, const struct json *root, const struct work_pods *pods,
                         int64_t want, int64_t have);
/* Records an Event for each pod that could not be created; returns the first such error, or
 * NULL. */
const struct pass_error *work_report(struct pass *t, const struct json *owner);

/* Encodes with Kubernetes' alphabet that forms no words. */
struct hk_str work_encode(uint32_t hash, struct hk_arena *a);

/* ---- revisions ---- */

struct work_revisions {
    struct hk_str update;    /* name of the current template's revision, "" none yet */
    struct hk_str hash;      /* its hash */
    const struct json *list; /* all revisions of the object, oldest first */
};

/* Keeps the template as a ControllerRevision; false when it requested a write. */
bool work_revise(struct pass *t, const struct json *root, struct work_revisions *ret);
/* NULL when there is no revision of that name. */
const struct json *work_revision_template(const struct work_revisions *rs, struct hk_str name);
/* Deletes revisions beyond the history limit that no pod uses. */
void work_revisions_trim(struct pass *t, const struct json *root, const struct work_revisions *rs,
                         const struct work_pods *pods, struct hk_str current);

/* ---- writing ---- */

/* Whether two values of the field at the dotted path are equal in Go: what Go always writes may be
 * missing, and NULL is an empty struct. Objects that an older version stored lack it. */
bool work_same(struct pass *t, enum api_kind_id kind, const char *path, const struct json *a,
               const struct json *b);
/* A copy of the status, to be changed. */
struct json work_status(struct pass *t, const struct json *root);
/* Requests a write if the status differs; returns whether it did. */
bool work_write_status(struct pass *t, enum api_kind_id kind, struct json *root,
                       struct json status);

struct work_condition {
    const char *type, *status, *reason;
    struct hk_str message;
    const char *stamp; /* another time to set on each change, e.g. "lastUpdateTime"; or NULL */
};

void work_set_condition(struct pass *t, struct json *status, const struct work_condition *c);
void work_drop_condition(struct pass *t, struct json *status, const char *type);
void work_set_observed_generation(struct pass *t, const struct json *root, struct json *status);
