// SPDX-License-Identifier: Apache-2.0
// capacity: every queue has a capability that it never exceeds, a deserved share that it regains by
// reclaiming, and a guarantee that cannot be reclaimed. Queues are flat or, with enableHierarchy, a
// tree in which the limits of every ancestor apply. Quotas of dynamically allocated devices do not
// count.
#include "scheduler/plugins/capacity_tree.h"
#include "scheduler/plugins/victims.h"

struct capacity {
    struct ledger books;
    int64_t levels; /* ancestors that take part in reclaim; <= 0 none */
    bool hierarchy;
    struct capacity_tree tree;
    struct sparse victim_queues;
    struct rvec *left; /* by slot of victim_queues: held without its victims */
    /* Room reserved for tasks that opted in to the queue-allocation gate; NULL when there are
     * none. */
    int64_t *reserved;     /* [queue][ndim] */
    uint64_t *is_reserved; /* bit per task */
    struct names_text last;
};

static const struct opt capacity_opts[] = {
    OPT(OPT_INT, struct capacity, levels, "ancestorReclaimLevel", "0",
        "how many levels of ancestors take part in reclaim (needs enableHierarchy)"),
    {.key = "capacity.DynamicResourceAllocationEnable",
     .type = OPT_IGNORED,
     .help = "device claims are not accounted for yet"},
    {.key = "capacity.DRAConsumableCapacityEnable",
     .type = OPT_IGNORED,
     .help = "device claims are not accounted for yet"},
};

extern const struct plugin plugin_capacity;

static struct ledger_row *row(const struct capacity *c, queue_id q)
{
    return ledger_row(&c->books, q);
}

/* The next queue whose limits apply to q, NO_QUEUE at the end. */
static queue_id above(const struct capacity *c, queue_id q)
{
    return c->hierarchy ? capacity_parent(&c->tree, q) : NO_QUEUE;
}

/* ---- room reserved for tasks with the queue-allocation gate ---- */

static void reserve(struct capacity *c, const struct model *m, queue_id q, task_id t, bool on)
{
    const uint64_t bit = 1ULL << (t.i % 64);
    const struct shape *s = task_shape(m, t);

    if (!c->reserved || id_none(q) || on == ((c->is_reserved[t.i / 64] & bit) != 0)) {
        return;
    }
    c->is_reserved[t.i / 64] ^= bit;
    for (uint32_t k = 0; k < s->nreq; k++) {
        c->reserved[(size_t)q.i * c->books.ndim + s->req[k].dim] += on ? s->req[k].v : -s->req[k].v;
    }
}

static void open_reservations(struct capacity *c, struct session *ssn)
{
    const struct model *m = ssn->m;

    if (m->gate_opt_in == 0) {
        return;
    }
    c->reserved =
        hk_arena_zalloc(ssn->mem, (size_t)m->queues.len * c->books.ndim * sizeof(*c->reserved));
    c->is_reserved = hk_arena_zalloc(ssn->mem, (m->tasks.len / 64 + 1) * sizeof(*c->is_reserved));
    for (uint32_t k = 0; k < ssn->njob; k++) {
        const struct job *j = model_job(m, ssn->jobs[k]);

        for (task_id t = j->pending; !id_none(t); t = model_task(m, t)->job_next) {
            if ((model_task(m, t)->flags & (TASK_GATE_OPT_IN | TASK_GATED)) == TASK_GATE_OPT_IN) {
                reserve(c, m, j->queue, t, true);
            }
        }
    }
}

/* Whether the task fits besides the reservations of other tasks. */
static bool beside_reserved(const struct capacity *c, const struct model *m, queue_id q, task_id t)
{
    const struct shape *s = task_shape(m, t);
    const bool own = (c->is_reserved[t.i / 64] >> (t.i % 64)) & 1;
    const struct ledger_row *r = row(c, q);

    for (uint32_t k = 0; k < s->nreq; k++) {
        const uint32_t d = s->req[k].dim;
        const int64_t kept = c->reserved[(size_t)q.i * c->books.ndim + d] - (own ? s->req[k].v : 0);

        if (d != DIM_PODS &&
            (double)(r->allocated[d] + kept + s->req[k].v) > rvec_get(&r->limit, d)) {
            return false;
        }
    }
    return true;
}

