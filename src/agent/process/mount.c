// SPDX-License-Identifier: Apache-2.0
// The file system that a container sees: the machine's, or a root directory, with bind mounts over
// it. Runs in the shim, in its own mount namespace, without the heap.
//
// A missing mount point is never created on the machine. Instead, its parent directory is replaced,
// for this container only, by a copy on a private tmpfs whose entries are bind mounts of the
// originals; the mount point is created there. Only inside the container's own mounts are mount
// points created in place, as other container runtimes do.
//
// Directories that containers must not see are covered first, by an empty read-only one. Only
// sources that the agent made for this pod are opened before that. Every other path, of a hostPath
// or of a root, is resolved under the covers, whatever links and mounts are on its way.

#include "agent/process/process_priv.h"

#include "base/file.h"

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
    int scratch;          /* the empty directory; its path may be below a cover */
    int image;            /* the root of an image, not attached yet; -1: none */
    bool few_devices;     /* copy only the devices that every container has */
    dev_t copies[COPIES]; /* devices of our tmpfs copies; those past the limit are copied once
                           * more, which is harmless */
    uint32_t ncopy;
};

struct linux_dirent {
    uint64_t ino;
    int64_t off;
    unsigned short reclen;
    unsigned char type;
    char name[];
};

static int process_mount_fail(struct view *v, const char *what, const char *path)
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

static int process_mount_create_file(int dir, const char *name)
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

/* A device node is cheaper than a mount, and /dev has a hundred; but it needs privileges. */
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
        return errno == ENOENT ? 0 : -1; /* removed since it was listed */
    }
    if (S_ISLNK(st.st_mode)) {
        return copy_link(from, name, to);
    }
    if (copy_device(&st, name, to)) {
        return 0;
    }
    if ((S_ISDIR(st.st_mode) ? mkdirat(to, name, 0755) : process_mount_create_file(to, name)) < 0) {
        return -1;
    }
    return bind_at(from, name, to, name) < 0 && errno != ENOENT ? -1 : 0;
}

/* The machine's consoles and disks are not for containers, and make up three quarters of /dev; a
 * hostPath can provide one. */
static bool is_machines(const struct linux_dirent *e)
{
    const bool tty = strncmp(e->name, "tty", 3) == 0 && e->name[3] >= '0' && e->name[3] <= '9';

    return e->type == DT_BLK || (e->type == DT_CHR && (tty || strncmp(e->name, "vcs", 3) == 0));
}

/* What container runtimes put into /dev, and accelerators. */
static bool is_common_device(const char *name)
{
    static const char *const names[] = {"fd",     "full", "infiniband", "kfd",  "mqueue", "null",
                                        "ptmx",   "pts",  "random",     "shm",  "stderr", "stdin",
                                        "stdout", "tty",  "urandom",    "zero", "dri"};

    for (size_t k = 0; k < HK_LEN(names); k++) {
        if (strcmp(name, names[k]) == 0) {
            return true;
        }
    }
    return strncmp(name, "nvidia", 6) == 0;
}

/* The pod's own shared memory is mounted there. */
static bool has_own_shm(const struct view *v)
{
    for (uint32_t k = 0; k < v->launch->nmount; k++) {
        if (strcmp(v->launch->mounts[k].at, "/dev/shm") == 0) {
            return true;
        }
    }
    return false;
}

static bool is_copied(const struct view *v, const struct linux_dirent *e)
{
    if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0 || is_machines(e)) {
        return false;
    }
    return !v->few_devices ||
           (is_common_device(e->name) && !(strcmp(e->name, "shm") == 0 && has_own_shm(v)));
}

static int copy_entries(const struct view *v, int from, int to)
{
    _Alignas(struct linux_dirent) char buf[4096];

    for (;;) {
        const long n = syscall(SYS_getdents64, from, buf, sizeof(buf));
        if (n <= 0) {
            return (int)n;
        }
        for (long at = 0; at < n;) {
            const struct linux_dirent *e = (const void *)(buf + at);
            if (is_copied(v, e) && copy_entry(from, e->name, to) < 0) {
                return -1;
            }
            at += e->reclen;
        }
    }
}

