// SPDX-License-Identifier: Apache-2.0
// The fates of simulated containers: what annotations of the pod say, and for the rest a model with
// chance in it. The same seed gives a pod of the same name and try the same fate, whatever else
// happens.
//
// A model is "KEY=VALUE" with commas or line ends between:
//
//   duration=D  how long a container runs (default 10s)
//   delay=D     how long it takes to start (default 0s)
//   fail=P      the part of containers that fail, 0 to 1 (default 0), some way through
//   oom=P       the part of those that fail for want of memory (default 0)
//   exit-code=N how the others fail (default 1)
//
// D is a time ("90s"), "forever", "uniform:MIN-MAX", "exp:MEAN" or "lognormal:MEDIAN:SIGMA".
#pragma once

#include "agent/simulate.h"

/* Of the pod; each stands above the model. */
#define SIMULATE_ANN "sim.hekla.sh/"
#define SIMULATE_ANN_DURATION SIMULATE_ANN "duration"   /* a D */
#define SIMULATE_ANN_DELAY SIMULATE_ANN "delay"         /* a D */
#define SIMULATE_ANN_EXIT_CODE SIMULATE_ANN "exit-code" /* 0 to 255 */
#define SIMULATE_ANN_FAILURES SIMULATE_ANN "failures"   /* only so many tries end with that code */
#define SIMULATE_ANN_OOM SIMULATE_ANN "oom"             /* "true": it is out of memory */
#define SIMULATE_ANN_ERROR SIMULATE_ANN "error"         /* why it cannot be started */
#define SIMULATE_ANN_IGNORE_TERM SIMULATE_ANN "ignore-term" /* "true": only SIGKILL ends it */

enum simulate_shape {
    SIMULATE_FOREVER,
    SIMULATE_CONSTANT,
    SIMULATE_UNIFORM,
    SIMULATE_EXP,
    SIMULATE_LOGNORMAL,
};

struct simulate_span {
    enum simulate_shape shape;
    double a, b; /* nanoseconds; of lognormal b is sigma */
};

struct simulate_model {
    uint64_t seed;
    struct simulate_span duration, delay;
    double fail, oom;
    int exit_code;
};

/* What holds when nothing is said. */
struct simulate_model simulate_model_default(void);
/* Reads text over what the model is; says what is wrong with it. Blank lines and what follows '#'
 * are left out. */
int simulate_model_read(struct hk_str text, struct simulate_model *m,
                        struct hk_err *err) HK_CHECKED;
/* Reads a D. */
int simulate_span_read(struct hk_str text, struct simulate_span *ret,
                       struct hk_err *err) HK_CHECKED;
/* fate of simulate_opts, with the model as ctx. Annotations that make no sense are as if absent. */
void simulate_model_fate(void *model, struct hk_rand *rand, const struct runtime_pod *pod,
                         const struct runtime_container *c, struct simulate_fate *ret);
