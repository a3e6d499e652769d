// SPDX-License-Identifier: Apache-2.0
// Kinds above pods: PodGroups become jobs, Queues become queues; PriorityClasses, quotas,
// disruption budgets and namespaces fill the small tables (docs/reference/scheduler.md sections 2.4
// and 2.6). Job priorities are set at settle, since the class may arrive after the job.
#include "scheduler/ingest_priv.h"

#include "api/podgroup.h"
#include "api/policy.h"
#include "api/queue.h"
#include "codec/timefmt.h"

/* ---- priority classes ---- */

const struct priority_class *ingest_class(const struct ingest *in, uint32_t name)
{
    uint32_t i = name ? hk_map_get(&in->class_at, name) : HK_NONE;

    if (i == HK_NONE && in->default_class) {
        i = hk_map_get(&in->class_at, in->default_class);
    }
    return i == HK_NONE ? NULL : &in->classes.at[i];
}

int ingest_class_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_priority_class pc;
    int rc = api_priority_class_decode(doc, &in->mem, &pc, err);
    uint32_t name, i;

    if (rc < 0) {
        return rc;
    }
    name = ingest_str(in, pc.meta.name);
    i = hk_map_get(&in->class_at, name);
    if (i == HK_NONE) {
        i = in->classes.len;
        hk_vec_push(&in->classes, ((struct priority_class){0}));
        hk_map_put(&in->class_at, name, i);
        hk_intern_keep(&in->m->str, name);
    }
    in->classes.at[i] = (struct priority_class){
        .name = name, .value = pc.value, .never_preempts = pc.preemption == API_PREEMPT_NEVER};
    if (pc.global_default) {
        in->default_class = name; /* the last one wins, as upstream */
    } else if (in->default_class == name) {
        in->default_class = 0;
    }
    in->classes_changed = true;
    return 0;
}

void ingest_class_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    const uint32_t id = ingest_str(in, name), i = hk_map_get(&in->class_at, id);

    if (i == HK_NONE) {
        return;
    }
    hk_map_del(&in->class_at, id);
    hk_intern_drop(&in->m->str, id);
    hk_vec_swap_remove(&in->classes, i);
    if (i < in->classes.len) {
        hk_map_put(&in->class_at, in->classes.at[i].name, i);
    }
    if (in->default_class == id) {
        in->default_class = 0;
    }
    in->classes_changed = true;
}

static int32_t job_priority(const struct ingest *in, uint32_t class_name)
{
    const struct priority_class *c = ingest_class(in, class_name);

    return c ? c->value : 0;
}

/* ---- PodGroups ---- */

static const uint8_t phases[] = {
    [API_PODGROUP_NO_PHASE] = PG_NONE,   [API_PODGROUP_PENDING] = PG_PENDING,
    [API_PODGROUP_RUNNING] = PG_RUNNING, [API_PODGROUP_UNKNOWN] = PG_UNKNOWN,
    [API_PODGROUP_INQUEUE] = PG_INQUEUE, [API_PODGROUP_COMPLETED] = PG_COMPLETED,
};

static uint8_t preemptable(const struct api_meta *meta)
{
    const struct hk_str *v = ingest_ann_or_label(meta, HK_STR(API_ANN_PREEMPTABLE));
    bool b = false;

    if (!v) {
        return TRI_UNSET;
    }
    return ingest_parse_bool(*v, &b) && b ? TRI_TRUE : TRI_FALSE;
}

/* 0 when absent or not a positive duration. */
static int64_t waiting_ns(const struct api_meta *meta)
{
    const struct hk_str *v = api_map_get(&meta->annotations, HK_STR(API_ANN_SLA_WAITING_TIME));
    int64_t ns;

    if (!v) {
        v = api_map_get(&meta->annotations, HK_STR(API_ANN_SLA_WAITING_TIME_OLD));
    }
    return v && duration_parse(*v, &ns, NULL) == 0 && ns > 0 ? ns : 0;
}

