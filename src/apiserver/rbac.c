// SPDX-License-Identifier: Apache-2.0
// Evaluation of RBAC objects. They are read into one book: subjects, each with a chain of grants; a
// grant is the rules of a role and the namespace where they apply. After a change of any of the
// four kinds, the next query rebuilds the book; without changes a query compares one revision per
// kind.
#include "apiserver/rbac.h"

#include "api/rights.h"
#include "base/map.h"

#define GROUP "rbac.authorization.k8s.io"

enum { ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS, NKINDS };

struct grant {
    struct hk_str ns; /* where it applies; "": everywhere */
    const struct json *rules;
    uint32_t next; /* of the same subject, HK_NONE: the last */
};

struct rbac {
    const struct store *store;
    uint32_t res[NKINDS];
    uint64_t rv; /* revision that the book shows */
    bool read;   /* the book exists */

    struct hk_arena mem;               /* for all members below */
    struct hk_intern roles;            /* "namespace/name" */
    HK_VEC(const struct json *) rules; /* by role id */
    struct hk_intern subjects;         /* "User/name" and "Group/name" */
    HK_VEC(uint32_t) first;            /* first grant by subject id */
    HK_VEC(struct grant) grants;
};

/* ---- the book ---- */

static void book_close(struct rbac *b)
{
    hk_intern_fini(&b->roles);
    hk_intern_fini(&b->subjects);
    hk_vec_clear(&b->rules);
    hk_vec_clear(&b->first);
    hk_vec_clear(&b->grants);
    hk_arena_clear(&b->mem);
}

static struct hk_str role_key(struct hk_buf *buf, struct hk_str ns, struct hk_str name)
{
    hk_buf_clear(buf);
    hk_buf_addf(buf, "%.*s/%.*s", HK_FMT(ns), HK_FMT(name));
    return hk_buf_str(buf);
}

static bool rbac_parse_object(struct rbac *b, const struct store_obj *o, struct json *ret)
{
    return json_parse(hk_arena_str(&b->mem, o->text), 0, &b->mem, ret, NULL) == 0;
}

static bool on_role(void *ctx, const struct store_obj *o)
{
    HK_AUTO(hk_buf_fini) struct hk_buf key = {0};
    struct rbac *b = ctx;
    struct json *role = hk_arena_alloc(&b->mem, sizeof(*role));

    if (rbac_parse_object(b, o, role)) {
        const uint32_t id = hk_intern(&b->roles, role_key(&key, o->ns, o->name));
        while (b->rules.len <= id) {
            hk_vec_push(&b->rules, NULL);
        }
        b->rules.at[id] = json_get(role, "rules");
    }
    return true;
}

static const struct json *find_rules(const struct rbac *b, struct hk_str ns,
                                     const struct json *role_ref)
{
    HK_AUTO(hk_buf_fini) struct hk_buf key = {0};
    const bool local = hk_str_is(json_str_field(role_ref, "kind"), "Role");
    const uint32_t id = hk_intern_find(
        &b->roles, role_key(&key, local ? ns : HK_STR(""), json_str_field(role_ref, "name")));

    return id == HK_NONE ? NULL : b->rules.at[id];
}

static void grant(struct rbac *b, struct hk_str subject, struct hk_str ns, const struct json *rules)
{
    const uint32_t id = hk_intern(&b->subjects, subject);

    while (b->first.len <= id) {
        hk_vec_push(&b->first, HK_NONE);
    }
    hk_vec_push(&b->grants,
                (struct grant){.ns = hk_arena_str(&b->mem, ns), .rules = rules, b->first.at[id]});
    b->first.at[id] = b->grants.len - 1;
}

/* A service account without a namespace is in the binding's, ns. */
static void write_subject(const struct json *subject, struct hk_str ns, struct hk_buf *out)
{
    const struct hk_str kind = json_str_field(subject, "kind");
    const struct hk_str name = json_str_field(subject, "name");
    const struct hk_str own = json_str_field(subject, "namespace");

    if (hk_str_is(kind, "ServiceAccount")) {
        hk_buf_addf(out, "User/system:serviceaccount:%.*s:%.*s", HK_FMT(own.n > 0 ? own : ns),
                    HK_FMT(name));
    } else {
        hk_buf_addf(out, "%.*s/%.*s", HK_FMT(kind), HK_FMT(name));
    }
}

static bool on_binding(void *ctx, const struct store_obj *o)
{
    struct rbac *b = ctx;
    struct json binding;

    if (!rbac_parse_object(b, o, &binding)) {
        return true;
    }
    const struct json *rules = find_rules(b, o->ns, json_get(&binding, "roleRef"));
    const struct json *subjects = json_get(&binding, "subjects");
    for (uint32_t i = 0; rules && i < json_len(subjects); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf subject = {0};
        write_subject(&subjects->items[i], o->ns, &subject);
        grant(b, hk_buf_str(&subject), o->ns, rules);
    }
    return true;
}

