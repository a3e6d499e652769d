// SPDX-License-Identifier: Apache-2.0
// Schemas of the built-in types, from the tables in api/type.h. A type is written once per document
// and referenced by name, together with all types it references.
#include "apiserver/openapi_priv.h"

#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

/* ---- pieces ---- */

struct json openapi_ref(struct openapi_doc *d, struct hk_str name)
{
    struct json ref = json_make_object();

    json_set_cstr(&ref, d->mem, "$ref",
                  hk_arena_printf(d->mem, "#/%s/%.*s", d->v2 ? "definitions" : "components/schemas",
                                  HK_FMT(name)));
    return ref;
}

/* In version 3 a reference must not have sibling keywords. */
struct json openapi_described_ref(struct openapi_doc *d, struct hk_str name, const char *text)
{
    struct json ref = openapi_ref(d, name);
    struct json out = json_make_object();

    if (d->v2) {
        json_set_cstr(&ref, d->mem, "description", text);
        return ref;
    }
    struct json all = json_make_array();
    json_push(&all, d->mem, ref);
    json_set(&out, d->mem, "allOf", all);
    json_set_cstr(&out, d->mem, "description", text);
    return out;
}

struct json openapi_gvk(struct openapi_doc *d, struct hk_str group, struct hk_str version,
                        const char *kind)
{
    struct json gvk = json_make_object();

    json_set_str(&gvk, d->mem, "group", group);
    json_set_cstr(&gvk, d->mem, "kind", kind);
    json_set_str(&gvk, d->mem, "version", version);
    return gvk;
}

static void put_gvk_list(struct openapi_doc *d, struct json *schema, struct hk_str group,
                         struct hk_str version, const char *kind)
{
    struct json list = json_make_array();

    json_push(&list, d->mem, openapi_gvk(d, group, version, kind));
    json_set(schema, d->mem, "x-kubernetes-group-version-kind", list);
}

static struct json openapi_schema_make_scalar(struct openapi_doc *d, const char *type,
                                              const char *format)
{
    struct json s = json_make_object();

    if (format) {
        json_set_cstr(&s, d->mem, "format", format);
    }
    json_set_cstr(&s, d->mem, "type", type);
    return s;
}

static struct json openapi_schema_make_array(struct openapi_doc *d, struct json element)
{
    struct json s = openapi_schema_make_scalar(d, "array", NULL);

    json_set(&s, d->mem, "items", element);
    return s;
}

static struct json map_of(struct openapi_doc *d, struct json element)
{
    struct json s = openapi_schema_make_scalar(d, "object", NULL);

    json_set(&s, d->mem, "additionalProperties", element);
    return s;
}

/* ---- values that have a name ---- */

/* types: the alternatives in version 3; version 2 has no alternatives and uses string. */
static const struct scalar {
    enum api_form form;
    const char *name, *format, *types[2];
    const char *about;
} scalars[] = {
    {API_QUANTITY,
     "io.k8s.apimachinery.pkg.api.resource.Quantity",
     NULL,
     {"string", "number"},
     "A number with an optional suffix, such as \"500m\", \"2\" or \"4Gi\"."},
    {API_INT_OR_STRING,
     "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
     "int-or-string",
     {"integer", "string"},
     "A number, or a text such as \"25%\" or the name of a port."},
    {API_TIME, META "Time", "date-time", {"string"}, "A time, such as \"2026-01-02T15:04:05Z\"."},
    {API_MICRO_TIME,
     META "MicroTime",
     "date-time",
     {"string"},
     "A time to the microsecond, such as \"2026-01-02T15:04:05.000000Z\"."},
};

static struct json scalar_schema(struct openapi_doc *d, const struct scalar *k)
{
    struct json s = json_make_object();
    struct json one_of = json_make_array();

    json_set_cstr(&s, d->mem, "description", k->about);
    if (k->format) {
        json_set_cstr(&s, d->mem, "format", k->format);
    }
    if (d->v2 || !k->types[1]) {
        json_set_cstr(&s, d->mem, "type", "string");
        return s;
    }
    json_push(&one_of, d->mem, openapi_schema_make_scalar(d, k->types[0], NULL));
    json_push(&one_of, d->mem, openapi_schema_make_scalar(d, k->types[1], NULL));
    json_set(&s, d->mem, "oneOf", one_of);
    return s;
}

const char *openapi_add_scalar(struct openapi_doc *d, enum api_form form)
{
    for (size_t i = 0; i < HK_LEN(scalars); i++) {
        const struct scalar *k = &scalars[i];
        if (k->form != form) {
            continue;
        }
        if (!json_get(&d->schemas, k->name)) {
            json_set(&d->schemas, d->mem, k->name, scalar_schema(d, k));
        }
        return k->name;
    }
    return NULL;
}

/* ---- fields ---- */

