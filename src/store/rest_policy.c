// SPDX-License-Identifier: Apache-2.0
// Admission policies of the store: MutatingAdmissionPolicies change the object before the mutating
// webhooks see it, ValidatingAdmissionPolicies refuse, warn or leave notes in the log before the
// validating webhooks are asked. Messages are those of kube-apiserver.
#include "api/patch.h"
#include "base/log.h"
#include "store/rest_policy_priv.h"

/* ---- which bindings apply ---- */

/* The row in whose version the policy of the binding sees the object, or NULL. A binding only
 * narrows what its policy matches. */
static const struct rest_kind *policy_match(struct rest_call *c, const struct policy_binding *b,
                                            const struct webhook_subject *s)
{
    const struct rest_kind *row = webhook_terms_match(c, &b->policy->terms, s);

    return row && b->bound && !webhook_terms_match(c, &b->terms, s) ? NULL : row;
}

/* ---- validating policies ---- */

/* The first refusal. */
struct policy_denial {
    const struct policy_binding *binding;
    const char *reason, *message;
    bool whole_policy; /* not of the binding: the message does not name it */
};

/* One write in front of the validating policies. */
struct policy_validating {
    struct policy_turn turn;
    struct policy_denial denial;
};

static void validating_deny(struct policy_validating *v, const struct policy_binding *b,
                            const char *reason, const char *message, bool whole_policy)
{
    if (!v->denial.binding) {
        v->denial = (struct policy_denial){b, reason, message, whole_policy};
    }
}

static void validating_warn(struct rest_call *c, const struct policy_binding *b,
                            const char *message)
{
    rest_webhook_warn(c,
                      hk_arena_printf(&c->mem,
                                      "Validation failed for ValidatingAdmissionPolicy '%s' with "
                                      "binding '%s': %s",
                                      b->policy->name, b->name, message));
}

/* Audit annotations become lines of the log. */
static void validating_note(const struct policy_validating *v, const char *key, const char *value)
{
    const struct webhook_subject *s = v->turn.s;

    hk_log(HK_LOG_INFO, "audit",
           "operation=%s resource=%s namespace=\"%.*s\" name=\"%.*s\" annotation=\"%s\" "
           "value=\"%s\"",
           webhook_operation(s), s->row->kind->plural, HK_FMT(s->ns), HK_FMT(s->name), key, value);
}

static void validating_audit(struct policy_validating *v, const struct policy_binding *b,
                             uint32_t index, const char *message)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_arena *a = &v->turn.c->mem;
    struct json one = json_make_object(), list = json_make_array();

    json_set_cstr(&one, a, "message", message);
    json_set_cstr(&one, a, "policy", b->policy->name);
    json_set_cstr(&one, a, "binding", b->name);
    json_set_int(&one, a, "expressionIndex", index);
    json_set_if(&one, a, "validationActions", b->actions);
    json_push(&list, a, one);
    json_write(&list, &text);
    validating_note(v, "validation.policy.admission.k8s.io/validation_failure", text.data);
}

/* A validation does not hold, or could not be evaluated. */
static void validating_fail(struct policy_validating *v, const struct policy_binding *b,
                            uint32_t index, const char *reason, const char *message)
{
    if (b->acts & POLICY_DENY) {
        validating_deny(v, b, reason, message, false);
    }
    if (b->acts & POLICY_AUDIT) {
        validating_audit(v, b, index, message);
    }
    if (b->acts & POLICY_WARN) {
        validating_warn(v->turn.c, b, message);
    }
}

static void validating_fail_evaluation(struct policy_validating *v, const struct policy_binding *b,
                                       uint32_t index, const char *why)
{
    if (!b->policy->ignore) {
        validating_fail(v, b, index, "Invalid", why);
    }
}

/* The value of messageExpression if it is a usable line, else the fixed text. */
static const char *validating_message(const struct policy_validating *v, struct admit_run *run,
                                      const struct policy_validation *one, uint64_t *budget)
{
    struct hk_str text = {0};

    if (one->message_expr && admit_run_string(run, one->message_expr, budget, &text) == 0) {
        text = hk_str_trim(text.s ? text : HK_STR(""));
        if (text.n > 0 && text.n <= POLICY_MAX_MESSAGE && !memchr(text.s, '\n', text.n)) {
            return hk_arena_strndup(&v->turn.c->mem, text.s, text.n);
        }
    }
    return one->message;
}

