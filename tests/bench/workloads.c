// SPDX-License-Identifier: Apache-2.0
// The clusters the engine is measured on. Same seed, same cluster. Jobs start out Pending with
// minResources, so that a run goes through admission as well, unless the point is a long line of
// admitted ones.
#include "bench/bench.h"

#include <stdio.h>

/* kube-scheduler's SchedulingBasic. */
static const struct size basic_node = {.cpu = 4000, .mem = 32 * GI};
static const struct size basic_pod = {.cpu = 100, .mem = 500 * MI};
static const struct size big_node = {.cpu = 32000, .mem = 128 * GI};
static const struct size core_pod = {.cpu = 1000, .mem = 2 * GI};

/* ---- building blocks ---- */

static void put_nodes(struct bench *b, struct size size, int64_t pods)
{
    struct name name;

    for (uint32_t k = 0; k < b->nodes; k++) {
        world_node(&b->w, &(struct world_node){
                              .name = name_fmt(&name, "node-%u", k), .size = size, .pods = pods});
    }
}

struct pod {
    struct hk_str group;
    const char *name;
    struct size size;
    cons_id cons;
    ident_id ident;
    struct hk_str node; /* running there */
    int32_t priority;
};

static void put_pod(struct bench *b, const struct pod *p)
{
    const struct hk_str name = hk_str(p->name);
    const struct task_desc d = {.ns = HK_STR("default"),
                                .name = name,
                                .uid = name,
                                .group = p->group,
                                .node = p->node,
                                .priority = p->priority,
                                .pod_priority = p->priority,
                                .flags = TASK_OURS | TASK_PREEMPTABLE,
                                .status = p->node.n ? TASK_RUNNING : TASK_PENDING,
                                .creation_ns = b->w.clock_ns,
                                .start_ns = b->w.clock_ns,
                                .shape = world_shape(&b->w, p->size, p->cons),
                                .ident = p->ident};
    struct hk_err err = {0};
    task_id id;

    hk_assert(model_task_put(&b->w.m, &d, &id, &err) == 0);
}

struct job_like {
    const char *name;
    const char *queue;
    enum pg_phase phase;
    int32_t min, priority;
    struct size size; /* of a member */
};

static void put_job(struct bench *b, const struct job_like *j)
{
    const struct amount least[] = {
        {.dim = DIM_CPU, .v = j->size.cpu * j->min},
        {.dim = DIM_MEM, .v = j->size.mem * j->min},
    };

    model_job_put(&b->w.m, &(struct job_desc){.ns = HK_STR("default"),
                                              .name = hk_str(j->name),
                                              .uid = hk_str(j->name),
                                              .queue = hk_str(j->queue),
                                              .min = j->min,
                                              .priority = j->priority,
                                              .phase = j->phase,
                                              .creation_ns = world_tick(&b->w),
                                              .has_minres = j->phase == PG_PENDING,
                                              .minres = least,
                                              .nminres = HK_LEN(least)});
}

/* A job of equal pods. */
static void put_gang(struct bench *b, const struct job_like *j, uint32_t n, cons_id cons,
                     ident_id ident)
{
    struct name name;

    put_job(b, j);
    for (uint32_t i = 0; i < n; i++) {
        name_fmt(&name, "%s-%u", j->name, i);
        put_pod(b, &(struct pod){.group = hk_str(j->name),
                                 .name = name.text,
                                 .size = j->size,
                                 .cons = cons,
                                 .ident = ident,
                                 .priority = j->priority});
    }
}

static void put_gangs(struct bench *b, struct size size, enum pg_phase phase)
{
    struct name name;

    for (uint32_t k = 0; k < b->pods / b->gang; k++) {
        name_fmt(&name, "job-%u", k);
        put_gang(b,
                 &(struct job_like){.name = name.text,
                                    .queue = "default",
                                    .phase = phase,
                                    .min = (int32_t)b->gang,
                                    .size = size},
                 b->gang, NO_CONS, b->w.plain);
    }
}

/* A running job of one pod. */
static void put_running(struct bench *b, uint32_t number, uint32_t node, const char *queue,
                        struct size size)
{
    struct name name, pod, host;

    name_fmt(&name, "run-%u", number);
    name_fmt(&pod, "run-%u-0", number);
    put_job(b, &(struct job_like){
                   .name = name.text, .queue = queue, .phase = PG_RUNNING, .min = 1, .size = size});
    put_pod(b, &(struct pod){.group = hk_str(name.text),
                             .name = pod.text,
                             .size = size,
                             .cons = NO_CONS,
                             .ident = b->w.plain,
                             .node = name_fmt(&host, "node-%u", node)});
}

