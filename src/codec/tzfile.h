// SPDX-License-Identifier: Apache-2.0
// Time zones from the system's zoneinfo files (TZif, RFC 8536). Does not use the environment or
// libc's local time, so any number of zones can be used at once.
//
// Times are seconds since 1970, offsets seconds east of Greenwich. A NULL zone means UTC.
#pragma once

#include "base/err.h"
#include "base/str.h"

struct tzfile;

/* Local date and time. */
struct tz_civil {
    int year, month, day; /* from 1 on */
    int hour, minute, second;
    int weekday; /* 0 is Sunday */
};

/* By name: "Europe/Berlin"; "" and "UTC" are UTC, "Local" is the machine's zone. -HK_EINVAL for an
 * invalid name, -HK_ENOTFOUND for an unknown zone. */
int tzfile_load(struct hk_str name, struct tzfile **ret, struct hk_err *err) HK_CHECKED;
/* Whether the system's database has a zone of that name. "" and "UTC" are in it. */
bool tzfile_exists(struct hk_str name);
/* From the bytes of a file. */
int tzfile_parse(struct hk_str bytes, struct tzfile **ret, struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void tzfile_free(struct tzfile *z);
void tzfile_freep(struct tzfile **z);

int32_t tzfile_offset(const struct tzfile *z, int64_t at_s);
struct tz_civil tzfile_civil(const struct tzfile *z, int64_t at_s);
/* The instant of a local time. Day, hour, minute and second may be out of range and carry over; the
 * weekday is ignored. A time that occurs twice gives one of the two, a skipped time is read with
 * the offset of either side, both as Go's time.Date does. */
int64_t tzfile_instant(const struct tzfile *z, const struct tz_civil *c);
