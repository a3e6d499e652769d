// SPDX-License-Identifier: Apache-2.0
// How far a job is: in one line for people, and in a number for scripts.
#pragma once

#include "api/object.h"
#include "cli/term.h"

/* The job's phase; "Pending" before it has one. */
struct hk_str progress_phase(const struct api_object *job);
/* It will not go on by itself: Completed, Failed, Terminated or Aborted. */
bool progress_is_over(const struct api_object *job);
/* Pods the job is made of. */
int64_t progress_total(const struct api_object *job);
/* How often it was started again, or a part of it. */
int64_t progress_retries(const struct api_object *job);
/* "train  Running  [###---] 3/6  2 running" and a line end; on a terminal no longer than it is
 * wide. */
void progress_write(const struct term *t, const struct api_object *job, struct hk_buf *out);
/* What the last pod that failed has to say: "task-0: exit code 3"; "" when there is none. */
void progress_write_failure(const struct api_object *job, struct hk_buf *out);
/* 0 of a job that is Completed; else the exit code on which all its failed pods agree, or 1. */
int progress_exit_code(const struct api_object *job);
