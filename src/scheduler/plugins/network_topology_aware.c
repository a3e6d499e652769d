// SPDX-License-Identifier: Apache-2.0
// network-topology-aware: keeps jobs whose tasks communicate a lot within a small part of the
// network. For jobs with a topology it offers the allowed hyperNodes, prefers those that become
// fullest, and inside them nodes close to the job's other tasks. Pods without a topology go to
// hyperNodes already in use, so that whole ones stay free.

#include "scheduler/plugins/gradient.h"
#include "scheduler/plugins/hyper_books.h"

#include <math.h>

/* What the tasks of a sub-job request, by dimension. */
struct topology_demand {
    int64_t *all;
    int64_t *waiting; /* of those without a place */
    int64_t *small;   /* smallest request of a single task */
};

struct topology_aware {
    int64_t weight, cpu, memory;
    struct hk_str resources;
    struct opt_pairs weights;
    bool normal_pods;
    double fading;
    int64_t max_evict;

    double of[DIM_MAX]; /* weight by index in the books */
    struct hyper_books books;
    double *tier_weight; /* by hyperNode: its weight for pods without a topology */
    double tier_total;   /* of all tiers; 0: no such scores */
    double *value;       /* by hyperNode, during the current call */
    struct {
        sub_id sub;  /* whose tasks are counted, or NO_SUB */
        uint32_t *n; /* by hyperNode */
    } counted;
    struct topology_demand *demands; /* by sub-job; made for all of a job at once */
};

static const struct opt topology_aware_opts[] = {
    OPT(OPT_INT, struct topology_aware, weight, "weight", "1",
        "how much the scores count; 0 leaves the choice of domains alone"),
    OPT(OPT_INT, struct topology_aware, cpu, "hypernode.binpack.cpu", "1", "weight of cpu"),
    OPT(OPT_INT, struct topology_aware, memory, "hypernode.binpack.memory", "1",
        "weight of memory"),
    OPT(OPT_STR, struct topology_aware, resources, "hypernode.binpack.resources", NULL,
        "further resources to look at, separated by commas"),
    OPT(OPT_PAIRS, struct topology_aware, weights, "hypernode.binpack.resources.", NULL,
        "weight of a resource listed there, 1 when unset"),
    OPT(OPT_BOOL, struct topology_aware, normal_pods, "hypernode.binpack.normal-pod.enable", "true",
        "whether pods without a topology fill up hyperNodes, too"),
    OPT(OPT_FLOAT, struct topology_aware, fading, "hypernode.binpack.normal-pod.fading", "0.8",
        "how much less each further tier counts for them; 0: only tier 1 counts"),
    OPT(OPT_INT, struct topology_aware, max_evict, "hypernode.gradient.evict.max-hypernodes", "8",
        "hyperNodes to look for victims in"),
};

/* ---- opening ---- */

static double at_least_zero(int64_t weight)
{
    return weight < 0 ? 1 : (double)weight;
}

static int64_t topology_aware_resource_weight(const struct topology_aware *a, struct hk_str name)
{
    for (uint32_t i = 0; i < a->weights.n; i++) {
        if (hk_str_eq(a->weights.at[i].name, name)) {
            return a->weights.at[i].v;
        }
    }
    return 1;
}

/* cpu and memory have their own weights; listing them has no effect. */
static uint32_t list_resources(struct topology_aware *a, const struct model *m, uint32_t *dims)
{
    struct hk_str rest = a->resources, name;
    uint64_t seen = RVEC_BASE;
    uint32_t n = 0;

    dims[n] = DIM_CPU;
    a->of[n++] = at_least_zero(a->cpu);
    dims[n] = DIM_MEM;
    a->of[n++] = at_least_zero(a->memory);
    while (hk_str_cut(&rest, ',', &name)) {
        name = hk_str_trim(name);
        const uint32_t d = dims_find(&m->dims, name);
        if (d != HK_NONE && !((seen >> d) & 1)) {
            seen |= 1ULL << d;
            dims[n] = d;
            a->of[n++] = at_least_zero(topology_aware_resource_weight(a, name));
        }
    }
    return n;
}

/* Every tier between the lowest and the highest counts, including unused ones. */
static double fading_sum(double fading, int32_t from, int32_t to)
{
    if (fading == 1) {
        return (double)to - from + 1;
    }
    return (pow(fading, (double)from - 1) - pow(fading, to)) / (1 - fading);
}

