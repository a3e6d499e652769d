// SPDX-License-Identifier: Apache-2.0
// Connects libmicrohttpd with the loop. The library has its own epoll set, which is a member of
// ours; it runs when that set is ready or its own timeout expires. This file adds what the library
// lacks: deadlines for whole requests, limits on bodies, and detection of a closed peer of a silent
// stream, because the library does not check suspended connections.
//
//   request line -> FRESH -> BODY -> (handler) -> ANSWERED -> queued -> completed
//                                        |            ^
//                                        +-> WAITING -+   suspended until http_reply
//
// A tunnel is an upgraded connection of the library: completed when it is closed.
#include "net/http_priv.h"

#include "base/log.h"
#include "net/identity.h"
#include "net/listen.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>

enum {
    CLOSING_MS = 1,
    STALL_MS = 20,
    POOL_BYTES = 32 * 1024,   /* per connection: limits headers, contains one stream chunk */
    STREAM_BLOCK = 16 * 1024, /* bytes requested from a stream at a time */
    DRAIN_FACTOR = 16,        /* bodies above max_body times this are not even read */
    SPARE_CONNECTIONS = 1024, /* the library's limit is this much above ours and never reached */
};

/* ---- running the library ---- */

void http_run(struct http_server *s)
{
    MHD_UNSIGNED_LONG_LONG ms;

    s->run_due = s->moved = false;
    MHD_run(s->mhd);
    if (s->run_due) {
        return; /* a request was resumed meanwhile */
    }
    const bool timed = MHD_get_timeout(s->mhd, &ms) == MHD_YES;
    if (timed || s->nclosing > 0) {
        /* The library needs several turns to close a tunnel, and requests one at a time. */
        const int64_t most = s->nclosing > 0 ? CLOSING_MS : INT_MAX;
        int64_t wait = timed ? (int64_t)HK_MIN(ms, (MHD_UNSIGNED_LONG_LONG)most) : most;
        /* During a TLS handshake the library requests to run all the time, and would use the CPU
         * until the peer continues. Its epoll set becomes ready when there is something to do. */
        if (wait == 0 && s->identity && s->nclosing == 0 && !s->moved) {
            wait = STALL_MS;
        }
        net_timer_at(s->timer, net_loop_now_ns(s->loop) + wait * 1000000);
    } else {
        net_timer_off(s->timer);
    }
}

static void http_on_ready(void *ctx, uint32_t events)
{
    http_run(ctx);
}

static void on_timeout(void *ctx)
{
    http_run(ctx);
}

void http_run_soon(struct http_server *s)
{
    if (!s->run_due) {
        s->run_due = true;
        net_timer_at(s->timer, net_loop_now_ns(s->loop));
    }
}

/* Resuming does not make the library's epoll set ready: the library must be run explicitly. */
static void http_resume_request(struct request *q)
{
    struct http_server *s = q->conn->server;

    if (!q->suspended) {
        return;
    }
    q->suspended = false;
    MHD_resume_connection(q->conn->mhd);
    http_run_soon(s);
}

/* ---- deadlines ---- */

void http_set_deadline(struct connection *c, int64_t ms)
{
    net_timer_at(c->deadline, net_loop_now_ns(c->server->loop) + ms * 1000000);
}

/* Once per connection: verifying the chain is expensive. */
static const struct cert_subject *subject_of(struct connection *c)
{
    if (!c->subject_known && c->server->opts.client_ca_pem) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        if (info && info->tls_session) {
            cert_peer(info->tls_session, &c->subject);
        }
        c->subject_known = true;
    }
    return &c->subject;
}

/* ---- requests ---- */

/* The request line was received: the only place where the library shows the unchanged target. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct http_server *s = cls;
    struct connection *c = http_connection_of(mhd);
    struct request *q = hk_zalloc(sizeof(*q));

    http_request_free(c->request);
    q->conn = c;
    c->request = q;
    q->uri = hk_strdup(uri);
    if (!http_target_fits(hk_str(uri))) {
        q->over = true;
        http_answer_raw(c, MHD_HTTP_URI_TOO_LONG); /* the library might lack the memory to answer */
    }
    struct hk_str rest = hk_str(q->uri);
    hk_str_cut(&rest, '?', &q->pub.path);
    q->pub.query = rest.s ? rest : HK_STR("");
    http_set_deadline(q->conn, s->opts.header_timeout_ms);
    return q;
}

