// SPDX-License-Identifier: Apache-2.0
// Goes through a sub-job's tasks in order, asks the queue and the filters, and places tasks that
// fit through the journal. The caller chooses job and domain and decides what to commit.

#include "scheduler/actions/place.h"
#include "scheduler/select.h"
#include "scheduler/stmt.h"

enum step {
    STEP_NEXT,
    STEP_PLACED,
    STEP_STOP,
};

void placer_init(struct placer *p, struct session *ssn)
{
    *p = (struct placer){
        .ssn = ssn,
        .job = NO_JOB,
        .limit_text = hk_arena_zalloc(ssn->mem, ssn->m->queues.len * sizeof(p->limit_text[0])),
    };
}

/* ---- hyperNodes ---- */

static bool has_nodes(const struct model *m, hyper_id h)
{
    return id_eq(h, HYPER_ROOT) ? m->nodes.live > 0 : m->hypers.at[h.i].nodes.len > 0;
}

static bool in_hyper(const struct hyper *h, node_id n)
{
    return n.i < h->nbit && ((h->bits[n.i / 64] >> (n.i % 64)) & 1);
}

static bool holds_node(const struct model *m, hyper_id h, node_id n)
{
    return (m->nodes.flags[n.i] & NODE_KNOWN) &&
           (id_eq(h, HYPER_ROOT) || in_hyper(&m->hypers.at[h.i], n));
}

static bool is_domain(const struct hyper *h)
{
    return h->used && !h->placeholder;
}

/* The lowest tier in use; without hyperNodes that of the virtual root. */
static int32_t lowest_tier(const struct model *m)
{
    int32_t tier = m->hypers.at[HYPER_ROOT.i].tier;

    for (uint32_t h = 1; h < m->hypers.len; h++) {
        if (is_domain(&m->hypers.at[h])) {
            tier = HK_MIN(tier, m->hypers.at[h].tier);
        }
    }
    return tier;
}

static void map_lowest(struct placer *p)
{
    const struct model *m = p->ssn->m;
    const int32_t tier = lowest_tier(m);
    const hyper_id none = m->hypers.at[HYPER_ROOT.i].tier == tier ? HYPER_ROOT : NO_HYPER;

    p->lowest = hk_arena_array(p->ssn->mem, m->nodes.len, sizeof(p->lowest[0]));
    for (uint32_t i = 0; i < m->nodes.len; i++) {
        p->lowest[i] = none;
    }
    for (uint32_t h = m->hypers.len - 1; h > 0; h--) { /* backwards: the first of several wins */
        const struct hyper *hyper = &m->hypers.at[h];
        for (uint32_t i = 0; is_domain(hyper) && hyper->tier == tier && i < hyper->nodes.len; i++) {
            p->lowest[hyper->nodes.at[i].i] = (hyper_id){h};
        }
    }
}

/* The scores of a sub-job with a topology depend on where it already is, including tentative
 * placements, so its mark is updated after each placement. */
static void place_update_sub_job_mark(struct placer *p, sub_id s, node_id n)
{
    const struct model *m = p->ssn->m;
    struct sub_job *sub = model_sub(m, s);

    if (sub->topo.eff_mode == TOPO_NONE) {
        return;
    }
    if (!p->lowest) {
        map_lowest(p);
    }
    if (!id_none(p->lowest[n.i])) {
        sub->mark = model_hyper_lca(m, sub->mark, p->lowest[n.i]);
    }
}

/* ---- refusals ---- */

void place_note_limit(struct placer *p, job_id j)
{
    struct session *ssn = p->ssn;
    const queue_id q = model_job(ssn->m, j)->queue;

    if (ssn->job_msg[j.i]) {
        return;
    }
    if (!p->limit_text[q.i]) {
        const struct hk_str name = model_str(ssn->m, model_queue(ssn->m, q)->name);
        p->limit_text[q.i] =
            hk_arena_printf(ssn->mem, "queue '%.*s' is at its limit", HK_FMT(name));
    }
    ssn->job_msg[j.i] = p->limit_text[q.i];
}

static struct fit_log *log_everywhere(struct session *ssn, hyper_id domain, struct reason why)
{
    const struct model *m = ssn->m;
    struct fit_log *log = session_fit_new(ssn);
    const bool root = id_eq(domain, HYPER_ROOT);

    log->hyper = root ? NO_HYPER : domain;
    log->nnodes = root ? m->nodes.live : m->hypers.at[domain.i].nodes.len;
    fit_log_add(log, why);
    log->at[0].count = log->nnodes;
    if (reason_verdict(why.code) == NEVER) {
        memset(log->never, 0xff, log->never_words * sizeof(log->never[0]));
    }
    return log;
}

