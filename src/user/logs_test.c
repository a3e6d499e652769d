// SPDX-License-Identifier: Apache-2.0
// Which logs: by job or pod, task, index and container, and the request for each.
#include "user/logs.h"

#include "net/node_api.h"
#include "user/rig_test.h"

#define POD(name, task, index)                                                                     \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name ", namespace: d, labels: "                \
    "{volcano.sh/task-spec: " task ", volcano.sh/task-index: '" index "'}}}\n---\n"
#define JOB(name, replicas)                                                                        \
    "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: " name                    \
    ", namespace: d}, spec: {tasks: [{name: t, replicas: " replicas "}]}}\n---\n"

static const struct api_object *pod(struct rig *g, const char *name)
{
    return port_mem_peek(g->mem, api_kind(API_POD), HK_STR("d"), hk_str(name));
}

/* ---- which pods ---- */

static const struct {
    struct logs_opts o;
    bool wanted;
} filters[] = {
    {{.index = -1}, true},
    {{.task = "worker", .index = -1}, true},
    {{.task = "ps", .index = -1}, false},
    {{.index = 3}, true},
    {{.index = 4}, false},
    {{.task = "worker", .index = 3}, true},
    {{.task = "worker", .index = 0}, false},
};

static void task_and_index_select_pods(void **state)
{
    struct rig *g = *state;

    rig_put(g, POD("p", "worker", "3"));
    for (size_t i = 0; i < HK_LEN(filters); i++) {
        if (logs_wants(&filters[i].o, pod(g, "p")) != filters[i].wanted) {
            fail_msg("filter %zu: expected %d", i, filters[i].wanted);
        }
    }
}

static void pods_are_in_order_of_task_and_number(void **state)
{
    struct rig *g = *state;

    rig_put(g, POD("w10", "worker", "10") POD("w9", "worker", "9") POD("m", "main", "0"));
    struct api_object *pods[] = {(struct api_object *)pod(g, "w10"),
                                 (struct api_object *)pod(g, "w9"),
                                 (struct api_object *)pod(g, "m")};
    logs_sort(pods, 3);
    assert_true(hk_str_is(pods[0]->name, "m"));
    assert_true(hk_str_is(pods[1]->name, "w9")); /* 9 before 10 */
    assert_true(hk_str_is(pods[2]->name, "w10"));
}

static void a_name_is_a_job_or_else_a_pod(void **state)
{
    struct rig *g = *state;
    struct logs_target t;
    bool many;

    rig_put(g, JOB("train", "3") JOB("one", "1") POD("single", "t", "0"));
    assert_int_equal(logs_find(&g->user, "train", &t, &many, &g->err), 0);
    assert_string_equal(t.label, "volcano.sh/job-name=train");
    assert_true(many);
    assert_int_equal(logs_find(&g->user, "one", &t, &many, &g->err), 0);
    assert_false(many);
    assert_int_equal(logs_find(&g->user, "single", &t, &many, &g->err), 0);
    assert_string_equal(t.field, "metadata.name=single");
    assert_int_equal(t.job.n, 0);
    assert_int_equal(logs_find(&g->user, "trian", &t, &many, &g->err), -HK_ENOTFOUND);
    assert_string_equal(g->err.text, "no job 'trian' in namespace 'd', did you mean 'train'?");
}

/* ---- which container ---- */

static void a_container_may_be_an_init_container(void **state)
{
    const struct logs_opts first = LOGS_OPTS_DEFAULT;
    struct logs_opts o = LOGS_OPTS_DEFAULT;
    struct rig *g = *state;

    rig_put(g, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: d}, spec: {containers: "
               "[{name: main}, {name: side}], initContainers: [{name: fetch}]}}");
    assert_true(hk_str_is(logs_container(&first, pod(g, "p")), "main"));
    o.container = "fetch";
    assert_true(hk_str_is(logs_container(&o, pod(g, "p")), "fetch"));
    o.container = "none";
    assert_int_equal(logs_container(&o, pod(g, "p")).n, 0);
}

