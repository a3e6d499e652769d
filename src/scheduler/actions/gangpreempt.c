// SPDX-License-Identifier: Apache-2.0
// gangpreempt: makes room for whole starving jobs, topology included, by evicting jobs of lower
// priority in the same queue.

#include "scheduler/actions/gang_evict.h"

static void gangpreempt_run(struct session *ssn, const void *args)
{
    gang_evict_run(ssn, EVICT_GANG_PREEMPT, args);
}

const struct action action_gangpreempt = {
    .name = "gangpreempt",
    .about = "evict lower jobs of a queue for whole starving jobs",
    .evicts = true,
    .args_size = sizeof(struct gang_evict_args),
    .opts = gang_evict_opts,
    .nopt = GANG_EVICT_NOPT,
    .run = gangpreempt_run,
};
