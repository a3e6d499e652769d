// SPDX-License-Identifier: Apache-2.0
// What a seed brings along: how large the world is, how much goes wrong in it, and clocks that people
// set.
#include "world/world.h"

static const char *const world_confs[] = {
    NULL,
    NULL,
    "actions: \"enqueue, allocate, backfill\"\n"
    "tiers:\n"
    "- plugins: [{name: priority}, {name: gang}, {name: conformance}]\n"
    "- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]\n",
    "actions: \"enqueue, allocate, preempt, backfill\"\n"
    "tiers:\n"
    "- plugins: [{name: priority}, {name: gang}, {name: conformance}]\n"
    "- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, "
    "{name: nodeorder}, {name: binpack}]\n",
    "actions: \"enqueue, allocate, preempt, reclaim, backfill\"\n"
    "tiers:\n"
    "- plugins: [{name: priority}, {name: gang}, {name: conformance}]\n"
    "- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, "
    "{name: nodeorder}]\n",
    "actions: \"enqueue, reclaim, allocate, backfill, preempt\"\n"
    "tiers:\n"
    "- plugins: [{name: priority}, {name: gang}, {name: conformance}]\n"
    "- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]\n",
};

void world_draw(struct world *w)
{
    static const uint32_t faults[] = {0, 5, 20, 100}, cuts[] = {0, 0, 2, 20}, slow[] = {0, 5, 50};
    static const uint32_t rings[] = {40, 200, 2000};
    struct world_weather *o = &w->weather;

    o->nodes = (uint32_t)world_between(w, 2, 5);
    o->cpus = 4;
    o->jobs = (uint32_t)world_between(w, 1, 6);
    o->faults = faults[hk_rand_below(&w->rand, HK_LEN(faults))];
    o->cut = cuts[hk_rand_below(&w->rand, HK_LEN(cuts))];
    o->slow = slow[hk_rand_below(&w->rand, HK_LEN(slow))];
    o->shuffle = world_chance(w, 700);
    o->crashes = world_chance(w, 500) ? hk_rand_below(&w->rand, 4) : 0;
    o->kills = world_chance(w, 500) ? hk_rand_below(&w->rand, 4) : 0;
    o->disk_fails = world_chance(w, 300) ? 1 + hk_rand_below(&w->rand, 2) : 0;
    o->ring = rings[hk_rand_below(&w->rand, HK_LEN(rings))];
    o->chaos_ns = world_between(w, 20, 150) * WORLD_SECOND;
    o->conf = world_confs[hk_rand_below(&w->rand, HK_LEN(world_confs))];
    o->remotes = world_chance(w, 300) ? 1 + hk_rand_below(&w->rand, WORLD_REMOTES) : 0;
    o->node_faults = o->remotes > 0 ? hk_rand_below(&w->rand, 5) : 0;
    o->jumps = world_chance(w, 300) ? 1 + hk_rand_below(&w->rand, 10) : 0;
    o->weights = o->conf && strstr(o->conf, "capacity");
    if (w->breach == BREACH_SYNC) {
        o->kills = 3;
    }
    o->peaceful = o->faults + o->cut + o->slow + o->crashes + o->kills + o->disk_fails +
                      o->node_faults + o->jumps ==
                  0;
}

/* ---- clocks ---- */

static int64_t world_clock_mono(struct hk_clock *c)
{
    return ((struct world_clock *)c)->mono->now_ns;
}

static int64_t world_clock_wall(struct hk_clock *c)
{
    return world_clock_mono(c) + ((struct world_clock *)c)->offset_ns;
}

void world_clock_init(struct world_clock *c, const struct world *w, int64_t offset_ns)
{
    *c = (struct world_clock){.clock = {.wall_ns = world_clock_wall, .mono_ns = world_clock_mono},
                              .mono = &w->clock,
                              .offset_ns = offset_ns};
}

void world_jump(struct world *w)
{
    const uint32_t which = hk_rand_below(&w->rand, 1 + w->weather.remotes);
    struct world_clock *c = which == 0 ? &w->server_clock : remote_clock(w->remotes[which - 1]);
    const int64_t by_s =
        world_chance(w, 500) ? world_between(w, 1, 60) : world_between(w, 60, 4 * 3600);
    const bool back = world_chance(w, 500);

    w->weather.jumps--;
    c->offset_ns += (back ? -by_s : by_s) * WORLD_SECOND;
    trace_add(&w->trace, "world", "the clock of %s goes %s by %lld s",
              which == 0 ? "the server" : remote_name(w->remotes[which - 1]),
              back ? "back" : "ahead", (long long)by_s);
    w->jump_ns =
        w->weather.jumps > 0 ? world_now(w) + world_between(w, 1, 60) * WORLD_SECOND : INT64_MAX;
}