static const struct {
    const char *status; /* of container main */
    int64_t starts;
} statuses[] = {
    {"{name: main, state: {waiting: {}}, restartCount: 0}", -1},
    {"{name: main, state: {running: {}}, restartCount: 0}", 0},
    {"{name: main, state: {terminated: {}}, restartCount: 0}", 0},
    {"{name: main, state: {running: {}}, restartCount: 2}", 2},
    /* Waits for its next start: the last log is that of the start before. */
    {"{name: main, state: {waiting: {}}, lastState: {terminated: {}}, restartCount: 2}", 1},
    {"{name: other, state: {running: {}}, restartCount: 0}", -1},
};

static void starts_are_counted_by_the_status(void **state)
{
    struct rig *g = *state;

    for (size_t i = 0; i < HK_LEN(statuses); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        hk_buf_addf(&text,
                    "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: d}, status: "
                    "{containerStatuses: [%s]}}",
                    statuses[i].status);
        rig_put(g, text.data);
        assert_int_equal(logs_starts(pod(g, "p"), HK_STR("main")), statuses[i].starts);
    }
}

/* ---- the request ---- */

static const char *path_of(const struct logs_opts *o, bool follow, int64_t since_ns)
{
    static char text[256];
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    logs_path(o, HK_STR("d"), HK_STR("p"), HK_STR("main"), follow, since_ns, &path);
    snprintf(text, sizeof(text), "%s", path.data);
    return text;
}

static void options_become_parameters(void **state)
{
    struct logs_opts o = LOGS_OPTS_DEFAULT;

    assert_string_equal(path_of(&o, false, 0),
                        "/api/v1/namespaces/d/pods/p/log?timestamps=true&container=main");
    o.tail = 0;
    o.since_s = 90;
    o.previous = true;
    assert_string_equal(path_of(&o, false, 0),
                        "/api/v1/namespaces/d/pods/p/log?timestamps=true&container=main&previous="
                        "true&sinceSeconds=90&tailLines=0");
}

/* Lines of that second that were printed are dropped; see logs_follow.c. */
static void a_reopened_stream_starts_in_the_second_of_its_last_line(void **state)
{
    struct logs_opts o = LOGS_OPTS_DEFAULT;

    o.tail = 5; /* was for the first request */
    assert_string_equal(path_of(&o, true, 1500000000),
                        "/api/v1/namespaces/d/pods/p/log?timestamps=true&container=main&follow="
                        "true&sinceTime=1970-01-01T00%3A00%3A01Z");
}

/* ---- lost output ---- */

static void a_note_of_lost_output_goes_to_stderr(void **state)
{
    struct rig *g = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf note = {0};

    hk_buf_addf(&note, NODE_LOG_REMOVED, 12LL, 3456LL);
    capture_begin(&g->printed);
    const bool told = logs_tell_loss(HK_STR("p"), hk_buf_str(&note));
    capture_end(&g->printed);
    assert_true(told);
    assert_non_null(strstr(g->printed.complaints, "hekla: pod 'p': "));

    hk_buf_adds(&note, " or so"); /* a program's own words */
    assert_false(logs_tell_loss(HK_STR("p"), hk_buf_str(&note)));
    assert_false(logs_tell_loss(HK_STR("p"), HK_STR("hekla: ready")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(task_and_index_select_pods),
        RIG_TEST(pods_are_in_order_of_task_and_number),
        RIG_TEST(a_name_is_a_job_or_else_a_pod),
        RIG_TEST(a_container_may_be_an_init_container),
        RIG_TEST(starts_are_counted_by_the_status),
        RIG_TEST(options_become_parameters),
        RIG_TEST(a_reopened_stream_starts_in_the_second_of_its_last_line),
        RIG_TEST(a_note_of_lost_output_goes_to_stderr),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/logs", tests, NULL, NULL);
}
