// SPDX-License-Identifier: Apache-2.0
// Checks a store that no process has open, in any state, and recovers all readable rows. Checksums
// identify rows, so rows may come from anywhere: from the file as SQLite reads it and, if its WAL
// is broken, from frames after the break. The newest row of each object counts.
#include "store/store_files.h"

#include "codec/json.h"
#include "store/store_db_priv.h"

#include <ctype.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_RANGES = 20 }; /* most ranges of missing revisions to list */

/* The newest row of an object. */
struct found {
    struct store_obj *obj;
    enum store_event_type type;
    bool lost;
};

struct checker {
    const struct store_check_opts *o;
    struct store_check *ret;
    struct store_evidence evidence;
    struct store_marks marks;
    bool marks_known, names_known;
    struct store_damaged damaged;
    struct hk_map revs;   /* all revisions read */
    struct hk_map by_key; /* from the hash of the key to the last entry with that hash */
    HK_VEC(struct found) all;
    HK_VEC(uint32_t) chain; /* index of the entry before, or HK_NONE */
    struct hk_buf line;
    bool repaired_copy; /* reading frames after the break of the WAL */
};

HK_PRINTF(2, 3) static void check_report(struct checker *c, const char *fmt, ...)
{
    va_list ap;

    hk_buf_clear(&c->line);
    va_start(ap, fmt);
    hk_buf_vaddf(&c->line, fmt, ap);
    va_end(ap);
    c->ret->sound = false;
    c->o->tell(c->o->ctx, c->line.data);
}

/* ---- collecting ---- */

static struct store_key store_check_object_key(const struct store_obj *o)
{
    return (struct store_key){o->ns, o->name};
}

static uint64_t store_check_key_hash(const struct store_obj *o)
{
    return store_key_hash(o->res, store_check_object_key(o)) >>
           1; /* the map reserves the largest key */
}

static struct found *find_object(struct checker *c, const struct store_obj *o)
{
    for (uint32_t i = hk_map_get(&c->by_key, store_check_key_hash(o)); i != HK_NONE;
         i = c->chain.at[i]) {
        const struct store_obj *at = c->all.at[i].obj;

        if (at->res == o->res && hk_str_eq(at->ns, o->ns) && hk_str_eq(at->name, o->name)) {
            return &c->all.at[i];
        }
    }
    return NULL;
}

static void keep_row(struct checker *c, enum store_event_type type, const struct store_obj *o)
{
    struct found *f = find_object(c, o);

    if (!f) {
        hk_vec_push(&c->chain, hk_map_get(&c->by_key, store_check_key_hash(o)));
        hk_map_put(&c->by_key, store_check_key_hash(o), c->all.len);
        hk_vec_push(&c->all, (struct found){store_obj_new(o), type, false});
    } else if (f->obj->rv < o->rv) {
        store_obj_unref(f->obj);
        f->obj = store_obj_new(o);
        f->type = type;
    }
}

/* The same row may be read twice. */
static bool is_new_rev(struct checker *c, uint64_t rv)
{
    if (hk_map_get(&c->revs, rv) != HK_NONE) {
        return false;
    }
    hk_map_put(&c->revs, rv, 1);
    c->ret->nrows++;
    return true;
}

static int check_res(void *ctx, uint32_t res, struct hk_str name, struct hk_err *err)
{
    struct checker *c = ctx;

    if (c->repaired_copy && res < c->ret->copy.names.len) {
        return 0; /* known from the first pass */
    }
    if (hk_intern(&c->ret->copy.names, name) != res) {
        return hk_fail(err, HK_EIO, "resource '%.*s' has number %" PRIu32 ", out of order",
                       HK_FMT(name), res);
    }
    return 0;
}

static int check_row(void *ctx, enum store_event_type type, const struct store_obj *o, uint64_t sum,
                     struct hk_err *err)
{
    struct checker *c = ctx;

    if (o->res < c->ret->copy.names.len && is_new_rev(c, o->rv)) {
        store_evidence_count(&c->evidence, o, sum, false);
        c->ret->known_rev = HK_MAX(c->ret->known_rev, o->rv); /* damaged rows may have any */
        keep_row(c, type, o);
    }
    return 0;
}

