// SPDX-License-Identifier: Apache-2.0
// Deployments: one ReplicaSet per template, and the rollout from the old ones to the new. A pass
// does the first of these steps that has something to do; the others follow in later passes:
//
//   the new ReplicaSet exists and has the revision -> sizes follow spec.replicas -> old ReplicaSets
//   shrink as the new one grows -> write the status -> delete ReplicaSets beyond the history limit
//
// Only the ReplicaSets store the sizes, so any process can continue a rollout.
#include "controllers/table.h"
#include "controllers/work_deployment_priv.h"

#include <math.h>
#include <stdlib.h>

static const struct hk_str none = {"", 0};

/* ---- which keys a change concerns ---- */

static void set_changed(struct ctl *c, const struct mirror_change *ch)
{
    work_part_changed(c, ch, API_DEPLOYMENT);
}

/* Recreate waits until the last old pod is gone, which no ReplicaSet status shows. */
static void deployment_on_pod_change(struct ctl *c, const struct mirror_change *ch)
{
    const struct pod_digest *d = ch->old;
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct mirror *sets = ctl_mirror(c, API_REPLICA_SET);
    struct json set;
    uint32_t row;

    if (ch->now || d->workload != API_REPLICA_SET) {
        return;
    }
    row = mirror_find(sets, mirror_ns(ch->mirror, ch->row), hk_str(d->workload_name));
    if (row != HK_NONE) {
        set = mirror_read(sets, row, &a);
        ctl_add(c, mirror_ns(sets, row), json_str(json_get(kinds_controller(&set), "name"), none));
    }
}

/* ---- reading ---- */

static int64_t annotated(const struct json *root, const char *key, int64_t fallback)
{
    int64_t n;

    return hk_str_int(json_str(kinds_annotation(root, key), none), &n) ? n : fallback;
}

static void read_set(struct rollout *r, uint32_t row, struct set *ret)
{
    struct mirror *m = ctl_mirror(r->t->c, API_REPLICA_SET);
    const struct json *status;

    *ret = (struct set){.root = mirror_read(m, row, r->t->mem),
                        .name = mirror_name(m, row),
                        .uid = mirror_uid(m, row)};
    status = json_get(&ret->root, "status");
    ret->replicas = json_int(json_at(&ret->root, "spec.replicas"), 1);
    ret->want = ret->replicas;
    ret->created_ns = work_time_of(json_at(&ret->root, "metadata.creationTimestamp"));
    ret->revision = annotated(&ret->root, ANN_REVISION, 0);
    ret->there = json_int(json_get(status, "replicas"), 0);
    ret->ready = json_int(json_get(status, "readyReplicas"), 0);
    ret->available = json_int(json_get(status, "availableReplicas"), 0);
}

static int by_age(const void *pa, const void *pb)
{
    const struct set *a = pa, *b = pb;

    if (a->created_ns != b->created_ns) {
        return a->created_ns < b->created_ns ? -1 : 1;
    }
    return a->revision != b->revision ? (a->revision < b->revision ? -1 : 1)
                                      : hk_str_cmp(a->name, b->name);
}

static bool same_template(struct pass *t, const struct json *a, const struct json *b)
{
    struct json bare = json_clone_as(a, JSON_OBJECT, t->mem);
    struct json *labels = (struct json *)json_at(&bare, "metadata.labels");

    if (labels) {
        json_del(labels, API_LABEL_TEMPLATE_HASH);
    }
    return work_same(t, API_DEPLOYMENT, "spec.template", &bare, b);
}

static void find_new(struct rollout *r)
{
    for (uint32_t i = 0; i < r->nset && !r->fresh; i++) {
        if (same_template(r->t, json_at(&r->sets[i].root, "spec.template"), r->template)) {
            r->fresh = &r->sets[i];
        }
    }
}

