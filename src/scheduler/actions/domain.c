// SPDX-License-Identifier: Apache-2.0
// The domain path of allocate. It tries every domain of a gradient on the live model and rewinds
// each trial, then replays the operations of the best one. A gradient of one domain needs no
// comparison, so its operations simply stay.

#include "scheduler/actions/domain.h"
#include "scheduler/stmt.h"

struct trial {
    hyper_id domain;
    double score;
    struct saved_ops ops;
    struct worksheet *sheet; /* job: the worksheet after the trial */
    hyper_id *marks;         /* job: the marks of its sub-jobs */
    uint32_t next;           /* sub-job: position in its task list */
};

struct trials {
    struct trial *at;
    uint32_t n;
};

bool domain_is_hard(const struct model *m, job_id j)
{
    const struct job *job = model_job(m, j);

    if (job->topo.eff_mode == TOPO_HARD) {
        return true;
    }
    for (sub_id s = job->first_sub; !id_none(s); s = model_sub(m, s)->next) {
        if (model_sub(m, s)->topo.eff_mode == TOPO_HARD) {
            return true;
        }
    }
    return false;
}

static bool limits(const struct model *m, const struct topo_spec *t)
{
    return t->eff_mode == TOPO_HARD && t->eff_tier < m->hypers.at[HYPER_ROOT.i].tier;
}

bool domain_is_narrow(const struct session *ssn, job_id j)
{
    const struct model *m = ssn->m;
    const struct job *job = model_job(m, j);

    if (ssn->hooks[HOOK_GRADIENT_JOB].n == 0) {
        return false; /* no plugin enforces a topology */
    }
    bool narrow = limits(m, &job->topo);
    for (sub_id s = job->first_sub; !narrow && !id_none(s); s = model_sub(m, s)->next) {
        narrow = limits(m, &model_sub(m, s)->topo);
    }
    return narrow;
}

static struct trials trials_new(struct session *ssn, uint32_t room)
{
    return (struct trials){.at = hk_arena_array(ssn->mem, room, sizeof(struct trial))};
}

static const struct trial *trials_best(const struct trials *t)
{
    const struct trial *best = &t->at[0];

    for (uint32_t i = 1; i < t->n; i++) {
        if (t->at[i].score > best->score) {
            best = &t->at[i];
        }
    }
    return best;
}

/* All or nothing. Upstream leaves the operations before a failing one in the session, where no
 * statement owns them. */
static bool redo(struct session *ssn, const struct saved_ops *ops)
{
    const stmt_mark_t mark = stmt_mark(ssn);

    if (stmt_replay(ssn, ops)) {
        return true;
    }
    stmt_rewind(ssn, mark);
    return false;
}

/* ---- one sub-job inside a job's domain ---- */

static bool run_row(struct placer *p, struct worksheet *w, struct sheet_row *row, hyper_id domain)
{
    const stmt_mark_t mark = stmt_mark(p->ssn);

    sheet_row_forget(p->ssn, row, row->tasks.next);
    return place_tasks(p, w, row, domain) && stmt_mark(p->ssn) != mark;
}

static bool score_trials(struct session *ssn, sub_id s, struct trials *t)
{
    hyper_id *domains = hk_arena_array(ssn->mem, t->n, sizeof(domains[0]));
    double *score = hk_arena_zalloc(ssn->mem, t->n * sizeof(score[0]));

    for (uint32_t i = 0; i < t->n; i++) {
        domains[i] = t->at[i].domain;
    }
    if (!hooks_hyper_order(ssn, s, domains, t->n, score)) {
        return false;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        t->at[i].score = score[i];
    }
    return true;
}

static struct trials try_row(struct placer *p, struct worksheet *w, struct sheet_row *row,
                             const struct gradient *g)
{
    struct session *ssn = p->ssn;
    struct trials t = trials_new(ssn, g->n);
    const stmt_mark_t mark = stmt_mark(ssn);
    const uint32_t from = row->tasks.next;

    for (uint32_t i = 0; i < g->n; i++) {
        if (run_row(p, w, row, g->at[i])) {
            t.at[t.n++] = (struct trial){
                .domain = g->at[i],
                .ops = stmt_save(ssn, mark),
                .next = row->tasks.next,
            };
        }
        stmt_rewind(ssn, mark);
        row->tasks.next = from;
    }
    return t;
}

