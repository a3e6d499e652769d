// SPDX-License-Identifier: Apache-2.0
// gRPC is HTTP/2 with a length before each message and a grpc-status among the trailers; libnghttp2
// does the framing. Of etcd's interface only Put is spoken: a message with two byte strings.
#include "bench/load_grpc.h"

#include "base/vec.h"
#include "bench/load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { RECORD = 16 * 1024, WINDOW = 16 << 20 };

struct client {
    struct link *link;
    uint32_t i;
    struct hk_buf message, key, value;
    size_t sent;
    bool granted; /* grpc-status: 0 was seen */
};

struct link {
    struct load_grpc *load;
    int fd;
    gnutls_session_t tls;
    nghttp2_session *h2;
    struct net_watch *watch;
    struct hk_buf out;
    size_t out_at;
    bool want_write;
};

struct load_grpc {
    struct net_loop *loop;
    struct load_grpc_ops ops;
    void *ctx;
    gnutls_certificate_credentials_t cred;
    struct link *links;
    struct client *clients;
    uint32_t nlinks, nclients;
};

__attribute__((noreturn)) static void broken(const char *what)
{
    fprintf(stderr, "hekla-bench-server: etcd: %s\n", what);
    _exit(1);
}

/* ---- messages ---- */

static void add_varint(struct hk_buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) {
        hk_buf_addc(b, (char)(v | 0x80));
    }
    hk_buf_addc(b, (char)v);
}

static void add_bytes(struct hk_buf *b, uint32_t field, struct hk_str s)
{
    add_varint(b, field << 3 | 2);
    add_varint(b, s.n);
    hk_buf_addstr(b, s);
}

/* One byte that says "not compressed", four with the length, then PutRequest. */
static void write_put(struct client *c)
{
    struct hk_buf *m = &c->message;

    hk_buf_clear(m);
    hk_buf_add(m, "\0\0\0\0\0", 5);
    add_bytes(m, 1, hk_buf_str(&c->key));
    add_bytes(m, 2, hk_buf_str(&c->value));
    const uint32_t n = htonl((uint32_t)m->len - 5);
    memcpy(m->data + 1, &n, sizeof(n));
    c->sent = 0;
    c->granted = false;
}

static ssize_t read_message(nghttp2_session *h2, int32_t stream, uint8_t *buf, size_t max,
                            uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct client *c = source->ptr;
    const size_t n = HK_MIN(max, c->message.len - c->sent);

    memcpy(buf, c->message.data + c->sent, n);
    c->sent += n;
    if (c->sent == c->message.len) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)n;
}

#define HEADER(name, value)                                                                        \
    {                                                                                              \
        (uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1,                \
            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE                           \
    }

static void put_next(struct client *c)
{
    static const nghttp2_nv headers[] = {
        HEADER(":method", "POST"),
        HEADER(":scheme", "https"),
        HEADER(":path", "/etcdserverpb.KV/Put"),
        HEADER(":authority", "localhost"),
        HEADER("content-type", "application/grpc"),
        HEADER("te", "trailers"),
    };
    const nghttp2_data_provider body = {.source = {.ptr = c}, .read_callback = read_message};
    struct load_grpc *l = c->link->load;

    hk_buf_clear(&c->key);
    hk_buf_clear(&c->value);
    if (l->ops.next(l->ctx, c->i, &c->key, &c->value)) {
        write_put(c);
        if (nghttp2_submit_request(c->link->h2, NULL, headers, HK_LEN(headers), &body, c) < 0) {
            broken("cannot submit a request");
        }
    }
}

/* ---- HTTP/2 ---- */

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *ctx)
{
    struct client *c = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

    if (c && name_len == 11 && memcmp(name, "grpc-status", 11) == 0) {
        c->granted = value_len == 1 && value[0] == '0';
    }
    return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t stream, uint32_t code, void *ctx)
{
    struct client *c = nghttp2_session_get_stream_user_data(h2, stream);

    if (!c->granted) {
        broken("a put was refused");
    }
    c->link->load->ops.answer(c->link->load->ctx, c->i);
    put_next(c);
    return 0;
}

static ssize_t on_send(nghttp2_session *h2, const uint8_t *data, size_t n, int flags, void *ctx)
{
    struct link *k = ctx;

    hk_buf_add(&k->out, data, n);
    return (ssize_t)n;
}

static void flush(struct link *k)
{
    if (nghttp2_session_send(k->h2) != 0) {
        broken("cannot frame a request");
    }
    while (k->out_at < k->out.len) {
        const size_t room = HK_MIN(k->out.len - k->out_at, (size_t)RECORD);
        const ssize_t n = gnutls_record_send(k->tls, k->out.data + k->out_at, room);
        if (n == GNUTLS_E_AGAIN) {
            break;
        }
        if (n < 0 && gnutls_error_is_fatal((int)n)) {
            broken(gnutls_strerror((int)n));
        }
        k->out_at += n > 0 ? (size_t)n : 0;
    }
    if (k->out_at == k->out.len) {
        hk_buf_clear(&k->out);
        k->out_at = 0;
    }
    if (k->want_write != (k->out.len > 0)) {
        k->want_write = k->out.len > 0;
        net_watch_change(k->watch, EPOLLIN | (k->want_write ? EPOLLOUT : 0U));
    }
}

