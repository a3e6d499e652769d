// SPDX-License-Identifier: Apache-2.0
// Evaluates a checked tree. Each node spends its cost before its work, so that the work is bounded;
// the recursion is bounded by the height of the tree.
#include "cel/eval_priv.h"

#include <math.h>

/* As cel-go: a name or field costs 1, a new list or map more, a literal nothing. */
enum { COST_NAME = 1, COST_LIST = 10, COST_MAP = 30, COST_STRUCT = 40 };

/* ---- errors ---- */

const char *eval_keep_error(struct cel_run *r)
{
    return hk_arena_strndup(r->a, r->err->text, strlen(r->err->text));
}

/* ---- fields ---- */

static int eval_no_key(struct cel_run *r, struct hk_str key)
{
    return cel_error(r, "no such key: %.*s", HK_FMT(key));
}

static int eval_native_field(struct cel_run *r, const struct cel_native *native, struct hk_str name,
                             bool *found, struct cel_value *ret)
{
    const int rc =
        native->field ? native->field(native->ctx, name, r->a, ret, r->err) : -HK_ENOTFOUND;

    *found = rc == 0;
    return rc == -HK_ENOTFOUND ? 0 : rc;
}

/* Looks a field up in a map or object. */
static int eval_lookup(struct cel_run *r, struct cel_value in, struct hk_str name, bool *found,
                       struct cel_value *ret)
{
    *found = false;
    if (in.kind == CEL_NATIVE) {
        return eval_native_field(r, in.native, name, found, ret);
    }
    return in.kind == CEL_MAP ? cel_find_key(r, in.map, cel_of_str(name), found, ret)
                              : cel_no_overload(r);
}

/* Once a chain is optional, the rest of it is, too: "spec.?port.name" is none without a port. */
static int eval_chain(struct cel_run *r, struct cel_value in, bool optional, struct hk_str name,
                      struct cel_value *ret)
{
    const bool chained = in.kind == CEL_OPTIONAL;
    struct cel_value value;
    bool found;

    if (chained && !in.inner) {
        *ret = in;
        return 0;
    }
    const int rc = eval_lookup(r, chained ? *in.inner : in, name, &found, &value);
    if (rc < 0) {
        return rc;
    }
    if (!optional && !chained) {
        *ret = value;
        return found ? 0 : eval_no_key(r, name);
    }
    *ret = found ? cel_some(value, r->a) : cel_none();
    return 0;
}

static int eval_select(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value in;
    int rc = eval_node(r, n->args[0], &in);

    if (rc == 0) {
        rc = cel_spend(r, COST_NAME);
    }
    r->name = (struct hk_str){0};
    return rc < 0 ? rc : eval_chain(r, in, n->optional, n->name, ret);
}

static int eval_has(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value in = {0}, value;
    bool found = false;
    int rc = eval_node(r, n->args[0], &in);

    if (rc == 0) {
        rc = cel_spend(r, COST_NAME);
    }
    if (rc == 0 && in.kind == CEL_OPTIONAL && !in.inner) {
        *ret = cel_of_bool(false);
        return 0;
    }
    r->name = (struct hk_str){0};
    if (rc == 0) {
        rc = eval_lookup(r, in.kind == CEL_OPTIONAL ? *in.inner : in, n->name, &found, &value);
    }
    *ret = cel_of_bool(found);
    return rc;
}

/* ---- index ---- */

/* Whether the value is a whole number inside of the list. */
static bool eval_position(const struct cel_list *l, struct cel_value i, uint32_t *ret)
{
    const bool whole = i.kind != CEL_DOUBLE || i.d == floor(i.d);

    if (!whole || cel_compare_numbers(i, cel_of_int(0)) < 0 ||
        cel_compare_numbers(i, cel_of_int(l->len)) != -1) {
        return false;
    }
    *ret = i.kind == CEL_DOUBLE ? (uint32_t)i.d : (uint32_t)i.u;
    return true;
}

static int eval_item(struct cel_run *r, struct cel_value in, struct cel_value key, bool *found,
                     struct cel_value *ret)
{
    uint32_t at;

    *found = false;
    if (in.kind == CEL_LIST && cel_is_number(key)) {
        *found = eval_position(in.list, key, &at);
        if (*found) {
            *ret = cel_list_at(in.list, at, r->a);
        }
        return 0;
    }
    return in.kind == CEL_MAP ? cel_find_key(r, in.map, key, found, ret) : cel_no_overload(r);
}

