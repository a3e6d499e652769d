// SPDX-License-Identifier: Apache-2.0
// CronJobs of Volcano (cronjob.c) and of Kubernetes (work_cronjob.c), and what both use:
// cronjob_time.c for schedules, cronjob_spec.c for members of their spec and status.
#pragma once

#include "base/vec.h"
#include "codec/cron.h"
#include "codec/json.h"

/* ---- cronjob_time.c ---- */

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

/* ---- cronjob_spec.c ---- */

/* The time zone of the schedule: timeZone, else local_zone, which may be NULL. */
struct hk_str cronjob_zone_name(const struct json *spec, const char *local_zone);
/* The name of the job for a slot: the CronJob's name and the slot in minutes since 1970. */
struct hk_str cronjob_job_name(struct hk_arena *a, struct hk_str cronjob, int64_t slot_ns);
/* How many finished jobs to keep: successfulJobsHistoryLimit or failedJobsHistoryLimit. */
int64_t cronjob_history_limit(const struct json *spec, bool successful);
/* An item of status.active. */
struct json cronjob_ref(struct hk_arena *a, const char *api_version, struct hk_str ns,
                        struct hk_str name, struct hk_str uid);
/* Whether a list of such items contains the uid; active may be NULL. */
bool cronjob_lists(const struct json *active, struct hk_str uid);
/* Sets a time of the status, unless it is 0. */
void cronjob_set_time_if_known(struct json *status, struct hk_arena *a, const char *key,
                               int64_t ns);
