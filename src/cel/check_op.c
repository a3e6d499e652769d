// SPDX-License-Identifier: Apache-2.0
// The checker's rules for operators and macros.
#include "cel/check_priv.h"

static const char *const op_names[] = {
    [OP_EQ] = "_==_", [OP_NE] = "_!=_", [OP_LT] = "_<_",  [OP_LE] = "_<=_",
    [OP_GT] = "_>_",  [OP_GE] = "_>=_", [OP_IN] = "@in",  [OP_ADD] = "_+_",
    [OP_SUB] = "_-_", [OP_MUL] = "_*_", [OP_DIV] = "_/_", [OP_MOD] = "_%_",
};

static bool check_is_numeric(enum cel_kind k)
{
    return k == CEL_INT || k == CEL_UINT || k == CEL_DOUBLE;
}

static bool check_has_order(enum cel_kind k)
{
    return check_is_numeric(k) || k == CEL_BOOL || k == CEL_STRING || k == CEL_BYTES ||
           k == CEL_TIMESTAMP || k == CEL_DURATION;
}

static bool check_may_compare(enum cel_kind a, enum cel_kind b)
{
    if (a == CEL_DYN || b == CEL_DYN) {
        return (a == CEL_DYN || check_has_order(a)) && (b == CEL_DYN || check_has_order(b));
    }
    return (check_is_numeric(a) && check_is_numeric(b)) || (a == b && check_has_order(a));
}

static bool check_may_contain(const struct cel_type *in, const struct cel_type *one)
{
    if (in->kind == CEL_LIST) {
        return type_fits(type_elem(in), one);
    }
    if (in->kind == CEL_MAP) {
        return !in->elem || one->kind == CEL_DYN || one->kind == CEL_STRING;
    }
    return in->kind == CEL_DYN;
}

/* The result of times and durations, or NULL. */
static const struct cel_type *check_time_result(enum cel_op op, enum cel_kind a, enum cel_kind b)
{
    const bool time_a = a == CEL_TIMESTAMP, time_b = b == CEL_TIMESTAMP;
    const bool span_a = a == CEL_DURATION, span_b = b == CEL_DURATION;

    if (op == OP_SUB && time_a && time_b) {
        return cel_type_of(CEL_DURATION);
    }
    if ((time_a && span_b) || (op == OP_ADD && span_a && time_b)) {
        return cel_type_of(CEL_TIMESTAMP);
    }
    return span_a && span_b ? cel_type_of(CEL_DURATION) : NULL;
}

/* Kinds that an operator accepts when both operands are of it. */
static bool check_has_arithmetic(enum cel_op op, enum cel_kind k)
{
    switch (op) {
    case OP_ADD:
        return check_is_numeric(k) || k == CEL_STRING || k == CEL_BYTES || k == CEL_LIST;
    case OP_MOD:
        return k == CEL_INT || k == CEL_UINT;
    default:
        return check_is_numeric(k);
    }
}

static const struct cel_type *check_arithmetic(enum cel_op op, const struct cel_type *a,
                                               const struct cel_type *b)
{
    if (a->kind == CEL_DYN && b->kind == CEL_DYN) {
        return a;
    }
    if (a->kind == CEL_DYN || b->kind == CEL_DYN) {
        const struct cel_type *known = a->kind == CEL_DYN ? b : a;
        const bool time = known->kind == CEL_TIMESTAMP || known->kind == CEL_DURATION;
        if (time && (op == OP_ADD || op == OP_SUB)) {
            return cel_type_of(CEL_DYN);
        }
        return check_has_arithmetic(op, known->kind) ? known : NULL;
    }
    const bool plain = a->kind == b->kind && check_has_arithmetic(op, a->kind);
    if (plain && a->kind == CEL_LIST) {
        return type_fits(a, b) ? type_join(a, b) : NULL;
    }
    if (plain) {
        return a;
    }
    return op == OP_ADD || op == OP_SUB ? check_time_result(op, a->kind, b->kind) : NULL;
}

static const struct cel_type *check_binary(struct checker *c, struct cel_node *n)
{
    const struct cel_type *types[2] = {cel_check_node(c, n->args[0]),
                                       cel_check_node(c, n->args[1])};
    const struct cel_type *result = NULL;
    bool fits = false;

    switch (n->op) {
    case OP_EQ:
    case OP_NE:
        fits = type_fits(types[0], types[1]);
        break;
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
        fits = check_may_compare(types[0]->kind, types[1]->kind);
        break;
    case OP_IN:
        fits = check_may_contain(types[1], types[0]);
        break;
    default:
        result = check_arithmetic(n->op, types[0], types[1]);
    }
    if (fits) {
        return cel_type_of(CEL_BOOL);
    }
    return result ? result : cel_check_no_overload(c, n, op_names[n->op], types);
}

static bool check_is_bool(const struct cel_type *t)
{
    return t->kind == CEL_BOOL || t->kind == CEL_DYN;
}

static const struct cel_type *check_logic(struct checker *c, struct cel_node *n)
{
    const char *name = n->kind == NODE_AND ? "_&&_" : n->kind == NODE_OR ? "_||_" : "!_";
    const struct cel_type **types =
        hk_arena_array(c->src->a, n->nargs, sizeof(const struct cel_type *));
    bool good = true;

    for (uint32_t i = 0; i < n->nargs; i++) {
        types[i] = cel_check_node(c, n->args[i]);
        good &= check_is_bool(types[i]);
    }
    if (!good) {
        cel_check_no_overload(c, n, name, types);
    }
    return cel_type_of(CEL_BOOL);
}

