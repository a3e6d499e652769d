// SPDX-License-Identifier: Apache-2.0
// Time zones: the system's zoneinfo files (TZif, RFC 8536) as tables. Nothing here looks at the
// environment or at libc's idea of local time, so any number of zones live side by side.
//
// Times are seconds since 1970, offsets seconds east of Greenwich. Wherever a zone is asked for,
// NULL is UTC.
#pragma once

#include "base/err.h"
#include "base/str.h"

struct tzfile;

/* What the clocks and calendars of a place show. */
struct tz_civil {
    int year, month, day; /* from 1 on */
    int hour, minute, second;
    int weekday; /* 0 is Sunday */
};

/* By name: "Europe/Berlin"; "" and "UTC" are UTC, "Local" is what the machine is set to. -HK_EINVAL
 * when it can be no name, -HK_ENOTFOUND when there is no such zone. */
int tzfile_load(struct hk_str name, struct tzfile **ret, struct hk_err *err) HK_CHECKED;
/* From the bytes of a file. */
int tzfile_parse(struct hk_str bytes, struct tzfile **ret, struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void tzfile_free(struct tzfile *z);
void tzfile_freep(struct tzfile **z);

int32_t tzfile_offset(const struct tzfile *z, int64_t at_s);
struct tz_civil tzfile_civil(const struct tzfile *z, int64_t at_s);
/* The instant when clocks show that. Day, hour, minute and second may be beyond their ends, which
 * carries over; the weekday is ignored. Where clocks jump, a time that comes twice is one of the
 * two, and one that is skipped is read with the offset of either side, each as Go's time.Date has
 * it. */
int64_t tzfile_instant(const struct tzfile *z, const struct tz_civil *c);
