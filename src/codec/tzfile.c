// SPDX-License-Identifier: Apache-2.0
// Reads TZif files: a table of changes of the offset, and for later times the rule of a POSIX TZ
// string ("CET-1CEST,M3.5.0,M10.5.0/3").
//
// Written here, because libc knows one zone at a time, the one in TZ, and changing it affects all
// threads; schedules of different zones are computed side by side. ICU would bring 30 MB of data for
// the one table that every system has.
#include "codec/tzfile.h"

#include "base/file.h"
#include "base/vec.h"
#include "codec/timefmt.h"

#define ZONE_DIR "/usr/share/zoneinfo/"
#define LOCAL_ZONE "/etc/localtime"

enum {
    DAY_S = 86400,
    FILE_MAX = 1 << 20,
    HEADER_LEN = 44,
    NAME_MAX_LEN = 255,
    OFFSET_MAX_S = 26 * 3600, /* RFC 8536: less than 26 hours */
};

/* When the clocks change in a year. */
struct tz_when {
    enum { TZ_MONTH_WEEK_DAY, TZ_JULIAN, TZ_DAY } form;
    int month, week, day;
    int32_t time_s; /* time of that day, may be negative or after its end */
};

struct tz_rule {
    bool present, has_summer;
    int32_t offset_s, summer_s;
    struct tz_when begin, end; /* of summer time */
};

struct tz_change {
    int64_t at_s;
    int32_t offset_s; /* after the change */
};

struct tzfile {
    int32_t first_s; /* the offset before the first change */
    HK_VEC(struct tz_change) changes;
    struct tz_rule rule; /* after the last change */
};

/* A period with one offset, end excluded. */
struct tz_span {
    int32_t offset_s;
    int64_t begin_s, end_s;
};

/* ---- the rule ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int weekday_of(int64_t days)
{
    return (int)(((days + 4) % 7 + 7) % 7); /* 1 January 1970 was a Thursday */
}

static bool is_leap(int year)
{
    return time_days_of(year, 3, 1) - time_days_of(year, 2, 28) == 2;
}

static int64_t day_of_when(const struct tz_when *w, int year)
{
    const int64_t new_year = time_days_of(year, 1, 1);
    int64_t day;
    int64_t next;

    switch (w->form) {
    case TZ_DAY:
        return new_year + w->day;
    case TZ_JULIAN: /* counts from 1, without 29 February */
        return new_year + w->day - 1 + (w->day >= 60 && is_leap(year));
    default:
        day = time_days_of(year, w->month, 1);
        next = w->month == 12 ? time_days_of(year + 1, 1, 1) : time_days_of(year, w->month + 1, 1);
        day += (w->day - weekday_of(day) + 7) % 7 + (int64_t)(w->week - 1) * 7;
        return day >= next ? day - 7 : day; /* the fifth means the last */
    }
}

/* Uses the UTC year: no zone changes clocks within a day of New Year. */
static struct tz_span span_of_rule(const struct tz_rule *r, int64_t at_s)
{
    const int year = time_date_of(floor_div(at_s, DAY_S)).year;
    const int64_t begin_s = day_of_when(&r->begin, year) * DAY_S + r->begin.time_s - r->offset_s;
    const int64_t end_s = day_of_when(&r->end, year) * DAY_S + r->end.time_s - r->summer_s;
    const bool north = begin_s < end_s;
    const int64_t first_s = north ? begin_s : end_s;
    const int64_t second_s = north ? end_s : begin_s;
    const int32_t outer_s = north ? r->offset_s : r->summer_s;
    const int32_t inner_s = north ? r->summer_s : r->offset_s;

    if (at_s < first_s) {
        return (struct tz_span){outer_s, time_days_of(year, 1, 1) * DAY_S, first_s};
    }
    if (at_s < second_s) {
        return (struct tz_span){inner_s, first_s, second_s};
    }
    return (struct tz_span){outer_s, second_s, time_days_of(year + 1, 1, 1) * DAY_S};
}

/* ---- reading the rule ---- */

static bool tzfile_accept_char(struct hk_str *s, char want)
{
    if (s->n == 0 || s->s[0] != want) {
        return false;
    }
    *s = (struct hk_str){s->s + 1, s->n - 1};
    return true;
}

