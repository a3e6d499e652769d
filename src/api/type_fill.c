// SPDX-License-Identifier: Apache-2.0
// The fields that Go's JSON always shows. "omitempty" has no effect on a struct that is not a
// pointer, so objects of Kubernetes carry "status": {} and "resources": {}, and clients read
// them without asking whether they exist. No type contains itself other than through a pointer, a
// list or a map, so empty values have a limited depth.
//
// Two bytes of a body, "{}", can stand for a hundred: the number of values that are added is limited.
#include "api/type.h"

struct filler {
    struct hk_arena *a;
    uint32_t left; /* values that may still be added */
};

static void fill_missing(struct filler *w, const struct api_type *t, struct json *obj);
static void fill_object(struct filler *w, const struct api_type *t, struct json *obj);

static struct json fill_make_empty(struct filler *w, const struct api_field *f)
{
    struct json v = {.type = JSON_NULL};

    if (f->flags & (API_LIST | API_MAP | API_PTR)) {
        return v;
    }
    switch ((enum api_form)f->form) {
    case API_INT:
    case API_INT_OR_STRING:
        return json_make_int(0);
    case API_BOOL:
        return json_make_bool(false);
    case API_STRING:
        return json_make_str(HK_STR(""));
    case API_QUANTITY:
        return json_make_str(HK_STR("0"));
    case API_MESSAGE:
        v = json_make_object();
        fill_missing(w, f->type, &v);
        return v;
    case API_BYTES:
    case API_TIME:
    case API_MICRO_TIME:
    case API_RAW:
    case API_STRINGS:
        break;
    }
    return v;
}

static void fill_missing(struct filler *w, const struct api_type *t, struct json *obj)
{
    for (uint32_t i = 0; i < t->nfields && w->left > 0; i++) {
        const struct api_field *f = &t->fields[i];
        if (f->flags & API_INLINE) {
            fill_missing(w, f->type, obj);
        } else if ((f->flags & API_KEEP) && !json_get(obj, f->name)) {
            w->left--;
            json_set(obj, w->a, f->name, fill_make_empty(w, f));
        }
    }
}

/* A value of the field: one object, a list or a map of objects. */
static void fill_value(struct filler *w, const struct api_field *f, struct json *v)
{
    if (f->flags & API_LIST) {
        for (uint32_t i = 0; v->type == JSON_ARRAY && i < v->len; i++) {
            fill_object(w, f->type, &v->items[i]);
        }
    } else if (f->flags & API_MAP) {
        for (uint32_t i = 0; v->type == JSON_OBJECT && i < v->len; i++) {
            fill_object(w, f->type, &v->members[i].value);
        }
    } else {
        fill_object(w, f->type, v);
    }
}

static void fill_object(struct filler *w, const struct api_type *t, struct json *obj)
{
    if (obj->type != JSON_OBJECT) {
        return;
    }
    for (uint32_t i = 0; i < obj->len; i++) {
        const struct api_field *f = api_type_name(t, obj->members[i].key);
        if (f && f->form == API_MESSAGE) {
            fill_value(w, f, &obj->members[i].value);
        }
    }
    fill_missing(w, t, obj);
}

bool api_type_fill(const struct api_type *t, struct hk_arena *a, struct json *obj)
{
    struct filler w = {.a = a, .left = API_FILL_MAX + 1};

    fill_object(&w, t, obj);
    return w.left > 0;
}
