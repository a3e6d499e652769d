// SPDX-License-Identifier: Apache-2.0
// Quantities: the grammar, rounding, limits and canonical form of apimachinery's resource.Quantity.

#include "codec/quantity.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct quantity parse(const char *text)
{
    struct hk_err err = {0};
    struct quantity q = {0};

    if (quantity_parse(hk_str(text), &q, &err) < 0) {
        fail_msg("%s: %s", text, err.text);
    }
    return q;
}

static void assert_written(struct quantity q, const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    quantity_write(q, &out);
    assert_string_equal(out.data, want);
}

static void test_canonical_form(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"0", "0"},
        {"-0", "0"},
        {"0Ki", "0"},
        {"0e5", "0"},
        {"+1", "1"},
        {"-1", "-1"},
        {"007", "7"},
        {"0.5", "500m"},
        {".5", "500m"},
        {"5.", "5"},
        {"1.5", "1500m"},
        {"500m", "500m"},
        {"100m", "100m"},
        {"1000m", "1"},
        {"1000", "1k"},
        {"1024", "1024"},
        {"1k", "1k"},
        {"1500", "1500"},
        {"1000k", "1M"},
        {"1000000", "1M"},
        {"1.2345", "1234500u"},
        {"1n", "1n"},
        {"1u", "1u"},
        {"1G", "1G"},
        {"1T", "1T"},
        {"1P", "1P"},
        {"1E", "1E"},
        {"1000E", "1e21"},
        {"18446744073709551616", "18446744073709551616"},
        /* exponents keep their kind */
        {"1e3", "1e3"},
        {"1E3", "1e3"},
        {"12e6", "12e6"},
        {"1e+3", "1e3"},
        {"1e-3", "1e-3"},
        {"1e1", "10"},
        {"1e2", "100"},
        {"1000e3", "1e6"},
        {"1.5e3", "1500"},
        {"1e0", "1"},
        /* binary */
        {"1Ki", "1Ki"},
        {"1Gi", "1Gi"},
        {"1536Mi", "1536Mi"},
        {"1.5Gi", "1536Mi"},
        {"1024Ki", "1Mi"},
        {"1Ei", "1Ei"},
        {"-2Gi", "-2Gi"},
        {"0.5Ki", "512"},
        {"0.0001Ki", "102400u"},
        {"1000Ki", "1000Ki"},
        {"1.0001Ki", "1024102400u"},
        {"0.3Mi", "314572800m"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_written(parse(cases[i].in), cases[i].out);
    }
}

static void test_finer_than_nano_rounds_away_from_zero(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"0.1n", "1n"},
        {"0.9n", "1n"},
        {"1.1n", "2n"},
        {"-0.1n", "-1n"},
        {"0.0000000001", "1n"},
        {"1e-30", "1e-9"},
        {"1e-9223372036854775807", "1e-9"},
        {"0.0000000010000000000000000000000000000000000000000000000001", "2n"},
        {"0.0000000000001Ki", "1n"},
        {"0.00000000000000000000000000000000000000000000000000001Ei", "1n"},
        {"0.0e-99", "0"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_written(parse(cases[i].in), cases[i].out);
    }
}

static void test_bounds(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"7Ei", "7Ei"},
        {"7.999999999Ei", "9223372035701854303393153024n"},
        {"8Ei", "9223372036854775807"},
        {"-8Ei", "-9223372036854775807"},
        {"99999999999999999999999999999999999999999999Ki", "9223372036854775807"},
        {"100000000000000000000000000000", "100e27"},
        {"1e30", "100e27"},
        {"-1e9223372036854775807", "-100e27"},
        {"999999999999999999999999999999999999999999999999999E", "100e27"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_written(parse(cases[i].in), cases[i].out);
    }
}

/* A text that may contain NUL bytes. */
#define TEXT(lit)                                                                                  \
    {                                                                                              \
        lit, sizeof(lit) - 1                                                                       \
    }

