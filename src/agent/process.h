// SPDX-License-Identifier: Apache-2.0
// The runtime whose containers are processes of this machine. Each has a shim between itself and
// the agent: a fork that is the first process of the container's pid namespace, writes its log,
// and leaves a record of its end, so that neither output nor exit code depends on the agent being
// there.
//
// What the machine does not permit (namespaces, cgroups) is left out; caveats() names it.
#pragma once

#include "agent/runtime.h"
#include "net/loop.h"

/* Forks for a runtime, from a process that stays small: to be made before the caller grows, and
 * ended after the runtime. NULL when that is not permitted. */
struct process_nursery;
struct process_nursery *process_nursery_new(void);
/* Takes NULL. */
void process_nursery_free(struct process_nursery *n);

struct process_opts {
    struct process_nursery *nursery; /* NULL: the runtime forks by itself */
    struct net_loop *loop;
    struct hk_clock *clock;
    const char *dir; /* remembers what runs; made when missing */
    struct runtime_sink sink;
    int64_t log_max_bytes; /* a log of that size becomes LOG.1 and begins anew; 0: 10 MiB */
    bool plain;            /* no namespaces and no cgroups, as if neither were permitted */
};

/* Freeing it leaves the containers running. A pod that was started by an earlier runtime of the
 * same directory need not be started again. */
struct runtime *process_runtime_new(const struct process_opts *o);
