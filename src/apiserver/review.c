// SPDX-License-Identifier: Apache-2.0
// Reviews: requests about users and rights that are posted as objects and answered with their
// status filled in. Not stored.
#include "admission/admission.h"
#include "apiserver/access.h"
#include "apiserver/server_priv.h"

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

    json_set_cstr(&info, &x->mem, "username", u->name);
    if (u->uid && u->uid[0] != '\0') {
        json_set_cstr(&info, &x->mem, "uid", u->uid);
    }
    json_set(&info, &x->mem, "groups", strings(x, u->groups, u->ngroups));
    return info;
}

/* ---- the answers ---- */

static struct rbac_ask ask_of(const struct json *spec)
{
    const struct json *path = json_get(spec, "nonResourceAttributes");
    const struct json *r = json_get(spec, "resourceAttributes");

    if (json_is(path, JSON_OBJECT)) {
        return (struct rbac_ask){.verb = json_str_field(path, "verb"),
                                 .path = json_str_field(path, "path")};
    }
    return (struct rbac_ask){
        .verb = json_str_field(r, "verb"),
        .group = json_str_field(r, "group"),
        .plural = json_str_field(r, "resource"),
        .sub = json_str_field(r, "subresource"),
        .ns = json_str_field(r, "namespace"),
        .name = json_str_field(r, "name"),
    };
}

static void verdict(struct exchange *x, const struct auth_user *u, const struct json *spec,
                    struct json *status)
{
    const struct rbac_ask ask = ask_of(spec);
    const bool allowed = access_allows(x, u, &ask);

    json_set_bool(status, &x->mem, "allowed", allowed);
    if (allowed && auth_is_admin(u)) {
        json_set_cstr(status, &x->mem, "reason", "member of system:masters");
    }
}

/* One field of a review is invalid. kube-apiserver's message names no kind. */
static int refuse_spec(struct exchange *x, const char *field, const char *message)
{
    struct port_cause *cause = hk_arena_zalloc(&x->mem, sizeof(*cause));

    *cause = (struct port_cause){"FieldValueInvalid", field, message};
    exchange_refuse(x, 422, "Invalid", ".authorization.k8s.io \"\" is invalid: %s: %s", field,
                    message);
    x->refusal.group = "authorization.k8s.io";
    x->refusal.causes = cause;
    x->refusal.ncauses = 1;
    return -HK_EINVAL;
}

/* A review asks about a resource or about a path. */
static int check_attributes(struct exchange *x, const struct json *spec)
{
    const struct json *path = json_get(spec, "nonResourceAttributes");
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (!path && !json_get(spec, "resourceAttributes")) {
        return refuse_spec(x, "spec.resourceAttributes",
                           "Invalid value: null: exactly one of nonResourceAttributes or "
                           "resourceAttributes must be specified");
    }
    if (!path || !json_get(spec, "resourceAttributes")) {
        return 0;
    }
    hk_buf_adds(&text, "Invalid value: {\"Path\":");
    json_write_str(json_str_field(path, "path"), &text);
    hk_buf_adds(&text, ",\"Verb\":");
    json_write_str(json_str_field(path, "verb"), &text);
    hk_buf_adds(&text, "}: cannot be specified in combination with resourceAttributes");
    return refuse_spec(x, "spec.nonResourceAttributes", hk_arena_str(&x->mem, hk_buf_str(&text)).s);
}

static int self_access(struct exchange *x, const struct json *spec, struct json *status)
{
    if (check_attributes(x, spec) < 0) {
        return -HK_EINVAL;
    }
    verdict(x, &x->user, spec, status);
    return 0;
}

static int other_access(struct exchange *x, const struct json *spec, struct json *status)
{
    const struct json *list = json_get(spec, "groups");
    const uint32_t n = json_is(list, JSON_ARRAY) ? list->len : 0;
    const char **groups = hk_arena_array(&x->mem, n, sizeof(*groups));
    const struct auth_user u = {
        .name = hk_arena_str(&x->mem, json_str_field(spec, "user")).s,
        .groups = groups,
        .ngroups = n,
    };

    for (uint32_t k = 0; k < n; k++) {
        groups[k] = hk_arena_str(&x->mem, json_str(json_item(list, k), HK_STR(""))).s;
    }
    if (check_attributes(x, spec) < 0) {
        return -HK_EINVAL;
    }
    if (n == 0 && json_str_field(spec, "user").n == 0) {
        return refuse_spec(x, "spec.user",
                           "Invalid value: \"\": at least one of user or group must be specified");
    }
    verdict(x, &u, spec, status);
    return 0;
}

/* A user who may post reviews in a namespace may ask about that namespace only. */
static int local_access(struct exchange *x, const struct json *spec, struct json *status)
{
    const struct hk_str ns = json_str_field(json_get(spec, "resourceAttributes"), "namespace");

    if (json_get(spec, "nonResourceAttributes")) {
        return refuse_spec(x, "spec.nonResourceAttributes",
                           "Invalid value: \"nonResourceAttributes\": disallowed on this kind of "
                           "request");
    }
    if (json_get(spec, "resourceAttributes") && !hk_str_eq(ns, x->route.ns)) {
        return refuse_spec(x, "spec.resourceAttributes.namespace",
                           hk_arena_printf(&x->mem,
                                           "Invalid value: \"%.*s\": must match "
                                           "metadata.namespace",
                                           HK_FMT(ns)));
    }
    return other_access(x, spec, status);
}

