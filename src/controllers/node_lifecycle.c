// SPDX-License-Identifier: Apache-2.0
// Nodes that stop reporting. A node is alive while it renews its Lease in kube-node-lease or posts
// its status. A node that is silent for the grace period is unreachable: its conditions become
// Unknown, its pods are no longer Ready, and it gets the taints by which the scheduler avoids it
// and node_eviction.c evicts its pods. This file maintains all taints that follow from conditions.
//
//   silent for the grace period  -> conditions Unknown -> taints unreachable:NoSchedule, NoExecute
//   Ready False                  -> taints not-ready:NoSchedule, NoExecute
//   Memory-, Disk-, PIDPressure, NetworkUnavailable, spec.unschedulable -> their NoSchedule taints
//   Ready True (only the node itself sets it) -> the taints go
//
// Silence counts from when this process received the last renewal, on the monotonic clock, so
// neither the node's clock nor a clock change here matters. It counts only while this process runs:
// after a pause (SIGSTOP, a suspended machine) every node gets a whole grace period again. If every
// node is silent, the fault is probably on this side, and nothing is evicted (Kubernetes:
// FullDisruption).
//
// A node's key has no namespace; the key of the controller's own timer has one.
#include "api/names.h"
#include "controllers/keymem.h"
#include "controllers/kinds.h"
#include "controllers/pass.h"
#include "controllers/table.h"

#define SECOND_NS ((int64_t)1000000000)
#define GRACE_NS (40 * SECOND_NS)
/* Ticks in a grace period; two missing ticks mean a pause. */
#define TICKS 8

static const struct hk_str none = {"", 0};

struct lifecycle_node {
    int64_t seen_ns; /* monotonic: last sign of life; 0: none */
};

struct lifecycle {
    struct keymem nodes;
    int64_t tick_ns;    /* monotonic: last tick; 0: none */
    int64_t resumed_ns; /* monotonic: end of the last pause */
};

static int64_t lifecycle_grace_ns(const struct ctl *c)
{
    const int64_t grace_ns = ctl_conf(c)->node_grace_ns;

    return grace_ns > 0 ? grace_ns : GRACE_NS;
}

/* ---- signs of life ---- */

static void lifecycle_hear(struct ctl *c, struct hk_str name)
{
    struct lifecycle *l = c->state;
    struct lifecycle_node *n = keymem_get(&l->nodes, none, name);

    n->seen_ns = ctl_mono(c);
}

static void lifecycle_node_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct node_digest *old = ch->old, *now = ch->now;
    const struct hk_str name = mirror_name(ch->mirror, ch->row);
    struct lifecycle *l = c->state;

    if (!now) {
        keymem_forget(&l->nodes, none, name);
        return;
    }
    if (!old || old->heartbeat != now->heartbeat) {
        lifecycle_hear(c, name);
    }
    ctl_add(c, none, name);
}

static void lifecycle_lease_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct lease_digest *old = ch->old, *now = ch->now;
    const struct hk_str name = mirror_name(ch->mirror, ch->row);
    const struct lifecycle *l = c->state;

    if (now && (!old || old->renewal != now->renewal) &&
        hk_str_is(mirror_ns(ch->mirror, ch->row), API_NODE_LEASE_NAMESPACE) &&
        keymem_find(&l->nodes, none, name)) {
        lifecycle_hear(c, name);
    }
}

/* A pod that its node reports as Ready may have to be set to not Ready. */
static void lifecycle_pod_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct pod_digest *d = ch->now;

    if (d && d->says_ready && d->node[0]) {
        const struct mirror *nodes = ctl_mirror(c, API_NODE);
        const uint32_t row = mirror_find(nodes, none, hk_str(d->node));

        if (row != HK_NONE && !((const struct node_digest *)mirror_digest(nodes, row))->ready) {
            ctl_add(c, none, hk_str(d->node));
        }
    }
}

/* ---- pauses of this process ---- */

/* Called before every check, because timers that are due after a pause run in any order. */
static void lifecycle_notice_pause(struct ctl *c)
{
    struct lifecycle *l = c->state;
    const int64_t now_ns = ctl_mono(c);

    if (l->tick_ns > 0 && now_ns - l->tick_ns > 2 * lifecycle_grace_ns(c) / TICKS) {
        l->resumed_ns = now_ns;
        l->tick_ns = now_ns;
    }
}

