// SPDX-License-Identifier: Apache-2.0
// Small edits to JSON trees, with Go's view of them: null and, for strings, empty mean absent.
#include "admission/admission_priv.h"

bool edit_has(const struct json *obj, const char *key)
{
    const struct json *v = json_get(obj, key);

    return v && v->type != JSON_NULL;
}

struct json *edit_get(struct json *obj, const char *key)
{
    return edit_has(obj, key) ? (struct json *)json_get(obj, key) : NULL;
}

struct json *edit_at(struct json *obj, const char *path)
{
    struct json *v = (struct json *)json_at(obj, path);

    return v && v->type != JSON_NULL ? v : NULL;
}

void edit_default_str(struct json *obj, struct hk_arena *a, const char *key, const char *v)
{
    const struct json *now = json_get(obj, key);

    if (!edit_has(obj, key) || (now->type == JSON_STRING && now->len == 0)) {
        json_set_cstr(obj, a, key, v);
    }
}

void edit_default_int(struct json *obj, struct hk_arena *a, const char *key, int64_t v)
{
    if (!edit_has(obj, key)) {
        json_set_int(obj, a, key, v);
    }
}

void edit_default_bool(struct json *obj, struct hk_arena *a, const char *key, bool v)
{
    if (!edit_has(obj, key)) {
        json_set_bool(obj, a, key, v);
    }
}

void edit_default_object(struct json *obj, struct hk_arena *a, const char *key)
{
    if (!edit_has(obj, key)) {
        json_set_object(obj, a, key);
    }
}

bool edit_list_has(const struct json *list, struct hk_str text)
{
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct json *v = json_item(list, i);
        if (json_is(v, JSON_STRING) && hk_str_eq(json_str(v, HK_STR("")), text)) {
            return true;
        }
    }
    return false;
}

uint32_t edit_len(const struct json *list)
{
    return json_is(list, JSON_ARRAY) ? list->len : 0;
}

uint32_t edit_size(const struct json *obj)
{
    return json_is(obj, JSON_OBJECT) ? obj->len : 0;
}

struct hk_str edit_str(const struct json *obj, const char *key)
{
    return json_str(json_get(obj, key), HK_STR(""));
}
