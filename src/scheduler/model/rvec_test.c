// SPDX-License-Identifier: Apache-2.0
// Volcano's operations on resource vectors: cpu, memory, pods and two scalars, "x" and "y".
#include "scheduler/model/rvec.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { DIM_X = 3, DIM_Y = 4 };

static const struct {
    const char *name;
    uint32_t dim;
} names[] = {{"cpu", DIM_CPU}, {"mem", DIM_MEM}, {"pods", DIM_PODS}, {"x", DIM_X}, {"y", DIM_Y}};

static uint32_t dim_named(struct hk_str name)
{
    for (size_t k = 0; k < HK_LEN(names); k++) {
        if (hk_str_is(name, names[k].name)) {
            return names[k].dim;
        }
    }
    fail_msg("no dimension '%.*s'", HK_FMT(name));
    return 0;
}

/* "cpu=1 x=0": x is present and zero, y absent. */
static struct rvec vec(const char *text)
{
    struct hk_str rest = hk_str(text), word, name;
    struct rvec r;

    rvec_zero(&r);
    while (hk_str_cut(&rest, ' ', &word)) {
        if (word.n > 0 && hk_str_cut(&word, '=', &name)) {
            rvec_set(&r, dim_named(name), strtod(word.s, NULL));
        }
    }
    return r;
}

static const char *show(const struct rvec *r)
{
    static char text[256];
    size_t n = 0;

    text[0] = '\0';
    for (size_t k = 0; k < HK_LEN(names); k++) {
        const uint32_t d = names[k].dim;
        const bool base = d == DIM_CPU || d == DIM_MEM;

        if (base ? r->v[d] != 0 : (r->has >> d) & 1) {
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%g", n ? " " : "",
                                  names[k].name, r->v[d]);
        }
    }
    return text;
}

enum op { ADD, SUB, EXCEED, MIN_INF, MIN_ZERO, MAX, TWICE };

static const struct {
    enum op op;
    const char *a, *b, *want;
} arithmetic[] = {
    {ADD, "cpu=1 x=1", "cpu=2 mem=3 y=4", "cpu=3 mem=3 x=1 y=4"},
    {SUB, "cpu=5 x=1", "cpu=2 x=3", "cpu=3 x=-2"},
    {SUB, "cpu=5 x=1", "y=3", "cpu=5 x=1 y=-3"},
    {SUB, "cpu=5", "cpu=6 x=3", "cpu=-1"}, /* no scalars at all: those of b are skipped */
    {EXCEED, "cpu=5 mem=1 x=3 y=1", "cpu=2 mem=4 x=1 y=1", "cpu=3 x=2"},
    {EXCEED, "cpu=5", "cpu=2 x=9", "cpu=3"},
    {MIN_INF, "cpu=5 mem=5 x=5 y=5", "cpu=2 x=7", "cpu=2 x=5 y=5"},
    {MIN_INF, "cpu=5", "cpu=9 x=7", "cpu=5"}, /* a scalar only b has is not added */
    {MIN_ZERO, "cpu=5 mem=5 x=5 y=5", "cpu=2 mem=9 x=7", "cpu=2 mem=5 x=5 y=0"},
    {MAX, "cpu=5 x=1", "cpu=2 mem=3 y=4", "cpu=5 mem=3 x=1 y=4"},
    {MAX, "cpu=5 x=-1", "y=-2", "cpu=5"},
    {TWICE, "cpu=1.5 x=2", "", "cpu=3 x=4"},
};

static void arithmetic_follows_volcano(void **state)
{
    for (size_t k = 0; k < HK_LEN(arithmetic); k++) {
        struct rvec a = vec(arithmetic[k].a);
        const struct rvec b = vec(arithmetic[k].b);

        switch (arithmetic[k].op) {
        case ADD:
            rvec_add(&a, &b);
            break;
        case SUB:
            rvec_sub(&a, &b);
            break;
        case EXCEED:
            rvec_exceed(&a, &a, &b);
            break;
        case MIN_INF:
            rvec_min_inf(&a, &b);
            break;
        case MIN_ZERO:
            rvec_min_zero(&a, &b);
            break;
        case MAX:
            rvec_max(&a, &b);
            break;
        case TWICE:
            rvec_scale(&a, 2);
            break;
        }
        print_message("# case %zu: '%s' and '%s'\n", k, arithmetic[k].a, arithmetic[k].b);
        assert_string_equal(show(&a), arithmetic[k].want);
    }
}

static const struct {
    const char *a, *b;
    bool le_zero, le_inf, same;
} comparisons[] = {
    {"cpu=1 mem=1", "cpu=1 mem=2", true, true, false},
    {"cpu=1.05", "cpu=1", true, true, false}, /* within epsilon */
    {"cpu=1.1", "cpu=1", false, false, false},
    {"x=1", "cpu=1", false, true, false}, /* missing on the right: zero or unlimited */
    {"x=0", "cpu=1", true, true, false},
    {"cpu=1", "cpu=1 x=5", true, false, false}, /* missing on the left */
    {"cpu=1 x=2", "cpu=1 x=2", true, true, true},
    {"cpu=1 x=0", "cpu=1", true, true, false}, /* a zero value counts as present */
    {"", "", true, true, true},
    {"pods=2", "pods=1", false, false, false}, /* pods count here */
};