static void read_sets(struct rollout *r)
{
    struct mirror *m = ctl_mirror(r->t->c, API_REPLICA_SET);
    const struct hk_str uid = work_uid(r->root);
    uint32_t n = 0;

    for (uint32_t row = mirror_first(m, OBJECTS_BY_CONTROLLER, uid); row != HK_NONE;
         row = mirror_next(m, OBJECTS_BY_CONTROLLER, row)) {
        n++;
    }
    r->sets = hk_arena_array(r->t->mem, n, sizeof(*r->sets));
    for (uint32_t row = mirror_first(m, OBJECTS_BY_CONTROLLER, uid); row != HK_NONE;
         row = mirror_next(m, OBJECTS_BY_CONTROLLER, row)) {
        read_set(r, row, &r->sets[r->nset++]);
    }
    qsort(r->sets, r->nset, sizeof(*r->sets), by_age);
    find_new(r);
}

/* If both were zero, no step would be possible: then one pod may be unavailable. */
static void read_strategy(struct rollout *r)
{
    const struct json *strategy = json_at(r->root, "spec.strategy");
    const struct json *rolling = json_get(strategy, "rollingUpdate");

    r->recreate = hk_str_is(json_str(json_get(strategy, "type"), none), "Recreate");
    if (r->recreate) {
        r->max_unavailable = r->replicas;
        return;
    }
    r->max_surge =
        work_share(json_get(rolling, "maxSurge"), r->replicas, true, (r->replicas * 25 + 99) / 100);
    r->max_unavailable =
        work_share(json_get(rolling, "maxUnavailable"), r->replicas, false, r->replicas * 25 / 100);
    if (r->max_surge == 0 && r->max_unavailable == 0) {
        r->max_unavailable = 1;
    }
    r->max_unavailable = HK_MIN(r->max_unavailable, r->replicas);
}

static bool is_old(const struct rollout *r, const struct set *s)
{
    return s != r->fresh;
}

static int64_t sum_replicas(const struct rollout *r)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < r->nset; i++) {
        n += r->sets[i].replicas;
    }
    return n;
}

/* ---- sizes ---- */

static bool has_size_notes(const struct rollout *r, const struct set *s)
{
    return annotated(&s->root, ANN_DESIRED, -1) == r->replicas &&
           annotated(&s->root, ANN_MAX, -1) == r->replicas + r->max_surge;
}

static void put_size_notes(const struct rollout *r, struct json *body)
{
    struct hk_arena *a = r->t->mem;
    const long long desired = r->replicas, most = r->replicas + r->max_surge;

    work_annotate(body, a, ANN_DESIRED, hk_str(hk_arena_printf(a, "%lld", desired)));
    work_annotate(body, a, ANN_MAX, hk_str(hk_arena_printf(a, "%lld", most)));
}

static void report_scaled(const struct rollout *r, struct hk_str name, int64_t from, int64_t to)
{
    if (from != to) {
        pass_event(r->t, r->root, false, "ScalingReplicaSet",
                   "Scaled %s replica set %.*s from %lld to %lld", to > from ? "up" : "down",
                   HK_FMT(name), (long long)from, (long long)to);
    }
}

static void resize(const struct rollout *r, const struct set *s)
{
    struct hk_arena *a = r->t->mem;
    struct json patch = json_make_object(), spec = json_make_object();

    json_set_object(&patch, a, "metadata");
    put_size_notes(r, &patch);
    json_set_int(&spec, a, "replicas", s->want);
    json_set(&patch, a, "spec", spec);
    if (pass_patch(r->t, &(struct pass_patch){.kind = api_kind(API_REPLICA_SET),
                                              .ns = r->t->ns,
                                              .name = s->name,
                                              .type = PORT_PATCH_MERGE,
                                              .body = &patch})) {
        report_scaled(r, s->name, s->replicas, s->want);
    }
}

/* True when any size had to change. */
static bool apply_sizes(const struct rollout *r)
{
    for (uint32_t i = 0; i < r->nset; i++) {
        const struct set *s = &r->sets[i];

        if (s->want != s->replicas || (s->replicas > 0 && !has_size_notes(r, s))) {
            resize(r, s);
        }
    }
    return r->t->ncall > 0;
}

/* ---- spec.replicas has changed ---- */

static bool is_scaled(const struct rollout *r)
{
    for (uint32_t i = 0; i < r->nset; i++) {
        if (r->sets[i].replicas > 0 &&
            annotated(&r->sets[i].root, ANN_DESIRED, r->replicas) != r->replicas) {
            return true;
        }
    }
    return false;
}

