// SPDX-License-Identifier: Apache-2.0
// Pods on nodes with NoExecute taints: which are evicted, when, and with which condition.
#include "base/log.h"
#include "controllers/node_rig_test.h"

static const struct ctl_type *const types[] = {&ctl_node_eviction};

static int setup(void **state)
{
    return node_rig_setup(types, HK_LEN(types));
}

#define TAINT "{key: node.kubernetes.io/unreachable, effect: NoExecute}"

static void taint(const char *node, const char *taints)
{
    char yaml[300];

    snprintf(yaml, sizeof(yaml), "spec: {taints: [%s]}", taints);
    rig_patch(&rig, API_NODE, node, yaml);
    rig_settle(&rig);
}

static void a_pod_that_tolerates_for_a_time_is_evicted_then(void **state)
{
    node_rig_pod(&rig, "a", "n1", NODE_RIG_TOLERATES("300"));
    node_rig_pod(&rig, "other", "n2", NODE_RIG_TOLERATES("300"));
    rig_manager(&rig);
    taint("n1", TAINT);
    rig_pass(&rig, 299);
    assert_false(node_rig_is_terminating(&rig, "a"));
    rig_pass(&rig, 1);
    assert_true(node_rig_is_terminating(&rig, "a"));
    node_rig_expect_condition(&rig, API_POD, "a", "DisruptionTarget", "True",
                              "DeletionByTaintManager");
    rig_expect_events(&rig, "TaintManagerEviction", "Marking for deletion Pod d/a");
    rig_pass(&rig, 1000);
    assert_true(node_rig_is_terminating(&rig, "a")); /* no node confirms its end */
    assert_false(node_rig_is_terminating(&rig, "other"));
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_DELETE], 1);
}

static void tolerations(void **state)
{
    static const struct {
        const char *pod, *taints;
        int64_t stays_s; /* -1 forever */
    } cases[] = {
        {"", TAINT, 0},
        {NODE_RIG_TOLERATES("0"), TAINT, 0},
        {NODE_RIG_TOLERATES("-5"), TAINT, 0},
        {"tolerations: [{operator: Exists}],", TAINT, -1},
        {"tolerations: [{operator: Exists}, {key: node.kubernetes.io/unreachable, operator: "
         "Exists, effect: NoExecute, tolerationSeconds: 7}],",
         TAINT, 7},
        {NODE_RIG_TOLERATES("9"), TAINT ", {key: other, effect: NoExecute}", 0},
        {NODE_RIG_TOLERATES("9"), TAINT ", {key: other, effect: NoSchedule}", 9},
        {"tolerations: [{key: k, value: v}],", "{key: k, value: v, effect: NoExecute}", -1},
        {"tolerations: [{key: k, value: v}],", "{key: k, value: w, effect: NoExecute}", 0},
        {"tolerations: [{key: k, operator: Exists, effect: NoSchedule}],",
         "{key: k, value: w, effect: NoExecute}", 0},
        {"", "{key: k, effect: NoSchedule}", -1},
        {"tolerations: [{operator: Exists, tolerationSeconds: 9223372036854775807}],", TAINT, -1},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        node_rig_teardown(state);
        setup(state);
        node_rig_pod(&rig, "a", "n1", cases[i].pod);
        rig_manager(&rig);
        taint("n1", cases[i].taints);
        if (cases[i].stays_s != 0) {
            rig_pass(&rig, cases[i].stays_s < 0 ? 100000 : cases[i].stays_s - 1);
            if (node_rig_is_terminating(&rig, "a")) {
                fail_msg("case %zu: gone too early", i);
            }
        }
        rig_pass(&rig, 1);
        if (node_rig_is_terminating(&rig, "a") != (cases[i].stays_s >= 0)) {
            fail_msg("case %zu: expected %s", i, cases[i].stays_s >= 0 ? "to go" : "to stay");
        }
    }
}

static void a_node_that_is_well_again_keeps_its_pods(void **state)
{
    node_rig_pod(&rig, "a", "n1", NODE_RIG_TOLERATES("30"));
    rig_manager(&rig);
    taint("n1", TAINT);
    rig_pass(&rig, 29);
    taint("n1", "");
    rig_pass(&rig, 100);
    taint("n1", TAINT);
    rig_pass(&rig, 29);
    assert_false(node_rig_is_terminating(&rig, "a")); /* the time started from zero */
    rig_pass(&rig, 1);
    assert_true(node_rig_is_terminating(&rig, "a"));
}

static void a_later_pod_has_its_own_toleration_time(void **state)
{
    rig_manager(&rig);
    taint("n1", TAINT);
    rig_pass(&rig, 20);
    node_rig_pod(&rig, "a", "n1", NODE_RIG_TOLERATES("30"));
    rig_pass(&rig, 29);
    assert_false(node_rig_is_terminating(&rig, "a"));
    rig_pass(&rig, 1);
    assert_true(node_rig_is_terminating(&rig, "a"));
}

static void finished_pods_stay(void **state)
{
    node_rig_pod(&rig, "a", "n1", "");
    rig_end_now(&rig, "a", 0);
    rig_manager(&rig);
    taint("n1", TAINT);
    rig_pass(&rig, 100);
    assert_non_null(rig_get(&rig, API_POD, "a"));
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_DELETE], 0);
}

static void there_are_many_of_them(void **state)
{
    for (int i = 0; i < 700; i++) {
        char name[20];

        snprintf(name, sizeof(name), "p%d", i);
        node_rig_pod(&rig, name, "n1", NODE_RIG_TOLERATES("10"));
    }
    rig_manager(&rig);
    taint("n1", TAINT);
    rig_pass(&rig, 10);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_DELETE], 700);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, node_rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_pod_that_tolerates_for_a_time_is_evicted_then),
        TEST(tolerations),
        TEST(a_node_that_is_well_again_keeps_its_pods),
        TEST(a_later_pod_has_its_own_toleration_time),
        TEST(finished_pods_stay),
        TEST(there_are_many_of_them),
    };

    hk_log_set_level(HK_LOG_ERROR);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/node_eviction", tests, NULL, NULL);
}
