// SPDX-License-Identifier: Apache-2.0
// The files, what each operation of SQLite does to them, and what is left of them at an end.
#include "world/disk.h"

#include <sqlite3.h>
#include <stdio.h>

enum { DISK_SECTOR = 512 };

static struct disk *disk_mounted;

/* ---- files ---- */

static struct disk_file *disk_find(struct disk *d, const char *name)
{
    for (size_t i = 0; i < DISK_FILES; i++) {
        if (strcmp(d->files[i].name, name) == 0) {
            return &d->files[i];
        }
    }
    return NULL;
}

static struct disk_file *disk_make(struct disk *d, const char *name)
{
    struct disk_file *f = disk_find(d, name);

    if (!f) {
        f = disk_find(d, "");
        hk_assert(f);
        snprintf(f->name, sizeof(f->name), "%s", name);
    }
    return f;
}

static void disk_forget_writes(struct disk_file *f)
{
    for (uint32_t i = 0; i < f->unsynced.len; i++) {
        hk_free(f->unsynced.at[i].data);
    }
    f->unsynced.len = 0;
}

static void disk_file_fini(struct disk_file *f)
{
    disk_forget_writes(f);
    hk_vec_fini(&f->unsynced);
    hk_buf_fini(&f->seen);
    hk_buf_fini(&f->synced);
    *f = (struct disk_file){0};
}

static void disk_set_size(struct hk_buf *b, size_t n)
{
    if (n > b->len) {
        hk_buf_reserve(b, n - b->len);
        memset(b->data + b->len, 0, n - b->len);
    }
    b->len = n;
}

static void disk_put(struct hk_buf *b, size_t off, const char *data, size_t n)
{
    if (n == 0) {
        disk_set_size(b, off);
        return;
    }
    if (off + n > b->len) {
        disk_set_size(b, off + n);
    }
    memcpy(b->data + off, data, n);
}

static void disk_note(struct disk_file *f, size_t off, const char *data, size_t n)
{
    struct disk_write w = {.off = off, .n = n, .data = n > 0 ? hk_alloc(n) : NULL};

    if (n > 0) {
        memcpy(w.data, data, n);
    }
    disk_put(&f->seen, off, data, n);
    hk_vec_push(&f->unsynced, w);
}

static void disk_sync_file(struct disk_file *f)
{
    for (uint32_t i = 0; i < f->unsynced.len; i++) {
        const struct disk_write *w = &f->unsynced.at[i];
        disk_put(&f->synced, w->off, w->data, w->n);
    }
    disk_forget_writes(f);
}

/* ---- ends ---- */

static void disk_copy_file(struct disk_file *to, const char *name, const struct hk_buf *content)
{
    snprintf(to->name, sizeof(to->name), "%s", name);
    hk_buf_addstr(&to->seen, hk_buf_str(content));
    hk_buf_addstr(&to->synced, hk_buf_str(content));
}

/* Each write that was not synced is kept, lost, or cut at a sector, whatever became of the others.
 */
static void disk_tear(struct disk *d, const struct disk_file *f, struct hk_buf *out)
{
    hk_buf_addstr(out, hk_buf_str(&f->synced));
    for (uint32_t i = 0; i < f->unsynced.len; i++) {
        const struct disk_write *w = &f->unsynced.at[i];
        const uint32_t lot = hk_rand_below(&d->rand, 4);
        const uint32_t sectors = (uint32_t)(w->n / DISK_SECTOR);

        if (lot < 2) {
            disk_put(out, w->off, w->data, w->n);
        } else if (lot == 2 && sectors > 1) {
            disk_put(out, w->off, w->data,
                     (size_t)(1 + hk_rand_below(&d->rand, sectors - 1)) * DISK_SECTOR);
        }
    }
}

