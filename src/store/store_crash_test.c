// SPDX-License-Identifier: Apache-2.0
// The store's guarantees under faults: processes killed during writes, truncated files, disks that
// refuse writes and syncs. A layer under SQLite injects the disk failures.
#include "base/clock.h"
#include "store/store_priv.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KEYS = 64,
    IN_FLIGHT = 32,
    RING_EVENTS = 128, /* more than can be in flight, so that the last losses are visible */
    PATH_ROOM = 64,
};

#define D HK_STR("default")
#define NOWHERE HK_STR("")

/* ---- a disk that fails on demand ---- */

enum fault { FAULT_NONE, FAULT_SYNC, FAULT_WRITE };

static _Atomic int fault;
static _Atomic int fault_after; /* this many writes and syncs still work */

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *real;
};

static sqlite3_file *real_of(sqlite3_file *f)
{
    return ((struct faulty_file *)f)->real;
}

static bool fault_strikes(enum fault kind)
{
    return atomic_load(&fault) != FAULT_NONE && atomic_fetch_sub(&fault_after, 1) <= 0 &&
           atomic_load(&fault) == (int)kind;
}

static int faulty_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int faulty_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), p, n, at);
}

/* A full disk accepts part of the bytes first. */
static int faulty_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    if (fault_strikes(FAULT_WRITE)) {
        (void)real_of(f)->pMethods->xWrite(real_of(f), p, n / 2, at);
        return SQLITE_FULL;
    }
    return real_of(f)->pMethods->xWrite(real_of(f), p, n, at);
}

static int faulty_truncate(sqlite3_file *f, sqlite3_int64 n)
{
    return real_of(f)->pMethods->xTruncate(real_of(f), n);
}

static int faulty_sync(sqlite3_file *f, int flags)
{
    return fault_strikes(FAULT_SYNC) ? SQLITE_IOERR_FSYNC
                                     : real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int faulty_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}

static int faulty_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int faulty_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int faulty_check_lock(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int faulty_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int faulty_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int faulty_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static const sqlite3_io_methods faulty_methods = {
    .iVersion = 1,
    .xClose = faulty_close,
    .xRead = faulty_read,
    .xWrite = faulty_write,
    .xTruncate = faulty_truncate,
    .xSync = faulty_sync,
    .xFileSize = faulty_size,
    .xLock = faulty_lock,
    .xUnlock = faulty_unlock,
    .xCheckReservedLock = faulty_check_lock,
    .xFileControl = faulty_control,
    .xSectorSize = faulty_sector,
    .xDeviceCharacteristics = faulty_traits,
};

static sqlite3_vfs *real_vfs;

static int faulty_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
                       int *ret_flags)
{
    struct faulty_file *file = (struct faulty_file *)f;
    int rc;

    file->real = (sqlite3_file *)(file + 1);
    rc = real_vfs->xOpen(real_vfs, name, file->real, flags, ret_flags);
    file->base.pMethods = rc == SQLITE_OK ? &faulty_methods : NULL;
    return rc;
}

static int install_faulty_disk(void **state)
{
    static sqlite3_vfs faulty;

    real_vfs = sqlite3_vfs_find(NULL);
    faulty = *real_vfs;
    faulty.zName = "faulty";
    faulty.szOsFile += (int)sizeof(struct faulty_file);
    faulty.xOpen = faulty_open;
    return sqlite3_vfs_register(&faulty, 1) == SQLITE_OK ? 0 : -1;
}

static void set_fault(enum fault kind, int after)
{
    atomic_store(&fault_after, after);
    atomic_store(&fault, (int)kind);
}

/* ---- fixture: a store and its acknowledged writes ---- */

struct ack {
    uint64_t rv;
    uint32_t key;
    bool deleted;
};

