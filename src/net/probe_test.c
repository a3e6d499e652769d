// SPDX-License-Identifier: Apache-2.0
// Probes against a listener that sends the answer of the test case.
#include "net/probe.h"

#include "net/cert.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct net_loop *loop;
    struct net_watch *watch;
    int fd;
    uint16_t port;
    const char *answer; /* NULL: accepts and stays silent */
    size_t len;
    int peer;
    int outcome; /* -1: none yet */
};

static void on_accept(void *ctx, uint32_t events)
{
    struct fixture *f = ctx;

    f->peer = accept(f->fd, NULL, NULL);
    if (f->answer) {
        assert_int_equal(send(f->peer, f->answer, f->len, 0), f->len);
        shutdown(f->peer, SHUT_WR);
    }
}

static void on_done(void *ctx, struct net_probe *p, bool good)
{
    struct fixture *f = ctx;

    assert_int_equal(f->outcome, -1);
    f->outcome = good;
    net_probe_free(p);
}

static void begin(struct fixture *f, const char *answer)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    *f = (struct fixture){
        .answer = answer, .len = answer ? strlen(answer) : 0, .peer = -1, .outcome = -1};
    f->loop = net_loop_new(hk_clock_system());
    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->fd, (void *)&at, len), 0);
    assert_int_equal(listen(f->fd, 4), 0);
    assert_int_equal(getsockname(f->fd, (void *)&at, &len), 0);
    f->port = ntohs(at.sin_port);
    f->watch = net_watch_add(f->loop, f->fd, EPOLLIN, on_accept, f);
}

static void end(struct fixture *f)
{
    net_watch_del(f->watch);
    close(f->fd);
    if (f->peer >= 0) {
        close(f->peer);
    }
    net_loop_free(f->loop);
}

static int ask(struct fixture *f, struct net_probe_opts o)
{
    struct hk_err err = {0};

    o.host = o.host.n > 0 ? o.host : HK_STR("127.0.0.1");
    o.port = o.port ? o.port : f->port;
    o.done = on_done;
    o.ctx = f;
    net_probe_new(f->loop, &o);
    while (f->outcome < 0) {
        assert_int_equal(net_loop_turn(f->loop, -1, &err), 0);
    }
    return f->outcome;
}

#define SECOND ((int64_t)1000000000)

static void answers_decide(void **state)
{
    static const struct {
        const char *answer;
        int good;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1},
        {"HTTP/1.0 399 Whatever\r\n\r\n", 1},
        {"HTTP/1.1 500 Oops\r\n\r\n", 0},
        {"HTTP/1.1 199 Early\r\n\r\n", 0},
        {"SSH-2.0-x\r\n", 0},
        {"", 0},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct fixture f;

        begin(&f, cases[i].answer);
        assert_int_equal(ask(&f, (struct net_probe_opts){.kind = NET_PROBE_HTTP,
                                                         .path = HK_STR("/up"),
                                                         .timeout_ns = 30 * SECOND}),
                         cases[i].good);
        end(&f);
    }
}

static void grpc_says_whether_it_serves(void **state)
{
    static const struct {
        const char *about;
        struct hk_str answer;
        int good;
    } cases[] = {
/* SETTINGS, HEADERS of stream 1, then the part under test. */
#define BEGIN                                                                                      \
    "\0\0\0\4\0\0\0\0\0"                                                                           \
    "\0\0\1\1\4\0\0\0\1\x88"
        {"serving",
         HK_STR(BEGIN "\0\0\7\0\0\0\0\0\1"
                      "\0\0\0\0\2\x08\1"),
         1},
        {"padded",
         HK_STR(BEGIN "\0\0\x0a\0\x08\0\0\0\1"
                      "\2\0\0\0\0\2\x08\1\0\0"),
         1},
        {"not serving",
         HK_STR(BEGIN "\0\0\7\0\0\0\0\0\1"
                      "\0\0\0\0\2\x08\2"),
         0},
        {"unknown status",
         HK_STR(BEGIN "\0\0\5\0\0\0\0\0\1"
                      "\0\0\0\0\0"),
         0},
        {"error without data", HK_STR("\0\0\1\1\5\0\0\0\1\x88"), 0},
        {"refused stream", HK_STR("\0\0\4\3\0\0\0\0\1\0\0\0\7"), 0},
        {"going away", HK_STR("\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\0"), 0},
        {"cut off",
         HK_STR(BEGIN "\0\0\7\0\0\0\0\0\1"
                      "\0\0"),
         0},
        {"HTTP/1", HK_STR("HTTP/1.1 400 Bad Request\r\n\r\n"), 0},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct fixture f;
        int good;

        begin(&f, cases[i].answer.s);
        f.len = cases[i].answer.n;
        good =
            ask(&f, (struct net_probe_opts){
                        .kind = NET_PROBE_GRPC, .path = HK_STR("db"), .timeout_ns = 30 * SECOND});
        end(&f);
        if (good != cases[i].good) {
            fail_msg("%s: want %d, got %d", cases[i].about, cases[i].good, good);
        }
    }
}

/* A server that accepts the first client's GET, in its own thread. */
struct tls_server {
    int fd;
    gnutls_certificate_credentials_t own;
};