/* The only set with pods, else the newest set; NULL when several have pods. */
static struct set *active_or_latest(const struct rollout *r)
{
    struct set *active = NULL;

    for (uint32_t i = 0; i < r->nset; i++) {
        if (r->sets[i].replicas > 0) {
            if (active) {
                return NULL;
            }
            active = &r->sets[i];
        }
    }
    if (active) {
        return active;
    }
    return r->fresh ? r->fresh : (r->nset > 0 ? &r->sets[r->nset - 1] : NULL);
}

static bool is_saturated(const struct rollout *r)
{
    const struct set *s = r->fresh;

    return s && s->replicas == r->replicas && s->available == r->replicas &&
           annotated(&s->root, ANN_DESIRED, -1) == r->replicas;
}

/* By how much a set grows or shrinks if all keep their shares (deployment util
 * GetReplicaSetFraction). */
static int64_t deployment_share_delta(const struct rollout *r, const struct set *s)
{
    const int64_t max = r->replicas + r->max_surge;
    const int64_t before =
        annotated(&s->root, ANN_MAX, json_int(json_at(r->root, "status.replicas"), 0));

    if (r->replicas == 0) {
        return -s->replicas;
    }
    return before == 0 ? 0 : llround((double)(s->replicas * max) / (double)before) - s->replicas;
}

/* Larger sets first; of equal ones the newer when growing, the older when shrinking. */
static uint32_t *by_size(const struct rollout *r, bool growing)
{
    uint32_t *at = hk_arena_array(r->t->mem, r->nset, sizeof(*at));

    for (uint32_t i = 0; i < r->nset; i++) {
        uint32_t k = i;

        for (; k > 0; k--) {
            const int64_t other = r->sets[at[k - 1]].replicas, mine = r->sets[i].replicas;

            if (other > mine || (other == mine && !growing)) {
                break;
            }
            at[k] = at[k - 1];
        }
        at[k] = i;
    }
    return at;
}

static void scale_in_proportion(struct rollout *r)
{
    const int64_t allowed = r->replicas > 0 ? r->replicas + r->max_surge : 0;
    const int64_t more = allowed - sum_replicas(r);
    const uint32_t *at = by_size(r, more > 0);
    int64_t added = 0;

    for (uint32_t i = 0; more != 0 && i < r->nset; i++) {
        struct set *s = &r->sets[at[i]];
        int64_t part = s->replicas > 0 ? deployment_share_delta(r, s) : 0;

        part = more > 0 ? HK_MIN(HK_MAX(part, 0), more - added)
                        : HK_MAX(HK_MIN(part, 0), more - added);
        s->want = s->replicas + part;
        added += part;
    }
    if (r->nset > 0) {
        struct set *first = &r->sets[at[0]];

        first->want = HK_MAX(first->want + more - added, 0);
    }
}

static void scale(struct rollout *r)
{
    struct set *only = active_or_latest(r);

    if (only) {
        only->want = r->replicas;
    } else if (is_saturated(r)) {
        for (uint32_t i = 0; i < r->nset; i++) {
            r->sets[i].want = is_old(r, &r->sets[i]) ? 0 : r->sets[i].replicas;
        }
    } else if (!r->recreate) {
        scale_in_proportion(r);
    }
}

/* ---- the new ReplicaSet ---- */

static int64_t last_old_revision(const struct rollout *r)
{
    int64_t last = 0;

    for (uint32_t i = 0; i < r->nset; i++) {
        last = is_old(r, &r->sets[i]) ? HK_MAX(last, r->sets[i].revision) : last;
    }
    return last;
}

static bool is_inherited(struct hk_str key)
{
    static const char *const own[] = {"kubectl.kubernetes.io/last-applied-configuration",
                                      ANN_REVISION,
                                      ANN_HISTORY,
                                      ANN_DESIRED,
                                      ANN_MAX,
                                      "deprecated.deployment.rollback.to"};

    for (uint32_t i = 0; i < HK_LEN(own); i++) {
        if (hk_str_is(key, own[i])) {
            return false;
        }
    }
    return true;
}

