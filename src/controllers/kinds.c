// SPDX-License-Identifier: Apache-2.0
// Digests of API objects, and the words by which mirrors index them.
#include "controllers/kinds.h"

#include "api/names.h"
#include "codec/timefmt.h"

static const struct hk_str none = {"", 0};

/* ---- shared by all objects ---- */

const struct json *kinds_annotation(const struct json *root, const char *key)
{
    return json_get(json_at(root, "metadata.annotations"), key);
}

const struct json *kinds_label(const struct json *root, const char *key)
{
    return json_get(json_at(root, "metadata.labels"), key);
}

const struct json *kinds_controller(const struct json *root)
{
    const struct json *owners = json_at(root, "metadata.ownerReferences");

    for (uint32_t i = 0; json_is(owners, JSON_ARRAY) && i < owners->len; i++) {
        if (json_bool(json_get(&owners->items[i], "controller"), false)) {
            return &owners->items[i];
        }
    }
    return NULL;
}

void kinds_own(struct json *body, struct hk_arena *a, const struct json *owner)
{
    struct json *refs =
        json_need(json_need(body, a, "metadata", JSON_OBJECT), a, "ownerReferences", JSON_ARRAY);
    struct json ref = json_make_object();

    json_set_str_copy(&ref, a, "apiVersion", json_str(json_get(owner, "apiVersion"), none));
    json_set_str_copy(&ref, a, "kind", json_str(json_get(owner, "kind"), none));
    json_set_str_copy(&ref, a, "name", json_str(json_at(owner, "metadata.name"), none));
    json_set_str_copy(&ref, a, "uid", json_str(json_at(owner, "metadata.uid"), none));
    json_set_bool(&ref, a, "controller", true);
    json_set_bool(&ref, a, "blockOwnerDeletion", true);
    json_push(refs, a, ref);
}

static struct hk_str by_controller(const struct json *root)
{
    return json_str(json_get(kinds_controller(root), "uid"), none);
}

static bool is_terminating(const struct json *root)
{
    return json_is(json_at(root, "metadata.deletionTimestamp"), JSON_STRING);
}

struct json kinds_pod_patch(struct hk_arena *a, struct hk_str uid, const struct kinds_condition *c,
                            int64_t now_ns)
{
    struct json body = json_make_object(), *status, *to;

    json_set_str_copy(json_set_object(&body, a, "metadata"), a, "uid", uid);
    status = json_set_object(&body, a, "status");
    to = json_push(json_set_array(status, a, "conditions"), a, json_make_object());
    json_set_str_copy(to, a, "type", hk_str(c->type));
    json_set_str_copy(to, a, "status", hk_str(c->status));
    if (c->reason) {
        json_set_str_copy(to, a, "reason", hk_str(c->reason));
    }
    if (c->message) {
        json_set_str_copy(to, a, "message", hk_str(c->message));
    }
    json_set_time(to, a, "lastTransitionTime", now_ns);
    return body;
}

const struct json *kinds_condition(const struct json *root, const char *type)
{
    const struct json *conds = json_at(root, "status.conditions");

    for (uint32_t i = 0; json_is(conds, JSON_ARRAY) && i < conds->len; i++) {
        if (hk_str_is(json_str(json_get(&conds->items[i], "type"), none), type)) {
            return &conds->items[i];
        }
    }
    return NULL;
}

bool kinds_is_true(const struct json *root, const char *type)
{
    return hk_str_is(json_str(json_get(kinds_condition(root, type), "status"), none), "True");
}

/* ---- pods ---- */

static const char *const pod_phases[] = {"Pending", "Running", "Succeeded", "Failed", "Unknown"};
_Static_assert(HK_LEN(pod_phases) == POD_NPHASES, "a name per phase");

const char *pod_phase_name(enum pod_phase phase)
{
    return pod_phases[phase];
}

static enum pod_phase pod_phase_find(struct hk_str name)
{
    uint32_t k = 0;

    if (name.n == 0) {
        return POD_PENDING;
    }
    while (k < POD_UNKNOWN && !hk_str_is(name, pod_phases[k])) {
        k++;
    }
    return k;
}

static char *kinds_copy_str(const struct json *v)
{
    const struct hk_str s = json_str(v, none);

    return hk_strndup(s.s, s.n);
}