enum outcome { OUTCOME_NONE, OUTCOME_PLACED, OUTCOME_GIVE_UP };

static void settle_row(const struct model *m, struct sheet_row *row, hyper_id domain)
{
    struct sub_job *sub = model_sub(m, row->sub);

    sub->mark = model_hyper_lca(m, sub->mark, domain);
}

static enum outcome gradient_of_one(struct placer *p, struct worksheet *w, struct sheet_row *row,
                                    hyper_id domain, double *ret_score)
{
    const uint32_t from = row->tasks.next;
    /* Score before placing: the plugins add the sub-job's whole request to the used amounts. */
    struct trial one = {.domain = domain};

    if (!score_trials(p->ssn, row->sub, &(struct trials){&one, 1})) {
        return OUTCOME_GIVE_UP;
    }
    if (!run_row(p, w, row, domain)) {
        row->tasks.next = from;
        return OUTCOME_NONE;
    }
    settle_row(p->ssn->m, row, domain);
    *ret_score = one.score;
    return OUTCOME_PLACED;
}

static enum outcome gradient_of_many(struct placer *p, struct worksheet *w, struct sheet_row *row,
                                     const struct gradient *g, double *ret_score)
{
    struct session *ssn = p->ssn;
    struct trials t = try_row(p, w, row, g);

    if (t.n == 0) {
        return OUTCOME_NONE;
    }
    if (!score_trials(ssn, row->sub, &t)) {
        return OUTCOME_GIVE_UP;
    }
    const struct trial *best = trials_best(&t);
    if (!redo(ssn, &best->ops)) {
        return OUTCOME_GIVE_UP;
    }
    row->tasks.next = best->next;
    settle_row(ssn->m, row, best->domain);
    *ret_score = best->score;
    return OUTCOME_PLACED;
}

/* True when at least one operation was added. */
static bool allocate_row(struct placer *p, struct worksheet *w, struct sheet_row *row,
                         hyper_id job_domain, double *ret_score)
{
    struct gradients g;

    if (row->tasks.next == row->tasks.n) {
        return false;
    }
    if (place_nominated(p, w, row)) {
        *ret_score = 0;
        return true;
    }
    if (!hooks_gradient_sub(p->ssn, row->sub, job_domain, GRADIENT_ALLOCATE, &g)) {
        return false;
    }
    for (uint32_t i = 0; i < g.n; i++) {
        const struct gradient *at = &g.at[i];
        enum outcome o = OUTCOME_NONE;
        if (at->n == 1) {
            o = gradient_of_one(p, w, row, at->at[0], ret_score);
        } else if (at->n > 1) {
            o = gradient_of_many(p, w, row, at, ret_score);
        }
        if (o != OUTCOME_NONE) {
            return o == OUTCOME_PLACED;
        }
    }
    return false;
}

/* ---- the job ---- */

static hyper_id *marks_of(struct session *ssn, const struct worksheet *w)
{
    hyper_id *marks = hk_arena_array(ssn->mem, w->n, sizeof(marks[0]));

    for (uint32_t i = 0; i < w->n; i++) {
        marks[i] = model_sub(ssn->m, w->rows[i].sub)->mark;
    }
    return marks;
}

static void set_marks(const struct model *m, const struct worksheet *w, const hyper_id *marks)
{
    for (uint32_t i = 0; i < w->n; i++) {
        model_sub(m, w->rows[i].sub)->mark = marks[i];
    }
}

/* Places a copy of the worksheet into the domain. False: not enough for the job. In both cases the
 * operations stay in the journal and the marks have moved. */
