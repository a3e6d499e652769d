// SPDX-License-Identifier: Apache-2.0
// DaemonSets: one pod on each node that the template admits. The pod's affinity names the node, so
// the pod still waits until the scheduler finds capacity there. A new template replaces a few pods
// at a time; maxSurge counts as additional maxUnavailable.
#include "api/pod.h"
#include "controllers/table.h"
#include "controllers/work_priv.h"

static const struct hk_str none = {"", 0};

/* How long a finished pod is kept for inspection before it is replaced. */
#define RETRY_NS (10 * WORK_SECOND_NS)

struct place {
    uint32_t row;
    struct hk_str name;
    bool wanted;                /* a pod must run there */
    bool kept;                  /* an existing pod may stay */
    const struct work_pod *pod; /* the oldest active pod */
};

struct daemon {
    struct pass *t;
    struct json *root;
    const struct json *spec;
    struct work_pods pods;
    struct work_revisions revisions;
    struct api_pod shape; /* the template as a pod */
    struct place *places;
    uint32_t nplace;
    int64_t min_ready_s;
};

/* ---- which keys a change concerns ---- */

static void daemonset_on_pod_change(struct ctl *c, const struct mirror_change *ch)
{
    work_pod_changed(c, ch, API_DAEMON_SET);
}

static void node_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct node_digest *old = ch->old, *now = ch->now;
    const struct mirror *m = ctl_mirror(c, API_DAEMON_SET);

    if (old && now && old->shape == now->shape) {
        return;
    }
    for (uint32_t r = mirror_scan(m, HK_NONE); r != HK_NONE; r = mirror_scan(m, r)) {
        ctl_add(c, mirror_ns(m, r), mirror_name(m, r));
    }
}

/* ---- the pod ---- */

/* Daemon pods tolerate these taints, so they stay where other pods are evicted. */
static const struct {
    const char *key, *effect;
    bool host_network_only;
} tolerated[] = {
    {"node.kubernetes.io/not-ready", "NoExecute", false},
    {"node.kubernetes.io/unreachable", "NoExecute", false},
    {"node.kubernetes.io/disk-pressure", "NoSchedule", false},
    {"node.kubernetes.io/memory-pressure", "NoSchedule", false},
    {"node.kubernetes.io/pid-pressure", "NoSchedule", false},
    {"node.kubernetes.io/unschedulable", "NoSchedule", false},
    {"node.kubernetes.io/network-unavailable", "NoSchedule", true},
};

static bool has_toleration(const struct json *list, const char *key, const char *effect)
{
    for (uint32_t i = 0; i < list->len; i++) {
        if (hk_str_is(json_str(json_get(&list->items[i], "key"), none), key) &&
            hk_str_is(json_str(json_get(&list->items[i], "effect"), none), effect)) {
            return true;
        }
    }
    return false;
}

static void put_tolerations(struct json *spec, struct hk_arena *a)
{
    struct json *list = json_need(spec, a, "tolerations", JSON_ARRAY);

    for (uint32_t i = 0; i < HK_LEN(tolerated); i++) {
        struct json tol = json_make_object();

        if (has_toleration(list, tolerated[i].key, tolerated[i].effect) ||
            (tolerated[i].host_network_only && !json_bool(json_get(spec, "hostNetwork"), false))) {
            continue;
        }
        json_set_cstr(&tol, a, "key", tolerated[i].key);
        json_set_cstr(&tol, a, "operator", "Exists");
        json_set_cstr(&tol, a, "effect", tolerated[i].effect);
        json_push(list, a, tol);
    }
}

static struct json name_is(struct hk_str node, struct hk_arena *a)
{
    struct json req = json_make_object(), values = json_make_array(), list = json_make_array();

    json_push(&values, a, json_make_str(node));
    json_set_cstr(&req, a, "key", "metadata.name");
    json_set_cstr(&req, a, "operator", "In");
    json_set(&req, a, "values", values);
    json_push(&list, a, req);
    return list;
}

/* The node's name replaces the terms of the template, which have been checked already. */
static void put_affinity(struct json *spec, struct hk_arena *a, struct hk_str node)
{
    struct json *by_node =
        json_need(json_need(spec, a, "affinity", JSON_OBJECT), a, "nodeAffinity", JSON_OBJECT);
    struct json term = json_make_object(), terms = json_make_array(), required = json_make_object();

    json_set(&term, a, "matchFields", name_is(node, a));
    json_push(&terms, a, term);
    json_set(&required, a, "nodeSelectorTerms", terms);
    json_set(by_node, a, "requiredDuringSchedulingIgnoredDuringExecution", required);
}

