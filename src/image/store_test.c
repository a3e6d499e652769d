// SPDX-License-Identifier: Apache-2.0
// The store: trees are cleaned and removed safely, layers are merged, users are found, images are
// recorded, found, kept while they are used, and removed.

#include "image/merge.h"
#include "image/store.h"
#include "image/tree.h"
#include "image/unpack.h"
#include "image/user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/hekla-image-XXXXXX";
static int top_fd;
static struct hk_arena mem;

static int setup(void **state)
{
    if (!mkdtemp(top)) {
        return -1;
    }
    top_fd = open(top, O_RDONLY | O_DIRECTORY);
    return top_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    char *base = strrchr(top, '/') + 1;
    const int tmp = open("/tmp", O_RDONLY | O_DIRECTORY);
    const int rc = image_tree_remove(tmp, base);

    close(tmp);
    close(top_fd);
    hk_arena_fini(&mem);
    return rc;
}

static void put_file(const char *path, const char *text)
{
    const int fd = openat(top_fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void put_dir(const char *path)
{
    assert_int_equal(mkdirat(top_fd, path, 0755), 0);
}

static bool has(const char *path)
{
    return faccessat(top_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_paths_are_cleaned(void **state)
{
    static const struct {
        const char *in, *out; /* NULL: refused */
    } cases[] = {
        {"a/b", "a/b"}, {"./a//b/.", "a/b"}, {"/etc/x", "etc/x"}, {"///", ""},
        {".", ""},      {"..", NULL},        {"a/../b", NULL},    {"/..", NULL},
        {"...", "..."}, {"a/..b", "a/..b"},
    };
    char path[64];

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const int rc = image_tree_clean(cases[i].in, path, sizeof(path), NULL);

        assert_int_equal(rc < 0, cases[i].out == NULL);
        if (cases[i].out) {
            assert_string_equal(path, cases[i].out);
        }
    }
    assert_int_equal(
        image_tree_clean("0123456789012345678901234567890123456789012345678901234567890123", path,
                         sizeof(path), NULL),
        -HK_ELIMIT);
}

static void test_removal_follows_no_link_and_opens_closed_directories(void **state)
{
    put_dir("kept");
    put_file("kept/file", "x");
    put_dir("tree");
    put_dir("tree/closed");
    put_file("tree/closed/file", "x");
    assert_int_equal(symlinkat("../kept", top_fd, "tree/link"), 0);
    assert_int_equal(fchmodat(top_fd, "tree/closed", 0, 0), 0);
    assert_int_equal(image_tree_remove(top_fd, "tree"), 0);
    assert_false(has("tree"));
    assert_true(has("kept/file"));
    assert_int_equal(image_tree_remove(top_fd, "tree"), 0); /* there is none */
}

static void test_files_are_opened_inside_and_only_files(void **state)
{
    int fd;

    put_dir("inside");
    put_file("inside/passwd", "inside");
    assert_int_equal(symlinkat("/passwd", top_fd, "inside/absolute"), 0);
    assert_int_equal(symlinkat("../../../../../passwd", top_fd, "inside/up"), 0);
    assert_int_equal(mkfifoat(top_fd, "inside/pipe", 0600), 0);
    const int dir = openat(top_fd, "inside", O_RDONLY | O_DIRECTORY);
    fd = image_tree_open_file(dir, "absolute");
    assert_true(fd >= 0);
    close(fd);
    fd = image_tree_open_file(dir, "up");
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(image_tree_open_file(dir, "pipe"), -1); /* and does not wait for a writer */
    assert_int_equal(image_tree_open_file(dir, "."), -1);
    close(dir);
}

static void merge(const char *layer, const char *to)
{
    const int from = openat(top_fd, layer, O_RDONLY | O_DIRECTORY);
    const int root = openat(top_fd, to, O_RDONLY | O_DIRECTORY);
    struct hk_err err = {0};

    if (image_merge(from, root, &err) < 0) {
        fail_msg("%s", err.text);
    }
    close(from);
    close(root);
}

static void test_layers_are_merged_with_their_whiteouts(void **state)
{
    static const char *const dirs[] = {"one",   "one/d",      "one/hidden", "one/real", "two",
                                       "two/d", "two/hidden", "two/link",   "root"};

    for (size_t i = 0; i < HK_LEN(dirs); i++) {
        put_dir(dirs[i]);
    }
    put_file("one/d/old", "old");
    put_file("one/d/gone", "gone");
    put_file("one/hidden/below", "x");
    put_file("one/turns", "a file");
    assert_int_equal(symlinkat("real", top_fd, "one/link"), 0);
    put_file("two/d/old", "new");
    put_file("two/d/" IMAGE_WHITEOUT "gone", "");
    put_file("two/hidden/" IMAGE_OPAQUE, "");
    put_file("two/hidden/above", "x");
    put_file("two/link/" IMAGE_IMPLICIT, "");
    put_file("two/link/through", "x");
    put_dir("two/turns");
    merge("one", "root");
    merge("two", "root");
    assert_true(has("root/d/old") && has("root/hidden/above") && has("root/real/through"));
    assert_false(has("root/d/gone") || has("root/hidden/below"));
    assert_false(has("root/hidden/" IMAGE_OPAQUE) || has("root/real/" IMAGE_IMPLICIT));
    assert_int_equal(unlinkat(top_fd, "root/turns", AT_REMOVEDIR), 0);
    assert_true(has("one/d/gone") && has("one/turns")); /* layers stay as they are */
}

static void test_users_come_from_the_image(void **state)
{
    static const struct {
        const char *text;
        int rc;
        int64_t uid, gid;
        uint32_t ngroup;
    } cases[] = {
        {"", 0, 0, 0, 0},
        {"app", 0, 1000, 1001, 1},
        {"1000", 0, 1000, 1001, 0},
        {"app:extra", 0, 1000, 2000, 0},
        {"app:7", 0, 1000, 7, 0},
        {"5:6", 0, 5, 6, 0},
        {"5", 0, 5, 0, 0},
        {"nobody-here", -HK_ENOTFOUND, 0, 0, 0},
        {"app:no-group", -HK_ENOTFOUND, 0, 0, 0},
        {"broken", -HK_ENOTFOUND, 0, 0, 0},
        {"-1", -HK_ENOTFOUND, 0, 0, 0},
        {"4294967295", -HK_ENOTFOUND, 0, 0, 0},
    };
    const char *root = hk_arena_printf(&mem, "%s/users", top);

    put_dir("users");
    put_dir("users/etc");
    put_file("users/etc/passwd", "root:x:0:0::/root:\napp:x:1000:1001::/home/app:/bin/sh\n"
                                 "broken:x:abc:1::/:\nshort:x\n");
    put_file("users/etc/group", "extra:x:2000:other,app\nlate:x:3000:apple\n");
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct image_user u = {0};

        assert_int_equal(image_user_find(root, hk_str(cases[i].text), &mem, &u, NULL), cases[i].rc);
        assert_int_equal(u.uid, cases[i].uid);
        assert_int_equal(u.gid, cases[i].gid);
        assert_int_equal(u.ngroup, cases[i].ngroup);
    }
    assert_true(image_user_is_number(HK_STR("5:x")) && image_user_is_number(HK_STR("")));
    assert_false(image_user_is_number(HK_STR("app:5")));
}

static void test_images_are_recorded_found_and_removed(void **state)
{
    const char *data = hk_arena_printf(&mem, "%s/data", top);
    const char *use = hk_arena_printf(&mem, "%s/data/node/pods/uid/" IMAGE_USES "/main.0", top);
    struct image_digest layer = image_digest_of(HK_STR("layer"));
    struct image_record r = {.name = HK_STR("docker.io/library/app:1"),
                             .layers = &layer,
                             .nlayer = 1,
                             .size = 5,
                             .root = layer},
                        found;
    struct image_pruned pruned = {0};
    struct image_records all;
    struct image_name name;
    struct image_store s;
    char path[PATH_MAX];

    put_dir("data");
    assert_int_equal(image_store_stamp(data), 0);
    assert_int_equal(image_store_list(data, &mem, &all, NULL), 0);
    assert_int_equal(all.len, 0);
    assert_int_equal(image_store_open(&s, data, IMAGE_SHARED, NULL), 0);
    assert_int_equal(image_store_put_blob(&s, HK_STR("{}"), &r.id, NULL), 0);
    assert_int_equal(image_store_put_blob(&s, HK_STR("[]"), &r.manifest, NULL), 0);
    assert_int_equal(image_store_put(&s, &r, NULL), 0);
    snprintf(path, sizeof(path), "data/images/roots/%s", layer.hex);
    put_dir(path);
    put_dir("data/images/layers/other");
    put_file("data/images/tmp/left", "");

    assert_int_equal(image_name_parse(HK_STR("app:1"), &name, NULL), 0);
    assert_int_equal(image_store_find(data, &name, &mem, &found, NULL), 0);
    assert_int_equal(found.size, 5);
    assert_string_equal(image_record_id(&found, &mem),
                        hk_arena_printf(&mem, "docker.io/library/app@sha256:%s", r.manifest.hex));
    assert_int_equal(image_name_parse(hk_str(image_record_id(&found, &mem)), &name, NULL), 0);
    assert_int_equal(image_store_find(data, &name, &mem, &found, NULL), 0);
    assert_int_equal(image_name_parse(HK_STR("app:2"), &name, NULL), 0);
    assert_int_equal(image_store_find(data, &name, &mem, &found, NULL), -HK_ENOTFOUND);

    /* In use. */
    put_dir("data/node");
    put_dir("data/node/pods");
    put_dir("data/node/pods/uid");
    put_dir("data/node/pods/uid/" IMAGE_USES);
    put_dir("data/node/pods/uid/" IMAGE_USES "/main.0");
    assert_int_equal(image_store_use(data, &r, use, NULL), 0);
    image_store_close(&s);
    assert_int_equal(image_store_open(&s, data, IMAGE_EXCLUSIVE, NULL), 0);
    assert_int_equal(image_store_use(data, &r, use, NULL), -HK_EBUSY); /* removals are going on */
    assert_int_equal(image_store_remove(&s, &r, NULL), -HK_EBUSY);
    assert_int_equal(image_store_prune(&s, data, true, &pruned, NULL), 0);
    assert_true(has(path) && pruned.nimage == 0 && pruned.nlayer == 1 && pruned.nother == 1);

    /* No longer in use. */
    assert_int_equal(image_tree_remove(top_fd, "data/node/pods/uid"), 0);
    assert_int_equal(image_store_prune(&s, data, true, &pruned, NULL), 0);
    assert_true(!has(path) && pruned.nimage == 1);
    image_store_close(&s);
    assert_int_equal(image_store_use(data, &r, use, NULL), -HK_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_are_cleaned),
        cmocka_unit_test(test_removal_follows_no_link_and_opens_closed_directories),
        cmocka_unit_test(test_files_are_opened_inside_and_only_files),
        cmocka_unit_test(test_layers_are_merged_with_their_whiteouts),
        cmocka_unit_test(test_users_come_from_the_image),
        cmocka_unit_test(test_images_are_recorded_found_and_removed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("image/store", tests, setup, teardown);
}