static bool int32_of(const struct json *v, int32_t *ret)
{
    int64_t n;

    if (!hk_str_int(json_str(v, none), &n) || n < INT32_MIN || n > INT32_MAX) {
        return false;
    }
    *ret = (int32_t)n;
    return true;
}

static bool has_job_controller(const struct json *root)
{
    const struct json *owner = kinds_controller(root);

    return hk_str_is(json_str(json_get(owner, "kind"), none), "Job") &&
           hk_str_is(json_str(json_get(owner, "apiVersion"), none), "batch.volcano.sh/v1alpha1");
}

static void digest_job_keys(const struct json *root, struct pod_digest *d)
{
    const struct json *task = kinds_annotation(root, API_KEY_TASK_SPEC);
    const struct json *job = kinds_annotation(root, API_KEY_JOB_NAME);

    d->of_job = has_job_controller(root) && json_is(task, JSON_STRING) &&
                json_is(job, JSON_STRING) &&
                int32_of(kinds_annotation(root, API_ANN_JOB_VERSION), &d->version);
    if (!d->of_job) {
        return;
    }
    (void)int32_of(kinds_annotation(root, API_ANN_JOB_RETRY_COUNT), &d->retry);
    d->out_of_sync = kinds_annotation(root, API_ANN_OUT_OF_SYNC) != NULL;
    d->job = kinds_copy_str(job);
    d->owner = kinds_copy_str(json_get(kinds_controller(root), "uid"));
    d->task = kinds_copy_str(task);
    d->partition = kinds_copy_str(kinds_label(root, API_KEY_PARTITION_ID));
}

static int32_t index_in_name(struct hk_str name)
{
    size_t at = name.n;
    int64_t n;

    while (at > 0 && name.s[at - 1] != '-') {
        at--;
    }
    if (at == 0 || !hk_str_int((struct hk_str){name.s + at, name.n - at}, &n) || n < 0 ||
        n > INT32_MAX) {
        return -1;
    }
    return (int32_t)n;
}

static int64_t time_of(const struct json *v)
{
    int64_t ns;

    return time_parse(json_str(v, none), &ns, NULL) == 0 ? ns : 0;
}

static void digest_container(const struct json *c, struct pod_digest *d)
{
    const struct json *end = json_at(c, "state.terminated");
    const int64_t code = json_int(json_get(end, "exitCode"), 0);

    d->restarts += (uint32_t)json_int(json_get(c, "restartCount"), 0);
    if (!end) {
        return;
    }
    d->end_ns = HK_MAX(d->end_ns, time_of(json_get(end, "finishedAt")));
    if (code != 0 && d->exit_code == 0) {
        d->exit_code = (int32_t)code;
        hk_free(d->reason);
        hk_free(d->message);
        d->reason = kinds_copy_str(json_get(end, "reason"));
        d->message = kinds_copy_str(json_get(end, "message"));
    }
}

static void digest_containers(const struct json *root, struct pod_digest *d)
{
    const struct json *main = json_at(root, "status.containerStatuses");
    const struct json *init = json_at(root, "status.initContainerStatuses");
    const uint32_t nmain = json_is(main, JSON_ARRAY) ? main->len : 0;
    bool all_ready = nmain > 0;

    for (uint32_t i = 0; i < nmain; i++) {
        digest_container(&main->items[i], d);
        all_ready = all_ready && json_bool(json_get(&main->items[i], "ready"), false);
    }
    for (uint32_t i = 0; json_is(init, JSON_ARRAY) && i < init->len; i++) {
        digest_container(&init->items[i], d);
    }
    d->ready = d->phase == POD_RUNNING && all_ready;
}

/* Reason and message of the pod's end: from the pod if set, else from the container. */
static void digest_life(const struct json *root, struct pod_digest *d)
{
    const struct json *reason = json_at(root, "status.reason");

    d->created_ns = time_of(json_at(root, "metadata.creationTimestamp"));
    d->start_ns = time_of(json_at(root, "status.startTime"));
    d->node = kinds_copy_str(json_at(root, "spec.nodeName"));
    digest_containers(root, d);
    if (json_str(reason, none).n > 0 || !d->reason) {
        hk_free(d->reason);
        hk_free(d->message);
        d->reason = kinds_copy_str(reason);
        d->message = kinds_copy_str(json_at(root, "status.message"));
    }
}