static bool daemonset_create_pod(struct daemon *d, const struct place *at, uint32_t *n)
{
    struct hk_arena *a = d->t->mem;
    struct json pod = work_pod(d->t, d->root, json_get(d->spec, "template"),
                               work_fresh_name(d->t, d->root, d->t->name, n));
    struct json *spec = (struct json *)json_get(&pod, "spec");

    work_label(&pod, a, API_LABEL_REVISION_HASH, d->revisions.hash);
    put_affinity(spec, a, at->name);
    put_tolerations(spec, a);
    return work_create_pod(d->t, d->root, &pod);
}

/* ---- nodes ---- */

static bool daemonset_selector_matches(const struct api_map *selector, const struct api_map *labels)
{
    for (uint32_t i = 0; i < selector->len; i++) {
        const struct hk_str *value = api_map_get(labels, selector->at[i].key);

        if (!value || !hk_str_eq(*value, selector->at[i].value)) {
            return false;
        }
    }
    return true;
}

static void check_node(const struct daemon *d, const struct api_node *node, struct place *ret)
{
    if ((d->shape.node_name.n > 0 && !hk_str_eq(d->shape.node_name, node->meta.name)) ||
        !daemonset_selector_matches(&d->shape.node_selector, &node->meta.labels) ||
        !api_node_selector_match(&d->shape.node_affinity.required, &node->meta.labels,
                                 node->meta.name)) {
        return;
    }
    ret->wanted = ret->kept = true;
    for (uint32_t i = 0; i < node->taints.len; i++) {
        const struct api_taint *taint = &node->taints.at[i];

        if (taint->effect == API_EFFECT_PREFER_NO_SCHEDULE || api_pod_tolerates(&d->shape, taint)) {
            continue;
        }
        ret->wanted = false;
        ret->kept = ret->kept && taint->effect != API_EFFECT_NO_EXECUTE;
    }
}

/* False when the template is not a valid pod. */
static bool read_shape(struct daemon *d)
{
    struct hk_arena *a = d->t->mem;
    struct json pod = work_pod(d->t, d->root, json_get(d->spec, "template"), d->t->name);
    struct json *root = hk_arena_alloc(a, sizeof(*root));
    struct hk_err err = {0};

    put_tolerations((struct json *)json_get(&pod, "spec"), a);
    *root = pod;
    if (api_pod_decode(root, a, &d->shape, &err) < 0) {
        pass_event(d->t, d->root, true, "FailedCreate", "Error creating: %s", err.text);
        return false;
    }
    return true;
}

static void read_places(struct daemon *d)
{
    const struct mirror *m = ctl_mirror(d->t->c, API_NODE);

    d->places = hk_arena_array(d->t->mem, mirror_len(m), sizeof(*d->places));
    for (uint32_t r = mirror_scan(m, HK_NONE); r != HK_NONE; r = mirror_scan(m, r)) {
        struct json *root = hk_arena_alloc(d->t->mem, sizeof(*root));
        struct place *p = &d->places[d->nplace++];
        struct api_node node;

        *p = (struct place){.row = r, .name = mirror_name(m, r)};
        *root = mirror_read(m, r, d->t->mem);
        if (api_node_decode(root, d->t->mem, &node, NULL) == 0) {
            check_node(d, &node, p);
        }
    }
}

/* Binary search: places are sorted by row. */
static struct place *place_at(const struct daemon *d, uint32_t row)
{
    uint32_t lo = 0, hi = d->nplace;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;

        if (d->places[mid].row < row) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < d->nplace && d->places[lo].row == row ? &d->places[lo] : NULL;
}

static struct place *place_of(const struct daemon *d, const struct pod_digest *pod)
{
    const uint32_t row = mirror_find(ctl_mirror(d->t->c, API_NODE), none,
                                     hk_str(pod->node[0] ? pod->node : pod->target));

    return row == HK_NONE ? NULL : place_at(d, row);
}

/* ---- pods by node ---- */

static void check_ended_pod(struct daemon *d, const struct work_pod *p)
{
    const int64_t at_ns = p->d->end_ns + RETRY_NS;

    if (d->t->now_ns < at_ns) {
        pass_again_at(d->t, at_ns);
        return;
    }
    (void)work_delete_pod(d->t, d->root, p);
}

static void daemonset_place_pods(struct daemon *d)
{
    for (uint32_t i = 0; i < d->pods.len; i++) {
        const struct work_pod *p = &d->pods.at[i];
        struct place *at = place_of(d, p->d);
        const bool older = at && at->pod && at->pod->d->created_ns <= p->d->created_ns;

        if (p->d->terminating) {
            if (at && !at->pod) {
                at->pod = p; /* the node counts as occupied until the pod is gone */
            }
        } else if (!at || !at->kept) {
            (void)work_delete_pod(d->t, d->root, p);
        } else if (!work_pod_is_active(p->d)) {
            at->pod = at->pod ? at->pod : p;
            check_ended_pod(d, p);
        } else if (older && work_pod_is_active(at->pod->d)) {
            (void)work_delete_pod(d->t, d->root, p);
        } else {
            if (at->pod && work_pod_is_active(at->pod->d)) {
                (void)work_delete_pod(d->t, d->root, at->pod);
            }
            at->pod = p;
        }
    }
}