static void put_all_running(struct bench *b, struct size size)
{
    for (uint32_t k = 0; k < b->running; k++) {
        put_running(b, k, k % b->nodes, "default", size);
    }
}

static int64_t jitter(struct bench *b, int64_t around, int64_t by)
{
    return around - by + (int64_t)hk_rand_below(&b->rand, (uint32_t)(2 * by + 1));
}

/* ---- placing ---- */

static void build_basic(struct bench *b)
{
    world_queue(&b->w, HK_STR("default"), 1);
    put_nodes(b, basic_node, 110);
    put_all_running(b, basic_pod);
    put_gangs(b, basic_pod, PG_PENDING);
}

/* One pod per node takes what must be taken beforehand, unevenly. */
static void fill_up(struct bench *b)
{
    const int64_t per_node = core_pod.cpu * b->pods / b->nodes;
    const int64_t taken = big_node.cpu * b->spec->full / 100 - per_node;

    for (uint32_t k = 0; k < b->nodes; k++) {
        put_running(b, k, k, "default",
                    (struct size){.cpu = jitter(b, taken, per_node / 2), .mem = 32 * GI});
    }
}

static void build_gangs(struct bench *b)
{
    world_queue(&b->w, HK_STR("default"), 1);
    put_nodes(b, big_node, 110);
    if (b->spec->full > 0) {
        fill_up(b);
    }
    put_gangs(b, core_pod, PG_PENDING);
}

static struct size distinct_size(uint32_t k)
{
    return (struct size){.cpu = 100 + k % 400, .mem = (400 + k / 400) * MI};
}

static void build_distinct(struct bench *b)
{
    struct name name;

    world_queue(&b->w, HK_STR("default"), 1);
    put_nodes(b, basic_node, 110);
    for (uint32_t k = 0; k < b->pods; k++) {
        name_fmt(&name, "job-%u", k);
        put_gang(b,
                 &(struct job_like){.name = name.text,
                                    .queue = "default",
                                    .phase = PG_PENDING,
                                    .min = 1,
                                    .size = distinct_size(k)},
                 1, NO_CONS, b->w.plain);
    }
}

/* Four kinds of nodes, one with GPUs; jobs of up to eight pods of 2,000 sizes. */
static void build_mixed_sizes(struct bench *b)
{
    static const struct size kinds[] = {
        {.cpu = 16000, .mem = 64 * GI},
        {.cpu = 64000, .mem = 256 * GI},
        {.cpu = 32000, .mem = 512 * GI},
        {.cpu = 96000, .mem = 768 * GI, .gpu = 8000},
    };
    struct name name;
    uint32_t made = 0;

    world_queue(&b->w, HK_STR("default"), 1);
    for (uint32_t k = 0; k < b->nodes; k++) {
        world_node(&b->w, &(struct world_node){.name = name_fmt(&name, "node-%u", k),
                                               .size = kinds[k % HK_LEN(kinds)],
                                               .pods = 110});
    }
    for (uint32_t k = 0; made < b->pods; k++) {
        const uint32_t shape = hk_rand_below(&b->rand, 2000);
        const uint32_t n = HK_MIN(1 + hk_rand_below(&b->rand, 8), b->pods - made);
        name_fmt(&name, "job-%u", k);
        put_gang(b,
                 &(struct job_like){.name = name.text,
                                    .queue = "default",
                                    .phase = PG_PENDING,
                                    .min = (int32_t)n,
                                    .size = {.cpu = 100 + 10 * (shape % 200),
                                             .mem = (1 + shape / 200) * GI,
                                             .gpu = shape % 20 == 0 ? 1000 : 0}},
                 n, NO_CONS, b->w.plain);
        made += n;
    }
}

/* ---- constraints ---- */

struct keys {
    uint32_t zone, host, app, pool;
};

static struct keys intern_keys(struct bench *b)
{
    return (struct keys){.zone = world_str(&b->w, "topology.kubernetes.io/zone"),
                         .host = world_str(&b->w, "kubernetes.io/hostname"),
                         .app = world_str(&b->w, "app"),
                         .pool = world_str(&b->w, "pool")};
}

