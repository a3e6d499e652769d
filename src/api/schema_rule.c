// SPDX-License-Identifier: Apache-2.0
// Compiles the rules of a schema, and reports those that Kubernetes refuses in a definition. The
// types that expressions see follow apiserver's SchemaDeclType: properties without a type of their
// own are not visible.
#include "api/schema_rule.h"

/* ---- types ---- */

static struct cel_type *rule_type_new(struct schema *s, enum cel_kind kind)
{
    struct cel_type *t = hk_arena_zalloc(&s->arena, sizeof(*t));

    t->kind = kind;
    return t;
}

static const struct cel_type *rule_string_type(struct schema *s, const struct schema_node *n)
{
    struct cel_type *t = rule_type_new(s, CEL_STRING);

    if (hk_str_is(n->format, "byte")) {
        t->kind = CEL_BYTES;
    } else if (hk_str_is(n->format, "duration")) {
        t->kind = CEL_DURATION;
    } else if (hk_str_is(n->format, "date") || hk_str_is(n->format, "date-time")) {
        t->kind = CEL_TIMESTAMP;
        t->date = hk_str_is(n->format, "date");
    }
    return t;
}

static void rule_add_field(struct cel_type *t, struct cel_field *fields, struct hk_str name,
                           struct hk_str key, const struct cel_type *type)
{
    fields[t->nfields++] = (struct cel_field){name, key, type};
}

/* Every resource has these, whatever its schema says. */
static void rule_add_meta(struct schema *s, struct cel_type *t, struct cel_field *fields)
{
    const struct cel_type *text = cel_type_of(CEL_STRING);
    struct cel_type *meta = rule_type_new(s, CEL_OBJECT);
    struct cel_field *names = hk_arena_array(&s->arena, 2, sizeof(*names));

    rule_add_field(meta, names, HK_STR("name"), HK_STR("name"), text);
    rule_add_field(meta, names, HK_STR("generateName"), HK_STR("generateName"), text);
    meta->fields = names;
    rule_add_field(t, fields, HK_STR("apiVersion"), HK_STR("apiVersion"), text);
    rule_add_field(t, fields, HK_STR("kind"), HK_STR("kind"), text);
    rule_add_field(t, fields, HK_STR("metadata"), HK_STR("metadata"), meta);
}

static bool rule_is_meta(struct hk_str key)
{
    return hk_str_is(key, "apiVersion") || hk_str_is(key, "kind") || hk_str_is(key, "metadata");
}

static const struct cel_type *rule_object_type(struct schema *s, const struct schema_node *n,
                                               bool resource)
{
    struct cel_type *t = rule_type_new(s, n->additional ? CEL_MAP : CEL_OBJECT);
    struct cel_field *fields;

    if (n->additional) {
        t->elem = n->additional->cel;
        return t->elem ? t : NULL;
    }
    fields = hk_arena_array(&s->arena, (size_t)n->nprops + 3, sizeof(*fields));
    if (resource) {
        rule_add_meta(s, t, fields);
    }
    for (uint32_t i = 0; i < n->nprops; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf name = {0};
        const struct schema_prop *p = &n->props[i];
        if (p->node->cel && !(resource && rule_is_meta(p->key)) && cel_escape(p->key, &name)) {
            rule_add_field(t, fields, hk_arena_str(&s->arena, hk_buf_str(&name)), p->key,
                           p->node->cel);
        }
    }
    t->fields = fields;
    return t;
}

static const struct cel_type *rule_list_type(struct schema *s, const struct schema_node *n)
{
    struct cel_type *t = rule_type_new(s, CEL_LIST);

    if (!n->items || !n->items->cel) {
        return NULL;
    }
    t->elem = n->items->cel;
    t->keys = n->keys;
    t->list = n->list == SCHEMA_SET   ? CEL_LIST_SET
              : n->list == SCHEMA_MAP ? CEL_LIST_MAP
                                      : CEL_LIST_ATOMIC;
    return t;
}

