// SPDX-License-Identifier: Apache-2.0
// How the answers of plugins combine. Each rule is one macro or function below and each hook states
// its rule. Actions call the hooks; plugins implement them. Volcano's rules are in its
// framework/session_plugins.go, oddities included: see narrow().

#include "scheduler/hooks.h"

#include "scheduler/session.h"

static const struct {
    const char *name;
    const char *sw; /* NULL: always on */
    size_t offset;  /* of the function pointer in struct plugin */
} kinds[HOOK_N] = {
#define KIND(kind, member, text, key) [kind] = {text, key, offsetof(struct plugin, member)}
    KIND(HOOK_JOB_ORDER, job_order, "JobOrder", "enableJobOrder"),
    KIND(HOOK_QUEUE_ORDER, queue_order, "QueueOrder", "enableQueueOrder"),
    KIND(HOOK_VICTIM_QUEUE_ORDER, victim_queue_order, "VictimQueueOrder", NULL),
    KIND(HOOK_TASK_ORDER, task_order, "TaskOrder", "enableTaskOrder"),
    KIND(HOOK_SUB_ORDER, sub_order, "SubJobOrder", "enabledSubJobOrder"),
    KIND(HOOK_PRE_PREDICATE, pre_predicate, "PrePredicate", "enablePredicate"),
    KIND(HOOK_FILTER, filter, "Predicate", "enablePredicate"),
    KIND(HOOK_SCORE, score, "NodeOrder", "enableNodeOrder"),
    KIND(HOOK_BEST_NODE, best_node, "BestNode", "enableBestNode"),
    KIND(HOOK_HYPER_ORDER, hyper_order, "HyperNodeOrder", "enabledHyperNodeOrder"),
    KIND(HOOK_GRADIENT_JOB, gradient_job, "HyperNodeGradientForJob", "enabledHyperNodeGradient"),
    KIND(HOOK_GRADIENT_SUB, gradient_sub, "HyperNodeGradientForSubJob", "enabledHyperNodeGradient"),
    KIND(HOOK_PREEMPTABLE, preemptable, "Preemptable", "enablePreemptable"),
    KIND(HOOK_RECLAIMABLE, reclaimable, "Reclaimable", "enableReclaimable"),
    KIND(HOOK_EVICTABLE, evictable, "UnifiedEvictable", NULL),
    KIND(HOOK_VICTIM_TASKS, victim_tasks, "VictimTasks", "enabledVictim"),
    KIND(HOOK_OVERUSED, overused, "Overused", "enabledOverused"),
    KIND(HOOK_PREEMPTIVE, preemptive, "Preemptive", "enablePreemptive"),
    KIND(HOOK_ALLOCATABLE, allocatable, "Allocatable", "enabledAllocatable"),
    KIND(HOOK_BINDABLE, bindable, "Bindable", "enabledAllocatable"),
    KIND(HOOK_JOB_READY, job_ready, "JobReady", "enableJobReady"),
    KIND(HOOK_JOB_PIPELINED, job_pipelined, "JobPipelined", "enableJobPipelined"),
    KIND(HOOK_SUB_READY, sub_ready, "SubJobReady", "enabledSubJobReady"),
    KIND(HOOK_SUB_PIPELINED, sub_pipelined, "SubJobPipelined", "enabledSubJobPipelined"),
    KIND(HOOK_JOB_VALID, job_valid, "JobValid", NULL),
    KIND(HOOK_JOB_STARVING, job_starving, "JobStarving", "enableJobStarving"),
    KIND(HOOK_JOB_ENQUEUEABLE, job_enqueueable, "JobEnqueueable", "enableJobEnqueued"),
    KIND(HOOK_JOB_ENQUEUED, job_enqueued, "JobEnqueued", "enableJobEnqueued"),
    KIND(HOOK_ALLOCATE, allocate, "Allocate", NULL),
    KIND(HOOK_DEALLOCATE, deallocate, "Deallocate", NULL),
#undef KIND
};

const char *hook_name(enum hook_kind k)
{
    return kinds[k].name;
}

const char *hook_switch(enum hook_kind k)
{
    return kinds[k].sw;
}

bool plugin_has_hook(const struct plugin *p, enum hook_kind k)
{
    void (*hook)(void);

    memcpy(&hook, (const char *)p + kinds[k].offset, sizeof(hook));
    return hook != NULL;
}

/* ---- the rules ---- */

