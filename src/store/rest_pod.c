// SPDX-License-Identifier: Apache-2.0
// Two subresources of a running pod: ephemeralcontainers adds containers for debugging, resize
// changes the resources of containers. All other changes in a request are ignored.
#include "store/rest_priv.h"

static struct hk_str rest_pod_container_name(const struct json *container)
{
    return json_str(json_get(container, "name"), HK_STR(""));
}

static const struct json *rest_pod_find_container(const struct json *list, struct hk_str name)
{
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        if (hk_str_eq(rest_pod_container_name(&list->items[i]), name)) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* The old pod, with the uid and resourceVersion of the request. */
static struct json rest_pod_copy_old_pod(struct rest_call *c, const struct json *doc,
                                         const struct json *old)
{
    static const char *const meant[] = {"resourceVersion", "uid"};
    struct json result = json_clone(old, &c->mem);
    struct json *meta = rest_edit(&result, &c->mem, "metadata");

    for (size_t i = 0; i < HK_LEN(meant); i++) {
        const struct hk_str v = rest_meta_str(doc, meant[i]);
        if (v.n > 0) {
            json_set_str(meta, &c->mem, meant[i], v);
        }
    }
    return result;
}

/* ---- ephemeral containers ---- */

static const char *field_at(struct rest_call *c, uint32_t i, const char *key)
{
    return hk_arena_printf(&c->mem, "spec.ephemeralContainers[%u]%s%s", i, key[0] ? "." : "", key);
}

static bool name_taken(const struct json *spec, const struct json *added, uint32_t i)
{
    const struct hk_str name = rest_pod_container_name(&added->items[i]);

    for (uint32_t k = 0; k < i; k++) {
        if (hk_str_eq(rest_pod_container_name(&added->items[k]), name)) {
            return true;
        }
    }
    return rest_pod_find_container(json_get(spec, "containers"), name) ||
           rest_pod_find_container(json_get(spec, "initContainers"), name);
}

static void check_added_mounts(struct rest_call *c, const struct json *mounts, uint32_t i)
{
    static const char *const refused[] = {"subPath", "subPathExpr"};
    const struct json *one;

    for (uint32_t k = 0; (one = json_item(mounts, k)); k++) {
        for (size_t j = 0; j < HK_LEN(refused); j++) {
            if (json_str(json_get(one, refused[j]), HK_STR("")).n > 0) {
                const char *field = hk_arena_printf(&c->mem, "volumeMounts[%u].%s", k, refused[j]);
                rest_field_error(c, "FieldValueForbidden", field_at(c, i, field),
                                 "Forbidden: cannot be set for an Ephemeral Container");
            }
        }
    }
}

static void check_added(struct rest_call *c, const struct json *spec, const struct json *list,
                        uint32_t i)
{
    static const char *const refused[] = {"ports",         "livenessProbe",     "readinessProbe",
                                          "startupProbe",  "lifecycle",         "resizePolicy",
                                          "restartPolicy", "restartPolicyRules"};
    const struct json *one = &list->items[i];
    const struct hk_str target = json_str(json_get(one, "targetContainerName"), HK_STR(""));

    if (rest_pod_container_name(one).n > 0 && name_taken(spec, list, i)) {
        rest_field_error(c, "FieldValueDuplicate", field_at(c, i, "name"),
                         "Duplicate value: \"%.*s\"", HK_FMT(rest_pod_container_name(one)));
    }
    if (target.n > 0 && !rest_pod_find_container(json_get(spec, "containers"), target) &&
        !rest_pod_find_container(json_get(spec, "initContainers"), target)) {
        rest_field_error(c, "FieldValueNotFound", field_at(c, i, "targetContainerName"),
                         "Not found: \"%.*s\"", HK_FMT(target));
    }
    for (size_t k = 0; k < HK_LEN(refused); k++) {
        if (json_get(one, refused[k])) {
            rest_field_error(c, "FieldValueForbidden", field_at(c, i, refused[k]),
                             "Forbidden: cannot be set for an Ephemeral Container");
        }
    }
    check_added_mounts(c, json_get(one, "volumeMounts"), i);
    if (json_at(one, "resources.limits") || json_at(one, "resources.requests")) {
        rest_field_error(c, "FieldValueForbidden", field_at(c, i, "resources"),
                         "Forbidden: cannot be set for an Ephemeral Container");
    }
}

/* An added container never changes during the life of the pod. */
static void check_kept(struct rest_call *c, const struct json *had, const struct json *list)
{
    for (uint32_t i = 0; json_is(had, JSON_ARRAY) && i < had->len; i++) {
        const struct json *now =
            rest_pod_find_container(list, rest_pod_container_name(&had->items[i]));
        if (!now || !json_equal(now, &had->items[i])) {
            rest_field_error(c, "FieldValueForbidden", "spec.ephemeralContainers",
                             "Forbidden: existing ephemeral containers \"%.*s\" may not be %s",
                             HK_FMT(rest_pod_container_name(&had->items[i])),
                             now ? "changed" : "removed");
        }
    }
}

void rest_pod_ephemeral(struct rest_call *c, struct json *doc, const struct json *old)
{
    const struct json *wanted = json_at(doc, "spec.ephemeralContainers");
    const struct json *had = json_at(old, "spec.ephemeralContainers");
    struct json list = json_is(wanted, JSON_ARRAY) ? *wanted : json_make_array();
    struct json result = rest_pod_copy_old_pod(c, doc, old);

    check_kept(c, had, &list);
    for (uint32_t i = 0; i < list.len; i++) {
        if (!rest_pod_find_container(had, rest_pod_container_name(&list.items[i]))) {
            check_added(c, json_get(old, "spec"), &list, i);
        }
    }
    if (list.len > 0) {
        json_set(rest_edit(&result, &c->mem, "spec"), &c->mem, "ephemeralContainers", list);
    }
    *doc = result;
}

/* ---- resize ---- */

static void take_member(struct rest_call *c, struct json *to, const struct json *from,
                        const char *key)
{
    const struct json *v = json_get(from, key);

    if (v) {
        json_set(to, &c->mem, key, *v);
    } else {
        json_del(to, key);
    }
}

static void take_sizes(struct rest_call *c, struct json *spec, const struct json *wanted,
                       const char *key)
{
    const struct json *list = json_get(spec, key);

    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct json *from = rest_pod_find_container(json_get(wanted, key),
                                                          rest_pod_container_name(&list->items[i]));
        if (from) {
            take_member(c, &list->items[i], from, "resources");
            take_member(c, &list->items[i], from, "resizePolicy");
        }
    }
}