static void weigh_tiers(struct topology_aware *a, struct session *ssn)
{
    const struct hyper_books *b = &a->books;
    const double total = fading_sum(a->fading, b->min_tier, b->max_tier);

    a->tier_weight = hk_arena_zalloc(ssn->mem, b->nhyper * sizeof(a->tier_weight[0]));
    if (!(total > 0) || !isfinite(total)) {
        return;
    }
    a->tier_total = total;
    a->tier_weight[HYPER_ROOT.i] = pow(a->fading, (double)b->max_tier - 1);
    for (uint32_t i = 0; i < b->n; i++) {
        const hyper_id h = b->by_tier[i];
        a->tier_weight[h.i] = pow(a->fading, (double)ssn->m->hypers.at[h.i].tier - 1);
    }
}

static void topology_aware_open(struct session *ssn, void *self)
{
    struct topology_aware *a = self;
    uint32_t dims[DIM_MAX];
    const uint32_t ndim = list_resources(a, ssn->m, dims);

    a->weight = a->weight < 0 ? 1 : a->weight;
    a->fading = a->fading < 0 ? 0.8 : a->fading;
    a->max_evict = a->max_evict <= 0 ? 8 : a->max_evict;
    a->counted.sub = NO_SUB;
    a->demands = hk_arena_zalloc(ssn->mem, ssn->m->subs.len * sizeof(a->demands[0]));
    hyper_books_open(&a->books, ssn, dims, ndim);
    if (a->books.n > 0) {
        weigh_tiers(a, ssn);
        a->value = hk_arena_array(ssn->mem, a->books.nhyper, sizeof(a->value[0]));
        a->counted.n = hk_arena_array(ssn->mem, a->books.nhyper, sizeof(a->counted.n[0]));
    }
}

/* ---- the sub-job's tasks, by hyperNode ---- */

static void counted_add(struct topology_aware *a, node_id n, int sign)
{
    const struct hyper_books *b = &a->books;

    a->counted.n[HYPER_ROOT.i] += (uint32_t)sign;
    for (uint32_t k = b->first[n.i]; k < b->first[n.i + 1]; k++) {
        a->counted.n[b->at[k].i] += (uint32_t)sign;
    }
}

static void counted_begin(struct topology_aware *a, const struct model *m, sub_id s)
{
    if (id_eq(a->counted.sub, s)) {
        return;
    }
    a->counted.sub = s;
    memset(a->counted.n, 0, a->books.nhyper * sizeof(a->counted.n[0]));
    if (model_sub(m, s)->tally.n[TASK_PENDING] == model_sub(m, s)->tally.total) {
        return;
    }
    for (task_id t = model_job(m, model_sub(m, s)->job)->others; !id_none(t);
         t = model_task(m, t)->job_next) {
        const struct task *task = model_task(m, t);
        if (id_eq(task->sub, s) && !id_none(task->node)) {
            counted_add(a, task->node, 1);
        }
    }
}

static double counted_share(const struct topology_aware *a, const struct model *m, hyper_id h)
{
    const uint32_t total = model_sub(m, a->counted.sub)->tally.total;

    return total > 0 ? (double)a->counted.n[h.i] / total : 0;
}

/* ---- what sub-jobs ask for ---- */

static void add_request(const struct model *m, task_id t, int sign, int64_t *sum)
{
    const struct shape *s = task_shape(m, t);

    for (uint32_t k = 0; k < s->nreq; k++) {
        sum[s->req[k].dim] += sign * s->req[k].v;
    }
}

static struct topology_demand topology_demand_new(struct session *ssn)
{
    const uint32_t n = ssn->m->dims.n;
    int64_t *at = hk_arena_zalloc(ssn->mem, 3 * n * sizeof(at[0]));

    for (uint32_t d = 0; d < n; d++) {
        at[2 * n + d] = INT64_MAX;
    }
    return (struct topology_demand){at, at + n, at + 2 * n};
}

static void topology_demand_add(const struct topology_demand *ap, const struct model *m, task_id t)
{
    for (uint32_t d = 0; d < m->dims.n; d++) {
        ap->small[d] = HK_MIN(ap->small[d], shape_req(task_shape(m, t), d));
    }
    add_request(m, t, 1, ap->all);
}

