// SPDX-License-Identifier: Apache-2.0
// CronJobs: one job for each slot of a schedule. A job carries its slot in its name and in an
// annotation, so the last started slot follows from the jobs themselves. A run is one create, and
// the status follows in the next pass, so a crash in between leaves nothing to repair.
#include "controllers/cronjob_priv.h"

#include "api/names.h"
#include "codec/timefmt.h"
#include "controllers/keymem.h"
#include "controllers/kinds.h"
#include "controllers/pass.h"
#include "controllers/table.h"

#define NS 1000000000

#define VERSION "batch.volcano.sh/v1alpha1"

static const struct hk_str none = {"", 0};

/* Events that are sent once per slot or text, not once per pass. */
enum cron_news {
    NEWS_FORBID,
    NEWS_REPLACE,
    NEWS_FOREIGN,
    NEWS_MANY,
    NEWS_TZ_IN_TEXT,
    NEWS_ZONE,
    NEWS_TEXT,
    NEWS_NEVER,
    NNEWS,
};

/* The controller's memory of a CronJob. */
struct cron_mem {
    uint64_t uid;       /* hash of the CronJob's uid */
    int64_t seen_ns;    /* the latest slot of any job seen, even of one already gone */
    uint64_t schedule;  /* hash of the last schedule and zone, 0 none */
    int64_t changed_ns; /* earlier slots are ignored: this schedule was not in force */
    uint64_t reported[NNEWS];
    HK_VEC(char *) deleting; /* jobs being deleted, no Event sent yet */
};

struct cron_state {
    struct keymem mem;
    struct cronjob_zones zones;
};

/* A job of the CronJob. */
struct cron_job {
    struct hk_str name, uid;
    enum api_job_phase phase;
    bool terminating;
    int64_t created_ns, slot_ns, ended_ns; /* 0 unknown */
};

/* An Event that is sent with the status change it explains. */
struct cron_event {
    bool warning;
    const char *reason, *text;
};

struct cron_pass {
    struct pass *t;
    struct cron_state *state;
    struct cron_mem *mem;
    const struct mirror *jobs;
    struct json root;
    const struct json *spec;
    bool replace;           /* policy Replace: jobs being deleted do not count */
    struct cron_job *owned; /* by creation, then name */
    uint32_t nowned;
    struct json active; /* for the new status */
    int64_t old_last_ns, last_ns, success_ns;
    struct cron_event *events;
    uint32_t nevent;
    bool created; /* a job creation was requested */
};

/* ---- memory ---- */

static void drop_mem(void *block)
{
    struct cron_mem *mem = block;

    for (uint32_t i = 0; i < mem->deleting.len; i++) {
        hk_free(mem->deleting.at[i]);
    }
    hk_vec_fini(&mem->deleting);
}

/* The memory of the CronJob with that uid. Another CronJob of the same name gets an empty one. */
static struct cron_mem *mem_of(struct cron_state *s, struct hk_str ns, struct hk_str name,
                               struct hk_str uid)
{
    struct cron_mem *mem = keymem_get(&s->mem, ns, name);
    const uint64_t hash = hk_hash(uid.s, uid.n, 0);

    if (mem->uid != hash) {
        drop_mem(mem);
        *mem = (struct cron_mem){.uid = hash};
    }
    return mem;
}

static void cronjob_open(struct ctl *c)
{
    keymem_init(&((struct cron_state *)c->state)->mem, c, sizeof(struct cron_mem), drop_mem);
}

static void cronjob_close(struct ctl *c)
{
    struct cron_state *s = c->state;

    keymem_fini(&s->mem);
    cronjob_zones_fini(&s->zones);
}

/* True the first time that this is reported. */
static bool cronjob_report_once(struct cron_pass *p, enum cron_news what, uint64_t about)
{
    const bool news = p->mem->reported[what] != about;

    p->mem->reported[what] = about;
    return news;
}

/* ---- which keys a change concerns ---- */

static int64_t time_of(const struct json *v)
{
    int64_t ns;

    return time_parse(json_str(v, none), &ns, NULL) == 0 ? ns : 0;
}

/* The job's slot; 0 when it lies in the future, as no slot can start early. */
static int64_t slot_of(const struct json *job, int64_t now_ns)
{
    const int64_t slot_ns = time_of(kinds_annotation(job, API_ANN_CRON_TIMESTAMP));

    return slot_ns <= now_ns ? slot_ns : 0;
}

