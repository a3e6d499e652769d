// SPDX-License-Identifier: Apache-2.0
// What a person at a terminal gets and a pipe does not: colours, and lines that are written again.
// Everything that prints for people asks here, so that a pipe always gets the same plain text.
#pragma once

#include "base/str.h"

struct term {
    bool is;     /* a terminal that can move its cursor: lines may be written again */
    bool colour; /* and nobody objects to colours: NO_COLOR, TERM=dumb */
    uint32_t columns, rows;
};

enum term_hue {
    TERM_PLAIN,
    TERM_BOLD,
    TERM_DIM,
    TERM_GOOD, /* it runs, it is done */
    TERM_WAIT, /* it waits, or is about to end */
    TERM_BAD,  /* it failed */
    TERM_INFO,
    TERM_NHUES
};

/* Of the descriptor, now. */
struct term term_of(int fd);
/* The text in that hue, plain without colours. */
void term_paint(const struct term *t, enum term_hue hue, struct hk_str text, struct hk_buf *out);
/* In one of several colours, the same for the same rank. */
void term_paint_rank(const struct term *t, uint32_t rank, struct hk_str text, struct hk_buf *out);
/* The hue of a phase of a job, pod, group, queue or flow. */
enum term_hue term_phase_hue(struct hk_str phase);
/* "[#####-----]" in that many columns, at least three. */
void term_gauge(const struct term *t, enum term_hue hue, int64_t done, int64_t of, uint32_t columns,
                struct hk_buf *out);
/* "[#####-----] 5/10" in that many columns, or as much of it as fits. */
void term_bar(const struct term *t, int64_t done, int64_t of, uint32_t columns, struct hk_buf *out);
/* Puts the cursor back to the first of the last n lines and clears from there; nothing without a
 * terminal. */
void term_rewind(const struct term *t, uint32_t n, struct hk_buf *out);
