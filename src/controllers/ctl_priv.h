// SPDX-License-Identifier: Apache-2.0
// Shared by the frame's files (manager.c, turn.c) only.
#pragma once

#include "controllers/ctl.h"

enum ensured_state {
    ENSURED_UNKNOWN,
    ENSURED_ABSENT,
    ENSURED_FOUND,
    ENSURED_DONE,
    ENSURED_REMOVED,
};

/* A request under way, part of a key's pass. */
struct call {
    uint64_t id; /* the port's; 0: free slot */
    struct ctl *c;
    uint32_t key;
    enum port_verb verb;
    const struct api_kind *kind;
    char *ns, *name, *uid; /* uid of the object as it was known, "" unknown */
    struct ensured *memo;  /* of turn_ensure and its like, or NULL */
    bool fetch;            /* reads what a create found to exist */
    int64_t deadline_ns;   /* monotonic */
};

/* What a key remembers between its passes. */
struct pass {
    uint32_t nflight;
    bool failed;
    HK_VEC(struct turn_error) errors; /* of the last pass that ended, or of the one under way */
};

/* A controller with what the frame keeps for it. */
struct seat {
    struct ctl ctl;
    HK_VEC(struct pass) passes; /* by key */
};

struct manager {
    struct manager_opts o;
    struct hk_intern str;
    struct recorder *recorder;
    struct mirror *mirrors[API_NKINDS]; /* NULL: nobody watches the kind */
    struct seat *seats;
    uint32_t nseat;
    HK_VEC(struct call) calls;
    HK_VEC(uint32_t) vacant;
    struct hk_map call_at; /* the port's id to a slot */
    int64_t deadline_ns;   /* no call ends before it */
    bool draining;         /* no pass begins any more */
    struct hk_arena mem;   /* one pass */
    struct ctl_metrics metrics;
    HK_VEC(struct hearer *) hearers;
};

/* Whom a mirror tells. */
struct hearer {
    struct ctl *c;
    void (*changed)(struct ctl *c, const struct mirror_change *ch);
};

/* ---- turn.c ---- */

/* Runs reconcile for a key that was popped. */
void turn_run(struct manager *m, struct seat *s, uint32_t key);
/* The answer to any call of the manager's. */
void turn_on_msg(void *manager, const struct port_msg *msg);
/* Gives up on calls that have gone unanswered for too long. */
void turn_expire(struct manager *m, int64_t now_ns);
void turn_error_fini(struct turn_error *e);
struct seat *ctl_seat(struct ctl *c);
