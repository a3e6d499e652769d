// SPDX-License-Identifier: Apache-2.0
// StatefulSets: pods with fixed ordinals, names and claims, created in order and deleted from the
// last ordinal, one at a time unless the policy is Parallel. A large Parallel set creates its pods
// as they fit (pod_window.h). A new template replaces pods from the last down to the partition.
#include "controllers/table.h"
#include "controllers/work_priv.h"

static const struct hk_str none = {"", 0};

struct stateful {
    struct pass *t;
    struct json *root;
    const struct json *spec;
    struct work_pods pods;
    struct work_revisions revisions;
    struct hk_str current;         /* name of the old revision */
    const struct work_pod **slots; /* by ordinal from start on, NULL none */
    int64_t start, replicas, partition, min_ready_s;
    bool parallel, by_hand; /* policy Parallel, strategy OnDelete */
};

static void statefulset_on_pod_change(struct ctl *c, const struct mirror_change *ch)
{
    work_pod_changed(c, ch, API_STATEFUL_SET);
}

static void stateful_group_changed(struct ctl *c, const struct mirror_change *ch)
{
    work_group_changed(c, ch, API_STATEFUL_SET);
}

/* ---- creating ---- */

static struct hk_str claim_name(const struct stateful *s, const struct json *template,
                                int64_t ordinal)
{
    return hk_str(hk_arena_printf(s->t->mem, "%.*s-%.*s-%lld",
                                  HK_FMT(json_str(json_at(template, "metadata.name"), none)),
                                  HK_FMT(s->t->name), (long long)ordinal));
}

static bool retains(const struct stateful *s, const char *when)
{
    const struct json *policy = json_get(s->spec, "persistentVolumeClaimRetentionPolicy");

    return !hk_str_is(json_str(json_get(policy, when), none), "Delete");
}

static struct json make_claim(const struct stateful *s, const struct json *template,
                              struct hk_str name)
{
    struct hk_arena *a = s->t->mem;
    const struct json *selected = json_at(s->spec, "selector.matchLabels");
    struct json claim = json_clone_as(template, JSON_OBJECT, a);
    struct json *meta;

    json_del(&claim, "status");
    json_set_cstr(&claim, a, "apiVersion", "v1");
    json_set_cstr(&claim, a, "kind", "PersistentVolumeClaim");
    meta = json_need(&claim, a, "metadata", JSON_OBJECT);
    json_set_str(meta, a, "name", name);
    json_set_str(meta, a, "namespace", s->t->ns);
    for (uint32_t i = 0; json_is(selected, JSON_OBJECT) && i < selected->len; i++) {
        const struct json_member *m = &selected->members[i];

        work_label(&claim, a, hk_arena_strndup(a, m->key.s, m->key.n), json_str(&m->value, none));
    }
    if (!retains(s, "whenDeleted")) {
        kinds_own(&claim, a, s->root);
    }
    return claim;
}

/* True when all claims of the pod exist. */
static bool ensure_claims(const struct stateful *s, int64_t ordinal)
{
    const struct json *templates = json_get(s->spec, "volumeClaimTemplates");
    const struct mirror *m = ctl_mirror(s->t->c, API_PVC);
    bool all = true;

    for (uint32_t i = 0; json_is(templates, JSON_ARRAY) && i < templates->len; i++) {
        const struct hk_str name = claim_name(s, &templates->items[i], ordinal);

        if (mirror_find(m, s->t->ns, name) == HK_NONE) {
            const struct json claim = make_claim(s, &templates->items[i], name);

            pass_create(s->t, api_kind(API_PVC), &claim);
            all = false;
        }
    }
    return all;
}

/* A volume with the name of a claim template refers to the claim. */
static void put_volumes(const struct stateful *s, struct json *spec, int64_t ordinal)
{
    struct hk_arena *a = s->t->mem;
    const struct json *templates = json_get(s->spec, "volumeClaimTemplates");
    const struct json *old = json_get(spec, "volumes");
    struct json volumes = json_make_array();

    if (!json_is(templates, JSON_ARRAY) || templates->len == 0) {
        return;
    }
    for (uint32_t i = 0; i < templates->len; i++) {
        const struct json *name = json_at(&templates->items[i], "metadata.name");
        struct json volume = json_make_object(), claim = json_make_object();

        json_set_str(&claim, a, "claimName", claim_name(s, &templates->items[i], ordinal));
        json_set_str(&volume, a, "name", json_str(name, none));
        json_set(&volume, a, "persistentVolumeClaim", claim);
        json_push(&volumes, a, volume);
    }
    for (uint32_t i = 0; json_is(old, JSON_ARRAY) && i < old->len; i++) {
        bool replaced = false;

        for (uint32_t k = 0; k < templates->len; k++) {
            replaced = replaced ||
                       hk_str_eq(json_str(json_get(&old->items[i], "name"), none),
                                 json_str(json_at(&templates->items[k], "metadata.name"), none));
        }
        if (!replaced) {
            json_push(&volumes, a, old->items[i]);
        }
    }
    json_set(spec, a, "volumes", volumes);
}

