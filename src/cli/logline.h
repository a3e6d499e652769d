// SPDX-License-Identifier: Apache-2.0
// Parses log lines that start with a time, as servers send them on request, and formats lines of
// several containers for reading.
#pragma once

#include "cli/term.h"

struct logline {
    int64_t ns; /* time of the line */
    struct hk_str stamp, text;
};

/* Parses "STAMP TEXT" without line end; a line without a time gets before_ns. */
void logline_parse(struct hk_str line, int64_t before_ns, struct logline *ret);

struct logline_how {
    struct term term;
    bool prefix, stamps;
};

/* Writes "[prefix] stamp text" and a line end. rank selects the colour. */
void logline_write(const struct logline *l, struct hk_str prefix, uint32_t rank,
                   const struct logline_how *how, struct hk_buf *out);
/* The pod's name without the job's name: "task-0". */
struct hk_str logline_prefix(struct hk_str job, struct hk_str pod);
