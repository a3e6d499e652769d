// SPDX-License-Identifier: Apache-2.0
// batch/v1 CronJobs: a Job for the latest slot of a schedule. A job carries its slot, so the status
// follows from the existing jobs. cronjob_time.c computes the times, as for Volcano's kind.
#include "controllers/cronjob_priv.h"
#include "controllers/table.h"
#include "controllers/work_priv.h"

#include <stdlib.h>

#define ANN_SLOT "batch.kubernetes.io/cronjob-scheduled-timestamp"

static const struct hk_str none = {"", 0};

struct batch_cron_job {
    struct hk_str name, uid;
    int64_t created_ns, slot_ns, ended_ns;
    bool complete, failed, going; /* going: being deleted */
};

struct batch_cron_pass {
    struct pass *t;
    struct cronjob_zones *zones;
    struct json *root;
    const struct json *spec;
    struct batch_cron_job *jobs; /* sorted by creation */
    uint32_t njob;
    int64_t last_ns; /* the last started slot, 0 none */
};

static void batch_cronjob_on_job_change(struct ctl *c, const struct mirror_change *ch)
{
    const struct json *owner = kinds_controller(ch->root);

    if (hk_str_is(json_str(json_get(owner, "apiVersion"), none), "batch/v1")) {
        work_part_changed(c, ch, API_BATCH_CRONJOB);
    }
}

/* ---- existing jobs ---- */

static bool batch_cronjob_is_active(const struct batch_cron_job *j)
{
    return !j->complete && !j->failed;
}

static int batch_cronjob_compare_creation(const void *pa, const void *pb)
{
    const struct batch_cron_job *a = pa, *b = pb;

    return a->created_ns != b->created_ns ? (a->created_ns > b->created_ns) * 2 - 1
                                          : hk_str_cmp(a->name, b->name);
}

static struct batch_cron_job read_job(const struct batch_cron_pass *p, uint32_t row)
{
    const struct mirror *m = ctl_mirror(p->t->c, API_BATCH_JOB);
    const struct json root = mirror_read(m, row, p->t->mem);
    const struct json *status = json_get(&root, "status");

    return (struct batch_cron_job){.name = mirror_name(m, row),
                                   .uid = mirror_uid(m, row),
                                   .created_ns =
                                       work_time_of(json_at(&root, "metadata.creationTimestamp")),
                                   .slot_ns = work_time_of(kinds_annotation(&root, ANN_SLOT)),
                                   .ended_ns = work_time_of(json_get(status, "completionTime")),
                                   .complete = work_condition_is(status, "Complete", "True"),
                                   .failed = work_condition_is(status, "Failed", "True"),
                                   .going = work_is_going(&root)};
}

static void read_jobs(struct batch_cron_pass *p)
{
    const struct mirror *m = ctl_mirror(p->t->c, API_BATCH_JOB);
    const struct hk_str uid = work_uid(p->root);
    uint32_t n = 0;

    for (uint32_t r = mirror_first(m, OBJECTS_BY_CONTROLLER, uid); r != HK_NONE;
         r = mirror_next(m, OBJECTS_BY_CONTROLLER, r)) {
        n++;
    }
    p->jobs = hk_arena_array(p->t->mem, n, sizeof(*p->jobs));
    for (uint32_t r = mirror_first(m, OBJECTS_BY_CONTROLLER, uid); r != HK_NONE;
         r = mirror_next(m, OBJECTS_BY_CONTROLLER, r)) {
        const struct batch_cron_job job = read_job(p, r);

        p->jobs[p->njob++] = job;
        p->last_ns = HK_MAX(p->last_ns, job.slot_ns);
    }
    qsort(p->jobs, p->njob, sizeof(*p->jobs), batch_cronjob_compare_creation);
}

/* ---- status ---- */

