// SPDX-License-Identifier: Apache-2.0
// Programs: text is parsed and checked into a tree that lives in the program's own arena.
#include "cel/cel_priv.h"
#include "cel/eval_priv.h"

static int program_build(struct cel_source *src, const struct cel_env *env, struct cel_program *p)
{
    if (src->text.n > CEL_TEXT_MAX) {
        hk_buf_addf(&src->issues, "expression of %zu bytes, want at most %d", src->text.n,
                    CEL_TEXT_MAX);
        return -HK_ELIMIT;
    }
    /* One more byte, so that a position at the end is inside of the text. */
    src->text.s = hk_arena_strndup(src->a, src->text.s ? src->text.s : "", src->text.n);
    const int rc = parse_expression(src, &p->root);
    return rc < 0 ? rc : cel_check_program(src, env, p);
}

int cel_compile(struct hk_str text, const struct cel_env *env, struct cel_program **ret,
                struct hk_err *err)
{
    struct cel_program *p = hk_zalloc(sizeof(*p));
    struct cel_source src = {.text = text, .a = &p->arena};
    int rc = program_build(&src, env, p);

    if (rc < 0) {
        const struct hk_str why = hk_str_head(hk_buf_str(&src.issues), 480);
        hk_err_set(err, -rc, "%.*s", HK_FMT(why));
        cel_program_free(p);
    } else {
        *ret = p;
    }
    hk_buf_fini(&src.issues);
    return rc;
}

void cel_program_free(struct cel_program *p)
{
    if (!p) {
        return;
    }
    for (uint32_t i = 0; i < p->patterns.len; i++) {
        re2_free(p->patterns.at[i]);
    }
    hk_vec_fini(&p->patterns);
    hk_arena_fini(&p->arena);
    hk_free(p);
}

bool cel_program_uses(const struct cel_program *p, uint32_t var)
{
    return p->used >> HK_MIN(var, 63U) & 1;
}

const struct cel_type *cel_program_type(const struct cel_program *p)
{
    return p->type;
}

uint32_t cel_program_height(const struct cel_program *p)
{
    return p->root->height;
}

int cel_eval(const struct cel_program *p, const struct cel_value *vars, uint64_t *budget,
             struct hk_arena *a, struct cel_value *ret, struct hk_err *err)
{
    const uint64_t limit = budget ? HK_MIN(*budget, (uint64_t)CEL_CALL_LIMIT) : CEL_CALL_LIMIT;
    struct hk_err scratch = {0};
    struct cel_run r = {
        .p = p,
        .vars = vars,
        .locals = hk_arena_array(a, p->nlocals, sizeof(struct cel_value)),
        .a = a,
        .err = err ? err : &scratch,
        .left = limit,
    };
    const int rc = eval_node(&r, p->root, ret);

    if (budget) {
        *budget -= limit - r.left;
    }
    return rc;
}