void disk_finish(struct disk *d, enum disk_end end)
{
    if (d->ended) {
        return;
    }
    d->ended = true;
    d->end = end;
    d->next = hk_zalloc(sizeof(*d->next));
    d->next->rand = d->rand;
    d->next->lies = d->lies;
    d->next->ops = d->ops;
    for (size_t i = 0; i < DISK_FILES; i++) {
        const struct disk_file *f = &d->files[i];
        HK_AUTO(hk_buf_fini) struct hk_buf torn = {0};

        if (f->name[0] == '\0') {
            continue;
        }
        if (end == DISK_POWER_CUT) {
            disk_tear(d, f, &torn);
        }
        disk_copy_file(&d->next->files[i], f->name, end == DISK_POWER_CUT ? &torn : &f->seen);
    }
}

/* Before each operation that changes something. */
static void disk_count(struct disk *d)
{
    d->ops++;
    if (d->end_at > 0 && d->ops >= d->end_at) {
        disk_finish(d, d->end);
    }
}

void disk_init(struct disk *d, uint64_t seed)
{
    *d = (struct disk){0};
    hk_rand_seed(&d->rand, seed);
}

void disk_copy(struct disk *to, const struct disk *from)
{
    for (size_t i = 0; i < DISK_FILES; i++) {
        if (from->files[i].name[0] != '\0') {
            disk_copy_file(&to->files[i], from->files[i].name, &from->files[i].seen);
        }
    }
}

void disk_fini(struct disk *d)
{
    for (size_t i = 0; i < DISK_FILES; i++) {
        disk_file_fini(&d->files[i]);
    }
    if (d->next) {
        disk_fini(d->next);
        hk_free(d->next);
    }
    *d = (struct disk){0};
}

/* ---- SQLite's side: open files ---- */

struct disk_handle {
    sqlite3_file base;
    struct disk *disk;
    struct disk_file *file;
};

static int disk_io_close(sqlite3_file *h)
{
    return SQLITE_OK;
}

static int disk_io_read(sqlite3_file *h, void *to, int n, sqlite3_int64 off)
{
    const struct hk_buf *b = &((struct disk_handle *)h)->file->seen;
    const size_t at = (size_t)off, want = (size_t)n;
    const size_t have = at >= b->len ? 0 : HK_MIN(b->len - at, want);

    if (have > 0) {
        memcpy(to, b->data + at, have);
    }
    if (have == want) {
        return SQLITE_OK;
    }
    memset((char *)to + have, 0, want - have);
    return SQLITE_IOERR_SHORT_READ;
}

static int disk_io_write(sqlite3_file *h, const void *data, int n, sqlite3_int64 off)
{
    const struct disk_handle *dh = (struct disk_handle *)h;
    struct disk *d = dh->disk;

    disk_count(d);
    if (d->fault == DISK_FULL) {
        return SQLITE_FULL;
    }
    if (d->fault == DISK_BAD) {
        const size_t part = (size_t)hk_rand_below(&d->rand, (uint32_t)n);
        if (part > 0) {
            disk_note(dh->file, (size_t)off, data, part);
        }
        return SQLITE_IOERR_WRITE;
    }
    disk_note(dh->file, (size_t)off, data, (size_t)n);
    return SQLITE_OK;
}

static int disk_io_truncate(sqlite3_file *h, sqlite3_int64 size)
{
    const struct disk_handle *dh = (struct disk_handle *)h;

    disk_count(dh->disk);
    if (dh->disk->fault == DISK_BAD) {
        return SQLITE_IOERR_TRUNCATE;
    }
    disk_note(dh->file, (size_t)size, NULL, 0);
    return SQLITE_OK;
}

static int disk_io_sync(sqlite3_file *h, int flags)
{
    const struct disk_handle *dh = (struct disk_handle *)h;
    struct disk *d = dh->disk;

    disk_count(d);
    if (d->fault == DISK_NO_SYNC) {
        return SQLITE_IOERR_FSYNC;
    }
    if (!d->lies || !hk_str_ends(hk_str(dh->file->name), "-wal")) {
        disk_sync_file(dh->file);
    }
    return SQLITE_OK;
}

