// SPDX-License-Identifier: Apache-2.0
// Commands and their channels over a real connection: the test is both the client and the command.
#include "agent/pod_exec.c"

#include "agent/rig_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

enum { PATIENCE_TURNS = 5000, BOUND = 16 << 20 /* more than pipes, sockets and buffers hold */ };

struct scene {
    struct rig r;
    struct net_loop *loop;
    struct http_server *server;
    struct runtime_ops ops;
    int in, out, err; /* of the command; -1: none */

    int fd; /* of the client */
    struct hk_buf raw;
    struct ws_reader reader;
    struct hk_buf channels[5];
    uint8_t channel;
    uint16_t closed; /* code of the server's close; 0: none */
    struct hk_buf pouring;
    size_t poured;
};

/* ---- the node ---- */

static struct scene *the_scene; /* the runtime's table has no context pointer for tests */

static int exec_with_streams(struct runtime *rt, uint64_t container, const char *const *argv,
                             int in, int out, int err_out, uint64_t *ret, struct hk_err *err)
{
    the_scene->in = in < 0 ? -1 : fcntl(in, F_DUPFD_CLOEXEC, 3);
    the_scene->out = out < 0 ? -1 : fcntl(out, F_DUPFD_CLOEXEC, 3);
    the_scene->err = err_out < 0 ? -1 : fcntl(err_out, F_DUPFD_CLOEXEC, 3);
    return fake_exec(rt, container, argv, in, out, err_out, ret, err);
}

static void handle(void *ctx, struct http_request *q)
{
    struct scene *s = ctx;

    agent_serve(s->r.agent, &(struct node_call){.ns = HK_STR("d"),
                                                .pod = HK_STR("a"),
                                                .sub = HK_STR("exec"),
                                                .query = q->query,
                                                .http = q});
}

static void start(struct scene *s)
{
    struct hk_err err = {0};

    *s = (struct scene){.in = -1, .out = -1, .err = -1, .fd = -1, .ops = fake_ops};
    s->reader.max_frame = 1 << 20;
    the_scene = s;
    rig_init(&s->r);
    s->ops.exec = exec_with_streams;
    s->r.fake.runtime.ops = &s->ops;
    s->loop = net_loop_new(hk_clock_system());
    s->r.agent->o.loop = s->loop;
    rig_pod(&s->r, "a",
            "  containers:\n"
            "  - {name: c, image: i, command: [work]}\n");
    const struct http_opts o = {.addr = HK_STR("127.0.0.1"),
                                .max_body = 100,
                                .max_bodies = 1000,
                                .max_connections = 8,
                                .idle_timeout_ms = 60000,
                                .header_timeout_ms = 60000,
                                .handle = handle,
                                .ctx = s};
    assert_int_equal(http_server_new(s->loop, &o, &s->server, &err), 0);
}

static void shut(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

static void finish(struct scene *s)
{
    rig_fini(&s->r);
    http_server_free(s->server);
    net_loop_free(s->loop);
    shut(&s->in);
    shut(&s->out);
    shut(&s->err);
    shut(&s->fd);
    hk_buf_fini(&s->raw);
    hk_buf_fini(&s->pouring);
    for (size_t k = 0; k < HK_LEN(s->channels); k++) {
        hk_buf_fini(&s->channels[k]);
    }
}

static void turn(struct scene *s)
{
    struct hk_err err = {0};

    assert_int_equal(net_loop_turn(s->loop, 1, &err), 0);
    agent_run(s->r.agent);
}

/* ---- the client ---- */

static void dial(struct scene *s, const char *query, const char *headers)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(s->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text, "GET /x?%s HTTP/1.1\r\nHost: x\r\n%s\r\n", query, headers);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(s->fd, (const void *)&to, sizeof(to)), 0);
    assert_int_equal(send(s->fd, text.data, text.len, 0), text.len);
}