static void on_socket(void *ctx, uint32_t events)
{
    struct link *k = ctx;
    uint8_t buf[RECORD];
    ssize_t n;

    while ((n = gnutls_record_recv(k->tls, buf, sizeof(buf))) != GNUTLS_E_AGAIN) {
        if (n == 0 || (n < 0 && gnutls_error_is_fatal((int)n))) {
            broken("the connection was closed");
        }
        if (n > 0 && nghttp2_session_mem_recv(k->h2, buf, (size_t)n) != n) {
            broken("not HTTP/2");
        }
    }
    flush(k);
}

/* ---- the generator ---- */

/* Waits for the handshake: nothing is measured yet. */
static void open_tls(struct load_grpc *l, struct link *k, uint16_t port)
{
    const gnutls_datum_t alpn = {(unsigned char *)"h2", 2};
    int rc;

    k->fd = load_connect(port);
    const int flags = fcntl(k->fd, F_GETFL);
    hk_assert(fcntl(k->fd, F_SETFL, flags & ~O_NONBLOCK) == 0);
    hk_assert(gnutls_init(&k->tls, GNUTLS_CLIENT) == 0);
    gnutls_set_default_priority(k->tls);
    gnutls_credentials_set(k->tls, GNUTLS_CRD_CERTIFICATE, l->cred);
    gnutls_alpn_set_protocols(k->tls, &alpn, 1, 0);
    gnutls_transport_set_int(k->tls, k->fd);
    while ((rc = gnutls_handshake(k->tls)) < 0) {
        if (gnutls_error_is_fatal(rc)) {
            broken(gnutls_strerror(rc));
        }
    }
    hk_assert(fcntl(k->fd, F_SETFL, flags) == 0);
}

static void open_link(struct load_grpc *l, struct link *k, uint16_t port)
{
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW}};
    nghttp2_session_callbacks *calls;

    k->load = l;
    open_tls(l, k, port);
    hk_assert(nghttp2_session_callbacks_new(&calls) == 0);
    nghttp2_session_callbacks_set_send_callback(calls, on_send);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_stream_close);
    hk_assert(nghttp2_session_client_new(&k->h2, calls, k) == 0);
    nghttp2_session_callbacks_del(calls);
    hk_assert(nghttp2_submit_settings(k->h2, NGHTTP2_FLAG_NONE, settings, HK_LEN(settings)) == 0);
    k->watch = net_watch_add(l->loop, k->fd, EPOLLIN, on_socket, k);
}

struct load_grpc *load_grpc_new(struct net_loop *loop, uint16_t port, uint32_t connections,
                                uint32_t clients, const struct load_grpc_ops *ops, void *ctx)
{
    struct load_grpc *l = hk_zalloc(sizeof(*l));

    l->loop = loop;
    l->ops = *ops;
    l->ctx = ctx;
    l->nlinks = connections;
    l->nclients = clients;
    hk_assert(gnutls_certificate_allocate_credentials(&l->cred) == 0);
    l->links = hk_zalloc_array(connections, sizeof(*l->links));
    l->clients = hk_zalloc_array(clients, sizeof(*l->clients));
    for (uint32_t k = 0; k < connections; k++) {
        open_link(l, &l->links[k], port);
    }
    for (uint32_t k = 0; k < clients; k++) {
        l->clients[k].link = &l->links[k % connections];
        l->clients[k].i = k;
    }
    return l;
}

void load_grpc_free(struct load_grpc *l)
{
    if (!l) {
        return;
    }
    for (uint32_t k = 0; k < l->nlinks; k++) {
        net_watch_del(l->links[k].watch);
        nghttp2_session_del(l->links[k].h2);
        gnutls_deinit(l->links[k].tls);
        close(l->links[k].fd);
        hk_buf_fini(&l->links[k].out);
    }
    for (uint32_t k = 0; k < l->nclients; k++) {
        hk_buf_fini(&l->clients[k].message);
        hk_buf_fini(&l->clients[k].key);
        hk_buf_fini(&l->clients[k].value);
    }
    gnutls_certificate_free_credentials(l->cred);
    hk_free(l->links);
    hk_free(l->clients);
    hk_free(l);
}

void load_grpc_kick_all(struct load_grpc *l)
{
    for (uint32_t k = 0; k < l->nclients; k++) {
        put_next(&l->clients[k]);
    }
    for (uint32_t k = 0; k < l->nlinks; k++) {
        flush(&l->links[k]);
    }
}
