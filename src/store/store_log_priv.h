// SPDX-License-Identifier: Apache-2.0
// Private to the two files of the log: store_log_open.c opens, checks and reads the file,
// store_log.c writes it.
#pragma once

#include "store/store_db_priv.h"

#include <pthread.h>

/* Items in order; see store_queue_init. */
struct store_queue {
    struct store_log_item *head, **tail;
};

struct store_new_res {
    uint32_t res;
    struct hk_str name;
};

struct store_log {
    char *path;      /* NULL: in memory */
    const char *vfs; /* set in simulations, which use one file and no witness */
    struct store_evidence evidence;
    int64_t now_s;
    bool accept_loss, loss; /* loss: data is missing and was accepted as lost */
    uint64_t all, nall;     /* digest and number of the intact rows read */
    bool old;               /* the tables have the format without witness */
    uint64_t identity;      /* of the file */

    /* Used by the thread once it runs. */
    sqlite3 *db; /* NULL: in memory */
    sqlite3_stmt *begin, *commit, *insert, *insert_res, *del, *mark;
    struct store_marks marks;
    struct store_told told;
    struct store_witness *witness;
    bool unsynced;     /* the witness needs a sync */
    int64_t synced_ns; /* last sync of the witness, monotonic */
    struct store_ballast *ballast;
    int wal_frames;
    bool failed;
    uint32_t saved_res; /* rows of new_res on disk */

    /* Used by the owner. */
    pthread_t thread;
    bool running;
    bool no_thread; /* store_log_take commits what the previous take sent */
    int fd;
    struct store_queue pushed;
    uint32_t npushed;
    _Atomic bool idle;     /* the thread waits for items */
    _Atomic bool is_short; /* the ballast was released */

    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t wake;
    struct store_queue queued, finished;
    HK_VEC(struct store_new_res) new_res;
    struct hk_err err; /* the last failure */
    uint64_t commits;
    bool stop;
};

static inline void store_queue_init(struct store_queue *q)
{
    q->head = NULL;
    q->tail = &q->head;
}
