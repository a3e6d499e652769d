// SPDX-License-Identifier: Apache-2.0
// The Node object of the agent: created when it is missing, and reported every five minutes and
// when a resource runs low. The agent watches it, and reports soon when another client deletes the
// node or marks it unreachable. One call about the node is in flight at a time; a failed call is
// repeated with a growing delay. lease.c renews the lease, object.c builds the object.
//
// A Ready node gets new pods. So after a start, a pause or a lost network, the node first lists its
// pods again and ends the processes of pods that are gone, because those may run elsewhere by now.
//
//   CREATE --made, or there already (and READ)--> STATUS --> SPEC (if labels or taints differ)
//   --> REST
//      ^--------- not found ------------'            '-- conflict --> STATUS       five minutes '
#include "agent/node/node.h"

#include "agent/node/lease.h"
#include "agent/node/object.h"
#include "base/log.h"

/* Poll interval while the node waits for processes to end; unmounts send no event. */
#define CHECK_AGAIN_NS (SECOND_NS / 50)
#define CHECK_LONG_NS (10 * SECOND_NS)
/* How long a node that was marked unreachable also waits for pods in their grace period. */
#define CHECK_DELETIONS_NS (POD_GRACE_S * SECOND_NS)
#define RETRY_FIRST_NS (SECOND_NS / 5)
#define RETRY_LAST_NS (30 * SECOND_NS)
/* Between two corrections of the object: another client may undo each of them. */
#define MEND_NS SECOND_NS

/* ---- checks before the node reports ready ---- */

/* Others may consider the node lost: list the pods again before the next report. */
static void node_suspect(struct node *n)
{
    if (!n->unchecked) {
        n->unchecked = true;
        n->check_told = false;
        n->check_ns = host_mono_ns(n->host);
        n->ops->relist(n->ctx);
    }
}

static void node_know(struct node *n, struct api_object *o)
{
    if (n->in_fleet || (n->known && hk_str_eq(n->known->uid, o->uid) && o->rv < n->known->rv)) {
        return;
    }
    api_object_unref(n->known);
    n->known = api_object_ref(o);
    if (node_object_is_doubted(&o->root)) {
        n->doubted = true;
    }
}

/* Conditions that were Unknown get new transition times. */
static void node_checked(struct node *n)
{
    n->unchecked = false;
    if (n->doubted) {
        for (size_t i = 0; i < NODE_NCONDITIONS; i++) {
            n->conditions[i].since_ns = host_wall_ns(n->host);
        }
    }
    n->doubted = false;
}

static bool node_may_report(struct node *n, int64_t now_ns)
{
    const bool deletions = n->doubted && now_ns - n->check_ns < CHECK_DELETIONS_NS;

    if (n->in_fleet || n->step == NODE_READ || n->step == NODE_SPEC) {
        return true;
    }
    if (n->contact_ns > 0 && now_ns - n->contact_ns > n->host->o.lease_ns) {
        n->contact_ns = now_ns; /* once per silence */
        node_suspect(n);
    }
    if (n->doubted) {
        node_suspect(n);
    }
    if (!n->unchecked) {
        return true;
    }
    if (n->ops->is_settled(n->ctx, deletions)) {
        node_checked(n);
        return true;
    }
    if (!n->check_told && now_ns - n->check_ns > CHECK_LONG_NS) {
        n->check_told = true;
        hk_log(HK_LOG_WARN,
               "the node is not ready until processes of pods that are gone have ended", "node=%s",
               n->name);
    }
    return false;
}

/* ---- calls ---- */

static void node_rest(struct node *n, enum node_step step, int64_t wait_ns)
{
    n->step = step;
    n->due_ns = host_mono_ns(n->host) + wait_ns;
}

static void node_back_off(struct node *n, const struct port_msg *m)
{
    const int64_t wait_ns = RETRY_FIRST_NS << HK_MIN(n->failures, 8);

    /* A conflict is normal: others write to the node, too. */
    if (n->failures++ == 0 && m->rc != -HK_ECONFLICT) {
        hk_log(HK_LOG_WARN, "cannot report the node", "node=%s err=\"%s\"", n->name, m->err->text);
    }
    node_rest(n, m->rc == -HK_ECONFLICT ? NODE_STATUS : n->step, HK_MIN(wait_ns, RETRY_LAST_NS));
}

