// SPDX-License-Identifier: Apache-2.0
// Frames from arbitrary bytes, read whole and in pieces, as a server and as a client: the same
// messages come out however they arrive.
#include "net/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint32_t messages;
    uint64_t hash; /* over bytes and ends, not over where pieces were cut */
    int rc;
};

static void take(struct seen *s, const struct ws_piece *p)
{
    hk_assert(p->op == WS_TEXT || p->op == WS_BINARY || p->op >= WS_CLOSE);
    hk_assert(p->op < WS_CLOSE || (p->first && p->last && p->bytes.n <= WS_CONTROL_MAX));
    if (p->first) {
        s->hash = hk_mix(s->hash ^ (uint64_t)p->op);
    }
    for (size_t k = 0; k < p->bytes.n; k++) {
        s->hash = hk_mix(s->hash + (unsigned char)p->bytes.s[k] + 1);
    }
    s->messages += p->last;
}

static void feed(const uint8_t *data, size_t size, size_t part, bool server, struct seen *s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf copy = {0};
    struct ws_reader r = {.server = server, .max_frame = 4096};
    struct hk_err err = {0};

    hk_buf_add(&copy, data, size);
    for (size_t at = 0; s->rc == 0 && at < size; at += part) {
        char *in = copy.data + at;
        size_t n = HK_MIN(part, size - at);
        struct ws_piece p;
        while ((s->rc = ws_read(&r, &in, &n, &p, &err)) > 0) {
            take(s, &p);
        }
        hk_assert(s->rc < 0 || n == 0);
    }
    hk_assert(s->rc == 0 || (err.text[0] != '\0' && r.close_code != 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    for (int server = 0; server < 2; server++) {
        struct seen whole = {0}, pieces = {0};
        feed(data, size, size, server, &whole);
        feed(data, size, 1 + data[size - 1] % 5, server, &pieces);
        hk_assert(whole.rc == pieces.rc && whole.messages == pieces.messages &&
                  whole.hash == pieces.hash);
    }
    return 0;
}
