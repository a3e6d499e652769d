// SPDX-License-Identifier: Apache-2.0
// Deletion. An object is removed at once only if nothing keeps it:
//
//   bound pod, not finished, grace > 0  -> deletionTimestamp in the future; the node agent ends it
//   finalizers, own or by policy        -> deletionTimestamp now; removed with the last finalizer
//   namespace with spec.finalizers      -> deletionTimestamp now, phase Terminating
//   else                                -> removed
//
// A second deletion may shorten the grace period; with none left it removes the object.
#include "codec/timefmt.h"
#include "store/rest_priv.h"

enum { POD_GRACE_S = 30 };

static int check_preconditions(struct rest_call *c, const struct store_obj *o,
                               const struct rest_delete_opts *opts)
{
    if (opts->if_uid.n > 0 && !hk_str_eq(opts->if_uid, o->uid)) {
        return rest_fail_conflict(
            c,
            "the UID in the precondition (%.*s) does not match the UID in record (%.*s). The "
            "object might have been deleted and then recreated",
            HK_FMT(opts->if_uid), HK_FMT(o->uid));
    }
    if (opts->if_rv > 0 && opts->if_rv != o->rv) {
        return rest_fail_conflict(
            c,
            "the ResourceVersion in the precondition (%llu) does not match the ResourceVersion in "
            "record (%llu). The object might have been modified",
            (unsigned long long)opts->if_rv, (unsigned long long)o->rv);
    }
    return 0;
}

static int rest_delete_admit(struct rest_call *c, const struct store_obj *o, const struct json *old,
                             bool dry_run)
{
    struct admission_request *q = &c->adm;

    if (!c->r->admission) {
        return 0;
    }
    q->verb = ADMIT_DELETE;
    q->kind = c->k->kind;
    q->obj = NULL;
    q->old = old;
    q->ns = o->ns;
    q->name = o->name;
    q->dry_run = dry_run;
    q->mem = &c->mem;
    q->lookup = &c->r->lookup;
    q->volcano = c->r->volcano;
    q->now_ns = rest_now(c->r);
    c->r->lookup_call = c;
    const int rc = admission_validate(q, &c->err);
    if (rc < 0) {
        return rest_fail_admission(c, rc);
    }
    return q->errors.len > 0 ? rest_fail_invalid(c) : 0;
}

/* The grace period of the pod. */
static int64_t pod_grace(const struct json *pod, const struct rest_delete_opts *o)
{
    const struct hk_str phase = json_str(json_at(pod, "status.phase"), HK_STR(""));
    const bool bound = json_str(json_at(pod, "spec.nodeName"), HK_STR("")).n > 0;
    const int64_t own = json_int(json_at(pod, "spec.terminationGracePeriodSeconds"), POD_GRACE_S);
    const int64_t grace = o->has_grace ? o->grace_s : own;

    if (!bound || hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed")) {
        return 0;
    }
    return grace < 0 ? 1 : grace;
}

/* The pod is already terminating: a shorter grace period moves its end forward. Returns the grace
 * period in effect. */
static int64_t shorten(struct rest_call *c, struct json *doc, const struct rest_delete_opts *o)
{
    const int64_t had = json_int(json_at(doc, "metadata.deletionGracePeriodSeconds"), 0);
    int64_t end_ns = rest_now(c->r);

    if (!o->has_grace || o->grace_s >= had) {
        return had;
    }
    if (time_parse(rest_meta_str(doc, "deletionTimestamp"), &end_ns, NULL) == 0) {
        end_ns += hk_seconds_ns(HK_MAX(o->grace_s, 0)) - hk_seconds_ns(had);
    }
    rest_meta_delete(c, doc, end_ns, HK_MAX(o->grace_s, 0));
    return HK_MAX(o->grace_s, 0);
}

/* Marks an object that has a grace period. Returns 0 if it has none, or none is left. */
static int64_t mark_grace(struct rest_call *c, struct json *doc, const struct rest_delete_opts *o)
{
    if (c->k != c->r->pods) {
        return 0;
    }
    if (rest_deleting(doc)) {
        return shorten(c, doc, o);
    }
    const int64_t grace = pod_grace(doc, o);
    if (grace > 0) {
        rest_meta_delete(c, doc, rest_now(c->r) + hk_seconds_ns(grace), grace);
    }
    return grace;
}

/* The policy in effect: the requested one, that of an earlier deletion, or the kind's default. */
static enum port_propagation policy_of(const struct rest_call *c, const struct json *doc,
                                       enum port_propagation asked)
{
    if (asked != PORT_PROPAGATE_DEFAULT) {
        return asked;
    }
    if (rest_has_finalizer(doc, REST_ORPHAN_FINALIZER)) {
        return PORT_PROPAGATE_ORPHAN;
    }
    if (rest_has_finalizer(doc, REST_FOREGROUND)) {
        return PORT_PROPAGATE_FOREGROUND;
    }
    return c->k->flags & REST_ORPHAN ? PORT_PROPAGATE_ORPHAN : PORT_PROPAGATE_BACKGROUND;
}

static void push_finalizer(struct rest_call *c, struct json *doc, const char *name)
{
    struct json *meta = rest_edit(doc, &c->mem, "metadata");
    const struct json *old = json_get(meta, "finalizers");
    struct json list = json_clone_as(old, JSON_ARRAY, &c->mem);

    json_push(&list, &c->mem, json_make_str(hk_str(name)));
    json_set(meta, &c->mem, "finalizers", list);
}

