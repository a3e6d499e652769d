// SPDX-License-Identifier: Apache-2.0
// Tests of the life of a container: starts, restarts, messages, hooks and probes.
#include "agent/rig_test.h"

#define ONE(policy)                                                                                \
    "  restartPolicy: " policy "\n"                                                                \
    "  containers:\n"                                                                              \
    "  - {name: c, image: i, command: [work]}\n"

static void test_the_end_of_the_log_tells_why_a_container_failed(void **state)
{
    struct rig r;
    char path[128];
    struct hk_err err = {0};

    rig_init(&r);
    rig_pod(&r, "a",
            "  restartPolicy: Never\n"
            "  containers:\n"
            "  - {name: c, image: i, command: [work], "
            "terminationMessagePolicy: FallbackToLogsOnError}\n");
    snprintf(path, sizeof(path), "%s/pods/u-a/c.0.log", r.dir);
    assert_int_equal(hk_write_file(path,
                                   HK_STR("2026-01-02T10:00:00.000000000Z stdout F all is well\n"
                                          "2026-01-02T10:00:01.000000000Z stderr P no sp\n"
                                          "2026-01-02T10:00:01.000000000Z stderr F oon\n"),
                                   &err),
                     0);
    rig_end(&r, "c", 1);
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.message", "all is well\nno spoon\n");
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.reason", "Error");
    rig_fini(&r);
}

static void test_of_long_last_words_the_end_is_kept(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf words = {0};
    struct rig r;
    char path[128];
    struct hk_err err = {0};

    rig_init(&r);
    rig_pod(&r, "a",
            "  restartPolicy: Never\n"
            "  containers:\n"
            "  - {name: c, image: i, command: [work], terminationMessagePath: /tmp/words}\n");
    for (int k = 0; k < 3000; k++) {
        hk_buf_adds(&words, "\xc3\xa4");
    }
    hk_buf_adds(&words, "!");
    snprintf(path, sizeof(path), "%s/pods/u-a/.c.0.message", r.dir);
    assert_int_equal(hk_write_file(path, hk_buf_str(&words), &err), 0);
    rig_end(&r, "c", 1);
    /* The last 4096 bytes begin inside a character. */
    assert_string_equal(
        rig_at(&r, API_POD, "a", "status.containerStatuses.0.state.terminated.message"),
        words.data + words.len - 4095);
    rig_fini(&r);
}

static void test_a_long_run_is_forgiven_all_that_was_before(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Always"));
    rig_end(&r, "c", 1);
    rig_end(&r, "c", 1);
    rig_pass(&r, 10 + 599);
    rig_end(&r, "c", 1); /* still backing off */
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.reason", "CrashLoopBackOff");
    rig_pass(&r, 20 + 600);
    rig_end(&r, "c", 1);
    assert_pod(&r, "a", "containerStatuses.0.restartCount", "4"); /* restarted at once */
    rig_fini(&r);
}

static void test_last_words_become_the_message(void **state)
{
    struct rig r;
    HK_AUTO(hk_buf_fini) struct hk_buf long_one = {0};
    const char *mounts;
    char path[128];

    rig_init(&r);
    rig_pod(&r, "a",
            "  restartPolicy: Never\n"
            "  containers:\n"
            "  - {name: c, image: i, command: [work]}\n"
            "  - {name: e, image: i, command: [work], terminationMessagePath: /tmp/last}\n");
    mounts = rig_container(&r, "c")->mounts.data;
    snprintf(path, sizeof(path), "%s/pods/u-a/.c.0.message", r.dir);
    assert_string_equal(mounts, hk_arena_printf(&r.text, "%s -> /dev/termination-log\n", path));
    for (int i = 0; i < 1000; i++) {
        hk_buf_adds(&long_one, "0123456789");
    }
    hk_buf_adds(&long_one, "the end");
    assert_int_equal(hk_write_file(path, hk_buf_str(&long_one), NULL), 0);
    snprintf(path, sizeof(path), "%s/pods/u-a/.e.0.message", r.dir);
    assert_string_equal(rig_container(&r, "e")->mounts.data,
                        hk_arena_printf(&r.text, "%s -> /tmp/last\n", path));
    assert_int_equal(hk_write_file(path, HK_STR("bye"), NULL), 0);
    rig_end(&r, "c", 0);
    rig_end(&r, "e", 1);
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.message",
               long_one.data + long_one.len - 4096);
    assert_pod(&r, "a", "containerStatuses.1.state.terminated.message", "bye");
    rig_fini(&r);
}

