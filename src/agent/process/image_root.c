// SPDX-License-Identifier: Apache-2.0
// The root file system of a container that runs in an image: an overlay of the image's root and a
// directory for changes, or, where overlays are not permitted, a copy in that directory. Runs in
// the shim, in its own mount namespace, without the heap. The paths of root and changes may be
// below a cover, so the root is opened as a detached mount before the covers are in place.
//
//     changes/upper, work   of an overlay
//     changes/root          a copy
//     changes/links         one name for each copied file that has several, by inode number

#include "agent/process/process_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DEPTH_MAX 200
#define CHUNK ((size_t)1 << 30)
#define CAPABILITY "security.capability"

struct linux_dirent {
    uint64_t ino;
    int64_t off;
    unsigned short reclen;
    unsigned char type;
    char name[];
};

static int image_root_fail(char message[PROCESS_MESSAGE], const char *what, const char *path)
{
    snprintf(message, PROCESS_MESSAGE, "cannot %s \"%.300s\": " PROCESS_WHY, what, path,
             PROCESS_WHY_OF(errno));
    return -1;
}

bool process_image_is_privileged(const struct process_launch *l)
{
    return l->rights.dropped == 0;
}

static void image_root_close(const int *fd)
{
    if (*fd >= 0) {
        const int why = errno;

        close(*fd);
        errno = why;
    }
}

/* ---- an overlay ---- */

/* The root of an overlay has the owner and the mode of the upper directory. */
static int make_upper(int lower, int changes)
{
    struct stat st;

    if (fstat(lower, &st) < 0 || mkdirat(changes, "upper", 0700) < 0 ||
        mkdirat(changes, "work", 0700) < 0) {
        return -1;
    }
    HK_AUTO(image_root_close)
    const int upper = openat(changes, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (upper < 0 || (fchown(upper, st.st_uid, st.st_gid) < 0 && errno != EPERM)) {
        return -1;
    }
    return fchmod(upper, st.st_mode & 07777);
}

static int set_overlay_dir(int fs, const char *key, int dir, const char *below)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d%s", dir, below);
    return fsconfig(fs, FSCONFIG_SET_STRING, key, path, 0);
}

static int open_overlay(const struct process_launch *l, int lower, int changes)
{
    HK_AUTO(image_root_close) const int fs = fsopen("overlay", FSOPEN_CLOEXEC);

    if (fs < 0 || make_upper(lower, changes) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "source", "hekla", 0) < 0 ||
        set_overlay_dir(fs, "lowerdir", lower, "") < 0 ||
        set_overlay_dir(fs, "upperdir", changes, "/upper") < 0 ||
        set_overlay_dir(fs, "workdir", changes, "/work") < 0) {
        return -1;
    }
    if (l->isolation == PROCESS_USER && fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0) {
        return -1;
    }
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
        return -1;
    }
    return fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
}

/* ---- a copy ---- */

static int copy_data(int from, int to)
{
    char buf[16 << 10];
    ssize_t n;

    if (ioctl(to, FICLONE, from) == 0) {
        return 0;
    }
    while ((n = copy_file_range(from, NULL, to, NULL, CHUNK, 0)) > 0) {
    }
    if (n == 0) {
        return 0;
    }
    while ((n = read(from, buf, sizeof(buf))) > 0) {
        if (write(to, buf, (size_t)n) != n) {
            return -1;
        }
    }
    return (int)n;
}

/* The owner first: changing it clears the bits that the mode sets. */
static int copy_attributes(int from, int to, const struct stat *st)
{
    char value[256];
    const ssize_t n = fgetxattr(from, CAPABILITY, value, sizeof(value));

    if (fchown(to, st->st_uid, st->st_gid) < 0 && errno != EPERM && errno != EINVAL) {
        return -1;
    }
    if (n > 0 && fsetxattr(to, CAPABILITY, value, (size_t)n, 0) < 0 && errno != EPERM &&
        errno != ENOTSUP) {
        return -1;
    }
    if (fchmod(to, st->st_mode & 07777) < 0) {
        return -1;
    }
    return futimens(to, (const struct timespec[]){st->st_atim, st->st_mtim});
}

