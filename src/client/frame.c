// SPDX-License-Identifier: Apache-2.0
// The cutter of watch streams. An object that arrives in one piece is handed on where it lies; only
// one that spans pieces is copied together.
#include "client/frame.h"

/* Moves over bytes of an object; the answer is behind its last byte, or NULL when it goes on. */
static const char *walk(struct frame *f, const char *p, const char *end)
{
    for (; p < end; p++) {
        if (f->in_string) {
            if (f->escaped) {
                f->escaped = false;
            } else if (*p == '\\') {
                f->escaped = true;
            } else if (*p == '"') {
                f->in_string = false;
            }
        } else if (*p == '"') {
            f->in_string = true;
        } else if (*p == '{' || *p == '[') {
            f->depth++;
        } else if ((*p == '}' || *p == ']') && --f->depth == 0) {
            return p + 1;
        }
    }
    return NULL;
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        p++;
    }
    return p;
}

static int too_large(const struct frame *f, struct hk_err *err)
{
    return hk_fail(err, HK_ELIMIT, "an event is larger than %zu bytes", f->max);
}

int frame_feed(struct frame *f, struct hk_str bytes, frame_fn *fn, void *ctx, struct hk_err *err)
{
    const char *p = bytes.s, *const end = bytes.s + bytes.n;
    int rc = 0;

    while (rc == 0) {
        p = f->depth > 0 ? p : skip_blanks(p, end);
        if (p == end) {
            break;
        }
        if (f->depth == 0 && *p != '{') {
            return hk_fail(err, HK_EINVAL, "want an object in the stream, have byte 0x%02x",
                           (unsigned)(unsigned char)*p);
        }
        const char *stop = walk(f, p, end);
        const struct hk_str part = {p, (size_t)((stop ? stop : end) - p)};
        if (part.n > f->max - HK_MIN(f->buf.len, f->max)) {
            return too_large(f, err);
        }
        p += part.n;
        if (!stop || f->buf.len > 0) {
            hk_buf_addstr(&f->buf, part);
        }
        if (stop) {
            rc = fn(ctx, f->buf.len > 0 ? hk_buf_str(&f->buf) : part);
            hk_buf_clear(&f->buf);
        }
    }
    return rc;
}

bool frame_partial(const struct frame *f)
{
    return f->depth > 0;
}

void frame_fini(struct frame *f)
{
    hk_buf_fini(&f->buf);
}