/* The condition says who evicted the pod and why; a container that was told to end says nothing. */
static void digest_eviction(const struct json *root, struct pod_digest *d)
{
    if (d->evicted && !d->message[0]) {
        hk_free(d->message);
        d->message = kinds_copy_str(json_get(kinds_condition(root, "DisruptionTarget"), "message"));
    }
}

static uint8_t workload_of(const struct json *root)
{
    static const enum api_kind_id workloads[] = {API_REPLICA_SET, API_REPLICATION_CONTROLLER,
                                                 API_STATEFUL_SET, API_DAEMON_SET, API_BATCH_JOB};
    const struct json *owner = kinds_controller(root);
    const struct api_kind *kind = api_kind_find(json_str(json_get(owner, "apiVersion"), none),
                                                json_str(json_get(owner, "kind"), none));

    for (uint32_t i = 0; kind && i < HK_LEN(workloads); i++) {
        if (kind->id == workloads[i]) {
            return (uint8_t)kind->id;
        }
    }
    return API_NKINDS;
}

static bool has_finalizer(const struct json *root, const char *name)
{
    const struct json *list = json_at(root, "metadata.finalizers");

    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        if (hk_str_is(json_str(&list->items[i], none), name)) {
            return true;
        }
    }
    return false;
}

/* The node of a DaemonSet's pod: the DaemonSet controller writes it into every term. */
static const struct json *target_of(const struct json *root)
{
    const struct json *terms = json_at(root, "spec.affinity.nodeAffinity."
                                             "requiredDuringSchedulingIgnoredDuringExecution."
                                             "nodeSelectorTerms");
    const struct json *fields = json_get(json_item(terms, 0), "matchFields");

    for (uint32_t i = 0; json_is(fields, JSON_ARRAY) && i < fields->len; i++) {
        const struct json *f = &fields->items[i];

        if (hk_str_is(json_str(json_get(f, "key"), none), "metadata.name")) {
            return json_item(json_get(f, "values"), 0);
        }
    }
    return NULL;
}

static void digest_workload(const struct json *root, struct pod_digest *d)
{
    const struct json *ready = kinds_condition(root, "Ready");
    const struct json *revision = kinds_label(root, API_LABEL_TEMPLATE_HASH);

    d->workload = workload_of(root);
    if (d->workload == API_NKINDS) {
        return;
    }
    d->serving = ready ? d->phase == POD_RUNNING && d->says_ready : d->ready;
    d->serving_ns = time_of(json_get(ready, "lastTransitionTime"));
    d->tracked = has_finalizer(root, API_JOB_TRACKING);
    (void)int32_of(kinds_annotation(root, API_ANN_POD_DELETION_COST), &d->deletion_cost);
    d->owner = kinds_copy_str(json_get(kinds_controller(root), "uid"));
    d->workload_name = kinds_copy_str(json_get(kinds_controller(root), "name"));
    d->revision = kinds_copy_str(revision ? revision : kinds_label(root, API_LABEL_REVISION_HASH));
    d->target = kinds_copy_str(target_of(root));
}

static bool has_no_group(const struct json *root)
{
    return json_str(kinds_annotation(root, API_ANN_GROUP_NAME), none).n == 0;
}

static bool wants_group(const struct json *root)
{
    const struct hk_str scheduler = json_str(json_at(root, "spec.schedulerName"), none);

    return has_no_group(root) && !hk_str_is(scheduler, API_SCHEDULER_NAME_DEFAULT);
}

static struct hk_str owner_or_uid(const struct json *root)
{
    const struct hk_str owner = by_controller(root);

    return owner.n > 0 ? owner : json_str(json_at(root, "metadata.uid"), none);
}

static struct hk_str by_wanted_group(const struct json *root)
{
    return wants_group(root) ? owner_or_uid(root) : none;
}

static struct hk_str by_missing_group(const struct json *root)
{
    return has_no_group(root) ? owner_or_uid(root) : none;
}