static int copy_regular(int from_dir, const char *name, int to_dir, const struct stat *st)
{
    HK_AUTO(image_root_close)
    const int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    HK_AUTO(image_root_close)
    const int to =
        from < 0 ? -1 : openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return to < 0 || copy_data(from, to) < 0 ? -1 : copy_attributes(from, to, st);
}

/* The names of one file share one copy. In the store each file has a name in its layer, too. */
static int copy_file(int from_dir, const char *name, int to_dir, int links, const struct stat *st)
{
    char key[32];

    if (st->st_nlink <= 2) {
        return copy_regular(from_dir, name, to_dir, st);
    }
    snprintf(key, sizeof(key), "%llu", (unsigned long long)st->st_ino);
    if (linkat(links, key, to_dir, name, 0) == 0) {
        return 0;
    }
    if (copy_regular(from_dir, name, to_dir, st) < 0) {
        return -1;
    }
    unlinkat(links, key, 0); /* it has as many names as it can have */
    return linkat(to_dir, name, links, key, 0);
}

static int copy_symlink(int from_dir, const char *name, int to_dir, const struct stat *st)
{
    char target[PATH_MAX];
    const ssize_t n = readlinkat(from_dir, name, target, sizeof(target) - 1);

    if (n < 0) {
        return -1;
    }
    target[n] = '\0';
    if (symlinkat(target, to_dir, name) < 0) {
        return -1;
    }
    (void)!fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW);
    return 0;
}

static int copy_tree(int from, int to, int links, int depth);

static int copy_below(int from_dir, const char *name, int to_dir, int links, int depth,
                      const struct stat *st)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    HK_AUTO(image_root_close) const int from = openat(from_dir, name, flags);

    if (from < 0 || depth == 0 || mkdirat(to_dir, name, 0700) < 0) {
        return -1;
    }
    HK_AUTO(image_root_close) const int to = openat(to_dir, name, flags);
    return to < 0 || copy_tree(from, to, links, depth - 1) < 0 ? -1 : copy_attributes(from, to, st);
}

static int copy_one(int from, const char *name, int to, int links, int depth)
{
    struct stat st;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return -1;
    }
    switch (st.st_mode & S_IFMT) {
    case S_IFDIR:
        return copy_below(from, name, to, links, depth, &st);
    case S_IFREG:
        return copy_file(from, name, to, links, &st);
    case S_IFLNK:
        return copy_symlink(from, name, to, &st);
    case S_IFIFO:
        return mknodat(to, name, st.st_mode, 0);
    default:
        return 0; /* the store has nothing else */
    }
}

static int copy_tree(int from, int to, int links, int depth)
{
    _Alignas(struct linux_dirent) char buf[2048];

    for (;;) {
        const long n = syscall(SYS_getdents64, from, buf, sizeof(buf));
        if (n <= 0) {
            return (int)n;
        }
        for (long at = 0; at < n;) {
            const struct linux_dirent *e = (const void *)(buf + at);
            if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0 &&
                copy_one(from, e->name, to, links, depth) < 0) {
                return -1;
            }
            at += e->reclen;
        }
    }
}

static int open_copy(int lower, int changes)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    struct mount_attr no_devices = {.attr_set = MOUNT_ATTR_NODEV};
    struct stat st;
    int tree;

    if (mkdirat(changes, "root", 0700) < 0 || mkdirat(changes, "links", 0700) < 0 ||
        fstat(lower, &st) < 0) {
        return -1;
    }
    HK_AUTO(image_root_close) const int from = openat(lower, ".", flags);
    HK_AUTO(image_root_close) const int to = openat(changes, "root", flags);
    HK_AUTO(image_root_close) const int links = openat(changes, "links", flags);
    if (from < 0 || to < 0 || links < 0 || copy_tree(from, to, links, DEPTH_MAX) < 0 ||
        copy_attributes(from, to, &st) < 0) {
        return -1;
    }
    tree = open_tree(changes, "root", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree >= 0 && mount_setattr(tree, "", AT_EMPTY_PATH, &no_devices, sizeof(no_devices)) < 0) {
        image_root_close(&tree);
        return -1;
    }
    return tree;
}

