// SPDX-License-Identifier: Apache-2.0
// Checks SQLite's WAL. SQLite's own reader takes the first bad frame for the end of the WAL. The
// checksum of a frame continues from the one stored in the frame before, so frames after a bad one
// can still be checked, each against its predecessor.
//
// A commit starts only after the previous one has been synced. So complete commits that follow a
// commit after the bad frame prove that acknowledged ones were damaged: a crash cannot cause that.
// https://www.sqlite.org/fileformat2.html#the_write_ahead_log has the format.
#include "store/store_priv.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER = 32,
    FRAME_HEADER = 24,
    MAGIC = 0x377f0682, /* the lowest bit is the byte order of checksums */
    PAGE = 16384,       /* page size of our files */
};

struct sum {
    uint32_t a, b;
};

/* One frame. */
struct frame {
    uint32_t page, commit; /* commit: pages of the file after it; 0: more frames follow */
    uint32_t salt[2];
    struct sum sum;
    const unsigned char *bytes; /* including its header */
};

struct wal {
    int fd;
    bool big_endian;
    uint32_t salt[2];
    struct sum sum; /* of the WAL header */
    bool whole;     /* the WAL header is valid */
    uint32_t len;   /* frames that fit in the file */
    unsigned char header[HEADER], *buf;
};

static uint32_t get32(const unsigned char *p)
{
    uint32_t n;

    memcpy(&n, p, sizeof(n));
    return be32toh(n);
}

static void put32(unsigned char *p, uint32_t n)
{
    n = htobe32(n);
    memcpy(p, &n, sizeof(n));
}

static struct sum checksum(struct sum s, bool big_endian, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint32_t x, y;

        memcpy(&x, p + i, sizeof(x));
        memcpy(&y, p + i + 4, sizeof(y));
        s.a += (big_endian ? be32toh(x) : le32toh(x)) + s.b;
        s.b += (big_endian ? be32toh(y) : le32toh(y)) + s.a;
    }
    return s;
}

static bool same_sum(struct sum a, struct sum b)
{
    return a.a == b.a && a.b == b.b;
}

static bool wal_frame(struct wal *w, uint32_t k, struct frame *ret)
{
    const off_t at = HEADER + (off_t)k * (FRAME_HEADER + PAGE);

    if (k >= w->len || pread(w->fd, w->buf, FRAME_HEADER + PAGE, at) != FRAME_HEADER + PAGE) {
        return false;
    }
    *ret = (struct frame){.page = get32(w->buf),
                          .commit = get32(w->buf + 4),
                          .salt = {get32(w->buf + 8), get32(w->buf + 12)},
                          .sum = {get32(w->buf + 16), get32(w->buf + 20)},
                          .bytes = w->buf};
    return true;
}

static struct sum frame_sum(const struct wal *w, const struct frame *f, struct sum before)
{
    const struct sum s = checksum(before, w->big_endian, f->bytes, 8);

    return checksum(s, w->big_endian, f->bytes + FRAME_HEADER, PAGE);
}

static bool has_salt(const struct wal *w, const struct frame *f)
{
    return f->salt[0] == w->salt[0] && f->salt[1] == w->salt[1];
}

/* Rebuilds a damaged header from the first frame. */
static void read_header(struct wal *w)
{
    const struct sum stored = {get32(w->header + 24), get32(w->header + 28)};
    struct frame f;

    w->big_endian = get32(w->header) & 1;
    w->sum = checksum((struct sum){0, 0}, w->big_endian, w->header, HEADER - 8);
    w->whole = (get32(w->header) & ~1u) == MAGIC && get32(w->header + 8) == PAGE &&
               same_sum(w->sum, stored);
    w->salt[0] = get32(w->header + 16);
    w->salt[1] = get32(w->header + 20);
    if (!w->whole && wal_frame(w, 0, &f)) {
        w->big_endian = false;
        memcpy(w->salt, f.salt, sizeof(w->salt));
        put32(w->header, MAGIC);
        put32(w->header + 4, 3007000);
        put32(w->header + 8, PAGE);
        put32(w->header + 16, w->salt[0]);
        put32(w->header + 20, w->salt[1]);
        w->sum = checksum((struct sum){0, 0}, false, w->header, HEADER - 8);
        put32(w->header + 24, w->sum.a);
        put32(w->header + 28, w->sum.b);
    }
}

