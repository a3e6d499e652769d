// SPDX-License-Identifier: Apache-2.0
// A node whose container is reached over a real connection: the test is the client, and holds the
// other ends of the container's streams.
#pragma once

#include "agent/agent_priv.h"
#include "agent/rig_test.h"
#include "agent/serve/stream_session.h"
#include "net/node_api.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_TURNS = 5000 };

struct scene {
    struct rig r;
    struct net_loop *loop;
    struct http_server *server;
    struct runtime_ops ops;
    const char *sub;    /* exec or attach */
    int in, out, err;   /* of the command; -1: none */
    struct hk_buf told; /* to the container: "resize 5\n", "in-ends 0\n" */

    int fd; /* of the client */
    struct hk_buf raw;
    struct ws_reader reader;
    struct hk_buf channels[5];
    uint8_t channel;
    uint16_t closed; /* code of the server's close; 0: none */
    struct hk_buf pouring;
    size_t poured;
};

/* ---- the node ---- */

static struct scene *the_scene; /* the runtime's table has no context pointer for tests */

static inline int exec_with_streams(struct runtime *rt, uint64_t container, const char *const *argv,
                                    int in, int out, int err_out, uint64_t *ret, struct hk_err *err)
{
    the_scene->in = in < 0 ? -1 : fcntl(in, F_DUPFD_CLOEXEC, 3);
    the_scene->out = out < 0 ? -1 : fcntl(out, F_DUPFD_CLOEXEC, 3);
    the_scene->err = err_out < 0 ? -1 : fcntl(err_out, F_DUPFD_CLOEXEC, 3);
    return fake_exec(rt, container, argv, in, out, err_out, ret, err);
}

static inline void handle(void *ctx, struct http_request *q)
{
    struct scene *s = ctx;

    agent_serve(s->r.agent, &(struct node_call){.ns = HK_STR("d"),
                                                .pod = HK_STR("a"),
                                                .sub = hk_str(s->sub),
                                                .query = q->query,
                                                .http = q});
}

static inline int open_input(struct runtime *rt, uint64_t container, int *ret, struct hk_err *err)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    the_scene->in = fds[0];
    *ret = fds[1];
    return 0;
}

static inline void tell_container(struct runtime *rt, uint64_t container, enum runtime_word word,
                                  int value)
{
    hk_buf_addf(&the_scene->told, "%s %d\n", word == RUNTIME_IN_ENDS ? "in-ends" : "resize", value);
}

/* A node with the running container c of the pod a; more: further fields of the container. */
static inline void start_with(struct scene *s, const char *sub, const char *more)
{
    HK_AUTO(hk_buf_fini) struct hk_buf spec = {0};
    struct hk_err err = {0};

    *s = (struct scene){.in = -1, .out = -1, .err = -1, .fd = -1, .ops = fake_ops, .sub = sub};
    s->reader.max_frame = 1 << 20;
    the_scene = s;
    rig_init(&s->r);
    s->ops.exec = exec_with_streams;
    s->ops.open_in = open_input;
    s->ops.tell = tell_container;
    s->r.fake.runtime.ops = &s->ops;
    s->loop = net_loop_new(hk_clock_system());
    s->r.agent->host.o.loop = s->loop;
    hk_buf_addf(&spec, "  containers:\n  - {name: c, image: i, command: [work]%s}\n", more);
    rig_pod(&s->r, "a", spec.data);
    const struct http_opts o = {.addr = HK_STR("127.0.0.1"),
                                .max_body = 100,
                                .max_bodies = 1000,
                                .max_connections = 8,
                                .idle_timeout_ms = 60000,
                                .header_timeout_ms = 60000,
                                .handle = handle,
                                .ctx = s};
    assert_int_equal(http_server_new(s->loop, &o, &s->server, &err), 0);
}

