// SPDX-License-Identifier: Apache-2.0
// Opens, lists and removes files below a directory that may contain anything.
#include "image/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void image_close(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
}

int image_tree_open(int dir, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

int image_tree_open_file(int dir, const char *path)
{
    const int fd = image_tree_open(dir, path, O_RDONLY | O_NONBLOCK); /* does not wait for a pipe */
    struct stat st;

    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

/* A directory that this user may list and change. */
static int open_to_remove(int dir, const char *name)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const int fd = openat(dir, name, flags);
    struct stat st;

    if (fd >= 0) {
        if (fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700) {
            fchmod(fd, 0700);
        }
        return fd;
    }
    if (errno != EACCES || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISDIR(st.st_mode) || fchmodat(dir, name, 0700, 0) < 0) {
        return -1;
    }
    return openat(dir, name, flags);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int image_tree_each(int dir, int (*fn)(void *ctx, const char *name, struct hk_err *err), void *ctx,
                    struct hk_err *err)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *e;
    int rc = 0;

    if (!list) {
        image_close(&copy);
        return hk_fail(err, HK_EIO, "cannot list a directory: %m");
    }
    for (errno = 0; rc == 0 && (e = readdir(list)); errno = 0) {
        rc = is_dots(e->d_name) ? 0 : fn(ctx, e->d_name, err);
    }
    if (rc == 0 && errno != 0) {
        rc = hk_fail(err, HK_EIO, "cannot list a directory: %m");
    }
    closedir(list);
    return rc;
}

struct removal {
    int dir;
    uint32_t depth;
};

static int remove_entry(void *ctx, const char *name, struct hk_err *err);

/* Deeper trees than IMAGE_TREE_DEPTH come from containers. */
static int empty_dir(int dir, const char *name, uint32_t depth)
{
    HK_AUTO(image_close) int fd = depth == 0 ? -1 : open_to_remove(dir, name);
    struct removal below = {.dir = fd, .depth = depth - 1};

    return fd < 0 ? -1 : image_tree_each(fd, remove_entry, &below, NULL);
}

static int remove_entry(void *ctx, const char *name, struct hk_err *err)
{
    const struct removal *r = ctx;

    if (unlinkat(r->dir, name, 0) == 0 || errno == ENOENT) {
        return 0;
    }
    if (unlinkat(r->dir, name, AT_REMOVEDIR) == 0) {
        return 0;
    }
    if (empty_dir(r->dir, name, r->depth) < 0 || unlinkat(r->dir, name, AT_REMOVEDIR) < 0) {
        return -HK_EIO;
    }
    return 0;
}

int image_tree_remove(int dir, const char *name)
{
    struct removal r = {.dir = dir, .depth = 4 * IMAGE_TREE_DEPTH};

    return remove_entry(&r, name, NULL) < 0 ? -1 : 0;
}

int image_tree_clean(const char *path, char *ret, size_t room, struct hk_err *err)
{
    struct hk_str rest = hk_str(path), part;
    uint32_t depth = 0;
    size_t n = 0;

    while (hk_str_cut(&rest, '/', &part)) {
        if (part.n == 0 || hk_str_is(part, ".")) {
            continue;
        }
        if (hk_str_is(part, "..")) {
            return hk_fail(err, HK_EINVAL, "the path \"%.200s\" has \"..\"", path);
        }
        if (part.n > NAME_MAX || n + part.n + 2 > room || ++depth > IMAGE_TREE_DEPTH) {
            return hk_fail(err, HK_ELIMIT, "the path \"%.100s...\" is too long or too deep", path);
        }
        n += (size_t)snprintf(ret + n, room - n, "%s%.*s", n > 0 ? "/" : "", HK_FMT(part));
    }
    ret[n] = '\0';
    return 0;
}