static bool batch_cronjob_write_status(struct batch_cron_pass *p)
{
    struct json status = work_status(p->t, p->root), active = json_make_array();
    const struct json *was_active = json_at(p->root, "status.active");
    int64_t success_ns = work_time_of(json_get(&status, "lastSuccessfulTime"));

    for (uint32_t i = 0; i < p->njob; i++) {
        const struct batch_cron_job *j = &p->jobs[i];

        if (batch_cronjob_is_active(j)) {
            json_push(&active, p->t->mem,
                      cronjob_ref(p->t->mem, "batch/v1", p->t->ns, j->name, j->uid));
        } else if (cronjob_lists(was_active, j->uid)) {
            pass_event(p->t, p->root, false, "SawCompletedJob",
                       "Saw completed job: %.*s, condition: %s", HK_FMT(j->name),
                       j->complete ? "Complete" : "Failed");
        }
        success_ns = j->complete ? HK_MAX(success_ns, j->ended_ns) : success_ns;
    }
    if (active.len > 0) {
        json_set(&status, p->t->mem, "active", active);
    } else {
        json_del(&status, "active");
    }
    cronjob_set_time_if_known(&status, p->t->mem, "lastScheduleTime", p->last_ns);
    cronjob_set_time_if_known(&status, p->t->mem, "lastSuccessfulTime", success_ns);
    return work_write_status(p->t, API_BATCH_CRONJOB, p->root, status);
}

/* ---- history ---- */

static void batch_cronjob_delete_job(struct batch_cron_pass *p, const struct batch_cron_job *j)
{
    if (!j->going && pass_delete(p->t, api_kind(API_BATCH_JOB), p->t->ns, j->name, j->uid,
                                 PORT_PROPAGATE_BACKGROUND)) {
        pass_event(p->t, p->root, false, "SuccessfulDelete", "Deleted job %.*s", HK_FMT(j->name));
    }
}

static void batch_cronjob_prune_history(struct batch_cron_pass *p, bool complete, int64_t limit)
{
    int64_t surplus = -limit;

    for (uint32_t i = 0; i < p->njob; i++) {
        surplus += !batch_cronjob_is_active(&p->jobs[i]) && p->jobs[i].complete == complete;
    }
    for (uint32_t i = 0; i < p->njob && surplus > 0; i++) {
        if (!batch_cronjob_is_active(&p->jobs[i]) && p->jobs[i].complete == complete) {
            batch_cronjob_delete_job(p, &p->jobs[i]);
            surplus--;
        }
    }
}

/* ---- running ---- */

static void batch_cronjob_create_job(struct batch_cron_pass *p, struct hk_str name, int64_t slot_ns,
                                     const struct tzfile *shown)
{
    const struct json *template = json_get(p->spec, "jobTemplate");
    struct hk_arena *a = p->t->mem;
    HK_AUTO(hk_buf_fini) struct hk_buf slot = {0};
    /* Like a pod, a job gets the template's labels, annotations and spec, and an owner. */
    struct json body = work_pod(p->t, p->root, template, name);

    cronjob_write_time(shown, slot_ns, &slot);
    json_set_cstr(&body, a, "apiVersion", "batch/v1");
    json_set_cstr(&body, a, "kind", "Job");
    work_annotate(&body, a, ANN_SLOT, hk_arena_str(a, hk_buf_str(&slot)));
    if (pass_create(p->t, api_kind(API_BATCH_JOB), &body)) {
        pass_event(p->t, p->root, false, "SuccessfulCreate", "Created job %.*s", HK_FMT(name));
    }
}

/* Whether concurrencyPolicy permits another run now. */
static bool batch_cronjob_may_run(struct batch_cron_pass *p)
{
    const struct hk_str policy = json_str(json_get(p->spec, "concurrencyPolicy"), none);
    bool free = true;

    for (uint32_t i = 0; i < p->njob; i++) {
        if (!batch_cronjob_is_active(&p->jobs[i])) {
            continue;
        }
        if (hk_str_is(policy, "Forbid")) {
            pass_event(p->t, p->root, false, "JobAlreadyActive",
                       "Not starting job because prior execution is running and concurrency "
                       "policy is Forbid");
            return false;
        }
        if (hk_str_is(policy, "Replace")) {
            batch_cronjob_delete_job(p, &p->jobs[i]);
            free = free && p->jobs[i].going;
        }
    }
    return free;
}

static void batch_cronjob_run_slot(struct batch_cron_pass *p, int64_t slot_ns,
                                   const struct tzfile *shown)
{
    const struct hk_str name = cronjob_job_name(p->t->mem, p->t->name, slot_ns);

    if (mirror_find(ctl_mirror(p->t->c, API_BATCH_JOB), p->t->ns, name) == HK_NONE &&
        batch_cronjob_may_run(p)) {
        batch_cronjob_create_job(p, name, slot_ns, shown);
    }
}

