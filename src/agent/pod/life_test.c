// SPDX-License-Identifier: Apache-2.0
// Tests of the life of a pod: its stages, its status, deadlines and deletion.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pod_runs_and_succeeds),
        cmocka_unit_test(test_the_status_is_written_on_change_only),
        cmocka_unit_test(test_a_failed_report_is_made_again),
        cmocka_unit_test(test_init_containers_run_one_by_one_and_first),
        cmocka_unit_test(test_a_failed_init_container_fails_the_pod),
        cmocka_unit_test(test_sidecars_live_as_long_as_those_they_serve),
        cmocka_unit_test(test_pods_of_other_nodes_are_left_alone),
        cmocka_unit_test(test_a_finished_pod_is_not_run_again),
        cmocka_unit_test(test_what_a_killed_agent_did_not_get_to_start_is_started),
        cmocka_unit_test(test_a_clock_that_is_set_ends_nothing),
        cmocka_unit_test(test_the_active_deadline_ends_a_pod),
        cmocka_unit_test(test_a_deleted_pod_is_stopped_and_removed),
        cmocka_unit_test(test_who_ignores_sigterm_is_killed_after_the_grace_period),
        cmocka_unit_test(test_who_is_not_killed_at_once_is_killed_again),
        cmocka_unit_test(test_a_pod_gone_from_the_api_is_stopped_at_once),
        cmocka_unit_test(test_a_pod_of_the_same_name_is_another_pod),
        cmocka_unit_test(test_pods_of_a_job_know_each_other_by_name),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
