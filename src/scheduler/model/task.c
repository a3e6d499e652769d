// SPDX-License-Identifier: Apache-2.0
// The task table: a row per pod, its position in the job's lists and on a node, and the only
// function that moves it, model_task_move.
#include "scheduler/model/model_priv.h"
#include "scheduler/model/topo.h"
#include "scheduler/model/volumes.h"

static const char *const status_names[TASK_NSTATUS] = {
    "Pending", "Allocated", "Pipelined", "Binding", "Bound",
    "Running", "Releasing", "Succeeded", "Failed",  "Unknown",
};

const char *task_status_name(enum task_status s)
{
    return status_names[s];
}

task_id model_task_find(const struct model *m, struct hk_str ns, struct hk_str name)
{
    const uint32_t a = hk_intern_find(&m->str, ns), b = hk_intern_find(&m->str, name);

    if (a == HK_NONE || b == HK_NONE) {
        return NO_TASK;
    }
    return (task_id){hk_map_get(&m->task_by_key, PAIR_KEY(a, b))};
}

/* ---- tasks on nodes ---- */

static void link_node(struct model *m, task_id t, node_id n)
{
    struct task *task = model_task(m, t);

    task->node_prev = NO_TASK;
    task->node_next = m->nodes.first[n.i];
    if (!id_none(task->node_next)) {
        model_task(m, task->node_next)->node_prev = t;
    }
    m->nodes.first[n.i] = t;
}

static void unlink_node(struct model *m, task_id t, node_id n)
{
    struct task *task = model_task(m, t);

    if (id_none(task->node_prev)) {
        m->nodes.first[n.i] = task->node_next;
    } else {
        model_task(m, task->node_prev)->node_next = task->node_next;
    }
    if (!id_none(task->node_next)) {
        model_task(m, task->node_next)->node_prev = task->node_prev;
    }
    task->node_next = task->node_prev = NO_TASK;
}

void model_task_view(struct model *m, task_id t, bool in_view)
{
    struct task *task = model_task(m, t);

    if (in_view == !!(task->flags & TASK_IN_VIEW)) {
        return;
    }
    node_view(m, t, task->node, in_view ? 1 : -1);
    task->flags ^= TASK_IN_VIEW;
}

static void enter_node(struct model *m, task_id t)
{
    const struct task *task = model_task(m, t);

    node_books(m, task_shape(m, t), task->status, task->node, 1);
    link_node(m, t, task->node);
    model_task_view(m, t, true);
}

/* Wakes jobs that wait for what this task uses: its room is free now, or will be. */
static void tell_gain(struct model *m, task_id t)
{
    const struct shape *s = task_shape(m, t);

    if (m->in_session) {
        return;
    }
    m->version++;
    for (uint32_t k = 0; k < s->nreq; k++) {
        m->wake.gain[s->req[k].dim] = m->version;
    }
}

static void leave_node(struct model *m, task_id t)
{
    const struct task *task = model_task(m, t);
    const node_id n = task->node;

    model_task_view(m, t, false);
    unlink_node(m, t, n);
    node_books(m, task_shape(m, t), task->status, n, -1);
    tell_gain(m, t);
}

static bool model_task_is_on_node(const struct task *task)
{
    return status_on_node(task->status) && !id_none(task->node);
}

void model_task_move(struct model *m, task_id t, enum task_status status, node_id node)
{
    struct task *task = model_task(m, t);
    const enum task_status from = task->status;
    const bool was_placed = !id_none(task->node), was = model_task_is_on_node(task);
    const bool stays = was && status_on_node(status) && id_eq(task->node, node);

    if (stays) {
        node_books(m, task_shape(m, t), from, node, -1);
        node_books(m, task_shape(m, t), status, node, 1);
    } else if (was) {
        leave_node(m, t);
    }
    task->status = (uint8_t)status;
    task->node = node;
    if (!stays && model_task_is_on_node(task)) {
        enter_node(m, t);
    }
    if (from == status && was_placed == !id_none(node)) {
        return;
    }
    job_task_change(m, t, from, was_placed);
    if (stays && status == TASK_RELEASING) {
        tell_gain(m, t);
    }
    if (stays && !m->in_session) {
        m->wake.victim = ++m->version;
    }
}