/* The type of a node whose children have theirs; NULL: not visible to expressions. */
static const struct cel_type *rule_type_of(struct schema *s, const struct schema_node *n)
{
    switch (n->type) {
    case SCHEMA_INT_OR_STRING:
        return cel_type_of(CEL_DYN);
    case SCHEMA_OBJECT:
        return rule_object_type(s, n, n == s->root || n->embedded);
    case SCHEMA_ARRAY:
        return rule_list_type(s, n);
    case SCHEMA_STRING:
        return rule_string_type(s, n);
    case SCHEMA_INTEGER:
        return cel_type_of(CEL_INT);
    case SCHEMA_NUMBER:
        return cel_type_of(CEL_DOUBLE);
    case SCHEMA_BOOLEAN:
        return cel_type_of(CEL_BOOL);
    default:
        return NULL;
    }
}

/* ---- paths of fields ---- */

/* Cuts ".name" or "['name']" from the front; false if it is neither. */
static bool rule_cut_step(struct hk_str *rest, struct hk_str *name)
{
    const bool quoted = hk_str_starts(*rest, "['");
    const char *end = quoted ? memmem(rest->s, rest->n, "']", 2) : NULL;
    size_t from = 1, n = 1;

    if (quoted && end) {
        from = 2;
        n = (size_t)(end - rest->s);
    } else if (rest->s[0] == '.') {
        while (n < rest->n && rest->s[n] != '.' && rest->s[n] != '[') {
            n++;
        }
    }
    if (n <= from) {
        return false;
    }
    *name = (struct hk_str){rest->s + from, n - from};
    n += quoted ? 2 : 0;
    rest->s += n;
    rest->n -= n;
    return true;
}

/* Follows a fieldPath down the schema and writes it as paths of errors are written. */
static bool rule_resolve_field(const struct schema_node *n, struct hk_str text, struct hk_buf *out)
{
    struct hk_str rest = text, name;

    while (rest.n > 0) {
        if (!rule_cut_step(&rest, &name)) {
            return false;
        }
        const struct schema_node *prop = schema_prop_find(n, name);
        if (!prop && !n->additional) {
            return false;
        }
        hk_buf_addf(out, prop ? ".%.*s" : "[%.*s]", HK_FMT(name));
        n = prop ? prop : n->additional;
    }
    return true;
}

/* ---- compiling ---- */

static void rule_compile_one(struct schema *s, const struct schema_node *n, const struct json *doc,
                             struct schema_rule *r)
{
    const struct hk_str expression = json_str_field(doc, "messageExpression");
    struct cel_type old = {.kind = CEL_OPTIONAL, .elem = n->cel};
    const struct cel_type *old_type = n->cel;
    HK_AUTO(hk_buf_fini) struct hk_buf field = {0};
    struct hk_err why = {0};

    r->text = hk_str_trim(json_str_field(doc, "rule"));
    r->message = hk_str_trim(json_str_field(doc, "message"));
    r->reason = json_str_field(doc, "reason");
    r->optional_old = json_bool(json_get(doc, "optionalOldSelf"), false);
    rule_resolve_field(n, json_str_field(doc, "fieldPath"), &field);
    r->field = hk_arena_strndup(&s->arena, hk_buf_str(&field).s, field.len);
    if (r->optional_old) {
        old_type = &old;
    }
    const struct cel_var vars[] = {{HK_STR("self"), n->cel}, {HK_STR("oldSelf"), old_type}};
    struct cel_env env = {.vars = vars, .nvars = HK_LEN(vars), .result = CEL_BOOL};
    int rc = cel_compile(json_str_field(doc, "rule"), &env, &r->program, &why);
    if (rc < 0) {
        r->why = hk_arena_printf(
            &s->arena, "%s%s",
            rc == -HK_EUNSUP ? "cel expression " : "compilation failed: ", why.text);
        return;
    }
    r->uses_old = cel_program_uses(r->program, 1);
    env.result = CEL_STRING;
    rc = expression.n > 0 ? cel_compile(expression, &env, &r->to_message, &why) : 0;
    if (rc < 0) {
        r->message_why = hk_arena_printf(&s->arena, "messageExpression %s%s",
                                         rc == -HK_EUNSUP ? "" : "compilation failed: ", why.text);
    }
}

