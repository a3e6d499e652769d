// SPDX-License-Identifier: Apache-2.0
// Reads a list as it arrives: each item becomes an object at its last byte, so that only the
// objects, one incomplete item and the text around the items are held. All of these are limited,
// whatever the server sends.
#pragma once

#include "base/vec.h"
#include "client/decode.h"

struct list_reader {
    const struct api_kind *kind;
    bool text_only;
    size_t max_item;                /* bytes of one item */
    size_t max_held;                /* limit of memory for items of this list */
    size_t *held_all, max_held_all; /* the same for all readers that share held_all */

    struct hk_buf shell; /* text received, without the items */
    struct hk_buf item;  /* the incomplete item, if it arrives in several pieces */
    HK_VEC(struct api_object *) items;
    size_t held;
    uint32_t depth;
    bool in_string, escaped;
    bool in_items, in_item;
    bool separated; /* an item may start: it is the first, or follows a comma */
};

/* Fails on text that is not a list (HK_EINVAL) and beyond a limit (HK_ELIMIT). Zero the reader and
 * set the members above the empty line before. */
int list_reader_feed(struct list_reader *r, struct hk_str bytes, struct hk_err *err) HK_CHECKED;
/* Call at the end of the input: returns the items, or fails if the list is incomplete. */
int list_reader_finish(struct list_reader *r, struct hk_arena *mem, struct decode_list *ret,
                       struct hk_err *err) HK_CHECKED;
/* Drops everything read, for another attempt. */
void list_reader_clear(struct list_reader *r);
void list_reader_fini(struct list_reader *r);
