// SPDX-License-Identifier: Apache-2.0
// hekla backup: writes everything that a server stores to one file. Asks a running server for it;
// otherwise reads the files of the directory.
#include "apiserver/backup_file.h"
#include "cli/verb.h"
#include "daemon/where.h"
#include "user/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20 };

struct backup_opts {
    struct where_opts where;
    const char *file;
};

static const struct option_row options[] = {
    ROW_INCLUDE(struct backup_opts, where, where_options),
    ROW_ARGUMENT("FILE", struct backup_opts, file),
    ROW_END,
};

static int cmd_backup_write_bytes(int fd, struct hk_str bytes, struct hk_err *err)
{
    while (bytes.n > 0) {
        const ssize_t n = write(fd, bytes.s, bytes.n);

        if (n < 0 && errno != EINTR) {
            return hk_fail(err, HK_EIO, "cannot write the backup: %m");
        }
        bytes.s += n > 0 ? n : 0;
        bytes.n -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* ---- from a running server ---- */

struct backup_copy {
    int fd, rc; /* rc: of the first failed write */
    struct hk_err err;
};

static void backup_on_bytes(void *ctx, struct hk_str bytes)
{
    struct backup_copy *c = ctx;

    if (c->rc == 0) {
        c->rc = cmd_backup_write_bytes(c->fd, bytes, &c->err);
    }
}

static int backup_from_server(const char *dir, int fd, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf config = {0};
    HK_AUTO(ask_close) struct ask a = {0};
    struct backup_copy copy = {.fd = fd};
    int rc;

    hk_buf_addf(&config, "%s/kubeconfig", dir);
    rc = ask_open(&a, config.data, "", err);
    if (rc < 0) {
        return rc;
    }
    rc = ask_stream(&a, "/backup", backup_on_bytes, &copy, err);
    if (copy.rc < 0) {
        *err = copy.err;
        return copy.rc;
    }
    return rc;
}

/* ---- from files ---- */

static void backup_tell(void *ctx, const char *line)
{
}

static int write_copy(const struct store_copy *copy, int fd, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct store_backup b = {.copy = copy};
    bool more = true;
    int rc = 0;

    while (rc == 0 && more) {
        hk_buf_clear(&text);
        more = store_backup_write(&b, &text, CHUNK_BYTES);
        rc = cmd_backup_write_bytes(fd, hk_buf_str(&text), err);
    }
    return rc;
}

static int backup_from_files(const char *dir, int fd, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct store_check check = {0};
    int claim, rc;

    hk_buf_addf(&path, "%s/store.db", dir);
    if (access(path.data, F_OK) < 0) {
        return hk_fail(err, HK_ENOTFOUND, "there is no store in '%s'", dir);
    }
    rc = where_claim(dir, &claim, err);
    if (rc < 0) {
        return rc;
    }
    rc = store_check(&(struct store_check_opts){.path = path.data, .tell = backup_tell}, &check,
                     err);
    if (rc == 0 && !check.sound) {
        rc = hk_fail(err, HK_EIO, "the store in '%s' is damaged: see 'hekla check'", dir);
    }
    if (rc == 0) {
        rc = write_copy(&check.copy, fd, err);
    }
    store_check_fini(&check);
    close(claim);
    return rc;
}

/* ---- the verb ---- */

static int backup_write(const struct backup_opts *o, int fd, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct where_server server = {.pidfd = -1};
    int rc = where_find(o->where.dir, &server, err);
    const bool runs = rc == 0;

    where_server_fini(&server);
    if (rc < 0 && rc != -HK_ENOTFOUND) {
        return rc;
    }
    rc = backup_file_begin(o->where.dir, &text, err);
    if (rc == 0) {
        rc = cmd_backup_write_bytes(fd, hk_buf_str(&text), err);
    }
    if (rc == 0) {
        rc = runs ? backup_from_server(o->where.dir, fd, err)
                  : backup_from_files(o->where.dir, fd, err);
    }
    if (rc == 0 && fsync(fd) < 0) {
        return hk_fail(err, HK_EIO, "cannot write the backup: %m");
    }
    return rc;
}

/* Uses a temporary name until the file is complete and was read back. */
static int backup_make(const struct backup_opts *o, struct backup_file *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf part = {0};
    int fd, rc;

    hk_buf_addf(&part, "%s.part", o->file);
    fd = open(part.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fchmod(fd, 0600) < 0) {
        return hk_fail(err, HK_EIO, "cannot write '%s': %m", part.data);
    }
    rc = backup_write(o, fd, err);
    close(fd);
    if (rc == 0) {
        rc = backup_file_read(part.data, ret, err);
    }
    if (rc == 0 && rename(part.data, o->file) < 0) {
        rc = hk_fail(err, HK_EIO, "cannot write '%s': %m", o->file);
    }
    if (rc < 0) {
        unlink(part.data);
    }
    return rc;
}

static int backup_run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf dir = {0}, line = {0};
    struct backup_opts o = {0};
    struct backup_file made = {0};
    struct hk_err err = {0};
    const int rc = verb_parse(v, argc, argv, &o);
    int status = EXIT_BAD;

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (!o.file) {
        return verb_complain(
            "backup: the name of the FILE to write is missing (see 'hekla help backup')");
    }
    if (where_settle(&o.where.dir, &dir, &err) < 0 || backup_make(&o, &made, &err) < 0) {
        verb_complain("backup: %s", err.text);
    } else {
        hk_buf_addf(&line, "%u object%s as of revision %llu, and %u file%s of credentials: %s\n",
                    made.copy.objs.len, made.copy.objs.len == 1 ? "" : "s",
                    (unsigned long long)made.copy.rev, made.parts.len,
                    made.parts.len == 1 ? "" : "s", o.file);
        status = verb_print(&line);
    }
    backup_file_fini(&made);
    return status;
}

const struct verb verb_backup = {
    .name = "backup",
    .args = "FILE",
    .about = "write everything that a server stores into one file",
    .options = options,
    .text = "Writes all objects of the 'hekla up' or 'hekla apiserver' that uses the directory, "
            "as of one revision, and the credentials of the directory. The server continues "
            "meanwhile, and writes do not wait. When no server runs, the files of the directory "
            "are read.\n"
            "The file is text with checksums; it gets its name only when it is complete and has "
            "been read back. It contains every Secret, the keys of the authority and of service "
            "accounts, and the tokens. Only its owner can read it: everyone who can read it "
            "controls the cluster.\n"
            "History, volumes of pods and their output are not included.",
    .rest = "EXIT STATUS\n"
            "       0  the file is complete\n"
            "       1  the file could not be written; one line on standard error says why\n"
            "\n"
            "EXAMPLES\n"
            "           hekla backup /backup/hekla-$(date +%F)\n"
            "           hekla restore --data-dir /var/lib/hekla /backup/hekla-2026-01-02\n",
    .run = backup_run,
};
