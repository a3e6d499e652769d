// SPDX-License-Identifier: Apache-2.0
// Jobs, their sub-jobs and roles: counts by state, sums of requests, and which jobs are worth a
// look in the next session. A row appears with the PodGroup or with the first pod that names it,
// and goes when neither is left.
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

static task_id *list_of(struct job *j, enum task_status s)
{
    return s == TASK_PENDING ? &j->pending : &j->others;
}

static void list_push(struct model *m, struct job *j, task_id t, enum task_status s)
{
    task_id *head = list_of(j, s);
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
        *list_of(j, s) = task->job_next;
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

/* What a task in that state adds to sums of its job and queue. */
static void sums(struct model *m, job_id job, const struct shape *s, enum task_status st, int sign)
{
    const struct job *j = model_job(m, job);
    const bool alloc = status_in(st, STATUS_ALLOCATED), pending = st == TASK_PENDING;
    struct queue *q = id_none(j->queue) ? NULL : model_queue(m, j->queue);

    if (alloc) {
        vec_add(job_vec(m, job, JV_ALLOC), s, sign);
    }
    if (pending) {
        vec_add(job_vec(m, job, JV_PENDING), s, sign);
    }
    if (q && alloc) {
        vec_add(q->allocated, s, sign);
    }
    if (q && (alloc || pending)) {
        vec_add(q->request, s, sign);
    }
}

/* Some queue holds or asks for less: limits and shares of others may have moved. */
static void tell_queue(struct model *m)
{
    if (!m->in_session) {
        m->wake.queue = ++m->version;
    }
}

/* Gated tasks are taken off what a queue owes a job, but for our own gate (1.11). */
static bool counts_as_gated(const struct task *t)
{
    return (t->flags & TASK_GATED) && !(t->flags & TASK_GATE_OURS_ONLY);
}

static void count_everywhere(struct model *m, task_id t, enum task_status s, int sign)
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
    sums(m, task->job, task_shape(m, t), s, sign);
}

void job_task_change(struct model *m, task_id t, enum task_status from, enum task_status to)
{
    const job_id job = model_task(m, t)->job;
    struct job *j;

    if (id_none(job)) {
        return;
    }
    j = model_job(m, job);
    if ((from == TASK_PENDING) != (to == TASK_PENDING)) {
        list_take(m, j, t, from);
        list_push(m, j, t, to);
    }
    count_everywhere(m, t, from, -1);
    count_everywhere(m, t, to, 1);
    job_mark_dirty(m, job);
    if (status_in(from, STATUS_ALLOCATED) && !status_in(to, STATUS_ALLOCATED)) {
        tell_queue(m);
    }
}

/* ---- sub-jobs ---- */

/* Takes the reference to id. */
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

/* Minimum and topology follow the PodGroup's spec. */
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

/* With a reference. */
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

/* The first policy that yields values takes the pod, else the default sub-job (2.5). */
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

/* ---- tasks come and go ---- */

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
    count_everywhere(m, t, task->status, 1);
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

    count_everywhere(m, t, task->status, -1);
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
    tell_queue(m);
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
    j = model_job(m, job);
    *j = (struct job){.used = true,
                      .ns = ns,
                      .name = name,
                      .queue = NO_QUEUE,
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
    /* Stays in dirty_jobs: settle skips rows that are not used. */
    *j = (struct job){.dirty = j->dirty, .active_pos = ID_NONE};
    hk_vec_push(&m->jobs.free, job.i);
}

/* ---- the PodGroup ---- */

static void count_in_queue(struct model *m, job_id job, int sign)
{
    const struct job *j = model_job(m, job);
    struct queue *q;

    if (id_none(j->queue)) {
        return;
    }
    q = model_queue(m, j->queue);
    q->njobs += (uint32_t)sign;
    for (uint32_t d = 0; d < m->dims.n; d++) {
        q->allocated[d] += sign * job_vec(m, job, JV_ALLOC)[d];
        q->request[d] += sign * (job_vec(m, job, JV_ALLOC)[d] + job_vec(m, job, JV_PENDING)[d]);
        q->inqueue[d] += sign * job_vec(m, job, JV_INQ)[d];
        q->elastic[d] += sign * job_vec(m, job, JV_ELASTIC)[d];
    }
}

void job_set_queue(struct model *m, job_id job, queue_id q)
{
    struct job *j = model_job(m, job);

    if (!id_eq(j->queue, q)) {
        count_in_queue(m, job, -1);
        j->queue = q;
        count_in_queue(m, job, 1);
        tell_queue(m);
        job_mark_dirty(m, job);
    }
    job_refresh_active(m, job);
}

