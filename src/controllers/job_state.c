// SPDX-License-Identifier: Apache-2.0
// The state machine of jobs as a table, and the phases that follow from counts of pods
// (docs/reference/controllers.md section 3). Unlike upstream's restartingState, abort and terminate
// also work while a job restarts.
#include "controllers/job_priv.h"

#define SYNC                                                                                       \
    {                                                                                              \
        JOB_SYNC, API_JOB_NO_PHASE, false                                                          \
    }
#define ALL                                                                                        \
    {                                                                                              \
        JOB_KILL_ALL, API_JOB_NO_PHASE, false                                                      \
    }
#define ACTIVE                                                                                     \
    {                                                                                              \
        JOB_KILL_ACTIVE, API_JOB_NO_PHASE, false                                                   \
    }
#define TARGET                                                                                     \
    {                                                                                              \
        JOB_KILL_TARGET, API_JOB_NO_PHASE, false                                                   \
    }
#define ALL_TO(phase)                                                                              \
    {                                                                                              \
        JOB_KILL_ALL, API_JOB_##phase, true                                                        \
    }
#define TARGET_TO(phase)                                                                           \
    {                                                                                              \
        JOB_KILL_TARGET, API_JOB_##phase, true                                                     \
    }
#define ACTIVE_TO(phase)                                                                           \
    {                                                                                              \
        JOB_KILL_ACTIVE, API_JOB_##phase, false                                                    \
    }
/* Resuming also uses up a retry. */
#define RESUME                                                                                     \
    {                                                                                              \
        JOB_KILL_ACTIVE, API_JOB_RESTARTING, true                                                  \
    }

/* Every action deletes the pods that still run. */
#define REST                                                                                       \
    {                                                                                              \
        ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE     \
    }
#define REST_RESUMABLE                                                                             \
    {                                                                                              \
        ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE, ACTIVE, RESUME, ACTIVE     \
    }
/* clang-format off */
#define LIVE                                                                                       \
    {                                                                                              \
        [API_ACTION_SYNC_JOB] = SYNC,                                                              \
        [API_ACTION_ENQUEUE_JOB] = SYNC,                                                           \
        [API_ACTION_OTHER] = SYNC,                                                                 \
        [API_ACTION_RESUME_JOB] = SYNC,                                                            \
        [API_ACTION_RESTART_JOB] = ALL_TO(RESTARTING),                                             \
        [API_ACTION_RESTART_TASK] = TARGET_TO(RESTARTING),                                         \
        [API_ACTION_RESTART_POD] = TARGET_TO(RESTARTING),                                          \
        [API_ACTION_RESTART_PARTITION] = TARGET_TO(RESTARTING),                                    \
        [API_ACTION_ABORT_JOB] = ACTIVE_TO(ABORTING),                                              \
        [API_ACTION_COMPLETE_JOB] = ACTIVE_TO(COMPLETING),                                         \
        [API_ACTION_TERMINATE_JOB] = ACTIVE_TO(TERMINATING),                                       \
    }

static const struct job_cell table[API_JOB_NPHASES][API_NACTIONS] = {
    [API_JOB_NO_PHASE] = LIVE,
    [API_JOB_PENDING] = LIVE,
    [API_JOB_RUNNING] = LIVE,
    [API_JOB_RESTARTING] = {
        [API_ACTION_SYNC_JOB] = SYNC,
        [API_ACTION_ENQUEUE_JOB] = ALL,
        [API_ACTION_OTHER] = ALL,
        [API_ACTION_RESUME_JOB] = ALL,
        [API_ACTION_RESTART_JOB] = ALL,
        [API_ACTION_RESTART_TASK] = TARGET,
        [API_ACTION_RESTART_POD] = TARGET,
        [API_ACTION_RESTART_PARTITION] = TARGET,
        [API_ACTION_ABORT_JOB] = ACTIVE_TO(ABORTING),
        [API_ACTION_COMPLETE_JOB] = ALL,
        [API_ACTION_TERMINATE_JOB] = ACTIVE_TO(TERMINATING),
    },
    [API_JOB_ABORTING] = REST_RESUMABLE,
    [API_JOB_ABORTED] = REST_RESUMABLE,
    [API_JOB_COMPLETING] = REST,
    [API_JOB_TERMINATING] = REST,
    [API_JOB_COMPLETED] = REST,
    [API_JOB_FAILED] = REST,
    [API_JOB_TERMINATED] = REST,
};
/* clang-format on */

const struct job_cell *job_cell(enum api_job_phase phase, enum api_job_action action)
{
    return &table[phase][action];
}

/* ---- phases that follow from counts ---- */

static bool task_fell_short(const struct api_job *job, const struct job_counts *n)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < job->tasks.len; i++) {
        sum += api_job_task_min(&job->tasks.at[i]);
    }
    if (job->min_available < sum) {
        return false;
    }
    for (uint32_t i = 0; i < job->tasks.len; i++) {
        const struct api_job_task *task = &job->tasks.at[i];
        int32_t seen = 0;

        for (unsigned k = 0; k < POD_NPHASES; k++) {
            seen += n->tasks[i][k];
        }
        if (task->has_min && seen > 0 && n->tasks[i][POD_SUCCEEDED] < task->min_available) {
            return true;
        }
    }
    return false;
}

/* Of a job that was scaled down every task suffices: upstream fails it, since it never has so many
 * successes, and admission permits no other minSuccess. */
static int64_t needed_successes(const struct api_job *job, int64_t total)
{
    return job->has_min_success ? HK_MIN((int64_t)job->min_success, total) : 0;
}

static enum api_job_phase after_running(const struct api_job *job, const struct job_counts *n)
{
    const int64_t total = api_job_replicas(job);

    if (total == 0) {
        return API_JOB_RUNNING;
    }
    if (job->has_min_success && n->succeeded >= needed_successes(job, total)) {
        return API_JOB_COMPLETED;
    }
    if ((int64_t)n->succeeded + n->failed == total) {
        if (task_fell_short(job, n) || n->succeeded < needed_successes(job, total)) {
            return API_JOB_FAILED;
        }
        return n->succeeded >= job->min_available ? API_JOB_COMPLETED : API_JOB_FAILED;
    }
    return n->pending > total - job->min_available ? API_JOB_PENDING : API_JOB_RUNNING;
}

static enum api_job_phase after_restarting(const struct api_job *job, const struct job_counts *n)
{
    if (job->retry_count >= job->max_retry) {
        return API_JOB_FAILED;
    }
    return api_job_replicas(job) - n->terminating >= job->status_min_available ? API_JOB_PENDING
                                                                               : API_JOB_RESTARTING;
}

enum api_job_phase job_next_phase(const struct api_job *job, const struct job_counts *n)
{
    const bool still = n->terminating == 0 && n->pending == 0 && n->running == 0;

    switch (job->phase) {
    case API_JOB_NO_PHASE:
        return API_JOB_PENDING;
    case API_JOB_PENDING:
        return job->min_available <= n->running + n->succeeded + n->failed ? API_JOB_RUNNING
                                                                           : API_JOB_PENDING;
    case API_JOB_RUNNING:
        return after_running(job, n);
    case API_JOB_RESTARTING:
        return after_restarting(job, n);
    case API_JOB_ABORTING:
        return still ? API_JOB_ABORTED : API_JOB_ABORTING;
    case API_JOB_COMPLETING:
        return still ? API_JOB_COMPLETED : API_JOB_COMPLETING;
    case API_JOB_TERMINATING:
        return still ? API_JOB_TERMINATED : API_JOB_TERMINATING;
    default:
        return job->phase;
    }
}
