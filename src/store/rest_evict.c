// SPDX-License-Identifier: Apache-2.0
// Evictions: deletions that the pod's PodDisruptionBudget must allow. The update of the budget, the
// mark on the pod and the deletion are staged together, so no other write comes between check and
// deletion.
#include "api/meta.h"
#include "store/rest_priv.h"

/* The budgets that select a pod. */
struct budgets {
    struct rest_call *c;
    const struct api_map *labels;
    const struct store_obj *found; /* the first */
    uint32_t n;
};

static bool on_budget(void *ctx, const struct store_obj *o)
{
    struct budgets *b = ctx;
    struct api_object *obj = rest_object(b->c->r, b->c->r->pdbs, o, true);
    struct api_selector s = {0};

    if (obj &&
        api_selector_decode(json_at(&obj->root, "spec.selector"), &b->c->mem, &s, NULL) == 0 &&
        api_selector_match(&s, b->labels)) {
        b->found = b->n++ == 0 ? o : b->found;
    }
    api_object_unref(obj);
    return true;
}

static bool is_ready(const struct json *pod)
{
    const struct json *list = json_at(pod, "status.conditions");

    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        if (hk_str_is(json_str(json_get(&list->items[i], "type"), HK_STR("")), "Ready")) {
            return hk_str_is(json_str(json_get(&list->items[i], "status"), HK_STR("")), "True");
        }
    }
    return false;
}

/* A pod that is pending, finished or being deleted needs no budget. */
static bool needs_budget(const struct json *pod)
{
    const struct hk_str phase = json_str(json_at(pod, "status.phase"), HK_STR("Pending"));

    return !rest_deleting(pod) && !hk_str_is(phase, "Pending") && !hk_str_is(phase, "Succeeded") &&
           !hk_str_is(phase, "Failed");
}

static bool unready_is_free(const struct json *pdb)
{
    const int64_t current = json_int(json_at(pdb, "status.currentHealthy"), 0);
    const int64_t desired = json_int(json_at(pdb, "status.desiredHealthy"), 0);
    const struct hk_str policy =
        json_str(json_at(pdb, "spec.unhealthyPodEvictionPolicy"), HK_STR(""));

    return hk_str_is(policy, "AlwaysAllow") || (desired > 0 && current >= desired);
}

static int fail_budget(struct rest_call *c, int retry_s, const char *why)
{
    rest_cause(c, "DisruptionBudget", NULL, why);
    c->status.retry_after_s = retry_s;
    return rest_fail(c, 429, HK_EBUSY, "TooManyRequests",
                     "Cannot evict pod as it would violate the pod's disruption budget.");
}

/* Takes one allowed disruption from the budget and records this pod in it. */
static int rest_evict_use_disruption(struct rest_call *c, const struct store_obj *head,
                                     const struct json *old, int64_t allowed)
{
    struct hk_arena *a = &c->mem;
    struct json doc = json_clone(old, a);
    struct json *status = rest_edit(&doc, a, "status");

    json_set_int(status, a, "disruptionsAllowed", allowed - 1);
    const char *name = hk_arena_strndup(a, c->name.s, c->name.n);
    json_set_time(rest_edit(status, a, "disruptedPods"), a, name, rest_now(c->r));
    return rest_store(c, STORE_UPDATE, c->r->pdbs, head->ns, head->name, &doc, head->rv);
}

static int ask_budget(struct rest_call *c, const struct json *pod, const struct store_obj *pdb)
{
    struct json doc;
    bool staged;
    const struct store_obj *head = rest_head(c, c->r->pdbs, pdb->ns, pdb->name, &doc, &staged);

    if (!head || (!is_ready(pod) && unready_is_free(&doc))) {
        return 0;
    }
    const int64_t allowed = json_int(json_at(&doc, "status.disruptionsAllowed"), 0);
    if (json_int(json_at(&doc, "status.observedGeneration"), 0) <
        json_int(json_at(&doc, "metadata.generation"), 0)) {
        return fail_budget(c, 10,
                           hk_arena_printf(&c->mem,
                                           "The disruption budget %.*s is still being processed by "
                                           "the server.",
                                           HK_FMT(pdb->name)));
    }
    if (allowed <= 0) {
        return fail_budget(
            c, 0,
            hk_arena_printf(&c->mem,
                            "The disruption budget %.*s needs %lld healthy pods and has %lld "
                            "currently",
                            HK_FMT(pdb->name),
                            (long long)json_int(json_at(&doc, "status.desiredHealthy"), 0),
                            (long long)json_int(json_at(&doc, "status.currentHealthy"), 0)));
    }
    return c->req->dry_run ? 0 : rest_evict_use_disruption(c, head, &doc, allowed);
}

static int check_budget(struct rest_call *c, const struct json *pod)
{
    struct api_meta meta;
    struct budgets b = {.c = c, .labels = &meta.labels};

    if (!needs_budget(pod) || api_meta_decode(pod, &c->mem, &meta, NULL) < 0) {
        return 0;
    }
    store_scan(c->r->store, c->r->pdbs->res, c->ns, HK_STR(""), HK_STR(""), on_budget, &b);
    if (b.n > 1) {
        return rest_fail(c, 500, HK_EIO, "InternalError",
                         "This pod has more than one PodDisruptionBudget, which the eviction "
                         "subresource does not support.");
    }
    return b.n == 0 ? 0 : ask_budget(c, pod, b.found);
}

static int mark_target(struct rest_call *c, const struct store_obj *head, const struct json *old)
{
    struct json doc = json_clone(old, &c->mem);

    rest_condition(c, &doc, "DisruptionTarget", "True", "EvictionByEvictionAPI",
                   "Eviction API: evicting");
    return rest_store(c, STORE_UPDATE, c->k, head->ns, head->name, &doc, head->rv);
}

static const struct api_kind eviction_kind = {
    .id = API_NKINDS,
    .group = "policy",
    .version = "v1",
    .kind = "Eviction",
    .plural = "evictions",
    .singular = "eviction",
    .namespaced = true,
};

static struct rest_delete_opts opts_of(const struct rest_call *c, const struct json *body)
{
    const struct json *o = json_get(body, "deleteOptions");
    const struct json *grace = json_get(o, "gracePeriodSeconds");

    return (struct rest_delete_opts){
        .if_uid = json_str(json_at(o, "preconditions.uid"), HK_STR("")),
        .has_grace = json_is(grace, JSON_INT),
        .grace_s = json_int(grace, 0),
        .dry_run = c->req->dry_run,
        .unasked = true, /* webhooks have seen the eviction */
    };
}

int rest_evict(struct rest_call *c)
{
    struct json body = json_clone(c->req->body, &c->mem);
    struct json pod;
    bool staged;
    const struct store_obj *head = rest_head(c, c->k, c->ns, c->name, &pod, &staged);

    if (!head) {
        return rest_fail_missing(c, c->k, c->name);
    }
    if (rest_decode_body(c, &eviction_kind, &body) < 0 ||
        rest_check_body_name(c, &eviction_kind, &body) < 0 ||
        rest_ask_sub(c, &eviction_kind, &body, NULL, 0) < 0) {
        return c->rc;
    }
    const struct rest_delete_opts o = opts_of(c, &body);
    if (check_budget(c, &pod) < 0 ||
        (!o.dry_run && needs_budget(&pod) && mark_target(c, head, &pod) < 0) ||
        rest_delete_one(c, c->ns, c->name, &o) < 0) {
        return c->rc;
    }
    rest_succeed(c, 201);
    return 0;
}
