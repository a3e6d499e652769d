// SPDX-License-Identifier: Apache-2.0
// Conversions between the types of CEL: int(), uint(), double(), string(), bytes(), bool(),
// timestamp() and duration().
#include "cel/cel_priv.h"

#include <errno.h>
#include <math.h>

static int convert_range(struct cel_run *r)
{
    return cel_error(r, "integer overflow");
}

static int convert_same(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    *ret = v[0];
    return 0;
}

static int convert_bad_text(struct cel_run *r, struct hk_str text, const char *type)
{
    const struct hk_str head = hk_str_head(text, 100);

    return cel_error(r, "type conversion error from '%.*s' to '%s'", HK_FMT(head), type);
}

/* ---- numbers ---- */

static int convert_int(struct cel_run *r, const struct cel_value *v, uint32_t n,
                       struct cel_value *ret)
{
    int64_t i = 0;

    switch (v[0].kind) {
    case CEL_UINT:
        *ret = cel_of_int((int64_t)v[0].u);
        return v[0].u > INT64_MAX ? convert_range(r) : 0;
    case CEL_DOUBLE: /* the ends themselves are refused, as in cel-go */
        if (!(v[0].d > -0x1p63 && v[0].d < 0x1p63)) {
            return convert_range(r);
        }
        *ret = cel_of_int((int64_t)v[0].d);
        return 0;
    case CEL_TIMESTAMP:
        *ret = cel_of_int(v[0].t.s);
        return 0;
    case CEL_DURATION:
        *ret = cel_of_int(v[0].i);
        return 0;
    default:
        if (!hk_str_int(v[0].s, &i)) {
            return convert_bad_text(r, v[0].s, "int");
        }
        *ret = cel_of_int(i);
        return 0;
    }
}

static bool convert_parse_uint(struct hk_str s, struct hk_arena *a, uint64_t *ret)
{
    const char *text = hk_arena_strndup(a, s.s, s.n);

    if (s.n == 0 || strspn(text, "0123456789") != s.n) {
        return false;
    }
    errno = 0;
    *ret = strtoull(text, NULL, 10);
    return errno == 0;
}

static int convert_uint(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    uint64_t u;

    switch (v[0].kind) {
    case CEL_INT:
        *ret = cel_of_uint((uint64_t)v[0].i);
        return v[0].i < 0 ? cel_error(r, "unsigned integer overflow") : 0;
    case CEL_DOUBLE:
        if (!(v[0].d >= 0 && v[0].d < 0x1p64)) {
            return cel_error(r, "unsigned integer overflow");
        }
        *ret = cel_of_uint((uint64_t)v[0].d);
        return 0;
    default:
        if (!convert_parse_uint(v[0].s, r->a, &u)) {
            return convert_bad_text(r, v[0].s, "uint");
        }
        *ret = cel_of_uint(u);
        return 0;
    }
}

static int convert_double(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    const char *text;
    char *end;

    switch (v[0].kind) {
    case CEL_INT:
        *ret = cel_of_double((double)v[0].i);
        return 0;
    case CEL_UINT:
        *ret = cel_of_double((double)v[0].u);
        return 0;
    default:
        text = hk_arena_strndup(r->a, v[0].s.s, v[0].s.n);
        *ret = cel_of_double(strtod(text, &end));
        return v[0].s.n == 0 || text[0] == ' ' || end != text + v[0].s.n
                   ? convert_bad_text(r, v[0].s, "double")
                   : 0;
    }
}

static int convert_bool(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    static const char *const yes[] = {"1", "t", "true", "TRUE", "True", "T"};
    static const char *const no[] = {"0", "f", "false", "FALSE", "False", "F"};

    for (size_t i = 0; i < HK_LEN(yes); i++) {
        if (hk_str_is(v[0].s, yes[i]) || hk_str_is(v[0].s, no[i])) {
            *ret = cel_of_bool(hk_str_is(v[0].s, yes[i]));
            return 0;
        }
    }
    return convert_bad_text(r, v[0].s, "bool");
}

/* ---- text ---- */

static bool convert_is_utf8(struct hk_str s)
{
    size_t len;

    for (size_t at = 0; at < s.n; at += len) {
        if (text_decode(s, at, &len) == 0xFFFD && len == 1) {
            return false;
        }
    }
    return true;
}

