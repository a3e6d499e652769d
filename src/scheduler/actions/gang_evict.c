// SPDX-License-Identifier: Apache-2.0
// The search of gangpreempt and gangreclaim. For each starving job and each domain allowed for it,
// evicts bundles of victims, best first, until every task of the job has a place, then takes back
// unneeded evictions (gang_trim.c). Everything happens in the journal and is rewound unless the
// whole job fits.

#include "scheduler/actions/gang_evict.h"

#include "scheduler/actions/domain.h"
#include "scheduler/actions/gang_evict_priv.h"
#include "scheduler/actions/idsort.h"
#include "scheduler/actions/options.h"
#include "scheduler/actions/room.h"
#include "scheduler/actions/turns.h"
#include "scheduler/reserve.h"
#include "scheduler/select.h"

/* How many bundles to try to leave out. */
enum { MAX_SPARED = 8 };

/* ---- nodes of a domain ---- */

static uint32_t domain_rows(const struct model *m, hyper_id h)
{
    return id_eq(h, HYPER_ROOT) ? m->nodes.len : m->hypers.at[h.i].nodes.len;
}

static node_id domain_node(const struct session *ssn, hyper_id h, uint32_t i)
{
    const struct model *m = ssn->m;
    const node_id n = id_eq(h, HYPER_ROOT) ? (node_id){i} : m->hypers.at[h.i].nodes.at[i];

    return (m->nodes.flags[n.i] & NODE_KNOWN) && session_may_use(ssn, n) ? n : NO_NODE;
}

/* ---- possible victims ---- */

static bool gang_evict_may_be_victim(const struct evictor *e, const struct task *v)
{
    const struct model *m = e->ssn->m;
    const struct job *by = model_job(m, e->sheet.job);

    if (!(v->flags & TASK_PREEMPTABLE) || !room_in_session(m, v->job) ||
        id_eq(v->job, e->sheet.job)) {
        return false;
    }
    const struct job *job = model_job(m, v->job);
    if (job->preemptable == TRI_FALSE) {
        return false;
    }
    if (e->kind == EVICT_GANG_RECLAIM) {
        return v->status == TASK_RUNNING && !id_eq(job->queue, by->queue) &&
               model_queue(m, job->queue)->reclaimable && !room_gang_waits(job);
    }
    return (v->status == TASK_RUNNING || v->status == TASK_BOUND) && id_eq(job->queue, by->queue) &&
           job->priority < by->priority;
}

/* By job, then lowest priority first. */
static bool victim_first(void *ctx, uint32_t a, uint32_t b)
{
    const struct model *m = ctx;
    const struct task *ta = &m->tasks.at[a], *tb = &m->tasks.at[b];

    if (!id_eq(ta->job, tb->job)) {
        return ta->job.i < tb->job.i;
    }
    if (ta->priority != tb->priority) {
        return ta->priority < tb->priority;
    }
    return hk_str_cmp(model_str(m, ta->uid), model_str(m, tb->uid)) < 0;
}

/* Writes the domain's victims to out, or with NULL only counts them. */
static uint32_t victims_in(const struct evictor *e, hyper_id domain, task_id *out)
{
    const struct model *m = e->ssn->m;
    const uint32_t rows = domain_rows(m, domain);
    uint32_t n = 0;

    for (uint32_t i = 0; i < rows; i++) {
        const node_id node = domain_node(e->ssn, domain, i);
        task_id t = id_none(node) ? NO_TASK : m->nodes.first[node.i];
        for (; !id_none(t); t = model_task(m, t)->node_next) {
            if (!gang_evict_may_be_victim(e, model_task(m, t))) {
                continue;
            }
            if (out) {
                out[n] = t;
            }
            n++;
        }
    }
    return n;
}

static uint32_t collect_victims(const struct evictor *e, hyper_id domain, task_id **ret)
{
    const uint32_t n = victims_in(e, domain, NULL);
    task_id *at = hk_arena_array(e->ssn->mem, n, sizeof(*at));

    victims_in(e, domain, at);
    idsort(&at[0].i, n, victim_first, e->ssn->m, e->ssn->mem);
    *ret = at;
    return n;
}