static void put_zoned_nodes(struct bench *b, const struct keys *keys)
{
    struct name name;

    for (uint32_t k = 0; k < b->nodes; k++) {
        const struct label labels[] = {
            {keys->zone, world_str(&b->w, "zone-%u", k % 8)},
            {keys->host, world_str(&b->w, "node-%u", k)},
        };
        const struct taint taint = {.key = keys->pool, .effect = EFFECT_NO_SCHEDULE};
        world_node(&b->w, &(struct world_node){.name = name_fmt(&name, "node-%u", k),
                                               .size = big_node,
                                               .pods = 110,
                                               .labels = labels,
                                               .nlabel = HK_LEN(labels),
                                               .taints = &taint,
                                               .ntaint = k / 8 % 4 == 0});
    }
}

/* By turns: a node selector, a toleration, apart from one another, spread over zones. */
static void fill_wish(struct bench *b, const struct keys *keys, uint32_t k, uint32_t app,
                      struct wish *w)
{
    memset(w, 0, sizeof(*w));
    w->ns = world_str(&b->w, "default");
    switch (k % 4) {
    case 0:
        w->nsel = 1;
        w->sel[0] = (struct label){keys->zone, world_str(&b->w, "zone-%u", k % 8)};
        break;
    case 1:
        w->ntol = 1;
        w->tol[0] = (struct wish_tol){.key = keys->pool, .exists = 1, .any_effect = 1};
        break;
    case 2:
        w->nanti = 1;
        w->anti[0] = (struct wish_term){.topo_key = keys->host, .key = keys->app, .val = app};
        break;
    default:
        w->nspread = 1;
        w->spread[0] = (struct wish_spread){.topo_key = keys->zone,
                                            .key = keys->app,
                                            .val = app,
                                            .max_skew = 1,
                                            .min_domains = 1,
                                            .hard = 1,
                                            .honor_affinity = 1};
    }
}

static void build_constraints(struct bench *b)
{
    const struct keys keys = intern_keys(b);
    struct name name;
    struct wish wish;

    world_queue(&b->w, HK_STR("default"), 1);
    put_zoned_nodes(b, &keys);
    for (uint32_t k = 0; k < b->pods / b->gang; k++) {
        const struct label app = {keys.app, world_str(&b->w, "app-%u", k)};
        fill_wish(b, &keys, k, app.val, &wish);
        name_fmt(&name, "job-%u", k);
        put_gang(b,
                 &(struct job_like){.name = name.text,
                                    .queue = "default",
                                    .phase = PG_PENDING,
                                    .min = (int32_t)b->gang,
                                    .size = core_pod},
                 b->gang, world_cons(&b->w, &wish), model_ident_intern(&b->w.m, wish.ns, &app, 1));
    }
}

/* As many classes as nodes: nothing is shared on that side. */
static void build_taints(struct bench *b)
{
    const uint32_t key = world_str(&b->w, "owner");
    struct name name;
    struct wish wish;

    memset(&wish, 0, sizeof(wish));
    wish.ntol = 1;
    wish.tol[0] = (struct wish_tol){.key = key, .exists = 1, .any_effect = 1};
    world_queue(&b->w, HK_STR("default"), 1);
    for (uint32_t k = 0; k < b->nodes; k++) {
        const struct taint taint = {
            .key = key, .val = world_str(&b->w, "owner-%u", k), .effect = EFFECT_NO_SCHEDULE};
        world_node(&b->w, &(struct world_node){.name = name_fmt(&name, "node-%u", k),
                                               .size = big_node,
                                               .pods = 110,
                                               .taints = &taint,
                                               .ntaint = 1});
    }
    const cons_id cons = world_cons(&b->w, &wish);
    for (uint32_t k = 0; k < b->pods / b->gang; k++) {
        name_fmt(&name, "job-%u", k);
        put_gang(b,
                 &(struct job_like){.name = name.text,
                                    .queue = "default",
                                    .phase = PG_PENDING,
                                    .min = (int32_t)b->gang,
                                    .size = core_pod},
                 b->gang, cons, b->w.plain);
    }
}

/* ---- evicting ---- */

/* Every core is taken by a low pod; gangs of higher priority come. */
static void build_storm(struct bench *b)
{
    struct name name;

    world_queue(&b->w, HK_STR("default"), 1);
    put_nodes(b, basic_node, 110);
    for (uint32_t k = 0; k < b->nodes * 4; k++) {
        put_running(b, k, k % b->nodes, "default", core_pod);
    }
    for (uint32_t k = 0; k < b->pods / b->gang; k++) {
        name_fmt(&name, "high-%u", k);
        put_gang(b,
                 &(struct job_like){.name = name.text,
                                    .queue = "default",
                                    .phase = PG_INQUEUE,
                                    .min = (int32_t)b->gang,
                                    .priority = 1000,
                                    .size = core_pod},
                 b->gang, NO_CONS, b->w.plain);
    }
}

