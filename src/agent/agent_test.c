// SPDX-License-Identifier: Apache-2.0
// Tests of the node: registration, heartbeats, and finding its pods after a restart.
#include "agent/agent_priv.h"
#include "agent/rig_test.h"

static void test_a_node_registers_and_is_ready(void **state)
{
    struct rig r;

    rig_init(&r);
    assert_true(agent_ready(r.agent));
    assert_string_equal(rig_at(&r, API_NODE, "n1", "status.capacity.cpu"), "4");
    assert_string_equal(rig_at(&r, API_NODE, "n1", "status.allocatable.memory"), "8Gi");
    assert_string_equal(rig_at(&r, API_NODE, "n1", "status.conditions.3.type"), "Ready");
    assert_string_equal(rig_at(&r, API_NODE, "n1", "status.conditions.3.status"), "True");
    assert_string_equal(rig_at(&r, API_NODE, "n1", "status.addresses.0.address"), "127.0.0.1");
    assert_string_equal(rig_at(&r, API_LEASE, "n1", "spec.holderIdentity"), "n1");
    rig_fini(&r);
}

static void test_the_lease_is_renewed_every_ten_seconds(void **state)
{
    struct rig r;

    rig_init(&r);
    port_mem_log_clear(r.mem);
    rig_pass(&r, 60);
    assert_int_equal(rig_calls(&r, "patch leases kube-node-lease/n1"), 6);
    assert_int_equal(rig_calls(&r, "patch nodes/status n1"), 0);
    assert_string_equal(rig_at(&r, API_LEASE, "n1", "spec.renewTime"),
                        "2026-01-02T10:01:00.000000Z");
    rig_pass(&r, 241);
    assert_int_equal(rig_calls(&r, "patch nodes/status n1"), 1);
    rig_fini(&r);
}

static void test_taints_of_a_node_that_was_not_ready_are_taken_away(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_put(&r, "apiVersion: v1\n"
                "kind: Node\n"
                "metadata: {name: n1}\n"
                "spec:\n"
                "  taints:\n"
                "  - {key: node.kubernetes.io/not-ready, effect: NoSchedule}\n"
                "  - {key: mine, effect: NoSchedule}\n"
                "  - {key: node.kubernetes.io/unreachable, effect: NoExecute}\n");
    rig_pass(&r, 1);
    assert_string_equal(rig_at(&r, API_NODE, "n1", "spec.taints"),
                        "[{\"key\":\"mine\",\"effect\":\"NoSchedule\"}]");
    rig_fini(&r);
}

static void test_a_node_that_was_deleted_is_made_anew(void **state)
{
    struct rig r;

    rig_init(&r);
    assert_true(port_mem_remove(r.mem, api_kind(API_NODE), HK_STR(""), HK_STR("n1")));
    rig_settle(&r);
    assert_string_equal(rig_at(&r, API_NODE, "n1", "status.conditions.3.status"), "True");
    /* The lease is deleted with the node. */
    assert_true(
        port_mem_remove(r.mem, api_kind(API_LEASE), HK_STR("kube-node-lease"), HK_STR("n1")));
    rig_pass(&r, 10);
    assert_string_equal(rig_at(&r, API_LEASE, "n1", "spec.holderIdentity"), "n1");
    rig_fini(&r);
}

/* Changes the node as another client would: replaces a word in the text of its JSON. */
static void rewrite(struct rig *r, const char *word, const char *other)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const char *at;

    json_write(rig_peek(r, API_NODE, "n1"), &text);
    at = strstr(text.data, word);
    assert_non_null(at);
    hk_buf_addf(&out, "%.*s%s%s", (int)(at - text.data), text.data, other, at + strlen(word));
    rig_put(r, out.data);
}

static void test_a_node_that_was_given_up_on_says_that_it_lives(void **state)
{
    struct rig r;

    rig_init(&r);
    port_mem_log_clear(r.mem);
    rewrite(&r, "\"type\":\"Ready\",\"status\":\"True\"",
            "\"type\":\"Ready\",\"status\":\"Unknown\"");
    assert_string_equal(rig_at(&r, API_NODE, "n1", "status.conditions.3.status"), "True");
    assert_int_equal(rig_calls(&r, "patch nodes/status n1"), 1);
    rig_fini(&r);
}

static void test_who_contradicts_us_does_not_keep_us_busy(void **state)
{
    struct rig r;

    rig_init(&r);
    port_mem_log_clear(r.mem);
    for (int i = 0; i < 2; i++) {
        rewrite(&r, "\"memory\":\"8Gi\"", "\"memory\":\"9Gi\"");
        assert_int_equal(rig_calls(&r, "patch nodes/status n1"), 1);
    }
    assert_string_equal(rig_at(&r, API_NODE, "n1", "status.capacity.memory"), "9Gi");
    rig_pass(&r, 1);
    assert_int_equal(rig_calls(&r, "patch nodes/status n1"), 2);
    assert_string_equal(rig_at(&r, API_NODE, "n1", "status.capacity.memory"), "8Gi");
    rig_fini(&r);
}

