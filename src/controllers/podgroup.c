// SPDX-License-Identifier: Apache-2.0
// The PodGroup controller: pods for one of our schedulers that belong to no PodGroup get one. Its
// name, and the key of the work, is "podgroup-" with the uid of the pods' controller, or of the pod
// if it has none.
//
//   pods want a group:  create the PodGroup, or update that of a ReplicaSet or StatefulSet, whose
//                       template may have changed  ->  write its name on each pod
//   none wants one:     delete the PodGroup of a ReplicaSet or StatefulSet scaled to zero, once
//                       no pod in it is alive
//
// Garbage collection by owner references does the rest.
#include "api/names.h"
#include "controllers/job_priv.h"
#include "controllers/table.h"

#include <strings.h>

/* Passes, about five seconds, after which an owner missing from the mirror counts as gone. */
#define OWNER_PATIENCE 10u

static const struct hk_str none = {"", 0};

/* Owners whose annotations also apply to the PodGroup. */
static const struct owner_kind {
    const char *group, *kind;
    enum api_kind_id id;
    bool scales; /* the PodGroup follows its template and is deleted at 0 replicas */
} owner_kinds[] = {
    {"apps/", "ReplicaSet", API_REPLICA_SET, true},
    {"apps/", "StatefulSet", API_STATEFUL_SET, true},
    {"apps/", "DaemonSet", API_DAEMON_SET, false},
    {"batch/", "Job", API_BATCH_JOB, false},
};

/* One pass. */
struct group_pass {
    struct pass *t;
    struct hk_str uid; /* the PodGroup's name contains it */
    struct mirror *pods, *groups;
    uint32_t group;   /* row or HK_NONE */
    struct json *all; /* the pods that want the PodGroup */
    uint32_t nall;
};

static const struct json *ctl_podgroup_annotations(const struct json *root)
{
    return json_at(root, "metadata.annotations");
}

static const struct owner_kind *owner_kind(const struct json *ref)
{
    for (unsigned k = 0; k < HK_LEN(owner_kinds); k++) {
        if (hk_str_is(json_str(json_get(ref, "kind"), none), owner_kinds[k].kind) &&
            hk_str_starts(json_str(json_get(ref, "apiVersion"), none), owner_kinds[k].group)) {
            return &owner_kinds[k];
        }
    }
    return NULL;
}

/* The owner's row; HK_NONE when it is gone or not yet in the mirror. */
static uint32_t owner_find(const struct group_pass *p, const struct owner_kind *kind,
                           const struct json *ref)
{
    const struct mirror *m = ctl_mirror(p->t->c, kind->id);
    const uint32_t row = mirror_find(m, p->t->ns, json_str(json_get(ref, "name"), none));

    if (row != HK_NONE && hk_str_eq(mirror_uid(m, row), json_str(json_get(ref, "uid"), none))) {
        return row;
    }
    return HK_NONE;
}

static struct json owner_read(const struct group_pass *p, const struct owner_kind *kind,
                              uint32_t row)
{
    return mirror_read(ctl_mirror(p->t->c, kind->id), row, p->t->mem);
}

/* ---- which keys a change concerns ---- */

static bool ctl_podgroup_is_own_pod(const struct ctl *c, const struct json *pod)
{
    return ctl_is_own_scheduler(ctl_conf(c), json_str(json_at(pod, "spec.schedulerName"), none));
}

static void add_key(struct ctl *c, struct hk_str ns, struct hk_str uid, bool only_if_there)
{
    HK_AUTO(hk_buf_fini) struct hk_buf name = {0};

    hk_buf_addf(&name, API_PODGROUP_PREFIX "%.*s", HK_FMT(uid));
    if (!only_if_there ||
        mirror_find(ctl_mirror(c, API_PODGROUP), ns, hk_buf_str(&name)) != HK_NONE) {
        ctl_add(c, ns, hk_buf_str(&name));
    }
}

static void ctl_podgroup_on_pod_change(struct ctl *c, const struct mirror_change *ch)
{
    const struct pod_digest *now = ch->now;
    const struct hk_str ns = mirror_ns(ch->mirror, ch->row);

    if (!now || now->terminating) { /* perhaps the last pod of a set scaled to zero */
        add_key(c, ns, mirror_word(ch->mirror, PODS_BY_CONTROLLER, ch->row), true);
    } else if (now->wants_group && ctl_podgroup_is_own_pod(c, ch->root)) {
        add_key(c, ns, mirror_word(ch->mirror, PODS_BY_WANTED_GROUP, ch->row), false);
    }
}