static void test_containers_that_fail_come_back_later_each_time(void **state)
{
    static const int64_t pauses_s[] = {0, 10, 20, 40, 80, 160, 300, 300};
    struct rig r;
    char line[32];

    rig_init(&r);
    rig_pod(&r, "a", ONE("Always"));
    for (uint32_t i = 0; i < HK_LEN(pauses_s); i++) {
        rig_end(&r, "c", 1);
        snprintf(line, sizeof(line), "start c %u\n", i + 1);
        if (pauses_s[i] > 0) {
            assert_pod(&r, "a", "phase", "Running");
            assert_pod(&r, "a", "containerStatuses.0.state.waiting.reason", "CrashLoopBackOff");
            assert_pod(&r, "a", "containerStatuses.0.lastState.terminated.exitCode", "1");
            rig_pass(&r, pauses_s[i] - 1);
            assert_false(hk_str_ends(hk_buf_str(&r.fake.log), line));
            rig_pass(&r, 1);
        }
        if (!hk_str_ends(hk_buf_str(&r.fake.log), line)) {
            fail_msg("after %d ends: want %s at the end of %s", (int)i + 1, line, r.fake.log.data);
        }
    }
    assert_pod(&r, "a", "containerStatuses.0.restartCount", "8");
    rig_pass(&r, 600);
    rig_end(&r, "c", 1);
    assert_true(hk_str_ends(hk_buf_str(&r.fake.log), "start c 9\n"));
    rig_fini(&r);
}

static void test_on_failure_a_success_is_the_end(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("OnFailure"));
    rig_end(&r, "c", 7);
    assert_pod(&r, "a", "phase", "Running");
    assert_pod(&r, "a", "containerStatuses.0.restartCount", "1");
    assert_pod(&r, "a", "containerStatuses.0.lastState.terminated.exitCode", "7");
    rig_end(&r, "c", 0);
    assert_pod(&r, "a", "phase", "Succeeded");
    rig_fini(&r);
}

static void test_without_a_command_nothing_runs(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", "  restartPolicy: Never\n  containers:\n  - {name: c, image: i}\n");
    assert_pod(&r, "a", "phase", "Failed");
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.reason", "ContainerCannotRun");
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.message",
               "image is not run here: give a command");
    rig_fini(&r);
}

static void test_an_image_with_a_root_runs_in_it(void **state)
{
    struct hk_err err = {0};
    struct rig r;

    rig_init(&r);
    assert_int_equal(hk_write_file(r.roots, HK_STR("other /x\ndebian:12  /roots/debian\n"), &err),
                     0);
    rig_pod(&r, "a",
            "  containers:\n"
            "  - {name: c, image: 'debian:12'}\n"
            "  - {name: e, image: alpine, command: [work]}\n");
    assert_string_equal(rig_container(&r, "c")->root, "/roots/debian");
    assert_string_equal(rig_container(&r, "c")->argv.data, "/bin/sh");
    assert_null(rig_container(&r, "e")->root);
    rig_fini(&r);
}

static void count_event(void *ctx, const struct api_object *o)
{
    struct hk_buf *out = ctx;

    hk_buf_addf(out, "%.*s ", HK_FMT(json_str(json_get(&o->root, "reason"), HK_STR(""))));
}

static void test_that_images_are_ignored_is_said_once(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf events = {0};
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  restartPolicy: OnFailure\n"
            "  containers:\n"
            "  - {name: c, image: i, command: [work]}\n"
            "  - {name: e, image: i, command: [work]}\n");
    rig_end(&r, "c", 1);
    port_mem_each(r.mem, api_kind(API_EVENT), count_event, &events);
    assert_string_equal(events.data, "ImageIgnored ");
    rig_fini(&r);
}

static void test_limits_nobody_enforces_are_told(void **state)
{
    struct rig r;

    rig_init(&r);
    r.fake.caveats = "cpu limits are not enforced";
    rig_pod(&r, "a", ONE("Never"));
    rig_pod(&r, "b",
            "  containers:\n"
            "  - {name: c, image: i, command: [work], resources: {limits: {cpu: 1}}}\n");
    assert_pod(&r, "a", "message", "");
    assert_pod(&r, "b", "message", "cpu limits are not enforced");
    rig_fini(&r);
}

