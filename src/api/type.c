// SPDX-License-Identifier: Apache-2.0
// The table of built-in types. types.def, which scripts/api-types writes, has one TYPE per message,
// its fields in order of their protobuf numbers, and one ROOT per kind:
//
//   FIELD(number, name, form, flags)           a plain value
//   MESSAGE(number, name, type, flags)         an object of another type
//   MERGED(number, name, type, flags, key)     a list of such, merged by key in patches
//   INLINE(number, type)                       a message whose fields are part of this object
//   ROOT(version, kind, type)                  version as in manifests
//
// TYPE_AS gives a type a name that differs from its unique name here; EMPTY is a type without
// fields. PACKAGE is the prefix of the names in OpenAPI.
//
// about_*.def are written by hand and describe types and fields: every type has an ABOUT, with its
// own text first and pairs of name and text after it.
//
// types.def is read three times: types refer to each other in any order, so all are declared first,
// and kinds come last.
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
    REQUIRED = API_REQUIRED,
    APPLY_ONLY = API_APPLY_ONLY,
};

#define TYPE_AS(name, shown, ...) static const struct api_type type_##name;
#define TYPE(name, ...) TYPE_AS(name, #name, __VA_ARGS__)
#define EMPTY(name) TYPE_AS(name, #name)
#define ROOT(version, kind, type)
#include "api/types.def"
#undef TYPE_AS
#undef EMPTY

#define COMMON(...) static const char *const about_common[] = {__VA_ARGS__, NULL};
#define KINDS(...) static const char *const about_kinds[] = {__VA_ARGS__, NULL};
#define ABOUT(name, ...) static const char *const about_##name[] = {__VA_ARGS__, NULL};
#include "api/about_apps.def"
#include "api/about_control.def"
#include "api/about_core.def"
#include "api/about_meta.def"
#include "api/about_more.def"
#include "api/about_pod.def"
#include "api/about_rest.def"
#include "api/about_volume.def"

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
#define EMPTY(name)                                                                                \
    static const struct api_type type_##name = {#name, PACKAGE, about_##name, NULL, 0};
#include "api/types.def"

#undef PACKAGE
#define PACKAGE "io.k8s.apimachinery.pkg.apis.meta.v1"
TYPE(Object, MESSAGE(1, "metadata", ObjectMeta, KEEP))

#undef TYPE_AS
#undef EMPTY
#undef ROOT
#define TYPE_AS(name, shown, ...)
#define EMPTY(name)
#define ROOT(version, kind, type) {version, kind, &type_##type},

static const struct api_root roots[] = {
#include "api/types.def"
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

const struct api_type *api_type_plain(void)
{
    return &type_Object;
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

bool api_field_patch_merges(const struct api_field *f)
{
    return (f->merge_key || (f->flags & API_SET)) && !(f->flags & API_APPLY_ONLY);
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
