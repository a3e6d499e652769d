// SPDX-License-Identifier: Apache-2.0
// Equality like Go's apiequality.Semantic, over JSON: absent, null and empty are equal, and amounts
// are compared by value. Numbers and booleans must exist on both sides: whether a zero means absent
// depends on the field's type, and to accept a forbidden change would be worse.
#include "admission/vc_priv.h"

/* Members that map resource names to amounts. */
static const char *const amount_lists[] = {"requests", "limits", "overhead", "capacity"};
/* Members that are maps: a key counts even if its value is empty. */
static const char *const maps[] = {"plugins", "labels", "annotations", "matchLabels"};
/* Members that are a single amount. */
static const char *const single_amounts[] = {"sizeLimit", "divisor"};

static bool is_one_of(struct hk_str key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (hk_str_is(key, list[i])) {
            return true;
        }
    }
    return false;
}

static bool is_empty(const struct json *v)
{
    return !v || v->type == JSON_NULL ||
           (v->len == 0 &&
            (v->type == JSON_STRING || v->type == JSON_ARRAY || v->type == JSON_OBJECT));
}

/* True when every member of a has an equal in b. */
static bool vc_same_has_all_members(const struct json *a, const struct json *b,
                                    bool (*same)(const struct json *, const struct json *,
                                                 struct hk_str))
{
    for (uint32_t i = 0; i < edit_size(a); i++) {
        if (!same(a, b, a->members[i].key)) {
            return false;
        }
    }
    return true;
}

static bool same_entry(const struct json *a, const struct json *b, struct hk_str key)
{
    return json_get_str(b, key) && vc_same(json_get_str(a, key), json_get_str(b, key));
}

static bool same_map(const struct json *a, const struct json *b)
{
    return edit_size(a) == edit_size(b) && vc_same_has_all_members(a, b, same_entry);
}

static bool same_member(const struct json *a, const struct json *b, struct hk_str key)
{
    const struct json *x = json_get_str(a, key);
    const struct json *y = json_get_str(b, key);
    struct quantity p;
    struct quantity q;

    if (is_one_of(key, amount_lists, HK_LEN(amount_lists))) {
        return vc_same_amounts(x, y);
    }
    if (is_one_of(key, single_amounts, HK_LEN(single_amounts)) && amount_get(a, key, &p) &&
        amount_get(b, key, &q)) {
        return quantity_cmp(p, q) == 0;
    }
    return is_one_of(key, maps, HK_LEN(maps)) ? same_map(x, y) : vc_same(x, y);
}

static bool same_amount(const struct json *a, const struct json *b, struct hk_str key)
{
    struct quantity p;
    struct quantity q;

    return amount_get(a, key, &p) && amount_get(b, key, &q)
               ? quantity_cmp(p, q) == 0
               : vc_same(json_get_str(a, key), json_get_str(b, key));
}

bool vc_same_amounts(const struct json *a, const struct json *b)
{
    return vc_same_has_all_members(a, b, same_amount) && vc_same_has_all_members(b, a, same_amount);
}

bool vc_same(const struct json *a, const struct json *b)
{
    if (is_empty(a) || is_empty(b)) {
        return is_empty(a) && is_empty(b);
    }
    if (a->type == JSON_OBJECT && b->type == JSON_OBJECT) {
        return vc_same_has_all_members(a, b, same_member) &&
               vc_same_has_all_members(b, a, same_member);
    }
    if (a->type == JSON_ARRAY && b->type == JSON_ARRAY) {
        bool same = a->len == b->len;
        for (uint32_t i = 0; same && i < a->len; i++) {
            same = vc_same(json_item(a, i), json_item(b, i));
        }
        return same;
    }
    return json_equal(a, b);
}
