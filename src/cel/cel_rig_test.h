// SPDX-License-Identifier: Apache-2.0
// For the tests of CEL: compiles an expression, evaluates it over bindings given as JSON, and gives
// the result as text: JSON, "error: ..." or "refused: ...".
#pragma once

#include "cel/cel.h"
#include "codec/json_text_test.h"

/* One row of a table: an expression, its bindings ("" for none), and the text expected. */
struct cel_case {
    const char *expr, *bindings, *want;
};

enum { CEL_RIG_VARS = 16 };

/* Appends what became of it. */
static inline void cel_rig_eval(const char *expr, const struct cel_env *env,
                                const struct cel_value *vars, uint64_t *budget, struct hk_arena *a,
                                struct hk_buf *out)
{
    struct cel_program *p = NULL;
    struct cel_value v;
    struct json doc;
    struct hk_err err = {0};

    if (cel_compile(hk_str(expr), env, &p, &err) < 0) {
        hk_buf_addf(out, "refused: %s", err.text);
        return;
    }
    if (cel_eval(p, vars, budget, a, &v, &err) < 0 || cel_to_json(v, a, &doc, &err) < 0) {
        hk_buf_addf(out, "error: %s", err.text);
    } else {
        json_write(&doc, out);
    }
    cel_program_free(p);
}

/* Binds every member of the object as a variable of its own. */
static inline void cel_rig_run(const char *expr, const char *bindings, struct hk_arena *a,
                               struct hk_buf *out)
{
    const struct json doc = json_of_text(bindings[0] ? bindings : "{}", a);
    struct cel_var vars[CEL_RIG_VARS];
    struct cel_value values[CEL_RIG_VARS];
    const struct cel_env env = {.vars = vars, .nvars = doc.len};

    for (uint32_t i = 0; i < doc.len; i++) {
        vars[i] = (struct cel_var){doc.members[i].key, NULL};
        values[i] = cel_of_json(&doc.members[i].value, NULL, a);
    }
    cel_rig_eval(expr, &env, values, NULL, a, out);
}

static inline void cel_rig_check(const struct cel_case *cases, size_t len)
{
    size_t wrong = 0;

    for (size_t i = 0; i < len; i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        cel_rig_run(cases[i].expr, cases[i].bindings, &a, &out);
        if (strcmp(hk_buf_str(&out).s, cases[i].want) != 0) {
            print_message("# %s with %s\n# expected %s\n# actual   %s\n", cases[i].expr,
                          cases[i].bindings, cases[i].want, hk_buf_str(&out).s);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}
