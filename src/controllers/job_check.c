// SPDX-License-Identifier: Apache-2.0
// A job that no admission has looked at, looked at again: what would make its pods collide, never
// start or be refused for ever. Such a job is left as it is until somebody mends it.
#include "controllers/job_priv.h"

static int check_tasks(const struct api_job *job, struct hk_err *err)
{
    if (job->tasks.len == 0) {
        return hk_fail(err, HK_EINVAL, "No task specified in job spec");
    }
    for (uint32_t i = 0; i < job->tasks.len; i++) {
        const struct api_job_task *task = &job->tasks.at[i];
        const struct json *containers = json_at(task->template, "spec.containers");

        if (api_job_task_find(job, task->name) != task) {
            return hk_fail(err, HK_EINVAL, "duplicated task name %.*s", HK_FMT(task->name));
        }
        if (task->replicas < 0) {
            return hk_fail(err, HK_EINVAL, "'replicas' < 0 in task: %.*s", HK_FMT(task->name));
        }
        if (task->has_min && task->min_available > task->replicas) {
            return hk_fail(err, HK_EINVAL,
                           "'minAvailable' is greater than 'replicas' in task: %.*s",
                           HK_FMT(task->name));
        }
        if (!json_is(containers, JSON_ARRAY) || containers->len == 0) {
            return hk_fail(err, HK_EINVAL, "no containers in the template of task: %.*s",
                           HK_FMT(task->name));
        }
    }
    if (api_job_replicas(job) < job->min_available) {
        return hk_fail(err, HK_EINVAL,
                       "job 'minAvailable' should not be greater than total replicas in tasks");
    }
    return 0;
}

static int check_plugins(const struct api_job *job, struct hk_err *err)
{
    for (uint32_t i = 0; i < job->plugins.len; i++) {
        if (!job_plugin_find(job->plugins.at[i].name)) {
            return hk_fail(err, HK_EINVAL, "unable to find job plugin: %.*s",
                           HK_FMT(job->plugins.at[i].name));
        }
    }
    return 0;
}

static bool leans_on_placed(const struct api_job *job, const struct api_job_task *task,
                            const bool *placed)
{
    for (uint32_t i = 0; i < task->depends_on.len; i++) {
        const struct api_job_task *on = api_job_task_find(job, task->depends_on.at[i]);

        if (!on || !placed[on - job->tasks.at]) {
            return false;
        }
    }
    return true;
}

/* Places every task after those it depends on; what cannot be placed depends on a stranger or on
 * itself. */
static int check_dependencies(const struct api_job *job, struct hk_arena *a, struct hk_err *err)
{
    bool *placed = hk_arena_zalloc(a, job->tasks.len * sizeof(*placed) + 1);
    uint32_t left = job->tasks.len, before;

    do {
        before = left;
        for (uint32_t i = 0; i < job->tasks.len; i++) {
            if (!placed[i] && leans_on_placed(job, &job->tasks.at[i], placed)) {
                placed[i] = true;
                left--;
            }
        }
    } while (left > 0 && left < before);
    if (left > 0) {
        return hk_fail(err, HK_EINVAL,
                       "job has dependencies between tasks, but doesn't form a directed acyclic "
                       "graph(DAG)");
    }
    return 0;
}

int job_check(const struct api_job *job, struct hk_arena *a, struct hk_err *err)
{
    int rc = check_tasks(job, err);

    if (rc == 0) {
        rc = check_plugins(job, err);
    }
    return rc == 0 ? check_dependencies(job, a, err) : rc;
}
