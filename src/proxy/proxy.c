// SPDX-License-Identifier: Apache-2.0
// The listeners. After every change of a Service its listeners are compared with what it should have;
// those that stay keep their socket and get the new endpoints.
#include "proxy/proxy_priv.h"

#include "base/log.h"
#include "base/map.h"
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define RETRY_NS (10 * SECOND_NS)
#define AGAIN_NS (SECOND_NS / 5)
#define NODE_ADDRESS "127.0.0.1" /* of node ports */

enum {
    CONNECTIONS_MAX = 2048,
    LISTENERS_MAX = 4096,
    CLIENTS_MAX = 1024, /* whose endpoint is remembered, per listener */
    ACCEPTS = 64,       /* before other descriptors get their turn */
};

/* ---- one client ---- */

/* The text of an address; "" when it has none. */
static void proxy_write_address(const struct sockaddr_storage *from, char out[PROXY_ADDRESS_MAX])
{
    const void *at = from->ss_family == AF_INET6
                         ? (const void *)&((const struct sockaddr_in6 *)from)->sin6_addr
                         : (const void *)&((const struct sockaddr_in *)from)->sin_addr;

    if (!inet_ntop(from->ss_family, at, out, PROXY_ADDRESS_MAX)) {
        out[0] = '\0';
    }
}

static uint32_t proxy_find_target(const struct proxy_listener *l, const struct proxy_target *t)
{
    for (uint32_t i = 0; i < l->targets.len; i++) {
        if (l->targets.at[i].port == t->port && strcmp(l->targets.at[i].address, t->address) == 0) {
            return i;
        }
    }
    return HK_NONE;
}

static struct proxy_affinity *proxy_find_client(struct proxy_listener *l, const char *client)
{
    for (uint32_t i = 0; i < l->clients.len; i++) {
        if (strcmp(l->clients.at[i].client, client) == 0) {
            return &l->clients.at[i];
        }
    }
    return NULL;
}

/* A place for a new client; the one whose time ends first makes room for it. */
static struct proxy_affinity *proxy_add_client(struct proxy_listener *l, const char *client)
{
    uint32_t oldest = 0;

    if (l->clients.len < CLIENTS_MAX) {
        oldest = l->clients.len;
        hk_vec_push(&l->clients, (struct proxy_affinity){0});
    }
    for (uint32_t i = 0; i < l->clients.len && l->clients.at[oldest].until_ns > 0; i++) {
        if (l->clients.at[i].until_ns < l->clients.at[oldest].until_ns) {
            oldest = i;
        }
    }
    snprintf(l->clients.at[oldest].client, PROXY_ADDRESS_MAX, "%s", client);
    return &l->clients.at[oldest];
}

bool proxy_has_target(const struct proxy_listener *l, const struct proxy_target *t)
{
    return proxy_find_target(l, t) != HK_NONE;
}

uint32_t proxy_choose_target(struct proxy_listener *l, const struct sockaddr_storage *from)
{
    const int64_t now_ns = net_loop_now_ns(l->p->o.loop);
    char client[PROXY_ADDRESS_MAX];
    uint32_t target = l->next++ % l->targets.len;
    struct proxy_affinity *known;

    if (l->affinity_s == 0) {
        return target;
    }
    proxy_write_address(from, client);
    known = proxy_find_client(l, client);
    if (known && known->until_ns > now_ns && proxy_find_target(l, &known->target) != HK_NONE) {
        l->next--;
        target = proxy_find_target(l, &known->target);
    }
    known = known ? known : proxy_add_client(l, client);
    known->target = l->targets.at[target];
    known->until_ns = now_ns + l->affinity_s * SECOND_NS;
    return target;
}

/* The chosen target comes first, the others in their order: a client may need more than one. */
static void proxy_relay(struct proxy_listener *l, int fd, const struct sockaddr_storage *from)
{
    HK_VEC(struct proxy_target) order = {0};
    const uint32_t first = proxy_choose_target(l, from);

    for (uint32_t i = 0; i < l->targets.len; i++) {
        hk_vec_push(&order, l->targets.at[(first + i) % l->targets.len]);
    }
    proxy_conn_new(l->p, fd, order.at, order.len);
    hk_vec_fini(&order);
}

/* ---- how many ---- */

static void proxy_watch_listener(struct proxy_listener *l)
{
    if (l->fd >= 0 && !l->udp) {
        net_watch_change(l->watch, l->p->full ? 0 : EPOLLIN);
    }
}

/* While the proxy is full, clients wait in the backlogs of the listeners. */
static void proxy_set_full(struct proxy *p, bool full)
{
    if (p->full == full) {
        return;
    }
    p->full = full;
    for (uint32_t i = 0; i < p->listeners.len; i++) {
        proxy_watch_listener(p->listeners.at[i]);
    }
}

