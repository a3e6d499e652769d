// SPDX-License-Identifier: Apache-2.0
// One configuration per rule, called as the admission server expects to find it.
#include "install/hooks.h"

#include "admission/volcano.h"
#include "webhook/publish.h"

#define SERVICE "volcano-admission-service"

enum { TIMEOUT_S = 10, SERVICE_PORT = 443 };

/* A call keeps the API server busy, so it is to make one only where there may be something to say.
 * Resource groups may also be meant by annotation, for pods that name no scheduler yet; what is
 * validated is a disruption budget. */
#define OURS "object.spec.schedulerName == 'volcano'"
#define HAS(name) "'volcano.sh/" name "' in object.metadata.annotations"
#define OURS_OR_GROUPED OURS " || (has(object.metadata.annotations) && " HAS("resource-group") ")"
#define BUDGETED "(" HAS("jdb-min-available") " || " HAS("jdb-max-unavailable") ")"
#define OURS_WITH_BUDGET OURS " && has(object.metadata.annotations) && " BUDGETED

static void put(struct json *o, struct hk_arena *a, const char *key, struct json v)
{
    json_put(o, a, hk_str(key), v);
}

static void put_str(struct json *o, struct hk_arena *a, const char *key, const char *value)
{
    put(o, a, key, json_make_str(hk_str(value)));
}

/* [value] */
static struct json list_of(struct hk_arena *a, const char *value)
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
        put_str(&client, a, "url", hk_arena_printf(a, "%.*s%s", bare, o->webhook_url, path));
        return client;
    }
    put_str(&service, a, "name", SERVICE);
    put_str(&service, a, "namespace", o->ns);
    put_str(&service, a, "path", path);
    put(&service, a, "port", json_make_int(SERVICE_PORT));
    put(&client, a, "service", service);
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
    put(&rule, a, "apiGroups", list_of(a, kind->group));
    put(&rule, a, "apiVersions", list_of(a, kind->version));
    put(&rule, a, "operations", operations);
    put(&rule, a, "resources", list_of(a, kind->plural));
    put_str(&rule, a, "scope", kind->namespaced ? "Namespaced" : "Cluster");
    return rule;
}

/* Neither our own pods, which could not start without us, nor the cluster's. */
static struct json namespaces_of(const struct install_opts *o, struct hk_arena *a)
{
    struct json selector = json_make_object(), wants = json_make_array();
    struct json want = json_make_object(), names = list_of(a, o->ns);

    if (strcmp(o->ns, "kube-system") != 0) {
        json_push(&names, a, json_make_str(HK_STR("kube-system")));
    }
    put_str(&want, a, "key", "kubernetes.io/metadata.name");
    put_str(&want, a, "operator", "NotIn");
    put(&want, a, "values", names);
    json_push(&wants, a, want);
    put(&selector, a, "matchExpressions", wants);
    return selector;
}

static struct json conditions_of(const struct volcano_rule *r, struct hk_arena *a)
{
    struct json condition = json_make_object(), list = json_make_array();

    put_str(&condition, a, "name", "volcano-pods");
    put_str(&condition, a, "expression", r->mutates ? OURS_OR_GROUPED : OURS_WITH_BUDGET);
    json_push(&list, a, condition);
    return list;
}

static struct json hook_of(const struct install_opts *o, const struct volcano_rule *r,
                           struct hk_arena *a)
{
    const bool pods = r->kind == API_POD;
    struct json hook = json_make_object(), rules = json_make_array();

    json_push(&rules, a, rule_of(r, a));
    put_str(&hook, a, "name", r->webhook);
    put(&hook, a, "admissionReviewVersions", list_of(a, "v1"));
    put(&hook, a, "clientConfig", client_of(o, r->path, a));
    put_str(&hook, a, "failurePolicy", pods ? "Ignore" : "Fail");
    put_str(&hook, a, "matchPolicy", "Equivalent");
    if (pods) {
        put(&hook, a, "matchConditions", conditions_of(r, a));
    }
    if (api_kind(r->kind)->namespaced) {
        put(&hook, a, "namespaceSelector", namespaces_of(o, a));
    }
    if (r->mutates) {
        put_str(&hook, a, "reinvocationPolicy", "Never");
    }
    put(&hook, a, "rules", rules);
    put_str(&hook, a, "sideEffects", "None");
    put(&hook, a, "timeoutSeconds", json_make_int(TIMEOUT_S));
    return hook;
}

static struct json configuration_of(const struct install_opts *o, const struct volcano_rule *r,
                                    struct hk_arena *a)
{
    struct json doc = json_make_object(), meta = json_make_object(), hooks = json_make_array();
    char name[WEBHOOK_PUBLISH_NAME];

    webhook_publish_name(r->path, name, sizeof(name));
    put_str(&meta, a, "name", hk_arena_strndup(a, name, strlen(name)));
    json_push(&hooks, a, hook_of(o, r, a));
    put_str(&doc, a, "apiVersion", "admissionregistration.k8s.io/v1");
    put_str(&doc, a, "kind",
            r->mutates ? "MutatingWebhookConfiguration" : "ValidatingWebhookConfiguration");
    put(&doc, a, "metadata", meta);
    put(&doc, a, "webhooks", hooks);
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