/* ---- bundles in order ---- */

struct bundle_order {
    const struct evictor *e;
    const struct bundles *b;
};

/* Negative: evict from a's job first. */
static int by_owner(const struct evictor *e, const struct bundle *a, const struct bundle *b)
{
    const struct model *m = e->ssn->m;

    if (e->kind == EVICT_GANG_PREEMPT) {
        return hooks_job_order(e->ssn, b->job, a->job);
    }
    const queue_id qa = model_job(m, a->job)->queue, qb = model_job(m, b->job)->queue;
    return id_eq(qa, qb)
               ? 0
               : hooks_victim_queue_order(e->ssn, qa, qb, model_job(m, e->sheet.job)->queue);
}

static int gang_evict_compare_jobs(const struct model *m, const struct bundle *a,
                                   const struct bundle *b)
{
    const struct job *ja = model_job(m, a->job), *jb = model_job(m, b->job);
    int c = hk_str_cmp(model_str(m, ja->ns), model_str(m, jb->ns));

    if (c == 0) {
        c = hk_str_cmp(model_str(m, ja->name), model_str(m, jb->name));
    }
    return c;
}

static bool bundle_first(void *ctx, uint32_t ia, uint32_t ib)
{
    const struct bundle_order *o = ctx;
    const struct bundle *a = &o->b->at[ia], *b = &o->b->at[ib];
    int c;

    if (a->safe != b->safe) {
        return a->safe;
    }
    c = by_owner(o->e, a, b);
    if (c != 0) {
        return c < 0;
    }
    if (a->roi != b->roi) {
        return a->roi > b->roi;
    }
    return gang_evict_compare_jobs(o->e->ssn->m, a, b) <
           0; /* a job has at most one bundle of each kind */
}

static void sort_bundles(struct evictor *e, struct bundles *b)
{
    struct bundle_order o = {e, b};

    for (uint32_t i = 0; i < b->n; i++) {
        b->order[i] = i;
        b->at[i].roi = bundle_roi(e->ssn->m, &b->at[i], &e->need);
    }
    idsort(b->order, b->n, bundle_first, &o, e->ssn->mem);
}

static struct bundles make_bundles(struct evictor *e, const task_id *victims, uint32_t n)
{
    struct session *ssn = e->ssn;
    const struct model *m = ssn->m;
    struct bundles b = {0};
    uint32_t jobs = 0;

    for (uint32_t i = 0; i < n; i++) {
        jobs +=
            i == 0 || !id_eq(model_task(m, victims[i])->job, model_task(m, victims[i - 1])->job);
    }
    b.at = hk_arena_array(ssn->mem, (size_t)jobs * 2, sizeof(b.at[0]));
    b.order = hk_arena_array(ssn->mem, (size_t)jobs * 2, sizeof(b.order[0]));
    for (uint32_t i = 0, end; i < n; i = end) {
        const job_id j = model_task(m, victims[i])->job;
        for (end = i + 1; end < n && id_eq(model_task(m, victims[end])->job, j); end++) {
        }
        b.n += bundle_split(m, ssn->mem, j, victims + i, end - i, &b.at[b.n]);
    }
    return b;
}

static bool is_allowed(const void *ctx, task_id t)
{
    const uint64_t *bits = ctx;

    return (bits[t.i / 64] >> (t.i % 64)) & 1;
}

/* Keeps in the bundle only tasks that its queue holds beyond its share, in order; a bundle that
 * would break its gang is kept whole or emptied. The kept tasks are evicted in the journal. */
static void keep_beyond_share(struct evictor *e, struct bundle *b)
{
    struct session *ssn = e->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);
    uint32_t kept = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        const stmt_mark_t before = stmt_mark(ssn);
        stmt_evict(ssn, b->at[i], e->reason, e->sheet.job);
        if (room_beyond_share(ssn, b->at[i])) {
            b->at[kept++] = b->at[i];
        } else {
            stmt_rewind(ssn, b->safe ? before : mark);
            if (!b->safe) {
                b->n = 0;
                return;
            }
        }
    }
    b->n = kept;
}

