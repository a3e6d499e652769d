// SPDX-License-Identifier: Apache-2.0
// Kubernetes' semver library: versions of semver.org.
#include "cel/cel_priv.h"

#include <ctype.h>

/* ---- reading ---- */

static bool semver_is_number(struct hk_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] < '0' || s.s[i] > '9') {
            return false;
        }
    }
    return s.n > 0;
}

static bool semver_number(struct hk_str s, uint64_t *ret)
{
    *ret = 0;
    if (!semver_is_number(s) || (s.n > 1 && s.s[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (__builtin_mul_overflow(*ret, 10, ret) ||
            __builtin_add_overflow(*ret, (uint64_t)(s.s[i] - '0'), ret)) {
            return false;
        }
    }
    return true;
}

/* Identifiers joined by dots; numbers among those of a pre-release have no leading zeros. */
static bool semver_identifiers(struct hk_str s, bool pre)
{
    struct hk_str part;

    while (hk_str_cut(&s, '.', &part)) {
        for (size_t i = 0; i < part.n; i++) {
            const unsigned char c = (unsigned char)part.s[i];
            if (c >= 0x80 || (!isalnum(c) && c != '-')) {
                return false;
            }
        }
        if (part.n == 0 || (pre && part.n > 1 && part.s[0] == '0' && semver_is_number(part))) {
            return false;
        }
    }
    return true;
}

/* Cuts what follows the mark off the end of s. */
static bool semver_cut_tail(struct hk_str *s, char mark, struct hk_str *ret)
{
    const char *at = memchr(s->s, mark, s->n);

    *ret = HK_STR("");
    if (!at) {
        return true;
    }
    *ret = (struct hk_str){at + 1, s->n - (size_t)(at + 1 - s->s)};
    s->n = (size_t)(at - s->s);
    return semver_identifiers(*ret, mark == '-') && ret->n > 0;
}

/* "v1.2" as "1.2.0", "1.02.3" as "1.2.3". */
static struct hk_str semver_normalize(struct hk_str number)
{
    while (number.n > 1 && number.s[0] == '0') {
        number.s++;
        number.n--;
    }
    return number;
}

static bool semver_parse(struct hk_str s, bool normalize, struct cel_semver *ret)
{
    uint64_t numbers[3] = {0};
    struct hk_str part;
    unsigned i = 0;

    if (normalize && s.n > 0 && s.s[0] == 'v') {
        s.s++;
        s.n--;
    }
    if (s.n == 0 || !semver_cut_tail(&s, '+', &ret->build) ||
        !semver_cut_tail(&s, '-', &ret->pre)) {
        return false;
    }
    for (; hk_str_cut(&s, '.', &part); i++) {
        if (i == 3 || !semver_number(normalize ? semver_normalize(part) : part, &numbers[i])) {
            return false;
        }
    }
    ret->major = numbers[0];
    ret->minor = numbers[1];
    ret->patch = numbers[2];
    return i == 3 || (normalize && i > 0);
}

/* ---- order ---- */

static int semver_order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Numbers come before words and are compared as numbers: first by length, for they have no leading
 * zeros. */
static int semver_compare_identifier(struct hk_str a, struct hk_str b)
{
    const bool number_a = semver_is_number(a), number_b = semver_is_number(b);

    if (number_a != number_b) {
        return number_a ? -1 : 1;
    }
    return number_a && a.n != b.n ? semver_order(a.n, b.n) : hk_str_cmp(a, b);
}

/* A version without a pre-release comes after those that have one. */
static int semver_compare_pre(struct hk_str a, struct hk_str b)
{
    struct hk_str x, y;

    if (a.n == 0 || b.n == 0) {
        return a.n == b.n ? 0 : a.n == 0 ? 1 : -1;
    }
    for (;;) {
        const bool more_a = hk_str_cut(&a, '.', &x), more_b = hk_str_cut(&b, '.', &y);
        if (!more_a || !more_b) {
            return more_a - more_b;
        }
        const int order = semver_compare_identifier(x, y);
        if (order != 0) {
            return order < 0 ? -1 : 1;
        }
    }
}

int semver_compare(const struct cel_semver *a, const struct cel_semver *b)
{
    int order = semver_order(a->major, b->major);

    order = order != 0 ? order : semver_order(a->minor, b->minor);
    order = order != 0 ? order : semver_order(a->patch, b->patch);
    return order != 0 ? order : semver_compare_pre(a->pre, b->pre);
}

/* ---- functions ---- */

static int semver_new(struct cel_run *r, const struct cel_value *v, uint32_t n,
                      struct cel_value *ret)
{
    struct cel_semver *version = hk_arena_zalloc(r->a, sizeof(*version));
    const struct hk_str head = hk_str_head(v[0].s, 80);

    *ret = (struct cel_value){.kind = CEL_SEMVER, .semver = version};
    return semver_parse(v[0].s, n > 1 && v[1].b, version)
               ? 0
               : cel_error(r, "semver parse error during conversion from string: '%.*s'",
                           HK_FMT(head));
}

static int semver_is(struct cel_run *r, const struct cel_value *v, uint32_t n,
                     struct cel_value *ret)
{
    struct cel_semver version;

    *ret = cel_of_bool(semver_parse(v[0].s, n > 1 && v[1].b, &version));
    return 0;
}

static int semver_major(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    *ret = cel_of_int((int64_t)v[0].semver->major);
    return 0;
}

static int semver_minor(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    *ret = cel_of_int((int64_t)v[0].semver->minor);
    return 0;
}

static int semver_patch(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    *ret = cel_of_int((int64_t)v[0].semver->patch);
    return 0;
}

static int semver_less(struct cel_run *r, const struct cel_value *v, uint32_t n,
                       struct cel_value *ret)
{
    *ret = cel_of_bool(semver_compare(v[0].semver, v[1].semver) < 0);
    return 0;
}

static int semver_greater(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    *ret = cel_of_bool(semver_compare(v[0].semver, v[1].semver) > 0);
    return 0;
}

static int semver_compare_to(struct cel_run *r, const struct cel_value *v, uint32_t n,
                             struct cel_value *ret)
{
    *ret = cel_of_int(semver_compare(v[0].semver, v[1].semver));
    return 0;
}

static const struct cel_func semver_funcs[] = {
    {"semver", "s:v", semver_new, COST_TEXT},
    {"semver", "sb:v", semver_new, COST_TEXT},
    {"isSemver", "s:b", semver_is, COST_TEXT},
    {"isSemver", "sb:b", semver_is, COST_TEXT},
    {"major", "v.:i", semver_major, COST_ONE},
    {"minor", "v.:i", semver_minor, COST_ONE},
    {"patch", "v.:i", semver_patch, COST_ONE},
    {"isLessThan", "v.v:b", semver_less, COST_TEXT},
    {"isGreaterThan", "v.v:b", semver_greater, COST_TEXT},
    {"compareTo", "v.v:i", semver_compare_to, COST_TEXT},
};

const struct cel_lib cel_lib_semver = {semver_funcs, HK_LEN(semver_funcs)};