/* Copies annotations of the deployment that the set lacks; true when there were any. */
static bool deployment_copy_annotations(const struct rollout *r, const struct json *set,
                                        struct json *body)
{
    const struct json *from = json_at(r->root, "metadata.annotations");
    bool any = false;

    for (uint32_t i = 0; json_is(from, JSON_OBJECT) && i < from->len; i++) {
        const struct json_member *m = &from->members[i];
        const struct hk_str value = json_str(&m->value, none);
        const char *key = hk_arena_strndup(r->t->mem, m->key.s, m->key.n);

        if (is_inherited(m->key) &&
            !(kinds_annotation(set, key) &&
              hk_str_eq(json_str(kinds_annotation(set, key), none), value))) {
            work_annotate(body, r->t->mem, key, value);
            any = true;
        }
    }
    return any;
}

static int64_t first_size(const struct rollout *r)
{
    const int64_t room = r->replicas + r->max_surge - sum_replicas(r);

    return r->recreate ? r->replicas : HK_MAX(0, HK_MIN(room, r->replicas));
}

static struct json with_hash(const struct json *from, struct hk_arena *a, struct hk_str hash)
{
    struct json labels = json_clone_as(from, JSON_OBJECT, a);

    json_set_str(&labels, a, API_LABEL_TEMPLATE_HASH, hash);
    return labels;
}

static struct json make_spec(const struct rollout *r, struct hk_str hash)
{
    struct hk_arena *a = r->t->mem;
    struct json spec = json_make_object(), template = json_clone_as(r->template, JSON_OBJECT, a);
    struct json selector = json_clone_as(json_at(r->root, "spec.selector"), JSON_OBJECT, a);

    json_set(json_need(&template, a, "metadata", JSON_OBJECT), a, "labels",
             with_hash(json_at(&template, "metadata.labels"), a, hash));
    json_set(&selector, a, "matchLabels", with_hash(json_get(&selector, "matchLabels"), a, hash));
    json_set_int(&spec, a, "replicas", first_size(r));
    json_set_int_or_del(&spec, a, "minReadySeconds",
                        json_int(json_at(r->root, "spec.minReadySeconds"), 0));
    json_set(&spec, a, "selector", selector);
    json_set(&spec, a, "template", template);
    return spec;
}

static struct json make_set(const struct rollout *r, struct hk_str name, struct hk_str hash)
{
    struct hk_arena *a = r->t->mem;
    struct json body = json_make_object(), meta = json_make_object();

    json_set_str(&meta, a, "name", name);
    json_set_str(&meta, a, "namespace", r->t->ns);
    json_set(&meta, a, "labels", with_hash(json_at(r->template, "metadata.labels"), a, hash));
    json_set_cstr(&body, a, "apiVersion", "apps/v1");
    json_set_cstr(&body, a, "kind", "ReplicaSet");
    json_set(&body, a, "metadata", meta);
    json_set(&body, a, "spec", make_spec(r, hash));
    deployment_copy_annotations(r, NULL, &body);
    put_size_notes(r, &body);
    work_annotate(&body, a, ANN_REVISION,
                  hk_str(hk_arena_printf(a, "%lld", (long long)last_old_revision(r) + 1)));
    kinds_own(&body, a, r->root);
    return body;
}

/* Another template or owner uses the name: the next pass tries another hash. */
static void note_collision(struct rollout *r, int64_t collisions)
{
    struct json status = work_status(r->t, r->root);

    json_set_int(&status, r->t->mem, "collisionCount", collisions + 1);
    (void)work_write_status(r->t, API_DEPLOYMENT, r->root, status);
}

static void create_new(struct rollout *r)
{
    struct hk_arena *a = r->t->mem;
    const int64_t collisions = json_int(json_at(r->root, "status.collisionCount"), 0);
    const uint64_t h = hk_mix(json_hash(r->template) + (uint64_t)collisions);
    const struct hk_str hash = work_encode((uint32_t)h, a);
    const struct hk_str name =
        hk_str(hk_arena_printf(a, "%.*s-%.*s", HK_FMT(r->t->name), HK_FMT(hash)));
    struct json body;

    if (mirror_find(ctl_mirror(r->t->c, API_REPLICA_SET), r->t->ns, name) != HK_NONE) {
        note_collision(r, collisions);
        return;
    }
    body = make_set(r, name, hash);
    if (pass_create(r->t, api_kind(API_REPLICA_SET), &body)) {
        report_scaled(r, name, 0, first_size(r));
    }
}

