// SPDX-License-Identifier: Apache-2.0
// The end of a body in an HTTP answer, from arbitrary bytes, read whole and in pieces: the same bytes
// come out, and the same verdict, however they arrive.
#include "net/forward_body.h"
#include "net/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 1 << 20 };

struct seen {
    struct hk_buf body;
    bool over, broken;
};

/* The parser looks for the end of a line in a bounded part, so what waits must be offered again. */
static void feed(struct hk_str head, struct hk_str rest, size_t part, struct seen *s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf in = {0};
    struct forward_body b;

    if (forward_body_init(&b, head, 200, false) < 0) {
        s->broken = true;
        return;
    }
    for (size_t at = 0; at < rest.n && !b.over && !b.broken; at += part) {
        hk_buf_add(&in, rest.s + at, HK_MIN(part, rest.n - at));
        const size_t used = forward_body_read(&b, hk_buf_str(&in), ROOM, &s->body);
        hk_assert(used <= in.len);
        hk_buf_drop(&in, used);
    }
    forward_body_close(&b);
    s->over = b.over;
    s->broken = b.broken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hk_str text = {(const char *)data, size};
    struct seen whole = {0}, pieces = {0};
    const size_t n = size > 0 ? http_head_end(text) : 0;

    if (n == 0) {
        return 0;
    }
    const struct hk_str head = {text.s, n}, rest = {text.s + n, text.n - n};
    feed(head, rest, HK_MAX(rest.n, (size_t)1), &whole);
    feed(head, rest, 1 + data[0] % 13, &pieces);
    hk_assert(whole.over == pieces.over && whole.broken == pieces.broken);
    hk_assert(hk_str_eq(hk_buf_str(&whole.body), hk_buf_str(&pieces.body)));
    hk_buf_fini(&whole.body);
    hk_buf_fini(&pieces.body);
    return 0;
}
