// SPDX-License-Identifier: Apache-2.0
// Watches over a socket: as lines, and over a WebSocket.
#include "apiserver/server_rig_test.h"

#include "net/ws.h"

static void test_a_watch_shows_existing_objects_and_changes(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf events = {0};

    make(f, "a");
    const int fd = dial(f);
    ask(fd, "GET", CONFIGMAPS "?watch=true", TOKEN, NULL);
    read_until(f, fd, &events, "{\"type\":\"ADDED\",\"object\":{");
    read_until(f, fd, &events, "\"name\":\"a\"");
    make(f, "b");
    read_until(f, fd, &events, "\"name\":\"b\"");
    expect(f, "DELETE", CONFIGMAPS "/b", NULL, 200, "Success");
    read_until(f, fd, &events, "{\"type\":\"DELETED\",\"object\":{");
    close(fd);
}

static void test_a_watch_with_initial_events_marks_their_end(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf events = {0};

    make(f, "a");
    const int fd = dial(f);
    ask(fd, "GET",
        CONFIGMAPS "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                   "&allowWatchBookmarks=true",
        TOKEN, NULL);
    read_until(f, fd, &events, "\"k8s.io/initial-events-end\":\"true\"");
    assert_true(hk_str_contains(hk_buf_str(&events), "\"name\":\"a\""));
    close(fd);
}