static struct json in_place(struct openapi_doc *d, const struct api_field *f)
{
    switch (f->form) {
    case API_INT:
        return openapi_schema_make_scalar(d, "integer", f->flags & API_LONG ? "int64" : "int32");
    case API_BOOL:
        return openapi_schema_make_scalar(d, "boolean", NULL);
    case API_BYTES:
        return openapi_schema_make_scalar(d, "string", "byte");
    case API_STRINGS:
        return openapi_schema_make_array(d, openapi_schema_make_scalar(d, "string", NULL));
    case API_RAW:
        return openapi_schema_make_scalar(d, "object", NULL);
    default:
        return openapi_schema_make_scalar(d, "string", NULL);
    }
}

/* The name of the referenced type, empty if the field is described inline. */
static struct hk_str referred(struct openapi_doc *d, const struct api_field *f)
{
    const char *scalar = openapi_add_scalar(d, f->form);

    if (scalar) {
        return hk_str(scalar);
    }
    return f->form == API_MESSAGE ? openapi_add_type(d, f->type) : HK_STR("");
}

static void put_patch_hints(struct openapi_doc *d, const struct api_field *f, struct json *s)
{
    const bool merge = api_field_patch_merges(f);
    const char *strategy = f->flags & API_REPLACE  ? "replace"
                           : f->flags & API_RETAIN ? (merge ? "merge,retainKeys" : "retainKeys")
                           : merge                 ? "merge"
                                                   : NULL;

    if (merge && f->merge_key) {
        json_set_cstr(s, d->mem, "x-kubernetes-patch-merge-key", f->merge_key);
    }
    if (strategy) {
        json_set_cstr(s, d->mem, "x-kubernetes-patch-strategy", strategy);
    }
}

static struct json field_schema(struct openapi_doc *d, const struct api_type *t,
                                const struct api_field *f)
{
    const char *about = api_field_about(t, f->name);
    const struct hk_str name = referred(d, f);
    struct json s;

    if (name.n > 0 && !(f->flags & (API_LIST | API_MAP))) {
        s = openapi_described_ref(d, name, about ? about : "");
    } else {
        s = name.n > 0 ? openapi_ref(d, name) : in_place(d, f);
        s = f->flags & API_LIST  ? openapi_schema_make_array(d, s)
            : f->flags & API_MAP ? map_of(d, s)
                                 : s;
        json_set_cstr(&s, d->mem, "description", about ? about : "");
    }
    put_patch_hints(d, f, &s);
    return s;
}

static void put_fields(struct openapi_doc *d, const struct api_type *t, struct json *props,
                       struct json *required)
{
    for (uint32_t i = 0; i < t->nfields; i++) {
        const struct api_field *f = &t->fields[i];
        if (f->flags & API_INLINE) {
            put_fields(d, f->type, props, required);
            continue;
        }
        json_set(props, d->mem, f->name, field_schema(d, t, f));
        if (f->flags & API_REQUIRED) {
            json_push(required, d->mem, json_make_str(hk_str(f->name)));
        }
    }
}

/* ---- types ---- */

static void put_identity(struct openapi_doc *d, struct json *props)
{
    static const char *const names[] = {"apiVersion", "kind"};

    for (size_t i = 0; i < HK_LEN(names); i++) {
        struct json s = openapi_schema_make_scalar(d, "string", NULL);
        json_set_cstr(&s, d->mem, "description", api_field_about(NULL, names[i]));
        json_set(props, d->mem, names[i], s);
    }
}

void openapi_put_heads(struct openapi_doc *d, struct json *props)
{
    const struct hk_str meta = openapi_add_type(d, api_type_object_meta());

    put_identity(d, props);
    json_set(props, d->mem, "metadata",
             openapi_described_ref(d, meta, api_field_about(NULL, "metadata")));
}

static struct json type_schema(struct openapi_doc *d, const struct api_type *t, bool kind)
{
    struct json s = openapi_schema_make_scalar(d, "object", NULL);
    struct json props = json_make_object();
    struct json required = json_make_array();

    json_set_cstr(&s, d->mem, "description", t->about[0]);
    if (kind) {
        put_identity(d, &props);
    }
    put_fields(d, t, &props, &required);
    json_set(&s, d->mem, "properties", props);
    if (required.len > 0) {
        json_set(&s, d->mem, "required", required);
    }
    return s;
}

static void put_root_gvk(struct openapi_doc *d, const struct api_root *root, struct json *schema)
{
    struct hk_str version = hk_str(root->version), group = HK_STR("");

    if (strchr(root->version, '/')) {
        hk_str_cut(&version, '/', &group);
    }
    put_gvk_list(d, schema, group, version, root->kind);
}

struct hk_str openapi_add_type(struct openapi_doc *d, const struct api_type *t)
{
    const char *name = hk_arena_printf(d->mem, "%s.%s", t->package, t->name);
    const struct api_root *root = api_root_of(t);

