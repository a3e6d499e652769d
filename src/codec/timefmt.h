// SPDX-License-Identifier: Apache-2.0
// Timestamps (RFC 3339) and Go durations ("1h30m", "300ms").
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Convert a date of the years 1 to 9999 to days since 1 January 1970, and back. */
struct time_date {
    int year, month, day;
};
int64_t time_days_of(int year, int month, int day);
struct time_date time_date_of(int64_t days);

/* Times that were read are within half of the int64 range, years 1823 to 2116, and durations are no
 * longer than 146 years: any two of them can be added or subtracted without overflow, and the same is
 * true of a time and hk_seconds_ns(). */
#define TIME_MAX_NS ((INT64_C(1) << 62) - 1)
#define TIME_MIN_NS (-TIME_MAX_NS)

/* Nanoseconds since 1970. Accepts fractions (cut after nine digits) and any offset; of the years
 * 0001 to 9999 those outside the range above clamp to its ends. A leap second reads as the second
 * after. */
int time_parse(struct hk_str s, int64_t *ret_ns, struct hk_err *err) HK_CHECKED;
/* UTC, whole seconds, as metav1.Time: "2026-01-02T15:04:05Z". */
void time_write(int64_t ns, struct hk_buf *out);
/* With six digits of fraction, as metav1.MicroTime. */
void time_write_micro(int64_t ns, struct hk_buf *out);

/* Go's time.ParseDuration, its messages included, but clamped to the range above. */
int duration_parse(struct hk_str s, int64_t *ret_ns, struct hk_err *err) HK_CHECKED;
/* Go's Duration.String. */
void duration_write(int64_t ns, struct hk_buf *out);
/* kubectl's AGE column: "5s", "3m20s", "4h", "12d", "2y3d"; "<invalid>" for two seconds and more in
 * the future. */
void duration_write_human(int64_t ns, struct hk_buf *out);
