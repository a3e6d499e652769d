// SPDX-License-Identifier: Apache-2.0
// For unit tests: a model in a few words. Labels are written "zone=a app=web"; a selector the same
// way.
#pragma once

#include "scheduler/model/topo.h"

#include <stdio.h>

static inline uint32_t fx_str(struct model *m, const char *s)
{
    return hk_intern(&m->str, hk_str(s));
}

static inline int fx_label_cmp(const void *a, const void *b)
{
    const struct label *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* Sorted by key id, as the model wants them. */
static inline uint32_t fx_labels(struct model *m, const char *text, struct label *ret, uint32_t max)
{
    struct hk_str rest = hk_str(text), word, key;
    uint32_t n = 0;

    while (hk_str_cut(&rest, ' ', &word)) {
        if (word.n == 0 || n == max) {
            continue;
        }
        hk_str_cut(&word, '=', &key);
        ret[n++] = (struct label){hk_intern(&m->str, key), word.s ? hk_intern(&m->str, word) : 0};
    }
    qsort(ret, n, sizeof(*ret), fx_label_cmp);
    return n;
}

struct fx_node {
    const char *name, *labels;
    int64_t cpu_milli, mem_bytes, pods;
    uint32_t extra_dim;
    int64_t extra; /* of that dimension */
    const struct taint *taints;
    uint32_t ntaint;
    const struct image_have *images;
    uint32_t nimage;
    unsigned flags;
};

static inline node_id fx_node(struct model *m, struct fx_node d)
{
    const struct amount a[] = {
        {DIM_CPU, d.cpu_milli}, {DIM_MEM, d.mem_bytes}, {DIM_PODS, d.pods}, {d.extra_dim, d.extra}};
    const uint32_t na = d.extra ? 4 : 3;
    struct hk_err err = {0};
    struct label l[16];
    node_id n = NO_NODE;
    const int rc = model_node_put(m,
                                  &(struct node_desc){.name = hk_str(d.name),
                                                      .alloc = a,
                                                      .nalloc = na,
                                                      .kalloc = a,
                                                      .nkalloc = na,
                                                      .labels = l,
                                                      .nlabel = fx_labels(m, d.labels, l, 16),
                                                      .taints = d.taints,
                                                      .ntaint = d.ntaint,
                                                      .images = d.images,
                                                      .nimage = d.nimage,
                                                      .flags = d.flags},
                                  &n, &err);

    hk_assert(rc == 0);
    return n;
}

/* A draft of constraints; fill in fields with memory from its arena, then fx_cons. */
static inline struct cons *fx_draft(void)
{
    struct hk_arena mem = {0};
    struct cons *c = hk_arena_zalloc(&mem, sizeof(*c));

    c->mem = mem;
    return c;
}

/* Every draft stays a cons of its own. */
static inline cons_id fx_cons(struct model *m, struct cons *c)
{
    c->key = hk_arena_printf(&c->mem, "%llu", (unsigned long long)++m->version);
    c->key_len = (uint32_t)strlen(c->key);
    return model_cons_intern(m, c);
}

static inline struct label_sel fx_sel(struct model *m, struct cons *c, const char *text)
{
    struct label l[16];
    const uint32_t n = fx_labels(m, text, l, 16);
    struct label_req *at = hk_arena_zalloc(&c->mem, n * sizeof(*at));

    for (uint32_t k = 0; k < n; k++) {
        uint32_t *val = hk_arena_alloc(&c->mem, sizeof(*val));
        *val = l[k].val;
        at[k] = (struct label_req){.key = l[k].key, .op = OP_IN, .n = 1, .vals = val};
    }
    return (struct label_sel){.n = n, .at = at};
}

/* A term on pods of the namespace "ns". */
static inline struct pod_term fx_term(struct model *m, struct cons *c, const char *sel,
                                      const char *key, int32_t weight)
{
    uint32_t *ns = hk_arena_alloc(&c->mem, sizeof(*ns));

    *ns = fx_str(m, "ns");
    return (struct pod_term){
        .sel = fx_sel(m, c, sel), .topo_key = fx_str(m, key), .nns = 1, .ns = ns, .weight = weight};
}

static inline struct pod_term *fx_terms(struct cons *c, uint32_t n, const struct pod_term *t)
{
    return memcpy(hk_arena_alloc(&c->mem, n * sizeof(*t)), t, n * sizeof(*t));
}

struct fx_pod {
    const char *name, *ns /* "ns" when NULL */, *labels;
    const char *node; /* NULL: pending */
    int64_t cpu_milli, mem_bytes;
    uint32_t extra_dim;
    int64_t extra;       /* of that dimension */
    const cons_id *cons; /* NULL: none */
    unsigned flags;
};

static inline task_id fx_pod(struct model *m, struct fx_pod d)
{
    const char *ns = d.ns ? d.ns : "ns";
    const struct amount req[] = {
        {DIM_CPU, d.cpu_milli}, {DIM_MEM, d.mem_bytes}, {DIM_PODS, 1}, {d.extra_dim, d.extra}};
    struct hk_err err = {0};
    struct label l[16];
    const uint32_t n = fx_labels(m, d.labels ? d.labels : "", l, 16);
    const ident_id ident = model_ident_intern(m, fx_str(m, ns), l, n);
    task_id t = NO_TASK;
    const int rc = model_task_put(
        m,
        &(struct task_desc){.ns = hk_str(ns),
                            .name = hk_str(d.name),
                            .uid = hk_str(d.name),
                            .node = d.node ? hk_str(d.node) : (struct hk_str){0},
                            .flags = d.flags,
                            .status = d.node ? TASK_RUNNING : TASK_PENDING,
                            .shape = model_shape_intern(
                                m, &(struct shape_desc){.req = req,
                                                        .nreq = d.extra ? 4 : 3,
                                                        .nz_cpu = d.cpu_milli,
                                                        .nz_mem = d.mem_bytes,
                                                        .cons = d.cons ? *d.cons : NO_CONS}),
                            .ident = ident,
                            .labels = ident_labels(m, ident)},
        &t, &err);

    hk_assert(rc == 0);
    return t;
}
