// SPDX-License-Identifier: Apache-2.0
// This machine as a node: what it has, the process runtime, and the agent that runs pods with it.
#pragma once

#include "agent/agent.h"
#include "agent/process_nursery.h"
#include "net/loop.h"

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
    const char *dir;         /* the node keeps its state below */
    const char *name;        /* NULL: the host's */
    const char *image_roots; /* or NULL */
    int64_t pod_max_pids;    /* 0: a share of the machine's */
    bool plain;              /* no namespaces and no control groups, as if neither were permitted */
};

/* The port is polled by somebody else. Fails when the directory cannot be made. */
int node_start(struct node *n, const struct node_opts *o, struct hk_err *err) HK_CHECKED;
/* Pods go on running. */
void node_end(struct node *n);
