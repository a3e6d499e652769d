// SPDX-License-Identifier: Apache-2.0
// Evaluates the rules of a schema over an object. As Kubernetes does: rules of a node before those
// below it; a rule that uses oldSelf runs on updates only, others are skipped where the value did
// not change; all rules share one budget.
#include "api/schema_rule.h"

enum { RULE_MESSAGE_MAX = 5 << 10 };

struct ruler {
    struct hk_arena *a;      /* of the caller: messages */
    struct hk_arena scratch; /* of one rule */
    uint64_t budget;
    bool spent; /* no further rules run */
    schema_rule_report *report;
    void *ctx;
};

static const char *const rule_type_names[] = {
    [SCHEMA_ANY] = "",
    [SCHEMA_OBJECT] = "object",
    [SCHEMA_ARRAY] = "array",
    [SCHEMA_STRING] = "string",
    [SCHEMA_INTEGER] = "integer",
    [SCHEMA_NUMBER] = "number",
    [SCHEMA_BOOLEAN] = "boolean",
    [SCHEMA_INT_OR_STRING] = "",
};

/* ---- reports ---- */

HK_PRINTF(4, 5)
static void rule_report_invalid(struct ruler *r, const struct schema_node *n,
                                const struct schema_path *at, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    va_list ap;

    hk_buf_addf(&text, "Invalid value: \"%s\": ", rule_type_names[n->type]);
    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    r->report(r->ctx, "FieldValueInvalid", at, "", hk_arena_strndup(r->a, text.data, text.len));
}

/* How messages about a rule name it. */
static struct hk_str rule_label(const struct schema_rule *rule)
{
    return rule->message.n > 0 ? rule->message : rule->text;
}

static void rule_report_error(struct ruler *r, const struct schema_node *n,
                              const struct schema_rule *rule, const struct schema_path *at, int rc,
                              const char *why)
{
    const struct hk_str label = rule_label(rule);

    if (rc == -HK_ELIMIT && r->budget == 0) {
        rule_report_invalid(r, n, at,
                            "validation failed due to running out of cost budget, no further "
                            "validation rules will be run");
        r->spent = true;
    } else if (rc == -HK_ELIMIT) {
        rule_report_invalid(r, n, at,
                            "'%s': no further validation rules will be run due to call cost "
                            "exceeds limit for rule: %.*s",
                            why, HK_FMT(label));
        r->spent = true;
    } else if (hk_str_starts(hk_str(why), "no such overload")) {
        rule_report_invalid(r, n, at,
                            "'%s': call arguments did not match a supported operator, function or "
                            "macro signature for rule: %.*s",
                            why, HK_FMT(label));
    } else {
        rule_report_invalid(r, n, at, "%s evaluating rule: %.*s", why, HK_FMT(label));
    }
}

/* The text of messageExpression, or of message, or of the rule. */
static const char *rule_message(struct ruler *r, const struct schema_rule *rule,
                                const struct cel_value *vars)
{
    struct cel_value v;

    if (rule->to_message &&
        cel_eval(rule->to_message, vars, &r->budget, &r->scratch, &v, NULL) == 0 &&
        v.kind == CEL_STRING) {
        const struct hk_str text = hk_str_trim(v.s);
        if (text.n > 0 && text.n <= RULE_MESSAGE_MAX && !memchr(text.s, '\n', text.n)) {
            return hk_arena_strndup(r->a, text.s, text.n);
        }
    }
    return rule->message.n > 0 ? hk_arena_strndup(r->a, rule->message.s, rule->message.n)
                               : hk_arena_printf(r->a, "failed rule: %.*s", HK_FMT(rule->text));
}

static void rule_report_broken(struct ruler *r, const struct schema_node *n,
                               const struct schema_rule *rule, const struct schema_path *at,
                               const struct cel_value *vars)
{
    const char *message = rule_message(r, rule, vars), *type = rule_type_names[n->type];
    const char *reason = "FieldValueInvalid";
    const char *text = hk_arena_printf(r->a, "Invalid value: \"%s\": %s", type, message);

    if (hk_str_is(rule->reason, "FieldValueForbidden")) {
        reason = "FieldValueForbidden";
        text = hk_arena_printf(r->a, "Forbidden: %s", message);
    } else if (hk_str_is(rule->reason, "FieldValueRequired")) {
        reason = "FieldValueRequired";
        text = hk_arena_printf(r->a, "Required value: %s", message);
    } else if (hk_str_is(rule->reason, "FieldValueDuplicate")) {
        reason = "FieldValueDuplicate";
        text = hk_arena_printf(r->a, "Duplicate value: \"%s\"", type);
    }
    r->report(r->ctx, reason, at, rule->field, text);
}

