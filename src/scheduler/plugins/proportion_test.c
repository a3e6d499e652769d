// SPDX-License-Identifier: Apache-2.0
// proportion: the division by weight, and the decisions that follow from it.
#include "scheduler/plugins/ledger.h"
#include "scheduler/plugins/rig_test.h"
#include "scheduler/stmt.h"

#include <math.h>

extern const struct plugin plugin_proportion;

/* The ledger is the first member of the plugin's state. */
static struct ledger_row *row(struct rig *r, queue_id q)
{
    return ledger_row(rig_self(r), q);
}

enum { NQUEUE = 3 };

static const struct {
    const char *about, *total;
    struct {
        int32_t weight;
        const char *request, *capability, *guarantee;
        double cpu, mem; /* deserved */
    } at[NQUEUE];
} splits[] = {
    {"what one queue does not ask for goes to the others by weight",
     "cpu=12 mem=24",
     {{1, "cpu=2 mem=4", NULL, NULL, 2, 4},
      {1, "cpu=20 mem=40", NULL, NULL, 10.0 / 3, 20.0 / 3},
      {2, "cpu=20 mem=40", NULL, NULL, 20.0 / 3, 40.0 / 3}}},
    {"a capability caps, the rest goes on",
     "cpu=12 mem=24",
     {{1, "cpu=20 mem=40", "cpu=2 mem=4", NULL, 2, 4}, {1, "cpu=20 mem=40", NULL, NULL, 10, 20}}},
    {"a guarantee is kept although nobody asks for all of it",
     "cpu=12 mem=24",
     {{1, "cpu=1 mem=2", NULL, "cpu=4 mem=8", 4, 8}, {1, "cpu=20 mem=40", NULL, NULL, 8, 16}}},
    {"a capability without memory does not cap memory",
     "cpu=12 mem=24",
     {{1, "cpu=20 mem=40", "cpu=2", NULL, 2, 12}, {1, "cpu=20 mem=40", NULL, NULL, 10, 12}}},
    {"weight 0 gets its guarantee",
     "cpu=12 mem=24",
     {{-1, "cpu=20 mem=40", NULL, "cpu=1 mem=1", 1, 1}, {1, "cpu=20 mem=40", NULL, NULL, 11, 23}}},
    {"weight 0 everywhere gets nothing at all",
     "cpu=12 mem=24",
     {{-1, "cpu=20 mem=40", NULL, "cpu=1 mem=1", 0, 0}}},
};

static void the_cluster_is_split_by_weight(void **state)
{
    for (size_t c = 0; c < HK_LEN(splits); c++) {
        RIG(r);
        queue_id q[NQUEUE];

        rig_node(&r, "n", splits[c].total);
        rig_queue(&r, "idle", .weight = 100); /* gets nothing without jobs */
        for (unsigned k = 0; k < NQUEUE && splits[c].at[k].request; k++) {
            const char name[] = {(char)('a' + k), '\0'};

            q[k] = rig_queue(&r, name, .weight = splits[c].at[k].weight,
                             .capability = splits[c].at[k].capability,
                             .guarantee = splits[c].at[k].guarantee);
            rig_job(&r, name, name);
            rig_task(&r, name, name, .req = splits[c].at[k].request);
        }
        rig_open(&r, "proportion", "");

        for (unsigned k = 0; k < NQUEUE && splits[c].at[k].request; k++) {
            const struct rvec *d = &row(&r, q[k])->deserved;
            const double cpu = rvec_get(d, DIM_CPU) / 1000, mem = rvec_get(d, DIM_MEM);

            print_message("# case %zu: %s: queue %u has %g %g, want %g %g\n", c, splits[c].about, k,
                          cpu, mem, splits[c].at[k].cpu, splits[c].at[k].mem);
            /* The rounds end when less than 0.1 of a unit is left. */
            assert_true(fabs(cpu - splits[c].at[k].cpu) < 0.001);
            assert_true(fabs(mem - splits[c].at[k].mem) < 0.2);
        }
    }
}

