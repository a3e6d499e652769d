// SPDX-License-Identifier: Apache-2.0
// Scenarios: a cluster, some cycles and their expected results, one readable line each. Lines
// become API objects and go through ingest, so a scenario tests the whole path. docs/scn.md
// describes the language.
#pragma once

#include "base/err.h"
#include "base/str.h"

struct scn_opts {
    uint32_t max_objects; /* most objects of a scenario */
    uint32_t max_cycles;  /* most cycles of a scenario */
};
#define SCN_OPTS_DEFAULT ((struct scn_opts){.max_objects = 100000, .max_cycles = 10000})

enum { SCN_MAX_BYTES = 8 << 20 };

struct scn_tally {
    uint32_t run, failed;
};

/* Runs every scenario of the text and appends one TAP point each; an invalid text is one failed
 * point. Each scenario runs twice, the second time without the scheduler's shortcuts, and both runs
 * must decide the same. */
void scn_run(const char *path, struct hk_str text, const struct scn_opts *o,
             struct scn_tally *tally, struct hk_buf *out);