/* Each bundle is checked after the evictions of those before it. Any subset of the kept tasks is
 * beyond the shares as well: with fewer victims evicted, their queues hold only more. */
static void keep_bundles_beyond_share(struct evictor *e, struct bundles *b)
{
    const stmt_mark_t mark = stmt_mark(e->ssn);

    for (uint32_t i = 0; i < b->n; i++) {
        keep_beyond_share(e, &b->at[b->order[i]]);
    }
    stmt_rewind(e->ssn, mark);
}

/* Without a plugin that knows the shares of queues, gangs of other queues are not broken: they
 * could break this job's gang in turn. */
static bool may_break(const struct evictor *e)
{
    return e->allow_whole &&
           (e->kind == EVICT_GANG_PREEMPT || e->ssn->hooks[HOOK_PREEMPTIVE].n > 0);
}

/* Asks the plugins once about all tasks in order, and drops those they refuse. */
static void restrict_bundles(struct evictor *e, hyper_id domain, struct bundles *b, uint32_t ntask)
{
    struct session *ssn = e->ssn;
    task_id *all = hk_arena_array(ssn->mem, ntask, sizeof(all[0])), *ok;
    uint32_t n = 0, kept = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        const struct bundle *at = &b->at[b->order[i]];
        memcpy(all + n, at->at, at->n * sizeof(all[0]));
        n += at->n;
    }
    const uint32_t nok = hooks_evictable(ssn, e->kind, e->sheet.job, domain, all, n, &ok);
    for (uint32_t i = 0; i < nok; i++) {
        e->allowed[ok[i].i / 64] |= 1ULL << (ok[i].i % 64);
    }
    for (uint32_t i = 0; i < b->n; i++) {
        bundle_restrict(&b->at[i], is_allowed, e->allowed);
    }
    if (e->kind == EVICT_GANG_RECLAIM && ssn->hooks[HOOK_PREEMPTIVE].n > 0) {
        keep_bundles_beyond_share(e, b);
    }
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->at[i].n > 0 && (b->at[i].safe || may_break(e))) {
            b->at[kept++] = b->at[i];
        }
    }
    b->n = kept;
    for (uint32_t i = 0; i < nok; i++) {
        e->allowed[ok[i].i / 64] = 0;
    }
}

static struct bundles bundles_in(struct evictor *e, hyper_id domain)
{
    task_id *victims;
    const uint32_t n = collect_victims(e, domain, &victims);
    struct bundles b = make_bundles(e, victims, n);

    if (b.n > 0) {
        sort_bundles(e, &b);
        restrict_bundles(e, domain, &b, n);
        sort_bundles(e, &b);
    }
    return b;
}

/* ---- placing the job ---- */

/* Upstream accepts nodes here whose filters might pass after evictions that are not planned, and
 * evicts for pods that still cannot start. Here the filters no longer see evicted pods, so all of
 * them are asked. */
static bool place_row_in(struct evictor *e, const struct sheet_row *row, hyper_id domain)
{
    struct session *ssn = e->ssn;
    const queue_id q = model_job(ssn->m, e->sheet.job)->queue;
    const stmt_mark_t mark = stmt_mark(ssn);
    bool ok = true;

    select_begin(ssn, domain);
    for (uint32_t i = 0; ok && i < row->tasks.n; i++) {
        const task_id t = row->tasks.at[i];
        struct fit_log *log = NULL;
        struct reason why;
        node_id n;
        ok = hooks_allocatable(ssn, q, t) && hooks_pre_predicate(ssn, t, &why) &&
             select_node(ssn, t, &n, &log) != PLACE_NONE && stmt_pipeline(ssn, t, n, false);
    }
    if (ok && (hooks_sub_ready(ssn, row->sub) || hooks_sub_pipelined(ssn, row->sub))) {
        return true;
    }
    stmt_rewind(ssn, mark);
    return false;
}

