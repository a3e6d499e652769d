// SPDX-License-Identifier: Apache-2.0
// Label and node selectors: decoding and matching. Their text form and field selectors are in
// selector_text.c.
#include "api/selector_priv.h"

/* All operators; the checks below refuse those that a kind of selector does not allow. */
static const char *const op_names[] = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", NULL};

static const struct field requirement_fields[] = {
    FIELD("key", field_str, struct api_requirement, key, .required = true),
    FIELD("operator", field_enum, struct api_requirement, op, .sub = op_names, .required = true),
    FIELD("values", field_strs, struct api_requirement, values),
    {0},
};

static void values_sort(struct api_strs *values)
{
    if (values->len > 1) {
        qsort(values->at, values->len, sizeof(*values->at), field_str_cmp);
    }
}

static bool label_part_valid(struct hk_str s)
{
    if (s.n == 0 || s.n > 63) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.s[i];
        const bool alnum =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool inner = i > 0 && i + 1 < s.n && (c == '-' || c == '_' || c == '.');
        if (!alnum && !inner) {
            return false;
        }
    }
    return true;
}

/* A DNS subdomain: dot-separated runs of [a-z0-9-] that neither start nor end with '-'. */
static bool label_prefix_valid(struct hk_str s)
{
    struct hk_str part;

    if (s.n == 0 || s.n > 253) {
        return false;
    }
    while (hk_str_cut(&s, '.', &part)) {
        if (part.n == 0 || part.s[0] == '-' || part.s[part.n - 1] == '-') {
            return false;
        }
        for (size_t i = 0; i < part.n; i++) {
            const char c = part.s[i];
            if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-')) {
                return false;
            }
        }
    }
    return true;
}

bool api_label_key_valid(struct hk_str key)
{
    const char *slash = key.n > 0 ? memchr(key.s, '/', key.n) : NULL;

    if (!slash) {
        return label_part_valid(key);
    }
    const size_t n = (size_t)(slash - key.s);
    return label_prefix_valid((struct hk_str){key.s, n}) &&
           label_part_valid((struct hk_str){slash + 1, key.n - n - 1});
}

bool api_label_value_valid(struct hk_str value)
{
    return value.n == 0 || label_part_valid(value);
}

/* Whether the operator allows this number of values. */
static bool values_fit(const struct api_requirement *q)
{
    static const struct {
        uint32_t min, max;
    } counts[] = {
        [API_OP_IN] = {1, UINT32_MAX}, [API_OP_NOT_IN] = {1, UINT32_MAX},
        [API_OP_EXISTS] = {0, 0},      [API_OP_NOT_EXISTS] = {0, 0},
        [API_OP_GT] = {1, 1},          [API_OP_LT] = {1, 1},
    };
    return q->values.len >= counts[q->op].min && q->values.len <= counts[q->op].max;
}

static void label_requirement_check(struct field_reader *r, const struct field_path *p,
                                    const struct json *v, void *base)
{
    struct api_requirement *q = base;

    if (q->op == API_OP_GT || q->op == API_OP_LT) {
        field_fail(r, p, v, "operator '%s' is for node selectors only", op_names[q->op]);
    } else if (!api_label_key_valid(q->key)) {
        field_fail(r, p, v, "bad label key '%.*s'", HK_FMT(q->key));
    } else if (!values_fit(q)) {
        field_fail(r, p, v, "operator '%s' with %u values", op_names[q->op], q->values.len);
    }
    values_sort(&q->values);
}

static const struct field_record label_requirement_record = {
    sizeof(struct api_requirement), NULL, requirement_fields, label_requirement_check};

struct label_selector {
    struct api_map labels;
    API_LIST(struct api_requirement) exprs;
};

static const struct field label_selector_fields[] = {
    FIELD("matchLabels", field_map, struct label_selector, labels),
    FIELD("matchExpressions", field_list, struct label_selector, exprs,
          .sub = &label_requirement_record),
    {0},
};

