// SPDX-License-Identifier: Apache-2.0
// Worksheets of jobs; see worksheet.h. Made by allocate and the gang evictors, in the cycle arena.

#include "scheduler/actions/worksheet.h"

#include "scheduler/actions/idsort.h"

/* ---- tasks ---- */

/* Sorts by sub-job, so that each row is contiguous, then tasks for which others were evicted, then
 * by TaskOrder. If a sibling went first, it could use the room freed for a gang, and the gang would
 * fail. */
static bool task_first(void *ctx, uint32_t a, uint32_t b)
{
    struct session *ssn = ctx;
    const struct task *ta = &ssn->m->tasks.at[a], *tb = &ssn->m->tasks.at[b];

    if (!id_eq(ta->sub, tb->sub)) {
        return ta->sub.i < tb->sub.i;
    }
    const bool a_waits = !id_none(model_node_of(ssn->m, ta->nominated));
    const bool b_waits = !id_none(model_node_of(ssn->m, tb->nominated));
    if (a_waits != b_waits) {
        return a_waits;
    }
    return hooks_task_order(ssn, (task_id){a}, (task_id){b}) < 0;
}

static bool plain_first(void *ctx, uint32_t a, uint32_t b)
{
    return hooks_task_order(ctx, (task_id){a}, (task_id){b}) < 0;
}

static bool placeable(const struct task *t, enum sheet_kind kind)
{
    if (t->flags & (TASK_BEST_EFFORT | TASK_HELD)) {
        return false;
    }
    return !(t->flags & TASK_GATED) || (kind == SHEET_ALLOCATE && (t->flags & TASK_GATE_OURS_ONLY));
}

bool worksheet_has_work(const struct session *ssn, job_id j, enum sheet_kind kind)
{
    const struct model *m = ssn->m;

    for (task_id t = model_job(m, j)->pending; !id_none(t); t = model_task(m, t)->job_next) {
        if (placeable(model_task(m, t), kind)) {
            return true;
        }
    }
    return false;
}

struct task_list task_list_ungated(struct session *ssn, job_id j)
{
    const struct model *m = ssn->m;
    const struct job *job = model_job(m, j);
    struct task_list l = {
        .at = hk_arena_array(ssn->mem, job->tally.n[TASK_PENDING], sizeof(l.at[0])),
    };

    for (task_id t = job->pending; !id_none(t); t = model_task(m, t)->job_next) {
        if (!(model_task(m, t)->flags & (TASK_GATED | TASK_HELD))) {
            l.at[l.n++] = t;
        }
    }
    idsort(&l.at[0].i, l.n, plain_first, ssn, ssn->mem);
    return l;
}

/* ---- sub-jobs ---- */

static bool row_first(void *ctx, uint32_t a, uint32_t b)
{
    const struct worksheet *w = ctx;
    const struct sheet_row *ra = &w->rows[a], *rb = &w->rows[b];

    if (ra->required != rb->required) {
        return ra->required;
    }
    return hooks_sub_order(w->ssn, ra->sub, rb->sub) < 0;
}

static bool sub_first(void *ctx, uint32_t a, uint32_t b)
{
    return hooks_sub_order(ctx, (sub_id){a}, (sub_id){b}) < 0;
}

static void worksheet_mark_required(struct worksheet *w, sub_id s)
{
    uint32_t lo = 0, hi = w->n;

    while (lo < hi) { /* rows are sorted by sub-job */
        const uint32_t mid = lo + (hi - lo) / 2;
        if (w->rows[mid].sub.i < s.i) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo < w->n && id_eq(w->rows[lo].sub, s)) {
        w->rows[lo].required = true;
    }
}

/* Marks the sub-jobs that must become ready for their groups to reach minSubGroups. A sub-job
 * without tasks to place counts as well. */
static void mark_required(struct worksheet *w)
{
    struct session *ssn = w->ssn;
    const struct model *m = ssn->m;
    const struct job *job = model_job(m, w->job);
    int32_t *ready = hk_arena_zalloc(ssn->mem, job->policies.len * sizeof(ready[0]));
    uint32_t nsub = 0, n = 0;

    for (sub_id s = job->first_sub; !id_none(s); s = model_sub(m, s)->next) {
        nsub++;
    }
    uint32_t *lacking = hk_arena_array(ssn->mem, nsub, sizeof(lacking[0]));
    for (sub_id s = job->first_sub; !id_none(s); s = model_sub(m, s)->next) {
        const uint32_t policy = model_sub(m, s)->policy;
        if (policy == ID_NONE) {
            continue;
        }
        if (hooks_sub_ready(ssn, s)) {
            ready[policy]++;
        } else {
            lacking[n++] = s.i;
        }
    }
    idsort(lacking, n, sub_first, ssn, ssn->mem);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t policy = model_sub(m, (sub_id){lacking[i]})->policy;
        if (ready[policy] < job->policies.at[policy].min_groups) {
            ready[policy]++;
            worksheet_mark_required(w, (sub_id){lacking[i]});
        }
    }
}

