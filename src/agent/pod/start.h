// SPDX-License-Identifier: Apache-2.0
// Starting pods and containers in the runtime.
#pragma once

#include "agent/pod/env.h"

/* Gives the pod a directory and an address, once. */
int pod_settle_in(struct pod *p, struct hk_err *err) HK_CHECKED;
/* Calls the runtime's pod_start, once. */
int pod_start_pod(struct pod *p, struct hk_err *err) HK_CHECKED;
/* Describes the container for the runtime, in the scratch arena. argv is NULL when there is nothing
 * to run. Fails when its configuration is invalid or not yet complete. */
int pod_start_describe(struct container *c, const struct env *e, struct runtime_container *ret,
                       struct hk_err *err) HK_CHECKED;
/* The start delay that the runtime wants. The pod must be started. */
int64_t pod_start_delay(const struct container *c);
/* Starts it in a hollow runtime; started_ns as in a runtime_container. */
int pod_start_nominal(struct container *c, int64_t started_ns, struct hk_err *err) HK_CHECKED;
/* Creates the container's files and starts it. */
int pod_start_launch(struct container *c, const struct runtime_container *rc,
                     struct hk_err *err) HK_CHECKED;
/* Writes to the log of an ephemeral container why it never ran: kubectl debug shows the log then. */
void pod_start_log_failure(const struct container *c, const char *why);
