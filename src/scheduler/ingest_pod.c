// SPDX-License-Identifier: Apache-2.0
// Turns pods into tasks: requests, state and owner (docs/reference/scheduler.md section 2.2). Pods
// of other schedulers count only once they have a node; finished pods only while a job counts them.
#include "scheduler/ingest_priv.h"

/* Scores use these amounts for a container without a request, as kube-scheduler's
 * GetNonzeroRequestForResource. */
#define GUESS_CPU_MILLI 100
#define GUESS_MEM_BYTES ((int64_t)200 << 20)

/* ---- requests ---- */

struct request {
    uint64_t has; /* dimensions that some list names */
    int64_t v[DIM_MAX];
    int64_t nz_cpu, nz_mem; /* with defaults for missing requests */
};

/* Raises each dimension to the amount in the list. */
static int request_raise(struct ingest *in, struct request *r, const struct api_resources *list,
                         struct hk_err *err)
{
    for (uint32_t k = 0; k < list->len; k++) {
        struct amount a;
        int rc = ingest_amount(in, &list->at[k], &a, err);
        if (rc < 0) {
            return rc;
        }
        if (a.dim != HK_NONE) {
            r->v[a.dim] = HK_MAX(r->v[a.dim], a.v);
            r->has |= 1ULL << a.dim;
        }
    }
    return 0;
}

static int request_add(struct ingest *in, struct request *a, const struct request *b,
                       struct hk_err *err)
{
    for (uint32_t d = 0; d < in->m->dims.n; d++) {
        a->v[d] += b->v[d];
        if (a->v[d] > DIM_LIMIT) {
            return hk_fail(err, HK_EINVAL,
                           "spec: requests for %.*s come to %lld, want at most %lld",
                           HK_FMT(in->m->dims.text[d]), (long long)a->v[d], (long long)DIM_LIMIT);
        }
    }
    a->nz_cpu += b->nz_cpu;
    a->nz_mem += b->nz_mem;
    return 0;
}

static void request_max(const struct ingest *in, struct request *a, const struct request *b)
{
    for (uint32_t d = 0; d < in->m->dims.n; d++) {
        a->v[d] = HK_MAX(a->v[d], b->v[d]);
    }
    a->nz_cpu = HK_MAX(a->nz_cpu, b->nz_cpu);
    a->nz_mem = HK_MAX(a->nz_mem, b->nz_mem);
}

static void request_guess(struct request *r)
{
    r->nz_cpu = (r->has >> DIM_CPU) & 1 ? r->v[DIM_CPU] : GUESS_CPU_MILLI;
    r->nz_mem = (r->has >> DIM_MEM) & 1 ? r->v[DIM_MEM] : GUESS_MEM_BYTES;
}

static const struct api_container_status *
ingest_pod_resized_status(const struct api_container_status *at, uint32_t n, struct hk_str name)
{
    for (uint32_t k = 0; k < n; k++) {
        if (hk_str_eq(at[k].name, name)) {
            return at[k].requests.present ? &at[k] : NULL;
        }
    }
    return NULL;
}

/* st: the kubelet's status of a container being resized, or NULL. Until a resize is done, the
 * larger of the old and the new size counts; an infeasible resize does not count. */
static int container_request(struct ingest *in, const struct api_container *c,
                             const struct api_container_status *st, bool infeasible,
                             struct request *ret, struct hk_err *err)
{
    int rc = 0;

    *ret = (struct request){0};
    if (!st || !infeasible) {
        rc = request_raise(in, ret, &c->requests, err);
    }
    if (st && rc == 0) {
        rc = request_raise(in, ret, &st->requests, err);
    }
    if (st && rc == 0) {
        rc = request_raise(in, ret, &st->allocated, err);
    }
    request_guess(ret);
    return rc;
}

/* Sum of all that run together once the pod is up: containers and sidecars. */
static int running_request(struct ingest *in, const struct api_pod *pod, struct request *sum,
                           struct hk_err *err)
{
    struct request one;
    int rc;