struct fixture {
    char dir[PATH_ROOM / 2];
    char path[PATH_ROOM], wal[PATH_ROOM];
    struct store *s;
    uint32_t pods;
    struct hk_rand rand;
    uint32_t in_flight, nfailed;
    int pipe; /* reports acknowledged writes, or -1 */
    struct ack acks[KEYS];
    uint64_t max_acked;
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    memcpy(f->dir, "/tmp/hekla-store-XXXXXX", sizeof("/tmp/hekla-store-XXXXXX"));
    if (!mkdtemp(f->dir)) {
        return -1;
    }
    snprintf(f->path, sizeof(f->path), "%s/db", f->dir);
    snprintf(f->wal, sizeof(f->wal), "%s/db-wal", f->dir);
    hk_rand_seed(&f->rand, 42);
    f->pipe = -1;
    *state = f;
    return 0;
}

static void unlink_witness(const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf witness = {0};

    store_witness_path(path, &witness);
    unlink(witness.data);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    set_fault(FAULT_NONE, 0);
    store_close(f->s);
    unlink(f->path);
    unlink(f->wal);
    unlink_witness(f->path);
    rmdir(f->dir);
    hk_free(f);
    return 0;
}

static void open_at(struct fixture *f, const char *path)
{
    struct hk_err err = {0};
    const struct store_opts o = {.path = path, .ring_events = RING_EVENTS};

    if (store_open(&o, &f->s, &err) < 0) {
        fail_msg("cannot open: %s", err.text);
    }
    f->pods = store_res(f->s, HK_STR(""), HK_STR("pods"));
}

static void close_store(struct fixture *f)
{
    store_close(f->s);
    f->s = NULL;
}

/* ---- writing ---- */

static void note_ack(struct fixture *f, const struct ack *a)
{
    assert_true(a->rv > f->max_acked);
    assert_in_range(a->key, 0, KEYS - 1);
    f->max_acked = a->rv;
    f->acks[a->key] = *a;
}

static void on_done(void *ctx, int rc, const struct store_obj *obj, const struct hk_err *err)
{
    struct fixture *f = ctx;
    struct ack a = {0};
    int64_t key;

    f->in_flight--;
    if (rc < 0) {
        assert_int_equal(rc, -HK_EIO);
        assert_true(err->code != 0);
        f->nfailed++;
        return;
    }
    assert_true(hk_str_int((struct hk_str){obj->name.s + 1, obj->name.n - 1}, &key));
    a.rv = obj->rv;
    a.key = (uint32_t)key;
    a.deleted = store_get(f->s, f->pods, D, obj->name) == NULL;
    if (f->pipe < 0) {
        note_ack(f, &a);
    } else if (write(f->pipe, &a, sizeof(a)) != sizeof(a)) {
        _exit(1);
    }
}

static int submit(struct fixture *f, enum store_verb verb, const char *name, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json root = json_make_object();
    const size_t n = hk_rand_below(&f->rand, 9000);
    char *pad = hk_arena_alloc(&mem, n + 1);
    const struct store_write w = {
        .verb = verb,
        .res = f->pods,
        .ns = D,
        .name = hk_str(name),
        .root = verb == STORE_DELETE ? NULL : &root,
        .mem = &mem,
    };
    int rc;

    memset(pad, 'x', n);
    json_set_str(&root, &mem, "pad", (struct hk_str){pad, n});
    rc = store_submit(f->s, &w, on_done, f, err);
    f->in_flight += rc == 0;
    return rc;
}

/* Any write of any key that the current state allows. */
static int submit_random(struct fixture *f, struct hk_err *err)
{
    char name[16];
    bool staged;
    enum store_verb verb = STORE_CREATE;

    snprintf(name, sizeof(name), "p%u", hk_rand_below(&f->rand, KEYS));
    if (store_head(f->s, f->pods, D, hk_str(name), &staged)) {
        verb = hk_rand_below(&f->rand, 4) == 0 ? STORE_DELETE : STORE_UPDATE;
    }
    return submit(f, verb, name, err);
}

static void wait_and_poll(struct fixture *f)
{
    struct pollfd p = {.fd = store_fd(f->s), .events = POLLIN};

    (void)poll(&p, 1, -1);
    store_poll(f->s);
}

