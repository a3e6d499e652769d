// SPDX-License-Identifier: Apache-2.0
// Compiles structural schemas from JSON into nodes with compiled patterns.
#include "api/schema_rule.h"
#include "codec/re2.h"

enum { DEPTH_MAX = 100 };

struct compiler {
    struct schema *s;
    struct hk_err *err;
    uint32_t depth;
};

static int compile(struct compiler *c, const struct json *doc, bool inside_logic,
                   struct schema_node **ret);

static const struct {
    const char *name;
    enum schema_type type;
} types[] = {
    {"object", SCHEMA_OBJECT},   {"array", SCHEMA_ARRAY},   {"string", SCHEMA_STRING},
    {"integer", SCHEMA_INTEGER}, {"number", SCHEMA_NUMBER}, {"boolean", SCHEMA_BOOLEAN},
};

static int read_type(const struct compiler *c, const struct json *doc, bool inside_logic,
                     struct schema_node *n)
{
    const struct hk_str name = json_str_field(doc, "type");

    if (json_bool(json_get(doc, "x-kubernetes-int-or-string"), false)) {
        n->type = SCHEMA_INT_OR_STRING;
        return 0;
    }
    for (size_t i = 0; i < HK_LEN(types); i++) {
        if (hk_str_is(name, types[i].name)) {
            n->type = types[i].type;
            return 0;
        }
    }
    if (name.n == 0 && (inside_logic || n->preserve)) {
        n->type = SCHEMA_ANY;
        return 0;
    }
    if (name.n == 0) {
        return hk_fail(c->err, HK_EINVAL,
                       "type: Required value: must not be empty for specified "
                       "object fields");
    }
    return hk_fail(c->err, HK_EINVAL, "type: Unsupported value: '%.*s'", HK_FMT(name));
}

static int read_list_type(const struct compiler *c, const struct json *doc, struct schema_node *n)
{
    const struct hk_str name = json_str(json_get(doc, "x-kubernetes-list-type"), HK_STR("atomic"));

    n->keys = json_get(doc, "x-kubernetes-list-map-keys");
    n->list = hk_str_is(name, "map")   ? SCHEMA_MAP
              : hk_str_is(name, "set") ? SCHEMA_SET
                                       : SCHEMA_ATOMIC;
    if (n->list == SCHEMA_MAP && (!json_is(n->keys, JSON_ARRAY) || n->keys->len == 0)) {
        return hk_fail(c->err, HK_EINVAL, "x-kubernetes-list-map-keys: Required value");
    }
    return 0;
}

static int read_pattern(struct compiler *c, const struct json *doc, struct schema_node *n)
{
    n->pattern = json_str_field(doc, "pattern");
    if (n->pattern.n == 0) {
        return 0;
    }
    const int rc = re2_compile(n->pattern, &n->re, c->err);
    if (rc < 0) {
        return rc;
    }
    hk_vec_push(&c->s->patterns, n->re);
    return 0;
}

/* NULL if it has another type, so that callers need not check again. */
static const struct json *get_typed(const struct json *doc, const char *key, enum json_type type)
{
    const struct json *v = json_get(doc, key);

    return json_is(v, type) ? v : NULL;
}

static const struct json *get_number(const struct json *doc, const char *key)
{
    const struct json *v = json_get(doc, key);

    return json_is_numeric(v) ? v : NULL;
}

static void read_keywords(const struct json *doc, struct schema_node *n)
{
    n->nullable = json_bool(json_get(doc, "nullable"), false);
    n->preserve = json_bool(json_get(doc, "x-kubernetes-preserve-unknown-fields"), false);
    n->embedded = json_bool(json_get(doc, "x-kubernetes-embedded-resource"), false);
    n->exclusive_min = json_bool(json_get(doc, "exclusiveMinimum"), false);
    n->exclusive_max = json_bool(json_get(doc, "exclusiveMaximum"), false);
    n->free_form = json_bool(json_get(doc, "additionalProperties"), false);
    n->format = json_str_field(doc, "format");
    n->required = get_typed(doc, "required", JSON_ARRAY);
    n->enumeration = get_typed(doc, "enum", JSON_ARRAY);
    n->preset = json_get(doc, "default");
    n->min = get_number(doc, "minimum");
    n->max = get_number(doc, "maximum");
    n->multiple_of = get_number(doc, "multipleOf");
    n->min_length = get_typed(doc, "minLength", JSON_INT);
    n->max_length = get_typed(doc, "maxLength", JSON_INT);
    n->min_items = get_typed(doc, "minItems", JSON_INT);
    n->max_items = get_typed(doc, "maxItems", JSON_INT);
    n->min_props = get_typed(doc, "minProperties", JSON_INT);
    n->max_props = get_typed(doc, "maxProperties", JSON_INT);
    n->rule_docs = get_typed(doc, "x-kubernetes-validations", JSON_ARRAY);
}

static int compile_props(struct compiler *c, const struct json *doc, bool inside_logic,
                         struct schema_node *n)
{
    const struct json *props = get_typed(doc, "properties", JSON_OBJECT);
    const uint32_t len = props ? props->len : 0;
    int rc = 0;

