// SPDX-License-Identifier: Apache-2.0
// Resource scores, a block of nodes at a time: amounts are loaded into arrays of doubles, then each
// score is a loop without branches that the compiler can vectorize.
//
// The doubles are exact. Amounts up to 2^46 (64 TiB, or 70 billion cores) times 100 stay below
// 2^53. The quotient q of two such integers, at most 100, has an error of at most 2^-47, but is at
// least 2^-46 away from the next integer unless it is one: truncating it gives the integer
// quotient. A block with a larger amount, or with a node that lacks a resource, is computed node by
// node.
#include "scheduler/plugins/resources.h"

#include <math.h>

enum { BLOCK = 64, CPU = 0, MEM = 1, GPU = 2, NRES = 3 };

#define EXACT_BITS 46
#define INLINE __attribute__((always_inline)) /* into both vector widths below */
/* Fewer nodes than this (often the one just used) do not use blocks. */
#define FEW 8

/* The task's requests and the columns to use. */
struct ask {
    const struct resource_weights *w;
    const int64_t *cap[NRES], *used[NRES], *nz[2];
    int64_t req[NRES], nz_req[2];
    uint32_t nres; /* dimensions in the balance: 2, or 3 with GPUs */
    bool balanced;
};

struct block {
    double cap[NRES][BLOCK], used[NRES][BLOCK], nz[2][BLOCK];
    double score[BLOCK];
};

/* ---- one node, integers ---- */

static int64_t least_one(int64_t req, int64_t cap)
{
    return req > cap ? 0 : (cap - req) * 100 / cap;
}

static int64_t most_one(int64_t req, int64_t cap)
{
    return HK_MIN(req, cap) * 100 / cap;
}

static int64_t average(const struct ask *a, uint32_t n, int64_t (*one)(int64_t, int64_t))
{
    int64_t sum = 0, count = 0;

    for (uint32_t r = 0; r < 2; r++) {
        if (a->cap[r][n] > 0) {
            sum += one(a->nz[r][n] + a->nz_req[r], a->cap[r][n]);
            count++;
        }
    }
    return count == 0 ? 0 : sum / count;
}

static int64_t balance_one(const struct ask *a, uint32_t n, bool with)
{
    double f[NRES], sum = 0, std = 0;
    uint32_t count = 0;

    for (uint32_t r = 0; r < a->nres; r++) {
        if (a->cap[r][n] > 0) {
            f[count] =
                fmin(1, (double)(a->used[r][n] + (with ? a->req[r] : 0)) / (double)a->cap[r][n]);
            sum += f[count++];
        }
    }
    if (count == 2) {
        std = fabs((f[0] - f[1]) / 2);
    } else if (count == 3) {
        const double mean = sum / 3;
        std = sqrt(((f[0] - mean) * (f[0] - mean) + (f[1] - mean) * (f[1] - mean) +
                    (f[2] - mean) * (f[2] - mean)) /
                   3);
    }
    return (int64_t)((1 - std) * 100);
}

static double score_one(const struct ask *a, uint32_t n)
{
    int64_t score = 0;

    if (a->w->least != 0) {
        score += a->w->least * average(a, n, least_one);
    }
    if (a->w->most != 0) {
        score += a->w->most * average(a, n, most_one);
    }
    if (a->balanced) {
        score +=
            a->w->balanced * (50 + (50 + balance_one(a, n, true) - balance_one(a, n, false)) / 2);
    }
    return (double)score;
}

/* ---- a block of nodes, doubles ---- */

/* Lanes after the last node are computed and ignored; they must not divide by zero. */
static void block_clear(struct block *b)
{
    *b = (struct block){0};
    for (uint32_t r = 0; r < NRES; r++) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            b->cap[r][i] = 1;
        }
    }
}

/* Exact for 0 <= v < 2^52, and one instruction per lane, unlike an integer conversion. */
static inline INLINE double as_double(int64_t v)
{
    const uint64_t bits = (uint64_t)v | 0x4330000000000000; /* 2^52 + v as a double */
    double d;

    memcpy(&d, &bits, sizeof(d));
    return d - 4503599627370496.0;
}

/* Fetches from[row] + add for each node; returns the OR of all values. Node rows are mostly
 * contiguous. */
