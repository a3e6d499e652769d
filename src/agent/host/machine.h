// SPDX-License-Identifier: Apache-2.0
// The machine's resources as the kernel reports them. Nothing is cached.
#pragma once

#include "base/arena.h"
#include "codec/json.h"

enum { MACHINE_GPUS_MAX = 64 };

struct machine {
    const char *root;      /* prefix of /proc, /sys, /dev and /etc; "": the real ones */
    const char *dir;       /* on the file system that pods write to, or NULL */
    const char *synthetic; /* an hwloc description to use instead of the real one, or NULL */
};

/* An NVIDIA GPU; uuid and model are "" when unknown. */
struct machine_gpu {
    uint32_t minor; /* of /dev/nvidiaN */
    char uuid[64], model[64];
};

/* A ResourceList: usable processors, memory (of the machine or of our control group), disk space,
 * huge pages, GPUs and pods. */
struct json machine_capacity(const struct machine *m, struct hk_arena *a);
/* Labels with the numbers of sockets, cores and NUMA nodes, and the GPUs. */
struct json machine_labels(const struct machine *m, struct hk_arena *a);
/* The position of each processor, as the spec of a Numatopology; null when unknown. */
struct json machine_topology(const struct machine *m, struct hk_arena *a);
/* Sorted by minor number; returns how many. */
uint32_t machine_gpus(const struct machine *m, struct machine_gpu ret[MACHINE_GPUS_MAX]);
/* The text of a one-line file without newline; "" when unreadable. */
const char *machine_line(const struct machine *m, const char *path, struct hk_arena *a);

struct machine_pressure {
    bool memory, disk, pids;
};
/* Which resources run out, by kubelet's eviction thresholds. */
struct machine_pressure machine_pressure(const struct machine *m);
