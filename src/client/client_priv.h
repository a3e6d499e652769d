// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the client only: client.c (calls, the line, messages), client_call.c (one
// attempt over HTTP and what follows from its outcome), client_watch.c (streams), client_auth.c
// (credentials), client_multi.c (libcurl on our loop), client_meter.c (what is counted),
// get_stream.c (plain streams of bytes).
//
//   QUEUED --turn, credentials, room--> ACTIVE --outcome--> DONE (its last message waits)
//      ^------------ WAITING <--again, after a pause---'
#pragma once

#include "base/map.h"
#include "base/prom.h"
#include "base/vec.h"
#include "client/client.h"
#include "client/exec_plugin.h"
#include "client/frame.h"
#include "client/target.h"

#include <curl/curl.h>

enum call_state { CALL_QUEUED, CALL_ACTIVE, CALL_WAITING, CALL_DONE };

/* What goes first. Watches need neither slot nor token. Leases need no token, and slots of their
 * own: who renews those of a thousand nodes at a slow server makes neither a connection for each
 * nor everything else wait. */
enum call_rank { RANK_AT_ONCE, RANK_LEASE, RANK_HIGH, RANK_NORMAL, RANK_LOW, NRANKS };

struct easy;

struct call {
    struct client *c;
    uint64_t id;
    uint32_t slot; /* in the client's table */
    struct call *prev, *next;
    struct port_sink sink;
    const struct api_kind *kind;
    uint8_t verb, state, rank;
    bool text_only, bookmarks, initial_mark;
    bool eviction;  /* its 429 may be an answer */
    bool refreshed; /* credentials were renewed for it once */
    uint64_t epoch; /* of the credentials of this attempt */
    struct target target;
    size_t sent; /* of the body */
    uint32_t attempts;
    int64_t asked_ns, queued_ns; /* since when there is the call, and it is in line */
    struct net_timer *timer;     /* pause, or silence of a watch */

    /* The attempt under way. */
    struct easy *easy;
    struct curl_slist *headers;
    struct hk_buf answer;
    int http; /* 0: no answer yet */
    bool too_large;
    int32_t retry_after_s; /* -1: the server did not say */
    HK_VEC(char *) warnings;

    /* A watch. */
    struct frame frame;
    int64_t heard_ns;
    bool paused;
    struct message *last; /* why it ended, told by the stream itself */

    /* A stream of bytes, else NULL. */
    void (*on_bytes)(void *ctx, struct hk_str bytes);
    bool held; /* nobody takes them now */
};

struct call_list {
    struct call *head, *tail;
};

/* A message on its way to port_poll: the public one, with what it points to. */
struct message {
    struct port_msg msg;
    struct hk_arena mem;
    struct hk_err err;
    struct port_status status;
    size_t bytes;
};

/* A handle of libcurl, used again and again. */
struct easy {
    CURL *curl;
    uint64_t generation; /* of the credentials it was set up with */
    char error[CURL_ERROR_SIZE];
};

/* One descriptor of libcurl's on our loop. */
/* A socket of libcurl's that is watched. It may close one that never got connected without a word,
 * and give its number to the next: a copy of the descriptor is watched, which is ours to end. */
struct client_socket {
    struct client *c;
    int fd;   /* by which libcurl knows it */
    int copy; /* of it */
    uint32_t events;
    struct net_watch *watch;
};

/* PEM in memory that libcurl can open by name; -1: none. */
struct client_pem {
    int fd;
    char path[32];
};

struct client_auth {
    uint64_t generation; /* grows when TLS material changes: handles are set up anew */
    uint64_t epoch;      /* grows with every new credential */
    char *token;
    struct client_pem ca, cert, key;
    /* The token's file as it was read, and when we looked. */
    int64_t looked_ns;
    int64_t file_mtime_ns;
    uint64_t file_ino;
    /* Of a plugin. */
    bool have;
    int64_t expires_ns;
    struct exec_plugin *plugin;
};

/* Methods that requests are counted by. */
enum { METER_METHODS = 5 };

/* Answers of one code to one method; code 0: there was none. */
struct meter_count {
    unsigned method;
    int http;
    uint64_t answers, retries;
};

struct client_meter {
    char *host;
    HK_VEC(struct meter_count) counts;
    struct {
        struct hk_hist took_s, waited_s, sent_bytes, got_bytes;
    } of[METER_METHODS];
};

