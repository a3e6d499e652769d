// SPDX-License-Identifier: Apache-2.0
// Webhook configurations, one per rule, with the names that the admission server expects.
#include "install/hooks.h"

#include "admission/volcano.h"
#include "webhook/publish.h"

#define SERVICE "volcano-admission-service"

enum { TIMEOUT_S = 10, SERVICE_PORT = 443 };

/* Each webhook call delays the API server, so these conditions select only pods that a rule can act
 * on. A resource group can also be selected by annotation, for pods that name no scheduler yet;
 * validation checks only disruption budgets. */
#define OURS "object.spec.schedulerName == 'volcano'"
#define HAS(name) "'volcano.sh/" name "' in object.metadata.annotations"
#define OURS_OR_GROUPED OURS " || (has(object.metadata.annotations) && " HAS("resource-group") ")"
#define BUDGETED "(" HAS("jdb-min-available") " || " HAS("jdb-max-unavailable") ")"
#define OURS_WITH_BUDGET OURS " && has(object.metadata.annotations) && " BUDGETED

/* [value] */
static struct json install_hooks_make_list(struct hk_arena *a, const char *value)
{
    struct json list = json_make_array();

    json_push(&list, a, json_make_str(hk_str(value)));
    return list;
}

static struct json client_of(const struct install_opts *o, const char *path, struct hk_arena *a)
{
    struct json client = json_make_object(), service = json_make_object();

    if (o->webhook_url) {
        const size_t n = strlen(o->webhook_url);
        const int bare = (int)(n > 0 && o->webhook_url[n - 1] == '/' ? n - 1 : n);
        json_set_cstr(&client, a, "url", hk_arena_printf(a, "%.*s%s", bare, o->webhook_url, path));
        return client;
    }
    json_set_cstr(&service, a, "name", SERVICE);
    json_set_cstr(&service, a, "namespace", o->ns);
    json_set_cstr(&service, a, "path", path);
    json_set_int(&service, a, "port", SERVICE_PORT);
    json_set(&client, a, "service", service);
    return client;
}

static struct json rule_of(const struct volcano_rule *r, struct hk_arena *a)
{
    static const struct {
        unsigned verb;
        const char *name;
    } verbs[] = {{ADMIT_CREATE, "CREATE"}, {ADMIT_UPDATE, "UPDATE"}, {ADMIT_DELETE, "DELETE"}};
    const struct api_kind *kind = api_kind(r->kind);
    struct json rule = json_make_object(), operations = json_make_array();

    for (size_t i = 0; i < HK_LEN(verbs); i++) {
        if (r->verbs & 1U << verbs[i].verb) {
            json_push(&operations, a, json_make_str(hk_str(verbs[i].name)));
        }
    }
    json_set(&rule, a, "apiGroups", install_hooks_make_list(a, kind->group));
    json_set(&rule, a, "apiVersions", install_hooks_make_list(a, kind->version));
    json_set(&rule, a, "operations", operations);
    json_set(&rule, a, "resources", install_hooks_make_list(a, kind->plural));
    json_set_cstr(&rule, a, "scope", kind->namespaced ? "Namespaced" : "Cluster");
    return rule;
}

/* Excludes our own pods, which could not start before the webhook runs, and system pods. */
static struct json namespaces_of(const struct install_opts *o, struct hk_arena *a)
{
    struct json selector = json_make_object(), wants = json_make_array();
    struct json want = json_make_object(), names = install_hooks_make_list(a, o->ns);

    if (strcmp(o->ns, "kube-system") != 0) {
        json_push(&names, a, json_make_str(HK_STR("kube-system")));
    }
    json_set_cstr(&want, a, "key", "kubernetes.io/metadata.name");
    json_set_cstr(&want, a, "operator", "NotIn");
    json_set(&want, a, "values", names);
    json_push(&wants, a, want);
    json_set(&selector, a, "matchExpressions", wants);
    return selector;
}

static struct json conditions_of(const struct volcano_rule *r, struct hk_arena *a)
{
    struct json condition = json_make_object(), list = json_make_array();

    json_set_cstr(&condition, a, "name", "volcano-pods");
    json_set_cstr(&condition, a, "expression", r->mutates ? OURS_OR_GROUPED : OURS_WITH_BUDGET);
    json_push(&list, a, condition);
    return list;
}

static struct json hook_of(const struct install_opts *o, const struct volcano_rule *r,
                           struct hk_arena *a)
{
    const bool pods = r->kind == API_POD;
    struct json hook = json_make_object(), rules = json_make_array();

    json_push(&rules, a, rule_of(r, a));
    json_set_cstr(&hook, a, "name", r->webhook);
    json_set(&hook, a, "admissionReviewVersions", install_hooks_make_list(a, "v1"));
    json_set(&hook, a, "clientConfig", client_of(o, r->path, a));
    json_set_cstr(&hook, a, "failurePolicy", pods ? "Ignore" : "Fail");
    json_set_cstr(&hook, a, "matchPolicy", "Equivalent");
    if (pods) {
        json_set(&hook, a, "matchConditions", conditions_of(r, a));
    }
    if (api_kind(r->kind)->namespaced) {
        json_set(&hook, a, "namespaceSelector", namespaces_of(o, a));
    }
    if (r->mutates) {
        json_set_cstr(&hook, a, "reinvocationPolicy", "Never");
    }
    json_set(&hook, a, "rules", rules);
    json_set_cstr(&hook, a, "sideEffects", "None");
    json_set_int(&hook, a, "timeoutSeconds", TIMEOUT_S);
    return hook;
}

static struct json configuration_of(const struct install_opts *o, const struct volcano_rule *r,
                                    struct hk_arena *a)
{
    struct json doc = json_make_object(), meta = json_make_object(), hooks = json_make_array();
    char name[WEBHOOK_PUBLISH_NAME];

    webhook_publish_name(r->path, name, sizeof(name));
    json_set_cstr(&meta, a, "name", hk_arena_strndup(a, name, strlen(name)));
    json_push(&hooks, a, hook_of(o, r, a));
    json_set_cstr(&doc, a, "apiVersion", "admissionregistration.k8s.io/v1");
    json_set_cstr(&doc, a, "kind",
                  r->mutates ? "MutatingWebhookConfiguration" : "ValidatingWebhookConfiguration");
    json_set(&doc, a, "metadata", meta);
    json_set(&doc, a, "webhooks", hooks);
    return doc;
}

void install_hooks(const struct install_opts *o, struct hk_arena *a, struct json *ret)
{
    for (uint32_t i = 0; volcano_rules[i].path; i++) {
        if (!(o->disabled & 1U << i)) {
            json_push(ret, a, configuration_of(o, &volcano_rules[i], a));
        }
    }
}