/* Computes all sub-jobs of a job at once: there may be thousands. */
static const struct topology_demand *topology_demand_of(struct topology_aware *a,
                                                        struct session *ssn, sub_id id)
{
    const struct model *m = ssn->m;
    const struct job *job = model_job(m, model_sub(m, id)->job);

    if (a->demands[id.i].all) {
        return &a->demands[id.i];
    }
    for (sub_id s = job->first_sub; !id_none(s); s = model_sub(m, s)->next) {
        a->demands[s.i] = topology_demand_new(ssn);
    }
    for (task_id t = job->pending; !id_none(t); t = model_task(m, t)->job_next) {
        const struct topology_demand *ap = &a->demands[model_task(m, t)->sub.i];
        topology_demand_add(ap, m, t);
        add_request(m, t, 1, ap->waiting);
    }
    for (task_id t = job->others; !id_none(t); t = model_task(m, t)->job_next) {
        topology_demand_add(&a->demands[model_task(m, t)->sub.i], m, t);
    }
    return &a->demands[id.i];
}

static void topology_demand_move(const struct topology_aware *a, const struct model *m, task_id t,
                                 int sign)
{
    const sub_id s = model_task(m, t)->sub;

    if (!id_none(s) && a->demands[s.i].all) {
        add_request(m, t, sign, a->demands[s.i].waiting);
    }
}

/* The least that the tasks the sub-job still needs can request; NULL when it needs all that
 * wait. */
static const int64_t *topology_demand_least(const struct topology_demand *ap, struct session *ssn,
                                            sub_id s)
{
    const struct sub_job *sub = model_sub(ssn->m, s);
    const int64_t have = (int64_t)tally_ready(&sub->tally) + sub->tally.n[TASK_PIPELINED];
    const int64_t lacks = HK_MAX(sub->min - have, (int64_t)1);

    if (lacks >= (int64_t)sub->tally.n[TASK_PENDING]) {
        return NULL;
    }
    int64_t *least = hk_arena_array(ssn->mem, ssn->m->dims.n, sizeof(least[0]));
    for (uint32_t d = 0; d < ssn->m->dims.n; d++) {
        least[d] = ap->small[d] * lacks;
    }
    return least;
}

/* ---- events ---- */

static void topology_aware_move_task(struct topology_aware *a, const struct model *m, task_id t,
                                     node_id n, int sign)
{
    if (!id_none(n) && id_eq(a->counted.sub, model_task(m, t)->sub)) {
        counted_add(a, n, sign);
    }
}

static bool topology_aware_allocate(struct session *ssn, void *self, task_id t)
{
    struct topology_aware *a = self;
    const uint8_t status = model_task(ssn->m, t)->status;

    if (a->books.n > 0) {
        topology_aware_move_task(a, ssn->m, t, hyper_books_allocate(&a->books, ssn->m, t), 1);
    }
    if (status == TASK_ALLOCATED || status == TASK_PIPELINED) {
        topology_demand_move(a, ssn->m, t, -1);
    }
    return true;
}

static void topology_aware_deallocate(struct session *ssn, void *self, task_id t)
{
    struct topology_aware *a = self;

    if (a->books.n > 0) {
        topology_aware_move_task(a, ssn->m, t, hyper_books_deallocate(&a->books, ssn->m, t), -1);
    }
    if (model_task(ssn->m, t)->status == TASK_PENDING) {
        topology_demand_move(a, ssn->m, t, 1);
    }
}

/* ---- domains ---- */

static bool topology_aware_offer_gradients(struct topology_aware *a, struct session *ssn,
                                           const struct gradient_ask *ask,
                                           enum gradient_purpose why, struct gradients *ret)
{
    if (why == GRADIENT_EVICT) {
        return gradient_evict(ssn, ask, (uint32_t)HK_MIN(a->max_evict, (int64_t)UINT32_MAX), ret);
    }
    return gradient_allocate(ssn, ask, ret);
}

static bool topology_aware_gradient_job(struct session *ssn, void *self, job_id j, hyper_id start,
                                        enum gradient_purpose why, struct gradients *ret)
{
    const struct job *job = model_job(ssn->m, j);
    const struct gradient_ask ask = {
        .start = start,
        .limit = job->topo.eff_tier,
        .mark = job->mark,
        .need = job->has_minres ? job_vec(ssn->m, j, JV_MINRES) : NULL,
    };

