// SPDX-License-Identifier: Apache-2.0
// Decodes Volcano's Jobs.
#include "api/vcjob.h"

#include "api/names.h"
#include "api/podgroup_priv.h"
#include "codec/timefmt.h"

static const char *const phase_names[] = {
    "",           "Pending",   "Aborting",    "Aborted",    "Running", "Restarting",
    "Completing", "Completed", "Terminating", "Terminated", "Failed",  NULL,
};
_Static_assert(HK_LEN(phase_names) == API_JOB_NPHASES + 1, "a name per phase");

static const char *const action_names[] = {
    "SyncJob",
    "EnqueueJob",
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
    "",
    NULL,
};
_Static_assert(HK_LEN(action_names) == API_NACTIONS + 1, "a name per action");

static const char *const event_names[] = {
    "",           "*",          "PodPending",    "PodRunning",
    "PodFailed",  "PodEvicted", "Unknown",       "TaskCompleted",
    "TaskFailed", "OutOfSync",  "CommandIssued", "JobUpdated",
    NULL,
};
_Static_assert(HK_LEN(event_names) == API_NEVENTS + 1, "a name per event");

const char *api_job_phase_name(enum api_job_phase phase)
{
    return phase_names[phase];
}

bool api_job_is_finished(enum api_job_phase phase)
{
    return phase == API_JOB_COMPLETED || phase == API_JOB_FAILED || phase == API_JOB_TERMINATED;
}

const char *api_job_action_name(enum api_job_action action)
{
    return action_names[action];
}

enum api_job_action api_job_action_find(struct hk_str name)
{
    uint32_t k = 0;

    while (k < API_ACTION_OTHER && !hk_str_is(name, action_names[k])) {
        k++;
    }
    return k;
}

const char *api_job_event_name(enum api_job_event event)
{
    return event_names[event];
}

uint32_t api_job_event_bit(struct hk_str name)
{
    for (uint32_t k = API_EVENT_ANY; k < API_NEVENTS; k++) {
        if (hk_str_is(name, event_names[k])) {
            return 1u << k;
        }
    }
    return 0;
}

/* ---- policies ---- */

/* Unknown events match nothing; admission refuses them. */
static void event_read(struct field_reader *r, const struct field_path *p, const struct json *v,
                       const struct field *f, void *base)
{
    if (field_want(r, p, v, JSON_STRING)) {
        ((struct api_job_policy *)base)->events |= api_job_event_bit(json_str(v, HK_STR("")));
    }
}

static void events_read(struct field_reader *r, const struct field_path *p, const struct json *v,
                        const struct field *f, void *base)
{
    if (!field_want(r, p, v, JSON_ARRAY)) {
        return;
    }
    for (uint32_t i = 0; i < v->len; i++) {
        const struct field_path step = {.up = p, .index = i};

        event_read(r, &step, &v->items[i], f, base);
    }
}

static const struct field policy_fields[] = {
    FIELD("action", field_str, struct api_job_policy, action),
    FIELD("event", event_read, struct api_job_policy, events),
    FIELD("events", events_read, struct api_job_policy, events),
    FIELD_I32("exitCode", struct api_job_policy, exit_code, INT32_MIN, INT32_MAX),
    FIELD("exitCode", field_present, struct api_job_policy, has_exit_code),
    FIELD("timeout", field_duration, struct api_job_policy, timeout_ns),
    FIELD("timeout", field_present, struct api_job_policy, has_timeout),
    {0},
};

static const struct field_record policy_record = {sizeof(struct api_job_policy),
                                                  .fields = policy_fields};

/* ---- tasks ---- */

static void raw_read(struct field_reader *r, const struct field_path *p, const struct json *v,
                     const struct field *f, void *base)
{
    if (field_want(r, p, v, JSON_OBJECT)) {
        *(const struct json **)((char *)base + f->off) = v;
    }
}

static const struct field partition_fields[] = {
    FIELD_COUNT("totalPartitions", struct api_job_partition, total),
    FIELD_COUNT("partitionSize", struct api_job_partition, size),
    FIELD_COUNT("minPartitions", struct api_job_partition, min),
    FIELD("networkTopology", field_object, struct api_job_partition, topology,
          .sub = &podgroup_topology_record),
    FIELD("networkTopology", field_present, struct api_job_partition, topology.present),
    {0},
};

