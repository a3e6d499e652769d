// SPDX-License-Identifier: Apache-2.0
// Nodes that stop reporting: when they count as lost, what is written about them and their pods,
// and what does not count as silence.
#include "base/log.h"
#include "controllers/node_rig_test.h"

static const struct ctl_type *const types[] = {&ctl_node_lifecycle};

static int setup(void **state)
{
    return node_rig_setup(types, HK_LEN(types));
}

#define UNREACHABLE "unreachable:NoSchedule unreachable:NoExecute"

static void a_node_silent_for_the_grace_period_is_unreachable(void **state)
{
    rig_manager(&rig);
    rig_settle(&rig);
    node_rig_renew(&rig, "n1");
    node_rig_pass_with_n2(39);
    node_rig_expect_condition(&rig, API_NODE, "n1", "Ready", "True", "");
    node_rig_expect_taints(&rig, "n1", "");
    node_rig_pass_with_n2(2);
    node_rig_expect_condition(&rig, API_NODE, "n1", "Ready", "Unknown", "NodeStatusUnknown");
    node_rig_expect_condition(&rig, API_NODE, "n1", "DiskPressure", "Unknown",
                              "NodeStatusNeverUpdated");
    node_rig_expect_taints(&rig, "n1", UNREACHABLE);
    node_rig_expect_condition(&rig, API_NODE, "n2", "Ready", "True", "");
    node_rig_expect_taints(&rig, "n2", "");
    rig_expect_events(&rig, "NodeNotReady", "Node n1 status is now: NodeNotReady");
}

static void renewals_and_heartbeats_keep_it_alive(void **state)
{
    rig_manager(&rig);
    rig_settle(&rig);
    for (int i = 0; i < 20; i++) {
        node_rig_renew(&rig, "n1");
        /* The other node has no Lease and posts its status. */
        rig_patch(&rig, API_NODE, "n2",
                  i % 2 ? "status: {conditions: [{type: Ready, status: "
                          "'True', lastHeartbeatTime: '2026-01-02T11:00:00Z'}]}"
                        : "status: {conditions: [{type: Ready, status: "
                          "'True', lastHeartbeatTime: '2026-01-02T12:00:00Z'}]}");
        rig_pass(&rig, 35);
    }
    node_rig_expect_condition(&rig, API_NODE, "n1", "Ready", "True", "");
    node_rig_expect_condition(&rig, API_NODE, "n2", "Ready", "True", "");
}

static void labels_and_other_leases_are_no_sign_of_life(void **state)
{
    rig_manager(&rig);
    rig_settle(&rig);
    for (int i = 0; i < 50; i++) {
        char yaml[200];

        snprintf(yaml, sizeof(yaml), "metadata: {labels: {x: 'v%d'}}", i);
        rig_patch(&rig, API_NODE, "n1", yaml);
        snprintf(
            yaml, sizeof(yaml),
            "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: n1, namespace: "
            "d}, spec: {renewTime: '2026-01-02T10:00:%02d.000000Z'}}",
            i);
        rig_put(&rig, yaml);
        node_rig_pass_with_n2(1);
    }
    node_rig_expect_condition(&rig, API_NODE, "n1", "Ready", "Unknown", "NodeStatusUnknown");
}

static void its_pods_are_not_ready(void **state)
{
    node_rig_pod(&rig, "a", "n1", "");
    node_rig_pod(&rig, "b", "n2", "");
    rig_manager(&rig);
    node_rig_pass_with_n2(45);
    node_rig_expect_condition(&rig, API_POD, "a", "Ready", "False", "");
    node_rig_expect_condition(&rig, API_POD, "b", "Ready", "True", "");
}

static void taints_are_removed_when_the_node_is_back(void **state)
{
    rig_patch(&rig, API_NODE, "n1", "spec: {taints: [{key: mine, effect: NoSchedule}]}");
    rig_manager(&rig);
    node_rig_pass_with_n2(45);
    node_rig_expect_taints(&rig, "n1", "mine:NoSchedule " UNREACHABLE);
    node_rig_renew(&rig, "n1");
    node_rig_pass_with_n2(1);
    node_rig_expect_taints(&rig, "n1", "mine:NoSchedule " UNREACHABLE); /* not yet Ready */
    node_rig_condition(&rig, "n1", "Ready", "True");
    node_rig_renew(&rig, "n1");
    node_rig_pass_with_n2(1);
    node_rig_expect_taints(&rig, "n1", "mine:NoSchedule");
}

static void while_all_nodes_are_silent_nothing_is_evicted(void **state)
{
    rig_manager(&rig);
    rig_pass(&rig, 60);
    node_rig_expect_taints(&rig, "n1", "unreachable:NoSchedule");
    node_rig_expect_taints(&rig, "n2", "unreachable:NoSchedule");
    node_rig_condition(&rig, "n2", "Ready", "True");
    node_rig_pass_with_n2(10);
    node_rig_expect_taints(&rig, "n1", UNREACHABLE);
    node_rig_expect_taints(&rig, "n2", "");
}

