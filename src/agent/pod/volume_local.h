// SPDX-License-Identifier: Apache-2.0
// Volumes that are directories of the node and outlive their pods.
#pragma once

#include "agent/pod/pods.h"

struct volume_local;

/* For an agent with a directory. */
struct volume_local *volume_local_new(struct pods *ps);
void volume_local_free(struct volume_local *l);
/* Removes deleted volumes that no pod uses. Call it once leftovers of unknown pods are removed. */
int64_t volume_local_tick(struct volume_local *l, bool may_remove, int64_t now_ns);
/* The volume is a local directory of this node. */
bool volume_local_is_own(const struct host *h, const struct api_object *pv);
/* Creates the directory of a local volume if it is missing. */
int volume_local_make(const struct pod *p, const struct api_object *pv, int64_t fs_group,
                      struct hk_err *err) HK_CHECKED;
