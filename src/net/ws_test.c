// SPDX-License-Identifier: Apache-2.0
// WebSocket frames: valid and invalid ones, in pieces of any size.
#include "net/ws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The reader's output for the bytes, given `part` at a time: "binary[first last]:text " for each
 * piece, pieces of one message joined; "!code" after a failure. */
static void told(bool server, const void *bytes, size_t n, size_t part, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf copy = {0};
    struct ws_reader r = {.server = server, .max_frame = 1000};
    struct ws_piece p;
    struct hk_err err = {0};

    hk_buf_add(&copy, bytes, n);
    hk_buf_clear(out);
    for (size_t at = 0; at < n; at += part) {
        char *in = copy.data + at;
        size_t left = HK_MIN(part, n - at);
        int rc;
        while ((rc = ws_read(&r, &in, &left, &p, &err)) > 0) {
            if (p.first) {
                hk_buf_addf(out, "%d:", p.op);
            }
            hk_buf_addstr(out, p.bytes);
            hk_buf_adds(out, p.last ? "|" : "");
        }
        if (rc < 0) {
            hk_buf_addf(out, "!%d", r.close_code);
            return;
        }
        assert_int_equal(left, 0);
    }
}

static void test_frames_are_decoded_however_they_are_split(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        bool server;
        const char *want;
    } cases[] = {
#define CASE(server, lit, want) {lit, sizeof(lit) - 1, server, want}
        CASE(true, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", "1:Hello|"), /* as in the RFC */
        CASE(false, "\x81\x05Hello", "1:Hello|"),
        CASE(false, "\x02\x03Hel\x80\x02lo", "2:Hello|"),
        CASE(false, "\x02\x00\x00\x00\x80\x00", "2:|"),
        CASE(false, "\x82\x00", "2:|"),
        CASE(false, "\x89\x02hi\x88\x02\x03\xe8", "9:hi|8:\x03\xe8|"),
        /* A ping inside a message; lengths encoded longer than necessary. */
        CASE(false,
             "\x82\x7e\x00\x03"
             "abc\x8a\x00",
             "2:abc|10:|"),
        CASE(false, "\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x01z", "2:z|"),
        CASE(true, "\x81\x05Hello", "!1002"),             /* not masked */
        CASE(false, "\x81\x80\x01\x02\x03\x04", "!1002"), /* masked */
        CASE(false, "\xc1\x00", "!1002"),                 /* reserved bit */
        CASE(false, "\x83\x00", "!1002"),                 /* unknown data opcode */
        CASE(false, "\x8b\x00", "!1002"),                 /* unknown control opcode */
        CASE(false, "\x09\x00", "!1002"),                 /* fragmented control frame */
        CASE(false, "\x89\x7e\x00\x80", "!1002"),         /* control too long */
        CASE(false, "\x80\x00", "!1002"),                 /* continuation without a message */
        CASE(false,
             "\x02\x01"
             "a\x81\x00",
             "2:a!1002"),                         /* starts another message */
        CASE(false, "\x82\x7e\x10\x00", "!1009"), /* too long */
        CASE(false, "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", "!1009"),
#undef CASE
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        for (size_t part = 1; part <= cases[k].n; part++) {
            HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
            told(cases[k].server, cases[k].bytes, cases[k].n, part, &got);
            assert_string_equal(hk_buf_str(&got).s, cases[k].want);
        }
    }
}

static void test_a_ping_may_come_between_pieces(void **state)
{
    static const char bytes[] = "\x02\x01"
                                "a"
                                "\x89\x01"
                                "p"
                                "\x80\x01"
                                "b";
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};

    told(false, bytes, sizeof(bytes) - 1, 3, &got);
    assert_string_equal(got.data, "2:a9:p|b|");
}

static void test_written_text_can_be_parsed(void **state)
{
    static const unsigned char mask[4] = {1, 2, 3, 250};
    static const size_t sizes[] = {0, 1, 124, 125, 126, 127, 999};
    char text[1000];

    memset(text, 'x', sizeof(text));
    for (size_t k = 0; k < HK_LEN(sizes); k++) {
        for (int server = 0; server < 2; server++) {
            HK_AUTO(hk_buf_fini) struct hk_buf out = {0}, got = {0};
            ws_write_channel('7', (struct hk_str){text, sizes[k]}, server ? mask : NULL, &out);
            told(server, out.data, out.len, 50, &got);
            assert_int_equal(got.len, 2 + 1 + sizes[k] + 1);
            assert_memory_equal(got.data, "2:7", 3);
        }
    }
}

static void test_a_large_frame_has_a_long_head(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, out = {0};

    hk_buf_reserve(&text, 70000);
    memset(text.data, 'y', 70000);
    text.len = 70000;
    ws_write(WS_BINARY, hk_buf_str(&text), NULL, &out);
    assert_int_equal(out.len, 70010);
    assert_memory_equal(out.data, "\x82\x7f\0\0\0\0\0\x01\x11\x70", 10);
}

static void test_a_close_frame_has_code_and_reason(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    char why[300];

    memset(why, 'z', sizeof(why));
    ws_write_close(WS_CLOSE_TOO_LARGE, (struct hk_str){why, sizeof(why)}, NULL, &out);
    assert_int_equal(out.len, 2 + WS_CONTROL_MAX);
    assert_int_equal(ws_close_code((struct hk_str){out.data + 2, out.len - 2}), WS_CLOSE_TOO_LARGE);
    assert_int_equal(ws_close_code(HK_STR("")), WS_CLOSE_NORMAL);
}

static void test_the_handshake_is_that_of_the_rfc(void **state)
{
    static const unsigned char random[16] = "the sample nonce";
    char accept[WS_ACCEPT_BYTES + 1], key[WS_KEY_BYTES + 1];

    ws_key(random, key);
    assert_string_equal(key, "dGhlIHNhbXBsZSBub25jZQ==");
    ws_accept(hk_str(key), accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_true(ws_header_has(HK_STR("keep-alive, Upgrade"), "upgrade"));
    assert_false(ws_header_has(HK_STR("upgraded"), "upgrade"));
    assert_false(ws_header_has(HK_STR(""), "upgrade"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_are_decoded_however_they_are_split),
        cmocka_unit_test(test_a_ping_may_come_between_pieces),
        cmocka_unit_test(test_written_text_can_be_parsed),
        cmocka_unit_test(test_a_large_frame_has_a_long_head),
        cmocka_unit_test(test_a_close_frame_has_code_and_reason),
        cmocka_unit_test(test_the_handshake_is_that_of_the_rfc),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
