// SPDX-License-Identifier: Apache-2.0
// Claims and volumes, for clusters that have nobody else to bring them together. A claim's key is
// its namespace and name; a volume's has no namespace.
//
//   claim without volume: one that names the claim, else (when the class does not wait for a pod)
//   the smallest free one that suits, else one is made if the class is ours
//     volume.claimRef -> claim.volumeName -> both say Bound
//   claim gone: volume Released, and deleted if it was made here and is not to be retained
//
// A volume of our own is a directory of one node, which says by an annotation where it keeps them.
// Making and removing the directory is the node's part; the volume's finalizer waits for it.
#include "api/names.h"
#include "api/storage.h"
#include "controllers/kinds.h"
#include "controllers/table.h"

static const struct hk_str none = {"", 0};

static struct hk_str text_at(const struct json *root, const char *path)
{
    return json_str(json_at(root, path), none);
}

static struct hk_str annotation(const struct json *root, const char *key)
{
    return json_str(kinds_annotation(root, key), none);
}

static void put(struct json *obj, struct hk_arena *a, const char *key, struct hk_str value)
{
    json_put(obj, a, hk_str(key), json_make_str(value));
}

static struct json *put_object(struct json *obj, struct hk_arena *a, const char *key)
{
    return json_put(obj, a, hk_str(key), json_make_object());
}

static void put_copy(struct json *obj, struct hk_arena *a, const char *key, const struct json *v)
{
    if (v) {
        json_put(obj, a, hk_str(key), *v);
    }
}

/* ---- which keys a change concerns ---- */

static void claim_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct hk_str ns = mirror_ns(ch->mirror, ch->row),
                        name = mirror_name(ch->mirror, ch->row);
    const struct mirror *volumes = ctl_mirror(c, API_PV);

    ctl_add(c, ns, name);
    for (uint32_t r = mirror_first(volumes, VOLUMES_BY_CLAIM, name); r != HK_NONE;
         r = mirror_next(volumes, VOLUMES_BY_CLAIM, r)) {
        ctl_add(c, none, mirror_name(volumes, r));
    }
}

/* Claims that are not bound may want this one. */
static void offer(struct ctl *c)
{
    const struct mirror *claims = ctl_mirror(c, API_PVC);

    for (uint32_t r = mirror_scan(claims, HK_NONE); r != HK_NONE; r = mirror_scan(claims, r)) {
        const struct claim_digest *d = mirror_digest(claims, r);

        if (!d->bound) {
            ctl_add(c, mirror_ns(claims, r), mirror_name(claims, r));
        }
    }
}

static void volume_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct json *ref = json_at(ch->root, "spec.claimRef");

    if (ch->now) {
        ctl_add(c, none, mirror_name(ch->mirror, ch->row));
    }
    if (ref) {
        ctl_add(c, json_str(json_get(ref, "namespace"), none),
                json_str(json_get(ref, "name"), none));
    } else {
        offer(c);
    }
}

static void class_changed(struct ctl *c, const struct mirror_change *ch)
{
    offer(c);
}

/* ---- one claim ---- */

struct claiming {
    struct ctl *c;
    struct turn *t;
    struct json root;
    struct api_pvc claim;
    const struct json *class; /* NULL: there is none */
};

static bool is_of(const struct json *volume, const struct claiming *p)
{
    const struct json *ref = json_at(volume, "spec.claimRef");
    const struct hk_str uid = text_at(ref, "uid");

    return ref && hk_str_eq(text_at(ref, "namespace"), p->t->ns) &&
           hk_str_eq(text_at(ref, "name"), p->t->name) &&
           (uid.n == 0 || hk_str_eq(uid, p->claim.meta.uid));
}

