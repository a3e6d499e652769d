// SPDX-License-Identifier: Apache-2.0
// A server over a socket for unit tests: store, rest and server are real, in memory and without TLS;
// the wall clock stands still. And its client.
#pragma once

#include "apiserver/server_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 5000 };

#define CONFIGMAPS "/api/v1/namespaces/default/configmaps"

/* The wall clock stands still, so that an age is the same in two answers that are compared. */
struct still_clock {
    struct hk_clock clock; /* first, so that the callbacks find the rest */
    int64_t wall_ns;
};

static inline int64_t still_wall_ns(struct hk_clock *c)
{
    return ((const struct still_clock *)c)->wall_ns;
}

static inline int64_t still_mono_ns(struct hk_clock *c)
{
    struct hk_clock *system = hk_clock_system();

    return system->mono_ns(system);
}

struct fixture {
    struct hk_rand rand;
    struct still_clock clock;
    struct net_loop *loop;
    struct store *store;
    struct rest *rest;
    struct auth *auth;
    struct server *server;
    int fd; /* kept alive between requests */
    struct hk_buf in;
};

static inline int begin(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));
    struct hk_err err = {0};

    *state = f;
    hk_rand_seed(&f->rand, 1);
    f->clock = (struct still_clock){
        .clock = {.wall_ns = still_wall_ns, .mono_ns = still_mono_ns},
        .wall_ns = hk_clock_system()->wall_ns(hk_clock_system()),
    };
    f->loop = net_loop_new(hk_clock_system());
    f->fd = -1;
    if (store_open(&(struct store_opts){0}, &f->store, &err) < 0 ||
        auth_parse(HK_STR("secret,admin,1,system:masters\nweak,bob,2,dev\n"), &f->auth, &err) < 0) {
        return -1;
    }
    f->rest = rest_new(
        &(struct rest_opts){.store = f->store, .clock = &f->clock.clock, .rand = &f->rand});
    const struct server_opts o = {
        .loop = f->loop,
        .rest = f->rest,
        .store = f->store,
        .clock = &f->clock.clock,
        .rand = &f->rand,
        .addr = HK_STR("127.0.0.1"),
        .auth = f->auth,
    };
    return server_new(&o, &f->server, &err);
}

static inline int end(void **state)
{
    struct fixture *f = *state;

    if (f->fd >= 0) {
        close(f->fd);
    }
    server_stop(f->server, PATIENCE_MS);
    server_free(f->server);
    rest_free(f->rest);
    store_close(f->store);
    auth_free(f->auth);
    net_loop_free(f->loop);
    hk_buf_fini(&f->in);
    hk_free(f);
    return 0;
}

/* ---- the client ---- */

static inline int dial(struct fixture *f)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(server_port(f->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const void *)&to, sizeof(to)), 0);
    return fd;
}

static inline void turn(struct fixture *f, int fd, struct hk_buf *in)
{
    struct hk_err err = {0};
    char chunk[8192];

    assert_int_equal(net_loop_turn(f->loop, 2, &err), 0);
    const ssize_t n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    if (n > 0) {
        hk_buf_add(in, chunk, (size_t)n);
    } else if (n == 0) {
        fail_msg("the server closed after '%s'", hk_buf_str(in).s);
    }
}

static inline void read_until(struct fixture *f, int fd, struct hk_buf *in, const char *want)
{
    const int64_t deadline = net_loop_now_ns(f->loop) + (int64_t)PATIENCE_MS * 1000000;

    while (!hk_str_contains(hk_buf_str(in), want)) {
        turn(f, fd, in);
        if (net_loop_now_ns(f->loop) > deadline) {
            fail_msg("expected '%s' in '%s'", want, hk_buf_str(in).s);
        }
    }
}

/* Reads until the buffer has n bytes. */
static inline void read_bytes(struct fixture *f, int fd, struct hk_buf *in, size_t n)
{
    const int64_t deadline = net_loop_now_ns(f->loop) + (int64_t)PATIENCE_MS * 1000000;

    while (in->len < n) {
        turn(f, fd, in);
        if (net_loop_now_ns(f->loop) > deadline) {
            fail_msg("expected %zu bytes, got %zu", n, in->len);
        }
    }
}

static inline void wait_for_watches(struct fixture *f, uint32_t n)
{
    const int64_t deadline = net_loop_now_ns(f->loop) + (int64_t)PATIENCE_MS * 1000000;
    struct hk_err err = {0};

    while (f->server->counters.watches != n) {
        assert_int_equal(net_loop_turn(f->loop, 2, &err), 0);
        if (net_loop_now_ns(f->loop) > deadline) {
            fail_msg("expected %u watches, got %u", n, f->server->counters.watches);
        }
    }
}

static inline bool answer_whole(const struct hk_buf *in)
{
    const char *length = in->len > 0 ? strstr(in->data, "Content-Length: ") : NULL;
    const char *body = in->len > 0 ? strstr(in->data, "\r\n\r\n") : NULL;

    if (body && strstr(in->data, "Transfer-Encoding: chunked")) {
        return hk_str_ends(hk_buf_str(in), "\r\n0\r\n\r\n");
    }
    return length && body &&
           in->len - (size_t)(body + 4 - in->data) == strtoul(length + 16, NULL, 10);
}

static inline void ask(int fd, const char *method, const char *target, const char *headers,
                       const char *body)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    hk_buf_addf(&out, "%s %s HTTP/1.1\r\nHost: x\r\n%s", method, target, headers);
    if (body) {
        hk_buf_addf(&out, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    } else {
        hk_buf_adds(&out, "\r\n");
    }
    assert_int_equal(send(fd, out.data, out.len, MSG_NOSIGNAL), out.len);
}

#define TOKEN "Authorization: Bearer secret\r\n"

/* The whole answer, head and body, and its code. */
static inline int call(struct fixture *f, const char *method, const char *target,
                       const char *headers, const char *body)
{
    const int64_t deadline = net_loop_now_ns(f->loop) + (int64_t)PATIENCE_MS * 1000000;

    if (f->fd < 0) {
        f->fd = dial(f);
    }
    hk_buf_clear(&f->in);
    ask(f->fd, method, target, headers, body);
    while (!answer_whole(&f->in)) {
        turn(f, f->fd, &f->in);
        if (net_loop_now_ns(f->loop) > deadline) {
            fail_msg("%s %s: no whole answer: '%s'", method, target, hk_buf_str(&f->in).s);
        }
    }
    return (int)strtol(f->in.data + strlen("HTTP/1.1 "), NULL, 10);
}

static inline void expect(struct fixture *f, const char *method, const char *target,
                          const char *body, int code, const char *want)
{
    const int got = call(f, method, target, TOKEN, body);

    if (got != code || !hk_str_contains(hk_buf_str(&f->in), want)) {
        fail_msg("%s %s: expected %d with '%s', got '%s'", method, target, code, want, f->in.data);
    }
}

static inline void make(struct fixture *f, const char *name)
{
    char body[128];

    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"},\"data\":{\"k\":\"v\"}}", name);
    expect(f, "POST", CONFIGMAPS, body, 201, "\"resourceVersion\":");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
