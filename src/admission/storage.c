// SPDX-License-Identifier: Apache-2.0
// Storage classes, claims and volumes. Protection finalizers are not added: no controller here
// would remove them.
#include "admission/admission_priv.h"

#define DEFAULT_CLASS "storageclass.kubernetes.io/is-default-class"

/* ---- classes ---- */

int admit_storageclass_default(struct admission_request *q, struct hk_err *err)
{
    edit_default_str(q->obj, q->mem, "reclaimPolicy", "Delete");
    edit_default_str(q->obj, q->mem, "volumeBindingMode", "Immediate");
    return 0;
}

static void forbid_change(struct admission_request *q, const char *key)
{
    const struct path p = path_field(NULL, key);

    if (!hk_str_eq(edit_str(q->obj, key), edit_str(q->old, key))) {
        cause_forbidden(q, &p, "updates to %s are forbidden.", key);
    }
}

void admit_storageclass_validate(struct admission_request *q)
{
    static const char *const reclaims[] = {"Delete", "Retain", NULL};
    static const char *const modes[] = {"Immediate", "WaitForFirstConsumer", NULL};
    const struct path parameters = path_field(NULL, "parameters");

    cause_check_present(q, NULL, q->obj, "provisioner");
    cause_check_enum(q, NULL, q->obj, "reclaimPolicy", reclaims);
    cause_check_enum(q, NULL, q->obj, "volumeBindingMode", modes);
    if (q->verb != ADMIT_UPDATE) {
        return;
    }
    if (edit_size(json_get(q->obj, "parameters")) != edit_size(json_get(q->old, "parameters")) ||
        (edit_size(json_get(q->old, "parameters")) > 0 &&
         !json_equal(json_get(q->obj, "parameters"), json_get(q->old, "parameters")))) {
        cause_forbidden(q, &parameters, "updates to parameters are forbidden.");
    }
    forbid_change(q, "provisioner");
    forbid_change(q, "reclaimPolicy");
    cause_check_immutable(q, NULL, q->obj, q->old, "volumeBindingMode");
}

/* ---- claims ---- */

int admit_pvc_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);

    edit_default_str(spec, q->mem, "volumeMode", "Filesystem");
    if (q->verb == ADMIT_CREATE) {
        struct json status = json_make_object();
        json_set_cstr(&status, q->mem, "phase", "Pending");
        json_set(q->obj, q->mem, "status", status);
    }
    return 0;
}

struct search {
    struct hk_arena *mem;
    struct hk_str name, created; /* copies; name "": none so far */
};

/* Of several default classes the newest is used. */
static bool keep_newest(void *arg, const struct json *class)
{
    struct search *s = arg;
    const struct json *metadata = json_get(class, "metadata");
    const struct hk_str created = edit_str(metadata, "creationTimestamp");

    if (hk_str_is(edit_str(json_get(metadata, "annotations"), DEFAULT_CLASS), "true") &&
        (s->name.n == 0 || hk_str_cmp(created, s->created) > 0)) {
        s->name = hk_arena_str(s->mem, edit_str(metadata, "name"));
        s->created = hk_arena_str(s->mem, created);
    }
    return true;
}

int admit_pvc_class(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);
    struct search s = {.mem = q->mem};

    if (edit_has(spec, "storageClassName")) {
        return 0;
    }
    admit_each(q, api_kind(API_STORAGE_CLASS), HK_STR(""), keep_newest, &s);
    if (s.name.n > 0) {
        json_set_str(spec, q->mem, "storageClassName", s.name);
    }
    return 0;
}

static const char *const access_modes[] = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                           "ReadWriteOncePod", NULL};

static void check_modes(struct admission_request *q, const struct path *spec_path,
                        const struct json *modes)
{
    const struct path list = path_field(spec_path, "accessModes");

    if (edit_len(modes) == 0) {
        cause_required(q, &list, "at least 1 access mode is required");
    }
    for (uint32_t i = 0; i < edit_len(modes); i++) {
        const struct hk_str mode = json_str(json_item(modes, i), HK_STR(""));
        const struct path at = path_index(&list, i);
        bool known = false;
        for (uint32_t k = 0; access_modes[k]; k++) {
            known |= hk_str_is(mode, access_modes[k]);
        }
        if (!known) {
            cause_unsupported(q, &at, mode, access_modes);
        }
    }
}

/* Only resources and attributes of a claim may change. A volume may be set until it is bound, and a
 * class where there is none. */