/* Mounts a tmpfs over the directory. Returns a descriptor of its root, or -1. */
static int mount_tmpfs(int onto)
{
    const int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
    int tree = -1, root = -1;

    if (fs >= 0 && fsconfig(fs, FSCONFIG_SET_STRING, "source", "hekla", 0) == 0 &&
        fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) == 0 &&
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) {
        tree = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID);
    }
    if (tree >= 0 &&
        move_mount(tree, "", onto, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0) {
        root = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (tree >= 0) {
        close(tree);
    }
    if (fs >= 0) {
        close(fs);
    }
    return root;
}

/* Mounts a tmpfs with the entries of dir over the directory onto, which may be dir itself. Returns
 * a descriptor of the copy, or -1. */
static int copy_dir(struct view *v, const char *dir, int onto)
{
    const int from = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    int to = -1, rc = -1;

    if (from < 0 || fstat(from, &st) < 0) {
        goto out;
    }
    to = mount_tmpfs(onto);
    if (to < 0 || fchmod(to, st.st_mode & 07777) < 0) {
        goto out;
    }
    /* A user namespace has only the agent's user. */
    if (fchown(to, st.st_uid, st.st_gid) < 0 && errno != EINVAL && errno != EPERM) {
        goto out;
    }
    if (fstat(to, &st) < 0) {
        goto out;
    }
    if (v->ncopy < COPIES) {
        v->copies[v->ncopy++] = st.st_dev;
    }
    rc = copy_entries(v, from, to);
out:
    if (from >= 0) {
        close(from);
    }
    if (rc < 0 && to >= 0) {
        const int why = errno;
        close(to);
        errno = why;
    }
    return rc < 0 ? -1 : to;
}

/* Replaces the directory by a copy in which mount points can be created. */
static int replace_dir(struct view *v, const char *dir)
{
    const int onto = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int copy = onto < 0 ? -1 : copy_dir(v, dir, onto);

    if (onto >= 0) {
        close(onto);
    }
    if (copy < 0) {
        return -1;
    }
    close(copy);
    return 0;
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

/* Whether dir is inside an earlier mount of this container. */
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

/* Shortens the path to the part that exists. */
static void existing_part(char *path)
{
    struct stat st;

    while (stat(path, &st) < 0) {
        char *slash = strrchr(path, '/');
        slash[slash == path] = '\0';
    }
}

static int process_mount_make_dir(const char *path)
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
        const int rc = process_mount_make_dir(path);
        *p = '/';
        if (rc < 0) {
            return -1;
        }
    }
    return 0;
}

static const char *process_mount_file_kind(const struct stat *st)
{
    return S_ISDIR(st->st_mode) ? "directory" : "file";
}

/* Checks the kinds here because the kernel's error would not explain it. */
static bool is_same_kind(struct view *v, uint32_t k, const struct stat *source,
                         const struct stat *point)
{
    if (S_ISDIR(source->st_mode) == S_ISDIR(point->st_mode)) {
        return true;
    }
    snprintf(v->message, PROCESS_MESSAGE,
             "cannot mount \"%.200s\", a %s, at \"%.200s\", which is a %s",
             v->launch->mounts[k].from, process_mount_file_kind(source), v->launch->mounts[k].at,
             process_mount_file_kind(point));
    errno = EINVAL;
    return false;
}

/* Makes sure that mount k has a mount point. */
static int make_point(struct view *v, uint32_t k)
{
    const char *at = v->launch->mounts[k].at;
    char path[PATH_MAX];
    struct stat source, st;

    if (fstat(v->launch->trees[k], &source) < 0) {
        return process_mount_fail(v, "look at", v->launch->mounts[k].from);
    }
    if (stat(at, &st) == 0) {
        return is_same_kind(v, k, &source, &st) ? 0 : -1;
    }
    snprintf(path, sizeof(path), "%s", at);
    existing_part(path);
    if (stat(path, &st) < 0) {
        return process_mount_fail(v, "look at", path);
    }
    if (!v->launch->changes && !in_own_mount(v, k, path) && !is_copy(v, st.st_dev) &&
        replace_dir(v, path) < 0) {
        return process_mount_fail(v, "make room for a mount in", path);
    }
    snprintf(path, sizeof(path), "%s", at);
    if (make_parents(path) < 0 ||
        (S_ISDIR(source.st_mode) ? process_mount_make_dir(path)
                                 : process_mount_create_file(AT_FDCWD, path)) < 0) {
        return process_mount_fail(v, "make the mount point", at);
    }
    return 0;
}

static int process_mount_open_source(const struct runtime_mount *m)
{
    const unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
    int dir, part, tree;

    if (!m->sub) {
        return open_tree(AT_FDCWD, m->from, flags);
    }
    dir = open(m->from, O_PATH | O_DIRECTORY | O_CLOEXEC);
    part = dir < 0 ? -1 : hk_open_beneath(dir, m->sub, O_PATH);
    tree = part < 0 ? -1 : open_tree(part, "", flags | AT_EMPTY_PATH);
    const int why = errno;
    if (dir >= 0) {
        close(dir);
    }
    if (part >= 0) {
        close(part);
    }
    errno = why;
    return tree;
}

