// SPDX-License-Identifier: Apache-2.0
// Reading and changing parts of a document: metadata, finalizers, conditions. Calls no other rest
// file.
#include "store/rest_priv.h"

struct json *rest_edit(struct json *obj, struct hk_arena *a, const char *key)
{
    const struct json *v = json_get(obj, key);
    return json_set(obj, a, key, json_is(v, JSON_OBJECT) ? *v : json_make_object());
}

struct hk_str rest_meta_str(const struct json *doc, const char *key)
{
    return json_str(json_get(json_get(doc, "metadata"), key), HK_STR(""));
}

bool rest_deleting(const struct json *doc)
{
    return rest_meta_str(doc, "deletionTimestamp").n > 0;
}

static const struct json *finalizers_of(const struct json *doc)
{
    const struct json *v = json_at(doc, "metadata.finalizers");
    return json_is(v, JSON_ARRAY) ? v : NULL;
}

uint32_t rest_finalizers(const struct json *doc)
{
    const struct json *v = finalizers_of(doc);
    return v ? v->len : 0;
}

bool rest_has_finalizer(const struct json *doc, const char *name)
{
    const struct json *v = finalizers_of(doc);

    for (uint32_t i = 0; v && i < v->len; i++) {
        if (hk_str_is(json_str(&v->items[i], HK_STR("")), name)) {
            return true;
        }
    }
    return false;
}

bool rest_drop_finalizer(struct json *doc, struct hk_arena *a, const char *name)
{
    const struct json *v = finalizers_of(doc);
    struct json left = json_make_array();

    if (!rest_has_finalizer(doc, name)) {
        return false;
    }
    for (uint32_t i = 0; i < v->len; i++) {
        if (!hk_str_is(json_str(&v->items[i], HK_STR("")), name)) {
            json_push(&left, a, v->items[i]);
        }
    }
    struct json *meta = rest_edit(doc, a, "metadata");
    if (left.len == 0) {
        json_del(meta, "finalizers");
    } else {
        json_set(meta, a, "finalizers", left);
    }
    return true;
}

void rest_condition_put(struct json *doc, struct hk_arena *a, int64_t now_ns, const char *type,
                        const char *status, const char *reason, const char *message)
{
    struct json *st = rest_edit(doc, a, "status");
    const struct json *old = json_get(st, "conditions");
    struct json all = json_make_array();
    struct json mine = json_make_object();
    uint32_t at = HK_NONE;

    json_set_cstr(&mine, a, "type", type);
    for (uint32_t i = 0; json_is(old, JSON_ARRAY) && i < old->len; i++) {
        if (hk_str_is(json_str(json_get(&old->items[i], "type"), HK_STR("")), type)) {
            mine = json_clone(&old->items[i], a);
            at = i;
        }
        json_push(&all, a, old->items[i]);
    }
    if (!hk_str_is(json_str(json_get(&mine, "status"), HK_STR("")), status)) {
        json_set_time(&mine, a, "lastTransitionTime", now_ns);
    }
    json_set_cstr(&mine, a, "status", status);
    if (reason) {
        json_set_cstr(&mine, a, "reason", reason);
        json_set_cstr(&mine, a, "message", message);
    }
    if (at != HK_NONE) {
        all.items[at] = mine;
    } else {
        json_push(&all, a, mine);
    }
    json_set(rest_edit(doc, a, "status"), a, "conditions", all);
}
