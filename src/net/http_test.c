// SPDX-License-Identifier: Apache-2.0
// The HTTP server with a client in the same thread: immediate and late answers, suspended streams,
// peers that leave, large bodies, deadlines, TLS with and without a client certificate.
#include "net/http_rig_test.h"

#include "net/cert.h"

#include <gnutls/gnutls.h>

/* ---- tests ---- */

static void test_requests_arrive_whole_and_raw(void **state)
{
    struct fixture f = {0};
    start(&f, NULL);
    const int fd = dial(&f);

    say(fd,
        "POST /a%2Fb?c=d%20e HTTP/1.1\r\nHost: x\r\nX-Test: yes\r\nContent-Length: 5\r\n\r\nhel");
    rig_turn(&f);
    assert_int_equal(f.handled, 0);
    say(fd, "lo");
    expect(&f, fd, "POST|/a%2Fb|c=d%20e|hello|yes|nobody");

    say(fd, "GET /second HTTP/1.1\r\nHost: x\r\n\r\n"); /* on the same connection */
    expect(&f, fd, "GET|/second||||nobody");
    close(fd);
    finish(&f);
}

static void test_an_answer_may_come_later(void **state)
{
    struct fixture f = {0};
    start(&f, NULL);
    const int fd = dial(&f);

    say(fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    AWAIT(&f, f.held);
    reply(f.held, 201, "at last");
    expect(&f, fd, "at last");
    close(fd);
    finish(&f);
}

static void test_a_stream_suspends_and_goes_on(void **state)
{
    struct fixture f = {0};
    start(&f, NULL);
    const int fd = dial(&f);

    hk_buf_adds(&f.feed, "one\n");
    say(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(&f, fd, "one\n");
    const uint32_t pulls = f.pulls;
    rig_turn(&f);
    assert_int_equal(f.pulls, pulls); /* suspended: no pulls */

    hk_buf_adds(&f.feed, "two\n");
    http_resume(f.held);
    http_resume(f.held);
    expect(&f, fd, "two\n");
    f.feed_ends = true;
    http_resume(f.held);
    expect(&f, fd, "0\r\n\r\n");
    AWAIT(&f, f.ended == 1);
    close(fd);
    finish(&f);
    assert_int_equal(f.ended, 1);
}

static void test_more_than_one_write_of_a_stream_is_kept(void **state)
{
    struct fixture f = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    start(&f, NULL);
    const int fd = dial(&f);

    for (int k = 0; k < 200000; k++) {
        hk_buf_addc(&f.feed, 'x');
    }
    hk_buf_adds(&f.feed, "end");
    say(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(read_until(&f, fd, &in, "end"));
    size_t n = 0;
    for (size_t k = 0; k < in.len; k++) {
        n += in.data[k] == 'x';
    }
    assert_int_equal(n, 200000);
    close(fd);
    AWAIT(&f, f.ended == 1);
    finish(&f);
}

static void test_the_peer_of_a_silent_stream_is_missed(void **state)
{
    struct fixture f = {0};
    start(&f, NULL);
    const int fd = dial(&f);

    hk_buf_adds(&f.feed, "one\n");
    say(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(&f, fd, "one\n");
    close(fd);
    AWAIT(&f, f.ended == 1);
    AWAIT(&f, http_server_connections(f.server) == 0);
    finish(&f);
}

static void test_bodies_too_large_are_refused(void **state)
{
    static const struct {
        const char *name, *head;
        size_t body;
    } cases[] = {
        {"a little", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n", 1001},
        {"by far", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n", 0},
        {"asked before",
         "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n", 0},
        {"without saying",
         "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5dc\r\n", 1500},
        {"by far, without saying",
         "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nc350\r\n", 50000},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct fixture f = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        start(&f, NULL);
        const int fd = dial(&f);

        hk_buf_adds(&text, cases[k].head);
        for (size_t n = 0; n < cases[k].body; n++) {
            hk_buf_addc(&text, 'y');
        }
        hk_buf_adds(&text, strstr(cases[k].head, "chunked") ? "\r\n0\r\n\r\n" : "");
        say(fd, text.data);
        expect(&f, fd, "{\"refused\":413}");
        assert_int_equal(f.handled, 0);
        close(fd);
        finish(&f);
    }
}

static void test_a_body_without_end_is_cut(void **state)
{
    const struct http_opts hasty = {.header_timeout_ms = 50};
    struct fixture f = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, in = {0};
    start(&f, &hasty);
    const int fd = dial(&f);

    hk_buf_adds(&text, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n");
    for (size_t n = 0; n < 5000; n++) {
        hk_buf_addc(&text, 'y');
    }
    say(fd, text.data);
    assert_false(read_until(&f, fd, &in, "200 OK"));
    assert_int_equal(f.handled, 0);
    close(fd);
    finish(&f);
}

static void test_bodies_of_strangers_are_refused(void **state)
{
    struct fixture f = {0};
    start(&f, NULL);
    const int fd = dial(&f);

    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nX-Test: stranger\r\nContent-Length: 4\r\n\r\nhel");
    AWAIT(&f, http_server_connections(f.server) == 1);
    say(fd, "p");
    expect(&f, fd, "{\"refused\":401}");
    assert_int_equal(f.handled, 0);
    assert_int_equal(http_server_bodies(f.server), 0);
    close(fd);
    finish(&f);
}

static void test_bodies_together_are_bounded(void **state)
{
    struct fixture f = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int fds[2];
    start(&f, NULL);

    hk_buf_adds(&text, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
    for (size_t n = 0; n < MAX_BODY - 1; n++) {
        hk_buf_addc(&text, 'y');
    }
    for (size_t k = 0; k < HK_LEN(fds); k++) {
        fds[k] = dial(&f);
        say(fds[k], text.data);
    }
    AWAIT(&f, http_server_bodies(f.server) == 2 * MAX_BODY);
    const int late = dial(&f);
    say(late, text.data);
    say(late, "y");
    expect(&f, late, "{\"refused\":429}");
    close(late);
    for (size_t k = 0; k < HK_LEN(fds); k++) { /* the first connections are served */
        say(fds[k], "y");
        expect(&f, fds[k], "200 OK");
        close(fds[k]);
    }
    AWAIT(&f, http_server_connections(f.server) == 0);
    assert_int_equal(http_server_bodies(f.server), 0);
    assert_int_equal(http_server_unread(f.server), 0);
    finish(&f);
}

static void test_a_request_that_drips_is_cut(void **state)
{
    const struct http_opts hasty = {.header_timeout_ms = 50};
    struct fixture f = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    start(&f, &hasty);
    const int fd = dial(&f);

    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n");
    assert_false(read_until(&f, fd, &in, "200 OK"));
    close(fd);
    finish(&f);
}

static void test_rubbish_is_survived(void **state)
{
    static const char *const cases[] = {
        "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon here\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
    };
    struct fixture f = {0};

    start(&f, NULL);
    for (size_t k = 0; k < HK_LEN(cases); k++) {
        const int fd = dial(&f);
        say(fd, cases[k]);
        rig_turn(&f);
        rig_turn(&f);
        close(fd);
    }
    AWAIT(&f, http_server_connections(f.server) == 0);
    const int fd = dial(&f);
    say(fd, "GET /still HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(&f, fd, "GET|/still");
    close(fd);
    finish(&f);
}

static void test_stopping_ends_streams_and_waits_for_answers(void **state)
{
    struct fixture f = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    start(&f, NULL);
    const int fd = dial(&f);

    hk_buf_adds(&f.feed, "one\n");
    say(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(read_until(&f, fd, &in, "one\n"));
    http_server_stop(f.server, PATIENCE_MS);
    assert_int_equal(f.ended, 1);
    assert_true(read_until(&f, fd, &in, "0\r\n\r\n"));
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(f.server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    close(fd);
    finish(&f);
    const int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(late, (const void *)&to, sizeof(to)), -1);
    close(late);
}

static void test_freeing_the_server_closes_waiting_connections(void **state)
{
    struct fixture f = {0};
    start(&f, NULL);
    const int waiting = dial(&f), streaming = dial(&f);

    say(waiting, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    AWAIT(&f, f.handled == 1);
    say(streaming, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    AWAIT(&f, f.pulls > 0);
    finish(&f);
    assert_int_equal(f.ended, 1);
    close(waiting);
    close(streaming);
}

static void test_freeing_is_not_held_up_by_newcomers(void **state)
{
    struct fixture f = {0};
    start(&f, NULL);
    const int fd = dial(&f);

    say(fd, "GET /still HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(&f, fd, "GET|/still");
    say(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"); /* unread until it is freed */
    finish(&f);
    assert_int_equal(f.pulls, 0);
    close(fd);
}

static void test_addresses_that_cannot_be_served_are_reported(void **state)
{
    struct net_loop *l = net_loop_new(hk_clock_system());
    struct http_opts o = {.addr = HK_STR("nowhere"), .max_connections = 1, .handle = handle};
    struct http_server *s = NULL;
    struct hk_err err = {0};

    assert_int_equal(http_server_new(l, &o, &s, &err), -HK_EINVAL);
    assert_string_equal(err.text, "cannot listen on 'nowhere': want an IP address");
    o.addr = HK_STR("192.0.2.1");
    assert_int_equal(http_server_new(l, &o, &s, &err), -HK_EIO);
    assert_non_null(strstr(err.text, "cannot listen on 192.0.2.1 port 0"));
    net_loop_free(l);
}

/* ---- TLS ---- */

static void tls_until(struct fixture *f, gnutls_session_t tls, struct hk_buf *in, const char *want)
{
    const int64_t deadline = net_loop_now_ns(f->loop) + (int64_t)PATIENCE_MS * 1000000;
    char chunk[4096];

    while (!hk_str_contains(hk_buf_str(in), want)) {
        rig_turn(f);
        const ssize_t n = gnutls_record_recv(tls, chunk, sizeof(chunk));
        if (n > 0) {
            hk_buf_add(in, chunk, (size_t)n);
        } else if (n != GNUTLS_E_AGAIN) {
            fail_msg("expected '%s', got '%s' and %s", want, hk_buf_str(in).s,
                     gnutls_strerror((int)n));
        }
        assert_true(net_loop_now_ns(f->loop) < deadline);
    }
}

/* One request over TLS, with a certificate if pair is not NULL. */
static void tls_request(struct fixture *f, const struct cert_pair *pair, const char *want)
{
    gnutls_certificate_credentials_t cred;
    gnutls_session_t tls;
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    const char *text = "GET /tls HTTP/1.1\r\nHost: x\r\n\r\n";
    const int fd = dial(f);
    int rc;

    gnutls_certificate_allocate_credentials(&cred);
    if (pair) {
        const gnutls_datum_t cert = {(void *)pair->cert_pem, (unsigned)strlen(pair->cert_pem)};
        const gnutls_datum_t key = {(void *)pair->key_pem, (unsigned)strlen(pair->key_pem)};
        assert_int_equal(
            gnutls_certificate_set_x509_key_mem(cred, &cert, &key, GNUTLS_X509_FMT_PEM), 0);
    }
    gnutls_init(&tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK);
    gnutls_set_default_priority(tls);
    gnutls_credentials_set(tls, GNUTLS_CRD_CERTIFICATE, cred);
    gnutls_transport_set_int(tls, fd);
    struct timeval wait = {.tv_usec = 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    do {
        rig_turn(f);
        rc = gnutls_handshake(tls);
    } while (rc < 0 && gnutls_error_is_fatal(rc) == 0);
    assert_int_equal(rc, 0);
    assert_int_equal(gnutls_record_send(tls, text, strlen(text)), strlen(text));
    tls_until(f, tls, &in, want);
    gnutls_deinit(tls);
    gnutls_certificate_free_credentials(cred);
    close(fd);
}

static void make_pair(const struct cert_pair *ca, const char *cn, bool client,
                      struct cert_pair *ret)
{
    static const char *const orgs[] = {"staff", "system:masters"};
    const struct cert_opts o = {
        .cn = cn,
        .orgs = orgs,
        .norgs = HK_LEN(orgs),
        .server = !client,
        .client = client,
        .now_s = hk_clock_system()->wall_ns(hk_clock_system()) / 1000000000,
        .days = 1,
    };
    struct hk_err err = {0};

    if ((ca ? cert_make(&o, ca, ret, &err) : cert_make_ca(&o, ret, &err)) < 0) {
        fail_msg("%s", err.text);
    }
}

static void test_clients_are_known_by_verified_certificates_only(void **state)
{
    HK_AUTO(cert_pair_fini)
    struct cert_pair ca = {0}, foreign = {0}, server = {0}, alice = {0}, mallory = {0};
    struct fixture f = {0};

    make_pair(NULL, "ca", false, &ca);
    make_pair(NULL, "other-ca", false, &foreign);
    make_pair(&ca, "server", false, &server);
    make_pair(&ca, "alice", true, &alice);
    make_pair(&foreign, "mallory", true, &mallory);
    start(&f, &(struct http_opts){.cert_pem = server.cert_pem,
                                  .key_pem = server.key_pem,
                                  .client_ca_pem = ca.cert_pem});
    tls_request(&f, NULL, "GET|/tls||||nobody");
    tls_request(&f, &alice, "GET|/tls||||alice,staff,system:masters");
    tls_request(&f, &server, "GET|/tls||||nobody"); /* not a client certificate */
    tls_request(&f, &mallory, "GET|/tls||||nobody");
    finish(&f);
}

/* A client that stops during the handshake uses no CPU time meanwhile. */
static void test_a_handshake_that_stalls_is_waited_for(void **state)
{
    HK_AUTO(cert_pair_fini) struct cert_pair ca = {0}, server = {0};
    gnutls_certificate_credentials_t cred;
    gnutls_session_t tls;
    struct fixture f = {0};
    struct hk_err err = {0};
    unsigned turns = 0;

    make_pair(NULL, "ca", false, &ca);
    make_pair(&ca, "server", false, &server);
    start(&f, &(struct http_opts){.cert_pem = server.cert_pem, .key_pem = server.key_pem});
    const int fd = dial(&f);
    gnutls_certificate_allocate_credentials(&cred);
    gnutls_init(&tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK);
    gnutls_set_default_priority(tls);
    gnutls_credentials_set(tls, GNUTLS_CRD_CERTIFICATE, cred);
    gnutls_transport_set_int(tls, fd);
    const struct timeval wait = {.tv_usec = 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    assert_int_equal(gnutls_handshake(tls), GNUTLS_E_AGAIN); /* the first message was sent */

    const int64_t until = net_loop_now_ns(f.loop) + (int64_t)500 * 1000000;
    while (net_loop_now_ns(f.loop) < until) {
        assert_int_equal(net_loop_turn(f.loop, 500, &err), 0);
        turns++;
    }
    assert_in_range(turns, 1, 100); /* a busy loop would have thousands */
    gnutls_deinit(tls);
    gnutls_certificate_free_credentials(cred);
    close(fd);
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_arrive_whole_and_raw),
        cmocka_unit_test(test_an_answer_may_come_later),
        cmocka_unit_test(test_a_stream_suspends_and_goes_on),
        cmocka_unit_test(test_more_than_one_write_of_a_stream_is_kept),
        cmocka_unit_test(test_the_peer_of_a_silent_stream_is_missed),
        cmocka_unit_test(test_bodies_too_large_are_refused),
        cmocka_unit_test(test_a_body_without_end_is_cut),
        cmocka_unit_test(test_bodies_of_strangers_are_refused),
        cmocka_unit_test(test_bodies_together_are_bounded),
        cmocka_unit_test(test_a_request_that_drips_is_cut),
        cmocka_unit_test(test_rubbish_is_survived),
        cmocka_unit_test(test_stopping_ends_streams_and_waits_for_answers),
        cmocka_unit_test(test_freeing_the_server_closes_waiting_connections),
        cmocka_unit_test(test_freeing_is_not_held_up_by_newcomers),
        cmocka_unit_test(test_addresses_that_cannot_be_served_are_reported),
        cmocka_unit_test(test_clients_are_known_by_verified_certificates_only),
        cmocka_unit_test(test_a_handshake_that_stalls_is_waited_for),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
