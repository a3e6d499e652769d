// SPDX-License-Identifier: Apache-2.0
// Finds the local address for a server: connects a datagram socket and reads the source address
// that the kernel chose. Sends nothing.
#include "net/reach.h"

#include "base/str.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#define NOWHERE "127.0.0.1"

int reach_parse(const char *url, struct reach *ret, struct hk_err *err)
{
    const char *at = strstr(url, "://"), *end, *tail;
    int64_t port = strncmp(url, "http://", 7) == 0 ? 80 : 443;
    size_t n;

    if (!at) {
        return hk_fail(err, HK_EINVAL, "server is '%s', want https://HOST:PORT", url);
    }
    at += 3;
    tail = at + strcspn(at, "/");
    end =
        at[0] == '[' ? memchr(at, ']', (size_t)(tail - at)) : memchr(at, ':', (size_t)(tail - at));
    at += at[0] == '[';
    n = (size_t)((end ? end : tail) - at);
    if (end && *end == ']') {
        end = end + 1 < tail ? end + 1 : NULL;
    }
    if (n == 0 || n >= sizeof(ret->host) ||
        (end &&
         (*end != ':' || !hk_str_int((struct hk_str){end + 1, (size_t)(tail - end - 1)}, &port) ||
          port < 1 || port > UINT16_MAX))) {
        return hk_fail(err, HK_EINVAL, "server is '%s', want https://HOST:PORT", url);
    }
    snprintf(ret->host, sizeof(ret->host), "%.*s", (int)n, at);
    ret->port = (uint16_t)port;
    return 0;
}

static bool source_of(const struct addrinfo *to, char *ret, size_t room)
{
    const int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage own;
    socklen_t n = sizeof(own);
    bool found = false;

    if (fd >= 0) {
        found = connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
                getsockname(fd, (struct sockaddr *)&own, &n) == 0 &&
                getnameinfo((struct sockaddr *)&own, n, ret, (socklen_t)room, NULL, 0,
                            NI_NUMERICHOST) == 0;
        close(fd);
    }
    return found;
}

void reach_from(const struct reach *r, char *ret, size_t room)
{
    const struct addrinfo want = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *list = NULL;
    char port[8];
    bool found = false;

    snprintf(port, sizeof(port), "%u", r->port);
    if (getaddrinfo(r->host, port, &want, &list) == 0) {
        for (const struct addrinfo *at = list; at && !found; at = at->ai_next) {
            found = source_of(at, ret, room);
        }
        freeaddrinfo(list);
    }
    if (!found) {
        snprintf(ret, room, NOWHERE);
    }
}