/* ---- opening ---- */

static void open_flat(struct capacity *c, struct session *ssn)
{
    ledger_flat_limits(&c->books, ssn);
    for (uint32_t k = 0; k < c->books.n; k++) {
        const struct queue *q = &ssn->m->queues.at[k];
        struct ledger_row *r = &c->books.at[k];

        if (!r->in) {
            continue;
        }
        if (q->has_deserved) {
            r->deserved = q->deserved;
        }
        rvec_min_inf(&r->deserved, &r->limit);
        rvec_max(&r->deserved, &r->guarantee);
    }
}

static void capacity_open(struct session *ssn, void *self)
{
    struct capacity *c = self;

    c->hierarchy = conf_hierarchy(ssn->conf, &plugin_capacity);
    ledger_open(&c->books, ssn, true);
    if (c->hierarchy) {
        capacity_tree_open(&c->tree, ssn, &c->books);
    } else {
        open_flat(c, ssn);
    }
    open_reservations(c, ssn);
    sparse_init(&c->victim_queues, ssn->mem, c->books.n);
    c->left = hk_arena_array(ssn->mem, c->books.n, sizeof(*c->left));
}

/* ---- order ---- */

/* The smaller share goes first; of two equal ones the queue that deserves something. */
static int share_order(const struct capacity *c, queue_id a, queue_id b)
{
    const double l = ledger_share(&c->books, row(c, a)), r = ledger_share(&c->books, row(c, b));

    if (l != r) {
        return l < r ? -1 : 1;
    }
    return rvec_empty(&row(c, a)->deserved) - rvec_empty(&row(c, b)->deserved);
}

/* Compares two leaves by their ancestors just below the common one. Upstream fixes the shares of
 * inner queues when the session opens, so one branch may take a whole session; here they change. */
static int tree_order(const struct capacity *c, queue_id a, queue_id b)
{
    const bool l = capacity_is_leaf(&c->tree, a), r = capacity_is_leaf(&c->tree, b);

    if (l != r) {
        return l ? -1 : 1;
    }
    if (l && !id_eq(a, b)) {
        const uint32_t depth = capacity_common_depth(&c->tree, a, b) + 1;
        a = capacity_at_depth(&c->tree, a, depth);
        b = capacity_at_depth(&c->tree, b, depth);
    }
    return share_order(c, a, b);
}

static int capacity_queue_order(struct session *ssn, void *self, queue_id a, queue_id b)
{
    const struct capacity *c = self;
    const int32_t lp = model_queue(ssn->m, a)->priority, rp = model_queue(ssn->m, b)->priority;

    if (lp != rp) {
        return lp > rp ? -1 : 1;
    }
    if (!row(c, a)->in || !row(c, b)->in) {
        return row(c, b)->in - row(c, a)->in; /* queues that take no part come last */
    }
    return c->hierarchy ? tree_order(c, a, b) : share_order(c, a, b);
}

/* The queue nearer to the preemptor's is evicted from first. */
static int capacity_victim_queue_order(struct session *ssn, void *self, queue_id a, queue_id b,
                                       queue_id preemptor)
{
    const struct capacity *c = self;

    if (!c->hierarchy) {
        return 0;
    }
    const uint32_t l = capacity_common_depth(&c->tree, a, preemptor);
    const uint32_t r = capacity_common_depth(&c->tree, b, preemptor);
    return (l < r) - (l > r);
}

/* ---- admission ---- */

static bool capacity_allocatable(struct session *ssn, void *self, queue_id q, task_id t)
{
    struct capacity *c = self;
    const struct shape *s = task_shape(ssn->m, t);

    if (ledger_refuses(ssn, row(c, q), model_task(ssn->m, t)->job) ||
        (c->reserved && !beside_reserved(c, ssn->m, q, t))) {
        return false;
    }
    for (queue_id a = q; !id_none(a); a = above(c, a)) {
        if (!ledger_has_room(row(c, a), &row(c, a)->limit, s)) {
            return false;
        }
    }
    if (model_task(ssn->m, t)->flags & TASK_GATE_OPT_IN) {
        reserve(c, ssn->m, q, t, true);
    }
    return true;
}

