// SPDX-License-Identifier: Apache-2.0
// A machine with an agent of its own, as `hekla agent` is one: what it runs outlives its agent, its
// agent outlives the server, and the network between them can be cut. Its wall clock is its own.
//
//   up          the agent runs and reaches the server
//   cut         the agent runs; calls are refused, or nothing answers
//   no agent    what runs goes on, and nobody reports
//   off         nothing runs; the disk stays
#include "world/world.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum remote_state { REMOTE_UP, REMOTE_CUT, REMOTE_NO_AGENT, REMOTE_OFF };

struct remote {
    struct world *w;
    uint32_t nth;
    char name[16], dir[64];
    struct world_clock clock;
    struct processes *processes;
    struct agent *agent;
    enum remote_state state;
    int64_t back_ns;    /* when that ends */
    int64_t since_ns;   /* connected since; INT64_MAX: it is not */
    int64_t agent_ns;   /* when the agent wants to be called */
    int64_t process_ns; /* when the next process ends */
    bool given_up;
};

static struct part *remote_part(const struct remote *r)
{
    return &r->w->parts[PART_REMOTE + r->nth];
}

const char *remote_name(const struct remote *r)
{
    return r->name;
}

struct processes *remote_processes(const struct remote *r)
{
    return r->processes;
}

struct world_clock *remote_clock(struct remote *r)
{
    return &r->clock;
}

bool remote_is_given_up(const struct remote *r)
{
    return r->given_up;
}

int64_t remote_since_ns(const struct remote *r)
{
    return r->since_ns;
}

/* ---- its agent ---- */

static void remote_note_connection(struct remote *r)
{
    const bool connected = r->agent && link_is_connected(&remote_part(r)->link);

    r->since_ns = !connected ? INT64_MAX : r->since_ns != INT64_MAX ? r->since_ns : world_now(r->w);
}

void remote_start(struct remote *r)
{
    struct part *p = remote_part(r);
    const struct json *has =
        world_json(r->w, "{'cpu': '%u', 'memory': '16Gi', 'pods': '20'}", r->w->weather.cpus);

    part_connect(r->w, PART_REMOTE + r->nth);
    if (!r->processes) {
        r->processes = processes_new(r->w, &(struct processes_opts){.node = r->name,
                                                                    .agent = &r->agent,
                                                                    .clock = &r->clock.clock,
                                                                    .outlives = true});
    }
    r->agent = agent_new(&(struct agent_opts){.port = &p->link.port,
                                              .clock = &r->clock.clock,
                                              .rand = &r->w->ids,
                                              .runtime = processes_runtime(r->processes),
                                              .dir = r->dir,
                                              .record_dir = r->dir,
                                              .node = r->name,
                                              .lease_ns = WORLD_GRACE_NS,
                                              .capacity = has});
    r->agent_ns = r->process_ns = world_now(r->w);
    remote_note_connection(r);
}

void remote_end(struct remote *r)
{
    struct part *p = remote_part(r);

    if (!p->runs) {
        return;
    }
    p->runs = false;
    p->link.dead = true;
    agent_free(r->agent);
    r->agent = NULL;
    link_fini(&p->link);
    remote_note_connection(r);
}

int64_t remote_due_ns(const struct remote *r)
{
    const struct part *p = remote_part(r);
    int64_t due_ns = HK_MIN(r->back_ns, r->process_ns);

    if (p->runs) {
        const int64_t link_ns = link_next_ns(&p->link);
        due_ns = HK_MIN(due_ns, link_ns);
        due_ns = HK_MIN(due_ns, r->agent_ns);
    }
    return due_ns;
}

void remote_step(struct remote *r)
{
    struct part *p = remote_part(r);

    if (r->back_ns <= world_now(r->w)) {
        remote_return(r);
    }
    r->process_ns = INT64_MAX;
    if (r->processes) {
        r->process_ns = processes_run(r->processes);
    }
    if (p->runs) {
        p->link.allowance =
            world_chance(r->w, 300) ? 1 + hk_rand_below(&r->w->rand, 3) : UINT32_MAX;
        r->agent_ns = agent_run(r->agent);
        r->process_ns = processes_run(r->processes);
    }
}

