// SPDX-License-Identifier: Apache-2.0
// Strategic merge patch: walks patch and object along the type of the kind, which defines the lists
// that merge and their keys. The order follows apimachinery's strategicpatch package: elements of
// the patch keep their order, the others keep their place relative to elements that both sides
// have, so new elements come first.
#include "api/patch.h"

#include "api/type.h"

#include <stdlib.h>

enum { LIST_MAX = 10000 }; /* matching is quadratic; real lists are much shorter */

static const char DIR_PATCH[] = "$patch";
static const char DIR_RETAIN[] = "$retainKeys";
static const char DIR_ORDER[] = "$setElementOrder/";
static const char DIR_DELETE[] = "$deleteFromPrimitiveList/";

struct patcher {
    struct hk_arena *a;
    struct hk_err *err;
};

/* The current position: an object of the type, or a map of such. Without a type only maps merge. */
struct place {
    const struct api_type *type;
    bool map;
};

static int merge_object(const struct patcher *p, struct place at, struct json *target,
                        const struct json *patch);

static const struct api_field *field_at(struct place at, struct hk_str name)
{
    return at.type && !at.map ? api_type_name(at.type, name) : NULL;
}

static struct place patch_strategic_field_place(struct place at, const struct api_field *f)
{
    if (at.map) {
        return (struct place){.type = at.type};
    }
    return (struct place){.type = f ? f->type : NULL, .map = f && (f->flags & API_MAP)};
}

static bool merges(const struct api_field *f)
{
    return f && api_field_patch_merges(f);
}

static bool has_directive(const struct json *obj, const char *word)
{
    return hk_str_is(json_str_field(obj, DIR_PATCH), word);
}

static bool is_directive(struct hk_str key)
{
    return hk_str_is(key, DIR_PATCH) || hk_str_is(key, DIR_RETAIN) ||
           hk_str_starts(key, DIR_ORDER) || hk_str_starts(key, DIR_DELETE);
}

static int check_directive(const struct patcher *p, const struct json *obj, bool in_list)
{
    const struct json *v = json_get(obj, DIR_PATCH);
    const struct hk_str word = json_str(v, HK_STR(""));

    if (!v || hk_str_is(word, "replace") || hk_str_is(word, "delete") ||
        (hk_str_is(word, "merge") && !in_list)) {
        return 0;
    }
    return hk_fail(p->err, HK_EINVAL, "unknown patch type '%.*s'", HK_FMT(word));
}

/* A patch value without a value to merge with: removes nulls and directives. */
static struct json patch_strategic_strip_directives(const struct patcher *p, const struct json *v)
{
    struct json out = *v;

    if (v->type == JSON_ARRAY) {
        out = json_make_array();
        for (uint32_t i = 0; i < v->len; i++) {
            if (!json_get(&v->items[i], DIR_PATCH)) {
                json_push(&out, p->a, patch_strategic_strip_directives(p, &v->items[i]));
            }
        }
    } else if (v->type == JSON_OBJECT) {
        out = json_make_object();
        for (uint32_t i = 0; i < v->len; i++) {
            const struct json_member *m = &v->members[i];
            if (m->value.type != JSON_NULL && !is_directive(m->key) &&
                !has_directive(&m->value, "delete")) {
                json_put(&out, p->a, m->key, patch_strategic_strip_directives(p, &m->value));
            }
        }
    }
    return out;
}

/* ---- lists ---- */

static uint32_t find_element(const struct json *list, const char *key, const struct json *like)
{
    const struct json *want = key ? json_get(like, key) : like;

    for (uint32_t i = 0; want && i < list->len; i++) {
        const struct json *have = key ? json_get(&list->items[i], key) : &list->items[i];
        if (have && json_equal(have, want)) {
            return i;
        }
    }
    return UINT32_MAX;
}

static void remove_element(struct json *list, uint32_t i)
{
    memmove(&list->items[i], &list->items[i + 1], (list->len - i - 1) * sizeof(list->items[0]));
    list->len--;
}

/* A copy whose elements may be moved. */
static struct json open_list(const struct json *old, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t i = 0; i < json_len(old); i++) {
        json_push(&list, a, old->items[i]);
    }
    return list;
}

struct slot {
    struct json value;
    uint32_t wanted; /* index in the wanted order; UINT32_MAX: not in the patch */
    uint32_t live;   /* index in the list before the patch */
    uint32_t i;
};

static int slot_cmp(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;

    if (x->wanted != y->wanted) {
        return x->wanted < y->wanted ? -1 : 1;
    }
    return x->i < y->i ? -1 : x->i > y->i;
}

/* Elements listed in wanted come in that order. Every other element goes before the first of them
 * that it preceded in the live list. */
