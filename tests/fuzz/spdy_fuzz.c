// SPDX-License-Identifier: Apache-2.0
// SPDY frames from arbitrary bytes, read whole and in pieces: the same streams and data come out,
// and the same is answered, however they arrive.
#include "base/map.h"
#include "net/spdy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t hash; /* over events and bytes, not over where pieces of data were cut */
    uint64_t answer;
    int rc;
};

static void take(struct seen *s, const struct spdy_event *e)
{
    if (e->type != SPDY_DATA) {
        s->hash = hk_mix(s->hash ^ ((uint64_t)e->type << 32 | e->stream));
    }
    for (size_t k = 0; k < e->bytes.n; k++) {
        s->hash = hk_mix(s->hash + (unsigned char)e->bytes.s[k] + e->stream);
    }
}

static void feed(const uint8_t *data, size_t size, size_t part, struct seen *s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf copy = {0}, out = {0};
    struct spdy *spdy = spdy_new();
    struct hk_err err = {0};

    hk_buf_add(&copy, data, size);
    for (size_t at = 0; s->rc == 0 && at < size; at += part) {
        char *in = copy.data + at;
        size_t n = HK_MIN(part, size - at);
        struct spdy_event e;

        while ((s->rc = spdy_read(spdy, &in, &n, &e, &out, &err)) > 0) {
            take(s, &e);
        }
        hk_assert(s->rc < 0 || n == 0);
    }
    hk_assert(s->rc == 0 || err.text[0] != '\0');
    s->answer = hk_hash(hk_buf_str(&out).s, out.len, 1);
    spdy_free(spdy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = {0}, pieces = {0};

    if (size == 0) {
        return 0;
    }
    feed(data, size, size, &whole);
    feed(data, size, 1 + data[0] % 13, &pieces);
    hk_assert(whole.rc == pieces.rc && whole.hash == pieces.hash && whole.answer == pieces.answer);
    return 0;
}
