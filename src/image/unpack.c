// SPDX-License-Identifier: Apache-2.0
// Unpacks one archive. Two readers of libarchive work in a row: the first removes the compression
// and its output is hashed, the second finds the entries of the tar archive in it.
//
//     file --hash--> decompress --hash--> tar entries --> checked path --> archive_write_disk
#include "image/unpack.h"

#include "image/tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)128 << 10)

struct unpacking {
    const struct image_unpack *u;
    struct archive *raw, *tar, *disk;
    struct image_hash file, content;
    int64_t content_bytes;
    uint32_t nskipped;
    bool over; /* the budget is used up */
    char to_path[PATH_MAX];
    char buf[READ_BYTES];
};

/* ---- the two readers ---- */

static la_ssize_t unpack_read_file(struct archive *a, void *ctx, const void **ret)
{
    struct unpacking *x = ctx;
    ssize_t n;

    do {
        n = read(x->u->from, x->buf, sizeof(x->buf));
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        archive_set_error(a, errno, "cannot read: %s", strerror(errno));
        return -1;
    }
    image_hash_add(&x->file, x->buf, (size_t)n);
    *ret = x->buf;
    return n;
}

static la_ssize_t unpack_read_content(struct archive *a, void *ctx, const void **ret)
{
    struct unpacking *x = ctx;
    const void *block = NULL;
    size_t n = 0;
    la_int64_t at;
    int rc;

    do {
        rc = archive_read_data_block(x->raw, &block, &n, &at);
    } while (rc == ARCHIVE_OK && n == 0);
    if (rc == ARCHIVE_EOF) {
        return 0;
    }
    if (rc != ARCHIVE_OK) {
        archive_set_error(a, archive_errno(x->raw), "%s", archive_error_string(x->raw));
        return -1;
    }
    x->content_bytes += (int64_t)n;
    if (x->content_bytes > x->u->budget->bytes) {
        x->over = true;
        archive_set_error(a, EFBIG, "too large");
        return -1;
    }
    image_hash_add(&x->content, block, n);
    *ret = block;
    return (la_ssize_t)n;
}

static int fail_over(struct hk_err *err)
{
    return hk_fail(err, HK_ELIMIT, "it unpacks to more than is permitted (--max-size)");
}

static int fail_archive(const struct unpacking *x, struct archive *a, struct hk_err *err)
{
    const char *why = archive_error_string(a);

    if (x->over) {
        return fail_over(err);
    }
    if (archive_errno(a) == ENOSPC || archive_errno(a) == EDQUOT) {
        return hk_fail(err, HK_EFULL, "%s", why ? why : "no space left");
    }
    return hk_fail(err, HK_EINVAL, "%s", why ? why : "not a tar archive");
}

static int open_readers(struct unpacking *x, struct hk_err *err)
{
    struct archive_entry *entry;

    x->raw = archive_read_new();
    x->tar = archive_read_new();
    archive_read_support_filter_gzip(x->raw);
    archive_read_support_filter_zstd(x->raw);
    archive_read_support_format_raw(x->raw);
    archive_read_support_format_tar(x->tar);
    if (archive_read_open(x->raw, x, NULL, unpack_read_file, NULL) != ARCHIVE_OK ||
        archive_read_next_header(x->raw, &entry) != ARCHIVE_OK) {
        return fail_archive(x, x->raw, err);
    }
    if (archive_read_open(x->tar, x, NULL, unpack_read_content, NULL) != ARCHIVE_OK) {
        return fail_archive(x, x->tar, err);
    }
    return 0;
}

/* Reads what follows the end of the archive: the digests are those of the whole file. */
static int read_to_end(struct unpacking *x, struct hk_err *err)
{
    const void *rest;
    la_ssize_t n;

    do {
        n = unpack_read_content(x->tar, x, &rest);
    } while (n > 0);
    while (n == 0 && (n = unpack_read_file(x->tar, x, &rest)) > 0) {
        n = 0;
    }
    return n < 0 ? fail_archive(x, x->tar, err) : 0;
}