/* One queue has everything; the others want their share back. */
static void build_reclaim(struct bench *b)
{
    enum { QUEUES = 100 };
    struct name name, queue;

    for (uint32_t k = 0; k < QUEUES; k++) {
        world_queue(&b->w, name_fmt(&queue, "queue-%u", k), 1);
    }
    put_nodes(b, basic_node, 110);
    for (uint32_t k = 0; k < b->nodes * 4; k++) {
        put_running(b, k, k % b->nodes, "queue-0", core_pod);
    }
    for (uint32_t k = 0; k < b->pods / b->gang; k++) {
        name_fmt(&name, "job-%u", k);
        name_fmt(&queue, "queue-%u", 1 + k % (QUEUES - 1));
        put_gang(b,
                 &(struct job_like){.name = name.text,
                                    .queue = queue.text,
                                    .phase = PG_INQUEUE,
                                    .min = (int32_t)b->gang,
                                    .size = core_pod},
                 b->gang, NO_CONS, b->w.plain);
    }
}

/* ---- queues ---- */

static void put_branch(struct bench *b, const char *name, const char *parent, double share)
{
    const double cpu = (double)big_node.cpu * b->nodes, mem = (double)big_node.mem * b->nodes;

    model_queue_put(&b->w.m,
                    &(struct queue_desc){.name = hk_str(name),
                                         .parent = hk_str(parent),
                                         .weight = 1,
                                         .creation_ns = world_tick(&b->w),
                                         .state = QUEUE_OPEN,
                                         .reclaimable = true,
                                         .has_deserved = true,
                                         .deserved = world_rvec(cpu * share, mem * share)});
}

/* A root, ten departments, a hundred teams in each. */
static void build_hierarchy(struct bench *b)
{
    enum { DEPARTMENTS = 10, TEAMS = 1000 };
    struct name name, parent;

    world_queue(&b->w, HK_STR("root"), 1);
    for (uint32_t k = 0; k < DEPARTMENTS; k++) {
        name_fmt(&name, "department-%u", k);
        put_branch(b, name.text, "root", 1.0 / DEPARTMENTS);
    }
    for (uint32_t k = 0; k < TEAMS; k++) {
        name_fmt(&name, "team-%u", k);
        name_fmt(&parent, "department-%u", k % DEPARTMENTS);
        put_branch(b, name.text, parent.text, 1.0 / TEAMS);
    }
    put_nodes(b, big_node, 110);
    for (uint32_t k = 0; k < b->pods / b->gang; k++) {
        name_fmt(&name, "job-%u", k);
        name_fmt(&parent, "team-%u", k % TEAMS);
        put_gang(b,
                 &(struct job_like){.name = name.text,
                                    .queue = parent.text,
                                    .phase = PG_PENDING,
                                    .min = (int32_t)b->gang,
                                    .size = core_pod},
                 b->gang, NO_CONS, b->w.plain);
    }
}

/* ---- waiting ---- */

/* Pods no node is large enough for, all different. */
static void put_hopeless(struct bench *b)
{
    struct name name;

    for (uint32_t k = 0; k < b->pods; k++) {
        name_fmt(&name, "large-%u", k);
        put_gang(b,
                 &(struct job_like){.name = name.text,
                                    .queue = "default",
                                    .phase = PG_INQUEUE,
                                    .min = 1,
                                    .size = {.cpu = 1000000 + k, .mem = GI}},
                 1, NO_CONS, b->w.plain);
    }
}

static void build_hopeless(struct bench *b)
{
    world_queue(&b->w, HK_STR("default"), 1);
    put_nodes(b, basic_node, 110);
    put_hopeless(b);
}

static void build_feasible_behind(struct bench *b)
{
    enum { BEHIND = 500 };
    const uint32_t hopeless = b->pods;

    build_hopeless(b);
    b->pods = BEHIND;
    put_gangs(b, basic_pod, PG_INQUEUE);
    b->pods = hopeless;
}

/* Far more waits than fits: nodes take 32 pods each. */
static void build_million(struct bench *b)
{
    world_queue(&b->w, HK_STR("default"), 1);
    put_nodes(b, big_node, 32);
    put_gangs(b, core_pod, PG_INQUEUE);
}

