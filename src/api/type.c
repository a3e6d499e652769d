// SPDX-License-Identifier: Apache-2.0
// The table of built-in types. types_*.def have one TYPE per message, its fields in order of their
// protobuf numbers:
//
//   FIELD(number, name, form, flags)           a plain value
//   MESSAGE(number, name, type, flags)         an object of another type
//   MERGED(number, name, type, flags, key)     a list of such, merged by key in strategic patches
//   INLINE(number, type)                       a message whose fields are part of this object
//
// TYPE_AS gives a type a name that differs from its unique name here. PACKAGE is the prefix of the
// names in OpenAPI.
//
// about_*.def describe types and fields: every type has an ABOUT, with its own text first and pairs
// of name and text after it.
//
// The types are read twice: they refer to each other in any order, so all are declared first.
#include "api/type.h"

enum {
    LIST = API_LIST,
    MAP = API_MAP,
    PTR = API_PTR,
    KEEP = API_KEEP,
    SET = API_SET,
    REPLACE = API_REPLACE,
    RETAIN = API_RETAIN,
    LONG = API_LONG,
    OPTIONAL = API_OPTIONAL,
};

#define TYPE_AS(name, shown, ...) static const struct api_type type_##name;
#define TYPE(name, ...) TYPE_AS(name, #name, __VA_ARGS__)
#include "api/types_apps.def"
#include "api/types_core.def"
#include "api/types_more.def"
#include "api/types_rest.def"
#undef TYPE_AS

#define COMMON(...) static const char *const about_common[] = {__VA_ARGS__, NULL};
#define KINDS(...) static const char *const about_kinds[] = {__VA_ARGS__, NULL};
#define ABOUT(name, ...) static const char *const about_##name[] = {__VA_ARGS__, NULL};
#include "api/about_apps.def"
#include "api/about_core.def"
#include "api/about_meta.def"
#include "api/about_more.def"
#include "api/about_pod.def"
#include "api/about_rest.def"

#define FIELD(number, name, form, flags)                                                           \
    {                                                                                              \
        number, flags, API_##form, name, NULL, NULL                                                \
    }
#define MESSAGE(number, name, type, flags)                                                         \
    {                                                                                              \
        number, flags, API_MESSAGE, name, &type_##type, NULL                                       \
    }
#define MERGED(number, name, type, flags, key)                                                     \
    {                                                                                              \
        number, flags, API_MESSAGE, name, &type_##type, key                                        \
    }
#define INLINE(number, type)                                                                       \
    {                                                                                              \
        number, API_INLINE, API_MESSAGE, "", &type_##type, NULL                                    \
    }
