// SPDX-License-Identifier: Apache-2.0
// Merge patch and strategic merge patch. Depth is bounded by the decoder that made the patch.
#include "api/patch.h"

/* json_del wants a NUL behind the key. */
static void drop(struct json *obj, struct hk_str key, struct hk_arena *a)
{
    json_del(obj, hk_arena_strndup(a, key.s, key.n));
}

static void merge_member(struct json *target, const struct json_member *m, struct hk_arena *a)
{
    if (m->value.type == JSON_NULL) {
        drop(target, m->key, a);
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

/* ---- strategic ---- */

/* Lists that merge, by the name of their field, which is enough to tell them apart among the
 * built-in kinds; of two keys for one name the first that the element has counts. Without a key the
 * list is a set of plain values. All other lists are replaced. */
static const struct {
    const char *field, *key;
} merge_keys[] = {
    {"conditions", "type"},
    {"containers", "name"},
    {"initContainers", "name"},
    {"ephemeralContainers", "name"},
    {"volumes", "name"},
    {"env", "name"},
    {"ports", "containerPort"},
    {"ports", "port"},
    {"volumeMounts", "mountPath"},
    {"volumeDevices", "devicePath"},
    {"schedulingGates", "name"},
    {"resourceClaims", "name"},
    {"resourceClaimStatuses", "name"},
    {"imagePullSecrets", "name"},
    {"secrets", "name"},
    {"hostAliases", "ip"},
    {"podIPs", "ip"},
    {"topologySpreadConstraints", "topologyKey"},
    {"ownerReferences", "uid"},
    {"taints", "key"},
    {"addresses", "type"},
    {"finalizers", NULL},
};

static const char DIR_PATCH[] = "$patch";
static const char DIR_RETAIN[] = "$retainKeys";
static const char DIR_ORDER[] = "$setElementOrder/";
static const char DIR_DELETE[] = "$deleteFromPrimitiveList/";

struct merge_list {
    struct hk_str field;
    const char *key; /* NULL: plain values */
};

/* False when the list is replaced as a whole. */
static bool find_list(struct hk_str field, const struct json *sample, struct merge_list *ret)
{
    bool found = false;

    for (size_t k = 0; k < HK_LEN(merge_keys); k++) {
        if (!hk_str_is(field, merge_keys[k].field)) {
            continue;
        }
        *ret = (struct merge_list){field, merge_keys[k].key};
        if (!ret->key || json_get(sample, ret->key)) {
            return true;
        }
        found = true;
    }
    return found;
}

static uint32_t find_element(const struct json *list, const char *key, const struct json *like)
{
    const struct json *want = key ? json_get(like, key) : like;

    for (uint32_t i = 0; i < list->len; i++) {
        const struct json *have = key ? json_get(&list->items[i], key) : &list->items[i];
        if (have && want && json_equal(have, want)) {
            return i;
        }
    }
    return list->len;
}

static void remove_element(struct json *list, uint32_t i)
{
    memmove(&list->items[i], &list->items[i + 1], (list->len - i - 1) * sizeof(list->items[0]));
    list->len--;
}

static bool has_directive(const struct json *obj, const char *word)
{
    return hk_str_is(json_str(json_get(obj, DIR_PATCH), HK_STR("")), word);
}

static int check_directive(const struct json *obj, struct hk_err *err)
{
    const struct hk_str word = json_str(json_get(obj, DIR_PATCH), HK_STR("merge"));

    if (hk_str_is(word, "merge") || hk_str_is(word, "replace") || hk_str_is(word, "delete")) {
        return 0;
    }
    return hk_fail(err, HK_EINVAL, "unknown $patch directive '%.*s'", HK_FMT(word));
}

static int merge_element(struct json *list, const struct merge_list *how, const struct json *item,
                         struct hk_arena *a, struct hk_err *err)
{
    const uint32_t at = find_element(list, how->key, item);
    int rc;

    if (!how->key) {
        if (at == list->len) {
            json_push(list, a, *item);
        }
        return 0;
    }
    if (!json_get(item, how->key)) {
        return hk_fail(err, HK_EINVAL, "%.*s: element does not contain declared merge key '%s'",
                       HK_FMT(how->field), how->key);
    }
    if (has_directive(item, "delete")) {
        if (at < list->len) {
            remove_element(list, at);
        }
        return 0;
    }
    struct json value = at < list->len ? list->items[at] : json_make_object();
    rc = api_patch_strategic(&value, item, a, err);
    if (rc == 0 && at < list->len) {
        list->items[at] = value;
    } else if (rc == 0) {
        json_push(list, a, value);
    }
    return rc;
}

/* A copy whose elements may be moved and exchanged. */
static struct json open_list(const struct json *old, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t i = 0; json_is(old, JSON_ARRAY) && i < old->len; i++) {
        json_push(&list, a, old->items[i]);
    }
    return list;
}

static int merge_list(struct json *target, const struct json_member *m, struct hk_arena *a,
                      struct hk_err *err)
{
    const struct json *patch = &m->value;
    struct merge_list how;

    if (patch->len == 0 || !find_list(m->key, &patch->items[0], &how)) {
        json_put(target, a, m->key, *patch);
        return 0;
    }
    bool fresh = false;
    for (uint32_t i = 0; i < patch->len; i++) {
        fresh = fresh || has_directive(&patch->items[i], "replace");
    }
    struct json list = open_list(fresh ? NULL : json_get_str(target, m->key), a);
    for (uint32_t i = 0; i < patch->len; i++) {
        if (fresh && has_directive(&patch->items[i], "replace")) {
            continue;
        }
        const int rc = merge_element(&list, &how, &patch->items[i], a, err);
        if (rc < 0) {
            return rc;
        }
    }
    json_put(target, a, m->key, list);
    return 0;
}

/* The listed elements come in the order given, in the places they hold together; elements the patch
 * does not know of stay where they are. */
static void set_order(struct json *target, struct hk_str field, const struct json *order,
                      struct hk_arena *a)
{
    struct json list = open_list(json_get_str(target, field), a);
    struct json *sorted = hk_arena_array(a, list.len + 1, sizeof(*sorted));
    bool *listed = hk_arena_zalloc(a, list.len + 1);
    struct merge_list how;
    uint32_t n = 0, next = 0;

    if (order->len == 0 || !find_list(field, &order->items[0], &how)) {
        return;
    }
    for (uint32_t i = 0; i < order->len; i++) {
        const uint32_t at = find_element(&list, how.key, &order->items[i]);
        if (at < list.len && !listed[at]) {
            listed[at] = true;
            sorted[n++] = list.items[at];
        }
    }
    for (uint32_t i = 0; i < list.len; i++) {
        if (listed[i]) {
            list.items[i] = sorted[next++];
        }
    }
    json_put(target, a, field, list);
}

static void delete_plain(struct json *target, struct hk_str field, const struct json *values,
                         struct hk_arena *a)
{
    struct json list = open_list(json_get_str(target, field), a);

    for (uint32_t i = 0; i < values->len; i++) {
        const uint32_t at = find_element(&list, NULL, &values->items[i]);
        if (at < list.len) {
            remove_element(&list, at);
        }
    }
    json_put(target, a, field, list);
}

static void retain_keys(struct json *target, const struct json *keys, struct hk_arena *a)
{
    struct json kept = json_make_object();

    for (uint32_t i = 0; i < target->len; i++) {
        const struct json name = json_make_str(target->members[i].key);
        if (find_element(keys, NULL, &name) < keys->len) {
            json_put(&kept, a, target->members[i].key, target->members[i].value);
        }
    }
    *target = kept;
}

static bool behind(struct hk_str key, const char *prefix, struct hk_str *ret)
{
    const size_t n = strlen(prefix);

    if (!hk_str_starts(key, prefix)) {
        return false;
    }
    *ret = (struct hk_str){key.s + n, key.n - n};
    return true;
}

static int directive(struct json *target, const struct json_member *m, struct hk_arena *a,
                     struct hk_err *err)
{
    struct hk_str field;

    if (hk_str_is(m->key, DIR_PATCH)) {
        return 0;
    }
    if (m->value.type != JSON_ARRAY) {
        return hk_fail(err, HK_EINVAL, "%.*s: expected a list", HK_FMT(m->key));
    }
    if (hk_str_is(m->key, DIR_RETAIN)) {
        retain_keys(target, &m->value, a);
    } else if (behind(m->key, DIR_ORDER, &field)) {
        set_order(target, field, &m->value, a);
    } else if (behind(m->key, DIR_DELETE, &field)) {
        delete_plain(target, field, &m->value, a);
    } else {
        return hk_fail(err, HK_EINVAL, "unknown directive '%.*s'", HK_FMT(m->key));
    }
    return 0;
}

static int strategic_member(struct json *target, const struct json_member *m, struct hk_arena *a,
                            struct hk_err *err)
{
    const struct json *old = json_get_str(target, m->key);
    int rc;

    if (m->value.type == JSON_NULL || has_directive(&m->value, "delete")) {
        drop(target, m->key, a);
        return 0;
    }
    if (m->value.type == JSON_ARRAY) {
        return merge_list(target, m, a, err);
    }
    struct json value = m->value;
    if (value.type == JSON_OBJECT) {
        value = old ? *old : json_make_object();
        rc = api_patch_strategic(&value, &m->value, a, err);
        if (rc < 0) {
            return rc;
        }
    }
    json_put(target, a, m->key, value);
    return 0;
}

int api_patch_strategic(struct json *target, const struct json *patch, struct hk_arena *a,
                        struct hk_err *err)
{
    int rc;

    if (patch->type != JSON_OBJECT) {
        *target = *patch;
        return 0;
    }
    rc = check_directive(patch, err);
    if (target->type != JSON_OBJECT || has_directive(patch, "replace")) {
        *target = json_make_object();
    }
    for (uint32_t i = 0; i < patch->len && rc == 0; i++) {
        if (!hk_str_starts(patch->members[i].key, "$")) {
            rc = strategic_member(target, &patch->members[i], a, err);
        }
    }
    /* Directives speak of the merged result. */
    for (uint32_t i = 0; i < patch->len && rc == 0; i++) {
        if (hk_str_starts(patch->members[i].key, "$")) {
            rc = directive(target, &patch->members[i], a, err);
        }
    }
    return rc;
}