void queue_attach_jobs(struct model *m, queue_id q)
{
    for (uint32_t i = 0; i < m->jobs.len; i++) {
        const struct job *j = &m->jobs.at[i];
        if (j->used && j->has_pg && j->queue_name == model_queue(m, q)->name) {
            job_set_queue(m, (job_id){i}, q);
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

/* Policies changed: every task finds its sub-job again. */
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

/* ---- has anything been said that is new? ---- */

static uint64_t hash_n(uint64_t h, uint64_t v)
{
    return hk_mix(h * 31 + v);
}

static uint64_t hash_s(uint64_t h, struct hk_str s)
{
    return hk_hash(s.n > 0 ? s.s : "", s.n, hash_n(h, s.n));
}

static uint64_t hash_topo(uint64_t h, const struct topo_spec *t)
{
    h = hash_n(h, (uint64_t)t->mode << 1 | t->has_tier);
    return hash_n(hash_n(h, (uint32_t)t->tier), t->tier_name);
}

static uint64_t hash_policy(uint64_t h, const struct policy_desc *p)
{
    h = hash_topo(hash_s(h, p->name), &p->topo);
    h = hash_n(hash_n(h, (uint32_t)p->size), (uint32_t)p->min_groups);
    h = hash_n(hash_n(h, (uint64_t)p->has_sel << 1 | p->sel.nothing), p->sel.n);
    for (uint32_t k = 0; k < p->sel.n; k++) {
        const struct label_req *r = &p->sel.at[k];
        h = hash_n(hash_n(hash_n(hash_n(h, r->key), r->op), (uint64_t)r->num), r->n);
        for (uint32_t i = 0; i < r->n; i++) {
            h = hash_n(h, r->vals[i]);
        }
    }
    h = hash_n(h, p->nkey);
    for (uint32_t k = 0; k < p->nkey; k++) {
        h = hash_n(h, p->keys[k]);
    }
    return h;
}

static uint64_t hash_lists(uint64_t h, const struct job_desc *d)
{
    h = hash_n(hash_n(h, d->has_minres), d->nminres);
    for (uint32_t k = 0; k < d->nminres; k++) {
        h = hash_n(hash_n(h, d->minres[k].dim), (uint64_t)d->minres[k].v);
    }
    h = hash_n(h, d->nmin_items);
    for (uint32_t k = 0; k < d->nmin_items; k++) {
        h = hash_n(hash_n(h, d->min_items[k].name), (uint64_t)d->min_items[k].milli);
    }
    h = hash_n(h, d->nrole);
    for (uint32_t k = 0; k < d->nrole; k++) {
        h = hash_n(hash_n(h, d->roles[k].name), (uint32_t)d->roles[k].min);
    }
    h = hash_n(h, d->npolicy);
    for (uint32_t k = 0; k < d->npolicy; k++) {
        h = hash_policy(h, &d->policies[k]);
    }
    return h;
}

static uint64_t hash_desc(const struct job_desc *d)
{
    uint64_t h = hash_s(hash_s(hash_s(1, d->uid), d->queue), d->prio_class);

    h = hash_n(hash_n(h, (uint32_t)d->min), d->preemptable);
    h = hash_n(hash_n(h, (uint64_t)d->creation_ns), (uint64_t)d->waiting_ns);
    h = hash_s(hash_s(h, d->budget_min), d->budget_max_unavailable);
    return hash_lists(hash_topo(h, &d->topo), d);
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

/* The old description's strings go when the new one has its own. */
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
    j->min = d->min;
    j->phase = (uint8_t)d->phase;
    j->preemptable = d->preemptable;
    j->creation_ns = d->creation_ns;
    j->waiting_ns = d->waiting_ns;
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
    const uint64_t said = hash_desc(d);

    if (j->has_pg && j->said == said && j->priority == d->priority) {
        model_job_set_phase(m, job, d->phase);
        return job;
    }
    j->said = said;
    set_spec(m, job, d);
    j->has_pg = true;
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

    j->has_pg = false;
    j->phase = PG_NONE;
    memset(&j->meter, 0, sizeof(j->meter));
    job_set_queue(m, job, NO_QUEUE);
    job_mark_dirty(m, job);
    job_drop_if_idle(m, job);
}

void model_job_set_phase(struct model *m, job_id job, enum pg_phase p)
{
    if (model_job(m, job)->phase != p) {
        model_job(m, job)->phase = (uint8_t)p;
        model_job(m, job)->changed =
            ++m->version; /* never rewound, so true even inside a session */
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

/* ---- settling: what admitted jobs still owe ---- */

/* inq(job, allocated) of plugins.md 1.11: what minResources still lacks, gated pods deducted.
 * ephemeral-storage is not part of it. */
static void owed(const struct model *m, job_id job, bool minus_alloc, int64_t *ret)
{
    const struct job *j = model_job(m, job);
    const int64_t *min = job_vec(m, job, JV_MINRES), *alloc = job_vec(m, job, JV_ALLOC);
    const int64_t *gated = job_vec(m, job, JV_GATED);

    for (uint32_t d = 0; d < m->dims.n; d++) {
        int64_t v = min[d];
        if (minus_alloc) {
            v = hk_str_is(m->dims.text[d], "ephemeral-storage") ? 0 : v - alloc[d];
        }
        if (j->ngated > 0) {
            v -= gated[d];
        }
        ret[d] = HK_MAX(v, 0);
    }
}

static void settle_job(struct model *m, job_id job)
{
    const struct job *j = model_job(m, job);
    const bool runs = j->phase == PG_RUNNING && (int64_t)tally_allocated(&j->tally) >= j->min;
    int64_t inq[DIM_MAX] = {0}, over[DIM_MAX] = {0}, elastic[DIM_MAX] = {0};
    struct queue *q = id_none(j->queue) ? NULL : model_queue(m, j->queue);
    int64_t *old_inq = job_vec(m, job, JV_INQ), *old_elastic = job_vec(m, job, JV_ELASTIC);
    int64_t *old_over = job_vec(m, job, JV_OVER);
    bool less = false;

    if (q && j->has_minres && (j->phase == PG_INQUEUE || runs)) {
        owed(m, job, true, inq);
        owed(m, job, j->phase != PG_INQUEUE, over);
    }
    for (uint32_t d = 0; d < m->dims.n; d++) {
        if (q) {
            elastic[d] = HK_MAX(job_vec(m, job, JV_ALLOC)[d] - job_vec(m, job, JV_MINRES)[d], 0);
            q->inqueue[d] += inq[d] - old_inq[d];
            q->elastic[d] += elastic[d] - old_elastic[d];
        }
        m->over_inqueue[d] += over[d] - old_over[d];
        less = less || inq[d] < old_inq[d] || over[d] < old_over[d];
        old_inq[d] = inq[d];
        old_elastic[d] = elastic[d];
        old_over[d] = over[d];
    }
    if (less) {
        tell_queue(m);
    }
}

void model_settle(struct model *m)
{
    for (uint32_t k = 0; k < m->dirty_jobs.len; k++) {
        const job_id job = m->dirty_jobs.at[k];
        model_job(m, job)->dirty = false;
        if (model_job(m, job)->used) {
            settle_job(m, job);
            job_refresh_active(m, job);
        }
    }
    hk_vec_clear(&m->dirty_jobs);
}

/* ---- parking ---- */

void model_job_park(struct model *m, job_id job, uint64_t dims, uint8_t why, int64_t due_ns)
{
    model_job(m, job)->park =
        (struct park){.at = m->version, .dims = dims, .why = why, .due_ns = due_ns};
}

bool model_job_awake(const struct model *m, job_id job)
{
    const struct job *j = model_job(m, job);
    const struct park *p = &j->park;

    if (p->at == 0 || j->changed > p->at) {
        return true;
    }
    if (((p->why & WAKE_NODE) && m->wake.node > p->at) ||
        ((p->why & WAKE_PODS) && m->wake.pods > p->at) ||
        ((p->why & WAKE_VICTIM) && m->wake.victim > p->at) ||
        ((p->why & WAKE_VOLUME) && m->wake.volume > p->at) ||
        ((p->why & WAKE_QUEUE) && m->wake.queue > p->at)) {
        return true;
    }
    for (uint64_t d = p->dims; d; d &= d - 1) {
        if (m->wake.gain[__builtin_ctzll(d)] > p->at) {
            return true;
        }
    }
    return false;
}

uint64_t model_wake(const struct model *m)
{
    uint64_t v = HK_MAX(HK_MAX(m->wake.node, m->wake.pods), HK_MAX(m->wake.queue, m->wake.victim));

    v = HK_MAX(v, m->wake.volume);
    for (uint32_t d = 0; d < m->dims.n; d++) {
        v = HK_MAX(v, m->wake.gain[d]);
    }
    return v;
}

void model_wake_up(struct model *m, unsigned why)
{
    const uint64_t now = ++m->version;

    m->wake.node = why & WAKE_NODE ? now : m->wake.node;
    m->wake.pods = why & WAKE_PODS ? now : m->wake.pods;
    m->wake.queue = why & WAKE_QUEUE ? now : m->wake.queue;
    m->wake.victim = why & WAKE_VICTIM ? now : m->wake.victim;
    m->wake.volume = why & WAKE_VOLUME ? now : m->wake.volume;
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
