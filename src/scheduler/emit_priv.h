// SPDX-License-Identifier: Apache-2.0
// Shared by the emit files only.
#pragma once

#include "api/names.h"
#include "api/recorder.h"
#include "scheduler/close.h"
#include "scheduler/emit.h"

enum write_kind {
    WRITE_BIND,
    WRITE_EVICT_MARK, /* sets conditions on the victim, then ... */
    WRITE_EVICT,      /* ... deletes it */
    WRITE_VOLUME,     /* updates a volume or claim before a bind */
    WRITE_GATE,       /* removes the queue-allocation gate from a pod */
    WRITE_CONDITION,
    WRITE_GROUP,
    WRITE_QUEUE,
    WRITE_SHARD,
    WRITE_NKINDS,
};

/* A request to send. String ids name its object; it holds a reference to each, since it may outlive
 * the row. */
struct write {
    uint8_t kind;     /* enum write_kind */
    uint8_t about;    /* enum api_kind_id */
    uint8_t attempts; /* failed so far */
    uint8_t waits;    /* condition: how often it was delayed */
    uint32_t row;     /* group and queue: row of the job or queue */
    task_ref task;    /* others: the pod concerned */
    uint32_t ns, name, uid;
    uint32_t node;      /* string id: bind target */
    uint32_t slot;      /* volumes: which of the reserved ones */
    const char *reason; /* static */
    char *text;         /* owned; message */
    uint64_t said;      /* condition: hash that the pod's row must still want; volume: the revision
                         * it must still have */
    int64_t due_ns;     /* retries, reasons */
    bool news;          /* condition: tell people, too */
    bool forgets;       /* condition: removes the pod's nominated node */
};

struct lane {
    HK_VEC(struct write) q;
    uint32_t head;
};
/* Separate lanes, so that binds do not wait behind statuses. The recorder sends Events itself. */
enum { LANE_PODS, LANE_STATUS, LANE_N };

struct flight {
    struct emit *e;
    struct write w;
    uint64_t call;
    int64_t since_ns; /* when it was sent (meter_start) */
    bool used;
};

/* A bind that waits for its volumes. */
enum part_state { PART_TO_WRITE, PART_WRITING, PART_WRITTEN };
struct volume_part {
    uint8_t state; /* enum part_state */
    uint64_t rv;   /* TO_WRITE: wait for a later revision; WRITTEN: revision of our write */
};
struct prebind {
    struct write bind;
    int64_t since_ns; /* when it started (meter_start) */
    int64_t due_ns;   /* when to give up */
    char *error;      /* error of a write, or NULL */
    uint32_t npart;
    struct volume_part parts[]; /* in the order of volumes_reserved */
};

struct emit {
    struct emit_opts o;
    char *component;
    struct lane lanes[LANE_N];
    struct lane reasons;        /* delayed by reason_wait_ns, ordered by time */
    HK_VEC(struct write) later; /* delayed writes */
    struct flight *flights;
    uint32_t nflight, busy;
    bool hurry; /* do not delay reasons */
    struct recorder *recorder;
    struct hk_arena mem; /* scratch of one request body */
    struct hk_buf text;

    struct known *known;
    HK_VEC(int64_t) sums; /* by queue row, descendants included: [queue][DIM_MAX] */
    HK_VEC(struct emit_result) results;
    uint32_t nread; /* results read by the loop */

    HK_VEC(struct prebind *) prebinds; /* oldest first */
    HK_VEC(struct volume_bind) binds;  /* scratch */
    bool volumes_changed;              /* a write of a prebind was answered */
    uint64_t volume_events;            /* known.volume_events at the last tick */
    int64_t prebind_due_ns;            /* earliest due_ns of prebinds */
};

/* ---- emit.c ---- */

