// SPDX-License-Identifier: Apache-2.0
// Reviews: questions about users and rights that are posted as objects and answered with their
// status filled in. Nothing is stored.
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
    put(x, &info, "groups", strings(x, u->groups, u->ngroups));
    return info;
}

/* ---- the answers ---- */

/* Whoever gets as far as asking may do everything. */
static void self_access(struct exchange *x, const struct json *spec, struct json *status)
{
    put(x, status, "allowed", json_make_bool(true));
    put(x, status, "reason", json_make_str(HK_STR("member of system:masters")));
}

static void other_access(struct exchange *x, const struct json *spec, struct json *status)
{
    const struct json *groups = json_get(spec, "groups");
    bool allowed = hk_str_is(json_str(json_get(spec, "user"), HK_STR("")), x->user.name);

    for (uint32_t k = 0; json_is(groups, JSON_ARRAY) && k < groups->len; k++) {
        allowed |= hk_str_is(json_str(json_item(groups, k), HK_STR("")), "system:masters");
    }
    put(x, status, "allowed", json_make_bool(allowed));
}

static void self_rules(struct exchange *x, const struct json *spec, struct json *status)
{
    static const char *const any[] = {"*"};
    struct json rule = json_make_object(), path = json_make_object();

    put(x, &rule, "verbs", strings(x, any, 1));
    put(x, &rule, "apiGroups", strings(x, any, 1));
    put(x, &rule, "resources", strings(x, any, 1));
    json_push(put(x, status, "resourceRules", json_make_array()), &x->mem, rule);
    put(x, &path, "verbs", strings(x, any, 1));
    put(x, &path, "nonResourceURLs", strings(x, any, 1));
    json_push(put(x, status, "nonResourceRules", json_make_array()), &x->mem, path);
    put(x, status, "incomplete", json_make_bool(false));
}

static void self_subject(struct exchange *x, const struct json *spec, struct json *status)
{
    put(x, status, "userInfo", user_info(x, &x->user));
}

static void token_subject(struct exchange *x, const struct json *spec, struct json *status)
{
    const struct auth_user u =
        auth_by_token(x->server->opts.auth, json_str(json_get(spec, "token"), HK_STR("")));

    put(x, status, "authenticated", json_make_bool(u.name != NULL));
    if (u.name) {
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