/* Pods without a PodGroup yet: the measurement lets them in. */
static void build_arrivals(struct bench *b)
{
    struct name name, pod;

    world_queue(&b->w, HK_STR("default"), 1);
    put_nodes(b, basic_node, 110);
    put_all_running(b, basic_pod);
    for (uint32_t k = 0; k < b->pods; k++) {
        name_fmt(&name, "new-%u", k);
        name_fmt(&pod, "new-%u-0", k);
        put_pod(b, &(struct pod){.group = hk_str(name.text),
                                 .name = pod.text,
                                 .size = basic_pod,
                                 .cons = NO_CONS,
                                 .ident = b->w.plain});
    }
}

/* ---- the table ---- */

#define TIERS(gang, conformance)                                                                   \
    "tiers:\n"                                                                                     \
    "- plugins:\n"                                                                                 \
    "  - name: priority\n"                                                                         \
    "  - name: gang\n" gang "  - name: conformance\n" conformance "- plugins:\n"                   \
    "  - name: drf\n"                                                                              \
    "    enablePreemptable: false\n"                                                               \
    "  - name: predicates\n"                                                                       \
    "  - name: proportion\n"                                                                       \
    "  - name: nodeorder\n"

#define PREEMPT_CONF                                                                               \
    "actions: \"enqueue, allocate, backfill, preempt\"\n" TIERS("    enablePreemptable: false\n",  \
                                                                "")
#define GANG_CONF "actions: \"enqueue, allocate, gangpreempt\"\n" TIERS("", "")
/* Without gang and conformance, which would decide in the first tier, reclaim asks proportion. */
#define RECLAIM_CONF                                                                               \
    "actions: \"enqueue, allocate, backfill, reclaim\"\n" TIERS("    enableReclaimable: false\n",  \
                                                                "    enableReclaimable: false\n")
#define HIERARCHY_CONF                                                                             \
    "actions: \"enqueue, allocate, backfill\"\n"                                                   \
    "tiers:\n"                                                                                     \
    "- plugins:\n"                                                                                 \
    "  - name: priority\n"                                                                         \
    "  - name: gang\n"                                                                             \
    "  - name: conformance\n"                                                                      \
    "- plugins:\n"                                                                                 \
    "  - name: overcommit\n"                                                                       \
    "  - name: predicates\n"                                                                       \
    "  - name: capacity\n"                                                                         \
    "    enableHierarchy: true\n"                                                                  \
    "  - name: nodeorder\n"

#define GANGS(name, n, p, g, f, b)                                                                 \
    {                                                                                              \
        .id = (name), .about = "equal pods in gangs of " #g, .build = build_gangs,                 \
        .measure = measure_place, .nodes = (n), .pods = (p), .gang = (g), .full = (f), .bar = (b)  \
    }

static void build_nothing(struct bench *b)
{
}