static bool tzfile_parse_number(struct hk_str *s, int min, int max, int *ret)
{
    int n = 0;
    size_t len = 0;

    while (len < s->n && len < 4 && s->s[len] >= '0' && s->s[len] <= '9') {
        n = n * 10 + (s->s[len++] - '0');
    }
    *s = (struct hk_str){s->s + len, s->n - len};
    *ret = n;
    return len > 0 && n >= min && n <= max;
}

/* "CET" or "<+03>"; the name is not used. */
static bool skip_name(struct hk_str *s)
{
    const bool quoted = tzfile_accept_char(s, '<');
    size_t len = 0;

    while (len < s->n &&
           (quoted ? s->s[len] != '>' : ((s->s[len] | 32) >= 'a' && (s->s[len] | 32) <= 'z'))) {
        len++;
    }
    *s = (struct hk_str){s->s + len, s->n - len};
    return len >= 3 && (!quoted || tzfile_accept_char(s, '>'));
}

/* "[+-]hh[:mm[:ss]]" */
static bool take_clock(struct hk_str *s, int max_hours, int32_t *ret_s)
{
    const bool negative = tzfile_accept_char(s, '-');
    int hours;
    int minutes = 0;
    int seconds = 0;

    if (!negative) {
        (void)tzfile_accept_char(s, '+');
    }
    if (!tzfile_parse_number(s, 0, max_hours, &hours) ||
        (tzfile_accept_char(s, ':') &&
         (!tzfile_parse_number(s, 0, 59, &minutes) ||
          (tzfile_accept_char(s, ':') && !tzfile_parse_number(s, 0, 59, &seconds))))) {
        return false;
    }
    *ret_s = (negative ? -1 : 1) * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

static bool take_when(struct hk_str *s, struct tz_when *ret)
{
    *ret = (struct tz_when){.time_s = 2 * 3600};
    if (!tzfile_accept_char(s, ',')) {
        return false;
    }
    if (tzfile_accept_char(s, 'M')) {
        if (!tzfile_parse_number(s, 1, 12, &ret->month) || !tzfile_accept_char(s, '.') ||
            !tzfile_parse_number(s, 1, 5, &ret->week) || !tzfile_accept_char(s, '.') ||
            !tzfile_parse_number(s, 0, 6, &ret->day)) {
            return false;
        }
    } else {
        ret->form = tzfile_accept_char(s, 'J') ? TZ_JULIAN : TZ_DAY;
        if (!tzfile_parse_number(s, ret->form == TZ_JULIAN, 365, &ret->day)) {
            return false;
        }
    }
    return !tzfile_accept_char(s, '/') || take_clock(s, 167, &ret->time_s);
}

/* In these strings west is positive. */
static bool parse_rule(struct hk_str s, struct tz_rule *ret)
{
    int32_t west_s;

    *ret = (struct tz_rule){0};
    if (s.n == 0) {
        return true;
    }
    if (!skip_name(&s) || !take_clock(&s, 24, &west_s)) {
        return false;
    }
    ret->present = true;
    ret->offset_s = -west_s;
    if (s.n == 0) {
        return true;
    }
    ret->has_summer = true;
    ret->summer_s = ret->offset_s + 3600;
    if (!skip_name(&s)) {
        return false;
    }
    if (s.n > 0 && s.s[0] != ',') {
        if (!take_clock(&s, 24, &west_s)) {
            return false;
        }
        ret->summer_s = -west_s;
    }
    return take_when(&s, &ret->begin) && take_when(&s, &ret->end) && s.n == 0;
}

/* ---- reading the table ---- */

struct tz_header {
    char version;
    uint32_t nisut, nisstd, nleap, ntime, ntype, nchar;
};

static uint64_t big_endian(const char *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++) {
        v = v << 8 | (uint8_t)p[i];
    }
    return v;
}

static bool take_bytes(struct hk_str *s, size_t n, const char **ret)
{
    if (s->n < n) {
        return false;
    }
    *ret = s->s;
    *s = (struct hk_str){s->s + n, s->n - n};
    return true;
}

