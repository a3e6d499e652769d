// SPDX-License-Identifier: Apache-2.0
// A server that does what it is told: takes whole requests, in the order they arrive on any
// connection, and answers each with the next line of its script, byte for byte.
#pragma once

#include "base/vec.h"
#include "client/rig_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum script_then {
    SCRIPT_KEEP,  /* the connection stays open for the next request */
    SCRIPT_CLOSE, /* after the bytes */
    SCRIPT_RESET, /* the same, with an RST */
};

struct script_line {
    const char *bytes; /* NULL: none */
    enum script_then then;
};

struct script_conn {
    struct script *s;
    int fd;
    struct net_watch *watch;
    struct hk_buf in;
    uint32_t requests;
};

struct script {
    struct net_loop *loop;
    int fd;
    uint16_t port;
    struct net_watch *watch;
    const struct script_line *lines; /* the last line answers all further requests */
    uint32_t nlines, at;
    uint32_t requests;
    struct hk_buf log;  /* "GET /api/...\n" */
    struct hk_buf last; /* the whole of the last request */
    HK_VEC(struct script_conn *) conns;
    uint32_t reused; /* requests on connections that had seen some */
};

static inline void script_conn_free(struct script_conn *c)
{
    struct script *s = c->s;

    net_watch_del(c->watch);
    close(c->fd);
    hk_buf_fini(&c->in);
    for (uint32_t i = 0; i < s->conns.len; i++) {
        if (s->conns.at[i] == c) {
            hk_vec_swap_remove(&s->conns, i);
            break;
        }
    }
    hk_free(c);
}

/* Length of the request at the beginning of the buffer, 0 when it is not whole. */
static inline size_t script_whole(const struct hk_buf *in)
{
    const char *end = in->len > 0 ? strstr(in->data, "\r\n\r\n") : NULL;
    const char *length = end ? strcasestr(in->data, "\r\nContent-Length: ") : NULL;

    if (!end) {
        return 0;
    }
    const size_t body = length && length < end ? strtoul(length + 18, NULL, 10) : 0;
    const size_t whole = (size_t)(end + 4 - in->data) + body;
    return in->len >= whole ? whole : 0;
}

/* False when the connection is gone. */
static inline bool script_answer(struct script_conn *c)
{
    struct script *s = c->s;
    const struct script_line *line = &s->lines[HK_MIN(s->at, s->nlines - 1)];
    const size_t n = line->bytes ? strlen(line->bytes) : 0;

    s->at++;
    s->requests++;
    s->reused += c->requests++ > 0;
    hk_buf_clear(&s->last);
    hk_buf_addstr(&s->last, hk_buf_str(&c->in));
    hk_buf_add(&s->log, c->in.data, strcspn(c->in.data, "\r") - strlen(" HTTP/1.1"));
    hk_buf_addc(&s->log, '\n');
    for (size_t done = 0; done < n;) {
        const ssize_t part = send(c->fd, line->bytes + done, n - done, MSG_NOSIGNAL);
        if (part < 0) {
            break;
        }
        done += (size_t)part;
    }
    if (line->then == SCRIPT_RESET) {
        const struct linger hard = {.l_onoff = 1};
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    }
    if (line->then != SCRIPT_KEEP) {
        script_conn_free(c);
        return false;
    }
    return true;
}

static inline void script_on_bytes(void *ctx, uint32_t events)
{
    struct script_conn *c = ctx;
    char chunk[65536];
    const ssize_t n = recv(c->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    size_t whole;

    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        script_conn_free(c);
        return;
    }
    hk_buf_add(&c->in, chunk, n > 0 ? (size_t)n : 0);
    while ((whole = script_whole(&c->in)) > 0) {
        if (!script_answer(c)) {
            return;
        }
        memmove(c->in.data, c->in.data + whole, c->in.len - whole + 1);
        c->in.len -= whole;
    }
}

static inline void script_on_dial(void *ctx, uint32_t events)
{
    struct script *s = ctx;
    struct script_conn *c = hk_zalloc(sizeof(*c));

    c->s = s;
    c->fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(c->fd >= 0);
    c->watch = net_watch_add(s->loop, c->fd, EPOLLIN, script_on_bytes, c);
    hk_vec_push(&s->conns, c);
}

/* Starts to listen. */
static inline void script_open(struct script *s, struct net_loop *loop)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(to);

    s->loop = loop;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (const void *)&to, sizeof(to)), 0);
    assert_int_equal(listen(s->fd, 64), 0);
    assert_int_equal(getsockname(s->fd, (void *)&to, &n), 0);
    s->port = ntohs(to.sin_port);
    s->watch = net_watch_add(loop, s->fd, EPOLLIN, script_on_dial, s);
}

static inline void script_play(struct script *s, const struct script_line *lines, uint32_t n)
{
    s->lines = lines;
    s->nlines = n;
    s->at = 0;
    s->requests = 0;
    s->reused = 0;
    hk_buf_clear(&s->log);
}

static inline void script_hang_up(struct script *s)
{
    while (s->conns.len > 0) {
        script_conn_free(s->conns.at[0]);
    }
}

static inline void script_deaf(struct script *s)
{
    if (s->fd >= 0) {
        net_watch_del(s->watch);
        close(s->fd);
    }
    s->fd = -1;
}

static inline void script_close(struct script *s)
{
    script_hang_up(s);
    script_deaf(s);
    hk_buf_fini(&s->log);
    hk_buf_fini(&s->last);
    hk_vec_fini(&s->conns);
}
