// SPDX-License-Identifier: Apache-2.0
// Starting the parts, ending them in every way there is, and the order in which they run.
#include "world/world.h"

#include "apiserver/bootstrap.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* No time of one clock makes sense as one of the other. */
#define WORLD_BEGIN_NS (5000 * WORLD_SECOND)               /* monotonic */
#define WORLD_WALL_NS ((int64_t)1767348000 * WORLD_SECOND) /* 2026-01-02T10:00:00Z */
/* At rest: no write for longer than the longest pause between two tries. */
#define WORLD_QUIET_NS (330 * WORLD_SECOND)
#define WORLD_PATIENCE_NS (4 * 3600 * WORLD_SECOND) /* from the last fault to rest */
#define WORLD_COMPACT_NS (30 * WORLD_SECOND)

enum {
    WORLD_STEPS_MAX = 400 * 1000,
    WORLD_SWEEPS = 3, /* what a sweep meets may make new objects before it is gone */
};

static const char *const part_names[WORLD_PARTS] = {"controllers", "scheduler", "agent",
                                                    "remote-1",    "remote-2",  "clients"};

/* ---- links ---- */

static void part_on_call(void *ctx, const struct port_request *req, enum link_fault fault)
{
    const struct part *p = ctx;
    const struct hk_str name =
        req->name.n > 0 ? req->name : json_str(json_at(req->body, "metadata.name"), HK_STR("-"));

    trace_add(&p->w->trace, part_names[p->which], "%s %s%s%s %.*s/%.*s%s%s",
              port_verb_name(req->verb), req->kind->plural, req->subresource ? "/" : "",
              req->subresource ? req->subresource : "", HK_FMT(req->ns), HK_FMT(name),
              fault != LINK_PASSES ? " " : "", fault != LINK_PASSES ? link_fault_name(fault) : "");
}

/* The end has come in the midst of a write. */
static bool part_server_is_dead(void *ctx)
{
    const struct part *p = ctx;

    return p->w->disk->ended;
}

static void part_on_answer(void *ctx, const struct link_call *c, const struct port_msg *m)
{
    const struct part *p = ctx;

    check_answer(p->w, c, m);
}

static void part_on_deliver(void *ctx, const struct link_call *c, const struct port_msg *m)
{
    static const char *const types[] = {"done", "added", "modified", "deleted", "bookmark"};
    const struct part *p = ctx;

    if (m->type == PORT_BOOKMARK) {
        return;
    }
    trace_add(&p->w->trace, part_names[p->which], "<- %s %s %s %.*s rv %llu rc %d", types[m->type],
              port_verb_name(c->verb), c->kind->plural, m->obj ? (int)m->obj->name.n : 0,
              m->obj ? m->obj->name.s : "", (unsigned long long)m->rv, m->rc);
}

static void part_race(void *ctx, const struct port_request *req)
{
    const struct part *p = ctx;

    clients_race(p->w, req);
}

/* The breach: controllers never hear of the pods that have an even number. */
static bool part_drop(void *ctx, const struct link_call *c, const struct port_msg *m)
{
    const struct part *p = ctx;
    const bool hit = p->w->breach == BREACH_FORGET && p->which == PART_CONTROLLERS &&
                     c->verb == PORT_WATCH && c->kind->id == API_POD && m->type == PORT_MODIFIED &&
                     m->rv % 2 == 0;

    p->w->breaches += hit;
    return hit;
}

void part_connect(struct world *w, enum world_part which)
{
    struct part *p = &w->parts[which];
    const bool people = which == PART_CLIENTS;

    p->w = w;
    p->which = which;
    link_init(&p->link, &(struct link_opts){.under = w->rest ? rest_port(w->rest) : NULL,
                                            .clock = &w->clock.clock,
                                            .rand = &w->rand,
                                            .faults = people || w->calm ? 0 : w->weather.faults,
                                            .cut = w->calm ? 0 : w->weather.cut,
                                            .slow = w->calm ? 0 : w->weather.slow,
                                            .shuffle = w->weather.shuffle,
                                            .on_call = part_on_call,
                                            .is_dead = part_server_is_dead,
                                            .on_answer = part_on_answer,
                                            .on_deliver = part_on_deliver,
                                            .drop = part_drop,
                                            .race = part_race,
                                            .ctx = p});
    p->runs = true;
    p->next_ns = world_now(w);
    p->back_ns = INT64_MAX;
}

