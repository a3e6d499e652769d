// SPDX-License-Identifier: Apache-2.0
// Glue between libmicrohttpd and the loop. The library keeps an epoll set of its own, which sits in
// ours; it runs when that set is ready or its own time-out has come. What it leaves to us is done
// here: deadlines for whole requests, bounds on bodies and connections, and noticing that the peer
// of a silent stream has gone, for the library does not look at suspended connections.
//
//   request line -> FRESH -> BODY -> (handler) -> ANSWERED -> queued -> completed
//                                        |            ^
//                                        +-> WAITING -+   suspended until http_reply
//
// A tunnel is the library's upgraded connection: completed when it was closed.
#include "net/http_priv.h"

#include "base/log.h"
#include "net/identity.h"
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <limits.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CLOSING_MS = 1,
    STALL_MS = 20,
    POOL_BYTES = 32 * 1024,   /* per connection: bounds the headers, holds one chunk of a stream */
    STREAM_BLOCK = 16 * 1024, /* what a stream is asked for at a time */
    DRAIN_FACTOR = 16,        /* a body announced as larger than this is not even read */
    SPARE_CONNECTIONS = 8,    /* the library's limit is that far behind ours and never reached */
};

/* ---- running the library ---- */

static void run(struct http_server *s)
{
    MHD_UNSIGNED_LONG_LONG ms;

    s->run_due = s->moved = false;
    MHD_run(s->mhd);
    if (s->run_due) {
        return; /* somebody was woken meanwhile */
    }
    const bool timed = MHD_get_timeout(s->mhd, &ms) == MHD_YES;
    if (timed || s->nclosing > 0) {
        /* The library takes several turns to let go of a tunnel, and asks for one at a time. */
        const int64_t most = s->nclosing > 0 ? CLOSING_MS : INT_MAX;
        int64_t wait = timed ? (int64_t)HK_MIN(ms, (MHD_UNSIGNED_LONG_LONG)most) : most;
        /* While a peer is in its handshake the library asks to be run all the time, and would be
         * busy for as long as the peer takes to go on. What it does brings its epoll set to life.
         */
        if (wait == 0 && s->identity && s->nclosing == 0 && !s->moved) {
            wait = STALL_MS;
        }
        net_timer_at(s->timer, net_loop_now_ns(s->loop) + wait * 1000000);
    } else {
        net_timer_off(s->timer);
    }
}

static void on_ready(void *ctx, uint32_t events)
{
    run(ctx);
}

static void on_timeout(void *ctx)
{
    run(ctx);
}

void http_run_soon(struct http_server *s)
{
    if (!s->run_due) {
        s->run_due = true;
        net_timer_at(s->timer, net_loop_now_ns(s->loop));
    }
}

/* Resuming does not make the library's epoll set ready: it must be run for that. */
static void wake(struct request *q)
{
    struct http_server *s = q->conn->server;

    if (!q->suspended) {
        return;
    }
    q->suspended = false;
    MHD_resume_connection(q->conn->mhd);
    http_run_soon(s);
}

/* ---- connections ---- */

void http_set_deadline(struct connection *c, int64_t ms)
{
    net_timer_at(c->deadline, net_loop_now_ns(c->server->loop) + ms * 1000000);
}

/* The library closes what it finds shut. */
static void on_deadline(void *ctx)
{
    struct connection *c = ctx;

    shutdown(c->fd, SHUT_RDWR);
}

static void write_peer(struct connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    char host[INET6_ADDRSTRLEN] = "";
    uint16_t port = 0;

    if (info && info->client_addr->sa_family == AF_INET) {
        const struct sockaddr_in *a = (const void *)info->client_addr;
        inet_ntop(AF_INET, &a->sin_addr, host, sizeof(host));
        port = ntohs(a->sin_port);
    } else if (info && info->client_addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *a = (const void *)info->client_addr;
        inet_ntop(AF_INET6, &a->sin6_addr, host, sizeof(host));
        port = ntohs(a->sin6_port);
    }
    snprintf(c->peer, sizeof(c->peer), "%s:%u", host, port);
}

/* Who is turned away sees the connection closed at once. The library by itself would stop listening
 * and leave newcomers to wait. */
static enum MHD_Result on_accept(void *cls, const struct sockaddr *addr, socklen_t n)
{
    struct http_server *s = cls;

    if (s->nconnections < s->opts.max_connections) {
        return MHD_YES;
    }
    if (!s->full) {
        s->full = true;
        hk_log(HK_LOG_WARN, "too many connections, refusing new ones", "limit=%u",
               s->opts.max_connections);
    }
    return MHD_NO;
}

