// SPDX-License-Identifier: Apache-2.0
// Shared by the ingest files only. Each kind has a put, which reads the tree and either changes the
// model or fails without a change, and a del, which gets the name; INGEST_KINDS lists
// them. ingest.mem is scratch memory of one call. ingest.held holds its interned strings until the
// end of the call; the model and the tables here take their own references.
#pragma once

#include "api/names.h"
#include "api/pod.h"
#include "scheduler/ingest.h"

#define PAIR_KEY(hi, lo) (((uint64_t)(hi) << 32) | (lo))

/* ---- what ingest keeps beside the model ---- */

struct priority_class {
    uint32_t name; /* 0: vacant */
    int32_t value;
    bool never_preempts;
};

/* Kinds that pick pods by label: pods of one picker are spread by default. */
enum picker_kind { PICK_SERVICE, PICK_RC, PICK_RS, PICK_STS, PICK_NKINDS };

struct picker {
    uint32_t ns, name; /* 0: vacant */
    struct label_sel sel;
    uint32_t shelf; /* services: row in shelves, ID_NONE when they select nothing */
};

/* The pod's controller, if that is a picker. */
struct pod_owner {
    uint32_t name; /* 0: none */
    uint8_t kind;  /* enum picker_kind */
};

/* Data of a pod that is not in its task row but needed again when other objects change. */
struct pod_note {
    struct pod_owner owner;
    uint32_t prio_class;
    bool own_priority;   /* spec.priority is set: ignore classes */
    bool task_priority;  /* the annotation sets the task priority */
    bool never_preempts; /* spec.preemptionPolicy */
};

struct shelf; /* ingest_spread.c */
struct change;
struct hyper_source; /* ingest_hyper.c */
struct shard;        /* ingest_shard.c */

struct ingest {
    struct model *m;
    struct known *known; /* or NULL */
    struct hk_arena own; /* strings of the options */
    struct hk_str *schedulers;
    uint32_t nscheduler;
    struct hk_str default_queue;
    bool make_queues;

    struct hk_arena mem;
    HK_VEC(uint32_t) held; /* string ids */
    struct hk_buf key;

    HK_VEC(struct ingest_problem) problems;
    struct hk_intern objects; /* "ns/name" of objects with problems */
    struct hk_map problem_at; /* kind and object -> place in problems */

    HK_VEC(struct priority_class) classes;
    struct hk_map class_at;
    uint32_t default_class; /* name, 0 none */
    bool classes_changed;

    HK_VEC(struct pod_note) notes; /* by task row */

    HK_VEC(struct picker) pickers;
    HK_VEC(uint32_t) pickers_free;
    struct hk_map picker_at[PICK_NKINDS];
    HK_VEC(struct shelf) shelves; /* services by one label pair of their selector */
    HK_VEC(uint32_t) shelves_free;
    struct hk_map shelf_at;
    HK_VEC(struct change) changes; /* the first few since the last settle */
    HK_VEC(uint32_t) stale;        /* namespaces whose pickers changed since the last settle */
    struct hk_map stale_ns;        /* as a set */

    HK_VEC(struct hyper_source *) hypers;
    struct hk_map hyper_at;
    HK_VEC(uint32_t) node_names; /* of known nodes, in order of arrival */
    struct hk_map node_seen;
    bool hypers_changed;

    uint32_t shard_name; /* ours, 0 none */
    HK_VEC(struct shard *) shards;
    struct hk_map shard_at;
    bool shards_changed; /* or nodes were added */
    HK_VEC(uint32_t) shard_in_use, shard_to_add;
    uint64_t shard_version; /* of these two, 0 until our shard exists */
};

/* ---- ingest_problem.c ---- */

/* Replaces what was recorded for the object. line 0: unknown. */
void ingest_problem_set(struct ingest *in, const struct api_kind *kind, struct hk_str object,
                        const char *file, uint32_t line, const char *text);
void ingest_problem_clear(struct ingest *in, const struct api_kind *kind, struct hk_str object);
void ingest_problem_fini(struct ingest *in);

/* ---- ingest_known.c ---- */

struct api_podgroup;
struct api_queue;
/* After an event, accepted or refused: PodGroups and queues in their decoded form, ... */
void ingest_known_group(struct ingest *in, const struct api_podgroup *pg);
void ingest_known_queue(struct ingest *in, const struct api_queue *q);
/* ... all other kinds. */
void ingest_known_put(struct ingest *in, const struct api_kind *kind, const struct json *doc);
void ingest_known_del(struct ingest *in, const struct api_kind *kind);