/* Returns false when the budget is used up. */
static bool validating_one(struct policy_validating *v, const struct policy_binding *b,
                           struct admit_run *run, uint32_t index, uint64_t *budget)
{
    const struct policy_validation *one = &b->policy->validations.at[index];
    bool holds = false;
    const int rc = one->expr ? admit_run_bool(run, one->expr, budget, &holds) : -HK_EINVAL;

    if (rc < 0) {
        validating_fail_evaluation(v, b, index, one->expr ? admit_run_why(run) : one->why);
    } else if (!holds) {
        const char *message = validating_message(v, run, one, budget);
        if (*budget == 0) {
            validating_fail_evaluation(v, b, index,
                                       hk_arena_printf(&v->turn.c->mem,
                                                       "failed messageExpression: %s",
                                                       admit_run_why(run)));
            return false;
        }
        validating_fail(v, b, index, one->reason, message);
    }
    return rc != -HK_ELIMIT;
}

static bool validating_one_note(struct policy_validating *v, const struct policy_binding *b,
                                struct admit_run *run, const struct policy_note *n,
                                uint64_t *budget)
{
    struct hk_arena *a = &v->turn.c->mem;
    struct hk_str value = {0};
    const int rc = n->expr ? admit_run_string(run, n->expr, budget, &value) : -HK_EINVAL;

    if (rc < 0 && !b->policy->ignore) {
        validating_deny(v, b, "Invalid", n->expr ? admit_run_why(run) : n->why, false);
    }
    if (rc == 0 && value.s && hk_str_trim(value).n > 0) {
        const struct hk_str text = hk_str_head(hk_str_trim(value), POLICY_MAX_NOTE);
        validating_note(v, hk_arena_printf(a, "%s/%s", b->policy->name, n->key),
                        hk_arena_strndup(a, text.s, text.n));
    }
    return rc != -HK_ELIMIT;
}

/* Evaluates the policy with one parameter. */
static void validating_evaluate(struct policy_validating *v, const struct policy_binding *b,
                                const struct rest_kind *row, const struct json *params)
{
    const struct policy *p = b->policy;
    struct admit_run *run = policy_turn_run(&v->turn, &p->exprs, row, params);
    const char *why = NULL;
    bool more = true;

    if (policy_turn_match(&v->turn, run, &p->conditions, p->ignore, &more, &why) < 0) {
        validating_fail(v, b, 0, "Invalid", why);
        return;
    }
    if (more && p->bad) {
        validating_fail_evaluation(v, b, 0, p->bad);
        return;
    }
    const uint64_t budget = policy_turn_budget(&v->turn, ADMIT_BUDGET);
    uint64_t left = budget;
    for (uint32_t i = 0; more && i < p->validations.len; i++) {
        more = validating_one(v, b, run, i, &left);
    }
    for (uint32_t i = 0; more && i < p->notes.len; i++) {
        more = validating_one_note(v, b, run, &p->notes.at[i], &left);
    }
    policy_turn_spend(&v->turn, budget, left);
}

static void validating_binding(struct policy_validating *v, const struct policy_binding *b)
{
    struct rest_call *c = v->turn.c;
    const struct rest_kind *row = policy_match(c, b, v->turn.s);
    policy_params params = {0};
    const char *why = row ? policy_params_check(c, b->policy) : NULL;

    if (!row) {
        return;
    }
    if (why && !b->policy->ignore) {
        validating_deny(v, b, "Invalid",
                        hk_arena_printf(&c->mem, "failed to configure policy: %s", why), true);
    } else if (!why && policy_params_find(&v->turn, b, &params, &why) == 0) {
        for (uint32_t i = 0; i < params.len; i++) {
            validating_evaluate(v, b, row, params.at[i]);
        }
    } else if (!b->policy->ignore) {
        validating_deny(v, b, "Invalid",
                        hk_arena_printf(&c->mem, "failed to configure binding: %s", why), false);
    }
    hk_vec_fini(&params);
}

static int validating_code(const char *reason)
{
    return strcmp(reason, "Forbidden") == 0               ? 403
           : strcmp(reason, "Unauthorized") == 0          ? 401
           : strcmp(reason, "RequestEntityTooLarge") == 0 ? 413
                                                          : 422;
}

static enum hk_code validating_hk_code(int http)
{
    return http == 413 ? HK_ELIMIT : http == 422 ? HK_EINVAL : HK_EDENIED;
}

