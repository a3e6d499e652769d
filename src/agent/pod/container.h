// SPDX-License-Identifier: Apache-2.0
// The life of a container.
#pragma once

#include "agent/pod/pods.h"

/* What container.c does when a probe or a hook reports. */
extern const struct container_ops container_ops;

/* Starts the container if it is due. */
void container_try(struct container *c, int64_t now_ns);
void container_ended(struct container *c, const struct runtime_end *end, int64_t now_ns);
/* Decides after an end: the container is done, or waits for a restart. */
void container_settle(struct container *c, int64_t now_ns);
/* Continues stopping: preStop, SIGTERM, SIGKILL. */
void container_stop_on(struct container *c, int64_t now_ns);
/* The pod cannot continue; preparation is repeated after a pause. */
void pod_hold(struct pod *p, const char *why, const struct hk_err *err, int64_t now_ns);
