// SPDX-License-Identifier: Apache-2.0
// What a daemon needs from the loop: nodes selected by label, and an orderly shutdown.
#include "scheduler/loop_rig_test.h"

static void labelled_node(struct rig *r, const char *name, const char *labels)
{
    rig_put(r,
            "{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s','uid':'n-%s','labels':{%s}},"
            "'status':{'allocatable':{'cpu':'4','memory':'16Gi','pods':'10'}}}",
            name, name, labels);
}

static void two_queues(struct rig *r)
{
    rig_queue(r, "root", "");
    rig_queue(r, "default", "");
    rig_queue(r, "q", "");
}

/* ---- nodes by label ---- */

static const struct loop_label wanted[] = {
    {{"pool", sizeof("pool") - 1}, {"batch", sizeof("batch") - 1}},
    {{"gpu", sizeof("gpu") - 1}, {"yes", sizeof("yes") - 1}}};

static struct rig *picky(void)
{
    struct rig *r = rig_new_with(
        RIG_PLAIN, (struct loop_opts){.node_labels = wanted, .nnode_label = HK_LEN(wanted)});

    two_queues(r);
    return r;
}

static void a_node_needs_one_of_the_labels(void **state)
{
    static const struct {
        const char *labels;
        bool ours;
    } cases[] = {
        {"'pool':'batch'", true},   {"'gpu':'yes'", true}, {"'pool':'batch','gpu':'no'", true},
        {"'pool':'web'", false},    {"'pool':''", false},  {"'gpu':'batch'", false},
        {"'other':'batch'", false}, {"", false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig *r = picky();

        labelled_node(r, "n1", cases[i].labels);
        rig_group(r, "g", 1, "");
        rig_pod(r, "a", "g", "1");
        rig_run(r);
        const char *node = rig_field(r, API_POD, "a", "spec.nodeName");
        if (strcmp(node, cases[i].ours ? "n1" : "-") != 0) {
            fail_msg("labels %s: the pod is on '%s'", cases[i].labels, node);
        }
        rig_free(r);
    }
}

static void a_node_comes_and_goes_with_its_label(void **state)
{
    struct rig *r = picky();

    labelled_node(r, "n1", "'pool':'web'");
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_pod(r, "b", "g", "4");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "-");
    labelled_node(r, "n1", "'pool':'batch'");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    labelled_node(r, "n1", "'pool':'web'"); /* its pod stays, but no new one is placed there */
    rig_remove(r, API_POD, "a");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "b", "spec.nodeName"), "-");
    labelled_node(r, "n1", "'pool':'batch'");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "b", "spec.nodeName"), "n1");
    rig_free(r);
}

static void nodes_that_are_not_ours_are_no_news(void **state)
{
    struct rig *r = picky();

    labelled_node(r, "n1", "'pool':'batch'");
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "100");
    rig_run(r);
    const uint64_t sessions = rig_sessions(r);
    port_mem_log_clear(r->mem);
    labelled_node(r, "far", "'pool':'web'");
    rig_run(r);
    labelled_node(r, "far", "'pool':'web','more':'yes'");
    rig_run(r);
    rig_remove(r, API_NODE, "far");
    rig_run(r);
    assert_int_equal(rig_sessions(r), sessions);
    assert_int_equal(rig_writes(r), 0);
    rig_free(r);
}

/* Pods that started on a node while it was not selected use its room once it is. */
static void pods_of_a_node_that_was_not_ours_count(void **state)
{
    struct rig *r = picky();

    labelled_node(r, "n1", "'pool':'web'");
    rig_put(r, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'w','namespace':'d','uid':'w'},"
               "'spec':{'nodeName':'n1','containers':[{'name':'c','resources':{'requests':{"
               "'cpu':'3'}}}]},'status':{'phase':'Running'}}");
    rig_run(r);
    labelled_node(r, "n1", "'pool':'batch'");
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "2");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "-");
    rig_remove(r, API_POD, "w");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    rig_free(r);
}

/* ---- shutdown ---- */

