// SPDX-License-Identifier: Apache-2.0
// Cuts watch streams into objects. An object that arrives in one piece is passed on without a copy;
// only one that spans pieces is copied together.
#include "client/frame.h"

/* Skips bytes of an object; returns the end of the object, or NULL if it is incomplete. */
static const char *frame_scan_object(struct frame *f, const char *p, const char *end)
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

static const char *frame_skip_blanks(const char *p, const char *end)
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
        p = f->depth > 0 ? p : frame_skip_blanks(p, end);
        if (p == end) {
            break;
        }
        if (f->depth == 0 && *p != '{') {
            return hk_fail(err, HK_EINVAL, "want an object in the stream, have byte 0x%02x",
                           (unsigned)(unsigned char)*p);
        }
        const char *stop = frame_scan_object(f, p, end);
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
