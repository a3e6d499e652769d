// SPDX-License-Identifier: Apache-2.0
// Applies a layer to a tree. Files are shared through hard links, so that an image costs little
// more than its layers; nobody writes to them, since containers see the tree through an overlay or
// get a copy.
#include "image/merge.h"

#include "image/tree.h"
#include "image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NAMES_MAX 4096
#define VALUE_MAX 65536

struct merge {
    int root; /* of the whole tree */
    int from, to;
    char path[4096]; /* of both, below the root */
    uint32_t depth;
};

static int fail_at(const struct merge *m, const char *verb, const char *name, struct hk_err *err)
{
    const int e = errno;

    return hk_fail(err, e == ENOSPC || e == EDQUOT ? HK_EFULL : HK_EIO, "cannot %s \"%s/%s\": %s",
                   verb, m->path, name, strerror(e));
}

/* ---- whiteouts ---- */

static int clear_entry(void *ctx, const char *name, struct hk_err *err)
{
    const struct merge *m = ctx;

    return image_tree_remove(m->to, name) < 0 ? fail_at(m, "remove", name, err) : 0;
}

static int apply_whiteout(void *ctx, const char *name, struct hk_err *err)
{
    struct merge *m = ctx;

    if (strcmp(name, IMAGE_OPAQUE) == 0) {
        return image_tree_each(m->to, clear_entry, m, err);
    }
    if (strncmp(name, IMAGE_WHITEOUT, sizeof(IMAGE_WHITEOUT) - 1) != 0 ||
        strcmp(name, IMAGE_IMPLICIT) == 0) {
        return 0;
    }
    return clear_entry(m, name + sizeof(IMAGE_WHITEOUT) - 1, err);
}

/* ---- files ---- */

static int copy_bytes(int from, int to)
{
    ssize_t n;

    do {
        n = sendfile(to, from, NULL, (size_t)1 << 30);
    } while (n > 0);
    return n < 0 ? -1 : 0;
}

/* A file can have only so many names. */
static int copy_file(const struct merge *m, const char *name, const struct stat *st)
{
    HK_AUTO(image_close) int from = openat(m->from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    HK_AUTO(image_close)
    int to = from < 0 ? -1 : openat(m->to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (to < 0 || copy_bytes(from, to) < 0 ||
        (geteuid() == 0 && fchown(to, st->st_uid, st->st_gid) < 0) ||
        fchmod(to, st->st_mode & 07777) < 0) {
        return -1;
    }
    return futimens(to, (const struct timespec[]){st->st_atim, st->st_mtim});
}

static int merge_file(const struct merge *m, const char *name, const struct stat *st,
                      struct hk_err *err)
{
    if (image_tree_remove(m->to, name) < 0) {
        return fail_at(m, "replace", name, err);
    }
    if (linkat(m->from, name, m->to, name, 0) == 0) {
        return 0;
    }
    if (errno != EMLINK || !S_ISREG(st->st_mode) || copy_file(m, name, st) < 0) {
        return fail_at(m, "link", name, err);
    }
    return 0;
}

/* ---- directories ---- */

static void copy_attributes(int from, int to)
{
    char names[NAMES_MAX], value[VALUE_MAX];
    const ssize_t len = flistxattr(from, names, sizeof(names));

    for (const char *name = names; name < names + len; name += strlen(name) + 1) {
        const ssize_t n = fgetxattr(from, name, value, sizeof(value));

        if (n >= 0 && strncmp(name, "user.", 5) == 0) {
            (void)!fsetxattr(to, name, value, (size_t)n, 0); /* not every file system has them */
        }
    }
}

static int copy_metadata(const struct merge *m, struct hk_err *err)
{
    struct stat st;

    if (fstat(m->from, &st) < 0 || (geteuid() == 0 && fchown(m->to, st.st_uid, st.st_gid) < 0) ||
        fchmod(m->to, st.st_mode & 07777) < 0) {
        return fail_at(m, "set the mode of", "", err);
    }
    copy_attributes(m->from, m->to);
    return futimens(m->to, (const struct timespec[]){st.st_atim, st.st_mtim}) < 0
               ? fail_at(m, "set the time of", "", err)
               : 0;
}

static bool is_implicit(int dir)
{
    return faccessat(dir, IMAGE_IMPLICIT, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The directory of the tree that gets the entries. One that the layer only implies may be a link
 * in the tree, to be followed inside of it. */
static int open_target(const struct merge *m, const char *name, bool implicit)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    char path[sizeof(m->path) + 256];
    struct stat st;
    int fd;

    if (fstatat(m->to, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode)) {
        snprintf(path, sizeof(path), "%s/%s", m->path, name);
        fd = implicit ? image_tree_open(m->root, path, O_RDONLY | O_DIRECTORY) : -1;
        if (fd >= 0 || image_tree_remove(m->to, name) < 0) {
            return fd;
        }
    }
    if (mkdirat(m->to, name, 0755) < 0 && errno != EEXIST) {
        return -1;
    }
    fd = openat(m->to, name, flags | O_NOFOLLOW);
    if (fd < 0 && errno == EACCES && fchmodat(m->to, name, 0700, 0) == 0) {
        fd = openat(m->to, name, flags | O_NOFOLLOW);
    }
    return fd;
}

static int merge_dir(struct merge *m, struct hk_err *err);

static int merge_below(const struct merge *m, const char *name, struct hk_err *err)
{
    HK_AUTO(image_close)
    int from = openat(m->from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct merge below = {.root = m->root, .from = from, .depth = m->depth + 1};
    struct stat st;

    if (from < 0 || m->depth > IMAGE_TREE_DEPTH) {
        return fail_at(m, "open", name, err);
    }
    HK_AUTO(image_close) int to = open_target(m, name, is_implicit(from));
    if (to < 0 || fstat(to, &st) < 0) {
        return fail_at(m, "make", name, err);
    }
    if ((st.st_mode & 0700) != 0700 && fchmod(to, 0700 | (st.st_mode & 07777)) < 0) {
        return fail_at(m, "open", name, err);
    }
    below.to = to;
    if ((size_t)snprintf(below.path, sizeof(below.path), "%s/%s", m->path, name) >=
        sizeof(below.path)) {
        return hk_fail(err, HK_ELIMIT, "the path \"%.100s...\" is too long", m->path);
    }
    return merge_dir(&below, err);
}

static int merge_entry(void *ctx, const char *name, struct hk_err *err)
{
    const struct merge *m = ctx;
    struct stat st;

    if (strncmp(name, IMAGE_WHITEOUT, sizeof(IMAGE_WHITEOUT) - 1) == 0) {
        return 0;
    }
    if (fstatat(m->from, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return fail_at(m, "look at", name, err);
    }
    return S_ISDIR(st.st_mode) ? merge_below(m, name, err) : merge_file(m, name, &st, err);
}

static int merge_dir(struct merge *m, struct hk_err *err)
{
    int rc = image_tree_each(m->from, apply_whiteout, m, err);

    if (rc < 0) {
        return rc;
    }
    rc = image_tree_each(m->from, merge_entry, m, err);
    if (rc < 0) {
        return rc;
    }
    return is_implicit(m->from) ? 0 : copy_metadata(m, err);
}

int image_merge(int layer, int to, struct hk_err *err)
{
    struct merge m = {.root = to, .from = layer, .to = to};

    return merge_dir(&m, err);
}
