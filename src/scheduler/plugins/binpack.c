// SPDX-License-Identifier: Apache-2.0
// binpack: prefers nodes that would be fullest, so that others stay empty. The score is the
// weighted mean of how full each requested resource would get, and 0 if one would overflow.

#include "scheduler/session.h"

#include <math.h>

struct binpack {
    int64_t weight, cpu, memory;
    struct hk_str resources;
    struct opt_pairs weights;

    double of[DIM_MAX]; /* weight by dimension, 0 when not listed */
};

static const struct opt binpack_opts[] = {
    OPT(OPT_INT, struct binpack, weight, "binpack.weight", "1",
        "how much the whole score counts; 0 turns it off"),
    OPT(OPT_INT, struct binpack, cpu, "binpack.cpu", "1", "weight of cpu"),
    OPT(OPT_INT, struct binpack, memory, "binpack.memory", "1", "weight of memory"),
    OPT(OPT_STR, struct binpack, resources, "binpack.resources", NULL,
        "further resources to look at, separated by commas"),
    OPT(OPT_PAIRS, struct binpack, weights, "binpack.resources.", NULL,
        "weight of a resource listed there, 1 when unset"),
};

static void set_weight(struct binpack *b, uint32_t dim, int64_t w)
{
    b->of[dim] = w < 0 ? 1 : (double)w;
}

static int64_t binpack_resource_weight(const struct binpack *b, struct hk_str name)
{
    for (uint32_t i = 0; i < b->weights.n; i++) {
        if (hk_str_eq(b->weights.at[i].name, name)) {
            return b->weights.at[i].v;
        }
    }
    return 1;
}

static void binpack_open(struct session *ssn, void *self)
{
    struct binpack *b = self;
    struct hk_str rest = b->resources, name;

    while (hk_str_cut(&rest, ',', &name)) {
        name = hk_str_trim(name);
        const uint32_t dim = dims_find(&ssn->m->dims, name);
        if (dim != HK_NONE) { /* otherwise no pod requests it and no node has it */
            set_weight(b, dim, binpack_resource_weight(b, name));
        }
    }
    set_weight(b, DIM_CPU, b->cpu);
    set_weight(b, DIM_MEM, b->memory);
}

/* Adds the term of one resource; a node without room for it scores 0 in the end. */
static void add_term(const struct node_table *nodes, const node_id *at, uint32_t n, uint32_t dim,
                     int64_t req, double weight, double *sum)
{
    const int64_t *used = nodes->used.col[dim], *alloc = nodes->alloc.col[dim];

    for (uint32_t i = 0; i < n; i++) {
        const int64_t cap = alloc[at[i].i], full = used[at[i].i] + req;
        const double term = (double)full * weight / (double)(cap == 0 ? 1 : cap);
        sum[i] += cap == 0 ? 0 : full > cap ? -INFINITY : term;
    }
}

enum { BLOCK = 256 };

static int binpack_score(struct session *ssn, void *self, task_id t, const node_id *nodes,
                         uint32_t n, double *score)
{
    const struct binpack *b = self;
    const struct shape *s = task_shape(ssn->m, t);
    const double scale = 100 * (double)b->weight;
    double sum[BLOCK], total = 0;

    for (uint32_t k = 0; k < s->nreq; k++) {
        total += b->of[s->req[k].dim];
    }
    for (uint32_t from = 0; total > 0 && from < n; from += BLOCK) {
        const uint32_t len = HK_MIN(n - from, (uint32_t)BLOCK);
        memset(sum, 0, len * sizeof(sum[0]));
        for (uint32_t k = 0; k < s->nreq; k++) {
            const struct amount *r = &s->req[k];
            if (b->of[r->dim] > 0) {
                add_term(&ssn->m->nodes, nodes + from, len, r->dim, r->v, b->of[r->dim], sum);
            }
        }
        for (uint32_t i = 0; i < len; i++) {
            score[from + i] += sum[i] < 0 ? 0 : sum[i] / total * scale;
        }
    }
    return 0;
}

/* The score depends on the node alone. */
static bool binpack_score_local(struct session *ssn, void *self, task_id t)
{
    return true;
}

const struct plugin plugin_binpack = {
    .name = "binpack",
    .about = "prefer the nodes that are fullest already",
    .state_size = sizeof(struct binpack),
    .opts = binpack_opts,
    .nopt = HK_LEN(binpack_opts),
    .open = binpack_open,
    .score = binpack_score,
    .score_local = binpack_score_local,
};
