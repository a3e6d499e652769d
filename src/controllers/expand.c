// SPDX-License-Identifier: Apache-2.0
// Gives callers outside a pass the job controller's builders of pods and PodGroups.
#include "controllers/expand.h"

#include "controllers/job_priv.h"

struct json expand_group(const struct api_job *job, expand_priority *priority, void *ctx,
                         struct hk_arena *a)
{
    return job_group_build(job, priority, ctx, a);
}

struct json expand_min_resources(const struct api_job *job, expand_priority *priority, void *ctx,
                                 struct hk_arena *a)
{
    return job_min_resources(job, priority, ctx, a);
}

struct json expand_pod(const struct api_job *job, const struct api_job_task *task, int32_t index,
                       struct hk_arena *a)
{
    struct pass frame = {.mem = a};
    const struct job_pass pass = {.t = &frame, .root = job->raw, .job = *job};
    struct json pod = {0};

    const int rc = job_pod_build(&pass, task, index, &pod, NULL);
    hk_assert(rc == 0); /* only plugins can fail, and there are none */
    return pod;
}
