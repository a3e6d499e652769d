// SPDX-License-Identifier: Apache-2.0
// Finds the paths to a directory in the kernel's list of mounts.

#include "agent/process/cover.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_what_lies_below(void **state)
{
    static const struct {
        const char *path, *dir, *want;
    } cases[] = {
        {"/a/b", "/a", "/b"},  {"/a", "/a", ""}, {"/ab", "/a", NULL}, {"/a", "/a/b", NULL},
        {"/a/b", "/", "/a/b"}, {"/", "/", "/"},  {"/b", "/a", NULL},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const char *got = process_cover_path_below(cases[i].path, cases[i].dir);

        if (cases[i].want) {
            assert_string_equal(got, cases[i].want);
        } else {
            assert_null(got);
        }
    }
}

static void test_the_mount_on_top_counts(void **state)
{
    static const char mounts[] = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
                                 "31 27 0:25 / /srv rw - tmpfs none rw\n"
                                 "32 27 254:1 /part /srv rw - ext4 /dev/vdb rw\n"
                                 "33 27 254:1 /x /srv/with\\040blank\\134 rw - ext4 /dev/vdb rw\n"
                                 "broken\n";
    struct cover_mount m;

    assert_true(find_mount(hk_str(mounts), "/srv/d", &m));
    assert_true(hk_str_is(m.device, "254:1"));
    assert_string_equal(m.root, "/part");
    assert_true(find_mount(hk_str(mounts), "/srv/with blank\\/d", &m));
    assert_string_equal(m.root, "/x");
    assert_string_equal(m.at, "/srv/with blank\\");
    assert_true(find_mount(hk_str(mounts), "/srvs", &m));
    assert_string_equal(m.at, "/");
}

/* Mounts that lead to the directory, and mounts that only look like it. */
static void test_every_way_is_found(void **state)
{
    static const char mounts[] =
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "28 27 254:0 /var/lib /other rw - ext4 /dev/vda rw\n"
        "29 27 254:0 /var/lib/no-such-dir/node/pods/u /part rw - ext4 /dev/vda rw\n"
        "30 27 254:0 /var/library /near rw - ext4 /dev/vda rw\n"
        "31 27 254:1 /var/lib /foreign rw - ext4 /dev/vdb rw\n";
    struct process_cover c = {.mounts_fd = -1};
    struct cover_mount m;

    assert_true(find_mount(hk_str(mounts), "/var/lib/no-such-dir", &m));
    add_other_points(&c, hk_str(mounts), "/var/lib/no-such-dir", "/var/lib/no-such-dir", &m);
    /* The first two would be the same file, but do not exist on this machine. */
    assert_int_equal(c.points.len, 1);
    assert_string_equal(c.points.at[0], "/part");
    process_cover_fini(&c);
}

static void test_the_list_ends(void **state)
{
    const char *const dirs[] = {"/usr/..", "/proc/self/no-such", NULL};
    struct process_cover c;
    const char *const *points;

    process_cover_init(&c, NULL);
    assert_null(process_cover_points(&c)[0]);
    assert_null(process_cover_points(&c)[0]);
    process_cover_fini(&c);
    process_cover_init(&c, dirs);
    points = process_cover_points(&c);
    assert_string_equal(points[0], "/");
    process_cover_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_lies_below),
        cmocka_unit_test(test_the_mount_on_top_counts),
        cmocka_unit_test(test_every_way_is_found),
        cmocka_unit_test(test_the_list_ends),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
