// SPDX-License-Identifier: Apache-2.0
// A node, or a fleet of simulated ones: registers itself, sends heartbeats, runs the pods bound to
// it through a runtime, and reports their status. It uses only the port; the owner runs the loop.
#pragma once

#include "agent/runtime.h"
#include "api/port.h"

struct agent;
struct machine;
struct net_loop;
struct node_call;

/* Simulated nodes, equal except for their zone: sim-00001 and so on. */
struct agent_fleet {
    uint32_t n;
    uint32_t zones; /* spread the nodes over this many; 0: none */
    bool beats;     /* send heartbeats, for servers that need them */
};

struct agent_opts {
    struct port *port;
    bool shared_port; /* the caller polls it */
    struct hk_clock *clock;
    struct hk_rand *rand;
    struct runtime *runtime;         /* borrowed */
    const char *api_host, *api_port; /* the API's address for pods; NULL: none */
    const char *dir;        /* for directories and logs of pods; NULL: none, for hollow runtimes */
    const char *memory_dir; /* pod files not needed after a reboot; NULL: in pod directories */
    const char *node;       /* name of the node */
    /* Many nodes instead of one; the runtime must be hollow. Borrowed by agent_new. */
    const struct agent_fleet *fleet;
    const char *address;   /* of the node, NULL: 127.0.0.1 */
    int64_t lease_ns;      /* lease duration, renewed four times in it; 0: 40 s */
    uint16_t serve_port;   /* port of its kubelet API; 0: none */
    struct net_loop *loop; /* for network probes; NULL: they fail */
    /* What the node has, as ResourceLists; labels as an object. Borrowed by agent_new. */
    const struct json *capacity, *allocatable, *labels;
    const struct machine *machine; /* machine to measure; NULL: none */
    const char *record_dir;  /* stores the newest API revision seen; NULL: not stored, and unknown
                             * pods are always ended */
    bool end_unknown;        /* end unknown pods even when the API lost revisions */
    const char *image_roots; /* file of lines "IMAGE DIRECTORY": root file systems; or NULL */
    /* Directories hidden from every container, resolved, ended by NULL; or NULL. */
    const char *const *covered;
};

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
/* The agent owns the node of that name. */
bool agent_has_node(const struct agent *a, struct hk_str name);
/* The node is registered, and every pod was processed once. */
bool agent_ready(const struct agent *a);

/* Accepts no more pods and deletes the unfinished ones through the API, with their grace periods,
 * so that their owners notice. For a ready agent. */
void agent_clear(struct agent *a);
/* No pod runs, and deleted pods have left nothing behind. */
bool agent_is_clear(const struct agent *a);
