// SPDX-License-Identifier: Apache-2.0
// Admission policies: defaults and validation of ValidatingAdmissionPolicies, of
// MutatingAdmissionPolicies and of their bindings, and the matchConditions that webhooks share. The
// store evaluates them (store/rest_policy.c). Expressions are compiled here once to refuse those
// that do not compile.
#include "admission/admission_priv.h"

enum {
    MAX_CONDITIONS = 64,
    MAX_AUDIT_ANNOTATIONS = 20,
    MAX_VALUE_EXPRESSION = 5 << 10,
    MAX_VARIABLES = 1000,
};

static const char *const failure_policies[] = {"Fail", "Ignore", NULL};

static bool is_policy_of_mutations(const struct admission_request *q)
{
    return hk_str_starts(hk_str(q->kind->kind), "Mutating");
}

/* An object that was stored before a rule existed can still lose a finalizer or a label. */
static bool spec_is_unchanged(const struct admission_request *q)
{
    const struct json *spec = json_get(q->obj, "spec"), *old = json_get(q->old, "spec");

    return spec && old && json_equal(spec, old);
}

/* ---- defaults ---- */

static void policy_default_rules(struct admission_request *q, struct json *rules)
{
    for (uint32_t i = 0; i < edit_len(rules); i++) {
        if (rules->items[i].type == JSON_OBJECT) {
            edit_default_str(&rules->items[i], q->mem, "scope", "*");
        }
    }
}

static void policy_default_match(struct admission_request *q, struct json *match)
{
    if (!json_is(match, JSON_OBJECT)) {
        return;
    }
    edit_default_str(match, q->mem, "matchPolicy", "Equivalent");
    edit_default_object(match, q->mem, "namespaceSelector");
    edit_default_object(match, q->mem, "objectSelector");
    policy_default_rules(q, edit_get(match, "resourceRules"));
    policy_default_rules(q, edit_get(match, "excludeResourceRules"));
}

int admit_policy_default(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = edit_get(q->obj, "spec");

    if (json_is(spec, JSON_OBJECT)) {
        edit_default_str(spec, q->mem, "failurePolicy", "Fail");
        policy_default_match(q, edit_get(spec, "matchConstraints"));
    }
    return 0;
}

int admit_policybinding_default(struct admission_request *q, struct hk_err *err)
{
    policy_default_match(q, edit_at(q->obj, "spec.matchResources"));
    return 0;
}

/* ---- expressions ---- */

/* A policy that is being checked. */
struct policy_review {
    struct admission_request *q;
    struct admit_exprs x;
};

static bool has_line_break(struct hk_str s)
{
    return memchr(s.s, '\n', s.n) || memchr(s.s, '\r', s.n);
}

/* Compiles the expression; reports it at the path if that fails. */
static void policy_check_expression(struct admission_request *q, const struct path *p,
                                    struct hk_str text, struct admit_exprs *x, enum admit_want want,
                                    bool authorizer)
{
    struct admit_expr *e;
    const char *why;

    if (admit_expr_add(x, text, want, authorizer, &e, &why) < 0) {
        cause_invalid_str(q, p, text, "%s", why);
    }
}

static void policy_check_condition(struct admission_request *q, const struct path *p,
                                   const struct json *condition, struct admit_exprs *x)
{
    const struct path expression = path_field(p, "expression"), name = path_field(p, "name");
    const struct hk_str text = hk_str_trim(edit_str(condition, "expression"));

    if (text.n == 0) {
        cause_required(q, &expression, "");
    } else {
        policy_check_expression(q, &expression, text, x, ADMIT_BOOL, true);
    }
    if (edit_str(condition, "name").n == 0) {
        cause_required(q, &name, "");
    } else {
        name_check(q, &name, edit_str(condition, "name"), NAME_QUALIFIED);
    }
}

/* Reports the element whose member has the value of an earlier element. */
static void policy_check_unique(struct admission_request *q, const struct path *list_path,
                                const struct json *list, uint32_t i, const char *key)
{
    const struct path at = path_index(list_path, i), p = path_field(&at, key);
    const struct hk_str value = edit_str(&list->items[i], key);

    for (uint32_t k = 0; k < i && value.n > 0; k++) {
        if (hk_str_eq(value, edit_str(&list->items[k], key))) {
            cause_duplicate(q, &p, value);
            return;
        }
    }
}

