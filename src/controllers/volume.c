// SPDX-License-Identifier: Apache-2.0
// Binds claims and volumes, for clusters without another controller that does so. A claim's key is
// its namespace and name; a volume's key has no namespace.
//
//   claim without volume: take the volume that names the claim; else, unless the class waits for a
//   pod, the smallest free one that fits; else create one if the class is ours
//     volume.claimRef -> claim.volumeName -> both say Bound
//   claim deleted: volume Released, and deleted if it was created here and is not to be retained
//
// A volume created here is a directory on one node; an annotation of the node names the parent
// directory. The node creates and removes the directory; the volume's finalizer waits for that.
#include "api/names.h"
#include "api/storage.h"
#include "controllers/kinds.h"
#include "controllers/pass.h"
#include "controllers/table.h"

static const struct hk_str none = {"", 0};

static struct hk_str ctl_volume_str_at(const struct json *root, const char *path)
{
    return json_str(json_at(root, path), none);
}

static struct hk_str ctl_volume_annotation(const struct json *root, const char *key)
{
    return json_str(kinds_annotation(root, key), none);
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

/* Queues all claims that are not bound. */
static void ctl_volume_requeue_unbound_claims(struct ctl *c)
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
        ctl_volume_requeue_unbound_claims(c);
    }
}

static void class_changed(struct ctl *c, const struct mirror_change *ch)
{
    ctl_volume_requeue_unbound_claims(c);
}

/* ---- one claim ---- */

struct claiming {
    struct ctl *c;
    struct pass *t;
    struct json root;
    struct api_pvc claim;
    const struct json *class; /* NULL: none */
};

static bool is_of(const struct json *volume, const struct claiming *p)
{
    const struct json *ref = json_at(volume, "spec.claimRef");
    const struct hk_str uid = ctl_volume_str_at(ref, "uid");

    return ref && hk_str_eq(ctl_volume_str_at(ref, "namespace"), p->t->ns) &&
           hk_str_eq(ctl_volume_str_at(ref, "name"), p->t->name) &&
           (uid.n == 0 || hk_str_eq(uid, p->claim.meta.uid));
}

/* Binds the volume to the claim; a later pass binds the claim to the volume. */
static void take_volume(struct claiming *p, struct hk_str name, bool by_us)
{
    struct hk_arena *a = p->t->mem;
    struct json body = json_make_object(), *ref;

    if (by_us) {
        json_set_cstr(json_set_object(json_set_object(&body, a, "metadata"), a, "annotations"), a,
                      API_ANN_BOUND_BY_CONTROLLER, "yes");
    }
    ref = json_set_object(json_set_object(&body, a, "spec"), a, "claimRef");
    json_set_cstr(ref, a, "apiVersion", "v1");
    json_set_cstr(ref, a, "kind", "PersistentVolumeClaim");
    json_set_str(ref, a, "namespace", p->t->ns);
    json_set_str(ref, a, "name", p->t->name);
    json_set_str(ref, a, "uid", p->claim.meta.uid);
    pass_patch(
        p->t, &(struct pass_patch){
                  .kind = api_kind(API_PV), .name = name, .type = PORT_PATCH_MERGE, .body = &body});
}

