// SPDX-License-Identifier: Apache-2.0
// Launches travel through a socket: a head with the descriptors, then the launch, flattened. The
// nursery says that it has all of it, forks the shim and answers with its pidfd; until the first
// word nothing can have begun, and another nursery may be asked. It ends when the other end of the
// socket is closed, which no death of the agent can prevent; a nursery that died is replaced.
#include "agent/process_nursery.h"

#include "agent/process_priv.h"
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

struct nursery {
    int fd; /* -1: died */
    pid_t pid;
    char *group; /* directory of the one it is in; NULL: that of the daemon */
};

struct head {
    uint32_t len, nfd;
};

struct answer {
    int32_t why; /* errno, 0: forked, and the pidfd comes along */
};

/* ---- the wire ---- */

/* Passes a launch in one direction, so that both ends agree by being the same code: out is set
 * where it is flattened. Reading trusts the writer, who is the same program. */
struct wire {
    struct hk_buf *out;
    const char *at;
    struct hk_arena *mem;
    int fds[FDS_MAX];
    uint32_t nfd;
};

static void pass(struct wire *w, void *p, size_t n)
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

    pass(w, &is, sizeof(is));
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

/* A list ended by NULL. */
static void pass_list(struct wire *w, const char *const **list)
{
    uint32_t n = 0;
    const char **copy = NULL;

    while (w->out && (*list)[n]) {
        n++;
    }
    pass(w, &n, sizeof(n));
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
    pass(w, copy, l->ngroup * sizeof(*copy));
    l->groups = copy;
}

static void pass_mounts(struct wire *w, struct process_launch *l)
{
    struct runtime_mount *copy =
        w->out ? NULL : hk_arena_zalloc(w->mem, (l->nmount + 1) * sizeof(*copy));

    for (uint32_t k = 0; k < l->nmount; k++) {
        struct runtime_mount m = w->out ? l->mounts[k] : (struct runtime_mount){0};
        pass(w, &m, sizeof(m));
        pass_str(w, &m.from);
        pass_str(w, &m.at);
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
    pass(w, l, sizeof(*l)); /* everything that is no pointer and no descriptor is good as it is */
    pass_list(w, &l->argv);
    pass_list(w, &l->env);
    pass_str(w, &l->cwd);
    pass_str(w, &l->hostname);
    pass_str(w, &l->root);
    pass_str(w, &l->scratch);
    pass_str(w, &l->end_name);
    pass_str(w, &l->log_name);
    pass_groups(w, l);
    pass_mounts(w, l);
    pass_fd(w, &l->state_fd);
    pass_fd(w, &l->log_fd);
    pass_fd(w, &l->join);
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

/* A few bytes with descriptors. */
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

/* fds has room for FDS_MAX; they are close-on-exec. */
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

/* ---- in the nursery ---- */

static void close_all(const int *fds, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        close(fds[k]);
    }
}

/* False when there is nobody to serve any more. */
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
    if (process_launch(&l, &pidfd) < 0) {
        answer.why = errno;
        pidfd = -1; /* the kernel may have put one there before it failed */
    }
    close_all(w.fds, nfd);
    const bool sent = send_fds(fd, &answer, sizeof(answer), &pidfd, pidfd >= 0);
    close_all(&pidfd, pidfd >= 0);
    return sent;
}

/* Every function was found when the program was loaded: nobody will search the libraries again. */
static bool is_bound(void)
{
    for (const ElfW(Dyn) *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_BIND_NOW)) {
            return true;
        }
    }
    return false;
}

/* Somebody has put a library in front of libc: what a shim calls may be in there. */
static bool has_preloads(void)
{
    const char *list = getenv("LD_PRELOAD");

    return (list && *list) || access("/etc/ld.so.preload", F_OK) == 0;
}

/* Of a mapping: a library other than libc, which is all that a shim calls. The path has a slash. */
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

/* A fork costs by the number of mappings, and nine in ten of them are of libraries that speak to
 * the network and to the store: shims are born without. */
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

/* Holds nothing but its socket, hears no signal, and leaves nobody to be waited for. */
__attribute__((noreturn)) static void nursery_run(int fd)
{
    sigset_t all;

    prctl(PR_SET_NAME, "hekla-nursery");
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

/* ---- outside ---- */

/* It waits for orders meanwhile, so nobody is born before. */
static void put_in_group(const struct nursery *n)
{
    HK_AUTO(hk_freep) char *path = n->group ? process_path("%s/cgroup.procs", n->group) : NULL;
    const int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        dprintf(fd, "%d", (int)n->pid); /* without it the bound is that of the daemon's group */
        close(fd);
    }
}

static int spawn(struct nursery *n, struct hk_err *err)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return hk_fail(err, HK_EIO, "cannot make a socket for the nursery: %m");
    }
    const pid_t pid = fork();
    if (pid == 0) {
        nursery_run(ends[1]);
    }
    const int why = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        errno = why;
        return hk_fail(err, HK_EIO, "cannot fork the nursery: %m");
    }
    n->fd = ends[0];
    n->pid = pid;
    put_in_group(n);
    return 0;
}

static void bury(struct nursery *n)
{
    if (n->fd >= 0) {
        close(n->fd); /* it sees that and ends */
        waitpid(n->pid, NULL, 0);
        n->fd = -1;
    }
}

int nursery_new(struct nursery **ret, struct hk_err *err)
{
    struct nursery *n = hk_zalloc(sizeof(*n));
    const int rc = spawn(n, err);

    if (rc < 0) {
        hk_free(n);
        return rc;
    }
    *ret = n;
    return 0;
}

void nursery_free(struct nursery *n)
{
    if (n) {
        bury(n);
        if (n->group) {
            rmdir(n->group);
        }
        hk_free(n->group);
        hk_free(n);
    }
}

void nursery_join(struct nursery *n, const char *group)
{
    hk_free(n->group);
    n->group = hk_strdup(group);
    put_in_group(n);
}

/* False when there is nobody to take it. */
static bool order(const struct nursery *n, const struct wire *w)
{
    struct head head = {.len = (uint32_t)w->out->len, .nfd = w->nfd};
    char taken;

    return n->fd >= 0 && send_fds(n->fd, &head, sizeof(head), w->fds, w->nfd) &&
           send_all(n->fd, w->out->data, w->out->len) && recv_all(n->fd, &taken, sizeof(taken));
}

/* A nursery that has died is replaced. */
static int order_somebody(struct nursery *n, const struct wire *w, struct hk_err *err)
{
    int rc;

    if (order(n, w)) {
        return 0;
    }
    bury(n);
    rc = spawn(n, err);
    if (rc < 0) {
        return rc;
    }
    return order(n, w) ? 0 : hk_fail(err, HK_EIO, "cannot reach the nursery: %m");
}

int nursery_launch(struct nursery *n, const struct process_launch *launch, int *ret_pidfd,
                   struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf flat = {0};
    struct process_launch l = *launch;
    struct wire w = {.out = &flat};
    struct answer answer;
    int fds[FDS_MAX];
    uint32_t nfd = 0;

    /* A descriptor that could not be received would leave a container nobody knows. */
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
        bury(n);
        return hk_fail(err, HK_EIO, "the nursery died while it started a container");
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
