// SPDX-License-Identifier: Apache-2.0
// CustomResourceDefinitions: default names, and validation of names, versions and schemas. Inside a
// schema only one thing is checked here: every node has a type.
#include "admission/admission_priv.h"

#define APPROVED "api-approved.kubernetes.io"

enum { DEFAULT_PORT = 443 };

int admit_crd_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);
    struct json *names = json_need(spec, q->mem, "names", JSON_OBJECT);
    const struct hk_str kind = edit_str(names, "kind");
    char *lower = hk_arena_strndup(q->mem, kind.s, kind.n);

    for (char *c = lower; *c; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    if (kind.n > 0) {
        edit_default_str(names, q->mem, "singular", lower);
        edit_default_str(names, q->mem, "listKind",
                         hk_arena_printf(q->mem, "%.*sList", HK_FMT(kind)));
    }
    edit_default_str(json_need(spec, q->mem, "conversion", JSON_OBJECT), q->mem, "strategy",
                     "None");
    struct json *service = edit_at(q->obj, "spec.conversion.webhook.clientConfig.service");
    if (json_is(service, JSON_OBJECT)) {
        edit_default_int(service, q->mem, "port", DEFAULT_PORT);
    }
    return 0;
}

/* ---- schemas ---- */

static void admit_crd_check_schema_node(struct admission_request *q, const struct path *p,
                                        const struct json *schema, const char *words);

static void check_children(struct admission_request *q, const struct path *p,
                           const struct json *schema)
{
    const struct json *properties = json_get(schema, "properties");
    const struct json *more = json_get(schema, "additionalProperties");
    const struct path list = path_field(p, "properties");
    const struct path more_path = path_field(p, "additionalProperties");
    const struct path items = path_field(p, "items");

    for (uint32_t i = 0; i < edit_size(properties); i++) {
        const struct path at = path_key(&list, properties->members[i].key);
        admit_crd_check_schema_node(q, &at, &properties->members[i].value,
                                    "must not be empty for specified object fields");
    }
    if (json_is(more, JSON_OBJECT)) {
        admit_crd_check_schema_node(q, &more_path, more,
                                    "must not be empty for specified object fields");
        if (edit_size(properties) > 0) {
            cause_forbidden(q, &more_path,
                            "additionalProperties and properties are mutual exclusive");
        }
    } else if (json_is(more, JSON_BOOL) && !more->b) {
        cause_forbidden(q, &more_path, "additionalProperties cannot be set to false");
    }
    if (edit_has(schema, "items")) {
        admit_crd_check_schema_node(q, &items, json_get(schema, "items"),
                                    "must not be empty for specified array items");
    }
}

static void admit_crd_check_schema_node(struct admission_request *q, const struct path *p,
                                        const struct json *schema, const char *words)
{
    static const char *const refused[] = {"$ref", "definitions", "dependencies"};
    const bool typeless =
        json_bool(json_get(schema, "x-kubernetes-int-or-string"), false) ||
        json_bool(json_get(schema, "x-kubernetes-preserve-unknown-fields"), false);
    const struct path type = path_field(p, "type");

    if (edit_str(schema, "type").n == 0 && !typeless) {
        cause_required(q, &type, words);
    }
    for (size_t i = 0; i < HK_LEN(refused); i++) {
        const struct path at = path_field(p, refused[i]);
        if (edit_has(schema, refused[i])) {
            cause_forbidden(q, &at, "%s is not supported", refused[i]);
        }
    }
    if (json_bool(json_get(schema, "uniqueItems"), false)) {
        const struct path at = path_field(p, "uniqueItems");
        cause_forbidden(q, &at,
                        "uniqueItems cannot be set to true since the runtime complexity becomes "
                        "quadratic");
    }
    check_children(q, p, schema);
}

static void check_schema(struct admission_request *q, const struct path *version_path,
                         const struct json *version)
{
    const struct json *schema = json_at(version, "schema.openAPIV3Schema");
    const struct path up = path_field(version_path, "schema");
    const struct path p = path_field(&up, "openAPIV3Schema");
    const struct path type = path_field(&p, "type");

    if (!json_is(schema, JSON_OBJECT)) {
        cause_required(q, &p, "schemas are required");
        return;
    }
    admit_crd_check_schema_node(q, &p, schema, "must not be empty at the root");
    if (edit_str(schema, "type").n > 0 && !hk_str_is(edit_str(schema, "type"), "object")) {
        cause_invalid_str(q, &type, edit_str(schema, "type"), "must be object at the root");
    }
}

