// SPDX-License-Identifier: Apache-2.0
// The JSON writer: trees to text, compact or indented. Numbers have the format of Go's
// encoding/json, so that values pass between us and Kubernetes clients unchanged.

#include "codec/json.h"
#include "codec/json_priv.h"

#include <float.h>
#include <math.h>

/* ---- numbers ---- */

static void write_uint(uint64_t u, struct hk_buf *out)
{
    char digits[20];
    char *p = digits + sizeof(digits);

    do {
        *--p = (char)('0' + u % 10);
        u /= 10;
    } while (u > 0);
    hk_buf_add(out, p, (size_t)(digits + sizeof(digits) - p));
}

static void write_int(int64_t i, struct hk_buf *out)
{
    if (i < 0) {
        hk_buf_addc(out, '-');
    }
    write_uint(i < 0 ? -(uint64_t)i : (uint64_t)i, out);
}

/* A positive double as 0.DIGITS x 10^point. */
struct decimal {
    char digits[18];
    size_t n;
    int point;
};

/* The fewest digits that read back as d. Fifteen digits always survive a round trip, except for
 * subnormal numbers, which have fewer bits. */
static struct decimal shortest(double d)
{
    char text[40];
    struct decimal out = {0};

    for (int digits = d < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*e", digits - 1, d);
        if (strtod(text, NULL) == d) {
            break;
        }
    }
    const char *p = text;
    for (; *p != 'e'; p++) {
        if (*p != '.') {
            out.digits[out.n++] = *p;
        }
    }
    out.point = (int)strtol(p + 1, NULL, 10) + 1;
    while (out.n > 1 && out.digits[out.n - 1] == '0') {
        out.n--;
    }
    return out;
}

static void write_plain(const struct decimal *x, struct hk_buf *out)
{
    const int n = (int)x->n;

    if (x->point <= 0) {
        hk_buf_addf(out, "0.%.*s%.*s", -x->point, "00000000", n, x->digits);
    } else if (x->point < n) {
        hk_buf_addf(out, "%.*s.%.*s", x->point, x->digits, n - x->point, x->digits + x->point);
    } else {
        hk_buf_addf(out, "%.*s%.*s", n, x->digits, x->point - n, "000000000000000000000");
    }
}

static void write_exponent(const struct decimal *x, struct hk_buf *out)
{
    hk_buf_addc(out, x->digits[0]);
    if (x->n > 1) {
        hk_buf_addc(out, '.');
        hk_buf_add(out, x->digits + 1, x->n - 1);
    }
    hk_buf_addf(out, "e%+d", x->point - 1);
}

/* Go's rule: an exponent below 1e-6 and from 1e21 on, plain digits between. */
static void json_write_double(double d, struct hk_buf *out)
{
    if (!isfinite(d)) {
        hk_buf_adds(out, "null");
        return;
    }
    if (signbit(d)) {
        hk_buf_addc(out, '-');
        d = -d;
    }
    if (d == 0) {
        hk_buf_addc(out, '0');
        return;
    }
    const struct decimal x = shortest(d);
    if (d < 1e-6 || d >= 1e21) {
        write_exponent(&x, out);
    } else {
        write_plain(&x, out);
    }
}

/* ---- strings ---- */

static void write_escape(uint8_t c, struct hk_buf *out)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *found = memchr(from, c, sizeof(from) - 1);

    if (found != NULL) {
        hk_buf_addc(out, '\\');
        hk_buf_addc(out, to[found - from]);
    } else {
        hk_buf_addf(out, "\\u%04x", c);
    }
}

void json_write_str(struct hk_str s, struct hk_buf *out)
{
    const char *p = s.n > 0 ? s.s : "";
    const char *const end = p + s.n;
    const char *piece = p; /* start of the text that is not yet in out */

    hk_buf_reserve(out, s.n + 2);
    hk_buf_addc(out, '"');
    while ((p = json_skip_plain(p, end)) < end) {
        const uint8_t c = (uint8_t)*p;
        const size_t n = c < 0x80 ? 0 : json_utf8_len(p, end);
        if (n > 0) {
            p += n;
            continue;
        }
        hk_buf_add(out, piece, (size_t)(p - piece));
        if (c < 0x80) {
            write_escape(c, out);
        } else {
            hk_buf_adds(out, "\xef\xbf\xbd");
        }
        piece = ++p;
    }
    hk_buf_add(out, piece, (size_t)(p - piece));
    hk_buf_addc(out, '"');
}

/* ---- trees ---- */

/* indent 0: compact. */
struct layout {
    unsigned indent;
    unsigned level;
};

static void new_line(const struct layout *l, struct hk_buf *out)
{
    if (l->indent > 0) {
        hk_buf_addf(out, "\n%*s", (int)(l->indent * l->level), "");
    }
}

static void json_write_value(const struct json *v, struct layout *l, struct hk_buf *out);

static void write_items(const struct json *v, struct layout *l, struct hk_buf *out)
{
    for (uint32_t i = 0; i < v->len; i++) {
        if (i > 0) {
            hk_buf_addc(out, ',');
        }
        new_line(l, out);
        json_write_value(&v->items[i], l, out);
    }
}

static void write_members(const struct json *v, struct layout *l, struct hk_buf *out)
{
    for (uint32_t i = 0; i < v->len; i++) {
        if (i > 0) {
            hk_buf_addc(out, ',');
        }
        new_line(l, out);
        json_write_str(v->members[i].key, out);
        hk_buf_addc(out, ':');
        if (l->indent > 0) {
            hk_buf_addc(out, ' ');
        }
        json_write_value(&v->members[i].value, l, out);
    }
}

static void write_container(const struct json *v, struct layout *l, struct hk_buf *out)
{
    const bool object = v->type == JSON_OBJECT;

    hk_buf_addc(out, object ? '{' : '[');
    if (v->len > 0) {
        l->level++;
        if (object) {
            write_members(v, l, out);
        } else {
            write_items(v, l, out);
        }
        l->level--;
        new_line(l, out);
    }
    hk_buf_addc(out, object ? '}' : ']');
}

static void json_write_value(const struct json *v, struct layout *l, struct hk_buf *out)
{
    switch ((enum json_type)v->type) {
    case JSON_NULL:
        hk_buf_adds(out, "null");
        break;
    case JSON_BOOL:
        hk_buf_adds(out, v->b ? "true" : "false");
        break;
    case JSON_INT:
        write_int(v->i, out);
        break;
    case JSON_UINT:
        write_uint(v->u, out);
        break;
    case JSON_DOUBLE:
        json_write_double(v->d, out);
        break;
    case JSON_STRING:
        json_write_str((struct hk_str){v->s, v->len}, out);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        write_container(v, l, out);
        break;
    }
}

void json_write(const struct json *v, struct hk_buf *out)
{
    struct layout l = {0};

    json_write_value(v, &l, out);
}

void json_write_pretty_at(const struct json *v, unsigned indent, unsigned level, struct hk_buf *out)
{
    struct layout l = {.indent = indent, .level = level};

    json_write_value(v, &l, out);
}

void json_write_pretty(const struct json *v, unsigned indent, struct hk_buf *out)
{
    json_write_pretty_at(v, indent, 0, out);
    hk_buf_addc(out, '\n');
}