static void arrange(const struct patcher *p, const struct api_field *f, struct json *list,
                    const struct json *wanted, const struct json *live)
{
    struct slot *slots = hk_arena_array(p->a, list->len + 1, sizeof(*slots));
    uint32_t known = 0, left, right = 0;

    for (uint32_t i = 0; i < list->len; i++) {
        slots[i] =
            (struct slot){list->items[i], find_element(wanted, f->merge_key, &list->items[i]),
                          find_element(live, f->merge_key, &list->items[i]), i};
        known += slots[i].wanted != UINT32_MAX;
    }
    qsort(slots, list->len, sizeof(*slots), slot_cmp);
    left = known;
    for (uint32_t i = 0; i < list->len; i++) {
        const bool both = left < list->len && right < known && slots[left].live != UINT32_MAX &&
                          slots[right].live != UINT32_MAX;
        const bool take_left = right == known || (both && slots[left].live < slots[right].live);
        list->items[i] = take_left ? slots[left++].value : slots[right++].value;
    }
}

static int check_lengths(const struct patcher *p, const struct api_field *f, const struct json *a,
                         const struct json *b)
{
    if ((a && a->len > LIST_MAX) || (b && b->len > LIST_MAX)) {
        return hk_fail(p->err, HK_ELIMIT, "%s: cannot merge lists of more than %d elements",
                       f->name, LIST_MAX);
    }
    return 0;
}

/* The order directive must list the elements of the patch, in the same order. */
static int check_order(const struct patcher *p, const struct api_field *f, const struct json *order,
                       const struct json *patch)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < patch->len; i++) {
        if (json_get(&patch->items[i], DIR_PATCH)) {
            continue;
        }
        const struct json rest = {
            .type = JSON_ARRAY, .len = order->len - at, .items = order->items + at};
        const uint32_t found = find_element(&rest, f->merge_key, &patch->items[i]);
        if (found == UINT32_MAX) {
            return hk_fail(p->err, HK_EINVAL, "The order in patch list doesn't match %s%s list",
                           DIR_ORDER, f->name);
        }
        at += found + 1;
    }
    return 0;
}

static int merge_element(const struct patcher *p, const struct api_field *f, struct json *list,
                         const struct json *item)
{
    const uint32_t at = find_element(list, f->merge_key, item);

    if (has_directive(item, "delete")) {
        if (at != UINT32_MAX) {
            remove_element(list, at);
        }
        return 0;
    }
    if (at == UINT32_MAX) {
        json_push(list, p->a, patch_strategic_strip_directives(p, item));
        return 0;
    }
    return f->merge_key ? merge_object(p, (struct place){.type = f->type}, &list->items[at], item)
                        : 0;
}

static int check_element(const struct patcher *p, const struct api_field *f,
                         const struct json *item)
{
    if (!f->merge_key) {
        return 0;
    }
    if (item->type != JSON_OBJECT) {
        return hk_fail(p->err, HK_EINVAL, "%s: expected objects, found %s", f->name,
                       json_type_name(item->type));
    }
    if (!has_directive(item, "replace") && !json_get(item, f->merge_key)) {
        return hk_fail(p->err, HK_EINVAL, "map: %s does not contain declared merge key: %s",
                       f->name, f->merge_key);
    }
    return check_directive(p, item, true);
}

static int merge_list(const struct patcher *p, const struct api_field *f, const struct json *old,
                      const struct json *patch, const struct json *order, struct json *ret)
{
    bool replace = false;
    int rc = check_lengths(p, f, old, patch);

    for (uint32_t i = 0; i < patch->len && rc == 0; i++) {
        rc = check_element(p, f, &patch->items[i]);
        replace = replace || has_directive(&patch->items[i], "replace");
    }
    if (rc == 0 && order) {
        rc = check_order(p, f, order, patch);
    }
    if (rc < 0 || replace) {
        *ret = patch_strategic_strip_directives(p, patch);
        return rc;
    }
    *ret = open_list(old, p->a);
    for (uint32_t i = 0; i < patch->len && rc == 0; i++) {
        rc = merge_element(p, f, ret, &patch->items[i]);
    }
    arrange(p, f, ret, order ? order : patch, old);
    return rc;
}

/* ---- objects ---- */

/* The order directive for the field, if present and a list. */
static const struct json *order_for(const struct patcher *p, const struct json *patch,
                                    struct hk_str field)
{
    const char *key = hk_arena_printf(p->a, "%s%.*s", DIR_ORDER, HK_FMT(field));
    const struct json *order = json_get(patch, key);

    return json_is(order, JSON_ARRAY) ? order : NULL;
}

static int merge_member(const struct patcher *p, struct place at, struct json *target,
                        const struct json *patch, const struct json_member *m)
{
    const struct api_field *f = field_at(at, m->key);
    const struct json *old = json_get_str(target, m->key);
    int rc = 0;

    if (m->value.type == JSON_NULL || has_directive(&m->value, "delete")) {
        json_hide(target, m->key);
        return 0;
    }
    struct json value;
    if (!old || old->type != m->value.type) {
        value = patch_strategic_strip_directives(p, &m->value);
    } else if (m->value.type == JSON_ARRAY && merges(f)) {
        rc = merge_list(p, f, old, &m->value, order_for(p, patch, m->key), &value);
    } else if (m->value.type == JSON_OBJECT && !(f && (f->flags & API_REPLACE))) {
        value = *old;
        rc = merge_object(p, patch_strategic_field_place(at, f), &value, &m->value);
    } else {
        value = patch_strategic_strip_directives(p, &m->value);
    }
    json_put(target, p->a, m->key, value);
    return rc;
}