static bool is_of_current(const struct stateful *s, int64_t ordinal)
{
    return !s->by_hand && ordinal < s->start + s->partition;
}

static struct json make_pod(const struct stateful *s, int64_t ordinal)
{
    struct hk_arena *a = s->t->mem;
    const struct json *old =
        is_of_current(s, ordinal) ? work_revision_template(&s->revisions, s->current) : NULL;
    const struct hk_str service = json_str(json_get(s->spec, "serviceName"), none);
    const struct hk_str name =
        hk_str(hk_arena_printf(a, "%.*s-%lld", HK_FMT(s->t->name), (long long)ordinal));
    struct json pod = work_pod(s->t, s->root, old ? old : json_get(s->spec, "template"), name);
    struct json *spec = (struct json *)json_get(&pod, "spec");

    work_label(&pod, a, "statefulset.kubernetes.io/pod-name", name);
    work_label(&pod, a, "apps.kubernetes.io/pod-index",
               hk_str(hk_arena_printf(a, "%lld", (long long)ordinal)));
    work_label(&pod, a, API_LABEL_REVISION_HASH, old ? s->current : s->revisions.update);
    json_set_str(spec, a, "hostname", name);
    json_set_str_or_del(spec, a, "subdomain", service);
    put_volumes(s, spec, ordinal);
    return pod;
}

static void statefulset_create_pod(const struct stateful *s, int64_t ordinal)
{
    struct json pod;

    if (ensure_claims(s, ordinal)) {
        pod = make_pod(s, ordinal);
        (void)work_create_pod(s->t, s->root, &pod);
    }
}

/* ---- scaling ---- */

static bool is_healthy(const struct stateful *s, const struct work_pod *p)
{
    return p && !p->d->terminating && p->d->phase == POD_RUNNING &&
           work_pod_is_available(s->t, p->d, s->min_ready_s);
}

/* How many missing pods to create in this pass. */
static int64_t stateful_room(const struct stateful *s)
{
    int64_t have = 0, room;

    for (int64_t i = 0; i < s->replicas; i++) {
        have += s->slots[i] != NULL;
    }
    room = work_window_room(s->t, s->root, &s->pods, s->replicas, have);
    return HK_MIN(room, TURN_CALLS_MAX);
}

/* Creates pods from the first ordinal on; false when one is not healthy and the order matters. */
static bool statefulset_create_missing(const struct stateful *s)
{
    int64_t room = stateful_room(s);
    bool all = true;

    for (int64_t i = 0; i < s->replicas; i++) {
        const struct work_pod *p = s->slots[i];

        if (!p && room > 0) {
            statefulset_create_pod(s, s->start + i);
            room--;
        } else if (p && pod_has_ended(p->d) && !p->d->terminating) {
            (void)work_delete_pod(s->t, s->root, p); /* its name is needed for the new pod */
        }
        if (!is_healthy(s, p)) {
            all = false;
            if (!s->parallel) {
                return false;
            }
        }
    }
    return all;
}

/* Deletes surplus pods from the last ordinal down; false when some are left. */
static bool shrink(const struct stateful *s)
{
    const struct work_pod *last = NULL;
    bool none_left = true;

    for (uint32_t i = 0; i < s->pods.len; i++) {
        const struct work_pod *p = &s->pods.at[i];

        if (p->d->index >= s->start && p->d->index < s->start + s->replicas) {
            continue;
        }
        none_left = false;
        if (s->parallel && !p->d->terminating) {
            (void)work_delete_pod(s->t, s->root, p);
        }
        last = !last || p->d->index > last->d->index ? p : last;
    }
    if (last && !s->parallel && !last->d->terminating) {
        (void)work_delete_pod(s->t, s->root, last);
    }
    return none_left;
}

/* ---- a new template ---- */

/* Waits for each replaced pod before it deletes the next one. */
static void statefulset_replace_old_pods(const struct stateful *s)
{
    for (int64_t i = s->replicas - 1; !s->by_hand && i >= s->partition; i--) {
        const struct work_pod *p = s->slots[i];

        if (!p) {
            return;
        }
        if (!hk_str_is(s->revisions.update, p->d->revision)) {
            if (!p->d->terminating) {
                (void)work_delete_pod(s->t, s->root, p);
            }
            return;
        }
        if (!is_healthy(s, p)) {
            return;
        }
    }
}

/* ---- unused claims ---- */

