// SPDX-License-Identifier: Apache-2.0
// The search of gangpreempt and gangreclaim: domain by domain, adds bundles of victims until the
// whole starving job fits.
#pragma once

#include "scheduler/session.h"

struct gang_evict_args {
    int64_t max_domains;
    bool allow_whole;
};

enum { GANG_EVICT_NOPT = 3 };
extern const struct opt gang_evict_opts[GANG_EVICT_NOPT];

void gang_evict_run(struct session *ssn, enum evict_kind kind, const struct gang_evict_args *args);
