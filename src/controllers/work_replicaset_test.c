// SPDX-License-Identifier: Apache-2.0
#include "controllers/work_rig_test.h"

static const char web[] = "apiVersion: apps/v1\n"
                          "kind: ReplicaSet\n"
                          "metadata: {name: web, namespace: d, generation: 1}\n"
                          "spec:\n"
                          "  replicas: 3\n"
                          "  selector: {matchLabels: {app: web}}\n"
                          "  template:\n"
                          "    metadata: {labels: {app: web}}\n"
                          "    spec: {schedulerName: volcano, containers: [{name: main}]}\n";

static void replicas_are_made_once_and_counted(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, web);
    rig_settle(&r);
    assert_int_equal(rig_count(&r, API_POD), 3);
    rig_expect(&r, API_REPLICA_SET, "web", "status",
               "{\"replicas\":3,\"fullyLabeledReplicas\":3,\"observedGeneration\":1}");
    rig_run(&r);
    rig_expect(&r, API_REPLICA_SET, "web", "status.readyReplicas", "3");
    rig_expect(&r, API_REPLICA_SET, "web", "status.availableReplicas", "3");
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 3);
    rig_restart(&r);
    rig_settle(&r);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 0);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_UPDATE], 0);
    rig_fini(&r);
}

static void pods_have_the_template_and_their_controller(void **state)
{
    struct rig r;
    const char *pod;

    work_rig(&r);
    rig_put(&r, web);
    rig_settle(&r);
    pod = work_nth(&r, API_POD, 0);
    rig_expect(&r, API_POD, pod, "metadata.labels.app", "\"web\"");
    rig_expect(&r, API_POD, pod, "spec.schedulerName", "\"volcano\"");
    rig_expect(&r, API_POD, pod, "metadata.ownerReferences",
               "[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"web\",\"uid\":"
               "\"u-web\",\"controller\":true,\"blockOwnerDeletion\":true}]");
    rig_fini(&r);
}

static void scaling_down_deletes_waiting_pods_first(void **state)
{
    struct rig r;
    char running[300];

    work_rig(&r);
    rig_put(&r, web);
    rig_settle(&r);
    snprintf(running, sizeof(running), "%s", work_nth(&r, API_POD, 1));
    rig_patch(&r, API_POD, running,
              "spec: {nodeName: n1}\nstatus: {phase: Running, conditions: [{type: Ready, status: "
              "'True'}]}");
    rig_patch(&r, API_REPLICA_SET, "web", "spec: {replicas: 1}");
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_POD), running);
    rig_expect(&r, API_REPLICA_SET, "web", "status.replicas", "1");
    rig_fini(&r);
}

static void failed_and_deleted_pods_are_replaced(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, web);
    rig_run(&r);
    rig_end(&r, work_nth(&r, API_POD, 0), 1);
    assert_int_equal(rig_count(&r, API_POD), 4); /* the failed pod is left for inspection */
    rig_expect(&r, API_REPLICA_SET, "web", "status.replicas", "3");
    rig_remove(&r, API_POD, work_nth(&r, API_POD, 1));
    rig_settle(&r);
    assert_int_equal(rig_count(&r, API_POD), 4);
    rig_fini(&r);
}

static void a_ready_pod_is_available_after_min_ready_seconds(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, web);
    rig_patch(&r, API_REPLICA_SET, "web", "spec: {replicas: 1, minReadySeconds: 30}");
    rig_settle(&r);
    rig_patch(&r, API_POD, work_nth(&r, API_POD, 0),
              "status: {phase: Running, conditions: [{type: Ready, status: 'True', "
              "lastTransitionTime: '2026-01-02T10:00:00Z'}]}");
    rig_settle(&r);
    rig_expect(&r, API_REPLICA_SET, "web", "status.readyReplicas", "1");
    rig_expect(&r, API_REPLICA_SET, "web", "status.availableReplicas", "");
    rig_pass(&r, 31);
    rig_expect(&r, API_REPLICA_SET, "web", "status.availableReplicas", "1");
    rig_fini(&r);
}

static void a_pod_that_cannot_be_made_shows_as_a_condition(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, web);
    rig_patch(&r, API_REPLICA_SET, "web", "spec: {replicas: 1}");
    for (uint32_t i = 1; i <= 12; i++) { /* Events included */
        port_mem_fail(r.mem, PORT_CREATE, i, HK_EDENIED);
    }
    rig_settle(&r);
    rig_set_now(&r, r.clock.now_ns + 20000000);
    rig_settle(&r);
    work_expect_condition(&r, API_REPLICA_SET, "web", "ReplicaFailure", "True FailedCreate");
    assert_int_equal(rig_count(&r, API_POD), 0);
    rig_pass(&r, 600);
    assert_int_equal(rig_count(&r, API_POD), 1);
    work_expect_condition(&r, API_REPLICA_SET, "web", "ReplicaFailure", "");
    rig_fini(&r);
}

static void a_replication_controller_does_the_same(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, "apiVersion: v1\n"
                "kind: ReplicationController\n"
                "metadata: {name: old, namespace: d, generation: 1}\n"
                "spec:\n"
                "  replicas: 2\n"
                "  selector: {app: old}\n"
                "  template:\n"
                "    metadata: {labels: {app: old}}\n"
                "    spec: {schedulerName: volcano, containers: [{name: main}]}\n");
    rig_settle(&r);
    rig_run(&r);
    rig_expect(&r, API_REPLICATION_CONTROLLER, "old", "status.readyReplicas", "2");
    rig_expect(&r, API_POD, work_nth(&r, API_POD, 0), "metadata.ownerReferences",
               "[{\"apiVersion\":\"v1\",\"kind\":\"ReplicationController\",\"name\":\"old\","
               "\"uid\":\"u-old\",\"controller\":true,\"blockOwnerDeletion\":true}]");
    rig_patch(&r, API_REPLICATION_CONTROLLER, "old", "spec: {replicas: 0}");
    work_go_on(&r);
    assert_int_equal(rig_count(&r, API_POD), 0);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_are_made_once_and_counted),
        cmocka_unit_test(pods_have_the_template_and_their_controller),
        cmocka_unit_test(scaling_down_deletes_waiting_pods_first),
        cmocka_unit_test(failed_and_deleted_pods_are_replaced),
        cmocka_unit_test(a_ready_pod_is_available_after_min_ready_seconds),
        cmocka_unit_test(a_pod_that_cannot_be_made_shows_as_a_condition),
        cmocka_unit_test(a_replication_controller_does_the_same),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/work-replicaset", tests, NULL, NULL);
}