static int eval_no_item(struct cel_run *r, struct cel_value in, struct cel_value key)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (key.kind == CEL_STRING) {
        hk_buf_addstr(&text, hk_str_head(key.s, 200));
    } else if (key.kind == CEL_INT) {
        hk_buf_addf(&text, "%lld", (long long)key.i);
    } else if (key.kind == CEL_UINT) {
        hk_buf_addf(&text, "%llu", (unsigned long long)key.u);
    } else if (key.kind == CEL_DOUBLE) {
        cel_double_write(key.d, &text);
    }
    return cel_error(r, "%s: %s", in.kind == CEL_LIST ? "index out of bounds" : "no such key",
                     hk_buf_str(&text).s);
}

static int eval_index(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value in = {0}, key = {0}, value = {0};
    bool found;
    int rc = eval_node(r, n->args[0], &in);

    if (rc == 0) {
        rc = eval_node(r, n->args[1], &key);
    }
    if (rc == 0) {
        rc = cel_spend(r, COST_NAME);
    }
    if (rc < 0) {
        return rc;
    }
    const bool chained = in.kind == CEL_OPTIONAL;
    if (chained && !in.inner) {
        *ret = in;
        return 0;
    }
    r->name = (struct hk_str){0};
    rc = eval_item(r, chained ? *in.inner : in, key, &found, &value);
    if (rc < 0) {
        return rc;
    }
    if (n->optional || chained) {
        *ret = found ? cel_some(value, r->a) : cel_none();
        return 0;
    }
    *ret = value;
    return found ? 0 : eval_no_item(r, in, key);
}

/* ---- lists and maps ---- */

/* The value of an element; *present is false for "?" and none. */
static int eval_element(struct cel_run *r, const struct cel_node *n, bool *present,
                        struct cel_value *ret)
{
    int rc = eval_node(r, n->kind == NODE_MAYBE ? n->args[0] : n, ret);

    *present = true;
    if (rc < 0 || n->kind != NODE_MAYBE) {
        return rc;
    }
    if (ret->kind != CEL_OPTIONAL) {
        return cel_error(r, "cannot initialize an optional element from a value that is not "
                            "optional");
    }
    *present = ret->inner != NULL;
    *ret = ret->inner ? *ret->inner : *ret;
    return 0;
}

static int eval_list(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    /* Beyond cel-go, long literals cost their length: they are built anew in every turn of a loop. */
    int rc = cel_spend(r, COST_LIST + n->nargs / 8);
    uint32_t len = 0;

    if (rc < 0) {
        return rc;
    }
    struct cel_value *items = hk_arena_array(r->a, n->nargs, sizeof(*items));
    for (uint32_t i = 0; i < n->nargs && rc == 0; i++) {
        bool present;
        rc = eval_element(r, n->args[i], &present, &items[len]);
        len += rc == 0 && present;
    }
    *ret = cel_of_list(items, len, r->a);
    return rc;
}

static int eval_entry(struct cel_run *r, const struct cel_node *n, uint32_t i,
                      struct cel_entry *entries, uint32_t *len)
{
    struct cel_entry *e = &entries[*len];
    const struct cel_map so_far = {.len = *len, .entries = entries};
    struct cel_value other;
    bool present = false, found;
    int rc = eval_node(r, n->args[i], &e->key);

    if (rc == 0) {
        rc = eval_element(r, n->args[i + 1], &present, &e->value);
    }
    if (rc < 0 || !present) {
        return rc;
    }
    if (e->key.kind != CEL_STRING && e->key.kind != CEL_BOOL && e->key.kind != CEL_INT &&
        e->key.kind != CEL_UINT) {
        return cel_error(r, "unsupported key type: %s", type_kind_name(e->key.kind));
    }
    rc = cel_find_key(r, &so_far, e->key, &found, &other);
    if (rc == 0 && found) {
        return cel_error(r, "Failed with repeated key");
    }
    ++*len;
    return rc;
}

static int eval_map(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    int rc = cel_spend(r, (n->kind == NODE_STRUCT ? COST_STRUCT : COST_MAP) + n->nargs / 8);
    uint32_t len = 0;

    if (rc < 0) {
        return rc;
    }
    struct cel_entry *entries = hk_arena_array(r->a, n->nargs / 2, sizeof(*entries));
    for (uint32_t i = 0; i + 1 < n->nargs && rc == 0; i += 2) {
        rc = eval_entry(r, n, i, entries, &len);
    }
    *ret = n->kind == NODE_STRUCT ? cel_of_struct(n->name, entries, len, r->a)
                                  : cel_of_map(entries, len, r->a);
    return rc;
}