static int check_damaged_row(void *ctx, const struct store_obj *o, struct hk_err *err)
{
    struct checker *c = ctx;

    if (is_new_rev(c, o->rv)) {
        store_evidence_count(&c->evidence, o, 0, true);
        store_damaged_add(&c->damaged, o);
    }
    return 0;
}

/* ---- reading ---- */

/* The first readable revision after an unreadable one; 0: none. A whole page is unreadable, so all
 * revisions up to its end fail. */
static uint64_t find_readable(sqlite3 *db, uint64_t from, uint64_t last)
{
    sqlite3_stmt *st = NULL;
    uint64_t low = from, high, step = 1;

    if (store_db_prepare(db, "SELECT sum FROM log WHERE rev >= ? ORDER BY rev LIMIT 1", &st, NULL) <
        0) {
        return 0;
    }
    for (high = 0; high == 0 && low <= last; step *= 2) {
        sqlite3_reset(st);
        sqlite3_bind_int64(st, 1, (int64_t)(low + step));
        if (sqlite3_step(st) == SQLITE_ROW) {
            high = low + step;
        } else {
            low += step;
        }
    }
    while (high != 0 && high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;

        sqlite3_reset(st);
        sqlite3_bind_int64(st, 1, (int64_t)middle);
        if (sqlite3_step(st) == SQLITE_ROW) {
            high = middle;
        } else {
            low = middle;
        }
    }
    sqlite3_finalize(st);
    return high;
}

/* Continues after unreadable pages. */
static void read_rows(struct checker *c, sqlite3 *db)
{
    const struct store_log_reader reader = {
        .ctx = c, .res = check_res, .row = check_row, .damaged = check_damaged_row};
    const uint64_t last = HK_MAX(c->evidence.rev, c->evidence.told.rev);
    uint64_t from = 0, read = 0;
    struct hk_err err = {0};

    while (store_db_each_row(db, from, &reader, &read, &err) < 0) {
        const uint64_t next = find_readable(db, HK_MAX(from, read), last);

        if (!c->repaired_copy) {
            check_report(c, "unreadable: rows after revision %" PRIu64 ": %s", HK_MAX(from, read),
                         err.text);
        }
        if (next == 0) {
            return;
        }
        from = next;
    }
}

static void read_tables(struct checker *c, sqlite3 *db, bool old)
{
    const struct store_log_reader reader = {
        .ctx = c, .res = check_res, .row = check_row, .damaged = check_damaged_row};
    struct hk_err err = {0};

    c->marks_known = (old ? store_db_old_marks(db, &c->marks, &err)
                          : store_db_read_marks(db, &c->marks, &err)) == 0;
    if (!c->marks_known) {
        check_report(c, "damaged: %s", err.text);
    }
    if (store_db_revision(db, &c->evidence.rev, &err) < 0) {
        check_report(c, "unreadable: %s", err.text);
    }
    c->names_known = store_db_each_res(db, &c->marks, &reader, &err) == 0;
    if (!c->names_known && c->marks_known) {
        check_report(c, "damaged: %s", err.text);
    }
    read_rows(c, db);
}

/* Returns 1 if the file has tables. */
static int read_file(struct checker *c, struct hk_err *err)
{
    struct hk_err why = {0};
    sqlite3 *db = NULL;
    int64_t format = 0;
    int rc = store_db_open(c->o->path, NULL, &db, &why);

    if (rc == 0) {
        rc = store_db_format(db, &format, &why);
    }
    if (rc == -HK_EBUSY) {
        *err = why;
        return rc;
    }
    if (rc < 0) {
        check_report(c, "unreadable: %s", why.text);
    } else if (format != 0 && format != STORE_DB_OLD && format != STORE_DB_FORMAT) {
        rc = hk_fail(err, HK_EUNSUP, "format %" PRId64 ", want %d", format, STORE_DB_FORMAT);
        sqlite3_close(db);
        return rc;
    } else if (format != 0) {
        read_tables(c, db, format == STORE_DB_OLD);
    }
    sqlite3_close(db);
    return format != 0;
}