/* ---- the parts ---- */

/* Also while the agent is down: in the program it lives as long as the controllers do. */
static bool is_own_node(void *ctx, struct hk_str name)
{
    return hk_str_starts(name, "sim-");
}

static void start_controllers(struct world *w)
{
    const struct ctl_type *const *(*const lists[])(uint32_t * ret_n) = {
        manager_types, manager_workload_types, manager_node_types};
    const struct ctl_type *all[32];
    uint32_t n = 0;

    for (size_t i = 0; i < HK_LEN(lists); i++) {
        uint32_t more;
        const struct ctl_type *const *types = lists[i](&more);

        hk_assert(n + more <= HK_LEN(all));
        memcpy(all + n, types, more * sizeof(all[0]));
        n += more;
    }
    w->controllers = manager_new(&(struct manager_opts){
        .port = &w->parts[PART_CONTROLLERS].link.port,
        .clock = &w->server_clock.clock,
        .rand = &w->ids,
        .conf = {.is_own_node = is_own_node, .own_nodes = w, .node_grace_ns = WORLD_GRACE_NS},
        .types = all,
        .ntype = n});
}

static void start_scheduler(struct world *w)
{
    struct hk_err err = {0};

    if (loop_new(&(struct loop_opts){.port = &w->parts[PART_SCHEDULER].link.port,
                                     .clock = &w->server_clock.clock,
                                     .conf_path = w->conf_fd >= 0 ? w->conf_path : NULL,
                                     .quiet_ns = 1,
                                     .reason_wait_ns = 100 * WORLD_MS,
                                     .session = SESSION_OPTS_DEFAULT},
                 &w->scheduler, &err) < 0) {
        world_fail(w, "the scheduler starts", "expected it to start, actual: %s", err.text);
    }
}

static void start_agent(struct world *w)
{
    const struct agent_fleet fleet = {.n = w->weather.nodes};
    const struct json *has =
        world_json(w, "{'cpu': '%u', 'memory': '16Gi', 'pods': '20'}", w->weather.cpus);

    w->processes =
        processes_new(w, &(struct processes_opts){
                             .node = "node", .agent = &w->agent, .clock = &w->server_clock.clock});
    w->agent = agent_new(&(struct agent_opts){.port = &w->parts[PART_AGENT].link.port,
                                              .clock = &w->server_clock.clock,
                                              .rand = &w->ids,
                                              .runtime = processes_runtime(w->processes),
                                              .fleet = &fleet,
                                              .capacity = has});
}

/* The machine of the part; NULL: that of the server. */
static struct remote *part_remote(const struct world *w, enum world_part which)
{
    return which >= PART_REMOTE && which < PART_CLIENTS ? w->remotes[which - PART_REMOTE] : NULL;
}

static void part_start(struct world *w, enum world_part which)
{
    part_connect(w, which);
    switch (which) {
    case PART_CONTROLLERS:
        start_controllers(w);
        break;
    case PART_SCHEDULER:
        start_scheduler(w);
        break;
    case PART_AGENT:
        start_agent(w);
        break;
    default:
        break;
    }
}

/* As if it had been killed: nothing that it does while it is taken apart counts. */
static void part_end(struct world *w, enum world_part which)
{
    struct part *p = &w->parts[which];

    if (!p->runs) {
        return;
    }
    p->runs = false;
    p->link.dead = true;
    switch (which) {
    case PART_CONTROLLERS:
        manager_free(w->controllers);
        w->controllers = NULL;
        break;
    case PART_SCHEDULER:
        loop_free(w->scheduler);
        w->scheduler = NULL;
        break;
    case PART_AGENT:
        agent_free(w->agent);
        w->agent = NULL;
        processes_free(w->processes);
        w->processes = NULL;
        break;
    default:
        break;
    }
    link_fini(&p->link);
}

/* ---- the process ---- */

static void world_on_publish(void *ctx)
{
    struct world *w = ctx;

    if (!w->disk->ended) {
        check_published(w);
    }
}