/* Over TLS the library sends the head of an answer and its body apart. The kernel is told to wait
 * for the second: one packet, and the peer wakes up once. */
static ssize_t push(gnutls_transport_ptr_t ptr, const giovec_t *parts, int n)
{
    struct connection *c = ptr;
    const struct msghdr m = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)n};
    const int more = c->head_next ? MSG_MORE : 0;

    c->head_next = false;
    c->server->moved = true;
    return sendmsg(c->fd, &m, MSG_NOSIGNAL | more);
}

/* Tells a run that brought something from one that did not. */
static ssize_t pull(gnutls_transport_ptr_t ptr, void *data, size_t n)
{
    struct connection *c = ptr;
    const ssize_t got = recv(c->fd, data, n, 0);

    c->server->moved |= got >= 0 || errno != EAGAIN;
    return got;
}

static void take_over_transport(struct connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

    if (info && info->tls_session) {
        gnutls_session_t tls = info->tls_session;

        gnutls_transport_set_ptr(tls, c);
        gnutls_transport_set_pull_function(tls, pull);
        gnutls_transport_set_vec_push_function(tls, push);
    }
}

/* Asked by GnuTLS in each handshake; take_over_transport left the connection where this finds it.
 */
static int show_identity(gnutls_session_t tls, const gnutls_datum_t *authorities, int nauthorities,
                         const gnutls_pk_algorithm_t *algorithms, int nalgorithms,
                         gnutls_pcert_st **chain, unsigned *n, gnutls_privkey_t *key)
{
    struct connection *c = gnutls_transport_get_ptr(tls);

    if (!c->shown) {
        c->shown = identity_ref(c->server->identity);
    }
    identity_show(c->shown, chain, n, key);
    return 0;
}

static void connection_begin(struct http_server *s, struct MHD_Connection *mhd, void **ret)
{
    struct connection *c = hk_zalloc(sizeof(*c));

    c->server = s;
    c->mhd = mhd;
    c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c->deadline = net_timer_new(s->loop, on_deadline, c);
    http_set_deadline(c, s->opts.header_timeout_ms);
    write_peer(c);
    take_over_transport(c);
    s->moved = true;
    c->next = s->connections;
    if (c->next) {
        c->next->prev = c;
    }
    s->connections = c;
    s->nconnections++;
    *ret = c;
}

static void connection_end(struct http_server *s, struct connection *c)
{
    if (c->prev) {
        c->prev->next = c->next;
    } else {
        s->connections = c->next;
    }
    if (c->next) {
        c->next->prev = c->prev;
    }
    s->nconnections--;
    s->moved = true;
    if (s->full && s->nconnections < s->opts.max_connections / 8 * 7) {
        s->full = false;
        hk_log(HK_LOG_INFO, "taking new connections again", "connections=%u", s->nconnections);
    }
    net_timer_free(c->deadline);
    cert_subject_fini(&c->subject);
    identity_unref(c->shown);
    tunnel_fini(&c->tunnel);
    hk_free(c);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **ctx,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        connection_begin(cls, mhd, ctx);
    } else if (*ctx) {
        connection_end(cls, *ctx);
        *ctx = NULL;
    }
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Once per connection: checking the chain is dear. */
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

/* The request line has come: the only place where the library shows the target as it was sent. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct http_server *s = cls;
    struct request *q = hk_zalloc(sizeof(*q));

    q->conn = connection_of(mhd);
    q->conn->request = q;
    q->uri = hk_strdup(uri);
    struct hk_str rest = hk_str(q->uri);
    hk_str_cut(&rest, '?', &q->pub.path);
    q->pub.query = rest.s ? rest : HK_STR("");
    http_set_deadline(q->conn, s->opts.header_timeout_ms);
    return q;
}

/* The library is kept from decoding: the router does that, segment by segment. */
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

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *key,
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

    MHD_get_connection_values(q->conn->mhd, MHD_HEADER_KIND, on_header, &w);
}

static enum MHD_Result queue_answer(struct request *q)
{
    q->conn->head_next = q->reply_bytes > 0 && !hk_str_is(q->pub.method, "HEAD");
    const enum MHD_Result ok = MHD_queue_response(q->conn->mhd, (unsigned)q->status, q->response);

    MHD_destroy_response(q->response); /* the connection holds its own reference */
    q->response = NULL;
    return ok;
}

