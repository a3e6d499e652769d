// SPDX-License-Identifier: Apache-2.0
// Tests of ephemeral containers: when they start, what the status says, and that the pod does not
// depend on them.
#include "agent/rig_test.h"

#define ONE(policy)                                                                                \
    "  restartPolicy: " policy "\n"                                                                \
    "  containers:\n"                                                                              \
    "  - {name: c, image: i, command: [work]}\n"
#define LOOK "[{name: look, image: i, command: [sh]}]"

/* Sets the ephemeral containers of the pod, as YAML. */
static void add_ephemeral(struct rig *r, const char *name, const char *list)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json doc = json_clone(rig_peek(r, API_POD, name), &a);
    struct json *spec = (struct json *)json_get(&doc, "spec");
    struct yaml_docs docs = {0};

    assert_int_equal(yaml_parse(hk_str(list), 0, &a, &docs, NULL), 0);
    json_put(spec, &a, HK_STR("ephemeralContainers"), docs.at[0]);
    assert_int_equal(port_mem_put(r->mem, &doc, NULL), 0);
    rig_settle(r);
}

#define STATE(k) "ephemeralContainerStatuses." #k ".state."

static void test_one_is_started_once_and_reported(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Always"));
    assert_pod(&r, "a", "ephemeralContainerStatuses", "");
    add_ephemeral(&r, "a", LOOK);
    assert_string_equal(r.fake.log.data, "start c 0\nstart look 0\n");
    assert_pod(&r, "a", STATE(0) "running.startedAt", "2026-01-02T10:00:00Z");
    assert_pod(&r, "a", "ephemeralContainerStatuses.0.ready", "false");
    rig_end(&r, "look", 3);
    rig_pass(&r, 3600);
    assert_pod(&r, "a", STATE(0) "terminated.exitCode", "3");
    assert_pod(&r, "a", "ephemeralContainerStatuses.0.restartCount", "0");
    assert_pod(&r, "a", "phase", "Running");
    assert_string_equal(rig_condition(&r, "a", "Ready"), "True");
    assert_string_equal(r.fake.log.data, "start c 0\nstart look 0\n");
    rig_fini(&r);
}

static void test_more_can_follow(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Always"));
    add_ephemeral(&r, "a", LOOK);
    add_ephemeral(&r, "a",
                  "[{name: look, image: i, command: [sh]}, {name: more, image: i, command: [x]}]");
    assert_string_equal(r.fake.log.data, "start c 0\nstart look 0\nstart more 0\n");
    assert_pod(&r, "a", "ephemeralContainerStatuses.1.name", "more");
    rig_end(&r, "more", 0);
    assert_pod(&r, "a", STATE(1) "terminated.reason", "Completed");
    assert_pod(&r, "a", STATE(0) "running.startedAt", "2026-01-02T10:00:00Z");
    rig_fini(&r);
}

static void test_the_pod_ends_without_waiting_for_it(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Never"));
    add_ephemeral(&r, "a", LOOK);
    rig_end(&r, "c", 0);
    assert_non_null(strstr(r.fake.log.data, "kill look 15\n"));
    assert_pod(&r, "a", "phase", "Succeeded");
    assert_pod(&r, "a", STATE(0) "terminated.exitCode", "143");
    assert_string_equal(rig_condition(&r, "a", "Ready"), "False");
    rig_fini(&r);
}

static void test_one_that_failed_does_not_fail_the_pod(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Never"));
    add_ephemeral(&r, "a", LOOK);
    rig_end(&r, "look", 1);
    assert_pod(&r, "a", "phase", "Running");
    rig_end(&r, "c", 0);
    assert_pod(&r, "a", "phase", "Succeeded");
    rig_fini(&r);
}

static void test_one_is_started_while_init_containers_run(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", "  initContainers:\n  - {name: i, image: i, command: [work]}\n" ONE("Never"));
    add_ephemeral(&r, "a", LOOK);
    assert_string_equal(r.fake.log.data, "start i 0\nstart look 0\n");
    assert_pod(&r, "a", "phase", "Pending");
    assert_string_equal(rig_condition(&r, "a", "Initialized"), "False");
    rig_end(&r, "i", 0);
    assert_pod(&r, "a", "phase", "Running");
    rig_fini(&r);
}

