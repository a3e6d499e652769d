// SPDX-License-Identifier: Apache-2.0
// Cuts a stream of JSON objects, back to back or on lines of their own, into objects, wherever the
// pieces it arrives in end. Only brackets and strings are understood; whether the rest is JSON is
// the reader's question.
#pragma once

#include "base/err.h"
#include "base/str.h"

struct frame {
    size_t max;        /* bytes of one object, required */
    struct hk_buf buf; /* the object that is still coming */
    uint32_t depth;
    bool in_string, escaped;
};

/* One object; returning non-zero ends the feeding. Borrowed for the call. */
typedef int frame_fn(void *ctx, struct hk_str object);

/* Calls fn for each object that is complete. Fails on bytes between objects that are no blanks
 * (HK_EINVAL) and on an object larger than max (HK_ELIMIT); else returns fn's last answer. Ready
 * when zeroed but for max. */
int frame_feed(struct frame *f, struct hk_str bytes, frame_fn *fn, void *ctx,
               struct hk_err *err) HK_CHECKED;
/* In the middle of an object. */
bool frame_partial(const struct frame *f);
void frame_fini(struct frame *f);