static inline INLINE uint64_t resources_fetch_column(const int64_t *from, int64_t add,
                                                     const node_id *nodes, uint32_t n,
                                                     bool in_a_row, double *to)
{
    uint64_t seen = 0;

    if (in_a_row) {
        from += nodes[0].i;
        for (uint32_t i = 0; i < n; i++) {
            seen |= (uint64_t)(from[i] + add);
            to[i] = as_double(from[i] + add);
        }
        return seen;
    }
    for (uint32_t i = 0; i < n; i++) {
        const int64_t v = from[nodes[i].i] + add;
        seen |= (uint64_t)v;
        to[i] = as_double(v);
    }
    return seen;
}

static inline INLINE bool offers_none(const double *cap, uint32_t n)
{
    bool none = false;

    for (uint32_t i = 0; i < n; i++) {
        none |= cap[i] == 0;
    }
    return none;
}

/* False when an amount is out of range for the loops below. */
static inline INLINE bool block_load(struct block *b, const struct ask *a, const node_id *nodes,
                                     uint32_t n)
{
    const bool in_a_row = nodes[n - 1].i - nodes[0].i == n - 1;
    uint64_t seen = 0;
    bool none = false;

    for (uint32_t r = 0; r < a->nres; r++) {
        seen |= resources_fetch_column(a->cap[r], 0, nodes, n, in_a_row, b->cap[r]);
        seen |= resources_fetch_column(a->used[r], 0, nodes, n, in_a_row, b->used[r]);
        seen |= (uint64_t)a->req[r];
        none |= offers_none(b->cap[r], n);
    }
    for (uint32_t r = 0; r < 2; r++) {
        seen |= resources_fetch_column(a->nz[r], a->nz_req[r], nodes, n, in_a_row, b->nz[r]);
    }
    return seen >> EXACT_BITS == 0 && !none;
}

static inline INLINE int32_t least_part(double req, double cap)
{
    return (int32_t)((cap - (req > cap ? cap : req)) * 100 / cap);
}

static inline INLINE int32_t most_part(double req, double cap)
{
    return (int32_t)((req > cap ? cap : req) * 100 / cap);
}

static inline INLINE double resources_used_fraction(double used, double cap)
{
    const double f = used / cap;
    return f > 1 ? 1 : f;
}

static inline INLINE int32_t balance2(double f0, double f1)
{
    return (int32_t)((1 - fabs((f0 - f1) / 2)) * 100);
}

static inline INLINE int32_t balance3(double f0, double f1, double f2)
{
    const double mean = (f0 + f1 + f2) / 3;
    const double sum =
        (f0 - mean) * (f0 - mean) + (f1 - mean) * (f1 - mean) + (f2 - mean) * (f2 - mean);
    return (int32_t)((1 - sqrt(sum / 3)) * 100);
}

/* Integer mean, rounded down as upstream. */
static inline INLINE int32_t middle(int32_t a, int32_t b)
{
    return (a + b) / 2;
}

/* How the task changes the balance: 50 points or more for better, fewer for worse. */
static inline INLINE int32_t shift(int32_t without, int32_t with)
{
    return 50 + (50 + with - without) / 2;
}

static inline INLINE void block_least(struct block *b, double weight)
{
    for (uint32_t i = 0; i < BLOCK; i++) {
        b->score[i] += weight * middle(least_part(b->nz[CPU][i], b->cap[CPU][i]),
                                       least_part(b->nz[MEM][i], b->cap[MEM][i]));
    }
}

static inline INLINE void block_most(struct block *b, double weight)
{
    for (uint32_t i = 0; i < BLOCK; i++) {
        b->score[i] += weight * middle(most_part(b->nz[CPU][i], b->cap[CPU][i]),
                                       most_part(b->nz[MEM][i], b->cap[MEM][i]));
    }
}

static inline INLINE void block_balanced2(struct block *b, double cpu, double mem, double weight)
{
    for (uint32_t i = 0; i < BLOCK; i++) {
        const double c = b->cap[CPU][i], m = b->cap[MEM][i];
        const int32_t without = balance2(resources_used_fraction(b->used[CPU][i], c),
                                         resources_used_fraction(b->used[MEM][i], m));
        const int32_t with = balance2(resources_used_fraction(b->used[CPU][i] + cpu, c),
                                      resources_used_fraction(b->used[MEM][i] + mem, m));
        b->score[i] += weight * shift(without, with);
    }
}