/* ---- logic ---- */

int eval_bool(struct cel_run *r, const struct cel_node *n, bool *ret)
{
    struct cel_value v;
    const int rc = eval_node(r, n, &v);

    if (rc < 0) {
        return rc;
    }
    *ret = v.kind == CEL_BOOL && v.b;
    r->name = (struct hk_str){0};
    return v.kind == CEL_BOOL ? 0 : cel_no_overload(r);
}

/* One operand that decides makes errors of the others vanish, wherever they are. */
static int eval_logic(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    const bool decisive = n->kind == NODE_OR;
    const char *why = NULL;

    for (uint32_t i = 0; i < n->nargs; i++) {
        bool b = !decisive;
        const int rc = eval_bool(r, n->args[i], &b);
        if (rc < 0 && rc != -HK_EINVAL) {
            return rc;
        }
        if (rc < 0) {
            why = why ? why : eval_keep_error(r);
        } else if (b == decisive) {
            *ret = cel_of_bool(decisive);
            return 0;
        }
    }
    *ret = cel_of_bool(!decisive);
    return why ? cel_error(r, "%s", why) : 0;
}

static int eval_conditional(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    bool b = false;
    const int rc = eval_bool(r, n->args[0], &b);

    return rc < 0 ? rc : eval_node(r, n->args[b ? 1 : 2], ret);
}

static int eval_not(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    bool b = false;
    int rc = eval_bool(r, n->args[0], &b);

    if (rc == 0) {
        rc = cel_spend(r, 1);
    }
    *ret = cel_of_bool(!b);
    return rc;
}

static int eval_minus(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value v;
    int rc = eval_node(r, n->args[0], &v);

    if (rc == 0) {
        rc = cel_spend(r, 1);
    }
    return rc < 0 ? rc : cel_negate(r, v, ret);
}

/* ---- the rest ---- */

static int eval_binary(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value a = {0}, b = {0};
    int rc = eval_node(r, n->args[0], &a);

    if (rc == 0) {
        rc = eval_node(r, n->args[1], &b);
    }
    r->name = (struct hk_str){0};
    return rc < 0 ? rc : cel_operate(r, n->op, a, b, ret);
}

static int eval_call(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    struct cel_value *args = hk_arena_array(r->a, n->nargs, sizeof(*args));
    int rc = 0;

    for (uint32_t i = 0; i < n->nargs && rc == 0; i++) {
        rc = eval_node(r, n->args[i], &args[i]);
    }
    return rc < 0 ? rc : cel_call(r, n, args, ret);
}

static int eval_name(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    *ret = n->local ? r->locals[n->slot] : r->vars[n->slot];
    return cel_spend(r, COST_NAME);
}

static int eval_bind(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    const int rc = eval_node(r, n->args[0], &r->locals[n->slot]);

    return rc < 0 ? rc : eval_node(r, n->args[1], ret);
}

int eval_node(struct cel_run *r, const struct cel_node *n, struct cel_value *ret)
{
    switch (n->kind) {
    case NODE_LITERAL:
        *ret = n->value;
        return 0;
    case NODE_IDENT:
        return eval_name(r, n, ret);
    case NODE_SELECT:
        return eval_select(r, n, ret);
    case NODE_HAS:
        return eval_has(r, n, ret);
    case NODE_INDEX:
        return eval_index(r, n, ret);
    case NODE_CALL:
        return eval_call(r, n, ret);
    case NODE_LIST:
        return eval_list(r, n, ret);
    case NODE_MAP:
    case NODE_STRUCT:
        return eval_map(r, n, ret);
    case NODE_NOT:
        return eval_not(r, n, ret);
    case NODE_NEG:
        return eval_minus(r, n, ret);
    case NODE_AND:
    case NODE_OR:
        return eval_logic(r, n, ret);
    case NODE_COND:
        return eval_conditional(r, n, ret);
    case NODE_BINARY:
        return eval_binary(r, n, ret);
    case NODE_MACRO:
        return eval_macro(r, n, ret);
    case NODE_BIND:
        return eval_bind(r, n, ret);
    case NODE_MAYBE: /* only inside of lists and maps: eval_element */
        break;
    }
    hk_assert(false);
    return -HK_EINVAL;
}
