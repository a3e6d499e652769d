// SPDX-License-Identifier: Apache-2.0
// Timestamps and durations as Kubernetes writes them: RFC 3339, Go's time.Duration text and
// kubectl's AGE column. Of time zones it handles only offsets; see tzfile.c.

#include "codec/timefmt.h"

#define NS 1000000000
#define DAY 86400

/* ---- calendar ---- */

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int month_days(int year, int month)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Both count from 1 March of year 0, so that the leap day ends a year, in eras of 400 years of
 * 146097 days. 1 January 1970 is day 719468. */
enum { ERA_DAYS = 146097, EPOCH_DAY = 719468 };

int64_t time_days_of(int year, int month, int day)
{
    const int y = month > 2 ? year : year - 1;
    const int era = y / 400, of_era = y % 400;
    const int of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

    return (int64_t)era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH_DAY;
}

struct time_date time_date_of(int64_t days)
{
    const int64_t z = days + EPOCH_DAY;
    const int era = (int)(z / ERA_DAYS), d = (int)(z % ERA_DAYS);
    const int of_era = (d - d / 1460 + d / 36524 - d / 146096) / 365;
    const int of_year = d - (365 * of_era + of_era / 4 - of_era / 100);
    const int m = (5 * of_year + 2) / 153;
    const int month = m < 10 ? m + 3 : m - 9;

    return (struct time_date){
        .year = era * 400 + of_era + (month <= 2),
        .month = month,
        .day = of_year - (153 * m + 2) / 5 + 1,
    };
}

/* ---- reading timestamps ---- */

struct cursor {
    const char *p, *end;
};

static bool timefmt_accept_char(struct cursor *c, char want)
{
    if (c->p == c->end || *c->p != want) {
        return false;
    }
    c->p++;
    return true;
}

static bool at_digit(const struct cursor *c)
{
    return c->p < c->end && *c->p >= '0' && *c->p <= '9';
}

/* Exactly n digits, with a value from low to high. */
static bool timefmt_parse_digits(struct cursor *c, int n, int low, int high, int *ret)
{
    int v = 0;

    for (int i = 0; i < n; i++, c->p++) {
        if (!at_digit(c)) {
            return false;
        }
        v = v * 10 + (*c->p - '0');
    }
    *ret = v;
    return v >= low && v <= high;
}

static bool take_date(struct cursor *c, int64_t *ret_days)
{
    int year, month, day;

    if (!timefmt_parse_digits(c, 4, 1, 9999, &year) || !timefmt_accept_char(c, '-') ||
        !timefmt_parse_digits(c, 2, 1, 12, &month) || !timefmt_accept_char(c, '-') ||
        !timefmt_parse_digits(c, 2, 1, month_days(year, month), &day)) {
        return false;
    }
    *ret_days = time_days_of(year, month, day);
    return true;
}

/* Digits after the ninth are dropped. */
static bool take_fraction(struct cursor *c, int *ret_ns)
{
    int ns = 0, unit = NS / 10;

    if (timefmt_accept_char(c, '.')) {
        if (!at_digit(c)) {
            return false;
        }
        for (; at_digit(c); c->p++) {
            ns += (*c->p - '0') * unit;
            unit /= 10;
        }
    }
    *ret_ns = ns;
    return true;
}

