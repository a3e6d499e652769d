// SPDX-License-Identifier: Apache-2.0
// Starts shims from a small helper process. A launch travels through a socket: a head with the
// descriptors, then the serialized launch. The spawner acknowledges it, forks the shim and answers
// with its pidfd. Without the acknowledgement nothing has started: another spawner may get the
// launch. The spawner exits when the socket closes, however the agent dies. A dead spawner is
// replaced.
#include "agent/process/spawner.h"

#include "agent/process/process_priv.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAPS_MAX ((size_t)1 << 20)

enum { FDS_MAX = PROCESS_HIERARCHIES + 8, SOCKET_FD = 3 };

struct spawner {
    int fd; /* -1: dead */
    pid_t pid;
    char *group; /* directory of its cgroup; NULL: the daemon's */
};

struct head {
    uint32_t len, nfd;
};

struct answer {
    int32_t why; /* errno; 0: forked, with a pidfd */
};

/* ---- serialization ---- */

/* Serializes (out is set) or parses a launch. One code path for both directions keeps them in sync.
 * Parsing trusts the writer, which is the same program. */
struct wire {
    struct hk_buf *out;
    const char *at;
    struct hk_arena *mem;
    int fds[FDS_MAX];
    uint32_t nfd;
};

static void spawner_copy_field(struct wire *w, void *p, size_t n)
{
    if (w->out) {
        hk_buf_add(w->out, p, n);
    } else {
        memcpy(p, w->at, n);
        w->at += n;
    }
}

static void pass_str(struct wire *w, const char **s)
{
    uint8_t is = *s != NULL;

    spawner_copy_field(w, &is, sizeof(is));
    if (!is) {
        return;
    }
    if (w->out) {
        hk_buf_add(w->out, *s, strlen(*s) + 1);
    } else {
        *s = w->at;
        w->at += strlen(w->at) + 1;
    }
}

/* A list that ends with NULL. */
static void pass_list(struct wire *w, const char *const **list)
{
    uint32_t n = 0;
    const char **copy = NULL;

    while (w->out && (*list)[n]) {
        n++;
    }
    spawner_copy_field(w, &n, sizeof(n));
    if (!w->out) {
        *list = copy = hk_arena_zalloc(w->mem, (n + 1) * sizeof(*copy));
    }
    for (uint32_t k = 0; k < n; k++) {
        const char *word = w->out ? (*list)[k] : "";
        pass_str(w, &word);
        if (!w->out) {
            copy[k] = word;
        }
    }
}

static void pass_groups(struct wire *w, struct process_launch *l)
{
    if (w->out) {
        hk_buf_add(w->out, (const char *)l->groups, l->ngroup * sizeof(l->groups[0]));
        return;
    }
    int64_t *copy = hk_arena_zalloc(w->mem, (l->ngroup + 1) * sizeof(*copy));
    spawner_copy_field(w, copy, l->ngroup * sizeof(*copy));
    l->groups = copy;
}

static void pass_mounts(struct wire *w, struct process_launch *l)
{
    struct runtime_mount *copy =
        w->out ? NULL : hk_arena_zalloc(w->mem, (l->nmount + 1) * sizeof(*copy));

    for (uint32_t k = 0; k < l->nmount; k++) {
        struct runtime_mount m = w->out ? l->mounts[k] : (struct runtime_mount){0};
        spawner_copy_field(w, &m, sizeof(m));
        pass_str(w, &m.from);
        pass_str(w, &m.at);
        pass_str(w, &m.sub);
        if (!w->out) {
            copy[k] = m;
        }
    }
    if (!w->out) {
        l->mounts = copy;
        l->trees = hk_arena_zalloc(w->mem, (l->nmount + 1) * sizeof(*l->trees));
    }
}

static void pass_fd(struct wire *w, int *fd)
{
    if (*fd < 0) {
        return;
    }
    if (w->out) {
        w->fds[w->nfd++] = *fd;
    } else {
        *fd = w->fds[w->nfd++];
    }
}

static void pass_launch(struct wire *w, struct process_launch *l)
{
    spawner_copy_field(w, l, sizeof(*l)); /* plain fields need no translation */
    pass_list(w, &l->argv);
    pass_list(w, &l->env);
    pass_list(w, &l->covers);
    pass_str(w, &l->cwd);
    pass_str(w, &l->hostname);
    pass_str(w, &l->root);
    pass_str(w, &l->changes);
    pass_str(w, &l->scratch);
    pass_str(w, &l->end_name);
    pass_str(w, &l->log_name);
    pass_groups(w, l);
    pass_mounts(w, l);
    pass_fd(w, &l->state_fd);
    pass_fd(w, &l->log_fd);
    pass_fd(w, &l->join);
    pass_fd(w, &l->join_state);
    pass_fd(w, &l->ipc);
    pass_fd(w, &l->in);
    pass_fd(w, &l->out);
    pass_fd(w, &l->err_out);
    for (uint32_t k = 0; k < l->ngroup_fd; k++) {
        pass_fd(w, &l->group_fds[k]);
    }
}