static const struct admission_tolerations world_tolerations = {WORLD_TOLERATION_S,
                                                               WORLD_TOLERATION_S};

/* False: the disk would not let it. */
static bool world_boot(struct world *w)
{
    struct hk_err err = {0};

    disk_mount(w->disk);
    w->boots++;
    if (store_open(&(struct store_opts){.path = DISK_PATH,
                                        .vfs = DISK_VFS,
                                        .no_thread = true,
                                        .ring_events = w->weather.ring},
                   &w->store, &err) < 0) {
        w->store = NULL;
        trace_add(&w->trace, "server", "cannot start: %s", err.text);
        if (w->disk->fault == DISK_WORKS && !w->disk->ended) {
            world_fail(w, "the store opens", "expected it to open, actual: %s", err.text);
        }
        w->boot_ns = world_now(w) + WORLD_SECOND;
        return false;
    }
    trace_add(&w->trace, "server", "start %u at revision %llu", w->boots,
              (unsigned long long)store_rv(w->store));
    check_boot(w);
    store_on_publish(w->store, world_on_publish, w);
    w->rest = rest_new(&(struct rest_opts){.store = w->store,
                                           .clock = &w->server_clock.clock,
                                           .rand = &w->ids,
                                           .tolerations = &world_tolerations});
    for (enum world_part k = 0; k < WORLD_PARTS; k++) {
        if (part_remote(w, k)) {
            remote_server_up(part_remote(w, k));
        } else if (k < PART_REMOTE || k == PART_CLIENTS) {
            part_start(w, k);
        }
    }
    w->boot_ns = INT64_MAX;
    w->compact_ns = world_now(w) + WORLD_COMPACT_NS;
    return true;
}

/* Everything that is in memory is gone, and of the disk what its end leaves. */
static void world_shut(struct world *w)
{
    for (enum world_part k = 0; k < WORLD_PARTS; k++) {
        if (part_remote(w, k)) {
            remote_server_down(part_remote(w, k));
        } else {
            part_end(w, k);
        }
    }
    if (w->store) {
        store_off_publish(w->store, world_on_publish, w);
    }
    rest_free(w->rest);
    store_close(w->store);
    w->rest = NULL;
    w->store = NULL;
}

static void world_die(struct world *w, enum disk_end end)
{
    struct disk *next;

    disk_finish(w->disk, end);
    trace_add(&w->trace, "server", "%s",
              w->disk->end == DISK_POWER_CUT ? "the power fails" : "killed");
    check_end(w);
    world_shut(w);
    next = hk_take(w->disk->next);
    disk_fini(w->disk);
    hk_free(w->disk);
    w->disk = next;
    w->boot_ns = world_now(w) + world_between(w, 0, 5000) * WORLD_MS;
}

uint32_t world_running(const struct world *w, const char *uid)
{
    uint32_t n = processes_running(w->processes, uid);

    for (uint32_t i = 0; i < w->weather.remotes; i++) {
        n += processes_running(remote_processes(w->remotes[i]), uid);
    }
    return n;
}

/* ---- what goes wrong beside the links ---- */

static void world_disk_changes(struct world *w)
{
    static const char *const words[] = {"works", "is full", "fails to write", "fails to sync"};

    if (w->disk->fault != DISK_WORKS || w->calm || w->weather.disk_fails == 0) {
        w->disk->fault = DISK_WORKS;
        w->disk_ns = w->calm || w->weather.disk_fails == 0
                         ? INT64_MAX
                         : world_now(w) + world_between(w, 1, 120) * WORLD_SECOND;
    } else {
        w->weather.disk_fails--;
        w->disk->fault = DISK_FULL + hk_rand_below(&w->rand, 3);
        w->disk_ns = world_now(w) + world_between(w, 1, 20000) * WORLD_MS;
    }
    trace_add(&w->trace, "disk", "%s", words[w->disk->fault]);
}