/* Makes the volume the claim's; the claim follows in a later pass. */
static void take_volume(struct claiming *p, struct hk_str name, bool by_us)
{
    struct hk_arena *a = p->t->mem;
    struct json body = json_make_object(), *ref;

    if (by_us) {
        put(put_object(put_object(&body, a, "metadata"), a, "annotations"), a,
            API_ANN_BOUND_BY_CONTROLLER, HK_STR("yes"));
    }
    ref = put_object(put_object(&body, a, "spec"), a, "claimRef");
    put(ref, a, "apiVersion", HK_STR("v1"));
    put(ref, a, "kind", HK_STR("PersistentVolumeClaim"));
    put(ref, a, "namespace", p->t->ns);
    put(ref, a, "name", p->t->name);
    put(ref, a, "uid", p->claim.meta.uid);
    turn_patch(
        p->t, &(struct turn_patch){
                  .kind = api_kind(API_PV), .name = name, .type = PORT_PATCH_MERGE, .body = &body});
}

static void patch_claim(struct claiming *p, const char *subresource, const struct json *body)
{
    turn_patch(p->t, &(struct turn_patch){.kind = api_kind(API_PVC),
                                          .ns = p->t->ns,
                                          .name = p->t->name,
                                          .subresource = subresource,
                                          .type = PORT_PATCH_MERGE,
                                          .body = body});
}

static void name_volume(struct claiming *p, struct hk_str volume)
{
    struct hk_arena *a = p->t->mem;
    struct json body = json_make_object();
    struct json *notes = put_object(put_object(&body, a, "metadata"), a, "annotations");

    put(notes, a, API_ANN_BIND_COMPLETED, HK_STR("yes"));
    if (p->claim.volume_name.n == 0) {
        put(notes, a, API_ANN_BOUND_BY_CONTROLLER, HK_STR("yes"));
    }
    put(put_object(&body, a, "spec"), a, "volumeName", volume);
    patch_claim(p, NULL, &body);
}

static void tell_phase(struct claiming *p, const char *phase, const struct json *volume)
{
    struct hk_arena *a = p->t->mem;
    struct json body = json_make_object(), *status = put_object(&body, a, "status");

    put(status, a, "phase", hk_str(phase));
    put_copy(status, a, "accessModes", json_at(volume, "spec.accessModes"));
    put_copy(status, a, "capacity", json_at(volume, "spec.capacity"));
    patch_claim(p, "status", &body);
}