static void owner_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct hk_str uid = mirror_uid(ch->mirror, ch->row);
    const bool is_awaited =
        mirror_first(ctl_mirror(c, API_POD), PODS_BY_WANTED_GROUP, uid) != HK_NONE;

    if (ch->now) {
        add_key(c, mirror_ns(ch->mirror, ch->row), uid, !is_awaited);
    }
}

static void ctl_podgroup_on_group_change(struct ctl *c, const struct mirror_change *ch)
{
    const struct hk_str name = mirror_name(ch->mirror, ch->row);

    if (hk_str_starts(name, API_PODGROUP_PREFIX) && (!ch->old || !ch->now)) {
        ctl_add(c, mirror_ns(ch->mirror, ch->row), name);
    }
}

/* ---- pods without a group ---- */

/* Collects the pods that want the group. */
static void find_pods(struct group_pass *p)
{
    uint32_t n = 0;

    for (uint32_t r = mirror_first(p->pods, PODS_BY_WANTED_GROUP, p->uid); r != HK_NONE;
         r = mirror_next(p->pods, PODS_BY_WANTED_GROUP, r)) {
        n++;
    }
    p->all = hk_arena_array(p->t->mem, n, sizeof(*p->all));
    for (uint32_t r = mirror_first(p->pods, PODS_BY_WANTED_GROUP, p->uid); r != HK_NONE;
         r = mirror_next(p->pods, PODS_BY_WANTED_GROUP, r)) {
        const struct pod_digest *d = mirror_digest(p->pods, r);
        struct json *pod = &p->all[p->nall];

        if (!hk_str_eq(mirror_ns(p->pods, r), p->t->ns) || d->terminating) {
            continue;
        }
        *pod = mirror_read(p->pods, r, p->t->mem);
        p->nall += ctl_podgroup_is_own_pod(p->t->c, pod);
    }
}

/* The new revision of a StatefulSet; "" when unknown. */
static struct hk_str new_revision(const struct group_pass *p)
{
    const struct json *ref = kinds_controller(&p->all[0]);
    const struct owner_kind *kind = owner_kind(ref);
    struct json root;
    uint32_t row;

    if (!kind || kind->id != API_STATEFUL_SET) {
        return none;
    }
    row = owner_find(p, kind, ref);
    if (row == HK_NONE) {
        return none;
    }
    root = owner_read(p, kind, row);
    return json_str(json_at(&root, "status.updateRevision"), none);
}

/* The pod that defines the PodGroup: of the new revision if there is any, the first by name. */
static const struct json *find_model(const struct group_pass *p)
{
    const struct hk_str revision = new_revision(p);
    const struct json *best = NULL;
    bool best_new = false;

    for (uint32_t i = 0; i < p->nall; i++) {
        const struct json *pod = &p->all[i];
        const struct json *label = kinds_label(pod, "controller-revision-hash");
        const bool is_new = revision.n > 0 && hk_str_eq(json_str(label, none), revision);

        if (!best || (is_new && !best_new) ||
            (is_new == best_new &&
             hk_str_cmp(json_str(json_at(pod, "metadata.name"), none),
                        json_str(json_at(best, "metadata.name"), none)) < 0)) {
            best = pod;
            best_new = is_new;
        }
    }
    return best;
}

/* ---- the new PodGroup ---- */

/* Annotations of the owners; the first owner with a key wins. False when an owner is missing. */
static bool ctl_podgroup_inherit_annotations(const struct group_pass *p, const struct json *pod,
                                             struct json *ret)
{
    const struct json *refs = json_at(pod, "metadata.ownerReferences");
    bool all = true;

    *ret = json_make_object();
    if (ctl_conf(p->t->c)->no_inherit_owner_annotations) {
        return true;
    }
    for (uint32_t i = 0; json_is(refs, JSON_ARRAY) && i < refs->len; i++) {
        const struct owner_kind *kind = owner_kind(&refs->items[i]);
        const uint32_t row = kind ? owner_find(p, kind, &refs->items[i]) : HK_NONE;
        const struct json *notes;
        struct json owner;

        if (row == HK_NONE) {
            all = all && !kind;
            continue;
        }
        owner = owner_read(p, kind, row);
        notes = ctl_podgroup_annotations(&owner);
        for (uint32_t k = 0; json_is(notes, JSON_OBJECT) && k < notes->len; k++) {
            if (!json_get_str(ret, notes->members[k].key)) {
                json_put(ret, p->t->mem, notes->members[k].key, notes->members[k].value);
            }
        }
    }
    return all;
}

