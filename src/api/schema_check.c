// SPDX-License-Identifier: Apache-2.0
// Checks values against a schema. Messages are those of kube-openapi, because people search for
// them. The rules of x-kubernetes-validations come last: schema_rule_check.c.
#include "api/schema_rule.h"
#include "base/map.h"
#include "codec/re2.h"
#include "codec/timefmt.h"

#include <arpa/inet.h>
#include <math.h>

struct checker {
    struct hk_arena *a;
    const struct schema_sink *sink; /* NULL: only test */
    uint32_t found;
    bool blocked; /* a finding means that rules cannot be evaluated */
};

static void schema_check_check_value(struct checker *c, const struct schema_node *n,
                                     const struct json *v, const struct schema_path *at);

/* ---- reporting ---- */

static bool schema_check_blocks_rules(const char *reason)
{
    return !strcmp(reason, "FieldValueRequired") || !strcmp(reason, "FieldValueNotSupported") ||
           !strcmp(reason, "FieldValueTooLong") || !strcmp(reason, "FieldValueTooMany") ||
           !strcmp(reason, "FieldValueTypeInvalid");
}

static void schema_check_report_error(struct checker *c, const char *reason,
                                      const struct schema_path *at, const char *message)
{
    c->blocked |= schema_check_blocks_rules(reason);
    if (c->sink && c->sink->error && c->found < SCHEMA_MAX_FINDINGS) {
        c->sink->error(c->sink->ctx, reason, schema_path_text(at, c->a), message);
    }
    c->found++;
}

static const char *value_text(struct checker *c, const struct json *v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    json_write(v, &text);
    return hk_arena_strndup(c->a, hk_buf_str(&text).s, text.len);
}

/* "Invalid value: 0: spec.weight in body should be ..." */
HK_PRINTF(5, 6)
static void report_invalid(struct checker *c, const char *reason, const struct schema_path *at,
                           const struct json *v, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    va_list ap;

    if (!c->sink) {
        c->blocked |= schema_check_blocks_rules(reason);
        c->found++;
        return;
    }
    hk_buf_addf(&text, "Invalid value: %s: %s in body ", value_text(c, v),
                schema_path_text(at, c->a));
    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    schema_check_report_error(c, reason, at, hk_arena_strndup(c->a, text.data, text.len));
}

static void report_type(struct checker *c, const struct schema_path *at, const struct json *v,
                        const char *want)
{
    const struct json name = json_make_str(hk_str(json_type_name(v->type)));

    report_invalid(c, "FieldValueTypeInvalid", at, &name, "must be of type %s: \"%s\"", want,
                   json_type_name(v->type));
}

static void report_format(struct checker *c, const struct schema_path *at, const struct json *v,
                          struct hk_str format)
{
    report_invalid(c, "FieldValueTypeInvalid", at, v, "must be of type %.*s: %s", HK_FMT(format),
                   value_text(c, v));
}

/* ---- numbers ---- */

static bool is_whole(const struct json *v)
{
    return v->type == JSON_INT || v->type == JSON_UINT ||
           (v->type == JSON_DOUBLE && v->d == floor(v->d));
}

static double as_double(const struct json *v)
{
    return v->type == JSON_INT ? (double)v->i : v->type == JSON_UINT ? (double)v->u : v->d;
}

static int schema_check_compare_numbers(const struct json *a, const struct json *b)
{
    if (a->type == JSON_INT && b->type == JSON_INT) {
        return a->i < b->i ? -1 : a->i > b->i;
    }
    const double x = as_double(a), y = as_double(b);
    return x < y ? -1 : x > y;
}

static void check_number(struct checker *c, const struct schema_node *n, const struct json *v,
                         const struct schema_path *at)
{
    static const struct json int32_min = {.type = JSON_INT, .i = INT32_MIN},
                             int32_max = {.type = JSON_INT, .i = INT32_MAX};

    if (hk_str_is(n->format, "int32") && (schema_check_compare_numbers(v, &int32_min) < 0 ||
                                          schema_check_compare_numbers(v, &int32_max) > 0)) {
        report_format(c, at, v, n->format);
    }
    if (n->min && (schema_check_compare_numbers(v, n->min) < 0 ||
                   (n->exclusive_min && schema_check_compare_numbers(v, n->min) == 0))) {
        report_invalid(c, "FieldValueInvalid", at, v, "should be greater than %s%s",
                       n->exclusive_min ? "" : "or equal to ", value_text(c, n->min));
    }
    if (n->max && (schema_check_compare_numbers(v, n->max) > 0 ||
                   (n->exclusive_max && schema_check_compare_numbers(v, n->max) == 0))) {
        report_invalid(c, "FieldValueInvalid", at, v, "should be less than %s%s",
                       n->exclusive_max ? "" : "or equal to ", value_text(c, n->max));
    }
    if (n->multiple_of && as_double(n->multiple_of) != 0 &&
        fmod(as_double(v), as_double(n->multiple_of)) != 0) {
        report_invalid(c, "FieldValueInvalid", at, v, "should be a multiple of %s",
                       value_text(c, n->multiple_of));
    }
}