static void test_amounts_in_other_words_are_the_same(void **state)
{
    struct rig r;

    rig_init(&r);
    port_mem_log_clear(r.mem);
    rewrite(&r, "\"memory\":\"8Gi\"", "\"example.com/more\":\"1\",\"memory\":\"8192Mi\"");
    assert_int_equal(rig_calls(&r, "patch nodes/status n1"), 0);
    rewrite(&r, "\"memory\":\"8192Mi\"", "\"memory\":\"9Gi\"");
    assert_int_equal(rig_calls(&r, "patch nodes/status n1"), 1);
    assert_string_equal(rig_at(&r, API_NODE, "n1", "status.capacity.memory"), "8Gi");
    rig_fini(&r);
}

static void test_failures_of_the_api_are_outlived(void **state)
{
    struct rig r;

    rig_init(&r);
    port_mem_fail(r.mem, PORT_PATCH, 1, HK_EIO);
    port_mem_fail(r.mem, PORT_PATCH, 2, HK_ECONFLICT);
    port_mem_log_clear(r.mem);
    rig_pass(&r, 330);
    assert_true(rig_calls(&r, "patch nodes/status n1") >= 1);
    assert_true(rig_calls(&r, "patch leases kube-node-lease/n1") >= 30);
    rig_fini(&r);
}

#define SLEEPER                                                                                    \
    "  restartPolicy: Never\n"                                                                     \
    "  containers:\n"                                                                              \
    "  - {name: c, image: i, command: [sleep, '1']}\n"

static void test_running_pods_are_found_again(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    assert_pod(&r, "a", "phase", "Running");
    const char *address = rig_at(&r, API_POD, "a", "status.podIP");
    const char *since = rig_at(&r, API_POD, "a", "status.startTime");
    rig_down(&r);
    rig_set_now(&r, r.clock.now_ns + 60 * RIG_SECOND_NS);
    rig_up(&r);
    assert_pod(&r, "a", "phase", "Running");
    assert_pod(&r, "a", "podIP", address);
    assert_pod(&r, "a", "startTime", since);
    assert_string_equal(r.fake.log.data, "start c 0\nadopt c 0\n");
    rig_end(&r, "c", 0);
    assert_pod(&r, "a", "phase", "Succeeded");
    rig_fini(&r);
}

static void test_exits_in_the_absence_of_the_agent_are_reported(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    rig_down(&r);
    fake_tell(&r, 1, 3, 0);
    rig_up(&r);
    assert_pod(&r, "a", "phase", "Failed");
    assert_pod(&r, "a", "containerStatuses.0.state.terminated.exitCode", "3");
    rig_fini(&r);
}

static void test_ends_that_were_reported_are_not_asked_for_again(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  restartPolicy: Never\n"
            "  initContainers:\n"
            "  - {name: i, image: i, command: [work]}\n"
            "  containers:\n"
            "  - {name: c, image: i, command: [work]}\n");
    rig_end(&r, "i", 0);
    assert_pod(&r, "a", "phase", "Running");
    rig_down(&r);
    port_mem_log_clear(r.mem);
    rig_up(&r);
    assert_string_equal(r.fake.log.data, "start i 0\nstart c 0\nadopt c 0\n");
    assert_pod(&r, "a", "initContainerStatuses.0.state.terminated.exitCode", "0");
    assert_string_equal(rig_condition(&r, "a", "Initialized"), "True");
    rig_fini(&r);
}

static void test_a_node_without_directory_runs_pods_all_the_same(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_down(&r);
    r.no_dir = true;
    rig_up(&r);
    rig_pod(&r, "a", SLEEPER);
    assert_true(hk_str_starts(hk_str(rig_at(&r, API_POD, "a", "status.podIP")), "127."));
    rig_end(&r, "c", 1);
    assert_pod(&r, "a", "phase", "Failed");
    assert_null(rig_file(&r, "pods/u-a/.address"));
    rig_fini(&r);
}

static void test_pods_deleted_in_the_absence_of_the_agent_are_removed(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    assert_non_null(rig_file(&r, "pods/u-a/.address"));
    rig_down(&r);
    assert_true(port_mem_remove(r.mem, api_kind(API_POD), HK_STR("d"), HK_STR("a")));
    rig_up(&r);
    assert_true(rig_container(&r, "c")->ended);
    assert_null(rig_file(&r, "pods/u-a/.address"));
    rig_fini(&r);
}

