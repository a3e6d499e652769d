// SPDX-License-Identifier: Apache-2.0
// string.format(list): %s %d %f %e %x %X %o %b and %%, as the strings extension defines them.
#include "cel/cel_priv.h"

#include <math.h>

struct format {
    struct cel_run *r;
    struct hk_buf out;
};

static int format_text(struct format *f, struct cel_value v, uint32_t depth);

static int format_add(struct format *f, const struct hk_buf *text)
{
    return text_add(f->r, &f->out, hk_buf_str(text));
}

static int format_adds(struct format *f, const char *s)
{
    return text_add(f->r, &f->out, hk_str(s));
}

/* NaN and the infinities have names of their own here. */
static const char *format_odd_double(double d)
{
    return isnan(d) ? "NaN" : isinf(d) ? (d > 0 ? "Infinity" : "-Infinity") : NULL;
}

/* ---- %s ---- */

static int format_list(struct format *f, const struct cel_list *l, uint32_t depth)
{
    int rc = format_adds(f, "[");

    for (uint32_t i = 0; i < l->len && rc == 0; i++) {
        rc = i > 0 ? format_adds(f, ", ") : 0;
        if (rc == 0) {
            rc = format_text(f, cel_list_at(l, i, f->r->a), depth + 1);
        }
    }
    return rc < 0 ? rc : format_adds(f, "]");
}

struct format_row {
    struct hk_str key;
    struct cel_value value;
};

static int format_compare_rows(const void *a, const void *b)
{
    return hk_str_cmp(((const struct format_row *)a)->key, ((const struct format_row *)b)->key);
}

/* A key as %s prints it. */
static int format_key(struct format *f, struct cel_value key, uint32_t depth, struct hk_str *ret)
{
    struct format own = {.r = f->r};
    const int rc = format_text(&own, key, depth);

    *ret = hk_arena_str(f->r->a, hk_buf_str(&own.out));
    hk_buf_fini(&own.out);
    return rc;
}

static int format_row(struct format *f, const struct format_row *row, bool first, uint32_t depth)
{
    int rc = first ? 0 : format_adds(f, ", ");

    if (rc < 0) {
        return rc;
    }
    rc = text_add(f->r, &f->out, row->key);
    if (rc < 0) {
        return rc;
    }
    rc = format_adds(f, ": ");
    return rc < 0 ? rc : format_text(f, row->value, depth + 1);
}

/* Sorted by key, so that the text does not depend on the order in the map. */
static int format_map(struct format *f, const struct cel_map *m, uint32_t depth)
{
    int rc = cel_spend(f->r, m->len);
    struct format_row *rows;

    if (rc < 0) {
        return rc;
    }
    rows = hk_arena_array(f->r->a, m->len, sizeof(*rows));
    for (uint32_t i = 0; i < m->len && rc == 0; i++) {
        const struct cel_entry e = cel_map_at(m, i, f->r->a);
        rows[i].value = e.value;
        rc = format_key(f, e.key, depth + 1, &rows[i].key);
    }
    if (rc == 0) {
        qsort(rows, m->len, sizeof(*rows), format_compare_rows);
        rc = format_adds(f, "{");
    }
    for (uint32_t i = 0; i < m->len && rc == 0; i++) {
        rc = format_row(f, &rows[i], i == 0, depth);
    }
    return rc < 0 ? rc : format_adds(f, "}");
}

static int format_plain(struct format *f, struct cel_value v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    switch (v.kind) {
    case CEL_NULL:
        return format_adds(f, "null");
    case CEL_BOOL:
        return format_adds(f, v.b ? "true" : "false");
    case CEL_INT:
        hk_buf_addf(&text, "%lld", (long long)v.i);
        break;
    case CEL_UINT:
        hk_buf_addf(&text, "%llu", (unsigned long long)v.u);
        break;
    case CEL_DOUBLE:
        if (format_odd_double(v.d)) {
            return format_adds(f, format_odd_double(v.d));
        }
        cel_double_write(v.d, &text);
        break;
    case CEL_TIMESTAMP:
        cel_time_write(v.t, &text);
        break;
    case CEL_DURATION:
        cel_duration_write(v.i, &text);
        break;
    case CEL_TYPE:
        return format_adds(f, type_kind_name((enum cel_kind)v.i));
    default:
        return cel_error(f->r,
                         "error during formatting: string clause can only be used on strings, "
                         "bools, bytes, ints, doubles, maps, lists, types, durations, and "
                         "timestamps, was given %s",
                         type_kind_name(v.kind));
    }
    return format_add(f, &text);
}

static int format_text(struct format *f, struct cel_value v, uint32_t depth)
{
    if (depth > CEL_HEIGHT_MAX) {
        return cel_error(f->r, "error during formatting: the value is nested too deep");
    }
    switch (v.kind) {
    case CEL_STRING:
    case CEL_BYTES:
        return text_add(f->r, &f->out, v.s);
    case CEL_LIST:
        return format_list(f, v.list, depth);
    case CEL_MAP:
        return format_map(f, v.map, depth);
    default:
        return format_plain(f, v);
    }
}

/* ---- numbers ---- */

