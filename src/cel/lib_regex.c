// SPDX-License-Identifier: Apache-2.0
// Regular expressions: matches, find and findAll. A constant pattern was compiled with the program.
#include "cel/cel_priv.h"

enum { SEARCH_COST = 10 };

/* The pattern of this call: the program's, or one of its own in *own. */
static int regex_compile(struct cel_run *r, struct hk_str pattern, struct re2 **own,
                         const struct re2 **ret)
{
    struct hk_err why = {0};

    *ret = r->re;
    if (r->re) {
        return 0;
    }
    if (re2_compile(pattern, own, &why) < 0) {
        return cel_error(r, "error parsing regexp: %s", why.text);
    }
    *ret = *own;
    return 0;
}

static int regex_matches(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    HK_AUTO(re2_freep) struct re2 *own = NULL;
    const struct re2 *re;
    const int rc = regex_compile(r, v[1].s, &own, &re);

    *ret = cel_of_bool(rc == 0 && re2_matches(re, v[0].s));
    return rc;
}

static int regex_search(struct cel_run *r, const struct re2 *re, struct hk_str s, size_t from,
                        struct hk_str *ret)
{
    const int rc = cel_spend(r, SEARCH_COST);

    if (rc < 0) {
        return rc;
    }
    const int found = re2_search(re, s, from, ret);
    /* Not an error that another operand absorbs: the search may be in a loop. */
    return found < 0 ? hk_fail(r->err, HK_ELIMIT, "the pattern takes too many steps on this text")
                     : found;
}

static int regex_find(struct cel_run *r, const struct cel_value *v, uint32_t n,
                      struct cel_value *ret)
{
    HK_AUTO(re2_freep) struct re2 *own = NULL;
    const struct re2 *re;
    struct hk_str hit = HK_STR("");
    int rc = regex_compile(r, v[1].s, &own, &re);

    if (rc == 0) {
        rc = regex_search(r, re, v[0].s, 0, &hit);
    }
    *ret = cel_of_str(hit);
    return HK_MIN(rc, 0);
}

/* All matches that do not overlap, at most `limit` if it is not negative. An empty match right
 * behind another match does not count, as in Go. */
static int regex_collect(struct cel_run *r, const struct re2 *re, struct hk_str s, int64_t limit,
                         struct cel_value *ret)
{
    HK_VEC(struct cel_value) hits = {0};
    size_t from = 0, last_end = SIZE_MAX, len;
    int rc = 0;

    while (rc == 0 && from <= s.n && limit != 0) {
        struct hk_str hit;
        rc = regex_search(r, re, s, from, &hit);
        if (rc <= 0) {
            break;
        }
        const size_t at = (size_t)(hit.s - s.s), end = at + hit.n;
        rc = cel_spend_text(r, s.n - from);
        if (hit.n > 0 || at != last_end) {
            hk_vec_push(&hits, cel_of_str(hit));
            limit -= limit > 0;
        }
        last_end = end;
        from = end;
        if (hit.n == 0 && from < s.n) {
            text_decode(s, from, &len);
            from += len;
        } else if (hit.n == 0) {
            from++;
        }
    }
    struct cel_value *items = hk_arena_array(r->a, hits.len, sizeof(*items));
    if (hits.len > 0) {
        memcpy(items, hits.at, hits.len * sizeof(*items));
    }
    *ret = cel_of_list(items, hits.len, r->a);
    hk_vec_fini(&hits);
    return HK_MIN(rc, 0);
}

static int regex_find_all(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    HK_AUTO(re2_freep) struct re2 *own = NULL;
    const struct re2 *re;
    const int rc = regex_compile(r, v[1].s, &own, &re);

    return rc < 0 ? rc : regex_collect(r, re, v[0].s, n > 2 ? v[2].i : -1, ret);
}

static const struct cel_func regex_funcs[] = {
    {"matches", "ss:b", regex_matches, COST_REGEX},
    {"matches", "s.s:b", regex_matches, COST_REGEX},
    {"find", "s.s:s", regex_find, COST_REGEX},
    {"findAll", "s.s:S", regex_find_all, COST_REGEX},
    {"findAll", "s.si:S", regex_find_all, COST_REGEX},
};

const struct cel_lib cel_lib_regex = {regex_funcs, HK_LEN(regex_funcs)};
