// SPDX-License-Identifier: Apache-2.0
// Makes copies of a store, and stores from copies.
#include "store/store_files.h"

#include "api/revision.h"
#include "store/store_db_priv.h"

#include <errno.h>
#include <unistd.h>

void store_copy_fini(struct store_copy *c)
{
    for (uint32_t i = 0; i < c->objs.len; i++) {
        store_obj_unref(c->objs.at[i]);
    }
    hk_vec_fini(&c->objs);
    hk_intern_fini(&c->names);
    *c = (struct store_copy){0};
}

static int copy_compare(const void *a, const void *b)
{
    const struct store_obj *x = *(struct store_obj *const *)a, *y = *(struct store_obj *const *)b;

    return (x->rv > y->rv) - (x->rv < y->rv);
}

/* ---- a new file ---- */

struct copy_output {
    sqlite3 *db;
    struct store_marks marks;
    struct store_told told;
    sqlite3_stmt *insert, *insert_res, *mark;
};

static int copy_output_write(struct copy_output *m, const struct store_copy *c)
{
    int rc = SQLITE_OK;

    for (uint32_t i = 1; rc == SQLITE_OK && i < c->names.len; i++) {
        const struct hk_str name = hk_intern_str(&c->names, i);

        rc = store_db_insert_res(m->insert_res, i, name);
        m->marks.resources = store_db_sum_res(m->marks.resources, i, name);
    }
    for (uint32_t i = 0; rc == SQLITE_OK && i < c->objs.len; i++) {
        const struct store_obj *o = c->objs.at[i];
        uint64_t sum;

        rc = store_db_insert(m->insert, o->rv == o->created_rv ? STORE_ADDED : STORE_MODIFIED, o,
                             &sum);
        m->told.inserted ^= sum;
        m->told.ninserted++;
    }
    return rc != SQLITE_OK ? rc : store_db_write_marks(m->mark, &m->marks);
}

static int copy_output_fill(struct copy_output *m, const struct store_copy *c, struct hk_err *err)
{
    int rc = store_db_create(m->db, &m->marks, err);

    if (rc < 0) {
        return rc;
    }
    rc = store_db_prepare(m->db, STORE_DB_INSERT, &m->insert, err);
    if (rc < 0) {
        return rc;
    }
    rc = store_db_prepare(m->db, STORE_DB_INSERT_RES, &m->insert_res, err);
    if (rc < 0) {
        return rc;
    }
    rc = store_db_prepare(m->db, STORE_DB_MARK, &m->mark, err);
    if (rc < 0) {
        return rc;
    }
    rc = store_db_exec(m->db, "BEGIN", "cannot write", err);
    if (rc < 0) {
        return rc;
    }
    rc = copy_output_write(m, c);
    if (rc != SQLITE_OK) {
        return store_db_fail(m->db, rc, "cannot write", err);
    }
    rc = store_db_exec(m->db, "COMMIT", "cannot write", err);
    if (rc < 0) {
        return rc;
    }
    return store_db_settle(m->db, err);
}

static int store_copy_make_file(struct copy_output *m, const struct store_copy *c, const char *path,
                                struct hk_err *err)
{
    int rc;

    unlink(path); /* left by an earlier failed attempt */
    rc = store_db_open(path, NULL, &m->db, err);
    if (rc == 0) {
        rc = copy_output_fill(m, c, err);
    }
    sqlite3_finalize(m->insert);
    sqlite3_finalize(m->insert_res);
    sqlite3_finalize(m->mark);
    sqlite3_close(m->db);
    m->told.identity = m->marks.identity;
    if (rc < 0) {
        unlink(path);
        return hk_wrap(err, rc, "'%s'", path);
    }
    return 0;
}

/* ---- replacing the old file ---- */

/* The WAL first: it must never be next to a different file. */
static int move_aside(const char *path, const char *aside, struct hk_err *err)
{
    static const char *const parts[] = {"-wal", "-witness", ""};
    HK_AUTO(hk_buf_fini) struct hk_buf from = {0}, to = {0};

    for (size_t i = 0; i < HK_LEN(parts); i++) {
        hk_buf_clear(&from);
        hk_buf_clear(&to);
        hk_buf_addf(&from, "%s%s", path, parts[i]);
        hk_buf_addf(&to, "%s.%s%s", path, aside, parts[i]);
        if (rename(from.data, to.data) < 0 && errno != ENOENT) {
            return hk_fail(err, HK_EIO, "cannot rename '%s': %m", from.data);
        }
    }
    return 0;
}

int store_copy_install(const struct store_copy *c, const char *path, uint64_t known_rev,
                       int64_t now_s, const char *aside, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf made = {0};
    const uint64_t rev = revision_next_generation(HK_MAX(known_rev, c->rev), now_s);
    struct copy_output m = {.marks = {.compacted = rev, .revision = rev}, .told = {.rev = rev}};
    struct store_witness *w;
    int rc;

    if (c->objs.len > 0) {
        qsort(c->objs.at, c->objs.len, sizeof(c->objs.at[0]), copy_compare);
    }
    hk_buf_addf(&made, "%s.new", path);
    rc = store_copy_make_file(&m, c, made.data, err);
    if (rc < 0) {
        return rc;
    }
    rc = move_aside(path, aside, err);
    if (rc == 0 && rename(made.data, path) < 0) {
        rc = hk_fail(err, HK_EIO, "cannot rename '%s': %m", made.data);
    }
    m.told.clean = true;
    if (rc < 0) {
        return rc;
    }
    rc = store_witness_open(path, &m.told, &w, err);
    if (rc == 0) {
        store_witness_free(w);
    }
    return rc;
}