void admit_conditions_validate(struct admission_request *q, const struct path *up,
                               const struct json *holder, struct admit_exprs *x)
{
    const struct json *list = json_get(holder, "matchConditions");
    const struct path p = path_field(up, "matchConditions");

    if (edit_len(list) > MAX_CONDITIONS) {
        HK_AUTO(hk_buf_fini) struct hk_buf where = {0};
        path_write(&p, &where);
        cause_add(q, "FieldValueTooMany", where.data,
                  hk_arena_printf(q->mem, "Too many: %u: must have at most %d items",
                                  edit_len(list), MAX_CONDITIONS));
        return; /* Kubernetes compiles them all the same */
    }
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct path at = path_index(&p, i);
        policy_check_condition(q, &at, &list->items[i], x);
        policy_check_unique(q, &p, list, i, "name");
    }
    admit_exprs_fini(x);
}

static bool is_identifier(struct hk_str s)
{
    static const char *const reserved[] = {
        "true",     "false",   "null",      "in",       "as",  "break",  "const",
        "continue", "else",    "for",       "function", "if",  "import", "let",
        "loop",     "package", "namespace", "return",   "var", "void",   "while"};

    for (size_t i = 0; i < HK_LEN(reserved); i++) {
        if (hk_str_is(s, reserved[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.s[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return s.n > 0;
}

static void policy_check_variable(struct policy_review *w, const struct path *p,
                                  const struct json *variable)
{
    const struct path name_path = path_field(p, "name"), text_path = path_field(p, "expression");
    const struct hk_str name = edit_str(variable, "name"), text = edit_str(variable, "expression");
    const char *why;

    if (hk_str_trim(name).n == 0) {
        cause_required(w->q, &name_path, "name is not specified");
    } else if (!is_identifier(name)) {
        cause_invalid_str(w->q, &name_path, name, "name is not a valid CEL identifier");
    }
    if (hk_str_trim(text).n == 0) {
        cause_required(w->q, &text_path, "expression is not specified");
    } else if (admit_expr_add_variable(&w->x, name, text, &why) < 0) {
        cause_invalid_str(w->q, &text_path, text, "%s", why);
    }
}

static void policy_check_variables(struct policy_review *w, const struct path *spec_path,
                                   const struct json *spec)
{
    const struct json *list = json_get(spec, "variables");
    const struct path p = path_field(spec_path, "variables");

    w->x.variables = edit_len(list) > 0;
    if (edit_len(list) > MAX_VARIABLES) {
        cause_forbidden(w->q, &p, "must have at most %d items", MAX_VARIABLES);
        return;
    }
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct path at = path_index(&p, i);
        policy_check_variable(w, &at, &list->items[i]);
    }
}

/* ---- validations ---- */

static void policy_check_message(struct policy_review *w, const struct path *up,
                                 const struct json *v)
{
    static const char *const reasons[] = {"Forbidden", "Invalid", "RequestEntityTooLarge", NULL};
    const struct hk_str message = edit_str(v, "message"), text = edit_str(v, "messageExpression");
    const struct path p = path_field(up, "message"),
                      text_path = path_field(up, "messageExpression");

    if (text.n > 0 && hk_str_trim(text).n == 0) {
        cause_invalid_str(w->q, &text_path, text, "must be non-empty if specified");
    } else if (text.n > 0) {
        policy_check_expression(w->q, &text_path, text, &w->x, ADMIT_STRING, false);
    }
    if (message.n > 0 && hk_str_trim(message).n == 0) {
        cause_invalid_str(w->q, &p, message, "message must be non-empty if specified");
    } else if (has_line_break(hk_str_trim(message))) {
        cause_invalid_str(w->q, &p, message, "message must not contain line breaks");
    }
    cause_check_enum(w->q, up, v, "reason", reasons);
}

static void policy_check_validation(struct policy_review *w, const struct path *p,
                                    const struct json *v)
{
    const struct path at = path_field(p, "expression");
    const struct hk_str text = edit_str(v, "expression");

    if (hk_str_trim(text).n == 0) {
        cause_required(w->q, &at, "expression is not specified");
    } else {
        policy_check_expression(w->q, &at, text, &w->x, ADMIT_BOOL, true);
    }
    policy_check_message(w, p, v);
}

static void policy_check_annotation(struct policy_review *w, const struct path *p,
                                    const struct json *v)
{
    const struct path key = path_field(p, "key"), at = path_field(p, "valueExpression");
    const struct hk_str given = edit_str(v, "valueExpression"), text = hk_str_trim(given);
    const char *full =
        hk_arena_printf(w->q->mem, "%.*s/%.*s", HK_FMT(w->q->name), HK_FMT(edit_str(v, "key")));
    struct admit_expr *e;
    const char *why;

    name_check(w->q, &key, hk_str(full), NAME_QUALIFIED);
    if (text.n == 0) {
        cause_required(w->q, &at, "valueExpression is not specified");
    } else if (text.n > MAX_VALUE_EXPRESSION) {
        cause_required(
            w->q, &at,
            hk_arena_printf(w->q->mem, "must not exceed %d bytes in length", MAX_VALUE_EXPRESSION));
    } else if (admit_expr_add(&w->x, text, ADMIT_NOTE, true, &e, &why) < 0) {
        cause_invalid_str(w->q, &at, given, "%s", why);
    }
}

static void policy_check_validations(struct policy_review *w, const struct path *spec_path,
                                     const struct json *spec)
{
    static const char missing[] = "validations or auditAnnotations must contain at least one item";
    const struct json *list = json_get(spec, "validations");
    const struct json *notes = json_get(spec, "auditAnnotations");
    const struct path p = path_field(spec_path, "validations");
    const struct path notes_path = path_field(spec_path, "auditAnnotations");

    if (edit_len(list) == 0 && edit_len(notes) == 0) {
        cause_required(w->q, &p, missing);
        cause_required(w->q, &notes_path, missing);
    }
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct path at = path_index(&p, i);
        policy_check_validation(w, &at, &list->items[i]);
    }
    if (edit_len(notes) > MAX_AUDIT_ANNOTATIONS) {
        cause_invalid(w->q, &notes_path, notes, "must not have more than %d auditAnnotations",
                      MAX_AUDIT_ANNOTATIONS);
        return;
    }
    for (uint32_t i = 0; i < edit_len(notes); i++) {
        const struct path at = path_index(&notes_path, i);
        policy_check_annotation(w, &at, &notes->items[i]);
        policy_check_unique(w->q, &notes_path, notes, i, "key");
    }
}

/* ---- mutations ---- */

static void policy_check_mutation(struct policy_review *w, const struct path *up,
                                  const struct json *m)
{
    static const char *const types[] = {"ApplyConfiguration", "JSONPatch", NULL};
    const struct hk_str type = edit_str(m, "patchType");
    const struct path type_path = path_field(up, "patchType");
    const bool patch = hk_str_is(type, "JSONPatch");

    if (type.n == 0) {
        cause_required(w->q, &type_path, "");
        return;
    }
    cause_check_enum(w->q, up, m, "patchType", types);
    if (!patch && !hk_str_is(type, "ApplyConfiguration")) {
        return;
    }
    const struct path here = path_field(up, patch ? "jsonPatch" : "applyConfiguration");
    const struct path other = path_field(up, patch ? "applyConfiguration" : "jsonPatch");
    const struct path at = path_field(&here, "expression");
    const struct hk_str text =
        edit_str(json_get(m, patch ? "jsonPatch" : "applyConfiguration"), "expression");
    if (edit_has(m, patch ? "applyConfiguration" : "jsonPatch")) {
        cause_forbidden(w->q, &other, "must not be specified when patchType is %.*s", HK_FMT(type));
    }
    if (hk_str_trim(text).n == 0) {
        cause_required(w->q, &at, "expression is not specified");
    } else {
        policy_check_expression(w->q, &at, text, &w->x, patch ? ADMIT_PATCH : ADMIT_OBJECT, true);
    }
}

static void policy_check_mutations(struct policy_review *w, const struct path *spec_path,
                                   const struct json *spec)
{
    static const char *const again[] = {"IfNeeded", "Never", NULL};
    const struct json *list = json_get(spec, "mutations");
    const struct path p = path_field(spec_path, "mutations");
    const struct path again_path = path_field(spec_path, "reinvocationPolicy");

    if (edit_len(list) == 0) {
        cause_required(w->q, &p, "mutations must contain at least one item");
    }
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct path at = path_index(&p, i);
        policy_check_mutation(w, &at, &list->items[i]);
    }
    if (edit_str(spec, "reinvocationPolicy").n == 0) {
        cause_required(w->q, &again_path, "");
    } else {
        cause_check_enum(w->q, spec_path, spec, "reinvocationPolicy", again);
    }
}

/* ---- what a policy matches ---- */

static void policy_check_rules(struct admission_request *q, const struct path *up,
                               const struct json *match, const char *key)
{
    const struct json *rules = json_get(match, key);
    const struct path p = path_field(up, key);

    for (uint32_t i = 0; i < edit_len(rules); i++) {
        const struct path at = path_index(&p, i), names_path = path_field(&at, "resourceNames");
        const struct json *names = json_get(&rules->items[i], "resourceNames");
        for (uint32_t k = 0; k < edit_len(names); k++) {
            const struct path name = path_index(&names_path, k);
            name_check(q, &name, json_str(&names->items[k], HK_STR("")), NAME_SEGMENT);
        }
        admit_webhooks_check_rule(q, &at, &rules->items[i]);
    }
}

static void policy_check_match(struct admission_request *q, const struct path *p,
                               const struct json *match)
{
    static const char *const policies[] = {"Equivalent", "Exact", NULL};
    const struct path namespaces = path_field(p, "namespaceSelector");
    const struct path objects = path_field(p, "objectSelector");

    cause_check_enum(q, p, match, "matchPolicy", policies);
    name_check_selector(q, &namespaces, json_get(match, "namespaceSelector"));
    name_check_selector(q, &objects, json_get(match, "objectSelector"));
    policy_check_rules(q, p, match, "resourceRules");
    policy_check_rules(q, p, match, "excludeResourceRules");
}

/* A mutating policy has nothing to change in an object that is deleted. */
static void policy_refuse_deletes(struct admission_request *q, const struct path *match_path,
                                  const struct json *match)
{
    static const char *const allowed[] = {"*", "CONNECT", "CREATE", "UPDATE", NULL};
    const struct json *rules = json_get(match, "resourceRules");
    const struct path p = path_field(match_path, "resourceRules");

    for (uint32_t i = 0; i < edit_len(rules); i++) {
        const struct path at = path_index(&p, i), list = path_field(&at, "operations");
        const struct json *operations = json_get(&rules->items[i], "operations");
        for (uint32_t k = 0; k < edit_len(operations); k++) {
            const struct path one = path_index(&list, k);
            if (hk_str_is(json_str(&operations->items[k], HK_STR("")), "DELETE")) {
                cause_unsupported(q, &one, HK_STR("DELETE"), allowed);
            }
        }
    }
}

static void policy_check_constraints(struct admission_request *q, const struct path *spec_path,
                                     const struct json *spec)
{
    const struct json *match = json_get(spec, "matchConstraints");
    const struct path p = path_field(spec_path, "matchConstraints");
    const struct path rules = path_field(&p, "resourceRules");

    if (!json_is(match, JSON_OBJECT)) {
        cause_required(q, &p, "");
        return;
    }
    policy_check_match(q, &p, match);
    if (edit_len(json_get(match, "resourceRules")) == 0) {
        cause_required(q, &rules, "");
    }
    if (is_policy_of_mutations(q)) {
        policy_refuse_deletes(q, &p, match);
    }
}

static void policy_check_param_kind(struct admission_request *q, const struct path *spec_path,
                                    const struct json *spec)
{
    const struct json *kind = json_get(spec, "paramKind");
    const struct path p = path_field(spec_path, "paramKind");
    const struct path version = path_field(&p, "apiVersion"), name = path_field(&p, "kind");
    struct hk_str rest = edit_str(kind, "apiVersion"), group;

    if (!json_is(kind, JSON_OBJECT)) {
        return;
    }
    if (rest.n == 0) {
        cause_required(q, &version, "");
    } else if (hk_str_cut(&rest, '/', &group) && rest.s) {
        if (group.n > 0) {
            name_check(q, &version, group, NAME_SUBDOMAIN);
        }
        if (memchr(rest.s, '/', rest.n)) {
            cause_invalid_str(q, &version, edit_str(kind, "apiVersion"),
                              "unexpected GroupVersion string: %.*s",
                              HK_FMT(edit_str(kind, "apiVersion")));
        } else if (rest.n == 0) {
            cause_invalid_str(q, &version, edit_str(kind, "apiVersion"),
                              "version must be specified");
        } else {
            name_check(q, &version, rest, NAME_LABEL_1035);
        }
    }
    if (edit_str(kind, "kind").n == 0) {
        cause_required(q, &name, "");
    }
}

/* ---- policies ---- */

static void policy_check_spec(struct policy_review *w, const struct path *p,
                              const struct json *spec)
{
    const struct path failure = path_field(p, "failurePolicy");

    if (edit_str(spec, "failurePolicy").n == 0) {
        cause_required(w->q, &failure, "");
    }
    cause_check_enum(w->q, p, spec, "failurePolicy", failure_policies);
    policy_check_param_kind(w->q, p, spec);
    policy_check_constraints(w->q, p, spec);
    w->x.params = json_is(json_get(spec, "paramKind"), JSON_OBJECT);
    admit_conditions_validate(w->q, p, spec, &(struct admit_exprs){.params = w->x.params});
    policy_check_variables(w, p, spec);
    if (is_policy_of_mutations(w->q)) {
        w->x.patches = true;
        policy_check_mutations(w, p, spec);
    } else {
        policy_check_validations(w, p, spec);
    }
}

void admit_policy_validate(struct admission_request *q)
{
    const struct path p = path_field(NULL, "spec");
    struct policy_review w = {.q = q};

    if (!spec_is_unchanged(q)) {
        policy_check_spec(&w, &p, json_get(q->obj, "spec"));
        admit_exprs_fini(&w.x);
    }
}

/* ---- bindings ---- */

static void binding_check_param_ref(struct admission_request *q, const struct path *spec_path,
                                    const struct json *spec)
{
    static const char *const actions[] = {"Deny", "Allow", NULL};
    const struct json *ref = json_get(spec, "paramRef");
    const struct path p = path_field(spec_path, "paramRef");
    const struct path name = path_field(&p, "name"), selector = path_field(&p, "selector");
    const struct path action = path_field(&p, "parameterNotFoundAction");
    const bool named = edit_str(ref, "name").n > 0, selects = edit_has(ref, "selector");

    if (!json_is(ref, JSON_OBJECT)) {
        return;
    }
    if (named) {
        name_check(q, &name, edit_str(ref, "name"), NAME_SEGMENT);
    }
    if (named && selects) {
        cause_forbidden(q, &name, "name and selector are mutually exclusive");
        cause_forbidden(q, &selector, "name and selector are mutually exclusive");
    }
    if (selects) {
        name_check_selector(q, &selector, json_get(ref, "selector"));
    }
    if (!named && !selects) {
        cause_required(q, &p, "one of name or selector must be specified");
    }
    if (edit_str(ref, "parameterNotFoundAction").n == 0) {
        cause_required(q, &action, "");
    } else {
        cause_check_enum(q, &p, ref, "parameterNotFoundAction", actions);
    }
}

static void binding_check_actions(struct admission_request *q, const struct path *spec_path,
                                  const struct json *spec)
{
    static const char *const known[] = {"Audit", "Deny", "Warn", NULL};
    const struct json *list = json_get(spec, "validationActions");
    const struct path p = path_field(spec_path, "validationActions");

    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct path at = path_index(&p, i);
        const struct hk_str one = json_str(&list->items[i], HK_STR(""));
        const struct json before = {.type = JSON_ARRAY, .items = list->items, .len = i};
        if (!hk_str_is(one, "Audit") && !hk_str_is(one, "Deny") && !hk_str_is(one, "Warn")) {
            cause_unsupported(q, &at, one, known);
        }
        if (edit_list_has(&before, one)) {
            cause_duplicate(q, &at, one);
        }
    }
    if (edit_list_has(list, HK_STR("Deny")) && edit_list_has(list, HK_STR("Warn"))) {
        cause_invalid(q, &p, list,
                      "must not contain both Deny and Warn (repeating the same validation failure "
                      "information in the API response and headers serves no purpose)");
    }
    if (edit_len(list) == 0) {
        cause_required(q, &p, "at least one validation action is required");
    }
}

void admit_policybinding_validate(struct admission_request *q)
{
    const struct json *spec = json_get(q->obj, "spec"), *match = json_get(spec, "matchResources");
    const struct path p = path_field(NULL, "spec"), name = path_field(&p, "policyName");
    const struct path resources = path_field(&p, "matchResouces"); /* as Kubernetes spells it */

    if (spec_is_unchanged(q)) {
        return;
    }
    if (edit_str(spec, "policyName").n == 0) {
        cause_required(q, &name, "");
    } else {
        name_check(q, &name, edit_str(spec, "policyName"), NAME_SUBDOMAIN);
    }
    binding_check_param_ref(q, &p, spec);
    if (json_is(match, JSON_OBJECT)) {
        policy_check_match(q, &resources, match);
    }
    if (!is_policy_of_mutations(q)) {
        binding_check_actions(q, &p, spec);
    }
}