static bool place_row(struct evictor *e, uint32_t i, hyper_id domain)
{
    const struct sheet_row *row = &e->sheet.rows[i];
    struct gradients g;

    e->placed[i] = domain;
    if (!domain_is_hard(e->ssn->m, e->sheet.job)) {
        return place_row_in(e, row, domain);
    }
    if (!hooks_gradient_sub(e->ssn, row->sub, domain, GRADIENT_EVICT, &g)) {
        return false;
    }
    for (uint32_t k = 0; k < g.n; k++) {
        for (uint32_t l = 0; l < g.at[k].n; l++) {
            if (place_row_in(e, row, g.at[k].at[l])) {
                e->placed[i] = g.at[k].at[l];
                return true;
            }
        }
    }
    return false;
}

/* Places the sub-jobs in order until the job can start. False: nothing changed. */
static bool place_job(struct evictor *e, hyper_id domain)
{
    struct session *ssn = e->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);
    struct hk_heap order = worksheet_copy(&e->sheet)->order;

    for (uint32_t i = 0; i < e->sheet.n; i++) {
        e->placed[i] = NO_HYPER;
    }
    while (order.len > 0) {
        const uint32_t i = hk_heap_pop(&order);
        if (!place_row(e, i, domain)) {
            e->placed[i] = NO_HYPER;
            break;
        }
        if (hooks_job_pipelined(ssn, e->sheet.job)) {
            return true;
        }
        if (e->was_ready) {
            break;
        }
    }
    stmt_rewind(ssn, mark);
    return false;
}

/* ---- the search ---- */

/* Idle and releasing amounts of the domain, before this job's evictions. */
static int64_t *free_in(struct evictor *e, hyper_id domain)
{
    const struct model *m = e->ssn->m;
    int64_t *sum = hk_arena_zalloc(e->ssn->mem, m->dims.n * sizeof(sum[0]));

    for (uint32_t i = 0; i < domain_rows(m, domain); i++) {
        const node_id n = domain_node(e->ssn, domain, i);
        for (uint32_t d = 0; !id_none(n) && d < m->dims.n; d++) {
            sum[d] += m->nodes.idle.col[d][n.i] + m->nodes.releasing.col[d][n.i];
        }
    }
    return sum;
}

static bool gang_evict_covers_demand(const struct demand *need, const int64_t *have)
{
    for (uint32_t d = 0; d < need->n; d++) {
        if (need->v[d] > have[d]) {
            return false;
        }
    }
    return true;
}

static void add_requests(const struct model *m, const task_id *at, uint32_t n, int64_t *sum)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct shape *s = task_shape(m, at[i]);
        for (uint32_t k = 0; k < s->nreq; k++) {
            sum[s->req[k].dim] += s->req[k].v;
        }
    }
}

static void evict_used(struct evictor *e, const struct bundles *b, uint32_t nused, uint32_t but)
{
    for (uint32_t i = 0; i < nused; i++) {
        if (i != but) {
            gang_evict_all(e, b->at[b->order[i]].at, b->at[b->order[i]].n);
        }
    }
}

/* Bundles are evicted until the job fits, and the last one may have made earlier ones unnecessary.
 * Tries to leave out up to MAX_SPARED whole bundles. Returns how many remain in use, at the front
 * of the order. */
static uint32_t spare_bundles(struct evictor *e, struct bundles *b, uint32_t nused, hyper_id domain,
                              stmt_mark_t mark)
{
    struct session *ssn = e->ssn;
    hyper_id *placed = hk_arena_array(ssn->mem, e->sheet.n, sizeof(placed[0]));
    struct saved_ops best = stmt_save(ssn, mark);

    memcpy(placed, e->placed, e->sheet.n * sizeof(placed[0]));
    for (uint32_t k = 0, tries = 0; k + 1 < nused && tries < MAX_SPARED; tries++) {
        stmt_rewind(ssn, mark);
        evict_used(e, b, nused, k);
        if (!place_job(e, domain)) {
            k++;
            continue;
        }
        best = stmt_save(ssn, mark);
        memcpy(placed, e->placed, e->sheet.n * sizeof(placed[0]));
        memmove(&b->order[k], &b->order[k + 1], (nused - k - 1) * sizeof(b->order[0]));
        nused--;
    }
    stmt_rewind(ssn, mark);
    memcpy(e->placed, placed, e->sheet.n * sizeof(placed[0]));
    return stmt_replay(ssn, &best) ? nused : 0;
}

