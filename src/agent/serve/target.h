// SPDX-License-Identifier: Apache-2.0
// What a request asks for: the container, and the channels.
#pragma once

#include "agent/serve/serve.h"

struct query;

/* The container that the call or query names, else the only one of the pod. */
int serve_find(struct serve *s, const struct node_call *call, const struct query *q,
               struct container **ret, struct hk_err *err) HK_CHECKED;
/* The same; fails when the container does not run. */
int serve_find_running(struct serve *s, const struct node_call *call, const struct query *q,
                       struct container **ret, struct hk_err *err) HK_CHECKED;
/* The bit set of channels that the caller requests. */
unsigned serve_wants(const struct node_call *call, const struct query *q);
/* Writes a Status object for a failure. */
void serve_status(int code, const char *reason, const char *message, struct hk_buf *out);