static void test_a_post_start_hook_that_fails_ends_the_container(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  restartPolicy: Never\n"
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [work]\n"
            "    lifecycle: {postStart: {exec: {command: [prepare]}}}\n");
    rig_end(&r, "exec", 1);
    assert_string_equal(r.fake.log.data, "start c 0\nexec prepare\nkill c 15\nstop u-a\n");
    assert_pod(&r, "a", "phase", "Failed");
    rig_fini(&r);
}

static void test_what_cannot_be_started_says_why(void **state)
{
    struct rig r;

    rig_init(&r);
    r.fake.refuse = "no such file: work";
    rig_pod(&r, "a", ONE("Never"));
    assert_pod(&r, "a", "phase", "Failed");
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.reason", "ContainerCannotRun");
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.message", "no such file: work");
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.exitCode", "128");
    rig_fini(&r);
}

static void test_what_the_machine_cannot_start_now_is_tried_again(void **state)
{
    struct rig r;

    rig_init(&r);
    r.fake.refuse = "cannot fork: resource temporarily unavailable";
    r.fake.refuse_code = HK_EIO;
    rig_pod(&r, "a", ONE("Never"));
    assert_pod(&r, "a", "phase", "Pending");
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.reason", "CreateContainerError");
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.message",
               "cannot fork: resource temporarily unavailable");
    rig_pass(&r, 5);
    r.fake.refuse = NULL;
    rig_pass(&r, 10);
    assert_string_equal(r.fake.log.data, "start c 0\n");
    assert_pod(&r, "a", "phase", "Running");
    rig_end(&r, "c", 0);
    assert_pod(&r, "a", "phase", "Succeeded");
    rig_fini(&r);
}

static void test_a_shim_that_lacked_something_is_tried_again(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Never"));
    r.fake.all.at[0]->ended = r.fake.all.at[0]->told = true;
    agent_on_end(
        r.agent, 1,
        &(struct runtime_end){.code = 128, .never_ran = true, .again = true, .message = "no room"});
    rig_settle(&r);
    assert_pod(&r, "a", "phase", "Pending");
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.message", "no room");
    rig_pass(&r, 2);
    assert_string_equal(r.fake.log.data, "start c 0\nstart c 0\n");
    assert_pod(&r, "a", "phase", "Running");
    rig_fini(&r);
}

static void test_the_pre_stop_hook_comes_before_sigterm(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [work]\n"
            "    lifecycle: {preStop: {exec: {command: [say, bye]}}}\n");
    rig_delete(&r, "a", 30);
    assert_string_equal(r.fake.log.data, "start c 0\nexec say bye\n");
    rig_end(&r, "exec", 0);
    assert_string_equal(r.fake.log.data, "start c 0\nexec say bye\nkill c 15\nstop u-a\n");
    assert_null(rig_peek(&r, API_POD, "a"));
    rig_fini(&r);
}

static void test_a_pre_stop_hook_may_just_take_its_time(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [work]\n"
            "    lifecycle: {preStop: {sleep: {seconds: 5}}}\n");
    rig_delete(&r, "a", 30);
    rig_pass(&r, 4);
    assert_string_equal(r.fake.log.data, "start c 0\n");
    rig_pass(&r, 1);
    assert_string_equal(r.fake.log.data, "start c 0\nkill c 15\nstop u-a\n");
    rig_fini(&r);
}

static void test_without_grace_there_is_no_hook_and_no_waiting(void **state)
{
    struct rig r;

    rig_init(&r);
    r.fake.stubborn = true;
    rig_pod(&r, "a",
            "  terminationGracePeriodSeconds: 0\n"
            "  activeDeadlineSeconds: 10\n"
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [work]\n"
            "    lifecycle: {preStop: {exec: {command: [say, bye]}}}\n");
    rig_pass(&r, 9);
    assert_string_equal(r.fake.log.data, "start c 0\n");
    rig_pass(&r, 1);
    assert_string_equal(r.fake.log.data, "start c 0\nkill c 15\nkill c 9\nstop u-a\n");
    assert_pod(&r, "a", "reason", "DeadlineExceeded");
    rig_fini(&r);
}

/* ---- probes ---- */

