// SPDX-License-Identifier: Apache-2.0
// The body of an HTTP/1.1 answer, for code that talks to servers without a library.
#pragma once

#include "base/err.h"
#include "base/str.h"

/* How the end of the answer's body is found. */
enum forward_framing { FORWARD_NO_BODY, FORWARD_LENGTH, FORWARD_CHUNKED, FORWARD_UNTIL_CLOSE };

/* Parts of a chunked body. */
enum forward_part { PART_SIZE, PART_DATA, PART_DATA_END, PART_TRAILER };

struct forward_body {
    enum forward_framing framing;
    enum forward_part part;
    uint64_t left;   /* bytes of the body, or of the chunk */
    size_t trailers; /* bytes of them */
    bool over, broken;
};

/* Sets framing and left by the head of the answer; negative if it is invalid. */
int forward_body_init(struct forward_body *b, struct hk_str head, int status,
                      bool is_head_request) HK_CHECKED;
/* Moves up to room bytes of the body from in to out; returns the used bytes of in. */
size_t forward_body_read(struct forward_body *b, struct hk_str in, size_t room, struct hk_buf *out);
/* The server has closed the connection, and all its bytes were read. */
void forward_body_close(struct forward_body *b);
