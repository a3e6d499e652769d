// SPDX-License-Identifier: Apache-2.0
// Validation of new jobs. Defaults are in vc_job_mutate.c, updates in vc_job_update.c, policies in
// vc_job_policy.c.
#include "admission/vc_priv.h"

static const char *const known_plugins[] = {"env",     "svc", "ssh",      "tensorflow", "mpi",
                                            "pytorch", "ray", "hcclrank", NULL};

/* ---- plugins ---- */

/* The value of a plugin's argument, parsed like Go's flag package: "--name=value" or "--name
 * value", with one dash or two. The first word that is not a flag ends the list. */
static struct hk_str argument(const struct json *args, const char *name, struct hk_str fallback)
{
    struct hk_str found = fallback;

    for (uint32_t i = 0; i < edit_len(args); i++) {
        struct hk_str value = json_str(json_item(args, i), HK_STR(""));
        struct hk_str key;
        if (value.n < 2 || value.s[0] != '-' || hk_str_is(value, "--")) {
            break;
        }
        const size_t dashes = value.s[1] == '-' ? 2 : 1;
        value = (struct hk_str){value.s + dashes, value.n - dashes};
        if (memchr(value.s, '=', value.n)) {
            hk_str_cut(&value, '=', &key);
        } else {
            key = value;
            value = json_str(json_item(args, ++i), HK_STR(""));
        }
        if (hk_str_is(key, name)) {
            found = value;
        }
    }
    return found;
}

static bool has_task(const struct json *tasks, struct hk_str name)
{
    for (uint32_t i = 0; i < edit_len(tasks); i++) {
        if (hk_str_eq(edit_str(json_item(tasks, i), "name"), name)) {
            return true;
        }
    }
    return false;
}

static bool lacks_mpi_master(const struct json *spec)
{
    const struct json *plugins = json_get(spec, "plugins");
    const struct json *mpi = json_get(plugins, "mpi");

    return mpi && !has_task(json_get(spec, "tasks"), argument(mpi, "master", HK_STR("master")));
}

static void check_plugins(struct vc *v, const struct json *plugins)
{
    for (uint32_t i = 0; i < edit_size(plugins); i++) {
        const struct hk_str name = plugins->members[i].key;
        uint32_t k = 0;
        while (known_plugins[k] && !hk_str_is(name, known_plugins[k])) {
            k++;
        }
        if (!known_plugins[k]) {
            hk_buf_addf(&v->why, " unable to find job plugin: %.*s;", HK_FMT(name));
        }
    }
}

/* ---- one task ---- */

static void vc_job_check_name(struct vc *v, const char *what, const char *name, const char *end)
{
    HK_AUTO(hk_buf_fini) struct hk_buf reasons = {0};

    if (!name_write_errors(hk_str(name), NAME_QUALIFIED, " ", &reasons)) {
        hk_buf_addf(&v->why, "create %s with name %s validate failed [%s]%s", what, name,
                    reasons.data, end);
    }
}

int vc_job_read_template(const struct vc *v, const struct json *task, struct json *ret,
                         struct hk_err *err)
{
    struct admission_request scratch = vc_scratch(v);
    const struct json *template = json_get(task, "template");
    struct json pod = json_clone_as(template, JSON_OBJECT, v->q->mem);
    int rc;

    scratch.kind = api_kind(API_POD);
    scratch.obj = &pod;
    rc = admission_decode(&scratch, err);
    admission_request_fini(&scratch);
    *ret = pod;
    return rc;
}

static void collect_template_faults(const struct vc *v, struct json *pod,
                                    struct admission_request *scratch)
{
    const struct path template = path_field(NULL, "template");
    const struct path labels = path_field(&template, "labels");
    const struct path at = path_field(&template, "spec");
    struct json *spec = json_need(pod, v->q->mem, "spec", JSON_OBJECT);

    admit_pod_default_template(spec, v->q->mem);
    name_check_labels(scratch, &labels, json_at(pod, "metadata.labels"));
    admit_pod_validate_spec(scratch, &at, spec);
}