static void refuse(struct request *q, int status)
{
    static const struct http_header headers[] = {
        {HK_STR("Content-Type"), HK_STR("application/json")},
        {HK_STR("Retry-After"), HK_STR("1")},
    };
    struct hk_buf body = {0};

    q->conn->server->opts.refusal(q->conn->server->opts.ctx, status, &body);
    http_reply(&q->pub, status, headers, status == MHD_HTTP_TOO_MANY_REQUESTS ? 2 : 1, &body);
}

/* The whole request, or what is known of it when its body is about to come. */
static void describe(struct request *q)
{
    const struct cert_subject *who = subject_of(q->conn);

    q->pub.body = hk_buf_str(&q->body);
    q->pub.peer = hk_str(q->conn->peer);
    q->pub.client_cert_cn = who->cn;
    q->pub.client_cert_orgs = (const char *const *)who->orgs;
    q->pub.nclient_cert_orgs = who->norgs;
}

/* The body is whole, or will not be read: the handler's turn. */
static enum MHD_Result hand_over(struct request *q)
{
    struct http_server *s = q->conn->server;

    if (s->freeing) {
        return MHD_NO; /* it came when all others had been cut; it would have to wait */
    }
    net_timer_off(q->conn->deadline);
    s->nrequests++;
    q->stage = WAITING;
    q->in_handler = true;
    if (q->refusal != 0) {
        refuse(q, q->refusal);
    } else {
        describe(q);
        s->opts.handle(s->opts.ctx, &q->pub);
    }
    q->in_handler = false;
    if (q->stage == ANSWERED) {
        return queue_answer(q);
    }
    q->suspended = true;
    MHD_suspend_connection(q->conn->mhd);
    return MHD_YES;
}

static void drop_body(struct request *q)
{
    q->conn->server->body_bytes -= q->body.len;
    hk_buf_fini(&q->body);
}

/* The status to refuse n more bytes of body with, 0 when they may be kept. */
static int judge_body(struct request *q, size_t n)
{
    const struct http_server *s = q->conn->server;
    int refusal = 0;

    if (!q->admitted && s->opts.admit) {
        describe(q);
        refusal = s->opts.admit(s->opts.ctx, &q->pub);
    }
    q->admitted = refusal == 0;
    if (refusal == 0 && q->body.len + n > s->opts.max_body) {
        refusal = MHD_HTTP_CONTENT_TOO_LARGE;
    }
    if (refusal == 0 && s->body_bytes + n > s->opts.max_bodies) {
        refusal = MHD_HTTP_TOO_MANY_REQUESTS;
    }
    return refusal;
}

/* What is refused is read all the same and thrown away, for a peer that is still sending would not
 * see the answer; the deadline bounds that. */
static void take_body(struct request *q, const char *data, size_t n)
{
    if (q->refusal == 0) {
        q->refusal = judge_body(q, n);
        if (q->refusal != 0) {
            drop_body(q);
        }
    }
    if (q->refusal == 0) {
        hk_buf_add(&q->body, data, n);
        q->conn->server->body_bytes += n;
    }
}

static enum MHD_Result begin(struct request *q, const char *method)
{
    const struct hk_str length = http_request_header(&q->pub, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const bool asks = http_request_header(&q->pub, MHD_HTTP_HEADER_EXPECT).n > 0;
    const size_t max = q->conn->server->opts.max_body;
    int64_t n;

    q->pub.method = hk_str(method);
    q->stage = BODY;
    if (!hk_str_int(length, &n) || n <= 0) {
        return MHD_YES;
    }
    if ((uint64_t)n > max) {
        q->refusal = MHD_HTTP_CONTENT_TOO_LARGE;
        return asks || (uint64_t)n > max * DRAIN_FACTOR ? hand_over(q) : MHD_YES;
    }
    hk_buf_reserve(&q->body, (size_t)n);
    return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **ctx)
{
    struct request *q = *ctx;

    q->conn->server->moved = true;
    switch (q->stage) {
    case FRESH:
        return begin(q, method);
    case BODY:
        if (*n == 0) {
            return hand_over(q);
        }
        take_body(q, data, *n);
        *n = 0;
        return MHD_YES;
    case WAITING:
        return MHD_NO; /* woken without an answer: the server goes */
    case ANSWERED:
        break;
    }
    return queue_answer(q);
}

/* Called once for each request line seen, whatever became of it. */
static void on_completed(void *cls, struct MHD_Connection *mhd, void **ctx,
                         enum MHD_RequestTerminationCode why)
{
    struct request *q = *ctx;

