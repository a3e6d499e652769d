// SPDX-License-Identifier: Apache-2.0
// Operators: equality across types, order, look-ups by key, and arithmetic that reports overflow.
#include "cel/cel_priv.h"

#include <math.h>

#define NS_PER_S INT64_C(1000000000)

/* ---- numbers ---- */

bool cel_is_number(struct cel_value v)
{
    return v.kind == CEL_INT || v.kind == CEL_UINT || v.kind == CEL_DOUBLE;
}

static int op_sign(bool less, bool greater)
{
    return less ? -1 : greater;
}

static int op_compare_int_uint(int64_t i, uint64_t u)
{
    return i < 0 ? -1 : op_sign((uint64_t)i<u, (uint64_t)i> u);
}

/* A double against a whole number in [-2^63, 2^64): beyond it the double decides, inside of it its
 * whole part is exact. */
static int op_compare_double(double d, struct cel_value whole)
{
    if (isnan(d)) {
        return 2;
    }
    const double floored = floor(d);
    struct cel_value part;
    if (floored >= 0x1p64 || floored < -0x1p63) {
        return d < 0 ? -1 : 1;
    }
    part = floored < 0 ? cel_of_int((int64_t)floored) : cel_of_uint((uint64_t)floored);
    const int order = cel_compare_numbers(part, whole);
    return order == 0 && d > floored ? 1 : order;
}

int cel_compare_numbers(struct cel_value a, struct cel_value b)
{
    int order;

    if (a.kind == CEL_DOUBLE && b.kind == CEL_DOUBLE) {
        return isnan(a.d) || isnan(b.d) ? 2 : op_sign(a.d<b.d, a.d> b.d);
    }
    if (a.kind == CEL_DOUBLE) {
        return op_compare_double(a.d, b);
    }
    if (b.kind == CEL_DOUBLE) {
        order = op_compare_double(b.d, a);
        return order == 2 ? 2 : -order;
    }
    if (a.kind == b.kind) {
        return a.kind == CEL_INT ? op_sign(a.i<b.i, a.i> b.i) : op_sign(a.u<b.u, a.u> b.u);
    }
    return a.kind == CEL_INT ? op_compare_int_uint(a.i, b.u) : -op_compare_int_uint(b.i, a.u);
}

/* ---- equality ---- */

static bool op_net_equal(const struct cel_net *a, const struct cel_net *b)
{
    return a->size == b->size && a->bits == b->bits && memcmp(a->addr, b->addr, a->size) == 0;
}

static bool op_url_equal(const struct cel_url *a, const struct cel_url *b)
{
    return hk_str_eq(a->scheme, b->scheme) && hk_str_eq(a->host, b->host) &&
           hk_str_eq(a->path, b->path) && hk_str_eq(a->query, b->query);
}

