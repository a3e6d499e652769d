// SPDX-License-Identifier: Apache-2.0
// The fates of simulated containers: from annotations of the pod, else from a random model. The
// same seed gives a pod of the same name and attempt the same fate, whatever else happens.
//
// A model is a list of "KEY=VALUE", separated by commas or line ends:
//
//   duration=D  how long a container runs (default 10s)
//   delay=D     how long it takes to start (default 0s)
//   fail=P      fraction of containers that fail before their end, 0 to 1 (default 0)
//   oom=P       fraction of these that run out of memory (default 0)
//   exit-code=N exit code of the other failures (default 1)
//
// D is a time ("90s"), "forever", "uniform:MIN-MAX", "exp:MEAN" or "lognormal:MEDIAN:SIGMA".
#pragma once

#include "agent/simulate/simulate.h"

/* Annotations of the pod; each overrides the model. */
#define SIMULATE_ANN "sim.hekla.sh/"
#define SIMULATE_ANN_DURATION SIMULATE_ANN "duration"   /* a D */
#define SIMULATE_ANN_DELAY SIMULATE_ANN "delay"         /* a D */
#define SIMULATE_ANN_EXIT_CODE SIMULATE_ANN "exit-code" /* 0 to 255 */
#define SIMULATE_ANN_FAILURES                                                                      \
    SIMULATE_ANN "failures"                                 /* only this many attempts end with that
                                                         * code */
#define SIMULATE_ANN_OOM SIMULATE_ANN "oom"                 /* "true": killed for lack of memory */
#define SIMULATE_ANN_ERROR SIMULATE_ANN "error"             /* why it cannot be started */
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
    double a, b; /* nanoseconds; for lognormal b is sigma */
};

struct simulate_model {
    uint64_t seed;
    struct simulate_span duration, delay;
    double fail, oom;
    int exit_code;
};

struct simulate_model simulate_model_default(void);
/* Changes the model as the text says. Skips blank lines and text after '#'. */
int simulate_model_read(struct hk_str text, struct simulate_model *m,
                        struct hk_err *err) HK_CHECKED;
/* Parses a D. */
int simulate_span_read(struct hk_str text, struct simulate_span *ret,
                       struct hk_err *err) HK_CHECKED;
/* fate of simulate_opts, with the model as ctx. Invalid annotations are ignored. */
void simulate_model_fate(void *model, struct hk_rand *rand, const struct runtime_pod *pod,
                         const struct runtime_container *c, struct simulate_fate *ret);
