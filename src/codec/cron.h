// SPDX-License-Identifier: Apache-2.0
// Cron schedules in robfig/cron's standard form: five fields, or a word with an @.
#pragma once

#include "codec/tzfile.h"

/* One bit per value of a field. Day of month and day of week must both match when either has a "*"
 * or "?", else one of them is enough: cron's old rule. */
struct cron {
    uint64_t minutes, hours, days, months, weekdays;
    bool any_day, any_weekday; /* a "*" or "?" without step is in the list */
    int64_t every_ns;          /* "@every": the interval, at least a second; the rest is unset */
};

/* text must not start with "TZ=". */
int cron_parse(struct hk_str text, struct cron *ret, struct hk_err *err) HK_CHECKED;

/* The first scheduled time after after_ns in the zone; false when there is none within five years.
 * Daylight saving changes work as in robfig/cron: a skipped time has no run, a repeated time has
 * two if the minutes continue hourly. */
bool cron_next(const struct cron *c, const struct tzfile *zone, int64_t after_ns, int64_t *ret_ns);
