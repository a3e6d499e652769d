// SPDX-License-Identifier: Apache-2.0
// The GPUs of a container.
#pragma once

#include "agent/pod/env.h"

/* Assigns the requested number of GPUs, unless it has them. */
int pod_gpu_assign(struct container *c, struct hk_err *err) HK_CHECKED;
/* Restores the GPUs that an earlier agent assigned. */
void pod_gpu_recall(struct container *c);
void pod_gpu_env(const struct container *c, struct env *e, struct hk_arena *mem);
/* Hides the GPUs it does not have. */
void pod_gpu_hide(const struct container *c, struct runtime_container *rc);
