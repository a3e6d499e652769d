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

/* The API's state as of its last event or of our writes in flight. */
struct pod_known {
    uint64_t said; /* hash of the PodScheduled condition, 0 unknown */
    uint32_t uid;
    uint32_t nominated; /* string id */
    bool forgets;       /* the API still names a node that is promised no more */
    uint16_t waiting;   /* writes not yet through */
    bool is_false;      /* its status is False already */
    bool busy;          /* one of the writes is in flight */
    bool ungated;       /* its gate is or was being removed */
    struct prebind *prebind;
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

enum cond_type { COND_UNSCHEDULABLE, COND_SCHEDULED, COND_N };
struct cond_known {
    uint8_t status;     /* enum cond_status */
    uint64_t said;      /* hash of reason and message */
    uint64_t id[2];     /* transitionID */
    int64_t changed_ns; /* lastTransitionTime */
};
enum cond_status { COND_ABSENT, COND_TRUE, COND_FALSE };

/* At most one status write per object in flight; changes meanwhile cause one more. */
struct write_turn {
    bool queued, busy, again; /* a write waits; is in flight; another must follow it */
    bool lazy, again_lazily;  /* that write may be delayed */
};

struct group_known {
    uint32_t uid; /* 0: unknown */
    uint8_t phase;
    struct write_turn turn;
    uint32_t running, failed, succeeded;
    struct cond_known cond[COND_N];
    char *others;   /* conditions of other types: a JSON array, or NULL */
    char *message;  /* of Unschedulable while it is True, or NULL */
    char *warning;  /* warning Event for the next write, or NULL */
    uint64_t event; /* hash of the last Unschedulable Event */
    uint64_t refusal;
    uint64_t rv; /* of our last write */
};

struct queue_known {
    uint32_t name;
    struct write_turn turn;
    uint64_t said; /* hash of status.allocated, 0 unknown */
};

struct shard_known {
    uint64_t said;
    char *text;  /* the wanted status, JSON */
    uint64_t rv; /* of our last write */
    struct write_turn turn;
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

    HK_VEC(struct pod_known) pods;     /* by task row */
    HK_VEC(struct group_known) groups; /* by job row */
    HK_VEC(struct queue_known) queues; /* by queue row */
    HK_VEC(int64_t) sums;              /* by queue row, descendants included: [queue][DIM_MAX] */
    struct shard_known shard;

    HK_VEC(struct prebind *) prebinds; /* oldest first */
    HK_VEC(struct volume_bind) binds;  /* scratch */
    bool volumes_changed;              /* something that prebinds depend on changed */
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
/* Sets *id and moves its string reference. */
void emit_set_id(struct emit *e, uint32_t *id, uint32_t to);
struct hk_str emit_str(const struct emit *e, uint32_t id);
/* The uid for preconditions; empty for objects that have none. */
struct hk_str emit_uid(const struct emit *e, uint32_t uid);
uint64_t emit_hash(uint64_t h, struct hk_str s);

/* The write's task, NO_TASK when it is gone. */
task_id emit_task(const struct emit *e, const struct write *w);
void emit_tell(struct emit *e, const struct write *w, enum emit_outcome what);
/* "namespace/name", for the log; until the next call. */
const char *emit_about(struct emit *e, const struct write *w);

/* Build bodies in emit.mem. */
/* Adds metadata with the uid as precondition and returns it. */
struct json *emit_put_uid(struct emit *e, struct json *body, const struct write *w);
struct json emit_condition(struct emit *e, const char *type, const char *status,
                           struct hk_str reason, struct hk_str message);

/* Grows a column of zeroed rows to hold row i. */
#define EMIT_ROW(vec, i)                                                                           \
    while ((vec)->len <= (i)) {                                                                    \
        hk_vec_push(vec, ((__typeof__((vec)->at[0])){0}));                                         \
    }

/* ---- emit_volume.c ---- */

/* Takes over a bind whose task has reserved volumes; false when it can be sent at once. */
bool emit_prebind(struct emit *e, const struct write *bind, int64_t wait_ns);
bool emit_volume_request(struct emit *e, struct write *w, struct port_request *req,
                         struct json *body);
void emit_volume_done(struct emit *e, struct write *w, const struct port_msg *m);
/* Advances binds that wait for volumes; returns the time of the next call. */
int64_t emit_volume_tick(struct emit *e);
/* The pod of the row changed. */
void emit_volume_pod(struct emit *e, task_id t);
void emit_volume_fini(struct emit *e);

/* ---- emit_shard.c ---- */

bool emit_shard_request(struct emit *e, struct port_request *req, struct json *body);
void emit_shard_done(struct emit *e, struct write *w, const struct port_msg *m);
void emit_learn_shard(struct emit *e, const struct api_object *o);
void emit_shard_fini(struct emit *e);

/* ---- emit_group.c ---- */

void emit_note_group(struct emit *e, const struct session *ssn, const struct job_note *n);
bool emit_group_request(struct emit *e, const struct write *w, struct port_request *req,
                        struct json *body);
void emit_group_done(struct emit *e, struct write *w, const struct port_msg *m);
void emit_learn_group(struct emit *e, const struct api_object *o);
void emit_groups_fini(struct emit *e);

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
/* Whether the API's events may be older than our writes. */
bool emit_turn_is_open(const struct write_turn *t);

struct pod_known *emit_pod_row(struct emit *e, task_id t);
void emit_status_session(struct emit *e, const struct session *ssn);
void emit_pod_condition(struct emit *e, task_id t, const char *reason, const char *message,
                        node_id nominated);
/* Fills the request; false when it is no longer needed. */
bool emit_status_request(struct emit *e, struct write *w, struct port_request *req,
                         struct json *body);
void emit_status_done(struct emit *e, struct write *w, const struct port_msg *m);
void emit_status_fini(struct emit *e);

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
