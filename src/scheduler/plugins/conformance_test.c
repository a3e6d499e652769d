// SPDX-License-Identifier: Apache-2.0
// conformance: no kind of eviction chooses critical pods.
#include "scheduler/plugins/rig_test.h"

extern const struct plugin plugin_conformance;

static void critical_pods_are_spared(void **state)
{
    RIG(r);

    rig_node(&r, "n", "cpu=10 pods=20");
    rig_queue(&r, "q");
    rig_job(&r, "j", "q");
    const task_id critical =
        rig_task(&r, "j", "critical", .status = TASK_RUNNING, .node = "n", .flags = TASK_CRITICAL);
    const task_id plain = rig_task(&r, "j", "plain", .status = TASK_RUNNING, .node = "n");
    rig_open(&r, "conformance", "");

    RIG_VICTIMS(v, critical, plain);
    assert_int_equal(plugin_conformance.preemptable(&r.ssn, NULL, plain, &v), PERMIT);
    assert_string_equal(rig_names(&r, &v), "plain");
    v.nout = 0;
    assert_int_equal(plugin_conformance.reclaimable(&r.ssn, NULL, plain, &v), PERMIT);
    assert_string_equal(rig_names(&r, &v), "plain");
    v.nout = 0;
    assert_int_equal(
        plugin_conformance.evictable(&r.ssn, NULL, EVICT_GANG_RECLAIM, NO_JOB, NO_HYPER, &v),
        PERMIT);
    assert_string_equal(rig_names(&r, &v), "plain");
}

static void nothing_but_critical_pods_is_a_veto(void **state)
{
    RIG(r);

    rig_node(&r, "n", "cpu=10 pods=20");
    const task_id t =
        rig_task(&r, NULL, "t", .status = TASK_RUNNING, .node = "n", .flags = TASK_CRITICAL);
    rig_open(&r, "conformance", "");
    RIG_VICTIMS(v, t);
    assert_int_equal(plugin_conformance.preemptable(&r.ssn, NULL, t, &v), PERMIT);
    assert_int_equal(v.nout, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(critical_pods_are_spared),
        cmocka_unit_test(nothing_but_critical_pods_is_a_veto),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
