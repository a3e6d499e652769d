// SPDX-License-Identifier: Apache-2.0
// A pod of the node and its containers, as structs that every file of this directory reads, and
// questions about them that need nothing else. life.c moves a pod from stage to stage, container.c
// a container.
#pragma once

#include "agent/host/host.h"
#include "agent/pod/hook.h"
#include "agent/pod/probe.h"
#include "agent/pod/ref.h"
#include "base/vec.h"

struct pod_image;
struct pods;
struct pull;

struct container_end {
    bool is;
    int code, signo;
    const char *reason; /* literal */
    char *message;      /* or NULL */
    int64_t start_ns, end_ns;
};

enum container_state { CONTAINER_WAITING, CONTAINER_RUNNING, CONTAINER_ENDED };
enum container_stop { STOP_NOT, STOP_HOOK, STOP_TERM, STOP_KILL };

struct container;

/* What probes and hooks report about their container. */
struct container_ops {
    /* A probe failed too often: stop the container. A negative grace period means the pod's. */
    void (*unhealthy)(struct container *c, int64_t now_ns, int64_t grace_s);
    void (*hook_ended)(struct container *c, bool good, int64_t now_ns);
};

struct container {
    struct pod *pod;
    const struct container_ops *ops;
    struct api_object *object; /* has the spec of an ephemeral container; else NULL */
    const struct json *spec;   /* in the pod's object, or in that one */
    struct hk_str name;
    bool init, sidecar, ephemeral;
    bool begun;   /* this attempt was started */
    bool stale;   /* ephemeral: what its variables need must be read again */
    bool delayed; /* its start delay was determined */
    bool ready, started;
    uint8_t state, stop;
    uint32_t attempt;  /* of the current or last run */
    uint64_t id;       /* the runtime's id while it runs */
    struct hook hook;  /* preStop or postStart */
    int64_t start_ns;  /* wall */
    int64_t due_ns;    /* do not start it before */
    int64_t kill_ns;   /* when to send SIGKILL, while it stops */
    int64_t killed_ns; /* when SIGKILL was last sent */
    int64_t backoff_ns;
    uint64_t gpus;                 /* bit set of its GPUs, by index in host.gpus */
    const char *why;               /* literal: reason for waiting */
    char *why_text;                /* or NULL */
    const struct pod_image *image; /* during a start; NULL: not in an image */
    char *image_id;                /* of the last start, or NULL */
    struct pull *pull;             /* in progress, or NULL */
    bool pulled;                   /* for the next start */
    bool pull_shown;               /* the last failure has been shown as ImagePullBackOff */
    int64_t pull_backoff_ns, pull_again_ns;
    struct container_end end, last;
    struct probe probes[PROBE_NKINDS];
};

/* See fit.c. */
enum pod_fit_state {
    POD_FIT_NOT_JUDGED,
    POD_FIT_WAITING,
    POD_FIT_BOOKED,
    POD_FIT_REFUSED,
    POD_FIT_RELEASED
};

enum pod_stage { POD_LIVE, POD_STOPPING, POD_ENDED };
enum pod_prep { PREP_NOT, PREP_ASKED, PREP_HELD, PREP_DONE };
enum pod_condition {
    POD_READY_TO_START,
    POD_INITIALIZED,
    POD_CONTAINERS_READY,
    POD_READY,
    POD_NCONDITIONS
};

/* Disk usage of a pod. */
struct pod_disk {
    bool limited;        /* has limits to enforce */
    int64_t measured_ns; /* monotonic time of the last measurement, 0: never */
    int64_t used_before; /* used on the file system at that time */
    int64_t room;        /* bytes below the limit at that time */
    char *message;       /* why it was evicted, or NULL */
};

struct pod {
    struct host *host;
    struct pods *set;
    struct api_object *obj; /* as admitted: the spec does not change */
    struct api_object *now; /* newest state, for labels and annotations */
    struct hk_str ns, name, uid;
    struct hk_str hostname, subdomain, job; /* job: name of the Volcano job, "" none */
    char *dir;                              /* NULL: the node keeps none */
    char address[16];                       /* "": the host's */
    uint8_t stage, prep;
    uint8_t fit;    /* enum pod_fit_state */
    int64_t *needs; /* amounts it books, by rows of the books; NULL: not computed yet */
    char *fit_reason, *fit_message; /* why it was refused, or NULL */
    uint32_t slot;
    uint32_t at;      /* index in pods.active, unless resting */
    bool resting;     /* finished, with nothing to do until the API changes it */
    bool queued;      /* queued for pod_step */
    int64_t alarm_ns; /* its earliest alarm, INT64_MAX none */
    bool settled;     /* has its directory and address */
    bool final;       /* an earlier agent reported its final status */
    bool gone;        /* deleted from the API */
    bool deleting;    /* has a deletionTimestamp */
    bool dirty;       /* needs pod_step; set by pod_touch */
    bool started;     /* pod_start was called */
    bool stopped;     /* pod_stop was called */
    bool image_told, caveats_told;
    bool known;       /* an earlier agent had it already */
    bool deleted;     /* our DELETE was answered */
    bool hosts_stale; /* its hosts file is outdated */
    bool files_stale; /* its volumes show objects that have changed */
    HK_VEC(struct ref) refs;
    struct container *containers; /* init containers first */
    uint32_t ncontainer, ninit;
    HK_VEC(struct container *) ephemeral; /* in the order of their addition */
    bool refs_added;                      /* refs has some that were not asked for yet */
    int64_t due_ns;                       /* time of the next pod_step */
    int64_t start_ns;                     /* wall time of admission */
    int64_t since_ns;                     /* monotonic time of admission */
    int64_t deadline_ns;                  /* monotonic, INT64_MAX none */
    int64_t stop_ns;                      /* monotonic time of SIGKILL */
    int64_t held_ns, held_until_ns;
    int64_t renew_ns;   /* monotonic time to renew tokens, INT64_MAX: it has none */
    const char *reason; /* why the agent ended it; literal or fit_reason, NULL none */
    const char *message;
    struct pod_disk disk;
    /* What was reported. */
    struct {
        bool is;
        int64_t since_ns; /* wall */
    } conditions[POD_NCONDITIONS];
    char *sent; /* the status as last acknowledged, or NULL */
    char *sending;
    uint64_t sent_rv;        /* of the pod in the answer to that; 0 unknown */
    uint64_t unready_rv;     /* of the newest pod that somebody else made not ready; else 0 */
    uint64_t patch, removal; /* calls in flight */
    bool report_again;       /* report once more after the patch in flight */
    uint32_t failures;
    int64_t report_ns; /* no report before this time */
};

/* The field of the spec, NULL: none. */
const struct json *pod_spec(const struct pod *p, const char *path);
/* All containers, ephemeral ones last. */
uint32_t pod_ncontainers(const struct pod *p);
struct container *pod_container_at(const struct pod *p, uint32_t i);
/* All containers before the regular ones have done their part. */
bool pod_initialized(const struct pod *p);
int64_t pod_grace_ns(const struct pod *p);
/* The log file; NULL when the pod has no directory. */
const char *pod_log_path(const struct container *c, uint32_t attempt, struct hk_arena *a);
/* An init container that has succeeded, or a sidecar that has started. */
bool container_is_initialized(const struct container *c);

/* Says why the container waits: a literal and a text, or NULL. */
void container_wait(struct container *c, const char *why, const char *text);
/* Records an Event about the pod. */
void pod_note(const struct pod *p, bool warning, const char *reason, const char *message);
/* Schedules the next step of the pod for that time. */
void pod_wake_at(struct pod *p, int64_t at_ns);
