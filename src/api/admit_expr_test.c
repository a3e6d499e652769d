// SPDX-License-Identifier: Apache-2.0
// Expressions of admission policies: what compiles, the words of refusals, variables that are
// evaluated when needed, the authorizer, and values that change objects.
#include "api/admit_expr.h"
#include "codec/json_text_test.h"

struct bench {
    struct hk_arena mem;
    struct admit_exprs x;
    struct hk_buf asked; /* "[account ]verb group/resource/sub ns/name; " for each check */
    uint64_t budget;
};

static void bench_fini(struct bench *b)
{
    admit_exprs_fini(&b->x);
    hk_buf_fini(&b->asked);
    hk_arena_fini(&b->mem);
}

/* Allows what has the verb "get", and every path. */
static bool bench_allows(void *ctx, const struct admit_check *k)
{
    struct bench *b = ctx;
    const struct rights_ask *q = &k->ask;

    if (k->account_name.n > 0) {
        hk_buf_addf(&b->asked, "%.*s:%.*s ", HK_FMT(k->account_ns), HK_FMT(k->account_name));
    }
    if (k->path.n > 0) {
        hk_buf_addf(&b->asked, "%.*s %.*s; ", HK_FMT(q->verb), HK_FMT(k->path));
        return true;
    }
    hk_buf_addf(&b->asked, "%.*s %.*s/%.*s/%.*s %.*s/%.*s; ", HK_FMT(q->verb), HK_FMT(q->group),
                HK_FMT(q->resource), HK_FMT(q->sub), HK_FMT(q->ns), HK_FMT(q->name));
    return hk_str_is(q->verb, "get");
}

static struct admit_run *bench_run(struct bench *b)
{
    static const char object[] = "{'metadata':{'name':'o','labels':{'a':'b'}},'spec':{'n':3}}";
    struct json *docs = hk_arena_array(&b->mem, 3, sizeof(*docs));

    docs[0] = json_of_text(object, &b->mem);
    docs[1] = json_of_text("{'name':'o','operation':'CREATE','dryRun':false}", &b->mem);
    docs[2] = json_of_text("{'metadata':{'name':'n','uid':'u'}}", &b->mem);
    b->budget = ADMIT_BUDGET;
    const struct admit_input in = {
        .exprs = &b->x,
        .object = &docs[0],
        .request = &docs[1],
        .ns = &docs[2],
        .resource = {.group = HK_STR("g"), .resource = HK_STR("r"), .name = HK_STR("o")},
        .allows = bench_allows,
        .ctx = b,
        .mem = &b->mem,
    };
    return admit_run_new(&in);
}

/* What becomes of an expression: JSON of its value, "refused: ..." or "error: ...". */
static const char *outcome(struct bench *b, const char *text, enum admit_want want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct admit_expr *e;
    struct json v = {0};
    struct hk_str s = {0};
    const char *why;
    bool holds = false;
    int rc;

    if (admit_expr_add(&b->x, hk_str(text), want, true, &e, &why) < 0) {
        return hk_arena_printf(&b->mem, "refused: %s", why);
    }
    struct admit_run *r = bench_run(b);
    if (want == ADMIT_BOOL) {
        rc = admit_run_bool(r, e, &b->budget, &holds);
        v = json_make_bool(holds);
    } else if (want == ADMIT_STRING || want == ADMIT_NOTE) {
        rc = admit_run_string(r, e, &b->budget, &s);
        v = s.s ? json_make_str(s) : (struct json){.type = JSON_NULL};
    } else if (want == ADMIT_OBJECT) {
        rc = admit_run_object(r, e, &b->budget, &v);
    } else {
        rc = admit_run_patch(r, e, &b->budget, &v);
    }
    if (rc < 0) {
        return hk_arena_printf(&b->mem, "error: %s", admit_run_why(r));
    }
    json_write(&v, &out);
    return hk_arena_strndup(&b->mem, out.data, out.len);
}

