// SPDX-License-Identifier: Apache-2.0
// The life of pods: start, failure, restart and deletion.
#include "agent/rig_test.h"

#define ONE(policy)                                                                                \
    "  restartPolicy: " policy "\n"                                                                \
    "  containers:\n"                                                                              \
    "  - {name: c, image: i, command: [work]}\n"

static void test_a_pod_runs_and_succeeds(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Never"));
    assert_pod(&r, "a", "phase", "Running");
    assert_pod(&r, "a", "hostIP", "127.0.0.1");
    assert_pod(&r, "a", "startTime", "2026-01-02T10:00:00Z");
    assert_pod(&r, "a", "containerStatuses.0.state",
               "{\"running\":{\"startedAt\":\"2026-01-02T10:00:00Z\"}}");
    assert_string_equal(rig_condition(&r, "a", "Ready"), "True");
    rig_set_now(&r, r.clock.now_ns + 5 * RIG_SECOND_NS);
    rig_end(&r, "c", 0);
    assert_pod(&r, "a", "phase", "Succeeded");
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.reason", "Completed");
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.finishedAt", "2026-01-02T10:00:05Z");
    assert_string_equal(rig_condition(&r, "a", "Ready"), "False");
    assert_string_equal(rig_condition(&r, "a", "Initialized"), "True");
    assert_string_equal(r.fake.log.data, "start c 0\nstop u-a\n");
    rig_fini(&r);
}

static void test_the_status_is_written_on_change_only(void **state)
{
    struct rig r;

    rig_init(&r);
    port_mem_log_clear(r.mem);
    rig_pod(&r, "a", ONE("Never"));
    assert_int_equal(rig_calls(&r, "patch pods/status d/a"), 1);
    rig_pass(&r, 3600);
    rig_put(&r, "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: d, name: m}\n");
    assert_int_equal(rig_calls(&r, "patch pods/status d/a"), 1);
    rig_end(&r, "c", 0);
    rig_pass(&r, 3600);
    assert_int_equal(rig_calls(&r, "patch pods/status d/a"), 2);
    rig_fini(&r);
}

/* Also after a conflict: it does not prove that the pod is gone. */
static void test_a_failed_report_is_made_again(void **state)
{
    static const int failures[] = {HK_EIO, HK_EBUSY, HK_ECONFLICT};

    for (size_t i = 0; i < HK_LEN(failures); i++) {
        struct rig r;

        rig_init(&r);
        rig_pod(&r, "a", ONE("Never"));
        port_mem_fail(r.mem, PORT_PATCH, 1, failures[i]);
        rig_end(&r, "c", 4);
        assert_pod(&r, "a", "phase", "Running");
        rig_pass(&r, 1);
        assert_pod(&r, "a", "phase", "Failed");
        assert_pod(&r, "a", "containerStatuses.0.state.terminated.exitCode", "4");
        rig_fini(&r);
    }
}

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

#define WITH_INIT                                                                                  \
    "  restartPolicy: Never\n"                                                                     \
    "  initContainers:\n"                                                                          \
    "  - {name: i1, image: i, command: [work]}\n"                                                  \
    "  - {name: i2, image: i, command: [work]}\n"                                                  \
    "  containers:\n"                                                                              \
    "  - {name: c1, image: i, command: [work]}\n"                                                  \
    "  - {name: c2, image: i, command: [work]}\n"

static void test_init_containers_run_one_by_one_and_first(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", WITH_INIT);
    assert_string_equal(r.fake.log.data, "start i1 0\n");
    assert_pod(&r, "a", "phase", "Pending");
    assert_pod(&r, "a", "containerStatuses.0.state.waiting.reason", "PodInitializing");
    assert_string_equal(rig_condition(&r, "a", "Initialized"), "False");
    rig_end(&r, "i1", 0);
    assert_string_equal(r.fake.log.data, "start i1 0\nstart i2 0\n");
    rig_end(&r, "i2", 0);
    assert_string_equal(r.fake.log.data, "start i1 0\nstart i2 0\nstart c1 0\nstart c2 0\n");
    assert_pod(&r, "a", "phase", "Running");
    rig_end(&r, "c1", 0);
    assert_pod(&r, "a", "phase", "Running");
    rig_end(&r, "c2", 0);
    assert_pod(&r, "a", "phase", "Succeeded");
    rig_fini(&r);
}

