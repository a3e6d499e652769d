// SPDX-License-Identifier: Apache-2.0
// JSON: our reader and jansson's agree on every text, and what we read we write so that it reads
// back the same.

#include "codec/json_oracle.h"
#include "fuzz/fuzz.h"

static bool is_number(const struct json *v)
{
    return v->type == JSON_INT || v->type == JSON_UINT || v->type == JSON_DOUBLE;
}

static double as_double(const struct json *v)
{
    return v->type == JSON_INT ? (double)v->i : v->type == JSON_UINT ? (double)v->u : v->d;
}

/* The same tree in the same order. A double beyond 2^53 is written with its shortest digits and
 * zeros, which may read back as an integer that only rounds to it. */
static bool same(const struct json *a, const struct json *b)
{
    if (is_number(a) && is_number(b)) {
        return json_equal(a, b) || (a->type == JSON_DOUBLE && as_double(a) == as_double(b));
    }
    if (a->type != b->type || a->len != b->len) {
        return false;
    }
    if (a->type != JSON_ARRAY && a->type != JSON_OBJECT) {
        return json_equal(a, b);
    }
    for (uint32_t i = 0; i < a->len; i++) {
        const bool equal = a->type == JSON_ARRAY
                               ? same(&a->items[i], &b->items[i])
                               : hk_str_eq(a->members[i].key, b->members[i].key) &&
                                     same(&a->members[i].value, &b->members[i].value);
        if (!equal) {
            return false;
        }
    }
    return true;
}

static void check_round_trip(const struct json *v, unsigned indent)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_arena arena = {0};
    struct hk_err err = {0};
    struct json back;

    if (indent > 0) {
        json_write_pretty(v, indent, &text);
    } else {
        json_write(v, &text);
    }
    hk_assert(json_parse(hk_buf_str(&text), JSON_DUP_REJECT, &arena, &back, &err) == 0);
    hk_assert(same(v, &back));
    hk_arena_fini(&arena);
}

static void check_tree(const struct json *v)
{
    struct hk_arena arena = {0};

    check_round_trip(v, 0);
    check_round_trip(v, 2);
    const struct json copy = json_clone(v, &arena);
    hk_assert(json_equal(v, &copy));
    hk_arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hk_str text = {(const char *)data, size};
    struct hk_arena arena = {0};
    struct json v, strict;

    hk_assert(json_oracle_agrees(text));
    if (json_parse(text, 0, &arena, &v, NULL) == 0) {
        check_tree(&v);
        if (json_parse(text, JSON_DUP_REJECT, &arena, &strict, NULL) == 0) {
            hk_assert(json_equal(&v, &strict));
        }
    }
    hk_arena_fini(&arena);
    return 0;
}