/* Compiles the nodes below first: their types are parts of this one's. */
static void rule_compile_node(struct schema *s, struct schema_node *n)
{
    for (uint32_t i = 0; i < n->nprops; i++) {
        rule_compile_node(s, n->props[i].node);
        n->has_rules |= n->props[i].node->has_rules;
    }
    if (n->additional) {
        rule_compile_node(s, n->additional);
        n->has_rules |= n->additional->has_rules;
    }
    if (n->items) {
        rule_compile_node(s, n->items);
        n->has_rules |= n->items->has_rules;
    }
    n->cel = rule_type_of(s, n);
    n->nrules = n->cel ? json_len(n->rule_docs) : 0;
    n->has_rules |= n->nrules > 0;
    n->rules = hk_arena_zalloc(&s->arena, n->nrules * sizeof(*n->rules));
    for (uint32_t i = 0; i < n->nrules; i++) {
        rule_compile_one(s, n, &n->rule_docs->items[i], &n->rules[i]);
    }
}

void schema_rules_compile(struct schema *s)
{
    rule_compile_node(s, s->root);
}

void schema_rules_free(struct schema_node *n)
{
    for (uint32_t i = 0; i < n->nprops; i++) {
        if (n->props[i].node) {
            schema_rules_free(n->props[i].node);
        }
    }
    if (n->additional) {
        schema_rules_free(n->additional);
    }
    if (n->items) {
        schema_rules_free(n->items);
    }
    for (uint32_t i = 0; i < n->nrules; i++) {
        cel_program_free(n->rules[i].program);
        cel_program_free(n->rules[i].to_message);
    }
}

/* ---- rules that Kubernetes refuses ---- */

/* A position in a schema, linked to its parent in the caller's stack frame. */
struct rule_place {
    const struct rule_place *up;
    const char *field; /* "" at the root */
    struct hk_str key; /* of a map, if not empty */
    uint32_t index;
    bool listed;
};

struct rule_review {
    struct hk_arena *a;
    const struct schema_sink *sink;
};

static void rule_write_place(const struct rule_place *p, struct hk_buf *out)
{
    if (p->up) {
        rule_write_place(p->up, out);
        hk_buf_addf(out, "%s%s", out->len > 0 ? "." : "", p->field);
    }
    if (p->key.n > 0) {
        hk_buf_addf(out, "[%.*s]", HK_FMT(p->key));
    } else if (p->listed) {
        hk_buf_addf(out, "[%u]", p->index);
    }
}

HK_PRINTF(5, 6)
static void rule_tell(const struct rule_review *c, const struct rule_place *at, const char *reason,
                      const char *field, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0}, text = {0};
    va_list ap;

    rule_write_place(at, &path);
    hk_buf_addf(&path, "%s%s", field[0] ? "." : "", field);
    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    c->sink->error(c->sink->ctx, reason, hk_arena_strndup(c->a, path.data, path.len),
                   hk_arena_strndup(c->a, text.data, text.len));
}

static bool rule_reason_is_known(struct hk_str reason)
{
    return reason.n == 0 || hk_str_is(reason, "FieldValueInvalid") ||
           hk_str_is(reason, "FieldValueForbidden") || hk_str_is(reason, "FieldValueRequired") ||
           hk_str_is(reason, "FieldValueDuplicate");
}

static void rule_review_texts(const struct rule_review *c, const struct rule_place *at,
                              const struct schema_node *n, const struct json *doc)
{
    HK_AUTO(hk_buf_fini) struct hk_buf scratch = {0};
    const struct hk_str message = json_str_field(doc, "message");
    const struct hk_str reason = json_str_field(doc, "reason");
    const struct hk_str field = json_str_field(doc, "fieldPath");

    if (message.n > 0 && hk_str_trim(message).n == 0) {
        rule_tell(c, at, "FieldValueInvalid", "message",
                  "Invalid value: \"%.*s\": message must be non-empty if specified",
                  HK_FMT(message));
    } else if (memchr(hk_str_trim(message).s, '\n', hk_str_trim(message).n)) {
        rule_tell(c, at, "FieldValueInvalid", "message",
                  "Invalid value: \"%.*s\": message must not contain line breaks", HK_FMT(message));
    }
    if (!rule_reason_is_known(reason)) {
        rule_tell(c, at, "FieldValueNotSupported", "reason",
                  "Unsupported value: \"%.*s\": supported values: \"FieldValueRequired\", "
                  "\"FieldValueInvalid\", \"FieldValueForbidden\", \"FieldValueDuplicate\"",
                  HK_FMT(reason));
    }
    if (!rule_resolve_field(n, field, &scratch)) {
        rule_tell(c, at, "FieldValueInvalid", "fieldPath",
                  "Invalid value: \"%.*s\": fieldPath must be a valid path", HK_FMT(field));
    }
}

