// SPDX-License-Identifier: Apache-2.0
// Requests for pods on other machines: which node is asked, with which identity, and what the
// client gets when a step fails.
#include "relay/rig_test.h"

static void say_hello(struct rig *g, struct http_request *q)
{
    reply(q, 200, "hello from the node\n");
}

static void pod_on_node(struct rig *g)
{
    rig_put_node(g, http_server_port(g->node));
    rig_put(g, POD("p", ON_N1, MAIN));
}

/* ---- logs ---- */

static void a_log_comes_from_the_node_of_the_pod(void **state)
{
    struct rig *g = *state;

    pod_on_node(g);
    g->serve = say_hello;
    expect_answer(g, "/d/p/log?tailLines=3", "200", "hello from the node\n");
    assert_string_equal(
        g->asked.data,
        "GET /containerLogs/d/p/main?tailLines=3 by hekla-apiserver,system:masters\n");
}

static void a_named_container_is_asked_for(void **state)
{
    struct rig *g = *state;

    rig_put_node(g, http_server_port(g->node));
    rig_put(g, POD("p", ON_N1, MAIN ",{\"name\":\"side\"}"));
    g->serve = say_hello;
    expect_answer(g, "/d/p/log?container=side", "200", "hello");
    assert_non_null(strstr(g->asked.data, "GET /containerLogs/d/p/side?container=side "));
    expect_answer(g, "/d/p/log", "400",
                  "a container name must be specified for pod p, choose one of: [main side]");
}

static void a_pod_without_a_node_has_an_empty_log(void **state)
{
    struct rig *g = *state;

    rig_put(g, POD("p", "", MAIN));
    expect_answer(g, "/d/p/log", "200", "\r\n\r\n");
    expect_answer(g, "/d/p/exec?command=sh", "400", "pod p does not have a host assigned");
}

/* ---- what fails ---- */

static void missing_objects_are_not_found(void **state)
{
    struct rig *g = *state;

    expect_answer(g, "/d/p/log", "404", "\"reason\":\"NotFound\",\"code\":404");
    rig_put(g, POD("p", ON_N1, MAIN));
    expect_answer(g, "/d/p/log", "404", "nodes 'n1' not found");
}

static void a_node_without_an_address_cannot_be_asked(void **state)
{
    struct rig *g = *state;

    rig_put(g, POD("p", ON_N1, MAIN));
    rig_put_node(g, 0);
    expect_answer(g, "/d/p/log", "501", "the node of the pod does not say where it serves");
}

static void an_unreachable_node_is_explained(void **state)
{
    struct rig *g = *state;

    rig_put(g, POD("p", ON_N1, MAIN));
    rig_put_node(g, 1);
    expect_answer(g, "/d/p/log", "500",
                  "(an agent listens on loopback only, unless it is started with --listen or "
                  "--address)");
    expect_answer(g, "/d/p/exec?command=sh", "500", "error dialing backend: ");
}

static void refuse_unauthorized(struct rig *g, struct http_request *q)
{
    reply(q, 401, "Unauthorized");
}

static void refuse_missing(struct rig *g, struct http_request *q)
{
    reply(q, 404, "container main is not known");
}

static void break_down(struct rig *g, struct http_request *q)
{
    reply(q, 500, "the disk is gone");
}

static void refusals_of_the_node_are_explained_or_passed_on(void **state)
{
    struct rig *g = *state;

    pod_on_node(g);
    g->serve = refuse_unauthorized;
    expect_answer(g, "/d/p/log", "500",
                  "cannot read the log of pod p: its node answered 401 Unauthorized; start the "
                  "agent there with --client-ca-file FILE");
    g->serve = refuse_missing;
    expect_answer(g, "/d/p/log", "404", "container main is not known");
    g->serve = break_down;
    expect_answer(g, "/d/p/log", "500", "its node answered 500: ");
}

static void other_requests_are_not_offered(void **state)
{
    struct rig *g = *state;

    pod_on_node(g);
    expect_answer(g, "/d/p/proxy", "501", "this server does not offer proxy of pods");
}

/* ---- pods of this process ---- */