static inline void shut(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

static inline void finish(struct scene *s)
{
    rig_fini(&s->r);
    http_server_free(s->server);
    net_loop_free(s->loop);
    shut(&s->in);
    shut(&s->out);
    shut(&s->err);
    shut(&s->fd);
    hk_buf_fini(&s->raw);
    hk_buf_fini(&s->told);
    hk_buf_fini(&s->pouring);
    for (size_t k = 0; k < HK_LEN(s->channels); k++) {
        hk_buf_fini(&s->channels[k]);
    }
}

static inline void turn(struct scene *s)
{
    struct hk_err err = {0};

    assert_int_equal(net_loop_turn(s->loop, 1, &err), 0);
    agent_run(s->r.agent);
}

/* ---- the client ---- */

static inline void dial(struct scene *s, const char *query, const char *headers)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(s->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text, "GET /x?%s HTTP/1.1\r\nHost: x\r\n%s\r\n", query, headers);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(s->fd, (const void *)&to, sizeof(to)), 0);
    assert_int_equal(send(s->fd, text.data, text.len, 0), text.len);
}

static inline bool hear(struct scene *s)
{
    char chunk[4096];

    turn(s);
    const ssize_t n = recv(s->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    if (n > 0) {
        hk_buf_add(&s->raw, chunk, (size_t)n);
    }
    return n > 0 || (n < 0 && errno == EAGAIN);
}

#define UPGRADE                                                                                    \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"                   \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define V5 UPGRADE "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n"

static inline const char *answer(struct scene *s, const char *query, const char *headers)
{
    dial(s, query, headers);
    while (!hk_str_contains(hk_buf_str(&s->raw), "\r\n\r\n") ||
           (!hk_str_contains(hk_buf_str(&s->raw), " 101 ") &&
            !hk_str_contains(hk_buf_str(&s->raw), "}\n"))) {
        assert_true(hear(s));
    }
    return s->raw.data;
}

static inline void upgrade(struct scene *s, const char *query)
{
    const char *text = answer(s, query, V5);

    assert_non_null(strstr(text, " 101 "));
    assert_non_null(strstr(text, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    hk_buf_drop(&s->raw, (size_t)(strstr(text, "\r\n\r\n") + 4 - text));
}

/* Sorts received data into channels. */
static inline void parse(struct scene *s)
{
    struct ws_piece p;
    struct hk_err err = {0};
    char *in = s->raw.data;
    size_t n = s->raw.len;

    while (n > 0 && ws_read(&s->reader, &in, &n, &p, &err) > 0) {
        if (p.op == WS_CLOSE) {
            s->closed = ws_close_code(p.bytes);
            continue;
        }
        if (p.first && p.bytes.n > 0) {
            s->channel = (uint8_t)p.bytes.s[0];
            p.bytes.s++;
            p.bytes.n--;
        }
        hk_buf_addstr(&s->channels[s->channel], p.bytes);
    }
    assert_string_equal(err.text, "");
    hk_buf_clear(&s->raw);
}

#define AWAIT(s, cond)                                                                             \
    do {                                                                                           \
        for (int left_ = PATIENCE_TURNS; !(cond); left_--) {                                       \
            assert_true(left_ > 0);                                                                \
            hear(s);                                                                               \
            parse(s);                                                                              \
        }                                                                                          \
    } while (0)

static inline ssize_t tell(struct scene *s, uint8_t channel, struct hk_str bytes)
{
    static const unsigned char mask[4] = {9, 8, 7, 6};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    ws_write_channel(channel, bytes, mask, &out);
    return send(s->fd, out.data, out.len, MSG_NOSIGNAL);
}

static inline void end_command(struct scene *s, int code)
{
    shut(&s->in);
    shut(&s->out);
    shut(&s->err);
    fake_tell(&s->r, s->r.fake.all.len, code, 0);
}

static inline bool said(const struct scene *s, int channel, const char *text)
{
    return hk_str_contains(hk_buf_str(&s->channels[channel]), text);
}
