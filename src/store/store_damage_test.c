// SPDX-License-Identifier: Apache-2.0
// Stores whose files were damaged, lost or swapped while closed: the errors at opening, the
// findings of the check, and the result of a salvage.
#include "api/revision.h"
#include "base/clock.h"
#include "store/store_db_priv.h"
#include "store/store_files.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 40, PATH_ROOM = 64 };

#define D HK_STR("default")

struct fixture {
    char dir[32], path[PATH_ROOM], witness[PATH_ROOM], wal[PATH_ROOM];
    struct store *s;
    uint32_t pods;
    uint64_t acked;
    struct hk_buf said;
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    memcpy(f->dir, "/tmp/hekla-store-XXXXXX", sizeof("/tmp/hekla-store-XXXXXX"));
    if (!mkdtemp(f->dir)) {
        return -1;
    }
    snprintf(f->path, sizeof(f->path), "%s/db", f->dir);
    snprintf(f->witness, sizeof(f->witness), "%s/db-witness", f->dir);
    snprintf(f->wal, sizeof(f->wal), "%s/db-wal", f->dir);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf command = {0};

    store_close(f->s);
    hk_buf_addf(&command, "rm -r %s", f->dir);
    hk_buf_fini(&f->said);
    const int rc = system(command.data);
    hk_free(f);
    return rc;
}

static int open_with(struct fixture *f, const struct store_opts *more, struct hk_err *err)
{
    struct store_opts o = *more;
    const int rc = (o.path = f->path, store_open(&o, &f->s, err));

    if (rc == 0) {
        f->pods = store_res(f->s, HK_STR(""), HK_STR("pods"));
    }
    return rc;
}

static void open_store(struct fixture *f)
{
    struct hk_err err = {0};

    if (open_with(f, &(struct store_opts){0}, &err) < 0) {
        fail_msg("cannot open: %s", err.text);
    }
}

static void close_store(struct fixture *f)
{
    store_close(f->s);
    f->s = NULL;
}

static void expect_refusal(struct fixture *f, const struct store_opts *o, const char *words)
{
    struct hk_err err = {0};

    assert_int_equal(open_with(f, o, &err), -HK_EIO);
    assert_null(f->s);
    if (!strstr(err.text, words) || !strstr(err.text, "hekla check")) {
        fail_msg("'%s', want '%s'", err.text, words);
    }
}

static void on_done(void *ctx, int rc, const struct store_obj *obj, const struct hk_err *err)
{
    struct fixture *f = ctx;

    assert_int_equal(rc, 0);
    f->acked = obj->rv;
}

static void write_pod(struct fixture *f, enum store_verb verb, const char *name, int value)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json root = json_make_object();
    struct json *meta = json_set_object(&root, &mem, "metadata");

    json_set_cstr(meta, &mem, "name", name);
    json_set_str(meta, &mem, "namespace", D);
    json_set_int(&root, &mem, "v", value);
    const struct store_write w = {.verb = verb,
                                  .res = f->pods,
                                  .ns = D,
                                  .name = hk_str(name),
                                  .root = verb == STORE_DELETE ? NULL : &root,
                                  .mem = &mem};
    assert_int_equal(store_submit(f->s, &w, on_done, f, NULL), 0);
    store_flush(f->s);
}

/* Writes p0 to p39, each twice. */
static void fill_store(struct fixture *f)
{
    char name[8];

    open_store(f);
    for (int i = 0; i < 2 * ROWS; i++) {
        snprintf(name, sizeof(name), "p%d", i % ROWS);
        write_pod(f, i < ROWS ? STORE_CREATE : STORE_UPDATE, name, i);
    }
}

static bool has_pod(struct fixture *f, const char *name)
{
    return store_get(f->s, f->pods, D, hk_str(name)) != NULL;
}

