// SPDX-License-Identifier: Apache-2.0
// libcurl's multi interface on our loop: its sockets become watches, its single timeout a timer,
// and finished transfers go to their calls. Handles are reused. Idle connections belong to the
// multi handle, so any call can use any of them.
#include "client/client_priv.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    KEEP_IDLE_S = 60, /* below the idle timeouts of servers, which start at 90 s */
    PROBE_AFTER_S = 30,
    PROBE_EVERY_S = 15,
    DEAD_AFTER_MS = 30000, /* without acknowledgement of bytes or probes */
    READ_BYTES = 64 << 10,
};

/* ---- events ---- */

static void client_multi_finish_calls(struct client *c)
{
    int left;
    CURLMsg *m;

    while ((m = curl_multi_info_read(c->multi, &left))) {
        if (m->msg == CURLMSG_DONE) {
            struct call *k = NULL;
            const CURLcode rc = m->data.result;
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &k);
            call_end(k, rc);
        }
    }
}

static void client_multi_socket_action(struct client *c, curl_socket_t fd, int what)
{
    int running;

    curl_multi_socket_action(c->multi, fd, what, &running);
    client_multi_finish_calls(c);
}

static void client_multi_on_timer(void *ctx)
{
    client_multi_socket_action(ctx, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket_ready(void *ctx, uint32_t events)
{
    struct client_socket *s = ctx;
    int what = 0;

    what |= events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP) ? CURL_CSELECT_IN : 0;
    what |= events & EPOLLOUT ? CURL_CSELECT_OUT : 0;
    what |= events & EPOLLERR ? CURL_CSELECT_ERR : 0;
    client_multi_socket_action(s->c, s->fd, what);
}

static int on_timeout_wish(CURLM *multi, long timeout_ms, void *ctx)
{
    struct client *c = ctx;

    if (timeout_ms < 0) {
        net_timer_off(c->multi_timer);
    } else {
        net_timer_at(c->multi_timer, net_loop_now_ns(c->o.loop) + (int64_t)timeout_ms * 1000000);
    }
    return 0;
}

/* Watches the socket that now has this number. */
static void socket_open(struct client_socket *s)
{
    s->copy = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
    hk_assert(s->copy >= 0);
    s->watch = net_watch_add(s->c->o.loop, s->copy, s->events, on_socket_ready, s);
}

static void socket_close(struct client_socket *s)
{
    net_watch_del(s->watch);
    close(s->copy);
}

static void socket_free(struct client_socket *s)
{
    struct client *c = s->c;

    for (uint32_t i = 0; i < c->sockets.len; i++) {
        if (c->sockets.at[i] == s) {
            hk_vec_swap_remove(&c->sockets, i);
            break;
        }
    }
    socket_close(s);
    hk_free(s);
}

static int on_socket_wish(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socketp)
{
    struct client *c = ctx;
    struct client_socket *s = socketp;
    const uint32_t events =
        (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);

    if (what == CURL_POLL_REMOVE) {
        if (s) {
            curl_multi_assign(c->multi, fd, NULL);
            socket_free(s);
        }
    } else if (s) {
        s->events = events;
        net_watch_change(s->watch, events);
    } else {
        s = hk_zalloc(sizeof(*s));
        *s = (struct client_socket){.c = c, .fd = fd, .events = events};
        socket_open(s);
        hk_vec_push(&c->sockets, s);
        curl_multi_assign(c->multi, fd, s);
    }
    return 0;
}

/* The new socket has the number of one that libcurl closed and still considers watched. */
static void watch_anew(struct client *c, int fd)
{
    for (uint32_t i = 0; i < c->sockets.len; i++) {
        if (c->sockets.at[i]->fd == fd) {
            socket_close(c->sockets.at[i]);
            socket_open(c->sockets.at[i]);
            return;
        }
    }
}

/* ---- handles ---- */

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

static bool is_loopback(const struct client *c)
{
    const char *host = strstr(c->config.server, "://") + 3;

    return hk_str_starts(hk_str(host), "localhost") || hk_str_starts(hk_str(host), "127.") ||
           hk_str_starts(hk_str(host), "[::1]");
}

/* Without a configured proxy, the proxy variables of the environment apply, but never for a server
 * on this machine. A SOCKS proxy resolves names, as with kubectl; libcurl calls that socks5h. */
static void set_proxy(const struct client *c, CURL *curl)
{
    if (c->config.proxy_url) {
        HK_AUTO(hk_buf_fini) struct hk_buf url = {0};
        const char *given = c->config.proxy_url;
        const bool socks = hk_str_starts(hk_str(given), "socks5://");
        hk_buf_addf(&url, "%s%s", socks ? "socks5h" : "", socks ? given + strlen("socks5") : given);
        curl_easy_setopt(curl, CURLOPT_PROXY, url.data);
        curl_easy_setopt(curl, CURLOPT_NOPROXY, "");
    } else if (is_loopback(c)) {
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    }
}

static void set_up(struct client *c, struct easy *e)
{
    CURL *curl = e->curl;

    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, e->error);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_USERAGENT, c->o.user_agent);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)c->o.connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_MAXAGE_CONN, (long)KEEP_IDLE_S);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, (long)PROBE_AFTER_S);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, (long)PROBE_EVERY_S);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
    curl_easy_setopt(curl, CURLOPT_SOCKOPTDATA, c);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)READ_BYTES);
    if (c->connect_to_list) {
        curl_easy_setopt(curl, CURLOPT_CONNECT_TO, c->connect_to_list);
    }
    set_proxy(c, curl);
    auth_apply_tls(c, curl);
    e->generation = c->auth.generation;
}

