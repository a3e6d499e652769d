// SPDX-License-Identifier: Apache-2.0
// Checks the state machine of jobs against its table (docs/reference/controllers.md section 3),
// written again by hand: SY sync, K0 kill all pods, KS kill the pods that have not ended, KT kill a
// target; ">" the phase that is set at once, "+1" uses up a retry.
#include "controllers/job_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { COLUMNS = 8 };

static const enum api_job_action columns[COLUMNS][3] = {
    {API_ACTION_SYNC_JOB, API_ACTION_SYNC_JOB, API_ACTION_SYNC_JOB},
    {API_ACTION_ENQUEUE_JOB, API_ACTION_OTHER, API_ACTION_OTHER},
    {API_ACTION_RESTART_JOB, API_ACTION_RESTART_JOB, API_ACTION_RESTART_JOB},
    {API_ACTION_RESTART_TASK, API_ACTION_RESTART_POD, API_ACTION_RESTART_PARTITION},
    {API_ACTION_ABORT_JOB, API_ACTION_ABORT_JOB, API_ACTION_ABORT_JOB},
    {API_ACTION_COMPLETE_JOB, API_ACTION_COMPLETE_JOB, API_ACTION_COMPLETE_JOB},
    {API_ACTION_TERMINATE_JOB, API_ACTION_TERMINATE_JOB, API_ACTION_TERMINATE_JOB},
    {API_ACTION_RESUME_JOB, API_ACTION_RESUME_JOB, API_ACTION_RESUME_JOB},
};

#define LIVE_ROW                                                                                   \
    {                                                                                              \
        "SY", "SY", "K0>Restarting+1", "KT>Restarting+1", "KS>Aborting", "KS>Completing",          \
            "KS>Terminating", "SY"                                                                 \
    }
#define REST_ROW                                                                                   \
    {                                                                                              \
        "KS", "KS", "KS", "KS", "KS", "KS", "KS", "KS"                                             \
    }
#define ABORT_ROW                                                                                  \
    {                                                                                              \
        "KS", "KS", "KS", "KS", "KS", "KS", "KS", "KS>Restarting+1"                                \
    }

static const struct {
    enum api_job_phase phase;
    const char *cells[COLUMNS];
} rows[] = {
    {API_JOB_NO_PHASE, LIVE_ROW},
    {API_JOB_PENDING, LIVE_ROW},
    {API_JOB_RUNNING, LIVE_ROW},
    /* Upstream ignores abort and terminate here. */
    {API_JOB_RESTARTING, {"SY", "K0", "K0", "KT", "KS>Aborting", "K0", "KS>Terminating", "K0"}},
    {API_JOB_ABORTING, ABORT_ROW},
    {API_JOB_ABORTED, ABORT_ROW},
    {API_JOB_COMPLETING, REST_ROW},
    {API_JOB_TERMINATING, REST_ROW},
    {API_JOB_COMPLETED, REST_ROW},
    {API_JOB_FAILED, REST_ROW},
    {API_JOB_TERMINATED, REST_ROW},
};

static void write_cell(const struct job_cell *cell, char *out, size_t size)
{
    static const char *const ops[] = {
        [JOB_SYNC] = "SY",
        [JOB_KILL_ALL] = "K0",
        [JOB_KILL_ACTIVE] = "KS",
        [JOB_KILL_TARGET] = "KT",
    };

    snprintf(out, size, "%s%s%s%s", ops[cell->op], cell->next == API_JOB_NO_PHASE ? "" : ">",
             api_job_phase_name(cell->next), cell->retry ? "+1" : "");
}

static void every_cell_is_as_in_the_reference(void **state)
{
    assert_int_equal(HK_LEN(rows), API_JOB_NPHASES);
    for (unsigned i = 0; i < HK_LEN(rows); i++) {
        for (unsigned k = 0; k < COLUMNS; k++) {
            for (unsigned m = 0; m < 3; m++) {
                char want[80], have[80], cell[40];
                const char *action = api_job_action_name(columns[k][m]);

                write_cell(job_cell(rows[i].phase, columns[k][m]), cell, sizeof(cell));
                snprintf(have, sizeof(have), "%s %s: %s", api_job_phase_name(rows[i].phase), action,
                         cell);
                snprintf(want, sizeof(want), "%s %s: %s", api_job_phase_name(rows[i].phase), action,
                         rows[i].cells[k]);
                assert_string_equal(have, want);
            }
        }
    }
}

/* ---- phases that follow from counts ---- */

/* A task: its replicas, its minimum (-1 unset), and how many pods succeeded and failed. */
struct task_case {
    int replicas, min, succeeded, failed;
};

struct count_case {
    const char *what;
    enum api_job_phase phase, next;
    int min, min_success; /* -1 unset */
    int retry, max_retry, status_min;
    struct task_case tasks[2];
    int pending, running, terminating;
};

