// SPDX-License-Identifier: Apache-2.0
// This machine as a node: its name, and the place of its records in memory.
#include "host/node.c" /* the choice of the place */

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
    const char *name;
    bool good;
} names[] = {
    {"n1", true},     {"node-1.rack-2", true}, {"1", true},    {"", false},
    {"Node", false},  {"node_1", false},       {"-n", false},  {"n-", false},
    {"node.", false}, {".node", false},        {"a b", false},
};

static void node_names_are_those_of_the_api(void **state)
{
    for (size_t i = 0; i < HK_LEN(names); i++) {
        struct hk_err err = {0};
        const int rc = node_check(&(struct node_flags){.name = names[i].name}, &err);
        if ((rc == 0) != names[i].good) {
            fail_msg("'%s': expected %s, was %d", names[i].name,
                     names[i].good ? "accepted" : "refused", rc);
        }
    }
}

static void without_a_name_the_host_names_the_node(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};

    assert_string_equal(node_name(&(struct node_flags){.name = "n1"}, &a), "n1");
    assert_int_equal(
        node_check(&(struct node_flags){.name = node_name(&(struct node_flags){.name = NULL}, &a)},
                   NULL),
        0);
}

static void a_missing_file_of_images_is_an_error(void **state)
{
    struct hk_err err = {0};

    assert_int_equal(node_check(&(struct node_flags){.image_roots = "/no/such/file"}, &err),
                     -HK_EINVAL);
    assert_string_equal(err.text, "option --image-roots: cannot read '/no/such/file': No such file "
                                  "or directory");
}

/* ---- the place of the records ---- */

static const struct {
    const char *target; /* of the link in the node's directory */
    bool kept;
} links[] = {
    {"/mem/2-7", true},   {"/mem/2-7-0123456789abcdef", true},
    {"/mem/2-70", false}, /* another directory */
    {"/mem/2-8", false},  {"/other/2-7", false},
    {"", false},
};

static void a_link_of_this_directory_is_kept_and_a_copy_gets_a_new_one(void **state)
{
    const struct stat dir = {.st_dev = 2, .st_ino = 7};
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct hk_rand rand;

    hk_rand_seed(&rand, 1);
    for (size_t i = 0; i < HK_LEN(links); i++) {
        const char *place = choose_runs("/mem", &dir, links[i].target, &rand, &a);
        if ((strcmp(place, links[i].target) == 0) != links[i].kept) {
            fail_msg("'%s': expected %s, was '%s'", links[i].target,
                     links[i].kept ? "kept" : "replaced", place);
        }
        assert_int_equal(strncmp(place, "/mem/2-7", strlen("/mem/2-7")), 0);
    }
}

/* ---- leftovers ---- */

static const char *in(struct hk_arena *a, const char *dir, const char *name)
{
    return hk_arena_printf(a, "%s/%s", dir, name);
}

/* The records of a node whose directory is `owner`; with a pod or without one. */
static void make_records(struct hk_arena *a, const char *memory, const char *name,
                         const char *owner, bool pod)
{
    const char *nets = in(a, memory, hk_arena_printf(a, "%s" NETS, name));

    assert_int_equal(mkdir(in(a, memory, name), 0700), 0);
    assert_int_equal(mkdir(nets, 0700), 0);
    assert_int_equal(symlink(owner, in(a, nets, OWNER)), 0);
    if (pod) {
        assert_int_equal(mkdir(in(a, in(a, memory, name), "pod"), 0700), 0);
    }
}

static void records_of_deleted_nodes_without_pods_are_removed(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    char memory[] = "/tmp/node-XXXXXX";

    assert_non_null(mkdtemp(memory));
    make_records(&a, memory, "gone", "/no/such/directory", false);
    make_records(&a, memory, "busy", "/no/such/directory", true);
    make_records(&a, memory, "alive", memory, false);
    node_sweep_memory(memory, &a);
    assert_int_equal(access(in(&a, memory, "gone"), F_OK), -1);
    assert_int_equal(access(in(&a, memory, "gone" NETS), F_OK), -1);
    assert_int_equal(access(in(&a, memory, "busy"), F_OK), 0);
    assert_int_equal(access(in(&a, memory, "alive"), F_OK), 0);

    rmdir(in(&a, memory, "busy/pod"));
    forget_node(in(&a, memory, "busy" NETS), &a);
    forget_node(in(&a, memory, "alive" NETS), &a);
    assert_int_equal(rmdir(memory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_names_are_those_of_the_api),
        cmocka_unit_test(without_a_name_the_host_names_the_node),
        cmocka_unit_test(a_missing_file_of_images_is_an_error),
        cmocka_unit_test(a_link_of_this_directory_is_kept_and_a_copy_gets_a_new_one),
        cmocka_unit_test(records_of_deleted_nodes_without_pods_are_removed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("host/node", tests, NULL, NULL);
}