struct client {
    struct port port;
    struct client_opts o;
    struct kubeconfig config;
    struct client_auth auth;
    struct client_meter meter;

    uint64_t last_call;
    HK_VEC(struct call *) calls; /* by slot */
    HK_VEC(uint32_t) free_slots;
    struct hk_map slots; /* id to slot */
    struct call_list line[NRANKS];
    uint32_t active, leases, watches, npaused;
    double tokens;
    int64_t tokens_ns;
    struct net_timer *pump;

    HK_VEC(struct message *) queue;
    uint32_t queue_at;
    size_t waiting_bytes;
    int event_fd;
    bool event_set;

    CURLM *multi;
    HK_VEC(struct client_socket *) sockets;
    struct net_timer *multi_timer;
    HK_VEC(struct easy *) idle;
    char *base_url;
    char *host_header; /* these two when TLS knows the server by another name, else NULL */
    struct curl_slist *connect_to_list;
};

/* ---- client.c ---- */

/* A call in the table, not yet in line; its target is the caller's to make. */
struct call *client_call(struct client *c, const struct port_request *req, struct port_sink sink);
/* Back in line, in front or behind. */
void client_queue(struct call *k, bool front);
/* Looks at the line in the next turn of the loop. */
void client_pump_soon(struct client *c);
struct message *client_message(struct call *k, enum port_msg_type type);
/* Takes the message. */
void client_send(struct client *c, struct message *m);
/* The call's last message; rc and err are set by the caller. Takes m. */
void client_finish(struct call *k, struct message *m);
/* A last message that only fails. */
struct message *client_failure(struct call *k, enum hk_code code, const char *fmt, ...)
    HK_PRINTF(3, 4);
void client_message_free(struct message *m);
/* Every call in line ends with this error. */
void client_fail_line(struct client *c, const struct hk_err *err);

/* ---- client_call.c ---- */

void call_start(struct call *k);
/* libcurl is through with the attempt. */
void call_end(struct call *k, CURLcode rc);
/* Lets go of the handle, if there is one. */
void call_release(struct call *k);

/* It has a connection of its own, for as long as it lasts. */
static inline bool call_is_stream(const struct call *k)
{
    return k->verb == PORT_WATCH || k->on_bytes;
}

/* ---- client_watch.c ---- */

void watch_begin(struct call *k);
/* Leaves the bytes in the socket until watch_resume. */
void watch_pause(struct call *k);
/* Bytes of a stream; false ends the transfer. */
bool watch_bytes(struct call *k, struct hk_str bytes);
/* The last message of a stream that libcurl ended. */
struct message *watch_outcome(struct call *k, CURLcode rc, const char *why);
/* Goes on after port_poll made room. */
void watch_resume(struct client *c);

/* ---- get_stream.c ---- */

/* The last message of a stream of bytes that had begun. */
struct message *get_stream_outcome(struct call *k, CURLcode rc, const char *why);

/* ---- client_auth.c ---- */

enum auth_ready { AUTH_READY, AUTH_PENDING, AUTH_FAILED };

void auth_init(struct client *c);
/* Puts certificates and keys of the configuration where libcurl finds them. */
int auth_load(struct client *c, struct hk_err *err) HK_CHECKED;
void auth_fini(struct client *c);
/* Whether requests can be signed now; when a plugin has to run first, it is started, and the line
 * is looked at again when it is through. */
enum auth_ready auth_ready(struct client *c, struct hk_err *err);
/* After a 401 of credentials of that epoch: true when others may be had. */
bool auth_renew(struct client *c, uint64_t epoch);
/* Options and headers of a request. */
void auth_apply_tls(const struct client *c, CURL *curl);
struct curl_slist *auth_add_headers(const struct client *c, struct curl_slist *list);

/* ---- client_multi.c ---- */

int multi_init(struct client *c, struct hk_err *err) HK_CHECKED;
void multi_fini(struct client *c);
/* A handle set up with all that does not change from call to call. */
struct easy *multi_take(struct client *c);
/* Takes NULL. */
void multi_give(struct client *c, struct easy *e);

/* ---- client_meter.c ---- */

void meter_init(struct client *c);
void meter_fini(struct client *c);
/* Its turn has come after waiting in line. */
void meter_turn(const struct call *k);
/* One attempt has an answer, or will have none (http 0). */
void meter_answer(const struct call *k);
/* And there will be another. */
void meter_retry(const struct call *k);
/* The call is over. */
void meter_end(const struct call *k);
