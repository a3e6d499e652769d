// SPDX-License-Identifier: Apache-2.0
// A node, or a fleet of simulated ones: registers itself, reports that it lives, runs the pods
// bound to it through a runtime, and says how they fare. Everything goes through the port; the loop
// is the owner's.
#pragma once

#include "agent/runtime.h"
#include "api/port.h"

struct agent;
struct machine;
struct net_loop;
struct node_call;

/* Nodes that run nothing, all alike but for their zone: sim-00001 and so on. */
struct agent_fleet {
    uint32_t n;
    uint32_t zones; /* they are spread over so many; 0: they have none */
    bool beats;     /* they say regularly that they live, for servers that want to hear it */
};

struct agent_opts {
    struct port *port;
    bool shared_port; /* somebody else polls it */
    struct hk_clock *clock;
    struct hk_rand *rand;
    struct runtime *runtime;         /* borrowed */
    const char *api_host, *api_port; /* of the API as pods reach it; NULL: they are not told */
    const char *dir; /* where pods have their directories and logs; NULL: nowhere, for runtimes that
                      * run nothing */
    const char *memory_dir; /* for files of pods that are worth nothing once the machine has
                             * stopped; NULL: they are in the pods' directories */
    const char *node;       /* its name */
    /* Instead of one node, many; the runtime must be hollow. Borrowed for agent_new. */
    const struct agent_fleet *fleet;
    const char *address;   /* of the node, NULL: 127.0.0.1 */
    uint16_t serve_port;   /* where it answers for its pods; 0: nowhere */
    struct net_loop *loop; /* of probes over the network; NULL: such probes fail */
    /* What the node has, as ResourceLists; labels as an object. Borrowed for agent_new. */
    const struct json *capacity, *allocatable, *labels;
    const struct machine *machine; /* to be measured; NULL: the node is none */
    const char *image_roots;       /* file of lines "IMAGE DIRECTORY": roots to run in; or NULL */
};

struct agent *agent_new(const struct agent_opts *o);
/* Pods go on running: the next agent finds them. */
void agent_free(struct agent *a);
/* Does what can be done now; the monotonic time when it wants to be called again, INT64_MAX: when
 * port or runtime have news. */
int64_t agent_run(struct agent *a);
/* What the runtime's sink has to call; the end is acted on by the next agent_run. */
void agent_on_end(struct agent *a, uint64_t container, const struct runtime_end *end);
/* Answers a call about a pod of this node (serve of a node_api, with the agent as ctx). */
void agent_serve(void *ctx, const struct node_call *call);
/* Appends the pods of the node as JSON, with commas between them and behind what is there. */
void agent_write_pods(const struct agent *a, struct hk_buf *out);
/* That pod is here. */
bool agent_has(const struct agent *a, struct hk_str ns, struct hk_str name);
/* Registered, and every pod of the node looked at once. */
bool agent_ready(const struct agent *a);

/* Takes no more pods and deletes those that are not over, with their grace periods, so that their
 * owners know. For a ready agent. */
void agent_clear(struct agent *a);
/* Nothing of any pod runs, and what was deleted has left nothing behind. */
bool agent_is_clear(const struct agent *a);
