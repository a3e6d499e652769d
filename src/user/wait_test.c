// SPDX-License-Identifier: Apache-2.0
// Waiting for jobs: which goal is reached in which phase, what can no longer be reached, and how
// the wait ends.
#include "user/wait.h"

#include "user/rig_test.h"

/* A job that was Pending, and is in that phase now. */
#define JOB(name, phase)                                                                           \
    "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: " name                    \
    ", namespace: d}, status: {state: {phase: " phase                                              \
    "}, conditions: [{status: Pending}, {status: " phase "}]}}\n---\n"

enum { WAITS = USER_TIMEOUT };

static int wait_for(struct rig *g, const char *goal, bool any, const char *const *names, uint32_t n)
{
    const struct wait_opts o = {.goal = goal, .timeout_ns = 20 * MS_NS, .any = any};
    int status = -1;

    capture_begin(&g->printed);
    const int rc = wait_jobs(&g->user, names, n, &o, &status, NULL, &g->err);
    capture_end(&g->printed);
    assert_int_equal(rc, 0);
    return status;
}

/* ---- goals ---- */

static const struct {
    const char *goal;
    bool good;
} goals[] = {
    {"completed", true},        {"RUNNING", true}, {"ended", true},
    {"deleted", true},          {"aborted", true}, {"condition=Running", true},
    {"condition=ended", false}, /* not a phase */
    {"complete", false},        {"", false},
};

static void goals_are_phases_and_two_words(void **state)
{
    struct rig *g = *state;

    for (size_t i = 0; i < HK_LEN(goals); i++) {
        const int rc = wait_check(goals[i].goal, &g->err);
        if ((rc == 0) != goals[i].good) {
            fail_msg("goal '%s': expected %s, was %d", goals[i].goal,
                     goals[i].good ? "accepted" : "refused", rc);
        }
    }
    assert_int_equal(wait_check("done", &g->err), -HK_EINVAL);
    assert_string_equal(g->err.text,
                        "option --for is 'done', want completed, running, ended, deleted, another "
                        "phase of jobs or condition=PHASE");
}

/* ---- goals and phases ---- */

static const struct {
    const char *goal, *job;
    int status;
} phases[] = {
    {"completed", JOB("j", "Completed"), USER_OK},
    {"completed", JOB("j", "Running"), WAITS},
    {"completed", JOB("j", "Restarting"), WAITS},
    {"completed", JOB("j", "Failed"), USER_FAILED},
    {"completed", JOB("j", "Aborted"), USER_FAILED},
    {"completed", JOB("j", "Terminated"), USER_FAILED},
    {"running", JOB("j", "Running"), USER_OK},
    {"running", JOB("j", "Completed"), USER_OK}, /* it has been running, at least briefly */
    {"running", JOB("j", "Completing"), USER_OK},
    {"running", JOB("j", "Pending"), WAITS},
    {"running", JOB("j", "Failed"), USER_FAILED},
    {"ended", JOB("j", "Failed"), USER_OK},
    {"ended", JOB("j", "Completed"), USER_OK},
    {"ended", JOB("j", "Running"), WAITS},
    {"aborted", JOB("j", "Aborted"), USER_OK},
    {"condition=pending", JOB("j", "Failed"), USER_OK}, /* it was, once */
    {"condition=running", JOB("j", "Failed"), USER_FAILED},
    {"deleted", JOB("j", "Completed"), WAITS},
};

static void a_goal_is_reached_missed_or_waited_for(void **state)
{
    static const char *const names[] = {"j"};
    struct rig *g = *state;

    for (size_t i = 0; i < HK_LEN(phases); i++) {
        rig_put(g, phases[i].job);
        const int status = wait_for(g, phases[i].goal, false, names, 1);
        if (status != phases[i].status) {
            fail_msg("goal '%s' of %s: expected status %d, was %d", phases[i].goal, phases[i].job,
                     phases[i].status, status);
        }
    }
}

static void a_deleted_job_misses_every_goal_but_its_deletion(void **state)
{
    static const char *const names[] = {"gone"};
    struct rig *g = *state;

    assert_int_equal(wait_for(g, "completed", false, names, 1), USER_FAILED);
    assert_string_equal(g->printed.out, "gone Deleted\n");
    assert_int_equal(wait_for(g, "deleted", false, names, 1), USER_OK);
}

/* ---- several jobs ---- */

static void all_jobs_or_any(void **state)
{
    static const char *const names[] = {"a", "b"};
    struct rig *g = *state;

    rig_put(g, JOB("a", "Completed") JOB("b", "Running"));
    assert_int_equal(wait_for(g, "completed", false, names, 2), WAITS);
    assert_string_equal(g->printed.out, "a Completed\n");
    assert_int_equal(wait_for(g, "completed", true, names, 2), USER_OK);

    rig_put(g, JOB("b", "Failed"));
    assert_int_equal(wait_for(g, "completed", false, names, 2), USER_FAILED);
    assert_int_equal(wait_for(g, "completed", true, names, 2), USER_OK);
}

/* ---- the watch ---- */

static void complete(struct rig *g)
{
    rig_put(g, JOB("j", "Completed"));
}

static void the_wait_ends_when_the_job_gets_there(void **state)
{
    static const char *const names[] = {"j"};
    const struct wait_opts o = {.goal = "completed", .timeout_ns = 60 * 1000 * MS_NS};
    struct rig *g = *state;
    HK_AUTO(api_object_unrefp) struct api_object *job = NULL;
    int status = -1;

    rig_put(g, JOB("j", "Running"));
    rig_later(g, 5, complete);
    capture_begin(&g->printed);
    const int rc = wait_jobs(&g->user, names, 1, &o, &status, &job, &g->err);
    capture_end(&g->printed);
    assert_int_equal(rc, 0);
    assert_int_equal(status, USER_OK);
    assert_string_equal(g->printed.out, "j Completed\n");
    assert_true(hk_str_is(json_str_at(&job->root, "status.state.phase"), "Completed"));
}

static void interrupt(struct rig *g)
{
    g->user.interrupted = true;
}

static void an_interrupted_wait_has_a_status_of_its_own(void **state)
{
    static const char *const names[] = {"j"};
    const struct wait_opts o = {.goal = "completed", .quiet = true};
    struct rig *g = *state;
    int status = -1;

    rig_put(g, JOB("j", "Running"));
    rig_later(g, 5, interrupt);
    capture_begin(&g->printed);
    const int rc = wait_jobs(&g->user, names, 1, &o, &status, NULL, &g->err);
    capture_end(&g->printed);
    assert_int_equal(rc, 0);
    assert_int_equal(status, 130);
    assert_string_equal(g->printed.out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(goals_are_phases_and_two_words),
        RIG_TEST(a_goal_is_reached_missed_or_waited_for),
        RIG_TEST(a_deleted_job_misses_every_goal_but_its_deletion),
        RIG_TEST(all_jobs_or_any),
        RIG_TEST(the_wait_ends_when_the_job_gets_there),
        RIG_TEST(an_interrupted_wait_has_a_status_of_its_own),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/wait", tests, NULL, NULL);
}
