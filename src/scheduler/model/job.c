// SPDX-License-Identifier: Apache-2.0
// Jobs, their sub-jobs and roles: counts by state, sums of requests, and which jobs the next
// session must consider. A row is created with the PodGroup or with the first pod that names it,
// and removed when neither is left.
#include "scheduler/model/model_priv.h"

static const char *const phase_names[] = {
    [PG_NONE] = "",           [PG_PENDING] = "Pending", [PG_RUNNING] = "Running",
    [PG_UNKNOWN] = "Unknown", [PG_INQUEUE] = "Inqueue", [PG_COMPLETED] = "Completed",
};

const char *pg_phase_name(enum pg_phase p)
{
    return phase_names[p];
}

/* ---- lists of tasks ---- */

static task_id *model_job_task_list(struct job *j, enum task_status s)
{
    return s == TASK_PENDING ? &j->pending : &j->others;
}

static void list_push(struct model *m, struct job *j, task_id t, enum task_status s)
{
    task_id *head = model_job_task_list(j, s);
    struct task *task = model_task(m, t);

    task->job_prev = NO_TASK;
    task->job_next = *head;
    if (!id_none(*head)) {
        model_task(m, *head)->job_prev = t;
    }
    *head = t;
}

static void list_take(struct model *m, struct job *j, task_id t, enum task_status s)
{
    struct task *task = model_task(m, t);

    if (id_none(task->job_prev)) {
        *model_job_task_list(j, s) = task->job_next;
    } else {
        model_task(m, task->job_prev)->job_next = task->job_next;
    }
    if (!id_none(task->job_next)) {
        model_task(m, task->job_next)->job_prev = task->job_prev;
    }
}

/* ---- counting ---- */

static void tally_count(struct tally *t, enum task_status s, bool best_effort, int sign)
{
    t->n[s] += (uint32_t)sign;
    if (s == TASK_PENDING && best_effort) {
        t->pending_be += (uint32_t)sign;
    }
}

static struct role *role_find(struct job *j, uint32_t name)
{
    for (uint32_t k = 0; k < j->roles.len; k++) {
        if (j->roles.at[k].name == name) {
            return &j->roles.at[k];
        }
    }
    return NULL;
}

static struct role *role_need(struct model *m, struct job *j, uint32_t name)
{
    struct role *r = role_find(j, name);

    if (!r) {
        hk_vec_push(&j->roles, ((struct role){.name = name}));
        hk_intern_keep(&m->str, name);
        r = &j->roles.at[j->roles.len - 1];
    }
    return r;
}

static void vec_add(int64_t *v, const struct shape *s, int sign)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        v[s->req[k].dim] += sign * s->req[k].v;
    }
}

/* Adds what a task in that state contributes to its job and queue; placed: it is on a node. */
static void sums(struct model *m, job_id job, const struct shape *s, enum task_status st,
                 bool placed, int sign)
{
    const struct job *j = model_job(m, job);
    const bool alloc = status_in(st, STATUS_ALLOCATED), pending = st == TASK_PENDING;
    const bool leaving = st == TASK_RELEASING && placed;
    const queue_id books = job_books(j);
    struct queue *q = id_none(books) ? NULL : model_queue(m, books);

    if (alloc) {
        vec_add(job_vec(m, job, JV_ALLOC), s, sign);
    }
    if (leaving) {
        vec_add(job_vec(m, job, JV_LEAVING), s, sign);
    }
    if (pending) {
        vec_add(job_vec(m, job, JV_PENDING), s, sign);
    }
    if (q && alloc) {
        vec_add(q->allocated, s, sign);
    }
    if (q && leaving) {
        vec_add(q->leaving, s, sign);
    }
    if (q && (alloc || (pending && j->has_pg))) {
        vec_add(q->request, s, sign);
    }
}

/* States in which a task counts against its queue. */
#define QUEUE_HOLDS (STATUS_ALLOCATED | STATUS_BIT(TASK_RELEASING))

