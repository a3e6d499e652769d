// SPDX-License-Identifier: Apache-2.0
#include "controllers/work_rig_test.h"

static const char nodes[] =
    "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {disk: ssd}}, spec: {}}\n---\n"
    "{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {disk: ssd}}, spec: {}}\n---\n"
    "{apiVersion: v1, kind: Node, metadata: {name: n3, labels: {disk: hdd}}, spec: {}}\n";

static const char logger[] = "apiVersion: apps/v1\n"
                             "kind: DaemonSet\n"
                             "metadata: {name: log, namespace: d, generation: 1}\n"
                             "spec:\n"
                             "  selector: {matchLabels: {app: log}}\n"
                             "  template:\n"
                             "    metadata: {labels: {app: log}}\n"
                             "    spec:\n"
                             "      nodeSelector: {disk: ssd}\n"
                             "      containers: [{name: main, image: 'a:1'}]\n";

/* Binds pods to the node of their affinity and runs them. */
static void bind_all(struct rig *r)
{
    rig_settle(r);
    for (uint32_t i = 0; i < rig_count(r, API_POD); i++) {
        const char *pod = work_nth(r, API_POD, i);
        char yaml[300];

        snprintf(yaml, sizeof(yaml),
                 "spec: {nodeName: %.*s}\n"
                 "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}\n",
                 HK_FMT(work_target(rig_get(r, API_POD, pod))));
        if (!json_at(rig_get(r, API_POD, pod), "metadata.deletionTimestamp")) {
            rig_patch(r, API_POD, pod, yaml);
        }
    }
    rig_settle(r);
}

static void begin(struct rig *r)
{
    work_rig(r);
    rig_put(r, nodes);
    rig_put(r, logger);
    bind_all(r);
}

static void each_node_that_matches_has_one_pod(void **state)
{
    struct rig r;

    begin(&r);
    assert_int_equal(rig_count(&r, API_POD), 2);
    rig_expect(&r, API_DAEMON_SET, "log", "status",
               "{\"observedGeneration\":1,\"currentNumberScheduled\":2,\"numberMisscheduled\":0,"
               "\"desiredNumberScheduled\":2,\"numberReady\":2,\"updatedNumberScheduled\":2,"
               "\"numberAvailable\":2}");
    rig_fini(&r);
}

static void a_node_that_comes_gets_a_pod_and_one_that_changes_loses_it(void **state)
{
    struct rig r;

    begin(&r);
    rig_patch(&r, API_NODE, "n3", "metadata: {labels: {disk: ssd}}");
    bind_all(&r);
    assert_int_equal(rig_count(&r, API_POD), 3);
    rig_patch(&r, API_NODE, "n1", "metadata: {labels: {disk: hdd}}");
    rig_settle(&r);
    rig_reap(&r);
    assert_int_equal(rig_count(&r, API_POD), 2);
    rig_expect(&r, API_DAEMON_SET, "log", "status.desiredNumberScheduled", "2");
    rig_fini(&r);
}

static void taints_keep_new_pods_away_and_drive_out_only_with_no_execute(void **state)
{
    struct rig r;

    begin(&r);
    rig_patch(&r, API_NODE, "n1", "spec: {taints: [{key: a, value: b, effect: NoSchedule}]}");
    rig_settle(&r);
    assert_int_equal(rig_count(&r, API_POD), 2);
    rig_expect(&r, API_DAEMON_SET, "log", "status.numberMisscheduled", "1");
    rig_patch(&r, API_NODE, "n1", "spec: {taints: [{key: a, value: b, effect: NoExecute}]}");
    rig_settle(&r);
    rig_reap(&r);
    assert_int_equal(rig_count(&r, API_POD), 1);
    rig_patch(&r, API_NODE, "n2",
              "spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}]}");
    rig_settle(&r);
    rig_reap(&r);
    assert_int_equal(rig_count(&r, API_POD), 1);
    rig_fini(&r);
}

static void a_new_template_replaces_one_pod_at_a_time(void **state)
{
    struct rig r;

    begin(&r);
    rig_patch(&r, API_DAEMON_SET, "log",
              "spec: {template: {spec: {containers: [{name: main, image: 'a:2'}]}}}");
    rig_settle(&r);
    rig_expect(&r, API_DAEMON_SET, "log", "status.numberUnavailable", "1");
    for (int i = 0; i < 5; i++) {
        rig_reap(&r);
        bind_all(&r);
    }
    assert_int_equal(rig_count(&r, API_POD), 2);
    rig_expect(&r, API_DAEMON_SET, "log", "status.updatedNumberScheduled", "2");
    rig_expect(&r, API_DAEMON_SET, "log", "status.numberAvailable", "2");
    assert_int_equal(rig_count(&r, API_CONTROLLER_REVISION), 2);
    rig_fini(&r);
}

static void a_pod_that_failed_is_replaced_after_a_while(void **state)
{
    struct rig r;

    begin(&r);
    rig_end(&r, work_nth(&r, API_POD, 0), 1);
    rig_expect(&r, API_DAEMON_SET, "log", "status.numberReady", "1");
    rig_pass(&r, 30);
    rig_reap(&r);
    bind_all(&r);
    rig_expect(&r, API_DAEMON_SET, "log", "status.numberReady", "2");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_node_that_matches_has_one_pod),
        cmocka_unit_test(a_node_that_comes_gets_a_pod_and_one_that_changes_loses_it),
        cmocka_unit_test(taints_keep_new_pods_away_and_drive_out_only_with_no_execute),
        cmocka_unit_test(a_new_template_replaces_one_pod_at_a_time),
        cmocka_unit_test(a_pod_that_failed_is_replaced_after_a_while),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/work-daemonset", tests, NULL, NULL);
}
