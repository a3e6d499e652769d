// SPDX-License-Identifier: Apache-2.0
// Pods that no other controller removes: without a node, on a node that is off, never bound, and
// surplus finished ones.
#include "base/log.h"
#include "controllers/node_rig_test.h"

static const struct ctl_type *const types[] = {&ctl_node_podgc};

static int setup(void **state)
{
    return node_rig_setup(types, HK_LEN(types));
}

#define TERMINATING "metadata: {deletionTimestamp: '2026-01-02T10:00:00Z'}"

static bool is_there(const char *pod)
{
    return rig_get(&rig, API_POD, pod) != NULL;
}

static void pods_of_a_missing_node_are_deleted_after_a_while(void **state)
{
    node_rig_pod(&rig, "a", "nowhere", "");
    node_rig_pod(&rig, "b", "n1", "");
    node_rig_pod(&rig, "c", "nowhere", "");
    rig_patch(&rig, API_POD, "c", TERMINATING);
    rig_manager(&rig);
    rig_pass(&rig, 39);
    assert_string_equal(rig_names(&rig, API_POD), "a b c");
    rig_pass(&rig, 2);
    assert_string_equal(rig_names(&rig, API_POD), "b");
    rig_remove(&rig, API_NODE, "n1");
    rig_pass(&rig, 39);
    assert_true(is_there("b"));
    rig_pass(&rig, 2);
    assert_false(is_there("b"));
}

static void a_node_that_comes_back_in_time_keeps_them(void **state)
{
    node_rig_pod(&rig, "a", "n1", "");
    rig_manager(&rig);
    rig_pass(&rig, 10);
    rig_remove(&rig, API_NODE, "n1");
    rig_pass(&rig, 30);
    node_rig_node(&rig, "n1");
    rig_pass(&rig, 100);
    assert_true(is_there("a"));
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_PATCH], 0);
}

static void a_machine_that_is_said_to_be_off_confirms_nothing(void **state)
{
    static const struct {
        const char *ready, *taints, *pod;
        bool goes;
    } cases[] = {
        {"Unknown", "{key: node.kubernetes.io/out-of-service, effect: NoExecute}", TERMINATING,
         true},
        {"False", "{key: node.kubernetes.io/out-of-service, effect: NoExecute}", TERMINATING, true},
        {"True", "{key: node.kubernetes.io/out-of-service, effect: NoExecute}", TERMINATING, false},
        {"Unknown", "{key: node.kubernetes.io/unreachable, effect: NoExecute}", TERMINATING, false},
        {"Unknown", "{key: node.kubernetes.io/out-of-service, effect: NoExecute}", "{}", false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        char yaml[300];

        node_rig_teardown(state);
        setup(state);
        node_rig_pod(&rig, "a", "n1", "");
        rig_manager(&rig);
        rig_patch(&rig, API_POD, "a", cases[i].pod);
        node_rig_condition(&rig, "n1", "Ready", cases[i].ready);
        snprintf(yaml, sizeof(yaml), "spec: {taints: [%s]}", cases[i].taints);
        rig_patch(&rig, API_NODE, "n1", yaml);
        rig_pass(&rig, 100);
        if (is_there("a") == cases[i].goes) {
            fail_msg("case %zu: expected the pod to %s", i, cases[i].goes ? "go" : "stay");
        }
    }
}

static void a_deleted_pod_without_a_node_is_removed(void **state)
{
    node_rig_pod(&rig, "a", "", "");
    node_rig_pod(&rig, "b", "", "");
    rig_patch(&rig, API_POD, "a", TERMINATING);
    rig_manager(&rig);
    rig_settle(&rig);
    assert_string_equal(rig_names(&rig, API_POD), "b");
}

static void finished(const char *name, int age_s, const char *job)
{
    char yaml[900];

    snprintf(
        yaml, sizeof(yaml),
        "{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: d, uid: u-%s, "
        "creationTimestamp: '2026-01-02T09:00:%02dZ', annotations: {volcano.sh/job-name: '%s', "
        "volcano.sh/task-spec: w, volcano.sh/job-version: '0'}, ownerReferences: [{apiVersion: "
        "batch.volcano.sh/v1alpha1, kind: Job, name: '%s', uid: u-j, controller: true}]}, "
        "spec: {nodeName: n1}, status: {phase: Succeeded}}",
        name, name, 59 - age_s, job, job);
    rig_put(&rig, yaml);
}

static void the_oldest_finished_pods_are_deleted_first(void **state)
{
    rig.conf.finished_pods_max = 2;
    rig_put(&rig, "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: going, "
                  "namespace: d}, status: {state: {phase: Running}}}");
    rig_put(&rig, "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: over, "
                  "namespace: d}, status: {state: {phase: Completed}}}");
    finished("young", 1, "over");
    finished("needed", 50, "going");
    finished("old", 40, "over");
    finished("middle", 20, "gone");
    node_rig_pod(&rig, "runs", "n1", "");
    rig_manager(&rig);
    rig_pass(&rig, 1);
    assert_string_equal(rig_names(&rig, API_POD), "young needed runs");
    finished("more", 10, "over");
    rig_pass(&rig, 25);
    assert_string_equal(rig_names(&rig, API_POD), "young needed runs");
}

static void all_the_finished_stay_where_that_is_wanted(void **state)
{
    rig.conf.finished_pods_max = -1;
    finished("a", 1, "over");
    rig_manager(&rig);
    rig_pass(&rig, 100);
    assert_true(is_there("a"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, node_rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(pods_of_a_missing_node_are_deleted_after_a_while),
        TEST(a_node_that_comes_back_in_time_keeps_them),
        TEST(a_machine_that_is_said_to_be_off_confirms_nothing),
        TEST(a_deleted_pod_without_a_node_is_removed),
        TEST(the_oldest_finished_pods_are_deleted_first),
        TEST(all_the_finished_stay_where_that_is_wanted),
    };

    hk_log_set_level(HK_LOG_ERROR);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/node_podgc", tests, NULL, NULL);
}
