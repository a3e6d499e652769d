// SPDX-License-Identifier: Apache-2.0
// Objects from command line arguments.

#include "cli/make.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Compares the result: the JSON, or the error. */
static void check(int rc, const struct json *have, const struct hk_err *err, const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    if (rc < 0) {
        hk_buf_adds(&out, err->text);
    } else {
        json_write(have, &out);
    }
    assert_string_equal(out.data, want);
}

static void test_resources(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "{}"},
        {"cpu=1000m,memory=100Mi", "{\"cpu\":\"1\",\"memory\":\"100Mi\"}"},
        {"nvidia.com/gpu=2", "{\"nvidia.com/gpu\":\"2\"}"},
        {"cpu", "invalid argument syntax cpu, expected <resource>=<value>"},
        {"cpu=1,", "invalid argument syntax , expected <resource>=<value>"},
        {"cpu=1=2", "invalid argument syntax cpu=1=2, expected <resource>=<value>"},
        {"cpu=x", "quantities must match the regular expression "
                  "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        struct hk_err err = {0};
        struct json list = {0};
        const int rc = make_resources(cases[i].text, &mem, &list, &err);
        check(rc, &list, &err, cases[i].want);
    }
}

static void test_words(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "[]"},
        {"sleep 10", "[\"sleep\",\"10\"]"},
        {"  sh -c 'echo \"a b\"' ", "[\"sh\",\"-c\",\"echo \\\"a b\\\"\"]"},
        {"a\"b c\"d", "[\"ab cd\"]"},
        {"a\\ b \\\"", "[\"a b\",\"\\\"\"]"},
        {"\"a\\\"b\" 'a\\b'", "[\"a\\\"b\",\"a\\\\b\"]"},
        {"'' x", "[\"\",\"x\"]"},
        {"a # b\nc a#b", "[\"a\",\"c\",\"a#b\"]"},
        {"'a", "EOF found when expecting closing quote"},
        {"a \"b", "EOF found when expecting closing quote"},
        {"a\\", "EOF found after escape character"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        struct hk_err err = {0};
        struct json list = {0};
        const int rc = make_words(cases[i].text, &mem, &list, &err);
        check(rc, &list, &err, cases[i].want);
    }
}

static void test_job(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct hk_err err = {0};
    struct json job = {0};
    const struct make_job j = {.name = "a",
                               .ns = "default",
                               .scheduler = "volcano",
                               .image = "busybox",
                               .requests = "cpu=1",
                               .limits = "",
                               .command = "sleep 1",
                               .min = 1,
                               .replicas = 2};
    const int rc = make_job(&j, &mem, &job, &err);

    check(rc, &job, &err,
          "{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\","
          "\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"},"
          "\"spec\":{\"minAvailable\":1,\"schedulerName\":\"volcano\","
          "\"tasks\":[{\"replicas\":2,\"template\":{\"metadata\":{\"name\":\"a\","
          "\"labels\":{\"job.volcano.sh\":\"a\"}},\"spec\":{\"restartPolicy\":\"Never\","
          "\"containers\":[{\"name\":\"a\",\"image\":\"busybox\","
          "\"imagePullPolicy\":\"IfNotPresent\","
          "\"resources\":{\"requests\":{\"cpu\":\"1\"},\"limits\":{}},"
          "\"command\":[\"sleep\",\"1\"]}]}}}]}}");
}

static void test_manifests(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"metadata: {name: a}\n---\nmetadata: {name: b}\n",
         "{\"metadata\":{\"name\":\"a\"},\"apiVersion\":\"batch.volcano.sh/v1alpha1\","
         "\"kind\":\"Job\"}"},
        {"apiVersion: v1\nkind: Pod\n",
         "{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\"}"},
        {"- a\n", "want a Job, have array"},
        {"# nothing\n", "want a Job, have nothing"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        struct hk_err err = {0};
        struct json doc = {0};
        const int rc = make_from_text(API_JOB, hk_str(cases[i].text), &mem, &doc, &err);
        check(rc, &doc, &err, cases[i].want);
    }
}

static void test_command(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(api_object_unrefp) struct api_object *queue = NULL;
    struct hk_err err = {0};
    const int rc = api_object_parse(
        NULL,
        HK_STR("{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"Queue\","
               "\"metadata\":{\"name\":\"Q\",\"uid\":\"u\"}}"),
        &queue, &err);

    assert_int_equal(rc, 0);
    const struct json command = make_command(queue, "default", "CloseQueue", &mem);
#define REFERENCE                                                                                  \
    "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"Queue\",\"name\":\"Q\","         \
    "\"uid\":\"u\",\"controller\":true,\"blockOwnerDeletion\":true}"
    check(0, &command, &err,
          "{\"apiVersion\":\"bus.volcano.sh/v1alpha1\",\"kind\":\"Command\","
          "\"metadata\":{\"generateName\":\"Q-closequeue-\",\"namespace\":\"default\","
          "\"ownerReferences\":[" REFERENCE "]},\"action\":\"CloseQueue\",\"target\":" REFERENCE
          "}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resources), cmocka_unit_test(test_words),
        cmocka_unit_test(test_job),       cmocka_unit_test(test_manifests),
        cmocka_unit_test(test_command),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