static void rbac_scan_kind(struct rbac *b, uint32_t kind, store_scan_fn *fn)
{
    store_scan(b->store, b->res[kind], HK_STR(""), HK_STR(""), HK_STR(""), fn, b);
}

static bool outdated(const struct rbac *b)
{
    struct store_event ev;

    for (uint32_t k = 0; k < NKINDS; k++) {
        uint64_t rv = b->rv;
        if (store_next(b->store, b->res[k], HK_STR(""), &rv, &ev) != STORE_NEXT_NONE) {
            return true;
        }
    }
    return false;
}

static void rbac_refresh(struct rbac *b)
{
    if (!b->read || outdated(b)) {
        book_close(b);
        rbac_scan_kind(b, ROLES, on_role);
        rbac_scan_kind(b, CLUSTER_ROLES, on_role);
        rbac_scan_kind(b, BINDINGS, on_binding);
        rbac_scan_kind(b, CLUSTER_BINDINGS, on_binding);
        b->read = true;
    }
    b->rv = store_rv(b->store);
}

struct rbac *rbac_new(const struct rest *rest, const struct store *store)
{
    static const char *const plurals[NKINDS] = {
        [ROLES] = "roles",
        [CLUSTER_ROLES] = "clusterroles",
        [BINDINGS] = "rolebindings",
        [CLUSTER_BINDINGS] = "clusterrolebindings",
    };
    struct rbac *b = hk_zalloc(sizeof(*b));

    b->store = store;
    for (uint32_t k = 0; k < NKINDS; k++) {
        b->res[k] = rest_kind_find(rest, HK_STR(GROUP), HK_STR("v1"), hk_str(plurals[k]))->res;
    }
    return b;
}

void rbac_free(struct rbac *b)
{
    if (b) {
        book_close(b);
        hk_vec_fini(&b->rules);
        hk_vec_fini(&b->first);
        hk_vec_fini(&b->grants);
        hk_arena_fini(&b->mem);
        hk_free(b);
    }
}

/* ---- one rule ---- */

static bool rbac_matches_list(const struct json *list, struct hk_str word)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct hk_str item = json_str(&list->items[i], HK_STR(""));
        if (hk_str_is(item, "*") || hk_str_eq(item, word)) {
            return true;
        }
    }
    return false;
}

/* "pods", "pods/log", or "*" and "* /log" (without the blank) for every resource. */
static bool resource_matches(const struct json *list, struct hk_str plural, struct hk_str sub)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct hk_str rest = json_str(&list->items[i], HK_STR(""));
        struct hk_str head;
        if (hk_str_is(rest, "*")) {
            return true;
        }
        if (!hk_str_cut(&rest, '/', &head) || !hk_str_eq(rest.s ? rest : HK_STR(""), sub)) {
            continue;
        }
        if (hk_str_eq(head, plural) || (sub.n > 0 && hk_str_is(head, "*"))) {
            return true;
        }
    }
    return false;
}

static bool name_matches(const struct json *list, struct hk_str name)
{
    if (!json_is(list, JSON_ARRAY) || list->len == 0) {
        return true;
    }
    for (uint32_t i = 0; i < list->len; i++) {
        if (hk_str_eq(json_str(&list->items[i], HK_STR("")), name)) {
            return true;
        }
    }
    return false;
}

static bool path_matches(const struct json *list, struct hk_str path)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct hk_str item = json_str(&list->items[i], HK_STR(""));
        if (hk_str_eq(item, path)) {
            return true;
        }
        if (item.n > 0 && item.s[item.n - 1] == '*' && path.n >= item.n - 1 &&
            memcmp(item.s, path.s, item.n - 1) == 0) {
            return true;
        }
    }
    return false;
}

static bool rule_allows(const struct json *rule, const struct rbac_ask *ask)
{
    if (!rbac_matches_list(json_get(rule, "verbs"), ask->verb)) {
        return false;
    }
    if (ask->path.n > 0) {
        return path_matches(json_get(rule, "nonResourceURLs"), ask->path);
    }
    return rbac_matches_list(json_get(rule, "apiGroups"), ask->group) &&
           resource_matches(json_get(rule, "resources"), ask->plural, ask->sub) &&
           name_matches(json_get(rule, "resourceNames"), ask->name);
}

/* ---- all rules of a user ---- */

struct visit {
    struct rbac *b;
    struct hk_str ns;
    bool (*fn)(void *ctx, const struct json *rule); /* false stops the visit */
    void *ctx;
};

static bool visit_subject(const struct visit *v, const char *kind, const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf key = {0};

    hk_buf_addf(&key, "%s/%s", kind, name);
    const uint32_t id = hk_intern_find(&v->b->subjects, hk_buf_str(&key));
    uint32_t at = id == HK_NONE ? HK_NONE : v->b->first.at[id];
    for (; at != HK_NONE; at = v->b->grants.at[at].next) {
        const struct grant *g = &v->b->grants.at[at];
        if (g->ns.n > 0 && !hk_str_eq(g->ns, v->ns)) {
            continue;
        }
        for (uint32_t i = 0; i < json_len(g->rules); i++) {
            if (!v->fn(v->ctx, &g->rules->items[i])) {
                return false;
            }
        }
    }
    return true;
}