static void node_save_uid(struct node *n, const struct api_object *o)
{
    if (!n->uid || !hk_str_is(o->uid, n->uid)) {
        hk_free(n->uid);
        n->uid = hk_strndup(o->uid.s, o->uid.n);
    }
}

static void node_save_object(struct node *n, struct api_object *o)
{
    if (!o) {
        return;
    }
    api_object_unref(n->seen);
    n->seen = api_object_ref(o);
    node_save_uid(n, o);
    node_know(n, o);
}

/* Waits for the next report, unless a newer version of the object arrived during the call. */
static void node_rest_until_report(struct node *n)
{
    const bool missed = n->seen && n->heard_rv > n->seen->rv;

    n->registered = true;
    n->heard_rv = 0;
    node_rest(n, missed ? NODE_STATUS : NODE_REST, missed ? 0 : NODE_REPORT_NS);
}

static void node_next_step(struct node *n)
{
    n->failures = 0;
    switch (n->step) {
    case NODE_READ:
        node_object_recall_conditions(n);
        /* fall through */
    case NODE_CREATE:
        /* In a fleet, the create already wrote the status, if the server kept it. */
        if (!n->in_fleet || !n->seen || !node_object_is_told(n, &n->seen->root)) {
            node_rest(n, NODE_STATUS, 0);
            break;
        }
        node_rest_until_report(n);
        break;
    case NODE_STATUS:
        if (n->seen && (node_object_has_unready_taint(&n->seen->root) ||
                        node_object_lacks_words(n, &n->seen->root))) {
            node_rest(n, NODE_SPEC, 0);
            break;
        }
        /* fall through */
    default:
        node_rest_until_report(n);
        break;
    }
}

static void node_on_answer(void *ctx, const struct port_msg *m)
{
    struct node *n = ctx;

    n->call = 0;
    if (m->rc == 0) {
        n->contact_ns = host_mono_ns(n->host);
        node_save_object(n, m->obj);
        node_next_step(n);
    } else if (m->rc == -HK_EEXIST) {
        node_rest(n, NODE_READ, 0);
    } else if (m->rc == -HK_ENOTFOUND && n->step != NODE_CREATE) {
        node_rest(n, NODE_CREATE, 0);
    } else {
        node_back_off(n, m);
    }
    hk_arena_clear(&n->host->mem);
    if (n->ops->answered) {
        n->ops->answered(n->ctx, n);
    }
}

static void node_submit(struct node *n, struct port_request *q)
{
    q->kind = api_kind(API_NODE);
    n->call = port_submit(n->host->o.port, q, (struct port_sink){node_on_answer, n});
}

static void node_submit_create(struct node *n)
{
    struct hk_arena *a = &n->host->mem;
    struct json body = json_make_object(), *meta;

    json_set_cstr(&body, a, "apiVersion", "v1");
    json_set_cstr(&body, a, "kind", "Node");
    meta = json_set_object(&body, a, "metadata");
    json_set_cstr(meta, a, "name", n->name);
    node_object_add_labels(n, json_set_object(meta, a, "labels"));
    node_object_add_annotations(n, json_set_object(meta, a, "annotations"));
    node_object_add_status(n, &body);
    node_submit(n, &(struct port_request){.verb = PORT_CREATE, .body = &body});
}

static void node_submit_get(struct node *n)
{
    node_submit(n, &(struct port_request){.verb = PORT_GET, .name = hk_str(n->name)});
}

static void node_submit_status(struct node *n)
{
    struct json body = json_make_object();

    node_object_add_status(n, &body);
    node_submit(n, &(struct port_request){.verb = PORT_PATCH,
                                          .patch = PORT_PATCH_STRATEGIC,
                                          .name = hk_str(n->name),
                                          .subresource = "status",
                                          .body = &body});
}

