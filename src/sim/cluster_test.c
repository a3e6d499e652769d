// SPDX-License-Identifier: Apache-2.0
// The offline cluster: what loading adds and reports, and external changes between cycles.
#include "sim/cluster.h"
#include "sim/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NODE                                                                                       \
    "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"                                           \
    "status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n---\n"
#define POD(name, meta, cpu)                                                                       \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: x" meta "}\n"                \
    "spec: {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: " cpu       \
    "}}}]}\n---\n"
#define OWNED                                                                                      \
    ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u7, "               \
    "controller: true}]"

struct fixture {
    struct conf *conf;
    struct cluster c;
};

static int setup(void **state)
{
    const struct cluster_opts o = {.now_ns = 1000000000, .step_ns = 1000000000, .seed = 1};
    struct fixture *f = hk_zalloc(sizeof(*f));

    assert_int_equal(conf_parse(hk_str(conf_default_text), &f->conf, NULL), 0);
    cluster_init(&f->c, f->conf, &o);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    cluster_fini(&f->c);
    conf_free(f->conf);
    hk_free(f);
    return 0;
}

static void load(struct cluster *c, const char *text)
{
    struct hk_err err = {0};

    if (cluster_load(c, hk_str(text), "f.yaml", &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static void cycle(struct cluster *c)
{
    struct hk_err err = {0};

    if (cluster_cycle(c, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static void assert_str(struct hk_str got, const char *want)
{
    if (!hk_str_is(got, want)) {
        fail_msg("expected '%s', got '%.*s'", want, HK_FMT(got));
    }
}

static void test_bare_pods_get_groups(void **state)
{
    struct cluster *c = &((struct fixture *)*state)->c;

    load(c, NODE POD("a", "", "1") POD("b", OWNED, "1") POD("d", OWNED, "1"));
    assert_false(id_none(model_job_find(&c->m, HK_STR("x"), HK_STR("podgroup-a"))));
    const job_id shared = model_job_find(&c->m, HK_STR("x"), HK_STR("podgroup-u7"));
    assert_false(id_none(shared));
    assert_int_equal(model_job(&c->m, shared)->tally.total, 2);
    assert_int_equal(model_job(&c->m, shared)->min, 1);
    assert_int_equal(job_vec(&c->m, shared, JV_MINRES)[DIM_CPU], 1000);
    cycle(c);
    assert_int_equal(c->binds.len, 3);
}

static void test_bound_pods_run(void **state)
{
    struct cluster *c = &((struct fixture *)*state)->c;

    load(c, NODE POD("a", "", "1"));
    cycle(c);
    assert_int_equal(c->binds.len, 1);
    assert_str(c->binds.at[0].pod, "x/a");
    assert_str(c->binds.at[0].node, "n1");
    const task_id t = model_task_find(&c->m, HK_STR("x"), HK_STR("a"));
    assert_int_equal(model_task(&c->m, t)->status, TASK_RUNNING);
    cycle(c);
    assert_int_equal(c->binds.len, 1);
    assert_int_equal(c->first_bind, 1);
    assert_int_equal(c->now_ns, 3000000000);
}

static void test_held_decisions_wait_for_settle(void **state)
{
    struct cluster *c = &((struct fixture *)*state)->c;

    c->opts.hold = true;
    load(c, NODE POD("a", "", "1"));
    cycle(c);
    const task_id t = model_task_find(&c->m, HK_STR("x"), HK_STR("a"));
    assert_int_equal(model_task(&c->m, t)->status, TASK_BINDING);
    cluster_settle(c);
    assert_int_equal(model_task(&c->m, t)->status, TASK_RUNNING);
}

static void test_problems_do_not_stop_the_rest(void **state)
{
    struct cluster *c = &((struct fixture *)*state)->c;
    uint32_t n;

    load(c, NODE "kind: List\napiVersion: v1\nitems:\n- {foo: bar}\n- 7\n---\n" POD("a", "", "1x")
                POD("b", "", "1"));
    assert_int_equal(c->problems.len, 2);
    assert_int_equal(c->problems.at[0].line, 9);
    assert_str(c->problems.at[0].text, "object has no apiVersion");
    assert_str(c->problems.at[0].file, "f.yaml");
    const struct ingest_problem *p = ingest_problems(c->in, &n);
    assert_int_equal(n, 1);
    assert_string_equal(p[0].object, "x/a");
    assert_int_equal(p[0].line, 15);
    assert_true(report_has_problems(c));
    cycle(c);
    assert_int_equal(c->binds.len, 1);
    assert_str(c->binds.at[0].pod, "x/b");
}

static void test_ignored_kinds_are_named(void **state)
{
    struct cluster *c = &((struct fixture *)*state)->c;

    load(
        c,
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j, namespace: x}\n---\n"
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n---\n"
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n");
    assert_int_equal(c->ignored.len, 3);
    assert_str(c->ignored.at[0].object, "Job x/j");
    assert_str(c->ignored.at[1].object, "ConfigMap m");
    assert_string_equal(c->ignored.at[2].why, "unknown kind");
    assert_false(report_has_problems(c));
}

static void test_unreadable_text_fails_with_file_and_line(void **state)
{
    struct cluster *c = &((struct fixture *)*state)->c;
    struct hk_err err = {0};

    assert_true(cluster_load(c, HK_STR("a: 1\nb: [1\nc: }\n"), "f.yaml", &err) < 0);
    assert_non_null(strstr(err.text, "f.yaml: line 3"));
}

static void test_pods_outside_of_sessions_say_why(void **state)
{
    struct cluster *c = &((struct fixture *)*state)->c;

    load(c, NODE POD("a", ", annotations: {scheduling.k8s.io/group-name: g}", "1"));
    cycle(c);
    assert_int_equal(c->waits.len, 1);
    assert_str(c->waits.at[0].message, "PodGroup 'x/g' does not exist");
    load(c, "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n"
            "metadata: {name: g, namespace: x}\nspec: {queue: nowhere, minMember: 1}\n");
    cycle(c);
    assert_int_equal(c->waits.len, 1);
    assert_str(c->waits.at[0].message, "queue 'nowhere' does not exist");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bare_pods_get_groups),
        TEST(test_bound_pods_run),
        TEST(test_held_decisions_wait_for_settle),
        TEST(test_problems_do_not_stop_the_rest),
        TEST(test_ignored_kinds_are_named),
        TEST(test_unreadable_text_fails_with_file_and_line),
        TEST(test_pods_outside_of_sessions_say_why),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