/* ---- ingest_spec.c: strings, labels, selectors and amounts in the model's form ---- */

/* Ends a call: clears scratch memory and releases its strings. */
void ingest_clear(struct ingest *in);
/* "default" when the manifest has no namespace. */
struct hk_str ingest_ns(struct hk_str ns);
/* The uid, or namespace/name for objects from files, so that ties do not depend on the order of
 * arrival. */
struct hk_str ingest_uid(struct ingest *in, const struct api_meta *meta);
/* Held until ingest_clear. */
uint32_t ingest_str(struct ingest *in, struct hk_str s);
/* Sorted by key id. */
struct labels ingest_labels(struct ingest *in, const struct api_map *map);
/* Sorted ids. */
const uint32_t *ingest_ids(struct ingest *in, const struct api_strs *s);
struct label_req ingest_req(struct ingest *in, const struct api_requirement *r);
struct label_sel ingest_sel(struct ingest *in, const struct api_selector *s);
struct node_term ingest_term(struct ingest *in, const struct api_node_term *t);
/* enum taint_effect; EFFECT_OTHER for none. */
uint8_t ingest_effect(enum api_taint_effect e);
/* A copy that outlives the call, in one block: hk_free its at. The caller must hold its strings. */
struct label_sel ingest_sel_copy(const struct label_sel *s);
bool ingest_sel_same(const struct label_sel *a, const struct label_sel *b);
/* dim is HK_NONE for a resource that is not accounted for. Fails past DIM_LIMIT, naming the
 * resource. */
int ingest_amount(struct ingest *in, const struct api_resource *r, struct amount *ret,
                  struct hk_err *err) HK_CHECKED;
/* The accounted part of a list, in ingest.mem. */
int ingest_amounts(struct ingest *in, const struct api_resources *r, struct amount **ret,
                   uint32_t *ret_n, struct hk_err *err) HK_CHECKED;
/* Go's strconv.ParseBool. */
bool ingest_parse_bool(struct hk_str s, bool *ret);
/* The annotation, else the label of that name, else NULL. */
const struct hk_str *ingest_ann_or_label(const struct api_meta *meta, struct hk_str key);

/* ---- ingest_cons.c ---- */

/* Fills the draft, which may borrow from ingest.mem; the caller adds default spread rows. */
void ingest_cons_draft(struct ingest *in, const struct api_pod *pod, struct labels labels,
                       struct cons *draft);
/* Interns a copy of the draft; NO_CONS when it has no constraints. */
cons_id ingest_cons_intern(struct ingest *in, const struct cons *draft);

/* ---- ingest_spread.c ---- */

struct pod_owner ingest_spread_owner(struct ingest *in, const struct api_meta *meta);
/* Adds the default rows to a draft without own rows, if a picker selects the pod. */
void ingest_spread_default(struct ingest *in, struct cons *draft, uint32_t ns, struct labels labels,
                           struct pod_owner owner);
/* Updates default rows of waiting pods in namespaces whose pickers changed. */
void ingest_spread_settle(struct ingest *in);
void ingest_spread_fini(struct ingest *in);

/* ---- ingest_pod.c ---- */

/* Classes changed: updates pods without spec.priority. */
void ingest_pod_settle(struct ingest *in);
/* Replaces the constraints of an unplaced task. */
void ingest_pod_set_cons(struct ingest *in, task_id t, cons_id c);

/* ---- ingest_group.c ---- */

/* The class of that name, else the global default, else NULL. */
const struct priority_class *ingest_class(const struct ingest *in, uint32_t name);
void ingest_group_settle(struct ingest *in);

/* ---- ingest_hyper.c ---- */

/* A node was added, or its labels changed. */
void ingest_hyper_node(struct ingest *in, uint32_t name);
void ingest_hyper_node_gone(struct ingest *in, uint32_t name);
void ingest_hyper_settle(struct ingest *in);
void ingest_hyper_fini(struct ingest *in);

/* ---- ingest_shard.c ---- */

void ingest_shard_settle(struct ingest *in);
void ingest_shard_fini(struct ingest *in);

/* ---- the kinds ---- */

typedef int ingest_put_fn(struct ingest *in, const struct json *doc, struct hk_err *err);
typedef void ingest_del_fn(struct ingest *in, struct hk_str ns, struct hk_str name);

#define INGEST_DECLARE(kind, name, need)                                                           \
    ingest_put_fn ingest_##name##_put;                                                             \
    ingest_del_fn ingest_##name##_del;
INGEST_KINDS(INGEST_DECLARE)
#undef INGEST_DECLARE
