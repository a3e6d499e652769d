// SPDX-License-Identifier: Apache-2.0
// Private to the framework: manager.c and pass.c.
#pragma once

#include "controllers/pass.h"

enum ensured_state {
    ENSURED_UNKNOWN,
    ENSURED_ABSENT,
    ENSURED_FOUND,
    ENSURED_DONE,
    ENSURED_REMOVED,
};

/* A request in flight, part of a key's pass. */
struct call {
    uint64_t id; /* the port's call id; 0: free slot */
    struct ctl *c;
    uint32_t key;
    enum port_verb verb;
    const struct api_kind *kind;
    char *ns, *name, *uid; /* uid: the last known one, "" unknown */
    struct ensured *memo;  /* of pass_ensure, pass_remove or pass_read, or NULL */
    bool fetch;            /* reads the object that a create found to exist */
    int64_t deadline_ns;   /* monotonic */
};

/* State kept for a key between its passes. */
struct key_pass {
    uint32_t nflight;
    bool failed;
    HK_VEC(struct pass_error) errors; /* of the current pass, else of the last one */
};

/* A controller and the framework's state for it. */
struct ctl_state {
    struct ctl ctl;
    HK_VEC(struct key_pass) passes; /* by key */
};

/* A namespace that an answer said is being deleted: nothing is created in it for a while. */
struct ending_namespace {
    uint32_t ns;      /* string id, held */
    int64_t until_ns; /* monotonic */
};

struct manager {
    struct manager_opts o;
    struct hk_intern str;
    struct recorder *recorder;
    struct mirror *mirrors[API_NKINDS]; /* NULL: no controller watches the kind */
    struct ctl_state *ctls;
    uint32_t nctls;
    HK_VEC(struct call) calls;
    HK_VEC(uint32_t) vacant;
    struct hk_map call_at; /* port call id to slot */
    int64_t deadline_ns;   /* no call expires before it */
    bool draining;         /* starts no new pass */
    HK_VEC(struct ending_namespace) ending;
    struct hk_arena mem; /* scratch of one pass */
    struct ctl_metrics metrics;
    HK_VEC(struct hearer *) hearers;
};

/* A listener of a mirror. */
struct hearer {
    struct ctl *c;
    void (*changed)(struct ctl *c, const struct mirror_change *ch);
};

/* ---- pass.c ---- */

/* Calls reconcile for a popped key. */
void pass_run(struct manager *m, struct ctl_state *s, uint32_t key);
/* Handles the answer to any call of the manager. */
void pass_on_msg(void *manager, const struct port_msg *msg);
/* Fails calls that are past their deadline. */
void pass_expire(struct manager *m, int64_t now_ns);
void pass_error_fini(struct pass_error *e);
struct ctl_state *ctl_state_of(struct ctl *c);
