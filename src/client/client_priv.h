// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the client only: client.c (calls, queues, messages), client_call.c (one
// attempt over HTTP and its outcome), client_watch.c (streams), client_auth.c (credentials),
// client_multi.c (handles of libcurl), client_meter.c (metrics), get_stream.c (plain streams of
// bytes).
//
//   QUEUED --turn, credentials, room--> ACTIVE --outcome--> DONE (its last message waits)
//      ^------------ WAITING <--again, after a pause---'
#pragma once

#include "base/map.h"
#include "base/prom.h"
#include "base/vec.h"
#include "client/client.h"
#include "client/curl_loop.h"
#include "client/exec_plugin.h"
#include "client/frame.h"
#include "client/list_reader.h"
#include "client/pem_file.h"
#include "client/target.h"

#include <curl/curl.h>

enum call_state { CALL_QUEUED, CALL_ACTIVE, CALL_WAITING, CALL_DONE };

/* Order of sending. Watches need neither slot nor token. Leases need no token and have their own
 * slots, so that renewing leases of a thousand nodes at a slow server neither needs a connection
 * for each nor delays other calls. */
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
    bool eviction;  /* its 429 may be a final answer */
    bool refreshed; /* credentials were renewed once for this call */
    uint64_t epoch; /* credentials used in this attempt */
    struct target target;
    size_t sent; /* bytes of the body */
    uint32_t attempts;
    int64_t asked_ns, queued_ns; /* times of submission and of entering the queue */
    struct net_timer *timer;     /* pause, or timeout of a silent watch */

    /* The current attempt. */
    struct easy *easy;
    struct curl_slist *headers;
    struct hk_buf answer; /* without items of a list */
    struct list_reader list;
    struct hk_err unreadable; /* why the rest of the answer is ignored; code 0: it is read */
    int http;                 /* 0: no answer yet */
    int32_t retry_after_s;    /* -1: not given */
    HK_VEC(char *) warnings;

    /* A watch. */
    struct frame frame;
    int64_t heard_ns;
    bool paused;
    struct message *last; /* final message that the stream itself sent */

    /* A stream of bytes, else NULL. */
    void (*on_bytes)(void *ctx, struct hk_str bytes);
    bool held; /* paused by get_stream_hold */
};

struct call_list {
    struct call *head, *tail;
};

/* A message waiting for port_poll; owns what msg points to. */
struct message {
    struct port_msg msg;
    struct hk_arena mem;
    struct hk_err err;
    struct port_status status;
    size_t bytes;
};

/* A reused libcurl handle. */
struct easy {
    CURL *curl;
    uint64_t generation; /* credentials it was set up with */
    char error[CURL_ERROR_SIZE];
};

struct client_auth {
    uint64_t generation; /* grows when TLS material changes: set up handles again */
    uint64_t epoch;      /* grows with every new credential */
    char *token;
    struct pem_file ca, cert, key;
    /* The token file when last read, and the time of the last check. */
    int64_t looked_ns;
    int64_t file_mtime_ns;
    uint64_t file_ino;
    /* From a credential plugin. */
    bool have;
    int64_t expires_ns;
    struct exec_plugin *plugin;
};

/* Number of counted HTTP methods. */
enum { METER_METHODS = 5 };

/* Answers of one code to one method; code 0: no answer. */
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
    size_t list_bytes; /* of items in unfinished lists */
    int event_fd;
    bool event_set;

    struct curl_loop *curl;
    HK_VEC(struct easy *) idle;
    char *base_url;
    char *host_header; /* this and the next: set when the TLS server name differs, else NULL */
    struct curl_slist *connect_to_list;
};

/* ---- client.c ---- */

/* Adds a call to the table, not yet queued; the caller sets its target. */
struct call *client_call(struct client *c, const struct port_request *req, struct port_sink sink);
/* Queues the call, at the front or the back. */
void client_queue(struct call *k, bool front);
/* Processes the queues in the next loop iteration. */
void client_pump_soon(struct client *c);
struct message *client_message(struct call *k, enum port_msg_type type);
/* Takes the message. */
void client_send(struct client *c, struct message *m);
/* Sends the call's last message; the caller has set rc and err. Takes m. */
void client_finish(struct call *k, struct message *m);
/* Makes a last message with this error. */
struct message *client_failure(struct call *k, enum hk_code code, const char *fmt, ...)
    HK_PRINTF(3, 4);
void client_message_free(struct message *m);
/* Ends every queued call with this error. */
void client_fail_line(struct client *c, const struct hk_err *err);

/* ---- client_call.c ---- */

void call_start(struct call *k);
/* libcurl has finished the attempt. */
void call_end(struct call *k, CURLcode rc);
/* Releases the libcurl handle, if any. */
void call_release(struct call *k);

/* The call has its own connection while it lasts. */
static inline bool call_is_stream(const struct call *k)
{
    return k->verb == PORT_WATCH || k->on_bytes;
}

/* ---- client_watch.c ---- */

void watch_begin(struct call *k);
/* Stops reading from the socket until watch_resume. */
void watch_pause(struct call *k);
/* Bytes of a stream; false ends the transfer. */
bool watch_bytes(struct call *k, struct hk_str bytes);
/* The last message of a stream that libcurl ended. */
struct message *watch_outcome(struct call *k, CURLcode rc, const char *why);
/* Resumes paused watches after port_poll made room. */
void watch_resume(struct client *c);

/* ---- get_stream.c ---- */

/* The last message of a stream of bytes that had started. */
struct message *get_stream_outcome(struct call *k, CURLcode rc, const char *why);

/* ---- client_auth.c ---- */

enum auth_ready { AUTH_READY, AUTH_PENDING, AUTH_FAILED };

void auth_init(struct client *c);
/* Makes certificates and keys of the configuration available to libcurl. */
int auth_load(struct client *c, struct hk_err *err) HK_CHECKED;
void auth_fini(struct client *c);
/* Whether credentials are available. If a plugin must run first, starts it, and processes the
 * queues again when it has finished. */
enum auth_ready auth_ready(struct client *c, struct hk_err *err);
/* After a 401 for credentials of that epoch: true when newer ones may be available. */
bool auth_renew(struct client *c, uint64_t epoch);
/* Set options and headers of a request. */
void auth_apply_tls(const struct client *c, CURL *curl);
struct curl_slist *auth_add_headers(const struct client *c, struct curl_slist *list);

/* ---- client_multi.c ---- */

int multi_init(struct client *c, struct hk_err *err) HK_CHECKED;
void multi_fini(struct client *c);
/* Returns a handle with all options that are common to calls. */
struct easy *multi_take(struct client *c);
/* Takes NULL. */
void multi_give(struct client *c, struct easy *e);

/* ---- client_meter.c ---- */

void meter_init(struct client *c);
void meter_fini(struct client *c);
/* The call leaves the queue. */
void meter_turn(const struct call *k);
/* An attempt has ended, with an answer or without (http 0). */
void meter_answer(const struct call *k);
/* Another attempt follows. */
void meter_retry(const struct call *k);
/* The call is over. */
void meter_end(const struct call *k);