/* Stops the library from decoding: the router does that, segment by segment. */
static size_t keep_raw(void *cls, struct MHD_Connection *mhd, char *s)
{
    return strlen(s);
}

struct hk_str http_request_header(const struct http_request *pub, const char *name)
{
    const struct request *q = (const struct request *)pub;
    const char *v = MHD_lookup_connection_value(q->conn->mhd, MHD_HEADER_KIND, name);

    return v ? hk_str(v) : HK_STR("");
}

struct header_walk {
    void (*fn)(void *ctx, struct hk_str name, struct hk_str value);
    void *ctx;
};

static enum MHD_Result http_on_header(void *cls, enum MHD_ValueKind kind, const char *key,
                                      const char *value)
{
    const struct header_walk *w = cls;

    w->fn(w->ctx, hk_str(key), hk_str(value ? value : ""));
    return MHD_YES;
}

void http_request_headers(const struct http_request *pub,
                          void (*fn)(void *ctx, struct hk_str name, struct hk_str value), void *ctx)
{
    const struct request *q = (const struct request *)pub;
    struct header_walk w = {fn, ctx};

    MHD_get_connection_values(q->conn->mhd, MHD_HEADER_KIND, http_on_header, &w);
}

static enum MHD_Result queue_answer(struct request *q)
{
    q->conn->head_next = q->reply_bytes > 0 && !hk_str_is(q->pub.method, "HEAD");
    const enum MHD_Result ok = MHD_queue_response(q->conn->mhd, (unsigned)q->status, q->response);

    MHD_destroy_response(q->response); /* the connection holds its own reference */
    q->response = NULL;
    return ok;
}

/* After an invalid request the start of the next one is unknown. */
static void http_reply_error(struct request *q, int status)
{
    struct http_header headers[2] = {{HK_STR("Content-Type"), HK_STR("application/json")}};
    struct hk_buf body = {0};
    uint32_t n = 1;

    if (status == MHD_HTTP_TOO_MANY_REQUESTS) {
        headers[n++] = (struct http_header){HK_STR("Retry-After"), HK_STR("1")};
    } else if (status == MHD_HTTP_BAD_REQUEST) {
        headers[n++] = (struct http_header){HK_STR("Connection"), HK_STR("close")};
    }
    q->conn->server->opts.refusal(q->conn->server->opts.ctx, status, &body);
    http_reply(&q->pub, status, headers, n, &body);
}

/* Fills in the whole request, or what is known of it before its body arrives. */
static void http_fill_request(struct request *q)
{
    const struct cert_subject *who = subject_of(q->conn);

    q->pub.body = hk_buf_str(&q->body);
    q->pub.peer = hk_str(q->conn->peer);
    q->pub.client_cert_cn = who->cn;
    q->pub.client_cert_orgs = (const char *const *)who->orgs;
    q->pub.nclient_cert_orgs = who->norgs;
}

static void http_suspend_request(struct request *q)
{
    q->suspended = true;
    MHD_suspend_connection(q->conn->mhd);
}

static void http_call_handler(struct request *q)
{
    struct http_server *s = q->conn->server;

    net_timer_off(q->conn->deadline);
    http_group_unlist(q->conn);
    s->nrequests++;
    q->stage = WAITING;
    q->in_handler = true;
    if (q->refusal != 0) {
        http_reply_error(q, q->refusal);
    } else {
        http_fill_request(q);
        s->opts.handle(s->opts.ctx, &q->pub);
    }
    q->in_handler = false;
}

/* The body is complete or will not be read: calls the handler. */
static enum MHD_Result hand_over(struct request *q)
{
    if (q->conn->server->freeing) {
        return MHD_NO; /* the request arrived after all others were cut, and would have to wait */
    }
    http_call_handler(q);
    if (q->stage == ANSWERED) {
        return queue_answer(q);
    }
    http_suspend_request(q);
    return MHD_YES;
}

/* ---- streamed bodies ---- */

