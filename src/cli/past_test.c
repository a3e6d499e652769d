// SPDX-License-Identifier: Apache-2.0
// The progress, results and history of jobs; lines of logs.
#include "cli/past.h"

#include "cli/logline.h"
#include "cli/progress.h"
#include "cli/rig_test.h"

static const struct term plain = {.columns = 80, .rows = 24};

/* ---- progress ---- */

static void test_exit_codes(void **state)
{
    static const struct {
        const char *status;
        int code;
    } cases[] = {
        {"{state: {phase: Completed}, attempts: [{task: t, index: 0, exitCode: 3}]}", 0},
        {"{state: {phase: Failed}}", 1},
        {"{state: {phase: Failed}, attempts: [{task: t, index: 0, exitCode: 7}, {task: t, index: "
         "1, exitCode: 7}, {task: t, index: 2, exitCode: 0}]}",
         7},
        {"{state: {phase: Failed}, attempts: [{task: t, index: 0, exitCode: 7}, {task: t, index: "
         "1, exitCode: 8}]}",
         1},
        /* a failure followed by a successful attempt does not count */
        {"{state: {phase: Failed}, attempts: [{task: t, index: 0, exitCode: 7}, {task: t, index: "
         "0, retry: 1, exitCode: 0}, {task: t, index: 1, exitCode: 9}]}",
         9},
        {"{state: {phase: Aborted}, attempts: [{task: t, index: 0, exitCode: 143}]}", 143},
        {"{state: {phase: Failed}, attempts: [{task: t, index: 0, exitCode: 999}]}", 1},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        hk_buf_addf(&text, "metadata: {name: j, namespace: a}\nstatus: %s\n", cases[i].status);
        HK_AUTO(given_fini) struct given job = given(API_JOB, text.data);
        assert_int_equal(progress_exit_code(job.at[0]), cases[i].code);
    }
}

static void test_progress_lines(void **state)
{
    HK_AUTO(given_fini)
    struct given job = given(API_JOB, "metadata: {name: j, namespace: a}\n"
                                      "spec: {tasks: [{replicas: 4}]}\n"
                                      "status: {state: {phase: Running}, running: 2, succeeded: "
                                      "1, failed: 1, retryCount: 1}\n");
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct term wide = {.is = true, .columns = 100, .rows = 24};
    const struct term narrow = {.is = true, .columns = 30, .rows = 24};

    progress_write(&plain, job.at[0], &out);
    progress_write(&wide, job.at[0], &out);
    progress_write(&narrow, job.at[0], &out);
    assert_string_equal(out.data,
                        "j  Running  1/4  2 running  1 failed  retry 1\n"
                        "j  Running  [######------------------] 1/4  2 running  1 failed  retry 1\n"
                        "j  Running  1/4\n");
    assert_false(progress_is_over(job.at[0]));
}

/* ---- history ---- */

#define JOB                                                                                        \
    "metadata: {name: j, namespace: a, uid: u, creationTimestamp: '2026-08-20T12:00:00Z'}\n"       \
    "spec: {queue: q, tasks: [{replicas: 2}]}\n"                                                   \
    "status:\n"                                                                                    \
    "  state: {phase: Failed, lastTransitionTime: '2026-08-20T12:03:00Z'}\n"                       \
    "  retryCount: 2\n"                                                                            \
    "  conditions:\n"                                                                              \
    "  - {status: Pending, lastTransitionTime: '2026-08-20T12:00:00Z'}\n"                          \
    "  - {status: Failed, lastTransitionTime: '2026-08-20T12:03:00Z'}\n"                           \
    "  attempts:\n"                                                                                \
    "  - {task: t, index: 0, retry: 0, node: n0, startTime: '2026-08-20T12:01:00Z', endTime: "     \
    "'2026-08-20T12:01:30Z', exitCode: 137, reason: Preempted}\n"                                  \
    "  - {task: t, index: 0, retry: 1, node: n0, startTime: '2026-08-20T12:02:00Z', endTime: "     \
    "'2026-08-20T12:03:00Z', exitCode: 3, reason: Error, message: broken}\n"

