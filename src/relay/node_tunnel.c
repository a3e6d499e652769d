// SPDX-License-Identifier: Apache-2.0
// A tunnel between a client and a node:
//
//   DIALLING --> ASKING --node: 101--> AGREED --client: 101--> OPEN --one of them ends--> OVER
//                   '---node: anything else--> the client gets the same answer --> OVER
#include "relay/node_tunnel.h"

#include "base/arena.h"
#include "net/dial.h"
#include "net/http_head.h"
#include "net/ws.h"

#include <errno.h>
#include <strings.h>
#include <sys/epoll.h>

#define ANSWER_NS ((int64_t)30 * 1000 * 1000 * 1000)

enum {
    CHUNK = 32 << 10,
    MAX_ANSWER = 64 << 10, /* limit of a refusal, including its head */
    TURNS = 16,            /* chunks per call, so that others get their turn */
};

enum stage { DIALLING, ASKING, AGREED, OPEN, OVER };

/* One direction: data read and not yet written is [at, buf.len). */
struct way {
    struct hk_buf buf;
    size_t at;
};

struct node_tunnel {
    struct http_request *http;
    void (*over)(void *ctx);
    void (*failed)(void *ctx, const char *why);
    void *ctx;
    enum stage stage;
    struct net_timer *patience;
    struct net_dial *node; /* NULL: it has closed, and everything was read */
    struct way there, back;
};

/* ---- closing ---- */

static void node_tunnel_release(struct node_tunnel *t)
{
    t->stage = OVER;
    net_timer_off(t->patience);
    net_dial_free(t->node);
    t->node = NULL;
}

static void node_tunnel_end(struct node_tunnel *t)
{
    node_tunnel_release(t);
    t->over(t->ctx);
}

static void node_tunnel_fail(struct node_tunnel *t, const char *why)
{
    node_tunnel_release(t);
    t->failed(t->ctx, why);
}

static void node_tunnel_on_timeout(void *ctx)
{
    node_tunnel_fail(ctx, "the node does not answer");
}

static void hang_up(struct node_tunnel *t)
{
    http_tunnel_close(t->http);
    node_tunnel_end(t);
}

/* ---- bytes ---- */

static size_t left(const struct way *w)
{
    return w->buf.len - w->at;
}

static void sent(struct way *w, size_t n)
{
    w->at += n;
    if (w->at == w->buf.len) {
        hk_buf_clear(&w->buf);
        w->at = 0;
    }
}