/* q1 deserves 2/2 and holds 1/2: only requested resources are compared. */
static void only_what_a_task_asks_for_is_compared(void **state)
{
    static const struct {
        const char *req;
        bool allocatable;
    } cases[] = {{"cpu=1", true}, {"cpu=1 mem=1", false}};

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        RIG(r);

        rig_node(&r, "n", "cpu=4 mem=4 pods=10");
        const queue_id q1 = rig_queue(&r, "q1", .capability = "cpu=2 mem=2");
        rig_queue(&r, "q2", .capability = "cpu=3 mem=3");
        rig_job(&r, "j1", "q1");
        rig_job(&r, "j2", "q2");
        rig_task(&r, "j1", "a", .req = "cpu=1 mem=2", .status = TASK_RUNNING, .node = "n");
        rig_task(&r, "j2", "c", .req = "cpu=2 mem=1", .status = TASK_RUNNING, .node = "n");
        const task_id t = rig_task(&r, "j1", "b", .req = cases[k].req);
        rig_open(&r, "proportion", "");
        assert_int_equal(plugin_proportion.allocatable(&r.ssn, rig_self(&r), q1, t),
                         cases[k].allocatable);
        assert_int_equal(plugin_proportion.preemptive(&r.ssn, rig_self(&r), q1, &t, 1),
                         cases[k].allocatable);
    }
}

static void a_closed_queue_gets_nothing_new(void **state)
{
    RIG(r);

    rig_node(&r, "n", "cpu=4 mem=4 pods=10");
    const queue_id q = rig_queue(&r, "q", .closed = true);
    const job_id j = rig_job(&r, "j", "q", .minres = "cpu=1");
    const task_id t = rig_task(&r, "j", "t", .req = "cpu=1");
    rig_open(&r, "proportion", "");
    assert_false(plugin_proportion.allocatable(&r.ssn, rig_self(&r), q, t));
    assert_false(plugin_proportion.preemptive(&r.ssn, rig_self(&r), q, &t, 1));
    assert_int_equal(plugin_proportion.job_enqueueable(&r.ssn, rig_self(&r), j), REJECT);
    assert_string_equal(r.ssn.job_msg[j.i], "queue 'q' is not open");
}

/* Amounts that the first job already holds do not count twice. */
static void admission_counts_what_runs_once(void **state)
{
    RIG(r);

    rig_node(&r, "n", "cpu=10 mem=10 pods=10");
    rig_queue(&r, "q1", .capability = "cpu=4");
    rig_job(&r, "a", "q1", .min = 3, .minres = "cpu=3", .phase = PG_INQUEUE);
    for (unsigned k = 0; k < 3; k++) {
        const char name[] = {'a', (char)('0' + k), '\0'};
        rig_task(&r, "a", name, .req = "cpu=1", .status = TASK_BINDING, .node = "n");
    }
    const job_id b = rig_job(&r, "b", "q1", .minres = "cpu=1", .phase = PG_PENDING);
    const job_id c = rig_job(&r, "c", "q1", .minres = "cpu=1", .phase = PG_PENDING);
    rig_open(&r, "proportion", "");
    assert_int_equal(plugin_proportion.job_enqueueable(&r.ssn, rig_self(&r), b), PERMIT);
    plugin_proportion.job_enqueued(&r.ssn, rig_self(&r), b);
    assert_int_equal(plugin_proportion.job_enqueueable(&r.ssn, rig_self(&r), c), REJECT);
    assert_string_equal(r.ssn.job_msg[c.i], "queue resource quota insufficient: insufficient cpu");
}