/* Whether two elements of a list with keys are the same one. */
static int op_same_element(struct cel_run *r, const struct cel_type *t, struct cel_value a,
                           struct cel_value b, bool *ret)
{
    *ret = true;
    if (t->list == CEL_LIST_SET || a.kind != CEL_MAP || b.kind != CEL_MAP) {
        return cel_equal(r, a, b, ret);
    }
    for (uint32_t i = 0; i < json_len(t->keys) && *ret; i++) {
        const struct cel_value key = cel_of_str(json_str(&t->keys->items[i], HK_STR("")));
        struct cel_value x = cel_null(), y = cel_null();
        bool found;
        int rc = cel_find_key(r, a.map, key, &found, &x);
        if (rc == 0) {
            rc = cel_find_key(r, b.map, key, &found, &y);
        }
        if (rc == 0) {
            rc = cel_equal(r, x, y, ret);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* The element of the list that is the same as v: its index, or the length. */
static int op_find_element(struct cel_run *r, const struct cel_list *l, const struct cel_type *t,
                           struct cel_value v, uint32_t *ret)
{
    bool same = false;
    int rc = 0;

    for (*ret = 0; *ret < l->len; ++*ret) {
        rc = cel_spend(r, 1);
        if (rc == 0) {
            rc = op_same_element(r, t, cel_list_at(l, *ret, r->a), v, &same);
        }
        if (rc < 0 || same) {
            break;
        }
    }
    return rc;
}

/* Sets and lists with keys are equal in any order. */
static int op_unordered_equal(struct cel_run *r, const struct cel_list *a, const struct cel_list *b,
                              bool *ret)
{
    int rc = 0;

    *ret = a->len == b->len;
    for (uint32_t i = 0; i < a->len && *ret && rc == 0; i++) {
        const struct cel_value v = cel_list_at(a, i, r->a);
        uint32_t at;
        rc = op_find_element(r, b, a->type, v, &at);
        *ret = rc == 0 && at < b->len;
        if (*ret) {
            rc = cel_equal(r, v, cel_list_at(b, at, r->a), ret);
        }
    }
    return rc;
}

static int op_list_equal(struct cel_run *r, const struct cel_list *a, const struct cel_list *b,
                         bool *ret)
{
    int rc = 0;

    if (a->type && a->type->list != CEL_LIST_ATOMIC) {
        return op_unordered_equal(r, a, b, ret);
    }
    *ret = a->len == b->len;
    for (uint32_t i = 0; i < a->len && *ret && rc == 0; i++) {
        rc = cel_equal(r, cel_list_at(a, i, r->a), cel_list_at(b, i, r->a), ret);
    }
    return rc;
}

static int op_map_equal(struct cel_run *r, const struct cel_map *a, const struct cel_map *b,
                        bool *ret)
{
    int rc = 0;

    *ret = a->len == b->len;
    for (uint32_t i = 0; i < a->len && *ret && rc == 0; i++) {
        const struct cel_entry e = cel_map_at(a, i, r->a);
        struct cel_value other;
        rc = cel_find_key(r, b, e.key, ret, &other);
        if (rc == 0 && *ret) {
            rc = cel_equal(r, e.value, other, ret);
        }
    }
    return rc;
}

/* Values of one kind that hold no others. */
static int op_plain_equal(struct cel_run *r, struct cel_value a, struct cel_value b, bool *ret)
{
    switch (a.kind) {
    case CEL_NULL:
        *ret = true;
        return 0;
    case CEL_BOOL:
        *ret = a.b == b.b;
        return 0;
    case CEL_STRING:
    case CEL_BYTES:
    case CEL_FORMAT:
        *ret = hk_str_eq(a.s, b.s);
        return cel_spend_text(r, HK_MIN(a.s.n, b.s.n));
    case CEL_TIMESTAMP:
        *ret = a.t.s == b.t.s && a.t.ns == b.t.ns;
        return 0;
    case CEL_IP:
    case CEL_CIDR:
        *ret = op_net_equal(a.net, b.net);
        return 0;
    case CEL_QUANTITY:
        *ret = quantity_cmp(*a.q, *b.q) == 0;
        return 0;
    case CEL_SEMVER:
        *ret = semver_compare(a.semver, b.semver) == 0;
        return 0;
    case CEL_URL:
        *ret = op_url_equal(a.url, b.url);
        return 0;
    case CEL_NATIVE:
        *ret = a.native == b.native;
        return 0;
    default: /* duration, type */
        *ret = a.i == b.i;
        return 0;
    }
}

int cel_equal(struct cel_run *r, struct cel_value a, struct cel_value b, bool *ret)
{
    const int rc = cel_spend(r, 1);

    *ret = false;
    if (rc < 0) {
        return rc;
    }
    if (cel_is_number(a) && cel_is_number(b)) {
        *ret = cel_compare_numbers(a, b) == 0;
        return 0;
    }
    if (a.kind != b.kind) {
        return 0;
    }
    switch (a.kind) {
    case CEL_LIST:
        return op_list_equal(r, a.list, b.list, ret);
    case CEL_MAP:
        return op_map_equal(r, a.map, b.map, ret);
    case CEL_OPTIONAL:
        *ret = !a.inner && !b.inner;
        return a.inner && b.inner ? cel_equal(r, *a.inner, *b.inner, ret) : 0;
    default:
        return op_plain_equal(r, a, b, ret);
    }
}

/* Keys are plain: bool, numbers and strings. */
static bool op_key_equal(struct cel_value a, struct cel_value b)
{
    if (cel_is_number(a) && cel_is_number(b)) {
        return cel_compare_numbers(a, b) == 0;
    }
    if (a.kind != b.kind) {
        return false;
    }
    return a.kind == CEL_STRING ? hk_str_eq(a.s, b.s) : a.kind == CEL_BOOL && a.b == b.b;
}

/* Expressions use escaped names for the fields of objects. */
static bool op_find_member(struct cel_run *r, const struct cel_map *m, struct hk_str name,
                           struct cel_value *ret)
{
    const struct cel_type *t = m->type;
    const struct cel_field *f = t && t->kind == CEL_OBJECT ? type_field(t, name) : NULL;
    const struct json *v = json_get_str(m->json, f ? f->key : name);

    if (v) {
        *ret = cel_of_json(v, f ? f->type : t ? t->elem : NULL, r->a);
    }
    return v != NULL;
}

int cel_find_key(struct cel_run *r, const struct cel_map *m, struct cel_value key, bool *found,
                 struct cel_value *ret)
{
    /* Beyond cel-go, large maps cost a little: they are searched. */
    const int rc = cel_spend(r, m->len / 64);

    *found = false;
    if (rc < 0) {
        return rc;
    }
    if (m->json) {
        *found = key.kind == CEL_STRING && op_find_member(r, m, key.s, ret);
        return 0;
    }
    for (uint32_t i = 0; i < m->len && !*found; i++) {
        *found = op_key_equal(m->entries[i].key, key);
        if (*found) {
            *ret = m->entries[i].value;
        }
    }
    return 0;
}

/* ---- order ---- */

static int op_compare_time(struct cel_time a, struct cel_time b)
{
    return a.s != b.s ? op_sign(a.s < b.s, true) : op_sign(a.ns<b.ns, a.ns> b.ns);
}

int cel_compare(struct cel_run *r, struct cel_value a, struct cel_value b, int *ret)
{
    if (cel_is_number(a) && cel_is_number(b)) {
        *ret = cel_compare_numbers(a, b);
        return cel_spend(r, 1);
    }
    if (a.kind != b.kind) {
        return cel_no_overload(r);
    }
    switch (a.kind) {
    case CEL_BOOL:
        *ret = a.b - b.b;
        break;
    case CEL_STRING:
    case CEL_BYTES:
        *ret = hk_str_cmp(a.s, b.s);
        *ret = op_sign(*ret<0, *ret> 0);
        return cel_spend(r, 1 + HK_MIN(a.s.n, b.s.n) / 10);
    case CEL_TIMESTAMP:
        *ret = op_compare_time(a.t, b.t);
        break;
    case CEL_DURATION:
        *ret = op_sign(a.i<b.i, a.i> b.i);
        break;
    default:
        return cel_no_overload(r);
    }
    return cel_spend(r, 1);
}

static int op_order(struct cel_run *r, enum cel_op op, struct cel_value a, struct cel_value b,
                    struct cel_value *ret)
{
    int order = 0;
    const int rc = cel_compare(r, a, b, &order);

    *ret = cel_of_bool(order != 2 && (op == OP_LT   ? order < 0
                                      : op == OP_LE ? order <= 0
                                      : op == OP_GT ? order > 0
                                                    : order >= 0));
    return rc;
}

static int op_in(struct cel_run *r, struct cel_value v, struct cel_value in, struct cel_value *ret)
{
    struct cel_value other;
    bool found = false;
    int rc = cel_spend(r, 1);

    if (rc == 0 && in.kind == CEL_MAP) {
        rc = cel_find_key(r, in.map, v, &found, &other);
        *ret = cel_of_bool(found);
        return rc;
    }
    if (in.kind != CEL_LIST) {
        return rc < 0 ? rc : cel_no_overload(r);
    }
    for (uint32_t i = 0; i < in.list->len && rc == 0 && !found; i++) {
        rc = cel_equal(r, cel_list_at(in.list, i, r->a), v, &found);
    }
    *ret = cel_of_bool(found);
    return rc;
}

/* ---- arithmetic ---- */

static int op_overflow(struct cel_run *r)
{
    return cel_error(r, "integer overflow");
}

static int op_zero(struct cel_run *r, enum cel_op op)
{
    return cel_error(r, op == OP_DIV ? "division by zero" : "modulus by zero");
}

static int op_int(struct cel_run *r, enum cel_op op, int64_t a, int64_t b, int64_t *ret)
{
    bool over = false;

    switch (op) {
    case OP_ADD:
        over = __builtin_add_overflow(a, b, ret);
        break;
    case OP_SUB:
        over = __builtin_sub_overflow(a, b, ret);
        break;
    case OP_MUL:
        over = __builtin_mul_overflow(a, b, ret);
        break;
    default:
        if (b == 0) {
            return op_zero(r, op);
        }
        over = a == INT64_MIN && b == -1;
        if (!over) {
            *ret = op == OP_DIV ? a / b : a % b;
        }
    }
    return over ? op_overflow(r) : 0;
}

static int op_uint(struct cel_run *r, enum cel_op op, uint64_t a, uint64_t b, uint64_t *ret)
{
    bool over = false;

    switch (op) {
    case OP_ADD:
        over = __builtin_add_overflow(a, b, ret);
        break;
    case OP_SUB:
        over = __builtin_sub_overflow(a, b, ret);
        break;
    case OP_MUL:
        over = __builtin_mul_overflow(a, b, ret);
        break;
    default:
        if (b == 0) {
            return op_zero(r, op);
        }
        *ret = op == OP_DIV ? a / b : a % b;
    }
    return over ? cel_error(r, "unsigned integer overflow") : 0;
}

static int op_double(struct cel_run *r, enum cel_op op, double a, double b, double *ret)
{
    switch (op) {
    case OP_ADD:
        *ret = a + b;
        return 0;
    case OP_SUB:
        *ret = a - b;
        return 0;
    case OP_MUL:
        *ret = a * b;
        return 0;
    case OP_DIV:
        *ret = a / b;
        return 0;
    default:
        return cel_no_overload(r);
    }
}

/* t + ns, where ns may be negated: -INT64_MIN is no int64. */
static int op_move_time(struct cel_run *r, struct cel_time t, int64_t ns, bool back,
                        struct cel_value *ret)
{
    int64_t s = ns / NS_PER_S, rest = ns % NS_PER_S;

    s = back ? -s : s;
    rest = t.ns + (back ? -rest : rest);
    s += rest < 0 ? -1 : rest >= NS_PER_S;
    rest += rest < 0 ? NS_PER_S : rest >= NS_PER_S ? -NS_PER_S : 0;
    *ret = (struct cel_value){.kind = CEL_TIMESTAMP, .t = {t.s + s, (int32_t)rest}};
    return cel_time_in_range(ret->t.s) ? 0 : cel_error(r, "timestamp overflow");
}

static int op_time_between(struct cel_run *r, struct cel_time a, struct cel_time b,
                           struct cel_value *ret)
{
    int64_t ns;

    *ret = cel_of_duration(0);
    if (__builtin_mul_overflow(a.s - b.s, NS_PER_S, &ns) ||
        __builtin_add_overflow(ns, a.ns - b.ns, &ret->i)) {
        return op_overflow(r);
    }
    return 0;
}

static int op_time(struct cel_run *r, enum cel_op op, struct cel_value a, struct cel_value b,
                   struct cel_value *ret)
{
    if (op == OP_SUB && a.kind == CEL_TIMESTAMP && b.kind == CEL_TIMESTAMP) {
        return op_time_between(r, a.t, b.t, ret);
    }
    if (a.kind == CEL_TIMESTAMP && b.kind == CEL_DURATION) {
        return op_move_time(r, a.t, b.i, op == OP_SUB, ret);
    }
    if (op == OP_ADD && a.kind == CEL_DURATION && b.kind == CEL_TIMESTAMP) {
        return op_move_time(r, b.t, a.i, false, ret);
    }
    if (a.kind == CEL_DURATION && b.kind == CEL_DURATION) {
        *ret = a;
        return op_int(r, op, a.i, b.i, &ret->i);
    }
    return cel_no_overload(r);
}

static int op_concat_text(struct cel_run *r, struct cel_value a, struct cel_value b,
                          struct cel_value *ret)
{
    const int rc = cel_spend_text(r, a.s.n + b.s.n);

    if (rc < 0) {
        return rc;
    }
    char *s = hk_arena_alloc(r->a, a.s.n + b.s.n + 1);
    memcpy(s, a.s.s ? a.s.s : "", a.s.n);
    memcpy(s + a.s.n, b.s.s ? b.s.s : "", b.s.n);
    s[a.s.n + b.s.n] = '\0';
    *ret = a;
    ret->s = (struct hk_str){s, a.s.n + b.s.n};
    return 0;
}

/* Elements that a set has already are left out; those of a list with keys replace their likes. */
static int op_merge_element(struct cel_run *r, struct cel_list *all, struct cel_value *items,
                            const struct cel_type *t, struct cel_value v)
{
    uint32_t at = all->len;
    int rc = 0;

    if (t && t->list != CEL_LIST_ATOMIC) {
        rc = op_find_element(r, all, t, v, &at);
    }
    items[at] = v;
    all->len += at == all->len;
    return rc;
}

static int op_concat_list(struct cel_run *r, const struct cel_list *a, const struct cel_list *b,
                          struct cel_value *ret)
{
    const uint64_t most = (uint64_t)a->len + b->len;
    int rc = cel_spend(r, (most + 9) / 10);

    if (rc < 0) {
        return rc;
    }
    struct cel_value *items = hk_arena_array(r->a, most, sizeof(*items));
    struct cel_list *all = hk_arena_zalloc(r->a, sizeof(*all));
    all->items = items;
    all->type = a->type && a->type->list != CEL_LIST_ATOMIC ? a->type : NULL;
    for (uint32_t i = 0; i < a->len; i++) {
        items[all->len++] = cel_list_at(a, i, r->a);
    }
    for (uint32_t i = 0; i < b->len && rc == 0; i++) {
        rc = op_merge_element(r, all, items, all->type, cel_list_at(b, i, r->a));
    }
    *ret = (struct cel_value){.kind = CEL_LIST, .list = all};
    return rc;
}

static int op_arithmetic(struct cel_run *r, enum cel_op op, struct cel_value a, struct cel_value b,
                         struct cel_value *ret)
{
    if (a.kind != b.kind || a.kind == CEL_TIMESTAMP || a.kind == CEL_DURATION) {
        return op == OP_ADD || op == OP_SUB ? op_time(r, op, a, b, ret) : cel_no_overload(r);
    }
    *ret = a;
    switch (a.kind) {
    case CEL_INT:
        return op_int(r, op, a.i, b.i, &ret->i);
    case CEL_UINT:
        return op_uint(r, op, a.u, b.u, &ret->u);
    case CEL_DOUBLE:
        return op_double(r, op, a.d, b.d, &ret->d);
    case CEL_STRING:
    case CEL_BYTES:
        return op == OP_ADD ? op_concat_text(r, a, b, ret) : cel_no_overload(r);
    case CEL_LIST:
        return op == OP_ADD ? op_concat_list(r, a.list, b.list, ret) : cel_no_overload(r);
    default:
        return cel_no_overload(r);
    }
}

int cel_operate(struct cel_run *r, enum cel_op op, struct cel_value a, struct cel_value b,
                struct cel_value *ret)
{
    bool equal = false;
    int rc;

    switch (op) {
    case OP_EQ:
    case OP_NE:
        rc = cel_equal(r, a, b, &equal);
        *ret = cel_of_bool(equal == (op == OP_EQ));
        return rc;
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
        return op_order(r, op, a, b, ret);
    case OP_IN:
        return op_in(r, a, b, ret);
    default:
        rc = cel_spend(r, 1);
        return rc < 0 ? rc : op_arithmetic(r, op, a, b, ret);
    }
}

int cel_negate(struct cel_run *r, struct cel_value v, struct cel_value *ret)
{
    *ret = v;
    if (v.kind == CEL_DOUBLE) {
        ret->d = -v.d;
        return 0;
    }
    if (v.kind != CEL_INT) {
        return cel_no_overload(r);
    }
    return __builtin_sub_overflow(0, v.i, &ret->i) ? op_overflow(r) : 0;
}
