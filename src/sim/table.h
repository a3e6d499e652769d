// SPDX-License-Identifier: Apache-2.0
// Text tables: columns as wide as their widest cell, separated by two blanks. The last column is
// not padded, so long messages are fine.
#pragma once

#include "base/arena.h"
#include "base/vec.h"

enum table_style { TABLE_PLAIN, TABLE_BOLD, TABLE_GOOD, TABLE_BAD, TABLE_DIM };

struct table_cell {
    struct hk_str text;
    enum table_style style;
};

struct table {
    struct hk_arena mem;
    uint32_t ncol;
    HK_VEC(struct table_cell) cells; /* row by row, the header first */
};

/* Headers separated by blanks: "NAME CPU MEMORY". */
void table_init(struct table *t, const char *headers);
void table_fini(struct table *t);
/* Adds the next cell; every ncol cells form a row. */
void table_add(struct table *t, enum table_style style, const char *fmt, ...) HK_PRINTF(3, 4);
void table_write(const struct table *t, bool colour, struct hk_buf *out);

/* Start and end a style; write nothing without colour. */
void table_style_on(enum table_style style, bool colour, struct hk_buf *out);
void table_style_off(enum table_style style, bool colour, struct hk_buf *out);