static void lifecycle_tick(struct ctl *c, struct pass *t)
{
    struct lifecycle *l = c->state;

    l->tick_ns = ctl_mono(c);
    pass_again_at(t, t->now_ns + lifecycle_grace_ns(c) / TICKS);
}

static bool lifecycle_is_own(const struct ctl *c, struct hk_str name)
{
    const struct ctl_conf *conf = ctl_conf(c);

    return conf->is_own_node && conf->is_own_node(conf->own_nodes, name);
}

/* Time since the last sign of life. */
static int64_t lifecycle_silence_ns(struct ctl *c, struct hk_str name)
{
    const struct lifecycle *l = c->state;
    const struct lifecycle_node *n = keymem_find(&l->nodes, none, name);

    if (!n || lifecycle_is_own(c, name)) {
        return 0;
    }
    return ctl_mono(c) - HK_MAX(n->seen_ns, l->resumed_ns);
}

static bool lifecycle_is_silent(struct ctl *c, struct hk_str name)
{
    return lifecycle_silence_ns(c, name) >= lifecycle_grace_ns(c);
}

static bool lifecycle_hears_any(struct ctl *c)
{
    const struct mirror *nodes = ctl_mirror(c, API_NODE);

    for (uint32_t r = mirror_scan(nodes, HK_NONE); r != HK_NONE; r = mirror_scan(nodes, r)) {
        if (!lifecycle_is_silent(c, mirror_name(nodes, r))) {
            return true;
        }
    }
    return false;
}

/* ---- conditions ---- */

static const char *const reported[] = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"};

static bool is_unknown(const struct json *condition)
{
    return hk_str_is(json_str(json_get(condition, "status"), none), "Unknown");
}

static bool lifecycle_is_doubted(const struct json *node)
{
    for (size_t i = 0; i < HK_LEN(reported); i++) {
        if (!is_unknown(kinds_condition(node, reported[i]))) {
            return false;
        }
    }
    return true;
}

/* The condition that Kubernetes writes when a node stops reporting one. */
static struct json lifecycle_unknown(const struct pass *t, const struct json *node,
                                     const char *type)
{
    const struct json *old = kinds_condition(node, type);
    const struct json *beat =
        old ? json_get(old, "lastHeartbeatTime") : json_at(node, "metadata.creationTimestamp");
    struct json c = json_make_object();

    json_set_str_copy(&c, t->mem, "type", hk_str(type));
    json_set_str_copy(&c, t->mem, "status", HK_STR("Unknown"));
    json_set_str_copy(&c, t->mem, "reason",
                      old ? HK_STR("NodeStatusUnknown") : HK_STR("NodeStatusNeverUpdated"));
    json_set_str_copy(&c, t->mem, "message",
                      old ? HK_STR("Kubelet stopped posting node status.")
                          : HK_STR("Kubelet never posted node status."));
    if (beat) {
        json_set(&c, t->mem, "lastHeartbeatTime", *beat);
    }
    json_set_time(&c, t->mem, "lastTransitionTime", t->now_ns);
    return c;
}

/* Sets the conditions to Unknown; true when that requires a write. */
static bool lifecycle_doubt(struct pass *t, const struct json *node)
{
    struct json body = json_make_object(), *list;

    if (lifecycle_is_doubted(node)) {
        return false;
    }
    list = json_set_array(json_set_object(&body, t->mem, "status"), t->mem, "conditions");
    for (size_t i = 0; i < HK_LEN(reported); i++) {
        if (!is_unknown(kinds_condition(node, reported[i]))) {
            json_push(list, t->mem, lifecycle_unknown(t, node, reported[i]));
        }
    }
    pass_patch(t, &(struct pass_patch){.kind = api_kind(API_NODE),
                                       .name = t->name,
                                       .subresource = "status",
                                       .type = PORT_PATCH_STRATEGIC,
                                       .body = &body});
    if (!is_unknown(kinds_condition(node, "Ready"))) {
        pass_event(t, node, false, "NodeNotReady", "Node %.*s status is now: NodeNotReady",
                   HK_FMT(t->name));
    }
    return true;
}

/* ---- taints ---- */

struct lifecycle_taint {
    const char *condition, *status; /* condition NULL: spec.unschedulable */
    const char *key, *effect;
};