const struct workload workloads[] = {
    GANGS("1k-gang1", 1000, 10000, 1, 0, NULL),
    GANGS("1k-gang8", 1000, 10000, 8, 0, NULL),
    GANGS("1k-gang64", 1000, 10000, 64, 0, NULL),
    GANGS("1k-gang512", 1000, 10000, 512, 0, NULL),
    GANGS("10k-gang1", 10000, 100000, 1, 0, NULL),
    GANGS("10k-gang8", 10000, 100000, 8, 0, NULL),
    GANGS("10k-gang64", 10000, 100000, 64, 0, "P2 >= 1000000"),
    GANGS("10k-gang512", 10000, 100000, 512, 0, "P2 >= 1000000"),
    GANGS("10k-full-gang1", 10000, 100000, 1, 95, NULL),
    GANGS("10k-full-gang8", 10000, 100000, 8, 95, NULL),
    GANGS("10k-full-gang64", 10000, 100000, 64, 95, NULL),
    GANGS("10k-full-gang512", 10000, 100000, 512, 95, NULL),
    {.id = "basic",
     .about = "kube-scheduler's SchedulingBasic, a job per pod",
     .build = build_basic,
     .measure = measure_place,
     .nodes = 5000,
     .pods = 50000,
     .gang = 1},
    {.id = "basic-running",
     .about = "the same with 100,000 pods running",
     .build = build_basic,
     .measure = measure_place,
     .nodes = 5000,
     .pods = 50000,
     .gang = 1,
     .running = 100000},
    {.id = "distinct-5k",
     .about = "every pod a shape of its own",
     .build = build_distinct,
     .measure = measure_place,
     .nodes = 5000,
     .pods = 50000,
     .gang = 1,
     .bar = "P1 >= 100000"},
    {.id = "distinct-10k",
     .about = "every pod a shape of its own",
     .build = build_distinct,
     .measure = measure_place,
     .nodes = 10000,
     .pods = 100000,
     .gang = 1,
     .bar = "P1 >= 50000"},
    {.id = "mixed-sizes",
     .about = "four kinds of nodes, GPUs, 2,000 shapes",
     .build = build_mixed_sizes,
     .measure = measure_place,
     .nodes = 5000,
     .pods = 50000,
     .gang = 8},
    {.id = "constraints",
     .about = "selectors, taints, anti-affinity, spread by turns",
     .build = build_constraints,
     .measure = measure_place,
     .nodes = 1000,
     .pods = 10000,
     .gang = 8},
    {.id = "taint-per-node",
     .about = "every node has a taint of its own",
     .build = build_taints,
     .measure = measure_place,
     .nodes = 5000,
     .pods = 50000,
     .gang = 8},
    {.id = "preempt",
     .about = "a full cluster, 2,000 pods of higher priority",
     .build = build_storm,
     .measure = measure_evict,
     .nodes = 5000,
     .pods = 2000,
     .gang = 1,
     .conf = PREEMPT_CONF,
     .bar = "P9 >= 2000"},
    {.id = "preempt-gang8",
     .about = "the same in gangs of 8",
     .build = build_storm,
     .measure = measure_evict,
     .nodes = 5000,
     .pods = 2000,
     .gang = 8,
     .conf = PREEMPT_CONF,
     .bar = "P9 >= 2000"},
    {.id = "gangpreempt",
     .about = "gangs of 8 by the gangpreempt action",
     .build = build_storm,
     .measure = measure_evict,
     .nodes = 1000,
     .pods = 800,
     .gang = 8,
     .conf = GANG_CONF},
    {.id = "reclaim",
     .about = "99 of 100 queues reclaim their share",
     .build = build_reclaim,
     .measure = measure_evict,
     .nodes = 1000,
     .pods = 1980,
     .gang = 1,
     .conf = RECLAIM_CONF,
     .bar = "P9 <= 1000 ms"},
    {.id = "hierarchy",
     .about = "1,000 queues in a tree",
     .build = build_hierarchy,
     .measure = measure_place,
     .nodes = 1000,
     .pods = 10000,
     .gang = 1,
     .conf = HIERARCHY_CONF},
    {.id = "behind-hopeless",
     .about = "500 feasible pods behind 10,000 that fit nowhere",
     .build = build_feasible_behind,
     .measure = measure_place,
     .nodes = 5000,
     .pods = 10000,
     .gang = 1},
    {.id = "million",
     .about = "a million pods wait, 32,000 fit",
     .build = build_million,
     .measure = measure_place,
     .nodes = 1000,
     .pods = 1000000,
     .gang = 10},
    {.id = "arrivals",
     .about = "100,000 running on 10,000 nodes, a pod per cycle",
     .build = build_arrivals,
     .measure = measure_arrivals,
     .nodes = 10000,
     .pods = 2000,
     .gang = 1,
     .running = 100000,
     .bar = "P5 <= 2 ms"},
    {.id = "idle",
     .about = "10,000 pods fit nowhere, nothing changes",
     .build = build_hopeless,
     .measure = measure_idle,
     .nodes = 5000,
     .pods = 10000,
     .gang = 1,
     .bar = "P8 <= 3 ms"}, /* a cycle per second at most: 0.3 % of a core */
    {.id = "restart",
     .about = "everything read again from JSON, 87,000 groups, then a gang of 8",
     .build = build_nothing,
     .measure = measure_restart,
     .nodes = 5000,
     .pods = 150000,
     .running = 87000,
     .bar = "P6 <= 5000 ms"},
    {.id = "memory-5k",
     .about = "5,000 nodes, 100,000 pods",
     .build = build_basic,
     .measure = measure_memory,
     .nodes = 5000,
     .pods = 10000,
     .gang = 1,
     .running = 90000,
     .bar = "P7 <= 300 MB"},
    {.id = "memory-100",
     .about = "100 nodes, 1,000 pods",
     .build = build_basic,
     .measure = measure_memory,
     .nodes = 100,
     .pods = 100,
     .gang = 1,
     .running = 900,
     .bar = "P7 <= 40 MB"},
};
const uint32_t nworkload = HK_LEN(workloads);