/* A component dies, the process does, or the machine; some deaths come in the midst of a write. */
static void world_strike(struct world *w)
{
    if (w->weather.node_faults > 0 && w->node_fault_ns <= world_now(w)) {
        w->weather.node_faults--;
        w->node_fault_ns = world_now(w) + world_between(w, 1, 60) * WORLD_SECOND;
        remote_strike(w->remotes[hk_rand_below(&w->rand, w->weather.remotes)]);
    }
    if (w->store && w->weather.crashes > 0 && world_chance(w, 2)) {
        const enum world_part which = hk_rand_below(&w->rand, PART_REMOTE);

        w->weather.crashes--;
        if (w->parts[which].runs) {
            trace_add(&w->trace, part_names[which], "crashes");
            part_end(w, which);
            w->parts[which].back_ns = world_now(w) + world_between(w, 0, 3000) * WORLD_MS;
        }
    } else if (w->store && w->weather.kills > 0 && w->disk->end_at == 0 && world_chance(w, 2)) {
        const enum disk_end end =
            world_chance(w, w->breach == BREACH_SYNC ? 1000 : 500) ? DISK_POWER_CUT : DISK_KILL;

        w->weather.kills--;
        if (world_chance(w, 500)) {
            w->disk->end = end;
            w->disk->end_at = w->disk->ops + (uint64_t)world_between(w, 1, 12);
        } else {
            world_die(w, end);
        }
    }
}

/* ---- steps ---- */

static bool server_is_ready(struct world *w)
{
    struct pollfd p = {.fd = port_fd(rest_port(w->rest)), .events = POLLIN};

    return poll(&p, 1, 0) > 0 || rest_next_ns(w->rest) <= world_now(w) ||
           w->compact_ns <= world_now(w);
}

static void server_step(struct world *w)
{
    const uint32_t max = world_chance(w, 200) ? 1 + hk_rand_below(&w->rand, 4) : 1000;
    uint32_t n;

    if (rest_next_ns(w->rest) <= world_now(w)) {
        rest_tick(w->rest);
    }
    if (w->compact_ns <= world_now(w)) {
        w->compact_ns = world_now(w) + WORLD_COMPACT_NS;
        store_compact(w->store);
    }
    n = port_poll(rest_port(w->rest), max);
    trace_add(&w->trace, "server", "poll %u, revision %llu%s", n,
              (unsigned long long)store_rv(w->store), store_failure(w->store) ? ", no writes" : "");
}

static void part_step(struct world *w, enum world_part which)
{
    struct part *p = &w->parts[which];
    int64_t wait_ns = INT64_MAX;

    p->link.allowance = world_chance(w, 300) ? 1 + hk_rand_below(&w->rand, 3) : UINT32_MAX;
    p->next_ns = INT64_MAX;
    switch (which) {
    case PART_CONTROLLERS:
        p->next_ns = manager_run(w->controllers);
        break;
    case PART_SCHEDULER:
        loop_step(w->scheduler, &wait_ns);
        p->next_ns = wait_ns == INT64_MAX ? INT64_MAX : world_now(w) + wait_ns;
        check_books(w);
        break;
    case PART_AGENT: {
        (void)processes_run(w->processes);
        p->next_ns = agent_run(w->agent);
        const int64_t at_ns = processes_run(w->processes);
        p->next_ns = HK_MIN(p->next_ns, at_ns);
        break;
    }
    default:
        port_poll(&p->link.port, UINT32_MAX);
        if (clients_next_ns(w->clients) <= world_now(w)) {
            clients_act(w);
        }
        p->next_ns = clients_next_ns(w->clients);
        break;
    }
}

/* When the part has something to do. */
static int64_t part_due_ns(const struct world *w, const struct part *p)
{
    const struct remote *r = part_remote(w, (enum world_part)(p - w->parts));
    int64_t due_ns;

    if (r) {
        return remote_due_ns(r);
    }
    if (!w->store || (p >= &w->parts[PART_REMOTE] && p < &w->parts[PART_CLIENTS])) {
        return INT64_MAX;
    }
    if (!p->runs) {
        return p->back_ns;
    }
    due_ns = link_next_ns(&p->link);
    return HK_MIN(due_ns, p->next_ns);
}