/* In Go a bookmark is an object of its kind, and fabric8 hands it to watchers as one. */
static void test_a_bookmark_has_the_structs_of_its_kind(void **state)
{
    static const struct {
        const char *url, *object;
    } cases[] = {
        {"/api/v1/namespaces/default/pods", ",\"spec\":{\"containers\":null},\"status\":{}}}"},
        {"/apis/apps/v1/namespaces/default/deployments",
         ",\"spec\":{\"selector\":null,\"template\":{\"metadata\":{},\"spec\":{\"containers\":null}"
         "},"
         "\"strategy\":{}},\"status\":{}}}"},
        {"/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", "\"}}}"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf events = {0};
        char target[256];
        snprintf(target, sizeof(target),
                 "%s?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                 "&allowWatchBookmarks=true",
                 cases[i].url);
        const int fd = dial(f);
        ask(fd, "GET", target, TOKEN, NULL);
        read_until(f, fd, &events, "\"type\":\"BOOKMARK\"");
        read_until(f, fd, &events, cases[i].object);
        close(fd);
    }
}

static void test_a_watch_ends_when_its_time_is_up(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf events = {0};

    const int fd = dial(f);
    ask(fd, "GET", CONFIGMAPS "?watch=true&timeoutSeconds=1&allowWatchBookmarks=true", TOKEN, NULL);
    read_until(f, fd, &events, "0\r\n\r\n");
    assert_true(hk_str_contains(hk_buf_str(&events), "\"type\":\"BOOKMARK\""));
    close(fd);
}

#define SOCKET                                                                                     \
    TOKEN "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"                              \
          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

/* Reads the next frame after *at; a text is compared up to where `want` ends. */
static void expect_frame(struct fixture *f, int fd, struct hk_buf *in, size_t *at, unsigned op,
                         const char *want)
{
    size_t head = 2, n;

    read_bytes(f, fd, in, *at + 2);
    const unsigned char *p = (const unsigned char *)in->data + *at;
    assert_int_equal(p[0], 0x80 | op);
    n = p[1];
    if (n == 126) {
        head = 4;
        read_bytes(f, fd, in, *at + head);
        p = (const unsigned char *)in->data + *at;
        n = (size_t)p[2] << 8 | p[3];
    }
    assert_in_range(n, 0, 65535);
    read_bytes(f, fd, in, *at + head + n);
    if (!hk_str_starts((struct hk_str){in->data + *at + head, n}, want)) {
        fail_msg("expected a frame with '%s', got '%.*s'", want, (int)n, in->data + *at + head);
    }
    *at += head + n;
}

static int open_socket(struct fixture *f, const char *target, struct hk_buf *in, size_t *at)
{
    const int fd = dial(f);

    ask(fd, "GET", target, SOCKET, NULL);
    read_until(f, fd, in, "\r\n\r\n");
    assert_true(hk_str_starts(hk_buf_str(in), "HTTP/1.1 101 "));
    assert_non_null(strstr(in->data, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    *at = (size_t)(strstr(in->data, "\r\n\r\n") + 4 - in->data);
    return fd;
}

static void test_a_watch_over_a_websocket_sends_a_frame_per_event(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    size_t at;

    make(f, "a");
    const int fd = open_socket(f, CONFIGMAPS "?watch=true", &in, &at);
    expect_frame(f, fd, &in, &at, WS_TEXT, "{\"type\":\"ADDED\",\"object\":{");
    make(f, "b");
    expect_frame(f, fd, &in, &at, WS_TEXT, "{\"type\":\"ADDED\",\"object\":{");
    expect(f, "DELETE", CONFIGMAPS "/b", NULL, 200, "Success");
    expect_frame(f, fd, &in, &at, WS_TEXT, "{\"type\":\"DELETED\",\"object\":{");
    assert_int_equal(f->server->counters.watches, 1);
    close(fd);
    wait_for_watches(f, 0);
}

static void test_a_websocket_answers_pings_and_closes_when_asked(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0}, out = {0};
    const unsigned char mask[4] = {1, 2, 3, 4};
    size_t at;

    const int fd = open_socket(f, CONFIGMAPS "?watch=true", &in, &at);
    ws_write(WS_PING, HK_STR("hello"), mask, &out);
    ws_write(WS_TEXT, HK_STR("ignored"), mask, &out);
    ws_write_close(WS_CLOSE_NORMAL, HK_STR(""), mask, &out);
    assert_int_equal(send(fd, out.data, out.len, MSG_NOSIGNAL), out.len);
    expect_frame(f, fd, &in, &at, WS_PONG, "hello");
    expect_frame(f, fd, &in, &at, WS_CLOSE, "\x03\xe8");
    wait_for_watches(f, 0);
    close(fd);
}

static void test_a_websocket_closes_when_its_time_is_up(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    size_t at;

    const int fd = open_socket(
        f, CONFIGMAPS "?watch=true&timeoutSeconds=1&allowWatchBookmarks=true", &in, &at);
    expect_frame(f, fd, &in, &at, WS_TEXT, "{\"type\":\"BOOKMARK\"");
    expect_frame(f, fd, &in, &at, WS_CLOSE, "\x03\xe8");
    close(fd);
}

static void test_an_invalid_frame_closes_a_websocket(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0}, out = {0};
    size_t at;

    const int fd = open_socket(f, CONFIGMAPS "?watch=true", &in, &at);
    ws_write(WS_TEXT, HK_STR("not masked"), NULL, &out);
    assert_int_equal(send(fd, out.data, out.len, MSG_NOSIGNAL), out.len);
    expect_frame(f, fd, &in, &at, WS_CLOSE, "\x03\xea");
    wait_for_watches(f, 0);
    close(fd);
}

static void test_a_wrong_handshake_is_refused(void **state)
{
    static const struct {
        const char *headers, *want;
    } cases[] = {
        {"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
         "Sec-WebSocket-Version"},
        {"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: short\r\n",
         "Sec-WebSocket-Key"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf headers = {0};
        hk_buf_addf(&headers, TOKEN "%s", cases[i].headers);
        assert_int_equal(call(f, "GET", CONFIGMAPS "?watch=true", headers.data, NULL), 400);
        assert_non_null(strstr(f->in.data, cases[i].want));
    }
}

static void test_a_watch_with_a_broken_selector_is_refused(void **state)
{
    struct fixture *f = *state;

    expect(f, "GET", CONFIGMAPS "?watch=true&labelSelector=%3D%3D", NULL, 400, "BadRequest");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_watch_shows_existing_objects_and_changes),
        TEST(test_a_watch_with_initial_events_marks_their_end),
        TEST(test_a_bookmark_has_the_structs_of_its_kind),
        TEST(test_a_watch_ends_when_its_time_is_up),
        TEST(test_a_watch_over_a_websocket_sends_a_frame_per_event),
        TEST(test_a_websocket_answers_pings_and_closes_when_asked),
        TEST(test_a_websocket_closes_when_its_time_is_up),
        TEST(test_an_invalid_frame_closes_a_websocket),
        TEST(test_a_wrong_handshake_is_refused),
        TEST(test_a_watch_with_a_broken_selector_is_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