/* Requests of gated tasks are deducted from what their queue promised the job. A task whose only
 * gate is our own counts as not gated: the queue is about to remove that gate. */
static bool counts_as_gated(const struct task *t)
{
    return (t->flags & TASK_GATED) && !(t->flags & TASK_GATE_OURS_ONLY);
}

static void count_everywhere(struct model *m, task_id t, enum task_status s, bool placed, int sign)
{
    const struct task *task = model_task(m, t);
    struct job *j = model_job(m, task->job);
    const bool be = task->flags & TASK_BEST_EFFORT;
    struct role *r = role_find(j, task->role);

    tally_count(&j->tally, s, be, sign);
    tally_count(&model_sub(m, task->sub)->tally, s, be, sign);
    if (r) {
        tally_count(&r->tally, s, be, sign);
    }
    sums(m, task->job, task_shape(m, t), s, placed, sign);
}

void job_task_change(struct model *m, task_id t, enum task_status from, bool was_placed)
{
    const job_id job = model_task(m, t)->job;
    const enum task_status to = model_task(m, t)->status;
    struct job *j;

    if (id_none(job)) {
        return;
    }
    j = model_job(m, job);
    if ((from == TASK_PENDING) != (to == TASK_PENDING)) {
        list_take(m, j, t, from);
        list_push(m, j, t, to);
    }
    count_everywhere(m, t, from, was_placed, -1);
    count_everywhere(m, t, to, !id_none(model_task(m, t)->node), 1);
    job_mark_dirty(m, job);
    if (status_in(from, QUEUE_HOLDS) && (to != from) && !status_in(to, STATUS_ALLOCATED)) {
        job_wake_queue(m);
    }
}

/* ---- sub-jobs ---- */

/* Takes over the reference to id. */
static sub_id sub_new(struct model *m, job_id job, uint32_t policy, uint32_t id)
{
    const sub_id s = {TABLE_ROW(&m->subs)};
    struct sub_job *sub = model_sub(m, s);
    struct job *j = model_job(m, job);

    *sub = (struct sub_job){.job = job,
                            .policy = policy,
                            .id = id,
                            .mark = NO_HYPER,
                            .nominated = NO_HYPER,
                            .next = j->first_sub};
    j->first_sub = s;
    if (policy == ID_NONE) {
        j->default_sub = s;
    } else {
        hk_map_put(&m->sub_by_key, PAIR_KEY(policy, id), s.i);
    }
    return s;
}

/* Copies minimum and topology from the PodGroup's spec. */
static void sub_refresh(struct model *m, sub_id s)
{
    struct sub_job *sub = model_sub(m, s);
    const struct job *j = model_job(m, sub->job);

    if (sub->policy == ID_NONE) {
        sub->min = j->policies.len ? 1 : j->min;
        sub->topo = j->topo;
    } else {
        sub->min = j->policies.at[sub->policy].size;
        sub->topo = j->policies.at[sub->policy].topo;
    }
}

/* Values of the policy's keys joined by dashes; false when the pod lacks one or does not match. */
static bool policy_values(const struct model *m, const struct policy *p, struct labels l,
                          struct hk_buf *values, uint32_t *first)
{
    if (p->nkey == 0 || (p->has_sel && !label_sel_match(&p->sel, l, &m->str))) {
        return false;
    }
    for (uint32_t k = 0; k < p->nkey; k++) {
        uint32_t val;
        if (!labels_get(l, p->key[k], &val) || val == 0) {
            return false;
        }
        if (k == 0) {
            *first = val;
        } else {
            hk_buf_addc(values, '-');
        }
        hk_buf_addstr(values, model_str(m, val));
    }
    return true;
}

/* Returns the name with a reference. */
static uint32_t sub_name(struct model *m, job_id job, const struct policy *p, struct hk_str values)
{
    HK_AUTO(hk_buf_fini) struct hk_buf id = {0};
    const struct job *j = model_job(m, job);

    hk_buf_addf(&id, "%.*s/%.*s", HK_FMT(model_str(m, j->ns)), HK_FMT(model_str(m, j->name)));
    if (p) {
        hk_buf_addf(&id, "/%.*s-%.*s", HK_FMT(model_str(m, p->name)), HK_FMT(values));
    }
    return hk_intern_hold(&m->str, hk_buf_str(&id));
}

