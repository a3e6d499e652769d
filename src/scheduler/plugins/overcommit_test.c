// SPDX-License-Identifier: Apache-2.0
// overcommit: how much of the jobs' minimums is admitted.
#include "scheduler/plugins/rig_test.h"

extern const struct plugin plugin_overcommit;

static const struct {
    const char *total, *used, *inqueue, *factor, *minres;
    const char *refused; /* NULL: admitted */
} cases[] = {
    {"cpu=4 mem=8", NULL, NULL, NULL, "cpu=4 mem=4", NULL},
    {"cpu=4", "cpu=1", "cpu=3", NULL, "cpu=1", "resource in cluster is overused: overused cpu"},
    {"cpu=4", NULL, NULL, "0.8", "cpu=4.5", NULL}, /* a factor below 1 means 1.2 */
    {"cpu=4", NULL, NULL, "2", "cpu=8", NULL},
    {"cpu=4", NULL, NULL, "2", "cpu=8.001", "resource in cluster is overused: overused cpu"},
    {"cpu=4 mem=8", NULL, NULL, NULL, "cpu=5 mem=10",
     "resource in cluster is overused: overused cpu, overused memory"},
    {"cpu=4", NULL, "cpu=9", NULL, NULL, NULL}, /* no minimum, no limit */
    {"cpu=4", NULL, NULL, NULL, "cpu=1 gpu=1",
     "resource in cluster is overused: overused example.com/gpu"},
    {"cpu=4 pods=1", NULL, NULL, NULL, "cpu=1 pods=9", NULL}, /* pods do not count */
};

static void the_cluster_is_promised_up_to_the_factor(void **state)
{
    for (size_t k = 0; k < HK_LEN(cases); k++) {
        RIG(r);
        char conf[128] = "";

        rig_node(&r, "n", cases[k].total);
        rig_queue(&r, "q");
        if (cases[k].used) {
            rig_task(&r, NULL, "busy", .req = cases[k].used, .status = TASK_RUNNING, .node = "n");
        }
        if (cases[k].inqueue) {
            rig_job(&r, "waiting", "q", .minres = cases[k].inqueue, .phase = PG_INQUEUE);
        }
        const job_id j = rig_job(&r, "j", "q", .minres = cases[k].minres, .phase = PG_PENDING);
        if (cases[k].factor) {
            snprintf(conf, sizeof(conf), "    arguments: {overcommit-factor: %s}\n",
                     cases[k].factor);
        }
        rig_open(&r, "overcommit", conf);

        print_message("# case %zu: %s\n", k, cases[k].minres ? cases[k].minres : "no minimum");
        assert_int_equal(plugin_overcommit.job_enqueueable(&r.ssn, rig_self(&r), j),
                         cases[k].refused ? REJECT : PERMIT);
        if (cases[k].refused) {
            assert_string_equal(r.ssn.job_msg[j.i], cases[k].refused);
        } else {
            assert_null(r.ssn.job_msg[j.i]);
        }
    }
}

static void what_the_session_admits_counts(void **state)
{
    RIG(r);

    rig_node(&r, "n", "cpu=4");
    rig_queue(&r, "q");
    const job_id a = rig_job(&r, "a", "q", .minres = "cpu=3", .phase = PG_PENDING);
    const job_id b = rig_job(&r, "b", "q", .minres = "cpu=3", .phase = PG_PENDING);
    rig_open(&r, "overcommit", "");
    assert_int_equal(plugin_overcommit.job_enqueueable(&r.ssn, rig_self(&r), a), PERMIT);
    plugin_overcommit.job_enqueued(&r.ssn, rig_self(&r), a);
    assert_int_equal(plugin_overcommit.job_enqueueable(&r.ssn, rig_self(&r), b), REJECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cluster_is_promised_up_to_the_factor),
        cmocka_unit_test(what_the_session_admits_counts),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
