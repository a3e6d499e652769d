// SPDX-License-Identifier: Apache-2.0
// Watch streams from arbitrary bytes: cut and decoded, whole and in pieces, with a tree and
// without. However the bytes arrive, the same objects come out. The rest of an answer's readers get
// the whole input too.

#include "client/decode.h"
#include "client/frame.h"
#include "client/list_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint32_t frames;
    uint64_t hash;
    bool text_only;
};

static int on_frame(void *ctx, struct hk_str text)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct seen *s = ctx;
    struct decode_event ev;
    struct hk_err err = {0};

    s->frames++;
    s->hash = hk_hash(text.s, text.n, s->hash);
    if (decode_event(api_kind(API_POD), text, s->text_only, &mem, &ev, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        return 0;
    }
    hk_assert(!ev.obj || (ev.obj->text.n > 0 && ev.obj->rv == ev.rv));
    hk_assert(ev.type != PORT_DONE || ev.status.success || ev.status.message);
    api_object_unref(ev.obj);
    return 0;
}

static int feed(const uint8_t *data, size_t size, size_t part, struct seen *s)
{
    HK_AUTO(frame_fini) struct frame f = {.max = 4096};
    struct hk_err err = {0};
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < size; at += part) {
        const struct hk_str bytes = {(const char *)data + at, HK_MIN(part, size - at)};
        rc = frame_feed(&f, bytes, on_frame, s, &err);
        hk_assert(f.buf.len <= f.max);
    }
    hk_assert(rc == 0 || err.text[0] != '\0');
    return rc;
}

static void check_list(struct hk_str text, bool text_only)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct decode_list list;
    struct port_status status;
    struct hk_err err = {0};
    size_t held = 0;
    HK_AUTO(list_reader_fini)
    struct list_reader r = {.kind = api_kind(API_POD),
                            .text_only = text_only,
                            .max_item = 1 << 20,
                            .max_held = 1 << 24,
                            .held_all = &held,
                            .max_held_all = 1 << 24};
    const size_t part = text.n % 7 + 1;
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < text.n; at += part) {
        const struct hk_str bytes = {text.s + at, HK_MIN(part, text.n - at)};
        rc = list_reader_feed(&r, bytes, &err);
    }
    rc = rc < 0 ? rc : list_reader_finish(&r, &mem, &list, &err);
    if (rc == 0) {
        for (uint32_t i = 0; i < list.nitems; i++) {
            hk_assert(list.items[i]->text.n > 0);
            api_object_unref(list.items[i]);
        }
    } else {
        hk_assert(err.text[0] != '\0');
    }
    decode_status(text, 500, &mem, &status);
    hk_assert(status.code >= 100);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hk_str text = {(const char *)data, size};
    struct seen whole = {0}, pieces = {.text_only = true};

    if (size == 0) {
        return 0;
    }
    const int a = feed(data, size, size, &whole);
    const int b = feed(data, size, 1 + data[0] % 7, &pieces);
    hk_assert(a == b && whole.frames == pieces.frames && whole.hash == pieces.hash);
    check_list(text, false);
    check_list(text, true);
    return 0;
}