static void test_a_missing_command_is_explained(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Always"));
    add_ephemeral(&r, "a", "[{name: look, image: busybox}]");
    assert_pod(&r, "a", STATE(0) "terminated.reason", "ContainerCannotRun");
    assert_pod(&r, "a", STATE(0) "terminated.message",
               "image is not run here: give a command, as in 'kubectl debug -it POD "
               "--image=IMAGE -- sh'");
    assert_non_null(strstr(rig_file(&r, "pods/u-a/look.0.log"), " stderr F image is not run here"));
    assert_pod(&r, "a", "phase", "Running");
    rig_fini(&r);
}

static void test_an_image_with_a_root_directory_has_a_shell(void **state)
{
    struct rig r;

    rig_init(&r);
    assert_int_equal(hk_write_file(r.roots, HK_STR("busybox /some/root\n"), NULL), 0);
    rig_pod(&r, "a", ONE("Always"));
    add_ephemeral(&r, "a", "[{name: look, image: busybox}]");
    assert_string_equal(rig_container(&r, "look")->argv.data, "/bin/sh");
    assert_string_equal(rig_container(&r, "look")->root, "/some/root");
    rig_fini(&r);
}

static void test_mounts_beside_a_target_are_refused(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", "  volumes: [{name: v, emptyDir: {}}]\n" ONE("Always"));
    add_ephemeral(&r, "a",
                  "[{name: look, image: i, command: [sh], targetContainerName: c, volumeMounts: "
                  "[{name: v, mountPath: /v}]}]");
    assert_pod(&r, "a", STATE(0) "terminated.message",
               "volumeMounts cannot be combined with targetContainerName on this node: the "
               "container sees the files of its target");
    rig_fini(&r);
}

static void test_what_its_variables_need_is_fetched(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Always"));
    add_ephemeral(&r, "a",
                  "[{name: look, image: i, command: [sh], envFrom: [{configMapRef: {name: m}}]}]");
    assert_pod(&r, "a", STATE(0) "waiting.reason", "CreateContainerConfigError");
    assert_pod(&r, "a", "phase", "Running");
    rig_end(&r, "c", 1); /* the others go on */
    assert_non_null(strstr(r.fake.log.data, "start c 1\n"));
    rig_put(&r, "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: d, name: m}\n"
                "data: {WHAT: ever}\n");
    for (int i = 0; i < 60 && !rig_container(&r, "look"); i++) {
        rig_pass(&r, 1);
    }
    assert_non_null(rig_container(&r, "look"));
    assert_non_null(strstr(rig_container(&r, "look")->env.data, "WHAT=ever\n"));
    rig_fini(&r);
}

static void test_the_next_agent_finds_it(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Always"));
    add_ephemeral(&r, "a",
                  "[{name: look, image: i, command: [sh]}, {name: done, image: i, command: [x]}]");
    rig_end(&r, "done", 4);
    rig_down(&r);
    rig_up(&r);
    assert_string_equal(r.fake.log.data, "start c 0\nstart look 0\nstart done 0\nadopt c 0\n"
                                         "adopt look 0\n");
    assert_pod(&r, "a", STATE(1) "terminated.exitCode", "4");
    rig_end(&r, "look", 5);
    assert_pod(&r, "a", STATE(0) "terminated.exitCode", "5");
    rig_pass(&r, 600);
    assert_null(strstr(r.fake.log.data, "start look 1"));
    rig_fini(&r);
}

static void test_one_is_stopped_with_a_deleted_pod(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", ONE("Always"));
    add_ephemeral(&r, "a", LOOK);
    rig_delete(&r, "a", 30);
    assert_non_null(strstr(r.fake.log.data, "kill c 15\n"));
    assert_non_null(strstr(r.fake.log.data, "kill look 15\n"));
    rig_pass(&r, 1);
    assert_null(rig_peek(&r, API_POD, "a"));
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_is_started_once_and_reported),
        cmocka_unit_test(test_more_can_follow),
        cmocka_unit_test(test_the_pod_ends_without_waiting_for_it),
        cmocka_unit_test(test_one_that_failed_does_not_fail_the_pod),
        cmocka_unit_test(test_one_is_started_while_init_containers_run),
        cmocka_unit_test(test_a_missing_command_is_explained),
        cmocka_unit_test(test_an_image_with_a_root_directory_has_a_shell),
        cmocka_unit_test(test_mounts_beside_a_target_are_refused),
        cmocka_unit_test(test_what_its_variables_need_is_fetched),
        cmocka_unit_test(test_the_next_agent_finds_it),
        cmocka_unit_test(test_one_is_stopped_with_a_deleted_pod),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
