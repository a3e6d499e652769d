// SPDX-License-Identifier: Apache-2.0
// A pod of a job from its task's template (docs/reference/controllers.md section 4).
#include "api/names.h"
#include "controllers/job_priv.h"

static const struct hk_str none = {"", 0};

struct hk_str job_pod_name(const struct api_job *job, const struct api_job_task *task,
                           int32_t index, struct hk_arena *a)
{
    return hk_str(
        hk_arena_printf(a, "%.*s-%.*s-%d", HK_FMT(job->meta.name), HK_FMT(task->name), (int)index));
}

/* ---- labels and annotations ---- */

struct notes {
    struct hk_arena *a;
    struct json *labels, *annotations;
};

static void job_pod_set_annotation(struct notes *n, const char *key, struct hk_str value)
{
    json_set_str(n->annotations, n->a, key, value);
}

static void job_pod_set_label(struct notes *n, const char *key, struct hk_str value)
{
    json_set_str(n->labels, n->a, key, value);
}

static void both(struct notes *n, const char *key, struct hk_str value)
{
    job_pod_set_annotation(n, key, value);
    job_pod_set_label(n, key, value);
}

static struct hk_str job_pod_format_int(struct notes *n, int64_t value)
{
    return hk_str(hk_arena_printf(n->a, "%lld", (long long)value));
}

static bool job_pod_inherit_annotation(struct notes *n, const struct api_job *job, const char *key)
{
    const struct hk_str *value = api_map_get(&job->meta.annotations, hk_str(key));

    if (value) {
        job_pod_set_annotation(n, key, *value);
    }
    return value != NULL;
}

static void inherit_label(struct notes *n, const struct api_job *job, const char *key)
{
    const struct hk_str *value = api_map_get(&job->meta.labels, hk_str(key));

    if (value) {
        job_pod_set_label(n, key, *value);
    }
}

static void put_notes(struct notes *n, const struct job_pass *p, const struct api_job_task *task,
                      int32_t index)
{
    const struct api_job *job = &p->job;
    const struct hk_str task_name = task->name.n > 0 ? task->name : HK_STR("default");

    both(n, API_KEY_TASK_INDEX, job_pod_format_int(n, index));
    both(n, API_KEY_TASK_SPEC, task_name);
    both(n, API_KEY_JOB_NAME, job->meta.name);
    both(n, API_KEY_QUEUE_NAME, job->queue);
    job_pod_set_label(n, API_KEY_JOB_NAMESPACE, job->meta.ns);
    job_pod_set_annotation(n, API_ANN_GROUP_NAME, job_group_name(job, n->a));
    job_pod_set_annotation(n, API_ANN_JOB_VERSION, job_pod_format_int(n, job->version));
    job_pod_set_annotation(n, API_ANN_JOB_RETRY_COUNT, job_pod_format_int(n, job->retry_count));
    job_pod_set_annotation(
        n, API_ANN_TEMPLATE_UID,
        hk_str(hk_arena_printf(n->a, "%.*s-%.*s", HK_FMT(job->meta.name), HK_FMT(task->name))));
    if (task->topology_policy.n > 0) {
        job_pod_set_annotation(n, API_ANN_NUMA_POLICY, task->topology_policy);
    }
    if (p->forwarding) {
        both(n, API_KEY_JOB_FORWARDING, HK_STR("true"));
    }
    if (task->partition.present) {
        job_pod_set_label(
            n, API_KEY_PARTITION_ID,
            job_pod_format_int(n, task->partition.size > 0 ? index / task->partition.size : 0));
    }
    job_pod_inherit_annotation(n, job, API_ANN_PREEMPTABLE);
    job_pod_inherit_annotation(n, job, API_ANN_COOLDOWN_TIME);
    job_pod_inherit_annotation(n, job, API_ANN_REVOCABLE_ZONE);
    if (!job_pod_inherit_annotation(n, job, API_ANN_JDB_MIN_AVAILABLE)) {
        job_pod_inherit_annotation(n, job, API_ANN_JDB_MAX_UNAVAILABLE);
    }
    inherit_label(n, job, API_ANN_PREEMPTABLE);
    inherit_label(n, job, API_ANN_COOLDOWN_TIME);
}

/* ---- volumes ---- */

struct mount {
    struct hk_arena *a;
    struct hk_str name, path;
};

