// SPDX-License-Identifier: Apache-2.0
// The runtime whose containers are processes of this machine. Each has a shim between itself and
// the agent: a forked process that is the first of the container's pid namespace, writes its log
// and records its end, so that output and exit code survive a restart of the agent.
//
// Features that the machine does not permit (namespaces, cgroups) are left out; caveats() names
// them.
#pragma once

#include "agent/host/runtime.h"
#include "agent/process/spawner.h"
#include "net/loop.h"

struct process_opts {
    struct net_loop *loop;
    struct spawner *spawner; /* borrowed; may serve several runtimes */
    struct hk_clock *clock;
    const char *dir; /* records of what runs; created when missing */
    struct runtime_sink sink;
    int64_t log_max_bytes;      /* rotate a log of that size to LOG.1; 0: 10 MiB */
    int64_t pids_max;           /* for each pod without a limit; 0: a share of the machine's */
    bool plain;                 /* no namespaces and no cgroups, as if neither were permitted */
    const char *const *covered; /* directories to hide from containers, ended by NULL; or NULL */
    const char *shm; /* directory on a tmpfs for the pods' /dev/shm, created when missing; NULL:
                      * they use the machine's */
};

/* Freeing the runtime leaves containers running. A pod started by an earlier runtime of the same
 * directory need not be started again. */
struct runtime *process_runtime_new(const struct process_opts *o);