static int64_t min_member(const struct json *inherited)
{
    int64_t n;

    if (hk_str_int(json_str(json_get(inherited, API_ANN_GROUP_MIN_MEMBER), none), &n) && n >= 0 &&
        n <= INT32_MAX) {
        return n;
    }
    return 1;
}

/* True when the member existed and was copied. */
static bool ctl_podgroup_copy_member(struct json *to, struct hk_arena *a, const struct json *from,
                                     const char *key)
{
    const struct json *v = json_get(from, key);

    if (v) {
        json_set(to, a, key, *v);
    }
    return v != NULL;
}

static struct json notes_of(const struct json *pod, const struct json *inherited,
                            struct hk_arena *a)
{
    const struct json *own = ctl_podgroup_annotations(pod);
    struct json notes = json_make_object();

    for (uint32_t i = 0; i < inherited->len; i++) {
        if (hk_str_starts(inherited->members[i].key, "volcano.sh/")) {
            json_put(&notes, a, inherited->members[i].key, inherited->members[i].value);
        }
    }
    ctl_podgroup_copy_member(&notes, a, own, API_ANN_PREEMPTABLE);
    ctl_podgroup_copy_member(&notes, a, own, API_ANN_COOLDOWN_TIME);
    ctl_podgroup_copy_member(&notes, a, own, API_ANN_REVOCABLE_ZONE);
    if (!ctl_podgroup_copy_member(&notes, a, own, API_ANN_JDB_MIN_AVAILABLE)) {
        ctl_podgroup_copy_member(&notes, a, own, API_ANN_JDB_MAX_UNAVAILABLE);
    }
    return notes;
}

static struct json labels_of(const struct json *pod, struct hk_arena *a)
{
    const struct json *own = json_at(pod, "metadata.labels");
    struct json labels = json_make_object();

    ctl_podgroup_copy_member(&labels, a, own, API_ANN_PREEMPTABLE);
    ctl_podgroup_copy_member(&labels, a, own, API_ANN_COOLDOWN_TIME);
    return labels;
}

static bool is_soft(struct hk_str mode)
{
    return mode.n == 4 && strncasecmp(mode.s, "soft", 4) == 0;
}

/* Every mode other than "soft" means hard, also an absent one. */
static void put_topology(struct json *spec, struct hk_arena *a, const struct json *pod)
{
    const struct json *mode = kinds_annotation(pod, API_ANN_TOPOLOGY_MODE);
    const struct json *tier = kinds_annotation(pod, API_ANN_TOPOLOGY_TIER);
    struct json topology = json_make_object();
    int64_t n;

    if (!mode && !tier) {
        return;
    }
    json_set_str(&topology, a, "mode",
                 is_soft(json_str(mode, none)) ? HK_STR("soft") : HK_STR("hard"));
    if (hk_str_int(json_str(tier, none), &n)) {
        json_set_int(&topology, a, "highestTierAllowed", n);
    }
    json_set(spec, a, "networkTopology", topology);
}

/* If the pod names no queue, the API sets one. */
static struct json ctl_podgroup_make_spec(const struct json *pod, const struct json *inherited,
                                          struct hk_arena *a)
{
    const struct json *queue = kinds_annotation(pod, API_ANN_QUEUE_NAME);
    const struct hk_str class = json_str(json_at(pod, "spec.priorityClassName"), none);
    const int64_t min = min_member(inherited);
    struct json spec = json_make_object();

    json_set_int(&spec, a, "minMember", min);
    json_set(&spec, a, "minResources", job_pod_resources(pod, min, a));
    if (class.n > 0) {
        json_set_str(&spec, a, "priorityClassName", class);
    }
    if (json_str(queue, none).n > 0) {
        json_set(&spec, a, "queue", *queue);
    }
    put_topology(&spec, a, pod);
    return spec;
}

