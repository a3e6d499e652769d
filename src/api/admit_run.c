// SPDX-License-Identifier: Apache-2.0
// Evaluates the expressions of an admission policy for one write. Errors are worded as Kubernetes
// words them.
#include "api/admit_expr_priv.h"

#define OUT_OF_BUDGET                                                                              \
    "validation failed due to running out of cost budget, no further validation rules will be run"

/* ---- variables ---- */

static int admit_variable_evaluate(struct admit_run *r, uint32_t i, struct cel_value *ret,
                                   struct hk_err *err)
{
    const struct admit_expr *e = r->in.exprs->vars.at[i];
    uint64_t left = r->left - HK_MIN(r->left, r->spent);
    const uint64_t before = left;
    struct hk_err why = {0};
    const int rc = cel_eval(e->program, r->slots, &left, r->in.mem, ret, &why);

    r->spent += before - left;
    if (rc < 0) {
        return hk_fail(err, HK_EINVAL, "composited variable \"%.*s\" fails to evaluate: %s",
                       HK_FMT(hk_str_head(e->name, 100)), why.text);
    }
    return 0;
}

static int admit_variable_field(void *ctx, struct hk_str name, struct hk_arena *a,
                                struct cel_value *ret, struct hk_err *err)
{
    struct admit_run *r = ctx;

    for (uint32_t i = r->in.exprs->vars.len; i-- > 0;) {
        if (!hk_str_eq(r->in.exprs->vars.at[i]->name, name)) {
            continue;
        }
        if (!r->known[i]) {
            const int rc = admit_variable_evaluate(r, i, &r->values[i], err);
            if (rc < 0) {
                return rc;
            }
            r->known[i] = true;
        }
        *ret = r->values[i];
        return 0;
    }
    return -HK_ENOTFOUND;
}

struct admit_run *admit_run_new(const struct admit_input *in)
{
    struct admit_run *r = hk_arena_zalloc(in->mem, sizeof(*r));
    const uint32_t n = in->exprs->vars.len;

    r->in = *in;
    r->values = hk_arena_array(in->mem, n, sizeof(*r->values));
    r->known = hk_arena_zalloc(in->mem, n * sizeof(*r->known));
    r->variables = (struct cel_native){.ctx = r, .field = admit_variable_field};
    r->slots[ADMIT_SLOT_OBJECT] = cel_of_json(in->object, NULL, in->mem);
    r->slots[ADMIT_SLOT_OLD] = cel_of_json(in->old, NULL, in->mem);
    r->slots[ADMIT_SLOT_REQUEST] = cel_of_json(in->request, admit_type_request(), in->mem);
    r->slots[ADMIT_SLOT_NAMESPACE] = cel_of_json(in->ns, admit_type_namespace(), in->mem);
    r->slots[ADMIT_SLOT_PARAMS] = cel_of_json(in->params, NULL, in->mem);
    r->slots[ADMIT_SLOT_AUTHORIZER] = admit_authorizer_value(r);
    r->slots[ADMIT_SLOT_VARIABLES] = cel_of_native(&r->variables);
    r->why = "";
    return r;
}

const char *admit_run_why(const struct admit_run *r)
{
    return r->why;
}

/* ---- evaluation ---- */

static int admit_fail(struct admit_run *r, const struct admit_expr *e, const char *why)
{
    r->why =
        hk_arena_printf(r->in.mem, "expression '%.*s' resulted in error: %s", HK_FMT(e->text), why);
    return -HK_EINVAL;
}

static int admit_evaluate(struct admit_run *r, const struct admit_expr *e, uint64_t *budget,
                          struct cel_value *ret)
{
    struct hk_err err = {0};

    r->spent = 0;
    r->left = *budget;
    const int rc = cel_eval(e->program, r->slots, budget, r->in.mem, ret, &err);
    *budget -= HK_MIN(*budget, r->spent);
    if (*budget == 0) {
        r->why = OUT_OF_BUDGET;
        return -HK_ELIMIT;
    }
    return rc < 0 ? admit_fail(r, e, err.text) : 0;
}

