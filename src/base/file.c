// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files. Messages name the path, so callers need not.

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_STEP ((size_t)64 << 10)
#define TEMP_TRIES 100

static void hk_file_close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
}

/* The message describes errno. */
static int hk_file_fail_errno(struct hk_err *err, const char *verb, const char *path)
{
    enum hk_code code = HK_EIO;

    if (errno == ENOENT || errno == ENOTDIR) {
        code = HK_ENOTFOUND;
    } else if (errno == EACCES || errno == EPERM || errno == EROFS) {
        code = HK_EDENIED;
    }
    return hk_fail(err, code, "cannot %s '%s': %m", verb, path);
}

/* Reads to the end; b may contain part of the text afterwards, whatever the result. */
static int hk_file_read_all(int fd, const char *path, size_t max, struct hk_buf *b,
                            struct hk_err *err)
{
    size_t total = 0;

    for (;;) {
        hk_buf_reserve(b, READ_STEP);
        const ssize_t n = read(fd, b->data + b->len, b->cap - b->len - 1);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return hk_file_fail_errno(err, "read", path);
        }
        if (n == 0) {
            return 0;
        }
        total += (size_t)n;
        if (total > max) {
            return hk_fail(err, HK_ELIMIT, "'%s' is larger than %zu bytes", path, max);
        }
        b->len += (size_t)n;
        b->data[b->len] = '\0';
    }
}

int hk_read_file(const char *path, size_t max, struct hk_buf *b, struct hk_err *err)
{
    const size_t before = b->len;
    HK_AUTO(hk_file_close_fd) int opened = -1;
    int fd = STDIN_FILENO;

    if (strcmp(path, "-") != 0) {
        fd = opened = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            return hk_file_fail_errno(err, "open", path);
        }
    }
    const int rc = hk_file_read_all(fd, path, max, b, err);
    if (rc < 0) {
        b->len = before;
        b->data[before] = '\0';
    }
    return rc;
}

static int hk_file_write_all(int fd, const char *path, struct hk_str text, struct hk_err *err)
{
    while (text.n > 0) {
        const ssize_t n = write(fd, text.s, text.n);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return hk_file_fail_errno(err, "write", path);
        }
        text.s += n;
        text.n -= (size_t)n;
    }
    return 0;
}

/* A device or a pipe cannot be replaced by renaming; it is written directly. */
static int write_in_place(const char *path, struct hk_str text, struct hk_err *err)
{
    HK_AUTO(hk_file_close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0) {
        return hk_file_fail_errno(err, "open", path);
    }
    return hk_file_write_all(fd, path, text, err);
}

/* Opens a new file in the directory of path. Not mkstemp: its mode 0600 would have to be undone,
 * and the umask can only be read by changing it. */
static int open_temp(const char *path, struct hk_buf *temp)
{
    int fd = -1;

    for (int i = 0; i < TEMP_TRIES && fd < 0; i++) {
        hk_buf_clear(temp);
        hk_buf_addf(temp, "%s.%d.%d.tmp", path, (int)getpid(), i);
        fd = open(temp->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    return fd;
}

/* Text first, name last: after a crash the name refers to the old or the new text. */
static int fill_and_rename(int fd, const char *temp, const char *path, const struct stat *old,
                           struct hk_str text, struct hk_err *err)
{
    if (old && fchmod(fd, old->st_mode & 07777) < 0) {
        return hk_file_fail_errno(err, "set the mode of", path);
    }
    const int rc = hk_file_write_all(fd, path, text, err);
    if (rc < 0) {
        return rc;
    }
    if (fsync(fd) < 0) {
        return hk_file_fail_errno(err, "write", path);
    }
    if (rename(temp, path) < 0) {
        return hk_file_fail_errno(err, "replace", path);
    }
    return 0;
}

int hk_write_file(const char *path, struct hk_str text, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf temp = {0};
    struct stat st;
    const bool exists = stat(path, &st) == 0;

    if (exists && !S_ISREG(st.st_mode)) {
        return write_in_place(path, text, err);
    }
    HK_AUTO(hk_file_close_fd) int fd = open_temp(path, &temp);
    if (fd < 0) {
        return hk_file_fail_errno(err, "create", path);
    }
    const int rc = fill_and_rename(fd, temp.data, path, exists ? &st : NULL, text, err);
    if (rc < 0) {
        unlink(temp.data);
    }
    return rc;
}

int hk_open_beneath(int dir, const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};

    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}