static void order_rows(struct worksheet *w)
{
    w->order = (struct hk_heap){
        .at = hk_arena_array(w->ssn->mem, w->n, sizeof(uint32_t)),
        .cap = w->n,
        .fixed = true,
        .less = row_first,
        .ctx = w,
    };
    for (uint32_t i = 0; i < w->n; i++) {
        hk_heap_push(&w->order, i);
    }
}

static bool starts_row(const struct model *m, const task_id *at, uint32_t i)
{
    return i == 0 || !id_eq(model_task(m, at[i])->sub, model_task(m, at[i - 1])->sub);
}

static void cut_rows(struct worksheet *w, task_id *at, uint32_t n)
{
    const struct model *m = w->ssn->m;
    uint32_t nrow = 0;

    for (uint32_t i = 0; i < n; i++) {
        nrow += starts_row(m, at, i);
    }
    w->rows = hk_arena_zalloc(w->ssn->mem, nrow * sizeof(w->rows[0]));
    for (uint32_t i = 0; i < n; i++) {
        if (starts_row(m, at, i)) {
            w->rows[w->n++] =
                (struct sheet_row){.sub = model_task(m, at[i])->sub, .tasks.at = &at[i]};
        }
        w->rows[w->n - 1].tasks.n++;
    }
}

void worksheet_init(struct worksheet *w, struct session *ssn, job_id j, enum sheet_kind kind)
{
    const struct model *m = ssn->m;
    const struct job *job = model_job(m, j);
    task_id *at = hk_arena_array(ssn->mem, job->tally.n[TASK_PENDING], sizeof(at[0]));
    uint32_t n = 0;

    *w = (struct worksheet){.ssn = ssn, .job = j};
    for (task_id t = job->pending; !id_none(t); t = model_task(m, t)->job_next) {
        if (placeable(model_task(m, t), kind)) {
            at[n++] = t;
        }
    }
    idsort(&at[0].i, n, task_first, ssn, ssn->mem);
    cut_rows(w, at, n);
    if (job->policies.len > 0) {
        mark_required(w);
    }
    order_rows(w);
}

struct worksheet *worksheet_copy(const struct worksheet *w)
{
    struct hk_arena *mem = w->ssn->mem;
    struct worksheet *c = hk_arena_alloc(mem, sizeof(*c));

    *c = *w;
    c->rows = hk_arena_array(mem, w->n, sizeof(c->rows[0]));
    for (uint32_t i = 0; i < w->n; i++) {
        c->rows[i] = w->rows[i];
        c->rows[i].failed = NULL;
        c->rows[i].nfailed = 0;
    }
    c->order.at = hk_arena_array(mem, w->n, sizeof(uint32_t));
    memcpy(c->order.at, w->order.at, w->order.len * sizeof(uint32_t));
    c->order.ctx = c;
    return c;
}

/* ---- failures ---- */

const struct failed_role *sheet_row_failed(const struct sheet_row *r, uint32_t role)
{
    for (uint32_t i = 0; i < r->nfailed; i++) {
        if (r->failed[i].role == role) {
            return &r->failed[i];
        }
    }
    return NULL;
}

void sheet_row_fail(struct session *ssn, struct sheet_row *r, task_id t, struct fit_log *log)
{
    const struct task *task = model_task(ssn->m, t);

    session_fit_set(ssn, t, log);
    if (sheet_row_failed(r, task->role)) {
        return;
    }
    if (!r->failed) {
        const struct job *job = model_job(ssn->m, task->job);
        r->failed = hk_arena_array(ssn->mem, job->roles.len, sizeof(r->failed[0]));
    }
    r->failed[r->nfailed++] = (struct failed_role){task->role, task->shape, log};
}

void sheet_row_forget(struct session *ssn, struct sheet_row *r, uint32_t from)
{
    for (uint32_t i = from; i < r->tasks.n; i++) {
        ssn->fit[r->tasks.at[i].i] = NULL;
    }
    r->nfailed = 0;
}
