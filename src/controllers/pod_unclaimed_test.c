// SPDX-License-Identifier: Apache-2.0
// The Event about pods that no scheduler takes.
#include "controllers/node_rig_test.h"

static const struct ctl_type *const types[] = {&ctl_pod_unclaimed};

static int setup(void **state)
{
    return node_rig_setup(types, HK_LEN(types));
}

static void make_pod(const char *name, const char *scheduler, const char *node)
{
    char yaml[300];

    snprintf(yaml, sizeof(yaml),
             "{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: d}, spec: "
             "{schedulerName: %s, nodeName: '%s'}, status: {phase: Pending}}",
             name, scheduler, node);
    rig_put(&rig, yaml);
}

static void a_pod_of_an_unknown_scheduler_gets_one_event(void **state)
{
    make_pod("p", "nobody", "");
    rig_manager(&rig);
    rig_pass(&rig, 9);
    rig_expect_events(&rig, "FailedScheduling", "");
    rig_pass(&rig, 2);
    rig_expect_events(&rig, "FailedScheduling",
                      "no scheduler has taken this pod: it names the scheduler 'nobody', and "
                      "the one of this server takes pods of 'volcano' (hekla up --scheduler-name)");
    rig_patch(&rig, API_POD, "p", "metadata: {labels: {a: b}}");
    rig_pass(&rig, 100);
    assert_int_equal(manager_metrics(rig.m)->events, 1);
}

static void pods_that_somebody_takes_get_none(void **state)
{
    make_pod("ours", "volcano", "");
    make_pod("bound", "nobody", "n1");
    make_pod("taken", "nobody", "");
    make_pod("gone", "nobody", "");
    rig_manager(&rig);
    rig_pass(&rig, 5);
    rig_patch(&rig, API_POD, "taken", "spec: {nodeName: n1}");
    rig_remove(&rig, API_POD, "gone");
    rig_pass(&rig, 100);
    assert_int_equal(manager_metrics(rig.m)->events, 0);
}

static void pods_that_name_no_scheduler_are_told_whose_they_are(void **state)
{
    static const struct hk_str names[] = {{"one", 3}, {"two", 3}};

    rig.conf.scheduler_names = names;
    rig.conf.nscheduler_name = 2;
    make_pod("p", "default-scheduler", "");
    rig_manager(&rig);
    rig_pass(&rig, 11);
    rig_expect_events(&rig, "FailedScheduling",
                      "no scheduler has taken this pod: it names the scheduler "
                      "'default-scheduler', and the one of this server takes pods of 'one', 'two' "
                      "(hekla up --scheduler-name)");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, node_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pod_of_an_unknown_scheduler_gets_one_event),
        TEST(pods_that_somebody_takes_get_none),
        TEST(pods_that_name_no_scheduler_are_told_whose_they_are),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/pod_unclaimed", tests, NULL, NULL);
}