static int64_t world_next_ns(const struct world *w)
{
    int64_t next_ns = HK_MIN(w->disk_ns, w->jump_ns);

    if (w->store) {
        const int64_t server_ns = rest_next_ns(w->rest);

        next_ns = HK_MIN(next_ns, server_ns);
        next_ns = HK_MIN(next_ns, w->compact_ns);
    } else {
        next_ns = HK_MIN(next_ns, w->boot_ns);
    }
    for (enum world_part k = 0; k < WORLD_PARTS; k++) {
        const int64_t part_ns = part_due_ns(w, &w->parts[k]);

        next_ns = HK_MIN(next_ns, part_ns);
    }
    return next_ns;
}

static void world_take_turn(struct world *w, uint32_t which)
{
    if (which == WORLD_PARTS && !w->store) {
        world_boot(w);
    } else if (which == WORLD_PARTS) {
        server_step(w);
    } else if (part_remote(w, which)) {
        remote_step(part_remote(w, which));
    } else if (w->parts[which].runs) {
        part_step(w, which);
    } else {
        trace_add(&w->trace, part_names[which], "starts again");
        part_start(w, which);
    }
}

/* One of those who have something to do, by lot; false when nobody has. */
static bool world_turn(struct world *w)
{
    uint32_t ready[WORLD_PARTS + 1], n = 0;

    if (w->disk_ns <= world_now(w)) {
        world_disk_changes(w);
    }
    if (w->jump_ns <= world_now(w)) {
        world_jump(w);
    }
    for (enum world_part k = 0; k < WORLD_PARTS; k++) {
        if (part_due_ns(w, &w->parts[k]) <= world_now(w)) {
            ready[n++] = k;
        }
    }
    if (w->store ? server_is_ready(w) : w->boot_ns <= world_now(w)) {
        ready[n++] = WORLD_PARTS;
    }
    if (n == 0) {
        return false;
    }
    world_take_turn(w, ready[hk_rand_below(&w->rand, n)]);
    return true;
}

static void world_step(struct world *w, int64_t end_ns)
{
    w->steps++;
    if (world_turn(w)) {
        w->clock.now_ns += world_between(w, 0, 1000) * 1000; /* up to a millisecond of work */
    } else {
        const int64_t next_ns = world_next_ns(w);
        w->clock.now_ns = HK_MAX(w->clock.now_ns, HK_MIN(next_ns, end_ns));
    }
    breach_act(w);
    hk_arena_clear(&w->mem);
    if (w->breach == BREACH_CHANCE) {
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        w->breaches++;
        trace_add(&w->trace, "breach", "%ld", ts.tv_nsec);
    }
    if (w->store && w->disk->ended) {
        world_die(w, w->disk->end);
    }
    if (!w->calm) {
        world_strike(w);
    }
}

static void world_until(struct world *w, int64_t end_ns)
{
    while (!w->failed && world_now(w) < end_ns && w->steps < WORLD_STEPS_MAX) {
        world_step(w, end_ns);
    }
    if (w->steps >= WORLD_STEPS_MAX) {
        world_fail(w, "time passes", "expected fewer than %d steps, actual: %llu", WORLD_STEPS_MAX,
                   (unsigned long long)w->steps);
    }
}

/* Until nothing but Events has been written for a while. */
static void world_come_to_rest(struct world *w)
{
    const int64_t begin_ns = world_now(w), end_ns = begin_ns + WORLD_PATIENCE_NS;

    while (!w->failed && world_now(w) < end_ns) {
        const int64_t quiet_ns = HK_MAX(check_last_write_ns(w->check), begin_ns) + WORLD_QUIET_NS;

        if (world_now(w) >= quiet_ns) {
            return;
        }
        world_until(w, quiet_ns);
    }
    world_fail(w, "comes to rest",
               "expected no write for %lld s within %lld s of the last fault, actual: the last was "
               "%lld s ago",
               (long long)(WORLD_QUIET_NS / WORLD_SECOND),
               (long long)(WORLD_PATIENCE_NS / WORLD_SECOND),
               (long long)((world_now(w) - check_last_write_ns(w->check)) / WORLD_SECOND));
}