static int disk_io_size(sqlite3_file *h, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)((struct disk_handle *)h)->file->seen.len;
    return SQLITE_OK;
}

static int disk_io_lock(sqlite3_file *h, int level)
{
    return SQLITE_OK;
}

static int disk_io_reserved(sqlite3_file *h, int *ret)
{
    *ret = 0;
    return SQLITE_OK;
}

static int disk_io_control(sqlite3_file *h, int op, void *arg)
{
    return SQLITE_NOTFOUND;
}

static int disk_io_sector(sqlite3_file *h)
{
    return DISK_SECTOR;
}

static int disk_io_traits(sqlite3_file *h)
{
    return 0;
}

static const sqlite3_io_methods disk_io = {
    .iVersion = 1,
    .xClose = disk_io_close,
    .xRead = disk_io_read,
    .xWrite = disk_io_write,
    .xTruncate = disk_io_truncate,
    .xSync = disk_io_sync,
    .xFileSize = disk_io_size,
    .xLock = disk_io_lock,
    .xUnlock = disk_io_lock,
    .xCheckReservedLock = disk_io_reserved,
    .xFileControl = disk_io_control,
    .xSectorSize = disk_io_sector,
    .xDeviceCharacteristics = disk_io_traits,
};

/* ---- SQLite's side: names ---- */

static int disk_vfs_open(sqlite3_vfs *v, const char *name, sqlite3_file *h, int flags,
                         int *ret_flags)
{
    struct disk_handle *dh = (struct disk_handle *)h;

    *dh = (struct disk_handle){.disk = disk_mounted};
    if (!name || (!(flags & SQLITE_OPEN_CREATE) && !disk_find(disk_mounted, name))) {
        return SQLITE_CANTOPEN;
    }
    dh->file = disk_make(disk_mounted, name);
    dh->base.pMethods = &disk_io;
    if (ret_flags) {
        *ret_flags = flags;
    }
    return SQLITE_OK;
}

static int disk_vfs_delete(sqlite3_vfs *v, const char *name, int sync_dir)
{
    struct disk_file *f = disk_find(disk_mounted, name);

    disk_count(disk_mounted);
    if (!f) {
        return SQLITE_IOERR_DELETE_NOENT;
    }
    disk_file_fini(f);
    return SQLITE_OK;
}

static int disk_vfs_access(sqlite3_vfs *v, const char *name, int flags, int *ret)
{
    const struct disk_file *f = disk_find(disk_mounted, name);

    *ret = f != NULL && (flags != SQLITE_ACCESS_EXISTS || f->seen.len > 0);
    return SQLITE_OK;
}

static int disk_vfs_path(sqlite3_vfs *v, const char *name, int n, char *ret)
{
    snprintf(ret, (size_t)n, "%s", name);
    return SQLITE_OK;
}

static int disk_vfs_randomness(sqlite3_vfs *v, int n, char *ret)
{
    memset(ret, 7, (size_t)n);
    return n;
}

static int disk_vfs_sleep(sqlite3_vfs *v, int us)
{
    return us;
}

static int disk_vfs_time(sqlite3_vfs *v, double *ret)
{
    *ret = 2461000.5; /* a Julian day: nothing of ours asks SQLite for the time */
    return SQLITE_OK;
}

static int disk_vfs_error(sqlite3_vfs *v, int n, char *ret)
{
    return 0;
}

void disk_mount(struct disk *d)
{
    static sqlite3_vfs vfs = {
        .iVersion = 1,
        .szOsFile = sizeof(struct disk_handle),
        .mxPathname = 63,
        .zName = DISK_VFS,
        .xOpen = disk_vfs_open,
        .xDelete = disk_vfs_delete,
        .xAccess = disk_vfs_access,
        .xFullPathname = disk_vfs_path,
        .xRandomness = disk_vfs_randomness,
        .xSleep = disk_vfs_sleep,
        .xCurrentTime = disk_vfs_time,
        .xGetLastError = disk_vfs_error,
    };

    hk_assert(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
    disk_mounted = d;
}
