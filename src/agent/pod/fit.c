// SPDX-License-Identifier: Apache-2.0
// Decides whether the node accepts a pod that was bound to it. A client that sets nodeName bypasses
// the scheduler, and two schedulers may decide at once. So the node keeps its own books, as a
// kubelet does: a pod that does not fit fails with OutOfcpu, OutOfmemory, OutOfpods and so on; a
// pod whose selector or tolerations do not match the node fails with NodeAffinity or
// TaintToleration.
//
//   NOT_JUDGED --fits--> BOOKED --its processes have ended--> RELEASED
//       |  '--fits once ending pods are gone--> WAITING --they are gone--> judged again
//       '-----does not fit--> REFUSED
//
// Pods that an earlier agent started are booked first, whatever they request. The other pods
// present at the start are judged once all are known, oldest first. A pod counts until its last
// process ends: the API may drop a pod earlier, and a pod that takes its place waits instead of
// failing.
//
// For a fleet of simulated nodes only the resources are judged.
#include "agent/pod/fit.h"

#include "agent/node/nodes.h"
#include "api/names.h"
#include "api/pod.h"
#include "base/log.h"
#include "codec/quantity.h"

#include <stdlib.h>

static const struct hk_str none = {"", 0};

/* ---- amounts ---- */

static int64_t fit_amount(struct hk_str resource, const struct json *v)
{
    struct quantity q = quantity_of(json_int(v, 0), QUANTITY_DECIMAL_SI);

    if ((json_is(v, JSON_STRING) && quantity_parse(json_str(v, none), &q, NULL) < 0) ||
        q.nano < 0) {
        return 0;
    }
    return hk_str_is(resource, API_RES_CPU) ? quantity_milli(q) : quantity_value(q);
}

void pod_fit_open(struct pods *ps)
{
    const struct json *has = &ps->host->allocatable;
    struct pods_room row;

    for (uint32_t i = 0; json_is(has, JSON_OBJECT) && i < has->len; i++) {
        row = (struct pods_room){.resource = has->members[i].key,
                                 .room = fit_amount(has->members[i].key, &has->members[i].value)};
        hk_vec_push(&ps->books.rows, row);
    }
}

/* Adds the requests of the list; skips resources that the node does not have. */
static void fit_add(const struct pods *ps, int64_t *sum, const struct json *list)
{
    for (uint32_t k = 0; k < ps->books.rows.len; k++) {
        const struct hk_str resource = ps->books.rows.at[k].resource;
        const int64_t v = fit_amount(resource, json_get_str(list, resource));

        sum[k] = v > INT64_MAX - sum[k] ? INT64_MAX : sum[k] + v;
    }
}

static void fit_raise(const struct pods *ps, int64_t *to, const int64_t *v)
{
    for (uint32_t k = 0; k < ps->books.rows.len; k++) {
        to[k] = HK_MAX(to[k], v[k]);
    }
}

/* The highest need of the pod at one time: its containers together with the sidecars, or an init
 * container with the sidecars before it; spec.resources replaces both where it is set; plus the
 * overhead, plus one pod. */