    if (!q) {
        return;
    }
    *ctx = NULL;
    if (q->stage >= WAITING) {
        q->conn->server->nrequests--;
    }
    q->conn->server->nclosing -= q->closing;
    net_watch_del(q->hangup);
    if (q->stream.ended) {
        q->stream.ended(q->stream.ctx);
    }
    http_tunnel_cut(q);
    if (q->response) {
        MHD_destroy_response(q->response);
    }
    q->conn->request = NULL;
    http_set_deadline(q->conn, q->conn->server->opts.idle_timeout_ms);
    drop_body(q);
    q->conn->server->reply_bytes -= q->reply_bytes;
    hk_buf_fini(&q->out);
    hk_free(q->uri);
    hk_free(q);
}

/* ---- answers ---- */

void http_answer(struct request *q, int status, const struct http_header *headers, uint32_t n,
                 struct MHD_Response *response)
{
    hk_assert(q->stage == WAITING && response);
    q->stage = ANSWERED;
    q->status = status;
    q->response = response;
    for (uint32_t k = 0; k < n; k++) {
        MHD_add_response_header(response, headers[k].name.s, headers[k].value.s);
    }
    if (!q->in_handler) {
        wake(q);
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

/* The peer shut its side while we had nothing to say. */
static void on_hangup(void *ctx, uint32_t events)
{
    struct request *q = ctx;

    net_watch_del(q->hangup);
    q->hangup = NULL;
    q->cut = true;
    wake(q);
}

/* Out of what was pulled before; pulls when that is used up. */
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
    if (q->ending) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    /* An idle stream keeps its cursor and nothing else. */
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

    q->stream = *s;
    q->hangup = net_watch_add(q->conn->server->loop, q->conn->fd, EPOLLRDHUP, on_hangup, q);
    http_answer(
        q, status, headers, n,
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, q, NULL));
}

void http_resume(struct http_request *pub)
{
    struct request *q = (struct request *)pub;

    if (q->stage == ANSWERED) {
        wake(q);
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

static int start(struct http_server *s, struct hk_err *err)
{
    const struct http_opts *o = &s->opts;
    const unsigned idle_s = (unsigned)((o->idle_timeout_ms + 999) / 1000);
    unsigned flags =
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)show_identity},
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
        flags, 0, on_accept, s, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, s,
        MHD_OPTION_LISTEN_SOCKET, s->listen_fd, MHD_OPTION_URI_LOG_CALLBACK, on_uri, s,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_raw, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_CONNECTION_LIMIT,
        o->max_connections + SPARE_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)POOL_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, idle_s, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (!s->mhd) {
        return hk_fail(err, HK_EIO, "cannot start the HTTP server: %s", strerror(errno));
    }
    s->listen_fd = -1;
    s->watch =
        net_watch_add(s->loop, MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                      EPOLLIN, on_ready, s);
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
    rc = rc < 0 ? rc : listen_on(o->addr, o->port, &s->listen_fd, &s->port, err);
    rc = rc < 0 ? rc : start(s, err);
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

    s->listen_fd = MHD_quiesce_daemon(s->mhd);
    for (struct connection *c = s->connections; c; c = c->next) {
        if (c->request && c->request->stream.pull && !c->request->stream.finite) {
            c->request->ending = true;
            wake(c->request);
        } else if (c->request && c->request->opened) {
            http_tunnel_cut(c->request);
            http_tunnel_drop(c->request);
        }
    }
    run(s);
    while (s->nrequests > 0) {
        const int64_t left_ms = (deadline - net_loop_now_ns(s->loop)) / 1000000;
        if (left_ms <= 0 || net_loop_turn(s->loop, (int)HK_MIN(left_ms, 1000), &err) < 0) {
            break;
        }
    }
}

/* The library refuses to end while connections are suspended. */
static void cut_all(struct http_server *s)
{
    for (struct connection *c = s->connections; c; c = c->next) {
        if (c->request) {
            c->request->cut = true;
            http_tunnel_cut(c->request);
            http_tunnel_drop(c->request);
            wake(c->request);
        }
    }
}

void http_server_free(struct http_server *s)
{
    if (!s) {
        return;
    }
    if (s->mhd) {
        s->freeing = true;
        cut_all(s);
        MHD_run(s->mhd);
        net_watch_del(s->watch);
        MHD_stop_daemon(s->mhd);
    }
    if (s->listen_fd >= 0) {
        close(s->listen_fd);
    }
    net_timer_free(s->timer);
    identity_unref(s->identity);
    hk_free(s);
}
