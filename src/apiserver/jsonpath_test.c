// SPDX-License-Identifier: Apache-2.0
// Paths of printer columns, and what they find.
#include "apiserver/jsonpath.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void collect(void *ctx, const struct json *v)
{
    struct hk_buf *out = ctx;

    if (out->len > 0) {
        hk_buf_addc(out, ' ');
    }
    json_write(v, out);
}

static void finds_values(void **state)
{
    static const char doc[] =
        "{\"a\":{\"b\":1,\"x/y.z\":\"odd\"},\"list\":[{\"t\":\"A\",\"n\":1,\"ok\":true},"
        "{\"t\":\"B\",\"n\":2}]}";
    static const struct {
        const char *path, *want;
    } cases[] = {
        {".a.b", "1"},
        {"{.a.b}", "1"},
        {"$.a.b", "1"},
        {".a['x/y.z']", "\"odd\""},
        {".a[\"x/y.z\"]", "\"odd\""},
        {".list[1].t", "\"B\""},
        {".list[-1].t", "\"B\""},
        {".list[2].t", ""},
        {".list[-1:].t", "\"B\""},
        {".list[0:1].t", "\"A\""},
        {".list[:].n", "1 2"},
        {".list[1:].n", "2"},
        {".list[:-1].n", "1"},
        {".list[0:9].n", "1 2"},
        {".list[::2].n", "1"},
        {".list[::9223372036854775807].n", "1"},
        {".list[-9:].n", ""},
        {".list[9223372036854775807:].n", ""},
        {".list[-9223372036854775808:].n", ""},
        {".list[::0].n", ""},
        {".list[::-1].n", ""},
        {".list[0:1:1:1].n", ""},
        {".list[a:b].n", ""},
        {".a[0:].b", ""},
        {".list[*].n", "1 2"},
        {".a.*", "1 \"odd\""},
        {".list[?(@.t==\"B\")].n", "2"},
        {".list[?(@.t == 'A')].n", "1"},
        {".list[?(@.t!='A')].n", "2"},
        {".list[?(@.n==2)].t", "\"B\""},
        {".list[?(@.ok==true)].t", "\"A\""},
        {".missing.b", ""},
        {".a.b.c", ""},
        {".list[", ""},
        {".list[]", ""},
        {".list[?(@.t)]", ""},
        {"a", ""},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
        struct json root;
        assert_int_equal(json_parse(hk_str(doc), 0, &mem, &root, NULL), 0);
        jsonpath_each(&root, hk_str(cases[k].path), collect, &have);
        if (!hk_str_is(hk_buf_str(&have), cases[k].want)) {
            fail_msg("%s: want %s, have %s", cases[k].path, cases[k].want, hk_buf_str(&have).s);
        }
    }
}

static void refuses_endless_paths(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
    const struct json root = json_make_int(1);

    for (int k = 0; k < 1000000; k++) {
        hk_buf_addc(&path, '.');
    }
    jsonpath_each(&root, hk_buf_str(&path), collect, &have);
    assert_int_equal(have.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_values),
        cmocka_unit_test(refuses_endless_paths),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