static void patch_claim(struct claiming *p, const char *subresource, const struct json *body)
{
    pass_patch(p->t, &(struct pass_patch){.kind = api_kind(API_PVC),
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
    struct json *notes = json_set_object(json_set_object(&body, a, "metadata"), a, "annotations");

    json_set_cstr(notes, a, API_ANN_BIND_COMPLETED, "yes");
    if (p->claim.volume_name.n == 0) {
        json_set_cstr(notes, a, API_ANN_BOUND_BY_CONTROLLER, "yes");
    }
    json_set_str(json_set_object(&body, a, "spec"), a, "volumeName", volume);
    patch_claim(p, NULL, &body);
}

static void write_phase(struct claiming *p, const char *phase, const struct json *volume)
{
    struct hk_arena *a = p->t->mem;
    struct json body = json_make_object(), *status = json_set_object(&body, a, "status");

    json_set_cstr(status, a, "phase", phase);
    json_set_if(status, a, "accessModes", json_at(volume, "spec.accessModes"));
    json_set_if(status, a, "capacity", json_at(volume, "spec.capacity"));
    patch_claim(p, "status", &body);
}

/* Binds a claim that names a volume. */
static void ctl_volume_bind_named(struct claiming *p)
{
    const struct mirror *volumes = ctl_mirror(p->c, API_PV);
    const struct hk_str name = p->claim.volume_name;
    const uint32_t row = mirror_find(volumes, none, name);
    const bool completed = ctl_volume_annotation(&p->root, API_ANN_BIND_COMPLETED).n > 0;
    struct json volume;

    if (row == HK_NONE) {
        if (completed && p->claim.phase != API_CLAIM_LOST) {
            write_phase(p, "Lost", NULL);
            pass_event(p->t, &p->root, true, "ClaimLost",
                       "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
        }
        return;
    }
    volume = mirror_read(volumes, row, p->t->mem);
    if (!json_at(&volume, "spec.claimRef") ||
        (is_of(&volume, p) && ctl_volume_str_at(&volume, "spec.claimRef.uid").n == 0)) {
        take_volume(p, name, false);
    } else if (!is_of(&volume, p)) {
        pass_event(p->t, &p->root, true, "FailedBinding",
                   "volume \"%.*s\" already bound to a different claim.", HK_FMT(name));
    } else if (!completed) {
        name_volume(p, name);
    } else if (p->claim.phase != API_CLAIM_BOUND) {
        write_phase(p, "Bound", &volume);
    }
}

static bool ctl_volume_has_all_modes(const struct api_strs *has, const struct api_strs *wants)
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
           ctl_volume_has_all_modes(&v->access_modes, &c->access_modes) &&
           (!c->selector.present || api_selector_match(&c->selector, &v->meta.labels));
}

/* The volume reserved for the claim; "" none. */
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

/* The smallest free volume that fits; "" none. */
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

/* ---- creating volumes ---- */

/* The node for the volume: the one that a scheduler chose, else any that can keep volumes. */
static bool find_node(struct claiming *p, struct json *ret)
{
    const struct mirror *nodes = ctl_mirror(p->c, API_NODE);
    const struct hk_str chosen = ctl_volume_annotation(&p->root, API_ANN_SELECTED_NODE);

    for (uint32_t r = mirror_scan(nodes, HK_NONE); r != HK_NONE; r = mirror_scan(nodes, r)) {
        if (chosen.n == 0 || hk_str_eq(chosen, mirror_name(nodes, r))) {
            *ret = mirror_read(nodes, r, p->t->mem);
            if (ctl_volume_annotation(ret, API_ANN_VOLUMES_DIR).n > 0) {
                return true;
            }
        }
    }
    return false;
}

static void put_affinity(struct json *spec, struct hk_arena *a, struct hk_str host)
{
    struct json *required =
        json_set_object(json_set_object(spec, a, "nodeAffinity"), a, "required");
    struct json *terms = json_set_array(required, a, "nodeSelectorTerms");
    struct json *term = json_push(terms, a, json_make_object()), *e, *values;

    e = json_push(json_set_array(term, a, "matchExpressions"), a, json_make_object());
    json_set_cstr(e, a, "key", API_LABEL_HOSTNAME);
    json_set_cstr(e, a, "operator", "In");
    values = json_set_array(e, a, "values");
    json_push(values, a, json_make_str(host));
}

static void put_meta(struct claiming *p, struct json *body, struct hk_str name,
                     const struct json *node)
{
    struct hk_arena *a = p->t->mem;
    struct json *meta = json_set_object(body, a, "metadata"), *notes;

    json_set_str(meta, a, "name", name);
    notes = json_set_object(meta, a, "annotations");
    json_set_cstr(notes, a, API_ANN_PROVISIONED_BY, API_PROVISIONER_LOCAL);
    json_set_str(notes, a, API_ANN_VOLUME_NODE, ctl_volume_str_at(node, "metadata.name"));
    json_push(json_set_array(meta, a, "finalizers"), a,
              json_make_str(HK_STR(API_FINALIZER_VOLUME)));
}

static void make_volume(struct claiming *p, const struct json *node)
{
    struct hk_arena *a = p->t->mem;
    const struct hk_str dir = ctl_volume_annotation(node, API_ANN_VOLUMES_DIR);
    const struct hk_str host = json_str(kinds_label(node, API_LABEL_HOSTNAME), none);
    const struct hk_str name = hk_str(hk_arena_printf(a, "pvc-%.*s", HK_FMT(p->claim.meta.uid)));
    struct json body = json_make_object(), *spec, *ref;

    json_set_cstr(&body, a, "apiVersion", "v1");
    json_set_cstr(&body, a, "kind", "PersistentVolume");
    put_meta(p, &body, name, node);
    spec = json_set_object(&body, a, "spec");
    json_set_if(json_set_object(spec, a, "capacity"), a, "storage",
                json_at(&p->root, "spec.resources.requests.storage"));
    json_set_if(spec, a, "accessModes", json_at(&p->root, "spec.accessModes"));
    json_set_str(spec, a, "persistentVolumeReclaimPolicy",
                 json_str(json_get(p->class, "reclaimPolicy"), HK_STR("Delete")));
    json_set_str(spec, a, "storageClassName", p->claim.class_name);
    json_set_cstr(spec, a, "volumeMode", "Filesystem");
    json_set_cstr(json_set_object(spec, a, "local"), a, "path",
                  hk_arena_printf(a, "%.*s/%.*s", HK_FMT(dir), HK_FMT(name)));
    put_affinity(spec, a, host);
    ref = json_set_object(spec, a, "claimRef");
    json_set_cstr(ref, a, "apiVersion", "v1");
    json_set_cstr(ref, a, "kind", "PersistentVolumeClaim");
    json_set_str(ref, a, "namespace", p->t->ns);
    json_set_str(ref, a, "name", p->t->name);
    json_set_str(ref, a, "uid", p->claim.meta.uid);
    if (pass_create(p->t, api_kind(API_PV), &body)) {
        pass_event(p->t, &p->root, false, "ProvisioningSucceeded",
                   "Successfully provisioned volume %.*s", HK_FMT(name));
    }
}

/* Asks the scheduler for another node. */
static void refuse_node(struct claiming *p)
{
    struct hk_arena *a = p->t->mem;
    const struct hk_str node = ctl_volume_annotation(&p->root, API_ANN_SELECTED_NODE);
    struct json body = json_make_object();

    pass_event(p->t, &p->root, true, "ProvisioningFailed",
               node.n > 0 ? "node \"%.*s\" keeps no volumes" : "no node keeps volumes%.*s",
               HK_FMT(node));
    if (node.n > 0) {
        json_set(json_set_object(json_set_object(&body, a, "metadata"), a, "annotations"), a,
                 API_ANN_SELECTED_NODE, (struct json){0});
        patch_claim(p, NULL, &body);
    }
}

static void ctl_volume_provision(struct claiming *p)
{
    const struct hk_str by = json_str(json_get(p->class, "provisioner"), none);
    struct json node;

    if (!p->class) {
        pass_event(p->t, &p->root, false, "FailedBinding",
                   p->claim.class_name.n > 0
                       ? "storageclass.storage.k8s.io \"%.*s\" not found"
                       : "no persistent volumes available for this claim and no storage class is "
                         "set%.*s",
                   HK_FMT(p->claim.class_name));
    } else if (!hk_str_is(by, API_PROVISIONER_LOCAL)) {
        pass_event(p->t, &p->root, false, "ExternalProvisioning",
                   "Waiting for a volume to be created either by the external provisioner '%.*s' "
                   "or manually by the system administrator.",
                   HK_FMT(by));
    } else if (p->claim.mode == API_VOLUME_BLOCK) {
        pass_event(p->t, &p->root, true, "ProvisioningFailed",
                   "%.*s makes directories, not block devices", HK_FMT(by));
    } else if (find_node(p, &node)) {
        make_volume(p, &node);
    } else {
        refuse_node(p);
    }
}

/* Binds a claim that names no volume. */
static void ctl_volume_choose_volume(struct claiming *p)
{
    const bool waits =
        hk_str_is(json_str(json_get(p->class, "volumeBindingMode"), none), "WaitForFirstConsumer");
    const bool chosen = ctl_volume_annotation(&p->root, API_ANN_SELECTED_NODE).n > 0;
    const struct hk_str volume = promised(p);
    const struct hk_str best = volume.n > 0 || waits ? none : smallest(p);

    if (volume.n > 0) {
        name_volume(p, volume);
    } else if (best.n > 0) {
        take_volume(p, best, true);
    } else if (waits && !chosen) {
        pass_event(p->t, &p->root, false, "WaitForFirstConsumer",
                   "waiting for first consumer to be created before binding");
    } else {
        ctl_volume_provision(p);
    }
}

static void reconcile_claim(struct ctl *c, struct pass *t)
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
        ctl_volume_bind_named(&p);
    } else {
        ctl_volume_choose_volume(&p);
    }
}

