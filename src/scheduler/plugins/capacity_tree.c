// SPDX-License-Identifier: Apache-2.0
// The queue tree of capacity. It contains only queues below the queue named "root", so a missing
// parent or a cycle excludes only the queues concerned (upstream stops all scheduling).
#include "scheduler/plugins/capacity_tree.h"

#define ROOT_NAME "root"

static queue_id wanted_parent(const struct model *m, queue_id root, const struct queue *q)
{
    if (q->parent_name == 0) {
        return root;
    }
    return (queue_id){hk_map_get(&m->queue_by_name, q->parent_name)};
}

/* Goes backwards, so that the lists of children are in id order. */
static void link_children(struct capacity_tree *t, const struct model *m)
{
    for (uint32_t k = 0; k < m->queues.len; k++) {
        t->at[k] =
            (struct capacity_node){.parent = NO_QUEUE, .first_child = NO_QUEUE, .next = NO_QUEUE};
    }
    for (uint32_t k = m->queues.len; k-- > 0;) {
        const struct queue *q = &m->queues.at[k];
        const queue_id parent = q->used ? wanted_parent(m, t->root, q) : NO_QUEUE;

        if (!id_none(parent) && k != t->root.i) {
            t->at[k].next = t->at[parent.i].first_child;
            t->at[parent.i].first_child = (queue_id){k};
        }
    }
}

/* Breadth first; order is also the list of queues still to visit. */
static void walk_down(struct capacity_tree *t, struct ledger *books)
{
    if (id_none(t->root)) {
        return;
    }
    t->order[t->n++] = t->root;
    for (uint32_t k = 0; k < t->n; k++) {
        const queue_id p = t->order[k];

        ledger_row(books, p)->in = true;
        for (queue_id c = t->at[p.i].first_child; !id_none(c); c = t->at[c.i].next) {
            t->at[c.i].parent = p;
            t->at[c.i].depth = t->at[p.i].depth + 1;
            t->order[t->n++] = c;
        }
    }
}

static void sum_up(const struct capacity_tree *t, struct ledger *books)
{
    for (uint32_t k = t->n; k-- > 1;) {
        const struct ledger_row *c = ledger_row(books, t->order[k]);
        struct ledger_row *p = ledger_row(books, capacity_parent(t, t->order[k]));

        for (uint32_t d = 0; d < books->ndim; d++) {
            p->allocated[d] += c->allocated[d];
            p->leaving[d] += c->leaving[d];
            p->promised[d] += c->promised[d];
        }
    }
}

/* Fills in what a capability lacks from the parent: cpu and memory when not positive, others when
 * absent. */
static void capacity_tree_inherit_capability(struct rvec *cap, const struct rvec *above)
{
    RVEC_EACH(d, above->has | RVEC_BASE)
    {
        const bool base = d == DIM_CPU || d == DIM_MEM;
        const bool said = base ? cap->v[d] > 0 : (cap->has >> d) & 1;

        if (!said) {
            rvec_set(cap, (uint32_t)d, above->v[d]);
        }
    }
}

/* No limit for all resources of the nodes. Upstream uses this for a root without any capability,
 * but treats what a partial one lacks as zero, which blocks the whole tree. */
static void unbounded(const struct session *ssn, struct rvec *ret)
{
    rvec_zero(ret);
    RVEC_EACH(d, ssn->total.has | RVEC_BASE)
    {
        rvec_set(ret, (uint32_t)d, RVEC_HUGE);
    }
}

static void own_capability(const struct queue *q, struct rvec *ret)
{
    if (q->has_capability) {
        *ret = q->capability;
    } else {
        rvec_zero(ret);
    }
}

static void open_root(struct capacity_tree *t, struct session *ssn, struct ledger *books)
{
    struct capacity_node *root = &t->at[t->root.i];
    struct ledger_row *r = ledger_row(books, t->root);
    struct rvec all;

    unbounded(ssn, &all);
    own_capability(model_queue(ssn->m, t->root), &root->capability);
    capacity_tree_inherit_capability(&root->capability, &all);
    r->limit = root->capability;
    rvec_zero(&r->guarantee);
    for (queue_id c = root->first_child; !id_none(c); c = t->at[c.i].next) {
        rvec_add(&r->guarantee, &ledger_row(books, c)->guarantee);
        rvec_add(&r->deserved, &ledger_row(books, c)->deserved);
    }
}

/* A child's limit is its parent's limit minus the guarantees of the other children, at most its own
 * capability. */
