// SPDX-License-Identifier: Apache-2.0
// Compiles the expressions of admission policies, with the names and types that Kubernetes declares
// for them, and the words in which it refuses them.
#include "api/admit_expr_priv.h"

/* Programs of one policy share no memory, but their types refer to one another: they are freed
 * together. */
void admit_exprs_fini(struct admit_exprs *x)
{
    for (uint32_t i = 0; i < x->all.len; i++) {
        cel_program_free(x->all.at[i]->program);
    }
    hk_vec_fini(&x->all);
    hk_vec_fini(&x->vars);
    hk_free(hk_take(x->fields));
    hk_arena_fini(&x->mem);
}

static const char *admit_want_name(enum admit_want want)
{
    static const char *const names[] = {
        [ADMIT_BOOL] = "bool",
        [ADMIT_STRING] = "string",
        [ADMIT_NOTE] = "one of [string null_type]",
        [ADMIT_OBJECT] = "Object",
        [ADMIT_PATCH] = "list(JSONPatch)",
    };

    return names[want];
}

static bool admit_is_struct(const struct cel_type *t, const char *name)
{
    return t && t->kind == CEL_MAP && hk_str_is(t->name, name);
}

/* As in Kubernetes, a value whose type is not known before the evaluation is not enough. */
static bool admit_type_is(const struct cel_type *t, enum admit_want want)
{
    switch (want) {
    case ADMIT_BOOL:
        return t->kind == CEL_BOOL;
    case ADMIT_STRING:
        return t->kind == CEL_STRING;
    case ADMIT_NOTE:
        return t->kind == CEL_STRING || t->kind == CEL_NULL;
    case ADMIT_OBJECT:
        return admit_is_struct(t, "Object");
    case ADMIT_PATCH:
        return t->kind == CEL_LIST && (!t->elem || admit_is_struct(t->elem, "JSONPatch"));
    default:
        return true;
    }
}

/* The types of the variables so far, as fields of one object. A copy, since more may follow. */
static const struct cel_type *admit_variables_type(struct admit_exprs *x)
{
    struct cel_type *t = hk_arena_zalloc(&x->mem, sizeof(*t));
    struct cel_field *fields = hk_arena_array(&x->mem, x->nfields, sizeof(*fields));

    if (x->nfields > 0) {
        memcpy(fields, x->fields, x->nfields * sizeof(*fields));
    }
    t->kind = CEL_OBJECT;
    t->fields = fields;
    t->nfields = x->nfields;
    return t;
}

static int admit_compile(struct admit_exprs *x, struct hk_str text, bool authorizer,
                         struct cel_program **ret, struct hk_err *err)
{
    static const char *const structs[] = {"Object", "JSONPatch", NULL};
    struct cel_var vars[ADMIT_NSLOTS] = {
        [ADMIT_SLOT_OBJECT] = {HK_STR("object"), NULL},
        [ADMIT_SLOT_OLD] = {HK_STR("oldObject"), NULL},
        [ADMIT_SLOT_REQUEST] = {HK_STR("request"), admit_type_request()},
        [ADMIT_SLOT_NAMESPACE] = {HK_STR("namespaceObject"), admit_type_namespace()},
    };

    if (x->params) {
        vars[ADMIT_SLOT_PARAMS].name = HK_STR("params");
    }
    if (authorizer) {
        vars[ADMIT_SLOT_AUTHORIZER] =
            (struct cel_var){HK_STR("authorizer"), cel_type_of(CEL_NATIVE)};
    }
    if (x->variables) {
        vars[ADMIT_SLOT_VARIABLES] = (struct cel_var){HK_STR("variables"), admit_variables_type(x)};
    }
    const struct cel_env env = {
        .vars = vars,
        .nvars = HK_LEN(vars),
        .structs = x->patches ? structs : NULL,
    };
    return cel_compile(text, &env, ret, err);
}

int admit_expr_add(struct admit_exprs *x, struct hk_str text, enum admit_want want, bool authorizer,
                   struct admit_expr **ret, const char **ret_why)
{
    struct admit_expr *e = hk_arena_zalloc(&x->mem, sizeof(*e));
    struct hk_err err = {0};

    e->text = hk_arena_str(&x->mem, text);
    const int rc = admit_compile(x, text, authorizer, &e->program, &err);
    if (rc < 0) {
        *ret_why = hk_arena_printf(&x->mem, "compilation failed: %s", err.text);
        return rc;
    }
    hk_vec_push(&x->all, e);
    if (!admit_type_is(cel_program_type(e->program), want)) {
        *ret_why = hk_arena_printf(&x->mem, "must evaluate to %s", admit_want_name(want));
        return -HK_EINVAL;
    }
    if (x->height + cel_program_height(e->program) > ADMIT_HEIGHT_MAX) {
        *ret_why = hk_arena_printf(
            &x->mem,
            "the expression and all variables together are nested more than %d levels deep",
            ADMIT_HEIGHT_MAX);
        return -HK_ELIMIT;
    }
    *ret = e;
    return 0;
}

int admit_expr_add_variable(struct admit_exprs *x, struct hk_str name, struct hk_str text,
                            const char **ret_why)
{
    struct admit_expr *e = NULL;
    const int rc = admit_expr_add(x, text, ADMIT_ANY, true, &e, ret_why);

    if (rc < 0) {
        return rc;
    }
    e->name = hk_arena_str(&x->mem, name);
    x->height += cel_program_height(e->program);
    hk_vec_push(&x->vars, e);
    if (x->nfields == x->fields_cap) {
        x->fields = hk_vec_grow(x->fields, &x->fields_cap, x->nfields + 1, sizeof(*x->fields));
    }
    x->fields[x->nfields++] = (struct cel_field){e->name, e->name, cel_program_type(e->program)};
    return 0;
}