/* The claim names a volume. */
static void complete(struct claiming *p)
{
    const struct mirror *volumes = ctl_mirror(p->c, API_PV);
    const struct hk_str name = p->claim.volume_name;
    const uint32_t row = mirror_find(volumes, none, name);
    const bool completed = annotation(&p->root, API_ANN_BIND_COMPLETED).n > 0;
    struct json volume;

    if (row == HK_NONE) {
        if (completed && p->claim.phase != API_CLAIM_LOST) {
            tell_phase(p, "Lost", NULL);
            turn_event(p->t, &p->root, true, "ClaimLost",
                       "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
        }
        return;
    }
    volume = mirror_read(volumes, row, p->t->mem);
    if (!json_at(&volume, "spec.claimRef") ||
        (is_of(&volume, p) && text_at(&volume, "spec.claimRef.uid").n == 0)) {
        take_volume(p, name, false);
    } else if (!is_of(&volume, p)) {
        turn_event(p->t, &p->root, true, "FailedBinding",
                   "volume \"%.*s\" already bound to a different claim.", HK_FMT(name));
    } else if (!completed) {
        name_volume(p, name);
    } else if (p->claim.phase != API_CLAIM_BOUND) {
        tell_phase(p, "Bound", &volume);
    }
}

static bool covers(const struct api_strs *has, const struct api_strs *wants)
{
    for (uint32_t i = 0; i < wants->len; i++) {
        bool found = false;

        for (uint32_t k = 0; k < has->len; k++) {
            found = found || hk_str_eq(has->at[k], wants->at[i]);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static bool suits(const struct api_pv *v, const struct api_pvc *c)
{
    const struct quantity *has = api_resources_get(&v->capacity, HK_STR("storage"));
    const struct quantity *wants = api_resources_get(&c->requests, HK_STR("storage"));

    return !v->claim.present && !v->meta.deletion_ns && v->mode == c->mode && has && wants &&
           has->nano >= wants->nano && hk_str_eq(v->class_name, c->class_name) &&
           hk_str_eq(v->attributes_class, c->attributes_class) &&
           covers(&v->access_modes, &c->access_modes) &&
           (!c->selector.present || api_selector_match(&c->selector, &v->meta.labels));
}

/* The volume that is promised to the claim; "" none. */
static struct hk_str promised(struct claiming *p)
{
    const struct mirror *volumes = ctl_mirror(p->c, API_PV);

    for (uint32_t r = mirror_first(volumes, VOLUMES_BY_CLAIM, p->t->name); r != HK_NONE;
         r = mirror_next(volumes, VOLUMES_BY_CLAIM, r)) {
        const struct json root = mirror_read(volumes, r, p->t->mem);

        if (is_of(&root, p)) {
            return mirror_name(volumes, r);
        }
    }
    return none;
}

/* The smallest free one that suits; "" none. */
static struct hk_str smallest(struct claiming *p)
{
    const struct mirror *volumes = ctl_mirror(p->c, API_PV);
    struct quantity size = {0};
    struct hk_str best = none;

    for (uint32_t r = mirror_scan(volumes, HK_NONE); r != HK_NONE; r = mirror_scan(volumes, r)) {
        const struct volume_digest *d = mirror_digest(volumes, r);
        struct json root;
        struct api_pv v;

        if (!d->free) {
            continue;
        }
        root = mirror_read(volumes, r, p->t->mem);
        if (api_pv_decode(&root, p->t->mem, &v, NULL) == 0 && suits(&v, &p->claim)) {
            const struct quantity *q = api_resources_get(&v.capacity, HK_STR("storage"));

            if (best.n == 0 || q->nano < size.nano) {
                best = mirror_name(volumes, r);
                size = *q;
            }
        }
    }
    return best;
}

/* ---- making volumes ---- */

/* The node the volume is for: the one a scheduler chose, else any that has room for volumes. */
static bool find_node(struct claiming *p, struct json *ret)
{
    const struct mirror *nodes = ctl_mirror(p->c, API_NODE);
    const struct hk_str chosen = annotation(&p->root, API_ANN_SELECTED_NODE);

    for (uint32_t r = mirror_scan(nodes, HK_NONE); r != HK_NONE; r = mirror_scan(nodes, r)) {
        if (chosen.n == 0 || hk_str_eq(chosen, mirror_name(nodes, r))) {
            *ret = mirror_read(nodes, r, p->t->mem);
            if (annotation(ret, API_ANN_VOLUMES_DIR).n > 0) {
                return true;
            }
        }
    }
    return false;
}

static void put_affinity(struct json *spec, struct hk_arena *a, struct hk_str host)
{
    struct json *required = put_object(put_object(spec, a, "nodeAffinity"), a, "required");
    struct json *terms = json_put(required, a, HK_STR("nodeSelectorTerms"), json_make_array());
    struct json *term = json_push(terms, a, json_make_object()), *e, *values;

    e = json_push(json_put(term, a, HK_STR("matchExpressions"), json_make_array()), a,
                  json_make_object());
    put(e, a, "key", HK_STR(API_LABEL_HOSTNAME));
    put(e, a, "operator", HK_STR("In"));
    values = json_put(e, a, HK_STR("values"), json_make_array());
    json_push(values, a, json_make_str(host));
}

static void put_meta(struct claiming *p, struct json *body, struct hk_str name,
                     const struct json *node)
{
    struct hk_arena *a = p->t->mem;
    struct json *meta = put_object(body, a, "metadata"), *notes;

    put(meta, a, "name", name);
    notes = put_object(meta, a, "annotations");
    put(notes, a, API_ANN_PROVISIONED_BY, HK_STR(API_PROVISIONER_LOCAL));
    put(notes, a, API_ANN_VOLUME_NODE, text_at(node, "metadata.name"));
    json_push(json_put(meta, a, HK_STR("finalizers"), json_make_array()), a,
              json_make_str(HK_STR(API_FINALIZER_VOLUME)));
}

static void make_volume(struct claiming *p, const struct json *node)
{
    struct hk_arena *a = p->t->mem;
    const struct hk_str dir = annotation(node, API_ANN_VOLUMES_DIR);
    const struct hk_str host = json_str(kinds_label(node, API_LABEL_HOSTNAME), none);
    const struct hk_str name = hk_str(hk_arena_printf(a, "pvc-%.*s", HK_FMT(p->claim.meta.uid)));
    struct json body = json_make_object(), *spec, *ref;

    put(&body, a, "apiVersion", HK_STR("v1"));
    put(&body, a, "kind", HK_STR("PersistentVolume"));
    put_meta(p, &body, name, node);
    spec = put_object(&body, a, "spec");
    put_copy(put_object(spec, a, "capacity"), a, "storage",
             json_at(&p->root, "spec.resources.requests.storage"));
    put_copy(spec, a, "accessModes", json_at(&p->root, "spec.accessModes"));
    put(spec, a, "persistentVolumeReclaimPolicy",
        json_str(json_get(p->class, "reclaimPolicy"), HK_STR("Delete")));
    put(spec, a, "storageClassName", p->claim.class_name);
    put(spec, a, "volumeMode", HK_STR("Filesystem"));
    put(put_object(spec, a, "local"), a, "path",
        hk_str(hk_arena_printf(a, "%.*s/%.*s", HK_FMT(dir), HK_FMT(name))));
    put_affinity(spec, a, host);
    ref = put_object(spec, a, "claimRef");
    put(ref, a, "apiVersion", HK_STR("v1"));
    put(ref, a, "kind", HK_STR("PersistentVolumeClaim"));
    put(ref, a, "namespace", p->t->ns);
    put(ref, a, "name", p->t->name);
    put(ref, a, "uid", p->claim.meta.uid);
    if (turn_create(p->t, api_kind(API_PV), &body)) {
        turn_event(p->t, &p->root, false, "ProvisioningSucceeded",
                   "Successfully provisioned volume %.*s", HK_FMT(name));
    }
}

/* The scheduler is asked for another node. */
static void refuse_node(struct claiming *p)
{
    struct hk_arena *a = p->t->mem;
    const struct hk_str node = annotation(&p->root, API_ANN_SELECTED_NODE);
    struct json body = json_make_object();

    turn_event(p->t, &p->root, true, "ProvisioningFailed",
               node.n > 0 ? "node \"%.*s\" keeps no volumes" : "no node keeps volumes%.*s",
               HK_FMT(node));
    if (node.n > 0) {
        json_put(put_object(put_object(&body, a, "metadata"), a, "annotations"), a,
                 HK_STR(API_ANN_SELECTED_NODE), (struct json){0});
        patch_claim(p, NULL, &body);
    }
}

static void provision(struct claiming *p)
{
    const struct hk_str by = json_str(json_get(p->class, "provisioner"), none);
    struct json node;

    if (!p->class) {
        turn_event(p->t, &p->root, false, "FailedBinding",
                   p->claim.class_name.n > 0
                       ? "storageclass.storage.k8s.io \"%.*s\" not found"
                       : "no persistent volumes available for this claim and no storage class is "
                         "set%.*s",
                   HK_FMT(p->claim.class_name));
    } else if (!hk_str_is(by, API_PROVISIONER_LOCAL)) {
        turn_event(p->t, &p->root, false, "ExternalProvisioning",
                   "Waiting for a volume to be created either by the external provisioner '%.*s' "
                   "or manually by the system administrator.",
                   HK_FMT(by));
    } else if (p->claim.mode == API_VOLUME_BLOCK) {
        turn_event(p->t, &p->root, true, "ProvisioningFailed",
                   "%.*s makes directories, not block devices", HK_FMT(by));
    } else if (find_node(p, &node)) {
        make_volume(p, &node);
    } else {
        refuse_node(p);
    }
}

/* The claim names none. */
static void find(struct claiming *p)
{
    const bool waits =
        hk_str_is(json_str(json_get(p->class, "volumeBindingMode"), none), "WaitForFirstConsumer");
    const bool chosen = annotation(&p->root, API_ANN_SELECTED_NODE).n > 0;
    const struct hk_str volume = promised(p);
    const struct hk_str best = volume.n > 0 || waits ? none : smallest(p);

    if (volume.n > 0) {
        name_volume(p, volume);
    } else if (best.n > 0) {
        take_volume(p, best, true);
    } else if (waits && !chosen) {
        turn_event(p->t, &p->root, false, "WaitForFirstConsumer",
                   "waiting for first consumer to be created before binding");
    } else {
        provision(p);
    }
}

static void reconcile_claim(struct ctl *c, struct turn *t)
{
    const struct mirror *claims = ctl_mirror(c, API_PVC),
                        *classes = ctl_mirror(c, API_STORAGE_CLASS);
    const uint32_t row = mirror_find(claims, t->ns, t->name);
    struct claiming p = {.c = c, .t = t};
    struct json class;
    uint32_t of;

    if (row == HK_NONE) {
        return;
    }
    p.root = mirror_read(claims, row, t->mem);
    if (api_pvc_decode(&p.root, t->mem, &p.claim, NULL) < 0 || p.claim.meta.deletion_ns) {
        return;
    }
    of = mirror_find(classes, none, p.claim.class_name);
    if (of != HK_NONE) {
        class = mirror_read(classes, of, t->mem);
        p.class = &class;
    }
    if (p.claim.volume_name.n > 0) {
        complete(&p);
    } else {
        find(&p);
    }
}

/* ---- one volume ---- */

static const char *phase_of(struct ctl *c, const struct json *root)
{
    const struct mirror *claims = ctl_mirror(c, API_PVC);
    const struct json *ref = json_at(root, "spec.claimRef");
    const struct hk_str uid = text_at(ref, "uid");
    uint32_t row;

    if (!ref || uid.n == 0) {
        return "Available"; /* also while it waits for a claim of that name */
    }
    row = mirror_find(claims, text_at(ref, "namespace"), text_at(ref, "name"));
    return row != HK_NONE && hk_str_eq(mirror_uid(claims, row), uid) ? "Bound" : "Released";
}

static void reclaim(struct turn *t, const struct json *root)
{
    const bool ours = hk_str_is(annotation(root, API_ANN_PROVISIONED_BY), API_PROVISIONER_LOCAL);
    const bool wanted = hk_str_is(text_at(root, "spec.persistentVolumeReclaimPolicy"), "Retain");

    if (ours && !wanted && !json_at(root, "metadata.deletionTimestamp")) {
        turn_delete(t, api_kind(API_PV), none, t->name, text_at(root, "metadata.uid"),
                    PORT_PROPAGATE_DEFAULT);
    }
}

static void reconcile_volume(struct ctl *c, struct turn *t)
{
    const struct mirror *volumes = ctl_mirror(c, API_PV);
    const uint32_t row = mirror_find(volumes, none, t->name);
    struct json root, body = json_make_object();
    const char *phase;

    if (row == HK_NONE) {
        return;
    }
    root = mirror_read(volumes, row, t->mem);
    phase = phase_of(c, &root);
    if (!hk_str_is(text_at(&root, "status.phase"), phase)) {
        put(put_object(&body, t->mem, "status"), t->mem, "phase", hk_str(phase));
        turn_patch(t, &(struct turn_patch){.kind = api_kind(API_PV),
                                           .name = t->name,
                                           .subresource = "status",
                                           .type = PORT_PATCH_MERGE,
                                           .body = &body});
    } else if (strcmp(phase, "Released") == 0) {
        reclaim(t, &root);
    }
}

static void volume_reconcile(struct ctl *c, struct turn *t)
{
    if (t->ns.n > 0) {
        reconcile_claim(c, t);
    } else {
        reconcile_volume(c, t);
    }
}

static const struct ctl_watch watches[] = {{&mirror_claims, claim_changed},
                                           {&mirror_volumes, volume_changed},
                                           {&mirror_storage_classes, class_changed},
                                           {&mirror_nodes, NULL},
                                           {0}};

const struct ctl_type ctl_volume = {
    .name = "volume-controller",
    .about = "brings claims and volumes together, and has nodes make volumes",
    .watches = watches,
    .reconcile = volume_reconcile,
};