void proxy_on_conn_end(struct proxy *p, struct proxy_conn *c)
{
    for (uint32_t i = 0; i < p->conns.len; i++) {
        if (p->conns.at[i] == c) {
            hk_vec_swap_remove(&p->conns, i);
            break;
        }
    }
    proxy_set_full(p, p->conns.len >= p->o.max_connections);
}

/* Without descriptors or memory the listeners stay readable: watching them would only turn the loop
 * in circles. */
static void proxy_pause(struct proxy *p, int why)
{
    p->nfailed++;
    if (!p->told_failed) {
        p->told_failed = true;
        hk_log(HK_LOG_WARN, "cannot accept connections to Services, trying again", "err=\"%s\"",
               strerror(why));
    }
    proxy_set_full(p, true);
    net_timer_at(p->again, net_loop_now_ns(p->o.loop) + AGAIN_NS);
}

static void proxy_on_again(void *ctx)
{
    struct proxy *p = ctx;

    proxy_set_full(p, p->conns.len >= p->o.max_connections);
}

static bool proxy_is_short(int why)
{
    return why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM;
}

static void proxy_on_client(void *ctx, uint32_t events)
{
    struct proxy_listener *l = ctx;

    for (int i = 0; i < ACCEPTS && !l->p->full; i++) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof(from);
        const int fd = accept4(l->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            if (proxy_is_short(errno)) {
                proxy_pause(l->p, errno);
            }
            return;
        }
        l->p->told_failed = false;
        proxy_relay(l, fd, &from);
        proxy_set_full(l->p, l->p->conns.len >= l->p->o.max_connections);
    }
}

/* ---- listeners ---- */

static bool proxy_listener_open(struct proxy_listener *l, struct hk_err *err)
{
    struct net_loop *loop = l->p->o.loop;
    uint16_t port;

    if (l->udp) {
        l->fd = proxy_udp_listen(l, err);
    } else if (listen_on(hk_str(l->address), l->port, &l->fd, &port, err) < 0) {
        l->fd = -1;
    }
    if (l->fd < 0) {
        return false;
    }
    l->watch = l->udp ? net_watch_add(loop, l->fd, EPOLLIN, proxy_udp_on_datagram, l)
                      : net_watch_add(loop, l->fd, l->p->full ? 0 : EPOLLIN, proxy_on_client, l);
    return true;
}

static void proxy_listener_free(struct proxy_listener *l)
{
    proxy_udp_close(l);
    net_watch_del(l->watch);
    if (l->fd >= 0) {
        close(l->fd);
    }
    hk_vec_fini(&l->targets);
    hk_vec_fini(&l->clients);
    hk_free(l);
}

static void proxy_on_retry(void *ctx)
{
    struct proxy *p = ctx;
    bool again = false;

    for (uint32_t i = 0; i < p->listeners.len; i++) {
        struct proxy_listener *l = p->listeners.at[i];

        again |= l->fd < 0 && !proxy_listener_open(l, NULL);
    }
    if (again) {
        net_timer_at(p->retry, net_loop_now_ns(p->o.loop) + RETRY_NS);
    }
}

/* The Service kubernetes has a port that only root may have: every server of another user would
 * report it at each start, although pods have other ways to the API. */
static enum hk_log_level proxy_failure_level(const struct service *svc)
{
    return strcmp(svc->ns, "default") == 0 && strcmp(svc->name, "kubernetes") == 0 ? HK_LOG_DEBUG
                                                                                   : HK_LOG_WARN;
}

static struct proxy_listener *proxy_listener_new(struct proxy *p, const struct service *svc,
                                                 const char *address, uint16_t port, bool udp)
{
    struct proxy_listener *l = hk_zalloc(sizeof(*l));
    struct hk_err err = {0};

    l->p = p;
    l->service = svc;
    l->port = port;
    l->udp = udp;
    l->fd = -1;
    snprintf(l->address, sizeof(l->address), "%s", address);
    hk_vec_push(&p->listeners, l);
    if (!proxy_listener_open(l, &err)) {
        hk_log(proxy_failure_level(svc), "a port of a Service leads nowhere",
               "service=%s/%s err=\"%s\"", svc->ns, svc->name, err.text);
        net_timer_at(p->retry, net_loop_now_ns(p->o.loop) + RETRY_NS);
    }
    return l;
}