void model_task_unbind(struct model *m, task_id t)
{
    volumes_unreserve(m, t);
    model_task_move(m, t, TASK_PENDING, NO_NODE);
}

void model_task_stay(struct model *m, task_id t)
{
    model_task(m, t)->leaving = false;
}

void model_task_hold(struct model *m, task_id t, bool held)
{
    struct task *task = model_task(m, t);

    if (held == !!(task->flags & TASK_HELD)) {
        return;
    }
    task->flags ^= TASK_HELD;
    if (!id_none(task->job)) {
        job_mark_dirty(m, task->job);
    }
}

void model_task_nominate(struct model *m, task_id t, node_id n)
{
    struct task *task = model_task(m, t);

    task->nominated = model_node_ref(m, n);
    if (!id_none(n) && !(task->flags & TASK_NOMINATED)) {
        task->flags |= TASK_NOMINATED;
        hk_vec_push(&m->nominated, model_task_ref(m, t));
    }
}

/* ---- rows ---- */

/* The index by which Volcano orders equal tasks: the digits after the last of at least two
 * dashes. */
static uint32_t pod_index(struct hk_str name)
{
    const char *last = memrchr(name.s, '-', name.n);
    int64_t v;

    if (!last || !memchr(name.s, '-', (size_t)(last - name.s))) {
        return ID_NONE;
    }
    if (!hk_str_int((struct hk_str){last + 1, name.n - (size_t)(last + 1 - name.s)}, &v) || v < 0 ||
        v >= ID_NONE) {
        return ID_NONE;
    }
    return (uint32_t)v;
}

static void requested(struct model *m, const struct shape *s, int sign)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        m->requested[s->req[k].dim] += sign * s->req[k].v;
    }
}

static int check_total(const struct model *m, const struct task_desc *d, task_id old,
                       struct hk_err *err)
{
    const struct shape *s = model_shape(m, d->shape);

    for (uint32_t k = 0; k < s->nreq; k++) {
        const uint32_t dim = s->req[k].dim;
        const int64_t leaves = id_none(old) ? 0 : shape_req(task_shape(m, old), dim);
        if (m->requested[dim] - leaves > DIM_TOTAL_LIMIT - s->req[k].v) {
            return hk_fail(err, HK_ELIMIT,
                           "pod '%.*s/%.*s': all requests for %.*s together are past 2^61",
                           HK_FMT(d->ns), HK_FMT(d->name), HK_FMT(m->dims.text[dim]));
        }
    }
    return 0;
}

static void model_task_detach(struct model *m, task_id t)
{
    struct task *task = model_task(m, t);
    const node_id n = task->node;

    if (model_task_is_on_node(task)) {
        leave_node(m, t);
    }
    if (!id_none(task->job)) {
        job_task_remove(m, t);
    }
    volumes_unreserve(m, t);
    requested(m, task_shape(m, t), -1);
    m->gate_opt_in -= (task->flags & TASK_GATE_OPT_IN) != 0;
    model_shape_unref(m, task->shape);
    ident_unref(m, task->ident);
    if (!id_none(n)) {
        node_drop_if_idle(m, n);
    }
}

static void task_set_facts(struct task *task, const struct task_desc *d)
{
#define SET_FACT(type, name) task->name = d->name;
    TASK_FACTS(SET_FACT)
}

static void model_task_fill_row(struct model *m, task_id t, const struct task_desc *d)
{
    struct task *task = &m->tasks.at[t.i];

    *task = (struct task){
        .used = true,
        .job = NO_JOB,
        .sub = NO_SUB,
        .node = d->node.n ? model_node_need(m, d->node) : NO_NODE,
        .shape = d->shape,
        .ident = d->ident,
        .role = d->role,
        .priority = d->priority,
        .pod_priority = d->pod_priority,
        .flags = (uint16_t)d->flags,
        .status = (uint8_t)d->status,
        .ns = hk_intern_hold(&m->str, d->ns),
        .name = hk_intern_hold(&m->str, d->name),
        .uid = hk_intern_hold(&m->str, d->uid),
        .index = pod_index(d->name),
        .job_next = NO_TASK,
        .job_prev = NO_TASK,
        .node_next = NO_TASK,
        .node_prev = NO_TASK,
    };
    task_set_facts(task, d);
    hk_intern_keep(&m->str, task->role);
    if (task_shape(m, t)->best_effort) {
        task->flags |= TASK_BEST_EFFORT;
    }
    if (d->nominated.n) {
        model_task_nominate(m, t, model_node_find(m, d->nominated));
    }
}