static bool capacity_bindable(struct session *ssn, void *self, queue_id q, task_id t)
{
    const struct capacity *c = self;

    for (queue_id a = q; !id_none(a); a = above(c, a)) {
        if (!ledger_has_room_now(row(c, a), task_shape(ssn->m, t))) {
            return false;
        }
    }
    return true;
}

static enum vote capacity_job_enqueueable(struct session *ssn, void *self, job_id job)
{
    struct capacity *c = self;
    const queue_id q = model_job(ssn->m, job)->queue;

    if (ledger_refuses(ssn, row(c, q), job)) {
        return REJECT;
    }
    for (queue_id a = q; !id_none(a); a = above(c, a)) {
        const uint64_t lacks = ledger_lacks(ssn->m, row(c, a), job);

        if (lacks != 0) {
            ssn->job_msg[job.i] = names_text(ssn, &c->last, "queue resource quota insufficient",
                                             "insufficient", lacks);
            return REJECT;
        }
    }
    return PERMIT;
}

static void capacity_job_enqueued(struct session *ssn, void *self, job_id job)
{
    struct capacity *c = self;

    for (queue_id a = model_job(ssn->m, job)->queue; !id_none(a); a = above(c, a)) {
        ledger_promise(ssn->m, job, row(c, a)->promised);
    }
}

/* ---- reclaim: who may take ---- */

/* Whether the queue with these tasks stays within its deserved amount of a resource they
 * request. */
static bool deserves(const struct capacity *c, queue_id q, const struct rvec *more)
{
    struct rvec used;

    ledger_rvec(&c->books, row(c, q), &used);
    rvec_add(&used, more);
    return rvec_any_le(&used, &row(c, q)->deserved, more);
}

static bool capacity_preemptive(struct session *ssn, void *self, queue_id q, const task_id *t,
                                uint32_t n)
{
    const struct capacity *c = self;
    struct rvec used, more;

    tasks_rvec(ssn->m, t, n, &more);
    ledger_rvec(&c->books, row(c, q), &used);
    rvec_add(&used, &more);
    if (row(c, q)->refusal || !rvec_fits(&used, &row(c, q)->limit, &more, NULL)) {
        return false;
    }
    if (deserves(c, q, &more)) {
        return true;
    }
    for (int64_t level = 1; c->hierarchy && level <= c->levels; level++) {
        const queue_id a = capacity_ancestor(&c->tree, q, level);

        if (id_none(a) || id_eq(a, c->tree.root)) {
            break;
        }
        if (deserves(c, a, &more)) {
            return true;
        }
    }
    return false;
}

/* ---- reclaim: who must give ---- */

/* The amounts of the queue without the victims chosen so far. */
static struct rvec *left_of(struct capacity *c, queue_id q)
{
    bool fresh;
    struct rvec *left = &c->left[sparse_add(&c->victim_queues, q.i, &fresh)];

    if (fresh) {
        ledger_rvec(&c->books, row(c, q), left);
    }
    return left;
}

/* Whether the queue deserves none of the resources that the task uses. */
static bool undeserved(const struct capacity *c, queue_id q, const struct rvec *task)
{
    return (rvec_names(task) & rvec_names(&row(c, q)->deserved)) == 0;
}

static bool above_guarantee(struct capacity *c, queue_id q, const struct rvec *task)
{
    struct rvec rest = *left_of(c, q);

    rvec_sub(&rest, task);
    return rvec_le_zero(&row(c, q)->guarantee, &rest);
}

static bool must_give(struct capacity *c, queue_id q, const struct rvec *task)
{
    return undeserved(c, q, task) || rvec_any_gt(left_of(c, q), &row(c, q)->deserved, task);
}

