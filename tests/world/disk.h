// SPDX-License-Identifier: Apache-2.0
// A disk in memory under SQLite with the faults of real ones: writes that were not synced may be
// lost or torn when the power fails, the disk may be full, a write or a sync may fail. Every file
// has two contents: what a process reads, and what is stored durably.
#pragma once

#include "base/clock.h"
#include "base/str.h"
#include "base/vec.h"

#define DISK_VFS "hekla-world"
#define DISK_PATH "store.db"

/* What happens to the files at the end of a process. */
enum disk_end {
    DISK_KILL,      /* of the process: the kernel keeps what was written */
    DISK_POWER_CUT, /* of the machine: what was not synced may be lost, whole or in part */
};

enum disk_fault {
    DISK_WORKS,
    DISK_FULL,    /* no room for a write */
    DISK_BAD,     /* writes fail, after a part has been written */
    DISK_NO_SYNC, /* syncs fail */
};

/* A write that is not synced yet; with n 0 a truncation to off. */
struct disk_write {
    size_t off, n;
    char *data;
};

struct disk_file {
    char name[64]; /* "": free */
    struct hk_buf seen, synced;
    HK_VEC(struct disk_write) unsynced;
};

enum { DISK_FILES = 4 };

struct disk {
    struct disk_file files[DISK_FILES];
    struct hk_rand rand;
    enum disk_fault fault;
    bool lies;       /* a sync of the log does nothing and reports success */
    uint64_t ops;    /* writes and syncs so far */
    uint64_t end_at; /* the operation at which the process ends, 0: none */
    enum disk_end end;
    bool ended;        /* further writes are lost */
    struct disk *next; /* the disk of the next process, after the end */
};

/* One disk at a time is the one that SQLite's VFS sees. */
void disk_mount(struct disk *d);
void disk_init(struct disk *d, uint64_t seed);
/* Copies the files, everything synced. */
void disk_copy(struct disk *to, const struct disk *from);
void disk_fini(struct disk *d);
/* Ends the process now unless it has ended; d->next is the disk that is left. */
void disk_finish(struct disk *d, enum disk_end end);
