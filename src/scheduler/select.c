// SPDX-License-Identifier: Apache-2.0
// Choosing a node (scheduler.md section 5): resource check, filters, scores.
//
// A search visits node rows from a rotating start until enough feasible ones are met (5.1), in
// blocks of 64 so that the resource check is a straight pass over columns. Within one run of a task
// loop, tasks of one shape share a window of candidates, a slot:
//
//   window   rows [start, start + visited) of the rotation; its feasible rows are the candidates
//   heap     candidates ordered by (group, score, order of visit), made on the second use; before,
//            one pass over their scores finds the best
//   upkeep   the journal tells which nodes were touched since the last use: only those are scored
//            again or dropped, and the window is widened when candidates run out
//
// That is exact only while a placement changes nothing but its own node. Plugins say for which
// tasks that holds (filter_local, score_local); all others get a fresh search each time. A shape
// that found no node at all is remembered until something frees room or the journal is rewound past
// that point. With session_opts.plain the window is evaluated anew for every task: the oracle of
// the shortcuts.
#include "scheduler/session_priv.h"

enum { NSLOT = 8, BLOCK = 64 };

/* Nodes of a lower group go first (5.3). */
enum group {
    GROUP_IDLE,       /* fits now */
    GROUP_IDLE_OTHER, /* the same, in the shard of another scheduler */
    GROUP_FUTURE,     /* fits later */
    GROUP_FUTURE_OTHER,
    NGROUP,
};

struct cand {
    double score;
    uint32_t seq; /* order of visit in the window */
    node_id node;
    enum group group;
};

struct slot {
    uint64_t run; /* the task loop it belongs to, 0 unused */
    shape_id shape;
    uint32_t start, visited;
    uint32_t op_len;    /* journal length at the last use */
    uint64_t op_serial; /* and its newest serial */
    uint64_t gains;
    bool heaped; /* candidates are in c as a heap; before, in node and score in order of visit */
    HK_VEC(node_id) node;
    HK_VEC(double) score;
    struct {
        struct cand *at;
        uint32_t len, cap;
    } c;
    uint32_t *pos; /* by node row: 1 + index in c, valid when the row's stamp is this slot's */
    uint64_t *stamp;
    uint64_t life; /* stamp value of this use of the slot */
    uint32_t npos;
};

/* A shape that found no node. */
struct failure {
    uint64_t session; /* 0: not valid */
    uint64_t gains;
    uint64_t serial; /* newest op when it failed */
    struct fit_log *log;
};

struct select {
    uint64_t run;
    uint64_t lives;
    hyper_id domain;
    uint32_t rotate; /* where the next search starts */
    struct slot slots[NSLOT];
    uint32_t next_slot;
    struct failure *fail; /* by shape */
    uint32_t nfail;
    HK_VEC(shape_id) failed; /* in order of serial, for rewinds */
    HK_VEC(node_id) found;
    HK_VEC(double) score;
    HK_VEC(node_id) group;
};

struct select *select_new(void)
{
    return hk_zalloc(sizeof(struct select));
}

void select_free(struct select *s)
{
    for (uint32_t k = 0; k < NSLOT; k++) {
        hk_vec_fini(&s->slots[k].node);
        hk_vec_fini(&s->slots[k].score);
        hk_vec_fini(&s->slots[k].c);
        hk_free(s->slots[k].pos);
        hk_free(s->slots[k].stamp);
    }
    hk_vec_fini(&s->failed);
    hk_vec_fini(&s->found);
    hk_vec_fini(&s->score);
    hk_vec_fini(&s->group);
    hk_free(s->fail);
    hk_free(s);
}

void select_open(struct session *ssn)
{
    struct select *s = ssn->select;
    const uint32_t want = ssn->m->shapes.cap;

    hk_vec_clear(&s->failed);
    if (want > s->nfail) {
        s->fail = hk_realloc_array(s->fail, want, sizeof(*s->fail));
        memset(s->fail + s->nfail, 0, (want - s->nfail) * sizeof(*s->fail));
        s->nfail = want;
    }
    hk_vec_reserve(&s->found, ssn->m->nodes.len + BLOCK);
    hk_vec_reserve(&s->group, ssn->m->nodes.len + BLOCK);
    hk_vec_reserve(&s->score, ssn->m->nodes.len + BLOCK);
    select_begin(ssn, HYPER_ROOT);
}

