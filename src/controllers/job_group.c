// SPDX-License-Identifier: Apache-2.0
// The PodGroup of a job, and minResources: what a ResourceQuota would count for the pods that must
// run together (docs/reference/controllers.md sections 5.1 and 5.2).
#include "admission/amount.h"
#include "api/names.h"
#include "controllers/job_priv.h"

#include <stdlib.h>

static const struct hk_str none = {"", 0};

struct hk_str job_group_name(const struct api_job *job, struct hk_arena *a)
{
    return hk_str(hk_arena_printf(a, "%.*s-%.*s", HK_FMT(job->meta.name), HK_FMT(job->meta.uid)));
}

static bool controls(const struct mirror *groups, uint32_t row, const struct api_job *job,
                     struct hk_arena *a)
{
    const struct json group = mirror_read(groups, row, a);

    return hk_str_eq(json_str(json_get(kinds_controller(&group), "uid"), none), job->meta.uid);
}

uint32_t job_group_find(const struct mirror *groups, const struct api_job *job, struct hk_arena *a)
{
    uint32_t row = mirror_find(groups, job->meta.ns, job_group_name(job, a));

    if (row == HK_NONE) { /* the name before Volcano 1.5 */
        row = mirror_find(groups, job->meta.ns, job->meta.name);
    }
    return row != HK_NONE && controls(groups, row, job, a) ? row : HK_NONE;
}

/* ---- resources ---- */

static void job_group_add_amount(struct json *sum, struct hk_arena *a, struct hk_str name,
                                 struct quantity v)
{
    struct quantity have;

    amount_put(sum, a, name, amount_get(sum, name, &have) ? quantity_add(have, v) : v);
}

static bool is_native(struct hk_str name)
{
    return hk_str_is(name, API_RES_CPU) || hk_str_is(name, API_RES_MEMORY) ||
           hk_str_is(name, API_RES_EPHEMERAL_STORAGE);
}

static bool is_counted(struct hk_str name)
{
    return is_native(name) || hk_str_starts(name, "hugepages-") || hk_str_contains(name, "/");
}

static struct hk_str prefixed(const char *prefix, struct hk_str name, struct hk_arena *a)
{
    return hk_str(hk_arena_printf(a, "%s.%.*s", prefix, HK_FMT(name)));
}

/* Collects the names of resources in the lists under `field`. */
static void note_names(struct json *names, struct hk_arena *a, const struct json *list)
{
    for (uint32_t i = 0; json_is(list, JSON_OBJECT) && i < list->len; i++) {
        if (!json_get_str(names, list->members[i].key)) {
            json_put(names, a, list->members[i].key, json_make_bool(true));
        }
    }
}

static void note_containers(struct json *names, struct hk_arena *a, const struct json *containers)
{
    for (uint32_t i = 0; json_is(containers, JSON_ARRAY) && i < containers->len; i++) {
        const struct json *r = json_get(&containers->items[i], "resources");

        note_names(names, a, json_get(r, "requests"));
        note_names(names, a, json_get(r, "limits"));
    }
}

static void add_resource(struct json *sum, struct hk_arena *a, const struct json *spec,
                         struct hk_str name, int64_t n)
{
    struct quantity v;

    if (is_counted(name) && amount_of_pod(spec, "requests", name, &v)) {
        job_group_add_amount(sum, a, name, quantity_times(v, n));
        job_group_add_amount(sum, a, prefixed("requests", name, a), quantity_times(v, n));
    }
    if (is_native(name) && amount_of_pod(spec, "limits", name, &v)) {
        job_group_add_amount(sum, a, prefixed("limits", name, a), quantity_times(v, n));
    }
}

