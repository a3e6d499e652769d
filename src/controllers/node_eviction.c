// SPDX-License-Identifier: Apache-2.0
// NoExecute taints. A pod on a node with such taints is deleted at once if it does not tolerate one
// of them, else after the shortest tolerationSeconds of the tolerations it needs. The pod first
// gets the condition DisruptionTarget, so that its owner can distinguish an eviction from a
// failure. The deletion is the ordinary one: while the node cannot confirm that the processes have
// ended, the pod stays Terminating, since they may still run, until the node is back, is deleted,
// or is declared out of service (node_podgc.c).
//
// The tolerated time counts on the monotonic clock from when this process first saw the pod on the
// tainted node, as in Kubernetes; a restart of this process starts it again.
#include "api/names.h"
#include "api/pod.h"
#include "controllers/keymem.h"
#include "controllers/kinds.h"
#include "controllers/pass.h"
#include "controllers/table.h"

#define SECOND_NS ((int64_t)1000000000)

static const struct hk_str none = {"", 0};

struct eviction_pod {
    struct ensured read;
    int64_t since_ns; /* monotonic: on the tainted node since; 0: not seen */
    uint64_t uid;     /* hash; another pod of that name starts from zero */
};

struct eviction {
    struct keymem pods;
};

static const struct node_digest *eviction_node(struct ctl *c, const char *name, uint32_t *ret_row)
{
    const struct mirror *nodes = ctl_mirror(c, API_NODE);

    *ret_row = mirror_find(nodes, none, hk_str(name));
    return *ret_row == HK_NONE ? NULL : mirror_digest(nodes, *ret_row);
}

/* ---- which keys a change concerns ---- */

static bool eviction_concerns(const struct pod_digest *d)
{
    return d && d->node[0] && !d->terminating && !pod_has_ended(d);
}

static void eviction_pod_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct eviction *e = c->state;
    const struct hk_str ns = mirror_ns(ch->mirror, ch->row),
                        name = mirror_name(ch->mirror, ch->row);
    const struct pod_digest *d = ch->now;
    const struct node_digest *node;
    uint32_t row;

    if (eviction_concerns(d)) {
        node = eviction_node(c, d->node, &row);
        if (node && node->no_execute) {
            ctl_add(c, ns, name);
        }
    } else if (keymem_find(&e->pods, ns, name)) {
        ctl_add(c, ns, name); /* to free its memory */
    }
}

static void eviction_node_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct node_digest *old = ch->old, *now = ch->now;
    const struct mirror *pods = ctl_mirror(c, API_POD);
    const struct hk_str name = mirror_name(ch->mirror, ch->row);

    if ((old ? old->no_execute : 0) == (now ? now->no_execute : 0)) {
        return;
    }
    for (uint32_t r = mirror_first(pods, PODS_BY_NODE, name); r != HK_NONE;
         r = mirror_next(pods, PODS_BY_NODE, r)) {
        ctl_add(c, mirror_ns(pods, r), mirror_name(pods, r));
    }
}

/* ---- how long a pod may stay ---- */

/* The seconds for which the pod tolerates the taint: INT64_MAX always, -1 never. Of several
 * matching tolerations the shortest counts; the result is INT64_MAX only if none has a time, as in
 * taintEvictionController.getMinTolerationTime. */
static int64_t eviction_tolerance_s(const struct api_pod *pod, const struct api_taint *taint)
{
    int64_t shortest = INT64_MAX;
    bool covered = false;

    for (uint32_t i = 0; i < pod->tolerations.len; i++) {
        const struct api_toleration *tol = &pod->tolerations.at[i];

        if (api_toleration_covers(tol, taint)) {
            covered = true;
            if (tol->has_seconds) {
                shortest = HK_MIN(shortest, HK_MAX(tol->seconds, 0));
            }
        }
    }
    return covered ? shortest : -1;
}

static int64_t eviction_stay_s(const struct api_pod *pod, const struct api_node *node)
{
    int64_t stay = INT64_MAX;

    for (uint32_t i = 0; i < node->taints.len; i++) {
        if (node->taints.at[i].effect == API_EFFECT_NO_EXECUTE) {
            stay = HK_MIN(stay, eviction_tolerance_s(pod, &node->taints.at[i]));
        }
    }
    return stay;
}

/* When to delete the pod, on the monotonic clock; INT64_MAX never. Invalid objects are left
 * alone. */