static void change_file(struct fixture *f, const char *sql)
{
    sqlite3 *db;

    close_store(f);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void flip_byte(const char *path, off_t at)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    unsigned char byte;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void note_line(void *ctx, const char *line)
{
    struct fixture *f = ctx;

    hk_buf_addf(&f->said, "%s\n", line);
}

static void check_file(struct fixture *f, bool older, struct store_check *ret)
{
    hk_buf_clear(&f->said);
    assert_int_equal(store_check(
                         &(struct store_check_opts){
                             .path = f->path, .older = older, .tell = note_line, .ctx = f},
                         ret, NULL),
                     0);
}

static void expect_said(const struct fixture *f, const char *words)
{
    if (!strstr(hk_buf_str(&f->said).s, words)) {
        fail_msg("'%s', want '%s'", hk_buf_str(&f->said).s, words);
    }
}

/* ---- damage that SQLite does not detect ---- */

/* A page that lost a row still looks valid. */
static void rows_that_vanish_are_missed(void **state)
{
    struct fixture *f = *state;

    fill_store(f);
    change_file(f, "DELETE FROM log WHERE rev = 81"); /* the last row: nothing refers to it */
    expect_refusal(f, &(struct store_opts){0}, "1 revision is missing: it ends at 80, but 81 was");
    open_with(f, &(struct store_opts){.accept_loss = true}, NULL);
    assert_true(store_rv(f->s) > 81);
    change_file(f, "DELETE FROM log WHERE rev = 80");
    expect_refusal(f, &(struct store_opts){0}, "1 of its 79 rows cannot be found");
}

static void rows_that_were_exchanged_are_missed(void **state)
{
    struct fixture *f = *state;
    const struct store_obj o = {
        .res = 1,
        .ns = D,
        .name = HK_STR("p39"),
        .rv = 81,
        .created_rv = 41,
        .text = HK_STR("{\"metadata\":{}}"),
    };
    HK_AUTO(hk_buf_fini) struct hk_buf sql = {0};

    fill_store(f);
    hk_buf_addf(&sql,
                "UPDATE log SET uid = '', text = '{\"metadata\":{}}', sum = %" PRId64
                " WHERE rev = 81",
                (int64_t)store_db_sum_row(STORE_MODIFIED, &o));
    change_file(f, sql.data);
    expect_refusal(f, &(struct store_opts){0}, "its rows are not those that were written");
}

static void compaction_is_no_loss(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(open_with(f, &(struct store_opts){.ring_events = 8}, NULL), 0);
    for (int i = 0; i < 200; i++) {
        write_pod(f, i == 0 ? STORE_CREATE : STORE_UPDATE, "a", i);
        if (i % 10 == 0) {
            store_compact(f->s);
        }
    }
    for (int i = 0; i < 3; i++) {
        close_store(f);
        open_store(f);
        assert_int_equal(store_rv(f->s), 201);
    }
}

/* ---- recovery ---- */

static void accepted_losses_begin_a_generation(void **state)
{
    struct fixture *f = *state;
    struct store_event e;
    uint64_t rv;

    fill_store(f);
    change_file(f, "DELETE FROM log WHERE rev > 60");
    expect_refusal(f, &(struct store_opts){0}, "21 revisions are missing");
    assert_int_equal(open_with(f, &(struct store_opts){.accept_loss = true}, NULL), 0);
    rv = store_rv(f->s);
    assert_int_equal(revision_generation(rv), 1);
    assert_true(has_pod(f, "p39"));
    write_pod(f, STORE_CREATE, "new", 1);
    assert_int_equal(f->acked, rv + 1);
    for (uint64_t old = 1; old < rv; old = old * 3 + 1) {
        uint64_t at = old;
        assert_int_equal(store_next(f->s, f->pods, HK_STR(""), &at, &e), STORE_NEXT_GONE);
    }
    close_store(f);
    open_store(f);
    assert_int_equal(store_rv(f->s), rv + 1);
    close_store(f);
    unlink(f->witness); /* a second time */
    expect_refusal(f, &(struct store_opts){0}, "its witness is missing");
    assert_int_equal(open_with(f, &(struct store_opts){.accept_loss = true}, NULL), 0);
    assert_int_equal(revision_generation(store_rv(f->s)), 2);
}

static void generations_have_the_number_of_their_minute(void **state)
{
    const int64_t epoch_s = 1767225600;

    assert_int_equal(revision_next_generation(5, 0), (uint64_t)1 << 40);
    assert_int_equal(revision_next_generation(5, epoch_s + 600), (uint64_t)10 << 40);
    assert_int_equal(revision_next_generation((uint64_t)10 << 40, epoch_s + 600),
                     (uint64_t)11 << 40);
    assert_int_equal(revision_next_generation(5, INT64_MAX), (uint64_t)1 << 40);
}

static void replaced_rows_may_be_damaged(void **state)
{
    struct fixture *f = *state;
    struct store_event e;
    uint64_t at = 5;

    fill_store(f);
    change_file(f, "UPDATE log SET text = replace(text, '\"v\":3', '\"v\":4') WHERE rev = 5");
    open_store(f);
    assert_int_equal(store_rv(f->s), 81);
    assert_int_equal(store_next(f->s, f->pods, HK_STR(""), &at, &e), STORE_NEXT_GONE);
    close_store(f);
    open_store(f); /* the row is gone, and not reported as missing */
    write_pod(f, STORE_UPDATE, "p3", 7);
    change_file(f, "UPDATE log SET name = 'q3' WHERE rev = 82");
    expect_refusal(f, &(struct store_opts){0},
                   "revision 82 of pods default/q3 (the name may be damaged as well) is damaged");
}

static void missing_files_are_missed(void **state)
{
    struct fixture *f = *state;

    expect_refusal(f, &(struct store_opts){.must_exist = true}, "its credentials are there");
    assert_int_equal(access(f->path, F_OK), -1);
    fill_store(f);
    close_store(f);
    unlink(f->path);
    expect_refusal(f, &(struct store_opts){0}, "missing or empty, but revision 81 was");
    assert_int_equal(open_with(f, &(struct store_opts){.accept_loss = true}, NULL), 0);
    assert_int_equal(revision_generation(store_rv(f->s)), 1);
    assert_false(has_pod(f, "p1"));
}

/* ---- the check ---- */

static void checks_name_what_is_damaged(void **state)
{
    struct fixture *f = *state;
    struct store_check c;

    fill_store(f);
    close_store(f);
    check_file(f, false, &c);
    assert_true(c.sound);
    assert_int_equal(c.copy.objs.len, ROWS);
    assert_int_equal(c.nrows, 2 * ROWS);
    store_check_fini(&c);

    open_store(f);
    change_file(f, "UPDATE log SET text = replace(text, '\"v\"', '\"w\"') WHERE rev IN (3, 50);"
                   "DELETE FROM log WHERE rev = 60;"
                   "UPDATE log SET uid = 'x' WHERE rev = 70");
    check_file(f, false, &c);
    assert_false(c.sound);
    expect_said(f, "damaged: revision 3 of pods default/p1; a later one has replaced it");
    expect_said(f, "damaged: revision 50 of pods default/p8, its last; the object is lost");
    expect_said(f, "damaged: revision 70 of pods default/p28, its last; the object is lost");
    expect_said(f, "missing: revisions 60 to 60;");
    assert_int_equal(c.copy.objs.len, ROWS - 2);
    assert_int_equal(c.nlost, 3);
    assert_int_equal(c.known_rev, 81);
    store_check_fini(&c);

    check_file(f, true, &c);
    expect_said(f, "revision 50 of pods default/p8, its last; revision 10 is kept in its place");
    assert_int_equal(c.copy.objs.len, ROWS);
    assert_int_equal(store_copy_install(&c.copy, f->path, c.known_rev, 0, "aside", NULL), 0);
    store_check_fini(&c);
    open_store(f);
    assert_true(has_pod(f, "p8"));
    assert_int_equal(revision_generation(store_rv(f->s)), 1);
}

/* Salvages the frames after a bad one, and the other rows on its page. */
static void a_broken_wal_is_read_to_its_end(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf copy = {0};
    struct store_wal wal;
    struct store_check c;

    fill_store(f);
    /* As after a kill: copies the files before the store closes them. */
    hk_buf_addf(&copy, "cd %s && mkdir kill && cp db db-wal db-witness kill", f->dir);
    assert_int_equal(system(copy.data), 0);
    close_store(f);
    snprintf(f->path, sizeof(f->path), "%s/kill/db", f->dir);
    snprintf(f->wal, sizeof(f->wal), "%s/kill/db-wal", f->dir);
    assert_int_equal(store_wal_scan(f->path, &wal, NULL), 0);
    assert_int_equal(wal.good, wal.len);
    assert_true(wal.len > ROWS);
    flip_byte(f->wal, 32 + (off_t)(wal.len / 2) * (24 + 16384) + 16000);
    const uint32_t middle = wal.len / 2;
    assert_int_equal(store_wal_scan(f->path, &wal, NULL), 0);
    assert_int_equal(wal.good, middle);
    assert_true(wal.cut);
    expect_refusal(f, &(struct store_opts){0}, "its WAL is damaged at frame");
    check_file(f, false, &c);
    assert_false(c.sound);
    assert_true(c.copy.objs.len >= ROWS - 3);
    store_check_fini(&c);
    unlink(f->wal);
    assert_int_equal(store_wal_scan(f->path, &wal, NULL), 0);
    assert_int_equal(wal.len, 0);
}

/* ---- the witness ---- */

static void one_slot_of_the_witness_is_enough(void **state)
{
    struct fixture *f = *state;
    struct store_told told;

    fill_store(f);
    close_store(f);
    assert_int_equal(store_witness_read(f->path, &told, NULL), 0);
    assert_int_equal(told.rev, 81);
    assert_true(told.clean);
    for (int slot = 0; slot < 2; slot++) {
        flip_byte(f->witness, slot * 4096 + 30);
        assert_int_equal(store_witness_read(f->path, &told, NULL), 0);
        assert_int_equal(told.found, STORE_TOLD);
        assert_true(told.rev == 81);
        open_store(f); /* writes both */
        close_store(f);
    }
    flip_byte(f->witness, 30);
    flip_byte(f->witness, 4096 + 30);
    expect_refusal(f, &(struct store_opts){0}, "its witness is damaged");
}

/* ---- backups ---- */

static void backups_come_back_as_they_were(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct store_copy copy, back = {0};
    struct store_backup b = {.copy = &copy};
    struct store_backup_reader r = {.copy = &back};
    struct hk_str rest, line;

    fill_store(f);
    store_copy_open(f->s, &copy);
    write_pod(f, STORE_DELETE, "p0", 0); /* after the copy */
    while (store_backup_write(&b, &text, 100)) {
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, '\n', &line) && line.n > 0) {
        assert_int_equal(store_backup_read(&r, line, NULL), 0);
    }
    assert_true(r.ended);
    assert_int_equal(back.rev, 81);
    assert_int_equal(back.identity, copy.identity);
    assert_int_equal(back.objs.len, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_true(hk_str_eq(back.objs.at[i]->text, copy.objs.at[i]->text));
        assert_int_equal(back.objs.at[i]->rv, copy.objs.at[i]->rv);
    }
    store_copy_fini(&back);
    store_copy_fini(&copy);
}

