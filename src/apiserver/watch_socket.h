// SPDX-License-Identifier: Apache-2.0
// A watch over a WebSocket; watch_stream.c makes its events.
#pragma once

#include "apiserver/server_priv.h"

enum watch_step {
    WATCH_STEP_EVENT, /* there may be more at once */
    WATCH_STEP_NONE,  /* nothing until watch_socket_resume */
    WATCH_STEP_END,
};

struct watch_source {
    /* Appends at most one event, also with the last step. */
    enum watch_step (*next)(void *ctx, struct hk_buf *out);
    /* Called once, after everything else; frees the exchange. */
    void (*ended)(void *ctx);
    void *ctx;
};

/* Whether the request asks for a WebSocket. */
bool watch_socket_is_asked(const struct exchange *x);
/* Sets x->refusal and returns negative when the handshake is wrong. */
int watch_socket_check(struct exchange *x) HK_CHECKED;
/* Answers 101. The result is valid until source->ended. */
struct watch_socket *watch_socket_begin(struct exchange *x, const struct watch_source *source);
/* The source may have events. Calls nothing back before it returns. */
void watch_socket_resume(struct watch_socket *s);