static const struct lifecycle_taint taints[] = {
    {"Ready", "False", API_TAINT_NOT_READY, "NoSchedule"},
    {"Ready", "Unknown", API_TAINT_UNREACHABLE, "NoSchedule"},
    {"MemoryPressure", "True", API_TAINT_MEMORY_PRESSURE, "NoSchedule"},
    {"DiskPressure", "True", API_TAINT_DISK_PRESSURE, "NoSchedule"},
    {"PIDPressure", "True", API_TAINT_PID_PRESSURE, "NoSchedule"},
    {"NetworkUnavailable", "True", API_TAINT_NETWORK_UNAVAILABLE, "NoSchedule"},
    {NULL, NULL, API_TAINT_UNSCHEDULABLE, "NoSchedule"},
    {"Ready", "False", API_TAINT_NOT_READY, "NoExecute"},
    {"Ready", "Unknown", API_TAINT_UNREACHABLE, "NoExecute"},
};

static bool lifecycle_is(const struct json *taint, const struct lifecycle_taint *row)
{
    return hk_str_is(json_str(json_get(taint, "key"), none), row->key) &&
           hk_str_is(json_str(json_get(taint, "effect"), none), row->effect);
}

static bool lifecycle_has(const struct json *list, const struct lifecycle_taint *row)
{
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        if (lifecycle_is(&list->items[i], row)) {
            return true;
        }
    }
    return false;
}

static bool lifecycle_wants(struct ctl *c, const struct json *node,
                            const struct lifecycle_taint *row)
{
    const struct json *list = json_at(node, "spec.taints");

    if (!row->condition) {
        return json_bool(json_at(node, "spec.unschedulable"), false);
    }
    if (!kinds_condition(node, row->condition)) {
        return lifecycle_has(list, row); /* no condition yet: keep the taint as it is */
    }
    if (!hk_str_is(json_str(json_get(kinds_condition(node, row->condition), "status"), none),
                   row->status)) {
        return false;
    }
    /* An existing taint stays, so that a started eviction continues. */
    return strcmp(row->effect, "NoExecute") != 0 || lifecycle_has(list, row) ||
           lifecycle_hears_any(c);
}

/* This controller maintains the taint, and its condition no longer holds. */
static bool lifecycle_is_stale(struct ctl *c, const struct json *node, const struct json *taint)
{
    for (size_t i = 0; i < HK_LEN(taints); i++) {
        if (lifecycle_is(taint, &taints[i])) {
            return !lifecycle_wants(c, node, &taints[i]);
        }
    }
    return false;
}

static struct json lifecycle_make_taint(const struct pass *t, const struct lifecycle_taint *row)
{
    struct json taint = json_make_object();

    json_set_str_copy(&taint, t->mem, "key", hk_str(row->key));
    json_set_str_copy(&taint, t->mem, "effect", hk_str(row->effect));
    if (strcmp(row->effect, "NoExecute") == 0) {
        json_set_time(&taint, t->mem, "timeAdded", t->now_ns);
    }
    return taint;
}

/* The required taints; *ret_same: the node already has them. */
static struct json lifecycle_taints(struct pass *t, const struct json *node, bool *ret_same)
{
    const struct json *have = json_at(node, "spec.taints");
    struct json list = json_make_array();

    *ret_same = true;
    for (uint32_t i = 0; json_is(have, JSON_ARRAY) && i < have->len; i++) {
        if (lifecycle_is_stale(t->c, node, &have->items[i])) {
            *ret_same = false;
        } else {
            json_push(&list, t->mem, have->items[i]);
        }
    }
    for (size_t i = 0; i < HK_LEN(taints); i++) {
        if (!lifecycle_has(have, &taints[i]) && lifecycle_wants(t->c, node, &taints[i])) {
            json_push(&list, t->mem, lifecycle_make_taint(t, &taints[i]));
            *ret_same = false;
        }
    }
    return list;
}

/* Updates the taints; true when that requires a write. The patch replaces the whole list, and
 * others write it too, so it carries the resourceVersion. */
static bool lifecycle_taint(struct pass *t, const struct json *node)
{
    struct json body = json_make_object(), list;
    bool same;

    list = lifecycle_taints(t, node, &same);
    if (same) {
        return false;
    }
    json_set_str_copy(json_set_object(&body, t->mem, "metadata"), t->mem, "resourceVersion",
                      json_str(json_at(node, "metadata.resourceVersion"), none));
    json_set(json_set_object(&body, t->mem, "spec"), t->mem, "taints", list);
    pass_patch(t, &(struct pass_patch){.kind = api_kind(API_NODE),
                                       .name = t->name,
                                       .type = PORT_PATCH_MERGE,
                                       .body = &body});
    return true;
}

