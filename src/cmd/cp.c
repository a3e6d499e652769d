// SPDX-License-Identifier: Apache-2.0
// hekla cp: copies files and directories to and from pods. A file is read or written by a command
// in the pod; a directory goes through tar on both sides. Data from a pod is untrusted: a directory
// is unpacked into an empty one next to the target, links that lead out of it are skipped, and only
// then it is moved into place.
#include "cmd/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct cp {
    struct remote_opts o;
    const char *from, *to;
    struct remote r;
};

/* ---- remote and local commands ---- */

/* Runs a command in the pod that must succeed, with one of its streams on fd. */
static int there(struct cp *c, const char *const *argv, int in, int out, struct hk_err *err)
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
static int is_there(struct cp *c, const char *what, const char *path, struct hk_err *err)
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
static int cp_join(struct cp *c, const char *const *argv_there, const char *const *argv_here,
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

static const char *base_of(struct cp *c, const char *path)
{
    return basename(hk_arena_printf(&c->r.user.mem, "%s", path));
}

static const char *cp_dir_of(struct cp *c, const char *path)
{
    return dirname(hk_arena_printf(&c->r.user.mem, "%s", path));
}

/* The target inside an existing directory has the name of the source. */
static const char *inside(struct cp *c, const char *dir, const char *name)
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

static int cp_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
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

static int fetch_dir(struct cp *c, const char *from, const char *to, struct hk_err *err)
{
    char *temp = (char *)hk_arena_printf(&c->r.user.mem, "%s/.hekla-cp-XXXXXX", cp_dir_of(c, to));
    const char *const pack[] = {"tar", "-cf", "-", "-C", from, ".", NULL};
    int rc;

    if (!mkdtemp(temp)) {
        return hk_fail(err, HK_EIO, "cannot create a directory in '%s': %m", cp_dir_of(c, to));
    }
    const char *const unpack[] = {"tar", "-xof", "-", "-C", temp, NULL};
    rc = cp_join(c, pack, unpack, true, err);
    if (rc == 0 && nftw(temp, drop_link, 16, FTW_PHYS) != 0) {
        rc = hk_fail(err, HK_EIO, "cannot read the directory '%s': %m", temp);
    }
    rc = rc < 0 ? rc : settle_dir(temp, to, err);
    nftw(temp, cp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc;
}

static int fetch_file(struct cp *c, const char *from, const char *to, struct hk_err *err)
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

static int cp_fetch(struct cp *c, const char *from, const char *to, struct hk_err *err)
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

static int bring_dir(struct cp *c, const char *from, const char *to, struct hk_err *err)
{
    const char *const make[] = {"mkdir", "-p", "--", to, NULL};
    const char *const unpack[] = {"tar", "-xof", "-", "-C", to, NULL};
    const char *const pack[] = {"tar", "-cf", "-", "-C", from, ".", NULL};
    const int rc = there(c, make, -1, STDOUT_FILENO, err);

    return rc < 0 ? rc : cp_join(c, unpack, pack, false, err);
}

static int bring_file(struct cp *c, const char *from, const char *to, unsigned mode,
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

static int bring(struct cp *c, const char *from, const char *to, struct hk_err *err)
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

/* ---- the verb ---- */

static const struct option_row options[] = {
    ROW_INCLUDE(struct cp, o, remote_options),
    ROW_ARGUMENT("SRC", struct cp, from),
    ROW_ARGUMENT("DST", struct cp, to),
    ROW_END,
};

/* The path after the colon of POD:PATH; NULL for a local path. */
static const char *path_in_pod(const char *typed)
{
    const char *colon = strchr(typed, ':');

    return colon && colon > typed && typed[0] != '/' && typed[0] != '.' ? colon + 1 : NULL;
}

static int cp_copy_tree(struct cp *c, struct hk_err *err)
{
    const char *from = path_in_pod(c->from), *to = path_in_pod(c->to);
    const char *typed = from ? c->from : c->to, *path = from ? from : to;

    if (!from == !to) {
        return hk_fail(err, HK_EINVAL,
                       "one of SRC and DST must be POD:PATH, and the other a path of this machine");
    }
    if (path[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "'%s' has no path behind the colon", typed);
    }
    int rc = remote_open(&c->r, &c->o, err);
    const char *pod = hk_arena_printf(&c->r.user.mem, "%.*s", (int)(path - 1 - typed), typed);
    rc = rc < 0 ? rc : remote_find(&c->r, pod, err);
    if (rc == 0) {
        rc = from ? cp_fetch(c, from, c->to, err) : bring(c, c->from, to, err);
    }
    remote_close(&c->r);
    return rc;
}

static int cp_run(const struct verb *v, int argc, char **argv)
{
    struct cp c = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &c);

    if (rc != 0) {
        return user_parsed(rc);
    }
    if (!c.to) {
        verb_complain("cp: SRC and DST are required (see 'hekla help cp')");
        return USER_TROUBLE;
    }
    rc = cp_copy_tree(&c, &err);
    return rc < 0 ? user_fail(v, rc, &err) : USER_OK;
}

const struct verb verb_cp = {
    .name = "cp",
    .args = "SRC DST",
    .about = "copy files and directories to and from pods",
    .options = options,
    .text = "Copies a file, or a directory with everything in it. One of SRC and DST is POD:PATH, "
            "where POD may be JOB[/TASK[/INDEX]] as in 'hekla exec'; the other is a path of this "
            "machine. Write a path with a colon in its name as ./like:this.\n"
            "When DST is an existing directory, the copy goes into it under its own name. A file "
            "keeps its mode when it is copied to a pod, and its execute permission when it is "
            "copied from one; the owner is the user who writes.\n"
            "The pod needs test, cat and sh for files, and tar and mkdir for directories. Links "
            "in a directory of a pod that lead out of it are not copied, and are reported.",
    .rest = "EXAMPLES\n"
            "       hekla cp train/worker/0:/results .\n"
            "       hekla cp model.bin train:/tmp/model.bin\n"
            "\n"
            "EXIT STATUS\n"
            "       0 when everything was copied, else 2.\n",
    .run = cp_run,
};