static void cronjob_changed(struct ctl *c, const struct mirror_change *ch)
{
    ctl_add(c, mirror_ns(ch->mirror, ch->row), mirror_name(ch->mirror, ch->row));
}

/* Remembers the slot: it must not start again if the job is gone before the status has it. */
static void cronjob_on_job_change(struct ctl *c, const struct mirror_change *ch)
{
    const struct json *owner = kinds_controller(ch->root);
    const struct hk_str ns = mirror_ns(ch->mirror, ch->row);
    const struct hk_str name = json_str(json_get(owner, "name"), none);
    struct cron_mem *mem;

    if (!hk_str_is(json_str(json_get(owner, "kind"), none), "CronJob") ||
        !hk_str_is(json_str(json_get(owner, "apiVersion"), none), VERSION)) {
        return;
    }
    mem = mem_of(c->state, ns, name, json_str(json_get(owner, "uid"), none));
    mem->seen_ns = HK_MAX(mem->seen_ns, slot_of(ch->root, ctl_now(c)));
    ctl_add(c, ns, name);
}

/* ---- existing jobs ---- */

static int cronjob_compare_creation(const void *pa, const void *pb)
{
    const struct cron_job *a = pa;
    const struct cron_job *b = pb;
    /* A job without a time sorts as the newest. */
    const uint64_t x = (uint64_t)a->created_ns - 1;
    const uint64_t y = (uint64_t)b->created_ns - 1;

    return x != y ? (x < y ? -1 : 1) : hk_str_cmp(a->name, b->name);
}

static void collect_jobs(struct cron_pass *p)
{
    const struct hk_str uid = json_str(json_at(&p->root, "metadata.uid"), none);
    HK_VEC(struct cron_job) jobs = {0};

    for (uint32_t r = mirror_first(p->jobs, JOBS_BY_CONTROLLER, uid); r != HK_NONE;
         r = mirror_next(p->jobs, JOBS_BY_CONTROLLER, r)) {
        const struct job_digest *d = mirror_digest(p->jobs, r);
        const struct json job = mirror_read(p->jobs, r, p->t->mem);

        if (!hk_str_eq(mirror_ns(p->jobs, r), p->t->ns)) {
            continue;
        }
        hk_vec_push(&jobs,
                    (struct cron_job){
                        .name = mirror_name(p->jobs, r),
                        .uid = mirror_uid(p->jobs, r),
                        .phase = d->phase,
                        .terminating = d->terminating,
                        .created_ns = time_of(json_at(&job, "metadata.creationTimestamp")),
                        .slot_ns = slot_of(&job, p->t->now_ns),
                        .ended_ns = time_of(json_at(&job, "status.state.lastTransitionTime")),
                    });
    }
    p->nowned = jobs.len;
    p->owned = hk_arena_array(p->t->mem, jobs.len, sizeof(*p->owned));
    if (jobs.len > 0) {
        memcpy(p->owned, jobs.at, jobs.len * sizeof(*p->owned));
        qsort(p->owned, p->nowned, sizeof(*p->owned), cronjob_compare_creation);
    }
    hk_vec_fini(&jobs);
}

static const struct cron_job *find_owned(const struct cron_pass *p, struct hk_str uid)
{
    for (uint32_t i = 0; i < p->nowned; i++) {
        if (hk_str_eq(p->owned[i].uid, uid)) {
            return &p->owned[i];
        }
    }
    return NULL;
}

static bool cronjob_is_active(const struct cron_pass *p, const struct cron_job *j)
{
    return !api_job_is_finished(j->phase) && !(p->replace && j->terminating);
}

static bool is_deleting(const struct cron_pass *p, struct hk_str name)
{
    for (uint32_t i = 0; i < p->mem->deleting.len; i++) {
        if (hk_str_is(name, p->mem->deleting.at[i])) {
            return true;
        }
    }
    return false;
}

/* ---- the new status ---- */

static void add_event(struct cron_pass *p, bool warning, const char *reason, const char *text)
{
    p->events[p->nevent++] = (struct cron_event){warning, reason, text};
}

