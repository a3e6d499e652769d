// SPDX-License-Identifier: Apache-2.0
// A node that returns, after a start, a pause or a lost network, reports Ready only when nothing
// runs on it for pods that are gone.
#include "agent/rig_test.h"

#define SLEEPER "  restartPolicy: Never\n  containers:\n  - {name: c, image: i, command: [work]}\n"

static const char *ready(struct rig *r)
{
    return rig_at(r, API_NODE, "n1", "status.conditions.3.status");
}

/* Marks the node as the node lifecycle controller does. */
static void give_up(struct rig *r)
{
    rig_put(r,
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
            "spec: {taints: [{key: node.kubernetes.io/unreachable, effect: NoExecute}]}\n"
            "status: {conditions: [{type: MemoryPressure, status: Unknown}, {type: DiskPressure, "
            "status: Unknown}, {type: PIDPressure, status: Unknown}, {type: Ready, status: "
            "Unknown}]}\n");
}

static void test_a_started_agent_ends_strays_first(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    rig_down(&r);
    assert_true(port_mem_remove(r.mem, api_kind(API_POD), HK_STR("d"), HK_STR("a")));
    assert_true(port_mem_remove(r.mem, api_kind(API_NODE), HK_STR(""), HK_STR("n1")));
    r.fake.deaf = true;
    rig_up(&r);
    rig_pass(&r, 60);
    assert_string_equal(ready(&r), "");
    fake_tell(&r, 1, 137, 9);
    rig_pass(&r, 1);
    assert_string_equal(ready(&r), "True");
    rig_fini(&r);
}

/* The pod was force-deleted, and the watch of pods has not reported it. */
static void test_a_node_that_was_given_up_on_lists_its_pods_first(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    port_mem_log_clear(r.mem);
    r.fake.deaf = true;
    assert_true(port_mem_remove(r.mem, api_kind(API_POD), HK_STR("d"), HK_STR("a")));
    give_up(&r);
    rig_pass(&r, 5);
    assert_string_equal(ready(&r), "Unknown");
    assert_int_equal(rig_calls(&r, "list pods"), 1);
    fake_tell(&r, 1, 137, 9);
    rig_pass(&r, 1);
    assert_string_equal(ready(&r), "True");
    assert_string_equal(rig_at(&r, API_NODE, "n1", "spec.taints"), "[]");
    rig_fini(&r);
}

static void test_pods_that_were_evicted_have_ended_as_well(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    r.fake.deaf = true;
    rig_delete(&r, "a", 5);
    give_up(&r);
    rig_pass(&r, 10);
    assert_string_equal(ready(&r), "Unknown");
    fake_tell(&r, 1, 137, 9);
    rig_pass(&r, 1);
    assert_string_equal(ready(&r), "True");
    assert_null(rig_peek(&r, API_POD, "a"));
    rig_fini(&r);
}

/* A pod may use a grace period of an hour: the API still has the pod, so it runs nowhere else. */
static void test_a_long_grace_period_does_not_keep_the_node_away(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    r.fake.stubborn = true;
    rig_delete(&r, "a", 3600);
    give_up(&r);
    rig_pass(&r, 29);
    assert_string_equal(ready(&r), "Unknown");
    rig_pass(&r, 2);
    assert_string_equal(ready(&r), "True");
    rig_fini(&r);
}

/* As after SIGSTOP: time has passed, and pending watch events arrive later. */
static void test_after_a_pause_the_node_looks_before_it_speaks(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    port_mem_log_clear(r.mem);
    rig_set_now(&r, r.clock.now_ns + 301 * RIG_SECOND_NS); /* also makes a report due */
    rig_settle(&r);
    assert_int_equal(rig_calls(&r, "list pods"), 1);
    rig_pass(&r, 1);
    assert_string_equal(ready(&r), "True");
    assert_int_equal(rig_calls(&r, "patch nodes/status n1"), 1);
    assert_false(rig_container(&r, "c")->ended);
    rig_fini(&r);
}

/* Nothing was lost: no further list. */
static void test_a_node_in_good_health_lists_once(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    port_mem_log_clear(r.mem);
    rig_pass(&r, 3600);
    assert_int_equal(rig_calls(&r, "list pods"), 0);
    rig_fini(&r);
}

static void test_pods_that_others_call_not_ready_are_reported_again(void **state)
{
    struct rig r;
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json doc, *list;

    rig_init(&r);
    rig_pod(&r, "a", SLEEPER);
    assert_string_equal(rig_condition(&r, "a", "Ready"), "True");
    doc = json_clone(rig_peek(&r, API_POD, "a"), &a);
    list = (struct json *)json_at(&doc, "status.conditions");
    for (uint32_t i = 0; i < list->len; i++) {
        if (hk_str_is(json_str(json_get(&list->items[i], "type"), HK_STR("")), "Ready")) {
            json_put(&list->items[i], &a, HK_STR("status"), json_make_str(HK_STR("False")));
        }
    }
    assert_int_equal(port_mem_put(r.mem, &doc, NULL), 0);
    rig_pass(&r, 1);
    assert_string_equal(rig_condition(&r, "a", "Ready"), "True");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_started_agent_ends_strays_first),
        cmocka_unit_test(test_a_node_that_was_given_up_on_lists_its_pods_first),
        cmocka_unit_test(test_pods_that_were_evicted_have_ended_as_well),
        cmocka_unit_test(test_a_long_grace_period_does_not_keep_the_node_away),
        cmocka_unit_test(test_after_a_pause_the_node_looks_before_it_speaks),
        cmocka_unit_test(test_a_node_in_good_health_lists_once),
        cmocka_unit_test(test_pods_that_others_call_not_ready_are_reported_again),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("agent/node_return", tests, NULL, NULL);
}