static int retain_keys(const struct patcher *p, struct json *target, const struct json *patch)
{
    const struct json *keys = json_get(patch, DIR_RETAIN);
    struct json kept = json_make_object();

    if (!keys) {
        return 0;
    }
    for (uint32_t i = 0; i < patch->len; i++) {
        const struct json name = json_make_str(patch->members[i].key);
        if (!is_directive(patch->members[i].key) && patch->members[i].value.type != JSON_NULL &&
            find_element(keys, NULL, &name) == UINT32_MAX) {
            return hk_fail(p->err, HK_EINVAL,
                           "The map under '%.*s' is not named in the $retainKeys list",
                           HK_FMT(patch->members[i].key));
        }
    }
    for (uint32_t i = 0; i < target->len; i++) {
        const struct json name = json_make_str(target->members[i].key);
        if (find_element(keys, NULL, &name) != UINT32_MAX) {
            json_put(&kept, p->a, target->members[i].key, target->members[i].value);
        }
    }
    *target = kept;
    return 0;
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

static void delete_plain(const struct patcher *p, struct json *target, struct hk_str field,
                         const struct json *values)
{
    struct json list = open_list(json_get_str(target, field), p->a);

    for (uint32_t i = 0; i < list.len;) {
        if (find_element(values, NULL, &list.items[i]) != UINT32_MAX) {
            remove_element(&list, i);
        } else {
            i++;
        }
    }
    json_put(target, p->a, field, list);
}

/* Orders a list that the patch does not change otherwise. */
static int set_order(const struct patcher *p, struct place at, struct json *target,
                     struct hk_str field, const struct json *order)
{
    const struct api_field *f = field_at(at, field);
    const struct json *live = json_get_str(target, field);

    if (!merges(f) || !json_is(live, JSON_ARRAY)) {
        return 0;
    }
    const int rc = check_lengths(p, f, live, order);
    if (rc == 0) {
        struct json list = open_list(live, p->a);
        arrange(p, f, &list, order, live);
        json_put(target, p->a, field, list);
    }
    return rc;
}

static int patch_strategic_apply_directive(const struct patcher *p, struct place at,
                                           struct json *target, const struct json *patch,
                                           const struct json_member *m)
{
    struct hk_str field;

    if (behind(m->key, DIR_ORDER, &field) && !json_get_str(patch, field)) {
        return set_order(p, at, target, field, &m->value);
    }
    if (behind(m->key, DIR_DELETE, &field) && json_get_str(target, field)) {
        const struct json *list = json_get_str(target, field);
        if (list->len > LIST_MAX || m->value.len > LIST_MAX) {
            return hk_fail(p->err, HK_ELIMIT, "%.*s: more than %d values", HK_FMT(m->key),
                           LIST_MAX);
        }
        delete_plain(p, target, field, &m->value);
    }
    return 0;
}

static int check_directives(const struct patcher *p, const struct json *patch)
{
    for (uint32_t i = 0; i < patch->len; i++) {
        const struct json_member *m = &patch->members[i];
        if (is_directive(m->key) && !hk_str_is(m->key, DIR_PATCH) && m->value.type != JSON_ARRAY) {
            return hk_fail(p->err, HK_EINVAL, "%.*s: expected a list", HK_FMT(m->key));
        }
    }
    return check_directive(p, patch, false);
}

/* The directive of a list element was applied before. */
static int merge_object(const struct patcher *p, struct place at, struct json *target,
                        const struct json *patch)
{
    int rc = check_directives(p, patch);

    if (rc == 0 && (has_directive(patch, "replace") || has_directive(patch, "delete"))) {
        *target = has_directive(patch, "delete") ? json_make_object()
                                                 : patch_strategic_strip_directives(p, patch);
        return 0;
    }
    if (target->type != JSON_OBJECT) {
        *target = json_make_object();
    }
    if (rc == 0) {
        rc = retain_keys(p, target, patch);
    }
    *target = *json_index(target, p->a);
    for (uint32_t i = 0; i < patch->len && rc == 0; i++) {
        if (!is_directive(patch->members[i].key)) {
            rc = merge_member(p, at, target, patch, &patch->members[i]);
        }
    }
    json_remove_hidden(target);
    /* These speak of the merged result. */
    for (uint32_t i = 0; i < patch->len && rc == 0; i++) {
        rc = patch_strategic_apply_directive(p, at, target, patch, &patch->members[i]);
    }
    return rc;
}

int api_patch_strategic(struct json *target, const struct json *patch, const struct api_kind *kind,
                        struct hk_arena *a, struct hk_err *err)
{
    const struct patcher p = {a, err};

    if (patch->type != JSON_OBJECT) {
        return hk_fail(err, HK_EINVAL, "a strategic merge patch must be an object, found %s",
                       json_type_name(patch->type));
    }
    return merge_object(&p, (struct place){.type = api_type_of(kind)}, target, patch);
}
