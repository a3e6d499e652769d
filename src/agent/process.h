// SPDX-License-Identifier: Apache-2.0
// The runtime whose containers are processes of this machine. Each has a shim between itself and
// the agent: a fork that is the first process of the container's pid namespace, writes its log,
// and leaves a record of its end, so that neither output nor exit code depends on the agent being
// there.
//
// What the machine does not permit (namespaces, cgroups) is left out; caveats() names it.
#pragma once

#include "agent/process_nursery.h"
#include "agent/runtime.h"
#include "net/loop.h"

struct process_opts {
    struct net_loop *loop;
    struct nursery *nursery; /* of the caller's, may serve several */
    struct hk_clock *clock;
    const char *dir; /* remembers what runs; made when missing */
    struct runtime_sink sink;
    int64_t log_max_bytes; /* a log of that size becomes LOG.1 and begins anew; 0: 10 MiB */
    int64_t pids_max;      /* of each pod that sets no limit; 0: a part of what the machine has */
    bool plain;            /* no namespaces and no cgroups, as if neither were permitted */
};

/* Freeing it leaves the containers running. A pod that was started by an earlier runtime of the
 * same directory need not be started again. */
struct runtime *process_runtime_new(const struct process_opts *o);