/* Whether the two differ in any resource other than CPU and memory. */
static bool other_amounts_differ(const struct json *a, const struct json *b)
{
    static const char *const kinds[] = {"requests", "limits"};

    for (size_t k = 0; k < HK_LEN(kinds); k++) {
        const struct json *x = json_get(json_get(a, "resources"), kinds[k]);
        const struct json *y = json_get(json_get(b, "resources"), kinds[k]);
        for (uint32_t i = 0; json_is(x, JSON_OBJECT) && i < x->len; i++) {
            const struct hk_str name = x->members[i].key;
            if (!hk_str_is(name, "cpu") && !hk_str_is(name, "memory") &&
                !json_equal(&x->members[i].value, json_get_str(y, name))) {
                return true;
            }
        }
    }
    return false;
}

static void check_sizes(struct rest_call *c, const struct json *doc, const struct json *old)
{
    static const char *const lists[] = {"spec.containers", "spec.initContainers"};

    for (size_t k = 0; k < HK_LEN(lists); k++) {
        const struct json *now = json_at(doc, lists[k]);
        const struct json *before = json_at(old, lists[k]);
        for (uint32_t i = 0; json_is(now, JSON_ARRAY) && i < now->len; i++) {
            const struct json *was =
                rest_pod_find_container(before, rest_pod_container_name(&now->items[i]));
            if (other_amounts_differ(&now->items[i], was) ||
                other_amounts_differ(was, &now->items[i])) {
                rest_field_error(c, "FieldValueForbidden", "spec",
                                 "Forbidden: only cpu and memory resources are mutable");
                return;
            }
        }
    }
}

void rest_pod_resize(struct rest_call *c, struct json *doc, const struct json *old)
{
    struct json result = rest_pod_copy_old_pod(c, doc, old);
    struct json *spec = rest_edit(&result, &c->mem, "spec");

    take_sizes(c, spec, json_get(doc, "spec"), "containers");
    take_sizes(c, spec, json_get(doc, "spec"), "initContainers");
    check_sizes(c, &result, old);
    *doc = result;
}

void rest_pod_check_resize(struct rest_call *c, const struct json *doc, const struct json *old)
{
    const char *before = admission_pod_qos(json_get(old, "spec"));
    const char *after = admission_pod_qos(json_get(doc, "spec"));

    if (strcmp(before, after) != 0) {
        rest_field_error(c, "FieldValueInvalid", "spec",
                         "Invalid value: \"%s\": Pod QOS Class may not change as a result of "
                         "resizing",
                         after);
    }
}
