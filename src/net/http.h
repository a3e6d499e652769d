// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server, TLS or plain, on our own epoll loop (using libmicrohttpd). A handler gets
// whole requests with bounded bodies and answers now or later; a stream pulls its bytes, so a slow
// reader needs a position and no buffer. Everything runs on the loop's thread.
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
    bool streamed;              /* the body is not held: see http_opts.streams */
    struct hk_str peer;         /* "127.0.0.1:5000" */
    const char *client_cert_cn; /* of a verified client certificate: subject CN, NULL without one */
    const char *const *client_cert_orgs; /* its organisations */
    uint32_t nclient_cert_orgs;
    void *user; /* for use by the handler */
};
/* Empty when absent; name in any case. */
struct hk_str http_request_header(const struct http_request *q, const char *name);
/* Calls fn for each header in order, including repeated ones. */
void http_request_headers(const struct http_request *q,
                          void (*fn)(void *ctx, struct hk_str name, struct hk_str value),
                          void *ctx);

/* Assigns the connection to an authenticated user: it counts against max_per_user, and anonymous
 * connections are closed before it to make room. False: the user has too many connections, none of
 * them idle. */
bool http_request_claim(const struct http_request *q, struct hk_str user) HK_CHECKED;

/* Receives the body of a streamed request, and the news that the peer has gone. */
struct http_body {
    /* Takes bytes and returns how many; fewer than n stop the body until http_body_resume. n is 0
     * once, at the end of the body. Not called after an answer: the rest is dropped then. */
    size_t (*take)(void *ctx, const char *p, size_t n);
    /* The request is over without an answer, because the peer disconnected or the server is freed.
     * Called at most once. */
    void (*gone)(void *ctx);
    void *ctx;
};
/* From the handler, before it returns: http_body_read comes later, unless the answer does. */
void http_body_hold(struct http_request *q);
/* From the handler, before it returns, or after http_body_hold. Without it a streamed body is
 * dropped. */
void http_body_read(struct http_request *q, const struct http_body *b);
void http_body_resume(struct http_request *q);

/* Call once. Copies the headers; takes the bytes of body and leaves it empty. */
void http_reply(struct http_request *q, int status, const struct http_header *headers, uint32_t n,
                struct hk_buf *body);
/* Streaming: pull is called when the peer can receive more; it appends about room bytes to out and
 * returns false at the end. Appending nothing suspends the stream until http_resume. ended is
 * called exactly once, also when the peer disconnects; the request is invalid after it. */
struct http_stream {
    bool (*pull)(void *ctx, struct hk_buf *out, size_t room);
    void (*ended)(void *ctx);
    void *ctx;
    bool finite; /* ends by itself: a stopping server waits for it */
    bool whole;  /* an early end must not look complete: a stopping server cuts it */
    bool has_length;
    uint64_t length; /* of all that pull returns, to announce it */
};
void http_reply_stream(struct http_request *q, int status, const struct http_header *headers,
                       uint32_t n, const struct http_stream *s);
void http_resume(struct http_request *q);
/* Ends a stream so that the peer sees that it is incomplete. */
void http_abort_stream(struct http_request *q);

/* After the answer 101 the handler owns the connection and exchanges bytes both ways. */
struct http_tunnel {
    /* early: bytes that the peer sent after its request. Must not close anything. */
    void (*opened)(void *ctx, struct hk_str early);
    /* EPOLLIN, EPOLLOUT as requested with http_tunnel_want. */
    void (*ready)(void *ctx, uint32_t events);
    /* The peer disconnected, even before opened, or the server stops. The request is invalid after
     * this. Called exactly once, unless http_tunnel_close was called. */
    void (*cut)(void *ctx);
    void *ctx;
};
/* headers must name the protocol in Upgrade. */
void http_reply_tunnel(struct http_request *q, const struct http_header *headers, uint32_t n,
                       const struct http_tunnel *t);
/* Initially no events are requested. */
void http_tunnel_want(struct http_request *q, uint32_t events);
/* Like recv and send on a non-blocking socket: -1 with errno. Repeat an incomplete write with the
 * same remaining bytes; repeat a read that filled its buffer without waiting for readiness. */
ssize_t http_tunnel_read(struct http_request *q, char *p, size_t n);
ssize_t http_tunnel_write(struct http_request *q, const char *p, size_t n);
/* Data already written still reaches a peer that reads. */
void http_tunnel_close(struct http_request *q);

struct http_opts {
    struct hk_str addr;                             /* "127.0.0.1", "::1"; "": every address */
    uint16_t port;                                  /* 0: any; see http_server_port */
    const char *cert_pem, *key_pem, *client_ca_pem; /* NULL: plain HTTP */
    size_t max_body;                                /* 413 beyond */
    size_t max_bodies; /* sum over unanswered requests, announced or received: 429 beyond */
    /* The part of one user, or of one address before authentication; 0: any. */
    size_t max_bodies_each;
    /* Beyond this, each new connection closes an idle one: first the longest idle anonymous one of
     * the address with the most of them, then one of the user with the most. Without an idle one
     * the new connection is closed at once. */
    uint32_t max_connections;
    uint32_t max_per_peer; /* the same for anonymous connections of one address; 0: any number */
    uint32_t max_per_user; /* http_request_claim refuses beyond; 0: any number */
    /* The same for connections whose descriptor is at least this number: other parts of the process
     * then need the rest. 0: any number. */
    uint32_t max_descriptor;
    int64_t idle_timeout_ms;   /* between requests, and for a peer that does not read */
    int64_t header_timeout_ms; /* for a whole request, including the TLS handshake */
    /* Called with the headers before a body arrives: 0, or the status to refuse it with. NULL:
     * accept all bodies. */
    int (*admit)(void *ctx, const struct http_request *q);
    /* Called with the headers of a request that has a body: whether the handler gets the body
     * piece by piece (http_body_read) instead of whole. Such a body has no limit and is not
     * admitted. NULL: never. */
    bool (*streams)(void *ctx, const struct http_request *q);
    /* Handles a request, whole unless streamed; must answer, now or later. The answer to a streamed
     * request is sent when its body has ended. */
    void (*handle)(void *ctx, struct http_request *q);
    /* Writes the JSON body of the server's own refusals: 400, 413, 414, 429 and those of admit. */
    void (*refusal)(void *ctx, int status, struct hk_buf *body);
    void *ctx;
};
int http_server_new(struct net_loop *loop, const struct http_opts *o, struct http_server **ret,
                    struct hk_err *err) HK_CHECKED;
/* Uses another certificate in new handshakes; open connections continue. An invalid pair changes
 * nothing. For TLS only. */
int http_server_become(struct http_server *s, const char *cert_pem, const char *key_pem,
                       struct hk_err *err) HK_CHECKED;
uint16_t http_server_port(const struct http_server *s);
uint32_t http_server_connections(const struct http_server *s);
/* Bytes of bodies, announced or received, of unfinished requests; and of answers, except streams,
 * that peers have not read yet. */
size_t http_server_bodies(const struct http_server *s);
size_t http_server_unread(const struct http_server *s);
/* Stops accepting, ends streams, and runs the loop until answers are sent, for up to grace_ms. */
void http_server_stop(struct http_server *s, int64_t grace_ms);
/* Cuts every connection and drops unanswered requests. Takes NULL. */
void http_server_free(struct http_server *s);
