// SPDX-License-Identifier: Apache-2.0
// Merge patch. The decoder of the patch limits its depth.
#include "api/patch.h"

static void merge_member(struct json *target, const struct json_member *m, struct hk_arena *a)
{
    if (m->value.type == JSON_NULL) {
        json_hide(target, m->key);
        return;
    }
    const struct json *old = json_get_str(target, m->key);
    struct json value = m->value;
    if (value.type == JSON_OBJECT) {
        /* Merging, even into an empty object, removes the patch's nulls. */
        value = old ? *old : json_make_object();
        api_patch_merge(&value, &m->value, a);
    }
    json_put(target, a, m->key, value);
}

void api_patch_merge(struct json *target, const struct json *patch, struct hk_arena *a)
{
    if (patch->type != JSON_OBJECT) {
        *target = *patch;
        return;
    }
    if (target->type != JSON_OBJECT) {
        *target = json_make_object();
    }
    *target = *json_index(target, a);
    for (uint32_t i = 0; i < patch->len; i++) {
        merge_member(target, &patch->members[i], a);
    }
    json_remove_hidden(target);
}
