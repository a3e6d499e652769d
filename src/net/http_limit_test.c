// SPDX-License-Identifier: Apache-2.0
// Limits for clients and users: connections by address and user, descriptors, announced bodies; and
// malformed requests.
#include "net/http_rig_test.h"

#include <fcntl.h>
#include <sys/resource.h>

#define GET "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
#define AS(user, path) "GET " path " HTTP/1.1\r\nHost: x\r\nX-User: " user "\r\n\r\n"

static void dial_all(struct fixture *f, int *fds, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        fds[k] = dial(f);
    }
    AWAIT(f, http_server_connections(f->server) >= n);
}

static void close_all(struct fixture *f, int *fds, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        close(fds[k]);
    }
    AWAIT(f, http_server_connections(f->server) == 0);
}

static void http_expect(struct fixture *f, int fd, const char *text, const char *want)
{
    say(fd, text);
    expect(f, fd, want);
}

static void expect_closed(struct fixture *f, int fd)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};

    assert_false(read_until(f, fd, &in, "never sent"));
}

/* ---- connections ---- */

static void test_the_longest_idle_connection_is_closed_for_a_new_one(void **state)
{
    struct fixture f = {0};
    int fds[MAX_CONNECTIONS];
    start(&f, NULL);

    dial_all(&f, fds, HK_LEN(fds));
    http_expect(&f, fds[0], GET, "200 OK"); /* so the second is now the longest idle */
    const int late = dial(&f);
    http_expect(&f, late, GET, "200 OK");
    expect_closed(&f, fds[1]);
    http_expect(&f, fds[0], GET, "200 OK");
    AWAIT(&f, http_server_connections(f.server) == MAX_CONNECTIONS);
    close(late);
    close_all(&f, fds, HK_LEN(fds));
    finish(&f);
}

static void test_a_connection_with_a_request_is_never_closed(void **state)
{
    struct fixture f = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    int fds[MAX_CONNECTIONS];
    start(&f, NULL);

    dial_all(&f, fds, HK_LEN(fds));
    for (size_t k = 0; k < HK_LEN(fds); k++) {
        http_expect(&f, fds[k], "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK");
    }
    int late = dial(&f);
    assert_false(read_until(&f, late, &in, "200 OK"));
    close(late);
    assert_int_equal(http_server_connections(f.server), MAX_CONNECTIONS);
    close_all(&f, fds, HK_LEN(fds));
    late = dial(&f);
    http_expect(&f, late, GET, "200 OK");
    close(late);
    finish(&f);
}

static void test_anonymous_connections_are_closed_before_those_of_users(void **state)
{
    struct fixture f = {0};
    int fds[MAX_CONNECTIONS], flood[3 * MAX_CONNECTIONS];
    start(&f, NULL);

    dial_all(&f, fds, HK_LEN(fds));
    for (size_t k = 0; k < HK_LEN(fds) / 2; k++) {
        http_expect(&f, fds[k], AS("ann", "/"), "200 OK");
    }
    for (size_t k = 0; k < HK_LEN(flood); k++) {
        flood[k] = dial(&f);
        rig_turn(&f);
    }
    const int late = dial(&f);
    http_expect(&f, late, AS("bob", "/"), "200 OK");
    for (size_t k = 0; k < HK_LEN(fds) / 2; k++) {
        http_expect(&f, fds[k], AS("ann", "/"), "200 OK");
    }
    close(late);
    for (size_t k = 0; k < HK_LEN(flood); k++) {
        close(flood[k]);
    }
    close_all(&f, fds, HK_LEN(fds));
    finish(&f);
}

static void test_connections_of_one_user_are_limited(void **state)
{
    struct fixture f = {0};
    int fds[4];
    start(&f, &(struct http_opts){.max_per_user = 2});

    dial_all(&f, fds, HK_LEN(fds));
    http_expect(&f, fds[0], AS("ann", "/"), "200 OK");
    http_expect(&f, fds[1], AS("ann", "/stream"), "200 OK");
    http_expect(&f, fds[2], AS("ann", "/stream"), "200 OK");
    expect_closed(&f, fds[0]); /* was idle */
    http_expect(&f, fds[3], AS("ann", "/"), "too many of yours");
    http_expect(&f, fds[3], AS("bob", "/"), "200 OK");
    close_all(&f, fds, HK_LEN(fds));
    finish(&f);
}

static void test_connections_of_one_address_are_limited(void **state)
{
    struct fixture f = {0};
    int fds[6];
    start(&f, &(struct http_opts){.max_per_peer = 2});

    for (size_t k = 0; k < HK_LEN(fds); k++) {
        fds[k] = dial(&f);
        http_expect(&f, fds[k], k < 2 ? AS("ann", "/") : GET, "200 OK");
    }
    AWAIT(&f, http_server_connections(f.server) == 4); /* connections of a user do not count */
    expect_closed(&f, fds[2]);
    expect_closed(&f, fds[3]);
    http_expect(&f, fds[5], GET, "200 OK");
    close_all(&f, fds, HK_LEN(fds));
    finish(&f);
}

