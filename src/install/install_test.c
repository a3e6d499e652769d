// SPDX-License-Identifier: Apache-2.0
// The installed objects: all placeholders are filled, roles have only the rights that the chosen
// webhooks need or that their program uses, and pods are admitted when the admission server is down.
#include "install/install.h"

#include "admission/volcano.h"
#include "api/queue.h"
#include "scheduler/ingest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ALL_PARTS ((1U << INSTALL_NPARTS) - 1)

static struct install_opts usual(uint32_t parts)
{
    return (struct install_opts){.ns = "batch", .image = "repo/x:1", .replicas = 3, .parts = parts};
}

static struct json objects(const struct install_opts *o, struct hk_arena *a)
{
    struct json list = json_make_array();

    install_objects(o, a, &list);
    return list;
}

static const struct json *find(const struct json *list, const char *kind, const char *name)
{
    for (uint32_t i = 0; i < list->len; i++) {
        const struct json *doc = &list->items[i];
        if (hk_str_is(json_str(json_get(doc, "kind"), HK_STR("")), kind) &&
            hk_str_is(json_str(json_at(doc, "metadata.name"), HK_STR("")), name)) {
            return doc;
        }
    }
    fail_msg("no %s %s", kind, name);
    return NULL;
}

/* Compares the value as text. */
static void assert_at(const struct json *doc, const char *path, const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    assert_non_null(json_at(doc, path));
    json_write(json_at(doc, path), &text);
    assert_string_equal(hk_buf_str(&text).s, want);
}

static void test_every_word_is_filled_in(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct install_opts o = usual(ALL_PARTS);
    const struct json list = objects(&o, &a);

    for (uint32_t i = 0; i < list.len; i++) {
        assert_true(json_is(json_at(&list.items[i], "metadata.name"), JSON_STRING));
        if (!hk_str_is(json_str(json_get(&list.items[i], "kind"), HK_STR("")),
                       "CustomResourceDefinition")) {
            json_write(&list.items[i], &text);
        }
    }
    assert_false(hk_str_contains(hk_buf_str(&text), "$"));
    assert_false(hk_str_contains(hk_buf_str(&text), "volcano-system"));
    assert_at(find(&list, "Deployment", "volcano-scheduler"), "spec.replicas", "3");
    assert_at(find(&list, "Namespace", "batch"), "metadata.name", "\"batch\"");
}

static void test_parts_come_in_their_order(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct install_opts o = usual(1U << INSTALL_QUEUES | 1U << INSTALL_NAMESPACE);
    const struct json list = objects(&o, &a);

    assert_int_equal(list.len, 3);
    assert_at(&list.items[0], "kind", "\"Namespace\"");
    assert_at(&list.items[1], "metadata.name", "\"root\"");
    assert_at(&list.items[2], "metadata.name", "\"default\"");
}

static void test_the_configuration_has_the_given_values(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct install_opts o = usual(1U << INSTALL_CONFIG);

    o.scheduler_conf = "actions: allocate\n";
    const struct json list = objects(&o, &a);
    assert_at(find(&list, "ConfigMap", "volcano-scheduler-configmap"), "data",
              "{\"volcano-scheduler.conf\":\"actions: allocate\\n\"}");
    assert_at(find(&list, "ConfigMap", "volcano-admission-configmap"), "data",
              "{\"volcano-admission.conf\":\"resourceGroups: []\\n\"}");
}

/* Whether a rule of the role names the resource. */
static bool has_right(const struct json *role, const char *resource)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    json_write(json_get(role, "rules"), &text);
    return hk_str_contains(hk_buf_str(&text), resource);
}

static void test_rights_follow_the_webhooks(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct install_opts o = usual(1U << INSTALL_RBAC);
    const struct json all = objects(&o, &a);

    assert_true(has_right(find(&all, "ClusterRole", "volcano-admission"), "namespaces"));
    assert_true(has_right(find(&all, "ClusterRole", "volcano-admission"), "-service-pods-mutate"));

    assert_int_equal(volcano_parse_enabled(HK_STR("/jobs/validate"), &o.disabled, NULL), 0);
    const struct json few = objects(&o, &a);
    const struct json *role = find(&few, "ClusterRole", "volcano-admission");
    assert_false(has_right(role, "namespaces"));
    assert_false(has_right(role, "[]")); /* an empty list would allow everything */
    assert_true(has_right(role, "[\"volcano-admission-service-jobs-validate\"]"));
    assert_false(has_right(role, "-mutate"));
}

static bool rule_names(const struct json *rule, const char *list, const char *what)
{
    const struct json *names = json_get(rule, list);

    for (uint32_t i = 0; i < json_len(names); i++) {
        if (hk_str_is(json_str(&names->items[i], HK_STR("")), what)) {
            return true;
        }
    }
    return false;
}

