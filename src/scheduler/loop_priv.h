// SPDX-License-Identifier: Apache-2.0
// Shared by the loop files only.
#pragma once

#include "api/feed.h"
#include "api/queue.h"
#include "scheduler/emit.h"
#include "scheduler/ingest.h"
#include "scheduler/loop.h"

/* ---- loop_engine.c: model, ingest and sessions, with every input recorded ---- */

/* Every change of the model goes through an engine_ function, so a record of these calls, in order,
 * suffices to repeat all decisions. */
struct engine {
    struct model m;
    struct ingest *in;
    struct conf_file conf;
    struct scheduler_mem *sm;
    struct session ssn; /* the last one */
    struct session_opts opts;
    uint64_t cycles;
    uint64_t seen; /* model_wake() at the last session */
    FILE *record;
    struct hk_buf line; /* of the last session */
    struct hk_buf text;
};

struct engine_opts {
    const struct hk_str *scheduler_names;
    uint32_t nscheduler_name;
    struct hk_str default_queue;
    struct hk_str shard_name;
    struct known *known; /* for ingest; NULL in a replay */
    struct session_opts session;
    const char *conf_path;
};

void engine_init(struct engine *g, const struct engine_opts *o);
void engine_fini(struct engine *g);
/* Starts the record with the options of engine_init. */
int engine_record(struct engine *g, const struct engine_opts *o, const char *path,
                  struct hk_err *err) HK_CHECKED;

void engine_put(struct engine *g, const struct api_kind *kind, const struct json *doc);
void engine_del(struct engine *g, const struct api_kind *kind, struct hk_str ns,
                struct hk_str name);
void engine_unbind(struct engine *g, task_id t);
void engine_hold(struct engine *g, task_id t, bool held);
/* The deletion of the pod failed. */
void engine_stay(struct engine *g, task_id t);
void engine_settle(struct engine *g);
/* Reads the file again; 1 when the configuration has changed. */
int engine_reload(struct engine *g, struct hk_err *err);
/* Runs one session. Its decisions stay in g->ssn until the next one, and as text in g->line. */
void engine_cycle(struct engine *g, int64_t now_ns, bool all_jobs, uint64_t stop_after);

/* ---- loop_retry.c: tasks whose bind, eviction or gate failed ---- */

struct retry {
    struct loop *l;
    task_ref task;
    bool evicting;
    uint8_t state; /* enum retry_state */
    uint32_t failures;
    int64_t due_ns;
    uint64_t call;
};

/* Handles what emit has found out since the last call. */
void retry_read_results(struct loop *l);
int64_t retry_tick(struct loop *l, int64_t now_ns);
void retry_fini(struct loop *l);

/* ---- loop.c ---- */

struct loop {
    struct loop_opts o;
    struct hk_str default_queue;
    struct engine engine;
    struct known known;
    struct emit *emit;
    struct meter *meter;
    struct feed feeds[INGEST_NKINDS];
    struct loop_feed {
        struct loop *l;
        const struct api_kind *kind;
    } fed[INGEST_NKINDS]; /* contexts of the feeds */
    HK_VEC(struct retry *) retries;
    struct hk_arena mem;

    uint64_t inputs;          /* counts inputs to the engine */
    uint64_t inputs_seen;     /* inputs at the last check */
    int64_t news_ns, last_ns; /* times of the first and latest unprocessed input; 0 none */
    bool again;               /* another session is due at once */
    bool draining;            /* no further sessions */
    bool all_jobs;            /* the next session includes parked jobs */
    int64_t due_ns;           /* wall time when a parked job is due, INT64_MAX never */
    uint64_t shard_seen;      /* last reported ingest_shard version */
    struct {
        uint64_t call;
        int64_t due_ns;            /* INT64_MAX: nothing to do */
    } queues[API_NBUILTIN_QUEUES]; /* as api_builtin_queues; created when missing */
    struct loop_stats stats;
};

/* An object from the API. */
void loop_accept(struct loop *l, const struct api_object *o);
void loop_drop(struct loop *l, const struct api_kind *kind, struct hk_str ns, struct hk_str name);