/* Whether to keep a reference to a job that this CronJob does not own, or that is gone. */
static bool keep_unowned_ref(struct cron_pass *p, struct hk_str name, struct hk_str uid)
{
    const uint32_t row = mirror_find(p->jobs, p->t->ns, name);

    if (row != HK_NONE && hk_str_eq(mirror_uid(p->jobs, row), uid)) {
        return !api_job_is_finished(
            ((const struct job_digest *)mirror_digest(p->jobs, row))->phase);
    }
    if (is_deleting(p, name)) {
        return false; /* deleted by this controller */
    }
    add_event(p, true, "StaleReference",
              row == HK_NONE
                  ? hk_arena_printf(p->t->mem, "Active job \"%.*s\" no longer exists (UID: %.*s)",
                                    HK_FMT(name), HK_FMT(uid))
                  : hk_arena_printf(p->t->mem,
                                    "Active job reference \"%.*s\" points to a different UID "
                                    "(expected: %.*s, actual: %.*s)",
                                    HK_FMT(name), HK_FMT(uid), HK_FMT(mirror_uid(p->jobs, row))));
    return false;
}

static bool keep_ref(struct cron_pass *p, const struct json *ref)
{
    const struct hk_str uid = json_str(json_get(ref, "uid"), none);
    const struct cron_job *job = find_owned(p, uid);

    if (!job) {
        return keep_unowned_ref(p, json_str(json_get(ref, "name"), none), uid);
    }
    if (api_job_is_finished(job->phase)) {
        add_event(p, false, "SawCompletedJob",
                  hk_arena_printf(p->t->mem, "Saw completed job: %.*s in active, remove",
                                  HK_FMT(job->name)));
    }
    return cronjob_is_active(p, job);
}

/* A job with a slot later than the status is new. Another job that is not listed is an orphan. */
static void add_job_to_status(struct cron_pass *p, const struct cron_job *job,
                              const struct json *old_active)
{
    const bool listed = cronjob_lists(old_active, job->uid);
    const bool fresh = job->slot_ns > p->old_last_ns;

    if (!listed && fresh) {
        add_event(p, false, "SuccessfulCreate",
                  hk_arena_printf(p->t->mem, "Created job %.*s for CronJob %.*s/%.*s",
                                  HK_FMT(job->name), HK_FMT(p->t->ns), HK_FMT(p->t->name)));
    }
    if (!listed && cronjob_is_active(p, job)) {
        if (!fresh) {
            add_event(p, true, "OrphanedJob",
                      hk_arena_printf(p->t->mem,
                                      "Detected orphaned job forgotted or not managed by "
                                      "controller: %.*s (UID: %.*s)",
                                      HK_FMT(job->name), HK_FMT(job->uid)));
        }
        json_push(&p->active, p->t->mem,
                  cronjob_ref(p->t->mem, VERSION, p->t->ns, job->name, job->uid));
    }
    p->last_ns = HK_MAX(p->last_ns, job->slot_ns);
    if (job->phase == API_JOB_COMPLETED) {
        p->success_ns = HK_MAX(p->success_ns, job->ended_ns);
    }
}

static void make_status(struct cron_pass *p)
{
    const struct json *old = json_at(&p->root, "status.active");
    const uint32_t nold = json_is(old, JSON_ARRAY) ? old->len : 0;

    p->events = hk_arena_array(p->t->mem, nold + 2UL * p->nowned, sizeof(*p->events));
    p->active = json_make_array();
    p->old_last_ns = time_of(json_at(&p->root, "status.lastScheduleTime"));
    p->last_ns = HK_MAX(p->old_last_ns, p->mem->seen_ns);
    p->success_ns = time_of(json_at(&p->root, "status.lastSuccessfulTime"));
    for (uint32_t i = 0; i < nold; i++) {
        if (keep_ref(p, &old->items[i])) {
            json_push(&p->active, p->t->mem, old->items[i]);
        }
    }
    for (uint32_t i = 0; i < p->nowned; i++) {
        add_job_to_status(p, &p->owned[i], old);
    }
}

static void cronjob_write_status(struct cron_pass *p)
{
    const struct json *old = json_get(&p->root, "status");
    struct json status = json_make_object();

    if (p->active.len > 0) {
        json_set(&status, p->t->mem, "active", p->active);
    }
    cronjob_set_time_if_known(&status, p->t->mem, "lastScheduleTime", p->last_ns);
    cronjob_set_time_if_known(&status, p->t->mem, "lastSuccessfulTime", p->success_ns);
    if (old ? json_equal(old, &status) : status.len == 0) {
        return;
    }
    json_set(&p->root, p->t->mem, "status", status);
    pass_update_status(p->t, api_kind(API_CRONJOB), &p->root);
}

/* ---- deleting ---- */

