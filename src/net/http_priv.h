// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the HTTP server: http.c (requests, answers, streams), http_accept.c
// (opening and closing connections), http_group.c (connections per address or user, and which to
// close when there are too many), http_check.c (malformed requests) and http_tunnel.c (upgraded
// connections).
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "net/cert.h"
#include "net/http.h"
#include "net/tunnel.h"

#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <netinet/in.h>

enum stage { FRESH, BODY, WAITING, ANSWERED };

/* The anonymous connections of one address, or the connections of one user. */
struct http_group {
    uint32_t key;                       /* interned in http_groups.keys */
    bool user;                          /* of a user, else of an address */
    uint32_t n;                         /* connections */
    size_t body_bytes;                  /* its part of http_server.body_bytes */
    struct connection *oldest, *newest; /* idle connections, which may be closed */
    struct http_group *prev, *next;
};

struct http_groups {
    struct hk_intern keys;
    HK_VEC(struct http_group *) by_key; /* NULL: none */
    struct http_group *users, *addresses;
};

struct connection {
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct connection *prev, *next;
    struct http_group *group;
    struct connection *older, *newer; /* in the group's list, while listed */
    bool listed;
    bool closing; /* shut down to make room; the library closes it in its next run */
    struct request *request;
    struct net_timer *deadline;
    int fd;
    bool head_next; /* the next send is a head whose body follows at once */
    char peer[INET6_ADDRSTRLEN + 8];
    bool subject_known;
    struct cert_subject subject;
    struct identity *shown; /* shown to the peer in the handshake */
    struct tunnel tunnel;
};

struct request {
    struct http_request pub; /* must be first: handlers hold this */
    struct connection *conn;
    enum stage stage;
    char *uri;
    struct hk_buf body;
    size_t counted; /* bytes of body, announced or received, counted in server and group */
    bool admitted;  /* opts.admit has accepted the body */
    bool over;      /* answered without the library, which must close the connection */
    int refusal;    /* status of a refusal without the handler, 0 none */
    bool in_handler, suspended;
    bool held;             /* a streamed body waits for http_body_read */
    bool begins_again;     /* the library repeats its call that precedes the body */
    struct http_body sink; /* of a streamed body */
    bool body_over;        /* the streamed body has ended */
    size_t dropped;        /* bytes of it that came after the answer */

    int status;
    struct MHD_Response *response;
    size_t reply_bytes;

    struct http_stream stream;
    struct hk_buf out; /* pulled, not yet sent: [out_at, out.len) */
    size_t out_at;
    bool ending; /* pull has returned false */
    bool cut;    /* the peer disconnected, or the server stops */
    struct net_watch *hangup;

    struct http_tunnel tunnel;                /* cut NULL: none, or its end needs no report */
    struct MHD_UpgradeResponseHandle *opened; /* set while the handler owns the connection */
    bool closing;                             /* the handler has closed it */
};

struct http_server {
    struct net_loop *loop;
    struct http_opts opts;
    struct identity *identity; /* NULL: plain HTTP */
    struct MHD_Daemon *mhd;
    struct net_watch *watch;
    struct net_timer *timer;
    struct connection *connections;
    uint32_t nconnections; /* including those being closed to make room */
    uint32_t nshut;        /* number of those */
    struct http_groups groups;
    bool freeing; /* the server is being freed */
    /* Set and counted since a log line reported too many connections. */
    bool full;
    int64_t full_ns; /* time of the last such event */
    uint64_t nrefused, nmade_room;
    struct net_watch *listen_watch;
    struct net_timer *accept_retry;
    bool accept_paused; /* accept() lacked descriptors or memory; logged */
    uint32_t nrequests; /* received, not yet completed */
    uint32_t nclosing;  /* closed tunnels among them */
    size_t body_bytes;  /* held by all requests */
    size_t reply_bytes; /* held by all answers */
    uint16_t port;
    bool run_due;  /* the timer is set for the next loop iteration */
    bool moved;    /* the last run made progress */
    int listen_fd; /* -1: not listening */
};

/* Run the library now; in the next loop iteration. */
void http_run(struct http_server *s);
void http_run_soon(struct http_server *s);
/* Shuts the connection down after ms, unless the deadline is changed or switched off. */
void http_set_deadline(struct connection *c, int64_t ms);
/* Ends a request, answered or not. Takes NULL. */
void http_request_free(struct request *q);
/* Takes the response. */
void http_answer(struct request *q, int status, const struct http_header *headers, uint32_t n,
                 struct MHD_Response *response);

/* Report the end of the tunnel to the handler, once; return the connection to the library. Both
 * accept requests without a tunnel. */
void http_tunnel_cut(struct request *q);
void http_tunnel_drop(struct request *q);

/* ---- http_accept.c ---- */

/* Start watching listen_fd; stop and close it. */
void http_accept_start(struct http_server *s);
void http_accept_stop(struct http_server *s);
/* MHD_NotifyConnectionCallback. */
void http_on_connection(void *cls, struct MHD_Connection *mhd, void **ctx,
                        enum MHD_ConnectionNotificationCode what);
struct connection *http_connection_of(struct MHD_Connection *mhd);
/* gnutls_certificate_retrieve_function2, called in each handshake. */
int http_show_identity(gnutls_session_t tls, const gnutls_datum_t *authorities, int nauthorities,
                       const gnutls_pk_algorithm_t *algorithms, int nalgorithms,
                       gnutls_pcert_st **chain, unsigned *n, gnutls_privkey_t *key);
/* Sends an answer directly, for a request that the library does not pass on; then shuts the
 * connection down. */
void http_answer_raw(struct connection *c, int status);

/* ---- http_group.c ---- */

/* The group of a user or address; NULL when there is none. */
struct http_group *http_group_find(const struct http_server *s, bool user, struct hk_str name);
/* The same, created if needed; a connection must join it then. */
struct http_group *http_group_get(struct http_server *s, bool user, struct hk_str name);
/* Moves the connection into the group; NULL only removes it. */
void http_group_join(struct connection *c, struct http_group *g);
/* Mark the connection as idle, so that it may be closed to make room; or as busy. */
void http_group_list(struct connection *c);
void http_group_unlist(struct connection *c);
/* Shuts the longest idle connection of the group; false when none is idle. */
bool http_group_make_room(struct http_group *g);
/* The same in any group: first the address with the most connections, then the user with the
 * most. */
bool http_make_room(struct http_server *s);
void http_groups_fini(struct http_groups *g);

/* ---- http_check.c ---- */

/* Whether the library's memory can hold the target with its parameters and headers of usual
 * size. */
bool http_target_fits(struct hk_str target);
/* 0, or the status for a malformed request: lines that end in a bare LF, NULs, folded lines, two
 * lengths, a length and an encoding. method and version are those from the library. */
int http_check_head(const struct request *q, const char *method, const char *version);
