// SPDX-License-Identifier: Apache-2.0
// Timestamps and durations, as in metav1.Time, Go's time.Duration and kubectl.

#include "codec/timefmt.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SECOND 1000000000ll
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)

static void test_time_parse(void **state)
{
    static const struct {
        const char *in;
        int64_t ns;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-01-02T15:04:05Z", 1767366245 * SECOND},
        {"2026-01-02T15:04:05.123456Z", 1767366245 * SECOND + 123456000},
        {"2026-01-02T15:04:05.1234567899Z", 1767366245 * SECOND + 123456789},
        {"2026-01-02T17:04:05+02:00", 1767366245 * SECOND},
        {"2026-01-02T09:34:05-05:30", 1767366245 * SECOND},
        {"2024-02-29T00:00:00Z", 1709164800 * SECOND},
        {"2000-02-29T00:00:00Z", 951782400 * SECOND},
        {"1969-12-31T23:59:59.5Z", -SECOND / 2},
        {"1900-03-01T00:00:00Z", -2203891200 * SECOND},
        {"2016-12-31T23:59:60Z", 1483228800 * SECOND},
        {"2017-01-01T00:59:60+01:00", 1483228800 * SECOND},
        {"2116-02-20T23:53:38.427387902Z", TIME_MAX_NS - 1},
        {"2116-02-20T23:53:38.427387903Z", TIME_MAX_NS},
        {"2116-02-20T23:53:38.427387904Z", TIME_MAX_NS},
        {"1823-11-12T00:06:21.572612098Z", TIME_MIN_NS + 1},
        {"1823-11-12T00:06:21.572612097Z", TIME_MIN_NS},
        {"1823-11-12T00:06:21Z", TIME_MIN_NS},
        {"2262-04-11T23:47:17Z", TIME_MAX_NS},
        {"9999-12-31T23:59:59.999999999Z", TIME_MAX_NS},
        {"0001-01-01T00:00:00Z", TIME_MIN_NS},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_err err = {0};
        int64_t ns = 77;
        if (time_parse(hk_str(cases[i].in), &ns, &err) < 0) {
            fail_msg("%s", err.text);
        }
        assert_int_equal(ns, cases[i].ns);
    }
}

static void test_time_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "2026",
        "2026-01-02",
        "2026-01-02T15:04:05",
        "2026-01-02 15:04:05Z",
        "2026-01-02t15:04:05z",
        "2026-1-02T15:04:05Z",
        "2026-01-02T15:04:05.Z",
        "2026-01-02T15:04:05,5Z",
        "2026-01-02T15:04:05+0200",
        "2026-01-02T15:04:05+24:00",
        "2026-01-02T15:04:05+02:60",
        "2026-01-02T15:04:05Zz",
        "2026-13-02T15:04:05Z",
        "2026-00-02T15:04:05Z",
        "2026-02-29T15:04:05Z",
        "1900-02-29T15:04:05Z",
        "2026-04-31T15:04:05Z",
        "2026-01-00T15:04:05Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T15:60:05Z",
        "2026-01-02T15:04:60Z",
        "2026-01-02T15:04:61Z",
        "0000-01-02T15:04:05Z",
        "-001-01-02T15:04:05Z",
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_err err = {0};
        int64_t ns = 77;
        if (time_parse(hk_str(cases[i]), &ns, &err) != -HK_EINVAL) {
            fail_msg("'%s': want it refused", cases[i]);
        }
        assert_int_equal(ns, 77);
    }

    struct hk_err err = {0};
    int64_t ns;
    assert_int_equal(time_parse(HK_STR("noon"), &ns, &err), -HK_EINVAL);
    assert_string_equal(err.text,
                        "invalid time \"noon\", want RFC 3339 as in \"2006-01-02T15:04:05Z\"");
}