static int64_t eviction_due_ns(struct pass *t, const struct json *pod_root, uint32_t node_row,
                               int64_t since_ns)
{
    const struct json node_root = mirror_read(ctl_mirror(t->c, API_NODE), node_row, t->mem);
    struct api_node node;
    struct api_pod pod;
    int64_t stay_s;

    if (api_node_decode(&node_root, t->mem, &node, NULL) < 0 ||
        api_pod_decode(pod_root, t->mem, &pod, NULL) < 0) {
        return INT64_MAX;
    }
    stay_s = eviction_stay_s(&pod, &node);
    if (stay_s > (INT64_MAX - since_ns) / SECOND_NS) {
        return INT64_MAX;
    }
    return since_ns + hk_seconds_ns(HK_MAX(stay_s, 0));
}

/* ---- evicting ---- */

static void eviction_mark(struct pass *t, struct hk_str uid)
{
    const struct json body = kinds_pod_patch(
        t->mem, uid,
        &(struct kinds_condition){"DisruptionTarget", "True", "DeletionByTaintManager",
                                  "Taint manager: deleting due to NoExecute taint"},
        t->now_ns);

    pass_patch(t, &(struct pass_patch){.kind = api_kind(API_POD),
                                       .ns = t->ns,
                                       .name = t->name,
                                       .subresource = "status",
                                       .type = PORT_PATCH_STRATEGIC,
                                       .body = &body});
}

static void eviction_evict(struct pass *t, const struct pod_digest *d, const struct json *pod)
{
    const struct hk_str uid = json_str(json_at(pod, "metadata.uid"), none);

    if (!d->evicted) {
        eviction_mark(t, uid);
        return;
    }
    pass_event(t, pod, false, "TaintManagerEviction", "Marking for deletion Pod %.*s/%.*s",
               HK_FMT(t->ns), HK_FMT(t->name));
    pass_delete(t, api_kind(API_POD), t->ns, t->name, uid, PORT_PROPAGATE_DEFAULT);
}

/* ---- one pass ---- */

static struct eviction_pod *eviction_memory_of(struct ctl *c, struct pass *t, struct hk_str uid)
{
    struct eviction *e = c->state;
    struct eviction_pod *p = keymem_get(&e->pods, t->ns, t->name);
    const uint64_t hash = hk_hash(uid.s, uid.n, 0);

    if (p->since_ns == 0 || p->uid != hash) {
        p->since_ns = ctl_mono(c);
        p->uid = hash;
    }
    return p;
}

static void eviction_check(struct ctl *c, struct pass *t, const struct pod_digest *d,
                           struct eviction_pod *p, uint32_t node_row)
{
    struct api_object *pod;
    int64_t due_ns;

    if (!pass_read(t, &p->read, api_kind(API_POD), t->ns, t->name, &pod) || !pod) {
        return;
    }
    due_ns = eviction_due_ns(t, &pod->root, node_row, p->since_ns);
    if (due_ns <= ctl_mono(c)) {
        eviction_evict(t, d, &pod->root);
    } else if (due_ns != INT64_MAX) {
        pass_again_at(t, t->now_ns + (due_ns - ctl_mono(c)));
    }
    api_object_unref(pod);
}

static void eviction_reconcile(struct ctl *c, struct pass *t)
{
    const struct mirror *pods = ctl_mirror(c, API_POD);
    const uint32_t row = mirror_find(pods, t->ns, t->name);
    const struct pod_digest *d = row == HK_NONE ? NULL : mirror_digest(pods, row);
    struct eviction *e = c->state;
    const struct node_digest *node = NULL;
    uint32_t node_row = HK_NONE;

    if (eviction_concerns(d)) {
        node = eviction_node(c, d->node, &node_row);
    }
    if (!node || !node->no_execute) {
        keymem_forget(&e->pods, t->ns, t->name);
        return;
    }
    eviction_check(c, t, d, eviction_memory_of(c, t, mirror_uid(pods, row)), node_row);
}

static void eviction_drop(void *block)
{
    ensured_fini(&((struct eviction_pod *)block)->read);
}

static void eviction_open(struct ctl *c)
{
    keymem_init(&((struct eviction *)c->state)->pods, c, sizeof(struct eviction_pod),
                eviction_drop);
}

static void eviction_close(struct ctl *c)
{
    keymem_fini(&((struct eviction *)c->state)->pods);
}

static const struct ctl_watch watches[] = {
    {&mirror_pods, eviction_pod_changed}, {&mirror_nodes, eviction_node_changed}, {0}};

const struct ctl_type ctl_node_eviction = {
    .name = "taint-eviction-controller",
    .about = "deletes pods from nodes with taints they do not tolerate",
    .watches = watches,
    .state_size = sizeof(struct eviction),
    .open = eviction_open,
    .close = eviction_close,
    .reconcile = eviction_reconcile,
};
