// SPDX-License-Identifier: Apache-2.0
// Expressions of admission policies and of matchConditions: CEL over the object of a write, the
// object before it, the request, parameters and the rights of the user. A policy compiles its
// expressions once (struct admit_exprs) and evaluates them for each write (struct admit_run).
#pragma once

#include "api/rights.h"
#include "base/err.h"
#include "base/vec.h"
#include "codec/json.h"

enum {
    ADMIT_BUDGET = 10000000,           /* cost of one policy: Kubernetes' RuntimeCELCostBudget */
    ADMIT_CONDITIONS_BUDGET = 2500000, /* of its matchConditions, and of those of a webhook */
    ADMIT_HEIGHT_MAX = 2000,           /* of all variables together: it bounds the stack */
};

/* ---- compiling ---- */

/* What the value of an expression must be. */
enum admit_want {
    ADMIT_BOOL,
    ADMIT_STRING,
    ADMIT_NOTE,   /* a string or null */
    ADMIT_ANY,    /* of a variable */
    ADMIT_OBJECT, /* Object{...} */
    ADMIT_PATCH,  /* a list of JSONPatch{...} */
};

struct admit_expr;

/* The expressions of one policy. Ready when zeroed. */
struct admit_exprs {
    struct hk_arena mem;
    HK_VEC(struct admit_expr *) all;
    HK_VEC(struct admit_expr *) vars; /* those that are variables */
    struct cel_field *fields;         /* the variables as fields of one object */
    uint32_t nfields, fields_cap;
    uint32_t height;
    bool params;    /* "params" is declared */
    bool variables; /* "variables" is declared */
    bool patches;   /* Object and JSONPatch can be built */
};
void admit_exprs_fini(struct admit_exprs *x);

/* Adds an expression, which lives as long as x. The text is copied. Without `authorizer` it cannot
 * refer to the authorizer. On failure *ret_why, in x, is what Kubernetes says about the expression:
 * "compilation failed: ERROR: ...". */
int admit_expr_add(struct admit_exprs *x, struct hk_str text, enum admit_want want, bool authorizer,
                   struct admit_expr **ret, const char **ret_why) HK_CHECKED;
/* Adds a variable that later expressions of x can refer to. */
int admit_expr_add_variable(struct admit_exprs *x, struct hk_str name, struct hk_str text,
                            const char **ret_why) HK_CHECKED;

/* ---- evaluating ---- */

/* One check of the authorizer. */
struct admit_check {
    struct rights_ask ask;
    struct hk_str path;                     /* not empty: instead of a resource */
    struct hk_str account_ns, account_name; /* not empty: of this service account, not the user */
};

struct admit_input {
    const struct admit_exprs *exprs;
    const struct json *object, *old, *request, *ns, *params; /* NULL: null */
    struct rights_ask resource; /* of the request: authorizer.requestResource */
    bool (*allows)(void *ctx, const struct admit_check *check);
    void *ctx;
    struct hk_arena *mem; /* values and texts live here */
};

/* The evaluation of a policy for one write. Variables are evaluated when they are first used, and
 * once. */
struct admit_run;
struct admit_run *admit_run_new(const struct admit_input *in);

/* Each reduces *budget and returns 0; -HK_EINVAL: the evaluation failed, or the value is none that
 * was wanted; -HK_ELIMIT: the budget is used up, and no further expression should be evaluated. The
 * text of admit_run_why() is what Kubernetes says about it. */
int admit_run_bool(struct admit_run *r, const struct admit_expr *e, uint64_t *budget,
                   bool *ret) HK_CHECKED;
/* .s is NULL when the value is null. */
int admit_run_string(struct admit_run *r, const struct admit_expr *e, uint64_t *budget,
                     struct hk_str *ret) HK_CHECKED;
/* The value of an ADMIT_OBJECT as JSON. */
int admit_run_object(struct admit_run *r, const struct admit_expr *e, uint64_t *budget,
                     struct json *ret) HK_CHECKED;
/* The value of an ADMIT_PATCH as a JSON patch. */
int admit_run_patch(struct admit_run *r, const struct admit_expr *e, uint64_t *budget,
                    struct json *ret) HK_CHECKED;
const char *admit_run_why(const struct admit_run *r);