int admit_run_bool(struct admit_run *r, const struct admit_expr *e, uint64_t *budget, bool *ret)
{
    struct cel_value v = {0};
    const int rc = admit_evaluate(r, e, budget, &v);

    if (rc == 0) {
        *ret = v.kind == CEL_BOOL && v.b;
    }
    return rc;
}

int admit_run_string(struct admit_run *r, const struct admit_expr *e, uint64_t *budget,
                     struct hk_str *ret)
{
    struct cel_value v = {0};
    const int rc = admit_evaluate(r, e, budget, &v);

    if (rc == 0) {
        *ret = v.kind == CEL_STRING ? v.s : (struct hk_str){0};
    }
    return rc;
}

/* ---- results that change objects ---- */

/* The reason stands alone, as in Kubernetes: the expression itself did not fail. */
static int admit_fail_value(struct admit_run *r, const char *why)
{
    r->why = hk_arena_printf(r->in.mem, "%s", why);
    return -HK_EINVAL;
}

static int admit_value_to_json(struct admit_run *r, struct cel_value v, struct json *ret)
{
    struct hk_err err = {0};
    struct json made;
    int rc = cel_check_structs(v, r->in.mem, &err);

    if (rc == 0) {
        rc = cel_to_json(v, r->in.mem, &made, &err);
    }
    if (rc < 0) {
        return admit_fail_value(r, err.text);
    }
    *ret = json_clone(&made, r->in.mem); /* it refers to the object that it will be merged into */
    return 0;
}

int admit_run_object(struct admit_run *r, const struct admit_expr *e, uint64_t *budget,
                     struct json *ret)
{
    struct cel_value v = {0};
    int rc = admit_evaluate(r, e, budget, &v);

    if (rc == 0) {
        rc = admit_value_to_json(r, v, ret);
    }
    if (rc == 0 && ret->type != JSON_OBJECT) {
        return admit_fail_value(r, "the expression evaluated to no Object");
    }
    return rc;
}

/* One operation: op, path and from are strings, and there are no other fields but value. */
static int admit_check_operation(struct admit_run *r, const struct admit_expr *e, struct json *op)
{
    static const char *const texts[] = {"op", "path", "from"};

    if (op->type != JSON_OBJECT) {
        return admit_fail_value(
            r, "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch");
    }
    for (uint32_t i = 0; i < op->len; i++) {
        const struct json_member *m = &op->members[i];
        bool text = false;
        for (size_t k = 0; k < HK_LEN(texts); k++) {
            text = text || hk_str_is(m->key, texts[k]);
        }
        if (text && m->value.type != JSON_STRING) {
            return admit_fail(r, e,
                              hk_arena_printf(r->in.mem,
                                              "unexpected type %s for JSONPatchType '%.*s' field",
                                              json_type_name(m->value.type), HK_FMT(m->key)));
        }
        if (!text && !hk_str_is(m->key, "value")) {
            return admit_fail(
                r, e,
                hk_arena_printf(r->in.mem, "unexpected JSONPatchType field: %.*s", HK_FMT(m->key)));
        }
    }
    if (json_str_field(op, "from").n == 0) {
        json_del(op, "from");
    }
    return 0;
}

int admit_run_patch(struct admit_run *r, const struct admit_expr *e, uint64_t *budget,
                    struct json *ret)
{
    struct cel_value v = {0};
    int rc = admit_evaluate(r, e, budget, &v);

    if (rc == 0) {
        rc = admit_value_to_json(r, v, ret);
    }
    if (rc == 0 && ret->type != JSON_ARRAY) {
        return admit_fail_value(r,
                                "type mismatch: JSONPatchType.expression should evaluate to array");
    }
    for (uint32_t i = 0; rc == 0 && i < ret->len; i++) {
        rc = admit_check_operation(r, e, &ret->items[i]);
    }
    return rc;
}
