// SPDX-License-Identifier: Apache-2.0
// Macros: calls whose arguments are not evaluated first. They become nodes of their own: has() a
// test for a field, cel.bind() a variable, and the loops over lists and maps one node each.
#include "cel/cel_priv.h"

/* nargs does not count the receiver: variables, a filter if there is one more, and the body. */
static const struct {
    const char *name;
    uint32_t nargs;
    uint8_t nvars;
    enum cel_macro op;
} macros[] = {
    {"all", 2, 1, MACRO_ALL},
    {"all", 3, 2, MACRO_ALL},
    {"exists", 2, 1, MACRO_EXISTS},
    {"exists", 3, 2, MACRO_EXISTS},
    {"exists_one", 2, 1, MACRO_EXISTS_ONE},
    {"exists_one", 3, 2, MACRO_EXISTS_ONE},
    {"existsOne", 2, 1, MACRO_EXISTS_ONE},
    {"existsOne", 3, 2, MACRO_EXISTS_ONE},
    {"map", 2, 1, MACRO_MAP},
    {"map", 3, 1, MACRO_MAP},
    {"filter", 2, 1, MACRO_FILTER},
    {"transformList", 3, 2, MACRO_TRANSFORM_LIST},
    {"transformList", 4, 2, MACRO_TRANSFORM_LIST},
    {"transformMap", 3, 2, MACRO_TRANSFORM_MAP},
    {"transformMap", 4, 2, MACRO_TRANSFORM_MAP},
    {"transformMapEntry", 3, 2, MACRO_TRANSFORM_ENTRY},
    {"transformMapEntry", 4, 2, MACRO_TRANSFORM_ENTRY},
    {"sortBy", 2, 1, MACRO_SORT_BY},
    {"optMap", 2, 1, MACRO_OPT_MAP},
    {"optFlatMap", 2, 1, MACRO_OPT_FLAT_MAP},
};

static int macro_has(struct cel_source *src, struct cel_node *call)
{
    const struct cel_node *field = call->args[0];

    if (field->kind != NODE_SELECT) {
        return cel_issue(src, field->at, "invalid argument to has() macro");
    }
    call->kind = NODE_HAS;
    call->at = field->at;
    call->name = field->name;
    call->optional = field->optional;
    call->args = field->args;
    call->nargs = 1;
    return 0;
}

static int macro_variable(struct cel_source *src, const struct cel_node *n, struct hk_str *ret)
{
    if (n->kind != NODE_IDENT) {
        return cel_issue(src, n->at, "argument must be a simple name");
    }
    *ret = n->name;
    return 0;
}

/* cel.bind(name, value, body), which was read as a call of a variable "cel". */
static int macro_bind(struct cel_source *src, struct cel_node *call)
{
    const int rc = macro_variable(src, call->args[1], &call->name);

    call->kind = NODE_BIND;
    call->args += 2;
    call->nargs = 2;
    return rc;
}

/* args: range, variables, [filter,] body. The variables are taken out. */
static int macro_loop(struct cel_source *src, struct cel_node *call, uint8_t nvars,
                      enum cel_macro op)
{
    int rc = macro_variable(src, call->args[1], &call->name);

    if (rc == 0 && nvars == 2) {
        rc = macro_variable(src, call->args[2], &call->second);
    }
    if (rc == 0 && nvars == 2 && hk_str_eq(call->name, call->second)) {
        rc = cel_issue(src, call->args[2]->at, "duplicate variable name: %.*s",
                       HK_FMT(call->second));
    }
    call->kind = NODE_MACRO;
    call->op = op;
    call->nvars = nvars;
    call->args[nvars] = call->args[0];
    call->args += nvars;
    call->nargs -= nvars;
    return rc;
}

int macro_expand(struct cel_source *src, struct cel_node *call)
{
    if (!call->receiver) {
        return hk_str_is(call->name, "has") && call->nargs == 1 ? macro_has(src, call) : 0;
    }
    if (hk_str_is(call->name, "bind") && call->nargs == 4 && call->args[0]->kind == NODE_IDENT &&
        hk_str_is(call->args[0]->name, "cel")) {
        return macro_bind(src, call);
    }
    for (size_t i = 0; i < HK_LEN(macros); i++) {
        if (hk_str_is(call->name, macros[i].name) && call->nargs == macros[i].nargs + 1) {
            return macro_loop(src, call, macros[i].nvars, macros[i].op);
        }
    }
    return 0;
}