static const struct field_record label_selector_record = {sizeof(struct label_selector),
                                                          .fields = label_selector_fields};

static struct api_requirement equals(struct hk_arena *a, const struct api_kv *kv)
{
    struct hk_str *value = hk_arena_alloc(a, sizeof(*value));

    *value = kv->value;
    return (struct api_requirement){.key = kv->key, .op = API_OP_IN, .values = {value, 1}};
}

static struct api_selector selector_join(struct hk_arena *a, const struct label_selector *s)
{
    const uint32_t len = s->labels.len + s->exprs.len;
    struct api_requirement *at = hk_arena_array(a, len, sizeof(*at));

    for (uint32_t i = 0; i < s->labels.len; i++) {
        at[i] = equals(a, &s->labels.at[i]);
    }
    if (s->exprs.len > 0) {
        memcpy(at + s->labels.len, s->exprs.at, s->exprs.len * sizeof(*at));
    }
    return (struct api_selector){at, len, true};
}

void selector_field(struct field_reader *r, const struct field_path *p, const struct json *v,
                    const struct field *f, void *base)
{
    struct label_selector s = {0};

    field_record(r, p, v, &label_selector_record, &s);
    if (r->rc == 0) {
        *(struct api_selector *)((char *)base + f->off) = selector_join(r->a, &s);
    }
}

void selector_field_map(struct field_reader *r, const struct field_path *p, const struct json *v,
                        const struct field *f, void *base)
{
    static const struct field map = {.read = field_map,
                                     .off = offsetof(struct label_selector, labels)};
    struct label_selector s = {0};

    map.read(r, p, v, &map, &s);
    if (r->rc == 0 && s.labels.len > 0) {
        *(struct api_selector *)((char *)base + f->off) = selector_join(r->a, &s);
    }
}

int api_selector_decode(const struct json *v, struct hk_arena *a, struct api_selector *ret,
                        struct hk_err *err)
{
    static const struct field whole = {0};
    struct field_reader r = {a, err, 0};

    if (!v || v->type == JSON_NULL) {
        *ret = (struct api_selector){0};
        return 0;
    }
    selector_field(&r, NULL, v, &whole, ret);
    return r.rc;
}

static const struct field_record node_requirement_record = {sizeof(struct api_requirement),
                                                            .fields = requirement_fields};

static const struct field node_term_fields[] = {
    FIELD("matchExpressions", field_list, struct api_node_term, exprs,
          .sub = &node_requirement_record),
    FIELD("matchFields", field_list, struct api_node_term, fields, .sub = &node_requirement_record),
    {0},
};

static bool node_expr_ok(struct api_requirement *q)
{
    if (!api_label_key_valid(q->key) || !values_fit(q)) {
        return false;
    }
    if (q->op == API_OP_GT || q->op == API_OP_LT) {
        return hk_str_int(q->values.at[0], &q->operand);
    }
    for (uint32_t i = 0; i < q->values.len; i++) {
        if (!api_label_value_valid(q->values.at[i])) {
            return false;
        }
    }
    values_sort(&q->values);
    return true;
}

static bool node_field_ok(const struct api_requirement *q)
{
    return (q->op == API_OP_IN || q->op == API_OP_NOT_IN) && q->values.len == 1;
}

/* Upstream builds the selector of each term separately and skips a term that it cannot build, so
 * one bad term must not fail the pod. */
static void node_term_check(struct field_reader *r, const struct field_path *p,
                            const struct json *v, void *base)
{
    struct api_node_term *t = base;

    for (uint32_t i = 0; i < t->exprs.len; i++) {
        t->erroneous |= !node_expr_ok(&t->exprs.at[i]);
    }
    for (uint32_t i = 0; i < t->fields.len; i++) {
        t->erroneous |= !node_field_ok(&t->fields.at[i]);
    }
}

const struct field_record selector_node_term_record = {sizeof(struct api_node_term), NULL,
                                                       node_term_fields, node_term_check};

