// SPDX-License-Identifier: Apache-2.0
// State of the checker, shared by its two files.
#pragma once

#include "cel/cel_priv.h"

/* A variable of a macro, visible in its body. */
struct check_scope {
    const struct check_scope *up;
    struct hk_str name;
    const struct cel_type *type;
    uint32_t slot;
};

struct checker {
    struct cel_source *src;
    const struct cel_env *env;
    struct cel_program *p;
    const struct check_scope *scope;
    uint32_t nlocals;
    bool mixed; /* inside of the arguments of format(), whose list may hold any types */
};

/* The type of the node's value; problems are added to the source, and the type then is dyn. */
const struct cel_type *cel_check_node(struct checker *c, struct cel_node *n);
const struct cel_type *cel_check_operator(struct checker *c, struct cel_node *n);
const struct cel_type *cel_check_macro(struct checker *c, struct cel_node *n);

const struct cel_type *cel_check_dyn(void);
const struct cel_type *cel_check_no_overload(struct checker *c, const struct cel_node *n,
                                             const char *name, const struct cel_type *const *types);
/* A new variable; assign its address to c->scope, and end it with cel_check_pop. */
struct check_scope cel_check_push(struct checker *c, struct hk_str name,
                                  const struct cel_type *type);
void cel_check_pop(struct checker *c, const struct check_scope *s);
