// SPDX-License-Identifier: Apache-2.0
// The table of functions, and calls: the checker narrows a call to the overloads that may fit, the
// evaluation picks one by the kinds of the values and charges for it.
#include "cel/cel_priv.h"

static const struct cel_lib *const libs[] = {
    &cel_lib_core,   &cel_lib_convert,  &cel_lib_time,   &cel_lib_optional, &cel_lib_strings,
    &cel_lib_format, &cel_lib_lists,    &cel_lib_sets,   &cel_lib_regex,    &cel_lib_url,
    &cel_lib_net,    &cel_lib_quantity, &cel_lib_semver, &cel_lib_named,    &cel_lib_base64,
    &cel_lib_authz,  &cel_lib_patch,
};

static const struct {
    char letter;
    enum cel_kind kind;
} letters[] = {
    {'b', CEL_BOOL},     {'i', CEL_INT},       {'u', CEL_UINT},     {'d', CEL_DOUBLE},
    {'s', CEL_STRING},   {'y', CEL_BYTES},     {'n', CEL_NULL},     {'L', CEL_LIST},
    {'M', CEL_MAP},      {'t', CEL_TIMESTAMP}, {'D', CEL_DURATION}, {'T', CEL_TYPE},
    {'o', CEL_OPTIONAL}, {'I', CEL_IP},        {'C', CEL_CIDR},     {'q', CEL_QUANTITY},
    {'v', CEL_SEMVER},   {'U', CEL_URL},       {'F', CEL_FORMAT},   {'N', CEL_NATIVE},
    {'*', CEL_DYN},
};

enum cel_kind func_letter_kind(char letter)
{
    for (size_t i = 0; i < HK_LEN(letters); i++) {
        if (letters[i].letter == letter) {
            return letters[i].kind;
        }
    }
    return CEL_DYN;
}

bool func_letter_fits(char letter, enum cel_kind kind)
{
    return letter == '*' || func_letter_kind(letter) == kind;
}

static bool func_is_receiver(const struct cel_func *f)
{
    return f->sig[0] != '\0' && f->sig[1] == '.';
}

static uint32_t func_arity(const struct cel_func *f)
{
    return (uint32_t)strcspn(f->sig, ":") - func_is_receiver(f);
}

char func_param(const struct cel_func *f, uint32_t i)
{
    return f->sig[i + (i > 0 && func_is_receiver(f))];
}

char func_result(const struct cel_func *f)
{
    return strchr(f->sig, ':')[1];
}

bool func_has_pattern(const struct cel_func *f)
{
    return f->cost == COST_REGEX;
}

bool func_is_global(struct hk_str name)
{
    for (size_t k = 0; k < HK_LEN(libs); k++) {
        for (size_t i = 0; i < libs[k]->len; i++) {
            const struct cel_func *f = &libs[k]->funcs[i];
            if (!func_is_receiver(f) && hk_str_is(name, f->name)) {
                return true;
            }
        }
    }
    return false;
}

int func_candidates(struct hk_str name, bool receiver, uint32_t nargs, struct hk_arena *a,
                    const struct cel_func ***ret)
{
    HK_VEC(const struct cel_func *) found = {0};
    bool known = false;

    for (size_t k = 0; k < HK_LEN(libs); k++) {
        for (size_t i = 0; i < libs[k]->len; i++) {
            const struct cel_func *f = &libs[k]->funcs[i];
            if (!hk_str_is(name, f->name)) {
                continue;
            }
            known = true;
            if (func_is_receiver(f) == receiver && func_arity(f) == nargs) {
                hk_vec_push(&found, f);
            }
        }
    }
    *ret = hk_arena_array(a, found.len, sizeof(**ret));
    if (found.len > 0) {
        memcpy(*ret, found.at, found.len * sizeof(**ret));
    }
    const int len = (int)found.len;
    hk_vec_fini(&found);
    return known ? len : -1;
}

/* ---- calls ---- */

static uint64_t func_size(struct cel_value v)
{
    switch (v.kind) {
    case CEL_STRING:
    case CEL_BYTES:
        return v.s.n;
    case CEL_SEMVER:
        return v.semver->pre.n;
    case CEL_URL:
        return v.url->path.n + v.url->query.n;
    default:
        return cel_value_len(v);
    }
}

/* A tenth, rounded up. */
static uint64_t func_tenth(uint64_t n)
{
    return (n + 9) / 10;
}

/* Kubernetes' and cel-go's factors: a tenth of a byte of text, a quarter of a byte of a pattern. */
static uint64_t func_cost(const struct cel_func *f, const struct cel_value *v, uint32_t n)
{
    const uint64_t a = n > 0 ? func_size(v[0]) : 0, b = n > 1 ? func_size(v[1]) : 0;

    switch (f->cost) {
    case COST_TEXT:
        return HK_MAX(func_tenth(a), 1);
    case COST_SECOND:
        return HK_MAX(func_tenth(b), 1);
    case COST_PRODUCT:
        return HK_MAX(func_tenth(a) * func_tenth(b), 1);
    case COST_REGEX:
        return HK_MAX(func_tenth(a + 1) * ((b + 3) / 4), 1);
    case COST_NAMED:
        return HK_MAX(func_tenth(b + 1) * 25, 1);
    case COST_ITEMS:
        return HK_MAX(a, 1);
    case COST_CHECK:
        return 350000;
    case COST_ONE:
        break;
    }
    return 1;
}

static bool func_accepts(const struct cel_func *f, const struct cel_value *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!func_letter_fits(func_param(f, i), v[i].kind)) {
            return false;
        }
    }
    return true;
}

int cel_call(struct cel_run *r, const struct cel_node *n, const struct cel_value *args,
             struct cel_value *ret)
{
    r->name = n->name;
    r->re = n->re;
    for (uint32_t i = 0; i < n->nfuncs; i++) {
        const struct cel_func *f = n->funcs[i];
        if (!func_accepts(f, args, n->nargs)) {
            continue;
        }
        const int rc = cel_spend(r, func_cost(f, args, n->nargs));
        return rc < 0 ? rc : f->call(r, args, n->nargs, ret);
    }
    return cel_no_overload(r);
}
