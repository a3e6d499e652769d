// SPDX-License-Identifier: Apache-2.0
// Waiting for jobs, by watching them.
#pragma once

#include "cmd/live.h"

struct wait_opts {
    const char *goal;   /* as --for has it */
    int64_t timeout_ns; /* 0: for ever */
    bool any;           /* the first one decides */
    bool quiet;         /* no line per job on stdout */
};

/* Refuses a goal that is none. */
int wait_check(const char *goal, struct hk_err *err) HK_CHECKED;
/* Returns when all jobs (or any) have reached the goal or cannot any more; *ret is the exit status.
 * Progress is shown on a terminal. ret_job, unless NULL, gets the last state of the first job, NULL
 * when it is gone. Ctrl-C, when it is caught, ends it with *ret 130. */
int wait_jobs(struct user *u, const char *const *names, uint32_t n, const struct wait_opts *o,
              int *ret, struct api_object **ret_job, struct hk_err *err) HK_CHECKED;