static void test_a_pod_is_ready_when_its_probe_says_so(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [work]\n"
            "    readinessProbe: {exec: {command: [ready]}, periodSeconds: 5, "
            "failureThreshold: 1}\n");
    assert_string_equal(rig_condition(&r, "a", "Ready"), "False");
    rig_end(&r, "exec", 0);
    assert_string_equal(rig_condition(&r, "a", "Ready"), "True");
    rig_pass(&r, 5);
    rig_end(&r, "exec", 1);
    assert_string_equal(rig_condition(&r, "a", "Ready"), "False");
    assert_pod(&r, "a", "containerStatuses.0.restartCount", "0");
    rig_fini(&r);
}

static void test_a_probe_may_have_a_grace_period_of_its_own(void **state)
{
    struct rig r;

    rig_init(&r);
    r.fake.stubborn = true;
    rig_pod(&r, "a",
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [work]\n"
            "    livenessProbe: {exec: {command: [alive]}, failureThreshold: 1, "
            "terminationGracePeriodSeconds: 3}\n");
    rig_end(&r, "exec", 1);
    rig_pass(&r, 2);
    assert_false(rig_container(&r, "c")->ended);
    rig_pass(&r, 1);
    assert_pod(&r, "a", "containerStatuses.0.restartCount", "1");
    assert_pod(&r, "a", "containerStatuses.0.lastState.terminated.exitCode", "137");
    rig_fini(&r);
}

static void test_a_container_that_does_not_live_is_started_again(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [work]\n"
            "    livenessProbe: {exec: {command: [alive]}, periodSeconds: 5, "
            "failureThreshold: 2}\n");
    rig_end(&r, "exec", 1);
    assert_false(rig_container(&r, "c")->ended);
    rig_pass(&r, 5);
    rig_end(&r, "exec", 1);
    assert_pod(&r, "a", "containerStatuses.0.restartCount", "1");
    assert_pod(&r, "a", "containerStatuses.0.lastState.terminated.exitCode", "143");
    rig_fini(&r);
}

static void test_a_command_that_takes_too_long_has_failed(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  containers:\n"
            "  - name: c\n"
            "    image: i\n"
            "    command: [work]\n"
            "    startupProbe: {exec: {command: [up]}, timeoutSeconds: 2, failureThreshold: 1}\n");
    assert_pod(&r, "a", "containerStatuses.0.started", "false");
    rig_pass(&r, 2);
    assert_string_equal(r.fake.log.data,
                        "start c 0\nexec up\nkill exec 9\nkill c 15\nstart c 1\nexec up\n");
    rig_end(&r, "exec", 0);
    assert_pod(&r, "a", "containerStatuses.0.started", "true");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_end_of_the_log_tells_why_a_container_failed),
        cmocka_unit_test(test_of_long_last_words_the_end_is_kept),
        cmocka_unit_test(test_a_long_run_is_forgiven_all_that_was_before),
        cmocka_unit_test(test_last_words_become_the_message),
        cmocka_unit_test(test_containers_that_fail_come_back_later_each_time),
        cmocka_unit_test(test_on_failure_a_success_is_the_end),
        cmocka_unit_test(test_without_a_command_nothing_runs),
        cmocka_unit_test(test_what_cannot_be_started_says_why),
        cmocka_unit_test(test_an_image_with_a_root_runs_in_it),
        cmocka_unit_test(test_that_images_are_ignored_is_said_once),
        cmocka_unit_test(test_limits_nobody_enforces_are_told),
        cmocka_unit_test(test_a_post_start_hook_that_fails_ends_the_container),
        cmocka_unit_test(test_what_the_machine_cannot_start_now_is_tried_again),
        cmocka_unit_test(test_a_shim_that_lacked_something_is_tried_again),
        cmocka_unit_test(test_the_pre_stop_hook_comes_before_sigterm),
        cmocka_unit_test(test_a_pre_stop_hook_may_just_take_its_time),
        cmocka_unit_test(test_without_grace_there_is_no_hook_and_no_waiting),
        cmocka_unit_test(test_a_pod_is_ready_when_its_probe_says_so),
        cmocka_unit_test(test_a_probe_may_have_a_grace_period_of_its_own),
        cmocka_unit_test(test_a_container_that_does_not_live_is_started_again),
        cmocka_unit_test(test_a_command_that_takes_too_long_has_failed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
