// SPDX-License-Identifier: Apache-2.0
// The status of a flow: its jobs by phase, a record of each job that remains after the job is gone,
// and the flow's phase. Times come from the jobs, not from the clock, so every attempt writes the
// same status.
#include "api/names.h"
#include "codec/timefmt.h"
#include "controllers/jobflow_priv.h"

/* The status field that lists the jobs of that phase; NULL none. */
static const char *jobflow_status_phase_list_name(enum api_job_phase phase)
{
    switch (phase) {
    case API_JOB_PENDING:
        return "pendingJobs";
    case API_JOB_RUNNING:
        return "runningJobs";
    case API_JOB_FAILED:
        return "failedJobs";
    case API_JOB_COMPLETED:
        return "completedJobs";
    case API_JOB_TERMINATED:
        return "terminatedJobs";
    case API_JOB_COMPLETING:
    case API_JOB_TERMINATING:
        return NULL;
    default:
        return "unKnowJobs"; /* the API's spelling */
    }
}

static struct hk_str jobflow_status_current_phase(const struct flow_pass *p)
{
    return json_str(json_at(&p->root, "status.state.phase"), flow_none);
}

bool flow_is_over(const struct flow_pass *p)
{
    return hk_str_is(jobflow_status_current_phase(p), "Succeed");
}

bool flow_is_frozen(const struct flow_pass *p)
{
    return hk_str_is(jobflow_status_current_phase(p), "Failed") ||
           hk_str_is(jobflow_status_current_phase(p), "Terminating");
}

/* ---- the phase ---- */

struct tally {
    uint32_t running, failed, completed, terminated;
    uint32_t steps_completed;
};

static struct tally jobflow_status_count_phases(const struct flow_pass *p)
{
    struct tally n = {0};

    for (uint32_t i = 0; i < p->len; i++) {
        const struct flow_job *j = &p->at[i];

        if (!j->known || j->foreign) {
            continue;
        }
        n.running += j->phase == API_JOB_RUNNING;
        n.failed += j->phase == API_JOB_FAILED;
        n.terminated += j->phase == API_JOB_TERMINATED;
        n.completed += j->phase == API_JOB_COMPLETED;
        n.steps_completed += j->phase == API_JOB_COMPLETED && i < p->nstep;
    }
    return n;
}

/* A finished flow runs again when steps are added to it. */
static const char *next_phase(const struct flow_pass *p)
{
    const struct tally n = jobflow_status_count_phases(p);
    const bool done = n.steps_completed == p->nstep;
    const bool broken = n.failed > 0 || n.terminated > 0;

    if (flow_is_over(p)) {
        return done ? "Succeed" : "Running";
    }
    if (hk_str_is(jobflow_status_current_phase(p), "Running")) {
        return done ? "Succeed" : broken ? "Failed" : "Running";
    }
    if ((n.running > 0 || n.completed > 0) && n.failed == 0) {
        return "Running";
    }
    return broken ? "Failed" : "Pending";
}

/* ---- one job ---- */

static struct json condition_of(const struct flow_job *j, struct hk_arena *a)
{
    struct json c = json_make_object();

    json_set_cstr(&c, a, "phase", api_job_phase_name(j->phase));
    json_set_if(&c, a, "createTime", json_at(j->root, "metadata.creationTimestamp"));
    json_set_if(&c, a, "runningDuration", json_at(j->root, "status.runningDuration"));
    json_set_if(&c, a, "taskStatusCount", json_at(j->root, "status.taskStatusCount"));
    return c;
}

/* The phases of the job so far: a new phase ends the previous one. */
static struct json histories_of(const struct flow_job *j, struct hk_arena *a)
{
    const struct json *old = json_get(j->record, "runningHistories");
    const struct json *since = json_at(j->root, "status.state.lastTransitionTime");
    const struct hk_str phase = hk_str(api_job_phase_name(j->phase));
    struct json list = json_clone_as(old, JSON_ARRAY, a);
    struct json *last = list.len > 0 ? &list.items[list.len - 1] : NULL;
    struct json entry = json_make_object();

    if (phase.n == 0 || (last && hk_str_eq(json_str(json_get(last, "state"), flow_none), phase))) {
        return list;
    }
    if (!since) {
        since = json_at(j->root, "metadata.creationTimestamp");
    }
    if (last) {
        json_set_if(last, a, "endTimestamp", since);
    }
    json_set_if(&entry, a, "startTimestamp", since);
    json_set_str(&entry, a, "state", phase);
    json_push(&list, a, entry);
    return list;
}