struct fit_log *place_refusal(struct placer *p, hyper_id domain, struct reason why)
{
    const hyper_id limited = id_eq(domain, HYPER_ROOT) ? NO_HYPER : domain;

    if (!p->pre_log || !id_eq(p->pre_log->hyper, limited) || p->pre_why.code != why.code ||
        p->pre_why.arg != why.arg) {
        p->pre_log = log_everywhere(p->ssn, domain, why);
        p->pre_why = why;
    }
    return p->pre_log;
}

/* A role that failed once is not tried again (Volcano's FitFailedRoles). Tasks of a role nearly
 * always have the same shape; those that do share the first one's reasons. */
static bool skip_role(struct placer *p, const struct sheet_row *row, task_id t)
{
    struct session *ssn = p->ssn;
    struct model *m = ssn->m;
    const struct task *task = model_task(m, t);
    const struct failed_role *f = task->role ? sheet_row_failed(row, task->role) : NULL;

    if (!f) {
        return false;
    }
    struct fit_log *log = f->log;
    if (!id_eq(f->shape, task->shape)) {
        log = session_fit_new(ssn);
        log->base = hk_arena_printf(
            ssn->mem, "Task %.*s with role spec %.*s has already predicated failed, skip",
            HK_FMT(model_str(m, task->name)), HK_FMT(model_str(m, task->role)));
    }
    session_fit_set(ssn, t, log);
    return true;
}

static int64_t role_occupied(const struct role *r)
{
    return (int64_t)tally_ready(&r->tally) + r->tally.pending_be;
}

/* Whether continuing after a failure can still make the job ready, as upstream's
 * NeedContinueAllocating (docs/reference/scheduler.md section 4.3). */
static bool worth_going_on(const struct model *m, const struct sheet_row *row)
{
    const struct sub_job *sub = model_sub(m, row->sub);
    const struct job *job = model_job(m, sub->job);

    if (job->min == (int64_t)job->tally.total || sub->min >= (int64_t)sub->tally.total) {
        return false;
    }
    if (job->policies.len > 0) {
        return true;
    }
    if (job->min < job->role_min_total) {
        int64_t reach = tally_ready(&job->tally);
        for (uint32_t i = 0; i < job->roles.len; i++) {
            const struct role *r = &job->roles.at[i];
            reach += sheet_row_failed(row, r->name) ? 0 : r->tally.n[TASK_PENDING];
        }
        return reach >= job->min;
    }
    for (uint32_t i = 0; i < job->roles.len; i++) {
        const struct role *r = &job->roles.at[i];
        if (r->min > 0 && role_occupied(r) < r->min && sheet_row_failed(row, r->name)) {
            return false;
        }
    }
    return true;
}

static enum step place_record_misfit(struct placer *p, struct sheet_row *row, task_id t,
                                     struct fit_log *log)
{
    sheet_row_fail(p->ssn, row, t, log);
    return worth_going_on(p->ssn->m, row) ? STEP_NEXT : STEP_STOP;
}

/* ---- placing ---- */

static enum placement fits_now_or_later(const struct model *m, task_id t, node_id n)
{
    const struct shape *s = task_shape(m, t);

    if (!model_fits_future(m, s, n)) {
        return PLACE_NONE;
    }
    return model_fits_idle(m, s, n) ? PLACE_IDLE : PLACE_FUTURE;
}

/* Tries the nominated node alone before the others. */
static enum placement on_nominated(struct session *ssn, task_id t, hyper_id domain, node_id *ret)
{
    const node_id n = task_nominated(ssn->m, t);
    node_id one[1] = {n};

    if (id_none(n) || !holds_node(ssn->m, domain, n)) {
        return PLACE_NONE;
    }
    const enum placement where = fits_now_or_later(ssn->m, t, n);
    if (where == PLACE_NONE || hooks_filter(ssn, t, FILTER_PLACE, one, 1, NULL) == 0) {
        return PLACE_NONE;
    }
    *ret = n;
    return where;
}

/* If the node has room now but the queue only after other tasks have left, pipelines the task on
 * the node. Upstream binds it, and the queue exceeds its limit until they are gone. */
static bool place_allocate_or_pipeline(struct session *ssn, task_id t, node_id n,
                                       enum placement where)
{
    const queue_id q = model_job(ssn->m, model_task(ssn->m, t)->job)->queue;

    return where == PLACE_IDLE && hooks_bindable(ssn, q, t) ? stmt_allocate(ssn, t, n)
                                                            : stmt_pipeline(ssn, t, n, false);
}

/* The queue has room for the task: removes our scheduling gate if the pod opted in and has no other
 * gate. */