void select_begin(struct session *ssn, hyper_id domain)
{
    ssn->select->run++;
    ssn->select->next_slot = 0; /* the same few slots, warm in cache and grown, serve every run */
    ssn->select->domain = domain;
}

uint32_t select_want(const struct session_opts *o, uint32_t n)
{
    uint32_t pct = o->percentage;

    if (n <= o->min_feasible || pct >= 100) {
        return n;
    }
    if (pct == 0) {
        const int64_t adaptive = 50 - (int64_t)n / 125;
        pct = (uint32_t)HK_MAX(adaptive, (int64_t)o->min_percentage);
    }
    return (uint32_t)HK_MAX((uint64_t)n * pct / 100, (uint64_t)o->min_feasible);
}

/* ---- the domain searched ---- */

/* Rows to visit: a hyperNode's list, or every row of the table. */
struct field {
    const node_id *list; /* NULL: rows 0..n */
    uint32_t n;
    uint32_t live; /* what sampling goes by */
};

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
 * of one width and no branches, so that the compiler makes vector code of it. */
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

/* Where nothing is being released or waited for, what is free later is free now. */
static bool fits_idle(const struct model *m, const struct shape *s, node_id n)
{
    return m->unsettled == 0 || model_fits_idle(m, s, n);
}

static enum group group_of(const struct session *ssn, const struct shape *s, node_id n)
{
    return (fits_idle(ssn->m, s, n) ? GROUP_IDLE : GROUP_FUTURE) + !session_in_shard(ssn, n);
}

static enum placement placement_of(enum group g)
{
    return g < GROUP_FUTURE ? PLACE_IDLE : PLACE_FUTURE;
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

/* Nodes the task itself was refused for good on, earlier in this session (3.6). */
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

struct search {
    struct field f;
    task_id t;
    enum filter_mode mode;
    bool check;
    uint32_t start, visited; /* continues where it left off */
    uint32_t want;
    node_id *out;
    uint32_t n;
};

/* The index in the rotation just behind the kept node. */
static uint32_t rotation_after(const struct search *q, node_id kept, uint32_t from)
{
    for (uint32_t k = from; k < q->f.n; k++) {
        if (id_eq(field_node(&q->f, (q->start + k) % q->f.n), kept)) {
            return k + 1;
        }
    }
    return q->f.n;
}

/* Goes on until want nodes are in out or every row was visited. */
static void search_run(struct session *ssn, struct search *q)
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

static struct search search_for(struct session *ssn, task_id t, hyper_id domain,
                                enum filter_mode mode, bool check)
{
    struct search q = {.f = field_of(ssn, domain), .t = t, .mode = mode, .check = check};

    q.want = select_want(&ssn->opts, q.f.live);
    q.start = q.f.n ? ssn->select->rotate % q.f.n : 0;
    q.out = ssn->select->found.at;
    return q;
}

static void rotate(struct session *ssn, const struct search *q)
{
    if (q->f.n > 0) {
        ssn->select->rotate = (q->start + q->visited) % q->f.n;
    }
}

/* ---- reasons, worked out only when a search came back empty ---- */

static uint32_t short_of(const struct model *m, const struct shape *s, node_id n)
{
    for (uint32_t k = 0; k < s->nreq; k++) {
        if (m->nodes.future.col[s->req[k].dim][n.i] < s->req[k].v) {
            return s->req[k].dim;
        }
    }
    return HK_NONE;
}

/* What filters say about the nodes. Those they have nothing against lack a pod slot. */
static void explain_filters(struct session *ssn, const struct search *q, node_id *nodes, uint32_t n,
                            struct fit_log *log)
{
    const uint32_t kept = hooks_filter(ssn, q->t, q->mode, nodes, n, log);

