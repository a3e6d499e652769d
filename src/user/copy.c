// SPDX-License-Identifier: Apache-2.0
// Copies files and directories to and from pods. A file is read or written by a command in the
// pod; a directory goes through tar on both sides. Data from a pod is untrusted: a directory
// is unpacked into an empty one next to the target, links that lead out of it are skipped, and only
// then it is moved into place.
#include "user/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct copy {
    struct remote r;
};

/* ---- remote and local commands ---- */

/* Runs a command in the pod that must succeed, with one of its streams on fd. */
static int there(struct copy *c, const char *const *argv, int in, int out, struct hk_err *err)
{
    const int code = remote_run(
        &c->r,
        &(struct remote_command){.argv = argv, .in = in, .out = out, .err_out = STDERR_FILENO},
        err);

    return code <= 0 ? code
                     : hk_fail(err, HK_EIO, "'%s' in pod '%s' ended with exit status %d", argv[0],
                               c->r.pod, code);
}

/* Returns 1 if test(1) in the pod succeeds. */
static int is_there(struct copy *c, const char *what, const char *path, struct hk_err *err)
{
    const char *const argv[] = {"test", what, path, NULL};
    const int code =
        remote_run(&c->r,
                   &(struct remote_command){
                       .argv = argv, .in = -1, .out = STDOUT_FILENO, .err_out = STDERR_FILENO},
                   err);

    return code <= 1 ? (code < 0 ? code : code == 0)
                     : hk_fail(err, HK_EIO, "'test' in pod '%s' ended with exit status %d",
                               c->r.pod, code);
}

/* Starts a local program that reads from or writes to the pipe. */
static pid_t start_here(const char *const *argv, bool reads, int *ret_fd, struct hk_err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0) {
        return hk_fail(err, HK_EIO, "cannot create a pipe: %m");
    }
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[!reads], reads ? STDIN_FILENO : STDOUT_FILENO);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(ends[!reads]);
    if (pid < 0) {
        close(ends[reads]);
        return hk_fail(err, HK_EIO, "cannot fork: %m");
    }
    *ret_fd = ends[reads];
    return pid;
}

static int wait_here(pid_t pid, const char *name, struct hk_err *err)
{
    int status;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        return hk_fail(err, HK_ENOTFOUND, "cannot run '%s' on this machine", name);
    }
    return status == 0 ? 0 : hk_fail(err, HK_EIO, "'%s' failed on this machine", name);
}

static int run_here(const char *const *argv, struct hk_err *err)
{
    int fd;
    const pid_t pid = start_here(argv, true, &fd, err);

    if (pid < 0) {
        return pid;
    }
    close(fd);
    return wait_here(pid, argv[0], err);
}

/* Connects a command in the pod and a local one by a pipe. */
static int copy_join(struct copy *c, const char *const *argv_there, const char *const *argv_here,
                     bool reads_here, struct hk_err *err)
{
    struct hk_err late = {0};
    int fd;
    const pid_t pid = start_here(argv_here, reads_here, &fd, err);

    if (pid < 0) {
        return pid;
    }
    const int rc = there(c, argv_there, reads_here ? -1 : fd, reads_here ? fd : STDOUT_FILENO, err);
    close(fd);
    const int ended = wait_here(pid, argv_here[0], &late);
    if (rc == 0 && ended < 0) {
        *err = late;
    }
    return rc < 0 ? rc : ended;
}

/* ---- names ---- */

static const char *base_of(struct copy *c, const char *path)
{
    return basename(hk_arena_printf(&c->r.user.mem, "%s", path));
}

static const char *copy_dir_of(struct copy *c, const char *path)
{
    return dirname(hk_arena_printf(&c->r.user.mem, "%s", path));
}