    for (uint32_t k = 0; k < pod->containers.len; k++) {
        const struct api_container *c = &pod->containers.at[k];
        rc = container_request(
            in, c, ingest_pod_resized_status(pod->statuses.at, pod->statuses.len, c->name),
            pod->resize_infeasible, &one, err);
        if (rc < 0) {
            return hk_wrap(err, rc, "spec.containers[%u].resources", k);
        }
        rc = request_add(in, sum, &one, err);
        if (rc < 0) {
            return rc;
        }
    }
    for (uint32_t k = 0; k < pod->init_containers.len; k++) {
        const struct api_container *c = &pod->init_containers.at[k];
        if (!c->restart_always) {
            continue;
        }
        rc = container_request(
            in, c,
            ingest_pod_resized_status(pod->init_statuses.at, pod->init_statuses.len, c->name),
            pod->resize_infeasible, &one, err);
        if (rc < 0) {
            return hk_wrap(err, rc, "spec.initContainers[%u].resources", k);
        }
        rc = request_add(in, sum, &one, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Peak during startup: each init container together with the sidecars started before it. */
static int init_peak(struct ingest *in, const struct api_pod *pod, struct request *peak,
                     struct hk_err *err)
{
    struct request sidecars = {0}, one;

    for (uint32_t k = 0; k < pod->init_containers.len; k++) {
        const struct api_container *c = &pod->init_containers.at[k];
        int rc = container_request(in, c, NULL, false, &one, err);
        if (rc < 0) {
            return hk_wrap(err, rc, "spec.initContainers[%u].resources", k);
        }
        rc = request_add(in, &one, &sidecars, err);
        if (rc < 0) {
            return rc;
        }
        if (c->restart_always) {
            sidecars = one;
        }
        request_max(in, peak, &one);
    }
    return 0;
}

static bool set_by_pod(struct hk_str name)
{
    return hk_str_is(name, API_RES_CPU) || hk_str_is(name, API_RES_MEMORY) ||
           hk_str_starts(name, "hugepages-");
}

/* spec.resources overrides the sums of the containers. */
static int pod_level(struct ingest *in, const struct api_pod *pod, struct request *r,
                     struct hk_err *err)
{
    for (uint32_t k = 0; k < pod->requests.len; k++) {
        struct amount a;
        int rc;
        if (!set_by_pod(pod->requests.at[k].name)) {
            continue;
        }
        rc = ingest_amount(in, &pod->requests.at[k], &a, err);
        if (rc < 0) {
            return hk_wrap(err, rc, "spec.resources.requests");
        }
        r->v[a.dim] = a.v;
        if (a.dim == DIM_CPU) {
            r->nz_cpu = a.v;
        } else if (a.dim == DIM_MEM) {
            r->nz_mem = a.v;
        }
    }
    return 0;
}

static int overhead(struct ingest *in, const struct api_pod *pod, struct request *r,
                    struct hk_err *err)
{
    struct request extra = {0};
    int rc = request_raise(in, &extra, &pod->overhead, err);

    if (rc < 0) {
        return hk_wrap(err, rc, "spec.overhead");
    }
    extra.nz_cpu = extra.v[DIM_CPU];
    extra.nz_mem = extra.v[DIM_MEM];
    return request_add(in, r, &extra, err);
}

static int pod_request(struct ingest *in, const struct api_pod *pod, struct request *ret,
                       struct hk_err *err)
{
    struct request peak = {0};
    int rc;

    *ret = (struct request){0};
    rc = running_request(in, pod, ret, err);
    if (rc < 0) {
        return rc;
    }
    if (pod->init_containers.len > 0) {
        rc = init_peak(in, pod, &peak, err);
        if (rc < 0) {
            return rc;
        }
        request_max(in, ret, &peak);
    }
    ret->v[DIM_PODS]++;
    rc = pod_level(in, pod, ret, err);
    if (rc < 0) {
        return rc;
    }
    return overhead(in, pod, ret, err);
}

/* ---- other columns ---- */

static const struct hk_str *ingest_pod_annotation(const struct api_pod *pod, const char *key)
{
    return api_map_get(&pod->meta.annotations, hk_str(key));
}

static enum task_status status_from(const struct api_pod *pod)
{
    const bool leaving = pod->meta.deletion_ns != 0;

    switch (pod->phase) {
    case API_POD_RUNNING:
        return leaving ? TASK_RELEASING : TASK_RUNNING;
    case API_POD_PENDING:
        return leaving ? TASK_RELEASING : pod->node_name.n > 0 ? TASK_BOUND : TASK_PENDING;
    case API_POD_SUCCEEDED:
        return TASK_SUCCEEDED;
    case API_POD_FAILED:
        return TASK_FAILED;
    case API_POD_UNKNOWN:
        break;
    }
    return TASK_UNKNOWN;
}

static uint32_t role_of(struct ingest *in, const struct api_pod *pod)
{
    const struct hk_str key = HK_STR(API_ANN_TASK_SPEC);
    const struct hk_str *role = api_map_get(&pod->meta.annotations, key);

    if (!role || role->n == 0) {
        role = api_map_get(&pod->meta.labels, key);
    }
    return role ? ingest_str(in, *role) : 0;
}

static bool ingest_pod_is_own_scheduler(const struct ingest *in, struct hk_str scheduler)
{
    for (uint32_t k = 0; k < in->nscheduler; k++) {
        if (hk_str_eq(in->schedulers[k], scheduler)) {
            return true;
        }
    }
    return false;
}

static bool is_preemptable(const struct api_pod *pod)
{
    const struct hk_str *v = ingest_ann_or_label(&pod->meta, HK_STR(API_ANN_PREEMPTABLE));
    bool b;

    return !v || (ingest_parse_bool(*v, &b) && b);
}

static bool is_revocable(const struct api_pod *pod)
{
    const struct hk_str *zone = ingest_pod_annotation(pod, API_ANN_REVOCABLE_ZONE);
    const struct hk_str *preemptable = ingest_pod_annotation(pod, API_ANN_PREEMPTABLE);
    bool b;

    if (zone) {
        return hk_str_is(*zone, "*");
    }
    return preemptable && ingest_parse_bool(*preemptable, &b) && b;
}

static bool is_critical(const struct api_pod *pod)
{
    return hk_str_is(pod->priority_class_name, "system-cluster-critical") ||
           hk_str_is(pod->priority_class_name, "system-node-critical") ||
           hk_str_is(pod->meta.ns, "kube-system");
}

static bool is_preempt_victim(const struct api_pod *pod)
{
    const struct api_condition *c = api_condition_get(&pod->conditions, HK_STR("DisruptionTarget"));

    return c && hk_str_is(c->status, "True") && hk_str_is(c->reason, "PreemptionByScheduler");
}

static unsigned gate_flags(const struct api_pod *pod)
{
    const struct hk_str *opt_in = ingest_pod_annotation(pod, API_QUEUE_ALLOCATION_GATE);
    unsigned f = opt_in && hk_str_is(*opt_in, "true") ? TASK_GATE_OPT_IN : 0;

    if (pod->gates.len > 0) {
        f |= TASK_GATED;
    }
    if (pod->gates.len == 1 && hk_str_is(pod->gates.at[0], API_QUEUE_ALLOCATION_GATE)) {
        f |= TASK_GATE_OURS_ONLY;
    }
    return f;
}

static unsigned flags_of(const struct ingest *in, const struct api_pod *pod)
{
    unsigned f = gate_flags(pod);

    f |= ingest_pod_is_own_scheduler(in, pod->scheduler_name) ? TASK_OURS : 0;
    f |= is_preemptable(pod) ? TASK_PREEMPTABLE : 0;
    f |= is_revocable(pod) ? TASK_REVOCABLE : 0;
    f |= is_critical(pod) ? TASK_CRITICAL : 0;
    f |= is_preempt_victim(pod) ? TASK_PREEMPT_VICTIM : 0;
    f |= pod->meta.deletion_ns != 0 ? TASK_TERMINATING : 0;
    f |= pod->meta.labels.len == 0 ? TASK_NO_LABELS : 0;
    return f;
}

/* ---- priorities ---- */

/* In a cluster, admission writes the class's value into the pod; manifests only name the class. */
static void set_class(const struct ingest *in, const struct pod_note *note, struct task_desc *d)
{
    const struct priority_class *c = ingest_class(in, note->prio_class);

    d->pod_priority = c ? c->value : 0;
    if (!note->task_priority) {
        d->priority = c ? c->value : 1;
    }
    d->flags &= ~(unsigned)TASK_NEVER_PREEMPTS;
    if (note->never_preempts || (c && c->never_preempts)) {
        d->flags |= TASK_NEVER_PREEMPTS;
    }
}

static void set_priority(const struct ingest *in, const struct api_pod *pod, struct pod_note *note,
                         struct task_desc *d)
{
    const struct hk_str *text = ingest_pod_annotation(pod, API_ANN_TASK_PRIORITY);
    int64_t v;

    note->own_priority = pod->has_priority;
    note->never_preempts = pod->preemption == API_PREEMPT_NEVER;
    if (text && hk_str_int(*text, &v) && v >= INT32_MIN && v <= INT32_MAX) {
        note->task_priority = true;
        d->priority = (int32_t)v;
    }
    if (!pod->has_priority) {
        set_class(in, note, d);
        return;
    }
    d->pod_priority = pod->priority;
    if (!note->task_priority) {
        d->priority = pod->priority;
    }
    d->flags |= note->never_preempts ? TASK_NEVER_PREEMPTS : 0;
}

/* ---- put and delete ---- */

static void note_strings(const struct pod_note *n, struct hk_intern *t, string_fn *f)
{
    f(t, n->owner.name);
    f(t, n->prio_class);
}

static void set_note(struct ingest *in, task_id t, const struct pod_note *note)
{
    while (in->notes.len <= t.i) {
        hk_vec_push(&in->notes, ((struct pod_note){0}));
    }
    note_strings(note, &in->m->str, hk_intern_keep);
    note_strings(&in->notes.at[t.i], &in->m->str, hk_intern_drop);
    in->notes.at[t.i] = *note;
}

void ingest_pod_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    const task_id t = model_task_find(in->m, ns, name);

    if (!id_none(t)) {
        set_note(in, t, &(struct pod_note){0});
        model_task_del(in->m, t);
    }
}

static bool ingest_pod_is_relevant(const struct ingest *in, const struct api_pod *pod,
                                   struct hk_str group)
{
    const bool finished = pod->phase == API_POD_SUCCEEDED || pod->phase == API_POD_FAILED;

    if (finished && group.n == 0) {
        return false;
    }
    return pod->node_name.n > 0 || ingest_pod_is_own_scheduler(in, pod->scheduler_name);
}

static shape_id shape_of(struct ingest *in, const struct request *r, cons_id cons)
{
    struct amount req[DIM_MAX];
    uint32_t n = 0;

    for (uint32_t d = 0; d < in->m->dims.n; d++) {
        if (r->v[d] != 0) {
            req[n++] = (struct amount){.dim = d, .v = r->v[d]};
        }
    }
    return model_shape_intern(
        in->m, &(struct shape_desc){
                   .req = req, .nreq = n, .nz_cpu = r->nz_cpu, .nz_mem = r->nz_mem, .cons = cons});
}

/* The job controller writes the first annotation, users of plain pods the second. */
static struct hk_str queue_of(const struct api_pod *pod)
{
    const struct hk_str *ann = ingest_pod_annotation(pod, API_KEY_QUEUE_NAME);

    if (!ann) {
        ann = ingest_pod_annotation(pod, API_ANN_QUEUE_NAME);
    }
    return ann ? *ann : HK_STR("");
}

static int ingest_pod_put_task(struct ingest *in, const struct api_pod *pod,
                               const struct request *r, struct hk_str group, struct hk_err *err)
{
    const uint32_t ns = ingest_str(in, ingest_ns(pod->meta.ns));
    const struct labels labels = ingest_labels(in, &pod->meta.labels);
    struct pod_note note = {.owner = ingest_spread_owner(in, &pod->meta),
                            .prio_class = ingest_str(in, pod->priority_class_name)};
    struct task_desc d = {
        .ns = ingest_ns(pod->meta.ns),
        .name = pod->meta.name,
        .uid = ingest_uid(in, &pod->meta),
        .group = group,
        .node = pod->node_name,
        .nominated = pod->nominated_node,
        .queue = queue_of(pod),
        .role = role_of(in, pod),
        .flags = flags_of(in, pod),
        .status = status_from(pod),
        .creation_ns = pod->meta.creation_ns,
        .start_ns = pod->start_ns,
        .ident = model_ident_intern(in->m, ns, labels.at, labels.n),
        .labels = labels,
    };
    struct cons draft;
    task_id t;
    int rc;

    set_priority(in, pod, &note, &d);
    ingest_cons_draft(in, pod, labels, &draft);
    ingest_spread_default(in, &draft, ns, labels, note.owner);
    d.shape = shape_of(in, r, ingest_cons_intern(in, &draft));
    rc = model_task_put(in->m, &d, &t, err);
    if (rc < 0) {
        return rc;
    }
    set_note(in, t, &note);
    return 0;
}

int ingest_pod_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_pod pod;
    struct request r;
    struct hk_str group = HK_STR("");
    const struct hk_str *ann;
    int rc = api_pod_decode(doc, &in->mem, &pod, err);

    if (rc < 0) {
        return rc;
    }
    ann = ingest_pod_annotation(&pod, API_ANN_GROUP_NAME);
    if (ann) {
        group = *ann;
    }
    if (!ingest_pod_is_relevant(in, &pod, group)) {
        ingest_pod_del(in, ingest_ns(pod.meta.ns), pod.meta.name);
        return 0;
    }
    rc = pod_request(in, &pod, &r, err);
    if (rc < 0) {
        return rc;
    }
    return ingest_pod_put_task(in, &pod, &r, group, err);
}

/* ---- changing a row without its manifest ---- */

/* The description that a put of the same pod would have. The caller sets the shape. */
static struct task_desc desc_of(const struct model *m, task_id t)
{
    const struct task *task = model_task(m, t);
    const node_id nominated = task_nominated(m, t);

