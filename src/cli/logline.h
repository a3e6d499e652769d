// SPDX-License-Identifier: Apache-2.0
// Lines of logs with the time in front, as servers send them on request, and as people read them
// when several containers speak at once.
#pragma once

#include "cli/term.h"

struct logline {
    int64_t ns; /* its time */
    struct hk_str stamp, text;
};

/* "STAMP TEXT" without line end; a line without a time is as old as the one before it. */
void logline_parse(struct hk_str line, int64_t before_ns, struct logline *ret);

struct logline_how {
    struct term term;
    bool prefix, stamps;
};

/* "[prefix] stamp text" and a line end. A rank has a colour. */
void logline_write(const struct logline *l, struct hk_str prefix, uint32_t rank,
                   const struct logline_how *how, struct hk_buf *out);
/* The pod's name without the job's in front: "task-0". */
struct hk_str logline_prefix(struct hk_str job, struct hk_str pod);
