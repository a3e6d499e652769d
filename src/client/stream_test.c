// SPDX-License-Identifier: Apache-2.0
// Streams with a server that sends the test's script, in its own thread because connecting blocks.
#include "client/stream.h"
#include "net/listen.h"
#include "net/ws.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 10000 };

struct scene {
    /* The server. */
    pthread_t thread;
    int listening;
    uint16_t port;
    const char *head; /* of the answer; NULL: an upgrade to protocol */
    const char *protocol;
    struct hk_buf body;
    struct hk_buf request, heard;

    struct net_loop *loop;
    struct hk_rand rand;
    struct client *client;
    struct hk_buf channels[4];
};

/* ---- the server ---- */

static void send_all(int fd, struct hk_str text)
{
    while (text.n > 0) {
        const ssize_t n = send(fd, text.s, text.n, MSG_NOSIGNAL);
        if (n <= 0) {
            return;
        }
        text.s += n;
        text.n -= (size_t)n;
    }
}

static void write_head(struct scene *s, struct hk_buf *out)
{
    const char *key =
        strstr(s->request.data, "Sec-WebSocket-Key: ") + strlen("Sec-WebSocket-Key: ");
    char accept[WS_ACCEPT_BYTES + 1];

    ws_accept((struct hk_str){key, WS_KEY_BYTES}, accept);
    hk_buf_addf(out,
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                "sec-websocket-accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
                accept, s->protocol);
}

static void *serve(void *ctx)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct scene *s = ctx;
    struct pollfd p = {.fd = s->listening, .events = POLLIN};
    char chunk[4096];
    ssize_t n;

    if (poll(&p, 1, PATIENCE_MS) != 1) {
        return NULL;
    }
    const int fd = accept(s->listening, NULL, NULL);
    while (!hk_str_contains(hk_buf_str(&s->request), "\r\n\r\n") &&
           (n = recv(fd, chunk, sizeof(chunk), 0)) > 0) {
        hk_buf_add(&s->request, chunk, (size_t)n);
    }
    if (s->head) {
        hk_buf_adds(&out, s->head);
    } else {
        write_head(s, &out);
    }
    hk_buf_addstr(&out, hk_buf_str(&s->body));
    send_all(fd, hk_buf_str(&out));
    shutdown(fd, SHUT_WR);
    while ((n = recv(fd, chunk, sizeof(chunk), 0)) > 0) {
        hk_buf_add(&s->heard, chunk, (size_t)n);
    }
    close(fd);
    return NULL;
}

/* ---- the client ---- */

static void on_data(void *ctx, uint8_t channel, struct hk_str bytes)
{
    struct scene *s = ctx;

    hk_buf_addstr(&s->channels[channel], bytes);
}

