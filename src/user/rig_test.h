// SPDX-License-Identifier: Apache-2.0
// A user of a cluster in memory: the port for tests under a real loop, whose timers play what others
// do meanwhile, and what the code under test prints.
#pragma once

#include "api/port_mem.h"
#include "base/file.h"
#include "cli/capture_test.h"
#include "codec/yaml.h"
#include "user/user.h"

#define MS_NS ((int64_t)1000 * 1000)

enum { RIG_EVENTS_MAX = 4 };

struct rig;

/* Something that happens while the code under test waits. */
struct rig_event {
    struct rig *rig;
    struct net_timer *timer;
    void (*fn)(struct rig *g);
};

struct rig {
    struct port_mem *mem;
    struct user user; /* in namespace "d" */
    struct hk_err err;
    struct rig_event events[RIG_EVENTS_MAX];
    uint32_t nevents;
    struct capture printed;
};

static inline int rig_setup(void **state)
{
    struct rig *g = hk_zalloc(sizeof(*g));

    g->mem = port_mem_new(hk_clock_system()->wall_ns(hk_clock_system()));
    g->user.ask.loop = net_loop_new(hk_clock_system());
    g->user.ask.port = port_mem_port(g->mem);
    g->user.ns = "d";
    *state = g;
    return 0;
}

static inline int rig_teardown(void **state)
{
    struct rig *g = *state;

    capture_end(&g->printed);
    for (uint32_t i = 0; i < g->nevents; i++) {
        net_timer_free(g->events[i].timer);
    }
    user_close(&g->user);
    hk_free(g);
    return 0;
}

/* Creates or replaces the objects of the YAML documents, as others would. */
static inline void rig_put(struct rig *g, const char *text)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct yaml_docs docs = {0};

    if (yaml_parse(hk_str(text), 0, &mem, &docs, &g->err) < 0) {
        fail_msg("%s in\n%s", g->err.text, text);
    }
    for (uint32_t i = 0; i < docs.len; i++) {
        if (port_mem_put(g->mem, &docs.at[i], &g->err) < 0) {
            fail_msg("%s", g->err.text);
        }
    }
}

static inline void rig_remove(struct rig *g, enum api_kind_id kind, const char *name)
{
    const struct api_kind *k = api_kind(kind);

    assert_true(port_mem_remove(g->mem, k, hk_str(k->namespaced ? g->user.ns : ""), hk_str(name)));
}

static inline void rig_on_time(void *ctx)
{
    struct rig_event *e = ctx;

    e->fn(e->rig);
}

/* fn happens after that time, if the code under test still waits then. */
static inline void rig_later(struct rig *g, int ms, void (*fn)(struct rig *g))
{
    assert_true(g->nevents < RIG_EVENTS_MAX);
    struct rig_event *e = &g->events[g->nevents++];

    *e = (struct rig_event){.rig = g, .fn = fn};
    e->timer = net_timer_new(g->user.ask.loop, rig_on_time, e);
    net_timer_at(e->timer, net_loop_now_ns(g->user.ask.loop) + ms * MS_NS);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