    if (job->topo.eff_mode != TOPO_HARD) {
        gradient_only(ssn, start, ret);
        return true;
    }
    return topology_aware_offer_gradients(self, ssn, &ask, why, ret);
}

static bool topology_aware_gradient_sub(struct session *ssn, void *self, sub_id s, hyper_id start,
                                        enum gradient_purpose why, struct gradients *ret)
{
    struct topology_aware *a = self;
    const struct sub_job *sub = model_sub(ssn->m, s);
    struct gradient_ask ask = {.start = start, .limit = sub->topo.eff_tier, .mark = sub->mark};

    if (sub->topo.eff_mode != TOPO_HARD) {
        gradient_only(ssn, start, ret);
        return true;
    }
    const struct topology_demand *ap = topology_demand_of(a, ssn, s);
    ask.need = ap->waiting;
    ask.least = topology_demand_least(ap, ssn, s);
    return topology_aware_offer_gradients(a, ssn, &ask, why, ret);
}

/* ---- scores ---- */

static double topology_aware_scale_score(const struct topology_aware *a, double score)
{
    return 100 * (double)a->weight * score;
}

/* How full the hyperNode would be with the request on top; 0 where it would not fit. */
struct fullness {
    double sum, weight;
    bool over;
};

static void fullness_add(struct fullness *f, const struct topology_aware *a, hyper_id h,
                         uint32_t slot, int64_t req)
{
    const int64_t capacity = hyper_books_capacity(&a->books, h, slot);
    const int64_t full = hyper_books_used(&a->books, h, slot) + req;

    if (full > capacity) {
        f->over = true;
        return;
    }
    f->sum += a->of[slot] * ((double)full / (double)capacity);
    f->weight += a->of[slot];
}

static double fullness_value(const struct fullness *f)
{
    return f->over || f->weight <= 0 ? 0 : f->sum / f->weight;
}

static int topology_aware_hyper_order(struct session *ssn, void *self, sub_id s, const hyper_id *at,
                                      uint32_t n, double *score)
{
    struct topology_aware *a = self;
    const struct model *m = ssn->m;
    const struct hyper_books *b = &a->books;
    const int64_t *req = topology_demand_of(a, ssn, s)->all;
    double best = -1;
    uint32_t nbest = 0;

    if (b->n == 0) {
        return 0; /* nothing to choose from */
    }
    for (uint32_t i = 0; i < n; i++) {
        struct fullness f = {0};
        for (uint32_t k = 0; k < b->ndim; k++) {
            if (req[b->dim[k]] > 0) {
                fullness_add(&f, a, at[i], k, req[b->dim[k]]);
            }
        }
        const double v = a->value[at[i].i] = fullness_value(&f);
        nbest = v > best ? 1 : nbest + (v == best);
        best = HK_MAX(best, v);
    }
    counted_begin(a, m, s);
    for (uint32_t i = 0; i < n; i++) {
        const double v = a->value[at[i].i];
        const double more = nbest > 1 && v == best ? counted_share(a, m, at[i]) : 0;
        score[i] += topology_aware_scale_score(a, v + more);
    }
    return 0;
}

/* The lower the tier of the smallest hyperNode that contains h and the mark, the better. */
static double closeness(const struct topology_aware *a, const struct model *m, hyper_id h,
                        hyper_id mark)
{
    const struct hyper_books *b = &a->books;
    const hyper_id common = model_hyper_lca(m, h, mark);

    if (id_none(common)) {
        return 0;
    }
    return (double)(b->max_tier - m->hypers.at[common.i].tier) / (b->max_tier - b->min_tier);
}

