// SPDX-License-Identifier: Apache-2.0
// A gang that loses a member with its node. The job creates the member again at once, under the
// same name, so that it keeps its place. If the policy's timeout ends before that pod runs, the
// whole job is requeued.
#include "base/log.h"
#include "controllers/job_rig_test.h"
#include "controllers/node_rig_test.h"

static const struct ctl_type *const types[] = {&ctl_job, &ctl_node_lifecycle, &ctl_node_eviction,
                                               &ctl_node_podgc};

#define GANG(policy) JOB("  minAvailable: 2\n" policy "  tasks:\n" TASK("w", "2", ""))
#define RESTART(event, timeout)                                                                    \
    "  policies: [{event: " event ", action: RestartJob, timeout: " timeout "}]\n"
#define OUT_OF_SERVICE                                                                             \
    "spec: {taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]}"

static void run_pod(const char *pod, const char *node)
{
    char yaml[300];

    snprintf(yaml, sizeof(yaml),
             "spec: {nodeName: %s}\nstatus: {phase: Running, containerStatuses: [{name: main, "
             "ready: true, restartCount: 0}]}\n",
             node);
    rig_patch(&rig, API_POD, pod, yaml);
    rig_settle(&rig);
}

/* A gang of two, one member on each node. */
static void gang_start(const char *job)
{
    node_rig_setup(types, HK_LEN(types));
    rig_put(&rig, QUEUE);
    rig_manager(&rig);
    node_rig_renew(&rig, "n1");
    node_rig_renew(&rig, "n2");
    rig_put(&rig, job);
    rig_enqueue(&rig);
    run_pod("j-w-0", "n1");
    run_pod("j-w-1", "n2");
    phases("Pending Running");
}

/* n1 falls silent; after the grace period its pod is Terminating. */
static void n1_dies(void)
{
    node_rig_pass_with_n2(45);
    assert_true(node_rig_is_terminating(&rig, "j-w-0"));
    assert_false(node_rig_is_terminating(&rig, "j-w-1"));
}

static bool is_waiting(const char *pod)
{
    const struct json *root = rig_get(&rig, API_POD, pod);

    return root && !json_at(root, "spec.nodeName") && !json_at(root, "metadata.deletionTimestamp");
}

/* n1 dies, and an administrator confirms it: deletes the node, or sets a taint. The lost member
 * waits for a node again. */
static void n1_is_given_up(bool deleted)
{
    n1_dies();
    if (deleted) {
        rig_remove(&rig, API_NODE, "n1");
    } else {
        rig_patch(&rig, API_NODE, "n1", OUT_OF_SERVICE);
    }
    for (int s = 0; !is_waiting("j-w-0"); s++) {
        assert_in_range(s, 0, 60);
        node_rig_pass_with_n2(1);
    }
}

static uint64_t deletions(void)
{
    return manager_metrics(rig.m)->writes[PORT_DELETE];
}

/* It is unknown whether the processes on a silent node have ended: the member keeps its name, and
 * no second one runs. */
static void a_silent_node_starts_no_second_member(void **state)
{
    gang_start(GANG(RESTART("PodEvicted", "60s")));
    n1_dies();
    node_rig_pass_with_n2(600);
    assert_true(node_rig_is_terminating(&rig, "j-w-0"));
    pods("j-w-0 j-w-1");
    phases("Pending Running");
}

static void a_member_that_runs_again_in_time_ends_the_wait(void **state)
{
    for (int deleted = 0; deleted < 2; deleted++) {
        gang_start(GANG(RESTART("PodEvicted", "60s")));
        n1_is_given_up(deleted);
        node_rig_pass_with_n2(50);
        run_pod("j-w-0", "n2");
        node_rig_pass_with_n2(120);
        phases("Pending Running Pending Running");
        expect("status.running", "2");
        expect("status.retryCount", "");
        assert_false(node_rig_is_terminating(&rig, "j-w-1"));
        node_rig_teardown(state);
    }
}

/* The other member is deleted too, and both come back. A deleted member does not use up
 * maxRetry. */
static void expect_requeued(const char *want_phases, const char *retries)
{
    uint64_t before;

    assert_true(node_rig_is_terminating(&rig, "j-w-1"));
    for (int i = 0; i < 4; i++) {
        rig_reap(&rig);
        rig_enqueue(&rig);
    }
    run_pod("j-w-0", "n2");
    run_pod("j-w-1", "n2");
    phases(want_phases);
    expect("status.version", "1");
    expect("status.retryCount", retries);
    expect("status.running", "2");
    before = deletions();
    node_rig_pass_with_n2(600);
    assert_int_equal(deletions(), before);
    expect("status.retryCount", retries);
}

#define AFTER_A_WAIT "Pending Running Pending Restarting Pending Running"
#define AT_ONCE "Pending Running Restarting Pending Running"

static void when_the_policy_s_time_is_over_the_gang_is_requeued_whole(void **state)
{
    for (int deleted = 0; deleted < 2; deleted++) {
        gang_start(GANG(RESTART("PodEvicted", "60s")));
        n1_is_given_up(deleted);
        node_rig_pass_with_n2(55);
        phases("Pending Running Pending");
        assert_false(node_rig_is_terminating(&rig, "j-w-1"));
        node_rig_pass_with_n2(10);
        expect_requeued(AFTER_A_WAIT, "");
        node_rig_teardown(state);
    }
}

/* The same through PodPending, which counts from the creation of the new member. */
static void a_member_that_waits_too_long_requeues_the_gang(void **state)
{
    gang_start(GANG(RESTART("PodPending", "60s")));
    n1_is_given_up(true);
    node_rig_pass_with_n2(55);
    phases("Pending Running Pending");
    node_rig_pass_with_n2(10);
    expect_requeued(AFTER_A_WAIT, "1");
}

static void without_a_timeout_the_gang_is_requeued_at_once(void **state)
{
    gang_start(GANG("  policies: [{event: PodEvicted, action: RestartJob}]\n"));
    n1_dies();
    rig_remove(&rig, API_NODE, "n1");
    node_rig_pass_with_n2(45);
    expect_requeued(AT_ONCE, "");
}

/* A controller that restarts during the delay still requeues the gang; it may count the time from
 * its own start. */
static void the_wait_survives_a_restart_of_the_controllers(void **state)
{
    static const char *const events[] = {"PodEvicted", "PodPending"};

    for (size_t i = 0; i < HK_LEN(events); i++) {
        gang_start(i == 0 ? GANG(RESTART("PodEvicted", "60s"))
                          : GANG(RESTART("PodPending", "60s")));
        n1_is_given_up(true);
        node_rig_pass_with_n2(30);
        rig_restart(&rig);
        node_rig_pass_with_n2(65);
        expect_requeued(AFTER_A_WAIT, i == 0 ? "" : "1");
        node_rig_teardown(state);
    }
}

#define test(name) cmocka_unit_test_teardown(name, node_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_silent_node_starts_no_second_member),
        cmocka_unit_test(a_member_that_runs_again_in_time_ends_the_wait),
        cmocka_unit_test(when_the_policy_s_time_is_over_the_gang_is_requeued_whole),
        test(a_member_that_waits_too_long_requeues_the_gang),
        test(without_a_timeout_the_gang_is_requeued_at_once),
        cmocka_unit_test(the_wait_survives_a_restart_of_the_controllers),
    };

    hk_log_set_level(HK_LOG_ERROR);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/node-gang", tests, NULL, NULL);
}
