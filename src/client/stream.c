// SPDX-License-Identifier: Apache-2.0
// A stream to the API server over a WebSocket. libcurl makes the connection (proxy, TLS, names)
// with CURLOPT_CONNECT_ONLY; this file writes and reads request, answer and frames.
#include "client/stream.h"

#include "client/client_priv.h"
#include "client/decode.h"
#include "codec/base64.h"
#include "net/http_head.h"
#include "net/ws.h"

#include <poll.h>
#include <sys/random.h>

enum {
    HEAD_BYTES = 64 << 10, /* longest answer to the request, its body included */
    READ_BYTES = 64 << 10,
    OUT_BYTES = 256 << 10,
    MAX_FRAME = 16 << 20,
    ANSWER_MS = 30000,
    STDIN = 0,
    END_OF_CHANNEL = 255, /* in protocol v5 */
};

struct stream {
    struct client *c;
    struct stream_opts o;
    struct easy *easy;
    curl_socket_t fd;
    struct curl_slist *headers;
    bool v5;
    bool closing;      /* our close frame is queued */
    bool held;         /* by stream_hold */
    uint8_t channel;   /* of the current message */
    size_t stuck;      /* bytes refused with CURLE_AGAIN: offer exactly these again */
    struct hk_buf in;  /* the answer, and bytes received after it */
    struct hk_buf out; /* not yet sent: [out_at, out.len) */
    size_t out_at;
    struct ws_reader reader;
};

/* ---- bytes ---- */

static int no_luck(struct stream *s, const char *what, CURLcode rc, struct hk_err *err)
{
    return hk_fail(err, HK_EIO, "%s %s: %s", what, s->c->config.server,
                   s->easy->error[0] ? s->easy->error : curl_easy_strerror(rc));
}

static int stream_flush(struct stream *s, struct hk_err *err)
{
    while (s->out_at < s->out.len) {
        const size_t n = s->stuck > 0 ? s->stuck : s->out.len - s->out_at;
        size_t sent = 0;
        const CURLcode rc = curl_easy_send(s->easy->curl, s->out.data + s->out_at, n, &sent);
        s->stuck = rc == CURLE_AGAIN ? n : 0;
        if (rc == CURLE_AGAIN) {
            break;
        }
        if (rc != CURLE_OK) {
            return no_luck(s, "cannot send to", rc, err);
        }
        s->out_at += sent;
    }
    if (s->out_at >= s->out.len - s->out_at) { /* amortized: each byte is moved at most once */
        hk_buf_drop(&s->out, s->out_at);
        s->out_at = 0;
    }
    return 0;
}

/* 1: received some bytes. 0: none now. */
static int stream_receive(struct stream *s, char *p, size_t max, size_t *ret_n, struct hk_err *err)
{
    const CURLcode rc = curl_easy_recv(s->easy->curl, p, max, ret_n);

    if (rc == CURLE_AGAIN) {
        return 0;
    }
    if (rc != CURLE_OK) {
        return no_luck(s, "lost the connection to", rc, err);
    }
    if (*ret_n == 0) {
        return hk_fail(err, HK_EIO, "%s closed the connection", s->c->config.server);
    }
    return 1;
}

/* ---- the handshake ---- */

static void add_line(struct hk_buf *out, const char *line)
{
    hk_buf_addf(out, "%s\r\n", line);
}

static void add_host(const struct stream *s, struct hk_buf *out)
{
    const char *host = strstr(s->c->config.server, "://") + 3;

    if (s->c->host_header) {
        add_line(out, s->c->host_header);
    } else {
        hk_buf_addf(out, "Host: %.*s\r\n", (int)strcspn(host, "/"), host);
    }
}

