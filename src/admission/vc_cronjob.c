// SPDX-License-Identifier: Apache-2.0
// CronJobs: schedule, time zone and name. The job template is validated when a job is created from
// it.
#include "admission/vc_priv.h"

#include "codec/cron.h"
#include "codec/tzfile.h"

#include <ctype.h>

enum {
    NAME_MAX_BYTES = 52, /* a job's name adds a dash and ten digits */
    ZONE_PART_MAX = 14,
};

static void check_schedule(struct vc *v, struct hk_str schedule)
{
    struct cron cron;

    if (schedule.n == 0) {
        hk_buf_adds(&v->why, "schedule is required, but got empty");
    } else if (hk_str_contains(schedule, "TZ")) {
        hk_buf_adds(&v->why, "schedule should not contain TZ or CRON_TZ, TZ should only be set in "
                             "the timeZone field");
    } else if (cron_parse(schedule, &cron, NULL) < 0) {
        hk_buf_adds(&v->why, "schedule is not a valid cron expression");
    }
}

static bool is_zone_part(struct hk_str part)
{
    if (part.n == 0 || part.n > ZONE_PART_MAX || part.s[0] == '-' || hk_str_is(part, ".") ||
        hk_str_is(part, "..")) {
        return false;
    }
    for (size_t i = 0; i < part.n; i++) {
        if (!isalnum((unsigned char)part.s[i]) && !strchr(".-_+", part.s[i])) {
            return false;
        }
    }
    return true;
}

static void check_zone(struct vc *v, struct hk_str zone)
{
    struct hk_str part;

    if (zone.n == 0) {
        hk_buf_adds(&v->why, " timeZone must be nil or non-empty string, got empty string");
        return;
    }
    for (struct hk_str rest = zone; hk_str_cut(&rest, '/', &part);) {
        if (!is_zone_part(part)) {
            hk_buf_adds(&v->why, " unknown timeZone");
        }
    }
    if (zone.n == 5 && strncasecmp(zone.s, "Local", 5) == 0) {
        hk_buf_adds(&v->why, " timeZone can't be Local, and must be defined in "
                             "https://www.iana.org/time-zones");
    } else if (!tzfile_exists(zone)) {
        hk_buf_adds(&v->why, " invalid timeZone");
    }
}

static void vc_cronjob_check_name(struct hk_str name, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf reasons = {0};

    if (name.n > NAME_MAX_BYTES) {
        hk_buf_addf(out,
                    "cronJob name must be no more than %d characters to accommodate job name "
                    "suffix (max 63 total)",
                    NAME_MAX_BYTES);
    } else if (!name_write_errors(name, NAME_QUALIFIED, "; ", &reasons)) {
        hk_buf_addf(out, "invalid cronJob name \"%.*s\": %s", HK_FMT(name), reasons.data);
    }
}

void vc_cronjob_validate(struct vc *v)
{
    const struct json *spec = json_get(v->q->obj, "spec");
    HK_AUTO(hk_buf_fini) struct hk_buf found = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf named = {0};

    check_schedule(v, edit_str(spec, "schedule"));
    if (edit_has(spec, "timeZone")) {
        check_zone(v, edit_str(spec, "timeZone"));
    }
    hk_buf_addstr(&found, hk_str_trim(hk_buf_str(&v->why)));
    hk_buf_clear(&v->why);
    vc_cronjob_check_name(v->q->name, &named);
    hk_buf_addf(&v->why, "%s%s%s", hk_buf_str(&found).s, found.len > 0 && named.len > 0 ? "; " : "",
                hk_buf_str(&named).s);
}