static void add_pods(struct json *sum, struct hk_arena *a, const struct json *spec, int64_t n)
{
    struct json names = json_make_object();

    if (n <= 0) {
        return;
    }
    job_group_add_amount(sum, a, HK_STR("pods"), quantity_of(n, QUANTITY_DECIMAL_SI));
    job_group_add_amount(sum, a, HK_STR("count/pods"), quantity_of(n, QUANTITY_DECIMAL_SI));
    note_containers(&names, a, json_get(spec, "containers"));
    note_containers(&names, a, json_get(spec, "initContainers"));
    note_names(&names, a, json_at(spec, "resources.requests"));
    note_names(&names, a, json_at(spec, "resources.limits"));
    note_names(&names, a, json_get(spec, "overhead"));
    for (uint32_t i = 0; i < names.len; i++) {
        add_resource(sum, a, spec, names.members[i].key, n);
    }
}

struct json job_pod_resources(const struct json *pod, int64_t n, struct hk_arena *a)
{
    const struct hk_str phase = json_str(json_at(pod, "status.phase"), none);
    struct json sum = json_make_object();

    if (n > 0 && (hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed"))) {
        job_group_add_amount(&sum, a, HK_STR("count/pods"), quantity_of(n, QUANTITY_DECIMAL_SI));
    } else {
        add_pods(&sum, a, json_get(pod, "spec"), n);
    }
    return sum;
}

struct ranked {
    const struct api_job_task *task;
    uint32_t place;
    int32_t priority;
};

static int ranked_cmp(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->priority != y->priority) {
        return x->priority > y->priority ? -1 : 1;
    }
    return (x->place > y->place) - (x->place < y->place);
}

static const struct json *job_group_pod_spec(const struct api_job_task *task)
{
    return json_get(task->template, "spec");
}

static struct ranked *rank_tasks(const struct api_job *job, job_priority_fn *priority, void *ctx,
                                 struct hk_arena *a)
{
    struct ranked *at = hk_arena_array(a, job->tasks.len, sizeof(*at));

    for (uint32_t i = 0; i < job->tasks.len; i++) {
        const struct api_job_task *task = &job->tasks.at[i];
        const struct hk_str class =
            json_str(json_get(job_group_pod_spec(task), "priorityClassName"), none);

        at[i] = (struct ranked){task, i, class.n > 0 ? priority(ctx, class) : 0};
    }
    if (job->tasks.len > 0) {
        qsort(at, job->tasks.len, sizeof(*at), ranked_cmp);
    }
    return at;
}

struct json job_min_resources(const struct api_job *job, job_priority_fn *priority, void *ctx,
                              struct hk_arena *a)
{
    const struct ranked *tasks = rank_tasks(job, priority, ctx, a);
    struct json sum = json_make_object();
    int64_t left = job->min_available, wanted = 0;
    bool by_min;

    for (uint32_t i = 0; i < job->tasks.len; i++) {
        wanted += api_job_task_min(&job->tasks.at[i]);
    }
    by_min = job->min_available >= wanted;
    for (uint32_t i = 0; by_min && i < job->tasks.len; i++) {
        const struct api_job_task *task = tasks[i].task;
        const int64_t n = task->has_min ? HK_MIN((int64_t)task->min_available, left) : 0;

        add_pods(&sum, a, job_group_pod_spec(task), n);
        left -= n;
    }
    for (uint32_t i = 0; left > 0 && i < job->tasks.len; i++) {
        const struct api_job_task *task = tasks[i].task;
        const int64_t used = by_min && task->has_min ? task->min_available : 0;
        const int64_t n = HK_MAX(HK_MIN(task->replicas - used, left), 0);

        add_pods(&sum, a, job_group_pod_spec(task), n);
        left -= n;
    }
    return sum;
}

/* ---- the rest of the spec ---- */

static int64_t min_member_of(const struct api_job_task *task)
{
    const struct api_job_partition *part = &task->partition;

    if (task->has_min) {
        return task->min_available;
    }
    if (part->present && part->min != 0 && part->size != 0) {
        return (int64_t)part->min * part->size;
    }
    return task->replicas;
}