/* Records the policy as a finalizer, which the garbage collector removes. */
static void mark_policy(struct rest_call *c, struct json *doc, enum port_propagation asked)
{
    const enum port_propagation policy = policy_of(c, doc, asked);
    const char *want = policy == PORT_PROPAGATE_ORPHAN       ? REST_ORPHAN_FINALIZER
                       : policy == PORT_PROPAGATE_FOREGROUND ? REST_FOREGROUND
                                                             : NULL;

    if (c->k->flags & REST_NO_GC || (want && rest_has_finalizer(doc, want))) {
        return;
    }
    rest_drop_finalizer(doc, &c->mem, REST_ORPHAN_FINALIZER);
    rest_drop_finalizer(doc, &c->mem, REST_FOREGROUND);
    if (want) {
        push_finalizer(c, doc, want);
    }
}

/* A namespace stays until it is empty. */
static bool mark_namespace(struct rest_call *c, struct json *doc)
{
    const struct json *held = json_at(doc, "spec.finalizers");

    if (c->k != c->r->namespaces || !json_is(held, JSON_ARRAY) || held->len == 0) {
        return false;
    }
    if (!rest_deleting(doc)) {
        rest_meta_delete(c, doc, rest_now(c->r), 0);
        json_del(rest_edit(doc, &c->mem, "metadata"), "deletionGracePeriodSeconds");
    }
    json_set_cstr(rest_edit(doc, &c->mem, "status"), &c->mem, "phase", "Terminating");
    return true;
}

static int ask_about_deletion(struct rest_call *c, const struct store_obj *head,
                              const struct json *old, const struct rest_delete_opts *o)
{
    struct webhook_subject s = {
        .verb = ADMIT_DELETE,
        .row = c->k,
        .ns = c->k == c->r->namespaces ? head->name : head->ns,
        .name = head->name,
        .old = old,
        .dry_run = o->dry_run,
        .rv = head->rv,
    };

    if (o->unasked || rest_webhook_mutate(c, &s) < 0) {
        return c->rc;
    }
    return rest_webhook_validate(c, &s);
}

void rest_delete_warn(struct rest_call *c)
{
    const struct api_kind *k = c->k->kind;

    if (c->k->flags & REST_ORPHAN && !strcmp(k->group, "batch") && !strcmp(k->kind, "Job") &&
        c->req->propagation == PORT_PROPAGATE_DEFAULT) {
        rest_warn(c, "child pods are preserved by default when jobs are deleted; set "
                     "propagationPolicy=Background to remove them or set propagationPolicy=Orphan "
                     "to suppress this warning");
    }
}

/* As if the object was deleted: kept means that it would still be there. */
static int answer_dry_run(struct rest_call *c, const struct store_obj *head, const struct json *doc,
                          bool kept)
{
    if (kept || c->deleter || !(c->k->flags & REST_DELETE_STATUS)) {
        return rest_answer_tree(c, c->k->kind, doc);
    }
    rest_succeed_deletion(c, head->name, head->uid);
    return 0;
}

int rest_delete_one(struct rest_call *c, struct hk_str ns, struct hk_str name,
                    const struct rest_delete_opts *o)
{
    struct json old;
    bool staged;

    if (rest_convert_head(c, ns, name) < 0) {
        return c->rc;
    }
    const struct store_obj *head = rest_head(c, c->k, ns, name, &old, &staged);
    if (!head) {
        return rest_fail_missing(c, c->k, name);
    }
    if (check_preconditions(c, head, o) < 0 || rest_delete_admit(c, head, &old, o->dry_run) < 0 ||
        ask_about_deletion(c, head, &old, o) < 0) {
        return c->rc;
    }
    struct json doc = json_clone(&old, &c->mem);
    const int64_t grace = mark_grace(c, &doc, o);
    mark_policy(c, &doc, o->propagation);
    const bool held = mark_namespace(c, &doc) || rest_finalizers(&doc) > 0;
    if (held && !rest_deleting(&doc)) {
        rest_meta_delete(c, &doc, rest_now(c->r), 0);
    }
    if (held && c->k == c->r->crds) {
        rest_condition(c, &doc, "Terminating", "True", "InstanceDeletionInProgress",
                       "CustomResource deletion is in progress");
    }
    if (o->dry_run) {
        return answer_dry_run(c, head, &doc, held || grace > 0);
    }
    if (held || grace > 0) {
        return rest_commit(c, &doc, head, &old, staged);
    }
    c->deletes = true;
    return rest_store(c, STORE_DELETE, c->k, head->ns, head->name, NULL, head->rv);
}

struct rest_delete_opts rest_delete_opts_of(const struct port_request *req)
{
    return (struct rest_delete_opts){
        .if_uid = req->if_uid,
        .if_rv = req->if_rv,
        .propagation = req->propagation,
        .has_grace = req->has_grace,
        .grace_s = req->grace_s,
        .dry_run = req->dry_run,
        .unasked = req->expired,
    };
}

int rest_delete(struct rest_call *c)
{
    const struct rest_delete_opts o = rest_delete_opts_of(c->req);

    rest_delete_warn(c);
    return rest_delete_one(c, c->ns, c->name, &o);
}
