// SPDX-License-Identifier: Apache-2.0
// Forwarded ports over a real connection: the test is both the client and the program in the pod.
#include "agent/serve/port_forward.c"

#include "agent/serve/rig_test.h"

#include <zlib.h>

#define SPDY                                                                                       \
    "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"                                                 \
    "X-Stream-Protocol-Version: portforward.k8s.io\r\n"
#define CHANNELS UPGRADE "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n"
#define TUNNEL UPGRADE "Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n"

enum { BOUND = 16 << 20 /* more than sockets and buffers hold */ };

struct forward_rig {
    struct scene s;
    z_stream z;
    bool tunnel;           /* SPDY in a WebSocket */
    int listener, program; /* of the pod; -1: none */
    uint16_t port;
    struct hk_buf spdy; /* received SPDY, not yet listed */
    struct hk_buf got;  /* "reply 1\n", "data 3 text\n", "last 3 text\n", "reset 5\n" */
};

static uint16_t listening_port; /* the runtime's table has no context pointer for tests */

static int find_test_listener(struct runtime *rt, const char *uid, const char *address,
                              uint16_t port, struct runtime_listener *inout, struct hk_err *err)
{
    if (port != listening_port) {
        return hk_fail(err, HK_ENOTFOUND, "nothing listens");
    }
    *inout = (struct runtime_listener){.address = "127.0.0.1", .inode = 1};
    return 0;
}

static void begin(struct forward_rig *r)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);

    *r = (struct forward_rig){.program = -1};
    start_with(&r->s, "portforward", "");
    r->s.ops.find_listener = find_test_listener;
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(r->listener, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(r->listener, 8), 0);
    getsockname(r->listener, (struct sockaddr *)&at, &n);
    r->port = listening_port = ntohs(at.sin_port);
    assert_int_equal(deflateInit(&r->z, 6), Z_OK);
}

static void end(struct forward_rig *r)
{
    finish(&r->s);
    shut(&r->listener);
    shut(&r->program);
    deflateEnd(&r->z);
    hk_buf_fini(&r->spdy);
    hk_buf_fini(&r->got);
}

static uint32_t clients(const struct forward_rig *r)
{
    return r->s.r.agent->serve.forwards.len;
}

#define UNTIL(r, cond)                                                                             \
    for (int left_ = PATIENCE_TURNS; !(cond); left_--) {                                           \
        assert_true(left_ > 0);                                                                    \
        turn(&(r)->s);                                                                             \
    }

