// SPDX-License-Identifier: Apache-2.0
// capacity: limits, admission, order and reclaim, flat and in a tree of queues.
#include "scheduler/plugins/ledger.h"
#include "scheduler/plugins/rig_test.h"
#include "scheduler/stmt.h"

extern const struct plugin plugin_capacity;

enum { NQUEUE = 7, FLAT = -1 };

/* A queue, the amounts of its running task, and the request of its waiting task, which is also the
 * minimum of that task's job. */
struct entry {
    struct rig_queue q;
    const char *used, *wants;
};

#define Q(queue, uses, asks, ...)                                                                  \
    {                                                                                              \
        .q = {.name = (queue), ##__VA_ARGS__}, .used = (uses), .wants = (asks)                     \
    }

struct world {
    struct rig r;
    queue_id queue[NQUEUE];
    job_id waiting[NQUEUE];
    task_id running[NQUEUE], pending[NQUEUE];
    uint32_t n;
};

static void add_work(struct world *w, const struct entry *e)
{
    const char *name = e->q.name;
    char task[32];

    if (e->used) {
        snprintf(task, sizeof(task), "%s-runs", name);
        rig_job(&w->r, task, name, .phase = PG_RUNNING);
        w->running[w->n] =
            rig_task(&w->r, task, task, .req = e->used, .status = TASK_RUNNING, .node = "n");
    }
    if (e->wants) {
        snprintf(task, sizeof(task), "%s-waits", name);
        w->waiting[w->n] = rig_job(&w->r, task, name, .minres = e->wants, .phase = PG_PENDING);
        w->pending[w->n] = rig_task(&w->r, task, task, .req = e->wants);
    }
}

/* levels: FLAT, or a tree with that ancestorReclaimLevel. */
static void world_init(struct world *w, const char *node, const struct entry *at, int levels)
{
    char conf[128] = "";

    *w = (struct world){0};
    rig_init(&w->r);
    rig_node(&w->r, "n", node);
    for (; w->n < NQUEUE && at[w->n].q.name; w->n++) {
        w->queue[w->n] = rig_queue_put(&w->r, at[w->n].q);
        add_work(w, &at[w->n]);
    }
    if (levels != FLAT) {
        snprintf(conf, sizeof(conf),
                 "    enableHierarchy: true\n    arguments: {ancestorReclaimLevel: %d}\n", levels);
    }
    rig_open(&w->r, "capacity", conf);
}

static void world_fini(struct world *w)
{
    rig_fini(&w->r);
}

static bool allocatable(struct world *w, uint32_t k)
{
    return plugin_capacity.allocatable(&w->r.ssn, rig_self(&w->r), w->queue[k], w->pending[k]);
}

static bool preemptive(struct world *w, uint32_t k)
{
    return plugin_capacity.preemptive(&w->r.ssn, rig_self(&w->r), w->queue[k], &w->pending[k], 1);
}

static bool reclaims(struct world *w, uint32_t reclaimer, uint32_t victim)
{
    RIG_VICTIMS(v, w->running[victim]);

    assert_int_equal(
        plugin_capacity.reclaimable(&w->r.ssn, rig_self(&w->r), w->pending[reclaimer], &v), PERMIT);
    return v.nout == 1;
}

static enum vote enqueueable(struct world *w, uint32_t k)
{
    return plugin_capacity.job_enqueueable(&w->r.ssn, rig_self(&w->r), w->waiting[k]);
}

static const char *message(struct world *w, uint32_t k)
{
    const char *text = w->r.ssn.job_msg[w->waiting[k].i];

    return text ? text : "";
}

/* The ledger is the first member of the plugin's state. */
static struct ledger_row *row(struct world *w, uint32_t k)
{
    return ledger_row(rig_self(&w->r), w->queue[k]);
}

/* ---- allocatable ---- */

static const struct {
    const char *about, *node;
    int levels;
    struct entry at[NQUEUE];
    bool want; /* for the last queue with a waiting task */
} placements[] = {
    {"within the capability",
     "cpu=9 mem=9 pods=9",
     FLAT,
     {Q("q1", "cpu=1 mem=1", "cpu=1 mem=1", .capability = "cpu=2 mem=2")},
     true},
    {"past the capability",
     "cpu=9 mem=9 pods=9",
     FLAT,
     {Q("q1", "cpu=1 mem=1", "cpu=1 mem=1", .capability = "cpu=1.5 mem=1")},
     false},
    {"guarantees of others are not to be had",
     "cpu=4 mem=4 pods=9",
     FLAT,
     {Q("q1", NULL, "cpu=3"), Q("q2", NULL, NULL, .guarantee = "cpu=2")},
     false},
    {"own guarantees are",
     "cpu=4 mem=4 pods=9",
     FLAT,
     {Q("q1", NULL, "cpu=4", .guarantee = "cpu=2")},
     true},
    {"a closed queue takes nothing",
     "cpu=9 mem=9 pods=9",
     FLAT,
     {Q("q1", NULL, "cpu=1", .closed = true)},
     false},
    {"the parent is full although the leaf has room",
     "cpu=99 mem=99 pods=9",
     0,
     {Q("root", NULL, NULL), Q("q3", NULL, NULL, .capability = "cpu=4 mem=4"),
      Q("q31", "cpu=2 mem=2", NULL, .parent = "q3"), Q("q32", "cpu=2 mem=2", NULL, .parent = "q3"),
      Q("q33", NULL, "cpu=3 mem=3", .parent = "q3", .capability = "cpu=4 mem=4")},
     false},
    {"cpu nobody limits is not limited",
     "cpu=9 mem=9 pods=9",
     0,
     {Q("root", NULL, NULL), Q("q5", NULL, NULL, .capability = "mem=4"),
      Q("q51", NULL, "cpu=1", .parent = "q5", .capability = "mem=2")},
     true},
    {"scalars come down from the root",
     "cpu=9 mem=9 pods=9 gpu=8",
     0,
     {Q("root", NULL, NULL), Q("q1", NULL, NULL),
      Q("q11", "gpu=4", NULL, .parent = "q1", .capability = "gpu=4"),
      Q("q12", NULL, "gpu=4", .parent = "q1", .capability = "gpu=4")},
     true},
    {"a root that limits cpu alone leaves memory free",
     "cpu=9 mem=9 pods=9",
     0,
     {Q("root", NULL, NULL, .capability = "cpu=4"), Q("q1", NULL, "cpu=1 mem=1")},
     true},
    {"a root that limits cpu does limit cpu",
     "cpu=9 mem=9 pods=9",
     0,
     {Q("root", NULL, NULL, .capability = "cpu=4"), Q("q1", NULL, "cpu=5 mem=1")},
     false},
    {"children promised more than their parent has keep their guarantee",
     "cpu=9 mem=9 pods=9",
     0,
     {Q("root", NULL, NULL), Q("p", NULL, NULL, .capability = "cpu=6"),
      Q("a", NULL, NULL, .parent = "p", .guarantee = "cpu=4"),
      Q("b", NULL, "cpu=4", .parent = "p", .guarantee = "cpu=4")},
     true},
    {"but no more than that",
     "cpu=9 mem=9 pods=9",
     0,
     {Q("root", NULL, NULL), Q("p", NULL, NULL, .capability = "cpu=6"),
      Q("a", NULL, NULL, .parent = "p", .guarantee = "cpu=4"),
      Q("b", NULL, "cpu=5", .parent = "p", .guarantee = "cpu=4")},
     false},
};

static void queues_stay_within_their_limits(void **state)
{
    for (size_t k = 0; k < HK_LEN(placements); k++) {
        HK_AUTO(world_fini) struct world w;
        uint32_t last = 0;

        world_init(&w, placements[k].node, placements[k].at, placements[k].levels);
        for (uint32_t i = 0; i < w.n; i++) {
            last = placements[k].at[i].wants ? i : last;
        }
        print_message("# case %zu: %s\n", k, placements[k].about);
        assert_int_equal(allocatable(&w, last), placements[k].want);
    }
}

static void placements_of_the_session_count_up_the_tree(void **state)
{
    static const struct entry at[NQUEUE] = {
        Q("root", NULL, NULL),
        Q("p", NULL, NULL, .capability = "cpu=4"),
        Q("a", NULL, "cpu=3", .parent = "p"),
        Q("b", NULL, "cpu=3", .parent = "p"),
    };
    HK_AUTO(world_fini) struct world w;

    world_init(&w, "cpu=9 mem=9 pods=9", at, 0);
    const node_id n = model_node_find(&w.r.m, HK_STR("n"));
    const stmt_mark_t mark = stmt_mark(&w.r.ssn);
    assert_true(allocatable(&w, 3));
    assert_true(stmt_pipeline(&w.r.ssn, w.pending[2], n, false));
    assert_false(allocatable(&w, 3));
    stmt_rewind(&w.r.ssn, mark);
    assert_true(allocatable(&w, 3));
}

/* ---- enqueueable ---- */

static void minima_of_admitted_jobs_count_in_the_parent(void **state)
{
    static const struct entry at[NQUEUE] = {
        Q("root", NULL, NULL),
        Q("q6", NULL, NULL, .capability = "cpu=2 mem=4"),
        Q("q61", NULL, "cpu=2 mem=4", .parent = "q6"),
        Q("q62", NULL, "cpu=2 mem=4", .parent = "q6"),
    };
    HK_AUTO(world_fini) struct world w;

    world_init(&w, "cpu=9 mem=9 pods=9", at, 0);
    assert_int_equal(enqueueable(&w, 2), PERMIT);
    plugin_capacity.job_enqueued(&w.r.ssn, rig_self(&w.r), w.waiting[2]);
    assert_int_equal(enqueueable(&w, 3), REJECT);
    assert_string_equal(message(&w, 3), "queue resource quota insufficient: insufficient cpu, "
                                        "insufficient memory");
}

/* Upstream schedules nothing at all with any of the first five. */
static void broken_queues_do_not_stop_the_others(void **state)
{
    static const struct entry at[NQUEUE] = {
        Q("root", NULL, NULL),
        Q("orphan", "cpu=1", "cpu=1", .parent = "gone"),
        Q("below", NULL, "cpu=1", .parent = "orphan"),
        Q("egg", NULL, "cpu=1", .parent = "hen"),
        Q("hen", NULL, NULL, .parent = "egg"),
        Q("inner", NULL, "cpu=1"),
        Q("leaf", NULL, "cpu=1", .parent = "inner"),
    };
    static const char *const want[NQUEUE] = {
        [1] = "queue 'orphan': parent 'gone' does not exist",
        [2] = "queue 'below': above it, queue 'orphan': parent 'gone' does not exist",
        [3] = "queue 'egg': its parents form a circle",
        [5] = "queue 'inner': only leaf queues take jobs",
        [6] = "",
    };
    HK_AUTO(world_fini) struct world w;

    world_init(&w, "cpu=9 mem=9 pods=9", at, 1);
    for (uint32_t k = 1; k < NQUEUE; k++) {
        if (want[k]) {
            const bool fine = want[k][0] == '\0';

            assert_int_equal(enqueueable(&w, k), fine ? PERMIT : REJECT);
            assert_string_equal(message(&w, k), want[k]);
            assert_int_equal(allocatable(&w, k), fine);
        }
    }
    RIG_VICTIMS(v, w.running[1]);
    assert_int_equal(plugin_capacity.reclaimable(&w.r.ssn, rig_self(&w.r), w.pending[6], &v),
                     PERMIT);
    assert_int_equal(v.nout, 0); /* its deserved amount is unknown */
    assert_int_equal(plugin_capacity.reclaimable(&w.r.ssn, rig_self(&w.r), w.pending[3], &v),
                     REJECT);
    assert_true(plugin_capacity.queue_order(&w.r.ssn, rig_self(&w.r), w.queue[6], w.queue[1]) < 0);
}

static void without_a_root_every_queue_says_so(void **state)
{
    static const struct entry at[NQUEUE] = {Q("q", NULL, "cpu=1")};
    HK_AUTO(world_fini) struct world w;

    world_init(&w, "cpu=9 mem=9 pods=9", at, 0);
    assert_int_equal(enqueueable(&w, 0), REJECT);
    assert_string_equal(message(&w, 0), "queue 'q': parent 'root' does not exist");
}

/* ---- order ---- */

static void shares_order_queues(void **state)
{
    static const struct entry at[NQUEUE] = {
        Q("unset", "cpu=1", NULL),
        Q("whole", "cpu=10", NULL, .deserved = "cpu=10"),
        Q("half", "cpu=5", NULL, .deserved = "cpu=10"),
        Q("first", "cpu=9", NULL, .deserved = "cpu=1", .priority = 1),
    };
    HK_AUTO(world_fini) struct world w;

    world_init(&w, "cpu=99 mem=9 pods=9", at, FLAT);
    for (uint32_t a = 0; a < 4; a++) {
        for (uint32_t b = 0; b < 4; b++) {
            const int got =
                plugin_capacity.queue_order(&w.r.ssn, rig_self(&w.r), w.queue[a], w.queue[b]);
            assert_int_equal((got > 0) - (got < 0), (a < b) - (a > b));
        }
    }
}

static void leaves_stand_for_the_branches_in_which_they_part(void **state)
{
    static const struct entry at[NQUEUE] = {
        Q("root", NULL, NULL),
        Q("busy", NULL, NULL, .deserved = "cpu=4"),
        Q("calm", NULL, NULL, .deserved = "cpu=4"),
        Q("b1", NULL, "cpu=1", .parent = "busy", .deserved = "cpu=2"),
        Q("b2", "cpu=3", NULL, .parent = "busy", .deserved = "cpu=2"),
        Q("c1", "cpu=1", "cpu=3", .parent = "calm", .deserved = "cpu=2"),
    };
    HK_AUTO(world_fini) struct world w;

    world_init(&w, "cpu=99 mem=9 pods=9", at, 0);
    struct session *ssn = &w.r.ssn;
    void *self = rig_self(&w.r);
    assert_true(plugin_capacity.queue_order(ssn, self, w.queue[5], w.queue[3]) < 0);
    assert_true(plugin_capacity.queue_order(ssn, self, w.queue[3], w.queue[4]) < 0);
    assert_true(plugin_capacity.queue_order(ssn, self, w.queue[3], w.queue[1]) <
                0); /* leaf first */

    /* Placements of the session change the shares of inner queues, too. */
    assert_true(stmt_allocate(ssn, w.pending[5], model_node_find(&w.r.m, HK_STR("n"))));
    assert_true(plugin_capacity.queue_order(ssn, self, w.queue[5], w.queue[3]) > 0);

    /* Victims come first from the nearer queue. */
    assert_true(plugin_capacity.victim_queue_order(ssn, self, w.queue[4], w.queue[5], w.queue[3]) <
                0);
    assert_true(plugin_capacity.victim_queue_order(ssn, self, w.queue[5], w.queue[4], w.queue[3]) >
                0);
    assert_int_equal(
        plugin_capacity.victim_queue_order(ssn, self, w.queue[5], w.queue[5], w.queue[3]), 0);
}

/* ---- reclaim ---- */

static const struct {
    const char *about;
    int levels;
    struct entry at[NQUEUE];
    uint32_t reclaimer, victim;
    bool preemptive, reclaims;
} reclaims_cases[] = {
    {"one resource within what is deserved is enough",
     FLAT,
     {Q("q10", "cpu=1 mem=3", "cpu=1 mem=1", .deserved = "cpu=2 mem=2"),
      Q("q11", "cpu=1 mem=1", NULL, .deserved = "cpu=0")},
     0,
     1,
     true,
     true},
    {"no resource within what is deserved",
     FLAT,
     {Q("q12", "cpu=1 mem=1", "cpu=1 mem=2", .deserved = "cpu=1 mem=2"), Q("q13", "cpu=1", NULL)},
     0,
     1,
     false,
     true},
    {"a victim's queue deserves the device it uses, cpu does not matter",
     FLAT,
     {Q("a", NULL, "cpu=1 mem=1", .deserved = "cpu=4 mem=4"),
      Q("b", "cpu=4 mem=4 gpu=1", NULL, .deserved = "gpu=1")},
     0,
     1,
     true,
     false},
    {"past the capability nothing is deserved",
     FLAT,
     {Q("a", "cpu=7 mem=90", "cpu=2 mem=5", .deserved = "cpu=8 mem=100",
        .capability = "cpu=8 mem=100"),
      Q("b", "cpu=1", NULL)},
     0,
     1,
     false,
     true},
    {"a guarantee is not reclaimed",
     FLAT,
     {Q("a", NULL, "cpu=1", .deserved = "cpu=4"), Q("b", "cpu=1", NULL, .guarantee = "cpu=1")},
     0,
     1,
     true,
     false},
    {"nothing in common with the reclaimer",
     FLAT,
     {Q("a", NULL, "gpu=1", .deserved = "gpu=1"), Q("b", "cpu=1", NULL)},
     0,
     1,
     true,
     false},
    {"level 0: the victim's own queue decides",
     0,
     {Q("root", NULL, NULL), Q("gp", NULL, NULL, .deserved = "cpu=3"),
      Q("p", NULL, NULL, .parent = "gp", .deserved = "cpu=1"),
      Q("v", "cpu=2", NULL, .parent = "p", .deserved = "cpu=1"),
      Q("r", NULL, "cpu=1", .deserved = "cpu=2")},
     4,
     3,
     true,
     true},
    {"level 1: its parent is above what it deserves, too",
     1,
     {Q("root", NULL, NULL), Q("gp", NULL, NULL, .deserved = "cpu=3"),
      Q("p", NULL, NULL, .parent = "gp", .deserved = "cpu=1"),
      Q("v", "cpu=2", NULL, .parent = "p", .deserved = "cpu=1"),
      Q("r", NULL, "cpu=1", .deserved = "cpu=2")},
     4,
     3,
     true,
     true},
    {"level 2: the grandparent is not",
     2,
     {Q("root", NULL, NULL), Q("gp", NULL, NULL, .deserved = "cpu=3"),
      Q("p", NULL, NULL, .parent = "gp", .deserved = "cpu=1"),
      Q("v", "cpu=2", NULL, .parent = "p", .deserved = "cpu=1"),
      Q("r", NULL, "cpu=1", .deserved = "cpu=2")},
     4,
     3,
     true,
     false},
    {"the parent deserves what its leaf asks for",
     1,
     {Q("root", NULL, NULL), Q("p", NULL, NULL, .deserved = "gpu=1"),
      Q("r", NULL, "gpu=1", .parent = "p"), Q("v", "gpu=4", NULL)},
     2,
     3,
     true,
     true},
    {"two leaves of one parent, neither deserving",
     1,
     {Q("root", NULL, NULL), Q("p", NULL, NULL, .deserved = "gpu=4"),
      Q("r", NULL, "gpu=1", .parent = "p"), Q("v", "gpu=1", NULL, .parent = "p")},
     2,
     3,
     true,
     false},
    {"the same with a common grandparent",
     2,
     {Q("root", NULL, NULL), Q("gp", NULL, NULL, .deserved = "gpu=4"),
      Q("p1", NULL, NULL, .parent = "gp"), Q("p2", NULL, NULL, .parent = "gp"),
      Q("r", NULL, "gpu=1", .parent = "p1"), Q("v", "gpu=1", NULL, .parent = "p2")},
     4,
     5,
     true,
     false},
    {"a leaf at what it deserves stays, though its parent is above",
     1,
     {Q("root", NULL, NULL), Q("p", NULL, NULL, .deserved = "gpu=1"),
      Q("v", "gpu=1", NULL, .parent = "p", .deserved = "gpu=1"),
      Q("s", "gpu=1", NULL, .parent = "p"), Q("p2", NULL, NULL, .deserved = "gpu=1"),
      Q("r", NULL, "gpu=1", .parent = "p2", .deserved = "gpu=1")},
     5,
     2,
     true,
     false},
    {"a shallow reclaimer does not exempt the victim's grandparent",
     2,
     {Q("root", NULL, NULL), Q("gp", NULL, NULL, .deserved = "gpu=2"),
      Q("p", NULL, NULL, .parent = "gp", .deserved = "gpu=1"),
      Q("v", "gpu=2", NULL, .parent = "p", .deserved = "gpu=1"),
      Q("p2", NULL, NULL, .deserved = "gpu=1"),
      Q("r", NULL, "gpu=1", .parent = "p2", .deserved = "gpu=1")},
     5,
     3,
     true,
     false},
};

static void reclaim_weighs_what_queues_deserve(void **state)
{
    for (size_t k = 0; k < HK_LEN(reclaims_cases); k++) {
        HK_AUTO(world_fini) struct world w;

        world_init(&w, "cpu=99 mem=999 pods=99 gpu=99", reclaims_cases[k].at,
                   reclaims_cases[k].levels);
        print_message("# case %zu: %s\n", k, reclaims_cases[k].about);
        assert_int_equal(preemptive(&w, reclaims_cases[k].reclaimer), reclaims_cases[k].preemptive);
        assert_int_equal(reclaims(&w, reclaims_cases[k].reclaimer, reclaims_cases[k].victim),
                         reclaims_cases[k].reclaims);
    }
}

/* Victims already chosen count: a queue loses pods down to its deserved amount and no further. */
static void victims_of_one_queue_add_up(void **state)
{
    RIG(r);
    task_id t[4];

    rig_node(&r, "n", "cpu=9 mem=9 pods=9");
    rig_queue(&r, "a", .deserved = "cpu=4");
    rig_queue(&r, "b", .deserved = "cpu=2");
    rig_job(&r, "ja", "a");
    rig_job(&r, "jb", "b");
    for (unsigned k = 0; k < 4; k++) {
        const char name[] = {'b', (char)('1' + k), '\0'};
        t[k] = rig_task(&r, "jb", name, .req = "cpu=1", .status = TASK_RUNNING, .node = "n");
    }
    const task_id mine = rig_task(&r, "ja", "a1", .req = "cpu=1");
    rig_open(&r, "capacity", "");

    RIG_VICTIMS(v, t[0], t[1], t[2], t[3]);
    assert_int_equal(plugin_capacity.reclaimable(&r.ssn, rig_self(&r), mine, &v), PERMIT);
    assert_int_equal(v.nout, 2);
    v.nout = 0; /* bundles: in the caller's order */
    assert_int_equal(plugin_capacity.evictable(&r.ssn, rig_self(&r), EVICT_GANG_RECLAIM,
                                               model_task(&r.m, mine)->job, NO_HYPER, &v),
                     PERMIT);
    assert_string_equal(rig_names(&r, &v), "b1 b2");
    v.nout = 0;
    assert_int_equal(plugin_capacity.evictable(&r.ssn, rig_self(&r), EVICT_GANG_PREEMPT,
                                               model_task(&r.m, mine)->job, NO_HYPER, &v),
                     PERMIT);
    assert_int_equal(v.nout, 4);
}

/* ---- attributes ---- */

static void flat_deserved_is_clipped_and_guaranteed(void **state)
{
    static const struct entry at[NQUEUE] = {
        Q("a", "cpu=1", NULL, .deserved = "cpu=9", .capability = "cpu=4"),
        Q("b", "cpu=1", NULL, .deserved = "cpu=1", .guarantee = "cpu=2"),
    };
    HK_AUTO(world_fini) struct world w;

    world_init(&w, "cpu=99 mem=9 pods=9", at, FLAT);
    assert_true(rvec_get(&row(&w, 0)->deserved, DIM_CPU) == 4000);
    assert_true(rvec_get(&row(&w, 1)->deserved, DIM_CPU) == 2000);
}

/* ---- the queue's scheduling gate ---- */

static void tasks_past_their_gate_keep_their_room(void **state)
{
    RIG(r);

    const node_id n = rig_node(&r, "n", "cpu=9 mem=9 pods=9");
    const queue_id q = rig_queue(&r, "q", .capability = "cpu=4");
    rig_job(&r, "j", "q");
    const task_id opened = rig_task(&r, "j", "opened", .req = "cpu=2", .flags = TASK_GATE_OPT_IN);
    const task_id small = rig_task(&r, "j", "small", .req = "cpu=2");
    const task_id large = rig_task(&r, "j", "large", .req = "cpu=3");
    rig_open(&r, "capacity", "");
    struct session *ssn = &r.ssn;
    void *self = rig_self(&r);

    assert_true(plugin_capacity.allocatable(ssn, self, q, small));
    assert_false(plugin_capacity.allocatable(ssn, self, q, large)); /* 2 are reserved */
    assert_true(plugin_capacity.allocatable(ssn, self, q, opened)); /* for this one */

    const stmt_mark_t mark = stmt_mark(ssn);
    assert_true(stmt_allocate(ssn, opened, n)); /* allocated now, no longer reserved */
    assert_true(plugin_capacity.allocatable(ssn, self, q, small));
    stmt_rewind(ssn, mark);
    assert_false(plugin_capacity.allocatable(ssn, self, q, large));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_stay_within_their_limits),
        cmocka_unit_test(placements_of_the_session_count_up_the_tree),
        cmocka_unit_test(minima_of_admitted_jobs_count_in_the_parent),
        cmocka_unit_test(broken_queues_do_not_stop_the_others),
        cmocka_unit_test(without_a_root_every_queue_says_so),
        cmocka_unit_test(shares_order_queues),
        cmocka_unit_test(leaves_stand_for_the_branches_in_which_they_part),
        cmocka_unit_test(reclaim_weighs_what_queues_deserve),
        cmocka_unit_test(victims_of_one_queue_add_up),
        cmocka_unit_test(flat_deserved_is_clipped_and_guaranteed),
        cmocka_unit_test(tasks_past_their_gate_keep_their_room),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