static void budget(const struct api_meta *meta, struct job_desc *d)
{
    const struct hk_str *min = api_map_get(&meta->annotations, HK_STR(API_ANN_JDB_MIN_AVAILABLE));
    const struct hk_str *max = api_map_get(&meta->annotations, HK_STR(API_ANN_JDB_MAX_UNAVAILABLE));

    if (min) {
        d->budget_min = *min;
    } else if (max) {
        d->budget_max_unavailable = *max;
    }
}

static struct topo_spec ingest_group_read_topology(struct ingest *in,
                                                   const struct api_network_topology *t)
{
    if (!t->present) {
        return (struct topo_spec){.mode = TOPO_NONE};
    }
    return (struct topo_spec){
        .mode = t->mode == API_TOPOLOGY_SOFT ? TOPO_SOFT : TOPO_HARD,
        .has_tier = t->has_highest_tier,
        .tier = t->highest_tier,
        .tier_name = ingest_str(in, t->highest_tier_name),
    };
}

static void ingest_group_read_roles(struct ingest *in, const struct api_podgroup *pg,
                                    struct job_desc *d)
{
    struct role_min *at = hk_arena_array(&in->mem, pg->min_task_member.len, sizeof(*at));

    for (uint32_t k = 0; k < pg->min_task_member.len; k++) {
        at[k] = (struct role_min){.name = ingest_str(in, pg->min_task_member.at[k].role),
                                  .min = pg->min_task_member.at[k].min};
    }
    d->roles = at;
    d->nrole = pg->min_task_member.len;
}

static void policies(struct ingest *in, const struct api_podgroup *pg, struct job_desc *d)
{
    struct policy_desc *at = hk_arena_array(&in->mem, pg->subgroups.len, sizeof(*at));

    for (uint32_t k = 0; k < pg->subgroups.len; k++) {
        const struct api_subgroup_policy *p = &pg->subgroups.at[k];
        uint32_t *keys = hk_arena_array(&in->mem, p->match_label_keys.len, sizeof(*keys));
        for (uint32_t i = 0; i < p->match_label_keys.len; i++) {
            keys[i] = ingest_str(in, p->match_label_keys.at[i]);
        }
        at[k] = (struct policy_desc){
            .name = p->name,
            .size = p->size,
            .min_groups = p->min_groups,
            .has_sel = p->labels.present,
            .sel = ingest_sel(in, &p->labels),
            .keys = keys,
            .nkey = p->match_label_keys.len,
            .topo = ingest_group_read_topology(in, &p->topology),
        };
    }
    d->policies = at;
    d->npolicy = pg->subgroups.len;
}

static int min_resources(struct ingest *in, const struct api_podgroup *pg, struct job_desc *d,
                         struct hk_err *err)
{
    const struct api_resources *r = &pg->min_resources;
    struct min_item *items = hk_arena_array(&in->mem, r->len, sizeof(*items));
    struct amount *at;
    int rc = ingest_amounts(in, r, &at, &d->nminres, err);

    if (rc < 0) {
        return hk_wrap(err, rc, "spec.minResources");
    }
    for (uint32_t k = 0; k < r->len; k++) {
        items[k] = (struct min_item){.name = ingest_str(in, r->at[k].name),
                                     .milli = quantity_milli(r->at[k].q)};
    }
    d->has_minres = r->present;
    d->minres = at;
    d->min_items = items;
    d->nmin_items = r->len;
    return 0;
}

static int put_podgroup(struct ingest *in, const struct api_podgroup *pg, struct hk_err *err)
{
    /* The decoder fills in "default", but the default queue here may have another name. */
    const struct hk_str queue = json_str(json_at(pg->raw, "spec.queue"), HK_STR(""));
    struct job_desc d = {
        .ns = ingest_ns(pg->meta.ns),
        .name = pg->meta.name,
        .uid = ingest_uid(in, &pg->meta),
        .queue = queue.n > 0 ? queue : in->default_queue,
        .prio_class = pg->priority_class_name,
        .min = pg->min_member,
        .priority = job_priority(in, ingest_str(in, pg->priority_class_name)),
        .phase = phases[pg->phase],
        .preemptable = preemptable(&pg->meta),
        .creation_ns = pg->meta.creation_ns,
        .waiting_ns = waiting_ns(&pg->meta),
        .topo = ingest_group_read_topology(in, &pg->topology),
    };
    int rc = min_resources(in, pg, &d, err);

    if (rc < 0) {
        return rc;
    }
    budget(&pg->meta, &d);
    ingest_group_read_roles(in, pg, &d);
    policies(in, pg, &d);
    rc = model_job_check(in->m, &d, err);
    if (rc < 0) {
        return rc;
    }
    model_job_put(in->m, &d);
    return 0;
}

