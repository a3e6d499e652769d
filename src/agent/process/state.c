// SPDX-License-Identifier: Apache-2.0
// Records of containers on disk, so that the next agent finds them: the identity of the shim, the
// end of the container, and what exec commands need. The shim (start.c) writes the first
// two, this file the rest. The start time detects a pid that was reused, also after a reboot.

#include "agent/process/state.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_MAX ((size_t)4 << 20)

char *process_path(const char *fmt, ...)
{
    struct hk_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    return b.data;
}

int process_state_mkdir(const char *path, struct hk_err *err)
{
    if (mkdir(path, 0711) < 0 && errno != EEXIST) {
        return hk_fail(err, HK_EIO, "cannot make directory '%s': %m", path);
    }
    return 0;
}

int process_state_write(const char *path, struct hk_str text, struct hk_err *err)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0) {
        return hk_fail(err, HK_EIO, "cannot write '%s': %m", path);
    }
    const bool whole = write(fd, text.s, text.n) == (ssize_t)text.n;
    close(fd);
    return whole ? 0 : hk_fail(err, HK_EIO, "cannot write '%s': %m", path);
}

int process_state_reserve(const char *path, struct hk_err *err)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int why = fd < 0 ? errno : posix_fallocate(fd, 0, PROCESS_RECORD);

    if (fd >= 0) {
        close(fd);
    }
    errno = why;
    return why ? hk_fail(err, HK_EIO, "cannot write '%s': %m", path) : 0;
}

static int process_state_remove_entry(const char *path, const struct stat *st, int type,
                                      struct FTW *ftw)
{
    remove(path); /* the next cleanup finds what is left */
    return 0;
}

bool process_state_remove(const char *path)
{
    nftw(path, process_state_remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    return access(path, F_OK) < 0 && errno == ENOENT;
}

/* n numbers, separated by blanks. */
static bool read_ints(struct hk_str text, int64_t *ret, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        struct hk_str part;
        if (!hk_str_cut(&text, ' ', &part) || !hk_str_int(part, &ret[k])) {
            return false;
        }
    }
    return true;
}

static bool is_status(int64_t v)
{
    return v >= 0 && v <= 255;
}

int process_state_end(const char *path, struct hk_buf *text, struct runtime_end *ret,
                      struct hk_err *err)
{
    int64_t v[5];
    struct hk_str rest, head;
    const int rc = hk_read_file(path, STATE_MAX, text, err);

    if (rc < 0) {
        return rc;
    }
    rest = hk_buf_str(text);
    if (!hk_str_cut(&rest, '\n', &head) || !read_ints(head, v, HK_LEN(v)) || !is_status(v[0]) ||
        !is_status(v[1])) {
        return hk_fail(err, HK_EINVAL, "'%s' is not the record of an end", path);
    }
    *ret = (struct runtime_end){
        .code = (int)v[0],
        .signo = (int)v[1],
        .never_ran = v[2] != 0,
        .again = v[2] > 1,
        .message = rest.s ? rest.s : "",
        .start_ns = v[3],
        .end_ns = v[4],
    };
    return 0;
}

int process_state_shim(const char *path, struct process_shim *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int64_t v[3];
    const int rc = hk_read_file(path, STATE_MAX, &text, err);

    if (rc < 0) {
        return rc;
    }
    if (!read_ints(hk_str_trim(hk_buf_str(&text)), v, HK_LEN(v)) || v[0] <= 0 || v[0] > INT_MAX) {
        return hk_fail(err, HK_EINVAL, "'%s' does not name a process", path);
    }
    *ret = (struct process_shim){.pid = v[0], .start_ticks = v[1], .start_ns = v[2]};
    return 0;
}

bool process_state_stat(struct hk_str text, int64_t *ret_pid, int64_t *ret_ticks)
{
    struct hk_str rest = text, part;
    const char *name_end = memrchr(text.s, ')', text.n);

    if (!name_end || !hk_str_cut(&rest, ' ', &part) || !hk_str_int(part, ret_pid)) {
        return false;
    }
    /* Field 3 follows the name, which may contain anything. */
    rest = (struct hk_str){name_end + 1, text.n - (size_t)(name_end + 1 - text.s)};
    for (int field = 2; field <= 22; field++) {
        if (!hk_str_cut(&rest, ' ', &part)) {
            return false;
        }
    }
    return hk_str_int(part, ret_ticks);
}

int process_state_open(const struct process_shim *s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int64_t pid, ticks;
    char path[64];
    const int pidfd = pidfd_open((pid_t)s->pid, 0);

    if (pidfd < 0) {
        return -1;
    }
    /* Read after the pidfd is open, so that both refer to the same process. */
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)s->pid);
    if (hk_read_file(path, STATE_MAX, &text, NULL) < 0 ||
        !process_state_stat(hk_buf_str(&text), &pid, &ticks) || ticks != s->start_ticks) {
        close(pidfd);
        return -1;
    }
    return pidfd;
}

/* ---- specs for exec commands ---- */

/* Each ends with NUL: cwd, uid, gid, dropped capabilities, no_new_privs, number of groups, the
 * groups, the environment. */
int process_state_save_spec(const char *path, const struct runtime_container *c, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text, "%s%c%lld%c%lld%c%lld%c%d%c%u%c", c->cwd ? c->cwd : "/", 0,
                (long long)c->uid, 0, (long long)c->gid, 0, (long long)c->rights.dropped, 0,
                c->rights.no_new, 0, c->ngroup, 0);
    for (uint32_t k = 0; k < c->ngroup; k++) {
        hk_buf_addf(&text, "%lld%c", (long long)c->groups[k], 0);
    }
    for (const char *const *e = c->env; *e; e++) {
        hk_buf_add(&text, *e, strlen(*e) + 1);
    }
    return process_state_write(path, hk_buf_str(&text), err);
}

static bool cut_int(struct hk_str *rest, int64_t *ret)
{
    struct hk_str part;

    return hk_str_cut(rest, '\0', &part) && hk_str_int(part, ret);
}

static bool parse_spec(struct process_spec *s)
{
    struct hk_str rest = hk_buf_str(&s->text), part;
    int64_t ngroup, group, dropped, no_new;

    if (!hk_str_cut(&rest, '\0', &part)) {
        return false;
    }
    s->cwd = part.s;
    if (!cut_int(&rest, &s->uid) || !cut_int(&rest, &s->gid) || !cut_int(&rest, &dropped) ||
        !cut_int(&rest, &no_new) || !cut_int(&rest, &ngroup)) {
        return false;
    }
    s->rights = (struct runtime_rights){.dropped = (uint64_t)dropped, .no_new = no_new != 0};
    for (int64_t k = 0; k < ngroup; k++) {
        if (!cut_int(&rest, &group)) {
            return false;
        }
        hk_vec_push(&s->groups, group);
    }
    while (hk_str_cut(&rest, '\0', &part)) {
        if (part.n > 0) { /* the last NUL is an end, not a separator */
            hk_vec_push(&s->env, part.s);
        }
    }
    hk_vec_push(&s->env, NULL);
    return true;
}

int process_state_load_spec(const char *path, struct process_spec *ret, struct hk_err *err)
{
    const int rc = hk_read_file(path, STATE_MAX, &ret->text, err);

    if (rc < 0) {
        return rc;
    }
    return parse_spec(ret) ? 0
                           : hk_fail(err, HK_EINVAL, "'%s' does not describe a container", path);
}

void process_spec_fini(struct process_spec *s)
{
    hk_buf_fini(&s->text);
    hk_vec_fini(&s->groups);
    hk_vec_fini(&s->env);
}