static void accept_program(struct forward_rig *r)
{
    shut(&r->program);
    UNTIL(r, (r->program = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
}

static void await_read(struct forward_rig *r, const char *want)
{
    char buf[64] = "";
    size_t n = 0;

    UNTIL(r, n >= strlen(want) || ({
                 const ssize_t part = read(r->program, buf + n, sizeof(buf) - 1 - n);
                 n += part > 0 ? (size_t)part : 0;
                 n >= strlen(want);
             }));
    assert_string_equal(buf, want);
}

static void await_end(struct forward_rig *r)
{
    char c;

    UNTIL(r, read(r->program, &c, 1) == 0);
}

/* ---- a client that speaks SPDY ---- */

static void add_u32(struct hk_buf *out, uint32_t n)
{
    const unsigned char bytes[] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                   (unsigned char)(n >> 8), (unsigned char)n};

    hk_buf_add(out, bytes, sizeof(bytes));
}

static uint32_t u32_at(const struct hk_buf *b, size_t at)
{
    const unsigned char *p = (const unsigned char *)b->data + at;

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void send_spdy(struct forward_rig *r, struct hk_str bytes)
{
    static const unsigned char mask[4] = {9, 8, 7, 6};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    if (r->tunnel) {
        ws_write(WS_BINARY, bytes, mask, &out);
        bytes = hk_buf_str(&out);
    }
    assert_int_equal(send(r->s.fd, bytes.s, bytes.n, MSG_NOSIGNAL), (ssize_t)bytes.n);
}

/* headers: "key=value key=value". */
static void open_stream(struct forward_rig *r, uint32_t stream, const char *headers)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, frame = {0};
    struct hk_str rest = hk_str(headers), value, key;
    unsigned char packed[512];
    uint32_t n = 0;

    while (hk_str_cut(&rest, ' ', &value)) {
        hk_str_cut(&value, '=', &key);
        add_u32(&text, (uint32_t)key.n);
        hk_buf_addstr(&text, key);
        add_u32(&text, (uint32_t)value.n);
        hk_buf_addstr(&text, value);
        n++;
    }
    HK_AUTO(hk_buf_fini) struct hk_buf all = {0};
    add_u32(&all, n);
    hk_buf_addstr(&all, hk_buf_str(&text));
    r->z.next_in = (unsigned char *)all.data;
    r->z.avail_in = (uInt)all.len;
    r->z.next_out = packed;
    r->z.avail_out = sizeof(packed);
    assert_int_equal(deflate(&r->z, Z_SYNC_FLUSH), Z_OK);
    add_u32(&frame, 0x80030001);
    add_u32(&frame, (uint32_t)(10 + sizeof(packed) - r->z.avail_out));
    add_u32(&frame, stream);
    add_u32(&frame, 0);
    hk_buf_add(&frame, "\0\0", 2);
    hk_buf_add(&frame, packed, sizeof(packed) - r->z.avail_out);
    send_spdy(r, hk_buf_str(&frame));
}

static void send_data(struct forward_rig *r, uint32_t stream, const char *text, bool last)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    spdy_write(stream, hk_str(text), last, &out);
    send_spdy(r, hk_buf_str(&out));
}

static void open_pair(struct forward_rig *r, uint32_t error, uint32_t data, const char *id,
                      uint16_t port)
{
    char headers[128];

    snprintf(headers, sizeof(headers), "streamtype=error port=%u requestid=%s", port, id);
    open_stream(r, error, headers);
    snprintf(headers, sizeof(headers), "streamtype=data port=%u requestid=%s", port, id);
    open_stream(r, data, headers);
}

static void receive_spdy(struct forward_rig *r)
{
    struct ws_piece p;
    struct hk_err err = {0};
    char *in = r->s.raw.data;
    size_t n = r->s.raw.len;

    while (r->tunnel && n > 0 && ws_read(&r->s.reader, &in, &n, &p, &err) > 0) {
        if (p.op == WS_CLOSE) {
            r->s.closed = ws_close_code(p.bytes);
        } else {
            assert_int_equal(p.op, WS_BINARY);
            hk_buf_addstr(&r->spdy, p.bytes);
        }
    }
    if (!r->tunnel) {
        hk_buf_addstr(&r->spdy, hk_buf_str(&r->s.raw));
    }
    hk_buf_clear(&r->s.raw);
}

static void list_frames(struct forward_rig *r)
{
    struct hk_buf *b = &r->spdy;

    while (b->len >= 8 && b->len >= 8 + (u32_at(b, 4) & 0xffffff)) {
        const uint32_t head = u32_at(b, 0), n = u32_at(b, 4) & 0xffffff;

        if (head == 0x80030002) {
            hk_buf_addf(&r->got, "reply %u\n", u32_at(b, 8));
        } else if (head == 0x80030003) {
            hk_buf_addf(&r->got, "reset %u\n", u32_at(b, 8));
        } else if (head != 0x80030006) {
            hk_buf_addf(&r->got, "%s %u %.*s\n", b->data[4] ? "last" : "data", head, (int)n,
                        b->data + 8);
        }
        hk_buf_drop(b, 8 + n);
    }
}

static bool receive(struct forward_rig *r)
{
    const bool there = hear(&r->s);

    receive_spdy(r);
    list_frames(r);
    return there;
}

