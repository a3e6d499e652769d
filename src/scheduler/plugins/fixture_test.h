// SPDX-License-Identifier: Apache-2.0
// For unit tests: a plugin on its own, with a bare session around a model.
#pragma once

#include "scheduler/model/fixture_test.h"
#include "scheduler/session.h"

#include <stdlib.h>

struct fx_plugin {
    const struct plugin *p;
    void *self;
    struct model m;
    struct hk_arena mem;
    struct session ssn;
};

static inline void fx_set(struct fx_plugin *f, const char *key, const char *val)
{
    for (uint32_t k = 0; k < f->p->nopt; k++) {
        const struct opt *o = &f->p->opts[k];
        char *at = (char *)f->self + o->offset;
        if (strcmp(o->key, key) != 0) {
            continue;
        }
        if (o->type == OPT_BOOL) {
            *(bool *)at = strcmp(val, "true") == 0;
        } else if (o->type == OPT_INT) {
            *(int64_t *)at = strtoll(val, NULL, 10);
        }
    }
}

/* Options at their defaults; change them with fx_set, then call the plugin's open. */
static inline void fx_plugin_init(struct fx_plugin *f, const struct plugin *p)
{
    *f = (struct fx_plugin){.p = p, .self = hk_zalloc(p->state_size + 1)};
    model_init(&f->m);
    f->ssn = (struct session){.m = &f->m, .mem = &f->mem};
    for (uint32_t k = 0; k < p->nopt; k++) {
        fx_set(f, p->opts[k].key, p->opts[k].dflt ? p->opts[k].dflt : "");
    }
}

static inline void fx_plugin_fini(struct fx_plugin *f)
{
    model_fini(&f->m);
    hk_arena_fini(&f->mem);
    hk_free(f->self);
}

/* For a test's set-up and tear-down, with the plugin as its state. */
static inline struct fx_plugin *fx_plugin_new(const struct plugin *p)
{
    struct fx_plugin *f = hk_alloc(sizeof(*f));

    fx_plugin_init(f, p);
    return f;
}

static inline int fx_plugin_tear_down(void **state)
{
    fx_plugin_fini(*state);
    hk_free(*state);
    return 0;
}

static inline node_id put_node(struct fx_plugin *f, const char *name, const char *labels)
{
    return fx_node(&f->m, (struct fx_node){.name = name, .labels = labels, .pods = 110});
}

static inline task_id put_pod(struct fx_plugin *f, const char *name, const char *labels,
                              const char *node, const cons_id *c)
{
    return fx_pod(&f->m, (struct fx_pod){.name = name, .labels = labels, .node = node, .cons = c});
}