/* An old set that becomes the new one again gets a new revision; its history keeps the old one. */
static bool put_revision(const struct rollout *r, struct json *patch)
{
    struct hk_arena *a = r->t->mem;
    const struct set *s = r->fresh;
    const int64_t revision = last_old_revision(r) + 1;
    const struct hk_str history = json_str(kinds_annotation(&s->root, ANN_HISTORY), none);

    if (s->revision >= revision) {
        return false;
    }
    work_annotate(patch, a, ANN_REVISION, hk_str(hk_arena_printf(a, "%lld", (long long)revision)));
    if (s->revision > 0) {
        work_annotate(patch, a, ANN_HISTORY,
                      hk_str(hk_arena_printf(a, "%.*s%s%lld", HK_FMT(history),
                                             history.n > 0 ? "," : "", (long long)s->revision)));
    }
    return true;
}

/* Updates the new set's annotations and minReadySeconds; true when they differed. */
static bool correct_new(struct rollout *r)
{
    struct hk_arena *a = r->t->mem;
    const int64_t min_ready_s = json_int(json_at(r->root, "spec.minReadySeconds"), 0);
    struct json patch = json_make_object();
    bool any;

    json_set_object(&patch, a, "metadata");
    any = deployment_copy_annotations(r, &r->fresh->root, &patch);
    any = put_revision(r, &patch) || any;
    if (json_int(json_at(&r->fresh->root, "spec.minReadySeconds"), 0) != min_ready_s) {
        struct json spec = json_make_object();

        json_set_int(&spec, a, "minReadySeconds", min_ready_s);
        json_set(&patch, a, "spec", spec);
        any = true;
    }
    if (any) {
        pass_patch(r->t, &(struct pass_patch){.kind = api_kind(API_REPLICA_SET),
                                              .ns = r->t->ns,
                                              .name = r->fresh->name,
                                              .type = PORT_PATCH_MERGE,
                                              .body = &patch});
    }
    return any;
}

/* Writes the revision on the deployment; true when it differed. */
static bool correct_revision(struct rollout *r)
{
    struct hk_arena *a = r->t->mem;
    struct json patch = json_make_object();

    if (annotated(r->root, ANN_REVISION, 0) == r->fresh->revision) {
        return false;
    }
    json_set_object(&patch, a, "metadata");
    work_annotate(&patch, a, ANN_REVISION,
                  hk_str(hk_arena_printf(a, "%lld", (long long)r->fresh->revision)));
    pass_patch(r->t, &(struct pass_patch){.kind = api_kind(API_DEPLOYMENT),
                                          .ns = r->t->ns,
                                          .name = r->t->name,
                                          .type = PORT_PATCH_MERGE,
                                          .body = &patch});
    return true;
}

/* True when the new set exists and is up to date. */
static bool ensure_new(struct rollout *r)
{
    if (!r->fresh) {
        create_new(r);
        return false;
    }
    return !correct_new(r) && !correct_revision(r);
}

/* ---- rollout ---- */

static bool grow_new(struct rollout *r)
{
    struct set *s = r->fresh;
    const int64_t room = r->replicas + r->max_surge - sum_replicas(r);

    if (s->replicas > r->replicas) {
        s->want = r->replicas;
    } else if (room > 0) {
        s->want = s->replicas + HK_MIN(room, r->replicas - s->replicas);
    }
    return s->want != s->replicas;
}

/* Takes up to limit pods from the old sets, oldest first; sick: only unavailable ones. Returns
 * their number. */
static int64_t take_from_old(struct rollout *r, int64_t limit, bool sick)
{
    int64_t taken = 0;

    for (uint32_t i = 0; i < r->nset && taken < limit; i++) {
        struct set *s = &r->sets[i];
        const int64_t n = sick ? s->want - s->available : s->want;

        if (is_old(r, s) && n > 0) {
            const int64_t part = HK_MIN(n, limit - taken);

            s->want -= part;
            taken += part;
        }
    }
    return taken;
}