static bool visit_user(const struct visit *v, const struct auth_user *u)
{
    bool on;

    rbac_refresh(v->b);
    on = visit_subject(v, "User", u->name);
    for (uint32_t i = 0; on && i < u->ngroups; i++) {
        on = visit_subject(v, "Group", u->groups[i]);
    }
    return on;
}

static bool go_on_unless_allowed(void *ctx, const struct json *rule)
{
    return !rule_allows(rule, ctx);
}

bool rbac_allows(struct rbac *b, const struct auth_user *u, const struct rbac_ask *ask)
{
    struct rbac_ask copy = *ask;
    /* Non-resource paths have no namespace, so only cluster-wide rules can allow them. */
    const struct visit v = {b, ask->path.n > 0 ? HK_STR("") : ask->ns, go_on_unless_allowed, &copy};

    return auth_is_admin(u) || !visit_user(&v, u);
}

struct show {
    void (*fn)(void *ctx, const struct json *rule);
    void *ctx;
};

static bool show_rule(void *ctx, const struct json *rule)
{
    const struct show *s = ctx;

    s->fn(s->ctx, rule);
    return true;
}

void rbac_rules(struct rbac *b, const struct auth_user *u, struct hk_str ns,
                void (*fn)(void *ctx, const struct json *rule), void *ctx)
{
    struct show s = {fn, ctx};
    const struct visit v = {b, ns, show_rule, &s};

    visit_user(&v, u);
}

/* ---- granting ---- */

/* The number of elements to visit: an empty list means anything. */
static uint32_t at_least_one(const struct json *list)
{
    return json_is(list, JSON_ARRAY) && list->len > 0 ? list->len : 1;
}

static struct hk_str word_at(const struct json *list, uint32_t i)
{
    return json_str(json_item(list, i), HK_STR(""));
}

/* Checks each resource and name of the rule, for one verb and one group. */
static bool covers_resources(struct rbac *b, const struct auth_user *u, struct rbac_ask ask,
                             const struct json *rule)
{
    const struct json *resources = json_get(rule, "resources");
    const struct json *names = json_get(rule, "resourceNames");

    for (uint32_t r = 0; r < json_len(resources); r++) {
        struct hk_str rest = word_at(resources, r);
        hk_str_cut(&rest, '/', &ask.plural);
        ask.sub = rest.s ? rest : HK_STR("");
        for (uint32_t n = 0; n < at_least_one(names); n++) {
            ask.name = word_at(names, n);
            if (!rbac_allows(b, u, &ask)) {
                return false;
            }
        }
    }
    return true;
}

static bool covers_rule(struct rbac *b, const struct auth_user *u, struct hk_str ns,
                        const struct json *rule)
{
    const struct json *verbs = json_get(rule, "verbs");
    const struct json *groups = json_get(rule, "apiGroups");
    const struct json *paths = json_get(rule, "nonResourceURLs");

    for (uint32_t v = 0; v < json_len(verbs); v++) {
        struct rbac_ask ask = {.verb = word_at(verbs, v), .ns = ns};
        for (uint32_t g = 0; g < json_len(groups); g++) {
            ask.group = word_at(groups, g);
            if (!covers_resources(b, u, ask, rule)) {
                return false;
            }
        }
        for (uint32_t p = 0; p < json_len(paths); p++) {
            ask.path = word_at(paths, p);
            if (!rbac_allows(b, u, &ask)) {
                return false;
            }
        }
    }
    return true;
}

bool rbac_covers(struct rbac *b, const struct auth_user *u, struct hk_str ns,
                 const struct json *rules)
{
    for (uint32_t i = 0; i < json_len(rules); i++) {
        if (!covers_rule(b, u, ns, &rules->items[i])) {
            return false;
        }
    }
    return true;
}

const struct json *rbac_role_rules(struct rbac *b, struct hk_str ns, const struct json *role_ref)
{
    rbac_refresh(b);
    return find_rules(b, ns, role_ref);
}

/* ---- messages ---- */

void rbac_write_refusal(const struct auth_user *u, const struct rbac_ask *ask, struct hk_buf *out)
{
    if (ask->path.n > 0) {
        hk_buf_addf(out, "User \"%s\" cannot %.*s path \"%.*s\"", u->name, HK_FMT(ask->verb),
                    HK_FMT(ask->path));
        return;
    }
    rights_write_refusal(u->name,
                         &(struct rights_ask){.verb = ask->verb,
                                              .group = ask->group,
                                              .resource = ask->plural,
                                              .sub = ask->sub,
                                              .ns = ask->ns},
                         out);
}
