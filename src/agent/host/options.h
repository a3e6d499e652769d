// SPDX-License-Identifier: Apache-2.0
// The options of an agent (agent.h). The host keeps a copy, and every part of the agent reads it.
#pragma once

#include "agent/host/runtime.h"
#include "api/port.h"

struct machine;
struct net_loop;
struct services;

/* Simulated nodes, equal except for their zone: sim-00001 and so on. */
struct agent_fleet {
    uint32_t n;
    uint32_t zones; /* spread the nodes over this many; 0: none */
    bool beats;     /* send heartbeats, for servers that need them */
};

/* What a container runs in whose image is not in the store. */
enum agent_images {
    AGENT_IMAGES_MACHINE, /* the machine's own files */
    AGENT_IMAGES_STORE,   /* nothing: it waits */
    AGENT_IMAGES_PULL,    /* the image, which is pulled */
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
    const char *address;       /* of the node, NULL: 127.0.0.1 */
    int64_t lease_ns;          /* lease duration, renewed four times in it; 0: 40 s */
    uint16_t serve_port;       /* port of its kubelet API; 0: none */
    struct services *services; /* whose names pods find in their hosts files; NULL: none */
    const char *dns;           /* address of the cluster's DNS server; NULL: none */
    const char *domain;        /* of the cluster; NULL: cluster.local */
    struct net_loop *loop;     /* for network probes; NULL: they fail */
    /* What the node has, as ResourceLists; labels as an object. Borrowed by agent_new. */
    const struct json *capacity, *allocatable, *labels;
    const struct machine *machine; /* machine to measure; NULL: none */
    const char *record_dir;  /* stores the newest API revision seen; NULL: not stored, and unknown
                             * pods are always ended */
    bool end_unknown;        /* end unknown pods even when the API lost revisions */
    const char *image_roots; /* file of lines "IMAGE DIRECTORY": root file systems; or NULL */
    const char *images;      /* data directory with a store of images; NULL: none */
    enum agent_images image_policy;
    /* Directories hidden from every container, resolved, ended by NULL; or NULL. */
    const char *const *covered;
};
