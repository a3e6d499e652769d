// SPDX-License-Identifier: Apache-2.0
// Text tables: columns as wide as their content, two blanks apart, with hues on a terminal and as
// plain text in a pipe. Widths never shrink, so that later rows align with earlier ones.
#pragma once

#include "base/arena.h"
#include "cli/term.h"

enum { GRID_MAX_COLUMNS = 16 };

struct grid_cell {
    struct hk_str text;
    uint8_t hue;
    bool passing; /* changes with time alone */
};

/* Zero it to initialise. */
struct grid {
    const char *heads[GRID_MAX_COLUMNS];
    bool right[GRID_MAX_COLUMNS]; /* right-aligned, for numbers */
    size_t widths[GRID_MAX_COLUMNS];
    uint32_t ncolumns;
    struct grid_cell *cells;
    uint32_t len, cap;
    struct hk_arena mem;
};

void grid_fini(struct grid *g);
/* Adds a column. */
void grid_head(struct grid *g, const char *head, bool right);
/* Adds the next cell, row by row; an empty one is shown as "-". */
void grid_add(struct grid *g, struct hk_str text);
void grid_addf(struct grid *g, const char *fmt, ...) HK_PRINTF(2, 3);
/* Set attributes of the last cell. */
void grid_hue(struct grid *g, enum term_hue hue);
void grid_passing(struct grid *g);
/* Removes the rows; keeps columns and widths. */
void grid_clear(struct grid *g);

uint32_t grid_rows(const struct grid *g);
/* Computes widths; call before writing rows. */
void grid_measure(struct grid *g);
/* Lines have no trailing blanks; on a terminal they are cut at its width. */
void grid_write_head(const struct grid *g, const struct term *t, struct hk_buf *out);
void grid_write_row(const struct grid *g, uint32_t row, const struct term *t, struct hk_buf *out);
/* Writes head and rows. */
void grid_write(struct grid *g, const struct term *t, struct hk_buf *out);
/* Hash of all cells of the row that are not `passing`. */
uint64_t grid_row_hash(const struct grid *g, uint32_t row);