/* The sub-job of the first sub-group policy whose keys the pod has, else the default sub-job. */
static sub_id sub_for(struct model *m, job_id job, struct labels l)
{
    struct job *j = model_job(m, job);
    HK_AUTO(hk_buf_fini) struct hk_buf values = {0};
    uint32_t policy = ID_NONE, id, first = 0;
    int64_t index = 0;
    sub_id s;

    for (uint32_t k = 0; k < j->policies.len && policy == ID_NONE; k++) {
        hk_buf_clear(&values);
        if (policy_values(m, &j->policies.at[k], l, &values, &first)) {
            policy = k;
        }
    }
    if (policy == ID_NONE && !id_none(j->default_sub)) {
        return j->default_sub;
    }
    id = sub_name(m, job, policy == ID_NONE ? NULL : &j->policies.at[policy], hk_buf_str(&values));
    s.i = hk_map_get(&m->sub_by_key, PAIR_KEY(policy, id));
    if (!id_none(s)) {
        hk_intern_drop(&m->str, id);
        return s;
    }
    s = sub_new(m, job, policy, id);
    if (policy != ID_NONE && hk_str_int(model_str(m, first), &index)) {
        model_sub(m, s)->match_index = index;
    }
    sub_refresh(m, s);
    return s;
}

static void sub_drop(struct model *m, job_id job, sub_id s)
{
    struct job *j = model_job(m, job);
    sub_id *at = &j->first_sub;

    if (id_eq(j->default_sub, s)) {
        j->default_sub = NO_SUB;
    } else {
        hk_map_del(&m->sub_by_key, PAIR_KEY(model_sub(m, s)->policy, model_sub(m, s)->id));
    }
    while (!id_eq(*at, s)) {
        at = &model_sub(m, *at)->next;
    }
    *at = model_sub(m, s)->next;
    hk_intern_drop(&m->str, model_sub(m, s)->id);
    *model_sub(m, s) = (struct sub_job){0};
    hk_vec_push(&m->subs.free, s.i);
}

/* ---- adding and removing tasks ---- */

void job_task_add(struct model *m, task_id t)
{
    struct task *task = model_task(m, t);
    const job_id job = task->job;
    struct sub_job *sub;

    task->sub = sub_for(m, job, ident_labels(m, task->ident));
    sub = model_sub(m, task->sub);
    sub->tally.total++;
    sub->priority = HK_MAX(sub->priority, task->priority);

    struct job *j = model_job(m, job);
    j->tally.total++;
    role_need(m, j, task->role)->tally.total++;
    list_push(m, j, t, task->status);
    count_everywhere(m, t, task->status, !id_none(task->node), 1);
    vec_add(job_vec(m, job, JV_TOTAL), task_shape(m, t), 1);
    if (counts_as_gated(task)) {
        vec_add(job_vec(m, job, JV_GATED), task_shape(m, t), 1);
        j->ngated++;
    }
    job_mark_dirty(m, job);
}

void job_task_remove(struct model *m, task_id t)
{
    struct task *task = model_task(m, t);
    const job_id job = task->job;
    struct job *j = model_job(m, job);
    const sub_id s = task->sub;

    count_everywhere(m, t, task->status, !id_none(task->node), -1);
    vec_add(job_vec(m, job, JV_TOTAL), task_shape(m, t), -1);
    if (counts_as_gated(task)) {
        vec_add(job_vec(m, job, JV_GATED), task_shape(m, t), -1);
        j->ngated--;
    }
    list_take(m, j, t, task->status);
    j->tally.total--;
    role_find(j, task->role)->tally.total--;
    task->job = NO_JOB;
    task->sub = NO_SUB;
    if (--model_sub(m, s)->tally.total == 0) {
        sub_drop(m, job, s);
    }
    job_wake_queue(m);
    job_mark_dirty(m, job);
    job_drop_if_idle(m, job);
}