static void *serve_tls(void *arg)
{
    const struct tls_server *s = arg;
    const int peer = accept(s->fd, NULL, NULL);
    static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";
    gnutls_session_t tls;
    char request[1024];
    int rc;

    gnutls_init(&tls, GNUTLS_SERVER);
    gnutls_set_default_priority(tls);
    gnutls_credentials_set(tls, GNUTLS_CRD_CERTIFICATE, s->own);
    gnutls_transport_set_int(tls, peer);
    do {
        rc = gnutls_handshake(tls);
    } while (rc < 0 && !gnutls_error_is_fatal(rc));
    if (rc == 0 && gnutls_record_recv(tls, request, sizeof(request)) > 0) {
        gnutls_record_send(tls, answer, sizeof(answer) - 1);
    }
    gnutls_deinit(tls);
    close(peer);
    return NULL;
}

static void https_probes_accept_any_certificate(void **state)
{
    static const char *const names[] = {"somewhere.else"};
    const struct cert_opts opts = {
        .cn = "x", .names = names, .nnames = 1, .server = true, .now_s = 1000000000, .days = 1};
    struct cert_pair ca = {0}, own = {0};
    struct tls_server s;
    struct fixture f;
    struct hk_err err = {0};
    pthread_t thread;

    assert_int_equal(cert_make_ca(&opts, &ca, &err), 0);
    assert_int_equal(cert_make(&opts, &ca, &own, &err), 0);
    gnutls_certificate_allocate_credentials(&s.own);
    const gnutls_datum_t crt = {(void *)own.cert_pem, (unsigned)strlen(own.cert_pem)};
    const gnutls_datum_t key = {(void *)own.key_pem, (unsigned)strlen(own.key_pem)};
    assert_int_equal(gnutls_certificate_set_x509_key_mem(s.own, &crt, &key, GNUTLS_X509_FMT_PEM),
                     0);
    begin(&f, NULL);
    net_watch_del(f.watch);
    f.watch = NULL;
    s.fd = f.fd;
    assert_int_equal(pthread_create(&thread, NULL, serve_tls, &s), 0);
    assert_int_equal(
        ask(&f, (struct net_probe_opts){.kind = NET_PROBE_HTTPS, .timeout_ns = 30 * SECOND}), 1);
    pthread_join(thread, NULL);
    end(&f);
    gnutls_certificate_free_credentials(s.own);
    cert_pair_fini(&ca);
    cert_pair_fini(&own);

    begin(&f, "HTTP/1.1 200 OK\r\n\r\n"); /* no TLS there */
    assert_int_equal(
        ask(&f, (struct net_probe_opts){.kind = NET_PROBE_HTTPS, .timeout_ns = 30 * SECOND}), 0);
    end(&f);
}

static void headers_replace_the_usual_ones(void **state)
{
    static const struct net_probe_header headers[] = {{{"host", 4}, {"me.example", 10}},
                                                      {{"X-Two", 5}, {"2", 1}}};
    struct fixture f;
    char request[1024] = "";

    begin(&f, "HTTP/1.1 500 No\r\n\r\n");
    assert_int_equal(ask(&f, (struct net_probe_opts){.kind = NET_PROBE_HTTP,
                                                     .path = HK_STR("up"),
                                                     .headers = headers,
                                                     .nheader = HK_LEN(headers),
                                                     .any_status = true,
                                                     .timeout_ns = 30 * SECOND}),
                     1);
    assert_true(recv(f.peer, request, sizeof(request) - 1, 0) > 0);
    assert_string_equal(request, "GET /up HTTP/1.1\r\nUser-Agent: hekla\r\nAccept: */*\r\n"
                                 "host: me.example\r\nX-Two: 2\r\nConnection: close\r\n\r\n");
    end(&f);
}

static void a_connection_is_enough_without_http(void **state)
{
    struct fixture f;

    begin(&f, NULL);
    assert_int_equal(ask(&f, (struct net_probe_opts){.timeout_ns = 30 * SECOND}), 1);
    end(&f);
}

static void silence_ends_with_the_deadline(void **state)
{
    struct fixture f;

    begin(&f, NULL);
    assert_int_equal(
        ask(&f, (struct net_probe_opts){.kind = NET_PROBE_HTTP, .timeout_ns = SECOND / 50}), 0);
    end(&f);
}

static void incomplete_requests_fail(void **state)
{
    static const struct net_probe_opts cases[] = {
        {.host = {"localhost", 9}, .timeout_ns = SECOND},
        {.host = {"127.0.0.1.5", 11}, .timeout_ns = SECOND},
        {.kind = NET_PROBE_HTTP, .path = {"/a\r\nX: y", 8}, .timeout_ns = SECOND},
        {.port = 1, .timeout_ns = 30 * SECOND},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct fixture f;

        begin(&f, NULL);
        assert_int_equal(ask(&f, cases[i]), 0);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_decide),
        cmocka_unit_test(grpc_says_whether_it_serves),
        cmocka_unit_test(https_probes_accept_any_certificate),
        cmocka_unit_test(headers_replace_the_usual_ones),
        cmocka_unit_test(a_connection_is_enough_without_http),
        cmocka_unit_test(silence_ends_with_the_deadline),
        cmocka_unit_test(incomplete_requests_fail),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("net/probe", tests, NULL, NULL);
}
