// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the forwarder: forward.c (connection, request, answer), forward_head.c
// (headers of both), forward_body.c (end of the answer's body) and forward_tunnel.c (upgrades).
#pragma once

#include "base/vec.h"
#include "net/dial.h"
#include "net/forward.h"
#include "net/forward_body.h"

enum {
    FORWARD_CHUNK = 32 << 10,
    FORWARD_BUFFER = 64 << 10,   /* bytes held per direction */
    FORWARD_MAX_HEAD = 16 << 10, /* of the answer: what the client's connection has room for */
};

/* Bytes read and not yet written: [at, buf.len). */
struct forward_way {
    struct hk_buf buf;
    size_t at;
};
static inline size_t forward_left(const struct forward_way *w)
{
    return w->buf.len - w->at;
}
static inline struct hk_str forward_bytes(const struct forward_way *w)
{
    return (struct hk_str){hk_buf_str(&w->buf).s + w->at, w->buf.len - w->at};
}
void forward_used(struct forward_way *w, size_t n);

/*
 *   DIALLING --> ASKING --head--> ANSWERING --end of the body--> OVER
 *                   '---101--> AGREED --client: 101--> OPEN --one side ends--> OVER
 */
enum forward_stage { DIALLING, ASKING, ANSWERING, AGREED, OPEN, OVER };

struct forward {
    struct forwarder *fw;
    struct http_request *http; /* NULL: its answer is complete, or it is gone */
    void (*refuse)(struct http_request *q, int status, const char *why);
    void (*ended)(void *ctx);
    void *ctx;
    enum forward_stage stage;
    bool upgrade, refuse_redirects;
    char *authority; /* "10.0.0.1:80" of the server */
    char *prefix;    /* of paths in Location */
    char *user;
    int64_t answer_ms, stall_ms;
    int64_t answer_at_ns; /* when the answer must begin; 0: any time */
    struct net_timer *patience;
    struct net_dial *server; /* NULL: it has closed, and all was read */
    bool server_closed;      /* in both directions: what it sent can be read without waiting */
    struct forward_way there, back;
    bool streamed, chunked;   /* the client's body: piece by piece; with an unknown length */
    bool body_waits;          /* the client's body was stopped */
    struct forward_body body; /* the server's */
};

/* ---- forward.c ---- */

/* Reads what the server sent, up to the limit of the buffer. */
void forward_fill(struct forward *f);
/* The server has closed in both directions: its descriptor would stay ready while the buffer is
 * full, so it is not watched any more. */
void forward_hear_out(struct forward *f);
/* Asks for events of the server, unless it has closed. */
void forward_want(struct forward *f, uint32_t events);
/* Writes what waits for the server; false: it has closed. */
bool forward_flush(struct forward *f);
/* Ends the forwarding without touching the request. */
void forward_finish(struct forward *f);
bool forward_must_wait(ssize_t n);

/* ---- forward_head.c ---- */

void forward_write_request(struct forward *f, const struct forward_opts *o);

/* Headers for the client. Ready when zeroed. */
struct forward_headers {
    struct hk_buf text; /* of all, NUL-terminated each */
    HK_VEC(struct http_header) list;
};
void forward_headers_read(const struct forward *f, struct hk_str head, struct forward_headers *ret);
void forward_headers_fini(struct forward_headers *h);

/* ---- forward_tunnel.c ---- */

/* The server has agreed to the upgrade. */
void forward_tunnel_begin(struct forward *f, struct hk_str head);
void forward_tunnel_pump(struct forward *f);
