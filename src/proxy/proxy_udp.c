// SPDX-License-Identifier: Apache-2.0
// Datagrams. Each client of a port has a socket of its own to its endpoint, over which the answers
// come back; the socket goes after a minute of silence, when its endpoint goes, and, when there are
// too many, when it has been silent for the longest time. Datagrams that do not fit are lost, as
// datagrams may be.
#include "proxy/proxy_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define IDLE_NS (60 * SECOND_NS)
#define SWEEP_NS (10 * SECOND_NS)

enum {
    CLIENTS_MAX = 256, /* of one port */
    DATAGRAM_MAX = 64 << 10,
    ROUNDS = 64, /* datagrams before others get their turn */
};

struct proxy_udp {
    struct proxy_listener *l;
    struct sockaddr_storage client;
    socklen_t nclient;
    struct proxy_target target;
    int fd;
    struct net_watch *watch;
    int64_t used_ns;
};

/* ---- one client ---- */

static void proxy_udp_free(struct proxy_udp *u)
{
    net_watch_del(u->watch);
    if (u->fd >= 0) {
        close(u->fd);
    }
    hk_free(u);
}

static void proxy_udp_on_answer(void *ctx, uint32_t events)
{
    struct proxy_udp *u = ctx;
    char bytes[DATAGRAM_MAX];

    for (int i = 0; i < ROUNDS; i++) {
        const ssize_t n = recv(u->fd, bytes, sizeof(bytes), 0);

        if (n < 0) {
            return; /* nothing more, or the endpoint refused one: the next may be accepted */
        }
        (void)!sendto(u->l->fd, bytes, (size_t)n, MSG_NOSIGNAL, (struct sockaddr *)&u->client,
                      u->nclient);
        u->used_ns = net_loop_now_ns(u->l->p->o.loop);
    }
}

static struct proxy_udp *proxy_udp_new(struct proxy_listener *l,
                                       const struct sockaddr_storage *client, socklen_t nclient)
{
    struct net_loop *loop = l->p->o.loop;
    struct proxy_udp *u = hk_zalloc(sizeof(*u));

    u->l = l;
    u->client = *client;
    u->nclient = nclient;
    u->target = l->targets.at[proxy_choose_target(l, client)];
    u->fd = proxy_connect(&u->target, SOCK_DGRAM);
    if (u->fd < 0) {
        proxy_udp_free(u);
        return NULL;
    }
    u->watch = net_watch_add(loop, u->fd, EPOLLIN, proxy_udp_on_answer, u);
    net_timer_at(l->p->sweep, net_loop_now_ns(loop) + SWEEP_NS);
    return u;
}

static struct proxy_udp *proxy_udp_find(const struct proxy_listener *l,
                                        const struct sockaddr_storage *client, socklen_t nclient)
{
    for (uint32_t i = 0; i < l->udp_clients.len; i++) {
        if (l->udp_clients.at[i]->nclient == nclient &&
            memcmp(&l->udp_clients.at[i]->client, client, nclient) == 0) {
            return l->udp_clients.at[i];
        }
    }
    return NULL;
}

static void proxy_udp_drop(struct proxy_listener *l, uint32_t i)
{
    proxy_udp_free(l->udp_clients.at[i]);
    hk_vec_swap_remove(&l->udp_clients, i);
}

static void proxy_udp_make_room(struct proxy_listener *l)
{
    uint32_t oldest = 0;

    if (l->udp_clients.len < CLIENTS_MAX) {
        return;
    }
    for (uint32_t i = 1; i < l->udp_clients.len; i++) {
        if (l->udp_clients.at[i]->used_ns < l->udp_clients.at[oldest]->used_ns) {
            oldest = i;
        }
    }
    proxy_udp_drop(l, oldest);
}

/* NULL: the endpoint cannot be reached. */
static struct proxy_udp *proxy_udp_get(struct proxy_listener *l,
                                       const struct sockaddr_storage *client, socklen_t nclient)
{
    struct proxy_udp *u = proxy_udp_find(l, client, nclient);

    if (!u) {
        proxy_udp_make_room(l);
        u = proxy_udp_new(l, client, nclient);
        if (u) {
            hk_vec_push(&l->udp_clients, u);
        }
    }
    return u;
}

/* ---- the port ---- */

void proxy_udp_on_datagram(void *ctx, uint32_t events)
{
    struct proxy_listener *l = ctx;
    char bytes[DATAGRAM_MAX];

    for (int i = 0; i < ROUNDS; i++) {
        struct sockaddr_storage from = {0};
        socklen_t nfrom = sizeof(from);
        const ssize_t n =
            recvfrom(l->fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &nfrom);
        struct proxy_udp *u;

        if (n < 0) {
            return;
        }
        u = proxy_udp_get(l, &from, nfrom);
        if (u) {
            (void)!send(u->fd, bytes, (size_t)n, MSG_NOSIGNAL);
            u->used_ns = net_loop_now_ns(l->p->o.loop);
        }
    }
}

int proxy_udp_listen(const struct proxy_listener *l, struct hk_err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(l->port)};
    int fd;

    if (inet_pton(AF_INET, l->address, &at.sin_addr) != 1) {
        return hk_fail(err, HK_EINVAL, "cannot listen on '%s': want an IPv4 address", l->address);
    }
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
        const int rc = hk_fail(err, HK_EIO, "cannot listen on %s UDP port %u: %s", l->address,
                               l->port, strerror(errno));

        if (fd >= 0) {
            close(fd);
        }
        return rc;
    }
    return fd;
}

void proxy_udp_keep_targets(struct proxy_listener *l)
{
    for (uint32_t i = l->udp_clients.len; i-- > 0;) {
        if (!proxy_has_target(l, &l->udp_clients.at[i]->target)) {
            proxy_udp_drop(l, i);
        }
    }
}

void proxy_udp_sweep(struct proxy_listener *l, int64_t now_ns)
{
    for (uint32_t i = l->udp_clients.len; i-- > 0;) {
        if (now_ns - l->udp_clients.at[i]->used_ns >= IDLE_NS) {
            proxy_udp_drop(l, i);
        }
    }
    if (l->udp_clients.len > 0) {
        net_timer_at(l->p->sweep, now_ns + SWEEP_NS);
    }
}

void proxy_udp_close(struct proxy_listener *l)
{
    while (l->udp_clients.len > 0) {
        proxy_udp_drop(l, 0);
    }
    hk_vec_fini(&l->udp_clients);
}
