// SPDX-License-Identifier: Apache-2.0
// Time zones: offsets from the table and from the rule after it, civil time in both directions
// across clock changes, and invalid files.
#include "codec/tzfile.h"

#include "base/file.h"
#include "codec/timefmt.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define NS 1000000000

static struct tzfile *load(const char *name)
{
    struct tzfile *z = NULL;
    struct hk_err err = {0};

    if (tzfile_load(hk_str(name), &z, &err) < 0) {
        fail_msg("%s: %s", name, err.text);
    }
    return z;
}

static int64_t seconds(const char *text)
{
    int64_t ns = 0;

    assert_int_equal(time_parse(hk_str(text), &ns, NULL), 0);
    return ns / NS;
}

static void offsets_follow_table_and_rule(void **state)
{
    static const struct {
        const char *zone, *at;
        int32_t offset_s;
    } cases[] = {
        {"UTC", "2026-07-01T00:00:00Z", 0},
        {"", "2026-07-01T00:00:00Z", 0},
        {"Europe/Berlin", "1890-01-01T00:00:00Z", 3208}, /* local mean time */
        {"Europe/Berlin", "2026-01-01T00:00:00Z", 3600},
        {"Europe/Berlin", "2026-03-29T00:59:59Z", 3600},
        {"Europe/Berlin", "2026-03-29T01:00:00Z", 7200},
        {"Europe/Berlin", "2099-07-01T00:00:00Z", 7200}, /* after the end of any table */
        {"Europe/Berlin", "2099-10-25T01:00:00Z", 3600},
        {"America/New_York", "2026-03-08T06:59:59Z", -18000},
        {"America/New_York", "2026-03-08T07:00:00Z", -14400},
        {"Australia/Lord_Howe", "2060-01-01T00:00:00Z", 39600},
        {"Australia/Lord_Howe", "2060-07-01T00:00:00Z", 37800},
        {"Asia/Kathmandu", "2026-01-01T00:00:00Z", 20700},
        {"Asia/Tokyo", "2080-01-01T00:00:00Z", 32400},
        {"Europe/Dublin", "2080-01-01T00:00:00Z", 0}, /* its summer time is the standard time */
        {"Europe/Dublin", "2080-07-01T00:00:00Z", 3600},
        {"Pacific/Apia", "2011-12-30T09:59:59Z", -36000},
        {"Pacific/Apia", "2011-12-30T10:00:00Z", 50400},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(tzfile_freep) struct tzfile *z = load(cases[i].zone);
        const int32_t got = tzfile_offset(z, seconds(cases[i].at));

        if (got != cases[i].offset_s) {
            fail_msg("%s at %s: expected %d, actual %d", cases[i].zone, cases[i].at,
                     cases[i].offset_s, got);
        }
    }
}