/* ---- what happens to it ---- */

void remote_server_up(struct remote *r)
{
    struct part *p = remote_part(r);

    if (p->runs && r->state != REMOTE_CUT) {
        link_connect(&p->link, rest_port(r->w->rest));
    }
    remote_note_connection(r);
}

void remote_server_down(struct remote *r)
{
    struct part *p = remote_part(r);

    if (p->runs && link_is_connected(&p->link)) {
        link_disconnect(&p->link, 0);
    }
    remote_note_connection(r);
}

static void remote_cut(struct remote *r)
{
    struct part *p = remote_part(r);
    const uint32_t silent_ms = world_chance(r->w, 500) ? 20000 : 0;

    trace_add(&r->w->trace, r->name, "is cut off%s", silent_ms > 0 ? " silently" : "");
    r->state = REMOTE_CUT;
    if (link_is_connected(&p->link)) {
        link_disconnect(&p->link, silent_ms);
    }
    remote_note_connection(r);
}

static void remote_kill(struct remote *r, bool machine)
{
    trace_add(&r->w->trace, r->name, "%s", machine ? "loses its power" : "loses its agent");
    remote_end(r);
    r->state = machine ? REMOTE_OFF : REMOTE_NO_AGENT;
    if (machine) {
        processes_free(r->processes);
        r->processes = NULL;
    }
}

void remote_strike(struct remote *r)
{
    if (r->state != REMOTE_UP) {
        return;
    }
    switch (hk_rand_below(&r->w->rand, 4)) {
    case 0:
        remote_kill(r, true);
        break;
    case 1:
        remote_kill(r, false);
        break;
    default:
        remote_cut(r);
        break;
    }
    r->back_ns = world_now(r->w) + (world_chance(r->w, 300) ? world_between(r->w, 0, 5)
                                                            : world_between(r->w, 10, 150)) *
                                       WORLD_SECOND;
}

void remote_return(struct remote *r)
{
    const enum remote_state was = r->state;

    r->back_ns = INT64_MAX;
    r->given_up = false;
    if (was == REMOTE_UP) {
        return;
    }
    trace_add(&r->w->trace, r->name, "is back");
    r->state = REMOTE_UP;
    if (was == REMOTE_CUT && r->w->rest) {
        remote_server_up(r);
    } else if (was != REMOTE_CUT) {
        remote_start(r);
    }
}

void remote_calm(struct remote *r)
{
    struct part *p = remote_part(r);

    if (p->runs) {
        link_calm(&p->link);
    }
    if (r->state == REMOTE_UP) {
        return;
    }
    if (world_chance(r->w, 400)) {
        remote_return(r);
        return;
    }
    r->back_ns = INT64_MAX;
    r->given_up = world_chance(r->w, 600);
    trace_add(&r->w->trace, r->name, "stays away%s", r->given_up ? ", and is given up" : "");
}

/* ---- beginning and end ---- */

struct remote *remote_new(struct world *w, uint32_t nth)
{
    struct remote *r = hk_zalloc(sizeof(*r));
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    *r = (struct remote){.w = w,
                         .nth = nth,
                         .back_ns = INT64_MAX,
                         .since_ns = INT64_MAX,
                         .agent_ns = INT64_MAX,
                         .process_ns = INT64_MAX};
    snprintf(r->name, sizeof(r->name), "remote-%u", nth + 1);
    snprintf(r->dir, sizeof(r->dir), "%s/hekla-world-XXXXXX", tmp);
    if (!mkdtemp(r->dir)) {
        perror(r->dir);
        abort();
    }
    world_clock_init(&r->clock, w,
                     w->server_clock.offset_ns + world_between(w, -900, 900) * WORLD_SECOND);
    return r;
}

static int remote_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return remove(path);
}

void remote_free(struct remote *r)
{
    if (r) {
        remote_end(r);
        processes_free(r->processes);
        nftw(r->dir, remote_remove, 8, FTW_DEPTH | FTW_PHYS);
        hk_free(r);
    }
}