static const struct field node_selector_fields[] = {
    {.key = "nodeSelectorTerms", .read = field_list, .sub = &selector_node_term_record},
    {0},
};

static const struct field_record node_selector_record = {sizeof(struct api_node_selector),
                                                         .fields = node_selector_fields};

void selector_field_node(struct field_reader *r, const struct field_path *p, const struct json *v,
                         const struct field *f, void *base)
{
    struct api_node_selector *s = (void *)((char *)base + f->off);

    field_record(r, p, v, &node_selector_record, s);
    s->present = true;
}

/* matchLabelExpressions allow only "In". */
static const struct field topology_requirement_fields[] = {
    FIELD("key", field_str, struct api_requirement, key, .required = true),
    FIELD("values", field_strs, struct api_requirement, values, .required = true),
    {0},
};

static void topology_requirement_check(struct field_reader *r, const struct field_path *p,
                                       const struct json *v, void *base)
{
    struct api_requirement *q = base;
    values_sort(&q->values);
}

static const struct field_record topology_requirement_record = {
    sizeof(struct api_requirement), NULL, topology_requirement_fields, topology_requirement_check};

static const struct field topology_fields[] = {
    {.key = "matchLabelExpressions", .read = field_list, .sub = &topology_requirement_record},
    {0},
};

/* An empty topology term matches nothing, so it is left out. */
static void topology_check(struct field_reader *r, const struct field_path *p, const struct json *v,
                           void *base)
{
    struct api_selector *s = base;
    s->present = s->len > 0;
}

const struct field_record selector_topology_record = {sizeof(struct api_selector), NULL,
                                                      topology_fields, topology_check};

static bool value_in(const struct api_requirement *q, struct hk_str value)
{
    return q->values.len > 0 &&
           bsearch(&value, q->values.at, q->values.len, sizeof(value), field_str_cmp) != NULL;
}

bool api_requirement_holds(const struct api_requirement *q, const struct hk_str *value)
{
    int64_t n;

    switch (q->op) {
    case API_OP_IN:
        return value && value_in(q, *value);
    case API_OP_NOT_IN:
        return !value || !value_in(q, *value);
    case API_OP_EXISTS:
        return value != NULL;
    case API_OP_NOT_EXISTS:
        return value == NULL;
    case API_OP_GT:
        return value && hk_str_int(*value, &n) && n > q->operand;
    case API_OP_LT:
        return value && hk_str_int(*value, &n) && n < q->operand;
    }
    return false;
}

bool api_requirement_match(const struct api_requirement *r, const struct api_map *labels)
{
    return api_requirement_holds(r, api_map_get(labels, r->key));
}

bool api_selector_match(const struct api_selector *s, const struct api_map *labels)
{
    for (uint32_t i = 0; i < s->len; i++) {
        if (!api_requirement_match(&s->at[i], labels)) {
            return false;
        }
    }
    return s->present;
}

bool api_node_term_match(const struct api_node_term *t, const struct api_map *labels,
                         struct hk_str node_name)
{
    if (t->erroneous || t->exprs.len + t->fields.len == 0) {
        return false;
    }
    for (uint32_t i = 0; i < t->exprs.len; i++) {
        if (!api_requirement_match(&t->exprs.at[i], labels)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < t->fields.len; i++) {
        const struct api_requirement *q = &t->fields.at[i];
        /* An unknown field reads as "". */
        const struct hk_str value = hk_str_is(q->key, "metadata.name") ? node_name : HK_STR("");
        if (!api_requirement_holds(q, &value)) {
            return false;
        }
    }
    return true;
}

bool api_node_selector_match(const struct api_node_selector *s, const struct api_map *labels,
                             struct hk_str node_name)
{
    for (uint32_t i = 0; i < s->len; i++) {
        if (api_node_term_match(&s->at[i], labels, node_name)) {
            return true;
        }
    }
    return !s->present;
}