/* Opens the sources that the agent made, or the others. */
static int open_sources(struct view *v, bool own)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};

    for (uint32_t k = 0; k < v->launch->nmount; k++) {
        const struct runtime_mount *m = &v->launch->mounts[k];

        if (m->own != own) {
            continue;
        }
        const int tree = process_mount_open_source(m);
        v->launch->trees[k] = tree;
        if (tree < 0) {
            return process_mount_fail(v, "mount", m->from);
        }
        if (m->read_only && mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &read_only,
                                          sizeof(read_only)) < 0) {
            return process_mount_fail(v, "make read-only", m->from);
        }
    }
    return 0;
}

/* A path that the agent's user cannot reach is out of reach for the container, too. */
static bool is_out_of_reach(int e)
{
    return e == ENOENT || e == ENOTDIR || e == EACCES;
}

/* An empty cover: a directory for a directory, a device that cannot be opened for a file. */
static int open_cover(const struct view *v, const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
        return open_tree(AT_FDCWD, "/dev/null", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    }
    return open_tree(v->scratch, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

static int cover(struct view *v, const char *path)
{
    struct mount_attr closed = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
                                            MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};
    const int tree = open_cover(v, path);

    if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &closed, sizeof(closed)) < 0) {
        return process_mount_fail(v, "cover", path);
    }
    const bool done = move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) == 0 ||
                      is_out_of_reach(errno);
    const int why = errno;
    close(tree);
    errno = why;
    return done ? 0 : process_mount_fail(v, "cover", path);
}

static int cover_all(struct view *v)
{
    for (const char *const *path = v->launch->covers; *path; path++) {
        if (cover(v, *path) < 0) {
            return -1;
        }
    }
    return 0;
}

static int process_mount_attach_all(struct view *v)
{
    for (uint32_t k = 0; k < v->launch->nmount; k++) {
        if (make_point(v, k) < 0) {
            return -1;
        }
        if (move_mount(v->launch->trees[k], "", AT_FDCWD, v->launch->mounts[k].at,
                       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) < 0) {
            return process_mount_fail(v, "mount at", v->launch->mounts[k].at);
        }
        close(v->launch->trees[k]);
    }
    return 0;
}

/* ---- the root ---- */

/* A mount point right below / is missing: the root must be a copy from the start, because it cannot
 * be replaced later. */
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

/* Makes the mounted directory the root, with the system's directories where mount points exist. */
static int enter_root(struct view *v, int fd, const char *dir, bool with_system)
{
    static const char *const system_dirs[] = {"dev", "sys"};
    struct stat st;

    if (fd < 0) {
        return process_mount_fail(v, "enter the root directory", dir);
    }
    for (size_t k = 0; with_system && k < HK_LEN(system_dirs); k++) {
        char path[8];
        snprintf(path, sizeof(path), "/%s", system_dirs[k]);
        if (fstatat(fd, system_dirs[k], &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
            bind_at(AT_FDCWD, path, fd, system_dirs[k]) < 0) {
            close(fd);
            return process_mount_fail(v, "mount", path);
        }
    }
    /* pivot_root stacks the old root under the new one; unmount it. */
    if (fchdir(fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0) {
        close(fd);
        return process_mount_fail(v, "enter the root directory", dir);
    }
    close(fd);
    return 0;
}

/* The devices of a container in an image: the common ones, or all for a privileged one. */
static int copy_devices(struct view *v, int root)
{
    const int dev = openat(root, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int copy;

    v->few_devices = true;
    copy = dev < 0 ? -1 : copy_dir(v, "/dev", dev);
    v->few_devices = false;
    if (dev >= 0) {
        close(dev);
    }
    if (copy < 0) {
        return process_mount_fail(v, "copy", "/dev");
    }
    close(copy);
    return 0;
}

static int set_image_root(struct view *v)
{
    const struct process_launch *l = v->launch;
    const bool privileged = process_image_is_privileged(l);
    int root;

    umask(022); /* for directories that are missing */
    root = process_image_attach(l, v->image, v->scratch, v->message);
    if (root < 0) {
        return -1;
    }
    close(v->image);
    v->image = -1;
    if (privileged ? bind_at(AT_FDCWD, "/dev", root, "dev") < 0 : copy_devices(v, root) < 0) {
        close(root);
        return privileged ? process_mount_fail(v, "mount", "/dev") : -1;
    }
    return enter_root(v, root, l->root, false) < 0 ? -1 : process_image_protect(l, v->message);
}

static int set_root(struct view *v)
{
    const struct process_launch *l = v->launch;
    const char *root = l->root ? l->root : "/";

    if (l->changes) {
        return set_image_root(v);
    }
    if (root_lacks_point(l)) {
        const int copy = copy_dir(v, root, v->scratch);
        if (copy < 0) {
            return process_mount_fail(v, "make room for a mount in", root);
        }
        return enter_root(v, copy, root, l->root != NULL);
    }
    if (l->root) {
        if (mount(root, root, NULL, MS_BIND | MS_REC, NULL) < 0) {
            return process_mount_fail(v, "use the root directory", root);
        }
        return enter_root(v, open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), root, true);
    }
    return 0;
}

/* ---- read-only root ---- */

/* Makes all current mounts read-only, except for shared memory and message queues, which programs
 * do not use as files, and except for a root that is a copy: it still needs mount points. */
static int protect_root(struct view *v)
{
    static const char *const writable[] = {"/dev/shm", "/dev/mqueue"};
    struct mount_attr set = {.attr_set = MOUNT_ATTR_RDONLY};
    struct mount_attr clear = {.attr_clr = MOUNT_ATTR_RDONLY};
    struct stat st;

    if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &set, sizeof(set)) < 0 || stat("/", &st) < 0) {
        return process_mount_fail(v, "make read-only", "/");
    }
    for (size_t k = 0; k < HK_LEN(writable); k++) {
        mount_setattr(AT_FDCWD, writable[k], 0, &clear, sizeof(clear)); /* if it is a mount */
    }
    if (is_copy(v, st.st_dev) && mount_setattr(AT_FDCWD, "/", 0, &clear, sizeof(clear)) < 0) {
        return process_mount_fail(v, "make room for a mount in", "/");
    }
    return 0;
}

