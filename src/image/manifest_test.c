// SPDX-License-Identifier: Apache-2.0
// Manifests, configurations and lists of saved images give what imports rely on, or are refused.

#include "image/manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BLOB "{\"digest\":\"sha256:" HEX "\",\"size\":7}"

static struct hk_arena mem;

static struct json parsed(const char *text)
{
    struct json doc;

    assert_int_equal(image_document_parse(hk_str(text), &mem, &doc, NULL), 0);
    return doc;
}

static void test_a_manifest_lists_its_layers(void **state)
{
    const struct json doc = parsed("{\"config\":" BLOB ",\"layers\":[" BLOB "," BLOB "]}");
    struct image_manifest m;

    assert_int_equal(image_manifest_parse(&doc, &mem, &m, NULL), 0);
    assert_int_equal(m.nlayer, 2);
    assert_int_equal(m.layers[1].size, 7);
    assert_string_equal(m.config.digest.hex, HEX);
    assert_false(image_is_index(&doc));
}

static void test_bad_manifests_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"[]", "config: digest"},
        {"{\"config\":{\"digest\":\"sha256:" HEX "\"}}", "has no size"},
        {"{\"config\":{\"digest\":\"sha256:" HEX "\",\"size\":-1}}", "has no size"},
        {"{\"config\":" BLOB ",\"layers\":[{\"digest\":\"sha512:1\"}]}", "layer 0: digest"},
        {"{\"config\":" BLOB ",\"layers\":[{\"digest\":\"sha256:" HEX
         "\",\"size\":1,\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+encrypted\"}]}",
         "is of type"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct json doc = parsed(cases[i].text);
        struct image_manifest m;
        struct hk_err err = {0};

        assert_true(image_manifest_parse(&doc, &mem, &m, &err) < 0);
        assert_non_null(strstr(err.text, cases[i].why));
    }
}

static void test_the_number_of_layers_has_a_limit(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct image_manifest m;

    hk_buf_adds(&text, "{\"config\":" BLOB ",\"layers\":[" BLOB);
    for (int i = 1; i <= IMAGE_LAYERS_MAX; i++) {
        hk_buf_adds(&text, "," BLOB);
    }
    hk_buf_adds(&text, "]}");
    const struct json doc = parsed(text.data);
    assert_int_equal(image_manifest_parse(&doc, &mem, &m, NULL), -HK_ELIMIT);
}

static void test_depth_and_size_have_limits(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json doc;

    for (int i = 0; i < IMAGE_DEPTH_MAX; i++) {
        hk_buf_addc(&text, '[');
    }
    for (int i = 0; i < IMAGE_DEPTH_MAX; i++) {
        hk_buf_addc(&text, ']');
    }
    assert_int_equal(image_document_parse(hk_buf_str(&text), &mem, &doc, NULL), 0);
    hk_buf_clear(&text);
    hk_buf_addf(&text, "%s%s", "[[[[[[[[[[[[[[[[[[[[[[[[[", "]]]]]]]]]]]]]]]]]]]]]]]]]");
    assert_int_equal(image_document_parse(hk_buf_str(&text), &mem, &doc, NULL), -HK_ELIMIT);
    hk_buf_reserve(&text, IMAGE_DOCUMENT_MAX + 2);
    memset(text.data, ' ', IMAGE_DOCUMENT_MAX + 1);
    assert_int_equal(
        image_document_parse((struct hk_str){text.data, IMAGE_DOCUMENT_MAX + 1}, &mem, &doc, NULL),
        -HK_ELIMIT);
}

static void test_a_configuration_says_how_to_run(void **state)
{
    const struct json doc = parsed(
        "{\"os\":\"linux\",\"architecture\":\"amd64\",\"config\":{\"User\":\"app:1\",\"Env\":[\"A="
        "b\"],"
        "\"Entrypoint\":[\"/e\"],\"Cmd\":null,\"WorkingDir\":\"/w\",\"StopSignal\":\"SIGINT\"},"
        "\"rootfs\":{\"diff_ids\":[\"sha256:" HEX "\"]}}");
    struct image_config c;

    assert_int_equal(image_config_parse(&doc, &mem, &c, NULL), 0);
    assert_true(hk_str_is(c.user, "app:1") && hk_str_is(c.cwd, "/w"));
    assert_true(c.nenv == 1 && c.nentrypoint == 1 && c.ncmd == 0 && c.nlayer == 1);
    assert_true(hk_str_is(c.stop_signal, "SIGINT"));
}

static void test_bad_configurations_are_refused(void **state)
{
    static const char *const cases[] = {
        "[]",
        "{\"config\":{\"Env\":[1]}}",
        "{\"config\":{\"Cmd\":[\"a\",null]}}",
        "{\"rootfs\":{\"diff_ids\":[\"sha256:12\"]}}",
        "{\"rootfs\":{\"diff_ids\":[{}]}}",
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct json doc = parsed(cases[i]);
        struct image_config c;

        assert_int_equal(image_config_parse(&doc, &mem, &c, NULL), -HK_EINVAL);
    }
}

static void test_platforms_fit_this_machine(void **state)
{
    assert_true(image_platform_fits(HK_STR("linux"), hk_str(image_architecture())));
    assert_true(image_platform_fits(HK_STR(""), HK_STR("")));
    assert_false(image_platform_fits(HK_STR("windows"), hk_str(image_architecture())));
    assert_false(image_platform_fits(HK_STR("linux"), HK_STR("sparc")));
    assert_false(image_platform_fits(HK_STR("unknown"), HK_STR("unknown")));
}

static void test_saved_images_name_their_files(void **state)
{
    const struct json doc = parsed(
        "{\"Config\":\"c.json\",\"RepoTags\":[\"a:1\",\"a:2\"],\"Layers\":[\"l/layer.tar\"]}");
    const struct json none = parsed("{\"Config\":\"c.json\",\"RepoTags\":null,\"Layers\":null}");
    const struct json bad = parsed("{\"Layers\":[]}");
    struct image_saved s;

    assert_int_equal(image_saved_parse(&doc, &mem, &s, NULL), 0);
    assert_true(s.nname == 2 && s.nlayer == 1 && hk_str_is(s.config, "c.json"));
    assert_int_equal(image_saved_parse(&none, &mem, &s, NULL), 0);
    assert_true(s.nname == 0 && s.nlayer == 0);
    assert_int_equal(image_saved_parse(&bad, &mem, &s, NULL), -HK_EINVAL);
}

static int teardown(void **state)
{
    hk_arena_fini(&mem);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_manifest_lists_its_layers),
        cmocka_unit_test(test_bad_manifests_are_refused),
        cmocka_unit_test(test_the_number_of_layers_has_a_limit),
        cmocka_unit_test(test_depth_and_size_have_limits),
        cmocka_unit_test(test_a_configuration_says_how_to_run),
        cmocka_unit_test(test_bad_configurations_are_refused),
        cmocka_unit_test(test_platforms_fit_this_machine),
        cmocka_unit_test(test_saved_images_name_their_files),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("image/manifest", tests, NULL, teardown);
}