static void add_credentials(struct stream *s, struct hk_buf *out)
{
    const struct kubeconfig *k = &s->c->config;

    s->headers = auth_add_headers(s->c, NULL);
    for (const struct curl_slist *h = s->headers; h; h = h->next) {
        add_line(out, h->data);
    }
    if (k->username && !s->c->auth.token) {
        HK_AUTO(hk_buf_fini) struct hk_buf pair = {0};
        hk_buf_addf(&pair, "%s:%s", k->username, k->password ? k->password : "");
        hk_buf_adds(out, "Authorization: Basic ");
        base64_write(hk_buf_str(&pair), out);
        hk_buf_adds(out, "\r\n");
    }
}

static int fill_random(void *p, size_t n, struct hk_err *err)
{
    return getrandom(p, n, 0) == (ssize_t)n ? 0 : hk_fail(err, HK_EIO, "no random bytes: %m");
}

static void stream_write_upgrade_request(struct stream *s, const char *key)
{
    const char *prefix = strchr(strstr(s->c->config.server, "://") + 3, '/');
    struct hk_buf *out = &s->out;

    hk_buf_addf(out, "GET %s%s HTTP/1.1\r\n", prefix ? prefix : "", s->o.path);
    add_host(s, out);
    hk_buf_addf(out, "User-Agent: %s\r\n", s->c->o.user_agent);
    add_credentials(s, out);
    hk_buf_addf(out,
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: %s\r\n"
                "Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n\r\n",
                key);
}

/* Waits for more of the answer; fails at its end, or at a timeout. */
static int wait_more(struct stream *s, struct hk_err *err)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    size_t n = 0;
    int rc;

    hk_buf_reserve(&s->in, READ_BYTES);
    while ((rc = stream_receive(s, s->in.data + s->in.len, READ_BYTES, &n, err)) == 0) {
        if (poll(&p, 1, ANSWER_MS) == 0) {
            return hk_fail(err, HK_ETIMEOUT, "%s does not answer", s->c->config.server);
        }
    }
    s->in.len += n;
    return rc < 0 ? rc : 0;
}

static int stream_read_error_reply(struct stream *s, int status, size_t head, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct port_status told;
    int64_t n = 0;

    if (!hk_str_int(http_head_get((struct hk_str){s->in.data, head}, "Content-Length"), &n)) {
        n = HEAD_BYTES;
    }
    while (s->in.len < head + (size_t)HK_MIN(n, HEAD_BYTES) && wait_more(s, err) == 0) {
    }
    decode_status((struct hk_str){s->in.data + head, s->in.len - head}, status, &mem, &told);
    return hk_fail(err,
                   status == 404   ? HK_ENOTFOUND
                   : status == 403 ? HK_EDENIED
                                   : HK_EINVAL,
                   "%s", told.message);
}

static int check_answer(struct stream *s, const char *key, size_t head, struct hk_err *err)
{
    const struct hk_str text = {hk_buf_str(&s->in).s, head};
    const int status = http_head_status(text);
    char accept[WS_ACCEPT_BYTES + 1];
    struct hk_str part;

    if (status == 0) {
        return hk_fail(err, HK_EIO, "%s does not answer as a server", s->c->config.server);
    }
    if (status != 101) {
        return stream_read_error_reply(s, status, head, err);
    }
    ws_accept(hk_str(key), accept);
    if (!hk_str_is(http_head_get(text, "Sec-WebSocket-Accept"), accept)) {
        return hk_fail(err, HK_EIO, "%s does not upgrade to a WebSocket", s->c->config.server);
    }
    part = http_head_get(text, "Sec-WebSocket-Protocol");
    s->v5 = hk_str_is(part, "v5.channel.k8s.io");
    if (!s->v5 && !hk_str_is(part, "v4.channel.k8s.io")) {
        return hk_fail(err, HK_EUNSUP, "%s uses another protocol: '%.*s'", s->c->config.server,
                       HK_FMT(part));
    }
    return 0;
}

