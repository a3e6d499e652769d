// SPDX-License-Identifier: Apache-2.0
// The witness of a store: a small file next to the database that records the last commit. SQLite
// takes the first bad frame of its WAL for the end, and pages that lost a row look valid, so the
// database alone cannot show that something is missing.
//
// The file has two slots in separate blocks, written alternately: an interrupted write damages one
// slot, and the other describes the commit before. A slot is written after the commit is on disk
// and before it is acknowledged. So it never claims more than the disk has, and after a crash of
// the program it claims all that was acknowledged. It is synced when writes pause, and about every
// two seconds while they do not, but not with each commit: after a power loss it may be that far
// behind.
#include "store/store_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <unistd.h>

#define SUFFIX "-witness"

enum { SLOTS = 2, SLOT_STRIDE = 4096, VERSION = 1 };

static const char magic[8] = "hkwitnes";

/* The format on disk. */
struct slot {
    char magic[8];
    uint64_t version, seq, identity, rev, inserted, ninserted, clean;
    uint64_t sum; /* checksum of all members before it */
};

struct store_witness {
    int fd;
    uint64_t seq;
    struct store_told told;
};

static uint64_t slot_sum(const struct slot *s)
{
    return hk_hash(s, offsetof(struct slot, sum), VERSION);
}

void store_witness_path(const char *db_path, struct hk_buf *out)
{
    hk_buf_addf(out, "%s" SUFFIX, db_path);
}

static bool read_slot(int fd, int k, struct slot *ret)
{
    return pread(fd, ret, sizeof(*ret), (off_t)k * SLOT_STRIDE) == (ssize_t)sizeof(*ret) &&
           memcmp(ret->magic, magic, sizeof(magic)) == 0 && ret->version == VERSION &&
           slot_sum(ret) == ret->sum;
}

/* The newer of the valid slots. */
static bool read_newest(int fd, struct slot *ret)
{
    struct slot s;
    bool found = false;

    for (int k = 0; k < SLOTS; k++) {
        if (read_slot(fd, k, &s) && (!found || s.seq > ret->seq)) {
            *ret = s;
            found = true;
        }
    }
    return found;
}

static void take_slot(struct store_witness *w, const struct slot *s)
{
    w->seq = s->seq;
    w->told = (struct store_told){.found = STORE_TOLD,
                                  .identity = s->identity,
                                  .rev = s->rev,
                                  .inserted = s->inserted,
                                  .ninserted = s->ninserted,
                                  .clean = s->clean != 0};
}

static int store_witness_open_file(const char *path, int flags, struct store_witness *w,
                                   struct hk_err *err)
{
    struct slot s = {0};

    w->fd = open(path, flags | O_CLOEXEC, 0600);
    if (w->fd < 0 && errno == ENOENT) {
        w->told.found = STORE_TOLD_NOTHING;
        return 0;
    }
    if (w->fd < 0) {
        return hk_fail(err, HK_EIO, "cannot open the witness '%s': %m", path);
    }
    w->told.found = STORE_TOLD_DAMAGED;
    if (read_newest(w->fd, &s)) {
        take_slot(w, &s);
    }
    return 0;
}

int store_witness_read(const char *db_path, struct store_told *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct store_witness w = {.fd = -1};

    store_witness_path(db_path, &path);
    const int rc = store_witness_open_file(path.data, O_RDONLY, &w, err);
    if (w.fd >= 0) {
        close(w.fd);
    }
    if (rc == 0) {
        *ret = w.told;
    }
    return rc;
}

/* A new file name survives a power loss only after its directory is synced. */
static int sync_dir(const char *path)
{
    HK_AUTO(hk_freep) char *copy = hk_strdup(path);
    const int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int rc = fd < 0 ? -1 : fsync(fd);

    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

int store_witness_write(struct store_witness *w, const struct store_told *told)
{
    struct slot s = {.version = VERSION,
                     .seq = w->seq + 1,
                     .identity = told->identity,
                     .rev = told->rev,
                     .inserted = told->inserted,
                     .ninserted = told->ninserted,
                     .clean = told->clean};

    memcpy(s.magic, magic, sizeof(magic));
    s.sum = slot_sum(&s);
    if (pwrite(w->fd, &s, sizeof(s), (off_t)(s.seq % SLOTS) * SLOT_STRIDE) != (ssize_t)sizeof(s)) {
        return -HK_EIO;
    }
    take_slot(w, &s);
    return 0;
}

int store_witness_sync(struct store_witness *w)
{
    return fdatasync(w->fd) < 0 ? -HK_EIO : 0;
}

/* Fills both slots, so that later writes need no more disk space. */
static int write_both(struct store_witness *w, const struct store_told *told)
{
    const int rc = store_witness_write(w, told);

    if (rc < 0) {
        return rc;
    }
    return store_witness_write(w, told);
}

int store_witness_open(const char *db_path, const struct store_told *told,
                       struct store_witness **ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct store_witness *w = hk_zalloc(sizeof(*w));
    int rc;

    store_witness_path(db_path, &path);
    rc = store_witness_open_file(path.data, O_RDWR | O_CREAT, w, err);
    if (rc == 0 &&
        (write_both(w, told) < 0 || store_witness_sync(w) < 0 || sync_dir(path.data) < 0)) {
        rc = hk_fail(err, errno == ENOSPC ? HK_EFULL : HK_EIO, "cannot write the witness '%s': %m",
                     path.data);
    }
    if (rc < 0) {
        store_witness_free(w);
        return rc;
    }
    *ret = w;
    return 0;
}

const struct store_told *store_witness_told(const struct store_witness *w)
{
    return &w->told;
}

void store_witness_free(struct store_witness *w)
{
    if (w && w->fd >= 0) {
        close(w->fd);
    }
    hk_free(w);
}
