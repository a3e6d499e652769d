// SPDX-License-Identifier: Apache-2.0
// Cron schedules: what each field means, and what is refused.
#include "codec/cron.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ALL(lo, hi) ((1ULL << ((hi) + 1)) - (1ULL << (lo)))
#define BIT(n) (1ULL << (n))

static void schedules_become_sets(void **state)
{
    static const struct {
        const char *text;
        uint64_t minutes, hours, days, months, weekdays;
        bool any_day, any_weekday;
    } cases[] = {
        {"* * * * *", ALL(0, 59), ALL(0, 23), ALL(1, 31), ALL(1, 12), ALL(0, 6), true, true},
        {"0 20 1,15 * ?", BIT(0), BIT(20), BIT(1) | BIT(15), ALL(1, 12), ALL(0, 6), false, true},
        {" */20  8-10\t* JAN-mar mon-Fri ", BIT(0) | BIT(20) | BIT(40), ALL(8, 10), ALL(1, 31),
         ALL(1, 3), ALL(1, 5), true, false},
        {"50/4 0-23/12 5-5 12 0,6", BIT(50) | BIT(54) | BIT(58), BIT(0) | BIT(12), BIT(5), BIT(12),
         BIT(0) | BIT(6), false, false},
        {"0 0 */2 * 1,*", BIT(0), BIT(0), ALL(1, 31) & 0xaaaaaaaa, ALL(1, 12), ALL(0, 6), false,
         true},
        {"0/4294967295 0 1 1 0", BIT(0), BIT(0), BIT(1), BIT(1), BIT(0), false, false},
        {"@yearly", BIT(0), BIT(0), BIT(1), BIT(1), ALL(0, 6), false, true},
        {"@weekly", BIT(0), BIT(0), ALL(1, 31), ALL(1, 12), BIT(0), true, false},
        {"@hourly", BIT(0), ALL(0, 23), ALL(1, 31), ALL(1, 12), ALL(0, 6), true, true},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_err err = {0};
        struct cron c;
        if (cron_parse(hk_str(cases[i].text), &c, &err) < 0) {
            fail_msg("%s: %s", cases[i].text, err.text);
        }
        if (c.minutes != cases[i].minutes || c.hours != cases[i].hours || c.days != cases[i].days ||
            c.months != cases[i].months || c.weekdays != cases[i].weekdays ||
            c.any_day != cases[i].any_day || c.any_weekday != cases[i].any_weekday ||
            c.every_ns != 0) {
            fail_msg("%s:\nexpected %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64
                     " %d %d\n  actual %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64
                     " %d %d",
                     cases[i].text, cases[i].minutes, cases[i].hours, cases[i].days,
                     cases[i].months, cases[i].weekdays, cases[i].any_day, cases[i].any_weekday,
                     c.minutes, c.hours, c.days, c.months, c.weekdays, c.any_day, c.any_weekday);
        }
    }
}

static void intervals_are_whole_seconds(void **state)
{
    struct cron c;

    assert_int_equal(cron_parse(HK_STR("@every 1m1500ms"), &c, NULL), 0);
    assert_int_equal(c.every_ns, 61000000000);
    assert_int_equal(cron_parse(HK_STR("@every 1ms"), &c, NULL), 0);
    assert_int_equal(c.every_ns, 1000000000);
}

static void nonsense_is_refused(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "0 fields in '', want 5"},
        {"* * * *", "4 fields in '* * * *', want 5"},
        {"0 0 * * * *", "6 fields in '0 0 * * * *', want 5"},
        {"60 * * * *", "minute '60', want 0 to 59"},
        {"* 24 * * *", "hour '24', want 0 to 23"},
        {"* * 0 * *", "day of month '0', want 1 to 31"},
        {"* * * 13 *", "month '13', want 1 to 12"},
        {"* * * * 7", "day of week '7', want 0 to 6"},
        {"5-2 * * * *", "minute '5-2', want 0 to 59"},
        {"*/0 * * * *", "minute '*/0', want 0 to 59"},
        {"1-2-3 * * * *", "minute '2-3', want a number"},
        {"*/2/3 * * * *", "minute '2/3', want a number"},
        {"mon * * * *", "minute 'mon', want a number"},
        {"* * * * -1", "day of week '', want a number"},
        {"@fortnightly", "'@fortnightly' is not a word that schedules may use"},
        {"@every soon", "time: invalid duration \"soon\""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_err err = {0};
        struct cron c;
        assert_int_equal(cron_parse(hk_str(cases[i].text), &c, &err), -HK_EINVAL);
        assert_string_equal(err.text, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_become_sets),
        cmocka_unit_test(intervals_are_whole_seconds),
        cmocka_unit_test(nonsense_is_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