static void priority_then_share_orders_queues(void **state)
{
    RIG(r);

    const node_id n = rig_node(&r, "n", "cpu=10 mem=10 pods=20");
    const queue_id a = rig_queue(&r, "a"), b = rig_queue(&r, "b"),
                   c = rig_queue(&r, "c", .priority = 5);
    rig_job(&r, "ja", "a");
    rig_job(&r, "jb", "b");
    rig_job(&r, "jc", "c");
    const task_id ta = rig_task(&r, "ja", "ta", .req = "cpu=2");
    const task_id tb = rig_task(&r, "jb", "tb", .req = "cpu=2");
    rig_task(&r, "jb", "tb2", .req = "cpu=2");
    rig_task(&r, "jc", "tc", .req = "cpu=2", .status = TASK_RUNNING, .node = "n");
    rig_open(&r, "proportion", "");

    assert_true(plugin_proportion.queue_order(&r.ssn, rig_self(&r), c, a) < 0);
    assert_int_equal(plugin_proportion.queue_order(&r.ssn, rig_self(&r), a, b), 0);
    assert_true(stmt_allocate(&r.ssn, tb, n));
    assert_true(plugin_proportion.queue_order(&r.ssn, rig_self(&r), a, b) < 0);
    const stmt_mark_t mark = stmt_mark(&r.ssn);
    assert_true(stmt_pipeline(&r.ssn, ta, n, false)); /* a has all: its share is complete */
    assert_true(plugin_proportion.queue_order(&r.ssn, rig_self(&r), a, b) > 0);
    stmt_rewind(&r.ssn, mark);
    assert_true(plugin_proportion.queue_order(&r.ssn, rig_self(&r), a, b) < 0);
}

static void overused_is_every_dimension_reached(void **state)
{
    RIG(r);

    rig_node(&r, "n", "cpu=10 mem=10 pods=20");
    const queue_id full = rig_queue(&r, "full"), part = rig_queue(&r, "part");
    rig_job(&r, "jf", "full");
    rig_job(&r, "jp", "part");
    rig_task(&r, "jf", "f", .req = "cpu=1 mem=1", .status = TASK_RUNNING, .node = "n");
    rig_task(&r, "jp", "p", .req = "cpu=1 mem=1", .status = TASK_RUNNING, .node = "n");
    rig_task(&r, "jp", "p2"); /* requests one more pod */
    rig_open(&r, "proportion", "");
    assert_true(plugin_proportion.overused(&r.ssn, rig_self(&r), full));
    assert_false(plugin_proportion.overused(&r.ssn, rig_self(&r), part));
}

static void reclaim_stops_at_what_a_queue_deserves(void **state)
{
    RIG(r);
    task_id t[4];

    rig_node(&r, "n", "cpu=4 mem=100 pods=20");
    rig_queue(&r, "a");
    rig_queue(&r, "b");
    rig_job(&r, "ja", "a");
    rig_job(&r, "jb", "b");
    for (unsigned k = 0; k < 4; k++) {
        const char name[] = {'a', (char)('1' + k), '\0'};
        t[k] = rig_task(&r, "ja", name, .req = "cpu=1", .status = TASK_RUNNING, .node = "n");
    }
    const task_id mine = rig_task(&r, "jb", "b1", .req = "cpu=4");
    rig_open(&r, "proportion", "");

    RIG_VICTIMS(v, t[0], t[1], t[2], t[3]);
    assert_int_equal(plugin_proportion.reclaimable(&r.ssn, rig_self(&r), mine, &v), PERMIT);
    assert_string_equal(rig_names(&r, &v), "a1 a2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cluster_is_split_by_weight),
        cmocka_unit_test(only_what_a_task_asks_for_is_compared),
        cmocka_unit_test(a_closed_queue_gets_nothing_new),
        cmocka_unit_test(admission_counts_what_runs_once),
        cmocka_unit_test(priority_then_share_orders_queues),
        cmocka_unit_test(overused_is_every_dimension_reached),
        cmocka_unit_test(reclaim_stops_at_what_a_queue_deserves),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
