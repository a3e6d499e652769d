// SPDX-License-Identifier: Apache-2.0
// This machine as a node: what it has, the process runtime, and the agent that runs pods with it.
#pragma once

#include "agent/agent.h"
#include "net/loop.h"

struct node {
    struct runtime *runtime;
    struct agent *agent;
    char *memory;      /* a directory that is gone when the machine stops, or NULL */
    char *runs, *nets; /* where it is remembered what runs; addresses and hosts files, or NULL */
};

struct node_opts {
    struct net_loop *loop;
    struct port *port;
    struct hk_clock *clock;
    struct hk_rand *rand;
    struct process_nursery *nursery; /* as in process_opts */
    const char *dir;                 /* the node keeps its state below */
    const char *name;                /* NULL: the host's */
    const char *image_roots;         /* or NULL */
};

/* The port is polled by somebody else. Fails when the directory cannot be made. */
int node_start(struct node *n, const struct node_opts *o, struct hk_err *err) HK_CHECKED;
/* Pods go on running. */
void node_end(struct node *n);
