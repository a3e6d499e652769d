// SPDX-License-Identifier: Apache-2.0
// Feature gates: Volcano's names and defaults, and --feature-gates as Kubernetes reads it.
#pragma once

#include "cli/option.h"

enum gate {
    GATE_CRON_VOLCANO_JOB_SUPPORT,
    GATE_CSI_STORAGE,
    GATE_POD_DISRUPTION_BUDGETS_SUPPORT,
    GATE_PRIORITY_CLASS,
    GATE_QUEUE_COMMAND_SYNC,
    GATE_RESOURCE_TOPOLOGY,
    GATE_SCHEDULING_GATES_QUEUE_ADMISSION,
    GATE_VOLCANO_JOB_SUPPORT,
    GATE_WORKLOAD_SUPPORT,
    NGATES,
};

struct gates {
    bool on[NGATES], told[NGATES];
};

struct gates gates_default(void);
/* Reads the value of --feature-gates, "NAME=BOOL,...", into a struct gates. */
option_call gates_parse;
