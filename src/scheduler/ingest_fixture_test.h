// SPDX-License-Identifier: Apache-2.0
// For the tests of ingest: a model filled from manifests, and short ways to its rows. The books are
// checked after every load.
#pragma once

#include "codec/yaml.h"
#include "scheduler/ingest_priv.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct world {
    struct model m;
    struct ingest *in;
    struct hk_arena text; /* parsed documents */
};

static inline void world_init(struct world *w, const struct ingest_opts *o)
{
    *w = (struct world){0};
    model_init(&w->m);
    w->in = ingest_new(&w->m, o);
}

static inline void world_fini(struct world *w)
{
    ingest_free(w->in);
    model_fini(&w->m);
    hk_arena_fini(&w->text);
}

static inline void check_books(const struct world *w)
{
    struct hk_err err = {0};

    if (model_check(&w->m, &err) < 0) {
        fail_msg("books: %s", err.text);
    }
}

static inline int put_one(void *ctx, const struct api_kind *kind, const struct json *obj,
                          struct hk_err *err)
{
    struct world *w = ctx;

    assert_non_null(kind);
    (void)ingest_put(w->in, kind, obj, "test.yaml", err);
    return 0;
}

/* Puts every object of the text, then settles. */
static inline void load(struct world *w, const char *yaml)
{
    struct yaml_docs docs = {0};
    struct hk_err err = {0};

    if (yaml_parse(hk_str(yaml), YAML_DUP_REJECT, &w->text, &docs, &err) < 0) {
        fail_msg("yaml: %s", err.text);
    }
    for (uint32_t k = 0; k < docs.len; k++) {
        if (api_list_each(&docs.at[k], put_one, w, &err) < 0) {
            fail_msg("list: %s", err.text);
        }
    }
    ingest_settle(w->in);
    model_settle(&w->m);
    check_books(w);
}

static inline void expect_no_problems(const struct world *w)
{
    uint32_t n;
    const struct ingest_problem *p = ingest_problems(w->in, &n);

    if (n > 0) {
        fail_msg("%s: line %u: %s", p->object, p->line, p->text);
    }
}

static inline void load_fine(struct world *w, const char *yaml)
{
    load(w, yaml);
    expect_no_problems(w);
}

static inline uint32_t id(struct world *w, const char *s)
{
    return hk_intern(&w->m.str, hk_str(s));
}

static inline const char *text(const struct world *w, uint32_t str)
{
    return model_str(&w->m, str).s;
}

static inline task_id task_at(struct world *w, const char *name)
{
    const task_id t = model_task_find(&w->m, HK_STR("default"), hk_str(name));

    if (id_none(t)) {
        fail_msg("no task '%s'", name);
    }
    return t;
}

static inline const struct task *task(struct world *w, const char *name)
{
    return model_task(&w->m, task_at(w, name));
}

static inline const struct cons *cons(struct world *w, const char *name)
{
    return task_cons(&w->m, task_at(w, name));
}

static inline const struct job *job(struct world *w, const char *name)
{
    const job_id j = model_job_find(&w->m, HK_STR("default"), hk_str(name));

    assert_false(id_none(j));
    return model_job(&w->m, j);
}

static inline int64_t request(struct world *w, const char *name, const char *resource)
{
    const uint32_t d = dims_find(&w->m.dims, hk_str(resource));

    return d == HK_NONE ? -1 : shape_req(task_shape(&w->m, task_at(w, name)), d);
}

/* A world of its own for each case. */
#define WORLD(w)                                                                                   \
    HK_AUTO(world_fini) struct world w;                                                            \
    world_init(&w, &(struct ingest_opts){.make_queues = true})

#define POD(name) "apiVersion: v1\nkind: Pod\nmetadata: {name: " name "}\n"
#define OURS "  schedulerName: volcano\n"