static void start(struct scene *s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct kubeconfig k = {0};
    struct hk_err err = {0};

    s->loop = net_loop_new(hk_clock_system());
    hk_rand_seed(&s->rand, 1);
    assert_int_equal(listen_on(HK_STR("127.0.0.1"), 0, &s->listening, &s->port, &err), 0);
    hk_buf_addf(&text,
                "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%u/base'}}]\n"
                "users: [{name: u, user: {token: secret}}]\n",
                s->port);
    assert_int_equal(
        kubeconfig_parse(hk_buf_str(&text), "/", &(struct kubeconfig_opts){0}, &k, &err), 0);
    const struct client_opts o = {
        .loop = s->loop, .clock = hk_clock_system(), .rand = &s->rand, .user_agent = "test"};
    assert_int_equal(client_new(&o, &k, &s->client, &err), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void finish(struct scene *s)
{
    pthread_join(s->thread, NULL);
    close(s->listening);
    port_free(client_port(s->client));
    net_loop_free(s->loop);
    hk_buf_fini(&s->body);
    hk_buf_fini(&s->request);
    hk_buf_fini(&s->heard);
    for (size_t k = 0; k < HK_LEN(s->channels); k++) {
        hk_buf_fini(&s->channels[k]);
    }
}

/* Opens the stream and reads to its end; returns the result of stream_turn or stream_open. */
static int hear_out(struct scene *s, struct hk_err *err)
{
    struct stream *stream = NULL;
    int rc =
        stream_open(s->client, &(struct stream_opts){.path = "/x?y=z", .data = on_data, .ctx = s},
                    &stream, err);

    if (rc == 0) {
        assert_true(stream_room(stream));
        stream_send(stream, 0, HK_STR("typed"));
        assert_int_equal(stream_end_input(stream), strcmp(s->protocol, "v5.channel.k8s.io") == 0);
    }
    while (rc == 0 && (rc = stream_turn(stream, err)) == 0) {
        struct pollfd p = {.fd = stream_fd(stream), .events = stream_events(stream)};
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    }
    stream_free(stream);
    return rc;
}

/* ---- tests ---- */

static void test_a_stream_is_read_to_its_end(void **state)
{
    static const char *const protocols[] = {"v5.channel.k8s.io", "v4.channel.k8s.io"};

    for (size_t k = 0; k < HK_LEN(protocols); k++) {
        struct scene s = {.protocol = protocols[k]};
        struct hk_err err = {0};
        ws_write_channel(1, HK_STR(""), NULL, &s.body);
        ws_write_channel(1, HK_STR("out"), NULL, &s.body);
        ws_write_channel(2, HK_STR("err"), NULL, &s.body);
        ws_write(WS_PING, HK_STR("there?"), NULL, &s.body);
        ws_write_channel(3, HK_STR("{\"status\":\"Success\"}"), NULL, &s.body);
        ws_write_close(WS_CLOSE_NORMAL, HK_STR(""), NULL, &s.body);
        start(&s);
        assert_int_equal(hear_out(&s, &err), 1);
        assert_string_equal(s.channels[1].data, "out");
        assert_string_equal(s.channels[2].data, "err");
        assert_int_equal(stream_outcome(hk_buf_str(&s.channels[3]), &err), 0);
        finish(&s);
    }
}

static void test_the_request_has_path_and_credentials(void **state)
{
    struct scene s = {.protocol = "v5.channel.k8s.io"};
    struct hk_err err = {0};

    ws_write_close(WS_CLOSE_NORMAL, HK_STR(""), NULL, &s.body);
    start(&s);
    assert_int_equal(hear_out(&s, &err), 1);
    assert_non_null(strstr(s.request.data, "GET /base/x?y=z HTTP/1.1\r\nHost: 127.0.0.1:"));
    assert_non_null(strstr(s.request.data, "\r\nAuthorization: Bearer secret\r\n"));
    finish(&s);
}

static void test_failures_are_reported(void **state)
{
    static const struct {
        const char *head, *protocol, *body, *want;
        int rc;
    } cases[] = {
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 67\r\n\r\n", "",
         "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"not you\",\"code\":403}",
         "not you", -HK_EDENIED},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "", "hi", "", -HK_EINVAL},
        {"SSH-2.0-x\r\n\r\n", "", "", "does not answer as a server", -HK_EIO},
        {"HTTP/1.1 101 x\r\nSec-WebSocket-Accept: no\r\n\r\n", "", "", "does not upgrade", -HK_EIO},
        {NULL, "v9", "", "uses another protocol: 'v9'", -HK_EUNSUP},
        {NULL, "v4.channel.k8s.io", "\xff\x7f....", "", -HK_EIO},
        {NULL, "v4.channel.k8s.io",
         "\xc1\x01"
         "a",
         "reserved bits", -HK_EINVAL},
        {NULL, "v4.channel.k8s.io",
         "\x88\x05\x03\xf3"
         "why",
         "closed the stream: why", -HK_EIO},
        {NULL, "v4.channel.k8s.io", "", "closed the connection", -HK_EIO},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct scene s = {.head = cases[k].head, .protocol = cases[k].protocol};
        struct hk_err err = {0};
        hk_buf_adds(&s.body, cases[k].body);
        start(&s);
        assert_int_equal(hear_out(&s, &err), cases[k].rc);
        assert_non_null(strstr(err.text, cases[k].want));
        assert_true(err.text[0] != '\0');
        finish(&s);
    }
}

static void test_outcomes(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } cases[] = {
        {"{\"status\":\"Success\"}", 0},
        {"{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":["
         "{\"reason\":\"ExitCode\",\"message\":\"42\"}]}}",
         42},
        {"{\"status\":\"Failure\",\"message\":\"no such thing\"}", -HK_EIO},
        {"{\"status\":\"Failure\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\","
         "\"message\":\"-1\"}]}}",
         -HK_EIO},
        {"", -HK_EIO},
        {"{", -HK_EIO},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct hk_err err = {0};
        assert_int_equal(stream_outcome(hk_str(cases[k].text), &err), cases[k].rc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_is_read_to_its_end),
        cmocka_unit_test(test_the_request_has_path_and_credentials),
        cmocka_unit_test(test_failures_are_reported),
        cmocka_unit_test(test_outcomes),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
