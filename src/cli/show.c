// SPDX-License-Identifier: Apache-2.0
// Formats times and ages, and tables with columns as wide as their content.
#include "base/vec.h"
#include "cli/show_priv.h"
#include "codec/timefmt.h"

#include <time.h>

#define S_NS ((int64_t)1000 * 1000 * 1000)

struct hk_str show_label(const struct json *obj, const char *map, const char *key)
{
    return json_str_field(json_get(json_get(obj, "metadata"), map), key);
}

void show_cell(struct hk_str text, size_t width, struct hk_buf *out)
{
    hk_buf_addstr(out, text);
    if (text.n < width) {
        hk_buf_addf(out, "%*s", (int)(width - text.n), "");
    }
}

void show_number(int64_t n, size_t width, struct hk_buf *out)
{
    hk_buf_addf(out, "%-*lld", (int)width, (long long)n);
}

/* ---- times ---- */

static bool read_stamp(const struct json *stamp, int64_t *ret_ns)
{
    return json_is(stamp, JSON_STRING) &&
           time_parse(json_str(stamp, HK_STR("")), ret_ns, NULL) == 0;
}

/* strftime format, in the local zone; none: text for no time. */
static void write_local(const struct json *stamp, const char *format, const char *none,
                        struct hk_buf *out)
{
    char text[64];
    struct tm tm;
    int64_t ns;

    if (!read_stamp(stamp, &ns)) {
        hk_buf_adds(out, none);
        return;
    }
    const time_t s = (time_t)(ns / S_NS);
    if (localtime_r(&s, &tm)) {
        hk_buf_add(out, text, strftime(text, sizeof(text), format, &tm));
    }
}

void show_date(const struct json *stamp, struct hk_buf *out)
{
    write_local(stamp, "%Y-%m-%d", "0001-01-01", out);
}

void show_time(const struct json *stamp, struct hk_buf *out)
{
    write_local(stamp, "%Y-%m-%d %H:%M:%S %z %Z", "0001-01-01 00:00:00 +0000 UTC", out);
}

void show_age(const struct json *stamp, int64_t now_ns, struct hk_buf *out)
{
    int64_t ns;

    if (!read_stamp(stamp, &ns)) {
        hk_buf_adds(out, "<unknown>");
        return;
    }
    duration_write_human(now_ns - ns, out);
}

/* ---- tables ---- */

void show_table_add(struct show_table *t, struct hk_str cell)
{
    if (t->len == t->cap) {
        t->cells = hk_vec_grow(t->cells, &t->cap, t->len + 1, sizeof(*t->cells));
    }
    t->cells[t->len++] = hk_arena_str(&t->mem, cell);
}

void show_table_write(const struct show_table *t, struct hk_buf *out)
{
    size_t widths[SHOW_MAX_COLUMNS];

    hk_assert(t->ncolumns > 0 && t->ncolumns <= SHOW_MAX_COLUMNS);
    for (uint32_t k = 0; k < t->ncolumns; k++) {
        widths[k] = strlen(t->heads[k]) + t->head_room;
    }
    for (uint32_t i = 0; i < t->len; i++) {
        size_t *width = &widths[i % t->ncolumns];
        *width = HK_MAX(*width, t->cells[i].n + t->room);
    }
    for (uint32_t k = 0; k < t->ncolumns; k++) {
        show_cell(hk_str(t->heads[k]), widths[k], out);
    }
    for (uint32_t i = 0; i < t->len; i++) {
        hk_buf_adds(out, i % t->ncolumns == 0 ? "\n" : "");
        show_cell(t->cells[i], widths[i % t->ncolumns], out);
    }
    hk_buf_addc(out, '\n');
}

void show_table_fini(struct show_table *t)
{
    hk_free(t->cells);
    hk_arena_fini(&t->mem);
}