static void test_refused(void **state)
{
    static const char shape[] = "quantities must match the regular expression "
                                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    static const char suffix[] = "unable to parse quantity's suffix";
    static const struct {
        struct hk_str in;
        const char *why;
    } cases[] = {
        {TEXT(""), shape},         {TEXT("+"), shape},
        {TEXT("."), shape},        {TEXT("-.k"), shape},
        {TEXT("k"), shape},        {TEXT("aoeu"), shape},
        {TEXT(" 1"), shape},       {TEXT("1 "), shape},
        {TEXT("1.1.M"), shape},    {TEXT("1+1.0M"), shape},
        {TEXT("0.1am"), shape},    {TEXT("--1"), shape},
        {TEXT("1e1.5"), shape},    {TEXT("1\0"), shape},
        {TEXT("0x10"), shape},     {TEXT("0.1mi"), suffix},
        {TEXT("1i"), suffix},      {TEXT("-3.01i"), suffix},
        {TEXT("-3.01e-"), suffix}, {TEXT("1e"), suffix},
        {TEXT("1K"), suffix},      {TEXT("1ki"), suffix},
        {TEXT("1Kin"), suffix},    {TEXT("1+1"), suffix},
        {TEXT("1M3"), suffix},     {TEXT("1e99999999999999999999"), suffix},
        {TEXT("1ee3"), suffix},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_err err = {0};
        struct quantity q = {.nano = 77};
        if (quantity_parse(cases[i].in, &q, &err) != -HK_EINVAL) {
            fail_msg("'%.*s': want it refused", HK_FMT(cases[i].in));
        }
        assert_string_equal(err.text, cases[i].why);
        assert_true(q.nano == 77);
    }
}

static void test_value_and_milli_round_up(void **state)
{
    static const struct {
        const char *in;
        int64_t value, milli;
    } cases[] = {
        {"0", 0, 0},
        {"250m", 1, 250},
        {"1.5", 2, 1500},
        {"0.5m", 1, 1},
        {"-0.5m", -1, -1},
        {"-1500m", -2, -1500},
        {"1Gi", 1073741824, 1073741824000},
        {"9223372036854775807", INT64_MAX, INT64_MAX},
        {"-9223372036854775808", INT64_MIN, INT64_MIN},
        {"1e25", INT64_MAX, INT64_MAX},
        {"-1e25", INT64_MIN, INT64_MIN},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_int_equal(quantity_value(parse(cases[i].in)), cases[i].value);
        assert_int_equal(quantity_milli(parse(cases[i].in)), cases[i].milli);
    }
}

static void test_cmp(void **state)
{
    assert_int_equal(quantity_cmp(parse("1"), parse("1000m")), 0);
    assert_int_equal(quantity_cmp(parse("1Ki"), parse("1k")), 1);
    assert_int_equal(quantity_cmp(parse("-1"), parse("1n")), -1);
}

static void test_arithmetic(void **state)
{
    assert_written(quantity_add(parse("1500m"), parse("500m")), "2");
    assert_written(quantity_add(parse("1Gi"), parse("512Mi")), "1536Mi");
    assert_written(quantity_sub(parse("1Gi"), parse("2Gi")), "-1Gi");
    assert_written(quantity_sub(parse("1"), parse("1n")), "999999999n");
    /* zero takes the format of the other operand */
    assert_written(quantity_add(parse("0"), parse("2Ki")), "2Ki");
    assert_written(quantity_sub(parse("0"), parse("2Ki")), "-2Ki");
    assert_written(quantity_add(parse("1Ki"), parse("1")), "1025");
    assert_written(quantity_add(parse("1e30"), parse("1e30")), "100e27");
    assert_written(quantity_sub(parse("-1e30"), parse("1e30")), "-100e27");
    /* above the limit for reading, exbi stays the largest suffix */
    assert_written(quantity_add(quantity_add(parse("4Ei"), parse("4Ei")), parse("4Ei")), "12Ei");
}

static void test_made_from_integers(void **state)
{
    assert_written(quantity_of(2048, QUANTITY_BINARY_SI), "2Ki");
    assert_written(quantity_of(1023, QUANTITY_BINARY_SI), "1023");
    assert_written(quantity_of(2000, QUANTITY_DECIMAL_EXP), "2e3");
    assert_written(quantity_of(INT64_MIN, QUANTITY_DECIMAL_SI), "-9223372036854775808");
    assert_written(quantity_of_milli(1500, QUANTITY_DECIMAL_SI), "1500m");
    assert_written(quantity_of_milli(2048500, QUANTITY_BINARY_SI), "2048500m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical_form),
        cmocka_unit_test(test_finer_than_nano_rounds_away_from_zero),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_value_and_milli_round_up),
        cmocka_unit_test(test_cmp),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_made_from_integers),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