static bool digest_pod_as(const struct json *root, bool wants, struct pod_digest *d)
{
    d->phase = (uint8_t)pod_phase_find(json_str(json_at(root, "status.phase"), none));
    d->terminating = is_terminating(root);
    d->evicted = kinds_is_true(root, "DisruptionTarget");
    d->says_ready = kinds_is_true(root, "Ready");
    digest_job_keys(root, d);
    digest_life(root, d);
    digest_eviction(root, d);
    digest_workload(root, d);
    if (!int32_of(kinds_annotation(root, API_KEY_TASK_INDEX), &d->index) &&
        !int32_of(kinds_annotation(root, API_KEY_COMPLETION_INDEX), &d->index)) {
        d->index = index_in_name(json_str(json_at(root, "metadata.name"), none));
    }
    d->wants_group = wants;
    return wants || (d->tracked && d->phase == POD_FAILED);
}

static bool digest_pod(const struct json *root, void *digest)
{
    return digest_pod_as(root, wants_group(root), digest);
}

static bool digest_pod_of_any_scheduler(const struct json *root, void *digest)
{
    return digest_pod_as(root, has_no_group(root), digest);
}

static struct hk_str by_tracker(const struct json *root)
{
    return has_finalizer(root, API_JOB_TRACKING)
               ? json_str(kinds_label(root, API_KEY_BATCH_JOB_NAME), none)
               : none;
}

static struct hk_str by_node(const struct json *root)
{
    return json_str(json_at(root, "spec.nodeName"), none);
}

static void drop_pod(void *digest)
{
    struct pod_digest *d = digest;

    hk_free(d->job);
    hk_free(d->owner);
    hk_free(d->task);
    hk_free(d->partition);
    hk_free(d->node);
    hk_free(d->reason);
    hk_free(d->message);
    hk_free(d->workload_name);
    hk_free(d->revision);
    hk_free(d->target);
}

/* Keeps the text of pods of default-scheduler, too. */
static const struct mirror_type mirror_pods_of_any_scheduler = {
    .kind = API_POD,
    .required = true,
    .digest_size = sizeof(struct pod_digest),
    .digest = digest_pod_of_any_scheduler,
    .drop = drop_pod,
    .index = {by_controller, by_missing_group, by_tracker, by_node}};

const struct mirror_type mirror_pods = {
    .kind = API_POD,
    .required = true,
    .as_default_scheduler = &mirror_pods_of_any_scheduler,
    .digest_size = sizeof(struct pod_digest),
    .digest = digest_pod,
    .drop = drop_pod,
    .index = {by_controller, by_wanted_group, by_tracker, by_node}};

/* ---- jobs ---- */

static void note_policies(const struct json *policies, struct job_digest *d)
{
    for (uint32_t i = 0; json_is(policies, JSON_ARRAY) && i < policies->len; i++) {
        const struct json *p = &policies->items[i], *events = json_get(p, "events");

        d->events |= api_job_event_bit(json_str(json_get(p, "event"), none));
        for (uint32_t k = 0; json_is(events, JSON_ARRAY) && k < events->len; k++) {
            d->events |= api_job_event_bit(json_str(&events->items[k], none));
        }
        d->by_exit_code = d->by_exit_code || json_get(p, "exitCode");
    }
}

static bool digest_job(const struct json *root, void *digest)
{
    struct job_digest *d = digest;
    const struct hk_str phase = json_str(json_at(root, "status.state.phase"), none);
    const struct json *tasks = json_at(root, "spec.tasks");

    for (uint32_t k = 0; k < API_JOB_NPHASES; k++) {
        if (hk_str_is(phase, api_job_phase_name(k))) {
            d->phase = (uint8_t)k;
        }
    }
    d->terminating = is_terminating(root);
    note_policies(json_at(root, "spec.policies"), d);
    for (uint32_t i = 0; json_is(tasks, JSON_ARRAY) && i < tasks->len; i++) {
        note_policies(json_get(&tasks->items[i], "policies"), d);
    }
    return true;
}

static struct hk_str by_template(const struct json *root)
{
    return json_str(kinds_label(root, API_KEY_CREATED_BY_TEMPLATE), none);
}

const struct mirror_type mirror_jobs = {.kind = API_JOB,
                                        .required = true,
                                        .digest_size = sizeof(struct job_digest),
                                        .digest = digest_job,
                                        .index = {by_controller, by_template}};

/* ---- PodGroups ---- */

static struct hk_str by_queue(const struct json *root)
{
    return json_str(json_at(root, "spec.queue"), HK_STR(API_QUEUE_NAME_DEFAULT));
}

