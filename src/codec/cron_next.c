// SPDX-License-Identifier: Apache-2.0
// The next time of a schedule: advances month, day, hour and minute in turn until all match, and
// starts over when a larger unit changes. The steps are those of robfig/cron's SpecSchedule.Next,
// because they decide what happens at daylight saving changes.
#include "codec/cron.h"

#define NS 1000000000

enum { HOUR_S = 3600, DAY_S = 86400, YEARS_MAX = 5 };

struct walk {
    const struct cron *c;
    const struct tzfile *zone;
    int64_t at_s;
    struct tz_civil now; /* the civil time at at_s */
    bool moved;          /* the smaller units have been reset */
};

static bool cron_next_bit_is_set(uint64_t bits, int value)
{
    return bits >> value & 1;
}

static void walk_to(struct walk *w, int64_t at_s)
{
    w->at_s = at_s;
    w->now = tzfile_civil(w->zone, at_s);
}

static void walk_to_civil(struct walk *w, struct tz_civil c)
{
    walk_to(w, tzfile_instant(w->zone, &c));
}

/* Goes to the start of the current hour, day or month; only once, before the first advance. */
static void walk_back_to(struct walk *w, int day, int hour)
{
    if (!w->moved) {
        w->moved = true;
        walk_to_civil(w, (struct tz_civil){
                             .year = w->now.year, .month = w->now.month, .day = day, .hour = hour});
    }
}

static bool day_fits(const struct walk *w)
{
    const bool day = cron_next_bit_is_set(w->c->days, w->now.day);
    const bool weekday = cron_next_bit_is_set(w->c->weekdays, w->now.weekday);

    return w->c->any_day || w->c->any_weekday ? day && weekday : day || weekday;
}

/* Each of these finds the next matching value of its unit; false if a larger unit changed. */
static bool find_month(struct walk *w)
{
    while (!cron_next_bit_is_set(w->c->months, w->now.month)) {
        struct tz_civil next;

        walk_back_to(w, 1, 0);
        next = w->now;
        next.month = next.month % 12 + 1;
        next.year += next.month == 1;
        walk_to_civil(w, next);
        if (w->now.month == 1) {
            return false;
        }
    }
    return true;
}

/* Midnight may not exist on this day; corrects the hour next to it. */
static void next_day(struct walk *w)
{
    const int64_t before_s = w->at_s;
    struct tz_civil next = w->now;

    next.day++;
    walk_to_civil(w, next);
    if (w->now.hour > 12) {
        walk_to(w, w->at_s + (int64_t)(24 - w->now.hour) * HOUR_S);
    } else if (w->now.hour > 0) {
        walk_to(w, w->at_s - (int64_t)w->now.hour * HOUR_S);
    }
    if (w->at_s <= before_s) { /* the whole day was skipped, as in Samoa in 2011 */
        walk_to(w, before_s + DAY_S);
    }
}

static bool find_day(struct walk *w)
{
    while (!day_fits(w)) {
        walk_back_to(w, w->now.day, 0);
        next_day(w);
        if (w->now.day == 1) {
            return false;
        }
    }
    return true;
}

static bool find_hour(struct walk *w)
{
    while (!cron_next_bit_is_set(w->c->hours, w->now.hour)) {
        walk_back_to(w, w->now.day, w->now.hour);
        walk_to(w, w->at_s + HOUR_S);
        if (w->now.hour == 0) {
            return false;
        }
    }
    return true;
}

/* Advances to the next matching minute or second, in steps of step_s seconds. */
static bool find_small(struct walk *w, const int *value, uint64_t fitting, int step_s)
{
    while (!cron_next_bit_is_set(fitting, *value)) {
        if (!w->moved) {
            w->moved = true;
            walk_to(w, w->at_s - w->at_s % step_s);
        }
        walk_to(w, w->at_s + step_s);
        if (*value == 0) {
            return false;
        }
    }
    return true;
}

bool cron_next(const struct cron *c, const struct tzfile *zone, int64_t after_ns, int64_t *ret_ns)
{
    const int64_t after_s = after_ns / NS - (after_ns % NS < 0);
    struct walk w = {.c = c, .zone = zone};
    int last_year;

    if (c->every_ns > 0) {
        return !__builtin_add_overflow(after_s * NS, c->every_ns, ret_ns);
    }
    walk_to(&w, after_s + 1);
    last_year = w.now.year + YEARS_MAX;
    while (w.now.year <= last_year) {
        if (find_month(&w) && find_day(&w) && find_hour(&w) &&
            find_small(&w, &w.now.minute, c->minutes, 60) && find_small(&w, &w.now.second, 1, 1)) {
            if (w.at_s > after_s) {
                return !__builtin_mul_overflow(w.at_s, (int64_t)NS, ret_ns);
            }
            walk_to(&w, w.at_s + 1); /* going back to the full hour crossed a clock change */
        }
    }
    return false;
}
