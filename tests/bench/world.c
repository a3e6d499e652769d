// SPDX-License-Identifier: Apache-2.0
// Builds clusters in the model for tests: names, sizes and constraints without API objects.
#include "bench/world.h"

#include <stdio.h>

void world_init(struct world *w)
{
    struct hk_err err = {0};

    *w = (struct world){.clock_ns = SECOND};
    model_init(&w->m);
    hk_assert(model_dim(&w->m, HK_STR("nvidia.com/gpu"), &w->gpu, &err) == 0);
    w->plain = model_ident_intern(&w->m, world_str(w, "default"), NULL, 0);
}

void world_fini(struct world *w)
{
    model_fini(&w->m);
}

int64_t world_tick(struct world *w)
{
    w->clock_ns += SECOND;
    return w->clock_ns;
}

uint32_t world_str(struct world *w, const char *fmt, ...)
{
    char text[128];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return hk_intern(&w->m.str, hk_str(text));
}

struct hk_str name_fmt(struct name *n, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(n->text, sizeof(n->text), fmt, ap);
    va_end(ap);
    return hk_str(n->text);
}

/* ---- nodes and queues ---- */

static int label_cmp(const void *a, const void *b)
{
    const struct label *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

node_id world_node(struct world *w, const struct world_node *d)
{
    const struct amount room[] = {
        {.dim = DIM_CPU, .v = d->size.cpu},
        {.dim = DIM_MEM, .v = d->size.mem},
        {.dim = DIM_PODS, .v = d->pods},
        {.dim = w->gpu, .v = d->size.gpu},
    };
    const uint32_t n = d->size.gpu ? 4 : 3;
    struct label labels[8];
    struct hk_err err = {0};
    node_id id;

    hk_assert(d->nlabel <= HK_LEN(labels));
    for (uint32_t k = 0; k < d->nlabel; k++) {
        labels[k] = d->labels[k];
    }
    qsort(labels, d->nlabel, sizeof(labels[0]), label_cmp);
    const struct node_desc desc = {.name = d->name,
                                   .creation_ns = world_tick(w),
                                   .alloc = room,
                                   .nalloc = n,
                                   .kalloc = room,
                                   .nkalloc = n,
                                   .labels = labels,
                                   .nlabel = d->nlabel,
                                   .taints = d->taints,
                                   .ntaint = d->ntaint,
                                   .flags = d->flags};
    hk_assert(model_node_put(&w->m, &desc, &id, &err) == 0);
    return id;
}

void world_queue(struct world *w, struct hk_str name, int32_t weight)
{
    model_queue_put(&w->m, &(struct queue_desc){.name = name,
                                                .weight = weight,
                                                .creation_ns = world_tick(w),
                                                .state = QUEUE_OPEN,
                                                .reclaimable = true});
}

struct rvec world_rvec(double cpu, double mem)
{
    struct rvec r;

    rvec_zero(&r);
    rvec_set(&r, DIM_CPU, cpu);
    rvec_set(&r, DIM_MEM, mem);
    return r;
}

/* ---- constraints ---- */

static struct label_req *reqs(struct hk_arena *a, uint32_t key, enum label_op op, uint32_t val)
{
    struct label_req *r = hk_arena_zalloc(a, sizeof(*r));
    uint32_t *v = hk_arena_zalloc(a, sizeof(*v));

    *v = val;
    r->key = key;
    r->op = (uint8_t)op;
    r->n = op == OP_IN || op == OP_NOT_IN;
    r->vals = v;
    return r;
}

static struct label_sel picks(struct hk_arena *a, uint32_t key, uint32_t val)
{
    return (struct label_sel){.n = 1, .at = reqs(a, key, OP_IN, val)};
}

static const struct node_term *node_terms(struct hk_arena *a, const struct wish_req *at, uint32_t n)
{
    struct node_term *t = hk_arena_zalloc(a, (n + 1) * sizeof(*t));

    for (uint32_t k = 0; k < n; k++) {
        t[k].nreq = 1;
        t[k].req = reqs(a, at[k].key, at[k].op, at[k].val);
        t[k].weight = at[k].weight;
    }
    return t;
}

static const struct pod_term *pod_terms(struct hk_arena *a, const uint32_t *ns,
                                        const struct wish_term *at, uint32_t n)
{
    struct pod_term *t = hk_arena_zalloc(a, (n + 1) * sizeof(*t));

    for (uint32_t k = 0; k < n; k++) {
        t[k].sel = picks(a, at[k].key, at[k].val);
        t[k].topo_key = at[k].topo_key;
        t[k].nns = 1;
        t[k].ns = ns;
        t[k].ns_sel.nothing = true;
        t[k].weight = at[k].weight;
    }
    return t;
}

static const struct spread *spreads(struct hk_arena *a, const struct wish_spread *at, uint32_t n)
{
    struct spread *s = hk_arena_zalloc(a, (n + 1) * sizeof(*s));

    for (uint32_t k = 0; k < n; k++) {
        s[k].topo_key = at[k].topo_key;
        s[k].max_skew = at[k].max_skew;
        s[k].min_domains = at[k].min_domains;
        s[k].hard = at[k].hard;
        s[k].honor_affinity = at[k].honor_affinity;
        s[k].honor_taints = at[k].honor_taints;
        s[k].sel = picks(a, at[k].key, at[k].val);
    }
    return s;
}

static const struct toleration *tolerations(struct hk_arena *a, const struct wish_tol *at,
                                            uint32_t n)
{
    struct toleration *t = hk_arena_zalloc(a, (n + 1) * sizeof(*t));

    for (uint32_t k = 0; k < n; k++) {
        t[k].key = at[k].key;
        t[k].val = at[k].val;
        t[k].exists = (uint8_t)at[k].exists;
        t[k].any_effect = (uint8_t)at[k].any_effect;
        t[k].effect = (uint8_t)at[k].effect;
    }
    return t;
}

static const struct host_port *ports(struct hk_arena *a, uint32_t any_ip, const uint32_t *at,
                                     uint32_t n)
{
    struct host_port *p = hk_arena_zalloc(a, (n + 1) * sizeof(*p));

    for (uint32_t k = 0; k < n; k++) {
        p[k].ip = any_ip;
        p[k].port = (uint16_t)at[k];
    }
    return p;
}

cons_id world_cons(struct world *w, const struct wish *wish)
{
    struct hk_arena mem = {0}, *a = &mem;
    struct cons *c = hk_arena_zalloc(a, sizeof(*c));
    struct wish *own = hk_arena_alloc(a, sizeof(*own));

    memcpy(own, wish, sizeof(*own));
    c->key = own;
    c->key_len = sizeof(*own);
    c->nsel = own->nsel;
    c->sel = own->sel;
    c->has_terms = own->nterm > 0;
    c->nterm = own->nterm;
    c->term = node_terms(a, own->term, own->nterm);
    c->npref = own->npref;
    c->pref = node_terms(a, own->pref, own->npref);
    c->ntol = own->ntol;
    c->tol = tolerations(a, own->tol, own->ntol);
    c->nport = own->nport;
    c->port = ports(a, world_str(w, "0.0.0.0"), own->port, own->nport);
    c->naff = own->naff;
    c->aff = pod_terms(a, &own->ns, own->aff, own->naff);
    c->nanti = own->nanti;
    c->anti = pod_terms(a, &own->ns, own->anti, own->nanti);
    c->npref_aff = own->npref_aff;
    c->pref_aff = pod_terms(a, &own->ns, own->pref_aff, own->npref_aff);
    c->npref_anti = own->npref_anti;
    c->pref_anti = pod_terms(a, &own->ns, own->pref_anti, own->npref_anti);
    c->nspread = own->nspread;
    c->spread = spreads(a, own->spread, own->nspread);
    c->mem = mem;
    return model_cons_intern(&w->m, c);
}

shape_id world_shape(struct world *w, struct size size, cons_id cons)
{
    const struct amount req[] = {
        {.dim = DIM_CPU, .v = size.cpu},
        {.dim = DIM_MEM, .v = size.mem},
        {.dim = DIM_PODS, .v = 1},
        {.dim = w->gpu, .v = size.gpu},
    };

    /* What Kubernetes' scores assume of a pod that asks for nothing: 100m and 200 MB. */
    return model_shape_intern(&w->m, &(struct shape_desc){.req = req,
                                                          .nreq = HK_LEN(req),
                                                          .nz_cpu = size.cpu ? size.cpu : 100,
                                                          .nz_mem = size.mem ? size.mem : 200 * MI,
                                                          .cons = cons});
}