/* ---- paths ---- */

static const char *split_base(char *path)
{
    char *slash = strrchr(path, '/');

    if (!slash) {
        return path;
    }
    *slash = '\0';
    return slash + 1;
}

static int mark_implicit(int dir, struct hk_err *err)
{
    const int fd = openat(dir, IMAGE_IMPLICIT, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        return hk_fail(err, HK_EIO, "cannot make a file: %m");
    }
    close(fd);
    return 0;
}

static int make_implicit(const struct unpacking *x, int parent, const char *name,
                         struct hk_err *err)
{
    if (mkdirat(parent, name, 0755) < 0) {
        return hk_fail(err, errno == ENOSPC ? HK_EFULL : HK_EIO, "cannot make a directory: %m");
    }
    if (!x->u->layer) {
        return 0;
    }
    HK_AUTO(image_close) int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return mark_implicit(dir, err);
}

/* Opens the directory, through links inside the tree; makes it and its parents if they are missing.
 * Returns a descriptor or a negative code. */
static int open_parent(const struct unpacking *x, const char *path, struct hk_err *err)
{
    char part[PATH_MAX];
    int dir = openat(x->u->to, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), next, rc = 0;

    for (const char *at = path; *at && rc == 0; at += *at == '/') {
        const char *name = at;

        at += strcspn(at, "/");
        snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
        next = image_tree_open(x->u->to, part, O_PATH | O_DIRECTORY);
        if (next < 0 && errno == ENOENT) {
            snprintf(part, sizeof(part), "%.*s", (int)(at - name), name);
            rc = make_implicit(x, dir, part, err);
            next = rc < 0 ? -1 : openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        if (next < 0) {
            rc = rc < 0 ? rc
                        : hk_fail(err, HK_EINVAL,
                                  "\"%.200s\" is below something that is not a "
                                  "directory",
                                  path);
            break;
        }
        close(dir);
        dir = next;
    }
    if (rc < 0) {
        close(dir);
    }
    return rc < 0 ? rc : dir;
}

/* The path of the open directory, relative to the top: without links. */
static int find_path(const struct unpacking *x, int dir, const char *base, char *ret, size_t room,
                     struct hk_err *err)
{
    const size_t top = strlen(x->to_path);
    char link[64], real[PATH_MAX];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    n = readlink(link, real, sizeof(real) - 1);
    real[HK_MAX(n, 0)] = '\0';
    if (n <= 0 || strncmp(real, x->to_path, top) != 0 || (real[top] && real[top] != '/')) {
        return hk_fail(err, HK_EIO, "cannot find the path of a directory");
    }
    const char *below = real[top] ? real + top + 1 : "";
    if ((size_t)snprintf(ret, room, "%s%s%s", below, *below ? "/" : "", base) >= room) {
        return hk_fail(err, HK_ELIMIT, "the path of \"%.100s\" is too long", base);
    }
    return 0;
}

/* ---- entries ---- */

static bool is_name_reserved(const char *base)
{
    return strncmp(base, IMAGE_WHITEOUT, sizeof(IMAGE_WHITEOUT) - 1) == 0;
}

static int unpack_whiteout(int parent, const char *base, struct hk_err *err)
{
    const char *name = base + sizeof(IMAGE_WHITEOUT) - 1;
    int fd;

    if (strcmp(base, IMAGE_OPAQUE) != 0 && is_name_reserved(name)) {
        return 0; /* notes of AUFS */
    }
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return hk_fail(err, HK_EINVAL, "the whiteout \"%s\" names nothing", base);
    }
    fd = openat(parent, base, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return hk_fail(err, HK_EIO, "cannot make the whiteout \"%s\": %m", base);
    }
    close(fd);
    return 0;
}

