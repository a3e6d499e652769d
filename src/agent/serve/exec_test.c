// SPDX-License-Identifier: Apache-2.0
// Commands and their channels over a real connection: the test is both the client and the command.
#include "agent/serve/rig_test.h"

#include <zlib.h>

enum { BOUND = 16 << 20 /* more than pipes, sockets and buffers hold */ };

static void start(struct scene *s)
{
    start_with(s, "exec", "");
}

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
    s.r.agent->pods.active.at[0]->containers[0].state = CONTAINER_WAITING;
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
        assert_true(s.r.agent->serve.sessions.len == 1);
        assert_true(s.r.agent->serve.sessions.at[0]->channels.out.cap < 2 << 20);
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
    for (int left = PATIENCE_TURNS; s.r.agent->serve.sessions.len > 0; left--) {
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
    net_timer_at(s.r.agent->serve.sessions.at[0]->channels.patience, net_loop_now_ns(s.loop));
    while (hear(&s)) {
    }
    assert_int_equal(s.r.agent->serve.sessions.len, 0);
    assert_false(has_begun(&s));
    deflateEnd(&z);
    finish(&s);
}

static void test_over_spdy_pings_of_a_peer_that_does_not_read_are_bounded(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf ping = {0};
    struct scene s;
    size_t sent = 0;
    z_stream z;

    dial_spdy(&s, &z, "command=do&stdout=1");
    add_u32(&ping, 0x80030006);
    add_u32(&ping, 4);
    add_u32(&ping, 1);
    for (int idle = 0; idle < 20; idle++) {
        ssize_t n;
        while ((n = send(s.fd, ping.data + sent % ping.len, ping.len - sent % ping.len,
                         MSG_DONTWAIT)) > 0) {
            sent += (size_t)n;
            idle = 0;
        }
        assert_true(sent < BOUND);
        turn(&s);
    }
    assert_true(s.r.agent->serve.sessions.at[0]->channels.out.cap < 1 << 20);
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
        cmocka_unit_test(test_over_spdy_pings_of_a_peer_that_does_not_read_are_bounded),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