static void score_close(struct topology_aware *a, const struct model *m, sub_id s,
                        const node_id *nodes, uint32_t n, double *score)
{
    const struct hyper_books *b = &a->books;
    const hyper_id mark = model_sub(m, s)->mark;
    double best = -1;
    uint32_t nbest = 0;

    for (uint32_t i = 0; i < b->n && m->hypers.at[b->by_tier[i].i].tier == b->min_tier; i++) {
        const hyper_id h = b->by_tier[i];
        a->value[h.i] = id_eq(h, mark) ? 1 : closeness(a, m, h, mark);
    }
    for (uint32_t i = 0; i < n; i++) {
        const hyper_id h = hyper_books_lowest(b, m, nodes[i]);
        const double v = id_none(h) ? 0 : a->value[h.i];
        nbest = v > best ? 1 : nbest + (v == best);
        best = HK_MAX(best, v);
    }
    counted_begin(a, m, s);
    for (uint32_t i = 0; i < n; i++) {
        const hyper_id h = hyper_books_lowest(b, m, nodes[i]);
        if (id_none(h)) {
            continue;
        }
        const double v = a->value[h.i];
        const double more = nbest > 1 && v == best ? counted_share(a, m, h) : 0;
        score[i] += topology_aware_scale_score(a, v + more);
    }
}

static double pod_fullness(const struct topology_aware *a, const struct shape *s, hyper_id h)
{
    struct fullness f = {0};

    for (uint32_t k = 0; k < s->nreq; k++) {
        const uint32_t slot = a->books.slot[s->req[k].dim];
        if (slot != HK_NONE) {
            fullness_add(&f, a, h, slot, s->req[k].v);
        }
    }
    return fullness_value(&f);
}

/* A mean over tiers, in which nearer tiers count more. A node in no hyperNode of a tier gets the
 * full score there: using it is better than using a free hyperNode. */
static void score_full(struct topology_aware *a, const struct model *m, task_id t,
                       const node_id *nodes, uint32_t n, double *score)
{
    const struct hyper_books *b = &a->books;
    const struct shape *s = task_shape(m, t);

    for (uint32_t i = 0; i < b->n; i++) {
        const hyper_id h = b->by_tier[i];
        a->value[h.i] = a->tier_weight[h.i] * (1 - pod_fullness(a, s, h));
    }
    const double base =
        a->tier_total - a->tier_weight[HYPER_ROOT.i] * (1 - pod_fullness(a, s, HYPER_ROOT));
    for (uint32_t i = 0; i < n; i++) {
        double sum = base;
        int64_t tier = INT64_MIN;
        for (uint32_t k = b->first[nodes[i].i]; k < b->first[nodes[i].i + 1]; k++) {
            const hyper_id h = b->at[k];
            if (m->hypers.at[h.i].tier != tier) { /* the first of a tier counts */
                tier = m->hypers.at[h.i].tier;
                sum -= a->value[h.i];
            }
        }
        score[i] += topology_aware_scale_score(a, sum / a->tier_total);
    }
}

static bool has_topology(const struct model *m, task_id t)
{
    const sub_id s = model_task(m, t)->sub;

    return !id_none(s) && model_sub(m, s)->topo.eff_mode != TOPO_NONE;
}

static bool scores_normal(const struct topology_aware *a)
{
    return a->normal_pods && a->tier_total > 0;
}

static int topology_aware_score(struct session *ssn, void *self, task_id t, const node_id *nodes,
                                uint32_t n, double *score)
{
    struct topology_aware *a = self;
    const sub_id s = model_task(ssn->m, t)->sub;

    if (a->books.n == 0 || a->weight == 0) {
        return 0; /* without hyperNodes all nodes are equal */
    }
    if (!has_topology(ssn->m, t)) {
        if (scores_normal(a)) {
            score_full(a, ssn->m, t, nodes, n, score);
        }
    } else if (!id_none(model_sub(ssn->m, s)->mark)) {
        score_close(a, ssn->m, s, nodes, n, score);
    }
    return 0;
}

static bool topology_aware_score_local(struct session *ssn, void *self, task_id t)
{
    const struct topology_aware *a = self;

    if (a->books.n == 0 || a->weight == 0) {
        return true;
    }
    return !has_topology(ssn->m, t) && !scores_normal(a);
}

const struct plugin plugin_network_topology_aware = {
    .name = "network-topology-aware",
    .about = "keep a job's tasks close together in the network",
    .state_size = sizeof(struct topology_aware),
    .opts = topology_aware_opts,
    .nopt = HK_LEN(topology_aware_opts),
    .open = topology_aware_open,
    .gradient_job = topology_aware_gradient_job,
    .gradient_sub = topology_aware_gradient_sub,
    .hyper_order = topology_aware_hyper_order,
    .score = topology_aware_score,
    .score_local = topology_aware_score_local,
    .allocate = topology_aware_allocate,
    .deallocate = topology_aware_deallocate,
};