static void daemonset_create_missing(struct daemon *d)
{
    const uint32_t limit = work_create_limit(d->t);
    uint32_t n = 0, made = 0;

    for (uint32_t i = 0; i < d->nplace && made < limit; i++) {
        if (d->places[i].wanted && !d->places[i].pod) {
            if (!daemonset_create_pod(d, &d->places[i], &n)) {
                return;
            }
            made++;
        }
    }
}

static bool is_available(const struct daemon *d, const struct place *at)
{
    return at->pod && !at->pod->d->terminating &&
           work_pod_is_available(d->t, at->pod->d, d->min_ready_s);
}

static bool is_old(const struct daemon *d, const struct place *at)
{
    return at->pod && !at->pod->d->terminating &&
           !hk_str_is(d->revisions.hash, at->pod->d->revision);
}

/* Deletes unavailable old pods at once, available ones up to the allowed number of missing pods. */
static void daemonset_replace_old_pods(struct daemon *d)
{
    const struct json *strategy = json_get(d->spec, "updateStrategy");
    const struct json *rolling = json_get(strategy, "rollingUpdate");
    int64_t wanted = 0, missing = 0, allowed;

    if (hk_str_is(json_str(json_get(strategy, "type"), none), "OnDelete")) {
        return;
    }
    for (uint32_t i = 0; i < d->nplace; i++) {
        wanted += d->places[i].wanted;
        missing += d->places[i].wanted && !is_available(d, &d->places[i]);
    }
    allowed = work_share(json_get(rolling, "maxUnavailable"), wanted, true, 1);
    allowed += work_share(json_get(rolling, "maxSurge"), wanted, true, 0);
    for (uint32_t i = 0; i < d->nplace; i++) {
        const struct place *at = &d->places[i];
        const bool serves = is_available(d, at);

        if (is_old(d, at) && (!serves || missing < allowed)) {
            missing += serves;
            (void)work_delete_pod(d->t, d->root, at->pod);
        }
    }
}

/* ---- status ---- */

static bool daemonset_write_status(struct daemon *d)
{
    struct hk_arena *a = d->t->mem;
    struct json status = work_status(d->t, d->root);
    int64_t wanted = 0, there = 0, astray = 0, ready = 0, available = 0, updated = 0;

    for (uint32_t i = 0; i < d->nplace; i++) {
        const struct place *at = &d->places[i];

        wanted += at->wanted;
        if (!at->wanted) {
            astray += at->pod != NULL;
        } else if (at->pod) {
            there++;
            ready += at->pod->d->serving;
            available += is_available(d, at);
            updated += hk_str_is(d->revisions.hash, at->pod->d->revision);
        }
    }
    work_set_observed_generation(d->t, d->root, &status);
    json_set_int(&status, a, "currentNumberScheduled", there);
    json_set_int(&status, a, "numberMisscheduled", astray);
    json_set_int(&status, a, "desiredNumberScheduled", wanted);
    json_set_int(&status, a, "numberReady", ready);
    json_set_int_or_del(&status, a, "updatedNumberScheduled", updated);
    json_set_int_or_del(&status, a, "numberAvailable", available);
    json_set_int_or_del(&status, a, "numberUnavailable", wanted - available);
    return work_write_status(d->t, API_DAEMON_SET, d->root, status);
}

/* ---- one pass ---- */

static void daemonset_reconcile(struct ctl *c, struct pass *t)
{
    struct json root;
    struct daemon d = {.t = t, .root = &root};

    if (!work_find(t, API_DAEMON_SET, &root) || work_is_going(&root)) {
        return;
    }
    d.spec = json_get(&root, "spec");
    d.min_ready_s = json_int(json_get(d.spec, "minReadySeconds"), 0);
    if (!work_revise(t, &root, &d.revisions) || !read_shape(&d)) {
        return;
    }
    d.pods = work_pods(t, &root);
    (void)work_report(t, &root);
    read_places(&d);
    daemonset_place_pods(&d);
    daemonset_create_missing(&d);
    if (t->ncall == 0) {
        daemonset_replace_old_pods(&d);
    }
    if ((t->ncall == 0 || t->nerror > 0) && !daemonset_write_status(&d)) {
        work_revisions_trim(t, &root, &d.revisions, &d.pods, none);
    }
}

static const struct ctl_watch watches[] = {{&mirror_daemon_sets, work_changed},
                                           {&mirror_pods, daemonset_on_pod_change},
                                           {&mirror_nodes, node_changed},
                                           {&mirror_controller_revisions, NULL},
                                           {0}};

const struct ctl_type ctl_work_daemonset = {.name = "daemonset-controller",
                                            .about = "runs a pod on each node",
                                            .watches = watches,
                                            .reconcile = daemonset_reconcile};