#define TYPE_AS(name, shown, ...)                                                                  \
    static const struct api_field fields_##name[] = {__VA_ARGS__};                                 \
    static const struct api_type type_##name = {shown, PACKAGE, about_##name, fields_##name,       \
                                                HK_LEN(fields_##name)};
#include "api/types_apps.def"
#include "api/types_core.def"
#include "api/types_more.def"
#include "api/types_rest.def"

#undef PACKAGE
#define PACKAGE "io.k8s.apimachinery.pkg.apis.meta.v1"
TYPE(Object, MESSAGE(1, "metadata", ObjectMeta, 0))

#define ROOT(version, kind)                                                                        \
    {                                                                                              \
        version, #kind, &type_##kind                                                               \
    }

static const struct api_root roots[] = {
    ROOT("v1", Pod),
    ROOT("v1", Binding),
    ROOT("v1", Node),
    ROOT("v1", ConfigMap),
    ROOT("v1", Secret),
    ROOT("v1", Namespace),
    ROOT("v1", Service),
    ROOT("v1", Endpoints),
    ROOT("v1", Event),
    ROOT("v1", PersistentVolume),
    ROOT("v1", PersistentVolumeClaim),
    ROOT("v1", ResourceQuota),
    ROOT("v1", LimitRange),
    ROOT("v1", ReplicationController),
    ROOT("v1", ServiceAccount),
    ROOT("apps/v1", Deployment),
    ROOT("apps/v1", ReplicaSet),
    ROOT("apps/v1", StatefulSet),
    ROOT("apps/v1", DaemonSet),
    ROOT("batch/v1", Job),
    ROOT("batch/v1", CronJob),
    ROOT("batch/v1beta1", CronJob),
    ROOT("coordination.k8s.io/v1", Lease),
    ROOT("scheduling.k8s.io/v1", PriorityClass),
    ROOT("policy/v1", PodDisruptionBudget),
    ROOT("policy/v1", Eviction),
    ROOT("policy/v1beta1", PodDisruptionBudget),
    ROOT("policy/v1beta1", Eviction),
    ROOT("storage.k8s.io/v1", StorageClass),
    ROOT("storage.k8s.io/v1", CSINode),
    ROOT("node.k8s.io/v1", RuntimeClass),
    {"events.k8s.io/v1", "Event", &type_EventsEvent},
    ROOT("autoscaling/v1", Scale),
    ROOT("autoscaling/v1", HorizontalPodAutoscaler),
    {"autoscaling/v2", "HorizontalPodAutoscaler", &type_Autoscaler},
    ROOT("rbac.authorization.k8s.io/v1", Role),
    ROOT("rbac.authorization.k8s.io/v1", RoleBinding),
    ROOT("rbac.authorization.k8s.io/v1", ClusterRole),
    ROOT("rbac.authorization.k8s.io/v1", ClusterRoleBinding),
    ROOT("authentication.k8s.io/v1", TokenRequest),
    ROOT("authentication.k8s.io/v1", TokenReview),
    ROOT("authentication.k8s.io/v1", SelfSubjectReview),
    ROOT("authorization.k8s.io/v1", SubjectAccessReview),
    {"authorization.k8s.io/v1", "LocalSubjectAccessReview", &type_SubjectAccessReview},
    ROOT("authorization.k8s.io/v1", SelfSubjectAccessReview),
    ROOT("authorization.k8s.io/v1", SelfSubjectRulesReview),
    ROOT("networking.k8s.io/v1", NetworkPolicy),
    ROOT("networking.k8s.io/v1", Ingress),
    ROOT("networking.k8s.io/v1", IngressClass),
    ROOT("resource.k8s.io/v1", ResourceClaim),
    ROOT("resource.k8s.io/v1", ResourceClaimTemplate),
    ROOT("resource.k8s.io/v1", DeviceClass),
    ROOT("resource.k8s.io/v1", ResourceSlice),
};

const struct api_type *api_type_find(struct hk_str api_version, struct hk_str kind)
{
    if (hk_str_is(kind, "DeleteOptions")) {
        return &type_DeleteOptions;
    }
    for (size_t i = 0; i < HK_LEN(roots); i++) {
        if (hk_str_is(kind, roots[i].kind) && hk_str_is(api_version, roots[i].version)) {
            return roots[i].type;
        }
    }
    return NULL;
}

const struct api_type *api_type_of(const struct api_kind *kind)
{
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};
    const struct api_type *type = NULL;

    if (kind) {
        api_kind_write_version(kind, &version);
        type = api_type_find(hk_buf_str(&version), hk_str(kind->kind));
    }
    return type ? type : &type_Object;
}

const struct api_root *api_root(size_t i)
{
    return i < HK_LEN(roots) ? &roots[i] : NULL;
}

const struct api_root *api_root_of(const struct api_type *t)
{
    for (size_t i = 0; i < HK_LEN(roots); i++) {
        if (roots[i].type == t) {
            return &roots[i];
        }
    }
    return NULL;
}

const struct api_type *api_type_object_meta(void)
{
    return &type_ObjectMeta;
}

const struct api_type *api_type_list_meta(void)
{
    return &type_ListMeta;
}

static const char *find_about(const char *const *pairs, const char *name)
{
    for (; pairs[0]; pairs += 2) {
        if (!strcmp(pairs[0], name)) {
            return pairs[1];
        }
    }
    return NULL;
}

static const char *find_own_about(const struct api_type *t, const char *name)
{
    const char *text = find_about(t->about + 1, name);

    for (uint32_t i = 0; !text && i < t->nfields; i++) {
        if (t->fields[i].flags & API_INLINE) {
            text = find_own_about(t->fields[i].type, name);
        }
    }
    return text;
}

const char *api_field_about(const struct api_type *t, const char *name)
{
    const char *own = t ? find_own_about(t, name) : NULL;

    return own ? own : find_about(about_common, name);
}

const char *api_kind_about(const char *kind)
{
    const char *text = find_about(about_kinds, kind);

    return text ? text : type_Object.about[0];
}

const struct api_field *api_type_number(const struct api_type *t, uint32_t number)
{
    for (uint32_t i = 0; i < t->nfields; i++) {
        if (t->fields[i].number == number) {
            return &t->fields[i];
        }
    }
    return NULL;
}

const struct api_field *api_type_name(const struct api_type *t, struct hk_str name)
{
    for (uint32_t i = 0; i < t->nfields; i++) {
        const struct api_field *f = &t->fields[i];
        if (f->flags & API_INLINE) {
            f = api_type_name(f->type, name);
            if (f) {
                return f;
            }
        } else if (hk_str_is(name, f->name)) {
            return f;
        }
    }
    return NULL;
}
