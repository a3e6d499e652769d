// SPDX-License-Identifier: Apache-2.0
// Shared by the rest_policy*.c files and the webhooks: admission policies with their compiled
// expressions, and the evaluation of them for one write.
#pragma once

#include "api/admit_expr.h"
#include "store/rest_webhook_priv.h"

enum {
    POLICY_REQUEST_BUDGET = 2 * ADMIT_BUDGET, /* cost of all policies in one write */
    POLICY_WORK = 32,                         /* of a unit of cost, as of rest.work */
    POLICY_MAX_PARAMS = 1000,                 /* objects that one binding may select */
    POLICY_MAX_MESSAGE = 5 << 10,             /* of messageExpression, in bytes */
    POLICY_MAX_NOTE = 10 << 10,               /* value of an audit annotation, in bytes */
};

/* ---- rest_policy_table.c ---- */

struct policy_validation {
    struct admit_expr *expr, *message_expr; /* the latter may be NULL */
    const char *why;                        /* of an expression that does not compile, else NULL */
    const char *message, *reason;           /* what to say when it does not hold */
};

struct policy_note { /* auditAnnotations */
    const char *key;
    struct admit_expr *expr;
    const char *why;
};

struct policy_mutation {
    struct admit_expr *expr;
    bool patch; /* JSONPatch, not ApplyConfiguration */
    const char *why;
};

/* A policy as it is stored; shared by the tables that it is part of. */
struct policy {
    uint32_t refs;
    uint64_t rv;
    struct hk_arena mem;
    const char *name;
    bool mutating;
    bool ignore;    /* failurePolicy */
    bool if_needed; /* reinvocationPolicy */
    struct webhook_terms terms;
    struct webhook_conditions conditions;
    struct admit_exprs exprs;
    const char *bad;                         /* why a variable does not compile, or NULL */
    struct hk_str param_version, param_kind; /* "": none */
    HK_VEC(struct policy_validation) validations;
    HK_VEC(struct policy_note) notes;
    HK_VEC(struct policy_mutation) mutations;
};

enum policy_action { POLICY_DENY = 1 << 0, POLICY_WARN = 1 << 1, POLICY_AUDIT = 1 << 2 };

struct policy_binding {
    const char *name;
    struct policy *policy;
    bool bound; /* has terms of its own */
    struct webhook_terms terms;
    const struct json *param_ref; /* NULL: none */
    const struct json *actions;   /* as written */
    unsigned acts;                /* enum policy_action */
};

/* All bindings whose policy exists, by the names of policy and binding: those of mutating policies
 * first. */
struct policy_table {
    uint32_t refs;
    struct hk_arena mem;
    HK_VEC(struct policy *) policies;
    HK_VEC(struct policy_binding) bindings;
    uint32_t nmutating; /* bindings */
};

/* The present table; NULL while no policy is bound. */
struct policy_table *policy_table(struct rest *r);
struct policy_table *policy_table_ref(struct policy_table *t);
/* Takes NULL. */
void policy_table_unref(struct policy_table *t);

/* ---- rest_policy_turn.c ---- */

/* What policies see of one write. Ready when zeroed, with c, s and left set. */
struct policy_turn {
    struct rest_call *c;
    const struct webhook_subject *s;
    const struct rest_kind *row; /* in whose version object and old are; NULL: not yet made */
    const struct json *object, *old, *ns;
    struct json request;
    uint64_t left; /* cost that may still be spent */
};

/* Starts the evaluation of expressions over the write as the row shows it. */
struct admit_run *policy_turn_run(struct policy_turn *t, const struct admit_exprs *x,
                                  const struct rest_kind *row, const struct json *params);
/* Whether the matchConditions hold. Negative when that is not known, with Kubernetes' words; never
 * if `ignore`: then the conditions do not hold. */
int policy_turn_match(struct policy_turn *t, struct admit_run *run,
                      const struct webhook_conditions *w, bool ignore, bool *ret,
                      const char **ret_why) HK_CHECKED;
/* The part of a budget that the write has left. policy_turn_spend takes what was used of it. */
uint64_t policy_turn_budget(const struct policy_turn *t, uint64_t budget);
void policy_turn_spend(struct policy_turn *t, uint64_t budget, uint64_t left);
/* Forgets the object: it has changed. */
void policy_turn_changed(struct policy_turn *t);

/* The parameters for a binding: at least one, which may be NULL, or none when the policy does not
 * apply. Negative with the reason. */
typedef HK_VEC(const struct json *) policy_params;
int policy_params_find(struct policy_turn *t, const struct policy_binding *b, policy_params *ret,
                       const char **ret_why) HK_CHECKED;
/* Why the policy's paramKind cannot be used, or NULL. */
const char *policy_params_check(struct rest_call *c, const struct policy *p);

/* ---- rest_policy.c ---- */

/* Changes the object as mutating policies say. marks has a byte per mutating binding:
 * WEBHOOK_INVOKED and WEBHOOK_AGAIN; in the second round only marked ones run. */
int policy_mutate(struct rest_call *c, struct webhook_subject *s, struct policy_table *table,
                  uint8_t *marks, bool second_round, bool *ret_changed);
/* Evaluates the validating policies. */
int policy_validate(struct rest_call *c, struct webhook_subject *s, struct policy_table *table);