static inline INLINE void block_balanced3(struct block *b, double cpu, double mem, double gpu,
                                          double weight)
{
    for (uint32_t i = 0; i < BLOCK; i++) {
        const double c = b->cap[CPU][i], m = b->cap[MEM][i], g = b->cap[GPU][i];
        const int32_t without = balance3(resources_used_fraction(b->used[CPU][i], c),
                                         resources_used_fraction(b->used[MEM][i], m),
                                         resources_used_fraction(b->used[GPU][i], g));
        const int32_t with = balance3(resources_used_fraction(b->used[CPU][i] + cpu, c),
                                      resources_used_fraction(b->used[MEM][i] + mem, m),
                                      resources_used_fraction(b->used[GPU][i] + gpu, g));
        b->score[i] += weight * shift(without, with);
    }
}

/* Adds the scores of up to BLOCK nodes; false when amounts are out of range. */
static inline INLINE bool block_score(struct block *b, const struct ask *a, const node_id *nodes,
                                      uint32_t n, double *score)
{
    if (!block_load(b, a, nodes, n)) {
        return false;
    }
    memset(b->score, 0, sizeof(b->score));
    if (a->w->least != 0) {
        block_least(b, (double)a->w->least);
    }
    if (a->w->most != 0) {
        block_most(b, (double)a->w->most);
    }
    if (a->balanced && a->nres == 2) {
        block_balanced2(b, (double)a->req[CPU], (double)a->req[MEM], (double)a->w->balanced);
    } else if (a->balanced) {
        block_balanced3(b, (double)a->req[CPU], (double)a->req[MEM], (double)a->req[GPU],
                        (double)a->w->balanced);
    }
    for (uint32_t i = 0; i < n; i++) {
        score[i] += b->score[i];
    }
    return true;
}

/* Both widths use the same arithmetic, so their results are identical. */
#ifdef HK_AVX2
HK_AVX2 static bool block_score_avx2(struct block *b, const struct ask *a, const node_id *nodes,
                                     uint32_t n, double *score)
{
    return block_score(b, a, nodes, n, score);
}

static bool block_score_any(struct block *b, const struct ask *a, const node_id *nodes, uint32_t n,
                            double *score)
{
    return __builtin_cpu_supports("avx2") ? block_score_avx2(b, a, nodes, n, score)
                                          : block_score(b, a, nodes, n, score);
}
#else
#define block_score_any block_score
#endif

/* ---- entry ---- */

static struct ask ask_for(const struct model *m, const struct shape *s,
                          const struct resource_weights *w)
{
    const struct node_table *t = &m->nodes;
    const int64_t gpus = w->gpu == HK_NONE ? 0 : shape_req(s, w->gpu);
    struct ask a = {
        .w = w,
        .cap = {t->kalloc.col[DIM_CPU], t->kalloc.col[DIM_MEM]},
        .used = {t->kused.col[DIM_CPU], t->kused.col[DIM_MEM]},
        .nz = {t->nz_cpu, t->nz_mem},
        .req = {shape_req(s, DIM_CPU), shape_req(s, DIM_MEM), gpus},
        .nz_req = {s->nz_cpu, s->nz_mem},
        .nres = 2,
    };

    /* A scalar resource that the pod does not request is not part of the balance. */
    if (gpus > 0) {
        a.cap[GPU] = t->kalloc.col[w->gpu];
        a.used[GPU] = t->kused.col[w->gpu];
        a.nres = 3;
    }
    a.balanced = w->balanced != 0 && a.req[CPU] + a.req[MEM] + gpus > 0;
    return a;
}

static void score_each(const struct ask *a, const node_id *nodes, uint32_t n, double *score)
{
    for (uint32_t i = 0; i < n; i++) {
        score[i] += score_one(a, nodes[i].i);
    }
}

void resources_score(const struct model *m, const struct shape *s, const struct resource_weights *w,
                     const node_id *nodes, uint32_t n, double *score)
{
    const struct ask a = ask_for(m, s, w);
    struct block b;

    if (n < FEW) {
        score_each(&a, nodes, n, score);
        return;
    }
    block_clear(&b);
    for (uint32_t from = 0; from < n; from += BLOCK) {
        const uint32_t len = HK_MIN(n - from, (uint32_t)BLOCK);
        if (!block_score_any(&b, &a, nodes + from, len, score + from)) {
            score_each(&a, nodes + from, len, score + from);
            block_clear(&b);
        }
    }
}