/* ---- rows ---- */

job_id model_job_find(const struct model *m, struct hk_str ns, struct hk_str name)
{
    const uint32_t a = hk_intern_find(&m->str, ns), b = hk_intern_find(&m->str, name);

    if (a == HK_NONE || b == HK_NONE) {
        return NO_JOB;
    }
    return (job_id){hk_map_get(&m->job_by_key, PAIR_KEY(a, b))};
}

job_id job_need(struct model *m, uint32_t ns, uint32_t name)
{
    job_id job = {hk_map_get(&m->job_by_key, PAIR_KEY(ns, name))};
    struct job *j;

    if (!id_none(job)) {
        return job;
    }
    job.i = TABLE_ROW(&m->jobs);
    j = &m->jobs.at[job.i];
    *j = (struct job){.used = true,
                      .ns = ns,
                      .name = name,
                      .queue = NO_QUEUE,
                      .held_in = NO_QUEUE,
                      .first_sub = NO_SUB,
                      .default_sub = NO_SUB,
                      .pending = NO_TASK,
                      .others = NO_TASK,
                      .mark = NO_HYPER,
                      .active_pos = ID_NONE,
                      .vec = hk_zalloc_array((size_t)JV_N * m->stride, sizeof(int64_t))};
    hk_intern_keep(&m->str, ns);
    hk_intern_keep(&m->str, name);
    hk_map_put(&m->job_by_key, PAIR_KEY(ns, name), job.i);
    return job;
}

static void policies_fini(struct job *j)
{
    for (uint32_t k = 0; k < j->policies.len; k++) {
        struct policy *p = &j->policies.at[k];
        for (uint32_t r = 0; r < p->sel.n; r++) {
            hk_free((void *)p->sel.at[r].vals);
        }
        hk_free((void *)p->sel.at);
        hk_free((void *)p->key);
    }
    hk_vec_fini(&j->policies);
}

void job_fini(struct job *j)
{
    policies_fini(j);
    hk_vec_fini(&j->roles);
    hk_vec_fini(&j->min_items);
    hk_free(j->vec);
}

static void leave_active(struct model *m, job_id job)
{
    struct job *j = model_job(m, job);
    const uint32_t pos = j->active_pos;
    job_id last;

    if (pos == ID_NONE) {
        return;
    }
    last = hk_vec_pop(&m->active);
    if (!id_eq(last, job)) {
        m->active.at[pos] = last;
        model_job(m, last)->active_pos = pos;
    }
    j->active_pos = ID_NONE;
}

void job_refresh_active(struct model *m, job_id job)
{
    struct job *j = model_job(m, job);
    const bool want =
        j->has_pg && !id_none(j->queue) &&
        (j->tally.n[TASK_PENDING] > 0 || j->phase == PG_PENDING || j->phase == PG_NONE);

    if (want && j->active_pos == ID_NONE) {
        j->active_pos = m->active.len;
        hk_vec_push(&m->active, job);
    } else if (!want) {
        leave_active(m, job);
    }
}

void job_mark_dirty(struct model *m, job_id job)
{
    struct job *j = model_job(m, job);

    if (!m->in_session) {
        j->changed = ++m->version;
    }
    if (!j->dirty) {
        j->dirty = true;
        hk_vec_push(&m->dirty_jobs, job);
    }
}

void job_drop_if_idle(struct model *m, job_id job)
{
    struct job *j = model_job(m, job);

    if (j->has_pg || j->tally.total > 0) {
        return;
    }
    leave_active(m, job);
    for (uint32_t d = 0; d < m->dims.n; d++) {
        m->over_inqueue[d] -= job_vec(m, job, JV_OVER)[d];
        m->minres_total[d] -= job_vec(m, job, JV_MINRES)[d];
    }
    hk_map_del(&m->job_by_key, PAIR_KEY(j->ns, j->name));
    job_strings(j, &m->str, hk_intern_drop);
    job_fini(j);
    /* The row stays in dirty_jobs: settle skips unused rows. */
    *j = (struct job){.dirty = j->dirty, .active_pos = ID_NONE};
    hk_vec_push(&m->jobs.free, job.i);
}

