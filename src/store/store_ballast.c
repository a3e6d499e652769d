// SPDX-License-Identifier: Apache-2.0
// A reserve of disk space. Deleting objects first needs space before it frees any, and so does a
// start; on a completely full disk neither would work. The file is truncated then, and grows again
// when the disk has enough free space. A quarter of it stays for the next start: other programs may
// have filled the disk again by then.
#include "store/store_priv.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SUFFIX "-ballast"

/* Free space to leave besides the ballast, so that the ballast itself does not fill the disk. */
#define MARGIN_BYTES ((uint64_t)1 << 20)

struct store_ballast {
    int fd; /* -1: none is wanted, or the file cannot be created */
    uint64_t bytes;
    bool held;
};

static uint64_t free_bytes(int fd)
{
    struct statvfs fs;

    return fstatvfs(fd, &fs) < 0 ? 0 : (uint64_t)fs.f_bavail * fs.f_frsize;
}

static uint64_t taken_bytes(int fd)
{
    const off_t n = lseek(fd, 0, SEEK_END);

    return n > 0 ? (uint64_t)n : 0;
}

struct store_ballast *store_ballast_open(const char *db_path, uint64_t bytes)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct store_ballast *b = hk_zalloc(sizeof(*b));

    b->fd = -1;
    b->bytes = bytes;
    hk_buf_addf(&path, "%s" SUFFIX, db_path);
    if (bytes == 0) {
        unlink(path.data); /* left by a server that had a ballast */
        return b;
    }
    b->fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (b->fd < 0) {
        return b;
    }
    if (taken_bytes(b->fd) > bytes && ftruncate(b->fd, (off_t)bytes) < 0) {
        return b; /* a larger ballast works as well */
    }
    if (free_bytes(b->fd) < MARGIN_BYTES) {
        (void)store_ballast_drop(b, true);
    } else {
        (void)store_ballast_take(b, 0);
    }
    return b;
}

bool store_ballast_drop(struct store_ballast *b, bool all)
{
    const uint64_t left = all ? 0 : b->bytes / 4;

    if (b->fd < 0 || taken_bytes(b->fd) <= left) {
        return false;
    }
    b->held = false;
    return ftruncate(b->fd, (off_t)left) == 0;
}

bool store_ballast_take(struct store_ballast *b, uint64_t spare_bytes)
{
    uint64_t has, room, want;

    if (b->held || b->bytes == 0) {
        return true;
    }
    if (b->fd < 0) {
        return false;
    }
    has = taken_bytes(b->fd);
    room = free_bytes(b->fd) + has;
    if (room < MARGIN_BYTES || room + spare_bytes < b->bytes + MARGIN_BYTES) {
        return false;
    }
    want = HK_MIN(b->bytes, room - MARGIN_BYTES);
    b->held = want <= has || posix_fallocate(b->fd, 0, (off_t)want) == 0;
    return b->held;
}

bool store_ballast_held(const struct store_ballast *b)
{
    return b->held || b->bytes == 0;
}

void store_ballast_free(struct store_ballast *b)
{
    if (b && b->fd >= 0) {
        close(b->fd);
    }
    hk_free(b);
}
