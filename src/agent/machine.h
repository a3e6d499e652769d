// SPDX-License-Identifier: Apache-2.0
// What this machine has, as the kernel tells it. Nothing is kept: each answer is read anew.
#pragma once

#include "base/arena.h"
#include "codec/json.h"

enum { MACHINE_GPUS_MAX = 64 };

struct machine {
    const char *root;      /* before /proc, /sys, /dev and /etc; "" the machine's own */
    const char *dir;       /* on the file system that pods write to, or NULL */
    const char *synthetic; /* an hwloc description to go by instead of the machine's, or NULL */
};

/* An NVIDIA GPU; uuid and model are "" when the driver does not tell. */
struct machine_gpu {
    uint32_t minor; /* of /dev/nvidiaN */
    char uuid[64], model[64];
};

/* As a ResourceList: processors we may run on, memory that is there or that our control group
 * leaves us, room on the disk, huge pages, GPUs, and pods. */
struct json machine_capacity(const struct machine *m, struct hk_arena *a);
/* Labels that say how many sockets, cores and NUMA nodes there are, and which GPUs. */
struct json machine_labels(const struct machine *m, struct hk_arena *a);
/* Where each processor sits, as the spec of a Numatopology; null when it is not known. */
struct json machine_topology(const struct machine *m, struct hk_arena *a);
/* By minor number; returns how many. */
uint32_t machine_gpus(const struct machine *m, struct machine_gpu ret[MACHINE_GPUS_MAX]);
/* A file of one line, without its end; "" when it cannot be read. */
const char *machine_line(const struct machine *m, const char *path, struct hk_arena *a);

struct machine_pressure {
    bool memory, disk, pids;
};
/* What is running out, by the thresholds at which kubelet evicts. */
struct machine_pressure machine_pressure(const struct machine *m);
