// SPDX-License-Identifier: Apache-2.0
// All of `hekla up` in one thread under a virtual clock: the store on a disk in memory, the rules
// of the API, controllers, scheduler, an agent with simulated nodes, and clients. One seed decides
// in which order they run, when messages arrive, and what goes wrong, so every run of a seed is the
// same.
#pragma once

#include "agent/agent.h"
#include "agent/simulate/model.h"
#include "controllers/ctl.h"
#include "scheduler/loop.h"
#include "store/rest.h"
#include "world/disk.h"
#include "world/link.h"

#define WORLD_MS ((int64_t)1000 * 1000)
#define WORLD_SECOND (1000 * WORLD_MS)
/* How long a node may be silent before it is unreachable, and how long pods then stay on it. */
#define WORLD_GRACE_NS (20 * WORLD_SECOND)
#define WORLD_TOLERATION_S 20

/* One rule that is broken on purpose, to prove that the checks see it. */
enum world_breach {
    BREACH_NONE,
    BREACH_SYNC,     /* the disk reports a sync that it did not do */
    BREACH_BIND,     /* a pod that is bound is bound to another node */
    BREACH_OVERFILL, /* a pod is bound to a node without room for it */
    BREACH_PROCESS,  /* the runtime does not end a container that it should end */
    BREACH_FORGET,   /* controllers miss some changes of pods */
    BREACH_JOB,      /* a job disappears without a deletion */
    BREACH_ORPHAN,   /* an object stays when all its possible owners are gone */
    BREACH_RETRY,    /* a job is restarted once more than maxRetry allows */
    BREACH_NOISE,    /* a component writes although all work is done */
    BREACH_EARLY,    /* a pod leaves the API while its process runs */
    BREACH_BLAME,    /* a node that reports is marked unreachable */
    BREACH_CLOSED,   /* a queue closes without a Command */
    BREACH_BOOKS,    /* a sum in the scheduler's model is off by one */
    BREACH_CHANCE,   /* a decision depends on real time */
    BREACH_NKINDS,
};
const char *world_breach_name(enum world_breach b);

/* What a seed decides before the run: the size of the world, and its faults. */
struct world_weather {
    uint32_t nodes, cpus, jobs;
    uint32_t remotes;           /* machines with an agent of their own */
    uint32_t node_faults;       /* of such a machine, its agent or its network */
    uint32_t jumps;             /* of wall clocks */
    uint32_t faults, cut, slow; /* per mille, of each link */
    bool shuffle;
    uint32_t crashes;    /* of single components */
    uint32_t kills;      /* of the whole process, or of the machine */
    uint32_t disk_fails; /* periods in which the disk fails */
    uint32_t ring;       /* events the store keeps */
    int64_t chaos_ns;    /* how long clients act and faults happen */
    const char *conf;    /* of the scheduler; NULL: the built-in one */
    bool weights;        /* queues have random weights: no share depends on them */
    bool peaceful;       /* no faults at all */
};

enum { WORLD_LINE = 192, WORLD_LINES = 40 };

struct trace {
    uint64_t lines, hash;
    bool print;
    int64_t begin_ns;
    const struct hk_clock_manual *clock;
    char last[WORLD_LINES][WORLD_LINE];
};
void trace_add(struct trace *t, const char *who, const char *fmt, ...) HK_PRINTF(3, 4);

enum { WORLD_REMOTES = 2 };

enum world_part {
    PART_CONTROLLERS,
    PART_SCHEDULER,
    PART_AGENT,
    PART_REMOTE,                                /* the first of those with a machine of their own */
    PART_CLIENTS = PART_REMOTE + WORLD_REMOTES, /* the last */
    WORLD_PARTS,
};

/* The clock of one machine. Its monotonic time is that of the world; its wall time is off by
 * offset_ns. */
struct world_clock {
    struct hk_clock clock; /* first */
    const struct hk_clock_manual *mono;
    int64_t offset_ns;
};

