// SPDX-License-Identifier: Apache-2.0
// WebSockets (RFC 6455): the handshake's words, and frames to bytes and back. No I/O: both a server
// and a client hold the socket themselves. Data is handed on in pieces as it comes, so no message
// is ever kept whole; only control frames, at most 125 bytes long, are gathered.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum ws_op {
    WS_MORE = 0, /* goes on with a message; readers are told the message's own kind instead */
    WS_TEXT = 1,
    WS_BINARY = 2,
    WS_CLOSE = 8,
    WS_PING = 9,
    WS_PONG = 10,
};

enum ws_close_code {
    WS_CLOSE_NORMAL = 1000,
    WS_CLOSE_GOING_AWAY = 1001,
    WS_CLOSE_PROTOCOL = 1002,
    WS_CLOSE_TOO_LARGE = 1009,
    WS_CLOSE_INTERNAL = 1011,
};

enum { WS_CONTROL_MAX = 125, WS_HEAD_MAX = 14, WS_ACCEPT_BYTES = 28, WS_KEY_BYTES = 24 };

/* ---- the handshake ---- */

/* What a server answers to the client's key in Sec-WebSocket-Accept. */
void ws_accept(struct hk_str key, char ret[WS_ACCEPT_BYTES + 1]);
/* A client's key out of 16 random bytes. */
void ws_key(const unsigned char random[16], char ret[WS_KEY_BYTES + 1]);
/* A comma-separated header holds the word, in any case. */
bool ws_header_has(struct hk_str header, const char *word);

/* ---- reading ---- */

/* Ready when server and max_frame are set and the rest is zero. */
struct ws_reader {
    bool server;        /* reads what a client sent: frames must be masked, otherwise must not */
    uint64_t max_frame; /* longer ones are refused */

    unsigned char head[WS_HEAD_MAX];
    uint8_t nhead;
    bool in_frame;
    uint8_t op;      /* of the frame */
    uint8_t message; /* kind of the message under way, 0 none */
    bool fin, begun; /* begun: something of the message was handed on */
    uint64_t left;   /* of the frame */
    unsigned char mask[4];
    uint8_t mask_at;
    char control[WS_CONTROL_MAX];
    uint8_t ncontrol;
    uint16_t close_code; /* what to close with after a failure */
};

/* A piece of a message, or a control frame as a whole. The bytes are in what was read, or in the
 * reader, and good until the next call. */
struct ws_piece {
    enum ws_op op; /* never WS_MORE */
    bool first, last;
    struct hk_str bytes;
};

/* Reads from *in and moves it on, unmasking in place. 1: there is a piece, ask again. 0: all of it
 * is read. Fails on what no peer may send; the reader is of no use afterwards. */
int ws_read(struct ws_reader *r, char **in, size_t *n, struct ws_piece *ret,
            struct hk_err *err) HK_CHECKED;
/* The code in a close frame, WS_CLOSE_NORMAL when it has none. */
uint16_t ws_close_code(struct hk_str payload);

/* ---- writing ---- */

/* One frame, whole. mask is 4 random bytes of a client, NULL: a server. */
void ws_write(enum ws_op op, struct hk_str bytes, const unsigned char *mask, struct hk_buf *out);
/* A binary message whose first byte is the channel. */
void ws_write_channel(uint8_t channel, struct hk_str bytes, const unsigned char *mask,
                      struct hk_buf *out);
void ws_write_close(uint16_t code, struct hk_str why, const unsigned char *mask,
                    struct hk_buf *out);