static void test_outcomes(void **state)
{
    static const struct {
        enum admit_want want;
        const char *text, *outcome;
    } cases[] = {
        {ADMIT_BOOL, "object.spec.n == 3 && oldObject == null", "true"},
        {ADMIT_BOOL, "object.spec.n > 3", "false"},
        {ADMIT_BOOL, "object.spec.n", "refused: must evaluate to bool"},
        {ADMIT_BOOL, "object.spec.", "refused: compilation failed: ERROR: <input>:1:13: "},
        {ADMIT_BOOL, "params.x == 1",
         "refused: compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in "
         "container '')\n | params.x == 1\n | ^"},
        {ADMIT_BOOL, "variables.x", "refused: compilation failed: ERROR: <input>:1:1: undeclared"},
        {ADMIT_BOOL, "Object{} == null",
         "refused: compilation failed: ERROR: <input>:1:7: undeclared reference to 'Object'"},
        {ADMIT_BOOL, "request.name == 'o' && request.operation == 'CREATE' && !request.dryRun",
         "true"},
        {ADMIT_BOOL, "request.uid == ''",
         "refused: compilation failed: ERROR: <input>:1:8: undefined field 'uid'"},
        {ADMIT_BOOL, "namespaceObject.metadata.UID == 'u'", "true"},
        {ADMIT_BOOL, "namespaceObject.metadata.managedFields == null",
         "refused: compilation failed: ERROR: <input>:1:25: undefined field 'managedFields'"},
        {ADMIT_BOOL, "object.spec.m == 1",
         "error: expression 'object.spec.m == 1' resulted in error: no such key: m"},
        {ADMIT_STRING, "'n is ' + string(object.spec.n)", "\"n is 3\""},
        {ADMIT_STRING, "1", "refused: must evaluate to string"},
        {ADMIT_NOTE, "null", "null"},
        {ADMIT_NOTE, "'x'", "\"x\""},
        {ADMIT_NOTE, "true", "refused: must evaluate to one of [string null_type]"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct bench b = {0};
        const char *got = outcome(&b, cases[i].text, cases[i].want);
        const size_t n = strlen(cases[i].outcome);
        if (strncmp(got, cases[i].outcome, cases[i].outcome[0] == 'r' ? n : n + 1) != 0) {
            fail_msg("%s\nexpected: %s\n  actual: %s", cases[i].text, cases[i].outcome, got);
        }
        bench_fini(&b);
    }
}

static void test_changes(void **state)
{
    static const struct {
        enum admit_want want;
        const char *text, *outcome;
    } cases[] = {
        {ADMIT_OBJECT, "Object{spec: Object.spec{n: object.spec.n + 1}}", "{\"spec\":{\"n\":4}}"},
        {ADMIT_OBJECT, "Object{spec: Object.spec{list: [Object.spec.list{a: 1}]}}",
         "{\"spec\":{\"list\":[{\"a\":1}]}}"},
        {ADMIT_OBJECT, "object.spec.n > 1 ? Object{} : Object{spec: Object.spec{n: 0}}", "{}"},
        {ADMIT_OBJECT, "Object{?spec: optional.none()}", "{}"},
        {ADMIT_OBJECT, "{'spec': 1}", "refused: must evaluate to Object"},
        {ADMIT_OBJECT, "Object.spec{n: 1}", "refused: must evaluate to Object"},
        {ADMIT_OBJECT, "Object{spec: Object.status{n: 1}}",
         "error: type mismatch: unexpected type name \"Object.status\", expected \"Object.spec\", "
         "which matches field name path from root Object type"},
        {ADMIT_PATCH, "[JSONPatch{op: 'remove', path: '/a'}]",
         "[{\"op\":\"remove\",\"path\":\"/a\"}]"},
        {ADMIT_PATCH,
         "[JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('a/b~c'), value: {'x': [1]}}]",
         "[{\"op\":\"add\",\"path\":\"/a~1b~0c\",\"value\":{\"x\":[1]}}]"},
        {ADMIT_PATCH, "[JSONPatch{op: 'add', path: '/s', value: Object.spec{n: 1}}]",
         "[{\"op\":\"add\",\"path\":\"/s\",\"value\":{\"n\":1}}]"},
        {ADMIT_PATCH, "[JSONPatch{op: 'add', path: '/s', value: Object.a{b: Object.b{}}}]",
         "error: type mismatch: unexpected type name \"Object.b\", expected \"Object.a.b\", which "
         "matches field name path from root Object type"},
        {ADMIT_PATCH, "object.spec.n > 5 ? [JSONPatch{op: 'remove', path: '/a'}] : []", "[]"},
        {ADMIT_PATCH, "[JSONPatch{op: 1, path: '/a'}]",
         "error: expression '[JSONPatch{op: 1, path: '/a'}]' resulted in error: unexpected type "
         "integer for JSONPatchType 'op' field"},
        {ADMIT_PATCH, "[JSONPatch{op: 'add', way: '/a'}]",
         "error: expression '[JSONPatch{op: 'add', way: '/a'}]' resulted in error: unexpected "
         "JSONPatchType field: way"},
        {ADMIT_PATCH, "['x']", "refused: must evaluate to list(JSONPatch)"},
        {ADMIT_PATCH, "[Object{}]", "refused: must evaluate to list(JSONPatch)"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct bench b = {.x.patches = true};
        const char *got = outcome(&b, cases[i].text, cases[i].want);
        if (strcmp(got, cases[i].outcome) != 0) {
            fail_msg("%s\nexpected: %s\n  actual: %s", cases[i].text, cases[i].outcome, got);
        }
        bench_fini(&b);
    }
}

static void add_variable(struct bench *b, const char *name, const char *text)
{
    const char *why;

    b->x.variables = true;
    assert_int_equal(admit_expr_add_variable(&b->x, hk_str(name), hk_str(text), &why), 0);
}

static void test_variables(void **state)
{
    struct bench b = {0};

    add_variable(&b, "n", "object.spec.n");
    add_variable(&b, "double", "variables.n * 2");
    add_variable(&b, "broken", "object.none");
    assert_string_equal(outcome(&b, "variables.double == 6", ADMIT_BOOL), "true");
    assert_string_equal(outcome(&b, "variables.broken == 6", ADMIT_BOOL),
                        "error: expression 'variables.broken == 6' resulted in error: composited "
                        "variable \"broken\" fails to evaluate: no such key: none");
    const char *got = outcome(&b, "variables.later", ADMIT_BOOL);
    assert_non_null(strstr(got, "undefined field 'later'"));
    bench_fini(&b);
}

/* Variables that use one another cannot nest without end, and their cost counts. */
static void test_variables_are_bounded(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf deep = {0};
    struct bench b = {0};
    const char *why = "";
    char name[16];
    int rc = 0, i;

    for (int k = 0; k < 100; k++) {
        hk_buf_addc(&deep, '[');
    }
    hk_buf_adds(&deep, "1");
    for (int k = 0; k < 100; k++) {
        hk_buf_addc(&deep, ']');
    }
    b.x.variables = true;
    for (i = 0; rc == 0 && i < 100; i++) {
        snprintf(name, sizeof(name), "v%d", i);
        rc = admit_expr_add_variable(&b.x, hk_str(name), hk_buf_str(&deep), &why);
    }
    assert_int_equal(rc, -HK_ELIMIT);
    assert_in_range(i, 15, 25);
    assert_non_null(strstr(why, "nested more than 2000 levels deep"));
    bench_fini(&b);
}

#define TEN "[0,1,2,3,4,5,6,7,8,9]"
#define LOOP TEN ".all(a, " TEN ".all(b, " TEN ".all(c, " TEN ".all(d, a + b + c + d >= 0))))"

static void test_budget(void **state)
{
    struct bench b = {0};
    struct admit_expr *e;
    const char *why;
    bool holds;

    add_variable(&b, "slow", LOOP);
    assert_int_equal(admit_expr_add(&b.x, HK_STR("variables.slow"), ADMIT_BOOL, true, &e, &why), 0);
    struct admit_run *r = bench_run(&b);
    assert_int_equal(admit_run_bool(r, e, &b.budget, &holds), 0);
    const uint64_t cost = ADMIT_BUDGET - b.budget;
    assert_true(cost > 50000);
    /* evaluated once */
    assert_int_equal(admit_run_bool(r, e, &b.budget, &holds), 0);
    assert_true(ADMIT_BUDGET - b.budget < cost + 100);
    r = bench_run(&b);
    b.budget = 1000;
    assert_int_equal(admit_run_bool(r, e, &b.budget, &holds), -HK_ELIMIT);
    assert_string_equal(admit_run_why(r),
                        "validation failed due to running out of cost budget, no further "
                        "validation rules will be run");
    bench_fini(&b);
}

static void test_authorizer(void **state)
{
    static const struct {
        const char *text, *outcome, *asked;
    } cases[] = {
        {"authorizer.group('apps').resource('deployments').subresource('status').namespace('n')"
         ".name('x').check('get').allowed()",
         "true", "get apps/deployments/status n/x; "},
        {"authorizer.group('').resource('pods').check('delete').allowed()", "false",
         "delete /pods/ /; "},
        {"authorizer.path('/healthz').check('get').allowed()", "true", "get /healthz; "},
        {"authorizer.requestResource.check('get').allowed()", "true", "get g/r/ /o; "},
        {"authorizer.serviceAccount('n', 'robot').group('').resource('pods').check('get')"
         ".allowed()",
         "true", "n:robot get /pods/ /; "},
        {"authorizer.group('').resource('pods').check('get').errored()", "false", "get /pods/ /; "},
        {"authorizer.group('').check('get').allowed()",
         "error: expression 'authorizer.group('').check('get').allowed()' resulted in error: no "
         "such overload: check",
         ""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct bench b = {0};
        assert_string_equal(outcome(&b, cases[i].text, ADMIT_BOOL), cases[i].outcome);
        assert_string_equal(hk_buf_str(&b.asked).s, cases[i].asked);
        bench_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcomes),  cmocka_unit_test(test_changes),
        cmocka_unit_test(test_variables), cmocka_unit_test(test_variables_are_bounded),
        cmocka_unit_test(test_budget),    cmocka_unit_test(test_authorizer),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
