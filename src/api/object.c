// SPDX-License-Identifier: Apache-2.0
// Reference-counted API objects. The count is atomic because a store's thread and its watchers'
// threads drop references independently; nothing else in an object changes after creation.
#include "api/object.h"

#include <stdatomic.h>

static void object_free(struct api_object *o)
{
    hk_arena_fini(&o->arena);
    if (o->release) {
        o->release(o->owner);
    }
    hk_free(o);
}

/* metadata.name and similar members: a string, or absent. */
static int meta_str(const struct json *meta, const char *key, struct hk_str *ret,
                    struct hk_err *err)
{
    const struct json *v = json_get(meta, key);

    if (v && v->type != JSON_STRING && v->type != JSON_NULL) {
        return hk_fail(err, HK_EINVAL, "metadata.%s: want %s, have %s", key,
                       json_type_name(JSON_STRING), json_type_name(v->type));
    }
    *ret = json_str(v, HK_STR(""));
    return 0;
}

static int object_read_meta(struct api_object *o, struct hk_err *err)
{
    const struct json *meta = json_get(&o->root, "metadata");
    struct hk_str rv = {0};
    int64_t n = 0;

    const struct {
        const char *key;
        struct hk_str *to;
    } fields[] = {
        {"namespace", &o->ns}, {"name", &o->name}, {"uid", &o->uid}, {"resourceVersion", &rv}};

    for (size_t i = 0; i < HK_LEN(fields); i++) {
        const int rc = meta_str(meta, fields[i].key, fields[i].to, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (rv.n > 0 && (!hk_str_int(rv, &n) || n < 0)) {
        return hk_fail(err, HK_EINVAL, "metadata.resourceVersion: bad value '%.*s'", HK_FMT(rv));
    }
    o->rv = (uint64_t)n;
    return 0;
}

static int object_finish(struct api_object *o, const struct api_kind *kind, struct hk_err *err)
{
    if (!json_is(&o->root, JSON_OBJECT)) {
        return hk_fail(err, HK_EINVAL, "want an API object, have %s", json_type_name(o->root.type));
    }
    o->kind = kind;
    if (!kind) {
        const struct hk_str version = json_str_field(&o->root, "apiVersion");
        const struct hk_str name = json_str_field(&o->root, "kind");
        o->kind = api_kind_find(version, name);
        if (!o->kind) {
            return hk_fail(err, HK_EINVAL, "no kind '%.*s' in version '%.*s'", HK_FMT(name),
                           HK_FMT(version));
        }
    }
    return object_read_meta(o, err);
}

/* Takes o: passes it to the caller, or frees it on failure. */
static int object_return(struct api_object *o, const struct api_kind *kind, struct api_object **ret,
                         struct hk_err *err)
{
    const int rc = object_finish(o, kind, err);

    if (rc < 0) {
        object_free(o);
        return rc;
    }
    atomic_init(&o->refs, 1);
    *ret = o;
    return 0;
}

/* Takes o, whose text is set: passes it to the caller, or frees it on failure. */
static int object_read(struct api_object *o, const struct api_kind *kind, struct api_object **ret,
                       struct hk_err *err)
{
    const int rc = json_parse(o->text, 0, &o->arena, &o->root, err);

    if (rc < 0) {
        object_free(o);
        return rc;
    }
    return object_return(o, kind, ret, err);
}

int api_object_parse(const struct api_kind *kind, struct hk_str text, struct api_object **ret,
                     struct hk_err *err)
{
    struct api_object *o = hk_zalloc(sizeof(*o));

    o->text = hk_arena_str(&o->arena, text);
    return object_read(o, kind, ret, err);
}

int api_object_borrow(const struct api_kind *kind, struct hk_str text, bool tree, void *owner,
                      void (*release)(void *owner), struct api_object **ret, struct hk_err *err)
{
    struct api_object *o = hk_zalloc(sizeof(*o));

    o->text = text;
    o->owner = owner;
    o->release = release;
    if (tree) {
        return object_read(o, kind, ret, err);
    }
    o->kind = kind;
    atomic_init(&o->refs, 1);
    *ret = o;
    return 0;
}

int api_object_new(const struct api_kind *kind, const struct json *doc, struct api_object **ret,
                   struct hk_err *err)
{
    struct api_object *o = hk_zalloc(sizeof(*o));

    o->root = json_clone(doc, &o->arena);
    return object_return(o, kind, ret, err);
}

struct api_object *api_object_ref(struct api_object *o)
{
    atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    return o;
}

void api_object_unref(struct api_object *o)
{
    if (o && atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1) {
        object_free(o);
    }
}

void api_object_unrefp(struct api_object **o)
{
    api_object_unref(*o);
}
