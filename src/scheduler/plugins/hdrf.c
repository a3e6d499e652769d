// SPDX-License-Identifier: Apache-2.0
// Hierarchical dominant resource fairness. The annotation volcano.sh/hierarchy ("root/eng/dev")
// arranges queues in a tree, with jobs as leaves:
//
//   root --- sci(50) --- job, job, ...
//       \--- eng(50) --- dev(50) --- job ...
//                   \--- prod(50) -- job ...
//
// A leaf is saturated when it can use no more. A node sums up its children, the unsaturated ones
// scaled down to the smallest share among them, so that a child blocked on one resource does not
// dominate its siblings. A change marks the path of its leaf; marked nodes are computed when an
// order is needed.
#include "scheduler/plugins/hdrf.h"

#include <math.h>
#include <stdlib.h>

struct hdrf_node {
    struct hk_str name;
    uint32_t parent, first_child, next, depth;
    uint32_t first_leaf, nleaf; /* in leaves */
    double weight;
    double share;
    double *alloc;
    bool saturated;
    bool marked; /* implies that its ancestors are, too */
};

struct hdrf {
    struct drf *drf;
    struct hdrf_node *nodes; /* parents before children; 0 is the root */
    uint32_t n;
    uint32_t *of_queue;         /* node of a queue, ID_NONE when it has no jobs */
    job_id *leaves;             /* grouped by node */
    bool *full;                 /* by job: the leaf is saturated */
    int64_t allocated[DIM_MAX]; /* over all jobs */
    uint64_t demanding;         /* dimensions of which the cluster has some left */
};

static bool in_tree(const struct job *j)
{
    return j->used && j->has_pg && !id_none(j->queue);
}

static uint32_t path_len(struct hk_str path)
{
    uint32_t n = 1;

    for (size_t k = 0; k < path.n; k++) {
        n += path.s[k] == '/';
    }
    return n;
}

/* strtod stops at the end of the text: it is followed by NUL or a slash. */
static double hdrf_parse_weight(struct hk_str text)
{
    char *end = NULL;
    const double w = text.n > 0 ? strtod(text.s, &end) : 1;

    return end == text.s + text.n && w >= 1 ? w : 1;
}

static uint32_t node_add(struct hdrf *h, struct session *ssn, uint32_t parent, struct hk_str name,
                         double weight)
{
    const uint32_t id = h->n++;

    h->nodes[id] = (struct hdrf_node){
        .name = name,
        .parent = parent,
        .first_child = ID_NONE,
        .next = ID_NONE,
        .weight = weight,
        .marked = true,
        .alloc = hk_arena_zalloc(ssn->mem, h->drf->ndim * sizeof(double)),
    };
    if (parent != ID_NONE) {
        h->nodes[id].depth = h->nodes[parent].depth + 1;
        h->nodes[id].next = h->nodes[parent].first_child;
        h->nodes[parent].first_child = id;
    }
    return id;
}

static uint32_t child_named(const struct hdrf *h, uint32_t parent, struct hk_str name)
{
    uint32_t c = h->nodes[parent].first_child;

    while (c != ID_NONE && !hk_str_eq(h->nodes[c].name, name)) {
        c = h->nodes[c].next;
    }
    return c;
}

/* Walks the queue's path and adds missing nodes; the first queue to name a node sets its weight.
 * The first element is the root, whatever its name. */
static uint32_t path_node(struct hdrf *h, struct session *ssn, const struct queue *q)
{
    struct hk_str path = model_str(ssn->m, q->hierarchy), name;
    struct hk_str weights = model_str(ssn->m, q->hierarchy_weights), weight;
    uint32_t at = 0;

    (void)hk_str_cut(&path, '/', &name);
    (void)hk_str_cut(&weights, '/', &weight);
    while (hk_str_cut(&path, '/', &name)) {
        const uint32_t child = child_named(h, at, name);

        if (!hk_str_cut(&weights, '/', &weight)) {
            weight = HK_STR("");
        }
        at = child != ID_NONE ? child : node_add(h, ssn, at, name, hdrf_parse_weight(weight));
    }
    return at;
}