/* Reads a second link to the file, with a WAL repaired so that frames after the break count. */
static void read_repaired(struct checker *c)
{
    HK_AUTO(hk_buf_fini) struct hk_buf copy = {0}, wal = {0};
    struct hk_err err = {0};
    sqlite3 *db = NULL;

    hk_buf_addf(&copy, "%s.repaired", c->o->path);
    hk_buf_addf(&wal, "%s-wal", copy.data);
    unlink(copy.data);
    unlink(wal.data);
    c->repaired_copy = true;
    if (link(c->o->path, copy.data) == 0 &&
        store_wal_write_repaired(c->o->path, copy.data, NULL) == 0 &&
        store_db_open(copy.data, NULL, &db, NULL) == 0) {
        /* Readable names of resources that were added after the break. */
        (void)!store_db_each_res(db, &c->marks,
                                 &(struct store_log_reader){.ctx = c, .res = check_res}, &err);
        read_rows(c, db);
    }
    c->repaired_copy = false;
    sqlite3_close(db);
    unlink(copy.data);
    unlink(wal.data);
}

/* ---- checks ---- */

static const char *res_name(const struct checker *c, uint32_t res)
{
    const struct hk_intern *names = &c->ret->copy.names;

    return res > 0 && res < names->len ? hk_intern_str(names, res).s : "unknown";
}

static void store_check_mark_lost(struct found *f, uint64_t rv)
{
    if (f && f->obj->rv < rv) {
        f->lost = true;
    }
}

static void report_damaged_row(struct checker *c, struct store_damaged_row *row)
{
    HK_AUTO(hk_buf_fini) struct hk_buf name = {0};
    struct found *found[] = {find_object(c, row->by_columns), find_object(c, row->by_text)};
    const struct found *older = found[0];

    store_damaged_name(row, res_name(c, row->by_columns->res), &name);
    for (size_t k = 0; k < HK_LEN(found); k++) {
        if (found[k]) {
            store_damaged_pass(&c->damaged, found[k]->obj);
        }
    }
    if (store_damaged_is_old(row)) {
        check_report(
            c, "damaged: revision %" PRIu64 " of %s; a later one has replaced it, nothing is lost",
            row->rv, name.data);
        return;
    }
    c->ret->nlost++;
    if (c->o->older && older && older->type != STORE_DELETED && found[0] == found[1]) {
        check_report(c,
                     "damaged: revision %" PRIu64 " of %s, its last; revision %" PRIu64
                     " is kept in its place",
                     row->rv, name.data, older->obj->rv);
        return;
    }
    check_report(c, "damaged: revision %" PRIu64 " of %s, its last; the object is lost", row->rv,
                 name.data);
    store_check_mark_lost(found[0], row->rv);
    store_check_mark_lost(found[1], row->rv);
}

/* Whether the text may belong to that resource, in case the list of resource names is damaged. */
static bool fits_resource(const struct checker *c, const struct store_obj *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct hk_str group, plural, kind, rest = hk_str(res_name(c, o->res)), version;
    struct json root;
    size_t same = 0;

    if (json_parse(o->text, 0, &mem, &root, NULL) < 0) {
        return false;
    }
    hk_str_cut(&rest, '.', &plural);
    group = rest.s ? rest : HK_STR("");
    kind = json_str(json_get(&root, "kind"), HK_STR(""));
    version = json_str(json_get(&root, "apiVersion"), HK_STR(""));
    while (same < kind.n && same < plural.n &&
           tolower((unsigned char)kind.s[same]) == plural.s[same]) {
        same++;
    }
    return same + 1 >= kind.n &&
           (memchr(version.s, '/', version.n)
                ? hk_str_starts(version, group.s) && version.s[group.n] == '/' && group.n > 0
                : group.n == 0);
}

static void check_names(struct checker *c)
{
    for (uint32_t i = 0; !c->names_known && i < c->all.len; i++) {
        struct found *f = &c->all.at[i];

        if (!f->lost && f->type != STORE_DELETED && !fits_resource(c, f->obj)) {
            check_report(c, "damaged: %s %.*s%s%.*s is of another resource; the object is lost",
                         res_name(c, f->obj->res), HK_FMT(f->obj->ns), f->obj->ns.n > 0 ? "/" : "",
                         HK_FMT(f->obj->name));
            f->lost = true;
            c->ret->nlost++;
        }
    }
}