static bool cronjob_delete_job(struct cron_pass *p, const struct cron_job *job)
{
    if (job->terminating || !pass_delete(p->t, api_kind(API_JOB), p->t->ns, job->name, job->uid,
                                         PORT_PROPAGATE_BACKGROUND)) {
        return false;
    }
    if (!is_deleting(p, job->name)) {
        hk_vec_push(&p->mem->deleting, hk_strndup(job->name.s, job->name.n));
    }
    return true;
}

static const struct pass_error *delete_error(const struct cron_pass *p, const char *name)
{
    for (uint32_t i = 0; i < p->t->nerror; i++) {
        const struct pass_error *e = &p->t->errors[i];
        if (e->verb == PORT_DELETE && strcmp(e->name, name) == 0) {
            return e;
        }
    }
    return NULL;
}

/* Sends the Event about a deletion once its result is known; true then. */
static bool report_deletion(struct cron_pass *p, const char *name)
{
    const struct pass_error *e = delete_error(p, name);
    const uint32_t row = mirror_find(p->jobs, p->t->ns, hk_str(name));

    if (e) {
        pass_event(p->t, &p->root, true, "FailedDelete", "Error deleting job \"%s\": %s", name,
                   e->text);
        return true;
    }
    if (row == HK_NONE || ((const struct job_digest *)mirror_digest(p->jobs, row))->terminating) {
        pass_event(p->t, &p->root, false, "SuccessfulDelete", "Deleted job \"%s\"", name);
        return true;
    }
    return false;
}

static void report_deletions(struct cron_pass *p)
{
    for (uint32_t i = p->mem->deleting.len; i-- > 0;) {
        if (report_deletion(p, p->mem->deleting.at[i])) {
            hk_free(p->mem->deleting.at[i]);
            hk_vec_swap_remove(&p->mem->deleting, i);
        }
    }
}

/* Deletes the oldest successful, or failed, jobs beyond the limit. */
static void cronjob_prune_history(struct cron_pass *p, bool successful, int64_t limit)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < p->nowned; i++) {
        const struct cron_job *j = &p->owned[i];
        n += api_job_is_finished(j->phase) && (j->phase == API_JOB_COMPLETED) == successful &&
             !j->terminating;
    }
    for (uint32_t i = 0; i < p->nowned && n > limit; i++) {
        const struct cron_job *j = &p->owned[i];
        if (api_job_is_finished(j->phase) && (j->phase == API_JOB_COMPLETED) == successful &&
            !j->terminating) {
            (void)cronjob_delete_job(p, j);
            n--;
        }
    }
}

/* ---- running ---- */

static struct json clone_map(const struct json *v, struct hk_arena *a)
{
    return json_clone_as(v, JSON_OBJECT, a);
}

static void cronjob_create_job(struct cron_pass *p, struct hk_str name, int64_t slot_ns,
                               const struct tzfile *shown)
{
    const struct json *template = json_get(p->spec, "jobTemplate");
    struct hk_arena *a = p->t->mem;
    HK_AUTO(hk_buf_fini) struct hk_buf slot = {0};
    struct json body = json_make_object();
    struct json meta = json_make_object();
    struct json labels = clone_map(json_at(template, "metadata.labels"), a);
    struct json annotations = clone_map(json_at(template, "metadata.annotations"), a);

    cronjob_write_time(shown, slot_ns, &slot);
    json_set_str_copy(&annotations, a, API_ANN_CRON_TIMESTAMP, hk_buf_str(&slot));
    json_set_str(&meta, a, "name", name);
    json_set_str(&meta, a, "namespace", p->t->ns);
    if (labels.len > 0) {
        json_set(&meta, a, "labels", labels);
    }
    json_set(&meta, a, "annotations", annotations);
    json_set_cstr(&body, a, "apiVersion", VERSION);
    json_set_cstr(&body, a, "kind", "Job");
    json_set(&body, a, "metadata", meta);
    json_set(&body, a, "spec", clone_map(json_get(template, "spec"), a));
    kinds_own(&body, a, &p->root);
    p->created = pass_create(p->t, api_kind(API_JOB), &body);
}

/* The name is in use. Warns unless the job belongs to this CronJob. */
static void report_name_in_use(struct cron_pass *p, uint32_t row, int64_t slot_ns)
{
    const struct json job = mirror_read(p->jobs, row, p->t->mem);
    const struct json *owner = kinds_controller(&job);

    if (!find_owned(p, mirror_uid(p->jobs, row)) &&
        cronjob_report_once(p, NEWS_FOREIGN, (uint64_t)slot_ns)) {
        pass_event(p->t, &p->root, true, "ForeignJob",
                   "Job %.*s exists but is not owned by this CronJob (current owner: %.*s)",
                   HK_FMT(mirror_name(p->jobs, row)),
                   HK_FMT(json_str(json_get(owner, "name"), HK_STR("none"))));
    }
}

