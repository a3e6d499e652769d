// SPDX-License-Identifier: Apache-2.0
// Simulated nodes beside this machine, or instead of it: their options, what they have, the model
// of what becomes of pods, and the one agent that speaks for all of them.
#pragma once

#include "agent/agent.h"
#include "agent/simulate_model.h"
#include "cmd/verb.h"

struct sim_nodes_opts {
    struct agent_fleet fleet;
    const char *cpu, *memory; /* quantities */
    int64_t gpus, pods;
    struct simulate_model model;
    /* Not on the command line: as of agent_opts. */
    const char *address;
    uint16_t serve_port;
};

#define SIM_NODES_OPTIONS                                                                          \
    {0, "sim-nodes", "N", NULL,                                                                    \
     "Add N nodes that only seem to run pods, named sim-00001 and so on, with the label "          \
     "type=simulated. Nodes of an earlier, larger N are removed."},                                \
        {0, "sim-cpu", "QUANTITY", NULL, "What each simulated node has (default 32)."},            \
        {0, "sim-memory", "QUANTITY", NULL, "What each simulated node has (default 128Gi)."},      \
        {0, "sim-gpus", "N", NULL, "How many nvidia.com/gpu each has (default none)."},            \
        {0, "sim-pods", "N", NULL, "How many pods each takes (default 110)."},                     \
        {0, "sim-zones", "N", NULL,                                                                \
         "Spread simulated nodes over zones zone-1 to zone-N, as topology.kubernetes.io/zone "     \
         "says (default: no zones)."},                                                             \
        {0, "sim-model", "SPEC", NULL,                                                             \
         "What becomes of simulated containers: KEY=VALUE with commas between, or the name of a "  \
         "file of such lines. See SIMULATED NODES."},                                              \
    {                                                                                              \
        0, "sim-seed", "N", NULL,                                                                  \
            "Where the model's chance begins (default 1). The same seed gives a pod of the same "  \
            "name the same fate."                                                                  \
    }

/* A section of the verb's manual. */
#define SIM_NODES_HELP                                                                             \
    "SIMULATED NODES\n"                                                                            \
    "       A container on a simulated node runs for a while and ends; nothing is executed, and\n" \
    "       images, commands and volumes are not looked at. A model (--sim-model) says for how\n"  \
    "       long and how well:\n"                                                                  \
    "           duration=D   how long a container runs (default 10s)\n"                            \
    "           delay=D      how long it takes to start (default 0s)\n"                            \
    "           fail=P       the part of containers that fail, from 0 to 1 (default 0)\n"          \
    "           oom=P        the part of those that run out of memory (default 0)\n"               \
    "           exit-code=N  how the others fail (default 1)\n"                                    \
    "       D is a time (90s), 'forever', uniform:MIN-MAX, exp:MEAN or lognormal:MEDIAN:SIGMA.\n"  \
    "       Annotations of a pod stand above the model: sim.hekla.sh/duration and /delay take a\n" \
    "       D; /exit-code a number, for as many tries as /failures says, or all; /oom and\n"       \
    "       /ignore-term 'true'; /error a text that says why it cannot start.\n"                   \
    "       After a restart of this program containers go on where they were. Without\n"           \
    "       --sim-nodes the nodes stay registered, and their pods as they are.\n\n"

struct sim_nodes_opts sim_nodes_opts_default(void);
/* Takes the value of one of those; false when the row is none of them. *ret is as verb_take. */
bool sim_nodes_take(struct sim_nodes_opts *o, const struct option_row *row, const char *value,
                    int *ret, struct hk_err *err);

struct sim_nodes {
    struct simulate_model model;
    struct runtime *runtime;
    struct agent *agent; /* NULL: there are none */
};

/* Does nothing when o asks for none. The port is polled by somebody else. */
void sim_nodes_start(struct sim_nodes *s, const struct sim_nodes_opts *o, struct port *port,
                     struct hk_clock *clock, struct hk_rand *rand);
/* As agent_run. */
int64_t sim_nodes_run(struct sim_nodes *s);
void sim_nodes_end(struct sim_nodes *s);
