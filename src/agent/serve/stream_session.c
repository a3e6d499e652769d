// SPDX-License-Identifier: Apache-2.0
// Connects the events of a connection to a session and its owner.
#include "agent/serve/stream_session.h"

/* ---- events of the connection ---- */

static void stream_session_on_begun(void *ctx)
{
    struct stream_session *s = ctx;

    /* An empty message tells the client that the connection is open, as in Kubernetes. */
    channels_send(&s->channels, CHANNEL_STDOUT, HK_STR(""));
    s->ops->begun(s);
}

static void stream_session_on_input(void *ctx, struct hk_str bytes)
{
    struct stream_session *s = ctx;

    stdin_pipe_write(&s->in, bytes);
}

static void stream_session_on_input_end(void *ctx)
{
    struct stream_session *s = ctx;

    s->ops->input_end(s);
}

static void stream_session_on_size(void *ctx, uint16_t columns, uint16_t rows)
{
    struct stream_session *s = ctx;

    if (s->tty) {
        s->ops->size(s, columns, rows);
    }
}

static void stream_session_on_room(void *ctx)
{
    struct stream_session *s = ctx;

    s->ops->room(s);
}

static void stream_session_on_closed(void *ctx)
{
    struct stream_session *s = ctx;

    s->ops->gone(s);
}

static void stream_session_on_cut(void *ctx)
{
    struct stream_session *s = ctx;

    s->channels.http = NULL;
    s->ops->gone(s);
}

static void stream_session_on_ready(void *ctx, uint32_t events)
{
    struct stream_session *s = ctx;

    channels_ready(&s->channels, events);
}

static void stream_session_on_opened(void *ctx, struct hk_str early)
{
    static const struct channels_ops ops = {.begun = stream_session_on_begun,
                                            .input = stream_session_on_input,
                                            .input_end = stream_session_on_input_end,
                                            .size = stream_session_on_size,
                                            .room = stream_session_on_room,
                                            .closed = stream_session_on_closed};
    struct stream_session *s = ctx;

    s->opened = true;
    channels_open(&s->channels, s->serve->host->o.loop, s->http, early, &ops, s);
}

/* ---- the session ---- */

void stream_session_init(struct stream_session *s, const struct stream_session_ops *ops,
                         struct serve *serve, struct http_request *http)
{
    *s = (struct stream_session){.ops = ops, .serve = serve, .http = http, .in = {.fd = -1}};
    hk_vec_push(&serve->sessions, s);
}

void stream_session_fini(struct stream_session *s)
{
    struct serve *serve = s->serve;

    for (uint32_t k = 0; k < serve->sessions.len; k++) {
        if (serve->sessions.at[k] == s) {
            hk_vec_swap_remove(&serve->sessions, k);
            break;
        }
    }
    stdin_pipe_fini(&s->in);
    channels_fini(&s->channels);
}

bool stream_session_wants(const struct stream_session *s, enum channel channel)
{
    return s->wants & 1u << channel;
}

int stream_session_accept(struct stream_session *s, struct hk_err *err)
{
    const int rc = channels_offer(&s->channels, s->http, s->wants, err);

    if (rc < 0) {
        return rc;
    }
    channels_accept(&s->channels, s->http,
                    &(struct http_tunnel){.opened = stream_session_on_opened,
                                          .ready = stream_session_on_ready,
                                          .cut = stream_session_on_cut,
                                          .ctx = s});
    return 0;
}

void stream_session_open_input(struct stream_session *s, int fd)
{
    stdin_pipe_open(&s->in, s->serve->host->o.loop, &s->channels, fd);
}

void stream_session_end(struct stream_session *s, struct hk_str status)
{
    channels_send(&s->channels, CHANNEL_ERROR, status);
    channels_close(&s->channels, WS_CLOSE_NORMAL, "");
}

void stream_session_end_all(struct serve *serve)
{
    while (serve->sessions.len > 0) {
        struct stream_session *s = serve->sessions.at[0];

        if (!s->opened) {
            http_tunnel_close(s->http);
        }
        s->ops->free(s);
    }
    hk_vec_fini(&serve->sessions);
}