static bool take_header(struct hk_str *s, struct tz_header *ret)
{
    uint32_t *const counts[] = {&ret->nisut, &ret->nisstd, &ret->nleap,
                                &ret->ntime, &ret->ntype,  &ret->nchar};
    const char *p;

    if (!hk_str_starts(*s, "TZif") || !take_bytes(s, HEADER_LEN, &p)) {
        return false;
    }
    ret->version = p[4];
    for (size_t i = 0; i < HK_LEN(counts); i++) {
        *counts[i] = (uint32_t)big_endian(p + 20 + 4 * i, 4);
        if (*counts[i] > FILE_MAX) {
            return false;
        }
    }
    return true;
}

/* Skips the data after the types: designations, leap seconds, indicators. */
static bool skip_rest(struct hk_str *s, const struct tz_header *h, size_t width)
{
    const char *p;

    return take_bytes(s, h->nchar + h->nleap * (width + 4) + h->nisstd + h->nisut, &p);
}

static bool skip_table(struct hk_str *s, const struct tz_header *h, size_t width)
{
    const char *p;

    return take_bytes(s, h->ntime * (width + 1) + h->ntype * 6UL, &p) && skip_rest(s, h, width);
}

static bool read_table(struct hk_str *s, const struct tz_header *h, size_t width, struct tzfile *z)
{
    const char *times;
    const char *picks;
    const char *types;

    if (h->ntype == 0 || !take_bytes(s, h->ntime * width, &times) ||
        !take_bytes(s, h->ntime, &picks) || !take_bytes(s, h->ntype * 6UL, &types)) {
        return false;
    }
    for (uint32_t i = 0; i < h->ntype; i++) {
        const int32_t offset_s = (int32_t)big_endian(types + 6UL * i, 4);
        if (offset_s < -OFFSET_MAX_S || offset_s > OFFSET_MAX_S) {
            return false;
        }
    }
    z->first_s = (int32_t)big_endian(types, 4);
    for (uint32_t i = 0; i < h->ntime; i++) {
        const uint64_t raw = big_endian(times + width * i, width);
        const uint8_t pick = (uint8_t)picks[i];
        const struct tz_change change = {
            .at_s = width == 8 ? (int64_t)raw : (int32_t)raw,
            .offset_s = pick < h->ntype ? (int32_t)big_endian(types + 6UL * pick, 4) : 0};

        if (pick >= h->ntype || (i > 0 && z->changes.at[i - 1].at_s >= change.at_s)) {
            return false;
        }
        hk_vec_push(&z->changes, change);
    }
    return skip_rest(s, h, width);
}

/* "\n<TZ string>\n" */
static bool read_footer(struct hk_str *s, struct tzfile *z)
{
    struct hk_str line;

    return tzfile_accept_char(s, '\n') && hk_str_cut(s, '\n', &line) && s->s &&
           parse_rule(line, &z->rule);
}

static bool read_zone(struct hk_str s, struct tzfile *z)
{
    struct tz_header h;

    if (!take_header(&s, &h)) {
        return false;
    }
    if (h.version < '2') {
        return read_table(&s, &h, 4, z);
    }
    return skip_table(&s, &h, 4) && take_header(&s, &h) && read_table(&s, &h, 8, z) &&
           read_footer(&s, z);
}

int tzfile_parse(struct hk_str bytes, struct tzfile **ret, struct hk_err *err)
{
    HK_AUTO(tzfile_freep) struct tzfile *z = hk_zalloc(sizeof(*z));

    if (!read_zone(bytes, z)) {
        return hk_fail(err, HK_EINVAL, "not a time zone file: truncated or damaged");
    }
    *ret = hk_take(z);
    return 0;
}

void tzfile_free(struct tzfile *z)
{
    if (z) {
        hk_vec_fini(&z->changes);
        hk_free(z);
    }
}

void tzfile_freep(struct tzfile **z)
{
    tzfile_free(*z);
}

/* ---- loading ---- */

