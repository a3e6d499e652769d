// SPDX-License-Identifier: Apache-2.0
// Tables of colored cells: measures columns and writes rows.
#include "cli/grid.h"

#include "base/vec.h"

enum { GAP = 2 };

void grid_fini(struct grid *g)
{
    hk_free(g->cells);
    hk_arena_fini(&g->mem);
    *g = (struct grid){0};
}

void grid_clear(struct grid *g)
{
    g->len = 0;
    hk_arena_clear(&g->mem);
}

void grid_head(struct grid *g, const char *head, bool right)
{
    hk_assert(g->ncolumns < GRID_MAX_COLUMNS);
    g->heads[g->ncolumns] = head;
    g->right[g->ncolumns] = right;
    g->widths[g->ncolumns++] = strlen(head);
}

void grid_add(struct grid *g, struct hk_str text)
{
    if (g->len == g->cap) {
        g->cells = hk_vec_grow(g->cells, &g->cap, g->len + 1, sizeof(*g->cells));
    }
    g->cells[g->len++] = (struct grid_cell){
        .text = hk_arena_str(&g->mem, text.n > 0 ? text : HK_STR("-")), .hue = TERM_PLAIN};
}

void grid_addf(struct grid *g, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    grid_add(g, hk_buf_str(&text));
}

void grid_hue(struct grid *g, enum term_hue hue)
{
    g->cells[g->len - 1].hue = (uint8_t)hue;
}

void grid_passing(struct grid *g)
{
    g->cells[g->len - 1].passing = true;
}

uint32_t grid_rows(const struct grid *g)
{
    return g->len / g->ncolumns;
}

void grid_measure(struct grid *g)
{
    for (uint32_t i = 0; i < g->len; i++) {
        size_t *width = &g->widths[i % g->ncolumns];
        *width = HK_MAX(*width, g->cells[i].text.n);
    }
}

/* Writes a cell of a line that has `left` columns left; returns the columns left after it. */
static size_t write_cell(const struct grid *g, uint32_t column, struct hk_str text,
                         enum term_hue hue, size_t left, const struct term *t, struct hk_buf *out)
{
    const bool last = column + 1 == g->ncolumns;
    const size_t width = g->widths[column], pad = width > text.n ? width - text.n : 0;
    const size_t before = g->right[column] ? pad : 0;
    const size_t after = (last ? 0 : GAP) + (g->right[column] || last ? 0 : pad);

    if (before > 0) {
        hk_buf_addf(out, "%*s", (int)HK_MIN(before, left), "");
    }
    left -= HK_MIN(before, left);
    const struct hk_str shown = hk_str_head(text, left);
    if (shown.n > 0) {
        term_paint(t, hue, shown, out);
    }
    left -= HK_MIN(text.n, left);
    if (after > 0) {
        hk_buf_addf(out, "%*s", (int)HK_MIN(after, left), "");
    }
    return left - HK_MIN(after, left);
}

/* Removes blanks at the end of the line. */
static void end_line(struct hk_buf *out)
{
    while (out->len > 0 && out->data[out->len - 1] == ' ') {
        out->len--;
    }
    hk_buf_addc(out, '\n');
}

static size_t room(const struct term *t)
{
    return t->is ? t->columns : INT32_MAX;
}

void grid_write_head(const struct grid *g, const struct term *t, struct hk_buf *out)
{
    size_t left = room(t);

    for (uint32_t k = 0; k < g->ncolumns; k++) {
        left = write_cell(g, k, hk_str(g->heads[k]), TERM_BOLD, left, t, out);
    }
    end_line(out);
}

void grid_write_row(const struct grid *g, uint32_t row, const struct term *t, struct hk_buf *out)
{
    size_t left = room(t);

    for (uint32_t k = 0; k < g->ncolumns; k++) {
        const struct grid_cell *c = &g->cells[row * g->ncolumns + k];
        left = write_cell(g, k, c->text, c->hue, left, t, out);
    }
    end_line(out);
}

void grid_write(struct grid *g, const struct term *t, struct hk_buf *out)
{
    grid_measure(g);
    grid_write_head(g, t, out);
    for (uint32_t row = 0; row < grid_rows(g); row++) {
        grid_write_row(g, row, t, out);
    }
}

uint64_t grid_row_hash(const struct grid *g, uint32_t row)
{
    uint64_t h = 0;

    for (uint32_t k = 0; k < g->ncolumns; k++) {
        const struct grid_cell *c = &g->cells[row * g->ncolumns + k];
        h = c->passing ? h : hk_hash(c->text.s, c->text.n, h + k);
    }
    return h;
}