static void check_claim_update(struct admission_request *q, const struct path *p)
{
    static const char *const fields[] = {"volumeName", "storageClassName", "resources",
                                         "volumeAttributesClassName"};
    const bool classed = edit_has(json_get(q->old, "spec"), "storageClassName");
    struct json now = json_clone_as(json_get(q->obj, "spec"), JSON_OBJECT, q->mem);
    struct json old = json_clone_as(json_get(q->old, "spec"), JSON_OBJECT, q->mem);
    const bool bound = edit_str(&old, "volumeName").n > 0;

    for (size_t i = 0; i < HK_LEN(fields); i++) {
        const bool may = i >= 2 || (!bound && (i == 0 || !classed));
        if (may) {
            json_del(&now, fields[i]);
            json_del(&old, fields[i]);
        }
    }
    if (!json_equal(&now, &old)) {
        cause_forbidden(q, p,
                        "spec is immutable after creation except resources.requests and "
                        "volumeAttributesClassName for bound claims");
    }
}

void admit_pvc_validate(struct admission_request *q)
{
    static const char *const modes[] = {"Block", "Filesystem", NULL};
    const struct json *spec = json_get(q->obj, "spec");
    const struct path p = path_field(NULL, "spec");
    const struct path resources = path_field(&p, "resources");
    const struct path storage = path_key(&resources, HK_STR("storage"));
    struct quantity v;

    check_modes(q, &p, json_get(spec, "accessModes"));
    if (!amount_get(json_at(spec, "resources.requests"), HK_STR("storage"), &v)) {
        cause_required(q, &storage, NULL);
    } else if (v.nano <= 0) {
        cause_invalid(q, &storage, json_at(spec, "resources.requests.storage"),
                      "must be greater than zero");
    }
    cause_check_enum(q, &p, spec, "volumeMode", modes);
    if (q->verb == ADMIT_UPDATE && q->old) {
        check_claim_update(q, &p);
    }
}

/* ---- volumes ---- */

int admit_pv_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);

    edit_default_str(spec, q->mem, "persistentVolumeReclaimPolicy", "Retain");
    edit_default_str(spec, q->mem, "volumeMode", "Filesystem");
    struct json *path = edit_get(spec, "hostPath");
    if (path) {
        edit_default_str(path, q->mem, "type", "");
    }
    if (q->verb == ADMIT_CREATE) {
        struct json status = json_make_object();
        json_set_cstr(&status, q->mem, "phase", "Pending");
        json_set(q->obj, q->mem, "status", status);
    }
    return 0;
}

/* What a volume is made of: its spec without what all kinds of volumes have, and what may change. */
static struct json volume_source(struct admission_request *q, const struct json *spec)
{
    static const char *const shared[] = {"capacity",
                                         "accessModes",
                                         "claimRef",
                                         "persistentVolumeReclaimPolicy",
                                         "storageClassName",
                                         "mountOptions",
                                         "volumeMode",
                                         "nodeAffinity",
                                         "volumeAttributesClassName"};
    static const char *const secrets[] = {"controllerExpandSecretRef", "nodeExpandSecretRef"};
    struct json source = json_clone_as(spec, JSON_OBJECT, q->mem);
    struct json *csi = edit_get(&source, "csi"), *path = edit_get(&source, "hostPath");

    for (size_t i = 0; i < HK_LEN(shared); i++) {
        json_del(&source, shared[i]);
    }
    for (size_t i = 0; csi && i < HK_LEN(secrets); i++) {
        json_del(csi, secrets[i]);
    }
    if (path && edit_str(path, "type").n == 0) { /* older versions did not store this default */
        json_del(path, "type");
    }
    return source;
}

static void check_volume_update(struct admission_request *q, const struct path *spec_path)
{
    const struct path p = path_field(spec_path, "persistentvolumesource");
    const struct json now = volume_source(q, json_get(q->obj, "spec"));
    const struct json old = volume_source(q, json_get(q->old, "spec"));

    if (!json_equal(&now, &old)) {
        cause_forbidden(q, &p, "spec.persistentvolumesource is immutable after creation");
    }
}

void admit_pv_validate(struct admission_request *q)
{
    static const char *const reclaims[] = {"Delete", "Recycle", "Retain", NULL};
    const struct json *spec = json_get(q->obj, "spec");
    const struct path p = path_field(NULL, "spec");

    check_modes(q, &p, json_get(spec, "accessModes"));
    cause_check_present(q, &p, spec, "capacity");
    if (q->verb == ADMIT_UPDATE) {
        check_volume_update(q, &p);
    }
    cause_check_enum(q, &p, spec, "persistentVolumeReclaimPolicy", reclaims);
}