static void damaged_backups_are_refused(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct store_copy copy;
    struct store_backup b = {.copy = &copy};
    struct hk_rand rand;

    fill_store(f);
    store_copy_open(f->s, &copy);
    while (store_backup_write(&b, &text, 1000)) {
    }
    store_copy_fini(&copy);
    hk_rand_seed(&rand, 7);
    for (int i = 0; i < 300; i++) {
        struct store_copy back = {0};
        struct store_backup_reader r = {.copy = &back};
        const size_t at = hk_rand_below(&rand, (uint32_t)text.len - 1);
        struct hk_str rest = hk_buf_str(&text), line;
        int rc = 0;

        text.data[at] ^= 1;
        while (rc == 0 && hk_str_cut(&rest, '\n', &line) && line.n > 0) {
            rc = store_backup_read(&r, line, NULL);
        }
        if (rc == 0 && r.ended) {
            fail_msg("the change of byte %zu was not found", at);
        }
        text.data[at] ^= 1;
        store_copy_fini(&back);
    }
}

/* ---- ballast ---- */

static void ballast_is_given_up_once(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct store_ballast *b = store_ballast_open(f->path, 1 << 20);
    struct stat st;

    hk_buf_addf(&path, "%s-ballast", f->path);
    assert_true(store_ballast_held(b));
    assert_int_equal(stat(path.data, &st), 0);
    assert_true(st.st_blocks >= 2048);
    assert_true(store_ballast_drop(b, false));
    assert_false(store_ballast_drop(b, false));
    assert_false(store_ballast_held(b));
    assert_int_equal(stat(path.data, &st), 0);
    assert_int_equal(st.st_size, 1 << 18); /* kept for the next start */
    assert_true(store_ballast_drop(b, true));
    assert_false(store_ballast_drop(b, true));
    assert_int_equal(stat(path.data, &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_true(store_ballast_take(b, 0));
    store_ballast_free(b);
    store_ballast_free(store_ballast_open(f->path, 0));
    assert_int_equal(access(path.data, F_OK), -1);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(rows_that_vanish_are_missed),
        CASE(rows_that_were_exchanged_are_missed),
        CASE(compaction_is_no_loss),
        CASE(accepted_losses_begin_a_generation),
        CASE(generations_have_the_number_of_their_minute),
        CASE(replaced_rows_may_be_damaged),
        CASE(missing_files_are_missed),
        CASE(checks_name_what_is_damaged),
        CASE(a_broken_wal_is_read_to_its_end),
        CASE(one_slot_of_the_witness_is_enough),
        CASE(backups_come_back_as_they_were),
        CASE(damaged_backups_are_refused),
        CASE(ballast_is_given_up_once),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store/store_damage", tests, NULL, NULL);
}
