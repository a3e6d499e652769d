// SPDX-License-Identifier: Apache-2.0
// SPDY from the peer's side: streams with compressed headers, data in any pieces, and invalid
// frames.
#include "net/spdy.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct peer {
    struct spdy *spdy;
    struct hk_buf sent;   /* sent by the peer, not yet read */
    struct hk_buf told;   /* "open 1 stdin\n", "data 1 abc\n", "end 1\n" */
    struct hk_buf answer; /* to the peer */
    z_stream deflate, inflate;
};

static void begin(struct peer *p, bool with_dictionary)
{
    HK_AUTO(hk_buf_fini) struct hk_buf all = {0};

    *p = (struct peer){.spdy = spdy_new()};
    assert_int_equal(deflateInit(&p->deflate, 9), Z_OK);
    assert_int_equal(inflateInit(&p->inflate), Z_OK);
    if (with_dictionary) {
        write_dictionary(&all);
        assert_int_equal(
            deflateSetDictionary(&p->deflate, (const unsigned char *)all.data, (uInt)all.len),
            Z_OK);
    }
}

static void finish(struct peer *p)
{
    spdy_free(p->spdy);
    deflateEnd(&p->deflate);
    inflateEnd(&p->inflate);
    hk_buf_fini(&p->sent);
    hk_buf_fini(&p->told);
    hk_buf_fini(&p->answer);
}

static void add_text(struct hk_buf *out, const char *text)
{
    add_u32(out, (uint32_t)strlen(text));
    hk_buf_adds(out, text);
}

static void pack(struct peer *p, const struct hk_buf *text, struct hk_buf *out)
{
    unsigned char part[1024];

    p->deflate.next_in = (unsigned char *)text->data;
    p->deflate.avail_in = (uInt)text->len;
    do {
        p->deflate.next_out = part;
        p->deflate.avail_out = sizeof(part);
        assert_int_equal(deflate(&p->deflate, Z_SYNC_FLUSH), Z_OK);
        hk_buf_add(out, part, sizeof(part) - p->deflate.avail_out);
    } while (p->deflate.avail_out == 0);
}

static void open_one(struct peer *p, uint32_t stream, const char *type, uint8_t fin)
{
    HK_AUTO(hk_buf_fini) struct hk_buf headers = {0}, packed = {0};

    add_u32(&headers, 2);
    add_text(&headers, "content-type");
    add_text(&headers, "any");
    add_text(&headers, "streamtype");
    add_text(&headers, type);
    pack(p, &headers, &packed);
    add_u32(&p->sent, 0x80030001);
    add_u32(&p->sent, (uint32_t)fin << 24 | (uint32_t)(packed.len + 10));
    add_u32(&p->sent, stream);
    add_u32(&p->sent, 0);
    hk_buf_add(&p->sent, "\0\0", 2);
    hk_buf_addstr(&p->sent, hk_buf_str(&packed));
}

/* Reads what was sent, `pieces` bytes at a time; returns the result. */
static int take_all(struct peer *p, size_t pieces, struct hk_err *err)
{
    static const char *const names[] = {"open", "data", "end", "reset", "away"};
    char *at = p->sent.data;
    size_t left = p->sent.len;
    int rc = 0;

    while (left > 0 && rc >= 0) {
        size_t n = HK_MIN(left, pieces);
        struct spdy_event e;

        left -= n;
        while ((rc = spdy_read(p->spdy, &at, &n, &e, &p->answer, err)) == 1) {
            hk_buf_addf(&p->told, "%s %u %.*s\n", names[e.type], e.stream, HK_FMT(e.bytes));
        }
        assert_true(rc < 0 || n == 0);
    }
    hk_buf_clear(&p->sent);
    return rc;
}

static void test_streams_open_carry_and_end(void **state)
{
    for (int with = 0; with < 2; with++) {
        for (size_t pieces = 1; pieces < 200; pieces += 13) {
            struct peer p;

            begin(&p, with);
            open_one(&p, 1, "error", 1);
            open_one(&p, 3, "stdin", 0);
            spdy_write(3, HK_STR("x"), false, &p.sent);
            spdy_write(3, HK_STR(""), true, &p.sent);
            assert_int_equal(take_all(&p, pieces, NULL), 0);
            assert_string_equal(p.told.data, "open 1 error\nend 1 \nopen 3 stdin\ndata 3 x\n"
                                             "end 3 \n");
            finish(&p);
        }
    }
}

