// SPDX-License-Identifier: Apache-2.0
// Opens a listening TCP socket.
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

static int listen_at(struct hk_str addr, uint16_t number, int *ret, struct hk_err *err)
{
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *at = NULL;
    char host[INET6_ADDRSTRLEN], port[8];
    const int one = 1;

    snprintf(host, sizeof(host), "%.*s", HK_FMT(addr));
    snprintf(port, sizeof(port), "%u", number);
    if (getaddrinfo(host, port, &want, &at) != 0) {
        return hk_fail(err, HK_EINVAL, "cannot listen on '%s': want an IP address", host);
    }
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0;
    ok = ok && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0;
    ok = ok && bind(fd, at->ai_addr, at->ai_addrlen) == 0;
    ok = ok && listen(fd, BACKLOG) == 0;
    const int why = errno;
    freeaddrinfo(at);
    if (!ok) {
        if (fd >= 0) {
            close(fd);
        }
        return hk_fail(err, HK_EIO, "cannot listen on %s port %s: %s", host, port, strerror(why));
    }
    *ret = fd;
    return 0;
}

static uint16_t bound_port(int fd)
{
    union {
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {0};
    socklen_t n = sizeof(a);

    hk_assert(getsockname(fd, (void *)&a, &n) == 0);
    return ntohs(a.v4.sin_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
}

/* All addresses: an IPv6 socket also accepts IPv4; without IPv6, IPv4 only. */
int listen_on(struct hk_str addr, uint16_t port, int *ret_fd, uint16_t *ret_port,
              struct hk_err *err)
{
    int rc = listen_at(addr.n > 0 ? addr : HK_STR("::"), port, ret_fd, err);

    if (rc < 0 && addr.n == 0) {
        rc = listen_at(HK_STR("0.0.0.0"), port, ret_fd, err);
    }
    if (rc == 0) {
        *ret_port = bound_port(*ret_fd);
    }
    return rc;
}