static bool digest_podgroup(const struct json *root, void *digest)
{
    struct podgroup_digest *d = digest;
    const struct hk_str phase = json_str(json_at(root, "status.phase"), none);

    d->phase = API_PODGROUP_UNKNOWN;
    for (uint32_t k = API_PODGROUP_NO_PHASE; k <= API_PODGROUP_COMPLETED; k++) {
        if (hk_str_is(phase, api_podgroup_phase_name(k))) {
            d->phase = (uint8_t)k;
        }
    }
    d->terminating = is_terminating(root);
    d->min_member = (int32_t)HK_MIN(json_int(json_at(root, "spec.minMember"), 0), INT32_MAX);
    d->queue = hk_strndup(by_queue(root).s, by_queue(root).n);
    return true;
}

static void drop_podgroup(void *digest)
{
    hk_free(((struct podgroup_digest *)digest)->queue);
}

const struct mirror_type mirror_podgroups = {.kind = API_PODGROUP,
                                             .required = true,
                                             .digest_size = sizeof(struct podgroup_digest),
                                             .digest = digest_podgroup,
                                             .drop = drop_podgroup,
                                             .index = {by_controller, by_queue}};

/* ---- queues and commands ---- */

static struct hk_str by_parent(const struct json *root)
{
    const struct hk_str parent = json_str(json_at(root, "spec.parent"), none);

    if (hk_str_is(json_str(json_at(root, "metadata.name"), none), API_QUEUE_NAME_ROOT)) {
        return none;
    }
    return parent.n > 0 ? parent : HK_STR(API_QUEUE_NAME_ROOT);
}

static bool digest_queue(const struct json *root, void *digest)
{
    const struct hk_str state = json_str(json_at(root, "status.state"), none);
    const struct json *clusters = json_at(root, "spec.extendClusters");
    struct queue_digest *d = digest;
    unsigned k = API_QUEUE_NO_STATE;

    while (k < API_QUEUE_UNKNOWN && !hk_str_is(state, api_queue_state_name(k))) {
        k++;
    }
    d->state = (uint8_t)k;
    d->forwarding = json_is(clusters, JSON_ARRAY) && clusters->len > 0;
    return true;
}

const struct mirror_type mirror_queues = {.kind = API_QUEUE,
                                          .required = true,
                                          .digest_size = sizeof(struct queue_digest),
                                          .digest = digest_queue,
                                          .index = {by_parent}};

/* Only the name: the reader checks whether the target is a job or a queue. */
static struct hk_str by_target(const struct json *root)
{
    return json_str(json_at(root, "target.name"), none);
}

const struct mirror_type mirror_commands = {
    .kind = API_COMMAND, .required = true, .index = {by_target}};

/* ---- other kinds ---- */

static bool digest_priority(const struct json *root, void *digest)
{
    ((struct priority_digest *)digest)->value = (int32_t)json_int(json_get(root, "value"), 0);
    return false;
}

const struct mirror_type mirror_priority_classes = {.kind = API_PRIORITY_CLASS,
                                                    .digest_size = sizeof(struct priority_digest),
                                                    .digest = digest_priority};

static struct hk_str by_group(const struct json *root)
{
    return json_str(kinds_annotation(json_at(root, "spec.template"), API_ANN_GROUP_NAME), none);
}

const struct mirror_type mirror_cronjobs = {.kind = API_CRONJOB, .index = {by_controller}};
const struct mirror_type mirror_jobflows = {.kind = API_JOBFLOW, .index = {by_controller}};
const struct mirror_type mirror_jobtemplates = {.kind = API_JOBTEMPLATE, .index = {by_controller}};
const struct mirror_type mirror_replica_sets = {.kind = API_REPLICA_SET,
                                                .index = {by_controller, by_group}};
const struct mirror_type mirror_replication_controllers = {.kind = API_REPLICATION_CONTROLLER,
                                                           .index = {by_controller, by_group}};
const struct mirror_type mirror_stateful_sets = {.kind = API_STATEFUL_SET,
                                                 .index = {by_controller, by_group}};
const struct mirror_type mirror_deployments = {.kind = API_DEPLOYMENT, .index = {by_controller}};
const struct mirror_type mirror_daemon_sets = {.kind = API_DAEMON_SET, .index = {by_controller}};
const struct mirror_type mirror_batch_jobs = {.kind = API_BATCH_JOB,
                                              .index = {by_controller, by_group}};
