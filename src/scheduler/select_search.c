// SPDX-License-Identifier: Apache-2.0
// Feasible nodes: resource check, filters, and the reasons when no node is left
// (docs/reference/scheduler.md section 5).
//
// A search visits node rows from a rotating start until it has found enough feasible ones
// (select_want), in blocks of 64 so that the resource check is a straight pass over columns.
#include "scheduler/select_priv.h"

/* ---- the search domain ---- */

static struct field field_of(const struct session *ssn, hyper_id domain)
{
    const struct model *m = ssn->m;

    if (id_none(domain) || id_eq(domain, HYPER_ROOT)) {
        return (struct field){.n = m->nodes.len, .live = m->nodes.live};
    }
    return (struct field){.list = m->hypers.at[domain.i].nodes.at,
                          .n = m->hypers.at[domain.i].nodes.len,
                          .live = m->hypers.at[domain.i].nodes.len};
}

static node_id field_node(const struct field *f, uint32_t k)
{
    return f->list ? f->list[k] : (node_id){k};
}

/* ---- resource check ---- */

/* Marks the rows [a, a + n) whose future room does not cover the request: all ones in short_. Lanes
 * of one width and no branches, so that the compiler can vectorize it. */
static inline __attribute__((always_inline)) void mark_short(const struct model *m,
                                                             const struct shape *s, uint32_t a,
                                                             uint32_t n, int64_t short_[BLOCK])
{
    memset(short_, 0, BLOCK * sizeof(*short_));
    for (uint32_t k = 0; k < s->nreq; k++) {
        const int64_t *col = m->nodes.future.col[s->req[k].dim] + a, v = s->req[k].v;
        for (uint32_t i = 0; i < n; i++) {
            short_[i] |= -(int64_t)(col[i] < v);
        }
    }
}

#ifdef HK_AVX2
HK_AVX2 static void mark_short_avx2(const struct model *m, const struct shape *s, uint32_t a,
                                    uint32_t n, int64_t short_[BLOCK])
{
    mark_short(m, s, a, n, short_);
}

static void mark_short_any(const struct model *m, const struct shape *s, uint32_t a, uint32_t n,
                           int64_t short_[BLOCK])
{
    if (__builtin_cpu_supports("avx2")) {
        mark_short_avx2(m, s, a, n, short_);
    } else {
        mark_short(m, s, a, n, short_);
    }
}
#else
#define mark_short_any mark_short
#endif

static uint32_t fit_rows(const struct model *m, const struct shape *s, uint32_t a, uint32_t n,
                         node_id *out)
{
    int64_t short_[BLOCK];
    uint32_t len = 0;

    mark_short_any(m, s, a, n, short_);
    for (uint32_t i = 0; i < n; i++) {
        out[len].i = a + i;
        len += !short_[i];
    }
    return len;
}

static uint32_t live_rows(const struct model *m, uint32_t a, uint32_t n, node_id *out)
{
    uint32_t len = 0;

    for (uint32_t i = 0; i < n; i++) {
        out[len].i = a + i;
        len += m->nodes.flags[a + i] & NODE_KNOWN;
    }
    return len;
}

static uint32_t take_block(const struct session *ssn, const struct field *f, task_id t, bool check,
                           uint32_t a, uint32_t n, node_id *out)
{
    const struct shape *s = task_shape(ssn->m, t);
    uint32_t len = 0;

    if (!f->list) {
        return check ? fit_rows(ssn->m, s, a, n, out) : live_rows(ssn->m, a, n, out);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!check || model_fits_future(ssn->m, s, f->list[a + i])) {
            out[len++] = f->list[a + i];
        }
    }
    return len;
}

/* Drops the nodes that refused this task with NEVER earlier in the session: an eviction there would
 * not help. */
static uint32_t drop_never(const struct session *ssn, task_id t, node_id *nodes, uint32_t n)
{
    const struct fit_log *log = ssn->fit[t.i];
    uint32_t len = 0;

    if (!log) {
        return n;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t w = nodes[i].i / 64;
        if (w >= log->never_words || !((log->never[w] >> (nodes[i].i % 64)) & 1)) {
            nodes[len++] = nodes[i];
        }
    }
    return len;
}

/* ---- searching ---- */

/* The index in the rotation just after the kept node. */
static uint32_t rotation_after(const struct search *q, node_id kept, uint32_t from)
{
    for (uint32_t k = from; k < q->f.n; k++) {
        if (id_eq(field_node(&q->f, (q->start + k) % q->f.n), kept)) {
            return k + 1;
        }
    }
    return q->f.n;
}

