// SPDX-License-Identifier: Apache-2.0
// Terminal features: colours, and lines that are redrawn. All output for users goes through here,
// so that a pipe always gets the same plain text.
#pragma once

#include "base/str.h"

struct term {
    bool is;     /* a terminal that can move its cursor: lines can be redrawn */
    bool colour; /* and colours are not disabled by NO_COLOR or TERM=dumb */
    uint32_t columns, rows;
};

enum term_hue {
    TERM_PLAIN,
    TERM_BOLD,
    TERM_DIM,
    TERM_GOOD, /* running, done */
    TERM_WAIT, /* waiting, ending */
    TERM_BAD,  /* failed */
    TERM_INFO,
    TERM_NHUES
};

/* The current properties of the descriptor. */
struct term term_of(int fd);
/* Writes the text in that hue; plain without colours. */
void term_paint(const struct term *t, enum term_hue hue, struct hk_str text, struct hk_buf *out);
/* The same in one of several colours, chosen by rank. */
void term_paint_rank(const struct term *t, uint32_t rank, struct hk_str text, struct hk_buf *out);
/* The hue of a phase of a job, pod, group, queue or flow. */
enum term_hue term_phase_hue(struct hk_str phase);
/* "[#####-----]" in `columns` columns, at least three. */
void term_gauge(const struct term *t, enum term_hue hue, int64_t done, int64_t of, uint32_t columns,
                struct hk_buf *out);
/* "[#####-----] 5/10" in `columns` columns, or the part that fits. */
void term_bar(const struct term *t, int64_t done, int64_t of, uint32_t columns, struct hk_buf *out);
/* Moves the cursor to the first of the last n lines and clears from there; nothing without a
 * terminal. */
void term_rewind(const struct term *t, uint32_t n, struct hk_buf *out);
