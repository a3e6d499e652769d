// SPDX-License-Identifier: Apache-2.0
// Tunnels through the HTTP server, plain and over TLS, with clients in the same thread: correct
// echoes with many clients, some of which do not read, peers that leave, servers that stop.
#include "net/cert.h"
#include "net/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { CLIENTS = 12, BYTES = 3 << 20, BLOCK = 16 << 10, PATIENCE_MS = 30000 };

struct fixture {
    struct net_loop *loop;
    struct http_server *server;
    struct cert_pair ca, pair;
    bool tls;
    uint32_t opened, cut, closed;
};

/* ---- the server: an echo with at most one block in memory ---- */

struct echo {
    struct fixture *f;
    struct http_request *http;
    char block[BLOCK];
    size_t at, len;
};

static void echo_ready(void *ctx, uint32_t events)
{
    struct echo *e = ctx;

    for (;;) {
        if (e->at == e->len) {
            const ssize_t n = http_tunnel_read(e->http, e->block, sizeof(e->block));
            if (n <= 0) {
                assert_true(n < 0 && errno == EAGAIN);
                http_tunnel_want(e->http, EPOLLIN);
                return;
            }
            e->at = 0;
            e->len = (size_t)n;
        }
        const ssize_t n = http_tunnel_write(e->http, e->block + e->at, e->len - e->at);
        if (n < 0) {
            assert_int_equal(errno, EAGAIN);
            http_tunnel_want(e->http, EPOLLOUT);
            return;
        }
        e->at += (size_t)n;
        if (e->at == e->len && memchr(e->block, '!', e->len)) {
            e->f->closed++;
            http_tunnel_close(e->http);
            hk_free(e);
            return;
        }
    }
}

static void echo_opened(void *ctx, struct hk_str early)
{
    struct echo *e = ctx;

    memcpy(e->block, early.s, early.n);
    e->len = early.n;
    e->f->opened++;
    http_tunnel_want(e->http, EPOLLIN | EPOLLOUT);
}

static void echo_cut(void *ctx)
{
    struct echo *e = ctx;

    e->f->cut++;
    hk_free(e);
}

static void handle(void *ctx, struct http_request *q)
{
    static const struct http_header echo = {HK_STR("Upgrade"), HK_STR("echo")};
    struct echo *e = hk_zalloc(sizeof(*e));

    e->f = ctx;
    e->http = q;
    http_reply_tunnel(q, &echo, 1,
                      &(struct http_tunnel){
                          .opened = echo_opened, .ready = echo_ready, .cut = echo_cut, .ctx = e});
}

static void start(struct fixture *f, bool tls)
{
    struct hk_err err = {0};

    *f = (struct fixture){.tls = tls, .loop = net_loop_new(hk_clock_system())};
    struct http_opts o = {.addr = HK_STR("127.0.0.1"),
                          .max_body = 100,
                          .max_bodies = 1000,
                          .max_connections = 64,
                          .idle_timeout_ms = 60000,
                          .header_timeout_ms = 60000,
                          .handle = handle,
                          .ctx = f};
    if (tls) {
        const struct cert_opts c = {
            .cn = "server",
            .server = true,
            .now_s = hk_clock_system()->wall_ns(hk_clock_system()) / 1000000000,
            .days = 1,
        };
        assert_int_equal(cert_make_ca(&c, &f->ca, &err), 0);
        assert_int_equal(cert_make(&c, &f->ca, &f->pair, &err), 0);
        o.cert_pem = f->pair.cert_pem;
        o.key_pem = f->pair.key_pem;
    }
    assert_int_equal(http_server_new(f->loop, &o, &f->server, &err), 0);
}

static void finish(struct fixture *f)
{
    http_server_free(f->server);
    net_loop_free(f->loop);
    cert_pair_fini(&f->pair);
    cert_pair_fini(&f->ca);
}

/* ---- clients ---- */

struct peer {
    int fd;
    gnutls_session_t tls;
    gnutls_certificate_credentials_t cred;
    size_t sent, got;
    bool up;   /* its 101 was received */
    bool lazy; /* does not read what it is sent */
    struct hk_buf head;
};

static void turn(struct fixture *f)
{
    struct hk_err err = {0};

    assert_int_equal(net_loop_turn(f->loop, 1, &err), 0);
}

static ssize_t peer_recv(struct peer *p, char *buf, size_t n)
{
    if (!p->tls) {
        return recv(p->fd, buf, n, MSG_DONTWAIT);
    }
    const ssize_t got = gnutls_record_recv(p->tls, buf, n);
    return got == GNUTLS_E_AGAIN ? -1 : got < 0 ? 0 : got;
}

