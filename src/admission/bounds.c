// SPDX-License-Identifier: Apache-2.0
// Bounds on the work that one object can cause: the number of pods and jobs it requests. They apply
// to every write: create, update, patch, apply, the scale subresource, and templates that create
// other objects. docs/limits.md lists the bounds.
//
// A bound refuses only growth: an object stored under a higher bound can still be changed, scaled
// down and deleted.
#include "admission/admission_priv.h"
#include "admission/volcano.h"

/* One check of an object; q also has the old object, to detect growth. */
struct bounds {
    struct admission_request *q;
    int64_t replicas; /* the highest allowed number */
};

static int64_t max_replicas(const struct volcano_options *o)
{
    if (!o || o->max_replicas == 0) {
        return ADMISSION_MAX_REPLICAS;
    }
    return o->max_replicas < 0 ? INT64_MAX : o->max_replicas;
}

/* A number beyond int64 exceeds every bound. Values that are not integers are refused elsewhere. */
static int64_t admit_bounds_int_value(const struct json *v)
{
    return json_is(v, JSON_UINT) ? INT64_MAX : json_int(v, 0);
}

static int64_t add_capped(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t multiply_capped(int64_t a, int64_t b)
{
    int64_t product;

    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* ---- single numbers ---- */

static void check_max(const struct bounds *b, const struct path *up, const struct json *obj,
                      const struct json *old, const char *key)
{
    const struct path p = path_field(up, key);
    const struct json *v = json_get(obj, key);
    const int64_t now = admit_bounds_int_value(v);

    if (now > b->replicas && now > admit_bounds_int_value(json_get(old, key))) {
        cause_invalid(b->q, &p, v, "must be less than or equal to %lld (--max-replicas)",
                      (long long)b->replicas);
    }
}

static void check_total(const struct bounds *b, const struct path *p, int64_t now, int64_t before,
                        const char *of)
{
    const struct json shown = json_make_int(now);

    if (now > b->replicas && now > before) {
        cause_invalid(b->q, p, &shown, "%s must be less than or equal to %lld (--max-replicas)", of,
                      (long long)b->replicas);
    }
}

static void check_length(const struct bounds *b, const struct path *up, const struct json *obj,
                         const struct json *old, const char *key, uint32_t max)
{
    const struct path p = path_field(up, key);
    const struct json shown = json_make_int(edit_len(json_get(obj, key)));

    if (shown.i > max && edit_len(json_get(obj, key)) > edit_len(json_get(old, key))) {
        cause_invalid(b->q, &p, &shown, "must have at most %u items", max);
    }
}

/* ---- the spec of a Volcano job, also inside other kinds ---- */

static int64_t sum_of_replicas(const struct json *spec)
{
    const struct json *tasks = json_get(spec, "tasks");
    int64_t sum = 0;

    for (uint32_t i = 0; i < edit_len(tasks); i++) {
        const int64_t n = admit_bounds_int_value(json_get(json_item(tasks, i), "replicas"));

        sum = add_capped(sum, HK_MAX(n, 0));
    }
    return sum;
}

static void bounds_job(const struct bounds *b, const struct path *p, const struct json *spec,
                       const struct json *old)
{
    const struct json *tasks = json_get(spec, "tasks"), *old_tasks = json_get(old, "tasks");
    const struct path list = path_field(p, "tasks");
    const uint32_t before = b->q->errors.len;

    check_length(b, p, spec, old, "tasks", ADMISSION_MAX_TASKS);
    for (uint32_t i = 0; i < edit_len(tasks) && b->q->errors.len == before; i++) {
        const struct path at = path_index(&list, i);

        check_max(b, &at, json_item(tasks, i), json_item(old_tasks, i), "replicas");
    }
    check_max(b, p, spec, old, "minAvailable");
    if (b->q->errors.len == before) {
        check_total(b, &list, sum_of_replicas(spec), sum_of_replicas(old),
                    "the replicas of all tasks together");
    }
}

static void check_history(const struct bounds *b, const struct path *p, const struct json *spec,
                          const struct json *old)
{
    check_max(b, p, spec, old, "successfulJobsHistoryLimit");
    check_max(b, p, spec, old, "failedJobsHistoryLimit");
}

static void bounds_cronjob(const struct bounds *b, const struct path *p, const struct json *spec,
                           const struct json *old)
{
    const struct path template = path_field(p, "jobTemplate"), at = path_field(&template, "spec");

    check_history(b, p, spec, old);
    bounds_job(b, &at, json_at(spec, "jobTemplate.spec"), json_at(old, "jobTemplate.spec"));
}

/* A flow's patch replaces numbers of its template, which was checked when it was written. */
static void bounds_jobflow(const struct bounds *b, const struct path *p, const struct json *spec,
                           const struct json *old)
{
    const struct json *flows = json_get(spec, "flows"), *old_flows = json_get(old, "flows");
    const struct path list = path_field(p, "flows");

    check_length(b, p, spec, old, "flows", ADMISSION_MAX_FLOWS);
    for (uint32_t i = 0; i < edit_len(flows); i++) {
        const struct path at = path_index(&list, i), patch = path_field(&at, "patch"),
                          job = path_field(&patch, "jobSpec");

        bounds_job(b, &job, json_at(json_item(flows, i), "patch.jobSpec"),
                   json_at(json_item(old_flows, i), "patch.jobSpec"));
    }
}

static int64_t sum_of_jobs(const struct json *spec)
{
    const struct json *jobs = json_get(spec, "replicatedJobs");
    int64_t sum = 0;

    for (uint32_t i = 0; i < edit_len(jobs); i++) {
        const struct json *job = json_item(jobs, i);
        const int64_t n = admit_bounds_int_value(json_get(job, "replicas"));

        sum = add_capped(
            sum, multiply_capped(HK_MAX(n, 0), sum_of_replicas(json_get(job, "templateSpec"))));
    }
    return sum;
}

static void bounds_hyperjob(const struct bounds *b, const struct path *p, const struct json *spec,
                            const struct json *old)
{
    const struct json *jobs = json_get(spec, "replicatedJobs");
    const struct json *old_jobs = json_get(old, "replicatedJobs");
    const struct path list = path_field(p, "replicatedJobs");
    const uint32_t before = b->q->errors.len;

    check_length(b, p, spec, old, "replicatedJobs", ADMISSION_MAX_FLOWS);
    for (uint32_t i = 0; i < edit_len(jobs); i++) {
        const struct path at = path_index(&list, i), job = path_field(&at, "templateSpec");

        check_max(b, &at, json_item(jobs, i), json_item(old_jobs, i), "replicas");
        bounds_job(b, &job, json_get(json_item(jobs, i), "templateSpec"),
                   json_get(json_item(old_jobs, i), "templateSpec"));
    }
    check_max(b, p, spec, old, "minAvailable");
    if (b->q->errors.len == before) {
        check_total(b, &list, sum_of_jobs(spec), sum_of_jobs(old),
                    "the replicas of all jobs together");
    }
}

static int64_t sum_of_members(const struct json *members)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < edit_size(members); i++) {
        const int64_t n = admit_bounds_int_value(&members->members[i].value);

        sum = add_capped(sum, HK_MAX(n, 0));
    }
    return sum;
}

