// SPDX-License-Identifier: Apache-2.0
// Reference-counted objects and merge patches.
#include "api/object.h"

#include "api/patch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void object_knows_its_identity(void **state)
{
    char text[] = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
                  "\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"42\"},\"x\":1}";
    struct api_object *o = NULL;

    assert_int_equal(api_object_parse(NULL, hk_str(text), &o, NULL), 0);
    memset(text, 'z', sizeof(text) - 1); /* the object has its own copy */
    assert_ptr_equal(o->kind, api_kind(API_POD));
    assert_true(hk_str_is(o->name, "a"));
    assert_true(hk_str_is(o->ns, "n"));
    assert_true(hk_str_is(o->uid, "u"));
    assert_int_equal(o->rv, 42);
    assert_int_equal(json_int(json_get(&o->root, "x"), 0), 1);
    api_object_unref(o);
}

static void object_lives_until_the_last_reference(void **state)
{
    struct hk_arena a = {0};
    struct json meta = json_make_object();
    struct json doc = json_make_object();
    struct api_object *o = NULL;

    json_set_cstr(&meta, &a, "name", "q");
    json_set(&doc, &a, "metadata", meta);
    assert_int_equal(api_object_new(api_kind(API_QUEUE), &doc, &o, NULL), 0);
    hk_arena_fini(&a);
    assert_ptr_equal(api_object_ref(o), o);
    api_object_unref(o);
    assert_true(hk_str_is(o->name, "q"));
    assert_int_equal(o->rv, 0);
    api_object_unrefp(&o);
    api_object_unref(NULL);
}

static void bad_objects_are_refused(void **state)
{
    static const struct {
        const char *json, *text;
    } cases[] = {
        {"[]", "want an API object, have array"},
        {"{\"kind\":\"Pod\"}", "no kind 'Pod' in version ''"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":1}}",
         "metadata.name: want string, have integer"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"x\"}}",
         "metadata.resourceVersion: bad value 'x'"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"-1\"}}",
         "metadata.resourceVersion: bad value '-1'"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct api_object *o = NULL;
        struct hk_err err = {0};
        const int rc = api_object_parse(NULL, hk_str(cases[i].json), &o, &err);
        if (rc != -HK_EINVAL || o || strcmp(err.text, cases[i].text) != 0) {
            fail_msg("%s\nexpected %s\nhave     %s", cases[i].json, cases[i].text, err.text);
        }
    }
}

/* The examples of RFC 7386, appendix A. */
static void merge_patch_follows_the_rfc(void **state)
{
    static const struct {
        const char *target, *patch, *result;
    } cases[] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        struct json target;
        struct json patch;
        assert_int_equal(json_parse(hk_str(cases[i].target), 0, &a, &target, NULL), 0);
        assert_int_equal(json_parse(hk_str(cases[i].patch), 0, &a, &patch, NULL), 0);
        api_patch_merge(&target, &patch, &a);
        json_write(&target, &out);
        assert_string_equal(out.data, cases[i].result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(object_knows_its_identity),
        cmocka_unit_test(object_lives_until_the_last_reference),
        cmocka_unit_test(bad_objects_are_refused),
        cmocka_unit_test(merge_patch_follows_the_rfc),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("api/object", tests, NULL, NULL);
}