/* The target inside an existing directory has the name of the source. */
static const char *inside(struct copy *c, const char *dir, const char *name)
{
    const char *base = base_of(c, name);

    if (strcmp(base, ".") == 0 || strcmp(base, "..") == 0 || strcmp(base, "/") == 0) {
        return dir;
    }
    return hk_arena_printf(&c->r.user.mem, "%s/%s", dir, base);
}

static bool is_dir_here(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- links out of the directory ---- */

/* Allows ".." only at the start: after another link it could lead anywhere. */
static bool leads_out(struct hk_str target, int depth)
{
    struct hk_str part;
    bool down = false;

    if (target.n > 0 && target.s[0] == '/') {
        return true;
    }
    while (hk_str_cut(&target, '/', &part)) {
        if (hk_str_is(part, "..")) {
            if (down || depth-- == 0) {
                return true;
            }
        } else if (part.n > 0 && !hk_str_is(part, ".")) {
            down = true;
        }
    }
    return false;
}

static int drop_link(const char *path, const struct stat *st, int type, struct FTW *at)
{
    char target[PATH_MAX];
    ssize_t n;

    if (type != FTW_SL) {
        return 0;
    }
    n = readlink(path, target, sizeof(target));
    if (n < 0 || n == (ssize_t)sizeof(target) ||
        leads_out((struct hk_str){target, (size_t)n}, at->level - 1)) {
        fprintf(stderr, "hekla: cp: skipped a link that leads out of the directory: %s -> %.*s\n",
                path + at->base, (int)HK_MAX(n, 0), target);
        return unlink(path);
    }
    return 0;
}

static int copy_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    remove(path);
    return 0;
}

/* ---- from a pod ---- */

static int settle_dir(const char *temp, const char *to, struct hk_err *err)
{
    const char *const merge[] = {"cp", "-aT", "--", temp, to, NULL};
    const mode_t mask = umask(0);

    umask(mask);
    chmod(temp, 0777 & ~mask);
    if (is_dir_here(to)) {
        return run_here(merge, err);
    }
    return rename(temp, to) < 0 ? hk_fail(err, HK_EIO, "cannot create '%s': %m", to) : 0;
}

static int fetch_dir(struct copy *c, const char *from, const char *to, struct hk_err *err)
{
    char *temp = (char *)hk_arena_printf(&c->r.user.mem, "%s/.hekla-cp-XXXXXX", copy_dir_of(c, to));
    const char *const pack[] = {"tar", "-cf", "-", "-C", from, ".", NULL};
    int rc;

    if (!mkdtemp(temp)) {
        return hk_fail(err, HK_EIO, "cannot create a directory in '%s': %m", copy_dir_of(c, to));
    }
    const char *const unpack[] = {"tar", "-xof", "-", "-C", temp, NULL};
    rc = copy_join(c, pack, unpack, true, err);
    if (rc == 0 && nftw(temp, drop_link, 16, FTW_PHYS) != 0) {
        rc = hk_fail(err, HK_EIO, "cannot read the directory '%s': %m", temp);
    }
    if (rc == 0) {
        rc = settle_dir(temp, to, err);
    }
    nftw(temp, copy_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc;
}

static int fetch_file(struct copy *c, const char *from, const char *to, struct hk_err *err)
{
    char *temp = (char *)hk_arena_printf(&c->r.user.mem, "%s.XXXXXX", to);
    const char *const argv[] = {"cat", "--", from, NULL};
    const mode_t mask = umask(0);
    const int runs = is_there(c, "-x", from, err);
    int rc = runs;

    umask(mask);
    if (rc < 0) {
        return rc;
    }
    const int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0) {
        return hk_fail(err, HK_EIO, "cannot create '%s': %m", to);
    }
    rc = there(c, argv, -1, fd, err);
    fchmod(fd, (runs ? 0777 : 0666) & ~mask);
    close(fd);
    if (rc == 0 && rename(temp, to) < 0) {
        rc = hk_fail(err, HK_EIO, "cannot create '%s': %m", to);
    }
    if (rc < 0) {
        unlink(temp);
    }
    return rc;
}

