// SPDX-License-Identifier: Apache-2.0
// Tables for people: columns as wide as what is in them and two blanks apart, hues on a terminal,
// the same text without hues in a pipe. Widths never shrink, so that rows that are written later
// stand below the ones before.
#pragma once

#include "base/arena.h"
#include "cli/term.h"

enum { GRID_MAX_COLUMNS = 16 };

struct grid_cell {
    struct hk_str text;
    uint8_t hue;
    bool passing; /* changes by itself as time goes by */
};

/* Ready when zeroed. */
struct grid {
    const char *heads[GRID_MAX_COLUMNS];
    bool right[GRID_MAX_COLUMNS]; /* numbers */
    size_t widths[GRID_MAX_COLUMNS];
    uint32_t ncolumns;
    struct grid_cell *cells;
    uint32_t len, cap;
    struct hk_arena mem;
};

void grid_fini(struct grid *g);
/* One more column. */
void grid_head(struct grid *g, const char *head, bool right);
/* The next cell, row by row; an empty one shows as "-". */
void grid_add(struct grid *g, struct hk_str text);
void grid_addf(struct grid *g, const char *fmt, ...) HK_PRINTF(2, 3);
/* About the last cell. */
void grid_hue(struct grid *g, enum term_hue hue);
void grid_passing(struct grid *g);
/* Without rows, columns and widths kept. */
void grid_clear(struct grid *g);

uint32_t grid_rows(const struct grid *g);
/* Before rows are written. */
void grid_measure(struct grid *g);
/* Lines end with the last cell; on a terminal they are cut at its edge. */
void grid_write_head(const struct grid *g, const struct term *t, struct hk_buf *out);
void grid_write_row(const struct grid *g, uint32_t row, const struct term *t, struct hk_buf *out);
/* All of it. */
void grid_write(struct grid *g, const struct term *t, struct hk_buf *out);
/* Of everything in the row that does not pass. */
uint64_t grid_row_hash(const struct grid *g, uint32_t row);