/* Whether concurrencyPolicy permits another run now. */
static bool cronjob_may_run(struct cron_pass *p, int64_t slot_ns)
{
    bool waits = false;

    if (p->active.len == 0) {
        return true;
    }
    if (hk_str_is(json_str(json_get(p->spec, "concurrencyPolicy"), none), "Forbid")) {
        if (cronjob_report_once(p, NEWS_FORBID, (uint64_t)slot_ns)) {
            pass_event(p->t, &p->root, true, "ForbidConcurrent",
                       "Skipping job creation because another job is already running");
        }
        return false;
    }
    if (!p->replace) {
        return true;
    }
    if (cronjob_report_once(p, NEWS_REPLACE, (uint64_t)slot_ns)) {
        pass_event(p->t, &p->root, true, "ReplaceConcurrent", "Replacing active job for CronJob");
    }
    for (uint32_t i = 0; i < p->nowned; i++) {
        if (cronjob_is_active(p, &p->owned[i])) {
            (void)cronjob_delete_job(p, &p->owned[i]);
            waits = true;
        }
    }
    return !waits;
}

static void cronjob_run_slot(struct cron_pass *p, int64_t slot_ns, const struct tzfile *shown)
{
    const struct hk_str name = cronjob_job_name(p->t->mem, p->t->name, slot_ns);
    const uint32_t row = mirror_find(p->jobs, p->t->ns, name);

    if (row != HK_NONE) {
        report_name_in_use(p, row, slot_ns);
    } else if (cronjob_may_run(p, slot_ns)) {
        cronjob_create_job(p, name, slot_ns, shown);
    }
}

/* Reads zone and schedule; false when they are invalid until the CronJob or the zone files
 * change. */
static bool cronjob_read_plan(struct cron_pass *p, struct cronjob_plan *ret,
                              const struct tzfile **ret_shown)
{
    const struct hk_str text = json_str(json_get(p->spec, "schedule"), none);
    const bool named = json_is(json_get(p->spec, "timeZone"), JSON_STRING);
    const struct hk_str zone_name = cronjob_zone_name(p->spec, ctl_conf(p->t->c)->local_zone);
    const uint64_t about = hk_hash(zone_name.s, zone_name.n, hk_hash(text.s, text.n, 1)) | 1;
    const struct tzfile *zone = NULL;
    struct hk_err err = {0};

    *ret_shown = NULL;
    if (cronjob_zone(&p->state->zones, zone_name, &zone, &err) < 0) {
        if (cronjob_report_once(p, NEWS_ZONE, about)) {
            pass_event(p->t, &p->root, true, "InvalidTimeZone", "Invalid time zone \"%.*s\": %s",
                       HK_FMT(zone_name), err.text);
        }
        pass_fail(p->t, HK_EINVAL, "%s", err.text);
        return false;
    }
    if (hk_str_contains(text, "TZ") && cronjob_report_once(p, NEWS_TZ_IN_TEXT, about)) {
        pass_event(p->t, &p->root, true, "UnsupportedSchedule",
                   "CRON_TZ or TZ in the schedule \"%.*s\" is not officially supported. If set, "
                   "the TimeZone field will be ignored during execution.",
                   HK_FMT(text));
    }
    if (cronjob_plan_read(&p->state->zones, text, zone, ret, &err) < 0) {
        if (cronjob_report_once(p, NEWS_TEXT, about)) {
            pass_event(p->t, &p->root, true, "UnParseableCronJobSchedule",
                       "unparseable schedule for cronjob: %.*s", HK_FMT(text));
        }
        return false;
    }
    if (p->mem->schedule != 0 && p->mem->schedule != about) {
        p->mem->changed_ns = p->t->now_ns;
    }
    p->mem->schedule = about;
    *ret_shown = named ? zone : NULL;
    return true;
}

/* Slots up to this time are handled or not in force. */
static int64_t earliest(const struct cron_pass *p)
{
    const int64_t created_ns = time_of(json_at(&p->root, "metadata.creationTimestamp"));

    return HK_MAX(p->last_ns > 0 ? p->last_ns : created_ns, p->mem->changed_ns);
}

