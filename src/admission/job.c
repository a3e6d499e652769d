// SPDX-License-Identifier: Apache-2.0
// Jobs and CronJobs of batch/v1: defaults, the selector generated from a job's uid, validation.
#include "admission/admission_priv.h"
#include "codec/cron.h"
#include "codec/tzfile.h"

#define UID_LABEL "batch.kubernetes.io/controller-uid"
#define NAME_LABEL_KEY "batch.kubernetes.io/job-name"

int admit_job_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);
    struct json *pod;

    if (!edit_has(spec, "completions") && !edit_has(spec, "parallelism")) {
        json_set_int(spec, q->mem, "completions", 1);
    }
    edit_default_int(spec, q->mem, "parallelism", 1);
    edit_default_int(spec, q->mem, "backoffLimit", 6);
    edit_default_str(spec, q->mem, "completionMode", "NonIndexed");
    edit_default_bool(spec, q->mem, "suspend", false);
    edit_default_str(spec, q->mem, "podReplacementPolicy",
                     edit_has(spec, "podFailurePolicy") ? "Failed" : "TerminatingOrFailed");
    pod = edit_at(spec, "template.spec");
    if (pod) {
        admit_pod_default_template(pod, q->mem);
    }
    return 0;
}

static void admit_job_default_label(struct json *labels, struct hk_arena *a, const char *key,
                                    struct hk_str value)
{
    if (!edit_has(labels, key)) {
        json_set_str(labels, a, key, value);
    }
}

/* A job selects its pods by its own uid, so it cannot adopt pods of another job. */
int admit_job_prepare(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);
    const struct json *metadata = json_get(q->obj, "metadata");
    const struct hk_str uid = edit_str(metadata, "uid");
    const struct hk_str name = edit_str(metadata, "name");
    struct json *template;
    struct json *labels;
    struct json match = json_make_object();
    struct json selector = json_make_object();

    edit_default_bool(spec, q->mem, "manualSelector", false);
    if (uid.n == 0 || json_bool(json_get(spec, "manualSelector"), false)) {
        return 0;
    }
    template = json_need(spec, q->mem, "template", JSON_OBJECT);
    labels = json_need(json_need(template, q->mem, "metadata", JSON_OBJECT), q->mem, "labels",
                       JSON_OBJECT);
    admit_job_default_label(labels, q->mem, UID_LABEL, uid);
    admit_job_default_label(labels, q->mem, "controller-uid", uid);
    admit_job_default_label(labels, q->mem, NAME_LABEL_KEY, name);
    admit_job_default_label(labels, q->mem, "job-name", name);
    if (!edit_has(spec, "selector")) {
        json_set_str(&match, q->mem, UID_LABEL, uid);
        json_set(&selector, q->mem, "matchLabels", match);
        json_set(spec, q->mem, "selector", selector);
    }
    struct json *own = json_need(q->obj, q->mem, "metadata", JSON_OBJECT);
    if (edit_size(json_get(own, "labels")) == 0) {
        json_set(own, q->mem, "labels",
                 json_clone(json_at(q->obj, "spec.template.metadata.labels"), q->mem));
    }
    return 0;
}

int admit_cronjob_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);
    struct json *pod;

    edit_default_str(spec, q->mem, "concurrencyPolicy", "Allow");
    edit_default_bool(spec, q->mem, "suspend", false);
    edit_default_int(spec, q->mem, "successfulJobsHistoryLimit", 3);
    edit_default_int(spec, q->mem, "failedJobsHistoryLimit", 1);
    pod = edit_at(spec, "jobTemplate.spec.template.spec");
    if (pod) {
        admit_pod_default_template(pod, q->mem);
    }
    return 0;
}

/* ---- validation ---- */

static void check_restart(struct admission_request *q, const struct path *spec_path,
                          const struct json *spec)
{
    static const char *const allowed[] = {"OnFailure", "Never", NULL};
    const struct json *pod = json_at(spec, "template.spec");
    const struct path template = path_field(spec_path, "template");
    const struct path pod_path = path_field(&template, "spec");
    const struct path p = path_field(&pod_path, "restartPolicy");

    if (hk_str_is(edit_str(pod, "restartPolicy"), "Always")) {
        cause_required(q, &p, "valid values: \"OnFailure\", \"Never\"");
    } else {
        cause_check_enum(q, &pod_path, pod, "restartPolicy", allowed);
    }
}

