// SPDX-License-Identifier: Apache-2.0
// Disk limits of pods.
#pragma once

#include "agent/pod/pods.h"

struct disk;

bool pod_disk_is_limited(const struct pod *p);
/* For an agent with a directory. */
struct disk *disk_new(struct pods *ps);
void disk_free(struct disk *d);
/* Measures pods with limits and evicts those above one; returns when to do so again. */
int64_t disk_tick(struct disk *d, int64_t now_ns);