/* ---- versions and names ---- */

static void check_versions(struct admission_request *q, const struct path *spec_path,
                           const struct json *versions)
{
    const struct path list = path_field(spec_path, "versions");
    uint32_t stored = 0;

    for (uint32_t i = 0; i < edit_len(versions); i++) {
        const struct json *v = json_item(versions, i);
        const struct path at = path_index(&list, i);
        const struct path name = path_field(&at, "name");
        if (cause_check_present(q, &at, v, "name")) {
            name_check(q, &name, edit_str(v, "name"), NAME_LABEL_1035);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (hk_str_eq(edit_str(v, "name"), edit_str(json_item(versions, k), "name"))) {
                cause_invalid_str(q, &name, edit_str(v, "name"),
                                  "must contain unique version names");
                break;
            }
        }
        stored += json_bool(json_get(v, "storage"), false);
        check_schema(q, &at, v);
    }
    if (stored != 1) {
        cause_invalid(q, &list, versions,
                      "must have exactly one version marked as storage version");
    }
}

/* ---- conversion ---- */

static void check_review_versions(struct admission_request *q, const struct path *p,
                                  const struct json *list)
{
    bool known = false;

    if (edit_len(list) == 0) {
        cause_required(q, p, NULL);
        return;
    }
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct path at = path_index(p, i);
        const struct hk_str v = json_str(&list->items[i], HK_STR(""));
        const struct json before = {.type = JSON_ARRAY, .items = list->items, .len = i};
        if (edit_list_has(&before, v)) {
            cause_invalid_str(q, &at, v, "duplicate version");
        } else if (!name_check(q, &at, v, NAME_LABEL_1035)) {
            return;
        }
        known = known || hk_str_is(v, "v1") || hk_str_is(v, "v1beta1");
    }
    if (!known) {
        cause_invalid(q, p, list, "must include at least one of v1, v1beta1");
    }
}

/* Kubernetes' messages name the fields of its internal version. */
static void check_conversion(struct admission_request *q, const struct path *spec_path,
                             const struct json *conversion)
{
    static const char *const strategies[] = {"None", "Webhook", NULL};
    const struct json *webhook = json_get(conversion, "webhook");
    const struct json *versions = json_get(webhook, "conversionReviewVersions");
    const struct path p = path_field(spec_path, "conversion");
    const struct path client = path_field(&p, "webhookClientConfig");
    const struct path list = path_field(&p, "conversionReviewVersions");

    cause_check_enum(q, &p, conversion, "strategy", strategies);
    if (!hk_str_is(edit_str(conversion, "strategy"), "Webhook")) {
        if (edit_has(webhook, "clientConfig")) {
            cause_forbidden(q, &client, "should not be set when strategy is not set to Webhook");
        }
        if (edit_len(versions) > 0) {
            cause_forbidden(q, &list, "should not be set when strategy is not set to Webhook");
        }
        return;
    }
    if (!edit_has(webhook, "clientConfig")) {
        cause_required(q, &client, "required when strategy is set to Webhook");
    } else {
        admit_webhook_client(q, &client, json_get(webhook, "clientConfig"));
    }
    check_review_versions(q, &list, versions);
}

/* ---- versions in the store ---- */

static bool is_listed(const struct json *versions, struct hk_str name)
{
    for (uint32_t i = 0; i < edit_len(versions); i++) {
        if (hk_str_eq(edit_str(&versions->items[i], "name"), name)) {
            return true;
        }
    }
    return false;
}

/* A version in which objects may still be stored must be known. */
static void check_stored_versions(struct admission_request *q, const struct json *stored,
                                  const struct json *versions)
{
    const struct path status = path_field(NULL, "status");
    const struct path p = path_field(&status, "storedVersions");

    if (edit_len(stored) == 0) {
        cause_invalid(q, &p, stored, "must have at least one stored version");
        return;
    }
    for (uint32_t i = 0; i < edit_len(versions); i++) {
        const struct hk_str name = edit_str(&versions->items[i], "name");
        if (json_bool(json_get(&versions->items[i], "storage"), false) &&
            !edit_list_has(stored, name)) {
            cause_invalid(q, &p, stored, "must have the storage version %.*s", HK_FMT(name));
        }
    }
    for (uint32_t i = 0; i < edit_len(stored); i++) {
        const struct path at = path_index(&p, i);
        const struct hk_str name = json_str(&stored->items[i], HK_STR(""));
        if (!is_listed(versions, name)) {
            cause_invalid_str(q, &at, name,
                              "missing from spec.versions; %.*s was previously a storage version, "
                              "and must remain in spec.versions until a storage migration ensures "
                              "no data remains persisted in %.*s and removes %.*s from "
                              "status.storedVersions",
                              HK_FMT(name), HK_FMT(name), HK_FMT(name));
        }
    }
}

