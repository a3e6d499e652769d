// SPDX-License-Identifier: Apache-2.0
// Compares the amounts of a queue with those above and below it. Its capability must not exceed
// that of the nearest ancestor with a limit, nor be less than any branch below. Guarantees and
// deserved shares of children must in sum fit into those of their parent, unless that is the root.
//
// Amounts have the units of Volcano's scheduler: milli-units, but bytes for memory and whole pods.
// Resources that it does not schedule are left out.
#include "admission/vc_priv.h"

enum { TREE_DEPTH = 64 }; /* queues stored without admission may form a cycle */

/* ---- amounts ---- */

struct amount {
    struct hk_str name;
    double value;
};

/* cpu and memory come first and always exist; the rest is sorted by name. */
struct amounts {
    struct amount *at;
    uint32_t len, cap;
};

static void amounts_fini(struct amounts *a)
{
    hk_vec_fini(a);
}

static bool is_scheduled(struct hk_str name)
{
    if (hk_str_starts(name, "count/") || hk_str_starts(name, "requests.")) {
        return false;
    }
    return hk_str_contains(name, "/") || hk_str_is(name, "cpu") || hk_str_is(name, "memory") ||
           hk_str_is(name, "pods") || hk_str_is(name, "ephemeral-storage") ||
           hk_str_starts(name, "hugepages-") || hk_str_starts(name, "attachable-volumes-");
}

/* False when the list lacks the resource or it is not scheduled. */
static bool amount_of(const struct json *list, struct hk_str name, double *ret)
{
    struct quantity v;

    if (!is_scheduled(name) || !amount_get(list, name, &v)) {
        return false;
    }
    *ret = hk_str_is(name, "memory") || hk_str_is(name, "pods") ? (double)quantity_value(v)
                                                                : (double)quantity_milli(v);
    return true;
}

static struct amount *vc_queue_tree_find_amount(const struct amounts *a, struct hk_str name)
{
    for (uint32_t i = 0; i < a->len; i++) {
        if (hk_str_eq(a->at[i].name, name)) {
            return &a->at[i];
        }
    }
    return NULL;
}

static void vc_queue_tree_insert_amount(struct amounts *a, struct hk_str name)
{
    uint32_t i = a->len;

    hk_vec_push(a, (struct amount){0});
    while (i > 2 && hk_str_cmp(a->at[i - 1].name, name) > 0) {
        a->at[i] = a->at[i - 1];
        i--;
    }
    a->at[i] = (struct amount){.name = name};
}

static void amounts_add(struct amounts *a, const struct json *list)
{
    double v;

    if (a->len == 0) {
        hk_vec_push(a, (struct amount){.name = HK_STR("cpu")});
        hk_vec_push(a, (struct amount){.name = HK_STR("memory")});
    }
    for (uint32_t i = 0; i < edit_size(list); i++) {
        const struct hk_str name = list->members[i].key;
        if (!amount_of(list, name, &v)) {
            continue;
        }
        if (!vc_queue_tree_find_amount(a, name)) {
            vc_queue_tree_insert_amount(a, name);
        }
        vc_queue_tree_find_amount(a, name)->value += v;
    }
}

/* A resource missing in the limit does not fit. cpu and memory are never missing. */
static bool amounts_fit(const struct amounts *a, const struct amounts *limit)
{
    for (uint32_t i = 0; i < a->len; i++) {
        const struct amount *l = vc_queue_tree_find_amount(limit, a->at[i].name);
        if (!l || a->at[i].value > l->value) {
            return false;
        }
    }
    return true;
}

static void amounts_write(const struct amounts *a, struct hk_buf *out)
{
    for (uint32_t i = 0; i < a->len; i++) {
        hk_buf_addf(out, "%s%.*s %.2f", i > 0 ? ", " : "", HK_FMT(a->at[i].name), a->at[i].value);
    }
}