/* No more faults: who is down comes up, what is late arrives. */
static void world_calm(struct world *w)
{
    trace_add(&w->trace, "world", "no more faults");
    w->calm = true;
    w->calm_ns = world_now(w);
    w->disk->end_at = 0;
    w->disk->fault = DISK_WORKS;
    w->disk_ns = INT64_MAX;
    w->boot_ns = w->store ? INT64_MAX : world_now(w);
    for (enum world_part k = 0; k < WORLD_PARTS; k++) {
        if (part_remote(w, k)) {
            remote_calm(part_remote(w, k));
        } else if (w->parts[k].runs) {
            link_calm(&w->parts[k].link);
        } else if (w->store) {
            w->parts[k].back_ns = world_now(w);
        }
    }
    while (!w->store && !w->failed) {
        world_step(w, INT64_MAX);
    }
}

/* ---- a story ---- */

static void world_write_conf(struct world *w)
{
    const size_t n = w->weather.conf ? strlen(w->weather.conf) : 0;

    w->conf_fd = n > 0 ? memfd_create("scheduler.conf", MFD_CLOEXEC) : -1;
    if (n > 0) {
        hk_assert(write(w->conf_fd, w->weather.conf, n) == (ssize_t)n);
        snprintf(w->conf_path, sizeof(w->conf_path), "/proc/self/fd/%d", w->conf_fd);
    }
}

static void world_init(struct world *w, uint64_t seed, enum world_breach breach, bool print,
                       const struct disk *template)
{
    *w = (struct world){.seed = seed, .breach = breach};
    hk_clock_manual_init(&w->clock, WORLD_BEGIN_NS);
    hk_rand_seed(&w->rand, seed);
    hk_rand_seed(&w->ids, hk_mix(seed + 1));
    world_clock_init(&w->server_clock, w, WORLD_WALL_NS - WORLD_BEGIN_NS);
    w->trace = (struct trace){.print = print, .clock = &w->clock, .begin_ns = WORLD_BEGIN_NS};
    world_draw(w);
    world_write_conf(w);
    w->disk = hk_zalloc(sizeof(*w->disk));
    disk_init(w->disk, hk_mix(seed + 2));
    disk_copy(w->disk, template);
    w->disk->lies = breach == BREACH_SYNC;
    w->breaches = breach == BREACH_SYNC;
    w->disk_ns = w->weather.disk_fails > 0 ? world_now(w) + world_between(w, 1, 200) * WORLD_SECOND
                                           : INT64_MAX;
    w->jump_ns =
        w->weather.jumps > 0 ? world_now(w) + world_between(w, 1, 100) * WORLD_SECOND : INT64_MAX;
    w->node_fault_ns = world_now(w) + world_between(w, 5, 100) * WORLD_SECOND;
    w->check = check_new();
    w->clients = clients_new(w);
    trace_add(&w->trace, "world",
              "seed %llu: %u nodes, %u jobs, faults %u cuts %u slow %u per mille, %u crashes, %u "
              "kills, %u disk failures, %u remote nodes, %u faults of them, %u jumps, conf %.50s",
              (unsigned long long)seed, w->weather.nodes, w->weather.jobs, w->weather.faults,
              w->weather.cut, w->weather.slow, w->weather.crashes, w->weather.kills,
              w->weather.disk_fails, w->weather.remotes, w->weather.node_faults, w->weather.jumps,
              w->weather.conf ? w->weather.conf : "built in");
    w->boot_ns = world_now(w);
    for (uint32_t i = 0; i < w->weather.remotes; i++) {
        w->remotes[i] = remote_new(w, i);
        remote_start(w->remotes[i]);
    }
}

static void world_fini(struct world *w)
{
    world_shut(w);
    for (uint32_t i = 0; i < w->weather.remotes; i++) {
        remote_free(w->remotes[i]);
    }
    clients_free(w->clients);
    check_free(w->check);
    disk_fini(w->disk);
    hk_free(w->disk);
    hk_arena_fini(&w->mem);
    if (w->conf_fd >= 0) {
        close(w->conf_fd);
    }
}

static bool world_tell_object(void *ctx, const struct store_obj *o)
{
    printf("# state %.*s\n", HK_FMT(o->text));
    return true;
}

