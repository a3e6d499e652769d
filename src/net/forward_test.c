// SPDX-License-Identifier: Apache-2.0
// Forwarded requests between a client, the forwarder and a server that answers with given bytes, all
// in one thread: what each side sees of the other, and how wrong answers end.
#include "net/forward_priv.h"
#include "net/http_rig_test.h"

#include <fcntl.h>
#include <sys/epoll.h>

struct rig {
    struct fixture http; /* loop and front */
    struct forwarder *fw;
    int listener, server; /* of the scripted server */
    uint16_t port;
    uint32_t max, ended;
    struct hk_buf asked; /* what the server was sent */
    const char *prefix;
    bool refuse_redirects;
    int64_t answer_ms, stall_ms;
};

static void on_refuse(struct http_request *q, int status, const char *why)
{
    reply(q, status, why);
}

static void on_forward_ended(void *ctx)
{
    ((struct rig *)ctx)->ended++;
}

static void rig_handle(void *ctx, struct http_request *q)
{
    struct rig *g = ctx;
    const struct http_header more = {HK_STR("X-Remote-User"), HK_STR("ann")};

    if (!forwarder_start(g->fw, &(struct forward_opts){.http = q,
                                                       .user = http_request_header(q, "X-User"),
                                                       .host = HK_STR("127.0.0.1"),
                                                       .port = g->port,
                                                       .path = HK_STR("/p?q=1"),
                                                       .prefix = hk_str(g->prefix),
                                                       .headers = &more,
                                                       .nheaders = 1,
                                                       .refuse_redirects = g->refuse_redirects,
                                                       .answer_ms = g->answer_ms,
                                                       .stall_ms = g->stall_ms,
                                                       .refuse = on_refuse,
                                                       .ended = on_forward_ended,
                                                       .ctx = g})) {
        reply(q, 429, "too many");
    }
}

static bool rig_streams(void *ctx, const struct http_request *q)
{
    return true;
}

static void rig_listen(struct rig *g)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);

    g->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(g->listener, (void *)&at, sizeof(at)), 0);
    assert_int_equal(listen(g->listener, 16), 0);
    assert_int_equal(getsockname(g->listener, (void *)&at, &n), 0);
    g->port = ntohs(at.sin_port);
    g->server = -1;
}

static int rig_setup(void **state)
{
    struct rig *g = hk_zalloc(sizeof(*g));
    struct hk_err err = {0};
    const struct http_opts o = {.addr = HK_STR("127.0.0.1"),
                                .max_body = MAX_BODY,
                                .max_bodies = MAX_BODIES,
                                .max_connections = MAX_CONNECTIONS,
                                .idle_timeout_ms = 60000,
                                .header_timeout_ms = 60000,
                                .streams = rig_streams,
                                .handle = rig_handle,
                                .refusal = refusal,
                                .ctx = g};

    g->prefix = "/front";
    g->http.loop = net_loop_new(hk_clock_system());
    g->fw = forwarder_new(g->http.loop, 3);
    rig_listen(g);
    assert_int_equal(http_server_new(g->http.loop, &o, &g->http.server, &err), 0);
    *state = g;
    return 0;
}

static void close_server(struct rig *g)
{
    if (g->server >= 0) {
        close(g->server);
    }
    g->server = -1;
}

static int rig_teardown(void **state)
{
    struct rig *g = *state;

    http_server_free(g->http.server);
    forwarder_free(g->fw);
    net_loop_free(g->http.loop);
    close_server(g);
    close(g->listener);
    hk_buf_fini(&g->asked);
    hk_free(g);
    return 0;
}

/* ---- the scripted server ---- */

