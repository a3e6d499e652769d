// SPDX-License-Identifier: Apache-2.0
// Connects without blocking the loop:
//
//   CONNECTING --> (tls) SHAKING --> OPEN
//   any failure --> opened() gets the reason
#include "net/dial.h"

#include "net/tunnel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum state { CONNECTING, SHAKING, OPEN };

struct net_dial {
    void (*opened)(void *ctx, const char *why);
    void (*ready)(void *ctx, uint32_t events);
    void *ctx;
    struct net_loop *loop;
    struct net_watch *watch;         /* NULL: the connection failed, or rests */
    struct net_timer *failure_timer; /* reports a failure to start */
    int fd;
    enum state state;
    const char *why;      /* a string literal */
    gnutls_session_t tls; /* NULL: no TLS */
    gnutls_certificate_credentials_t own;
    char *server_name;
    struct tunnel tunnel;
};

static void net_dial_fail(struct net_dial *d, const char *why)
{
    net_watch_del(d->watch);
    d->watch = NULL;
    d->opened(d->ctx, why);
}

static void on_failure_timer(void *ctx)
{
    struct net_dial *d = ctx;

    net_dial_fail(d, d->why);
}

static void net_dial_finish_open(struct net_dial *d)
{
    d->state = OPEN;
    tunnel_open(&d->tunnel, d->fd, d->tls);
    net_watch_change(d->watch, 0);
    d->opened(d->ctx, NULL);
}

/* Why the server's certificate is refused, in the words of Go's crypto/x509. */
static const char *describe_refusal(unsigned status)
{
    static const struct {
        unsigned flag;
        const char *why;
    } rows[] = {
        {GNUTLS_CERT_UNEXPECTED_OWNER,
         "tls: failed to verify certificate: x509: certificate is valid for other names"},
        {GNUTLS_CERT_EXPIRED | GNUTLS_CERT_NOT_ACTIVATED,
         "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"},
        {GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA,
         "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
    };

    for (size_t k = HK_LEN(rows); k-- > 0;) {
        if (status & rows[k].flag) {
            return rows[k].why;
        }
    }
    return "tls: failed to verify certificate";
}

static void shake_hands(struct net_dial *d)
{
    const int rc = gnutls_handshake(d->tls);

    if (rc == 0) {
        net_dial_finish_open(d);
    } else if (rc == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) {
        net_dial_fail(d, describe_refusal(gnutls_session_get_verify_cert_status(d->tls)));
    } else if (gnutls_error_is_fatal(rc)) {
        net_dial_fail(d, gnutls_strerror(rc));
    } else {
        net_watch_change(d->watch, gnutls_record_get_direction(d->tls) ? EPOLLOUT : EPOLLIN);
    }
}

static void connected(struct net_dial *d)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0) {
        error = errno;
    }
    if (error != 0) {
        net_dial_fail(d, strerror(error));
    } else if (d->tls) {
        d->state = SHAKING;
        shake_hands(d);
    } else {
        net_dial_finish_open(d);
    }
}

static void net_dial_on_ready(void *ctx, uint32_t events)
{
    struct net_dial *d = ctx;

    if (d->state == CONNECTING) {
        connected(d);
    } else if (d->state == SHAKING) {
        shake_hands(d);
    } else {
        d->ready(d->ctx, events);
    }
}

/* ---- connecting ---- */

static int make_credentials(struct net_dial *d, const struct net_dial_opts *o)
{
    int rc = gnutls_certificate_allocate_credentials(&d->own);

    if (rc == 0 && o->cert_pem) {
        const gnutls_datum_t cert = {(void *)o->cert_pem, (unsigned)strlen(o->cert_pem)};
        const gnutls_datum_t key = {(void *)o->key_pem, (unsigned)strlen(o->key_pem)};
        rc = gnutls_certificate_set_x509_key_mem(d->own, &cert, &key, GNUTLS_X509_FMT_PEM);
    }
    if (rc < 0 || !o->server_name || o->insecure) {
        return rc;
    }
    if (o->ca_pem) {
        const gnutls_datum_t ca = {(void *)o->ca_pem, (unsigned)strlen(o->ca_pem)};
        return gnutls_certificate_set_x509_trust_mem(d->own, &ca, GNUTLS_X509_FMT_PEM);
    }
    return gnutls_certificate_set_x509_system_trust(d->own);
}

