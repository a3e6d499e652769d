// SPDX-License-Identifier: Apache-2.0
// Plain streams of bytes, such as logs: passes on the answer to a GET as it arrives. Each has its
// own connection and no time limit; credentials and refusals work as for any call.
#pragma once

#include "client/client.h"

struct get_stream {
    const struct api_kind *kind; /* for messages */
    const char *path;            /* with the query: "/api/v1/..." */
    /* Called from libcurl: must not submit, cancel or poll, but may hold. */
    void (*on_bytes)(void *ctx, struct hk_str bytes);
    /* Gets PORT_DONE: 0 at the end of the stream, else why it failed or broke. A started stream is
     * not restarted. */
    struct port_sink done;
};

/* on_bytes gets the ctx of `done`. port_cancel ends the stream. */
uint64_t get_stream_open(struct client *c, const struct get_stream *g);
/* Stop reading from the socket; continue. Unknown and finished streams are ignored. */
void get_stream_hold(struct client *c, uint64_t call);
void get_stream_go_on(struct client *c, uint64_t call);
