// SPDX-License-Identifier: Apache-2.0
// Namespaces: defaults of new ones, no creation in a missing or terminating one, and protection of
// the three that every cluster has.
#include "admission/admission_priv.h"

#define NAME_LABEL_KEY "kubernetes.io/metadata.name"

int admit_namespace_lifecycle(struct admission_request *q, struct hk_err *err)
{
    const struct json *ns;

    if (!q->kind->namespaced || !q->lookup) {
        return 0;
    }
    ns = admit_get(q, api_kind(API_NAMESPACE), HK_STR(""), q->ns);
    if (!ns) {
        return hk_fail(err, HK_ENOTFOUND, "namespaces \"%.*s\" not found", HK_FMT(q->ns));
    }
    if (edit_has(json_get(ns, "metadata"), "deletionTimestamp")) {
        cause_add(q, "NamespaceTerminating", "metadata.namespace",
                  hk_arena_printf(q->mem, "namespace %.*s is being terminated", HK_FMT(q->ns)));
        return hk_fail(err, HK_EDENIED,
                       "unable to create new content in namespace %.*s because it is being "
                       "terminated",
                       HK_FMT(q->ns));
    }
    return 0;
}

int admit_namespace_default(struct admission_request *q, struct hk_err *err)
{
    struct json *metadata = json_need(q->obj, q->mem, "metadata", JSON_OBJECT);
    const struct hk_str name = edit_str(metadata, "name");

    if (name.n > 0) {
        json_set_str(json_need(metadata, q->mem, "labels", JSON_OBJECT), q->mem, NAME_LABEL_KEY,
                     name);
    }
    if (q->verb == ADMIT_CREATE) {
        struct json *finalizers = json_need(json_need(q->obj, q->mem, "spec", JSON_OBJECT), q->mem,
                                            "finalizers", JSON_ARRAY);
        if (!edit_list_has(finalizers, HK_STR("kubernetes"))) {
            json_push(finalizers, q->mem, json_make_str(HK_STR("kubernetes")));
        }
        struct json status = json_make_object();
        json_set_cstr(&status, q->mem, "phase", "Active");
        json_set(q->obj, q->mem, "status", status);
    }
    return 0;
}

int admit_namespace_keep(struct admission_request *q, struct hk_err *err)
{
    static const char *const kept[] = {"default", "kube-system", "kube-public"};

    for (size_t i = 0; i < HK_LEN(kept); i++) {
        if (hk_str_is(q->name, kept[i])) {
            return hk_fail(err, HK_EDENIED, "this namespace may not be deleted");
        }
    }
    return 0;
}