    struct task_desc d = {
        .ns = model_str(m, task->ns),
        .name = model_str(m, task->name),
        .uid = model_str(m, task->uid),
        .group = id_none(task->job) ? HK_STR("") : model_str(m, model_job(m, task->job)->name),
        .node = id_none(task->node) ? HK_STR("") : model_str(m, m->nodes.name[task->node.i]),
        .nominated = id_none(nominated) ? HK_STR("") : model_str(m, m->nodes.name[nominated.i]),
        .role = task->role,
        .priority = task->priority,
        .pod_priority = task->pod_priority,
        .flags = task->flags & ~(unsigned)TASK_IN_VIEW,
        .status = (enum task_status)task->status,
        .ident = task->ident,
        .labels = ident_labels(m, task->ident),
    };

#define COPY_FACT(type, name) d.name = task->name;
    TASK_FACTS(COPY_FACT)
    return d;
}

/* Puts the row again with other constraints. During a put the overflow guard counts the row twice;
 * if that overflows, the row stays unchanged. */
static void put_again(struct ingest *in, task_id t, struct task_desc *d, cons_id cons)
{
    const struct shape *s = task_shape(in->m, t);
    struct hk_err brink;

    d->shape = model_shape_intern(in->m, &(struct shape_desc){.req = s->req,
                                                              .nreq = s->nreq,
                                                              .nz_cpu = s->nz_cpu,
                                                              .nz_mem = s->nz_mem,
                                                              .cons = cons});
    (void)!model_task_put(in->m, d, &t, &brink);
}

void ingest_pod_set_cons(struct ingest *in, task_id t, cons_id c)
{
    struct task_desc d = desc_of(in->m, t);

    put_again(in, t, &d, c);
}

static void reprioritise(struct ingest *in, task_id t)
{
    const struct task *task = model_task(in->m, t);
    struct task_desc d = desc_of(in->m, t);

    set_class(in, &in->notes.at[t.i], &d);
    if (d.priority != task->priority || d.pod_priority != task->pod_priority ||
        d.flags != (task->flags & ~(unsigned)TASK_IN_VIEW)) {
        put_again(in, t, &d, task_shape(in->m, t)->cons);
    }
}

void ingest_pod_settle(struct ingest *in)
{
    if (!in->classes_changed) {
        return;
    }
    for (uint32_t i = 0; i < in->notes.len; i++) {
        if (in->m->tasks.at[i].used && !in->notes.at[i].own_priority) {
            reprioritise(in, (task_id){i});
        }
    }
}
