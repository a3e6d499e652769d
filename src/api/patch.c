// SPDX-License-Identifier: Apache-2.0
// Merge patch. Depth is bounded by the decoder that made the patch.
#include "api/patch.h"

static void merge_member(struct json *target, const struct json_member *m, struct hk_arena *a)
{
    if (m->value.type == JSON_NULL) {
        json_del(target, hk_arena_strndup(a, m->key.s, m->key.n));
        return;
    }
    const struct json *old = json_get_str(target, m->key);
    struct json value = m->value;
    if (value.type == JSON_OBJECT) {
        /* Merging even into nothing strips the patch's nulls. */
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
    for (uint32_t i = 0; i < patch->len; i++) {
        merge_member(target, &patch->members[i], a);
    }
}
