// SPDX-License-Identifier: Apache-2.0
// Finds the TCP socket that a process of a pod listens on. All pods share the machine's network, so
// a port alone does not tell whose it is: the kernel lists the listening sockets of the port, and the
// descriptors of the pod's processes (its shims and their descendants) show which one is the pod's.
#include "agent/process/process_priv.h"
#include "base/file.h"
#include "base/map.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINES_BYTES = 16 << 10, STAT_BYTES = 4096, STATE_LISTENS = 0x0a, PORT_SOCKETS_MAX = 256 };

/* The better, the smaller. */
enum listener_rank { RANK_POD, RANK_LOOPBACK, RANK_ANY, RANK_OTHER, RANK_NONE };

struct listener {
    struct runtime_listener at;
    enum listener_rank rank;
};

struct listeners {
    const char *address; /* of the pod, or NULL */
    uint16_t port;
    HK_VEC(struct listener) all; /* on that port */
};

/* ---- the sockets of the port ---- */

static enum listener_rank listener_rank_v4(const struct in_addr *a, const char *text,
                                           const char *pod)
{
    if (pod && strcmp(text, pod) == 0) {
        return RANK_POD;
    }
    if (a->s_addr == INADDR_ANY) {
        return RANK_ANY;
    }
    return ntohl(a->s_addr) == INADDR_LOOPBACK ? RANK_LOOPBACK : RANK_OTHER;
}

/* Sockets of all addresses are reached at the pod's own. */
static const char *listener_reach(enum listener_rank rank, const char *text, const char *pod)
{
    return rank != RANK_ANY ? text : pod ? pod : "127.0.0.1";
}

/* Reads an address as the kernel prints it: words of eight hexadecimal digits in the machine's byte
 * order. */
static bool listener_parse_address(struct hk_str hex, struct in6_addr *ret)
{
    const size_t nwords = hex.n / 8;
    char word[9] = "";

    for (size_t k = 0; k < nwords && k < 4; k++) {
        memcpy(word, hex.s + 8 * k, 8);
        ret->s6_addr32[k] = (uint32_t)strtoul(word, NULL, 16);
    }
    return hex.n == 8 || hex.n == 32;
}

static bool listener_set_address(const struct listeners *l, struct hk_str hex, struct listener *ret)
{
    struct in6_addr a = {0};
    struct in_addr v4;
    char text[INET6_ADDRSTRLEN];

    if (!listener_parse_address(hex, &a)) {
        return false;
    }
    v4.s_addr = hex.n == 8 ? a.s6_addr32[0] : a.s6_addr32[3];
    if (hex.n == 8 || IN6_IS_ADDR_V4MAPPED(&a)) {
        inet_ntop(AF_INET, &v4, text, sizeof(text));
        ret->rank = listener_rank_v4(&v4, text, l->address);
    } else {
        inet_ntop(AF_INET6, &a, text, sizeof(text));
        ret->rank = IN6_IS_ADDR_UNSPECIFIED(&a) ? RANK_ANY
                    : IN6_IS_ADDR_LOOPBACK(&a)  ? RANK_LOOPBACK
                                                : RANK_OTHER;
    }
    snprintf(ret->at.address, sizeof(ret->at.address), "%s",
             listener_reach(ret->rank, text, l->address));
    return true;
}

/* Splits a line of /proc/net/tcp; fields are separated by any number of blanks. */
static uint32_t listener_split_line(struct hk_str line, struct hk_str *ret, uint32_t max)
{
    struct hk_str part;
    uint32_t n = 0;

    while (n < max && hk_str_cut(&line, ' ', &part)) {
        if (part.n > 0) {
            ret[n++] = part;
        }
    }
    return n;
}

static uint64_t listener_hex(struct hk_str text)
{
    char copy[17] = "";

    memcpy(copy, text.s, HK_MIN(text.n, sizeof(copy) - 1));
    return strtoull(copy, NULL, 16);
}

/* False at the first socket that does not listen: the kernel prints listening ones first. */
static bool listener_read_line(struct listeners *l, struct hk_str line)
{
    struct hk_str field[10], where, address;
    struct listener one = {0};
    int64_t inode;

    if (listener_split_line(line, field, HK_LEN(field)) < HK_LEN(field) ||
        hk_str_is(field[0], "sl")) {
        return true; /* the heading */
    }
    if (listener_hex(field[3]) != STATE_LISTENS) {
        return false;
    }
    where = field[1];
    if (!hk_str_cut(&where, ':', &address) || listener_hex(where) != l->port ||
        !hk_str_int(field[9], &inode) || inode <= 0 || l->all.len >= PORT_SOCKETS_MAX) {
        return true;
    }
    one.at.inode = (uint64_t)inode;
    if (listener_set_address(l, address, &one)) {
        hk_vec_push(&l->all, one);
    }
    return true;
}