static bool hear(struct scene *s)
{
    char chunk[4096];

    turn(s);
    const ssize_t n = recv(s->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    if (n > 0) {
        hk_buf_add(&s->raw, chunk, (size_t)n);
    }
    return n > 0 || (n < 0 && errno == EAGAIN);
}

#define UPGRADE                                                                                    \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"                   \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define V5 UPGRADE "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n"

static const char *answer(struct scene *s, const char *query, const char *headers)
{
    dial(s, query, headers);
    while (!hk_str_contains(hk_buf_str(&s->raw), "\r\n\r\n") ||
           (!hk_str_contains(hk_buf_str(&s->raw), " 101 ") &&
            !hk_str_contains(hk_buf_str(&s->raw), "}\n"))) {
        assert_true(hear(s));
    }
    return s->raw.data;
}

static void upgrade(struct scene *s, const char *query)
{
    const char *text = answer(s, query, V5);

    assert_non_null(strstr(text, " 101 "));
    assert_non_null(strstr(text, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    hk_buf_drop(&s->raw, (size_t)(strstr(text, "\r\n\r\n") + 4 - text));
}

/* Sorts received data into channels. */
static void parse(struct scene *s)
{
    struct ws_piece p;
    struct hk_err err = {0};
    char *in = s->raw.data;
    size_t n = s->raw.len;

    while (n > 0 && ws_read(&s->reader, &in, &n, &p, &err) > 0) {
        if (p.op == WS_CLOSE) {
            s->closed = ws_close_code(p.bytes);
            continue;
        }
        if (p.first && p.bytes.n > 0) {
            s->channel = (uint8_t)p.bytes.s[0];
            p.bytes.s++;
            p.bytes.n--;
        }
        hk_buf_addstr(&s->channels[s->channel], p.bytes);
    }
    assert_string_equal(err.text, "");
    hk_buf_clear(&s->raw);
}

#define AWAIT(s, cond)                                                                             \
    do {                                                                                           \
        for (int left_ = PATIENCE_TURNS; !(cond); left_--) {                                       \
            assert_true(left_ > 0);                                                                \
            hear(s);                                                                               \
            parse(s);                                                                              \
        }                                                                                          \
    } while (0)

static ssize_t tell(struct scene *s, uint8_t channel, struct hk_str bytes)
{
    static const unsigned char mask[4] = {9, 8, 7, 6};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    ws_write_channel(channel, bytes, mask, &out);
    return send(s->fd, out.data, out.len, MSG_NOSIGNAL);
}

static void end_command(struct scene *s, int code)
{
    shut(&s->in);
    shut(&s->out);
    shut(&s->err);
    fake_tell(&s->r, s->r.fake.all.len, code, 0);
}

static bool said(const struct scene *s, int channel, const char *text)
{
    return hk_str_contains(hk_buf_str(&s->channels[channel]), text);
}

/* ---- tests ---- */

static void test_questions_that_cannot_be_answered_say_why(void **state)
{
    static const struct {
        const char *query, *headers, *want;
    } cases[] = {
        {"stdout=true", V5, "you must specify a command"},
        {"command=x", V5, "at least 1 of stdin, stdout, stderr"},
        {"command=x&stdout=1&stderr=1&tty=1", V5, "tty and stderr cannot both be true"},
        {"command=x&stdout=1&container=z", V5, "container z is not valid for pod a"},
        {"command=x&stdout=1", "", "the request asks for neither"},
        {"command=x&stdout=1",
         "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v3.x\r\n",
         "no common protocol"},
        {"command=x&stdout=1", UPGRADE "Sec-WebSocket-Protocol: v1.channel.k8s.io\r\n",
         "no common protocol"},
        {"command=x%zz", V5, "escape"},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct scene s;
        start(&s);
        const char *text = answer(&s, cases[k].query, cases[k].headers);
        assert_non_null(strstr(text, " 400 "));
        assert_non_null(strstr(text, cases[k].want));
        finish(&s);
    }
}

static void test_a_container_that_does_not_run_has_no_commands(void **state)
{
    struct scene s;

    start(&s);
    s.r.agent->pods.at[0]->containers[0].state = CONTAINER_WAITING;
    assert_non_null(strstr(answer(&s, "command=x&stdout=1", V5), "container c of pod a is not"));
    finish(&s);
}

static void test_streams_and_the_end_arrive(void **state)
{
    struct scene s;
    char buf[16] = "";

    start(&s);
    upgrade(&s, "command=do&command=it+now&stdin=1&stdout=1&stderr=1");
    assert_non_null(strstr(s.r.fake.log.data, "exec do it now\n"));
    assert_int_equal(write(s.out, "to you", 6), 6);
    assert_int_equal(write(s.err, "and you", 7), 7);
    AWAIT(&s, said(&s, 1, "to you") && said(&s, 2, "and you"));
    tell(&s, 0, HK_STR("hello"));
    tell(&s, 255, (struct hk_str){"\0", 1});
    fcntl(s.in, F_SETFL, O_NONBLOCK);
    AWAIT(&s, read(s.in, buf, sizeof(buf)) == 5);
    assert_string_equal(buf, "hello");
    AWAIT(&s, read(s.in, buf, sizeof(buf)) == 0); /* end of file */
    assert_int_equal(write(s.out, ", last", 6), 6);
    end_command(&s, 3);
    AWAIT(&s, s.closed == WS_CLOSE_NORMAL);
    assert_true(said(&s, 1, "to you, last"));
    assert_true(said(&s, 3, "\"reason\":\"NonZeroExitCode\""));
    assert_true(said(&s, 3, "{\"reason\":\"ExitCode\",\"message\":\"3\"}"));
    finish(&s);
}

static void test_a_peer_that_does_not_read_holds_the_command_up(void **state)
{
    static char block[4096];
    struct scene s;
    size_t wrote = 0;

    start(&s);
    upgrade(&s, "command=x&stdout=1");
    fcntl(s.out, F_SETFL, O_NONBLOCK);
    for (int idle = 0; idle < 20; idle++) {
        ssize_t n;
        while ((n = write(s.out, block, sizeof(block))) > 0) {
            wrote += (size_t)n;
            idle = 0;
        }
        assert_true(wrote < BOUND);
        turn(&s);
    }
    end_command(&s, 0);
    AWAIT(&s, s.closed != 0);
    assert_int_equal(s.channels[1].len, wrote);
    assert_true(said(&s, 3, "\"status\":\"Success\""));
    finish(&s);
}

static void test_a_peer_that_is_always_behind_costs_no_more(void **state)
{
    static char block[4096];
    struct scene s;
    size_t wrote = 0;

    start(&s);
    upgrade(&s, "command=x&stdout=1");
    fcntl(s.out, F_SETFL, O_NONBLOCK);
    while (s.channels[1].len < 4 << 20) {
        ssize_t n;
        while ((n = write(s.out, block, sizeof(block))) > 0) {
            wrote += (size_t)n;
        }
        assert_true(hear(&s)); /* only a part of it */
        parse(&s);
        assert_true(s.r.agent->execs.len == 1);
        assert_true(s.r.agent->execs.at[0]->channels.out.cap < 2 << 20);
    }
    assert_true(wrote >= s.channels[1].len);
    finish(&s);
}

/* Sends more input as long as the connection accepts it; false if it accepts nothing. */
static bool pour(struct scene *s, size_t *told)
{
    static const unsigned char mask[4] = {9, 8, 7, 6};
    static char block[4096];

    if (s->poured == s->pouring.len) {
        hk_buf_clear(&s->pouring);
        s->poured = 0;
        ws_write_channel(0, (struct hk_str){block, sizeof(block)}, mask, &s->pouring);
        *told += sizeof(block);
    }
    const ssize_t n = send(s->fd, s->pouring.data + s->poured, s->pouring.len - s->poured,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    s->poured += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static void test_a_command_that_does_not_read_holds_the_peer_up(void **state)
{
    struct scene s;
    size_t told = 0, got = 0;
    char buf[8192];

    start(&s);
    upgrade(&s, "command=x&stdin=1&stdout=1");
    for (int idle = 0; idle < 20; idle++) {
        while (pour(&s, &told)) {
            idle = 0;
        }
        assert_true(told < BOUND);
        turn(&s);
    }
    fcntl(s.in, F_SETFL, O_NONBLOCK);
    for (int left = PATIENCE_TURNS; got < told; left--) {
        const ssize_t n = read(s.in, buf, sizeof(buf));
        got += n > 0 ? (size_t)n : 0;
        assert_true(left > 0);
        turn(&s);
        if (s.poured < s.pouring.len) {
            pour(&s, &told);
        }
    }
    assert_int_equal(got, told);
    finish(&s);
}

static void test_the_command_goes_with_its_client(void **state)
{
    struct scene s;

    start(&s);
    upgrade(&s, "command=x&stdout=1");
    shut(&s.fd);
    for (int left = PATIENCE_TURNS; !strstr(s.r.fake.log.data, "kill exec 15"); left--) {
        assert_true(left > 0);
        turn(&s);
    }
    for (int left = PATIENCE_TURNS; s.r.agent->execs.len > 0; left--) {
        assert_true(left > 0);
        turn(&s);
    }
    finish(&s);
}

static void test_broken_frames_end_it(void **state)
{
    struct scene s;

    start(&s);
    upgrade(&s, "command=x&stdout=1");
    assert_int_equal(send(s.fd, "\xff\x80mask", 6, 0), 6);
    AWAIT(&s, s.closed == WS_CLOSE_PROTOCOL);
    AWAIT(&s, strstr(s.r.fake.log.data, "kill exec 15"));
    finish(&s);
}

/* ---- over SPDY ---- */

#define SPDY                                                                                       \
    "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"                                                 \
    "X-Stream-Protocol-Version: v5.channel.k8s.io\r\n"                                             \
    "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n"

static void add_u32(struct hk_buf *out, uint32_t n)
{
    const char bytes[] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};

    hk_buf_add(out, bytes, sizeof(bytes));
}

static uint32_t u32_at(const struct hk_buf *b, size_t at)
{
    const unsigned char *p = (const unsigned char *)b->data + at;

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void open_stream(struct scene *s, z_stream *z, uint32_t stream, const char *type)
{
    HK_AUTO(hk_buf_fini) struct hk_buf headers = {0}, frame = {0};
    unsigned char packed[256];

    add_u32(&headers, 1);
    add_u32(&headers, 10);
    hk_buf_adds(&headers, "streamtype");
    add_u32(&headers, (uint32_t)strlen(type));
    hk_buf_adds(&headers, type);
    z->next_in = (unsigned char *)headers.data;
    z->avail_in = (uInt)headers.len;
    z->next_out = packed;
    z->avail_out = sizeof(packed);
    assert_int_equal(deflate(z, Z_SYNC_FLUSH), Z_OK);
    add_u32(&frame, 0x80030001);
    add_u32(&frame, (uint32_t)(10 + sizeof(packed) - z->avail_out));
    add_u32(&frame, stream);
    add_u32(&frame, 0);
    hk_buf_add(&frame, "\0\0", 2);
    hk_buf_add(&frame, packed, sizeof(packed) - z->avail_out);
    assert_int_equal(send(s->fd, frame.data, frame.len, MSG_NOSIGNAL), (ssize_t)frame.len);
}

/* Complete frames received: "reply 1\n", "data 3 text\n", "last 3 text\n". */
static void list_frames(struct scene *s, struct hk_buf *out)
{
    while (s->raw.len >= 8 && s->raw.len >= 8 + (u32_at(&s->raw, 4) & 0xffffff)) {
        const uint32_t head = u32_at(&s->raw, 0), n = u32_at(&s->raw, 4) & 0xffffff;

        if (head == 0x80030002) {
            hk_buf_addf(out, "reply %u\n", u32_at(&s->raw, 8));
        } else {
            hk_buf_addf(out, "%s %u %.*s\n", s->raw.data[4] ? "last" : "data", head, (int)n,
                        s->raw.data + 8);
        }
        hk_buf_drop(&s->raw, 8 + n);
    }
}

static void await_frames(struct scene *s, struct hk_buf *got, const char *want)
{
    for (int left = PATIENCE_TURNS; strcmp(hk_buf_str(got).s, want) != 0; left--) {
        if (left == 0) {
            fail_msg("expected '%s', got '%s'", want, hk_buf_str(got).s);
        }
        hear(s);
        list_frames(s, got);
    }
}

static void dial_spdy(struct scene *s, z_stream *z, const char *query)
{
    const char *text;

    *z = (z_stream){0};
    assert_int_equal(deflateInit(z, 6), Z_OK);
    start(s);
    text = answer(s, query, SPDY);
    assert_non_null(strstr(text, " 101 "));
    assert_non_null(strstr(text, "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n"));
    hk_buf_drop(&s->raw, (size_t)(strstr(text, "\r\n\r\n") + 4 - text));
}

static bool has_begun(const struct scene *s)
{
    return strstr(hk_buf_str(&s->r.fake.log).s, "exec");
}

static void await_begin(struct scene *s)
{
    for (int left = PATIENCE_TURNS; !has_begun(s); left--) {
        assert_true(left > 0);
        hear(s);
    }
}

static void test_over_spdy_a_command_begins_when_all_streams_are_open(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
    struct scene s;
    z_stream z;

    dial_spdy(&s, &z, "command=do&stdout=1&stdin=1");
    open_stream(&s, &z, 1, "error");
    await_frames(&s, &got, "reply 1\n");
    open_stream(&s, &z, 3, "stdout");
    await_frames(&s, &got, "reply 1\nreply 3\n");
    assert_false(has_begun(&s));
    open_stream(&s, &z, 5, "stdin");
    await_begin(&s);
    assert_int_equal(write(s.out, "first", 5), 5);
    await_frames(&s, &got, "reply 1\nreply 3\nreply 5\ndata 3 first\n");
    hk_buf_clear(&got);
    end_command(&s, 0);
    await_frames(&s, &got,
                 "data 1 {\"metadata\":{},\"status\":\"Success\"}\nlast 5 \nlast 3 \nlast 1 \n");
    deflateEnd(&z);
    finish(&s);
}

static void test_over_spdy_a_command_that_ends_at_once_has_its_say(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
    struct scene s;
    z_stream z;

    dial_spdy(&s, &z, "command=do&stderr=1");
    open_stream(&s, &z, 1, "error");
    open_stream(&s, &z, 3, "stderr");
    await_begin(&s);
    end_command(&s, 4);
    for (int left = PATIENCE_TURNS; !strstr(hk_buf_str(&got).s, "last 1 "); left--) {
        assert_true(left > 0);
        hear(&s);
        list_frames(&s, &got);
    }
    assert_non_null(strstr(got.data, "last 3 \n"));
    assert_non_null(strstr(got.data, "\"message\":\"4\""));
    deflateEnd(&z);
    finish(&s);
}

static void test_over_spdy_a_peer_that_does_not_open_its_streams_is_left(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
    struct scene s;
    z_stream z;

    dial_spdy(&s, &z, "command=do&stdout=1");
    open_stream(&s, &z, 1, "error");
    await_frames(&s, &got, "reply 1\n");
    net_timer_at(s.r.agent->execs.at[0]->channels.patience, net_loop_now_ns(s.loop));
    while (hear(&s)) {
    }
    assert_int_equal(s.r.agent->execs.len, 0);
    assert_false(has_begun(&s));
    deflateEnd(&z);
    finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_questions_that_cannot_be_answered_say_why),
        cmocka_unit_test(test_a_container_that_does_not_run_has_no_commands),
        cmocka_unit_test(test_streams_and_the_end_arrive),
        cmocka_unit_test(test_a_peer_that_does_not_read_holds_the_command_up),
        cmocka_unit_test(test_a_peer_that_is_always_behind_costs_no_more),
        cmocka_unit_test(test_a_command_that_does_not_read_holds_the_peer_up),
        cmocka_unit_test(test_the_command_goes_with_its_client),
        cmocka_unit_test(test_broken_frames_end_it),
        cmocka_unit_test(test_over_spdy_a_command_begins_when_all_streams_are_open),
        cmocka_unit_test(test_over_spdy_a_command_that_ends_at_once_has_its_say),
        cmocka_unit_test(test_over_spdy_a_peer_that_does_not_open_its_streams_is_left),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
