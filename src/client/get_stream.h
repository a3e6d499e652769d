// SPDX-License-Identifier: Apache-2.0
// Plain streams of bytes, such as logs: whatever a GET answers, as it comes. Each has a connection
// of its own and no time limit; credentials and refusals are dealt with as for any call.
#pragma once

#include "client/client.h"

struct get_stream {
    const struct api_kind *kind; /* what messages say that it was about */
    const char *path;            /* with the query: "/api/v1/..." */
    /* Runs below libcurl: it may not submit, cancel or poll, but hold. */
    void (*on_bytes)(void *ctx, struct hk_str bytes);
    /* Hears PORT_DONE: 0 at the end of the stream, else why there is none or no more of it. One
     * that had begun is not begun again. */
    struct port_sink done;
};

/* Bytes go to the context of `done`. port_cancel ends it. */
uint64_t get_stream_open(struct client *c, const struct get_stream *g);
/* Leaves what comes next in the socket, and goes on with it. Unknown and finished ones are ignored.
 */
void get_stream_hold(struct client *c, uint64_t call);
void get_stream_go_on(struct client *c, uint64_t call);