/* ---- strings ---- */

static bool is_base64(struct hk_str s)
{
    size_t pad = 0;

    for (size_t i = 0; i < s.n; i++) {
        const char ch = s.s[i];
        const bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                           (ch >= '0' && ch <= '9') || ch == '+' || ch == '/';
        if ((ch != '=' && !plain) || (pad > 0 && ch != '=')) {
            return false;
        }
        pad += ch == '=';
    }
    return s.n % 4 == 0 && pad <= 2;
}

static bool is_address(struct hk_str s, int family)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];

    if (s.n >= sizeof(text)) {
        return false;
    }
    memcpy(text, s.s, s.n);
    text[s.n] = '\0';
    return inet_pton(family, text, address) == 1;
}

/* Unknown formats are no constraint. */
static bool has_format(struct hk_str s, struct hk_str format)
{
    int64_t ns;

    if (hk_str_is(format, "date-time")) {
        return time_parse(s, &ns, NULL) == 0;
    }
    if (hk_str_is(format, "duration")) {
        return duration_parse(s, &ns, NULL) == 0;
    }
    if (hk_str_is(format, "byte")) {
        return is_base64(s);
    }
    if (hk_str_is(format, "ipv4")) {
        return is_address(s, AF_INET);
    }
    if (hk_str_is(format, "ipv6")) {
        return is_address(s, AF_INET6);
    }
    return true;
}

static int64_t code_points(struct hk_str s)
{
    int64_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        n += ((unsigned char)s.s[i] & 0xc0) != 0x80;
    }
    return n;
}

static void check_string(struct checker *c, const struct schema_node *n, const struct json *v,
                         const struct schema_path *at)
{
    const struct hk_str s = {v->s, v->len};
    const int64_t chars = code_points(s);

    if (n->min_length && chars < n->min_length->i) {
        report_invalid(c, "FieldValueInvalid", at, v, "should be at least %lld chars long",
                       (long long)n->min_length->i);
    }
    if (n->max_length && chars > n->max_length->i) {
        report_invalid(c, "FieldValueInvalid", at, v, "should be at most %lld chars long",
                       (long long)n->max_length->i);
    }
    if (n->re && !re2_matches(n->re, s)) {
        report_invalid(c, "FieldValueInvalid", at, v, "should match '%.*s'", HK_FMT(n->pattern));
    }
    if (!has_format(s, n->format)) {
        report_format(c, at, v, n->format);
    }
}

/* ---- lists ---- */

/* The members that identify an element of the list. */
static struct json element_key(struct checker *c, const struct schema_node *n,
                               const struct json *item)
{
    if (n->list == SCHEMA_SET) {
        return *item;
    }
    struct json key = json_make_object();
    for (uint32_t i = 0; i < n->keys->len; i++) {
        const struct hk_str name = json_str(&n->keys->items[i], HK_STR(""));
        const struct json *v = json_get_str(item, name);
        if (v) {
            json_put(&key, c->a, name, *v);
        }
    }
    return key;
}

/* Compares elements by their text, so that long lists stay cheap. */
static void check_unique(struct checker *c, const struct schema_node *n, const struct json *v,
                         const struct schema_path *at)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    HK_AUTO(hk_intern_fini) struct hk_intern seen = {0};

    for (uint32_t i = 0; i < v->len; i++) {
        const struct json key = element_key(c, n, &v->items[i]);
        const struct schema_path here = {at, {0}, i};
        hk_buf_clear(&text);
        json_write(&key, &text);
        if (hk_intern_find(&seen, hk_buf_str(&text)) != HK_NONE) {
            schema_check_report_error(c, "FieldValueDuplicate", &here,
                                      hk_arena_printf(c->a, "Duplicate value: %s", text.data));
        }
        hk_intern(&seen, hk_buf_str(&text));
    }
}

static void report_too_many(struct checker *c, const struct schema_path *at, uint32_t have,
                            int64_t most)
{
    schema_check_report_error(
        c, "FieldValueTooMany", at,
        hk_arena_printf(c->a, "Too many: %u: must have at most %lld items", have, (long long)most));
}

static void check_array(struct checker *c, const struct schema_node *n, const struct json *v,
                        const struct schema_path *at)
{
    const struct json count = json_make_int(v->len);

    if (n->min_items && v->len < n->min_items->i) {
        report_invalid(c, "FieldValueInvalid", at, &count, "should have at least %lld items",
                       (long long)n->min_items->i);
    }
    if (n->max_items && v->len > n->max_items->i) {
        report_too_many(c, at, v->len, n->max_items->i);
    }
    if (n->list != SCHEMA_ATOMIC) {
        check_unique(c, n, v, at);
    }
    for (uint32_t i = 0; n->items && i < v->len; i++) {
        const struct schema_path here = {at, {0}, i};
        schema_check_check_value(c, n->items, &v->items[i], &here);
    }
}