/* Whether both have a common ancestor below the root, within c->levels. */
static bool share_ancestor(const struct capacity *c, queue_id a, queue_id b)
{
    for (int64_t i = 1; i <= c->levels; i++) {
        const queue_id x = capacity_ancestor(&c->tree, a, i);

        if (id_none(x) || id_eq(x, c->tree.root)) {
            return false;
        }
        for (int64_t j = 1; j <= c->levels; j++) {
            const queue_id y = capacity_ancestor(&c->tree, b, j);

            if (id_none(y)) {
                break;
            }
            if (id_eq(x, y)) {
                return true;
            }
        }
    }
    return false;
}

struct reclaim {
    queue_id queue;
    struct rvec request;
};

/* The ancestor whose limits count at that level, NO_QUEUE when there is none. */
static queue_id capacity_reclaim_ancestor(const struct capacity *c, const struct reclaim *r,
                                          queue_id q, int64_t level)
{
    const queue_id a = capacity_ancestor(&c->tree, q, level);

    if (id_none(a) || id_eq(a, c->tree.root) ||
        id_eq(a, capacity_ancestor(&c->tree, r->queue, level))) {
        return NO_QUEUE;
    }
    return a;
}

/* Number of levels to check: there are none above the root. */
static int64_t levels_of(const struct capacity *c, queue_id q)
{
    return c->hierarchy ? HK_MIN(c->levels, (int64_t)c->tree.at[q.i].depth) : 0;
}

static bool ancestors_give(struct capacity *c, const struct reclaim *r, queue_id q,
                           const struct rvec *task)
{
    for (int64_t level = 1; level <= levels_of(c, q); level++) {
        const queue_id a = capacity_reclaim_ancestor(c, r, q, level);

        if (!id_none(a) && !must_give(c, a, task)) {
            return false;
        }
    }
    return true;
}

static bool is_victim(struct capacity *c, const struct reclaim *r, queue_id q,
                      const struct rvec *task)
{
    const uint64_t common = rvec_names(task) & rvec_names(&r->request);

    if ((common & ~(1ULL << DIM_PODS)) == 0 || !above_guarantee(c, q, task)) {
        return false;
    }
    /* Neither queue deserves it and both have a common ancestor: moving it gains nothing. */
    if (levels_of(c, q) > 0 && undeserved(c, q, task) && undeserved(c, r->queue, &r->request) &&
        share_ancestor(c, r->queue, q)) {
        return false;
    }
    return must_give(c, q, task) && ancestors_give(c, r, q, task);
}

static void capacity_subtract_victim(struct capacity *c, const struct reclaim *r, queue_id q,
                                     const struct rvec *task)
{
    rvec_sub(left_of(c, q), task);
    for (int64_t level = 1; level <= levels_of(c, q); level++) {
        const queue_id a = capacity_reclaim_ancestor(c, r, q, level);

        if (!id_none(a)) {
            rvec_sub(left_of(c, a), task);
        }
    }
}

struct victim_order {
    struct session *ssn;
    const task_id *at;
    task_id reclaimer;
};

static bool capacity_victim_before(void *ctx, uint32_t a, uint32_t b)
{
    const struct victim_order *o = ctx;

    return hooks_victim_before(o->ssn, o->at[a], o->at[b], o->reclaimer);
}

static void judge_candidate(struct capacity *c, const struct model *m, const struct reclaim *r,
                            task_id t, struct victims *v)
{
    const queue_id q = ledger_queue(m, t);
    struct rvec task;

    if (id_none(q) || !row(c, q)->in) {
        return;
    }
    shape_rvec(task_shape(m, t), &task);
    if (is_victim(c, r, q, &task)) {
        capacity_subtract_victim(c, r, q, &task);
        victims_keep(v, t);
    }
}

static enum vote capacity_reclaimable(struct session *ssn, void *self, task_id reclaimer,
                                      struct victims *v)
{
    struct capacity *c = self;
    struct reclaim r = {.queue = ledger_queue(ssn->m, reclaimer)};

    if (id_none(r.queue) || !row(c, r.queue)->in) {
        return REJECT;
    }
    shape_rvec(task_shape(ssn->m, reclaimer), &r.request);
    c->victim_queues.n = 0;