static struct json min_task_member(const struct api_job *job, struct hk_arena *a)
{
    struct json map = json_make_object();

    for (uint32_t i = 0; i < job->tasks.len; i++) {
        json_put(&map, a, job->tasks.at[i].name, json_make_int(min_member_of(&job->tasks.at[i])));
    }
    return map;
}

static struct json topology_json(const struct api_network_topology *t, bool both,
                                 struct hk_arena *a)
{
    struct json v = json_make_object();

    json_set_str(&v, a, "mode", t->mode == API_TOPOLOGY_SOFT ? HK_STR("soft") : HK_STR("hard"));
    if (t->has_highest_tier) {
        json_set_int(&v, a, "highestTierAllowed", t->highest_tier);
    }
    if (t->highest_tier_name.n > 0 && (both || !t->has_highest_tier)) {
        json_set_str(&v, a, "highestTierName", t->highest_tier_name);
    }
    return v;
}

static struct json subgroup_json(const struct api_job_task *task, struct hk_arena *a)
{
    struct json v = json_make_object(), keys = json_make_array();
    struct json *labels;

    json_set_str(&v, a, "name", task->name);
    json_set_int(&v, a, "subGroupSize", task->partition.size);
    json_set_int(&v, a, "minSubGroups", task->partition.min);
    labels = json_set_object(json_set_object(&v, a, "labelSelector"), a, "matchLabels");
    json_set_str(labels, a, API_KEY_TASK_SPEC, task->name);
    json_push(&keys, a, json_make_str(HK_STR(API_KEY_PARTITION_ID)));
    json_set(&v, a, "matchLabelKeys", keys);
    if (task->partition.topology.present) {
        json_set(&v, a, "networkTopology", topology_json(&task->partition.topology, true, a));
    }
    return v;
}

static struct json subgroups(const struct api_job *job, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t i = 0; i < job->tasks.len; i++) {
        if (job->tasks.at[i].partition.present) {
            json_push(&list, a, subgroup_json(&job->tasks.at[i], a));
        }
    }
    return list;
}

/* ---- whole PodGroups ---- */

static void copy_map(struct json *meta, struct hk_arena *a, const struct api_job *job,
                     const char *key)
{
    const struct json *from = json_get(json_get(job->raw, "metadata"), key);

    if (json_is(from, JSON_OBJECT) && from->len > 0) {
        json_set(meta, a, key, json_clone(from, a));
    }
}

static void put_version(struct json *meta, struct hk_arena *a, const struct api_job *job)
{
    json_set_cstr(json_need(meta, a, "annotations", JSON_OBJECT), a, API_ANN_JOB_VERSION,
                  hk_arena_printf(a, "%d", job->version));
}

struct json job_group_build(const struct api_job *job, job_priority_fn *priority, void *ctx,
                            struct hk_arena *a)
{
    struct json group = json_make_object(), list = subgroups(job, a);
    struct json *meta, *spec;

    json_set_cstr(&group, a, "apiVersion", "scheduling.volcano.sh/v1beta1");
    json_set_cstr(&group, a, "kind", "PodGroup");
    meta = json_set_object(&group, a, "metadata");
    json_set_str(meta, a, "name", job_group_name(job, a));
    json_set_str(meta, a, "namespace", job->meta.ns);
    copy_map(meta, a, job, "labels");
    copy_map(meta, a, job, "annotations");
    put_version(meta, a, job);
    kinds_own(&group, a, job->raw);

    spec = json_set_object(&group, a, "spec");
    json_set_int(spec, a, "minMember", job->min_available);
    json_set(spec, a, "minTaskMember", min_task_member(job, a));
    json_set_str(spec, a, "queue", job->queue.n > 0 ? job->queue : HK_STR(API_QUEUE_NAME_DEFAULT));
    json_set(spec, a, "minResources", job_min_resources(job, priority, ctx, a));
    if (job->priority_class_name.n > 0) {
        json_set_str(spec, a, "priorityClassName", job->priority_class_name);
    }
    if (job->topology.present) {
        json_set(spec, a, "networkTopology", topology_json(&job->topology, false, a));
    }
    if (list.len > 0) {
        json_set(spec, a, "subGroupPolicy", list);
    }
    return group;
}