static int format_refuse(struct format *f, const char *clause, struct cel_value v)
{
    return cel_error(f->r, "error during formatting: %s clause cannot be used on %s", clause,
                     type_kind_name(v.kind));
}

static int format_decimal(struct format *f, struct cel_value v)
{
    if (v.kind == CEL_DOUBLE && format_odd_double(v.d)) {
        return format_adds(f, format_odd_double(v.d));
    }
    return v.kind == CEL_INT || v.kind == CEL_UINT ? format_plain(f, v)
                                                   : format_refuse(f, "decimal", v);
}

static int format_double(struct format *f, struct cel_value v, char verb, int precision)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (!cel_is_number(v)) {
        return format_refuse(f, verb == 'f' ? "fixed-point" : "scientific", v);
    }
    const double d = v.kind == CEL_DOUBLE ? v.d : v.kind == CEL_INT ? (double)v.i : (double)v.u;
    if (format_odd_double(d)) {
        return format_adds(f, format_odd_double(d));
    }
    if (verb == 'f') {
        hk_buf_addf(&text, "%.*f", precision, d);
    } else {
        hk_buf_addf(&text, "%.*e", precision, d);
    }
    return format_add(f, &text);
}

/* In base 2^bits. */
static void format_base(uint64_t u, unsigned bits, bool upper, struct hk_buf *out)
{
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    char text[65];
    size_t at = sizeof(text);

    do {
        text[--at] = digits[u & ((1U << bits) - 1)];
        u >>= bits;
    } while (u > 0);
    hk_buf_add(out, text + at, sizeof(text) - at);
}

static int format_hex_text(struct format *f, struct hk_str s, bool upper)
{
    const int rc = cel_spend_text(f->r, s.n * 2);

    for (size_t i = 0; i < s.n && rc == 0; i++) {
        hk_buf_addf(&f->out, upper ? "%02X" : "%02x", (unsigned char)s.s[i]);
    }
    return rc;
}

static int format_radix(struct format *f, struct cel_value v, char verb)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const unsigned bits = verb == 'b' ? 1 : verb == 'o' ? 3 : 4;

    if (bits == 4 && (v.kind == CEL_STRING || v.kind == CEL_BYTES)) {
        return format_hex_text(f, v.s, verb == 'X');
    }
    if (bits == 1 && v.kind == CEL_BOOL) {
        return format_adds(f, v.b ? "1" : "0");
    }
    if (v.kind != CEL_INT && v.kind != CEL_UINT) {
        return format_refuse(f, bits == 1 ? "binary" : bits == 3 ? "octal" : "hex", v);
    }
    const bool negative = v.kind == CEL_INT && v.i < 0;
    hk_buf_adds(&text, negative ? "-" : "");
    format_base(negative ? 0 - v.u : v.u, bits, verb == 'X', &text);
    return format_add(f, &text);
}

/* ---- clauses ---- */

static int format_clause(struct format *f, char verb, int precision, struct cel_value v)
{
    switch (verb) {
    case 's':
        return format_text(f, v, 0);
    case 'd':
        return format_decimal(f, v);
    case 'f':
    case 'e':
        return format_double(f, v, verb, precision < 0 ? 6 : precision);
    case 'x':
    case 'X':
    case 'o':
    case 'b':
        return format_radix(f, v, verb);
    default:
        return cel_error(f->r,
                         "could not parse formatting clause: unrecognized formatting "
                         "clause \"%c\"",
                         verb >= ' ' && verb < 0x7F ? verb : '?');
    }
}

/* ".3" behind the percent sign; -1 without it, and at most two digits count. */
static int format_precision(struct hk_str s, size_t *at)
{
    int precision = 0;

    if (*at >= s.n || s.s[*at] != '.') {
        return -1;
    }
    for (++*at; *at < s.n && s.s[*at] >= '0' && s.s[*at] <= '9'; ++*at) {
        precision = HK_MIN(precision * 10 + (s.s[*at] - '0'), 100);
    }
    return precision;
}

static int format_all(struct format *f, struct hk_str s, const struct cel_list *args)
{
    uint32_t next = 0;
    int rc = 0;

    for (size_t at = 0; at < s.n && rc == 0; at++) {
        if (s.s[at] != '%') {
            hk_buf_addc(&f->out, s.s[at]);
            continue;
        }
        at++;
        const int precision = format_precision(s, &at);
        if (at >= s.n) {
            return cel_error(f->r, "could not parse formatting clause: unexpected end of string");
        }
        if (s.s[at] == '%') {
            hk_buf_addc(&f->out, '%');
            continue;
        }
        if (next >= args->len) {
            return cel_error(f->r, "index %u out of range", next);
        }
        rc = format_clause(f, s.s[at], precision, cel_list_at(args, next++, f->r->a));
    }
    return rc;
}

static int strings_format(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    struct format f = {.r = r};
    const int rc = format_all(&f, v[0].s, v[1].list);

    *ret = text_value(&f.out, r->a);
    hk_buf_fini(&f.out);
    return rc;
}

static const struct cel_func format_funcs[] = {
    {"format", "s.L:s", strings_format, COST_TEXT},
};

const struct cel_lib cel_lib_format = {format_funcs, HK_LEN(format_funcs)};