/* ---- the PodGroup ---- */

static void count_in_queue(struct model *m, job_id job, int sign)
{
    const struct job *j = model_job(m, job);
    const queue_id books = job_books(j);
    struct queue *q;

    if (id_none(books)) {
        return;
    }
    q = model_queue(m, books);
    q->njobs += j->has_pg ? (uint32_t)sign : 0;
    for (uint32_t d = 0; d < m->dims.n; d++) {
        q->allocated[d] += sign * job_vec(m, job, JV_ALLOC)[d];
        q->leaving[d] += sign * job_vec(m, job, JV_LEAVING)[d];
        q->request[d] += sign * job_vec(m, job, JV_ALLOC)[d];
        if (j->has_pg) {
            q->request[d] += sign * job_vec(m, job, JV_PENDING)[d];
            q->inqueue[d] += sign * job_vec(m, job, JV_INQ)[d];
            q->elastic[d] += sign * job_vec(m, job, JV_ELASTIC)[d];
        }
    }
}

/* Counts the pods of a job without PodGroup in this queue; NO_QUEUE: in none. */
static void hold_in_queue(struct model *m, job_id job, queue_id q)
{
    struct job *j = model_job(m, job);

    hk_assert(!j->has_pg);
    if (!id_eq(j->held_in, q)) {
        count_in_queue(m, job, -1);
        j->held_in = q;
        count_in_queue(m, job, 1);
        job_wake_queue(m);
    }
}

void job_learn_queue(struct model *m, job_id job, struct hk_str queue)
{
    struct job *j = model_job(m, job);

    if (!j->has_pg && j->queue_name == 0 && queue.n > 0) {
        j->queue_name = hk_intern_hold(&m->str, queue);
        hold_in_queue(m, job, model_queue_find(m, queue));
    }
}

void job_set_queue(struct model *m, job_id job, queue_id q)
{
    struct job *j = model_job(m, job);

    if (!id_eq(j->queue, q)) {
        count_in_queue(m, job, -1);
        j->queue = q;
        count_in_queue(m, job, 1);
        job_wake_queue(m);
        job_mark_dirty(m, job);
    }
    job_refresh_active(m, job);
}

static void enter_queue(struct model *m, job_id job, queue_id q)
{
    if (model_job(m, job)->has_pg) {
        job_set_queue(m, job, q);
    } else {
        hold_in_queue(m, job, q);
    }
}

void queue_attach_jobs(struct model *m, queue_id q)
{
    for (uint32_t i = 0; i < m->jobs.len; i++) {
        const struct job *j = &m->jobs.at[i];
        if (j->used && j->queue_name == model_queue(m, q)->name) {
            enter_queue(m, (job_id){i}, q);
        }
    }
}

void queue_detach_jobs(struct model *m, queue_id q)
{
    for (uint32_t i = 0; i < m->jobs.len; i++) {
        if (m->jobs.at[i].used && id_eq(job_books(&m->jobs.at[i]), q)) {
            enter_queue(m, (job_id){i}, NO_QUEUE);
        }
    }
}

static void set_roles(struct model *m, struct job *j, const struct job_desc *d)
{
    for (uint32_t k = 0; k < j->roles.len; k++) {
        j->roles.at[k].min = 0;
    }
    j->role_min_total = 0;
    for (uint32_t k = 0; k < d->nrole; k++) {
        role_need(m, j, d->roles[k].name)->min = d->roles[k].min;
        j->role_min_total += d->roles[k].min;
    }
}

static struct label_sel copy_sel(const struct label_sel *s)
{
    struct label_req *at = hk_zalloc_array(s->n + 1, sizeof(*at));