/* With the whole story goes the state in which it ended. */
static void world_tell_state(const struct world *w)
{
    static const enum api_kind_id kinds[] = {API_NODE, API_QUEUE, API_JOB, API_PODGROUP, API_POD};

    for (size_t i = 0; w->store && i < HK_LEN(kinds); i++) {
        const struct api_kind *k = api_kind(kinds[i]);
        store_scan(w->store, store_res(w->store, hk_str(k->group), hk_str(k->plural)), HK_STR(""),
                   HK_STR(""), HK_STR(""), world_tell_object, NULL);
    }
}

static void world_tell_failure(const struct world *w)
{
    const uint64_t n = HK_MIN(w->trace.lines, (uint64_t)WORLD_LINES);

    printf("# seed %llu violates '%s': %s\n", (unsigned long long)w->seed, w->invariant, w->text);
    if (w->trace.print) {
        world_tell_state(w);
    }
    for (uint64_t i = w->trace.lines - n; i < w->trace.lines && !w->trace.print; i++) {
        printf("#   %s\n", w->trace.last[i % WORLD_LINES]);
    }
    printf("# again: hekla-world --seed %llu --trace\n", (unsigned long long)w->seed);
}

/* People mend what keeps the cluster from coming to rest. */
static void world_put_right(struct world *w)
{
    for (int i = 0; i < WORLD_SWEEPS && !w->failed && clients_calm(w); i++) {
        world_until(w, world_now(w) + 60 * WORLD_SECOND);
    }
}

/* True when some machine was away. */
static bool world_remotes_return(struct world *w)
{
    bool any = false;

    for (uint32_t i = 0; i < w->weather.remotes && !w->failed; i++) {
        if (remote_since_ns(w->remotes[i]) == INT64_MAX) {
            remote_return(w->remotes[i]);
            any = true;
        }
    }
    return any;
}

static void world_play(struct world *w)
{
    world_until(w, WORLD_BEGIN_NS + w->weather.chaos_ns);
    world_calm(w);
    world_put_right(w);
    world_come_to_rest(w);
    if (!w->failed) {
        check_given_up(w);
    }
    if (world_remotes_return(w)) {
        world_put_right(w);
        world_come_to_rest(w);
    }
    if (!w->failed) {
        check_rest(w);
    }
    trace_add(&w->trace, "world", "everything is deleted");
    for (int i = 0; i < WORLD_SWEEPS && !w->failed && clients_delete_all(w); i++) {
        world_come_to_rest(w);
    }
    if (!w->failed) {
        check_empty(w);
    }
}

struct world_result world_run(uint64_t seed, enum world_breach breach, bool print,
                              const struct disk *template)
{
    struct world *w = hk_alloc(sizeof(*w));
    struct world_result r;

    world_init(w, seed, breach, print, template);
    world_play(w);
    if (w->failed && (breach == BREACH_NONE || print)) {
        world_tell_failure(w);
    }
    r = (struct world_result){.failed = w->failed,
                              .hash = w->trace.hash,
                              .lines = w->trace.lines,
                              .steps = w->steps,
                              .writes = check_writes(w->check),
                              .breaches = w->breaches};
    memcpy(r.invariant, w->invariant, sizeof(r.invariant));
    world_fini(w);
    hk_free(w);
    return r;
}

void world_template(struct disk *ret)
{
    struct hk_clock_manual clock;
    struct hk_rand rand;
    struct store *store;
    struct rest *rest;
    struct hk_err err = {0};

    disk_init(ret, 1);
    disk_mount(ret);
    hk_clock_manual_init(&clock, WORLD_WALL_NS);
    hk_rand_seed(&rand, 1);
    if (store_open(&(struct store_opts){.path = DISK_PATH, .vfs = DISK_VFS, .no_thread = true},
                   &store, &err) < 0) {
        fprintf(stderr, "hekla-world: %s\n", err.text);
        abort();
    }
    rest = rest_new(&(struct rest_opts){.store = store, .clock = &clock.clock, .rand = &rand});
    if (bootstrap_crds(rest, &err) < 0 || bootstrap_objects(rest, &err) < 0) {
        fprintf(stderr, "hekla-world: %s\n", err.text);
        abort();
    }
    rest_free(rest);
    store_close(store);
}