static bool must_wait(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

enum moved { NOTHING, SOMETHING, LOST };

static enum moved read_node(struct node_tunnel *t)
{
    hk_buf_reserve(&t->back.buf, CHUNK);
    const ssize_t n = net_dial_read(t->node, t->back.buf.data + t->back.buf.len, CHUNK);

    if (n > 0) {
        t->back.buf.len += (size_t)n;
        return SOMETHING;
    }
    if (must_wait(n)) {
        return NOTHING;
    }
    net_dial_free(t->node);
    t->node = NULL;
    return NOTHING;
}

/* The node has closed: reads what it sent last, without waiting. */
static void hear_out(struct node_tunnel *t)
{
    while (t->node && read_node(t) == SOMETHING) {
    }
    net_dial_free(t->node);
    t->node = NULL;
}

static enum moved carry_there(struct node_tunnel *t)
{
    ssize_t n;

    if (left(&t->there) == 0) {
        hk_buf_reserve(&t->there.buf, CHUNK);
        n = http_tunnel_read(t->http, t->there.buf.data, CHUNK);
        if (n <= 0) {
            return must_wait(n) ? NOTHING : LOST;
        }
        t->there.buf.len = (size_t)n;
    }
    n = net_dial_write(t->node, t->there.buf.data + t->there.at, left(&t->there));
    if (n >= 0) {
        sent(&t->there, (size_t)n);
        return SOMETHING;
    }
    if (!must_wait(n)) {
        hear_out(t);
    }
    return NOTHING;
}

static enum moved carry_back(struct node_tunnel *t)
{
    if (left(&t->back) == 0 && (!t->node || read_node(t) == NOTHING)) {
        return NOTHING;
    }
    const ssize_t n = http_tunnel_write(t->http, t->back.buf.data + t->back.at, left(&t->back));
    if (n < 0) {
        return must_wait(n) ? NOTHING : LOST;
    }
    sent(&t->back, (size_t)n);
    return SOMETHING;
}

/* more: data may be available without a ready event. */
static void node_tunnel_rewatch(struct node_tunnel *t, bool more)
{
    http_tunnel_want(t->http, (t->node && left(&t->there) == 0 ? EPOLLIN : 0) |
                                  (left(&t->back) > 0 || more ? EPOLLOUT : 0));
    if (t->node) {
        net_dial_want(t->node,
                      (left(&t->back) == 0 ? EPOLLIN : 0) | (left(&t->there) > 0 ? EPOLLOUT : 0));
    }
}

static void node_tunnel_pump(struct node_tunnel *t)
{
    enum moved there = SOMETHING, back = SOMETHING;

    for (int k = 0; k < TURNS && (there == SOMETHING || back == SOMETHING); k++) {
        there = t->node ? carry_there(t) : NOTHING;
        back = there == LOST ? LOST : carry_back(t);
        if (back == LOST) {
            hang_up(t);
            return;
        }
    }
    if (!t->node && left(&t->back) == 0) {
        hang_up(t);
        return;
    }
    node_tunnel_rewatch(t, there == SOMETHING || back == SOMETHING);
}

/* ---- the client ---- */

static void on_client_opened(void *ctx, struct hk_str early)
{
    struct node_tunnel *t = ctx;

    t->stage = OPEN;
    hk_buf_addstr(&t->there.buf, early);
    node_tunnel_rewatch(t, true); /* cannot close from here */
}

static void on_client_ready(void *ctx, uint32_t events)
{
    node_tunnel_pump(ctx);
}

static void on_client_cut(void *ctx)
{
    node_tunnel_end(ctx);
}

/* ---- the node's answer ---- */

static void agree(struct node_tunnel *t, struct hk_str head)
{
    static const char *const names[] = {"Upgrade", "Sec-WebSocket-Accept", "Sec-WebSocket-Protocol",
                                        "X-Stream-Protocol-Version"};
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct http_header headers[HK_LEN(names)];
    uint32_t n = 0;

    for (size_t k = 0; k < HK_LEN(names); k++) {
        const struct hk_str value = hk_arena_str(&mem, http_head_get(head, names[k]));
        if (value.n > 0) {
            headers[n++] = (struct http_header){hk_str(names[k]), value};
        }
    }
    t->stage = AGREED;
    net_timer_off(t->patience);
    net_dial_want(t->node, 0);
    http_reply_tunnel(
        t->http, headers, n,
        &(struct http_tunnel){
            .opened = on_client_opened, .ready = on_client_ready, .cut = on_client_cut, .ctx = t});
    sent(&t->back, head.n);
}

/* The node refuses: sends its answer to the client once it is complete. */
static void disagree(struct node_tunnel *t, int status, struct hk_str head)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    int64_t want = 0;

    if (!hk_str_int(http_head_get(head, "Content-Length"), &want) || want > MAX_ANSWER) {
        want = MAX_ANSWER;
    }
    if (t->node && (int64_t)(t->back.buf.len - head.n) < want && t->back.buf.len < MAX_ANSWER) {
        return;
    }
    const struct http_header type = {HK_STR("Content-Type"),
                                     hk_arena_str(&mem, http_head_get(head, "Content-Type"))};
    hk_buf_add(&body, t->back.buf.data + head.n, t->back.buf.len - head.n);
    http_reply(t->http, status, &type, type.value.n > 0, &body);
    node_tunnel_end(t);
}

static void node_tunnel_read_answer(struct node_tunnel *t)
{
    while (t->node && t->back.buf.len < MAX_ANSWER && read_node(t) == SOMETHING) {
    }
    const size_t n = http_head_end(hk_buf_str(&t->back.buf));
    const struct hk_str head = {t->back.buf.data, n};
    const int status = n > 0 ? http_head_status(head) : 0;

    if (status == 101 && t->node) {
        agree(t, head);
    } else if (status > 101) {
        disagree(t, status, head);
    } else if (n > 0 || !t->node || t->back.buf.len >= MAX_ANSWER) {
        node_tunnel_fail(t, "the node does not answer as a server");
    }
}

