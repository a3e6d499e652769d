// SPDX-License-Identifier: Apache-2.0
// Upgraded connections: the library keeps them until this file closes them, and the handler reads
// and writes their bytes (tunnel.h).
#include "net/http_priv.h"

#include <sys/epoll.h>
#include <sys/socket.h>

void http_tunnel_cut(struct request *q)
{
    void (*const cut)(void *) = q->tunnel.cut;

    q->tunnel.cut = NULL;
    if (cut) {
        cut(q->tunnel.ctx);
    }
}

void http_tunnel_drop(struct request *q)
{
    struct MHD_UpgradeResponseHandle *const opened = q->opened;

    net_watch_del(q->hangup);
    q->hangup = NULL;
    q->opened = NULL;
    if (opened) {
        /* Pending output is sent first, within the idle timeout. */
        http_set_deadline(q->conn, q->conn->server->opts.idle_timeout_ms);
        q->closing = true;
        q->conn->server->nclosing++;
        MHD_upgrade_action(opened, MHD_UPGRADE_ACTION_CLOSE);
        http_run_soon(q->conn->server);
    }
}

static void on_tunnel_event(void *ctx, uint32_t events)
{
    struct request *q = ctx;

    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        http_tunnel_cut(q);
        http_tunnel_drop(q);
    } else {
        q->tunnel.ready(q->tunnel.ctx, events);
    }
}

/* The answer 101 was sent. The socket that the library offers is not used. */
static void on_upgraded(void *cls, struct MHD_Connection *mhd, void *ctx, const char *early,
                        size_t nearly, MHD_socket fd, struct MHD_UpgradeResponseHandle *opened)
{
    struct request *q = ctx;
    struct connection *c = q->conn;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

    q->opened = opened;
    net_watch_del(q->hangup);
    tunnel_open(&c->tunnel, c->fd, info ? info->tls_session : NULL);
    q->hangup = net_watch_add(c->server->loop, c->fd, EPOLLRDHUP, on_tunnel_event, q);
    if (q->tunnel.cut) {
        q->tunnel.opened(q->tunnel.ctx, (struct hk_str){early, nearly});
    } else {
        shutdown(c->fd, SHUT_RDWR); /* the handler is gone; closing is not possible here */
    }
}

void http_reply_tunnel(struct http_request *pub, const struct http_header *headers, uint32_t n,
                       const struct http_tunnel *t)
{
    struct request *q = (struct request *)pub;

    q->tunnel = *t;
    http_answer(q, MHD_HTTP_SWITCHING_PROTOCOLS, headers, n,
                MHD_create_response_for_upgrade(on_upgraded, q));
}

void http_tunnel_want(struct http_request *pub, uint32_t events)
{
    struct request *q = (struct request *)pub;

    if (q->opened) {
        net_watch_change(q->hangup, events | EPOLLRDHUP);
    }
}

ssize_t http_tunnel_read(struct http_request *pub, char *p, size_t n)
{
    return tunnel_read(&((struct request *)pub)->conn->tunnel, p, n);
}

ssize_t http_tunnel_write(struct http_request *pub, const char *p, size_t n)
{
    return tunnel_write(&((struct request *)pub)->conn->tunnel, p, n);
}

void http_tunnel_close(struct http_request *pub)
{
    struct request *q = (struct request *)pub;

    q->tunnel.cut = NULL;
    http_tunnel_drop(q);
}
