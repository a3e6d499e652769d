// SPDX-License-Identifier: Apache-2.0
// The type of a YAML scalar: the rules of go-yaml v2 (YAML 1.1 words, Go's number syntax), tags,
// and the conversion of keys to strings. The reader uses it for values, the writer to decide which
// strings need quotes.

#include "codec/base64.h"
#include "codec/json_priv.h"
#include "codec/yaml_priv.h"

#include <math.h>

enum {
    NUMBER_MAX = 512, /* longer texts stay strings */
    WORD_MAX = 5,
    SHOWN_MAX = 80, /* bytes */
};

unsigned yaml_utf8_next(struct hk_str s, uint32_t *ret)
{
    const unsigned len = s.n > 0 ? (unsigned)json_utf8_len(s.s, s.s + s.n) : 0;

    if (len > 0) {
        uint32_t c = len == 1 ? (uint8_t)s.s[0] : (uint8_t)s.s[0] & (0x7fU >> len);
        for (unsigned i = 1; i < len; i++) {
            c = c << 6 | ((uint8_t)s.s[i] & 0x3f);
        }
        *ret = c;
    }
    return len;
}

unsigned yaml_utf8_put(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const unsigned len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (unsigned i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)((0xf00U >> len) | c);
    return len;
}

static bool yaml_scalar_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Words that are not strings: null, booleans and the like. */
static bool word_type(struct hk_str s, struct json *ret)
{
    static const struct {
        const char *words[9];
        struct json v;
    } table[] = {
        {{"true", "True", "TRUE", "yes", "Yes", "YES", "y", "Y"}, {.type = JSON_BOOL, .b = true}},
        {{"on", "On", "ON"}, {.type = JSON_BOOL, .b = true}},
        {{"false", "False", "FALSE", "no", "No", "NO", "n", "N"}, {.type = JSON_BOOL}},
        {{"off", "Off", "OFF"}, {.type = JSON_BOOL}},
        {{"", "~", "null", "Null", "NULL"}, {.type = JSON_NULL}},
        {{".nan", ".NaN", ".NAN"}, {.type = JSON_DOUBLE, .d = NAN}},
        {{".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"}, {.type = JSON_DOUBLE, .d = INFINITY}},
        {{"-.inf", "-.Inf", "-.INF"}, {.type = JSON_DOUBLE, .d = -INFINITY}},
    };

    if (s.n > WORD_MAX) {
        return false;
    }
    for (size_t i = 0; i < HK_LEN(table); i++) {
        for (const char *const *w = table[i].words; *w; w++) {
            if (hk_str_is(s, *w)) {
                *ret = table[i].v;
                return true;
            }
        }
    }
    return false;
}

static unsigned digit_value(char c)
{
    if (yaml_scalar_is_digit(c)) {
        return (unsigned)(c - '0');
    }
    const char low = (char)(c | 0x20);
    return low >= 'a' && low <= 'f' ? (unsigned)(low - 'a') + 10 : 16;
}

static bool parse_digits(struct hk_str s, unsigned base, uint64_t *ret)
{
    uint64_t u = 0;

    if (s.n == 0) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        const unsigned digit = digit_value(s.s[i]);
        if (digit >= base || __builtin_mul_overflow(u, base, &u) ||
            __builtin_add_overflow(u, digit, &u)) {
            return false;
        }
    }
    *ret = u;
    return true;
}

static struct hk_str yaml_scalar_skip(struct hk_str s, size_t n)
{
    return (struct hk_str){s.s + n, s.n - n};
}

/* The base that Go's ParseInt finds in a text without sign; cuts the prefix off. */
static unsigned cut_base(struct hk_str *s)
{
    if (s->n == 0 || s->s[0] != '0') {
        return 10;
    }
    if (s->n >= 3) {
        const char mark = (char)(s->s[1] | 0x20);
        const unsigned base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
        if (base) {
            *s = yaml_scalar_skip(*s, 2);
            return base;
        }
    }
    return 8;
}