/* ---- objects ---- */

static void check_required(struct checker *c, const struct json *v, struct hk_str key,
                           const struct schema_path *at)
{
    const struct schema_path here = {at, key, 0};

    if (!json_get_str(v, key)) {
        schema_check_report_error(c, "FieldValueRequired", &here, "Required value");
    }
}

static void check_object(struct checker *c, const struct schema_node *n, const struct json *v,
                         const struct schema_path *at)
{
    const struct json count = json_make_int(v->len);

    if (n->min_props && v->len < n->min_props->i) {
        report_invalid(c, "FieldValueInvalid", at, &count, "should have at least %lld properties",
                       (long long)n->min_props->i);
    }
    if (n->max_props && v->len > n->max_props->i) {
        report_too_many(c, at, v->len, n->max_props->i);
    }
    for (uint32_t i = 0; n->required && i < n->required->len; i++) {
        check_required(c, v, json_str(&n->required->items[i], HK_STR("")), at);
    }
    if (n->embedded) {
        check_required(c, v, HK_STR("apiVersion"), at);
        check_required(c, v, HK_STR("kind"), at);
    }
    for (uint32_t i = 0; i < v->len; i++) {
        const struct schema_node *prop = schema_prop_find(n, v->members[i].key);
        const struct schema_path here = {at, v->members[i].key, 0};
        if (prop || n->additional) {
            schema_check_check_value(c, prop ? prop : n->additional, &v->members[i].value, &here);
        }
    }
}

/* ---- all checks ---- */

static const char *const type_names[] = {
    [SCHEMA_OBJECT] = "object",
    [SCHEMA_ARRAY] = "array",
    [SCHEMA_STRING] = "string",
    [SCHEMA_INTEGER] = "integer",
    [SCHEMA_NUMBER] = "number",
    [SCHEMA_BOOLEAN] = "boolean",
    [SCHEMA_INT_OR_STRING] = "integer,string",
};

static bool has_type(const struct json *v, enum schema_type type)
{
    switch (type) {
    case SCHEMA_OBJECT:
        return v->type == JSON_OBJECT;
    case SCHEMA_ARRAY:
        return v->type == JSON_ARRAY;
    case SCHEMA_STRING:
        return v->type == JSON_STRING;
    case SCHEMA_INTEGER:
        return is_whole(v);
    case SCHEMA_NUMBER:
        return json_is_numeric(v);
    case SCHEMA_BOOLEAN:
        return v->type == JSON_BOOL;
    case SCHEMA_INT_OR_STRING:
        return v->type == JSON_STRING || is_whole(v);
    default:
        return true;
    }
}

static void check_enum(struct checker *c, const struct schema_node *n, const struct json *v,
                       const struct schema_path *at)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (uint32_t i = 0; i < n->enumeration->len; i++) {
        if (json_equal(v, &n->enumeration->items[i])) {
            return;
        }
    }
    hk_buf_addf(&text, "Unsupported value: %s: supported values: ", value_text(c, v));
    for (uint32_t i = 0; i < n->enumeration->len; i++) {
        const struct json *one = &n->enumeration->items[i];
        const bool string = one->type == JSON_STRING;
        hk_buf_addf(&text, "%s%s%s%s", i > 0 ? ", " : "", string ? "" : "\"", value_text(c, one),
                    string ? "" : "\"");
    }
    schema_check_report_error(c, "FieldValueNotSupported", at,
                              hk_arena_strndup(c->a, text.data, text.len));
}

/* The number of schemas that the value matches. */
static uint32_t count_valid(struct checker *c, const struct schema_nodes *nodes,
                            const struct json *v, const struct schema_path *at)
{
    uint32_t valid = 0;

    for (uint32_t i = 0; i < nodes->len; i++) {
        struct checker quiet = {.a = c->a};
        schema_check_check_value(&quiet, nodes->at[i], v, at);
        valid += quiet.found == 0;
    }
    return valid;
}

static void check_logic(struct checker *c, const struct schema_node *n, const struct json *v,
                        const struct schema_path *at)
{
    for (uint32_t i = 0; i < n->all_of.len; i++) {
        schema_check_check_value(c, n->all_of.at[i], v, at);
    }
    if (n->any_of.len > 0 && count_valid(c, &n->any_of, v, at) == 0) {
        report_invalid(c, "FieldValueInvalid", at, v, "must validate at least one schema (anyOf)");
    }
    if (n->one_of.len > 0 && count_valid(c, &n->one_of, v, at) != 1) {
        report_invalid(c, "FieldValueInvalid", at, v,
                       "must validate one and only one schema (oneOf)");
    }
    if (count_valid(c, &n->not_of, v, at) > 0) {
        report_invalid(c, "FieldValueInvalid", at, v, "must not validate the schema (not)");
    }
}