static int upgrade(struct stream *s, struct hk_err *err)
{
    unsigned char random[16];
    char key[WS_KEY_BYTES + 1];
    size_t head;
    int rc = fill_random(random, sizeof(random), err);

    if (rc < 0) {
        return rc;
    }
    ws_key(random, key);
    stream_write_upgrade_request(s, key);
    rc = stream_flush(s, err);
    while (rc == 0 && (head = http_head_end(hk_buf_str(&s->in))) == 0) {
        rc = s->in.len < HEAD_BYTES
                 ? wait_more(s, err)
                 : hk_fail(err, HK_ELIMIT, "the answer of %s is too long", s->c->config.server);
    }
    if (rc < 0) {
        return rc;
    }
    rc = check_answer(s, key, head, err);
    if (rc == 0) {
        hk_buf_drop(&s->in, head);
    }
    return rc;
}

/* ---- the connection ---- */

static int wait_credentials(struct client *c, struct hk_err *err)
{
    enum auth_ready ready;
    int rc = 0;

    while (rc == 0 && (ready = auth_ready(c, err)) != AUTH_READY) {
        rc = ready == AUTH_FAILED ? -err->code : net_loop_turn(c->o.loop, -1, err);
    }
    return rc;
}

static int stream_connect(struct stream *s, struct hk_err *err)
{
    CURL *curl = s->easy->curl;

    curl_easy_setopt(curl, CURLOPT_URL, s->c->base_url);
    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPPROXYTUNNEL, 1L);
    const CURLcode rc = curl_easy_perform(curl);
    if (rc != CURLE_OK) {
        return no_luck(s, "cannot reach", rc, err);
    }
    curl_easy_getinfo(curl, CURLINFO_ACTIVESOCKET, &s->fd);
    return 0;
}

int stream_open(struct client *c, const struct stream_opts *o, struct stream **ret,
                struct hk_err *err)
{
    struct stream *s = hk_zalloc(sizeof(*s));
    int rc = wait_credentials(c, err);

