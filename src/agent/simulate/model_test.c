// SPDX-License-Identifier: Apache-2.0
// Outcomes of simulated containers: models, annotations, and repeatable random draws.
#include "agent/simulate/model.h"

#include "base/arena.h"
#include "codec/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define SEC ((int64_t)1000000000)

static void test_models_are_read(void **state)
{
    struct simulate_model m = simulate_model_default();

    assert_int_equal(
        simulate_model_read(
            HK_STR("# a day's work\nduration = exp:60s, fail=0.25\n\noom=0.5 # of those\n"
                   "delay=uniform:1s-2s,exit-code=7\n"),
            &m, NULL),
        0);
    assert_int_equal(m.duration.shape, SIMULATE_EXP);
    assert_true(m.duration.a == 60e9);
    assert_int_equal(m.delay.shape, SIMULATE_UNIFORM);
    assert_true(m.delay.a == 1e9 && m.delay.b == 2e9);
    assert_true(m.fail == 0.25 && m.oom == 0.5);
    assert_int_equal(m.exit_code, 7);
}

static void test_bad_models_are_refused_and_change_nothing(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"duration", "'duration' is not KEY=VALUE"},
        {"duration=", "duration: time: invalid duration \"\""},
        {"duration=-1s", "duration: '-1s' is no time from 0s on"},
        {"duration=uniform:3s-1s", "duration: want uniform:MIN-MAX, MIN not above MAX"},
        {"duration=uniform:3s", "duration: want uniform:MIN-MAX"},
        {"duration=lognormal:3s", "duration: want lognormal:MEDIAN:SIGMA"},
        {"duration=lognormal:3s:x", "duration: 'x' is no number from 0 to 10"},
        {"delay=forever", "delay: nothing would ever start"},
        {"fail=2", "fail: '2' is no number from 0 to 1"},
        {"exit-code=0", "exit-code: '0' is no number from 1 to 255"},
        {"fail=0.5,color=red", "color: not known; want duration, delay, fail, oom or exit-code"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct simulate_model m = simulate_model_default();
        struct hk_err err = {0};

        assert_int_equal(simulate_model_read(hk_str(cases[i].text), &m, &err), -HK_EINVAL);
        assert_string_equal(err.text, cases[i].says);
        assert_true(m.fail == 0);
    }
}

static struct simulate_fate fate(struct simulate_model *m, const char *name, uint32_t attempt,
                                 const struct json *annotations)
{
    struct simulate_fate f = {0};

    simulate_model_fate(
        m, NULL, &(struct runtime_pod){.uid = "u", .ns = "d", .name = name},
        &(struct runtime_container){.name = "c", .attempt = attempt, .annotations = annotations},
        &f);
    return f;
}

static struct simulate_model model(const char *text, uint64_t seed)
{
    struct simulate_model m = simulate_model_default();

    assert_int_equal(simulate_model_read(hk_str(text), &m, NULL), 0);
    m.seed = seed;
    return m;
}

static void test_chance_depends_on_seed_and_name_alone(void **state)
{
    struct simulate_model m = model("duration=exp:60s,fail=0.5", 1);
    struct simulate_model other = model("duration=exp:60s,fail=0.5", 2);
    const struct simulate_fate a = fate(&m, "p-0", 0, NULL), b = fate(&m, "p-1", 0, NULL);

    assert_int_equal(fate(&m, "p-0", 0, NULL).duration_ns, a.duration_ns);
    assert_int_equal(fate(&m, "p-0", 0, NULL).code, a.code);
    assert_int_not_equal(b.duration_ns, a.duration_ns);
    assert_int_not_equal(fate(&m, "p-0", 1, NULL).duration_ns, a.duration_ns);
    assert_int_not_equal(fate(&other, "p-0", 0, NULL).duration_ns, a.duration_ns);
}

static void test_many_draws_have_the_mean_and_the_failures_asked_for(void **state)
{
    struct simulate_model all[] = {
        model("duration=exp:60s,fail=0.25,oom=0.5", 1),
        model("duration=uniform:40s-80s,fail=0.25,oom=0.5", 1),
    };

    for (size_t k = 0; k < HK_LEN(all); k++) {
        double sum = 0;
        int good = 0, oom = 0;

        for (int i = 0; i < 10000; i++) {
            char name[16];
            struct simulate_fate f;

            snprintf(name, sizeof(name), "p-%d", i);
            f = fate(&all[k], name, 0, NULL);
            sum += f.code == 0 ? (double)f.duration_ns / 1e9 : 0;
            good += f.code == 0;
            oom += f.oom;
        }
        assert_in_range(good, 7300, 7700);
        assert_in_range(oom, 1100, 1400);
        assert_in_range((int)(sum / good), 56, 64);
    }
}

static void test_annotations_stand_above_the_model(void **state)
{
    static const struct {
        const char *annotations;
        uint32_t attempt;
        struct simulate_fate want;
    } cases[] = {
        {"{}", 0, {.duration_ns = 10 * SEC}},
        {"{'duration':'3s','delay':'2s'}", 0, {.delay_ns = 2 * SEC, .duration_ns = 3 * SEC}},
        {"{'duration':'forever','ignore-term':'true'}",
         0,
         {.duration_ns = -1, .ignores_term = true}},
        {"{'duration':'soon','exit-code':'many'}", 0, {.duration_ns = 10 * SEC}},
        {"{'exit-code':'3'}", 5, {.duration_ns = 10 * SEC, .code = 3}},
        {"{'exit-code':'3','failures':'2'}", 1, {.duration_ns = 10 * SEC, .code = 3}},
        {"{'exit-code':'3','failures':'2'}", 2, {.duration_ns = 10 * SEC}},
        {"{'oom':'true'}", 0, {.duration_ns = 10 * SEC, .code = 137, .oom = true}},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct simulate_model m = simulate_model_default();
        struct simulate_fate f;
        struct json said;

        for (const char *at = cases[i].annotations; *at; at++) {
            const bool key = at[0] == '\'' && (at[-1] == '{' || at[-1] == ',');

            if (key) {
                hk_buf_adds(&text, "\"" SIMULATE_ANN);
            } else {
                hk_buf_addc(&text, *at == '\'' ? '"' : *at);
            }
        }
        assert_int_equal(json_parse(hk_buf_str(&text), 0, &a, &said, NULL), 0);
        f = fate(&m, "p", cases[i].attempt, &said);
        assert_int_equal(f.duration_ns, cases[i].want.duration_ns);
        assert_int_equal(f.delay_ns, cases[i].want.delay_ns);
        assert_int_equal(f.code, cases[i].want.code);
        assert_int_equal(f.oom, cases[i].want.oom);
        assert_int_equal(f.ignores_term, cases[i].want.ignores_term);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_are_read),
        cmocka_unit_test(test_bad_models_are_refused_and_change_nothing),
        cmocka_unit_test(test_chance_depends_on_seed_and_name_alone),
        cmocka_unit_test(test_many_draws_have_the_mean_and_the_failures_asked_for),
        cmocka_unit_test(test_annotations_stand_above_the_model),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
