// SPDX-License-Identifier: Apache-2.0
// Targets: the URL grammar of the API, and queries.
#include "apiserver/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void describe(const struct route *r, struct hk_buf *out)
{
    if (!r->resource) {
        hk_buf_addf(out, "path %.*s", HK_FMT(r->path));
        return;
    }
    hk_buf_addf(out, "%s%.*s/%.*s ns=%.*s %.*s name=%.*s sub=%.*s rest=%.*s",
                r->watch ? "watch " : "", HK_FMT(r->group), HK_FMT(r->version), HK_FMT(r->ns),
                HK_FMT(r->plural), HK_FMT(r->name), HK_FMT(r->sub), HK_FMT(r->rest));
}

static void test_paths(void **state)
{
    static const struct {
        const char *path, *want;
    } cases[] = {
        {"/", "path /"},
        {"/api", "path /api"},
        {"/api/v1/", "path /api/v1"},
        {"/apis/apps/v1", "path /apis/apps/v1"},
        {"/healthz/ping", "path /healthz/ping"},
        {"/api/v1/pods", "/v1 ns= pods name= sub= rest="},
        {"/api/v1/nodes/n1/status", "/v1 ns= nodes name=n1 sub=status rest="},
        {"/api/v1/namespaces", "/v1 ns= namespaces name= sub= rest="},
        {"/api/v1/namespaces/a", "/v1 ns= namespaces name=a sub= rest="},
        {"/api/v1/namespaces/a/status", "/v1 ns= namespaces name=a sub=status rest="},
        {"/api/v1/namespaces/a/finalize", "/v1 ns= namespaces name=a sub=finalize rest="},
        {"/api/v1/namespaces/a/pods", "/v1 ns=a pods name= sub= rest="},
        {"/api/v1/namespaces/a/pods/p/log", "/v1 ns=a pods name=p sub=log rest="},
        {"/api/v1/namespaces/a/pods/p/proxy/x/y%20z",
         "/v1 ns=a pods name=p sub=proxy rest=x/y%20z"},
        {"/api/v1/namespaces/a/pods/p:80/proxy", "/v1 ns=a pods name=p:80 sub=proxy rest="},
        {"/api/v1/namespaces/a/pods/p:80/proxy/", "/v1 ns=a pods name=p:80 sub=proxy rest="},
        {"/api/v1/namespaces/a/services/s/proxy//a/../%2F%zz/",
         "/v1 ns=a services name=s sub=proxy rest=/a/../%2F%zz/"},
        {"/api/v1/nodes/n/proxy/1/2/3/4/5/6/7/8/9/10/11/12/13/14",
         "/v1 ns= nodes name=n sub=proxy rest=1/2/3/4/5/6/7/8/9/10/11/12/13/14"},
        {"/apis/apps/v1/namespaces/a/deployments/d/scale",
         "apps/v1 ns=a deployments name=d sub=scale rest="},
        {"/api/v1/watch/namespaces/a/pods", "watch /v1 ns=a pods name= sub= rest="},
        {"/api/v1/namespaces/status/pods", "/v1 ns=status pods name= sub= rest="},
        {"/api/v1/namespaces/a/pods/p%2Dq", "/v1 ns=a pods name=p-q sub= rest="},
        {"/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
         "rbac.authorization.k8s.io/v1 ns= clusterroles name=system:node sub= rest="},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
        struct hk_err err = {0};
        struct route r;

        if (route_parse(hk_str(cases[k].path), &a, &r, &err) < 0) {
            fail_msg("%s: %s", cases[k].path, err.text);
        }
        describe(&r, &got);
        if (strcmp(got.data, cases[k].want) != 0) {
            fail_msg("%s: expected '%s', got '%s'", cases[k].path, cases[k].want, got.data);
        }
    }
}

static void test_paths_that_lie_about_their_segments_are_refused(void **state)
{
    static const struct {
        const char *path;
        int rc;
    } cases[] = {
        {"", -HK_ENOTFOUND},
        {"api/v1/pods", -HK_ENOTFOUND},
        {"/api//v1/pods", -HK_EINVAL},
        {"/api/v1/namespaces/a/pods/..", -HK_EINVAL},
        {"/api/v1/namespaces/../pods", -HK_EINVAL},
        {"/api/v1/namespaces/%2e%2e/pods", -HK_EINVAL},
        {"/api/v1/namespaces/a/pods/p%2Fq", -HK_EINVAL},
        {"/api/v1/namespaces/a/pods/p%00", -HK_EINVAL},
        {"/api/v1/namespaces/a/pods/p%0a", -HK_EINVAL},
        {"/api/v1/namespaces/a/pods/p%2", -HK_EINVAL},
        {"/api/v1/namespaces/a/pods/p%zz", -HK_EINVAL},
        {"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", -HK_ENOTFOUND},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        struct hk_err err = {0};
        struct route r;

        const int rc = route_parse(hk_str(cases[k].path), &a, &r, &err);
        if (rc != cases[k].rc) {
            fail_msg("%s: expected %d, got %d", cases[k].path, cases[k].rc, rc);
        }
    }
}

static void test_queries(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct hk_err err = {0};
    struct query q;

    const char *text = "labelSelector=a%3Db%2Cc+in+%28d%29&watch&limit=5&limit=6&&off=false&zero=0";
    assert_int_equal(query_parse(hk_str(text), &a, &q, &err), 0);
    assert_string_equal(query_get(&q, "labelSelector").s, "a=b,c in (d)");
    assert_string_equal(query_get(&q, "limit").s, "5");
    assert_int_equal(query_get(&q, "absent").n, 0);
    assert_true(query_has(&q, "watch"));
    assert_true(query_bool(&q, "watch"));
    assert_false(query_bool(&q, "off"));
    assert_false(query_bool(&q, "zero"));
    assert_false(query_bool(&q, "absent"));
    assert_int_equal(query_parse(HK_STR("a=%4"), &a, &q, &err), -HK_EINVAL);
    assert_int_equal(query_parse(HK_STR(""), &a, &q, &err), 0);
    assert_int_equal(q.len, 0);
}

static void test_too_many_parameters_are_refused(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_err err = {0};
    struct query q;

    for (int k = 0; k < QUERY_MAX; k++) {
        hk_buf_adds(&text, "a=b&");
    }
    assert_int_equal(query_parse(hk_buf_str(&text), &a, &q, &err), 0);
    assert_int_equal(q.len, QUERY_MAX);
    hk_buf_adds(&text, "c=d");
    assert_int_equal(query_parse(hk_buf_str(&text), &a, &q, &err), -HK_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_paths_that_lie_about_their_segments_are_refused),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_too_many_parameters_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