    for (uint32_t i = 0; q->check && i < kept; i++) {
        fit_log_add(log, (struct reason){.code = REASON_INSUFFICIENT, .arg = DIM_PODS});
        fit_log_node(log, nodes[i], UNFIT);
    }
}

static struct fit_log *explain(struct session *ssn, const struct search *q, hyper_id domain)
{
    /* A task that asks for nothing but a slot leaves it to the filters to count pods: they have
     * words of their own for a full node. */
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

static uint64_t newest_serial(const struct session *ssn)
{
    return ssn->ops.len ? ssn->ops.at[ssn->ops.len - 1].serial : 0;
}

static void remember_failure(struct session *ssn, shape_id shape, struct fit_log *log)
{
    struct select *s = ssn->select;

    s->fail[shape.i] = (struct failure){
        .session = ssn->uid, .gains = ssn->gains, .serial = newest_serial(ssn), .log = log};
    hk_vec_push(&s->failed, shape);
}

static struct fit_log *known_failure(const struct session *ssn, shape_id shape)
{
    const struct failure *f = &ssn->select->fail[shape.i];

    if (ssn->opts.plain || f->session != ssn->uid || f->gains != ssn->gains) {
        return NULL;
    }
    return f->log;
}

/* Failures found after the mark the journal went back to no longer hold. */
void select_rewound(struct session *ssn)
{
    struct select *s = ssn->select;
    const uint64_t serial = newest_serial(ssn);

    while (s->failed.len > 0 && s->fail[s->failed.at[s->failed.len - 1].i].serial > serial) {
        s->fail[hk_vec_pop(&s->failed).i].session = 0;
    }
}

/* ---- candidates of a slot ---- */

static bool before(const struct cand *a, const struct cand *b)
{
    if (a->group != b->group) {
        return a->group < b->group;
    }
    if (a->score != b->score) {
        return a->score > b->score;
    }
    return a->seq < b->seq;
}

static void put_at(struct slot *s, uint32_t i, struct cand c)
{
    s->c.at[i] = c;
    s->pos[c.node.i] = i + 1;
    s->stamp[c.node.i] = s->life;
}

static uint32_t sift_up(struct slot *s, uint32_t i)
{
    const struct cand c = s->c.at[i];

    while (i > 0 && before(&c, &s->c.at[(i - 1) / 2])) {
        put_at(s, i, s->c.at[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put_at(s, i, c);
    return i;
}

static void sift_down(struct slot *s, uint32_t i)
{
    const struct cand c = s->c.at[i];

    for (;;) {
        uint32_t k = 2 * i + 1;
        if (k >= s->c.len) {
            break;
        }
        if (k + 1 < s->c.len && before(&s->c.at[k + 1], &s->c.at[k])) {
            k++;
        }
        if (!before(&s->c.at[k], &c)) {
            break;
        }
        put_at(s, i, s->c.at[k]);
        i = k;
    }
    put_at(s, i, c);
}

static void reheap_at(struct slot *s, uint32_t i)
{
    if (sift_up(s, i) == i) {
        sift_down(s, i);
    }
}

static void heapify(struct session *ssn, struct slot *s, task_id t)
{
    const struct shape *shape = task_shape(ssn->m, t);

    hk_vec_reserve(&s->c, s->node.len);
    s->c.len = s->node.len;
    for (uint32_t i = 0; i < s->c.len; i++) {
        put_at(s, i,
               (struct cand){.score = s->score.at[i],
                             .seq = i,
                             .node = s->node.at[i],
                             .group = group_of(ssn, shape, s->node.at[i])});
    }
    for (uint32_t i = s->c.len / 2; i-- > 0;) {
        sift_down(s, i);
    }
    s->heaped = true;
}

static void remove_at(struct slot *s, uint32_t i)
{
    const struct cand last = hk_vec_pop(&s->c);

    if (i < s->c.len) {
        put_at(s, i, last);
        reheap_at(s, i);
    }
}

static uint32_t slot_len(const struct slot *s)
{
    return s->heaped ? s->c.len : s->node.len;
}

/* The best candidate; PLACE_NONE when there is none. */
static enum placement slot_best(const struct session *ssn, const struct slot *s, task_id t,
                                node_id *ret)
{
    const struct shape *shape = task_shape(ssn->m, t);
    struct cand best = {.seq = UINT32_MAX};

    if (s->heaped && s->c.len > 0) {
        best = s->c.at[0];
    }
    for (uint32_t i = 0; !s->heaped && i < s->node.len; i++) {
        const struct cand c = {.score = s->score.at[i],
                               .seq = i,
                               .node = s->node.at[i],
                               .group = group_of(ssn, shape, s->node.at[i])};
        if (best.seq == UINT32_MAX || before(&c, &best)) {
            best = c;
        }
    }
    if (best.seq == UINT32_MAX) {
        return PLACE_NONE;
    }
    *ret = best.node;
    return placement_of(best.group);
}

/* ---- slots ---- */

static struct slot *slot_find(struct select *s, shape_id shape)
{
    for (uint32_t k = 0; k < NSLOT; k++) {
        if (s->slots[k].run == s->run && id_eq(s->slots[k].shape, shape)) {
            return &s->slots[k];
        }
    }
    return NULL;
}

static struct slot *slot_take(struct session *ssn, shape_id shape)
{
    struct select *s = ssn->select;
    struct slot *slot = &s->slots[s->next_slot];
    const uint32_t rows = ssn->m->nodes.cap;

    s->next_slot = (s->next_slot + 1) % NSLOT;
    if (rows > slot->npos) {
        slot->pos = hk_realloc_array(slot->pos, rows, sizeof(*slot->pos));
        slot->stamp = hk_realloc_array(slot->stamp, rows, sizeof(*slot->stamp));
        memset(slot->stamp, 0, rows * sizeof(*slot->stamp));
        slot->npos = rows;
    }
    hk_vec_clear(&slot->node);
    hk_vec_clear(&slot->score);
    hk_vec_clear(&slot->c);
    slot->run = s->run;
    slot->shape = shape;
    slot->start = ssn->m->nodes.len ? s->rotate : 0;
    slot->visited = 0;
    slot->heaped = false;
    slot->gains = ssn->gains;
    slot->life = ++s->lives;
    return slot;
}

static void slot_used(const struct session *ssn, struct slot *s)
{
    s->op_len = ssn->ops.len;
    s->op_serial = newest_serial(ssn);
}

/* Still a plain continuation of what the slot saw: nothing freed, nothing rewound. */
static bool slot_current(const struct session *ssn, const struct slot *s)
{
    if (s->gains != ssn->gains || s->op_len > ssn->ops.len) {
        return false;
    }
    return s->op_len == 0 || ssn->ops.at[s->op_len - 1].serial == s->op_serial;
}

/* Scores nodes[n] and adds them to the candidates. */
static bool add_candidates(struct session *ssn, struct slot *s, task_id t, const node_id *nodes,
                           uint32_t n, uint32_t first_seq)
{
    const struct shape *shape = task_shape(ssn->m, t);
    const uint32_t at = s->heaped ? 0 : s->score.len;
    double *score;

    hk_vec_reserve(&s->score, at + n);
    score = s->score.at + at;
    memset(score, 0, n * sizeof(*score));
    if (hooks_score(ssn, t, nodes, n, score) < 0) {
        return false;
    }
    if (!s->heaped) {
        hk_vec_reserve(&s->node, at + n);
        memcpy(s->node.at + at, nodes, n * sizeof(*nodes));
        s->node.len = s->score.len = at + n;
        return true;
    }
    hk_vec_reserve(&s->c, s->c.len + n);
    for (uint32_t i = 0; i < n; i++) {
        s->c.at[s->c.len++] = (struct cand){.score = score[i],
                                            .seq = first_seq + i,
                                            .node = nodes[i],
                                            .group = group_of(ssn, shape, nodes[i])};
        sift_up(s, s->c.len - 1);
    }
    return true;
}

/* Widens the window until enough candidates are in it. */
static bool slot_fill(struct session *ssn, struct slot *s, task_id t)
{
    struct search q = search_for(ssn, t, ssn->select->domain, FILTER_PLACE, true);

    if (slot_len(s) >= q.want || s->visited >= q.f.n) {
        return true;
    }
    q.start = q.f.n ? s->start % q.f.n : 0;
    q.visited = s->visited;
    q.want -= slot_len(s);
    search_run(ssn, &q);
    rotate(ssn, &q);
    /* Order of visit goes on growing: rows visited so far are a bound on earlier numbers. */
    const uint32_t first_seq = s->visited;
    s->visited = q.visited;
    return q.n == 0 || add_candidates(ssn, s, t, q.out, q.n, first_seq);
}

/* Brings candidates on nodes touched since the last use up to date. */
static bool slot_sync(struct session *ssn, struct slot *s, task_id t)
{
    const struct shape *shape = task_shape(ssn->m, t);

    for (uint32_t k = s->op_len; k < ssn->ops.len; k++) {
        const node_id n = ssn->ops.at[k].node;
        node_id one = n;
        double score = 0;
        uint32_t i;

        if (!s->heaped) {
            heapify(ssn, s, t);
        }
        if (s->stamp[n.i] != s->life || s->pos[n.i] == 0) {
            continue;
        }
        i = s->pos[n.i] - 1;
        if (i >= s->c.len || !id_eq(s->c.at[i].node, n)) {
            continue;
        }
        if (!model_fits_future(ssn->m, shape, n) ||
            hooks_filter(ssn, t, FILTER_PLACE, &one, 1, NULL) == 0) {
            s->pos[n.i] = 0;
            remove_at(s, i);
            continue;
        }
        if (hooks_score(ssn, t, &n, 1, &score) < 0) {
            return false;
        }
        s->c.at[i].score = score;
        s->c.at[i].group = group_of(ssn, shape, n);
        reheap_at(s, i);
    }
    return true;
}

/* The oracle: every row of the window again, as if nothing were known. */
static bool slot_replay(struct session *ssn, struct slot *s, task_id t)
{
    struct search q = search_for(ssn, t, ssn->select->domain, FILTER_PLACE, true);
    const uint32_t visited = s->visited;

    hk_vec_clear(&s->node);
    hk_vec_clear(&s->score);
    for (uint32_t k = 0; k < visited; k++) {
        const uint32_t at = (s->start + k) % q.f.n;
        node_id one;
        if (take_block(ssn, &q.f, t, true, at, 1, &one) == 1 &&
            hooks_filter(ssn, t, FILTER_PLACE, &one, 1, NULL) == 1 &&
            !add_candidates(ssn, s, t, &one, 1, k)) {
            return false;
        }
    }
    return true;
}

static enum placement select_shared(struct session *ssn, task_id t, node_id *ret,
                                    struct fit_log **ret_log)
{
    const shape_id shape = model_task(ssn->m, t)->shape;
    struct slot *s = slot_find(ssn->select, shape);
    enum placement where;
    bool ok = true;

    if (s && slot_current(ssn, s)) {
        ok = ssn->opts.plain ? slot_replay(ssn, s, t) : slot_sync(ssn, s, t);
    } else {
        if (s) {
            s->run = 0;
        }
        s = slot_take(ssn, shape);
    }
    ok = ok && slot_fill(ssn, s, t);
    slot_used(ssn, s);
    if (!ok) {
        *ret_log = NULL;
        return PLACE_NONE;
    }
    where = slot_best(ssn, s, t, ret);
    if (where == PLACE_NONE) {
        const struct search q = search_for(ssn, t, ssn->select->domain, FILTER_PLACE, true);
        *ret_log = explain(ssn, &q, ssn->select->domain);
        if (id_eq(ssn->select->domain, HYPER_ROOT)) {
            remember_failure(ssn, shape, *ret_log);
        }
    }
    return where;
}

/* ---- a fresh search: scores that depend on the whole candidate set ---- */

static node_id ask_best_node(struct session *ssn, task_id t, const node_id *nodes, uint32_t n,
                             const double *score)
{
    const struct hook_list *l = &ssn->hooks[HOOK_BEST_NODE];

    for (uint32_t k = 0; k < l->n; k++) {
        const node_id best = l->at[k].p->best_node(ssn, l->at[k].self, t, nodes, n, score);
        if (!id_none(best)) {
            return best;
        }
    }
    return NO_NODE;
}

/* Best of the nodes of the group; NO_NODE when there is none or scoring failed. */
static node_id best_in_group(struct session *ssn, task_id t, const struct search *q, enum group g)
{
    const struct shape *shape = task_shape(ssn->m, t);
    node_id *group = ssn->select->group.at;
    double *score = ssn->select->score.at;
    uint32_t n = 0, best = 0;
    node_id asked;

    for (uint32_t i = 0; i < q->n; i++) {
        if (group_of(ssn, shape, q->out[i]) == g) {
            group[n++] = q->out[i];
        }
    }
    if (n <= 1) {
        return n ? group[0] : NO_NODE;
    }
    memset(score, 0, n * sizeof(*score));
    if (hooks_score(ssn, t, group, n, score) < 0) {
        return NO_NODE;
    }
    asked = ask_best_node(ssn, t, group, n, score);
    if (!id_none(asked)) {
        return asked;
    }
    for (uint32_t i = 1; i < n; i++) {
        if (score[i] > score[best]) {
            best = i;
        }
    }
    return group[best];
}

static enum placement select_fresh(struct session *ssn, task_id t, node_id *ret,
                                   struct fit_log **ret_log)
{
    struct search q = search_for(ssn, t, ssn->select->domain, FILTER_PLACE, true);

    search_run(ssn, &q);
    rotate(ssn, &q);
    if (q.n == 0) {
        *ret_log = explain(ssn, &q, ssn->select->domain);
        return PLACE_NONE;
    }
    const uint32_t step = ssn->opts.shard_mode == SHARD_SOFT ? 1 : 2;
    for (uint32_t g = 0; g < NGROUP; g += step) {
        *ret = best_in_group(ssn, t, &q, g);
        if (!id_none(*ret)) {
            return placement_of(g);
        }
    }
    *ret_log = NULL;
    return PLACE_NONE;
}

enum placement select_node(struct session *ssn, task_id t, node_id *ret, struct fit_log **ret_log)
{
    const bool root = id_eq(ssn->select->domain, HYPER_ROOT);

    if (!hooks_filter_local(ssn, t)) {
        return select_fresh(ssn, t, ret, ret_log);
    }
    if (root) {
        *ret_log = known_failure(ssn, model_task(ssn->m, t)->shape);
        if (*ret_log) {
            return PLACE_NONE;
        }
    }
    if (ssn->hooks[HOOK_BEST_NODE].n > 0 || !hooks_score_local(ssn, t)) {
        return select_fresh(ssn, t, ret, ret_log);
    }
    return select_shared(ssn, t, ret, ret_log);
}

/* ---- many nodes ---- */

struct ranked {
    double score;
    uint32_t seq;
    node_id node;
};

static int rank_cmp(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->score != y->score) {
        return x->score > y->score ? -1 : 1;
    }
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static void sort_by_score(struct session *ssn, node_id *nodes, uint32_t n)
{
    struct ranked *r = hk_arena_array(ssn->mem, n + 1, sizeof(*r));

    for (uint32_t i = 0; i < n; i++) {
        r[i] = (struct ranked){.score = ssn->select->score.at[i], .seq = i, .node = nodes[i]};
    }
    qsort(r, n, sizeof(*r), rank_cmp);
    for (uint32_t i = 0; i < n; i++) {
        nodes[i] = r[i].node;
    }
}

/* Nodes of the own shard to the front, order kept otherwise. */
static void own_shard_first(const struct session *ssn, node_id *nodes, uint32_t n)
{
    node_id *others = ssn->select->group.at;
    uint32_t own = 0, nothers = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (session_in_shard(ssn, nodes[i])) {
            nodes[own++] = nodes[i];
        } else {
            others[nothers++] = nodes[i];
        }
    }
    memcpy(nodes + own, others, nothers * sizeof(*nodes));
}

uint32_t select_nodes(struct session *ssn, task_id t, hyper_id domain, enum filter_mode mode,
                      bool check_future, bool scored, node_id **ret, struct fit_log **ret_log)
{
    struct search q = search_for(ssn, t, domain, mode, check_future);
    node_id *out;

    search_run(ssn, &q);
    rotate(ssn, &q);
    *ret_log = NULL;
    if (q.n == 0) {
        *ret_log = explain(ssn, &q, domain);
        return 0;
    }
    out = hk_arena_array(ssn->mem, q.n, sizeof(*out));
    memcpy(out, q.out, q.n * sizeof(*out));
    if (scored && q.n > 1) {
        memset(ssn->select->score.at, 0, q.n * sizeof(double));
        if (hooks_score(ssn, t, out, q.n, ssn->select->score.at) < 0) {
            return 0;
        }
        sort_by_score(ssn, out, q.n);
    }
    if (ssn->opts.shard_mode == SHARD_SOFT) {
        own_shard_first(ssn, out, q.n);
    }
    *ret = out;
    return q.n;
}