static void comparisons_follow_volcano(void **state)
{
    for (size_t k = 0; k < HK_LEN(comparisons); k++) {
        const struct rvec a = vec(comparisons[k].a), b = vec(comparisons[k].b);

        print_message("# case %zu: '%s' and '%s'\n", k, comparisons[k].a, comparisons[k].b);
        assert_int_equal(rvec_le_zero(&a, &b), comparisons[k].le_zero);
        assert_int_equal(rvec_le_inf(&a, &b), comparisons[k].le_inf);
        assert_int_equal(rvec_same(&a, &b), comparisons[k].same);
    }
}

static const struct {
    const char *a, *b, *req;
    uint64_t fail; /* of fits */
    bool any_le, any_gt;
} restricted[] = {
    {"cpu=3 mem=9", "cpu=2 mem=4", "cpu=1", 1 << DIM_CPU, false, true},
    {"cpu=2 mem=9", "cpu=2 mem=4", "cpu=1", 0, true, false},
    {"cpu=2.05", "cpu=2", "cpu=1", 1 << DIM_CPU, true, true}, /* fits has no epsilon, any_le has */
    {"x=1", "", "x=1", 1 << DIM_X, false, false},             /* any_gt: b lacks x */
    {"x=1", "x=0", "x=1", 1 << DIM_X, false, true},
    {"cpu=1", "", "cpu=1", 1 << DIM_CPU, false, false}, /* cpu near zero in b counts as absent */
    {"cpu=0 mem=5", "cpu=0 mem=4", "cpu=1 mem=1", 1 << DIM_MEM, false, true}, /* nothing in both */
    {"pods=5", "pods=1", "pods=1", 0, false, false},
    {"cpu=3 mem=3", "cpu=2 mem=4", "cpu=1 mem=1", 1 << DIM_CPU, true, true},
};

static void restricted_comparisons_look_at_what_is_asked_for(void **state)
{
    for (size_t k = 0; k < HK_LEN(restricted); k++) {
        const struct rvec a = vec(restricted[k].a), b = vec(restricted[k].b);
        const struct rvec req = vec(restricted[k].req);
        uint64_t fail = ~0ULL;

        print_message("# case %zu: '%s' and '%s' for '%s'\n", k, restricted[k].a, restricted[k].b,
                      restricted[k].req);
        assert_int_equal(rvec_fits(&a, &b, &req, &fail), restricted[k].fail == 0);
        assert_int_equal(fail, restricted[k].fail);
        assert_int_equal(rvec_any_le(&a, &b, &req), restricted[k].any_le);
        assert_int_equal(rvec_any_gt(&a, &b, &req), restricted[k].any_gt);
    }
}

static void names_and_emptiness_start_at_epsilon(void **state)
{
    static const struct {
        const char *a;
        uint64_t names;
        bool empty;
    } cases[] = {
        {"", 0, true},
        {"cpu=0.05 x=0.09", 0, true},
        {"pods=3", 1 << DIM_PODS, true}, /* pods are named but fill nothing */
        {"cpu=0.1 x=1", 1 << DIM_CPU | 1 << DIM_X, false},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        const struct rvec a = vec(cases[k].a);

        assert_int_equal(rvec_names(&a), cases[k].names);
        assert_int_equal(rvec_empty(&a), cases[k].empty);
    }
}

static void share_of_nothing_is_whole(void **state)
{
    assert_true(rvec_share(1, 0) == 1);
    assert_true(rvec_share(0, 0) == 0);
    assert_true(rvec_share(1, 4) == 0.25);
}

static void dense_amounts_name_what_is_there(void **state)
{
    const int64_t dense[] = {1000, 0, 2, 0, 7};
    struct rvec r;

    rvec_from(&r, dense, HK_LEN(dense));
    assert_string_equal(show(&r), "cpu=1000 pods=2 y=7");
}

static void zeroed_memory_is_an_empty_vector(void **state)
{
    const struct rvec none = {0};
    const struct rvec zero = vec("");

    assert_true(rvec_same(&none, &zero));
    assert_true(rvec_empty(&none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_follows_volcano),
        cmocka_unit_test(comparisons_follow_volcano),
        cmocka_unit_test(restricted_comparisons_look_at_what_is_asked_for),
        cmocka_unit_test(names_and_emptiness_start_at_epsilon),
        cmocka_unit_test(share_of_nothing_is_whole),
        cmocka_unit_test(dense_amounts_name_what_is_there),
        cmocka_unit_test(zeroed_memory_is_an_empty_vector),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
