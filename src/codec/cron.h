// SPDX-License-Identifier: Apache-2.0
// Cron schedules as robfig/cron reads them in its standard form: five fields, or a word with an @.
#pragma once

#include "codec/tzfile.h"

/* One bit for each value a field may have. Day of month and day of week must both match when
 * either has a "*" or "?", else one of them is enough: cron's old rule. */
struct cron {
    uint64_t minutes, hours, days, months, weekdays;
    bool any_day, any_weekday; /* a "*" or "?" without step is in the list */
    int64_t every_ns;          /* "@every": the interval, at least a second; all else is unset */
};

/* No "TZ=" in front. */
int cron_parse(struct hk_str text, struct cron *ret, struct hk_err *err) HK_CHECKED;

/* The first time after after_ns that the schedule names, by the clocks of the zone; false when
 * there is none within five years. Where clocks jump, all is as robfig/cron has it: a time that is
 * skipped has no run, one that comes twice has two if minutes go on by the hour. */
bool cron_next(const struct cron *c, const struct tzfile *zone, int64_t after_ns, int64_t *ret_ns);