static int name_server(struct net_dial *d, const struct net_dial_opts *o)
{
    const int rc =
        gnutls_server_name_set(d->tls, GNUTLS_NAME_DNS, o->server_name, strlen(o->server_name));

    if (rc < 0 || o->insecure) {
        return rc;
    }
    d->server_name = hk_strdup(o->server_name); /* borrowed by the session */
    gnutls_session_set_verify_cert(d->tls, d->server_name, 0);
    return 0;
}

static int open_tls(struct net_dial *d, const struct net_dial_opts *o)
{
    int rc = make_credentials(d, o);

    if (rc < 0) {
        return rc;
    }
    rc = gnutls_init(&d->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    if (rc < 0) {
        return rc;
    }
    gnutls_transport_set_int(d->tls, d->fd);
    rc = gnutls_set_default_priority(d->tls);
    if (rc < 0) {
        return rc;
    }
    rc = o->server_name ? name_server(d, o) : 0;
    if (rc < 0) {
        return rc;
    }
    return gnutls_credentials_set(d->tls, GNUTLS_CRD_CERTIFICATE, d->own);
}

/* NULL: the connection is in progress. */
static const char *net_dial_connect(struct net_dial *d, const struct net_dial_opts *o)
{
    char host[INET6_ADDRSTRLEN];
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(o->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(o->port)};
    const bool is_v6 = memchr(o->host.s, ':', o->host.n) != NULL;
    const struct sockaddr *at = is_v6 ? (void *)&v6 : (void *)&v4;

    if (o->host.n >= sizeof(host)) {
        return "no address";
    }
    snprintf(host, sizeof(host), "%.*s", HK_FMT(o->host));
    if (inet_pton(at->sa_family, host, is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1) {
        return "no address";
    }
    d->fd = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (d->fd < 0 ||
        (connect(d->fd, at, is_v6 ? sizeof(v6) : sizeof(v4)) < 0 && errno != EINPROGRESS)) {
        return strerror(errno);
    }
    const int rc = o->tls ? open_tls(d, o) : 0;
    return rc < 0 ? gnutls_strerror(rc) : NULL;
}

struct net_dial *net_dial_new(struct net_loop *l, const struct net_dial_opts *o)
{
    struct net_dial *d = hk_zalloc(sizeof(*d));

    *d = (struct net_dial){
        .opened = o->opened, .ready = o->ready, .ctx = o->ctx, .loop = l, .fd = -1};
    d->why = net_dial_connect(d, o);
    if (d->why) {
        d->failure_timer = net_timer_new(l, on_failure_timer, d);
        net_timer_at(d->failure_timer, net_loop_now_ns(l));
    } else {
        d->watch = net_watch_add(l, d->fd, EPOLLOUT, net_dial_on_ready, d);
    }
    return d;
}

void net_dial_free(struct net_dial *d)
{
    if (!d) {
        return;
    }
    net_watch_del(d->watch);
    net_timer_free(d->failure_timer);
    if (d->tls) {
        gnutls_deinit(d->tls);
    }
    if (d->own) {
        gnutls_certificate_free_credentials(d->own);
    }
    tunnel_fini(&d->tunnel);
    hk_free(d->server_name);
    if (d->fd >= 0) {
        close(d->fd);
    }
    hk_free(d);
}

bool net_dial_connected(const struct net_dial *d)
{
    return d->state != CONNECTING;
}

/* ---- bytes ---- */

void net_dial_want(struct net_dial *d, uint32_t events)
{
    if (d->watch) {
        net_watch_change(d->watch, events);
    } else {
        d->watch = net_watch_add(d->loop, d->fd, events, net_dial_on_ready, d);
    }
}

void net_dial_rest(struct net_dial *d)
{
    net_watch_del(d->watch);
    d->watch = NULL;
}

void net_dial_end_writing(struct net_dial *d)
{
    shutdown(d->fd, SHUT_WR);
}

ssize_t net_dial_read(struct net_dial *d, char *p, size_t n)
{
    return tunnel_read(&d->tunnel, p, n);
}

ssize_t net_dial_write(struct net_dial *d, const char *p, size_t n)
{
    return tunnel_write(&d->tunnel, p, n);
}