static void add_mount(void *ctx, struct json *container)
{
    const struct mount *m = ctx;
    struct json v = json_make_object();

    json_set_str(&v, m->a, "mountPath", m->path);
    json_set_str(&v, m->a, "name", m->name);
    json_push(json_need(container, m->a, "volumeMounts", JSON_ARRAY), m->a, v);
}

/* Upstream adds a random suffix. Here it is the volume's index; long names are cut. */
static struct hk_str volume_name(const struct api_job *job, uint32_t i, struct hk_arena *a)
{
    enum { NAME_MAX_LEN = 63, TAIL_LEN = 13 };
    const uint64_t h = hk_hash(job->meta.uid.s, job->meta.uid.n, i + 1);
    const size_t n = HK_MIN(job->meta.name.n, NAME_MAX_LEN - TAIL_LEN);

    return hk_str(hk_arena_printf(a, "%.*s-%012llx", (int)n, job->meta.name.s,
                                  (unsigned long long)(h >> 16)));
}

static bool seen_before(const struct api_job *job, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        if (hk_str_eq(job->volumes.at[k].claim_name, job->volumes.at[i].claim_name)) {
            return true;
        }
    }
    return false;
}

static void put_volumes(const struct api_job *job, struct hk_arena *a, struct json *pod)
{
    struct json *spec = (struct json *)json_get(pod, "spec");

    for (uint32_t i = 0; i < job->volumes.len; i++) {
        const struct api_job_volume *v = &job->volumes.at[i];
        struct mount m = {a, volume_name(job, i, a), v->mount_path};
        struct json volume = json_make_object();

        if (seen_before(job, i)) {
            continue;
        }
        json_set_str(&volume, a, "name", m.name);
        json_set_str(json_set_object(&volume, a, "persistentVolumeClaim"), a, "claimName",
                     v->claim_name);
        json_push(json_need(spec, a, "volumes", JSON_ARRAY), a, volume);
        job_each_container(pod, false, add_mount, &m);
    }
}

/* ---- the pod ---- */

static struct json copy_or_new(const struct json *from, struct hk_arena *a)
{
    return json_clone_as(from, JSON_OBJECT, a);
}

static void job_pod_default_str(struct json *spec, struct hk_arena *a, const char *key,
                                struct hk_str value)
{
    if (value.n > 0 && json_str(json_get(spec, key), none).n == 0) {
        json_set_str(spec, a, key, value);
    }
}

int job_pod_build(const struct job_pass *p, const struct api_job_task *task, int32_t index,
                  struct json *ret, struct hk_err *err)
{
    struct hk_arena *a = p->t->mem;
    const struct json *from = json_get(task->template, "metadata");
    struct notes n = {.a = a};
    struct json pod = json_make_object();
    struct json *meta, *spec;
    int rc;

    json_set_cstr(&pod, a, "apiVersion", "v1");
    json_set_cstr(&pod, a, "kind", "Pod");
    json_set_object(&pod, a, "metadata");
    json_set(&pod, a, "spec", copy_or_new(json_get(task->template, "spec"), a));

    /* Pointers into a container are valid only until members are added, so add members first. */
    meta = (struct json *)json_get(&pod, "metadata");
    json_set_str(meta, a, "name", job_pod_name(&p->job, task, index, a));
    json_set_str(meta, a, "namespace", p->job.meta.ns);
    kinds_own(&pod, a, p->root);
    json_set(meta, a, "labels", copy_or_new(json_get(from, "labels"), a));
    json_set(meta, a, "annotations", copy_or_new(json_get(from, "annotations"), a));
    n.labels = (struct json *)json_get(meta, "labels");
    n.annotations = (struct json *)json_get(meta, "annotations");
    put_notes(&n, p, task, index);

    spec = (struct json *)json_get(&pod, "spec");
    job_pod_default_str(spec, a, "schedulerName", p->job.scheduler_name);
    job_pod_default_str(spec, a, "priorityClassName", p->job.priority_class_name);
    put_volumes(&p->job, a, &pod);
    for (uint32_t i = 0; i < p->uses.len; i++) {
        const struct job_plugin_use *use = &p->uses.at[i];

        rc = use->plugin->pod ? use->plugin->pod(use, task, index, &pod, err) : 0;
        if (rc < 0) {
            return hk_wrap(err, rc, "plugin '%s'", use->plugin->name);
        }
    }
    *ret = pod;
    return 0;
}