static void test_rows(void **state)
{
    HK_AUTO(given_fini) struct given job = given(API_JOB, JOB);
    HK_AUTO(grid_fini) struct grid g = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct past p = past_of(job.at[0], now());

    past_heads(false, &g);
    past_row(&p, false, &g);
    grid_write(&g, &plain, &out);
    assert_string_equal(out.data,
                        "NAME  QUEUE  PHASE   QUEUED               STARTED              ENDED      "
                        "          WAITED  RAN  TASKS  RETRIES  EVICTED  EXIT\n"
                        "j     q      Failed  2026-08-20 12:00:00  2026-08-20 12:01:00  2026-08-20 "
                        "12:03:00  60s     2m       2        1        1     3\n");
}

/* Two restarts; the conditions hold only the last time of each phase. */
static void test_what_a_restarted_job_did_before(void **state)
{
    HK_AUTO(given_fini)
    struct given job = given(
        API_JOB, "metadata: {name: j, namespace: a, creationTimestamp: '2026-08-20T12:00:00Z'}\n"
                 "status:\n"
                 "  state: {phase: Completed, lastTransitionTime: '2026-08-20T12:05:00Z'}\n"
                 "  conditions:\n"
                 "  - {status: Restarting, lastTransitionTime: '2026-08-20T12:04:00Z'}\n"
                 "  - {status: Pending, lastTransitionTime: '2026-08-20T12:04:01Z'}\n"
                 "  - {status: Running, lastTransitionTime: '2026-08-20T12:04:02Z'}\n"
                 "  - {status: Completed, lastTransitionTime: '2026-08-20T12:05:00Z'}\n"
                 "  attempts:\n"
                 "  - {task: t, index: 0, retry: 0, exitCode: 1, startTime: "
                 "'2026-08-20T12:01:00Z', endTime: "
                 "'2026-08-20T12:02:00Z'}\n"
                 "  - {task: t, index: 0, retry: 1, exitCode: 1, startTime: "
                 "'2026-08-20T12:03:00Z', endTime: "
                 "'2026-08-20T12:04:00Z'}\n"
                 "  - {task: t, index: 0, retry: 2, exitCode: 0, startTime: "
                 "'2026-08-20T12:04:02Z', endTime: "
                 "'2026-08-20T12:05:00Z'}\n");
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct past p = past_of(job.at[0], now());
    const struct list_set none = {0};

    past_page(&p, &none, &plain, &out);
    assert_non_null(strstr(out.data, "PHASES\n"
                                     "2026-08-20 12:00:00  Pending\n"
                                     "2026-08-20 12:01:00  Running\n"
                                     "2026-08-20 12:02:00  Restarting\n"
                                     "2026-08-20 12:03:00  Running\n"
                                     "2026-08-20 12:04:00  Restarting\n"
                                     "2026-08-20 12:04:01  Pending\n"
                                     "2026-08-20 12:04:02  Running\n"
                                     "2026-08-20 12:05:00  Completed\n\n"));
}