/* ---- one volume ---- */

static const char *ctl_volume_volume_phase(struct ctl *c, const struct json *root)
{
    const struct mirror *claims = ctl_mirror(c, API_PVC);
    const struct json *ref = json_at(root, "spec.claimRef");
    const struct hk_str uid = ctl_volume_str_at(ref, "uid");
    uint32_t row;

    if (!ref || uid.n == 0) {
        return "Available"; /* also while it waits for a claim of that name */
    }
    row = mirror_find(claims, ctl_volume_str_at(ref, "namespace"), ctl_volume_str_at(ref, "name"));
    return row != HK_NONE && hk_str_eq(mirror_uid(claims, row), uid) ? "Bound" : "Released";
}

static void reclaim(struct pass *t, const struct json *root)
{
    const bool ours =
        hk_str_is(ctl_volume_annotation(root, API_ANN_PROVISIONED_BY), API_PROVISIONER_LOCAL);
    const bool wanted =
        hk_str_is(ctl_volume_str_at(root, "spec.persistentVolumeReclaimPolicy"), "Retain");

    if (ours && !wanted && !json_at(root, "metadata.deletionTimestamp")) {
        pass_delete(t, api_kind(API_PV), none, t->name, ctl_volume_str_at(root, "metadata.uid"),
                    PORT_PROPAGATE_DEFAULT);
    }
}

static void reconcile_volume(struct ctl *c, struct pass *t)
{
    const struct mirror *volumes = ctl_mirror(c, API_PV);
    const uint32_t row = mirror_find(volumes, none, t->name);
    struct json root, body = json_make_object();
    const char *phase;

    if (row == HK_NONE) {
        return;
    }
    root = mirror_read(volumes, row, t->mem);
    phase = ctl_volume_volume_phase(c, &root);
    if (!hk_str_is(ctl_volume_str_at(&root, "status.phase"), phase)) {
        json_set_cstr(json_set_object(&body, t->mem, "status"), t->mem, "phase", phase);
        pass_patch(t, &(struct pass_patch){.kind = api_kind(API_PV),
                                           .name = t->name,
                                           .subresource = "status",
                                           .type = PORT_PATCH_MERGE,
                                           .body = &body});
    } else if (strcmp(phase, "Released") == 0) {
        reclaim(t, &root);
    }
}

static void volume_reconcile(struct ctl *c, struct pass *t)
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
