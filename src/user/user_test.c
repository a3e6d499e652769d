// SPDX-License-Identifier: Apache-2.0
// What verbs of users share: names as people type them, objects by name, and advice when there is
// none of that name.
#include "user/rig_test.h"

#define JOB(name)                                                                                  \
    "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: " name                    \
    ", namespace: d}}\n---\n"
#define NODE(name) "{apiVersion: v1, kind: Node, metadata: {name: " name "}}\n---\n"

static void a_name_may_have_its_kind_in_front(void **state)
{
    assert_string_equal(user_name("train"), "train");
    assert_string_equal(user_name("job.batch.volcano.sh/train"), "train");
    assert_string_equal(user_name("job/train"), "train");
}

static void an_object_is_found_by_its_name(void **state)
{
    struct rig *g = *state;
    HK_AUTO(port_answer_fini) struct port_answer job = {0};

    rig_put(g, JOB("train"));
    assert_int_equal(user_get(&g->user, API_JOB, "train", &job, &g->err), 0);
    assert_int_equal(job.objects.len, 1);
    assert_true(hk_str_is(job.objects.at[0]->name, "train"));
}

static const struct {
    const char *typed, *error;
} unknown[] = {
    {"trian", "no job 'trian' in namespace 'd', did you mean 'train'?"},
    {"tarin2", "no job 'tarin2' in namespace 'd' (see 'hekla jobs -A')"}, /* three mistakes */
    {"eval", "no job 'eval' in namespace 'd' (see 'hekla jobs -A')"},
    {"ab", "no job 'ab' in namespace 'd', did you mean 'a'?"}, /* one, in a short word */
    {"cd", "no job 'cd' in namespace 'd' (see 'hekla jobs -A')"},
};

static void an_unknown_name_gets_the_nearest_one_as_advice(void **state)
{
    struct rig *g = *state;

    rig_put(g, JOB("train") JOB("a"));
    for (size_t i = 0; i < HK_LEN(unknown); i++) {
        HK_AUTO(port_answer_fini) struct port_answer job = {0};
        assert_int_equal(user_get(&g->user, API_JOB, unknown[i].typed, &job, &g->err),
                         -HK_ENOTFOUND);
        assert_string_equal(g->err.text, unknown[i].error);
    }
}

static void a_node_has_no_namespace(void **state)
{
    struct rig *g = *state;
    HK_AUTO(port_answer_fini) struct port_answer node = {0};

    rig_put(g, NODE("worker1"));
    assert_int_equal(user_get(&g->user, API_NODE, "worker2", &node, &g->err), -HK_ENOTFOUND);
    assert_string_equal(g->err.text, "no node 'worker2', did you mean 'worker1'?");
    assert_int_equal(user_find(&g->user, API_NODE, "worker2", &node, &g->err), -HK_ENOTFOUND);
    assert_string_equal(g->err.text, "no node 'worker2' (see 'hekla nodes')");
}

static void other_failures_give_no_advice(void **state)
{
    struct rig *g = *state;
    HK_AUTO(port_answer_fini) struct port_answer job = {0};

    rig_put(g, JOB("train"));
    port_mem_fail(g->mem, PORT_GET, 1, HK_EDENIED);
    assert_int_equal(user_get(&g->user, API_JOB, "trian", &job, &g->err), -HK_EDENIED);
    assert_string_equal(g->err.text, "injected failure");
}

static void a_list_is_of_one_namespace_or_of_all(void **state)
{
    struct rig *g = *state;
    HK_AUTO(port_answer_fini) struct port_answer own = {0}, all = {0};

    rig_put(g, JOB("a") "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: b, "
                        "namespace: e}}");
    assert_int_equal(user_list(&g->user, API_JOB, "d", NULL, &own, &g->err), 0);
    assert_int_equal(own.objects.len, 1);
    assert_int_equal(user_list(&g->user, API_JOB, "", NULL, &all, &g->err), 0);
    assert_int_equal(all.objects.len, 2);
}

/* ---- errors on the terminal ---- */

static const struct {
    struct hk_err err;
    const char *line;
} failures[] = {
    {{.code = HK_EIO, .text = "cannot connect to https://127.0.0.1:6443: Connection refused"},
     "hekla: jobs: cannot connect to https://127.0.0.1:6443: Connection refused (see 'hekla "
     "status'; 'hekla up --detach' starts a server)\n"},
    {{.code = HK_EDENIED, .text = "jobs is forbidden"}, "hekla: jobs: jobs is forbidden\n"},
    {{.code = HK_EIO, .text = "the answer is cut short"}, "hekla: jobs: the answer is cut short\n"},
};

static void an_unreachable_server_gets_advice(void **state)
{
    static const struct verb jobs = {.name = "jobs"};
    struct rig *g = *state;

    for (size_t i = 0; i < HK_LEN(failures); i++) {
        capture_begin(&g->printed);
        const int status = user_fail(&jobs, -(int)failures[i].err.code, &failures[i].err);
        capture_end(&g->printed);
        assert_int_equal(status, USER_TROUBLE);
        assert_string_equal(g->printed.complaints, failures[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_name_may_have_its_kind_in_front),
        RIG_TEST(an_object_is_found_by_its_name),
        RIG_TEST(an_unknown_name_gets_the_nearest_one_as_advice),
        RIG_TEST(a_node_has_no_namespace),
        RIG_TEST(other_failures_give_no_advice),
        RIG_TEST(a_list_is_of_one_namespace_or_of_all),
        RIG_TEST(an_unreachable_server_gets_advice),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/user", tests, NULL, NULL);
}
