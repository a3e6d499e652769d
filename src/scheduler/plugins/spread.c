// SPDX-License-Identifier: Apache-2.0
// Pod topology spread: filter and score (docs/reference/plugins.md section 4.6).
#include "scheduler/plugins/spread.h"

#include <math.h>

bool spread_asked(const struct model *m, task_id t, bool hard)
{
    const struct cons *c = task_cons(m, t);

    for (uint32_t k = 0; c && k < c->nspread; k++) {
        if (c->spread[k].hard == hard) {
            return true;
        }
    }
    return false;
}

/* ---- filter ---- */

bool spread_begin(struct spread_filter *f, struct model *m, task_id t, struct hk_arena *mem)
{
    const struct cons *c = task_cons(m, t);
    const struct labels own = ident_labels(m, model_task(m, t)->ident);
    const struct topo_plan *p;

    f->n = 0;
    if (!spread_asked(m, t, true)) {
        return false;
    }
    p = topo_plan(m, t);
    f->row =
        c->nspread <= HK_LEN(f->few) ? f->few : hk_arena_array(mem, c->nspread, sizeof(*f->row));
    for (uint32_t k = 0; k < c->nspread; k++) {
        const struct spread *s = &c->spread[k];
        struct topo_counter *counter = p->spread[k];
        if (!s->hard) {
            continue;
        }
        const bool few = (int64_t)counter->ndomain < s->min_domains;
        const bool self = label_sel_match(&s->sel, own, &m->str);
        f->row[f->n++] = (struct spread_row){
            .counter = counter,
            .most = (int64_t)s->max_skew + (few ? 0 : topo_min(counter)) - self,
        };
    }
    return true;
}

enum reason_code spread_check(const struct spread_filter *f, node_id n)
{
    for (uint32_t k = 0; k < f->n; k++) {
        if (topo_domain(f->row[k].counter, n) == ID_NONE) {
            return REASON_SPREAD_LABEL;
        }
        if (topo_count(f->row[k].counter, n) > f->row[k].most) {
            return REASON_SPREAD;
        }
    }
    return REASON_NONE;
}

/* ---- score ---- */

/* The series of Sun's e_log, which Go uses too, in plain arithmetic: libm chooses a variant by
 * processor, and a different last bit can change a rounded score. */
double spread_log(double x)
{
    int exp;
    double f = frexp(x, &exp);

    if (f < M_SQRT1_2) {
        f *= 2;
        exp--;
    }
    f -= 1;
    const double s = f / (2 + f);
    const double s2 = s * s;
    const double s4 = s2 * s2;
    const double odd =
        s2 * (6.666666666666735130e-01 +
              s4 * (2.857142874366239149e-01 +
                    s4 * (1.818357216161805012e-01 + s4 * 1.479819860511658591e-01)));
    const double even = s4 * (3.999999999940941908e-01 +
                              s4 * (2.222219843214978396e-01 + s4 * 1.531383769920937332e-01));
    const double half = 0.5 * f * f;
    const double k = exp;

    return k * 6.93147180369123816490e-01 -
           ((half - (s * (half + (odd + even)) + k * 1.90821492927058770002e-10)) - f);
}

struct soft {
    const struct spread *s;
    const struct topo_counter *counter;
    double weight;
};

static bool node_has_key(const struct model *m, const struct spread *s, node_id n)
{
    uint32_t val;

    return labels_get(m->nodes.labels[n.i], s->topo_key, &val);
}

/* A node that lacks one of the keys does not count, except for system default constraints. */
static bool node_ignored(const struct model *m, const struct soft *soft, uint32_t nsoft, node_id n)
{
    for (uint32_t k = 0; k < nsoft; k++) {
        if (!soft[k].s->system_default && !node_has_key(m, soft[k].s, n)) {
            return true;
        }
    }
    return false;
}

/* Number of distinct values among the nodes; those without the key share one. */
static uint32_t domains_among(const struct topo_key *key, const node_id *nodes, uint32_t n,
                              struct hk_arena *mem)
{
    const struct hk_arena_mark mark = hk_arena_mark(mem);
    bool *seen = hk_arena_zalloc(mem, (size_t)key->len + 1);
    uint32_t size = 0;

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t d = HK_MIN(key->domain[nodes[i].i], key->len);
        size += !seen[d];
        seen[d] = true;
    }
    hk_arena_rewind(mem, mark);
    return size;
}

static int64_t raw_score(const struct model *m, const struct soft *soft, uint32_t nsoft, node_id n)
{
    double sum = 0;

    for (uint32_t k = 0; k < nsoft; k++) {
        if (node_has_key(m, soft[k].s, n)) {
            sum +=
                topo_count(soft[k].counter, n) * soft[k].weight + (double)(soft[k].s->max_skew - 1);
        }
    }
    return (int64_t)round(sum);
}

static uint32_t soft_rows(struct model *m, task_id t, struct soft *ret)
{
    const struct cons *c = task_cons(m, t);
    const struct topo_plan *p = topo_plan(m, t);
    uint32_t n = 0;

    for (uint32_t k = 0; k < c->nspread; k++) {
        if (!c->spread[k].hard) {
            ret[n++] = (struct soft){.s = &c->spread[k], .counter = p->spread[k]};
        }
    }
    return n;
}

void spread_score(struct model *m, task_id t, const node_id *nodes, uint32_t n, int64_t weight,
                  struct hk_arena *mem, double *score)
{
    const struct hk_arena_mark mark = hk_arena_mark(mem);
    struct soft *soft = hk_arena_alloc(mem, task_cons(m, t)->nspread * sizeof(*soft));
    const uint32_t nsoft = soft_rows(m, t, soft);
    node_id *in = hk_arena_alloc(mem, n * sizeof(*in));
    uint32_t *where = hk_arena_alloc(mem, n * sizeof(*where));
    int64_t *raw = hk_arena_alloc(mem, n * sizeof(*raw));
    int64_t min = INT64_MAX, max = 0;
    uint32_t nin = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (!node_ignored(m, soft, nsoft, nodes[i])) {
            where[nin] = i;
            in[nin++] = nodes[i];
        }
    }
    for (uint32_t k = 0; k < nsoft; k++) {
        const struct topo_key *key = soft[k].counter->key;
        const uint32_t size = key->label == ID_NONE ? nin : domains_among(key, in, nin, mem);
        soft[k].weight = spread_log((double)size + 2);
    }
    for (uint32_t i = 0; i < nin; i++) {
        raw[i] = raw_score(m, soft, nsoft, in[i]);
        min = HK_MIN(min, raw[i]);
        max = HK_MAX(max, raw[i]);
    }
    for (uint32_t i = 0; i < nin; i++) {
        const int64_t s = max == 0 ? 100 : 100 * (max + min - raw[i]) / max;
        score[where[i]] += (double)(weight * s);
    }
    hk_arena_rewind(mem, mark);
}
