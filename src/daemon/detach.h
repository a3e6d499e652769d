// SPDX-License-Identifier: Apache-2.0
// Moves a server to the background once its start has succeeded.
#pragma once

#include "base/err.h"

/* Forks. Returns true in the child, which has its own session. Returns false in the parent after
 * the child called detach_ready and detach_settled, or exited; *ret_status is the exit status to
 * use. A child that exits between the two calls is reported with the last lines of the log. Call
 * before any thread exists. */
bool detach(const char *log_path, int *ret_status);
/* The child is ready: redirects stdout and stderr to the end of the file. A large file is renamed
 * to FILE.1 first. *ret_parent is for detach_settled. */
int detach_ready(const char *path, int *ret_parent, struct hk_err *err) HK_CHECKED;
/* The child has completed its start: the parent exits. Closes parent; -1 does nothing. */
void detach_settled(int *parent);