static void model_task_attach(struct model *m, task_id t, const struct task_desc *d)
{
    model_task_fill_row(m, t, d);
    struct task *task = model_task(m, t);

    requested(m, task_shape(m, t), 1);
    ident_ref(m, task->ident);
    m->gate_opt_in += (task->flags & TASK_GATE_OPT_IN) != 0;
    if (model_task_is_on_node(task)) {
        enter_node(m, t);
    }
    if (d->group.n) {
        const uint32_t group = hk_intern_hold(&m->str, d->group);
        task->job = job_need(m, task->ns, group);
        hk_intern_drop(&m->str, group);
        if (model_task_is_on_node(task)) {
            job_learn_queue(m, task->job, d->queue);
        }
        job_task_add(m, t);
    }
    m->version++;
}

/* Whether the pod event is older than our own bind. */
static bool is_stale(const struct model *m, task_id t, const struct task_desc *d)
{
    const struct task *task = model_task(m, t);

    return status_in(task->status, STATUS_ALLOCATED) && d->node.n == 0 &&
           d->status == TASK_PENDING && hk_str_eq(model_str(m, task->uid), d->uid);
}

/* Flags that do not come from the pod: a new description of the same pod keeps them. */
#define OWN_FLAGS (TASK_IN_VIEW | TASK_BEST_EFFORT | TASK_NOMINATED | TASK_HELD)

/* Whether the row can stay in place: same pod, same lists, same amounts. Most events are of this
 * kind (a pod started, its conditions changed) and must not look as if room became free. */
static bool keeps_place(const struct model *m, task_id t, const struct task_desc *d)
{
    const struct task *task = model_task(m, t);
    const unsigned gates = TASK_GATED | TASK_GATE_OURS_ONLY | TASK_GATE_OPT_IN;
    const struct hk_str group =
        id_none(task->job) ? HK_STR("") : model_str(m, model_job(m, task->job)->name);

    return id_eq(task->shape, d->shape) && id_eq(task->ident, d->ident) && task->role == d->role &&
           task->priority == d->priority && ((task->flags ^ d->flags) & gates) == 0 &&
           hk_str_eq(group, d->group) && hk_str_eq(model_str(m, task->uid), d->uid);
}

static void model_task_update(struct model *m, task_id t, const struct task_desc *d)
{
    struct task *task = model_task(m, t);
    const node_id from = task->node, n = d->node.n ? model_node_need(m, d->node) : NO_NODE;
    const node_id nominated = d->nominated.n ? model_node_find(m, d->nominated) : NO_NODE;
    const uint16_t flags =
        (uint16_t)((task->flags & OWN_FLAGS) | (d->flags & ~(unsigned)OWN_FLAGS));
    const bool said = flags != task->flags || task->pod_priority != d->pod_priority ||
                      !id_eq(nominated, model_node_of(m, task->nominated));
    const bool recount = ((flags ^ task->flags) & TASK_TERMINATING) && (flags & TASK_IN_VIEW);

    task->flags = flags;
    if (recount) { /* spreading does not count pods that are being deleted */
        topo_pod_remove(m, t, from);
        topo_pod_add(m, t, from);
    }
    task->pod_priority = d->pod_priority;
    task_set_facts(task, d);
    model_task_nominate(m, t, nominated);
    if (task->status == TASK_BINDING && d->status != TASK_BINDING) {
        volumes_unreserve(m, t);
    }
    if (task->status != d->status || !id_eq(from, n)) {
        model_task_move(m, t, d->status, n);
    } else if (said) {
        m->wake.victim = ++m->version;
        if (!id_none(task->job)) {
            job_mark_dirty(m, task->job);
        }
    }
    if (!id_none(from) && !id_eq(from, n)) {
        node_drop_if_idle(m, from);
    }
}

