// SPDX-License-Identifier: Apache-2.0
// Text: characters of UTF-8, and how values of CEL are printed and read.
#include "cel/cel_priv.h"
#include "codec/timefmt.h"

#include <math.h>

#define NS_PER_S INT64_C(1000000000)

/* ---- characters ---- */

/* The number of bytes that the first one announces. */
static size_t text_lead(unsigned char c)
{
    return c < 0x80                ? 1
           : c >= 0xC2 && c < 0xE0 ? 2
           : c >= 0xE0 && c < 0xF0 ? 3
           : c >= 0xF0 && c < 0xF5 ? 4
                                   : 0;
}

uint32_t text_decode(struct hk_str s, size_t at, size_t *len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = text_lead((unsigned char)s.s[at]);
    uint32_t c = (unsigned char)s.s[at];

    *len = 1;
    if (n == 1) {
        return c;
    }
    if (n == 0 || at + n > s.n) {
        return 0xFFFD;
    }
    c &= 0xFFU >> (n + 1);
    for (size_t i = 1; i < n; i++) {
        const unsigned char next = (unsigned char)s.s[at + i];
        if ((next & 0xC0) != 0x80) {
            return 0xFFFD;
        }
        c = c << 6 | (next & 0x3F);
    }
    if (c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
        return 0xFFFD;
    }
    *len = n;
    return c;
}

size_t text_count(struct hk_str s)
{
    size_t count = 0, len;

    for (size_t at = 0; at < s.n; at += len) {
        text_decode(s, at, &len);
        count++;
    }
    return count;
}

int text_add(struct cel_run *r, struct hk_buf *out, struct hk_str s)
{
    const int rc = cel_spend_text(r, s.n);

    if (rc == 0) {
        hk_buf_addstr(out, s);
    }
    return rc;
}

struct cel_value text_value(const struct hk_buf *out, struct hk_arena *a)
{
    const struct hk_str s = hk_buf_str(out);

    return cel_of_str((struct hk_str){hk_arena_strndup(a, s.s, s.n), s.n});
}

/* ---- doubles ---- */

void cel_double_write(double d, struct hk_buf *out)
{
    char text[40];
    int digits = 0;

    if (isnan(d) || isinf(d)) {
        hk_buf_adds(out, isnan(d) ? "NaN" : d > 0 ? "+Inf" : "-Inf");
        return;
    }
    do { /* 17 digits give back every double */
        snprintf(text, sizeof(text), "%.*e", digits, d);
    } while (strtod(text, NULL) != d && digits++ < 17);
    const char *e = strchr(text, 'e');
    const int exponent = (int)strtol(e + 1, NULL, 10);
    if (exponent < -4 || exponent >= 6) { /* the limits of Go's %g */
        hk_buf_adds(out, text);
        return;
    }
    hk_buf_addf(out, "%.*f", HK_MAX(digits - exponent, 0), d);
}

/* ---- times ---- */

/* Reads exactly n digits. */
static bool text_number(struct hk_str *s, size_t n, int *ret)
{
    *ret = 0;
    if (s->n < n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (s->s[i] < '0' || s->s[i] > '9') {
            return false;
        }
        *ret = *ret * 10 + (s->s[i] - '0');
    }
    s->s += n;
    s->n -= n;
    return true;
}

static bool text_char(struct hk_str *s, char c)
{
    if (s->n == 0 || s->s[0] != c) {
        return false;
    }
    s->s++;
    s->n--;
    return true;
}