void admit_crd_validate_status(struct admission_request *q)
{
    check_stored_versions(q, json_at(q->obj, "status.storedVersions"),
                          json_at(q->obj, "spec.versions"));
}

static void admit_crd_check_names(struct admission_request *q, const struct path *spec_path,
                                  const struct json *names)
{
    static const char *const dns[] = {"plural", "singular"};
    static const char *const any_case[] = {"kind", "listKind"};
    const struct path p = path_field(spec_path, "names");
    const struct path kind = path_field(&p, "listKind");

    for (size_t i = 0; i < HK_LEN(dns); i++) {
        const struct path at = path_field(&p, dns[i]);
        if (cause_check_present(q, &p, names, dns[i])) {
            name_check(q, &at, edit_str(names, dns[i]), NAME_LABEL_1035);
        }
    }
    for (size_t i = 0; i < HK_LEN(any_case); i++) {
        cause_check_present(q, &p, names, any_case[i]);
    }
    if (edit_str(names, "kind").n > 0 &&
        hk_str_eq(edit_str(names, "kind"), edit_str(names, "listKind"))) {
        cause_invalid_str(q, &kind, edit_str(names, "listKind"),
                          "kind and listKind may not be the same");
    }
}

static bool is_protected(struct hk_str group)
{
    return hk_str_is(group, "k8s.io") || hk_str_ends(group, ".k8s.io") ||
           hk_str_is(group, "kubernetes.io") || hk_str_ends(group, ".kubernetes.io");
}

static void check_identity(struct admission_request *q, const struct json *spec)
{
    const struct json *metadata = json_get(q->obj, "metadata");
    const struct hk_str name = edit_str(metadata, "name");
    const struct hk_str group = edit_str(spec, "group");
    const char *want = hk_arena_printf(
        q->mem, "%.*s.%.*s", HK_FMT(edit_str(json_get(spec, "names"), "plural")), HK_FMT(group));
    const struct path meta = path_field(NULL, "metadata");
    const struct path name_path = path_field(&meta, "name");
    const struct path annotations = path_field(&meta, "annotations");
    const struct path approved = path_key(&annotations, HK_STR(APPROVED));

    if (!hk_str_is(name, want)) {
        cause_invalid_str(q, &name_path, name, "must be spec.names.plural+\".\"+spec.group");
    }
    if (is_protected(group) && edit_str(json_get(metadata, "annotations"), APPROVED).n == 0) {
        cause_required(q, &approved,
                       "protected groups must have approval annotation \"" APPROVED
                       "\", see https://github.com/kubernetes/enhancements/pull/1111");
    }
}

void admit_crd_validate(struct admission_request *q)
{
    static const char *const scopes[] = {"Cluster", "Namespaced", NULL};
    const struct json *spec = json_get(q->obj, "spec");
    const struct json *old = json_get(q->old, "spec");
    const struct path p = path_field(NULL, "spec");
    const struct path group = path_field(&p, "group");
    const struct path preserve = path_field(&p, "preserveUnknownFields");

    check_identity(q, spec);
    if (cause_check_present(q, &p, spec, "group")) {
        name_check(q, &group, edit_str(spec, "group"), NAME_SUBDOMAIN);
    }
    if (cause_check_present(q, &p, spec, "scope")) {
        cause_check_enum(q, &p, spec, "scope", scopes);
    }
    admit_crd_check_names(q, &p, json_get(spec, "names"));
    check_versions(q, &p, json_get(spec, "versions"));
    check_conversion(q, &p, json_get(spec, "conversion"));
    if (json_bool(json_get(spec, "preserveUnknownFields"), false)) {
        cause_invalid(q, &preserve, json_get(spec, "preserveUnknownFields"), "must be false");
    }
    if (q->verb == ADMIT_UPDATE) {
        admit_crd_validate_status(q);
        cause_check_immutable(q, &p, spec, old, "group");
        cause_check_immutable(q, &p, spec, old, "scope");
    }
}
