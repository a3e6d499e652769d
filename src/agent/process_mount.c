// SPDX-License-Identifier: Apache-2.0
// What a container sees of the file system: the machine's, or a root directory, with mounts bound
// over it. Runs in the shim, in a mount namespace of its own, without the heap.
//
// A mount point that does not exist is never made on the machine. The directory it is missing from
// is replaced, for this container, by a copy on a private tmpfs whose entries are bound to the
// originals; there the point can be made. Only inside the container's own mounts are points made
// in place, as container runtimes do.

#include "agent/process_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COPIES 32

struct view {
    const struct process_launch *launch;
    char *message;
    dev_t copies[COPIES]; /* devices of the tmpfs that are ours; past the limit they are not known
                           * and copied once more, which does no harm */
    uint32_t ncopy;
};

struct linux_dirent {
    uint64_t ino;
    int64_t off;
    unsigned short reclen;
    unsigned char type;
    char name[];
};

static int fail(struct view *v, const char *what, const char *path)
{
    snprintf(v->message, PROCESS_MESSAGE, "cannot %s \"%.400s\": " PROCESS_WHY, what, path,
             PROCESS_WHY_OF(errno));
    return -1;
}

static int bind_at(int from_fd, const char *from, int to_fd, const char *to)
{
    const int tree = open_tree(from_fd, from,
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
                                   AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT);
    int rc;

    if (tree < 0) {
        return -1;
    }
    rc = move_mount(tree, "", to_fd, to, MOVE_MOUNT_F_EMPTY_PATH);
    close(tree);
    return rc;
}

/* ---- copies of directories ---- */

static int make_file(int dir, const char *name)
{
    const int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0) {
        return -1;
    }
    close(fd);
    return 0;
}

static int copy_link(int from, const char *name, int to)
{
    char target[PATH_MAX];
    const ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

    if (n < 0) {
        return -1;
    }
    target[n] = '\0';
    return symlinkat(target, to, name);
}

/* A node of our own is cheaper than a mount, and /dev has a hundred; but few may make one. */
static bool copy_device(const struct stat *st, const char *name, int to)
{
    if (!S_ISCHR(st->st_mode) && !S_ISBLK(st->st_mode)) {
        return false;
    }
    const mode_t mask = umask(0);
    const bool made = mknodat(to, name, st->st_mode, st->st_rdev) == 0;
    umask(mask);
    if (!made) {
        return false;
    }
    if ((st->st_uid != 0 || st->st_gid != 0) && fchownat(to, name, st->st_uid, st->st_gid, 0) < 0) {
        unlinkat(to, name, 0);
        return false;
    }
    return true;
}

static int copy_entry(int from, const char *name, int to)
{
    struct stat st;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return errno == ENOENT ? 0 : -1; /* gone since it was listed */
    }
    if (S_ISLNK(st.st_mode)) {
        return copy_link(from, name, to);
    }
    if (copy_device(&st, name, to)) {
        return 0;
    }
    if ((S_ISDIR(st.st_mode) ? mkdirat(to, name, 0755) : make_file(to, name)) < 0) {
        return -1;
    }
    return bind_at(from, name, to, name) < 0 && errno != ENOENT ? -1 : 0;
}

/* The consoles and disks of the machine are not for its containers, and they are three quarters of
 * /dev; who needs one can have it as a hostPath. */
static bool is_machines(const struct linux_dirent *e)
{
    const bool tty = strncmp(e->name, "tty", 3) == 0 && e->name[3] >= '0' && e->name[3] <= '9';

    return e->type == DT_BLK || (e->type == DT_CHR && (tty || strncmp(e->name, "vcs", 3) == 0));
}

static int copy_entries(int from, int to)
{
    _Alignas(struct linux_dirent) char buf[4096];

    for (;;) {
        const long n = syscall(SYS_getdents64, from, buf, sizeof(buf));
        if (n <= 0) {
            return (int)n;
        }
        for (long at = 0; at < n;) {
            const struct linux_dirent *e = (const void *)(buf + at);
            if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0 && !is_machines(e) &&
                copy_entry(from, e->name, to) < 0) {
                return -1;
            }
            at += e->reclen;
        }
    }
}

