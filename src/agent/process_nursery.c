// SPDX-License-Identifier: Apache-2.0
// The nursery: a small process, forked before its owner grew, that forks shims on request. The
// price of a fork is the memory of who forks: for an agent that holds a cluster it was three
// milliseconds, and every page the agent wrote afterwards was copied once more.
//
// A launch is copied, with all it points to, into memory that both map; the nursery copies it on to
// the very address at which the owner sees it, in memory of its own, so that pointers hold there
// and in the shim while the owner prepares the next one. Descriptors travel by the socket, and so
// does the pidfd of the shim on its way back. The shim becomes the owner's child, as if he had
// forked it. When the owner ends, the socket does, and with it the nursery.
//
// It never allocates: its owner may have had threads.
#include "agent/process_priv.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROOM = 1 << 20, /* of a launch; larger ones are not for the nursery */
    FDS_MAX = PROCESS_HIERARCHIES + 7,
};

struct process_nursery {
    int sock;
    pid_t pid;
    char *room;
};

struct answer {
    int why; /* errno, 0: there is a pidfd with it */
};

/* ---- copying a launch ---- */

struct pack {
    char *at, *end;
    bool full;
};

static void *take(struct pack *p, size_t n)
{
    char *ret = p->at;

    n = (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (p->full || n > (size_t)(p->end - p->at)) {
        p->full = true;
        return NULL;
    }
    p->at += n;
    return ret;
}

static void *pack_bytes(struct pack *p, const void *from, size_t n)
{
    void *to = take(p, n);

    if (to && n > 0) {
        memcpy(to, from, n);
    }
    return to;
}

static const char *pack_str(struct pack *p, const char *s)
{
    return s ? pack_bytes(p, s, strlen(s) + 1) : NULL;
}

static const char *const *pack_list(struct pack *p, const char *const *list)
{
    size_t n = 0;
    const char **to;

    while (list[n]) {
        n++;
    }
    to = take(p, (n + 1) * sizeof(*to));
    for (size_t k = 0; to && k < n; k++) {
        to[k] = pack_str(p, list[k]);
    }
    if (to) {
        to[n] = NULL;
    }
    return to;
}

static const struct runtime_mount *pack_mounts(struct pack *p, const struct process_launch *l)
{
    struct runtime_mount *to = take(p, l->nmount * sizeof(*to));

    for (uint32_t k = 0; to && k < l->nmount; k++) {
        to[k] = l->mounts[k];
        to[k].from = pack_str(p, l->mounts[k].from);
        to[k].at = pack_str(p, l->mounts[k].at);
    }
    return to;
}

/* The launch comes first. Returns the bytes used, 0: there is not room enough. */
static size_t pack_launch(const struct process_launch *l, char *room)
{
    struct pack p = {.at = room, .end = room + ROOM};
    struct process_launch *to = take(&p, sizeof(*to));

    *to = *l;
    to->nursery = NULL;
    to->argv = pack_list(&p, l->argv);
    to->env = pack_list(&p, l->env);
    to->cwd = pack_str(&p, l->cwd);
    to->groups = pack_bytes(&p, l->groups, l->ngroup * sizeof(*l->groups));
    to->hostname = pack_str(&p, l->hostname);
    to->mounts = pack_mounts(&p, l);
    to->trees = pack_bytes(&p, l->trees, l->nmount * sizeof(*l->trees));
    to->root = pack_str(&p, l->root);
    to->scratch = pack_str(&p, l->scratch);
    to->end_name = pack_str(&p, l->end_name);
    to->log_name = pack_str(&p, l->log_name);
    return p.full ? 0 : (size_t)(p.at - room);
}

/* The descriptors of a launch that are some, always in the same order. */
static uint32_t list_fds(struct process_launch *l, int *at[FDS_MAX])
{
    int *const single[] = {&l->state_fd, &l->log_fd,  &l->join, &l->in,
                           &l->out,      &l->err_out, &l->born};
    uint32_t n = 0;

    for (size_t k = 0; k < HK_LEN(single); k++) {
        if (*single[k] >= 0) {
            at[n++] = single[k];
        }
    }
    for (uint32_t k = 0; k < l->ngroup_fd; k++) {
        at[n++] = &l->group_fds[k];
    }
    return n;
}

/* ---- messages ---- */

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

static bool send_with(int sock, void *data, size_t n, const int *fds, uint32_t nfd)
{
    union control control = {0};
    struct iovec iov = {data, n};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t sent;

    if (nfd > 0) {
        control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                        .cmsg_type = SCM_RIGHTS,
                                        .cmsg_len = CMSG_LEN(nfd * sizeof(int))};
        memcpy(CMSG_DATA(&control.head), fds, nfd * sizeof(int));
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(nfd * sizeof(int));
    }
    do {
        sent = sendmsg(sock, &m, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)n;
}

static bool receive_with(int sock, void *data, size_t n, int *fds, uint32_t *ret_nfd)
{
    union control control = {0};
    struct iovec iov = {data, n};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    ssize_t got;

    do {
        got = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    *ret_nfd = 0;
    if (got != (ssize_t)n) {
        return false;
    }
    if (m.msg_controllen >= sizeof(control.head) && control.head.cmsg_type == SCM_RIGHTS) {
        *ret_nfd = (uint32_t)((control.head.cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(&control.head), *ret_nfd * sizeof(int));
    }
    return true;
}

/* ---- the nursery ---- */

static void fork_one(int sock, struct process_launch *l, const int *fds, uint32_t nfd)
{
    struct answer a = {0};
    int *at[FDS_MAX], pidfd = -1;
    const uint32_t n = list_fds(l, at);

    for (uint32_t k = 0; k < n && k < nfd; k++) {
        *at[k] = fds[k];
    }
    if (n != nfd) {
        a.why = EMFILE; /* the kernel dropped some: the table is full */
    } else if (process_fork(l, CLONE_PARENT, &pidfd) < 0) {
        a.why = errno;
    }
    send_with(sock, &a, sizeof(a), &pidfd, a.why == 0);
    if (pidfd >= 0) {
        close(pidfd);
    }
    for (uint32_t k = 0; k < nfd; k++) {
        close(fds[k]);
    }
}

/* As the owner's processes are: nobody else reads their files, and they may open many. */
static void settle(int sock, int memory)
{
    struct rlimit files;
    const unsigned low = (unsigned)HK_MIN(sock, memory), high = (unsigned)HK_MAX(sock, memory);

    prctl(PR_SET_NAME, "hekla-nursery");
    umask(077);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (low > 3) {
        close_range(3, low - 1, 0);
    }
    if (high > low + 1) {
        close_range(low + 1, high - 1, 0);
    }
    close_range(high + 1, ~0U, 0);
}

__attribute__((noreturn)) static void nursery_run(int sock, int memory, char *room)
{
    const char *shared = mmap(NULL, ROOM, PROT_READ, MAP_SHARED, memory, 0);
    int fds[FDS_MAX];
    uint32_t nfd;
    size_t used;

    settle(sock, memory);
    if (shared == MAP_FAILED || mmap(room, ROOM, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != room) {
        _exit(1);
    }
    close(memory);
    while (receive_with(sock, &used, sizeof(used), fds, &nfd)) {
        memcpy(room, shared, HK_MIN(used, (size_t)ROOM));
        fork_one(sock, (struct process_launch *)room, fds, nfd);
    }
    _exit(0);
}

/* ---- the owner's side ---- */

static bool start(struct process_nursery *n, int memory)
{
    sigset_t all, before;
    int ends[2];

    n->room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (n->room == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        return false;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    n->pid = fork();
    if (n->pid == 0) {
        close(ends[0]);
        nursery_run(ends[1], memory, n->room);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    n->sock = ends[0];
    return n->pid > 0;
}

struct process_nursery *process_nursery_new(void)
{
    struct process_nursery *n = hk_zalloc(sizeof(*n));
    const int memory = memfd_create("hekla-nursery", MFD_CLOEXEC);
    bool ok;

    *n = (struct process_nursery){.sock = -1, .room = MAP_FAILED};
    ok = memory >= 0 && ftruncate(memory, ROOM) == 0 && start(n, memory);
    if (memory >= 0) {
        close(memory);
    }
    if (!ok) {
        process_nursery_free(n);
        return NULL;
    }
    return n;
}

static void end(struct process_nursery *n)
{
    if (n->sock >= 0) {
        close(n->sock);
    }
    if (n->pid > 0) {
        kill(n->pid, SIGKILL);
        waitpid(n->pid, NULL, 0);
    }
    n->sock = -1;
    n->pid = 0;
}

void process_nursery_free(struct process_nursery *n)
{
    if (!n) {
        return;
    }
    end(n);
    if (n->room != MAP_FAILED) {
        munmap(n->room, ROOM);
    }
    hk_free(n);
}

bool process_nursery_launch(struct process_nursery *n, const struct process_launch *l,
                            int *ret_pidfd, int *ret_why)
{
    size_t used = n->sock < 0 ? 0 : pack_launch(l, n->room);
    int *at[FDS_MAX], fds[FDS_MAX];
    struct process_launch copy = *l;
    const uint32_t nfd = list_fds(&copy, at);
    struct answer a;
    uint32_t got;

    if (used == 0) {
        return false;
    }
    for (uint32_t k = 0; k < nfd; k++) {
        fds[k] = *at[k];
    }
    if (!send_with(n->sock, &used, sizeof(used), fds, nfd) ||
        !receive_with(n->sock, &a, sizeof(a), fds, &got)) {
        end(n); /* somebody killed it, or made a mess of it */
        return false;
    }
    *ret_why = a.why;
    if (a.why == 0 && got == 1) {
        *ret_pidfd = fds[0];
    } else if (a.why == 0) {
        *ret_why = EMFILE;
    }
    return true;
}
