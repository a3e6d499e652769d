// SPDX-License-Identifier: Apache-2.0
// Simulated nodes, in addition to this machine or instead of it: their options, their resources,
// the model of pod behavior, and the one agent that manages all of them.
#pragma once

#include "agent/agent.h"
#include "agent/simulate/model.h"
#include "cli/verb.h"
#include "codec/quantity.h"

struct sim_nodes_opts {
    struct agent_fleet fleet;
    struct quantity cpu, memory, disk;
    int64_t gpus, pods;
    struct simulate_model model;
    /* Not on the command line: as in agent_opts. */
    const char *address;
    uint16_t serve_port;
    int64_t lease_ns;
};

/* Options, for the table of a verb. */
extern const struct option_row sim_nodes_options[];

/* A section of the verb's manual page. */
#define SIM_NODES_HELP                                                                             \
    "SIMULATED NODES\n"                                                                            \
    "       A container on a simulated node runs for a while and ends. Nothing is executed;\n"     \
    "       images, commands and volumes have no effect. A model (--sim-model) says how long it\n" \
    "       runs and how it ends:\n"                                                               \
    "           duration=D   how long a container runs (default 10s)\n"                            \
    "           delay=D      how long it takes to start (default 0s)\n"                            \
    "           fail=P       the share of containers that fail, from 0 to 1 (default 0)\n"         \
    "           oom=P        the share of those that run out of memory (default 0)\n"              \
    "           exit-code=N  the exit code of the others that fail (default 1)\n"                  \
    "       D is a time (90s), 'forever', uniform:MIN-MAX, exp:MEAN or lognormal:MEDIAN:SIGMA.\n"  \
    "       Annotations of a pod override the model: sim.hekla.sh/duration and /delay take a D;\n" \
    "       /exit-code a number, for as many tries as /failures says, or for all; /oom and\n"      \
    "       /ignore-term 'true'; /error the text of why it cannot start.\n"                        \
    "       After a restart of this program containers continue where they were. Without the\n"    \
    "       option --sim-nodes, nodes stay registered and their pods as they are.\n\n"

/* Call before the options are parsed: the model has its own defaults. */
struct sim_nodes_opts sim_nodes_opts_default(void);

struct sim_nodes {
    struct simulate_model model;
    struct runtime *runtime;
    struct agent *agent; /* NULL: no simulated nodes */
};

/* Does nothing if o asks for no nodes. The caller polls the port. */
void sim_nodes_start(struct sim_nodes *s, const struct sim_nodes_opts *o, struct port *port,
                     struct hk_clock *clock, struct hk_rand *rand);
/* Like agent_run. */
int64_t sim_nodes_run(struct sim_nodes *s);
void sim_nodes_end(struct sim_nodes *s);