int process_image_open(const struct process_launch *l, char message[PROCESS_MESSAGE])
{
    HK_AUTO(image_root_close) const int lower = open(l->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    HK_AUTO(image_root_close)
    const int changes = open(l->changes, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int tree;

    if (lower < 0 || changes < 0) {
        return image_root_fail(message, "open", lower < 0 ? l->root : l->changes);
    }
    tree = open_overlay(l, lower, changes);
    if (tree < 0) {
        tree = open_copy(lower, changes);
    }
    return tree < 0 ? image_root_fail(message, "copy the image", l->root) : tree;
}

/* ---- the system's file systems ---- */

/* An image may have anything in the place of the directory. */
static int make_system_dir(int root, const char *name)
{
    struct stat st;

    if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISDIR(st.st_mode)) {
            return 0;
        }
        if (unlinkat(root, name, 0) < 0) {
            return -1;
        }
    }
    return mkdirat(root, name, 0755);
}

/* Before the machine's /proc is out of sight: only then may a user namespace mount its own. */
static int attach_proc(int root)
{
    HK_AUTO(image_root_close) const int fs = fsopen("proc", FSOPEN_CLOEXEC);
    const unsigned flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

    if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
        return -1;
    }
    HK_AUTO(image_root_close) const int tree = fsmount(fs, FSMOUNT_CLOEXEC, flags);
    return tree < 0 ? -1 : move_mount(tree, "", root, "proc", MOVE_MOUNT_F_EMPTY_PATH);
}

static int attach_sys(int root, bool read_only)
{
    struct mount_attr set = {.attr_set = MOUNT_ATTR_RDONLY};
    HK_AUTO(image_root_close)
    const int tree =
        open_tree(AT_FDCWD, "/sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

    if (tree < 0 || (read_only && mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &set,
                                                sizeof(set)) < 0)) {
        return -1;
    }
    return move_mount(tree, "", root, "sys", MOVE_MOUNT_F_EMPTY_PATH);
}

int process_image_attach(const struct process_launch *l, int tree, int onto,
                         char message[PROCESS_MESSAGE])
{
    static const char *const dirs[] = {"dev", "proc", "sys", "etc"};
    int root;

    if (move_mount(tree, "", onto, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0) {
        return image_root_fail(message, "mount the image", l->root);
    }
    root = openat(tree, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t k = 0; root >= 0 && k < HK_LEN(dirs); k++) {
        if (make_system_dir(root, dirs[k]) < 0) {
            image_root_fail(message, "make the directory", dirs[k]);
            image_root_close(&root);
            return -1;
        }
    }
    if (root < 0 || attach_proc(root) < 0 ||
        attach_sys(root, !process_image_is_privileged(l)) < 0) {
        image_root_fail(message, "mount", root < 0 ? l->root : "/proc and /sys");
        image_root_close(&root);
        return -1;
    }
    return root;
}

/* ---- restrictions, from inside ---- */

static int protect_path(const char *path)
{
    struct mount_attr set = {.attr_set = MOUNT_ATTR_RDONLY};
    HK_AUTO(image_root_close)
    const int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

    if (tree < 0) {
        return errno == ENOENT ? 0 : -1;
    }
    return mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &set, sizeof(set)) < 0
               ? -1
               : move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
}

static int mask_path(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        return 0;
    }
    if (S_ISDIR(st.st_mode)) {
        return mount("hekla", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                     "size=0k");
    }
    return mount("/dev/null", path, NULL, MS_BIND, NULL);
}

/* The lists are those of containerd and CRI-O. */
int process_image_protect(const struct process_launch *l, char message[PROCESS_MESSAGE])
{
    static const char *const read_only[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                            "/proc/sysrq-trigger"};
    static const char *const masked[] = {
        "/proc/acpi",        "/proc/asound",      "/proc/interrupts",
        "/proc/kcore",       "/proc/keys",        "/proc/latency_stats",
        "/proc/scsi",        "/proc/sched_debug", "/proc/timer_list",
        "/proc/timer_stats", "/sys/firmware",     "/sys/devices/virtual/powercap"};

    if (process_image_is_privileged(l)) {
        return 0;
    }
    for (size_t k = 0; k < HK_LEN(read_only); k++) {
        if (protect_path(read_only[k]) < 0) {
            return image_root_fail(message, "protect", read_only[k]);
        }
    }
    for (size_t k = 0; k < HK_LEN(masked); k++) {
        if (mask_path(masked[k]) < 0) {
            return image_root_fail(message, "hide", masked[k]);
        }
    }
    return 0;
}