/* Slots before this time have missed startingDeadlineSeconds. */
static int64_t cronjob_earliest_start_ns(const struct cron_pass *p)
{
    const int64_t most_s = p->t->now_ns / NS;
    const int64_t late_s = json_int(json_get(p->spec, "startingDeadlineSeconds"), most_s);

    return p->t->now_ns - HK_MIN(HK_MAX(late_s, 0), most_s) * NS;
}

static void cronjob_follow_schedule(struct cron_pass *p)
{
    const struct tzfile *shown;
    struct cronjob_plan plan;
    struct cronjob_missed missed;
    struct hk_err err = {0};
    int64_t from_ns;

    if (!cronjob_read_plan(p, &plan, &shown)) {
        return;
    }
    from_ns = HK_MAX(earliest(p), cronjob_earliest_start_ns(p));
    if (cronjob_missed(&plan, from_ns, p->t->now_ns, &missed, &err) < 0) {
        const struct hk_str text = json_str(json_get(p->spec, "schedule"), none);
        if (cronjob_report_once(p, NEWS_NEVER, p->mem->schedule)) {
            pass_event(p->t, &p->root, true, "InvalidSchedule", "invalid schedule: %.*s : %s",
                       HK_FMT(text), err.text);
        }
        return;
    }
    pass_again_at(p->t, cronjob_next_look(&plan, earliest(p), p->t->now_ns));
    if (!missed.found) {
        return;
    }
    if (missed.many && cronjob_report_once(p, NEWS_MANY, (uint64_t)missed.at_ns)) {
        pass_event(p->t, &p->root, true, "TooManyMissedTimes",
                   "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or "
                   "check clock skew");
    }
    cronjob_run_slot(p, missed.at_ns, shown);
}

static void report_errors(struct cron_pass *p)
{
    for (uint32_t i = 0; i < p->t->nerror; i++) {
        const struct pass_error *e = &p->t->errors[i];
        if (e->verb != PORT_CREATE) {
            continue;
        }
        if (hk_str_contains(hk_str(e->text), "because it is being terminated")) {
            pass_event(p->t, &p->root, true, "NamespaceTerminating",
                       "Namespace %.*s is terminating, skipping job creation", HK_FMT(p->t->ns));
        } else {
            pass_event(p->t, &p->root, true, "FailedCreate", "Failed to create job: %s", e->text);
        }
    }
}

/* The status and its Events wait for a job being created, unless the creation has failed. */
static void report_and_write(struct cron_pass *p)
{
    if (p->created && p->t->failures == 0) {
        return;
    }
    for (uint32_t i = 0; i < p->nevent; i++) {
        pass_event(p->t, &p->root, p->events[i].warning, p->events[i].reason, "%s",
                   p->events[i].text);
    }
    report_deletions(p);
    cronjob_write_status(p);
}

static void cronjob_reconcile(struct ctl *c, struct pass *t)
{
    const struct mirror *cronjobs = ctl_mirror(c, API_CRONJOB);
    const uint32_t row = mirror_find(cronjobs, t->ns, t->name);
    struct cron_pass p = {.t = t, .state = c->state, .jobs = ctl_mirror(c, API_JOB)};

    if (row == HK_NONE) {
        keymem_forget(&p.state->mem, t->ns, t->name);
        return;
    }
    p.root = mirror_read(cronjobs, row, t->mem);
    if (json_at(&p.root, "metadata.deletionTimestamp")) {
        return;
    }
    p.spec = json_get(&p.root, "spec");
    p.mem = mem_of(p.state, t->ns, t->name, mirror_uid(cronjobs, row));
    p.replace = hk_str_is(json_str(json_get(p.spec, "concurrencyPolicy"), none), "Replace");
    report_errors(&p);
    collect_jobs(&p);
    make_status(&p);
    if (!json_bool(json_get(p.spec, "suspend"), false)) {
        cronjob_follow_schedule(&p);
    }
    report_and_write(&p);
    cronjob_prune_history(&p, true, cronjob_history_limit(p.spec, true));
    cronjob_prune_history(&p, false, cronjob_history_limit(p.spec, false));
}

static const struct ctl_watch watches[] = {
    {&mirror_cronjobs, cronjob_changed},
    {&mirror_jobs, cronjob_on_job_change},
    {0},
};

const struct ctl_type ctl_cronjob = {
    .name = "cronjob-controller",
    .about = "starts a job for each slot of a CronJob's schedule",
    .watches = watches,
    .state_size = sizeof(struct cron_state),
    .open = cronjob_open,
    .close = cronjob_close,
    .reconcile = cronjob_reconcile,
};