static bool is_streamed(struct request *q)
{
    const struct http_opts *o = &q->conn->server->opts;
    int64_t n = 0;

    if (!o->streams) {
        return false;
    }
    const struct hk_str length = http_request_header(&q->pub, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const bool has_body =
        length.n > 0 ? !hk_str_int(length, &n) || n > 0
                     : http_request_header(&q->pub, MHD_HTTP_HEADER_TRANSFER_ENCODING).n > 0;
    if (!has_body) {
        return false;
    }
    http_fill_request(q);
    return o->streams(o->ctx, &q->pub);
}

/* A peer that waits for "100 Continue" gets an early answer at once; others might not see it before
 * they have sent the body. */
static enum MHD_Result http_begin_body(struct request *q)
{
    if (q->stage == ANSWERED && http_request_header(&q->pub, MHD_HTTP_HEADER_EXPECT).n > 0) {
        q->body_over = true;
        return queue_answer(q);
    }
    if (q->stage == WAITING && q->held) {
        q->begins_again = true;
        http_suspend_request(q);
    }
    return MHD_YES;
}

/* Calls the handler before the body arrives. */
static enum MHD_Result http_begin_streamed(struct request *q)
{
    if (q->conn->server->freeing) {
        return MHD_NO;
    }
    q->pub.streamed = true;
    http_call_handler(q);
    return http_begin_body(q);
}

static enum MHD_Result http_end_streamed_body(struct request *q)
{
    q->body_over = true;
    net_timer_off(q->conn->deadline);
    if (q->sink.take) {
        q->sink.take(q->sink.ctx, NULL, 0);
    }
    if (q->stage == ANSWERED) {
        return queue_answer(q);
    }
    http_suspend_request(q);
    return MHD_YES;
}

/* A body that nobody reads. */
static enum MHD_Result http_drop_rest(struct request *q, size_t *n)
{
    q->dropped += *n;
    *n = 0;
    return q->dropped > q->conn->server->opts.max_body * DRAIN_FACTOR ? MHD_NO : MHD_YES;
}

static enum MHD_Result http_pass_body(struct request *q, const char *data, size_t *n)
{
    if (q->cut) {
        return MHD_NO;
    }
    if (q->begins_again) {
        q->begins_again = false;
        return *n == 0 ? http_begin_body(q) : MHD_YES;
    }
    if (*n == 0) {
        return http_end_streamed_body(q);
    }
    if (!q->sink.take) {
        return http_drop_rest(q, n);
    }
    *n -= q->sink.take(q->sink.ctx, data, *n);
    if (q->stage == ANSWERED) {
        *n = 0;
    } else if (*n > 0) {
        net_timer_off(q->conn->deadline);
        http_suspend_request(q);
    } else {
        http_set_deadline(q->conn, q->conn->server->opts.idle_timeout_ms);
    }
    return MHD_YES;
}

static void drop_body(struct request *q)
{
    q->conn->server->body_bytes -= q->counted;
    q->conn->group->body_bytes -= q->counted;
    q->counted = 0;
    hk_buf_fini(&q->body);
}

/* Called once, before memory is used for a body. */
static int admit_body(struct request *q)
{
    const struct http_server *s = q->conn->server;
    int refusal = 0;

    if (!q->admitted && s->opts.admit) {
        http_fill_request(q);
        refusal = s->opts.admit(s->opts.ctx, &q->pub);
    }
    q->admitted = refusal == 0;
    return refusal;
}

/* Counts a body of that size, announced or received, before memory is allocated for it. Returns 0,
 * or the status to refuse it with. */
static int count_body(struct request *q, size_t size)
{
    struct http_server *s = q->conn->server;
    const int refusal = admit_body(q);

    if (refusal != 0) {
        return refusal;
    }
    if (size > s->opts.max_body) {
        return MHD_HTTP_CONTENT_TOO_LARGE;
    }
    if (size > q->counted) {
        struct http_group *g = q->conn->group; /* may have become the user's group */
        const size_t more = size - q->counted, each = s->opts.max_bodies_each;
        if (s->body_bytes + more > s->opts.max_bodies ||
            (each > 0 && g->body_bytes + more > each)) {
            return MHD_HTTP_TOO_MANY_REQUESTS;
        }
        q->counted += more;
        s->body_bytes += more;
        g->body_bytes += more;
    }
    return 0;
}

/* A refused body is still read and dropped, because a peer that is still sending would not see the
 * answer. The deadline limits that. */
static void http_append_body(struct request *q, const char *data, size_t n)
{
    if (q->refusal == 0) {
        q->refusal = count_body(q, q->body.len + n);
        if (q->refusal != 0) {
            drop_body(q);
        }
    }
    if (q->refusal == 0) {
        hk_buf_add(&q->body, data, n);
    }
}

static enum MHD_Result http_begin_request(struct request *q, const char *method,
                                          const char *version)
{
    const struct hk_str length = http_request_header(&q->pub, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const bool asks = http_request_header(&q->pub, MHD_HTTP_HEADER_EXPECT).n > 0;
    const size_t max = q->conn->server->opts.max_body;
    int64_t n = 0;

    q->pub.method = hk_str(method);
    q->stage = BODY;
    q->refusal = http_check_head(q, method, version);
    if (q->refusal != 0) {
        return hand_over(q);
    }
    if (is_streamed(q)) {
        return http_begin_streamed(q);
    }
    if (length.n > 0 && !hk_str_int(length, &n)) {
        n = INT64_MAX;
    }
    if (n == 0) {
        return MHD_YES;
    }
    if ((uint64_t)n > max) {
        q->refusal = MHD_HTTP_CONTENT_TOO_LARGE;
        return asks || (uint64_t)n > max * DRAIN_FACTOR ? hand_over(q) : MHD_YES;
    }
    q->refusal = count_body(q, (size_t)n);
    return asks && q->refusal != 0 ? hand_over(q) : MHD_YES;
}

static enum MHD_Result http_on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                       const char *method, const char *version, const char *data,
                                       size_t *n, void **ctx)
{
    struct request *q = *ctx;

    q->conn->server->moved = true;
    if (q->over) {
        return MHD_NO;
    }
    switch (q->stage) {
    case FRESH:
        return http_begin_request(q, method, version);
    case BODY:
        if (*n == 0) {
            return hand_over(q);
        }
        http_append_body(q, data, *n);
        *n = 0;
        return MHD_YES;
    case WAITING:
        if (q->pub.streamed && !q->body_over) {
            return http_pass_body(q, data, n);
        }
        return MHD_NO; /* resumed without an answer: the server is shutting down */
    case ANSWERED:
        if (q->pub.streamed && !q->body_over && *n > 0) {
            return http_drop_rest(q, n);
        }
        break;
    }
    return queue_answer(q);
}

void http_request_free(struct request *q)
{
    if (!q) {
        return;
    }
    if (q->stage >= WAITING) {
        q->conn->server->nrequests--;
    }
    q->conn->server->nclosing -= q->closing;
    net_watch_del(q->hangup);
    if (q->stream.ended) {
        q->stream.ended(q->stream.ctx);
    }
    http_tunnel_cut(q);
    if (q->sink.gone) {
        q->sink.gone(q->sink.ctx);
    }
    if (q->response) {
        MHD_destroy_response(q->response);
    }
    drop_body(q);
    q->conn->request = NULL;
    q->conn->server->reply_bytes -= q->reply_bytes;
    hk_buf_fini(&q->out);
    hk_free(q->uri);
    hk_free(q);
}

/* Called for requests that the library answered, and for most others. */
static void on_completed(void *cls, struct MHD_Connection *mhd, void **ctx,
                         enum MHD_RequestTerminationCode why)
{
    struct request *q = *ctx;

    if (!q) {
        return;
    }
    struct connection *c = q->conn;
    *ctx = NULL;
    http_request_free(q);
    http_set_deadline(c, c->server->opts.idle_timeout_ms);
    http_group_list(c);
}

/* ---- answers ---- */

void http_answer(struct request *q, int status, const struct http_header *headers, uint32_t n,
                 struct MHD_Response *response)
{
    hk_assert(q->stage == WAITING && response);
    q->stage = ANSWERED;
    q->status = status;
    q->response = response;
    q->sink.gone = NULL;
    if (q->pub.streamed && !q->body_over) {
        http_set_deadline(q->conn, q->conn->server->opts.header_timeout_ms);
    }
    for (uint32_t k = 0; k < n; k++) {
        MHD_add_response_header(response, headers[k].name.s, headers[k].value.s);
    }
    if (!q->in_handler) {
        http_resume_request(q);
    }
}

void http_reply(struct http_request *pub, int status, const struct http_header *headers, uint32_t n,
                struct hk_buf *body)
{
    struct request *q = (struct request *)pub;
    struct MHD_Response *r;

    q->reply_bytes = body->len;
    q->conn->server->reply_bytes += body->len;
    if (body->len > 0) {
        r = MHD_create_response_from_buffer_with_free_callback(body->len, body->data, hk_free);
        *body = (struct hk_buf){0};
    } else {
        r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
        hk_buf_fini(body);
    }
    http_answer(q, status, headers, n, r);
}

/* The peer closed its side while we had nothing to send. */
static void on_hangup(void *ctx, uint32_t events)
{
    struct request *q = ctx;

    net_watch_del(q->hangup);
    q->hangup = NULL;
    q->cut = true;
    http_resume_request(q);
}

static void watch_hangup(struct request *q)
{
    net_watch_del(q->hangup);
    q->hangup = net_watch_add(q->conn->server->loop, q->conn->fd, EPOLLRDHUP, on_hangup, q);
}

void http_body_hold(struct http_request *pub)
{
    struct request *q = (struct request *)pub;

    hk_assert(q->in_handler);
    q->held = true;
}

void http_body_read(struct http_request *pub, const struct http_body *b)
{
    struct request *q = (struct request *)pub;

    hk_assert(q->in_handler || q->held);
    q->held = false;
    q->sink = *b;
    watch_hangup(q);
    http_body_resume(pub);
}

void http_body_resume(struct http_request *pub)
{
    struct request *q = (struct request *)pub;

    if (q->pub.streamed && !q->body_over) {
        http_set_deadline(q->conn, q->conn->server->opts.idle_timeout_ms);
        http_resume_request(q);
    }
}

/* Returns data that was pulled before; pulls more when that is used up. */
static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct request *q = cls;

    if (q->cut) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (q->out_at == q->out.len) {
        if (q->ending) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        hk_buf_clear(&q->out);
        q->out_at = 0;
        q->ending = !q->stream.pull(q->stream.ctx, &q->out, max);
    }
    const size_t n = HK_MIN(q->out.len - q->out_at, max);
    if (n > 0) {
        memcpy(buf, q->out.data + q->out_at, n);
        q->out_at += n;
        return (ssize_t)n;
    }
    if (q->cut) { /* by pull */
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (q->ending) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    /* An idle stream keeps only its position. */
    hk_buf_fini(&q->out);
    q->out_at = 0;
    q->suspended = true;
    MHD_suspend_connection(q->conn->mhd);
    return 0;
}

void http_reply_stream(struct http_request *pub, int status, const struct http_header *headers,
                       uint32_t n, const struct http_stream *s)
{
    struct request *q = (struct request *)pub;

    const uint64_t length = s->has_length ? s->length : MHD_SIZE_UNKNOWN;

    if (hk_str_is(q->pub.method, "HEAD")) { /* for HEAD the library would send the end of a body */
        http_answer(
            q, status, headers, n,
            s->has_length
                ? MHD_create_response_from_callback(length, STREAM_BLOCK, read_stream, q, NULL)
                : MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
        s->ended(s->ctx);
        return;
    }
    q->stream = *s;
    watch_hangup(q);
    http_answer(q, status, headers, n,
                MHD_create_response_from_callback(length, STREAM_BLOCK, read_stream, q, NULL));
}

void http_abort_stream(struct http_request *pub)
{
    struct request *q = (struct request *)pub;

    q->cut = true;
    http_resume_request(q);
}

void http_resume(struct http_request *pub)
{
    struct request *q = (struct request *)pub;

    if (q->stage == ANSWERED) {
        http_resume_request(q);
    }
}

/* ---- the server ---- */

HK_PRINTF(2, 0) static void on_log(void *cls, const char *fmt, va_list ap)
{
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};

    if (hk_log_level() >= HK_LOG_DEBUG) {
        hk_buf_vaddf(&line, fmt, ap);
        const struct hk_str text = hk_str_trim(hk_buf_str(&line));
        hk_log(HK_LOG_DEBUG, "http", "text=\"%.*s\"", HK_FMT(text));
    }
}

static int http_start_daemon(struct http_server *s, struct hk_err *err)
{
    const struct http_opts *o = &s->opts;
    const unsigned idle_s = (unsigned)((o->idle_timeout_ms + 999) / 1000);
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_ALLOW_UPGRADE | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)http_show_identity},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {o->client_ca_pem ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
         (void *)o->client_ca_pem},
        {MHD_OPTION_END, 0, NULL},
    };

    if (o->cert_pem) {
        flags |= MHD_USE_TLS;
    } else {
        tls[0].option = MHD_OPTION_END;
    }
    s->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, http_on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, s,
        MHD_OPTION_URI_LOG_CALLBACK, on_uri, s, MHD_OPTION_UNESCAPE_CALLBACK, keep_raw, s,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
        http_on_connection, s, MHD_OPTION_CONNECTION_LIMIT, o->max_connections + SPARE_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        idle_s, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (!s->mhd) {
        return hk_fail(err, HK_EIO, "cannot start the HTTP server: %s", strerror(errno));
    }
    s->watch =
        net_watch_add(s->loop, MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                      EPOLLIN, http_on_ready, s);
    http_accept_start(s);
    return 0;
}