static void fit_needs(const struct pod *p, int64_t *ret)
{
    const struct pods *ps = p->set;
    const uint32_t n = ps->books.rows.len;
    int64_t *sidecars = hk_arena_array(&p->host->mem, n, sizeof(*sidecars));
    int64_t *peak = hk_arena_array(&p->host->mem, n, sizeof(*peak));
    int64_t *one = hk_arena_array(&p->host->mem, n, sizeof(*one));
    const struct json *level = pod_spec(p, "resources.requests");

    memset(sidecars, 0, n * sizeof(*sidecars));
    memset(peak, 0, n * sizeof(*peak));
    for (uint32_t i = 0; i < p->ncontainer; i++) {
        const struct container *c = &p->containers[i];
        const struct json *requests = json_at(c->spec, "resources.requests");

        if (!c->init) {
            fit_add(ps, ret, requests);
            continue;
        }
        memcpy(one, sidecars, n * sizeof(*one));
        fit_add(ps, one, requests);
        fit_raise(ps, peak, one);
        if (c->sidecar) {
            fit_add(ps, sidecars, requests);
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        ret[k] = sidecars[k] > INT64_MAX - ret[k] ? INT64_MAX : ret[k] + sidecars[k];
    }
    fit_raise(ps, ret, peak);
    for (uint32_t k = 0; k < n; k++) {
        const struct hk_str resource = ps->books.rows.at[k].resource;

        if (json_get_str(level, resource)) {
            ret[k] = fit_amount(resource, json_get_str(level, resource));
        }
    }
    fit_add(ps, ret, pod_spec(p, "overhead"));
    for (uint32_t k = 0; k < n; k++) {
        if (hk_str_is(ps->books.rows.at[k].resource, API_RES_PODS)) {
            ret[k] = 1;
        }
    }
}

/* ---- books ---- */

static struct node *fit_node(const struct pod *p)
{
    return nodes_for_pod(p->set->nodes, json_str(pod_spec(p, "nodeName"), none));
}

static int64_t *fit_used(const struct pods *ps, struct node *n)
{
    if (!n->used) {
        n->used = hk_zalloc_array(ps->books.rows.len + 1, sizeof(*n->used));
    }
    return n->used;
}

static int64_t *fit_ask(struct pod *p)
{
    if (!p->needs) {
        p->needs = hk_zalloc_array(p->set->books.rows.len + 1, sizeof(*p->needs));
        fit_needs(p, p->needs);
    }
    return p->needs;
}

void pod_fit_book(struct pod *p)
{
    struct node *n = fit_node(p);
    const int64_t *needs = fit_ask(p);
    int64_t *used;

    if (!n || p->fit == POD_FIT_BOOKED) {
        return;
    }
    used = fit_used(p->set, n);
    for (uint32_t k = 0; k < p->set->books.rows.len; k++) {
        used[k] += HK_MIN(needs[k], INT64_MAX - used[k]);
    }
    p->fit = POD_FIT_BOOKED;
}

void pod_fit_release(struct pod *p)
{
    struct pods *ps = p->set;
    struct node *n = p->fit == POD_FIT_BOOKED ? fit_node(p) : NULL;
    int64_t *used;

    if (p->fit == POD_FIT_WAITING) {
        ps->books.nwaiting--;
    }
    p->fit = POD_FIT_RELEASED;
    if (!n) {
        return;
    }
    used = fit_used(ps, n);
    for (uint32_t k = 0; k < ps->books.rows.len; k++) {
        used[k] -= p->needs[k];
    }
    for (uint32_t i = 0; ps->books.nwaiting > 0 && i < ps->active.len; i++) {
        if (ps->active.at[i]->fit == POD_FIT_WAITING && fit_node(ps->active.at[i]) == n) {
            pod_touch(ps->active.at[i]);
        }
    }
}

/* ---- judging ---- */

static void fit_refuse(struct pod *p, char *reason, char *message)
{
    p->fit = POD_FIT_REFUSED;
    p->fit_reason = reason;
    p->fit_message = message;
    p->reason = reason;
    p->message = message;
    pod_note(p, true, reason, message);
}

static char *fit_printf(const struct pod *p, const char *fmt, struct hk_str a, int64_t b, int64_t c,
                        int64_t d)
{
    return hk_strdup(
        hk_arena_printf(&p->host->mem, fmt, HK_FMT(a), (long long)b, (long long)c, (long long)d));
}

/* The amount of a resource that ending pods still hold on the node. */
static int64_t fit_ending(const struct pods *ps, const struct node *n, uint32_t k)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < ps->active.len; i++) {
        const struct pod *p = ps->active.at[i];

        if (p->fit == POD_FIT_BOOKED && (p->gone || p->stage != POD_LIVE) && fit_node(p) == n) {
            sum += p->needs[k];
        }
    }
    return sum;
}

/* Returns false if the pod waits or was refused. */
static bool fit_room(struct pod *p, struct node *n)
{
    const struct pods *ps = p->set;
    const int64_t *needs = fit_ask(p), *used = fit_used(p->set, n);
    bool waits = false;

    for (uint32_t k = 0; k < ps->books.rows.len; k++) {
        const struct pods_room *row = &ps->books.rows.at[k];

        if (needs[k] == 0 || needs[k] <= row->room - used[k]) {
            continue;
        }
        if (needs[k] > row->room - (used[k] - fit_ending(ps, n, k))) {
            fit_refuse(
                p, hk_strdup(hk_arena_printf(&p->host->mem, "OutOf%.*s", HK_FMT(row->resource))),
                fit_printf(p,
                           "Pod was rejected: Node didn't have enough resource: %.*s, "
                           "requested: %lld, used: %lld, capacity: %lld",
                           row->resource, needs[k], used[k], row->room));
            return false;
        }
        waits = true;
    }
    return !waits;
}