/* An event older than our own eviction does not undo it. */
static struct task_desc as_leaving(const struct model *m, task_id t, const struct task_desc *d)
{
    const struct task *task = model_task(m, t);
    struct task_desc copy = *d;

    if (status_in(d->status, STATUS_BIT(TASK_BOUND) | STATUS_BIT(TASK_RUNNING))) {
        copy.status = TASK_RELEASING;
        copy.flags |= task->flags & TASK_PREEMPT_VICTIM;
    }
    return copy;
}

/* Rebuilds the row. The description may point to strings of the model itself, so they are held
 * until the new row has read them. */
static void model_task_replace(struct model *m, task_id t, const struct task_desc *d)
{
    const struct task old = *model_task(m, t);
    const struct job *j = id_none(old.job) ? NULL : model_job(m, old.job);
    struct task_desc copy = *d;

    if (j && j->queue_name && hk_str_eq(model_str(m, j->name), d->group)) {
        copy.queue = model_str(m, j->queue_name); /* the only task's job is created again */
    }
    const uint32_t words[] = {hk_intern_hold(&m->str, d->group), hk_intern_hold(&m->str, d->node),
                              hk_intern_hold(&m->str, d->nominated),
                              hk_intern_hold(&m->str, copy.queue)};

    model_task_detach(m, t);
    model_task_attach(m, t, &copy);
    if (old.uid == model_task(m, t)->uid) {
        model_task(m, t)->leaving = old.leaving;
        model_task(m, t)->flags |= old.flags & TASK_HELD;
    } else {
        m->task_gen.at[t.i]++; /* another pod of the same name */
    }
    task_strings(&old, &m->str, hk_intern_drop);
    for (uint32_t k = 0; k < HK_LEN(words); k++) {
        hk_intern_drop(&m->str, words[k]);
    }
}

static task_id model_task_add(struct model *m, const struct task_desc *d)
{
    const task_id t = {TABLE_ROW(&m->tasks)};

    if (t.i == m->task_gen.len) {
        hk_vec_push(&m->task_gen, 1);
    }
    model_task_attach(m, t, d);
    hk_map_put(&m->task_by_key, PAIR_KEY(model_task(m, t)->ns, model_task(m, t)->name), t.i);
    return t;
}

static int model_task_add_or_update(struct model *m, const struct task_desc *d, task_id *ret,
                                    struct hk_err *err)
{
    task_id t = model_task_find(m, d->ns, d->name);
    struct task_desc copy;
    int rc;

    if (!id_none(t) && model_task(m, t)->leaving &&
        hk_str_eq(model_str(m, model_task(m, t)->uid), d->uid)) {
        copy = as_leaving(m, t, d);
        d = &copy;
    }
    if (!id_none(t) && is_stale(m, t, d)) {
        model_shape_unref(m, d->shape);
        *ret = t;
        return 0;
    }
    if (!id_none(t) && keeps_place(m, t, d)) {
        model_shape_unref(m, d->shape);
        model_task_update(m, t, d);
        *ret = t;
        return 0;
    }
    rc = check_total(m, d, t, err);
    if (rc < 0) {
        model_shape_unref(m, d->shape);
        return rc;
    }
    if (id_none(t)) {
        t = model_task_add(m, d);
    } else {
        model_task_replace(m, t, d);
    }
    *ret = t;
    return 0;
}

int model_task_put(struct model *m, const struct task_desc *d, task_id *ret, struct hk_err *err)
{
    const ident_id ident = d->ident;
    int rc;

    ident_ref(m, ident); /* the old row may hold the last reference, the new row none */
    rc = model_task_add_or_update(m, d, ret, err);
    ident_unref(m, ident);
    return rc;
}

void model_task_del(struct model *m, task_id t)
{
    struct task *task = model_task(m, t);

    hk_map_del(&m->task_by_key, PAIR_KEY(task->ns, task->name));
    model_task_detach(m, t);
    task_strings(model_task(m, t), &m->str, hk_intern_drop);
    *model_task(m, t) = (struct task){0};
    m->task_gen.at[t.i]++; /* invalidates references to the pod */
    hk_vec_push(&m->tasks.free, t.i);
    m->version++;
}
