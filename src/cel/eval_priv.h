// SPDX-License-Identifier: Apache-2.0
// Evaluation of nodes, shared by eval.c and the macros in loop.c.
#pragma once

#include "cel/cel_priv.h"

int eval_node(struct cel_run *r, const struct cel_node *n, struct cel_value *ret);
int eval_macro(struct cel_run *r, const struct cel_node *n, struct cel_value *ret);
/* Evaluates to a bool; anything else is an error. */
int eval_bool(struct cel_run *r, const struct cel_node *n, bool *ret);
/* The text of the error just returned, for an error that another operand may absorb. */
const char *eval_keep_error(struct cel_run *r);