    *s = (struct stream){.c = c, .o = *o, .fd = -1, .reader = {.max_frame = MAX_FRAME}};
    s->easy = multi_take(c);
    if (rc == 0) {
        rc = stream_connect(s, err);
    }
    if (rc == 0) {
        rc = upgrade(s, err);
    }
    if (rc < 0) {
        stream_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void stream_free(struct stream *s)
{
    if (!s) {
        return;
    }
    curl_easy_cleanup(s->easy->curl); /* closes its connection, which cannot be reused */
    hk_free(s->easy);
    curl_slist_free_all(s->headers);
    hk_buf_fini(&s->in);
    hk_buf_fini(&s->out);
    hk_free(s);
}

/* ---- messages ---- */

int stream_fd(const struct stream *s)
{
    return s->fd;
}

short stream_events(const struct stream *s)
{
    return (short)((s->held ? 0 : POLLIN) | (s->out_at < s->out.len ? POLLOUT : 0));
}

/* The mask prevents a browser's scripts from making frames that look like requests to a proxy. Any
 * mask works here, but the RFC requires an unpredictable one. */
static const unsigned char *mask_of(struct stream *s, unsigned char mask[4])
{
    struct hk_err err;

    if (fill_random(mask, 4, &err) < 0) {
        memset(mask, 0, 4);
    }
    return mask;
}

void stream_hold(struct stream *s, bool held)
{
    s->held = held;
}

bool stream_room(const struct stream *s)
{
    return s->out.len - s->out_at < OUT_BYTES;
}

void stream_send(struct stream *s, uint8_t channel, struct hk_str bytes)
{
    unsigned char mask[4];

    if (!s->closing) {
        ws_write_channel(channel, bytes, mask_of(s, mask), &s->out);
    }
}

bool stream_end_input(struct stream *s)
{
    static const char channel = STDIN;

    if (s->v5) {
        stream_send(s, END_OF_CHANNEL, (struct hk_str){&channel, 1});
    }
    return s->v5;
}

void stream_ping(struct stream *s)
{
    unsigned char mask[4];

    if (!s->closing) {
        ws_write(WS_PING, HK_STR(""), mask_of(s, mask), &s->out);
    }
}

static void say_close(struct stream *s, uint16_t code)
{
    unsigned char mask[4];

    if (!s->closing) {
        s->closing = true;
        ws_write_close(code, HK_STR(""), mask_of(s, mask), &s->out);
    }
}

static void stream_accept_data(struct stream *s, const struct ws_piece *p)
{
    struct hk_str bytes = p->bytes;

    if (p->first && bytes.n > 0) {
        s->channel = (uint8_t)bytes.s[0];
        bytes.s++;
        bytes.n--;
    }
    if (bytes.n > 0) {
        s->o.data(s->o.ctx, s->channel, bytes);
    }
}

/* 1: the server closed the stream. */
static int stream_accept_frame(struct stream *s, const struct ws_piece *p, struct hk_err *err)
{
    unsigned char mask[4];

    switch (p->op) {
    case WS_CLOSE:
        say_close(s, WS_CLOSE_NORMAL);
        if (ws_close_code(p->bytes) != WS_CLOSE_NORMAL) {
            const struct hk_str why = {p->bytes.s + 2, p->bytes.n - 2};
            return hk_fail(err, HK_EIO, "the server closed the stream: %.*s", HK_FMT(why));
        }
        return 1;
    case WS_PING:
        ws_write(WS_PONG, p->bytes, mask_of(s, mask), &s->out);
        return 0;
    case WS_PONG:
        return 0;
    default:
        stream_accept_data(s, p);
        return 0;
    }
}

static int stream_parse_frames(struct stream *s, struct hk_err *err)
{
    char *in = s->in.data;
    size_t n = s->in.len;
    struct ws_piece p;
    int rc, ended = 0;

    while (ended == 0 && (rc = ws_read(&s->reader, &in, &n, &p, err)) > 0) {
        ended = stream_accept_frame(s, &p, err);
    }
    if (ended == 0 && rc < 0) {
        say_close(s, s->reader.close_code);
        return rc;
    }
    hk_buf_clear(&s->in);
    return ended;
}

int stream_turn(struct stream *s, struct hk_err *err)
{
    size_t n = 0;
    int rc = 0, got;

    if (s->in.len > 0 && !s->held) {
        rc = stream_parse_frames(s, err); /* frames received together with the answer */
    }
    while (rc == 0 && !s->held) {
        hk_buf_reserve(&s->in, READ_BYTES);
        got = stream_receive(s, s->in.data, READ_BYTES, &n, err);
        if (got <= 0) {
            rc = got;
            break;
        }
        s->in.len = n;
        rc = stream_parse_frames(s, err);
    }
    if (rc >= 0) {
        const int sent = stream_flush(s, err);
        rc = sent < 0 && rc == 0 ? sent : rc;
    }
    return rc;
}

/* ---- the outcome ---- */

static bool exit_code(const struct json *status, int64_t *ret)
{
    const struct json *causes = json_at(status, "details.causes");

    for (uint32_t k = 0; causes && causes->type == JSON_ARRAY && k < causes->len; k++) {
        const struct json *c = &causes->items[k];
        if (hk_str_is(json_str_field(c, "reason"), "ExitCode")) {
            return hk_str_int(json_str_field(c, "message"), ret);
        }
    }
    return false;
}

int stream_outcome(struct hk_str text, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json status;
    int64_t code;

    if (json_parse(text, 0, &mem, &status, NULL) < 0) {
        return hk_fail(err, HK_EIO, "the server does not say how the command ended");
    }
    if (hk_str_is(json_str_field(&status, "status"), "Success")) {
        return 0;
    }
    if (exit_code(&status, &code) && code > 0 && code < 256) {
        return (int)code;
    }
    const struct hk_str message = json_str(json_get(&status, "message"), HK_STR("no reason given"));
    return hk_fail(err, HK_EIO, "%.*s", HK_FMT(message));
}