static struct proxy_listener *proxy_find_listener(const struct proxy *p, const struct service *svc,
                                                  const char *address, uint16_t port, bool udp)
{
    for (uint32_t i = 0; i < p->listeners.len; i++) {
        struct proxy_listener *l = p->listeners.at[i];

        if (l->service == svc && l->port == port && l->udp == udp &&
            strcmp(l->address, address) == 0) {
            return l;
        }
    }
    return NULL;
}

static void proxy_set_targets(struct proxy_listener *l, const service_targets *targets)
{
    hk_vec_clear(&l->targets);
    for (uint32_t i = 0; i < targets->len; i++) {
        struct proxy_target t = {.port = targets->at[i].port};

        snprintf(t.address, sizeof(t.address), "%s", targets->at[i].address);
        hk_vec_push(&l->targets, t);
    }
    proxy_udp_keep_targets(l);
}

static void proxy_want(struct proxy *p, const struct service *svc, const char *address,
                       uint16_t port, bool udp, const service_targets *targets)
{
    struct proxy_listener *l = proxy_find_listener(p, svc, address, port, udp);

    if (!l && p->listeners.len >= p->o.max_listeners) {
        if (!p->told_full) {
            hk_log(HK_LOG_WARN, "too many ports of Services: further ones lead nowhere", "max=%u",
                   p->o.max_listeners);
            p->told_full = true;
        }
        return;
    }
    l = l ? l : proxy_listener_new(p, svc, address, port, udp);
    l->wanted = true;
    l->affinity_s = svc->affinity_s;
    proxy_set_targets(l, targets);
}

static void proxy_want_port(struct proxy *p, const struct service *svc,
                            const struct service_port *port)
{
    const bool udp = port->protocol == SERVICE_UDP;
    service_targets targets = {0};

    if (port->protocol != SERVICE_SCTP) {
        service_find_targets(svc, port, &targets);
    }
    if (targets.len > 0 && svc->address[0] != '\0') {
        proxy_want(p, svc, svc->address, port->port, udp, &targets);
    }
    if (targets.len > 0 && port->node_port > 0) {
        proxy_want(p, svc, NODE_ADDRESS, port->node_port, udp, &targets);
    }
    hk_vec_fini(&targets);
}

static void proxy_on_service(void *ctx, const struct service *svc)
{
    struct proxy *p = ctx;

    for (uint32_t i = 0; i < p->listeners.len; i++) {
        p->listeners.at[i]->wanted &= p->listeners.at[i]->service != svc;
    }
    for (uint32_t i = 0; i < svc->ports.len; i++) {
        proxy_want_port(p, svc, &svc->ports.at[i]);
    }
    for (uint32_t i = p->listeners.len; i-- > 0;) {
        if (!p->listeners.at[i]->wanted) {
            proxy_listener_free(p->listeners.at[i]);
            hk_vec_swap_remove(&p->listeners, i);
        }
    }
}

/* ---- the whole ---- */

static void proxy_on_sweep(void *ctx)
{
    struct proxy *p = ctx;

    for (uint32_t i = 0; i < p->listeners.len; i++) {
        proxy_udp_sweep(p->listeners.at[i], net_loop_now_ns(p->o.loop));
    }
}

/* Each connection has two descriptors: three quarters of them are left to the server. */
static uint32_t proxy_usual_max(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0) {
        return CONNECTIONS_MAX;
    }
    return (uint32_t)HK_MAX(HK_MIN(files.rlim_cur / 8, (rlim_t)CONNECTIONS_MAX), (rlim_t)1);
}

struct proxy *proxy_new(const struct proxy_opts *o)
{
    struct proxy *p = hk_zalloc(sizeof(*p));

    p->o = *o;
    p->o.max_connections = o->max_connections > 0 ? o->max_connections : proxy_usual_max();
    p->o.max_listeners = o->max_listeners > 0 ? o->max_listeners : LISTENERS_MAX;
    p->retry = net_timer_new(o->loop, proxy_on_retry, p);
    p->again = net_timer_new(o->loop, proxy_on_again, p);
    p->sweep = net_timer_new(o->loop, proxy_on_sweep, p);
    services_listen(o->services, proxy_on_service, p);
    return p;
}

void proxy_free(struct proxy *p)
{
    if (!p) {
        return;
    }
    while (p->conns.len > 0) {
        proxy_conn_free(p->conns.at[0]);
    }
    for (uint32_t i = 0; i < p->listeners.len; i++) {
        proxy_listener_free(p->listeners.at[i]);
    }
    net_timer_free(p->retry);
    net_timer_free(p->again);
    net_timer_free(p->sweep);
    hk_vec_fini(&p->listeners);
    hk_vec_fini(&p->conns);
    hk_free(p);
}

uint32_t proxy_connections(const struct proxy *p)
{
    return p->conns.len;
}