static void bounds_podgroup(const struct bounds *b, const struct path *p, const struct json *spec,
                            const struct json *old)
{
    const struct json *members = json_get(spec, "minTaskMember");
    const struct path at = path_field(p, "minTaskMember");

    check_max(b, p, spec, old, "minMember");
    check_total(b, &at, sum_of_members(members), sum_of_members(json_get(old, "minTaskMember")),
                "the members of all tasks together");
}

/* ---- built-in workloads ---- */

static void bounds_workload(const struct bounds *b, const struct path *p, const struct json *spec,
                            const struct json *old)
{
    check_max(b, p, spec, old, "replicas");
    check_max(b, p, spec, old, "revisionHistoryLimit");
}

static void bounds_batch_job(const struct bounds *b, const struct path *p, const struct json *spec,
                             const struct json *old)
{
    check_max(b, p, spec, old, "parallelism");
    check_max(b, p, spec, old, "completions");
}

static void bounds_batch_cronjob(const struct bounds *b, const struct path *p,
                                 const struct json *spec, const struct json *old)
{
    const struct path template = path_field(p, "jobTemplate"), at = path_field(&template, "spec");

    check_history(b, p, spec, old);
    bounds_batch_job(b, &at, json_at(spec, "jobTemplate.spec"), json_at(old, "jobTemplate.spec"));
}

static const struct {
    const char *group, *kind;
    void (*check)(const struct bounds *b, const struct path *p, const struct json *spec,
                  const struct json *old);
} bounded[] = {
    {"batch.volcano.sh", "Job", bounds_job},
    {"batch.volcano.sh", "CronJob", bounds_cronjob},
    {"flow.volcano.sh", "JobTemplate", bounds_job},
    {"flow.volcano.sh", "JobFlow", bounds_jobflow},
    {"training.volcano.sh", "HyperJob", bounds_hyperjob},
    {"scheduling.volcano.sh", "PodGroup", bounds_podgroup},
    {"apps", "Deployment", bounds_workload},
    {"apps", "ReplicaSet", bounds_workload},
    {"apps", "StatefulSet", bounds_workload},
    {"apps", "DaemonSet", bounds_workload},
    {"", "ReplicationController", bounds_workload},
    {"batch", "Job", bounds_batch_job},
    {"batch", "CronJob", bounds_batch_cronjob},
};

void admit_bounds_check(struct admission_request *q, const struct volcano_options *o)
{
    const struct bounds b = {q, max_replicas(o)};
    const struct path p = path_field(NULL, "spec");

    for (size_t i = 0; i < HK_LEN(bounded); i++) {
        if (strcmp(q->kind->kind, bounded[i].kind) == 0 &&
            strcmp(q->kind->group, bounded[i].group) == 0) {
            bounded[i].check(&b, &p, json_get(q->obj, "spec"), json_get(q->old, "spec"));
        }
    }
}

void admit_bounds_validate(struct admission_request *q)
{
    admit_bounds_check(q, q->volcano);
}
