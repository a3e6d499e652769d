// SPDX-License-Identifier: Apache-2.0
// Writes tables with aligned columns.
#include "sim/table.h"

static const char *const escapes[] = {
    [TABLE_PLAIN] = "",       [TABLE_BOLD] = "\033[1m", [TABLE_GOOD] = "\033[32m",
    [TABLE_BAD] = "\033[33m", [TABLE_DIM] = "\033[2m",
};

void table_style_on(enum table_style style, bool colour, struct hk_buf *out)
{
    if (colour) {
        hk_buf_adds(out, escapes[style]);
    }
}

void table_style_off(enum table_style style, bool colour, struct hk_buf *out)
{
    if (colour && style != TABLE_PLAIN) {
        hk_buf_adds(out, "\033[0m");
    }
}

void table_init(struct table *t, const char *headers)
{
    struct hk_str rest = hk_str(headers), part;

    *t = (struct table){0};
    while (hk_str_cut(&rest, ' ', &part)) {
        hk_vec_push(&t->cells, ((struct table_cell){part, TABLE_BOLD}));
        t->ncol++;
    }
}

void table_fini(struct table *t)
{
    hk_vec_fini(&t->cells);
    hk_arena_fini(&t->mem);
}

void table_add(struct table *t, enum table_style style, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    hk_vec_push(&t->cells, ((struct table_cell){hk_arena_str(&t->mem, hk_buf_str(&text)), style}));
}

/* Counts code points, not bytes: names may be UTF-8. */
static size_t width(struct hk_str s)
{
    size_t n = 0;

    for (size_t k = 0; k < s.n; k++) {
        n += ((unsigned char)s.s[k] & 0xc0) != 0x80;
    }
    return n;
}

static void sim_table_measure_columns(const struct table *t, size_t *widths)
{
    for (uint32_t k = 0; k < t->cells.len; k++) {
        const size_t w = width(t->cells.at[k].text);
        widths[k % t->ncol] = HK_MAX(widths[k % t->ncol], w);
    }
}

void table_write(const struct table *t, bool colour, struct hk_buf *out)
{
    HK_AUTO(hk_freep) size_t *widths = hk_zalloc_array(t->ncol, sizeof(*widths));

    sim_table_measure_columns(t, widths);
    for (uint32_t k = 0; k < t->cells.len; k++) {
        const struct table_cell *cell = &t->cells.at[k];
        const uint32_t col = k % t->ncol;

        hk_buf_adds(out, col == 0 ? "  " : "");
        table_style_on(cell->style, colour, out);
        hk_buf_addstr(out, cell->text);
        table_style_off(cell->style, colour, out);
        if (col + 1 < t->ncol) {
            hk_buf_addf(out, "%*s", (int)(widths[col] - width(cell->text)) + 2, "");
        } else {
            while (out->data[out->len - 1] == ' ') {
                out->len--; /* drop the padding before an empty last cell */
            }
            hk_buf_addc(out, '\n');
        }
    }
}
