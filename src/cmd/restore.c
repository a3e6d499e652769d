// SPDX-License-Identifier: Apache-2.0
// hekla restore: creates a data directory from a backup.
#include "apiserver/backup_file.h"
#include "cli/verb.h"
#include "daemon/where.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct restore_opts {
    const char *dir; /* NULL: not given */
    const char *file;
    bool overwrite;
};

static const struct option_row options[] = {
    ROW_TEXT_OR('d', "data-dir", "DIR", struct restore_opts, dir, WHERE_DEFAULT_TEXT,
                "The data directory to restore. It is created when it does not exist."),
    ROW_FLAG(0, "overwrite", struct restore_opts, overwrite,
             "Restore although the store in the directory is sound, and of another server or newer "
             "than the backup. What the store has and the backup has not is then gone from the "
             "server."),
    ROW_ARGUMENT("FILE", struct restore_opts, file),
    ROW_END,
};

static void restore_tell(void *ctx, const char *line)
{
}

/* Checks the existing store: only a damaged or missing one, or an older state of the same store,
 * may be replaced. */
static int check_place(const struct restore_opts *o, const char *path,
                       const struct store_copy *copy, uint64_t *ret_rev, bool *ret_found,
                       struct hk_err *err)
{
    struct store_check check = {0};
    struct stat st;
    int rc;

    *ret_found = stat(path, &st) == 0 && st.st_size > 0;
    rc = store_check(&(struct store_check_opts){.path = path, .tell = restore_tell}, &check, err);
    if (rc < 0) {
        return rc;
    }
    *ret_rev = check.known_rev;
    if (*ret_found && check.sound && !o->overwrite &&
        (check.copy.identity != copy->identity || check.copy.rev > copy->rev)) {
        rc = hk_fail(err, HK_EEXIST,
                     "the store in '%s' is sound and has revisions up to %llu; the backup ends at "
                     "%llu%s: use --overwrite to replace it",
                     o->dir, (unsigned long long)check.copy.rev, (unsigned long long)copy->rev,
                     check.copy.identity != copy->identity ? " and is of another store" : "");
    }
    store_check_fini(&check);
    return rc;
}

/* Installs the store and the credentials of the backup in the claimed directory. */
static int restore_install(const struct restore_opts *o, const struct backup_file *b,
                           struct hk_buf *told, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0}, aside = {0};
    uint64_t rev = 0;
    bool found = false;
    int rc;

    hk_buf_addf(&path, "%s/store.db", o->dir);
    hk_buf_adds(&aside, "replaced-");
    backup_file_stamp(&aside);
    rc = check_place(o, path.data, &b->copy, &rev, &found, err);
    if (rc < 0) {
        return rc;
    }
    rc = store_copy_install(&b->copy, path.data, rev, time(NULL), aside.data, err);
    if (rc < 0) {
        return rc;
    }
    rc = backup_file_unpack(b, o->dir, err);
    if (rc < 0) {
        return rc;
    }
    hk_buf_addf(told, "%u object%s as of revision %llu, of %s, in '%s'\n", b->copy.objs.len,
                b->copy.objs.len == 1 ? "" : "s", (unsigned long long)b->copy.rev, b->time, o->dir);
    if (found) {
        hk_buf_addf(told, "the store that was there is kept as '%s.%s'\n", path.data, aside.data);
    }
    return 0;
}

static int restore_dir(const struct restore_opts *o, struct hk_buf *told, struct hk_err *err)
{
    HK_AUTO(backup_file_fini) struct backup_file b = {0};
    int claim;
    int rc = backup_file_read(o->file, &b, err);

    umask(077); /* files here hold keys, tokens and secrets */
    if (rc < 0) {
        return rc;
    }
    rc = where_make(o->dir, err);
    if (rc < 0) {
        return rc;
    }
    rc = where_claim(o->dir, &claim, err);
    if (rc < 0) {
        return rc;
    }
    rc = restore_install(o, &b, told, err);
    close(claim);
    return rc;
}

static int restore_run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf dir = {0}, told = {0};
    struct restore_opts o = {0};
    struct hk_err err = {0};
    const int rc = verb_parse(v, argc, argv, &o);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (!o.file) {
        return verb_complain(
            "restore: the name of the backup FILE is missing (see 'hekla help restore')");
    }
    if (where_settle(&o.dir, &dir, &err) < 0 || restore_dir(&o, &told, &err) < 0) {
        return verb_complain("restore: %s", err.text);
    }
    return verb_print(&told);
}

const struct verb verb_restore = {
    .name = "restore",
    .args = "FILE",
    .about = "restore a data directory from a backup",
    .options = options,
    .text = "Makes the store of the directory from a backup. No server may use the directory. The "
            "backup is read completely first; when anything in it is missing or damaged, nothing "
            "is changed. An existing store is kept beside the new one; a store that is sound and "
            "newer than the backup is replaced only with --overwrite.\n"
            "Credentials of the backup are written where the directory has none: in a new "
            "directory, clients keep their tokens and their authority.\n"
            "Revisions continue behind all that the directory or the backup has ever given out, "
            "in a new generation: watches and lists from before get 410 and start again.\n"
            "Pods that run on a node and are not in the backup continue to run until you decide: "
            "see --end-unknown-pods of 'hekla up'.",
    .rest = "EXIT STATUS\n"
            "       0  the store is restored\n"
            "       1  nothing was changed; one line on standard error says why\n"
            "\n"
            "EXAMPLES\n"
            "           hekla down\n"
            "           hekla restore /backup/hekla-2026-01-02\n"
            "           hekla up --detach\n",
    .run = restore_run,
};