static void test_every_stream_is_answered_with_headers_that_can_be_read(void **state)
{
    struct peer p;
    struct hk_str rest;

    begin(&p, true);
    open_one(&p, 1, "error", 0);
    open_one(&p, 3, "stdout", 0);
    assert_int_equal(take_all(&p, 1000, NULL), 0);
    rest = hk_buf_str(&p.answer);
    for (uint32_t stream = 1; stream <= 3; stream += 2) {
        unsigned char headers[16];

        assert_int_equal(get_u32(rest.s), 0x80030002);
        const uint32_t n = get_u32(rest.s + 4);
        assert_int_equal(get_u32(rest.s + 8), stream);
        p.inflate.next_in = (unsigned char *)rest.s + 12;
        p.inflate.avail_in = n - 4;
        p.inflate.next_out = headers;
        p.inflate.avail_out = sizeof(headers);
        assert_int_equal(inflate(&p.inflate, Z_SYNC_FLUSH), Z_OK);
        assert_int_equal(p.inflate.avail_in, 0);
        assert_int_equal(p.inflate.avail_out, sizeof(headers) - 4);
        assert_int_equal(get_u32(headers), 0);
        rest = (struct hk_str){rest.s + 8 + n, rest.n - 8 - n};
    }
    assert_int_equal(rest.n, 0);
    finish(&p);
}

static void test_pings_are_answered_and_other_frames_passed_over(void **state)
{
    struct peer p;

    begin(&p, false);
    add_u32(&p.sent, 0x80030006);
    add_u32(&p.sent, 4);
    add_u32(&p.sent, 7);
    assert_int_equal(take_all(&p, 5, NULL), 0);
    assert_int_equal(p.answer.len, 12);
    assert_int_equal(get_u32(p.answer.data), 0x80030006);
    assert_int_equal(get_u32(p.answer.data + 8), 7);
    add_u32(&p.sent, 0x80030006); /* the answer to our ping */
    add_u32(&p.sent, 4);
    add_u32(&p.sent, 8);
    add_u32(&p.sent, 0x80030009); /* a window */
    add_u32(&p.sent, 8);
    add_u32(&p.sent, 1);
    add_u32(&p.sent, 1000);
    add_u32(&p.sent, 0x80030003);
    add_u32(&p.sent, 8);
    add_u32(&p.sent, 5);
    add_u32(&p.sent, 1);
    add_u32(&p.sent, 0x80030007);
    add_u32(&p.sent, 8);
    add_u32(&p.sent, 5);
    add_u32(&p.sent, 0);
    assert_int_equal(take_all(&p, 3, NULL), 0);
    assert_int_equal(p.answer.len, 12);
    assert_string_equal(p.told.data, "reset 5 \naway 0 \n");
    finish(&p);
}

static void test_nonsense_is_refused(void **state)
{
    static const struct {
        uint32_t words[4];
        uint32_t n;
        const char *want;
    } cases[] = {
        {{0x80020006, 4, 1}, 3, "another version"},
        {{0x80030006, 3, 1}, 3, "a ping of another length"},
        {{0x80030001, 1 << 20}, 2, "a frame too long"},
        {{0x80030001, 8, 1, 0}, 4, "headers that cannot be read"},
        {{0x80030003, 4, 1}, 3, "a short reset"},
        {{0x80030008, 8, 1, 0xffffffff}, 4, "headers that cannot be read"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct peer p;
        struct hk_err err = {0};

        begin(&p, false);
        for (uint32_t k = 0; k < cases[i].n; k++) {
            add_u32(&p.sent, cases[i].words[k]);
        }
        assert_int_equal(take_all(&p, 1, &err), -HK_EINVAL);
        assert_non_null(strstr(err.text, cases[i].want));
        finish(&p);
    }
}

static void test_headers_that_grow_without_end_are_refused(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf zeros = {0}, packed = {0};
    struct hk_err err = {0};
    struct peer p;

    begin(&p, false);
    hk_buf_reserve(&zeros, 4 << 20);
    memset(zeros.data, 0, 4 << 20);
    zeros.len = 4 << 20;
    pack(&p, &zeros, &packed);
    add_u32(&p.sent, 0x80030001);
    add_u32(&p.sent, (uint32_t)packed.len + 10);
    hk_buf_add(&p.sent, "\0\0\0\1\0\0\0\0\0\0", 10);
    hk_buf_addstr(&p.sent, hk_buf_str(&packed));
    assert_int_equal(take_all(&p, 4096, &err), -HK_EINVAL);
    assert_true(p.spdy->headers.cap < 1 << 20);
    finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_open_carry_and_end),
        cmocka_unit_test(test_every_stream_is_answered_with_headers_that_can_be_read),
        cmocka_unit_test(test_pings_are_answered_and_other_frames_passed_over),
        cmocka_unit_test(test_nonsense_is_refused),
        cmocka_unit_test(test_headers_that_grow_without_end_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
