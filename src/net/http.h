// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server over TLS or plain, on our own epoll loop (libmicrohttpd underneath). A handler
// gets whole requests with bounded bodies and answers now or later; a streaming answer pulls its
// bytes, so a slow reader costs a cursor and no buffer. Everything happens on the loop's thread.
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "net/loop.h"

#include <sys/types.h>

struct http_server;

struct http_header {
    struct hk_str name, value; /* NUL-terminated */
};

/* Valid until the answer is complete. */
struct http_request {
    struct hk_str method;
    struct hk_str path;  /* raw, before percent-decoding */
    struct hk_str query; /* raw, without '?' */
    struct hk_str body;
    struct hk_str peer;         /* "127.0.0.1:5000" */
    const char *client_cert_cn; /* of a verified client certificate: subject CN, NULL without one */
    const char *const *client_cert_orgs; /* and organisations */
    uint32_t nclient_cert_orgs;
    void *user; /* the handler's */
};
/* Empty when absent; name in any case. */
struct hk_str http_request_header(const struct http_request *q, const char *name);
/* Calls fn for each header, in their order, repeated ones included. */
void http_request_headers(const struct http_request *q,
                          void (*fn)(void *ctx, struct hk_str name, struct hk_str value),
                          void *ctx);

/* Answers once. Headers are copied; the bytes of body are taken, leaving it empty. */
void http_reply(struct http_request *q, int status, const struct http_header *headers, uint32_t n,
                struct hk_buf *body);
/* Streaming: pull is called when the peer can take more; it appends about room bytes to out and
 * returns false at the end of the stream. Appending nothing suspends the stream until http_resume.
 * ended is called exactly once, however the stream ends, also when the peer hangs up meanwhile;
 * the request is gone after it. */
struct http_stream {
    bool (*pull)(void *ctx, struct hk_buf *out, size_t room);
    void (*ended)(void *ctx);
    void *ctx;
    bool finite; /* ends by itself: a server that stops lets it */
};
void http_reply_stream(struct http_request *q, int status, const struct http_header *headers,
                       uint32_t n, const struct http_stream *s);
void http_resume(struct http_request *q);

/* After the answer 101 the connection is the handler's: bytes both ways, as both sides agreed. */
struct http_tunnel {
    /* early: what the peer sent right behind its request. Nothing may be closed from here. */
    void (*opened)(void *ctx, struct hk_str early);
    /* EPOLLIN, EPOLLOUT, of those asked for with http_tunnel_want. */
    void (*ready)(void *ctx, uint32_t events);
    /* The peer hung up, opened or not, or the server goes: the request is gone when this returns.
     * Not called after http_tunnel_close, else exactly once. */
    void (*cut)(void *ctx);
    void *ctx;
};
/* headers name the protocol in Upgrade. */
void http_reply_tunnel(struct http_request *q, const struct http_header *headers, uint32_t n,
                       const struct http_tunnel *t);
/* Nothing is asked for at first. */
void http_tunnel_want(struct http_request *q, uint32_t events);
/* As recv and send on a socket that does not block: -1 with errno. What is left of a write is
 * offered again, the same bytes first; a read that fills its buffer is followed by another without
 * waiting to be ready. */
ssize_t http_tunnel_read(struct http_request *q, char *p, size_t n);
ssize_t http_tunnel_write(struct http_request *q, const char *p, size_t n);
/* What was written still reaches a peer that reads. */
void http_tunnel_close(struct http_request *q);

struct http_opts {
    struct hk_str addr;                             /* "127.0.0.1", "::1"; "": every address */
    uint16_t port;                                  /* 0: any; see http_server_port */
    const char *cert_pem, *key_pem, *client_ca_pem; /* NULL: plain HTTP */
    size_t max_body;                                /* 413 beyond */
    size_t max_bodies;         /* of all requests together, until answered: 429 beyond */
    uint32_t max_connections;  /* closed at once beyond */
    int64_t idle_timeout_ms;   /* between requests, and for a reader that takes nothing */
    int64_t header_timeout_ms; /* for a request to arrive whole, the handshake included */
    /* Asked when a body begins to come, the request complete but for that: 0, or the status to
     * refuse with before any of it is kept. NULL: everybody may send one. */
    int (*admit)(void *ctx, const struct http_request *q);
    /* Called with the whole request; must answer, now or later. */
    void (*handle)(void *ctx, struct http_request *q);
    /* The body, JSON, of a refusal the server makes itself: 413, 429 and those of admit. */
    void (*refusal)(void *ctx, int status, struct hk_buf *body);
    void *ctx;
};
int http_server_new(struct net_loop *loop, const struct http_opts *o, struct http_server **ret,
                    struct hk_err *err) HK_CHECKED;
/* Shows another certificate in handshakes from now on; connections there are go on as they are. A
 * pair that does not hold changes nothing. Over TLS only. */
int http_server_become(struct http_server *s, const char *cert_pem, const char *key_pem,
                       struct hk_err *err) HK_CHECKED;
uint16_t http_server_port(const struct http_server *s);
uint32_t http_server_connections(const struct http_server *s);
/* Bytes of bodies whose requests are not complete, and of answers, streams aside, that peers have
 * not taken yet. */
size_t http_server_bodies(const struct http_server *s);
size_t http_server_unread(const struct http_server *s);
/* Stops accepting, ends streams, and turns the loop until answers are out, for up to grace_ms. */
void http_server_stop(struct http_server *s, int64_t grace_ms);
/* Cuts every connection. Requests still waiting for an answer die with it. Takes NULL. */
void http_server_free(struct http_server *s);