/* Bursts of random size, without end. */
__attribute__((noreturn)) static void write_until_killed(struct fixture *f)
{
    for (;;) {
        const uint32_t burst = 1 + hk_rand_below(&f->rand, IN_FLIGHT);
        while (f->in_flight < burst) {
            if (submit_random(f, NULL) < 0) {
                _exit(2);
            }
        }
        store_compact(f->s);
        wait_and_poll(f);
    }
}

/* A child process that writes; its acknowledgements arrive on *ret_fd. */
static pid_t start_writer(struct fixture *f, int *ret_fd)
{
    int fds[2];
    pid_t pid;

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct store_opts o = {.path = f->path, .ring_events = RING_EVENTS};
        f->pipe = fds[1];
        if (store_open(&o, &f->s, NULL) < 0) {
            _exit(3);
        }
        f->pods = store_res(f->s, HK_STR(""), HK_STR("pods"));
        write_until_killed(f);
    }
    close(fds[1]);
    *ret_fd = fds[0];
    return pid;
}

static bool read_ack(struct fixture *f, int fd)
{
    struct ack a;
    const ssize_t n = read(fd, &a, sizeof(a));

    if (n <= 0) {
        return false;
    }
    assert_int_equal(n, sizeof(a));
    note_ack(f, &a);
    return true;
}

static void kill_writer(struct fixture *f, pid_t pid, int fd)
{
    int status;

    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        fail_msg("the writer ended with status %x, want SIGKILL", (unsigned)status);
    }
    while (read_ack(f, fd)) {
    }
    close(fd);
}

/* ---- checking ---- */

/* Revisions are consecutive, across all crashes. */
static void check_history(struct fixture *f)
{
    uint64_t rv = store_oldest_rv(f->s), last = rv;
    struct store_event e;

    while (store_next(f->s, f->pods, NOWHERE, &rv, &e) == STORE_NEXT_EVENT) {
        char want[48];
        snprintf(want, sizeof(want), "\"resourceVersion\":\"%" PRIu64 "\"", e.rv);
        assert_int_equal(e.rv, last + 1);
        assert_non_null(strstr(e.obj->text.s, want));
        last = e.rv;
    }
    assert_int_equal(last, store_rv(f->s));
}

static bool was_deleted_after(struct fixture *f, struct hk_str name, uint64_t rv)
{
    struct store_event e;

    while (store_next(f->s, f->pods, NOWHERE, &rv, &e) == STORE_NEXT_EVENT) {
        if (e.type == STORE_DELETED && hk_str_eq(e.obj->name, name)) {
            return true;
        }
    }
    return false;
}

/* Acknowledged writes are there, or newer ones that were in flight. From now on the found state
 * counts as acknowledged: readers saw it. */
static void check_acks(struct fixture *f)
{
    assert_true(store_rv(f->s) >= f->max_acked);
    for (uint32_t k = 0; k < KEYS; k++) {
        const uint64_t shown = f->max_acked;
        char name[16];
        const struct store_obj *o;
        struct ack *a = &f->acks[k];

        snprintf(name, sizeof(name), "p%u", k);
        o = store_get(f->s, f->pods, D, hk_str(name));
        if (o && o->rv < a->rv) {
            fail_msg("%s: revision %" PRIu64 ", want %" PRIu64, name, o->rv, a->rv);
        }
        if (o && o->rv == a->rv) {
            assert_false(a->deleted);
        }
        if (!o && a->rv != 0 && !a->deleted && !was_deleted_after(f, hk_str(name), shown)) {
            fail_msg("%s: gone, want revision %" PRIu64, name, a->rv);
        }
        *a = o ? (struct ack){o->rv, k, false} : (struct ack){store_rv(f->s), k, true};
    }
    f->max_acked = store_rv(f->s);
}

/* ---- tests ---- */