static void await_frames(struct forward_rig *r, const char *want)
{
    for (int left = PATIENCE_TURNS; strcmp(hk_buf_str(&r->got).s, want) != 0; left--) {
        if (left == 0) {
            fail_msg("expected '%s', got '%s'", want, hk_buf_str(&r->got).s);
        }
        receive(r);
    }
    hk_buf_clear(&r->got);
}

static void begin_spdy(struct forward_rig *r, bool tunnel)
{
    begin(r);
    const char *text = answer(&r->s, "", tunnel ? TUNNEL : SPDY);
    assert_non_null(strstr(text, " 101 "));
    assert_non_null(strstr(text, tunnel ? "Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n"
                                        : "X-Stream-Protocol-Version: portforward.k8s.io\r\n"));
    hk_buf_drop(&r->s.raw, (size_t)(strstr(text, "\r\n\r\n") + 4 - text));
    r->tunnel = tunnel;
}

/* ---- requests ---- */

static void test_requests_that_cannot_be_served_say_why(void **state)
{
    static const struct {
        const char *query, *headers, *want;
    } cases[] = {
        {"", "", "Upgrade request required"},
        {"", CHANNELS, "query parameter \\\"ports\\\" is required"},
        {"ports=", CHANNELS, "query parameter \\\"ports\\\" cannot be empty"},
        {"ports=80,x", CHANNELS, "unable to parse \\\"x\\\" as a port"},
        {"ports=0", CHANNELS, "unable to parse \\\"0\\\" as a port"},
        {"ports=65536", CHANNELS, "unable to parse \\\"65536\\\" as a port"},
        {"ports=80", UPGRADE "Sec-WebSocket-Protocol: v9.channel.k8s.io\r\n",
         "unable to negotiate protocol"},
        {"", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n", "unable to negotiate protocol"},
        {"", "Connection: Upgrade\r\nUpgrade: websocket\r\n", "needs version 13"},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct forward_rig r;
        begin(&r);
        const char *text = answer(&r.s, cases[k].query, cases[k].headers);
        assert_non_null(strstr(text, " 400 "));
        assert_non_null(strstr(text, cases[k].want));
        assert_int_equal(clients(&r), 0);
        end(&r);
    }
}

static void test_a_pod_that_is_over_has_no_ports(void **state)
{
    struct forward_rig r;

    begin(&r);
    r.s.r.agent->pods.active.at[0]->stage = POD_ENDED;
    assert_non_null(strstr(answer(&r.s, "", TUNNEL), "pod a is not running"));
    end(&r);
}

/* ---- channels ---- */

static void begin_channels(struct forward_rig *r, const char *more)
{
    char query[64];

    begin(r);
    snprintf(query, sizeof(query), "ports=%u%s", r->port, more);
    const char *text = answer(&r->s, query, CHANNELS);
    assert_non_null(strstr(text, " 101 "));
    hk_buf_drop(&r->s.raw, (size_t)(strstr(text, "\r\n\r\n") + 4 - text));
}

static void test_channels_begin_with_their_ports_and_carry_data(void **state)
{
    struct forward_rig r;

    begin_channels(&r, "");
    accept_program(&r);
    AWAIT(&r.s, r.s.channels[0].len == 2 && r.s.channels[1].len == 2);
    for (int k = 0; k < 2; k++) {
        const unsigned char *bytes = (const unsigned char *)r.s.channels[k].data;
        assert_int_equal(bytes[0] | bytes[1] << 8, r.port);
        hk_buf_clear(&r.s.channels[k]);
    }
    tell(&r.s, 0, HK_STR("hello"));
    await_read(&r, "hello");
    assert_int_equal(write(r.program, "to you", 6), 6);
    AWAIT(&r.s, said(&r.s, 0, "to you"));
    shut(&r.program);
    AWAIT(&r.s, r.s.closed == WS_CLOSE_NORMAL);
    assert_int_equal(r.s.channels[1].len, 0);
    end(&r);
}

static void test_a_port_without_a_listener_has_an_error(void **state)
{
    struct forward_rig r;

    begin_channels(&r, "&ports=1");
    accept_program(&r);
    AWAIT(&r.s, said(&r.s, 3, "error forwarding port 1 to pod a, uid ") &&
                    said(&r.s, 3, ":1: connect: connection refused"));
    assert_int_equal(r.s.closed, 0); /* the other port goes on */
    tell(&r.s, 0, HK_STR("on"));
    await_read(&r, "on");
    shut(&r.program);
    AWAIT(&r.s, r.s.closed == WS_CLOSE_NORMAL);
    end(&r);
}

static void test_a_channel_can_be_ended_in_the_newer_protocol(void **state)
{
    struct forward_rig r;
    char query[64];

    begin(&r);
    snprintf(query, sizeof(query), "ports=%u", r.port);
    const char *text = answer(&r.s, query, V5);
    assert_non_null(strstr(text, "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n"));
    hk_buf_drop(&r.s.raw, (size_t)(strstr(text, "\r\n\r\n") + 4 - text));
    accept_program(&r);
    tell(&r.s, 0, HK_STR("all"));
    tell(&r.s, 255, (struct hk_str){"\0", 1});
    await_read(&r, "all");
    await_end(&r);
    assert_int_equal(write(r.program, "bye", 3), 3);
    AWAIT(&r.s, said(&r.s, 0, "bye"));
    end(&r);
}

/* ---- SPDY ---- */

static void test_a_pair_of_streams_is_a_connection(void **state)
{
    for (int tunnel = 0; tunnel < 2; tunnel++) {
        struct forward_rig r;

        begin_spdy(&r, tunnel);
        open_pair(&r, 1, 3, "0", r.port);
        send_data(&r, 1, "", true); /* kubectl ends the error stream at once */
        accept_program(&r);
        await_frames(&r, "reply 1\nreply 3\n");
        send_data(&r, 3, "hello", false);
        await_read(&r, "hello");
        send_data(&r, 3, "", true);
        await_end(&r);
        /* The program may answer after the client's end. */
        assert_int_equal(write(r.program, "bye", 3), 3);
        await_frames(&r, "data 3 bye\n");
        shut(&r.program);
        await_frames(&r, "last 1 \nlast 3 \n");
        assert_int_equal(r.s.r.agent->serve.nforward, 0);
        assert_int_equal(clients(&r), 1);
        end(&r);
    }
}

static void test_connections_follow_each_other(void **state)
{
    struct forward_rig r;

    begin_spdy(&r, true);
    for (uint32_t k = 0; k < 5; k++) {
        char id[8], want[64];

        snprintf(id, sizeof(id), "%u", k);
        open_pair(&r, 4 * k + 1, 4 * k + 3, id, r.port);
        accept_program(&r);
        shut(&r.program);
        snprintf(want, sizeof(want), "reply %u\nreply %u\nlast %u \nlast %u \n", 4 * k + 1,
                 4 * k + 3, 4 * k + 1, 4 * k + 3);
        await_frames(&r, want);
        send_data(&r, 4 * k + 3, "", true);
        UNTIL(&r, r.s.r.agent->serve.nforward == 0);
    }
    end(&r);
}

static void test_clients_without_request_ids_are_understood(void **state)
{
    struct forward_rig r;
    char headers[64];

    begin_spdy(&r, false);
    snprintf(headers, sizeof(headers), "streamtype=error port=%u", r.port);
    open_stream(&r, 1, headers);
    snprintf(headers, sizeof(headers), "streamtype=data port=%u", r.port);
    open_stream(&r, 3, headers);
    accept_program(&r);
    end(&r);
}

static void test_a_refused_connection_has_its_error(void **state)
{
    struct forward_rig r;

    begin_spdy(&r, true);
    open_pair(&r, 1, 3, "0", 9);
    for (int left = PATIENCE_TURNS; !strstr(hk_buf_str(&r.got).s, "last 3"); left--) {
        assert_true(left > 0);
        receive(&r);
    }
    assert_non_null(strstr(r.got.data, "last 1 error forwarding port 9 to pod a, uid "));
    assert_non_null(strstr(r.got.data, ":9: connect: connection refused"));
    assert_int_equal(r.s.r.agent->serve.nforward, 0);
    end(&r);
}

static void test_a_listener_that_has_gone_is_an_error(void **state)
{
    struct forward_rig r;

    begin_spdy(&r, true);
    shut(&r.listener);
    open_pair(&r, 1, 3, "0", r.port);
    for (int left = PATIENCE_TURNS; !strstr(hk_buf_str(&r.got).s, "last 3"); left--) {
        assert_true(left > 0);
        receive(&r);
    }
    assert_non_null(strstr(r.got.data, ": dial tcp4 127.0.0.1:"));
    assert_non_null(strstr(r.got.data, ": connect: connection refused\n"));
    end(&r);
}

static void test_bad_streams_are_cancelled(void **state)
{
    static const char *const bad[] = {"streamtype=data requestid=7",
                                      "streamtype=data port=0 requestid=7",
                                      "streamtype=data port=70000 requestid=7",
                                      "streamtype=other port=80 requestid=7",
                                      "port=80 requestid=7",
                                      "streamtype=data port=8x requestid=7"};
    struct forward_rig r;

    begin_spdy(&r, true);
    for (uint32_t k = 0; k < HK_LEN(bad); k++) {
        char want[64];

        open_stream(&r, 2 * k + 1, bad[k]);
        snprintf(want, sizeof(want), "reply %u\nreset %u\n", 2 * k + 1, 2 * k + 1);
        await_frames(&r, want);
    }
    open_stream(&r, 21, "streamtype=error port=80 requestid=8");
    open_stream(&r, 23, "streamtype=error port=80 requestid=8"); /* its place is taken */
    open_stream(&r, 21, "streamtype=error port=80 requestid=9"); /* its number is taken */
    await_frames(&r, "reply 21\nreply 23\nreset 23\nreply 21\nreset 21\n");
    assert_int_equal(r.s.r.agent->serve.nforward, 1);
    end(&r);
}

static void test_too_many_connections_are_cancelled(void **state)
{
    struct forward_rig r;
    char headers[64];

    begin_spdy(&r, false);
    for (uint32_t k = 0; k <= FORWARDS_MAX; k++) {
        snprintf(headers, sizeof(headers), "streamtype=error port=80 requestid=%u", k);
        open_stream(&r, 2 * k + 1, headers);
        turn(&r.s);
    }
    snprintf(headers, sizeof(headers), "reset %u\n", 2 * FORWARDS_MAX + 1);
    for (int left = PATIENCE_TURNS; !strstr(hk_buf_str(&r.got).s, headers); left--) {
        assert_true(left > 0);
        receive(&r);
    }
    assert_int_equal(r.s.r.agent->serve.nforward, FORWARDS_MAX);
    end(&r);
}

static void test_a_stream_that_stays_alone_is_given_up(void **state)
{
    struct forward_rig r;

    begin_spdy(&r, true);
    open_stream(&r, 1, "streamtype=error port=80 requestid=1");
    await_frames(&r, "reply 1\n");
    struct port_forward *c = r.s.r.agent->serve.forwards.at[0];
    c->all.at[0]->patience_ns = 1;
    port_forward_on_timer(c);
    await_frames(&r, "reset 1\n");
    assert_int_equal(r.s.r.agent->serve.nforward, 0);
    end(&r);
}

static void test_a_cancelled_stream_ends_the_connection(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct forward_rig r;

    begin_spdy(&r, true);
    open_pair(&r, 1, 3, "0", r.port);
    accept_program(&r);
    await_frames(&r, "reply 1\nreply 3\n");
    spdy_write_reset(3, &out);
    send_spdy(&r, hk_buf_str(&out));
    await_end(&r);
    await_frames(&r, "last 1 \nlast 3 \n"); /* kubectl waits for the error */
    assert_int_equal(r.s.r.agent->serve.nforward, 0);
    end(&r);
}

/* ---- slow and hostile peers ---- */

static void test_a_client_that_does_not_read_holds_the_program_up(void **state)
{
    static char block[4096];
    struct forward_rig r;
    size_t wrote = 0;

    memset(block, 'x', sizeof(block));
    begin_spdy(&r, true);
    open_pair(&r, 1, 3, "0", r.port);
    accept_program(&r);
    await_frames(&r, "reply 1\nreply 3\n");
    for (int idle = 0; idle < 20; idle++) {
        ssize_t n;
        while ((n = write(r.program, block, sizeof(block))) > 0) {
            wrote += (size_t)n;
            idle = 0;
        }
        assert_true(wrote < BOUND);
        turn(&r.s);
    }
    assert_true(r.s.r.agent->serve.forwards.at[0]->wire.out.cap < 2 << 20);
    shut(&r.program);
    size_t got = 0;
    for (int left = PATIENCE_TURNS; got < wrote; left--) {
        assert_true(left > 0);
        receive(&r);
        for (size_t k = 0; k < r.got.len; k++) {
            got += r.got.data[k] == 'x';
        }
        hk_buf_clear(&r.got);
    }
    end(&r);
}

static void test_a_program_that_does_not_read_holds_the_client_up(void **state)
{
    static char block[4096];
    HK_AUTO(hk_buf_fini) struct hk_buf frame = {0};
    struct forward_rig r;
    size_t sent = 0, at = 0;

    begin_spdy(&r, false);
    open_pair(&r, 1, 3, "0", r.port);
    accept_program(&r);
    await_frames(&r, "reply 1\nreply 3\n");
    spdy_write(3, (struct hk_str){block, sizeof(block)}, false, &frame);
    for (int idle = 0; idle < 20; idle++) {
        ssize_t n;
        while ((n = send(r.s.fd, frame.data + at, frame.len - at, MSG_DONTWAIT)) > 0) {
            sent += (size_t)n;
            at = (at + (size_t)n) % frame.len;
            idle = 0;
        }
        assert_true(sent < BOUND);
        turn(&r.s);
    }
    const struct port_forward *c = r.s.r.agent->serve.forwards.at[0];
    assert_true(c->paused);
    assert_true(c->all.at[0]->waiting.cap < 2 << 20);
    shut(&r.program); /* discards what waits */
    UNTIL(&r, !c->paused);
    end(&r);
}

static void test_pings_of_a_client_that_does_not_read_are_bounded(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf ping = {0};
    struct forward_rig r;
    size_t sent = 0;

    begin_spdy(&r, false);
    add_u32(&ping, 0x80030006);
    add_u32(&ping, 4);
    add_u32(&ping, 1);
    for (int idle = 0; idle < 20; idle++) {
        ssize_t n;
        while ((n = send(r.s.fd, ping.data + sent % ping.len, ping.len - sent % ping.len,
                         MSG_DONTWAIT)) > 0) {
            sent += (size_t)n;
            idle = 0;
        }
        assert_true(sent < BOUND);
        turn(&r.s);
    }
    assert_true(r.s.r.agent->serve.forwards.at[0]->wire.out.cap < 1 << 20);
    end(&r);
}

static void test_invalid_bytes_end_the_client(void **state)
{
    for (int tunnel = 0; tunnel < 2; tunnel++) {
        struct forward_rig r;

        begin_spdy(&r, tunnel);
        open_pair(&r, 1, 3, "0", r.port);
        accept_program(&r);
        await_frames(&r, "reply 1\nreply 3\n");
        send_spdy(&r, (struct hk_str){"\x80\x09\0\1\0\0\0\0 and more", 17});
        await_end(&r);
        assert_int_equal(clients(&r), 0);
        end(&r);
    }
}

static void test_a_client_that_leaves_takes_its_connections_along(void **state)
{
    struct forward_rig r;

    begin_spdy(&r, true);
    open_pair(&r, 1, 3, "0", r.port);
    accept_program(&r);
    shut(&r.s.fd);
    await_end(&r);
    assert_int_equal(clients(&r), 0);
    assert_int_equal(r.s.r.agent->serve.nforward, 0);
    end(&r);
}

static void test_a_client_is_told_when_its_pod_ends(void **state)
{
    for (int tunnel = 0; tunnel < 2; tunnel++) {
        struct forward_rig r;

        begin_spdy(&r, tunnel);
        r.s.r.agent->pods.active.at[0]->stage = POD_ENDED;
        for (int left = PATIENCE_TURNS; r.s.closed == 0 && receive(&r); left--) {
            assert_true(left > 0);
        }
        assert_int_equal(r.s.closed, tunnel ? WS_CLOSE_NORMAL : 0);
        shut(&r.s.fd);
        UNTIL(&r, clients(&r) == 0);
        end(&r);
    }
}

static void test_the_last_words_of_a_pod_arrive(void **state)
{
    for (int tunnel = 0; tunnel < 2; tunnel++) {
        struct forward_rig r;

        begin_spdy(&r, tunnel);
        open_pair(&r, 1, 3, "0", r.port);
        open_stream(&r, 5, "streamtype=error port=80 requestid=5"); /* the second never comes */
        accept_program(&r);
        await_frames(&r, "reply 1\nreply 3\nreply 5\n");
        assert_int_equal(write(r.program, "last", 4), 4);
        r.s.r.agent->pods.active.at[0]->stage = POD_ENDED;
        port_forward_tick(&r.s.r.agent->serve);
        shut(&r.program);
        await_frames(&r, "data 3 last\nlast 1 \nlast 3 \n");
        for (int left = PATIENCE_TURNS; r.s.closed == 0 && receive(&r); left--) {
            assert_true(left > 0);
        }
        assert_int_equal(r.s.r.agent->serve.nforward, 0);
        end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_that_cannot_be_served_say_why),
        cmocka_unit_test(test_a_pod_that_is_over_has_no_ports),
        cmocka_unit_test(test_channels_begin_with_their_ports_and_carry_data),
        cmocka_unit_test(test_a_port_without_a_listener_has_an_error),
        cmocka_unit_test(test_a_channel_can_be_ended_in_the_newer_protocol),
        cmocka_unit_test(test_a_pair_of_streams_is_a_connection),
        cmocka_unit_test(test_connections_follow_each_other),
        cmocka_unit_test(test_clients_without_request_ids_are_understood),
        cmocka_unit_test(test_a_refused_connection_has_its_error),
        cmocka_unit_test(test_a_listener_that_has_gone_is_an_error),
        cmocka_unit_test(test_bad_streams_are_cancelled),
        cmocka_unit_test(test_too_many_connections_are_cancelled),
        cmocka_unit_test(test_a_stream_that_stays_alone_is_given_up),
        cmocka_unit_test(test_a_cancelled_stream_ends_the_connection),
        cmocka_unit_test(test_a_client_that_does_not_read_holds_the_program_up),
        cmocka_unit_test(test_a_program_that_does_not_read_holds_the_client_up),
        cmocka_unit_test(test_pings_of_a_client_that_does_not_read_are_bounded),
        cmocka_unit_test(test_invalid_bytes_end_the_client),
        cmocka_unit_test(test_a_client_that_leaves_takes_its_connections_along),
        cmocka_unit_test(test_a_client_is_told_when_its_pod_ends),
        cmocka_unit_test(test_the_last_words_of_a_pod_arrive),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
