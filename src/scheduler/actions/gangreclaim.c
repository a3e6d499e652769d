// SPDX-License-Identifier: Apache-2.0
// gangreclaim: makes room for whole starving jobs, topology included, by evicting from queues that
// exceed their share.

#include "scheduler/actions/gang_evict.h"

static void gangreclaim_run(struct session *ssn, const void *args)
{
    gang_evict_run(ssn, EVICT_GANG_RECLAIM, args);
}

const struct action action_gangreclaim = {
    .name = "gangreclaim",
    .about = "evict from queues beyond their share for whole starving jobs",
    .evicts = true,
    .args_size = sizeof(struct gang_evict_args),
    .opts = gang_evict_opts,
    .nopt = GANG_EVICT_NOPT,
    .run = gangreclaim_run,
};