#define EACH(h, ssn, kind)                                                                         \
    for (const struct hook_list *list_ = &(ssn)->hooks[kind]; list_; list_ = NULL)                 \
        for (const struct hook *h = list_->at, *end_ = list_->n ? h + list_->n : h; h != end_; h++)

#define ASK(h, ssn, member, ...) ((h)->p->member((ssn), (h)->self, __VA_ARGS__))

/* first: the first non-zero answer wins. */
#define FIRST(ssn, kind, member, ...)                                                              \
    ({                                                                                             \
        __typeof__(ASK((struct hook *)0, ssn, member, __VA_ARGS__)) first_ = 0;                    \
        EACH(h_, ssn, kind)                                                                        \
        {                                                                                          \
            first_ = ASK(h_, ssn, member, __VA_ARGS__);                                            \
            if (first_) {                                                                          \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
        first_;                                                                                    \
    })

/* all: the first "no" ends it; any: the first "yes" does. */
#define ALL(ssn, kind, member, ...)                                                                \
    ({                                                                                             \
        bool all_ = true;                                                                          \
        EACH(h_, ssn, kind)                                                                        \
        {                                                                                          \
            all_ = ASK(h_, ssn, member, __VA_ARGS__);                                              \
            if (!all_) {                                                                           \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
        all_;                                                                                      \
    })
#define ANY(ssn, kind, member, ...) FIRST(ssn, kind, member, __VA_ARGS__)

/* vote: a reject ends it; a permit ends it at the end of its tier; no vote at all passes. */
#define VOTE(ssn, kind, member, ...)                                                               \
    ({                                                                                             \
        bool pass_ = true, permit_ = false;                                                        \
        uint32_t tier_ = 0;                                                                        \
        EACH(h_, ssn, kind)                                                                        \
        {                                                                                          \
            if (permit_ && h_->tier != tier_) {                                                    \
                break;                                                                             \
            }                                                                                      \
            tier_ = h_->tier;                                                                      \
            const enum vote v_ = ASK(h_, ssn, member, __VA_ARGS__);                                \
            if (v_ < 0) {                                                                          \
                pass_ = false;                                                                     \
                break;                                                                             \
            }                                                                                      \
            permit_ |= v_ > 0;                                                                     \
        }                                                                                          \
        pass_;                                                                                     \
    })

/* tell: every plugin is called. */
#define TELL(ssn, kind, member, ...)                                                               \
    EACH(h_, ssn, kind)                                                                            \
    {                                                                                              \
        ASK(h_, ssn, member, __VA_ARGS__);                                                         \
    }

/* ---- order ---- */

static int cmp_i64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int cmp_text(const struct model *m, uint32_t a, uint32_t b)
{
    return a == b ? 0 : hk_str_cmp(model_str(m, a), model_str(m, b));
}

/* The lower number first, then the text. */
static int cmp_i64_text(const struct model *m, int64_t i_a, uint32_t text_a, int64_t i_b,
                        uint32_t text_b)
{
    const int c = cmp_i64(i_a, i_b);

    return c != 0 ? c : cmp_text(m, text_a, text_b);
}

/* Order of the texts "namespace/name". */
static int cmp_key(const struct model *m, uint32_t ns_a, uint32_t name_a, uint32_t ns_b,
                   uint32_t name_b)
{
    if (ns_a == ns_b) {
        return cmp_text(m, name_a, name_b);
    }
    const struct hk_str a = model_str(m, ns_a), b = model_str(m, ns_b);
    const size_t common = HK_MIN(a.n, b.n);
    if (a.n == b.n || memcmp(a.s, b.s, common) != 0) {
        return hk_str_cmp(a, b);
    }
    /* One namespace is a prefix of the other: compare its slash with the next letter. */
    return a.n < b.n ? '/' - (unsigned char)b.s[common] : (unsigned char)a.s[common] - '/';
}

int hooks_job_order_plugins(struct session *ssn, job_id a, job_id b)
{
    return FIRST(ssn, HOOK_JOB_ORDER, job_order, a, b);
}

int hooks_job_order(struct session *ssn, job_id a, job_id b)
{
    const struct job *ja = model_job(ssn->m, a), *jb = model_job(ssn->m, b);
    int c = hooks_job_order_plugins(ssn, a, b);

    if (c == 0) {
        c = cmp_i64(ja->creation_ns, jb->creation_ns);
    }
    return c != 0 ? c : cmp_key(ssn->m, ja->ns, ja->name, jb->ns, jb->name);
}

int hooks_queue_order(struct session *ssn, queue_id a, queue_id b)
{
    const struct queue *qa = model_queue(ssn->m, a), *qb = model_queue(ssn->m, b);
    const int c = FIRST(ssn, HOOK_QUEUE_ORDER, queue_order, a, b);

    return c != 0 ? c : cmp_i64_text(ssn->m, qa->creation_ns, qa->name, qb->creation_ns, qb->name);
}

int hooks_victim_queue_order(struct session *ssn, queue_id a, queue_id b, queue_id preemptor)
{
    const int c = FIRST(ssn, HOOK_VICTIM_QUEUE_ORDER, victim_queue_order, a, b, preemptor);

    return c != 0 ? c : hooks_queue_order(ssn, b, a);
}

/* Volcano's helpers.CompareTask: the number in the name decides when both have one. */
static int task_cmp(const struct model *m, const struct task *a, const struct task *b)
{
    int c;

    if (a->index != b->index && a->index != ID_NONE && b->index != ID_NONE) {
        return a->index < b->index ? -1 : 1;
    }
    c = cmp_i64_text(m, a->creation_ns, a->uid, b->creation_ns, b->uid);
    return c != 0 ? c : cmp_key(m, a->ns, a->name, b->ns, b->name);
}

int hooks_task_order(struct session *ssn, task_id a, task_id b)
{
    const int c = FIRST(ssn, HOOK_TASK_ORDER, task_order, a, b);

    return c != 0 ? c : task_cmp(ssn->m, model_task(ssn->m, a), model_task(ssn->m, b));
}

int hooks_sub_order(struct session *ssn, sub_id a, sub_id b)
{
    const struct sub_job *sa = model_sub(ssn->m, a), *sb = model_sub(ssn->m, b);
    const int c = FIRST(ssn, HOOK_SUB_ORDER, sub_order, a, b);

    return c != 0 ? c : cmp_i64_text(ssn->m, sa->match_index, sa->id, sb->match_index, sb->id);
}

/* Upstream's session holds jobs that have a PodGroup and an existing queue; other tasks are
 * orphans. */
static bool in_session(const struct model *m, job_id j)
{
    return !id_none(j) && model_job(m, j)->has_pg && !id_none(model_job(m, j)->queue);
}

/* Upstream reverses an order by negating "less", so that equal victims each come before the other.
 * Here the arguments are swapped: of equal victims the later created one goes first. */
bool hooks_victim_before(struct session *ssn, task_id a, task_id b, task_id preemptor)
{
    const struct model *m = ssn->m;
    const job_id ja = model_task(m, a)->job, jb = model_task(m, b)->job;
    const job_id jp = id_none(preemptor) ? NO_JOB : model_task(m, preemptor)->job;
    const bool known_a = in_session(m, ja), known_b = in_session(m, jb);
    int c = 0;

    if (known_a != known_b) {
        return !known_a;
    }
    if (known_a && !id_eq(ja, jb)) {
        const queue_id qa = model_job(m, ja)->queue, qb = model_job(m, jb)->queue;
        if (in_session(m, jp) && !id_eq(qa, qb)) {
            return hooks_victim_queue_order(ssn, qa, qb, model_job(m, jp)->queue) < 0;
        }
        c = hooks_job_order_plugins(ssn, jb, ja);
    }
    return (c != 0 ? c : hooks_task_order(ssn, b, a)) < 0;
}

/* ---- nodes ---- */

bool hooks_pre_predicate(struct session *ssn, task_id t, struct reason *why)
{
    return ALL(ssn, HOOK_PRE_PREDICATE, pre_predicate, t, why);
}

/* Drops nodes outside the scheduler's shard before any plugin is asked. */
static uint32_t keep_usable(const struct session *ssn, node_id *nodes, uint32_t n,
                            struct fit_log *log)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (session_may_use(ssn, nodes[i])) {
            nodes[kept++] = nodes[i];
        } else {
            fit_log_add(log, (struct reason){.code = REASON_SHARD});
            fit_log_node(log, nodes[i], NEVER);
        }
    }
    return kept;
}

uint32_t hooks_filter(struct session *ssn, task_id t, enum filter_mode mode, node_id *nodes,
                      uint32_t n, struct fit_log *log)
{
    if (ssn->opts.shard_mode == SHARD_HARD) {
        n = keep_usable(ssn, nodes, n, log);
    }
    EACH(h, ssn, HOOK_FILTER)
    {
        if (n == 0) {
            break;
        }
        n = ASK(h, ssn, filter, t, mode, nodes, n, log);
    }
    return n;
}

bool hooks_filter_local(struct session *ssn, task_id t)
{
    EACH(h, ssn, HOOK_FILTER)
    {
        if (!h->p->filter_local || !ASK(h, ssn, filter_local, t)) {
            return false;
        }
    }
    return true;
}

int hooks_score(struct session *ssn, task_id t, const node_id *nodes, uint32_t n, double *score)
{
    /* Scoring one node takes hardly longer than reading the clock. */
    struct meter *meter = n > 1 ? ssn->opts.meter : NULL;
    const int64_t since_ns = meter_start(meter);

    for (uint32_t i = 0; i < n; i++) {
        score[i] = 0;
    }
    EACH(h, ssn, HOOK_SCORE)
    {
        const int rc = ASK(h, ssn, score, t, nodes, n, score);
        if (rc < 0) {
            return rc;
        }
    }
    meter_stage(meter, METER_SCORING, since_ns);
    return 0;
}

bool hooks_score_local(struct session *ssn, task_id t)
{
    EACH(h, ssn, HOOK_SCORE)
    {
        if (!h->p->score_local || !ASK(h, ssn, score_local, t)) {
            return false;
        }
    }
    return true;
}

node_id hooks_best_node(struct session *ssn, task_id t, const node_id *nodes, uint32_t n,
                        const double *score)
{
    EACH(h, ssn, HOOK_BEST_NODE)
    {
        const node_id best = ASK(h, ssn, best_node, t, nodes, n, score);
        if (!id_none(best)) {
            return best;
        }
    }
    return NO_NODE;
}

/* ---- victims ---- */

/* A set of tasks. Only membership is used, so its internal order has no effect. */
struct task_set {
    uint32_t *slot;
    uint32_t mask;
};

static struct task_set task_set_new(struct hk_arena *mem, uint32_t room)
{
    uint32_t cap = 8;

    while (cap < (uint64_t)room * 2) {
        cap *= 2;
    }
    struct task_set s = {hk_arena_array(mem, cap, sizeof(s.slot[0])), cap - 1};
    memset(s.slot, 0xff, cap * sizeof(s.slot[0]));
    return s;
}

/* The slot of t, or a free one for it. */
static uint32_t *task_set_at(const struct task_set *s, task_id t)
{
    uint32_t i = (uint32_t)hk_mix(t.i) & s->mask;

    while (s->slot[i] != t.i && s->slot[i] != ID_NONE) {
        i = (i + 1) & s->mask;
    }
    return &s->slot[i];
}

static bool task_set_has(const struct task_set *s, task_id t)
{
    return *task_set_at(s, t) == t.i;
}

/* False when t was a member already. */
static bool task_set_add(struct task_set *s, task_id t)
{
    uint32_t *slot = task_set_at(s, t);

    if (*slot == t.i) {
        return false;
    }
    *slot = t.i;
    return true;
}

/* Keeps the elements of at that are also in with, in order. */
static uint32_t intersect(struct hk_arena *mem, task_id *at, uint32_t n, const task_id *with,
                          uint32_t nwith)
{
    struct task_set set = task_set_new(mem, nwith);
    uint32_t kept = 0;

    for (uint32_t i = 0; i < nwith; i++) {
        task_set_add(&set, with[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (task_set_has(&set, at[i])) {
            at[kept++] = at[i];
        }
    }
    return kept;
}

/* The hook that is asked for victims, and for which task or job. */
struct asker {
    enum hook_kind hook;
    task_id task;         /* preemptable, reclaimable */
    enum evict_kind kind; /* evictable, with the two below */
    job_id job;
    hyper_id domain;
};

static enum vote ask_victims(struct session *ssn, const struct hook *h, const struct asker *by,
                             struct victims *v)
{
    switch (by->hook) {
    case HOOK_PREEMPTABLE:
        return ASK(h, ssn, preemptable, by->task, v);
    case HOOK_RECLAIMABLE:
        return ASK(h, ssn, reclaimable, by->task, v);
    default:
        return ASK(h, ssn, evictable, by->kind, by->job, by->domain, v);
    }
}

/* narrow: intersect inside a tier; the first tier left with victims decides.
 *
 * A veto (no victims, no abstention) ends its own tier only; the next tier is asked from the start.
 * Upstream does the same, and results depend on it. Two plugins with no victim in common are a
 * veto, too; there upstream lets the next plugin of the tier start over, so that {1}, {2}, {1,2}
 * evicts tasks that priority or conformance had refused. Every plugin sees all candidates, not only
 * the remaining ones. */
static uint32_t narrow(struct session *ssn, const struct asker *by, const task_id *in, uint32_t n,
                       task_id **ret)
{
    const struct hook_list *list = &ssn->hooks[by->hook];
    uint32_t i = 0;

    *ret = NULL;
    if (n == 0 || list->n == 0) {
        return 0;
    }
    task_id *left = hk_arena_array(ssn->mem, n, sizeof(*left));
    task_id *answer = hk_arena_array(ssn->mem, n, sizeof(*answer));
    while (i < list->n) {
        const uint32_t tier = list->at[i].tier;
        uint32_t nleft = 0;
        bool vetoed = false;
        for (; i < list->n && list->at[i].tier == tier; i++) {
            struct victims v = {.in = in, .n = n, .out = answer};
            if (vetoed || ask_victims(ssn, &list->at[i], by, &v) == ABSTAIN) {
                continue;
            }
            if (nleft == 0) {
                nleft = v.nout;
                memcpy(left, answer, v.nout * sizeof(*left));
            } else {
                nleft = intersect(ssn->mem, left, nleft, answer, v.nout);
            }
            vetoed = nleft == 0;
        }
        if (nleft > 0) {
            *ret = left;
            return nleft;
        }
    }
    return 0;
}

uint32_t hooks_preemptable(struct session *ssn, task_id preemptor, const task_id *in, uint32_t n,
                           task_id **ret)
{
    const struct asker by = {.hook = HOOK_PREEMPTABLE, .task = preemptor};

    return narrow(ssn, &by, in, n, ret);
}

uint32_t hooks_reclaimable(struct session *ssn, task_id reclaimer, const task_id *in, uint32_t n,
                           task_id **ret)
{
    const struct asker by = {.hook = HOOK_RECLAIMABLE, .task = reclaimer};

    return narrow(ssn, &by, in, n, ret);
}

uint32_t hooks_evictable(struct session *ssn, enum evict_kind kind, job_id job, hyper_id domain,
                         const task_id *in, uint32_t n, task_id **ret)
{
    const struct asker by = {
        .hook = HOOK_EVICTABLE, .task = NO_TASK, .kind = kind, .job = job, .domain = domain};

    return narrow(ssn, &by, in, n, ret);
}

/* All victims that a tier names, each once; the first tier that names any decides. */
uint32_t hooks_victim_tasks(struct session *ssn, const task_id *in, uint32_t n, task_id **ret)
{
    const struct hook_list *list = &ssn->hooks[HOOK_VICTIM_TASKS];
    uint32_t nunion = 0;

    *ret = NULL;
    if (n == 0 || list->n == 0) {
        return 0;
    }
    task_id *all = hk_arena_array(ssn->mem, n, sizeof(*all));
    task_id *answer = hk_arena_array(ssn->mem, n, sizeof(*answer));
    struct task_set seen = task_set_new(ssn->mem, n);
    for (uint32_t i = 0; i < list->n; i++) {
        if (nunion > 0 && list->at[i].tier != list->at[i - 1].tier) {
            break;
        }
        struct victims v = {.in = in, .n = n, .out = answer};
        ASK(&list->at[i], ssn, victim_tasks, &v);
        for (uint32_t k = 0; k < v.nout; k++) {
            if (task_set_add(&seen, answer[k])) {
                all[nunion++] = answer[k];
            }
        }
    }
    *ret = nunion > 0 ? all : NULL;
    return nunion;
}

/* ---- queues and jobs ---- */

bool hooks_overused(struct session *ssn, queue_id q)
{
    return ANY(ssn, HOOK_OVERUSED, overused, q);
}

bool hooks_preemptive(struct session *ssn, queue_id q, const task_id *t, uint32_t n)
{
    return ALL(ssn, HOOK_PREEMPTIVE, preemptive, q, t, n);
}

bool hooks_allocatable(struct session *ssn, queue_id q, task_id t)
{
    return ALL(ssn, HOOK_ALLOCATABLE, allocatable, q, t);
}

bool hooks_bindable(struct session *ssn, queue_id q, task_id t)
{
    return ALL(ssn, HOOK_BINDABLE, bindable, q, t);
}

bool hooks_job_ready(struct session *ssn, job_id j)
{
    return ALL(ssn, HOOK_JOB_READY, job_ready, j);
}

bool hooks_job_pipelined(struct session *ssn, job_id j)
{
    return VOTE(ssn, HOOK_JOB_PIPELINED, job_pipelined, j);
}

/* Without sub-group policies the only sub-job is the whole job. */
static bool is_whole_job(const struct model *m, sub_id s)
{
    return model_job(m, model_sub(m, s)->job)->policies.len == 0;
}

bool hooks_sub_ready(struct session *ssn, sub_id s)
{
    if (is_whole_job(ssn->m, s)) {
        return hooks_job_ready(ssn, model_sub(ssn->m, s)->job);
    }
    return ALL(ssn, HOOK_SUB_READY, sub_ready, s);
}

bool hooks_sub_pipelined(struct session *ssn, sub_id s)
{
    if (is_whole_job(ssn->m, s)) {
        return hooks_job_pipelined(ssn, model_sub(ssn->m, s)->job);
    }
    return VOTE(ssn, HOOK_SUB_PIPELINED, sub_pipelined, s);
}

const char *hooks_job_valid(struct session *ssn, job_id j)
{
    return FIRST(ssn, HOOK_JOB_VALID, job_valid, j);
}

/* all, within the first tier that has an opinion; false without any. */
bool hooks_job_starving(struct session *ssn, job_id j)
{
    const struct hook_list *list = &ssn->hooks[HOOK_JOB_STARVING];

    for (uint32_t i = 0; i < list->n && list->at[i].tier == list->at[0].tier; i++) {
        if (!ASK(&list->at[i], ssn, job_starving, j)) {
            return false;
        }
    }
    return list->n > 0;
}

bool hooks_job_enqueueable(struct session *ssn, job_id j)
{
    return VOTE(ssn, HOOK_JOB_ENQUEUEABLE, job_enqueueable, j);
}

void hooks_job_enqueued(struct session *ssn, job_id j)
{
    TELL(ssn, HOOK_JOB_ENQUEUED, job_enqueued, j);
}

bool hooks_allocate(struct session *ssn, task_id t)
{
    bool ok = true;

    EACH(h, ssn, HOOK_ALLOCATE)
    {
        ok &= ASK(h, ssn, allocate, t);
    }
    return ok;
}

void hooks_deallocate(struct session *ssn, task_id t)
{
    TELL(ssn, HOOK_DEALLOCATE, deallocate, t);
}

/* ---- hyperNodes ---- */

bool hooks_hyper_order(struct session *ssn, sub_id s, const hyper_id *at, uint32_t n, double *score)
{
    for (uint32_t i = 0; i < n; i++) {
        score[i] = 0;
    }
    EACH(h, ssn, HOOK_HYPER_ORDER)
    {
        if (ASK(h, ssn, hyper_order, s, at, n, score) < 0) {
            return false;
        }
    }
    return true;
}

static void gradients_of_one(struct hk_arena *mem, hyper_id start, struct gradients *ret)
{
    ret->at = hk_arena_alloc(mem, sizeof(*ret->at));
    ret->at->at = hk_arena_alloc(mem, sizeof(*ret->at->at));
    ret->at->at[0] = start;
    ret->at->n = 1;
    ret->n = 1;
}

bool hooks_gradient_job(struct session *ssn, job_id j, hyper_id start, enum gradient_purpose why,
                        struct gradients *ret)
{
    const struct hook_list *list = &ssn->hooks[HOOK_GRADIENT_JOB];

    if (list->n > 0) {
        return ASK(&list->at[0], ssn, gradient_job, j, start, why, ret);
    }
    gradients_of_one(ssn->mem, start, ret);
    return true;
}

bool hooks_gradient_sub(struct session *ssn, sub_id s, hyper_id start, enum gradient_purpose why,
                        struct gradients *ret)
{
    const struct hook_list *list = &ssn->hooks[HOOK_GRADIENT_SUB];

    if (list->n > 0) {
        return ASK(&list->at[0], ssn, gradient_sub, s, start, why, ret);
    }
    gradients_of_one(ssn->mem, start, ret);
    return true;
}