static void rule_review_expression(const struct rule_review *c, const struct rule_place *at,
                                   const struct schema_rule *r, const struct json *doc)
{
    const struct hk_str text = json_str_field(doc, "messageExpression");

    if (text.n > 0 && !r->to_message) {
        rule_tell(c, at, "FieldValueInvalid", "messageExpression", "Invalid value: \"%.*s\": %s",
                  HK_FMT(text), r->message_why);
    }
}

static void rule_review_one(const struct rule_review *c, const struct rule_place *at,
                            const struct schema_node *n, uint32_t i, bool correlated)
{
    const struct rule_place here = {at, "x-kubernetes-validations", .index = i, .listed = true};
    const struct schema_rule *r = &n->rules[i];

    rule_review_texts(c, &here, n, &n->rule_docs->items[i]);
    if (r->text.n == 0) {
        rule_tell(c, &here, "FieldValueRequired", "rule", "Required value: rule is not specified");
        return;
    }
    if (!r->program) {
        rule_tell(c, &here, "FieldValueInvalid", "rule", "Invalid value: \"%.*s\": %s",
                  HK_FMT(r->text), r->why);
        return;
    }
    if (r->uses_old && !correlated) {
        rule_tell(c, &here, "FieldValueInvalid", "rule",
                  "Invalid value: \"%.*s\": oldSelf cannot be used on the uncorrelatable portion "
                  "of the schema",
                  HK_FMT(r->text));
    }
    if (r->optional_old && !r->uses_old) {
        rule_tell(c, &here, "FieldValueInvalid", "optionalOldSelf",
                  "Invalid value: true: must not be set to true if oldSelf is not used in rule");
    }
    rule_review_expression(c, &here, r, &n->rule_docs->items[i]);
}

/* Schemas in allOf and the like constrain a value, but may have no rules. */
static void rule_review_logic(const struct rule_review *c, const struct rule_place *at,
                              const char *field, const struct schema_nodes *nodes)
{
    for (uint32_t i = 0; i < nodes->len; i++) {
        const struct rule_place here = {at, field, .index = i, .listed = strcmp(field, "not") != 0};
        if (nodes->at[i] && json_len(nodes->at[i]->rule_docs) > 0) {
            rule_tell(c, &here, "FieldValueForbidden", "x-kubernetes-validations",
                      "Forbidden: must be empty to be structural");
        }
    }
}

static void rule_review_node(const struct rule_review *c, const struct rule_place *at,
                             const struct schema_node *n, bool correlated)
{
    for (uint32_t i = 0; i < n->nrules; i++) {
        rule_review_one(c, at, n, i, correlated);
    }
    for (uint32_t i = 0; i < n->nprops; i++) {
        const struct rule_place here = {at, "properties", .key = n->props[i].key};
        rule_review_node(c, &here, n->props[i].node, correlated);
    }
    if (n->additional) {
        const struct rule_place here = {.up = at, .field = "additionalProperties"};
        rule_review_node(c, &here, n->additional, correlated);
    }
    if (n->items) {
        const struct rule_place here = {.up = at, .field = "items"};
        rule_review_node(c, &here, n->items, correlated && n->list == SCHEMA_MAP);
    }
    rule_review_logic(c, at, "allOf", &n->all_of);
    rule_review_logic(c, at, "anyOf", &n->any_of);
    rule_review_logic(c, at, "oneOf", &n->one_of);
    rule_review_logic(c, at, "not", &n->not_of);
}

void schema_check_rules(const struct schema *s, struct hk_arena *a, const struct schema_sink *sink)
{
    const struct rule_review c = {a, sink};
    const struct rule_place root = {.field = ""};

    rule_review_node(&c, &root, s->root, true);
}