static bool has_local(void *ctx, struct hk_str ns, struct hk_str pod)
{
    return hk_str_is(pod, "here");
}

static void serve_local(void *ctx, const struct node_call *call)
{
    reply(call->http, 200, "from this process\n");
}

static void pods_of_this_process_are_served_here(void **state)
{
    static const struct node_api local = {.serve = serve_local, .has = has_local};
    struct rig *g = *state;

    node_proxy_free(g->proxy);
    rig_make_proxy(g, &local);
    pod_on_node(g);
    g->serve = say_hello;
    expect_answer(g, "/d/here/log", "200", "from this process\n");
    assert_int_equal(g->asked.len, 0);
    expect_answer(g, "/d/p/log", "200", "hello from the node\n");
}

/* ---- long logs and slow clients ---- */

enum { LONG_BYTES = 32 << 20, LINE_BYTES = 64 };

struct long_log {
    size_t sent;
};

static struct long_log long_log;

static bool pull_long(void *ctx, struct hk_buf *out, size_t room)
{
    struct long_log *l = ctx;

    for (size_t n = 0; n < room && l->sent < LONG_BYTES; n += LINE_BYTES, l->sent += LINE_BYTES) {
        hk_buf_addf(out, "%0*zu\n", LINE_BYTES - 1, l->sent);
    }
    return l->sent < LONG_BYTES;
}

static void end_long(void *ctx)
{
}

static void send_long_log(struct rig *g, struct http_request *q)
{
    long_log = (struct long_log){0};
    http_reply_stream(
        q, 200, NULL, 0,
        &(struct http_stream){.pull = pull_long, .ended = end_long, .ctx = &long_log});
}

/* Reads until the connection is closed; returns the number of bytes. */
static size_t read_all(struct rig *g, int fd)
{
    const int64_t deadline_ns =
        net_loop_now_ns(g->http.loop) + (int64_t)4 * PATIENCE_MS * 1000 * 1000;
    static char chunk[256 << 10];
    size_t all = 0;
    ssize_t n;

    while ((n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT)) != 0) {
        if (n > 0) {
            all += (size_t)n;
        } else {
            assert_int_equal(errno, EAGAIN);
            assert_true(net_loop_now_ns(g->http.loop) < deadline_ns);
            rig_turn(&g->http);
        }
    }
    return all;
}

/* Only a part of the log is under way while the client does not read; then it gets everything. */
static void a_slow_client_slows_the_node_down(void **state)
{
    struct rig *g = *state;

    pod_on_node(g);
    g->serve = send_long_log;
    const int fd = dial(&g->http);
    say(fd, "GET /d/p/log HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    for (int i = 0; i < 100; i++) {
        rig_turn(&g->http);
    }
    assert_true(long_log.sent > 0);
    assert_true(long_log.sent < LONG_BYTES);
    assert_true(read_all(g, fd) > LONG_BYTES); /* with the head, and a length for each chunk */
    assert_int_equal(long_log.sent, LONG_BYTES);
    close(fd);
}

static void a_client_that_leaves_ends_the_relay(void **state)
{
    struct rig *g = *state;

    pod_on_node(g);
    g->serve = send_long_log;
    const int fd = dial(&g->http);
    say(fd, "GET /d/p/log HTTP/1.1\r\nHost: x\r\n\r\n");
    AWAIT(&g->http, g->asked.len > 0);
    close(fd);
    AWAIT(&g->http, http_server_connections(g->node) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_log_comes_from_the_node_of_the_pod),
        RIG_TEST(a_named_container_is_asked_for),
        RIG_TEST(a_pod_without_a_node_has_an_empty_log),
        RIG_TEST(missing_objects_are_not_found),
        RIG_TEST(a_node_without_an_address_cannot_be_asked),
        RIG_TEST(an_unreachable_node_is_explained),
        RIG_TEST(refusals_of_the_node_are_explained_or_passed_on),
        RIG_TEST(other_requests_are_not_offered),
        RIG_TEST(pods_of_this_process_are_served_here),
        RIG_TEST(a_slow_client_slows_the_node_down),
        RIG_TEST(a_client_that_leaves_ends_the_relay),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("relay/node_proxy", tests, NULL, NULL);
}
