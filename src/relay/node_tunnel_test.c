// SPDX-License-Identifier: Apache-2.0
// Commands in pods on other machines: bytes pass both ways once the node agrees, a refusal reaches
// the client, and each side ends with the other.
#include "relay/rig_test.h"

#define EXEC "/d/p/exec?command=sh&command=-c&stdin=true&stdout=true&tty=false&container=main"
#define UPGRADE                                                                                    \
    "GET " EXEC " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"            \
    "Sec-WebSocket-Key: a2V5\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: "             \
    "v5.channel.k8s.io\r\n\r\n"

/* ---- a node that echoes ---- */

static void echo_opened(void *ctx, struct hk_str early)
{
    struct rig *g = ctx;

    http_tunnel_want(g->tunnel, EPOLLIN);
}

static void echo_ready(void *ctx, uint32_t events)
{
    struct rig *g = ctx;
    char bytes[4096];
    ssize_t n;

    while ((n = http_tunnel_read(g->tunnel, bytes, sizeof(bytes))) > 0) {
        assert_int_equal(http_tunnel_write(g->tunnel, bytes, (size_t)n), n);
        if (memchr(bytes, '!', (size_t)n)) { /* the command ends */
            http_tunnel_close(g->tunnel);
            g->tunnel = NULL;
            return;
        }
    }
}

static void echo_cut(void *ctx)
{
    struct rig *g = ctx;

    g->tunnel = NULL;
    g->cut++;
}

static void agree(struct rig *g, struct http_request *q)
{
    const struct http_header headers[] = {
        {HK_STR("Upgrade"), HK_STR("websocket")},
        {HK_STR("Sec-WebSocket-Protocol"), HK_STR("v5.channel.k8s.io")}};

    assert_true(hk_str_is(http_request_header(q, "Sec-WebSocket-Key"), "a2V5"));
    g->tunnel = q;
    http_reply_tunnel(q, headers, HK_LEN(headers),
                      &(struct http_tunnel){
                          .opened = echo_opened, .ready = echo_ready, .cut = echo_cut, .ctx = g});
}

static int open_tunnel(struct rig *g)
{
    rig_put_node(g, http_server_port(g->node));
    rig_put(g, POD("p", ON_N1, MAIN));
    const int fd = dial(&g->http);
    say(fd, UPGRADE);
    return fd;
}

/* ---- tests ---- */

static void bytes_pass_both_ways(void **state)
{
    struct rig *g = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf head = {0};

    g->serve = agree;
    const int fd = open_tunnel(g);
    assert_true(read_until(&g->http, fd, &head, "\r\n\r\n"));
    assert_non_null(strstr(head.data, "HTTP/1.1 101 "));
    assert_non_null(strstr(head.data, "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n"));
    assert_string_equal(g->asked.data,
                        "GET /exec/d/p/main?command=sh&command=-c&input=true&output=true&tty="
                        "false& by hekla-apiserver,system:masters\n");
    say(fd, "one ");
    expect(&g->http, fd, "one ");
    say(fd, "two ");
    expect(&g->http, fd, "two ");
    close(fd);
}

static void ports_are_those_of_the_whole_pod(void **state)
{
    struct rig *g = *state;

    g->serve = agree;
    rig_put_node(g, http_server_port(g->node));
    rig_put(g, POD("p", ON_N1, MAIN ",{\"name\":\"other\"}"));
    const int fd = dial(&g->http);
    say(fd, "GET /d/p/portforward?ports=80&ports=81 HTTP/1.1\r\nHost: x\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a2V5\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n");
    expect(&g->http, fd, "\r\n\r\n");
    assert_string_equal(g->asked.data, "GET /portForward/d/p?port=80&port=81& by "
                                       "hekla-apiserver,system:masters\n");
    close(fd);
}

static void the_end_of_the_command_ends_the_connection(void **state)
{
    struct rig *g = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};

    g->serve = agree;
    const int fd = open_tunnel(g);
    expect(&g->http, fd, "\r\n\r\n");
    say(fd, "last words!");
    assert_false(read_until(&g->http, fd, &in, "never"));
    assert_string_equal(in.data, "last words!");
    close(fd);
}

static void a_client_that_leaves_ends_the_command(void **state)
{
    struct rig *g = *state;

    g->serve = agree;
    const int fd = open_tunnel(g);
    expect(&g->http, fd, "\r\n\r\n");
    say(fd, "x");
    expect(&g->http, fd, "x");
    close(fd);
    AWAIT(&g->http, g->cut == 1);
}

static void refuse(struct rig *g, struct http_request *q)
{
    reply(q, 403, "not in this container");
}

static void a_refusal_of_the_node_is_passed_on(void **state)
{
    struct rig *g = *state;

    g->serve = refuse;
    const int fd = open_tunnel(g);
    expect(&g->http, fd, "not in this container");
    close(fd);

    expect_answer(g, EXEC, "403", "not in this container");
}

/* ---- a node that is no server ---- */

static void a_node_that_talks_nonsense_is_an_error(void **state)
{
    struct rig *g = *state;

    rig_put(g, POD("p", ON_N1, MAIN));
    rig_put_node(g, http_server_port(g->http.server)); /* it does not speak TLS */
    expect_answer(g, EXEC, "500", "error dialing backend: ");
}

static void tunnels_end_with_the_proxy(void **state)
{
    struct rig *g = *state;

    g->serve = agree;
    const int fd = open_tunnel(g);
    expect(&g->http, fd, "\r\n\r\n");
    say(fd, "x");
    expect(&g->http, fd, "x");
    http_server_free(g->http.server); /* the caller's order at the end */
    node_proxy_free(g->proxy);
    g->proxy = NULL;
    g->http.server = NULL;
    AWAIT(&g->http, g->cut == 1);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(bytes_pass_both_ways),
        RIG_TEST(ports_are_those_of_the_whole_pod),
        RIG_TEST(the_end_of_the_command_ends_the_connection),
        RIG_TEST(a_client_that_leaves_ends_the_command),
        RIG_TEST(a_refusal_of_the_node_is_passed_on),
        RIG_TEST(a_node_that_talks_nonsense_is_an_error),
        RIG_TEST(tunnels_end_with_the_proxy),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("relay/node_tunnel", tests, NULL, NULL);
}
