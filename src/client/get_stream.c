// SPDX-License-Identifier: Apache-2.0
// A stream of bytes is a GET whose answer is handed on instead of kept.
#include "client/get_stream.h"

#include "client/client_priv.h"

struct message *get_stream_outcome(struct call *k, CURLcode rc, const char *why)
{
    if (rc != CURLE_OK) {
        return client_failure(k, HK_EIO, "stream of %s: %s", k->kind->plural, why);
    }
    return client_message(k, PORT_DONE);
}

uint64_t get_stream_open(struct client *c, const struct get_stream *g)
{
    const struct port_request req = {.verb = PORT_GET, .kind = g->kind};
    struct call *k = client_call(c, &req, g->done);

    k->rank = RANK_AT_ONCE;
    k->on_bytes = g->on_bytes;
    k->target.method = "GET";
    hk_buf_adds(&k->target.path, g->path);
    client_queue(k, false);
    return k->id;
}
