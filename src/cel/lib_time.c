// SPDX-License-Identifier: Apache-2.0
// Accessors of timestamps, in UTC or a named zone, and of durations.
#include "cel/cel_priv.h"
#include "codec/timefmt.h"
#include "codec/tzfile.h"

enum time_part {
    TIME_YEAR,
    TIME_MONTH,
    TIME_DAY_OF_YEAR,
    TIME_DAY_OF_MONTH,
    TIME_DATE,
    TIME_DAY_OF_WEEK,
    TIME_HOUR,
    TIME_MINUTE,
    TIME_SECOND,
};

/* "+02:00", "-5:30": seconds east. False for anything else. */
static bool time_offset(struct hk_str s, struct hk_arena *a, int64_t *ret)
{
    const char *text = hk_arena_strndup(a, s.s, s.n);
    const bool sign = s.n > 0 && (text[0] == '-' || text[0] == '+');
    unsigned hour, minute;
    int used = 0;

    if (sscanf(text + sign, "%2u:%2u%n", &hour, &minute, &used) < 2 || (size_t)used + sign != s.n ||
        hour > 23 || minute > 59) {
        return false;
    }
    *ret = (hour * INT64_C(3600) + minute * 60) * (text[0] == '-' ? -1 : 1);
    return true;
}

static int time_civil_at(struct cel_run *r, struct cel_time t, const struct cel_value *zone,
                         struct tz_civil *ret)
{
    HK_AUTO(tzfile_freep) struct tzfile *z = NULL;
    struct hk_err why = {0};
    int64_t east = 0;

    if (zone && !time_offset(zone->s, r->a, &east) && tzfile_load(zone->s, &z, &why) < 0) {
        return cel_error(r, "unknown time zone %.*s", (int)HK_MIN(zone->s.n, 60), zone->s.s);
    }
    *ret = tzfile_civil(z, t.s + east);
    return 0;
}

static int time_part(struct cel_run *r, const struct cel_value *v, uint32_t n, enum time_part part,
                     struct cel_value *ret)
{
    struct tz_civil c = {0};
    const int rc = time_civil_at(r, v[0].t, n > 1 ? &v[1] : NULL, &c);

    if (rc < 0) {
        return rc;
    }
    const int64_t parts[] = {
        [TIME_YEAR] = c.year,
        [TIME_MONTH] = c.month - 1,
        [TIME_DAY_OF_YEAR] = time_days_of(c.year, c.month, c.day) - time_days_of(c.year, 1, 1),
        [TIME_DAY_OF_MONTH] = c.day - 1,
        [TIME_DATE] = c.day,
        [TIME_DAY_OF_WEEK] = c.weekday,
        [TIME_HOUR] = c.hour,
        [TIME_MINUTE] = c.minute,
        [TIME_SECOND] = c.second,
    };
    *ret = cel_of_int(parts[part]);
    return 0;
}

#define TIME_ACCESSOR(name, part)                                                                  \
    static int name(struct cel_run *r, const struct cel_value *v, uint32_t n,                      \
                    struct cel_value *ret)                                                         \
    {                                                                                              \
        return time_part(r, v, n, part, ret);                                                      \
    }

TIME_ACCESSOR(time_year, TIME_YEAR)
TIME_ACCESSOR(time_month, TIME_MONTH)
TIME_ACCESSOR(time_day_of_year, TIME_DAY_OF_YEAR)
TIME_ACCESSOR(time_day_of_month, TIME_DAY_OF_MONTH)
TIME_ACCESSOR(time_date, TIME_DATE)
TIME_ACCESSOR(time_day_of_week, TIME_DAY_OF_WEEK)
TIME_ACCESSOR(time_hour, TIME_HOUR)
TIME_ACCESSOR(time_minute, TIME_MINUTE)
TIME_ACCESSOR(time_second, TIME_SECOND)

static int time_millisecond(struct cel_run *r, const struct cel_value *v, uint32_t n,
                            struct cel_value *ret)
{
    *ret = cel_of_int(v[0].t.ns / 1000000);
    return 0;
}

/* Durations give the whole in the unit, except for milliseconds: what is left of the second. */
static int span_hours(struct cel_run *r, const struct cel_value *v, uint32_t n,
                      struct cel_value *ret)
{
    *ret = cel_of_int(v[0].i / INT64_C(3600000000000));
    return 0;
}

static int span_minutes(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    *ret = cel_of_int(v[0].i / INT64_C(60000000000));
    return 0;
}

static int span_seconds(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    *ret = cel_of_int(v[0].i / 1000000000);
    return 0;
}

static int span_milliseconds(struct cel_run *r, const struct cel_value *v, uint32_t n,
                             struct cel_value *ret)
{
    *ret = cel_of_int(v[0].i / 1000000 % 1000);
    return 0;
}

static const struct cel_func time_funcs[] = {
    {"getFullYear", "t.:i", time_year, COST_ONE},
    {"getFullYear", "t.s:i", time_year, COST_ONE},
    {"getMonth", "t.:i", time_month, COST_ONE},
    {"getMonth", "t.s:i", time_month, COST_ONE},
    {"getDayOfYear", "t.:i", time_day_of_year, COST_ONE},
    {"getDayOfYear", "t.s:i", time_day_of_year, COST_ONE},
    {"getDayOfMonth", "t.:i", time_day_of_month, COST_ONE},
    {"getDayOfMonth", "t.s:i", time_day_of_month, COST_ONE},
    {"getDate", "t.:i", time_date, COST_ONE},
    {"getDate", "t.s:i", time_date, COST_ONE},
    {"getDayOfWeek", "t.:i", time_day_of_week, COST_ONE},
    {"getDayOfWeek", "t.s:i", time_day_of_week, COST_ONE},
    {"getHours", "t.:i", time_hour, COST_ONE},
    {"getHours", "t.s:i", time_hour, COST_ONE},
    {"getMinutes", "t.:i", time_minute, COST_ONE},
    {"getMinutes", "t.s:i", time_minute, COST_ONE},
    {"getSeconds", "t.:i", time_second, COST_ONE},
    {"getSeconds", "t.s:i", time_second, COST_ONE},
    {"getMilliseconds", "t.:i", time_millisecond, COST_ONE},
    {"getMilliseconds", "t.s:i", time_millisecond, COST_ONE},
    {"getHours", "D.:i", span_hours, COST_ONE},
    {"getMinutes", "D.:i", span_minutes, COST_ONE},
    {"getSeconds", "D.:i", span_seconds, COST_ONE},
    {"getMilliseconds", "D.:i", span_milliseconds, COST_ONE},
};

const struct cel_lib cel_lib_time = {time_funcs, HK_LEN(time_funcs)};