static int unpack_link(const struct unpacking *x, int parent, const char *base, const char *to,
                       struct hk_err *err)
{
    char path[PATH_MAX], copy[PATH_MAX];
    const char *name;
    int rc = image_tree_clean(to, path, sizeof(path), err);

    if (rc < 0) {
        return rc;
    }
    memcpy(copy, path, strlen(path) + 1);
    name = split_base(copy);
    HK_AUTO(image_close)
    int dir = image_tree_open(x->u->to, name == copy ? "." : copy, O_PATH | O_DIRECTORY);
    if (dir < 0 || path[0] == '\0' || is_name_reserved(name)) {
        return hk_fail(err, HK_EINVAL,
                       "the hard link \"%s\" leads to \"%.200s\", which is not in "
                       "the archive",
                       base, to);
    }
    if (linkat(dir, name, parent, base, 0) == 0) {
        return 0;
    }
    if (errno == EEXIST && image_tree_remove(parent, base) == 0 &&
        linkat(dir, name, parent, base, 0) == 0) {
        return 0;
    }
    return hk_fail(err, HK_EINVAL, "cannot make the hard link \"%s\" to \"%.200s\": %m", base, to);
}

/* Keeps file capabilities and the attributes of users. */
static void drop_attributes(struct archive_entry *entry)
{
    const bool root = geteuid() == 0;
    struct archive_entry *copy = archive_entry_clone(entry);
    const char *name;
    const void *value;
    size_t n;

    archive_entry_xattr_clear(entry);
    archive_entry_acl_clear(entry);
    archive_entry_set_fflags(entry, 0, 0);
    archive_entry_xattr_reset(copy);
    while (archive_entry_xattr_next(copy, &name, &value, &n) == ARCHIVE_OK) {
        if ((strncmp(name, "user.", 5) == 0 && strncmp(name, "user.overlay.", 13) != 0) ||
            (root && strcmp(name, "security.capability") == 0)) {
            archive_entry_xattr_add_entry(entry, name, value, n);
        }
    }
    archive_entry_free(copy);
}

static bool is_wanted_type(const struct unpacking *x, mode_t type)
{
    return type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK ||
           (x->u->layer && type == AE_IFIFO);
}

static int charge(struct unpacking *x, struct archive_entry *entry, struct hk_err *err)
{
    struct image_budget *left = x->u->budget;
    const int64_t size = archive_entry_size(entry);

    left->entries--;
    if (left->entries < 0) {
        return hk_fail(err, HK_ELIMIT, "it has too many files");
    }
    /* A sparse file costs its full size when it is copied. */
    if (size < 0 || size > left->bytes) {
        return fail_over(err);
    }
    left->bytes -= size;
    return 0;
}

static int write_entry(struct unpacking *x, struct archive_entry *entry, int parent,
                       const char *base, struct hk_err *err)
{
    char path[PATH_MAX];
    int rc = find_path(x, parent, base, path, sizeof(path), err);

    if (rc < 0) {
        return rc;
    }
    drop_attributes(entry);
    archive_entry_set_pathname(entry, path[0] ? path : ".");
    if (archive_entry_filetype(entry) == AE_IFDIR) {
        char marker[PATH_MAX + sizeof(IMAGE_IMPLICIT)];

        if (geteuid() != 0) { /* root can read every directory */
            archive_entry_set_perm(entry, archive_entry_perm(entry) | 0700);
        }
        snprintf(marker, sizeof(marker), "%s/%s", base[0] ? base : ".", IMAGE_IMPLICIT);
        unlinkat(parent, marker, 0);
    }
    if (archive_read_extract2(x->tar, entry, x->disk) < ARCHIVE_WARN) {
        return fail_archive(x, x->tar, err);
    }
    return 0;
}