static bool is_n1(void *ctx, struct hk_str name)
{
    return hk_str_is(name, "n1");
}

static void nodes_of_this_process_need_not_say_anything(void **state)
{
    rig.conf.is_own_node = is_n1;
    rig_manager(&rig);
    rig_pass(&rig, 300);
    node_rig_expect_condition(&rig, API_NODE, "n1", "Ready", "True", "");
    node_rig_expect_taints(&rig, "n2", UNREACHABLE);
}

/* SIGSTOP of this process, or a suspended machine: no timer ran during the pause. */
static void a_pause_of_the_controller_is_not_the_silence_of_nodes(void **state)
{
    for (int64_t pause_s = 15; pause_s < 1000; pause_s *= 3) {
        node_rig_teardown(state);
        setup(state);
        rig_manager(&rig);
        node_rig_renew(&rig, "n1");
        rig_pass(&rig, 35);
        rig_set_now(&rig, rig.clock.now_ns + pause_s * 1000000000);
        rig_pass(&rig, 38);
        node_rig_expect_condition(&rig, API_NODE, "n1", "Ready", "True", "");
        node_rig_renew(&rig, "n2");
        rig_pass(&rig, 10);
        node_rig_expect_condition(&rig, API_NODE, "n1", "Ready", "Unknown", "NodeStatusUnknown");
    }
}

static void conditions_become_taints_and_go_again(void **state)
{
    static const struct {
        const char *type, *status, *taints;
    } cases[] = {
        {"Ready", "False", "not-ready:NoSchedule not-ready:NoExecute"},
        {"Ready", "Unknown", UNREACHABLE},
        {"Ready", "True", ""},
        {"MemoryPressure", "True", "memory-pressure:NoSchedule"},
        {"DiskPressure", "True", "disk-pressure:NoSchedule"},
        {"PIDPressure", "True", "pid-pressure:NoSchedule"},
        {"NetworkUnavailable", "True", "network-unavailable:NoSchedule"},
        {"DiskPressure", "False", ""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        node_rig_teardown(state);
        setup(state);
        rig_manager(&rig);
        node_rig_condition(&rig, "n1", cases[i].type, cases[i].status);
        rig_settle(&rig);
        node_rig_expect_taints(&rig, "n1", cases[i].taints);
        node_rig_condition(&rig, "n1", cases[i].type,
                           strcmp(cases[i].type, "Ready") == 0 ? "True" : "False");
        rig_settle(&rig);
        node_rig_expect_taints(&rig, "n1", "");
    }
    rig_patch(&rig, API_NODE, "n1", "spec: {unschedulable: true}");
    rig_settle(&rig);
    node_rig_expect_taints(&rig, "n1", "unschedulable:NoSchedule");
    rig_patch(&rig, API_NODE, "n1", "spec: {unschedulable: null}");
    rig_settle(&rig);
    node_rig_expect_taints(&rig, "n1", "");
}

static void a_node_that_never_reported_keeps_the_taint_of_new_nodes(void **state)
{
    rig_put(&rig, "{apiVersion: v1, kind: Node, metadata: {name: n3}, spec: {taints: [{key: "
                  "node.kubernetes.io/not-ready, effect: NoSchedule}]}}");
    rig_manager(&rig);
    rig_pass(&rig, 5);
    node_rig_expect_taints(&rig, "n3", "not-ready:NoSchedule");
    node_rig_pass_with_n2(50);
    node_rig_expect_condition(&rig, API_NODE, "n3", "Ready", "Unknown", "NodeStatusNeverUpdated");
    node_rig_expect_taints(&rig, "n3", UNREACHABLE);
}

static void nothing_is_written_while_all_is_well(void **state)
{
    rig_manager(&rig);
    for (int i = 0; i < 30; i++) {
        node_rig_renew(&rig, "n1");
        node_rig_renew(&rig, "n2");
        rig_pass(&rig, 10);
    }
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_PATCH], 0);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_UPDATE], 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, node_rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_node_silent_for_the_grace_period_is_unreachable),
        TEST(renewals_and_heartbeats_keep_it_alive),
        TEST(labels_and_other_leases_are_no_sign_of_life),
        TEST(its_pods_are_not_ready),
        TEST(taints_are_removed_when_the_node_is_back),
        TEST(while_all_nodes_are_silent_nothing_is_evicted),
        TEST(nodes_of_this_process_need_not_say_anything),
        TEST(a_pause_of_the_controller_is_not_the_silence_of_nodes),
        TEST(conditions_become_taints_and_go_again),
        TEST(a_node_that_never_reported_keeps_the_taint_of_new_nodes),
        TEST(nothing_is_written_while_all_is_well),
    };

    hk_log_set_level(HK_LOG_ERROR);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/node_lifecycle", tests, NULL, NULL);
}