static void rig_accept(struct rig *g)
{
    close_server(g);
    AWAIT(&g->http, (g->server = accept4(g->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
    fcntl(g->server, F_SETFL, O_NONBLOCK);
    hk_buf_clear(&g->asked);
}

/* Reads what the server is sent until it has the text. */
static void hear(struct rig *g, const char *want)
{
    char bytes[4096];

    for (int left = PATIENCE_MS / 5; !hk_str_contains(hk_buf_str(&g->asked), want); left--) {
        assert_true(left > 0);
        rig_turn(&g->http);
        const ssize_t n = recv(g->server, bytes, sizeof(bytes), 0);
        if (n > 0) {
            hk_buf_add(&g->asked, bytes, (size_t)n);
        }
    }
}

static void tell(struct rig *g, const char *text)
{
    assert_int_equal(send(g->server, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* The whole answer to the client of a GET, for which the server said the text and closed. */
static void ask_with(struct rig *g, const char *method, const char *answer, struct hk_buf *ret)
{
    const int fd = dial(&g->http);
    char text[128];

    snprintf(text, sizeof(text), "%s /x HTTP/1.1\r\nHost: front\r\nConnection: close\r\n\r\n",
             method);
    say(fd, text);
    rig_accept(g);
    hear(g, "\r\n\r\n");
    tell(g, answer);
    close_server(g);
    (void)read_until(&g->http, fd, ret, "never said");
    close(fd);
}

/* ---- tests ---- */

static void answers_reach_the_client(void **state)
{
    static const struct {
        const char *method, *answer, *head, *body;
    } cases[] = {
        {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello",
         "Content-Length: 5\r\n", "\r\n\r\nhello"},
        {"GET", "HTTP/1.1 201 Created\r\n\r\nuntil the end", "HTTP/1.1 201 ", "until the end"},
        {"GET",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n"
         "0\r\nTrailer: x\r\n\r\n",
         "HTTP/1.1 200 ", "hello!"},
        {"GET",
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
         "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx",
         "HTTP/1.1 404 ", "\r\n\r\nx"},
        {"GET", "HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n", "HTTP/1.1 204 ", "\r\n\r\n"},
        {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", "Content-Length: 1234\r\n",
         "\r\n\r\n"},
        {"GET", "HTTP/1.1 302 Found\r\nLocation: /y/?z\r\nContent-Length: 0\r\n\r\n",
         "Location: /front/y/?z\r\n", "\r\n\r\n"},
        {"GET", "HTTP/1.1 302 Found\r\nLocation: http://front/y\r\nContent-Length: 0\r\n\r\n",
         "Location: http://front/front/y\r\n", "\r\n\r\n"},
        {"GET", "HTTP/1.1 302 Found\r\nLocation: y/z\r\nContent-Length: 0\r\n\r\n",
         "Location: y/z\r\n", "\r\n\r\n"},
        {"GET", "HTTP/1.1 302 Found\r\nLocation: //other/y\r\nContent-Length: 0\r\n\r\n",
         "Location: //other/y\r\n", "\r\n\r\n"},
    };
    struct rig *g = *state;

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf in = {0};

        ask_with(g, cases[k].method, cases[k].answer, &in);
        if (!hk_str_contains(hk_buf_str(&in), cases[k].head) ||
            !hk_str_contains(hk_buf_str(&in), cases[k].body)) {
            fail_msg("case %zu: expected '%s' and '%s', was '%s'", k, cases[k].head, cases[k].body,
                     hk_buf_str(&in).s);
        }
    }
    AWAIT(&g->http, g->ended == HK_LEN(cases));
}

static void wrong_answers_are_refused(void **state)
{
    static const struct {
        const char *answer, *want;
    } cases[] = {
        {"", "error trying to reach service: EOF"},
        {"HTTP/1.1 200 OK\r\nContent-", "error trying to reach service: EOF"},
        {"nonsense\r\n\r\n", "malformed HTTP response"},
        {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "malformed HTTP response"},
        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "malformed HTTP response"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "malformed HTTP response"},
        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "malformed HTTP response"},
    };
    struct rig *g = *state;

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf in = {0};

        ask_with(g, "GET", cases[k].answer, &in);
        if (!hk_str_contains(hk_buf_str(&in), "HTTP/1.1 503 ") ||
            !hk_str_contains(hk_buf_str(&in), cases[k].want)) {
            fail_msg("case %zu: expected '%s', was '%s'", k, cases[k].want, hk_buf_str(&in).s);
        }
    }
}

static void a_head_that_is_too_long_is_refused(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf answer = {0}, in = {0};

    hk_buf_adds(&answer, "HTTP/1.1 200 OK\r\nX: ");
    for (int k = 0; k < FORWARD_MAX_HEAD; k++) {
        hk_buf_addc(&answer, 'x');
    }
    hk_buf_adds(&answer, "\r\nContent-Length: 0\r\n\r\n");
    ask_with(*state, "GET", answer.data, &in);
    assert_non_null(strstr(in.data, "headers are too long"));
}

static void cut_answers_look_cut(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n",
    };
    struct rig *g = *state;

    for (size_t k = 0; k < HK_LEN(answers); k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf in = {0};

        ask_with(g, "GET", answers[k], &in);
        if (hk_str_ends(hk_buf_str(&in), "0\r\n\r\n") || hk_str_ends(hk_buf_str(&in), "hello!")) {
            fail_msg("case %zu looks whole: '%s'", k, hk_buf_str(&in).s);
        }
    }
    AWAIT(&g->http, g->ended == HK_LEN(answers));
}

static void redirects_are_refused_on_request(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    struct rig *g = *state;

    g->refuse_redirects = true;
    ask_with(g, "GET", "HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n", &in);
    assert_non_null(strstr(in.data, "HTTP/1.1 502 "));
    assert_non_null(strstr(in.data, "the backend attempted to redirect this request"));
}

static void the_server_sees_the_request(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    struct rig *g = *state;
    const int fd = dial(&g->http);

    say(fd, "POST /x HTTP/1.1\r\nHost: front\r\nContent-Length: 4\r\nAuthorization: Bearer t\r\n"
            "X-Remote-User: root\r\nConnection: keep-alive, x-hop\r\nX-Hop: 1\r\nTE: trailers\r\n"
            "X-Kept: 2\r\n\r\nbody");
    rig_accept(g);
    hear(g, "\r\n\r\nbody");
    const char *head = g->asked.data;
    assert_true(hk_str_starts(hk_buf_str(&g->asked), "POST /p?q=1 HTTP/1.1\r\nHost: front\r\n"));
    assert_non_null(strstr(head, "X-Kept: 2\r\n"));
    assert_non_null(strstr(head, "X-Remote-User: ann\r\n"));
    assert_non_null(strstr(head, "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Uri: /x\r\n"));
    assert_non_null(strstr(head, "Connection: close\r\nContent-Length: 4\r\n\r\n"));
    assert_null(strstr(head, "Bearer"));
    assert_null(strstr(head, "root"));
    assert_null(strstr(head, "X-Hop"));
    assert_null(strstr(head, "trailers"));
    tell(g, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_true(read_until(&g->http, fd, &in, "\r\n\r\nok"));
    close(fd);
}

static void bodies_are_passed_in_pieces(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    struct rig *g = *state;
    const int fd = dial(&g->http);

    say(fd, "PUT /x HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    rig_accept(g);
    hear(g, "\r\n\r\n3\r\none\r\n");
    say(fd, "3\r\ntwo\r\n");
    hear(g, "3\r\ntwo\r\n");
    say(fd, "0\r\n\r\n");
    hear(g, "0\r\n\r\n");
    tell(g, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_true(read_until(&g->http, fd, &in, "\r\n\r\nok"));
    close(fd);
}

/* The client sends more than both buffers and the kernel hold, until it must wait. */
static void a_server_that_does_not_read_stops_the_client(void **state)
{
    static char block[64 << 10];
    struct rig *g = *state;
    const int fd = dial(&g->http);
    const int64_t limit = 64 << 20;
    int64_t sent = 0;
    int idle = 0;

    g->stall_ms = 500;
    say(fd, "PUT /x HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000000\r\n\r\n");
    rig_accept(g);
    while (idle < 20 && sent < limit) {
        const ssize_t n = send(fd, block, sizeof(block), MSG_NOSIGNAL | MSG_DONTWAIT);
        idle = n > 0 ? 0 : idle + 1;
        sent += HK_MAX(n, 0);
        rig_turn(&g->http);
    }
    assert_true(sent < limit);
    assert_int_equal(g->ended, 0);
    close(fd); /* cannot be noticed: its bytes are in the way */
    AWAIT(&g->http, g->ended == 1);
}

static void a_client_that_leaves_ends_the_request(void **state)
{
    struct rig *g = *state;
    const int fd = dial(&g->http);
    char byte;

    say(fd, "GET /x HTTP/1.1\r\nHost: front\r\n\r\n");
    rig_accept(g);
    hear(g, "\r\n\r\n");
    close(fd);
    AWAIT(&g->http, g->ended == 1);
    AWAIT(&g->http, recv(g->server, &byte, 1, 0) == 0);
    AWAIT(&g->http, forwarder_count(g->fw) == 0);
}

static void only_so_many_are_forwarded_at_a_time(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    struct rig *g = *state;
    int fds[4];

    for (size_t k = 0; k < HK_LEN(fds); k++) {
        fds[k] = dial(&g->http);
        say(fds[k], "GET /x HTTP/1.1\r\nHost: front\r\n\r\n");
        rig_turn(&g->http);
    }
    assert_true(read_until(&g->http, fds[3], &in, "too many"));
    for (size_t k = 0; k < HK_LEN(fds); k++) {
        close(fds[k]);
    }
    AWAIT(&g->http, forwarder_count(g->fw) == 0);
}

static void one_user_gets_half_of_the_places(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    struct rig *g = *state;
    const int first = dial(&g->http), second = dial(&g->http), other = dial(&g->http);

    say(first, "GET /x HTTP/1.1\r\nHost: front\r\nX-User: ann\r\n\r\n");
    AWAIT(&g->http, forwarder_count(g->fw) == 1);
    say(second, "GET /x HTTP/1.1\r\nHost: front\r\nX-User: ann\r\n\r\n");
    assert_true(read_until(&g->http, second, &in, "too many"));
    say(other, "GET /x HTTP/1.1\r\nHost: front\r\nX-User: bob\r\n\r\n");
    AWAIT(&g->http, forwarder_count(g->fw) == 2);
    close(first);
    close(second);
    close(other);
}

static void a_slow_server_times_out(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    struct rig *g = *state;
    const int fd = dial(&g->http);

    g->answer_ms = 30;
    say(fd, "GET /x HTTP/1.1\r\nHost: front\r\n\r\n");
    assert_true(read_until(&g->http, fd, &in, "did not complete within the allotted timeout"));
    assert_non_null(strstr(in.data, "HTTP/1.1 504 "));
    close(fd);
}

static void a_dead_server_is_named(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0}, want = {0};
    struct rig *g = *state;
    const int fd = dial(&g->http);

    close(g->listener);
    g->listener = -1;
    hk_buf_addf(&want,
                "error trying to reach service: dial tcp 127.0.0.1:%u: connect: connection refused",
                g->port);
    say(fd, "GET /x HTTP/1.1\r\nHost: front\r\n\r\n");
    assert_true(read_until(&g->http, fd, &in, want.data));
    assert_non_null(strstr(in.data, "HTTP/1.1 503 "));
    close(fd);
}

static void upgrades_become_tunnels(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    struct rig *g = *state;
    const int fd = dial(&g->http);

    say(fd, "GET /x HTTP/1.1\r\nHost: front\r\nConnection: keep-alive, Upgrade\r\n"
            "Upgrade: anything\r\nX-Key: k\r\n\r\n");
    rig_accept(g);
    hear(g, "\r\n\r\n");
    assert_non_null(strstr(g->asked.data, "Connection: Upgrade\r\nUpgrade: anything\r\n"));
    assert_non_null(strstr(g->asked.data, "X-Key: k\r\n"));
    tell(g, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: anything\r\n"
            "X-Accept: yes\r\n\r\nfirst");
    assert_true(read_until(&g->http, fd, &in, "first"));
    assert_non_null(strstr(in.data, "X-Accept: yes\r\n"));
    say(fd, "ping");
    hear(g, "ping");
    tell(g, "pong");
    assert_true(read_until(&g->http, fd, &in, "pong"));
    close_server(g);
    assert_false(read_until(&g->http, fd, &in, "never said"));
    close(fd);
    AWAIT(&g->http, g->ended == 1);
}

static void refused_upgrades_are_answers(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    struct rig *g = *state;
    const int fd = dial(&g->http);

    say(fd, "GET /x HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    rig_accept(g);
    hear(g, "\r\n\r\n");
    tell(g, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    assert_true(read_until(&g->http, fd, &in, "\r\n\r\nno"));
    close(fd);
}

/* ---- bodies ---- */

static void bodies_end_where_they_should_however_they_are_cut(void **state)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    static const char text[] = "a\r\n0123456789\r\n5 ;x\r\nabcde\r\n0\r\nX: y\r\n\r\nrest";

    for (size_t piece = 1; piece < sizeof(text); piece++) {
        HK_AUTO(hk_buf_fini) struct hk_buf in = {0}, out = {0};
        struct forward_body b;
        size_t fed = 0;

        assert_int_equal(forward_body_init(&b, hk_str(head), 200, false), 0);
        while (!b.over && fed < sizeof(text) - 1) {
            const size_t n = HK_MIN(piece, sizeof(text) - 1 - fed);
            hk_buf_add(&in, text + fed, n);
            fed += n;
            hk_buf_drop(&in, forward_body_read(&b, hk_buf_str(&in), 1000, &out));
            assert_false(b.broken);
        }
        assert_true(b.over);
        assert_string_equal(out.data, "0123456789abcde");
    }
}

static void bodies_stop_at_the_room(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct forward_body b;

    assert_int_equal(
        forward_body_init(&b, HK_STR("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"), 200, false),
        0);
    assert_int_equal(forward_body_read(&b, HK_STR("abcdefgh"), 4, &out), 4);
    assert_false(b.over);
    assert_int_equal(forward_body_read(&b, HK_STR("efgh"), 4, &out), 2);
    assert_true(b.over);
    assert_string_equal(out.data, "abcdef");
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(answers_reach_the_client),
        RIG_TEST(wrong_answers_are_refused),
        RIG_TEST(a_head_that_is_too_long_is_refused),
        RIG_TEST(cut_answers_look_cut),
        RIG_TEST(redirects_are_refused_on_request),
        RIG_TEST(the_server_sees_the_request),
        RIG_TEST(bodies_are_passed_in_pieces),
        RIG_TEST(a_server_that_does_not_read_stops_the_client),
        RIG_TEST(a_client_that_leaves_ends_the_request),
        RIG_TEST(only_so_many_are_forwarded_at_a_time),
        RIG_TEST(one_user_gets_half_of_the_places),
        RIG_TEST(a_slow_server_times_out),
        RIG_TEST(a_dead_server_is_named),
        RIG_TEST(upgrades_become_tunnels),
        RIG_TEST(refused_upgrades_are_answers),
        cmocka_unit_test(bodies_end_where_they_should_however_they_are_cut),
        cmocka_unit_test(bodies_stop_at_the_room),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("net/forward", tests, NULL, NULL);
}