static const struct field_record partition_record = {sizeof(struct api_job_partition),
                                                     .fields = partition_fields};

static const struct field depends_fields[] = {
    FIELD("name", field_strs, struct api_job_task, depends_on),
    FIELD("iteration", field_str, struct api_job_task, iteration),
    {0},
};

static const struct field_record depends_record = {.fields = depends_fields};

static const struct field task_fields[] = {
    FIELD("name", field_str, struct api_job_task, name),
    FIELD_COUNT("replicas", struct api_job_task, replicas),
    FIELD_COUNT("minAvailable", struct api_job_task, min_available),
    FIELD("minAvailable", field_present, struct api_job_task, has_min),
    FIELD("template", raw_read, struct api_job_task, template),
    FIELD("policies", field_list, struct api_job_task, policies, .sub = &policy_record),
    FIELD("topologyPolicy", field_str, struct api_job_task, topology_policy),
    FIELD_I32("maxRetry", struct api_job_task, max_retry, -1, INT32_MAX),
    FIELD_IN("dependsOn", &depends_record),
    FIELD("partitionPolicy", field_object, struct api_job_task, partition,
          .sub = &partition_record),
    FIELD("partitionPolicy", field_present, struct api_job_task, partition.present),
    {0},
};

static const struct field_record task_record = {sizeof(struct api_job_task), .fields = task_fields};

/* ---- the rest of the spec ---- */

static const struct field volume_fields[] = {
    FIELD("mountPath", field_str, struct api_job_volume, mount_path),
    FIELD("volumeClaimName", field_str, struct api_job_volume, claim_name),
    FIELD("volumeClaim", raw_read, struct api_job_volume, claim),
    {0},
};

static const struct field_record volume_record = {sizeof(struct api_job_volume),
                                                  .fields = volume_fields};

static int plugin_cmp(const void *a, const void *b)
{
    const struct api_job_plugin *x = a, *y = b;

    return hk_str_cmp(x->name, y->name);
}

static void plugins_read(struct field_reader *r, const struct field_path *p, const struct json *v,
                         const struct field *f, void *base)
{
    static const struct field args = FIELD(NULL, field_strs, struct api_job_plugin, args);
    struct api_job *job = base;
    struct api_job_plugin *at;

    if (!field_want(r, p, v, JSON_OBJECT)) {
        return;
    }
    at = hk_arena_array(r->a, v->len, sizeof(*at));
    for (uint32_t i = 0; i < v->len && r->rc == 0; i++) {
        const struct json_member *m = &v->members[i];
        const struct field_path step = {.up = p, .map_key = m->key};

        at[i] = (struct api_job_plugin){.name = m->key};
        if (m->value.type != JSON_NULL) {
            field_strs(r, &step, &m->value, &args, &at[i]);
        }
    }
    if (r->rc == 0) {
        if (v->len > 0) {
            qsort(at, v->len, sizeof(*at), plugin_cmp);
        }
        job->plugins.at = at;
        job->plugins.len = v->len;
    }
}

static const struct field spec_fields[] = {
    FIELD("schedulerName", field_str, struct api_job, scheduler_name),
    FIELD_COUNT("minAvailable", struct api_job, min_available),
    FIELD("volumes", field_list, struct api_job, volumes, .sub = &volume_record),
    FIELD("tasks", field_list, struct api_job, tasks, .sub = &task_record),
    FIELD("policies", field_list, struct api_job, policies, .sub = &policy_record),
    FIELD("plugins", plugins_read, struct api_job, plugins),
    FIELD("runningEstimate", field_duration, struct api_job, running_estimate_ns),
    FIELD("queue", field_str, struct api_job, queue),
    FIELD_COUNT("maxRetry", struct api_job, max_retry),
    FIELD_COUNT("ttlSecondsAfterFinished", struct api_job, ttl_s),
    FIELD("ttlSecondsAfterFinished", field_present, struct api_job, has_ttl),
    FIELD("priorityClassName", field_str, struct api_job, priority_class_name),
    FIELD_COUNT("minSuccess", struct api_job, min_success),
    FIELD("minSuccess", field_present, struct api_job, has_min_success),
    FIELD("networkTopology", field_object, struct api_job, topology,
          .sub = &podgroup_topology_record),
    FIELD("networkTopology", field_present, struct api_job, topology.present),
    {0},
};