    const struct hk_arena_mark mark = hk_arena_mark(ssn->mem);
    struct victim_order order = {ssn, v->in, reclaimer};
    struct hk_heap heap = {.at = hk_arena_array(ssn->mem, v->n, sizeof(uint32_t)),
                           .len = v->n,
                           .cap = v->n,
                           .fixed = true,
                           .less = capacity_victim_before,
                           .ctx = &order};
    for (uint32_t k = 0; k < v->n; k++) {
        heap.at[k] = k;
    }
    hk_heap_make(&heap);
    while (heap.len > 0) {
        judge_candidate(c, ssn->m, &r, v->in[hk_heap_pop(&heap)], v);
    }
    hk_arena_rewind(ssn->mem, mark);
    return PERMIT;
}

/* Bundles have their own order; only the victim's queue is checked, not its ancestors. */
static enum vote capacity_evictable(struct session *ssn, void *self, enum evict_kind kind,
                                    job_id job, hyper_id domain, struct victims *v)
{
    struct capacity *c = self;

    if (kind == EVICT_GANG_PREEMPT) {
        victims_keep_all(v);
        return PERMIT;
    }
    if (!row(c, model_job(ssn->m, job)->queue)->in) {
        return REJECT;
    }
    c->victim_queues.n = 0;
    for (uint32_t k = 0; k < v->n; k++) {
        const queue_id q = ledger_queue(ssn->m, v->in[k]);
        struct rvec task;

        if (id_none(q) || !row(c, q)->in) {
            continue;
        }
        shape_rvec(task_shape(ssn->m, v->in[k]), &task);
        if (above_guarantee(c, q, &task) && must_give(c, q, &task)) {
            rvec_sub(left_of(c, q), &task);
            victims_keep(v, v->in[k]);
        }
    }
    return PERMIT;
}

/* ---- events ---- */

static void capacity_move_task(struct session *ssn, struct capacity *c, queue_id q, task_id t,
                               int sign)
{
    for (queue_id a = q; !id_none(a); a = above(c, a)) {
        ledger_move(row(c, a), ssn->m, t, sign);
    }
}

static bool capacity_allocate(struct session *ssn, void *self, task_id t)
{
    struct capacity *c = self;
    const queue_id q = ledger_queue(ssn->m, t);

    capacity_move_task(ssn, c, q, t, 1);
    reserve(c, ssn->m, q, t, false);
    return true;
}

/* Upstream also renews the reservation of an evicted task, and so keeps the room that the eviction
 * should free. */
static void capacity_deallocate(struct session *ssn, void *self, task_id t)
{
    struct capacity *c = self;
    const queue_id q = ledger_queue(ssn->m, t);
    const struct task *task = model_task(ssn->m, t);

    capacity_move_task(ssn, c, q, t, -1);
    if ((task->flags & TASK_GATE_OPT_IN) && task->status == TASK_PENDING) {
        reserve(c, ssn->m, q, t, true);
    }
}

static bool capacity_queue_report(struct session *ssn, void *self, queue_id q,
                                  struct queue_report *ret)
{
    struct capacity *c = self;

    if (!ledger_report(&c->books, q, ret)) {
        return false;
    }
    ret->overused = ret->share > 1;
    ret->capacity = true;
    ret->parent = above(c, q);
    return true;
}

const struct plugin plugin_capacity = {
    .name = "capacity",
    .about = "capability, deserved share and guarantee of queues, flat or as a tree",
    .state_size = sizeof(struct capacity),
    .opts = capacity_opts,
    .nopt = HK_LEN(capacity_opts),
    .own_hierarchy = true,
    .open = capacity_open,
    .queue_order = capacity_queue_order,
    .victim_queue_order = capacity_victim_queue_order,
    .allocatable = capacity_allocatable,
    .bindable = capacity_bindable,
    .preemptive = capacity_preemptive,
    .reclaimable = capacity_reclaimable,
    .evictable = capacity_evictable,
    .job_enqueueable = capacity_job_enqueueable,
    .job_enqueued = capacity_job_enqueued,
    .allocate = capacity_allocate,
    .deallocate = capacity_deallocate,
    .queue_report = capacity_queue_report,
};
