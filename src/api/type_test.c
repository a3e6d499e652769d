// SPDX-License-Identifier: Apache-2.0
// The table of types: everything that a kind can reach has a description, and every description has
// a subject.
#include "api/type.h"
#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct walk {
    HK_VEC(const struct api_type *) seen;
};

static void visit(struct walk *w, const struct api_type *t, void (*fn)(const struct api_type *t))
{
    for (uint32_t i = 0; i < w->seen.len; i++) {
        if (w->seen.at[i] == t) {
            return;
        }
    }
    hk_vec_push(&w->seen, t);
    fn(t);
    for (uint32_t i = 0; i < t->nfields; i++) {
        if (t->fields[i].type) {
            visit(w, t->fields[i].type, fn);
        }
    }
}

static void each_type(void (*fn)(const struct api_type *t))
{
    struct walk w = {0};
    const struct api_root *root;

    for (size_t i = 0; (root = api_root(i)); i++) {
        visit(&w, root->type, fn);
    }
    visit(&w, api_type_list_meta(), fn);
    assert_true(w.seen.len > 500);
    hk_vec_fini(&w.seen);
}

static void check_described(const struct api_type *t)
{
    assert_true(hk_str_ends(hk_str(t->about[0]), "."));
    for (uint32_t i = 0; i < t->nfields; i++) {
        const struct api_field *f = &t->fields[i];
        const char *text = f->flags & API_INLINE ? "." : api_field_about(t, f->name);
        if (!text) {
            fail_msg("%s.%s is not described", t->name, f->name);
        }
        if (!hk_str_ends(hk_str(text), ".")) {
            fail_msg("%s.%s: want a sentence, have \"%s\"", t->name, f->name, text);
        }
    }
}

static void every_field_is_described(void **state)
{
    each_type(check_described);
}

static void check_descriptions(const struct api_type *t)
{
    for (const char *const *pair = t->about + 1; pair[0]; pair += 2) {
        if (!api_type_name(t, hk_str(pair[0]))) {
            fail_msg("%s has no field \"%s\" to describe", t->name, pair[0]);
        }
    }
}

static void every_description_has_a_field(void **state)
{
    each_type(check_descriptions);
}

static struct json parse(const char *text, struct hk_arena *a)
{
    struct json v;

    assert_int_equal(json_parse(hk_str(text), 0, a, &v, NULL), 0);
    return v;
}

static void what_go_always_writes_is_added(void **state)
{
    static const struct {
        const char *version, *kind, *in, *want;
    } cases[] = {
        {"v1", "ConfigMap", "{}", "{\"metadata\":{}}"},
        {"v1", "Namespace", "{\"status\":{\"phase\":\"x\"}}",
         "{\"status\":{\"phase\":\"x\"},\"metadata\":{},\"spec\":{}}"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[{\"name\":\"c\"}]}}",
         "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{}}]},\"metadata\":{},"
         "\"status\":{}}"},
        {"v1", "Pod", "{\"spec\":{\"containers\":[]},\"other\":[{}],\"status\":7}",
         "{\"spec\":{\"containers\":[]},\"other\":[{}],\"status\":7,\"metadata\":{}}"},
        {"autoscaling/v1", "Scale", "{\"status\":{}}",
         "{\"status\":{\"replicas\":0},\"metadata\":{},\"spec\":{}}"},
        {"batch.volcano.sh/v1alpha1", "Job", "{\"spec\":{}}", "{\"spec\":{},\"metadata\":{}}"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct json v = parse(cases[i].in, &a);
        const struct api_type *t = api_type_find(hk_str(cases[i].version), hk_str(cases[i].kind));
        assert_true(api_type_fill(t ? t : api_type_of(NULL), &a, &v));
        json_write(&v, &text);
        assert_string_equal(text.data, cases[i].want);
    }
}

/* A body of 3 MB can hold a million containers of two bytes each. */
static void what_is_added_is_limited(void **state)
{
    static const struct {
        uint32_t containers;
        bool want;
    } cases[] = {{1, true}, {API_FILL_MAX / 2 - 10, true}, {API_FILL_MAX / 2 + 10, false}};
    const struct api_type *pod = api_type_find(HK_STR("v1"), HK_STR("Pod"));

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        struct json v = parse("{\"spec\":{\"containers\":[]}}", &a);
        struct json *list = (struct json *)json_at(&v, "spec.containers");
        for (uint32_t n = 0; n < cases[i].containers; n++) {
            json_push(list, &a, json_make_object());
        }
        assert_int_equal(api_type_fill(pod, &a, &v), cases[i].want);
    }
}

#define COMMON(...) static const char *const common[] = {__VA_ARGS__};
#define ABOUT(...)
#include "api/about_meta.def"

static bool common_is_field[HK_LEN(common)];

static void note_common(const struct api_type *t)
{
    for (size_t i = 0; i < HK_LEN(common); i += 2) {
        common_is_field[i] |= api_type_name(t, hk_str(common[i])) != NULL;
    }
}

static void every_common_description_has_a_field(void **state)
{
    each_type(note_common);
    for (size_t i = 0; i < HK_LEN(common); i += 2) {
        const bool head = !strcmp(common[i], "apiVersion") || !strcmp(common[i], "kind");
        if (!common_is_field[i] && !head) {
            fail_msg("no type has a field \"%s\" to describe", common[i]);
        }
    }
}

static void packages_distinguish_types(void **state)
{
    const struct api_type *pod = api_type_find(HK_STR("v1"), HK_STR("Pod"));
    const struct api_type *old = api_type_find(HK_STR("v1"), HK_STR("Event"));
    const struct api_type *new = api_type_find(HK_STR("events.k8s.io/v1"), HK_STR("Event"));

    assert_string_equal(pod->package, "io.k8s.api.core.v1");
    assert_string_equal(old->name, new->name);
    assert_string_equal(old->package, "io.k8s.api.core.v1");
    assert_string_equal(new->package, "io.k8s.api.events.v1");
    assert_string_equal(api_type_object_meta()->package, "io.k8s.apimachinery.pkg.apis.meta.v1");
    assert_string_equal(api_root_of(pod)->kind, "Pod");
    assert_null(api_root_of(api_type_object_meta()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_described),
        cmocka_unit_test(every_description_has_a_field),
        cmocka_unit_test(every_common_description_has_a_field),
        cmocka_unit_test(packages_distinguish_types),
        cmocka_unit_test(what_go_always_writes_is_added),
        cmocka_unit_test(what_is_added_is_limited),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
