// SPDX-License-Identifier: Apache-2.0
// Large jobs: pods are created as they can be placed, the other replicas are only counted, and
// other jobs make progress.
#include "controllers/job_priv.h"
#include "controllers/job_rig_test.h"
#include "controllers/pod_window.h"

#define SMALL_JOB                                                                                  \
    "apiVersion: batch.volcano.sh/v1alpha1\n"                                                      \
    "kind: Job\n"                                                                                  \
    "metadata: {name: small, namespace: d}\n"                                                      \
    "spec:\n"                                                                                      \
    "  queue: q\n"                                                                                 \
    "  schedulerName: volcano\n"                                                                   \
    "  maxRetry: 3\n"                                                                              \
    "  minAvailable: 2\n"                                                                          \
    "  tasks:\n" TASK("w", "2", "")

/* Counts the pods whose name begins with the prefix. */
struct counting {
    const char *prefix;
    uint32_t n;
};

static void count_pod(void *ctx, const struct api_object *o)
{
    struct counting *c = ctx;

    c->n += hk_str_starts(o->name, c->prefix);
}

static uint32_t pods_of(const char *prefix)
{
    struct counting c = {.prefix = prefix};

    port_mem_each(rig.mem, api_kind(API_POD), count_pod, &c);
    return c.n;
}

/* Places and starts n waiting pods. */
static void run_some(const char *prefix, int from, int n)
{
    for (int i = from; i < from + n; i++) {
        char name[64];

        snprintf(name, sizeof(name), "%s%d", prefix, i);
        rig_patch(&rig, API_POD, name, "spec: {nodeName: n1}\nstatus: {phase: Running}\n");
    }
    rig_settle(&rig);
}

static void a_large_job_gets_its_gang_and_a_window(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 3\n  tasks:\n" TASK("w", "100000", "")));
    rig_settle(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 0); /* not admitted to the queue yet */
    expect("status.pending", "");
    rig_enqueue(&rig);
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW);
    expect("status.pending", "100000");
    expect("status.state.phase", "\"Pending\"");
}

static void the_window_moves_on_with_placed_pods(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 3\n  tasks:\n" TASK("w", "100000", "")));
    rig_enqueue(&rig);
    run_some("j-w-", 0, 10); /* too few for a pass */
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW);
    expect("status.running", "10");
    expect("status.pending", "99990");
    expect("status.state.phase", "\"Running\"");
    run_some("j-w-", 10, 390);
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW + 400);
    expect("status.running", "400");
    expect("status.pending", "99600");
    assert_non_null(rig_get(&rig, API_POD, "j-w-1399")); /* the lowest free indices */
}

static void a_restarted_controller_misses_no_pod(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 3\n  policies: [{event: PodEvicted, action: RestartJob}]\n"
                      "  tasks:\n" TASK("w", "50000", "")));
    rig_enqueue(&rig);
    run_some("j-w-", 0, 400);
    rig_restart(&rig);
    rig_settle(&rig);
    expect("status.state.phase", "\"Running\"");
    expect("status.retryCount", "");
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_CREATE], 0);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_DELETE], 0);
}

static void jobs_up_to_the_window_get_all_pods(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 5\n  tasks:\n" TASK("w", "1005", "")));
    rig_enqueue(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 1005);
    expect("status.taskStatusCount", "{\"w\":{\"phase\":{\"Pending\":1005}}}");
}

static void a_large_gang_is_made_whole(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 4000\n  tasks:\n" TASK("w", "20000", "")));
    rig_enqueue(&rig);
    assert_int_equal(rig_count(&rig, API_POD), 4000);
}

static void every_task_gets_what_the_gang_asks_of_it(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 1502\n  tasks:\n" TASK_MIN("a", "50000", "2", "")
                          TASK_MIN("b", "1500", "1500", "")));
    rig_enqueue(&rig);
    assert_int_equal(pods_of("j-a-"), POD_WINDOW / 2);
    assert_int_equal(pods_of("j-b-"), 1500);
}

static void no_task_takes_the_window_of_another(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 1\n  tasks:\n" TASK("a", "50000", "") TASK("b", "5", "")));
    rig_enqueue(&rig);
    assert_int_equal(pods_of("j-a-"), POD_WINDOW / 2);
    assert_int_equal(pods_of("j-b-"), 5);
}

static void a_lost_member_of_the_gang_comes_back_while_the_window_is_full(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 12\n  tasks:\n" TASK_MIN("a", "50000", "2", "")
                          TASK_MIN("b", "10", "10", "")));
    rig_enqueue(&rig);
    rig_remove(&rig, API_POD, "j-b-3");
    rig_settle(&rig);
    assert_int_equal(pods_of("j-b-"), 10);
}

static void an_ended_job_counts_no_waiting_replicas(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 3\n  tasks:\n" TASK("w", "50000", "")));
    rig_enqueue(&rig);
    run_some("j-w-", 0, 10);
    rig_put(&rig, COMMAND("AbortJob"));
    rig_settle(&rig);
    for (int i = 0; i < 4; i++) {
        rig_reap(&rig);
    }
    expect("status.state.phase", "\"Aborted\"");
    expect("status.pending", "");
}

/* A pass creates at most 512 pods; then the job waits behind the others. */
static void other_jobs_get_their_turn(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 20000\n  tasks:\n" TASK("w", "20000", "")));
    rig_put(&rig, SMALL_JOB);
    rig_settle(&rig);
    port_mem_each(rig.mem, api_kind(API_PODGROUP), rig_enqueue_one, &rig);
    for (int i = 0; pods_of("small-") < 2; i++) {
        assert_in_range(i, 0, 8);
        (void)manager_run(rig.m);
    }
    assert_in_range(pods_of("j-w-"), 0, 4 * TURN_CALLS_MAX);
    rig_settle(&rig);
    assert_int_equal(pods_of("j-w-"), 20000);
}

/* Two billion replicas without admission cost no more than a small job. */
static void the_size_of_a_job_costs_nothing(void **state)
{
    rig_put(&rig, JOB("  minAvailable: 1\n  tasks:\n" TASK_MIN("w", "2000000000", "1", "")));
    rig_enqueue(&rig);
    assert_int_equal(rig_count(&rig, API_POD), POD_WINDOW);
}

#define test(name) cmocka_unit_test_setup_teardown(name, job_rig_setup, job_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_large_job_gets_its_gang_and_a_window),
        test(the_window_moves_on_with_placed_pods),
        test(a_restarted_controller_misses_no_pod),
        test(jobs_up_to_the_window_get_all_pods),
        test(a_large_gang_is_made_whole),
        test(every_task_gets_what_the_gang_asks_of_it),
        test(no_task_takes_the_window_of_another),
        test(a_lost_member_of_the_gang_comes_back_while_the_window_is_full),
        test(an_ended_job_counts_no_waiting_replicas),
        test(other_jobs_get_their_turn),
        test(the_size_of_a_job_costs_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/job-window", tests, NULL, NULL);
}