static int convert_bytes_text(struct cel_run *r, const struct cel_value *v, uint32_t n,
                              struct cel_value *ret)
{
    *ret = cel_of_str(v[0].s);
    return convert_is_utf8(v[0].s)
               ? 0
               : cel_error(r, "invalid UTF-8 in bytes, cannot convert to string");
}

static int convert_string(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    switch (v[0].kind) {
    case CEL_BOOL:
        hk_buf_adds(&text, v[0].b ? "true" : "false");
        break;
    case CEL_INT:
        hk_buf_addf(&text, "%lld", (long long)v[0].i);
        break;
    case CEL_UINT:
        hk_buf_addf(&text, "%llu", (unsigned long long)v[0].u);
        break;
    case CEL_DOUBLE:
        cel_double_write(v[0].d, &text);
        break;
    case CEL_TIMESTAMP:
        cel_time_write(v[0].t, &text);
        break;
    case CEL_DURATION:
        cel_duration_write(v[0].i, &text);
        break;
    default:
        cel_net_write(v[0].net, &text);
    }
    *ret = text_value(&text, r->a);
    return 0;
}

static int convert_bytes(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    *ret = cel_of_bytes(v[0].s);
    return 0;
}

/* ---- times ---- */

static int convert_timestamp(struct cel_run *r, const struct cel_value *v, uint32_t n,
                             struct cel_value *ret)
{
    *ret = (struct cel_value){.kind = CEL_TIMESTAMP};
    if (v[0].kind == CEL_INT) {
        ret->t.s = v[0].i;
        return cel_time_in_range(v[0].i) ? 0 : cel_error(r, "timestamp overflow");
    }
    return cel_time_parse(v[0].s, &ret->t) < 0 ? convert_bad_text(r, v[0].s, "timestamp") : 0;
}

static int convert_duration(struct cel_run *r, const struct cel_value *v, uint32_t n,
                            struct cel_value *ret)
{
    *ret = cel_of_duration(0);
    if (v[0].kind == CEL_INT) {
        ret->i = v[0].i;
        return 0;
    }
    return cel_duration_parse(v[0].s, &ret->i) ? 0 : convert_bad_text(r, v[0].s, "duration");
}

static const struct cel_func convert_funcs[] = {
    {"int", "i:i", convert_same, COST_ONE},
    {"int", "u:i", convert_int, COST_ONE},
    {"int", "d:i", convert_int, COST_ONE},
    {"int", "s:i", convert_int, COST_TEXT},
    {"int", "t:i", convert_int, COST_ONE},
    {"int", "D:i", convert_int, COST_ONE},
    {"uint", "u:u", convert_same, COST_ONE},
    {"uint", "i:u", convert_uint, COST_ONE},
    {"uint", "d:u", convert_uint, COST_ONE},
    {"uint", "s:u", convert_uint, COST_TEXT},
    {"double", "d:d", convert_same, COST_ONE},
    {"double", "i:d", convert_double, COST_ONE},
    {"double", "u:d", convert_double, COST_ONE},
    {"double", "s:d", convert_double, COST_TEXT},
    {"bool", "b:b", convert_same, COST_ONE},
    {"bool", "s:b", convert_bool, COST_ONE},
    {"string", "s:s", convert_same, COST_ONE},
    {"string", "b:s", convert_string, COST_ONE},
    {"string", "i:s", convert_string, COST_ONE},
    {"string", "u:s", convert_string, COST_ONE},
    {"string", "d:s", convert_string, COST_ONE},
    {"string", "t:s", convert_string, COST_ONE},
    {"string", "D:s", convert_string, COST_ONE},
    {"string", "I:s", convert_string, COST_ONE},
    {"string", "C:s", convert_string, COST_ONE},
    {"string", "y:s", convert_bytes_text, COST_TEXT},
    {"bytes", "y:y", convert_same, COST_ONE},
    {"bytes", "s:y", convert_bytes, COST_TEXT},
    {"timestamp", "t:t", convert_same, COST_ONE},
    {"timestamp", "i:t", convert_timestamp, COST_ONE},
    {"timestamp", "s:t", convert_timestamp, COST_TEXT},
    {"duration", "D:D", convert_same, COST_ONE},
    {"duration", "i:D", convert_duration, COST_ONE},
    {"duration", "s:D", convert_duration, COST_TEXT},
};

const struct cel_lib cel_lib_convert = {convert_funcs, HK_LEN(convert_funcs)};