/* Puts a tmpfs with the entries of dir over the directory onto, which may be dir itself. */
static int copy_dir(struct view *v, const char *dir, const char *onto)
{
    const int from = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    int to = -1, rc = -1;

    if (from < 0 || fstat(from, &st) < 0 ||
        mount("hekla", onto, "tmpfs", MS_NOSUID, "mode=0755") < 0) {
        goto out;
    }
    to = open(onto, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0 || fchmod(to, st.st_mode & 07777) < 0) {
        goto out;
    }
    /* In a user namespace others than the agent's user do not exist. */
    if (fchown(to, st.st_uid, st.st_gid) < 0 && errno != EINVAL && errno != EPERM) {
        goto out;
    }
    if (fstat(to, &st) < 0) {
        goto out;
    }
    if (v->ncopy < COPIES) {
        v->copies[v->ncopy++] = st.st_dev;
    }
    rc = copy_entries(from, to);
out:
    if (from >= 0) {
        close(from);
    }
    if (to >= 0) {
        close(to);
    }
    return rc;
}

static bool is_copy(const struct view *v, dev_t dev)
{
    for (uint32_t k = 0; k < v->ncopy; k++) {
        if (v->copies[k] == dev) {
            return true;
        }
    }
    return false;
}

/* ---- mount points ---- */

/* Inside a mount that was made for the container before this one. */
static bool in_own_mount(const struct view *v, uint32_t k, const char *dir)
{
    for (uint32_t i = 0; i < k; i++) {
        const char *at = v->launch->mounts[i].at;
        const size_t n = strlen(at);
        if (strncmp(dir, at, n) == 0 && (dir[n] == '\0' || dir[n] == '/')) {
            return true;
        }
    }
    return false;
}

/* Cuts the path back to the part that exists. */
static void existing_part(char *path)
{
    struct stat st;

    while (stat(path, &st) < 0) {
        char *slash = strrchr(path, '/');
        slash[slash == path] = '\0';
    }
}

static int make_dir(const char *path)
{
    return mkdir(path, 0755) < 0 && errno != EEXIST ? -1 : 0;
}

static int make_parents(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') {
            continue;
        }
        *p = '\0';
        const int rc = make_dir(path);
        *p = '/';
        if (rc < 0) {
            return -1;
        }
    }
    return 0;
}

static const char *kind_of(const struct stat *st)
{
    return S_ISDIR(st->st_mode) ? "directory" : "file";
}

/* The kernel would refuse it without a word that helps. */
static bool is_same_kind(struct view *v, uint32_t k, const struct stat *source,
                         const struct stat *point)
{
    if (S_ISDIR(source->st_mode) == S_ISDIR(point->st_mode)) {
        return true;
    }
    snprintf(v->message, PROCESS_MESSAGE,
             "cannot mount \"%.200s\", a %s, at \"%.200s\", which is a %s",
             v->launch->mounts[k].from, kind_of(source), v->launch->mounts[k].at, kind_of(point));
    errno = EINVAL;
    return false;
}

/* Sees that mount k has a point to be mounted at. */
static int make_point(struct view *v, uint32_t k)
{
    const char *at = v->launch->mounts[k].at;
    char path[PATH_MAX];
    struct stat source, st;

    if (fstat(v->launch->trees[k], &source) < 0) {
        return fail(v, "look at", v->launch->mounts[k].from);
    }
    if (stat(at, &st) == 0) {
        return is_same_kind(v, k, &source, &st) ? 0 : -1;
    }
    snprintf(path, sizeof(path), "%s", at);
    existing_part(path);
    if (stat(path, &st) < 0) {
        return fail(v, "look at", path);
    }
    if (!in_own_mount(v, k, path) && !is_copy(v, st.st_dev) && copy_dir(v, path, path) < 0) {
        return fail(v, "make room for a mount in", path);
    }
    snprintf(path, sizeof(path), "%s", at);
    if (make_parents(path) < 0 ||
        (S_ISDIR(source.st_mode) ? make_dir(path) : make_file(AT_FDCWD, path)) < 0) {
        return fail(v, "make the mount point", at);
    }
    return 0;
}

static int open_sources(struct view *v)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};

    for (uint32_t k = 0; k < v->launch->nmount; k++) {
        const struct runtime_mount *m = &v->launch->mounts[k];
        const int tree =
            open_tree(AT_FDCWD, m->from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

        v->launch->trees[k] = tree;
        if (tree < 0) {
            return fail(v, "mount", m->from);
        }
        if (m->read_only && mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &read_only,
                                          sizeof(read_only)) < 0) {
            return fail(v, "make read-only", m->from);
        }
    }
    return 0;
}