/* Takes w's text; takes its own references to the names. */
void emit_push(struct emit *e, unsigned lane, struct write w);
/* The same for a reason that may soon be outdated: delays it. */
void emit_push_reason(struct emit *e, struct write w);
/* Delays such a reason again; clears *w. */
void emit_put_off(struct emit *e, struct write *w);
/* Repeats the write after a while; clears *w. */
void emit_retry(struct emit *e, struct write *w);
void emit_write_keep(struct emit *e, const struct write *w);
void emit_write_fini(struct emit *e, struct write *w);
struct hk_str emit_str(const struct emit *e, uint32_t id);
/* The uid for preconditions; empty for objects that have none. */
struct hk_str emit_uid(const struct emit *e, uint32_t uid);

/* The write's task, NO_TASK when it is gone. */
task_id emit_task(const struct emit *e, const struct write *w);
/* Adds an outcome for the loop, unless the task is gone. */
void emit_tell(struct emit *e, const struct write *w, enum emit_outcome what);
/* "namespace/name", for the log; until the next call. */
const char *emit_about(struct emit *e, const struct write *w);

/* Build bodies in emit.mem. */
/* Adds metadata with the uid as precondition and returns it. */
struct json *emit_put_uid(struct emit *e, struct json *body, const struct write *w);
struct json emit_condition(struct emit *e, const char *type, const char *status,
                           struct hk_str reason, struct hk_str message);

/* ---- emit_volume.c ---- */

/* Takes over a bind whose task has reserved volumes; false when it can be sent at once. */
bool emit_prebind(struct emit *e, const struct write *bind, int64_t wait_ns);
bool emit_volume_request(struct emit *e, struct write *w, struct port_request *req,
                         struct json *body);
void emit_volume_done(struct emit *e, struct write *w, const struct port_msg *m);
/* Advances binds that wait for volumes; returns the time of the next call. */
int64_t emit_volume_tick(struct emit *e);
void emit_volume_fini(struct emit *e);

/* ---- emit_shard.c ---- */

bool emit_shard_request(struct emit *e, struct port_request *req, struct json *body);
void emit_shard_done(struct emit *e, struct write *w, const struct port_msg *m);

/* ---- emit_group.c ---- */

void emit_note_group(struct emit *e, const struct session *ssn, const struct job_note *n);
bool emit_group_request(struct emit *e, const struct write *w, struct port_request *req,
                        struct json *body);
void emit_group_done(struct emit *e, struct write *w, const struct port_msg *m);

/* ---- emit_status.c ---- */

/* Requests the write: now, or after the one in flight. */
void emit_turn_ask(struct emit *e, struct write_turn *t, struct write w);
/* The same, delayed: collects changes for reason_wait_ns. */
void emit_turn_ask_lazily(struct emit *e, struct write_turn *t, struct write w);
/* Call before sending; false when an urgent write has already covered it. */
bool emit_turn_begin(struct write_turn *t);
/* Handles the answer. Retries temporary failures, and sends a write requested meanwhile. False when
 * it failed for good: the API's state is then unknown. */
bool emit_turn_end(struct emit *e, struct write_turn *t, struct write *w, const struct port_msg *m);

void emit_status_session(struct emit *e, const struct session *ssn);
void emit_pod_condition(struct emit *e, task_id t, const char *reason, const char *message,
                        node_id nominated);
/* Fills the request; false when it is no longer needed. */
bool emit_status_request(struct emit *e, struct write *w, struct port_request *req,
                         struct json *body);
void emit_status_done(struct emit *e, struct write *w, const struct port_msg *m);

/* ---- emit_event.c ---- */

struct event_about {
    enum api_kind_id kind;
    uint32_t ns, name, uid;
};
void emit_event(struct emit *e, struct event_about about, bool warning, const char *reason,
                const char *message);
void emit_event_pod(struct emit *e, task_id t, bool warning, const char *reason,
                    const char *message);
void emit_event_group(struct emit *e, job_id j, bool warning, const char *reason,
                      const char *message);
