// SPDX-License-Identifier: Apache-2.0
// A node, or a fleet of simulated ones: registers itself, sends heartbeats, runs the pods bound to
// it through a runtime, and reports their status. It uses only the port; the owner runs the loop.
#pragma once

#include "agent/host/options.h"

struct agent;
struct node_call;

/* Files in record_dir: the newest revision seen, and the uids, one per line, of pods that are kept
 * although the API does not know them. */
#define AGENT_REVISION_FILE ".revision"
#define AGENT_KEPT_FILE ".kept"

struct agent *agent_new(const struct agent_opts *o);
/* Pods keep running: the next agent finds them. */
void agent_free(struct agent *a);
/* Does all work that is due. Returns the monotonic time of the next call; INT64_MAX: when port or
 * runtime have news. */
int64_t agent_run(struct agent *a);
/* For the runtime's sink to call. The next agent_run handles the end. */
void agent_on_end(struct agent *a, uint64_t container, const struct runtime_end *end);
/* Answers a call about a pod of this node (serve of a node_api, with the agent as ctx). */
void agent_serve(void *ctx, const struct node_call *call);
/* Appends the node's pods as JSON, separated by commas, also from objects already in out. */
void agent_write_pods(const struct agent *a, struct hk_buf *out);
/* The pod is on this node. */
bool agent_has(const struct agent *a, struct hk_str ns, struct hk_str name);
/* The namespace of the pod with that IPv4 address, in the byte order of the host; {0}: none has it. */
struct hk_str agent_find_namespace(const struct agent *a, uint32_t address);
/* The agent owns the node of that name. */
bool agent_has_node(const struct agent *a, struct hk_str name);
/* The node is registered, and every pod was processed once. */
bool agent_ready(const struct agent *a);

/* Accepts no more pods and deletes the unfinished ones through the API, with their grace periods,
 * so that their owners notice. For a ready agent. */
void agent_clear(struct agent *a);
/* No pod runs, and deleted pods have left nothing behind. */
bool agent_is_clear(const struct agent *a);
