// SPDX-License-Identifier: Apache-2.0
// The HTTP server and a client of it in the same thread, for its tests.
#pragma once

#include "net/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_BODY = 1000, MAX_BODIES = 2500, MAX_CONNECTIONS = 16, PATIENCE_MS = 5000 };

struct fixture {
    struct net_loop *loop;
    struct http_server *server;
    struct http_request *held; /* waits for an answer, or streams */
    uint32_t handled, pulls, ended;
    struct hk_buf feed; /* what the stream has to say */
    bool feed_ends;
};

/* ---- handlers ---- */

static inline void reply(struct http_request *q, int status, const char *text)
{
    static const struct http_header type = {HK_STR("Content-Type"), HK_STR("text/plain")};
    struct hk_buf body = {0};

    hk_buf_adds(&body, text);
    http_reply(q, status, &type, 1, &body);
}

static inline bool pull(void *ctx, struct hk_buf *out, size_t room)
{
    struct fixture *f = ctx;

    f->pulls++;
    hk_buf_addstr(out, hk_buf_str(&f->feed));
    hk_buf_clear(&f->feed);
    return !f->feed_ends;
}

static inline void ended(void *ctx)
{
    struct fixture *f = ctx;

    f->ended++;
    f->held = NULL;
}

static inline void echo(struct http_request *q)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text, "%.*s|%.*s|%.*s|%.*s|%.*s|%s", HK_FMT(q->method), HK_FMT(q->path),
                HK_FMT(q->query), HK_FMT(q->body), HK_FMT(http_request_header(q, "x-test")),
                q->client_cert_cn ? q->client_cert_cn : "nobody");
    for (uint32_t k = 0; k < q->nclient_cert_orgs; k++) {
        hk_buf_addf(&text, ",%s", q->client_cert_orgs[k]);
    }
    reply(q, 200, text.data);
}

static inline void handle(void *ctx, struct http_request *q)
{
    struct fixture *f = ctx;
    const struct hk_str who = http_request_header(q, "x-user");

    f->handled++;
    if (who.n > 0 && !http_request_claim(q, who)) {
        reply(q, 429, "too many of yours");
    } else if (hk_str_is(q->path, "/later")) {
        f->held = q;
    } else if (hk_str_is(q->path, "/stream")) {
        f->held = q;
        http_reply_stream(q, 200, NULL, 0,
                          &(struct http_stream){.pull = pull, .ended = ended, .ctx = f});
    } else {
        echo(q);
    }
}

static inline int admit(void *ctx, const struct http_request *q)
{
    return hk_str_is(http_request_header(q, "x-test"), "stranger") ? 401 : 0;
}

static inline void refusal(void *ctx, int status, struct hk_buf *body)
{
    hk_buf_addf(body, "{\"refused\":%d}", status);
}

/* Of the options, what the tests differ in. */
static inline void start(struct fixture *f, const struct http_opts *tls)
{
    struct http_opts o = {
        .addr = HK_STR("127.0.0.1"),
        .max_body = MAX_BODY,
        .max_bodies = MAX_BODIES,
        .max_connections = MAX_CONNECTIONS,
        .admit = admit,
        .idle_timeout_ms = 60000,
        .header_timeout_ms = 60000,
        .handle = handle,
        .refusal = refusal,
        .ctx = f,
    };
    struct hk_err err = {0};

    if (tls) {
        o.cert_pem = tls->cert_pem;
        o.key_pem = tls->key_pem;
        o.client_ca_pem = tls->client_ca_pem;
        o.header_timeout_ms = tls->header_timeout_ms > 0 ? tls->header_timeout_ms : 60000;
        o.max_per_peer = tls->max_per_peer;
        o.max_per_user = tls->max_per_user;
        o.max_bodies_each = tls->max_bodies_each;
        o.max_descriptor = tls->max_descriptor;
    }
    f->loop = net_loop_new(hk_clock_system());
    if (http_server_new(f->loop, &o, &f->server, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static inline void finish(struct fixture *f)
{
    http_server_free(f->server);
    net_loop_free(f->loop);
    hk_buf_fini(&f->feed);
}

/* ---- the client ---- */

static inline void rig_turn(struct fixture *f)
{
    struct hk_err err = {0};

    assert_int_equal(net_loop_turn(f->loop, 5, &err), 0);
}

static inline int dial(struct fixture *f)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(f->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const void *)&to, sizeof(to)), 0);
    return fd;
}

static inline void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Turns the loop until want was read, or the peer has closed; then false. */
static inline bool read_until(struct fixture *f, int fd, struct hk_buf *in, const char *want)
{
    const int64_t deadline = net_loop_now_ns(f->loop) + (int64_t)PATIENCE_MS * 1000000;
    char chunk[4096];

    while (!hk_str_contains(hk_buf_str(in), want)) {
        rig_turn(f);
        const ssize_t n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
        if (n > 0) {
            hk_buf_add(in, chunk, (size_t)n);
        } else if (n == 0 || errno != EAGAIN) {
            return false;
        }
        if (net_loop_now_ns(f->loop) > deadline) {
            fail_msg("expected '%s' in '%s'", want, hk_buf_str(in).s);
        }
    }
    return true;
}

static inline void expect(struct fixture *f, int fd, const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};

    if (!read_until(f, fd, &in, want)) {
        fail_msg("expected '%s', the server closed after '%s'", want, hk_buf_str(&in).s);
    }
}

/* Until the condition holds. */
#define AWAIT(f, cond)                                                                             \
    do {                                                                                           \
        for (int left_ = PATIENCE_MS / 5; !(cond); left_--) {                                      \
            assert_true(left_ > 0);                                                                \
            rig_turn(f);                                                                           \
        }                                                                                          \
    } while (0)