static const struct count_case cases[] = {
    {"too few", API_JOB_PENDING, API_JOB_PENDING, 2, -1, 0, 3, 2, {{2, 2, 0, 0}}, 1, 1, 0},
    {"enough run", API_JOB_PENDING, API_JOB_RUNNING, 2, -1, 0, 3, 2, {{2, 2, 0, 0}}, 0, 2, 0},
    {"ended pods count", API_JOB_PENDING, API_JOB_RUNNING, 2, -1, 0, 3, 2, {{2, 2, 1, 1}}, 0, 0, 0},
    {"no replicas", API_JOB_RUNNING, API_JOB_RUNNING, 0, -1, 0, 3, 0, {{0, 0, 0, 0}}, 0, 0, 0},
    {"enough successes",
     API_JOB_RUNNING,
     API_JOB_COMPLETED,
     2,
     2,
     0,
     3,
     2,
     {{3, 1, 2, 0}, {2, 1, 0, 0}},
     0,
     3,
     0},
    {"two of three", API_JOB_RUNNING, API_JOB_FAILED, 3, -1, 0, 3, 3, {{3, 3, 2, 1}}, 0, 0, 0},
    {"one is enough", API_JOB_RUNNING, API_JOB_COMPLETED, 1, -1, 0, 3, 1, {{3, 1, 1, 2}}, 0, 0, 0},
    {"a task below its minimum",
     API_JOB_RUNNING,
     API_JOB_FAILED,
     3,
     -1,
     0,
     3,
     3,
     {{2, 2, 1, 1}, {2, 1, 2, 0}},
     0,
     0,
     0},
    {"the job asks for less than its tasks",
     API_JOB_RUNNING,
     API_JOB_COMPLETED,
     2,
     -1,
     0,
     3,
     2,
     {{2, 2, 1, 1}, {2, 1, 2, 0}},
     0,
     0,
     0},
    {"minSuccess of a job scaled down",
     API_JOB_RUNNING,
     API_JOB_COMPLETED,
     1,
     4,
     2,
     0,
     1,
     {{2, 1, 2, 2}},
     0,
     0,
     0},
    {"minSuccess missed", API_JOB_RUNNING, API_JOB_FAILED, 1, 3, 0, 3, 1, {{4, 1, 2, 2}}, 0, 0, 0},
    {"the gang is lost", API_JOB_RUNNING, API_JOB_PENDING, 2, -1, 0, 3, 2, {{3, 2, 0, 0}}, 2, 1, 0},
    {"one may wait", API_JOB_RUNNING, API_JOB_RUNNING, 2, -1, 0, 3, 2, {{3, 2, 0, 0}}, 1, 2, 0},
    {"retries used up",
     API_JOB_RESTARTING,
     API_JOB_FAILED,
     1,
     -1,
     3,
     3,
     1,
     {{1, -1, 0, 0}, {1, -1, 0, 0}},
     0,
     0,
     0},
    {"on it goes",
     API_JOB_RESTARTING,
     API_JOB_PENDING,
     1,
     -1,
     1,
     3,
     1,
     {{1, -1, 0, 0}, {1, -1, 0, 0}},
     0,
     0,
     0},
    {"old pods are still there",
     API_JOB_RESTARTING,
     API_JOB_RESTARTING,
     2,
     -1,
     1,
     3,
     2,
     {{2, 2, 0, 0}},
     0,
     0,
     1},
    {"not yet", API_JOB_ABORTING, API_JOB_ABORTING, 2, -1, 0, 3, 2, {{2, 2, 0, 0}}, 0, 0, 1},
    {"done", API_JOB_ABORTING, API_JOB_ABORTED, 2, -1, 0, 3, 2, {{2, 2, 1, 1}}, 0, 0, 0},
    {"not yet", API_JOB_COMPLETING, API_JOB_COMPLETING, 2, -1, 0, 3, 2, {{2, 2, 0, 0}}, 0, 1, 0},
    {"done", API_JOB_COMPLETING, API_JOB_COMPLETED, 2, -1, 0, 3, 2, {{2, 2, 0, 0}}, 0, 0, 0},
    {"not yet", API_JOB_TERMINATING, API_JOB_TERMINATING, 2, -1, 0, 3, 2, {{2, 2, 0, 0}}, 1, 0, 0},
    {"done", API_JOB_TERMINATING, API_JOB_TERMINATED, 2, -1, 0, 3, 2, {{2, 2, 0, 0}}, 0, 0, 0},
    {"at rest", API_JOB_FAILED, API_JOB_FAILED, 2, -1, 3, 3, 2, {{2, 2, 2, 0}}, 0, 0, 0},
    {"at rest", API_JOB_ABORTED, API_JOB_ABORTED, 2, -1, 0, 3, 2, {{2, 2, 2, 0}}, 0, 0, 0},
};

static enum api_job_phase phase_after(const struct count_case *c)
{
    struct api_job_task tasks[2] = {0};
    int32_t by_task[2][POD_NPHASES] = {0};
    struct job_counts n = {.pending = c->pending,
                           .running = c->running,
                           .terminating = c->terminating,
                           .tasks = by_task};
    struct api_job job = {.phase = c->phase,
                          .min_available = c->min,
                          .has_min_success = c->min_success >= 0,
                          .min_success = c->min_success,
                          .retry_count = c->retry,
                          .max_retry = c->max_retry,
                          .status_min_available = c->status_min};

    for (unsigned i = 0; i < 2; i++) {
        const struct task_case *t = &c->tasks[i];

        tasks[i] = (struct api_job_task){
            .replicas = t->replicas, .has_min = t->min >= 0, .min_available = t->min};
        by_task[i][POD_SUCCEEDED] = t->succeeded;
        by_task[i][POD_FAILED] = t->failed;
        n.succeeded += t->succeeded;
        n.failed += t->failed;
    }
    job.tasks.at = tasks;
    job.tasks.len = c->tasks[1].replicas > 0 ? 2 : 1;
    return job_next_phase(&job, &n);
}

static void phases_follow_from_counts(void **state)
{
    for (unsigned i = 0; i < HK_LEN(cases); i++) {
        char have[120], want[120];

        snprintf(have, sizeof(have), "%s: %s", cases[i].what,
                 api_job_phase_name(phase_after(&cases[i])));
        snprintf(want, sizeof(want), "%s: %s", cases[i].what, api_job_phase_name(cases[i].next));
        assert_string_equal(have, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_is_as_in_the_reference),
        cmocka_unit_test(phases_follow_from_counts),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/job-state", tests, NULL, NULL);
}