static bool domain_try_domain(struct placer *p, const struct worksheet *w, hyper_id domain,
                              struct trial *t)
{
    struct session *ssn = p->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);
    struct worksheet *copy = worksheet_copy(w);

    for (uint32_t i = 0; i < copy->n; i++) {
        sheet_row_forget(ssn, &copy->rows[i], 0);
    }
    *t = (struct trial){.domain = domain, .sheet = copy};
    while (copy->order.len > 0) {
        const uint32_t i = hk_heap_pop(&copy->order);
        struct sheet_row *row = &copy->rows[i];
        double score = 0;
        if (!allocate_row(p, copy, row, domain, &score)) {
            continue;
        }
        row->placed = true;
        t->score += score;
        if (row->tasks.next < row->tasks.n) {
            hk_heap_push(&copy->order, i);
        }
        if (hooks_job_ready(ssn, w->job)) {
            break;
        }
    }
    t->marks = marks_of(ssn, w);
    return stmt_mark(ssn) != mark &&
           (hooks_job_ready(ssn, w->job) || hooks_job_pipelined(ssn, w->job));
}

static void domain_accept_trial(struct worksheet *w, const struct trial *t,
                                struct domain_choice *ret)
{
    *w = *t->sheet;
    w->order.ctx = w;
    *ret = (struct domain_choice){.domain = t->domain, .marks = t->marks};
}

static enum outcome try_gradient(struct placer *p, struct worksheet *w, const struct gradient *g,
                                 struct domain_choice *ret)
{
    struct session *ssn = p->ssn;
    const hyper_id *before = marks_of(ssn, w);
    const stmt_mark_t mark = stmt_mark(ssn);
    struct trials t = trials_new(ssn, g->n);

    for (uint32_t i = 0; i < g->n; i++) {
        const bool ok = domain_try_domain(p, w, g->at[i], &t.at[t.n]);
        set_marks(ssn->m, w, before);
        if (ok && g->n == 1) {
            domain_accept_trial(w, &t.at[0], ret);
            return OUTCOME_PLACED;
        }
        if (ok) {
            t.at[t.n++].ops = stmt_save(ssn, mark);
        }
        stmt_rewind(ssn, mark);
    }
    if (t.n == 0) {
        return OUTCOME_NONE;
    }
    const struct trial *best = trials_best(&t);
    if (!redo(ssn, &best->ops)) {
        return OUTCOME_GIVE_UP;
    }
    domain_accept_trial(w, best, ret);
    return OUTCOME_PLACED;
}

/* When the plugins offer no domain, no task has a reason of its own: the job gets a message. */
static void note_no_domain(struct session *ssn, const struct worksheet *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const struct task_list *l = &w->rows[i].tasks;
        for (uint32_t k = l->next; k < l->n; k++) {
            if (ssn->fit[l->at[k].i] || ssn->last[l->at[k].i].status != TASK_PENDING) {
                return;
            }
        }
    }
    if (!ssn->job_msg[w->job.i]) {
        ssn->job_msg[w->job.i] = "no hyperNode within the job's network topology has room for it";
    }
}

bool domain_allocate(struct placer *p, struct worksheet *w, struct domain_choice *ret)
{
    struct gradients g;

    if (!hooks_gradient_job(p->ssn, w->job, HYPER_ROOT, GRADIENT_ALLOCATE, &g)) {
        g.n = 0;
    }
    for (uint32_t i = 0; i < g.n; i++) {
        const enum outcome o = try_gradient(p, w, &g.at[i], ret);
        if (o != OUTCOME_NONE) {
            return o == OUTCOME_PLACED;
        }
    }
    note_no_domain(p->ssn, w);
    return false;
}

void domain_confirm(const struct model *m, const struct worksheet *w, const struct domain_choice *c)
{
    struct job *job = model_job(m, w->job);

    job->mark = model_hyper_lca(m, job->mark, c->domain);
    for (uint32_t i = 0; i < w->n; i++) {
        struct sub_job *sub = model_sub(m, w->rows[i].sub);
        if (w->rows[i].placed) {
            sub->mark = c->marks[i];
            sub->nominated = NO_HYPER;
        }
    }
}