/* ---- one rule ---- */

static void rule_evaluate(struct ruler *r, const struct schema_node *n,
                          const struct schema_rule *rule, const struct json *v,
                          const struct json *old, const struct schema_path *at)
{
    struct cel_value vars[2] = {cel_of_json(v, n->cel, &r->scratch), cel_none()};
    struct cel_value result = {0};
    struct hk_err why = {0};

    if (old) {
        vars[1] = cel_of_json(old, n->cel, &r->scratch);
        vars[1] = rule->optional_old ? cel_some(vars[1], &r->scratch) : vars[1];
    }
    const int rc = cel_eval(rule->program, vars, &r->budget, &r->scratch, &result, &why);
    if (rc < 0) {
        rule_report_error(r, n, rule, at, rc, why.text);
    } else if (result.kind != CEL_BOOL || !result.b) {
        rule_report_broken(r, n, rule, at, vars);
    }
    hk_arena_clear(&r->scratch);
}

static void rule_check_one(struct ruler *r, const struct schema_node *n,
                           const struct schema_rule *rule, const struct json *v,
                           const struct json *old, bool same, const struct schema_path *at)
{
    if (!rule->program) { /* of a definition older than the check of its rules */
        rule_report_invalid(r, n, at, "rule compile error: %s", rule->why);
        return;
    }
    if (rule->uses_old ? !old && !rule->optional_old : same) {
        return;
    }
    rule_evaluate(r, n, rule, v, old, at);
}

/* ---- the object ---- */

/* The old element with the same keys; only lists of type map have such. */
static const struct json *rule_old_element(const struct schema_node *n, const struct json *item,
                                           const struct json *old)
{
    const uint32_t nkeys = n->list == SCHEMA_MAP ? json_len(n->keys) : 0;

    for (uint32_t i = 0; nkeys > 0 && i < json_len(old); i++) {
        const struct json *other = json_item(old, i);
        bool same = true;
        for (uint32_t k = 0; k < nkeys && same; k++) {
            const struct hk_str key = json_str(&n->keys->items[k], HK_STR(""));
            const struct json *x = json_get_str(item, key), *y = json_get_str(other, key);
            same = x && y ? json_equal(x, y) : x == y;
        }
        if (same) {
            return other;
        }
    }
    return NULL;
}

static void rule_walk(struct ruler *r, const struct schema_node *n, const struct json *v,
                      const struct json *old, const struct schema_path *at)
{
    if (v->type == JSON_NULL || !n->has_rules || r->spent) {
        return;
    }
    old = old && old->type != JSON_NULL ? old : NULL;
    const bool same = n->nrules > 0 && old && json_equal(v, old);
    for (uint32_t i = 0; i < n->nrules && !r->spent; i++) {
        rule_check_one(r, n, &n->rules[i], v, old, same, at);
    }
    for (uint32_t i = 0; v->type == JSON_OBJECT && i < v->len; i++) {
        const struct json_member *m = &v->members[i];
        const struct schema_node *prop = schema_prop_find(n, m->key);
        const struct schema_path here = {at, m->key, 0};
        if (prop || n->additional) {
            rule_walk(r, prop ? prop : n->additional, &m->value, json_get_str(old, m->key), &here);
        }
    }
    for (uint32_t i = 0; v->type == JSON_ARRAY && n->items && i < v->len; i++) {
        const struct schema_path here = {at, {0}, i};
        rule_walk(r, n->items, &v->items[i], rule_old_element(n, &v->items[i], old), &here);
    }
}

void schema_rules_hold(const struct schema *s, const struct json *obj, const struct json *old,
                       struct hk_arena *a, schema_rule_report *report, void *ctx)
{
    struct ruler r = {.a = a, .budget = CEL_BUDGET, .report = report, .ctx = ctx};
    const struct schema_path root = {0};

    rule_walk(&r, s->root, obj, old, &root);
    hk_arena_fini(&r.scratch);
}
