// SPDX-License-Identifier: Apache-2.0
// The CronJob controller's files: cronjob.c for jobs and status, cronjob_time.c for schedules.
#pragma once

#include "base/vec.h"
#include "codec/cron.h"

/* Cache of the time zones in use. Zero it to initialise. */
struct cronjob_zone {
    char *name;
    struct tzfile *zone;
};
struct cronjob_zones {
    HK_VEC(struct cronjob_zone) at;
};
void cronjob_zones_fini(struct cronjob_zones *z);
int cronjob_zone(struct cronjob_zones *z, struct hk_str name, const struct tzfile **ret,
                 struct hk_err *err) HK_CHECKED;

/* A schedule in a time zone. */
struct cronjob_plan {
    struct cron cron;
    const struct tzfile *zone;
};
/* A "TZ=..." prefix of the text overrides zone. */
int cronjob_plan_read(struct cronjob_zones *z, struct hk_str text, const struct tzfile *zone,
                      struct cronjob_plan *ret, struct hk_err *err) HK_CHECKED;

/* The scheduled times in a past interval. Only the latest one matters. */
struct cronjob_missed {
    bool found;
    int64_t at_ns; /* the latest */
    bool some;     /* several, by estimate */
    bool many;     /* more than a hundred, by estimate */
};
int cronjob_missed(const struct cronjob_plan *p, int64_t after_ns, int64_t now_ns,
                   struct cronjob_missed *ret, struct hk_err *err) HK_CHECKED;
/* When to check the schedule again: a little after the next slot; INT64_MAX never. after_ns is the
 * last slot started. */
int64_t cronjob_next_look(const struct cronjob_plan *p, int64_t after_ns, int64_t now_ns);

/* RFC 3339 with the zone's offset. */
void cronjob_write_time(const struct tzfile *zone, int64_t ns, struct hk_buf *out);