/* Ranges of revisions without a row, where history should be complete. */
static void report_gaps(struct checker *c)
{
    uint64_t rv = HK_MAX(c->marks.compacted, 1) + 1, first;
    uint32_t n = 0;

    while (rv <= c->evidence.told.rev && n < MAX_RANGES) {
        if (hk_map_get(&c->revs, rv) != HK_NONE) {
            rv++;
            continue;
        }
        for (first = rv; rv <= c->evidence.told.rev && hk_map_get(&c->revs, rv) == HK_NONE; rv++) {
        }
        check_report(c,
                     "missing: revisions %" PRIu64 " to %" PRIu64
                     "; the objects they changed keep their earlier states",
                     first, rv - 1);
        n++;
    }
}

static void check_evidence(struct checker *c)
{
    struct store_evidence *e = &c->evidence;
    struct hk_err err = {0};

    for (uint32_t i = 0; i < c->damaged.rows.len; i++) {
        report_damaged_row(c, &c->damaged.rows.at[i]);
    }
    check_names(c);
    e->identity = c->marks.identity;
    e->removed = c->marks.removed;
    e->nremoved = c->marks.nremoved;
    e->read = c->marks_known;
    if (store_evidence_check(e, &err) == 0) {
        return;
    }
    check_report(c, "missing: %s", err.text);
    if (e->read && e->told.found == STORE_TOLD && e->told.ninserted > e->nremoved + e->npresent) {
        c->ret->nlost += e->told.ninserted - e->nremoved - e->npresent;
        report_gaps(c);
    }
}

static void store_check_collect_objects(struct checker *c)
{
    struct store_copy *copy = &c->ret->copy;

    for (uint32_t i = 0; i < c->all.len; i++) {
        if (!c->all.at[i].lost && c->all.at[i].type != STORE_DELETED) {
            hk_vec_push(&copy->objs, store_obj_ref(c->all.at[i].obj));
        }
    }
    copy->identity = c->marks.identity;
    c->ret->known_rev = HK_MAX(c->ret->known_rev, c->evidence.told.rev);
    if (c->marks_known) {
        c->ret->known_rev =
            HK_MAX(c->ret->known_rev, HK_MAX(c->marks.compacted, c->marks.revision));
    }
    copy->rev = c->ret->known_rev;
}

/* ---- the whole check ---- */

static bool wal_breaks(const struct checker *c)
{
    const struct store_wal *w = &c->evidence.wal;

    return w->good < w->len && (w->cut || c->evidence.rev < c->evidence.told.rev);
}

static int run_check(struct checker *c, struct hk_err *err)
{
    struct store_evidence *e = &c->evidence;
    struct stat st;
    int rc = store_witness_read(c->o->path, &e->told, err);

    if (rc < 0) {
        return rc;
    }
    rc = store_wal_scan(c->o->path, &e->wal, err);
    if (rc < 0) {
        return rc;
    }
    e->must_exist = c->o->must_exist;
    if (stat(c->o->path, &st) == 0 && st.st_size > 0) {
        rc = read_file(c, err);
        if (rc < 0) {
            return rc;
        }
        e->exists = rc > 0;
    }
    if (e->exists && wal_breaks(c)) {
        read_repaired(c);
    }
    check_evidence(c);
    store_check_collect_objects(c);
    return 0;
}

/* SQLite leaves an empty WAL where none existed. */
static void remove_empty_wal(const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf wal = {0};
    struct stat st;

    hk_buf_addf(&wal, "%s-wal", path);
    if (stat(wal.data, &st) == 0 && st.st_size == 0) {
        unlink(wal.data);
    }
}

int store_check(const struct store_check_opts *o, struct store_check *ret, struct hk_err *err)
{
    struct checker c = {.o = o, .ret = ret};

    *ret = (struct store_check){.sound = true};
    const int rc = run_check(&c, err);
    remove_empty_wal(o->path);
    for (uint32_t i = 0; i < c.all.len; i++) {
        store_obj_unref(c.all.at[i].obj);
    }
    store_damaged_fini(&c.damaged);
    hk_map_fini(&c.revs);
    hk_map_fini(&c.by_key);
    hk_vec_fini(&c.all);
    hk_vec_fini(&c.chain);
    hk_buf_fini(&c.line);
    return rc < 0 ? hk_wrap(err, rc, "store '%s'", o->path) : 0;
}

void store_check_fini(struct store_check *c)
{
    store_copy_fini(&c->copy);
}
