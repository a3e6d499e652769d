// SPDX-License-Identifier: Apache-2.0
// Reviews: questions about users and rights that are posted as objects and answered with their
// status filled in. Nothing is stored.
#include "apiserver/access.h"
#include "apiserver/server_priv.h"

static struct json *put(struct exchange *x, struct json *obj, const char *key, struct json v)
{
    return json_put(obj, &x->mem, hk_str(key), v);
}

static struct json strings(struct exchange *x, const char *const *at, uint32_t n)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < n; k++) {
        json_push(&list, &x->mem, json_make_str(hk_str(at[k])));
    }
    return list;
}

static struct json user_info(struct exchange *x, const struct auth_user *u)
{
    struct json info = json_make_object();

    put(x, &info, "username", json_make_str(hk_str(u->name)));
    if (u->uid && u->uid[0] != '\0') {
        put(x, &info, "uid", json_make_str(hk_str(u->uid)));
    }
    put(x, &info, "groups", strings(x, u->groups, u->ngroups));
    return info;
}

/* ---- the answers ---- */

static struct hk_str text_of(const struct json *obj, const char *key)
{
    return json_str(json_get(obj, key), HK_STR(""));
}

static struct rbac_ask ask_of(const struct json *spec)
{
    const struct json *path = json_get(spec, "nonResourceAttributes");
    const struct json *r = json_get(spec, "resourceAttributes");

    if (json_is(path, JSON_OBJECT)) {
        return (struct rbac_ask){.verb = text_of(path, "verb"), .path = text_of(path, "path")};
    }
    return (struct rbac_ask){
        .verb = text_of(r, "verb"),
        .group = text_of(r, "group"),
        .plural = text_of(r, "resource"),
        .sub = text_of(r, "subresource"),
        .ns = text_of(r, "namespace"),
        .name = text_of(r, "name"),
    };
}

static void verdict(struct exchange *x, const struct auth_user *u, const struct json *spec,
                    struct json *status)
{
    const struct rbac_ask ask = ask_of(spec);
    const bool allowed = access_allows(x, u, &ask);

    put(x, status, "allowed", json_make_bool(allowed));
    if (allowed && auth_is_admin(u)) {
        put(x, status, "reason", json_make_str(HK_STR("member of system:masters")));
    }
}

static void self_access(struct exchange *x, const struct json *spec, struct json *status)
{
    verdict(x, &x->user, spec, status);
}

static void other_access(struct exchange *x, const struct json *spec, struct json *status)
{
    const struct json *list = json_get(spec, "groups");
    const uint32_t n = json_is(list, JSON_ARRAY) ? list->len : 0;
    const char **groups = hk_arena_array(&x->mem, n, sizeof(*groups));
    const struct auth_user u = {
        .name = hk_arena_str(&x->mem, text_of(spec, "user")).s,
        .groups = groups,
        .ngroups = n,
    };

    for (uint32_t k = 0; k < n; k++) {
        groups[k] = hk_arena_str(&x->mem, json_str(json_item(list, k), HK_STR(""))).s;
    }
    verdict(x, &u, spec, status);
}

/* ---- all that somebody may do ---- */

struct rule_lists {
    struct exchange *x;
    struct json resources, paths;
};

static void copy_lists(struct exchange *x, const struct json *rule, const char *const *keys,
                       uint32_t n, struct json *to)
{
    struct json copy = json_make_object();

    for (uint32_t k = 0; k < n; k++) {
        const struct json *v = json_get(rule, keys[k]);
        if (json_is(v, JSON_ARRAY) && v->len > 0) {
            put(x, &copy, keys[k], json_clone(v, &x->mem));
        }
    }
    json_push(to, &x->mem, copy);
}

