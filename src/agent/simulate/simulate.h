// SPDX-License-Identifier: Apache-2.0
// The runtime where nothing runs: options say how long containers last and how they end. Time comes
// from the clock; simulate_run reports ends.
#pragma once

#include "agent/host/runtime.h"

struct simulate_fate {
    int64_t delay_ns;    /* before it starts */
    int64_t duration_ns; /* negative: until it is killed */
    int code;
    bool oom;
    const char *never_ran;    /* why it could not be started, or NULL; borrowed */
    bool ignores_term;        /* only SIGKILL ends it early */
    int64_t term_duration_ns; /* from SIGTERM to its end, with code 143 */
};

struct simulate_opts {
    struct hk_clock *clock;
    struct hk_rand *rand;
    struct runtime_sink sink;
    /* Chooses a container's fate; called for its delay, and again at its start. NULL: it succeeds
     * at once. */
    void (*fate)(void *ctx, struct hk_rand *rand, const struct runtime_pod *pod,
                 const struct runtime_container *c, struct simulate_fate *ret);
    void *ctx;
};

struct runtime *simulate_runtime_new(const struct simulate_opts *o);
/* Reports what has ended; returns the monotonic time of the next end, INT64_MAX when none is
 * due. */
int64_t simulate_run(struct runtime *r);