static bool take_offset(struct cursor *c, int *ret_seconds)
{
    int hours, minutes;

    *ret_seconds = 0;
    if (timefmt_accept_char(c, 'Z')) {
        return true;
    }
    const int sign = timefmt_accept_char(c, '-') ? -1 : 1;
    if ((sign > 0 && !timefmt_accept_char(c, '+')) || !timefmt_parse_digits(c, 2, 0, 23, &hours) ||
        !timefmt_accept_char(c, ':') || !timefmt_parse_digits(c, 2, 0, 59, &minutes)) {
        return false;
    }
    *ret_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

/* Seconds since 1970 and nanoseconds; false unless the whole string is a timestamp. */
static bool take_time(struct cursor *c, int64_t *ret_seconds, int *ret_ns)
{
    int64_t days;
    int hour, minute, second, offset;

    if (!take_date(c, &days) || !timefmt_accept_char(c, 'T') ||
        !timefmt_parse_digits(c, 2, 0, 23, &hour) || !timefmt_accept_char(c, ':') ||
        !timefmt_parse_digits(c, 2, 0, 59, &minute) || !timefmt_accept_char(c, ':') ||
        !timefmt_parse_digits(c, 2, 0, 60, &second) || !take_fraction(c, ret_ns) ||
        !take_offset(c, &offset) || c->p != c->end) {
        return false;
    }
    *ret_seconds = days * DAY + hour * 3600 + minute * 60 + second - offset;
    /* Leap seconds occur only at the end of a UTC day. */
    return second < 60 || *ret_seconds % DAY == 0;
}

int time_parse(struct hk_str s, int64_t *ret_ns, struct hk_err *err)
{
    struct cursor c = {s.s, s.s + s.n};
    int64_t seconds;
    int ns;

    if (s.n == 0 || !take_time(&c, &seconds, &ns)) {
        return hk_fail(err, HK_EINVAL, "invalid time \"%.*s\", want RFC 3339 as in %s",
                       (int)HK_MIN(s.n, (size_t)64), s.n > 0 ? s.s : "",
                       "\"2006-01-02T15:04:05Z\"");
    }
    seconds = HK_MAX(HK_MIN(seconds, TIME_MAX_NS / NS + 1), TIME_MIN_NS / NS - 1);
    *ret_ns = HK_MAX(HK_MIN(seconds * NS + ns, TIME_MAX_NS), TIME_MIN_NS);
    return 0;
}

/* ---- writing timestamps ---- */

/* Date and time without zone; returns the remaining nanoseconds. */
static int write_seconds(int64_t ns, struct hk_buf *out)
{
    int64_t seconds = ns / NS, left = ns % NS;
    if (left < 0) {
        left += NS;
        seconds--;
    }
    int64_t days = seconds / DAY, of_day = seconds % DAY;
    if (of_day < 0) {
        of_day += DAY;
        days--;
    }

    const struct time_date d = time_date_of(days);
    const int s = (int)of_day;
    hk_buf_addf(out, "%04d-%02d-%02dT%02d:%02d:%02d", d.year, d.month, d.day, s / 3600, s / 60 % 60,
                s % 60);
    return (int)left;
}

void time_write(int64_t ns, struct hk_buf *out)
{
    write_seconds(ns, out);
    hk_buf_addc(out, 'Z');
}

void time_write_micro(int64_t ns, struct hk_buf *out)
{
    const int left = write_seconds(ns, out);

    hk_buf_addf(out, ".%06dZ", left / 1000);
}

/* ---- reading durations ---- */

static const struct unit {
    const char *name;
    uint64_t ns;
} units[] = {
    {"ns", 1},           {"us", 1000}, {"\xc2\xb5s", 1000}, /* U+00B5, micro sign */
    {"\xce\xbcs", 1000},                                    /* U+03BC, Greek mu */
    {"ms", 1000000},     {"s", NS},    {"m", 60ull * NS},   {"h", 3600ull * NS},
};

/* Magnitudes go up to 2^63, one more than INT64_MAX, because of the smallest duration. */
#define MAGNITUDE_MAX ((uint64_t)INT64_MAX + 1)

/* Quotes as Go's time package: quotes and backslashes escaped, other bytes in hex. */
static void quote(struct hk_str s, struct hk_buf *out)
{
    hk_buf_addc(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        const uint8_t c = (uint8_t)s.s[i];
        if (c >= 0x80 || c < ' ') {
            hk_buf_addf(out, "\\x%02x", c);
        } else {
            if (c == '"' || c == '\\') {
                hk_buf_addc(out, '\\');
            }
            hk_buf_addc(out, (char)c);
        }
    }
    hk_buf_addc(out, '"');
}

static int fail_duration(struct hk_str s, const char *what, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf quoted = {0};

    quote(s, &quoted);
    return hk_fail(err, HK_EINVAL, "time: %s %s", what, quoted.data);
}

static int fail_unit(struct hk_str s, struct hk_str unit, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf what = {0};

    hk_buf_adds(&what, "unknown unit ");
    quote(unit, &what);
    hk_buf_adds(&what, " in duration");
    return fail_duration(s, what.data, err);
}

static bool take_whole(struct cursor *c, uint64_t *ret)
{
    uint64_t v = 0;

    for (; at_digit(c); c->p++) {
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (unsigned)(*c->p - '0'), &v) || v > MAGNITUDE_MAX) {
            return false;
        }
    }
    *ret = v;
    return true;
}

/* Digits after the point as digits / scale; digits that do not fit are dropped. */
static void take_part(struct cursor *c, uint64_t *ret_digits, double *ret_scale)
{
    uint64_t digits = 0;
    double scale = 1;
    bool full = false;

    for (; at_digit(c); c->p++) {
        const uint64_t next = digits * 10 + (unsigned)(*c->p - '0');
        full |= digits > INT64_MAX / 10 || next > MAGNITUDE_MAX;
        if (!full) {
            digits = next;
            scale *= 10;
        }
    }
    *ret_digits = digits;
    *ret_scale = scale;
}

static struct hk_str take_unit(struct cursor *c)
{
    const char *begin = c->p;

    while (c->p < c->end && *c->p != '.' && !at_digit(c)) {
        c->p++;
    }
    return (struct hk_str){begin, (size_t)(c->p - begin)};
}

static const struct unit *find_unit(struct hk_str name)
{
    for (size_t i = 0; i < HK_LEN(units); i++) {
        if (hk_str_is(name, units[i].name)) {
            return &units[i];
        }
    }
    return NULL;
}