static void node_tunnel_send_request(struct node_tunnel *t)
{
    const ssize_t n = net_dial_write(t->node, t->there.buf.data + t->there.at, left(&t->there));

    if (n < 0 && !must_wait(n)) {
        node_tunnel_fail(t, "the node has hung up");
        return;
    }
    sent(&t->there, (size_t)HK_MAX(n, 0));
    net_dial_want(t->node, left(&t->there) > 0 ? EPOLLOUT : EPOLLIN);
}

static void on_node_opened(void *ctx, const char *why)
{
    struct node_tunnel *t = ctx;

    if (why) {
        node_tunnel_fail(t, why);
        return;
    }
    t->stage = ASKING;
    node_tunnel_send_request(t);
}

static void on_node_ready(void *ctx, uint32_t events)
{
    struct node_tunnel *t = ctx;

    if (t->stage >= AGREED && events & (EPOLLHUP | EPOLLERR)) {
        hear_out(t);
    }
    if (t->stage == OPEN) {
        node_tunnel_pump(t);
    } else if (t->stage == ASKING && left(&t->there) > 0) {
        node_tunnel_send_request(t);
    } else if (t->stage == ASKING) {
        node_tunnel_read_answer(t);
    }
}

/* ---- opening ---- */

static void node_tunnel_add_header(void *ctx, struct hk_str name, struct hk_str value)
{
    static const char *const names[] = {"Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Version",
                                        "Sec-WebSocket-Protocol", "X-Stream-Protocol-Version"};
    struct hk_buf *out = ctx;

    for (size_t k = 0; k < HK_LEN(names); k++) {
        if (name.n == strlen(names[k]) && strncasecmp(name.s, names[k], name.n) == 0) {
            hk_buf_addf(out, "%s: %.*s\r\n", names[k], HK_FMT(value));
        }
    }
}

/* WebSocket requests use GET; SPDY requests use POST, which every kubelet accepts. */
static void node_tunnel_write_request(const struct node_tunnel_opts *o, struct hk_buf *out)
{
    const bool ws = ws_header_has(http_request_header(o->http, "Upgrade"), "websocket");
    const bool v6 = memchr(o->host.s, ':', o->host.n) != NULL;

    hk_buf_addf(out, "%s %s HTTP/1.1\r\nHost: %s%.*s%s:%u\r\nUser-Agent: hekla-apiserver\r\n%s",
                ws ? "GET" : "POST", o->path, v6 ? "[" : "", HK_FMT(o->host), v6 ? "]" : "",
                o->port, ws ? "" : "Content-Length: 0\r\n");
    http_request_headers(o->http, node_tunnel_add_header, out);
    hk_buf_adds(out, "Connection: Upgrade\r\n\r\n");
}

struct node_tunnel *node_tunnel_new(const struct node_tunnel_opts *o)
{
    struct node_tunnel *t = hk_zalloc(sizeof(*t));

    *t = (struct node_tunnel){.http = o->http, .over = o->over, .failed = o->failed, .ctx = o->ctx};
    node_tunnel_write_request(o, &t->there.buf);
    t->patience = net_timer_new(o->loop, node_tunnel_on_timeout, t);
    net_timer_at(t->patience, net_loop_now_ns(o->loop) + ANSWER_NS);
    t->node = net_dial_new(o->loop, &(struct net_dial_opts){.host = o->host,
                                                            .port = o->port,
                                                            .tls = true,
                                                            .cert_pem = o->cert_pem,
                                                            .key_pem = o->key_pem,
                                                            .opened = on_node_opened,
                                                            .ready = on_node_ready,
                                                            .ctx = t});
    return t;
}

void node_tunnel_free(struct node_tunnel *t)
{
    if (!t) {
        return;
    }
    if (t->stage == AGREED || t->stage == OPEN) {
        http_tunnel_close(t->http);
    }
    net_dial_free(t->node);
    net_timer_free(t->patience);
    hk_buf_fini(&t->there.buf);
    hk_buf_fini(&t->back.buf);
    hk_free(t);
}