    n->nprops = len;
    n->props = hk_arena_zalloc(&c->s->arena, len * sizeof(n->props[0]));
    for (uint32_t i = 0; i < len && rc == 0; i++) {
        n->props[i].key = props->members[i].key;
        rc = compile(c, &props->members[i].value, inside_logic, &n->props[i].node);
        if (rc < 0) {
            rc = hk_wrap(c->err, rc, "properties[%.*s]", HK_FMT(n->props[i].key));
        }
    }
    return rc;
}

static int compile_one(struct compiler *c, const struct json *doc, const char *key,
                       bool inside_logic, struct schema_node **ret)
{
    const struct json *v = get_typed(doc, key, JSON_OBJECT);
    const int rc = v ? compile(c, v, inside_logic, ret) : 0;

    return rc < 0 ? hk_wrap(c->err, rc, "%s", key) : 0;
}

static int compile_many(struct compiler *c, const struct json *doc, const char *key,
                        struct schema_nodes *ret)
{
    const struct json *v = get_typed(doc, key, JSON_ARRAY);
    const uint32_t len = v ? v->len : 0;
    int rc = 0;

    ret->len = len;
    ret->at = hk_arena_zalloc(&c->s->arena, len * sizeof(ret->at[0]));
    for (uint32_t i = 0; i < len && rc == 0; i++) {
        rc = compile(c, &v->items[i], true, &ret->at[i]);
    }
    return rc < 0 ? hk_wrap(c->err, rc, "%s", key) : 0;
}

static int compile_logic(struct compiler *c, const struct json *doc, struct schema_node *n)
{
    int rc = compile_many(c, doc, "allOf", &n->all_of);

    if (rc == 0) {
        rc = compile_many(c, doc, "anyOf", &n->any_of);
    }
    if (rc == 0) {
        rc = compile_many(c, doc, "oneOf", &n->one_of);
    }
    if (rc == 0 && get_typed(doc, "not", JSON_OBJECT)) {
        n->not_of =
            (struct schema_nodes){hk_arena_array(&c->s->arena, 1, sizeof(struct schema_node *)), 1};
        rc = compile_one(c, doc, "not", true, &n->not_of.at[0]);
    }
    return rc;
}

static int compile_node(struct compiler *c, const struct json *doc, bool inside_logic,
                        struct schema_node *n)
{
    int rc;

    if (!json_is(doc, JSON_OBJECT)) {
        return hk_fail(c->err, HK_EINVAL, "expected an object");
    }
    if (json_get(doc, "$ref")) {
        return hk_fail(c->err, HK_EINVAL, "$ref: Forbidden: $ref is not supported");
    }
    read_keywords(doc, n);
    rc = read_type(c, doc, inside_logic, n);
    if (rc == 0) {
        rc = read_list_type(c, doc, n);
    }
    if (rc == 0) {
        rc = read_pattern(c, doc, n);
    }
    if (rc == 0) {
        rc = compile_props(c, doc, inside_logic, n);
    }
    if (rc == 0) {
        rc = compile_one(c, doc, "additionalProperties", inside_logic, &n->additional);
    }
    if (rc == 0) {
        rc = compile_one(c, doc, "items", inside_logic, &n->items);
    }
    if (rc < 0) {
        return rc;
    }
    return compile_logic(c, doc, n);
}

static int compile(struct compiler *c, const struct json *doc, bool inside_logic,
                   struct schema_node **ret)
{
    if (c->depth == DEPTH_MAX) {
        return hk_fail(c->err, HK_ELIMIT, "schema is nested deeper than %d levels", DEPTH_MAX);
    }
    struct schema_node *n = hk_arena_zalloc(&c->s->arena, sizeof(*n));
    c->depth++;
    const int rc = compile_node(c, doc, inside_logic, n);
    c->depth--;
    *ret = n;
    return rc;
}

int schema_new(const struct json *doc, struct schema **ret, struct hk_err *err)
{
    struct schema *s = hk_zalloc(sizeof(*s));
    struct compiler c = {.s = s, .err = err};
    const struct json copy = json_clone(doc, &s->arena);
    const int rc = compile(&c, &copy, false, &s->root);

    if (rc < 0) {
        schema_free(s);
        return hk_wrap(err, rc, "openAPIV3Schema");
    }
    schema_rules_compile(s);
    *ret = s;
    return 0;
}

void schema_free(struct schema *s)
{
    if (!s) {
        return;
    }
    for (uint32_t i = 0; i < s->patterns.len; i++) {
        re2_free(s->patterns.at[i]);
    }
    hk_vec_fini(&s->patterns);
    if (s->root) {
        schema_rules_free(s->root);
    }
    hk_arena_fini(&s->arena);
    hk_free(s);
}

const struct schema_node *schema_prop_find(const struct schema_node *n, struct hk_str key)
{
    for (uint32_t i = 0; i < n->nprops; i++) {
        if (hk_str_eq(n->props[i].key, key)) {
            return n->props[i].node;
        }
    }
    return NULL;
}

static void schema_write_path(const struct schema_path *p, struct hk_buf *out)
{
    if (!p->up) {
        return;
    }
    schema_write_path(p->up, out);
    if (!p->key.s) {
        hk_buf_addf(out, "[%u]", p->index);
        return;
    }
    if (out->len > 0) {
        hk_buf_addc(out, '.');
    }
    hk_buf_addstr(out, p->key);
}

char *schema_path_text(const struct schema_path *p, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    schema_write_path(p, &text);
    return hk_arena_strndup(a, hk_buf_str(&text).s, text.len);
}
