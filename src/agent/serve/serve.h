// SPDX-License-Identifier: Apache-2.0
// Requests about pods of the node: logs, exec, attach and forwarded ports.
#pragma once

#include "agent/pod/pods.h"

struct node_call;
struct pod_log;
struct port_forward;
struct stream_session;

struct serve {
    struct host *host;
    struct pods *pods;
    HK_VEC(struct pod_log *) logs; /* being followed */
    HK_VEC(struct stream_session *) sessions;
    HK_VEC(struct port_forward *) forwards;
    uint32_t nforward; /* connections to pods of all of them */
};

void serve_init(struct serve *s, struct pods *ps);
/* Closes all connections. */
void serve_fini(struct serve *s);
/* Answers the call, now or later. */
void serve_answer(struct serve *s, const struct node_call *call);
/* Handles the end of a command that no pod has claimed. */
void serve_on_end(struct serve *s, uint64_t id, const struct runtime_end *end);
/* Does what is due; returns the time of the next action. */
int64_t serve_tick(struct serve *s, int64_t now_ns);