static void shrink_old(struct rollout *r)
{
    const int64_t min_available = r->replicas - r->max_unavailable;
    const int64_t new_sick = r->fresh->replicas - r->fresh->available;
    int64_t limit = sum_replicas(r) - min_available - new_sick, available = 0;

    limit -= take_from_old(r, HK_MAX(limit, 0), true);
    for (uint32_t i = 0; i < r->nset; i++) {
        available += HK_MIN(r->sets[i].available, r->sets[i].want);
    }
    limit = HK_MIN(limit, available - min_available);
    if (limit > 0) {
        take_from_old(r, limit, false);
    }
}

static bool has_old_pods(const struct rollout *r)
{
    for (uint32_t i = 0; i < r->nset; i++) {
        const struct work_pods pods = work_pods(r->t, &r->sets[i].root);

        for (uint32_t k = 0; is_old(r, &r->sets[i]) && k < pods.len; k++) {
            if (pods.at[k].d->phase != POD_FAILED && pods.at[k].d->phase != POD_SUCCEEDED) {
                return true;
            }
        }
    }
    return false;
}

/* True when it requested a write. */
static bool roll_by_recreation(struct rollout *r)
{
    for (uint32_t i = 0; i < r->nset; i++) {
        r->sets[i].want = is_old(r, &r->sets[i]) ? 0 : r->sets[i].replicas;
    }
    if (apply_sizes(r)) {
        return true;
    }
    if (has_old_pods(r)) {
        return false;
    }
    if (!ensure_new(r)) {
        return true;
    }
    r->fresh->want = r->replicas;
    return apply_sizes(r);
}

static bool roll(struct rollout *r)
{
    if (r->recreate) {
        return roll_by_recreation(r);
    }
    if (!ensure_new(r)) {
        return true;
    }
    if (!grow_new(r)) {
        shrink_old(r);
    }
    return apply_sizes(r);
}

/* ---- history ---- */

static void trim_history(struct rollout *r)
{
    const int64_t limit = json_int(json_at(r->root, "spec.revisionHistoryLimit"), 10);
    int64_t surplus = -limit;

    for (uint32_t i = 0; i < r->nset; i++) {
        surplus += is_old(r, &r->sets[i]) && !work_is_going(&r->sets[i].root);
    }
    for (uint32_t i = 0; i < r->nset && surplus > 0; i++) {
        const struct set *s = &r->sets[i];

        if (is_old(r, s) && !work_is_going(&s->root)) {
            surplus--;
            if (s->replicas == 0 && s->there == 0) {
                pass_delete(r->t, api_kind(API_REPLICA_SET), r->t->ns, s->name, s->uid,
                            PORT_PROPAGATE_BACKGROUND);
            }
        }
    }
}

/* ---- one pass ---- */

static bool deployment_scale_or_roll(struct rollout *r)
{
    if (is_scaled(r) || r->paused) {
        scale(r);
        return apply_sizes(r);
    }
    return roll(r);
}

static void deployment_reconcile(struct ctl *c, struct pass *t)
{
    struct json root;
    struct rollout r = {.t = t, .root = &root};

    if (!work_find(t, API_DEPLOYMENT, &root) || work_is_going(&root)) {
        return;
    }
    r.replicas = json_int(json_at(&root, "spec.replicas"), 1);
    r.paused = json_bool(json_at(&root, "spec.paused"), false);
    r.template = json_at(&root, "spec.template");
    read_strategy(&r);
    read_sets(&r);
    if (deployment_scale_or_roll(&r)) {
        return;
    }
    if (!rollout_write_status(&r) && rollout_is_complete(&r)) {
        trim_history(&r);
    }
}

static const struct ctl_watch watches[] = {{&mirror_deployments, work_changed},
                                           {&mirror_replica_sets, set_changed},
                                           {&mirror_pods, deployment_on_pod_change},
                                           {0}};

const struct ctl_type ctl_work_deployment = {.name = "deployment-controller",
                                             .about = "rolls templates out over ReplicaSets",
                                             .watches = watches,
                                             .reconcile = deployment_reconcile};