static int wal_open(const char *db_path, struct wal *w, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct stat st;

    hk_buf_addf(&path, "%s-wal", db_path);
    w->fd = open(path.data, O_RDONLY | O_CLOEXEC);
    if (w->fd < 0 && errno == ENOENT) {
        return 0;
    }
    if (w->fd < 0 || fstat(w->fd, &st) < 0) {
        return hk_fail(err, HK_EIO, "cannot read '%s': %m", path.data);
    }
    if (pread(w->fd, w->header, HEADER, 0) != HEADER) {
        return 0; /* empty: nothing was committed since the last checkpoint */
    }
    w->buf = hk_alloc(FRAME_HEADER + PAGE);
    w->len = (uint32_t)((st.st_size - HEADER) / (FRAME_HEADER + PAGE));
    read_header(w);
    return 0;
}

static void wal_fini(struct wal *w)
{
    if (w->fd >= 0) {
        close(w->fd);
    }
    hk_free(w->buf);
}

/* Searches after the first bad frame for a commit that follows another one. */
static bool is_cut(struct wal *w, uint32_t bad)
{
    struct frame f;
    struct sum before = {0, 0};
    bool has_before = false, committed = false;

    for (uint32_t k = bad; wal_frame(w, k, &f); k++) {
        const bool whole =
            has_before && has_salt(w, &f) && same_sum(frame_sum(w, &f, before), f.sum);

        if (whole && committed) {
            return true;
        }
        committed = whole && f.commit != 0;
        before = f.sum;
        has_before = true;
    }
    return false;
}

int store_wal_scan(const char *db_path, struct store_wal *ret, struct hk_err *err)
{
    struct wal w = {.fd = -1};
    struct frame f;
    struct sum before;
    uint32_t k = 0;
    const int rc = wal_open(db_path, &w, err);

    if (rc == 0) {
        *ret = (struct store_wal){.len = w.len};
        before = w.sum;
        while (w.whole && wal_frame(&w, k, &f) && has_salt(&w, &f) &&
               same_sum(frame_sum(&w, &f, before), f.sum)) {
            before = f.sum;
            k++;
        }
        ret->good = k;
        ret->cut = w.whole && is_cut(&w, k);
    }
    wal_fini(&w);
    return rc;
}

/* Frames of an earlier cycle of the WAL have another salt. A single frame with a wrong salt is
 * damaged and still belongs. */
static bool belongs(struct wal *w, uint32_t k, struct frame *f)
{
    if (!wal_frame(w, k, f)) {
        return false;
    }
    return has_salt(w, f) || (wal_frame(w, k + 1, f) && has_salt(w, f) && wal_frame(w, k, f));
}

static int store_wal_write_all(int fd, const void *p, size_t n, struct hk_err *err)
{
    return write(fd, p, n) == (ssize_t)n ? 0 : hk_fail(err, HK_EIO, "cannot write a copy: %m");
}

/* Copies one frame, with a checksum that continues from the last frame of the copy. */
static int copy_frame(const struct wal *w, const struct frame *f, int fd, struct sum *last,
                      struct hk_err *err)
{
    unsigned char *at = w->buf;

    put32(at + 8, w->salt[0]);
    put32(at + 12, w->salt[1]);
    *last = frame_sum(w, f, *last);
    put32(at + 16, last->a);
    put32(at + 20, last->b);
    return store_wal_write_all(fd, at, FRAME_HEADER + PAGE, err);
}

static bool is_plausible(const struct frame *f)
{
    return f->page > 0 && f->page < (1u << 26) && f->commit < (1u << 26);
}

int store_wal_write_repaired(const char *db_path, const char *copy_path, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct wal w = {.fd = -1};
    struct frame f;
    int rc = wal_open(db_path, &w, err);

    if (rc < 0 || w.len == 0) {
        wal_fini(&w);
        return rc;
    }
    hk_buf_addf(&path, "%s-wal", copy_path);
    const int fd = open(path.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        rc = hk_fail(err, HK_EIO, "cannot write '%s': %m", path.data);
    } else {
        struct sum last = w.sum;

        rc = store_wal_write_all(fd, w.header, HEADER, err);
        for (uint32_t k = 0; rc == 0 && belongs(&w, k, &f); k++) {
            rc = is_plausible(&f) ? copy_frame(&w, &f, fd, &last, err) : 0;
        }
        close(fd);
    }
    wal_fini(&w);
    return rc;
}
