// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the server only: one request from its path to its answer.
//
//   server.c    route, choose the file that answers
//   access.c    the user, and whether they may
//   request.c   HTTP to port_request
//   body.c      bodies to trees
//   answer.c    outcomes to bodies
//   answer_proto.c  the same in protobuf
//   list_stream.c  long lists to streams
//   watch_stream.c  watches to streams
//   watch_socket.c  watches over WebSockets
#pragma once

#include "api/rights.h"
#include "apiserver/accept.h"
#include "apiserver/rbac.h"
#include "apiserver/route.h"
#include "apiserver/server.h"

struct counters {
    uint64_t requests[6]; /* by first digit of the status; [0]: started streams */
    uint32_t in_flight;
    uint32_t watches;
    uint64_t events_sent;
    uint64_t list_slices;        /* slices in which long lists were written */
    size_t list_slice_bytes_max; /* bytes of objects examined for one slice */
};

struct server {
    struct server_opts opts;
    struct http_server *http;
    struct port *port;
    struct rbac *rbac;
    struct net_watch *port_watch;
    struct net_timer *tick, *compact, *memory;
    struct openapi *openapi;
    struct forwarder *forwarder;
    struct aggregate *aggregate;
    struct signer *signer;    /* NULL: none */
    struct exchange *pending; /* waiting for the port */
    struct hk_arena_pool mem; /* for exchanges */
    struct counters counters;
    int64_t started_ns;
    bool stopping;
    int disk_failed;    /* code of the failure last logged, 0 none */
    bool memory_failed; /* the log says that memory is short */
    uint32_t max_in_flight;
    size_t max_unread;
};

/* One request; freed after its answer, or at the end of its stream. */
struct exchange {
    struct server *server;
    struct http_request *http;
    struct hk_arena mem;
    struct hk_arena body_mem; /* the tree of the body; freed after port_submit */
    struct route route;
    struct query query;
    struct auth_user user;
    struct accept accept;
    const struct rest_kind *kind;
    struct port_request req;
    struct rights rights; /* these two are borrowed by req */
    struct port_user person;
    uint64_t call; /* the port's call, 0 before submission; then listed in server->pending */
    struct exchange *prev, *next;
    struct net_timer *deadline;
    struct port_status refusal;
};

/* ---- exchange.c ---- */

/* Sets x->refusal, which the caller must answer; returns negative. */
int exchange_refuse(struct exchange *x, int code, const char *reason, const char *fmt, ...)
    HK_PRINTF(4, 5);
/* The port was asked: adds x to server->pending. */
void exchange_wait(struct exchange *x);
/* The port has answered: removes x from server->pending. */
void exchange_settle(struct exchange *x);
void exchange_free(struct exchange *x);

/* The request's media type, without parameters. */
struct hk_str body_type(const struct exchange *x);
bool body_type_is(struct hk_str type, const char *want);
int body_refuse_type(struct exchange *x, const char *accepted);
/* Decodes the body from any supported media type; negative after exchange_refuse(). must_be is the kind
 * named in errors. */
int body_decode(struct exchange *x, const char *must_be, struct json *ret) HK_CHECKED;
/* Refuses a body that memory is too short for. */
int body_check_memory(struct exchange *x) HK_CHECKED;
/* A body in JSON. Notes duplicate members in x->req if the request wants them checked. */
int body_parse_json(struct exchange *x, struct json *ret, struct hk_err *err) HK_CHECKED;
int body_decode_yaml(struct exchange *x, const char *must_be, struct json *ret) HK_CHECKED;

/* Fills in x->req from method, route, query and body; negative after exchange_refuse(). */
int request_build(struct exchange *x) HK_CHECKED;
/* The same for a stream to a pod: its options, of that kind, are made of the query. */
void request_build_connect(struct exchange *x, const char *kind);
/* The query for the options of a command, as admission has changed them. */
struct hk_str request_connect_query(struct exchange *x, const struct json *options);

/* Each sends the answer and frees x. */
void answer_status(struct exchange *x, const struct port_status *s);
void answer_refusal(struct exchange *x);
void answer_done(struct exchange *x, const struct port_msg *m);
/* Takes the bytes of body. JSON is rewritten when the client wants it pretty or as YAML. */
void answer_json(struct exchange *x, int code, struct hk_buf *body);
void answer_text(struct exchange *x, int code, const char *type, struct hk_buf *body);
/* The same with only these headers. */
void answer_bytes(struct exchange *x, int code, const struct http_header *headers, uint32_t n,
                  struct hk_buf *body);

void status_write(const struct port_status *s, struct hk_buf *out);
/* Appends the object in the requested form. */
void object_write(struct exchange *x, struct api_object *o, struct hk_buf *out);

/* Whether objects of the kind exist in protobuf. */
bool proto_has(const struct api_kind *k);
/* Appends the object in the requested form, with its envelope. */
void proto_write_object(const struct exchange *x, const struct api_object *o, struct hk_buf *out);
void proto_write_tree(const struct exchange *x, const struct api_kind *k, const struct json *tree,
                      struct hk_buf *out);
void proto_write_status(const struct port_status *s, struct hk_buf *out);
/* Writes the list into body; true: it is long, and is being sent as a stream. headers has room for
 * two more behind its n. */
bool proto_answer_list(struct exchange *x, const struct port_msg *m, struct http_header *headers,
                       uint32_t n, struct hk_buf *body);

/* A list up to its first item, or a table up to its first row, compact. "]}" ends it. */
void list_write_head(struct exchange *x, const struct port_msg *m, struct hk_buf *out);
/* One of its items or rows. */
void list_write_item(struct exchange *x, struct api_object *o, struct hk_buf *out);
/* Whether the list should be sent as a stream. */
bool list_is_long(const struct port_msg *m);
/* Sends it, in the form asked for. headers has room for two more behind its n. */
void list_stream_begin(struct exchange *x, const struct port_msg *m, struct http_header *headers,
                       uint32_t n);

/* Answers x->req, a watch, with a stream. */
void watch_stream_begin(struct exchange *x);

/* /version, /healthz and similar paths: true when answered. */
bool health_answer(struct exchange *x);
void health_metrics(struct exchange *x);
/* /openapi: true when answered. */
bool openapi_serve(struct exchange *x);
/* /backup: true when answered. */
bool backup_serve(struct exchange *x);
/* The review resources of authentication.k8s.io and authorization.k8s.io: true when answered. */
bool review_answer(struct exchange *x);
