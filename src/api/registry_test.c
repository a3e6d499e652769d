// SPDX-License-Identifier: Apache-2.0
// The table of kinds and the walk over lists.
#include "api/registry.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct hk_arena arena;

static int teardown(void **state)
{
    hk_arena_fini(&arena);
    return 0;
}

static void every_row_is_found_by_each_of_its_names(void **state)
{
    for (unsigned i = 0; i < API_NKINDS; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf version = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf word = {0};
        const struct api_kind *k = api_kind(i);

        assert_int_equal(k->id, i);
        api_kind_write_version(k, &version);
        assert_ptr_equal(api_kind_find(hk_buf_str(&version), hk_str(k->kind)), k);
        assert_ptr_equal(
            api_kind_by_plural(hk_str(k->group), hk_str(k->version), hk_str(k->plural)), k);
        hk_buf_addf(&word, "%s.%s", k->plural, k->group);
        assert_ptr_equal(api_kind_by_word(hk_buf_str(&word)), k);
        if (strcmp(k->group, "batch") != 0) { /* without a group these words mean Volcano's kinds */
            assert_ptr_equal(api_kind_by_word(hk_str(k->kind)), k);
        }
    }
}

static void people_may_use_short_names_and_any_case(void **state)
{
    static const struct {
        const char *word;
        int id;
    } cases[] = {
        {"po", API_POD},
        {"PODS", API_POD},
        {"q", API_QUEUE},
        {"vcjob", API_JOB},
        {"jobs.batch.volcano.sh", API_JOB},
        {"jobs.batch", API_BATCH_JOB},
        {"job", API_JOB},
        {"podgroup-v1beta1", API_PODGROUP},
        {"hn", API_HYPERNODE},
        {"pods.", API_POD},
        {"pods.apps", -1},
        {"", -1},
        {"widgets", -1},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct api_kind *k = api_kind_by_word(hk_str(cases[i].word));
        const int id = k ? (int)k->id : -1;
        if (id != cases[i].id) {
            fail_msg("'%s': expected %d, have %d", cases[i].word, cases[i].id, id);
        }
    }
}

static void other_versions_are_unknown(void **state)
{
    assert_null(api_kind_find(HK_STR("v2"), HK_STR("Pod")));
    assert_null(api_kind_find(HK_STR(""), HK_STR("Pod")));
    assert_null(api_kind_find(HK_STR("scheduling.incubator.k8s.io/v1alpha1"), HK_STR("PodGroup")));
    assert_null(api_kind_by_plural(HK_STR(""), HK_STR("v1"), HK_STR("queues")));
}

static int note(void *ctx, const struct api_kind *kind, const struct json *obj, struct hk_err *err)
{
    const struct hk_str name = json_str(json_at(obj, "metadata.name"), HK_STR("-"));

    hk_buf_addf(ctx, "%s:%.*s ", kind ? kind->kind : "?", HK_FMT(name));
    return hk_str_is(name, "stop") ? hk_fail(err, HK_EBUSY, "stopped") : 0;
}

static void lists_are_flattened(void **state)
{
    static const struct {
        const char *json, *seen;
        int rc;
        const char *text;
    } cases[] = {
        {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}", "Pod:a ", 0, ""},
        {"{\"apiVersion\":\"x/v1\",\"kind\":\"Widget\"}", "?:- ", 0, ""},
        {"{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"a\"}},"
         "{\"metadata\":{\"name\":\"b\"}}]}",
         "Pod:a Pod:b ", 0, ""},
        {"{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":[]}", "", 0, ""},
        {"{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":null}", "", 0, ""},
        {"{\"apiVersion\":\"x/v1\",\"kind\":\"AllowList\"}", "?:- ", 0, ""},
        {"{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":"
         "\"Node\",\"metadata\":{\"name\":\"n\"}},{\"apiVersion\":\"v1\",\"kind\":\"PodList\","
         "\"items\":[{\"metadata\":{\"name\":\"a\"}}]}]}",
         "Node:n Pod:a ", 0, ""},
        {"{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":"
         "\"stop\"}},{\"metadata\":{\"name\":\"b\"}}]}",
         "Pod:stop ", -HK_EBUSY, "stopped"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"kind\":\"Pod\"}]}", "", -HK_EINVAL,
         "line 1: object has no apiVersion"},
        {"{\"apiVersion\":\"v1\"}", "", -HK_EINVAL, "line 1: object has no kind"},
        {"[1]", "", -HK_EINVAL, "line 1: want an API object"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf seen = {0};
        struct hk_err err = {0};
        struct json v;

        assert_int_equal(json_parse(hk_str(cases[i].json), 0, &arena, &v, &err), 0);
        const int rc = api_list_each(&v, note, &seen, &err);
        if (rc != cases[i].rc || strcmp(err.text, cases[i].text) != 0 ||
            !hk_str_is(hk_buf_str(&seen), cases[i].seen)) {
            fail_msg("%s\nexpected %d '%s' '%s'\nhave     %d '%s' '%s'", cases[i].json, cases[i].rc,
                     cases[i].text, cases[i].seen, rc, err.text, seen.data ? seen.data : "");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_row_is_found_by_each_of_its_names, teardown),
        cmocka_unit_test_teardown(people_may_use_short_names_and_any_case, teardown),
        cmocka_unit_test_teardown(other_versions_are_unknown, teardown),
        cmocka_unit_test_teardown(lists_are_flattened, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("api/registry", tests, NULL, NULL);
}