/* Whether preempt's rule about shares permits the placements made since the mark. Rewinds them and,
 * if permitted, replays them. */
static bool keeps_share(struct evictor *e, stmt_mark_t mark)
{
    struct session *ssn = e->ssn;
    bool took_share = false;
    uint32_t n = 0;

    if (!e->watch_share) {
        return true;
    }
    const struct saved_ops saved = stmt_save(ssn, mark);
    task_id *placed = hk_arena_array(ssn->mem, saved.n, sizeof(placed[0]));
    stmt_rewind(ssn, mark);
    for (uint32_t k = 0; k < saved.n; k++) {
        const task_id t = saved.at[k].task;
        if (saved.at[k].kind == OP_EVICT) {
            gang_evict_all(e, &t, 1);
            took_share |= !room_beyond_share(ssn, t);
        } else {
            placed[n++] = t;
        }
    }
    const bool leaves = took_share && n > 0 && room_leaves_share(ssn, placed, n);
    stmt_rewind(ssn, mark);
    return !leaves && stmt_replay(ssn, &saved);
}

/* True: the placements stay, with the evictions they need, if any. False: nothing changed. */
static bool search_domain(struct evictor *e, hyper_id domain)
{
    struct session *ssn = e->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);
    int64_t *have = free_in(e, domain);

    if (gang_evict_covers_demand(&e->need, have) && place_job(e, domain)) {
        return true;
    }
    struct bundles b = bundles_in(e, domain);
    for (uint32_t i = 0; i < b.n; i++) {
        const struct bundle *at = &b.at[b.order[i]];
        gang_evict_all(e, at->at, at->n);
        add_requests(ssn->m, at->at, at->n, have);
        if (gang_evict_covers_demand(&e->need, have) && place_job(e, domain)) {
            const uint32_t nused = spare_bundles(e, &b, i + 1, domain, mark);
            if (nused > 0 && gang_trim(e, &b, nused, mark) && keeps_share(e, mark)) {
                return true;
            }
            break;
        }
    }
    stmt_rewind(ssn, mark);
    return false;
}

static bool gang_evict_list_has_hyper(const hyper_id *at, uint32_t n, hyper_id h)
{
    for (uint32_t i = 0; i < n; i++) {
        if (id_eq(at[i], h)) {
            return true;
        }
    }
    return false;
}

static uint32_t domains_of(struct evictor *e, hyper_id **ret)
{
    struct session *ssn = e->ssn;
    hyper_id *at = hk_arena_array(ssn->mem, e->max_domains, sizeof(at[0]));
    struct gradients g = {0};
    uint32_t n = 0;

    if (!hooks_gradient_job(ssn, e->sheet.job, HYPER_ROOT, GRADIENT_EVICT, &g)) {
        g.n = 0;
    }
    for (uint32_t i = 0; i < g.n; i++) {
        for (uint32_t k = 0; k < g.at[i].n && n < e->max_domains; k++) {
            if (!gang_evict_list_has_hyper(at, n, g.at[i].at[k])) {
                at[n++] = g.at[i].at[k];
            }
        }
    }
    if (n == 0 && !domain_is_hard(ssn->m, e->sheet.job)) {
        at[n++] = HYPER_ROOT;
    }
    *ret = at;
    return n;
}

/* Sets what must fit: everything if the job cannot start yet, else the next sub-job. False when the
 * queue may not ask for that. */