static void acknowledged_writes_survive_kills(void **state)
{
    struct fixture *f = *state;
    enum { ROUNDS = 24 };

    for (int i = 0; i < ROUNDS; i++) {
        /* Sometimes before the first answer, sometimes before the file is open. */
        const uint32_t want = hk_rand_below(&f->rand, 150);
        uint32_t n = 0;
        int fd;
        const pid_t pid = start_writer(f, &fd);

        while (n < want && read_ack(f, fd)) {
            n++;
        }
        kill_writer(f, pid, fd);
        open_at(f, f->path);
        check_history(f);
        check_acks(f);
        close_store(f);
        (void)hk_rand_u64(&f->rand); /* each writer gets another sequence */
    }
    assert_true(f->max_acked > ROUNDS);
}

static void a_store_is_busy_until_its_process_dies(void **state)
{
    struct fixture *f = *state;
    const struct store_opts o = {.path = f->path};
    struct hk_err err = {0};
    int fd;
    const pid_t pid = start_writer(f, &fd);

    assert_true(read_ack(f, fd));
    assert_int_equal(store_open(&o, &f->s, &err), -HK_EBUSY);
    assert_non_null(strstr(err.text, "in use by another process"));
    kill_writer(f, pid, fd);
    open_at(f, f->path);
    check_acks(f);
}

static void read_whole(const char *path, struct hk_buf *b)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    hk_buf_reserve(b, (size_t)st.st_size);
    assert_int_equal(read(fd, b->data, (size_t)st.st_size), st.st_size);
    b->len = (size_t)st.st_size;
    close(fd);
}

static void write_whole(const char *path, const void *p, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), (ssize_t)n);
    close(fd);
}

/* The witness as synced when the store was opened: later versions were not synced. */
static void write_first_witness(const char *path)
{
    struct store_witness *w;
    struct store_told told;

    assert_int_equal(store_witness_read(path, &told, NULL), 0);
    assert_int_equal(told.found, STORE_TOLD);
    told = (struct store_told){.identity = told.identity};
    assert_int_equal(store_witness_open(path, &told, &w, NULL), 0);
    store_witness_free(w);
}

/* A crash of the machine may leave any part of the WAL. */
static void torn_tails_are_cut_at_a_commit(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf db = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf wal = {0};
    enum { CUTS = 20 };
    uint64_t before = 0;
    int fd;
    const pid_t pid = start_writer(f, &fd);

    for (int i = 0; i < 60; i++) {
        assert_true(read_ack(f, fd));
    }
    kill_writer(f, pid, fd);
    read_whole(f->path, &db);
    read_whole(f->wal, &wal);
    for (size_t i = 0; i <= CUTS; i++) {
        const size_t n = wal.len / CUTS * i + (i == CUTS ? wal.len % CUTS : 0);
        write_whole(f->path, db.data, db.len);
        write_whole(f->wal, wal.data, n);
        write_first_witness(f->path);
        open_at(f, f->path);
        check_history(f);
        assert_true(store_rv(f->s) >= before);
        before = store_rv(f->s);
        close_store(f);
    }
    assert_true(before >= f->max_acked);
}

/* Continues until a write is accepted again. */
static void await_recovery(struct fixture *f)
{
    struct hk_err err = {0};
    int rc;

    for (int i = 0; i < 100; i++) {
        rc = submit_random(f, &err);
        if (rc == 0) {
            store_flush(f->s);
            return;
        }
        assert_int_equal(rc, -HK_EIO);
        wait_and_poll(f);
    }
    fail_msg("still refused: %s", err.text);
}

