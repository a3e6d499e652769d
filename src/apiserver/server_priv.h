// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the server only: one request on its way from its target to its answer.
//
//   server.c    route, choose who answers
//   access.c    who asks, and whether they may
//   request.c   HTTP to port_request
//   body.c      bodies to trees
//   answer.c    outcomes to bodies
//   watch_stream.c  watches to streams
#pragma once

#include "apiserver/accept.h"
#include "apiserver/rbac.h"
#include "apiserver/route.h"
#include "apiserver/server.h"

struct counters {
    uint64_t requests[6]; /* by first digit of the status; [0]: streams begun */
    uint32_t in_flight;
    uint32_t watches;
    uint64_t events_sent;
};

struct server {
    struct server_opts opts;
    struct http_server *http;
    struct port *port;
    struct rbac *rbac;
    struct net_watch *port_watch;
    struct net_timer *tick, *compact;
    struct openapi *openapi;
    struct exchange *pending; /* waiting for the port */
    struct hk_arena_pool mem; /* for exchanges */
    struct counters counters;
    int64_t started_ns;
    bool stopping;
    bool disk_failed; /* and that was logged */
};

/* One request; freed when its answer is given, or its stream has ended. */
struct exchange {
    struct server *server;
    struct http_request *http;
    struct hk_arena mem;
    struct route route;
    struct query query;
    struct auth_user user;
    struct accept accept;
    const struct rest_kind *kind;
    struct port_request req;
    uint64_t call; /* of the port, 0 before; then it is one of server->pending */
    struct exchange *prev, *next;
    struct net_timer *deadline;
    struct port_status refusal;
};

/* Words a refusal, to be answered by whoever called; returns negative. */
int refuse(struct exchange *x, int code, const char *reason, const char *fmt, ...) HK_PRINTF(4, 5);
/* The port has answered: what is left is sending. */
void exchange_settle(struct exchange *x);
void exchange_free(struct exchange *x);

/* The request's media type, without parameters. */
struct hk_str body_type(const struct exchange *x);
bool body_type_is(struct hk_str type, const char *want);
int body_refuse_type(struct exchange *x, const char *accepted);
/* The body as a tree, whatever it is written in; negative after refuse(). must_be is the kind named
 * in complaints. */
int body_decode(struct exchange *x, const char *must_be, struct json *ret) HK_CHECKED;
/* A body in JSON; what it has twice is noted in x->req unless nobody wants to know. */
int body_parse_json(struct exchange *x, struct json *ret, struct hk_err *err) HK_CHECKED;
int body_decode_yaml(struct exchange *x, const char *must_be, struct json *ret) HK_CHECKED;

/* Fills in x->req from method, route, query and body; negative after refuse(). */
int request_build(struct exchange *x) HK_CHECKED;

/* Each gives the answer and frees x. */
void answer_status(struct exchange *x, const struct port_status *s);
void answer_refusal(struct exchange *x);
void answer_done(struct exchange *x, const struct port_msg *m);
/* Takes the bytes of body. JSON is rewritten when the client wants it pretty or as YAML. */
void answer_json(struct exchange *x, int code, struct hk_buf *body);
void answer_text(struct exchange *x, int code, const char *type, struct hk_buf *body);
/* The same with no headers but these. */
void answer_bytes(struct exchange *x, int code, const struct http_header *headers, uint32_t n,
                  struct hk_buf *body);

void status_write(const struct port_status *s, struct hk_buf *out);
/* The object in the form asked for, appended; text is its JSON. */
void object_write(struct exchange *x, struct api_object *o, struct hk_buf *out);

/* Answers x->req, a watch, with a stream. */
void watch_stream_begin(struct exchange *x);

/* /version, /healthz and its kin: true when answered. */
bool health_answer(struct exchange *x);
void health_metrics(struct exchange *x);
/* /openapi: true when answered. */
bool openapi_serve(struct exchange *x);
/* The review resources of authentication.k8s.io and authorization.k8s.io: true when answered. */
bool review_answer(struct exchange *x);
