// SPDX-License-Identifier: Apache-2.0
// Going on in the background, once it is known that there is something to go on with.
#pragma once

#include "base/err.h"

/* Forks. True in the child, which has a session of its own; false in the parent after the child
 * has said with detach_ready that it is ready, or has ended: *ret_status is then what to exit
 * with. Before any thread is made. */
bool detach(int *ret_status);
/* The child is ready: from here on stdout and stderr go to the end of the file, and the parent
 * ends. A file that has grown large becomes FILE.1 first. */
int detach_ready(const char *path, struct hk_err *err) HK_CHECKED;
