// SPDX-License-Identifier: Apache-2.0
// The PodGroup and pods that the job controller will make from a Job, to show in advance what the
// scheduler will see.
#pragma once

#include "api/vcjob.h"

/* The priority of a PriorityClass by name, 0 when there is none. */
typedef int32_t expand_priority(void *ctx, struct hk_str name);

struct json expand_group(const struct api_job *job, expand_priority *priority, void *ctx,
                         struct hk_arena *a);
/* minResources of the PodGroup. */
struct json expand_min_resources(const struct api_job *job, expand_priority *priority, void *ctx,
                                 struct hk_arena *a);
/* One pod, without the additions of job plugins. */
struct json expand_pod(const struct api_job *job, const struct api_job_task *task, int32_t index,
                       struct hk_arena *a);