/* Deletes the claims of ordinals beyond the last, once no pod is left there. */
static void drop_claims(const struct stateful *s)
{
    const struct json *templates = json_get(s->spec, "volumeClaimTemplates");
    const struct mirror *m = ctl_mirror(s->t->c, API_PVC);
    bool found = !retains(s, "whenScaled") && s->pods.len <= s->replicas;

    for (int64_t i = s->start + s->replicas; found; i++) {
        found = false;
        for (uint32_t k = 0; json_is(templates, JSON_ARRAY) && k < templates->len; k++) {
            const struct hk_str name = claim_name(s, &templates->items[k], i);
            const uint32_t row = mirror_find(m, s->t->ns, name);

            if (row != HK_NONE) {
                pass_delete(s->t, api_kind(API_PVC), s->t->ns, name, mirror_uid(m, row),
                            PORT_PROPAGATE_BACKGROUND);
                found = true;
            }
        }
    }
}

/* ---- status ---- */

static bool statefulset_write_status(struct stateful *s)
{
    struct hk_arena *a = s->t->mem;
    struct json status = work_status(s->t, s->root);
    int64_t there = 0, ready = 0, available = 0, current = 0, updated = 0;

    for (uint32_t i = 0; i < s->pods.len; i++) {
        const struct pod_digest *d = s->pods.at[i].d;

        there++;
        ready += d->serving && !d->terminating;
        available += !d->terminating && work_pod_is_available(s->t, d, s->min_ready_s);
        current += !d->terminating && hk_str_is(s->current, d->revision);
        updated += !d->terminating && hk_str_is(s->revisions.update, d->revision);
    }
    if (updated == s->replicas && ready == s->replicas && there == s->replicas) {
        s->current = s->revisions.update;
        current = updated;
    }
    work_set_observed_generation(s->t, s->root, &status);
    json_set_int(&status, a, "replicas", there);
    json_set_int_or_del(&status, a, "readyReplicas", ready);
    json_set_int(&status, a, "availableReplicas", available);
    json_set_int_or_del(&status, a, "currentReplicas", current);
    json_set_int_or_del(&status, a, "updatedReplicas", updated);
    json_set_str_or_del(&status, a, "currentRevision", s->current);
    json_set_str_or_del(&status, a, "updateRevision", s->revisions.update);
    if (!json_get(&status, "collisionCount")) {
        json_set_int(&status, a, "collisionCount", 0);
    }
    return work_write_status(s->t, API_STATEFUL_SET, s->root, status);
}

/* ---- one pass ---- */

static void read_spec(struct stateful *s)
{
    const struct json *strategy = json_get(s->spec, "updateStrategy");

    s->replicas = json_int(json_get(s->spec, "replicas"), 1);
    s->start = json_int(json_at(s->spec, "ordinals.start"), 0);
    s->min_ready_s = json_int(json_get(s->spec, "minReadySeconds"), 0);
    s->parallel = hk_str_is(json_str(json_get(s->spec, "podManagementPolicy"), none), "Parallel");
    s->by_hand = hk_str_is(json_str(json_get(strategy, "type"), none), "OnDelete");
    s->partition = HK_MAX(json_int(json_at(strategy, "rollingUpdate.partition"), 0), 0);
    s->current = json_str(json_at(s->root, "status.currentRevision"), none);
}

static void read_pods(struct stateful *s)
{
    s->pods = work_pods(s->t, s->root);
    s->slots = hk_arena_zalloc(s->t->mem, (size_t)(s->replicas + 1) * sizeof(*s->slots));
    for (uint32_t i = 0; i < s->pods.len; i++) {
        const int64_t at = s->pods.at[i].d->index - s->start;

        if (at >= 0 && at < s->replicas) {
            s->slots[at] = &s->pods.at[i];
        }
    }
}

static void statefulset_scale_and_update(struct stateful *s)
{
    if (!statefulset_create_missing(s) && !s->parallel) {
        return;
    }
    if (shrink(s) && s->t->ncall == 0) {
        statefulset_replace_old_pods(s);
    }
}

static void statefulset_reconcile(struct ctl *c, struct pass *t)
{
    struct json root;
    struct stateful s = {.t = t, .root = &root};

    if (!work_find(t, API_STATEFUL_SET, &root) || work_is_going(&root)) {
        return;
    }
    s.spec = json_get(&root, "spec");
    read_spec(&s);
    if (!work_revise(t, &root, &s.revisions)) {
        return;
    }
    if (s.current.n == 0) {
        s.current = s.revisions.update;
    }
    read_pods(&s);
    (void)work_report(t, &root);
    statefulset_scale_and_update(&s);
    if ((t->ncall == 0 || t->nerror > 0) && !statefulset_write_status(&s)) {
        drop_claims(&s);
        work_revisions_trim(t, &root, &s.revisions, &s.pods, s.current);
    }
}

static const struct ctl_watch watches[] = {{&mirror_stateful_sets, work_changed},
                                           {&mirror_pods, statefulset_on_pod_change},
                                           {&mirror_podgroups, stateful_group_changed},
                                           {&mirror_controller_revisions, NULL},
                                           {&mirror_claims, NULL},
                                           {0}};

const struct ctl_type ctl_work_statefulset = {.name = "statefulset-controller",
                                              .about =
                                                  "keeps numbered pods with claims of their own",
                                              .watches = watches,
                                              .reconcile = statefulset_reconcile};