static void open_children(struct capacity_tree *t, struct session *ssn, struct ledger *books,
                          queue_id p)
{
    struct rvec guaranteed, spare;

    rvec_zero(&guaranteed);
    for (queue_id c = t->at[p.i].first_child; !id_none(c); c = t->at[c.i].next) {
        rvec_add(&guaranteed, &ledger_row(books, c)->guarantee);
    }
    rvec_exceed(&spare, &ledger_row(books, p)->limit, &guaranteed);

    for (queue_id c = t->at[p.i].first_child; !id_none(c); c = t->at[c.i].next) {
        struct ledger_row *r = ledger_row(books, c);

        own_capability(model_queue(ssn->m, c), &t->at[c.i].capability);
        capacity_tree_inherit_capability(&t->at[c.i].capability, &t->at[p.i].capability);
        r->limit = spare;
        rvec_add(&r->limit, &r->guarantee);
        rvec_min_inf(&r->limit, &t->at[c.i].capability);
    }
}

/* Why a queue is not below the root: some ancestor is missing, or its ancestors form a cycle. */
static const char *unreached_text(const struct capacity_tree *t, struct session *ssn, queue_id q)
{
    const struct model *m = ssn->m;
    const struct hk_str name = model_str(m, model_queue(m, q)->name);
    queue_id at = q;

    for (uint32_t steps = 0; steps < m->queues.len; steps++) {
        const struct queue *here = model_queue(m, at);
        const queue_id parent = wanted_parent(m, t->root, here);
        const struct hk_str missing =
            here->parent_name ? model_str(m, here->parent_name) : HK_STR(ROOT_NAME);

        if (!id_none(parent)) {
            at = parent;
        } else if (id_eq(at, q)) {
            return hk_arena_printf(ssn->mem, "queue '%.*s': parent '%.*s' does not exist",
                                   HK_FMT(name), HK_FMT(missing));
        } else {
            return hk_arena_printf(
                ssn->mem, "queue '%.*s': above it, queue '%.*s': parent '%.*s' does not exist",
                HK_FMT(name), HK_FMT(model_str(m, here->name)), HK_FMT(missing));
        }
    }
    return hk_arena_printf(ssn->mem, "queue '%.*s': its parents form a circle", HK_FMT(name));
}

/* Refuses jobs in inner queues and outside the tree; only queues with jobs need a message. */
static void refuse_broken(const struct capacity_tree *t, struct session *ssn, struct ledger *books)
{
    for (uint32_t k = 0; k < books->n; k++) {
        const struct queue *q = &ssn->m->queues.at[k];
        struct ledger_row *r = &books->at[k];

        if (!q->used || q->njobs == 0) {
            continue;
        }
        if (!r->in) {
            r->refusal = unreached_text(t, ssn, (queue_id){k});
        } else if (!capacity_is_leaf(t, (queue_id){k})) {
            r->refusal = hk_arena_printf(ssn->mem, "queue '%.*s': only leaf queues take jobs",
                                         HK_FMT(model_str(ssn->m, q->name)));
        }
    }
}

void capacity_tree_open(struct capacity_tree *t, struct session *ssn, struct ledger *books)
{
    const struct model *m = ssn->m;

    t->at = hk_arena_array(ssn->mem, m->queues.len, sizeof(*t->at));
    t->order = hk_arena_array(ssn->mem, m->queues.len, sizeof(*t->order));
    t->root = model_queue_find(m, HK_STR(ROOT_NAME));
    for (uint32_t k = 0; k < books->n; k++) {
        books->at[k].in = false;
    }
    link_children(t, m);
    walk_down(t, books);
    sum_up(t, books);
    for (uint32_t k = 1; k < t->n; k++) {
        const struct queue *q = model_queue(m, t->order[k]);
        struct ledger_row *r = ledger_row(books, t->order[k]);

        if (q->has_deserved) {
            r->deserved = q->deserved;
        }
        rvec_max(&r->deserved, &r->guarantee);
    }
    if (t->n > 0) {
        open_root(t, ssn, books);
    }
    for (uint32_t k = 0; k < t->n; k++) {
        open_children(t, ssn, books, t->order[k]);
    }
    refuse_broken(t, ssn, books);
}

queue_id capacity_ancestor(const struct capacity_tree *t, queue_id q, int64_t level)
{
    while (level-- > 0 && !id_none(q)) {
        q = capacity_parent(t, q);
    }
    return q;
}

queue_id capacity_at_depth(const struct capacity_tree *t, queue_id q, uint32_t depth)
{
    while (t->at[q.i].depth > depth) {
        q = capacity_parent(t, q);
    }
    return q;
}

uint32_t capacity_common_depth(const struct capacity_tree *t, queue_id a, queue_id b)
{
    queue_id l = capacity_parent(t, a), r = capacity_parent(t, b);

    if (id_none(l) || id_none(r)) {
        return 0;
    }
    const uint32_t depth = HK_MIN(t->at[l.i].depth, t->at[r.i].depth);
    l = capacity_at_depth(t, l, depth);
    r = capacity_at_depth(t, r, depth);
    while (!id_eq(l, r)) {
        l = capacity_parent(t, l);
        r = capacity_parent(t, r);
    }
    return t->at[l.i].depth;
}
