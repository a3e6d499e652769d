// SPDX-License-Identifier: Apache-2.0
// Turns API objects into model rows: the only way into the model. Also keeps what the model does
// not: priority classes, hyperNode manifests, services and controllers whose selectors define
// default spread constraints, and objects that could not be accepted, with the reason.
#pragma once

#include "api/object.h"
#include "api/registry.h"
#include "base/vec.h"
#include "scheduler/model/model.h"

struct known; /* known.h */

struct ingest_opts {
    const struct hk_str
        *scheduler_names; /* pods with these schedulerNames are ours; none: "volcano" */
    uint32_t nscheduler_name;
    struct hk_str default_queue; /* "default" when empty */
    bool make_queues;            /* create missing `default` and `root` queue rows */
    struct known *known;         /* borrowed: receives what the API shows of our output; or NULL */
};

/* Why an object is not in the model. */
struct ingest_problem {
    enum api_kind_id kind;
    char *object;  /* "ns/name", or the name alone; "(line 3)" when it has none */
    char *file;    /* NULL when it did not come from a file */
    uint32_t line; /* of the error if known, else of the object; 0 unknown */
    char *text;
};

/* The kinds that the scheduler reads, in the order in which they are listed: X(kind, name, need),
 * where ingest_NAME_put and ingest_NAME_del handle the kind's objects. The scheduler waits for
 * REQUIRED kinds; a cluster may lack OPTIONAL ones. Tests compare this list with the rights in
 * install/objects/rbac.yaml and with the words of scenarios. */
#define INGEST_KINDS(X)                                                                            \
    X(API_NODE, node, REQUIRED)                                                                    \
    X(API_POD, pod, REQUIRED)                                                                      \
    X(API_PODGROUP, podgroup, REQUIRED)                                                            \
    X(API_QUEUE, queue, REQUIRED)                                                                  \
    X(API_NAMESPACE, namespace, OPTIONAL)                                                          \
    X(API_PRIORITY_CLASS, class, OPTIONAL)                                                         \
    X(API_PDB, pdb, OPTIONAL)                                                                      \
    X(API_RESOURCE_QUOTA, quota, OPTIONAL)                                                         \
    X(API_PVC, pvc, OPTIONAL)                                                                      \
    X(API_PV, pv, OPTIONAL)                                                                        \
    X(API_STORAGE_CLASS, storage_class, OPTIONAL)                                                  \
    X(API_CSI_NODE, csi_node, OPTIONAL)                                                            \
    X(API_CSI_DRIVER, csi_driver, OPTIONAL)                                                        \
    X(API_CSI_CAPACITY, csi_capacity, OPTIONAL)                                                    \
    X(API_VOLUME_ATTACHMENT, attachment, OPTIONAL)                                                 \
    X(API_SERVICE, service, OPTIONAL)                                                              \
    X(API_REPLICATION_CONTROLLER, rc, OPTIONAL)                                                    \
    X(API_REPLICA_SET, rs, OPTIONAL)                                                               \
    X(API_STATEFUL_SET, sts, OPTIONAL)                                                             \
    X(API_HYPERNODE, hyper, OPTIONAL)                                                              \
    X(API_NODESHARD, shard, OPTIONAL)

#define INGEST_COUNT_KIND(kind, name, need) +1
enum { INGEST_NKINDS = 0 INGEST_KINDS(INGEST_COUNT_KIND) };
#undef INGEST_COUNT_KIND

struct ingest_kind {
    enum api_kind_id id;
    bool required;
};
extern const struct ingest_kind ingest_kinds[INGEST_NKINDS];

struct ingest;

/* Free it before the model. */
struct ingest *ingest_new(struct model *m, const struct ingest_opts *o);
void ingest_free(struct ingest *in);

/* From the next settle on, nodes of the NodeShard of that name are in our shard (model.h). */
void ingest_own_shard(struct ingest *in, struct hk_str name);

/* Our shard at the last settle: names of its nodes, and of those it must still wait for. False
 * while there is no such NodeShard. Valid until the next settle. */
struct ingest_shard {
    const uint32_t *in_use, *to_add;
    uint32_t nin_use, nto_add;
    uint64_t version; /* changes whenever it was recomputed */
};
bool ingest_shard(const struct ingest *in, struct ingest_shard *ret);

/* Adds or replaces the object. Ignores unused kinds (returns 0). On failure the model is unchanged
 * and the problem is recorded until a later version is accepted. The tree is not kept. file may be
 * NULL. */
int ingest_put(struct ingest *in, const struct api_kind *kind, const struct json *doc,
               const char *file, struct hk_err *err);
/* Whether the scheduler reads objects of the kind. */
bool ingest_reads(const struct api_kind *kind);
void ingest_del(struct ingest *in, const struct api_kind *kind, struct hk_str ns,
                struct hk_str name);

/* Call before a session: resolves what depends on several objects (priorities of jobs, hyperNode
 * tree, default spread constraints, node shard). */
void ingest_settle(struct ingest *in);

/* Unordered. An inconsistent hyperNode tree is listed under "(tree)". */
const struct ingest_problem *ingest_problems(const struct ingest *in, uint32_t *ret_n);
