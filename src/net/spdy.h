// SPDX-License-Identifier: Apache-2.0
// SPDY/3.1 as Kubernetes still speaks it between API server and node, and older kubectl everywhere:
// the server's side of streams that the peer opens, each with a type in its headers. No I/O: who
// holds the socket brings the bytes. Data is handed on in pieces as it comes; control frames are
// gathered, and bounded. There is no flow control, as the peers know none.
#pragma once

#include "base/err.h"
#include "base/str.h"

struct spdy;

enum spdy_event_type {
    SPDY_OPENED, /* the peer has opened a stream; it was answered */
    SPDY_DATA,
    SPDY_ENDED, /* the peer sends no more on it */
    SPDY_RESET, /* and wants nothing from it either */
    SPDY_AWAY,  /* the peer opens no more streams */
};

/* Bytes are in what was read, or in the reader, and good until the next call. */
struct spdy_event {
    enum spdy_event_type type;
    uint32_t stream;
    struct hk_str bytes; /* data; of one that was opened: its header "streamtype" */
};

struct spdy *spdy_new(void);
/* Takes NULL. */
void spdy_free(struct spdy *s);
/* Reads from *in and moves it on; what has to be answered at once is appended to out. 1: there is
 * an event, ask again. 0: all of it is read. Fails on what no peer may send; of no use afterwards.
 */
int spdy_read(struct spdy *s, char **in, size_t *n, struct spdy_event *ret, struct hk_buf *out,
              struct hk_err *err) HK_CHECKED;

/* One frame of data, less than 16 MiB; the last one of its stream. */
void spdy_write(uint32_t stream, struct hk_str bytes, bool last, struct hk_buf *out);