static bool tzfile_is_zone_name(struct hk_str name)
{
    struct hk_str part;

    if (name.n > NAME_MAX_LEN) {
        return false;
    }
    for (struct hk_str rest = name; hk_str_cut(&rest, '/', &part);) {
        if (part.n == 0 || part.s[0] == '.' || part.s[0] == '-') {
            return false;
        }
        for (size_t i = 0; i < part.n; i++) {
            const char c = part.s[i];
            if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') &&
                (c == '\0' || !strchr("._+-", c))) {
                return false;
            }
        }
    }
    return true;
}

int tzfile_load(struct hk_str name, struct tzfile **ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf bytes = {0};
    int rc;

    if (name.n == 0 || hk_str_is(name, "UTC")) {
        *ret = hk_zalloc(sizeof(**ret));
        return 0;
    }
    if (!tzfile_is_zone_name(name)) {
        return hk_fail(err, HK_EINVAL, "time zone '%.*s', want a name such as Europe/Berlin",
                       HK_FMT(name));
    }
    if (hk_str_is(name, "Local")) {
        hk_buf_adds(&path, LOCAL_ZONE);
    } else {
        hk_buf_adds(&path, ZONE_DIR);
        hk_buf_addstr(&path, name);
    }
    if (hk_read_file(path.data, FILE_MAX, &bytes, NULL) < 0) {
        return hk_fail(err, HK_ENOTFOUND, "unknown time zone %.*s", HK_FMT(name));
    }
    rc = tzfile_parse(hk_buf_str(&bytes), ret, err);
    return rc < 0 ? hk_wrap(err, rc, "'%s'", path.data) : 0;
}

/* ---- queries ---- */

/* The last change at or before that time; UINT32_MAX if all are later. */
static uint32_t change_before(const struct tzfile *z, int64_t at_s)
{
    uint32_t lo = 0;
    uint32_t hi = z->changes.len;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (z->changes.at[mid].at_s <= at_s) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo - 1;
}

static struct tz_span span_of(const struct tzfile *z, int64_t at_s)
{
    struct tz_span span = {0, INT64_MIN, INT64_MAX};
    uint32_t i;

    if (!z) {
        return span;
    }
    i = change_before(z, at_s);
    span.offset_s = z->first_s;
    if (i != UINT32_MAX) {
        span.offset_s = z->changes.at[i].offset_s;
        span.begin_s = z->changes.at[i].at_s;
    }
    if (i + 1 < z->changes.len) {
        span.end_s = z->changes.at[i + 1].at_s;
    } else if (z->rule.has_summer) {
        span = span_of_rule(&z->rule, at_s);
    } else if (z->rule.present) {
        span.offset_s = z->rule.offset_s;
    }
    return span;
}

int32_t tzfile_offset(const struct tzfile *z, int64_t at_s)
{
    return span_of(z, at_s).offset_s;
}

struct tz_civil tzfile_civil(const struct tzfile *z, int64_t at_s)
{
    const int64_t local_s = at_s + tzfile_offset(z, at_s);
    const int64_t days = floor_div(local_s, DAY_S);
    const struct time_date d = time_date_of(days);
    const int of_day = (int)(local_s - days * DAY_S);

    return (struct tz_civil){
        .year = d.year,
        .month = d.month,
        .day = d.day,
        .hour = of_day / 3600,
        .minute = of_day / 60 % 60,
        .second = of_day % 60,
        .weekday = weekday_of(days),
    };
}

int64_t tzfile_instant(const struct tzfile *z, const struct tz_civil *c)
{
    const int64_t local_s = (time_days_of(c->year, c->month, 1) + c->day - 1) * DAY_S +
                            (int64_t)c->hour * 3600 + (int64_t)c->minute * 60 + c->second;
    /* First treats local time as UTC, which is right unless a change is near. */
    const struct tz_span span = span_of(z, local_s);
    const int64_t guess_s = local_s - span.offset_s;

    if (span.offset_s == 0 || (guess_s >= span.begin_s && guess_s < span.end_s)) {
        return guess_s;
    }
    return local_s - tzfile_offset(z, guess_s);
}

bool tzfile_exists(struct hk_str name)
{
    HK_AUTO(tzfile_freep) struct tzfile *z = NULL;

    return tzfile_load(name, &z, NULL) == 0;
}
