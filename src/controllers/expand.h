// SPDX-License-Identifier: Apache-2.0
// What a Job stands for: its PodGroup and pods as the job controller will make them, for those who
// want to know beforehand what the scheduler will see.
#pragma once

#include "api/vcjob.h"

/* The priority of a PriorityClass by name, 0 when there is none. */
typedef int32_t expand_priority(void *ctx, struct hk_str name);

/* The PodGroup. */
struct json expand_group(const struct api_job *job, expand_priority *priority, void *ctx,
                         struct hk_arena *a);
/* What the PodGroup of the job asks for at least. */
struct json expand_min_resources(const struct api_job *job, expand_priority *priority, void *ctx,
                                 struct hk_arena *a);
/* One pod, without what plugins add for its processes. */
struct json expand_pod(const struct api_job *job, const struct api_job_task *task, int32_t index,
                       struct hk_arena *a);
