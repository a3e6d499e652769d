// SPDX-License-Identifier: Apache-2.0
// SPDY/3.1 as Kubernetes still uses it between API server and node, and older kubectl everywhere:
// the server side of streams that the peer opens, each with a type in its headers. No I/O: the
// caller owns the socket. Data is passed on in pieces as it arrives; control frames are collected
// up to a limit. There is no flow control, as the peers have none.
#pragma once

#include "base/err.h"
#include "base/str.h"

struct spdy;

enum spdy_event_type {
    SPDY_OPENED, /* the peer opened a stream; the reply is in out */
    SPDY_DATA,
    SPDY_ENDED, /* the peer sends no more on the stream */
    SPDY_RESET, /* the peer cancelled the stream */
    SPDY_AWAY,  /* the peer opens no more streams */
};

/* bytes points into the input or the reader and is valid until the next call. */
struct spdy_event {
    enum spdy_event_type type;
    uint32_t stream;
    struct hk_str bytes; /* data; for SPDY_OPENED the header "streamtype" */
};

struct spdy *spdy_new(void);
/* Takes NULL. */
void spdy_free(struct spdy *s);
/* Reads from *in and advances it; appends immediate replies to out. 1: an event, call again. 0: all
 * input was read. Fails on invalid input; the reader is then unusable. */
int spdy_read(struct spdy *s, char **in, size_t *n, struct spdy_event *ret, struct hk_buf *out,
              struct hk_err *err) HK_CHECKED;

/* A header, by its name in lower case, of the stream in the last event, which must be SPDY_OPENED;
 * "" if missing. Valid until the next read. */
struct hk_str spdy_header(const struct spdy *s, const char *name);

/* Writes one data frame of less than 16 MiB; last ends the stream. */
void spdy_write(uint32_t stream, struct hk_str bytes, bool last, struct hk_buf *out);
/* Cancels the stream in both directions. */
void spdy_write_reset(uint32_t stream, struct hk_buf *out);
