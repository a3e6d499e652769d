// SPDX-License-Identifier: Apache-2.0
// Copies: which side is the pod, where a copy lands, and that nothing from a pod leads out of the
// directory it was unpacked to.
#include "user/copy.c" /* the decisions are not public */

#include "user/rig_test.h"

#include <sys/stat.h>

/* ---- the command line ---- */

static const struct {
    const char *typed, *path;
} typed[] = {
    {"train:/results", "/results"},
    {"train/worker/0:out", "out"},
    {"train:", ""},
    {"results", NULL},
    {"./like:this", NULL}, /* a path of this machine with a colon in it */
    {"../like:this", NULL},
    {"/tmp/like:this", NULL},
    {":x", NULL},
};

static void a_pod_and_a_path_are_joined_by_a_colon(void **state)
{
    for (size_t i = 0; i < HK_LEN(typed); i++) {
        const char *path = path_in_pod(typed[i].typed);
        if ((path == NULL) != (typed[i].path == NULL) ||
            (path && strcmp(path, typed[i].path) != 0)) {
            fail_msg("'%s': expected %s, was %s", typed[i].typed,
                     typed[i].path ? typed[i].path : "none", path ? path : "none");
        }
    }
}

static const struct {
    const char *from, *to, *error;
} refused[] = {
    {"a", "b", "one of SRC and DST must be POD:PATH, and the other a path of this machine"},
    {"p:a", "q:b", "one of SRC and DST must be POD:PATH, and the other a path of this machine"},
    {"p:", "b", "'p:' has no path behind the colon"},
    {"a", "p:", "'p:' has no path behind the colon"},
};

static void one_side_is_the_pod(void **state)
{
    for (size_t i = 0; i < HK_LEN(refused); i++) {
        struct hk_err err = {0};
        const struct copy_opts o = {.from = refused[i].from, .to = refused[i].to};
        assert_int_equal(copy_files(&o, &err), -HK_EINVAL);
        assert_string_equal(err.text, refused[i].error);
    }
}

static const struct {
    const char *dir, *name, *target;
} insides[] = {
    {"out", "/data/model.bin", "out/model.bin"},
    {"out", "/data/dir/", "out/dir"},
    {"out", "/data/.", "out"}, /* the directory itself, without its name */
    {"out", "..", "out"},
    {"out", "/", "out"},
};

static void a_directory_gets_the_copy_under_its_own_name(void **state)
{
    struct copy c = {0};

    for (size_t i = 0; i < HK_LEN(insides); i++) {
        assert_string_equal(inside(&c, insides[i].dir, insides[i].name), insides[i].target);
    }
    hk_arena_fini(&c.r.user.mem);
}

/* ---- links ---- */

static const struct {
    const char *target;
    int depth; /* of the directory with the link */
    bool out;
} links[] = {
    {"file", 0, false},       {"dir/file", 0, false},   {"./file", 0, false},
    {"/etc/passwd", 0, true}, {"/etc/passwd", 5, true}, {"..", 0, true},
    {"../x", 0, true},        {"../x", 1, false},       {"../../x", 1, true},
    {"../../x", 2, false},    {"dir/../x", 3, true}, /* dir may itself be a link */
    {"..//../x", 1, true},    {"", 0, false},
};

static void links_out_of_the_directory_are_known(void **state)
{
    for (size_t i = 0; i < HK_LEN(links); i++) {
        if (leads_out(hk_str(links[i].target), links[i].depth) != links[i].out) {
            fail_msg("'%s' at depth %d: expected %s", links[i].target, links[i].depth,
                     links[i].out ? "out" : "inside");
        }
    }
}

static bool is_link(const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static void make_link(const char *dir, const char *name, const char *target)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(symlink(target, path), 0);
}

static void such_links_are_removed_and_reported(void **state)
{
    struct rig *g = *state;
    char dir[] = "/tmp/copy-XXXXXX", sub[64];

    assert_non_null(mkdtemp(dir));
    snprintf(sub, sizeof(sub), "%s/sub", dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    make_link(dir, "good", "sub/x");
    make_link(dir, "bad", "../x");
    make_link(sub, "up", "../good");
    make_link(sub, "out", "../../x");

    capture_begin(&g->printed);
    const int rc = nftw(dir, drop_link, 16, FTW_PHYS);
    capture_end(&g->printed);
    assert_int_equal(rc, 0);
    assert_true(is_link(dir, "good"));
    assert_false(is_link(dir, "bad"));
    assert_true(is_link(sub, "up"));
    assert_false(is_link(sub, "out"));
    assert_non_null(
        strstr(g->printed.complaints, "skipped a link that leads out of the directory"));
    nftw(dir, copy_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- local programs ---- */

static void a_missing_program_is_named(void **state)
{
    static const char *const argv[] = {"no-such-program", NULL};
    static const char *const fails[] = {"false", NULL};
    static const char *const works[] = {"true", NULL};
    struct hk_err err = {0};

    assert_int_equal(run_here(argv, &err), -HK_ENOTFOUND);
    assert_string_equal(err.text, "cannot run 'no-such-program' on this machine");
    assert_int_equal(run_here(fails, &err), -HK_EIO);
    assert_string_equal(err.text, "'false' failed on this machine");
    assert_int_equal(run_here(works, &err), 0);
}

static void an_unpacked_directory_is_moved_into_place(void **state)
{
    char top[] = "/tmp/copy-XXXXXX", temp[64], to[64], file[80];
    struct hk_err err = {0};

    assert_non_null(mkdtemp(top));
    snprintf(temp, sizeof(temp), "%s/temp", top);
    snprintf(to, sizeof(to), "%s/to", top);
    for (int i = 0; i < 2; i++) { /* the second time into the existing directory */
        assert_int_equal(mkdir(temp, 0700), 0);
        snprintf(file, sizeof(file), "%s/file%d", temp, i);
        assert_int_equal(hk_write_file(file, HK_STR("x"), &err), 0);
        assert_int_equal(settle_dir(temp, to, &err), 0);
        nftw(temp, copy_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof(file), "%s/file%d", to, i);
        assert_int_equal(access(file, F_OK), 0);
    }
    nftw(top, copy_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_and_a_path_are_joined_by_a_colon),
        cmocka_unit_test(one_side_is_the_pod),
        cmocka_unit_test(a_directory_gets_the_copy_under_its_own_name),
        cmocka_unit_test(links_out_of_the_directory_are_known),
        RIG_TEST(such_links_are_removed_and_reported),
        cmocka_unit_test(a_missing_program_is_named),
        cmocka_unit_test(an_unpacked_directory_is_moved_into_place),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/copy", tests, NULL, NULL);
}