static const struct field_record spec_record = {.fields = spec_fields};

/* ---- status ---- */

static const struct field state_fields[] = {
    FIELD("phase", field_enum, struct api_job, phase, .sub = phase_names),
    FIELD("reason", field_str, struct api_job, reason),
    FIELD("message", field_str, struct api_job, message),
    FIELD("lastTransitionTime", field_time, struct api_job, last_transition_ns),
    {0},
};

static const struct field_record state_record = {.fields = state_fields};

static const struct field status_fields[] = {
    FIELD_IN("state", &state_record),
    FIELD_COUNT("minAvailable", struct api_job, status_min_available),
    FIELD_COUNT("pending", struct api_job, pending),
    FIELD_COUNT("running", struct api_job, running),
    FIELD_COUNT("succeeded", struct api_job, succeeded),
    FIELD_COUNT("failed", struct api_job, failed),
    FIELD_COUNT("terminating", struct api_job, terminating),
    FIELD_COUNT("unknown", struct api_job, unknown),
    FIELD_COUNT("version", struct api_job, version),
    FIELD_COUNT("retryCount", struct api_job, retry_count),
    FIELD("controlledResources", field_map, struct api_job, controlled),
    {0},
};

static const struct field_record status_record = {.fields = status_fields};

static const struct field job_fields[] = {
    FIELD_META(struct api_job),
    FIELD_IN("spec", &spec_record),
    FIELD_IN("status", &status_record),
    {0},
};

static const struct field_record job_record = {sizeof(struct api_job), .fields = job_fields};

int api_job_decode(const struct json *doc, struct hk_arena *a, struct api_job *ret,
                   struct hk_err *err)
{
    struct api_job job = {.raw = doc, .meta.line = doc->line, .max_retry = 3};

    return field_decode(doc, &job_record, a, &job, ret, err);
}

/* ---- sums ---- */

int64_t api_job_replicas(const struct api_job *job)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < job->tasks.len; i++) {
        n += job->tasks.at[i].replicas;
    }
    return n;
}

int64_t api_job_task_min(const struct api_job_task *task)
{
    return task->has_min ? task->min_available : task->replicas;
}

const struct api_job_task *api_job_task_find(const struct api_job *job, struct hk_str name)
{
    for (uint32_t i = 0; i < job->tasks.len; i++) {
        if (hk_str_eq(job->tasks.at[i].name, name)) {
            return &job->tasks.at[i];
        }
    }
    return NULL;
}

/* ---- attempts ---- */

static int64_t attempt_end_ns(const struct json *attempt)
{
    int64_t ns;

    return time_parse(json_str_field(attempt, "endTime"), &ns, NULL) < 0 ? INT64_MAX : ns;
}

/* Whether a failed in a newer run than b, or in the same run and earlier. */
static bool attempt_is_before(const struct json *a, const struct json *b)
{
    const int64_t x = json_int_at(a, "retry"), y = json_int_at(b, "retry");

    return x != y ? x > y : attempt_end_ns(a) < attempt_end_ns(b);
}

const struct json *api_job_first_failure(const struct json *job)
{
    const struct json *list = json_at(job, "status.attempts"), *first = NULL;

    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct json *a = &list->items[i];

        if (json_int_at(a, "exitCode") != 0 && (!first || attempt_is_before(a, first))) {
            first = a;
        }
    }
    return first;
}

void api_job_write_end(const struct json *attempt, struct hk_buf *out)
{
    const struct hk_str reason = json_str_field(attempt, "reason");
    const long long code = (long long)json_int_at(attempt, "exitCode");

    if (reason.n > 0 && !hk_str_is(reason, "Error")) {
        hk_buf_addf(out, "%.*s (exit code %lld)", HK_FMT(reason), code);
    } else {
        hk_buf_addf(out, "exit code %lld", code);
    }
}
