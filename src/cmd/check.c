// SPDX-License-Identifier: Apache-2.0
// hekla check: checks the store of a directory, reports damage, and can write a new store with
// everything that is intact.
#include "apiserver/backup_file.h"
#include "apiserver/setup.h"
#include "cli/verb.h"
#include "daemon/where.h"

#include <time.h>
#include <unistd.h>

struct check_opts {
    struct where_opts where;
    bool salvage, older;
};

static const struct option_row options[] = {
    ROW_INCLUDE(struct check_opts, where, where_options),
    ROW_FLAG(0, "salvage", struct check_opts, salvage,
             "Make a new store of everything that can be read, and keep the damaged one beside it. "
             "Objects whose last state is damaged are left out."),
    ROW_FLAG(0, "older", struct check_opts, older,
             "With --salvage: keep the newest older state of an object whose last state is "
             "damaged."),
    ROW_END,
};

static void check_tell(void *ctx, const char *line)
{
    hk_buf_addf(ctx, "%s\n", line);
}

static int check_salvage(const struct store_check *c, const char *path, struct hk_buf *out,
                         struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf aside = {0};
    int rc;

    if (c->copy.objs.len == 0) {
        return hk_fail(err, HK_ENOTFOUND,
                       "nothing can be read from '%s': restore a backup with 'hekla restore "
                       "FILE', or start without the data with --accept-data-loss",
                       path);
    }
    hk_buf_adds(&aside, "damaged-");
    backup_file_stamp(&aside);
    rc = store_copy_install(&c->copy, path, c->known_rev, time(NULL), aside.data, err);
    if (rc == 0) {
        hk_buf_addf(out, "salvaged: %u object%s; the damaged store is kept as '%s.%s'\n",
                    c->copy.objs.len, c->copy.objs.len == 1 ? "" : "s", path, aside.data);
    }
    return rc;
}

static int check_judge(const struct check_opts *o, const struct store_check *c, const char *path,
                       struct hk_buf *out, struct hk_err *err)
{
    if (c->sound) {
        hk_buf_addf(out, "sound: %u object%s, %llu revision%s kept, the last one is %llu\n",
                    c->copy.objs.len, c->copy.objs.len == 1 ? "" : "s",
                    (unsigned long long)c->nrows, c->nrows == 1 ? "" : "s",
                    (unsigned long long)c->copy.rev);
        return EXIT_OK;
    }
    if (o->salvage) {
        const int rc = check_salvage(c, path, out, err);

        return rc < 0 ? rc : EXIT_OK;
    }
    hk_buf_addf(out,
                "not sound: %u object%s can be read, %llu %s lost; 'hekla check --salvage' makes a "
                "new store of what can be read, 'hekla restore FILE' restores a backup\n",
                c->copy.objs.len, c->copy.objs.len == 1 ? "" : "s", (unsigned long long)c->nlost,
                c->nlost == 1 ? "is" : "are");
    return EXIT_PROBLEMS;
}

static int check_store_dir(const struct check_opts *o, struct hk_buf *out, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct store_check c = {0};
    int claim, rc;

    hk_buf_addf(&path, "%s/store.db", o->where.dir);
    if (access(path.data, F_OK) < 0 && !setup_exists(o->where.dir)) {
        return hk_fail(err, HK_ENOTFOUND, "there is no store in '%s'", o->where.dir);
    }
    rc = where_claim(o->where.dir, &claim, err);
    if (rc < 0) {
        return rc;
    }
    rc = store_check(&(struct store_check_opts){.path = path.data,
                                                .must_exist = setup_exists(o->where.dir),
                                                .older = o->older,
                                                .tell = check_tell,
                                                .ctx = out},
                     &c, err);
    if (rc == 0) {
        rc = check_judge(o, &c, path.data, out, err);
    }
    store_check_fini(&c);
    close(claim);
    return rc;
}

static int check_run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf dir = {0}, out = {0};
    struct check_opts o = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &o);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (o.older && !o.salvage) {
        return verb_complain("check: --older needs --salvage");
    }
    rc = where_settle(&o.where.dir, &dir, &err);
    if (rc == 0) {
        rc = check_store_dir(&o, &out, &err);
    }
    if (verb_print(&out) != EXIT_OK) {
        return EXIT_BAD;
    }
    return rc < 0 ? verb_complain("check: %s", err.text) : rc;
}

const struct verb verb_check = {
    .name = "check",
    .args = "",
    .about = "check the store of a directory, and salvage what can be read",
    .options = options,
    .text = "Reads the whole store of a directory that no server uses, changes nothing, and "
            "prints a line for each defect: objects by resource, namespace and name whose last "
            "state is damaged, damaged older states, rows that cannot be read, and acknowledged "
            "revisions that are missing. Rows have checksums, and a small file beside the "
            "database, store.db-witness, records how many of them there should be.\n"
            "With --salvage a new store is made of everything that can be read, also of what lies "
            "behind a break in the write-ahead log. Revisions continue behind all that were given "
            "out, in a new generation. The damaged store is kept beside the new one.",
    .rest =
        "EXIT STATUS\n"
        "       0  the store is sound, or has been salvaged\n"
        "       1  the store could not be read, or nothing could be salvaged; one line on standard "
        "error\n"
        "          says why\n"
        "       2  something is damaged or missing\n"
        "\n"
        "EXAMPLES\n"
        "           hekla down\n"
        "           hekla check || hekla check --salvage\n"
        "           hekla up --detach\n",
    .run = check_run,
};