/* The agent has seen a newer revision than the API has now. */
static void test_pods_that_the_api_has_forgotten_are_kept(void **state)
{
    struct rig r;
    char path[96];

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    rig_pod(&r, "b",
            "  restartPolicy: Never\n"
            "  containers:\n"
            "  - {name: d, image: i, command: [work]}\n");
    rig_down(&r);
    snprintf(path, sizeof(path), "%s/" AGENT_REVISION_FILE, r.dir);
    assert_int_equal(hk_write_file(path, HK_STR("00000000000000999999\n"), NULL), 0);
    assert_true(port_mem_remove(r.mem, api_kind(API_POD), HK_STR("d"), HK_STR("a")));
    for (int i = 0; i < 2; i++) { /* the second agent remembers it, too */
        rig_up(&r);
        assert_true(agent_ready(r.agent));
        assert_false(rig_container(&r, "c")->ended);
        assert_non_null(rig_file(&r, "pods/u-a/.address"));
        assert_string_equal(rig_file(&r, AGENT_KEPT_FILE), "u-a\n");
        assert_pod(&r, "b", "phase", "Running");
        rig_down(&r);
    }
    r.end_unknown = true;
    rig_up(&r);
    assert_true(rig_container(&r, "c")->ended);
    assert_null(rig_file(&r, "pods/u-a/.address"));
    assert_null(rig_file(&r, AGENT_KEPT_FILE));
    assert_pod(&r, "b", "phase", "Running");
    r.end_unknown = false; /* back to normal */
    rig_down(&r);
    assert_true(port_mem_remove(r.mem, api_kind(API_POD), HK_STR("d"), HK_STR("b")));
    rig_up(&r);
    assert_true(rig_container(&r, "d")->ended);
    rig_fini(&r);
}

/* The server is restored from a backup while the agent runs. */
static void test_pods_forgotten_under_a_running_agent_are_kept(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    r.agent->leftovers.past.rv = (uint64_t)1 << 60;
    port_mem_end_watches(r.mem, HK_EGONE);
    port_mem_compact(r.mem);
    assert_true(port_mem_remove(r.mem, api_kind(API_POD), HK_STR("d"), HK_STR("a")));
    port_mem_compact(r.mem);
    rig_pass(&r, 60);
    assert_false(rig_container(&r, "c")->ended);
    assert_non_null(rig_file(&r, "pods/u-a/.address"));
    assert_string_equal(rig_file(&r, AGENT_KEPT_FILE), "u-a\n");
    fake_tell(&r, 1, 3, 0);    /* the end of a kept pod is not reported */
    rig_pod(&r, "a", SLEEPER); /* known again, it is adopted */
    assert_null(rig_file(&r, AGENT_KEPT_FILE));
    assert_pod(&r, "a", "phase", "Failed");
    rig_fini(&r);
}

static void test_a_cleared_node_runs_nothing_and_keeps_what_is_over(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "over",
            "  restartPolicy: Never\n"
            "  containers:\n"
            "  - {name: o, image: i, command: [work]}\n");
    rig_end(&r, "o", 0);
    rig_pod(&r, "a", SLEEPER);
    assert_false(agent_is_clear(r.agent));
    agent_clear(r.agent);
    rig_settle(&r);
    assert_true(rig_container(&r, "c")->ended);
    assert_true(agent_is_clear(r.agent));
    assert_null(rig_file(&r, "pods/u-a/.address"));
    assert_pod(&r, "over", "phase", "Succeeded");
    assert_non_null(rig_file(&r, "pods/u-over/.address"));
    /* A new pod now waits for the next agent. */
    rig_pod(&r, "late",
            "  containers:\n"
            "  - {name: l, image: i, command: [work]}\n");
    assert_true(agent_is_clear(r.agent));
    rig_down(&r);
    rig_up(&r);
    assert_pod(&r, "late", "phase", "Running");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_registers_and_is_ready),
        cmocka_unit_test(test_the_lease_is_renewed_every_ten_seconds),
        cmocka_unit_test(test_taints_of_a_node_that_was_not_ready_are_taken_away),
        cmocka_unit_test(test_a_node_that_was_deleted_is_made_anew),
        cmocka_unit_test(test_a_node_that_was_given_up_on_says_that_it_lives),
        cmocka_unit_test(test_who_contradicts_us_does_not_keep_us_busy),
        cmocka_unit_test(test_amounts_in_other_words_are_the_same),
        cmocka_unit_test(test_failures_of_the_api_are_outlived),
        cmocka_unit_test(test_running_pods_are_found_again),
        cmocka_unit_test(test_exits_in_the_absence_of_the_agent_are_reported),
        cmocka_unit_test(test_ends_that_were_reported_are_not_asked_for_again),
        cmocka_unit_test(test_a_node_without_directory_runs_pods_all_the_same),
        cmocka_unit_test(test_pods_deleted_in_the_absence_of_the_agent_are_removed),
        cmocka_unit_test(test_pods_that_the_api_has_forgotten_are_kept),
        cmocka_unit_test(test_pods_forgotten_under_a_running_agent_are_kept),
        cmocka_unit_test(test_a_cleared_node_runs_nothing_and_keeps_what_is_over),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
