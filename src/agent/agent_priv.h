// SPDX-License-Identifier: Apache-2.0
// The agent with its parts; agent.c wires them.
#pragma once

#include "agent/agent.h"
#include "agent/leftovers.h"
#include "agent/node/nodes.h"
#include "agent/pod/pods.h"
#include "agent/serve/serve.h"
#include "api/feed.h"

struct agent_end {
    uint64_t id;
    struct runtime_end end; /* owns its message */
};

struct agent {
    struct host host;
    struct nodes nodes;
    struct pods pods;
    struct feed feed; /* of pods */
    struct volume_local *local;
    struct disk *disk;
    struct leftovers leftovers;
    struct serve serve;
    HK_VEC(struct agent_end) ends; /* reported by the runtime */
    bool listed;                   /* the list requested last has arrived */
    bool closed;                   /* accepts no more pods */
};
