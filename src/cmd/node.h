// SPDX-License-Identifier: Apache-2.0
// This machine as a node: what it has, the process runtime, and the agent that runs pods with it.
#pragma once

#include "agent/agent.h"
#include "agent/process_nursery.h"
#include "cmd/verb.h"
#include "net/loop.h"

/* What is said about it on a command line. */
struct node_flags {
    const char *name;        /* NULL: the host's */
    const char *image_roots; /* or NULL */
    int64_t pod_max_pids;    /* 0: a share of the machine's */
    bool no_node, plain;
};

/* Rows of a verb's table. */
#define NODE_OPTIONS(no_node_more)                                                                 \
    {'n', "node", "NAME", NULL, "The name of this machine as a node (default: its host name)."},   \
        {0, "no-node", NULL, NULL, "Run no pods on this machine." no_node_more},                   \
        {0, "image-roots", "FILE", NULL,                                                           \
         "Root file systems for images: lines of an image and a directory. Containers of other "   \
         "images run in this machine's own."},                                                     \
        {0, "pod-max-pids", "N", NULL,                                                             \
         "How many processes and threads each pod may have, so that none can take them all "       \
         "(default: a quarter of what the machine allows for each; under cgroups of version 1, "   \
         "half of it for all together). Needs the cgroup controller of pids."},                    \
    {                                                                                              \
        0, "no-isolation", NULL, NULL,                                                             \
            "Run containers as plain processes, without namespaces and control groups, as is "     \
            "done where neither is permitted. Pods say in their status what does not hold then."   \
    }
/* Takes the value of one of those; false when the row is none of them. *ret is as verb_take. */
bool node_take(struct node_flags *f, const struct option_row *row, const char *value, int *ret,
               struct hk_err *err);
/* What the API would refuse later, over and over. */
int node_check(const struct node_flags *f, struct hk_err *err) HK_CHECKED;
/* The name it has then. */
const char *node_name(const struct node_flags *f, struct hk_arena *a);

struct node {
    struct runtime *runtime;
    struct agent *agent;
    char *nets; /* a directory in memory for addresses and hosts files, or NULL */
};

struct node_opts {
    struct net_loop *loop;
    struct nursery *nursery;
    struct port *port;
    struct hk_clock *clock;
    struct hk_rand *rand;
    const char *api_host; /* where pods reach the API; NULL: they are not told */
    uint16_t api_port;
    const char *dir; /* the node keeps its state below */
    const struct node_flags *flags;
    const char *address; /* of the machine, NULL: 127.0.0.1 */
    uint16_t serve_port; /* where it answers for its pods; 0: nowhere */
};

/* The port is polled by somebody else. Fails when the directory cannot be made. */
int node_start(struct node *n, const struct node_opts *o, struct hk_err *err) HK_CHECKED;
/* Pods go on running. */
void node_end(struct node *n);