static void build_nodes(struct hdrf *h, struct session *ssn)
{
    const struct model *m = ssn->m;
    size_t cap = 1;

    for (uint32_t k = 0; k < m->queues.len; k++) {
        cap += path_len(model_str(m, m->queues.at[k].hierarchy));
    }
    h->nodes = hk_arena_array(ssn->mem, cap, sizeof(*h->nodes));
    h->of_queue = hk_arena_array(ssn->mem, m->queues.len, sizeof(*h->of_queue));
    node_add(h, ssn, ID_NONE, HK_STR("root"), 1);
    for (uint32_t k = 0; k < m->queues.len; k++) {
        const struct queue *q = &m->queues.at[k];
        h->of_queue[k] = q->used && q->njobs > 0 ? path_node(h, ssn, q) : ID_NONE;
    }
}

static void build_leaves(struct hdrf *h, struct session *ssn)
{
    const struct model *m = ssn->m;
    uint32_t first = 0;

    for (uint32_t k = 0; k < m->jobs.len; k++) {
        if (in_tree(&m->jobs.at[k])) {
            h->nodes[h->of_queue[m->jobs.at[k].queue.i]].nleaf++;
        }
    }
    for (uint32_t k = 0; k < h->n; k++) {
        h->nodes[k].first_leaf = first;
        first += h->nodes[k].nleaf;
        h->nodes[k].nleaf = 0;
    }
    h->leaves = hk_arena_array(ssn->mem, first, sizeof(*h->leaves));
    h->full = hk_arena_array(ssn->mem, m->jobs.len, sizeof(*h->full));
    for (uint32_t k = 0; k < m->jobs.len; k++) {
        if (in_tree(&m->jobs.at[k])) {
            struct hdrf_node *n = &h->nodes[h->of_queue[m->jobs.at[k].queue.i]];
            h->leaves[n->first_leaf + n->nleaf++] = (job_id){k};
        }
    }
}

static uint64_t demanding(const struct hdrf *h)
{
    uint64_t mask = 0;

    for (uint32_t k = 0; k < h->drf->ndom; k++) {
        const uint32_t d = h->drf->dom[k];
        if ((double)h->allocated[d] < h->drf->total[d]) {
            mask |= 1ULL << d;
        }
    }
    return mask;
}

struct hdrf *hdrf_new(struct session *ssn, struct drf *drf)
{
    const struct model *m = ssn->m;
    struct hdrf *h = hk_arena_zalloc(ssn->mem, sizeof(*h));

    h->drf = drf;
    build_nodes(h, ssn);
    build_leaves(h, ssn);
    for (uint32_t k = 0; k < m->queues.len; k++) {
        for (uint32_t d = 0; m->queues.at[k].used && d < drf->ndim; d++) {
            h->allocated[d] += m->queues.at[k].allocated[d];
        }
    }
    h->demanding = demanding(h);
    return h;
}

static void mark_up(struct hdrf *h, uint32_t node)
{
    while (node != ID_NONE && !h->nodes[node].marked) {
        h->nodes[node].marked = true;
        node = h->nodes[node].parent;
    }
}

void hdrf_moved(struct hdrf *h, const struct model *m, task_id t, int sign)
{
    const struct job *j = victim_job(m, t);
    const struct shape *s = task_shape(m, t);

    if (!j) {
        return;
    }
    for (uint32_t k = 0; k < s->nreq; k++) {
        h->allocated[s->req[k].dim] += sign * s->req[k].v;
    }
    mark_up(h, h->of_queue[j->queue.i]);

    const uint64_t now = demanding(h);
    if (now != h->demanding) {
        h->demanding = now; /* saturation may change in every leaf */
        for (uint32_t k = 0; k < h->n; k++) {
            h->nodes[k].marked = true;
        }
    }
}

/* Whether the leaf has all it requested of a resource, or requests one that the cluster has run out
 * of. */
static bool leaf_full(const struct hdrf *h, const int64_t *alloc, const int64_t *want)
{
    for (uint32_t d = 0; d < h->drf->ndim; d++) {
        if (alloc[d] > 0 && want[d] != 0 && (alloc[d] >= want[d] || !((h->demanding >> d) & 1))) {
            return true;
        }
    }
    return false;
}

static double dominant(const struct drf *s, const double *amounts)
{
    double most = 0;

    for (uint32_t k = 0; k < s->ndom; k++) {
        most = fmax(most, amounts[s->dom[k]] / s->total[s->dom[k]]);
    }
    return most;
}

