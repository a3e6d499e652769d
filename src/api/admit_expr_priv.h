// SPDX-License-Identifier: Apache-2.0
// Shared by the admit_*.c files only: the places of variables, and the objects behind "authorizer".
#pragma once

#include "api/admit_expr.h"
#include "cel/cel.h"

/* Places in the list of variables that CEL gets. */
enum admit_slot {
    ADMIT_SLOT_OBJECT,
    ADMIT_SLOT_OLD,
    ADMIT_SLOT_REQUEST,
    ADMIT_SLOT_NAMESPACE,
    ADMIT_SLOT_PARAMS,
    ADMIT_SLOT_AUTHORIZER,
    ADMIT_SLOT_VARIABLES,
    ADMIT_NSLOTS,
};

struct admit_expr {
    struct hk_str text, name; /* name: of a variable */
    struct cel_program *program;
};

struct admit_run {
    struct admit_input in;
    struct cel_value slots[ADMIT_NSLOTS];
    struct cel_value *values; /* of variables */
    bool *known;              /* of these, which were evaluated */
    uint64_t spent;           /* by variables during the present evaluation */
    uint64_t left;            /* that they may spend */
    struct cel_native variables;
    const char *why;
};

/* admit_type.c: declared types of "request" and "namespaceObject". */
const struct cel_type *admit_type_request(void);
const struct cel_type *admit_type_namespace(void);

/* admit_authorizer.c: the value of "authorizer". */
struct cel_value admit_authorizer_value(const struct admit_run *r);
