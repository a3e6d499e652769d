// SPDX-License-Identifier: Apache-2.0
// Cron schedules as robfig/cron reads them in its standard form: five fields, or a word with an @.
#pragma once

#include "base/err.h"
#include "base/str.h"

/* One bit for each value a field may have. Day of month and day of week must both match when
 * either was "*" or "?", else one of them is enough: cron's old rule. */
struct cron {
    uint64_t minutes, hours, days, months, weekdays;
    bool any_day, any_weekday; /* the field began with "*" or "?" */
    int64_t every_ns;          /* "@every": the interval, at least a second; all else is unset */
};

/* No "TZ=" in front. */
int cron_parse(struct hk_str text, struct cron *ret, struct hk_err *err) HK_CHECKED;
