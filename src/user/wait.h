// SPDX-License-Identifier: Apache-2.0
// Waits for jobs by watching them.
#pragma once

#include "user/live.h"

struct wait_opts {
    const char *goal;   /* as in --for */
    int64_t timeout_ns; /* 0: no limit */
    bool any;           /* stop at the first job that reaches it */
    bool quiet;         /* no line per job on stdout */
};

/* Fails for an unknown goal. */
int wait_check(const char *goal, struct hk_err *err) HK_CHECKED;
/* Returns when all jobs (or any) have reached the goal or no longer can; *ret is the exit status.
 * Shows progress on a terminal. ret_job, unless NULL, gets the last state of the first job; NULL if
 * it is deleted. Ctrl-C, if caught, ends the wait with *ret 130. */
int wait_jobs(struct user *u, const char *const *names, uint32_t n, const struct wait_opts *o,
              int *ret, struct api_object **ret_job, struct hk_err *err) HK_CHECKED;
