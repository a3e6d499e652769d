// SPDX-License-Identifier: Apache-2.0
// Which pod and container a command goes to, and the request for it.
#include "user/remote.c" /* the path of the request is not public */

#include "user/rig_test.h"

#define POD(name, job, task, index, phase)                                                         \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name ", namespace: d, labels: "                \
    "{volcano.sh/job-name: " job ", volcano.sh/task-spec: " task                                   \
    ", volcano.sh/task-index: '" index                                                             \
    "'}}, spec: {containers: [{name: main}, {name: side}]}, status: {phase: " phase "}}\n---\n"

static struct remote remote_to(struct rig *g, const char *container)
{
    return (struct remote){.user = g->user, .wanted = container};
}

static const struct {
    const char *typed, *pod; /* pod: NULL when refused */
    const char *error;
} targets[] = {
    {"train-ps-0", "train-ps-0", NULL}, /* a pod */
    {"pod/train-ps-0", "train-ps-0", NULL},
    {"train", "train-ps-0", NULL},            /* a job: its first running pod by name */
    {"train/worker", "train-worker-1", NULL}, /* worker-0 has not started yet */
    {"train/worker/0", "train-worker-0", NULL},
    {"train/worker/7", NULL, "no pod 'train/worker/7' and no pod of such a job in namespace 'd'"},
    {"eval", NULL, "no pod 'eval' and no pod of such a job in namespace 'd'"},
    {"old", NULL, "pod 'old-main-0' has ended (Succeeded)"},
};

static void a_target_is_a_pod_or_a_part_of_a_job(void **state)
{
    struct rig *g = *state;

    rig_put(g, POD("train-worker-0", "train", "worker", "0", "Pending")
                   POD("train-worker-1", "train", "worker", "1", "Running")
                       POD("train-ps-0", "train", "ps", "0", "Running")
                           POD("old-main-0", "old", "main", "0", "Succeeded"));
    for (size_t i = 0; i < HK_LEN(targets); i++) {
        struct remote r = remote_to(g, NULL);
        const int rc = remote_find(&r, targets[i].typed, &g->err);
        if (targets[i].pod) {
            assert_int_equal(rc, 0);
            assert_string_equal(r.pod, targets[i].pod);
        } else {
            assert_true(rc < 0);
            assert_string_equal(g->err.text, targets[i].error);
        }
        g->user.mem = r.user.mem;
    }
}

#define MARKED                                                                                     \
    "{apiVersion: v1, kind: Pod, metadata: {name: marked, namespace: d, annotations: "             \
    "{kubectl.kubernetes.io/default-container: side}}, spec: {containers: [{name: main}, {name: "  \
    "side}]}, status: {phase: Running}}"

static const struct {
    const char *pod, *wanted, *container;
} containers[] = {
    {"plain", NULL, "main"}, /* the first one */
    {"plain", "side", "side"},
    {"marked", NULL, "side"}, /* the annotation of the pod */
    {"marked", "main", "main"},
};

static void the_container_is_named_marked_or_the_first(void **state)
{
    struct rig *g = *state;

    rig_put(g, POD("plain", "j", "t", "0", "Running") MARKED);
    for (size_t i = 0; i < HK_LEN(containers); i++) {
        struct remote r = remote_to(g, containers[i].wanted);
        assert_int_equal(remote_find(&r, containers[i].pod, &g->err), 0);
        assert_string_equal(r.container, containers[i].container);
        g->user.mem = r.user.mem;
    }
}

static void a_failure_of_the_server_is_not_a_missing_pod(void **state)
{
    struct rig *g = *state;
    struct remote r = remote_to(g, NULL);

    rig_put(g, POD("train-ps-0", "train", "ps", "0", "Running"));
    port_mem_fail(g->mem, PORT_GET, 1, HK_EDENIED);
    assert_int_equal(remote_find(&r, "train", &g->err), -HK_EDENIED);
}

/* ---- the request ---- */

static const char *path_of(const struct remote_command *c)
{
    static const struct remote r = {.user.ns = "d", .pod = "p", .container = "main"};
    static char text[512];
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    remote_write_path(&r, c, &path);
    snprintf(text, sizeof(text), "%s", path.data);
    return text;
}

static void the_request_names_streams_and_words(void **state)
{
    static const char *const argv[] = {"sh", "-c", "echo a&b", NULL};

    assert_string_equal(
        path_of(&(struct remote_command){.argv = argv, .in = 0, .out = 1, .err_out = 2}),
        "/api/v1/namespaces/d/pods/p/exec?container=main&stdin=true&stdout=true&stderr=true&tty="
        "false&command=sh&command=-c&command=echo%20a%26b");
    assert_string_equal(
        path_of(&(struct remote_command){.argv = argv + 2, .in = -1, .out = 1, .err_out = 2}),
        "/api/v1/namespaces/d/pods/p/exec?container=main&stdin=false&stdout=true&stderr=true&tty="
        "false&command=echo%20a%26b");
}

static void a_terminal_has_no_stderr_of_its_own(void **state)
{
    static const char *const argv[] = {"sh", NULL};

    assert_string_equal(
        path_of(
            &(struct remote_command){.argv = argv, .in = 0, .out = 1, .err_out = 2, .tty = true}),
        "/api/v1/namespaces/d/pods/p/exec?container=main&stdin=true&stdout=true&stderr=false&tty="
        "true&command=sh");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_target_is_a_pod_or_a_part_of_a_job),
        RIG_TEST(the_container_is_named_marked_or_the_first),
        RIG_TEST(a_failure_of_the_server_is_not_a_missing_pod),
        RIG_TEST(the_request_names_streams_and_words),
        RIG_TEST(a_terminal_has_no_stderr_of_its_own),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/remote", tests, NULL, NULL);
}