static void failed_syncs_fail_their_writes(void **state)
{
    struct fixture *f = *state;
    struct hk_err err = {0};
    bool staged;
    uint64_t rv;

    open_at(f, f->path);
    assert_int_equal(submit(f, STORE_CREATE, "p1", &err), 0);
    store_flush(f->s);
    set_fault(FAULT_SYNC, 0);
    assert_int_equal(submit(f, STORE_UPDATE, "p1", &err), 0);
    assert_int_equal(submit(f, STORE_CREATE, "p2", &err), 0);
    assert_int_equal(submit(f, STORE_DELETE, "p1", &err), 0); /* never becomes durable */
    store_flush(f->s);
    assert_int_equal(f->nfailed, 3);

    /* Reads continue, of the earlier state. */
    assert_int_equal(store_rv(f->s), 2);
    assert_int_equal(store_get(f->s, f->pods, D, HK_STR("p1"))->rv, 2);
    assert_int_equal(store_head(f->s, f->pods, D, HK_STR("p1"), &staged)->rv, 2);
    assert_false(staged);
    assert_null(store_head(f->s, f->pods, D, HK_STR("p2"), &staged));
    rv = 2;
    assert_int_equal(store_next(f->s, f->pods, NOWHERE, &rv, &(struct store_event){0}),
                     STORE_NEXT_NONE);

    for (int i = 0; i < 5; i++) {
        assert_int_equal(submit(f, STORE_CREATE, "p3", &err), -HK_EIO);
        assert_string_equal(err.text,
                            "no writes until the disk recovers: cannot sync: disk I/O error");
        wait_and_poll(f);
    }

    set_fault(FAULT_NONE, 0);
    await_recovery(f);
    assert_true(store_rv(f->s) > 5); /* 3, 4 and 5 were assigned to failed writes */
    rv = store_rv(f->s);
    close_store(f);
    open_at(f, f->path);
    assert_int_equal(store_rv(f->s), rv);
    check_acks(f);
}

static bool add_object(void *ctx, const struct store_obj *o)
{
    hk_buf_addf(ctx, "%s %s\n", o->name.s, o->text.s);
    return true;
}

/* Fails the n-th write or sync for every other n in a few bursts; then the file must match what was
 * acknowledged. */
static void memory_and_file_agree_after_failures(void **state, enum fault kind, bool recover)
{
    struct fixture *f = *state;
    uint32_t rounds_failed = 0;

    for (int after = 0; after < 40; after += 2) {
        HK_AUTO(hk_buf_fini) struct hk_buf here = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf there = {0};

        open_at(f, f->path);
        f->nfailed = 0;
        set_fault(kind, after);
        for (int burst = 0; burst < 3; burst++) {
            for (int i = 0; i < 4; i++) {
                struct hk_err err = {0};
                const int rc = submit_random(f, &err);
                assert_true(rc == 0 || rc == -HK_EIO);
            }
            store_flush(f->s);
        }
        rounds_failed += f->nfailed > 0;
        if (recover) {
            set_fault(FAULT_NONE, 0);
            await_recovery(f);
            store_scan(f->s, f->pods, D, NOWHERE, NOWHERE, add_object, &here);
        }
        close_store(f);
        set_fault(FAULT_NONE, 0);
        open_at(f, f->path);
        if (recover) {
            store_scan(f->s, f->pods, D, NOWHERE, NOWHERE, add_object, &there);
            assert_string_equal(hk_buf_str(&there).s, hk_buf_str(&here).s);
        }
        check_acks(f);
        close_store(f);
    }
    assert_true(rounds_failed > 0);
}

static void full_disks_keep_acknowledged_writes(void **state)
{
    memory_and_file_agree_after_failures(state, FAULT_WRITE, true);
}

static void failing_syncs_keep_acknowledged_writes(void **state)
{
    memory_and_file_agree_after_failures(state, FAULT_SYNC, true);
}

static void disks_may_stay_full_to_the_end(void **state)
{
    memory_and_file_agree_after_failures(state, FAULT_WRITE, false);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(acknowledged_writes_survive_kills),   TEST(a_store_is_busy_until_its_process_dies),
        TEST(torn_tails_are_cut_at_a_commit),      TEST(failed_syncs_fail_their_writes),
        TEST(full_disks_keep_acknowledged_writes), TEST(failing_syncs_keep_acknowledged_writes),
        TEST(disks_may_stay_full_to_the_end),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store/store_crash", tests, install_faulty_disk, NULL);
}
