// SPDX-License-Identifier: Apache-2.0
// libcurl's multi interface on our loop.
#include "client/curl_loop.h"

#include "base/vec.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { DEAD_AFTER_MS = 30000 }; /* without acknowledgement of bytes or probes */

struct curl_loop {
    struct net_loop *loop;
    CURLM *multi;
    struct net_timer *timer;
    HK_VEC(struct curl_socket *) sockets;
    void (*done)(void *ctx, CURL *easy, CURLcode rc);
    void *ctx;
};

/* A watched libcurl socket. libcurl may close a socket that never connected without notice, and
 * reuse its number: we watch our own copy of the descriptor. */
struct curl_socket {
    struct curl_loop *l;
    int fd;   /* libcurl's descriptor */
    int copy; /* our copy */
    uint32_t events;
    struct net_watch *watch;
};

static void curl_loop_finish(struct curl_loop *l)
{
    int left;
    CURLMsg *m;

    while ((m = curl_multi_info_read(l->multi, &left))) {
        if (m->msg == CURLMSG_DONE) {
            l->done(l->ctx, m->easy_handle, m->data.result);
        }
    }
}

static void curl_loop_act(struct curl_loop *l, curl_socket_t fd, int what)
{
    int running;

    curl_multi_socket_action(l->multi, fd, what, &running);
    curl_loop_finish(l);
}

static void curl_loop_on_timer(void *ctx)
{
    curl_loop_act(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket_ready(void *ctx, uint32_t events)
{
    struct curl_socket *s = ctx;
    int what = 0;

    what |= events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP) ? CURL_CSELECT_IN : 0;
    what |= events & EPOLLOUT ? CURL_CSELECT_OUT : 0;
    what |= events & EPOLLERR ? CURL_CSELECT_ERR : 0;
    curl_loop_act(s->l, s->fd, what);
}

static int on_timeout_wish(CURLM *multi, long timeout_ms, void *ctx)
{
    struct curl_loop *l = ctx;

    if (timeout_ms < 0) {
        net_timer_off(l->timer);
    } else {
        net_timer_at(l->timer, net_loop_now_ns(l->loop) + (int64_t)timeout_ms * 1000000);
    }
    return 0;
}

/* Watches the socket that now has this number. */
static void socket_open(struct curl_socket *s)
{
    s->copy = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
    hk_assert(s->copy >= 0);
    s->watch = net_watch_add(s->l->loop, s->copy, s->events, on_socket_ready, s);
}

static void socket_close(struct curl_socket *s)
{
    net_watch_del(s->watch);
    close(s->copy);
}

static void socket_free(struct curl_socket *s)
{
    struct curl_loop *l = s->l;

    for (uint32_t i = 0; i < l->sockets.len; i++) {
        if (l->sockets.at[i] == s) {
            hk_vec_swap_remove(&l->sockets, i);
            break;
        }
    }
    socket_close(s);
    hk_free(s);
}

static int on_socket_wish(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socketp)
{
    struct curl_loop *l = ctx;
    struct curl_socket *s = socketp;
    const uint32_t events =
        (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);

    if (what == CURL_POLL_REMOVE) {
        if (s) {
            curl_multi_assign(l->multi, fd, NULL);
            socket_free(s);
        }
    } else if (s) {
        s->events = events;
        net_watch_change(s->watch, events);
    } else {
        s = hk_zalloc(sizeof(*s));
        *s = (struct curl_socket){.l = l, .fd = fd, .events = events};
        socket_open(s);
        hk_vec_push(&l->sockets, s);
        curl_multi_assign(l->multi, fd, s);
    }
    return 0;
}

/* The new socket has the number of one that libcurl closed and still considers watched. */
static void watch_anew(struct curl_loop *l, int fd)
{
    for (uint32_t i = 0; i < l->sockets.len; i++) {
        if (l->sockets.at[i]->fd == fd) {
            socket_close(l->sockets.at[i]);
            socket_open(l->sockets.at[i]);
            return;
        }
    }
}

/* A peer that vanished silently would block a watch until its stall timer, and a write until its
 * timeout. With these options unacknowledged bytes end the connection after 30 s, and silence after
 * a failed probe, at 45 s. Kernels without the option ignore this. */
static int on_socket_made(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    const unsigned dead_after_ms = DEAD_AFTER_MS;

    watch_anew(ctx, fd);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_after_ms, sizeof(dead_after_ms));
    return CURL_SOCKOPT_OK;
}

void curl_loop_set_up(struct curl_loop *l, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, l);
}

CURLM *curl_loop_multi(const struct curl_loop *l)
{
    return l->multi;
}

struct curl_loop *curl_loop_new(struct net_loop *loop, uint32_t max_idle_connections,
                                void (*done)(void *ctx, CURL *easy, CURLcode rc), void *ctx)
{
    struct curl_loop *l = hk_zalloc(sizeof(*l));

    *l = (struct curl_loop){.loop = loop, .done = done, .ctx = ctx};
    l->timer = net_timer_new(loop, curl_loop_on_timer, l);
    l->multi = curl_multi_init();
    hk_assert(l->multi);
    curl_multi_setopt(l->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wish);
    curl_multi_setopt(l->multi, CURLMOPT_SOCKETDATA, l);
    curl_multi_setopt(l->multi, CURLMOPT_TIMERFUNCTION, on_timeout_wish);
    curl_multi_setopt(l->multi, CURLMOPT_TIMERDATA, l);
    curl_multi_setopt(l->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    curl_multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, (long)max_idle_connections);
    return l;
}

void curl_loop_free(struct curl_loop *l)
{
    if (!l) {
        return;
    }
    curl_multi_cleanup(l->multi); /* closes its sockets */
    while (l->sockets.len > 0) {
        socket_free(l->sockets.at[0]);
    }
    hk_vec_fini(&l->sockets);
    net_timer_free(l->timer);
    hk_free(l);
}