static void node_submit_spec(struct node *n)
{
    struct hk_arena *a = &n->host->mem;
    const struct json *taints = json_at(&n->seen->root, "spec.taints");
    struct json body = json_make_object(), *meta = json_set_object(&body, a, "metadata"), *left;

    /* Taints are replaced as a whole list: require the version that was read. */
    json_set(meta, a, "resourceVersion",
             json_shallow(json_at(&n->seen->root, "metadata.resourceVersion"), a));
    node_object_add_labels(n, json_set_object(meta, a, "labels"));
    node_object_add_annotations(n, json_set_object(meta, a, "annotations"));
    left = json_set_array(json_set_object(&body, a, "spec"), a, "taints");
    for (uint32_t i = 0; json_item(taints, i); i++) {
        if (!node_object_is_unready_taint(json_item(taints, i))) {
            json_push(left, a, *json_item(taints, i));
        }
    }
    node_submit(n, &(struct port_request){.verb = PORT_PATCH,
                                          .patch = PORT_PATCH_MERGE,
                                          .name = hk_str(n->name),
                                          .body = &body});
}

/* ---- watch events of the node ---- */

bool node_hear(struct node *n, struct api_object *o)
{
    node_know(n, o);
    if (n->step != NODE_REST || n->call) {
        n->heard_rv = o->rv;
        return true;
    }
    node_save_uid(n, o);
    return n->registered ? node_object_is_as_said(n, &o->root) : node_object_is_told(n, &o->root);
}

int64_t node_mend_ns(struct node *n)
{
    const int64_t at_ns = HK_MAX(host_mono_ns(n->host), n->mend_ns);

    n->mend_ns = at_ns + MEND_NS;
    return at_ns;
}

void node_on_put(struct node *n, struct api_object *o)
{
    if (!node_hear(n, o)) {
        node_rest(n, NODE_STATUS, 0);
        n->due_ns = node_mend_ns(n);
    }
}

void node_on_del(struct node *n)
{
    if (n->step == NODE_REST && !n->call) {
        node_rest(n, NODE_CREATE, 0);
    }
}

/* ---- setup, teardown and steps ---- */

void node_init(struct node *n, struct host *h, const char *name, const struct node_ops *ops,
               void *ctx)
{
    const int64_t now_ns = host_mono_ns(h);

    *n = (struct node){.host = h,
                       .ops = ops,
                       .ctx = ctx,
                       .name = name,
                       .step = NODE_CREATE,
                       .due_ns = now_ns,
                       .lease_due_ns = now_ns};
    for (size_t i = 0; i < NODE_NCONDITIONS; i++) {
        n->conditions[i].since_ns = host_wall_ns(h);
    }
    n->conditions[NODE_READY].is = true;
    n->unchecked = true;
    n->check_ns = now_ns;
    node_object_update_pressure(n);
    node_object_update_images(n);
}

void node_fini(struct node *n)
{
    if (n->call) {
        port_cancel(n->host->o.port, n->call);
    }
    if (n->lease) {
        port_cancel(n->host->o.port, n->lease);
    }
    api_object_unref(n->seen);
    api_object_unref(n->known);
    hk_free(n->used);
    hk_free(n->uid);
}

static void node_submit_step(struct node *n)
{
    switch (n->step) {
    case NODE_CREATE:
        node_submit_create(n);
        break;
    case NODE_READ:
        node_submit_get(n);
        break;
    case NODE_SPEC:
        node_submit_spec(n);
        break;
    default:
        n->step = NODE_STATUS;
        node_submit_status(n);
        break;
    }
    hk_arena_clear(&n->host->mem);
}

int64_t node_tick(struct node *n, int64_t now_ns)
{
    int64_t next_ns, due_ns = n->due_ns;

    if (!n->call && n->due_ns <= now_ns) {
        if (node_may_report(n, now_ns)) {
            node_submit_step(n);
            due_ns = n->due_ns;
        } else {
            /* The arrival of a list wakes the agent anyway. */
            due_ns = now_ns + (n->ops->is_listed(n->ctx) ? CHECK_AGAIN_NS : CHECK_LONG_NS);
        }
    }
    if (n->in_fleet) {
        return n->call ? INT64_MAX : n->due_ns;
    }
    if (n->registered && !n->lease && n->lease_due_ns <= now_ns) {
        lease_beat(n);
        const bool pressure = node_object_update_pressure(n);
        if ((node_object_update_images(n) || pressure) && n->step == NODE_REST) {
            node_rest(n, NODE_STATUS, 0);
        }
    }
    next_ns = n->call ? INT64_MAX : due_ns;
    return HK_MIN(next_ns, n->lease || !n->registered ? INT64_MAX : n->lease_due_ns);
}