static void check_job_spec(struct admission_request *q, const struct path *p,
                           const struct json *spec)
{
    static const char *const counts[] = {"parallelism", "completions", "backoffLimit",
                                         "activeDeadlineSeconds", "ttlSecondsAfterFinished"};
    static const char *const modes[] = {"Indexed", "NonIndexed", NULL};
    const struct path completions = path_field(p, "completions");

    for (size_t i = 0; i < HK_LEN(counts); i++) {
        cause_check_min(q, p, spec, counts[i], 0);
    }
    cause_check_enum(q, p, spec, "completionMode", modes);
    if (hk_str_is(edit_str(spec, "completionMode"), "Indexed") && !edit_has(spec, "completions")) {
        cause_required(q, &completions, "when completion mode is Indexed");
    }
    admit_template_validate(q, p, spec);
    check_restart(q, p, spec);
}

void admit_job_validate(struct admission_request *q)
{
    const struct json *spec = json_get(q->obj, "spec");
    const struct json *old = json_get(q->old, "spec");
    const struct path p = path_field(NULL, "spec");
    const bool held =
        json_bool(json_get(old, "suspend"), false) && !json_at(q->old, "status.startTime");

    check_job_spec(q, &p, spec);
    if (q->verb == ADMIT_UPDATE) {
        cause_check_immutable(q, &p, spec, old, "selector");
        cause_check_immutable(q, &p, spec, old, "completionMode");
        if (!hk_str_is(edit_str(spec, "completionMode"), "Indexed")) {
            cause_check_immutable(q, &p, spec, old, "completions");
        }
        if (!held) {
            cause_check_immutable(q, &p, spec, old, "template");
        }
    }
}

static uint32_t count_fields(struct hk_str text)
{
    uint32_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        n += text.s[i] != ' ' && (i == 0 || text.s[i - 1] == ' ');
    }
    return n;
}

/* A schedule may contain a time zone only if the old one already did. */
static void check_schedule(struct admission_request *q, const struct path *up, struct hk_str text,
                           struct hk_str before)
{
    const struct path p = path_field(up, "schedule");
    const uint32_t fields = count_fields(text);
    struct cron cron;
    struct hk_err why = {0};

    if (hk_str_contains(text, "TZ")) {
        if (!hk_str_contains(before, "TZ")) {
            cause_invalid_str(q, &p, text,
                              "cannot use TZ or CRON_TZ in schedule, use timeZone "
                              "field instead");
        }
    } else if (text.s[0] != '@' && fields != 5) {
        cause_invalid_str(q, &p, text, "expected exactly 5 fields, found %u: [%.*s]", fields,
                          HK_FMT(text));
    } else if (cron_parse(text, &cron, &why) < 0) {
        cause_invalid_str(q, &p, text, "%s", why.text);
    }
}

static void check_zone(struct admission_request *q, const struct path *up, const struct json *spec)
{
    const struct path p = path_field(up, "timeZone");
    const struct hk_str zone = edit_str(spec, "timeZone");

    if (!edit_has(spec, "timeZone")) {
        return;
    }
    if (zone.n == 0) {
        cause_invalid_str(q, &p, zone, "timeZone must be nil or non-empty string");
    } else if (hk_str_is(zone, "Local") || hk_str_is(zone, "local")) {
        cause_invalid_str(q, &p, zone,
                          "timeZone must be an explicit time zone as defined in "
                          "https://www.iana.org/time-zones");
    } else if (!tzfile_exists(zone)) {
        cause_invalid_str(q, &p, zone, "unknown time zone %.*s", HK_FMT(zone));
    }
}

void admit_cronjob_validate(struct admission_request *q)
{
    static const char *const policies[] = {"Allow", "Forbid", "Replace", NULL};
    const struct json *spec = json_get(q->obj, "spec");
    const struct path p = path_field(NULL, "spec");
    const struct path template = path_field(&p, "jobTemplate");
    const struct path job = path_field(&template, "spec");
    const struct path metadata = path_field(NULL, "metadata");
    const struct path name = path_field(&metadata, "name");

    if (q->verb == ADMIT_CREATE && q->name.n > 52) {
        cause_invalid_str(q, &name, q->name, "must be no more than 52 characters");
    }
    if (cause_check_present(q, &p, spec, "schedule")) {
        check_schedule(q, &p, edit_str(spec, "schedule"),
                       edit_str(json_get(q->old, "spec"), "schedule"));
    }
    check_zone(q, &p, spec);
    cause_check_enum(q, &p, spec, "concurrencyPolicy", policies);
    cause_check_min(q, &p, spec, "startingDeadlineSeconds", 0);
    cause_check_min(q, &p, spec, "successfulJobsHistoryLimit", 0);
    cause_check_min(q, &p, spec, "failedJobsHistoryLimit", 0);
    check_job_spec(q, &job, json_at(spec, "jobTemplate.spec"));
}
