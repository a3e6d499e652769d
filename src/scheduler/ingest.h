// SPDX-License-Identifier: Apache-2.0
// Turns API objects into model rows: the only way into the model. Also keeps what the model does
// not: priority classes, hyperNode manifests, services and controllers whose selectors define
// default spread constraints, and objects that could not be accepted, with the reason.
#pragma once

#include "api/object.h"
#include "api/registry.h"
#include "base/vec.h"
#include "scheduler/model/model.h"

struct ingest_opts {
    const struct hk_str
        *scheduler_names; /* pods with these schedulerNames are ours; none: "volcano" */
    uint32_t nscheduler_name;
    struct hk_str default_queue; /* "default" when empty */
    bool make_queues;            /* create missing `default` and `root` queue rows */
};

/* Why an object is not in the model. */
struct ingest_problem {
    enum api_kind_id kind;
    char *object;  /* "ns/name", or the name alone; "(line 3)" when it has none */
    char *file;    /* NULL when it did not come from a file */
    uint32_t line; /* of the error if known, else of the object; 0 unknown */
    char *text;
};

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
/* Whether the engine uses objects of the kind. */
bool ingest_takes(const struct api_kind *kind);
void ingest_del(struct ingest *in, const struct api_kind *kind, struct hk_str ns,
                struct hk_str name);

/* Call before a session: resolves what depends on several objects (priorities of jobs, hyperNode
 * tree, default spread constraints, node shard). */
void ingest_settle(struct ingest *in);

/* Unordered. An inconsistent hyperNode tree is listed under "(tree)". */
const struct ingest_problem *ingest_problems(const struct ingest *in, uint32_t *ret_n);
