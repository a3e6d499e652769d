// SPDX-License-Identifier: Apache-2.0
// The volumes of a pod.
#pragma once

#include "agent/pod/env.h"

/* Fills the pod's volumes; may be repeated. -HK_ENOTFOUND: a needed object does not exist. */
int volume_prepare(struct pod *p, struct hk_err *err) HK_CHECKED;
/* Rewrites only files whose objects have changed. */
int volume_refresh(struct pod *p, struct hk_err *err) HK_CHECKED;
/* The volume mounts of a container. */
int volume_mounts(const struct pod *p, const struct container *c, const struct env *e,
                  struct hk_arena *a, struct runtime_mount **ret, uint32_t *ret_n,
                  struct hk_err *err) HK_CHECKED;
/* The directory of a volume inside the pod's directory. */
const char *volume_path(const struct pod *p, const struct json *volume, struct hk_arena *a);
/* Unmounts everything in a pod's directory. */
void volume_unmount(const char *pod_dir);
