// SPDX-License-Identifier: Apache-2.0
// A stream of bytes: a GET whose answer is passed on instead of collected.
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

static struct call *get_stream_find_call(struct client *c, uint64_t id)
{
    const uint32_t slot = hk_map_get(&c->slots, id);

    return slot == HK_NONE ? NULL : c->calls.at[slot];
}

void get_stream_hold(struct client *c, uint64_t call)
{
    struct call *k = get_stream_find_call(c, call);

    if (k) {
        k->held = true;
    }
}

void get_stream_go_on(struct client *c, uint64_t call)
{
    struct call *k = get_stream_find_call(c, call);

    if (k && k->held) {
        k->held = false;
        if (k->easy) {
            curl_easy_pause(k->easy->curl, CURLPAUSE_CONT);
        }
    }
}