/* ---- the socket ---- */

union control {
    struct cmsghdr head;
    char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

static bool send_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        const ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Sends a few bytes with descriptors. */
static bool send_fds(int fd, void *p, size_t n, const int *fds, uint32_t nfd)
{
    union control control = {0};
    struct iovec part = {p, n};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;

    if (nfd > 0) {
        m.msg_control = control.space;
        m.msg_controllen = CMSG_SPACE(nfd * sizeof(int));
        control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                        .cmsg_type = SCM_RIGHTS,
                                        .cmsg_len = CMSG_LEN(nfd * sizeof(int))};
        memcpy(CMSG_DATA(&control.head), fds, nfd * sizeof(int));
    }
    do {
        sent = sendmsg(fd, &m, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)n;
}

static bool recv_all(int fd, char *p, size_t n)
{
    while (n > 0) {
        const ssize_t got = recv(fd, p, n, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        p += got;
        n -= (size_t)got;
    }
    return true;
}

/* fds has space for FDS_MAX; they are close-on-exec. */
static bool recv_fds(int fd, void *p, size_t n, int *fds, uint32_t *ret_nfd)
{
    union control control = {0};
    struct iovec part = {p, n};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof(control.space)};
    ssize_t got;

    do {
        got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)n) {
        return false;
    }
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *ret_nfd = c ? (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;
    if (c) {
        memcpy(fds, CMSG_DATA(c), *ret_nfd * sizeof(int));
    }
    return true;
}

/* ---- in the spawner ---- */

static void close_all(const int *fds, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        close(fds[k]);
    }
}

/* Returns false when the agent closed the socket. */
static bool serve_one(int fd)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct wire w = {.mem = &mem};
    struct process_launch l;
    struct answer answer = {0};
    struct head head;
    const char taken = 1;
    int pidfd = -1;

    if (!recv_fds(fd, &head, sizeof(head), w.fds, &w.nfd)) {
        return false;
    }
    const uint32_t nfd = w.nfd;
    char *body = hk_arena_zalloc(&mem, head.len);
    if (nfd != head.nfd || !recv_all(fd, body, head.len)) {
        return false;
    }
    if (!send_all(fd, &taken, sizeof(taken))) {
        return false;
    }
    w.at = body;
    w.nfd = 0;
    pass_launch(&w, &l);
    l.clock = hk_clock_system();
    if (process_start_launch(&l, &pidfd) < 0) {
        answer.why = errno;
        pidfd = -1; /* the kernel may have set it before it failed */
    }
    close_all(w.fds, nfd);
    const bool sent = send_fds(fd, &answer, sizeof(answer), &pidfd, pidfd >= 0);
    close_all(&pidfd, pidfd >= 0);
    return sent;
}

/* All symbols were bound at load time: no later call searches the libraries. */
static bool is_bound(void)
{
    for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_BIND_NOW)) {
            return true;
        }
    }
    return false;
}

/* With a preloaded library, functions that a shim calls may be in it. */
static bool has_preloads(void)
{
    const char *list = getenv("LD_PRELOAD");

    return (list && *list) || access("/etc/ld.so.preload", F_OK) == 0;
}

/* Whether a path (with a slash) is a library other than libc, the only one that shims call. */
static bool is_foreign(struct hk_str path, const char *self)
{
    static const char *const own[] = {"/libc.so", "/ld-linux", "/libm.so"};
    const char *slash = memrchr(path.s, '/', path.n);
    const struct hk_str name = {slash, (size_t)(path.s + path.n - slash)};

    for (size_t k = 0; k < HK_LEN(own); k++) {
        if (hk_str_starts(name, own[k])) {
            return false;
        }
    }
    return !hk_str_is(path, self);
}

/* A fork costs time per mapping, and nine in ten mappings belong to libraries for network and
 * store: shims do not inherit them. */
