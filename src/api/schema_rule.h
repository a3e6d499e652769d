// SPDX-License-Identifier: Apache-2.0
// The rules of x-kubernetes-validations in a compiled schema: CEL programs over the value of a node
// (self) and its value before the update (oldSelf).
#pragma once

#include "api/schema_priv.h"
#include "cel/cel.h"

struct schema_rule {
    struct hk_str text, message, reason; /* trimmed; reason may be empty */
    const char *field;                   /* fieldPath in the form of paths of errors: ".a[k]"; "" */
    struct cel_program *program;         /* NULL: the rule does not compile */
    struct cel_program *to_message;      /* messageExpression; may be NULL */
    bool uses_old;                       /* refers to oldSelf */
    bool optional_old;
    const char *why;         /* of a rule that does not compile */
    const char *message_why; /* of a messageExpression that does not */
};

/* Compiles the rules of all nodes below the root. Never fails: rules that do not compile are kept
 * as such, see schema_check_rules and schema_rules_hold. */
void schema_rules_compile(struct schema *s);
/* Frees what is not in the schema's arena. */
void schema_rules_free(struct schema_node *n);

/* Evaluates the rules for the object; old is NULL for a new one. Reports what does not hold. */
typedef void schema_rule_report(void *ctx, const char *reason, const struct schema_path *at,
                                const char *field, const char *message);
void schema_rules_hold(const struct schema *s, const struct json *obj, const struct json *old,
                       struct hk_arena *a, schema_rule_report *report, void *ctx);
