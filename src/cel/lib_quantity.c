// SPDX-License-Identifier: Apache-2.0
// Kubernetes' quantity library.
#include "cel/cel_priv.h"

static struct cel_value quantity_wrap(struct quantity q, struct hk_arena *a)
{
    struct quantity *copy = hk_arena_alloc(a, sizeof(*copy));

    *copy = q;
    return (struct cel_value){.kind = CEL_QUANTITY, .q = copy};
}

static int quantity_new(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    struct hk_err why = {0};
    struct quantity q;

    if (quantity_parse(v[0].s, &q, &why) < 0) {
        return cel_error(r, "%s", why.text);
    }
    *ret = quantity_wrap(q, r->a);
    return 0;
}

static int quantity_is(struct cel_run *r, const struct cel_value *v, uint32_t n,
                       struct cel_value *ret)
{
    struct quantity q;

    *ret = cel_of_bool(quantity_parse(v[0].s, &q, NULL) == 0);
    return 0;
}

static int quantity_sign(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    *ret = cel_of_int(v[0].q->nano < 0 ? -1 : v[0].q->nano > 0);
    return 0;
}

/* Whole units that an int can hold. */
static bool quantity_whole(const struct quantity *q, int64_t *ret)
{
    const __int128 units = q->nano / 1000000000;

    *ret = (int64_t)units;
    return q->nano % 1000000000 == 0 && units >= INT64_MIN && units <= INT64_MAX;
}

static int quantity_is_integer(struct cel_run *r, const struct cel_value *v, uint32_t n,
                               struct cel_value *ret)
{
    int64_t i;

    *ret = cel_of_bool(quantity_whole(v[0].q, &i));
    return 0;
}

static int quantity_as_integer(struct cel_run *r, const struct cel_value *v, uint32_t n,
                               struct cel_value *ret)
{
    *ret = cel_of_int(0);
    return quantity_whole(v[0].q, &ret->i) ? 0 : cel_error(r, "cannot convert value to integer");
}

static int quantity_as_float(struct cel_run *r, const struct cel_value *v, uint32_t n,
                             struct cel_value *ret)
{
    *ret = cel_of_double((double)v[0].q->nano / 1e9);
    return 0;
}

/* The second argument: a quantity or an int. */
static struct quantity quantity_other(const struct cel_value *v)
{
    return v[1].kind == CEL_INT ? quantity_of(v[1].i, v[0].q->format) : *v[1].q;
}

static int quantity_plus(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    *ret = quantity_wrap(quantity_add(*v[0].q, quantity_other(v)), r->a);
    return 0;
}

static int quantity_minus(struct cel_run *r, const struct cel_value *v, uint32_t n,
                          struct cel_value *ret)
{
    *ret = quantity_wrap(quantity_sub(*v[0].q, quantity_other(v)), r->a);
    return 0;
}

static int quantity_less(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    *ret = cel_of_bool(quantity_cmp(*v[0].q, *v[1].q) < 0);
    return 0;
}

static int quantity_greater(struct cel_run *r, const struct cel_value *v, uint32_t n,
                            struct cel_value *ret)
{
    *ret = cel_of_bool(quantity_cmp(*v[0].q, *v[1].q) > 0);
    return 0;
}

static int quantity_compare(struct cel_run *r, const struct cel_value *v, uint32_t n,
                            struct cel_value *ret)
{
    const int order = quantity_cmp(*v[0].q, *v[1].q);

    *ret = cel_of_int(order < 0 ? -1 : order > 0);
    return 0;
}

static const struct cel_func quantity_funcs[] = {
    {"quantity", "s:q", quantity_new, COST_TEXT},
    {"isQuantity", "s:b", quantity_is, COST_TEXT},
    {"sign", "q.:i", quantity_sign, COST_ONE},
    {"isInteger", "q.:b", quantity_is_integer, COST_ONE},
    {"asInteger", "q.:i", quantity_as_integer, COST_ONE},
    {"asApproximateFloat", "q.:d", quantity_as_float, COST_ONE},
    {"add", "q.q:q", quantity_plus, COST_ONE},
    {"add", "q.i:q", quantity_plus, COST_ONE},
    {"sub", "q.q:q", quantity_minus, COST_ONE},
    {"sub", "q.i:q", quantity_minus, COST_ONE},
    {"isLessThan", "q.q:b", quantity_less, COST_ONE},
    {"isGreaterThan", "q.q:b", quantity_greater, COST_ONE},
    {"compareTo", "q.q:i", quantity_compare, COST_ONE},
};

const struct cel_lib cel_lib_quantity = {quantity_funcs, HK_LEN(quantity_funcs)};
