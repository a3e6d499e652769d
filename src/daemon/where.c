// SPDX-License-Identifier: Apache-2.0
// Data directories of servers: default, owner, and running server. Uses fcntl locks, which belong
// to a process and not to a descriptor: the shims of pods are forks that outlive the server.
#include "daemon/where.h"

#include "codec/json.h"
#include "codec/timefmt.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT_DIR "/var/lib/hekla"
#define FILE_NAME "server"

enum { MAX_TEXT = 1024 };

/* ---- the default directory ---- */

const struct option_row where_options[] = {
    ROW_TEXT_OR('d', "data-dir", "DIR", struct where_opts, dir, WHERE_DEFAULT_TEXT,
                "The data directory of the server."),
    ROW_END,
};

/* $HOME, else the home in the password database. */
static const char *where_home_dir(void)
{
    const char *set = getenv("HOME");
    const struct passwd *pw;

    if (set && set[0] == '/') {
        return set;
    }
    pw = getpwuid(geteuid());
    return pw && pw->pw_dir[0] == '/' ? pw->pw_dir : NULL;
}

int where_default(struct hk_buf *ret, struct hk_err *err)
{
    const char *state = getenv("XDG_STATE_HOME");

    if (geteuid() == 0) {
        hk_buf_adds(ret, ROOT_DIR);
        return 0;
    }
    if (state && state[0] == '/') { /* the specification ignores relative ones */
        hk_buf_addf(ret, "%s/hekla", state);
        return 0;
    }
    if (!where_home_dir()) {
        return hk_fail(err, HK_ENOTFOUND, "there is no home directory, use --data-dir DIR");
    }
    hk_buf_addf(ret, "%s/.local/state/hekla", where_home_dir());
    return 0;
}

int where_settle(const char **dir, struct hk_buf *own, struct hk_err *err)
{
    int rc;

    if (*dir) {
        return 0;
    }
    rc = where_default(own, err);
    *dir = rc < 0 ? NULL : own->data;
    return rc;
}

static int where_make_dir(const char *dir, struct hk_err *err)
{
    struct stat st;

    if (mkdir(dir, 0700) == 0) {
        return 0;
    }
    if (errno == EEXIST && stat(dir, &st) == 0) {
        return S_ISDIR(st.st_mode) ? 0 : hk_fail(err, HK_EIO, "'%s' is not a directory", dir);
    }
    return hk_fail(err, HK_EIO, "cannot create the directory '%s': %m", dir);
}

int where_make(const char *dir, struct hk_err *err)
{
    HK_AUTO(hk_freep) char *path = hk_strdup(dir);
    struct stat st;
    int rc = 0;

    if (dir[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "the name of the data directory is empty");
    }
    /* Existing parents may be unreadable or unwritable: only create missing ones. */
    for (char *at = path + 1; rc == 0 && (at = strchr(at, '/')); at++) {
        *at = '\0';
        rc = stat(path, &st) == 0 ? 0 : where_make_dir(path, err);
        *at = '/';
    }
    return rc < 0 ? rc : where_make_dir(dir, err);
}

/* ---- claims ---- */

static void where_path_of(const char *dir, struct hk_buf *out)
{
    hk_buf_addf(out, "%s/" FILE_NAME, dir);
}

/* The process that holds the lock; 0: none; -1: one that is not visible from here. */
static pid_t holder(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK) {
        return 0;
    }
    return lock.l_pid > 0 ? lock.l_pid : -1;
}

int where_claim(const char *dir, int *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd;

    where_path_of(dir, &path);
    fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return hk_fail(err, HK_EIO, "cannot write to the directory '%s': %m", dir);
    }
    if (fcntl(fd, F_SETLK, &lock) < 0) {
        const int why = errno;
        const pid_t pid = holder(fd);

        close(fd);
        if (why != EAGAIN && why != EACCES) {
            return hk_fail(err, HK_EIO, "cannot lock '%s': %s", path.data, strerror(why));
        }
        return hk_fail(err, HK_EBUSY,
                       "the directory '%s' is in use by another server, process %d "
                       "(see 'hekla status' and 'hekla down')",
                       dir, (int)pid);
    }
    if (ftruncate(fd, 0) < 0) { /* removes the text of the last server */
        close(fd);
        return hk_fail(err, HK_EIO, "cannot write '%s': %m", path.data);
    }
    *ret = fd;
    return 0;
}

int where_tell(int claim, const char *verb, const char *url, int64_t now_ns, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text,
                "{\"verb\":\"%s\",\"version\":\"" HEKLA_VERSION "\",\"url\":\"%s\",\"since\":\"",
                verb, url);
    time_write(now_ns, &text);
    hk_buf_adds(&text, "\"}\n");
    if (pwrite(claim, text.data, text.len, 0) != (ssize_t)text.len) {
        return hk_fail(err, HK_EIO, "cannot write the file '" FILE_NAME "': %m");
    }
    return 0;
}

/* ---- finding the server ---- */

static void where_keep_private(const struct json *doc, const char *key, char *ret, size_t size)
{
    snprintf(ret, size, "%.*s", HK_FMT(json_str(json_get(doc, key), HK_STR(""))));
}

static void where_read_text(int fd, struct where_server *s)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    char text[MAX_TEXT];
    const ssize_t n = pread(fd, text, sizeof(text), 0);
    struct json doc;

    if (n <= 0 || json_parse((struct hk_str){text, (size_t)n}, 0, &mem, &doc, NULL) < 0) {
        return; /* not ready yet */
    }
    where_keep_private(&doc, "verb", s->verb, sizeof(s->verb));
    where_keep_private(&doc, "version", s->version, sizeof(s->version));
    where_keep_private(&doc, "url", s->url, sizeof(s->url));
    where_keep_private(&doc, "since", s->since, sizeof(s->since));
}

/* A pid may be reused: it is the right process if it holds the lock after the pidfd was opened. */
static int find_holder(int fd, const char *dir, struct where_server *s, struct hk_err *err)
{
    const pid_t pid = holder(fd);

    if (pid == 0) {
        return hk_fail(err, HK_ENOTFOUND, "no server runs in '%s'", dir);
    }
    s->pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
    if (s->pidfd < 0 && pid > 0 && errno != ESRCH) {
        return hk_fail(err, HK_EIO, "cannot reach the server in '%s', process %d: %m", dir,
                       (int)pid);
    }
    if (pid < 0) {
        return hk_fail(err, HK_EBUSY, "the server in '%s' runs in another pid namespace", dir);
    }
    if (s->pidfd < 0 || holder(fd) != pid) {
        return hk_fail(err, HK_ENOTFOUND, "no server runs in '%s'", dir);
    }
    s->pid = pid;
    return 0;
}

int where_find(const char *dir, struct where_server *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct where_server s = {.pidfd = -1};
    int fd, rc;

    where_path_of(dir, &path);
    fd = open(path.data, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT || errno == ENOTDIR
                   ? hk_fail(err, HK_ENOTFOUND, "no server runs in '%s'", dir)
                   : hk_fail(err, HK_EIO, "cannot read '%s': %m", path.data);
    }
    rc = find_holder(fd, dir, &s, err);
    if (rc == 0) {
        where_read_text(fd, &s);
        *ret = s;
    } else {
        where_server_fini(&s);
    }
    close(fd);
    return rc;
}

void where_server_fini(struct where_server *s)
{
    if (s->pidfd >= 0) {
        close(s->pidfd);
    }
    *s = (struct where_server){.pidfd = -1};
}
