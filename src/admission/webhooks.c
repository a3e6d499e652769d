// SPDX-License-Identifier: Apache-2.0
// Webhook configurations: defaults and validation of ValidatingWebhookConfigurations and
// MutatingWebhookConfigurations. The store calls the webhooks (store/rest_webhook.c).
#include "admission/admission_priv.h"

enum {
    DEFAULT_TIMEOUT_S = 10,
    DEFAULT_PORT = 443,
    MAX_TIMEOUT_S = 30,
    MAX_PORT = 65535,
    MIN_SEGMENTS = 3,
};

#define URL_FORM "; desired format: https://host[/path]"

static const char *const review_versions[] = {"v1", "v1beta1", NULL};

static bool is_mutating(const struct admission_request *q)
{
    return strcmp(q->kind->kind, "MutatingWebhookConfiguration") == 0;
}

/* ---- defaults ---- */

static void webhook_default(struct admission_request *q, struct json *hook)
{
    struct json *rules;
    struct json *service;

    edit_default_str(hook, q->mem, "failurePolicy", "Fail");
    edit_default_str(hook, q->mem, "matchPolicy", "Equivalent");
    edit_default_object(hook, q->mem, "namespaceSelector");
    edit_default_object(hook, q->mem, "objectSelector");
    edit_default_int(hook, q->mem, "timeoutSeconds", DEFAULT_TIMEOUT_S);
    if (is_mutating(q)) {
        edit_default_str(hook, q->mem, "reinvocationPolicy", "Never");
    }
    rules = edit_get(hook, "rules");
    for (uint32_t i = 0; i < edit_len(rules); i++) {
        if (rules->items[i].type == JSON_OBJECT) {
            edit_default_str(&rules->items[i], q->mem, "scope", "*");
        }
    }
    service = edit_at(hook, "clientConfig.service");
    if (json_is(service, JSON_OBJECT)) {
        edit_default_int(service, q->mem, "port", DEFAULT_PORT);
    }
}

int admit_webhooks_default(struct admission_request *q, struct hk_err *err)
{
    struct json *hooks = edit_get(q->obj, "webhooks");

    for (uint32_t i = 0; i < edit_len(hooks); i++) {
        if (hooks->items[i].type == JSON_OBJECT) {
            webhook_default(q, &hooks->items[i]);
        }
    }
    return 0;
}

/* ---- validation ---- */

static void check_name(struct admission_request *q, const struct path *up, const struct json *hook)
{
    const struct path p = path_field(up, "name");
    const struct hk_str name = edit_str(hook, "name");
    uint32_t segments = 1;

    if (name.n == 0) {
        cause_required(q, &p, "");
        return;
    }
    for (size_t i = 0; i < name.n; i++) {
        segments += name.s[i] == '.';
    }
    if (name_check(q, &p, name, NAME_SUBDOMAIN) && segments < MIN_SEGMENTS) {
        cause_invalid_str(q, &p, name,
                          "should be a domain with at least three segments separated by dots");
    }
}

/* A list that must not be empty, in which "*" stands alone. */
static void check_wildcard_list(struct admission_request *q, const struct path *up,
                                const struct json *rule, const char *key, const char *what)
{
    const struct path p = path_field(up, key);
    const struct json *list = json_get(rule, key);

    if (edit_len(list) == 0) {
        cause_required(q, &p, "");
    } else if (edit_len(list) > 1 && edit_list_has(list, HK_STR("*"))) {
        cause_invalid(q, &p, list, "if '*' is present, must not specify other %s", what);
    }
}

