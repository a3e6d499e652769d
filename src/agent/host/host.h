// SPDX-License-Identifier: Apache-2.0
// What every part of an agent borrows: its options, the clock, memory, the recorder of events, and
// what the machine has. The host knows neither nodes nor pods.
#pragma once

#include "agent/host/machine.h"
#include "agent/host/options.h"
#include "api/recorder.h"
#include "base/map.h"

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define POD_GRACE_S 30 /* default grace period of a pod */

struct host {
    struct agent_opts o; /* owns its strings */
    struct json capacity, allocatable, labels;
    const char *volumes_dir; /* for volumes that outlive their pods; NULL: none */
    struct machine machine;  /* copy of the one in the options */
    struct machine_gpu gpus[MACHINE_GPUS_MAX];
    uint32_t ngpu;
    uint32_t npull;       /* pulls of images in progress */
    const char *os_image; /* NULL: not looked up yet */
    struct hk_arena own;  /* memory of the options */
    struct hk_arena mem;  /* scratch of one step */
    struct hk_intern str;
    struct recorder *recorder;
};

void host_init(struct host *h, const struct agent_opts *o);
void host_fini(struct host *h);
int64_t host_mono_ns(const struct host *h);
int64_t host_wall_ns(const struct host *h);
