// SPDX-License-Identifier: Apache-2.0
// WebSockets (RFC 6455): handshake, and encoding and decoding of frames, for servers and clients.
// No I/O: the caller owns the socket. Data is passed on in pieces as it arrives, so no message is
// ever stored whole; only control frames, at most 125 bytes long, are collected.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum ws_op {
    WS_MORE = 0, /* continuation; readers get the message's own type instead */
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

/* The server's Sec-WebSocket-Accept for the client's key. */
void ws_accept(struct hk_str key, char ret[WS_ACCEPT_BYTES + 1]);
/* A client's key from 16 random bytes. */
void ws_key(const unsigned char random[16], char ret[WS_KEY_BYTES + 1]);
/* Whether a comma-separated header contains the word, in any case. */
bool ws_header_has(struct hk_str header, const char *word);

/* ---- reading ---- */

/* Set server and max_frame, zero the rest. */
struct ws_reader {
    bool server;        /* reads from a client: frames must be masked, else must not */
    uint64_t max_frame; /* longer frames are refused */

    unsigned char head[WS_HEAD_MAX];
    uint8_t nhead;
    bool in_frame;
    uint8_t op;      /* of the frame */
    uint8_t message; /* type of the current message, 0 none */
    bool fin, begun; /* begun: a part of the message was passed on */
    uint64_t left;   /* of the frame */
    unsigned char mask[4];
    uint8_t mask_at;
    char control[WS_CONTROL_MAX];
    uint8_t ncontrol;
    uint16_t close_code; /* close code to send after a failure */
};

/* A piece of a message, or a whole control frame. bytes points into the input or the reader and is
 * valid until the next call. */
struct ws_piece {
    enum ws_op op; /* never WS_MORE */
    bool first, last;
    struct hk_str bytes;
};

/* Reads from *in and advances it, unmasking in place. 1: a piece, call again. 0: all input was
 * read. Fails on invalid input; the reader is then unusable. */
int ws_read(struct ws_reader *r, char **in, size_t *n, struct ws_piece *ret,
            struct hk_err *err) HK_CHECKED;
/* The code in a close frame, WS_CLOSE_NORMAL when it has none. */
uint16_t ws_close_code(struct hk_str payload);

/* ---- writing ---- */

/* Writes one whole frame. mask: 4 random bytes from a client, NULL from a server. */
void ws_write(enum ws_op op, struct hk_str bytes, const unsigned char *mask, struct hk_buf *out);
/* Writes a binary message whose first byte is the channel. */
void ws_write_channel(uint8_t channel, struct hk_str bytes, const unsigned char *mask,
                      struct hk_buf *out);
void ws_write_close(uint16_t code, struct hk_str why, const unsigned char *mask,
                    struct hk_buf *out);