/* go-yaml parses "0b" a second time itself, and so accepts a sign after the prefix. */
static bool cut_late_sign(struct hk_str *s, bool *neg)
{
    if (!hk_str_starts(*s, "0b-") && !hk_str_starts(*s, "0b+")) {
        return false;
    }
    *neg = s->s[2] == '-';
    *s = yaml_scalar_skip(*s, 3);
    return true;
}

static bool int_type(struct hk_str s, struct json *ret)
{
    const bool sign = s.s[0] == '-' || s.s[0] == '+';
    bool neg = s.s[0] == '-';
    uint64_t u;

    s = yaml_scalar_skip(s, sign);
    const bool late = !sign && cut_late_sign(&s, &neg);
    const unsigned base = late ? 2 : cut_base(&s);
    if (!parse_digits(s, base, &u)) {
        return false;
    }
    if (neg) {
        if (u > (uint64_t)INT64_MAX + 1) {
            return false;
        }
        *ret = (struct json){.type = JSON_INT, .i = (int64_t)(0 - u)};
        return true;
    }
    if (u > INT64_MAX) {
        /* Only go-yaml's unsigned parse reads these, and it accepts no sign. */
        *ret = (struct json){.type = JSON_UINT, .u = u};
        return !sign && !late;
    }
    *ret = (struct json){.type = JSON_INT, .i = (int64_t)u};
    return true;
}

static size_t count_digits(struct hk_str s)
{
    size_t n = 0;

    while (n < s.n && yaml_scalar_is_digit(s.s[n])) {
        n++;
    }
    return n;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool is_decimal(struct hk_str s)
{
    if (s.n > 0 && (s.s[0] == '-' || s.s[0] == '+')) {
        s = yaml_scalar_skip(s, 1);
    }
    const size_t whole = count_digits(s);
    size_t fraction = 0;
    s = yaml_scalar_skip(s, whole);
    if (s.n > 0 && s.s[0] == '.') {
        s = yaml_scalar_skip(s, 1);
        fraction = count_digits(s);
        s = yaml_scalar_skip(s, fraction);
    }
    if (whole + fraction == 0) {
        return false;
    }
    if (s.n > 0 && (s.s[0] | 0x20) == 'e') {
        s = yaml_scalar_skip(s, 1);
        if (s.n > 0 && (s.s[0] == '-' || s.s[0] == '+')) {
            s = yaml_scalar_skip(s, 1);
        }
        return s.n > 0 && count_digits(s) == s.n;
    }
    return s.n == 0;
}

/* s ends with a NUL. Numbers too large for a double stay strings. */
static bool float_type(struct hk_str s, struct json *ret)
{
    if (!is_decimal(s)) {
        return false;
    }
    const double d = strtod(s.s, NULL);
    *ret = json_make_double(d);
    return isfinite(d);
}

/* Go's own float syntax, which go-yaml uses after a leading dot, has digits around underscores. */
static bool underscores_between_digits(struct hk_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] == '_' && (i == 0 || i + 1 == s.n || !yaml_scalar_is_digit(s.s[i - 1]) ||
                              !yaml_scalar_is_digit(s.s[i + 1]))) {
            return false;
        }
    }
    return true;
}

static bool number_type(struct hk_str s, struct json *ret)
{
    char text[NUMBER_MAX + 1];
    size_t n = 0;

    if (s.n > NUMBER_MAX || (s.s[0] == '.' && !underscores_between_digits(s))) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] != '_') {
            text[n++] = s.s[i];
        }
    }
    text[n] = '\0';
    const struct hk_str plain = {text, n};
    return (s.s[0] != '.' && int_type(plain, ret)) || float_type(plain, ret);
}

struct json yaml_scalar_plain(struct hk_str s)
{
    const char first = s.n > 0 ? s.s[0] : '~';
    struct json v;

    if (strchr("yYnNtTfFoO~.+-", first) && first != '\0' && word_type(s, &v)) {
        return v;
    }
    if ((yaml_scalar_is_digit(first) || first == '.' || first == '+' || first == '-') &&
        number_type(s, &v)) {
        return v;
    }
    return json_make_str(s);
}