static void schema_check_check_value(struct checker *c, const struct schema_node *n,
                                     const struct json *v, const struct schema_path *at)
{
    if (c->found >= SCHEMA_MAX_FINDINGS || (v->type == JSON_NULL && n->nullable)) {
        return;
    }
    if (!has_type(v, n->type)) {
        report_type(c, at, v, type_names[n->type]);
        return;
    }
    if (n->enumeration) {
        check_enum(c, n, v, at);
    }
    if (json_is_numeric(v)) {
        check_number(c, n, v, at);
    } else if (v->type == JSON_STRING) {
        check_string(c, n, v, at);
    } else if (v->type == JSON_ARRAY) {
        check_array(c, n, v, at);
    } else if (v->type == JSON_OBJECT) {
        check_object(c, n, v, at);
    }
    check_logic(c, n, v, at);
}

/* ---- rules ---- */

/* field is relative to the place: a rule may point at another one. */
static void schema_check_on_rule(void *ctx, const char *reason, const struct schema_path *at,
                                 const char *field, const char *message)
{
    struct checker *c = ctx;
    const char *path = hk_arena_printf(c->a, "%s%s", schema_path_text(at, c->a), field);

    if (c->sink && c->sink->error && c->found < SCHEMA_MAX_FINDINGS) {
        c->sink->error(c->sink->ctx, reason, path[0] == '.' ? path + 1 : path, message);
    }
    c->found++;
}

/* Rules rely on the types, so they do not run over values that have others. */
static void schema_check_rules_hold(struct checker *c, const struct schema *s,
                                    const struct json *obj, const struct json *old)
{
    if (!s->root->has_rules) {
        return;
    }
    if (!c->blocked) {
        schema_rules_hold(s, obj, old, c->a, schema_check_on_rule, c);
    } else if (c->sink && c->sink->error) {
        c->sink->error(c->sink->ctx, "FieldValueInvalid", "<nil>",
                       "Invalid value: \"null\": some validation rules were not checked because "
                       "the object was invalid; correct the existing errors to complete "
                       "validation");
    }
}

bool schema_validate(const struct schema *s, const struct json *obj, const struct json *old,
                     struct hk_arena *a, const struct schema_sink *sink)
{
    struct checker c = {.a = a, .sink = sink};
    const struct schema_path root = {0};

    schema_check_check_value(&c, s->root, obj, &root);
    schema_check_rules_hold(&c, s, obj, old);
    return c.found == 0;
}

/* ---- defaults of a schema ---- */

/* Passes findings on, with the place of the default in front. */
struct preset_report {
    const struct schema_sink *to;
    struct hk_arena *a;
    const char *at;
};

static void schema_check_on_preset(void *ctx, const char *reason, const char *field,
                                   const char *message)
{
    const struct preset_report *r = ctx;

    r->to->error(r->to->ctx, reason,
                 hk_arena_printf(r->a, "%sdefault%s%s", r->at, field[0] ? "." : "", field),
                 message);
}

static void check_preset(const struct schema_node *n, const char *at, struct hk_arena *a,
                         const struct schema_sink *sink)
{
    struct preset_report report = {sink, a, at};
    const struct schema_sink own = {.ctx = &report, .error = schema_check_on_preset};
    const struct schema part = {.root = (struct schema_node *)n};
    const struct schema_path root = {0};
    struct checker c = {.a = a, .sink = &own};
    struct json value = json_clone(n->preset, a);

    schema_default(&part, &value, a);
    schema_check_check_value(&c, n, &value, &root);
}

/* at is the path of the node, with a dot at its end. */
static void check_presets(const struct schema_node *n, const char *at, struct hk_arena *a,
                          const struct schema_sink *sink)
{
    if (n->preset) {
        check_preset(n, at, a, sink);
    }
    for (uint32_t i = 0; i < n->nprops; i++) {
        check_presets(n->props[i].node,
                      hk_arena_printf(a, "%sproperties[%.*s].", at, HK_FMT(n->props[i].key)), a,
                      sink);
    }
    if (n->additional) {
        check_presets(n->additional, hk_arena_printf(a, "%sadditionalProperties.", at), a, sink);
    }
    if (n->items) {
        check_presets(n->items, hk_arena_printf(a, "%sitems.", at), a, sink);
    }
}

void schema_check_defaults(const struct schema *s, struct hk_arena *a,
                           const struct schema_sink *sink)
{
    check_presets(s->root, "", a, sink);
}