/* ---- all rights of a user ---- */

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
            json_set(&copy, &x->mem, keys[k], json_clone(v, &x->mem));
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

/* The rights of members of system:masters, who need no role. */
static void add_everything(struct exchange *x, struct rule_lists *l)
{
    static const char *const keys[] = {"verbs", "apiGroups", "resources", "nonResourceURLs"};
    static const char *const any[] = {"*"};
    struct json rule = json_make_object();

    for (size_t k = 0; k < HK_LEN(keys); k++) {
        json_set(&rule, &x->mem, keys[k], strings(x, any, 1));
    }
    add_rule(l, &rule);
}

static int self_rules(struct exchange *x, const struct json *spec, struct json *status)
{
    struct rule_lists l = {x, json_make_array(), json_make_array()};

    if (auth_is_admin(&x->user)) {
        add_everything(x, &l);
    } else {
        rbac_rules(x->server->rbac, &x->user, json_str_field(spec, "namespace"), add_rule, &l);
    }
    json_set(status, &x->mem, "resourceRules", l.resources);
    json_set(status, &x->mem, "nonResourceRules", l.paths);
    json_set_bool(status, &x->mem, "incomplete", false);
    return 0;
}

static int self_subject(struct exchange *x, const struct json *spec, struct json *status)
{
    json_set(status, &x->mem, "userInfo", user_info(x, &x->user));
    return 0;
}

static int token_subject(struct exchange *x, const struct json *spec, struct json *status)
{
    const struct hk_str token = json_str_field(spec, "token");
    struct auth_user u;

    if (token.n == 0) {
        return exchange_refuse(x, 400, "BadRequest",
                               "token is required for TokenReview in authentication");
    }
    if (access_by_token(x->server, token, &x->mem, &u)) {
        json_set_bool(status, &x->mem, "authenticated", true);
        json_set(status, &x->mem, "user", user_info(x, &u));
        return 0;
    }
    json_set_object(status, &x->mem, "user");
    json_set_cstr(status, &x->mem, "error", "invalid bearer token");
    return 0;
}

static const struct {
    const char *group, *plural, *kind;
    bool namespaced;
    /* Negative after exchange_refuse(). */
    int (*fill)(struct exchange *x, const struct json *spec, struct json *status);
} reviews[] = {
    {"authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", false,
     self_access},
    {"authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", false,
     self_rules},
    {"authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", false, other_access},
    {"authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", true,
     local_access},
    {"authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", false, self_subject},
    {"authentication.k8s.io", "tokenreviews", "TokenReview", false, token_subject},
};

/* Refuses values of the wrong type, as for stored objects. */
static int check_types(struct exchange *x, uint32_t row, struct json *doc)
{
    const struct api_kind kind = {
        .id = API_NKINDS, .group = reviews[row].group, .version = "v1", .kind = reviews[row].kind};
    struct admission_request q = {.kind = &kind, .obj = doc, .mem = &x->mem};
    struct hk_err err = {0};
    const int rc = admission_decode(&q, &err);

    admission_request_fini(&q);
    return rc < 0 ? exchange_refuse(x, 400, "BadRequest", "%s", err.text) : 0;
}

static int apiserver_review_answer(struct exchange *x, uint32_t row, struct hk_buf *out)
{
    struct json doc, status = json_make_object();
    const int rc = body_decode(x, reviews[row].kind, &doc);

    if (rc < 0) {
        return rc;
    }
    if (!json_is(&doc, JSON_OBJECT)) {
        return exchange_refuse(x, 400, "BadRequest", "a %s must be an object", reviews[row].kind);
    }
    if (check_types(x, row, &doc) < 0) {
        return -HK_EINVAL;
    }
    json_set_cstr(&doc, &x->mem, "kind", reviews[row].kind);
    json_set_cstr(
        &doc, &x->mem, "apiVersion",
        hk_arena_printf(&x->mem, "%s/%.*s", reviews[row].group, HK_FMT(x->route.version)));
    if (!json_is(json_get(&doc, "metadata"), JSON_OBJECT)) {
        json_set_object(&doc, &x->mem, "metadata");
    }
    if (reviews[row].fill(x, json_get(&doc, "spec"), &status) < 0) {
        return -HK_EINVAL;
    }
    if (reviews[row].fill == self_subject) {
        struct hk_clock *clock = x->server->opts.clock;
        json_set_time(json_need(&doc, &x->mem, "metadata", JSON_OBJECT), &x->mem,
                      "creationTimestamp", clock->wall_ns(clock));
    }
    json_set(&doc, &x->mem, "status", status);
    json_write(&doc, out);
    return 0;
}

bool review_answer(struct exchange *x)
{
    const struct route *r = &x->route;

    for (uint32_t k = 0; k < HK_LEN(reviews); k++) {
        struct hk_buf body = {0};
        if (!hk_str_is(r->group, reviews[k].group) || !hk_str_is(r->plural, reviews[k].plural) ||
            !hk_str_is(r->version, "v1") || r->name.n > 0 ||
            (r->ns.n > 0) != reviews[k].namespaced) {
            continue;
        }
        if (!hk_str_is(x->http->method, "POST")) {
            exchange_refuse(x, 405, "MethodNotAllowed",
                            "the server does not allow this method on the requested resource");
            answer_refusal(x);
            return true;
        }
        if (apiserver_review_answer(x, k, &body) < 0) {
            answer_refusal(x);
        } else {
            answer_json(x, 201, &body);
        }
        return true;
    }
    return false;
}