struct clients;
struct check;
struct processes;
struct remote;

struct part {
    struct world *w;
    enum world_part which;
    struct link link;
    bool runs;
    int64_t next_ns; /* call the part at this time */
    int64_t back_ns; /* after a crash: time of the next start */
};

struct world {
    uint64_t seed;
    struct world_weather weather;
    enum world_breach breach;
    uint32_t breaches; /* how often the rule was broken */
    struct hk_clock_manual clock;
    struct world_clock server_clock;
    int64_t jump_ns;       /* time of the next jump of a wall clock */
    int64_t node_fault_ns; /* time of the next fault of a machine with its own agent */
    struct hk_rand rand;   /* decides what happens */
    struct hk_rand ids;    /* used by the components: uids, names */
    struct trace trace;
    struct hk_arena mem; /* bodies, until the end of the step */

    struct disk *disk;
    struct store *store; /* NULL: the process does not run */
    struct rest *rest;
    uint32_t boots;
    int64_t boot_ns; /* time of its next start */
    int64_t compact_ns;
    int64_t disk_ns; /* when the disk starts or stops failing */
    bool calm;       /* no more faults */
    int64_t calm_ns; /* since then */

    struct part parts[WORLD_PARTS];
    struct manager *controllers;
    struct loop *scheduler;
    struct agent *agent;
    struct processes *processes;
    struct remote *remotes[WORLD_REMOTES]; /* NULL: the seed has no such machine */
    struct clients *clients;
    struct check *check;
    char conf_path[64];
    int conf_fd; /* -1: the built-in configuration */

    uint64_t steps;
    bool failed;
    char invariant[64];
    char text[600]; /* expected and actual state */
};

/* Records a violation. The first one ends the run. */
void world_fail(struct world *w, const char *invariant, const char *fmt, ...) HK_PRINTF(3, 4);
int64_t world_now(const struct world *w);
bool world_chance(struct world *w, uint32_t per_mille);
/* In [low, high]. */
int64_t world_between(struct world *w, int64_t low, int64_t high);
/* The request, in thousandths of a processor, with which a gang is always admitted, whatever the
 * other queues request: with proportion a queue gets no more than its share while others wait, and
 * a larger gang waits for ever, as with Volcano. */
int64_t world_share_milli(const struct world *w);
/* Parses JSON with single quotes; valid until the end of the step. */
const struct json *world_json(struct world *w, const char *fmt, ...) HK_PRINTF(2, 3);

struct world_result {
    bool failed;
    uint64_t hash, lines, steps, writes;
    uint32_t breaches;
    char invariant[64]; /* the violated rule, "" without one */
};
/* Runs one seed. The template is a disk with a new store. */
struct world_result world_run(uint64_t seed, enum world_breach breach, bool print,
                              const struct disk *template);
/* Makes the template. */
void world_template(struct disk *ret);

/* Number of running containers of the pod, on all machines. */
uint32_t world_running(const struct world *w, const char *uid);
/* Connects the part to the server if the server runs. */
void part_connect(struct world *w, enum world_part which);

/* ---- weather.c: what a seed decides before the run ---- */

void world_draw(struct world *w);
void world_clock_init(struct world_clock *c, const struct world *w, int64_t offset_ns);
/* Changes the wall clock of a random machine. */
void world_jump(struct world *w);

/* ---- processes.c: the simulated runtime, and checks of its calls ---- */

struct processes_opts {
    const char *node;     /* for the trace */
    struct agent **agent; /* gets the ends of containers; NULL while no agent runs */
    struct hk_clock *clock;
    bool outlives; /* containers continue without the agent, and their ends are recorded */
};

struct processes *processes_new(struct world *w, const struct processes_opts *o);
void processes_free(struct processes *p);
struct runtime *processes_runtime(struct processes *p);
/* The monotonic time of the next end. */
int64_t processes_run(struct processes *p);
uint32_t processes_running(const struct processes *p, const char *uid);
/* Calls fn with the uid of each pod that has a process; running: containers that have not ended. */
void processes_each(struct processes *p, void (*fn)(void *ctx, const char *uid, uint32_t running),
                    void *ctx);

