// SPDX-License-Identifier: Apache-2.0
// What tests of servers share: certificates, and clients over TLS on the server's own loop.
#pragma once

#include "net/cert.h"
#include "net/loop.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { RIG_TURNS = 5000 }; /* of a millisecond; a test that needs more has failed */

static inline void rig_turn(struct net_loop *loop)
{
    struct hk_err err = {0};

    if (net_loop_turn(loop, 1, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static inline void rig_make_ca(int64_t now_s, struct cert_pair *ret)
{
    const struct cert_opts o = {.cn = "rig-ca", .now_s = now_s, .days = 10};

    assert_int_equal(cert_make_ca(&o, ret, NULL), 0);
}

static inline void rig_make_cert(const struct cert_pair *ca, int64_t now_s, struct cert_pair *ret)
{
    static const char *const names[] = {"localhost"};
    const struct cert_opts o = {
        .cn = "rig", .names = names, .nnames = 1, .server = true, .now_s = now_s, .days = 10};

    assert_int_equal(cert_make(&o, ca, ret, NULL), 0);
}

/* ---- a client ---- */

struct rig_client {
    struct net_loop *loop;
    int fd;
    gnutls_certificate_credentials_t cred;
    gnutls_session_t tls;
};

static inline void rig_connect(struct rig_client *c, struct net_loop *loop, uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = htons(port)};
    struct timeval wait = {.tv_usec = 1000};
    int rc, turns = 0;

    *c = (struct rig_client){.loop = loop, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(connect(c->fd, (void *)&at, sizeof(at)), 0);
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    gnutls_certificate_allocate_credentials(&c->cred);
    gnutls_init(&c->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK);
    gnutls_set_default_priority(c->tls);
    gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, c->cred);
    gnutls_transport_set_int(c->tls, c->fd);
    do {
        rig_turn(loop);
        rc = gnutls_handshake(c->tls);
    } while (rc < 0 && gnutls_error_is_fatal(rc) == 0 && turns++ < RIG_TURNS);
    assert_int_equal(rc, 0);
}

static inline void rig_hang_up(struct rig_client *c)
{
    gnutls_deinit(c->tls);
    gnutls_certificate_free_credentials(c->cred);
    close(c->fd);
}

/* Whether the server shows that certificate. */
static inline bool rig_shows(const struct rig_client *c, const char *cert_pem)
{
    unsigned n = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(c->tls, &n);
    const gnutls_datum_t pem = {(unsigned char *)cert_pem, (unsigned)strlen(cert_pem)};
    gnutls_datum_t der = {0};

    assert_int_equal(gnutls_pem_base64_decode2("CERTIFICATE", &pem, &der), 0);
    const bool same =
        n > 0 && chain[0].size == der.size && memcmp(chain[0].data, der.data, der.size) == 0;
    gnutls_free(der.data);
    return same;
}

static inline void rig_send(struct rig_client *c, const char *data, size_t n)
{
    int turns = 0;

    for (size_t at = 0; at < n && turns < RIG_TURNS;) {
        const ssize_t sent = gnutls_record_send(c->tls, data + at, n - at);
        if (sent > 0) {
            at += (size_t)sent;
        } else {
            assert_false(gnutls_error_is_fatal((int)sent));
            turns++;
        }
        rig_turn(c->loop);
    }
}

static inline bool rig_is_whole(const struct hk_buf *answer)
{
    const char *body = answer->len > 0 ? strstr(answer->data, "\r\n\r\n") : NULL;
    const char *length = body ? strstr(answer->data, "Content-Length: ") : NULL;

    return length && strlen(body + 4) >= strtoul(length + 16, NULL, 10);
}

/* One request and its whole answer, head included. */
static inline void rig_ask(struct rig_client *c, const char *method, const char *path,
                           const char *type, struct hk_str body, struct hk_buf *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    char part[4096];

    hk_buf_clear(ret);
    hk_buf_addf(&text,
                "%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                method, path, type, body.n);
    hk_buf_addstr(&text, body);
    rig_send(c, text.data, text.len);
    for (int turns = 0; !rig_is_whole(ret); turns++) {
        assert_true(turns < RIG_TURNS);
        rig_turn(c->loop);
        const ssize_t n = gnutls_record_recv(c->tls, part, sizeof(part));
        if (n > 0) {
            hk_buf_add(ret, part, (size_t)n);
        } else {
            assert_true(n < 0 && !gnutls_error_is_fatal((int)n));
        }
    }
}