static void select_search_visit_nodes(struct session *ssn, struct search *q)
{
    while (q->n < q->want && q->visited < q->f.n) {
        const uint32_t a = (q->start + q->visited) % q->f.n;
        uint32_t n = HK_MIN((uint32_t)BLOCK, q->f.n - a);
        uint32_t got;

        n = HK_MIN(n, q->f.n - q->visited);
        got = take_block(ssn, &q->f, q->t, q->check, a, n, q->out + q->n);
        if (got > 0 && q->mode == FILTER_EVICT) {
            got = drop_never(ssn, q->t, q->out + q->n, got);
        }
        if (got > 0) {
            got = hooks_filter(ssn, q->t, q->mode, q->out + q->n, got, NULL);
        }
        if (q->n + got > q->want) {
            got = q->want - q->n;
            q->n += got;
            q->visited = rotation_after(q, q->out[q->n - 1], q->visited);
            return;
        }
        q->n += got;
        q->visited += n;
    }
}

struct search search_for(struct session *ssn, task_id t, hyper_id domain, enum filter_mode mode,
                         bool check)
{
    struct search q = {.f = field_of(ssn, domain), .t = t, .mode = mode, .check = check};

    q.want = select_want(&ssn->opts, q.f.live);
    q.start = q.f.n ? ssn->select->rotate % q.f.n : 0;
    q.out = ssn->select->found.at;
    return q;
}

void search_run(struct session *ssn, struct search *q)
{
    const int64_t since_ns = meter_start(ssn->opts.meter);

    select_search_visit_nodes(ssn, q);
    meter_stage(ssn->opts.meter, METER_PREDICATE, since_ns);
    if (q->f.n > 0) {
        ssn->select->rotate = (q->start + q->visited) % q->f.n;
    }
}

bool search_row(struct session *ssn, const struct search *q, uint32_t row, node_id *ret)
{
    return take_block(ssn, &q->f, q->t, q->check, row, 1, ret) == 1 &&
           hooks_filter(ssn, q->t, q->mode, ret, 1, NULL) == 1;
}

/* ---- reasons, computed only when a search found nothing ---- */

static uint32_t short_of(const struct model *m, const struct shape *s, node_id n)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        if (m->nodes.future.col[s->req[k].dim][n.i] < s->req[k].v) {
            return s->req[k].dim;
        }
    }
    return HK_NONE;
}

/* Collects the filters' reasons. Nodes that pass all filters lack a pod slot. */
static void explain_filters(struct session *ssn, const struct search *q, node_id *nodes, uint32_t n,
                            struct fit_log *log)
{
    const uint32_t kept = hooks_filter(ssn, q->t, q->mode, nodes, n, log);

    for (uint32_t i = 0; q->check && i < kept; i++) {
        fit_log_add(log, (struct reason){.code = REASON_INSUFFICIENT, .arg = DIM_PODS});
        fit_log_node(log, nodes[i], UNFIT);
    }
}

struct fit_log *search_explain(struct session *ssn, const struct search *q, hyper_id domain)
{
    /* For a task that requests only a slot, the filters count pods: they have their own message for
     * a full node. */
    const bool amounts = q->check && !(model_task(ssn->m, q->t)->flags & TASK_BEST_EFFORT);
    const struct shape *s = task_shape(ssn->m, q->t);
    struct fit_log *log = session_fit_new(ssn);
    node_id block[BLOCK];
    uint32_t n = 0;

    if (!id_none(domain) && !id_eq(domain, HYPER_ROOT)) {
        log->hyper = domain;
    }
    for (uint32_t k = 0; k < q->f.n; k++) {
        const node_id node = field_node(&q->f, k);
        if (!(ssn->m->nodes.flags[node.i] & NODE_KNOWN)) {
            continue;
        }
        const bool measure = amounts && session_may_use(ssn, node);
        const uint32_t d = measure ? short_of(ssn->m, s, node) : HK_NONE;
        if (d != HK_NONE) {
            fit_log_add(log, (struct reason){.code = REASON_INSUFFICIENT, .arg = d});
            fit_log_node(log, node, UNFIT);
            continue;
        }
        block[n++] = node;
        if (n == BLOCK) {
            explain_filters(ssn, q, block, n, log);
            n = 0;
        }
    }
    explain_filters(ssn, q, block, n, log);
    return log;
}