static int attach(struct view *v)
{
    for (uint32_t k = 0; k < v->launch->nmount; k++) {
        if (make_point(v, k) < 0) {
            return -1;
        }
        if (move_mount(v->launch->trees[k], "", AT_FDCWD, v->launch->mounts[k].at,
                       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) < 0) {
            return fail(v, "mount at", v->launch->mounts[k].at);
        }
        close(v->launch->trees[k]);
    }
    return 0;
}

/* ---- the root ---- */

/* A mount right below /, which cannot be covered while it is the root: it has to be a copy from
 * the start. */
static bool root_lacks_point(const struct process_launch *l)
{
    struct stat st;

    for (uint32_t k = 0; k < l->nmount; k++) {
        const char *at = l->mounts[k].at;
        char top[PATH_MAX];
        snprintf(top, sizeof(top), "%s/%.*s", l->root ? l->root : "", (int)strcspn(at + 1, "/"),
                 at + 1);
        if (lstat(top, &st) < 0) {
            return true;
        }
    }
    return false;
}

/* dir is a mount and becomes the root. The system's directories come along where there is a place
 * for them. */
static int enter_root(struct view *v, const char *dir, bool with_system)
{
    static const char *const system_dirs[] = {"dev", "sys"};
    const int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (fd < 0) {
        return fail(v, "enter the root directory", dir);
    }
    for (size_t k = 0; with_system && k < HK_LEN(system_dirs); k++) {
        char path[8];
        snprintf(path, sizeof(path), "/%s", system_dirs[k]);
        if (fstatat(fd, system_dirs[k], &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
            bind_at(AT_FDCWD, path, fd, system_dirs[k]) < 0) {
            close(fd);
            return fail(v, "mount", path);
        }
    }
    /* The old root ends up below the new one and is let go. */
    if (fchdir(fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0) {
        close(fd);
        return fail(v, "enter the root directory", dir);
    }
    close(fd);
    return 0;
}

static int set_root(struct view *v)
{
    const struct process_launch *l = v->launch;
    const char *root = l->root ? l->root : "/";

    if (root_lacks_point(l)) {
        if (copy_dir(v, root, l->scratch) < 0) {
            return fail(v, "make room for a mount in", root);
        }
        return enter_root(v, l->scratch, l->root != NULL);
    }
    if (l->root) {
        if (mount(root, root, NULL, MS_BIND | MS_REC, NULL) < 0) {
            return fail(v, "use the root directory", root);
        }
        return enter_root(v, root, true);
    }
    return 0;
}

/* ---- a root that is not to be written to ---- */

/* Everything that is there now, but for shared memory and queues, which are no files to those who
 * use them, and a root that is a copy, in which points have yet to be made. */
static int protect_root(struct view *v)
{
    static const char *const writable[] = {"/dev/shm", "/dev/mqueue"};
    struct mount_attr set = {.attr_set = MOUNT_ATTR_RDONLY};
    struct mount_attr clear = {.attr_clr = MOUNT_ATTR_RDONLY};
    struct stat st;

    if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &set, sizeof(set)) < 0 || stat("/", &st) < 0) {
        return fail(v, "make read-only", "/");
    }
    for (size_t k = 0; k < HK_LEN(writable); k++) {
        mount_setattr(AT_FDCWD, writable[k], 0, &clear, sizeof(clear)); /* if it is a mount */
    }
    if (is_copy(v, st.st_dev) && mount_setattr(AT_FDCWD, "/", 0, &clear, sizeof(clear)) < 0) {
        return fail(v, "make room for a mount in", "/");
    }
    return 0;
}

/* Once the mounts are in place. */
static int seal_root(struct view *v)
{
    struct mount_attr set = {.attr_set = MOUNT_ATTR_RDONLY};

    return mount_setattr(AT_FDCWD, "/", 0, &set, sizeof(set)) < 0 ? fail(v, "make read-only", "/")
                                                                  : 0;
}

int process_mount(const struct process_launch *l, char message[PROCESS_MESSAGE])
{
    struct view v = {.launch = l, .message = message};
    struct stat st;

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        return fail(&v, "make private", "/");
    }
    if (open_sources(&v) < 0 || set_root(&v) < 0 || (l->root_read_only && protect_root(&v) < 0)) {
        return -1;
    }
    if (stat("/proc", &st) == 0 &&
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
        return fail(&v, "mount", "/proc");
    }
    if (attach(&v) < 0) {
        return -1;
    }
    return l->root_read_only ? seal_root(&v) : 0;
}