static bool fit_selects(const struct api_pod *pod, const struct api_node *node)
{
    for (uint32_t i = 0; i < pod->node_selector.len; i++) {
        const struct hk_str *v = api_map_get(&node->meta.labels, pod->node_selector.at[i].key);

        if (!v || !hk_str_eq(*v, pod->node_selector.at[i].value)) {
            return false;
        }
    }
    return api_node_selector_match(&pod->node_affinity.required, &node->meta.labels,
                                   node->meta.name);
}

static bool fit_tolerates(const struct api_pod *pod, const struct api_node *node)
{
    for (uint32_t i = 0; i < node->taints.len; i++) {
        if (node->taints.at[i].effect == API_EFFECT_NO_EXECUTE &&
            !api_pod_tolerates(pod, &node->taints.at[i])) {
            return false;
        }
    }
    return true;
}

/* Judges by the Node object on the server; accepts the pod while that is not known. */
static bool fit_suits(struct pod *p, const struct node *n)
{
    struct api_node node;
    struct api_pod pod;

    if (!n->known || api_node_decode(&n->known->root, &p->host->mem, &node, NULL) < 0 ||
        api_pod_decode(&p->obj->root, &p->host->mem, &pod, NULL) < 0) {
        return true;
    }
    if (!fit_selects(&pod, &node)) {
        fit_refuse(
            p, hk_strdup("NodeAffinity"),
            hk_strdup("Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match "
                      "Pod's node affinity/selector"));
        return false;
    }
    if (!fit_tolerates(&pod, &node)) {
        fit_refuse(p, hk_strdup("TaintToleration"),
                   hk_strdup("Pod was rejected: Predicate TaintToleration failed: node(s) had "
                             "taints that the pod didn't tolerate"));
        return false;
    }
    return true;
}

bool pod_fit_judge(struct pod *p)
{
    struct pods *ps = p->set;
    struct node *n = fit_node(p);
    const bool waited = p->fit == POD_FIT_WAITING;

    if (p->fit == POD_FIT_BOOKED || !n) {
        return true;
    }
    if (p->fit == POD_FIT_REFUSED || !ps->books.open) {
        return false;
    }
    ps->books.nwaiting -= waited;
    if (fit_room(p, n) && fit_suits(p, n)) {
        pod_fit_book(p);
        return true;
    }
    if (p->fit != POD_FIT_REFUSED) {
        p->fit = POD_FIT_WAITING;
        ps->books.nwaiting++;
    }
    return false;
}

/* ---- when the agent starts ---- */

static struct hk_str fit_created(const struct pod *p)
{
    return json_str(json_at(&p->obj->root, "metadata.creationTimestamp"), none);
}

static int fit_older_first(const void *a, const void *b)
{
    const struct pod *x = *(struct pod *const *)a, *y = *(struct pod *const *)b;
    int order = hk_str_cmp(fit_created(x), fit_created(y));

    order = order ? order : hk_str_cmp(x->ns, y->ns);
    return order ? order : hk_str_cmp(x->name, y->name);
}

void pod_fit_begin(struct pods *ps)
{
    HK_VEC(struct pod *) pods = {0};

    ps->books.open = true;
    for (uint32_t i = 0; i < ps->active.len; i++) {
        if (ps->active.at[i]->fit == POD_FIT_NOT_JUDGED && ps->active.at[i]->stage == POD_LIVE) {
            hk_vec_push(&pods, ps->active.at[i]);
        }
    }
    if (pods.len > 0) {
        qsort(pods.at, pods.len, sizeof(*pods.at), fit_older_first);
    }
    for (uint32_t i = 0; i < pods.len; i++) {
        pod_fit_judge(pods.at[i]);
        pod_touch(pods.at[i]);
        hk_arena_clear(&ps->host->mem);
    }
    hk_vec_fini(&pods);
}
