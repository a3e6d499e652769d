// SPDX-License-Identifier: Apache-2.0
// Names of images are completed as Kubernetes and Docker complete them, or refused.

#include "image/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_names_are_completed(void **state)
{
    static const struct {
        const char *in, *out, *repository;
    } cases[] = {
        {"busybox", "docker.io/library/busybox:latest", "docker.io/library/busybox"},
        {"busybox:1.36", "docker.io/library/busybox:1.36", "docker.io/library/busybox"},
        {"volcanosh/vc-scheduler:v1", "docker.io/volcanosh/vc-scheduler:v1",
         "docker.io/volcanosh/vc-scheduler"},
        {"localhost/app", "localhost/app:latest", "localhost/app"},
        {"localhost:5000/app", "localhost:5000/app:latest", "localhost:5000/app"},
        {"example.org:5000/a/b:c", "example.org:5000/a/b:c", "example.org:5000/a/b"},
        {"index.docker.io/library/x", "docker.io/library/x:latest", "docker.io/library/x"},
        {"a@sha256:" HEX, "docker.io/library/a@sha256:" HEX, "docker.io/library/a"},
        {"a:tag@sha256:" HEX, "docker.io/library/a@sha256:" HEX, "docker.io/library/a"},
        {"x/a--b__c.d-e_f:T-1._", "docker.io/x/a--b__c.d-e_f:T-1._", "docker.io/x/a--b__c.d-e_f"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct image_name name;
        struct hk_err err = {0};

        assert_int_equal(image_name_parse(hk_str(cases[i].in), &name, &err), 0);
        assert_string_equal(name.text, cases[i].out);
        assert_int_equal(name.repository_len, strlen(cases[i].repository));
        assert_memory_equal(name.text, cases[i].repository, name.repository_len);
    }
}

static void test_others_are_refused(void **state)
{
    static const char *const cases[] = {
        "",         "Upper",
        "a//b",     "/a",
        "a/",       "a b",
        ":tag",     "a:",
        "a:.x",     "a:b:c",
        "a@",       "a@sha256:12",
        "a@md5:12", "a___b",
        "a..b",     "-a",
        "a-",       "a/_b",
        "a\n",      "ex ample.org/a",
        "-h.org/a", "a:b@c@sha256:12",
        "../a",     "a/../b",
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct image_name name = {.text = "untouched"};
        struct hk_err err = {0};

        if (image_name_parse(hk_str(cases[i]), &name, &err) == 0) {
            fail_msg("accepted \"%s\" as %s", cases[i], name.text);
        }
        assert_non_null(strstr(err.text, "invalid reference format"));
        assert_string_equal(name.text, "untouched");
    }
}

static void test_length_has_a_limit(void **state)
{
    char text[600];
    struct image_name name;

    memset(text, 'a', sizeof(text));
    assert_int_equal(image_name_parse((struct hk_str){text, 237}, &name, NULL), 0);
    assert_int_equal(image_name_parse((struct hk_str){text, 238}, &name, NULL), -HK_EINVAL);
    text[1] = ':';
    assert_int_equal(image_name_parse((struct hk_str){text, 130}, &name, NULL), 0);
    assert_int_equal(image_name_parse((struct hk_str){text, 131}, &name, NULL), -HK_EINVAL);
}

static void test_digests_are_sha256(void **state)
{
    struct image_digest d;

    assert_string_equal(image_digest_of(HK_STR("abc")).hex,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(image_digest_of(HK_STR("")).hex,
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_true(image_digest_parse(HK_STR("sha256:" HEX), &d));
    assert_string_equal(d.hex, HEX);
    assert_false(image_digest_parse(HK_STR("sha256:" HEX "0"), &d));
    assert_false(image_digest_parse(HK_STR(HEX), &d));
    assert_false(image_digest_parse_hex(HK_STR("ABCDEF"), &d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_completed),
        cmocka_unit_test(test_others_are_refused),
        cmocka_unit_test(test_length_has_a_limit),
        cmocka_unit_test(test_digests_are_sha256),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("image/name", tests, NULL, NULL);
}