static void forget_libraries(void)
{
    HK_AUTO(hk_buf_fini) struct hk_buf maps = {0};
    char self[PATH_MAX] = "";
    struct hk_str rest, line;

    if (!is_bound() || has_preloads() || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
        hk_read_file("/proc/self/maps", MAPS_MAX, &maps, NULL) < 0) {
        return;
    }
    rest = hk_buf_str(&maps);
    while (hk_str_cut(&rest, '\n', &line)) {
        const char *path = memchr(line.s, '/', line.n);
        uintptr_t from, to;

        if (path && sscanf(line.s, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 &&
            is_foreign((struct hk_str){path, (size_t)(line.s + line.n - path)}, self)) {
            madvise((void *)from, to - from, MADV_DONTFORK);
        }
    }
}

/* Keeps only its socket open, blocks signals, and its children need no wait. */
__attribute__((noreturn)) static void spawner_run(int fd)
{
    sigset_t all;

    prctl(PR_SET_NAME, "hekla-spawner");
    setsid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_IGN);
    if (fd != SOCKET_FD) {
        dup2(fd, SOCKET_FD);
    }
    close_range(SOCKET_FD + 1, ~0U, 0);
    const int null = open("/dev/null", O_RDWR);
    for (int k = 0; k < SOCKET_FD; k++) {
        dup2(null, k);
    }
    close(null);
    forget_libraries();
    while (serve_one(SOCKET_FD)) {
    }
    _exit(0);
}

/* ---- in the agent ---- */

/* The spawner waits for its first launch, so all shims start in the group. */
static void put_in_group(const struct spawner *n)
{
    HK_AUTO(hk_freep) char *path = n->group ? process_path("%s/cgroup.procs", n->group) : NULL;
    const int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        dprintf(fd, "%d", (int)n->pid); /* if this fails, the limit of the daemon's group applies */
        close(fd);
    }
}

static int spawner_fork_helper(struct spawner *n, struct hk_err *err)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return hk_fail(err, HK_EIO, "cannot make a socket for the spawner: %m");
    }
    const pid_t pid = fork();
    if (pid == 0) {
        spawner_run(ends[1]);
    }
    const int why = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        errno = why;
        return hk_fail(err, HK_EIO, "cannot fork the spawner: %m");
    }
    n->fd = ends[0];
    n->pid = pid;
    put_in_group(n);
    return 0;
}

static void spawner_stop_helper(struct spawner *n)
{
    if (n->fd >= 0) {
        close(n->fd); /* the spawner sees this and exits */
        waitpid(n->pid, NULL, 0);
        n->fd = -1;
    }
}

int spawner_new(struct spawner **ret, struct hk_err *err)
{
    struct spawner *n = hk_zalloc(sizeof(*n));
    const int rc = spawner_fork_helper(n, err);

    if (rc < 0) {
        hk_free(n);
        return rc;
    }
    *ret = n;
    return 0;
}

void spawner_free(struct spawner *n)
{
    if (n) {
        spawner_stop_helper(n);
        if (n->group) {
            rmdir(n->group);
        }
        hk_free(n->group);
        hk_free(n);
    }
}

void spawner_join(struct spawner *n, const char *group)
{
    hk_free(n->group);
    n->group = hk_strdup(group);
    put_in_group(n);
}

/* Returns false if the spawner is dead. */
static bool spawner_send_request(const struct spawner *n, const struct wire *w)
{
    struct head head = {.len = (uint32_t)w->out->len, .nfd = w->nfd};
    char taken;

    return n->fd >= 0 && send_fds(n->fd, &head, sizeof(head), w->fds, w->nfd) &&
           send_all(n->fd, w->out->data, w->out->len) && recv_all(n->fd, &taken, sizeof(taken));
}

/* Sends the launch; replaces a dead spawner. */
static int order_somebody(struct spawner *n, const struct wire *w, struct hk_err *err)
{
    int rc;

    if (spawner_send_request(n, w)) {
        return 0;
    }
    spawner_stop_helper(n);
    rc = spawner_fork_helper(n, err);
    if (rc < 0) {
        return rc;
    }
    return spawner_send_request(n, w) ? 0 : hk_fail(err, HK_EIO, "cannot reach the spawner: %m");
}

int spawner_launch(struct spawner *n, const struct process_launch *launch, int *ret_pidfd,
                   struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf flat = {0};
    struct process_launch l = *launch;
    struct wire w = {.out = &flat};
    struct answer answer;
    int fds[FDS_MAX];
    uint32_t nfd = 0;

    /* Reserved for the pidfd: if it could not be received, a container would run unknown. */
    const int room = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (room < 0) {
        return hk_fail(err, HK_EIO, "cannot open /dev/null: %m");
    }
    pass_launch(&w, &l);
    const int rc = order_somebody(n, &w, err);
    close(room);
    if (rc < 0) {
        return rc;
    }
    if (!recv_fds(n->fd, &answer, sizeof(answer), fds, &nfd)) {
        spawner_stop_helper(n);
        return hk_fail(err, HK_EIO, "the spawner died while it started a container");
    }
    if (answer.why != 0) {
        errno = answer.why;
        return hk_fail(err, HK_EIO, "cannot fork: %m");
    }
    if (nfd != 1) {
        return hk_fail(err, HK_EIO, "cannot receive a descriptor of the container");
    }
    *ret_pidfd = fds[0];
    return 0;
}
