// SPDX-License-Identifier: Apache-2.0
// Scenarios: a cluster, some cycles and what is expected of them, one readable line each. Lines
// become API objects and go through ingest, so a scenario tests the whole path. The language is
// described in docs/scn.md.
#pragma once

#include "base/err.h"
#include "base/str.h"

struct scn_opts {
    uint32_t max_objects; /* a scenario may make */
    uint32_t max_cycles;  /* it may run */
};
#define SCN_OPTS_DEFAULT ((struct scn_opts){.max_objects = 100000, .max_cycles = 10000})

enum { SCN_MAX_BYTES = 8 << 20 };

struct scn_tally {
    uint32_t run, failed;
};

/* Runs every scenario of the text and appends one TAP point each; a text that cannot be parsed is
 * one failed point. Each scenario runs twice, the second time without the scheduler's shortcuts,
 * and must decide the same. */
void scn_run(const char *path, struct hk_str text, const struct scn_opts *o,
             struct scn_tally *tally, struct hk_buf *out);