int ingest_podgroup_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_podgroup pg;
    int rc = api_podgroup_decode(doc, &in->mem, &pg, err);

    if (rc < 0) {
        return rc;
    }
    rc = put_podgroup(in, &pg, err);
    ingest_known_group(in, &pg);
    return rc;
}

void ingest_podgroup_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    const job_id j = model_job_find(in->m, ns, name);

    if (!id_none(j) && model_job(in->m, j)->has_pg) {
        model_job_del(in->m, j);
    }
}

/* ---- queues ---- */

static int queue_amounts(struct ingest *in, const struct api_resources *list, const char *field,
                         struct rvec *ret, bool *has, struct hk_err *err)
{
    struct amount *at;
    uint32_t n;
    int rc = ingest_amounts(in, list, &at, &n, err);

    if (rc < 0) {
        return hk_wrap(err, rc, "spec.%s", field);
    }
    rvec_zero(ret);
    for (uint32_t k = 0; k < n; k++) {
        rvec_set(ret, at[k].dim, (double)at[k].v);
    }
    *has = list->len > 0;
    return 0;
}

static enum queue_state queue_state(const struct ingest *in, enum api_queue_state s)
{
    switch (s) {
    case API_QUEUE_OPEN:
        return QUEUE_OPEN;
    case API_QUEUE_CLOSED:
        return QUEUE_CLOSED;
    case API_QUEUE_CLOSING:
        return QUEUE_CLOSING;
    case API_QUEUE_UNKNOWN:
        return QUEUE_UNKNOWN;
    case API_QUEUE_NO_STATE:
        break;
    }
    /* Without a controller the queue would never become Open. */
    return in->make_queues ? QUEUE_OPEN : QUEUE_STATELESS;
}

static struct hk_str queue_annotation(const struct api_queue *q, struct hk_str key)
{
    const struct hk_str *v = api_map_get(&q->meta.annotations, key);

    return v ? *v : HK_STR("");
}

static int put_queue(struct ingest *in, const struct api_queue *q, struct hk_err *err)
{
    struct queue_desc d = {
        .name = q->meta.name,
        .parent = q->parent,
        .hierarchy = queue_annotation(q, HK_STR(API_ANN_HIERARCHY)),
        .hierarchy_weights = queue_annotation(q, HK_STR(API_ANN_HIERARCHY_WEIGHTS)),
        .weight = q->weight,
        .priority = q->priority,
        .creation_ns = q->meta.creation_ns,
        .state = queue_state(in, q->state),
        .reclaimable = q->reclaimable,
    };
    int rc = queue_amounts(in, &q->capability, "capability", &d.capability, &d.has_capability, err);

    if (rc < 0) {
        return rc;
    }
    rc = queue_amounts(in, &q->deserved, "deserved", &d.deserved, &d.has_deserved, err);
    if (rc < 0) {
        return rc;
    }
    rc =
        queue_amounts(in, &q->guarantee, "guarantee.resource", &d.guarantee, &d.has_guarantee, err);
    if (rc < 0) {
        return rc;
    }
    model_queue_put(in->m, &d);
    return 0;
}

int ingest_queue_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_queue q;
    int rc = api_queue_decode(doc, &in->mem, &q, err);

    if (rc < 0) {
        return rc;
    }
    rc = put_queue(in, &q, err);
    ingest_known_queue(in, &q);
    return rc;
}

void ingest_queue_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    const queue_id q = model_queue_find(in->m, name);

    if (!id_none(q)) {
        model_queue_del(in->m, q);
    }
}

static void need_queue(struct ingest *in, unsigned which, struct hk_str name)
{
    const struct api_builtin_queue *q = &api_builtin_queues[which];

    if (id_none(model_queue_find(in->m, name))) {
        model_queue_put(in->m, &(struct queue_desc){.name = name,
                                                    .weight = q->weight,
                                                    .state = QUEUE_OPEN,
                                                    .reclaimable = q->reclaimable});
    }
}

