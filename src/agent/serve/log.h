// SPDX-License-Identifier: Apache-2.0
// Readers of container logs.
#pragma once

#include "agent/serve/serve.h"

/* Answers the call, now or later. On failure the caller must answer it. */
int pod_log_serve(struct serve *s, const struct node_call *call, struct hk_err *err) HK_CHECKED;
/* Wakes following readers; returns when to do so again, INT64_MAX: no reader follows. */
int64_t pod_log_tick(struct serve *s, int64_t now_ns);
/* Disconnects the following readers. */
void pod_log_fini(struct serve *s);
/* Follows a container's output from now on; wake is called when there may be more. */
struct pod_log *pod_log_attach(struct serve *s, struct container *c, void (*wake)(void *ctx),
                               void *ctx);
/* Appends about room bytes; false when the container has ended and all was read. */
bool pod_log_read(struct pod_log *l, struct hk_buf *out, struct hk_buf *err, size_t room);
void pod_log_detach(struct pod_log *l);