static bool set_demand(struct evictor *e)
{
    struct session *ssn = e->ssn;
    const struct model *m = ssn->m;
    const struct worksheet *w = &e->sheet;
    const uint32_t only = e->was_ready ? w->order.at[0] : ID_NONE;
    uint32_t n = 0;

    e->need = (struct demand){.v = hk_arena_zalloc(ssn->mem, m->dims.n * sizeof(e->need.v[0])),
                              .n = m->dims.n};
    for (uint32_t i = 0; i < w->n; i++) {
        n += only == ID_NONE || only == i ? w->rows[i].tasks.n : 0;
    }
    task_id *tasks = hk_arena_array(ssn->mem, n, sizeof(tasks[0]));
    n = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        if (only == ID_NONE || only == i) {
            memcpy(tasks + n, w->rows[i].tasks.at, w->rows[i].tasks.n * sizeof(tasks[0]));
            n += w->rows[i].tasks.n;
        }
    }
    add_requests(m, tasks, n, e->need.v);
    return e->kind == EVICT_GANG_PREEMPT ||
           hooks_preemptive(ssn, model_job(m, w->job)->queue, tasks, n);
}

/* Without a plugin that knows shares, only a job short of its minimum may take from other queues:
 * they would take back anything beyond it. */
static bool may_ask(const struct evictor *e)
{
    return e->kind == EVICT_GANG_PREEMPT || e->ssn->hooks[HOOK_PREEMPTIVE].n > 0 ||
           job_counts_starving(model_job(e->ssn->m, e->sheet.job));
}

static void evict_for_job(struct evictor *e, job_id j)
{
    struct session *ssn = e->ssn;
    const stmt_mark_t mark = stmt_mark(ssn);
    hyper_id *domains;

    worksheet_init(&e->sheet, ssn, j, SHEET_EVICT);
    if (e->sheet.n == 0) {
        return;
    }
    e->was_ready = hooks_job_ready(ssn, j);
    e->placed = hk_arena_array(ssn->mem, e->sheet.n, sizeof(e->placed[0]));
    if (!may_ask(e) || !set_demand(e)) {
        return;
    }
    const uint32_t n = domains_of(e, &domains);
    for (uint32_t i = 0; i < n; i++) {
        if (!search_domain(e, domains[i])) {
            continue;
        }
        if (!room_was_paid(ssn, mark)) {
            /* Allocate places the job. Reserve the room until then, or others would count on it. */
            reserve_add(ssn, mark);
            return;
        }
        stmt_promise(ssn, mark, j);
        stmt_commit(ssn, mark);
        for (uint32_t k = 0; k < e->sheet.n; k++) {
            if (!id_none(e->placed[k])) {
                model_sub(ssn->m, e->sheet.rows[k].sub)->nominated = e->placed[k];
            }
        }
        return;
    }
}

void gang_evict_run(struct session *ssn, enum evict_kind kind, const struct gang_evict_args *args)
{
    struct evictor e = {
        .ssn = ssn,
        .kind = kind,
        .reason = kind == EVICT_GANG_PREEMPT ? "gangpreempt" : "gangreclaim",
        .max_domains = args->max_domains > 0 ? (uint32_t)HK_MIN(args->max_domains, 1 << 16) : 8,
        .allow_whole = args->allow_whole,
        .watch_share = kind == EVICT_GANG_PREEMPT && room_queues_reclaim(ssn),
        .allowed = hk_arena_zalloc(ssn->mem, (ssn->m->tasks.len / 64 + 1) * sizeof(e.allowed[0])),
    };
    struct turns turns;
    job_id *jobs;
    queue_id q;
    job_id j;

    const uint32_t n = turns_collect(ssn, hooks_job_starving, &jobs);
    turns_init(&turns, ssn, jobs, n);
    while (!session_over_budget(ssn) && turns_take_queue(&turns, &q)) {
        if (kind == EVICT_GANG_RECLAIM && hooks_overused(ssn, q)) {
            continue;
        }
        while (!session_over_budget(ssn) && turns_take_job(&turns, q, &j)) {
            evict_for_job(&e, j);
        }
    }
}

const struct opt gang_evict_opts[GANG_EVICT_NOPT] = {
    OPT(OPT_INT, struct gang_evict_args, max_domains, "maxDomains", "8",
        "topology domains to try for a job"),
    OPT(OPT_BOOL, struct gang_evict_args, allow_whole, "allowWholeBundle", "true",
        "whether gangs may be broken when what they can spare is not enough"),
    OPT_ERROR_CACHE,
};