static bool batch_cronjob_read_plan(struct batch_cron_pass *p, struct cronjob_plan *ret,
                                    const struct tzfile **ret_shown)
{
    const struct hk_str text = json_str(json_get(p->spec, "schedule"), none);
    const bool named = json_is(json_get(p->spec, "timeZone"), JSON_STRING);
    const struct hk_str zone_name = cronjob_zone_name(p->spec, ctl_conf(p->t->c)->local_zone);
    const struct tzfile *zone = NULL;
    struct hk_err err = {0};

    if (cronjob_zone(p->zones, zone_name, &zone, &err) < 0) {
        pass_event(p->t, p->root, true, "UnknownTimeZone", "invalid timeZone: \"%.*s\": %s",
                   HK_FMT(zone_name), err.text);
        return false;
    }
    if (cronjob_plan_read(p->zones, text, zone, ret, &err) < 0) {
        pass_event(p->t, p->root, true, "UnparseableSchedule",
                   "unparseable schedule: \"%.*s\" : %s", HK_FMT(text), err.text);
        return false;
    }
    *ret_shown = named ? zone : NULL;
    return true;
}

static void batch_cronjob_follow_schedule(struct batch_cron_pass *p)
{
    const int64_t created_ns = work_time_of(json_at(p->root, "metadata.creationTimestamp"));
    const int64_t earliest_ns = p->last_ns > 0 ? p->last_ns : created_ns;
    const int64_t deadline_s = json_int(json_get(p->spec, "startingDeadlineSeconds"), -1);
    const int64_t now_ns = p->t->now_ns;
    const struct tzfile *shown;
    struct cronjob_missed missed;
    struct cronjob_plan plan;
    struct hk_err err = {0};
    int64_t from_ns = earliest_ns;

    if (!batch_cronjob_read_plan(p, &plan, &shown)) {
        return;
    }
    if (deadline_s >= 0 && deadline_s < now_ns / WORK_SECOND_NS) {
        from_ns = HK_MAX(from_ns, now_ns - deadline_s * WORK_SECOND_NS);
    }
    if (cronjob_missed(&plan, from_ns, now_ns, &missed, &err) < 0) {
        pass_event(p->t, p->root, true, "InvalidSchedule", "invalid schedule: %.*s : %s",
                   HK_FMT(json_str(json_get(p->spec, "schedule"), none)), err.text);
        return;
    }
    pass_again_at(p->t, cronjob_next_look(&plan, earliest_ns, now_ns));
    if (!missed.found) {
        return;
    }
    if (missed.many) {
        pass_event(p->t, p->root, true, "TooManyMissedTimes",
                   "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or "
                   "check clock skew");
    }
    batch_cronjob_run_slot(p, missed.at_ns, shown);
}

/* ---- one pass ---- */

static void batch_cronjob_reconcile(struct ctl *c, struct pass *t)
{
    struct json root;
    struct batch_cron_pass p = {.t = t, .root = &root, .zones = c->state};

    if (!work_find(t, API_BATCH_CRONJOB, &root) || work_is_going(&root)) {
        return;
    }
    p.spec = json_get(&root, "spec");
    p.last_ns = work_time_of(json_at(&root, "status.lastScheduleTime"));
    read_jobs(&p);
    if (!json_bool(json_get(p.spec, "suspend"), false)) {
        batch_cronjob_follow_schedule(&p);
    }
    if ((t->ncall == 0 || t->nerror > 0) && !batch_cronjob_write_status(&p)) {
        batch_cronjob_prune_history(&p, true, cronjob_history_limit(p.spec, true));
        batch_cronjob_prune_history(&p, false, cronjob_history_limit(p.spec, false));
    }
}

static void close_zones(struct ctl *c)
{
    cronjob_zones_fini(c->state);
}

static const struct ctl_watch watches[] = {
    {&mirror_batch_cronjobs, work_changed}, {&mirror_batch_jobs, batch_cronjob_on_job_change}, {0}};

const struct ctl_type ctl_work_cronjob = {.name = "batch-cronjob-controller",
                                          .about = "starts Jobs by the clock",
                                          .watches = watches,
                                          .state_size = sizeof(struct cronjob_zones),
                                          .close = close_zones,
                                          .reconcile = batch_cronjob_reconcile};