/* ---- descriptors ---- */

/* Uses up all descriptors of the process except `but`; returns how many were opened. */
static size_t use_up(int *fds, size_t max, size_t but)
{
    size_t n = 0;

    while (n < max && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        n++;
    }
    assert_true(n < max && n > but);
    for (size_t k = 0; k < but; k++) {
        close(fds[--n]);
    }
    return n;
}

static void test_accepting_continues_when_descriptors_are_free_again(void **state)
{
    const struct rlimit few = {200, 200};
    struct rlimit old;
    struct fixture f = {0};
    int fds[200], clients[3];
    start(&f, NULL);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    const struct rlimit fewer = {few.rlim_cur, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &fewer), 0);
    const size_t n = use_up(fds, HK_LEN(fds), HK_LEN(clients));
    for (size_t k = 0; k < HK_LEN(clients); k++) {
        clients[k] = dial(&f); /* the clients get the last descriptors */
    }
    for (int k = 0; k < 20; k++) {
        rig_turn(&f);
    }
    assert_int_equal(http_server_connections(f.server), 0);
    for (size_t k = 0; k < n; k++) {
        close(fds[k]); /* without an event for the server */
    }
    for (size_t k = 0; k < HK_LEN(clients); k++) {
        http_expect(&f, clients[k], GET, "200 OK");
    }
    close_all(&f, clients, HK_LEN(clients));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    finish(&f);
}

static void test_descriptors_are_left_to_others(void **state)
{
    struct fixture f = {0};
    const int next = dup(0); /* the number of the next descriptor */
    close(next);
    start(&f, &(struct http_opts){.max_descriptor = (uint32_t)next + 8});

    int fds[4]; /* two descriptors each */
    for (size_t k = 0; k < HK_LEN(fds); k++) {
        fds[k] = dial(&f);
        rig_turn(&f);
    }
    AWAIT(&f, http_server_connections(f.server) < HK_LEN(fds));
    for (size_t k = 0; k < HK_LEN(fds); k++) {
        close(fds[k]);
    }
    AWAIT(&f, http_server_connections(f.server) == 0);
    finish(&f);
}

/* ---- bodies ---- */

