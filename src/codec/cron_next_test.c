// SPDX-License-Identifier: Apache-2.0
// Next times of schedules: simple ones, days by month and by week, and daylight saving changes.
#include "codec/cron.h"

#include "codec/timefmt.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void the_next_time_is_found(void **state)
{
    static const struct {
        const char *schedule, *zone, *after, *want; /* want NULL: never */
    } cases[] = {
        {"*/5 * * * *", "", "2026-01-01T10:00:00Z", "2026-01-01T10:05:00Z"},
        {"*/5 * * * *", "", "2026-01-01T10:04:59.9Z", "2026-01-01T10:05:00Z"},
        {"0 * * * *", "", "2026-12-31T23:30:00Z", "2027-01-01T00:00:00Z"},
        {"59 23 29 2 *", "", "2026-01-01T00:00:00Z", "2028-02-29T23:59:00Z"},
        {"0 0 29 2 *", "", "2096-03-01T00:00:00Z", NULL}, /* 2100 is not a leap year */
        {"59 23 31 2 *", "", "2026-01-01T00:00:00Z", NULL},
        {"@every 1h30m", "", "2026-01-01T10:00:00.5Z", "2026-01-01T11:30:00Z"},
        {"@weekly", "", "2026-01-01T10:00:00Z", "2026-01-04T00:00:00Z"},
        /* Either the 13th or a Friday; with a "*", both. */
        {"0 0 13 * 5", "", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z"},
        {"0 0 13 * 5", "", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"},
        {"0 0 13 * *", "", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"},
        {"0 0 */2 * 1", "", "2026-01-06T00:00:00Z", "2026-01-07T00:00:00Z"},
        /* Zones. */
        {"30 2 * * 1-5", "Europe/Berlin", "2026-01-05T00:00:00Z", "2026-01-05T01:30:00Z"},
        {"30 2 * * 1-5", "Europe/Berlin", "2026-07-06T00:00:00Z", "2026-07-06T00:30:00Z"},
        {"0 0 1 * *", "Asia/Kolkata", "2026-01-31T18:00:00Z", "2026-01-31T18:30:00Z"},
        /* 02:30 is skipped in New York on 8 March 2026, and 01:30 comes twice in autumn. */
        {"30 2 * * *", "America/New_York", "2026-03-08T05:00:00Z", "2026-03-09T06:30:00Z"},
        {"0 * * * *", "America/New_York", "2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z"},
        {"30 1 * * *", "America/New_York", "2026-11-01T04:00:00Z", "2026-11-01T05:30:00Z"},
        {"30 1 * * *", "America/New_York", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"},
        {"0 0 * * *", "America/New_York", "2026-11-01T05:00:00Z", "2026-11-02T05:00:00Z"},
        /* Midnight of 4 November 2018 did not exist in Sao Paulo. */
        {"0 0 * * *", "America/Sao_Paulo", "2018-11-03T03:00:00Z", "2018-11-05T02:00:00Z"},
        {"0 9 4 11 *", "America/Sao_Paulo", "2018-10-01T00:00:00Z", "2018-11-04T11:00:00Z"},
        /* Samoa had no 30 December 2011. */
        {"0 12 31 12 *", "Pacific/Apia", "2011-12-20T00:00:00Z", "2011-12-30T22:00:00Z"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(tzfile_freep) struct tzfile *zone = NULL;
        HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
        struct hk_err err = {0};
        struct cron c;
        int64_t after_ns = 0;
        int64_t next_ns;

        if (cron_parse(hk_str(cases[i].schedule), &c, &err) < 0 ||
            tzfile_load(hk_str(cases[i].zone), &zone, &err) < 0 ||
            time_parse(hk_str(cases[i].after), &after_ns, &err) < 0) {
            fail_msg("%s: %s", cases[i].schedule, err.text);
        }
        if (cron_next(&c, zone, after_ns, &next_ns)) {
            time_write(next_ns, &got);
        } else {
            hk_buf_adds(&got, "never");
        }
        if (strcmp(got.data, cases[i].want ? cases[i].want : "never") != 0) {
            fail_msg("'%s' %s after %s: expected %s, actual %s", cases[i].schedule, cases[i].zone,
                     cases[i].after, cases[i].want ? cases[i].want : "never", got.data);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_time_is_found),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