/* `pods "p" is forbidden: `, as kube-apiserver begins refusals of admission plugins. */
static const char *policy_subject_text(struct rest_call *c, const struct webhook_subject *s)
{
    return hk_arena_printf(&c->mem, "%s \"%.*s\" is forbidden: ", rest_resource(c, s->row->kind),
                           HK_FMT(s->name.n > 0 ? s->name : HK_STR("Unknown")));
}

static int validating_refuse(struct rest_call *c, const struct webhook_subject *s,
                             const struct policy_denial *d)
{
    const char *message = hk_arena_printf(
        &c->mem, "ValidatingAdmissionPolicy '%s'%s%s%s denied request: %s",
        d->binding->policy->name, d->whole_policy ? "" : " with binding '",
        d->whole_policy ? "" : d->binding->name, d->whole_policy ? "" : "'", d->message);
    const int code = validating_code(d->reason);

    rest_cause(c, NULL, NULL, message);
    rest_fail(c, code, validating_hk_code(code), d->reason, "%s%s", policy_subject_text(c, s),
              message);
    c->status.name = hk_arena_str(&c->mem, s->name).s;
    return c->rc;
}

int policy_validate(struct rest_call *c, struct webhook_subject *s, struct policy_table *table)
{
    struct policy_validating v = {.turn = {.c = c, .s = s, .left = POLICY_REQUEST_BUDGET}};

    for (uint32_t i = table->nmutating; i < table->bindings.len; i++) {
        validating_binding(&v, &table->bindings.at[i]);
    }
    return v.denial.binding ? validating_refuse(c, s, &v.denial) : 0;
}

/* ---- mutating policies ---- */

/* One write in front of the mutating policies. */
struct policy_mutating {
    struct policy_turn turn;
    struct webhook_subject *s;
    const char *failure; /* the first one, whole; NULL: none */
    const char *reason;  /* of it */
};

static void mutating_fail(struct policy_mutating *m, const struct policy_binding *b,
                          const char *reason, const char *why)
{
    if (!b->policy->ignore && !m->failure) {
        m->failure =
            hk_arena_printf(&m->turn.c->mem, "policy '%s' with binding '%s' denied request: %s",
                            b->policy->name, b->name, why);
        m->reason = reason;
    }
}

/* Applies a JSON patch; a test in it that fails leaves the object as it was. */
static int mutating_patch(struct rest_call *c, struct json *doc, const struct json *patch,
                          const char **why)
{
    struct json changed = json_clone(doc, &c->mem);
    struct hk_err err = {0};
    int rc = api_patch_json_check(patch, &err);

    if (rc == 0) {
        rc = api_patch_json(&changed, patch, &c->mem, &err);
    }
    if (rc < 0 && hk_str_starts(hk_str(err.text), "testing value ")) {
        return 0;
    }
    if (rc == 0 && changed.type != JSON_OBJECT) {
        rc = hk_fail(&err, HK_EINVAL, "the patch leaves no object");
    }
    if (rc < 0) {
        *why = hk_arena_printf(&c->mem, "JSONPath: %s", err.text);
        return rc;
    }
    *doc = changed;
    return 0;
}

static int mutating_merge(struct rest_call *c, const struct fields_topo topo, struct json *doc,
                          const struct json *config, const char **why)
{
    *why = fields_check_config(topo, config, &c->mem);
    if (*why) {
        *why = hk_arena_printf(&c->mem, "error applying patch: %s", *why);
        return -HK_EINVAL;
    }
    fields_merge(topo, doc, config, &c->mem);
    return 0;
}

/* The object after one mutation, in the stored version. */
static int mutating_apply(struct policy_mutating *m, const struct rest_kind *row, bool patch,
                          const struct json *value, struct json *doc, const char **why)
{
    struct rest_call *c = m->turn.c;
    const struct webhook_subject *s = m->s;
    const struct fields_topo topo = s->kind ? fields_of_kind(s->kind) : fields_root(row);
    int rc;

    if (s->unnamed) {
        json_del(rest_edit(doc, &c->mem, "metadata"), "name");
    }
    if (!s->kind) {
        rest_view_show(row, doc, &c->mem);
    }
    rc = patch ? mutating_patch(c, doc, value, why) : mutating_merge(c, topo, doc, value, why);
    if (rc == 0 && !s->kind) {
        rest_view_take(row, doc, &c->mem);
        rest_set_kind(c, doc);
    }
    return rc;
}

