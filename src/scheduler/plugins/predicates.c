// SPDX-License-Identifier: Apache-2.0
// predicates: the filters of Kubernetes. docs/reference/plugins.md section 3 lists their order and
// which answers end the checks of a node. model_static answers by node class for labels, taints and
// cordon. This file adds the pod count and host ports, calls interpod.c, spread.c and the volume
// filters for the rest, and reserves volumes as tasks are placed.
#include "scheduler/model/topo.h"
#include "scheduler/model/volumes.h"
#include "scheduler/plugins/interpod.h"
#include "scheduler/plugins/spread.h"
#include "scheduler/session.h"

struct predicates {
    bool node_affinity, node_ports, taints, pod_affinity, volume_limits, volume_zone, spread,
        volume_binding;
    int64_t volume_wait_s;
};

static const struct opt options[] = {
    OPT(OPT_BOOL, struct predicates, node_affinity, "predicate.NodeAffinityEnable", "true",
        "honour nodeSelector and required node affinity"),
    OPT(OPT_BOOL, struct predicates, node_ports, "predicate.NodePortsEnable", "true",
        "keep host ports from clashing"),
    OPT(OPT_BOOL, struct predicates, taints, "predicate.TaintTolerationEnable", "true",
        "honour NoSchedule and NoExecute taints"),
    OPT(OPT_BOOL, struct predicates, pod_affinity, "predicate.PodAffinityEnable", "true",
        "honour required affinity and anti-affinity between pods"),
    OPT(OPT_BOOL, struct predicates, volume_limits, "predicate.NodeVolumeLimitsEnable", "true",
        "honour the number of volumes a CSI driver can attach to a node"),
    OPT(OPT_BOOL, struct predicates, volume_zone, "predicate.VolumeZoneEnable", "true",
        "keep pods in the zone of their bound volumes"),
    OPT(OPT_BOOL, struct predicates, spread, "predicate.PodTopologySpreadEnable", "true",
        "honour topology spread constraints that say DoNotSchedule"),
    OPT(OPT_BOOL, struct predicates, volume_binding, "predicate.VolumeBindingEnable", "true",
        "place pods only where their claims are or can be bound"),
    OPT(OPT_INT, struct predicates, volume_wait_s, "volumebinding.bindTimeoutSeconds", "600",
        "how long a placed pod waits for its volumes before it is placed anew"),
    {.key = "predicate.CacheEnable",
     .type = OPT_IGNORED,
     .help = "answers about labels and taints are always remembered per kind of node"},
    {.key = "predicate.DynamicResourceAllocationEnable",
     .type = OPT_IGNORED,
     .help = "never read upstream either; resource claims are not supported"},
    {.key = "volumebinding.weight",
     .type = OPT_IGNORED,
     .help = "volume capacity is not scored (StorageCapacityScoring is off)"},
    {.key = "volumebinding.shape",
     .type = OPT_IGNORED,
     .help = "volume capacity is not scored (StorageCapacityScoring is off)"},
    {.key = "dynamicresources.filterTimeoutSeconds",
     .type = OPT_IGNORED,
     .help = "resource claims are not supported"},
};

static struct reason text_reason(struct model *m, struct hk_str text)
{
    return (struct reason){.code = REASON_TEXT, .arg = model_word(m, text)};
}

/* ---- opening ---- */

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)

static void predicates_open(struct session *ssn, void *self)
{
    const struct predicates *p = self;
    const int64_t longest_s = INT64_MAX / SECOND_NS / 4; /* adding it to a time must not overflow */

    ssn->volume_wait_ns = HK_MIN(HK_MAX(p->volume_wait_s, 0), longest_s) * SECOND_NS;
}

/* ---- before nodes are checked ---- */

static bool predicates_pre_predicate(struct session *ssn, void *self, task_id t, struct reason *why)
{
    const struct predicates *p = self;
    const struct cons *c = task_cons(ssn->m, t);

    if (c && p->node_affinity && c->name_conflict) {
        *why = text_reason(ssn->m, HK_STR("plugin NodeAffinity pre-predicates failed "
                                          "pod affinity terms conflict"));
        return false;
    }
    if (!volumes_asked(ssn->m, t)) {
        return true;
    }
    return (!p->volume_limits || volumes_pre_limits(ssn->m, t, why)) &&
           (!p->volume_zone || volumes_pre_zone(ssn->m, t, why)) &&
           (!p->volume_binding || volumes_pre_binding(ssn->m, t, why));
}

/* ---- one task against nodes ---- */

/* What a task requires, computed once per search. */
struct check {
    const struct predicates *p;
    struct model *m;
    task_id task;
    cons_id id;
    const struct cons *cons;
    uint8_t mask; /* enabled STATIC_* filters */
    bool ports, interpod, spread, volumes;
    uint32_t any_ip;
    struct interpod pods;
    struct spread_filter rows;
};

