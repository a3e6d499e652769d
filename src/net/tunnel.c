// SPDX-License-Identifier: Apache-2.0
// Reads and writes the bytes of a tunnel, with or without TLS (tunnel.h).
#include "net/tunnel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum {
    RECORD = 16 << 10,
    PROBE_S = 30, /* idle time after which the kernel checks whether the peer still exists */
};

static ssize_t tunnel_pull_bytes(gnutls_transport_ptr_t ptr, void *p, size_t n)
{
    struct tunnel *t = ptr;

    if (!t->ours) {
        gnutls_transport_set_errno(t->tls, EAGAIN);
        return -1;
    }
    const ssize_t got = recv(t->fd, p, n, MSG_DONTWAIT);
    if (got < 0) {
        gnutls_transport_set_errno(t->tls, errno);
    }
    return got;
}

/* Reads one record or a part of it; -1 with errno. */
static ssize_t tunnel_receive_record(struct tunnel *t, char *p, size_t n)
{
    ssize_t got;

    t->ours = true;
    do {
        got = gnutls_record_recv(t->tls, p, n);
    } while (got == GNUTLS_E_INTERRUPTED);
    t->ours = false;
    if (got >= 0) {
        return got;
    }
    if (got == GNUTLS_E_PREMATURE_TERMINATION) {
        return 0;
    }
    errno = got == GNUTLS_E_AGAIN ? EAGAIN : EPROTO;
    return -1;
}

/* Decrypted bytes must not stay in the session: the library would read them. */
static void empty_session(struct tunnel *t)
{
    size_t n;

    while (t->tls && (n = gnutls_record_check_pending(t->tls)) > 0) {
        hk_buf_reserve(&t->stash, n);
        const ssize_t got = tunnel_receive_record(t, t->stash.data + t->stash.len, n);
        if (got <= 0) {
            return;
        }
        t->stash.len += (size_t)got;
    }
}

static void keep_alive(int fd)
{
    const int one = 1, probe_s = PROBE_S;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe_s, sizeof(probe_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s, sizeof(probe_s));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void tunnel_open(struct tunnel *t, int fd, gnutls_session_t tls)
{
    gnutls_transport_ptr_t in, out;

    *t = (struct tunnel){.fd = fd, .tls = tls};
    keep_alive(fd);
    if (tls) {
        gnutls_transport_get_ptr2(tls, &in, &out);
        gnutls_transport_set_ptr2(tls, t, out);
        gnutls_transport_set_pull_function(tls, tunnel_pull_bytes);
        empty_session(t);
    }
}

void tunnel_fini(struct tunnel *t)
{
    hk_buf_fini(&t->stash);
}

static size_t take_stash(struct tunnel *t, char *p, size_t n)
{
    const size_t part = HK_MIN(n, t->stash.len - t->stash_at);

    memcpy(p, hk_buf_str(&t->stash).s + t->stash_at, part);
    t->stash_at += part;
    if (t->stash_at == t->stash.len) {
        hk_buf_fini(&t->stash);
        t->stash_at = 0;
    }
    return part;
}

ssize_t tunnel_read(struct tunnel *t, char *p, size_t n)
{
    size_t done = take_stash(t, p, n);
    ssize_t got = 1;

    if (!t->tls && done == 0) {
        return recv(t->fd, p, n, MSG_DONTWAIT);
    }
    while (t->tls && done < n && (got = tunnel_receive_record(t, p + done, n - done)) > 0) {
        done += (size_t)got;
    }
    empty_session(t);
    return done > 0 ? (ssize_t)done : got;
}

ssize_t tunnel_write(struct tunnel *t, const char *p, size_t n)
{
    ssize_t sent;

    if (!t->tls) {
        return send(t->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    do {
        sent = t->stuck ? gnutls_record_send(t->tls, NULL, 0)
                        : gnutls_record_send(t->tls, p, HK_MIN(n, (size_t)RECORD));
    } while (sent == GNUTLS_E_INTERRUPTED);
    t->stuck = sent == GNUTLS_E_AGAIN;
    if (sent < 0) {
        errno = t->stuck ? EAGAIN : EPIPE;
        return -1;
    }
    return sent;
}
