// SPDX-License-Identifier: Apache-2.0
// CEL: the first line is an expression, the rest JSON for the variable self, which has no type, and
// for typed, whose fields have. No expression may crash, take long or use much memory; the same
// input gives the same result at the same cost, and a result that has a form in JSON can be written.
#include "cel/cel.h"
#include "fuzz/fuzz.h"

enum { BUDGET = 20000 };

static const struct cel_type text_type = {.kind = CEL_STRING}, int_type = {.kind = CEL_INT};
static const struct cel_type time_type = {.kind = CEL_TIMESTAMP};
static const struct cel_type set_type = {
    .kind = CEL_LIST, .elem = &text_type, .list = CEL_LIST_SET};
static const struct cel_type labels_type = {.kind = CEL_MAP, .elem = &text_type};
static const struct cel_field fields[] = {
    {HK_STR("s"), HK_STR("s"), &text_type},   {HK_STR("i"), HK_STR("i"), &int_type},
    {HK_STR("t"), HK_STR("t"), &time_type},   {HK_STR("l"), HK_STR("l"), &set_type},
    {HK_STR("m"), HK_STR("m"), &labels_type},
};
static const struct cel_type typed = {
    .kind = CEL_OBJECT, .fields = fields, .nfields = HK_LEN(fields)};

/* Evaluates and appends the result, or the reason why there is none. */
static uint64_t evaluate(const struct cel_program *p, const struct json *doc, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct cel_value vars[] = {cel_of_json(doc, NULL, &a), cel_of_json(doc, &typed, &a)};
    uint64_t budget = BUDGET;
    struct cel_value v;
    struct hk_err err = {0};
    struct json result;

    if (cel_eval(p, vars, &budget, &a, &v, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        hk_buf_adds(out, err.text);
    } else if (cel_to_json(v, &a, &result, NULL) == 0) {
        json_write(&result, out);
    }
    hk_assert(budget <= BUDGET);
    return budget;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf first = {0}, second = {0};
    static const struct cel_var vars[] = {{HK_STR("self"), NULL}, {HK_STR("typed"), &typed}};
    static const char *const structs[] = {"Object", NULL};
    const struct cel_env env = {.vars = vars, .nvars = HK_LEN(vars), .structs = structs};
    struct hk_str text = {(const char *)data, size}, expr;
    struct cel_program *p;
    struct hk_err err = {0};
    struct json doc = {0};

    if (!hk_str_cut(&text, '\n', &expr)) {
        return 0;
    }
    if (text.n > 0 && json_parse(text, 0, &a, &doc, NULL) < 0) {
        doc = (struct json){0};
    }
    if (cel_compile(expr, &env, &p, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        return 0;
    }
    hk_assert(evaluate(p, &doc, &first) == evaluate(p, &doc, &second));
    hk_assert(hk_str_eq(hk_buf_str(&first), hk_buf_str(&second)));
    cel_program_free(p);
    return 0;
}