/* Pod count, one static answer, ports, pods, limits, zone, spread, binding. */
enum { MAX_REASONS = 8 };

struct answer {
    enum verdict verdict;
    uint32_t n;
    struct reason why[MAX_REASONS];
};

static void check_begin(struct check *k, struct session *ssn, const struct predicates *p, task_id t)
{
    struct model *m = ssn->m;
    const struct cons *c = task_cons(m, t);

    *k = (struct check){.p = p, .m = m, .task = t, .id = task_shape(m, t)->cons, .cons = c};
    k->mask = (uint8_t)(STATIC_UNSCHEDULABLE | (p->node_affinity ? STATIC_AFFINITY : 0) |
                        (p->taints ? STATIC_TAINT : 0));
    k->ports = p->node_ports && c && c->nport > 0;
    k->any_ip = k->ports ? hk_intern_find(&m->str, HK_STR("0.0.0.0")) : 0;
    k->interpod = p->pod_affinity && interpod_begin(&k->pods, m, t);
    k->spread = p->spread && spread_begin(&k->rows, m, t, ssn->mem);
    k->volumes = (p->volume_limits || p->volume_zone || p->volume_binding) && volumes_asked(m, t);
}

static inline bool predicates_node_is_full(const struct model *m, node_id n)
{
    return m->nodes.kalloc.col[DIM_PODS][n.i] <= (int64_t)m->nodes.npods[n.i];
}

static bool port_clash(const struct check *k, const struct host_port *a, const struct host_port *b)
{
    return a->port == b->port && a->proto == b->proto &&
           (a->ip == b->ip || a->ip == k->any_ip || b->ip == k->any_ip);
}

static bool ports_free(const struct check *k, node_id n)
{
    const struct port_vec *used = &k->m->nodes.ports[n.i];

    for (uint32_t u = 0; u < used->len; u++) {
        for (uint32_t w = 0; w < k->cons->nport; w++) {
            if (port_clash(k, &used->at[u].port, &k->cons->port[w])) {
                return false;
            }
        }
    }
    return true;
}

/* Records a failure. True when it ends the checks, as every code but Unschedulable does. */
static bool predicates_add_reason(struct answer *a, struct reason why)
{
    const enum verdict v = reason_verdict(why.code);

    if (v == FIT) {
        return false;
    }
    a->why[a->n++] = why;
    a->verdict = HK_MAX(a->verdict, v);
    return v == NEVER;
}

static bool refuse_code(struct answer *a, enum reason_code code)
{
    return predicates_add_reason(a, (struct reason){.code = (uint16_t)code});
}

static enum reason_code static_reason(uint8_t bits)
{
    return bits & STATIC_UNSCHEDULABLE ? REASON_UNSCHEDULABLE
           : bits & STATIC_AFFINITY    ? REASON_NODE_AFFINITY
           : bits & STATIC_TAINT       ? REASON_TAINT
                                       : REASON_NONE;
}

/* Joins all failures of volume binding into one reason. */
static void check_binding(const struct check *k, node_id n, struct answer *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct reason why[4];
    const uint32_t nwhy = volumes_filter_binding(k->m, k->task, n, why);

    if (nwhy == 1) {
        predicates_add_reason(a, why[0]);
    }
    for (uint32_t i = 0; nwhy > 1 && i < nwhy; i++) {
        hk_buf_adds(&text, i > 0 ? ", " : "");
        reason_write(k->m, why[i], &text);
    }
    if (nwhy > 1) {
        predicates_add_reason(a, text_reason(k->m, hk_buf_str(&text)));
    }
}

static void predicates_check_node(const struct check *k, node_id n, struct answer *a)
{
    const struct predicates *p = k->p;

    a->verdict = FIT;
    a->n = 0;
    if (!(k->m->nodes.flags[n.i] & NODE_KNOWN)) {
        refuse_code(a, REASON_NODE_GONE);
        return;
    }
    if (predicates_node_is_full(k->m, n)) {
        refuse_code(a, REASON_POD_NUMBER);
    }
    if (refuse_code(a, static_reason(model_static(k->m, k->id, n) & k->mask))) {
        return;
    }
    if (k->ports && !ports_free(k, n)) {
        refuse_code(a, REASON_PORTS);
    }
    if (k->interpod && refuse_code(a, interpod_check(&k->pods, n))) {
        return;
    }
    if (k->volumes && p->volume_limits &&
        predicates_add_reason(a, volumes_filter_limits(k->m, k->task, n))) {
        return;
    }
    if (k->volumes && p->volume_zone &&
        predicates_add_reason(a, volumes_filter_zone(k->m, k->task, n))) {
        return;
    }
    if (k->spread && refuse_code(a, spread_check(&k->rows, n))) {
        return;
    }
    if (k->volumes && p->volume_binding) {
        check_binding(k, n, a);
    }
}