/* One number with its unit, added to *sum. s is the whole text, for the message. */
static int take_term(struct hk_str s, struct cursor *c, uint64_t *sum, struct hk_err *err)
{
    uint64_t whole, part = 0;
    double scale = 1;

    const char *begin = c->p;
    if (!take_whole(c, &whole)) {
        return fail_duration(s, "invalid duration", err);
    }
    size_t digits = (size_t)(c->p - begin);
    if (timefmt_accept_char(c, '.')) {
        begin = c->p;
        take_part(c, &part, &scale);
        digits += (size_t)(c->p - begin);
    }
    if (digits == 0) {
        return fail_duration(s, "invalid duration", err);
    }

    const struct hk_str name = take_unit(c);
    if (name.n == 0) {
        return fail_duration(s, "missing unit in duration", err);
    }
    const struct unit *unit = find_unit(name);
    if (unit == NULL) {
        return fail_unit(s, name, err);
    }

    /* Floating point, because Go computes fractions of a unit this way, with the same rounding. */
    const uint64_t fraction = (uint64_t)((double)part * ((double)unit->ns / scale));
    if (__builtin_mul_overflow(whole, unit->ns, &whole) ||
        __builtin_add_overflow(whole, fraction, &whole) ||
        __builtin_add_overflow(*sum, whole, sum) || *sum > MAGNITUDE_MAX) {
        return fail_duration(s, "invalid duration", err);
    }
    return 0;
}

int duration_parse(struct hk_str s, int64_t *ret_ns, struct hk_err *err)
{
    const char *text = s.n > 0 ? s.s : "";
    struct cursor c = {text, text + s.n};
    uint64_t sum = 0;

    const bool negative = timefmt_accept_char(&c, '-');
    if (!negative) {
        timefmt_accept_char(&c, '+');
    }
    if (c.end - c.p == 1 && *c.p == '0') {
        *ret_ns = 0;
        return 0;
    }
    if (c.p == c.end) {
        return fail_duration(s, "invalid duration", err);
    }
    while (c.p < c.end) {
        const int rc = take_term(s, &c, &sum, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (!negative && sum > INT64_MAX) {
        return fail_duration(s, "invalid duration", err);
    }
    sum = HK_MIN(sum, (uint64_t)TIME_MAX_NS);
    *ret_ns = negative ? -(int64_t)sum : (int64_t)sum;
    return 0;
}

/* ---- writing durations ---- */

/* v / unit with as many decimals as needed; unit is a power of ten. */
static void write_fixed(uint64_t v, uint64_t unit, struct hk_buf *out)
{
    uint64_t left = v % unit;

    hk_buf_addf(out, "%llu", (unsigned long long)(v / unit));
    if (left == 0) {
        return;
    }
    hk_buf_addc(out, '.');
    for (; left > 0; left %= unit) {
        unit /= 10;
        hk_buf_addc(out, (char)('0' + left / unit));
    }
}

/* From one second on every smaller unit is written: "1h0m0s". */
static void write_clock(uint64_t ns, struct hk_buf *out)
{
    const uint64_t minute = 60ull * NS, hour = 60 * minute;

    if (ns >= hour) {
        hk_buf_addf(out, "%uh", (unsigned)(ns / hour));
    }
    if (ns >= minute) {
        hk_buf_addf(out, "%um", (unsigned)(ns % hour / minute));
    }
    write_fixed(ns % minute, NS, out);
    hk_buf_addc(out, 's');
}

void duration_write(int64_t ns, struct hk_buf *out)
{
    const uint64_t u = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

    if (ns < 0) {
        hk_buf_addc(out, '-');
    }
    if (u == 0 || u >= NS) {
        write_clock(u, out);
    } else if (u < 1000) {
        hk_buf_addf(out, "%uns", (unsigned)u);
    } else if (u < 1000000) {
        write_fixed(u, 1000, out);
        hk_buf_adds(out, "\xc2\xb5s");
    } else {
        write_fixed(u, 1000000, out);
        hk_buf_adds(out, "ms");
    }
}

/* "3m20s", or "3m" if the second part is zero. */
static void write_pair(int64_t big, const char *big_unit, int64_t small, const char *small_unit,
                       struct hk_buf *out)
{
    hk_buf_addf(out, "%lld%s", (long long)big, big_unit);
    if (small > 0) {
        hk_buf_addf(out, "%lld%s", (long long)small, small_unit);
    }
}

/* The steps of apimachinery's duration.HumanDuration: two units while the larger count is small. */
void duration_write_human(int64_t ns, struct hk_buf *out)
{
    const int64_t s = ns / NS, m = s / 60, h = m / 60, d = h / 24;

    if (s < -1) {
        hk_buf_adds(out, "<invalid>");
    } else if (s < 0) {
        hk_buf_adds(out, "0s"); /* clocks differ slightly */
    } else if (s < 120) {
        write_pair(s, "s", 0, "", out);
    } else if (m < 10) {
        write_pair(m, "m", s % 60, "s", out);
    } else if (m < 180) {
        write_pair(m, "m", 0, "", out);
    } else if (h < 8) {
        write_pair(h, "h", m % 60, "m", out);
    } else if (h < 48) {
        write_pair(h, "h", 0, "", out);
    } else if (d < 8) {
        write_pair(d, "d", h % 24, "h", out);
    } else if (d < 730) {
        write_pair(d, "d", 0, "", out);
    } else if (d < 8 * 365) {
        write_pair(d / 365, "y", d % 365, "d", out);
    } else {
        write_pair(d / 365, "y", 0, "", out);
    }
}
