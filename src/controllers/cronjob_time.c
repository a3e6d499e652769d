// SPDX-License-Identifier: Apache-2.0
// Schedules of CronJobs: parsing, missed slots, and the time of the next one.
#include "codec/timefmt.h"
#include "controllers/cronjob_priv.h"

#define NS 1000000000

enum {
    MANY_MISSED = 100,
    LOOK_LATER_NS = 100 * 1000 * 1000, /* allows for differences between clocks */
};

/* ---- zones ---- */

void cronjob_zones_fini(struct cronjob_zones *z)
{
    for (uint32_t i = 0; i < z->at.len; i++) {
        hk_free(z->at.at[i].name);
        tzfile_free(z->at.at[i].zone);
    }
    hk_vec_fini(&z->at);
}

int cronjob_zone(struct cronjob_zones *z, struct hk_str name, const struct tzfile **ret,
                 struct hk_err *err)
{
    struct cronjob_zone new = {0};
    int rc;

    for (uint32_t i = 0; i < z->at.len; i++) {
        if (hk_str_is(name, z->at.at[i].name)) {
            *ret = z->at.at[i].zone;
            return 0;
        }
    }
    rc = tzfile_load(name, &new.zone, err);
    if (rc < 0) {
        return rc;
    }
    new.name = hk_strndup(name.s, name.n);
    hk_vec_push(&z->at, new);
    *ret = new.zone;
    return 0;
}

/* ---- schedules ---- */

int cronjob_plan_read(struct cronjob_zones *z, struct hk_str text, const struct tzfile *zone,
                      struct cronjob_plan *ret, struct hk_err *err)
{
    struct hk_str rest = text;
    struct hk_str name;

    if (hk_str_starts(text, "TZ=") || hk_str_starts(text, "CRON_TZ=")) {
        int rc;

        (void)hk_str_cut(&rest, '=', &name);
        (void)hk_str_cut(&rest, ' ', &name);
        rc = cronjob_zone(z, name, &zone, err);
        if (rc < 0) {
            return rc;
        }
        rest = rest.s ? hk_str_trim(rest) : HK_STR("");
    }
    ret->zone = zone;
    return cron_parse(rest, &ret->cron, err);
}

static bool cronjob_time_next_slot(const struct cronjob_plan *p, int64_t after_ns, int64_t *ret_ns)
{
    return cron_next(&p->cron, p->zone, after_ns, ret_ns);
}

int cronjob_missed(const struct cronjob_plan *p, int64_t after_ns, int64_t now_ns,
                   struct cronjob_missed *ret, struct hk_err *err)
{
    int64_t first_ns;
    int64_t second_ns;
    int64_t step_s;
    int64_t n;

    *ret = (struct cronjob_missed){0};
    if (!cronjob_time_next_slot(p, after_ns, &first_ns)) {
        return hk_fail(err, HK_EINVAL, "there is no such time within five years");
    }
    if (now_ns < first_ns) {
        return 0;
    }
    ret->found = true;
    ret->at_ns = first_ns;
    if (!cronjob_time_next_slot(p, first_ns, &second_ns) || now_ns < second_ns) {
        return 0;
    }
    /* Does not walk all slots: estimates their number from the first interval and starts two
     * intervals before now, since intervals may differ. */
    step_s = (second_ns - first_ns) / NS;
    n = (now_ns - first_ns) / NS / step_s + 1;
    ret->found = false;
    ret->some = true;
    ret->many = n > MANY_MISSED;
    for (int64_t at_ns = first_ns + (n - 2) * step_s * NS;
         cronjob_time_next_slot(p, at_ns, &at_ns) && at_ns <= now_ns;) {
        ret->found = true;
        ret->at_ns = at_ns;
    }
    return 0;
}

int64_t cronjob_next_look(const struct cronjob_plan *p, int64_t after_ns, int64_t now_ns)
{
    struct cronjob_missed missed;
    int64_t base_ns = now_ns;
    int64_t slot_ns;

    if (cronjob_missed(p, after_ns, now_ns, &missed, NULL) == 0) {
        if (missed.found) {
            base_ns = missed.at_ns;
        } else if (!missed.some) {
            base_ns = after_ns;
        }
    }
    return cronjob_time_next_slot(p, base_ns, &slot_ns) ? slot_ns + LOOK_LATER_NS : INT64_MAX;
}

void cronjob_write_time(const struct tzfile *zone, int64_t ns, struct hk_buf *out)
{
    const int offset_min = tzfile_offset(zone, ns / NS) / 60;
    const int size_min = offset_min < 0 ? -offset_min : offset_min;

    time_write(ns + (int64_t)offset_min * 60 * NS, out);
    if (offset_min != 0) {
        out->len--; /* remove the Z */
        hk_buf_addf(out, "%c%02d:%02d", offset_min < 0 ? '-' : '+', size_min / 60, size_min % 60);
    }
}
