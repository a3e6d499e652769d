// SPDX-License-Identifier: Apache-2.0
// Lists: what is selected, in which form it is printed, and what a pipe gets while it changes.
#include "user/listing.h"

#include "user/rig_test.h"

#include <stdio_ext.h>

#define POD(name, queue)                                                                           \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name ", namespace: d, labels: "                \
    "{volcano.sh/queue-name: " queue ", app: x}, managedFields: [{manager: m}]}, spec: "           \
    "{containers: []}, status: {phase: Running}}\n---\n"
#define QUEUE(name)                                                                                \
    "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: " name              \
    "}, spec: {weight: 1}}\n---\n"

static int print(struct rig *g, const char *plural, const struct listing_opts *o)
{
    capture_begin(&g->printed);
    const int rc = listing_print(&g->user, plural, o, &g->err);
    __fpurge(stdout); /* what could not be written; all else was flushed */
    capture_end(&g->printed);
    return rc;
}

/* ---- which objects ---- */

static void all_objects_or_the_selected_ones(void **state)
{
    struct rig *g = *state;

    rig_put(g, POD("b", "q1") POD("a", "q2"));
    assert_int_equal(print(g, "pods", &(struct listing_opts){.format = LISTING_NAME}), 0);
    assert_string_equal(g->printed.out, "pod/a\npod/b\n");
    assert_int_equal(
        print(g, "pods", &(struct listing_opts){.format = LISTING_NAME, .queue = "q1"}), 0);
    assert_string_equal(g->printed.out, "pod/b\n");
    assert_int_equal(
        print(g, "pods", &(struct listing_opts){.format = LISTING_NAME, .selector = "app=y"}), 0);
    assert_string_equal(g->printed.out, "");
}

static void named_objects_must_exist(void **state)
{
    const char *names[] = {"a", "worker-x"};
    struct listing_opts o = {.format = LISTING_NAME, .names = {.at = names, .len = 1}};
    struct rig *g = *state;

    rig_put(g, POD("a", "q") POD("worker-1", "q"));
    assert_int_equal(print(g, "pods", &o), 0);
    assert_string_equal(g->printed.out, "pod/a\n");
    o.names.len = 2;
    assert_int_equal(print(g, "pods", &o), -HK_ENOTFOUND);
    assert_string_equal(g->err.text,
                        "no pod 'worker-x' in namespace 'd', did you mean 'worker-1'?");
}

/* ---- forms ---- */

static void a_table_is_for_people(void **state)
{
    struct rig *g = *state;

    rig_put(g, QUEUE("root") QUEUE("default"));
    assert_int_equal(print(g, "queues", &(struct listing_opts){0}), 0);
    assert_int_equal(strncmp(g->printed.out, "NAME ", strlen("NAME ")), 0);
    assert_non_null(strstr(g->printed.out, "\nroot "));
    assert_non_null(strstr(g->printed.out, "\n  default ")); /* below its parent */
}

/* The second list of a table covers all namespaces; a user with rights in one still gets the table. */
static void counts_are_limited_to_what_the_user_may_list(void **state)
{
    struct rig *g = *state;

    rig_put(g, QUEUE("root") QUEUE("default"));
    port_mem_fail(g->mem, PORT_LIST, 2, HK_EDENIED);
    assert_int_equal(print(g, "queues", &(struct listing_opts){0}), 0);
    assert_non_null(strstr(g->printed.out, "\nroot "));
    assert_string_equal(g->printed.complaints,
                        "hekla: only the podgroups of namespace 'd' are counted: you may not list "
                        "those of others\n");
    g->user.ns = "";
    port_mem_fail(g->mem, PORT_LIST, 2, HK_EDENIED);
    assert_int_equal(print(g, "queues", &(struct listing_opts){0}), -HK_EDENIED);
}

static void an_empty_table_is_said_on_stderr(void **state)
{
    struct rig *g = *state;

    assert_int_equal(print(g, "jobs", &(struct listing_opts){0}), 0);
    assert_string_equal(g->printed.out, "");
    assert_string_equal(g->printed.complaints, "hekla: no jobs in namespace 'd'\n");
    assert_int_equal(print(g, "queues", &(struct listing_opts){0}), 0);
    assert_string_equal(g->printed.complaints, "hekla: no queues\n");
    g->user.ns = "";
    assert_int_equal(print(g, "jobs", &(struct listing_opts){0}), 0);
    assert_string_equal(g->printed.complaints, "hekla: no jobs in any namespace\n");
}

static void objects_are_without_managed_fields(void **state)
{
    const char *names[] = {"a"};
    struct rig *g = *state;

    rig_put(g, POD("a", "q"));
    assert_int_equal(print(g, "pods", &(struct listing_opts){.format = LISTING_JSON}), 0);
    assert_non_null(strstr(g->printed.out, "\"kind\": \"List\""));
    assert_null(strstr(g->printed.out, "managedFields"));
    assert_int_equal(
        print(g, "pods",
              &(struct listing_opts){.format = LISTING_YAML, .names = {.at = names, .len = 1}}),
        0);
    assert_int_equal(strncmp(g->printed.out, "apiVersion: v1\nkind: Pod\n", 25), 0); /* no list */
}

/* ---- watching ---- */

static void change(struct rig *g)
{
    rig_put(g, POD("c", "q"));
}

/* A way to end a watch that never ends by itself. */
static void lose_the_server(struct rig *g)
{
    close(STDOUT_FILENO);
}

static void a_pipe_gets_what_is_new(void **state)
{
    struct rig *g = *state;

    rig_put(g, POD("a", "q") POD("b", "q"));
    rig_later(g, 5, change);
    rig_later(g, 300, lose_the_server);
    rig_later(g, 310, change);
    const int rc = print(g, "pods", &(struct listing_opts){.format = LISTING_NAME, .watch = true});
    assert_int_equal(rc, -HK_EIO);
    assert_string_equal(g->printed.out, "pod/a\npod/b\npod/c\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(all_objects_or_the_selected_ones),
        RIG_TEST(named_objects_must_exist),
        RIG_TEST(a_table_is_for_people),
        RIG_TEST(counts_are_limited_to_what_the_user_may_list),
        RIG_TEST(an_empty_table_is_said_on_stderr),
        RIG_TEST(objects_are_without_managed_fields),
        RIG_TEST(a_pipe_gets_what_is_new),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/listing", tests, NULL, NULL);
}