int http_server_new(struct net_loop *loop, const struct http_opts *o, struct http_server **ret,
                    struct hk_err *err)
{
    struct http_server *s = hk_zalloc(sizeof(*s));

    s->loop = loop;
    s->opts = *o;
    s->listen_fd = -1;
    s->timer = net_timer_new(loop, on_timeout, s);
    int rc = o->cert_pem ? identity_new(o->cert_pem, o->key_pem, &s->identity, err) : 0;
    if (rc == 0) {
        rc = listen_on(o->addr, o->port, &s->listen_fd, &s->port, err);
    }
    if (rc == 0) {
        rc = http_start_daemon(s, err);
    }
    if (rc < 0) {
        http_server_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

int http_server_become(struct http_server *s, const char *cert_pem, const char *key_pem,
                       struct hk_err *err)
{
    struct identity *id = NULL;
    const int rc = identity_new(cert_pem, key_pem, &id, err);

    hk_assert(s->identity);
    if (rc == 0) {
        identity_unref(s->identity);
        s->identity = id;
    }
    return rc;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

uint32_t http_server_connections(const struct http_server *s)
{
    return s->nconnections;
}

size_t http_server_bodies(const struct http_server *s)
{
    return s->body_bytes;
}

size_t http_server_unread(const struct http_server *s)
{
    return s->reply_bytes;
}

void http_server_stop(struct http_server *s, int64_t grace_ms)
{
    const int64_t deadline = net_loop_now_ns(s->loop) + grace_ms * 1000000;
    struct hk_err err;

    http_accept_stop(s);
    for (struct connection *c = s->connections; c; c = c->next) {
        if (c->request && c->request->stream.pull && !c->request->stream.finite) {
            c->request->ending = true;
            c->request->cut |= c->request->stream.whole;
            http_resume_request(c->request);
        } else if (c->request && c->request->opened) {
            http_tunnel_cut(c->request);
            http_tunnel_drop(c->request);
        }
    }
    http_run(s);
    while (s->nrequests > 0) {
        const int64_t left_ms = (deadline - net_loop_now_ns(s->loop)) / 1000000;
        if (left_ms <= 0 || net_loop_turn(s->loop, (int)HK_MIN(left_ms, 1000), &err) < 0) {
            break;
        }
    }
}

/* The library cannot stop while connections are suspended. */
static void cut_all(struct http_server *s)
{
    for (struct connection *c = s->connections; c; c = c->next) {
        if (c->request) {
            c->request->cut = true;
            http_tunnel_cut(c->request);
            http_tunnel_drop(c->request);
            http_resume_request(c->request);
        }
    }
}

void http_server_free(struct http_server *s)
{
    if (!s) {
        return;
    }
    http_accept_stop(s);
    if (s->mhd) {
        s->freeing = true;
        cut_all(s);
        MHD_run(s->mhd);
        net_watch_del(s->watch);
        MHD_stop_daemon(s->mhd);
    }
    net_timer_free(s->timer);
    net_timer_free(s->accept_retry);
    http_groups_fini(&s->groups);
    identity_unref(s->identity);
    hk_free(s);
}
