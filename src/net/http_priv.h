// SPDX-License-Identifier: Apache-2.0
// What the files of the HTTP server share: http.c (connections, requests, answers, streams) and
// http_tunnel.c (connections that were upgraded).
#pragma once

#include "net/cert.h"
#include "net/http.h"
#include "net/tunnel.h"

#include <microhttpd.h>
#include <netinet/in.h>

enum stage { FRESH, BODY, WAITING, ANSWERED };

struct connection {
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct connection *prev, *next;
    struct request *request;
    struct net_timer *deadline;
    int fd;
    bool head_next; /* what is sent next is the head of an answer whose body follows at once */
    char peer[INET6_ADDRSTRLEN + 8];
    bool subject_known;
    struct cert_subject subject;
    struct identity *shown; /* to the peer, in the handshake */
    struct tunnel tunnel;
};

struct request {
    struct http_request pub; /* first: handlers hold this */
    struct connection *conn;
    enum stage stage;
    char *uri;
    struct hk_buf body;
    bool admitted; /* asked, and may send a body */
    int refusal;   /* status, once it is clear that the handler will not see the request */
    bool in_handler, suspended;

    int status;
    struct MHD_Response *response;
    size_t reply_bytes;

    struct http_stream stream;
    struct hk_buf out; /* pulled, not yet taken: [out_at, out.len) */
    size_t out_at;
    bool ending; /* the stream has said its last */
    bool cut;    /* the peer has gone, or we go */
    struct net_watch *hangup;

    struct http_tunnel tunnel;                /* cut NULL: none, or nobody wants to know */
    struct MHD_UpgradeResponseHandle *opened; /* the connection is the handler's */
    bool closing;                             /* and was */
};

struct http_server {
    struct net_loop *loop;
    struct http_opts opts;
    struct identity *identity; /* NULL: plain HTTP */
    struct MHD_Daemon *mhd;
    struct net_watch *watch;
    struct net_timer *timer;
    struct connection *connections;
    uint32_t nconnections;
    bool freeing;       /* nobody is listened to any more */
    bool full;          /* newcomers are turned away, and that was logged */
    uint32_t nrequests; /* whole and not complete */
    uint32_t nclosing;  /* tunnels among them that were closed */
    size_t body_bytes;  /* held by all requests */
    size_t reply_bytes; /* held by all answers */
    uint16_t port;
    bool run_due;  /* the timer stands for the next turn */
    bool moved;    /* the last run read, wrote, began or ended something */
    int listen_fd; /* ours before the library takes it and after it stops listening, else -1 */
};

/* Runs the library in the next turn of the loop. */
void http_run_soon(struct http_server *s);
/* The connection is shut then, unless another time is set or it is switched off. */
void http_set_deadline(struct connection *c, int64_t ms);
/* Takes the response. */
void http_answer(struct request *q, int status, const struct http_header *headers, uint32_t n,
                 struct MHD_Response *response);

/* Tells the handler that its tunnel is no more, once; and gives the connection back. Both take
 * requests without a tunnel. */
void http_tunnel_cut(struct request *q);
void http_tunnel_drop(struct request *q);
