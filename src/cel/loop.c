// SPDX-License-Identifier: Apache-2.0
// Macros that loop over lists and maps, and those of optionals. Each turn costs what cel-go's
// expansion of the macro into a fold costs.
#include "cel/eval_priv.h"

/* Cost of a turn apart from the body. */
static const uint8_t turn_cost[] = {
    [MACRO_ALL] = 3,           [MACRO_EXISTS] = 4,          [MACRO_EXISTS_ONE] = 2,
    [MACRO_MAP] = 12,          [MACRO_FILTER] = 12,         [MACRO_TRANSFORM_LIST] = 12,
    [MACRO_TRANSFORM_MAP] = 2, [MACRO_TRANSFORM_ENTRY] = 2, [MACRO_SORT_BY] = 12,
};

struct loop {
    struct cel_run *r;
    const struct cel_node *n;
    struct cel_value range;
    uint32_t len;
    const char *why; /* the first error that a later turn may absorb */
    uint32_t hits;
    /* Results, as the macro needs them. */
    struct cel_value *items;
    struct cel_entry *entries;
    uint32_t nresults, room;
    struct cel_value key, value; /* of this turn, as in a map */
};

/* Sets the variables for a turn. */
static void loop_bind(struct loop *l, uint32_t i)
{
    struct cel_value *vars = &l->r->locals[l->n->slot];

    if (l->range.kind == CEL_LIST) {
        l->key = cel_of_int(i);
        l->value = cel_list_at(l->range.list, i, l->r->a);
        vars[0] = l->n->nvars == 2 ? l->key : l->value;
    } else {
        const struct cel_entry e = cel_map_at(l->range.map, i, l->r->a);
        l->key = e.key;
        l->value = e.value;
        vars[0] = e.key;
    }
    if (l->n->nvars == 2) {
        vars[1] = l->value;
    }
}

/* Doubles the room for results: only as much as turns that were paid for. */
static void loop_grow(struct loop *l, void *at, size_t size)
{
    const uint32_t room = l->room > 0 ? l->room * 2 : 8;
    void **old = at, *grown = hk_arena_array(l->r->a, room, size);

    if (l->nresults > 0) {
        memcpy(grown, *old, l->nresults * size);
    }
    *old = grown;
    l->room = room;
}

static void loop_add_item(struct loop *l, struct cel_value v)
{
    if (l->nresults == l->room) {
        loop_grow(l, &l->items, sizeof(*l->items));
    }
    l->items[l->nresults++] = v;
}

static void loop_put_entry(struct loop *l, struct cel_entry e)
{
    if (l->nresults == l->room) {
        loop_grow(l, &l->entries, sizeof(*l->entries));
    }
    l->entries[l->nresults++] = e;
}

/* Whether the filter, if there is one, lets this turn pass. */
static int loop_filter(struct loop *l, bool *pass)
{
    *pass = true;
    return l->n->nargs == 3 ? eval_bool(l->r, l->n->args[1], pass) : 0;
}

static const struct cel_node *loop_body(const struct loop *l)
{
    return l->n->args[l->n->nargs - 1];
}

/* all and exists: errors are absorbed by a turn that decides. */
static int loop_quantify(struct loop *l, bool decisive, bool *done)
{
    bool b = !decisive;
    const int rc = eval_bool(l->r, loop_body(l), &b);

    if (rc < 0 && rc != -HK_EINVAL) {
        return rc;
    }
    if (rc < 0) {
        l->why = l->why ? l->why : eval_keep_error(l->r);
        return 0;
    }
    *done = b == decisive;
    l->hits += *done;
    return 0;
}

static int loop_count(struct loop *l)
{
    bool b = false;
    const int rc = eval_bool(l->r, loop_body(l), &b);

    l->hits += rc == 0 && b;
    return rc;
}

static int loop_collect(struct loop *l)
{
    struct cel_value v;
    bool pass;
    int rc = loop_filter(l, &pass);

    if (rc < 0 || !pass) {
        return rc;
    }
    rc = eval_node(l->r, loop_body(l), &v);
    if (rc == 0) {
        loop_add_item(l, v);
    }
    return rc;
}

/* The element of a list, or the key of a map. */
static int loop_pick(struct loop *l)
{
    const struct cel_value own = l->r->locals[l->n->slot];
    bool b = false;
    const int rc = eval_bool(l->r, loop_body(l), &b);

    if (rc == 0 && b) {
        loop_add_item(l, own);
    }
    return rc;
}