static void after_drain_nothing_is_decided(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_run(r);
    loop_drain(r->l);
    const uint64_t sessions = rig_sessions(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    port_mem_log_clear(r->mem);
    rig_run_for(r, 10 * SEC);
    assert_int_equal(rig_sessions(r), sessions);
    assert_int_equal(rig_writes(r), 0);
    assert_int_equal(loop_stats(r->l).backlog, 0);
    rig_free(r);
}

/* A gang whose first binds have been sent gets the others, too. */
static void what_was_decided_is_still_sent(void **state)
{
    struct rig *r = rig_new_with(RIG_PLAIN, (struct loop_opts){.in_flight = 1});
    int64_t wait;
    unsigned n = 0;

    rig_small_cluster(r);
    rig_run(r);
    rig_group(r, "g", 4, "");
    rig_pod(r, "a", "g", "1");
    rig_pod(r, "b", "g", "1");
    rig_pod(r, "c", "g", "1");
    rig_pod(r, "e", "g", "1");
    while (loop_stats(r->l).binds == 0) {
        assert_true(n++ < 1000);
        loop_step(r->l, &wait);
        rig_move_clock(r, wait == INT64_MAX ? 0 : wait);
    }
    assert_true(loop_stats(r->l).backlog >= 4);
    loop_drain(r->l);
    rig_run_for(r, 3 * SEC);
    assert_int_equal(loop_stats(r->l).backlog, 0);
    static const char *const pods[] = {"a", "b", "c", "e"};
    for (size_t k = 0; k < HK_LEN(pods); k++) {
        assert_string_equal(rig_field(r, API_POD, pods[k], "spec.nodeName"), "n1");
    }
    rig_free(r);
}

/* Delayed writes are sent at once; those that wait for more pods are dropped. */
static void the_end_waits_for_nothing(void **state)
{
    struct rig *r = rig_new_with(RIG_PLAIN, (struct loop_opts){.reason_wait_ns = 1000 * MSEC});

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_group(r, "short", 2, "");
    rig_pod(r, "b", "short", "1");
    rig_run(r);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Inqueue");
    assert_true(loop_stats(r->l).backlog > 0);
    loop_drain(r->l);
    rig_run_for(r, 10 * MSEC);
    assert_string_equal(rig_field(r, API_PODGROUP, "g", "status.phase"), "Running");
    assert_int_equal(rig_calls(r, "patch pods/status"), 0);
    assert_int_equal(loop_stats(r->l).backlog, 0);
    rig_free(r);
}

/* A bind that fails during shutdown is not retried; the next leader does that. */
static void a_bind_that_fails_then_is_left_alone(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);
    int64_t wait;
    unsigned n = 0;

    rig_small_cluster(r);
    rig_run(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    port_mem_fail(r->mem, PORT_CREATE, 1, HK_EIO);
    while (loop_stats(r->l).binds == 0) {
        assert_true(n++ < 1000);
        loop_step(r->l, &wait);
        rig_move_clock(r, wait == INT64_MAX ? 0 : wait);
    }
    loop_drain(r->l);
    rig_run_for(r, 30 * SEC);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "-");
    assert_int_equal(loop_stats(r->l).backlog, 0);
    rig_free(r);
}

/* ---- dump ---- */

static void a_dump_tells_of_nodes_queues_and_jobs(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct rig *r = rig_new(RIG_PLAIN);

    loop_dump(r->l, &out);
    assert_string_equal(out.data, "{\"nodes\":[],\"queues\":[],\"jobs\":[]}\n");
    hk_buf_clear(&out);
    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_pod(r, "b", "g", "100");
    rig_run(r);
    loop_dump(r->l, &out);
    const struct json doc = json_of_text(out.data, &r->a);
    const struct json *node = json_item(json_get(&doc, "nodes"), 0);
    const struct json *job = json_item(json_get(&doc, "jobs"), 0);
    assert_true(hk_str_is(json_str(json_get(node, "name"), HK_STR("")), "n1"));
    assert_int_equal(json_int(json_at(node, "idle.cpu"), 0), 3000);
    assert_int_equal(json_int(json_at(node, "used.cpu"), 0), 1000);
    assert_int_equal(json_get(&doc, "queues")->len, 3);
    assert_true(hk_str_is(json_str(json_get(job, "queue"), HK_STR("")), "q"));
    const struct json *waits = json_item(json_get(job, "tasks"), 0);
    const struct json *runs = json_item(json_get(job, "tasks"), 1);
    assert_true(hk_str_is(json_str(json_get(waits, "status"), HK_STR("")), "Pending"));
    assert_null(json_get(waits, "node"));
    assert_true(hk_str_is(json_str(json_get(runs, "status"), HK_STR("")), "Bound"));
    assert_true(hk_str_is(json_str(json_get(runs, "node"), HK_STR("")), "n1"));
    assert_int_equal(json_int(json_at(runs, "request.cpu"), 0), 1000);
    loop_log_summary(r->l);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_needs_one_of_the_labels),
        cmocka_unit_test(a_node_comes_and_goes_with_its_label),
        cmocka_unit_test(nodes_that_are_not_ours_are_no_news),
        cmocka_unit_test(pods_of_a_node_that_was_not_ours_count),
        cmocka_unit_test(after_drain_nothing_is_decided),
        cmocka_unit_test(what_was_decided_is_still_sent),
        cmocka_unit_test(the_end_waits_for_nothing),
        cmocka_unit_test(a_bind_that_fails_then_is_left_alone),
        cmocka_unit_test(a_dump_tells_of_nodes_queues_and_jobs),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("scheduler/loop_life", tests, NULL, NULL);
}