/* Validates the template like a core/v1 pod, after applying defaults; true when it is valid. */
static bool check_template(struct vc *v, const struct json *task, uint32_t index)
{
    struct admission_request scratch = vc_scratch(v);
    struct hk_err err = {0};
    struct json pod;
    bool ok;

    if (vc_job_read_template(v, task, &pod, &err) < 0) {
        hk_buf_addf(&v->why, "spec.task[%u].template: %s. ", index, err.text);
        return false;
    }
    collect_template_faults(v, &pod, &scratch);
    ok = scratch.errors.len == 0;
    if (!ok) {
        hk_buf_addf(&v->why, "spec.task[%u].", index);
    }
    for (uint32_t i = 0; i < scratch.errors.len; i++) {
        hk_buf_addf(&v->why, "%s: %s. ", scratch.errors.at[i].field, scratch.errors.at[i].message);
    }
    admission_request_fini(&scratch);
    return ok;
}

/* NUMA policies assign whole CPUs. Limits replace missing requests. */
static bool asks_whole_cpus(const struct json *container)
{
    const struct json *resources = json_get(container, "resources");
    const struct json *requests = json_get(resources, "requests");
    struct quantity cpu;

    if (edit_size(requests) == 0) {
        requests = json_get(resources, "limits");
    }
    return amount_get(requests, HK_STR("cpu"), &cpu) && cpu.nano != 0 && cpu.nano % 1000000000 == 0;
}

static void check_cpus(struct vc *v, const struct json *task, uint32_t index)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const struct json *pod = json_at(task, "template.spec");
    const struct hk_str policy = edit_str(task, "topologyPolicy");
    uint32_t at = 0;

    if (policy.n == 0 || hk_str_is(policy, "none")) {
        return;
    }
    for (size_t k = 0; k < HK_LEN(lists); k++) {
        const struct json *list = json_get(pod, lists[k]);
        for (uint32_t i = 0; i < edit_len(list); i++, at++) {
            if (!asks_whole_cpus(json_item(list, i))) {
                hk_buf_addf(&v->why,
                            "the cpu request isn't an integer in spec.task[%u] container[%u].",
                            index, at);
                return;
            }
        }
    }
}

static const char *partition_fault(const struct json *task, const struct json *policy)
{
    const int64_t total = json_int(json_get(policy, "totalPartitions"), 0);
    const int64_t size = json_int(json_get(policy, "partitionSize"), 0);
    const int64_t least = json_int(json_get(policy, "minPartitions"), 0);
    int64_t product;

    if (total <= 0) {
        return "'TotalPartitions' must be greater than 0";
    }
    if (size <= 0) {
        return "'PartitionSize' must be greater than 0";
    }
    if (__builtin_mul_overflow(total, size, &product) ||
        json_int(json_get(task, "replicas"), 0) != product) {
        return "'Replicas' are not equal to TotalPartitions*PartitionSize";
    }
    if (least > 0 && edit_has(task, "minAvailable") &&
        (__builtin_mul_overflow(least, size, &product) ||
         json_int(json_get(task, "minAvailable"), 0) != product)) {
        return "'MinAvailable' is not equal to MinPartitions*PartitionSize";
    }
    return NULL;
}

bool vc_job_check_partition(struct vc *v, const struct json *task)
{
    const struct json *policy = json_get(task, "partitionPolicy");
    const size_t before = v->why.len;
    const char *fault;

    if (!json_is(policy, JSON_OBJECT)) {
        return true;
    }
    fault = partition_fault(task, policy);
    if (fault) {
        hk_buf_addf(&v->why, "%s in task: %.*s, job: %.*s", fault, HK_FMT(edit_str(task, "name")),
                    HK_FMT(v->q->name));
    }
    if (vc_has_both_tiers(json_get(policy, "networkTopology"))) {
        hk_buf_adds(&v->why, vc_both_tiers);
    }
    return v->why.len == before;
}

static void check_task(struct vc *v, const struct json *task, uint32_t index)
{
    const struct hk_str name = edit_str(task, "name");

    vc_job_check_policies(v, json_get(task, "policies"), "spec.tasks.policies");
    vc_job_check_name(
        v, "pod",
        hk_arena_printf(v->q->mem, "%.*s-%.*s-%u", HK_FMT(v->q->name), HK_FMT(name), index), ";");
    if (check_template(v, task, index)) {
        check_cpus(v, task, index);
    }
    vc_job_check_partition(v, task);
}