static void test_page(void **state)
{
    HK_AUTO(given_fini) struct given job = given(API_JOB, JOB);
    HK_AUTO(given_fini)
    struct given events =
        given(API_EVENT,
              "metadata: {name: e2, namespace: a}\ninvolvedObject: {kind: PodGroup, name: j-u}\n"
              "reason: Evict\nmessage: for others\nlastTimestamp: '2026-08-20T12:01:30Z'\n---\n"
              "metadata: {name: e1, namespace: a}\ninvolvedObject: {kind: Job, name: j}\n"
              "reason: First\nmessage: 'hello '\nlastTimestamp: '2026-08-20T12:00:00Z'\n---\n"
              "metadata: {name: e3, namespace: a}\ninvolvedObject: {kind: Job, name: j2}\n"
              "reason: Other\nmessage: no\n---\n"
              "metadata: {name: e4, namespace: a}\ninvolvedObject: {kind: Pod, name: j-t-0}\n"
              "type: Normal\nreason: Scheduled\nmessage: no\n");
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct past p = past_of(job.at[0], now());
    const struct list_set set = {events.at, events.n};

    past_page(&p, &set, &plain, &out);
    assert_string_equal(out.data,
                        "NAMESPACE  a\n"
                        "NAME       j\n"
                        "QUEUE      q\n"
                        "PHASE      Failed\n"
                        "QUEUED     2026-08-20 12:00:00\n"
                        "STARTED    2026-08-20 12:01:00\n"
                        "ENDED      2026-08-20 12:03:00\n"
                        "WAITED     60s\n"
                        "RAN        2m\n"
                        "TASKS      2\n"
                        "RETRIES    1\n"
                        "EVICTED    1\n"
                        "EXIT       3\n"
                        "\n"
                        "PHASES\n"
                        "2026-08-20 12:00:00  Pending\n"
                        "2026-08-20 12:01:00  Running\n"
                        "2026-08-20 12:03:00  Failed\n"
                        "\n"
                        "ATTEMPTS\n"
                        "RETRY  TASK  NODE  STARTED              RAN  EXIT  REASON     MESSAGE\n"
                        "    0  t-0   n0    2026-08-20 12:01:00  30s   137  Preempted  -\n"
                        "    1  t-0   n0    2026-08-20 12:02:00  60s     3  Error      broken\n"
                        "\n"
                        "EVENTS\n"
                        "LAST                 REASON  ABOUT     MESSAGE\n"
                        "2026-08-20 12:00:00  First   Job       hello\n"
                        "2026-08-20 12:01:30  Evict   PodGroup  for others\n");
}

static void test_a_job_that_waits(void **state)
{
    HK_AUTO(given_fini)
    struct given job = given(API_JOB, "metadata: {name: j, namespace: a, creationTimestamp: "
                                      "'2026-08-20T12:05:00Z'}\n"
                                      "spec: {tasks: [{replicas: 1}]}\n");
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct past p = past_of(job.at[0], now());
    const struct json v = past_json(&p, &mem);

    json_write(&v, &out);
    assert_string_equal(out.data,
                        "{\"name\":\"j\",\"namespace\":\"a\",\"queue\":\"\",\"phase\":\"Pending\","
                        "\"queued\":\"2026-08-20T12:05:00Z\",\"waitedSeconds\":10,\"tasks\":1,"
                        "\"retries\":0,\"evictions\":0,\"attempts\":[]}");
}

/* ---- lines of logs ---- */

static void test_log_lines(void **state)
{
    static const struct {
        const char *line, *text;
        bool stamped;
    } cases[] = {
        {"2026-08-20T12:05:10Z hello  you", "hello  you", true},
        {"2026-08-20T12:05:10.5Z ", "", true},
        {"2026-08-20T12:05:10Z", "", true},
        {"no time at all", "no time at all", false},
        {"", "", false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct logline l;
        logline_parse(hk_str(cases[i].line), 7, &l);
        assert_true(hk_str_is(l.text, cases[i].text));
        assert_int_equal(l.stamp.n > 0, cases[i].stamped);
        assert_true(cases[i].stamped ? l.ns >= now() : l.ns == 7);
    }
}

static void test_log_prefixes(void **state)
{
    const struct logline l = {0, HK_STR("12:00"), HK_STR("hi")};
    const struct logline_how all = {.prefix = true, .stamps = true}, none = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct logline_how bright = {.prefix = true};

    bright.term = (struct term){.is = true, .colour = true, .columns = 80, .rows = 24};
    logline_write(&l, logline_prefix(HK_STR("train"), HK_STR("train-task-0")), 0, &all, &out);
    logline_write(&l, HK_STR("x"), 0, &none, &out);
    logline_write(&l, logline_prefix(HK_STR(""), HK_STR("pod")), 1, &bright, &out);
    logline_write(&l, logline_prefix(HK_STR("tra"), HK_STR("train-task-0")), 0, &all, &out);
    assert_string_equal(out.data, "[task-0] 12:00 hi\n"
                                  "hi\n"
                                  "\033[33m[pod]\033[0m hi\n"
                                  "[train-task-0] 12:00 hi\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_progress_lines),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_what_a_restarted_job_did_before),
        cmocka_unit_test(test_a_job_that_waits),
        cmocka_unit_test(test_log_lines),
        cmocka_unit_test(test_log_prefixes),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, use_utc, NULL);
}