static ssize_t peer_send(struct peer *p, const char *buf, size_t n)
{
    return p->tls ? gnutls_record_send(p->tls, buf, n)
                  : send(p->fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void handshake(struct fixture *f, struct peer *p)
{
    int rc;

    gnutls_certificate_allocate_credentials(&p->cred);
    gnutls_init(&p->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK);
    gnutls_set_default_priority(p->tls);
    gnutls_credentials_set(p->tls, GNUTLS_CRD_CERTIFICATE, p->cred);
    gnutls_transport_set_int(p->tls, p->fd);
    do {
        turn(f);
        rc = gnutls_handshake(p->tls);
    } while (rc < 0 && gnutls_error_is_fatal(rc) == 0);
    assert_int_equal(rc, 0);
}

static void peer_open(struct fixture *f, struct peer *p)
{
    static const char request[] =
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(f->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    *p = (struct peer){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(connect(p->fd, (const void *)&to, sizeof(to)), 0);
    fcntl(p->fd, F_SETFL, O_NONBLOCK);
    if (f->tls) {
        handshake(f, p);
    }
    assert_int_equal(peer_send(p, request, sizeof(request) - 1), sizeof(request) - 1);
}

static void peer_close(struct peer *p)
{
    if (p->tls) {
        gnutls_deinit(p->tls);
        gnutls_certificate_free_credentials(p->cred);
    }
    close(p->fd);
    hk_buf_fini(&p->head);
}

/* The period does not divide a block. */
static char byte_at(size_t k)
{
    return (char)('a' + k * 7 / 3 % 23);
}

static void check_bytes(struct peer *p, const char *buf, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        assert_int_equal(buf[k], byte_at(p->got + k));
    }
    p->got += n;
}

/* Reads the head of the answer, and the echo after it. */
static void peer_read(struct peer *p)
{
    char buf[BLOCK];
    const ssize_t n = peer_recv(p, buf, sizeof(buf));

    assert_int_not_equal(n, 0);
    if (n > 0 && p->up) {
        check_bytes(p, buf, (size_t)n);
    } else if (n > 0) {
        hk_buf_add(&p->head, buf, (size_t)n);
        const char *end = strstr(p->head.data, "\r\n\r\n");
        if (end) {
            assert_true(hk_str_starts(hk_buf_str(&p->head), "HTTP/1.1 101 "));
            p->up = true;
            check_bytes(p, end + 4, p->head.len - (size_t)(end + 4 - p->head.data));
        }
    }
}

static void peer_write(struct peer *p)
{
    char buf[BLOCK];
    const size_t n = HK_MIN(sizeof(buf), (size_t)BYTES - p->sent);

    for (size_t k = 0; k < n; k++) {
        buf[k] = byte_at(p->sent + k);
    }
    const ssize_t sent = n > 0 ? peer_send(p, buf, n) : 0;
    p->sent += sent > 0 ? (size_t)sent : 0;
}

static void work(struct fixture *f, struct peer *peers, uint32_t n)
{
    turn(f);
    for (uint32_t k = 0; k < n; k++) {
        for (int times = 0; times < 8; times++) {
            peer_write(&peers[k]);
            if (!peers[k].up || !peers[k].lazy) {
                peer_read(&peers[k]);
            }
        }
    }
}

/* Runs until all peers that are not lazy have everything back. */
static void work_through(struct fixture *f, struct peer *peers, uint32_t n)
{
    const int64_t deadline = net_loop_now_ns(f->loop) + (int64_t)PATIENCE_MS * 1000000;

    for (uint32_t k = 0; k < n; k++) {
        while (!peers[k].lazy && peers[k].got < BYTES) {
            work(f, peers, n);
            assert_true(net_loop_now_ns(f->loop) < deadline);
        }
    }
}

/* ---- tests ---- */

static void echoes(bool tls)
{
    struct fixture f;
    struct peer *peers = hk_zalloc(CLIENTS * sizeof(*peers));

    start(&f, tls);
    for (uint32_t k = 0; k < CLIENTS; k++) {
        peer_open(&f, &peers[k]);
        peers[k].lazy = k % 3 == 0;
    }
    work_through(&f, peers, CLIENTS);
    assert_int_equal(f.opened, CLIENTS);
    for (uint32_t k = 0; k < CLIENTS; k++) {
        peers[k].lazy = false;
    }
    work_through(&f, peers, CLIENTS);
    for (uint32_t k = 0; k < CLIENTS; k++) {
        peer_close(&peers[k]);
    }
    while (f.cut < CLIENTS || http_server_connections(f.server) > 0) {
        turn(&f);
    }
    assert_int_equal(f.cut, CLIENTS);
    hk_free(peers);
    finish(&f);
}

static void test_bytes_are_echoed_whichever_side_is_slow(void **state)
{
    echoes(false);
}

static void test_bytes_come_back_over_tls(void **state)
{
    echoes(true);
}

static void closes(bool tls)
{
    struct fixture f;
    struct peer p;
    ssize_t n;
    char buf[64];

    start(&f, tls);
    peer_open(&f, &p);
    while (!p.up) {
        turn(&f);
        peer_read(&p);
    }
    assert_int_equal(peer_send(&p, "bye!", 4), 4);
    do {
        turn(&f);
        n = peer_recv(&p, buf, sizeof(buf));
    } while (n < 0);
    assert_int_equal(n, 4); /* earlier bytes come first */
    while ((n = peer_recv(&p, buf, sizeof(buf))) < 0) {
        turn(&f);
    }
    assert_int_equal(n, 0);
    peer_close(&p);
    while (http_server_connections(f.server) > 0) {
        turn(&f);
    }
    assert_int_equal(f.closed, 1);
    assert_int_equal(f.cut, 0);
    finish(&f);
}

static void test_a_tunnel_is_closed_by_its_handler(void **state)
{
    closes(false);
    closes(true);
}

static void test_a_server_that_ends_closes_tunnels(void **state)
{
    for (int tls = 0; tls < 2; tls++) {
        for (int stops = 0; stops < 2; stops++) {
            struct fixture f;
            struct peer p;
            start(&f, tls);
            peer_open(&f, &p);
            while (!p.up) {
                turn(&f);
                peer_read(&p);
            }
            if (stops) {
                http_server_stop(f.server, PATIENCE_MS);
                assert_int_equal(f.cut, 1);
            }
            finish(&f);
            assert_int_equal(f.cut, 1);
            peer_close(&p);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_echoed_whichever_side_is_slow),
        cmocka_unit_test(test_bytes_come_back_over_tls),
        cmocka_unit_test(test_a_tunnel_is_closed_by_its_handler),
        cmocka_unit_test(test_a_server_that_ends_closes_tunnels),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