struct easy *multi_take(struct client *c)
{
    struct easy *e;

    if (c->idle.len > 0) {
        e = hk_vec_pop(&c->idle);
    } else {
        e = hk_zalloc(sizeof(*e));
        e->curl = curl_easy_init();
        hk_assert(e->curl); /* fails only for lack of memory */
        e->generation = UINT64_MAX;
    }
    if (e->generation != c->auth.generation) {
        set_up(c, e);
    }
    e->error[0] = '\0';
    return e;
}

void multi_give(struct client *c, struct easy *e)
{
    if (e) {
        hk_vec_push(&c->idle, e);
    }
}

/* ---- the server's names ---- */

/* A separate name for TLS: libcurl takes it from the URL, so the URL contains it, while the
 * connection and the Host header use the real host. */
static void rename_host(struct client *c)
{
    const char *server = c->config.server;
    const char *host = strstr(server, "://") + 3;
    const size_t n = strcspn(host, "/");
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    const char *colon = memrchr(host, ':', n);
    const char *bracket = memrchr(host, ']', n);

    if (colon && bracket && colon < bracket) {
        colon = NULL; /* the colon is part of an IPv6 address */
    }
    const size_t name = colon ? (size_t)(colon - host) : n;
    const struct hk_str port = colon ? (struct hk_str){colon + 1, n - name - 1} : HK_STR("443");

    hk_buf_addf(&b, "%s:%.*s:%.*s:%.*s", c->config.tls_server_name, HK_FMT(port), (int)name, host,
                HK_FMT(port));
    c->connect_to_list = curl_slist_append(NULL, b.data);
    hk_buf_clear(&b);
    hk_buf_addf(&b, "Host: %.*s", (int)n, host);
    c->host_header = hk_strdup(b.data);
    hk_buf_clear(&b);
    hk_buf_addf(&b, "https://%s:%.*s%s", c->config.tls_server_name, HK_FMT(port), host + n);
    c->base_url = hk_strdup(b.data);
}

int multi_init(struct client *c, struct hk_err *err)
{
    const bool tls = hk_str_starts(hk_str(c->config.server), "https://");

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return hk_fail(err, HK_EIO, "cannot set up libcurl");
    }
    if (c->config.tls_server_name && tls) {
        rename_host(c);
    } else {
        c->base_url = hk_strdup(c->config.server);
    }
    c->multi_timer = net_timer_new(c->o.loop, client_multi_on_timer, c);
    c->multi = curl_multi_init();
    hk_assert(c->multi);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wish);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timeout_wish);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    /* More than the calls in flight, or connections would be closed and made all the time. */
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, 2L * c->o.connections + 64);
    return 0;
}

void multi_fini(struct client *c)
{
    if (!c->multi) {
        return;
    }
    for (uint32_t i = 0; i < c->idle.len; i++) {
        curl_easy_cleanup(c->idle.at[i]->curl);
        hk_free(c->idle.at[i]);
    }
    curl_multi_cleanup(c->multi); /* closes its sockets */
    while (c->sockets.len > 0) {
        socket_free(c->sockets.at[0]);
    }
    hk_vec_fini(&c->sockets);
    hk_vec_fini(&c->idle);
    net_timer_free(c->multi_timer);
    curl_slist_free_all(c->connect_to_list);
    hk_free(c->host_header);
    hk_free(c->base_url);
    curl_global_cleanup();
}