static void add_rule(void *ctx, const struct json *rule)
{
    static const char *const of_resources[] = {"verbs", "apiGroups", "resources", "resourceNames"};
    static const char *const of_paths[] = {"verbs", "nonResourceURLs"};
    struct rule_lists *l = ctx;

    if (json_get(rule, "resources")) {
        copy_lists(l->x, rule, of_resources, HK_LEN(of_resources), &l->resources);
    }
    if (json_get(rule, "nonResourceURLs")) {
        copy_lists(l->x, rule, of_paths, HK_LEN(of_paths), &l->paths);
    }
}

/* What members of system:masters have without any role. */
static void add_everything(struct exchange *x, struct rule_lists *l)
{
    static const char *const keys[] = {"verbs", "apiGroups", "resources", "nonResourceURLs"};
    static const char *const any[] = {"*"};
    struct json rule = json_make_object();

    for (size_t k = 0; k < HK_LEN(keys); k++) {
        put(x, &rule, keys[k], strings(x, any, 1));
    }
    add_rule(l, &rule);
}

static void self_rules(struct exchange *x, const struct json *spec, struct json *status)
{
    struct rule_lists l = {x, json_make_array(), json_make_array()};

    if (auth_is_admin(&x->user)) {
        add_everything(x, &l);
    } else {
        rbac_rules(x->server->rbac, &x->user, text_of(spec, "namespace"), add_rule, &l);
    }
    put(x, status, "resourceRules", l.resources);
    put(x, status, "nonResourceRules", l.paths);
    put(x, status, "incomplete", json_make_bool(false));
}

static void self_subject(struct exchange *x, const struct json *spec, struct json *status)
{
    put(x, status, "userInfo", user_info(x, &x->user));
}

static void token_subject(struct exchange *x, const struct json *spec, struct json *status)
{
    struct auth_user u;
    const bool known = access_by_token(x->server, text_of(spec, "token"), &x->mem, &u);

    put(x, status, "authenticated", json_make_bool(known));
    if (known) {
        put(x, status, "user", user_info(x, &u));
    }
}

static const struct {
    const char *group, *plural, *kind;
    void (*fill)(struct exchange *x, const struct json *spec, struct json *status);
} reviews[] = {
    {"authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", self_access},
    {"authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", self_rules},
    {"authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", other_access},
    {"authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", other_access},
    {"authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", self_subject},
    {"authentication.k8s.io", "tokenreviews", "TokenReview", token_subject},
};

static int review(struct exchange *x, uint32_t row, struct hk_buf *out)
{
    struct json doc, status = json_make_object();
    const int rc = body_decode(x, reviews[row].kind, &doc);

    if (rc < 0) {
        return rc;
    }
    if (!json_is(&doc, JSON_OBJECT)) {
        return refuse(x, 400, "BadRequest", "a %s is an object", reviews[row].kind);
    }
    put(x, &doc, "kind", json_make_str(hk_str(reviews[row].kind)));
    put(x, &doc, "apiVersion",
        json_make_str(hk_str(
            hk_arena_printf(&x->mem, "%s/%.*s", reviews[row].group, HK_FMT(x->route.version)))));
    if (!json_is(json_get(&doc, "metadata"), JSON_OBJECT)) {
        put(x, &doc, "metadata", json_make_object());
    }
    reviews[row].fill(x, json_get(&doc, "spec"), &status);
    put(x, &doc, "status", status);
    json_write(&doc, out);
    return 0;
}

bool review_answer(struct exchange *x)
{
    const struct route *r = &x->route;

    for (uint32_t k = 0; k < HK_LEN(reviews); k++) {
        struct hk_buf body = {0};
        if (!hk_str_is(r->group, reviews[k].group) || !hk_str_is(r->plural, reviews[k].plural) ||
            !hk_str_is(r->version, "v1") || !hk_str_is(x->http->method, "POST") || r->name.n > 0) {
            continue;
        }
        if (review(x, k, &body) < 0) {
            answer_refusal(x);
        } else {
            answer_json(x, 201, &body);
        }
        return true;
    }
    return false;
}