/* ---- all tasks ---- */

/* Validates tasks up to the first duplicate name. Returns their replicas, with the duplicate's. */
static int64_t check_tasks(struct vc *v, const struct json *tasks)
{
    struct hk_intern seen = {0};
    int64_t total = 0;

    for (uint32_t i = 0; i < edit_len(tasks); i++) {
        const struct json *task = json_item(tasks, i);
        const struct hk_str name = edit_str(task, "name");
        const int64_t replicas = json_int(json_get(task, "replicas"), 0);
        if (edit_has(task, "minAvailable") &&
            json_int(json_get(task, "minAvailable"), 0) > replicas) {
            hk_buf_addf(&v->why,
                        " 'minAvailable' is greater than 'replicas' in task: %.*s, job: %.*s;",
                        HK_FMT(name), HK_FMT(v->q->name));
        }
        if (__builtin_add_overflow(total, replicas, &total)) {
            total = INT64_MAX;
        }
        if (name.n > 0 && hk_intern_find(&seen, name) != HK_NONE) {
            hk_buf_addf(&v->why, " duplicated task name %.*s;", HK_FMT(name));
            break;
        }
        hk_intern(&seen, name);
        check_task(v, task, i);
    }
    hk_intern_fini(&seen);
    return total;
}

/* Adds the edges into one task. An unknown name is never satisfied, and a name listed twice is
 * satisfied only once: in both cases the task would wait forever. */
static bool add_dependencies(struct vc_dag *g, const struct json *task, uint32_t *seen_by,
                             uint32_t stamp)
{
    const struct json *names = json_at(task, "dependsOn.name");
    const uint32_t to = hk_intern_find(&g->names, edit_str(task, "name"));

    for (uint32_t i = 0; i < edit_len(names); i++) {
        const uint32_t from = hk_intern_find(&g->names, json_str(json_item(names, i), HK_STR("")));
        if (from == HK_NONE || from == 0 || seen_by[from] == stamp) {
            return false;
        }
        seen_by[from] = stamp;
        hk_vec_push(&g->edges, (struct vc_dag_edge){from, to});
    }
    return true;
}

static bool is_dag(const struct json *tasks)
{
    const uint32_t n = edit_len(tasks);
    HK_AUTO(vc_dag_fini) struct vc_dag g = {0};
    HK_AUTO(hk_freep) uint32_t *seen_by = hk_zalloc_array(n + 1, sizeof(*seen_by));
    bool ok = true;

    for (uint32_t i = 0; ok && i < n; i++) {
        const struct hk_str name = edit_str(json_item(tasks, i), "name");
        ok = name.n > 0 && hk_intern_find(&g.names, name) == HK_NONE;
        hk_intern(&g.names, name);
    }
    for (uint32_t i = 0; ok && i < n; i++) {
        ok = add_dependencies(&g, json_item(tasks, i), seen_by, i + 1);
    }
    return ok && vc_dag_is_acyclic(&g);
}

static void check_dependencies(struct vc *v, const struct json *tasks)
{
    bool any = false;

    for (uint32_t i = 0; i < edit_len(tasks); i++) {
        any |= edit_has(json_item(tasks, i), "dependsOn");
    }
    if (any && !is_dag(tasks)) {
        hk_buf_adds(&v->why, " job has dependencies between tasks, but doesn't form a directed "
                             "acyclic graph(DAG);");
    }
}

/* ---- volumes ---- */