const struct mirror_type mirror_batch_cronjobs = {.kind = API_BATCH_CRONJOB,
                                                  .index = {by_controller}};

static void digest_taints(const struct json *taints, struct node_digest *d)
{
    for (uint32_t i = 0; json_is(taints, JSON_ARRAY) && i < taints->len; i++) {
        const struct json *taint = &taints->items[i];

        if (hk_str_is(json_str(json_get(taint, "effect"), none), "NoExecute")) {
            d->no_execute = 7 * d->no_execute + (json_hash(taint) | 1);
        }
        if (hk_str_is(json_str(json_get(taint, "key"), none), API_TAINT_OUT_OF_SERVICE)) {
            d->out_of_service = true;
        }
    }
}

static bool digest_node(const struct json *root, void *digest)
{
    const struct json *spec = json_get(root, "spec");
    const struct json *beat = json_get(kinds_condition(root, "Ready"), "lastHeartbeatTime");
    struct node_digest *d = digest;

    d->shape = json_hash(json_at(root, "metadata.labels")) +
               3 * json_hash(json_get(spec, "taints")) +
               5 * json_hash(json_get(spec, "unschedulable"));
    d->heartbeat = beat ? json_hash(beat) : 0;
    d->ready = kinds_is_true(root, "Ready");
    digest_taints(json_get(spec, "taints"), d);
    return true;
}

static bool digest_lease(const struct json *root, void *digest)
{
    const struct json *spec = json_get(root, "spec");

    ((struct lease_digest *)digest)->renewal =
        json_hash(json_get(spec, "renewTime")) + 3 * json_hash(json_get(spec, "holderIdentity"));
    return false;
}

const struct mirror_type mirror_leases = {
    .kind = API_LEASE, .digest_size = sizeof(struct lease_digest), .digest = digest_lease};

const struct mirror_type mirror_nodes = {
    .kind = API_NODE, .digest_size = sizeof(struct node_digest), .digest = digest_node};

static bool digest_hypernode(const struct json *root, void *digest)
{
    struct hypernode_digest *d = digest;

    d->shape = json_hash(json_get(root, "spec")) + 3 * json_hash(json_at(root, "metadata.labels"));
    d->tier = (int32_t)json_int(json_at(root, "spec.tier"), 0);
    return true;
}

const struct mirror_type mirror_hypernodes = {.kind = API_HYPERNODE,
                                              .digest_size = sizeof(struct hypernode_digest),
                                              .digest = digest_hypernode};
static struct hk_str by_service(const struct json *root)
{
    return json_str(kinds_label(root, API_LABEL_SERVICE_NAME), none);
}

const struct mirror_type mirror_services = {.kind = API_SERVICE};
const struct mirror_type mirror_endpoints = {.kind = API_ENDPOINTS};
const struct mirror_type mirror_endpoint_slices = {.kind = API_ENDPOINT_SLICE,
                                                   .index = {by_service}};
const struct mirror_type mirror_own_config = {.kind = API_CONFIGMAP, .own_config = true};
const struct mirror_type mirror_namespaces = {.kind = API_NAMESPACE};
const struct mirror_type mirror_controller_revisions = {.kind = API_CONTROLLER_REVISION,
                                                        .index = {by_controller}};

static bool digest_claim(const struct json *root, void *digest)
{
    ((struct claim_digest *)digest)->bound =
        hk_str_is(json_str(json_at(root, "status.phase"), none), "Bound");
    return true;
}

const struct mirror_type mirror_claims = {
    .kind = API_PVC, .digest_size = sizeof(struct claim_digest), .digest = digest_claim};

static struct hk_str by_claim(const struct json *root)
{
    return json_str(json_at(root, "spec.claimRef.name"), none);
}

static bool digest_volume(const struct json *root, void *digest)
{
    ((struct volume_digest *)digest)->free = by_claim(root).n == 0;
    return true;
}

const struct mirror_type mirror_volumes = {.kind = API_PV,
                                           .digest_size = sizeof(struct volume_digest),
                                           .digest = digest_volume,
                                           .index = {by_claim}};
const struct mirror_type mirror_storage_classes = {.kind = API_STORAGE_CLASS};
