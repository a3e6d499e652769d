// SPDX-License-Identifier: Apache-2.0
// What the controllers of Kubernetes' own workloads share: their pods counted and made, templates
// hashed and kept as revisions, statuses and conditions written when they say something new.
#pragma once

#include "api/names.h"
#include "controllers/ctl.h"
#include "controllers/kinds.h"

#define WORK_SECOND_NS ((int64_t)1000000000)

/* ---- what concerns a workload ---- */

/* The object itself has changed. */
void work_changed(struct ctl *c, const struct mirror_change *ch);
/* A pod has: its controller is looked at when it is of that kind. */
void work_pod_changed(struct ctl *c, const struct mirror_change *ch, enum api_kind_id kind);
/* An object whose text is kept has: the same. */
void work_part_changed(struct ctl *c, const struct mirror_change *ch, enum api_kind_id kind);

/* ---- reading ---- */

/* The object the turn is about; false when there is none. */
bool work_find(struct turn *t, enum api_kind_id kind, struct json *ret);
bool work_is_going(const struct json *root);
struct hk_str work_uid(const struct json *root);
/* A time; 0 when there is none. */
int64_t work_time_of(const struct json *v);
/* A number or a percentage of total. */
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

/* The pods whose controller the object is, by name. */
struct work_pods work_pods(struct turn *t, const struct json *root);
struct hk_str work_pod_name(struct turn *t, const struct work_pod *p);
bool work_pod_is_active(const struct pod_digest *d);
/* Has served for so many seconds. If it has yet to, the turn is repeated in time. */
bool work_pod_is_available(struct turn *t, const struct pod_digest *d, int64_t min_ready_s);
/* Puts those first that are missed least. */
void work_pods_rank(struct work_pods *pods);

/* ---- making ---- */

/* The pod of a template, owned by the object, in its namespace. */
struct json work_pod(struct turn *t, const struct json *owner, const struct json *template,
                     struct hk_str name);
/* Sets a member of metadata.labels or metadata.annotations, making the map if need be. */
void work_label(struct json *body, struct hk_arena *a, const char *key, struct hk_str value);
void work_annotate(struct json *body, struct hk_arena *a, const char *key, struct hk_str value);
/* The nth name of the owner's that begins so; names of pods that are there are passed over. The
 * same names come after a restart, so that nothing is made twice. */
struct hk_str work_fresh_name(struct turn *t, const struct json *owner, struct hk_str base,
                              uint32_t *n);
/* Ask, with the event. */
bool work_create_pod(struct turn *t, const struct json *owner, const struct json *pod);
bool work_delete_pod(struct turn *t, const struct json *owner, const struct work_pod *p);
/* How many pods a pass may try to make: after a failure one, to see whether it passes now. */
uint32_t work_create_limit(const struct turn *t);
/* Tells of pods that could not be made. The first such error, or NULL. */
const struct turn_error *work_report(struct turn *t, const struct json *owner);

/* In Kubernetes' alphabet, which spells no words. */
struct hk_str work_encode(uint32_t hash, struct hk_arena *a);

/* ---- revisions ---- */

struct work_revisions {
    struct hk_str update;    /* name of the revision of the template as it is, "" not yet there */
    struct hk_str hash;      /* its hash */
    const struct json *list; /* all of the object's, oldest first */
};

/* Keeps the template as a ControllerRevision; false when a write has been asked for. */
bool work_revise(struct turn *t, const struct json *root, struct work_revisions *ret);
/* The template of the revision of that name, NULL when there is none. */
const struct json *work_revision_template(const struct work_revisions *rs, struct hk_str name);
/* Lets go of those beyond the history that no pod is of. */
void work_revisions_trim(struct turn *t, const struct json *root, const struct work_revisions *rs,
                         const struct work_pods *pods, struct hk_str current);

/* ---- writing ---- */

/* Leaves zeros out. */
void work_put_int(struct json *obj, struct hk_arena *a, const char *key, int64_t n);
void work_put_str(struct json *obj, struct hk_arena *a, const char *key, struct hk_str s);
struct json work_time(int64_t ns, struct hk_arena *a);
/* A copy of the status to be changed. */
struct json work_status(struct turn *t, const struct json *root);
/* Asks for the write if the status is new; whether it did. */
bool work_write_status(struct turn *t, enum api_kind_id kind, struct json *root,
                       struct json status);

struct work_condition {
    const char *type, *status, *reason;
    struct hk_str message;
    const char *stamp; /* a second time that follows every change, e.g. "lastUpdateTime"; or NULL */
};

void work_set_condition(struct turn *t, struct json *status, const struct work_condition *c);
void work_drop_condition(struct turn *t, struct json *status, const char *type);
/* observedGeneration. */
void work_put_observed(struct turn *t, const struct json *root, struct json *status);
