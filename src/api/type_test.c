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
    assert_true(w.seen.len > 300);
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
        cmocka_unit_test(packages_distinguish_types),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