static int loop_transform(struct loop *l)
{
    const struct cel_value key = l->key;
    struct cel_value v;
    bool pass;
    int rc = loop_filter(l, &pass);

    if (rc < 0 || !pass) {
        return rc;
    }
    rc = eval_node(l->r, loop_body(l), &v);
    if (rc == 0) {
        loop_put_entry(l, (struct cel_entry){key, v});
    }
    return rc;
}

/* The body is a map of one entry, whose key must be new. */
static int loop_add_entry(struct loop *l)
{
    struct cel_value v, other;
    bool pass, found = false;
    int rc = loop_filter(l, &pass);

    if (rc < 0 || !pass) {
        return rc;
    }
    rc = eval_node(l->r, loop_body(l), &v);
    if (rc == 0 && (v.kind != CEL_MAP || v.map->len > 1)) {
        return cel_error(l->r, "transformMapEntry: want a map of one entry");
    }
    if (rc < 0 || v.map->len == 0) {
        return rc;
    }
    const struct cel_entry e = cel_map_at(v.map, 0, l->r->a);
    const struct cel_map so_far = {.len = l->nresults, .entries = l->entries};
    rc = cel_find_key(l->r, &so_far, e.key, &found, &other);
    if (rc == 0 && found) {
        return cel_error(l->r, "insert failed: key already exists");
    }
    if (rc == 0) {
        loop_put_entry(l, e);
    }
    return rc;
}

static int loop_turn(struct loop *l, uint32_t i, bool *done)
{
    const int rc = cel_spend(l->r, turn_cost[l->n->op]);

    if (rc < 0) {
        return rc;
    }
    loop_bind(l, i);
    switch (l->n->op) {
    case MACRO_ALL:
        return loop_quantify(l, false, done);
    case MACRO_EXISTS:
        return loop_quantify(l, true, done);
    case MACRO_EXISTS_ONE:
        return loop_count(l);
    case MACRO_FILTER:
        return loop_pick(l);
    case MACRO_TRANSFORM_MAP:
        return loop_transform(l);
    case MACRO_TRANSFORM_ENTRY:
        return loop_add_entry(l);
    default:
        return loop_collect(l);
    }
}

/* ---- all loops ---- */

static int loop_result(struct loop *l, struct cel_value *ret)
{
    switch (l->n->op) {
    case MACRO_ALL:
    case MACRO_EXISTS:
        *ret = cel_of_bool((l->hits > 0) == (l->n->op == MACRO_EXISTS));
        return l->hits == 0 && l->why ? cel_error(l->r, "%s", l->why) : 0;
    case MACRO_EXISTS_ONE:
        *ret = cel_of_bool(l->hits == 1);
        return 0;
    case MACRO_TRANSFORM_MAP:
    case MACRO_TRANSFORM_ENTRY:
        *ret = cel_of_map(l->entries, l->nresults, l->r->a);
        return 0;
    case MACRO_SORT_BY:
        return l->range.kind == CEL_LIST ? cel_sort(l->r, l->range.list, l->items, ret)
                                         : cel_no_overload(l->r);
    default:
        *ret = cel_of_list(l->items, l->nresults, l->r->a);
        return 0;
    }
}

/* optMap and optFlatMap: the body with the content of the optional, if it has one. */
static int loop_optional(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value in, out;
    int rc = eval_node(r, n->args[0], &in);

    if (rc == 0 && in.kind != CEL_OPTIONAL) {
        return cel_no_overload(r);
    }
    if (rc < 0 || !in.inner) {
        *ret = in;
        return rc;
    }
    r->locals[n->slot] = *in.inner;
    rc = eval_node(r, n->args[1], &out);
    if (rc == 0 && n->op == MACRO_OPT_FLAT_MAP && out.kind != CEL_OPTIONAL) {
        return cel_no_overload(r);
    }
    if (rc == 0) {
        *ret = n->op == MACRO_OPT_FLAT_MAP ? out : cel_some(out, r->a);
    }
    return rc;
}

int eval_macro(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct loop l = {.r = r, .n = n};
    bool done = false;
    int rc;

    r->name = (struct hk_str){0};
    if (n->op == MACRO_OPT_MAP || n->op == MACRO_OPT_FLAT_MAP) {
        return loop_optional(r, n, ret);
    }
    rc = eval_node(r, n->args[0], &l.range);
    if (rc < 0) {
        return rc;
    }
    if (l.range.kind != CEL_LIST && l.range.kind != CEL_MAP) {
        return cel_no_overload(r);
    }
    l.len = cel_value_len(l.range);
    for (uint32_t i = 0; i < l.len && rc == 0 && !done; i++) {
        rc = loop_turn(&l, i, &done);
    }
    return rc < 0 ? rc : loop_result(&l, ret);
}