static bool rule_lets_watch(const struct json *rule)
{
    return rule_names(rule, "verbs", "list") && rule_names(rule, "verbs", "watch");
}

/* The scheduler has the right to follow exactly the kinds that it reads. */
static void test_the_scheduler_may_follow_the_kinds_it_reads(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct install_opts o = usual(1U << INSTALL_RBAC);
    const struct json all = objects(&o, &a);
    const struct json *rules = json_get(find(&all, "ClusterRole", "volcano-scheduler"), "rules");
    uint32_t granted = 0;

    for (uint32_t k = 0; k < INGEST_NKINDS; k++) {
        const struct api_kind *kind = api_kind(ingest_kinds[k].id);
        bool found = false;
        for (uint32_t i = 0; i < json_len(rules); i++) {
            const struct json *rule = &rules->items[i];
            found |= rule_names(rule, "apiGroups", kind->group) &&
                     rule_names(rule, "resources", kind->plural) && rule_lets_watch(rule);
        }
        if (!found) {
            fail_msg("the scheduler reads %s, but may not list and watch them", kind->plural);
        }
    }
    for (uint32_t i = 0; i < json_len(rules); i++) {
        const struct json *rule = &rules->items[i];
        granted += rule_lets_watch(rule) ? json_len(json_get(rule, "resources")) : 0;
    }
    assert_int_equal(granted, INGEST_NKINDS);
}

/* The installed queues are those that the server and the scheduler create. */
static void test_queues_are_the_built_in_ones(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct install_opts o = usual(1U << INSTALL_QUEUES);
    const struct json list = objects(&o, &a);

    assert_int_equal(list.len, API_NBUILTIN_QUEUES);
    for (uint32_t i = 0; i < API_NBUILTIN_QUEUES; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf installed = {0}, built_in = {0};
        const struct api_builtin_queue *q = &api_builtin_queues[i];
        const struct json doc = api_builtin_queue_manifest(q, hk_str(q->name), &a);
        json_write(&list.items[i], &installed);
        json_write(&doc, &built_in);
        assert_string_equal(installed.data, built_in.data);
    }
}

static void test_webhooks(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct install_opts o = usual(1U << INSTALL_WEBHOOKS);
    const struct json list = objects(&o, &a);
    const struct json *hook = json_item(json_get(find(&list, "MutatingWebhookConfiguration",
                                                      "volcano-admission-service-pods-mutate"),
                                                 "webhooks"),
                                        0);

    assert_at(hook, "failurePolicy", "\"Ignore\"");
    assert_at(hook, "namespaceSelector",
              "{\"matchExpressions\":[{\"key\":\"kubernetes.io/metadata.name\",\"operator\":"
              "\"NotIn\",\"values\":[\"batch\",\"kube-system\"]}]}");
    assert_true(json_is(json_get(hook, "matchConditions"), JSON_ARRAY));
    assert_at(hook, "clientConfig",
              "{\"service\":{\"name\":\"volcano-admission-service\",\"namespace\":\"batch\","
              "\"path\":\"/pods/mutate\",\"port\":443}}");

    hook = json_item(json_get(find(&list, "ValidatingWebhookConfiguration",
                                   "volcano-admission-service-queues-validate"),
                              "webhooks"),
                     0);
    assert_at(hook, "failurePolicy", "\"Fail\"");
    assert_at(hook, "rules",
              "[{\"apiGroups\":[\"scheduling.volcano.sh\"],\"apiVersions\":[\"v1beta1\"],"
              "\"operations\":[\"CREATE\",\"UPDATE\",\"DELETE\"],\"resources\":[\"queues\"],"
              "\"scope\":\"Cluster\"}]");
    assert_null(json_get(hook, "matchConditions"));
    assert_null(json_get(hook, "namespaceSelector"));
}

static void test_webhooks_by_address(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct install_opts o = usual(1U << INSTALL_WEBHOOKS);

    o.webhook_url = "https://host:8443/";
    const struct json list = objects(&o, &a);
    assert_at(json_item(json_get(&list.items[0], "webhooks"), 0), "clientConfig",
              "{\"url\":\"https://host:8443/jobs/mutate\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_word_is_filled_in),
        cmocka_unit_test(test_parts_come_in_their_order),
        cmocka_unit_test(test_the_configuration_has_the_given_values),
        cmocka_unit_test(test_rights_follow_the_webhooks),
        cmocka_unit_test(test_the_scheduler_may_follow_the_kinds_it_reads),
        cmocka_unit_test(test_queues_are_the_built_in_ones),
        cmocka_unit_test(test_webhooks),
        cmocka_unit_test(test_webhooks_by_address),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