static int days_in_month(int year, int month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

static bool text_date(struct hk_str *s, int64_t *days)
{
    int year, month, day;

    if (!text_number(s, 4, &year) || !text_char(s, '-') || !text_number(s, 2, &month) ||
        !text_char(s, '-') || !text_number(s, 2, &day) || year < 1 || month < 1 || month > 12 ||
        day < 1 || day > days_in_month(year, month)) {
        return false;
    }
    *days = time_days_of(year, month, day);
    return true;
}

static bool text_clock(struct hk_str *s, int64_t *seconds)
{
    int hour, minute, second;

    if (!text_number(s, 2, &hour) || !text_char(s, ':') || !text_number(s, 2, &minute) ||
        !text_char(s, ':') || !text_number(s, 2, &second) || hour > 23 || minute > 59 ||
        second > 59) {
        return false;
    }
    *seconds = hour * INT64_C(3600) + minute * 60 + second;
    return true;
}

/* ".123": up to nine digits count. */
static bool text_fraction(struct hk_str *s, int32_t *ns)
{
    int32_t unit = 100000000;
    int digit;

    *ns = 0;
    if (!text_char(s, '.')) {
        return true;
    }
    if (!text_number(s, 1, &digit)) {
        return false;
    }
    do {
        *ns += digit * unit;
        unit /= 10;
    } while (text_number(s, 1, &digit));
    return true;
}

static bool text_zone(struct hk_str *s, int64_t *east)
{
    const bool west = s->n > 0 && s->s[0] == '-';
    int hour, minute;

    *east = 0;
    if (text_char(s, 'Z')) {
        return true;
    }
    if ((!text_char(s, '+') && !text_char(s, '-')) || !text_number(s, 2, &hour) ||
        !text_char(s, ':') || !text_number(s, 2, &minute) || hour > 23 || minute > 59) {
        return false;
    }
    *east = (hour * INT64_C(3600) + minute * 60) * (west ? -1 : 1);
    return true;
}

/* Years 1 to 9999. */
bool cel_time_in_range(int64_t s)
{
    return s >= INT64_C(-62135596800) && s <= INT64_C(253402300799);
}

int cel_time_parse(struct hk_str s, struct cel_time *ret)
{
    int64_t days, seconds, east;

    if (!text_date(&s, &days) || !text_char(&s, 'T') || !text_clock(&s, &seconds) ||
        !text_fraction(&s, &ret->ns) || !text_zone(&s, &east) || s.n > 0) {
        return -HK_EINVAL;
    }
    ret->s = days * 86400 + seconds - east;
    return cel_time_in_range(ret->s) ? 0 : -HK_EINVAL;
}

bool cel_date_parse(struct hk_str s, struct cel_time *ret)
{
    int64_t days;

    if (!text_date(&s, &days) || s.n > 0) {
        return false;
    }
    *ret = (struct cel_time){days * 86400, 0};
    return true;
}

/* ".5": without trailing zeros; nothing for zero. */
static void text_write_fraction(int32_t ns, struct hk_buf *out)
{
    char text[16];
    size_t n = 10;

    if (ns == 0) {
        return;
    }
    snprintf(text, sizeof(text), ".%09d", (int)ns);
    while (text[n - 1] == '0') {
        n--;
    }
    hk_buf_add(out, text, n);
}

void cel_time_write(struct cel_time t, struct hk_buf *out)
{
    const int64_t days = (t.s >= 0 ? t.s : t.s - 86399) / 86400, rest = t.s - days * 86400;
    const struct time_date d = time_date_of(days);

    hk_buf_addf(out, "%04d-%02d-%02dT%02d:%02d:%02d", d.year, d.month, d.day, (int)(rest / 3600),
                (int)(rest / 60 % 60), (int)(rest % 60));
    text_write_fraction(t.ns, out);
    hk_buf_addc(out, 'Z');
}

void cel_duration_write(int64_t ns, struct hk_buf *out)
{
    const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

    hk_buf_addf(out, "%s%llu", ns < 0 ? "-" : "", (unsigned long long)(size / NS_PER_S));
    text_write_fraction((int32_t)(size % NS_PER_S), out);
    hk_buf_addc(out, 's');
}

bool cel_duration_parse(struct hk_str s, int64_t *ret_ns)
{
    return duration_parse(s, ret_ns, NULL) == 0;
}