/* Call once the mounts are in place. */
static int seal_root(struct view *v)
{
    struct mount_attr set = {.attr_set = MOUNT_ATTR_RDONLY};

    return mount_setattr(AT_FDCWD, "/", 0, &set, sizeof(set)) < 0
               ? process_mount_fail(v, "make read-only", "/")
               : 0;
}

static bool is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Mounts /proc and the message queues of the container's namespaces. */
static int mount_kernel(struct view *v)
{
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

    if (!v->launch->changes && is_dir("/proc") && mount("proc", "/proc", "proc", flags, NULL) < 0) {
        return process_mount_fail(v, "mount", "/proc");
    }
    if (v->launch->own_ipc && is_dir("/dev/mqueue") &&
        mount("mqueue", "/dev/mqueue", "mqueue", flags, NULL) < 0 && errno != ENODEV) {
        return process_mount_fail(v, "mount", "/dev/mqueue");
    }
    return 0;
}

/* In the root of an image all directories can be made: mount points, while it is writable, and the
 * working directory. */
static int make_image_dirs(struct view *v)
{
    const struct process_launch *l = v->launch;
    char cwd[PATH_MAX];

    for (uint32_t k = 0; k < l->nmount; k++) {
        if (!in_own_mount(v, k, l->mounts[k].at) && make_point(v, k) < 0) {
            return -1;
        }
    }
    if (l->cwd && l->cwd[0] == '/' && strlen(l->cwd) < sizeof(cwd)) {
        snprintf(cwd, sizeof(cwd), "%s", l->cwd);
        if (make_parents(cwd) == 0) {
            mkdir(cwd, 0755); /* a later step reports that it is missing */
        }
    }
    return 0;
}

static int open_image(struct view *v)
{
    if (v->launch->changes) {
        v->image = process_image_open(v->launch, v->message);
    }
    return v->launch->changes && v->image < 0 ? -1 : 0;
}

static int make_view(struct view *v)
{
    const bool read_only = v->launch->root_read_only;

    if (open_sources(v, true) < 0 || open_image(v) < 0 || cover_all(v) < 0 ||
        open_sources(v, false) < 0 || set_root(v) < 0 ||
        (v->launch->changes && make_image_dirs(v) < 0) || (read_only && protect_root(v) < 0) ||
        mount_kernel(v) < 0 || process_mount_attach_all(v) < 0) {
        return -1;
    }
    return read_only ? seal_root(v) : 0;
}

int process_mount(const struct process_launch *l, char message[PROCESS_MESSAGE])
{
    struct view v = {.launch = l, .message = message, .image = -1};

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        return process_mount_fail(&v, "make private", "/");
    }
    v.scratch = open(l->scratch, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (v.scratch < 0) {
        return process_mount_fail(&v, "open", l->scratch);
    }
    const int rc = make_view(&v);
    const int why = errno;
    close(v.scratch); /* the records of other pods are next to it */
    errno = why;
    return rc;
}