/* cpu and memory as quantities, the rest as plain numbers. */
static void vc_queue_tree_write_amount(struct hk_str name, double v, struct hk_buf *out)
{
    if (hk_str_is(name, "cpu")) {
        quantity_write(quantity_of_milli((int64_t)v, QUANTITY_DECIMAL_SI), out);
    } else if (hk_str_is(name, "memory")) {
        quantity_write(quantity_of((int64_t)v, QUANTITY_BINARY_SI), out);
    } else {
        hk_buf_addf(out, "%.2f", v);
    }
}

/* ---- the tree ---- */

struct link {
    struct hk_str name, parent;
};

/* All queues except the one being checked, with their parents. */
struct tree {
    struct vc *v;
    HK_VEC(struct link) links;
};

static bool add_link(void *arg, const struct json *queue)
{
    struct tree *t = arg;
    struct hk_arena *a = t->v->q->mem;
    const struct hk_str name = edit_str(json_get(queue, "metadata"), "name");
    const struct hk_str parent = edit_str(json_get(queue, "spec"), "parent");

    if (parent.n > 0 && !hk_str_eq(name, t->v->q->name)) {
        hk_vec_push(&t->links, (struct link){hk_arena_str(a, name), hk_arena_str(a, parent)});
    }
    return true;
}

static const struct json *vc_queue_tree_queue_spec(const struct tree *t, struct hk_str name)
{
    return json_get(vc_queue(t->v, name), "spec");
}

static bool has_children(const struct tree *t, struct hk_str name)
{
    for (uint32_t i = 0; i < t->links.len; i++) {
        if (hk_str_eq(t->links.at[i].parent, name)) {
            return true;
        }
    }
    return false;
}

/* ---- sums ---- */

struct shares {
    struct amounts guarantee, deserved;
};

static void shares_fini(struct shares *s)
{
    amounts_fini(&s->guarantee);
    amounts_fini(&s->deserved);
}

static void shares_add(struct shares *s, const struct json *spec)
{
    amounts_add(&s->guarantee, json_at(spec, "guarantee.resource"));
    amounts_add(&s->deserved, json_get(spec, "deserved"));
}

/* Whether the sum so far fits into the parent's share; whose: which queue the message is about. */
static bool check_share(struct vc *v, const char *whose, struct hk_str name, const char *what,
                        const struct amounts *sum, const struct amounts *limit)
{
    if (amounts_fit(sum, limit)) {
        return true;
    }
    hk_buf_addf(&v->why, "%s %.*s validation failed: sum of children's %s (", whose, HK_FMT(name),
                what);
    amounts_write(sum, &v->why);
    hk_buf_addf(&v->why, ") exceeds parent's %s limit (", what);
    amounts_write(limit, &v->why);
    hk_buf_adds(&v->why, ")");
    return false;
}

/* Adds up the children of the parent, the queue being checked last. The message shows the sum at
 * the first child that exceeds the limit. */
static bool check_sums(const struct tree *t, const char *whose, struct hk_str parent,
                       const struct json *limit_spec, const struct json *last)
{
    HK_AUTO(shares_fini) struct shares sum = {0};
    HK_AUTO(shares_fini) struct shares limit = {0};

    shares_add(&limit, limit_spec);
    for (uint32_t i = 0; i <= t->links.len; i++) {
        const bool own = i == t->links.len;
        if (own ? !last : !hk_str_eq(t->links.at[i].parent, parent)) {
            continue;
        }
        shares_add(&sum, own ? last : vc_queue_tree_queue_spec(t, t->links.at[i].name));
        if (!check_share(t->v, whose, parent, "guarantee", &sum.guarantee, &limit.guarantee) ||
            !check_share(t->v, whose, parent, "deserved", &sum.deserved, &limit.deserved)) {
            return false;
        }
    }
    return true;
}

/* ---- capability ---- */