static void predicates_record_answer(struct fit_log *log, node_id n, const struct answer *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        fit_log_add(log, a->why[i]);
    }
    fit_log_node(log, n, a->verdict);
}

/* All checks for one node; true keeps it. */
static bool keep_node(const struct check *k, enum filter_mode mode, node_id n, struct fit_log *log)
{
    struct answer a;

    predicates_check_node(k, n, &a);
    if (a.verdict == FIT || (a.verdict == UNFIT && mode == FILTER_EVICT)) {
        return true;
    }
    predicates_record_answer(log, n, &a);
    return false;
}

/* The memo of static answers, one byte every stride bytes, by class. */
struct memo {
    const uint8_t *at;
    size_t stride;
    uint32_t len;
};

static struct memo memo_of(const struct check *k)
{
    if (k->cons) {
        return (struct memo){k->cons->verdict, 1, k->cons->nverdict};
    }
    if (k->m->classes.len == 0) {
        return (struct memo){0};
    }
    return (struct memo){&k->m->classes.at[0].plain, sizeof(struct class_row), k->m->classes.len};
}

/* For tasks that depend only on class and pod count: a node that passes costs a few loads. A node
 * that fails, or whose class is not in the memo yet, gets all checks. */
static uint32_t filter_plain(const struct check *k, enum filter_mode mode, node_id *nodes,
                             uint32_t n, struct fit_log *log)
{
    const class_id *class_ = k->m->nodes.class_;
    const uint8_t *flags = k->m->nodes.flags;
    const int64_t *room = k->m->nodes.kalloc.col[DIM_PODS];
    const uint32_t *npods = k->m->nodes.npods;
    const uint8_t bits = k->mask | STATIC_KNOWN;
    struct memo memo = memo_of(k);
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = nodes[i].i, c = class_[row].i;
        const bool passes = c < memo.len && (memo.at[c * memo.stride] & bits) == STATIC_KNOWN &&
                            (int64_t)npods[row] < room[row] && (flags[row] & NODE_KNOWN);
        if (HK_LIKELY(passes)) {
            nodes[kept++] = nodes[i];
            continue;
        }
        if (keep_node(k, mode, nodes[i], log)) {
            nodes[kept++] = nodes[i];
        }
        memo = memo_of(k);
    }
    return kept;
}

static uint32_t predicates_filter(struct session *ssn, void *self, task_id t, enum filter_mode mode,
                                  node_id *nodes, uint32_t n, struct fit_log *log)
{
    struct check k;
    uint32_t kept = 0;

    check_begin(&k, ssn, self, t);
    if (!(k.ports || k.interpod || k.spread || k.volumes)) {
        return filter_plain(&k, mode, nodes, n, log);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (keep_node(&k, mode, nodes[i], log)) {
            nodes[kept++] = nodes[i];
        }
    }
    return kept;
}

static bool predicates_filter_local(struct session *ssn, void *self, task_id t)
{
    const struct predicates *p = self;

    return !(p->pod_affinity && interpod_filters(ssn->m, t)) &&
           !(p->spread && spread_asked(ssn->m, t, true)) && !volumes_asked(ssn->m, t);
}

/* ---- placements ---- */

/* A pipelined task reserves nothing yet, and a running task restored by a rewound eviction has its
 * volumes already. Upstream reserves in both cases; the second fails, and the pod is then missing
 * from its books until the session ends. */
static bool predicates_allocate(struct session *ssn, void *self, task_id t)
{
    const struct predicates *p = self;
    const struct task *task = model_task(ssn->m, t);

    if (!p->volume_binding || task->status != TASK_ALLOCATED || !volumes_asked(ssn->m, t)) {
        return true;
    }
    return volumes_reserve(ssn->m, t, task->node);
}

static void predicates_deallocate(struct session *ssn, void *self, task_id t)
{
    const struct predicates *p = self;

    if (p->volume_binding && volumes_asked(ssn->m, t)) {
        volumes_unreserve(ssn->m, t);
    }
}

const struct plugin plugin_predicates = {
    .name = "predicates",
    .about = "filter nodes by the rules of Kubernetes",
    .state_size = sizeof(struct predicates),
    .opts = options,
    .nopt = HK_LEN(options),
    .open = predicates_open,
    .pre_predicate = predicates_pre_predicate,
    .filter = predicates_filter,
    .filter_local = predicates_filter_local,
    .allocate = predicates_allocate,
    .deallocate = predicates_deallocate,
};