static void open_gate(struct session *ssn, task_id t)
{
    const unsigned want = TASK_GATE_OPT_IN | TASK_GATE_OURS_ONLY;

    if (ssn->opts.open_gates && (model_task(ssn->m, t)->flags & want) == want) {
        session_ungate(ssn, t);
    }
}

static enum step place_one(struct placer *p, job_id j, struct sheet_row *row, hyper_id domain,
                           task_id t)
{
    struct session *ssn = p->ssn;
    struct fit_log *log = NULL;
    struct reason why = {0};
    node_id n = NO_NODE;

    if (!hooks_allocatable(ssn, model_job(ssn->m, j)->queue, t)) {
        place_note_limit(p, j);
        return STEP_NEXT;
    }
    if (model_task(ssn->m, t)->flags & TASK_GATED) {
        open_gate(ssn, t);
        return STEP_NEXT;
    }
    if (row->nfailed > 0 && skip_role(p, row, t)) {
        return STEP_NEXT;
    }
    if (!hooks_pre_predicate(ssn, t, &why)) {
        return place_record_misfit(p, row, t, place_refusal(p, domain, why));
    }
    enum placement where = on_nominated(ssn, t, domain, &n);
    if (where == PLACE_NONE) {
        where = select_node(ssn, t, &n, &log);
    }
    if (where == PLACE_NONE) {
        return log ? place_record_misfit(p, row, t, log)
                   : STEP_NEXT; /* no reasons: scoring failed */
    }
    if (!place_allocate_or_pipeline(ssn, t, n, where)) {
        return STEP_NEXT;
    }
    place_update_sub_job_mark(p, row->sub, n);
    return STEP_PLACED;
}

bool place_tasks(struct placer *p, struct worksheet *w, struct sheet_row *row, hyper_id domain)
{
    struct session *ssn = p->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);
    task_id t;

    /* A cluster without nodes needs a message; an empty domain among others does not. */
    if (!id_eq(domain, HYPER_ROOT) && !has_nodes(ssn->m, domain)) {
        return false;
    }
    const hyper_id settled = model_sub(ssn->m, row->sub)->mark;
    if (!id_eq(p->job, w->job) || !id_eq(p->domain, domain)) {
        select_begin(ssn, domain);
        p->job = w->job;
        p->domain = domain;
    }
    while (task_list_take(&row->tasks, &t)) {
        const enum step step = place_one(p, w->job, row, domain, t);
        if (step == STEP_STOP || (step == STEP_PLACED && hooks_sub_ready(ssn, row->sub))) {
            break;
        }
    }
    model_sub(ssn->m, row->sub)->mark = settled;
    if (hooks_sub_ready(ssn, row->sub) || hooks_sub_pipelined(ssn, row->sub)) {
        return true;
    }
    stmt_rewind(ssn, mark);
    return false;
}

static bool may_go_to_nominated(struct session *ssn, queue_id q, task_id t, hyper_id h)
{
    struct reason why;
    node_id n;

    return !(model_task(ssn->m, t)->flags & TASK_GATED) && hooks_allocatable(ssn, q, t) &&
           hooks_pre_predicate(ssn, t, &why) && on_nominated(ssn, t, h, &n) != PLACE_NONE;
}

bool place_nominated(struct placer *p, struct worksheet *w, struct sheet_row *row)
{
    struct session *ssn = p->ssn;
    const struct model *m = ssn->m;
    const queue_id q = model_job(m, w->job)->queue;
    struct sub_job *sub = model_sub(m, row->sub);
    const hyper_id h = sub->nominated;
    const stmt_mark_t mark = stmt_mark(ssn);

    if (id_none(h)) {
        return false;
    }
    bool ok = m->hypers.at[h.i].used && has_nodes(m, h);
    for (uint32_t i = row->tasks.next; ok && i < row->tasks.n; i++) {
        ok = may_go_to_nominated(ssn, q, row->tasks.at[i], h);
    }
    for (uint32_t i = row->tasks.next; ok && i < row->tasks.n; i++) {
        const task_id t = row->tasks.at[i];
        const node_id n = task_nominated(m, t);
        const enum placement where = fits_now_or_later(m, t, n);
        /* Check again: the tasks before this one used room on nodes and in the queue. */
        ok = where != PLACE_NONE && hooks_allocatable(ssn, q, t) &&
             place_allocate_or_pipeline(ssn, t, n, where);
    }
    if (!ok) {
        stmt_rewind(ssn, mark);
        sub->nominated = NO_HYPER;
        return false;
    }
    row->tasks.next = row->tasks.n;
    sub->mark = model_hyper_lca(m, sub->mark, h);
    return true;
}