/* The capability of the nearest ancestor below the root that sets one; 0 when none does. */
static double ancestor_capability(const struct tree *t, struct hk_str parent, struct hk_str name)
{
    for (int steps = 0; steps < TREE_DEPTH && parent.n > 0 && !hk_str_is(parent, "root"); steps++) {
        const struct json *spec = vc_queue_tree_queue_spec(t, parent);
        double v;
        if (amount_of(json_get(spec, "capability"), name, &v) && v > 0) {
            return v;
        }
        parent = edit_str(spec, "parent");
    }
    return 0;
}

/* The largest capability of the branches below; the topmost limit of a branch counts. */
static double branch_capability(const struct tree *t, struct hk_str parent, struct hk_str name,
                                int depth)
{
    double max = 0;

    for (uint32_t i = 0; i < t->links.len && depth < TREE_DEPTH; i++) {
        double v = 0;
        if (!hk_str_eq(t->links.at[i].parent, parent)) {
            continue;
        }
        if (!amount_of(json_get(vc_queue_tree_queue_spec(t, t->links.at[i].name), "capability"),
                       name, &v) ||
            v <= 0) {
            v = branch_capability(t, t->links.at[i].name, name, depth + 1);
        }
        max = HK_MAX(max, v);
    }
    return max;
}

static bool blame_capability(const struct tree *t, const struct amount *own, const char *words,
                             double other)
{
    struct hk_buf *why = &t->v->why;

    hk_buf_addf(why, "queue %.*s capability[%.*s]=", HK_FMT(t->v->q->name), HK_FMT(own->name));
    vc_queue_tree_write_amount(own->name, own->value, why);
    hk_buf_adds(why, words);
    vc_queue_tree_write_amount(own->name, other, why);
    return false;
}

static bool check_ancestors(const struct tree *t, const struct amounts *own, struct hk_str parent)
{
    for (uint32_t i = 0; i < own->len; i++) {
        const double limit = ancestor_capability(t, parent, own->at[i].name);
        if (limit > 0 && own->at[i].value > limit) {
            return blame_capability(t, &own->at[i], " exceeds its ancestor's capability=", limit);
        }
    }
    return true;
}

static bool check_branches(const struct tree *t, const struct amounts *own)
{
    for (uint32_t i = 0; i < own->len; i++) {
        const double most = branch_capability(t, t->v->q->name, own->at[i].name, 0);
        if (own->at[i].value > 0 && own->at[i].value < most) {
            return blame_capability(t, &own->at[i],
                                    " is smaller than its descendants' max capability=", most);
        }
    }
    return true;
}

/* ---- all checks ---- */

static bool check_above(const struct tree *t, const struct json *spec, const struct amounts *own)
{
    const struct hk_str parent = edit_str(spec, "parent");

    if (parent.n == 0 || hk_str_is(parent, "root")) {
        return true;
    }
    if (!vc_queue_tree_queue_spec(t, parent) && !vc_queue(t->v, parent)) {
        hk_buf_addf(&t->v->why, "parent queue %.*s not found: ", HK_FMT(parent));
        vc_write_no_queue(t->v, parent);
        return false;
    }
    return check_ancestors(t, own, parent) &&
           check_sums(t, "parent queue", parent, vc_queue_tree_queue_spec(t, parent), spec);
}

void vc_queue_check_tree(struct vc *v)
{
    const struct json *spec = json_get(v->q->obj, "spec");
    HK_AUTO(amounts_fini) struct amounts own = {0};
    struct tree t = {.v = v};

    admit_each(v->q, api_kind(API_QUEUE), HK_STR(""), add_link, &t);
    amounts_add(&own, json_get(spec, "capability"));
    if (check_above(&t, spec, &own) && has_children(&t, v->q->name) && check_branches(&t, &own)) {
        (void)check_sums(&t, "queue", v->q->name, spec, NULL);
    }
    hk_vec_fini(&t.links);
}