static const struct cel_type *check_conditional(struct checker *c, struct cel_node *n)
{
    const struct cel_type *types[3];

    for (uint32_t i = 0; i < 3; i++) {
        types[i] = cel_check_node(c, n->args[i]);
    }
    if (!check_is_bool(types[0]) || !type_fits(types[1], types[2])) {
        return cel_check_no_overload(c, n, "_?_:_", types);
    }
    return type_join(types[1], types[2]);
}

const struct cel_type *cel_check_operator(struct checker *c, struct cel_node *n)
{
    const struct cel_type *t;

    switch (n->kind) {
    case NODE_BINARY:
        return check_binary(c, n);
    case NODE_COND:
        return check_conditional(c, n);
    case NODE_NEG:
        t = cel_check_node(c, n->args[0]);
        return t->kind == CEL_INT || t->kind == CEL_DOUBLE || t->kind == CEL_DYN
                   ? t
                   : cel_check_no_overload(c, n, "-_", &t);
    default:
        return check_logic(c, n);
    }
}

/* ---- macros ---- */

struct check_range {
    const struct cel_type *first, *second; /* of the macro's variables */
};

/* Over a list: element, or index and element. Over a map: key, or key and value. */
static struct check_range check_range_of(struct checker *c, const struct cel_node *n,
                                         const struct cel_type *t)
{
    const struct cel_type *dyn = cel_check_dyn();
    const bool pair = n->nvars == 2;

    switch (t->kind) {
    case CEL_LIST:
        return (struct check_range){pair ? cel_type_of(CEL_INT) : type_elem(t), type_elem(t)};
    case CEL_MAP:
        return (struct check_range){t->elem ? cel_type_of(CEL_STRING) : dyn, type_elem(t)};
    case CEL_DYN:
        return (struct check_range){dyn, dyn};
    default:
        cel_issue(c->src, n->args[0]->at,
                  "expression of type '%s' cannot be range of a comprehension (must be list, map, "
                  "or dynamic)",
                  type_text(t, c->src->a));
        return (struct check_range){dyn, dyn};
    }
}

static void check_want(struct checker *c, const struct cel_node *n, enum cel_kind want,
                       const struct cel_type *have)
{
    if (have->kind != want && have->kind != CEL_DYN) {
        cel_issue(c->src, n->at, "expected type '%s' but found '%s'",
                  type_text(cel_type_of(want), c->src->a), type_text(have, c->src->a));
    }
}

static const struct cel_type *check_macro_result(struct checker *c, const struct cel_node *n,
                                                 const struct cel_type *range,
                                                 const struct cel_type *body)
{
    const struct cel_node *at = n->args[n->nargs - 1];

    switch (n->op) {
    case MACRO_ALL:
    case MACRO_EXISTS:
    case MACRO_EXISTS_ONE:
        check_want(c, at, CEL_BOOL, body);
        return cel_type_of(CEL_BOOL);
    case MACRO_FILTER:
        check_want(c, at, CEL_BOOL, body);
        return range->kind == CEL_LIST ? range
               : range->kind == CEL_MAP && range->elem
                   ? type_with(CEL_LIST, cel_type_of(CEL_STRING), c->src->a)
                   : cel_type_of(CEL_LIST);
    case MACRO_TRANSFORM_ENTRY:
        check_want(c, at, CEL_MAP, body);
        return cel_type_of(CEL_MAP);
    case MACRO_TRANSFORM_MAP:
        return type_with(CEL_MAP, range->kind == CEL_MAP && range->elem ? body : NULL, c->src->a);
    case MACRO_SORT_BY:
        return range;
    default:
        return type_with(CEL_LIST, body, c->src->a);
    }
}

/* optional.optMap(x, body): one variable, the content. */
static const struct cel_type *check_opt_macro(struct checker *c, struct cel_node *n)
{
    const struct cel_type *t = cel_check_node(c, n->args[0]);

    check_want(c, n->args[0], CEL_OPTIONAL, t);
    const struct check_scope s = cel_check_push(c, n->name, type_elem(t));
    n->slot = s.slot;
    c->scope = &s;
    const struct cel_type *body = cel_check_node(c, n->args[1]);
    cel_check_pop(c, &s);
    if (n->op == MACRO_OPT_FLAT_MAP) {
        check_want(c, n->args[1], CEL_OPTIONAL, body);
        return body;
    }
    return type_with(CEL_OPTIONAL, body, c->src->a);
}

const struct cel_type *cel_check_macro(struct checker *c, struct cel_node *n)
{
    if (n->op == MACRO_OPT_MAP || n->op == MACRO_OPT_FLAT_MAP) {
        return check_opt_macro(c, n);
    }
    const struct cel_type *range = cel_check_node(c, n->args[0]);
    const struct check_range vars = check_range_of(c, n, range);
    const struct check_scope first = cel_check_push(c, n->name, vars.first);
    c->scope = &first;
    const struct check_scope second = cel_check_push(c, n->second, vars.second);
    if (n->nvars == 2) {
        c->scope = &second;
    }
    n->slot = first.slot;
    for (uint32_t i = 1; i + 1 < n->nargs; i++) {
        check_want(c, n->args[i], CEL_BOOL, cel_check_node(c, n->args[i]));
    }
    const struct cel_type *body = cel_check_node(c, n->args[n->nargs - 1]);
    cel_check_pop(c, &second);
    cel_check_pop(c, &first);
    return check_macro_result(c, n, range, body);
}
