// SPDX-License-Identifier: Apache-2.0
// Splits a stream of JSON objects, with or without line ends, into objects, however the stream is
// cut into pieces. It only understands brackets and strings; the caller validates the JSON.
#pragma once

#include "base/err.h"
#include "base/str.h"

struct frame {
    size_t max;        /* bytes of one object, required */
    struct hk_buf buf; /* the incomplete object */
    uint32_t depth;
    bool in_string, escaped;
};

/* Gets one object, borrowed during the call; a non-zero result stops frame_feed. */
typedef int frame_fn(void *ctx, struct hk_str object);

/* Calls fn for each complete object. Fails on non-blank bytes between objects (HK_EINVAL) and on an
 * object larger than max (HK_ELIMIT); else returns fn's last result. Zero the frame and set max
 * before. */
int frame_feed(struct frame *f, struct hk_str bytes, frame_fn *fn, void *ctx,
               struct hk_err *err) HK_CHECKED;
/* Whether an object is incomplete. */
bool frame_partial(const struct frame *f);
void frame_fini(struct frame *f);