static int unpack_entry(struct unpacking *x, struct archive_entry *entry, struct hk_err *err)
{
    const char *given = archive_entry_pathname(entry), *hard = archive_entry_hardlink(entry);
    const mode_t type = archive_entry_filetype(entry);
    char path[PATH_MAX];
    const char *base;
    int rc;

    if (!given) {
        return hk_fail(err, HK_EINVAL, "an entry has no name that can be read");
    }
    rc = image_tree_clean(given, path, sizeof(path), err);
    if (rc < 0) {
        return rc;
    }
    rc = charge(x, entry, err);
    if (rc < 0) {
        return rc;
    }
    base = split_base(path);
    HK_AUTO(image_close) int parent = open_parent(x, base == path ? "" : path, err);
    if (parent < 0) {
        return parent;
    }
    if (is_name_reserved(base)) {
        return x->u->layer ? unpack_whiteout(parent, base, err) : 0;
    }
    if (hard) {
        return unpack_link(x, parent, base, hard, err);
    }
    if (!is_wanted_type(x, type)) {
        x->nskipped++;
        return 0;
    }
    return write_entry(x, entry, parent, base, err);
}

static int unpack_entries(struct unpacking *x, struct hk_err *err)
{
    struct archive_entry *entry;
    int rc = 0;

    while (rc == 0) {
        const int read = archive_read_next_header(x->tar, &entry);

        if (read == ARCHIVE_EOF) {
            break;
        }
        if (read < ARCHIVE_WARN) {
            return fail_archive(x, x->tar, err);
        }
        rc = unpack_entry(x, entry, err);
    }
    return rc;
}

static void open_disk(struct unpacking *x)
{
    int flags = ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT |
                ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS | ARCHIVE_EXTRACT_UNLINK;

    if (x->u->layer) {
        flags |= ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_XATTR;
        flags |= geteuid() == 0 ? ARCHIVE_EXTRACT_OWNER : 0;
    }
    x->disk = archive_write_disk_new();
    archive_write_disk_set_options(x->disk, flags);
}

static int unpack_all(struct unpacking *x, struct hk_err *err)
{
    int rc = open_readers(x, err);

    if (rc < 0) {
        return rc;
    }
    rc = x->u->layer ? mark_implicit(x->u->to, err) : 0;
    if (rc < 0) {
        return rc;
    }
    open_disk(x);
    rc = unpack_entries(x, err);
    if (rc < 0) {
        return rc;
    }
    rc = read_to_end(x, err);
    if (rc < 0) {
        return rc;
    }
    return archive_write_close(x->disk) < ARCHIVE_WARN ? fail_archive(x, x->disk, err) : 0;
}

static int unpack_in_place(struct unpacking *x, struct image_unpacked *ret, struct hk_err *err)
{
    int rc = unpack_all(x, err);

    /* In this order: the second reader reads from the first. */
    archive_write_free(x->disk);
    archive_read_free(x->tar);
    archive_read_free(x->raw);
    ret->file = image_hash_end(&x->file);
    ret->content = image_hash_end(&x->content);
    ret->content_bytes = x->content_bytes;
    ret->nskipped = x->nskipped;
    return rc;
}

int image_unpack(const struct image_unpack *u, struct image_unpacked *ret, struct hk_err *err)
{
    HK_AUTO(hk_freep) struct unpacking *x = hk_zalloc(sizeof(*x));
    HK_AUTO(image_close) int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    /* Without it libarchive refuses names that are not ASCII. */
    locale_t names = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL), old;
    int rc;

    x->u = u;
    if (before < 0 || fchdir(u->to) < 0 || !getcwd(x->to_path, sizeof(x->to_path))) {
        rc = hk_fail(err, HK_EIO, "cannot enter a directory: %m");
    } else {
        old = names ? uselocale(names) : NULL;
        rc = unpack_in_place(x, ret, err);
        if (old) {
            uselocale(old);
        }
        if (fchdir(before) < 0 && rc == 0) {
            rc = hk_fail(err, HK_EIO, "cannot return to the working directory: %m");
        }
    }
    if (names) {
        freelocale(names);
    }
    return rc;
}