/* ---- pods of the node ---- */

static struct json lifecycle_pod_object(const struct pass *t, const struct mirror *pods,
                                        uint32_t row)
{
    struct json pod = json_make_object(), *meta;

    json_set_str_copy(&pod, t->mem, "apiVersion", HK_STR("v1"));
    json_set_str_copy(&pod, t->mem, "kind", HK_STR("Pod"));
    meta = json_set_object(&pod, t->mem, "metadata");
    json_set_str_copy(meta, t->mem, "namespace", mirror_ns(pods, row));
    json_set_str_copy(meta, t->mem, "name", mirror_name(pods, row));
    json_set_str_copy(meta, t->mem, "uid", mirror_uid(pods, row));
    return pod;
}

/* A silent node cannot report that its pods are not Ready. */
static bool lifecycle_unready(struct pass *t, const struct mirror *pods, uint32_t row)
{
    const struct json pod = lifecycle_pod_object(t, pods, row);
    const struct json body =
        kinds_pod_patch(t->mem, mirror_uid(pods, row),
                        &(struct kinds_condition){.type = "Ready", .status = "False"}, t->now_ns);

    if (!pass_patch(t, &(struct pass_patch){.kind = api_kind(API_POD),
                                            .ns = mirror_ns(pods, row),
                                            .name = mirror_name(pods, row),
                                            .subresource = "status",
                                            .type = PORT_PATCH_STRATEGIC,
                                            .body = &body})) {
        return false;
    }
    pass_event(t, &pod, true, "NodeNotReady", "Node is not ready");
    return true;
}

static void lifecycle_unready_pods(struct pass *t)
{
    const struct mirror *pods = ctl_mirror(t->c, API_POD);

    for (uint32_t r = mirror_first(pods, PODS_BY_NODE, t->name); r != HK_NONE;
         r = mirror_next(pods, PODS_BY_NODE, r)) {
        if (((const struct pod_digest *)mirror_digest(pods, r))->says_ready &&
            !lifecycle_unready(t, pods, r)) {
            return; /* the next pass continues */
        }
    }
}

/* ---- one pass ---- */

static void lifecycle_reconcile(struct ctl *c, struct pass *t)
{
    const struct mirror *nodes = ctl_mirror(c, API_NODE);
    const uint32_t row = mirror_find(nodes, none, t->name);
    const int64_t grace_ns = lifecycle_grace_ns(c);
    int64_t silence_ns;
    struct json node;

    lifecycle_notice_pause(c);
    if (t->ns.n > 0) {
        lifecycle_tick(c, t);
        return;
    }
    if (row == HK_NONE) {
        return;
    }
    silence_ns = lifecycle_silence_ns(c, t->name);
    if (!lifecycle_is_own(c, t->name)) {
        /* Also for a silent node: its pods are evicted once other nodes report. */
        pass_again_at(t, t->now_ns +
                             (silence_ns < grace_ns ? grace_ns - silence_ns : grace_ns / TICKS));
    }
    node = mirror_read(nodes, row, t->mem);
    if (silence_ns >= grace_ns && lifecycle_doubt(t, &node)) {
        return;
    }
    if (lifecycle_taint(t, &node)) {
        return;
    }
    if (is_unknown(kinds_condition(&node, "Ready"))) {
        lifecycle_unready_pods(t);
    }
}

static void lifecycle_open(struct ctl *c)
{
    struct lifecycle *l = c->state;

    keymem_init(&l->nodes, c, sizeof(struct lifecycle_node), NULL);
    ctl_add(c, hk_str("tick"), hk_str("node-lifecycle"));
}

static void lifecycle_close(struct ctl *c)
{
    keymem_fini(&((struct lifecycle *)c->state)->nodes);
}

static const struct ctl_watch watches[] = {{&mirror_nodes, lifecycle_node_changed},
                                           {&mirror_leases, lifecycle_lease_changed},
                                           {&mirror_pods, lifecycle_pod_changed},
                                           {0}};

const struct ctl_type ctl_node_lifecycle = {
    .name = "node-lifecycle-controller",
    .about = "marks and taints nodes that stop reporting or are not well",
    .watches = watches,
    .state_size = sizeof(struct lifecycle),
    .open = lifecycle_open,
    .close = lifecycle_close,
    .reconcile = lifecycle_reconcile,
};