static void test_time_write(void **state)
{
    static const struct {
        int64_t ns;
        const char *out, *micro;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
        {1767366245 * SECOND + 123456789, "2026-01-02T15:04:05Z", "2026-01-02T15:04:05.123456Z"},
        {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z"},
        {951782400 * SECOND, "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000000Z"},
        {INT64_MAX, "2262-04-11T23:47:16Z", "2262-04-11T23:47:16.854775Z"},
        {INT64_MIN, "1677-09-21T00:12:43Z", "1677-09-21T00:12:43.145224Z"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf micro = {0};
        time_write(cases[i].ns, &out);
        assert_string_equal(out.data, cases[i].out);
        time_write_micro(cases[i].ns, &micro);
        assert_string_equal(micro.data, cases[i].micro);
    }
}

/* Every day that can be read, in both directions. */
static void test_every_day_survives_a_round_trip(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    for (int64_t day = TIME_MIN_NS / DAY; day <= TIME_MAX_NS / DAY; day++) {
        int64_t back;
        hk_buf_clear(&out);
        time_write(day * DAY, &out);
        assert_int_equal(time_parse(hk_buf_str(&out), &back, NULL), 0);
        assert_int_equal(back, day * DAY);
    }
}

static void test_duration_parse(void **state)
{
    static const struct {
        const char *in;
        int64_t ns;
    } cases[] = {
        {"0", 0},
        {"+0", 0},
        {"-0", 0},
        {"0s", 0},
        {"5s", 5 * SECOND},
        {"30s", 30 * SECOND},
        {"1478s", 1478 * SECOND},
        {"-5s", -5 * SECOND},
        {"+5s", 5 * SECOND},
        {"5.0s", 5 * SECOND},
        {"5.6s", 5 * SECOND + 600000000},
        {"5.s", 5 * SECOND},
        {".5s", SECOND / 2},
        {".5h", 30 * MINUTE},
        {"1.0040s", SECOND + 4000000},
        {"100.00100s", 100 * SECOND + 1000000},
        {"10ns", 10},
        {"11us", 11000},
        {"12\xc2\xb5s", 12000},
        {"12\xce\xbcs", 12000},
        {"13ms", 13000000},
        {"1h30m", 90 * MINUTE},
        {"1.5h30m", 2 * HOUR},
        {"3h30m", 210 * MINUTE},
        {"10.5s4m", 4 * MINUTE + 10 * SECOND + 500000000},
        {"-2m3.4s", -(2 * MINUTE + 3 * SECOND + 400000000)},
        {"1h2m3s4ms5us6ns", HOUR + 2 * MINUTE + 3 * SECOND + 4005006},
        {"39h9m14.425s", 39 * HOUR + 9 * MINUTE + 14 * SECOND + 425000000},
        {"52763797000ns", 52763797000},
        {"0.3333333333333333333h", 20 * MINUTE},
        {"0.9223372036854775807h", 3320413933267},
        {"0.100000000000000000000h", 6 * MINUTE},
        {"0.830103483285477580700h", 49 * MINUTE + 48 * SECOND + 372539827},
        {"9007199254740993ns", 9007199254740993},
        {"4611686018427387902ns", TIME_MAX_NS - 1},
        {"4611686018427387903ns", TIME_MAX_NS},
        {"4611686018427387904ns", TIME_MAX_NS},
        {"9223372036854775807ns", TIME_MAX_NS},
        {"9223372036854775.807us", TIME_MAX_NS},
        {"9223372036s854ms775us807ns", TIME_MAX_NS},
        {"-4611686018427387903ns", TIME_MIN_NS},
        {"-9223372036854775808ns", TIME_MIN_NS},
        {"-9223372036854775.808us", TIME_MIN_NS},
        {"-2562047h47m16.854775808s", TIME_MIN_NS},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_err err = {0};
        int64_t ns = 77;
        if (duration_parse(hk_str(cases[i].in), &ns, &err) < 0) {
            fail_msg("%s", err.text);
        }
        assert_int_equal(ns, cases[i].ns);
    }
}

static void test_duration_refused(void **state)
{
    static const struct {
        const char *in, *why;
    } cases[] = {
        {"", "time: invalid duration \"\""},
        {"3", "time: missing unit in duration \"3\""},
        {"00", "time: missing unit in duration \"00\""},
        {"-", "time: invalid duration \"-\""},
        {"--5s", "time: invalid duration \"--5s\""},
        {"s", "time: invalid duration \"s\""},
        {".", "time: invalid duration \".\""},
        {"-.", "time: invalid duration \"-.\""},
        {".s", "time: invalid duration \".s\""},
        {"+.s", "time: invalid duration \"+.s\""},
        {" 1s", "time: invalid duration \" 1s\""},
        {"1s ", "time: unknown unit \"s \" in duration \"1s \""},
        {"1d", "time: unknown unit \"d\" in duration \"1d\""},
        {"1h-2m", "time: unknown unit \"h-\" in duration \"1h-2m\""},
        {"1.2.3s", "time: missing unit in duration \"1.2.3s\""},
        {"1\xe2\x82\xac",
         "time: unknown unit \"\\xe2\\x82\\xac\" in duration \"1\\xe2\\x82\\xac\""},
        {"1\"\\\n", "time: unknown unit \"\\\"\\\\\\x0a\" in duration \"1\\\"\\\\\\x0a\""},
        {"9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""},
        {"9223372036854775810ns", "time: invalid duration \"9223372036854775810ns\""},
        {"99999999999999999999s", "time: invalid duration \"99999999999999999999s\""},
        {"9223372036854776us", "time: invalid duration \"9223372036854776us\""},
        {"3000000h", "time: invalid duration \"3000000h\""},
        {"-9223372036854775809ns", "time: invalid duration \"-9223372036854775809ns\""},
        {"9223372036854775807ns1ns", "time: invalid duration \"9223372036854775807ns1ns\""},
        /* Go's sum overflows to zero here */
        {"9223372036854775808ns9223372036854775808ns",
         "time: invalid duration \"9223372036854775808ns9223372036854775808ns\""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_err err = {0};
        int64_t ns = 77;
        if (duration_parse(hk_str(cases[i].in), &ns, &err) != -HK_EINVAL) {
            fail_msg("'%s': want it refused", cases[i].in);
        }
        assert_string_equal(err.text, cases[i].why);
        assert_int_equal(ns, 77);
    }
}

static void test_duration_write(void **state)
{
    static const struct {
        int64_t ns;
        const char *out;
    } cases[] = {
        {0, "0s"},
        {1, "1ns"},
        {1100, "1.1\xc2\xb5s"},
        {2200000, "2.2ms"},
        {300000000, "300ms"},
        {3300000000, "3.3s"},
        {90 * SECOND, "1m30s"},
        {MINUTE, "1m0s"},
        {HOUR, "1h0m0s"},
        {4 * MINUTE + 5 * SECOND + 1000000, "4m5.001s"},
        {5 * HOUR + 6 * MINUTE + 7 * SECOND + 1000000, "5h6m7.001s"},
        {8 * MINUTE + 1, "8m0.000000001s"},
        {-1500000, "-1.5ms"},
        {-100 * HOUR, "-100h0m0s"},
        {INT64_MAX, "2562047h47m16.854775807s"},
        {INT64_MIN, "-2562047h47m16.854775808s"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        duration_write(cases[i].ns, &out);
        assert_string_equal(out.data, cases[i].out);
    }
}

static void test_duration_write_human(void **state)
{
    static const struct {
        int64_t ns;
        const char *out;
    } cases[] = {
        {-2 * SECOND, "<invalid>"},
        {-2 * SECOND + 1, "0s"},
        {-1, "0s"},
        {0, "0s"},
        {SECOND, "1s"},
        {2 * MINUTE - 1, "119s"},
        {2 * MINUTE, "2m"},
        {3 * MINUTE + 20 * SECOND, "3m20s"},
        {10 * MINUTE - 1, "9m59s"},
        {10 * MINUTE + 59 * SECOND, "10m"},
        {3 * HOUR - 1, "179m"},
        {3 * HOUR, "3h"},
        {3 * HOUR + MINUTE, "3h1m"},
        {8 * HOUR - 1, "7h59m"},
        {8 * HOUR, "8h"},
        {2 * DAY - 1, "47h"},
        {2 * DAY, "2d"},
        {2 * DAY + HOUR, "2d1h"},
        {8 * DAY - 1, "7d23h"},
        {8 * DAY, "8d"},
        {12 * DAY, "12d"},
        {2 * YEAR - 1, "729d"},
        {2 * YEAR, "2y"},
        {2 * YEAR + 3 * DAY, "2y3d"},
        {8 * YEAR - 1, "7y364d"},
        {8 * YEAR, "8y"},
        {INT64_MAX, "292y"},
        {INT64_MIN, "<invalid>"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        duration_write_human(cases[i].ns, &out);
        assert_string_equal(out.data, cases[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_parse),
        cmocka_unit_test(test_time_refused),
        cmocka_unit_test(test_time_write),
        cmocka_unit_test(test_every_day_survives_a_round_trip),
        cmocka_unit_test(test_duration_parse),
        cmocka_unit_test(test_duration_refused),
        cmocka_unit_test(test_duration_write),
        cmocka_unit_test(test_duration_write_human),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