/* ---- remote.c: machines that can die, be cut off and return ---- */

struct remote *remote_new(struct world *w, uint32_t nth);
void remote_free(struct remote *r);
const char *remote_name(const struct remote *r);
struct processes *remote_processes(const struct remote *r);
struct world_clock *remote_clock(struct remote *r);
/* Starts the machine's agent, with the containers and records of the previous one. */
void remote_start(struct remote *r);
/* Kills the machine's agent; its containers continue. */
void remote_end(struct remote *r);
/* The time of the machine's next event: of a container, of its agent or of a fault. */
int64_t remote_due_ns(const struct remote *r);
void remote_step(struct remote *r);
/* Injects a random fault into the machine, its agent or its network. */
void remote_strike(struct remote *r);
/* From now on the server can be reached, unless the machine is cut off; or cannot be reached. */
void remote_server_up(struct remote *r);
void remote_server_down(struct remote *r);
/* No more faults. A machine that is away may stay away for a while, or be given up by an
 * administrator. */
void remote_calm(struct remote *r);
/* Ends whatever fault keeps the machine away. */
void remote_return(struct remote *r);
/* Whether an administrator has given the machine up. */
bool remote_is_given_up(const struct remote *r);
/* The machine has been connected since this time; INT64_MAX: it is not connected. */
int64_t remote_since_ns(const struct remote *r);

/* ---- clients.c: what people do ---- */

/* Closed when everything is deleted. */
#define CLIENT_CLOSED_QUEUE "q2"

struct clients *clients_new(struct world *w);
void clients_free(struct clients *c);
int64_t clients_next_ns(const struct clients *c);
void clients_act(struct world *w);
/* Removes what keeps the cluster busy; false when nothing of that is left. */
bool clients_calm(struct world *w);
/* Deletes everything that clients created; false when nothing of that is left. */
bool clients_delete_all(struct world *w);
/* Calls fn for each job whose creation was acknowledged and that no client deleted. */
void clients_each_job(struct world *w,
                      void (*fn)(void *ctx, const char *ns, const char *name, const char *uid),
                      void *ctx);
void clients_race(struct world *w, const struct port_request *req);

/* ---- breach.c: rules broken on purpose ---- */

/* After each step. */
void breach_act(struct world *w);

/* ---- check.c: what must hold ---- */

struct check *check_new(void);
void check_free(struct check *c);
/* The store was opened: compares its state with what was published before. */
void check_boot(struct world *w);
/* Call before the process ends. */
void check_end(struct world *w);
/* Checks an answer of the server. */
void check_answer(struct world *w, const struct link_call *c, const struct port_msg *m);
/* Checks the changes that were published since the last call. */
void check_published(struct world *w);
/* Checks the scheduler's model after a session. */
void check_books(struct world *w);
void check_start(struct world *w, const char *node, const char *uid, const char *name,
                 uint32_t attempt);
void check_process_end(struct world *w, const char *uid, const char *name,
                       const struct runtime_end *end);
/* A client deletes the pod by force, without waiting for its processes. */
void check_force(struct world *w, const char *ns, const char *name);
/* What the annotations of the pod say about its containers, as JSON. */
const char *check_fate(const struct check *c, const char *uid);
/* Call when nothing happens any more, before absent machines return: nothing may wait for those
 * that were given up. */
void check_given_up(struct world *w);
/* Call when nothing happens any more. */
void check_rest(struct world *w);
/* Call when everything was deleted. */
void check_empty(struct world *w);
/* When something other than an Event was last published. */
int64_t check_last_write_ns(const struct check *c);
uint64_t check_writes(const struct check *c);
bool check_has_pod(const struct check *c, const char *uid);