static struct json meta_of(const struct group_pass *p, const struct json *pod,
                           const struct json *inherited)
{
    struct hk_arena *a = p->t->mem;
    struct json meta = json_make_object();

    json_set_str(&meta, a, "name", p->t->name);
    json_set_str(&meta, a, "namespace", p->t->ns);
    json_set_or_del(&meta, a, "annotations", notes_of(pod, inherited, a));
    json_set_or_del(&meta, a, "labels", labels_of(pod, a));
    if (kinds_controller(pod)) {
        json_set(&meta, a, "ownerReferences", *json_at(pod, "metadata.ownerReferences"));
    }
    return meta;
}

static struct json ctl_podgroup_build_body(const struct group_pass *p, const struct json *pod,
                                           const struct json *inherited)
{
    struct hk_arena *a = p->t->mem;
    struct json body = json_make_object(), status = json_make_object();

    json_set_cstr(&body, a, "apiVersion", "scheduling.volcano.sh/v1beta1");
    json_set_cstr(&body, a, "kind", "PodGroup");
    json_set(&body, a, "metadata", meta_of(p, pod, inherited));
    if (!kinds_controller(pod)) {
        kinds_own(&body, a, pod);
    }
    json_set(&body, a, "spec", ctl_podgroup_make_spec(pod, inherited, a));
    json_set_cstr(&status, a, "phase", "Pending");
    json_set(&body, a, "status", status);
    return body;
}

/* ---- the existing PodGroup ---- */

/* Puts each member of `from`, which may be NULL, into the member `part` of obj. */
static void ctl_podgroup_merge_members(struct json *obj, struct hk_arena *a, const char *part,
                                       const struct json *from)
{
    const struct json *old = json_get(obj, part);
    struct json now = json_is(old, JSON_OBJECT) ? *old : json_make_object();

    for (uint32_t i = 0; from && i < from->len; i++) {
        json_put(&now, a, from->members[i].key, from->members[i].value);
    }
    if (now.len > 0) {
        json_set(obj, a, part, now);
    }
}

/* Updates the PodGroup to match the model; true when it differed. Other values stay: the queue that
 * the API set, annotations of others. */
static bool ctl_podgroup_update_group(const struct group_pass *p, const struct json *model)
{
    struct hk_arena *a = p->t->mem;
    const struct json group = mirror_read(p->groups, p->group, a);
    struct json now = json_clone(&group, a), inherited, want;
    struct json *meta = (struct json *)json_get(&now, "metadata");

    if (!ctl_podgroup_inherit_annotations(p, model, &inherited)) {
        return false;
    }
    want = ctl_podgroup_build_body(p, model, &inherited);
    ctl_podgroup_merge_members(meta, a, "annotations", ctl_podgroup_annotations(&want));
    ctl_podgroup_merge_members(meta, a, "labels", json_at(&want, "metadata.labels"));
    ctl_podgroup_merge_members(&now, a, "spec", json_get(&want, "spec"));
    if (json_equal(&group, &now)) {
        return false;
    }
    pass_update(p->t, api_kind(API_PODGROUP), &now);
    return true;
}

static bool follows_template(const struct group_pass *p, const struct json *pod)
{
    const struct owner_kind *kind = owner_kind(kinds_controller(pod));

    return kind && kind->scales && !ctl_conf(p->t->c)->no_workload_support;
}

/* The uid in the patch protects a newer pod of the same name. */
static void ctl_podgroup_patch_pod(const struct group_pass *p, const struct json *pod)
{
    struct hk_arena *a = p->t->mem;
    struct json body = json_make_object(), meta = json_make_object(), notes = json_make_object();

    json_set_str(&notes, a, API_ANN_GROUP_NAME, p->t->name);
    json_set(&meta, a, "uid", json_shallow(json_at(pod, "metadata.uid"), a));
    json_set(&meta, a, "annotations", notes);
    json_set(&body, a, "metadata", meta);
    pass_patch(p->t, &(struct pass_patch){.kind = api_kind(API_POD),
                                          .ns = p->t->ns,
                                          .name = json_str(json_at(pod, "metadata.name"), none),
                                          .type = PORT_PATCH_STRATEGIC,
                                          .body = &body});
}

/* Reports a refused PodGroup (queue, quota) on the pod, where users look for the reason. */
static void report_refusal(const struct group_pass *p, const struct json *pod)
{
    for (uint32_t i = 0; i < p->t->nerror; i++) {
        const struct pass_error *e = &p->t->errors[i];

        if (e->verb == PORT_CREATE && e->kind == api_kind(API_PODGROUP)) {
            pass_event(p->t, pod, true, "FailedCreatePodGroup", "Error creating: %s", e->text);
        }
    }
}