    for (uint32_t k = 0; k < s->n; k++) {
        uint32_t *vals = hk_zalloc_array(s->at[k].n + 1, sizeof(*vals));
        for (uint32_t i = 0; i < s->at[k].n; i++) {
            vals[i] = s->at[k].vals[i];
        }
        at[k] = s->at[k];
        at[k].vals = vals;
    }
    return (struct label_sel){.nothing = s->nothing, .n = s->n, .at = at};
}

static void set_policies(struct model *m, struct job *j, const struct job_desc *d)
{
    for (uint32_t k = 0; k < d->npolicy; k++) {
        const struct policy_desc *pd = &d->policies[k];
        uint32_t *keys = hk_zalloc_array(pd->nkey + 1, sizeof(*keys));
        for (uint32_t i = 0; i < pd->nkey; i++) {
            keys[i] = pd->keys[i];
            hk_intern_keep(&m->str, keys[i]);
        }
        label_sel_strings(&pd->sel, &m->str, hk_intern_keep);
        hk_intern_keep(&m->str, pd->topo.tier_name);
        hk_vec_push(&j->policies, ((struct policy){.name = hk_intern_hold(&m->str, pd->name),
                                                   .size = pd->size,
                                                   .min_groups = pd->min_groups,
                                                   .has_sel = pd->has_sel,
                                                   .sel = copy_sel(&pd->sel),
                                                   .nkey = pd->nkey,
                                                   .key = keys,
                                                   .topo = pd->topo}));
    }
}

/* After a change of policies: assigns every task to its sub-job again. */
static void regroup(struct model *m, job_id job)
{
    struct job *j = model_job(m, job);
    HK_VEC(task_id) all = {0};

    for (task_id t = j->pending; !id_none(t); t = model_task(m, t)->job_next) {
        hk_vec_push(&all, t);
    }
    for (task_id t = j->others; !id_none(t); t = model_task(m, t)->job_next) {
        hk_vec_push(&all, t);
    }
    for (uint32_t k = all.len; k-- > 0;) {
        job_task_remove(m, all.at[k]);
    }
    for (uint32_t k = all.len; k-- > 0;) {
        model_task(m, all.at[k])->job = job;
        job_task_add(m, all.at[k]);
    }
    hk_vec_fini(&all);
}

static void set_minres(struct model *m, job_id job, const struct job_desc *d)
{
    struct job *j = model_job(m, job);
    int64_t *v = job_vec(m, job, JV_MINRES);

    for (uint32_t k = 0; k < m->dims.n; k++) {
        m->minres_total[k] -= v[k];
        v[k] = 0;
    }
    j->has_minres = d->has_minres;
    j->minres_has = 0;
    for (uint32_t k = 0; k < d->nminres; k++) {
        v[d->minres[k].dim] = d->minres[k].v;
        m->minres_total[d->minres[k].dim] += d->minres[k].v;
        j->minres_has |= 1ULL << d->minres[k].dim;
    }
    for (uint32_t k = 0; k < d->nmin_items; k++) {
        hk_vec_push(&j->min_items, d->min_items[k]);
        hk_intern_keep(&m->str, d->min_items[k].name);
    }
}

int model_job_check(const struct model *m, const struct job_desc *d, struct hk_err *err)
{
    const job_id old = model_job_find(m, d->ns, d->name);

    for (uint32_t k = 0; k < d->nminres; k++) {
        const uint32_t dim = d->minres[k].dim;
        const int64_t leaves = id_none(old) ? 0 : job_vec(m, old, JV_MINRES)[dim];
        if (m->minres_total[dim] - leaves > DIM_TOTAL_LIMIT - d->minres[k].v) {
            return hk_fail(err, HK_ELIMIT,
                           "podgroup '%.*s/%.*s': all minResources for %.*s together are "
                           "past 2^61",
                           HK_FMT(d->ns), HK_FMT(d->name), HK_FMT(m->dims.text[dim]));
        }
    }
    return 0;
}

static job_id need_named(struct model *m, struct hk_str ns_text, struct hk_str name_text)
{
    const uint32_t ns = hk_intern_hold(&m->str, ns_text);
    const uint32_t name = hk_intern_hold(&m->str, name_text);
    const job_id job = job_need(m, ns, name);

    hk_intern_drop(&m->str, ns);
    hk_intern_drop(&m->str, name);
    return job;
}