void admit_webhooks_check_rule(struct admission_request *q, const struct path *p,
                               const struct json *rule)
{
    static const char *const operations[] = {"*", "CONNECT", "CREATE", "DELETE", "UPDATE", NULL};
    static const char *const scopes[] = {"*", "Cluster", "Namespaced", NULL};
    const struct path list = path_field(p, "operations");
    const struct path resources = path_field(p, "resources");
    const struct json *given = json_get(rule, "operations");

    check_wildcard_list(q, p, rule, "operations", "operations");
    check_wildcard_list(q, p, rule, "apiGroups", "API groups");
    check_wildcard_list(q, p, rule, "apiVersions", "API versions");
    if (edit_len(json_get(rule, "resources")) == 0) {
        cause_required(q, &resources, "");
    }
    for (uint32_t i = 0; i < edit_len(given); i++) {
        const struct json one = {.type = JSON_ARRAY, .items = &given->items[i], .len = 1};
        const struct path at = path_index(&list, i);
        bool known = false;
        for (size_t k = 0; operations[k]; k++) {
            known = known || edit_list_has(&one, hk_str(operations[k]));
        }
        if (!known) {
            cause_unsupported(q, &at, json_str(&given->items[i], HK_STR("")), operations);
        }
    }
    cause_check_enum(q, p, rule, "scope", scopes);
}

static void check_url(struct admission_request *q, const struct path *p, struct hk_str url)
{
    struct hk_str host = url;
    size_t n = 0;

    if (!hk_str_starts(url, "https://")) {
        const size_t scheme =
            hk_str_contains(url, "://") ? (size_t)(strstr(url.s, "://") - url.s) : 0;
        cause_invalid_str(q, p, (struct hk_str){url.s, scheme},
                          "'https' is the only allowed URL scheme" URL_FORM);
        return;
    }
    host.s += strlen("https://");
    host.n -= strlen("https://");
    while (n < host.n && !strchr("/?#", host.s[n])) {
        n++;
    }
    if (n == 0) {
        cause_invalid_str(q, p, HK_STR(""), "host must be specified" URL_FORM);
    }
    if (memchr(host.s, '@', n)) {
        cause_invalid_str(q, p, url, "user information is not permitted in the URL" URL_FORM);
    }
    if (hk_str_contains(url, "#")) {
        cause_invalid_str(q, p, url, "fragments are not permitted in the URL" URL_FORM);
    }
    if (hk_str_contains(url, "?")) {
        cause_invalid_str(q, p, url, "query parameters are not permitted in the URL" URL_FORM);
    }
}

static void check_service(struct admission_request *q, const struct path *p,
                          const struct json *service)
{
    const struct path name = path_field(p, "name");
    const struct path ns = path_field(p, "namespace");
    const struct path port = path_field(p, "port");
    const struct path path = path_field(p, "path");
    const int64_t number = json_int(json_get(service, "port"), DEFAULT_PORT);
    const struct hk_str at = edit_str(service, "path");

    if (edit_str(service, "name").n == 0) {
        cause_required(q, &name, "service name is required");
    }
    if (edit_str(service, "namespace").n == 0) {
        cause_required(q, &ns, "service namespace is required");
    }
    if (number < 1 || number > MAX_PORT) {
        cause_invalid(q, &port, json_get(service, "port"),
                      "port is not valid: must be between 1 and 65535, inclusive");
    }
    if (at.n > 0 && at.s[0] != '/') {
        cause_invalid_str(q, &path, at, "must start with a '/'");
    }
}

void admit_webhook_client(struct admission_request *q, const struct path *p,
                          const struct json *client)
{
    const struct path url = path_field(p, "url");
    const struct path service = path_field(p, "service");

    if (edit_has(client, "url") == edit_has(client, "service")) {
        cause_required(q, p, "exactly one of url or service is required");
    } else if (edit_has(client, "url")) {
        check_url(q, &url, edit_str(client, "url"));
    } else {
        check_service(q, &service, json_get(client, "service"));
    }
}

static void check_side_effects(struct admission_request *q, const struct path *up,
                               const struct json *hook)
{
    static const char *const allowed[] = {"None", "NoneOnDryRun", NULL};
    const struct path p = path_field(up, "sideEffects");

    if (edit_str(hook, "sideEffects").n == 0) {
        cause_required(q, &p, "must specify one of None, NoneOnDryRun");
    } else {
        cause_check_enum(q, up, hook, "sideEffects", allowed);
    }
}