    if (!json_get(&d->schemas, name)) {
        /* Types may be recursive: the name is entered before its schema. */
        json_set_object(&d->schemas, d->mem, name);
        struct json s = type_schema(d, t, root);
        if (root) {
            put_root_gvk(d, root, &s);
        }
        json_set(&d->schemas, d->mem, name, s);
    }
    return hk_str(name);
}

/* ---- kinds ---- */

static const struct api_type *kind_type(const struct api_kind *k)
{
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};

    api_kind_write_version(k, &version);
    return api_type_find(hk_buf_str(&version), hk_str(k->kind));
}

/* "batch.volcano.sh" to "sh.volcano.batch." */
static void write_reversed(struct hk_str group, struct hk_buf *out)
{
    while (group.n > 0) {
        size_t at = group.n;
        while (at > 0 && group.s[at - 1] != '.') {
            at--;
        }
        hk_buf_add(out, group.s + at, group.n - at);
        hk_buf_addc(out, '.');
        group.n = at > 0 ? at - 1 : 0;
    }
}

struct hk_str openapi_name(struct openapi_doc *d, const struct openapi_kind *k)
{
    const struct api_type *t = kind_type(k->kind);
    const struct hk_str group = hk_str(k->kind->group);
    const bool ours = strchr(k->kind->group, '.') == NULL || hk_str_ends(group, ".k8s.io");
    HK_AUTO(hk_buf_fini) struct hk_buf name = {0};

    if (t) { /* other versions may share the type */
        const char *version = strrchr(t->package, '.') + 1;
        hk_buf_add(&name, t->package, (size_t)(version - t->package));
    } else if (ours && !(k->row && k->row->crd)) {
        struct hk_str rest = group, first = HK_STR("");
        hk_str_cut(&rest, '.', &first);
        hk_buf_addf(&name, "io.k8s.api.%.*s.", HK_FMT(first.n > 0 ? first : HK_STR("core")));
    } else {
        write_reversed(group, &name);
    }
    hk_buf_addf(&name, "%s.%s", k->kind->version, k->kind->kind);
    return hk_arena_str(d->mem, hk_buf_str(&name));
}

/* The schema of a kind without known fields. Version 2 cannot say that other fields are allowed. */
static struct json open_schema(struct openapi_doc *d, const struct api_kind *k)
{
    struct json s = openapi_schema_make_scalar(d, "object", NULL);
    struct json props = json_make_object();

    json_set_cstr(&s, d->mem, "description", api_kind_about(k->kind));
    if (!d->v2) {
        openapi_put_heads(d, &props);
        json_set(&s, d->mem, "properties", props);
    }
    json_set_bool(&s, d->mem, "x-kubernetes-preserve-unknown-fields", true);
    return s;
}

static void add_list(struct openapi_doc *d, const struct openapi_kind *k, struct hk_str name)
{
    const struct api_kind *kind = k->kind;
    const char *list = hk_arena_printf(d->mem, "%sList", kind->kind);
    const struct hk_str meta = openapi_add_type(d, api_type_list_meta());
    struct json s = openapi_schema_make_scalar(d, "object", NULL);
    struct json props = json_make_object();
    struct json items = openapi_schema_make_array(d, openapi_ref(d, name));
    struct json required = json_make_array();

    json_set_cstr(&items, d->mem, "description", "The objects.");
    put_identity(d, &props);
    json_set(&props, d->mem, "items", items);
    json_set(&props, d->mem, "metadata", openapi_described_ref(d, meta, "Facts about the list."));
    json_push(&required, d->mem, json_make_str(HK_STR("items")));
    json_set_cstr(&s, d->mem, "description",
                  hk_arena_printf(d->mem, "Objects of kind %s.", kind->kind));
    json_set(&s, d->mem, "properties", props);
    json_set(&s, d->mem, "required", required);
    put_gvk_list(d, &s, hk_str(kind->group), hk_str(kind->version), list);
    json_set(&d->schemas, d->mem, hk_arena_printf(d->mem, "%.*sList", HK_FMT(name)), s);
}

void openapi_add_kind(struct openapi_doc *d, const struct openapi_kind *k)
{
    const struct hk_str name = openapi_name(d, k);
    const struct api_type *t = kind_type(k->kind);
    struct json s;

    if (k->row && json_is(k->row->schema, JSON_OBJECT)) {
        s = openapi_custom(d, k->row->schema);
    } else if (t) {
        json_set_object(&d->schemas, d->mem, name.s);
        s = type_schema(d, t, true);
    } else {
        s = open_schema(d, k->kind);
    }
    put_gvk_list(d, &s, hk_str(k->kind->group), hk_str(k->kind->version), k->kind->kind);
    json_set(&d->schemas, d->mem, name.s, s);
    if (k->row) {
        add_list(d, k, name);
    }
}