static int copy_fetch(struct copy *c, const char *from, const char *to, struct hk_err *err)
{
    const char *at = is_dir_here(to) ? inside(c, to, from) : to;
    const int dir = is_there(c, "-d", from, err);

    if (dir < 0) {
        return dir;
    }
    if (!dir && is_dir_here(at)) {
        return hk_fail(err, HK_EINVAL, "'%s' is a directory on this machine and a file in the pod",
                       at);
    }
    return dir ? fetch_dir(c, from, at, err) : fetch_file(c, from, at, err);
}

/* ---- to a pod ---- */

static int bring_dir(struct copy *c, const char *from, const char *to, struct hk_err *err)
{
    const char *const make[] = {"mkdir", "-p", "--", to, NULL};
    const char *const unpack[] = {"tar", "-xof", "-", "-C", to, NULL};
    const char *const pack[] = {"tar", "-cf", "-", "-C", from, ".", NULL};
    const int rc = there(c, make, -1, STDOUT_FILENO, err);

    return rc < 0 ? rc : copy_join(c, unpack, pack, false, err);
}

static int bring_file(struct copy *c, const char *from, const char *to, unsigned mode,
                      struct hk_err *err)
{
    const char *const argv[] = {
        "sh", "-c", "cat >\"$1\" && chmod \"$2\" \"$1\"",
        "sh", to,   hk_arena_printf(&c->r.user.mem, "%o", mode & 0777),
        NULL,
    };
    const int fd = open(from, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return hk_fail(err, HK_EIO, "cannot read '%s': %m", from);
    }
    const int rc = there(c, argv, fd, STDOUT_FILENO, err);
    close(fd);
    return rc;
}

static int bring(struct copy *c, const char *from, const char *to, struct hk_err *err)
{
    char real[PATH_MAX];
    struct stat st;

    if (stat(from, &st) < 0 || !realpath(from, real)) {
        return hk_fail(err, HK_ENOTFOUND, "cannot read '%s': %m", from);
    }
    const int dir = is_there(c, "-d", to, err);
    if (dir < 0) {
        return dir;
    }
    const char *at = dir ? inside(c, to, S_ISDIR(st.st_mode) ? real : from) : to;
    return S_ISDIR(st.st_mode) ? bring_dir(c, from, at, err)
                               : bring_file(c, from, at, st.st_mode, err);
}

/* ---- both ways ---- */

/* The path after the colon of POD:PATH; NULL for a local path. */
static const char *path_in_pod(const char *typed)
{
    const char *colon = strchr(typed, ':');

    return colon && colon > typed && typed[0] != '/' && typed[0] != '.' ? colon + 1 : NULL;
}

/* The copy between a path here and one in the pod that `typed` begins with. */
static int copy_with_pod(struct copy *c, const struct copy_opts *o, const char *typed,
                         const char *path, struct hk_err *err)
{
    int rc = remote_open(&c->r, &o->remote, err);

    if (rc < 0) {
        return rc;
    }
    const char *pod = hk_arena_printf(&c->r.user.mem, "%.*s", (int)(path - 1 - typed), typed);
    rc = remote_find(&c->r, pod, err);
    if (rc < 0) {
        return rc;
    }
    return typed == o->from ? copy_fetch(c, path, o->to, err) : bring(c, o->from, path, err);
}

int copy_files(const struct copy_opts *o, struct hk_err *err)
{
    const char *from = path_in_pod(o->from), *to = path_in_pod(o->to);
    const char *typed = from ? o->from : o->to, *path = from ? from : to;
    struct copy c = {0};

    if (!from == !to) {
        return hk_fail(err, HK_EINVAL,
                       "one of SRC and DST must be POD:PATH, and the other a path of this machine");
    }
    if (path[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "'%s' has no path behind the colon", typed);
    }
    const int rc = copy_with_pod(&c, o, typed, path, err);
    remote_close(&c.r);
    return rc;
}