/* One field of a date or time: min to max digits, value at most limit. Cuts it off s. */
static bool cut_field(struct hk_str *s, size_t min, size_t max, unsigned limit, unsigned *ret)
{
    const size_t n = HK_MIN(count_digits(*s), max);

    if (n < min) {
        return false;
    }
    *ret = 0;
    for (size_t i = 0; i < n; i++) {
        *ret = *ret * 10 + (unsigned)(s->s[i] - '0');
    }
    *s = yaml_scalar_skip(*s, n);
    return *ret <= limit;
}

static bool cut_char(struct hk_str *s, const char *any)
{
    if (s->n == 0 || s->s[0] == '\0' || !strchr(any, s->s[0])) {
        return false;
    }
    *s = yaml_scalar_skip(*s, 1);
    return true;
}

static bool cut_date(struct hk_str *s)
{
    static const uint8_t days[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    unsigned year, month, day;

    if (!cut_field(s, 4, 4, 9999, &year) || !cut_char(s, "-") || !cut_field(s, 1, 2, 12, &month) ||
        !cut_char(s, "-") || !cut_field(s, 1, 2, 31, &day)) {
        return false;
    }
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month >= 1 && day >= 1 && day <= days[month] + (unsigned)(leap && month == 2);
}

static bool cut_clock(struct hk_str *s)
{
    unsigned part;

    if (!cut_field(s, 1, 2, 23, &part) || !cut_char(s, ":") || !cut_field(s, 1, 2, 59, &part) ||
        !cut_char(s, ":") || !cut_field(s, 1, 2, 59, &part)) {
        return false;
    }
    struct hk_str rest = *s;
    if (cut_char(&rest, ".,") && count_digits(rest) > 0) {
        *s = yaml_scalar_skip(rest, count_digits(rest));
    }
    return true;
}

static bool cut_zone(struct hk_str *s)
{
    unsigned part;

    if (cut_char(s, "Z")) {
        return true;
    }
    return cut_char(s, "+-") && cut_field(s, 2, 2, 24, &part) && cut_char(s, ":") &&
           cut_field(s, 2, 2, 59, &part);
}

bool yaml_scalar_is_time(struct hk_str s)
{
    if (!cut_date(&s)) {
        return false;
    }
    if (s.n == 0) {
        return true;
    }
    if (cut_char(&s, " ")) {
        return cut_clock(&s) && s.n == 0;
    }
    return cut_char(&s, "Tt") && cut_clock(&s) && cut_zone(&s) && s.n == 0;
}

/* The tree contains only UTF-8: each invalid byte becomes U+FFFD, as in Go's JSON encoder. */
static struct hk_str replace_bad_utf8(struct hk_str s, struct hk_arena *a)
{
    char *out = hk_arena_alloc(a, s.n * 3 + 1);
    size_t n = 0;

    while (s.n > 0) {
        uint32_t c = 0xfffd;
        const unsigned len = yaml_utf8_next(s, &c);
        n += yaml_utf8_put(c, out + n);
        s = yaml_scalar_skip(s, HK_MAX(len, 1U));
    }
    return (struct hk_str){out, n};
}

static int binary_type(struct hk_str s, struct hk_arena *a, struct json *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf bytes = {0};

    if (!base64_read(s, &bytes)) {
        return hk_fail(err, HK_EINVAL, "!!binary value contains invalid base64 data");
    }
    *ret = json_make_str(replace_bad_utf8(hk_buf_str(&bytes), a));
    return 0;
}

static const char *tag_of(const struct json *v)
{
    static const char *const names[] = {
        [JSON_NULL] = "null", [JSON_BOOL] = "bool",    [JSON_INT] = "int",
        [JSON_UINT] = "int",  [JSON_DOUBLE] = "float", [JSON_STRING] = "str",
    };

    if (v->type == JSON_STRING && yaml_scalar_is_time((struct hk_str){v->s, v->len})) {
        return "timestamp";
    }
    return names[v->type];
}

static double int_as_double(const struct json *v)
{
    return v->type == JSON_UINT ? (double)v->u : (double)v->i;
}

struct hk_str yaml_scalar_shown(struct hk_str s)
{
    return hk_str_head(s, SHOWN_MAX);
}

int yaml_scalar_tagged(const char *tag, struct hk_str s, struct hk_arena *a, struct json *ret,
                       struct hk_err *err)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    static const char *const checked[] = {"null", "bool", "int", "float", "timestamp"};
    const bool known = strncmp(tag, prefix, sizeof(prefix) - 1) == 0;
    const char *want = known ? tag + sizeof(prefix) - 1 : "";

    if (strcmp(want, "binary") == 0) {
        return binary_type(s, a, ret, err);
    }
    *ret = json_make_str(s);
    for (size_t i = 0; i < HK_LEN(checked); i++) {
        if (strcmp(want, checked[i]) != 0) {
            continue;
        }
        *ret = yaml_scalar_plain(s);
        const char *have = tag_of(ret);
        if (strcmp(have, want) == 0) {
            return 0;
        }
        if (strcmp(want, "float") == 0 && strcmp(have, "int") == 0) {
            *ret = json_make_double(int_as_double(ret));
            return 0;
        }
        s = yaml_scalar_shown(s);
        return hk_fail(err, HK_EINVAL, "cannot decode !!%s `%.*s` as a !!%s", have, HK_FMT(s),
                       want);
    }
    return 0; /* with any other tag the value is a string */
}