static void check_versions(struct admission_request *q, const struct path *up,
                           const struct json *hook)
{
    const struct path p = path_field(up, "admissionReviewVersions");
    const struct json *list = json_get(hook, "admissionReviewVersions");
    bool known = false;

    if (edit_len(list) == 0) {
        cause_required(q, &p, "must specify one of v1, v1beta1");
        return;
    }
    for (size_t i = 0; review_versions[i]; i++) {
        known = known || edit_list_has(list, hk_str(review_versions[i]));
    }
    if (!known) {
        cause_invalid(q, &p, list, "must include at least one of v1, v1beta1");
    }
}

static void check_timeout(struct admission_request *q, const struct path *up,
                          const struct json *hook)
{
    const struct path p = path_field(up, "timeoutSeconds");
    const struct json *given = json_get(hook, "timeoutSeconds");
    const int64_t timeout_s = json_int(given, DEFAULT_TIMEOUT_S);

    if (timeout_s < 1 || timeout_s > MAX_TIMEOUT_S) {
        cause_invalid(q, &p, given, "the timeout value must be between 1 and 30 seconds");
    }
}

/* Whether the stored configuration has the same conditions for the webhook. */
static bool conditions_are_unchanged(const struct admission_request *q, const struct json *hook)
{
    const struct json *old = json_get(q->old, "webhooks");
    const struct json *conditions = json_get(hook, "matchConditions");

    for (uint32_t i = 0; i < edit_len(old); i++) {
        const struct json *before = json_get(&old->items[i], "matchConditions");
        if (hk_str_eq(edit_str(&old->items[i], "name"), edit_str(hook, "name"))) {
            return before && conditions && json_equal(before, conditions);
        }
    }
    return false;
}

static void check_webhook(struct admission_request *q, const struct path *p,
                          const struct json *hook)
{
    static const char *const failure[] = {"Fail", "Ignore", NULL};
    static const char *const match[] = {"Equivalent", "Exact", NULL};
    static const char *const again[] = {"IfNeeded", "Never", NULL};
    const struct json *rules = json_get(hook, "rules");
    const struct path list = path_field(p, "rules");
    const struct path client = path_field(p, "clientConfig");
    const struct path namespaces = path_field(p, "namespaceSelector");
    const struct path objects = path_field(p, "objectSelector");

    check_name(q, p, hook);
    for (uint32_t i = 0; i < edit_len(rules); i++) {
        const struct path at = path_index(&list, i);
        admit_webhooks_check_rule(q, &at, &rules->items[i]);
    }
    cause_check_enum(q, p, hook, "failurePolicy", failure);
    cause_check_enum(q, p, hook, "matchPolicy", match);
    if (is_mutating(q)) {
        cause_check_enum(q, p, hook, "reinvocationPolicy", again);
    }
    check_side_effects(q, p, hook);
    check_timeout(q, p, hook);
    name_check_selector(q, &namespaces, json_get(hook, "namespaceSelector"));
    name_check_selector(q, &objects, json_get(hook, "objectSelector"));
    admit_webhook_client(q, &client, json_get(hook, "clientConfig"));
    check_versions(q, p, hook);
    if (!conditions_are_unchanged(q, hook)) {
        admit_conditions_validate(q, p, hook, &(struct admit_exprs){0});
    }
}

void admit_webhooks_validate(struct admission_request *q)
{
    const struct json *hooks = json_get(q->obj, "webhooks");
    const struct path list = path_field(NULL, "webhooks");

    for (uint32_t i = 0; i < edit_len(hooks); i++) {
        const struct path at = path_index(&list, i);
        const struct path name = path_field(&at, "name");
        check_webhook(q, &at, &hooks->items[i]);
        for (uint32_t k = 0; k < i; k++) {
            if (hk_str_eq(edit_str(&hooks->items[i], "name"), edit_str(&hooks->items[k], "name"))) {
                cause_duplicate(q, &name, edit_str(&hooks->items[i], "name"));
                break;
            }
        }
    }
}
