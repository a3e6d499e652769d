// SPDX-License-Identifier: Apache-2.0
// Schemas of custom resources. OpenAPI v3 accepts them nearly unchanged. OpenAPI v2, as its clients
// enforce it, supports neither alternatives nor null nor objects with unknown fields: such values
// become untyped. Many definitions contain built-in types, mostly pod templates, without
// descriptions; these are recognised by their fields and get the built-in descriptions.
#include "apiserver/openapi_priv.h"

/* ---- recognising built-in types ---- */

/* An object with all these fields is taken for the type at the path in the kind. The most specific
 * sets come first. */
static const struct shape {
    const char *fields[4];
    const char *version, *kind, *path;
} shapes[] = {
    {{"containers", "restartPolicy", "volumes"}, "v1", "Pod", "spec"},
    {{"image", "imagePullPolicy", "volumeMounts"}, "v1", "Pod", "spec.containers"},
    {{"accessModes", "storageClassName"}, "v1", "PersistentVolumeClaim", "spec"},
    {{"annotations", "labels", "name", "namespace"}, "v1", "Pod", "metadata"},
    {{"matchLabels", "matchExpressions"}, "apps/v1", "Deployment", "spec.selector"},
    {{"fieldPath", "resourceVersion", "uid", "kind"}, "v1", "Binding", "target"},
    {{"lastTransitionTime", "reason", "status", "type"},
     "policy/v1",
     "PodDisruptionBudget",
     "status.conditions"},
};

static const struct api_type *shape_type(const struct shape *k)
{
    const struct api_type *t = api_type_find(hk_str(k->version), hk_str(k->kind));
    struct hk_str rest = hk_str(k->path), part;

    while (hk_str_cut(&rest, '.', &part)) {
        t = api_type_name(t, part)->type;
    }
    return t;
}

static bool has_fields(const struct json *props, const struct shape *k)
{
    for (size_t i = 0; i < HK_LEN(k->fields) && k->fields[i]; i++) {
        if (!json_get(props, k->fields[i])) {
            return false;
        }
    }
    return true;
}

static const struct api_type *recognise(const struct json *schema)
{
    const struct json *props = json_get(schema, "properties");

    for (size_t i = 0; props && i < HK_LEN(shapes); i++) {
        if (has_fields(props, &shapes[i])) {
            return shape_type(&shapes[i]);
        }
    }
    return NULL;
}

/* Quantities and int-or-strings as CRD generators write them; API_RAW for anything else. */
static enum api_form recognise_value(const struct json *schema)
{
    static const char quantity[] =
        "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+("
        "\\.[0-9]*)?)|(\\.[0-9]+))))?$";
    enum api_form form = API_INT_OR_STRING;

    if (!json_bool(json_get(schema, "x-kubernetes-int-or-string"), false)) {
        return API_RAW;
    }
    for (uint32_t i = 0; i < schema->len; i++) {
        const struct json_member *m = &schema->members[i];
        if (hk_str_is(m->key, "pattern") && hk_str_is(json_str(&m->value, HK_STR("")), quantity)) {
            form = API_QUANTITY;
        } else if (!hk_str_is(m->key, "anyOf") && !hk_str_is(m->key, "description") &&
                   !hk_str_is(m->key, "x-kubernetes-int-or-string")) {
            return API_RAW;
        }
    }
    return form;
}

/* ---- keywords ---- */

static bool openapi_custom_is_in_list(struct hk_str key, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (hk_str_is(key, words[i])) {
            return true;
        }
    }
    return false;
}

