// SPDX-License-Identifier: Apache-2.0
// X.509 certificates on P-256, as PEM: authorities, server and client certificates; and the peer of
// a TLS session.
#pragma once

#include "base/err.h"
#include "base/str.h"

struct cert_pair {
    char *cert_pem, *key_pem;
};
void cert_pair_fini(struct cert_pair *p);

/* A server's certificate, and the authority to verify its clients or itself with. */
struct cert_set {
    struct cert_pair pair; /* NULLs: none yet */
    char *ca_pem;          /* NULL: not set */
};
/* Copies the texts (ca may be NULL); returns whether they have changed. */
bool cert_set_take(struct cert_set *s, const char *cert, const char *key, const char *ca);
void cert_set_fini(struct cert_set *s);

struct cert_opts {
    const char *cn;
    const char *const *orgs; /* O of the subject; of a client certificate: its groups */
    uint32_t norgs;
    const char *const *names; /* DNS names and IP addresses of the certificate */
    uint32_t nnames;
    bool server, client; /* allowed uses */
    int64_t now_s;       /* valid from five minutes before */
    uint32_t days;
};

/* Makes a self-signed authority for end certificates only. */
int cert_make_ca(const struct cert_opts *o, struct cert_pair *ret, struct hk_err *err) HK_CHECKED;
int cert_make(const struct cert_opts *o, const struct cert_pair *ca, struct cert_pair *ret,
              struct hk_err *err) HK_CHECKED;
/* When the certificate expires, in seconds since 1970. */
int cert_expiry(const char *cert_pem, int64_t *ret_s, struct hk_err *err) HK_CHECKED;
/* Whether the certificate is valid for the DNS name or address and signed by the authority. */
bool cert_serves(const char *cert_pem, const char *ca_pem, const char *name);

/* Bytes of the text up to the end of its first certificate; 0 when it has none. */
size_t cert_first(const char *pem);

/* The encoding of certificates in kubeconfig files. */
void cert_write_base64(const char *pem, struct hk_buf *out);
int cert_read_base64(struct hk_str coded, struct hk_buf *out, struct hk_err *err) HK_CHECKED;

struct cert_subject {
    char *cn; /* NULL: unknown peer */
    char **orgs;
    uint32_t norgs;
};
void cert_subject_fini(struct cert_subject *s);
/* The verified client of a session (a gnutls_session_t); all zero without a valid certificate. */
void cert_peer(void *session, struct cert_subject *ret);