static void test_announced_bodies_are_counted_before_they_come(void **state)
{
    struct fixture f = {0};
    int fds[4];
    start(&f, &(struct http_opts){.max_bodies_each = 2000});

    dial_all(&f, fds, HK_LEN(fds));
    say(fds[0], "POST / HTTP/1.1\r\nHost: x\r\nX-Test: stranger\r\nContent-Length: 1000\r\n\r\n");
    for (int k = 0; k < 10; k++) {
        rig_turn(&f);
    }
    assert_int_equal(http_server_bodies(f.server), 0);
    for (size_t k = 1; k < 3; k++) {
        say(fds[k], "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
        AWAIT(&f, http_server_bodies(f.server) == k * 1000);
    }
    http_expect(&f, fds[3],
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n",
                "429 Too Many Requests");
    close_all(&f, fds, HK_LEN(fds));
    assert_int_equal(http_server_bodies(f.server), 0);
    finish(&f);
}

/* ---- malformed requests ---- */

#define HEAD "POST /p HTTP/1.1\r\nHost: x\r\n"

static const struct {
    const char *name, *text;
    size_t n;
} broken[] = {
#define CASE(name, text)                                                                           \
    {                                                                                              \
        name, text, sizeof(text) - 1                                                               \
    }
    CASE("two lengths that differ", HEAD "Content-Length: 0\r\nContent-Length: 44\r\n\r\n"),
    CASE("two lengths that agree", HEAD "Content-Length: 0\r\nContent-Length: 0\r\n\r\n"),
    CASE("a length and an encoding",
         HEAD "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    CASE("an encoding and a length",
         HEAD "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
    CASE("two encodings", HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
    CASE("an encoding nobody knows", HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n"),
    CASE("a length with a sign", HEAD "Content-Length: +3\r\n\r\nabc"),
    CASE("a list of lengths", HEAD "Content-Length: 3, 3\r\n\r\nabc"),
    CASE("two hosts", HEAD "Host: y\r\n\r\n"),
    CASE("a NUL in the path", "GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n"),
    CASE("a NUL behind the path", "GET /a\0 HTTP/1.1\r\nHost: x\r\n\r\n"),
    CASE("a NUL in the query", "GET /a?b=c\0d&e=f HTTP/1.1\r\nHost: x\r\n\r\n"),
    CASE("a NUL in a value", "GET / HTTP/1.1\r\nHost: x\0y\r\n\r\n"),
    CASE("two NULs in a value", "GET / HTTP/1.1\r\nHost: x\0\0y: z\r\n\r\n"),
    CASE("two NULs in the last value", "GET / HTTP/1.1\r\nHost: x\r\nA: b\0\0\r\n\r\n"),
    CASE("a NUL in a name", "GET / HTTP/1.1\r\nHost: x\r\nA\0b: c\r\n\r\n"),
    CASE("bare LFs", "GET / HTTP/1.1\nHost: x\n\n"),
    CASE("a bare LF behind the request line", "GET / HTTP/1.1\nHost: x\r\n\r\n"),
    CASE("a bare LF behind a header", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"),
    CASE("a bare LF behind blanks", "GET / HTTP/1.1\r\nHost: x  \nA: b\r\n\r\n"),
    CASE("a bare LF behind the last header", "GET / HTTP/1.1\r\nHost: x\n\r\n"),
    CASE("a bare LF at the end", "GET / HTTP/1.1\r\nHost: x\r\n\n"),
    CASE("a folded header", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"),
    CASE("a blank before the colon", "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n"),
    CASE("a header without a name", "GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n"),
#undef CASE
};

/* No bytes after it on the connection are read as a request. */
static void test_ambiguous_requests_are_refused(void **state)
{
    struct fixture f = {0};
    start(&f, NULL);

    for (size_t k = 0; k < HK_LEN(broken); k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
        const int fd = dial(&f);

        assert_int_equal(send(fd, broken[k].text, broken[k].n, MSG_NOSIGNAL), broken[k].n);
        say(fd, "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
        if (read_until(&f, fd, &in, "/smuggled")) {
            fail_msg("%s: the next request was served: %s", broken[k].name, in.data);
        }
        if (!hk_str_starts(hk_buf_str(&in), "HTTP/1.1 400 ") || f.handled > 0) {
            fail_msg("%s: expected 400 and no request, got %u requests and '%s'", broken[k].name,
                     f.handled, hk_buf_str(&in).s);
        }
        close(fd);
    }
    finish(&f);
}

static void test_unusual_but_valid_requests_are_served(void **state)
{
    static const char *const fine[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\t x \t\r\nEmpty:\r\nBlank: \r\n\r\n",
        "GET /?a=b&c&=&a=%00 HTTP/1.1\r\nHost: x\r\nCookie: a=b; c=d\r\nCookie: e\r\n\r\n",
        "GET /?? HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    };
    struct fixture f = {0};
    start(&f, NULL);
    const int fd = dial(&f);

    for (size_t k = 0; k < HK_LEN(fine); k++) { /* all on one connection */
        http_expect(&f, fd, fine[k], "200 OK");
    }
    close(fd);
    finish(&f);
}

static void test_a_target_that_is_too_long_is_refused(void **state)
{
    static const size_t sizes[] = {25 * 1024, 40 * 1024};
    struct fixture f = {0};
    start(&f, NULL);

    for (size_t k = 0; k < 2 * HK_LEN(sizes); k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        const char *part = k % 2 == 0 ? "a=b&" : "aaaa";
        const int fd = dial(&f);

        hk_buf_adds(&text, "GET /api?");
        while (text.len < sizes[k / 2]) {
            hk_buf_adds(&text, part);
        }
        hk_buf_adds(&text, " HTTP/1.1\r\nHost: x\r\n\r\n");
        http_expect(&f, fd, text.data, "414 ");
        expect_closed(&f, fd);
        close(fd);
    }
    assert_int_equal(f.handled, 0);
    AWAIT(&f, http_server_connections(f.server) == 0);
    finish(&f);
}

static void test_the_answer_to_head_has_no_body(void **state)
{
    struct fixture f = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    start(&f, NULL);
    const int fd = dial(&f);

    say(fd, "HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(read_until(&f, fd, &in, "GET|/next"));
    const char *first_end = strstr(in.data, "\r\n\r\n");
    assert_true(hk_str_starts(hk_str(first_end + 4), "HTTP/1.1 200 OK"));
    assert_int_equal(f.ended, 1);
    close(fd);
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_idle_connection_is_closed_for_a_new_one),
        cmocka_unit_test(test_a_connection_with_a_request_is_never_closed),
        cmocka_unit_test(test_anonymous_connections_are_closed_before_those_of_users),
        cmocka_unit_test(test_connections_of_one_user_are_limited),
        cmocka_unit_test(test_connections_of_one_address_are_limited),
        cmocka_unit_test(test_accepting_continues_when_descriptors_are_free_again),
        cmocka_unit_test(test_descriptors_are_left_to_others),
        cmocka_unit_test(test_announced_bodies_are_counted_before_they_come),
        cmocka_unit_test(test_ambiguous_requests_are_refused),
        cmocka_unit_test(test_unusual_but_valid_requests_are_served),
        cmocka_unit_test(test_a_target_that_is_too_long_is_refused),
        cmocka_unit_test(test_the_answer_to_head_has_no_body),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