/* Reports the first error of the volume. */
static bool check_volume(struct vc *v, const struct json *volume, struct hk_intern *paths)
{
    const struct hk_str path = edit_str(volume, "mountPath");
    const struct hk_str claim = edit_str(volume, "volumeClaimName");
    HK_AUTO(hk_buf_fini) struct hk_buf reasons = {0};

    if (path.n == 0) {
        hk_buf_adds(&v->why, " mountPath is required;");
    } else if (hk_intern_find(paths, path) != HK_NONE) {
        hk_buf_addf(&v->why, " duplicated mountPath: %.*s;", HK_FMT(path));
    } else if (claim.n == 0 && !edit_has(volume, "volumeClaim")) {
        hk_buf_adds(&v->why, " either VolumeClaim or VolumeClaimName must be specified;");
    } else if (claim.n > 0 && edit_has(volume, "volumeClaim")) {
        hk_buf_adds(&v->why,
                    "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
                    "If you want to create a new PVC, you do not need to specify VolumeClaimName");
    } else if (claim.n > 0 && !name_write_errors(claim, NAME_SUBDOMAIN, " ", &reasons)) {
        hk_buf_addf(&v->why, "invalid VolumeClaimName %.*s : [%s]", HK_FMT(claim), reasons.data);
    } else {
        hk_intern(paths, path);
        return true;
    }
    return false;
}

static void check_volumes(struct vc *v, const struct json *volumes)
{
    struct hk_intern paths = {0};
    bool ok = true;

    for (uint32_t i = 0; ok && i < edit_len(volumes); i++) {
        ok = check_volume(v, json_item(volumes, i), &paths);
    }
    hk_intern_fini(&paths);
}

/* ---- the queue ---- */

static bool count_child(void *arg, const struct json *queue)
{
    uint32_t *n = arg;

    *n += 1;
    return true;
}

static void vc_job_check_queue(struct vc *v, struct hk_str name)
{
    const struct json *queue = vc_queue(v, name);
    struct hk_str state;
    uint32_t children = 0;

    if (!v->q->lookup) {
        return;
    }
    if (!queue) {
        hk_buf_adds(&v->why, " unable to find job queue: ");
        vc_write_no_queue(v, name);
        hk_buf_addc(&v->why, ';');
        return;
    }
    state = vc_queue_state(v, queue);
    if (!hk_str_is(state, "Open")) {
        hk_buf_addf(&v->why,
                    " can only submit job to queue with state `Open`, queue `%.*s` status is "
                    "`%.*s`;",
                    HK_FMT(name), HK_FMT(state));
    }
    if (hk_str_is(name, "root")) {
        hk_buf_adds(&v->why, " can not submit job to root queue;");
        return;
    }
    vc_each_child(v, name, count_child, &children);
    if (children > 0) {
        hk_buf_addf(&v->why,
                    " can only submit job to leaf queue, queue `%.*s` has %u child queues;",
                    HK_FMT(name), children);
    }
}

/* ---- the whole job ---- */

static void vc_job_trim_message(struct hk_buf *b)
{
    const struct hk_str text = hk_str_trim(hk_buf_str(b));

    if (text.n < b->len) {
        memmove(b->data, text.s, text.n);
        b->len = text.n;
        b->data[b->len] = '\0';
    }
}

static void validate_new(struct vc *v)
{
    const struct json *spec = json_get(v->q->obj, "spec");
    const struct json *tasks = json_get(spec, "tasks");
    int64_t total;

    if (edit_len(tasks) == 0) {
        hk_buf_adds(&v->why, "No task specified in job spec");
        return;
    }
    if (lacks_mpi_master(spec)) {
        hk_buf_adds(&v->why, "The specified mpi master task was not found");
        return;
    }
    if (vc_has_both_tiers(json_get(spec, "networkTopology"))) {
        hk_buf_adds(&v->why, vc_both_tiers);
    }
    total = check_tasks(v, tasks);
    vc_job_check_name(v, "job", hk_arena_str(v->q->mem, v->q->name).s, "");
    if (total < json_int(json_get(spec, "minAvailable"), 0)) {
        hk_buf_adds(&v->why,
                    " job 'minAvailable' should not be greater than total replicas in tasks;");
    }
    vc_job_check_policies(v, json_get(spec, "policies"), "spec.policies");
    check_plugins(v, json_get(spec, "plugins"));
    check_volumes(v, json_get(spec, "volumes"));
    vc_job_check_queue(v, edit_str(spec, "queue"));
    check_dependencies(v, tasks);
    vc_job_trim_message(&v->why);
}

void vc_job_validate(struct vc *v)
{
    if (v->q->verb == ADMIT_UPDATE) {
        vc_job_validate_update(v);
    } else {
        validate_new(v);
    }
}