static void test_a_failed_init_container_fails_the_pod(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", WITH_INIT);
    rig_end(&r, "i1", 2);
    assert_pod(&r, "a", "phase", "Failed");
    assert_pod(&r, "a", "initContainerStatuses.0.state.terminated.exitCode", "2");
    assert_string_equal(r.fake.log.data, "start i1 0\nstop u-a\n");
    rig_fini(&r);
}

static void test_sidecars_live_as_long_as_those_they_serve(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  restartPolicy: Never\n"
            "  initContainers:\n"
            "  - {name: s, image: i, command: [serve], restartPolicy: Always}\n"
            "  containers:\n"
            "  - {name: c, image: i, command: [work]}\n");
    assert_string_equal(r.fake.log.data, "start s 0\nstart c 0\n");
    rig_end(&r, "s", 1);
    assert_string_equal(r.fake.log.data, "start s 0\nstart c 0\nstart s 1\n");
    rig_end(&r, "c", 0);
    assert_string_equal(r.fake.log.data, "start s 0\nstart c 0\nstart s 1\nkill s 15\nstop u-a\n");
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

static void test_pods_of_other_nodes_are_left_alone(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_put(&r, "apiVersion: v1\nkind: Pod\nmetadata: {namespace: d, name: a, uid: u-a}\n"
                "spec:\n  nodeName: n2\n" ONE("Never"));
    assert_pod(&r, "a", "phase", "");
    assert_int_equal(r.fake.log.len, 0);
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

static void test_a_finished_pod_is_not_run_again(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Never"));
    rig_end(&r, "c", 0);
    rig_down(&r);
    port_mem_log_clear(r.mem);
    rig_up(&r);
    assert_string_equal(r.fake.log.data, "start c 0\nstop u-a\nstop u-a\n");
    assert_int_equal(rig_calls(&r, "patch pods/status d/a"), 0);
    assert_pod(&r, "a", "phase", "Succeeded");
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

static void test_what_a_killed_agent_did_not_get_to_start_is_started(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Never"));
    rig_down(&r);
    r.fake.lost = true;
    rig_up(&r);
    assert_string_equal(r.fake.log.data, "start c 0\nstart c 0\n");
    assert_pod(&r, "a", "containerStatuses.0.restartCount", "0");
    rig_fini(&r);
}

static void test_a_clock_that_is_set_ends_nothing(void **state)
{
    static const int64_t steps_s[] = {86400, -86400};

    for (size_t i = 0; i < HK_LEN(steps_s); i++) {
        struct rig r;

        rig_init(&r);
        r.fake.stubborn = true;
        rig_pod(&r, "a", "  activeDeadlineSeconds: 60\n" ONE("Never"));
        rig_pod(&r, "b", ONE("Always"));
        rig_end(&r, "c", 1);
        rig_end(&r, "c", 1);
        assert_pod(&r, "b", "containerStatuses.0.state.waiting.reason", "CrashLoopBackOff");
        r.step_ns = steps_s[i] * RIG_SECOND_NS;
        rig_pass(&r, 9);
        assert_pod(&r, "b", "containerStatuses.0.restartCount", "1");
        rig_pass(&r, 1);
        assert_pod(&r, "b", "containerStatuses.0.restartCount", "2");
        rig_pass(&r, 49);
        assert_pod(&r, "a", "phase", "Running");
        rig_pass(&r, 32);
        assert_pod(&r, "a", "reason", "DeadlineExceeded");
        r.step_ns = 0;
        rig_delete(&r, "b", 30);
        r.step_ns = -steps_s[i] * RIG_SECOND_NS;
        rig_pass(&r, 29);
        assert_non_null(rig_peek(&r, API_POD, "b"));
        rig_pass(&r, 1);
        assert_null(rig_peek(&r, API_POD, "b"));
        rig_fini(&r);
    }
}

static void test_the_active_deadline_ends_a_pod(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", "  activeDeadlineSeconds: 60\n" ONE("Always"));
    rig_pass(&r, 59);
    assert_pod(&r, "a", "phase", "Running");
    rig_pass(&r, 1);
    assert_pod(&r, "a", "phase", "Failed");
    assert_pod(&r, "a", "reason", "DeadlineExceeded");
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.exitCode", "143");
    rig_fini(&r);
}

/* ---- deletion ---- */

static void test_a_deleted_pod_is_stopped_and_removed(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Always"));
    port_mem_log_clear(r.mem);
    rig_delete(&r, "a", 30);
    assert_null(rig_peek(&r, API_POD, "a"));
    assert_string_equal(r.fake.log.data, "start c 0\nkill c 15\nstop u-a\n");
    assert_int_equal(rig_calls(&r, "patch pods/status d/a"), 1);
    assert_int_equal(rig_calls(&r, "delete pods d/a"), 1);
    assert_null(rig_file(&r, "pods/u-a/.address"));
    rig_fini(&r);
}

static void test_who_ignores_sigterm_is_killed_after_the_grace_period(void **state)
{
    struct rig r;

    rig_init(&r);
    r.fake.stubborn = true;
    rig_pod(&r, "a", ONE("Always"));
    rig_delete(&r, "a", 30);
    rig_pass(&r, 29);
    assert_string_equal(r.fake.log.data, "start c 0\nkill c 15\n");
    assert_non_null(rig_peek(&r, API_POD, "a"));
    rig_pass(&r, 1);
    assert_string_equal(r.fake.log.data, "start c 0\nkill c 15\nkill c 9\nstop u-a\n");
    assert_null(rig_peek(&r, API_POD, "a"));
    rig_fini(&r);
}

static void test_who_is_not_killed_at_once_is_killed_again(void **state)
{
    struct rig r;

    rig_init(&r);
    r.fake.deaf = true;
    rig_pod(&r, "a", ONE("Always"));
    rig_delete(&r, "a", 30);
    rig_pass(&r, 30);
    assert_string_equal(r.fake.log.data, "start c 0\nkill c 15\nkill c 9\n");
    rig_pass(&r, 9);
    r.fake.deaf = false;
    rig_pass(&r, 1);
    assert_string_equal(r.fake.log.data, "start c 0\nkill c 15\nkill c 9\nkill c 9\nstop u-a\n");
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

static void test_a_pod_gone_from_the_api_is_stopped_at_once(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Always"));
    port_mem_remove(r.mem, api_kind(API_POD), HK_STR("d"), HK_STR("a"));
    rig_settle(&r);
    assert_string_equal(r.fake.log.data, "start c 0\nstop u-a\n");
    assert_null(rig_file(&r, "pods/u-a/.address"));
    rig_fini(&r);
}

static void test_a_pod_of_the_same_name_is_another_pod(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Never"));
    port_mem_remove(r.mem, api_kind(API_POD), HK_STR("d"), HK_STR("a"));
    rig_put(&r, "apiVersion: v1\nkind: Pod\nmetadata: {namespace: d, name: a, uid: other}\n"
                "spec:\n  nodeName: n1\n" ONE("Never"));
    assert_true(r.fake.all.at[0]->ended);
    assert_false(r.fake.all.at[1]->ended);
    assert_string_equal(r.fake.all.at[1]->pod, "other");
    assert_pod(&r, "a", "phase", "Running");
    rig_fini(&r);
}

/* ---- names ---- */

static void test_pods_of_a_job_know_each_other_by_name(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", "  hostname: w-0\n  subdomain: j\n" ONE("Never"));
    rig_pod(&r, "b", "  hostname: w-1\n  subdomain: j\n" ONE("Never"));
    rig_pod(&r, "x", ONE("Never"));
    const char *a = rig_at(&r, API_POD, "a", "status.podIP");
    const char *b = rig_at(&r, API_POD, "b", "status.podIP");
    assert_true(hk_str_starts(hk_str(a), "127."));
    assert_string_not_equal(a, b);
    const char *want =
        hk_arena_printf(&r.text,
                        "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
                        "%s w-0.j.d.svc.cluster.local w-0.j.d.svc w-0.j w-0\n"
                        "%s w-1.j.d.svc.cluster.local w-1.j.d.svc w-1.j w-1\n",
                        a, b);
    assert_string_equal(rig_file(&r, "pods/u-a/.hosts"), want);
    assert_string_equal(rig_file(&r, "pods/u-b/.hosts"), want);
    port_mem_remove(r.mem, api_kind(API_POD), HK_STR("d"), HK_STR("b"));
    rig_settle(&r);
    assert_null(strstr(rig_file(&r, "pods/u-a/.hosts"), "w-1"));
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
        cmocka_unit_test(test_a_pod_runs_and_succeeds),
        cmocka_unit_test(test_the_status_is_written_on_change_only),
        cmocka_unit_test(test_a_failed_report_is_made_again),
        cmocka_unit_test(test_the_end_of_the_log_tells_why_a_container_failed),
        cmocka_unit_test(test_of_long_last_words_the_end_is_kept),
        cmocka_unit_test(test_a_long_run_is_forgiven_all_that_was_before),
        cmocka_unit_test(test_last_words_become_the_message),
        cmocka_unit_test(test_containers_that_fail_come_back_later_each_time),
        cmocka_unit_test(test_on_failure_a_success_is_the_end),
        cmocka_unit_test(test_init_containers_run_one_by_one_and_first),
        cmocka_unit_test(test_a_failed_init_container_fails_the_pod),
        cmocka_unit_test(test_sidecars_live_as_long_as_those_they_serve),
        cmocka_unit_test(test_without_a_command_nothing_runs),
        cmocka_unit_test(test_what_cannot_be_started_says_why),
        cmocka_unit_test(test_an_image_with_a_root_runs_in_it),
        cmocka_unit_test(test_that_images_are_ignored_is_said_once),
        cmocka_unit_test(test_limits_nobody_enforces_are_told),
        cmocka_unit_test(test_pods_of_other_nodes_are_left_alone),
        cmocka_unit_test(test_a_post_start_hook_that_fails_ends_the_container),
        cmocka_unit_test(test_a_finished_pod_is_not_run_again),
        cmocka_unit_test(test_what_the_machine_cannot_start_now_is_tried_again),
        cmocka_unit_test(test_a_shim_that_lacked_something_is_tried_again),
        cmocka_unit_test(test_what_a_killed_agent_did_not_get_to_start_is_started),
        cmocka_unit_test(test_a_clock_that_is_set_ends_nothing),
        cmocka_unit_test(test_the_active_deadline_ends_a_pod),
        cmocka_unit_test(test_a_deleted_pod_is_stopped_and_removed),
        cmocka_unit_test(test_who_ignores_sigterm_is_killed_after_the_grace_period),
        cmocka_unit_test(test_who_is_not_killed_at_once_is_killed_again),
        cmocka_unit_test(test_the_pre_stop_hook_comes_before_sigterm),
        cmocka_unit_test(test_a_pre_stop_hook_may_just_take_its_time),
        cmocka_unit_test(test_without_grace_there_is_no_hook_and_no_waiting),
        cmocka_unit_test(test_a_pod_gone_from_the_api_is_stopped_at_once),
        cmocka_unit_test(test_a_pod_of_the_same_name_is_another_pod),
        cmocka_unit_test(test_pods_of_a_job_know_each_other_by_name),
        cmocka_unit_test(test_a_pod_is_ready_when_its_probe_says_so),
        cmocka_unit_test(test_a_probe_may_have_a_grace_period_of_its_own),
        cmocka_unit_test(test_a_container_that_does_not_live_is_started_again),
        cmocka_unit_test(test_a_command_that_takes_too_long_has_failed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