int yaml_scalar_settle(struct json *v, struct hk_err *err)
{
    if (v->type != JSON_DOUBLE) {
        return 0;
    }
    if (!isfinite(v->d)) {
        return hk_fail(err, HK_EINVAL, "unsupported value: %s",
                       isnan(v->d) ? "NaN"
                       : v->d > 0  ? "+Inf"
                                   : "-Inf");
    }
    if (v->d != trunc(v->d)) {
        return 0;
    }
    if (v->d >= -0x1p63 && v->d < 0x1p63) {
        *v = (struct json){.type = JSON_INT, .line = v->line, .i = (int64_t)v->d};
    } else if (v->d >= 0x1p63 && v->d < 0x1p64) {
        *v = (struct json){.type = JSON_UINT, .line = v->line, .u = (uint64_t)v->d};
    }
    return 0;
}

/* Keys use Go's shortest form of a 32-bit float: exponent from 1e+06 and below 1e-04. */
static struct hk_str double_key(double d, struct hk_arena *a)
{
    const float f = (float)d;
    char text[64];
    int digits = 0;

    if (!isfinite(f)) {
        return hk_str(isnan(f) ? ".nan" : f > 0 ? ".inf" : "-.inf");
    }
    do {
        snprintf(text, sizeof(text), "%.*e", digits, (double)f);
    } while (strtof(text, NULL) != f && ++digits < 9);
    const int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 6) {
        snprintf(text, sizeof(text), "%.*f", HK_MAX(digits - exponent, 0), (double)f);
    }
    return hk_arena_str(a, hk_str(text));
}

int yaml_scalar_key(const struct json *v, struct hk_arena *a, struct hk_str *ret,
                    struct hk_err *err)
{
    switch (v->type) {
    case JSON_STRING:
        *ret = (struct hk_str){v->s, v->len};
        return 0;
    case JSON_BOOL:
        *ret = v->b ? HK_STR("true") : HK_STR("false");
        return 0;
    case JSON_INT:
        *ret = hk_str(hk_arena_printf(a, "%lld", (long long)v->i));
        return 0;
    case JSON_DOUBLE:
        *ret = double_key(v->d, a);
        return 0;
    case JSON_UINT:
        return hk_fail(err, HK_EINVAL, "unsupported map key of type: uint64");
    case JSON_NULL:
        return hk_fail(err, HK_EINVAL, "unsupported map key of type: null");
    default:
        return hk_fail(err, HK_EINVAL, "invalid map key: a %s",
                       v->type == JSON_ARRAY ? "list" : "map");
    }
}