static void listeners_read(struct listeners *l, const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool more = fd >= 0;

    while (more) {
        hk_buf_reserve(&text, LINES_BYTES);
        const ssize_t n = read(fd, text.data + text.len, LINES_BYTES);
        const char *end;

        text.len += n > 0 ? (size_t)n : 0;
        more = n > 0;
        while (more && (end = memchr(hk_buf_str(&text).s, '\n', text.len))) {
            const size_t len = (size_t)(end - text.data);
            more = listener_read_line(l, (struct hk_str){text.data, len});
            hk_buf_drop(&text, len + 1);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* ---- the processes of the pod ---- */

struct process_pair {
    uint32_t pid, parent;
};

/* The processes of the pod. */
struct process_family {
    struct hk_map known; /* by pid */
    HK_VEC(uint32_t) pids;
};

static void process_family_add(struct process_family *f, uint32_t pid)
{
    if (pid > 0 && hk_map_get(&f->known, pid) == HK_NONE) {
        hk_map_put(&f->known, pid, f->pids.len);
        hk_vec_push(&f->pids, pid);
    }
}

static bool read_parent(const char *pid, struct process_pair *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    char path[64];
    const char *end;
    unsigned parent;

    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    if (hk_read_file(path, STAT_BYTES, &text, NULL) < 0 ||
        !(end = memrchr(hk_buf_str(&text).s, ')', text.len)) ||
        sscanf(end, ") %*c %u", &parent) != 1) {
        return false;
    }
    *ret = (struct process_pair){(uint32_t)strtoul(pid, NULL, 10), parent};
    return true;
}

static void add_descendants(struct process_family *f)
{
    HK_VEC(struct process_pair) all = {0};
    struct process_pair one;
    DIR *d = opendir("/proc");
    const struct dirent *e;
    uint32_t before;

    while (d && (e = readdir(d))) {
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && read_parent(e->d_name, &one)) {
            hk_vec_push(&all, one);
        }
    }
    if (d) {
        closedir(d);
    }
    do {
        before = f->pids.len;
        for (uint32_t i = 0; i < all.len; i++) {
            if (hk_map_get(&f->known, all.at[i].parent) != HK_NONE) {
                process_family_add(f, all.at[i].pid);
            }
        }
    } while (f->pids.len > before);
    hk_vec_fini(&all);
}

/* The listener with that inode, if it is better than the best one. */
static void listener_compare(const struct listeners *l, uint64_t inode,
                             const struct listener **best)
{
    for (uint32_t i = 0; i < l->all.len; i++) {
        if (l->all.at[i].at.inode == inode && (!*best || l->all.at[i].rank < (*best)->rank)) {
            *best = &l->all.at[i];
        }
    }
}

static void look_at_process(uint32_t pid, const struct listeners *l, const struct listener **best)
{
    char path[64], link[64];
    const struct dirent *e;
    uint64_t inode;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%u/fd", pid);
    d = opendir(path);
    while (d && (e = readdir(d))) {
        const ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
        link[HK_MAX(n, 0)] = '\0';
        if (sscanf(link, "socket:[%" SCNu64 "]", &inode) == 1) {
            listener_compare(l, inode, best);
        }
    }
    if (d) {
        closedir(d);
    }
}

/* 0: the process has ended. */
static uint32_t pid_of(int pidfd)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    char path[64];
    const char *at;
    int pid = 0;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    if (hk_read_file(path, STAT_BYTES, &text, NULL) == 0 &&
        (at = strstr(hk_buf_str(&text).s, "\nPid:"))) {
        sscanf(at, "\nPid: %d", &pid);
    }
    return pid > 0 ? (uint32_t)pid : 0;
}

static const struct listener *listener_of_shims(const struct listeners *l, const int *pidfds,
                                                uint32_t n)
{
    const struct listener *best = NULL;
    struct process_family f = {0};

    for (uint32_t i = 0; i < n; i++) {
        process_family_add(&f, pid_of(pidfds[i]));
    }
    add_descendants(&f);
    for (uint32_t i = 0; i < f.pids.len; i++) {
        look_at_process(f.pids.at[i], l, &best);
    }
    hk_map_fini(&f.known);
    hk_vec_fini(&f.pids);
    return best;
}

/* ---- the question ---- */

static bool listener_still_there(const struct listeners *l, const struct runtime_listener *known)
{
    for (uint32_t i = 0; i < l->all.len; i++) {
        if (known->inode != 0 && l->all.at[i].at.inode == known->inode) {
            return true;
        }
    }
    return false;
}

int process_listener_find(const int *pidfds, uint32_t n, const char *address, uint16_t port,
                          struct runtime_listener *inout, struct hk_err *err)
{
    struct listeners l = {.address = address, .port = port};
    const struct listener *best = NULL;
    int rc = 0;

    listeners_read(&l, "/proc/net/tcp");
    listeners_read(&l, "/proc/net/tcp6");
    if (!listener_still_there(&l, inout)) {
        best = l.all.len > 0 ? listener_of_shims(&l, pidfds, n) : NULL;
        *inout = best ? best->at : (struct runtime_listener){0};
        rc =
            best ? 0 : hk_fail(err, HK_ENOTFOUND, "no process of the pod listens on port %u", port);
    }
    hk_vec_fini(&l.all);
    return rc;
}
