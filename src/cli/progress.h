// SPDX-License-Identifier: Apache-2.0
// The progress of a job: one line of text, and an exit code for scripts.
#pragma once

#include "api/object.h"
#include "cli/term.h"

/* The job's phase; "Pending" before it has one. */
struct hk_str progress_phase(const struct api_object *job);
/* The job has stopped: Completed, Failed, Terminated or Aborted. */
bool progress_is_over(const struct api_object *job);
/* The number of pods of the job. */
int64_t progress_total(const struct api_object *job);
/* How often the job, or a part of it, was restarted. */
int64_t progress_retries(const struct api_object *job);
/* "train  Running  [###---] 3/6  2 running" and a line end; cut to the width of a terminal. */
void progress_write(const struct term *t, const struct api_object *job, struct hk_buf *out);
/* The last failed pod: "task-0: exit code 3"; "" when there is none. */
void progress_write_failure(const struct api_object *job, struct hk_buf *out);
/* 0 for a Completed job; else the common exit code of all failed pods, or 1. */
int progress_exit_code(const struct api_object *job);
