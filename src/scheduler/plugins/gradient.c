// SPDX-License-Identifier: Apache-2.0
// Gradients of hyperNodes; see gradient.h. Room is summed on demand. Volcano compares with sums
// from the start of the session, so it tries domains that have been filled since and skips those
// where an eviction made room.

#include "scheduler/plugins/gradient.h"

struct domain {
    int32_t tier;
    struct hk_str name;
    hyper_id h;
};

struct domains {
    struct domain *at;
    uint32_t n;
};

/* ---- where to search ---- */

/* The highest domain within the limit that contains the mark; NO_HYPER when the mark exceeds it. */
static hyper_id highest_allowed(const struct model *m, hyper_id mark, int32_t limit)
{
    hyper_id best = NO_HYPER;

    for (hyper_id h = mark; !id_none(h) && m->hypers.at[h.i].tier <= limit;
         h = m->hypers.at[h.i].parent) {
        best = h;
    }
    return best;
}

static hyper_id search_root(const struct model *m, const struct gradient_ask *a)
{
    if (id_none(a->mark)) {
        return a->start;
    }
    const hyper_id allowed = highest_allowed(m, a->mark, a->limit);
    if (id_none(allowed)) {
        return NO_HYPER;
    }
    const hyper_id common = model_hyper_lca(m, a->start, allowed);
    if (id_eq(common, allowed)) {
        return a->start;
    }
    return id_eq(common, a->start) ? allowed : NO_HYPER;
}

static int domain_cmp(const void *a, const void *b)
{
    const struct domain *x = a, *y = b;

    if (x->tier != y->tier) {
        return x->tier < y->tier ? -1 : 1;
    }
    return hk_str_cmp(x->name, y->name);
}

/* All domains below the root within the limit, lowest tier first. */
static struct domains domains_below(struct session *ssn, hyper_id root, int32_t limit)
{
    const struct model *m = ssn->m;
    hyper_id *queue = hk_arena_array(ssn->mem, m->hypers.len, sizeof(queue[0]));
    struct domains d = {.at = hk_arena_array(ssn->mem, m->hypers.len, sizeof(d.at[0]))};
    uint32_t n = 0;

    queue[n++] = root;
    for (uint32_t i = 0; i < n; i++) {
        const struct hyper *h = &m->hypers.at[queue[i].i];
        if (h->tier <= limit) {
            d.at[d.n++] = (struct domain){h->tier, model_str(m, h->name), queue[i]};
        }
        for (uint32_t k = 0; k < h->children.len; k++) {
            queue[n++] = h->children.at[k];
        }
    }
    qsort(d.at, d.n, sizeof(d.at[0]), domain_cmp);
    return d;
}

/* ---- room ---- */

static bool sum_reaches(const struct model *m, hyper_id id, const int64_t *col, int64_t want)
{
    const struct hyper *h = &m->hypers.at[id.i];
    const bool root = id_eq(id, HYPER_ROOT);
    const uint32_t rows = root ? m->nodes.len : h->nodes.len;
    int64_t sum = 0;

    for (uint32_t i = 0; sum < want && i < rows; i++) {
        const node_id n = root ? (node_id){i} : h->nodes.at[i];
        if (m->nodes.flags[n.i] & NODE_KNOWN) {
            sum += HK_MAX(col[n.i], (int64_t)0); /* a deficit of one node does not reduce others */
        }
    }
    return sum >= want;
}

static bool gradient_domain_covers(const struct model *m, hyper_id h, const struct matrix *have,
                                   const int64_t *need)
{
    for (uint32_t d = 0; need && d < m->dims.n; d++) {
        if (need[d] > 0 && !sum_reaches(m, h, have->col[d], need[d])) {
            return false;
        }
    }
    return true;
}

static bool gradient_domain_has_room(const struct model *m, hyper_id h, const int64_t *need)
{
    return gradient_domain_covers(m, h, &m->nodes.idle, need) ||
           gradient_domain_covers(m, h, &m->nodes.future, need);
}

/* ---- lists ---- */

static void gradient_push_domain(struct gradients *g, const struct domain *d,
                                 const struct domain *last)
{
    if (!last || last->tier != d->tier) {
        g->at[g->n] = (struct gradient){.at = g->n > 0 ? g->at[g->n - 1].at + g->at[g->n - 1].n
                                                       : g->at[0].at};
        g->n++;
    }
    struct gradient *at = &g->at[g->n - 1];
    at->at[at->n++] = d->h;
}

static void gradients_init(struct session *ssn, struct gradients *g, uint32_t room)
{
    g->n = 0;
    g->at = hk_arena_zalloc(ssn->mem, ((size_t)room + 1) * sizeof(g->at[0]));
    g->at[0].at = hk_arena_array(ssn->mem, room, sizeof(hyper_id));
}

/* Offers domains with room for the whole request first, then those with room for the minimum.
 * Volcano offers an elastic job only the former, so it may wait forever although its minimum
 * fits. */
bool gradient_allocate(struct session *ssn, const struct gradient_ask *a, struct gradients *ret)
{
    const struct model *m = ssn->m;
    const hyper_id root = search_root(m, a);

    if (id_none(root)) {
        return false;
    }
    const struct domains d = domains_below(ssn, root, a->limit);
    bool *taken = hk_arena_zalloc(ssn->mem, d.n * sizeof(taken[0]));
    const struct domain *last = NULL;

    gradients_init(ssn, ret, d.n);
    for (uint32_t i = 0; i < d.n; i++) {
        taken[i] = !id_none(a->mark) || gradient_domain_has_room(m, d.at[i].h, a->need);
        if (taken[i]) {
            gradient_push_domain(ret, &d.at[i], last);
            last = &d.at[i];
        }
    }
    last = NULL;
    for (uint32_t i = 0; a->least && i < d.n; i++) {
        if (!taken[i] && gradient_domain_has_room(m, d.at[i].h, a->least)) {
            gradient_push_domain(ret, &d.at[i], last);
            last = &d.at[i];
        }
    }
    return true;
}

bool gradient_evict(struct session *ssn, const struct gradient_ask *a, uint32_t max,
                    struct gradients *ret)
{
    const struct model *m = ssn->m;
    const hyper_id root = search_root(m, a);

    if (id_none(root)) {
        return false;
    }
    struct domains d = domains_below(ssn, root, a->limit);
    uint32_t n = 0;
    for (uint32_t i = 0; i < d.n; i++) {
        if (!id_none(a->mark) || gradient_domain_covers(m, d.at[i].h, &m->nodes.alloc, a->need)) {
            d.at[n++] = d.at[i];
        }
    }
    gradients_init(ssn, ret, n);
    const struct domain *last = NULL;
    for (uint32_t end = n, from; end > 0 && max > 0; end = from) {
        for (from = end; from > 0 && d.at[from - 1].tier == d.at[end - 1].tier; from--) {
        }
        /* If a tier exceeds the limit, use its last domains. */
        for (uint32_t i = end - from > max ? end - max : from; i < end; i++, max--) {
            gradient_push_domain(ret, &d.at[i], last);
            last = &d.at[i];
        }
    }
    return true;
}

void gradient_only(struct session *ssn, hyper_id start, struct gradients *ret)
{
    gradients_init(ssn, ret, 1);
    gradient_push_domain(ret, &(struct domain){.h = start}, NULL);
}