/* Whether version 2 omits the keyword. */
static bool unsayable(const struct json *schema, struct hk_str key)
{
    static const char *const never[] = {"anyOf", "allOf",    "oneOf",
                                        "not",   "nullable", "x-kubernetes-validations"};
    static const char *const shape[] = {"properties", "items", "required"};
    const bool nullable = json_bool(json_get(schema, "nullable"), false);
    const bool choice = json_bool(json_get(schema, "x-kubernetes-int-or-string"), false);
    const bool open = json_bool(json_get(schema, "x-kubernetes-preserve-unknown-fields"), false);

    if (openapi_custom_is_in_list(key, never, HK_LEN(never))) {
        return true;
    }
    if (hk_str_is(key, "type")) { /* a type of array needs items, omitted for open schemas */
        return nullable || choice || (open && json_get(schema, "items"));
    }
    return (nullable || open) && openapi_custom_is_in_list(key, shape, HK_LEN(shape));
}

/* like: its built-in type, NULL if unknown; about: a description for schemas without one. */
static struct json convert(struct openapi_doc *d, const struct json *schema,
                           const struct api_type *like, const char *about);

static struct json convert_props(struct openapi_doc *d, const struct json *props,
                                 const struct api_type *like)
{
    struct json out = json_make_object();

    for (uint32_t i = 0; i < props->len; i++) {
        const struct json_member *m = &props->members[i];
        const struct api_field *f = like ? api_type_name(like, m->key) : NULL;
        const char *about = f ? api_field_about(like, f->name) : NULL;
        json_put(&out, d->mem, m->key, convert(d, &m->value, f ? f->type : NULL, about));
    }
    return out;
}

/* Elements of a list or map have the list's built-in type. */
static void put_keyword(struct openapi_doc *d, const struct json_member *m,
                        const struct api_type *like, struct json *out)
{
    const bool object = m->value.type == JSON_OBJECT;

    if (object && hk_str_is(m->key, "properties")) {
        json_put(out, d->mem, m->key, convert_props(d, &m->value, like));
    } else if (object &&
               (hk_str_is(m->key, "items") || hk_str_is(m->key, "additionalProperties"))) {
        json_put(out, d->mem, m->key, convert(d, &m->value, like, NULL));
    } else if (object || !hk_str_is(m->key, "additionalProperties")) {
        json_put(out, d->mem, m->key, m->value);
    }
}

static void put_resource_heads(struct openapi_doc *d, struct json *schema)
{
    openapi_put_heads(d, json_need(schema, d->mem, "properties", JSON_OBJECT));
}

static struct json convert_keywords(struct openapi_doc *d, const struct json *schema,
                                    const struct api_type *like)
{
    struct json out = json_make_object();

    for (uint32_t i = 0; i < schema->len; i++) {
        const struct json_member *m = &schema->members[i];
        if (!d->v2 || !unsayable(schema, m->key)) {
            put_keyword(d, m, like, &out);
        }
    }
    if (json_bool(json_get(schema, "x-kubernetes-embedded-resource"), false) &&
        json_get(&out, "properties")) {
        put_resource_heads(d, &out);
    }
    return out;
}

static struct json convert(struct openapi_doc *d, const struct json *schema,
                           const struct api_type *like, const char *about)
{
    if (schema->type != JSON_OBJECT) {
        return json_make_object();
    }
    const struct api_type *type = like ? like : recognise(schema);
    const enum api_form value = recognise_value(schema);
    const struct hk_str own = json_str_field(schema, "description");
    const char *text = own.n > 0               ? hk_arena_str(d->mem, own).s
                       : about || type == like ? about
                                               : type->about[0];

    if (value != API_RAW) {
        const struct hk_str name = hk_str(openapi_add_scalar(d, value));
        return text ? openapi_described_ref(d, name, text) : openapi_ref(d, name);
    }
    struct json out = convert_keywords(d, schema, type);
    if (text) {
        json_set_cstr(&out, d->mem, "description", text);
    }
    return out;
}

struct json openapi_custom(struct openapi_doc *d, const struct json *schema)
{
    struct json out = convert(d, schema, NULL, NULL);

    /* Version 2 omits properties if other fields are allowed. */
    if (!d->v2 || !unsayable(schema, HK_STR("properties"))) {
        put_resource_heads(d, &out);
    }
    return out;
}