void ingest_group_settle(struct ingest *in)
{
    if (in->make_queues) {
        need_queue(in, API_QUEUE_DEFAULT, in->default_queue);
        need_queue(in, API_QUEUE_ROOT, HK_STR(API_QUEUE_NAME_ROOT));
    }
    for (uint32_t i = 0; in->classes_changed && i < in->m->jobs.len; i++) {
        const struct job *j = &in->m->jobs.at[i];
        if (j->used && j->has_pg) {
            model_job_set_priority(in->m, (job_id){i}, job_priority(in, j->prio_class));
        }
    }
}

/* ---- quotas, budgets, namespaces ---- */

static struct quota_item *quota_item(struct quota_item *at, uint32_t *n, uint32_t name)
{
    for (uint32_t k = 0; k < *n; k++) {
        if (at[k].name == name) {
            return &at[k];
        }
    }
    at[*n] = (struct quota_item){.name = name};
    return &at[(*n)++];
}

int ingest_quota_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_resource_quota q;
    int rc = api_resource_quota_decode(doc, &in->mem, &q, err);
    uint32_t n = 0;

    if (rc < 0) {
        return rc;
    }
    /* Use spec.hard until the quota's controller has written a status. */
    const struct api_resources *hard = q.hard.present ? &q.hard : &q.spec_hard;
    struct quota_item *at = hk_arena_array(&in->mem, hard->len + q.used.len, sizeof(*at));

    for (uint32_t k = 0; k < hard->len; k++) {
        struct quota_item *item = quota_item(at, &n, ingest_str(in, hard->at[k].name));
        item->hard_milli = quantity_milli(hard->at[k].q);
        item->has_hard = true;
    }
    for (uint32_t k = 0; k < q.used.len; k++) {
        struct quota_item *item = quota_item(at, &n, ingest_str(in, q.used.at[k].name));
        item->used_milli = quantity_milli(q.used.at[k].q);
        item->has_used = true;
    }
    model_quota_put(in->m,
                    &(struct quota_desc){
                        .ns = ingest_ns(q.meta.ns), .name = q.meta.name, .items = at, .nitem = n});
    return 0;
}

void ingest_quota_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    model_quota_del(in->m, ns, name);
}

int ingest_pdb_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_pdb p;
    int rc = api_pdb_decode(doc, &in->mem, &p, err);

    if (rc < 0) {
        return rc;
    }
    model_pdb_put(in->m, &(struct pdb_desc){.ns = ingest_ns(p.meta.ns),
                                            .name = p.meta.name,
                                            .sel = ingest_sel(in, &p.selector),
                                            .allowed = p.disruptions_allowed,
                                            .disrupted = ingest_ids(in, &p.disrupted_pods),
                                            .ndisrupted = p.disrupted_pods.len});
    return 0;
}

void ingest_pdb_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    model_pdb_del(in->m, ns, name);
}

/* The API server labels every namespace with its name; manifests lack that label. */
static struct labels namespace_labels(struct ingest *in, const struct api_meta *meta)
{
    const struct hk_str key = HK_STR("kubernetes.io/metadata.name");
    struct api_kv *at = hk_arena_array(&in->mem, meta->labels.len + 1, sizeof(*at));
    struct api_map map = {.at = at, .len = meta->labels.len};

    for (uint32_t k = 0; k < map.len; k++) {
        at[k] = meta->labels.at[k];
    }
    if (!api_map_get(&meta->labels, key)) {
        at[map.len++] = (struct api_kv){.key = key, .value = meta->name};
    }
    return ingest_labels(in, &map);
}

int ingest_namespace_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_namespace ns;
    int rc = api_namespace_decode(doc, &in->mem, &ns, err);

    if (rc < 0) {
        return rc;
    }
    const struct labels l = namespace_labels(in, &ns.meta);
    model_namespace_put(in->m, ingest_str(in, ns.meta.name), l.at, l.n);
    return 0;
}

void ingest_namespace_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    model_namespace_put(in->m, ingest_str(in, name), NULL, 0);
}
