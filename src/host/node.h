// SPDX-License-Identifier: Apache-2.0
// This machine as a node: its resources, the process runtime, and the agent that runs pods with it.
#pragma once

#include "agent/agent.h"
#include "agent/process/spawner.h"
#include "cli/verb.h"
#include "codec/quantity.h"
#include "net/loop.h"

/* Command line options of the node. */
struct node_flags {
    const char *name;        /* NULL: the host name */
    const char *image_roots; /* or NULL */
    enum agent_images images;
    int64_t pod_max_pids;    /* 0: a share of the machine's limit */
    struct quantity log_max; /* bytes per container log */
    bool no_node, plain, end_unknown;
};

/* The options, for the table of a verb. The meaning of --no-node differs between verbs. */
extern const struct option_row node_name_options[], node_pod_options[];
#define NODE_OPTIONS(S, F, no_node_more)                                                           \
    ROW_INCLUDE(S, F, node_name_options),                                                          \
        ROW_FLAG(0, "no-node", S, F.no_node, "Run no pods on this machine." no_node_more),         \
        ROW_INCLUDE(S, F, node_pod_options)
/* Checks what the API would refuse later, again and again. */
int node_check(const struct node_flags *f, struct hk_err *err) HK_CHECKED;
/* The resulting name. */
const char *node_name(const struct node_flags *f, struct hk_arena *a);

struct node {
    struct runtime *runtime;
    struct agent *agent;
    char *nets; /* a directory in memory for addresses and hosts files, or NULL */
};

struct node_opts {
    struct net_loop *loop;
    struct spawner *spawner;
    struct port *port;
    struct hk_clock *clock;
    struct hk_rand *rand;
    const char *api_host; /* the API's address for pods; NULL: not passed to them */
    uint16_t api_port;
    const char *dir;           /* the node's state is below it */
    struct services *services; /* names for pods; NULL: none */
    const char *dns, *domain;  /* as in agent_opts */
    const struct node_flags *flags;
    const char *address;     /* of the machine; NULL: 127.0.0.1 */
    uint16_t serve_port;     /* port for logs and commands of its pods; 0: none */
    const char *credentials; /* a file that no container may read, or NULL */
    int64_t lease_ns;        /* as in agent_opts */
};

/* The caller polls the port. Fails if the directory cannot be created. */
int node_start(struct node *n, const struct node_opts *o, struct hk_err *err) HK_CHECKED;
/* Pods keep running. */
void node_end(struct node *n);