/* Waits for missing owners: without their annotations the PodGroup may be too small. */
static void ctl_podgroup_create_group(const struct group_pass *p, const struct json *model)
{
    struct json inherited, body;

    if (!ctl_podgroup_inherit_annotations(p, model, &inherited) &&
        p->t->failures < OWNER_PATIENCE) {
        pass_fail(p->t, HK_ENOTFOUND, "owner of pod '%.*s' not found",
                  HK_FMT(json_str(json_at(model, "metadata.name"), none)));
        return;
    }
    report_refusal(p, model);
    body = ctl_podgroup_build_body(p, model, &inherited);
    pass_create(p->t, api_kind(API_PODGROUP), &body);
}

/* One step towards all pods having their PodGroup. */
static void ctl_podgroup_create_or_fill(const struct group_pass *p)
{
    const struct json *model = find_model(p);

    if (p->group == HK_NONE) {
        ctl_podgroup_create_group(p, model);
        return;
    }
    if (((const struct podgroup_digest *)mirror_digest(p->groups, p->group))->terminating) {
        return; /* its deletion queues this key again */
    }
    if (follows_template(p, model) && ctl_podgroup_update_group(p, model)) {
        return;
    }
    for (uint32_t i = 0; i < p->nall; i++) {
        ctl_podgroup_patch_pod(p, &p->all[i]);
    }
}

static bool has_live_pods(const struct group_pass *p)
{
    for (uint32_t r = mirror_first(p->pods, PODS_BY_CONTROLLER, p->uid); r != HK_NONE;
         r = mirror_next(p->pods, PODS_BY_CONTROLLER, r)) {
        const struct pod_digest *d = mirror_digest(p->pods, r);

        if (!d->terminating && d->phase != POD_SUCCEEDED && d->phase != POD_FAILED) {
            return true;
        }
    }
    return false;
}

/* While a pod is alive, the set may have been scaled up again without the mirror showing it yet. */
static bool is_scaled_down(const struct group_pass *p, const struct json *group)
{
    const struct json *ref = kinds_controller(group);
    const struct owner_kind *kind = owner_kind(ref);
    uint32_t row;
    struct json owner;

    if (!kind || !kind->scales || !hk_str_eq(json_str(json_get(ref, "uid"), none), p->uid)) {
        return false;
    }
    row = owner_find(p, kind, ref);
    if (row == HK_NONE) {
        return false;
    }
    owner = owner_read(p, kind, row);
    return json_int(json_at(&owner, "spec.replicas"), 1) == 0 && !has_live_pods(p);
}

static void ctl_podgroup_delete_if_empty(const struct group_pass *p)
{
    const struct podgroup_digest *d = mirror_digest(p->groups, p->group);
    const struct json group = mirror_read(p->groups, p->group, p->t->mem);

    if (!d->terminating && !ctl_conf(p->t->c)->no_workload_support && is_scaled_down(p, &group)) {
        pass_delete(p->t, api_kind(API_PODGROUP), p->t->ns, p->t->name,
                    mirror_uid(p->groups, p->group), PORT_PROPAGATE_DEFAULT);
    }
}

static void group_reconcile(struct ctl *c, struct pass *t)
{
    const size_t skip = strlen(API_PODGROUP_PREFIX);
    struct group_pass p = {.t = t,
                           .uid = {t->name.s + skip, t->name.n - skip},
                           .pods = ctl_mirror(c, API_POD),
                           .groups = ctl_mirror(c, API_PODGROUP)};

    p.group = mirror_find(p.groups, t->ns, t->name);
    find_pods(&p);
    if (p.nall > 0) {
        ctl_podgroup_create_or_fill(&p);
    } else if (p.group != HK_NONE) {
        ctl_podgroup_delete_if_empty(&p);
    }
}

static const struct ctl_watch watches[] = {
    {&mirror_pods, ctl_podgroup_on_pod_change},
    {&mirror_podgroups, ctl_podgroup_on_group_change},
    {&mirror_replica_sets, owner_changed},
    {&mirror_stateful_sets, owner_changed},
    {&mirror_daemon_sets, owner_changed},
    {&mirror_batch_jobs, owner_changed},
    {0},
};

const struct ctl_type ctl_podgroup = {
    .name = "pg-controller",
    .about = "puts pods into PodGroups that belong to none",
    .watches = watches,
    .reconcile = group_reconcile,
};