static void civil_time_is_found_both_ways(void **state)
{
    static const struct {
        const char *zone;
        struct tz_civil civil;
        const char *at;
        bool skipped; /* a local time that did not exist */
    } cases[] = {
        {"UTC", {2026, 1, 2, 3, 4, 5, 5}, "2026-01-02T03:04:05Z", false},
        {"Europe/Berlin", {2026, 7, 1, 0, 0, 0, 3}, "2026-06-30T22:00:00Z", false},
        {"Europe/Berlin", {2026, 3, 29, 2, 30, 0, 0}, "2026-03-29T01:30:00Z", true},
        {"Europe/Berlin", {2026, 10, 25, 2, 30, 0, 0}, "2026-10-25T01:30:00Z", false},
        {"America/New_York", {2026, 3, 8, 2, 30, 0, 0}, "2026-03-08T06:30:00Z", true},
        {"America/New_York", {2026, 11, 1, 1, 30, 0, 0}, "2026-11-01T05:30:00Z", false},
        /* The table ends here, and the rule starts. */
        {"Asia/Seoul", {1988, 10, 8, 22, 0, 0, 6}, "1988-10-08T12:00:00Z", false},
        {"Asia/Kolkata", {1969, 12, 31, 23, 59, 59, 3}, "1969-12-31T18:29:59Z", false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(tzfile_freep) struct tzfile *z = load(cases[i].zone);
        const int64_t want_s = seconds(cases[i].at);
        const int64_t got_s = tzfile_instant(z, &cases[i].civil);
        const struct tz_civil back = tzfile_civil(z, want_s);

        if (got_s != want_s) {
            fail_msg("%s: expected %s (%lld), actual %lld", cases[i].zone, cases[i].at,
                     (long long)want_s, (long long)got_s);
        }
        if (!cases[i].skipped) {
            assert_memory_equal(&back, &cases[i].civil, sizeof(back));
        }
    }
}

static void days_past_the_end_carry_over(void **state)
{
    const struct tz_civil c = {.year = 2026, .month = 2, .day = 29, .hour = 25};

    assert_int_equal(tzfile_instant(NULL, &c), seconds("2026-03-02T01:00:00Z"));
}

static void invalid_names_are_refused(void **state)
{
    static const struct {
        const char *name;
        int rc;
    } cases[] = {
        {"Europe/Atlantis", -HK_ENOTFOUND}, {"../../etc/passwd", -HK_EINVAL},
        {"/etc/localtime", -HK_EINVAL},     {"Europe//Berlin", -HK_EINVAL},
        {"Europe", -HK_ENOTFOUND},          {"tzdata.zi", -HK_EINVAL},
        {"Europe/Ber lin", -HK_EINVAL},     {"-05", -HK_EINVAL},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct tzfile *z = NULL;
        struct hk_err err = {0};
        const int rc = tzfile_load(hk_str(cases[i].name), &z, &err);

        if (rc != cases[i].rc) {
            fail_msg("%s: expected %d, actual %d (%s)", cases[i].name, cases[i].rc, rc, err.text);
        }
        assert_null(z);
    }
}

/* Every truncated file is either refused or answers queries. */
static void broken_files_are_refused(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf bytes = {0};
    size_t good = 0;

    assert_int_equal(hk_read_file("/usr/share/zoneinfo/Europe/Berlin", 1 << 20, &bytes, NULL), 0);
    for (size_t n = 0; n < bytes.len; n++) {
        HK_AUTO(hk_freep) char *copy = hk_alloc(n + 1);
        struct tzfile *z = NULL;

        memcpy(copy, bytes.data, n);
        if (tzfile_parse((struct hk_str){copy, n}, &z, NULL) == 0) {
            good++;
            (void)tzfile_offset(z, 0);
        }
        tzfile_free(z);
    }
    assert_int_equal(good, 0);
}

/* A file without a table, and a rule of each kind. */
static void rules_are_read(void **state)
{
    static const struct {
        const char *rule;
        int rc;
        int32_t january_s, july_s;
    } cases[] = {
        {"UTC0", 0, 0, 0},
        {"<+0530>-5:30", 0, 19800, 19800},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 0, 3600, 7200},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", 0, 0, 3600},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", 0, 39600, 36000},
        {"XXX3YYY,J60,J300", 0, -10800, -7200},
        {"XXX3YYY1,59/0,299/-1", 0, -10800, -3600},
        {"", 0, 77, 77}, /* the table's first type */
        {"X", -HK_EINVAL, 0, 0},
        {"CET-1CEST", -HK_EINVAL, 0, 0},
        {"CET-1CEST,M13.5.0,M10.5.0/3", -HK_EINVAL, 0, 0},
        {"CET-1CEST,M3.5.0,M10.5.0/3x", -HK_EINVAL, 0, 0},
        {"CET-25", -HK_EINVAL, 0, 0},
    };
    static const char header[44] = "TZif2";

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf file = {0};
        struct tzfile *z = NULL;
        char second[44];
        int rc;

        memcpy(second, header, sizeof(second));
        second[39] = 1; /* one type */
        hk_buf_add(&file, header, sizeof(header));
        hk_buf_add(&file, second, sizeof(second));
        hk_buf_add(&file, "\0\0\0\x4d\0\0", 6);
        hk_buf_addf(&file, "\n%s\n", cases[i].rule);
        rc = tzfile_parse(hk_buf_str(&file), &z, NULL);
        if (rc != cases[i].rc) {
            fail_msg("'%s': expected %d, actual %d", cases[i].rule, cases[i].rc, rc);
        }
        if (rc == 0) {
            assert_int_equal(tzfile_offset(z, seconds("2028-01-15T00:00:00Z")), cases[i].january_s);
            assert_int_equal(tzfile_offset(z, seconds("2028-07-15T00:00:00Z")), cases[i].july_s);
        }
        tzfile_free(z);
    }
}

static void zones_of_the_system_exist(void **state)
{
    static const char *const there[] = {"UTC", "Europe/Berlin", "America/Argentina/Ushuaia"};
    static const char *const not_there[] = {"Mars/Base", "europe/berlin", "Zulu/", "../passwd"};

    for (size_t i = 0; i < HK_LEN(there); i++) {
        if (!tzfile_exists(hk_str(there[i]))) {
            fail_msg("%s: expected a zone", there[i]);
        }
    }
    for (size_t i = 0; i < HK_LEN(not_there); i++) {
        if (tzfile_exists(hk_str(not_there[i]))) {
            fail_msg("%s: expected no zone", not_there[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_follow_table_and_rule),
        cmocka_unit_test(civil_time_is_found_both_ways),
        cmocka_unit_test(days_past_the_end_carry_over),
        cmocka_unit_test(invalid_names_are_refused),
        cmocka_unit_test(broken_files_are_refused),
        cmocka_unit_test(rules_are_read),
        cmocka_unit_test(zones_of_the_system_exist),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