/* Compares amounts by value, not by spelling. */
static bool same_amounts(const struct json *a, const struct json *b)
{
    const uint32_t len = json_is(a, JSON_OBJECT) ? a->len : 0;

    if (len != (json_is(b, JSON_OBJECT) ? b->len : 0)) {
        return false;
    }
    for (uint32_t i = 0; i < len; i++) {
        struct quantity x, y;

        if (!amount_get(a, a->members[i].key, &x) || !amount_get(b, a->members[i].key, &y) ||
            quantity_cmp(x, y) != 0) {
            return false;
        }
    }
    return true;
}

static bool has_task_members(const struct json *have, const struct json *want)
{
    if (!json_is(have, JSON_OBJECT)) {
        return false;
    }
    for (uint32_t i = 0; i < want->len; i++) {
        if (!json_equal(json_get_str(have, want->members[i].key), &want->members[i].value)) {
            return false;
        }
    }
    return true;
}

/* A merge patch removes an amount by setting its name to null. */
static struct json amounts_patch(const struct json *have, const struct json *want,
                                 struct hk_arena *a)
{
    struct json patch = json_clone(want, a);

    for (uint32_t i = 0; json_is(have, JSON_OBJECT) && i < have->len; i++) {
        if (!json_get_str(want, have->members[i].key)) {
            json_put(&patch, a, have->members[i].key, (struct json){.type = JSON_NULL});
        }
    }
    return patch;
}

/* Defaults set by the API are not a difference. */
static bool same_subgroups(const struct json *have, const struct json *want)
{
    const uint32_t len = json_is(have, JSON_ARRAY) ? have->len : 0;

    if (len != want->len) {
        return false;
    }
    for (uint32_t i = 0; i < len; i++) {
        const struct json *w = &want->items[i];

        for (uint32_t k = 0; k < w->len; k++) {
            const struct json *h = json_get_str(&have->items[i], w->members[k].key);
            const bool zero = json_is(&w->members[k].value, JSON_INT) && w->members[k].value.i == 0;

            if (!(zero && !h) && !json_equal(h, &w->members[k].value)) {
                return false;
            }
        }
    }
    return true;
}

bool job_group_correct(const struct api_job *job, const struct json *group,
                       job_priority_fn *priority, void *ctx, struct hk_arena *a,
                       struct json *ret_patch)
{
    const struct json *have = json_get(group, "spec");
    const struct json want = job_min_resources(job, priority, ctx, a);
    const struct json members = min_task_member(job, a), list = subgroups(job, a);
    struct json patch = json_make_object();
    struct json *spec = json_set_object(&patch, a, "spec");

    if (!hk_str_eq(json_str(json_get(have, "priorityClassName"), none), job->priority_class_name)) {
        json_set_str(spec, a, "priorityClassName", job->priority_class_name);
    }
    if (json_int(json_get(have, "minMember"), 0) != job->min_available) {
        json_set_int(spec, a, "minMember", job->min_available);
    }
    if (!same_amounts(json_get(have, "minResources"), &want)) {
        json_set(spec, a, "minResources", amounts_patch(json_get(have, "minResources"), &want, a));
    }
    if (!has_task_members(json_get(have, "minTaskMember"), &members)) {
        json_set(spec, a, "minTaskMember", members);
    }
    if (!same_subgroups(json_get(have, "subGroupPolicy"), &list)) {
        json_set(spec, a, "subGroupPolicy", list);
    }
    *ret_patch = patch;
    return spec->len > 0;
}