/* Drops the old description's strings after the new one holds its own. */
static void set_spec(struct model *m, job_id job, const struct job_desc *d)
{
    struct job *j = model_job(m, job);
    struct job old = *j;

    memset(&j->policies, 0, sizeof(j->policies));
    memset(&j->min_items, 0, sizeof(j->min_items));
    j->uid = hk_intern_hold(&m->str, d->uid);
    j->queue_name = hk_intern_hold(&m->str, d->queue);
    j->prio_class = hk_intern_hold(&m->str, d->prio_class);
    j->priority = d->priority;
    j->phase = (uint8_t)d->phase;
#define SET_FACT(type, name) j->name = d->name;
    JOB_FACTS(SET_FACT)
    j->topo = d->topo;
    hk_intern_keep(&m->str, j->topo.tier_name);
    j->budget_min = hk_intern_hold(&m->str, d->budget_min);
    j->budget_max_unavailable = hk_intern_hold(&m->str, d->budget_max_unavailable);
    set_roles(m, j, d);
    set_minres(m, job, d);
    set_policies(m, j, d);
    job_spec_strings(&old, &m->str, hk_intern_drop);
    policies_fini(&old);
    hk_vec_fini(&old.min_items);
}

job_id model_job_put(struct model *m, const struct job_desc *d)
{
    const job_id job = need_named(m, d->ns, d->name);
    struct job *j = model_job(m, job);
    const bool regroups = j->policies.len > 0 || d->npolicy > 0;
    const uint64_t said = job_desc_hash(d);

    if (j->has_pg && j->said == said && j->priority == d->priority) {
        model_job_set_phase(m, job, d->phase);
        return job;
    }
    j->said = said;
    set_spec(m, job, d);
    if (!j->has_pg) {
        hold_in_queue(m, job, NO_QUEUE);
        j->has_pg = true;
    }
    if (regroups) {
        regroup(m, job);
    }
    for (sub_id s = model_job(m, job)->first_sub; !id_none(s); s = model_sub(m, s)->next) {
        sub_refresh(m, s);
    }
    job_mark_dirty(m, job);
    job_set_queue(m, job, model_queue_find(m, d->queue));
    return job;
}

void model_job_del(struct model *m, job_id job)
{
    struct job *j = model_job(m, job);
    const queue_id q = j->queue;

    j->phase = PG_NONE;
    memset(&j->meter, 0, sizeof(j->meter));
    job_set_queue(m, job, NO_QUEUE);
    j->has_pg = false;
    hold_in_queue(m, job, q);
    job_mark_dirty(m, job);
    job_drop_if_idle(m, job);
}

void model_job_set_phase(struct model *m, job_id job, enum pg_phase p)
{
    if (model_job(m, job)->phase != p) {
        model_job(m, job)->phase = (uint8_t)p;
        model_job(m, job)->changed =
            ++m->version; /* phases are never rewound, so this holds even inside a session */
        job_mark_dirty(m, job);
        job_refresh_active(m, job);
    }
}

void model_job_set_priority(struct model *m, job_id job, int32_t priority)
{
    if (model_job(m, job)->priority != priority) {
        model_job(m, job)->priority = priority;
        job_mark_dirty(m, job);
    }
}

void job_restride(struct model *m, uint32_t stride)
{
    for (uint32_t i = 0; i < m->jobs.len; i++) {
        struct job *j = &m->jobs.at[i];
        int64_t *v;
        if (!j->used) {
            continue;
        }
        v = hk_zalloc_array((size_t)JV_N * stride, sizeof(*v));
        for (uint32_t k = 0; k < JV_N; k++) {
            memcpy(v + (size_t)k * stride, j->vec + (size_t)k * m->stride, m->stride * sizeof(*v));
        }
        hk_free(j->vec);
        j->vec = v;
    }
    m->stride = stride;
}
