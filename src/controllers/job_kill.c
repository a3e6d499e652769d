// SPDX-License-Identifier: Apache-2.0
// Which pods of a job must go, and their deletion: first a mark that shows that the controller does
// it, then the delete call. Both follow from the status and the pods alone, so any process can
// continue.
#include "controllers/job_priv.h"

#include "api/names.h"

bool job_is_target(enum api_job_action action, struct hk_str task, struct hk_str pod,
                   struct hk_str partition, const struct pod_digest *d, struct hk_str name)
{
    if (!hk_str_is(task, d->task)) {
        return false;
    }
    switch (action) {
    case API_ACTION_RESTART_TASK:
        return true;
    case API_ACTION_RESTART_POD:
        return hk_str_eq(pod, name);
    case API_ACTION_RESTART_PARTITION:
        return partition.n > 0 && hk_str_is(partition, d->partition);
    default:
        return false;
    }
}

static bool is_targeted(enum api_job_action action)
{
    return action == API_ACTION_RESTART_TASK || action == API_ACTION_RESTART_POD ||
           action == API_ACTION_RESTART_PARTITION;
}

/* Whether a restart concerns the pod: it has an earlier generation or, if only a part of the job
 * restarts, an earlier attempt. Ended pods of the last attempt stay for inspection; those of a
 * suspended job stay because their work is done. */
static bool restart_means(const struct job_pass *p, uint32_t row)
{
    const struct pod_digest *d = job_pod(p, row);

    if (is_targeted(p->action)) {
        return d->retry < p->job.retry_count &&
               job_is_target(p->action, p->target_task, p->target_pod, p->target_partition, d,
                             mirror_name(p->pods, row));
    }
    if (d->version >= p->job.version) {
        return false;
    }
    return !pod_has_ended(d) ||
           (p->job.retry_count < p->job.max_retry && p->action != API_ACTION_RESUME_JOB);
}

/* The pod's index is beyond the replicas, or its name has no index. Pods of unknown tasks stay. */
static bool is_surplus(const struct job_pass *p, uint32_t row)
{
    const struct pod_digest *d = job_pod(p, row);
    const struct api_job_task *task = api_job_task_find(&p->job, hk_str(d->task));

    return task && (d->index < 0 || d->index >= task->replicas);
}

bool job_pod_must_go(const struct job_pass *p, uint32_t row)
{
    const struct pod_digest *d = job_pod(p, row);

    if (d->terminating) {
        return false;
    }
    switch (p->job.phase) {
    case API_JOB_NO_PHASE:
    case API_JOB_PENDING:
    case API_JOB_RUNNING:
        return d->out_of_sync || is_surplus(p, row);
    case API_JOB_RESTARTING:
        return d->out_of_sync || is_surplus(p, row) || restart_means(p, row);
    default:
        return !pod_has_ended(d);
    }
}

static void job_kill_mark_out_of_sync(struct job_pass *p, uint32_t row)
{
    struct hk_arena *a = p->t->mem;
    struct json patch = json_make_array(), op = json_make_object();

    json_set_cstr(&op, a, "op", "add");
    json_set_cstr(&op, a, "path", "/metadata/annotations/volcano.sh~1controller-out-of-sync");
    json_set_cstr(&op, a, "value", "true");
    json_push(&patch, a, op);
    pass_patch(p->t, &(struct pass_patch){.kind = api_kind(API_POD),
                                          .ns = p->job.meta.ns,
                                          .name = mirror_name(p->pods, row),
                                          .type = PORT_PATCH_JSON,
                                          .body = &patch});
}

bool job_kill(struct job_pass *p)
{
    const uint32_t before = p->t->ncall;

    for (uint32_t r = job_first_pod(p); r != HK_NONE && !p->t->full; r = job_next_pod(p, r)) {
        if (!job_pod_must_go(p, r)) {
            continue;
        }
        if (!job_pod(p, r)->out_of_sync) {
            job_kill_mark_out_of_sync(p, r);
        } else if (!job_record_has(p, r)) {
            p->unrecorded = true;
        } else {
            pass_delete(p->t, api_kind(API_POD), p->job.meta.ns, mirror_name(p->pods, r),
                        mirror_uid(p->pods, r), PORT_PROPAGATE_DEFAULT);
        }
    }
    return p->t->ncall > before;
}

bool job_kill_rests_on_record(const struct job_pass *p)
{
    for (uint32_t r = job_first_pod(p); r != HK_NONE; r = job_next_pod(p, r)) {
        if (!job_pod(p, r)->out_of_sync && job_pod_must_go(p, r)) {
            return true;
        }
    }
    return false;
}

void job_mark(struct job_pass *p, enum api_job_action action, const struct job_request *rq)
{
    for (uint32_t r = job_first_pod(p); r != HK_NONE; r = job_next_pod(p, r)) {
        const struct pod_digest *d = job_pod(p, r);

        if (!d->terminating && !d->out_of_sync &&
            job_is_target(action, hk_str(rq->task), hk_str(rq->pod), hk_str(rq->partition), d,
                          mirror_name(p->pods, r))) {
            job_kill_mark_out_of_sync(p, r);
        }
    }
}