static void put_end(struct json *record, const struct flow_job *j, struct hk_arena *a)
{
    int64_t begin_ns;
    int64_t took_ns;

    if (duration_parse(json_str(json_at(j->root, "status.runningDuration"), flow_none), &took_ns,
                       NULL) == 0 &&
        time_parse(json_str(json_at(j->root, "metadata.creationTimestamp"), flow_none), &begin_ns,
                   NULL) == 0) {
        json_set_time(record, a, "endTimestamp", begin_ns + took_ns);
    }
}

static struct json record_of(const struct flow_job *j, struct hk_arena *a)
{
    const int64_t retries = json_int(json_at(j->root, "status.retryCount"), 0);
    struct json r = json_make_object();
    struct json histories = histories_of(j, a);

    json_set_str(&r, a, "name", j->name);
    json_set_cstr(&r, a, "state", api_job_phase_name(j->phase));
    json_set_if(&r, a, "startTimestamp", json_at(j->root, "metadata.creationTimestamp"));
    put_end(&r, j, a);
    if (retries > 0) {
        json_set_int(&r, a, "restartCount", retries);
    }
    if (histories.len > 0) {
        json_set(&r, a, "runningHistories", histories);
    }
    return r;
}

/* ---- the whole status ---- */

static void name_job(struct json *status, const struct flow_job *j, struct hk_arena *a)
{
    const char *key = jobflow_status_phase_list_name(j->phase);
    struct json *list;

    if (!key) {
        return;
    }
    list = (struct json *)json_get(status, key);
    if (!list) {
        list = json_set_array(status, a, key);
    }
    json_push(list, a, json_make_str(j->name));
}

static uint32_t record_at(const struct json *records, struct hk_str name)
{
    uint32_t i = 0;

    while (i < records->len &&
           !hk_str_eq(json_str(json_get(&records->items[i], "name"), flow_none), name)) {
        i++;
    }
    return i;
}

/* Sends the Event when the status has no record of this job yet. */
static void report_created(struct flow_pass *p, const struct flow_job *j)
{
    const struct json *begin = json_at(j->root, "metadata.creationTimestamp");

    if (!j->record || !begin || !json_equal(begin, json_get(j->record, "startTimestamp"))) {
        pass_event(p->t, &p->root, false, "Created", "create a job named %.*s!", HK_FMT(j->name));
    }
}

static struct json make_records(struct flow_pass *p)
{
    const struct json *old = json_at(&p->root, "status.jobStatusList");
    struct hk_arena *a = p->t->mem;
    struct json records = json_clone_as(old, JSON_ARRAY, a);

    for (uint32_t i = 0; i < p->len; i++) {
        const struct flow_job *j = &p->at[i];
        uint32_t at;

        if (!j->root || j->foreign) {
            continue;
        }
        report_created(p, j);
        at = record_at(&records, j->name);
        if (at == records.len) {
            json_push(&records, a, record_of(j, a));
        } else {
            records.items[at] = record_of(j, a);
        }
    }
    return records;
}

static struct json make_conditions(struct flow_pass *p)
{
    const struct json *old = json_at(&p->root, "status.conditions");
    struct json conditions = json_make_object();

    for (uint32_t i = 0; i < p->len; i++) {
        const struct flow_job *j = &p->at[i];

        if (j->root && !j->foreign) {
            json_put(&conditions, p->t->mem, j->name, condition_of(j, p->t->mem));
        } else if (j->known && json_get_str(old, j->name)) {
            json_put(&conditions, p->t->mem, j->name, *json_get_str(old, j->name));
        }
    }
    return conditions;
}

void flow_write_status(struct flow_pass *p)
{
    const struct json *old = json_get(&p->root, "status");
    struct hk_arena *a = p->t->mem;
    struct json status = json_make_object();
    struct json state = json_make_object();
    struct json records = make_records(p);
    struct json conditions = make_conditions(p);

    for (uint32_t i = 0; i < p->len; i++) {
        if (p->at[i].known && !p->at[i].foreign) {
            name_job(&status, &p->at[i], a);
        }
    }
    if (records.len > 0) {
        json_set(&status, a, "jobStatusList", records);
    }
    if (conditions.len > 0) {
        json_set(&status, a, "conditions", conditions);
    }
    json_set_cstr(&state, a, "phase", next_phase(p));
    json_set(&status, a, "state", state);
    if (!old || !json_equal(old, &status)) {
        json_set(&p->root, a, "status", status);
        pass_update_status(p->t, api_kind(API_JOBFLOW), &p->root);
    }
}