/* Evaluates a mutation and changes the object. Negative: the call is refused altogether. */
static int mutating_one(struct policy_mutating *m, const struct policy_binding *b,
                        const struct rest_kind *row, const struct json *params,
                        const struct policy_mutation *one, uint64_t *budget)
{
    struct rest_call *c = m->turn.c;
    struct admit_run *run = policy_turn_run(&m->turn, &b->policy->exprs, row, params);
    struct json value;
    const char *why = one->why;
    int rc = -HK_EINVAL;

    if (one->expr) {
        rc = one->patch ? admit_run_patch(run, one->expr, budget, &value)
                        : admit_run_object(run, one->expr, budget, &value);
        why = admit_run_why(run);
    }
    const struct json before = *m->s->obj;
    struct json doc = json_clone(&before, &c->mem);
    if (rc == 0) {
        rc = mutating_apply(m, row, one->patch, &value, &doc, &why);
    }
    if (rc < 0) {
        mutating_fail(m, b, "Invalid", why);
        return 0;
    }
    *m->s->obj = doc;
    policy_turn_changed(&m->turn);
    return m->s->settle ? m->s->settle(c, m->s, &before) : 0;
}

static int mutating_evaluate(struct policy_mutating *m, const struct policy_binding *b,
                             const struct rest_kind *row, const struct json *params)
{
    const struct policy *p = b->policy;
    struct admit_run *run = policy_turn_run(&m->turn, &p->exprs, row, params);
    const char *why = NULL;
    bool holds = true;

    if (policy_turn_match(&m->turn, run, &p->conditions, p->ignore, &holds, &why) < 0) {
        mutating_fail(m, b, "Invalid", why);
        return 0;
    }
    if (holds && p->bad) {
        mutating_fail(m, b, "Invalid", p->bad);
        return 0;
    }
    for (uint32_t i = 0; holds && i < p->mutations.len; i++) {
        const uint64_t budget = policy_turn_budget(&m->turn, ADMIT_BUDGET);
        uint64_t left = budget;
        const int rc = mutating_one(m, b, row, params, &p->mutations.at[i], &left);
        policy_turn_spend(&m->turn, budget, left);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int mutating_binding(struct policy_mutating *m, const struct policy_binding *b,
                            const struct rest_kind *row)
{
    struct rest_call *c = m->turn.c;
    policy_params params = {0};
    const char *why = policy_params_check(c, b->policy);
    int rc = 0;

    if (why) {
        mutating_fail(m, b, "Forbidden",
                      hk_arena_printf(&c->mem, "failed to configure policy: %s", why));
    } else if (policy_params_find(&m->turn, b, &params, &why) < 0) {
        mutating_fail(m, b, "Forbidden",
                      hk_arena_printf(&c->mem, "failed to configure binding: %s", why));
    } else {
        for (uint32_t i = 0; rc == 0 && i < params.len; i++) {
            rc = mutating_evaluate(m, b, row, params.at[i]);
        }
    }
    hk_vec_fini(&params);
    return rc;
}

/* Earlier policies that ask for it see the object again. */
static void mutating_mark_again(const struct policy_table *table, uint8_t *marks)
{
    for (uint32_t i = 0; i < table->nmutating; i++) {
        marks[i] |= marks[i] & WEBHOOK_INVOKED ? WEBHOOK_AGAIN : 0;
    }
}

static int mutating_refuse(struct rest_call *c, const struct webhook_subject *s,
                           const struct policy_mutating *m)
{
    rest_cause(c, NULL, NULL, m->failure);
    rest_fail(c, 403, HK_EDENIED, m->reason, "%s", m->failure);
    c->status.name = hk_arena_str(&c->mem, s->name).s;
    return c->rc;
}

int policy_mutate(struct rest_call *c, struct webhook_subject *s, struct policy_table *table,
                  uint8_t *marks, bool second_round, bool *ret_changed)
{
    struct policy_mutating m = {.turn = {.c = c, .s = s, .left = POLICY_REQUEST_BUDGET}, .s = s};

    for (uint32_t i = 0; s->obj && i < table->nmutating; i++) {
        const struct policy_binding *b = &table->bindings.at[i];
        const struct rest_kind *row = policy_match(c, b, s);
        if (!row || (second_round && !(marks[i] & WEBHOOK_AGAIN))) {
            continue;
        }
        const struct json before = json_clone(s->obj, &c->mem);
        if (mutating_binding(&m, b, row) < 0) {
            return c->rc;
        }
        if (!json_equal(s->obj, &before)) {
            *ret_changed = true;
            mutating_mark_again(table, marks);
        }
        marks[i] |= b->policy->if_needed ? WEBHOOK_INVOKED : 0;
    }
    return m.failure ? mutating_refuse(c, s, &m) : 0;
}