/* Computes saturation and returns the scale of unsaturated children. */
static double node_scan(struct hdrf *h, const struct model *m, struct hdrf_node *n)
{
    double scale = 1;

    n->saturated = true;
    for (uint32_t c = n->first_child; c != ID_NONE; c = h->nodes[c].next) {
        const struct hdrf_node *child = &h->nodes[c];
        if (!child->saturated && child->share != 0) {
            scale = fmin(scale, child->share);
        }
        n->saturated &= child->saturated;
    }
    for (uint32_t k = 0; k < n->nleaf; k++) {
        const job_id j = h->leaves[n->first_leaf + k];
        const double share = drf_job_share(h->drf, m, j);
        int64_t alloc[DIM_MAX];

        drf_job_alloc(h->drf, m, j, alloc);
        h->full[j.i] = leaf_full(h, alloc, job_vec(m, j, JV_TOTAL));
        if (!h->full[j.i] && share != 0) {
            scale = fmin(scale, share);
        }
        n->saturated &= h->full[j.i];
    }
    return scale;
}

static void node_sum(struct hdrf *h, const struct model *m, struct hdrf_node *n, double scale)
{
    const uint32_t ndim = h->drf->ndim;

    memset(n->alloc, 0, ndim * sizeof(*n->alloc));
    for (uint32_t c = n->first_child; c != ID_NONE; c = h->nodes[c].next) {
        const struct hdrf_node *child = &h->nodes[c];
        for (uint32_t d = 0; child->share != 0 && d < ndim; d++) {
            n->alloc[d] += child->alloc[d] * (child->saturated ? 1 : scale / child->share);
        }
    }
    for (uint32_t k = 0; k < n->nleaf; k++) {
        const job_id j = h->leaves[n->first_leaf + k];
        const double share = drf_job_share(h->drf, m, j);
        int64_t alloc[DIM_MAX];

        if (share == 0) {
            continue;
        }
        drf_job_alloc(h->drf, m, j, alloc);
        for (uint32_t d = 0; d < ndim; d++) {
            n->alloc[d] += (double)alloc[d] * (h->full[j.i] ? 1 : scale / share);
        }
    }
    n->share = dominant(h->drf, n->alloc);
}

/* Children come after their parents, so one backward pass sees them first. */
static void hdrf_refresh(struct hdrf *h, const struct model *m)
{
    for (uint32_t k = h->nodes[0].marked ? h->n : 0; k-- > 0;) {
        struct hdrf_node *n = &h->nodes[k];
        if (n->marked) {
            node_sum(h, m, n, node_scan(h, m, n));
            n->marked = false;
        }
    }
}

static int node_order(const struct hdrf_node *a, const struct hdrf_node *b)
{
    const double l = a->share / a->weight, r = b->share / b->weight;

    if (a->saturated != b->saturated) {
        return a->saturated - b->saturated;
    }
    return (l > r) - (l < r);
}

/* The level nearest to the root where the paths differ decides; levels that only one path has do
 * not count. Going up, that is the last difference found. */
int hdrf_queue_order(struct hdrf *h, const struct model *m, queue_id a, queue_id b)
{
    uint32_t l = h->of_queue[a.i], r = h->of_queue[b.i];
    int order = 0;

    if (l == ID_NONE || r == ID_NONE) {
        return 0;
    }
    hdrf_refresh(h, m);
    while (h->nodes[l].depth > h->nodes[r].depth) {
        l = h->nodes[l].parent;
    }
    while (h->nodes[r].depth > h->nodes[l].depth) {
        r = h->nodes[r].parent;
    }
    while (l != r) {
        const int here = node_order(&h->nodes[l], &h->nodes[r]);
        order = here != 0 ? here : order;
        l = h->nodes[l].parent;
        r = h->nodes[r].parent;
    }
    return order;
}

static void imagine(struct hdrf *h, const struct model *m, task_id t, int sign)
{
    drf_shift(h->drf, model_task(m, t)->job, task_shape(m, t), sign);
    hdrf_moved(h, m, t, sign);
}

/* Checks each candidate by itself: it is a victim if the reclaimer's queue would still be behind
 * after the exchange. */
void hdrf_reclaimable(struct hdrf *h, const struct model *m, task_id reclaimer, struct victims *v)
{
    const struct job *mine = victim_job(m, reclaimer);

    if (!mine) {
        return;
    }
    imagine(h, m, reclaimer, 1);
    for (uint32_t k = 0; k < v->n; k++) {
        const task_id t = v->in[k];
        const struct job *theirs = victim_job(m, t);

        if (!theirs) {
            continue;
        }
        imagine(h, m, t, -1);
        if (hdrf_queue_order(h, m, mine->queue, theirs->queue) < 0) {
            victims_keep(v, t);
        }
        imagine(h, m, t, 1);
    }
    imagine(h, m, reclaimer, -1);
}
