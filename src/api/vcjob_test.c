// SPDX-License-Identifier: Apache-2.0
// What the attempts in the status of a Job say about its failure.
#include "api/vcjob.h"

#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define JOB(attempts) "status: {attempts: [" attempts "]}"
#define ATTEMPT(index, retry, end, rest)                                                           \
    "{task: w, index: " #index ", retry: " #retry ", endTime: '2026-01-02T10:00:" #end "Z', " rest \
    "}"

static void the_cause_is_the_first_failure_of_the_newest_run(void **state)
{
    static const struct {
        const char *about, *job;
        int64_t want; /* its index; -1: none */
        const char *end;
    } cases[] = {
        {"no attempts", "status: {}", -1, ""},
        {"all went well", JOB(ATTEMPT(0, 0, 01, "exitCode: 0, reason: Completed")), -1, ""},
        {"the others were killed because of it",
         JOB(ATTEMPT(0, 0, 09, "exitCode: 143, reason: Error") "," ATTEMPT(
             1, 0, 05, "exitCode: 17, reason: Error") "," ATTEMPT(2, 0, 09,
                                                                  "exitCode: 137, reason: Error")),
         1, "exit code 17"},
        {"earlier runs do not count",
         JOB(ATTEMPT(0, 0, 01, "exitCode: 1") "," ATTEMPT(1, 1, 05, "exitCode: 2")), 1,
         "exit code 2"},
        {"memory", JOB(ATTEMPT(3, 0, 01, "exitCode: 137, reason: OOMKilled")), 3,
         "OOMKilled (exit code 137)"},
        {"without a time it is the last to count",
         JOB("{index: 4, retry: 0, exitCode: 1}," ATTEMPT(5, 0, 59, "exitCode: 2")), 5,
         "exit code 2"},
        {"not a list", "status: {attempts: {exitCode: 1}}", -1, ""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf end = {0};
        struct hk_err err = {0};
        struct yaml_docs docs;

        if (yaml_parse(hk_str(cases[i].job), 0, &mem, &docs, &err) < 0) {
            fail_msg("%s: %s", cases[i].about, err.text);
        }
        const struct json *a = api_job_first_failure(&docs.at[0]);
        const int64_t got = a ? json_int_at(a, "index") : -1;
        if (got != cases[i].want) {
            fail_msg("%s: expected attempt %lld, got %lld", cases[i].about,
                     (long long)cases[i].want, (long long)got);
        }
        if (a) {
            api_job_write_end(a, &end);
            assert_string_equal(hk_buf_str(&end).s, cases[i].end);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cause_is_the_first_failure_of_the_newest_run),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
