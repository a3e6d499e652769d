// SPDX-License-Identifier: Apache-2.0
// Certificates through GnuTLS. Keys are P-256: supported everywhere, with a cheap handshake.
#include "net/cert.h"

#include "base/vec.h"

#include <arpa/inet.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>

enum { BACKDATE_S = 300 }; /* clocks of clients differ */

void cert_pair_fini(struct cert_pair *p)
{
    hk_free(p->cert_pem);
    hk_free(p->key_pem);
    *p = (struct cert_pair){0};
}

static bool cert_str_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool cert_set_take(struct cert_set *s, const char *cert, const char *key, const char *ca)
{
    if (cert_str_equal(s->pair.cert_pem, cert) && cert_str_equal(s->pair.key_pem, key) &&
        cert_str_equal(s->ca_pem, ca)) {
        return false;
    }
    cert_set_fini(s);
    *s = (struct cert_set){{hk_strdup(cert), hk_strdup(key)}, ca ? hk_strdup(ca) : NULL};
    return true;
}

void cert_set_fini(struct cert_set *s)
{
    cert_pair_fini(&s->pair);
    hk_free(s->ca_pem);
    s->ca_pem = NULL;
}

/* Objects that GnuTLS requires to be freed one by one. */
struct cert_builder {
    gnutls_x509_privkey_t key, ca_key;
    gnutls_x509_crt_t crt, ca_crt;
};

static void cert_builder_fini(struct cert_builder *w)
{
    gnutls_x509_crt_deinit(w->crt);
    gnutls_x509_crt_deinit(w->ca_crt);
    gnutls_x509_privkey_deinit(w->key);
    gnutls_x509_privkey_deinit(w->ca_key);
}

static int cert_fail_gnutls(struct hk_err *err, const char *what, int rc)
{
    return hk_fail(err, HK_EIO, "cannot %s: %s", what, gnutls_strerror(rc));
}

static int import_crt(const char *pem, gnutls_x509_crt_t *ret)
{
    const gnutls_datum_t text = {(unsigned char *)pem, (unsigned)strlen(pem)};
    const int rc = gnutls_x509_crt_init(ret);

    if (rc < 0) {
        return rc;
    }
    return gnutls_x509_crt_import(*ret, &text, GNUTLS_X509_FMT_PEM);
}

static int import_ca(struct cert_builder *w, const struct cert_pair *ca, struct hk_err *err)
{
    const gnutls_datum_t text = {(unsigned char *)ca->key_pem, (unsigned)strlen(ca->key_pem)};
    int rc = import_crt(ca->cert_pem, &w->ca_crt);

    if (rc < 0) {
        return cert_fail_gnutls(err, "read the authority's certificate", rc);
    }
    rc = gnutls_x509_privkey_init(&w->ca_key);
    if (rc == 0) {
        rc = gnutls_x509_privkey_import(w->ca_key, &text, GNUTLS_X509_FMT_PEM);
    }
    return rc < 0 ? cert_fail_gnutls(err, "read the authority's key", rc) : 0;
}

/* 19 random bytes, positive and not zero, as RFC 5280 requires. */
static int set_serial(gnutls_x509_crt_t crt)
{
    unsigned char serial[19];
    const int rc = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

    serial[0] = (unsigned char)((serial[0] & 0x7f) | 0x40);
    if (rc < 0) {
        return rc;
    }
    return gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
}

static int set_subject(gnutls_x509_crt_t crt, const struct cert_opts *o)
{
    int rc = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, o->cn,
                                           (unsigned)strlen(o->cn));

    for (uint32_t k = 0; k < o->norgs && rc == 0; k++) {
        rc = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_ORGANIZATION_NAME, 0, o->orgs[k],
                                           (unsigned)strlen(o->orgs[k]));
    }
    return rc;
}

static int add_name(gnutls_x509_crt_t crt, const char *name)
{
    unsigned char ip[16];

    if (inet_pton(AF_INET, name, ip) == 1) {
        return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, ip, 4,
                                                    GNUTLS_FSAN_APPEND);
    }
    if (inet_pton(AF_INET6, name, ip) == 1) {
        return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, ip, 16,
                                                    GNUTLS_FSAN_APPEND);
    }
    return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, name,
                                                (unsigned)strlen(name), GNUTLS_FSAN_APPEND);
}

static int set_usage(gnutls_x509_crt_t crt, const struct cert_opts *o, bool ca)
{
    int rc = gnutls_x509_crt_set_basic_constraints(crt, ca, ca ? 0 : -1);

    if (rc == 0) {
        rc = gnutls_x509_crt_set_key_usage(crt, ca ? GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN
                                                   : GNUTLS_KEY_DIGITAL_SIGNATURE);
    }
    if (rc == 0 && o->server) {
        rc = gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_SERVER, 0);
    }
    if (rc == 0 && o->client) {
        rc = gnutls_x509_crt_set_key_purpose_oid(crt, GNUTLS_KP_TLS_WWW_CLIENT, 0);
    }
    return rc;
}

static int set_key_ids(struct cert_builder *w)
{
    unsigned char id[32];
    size_t n = sizeof(id);
    int rc = gnutls_x509_crt_get_key_id(w->crt, 0, id, &n);

    if (rc == 0) {
        rc = gnutls_x509_crt_set_subject_key_id(w->crt, id, n);
    }
    n = sizeof(id);
    if (rc == 0 && w->ca_crt && gnutls_x509_crt_get_subject_key_id(w->ca_crt, id, &n, NULL) == 0) {
        rc = gnutls_x509_crt_set_authority_key_id(w->crt, id, n);
    }
    return rc;
}

static int cert_fill_fields(struct cert_builder *w, const struct cert_opts *o)
{
    gnutls_x509_crt_t crt = w->crt;
    int rc = gnutls_x509_crt_set_version(crt, 3);

    if (rc < 0) {
        return rc;
    }
    rc = set_serial(crt);
    if (rc < 0) {
        return rc;
    }
    rc = gnutls_x509_crt_set_activation_time(crt, o->now_s - BACKDATE_S);
    if (rc < 0) {
        return rc;
    }
    rc = gnutls_x509_crt_set_expiration_time(crt, o->now_s + (int64_t)o->days * 86400);
    if (rc < 0) {
        return rc;
    }
    rc = set_subject(crt, o);
    for (uint32_t k = 0; k < o->nnames && rc == 0; k++) {
        rc = add_name(crt, o->names[k]);
    }
    if (rc < 0) {
        return rc;
    }
    rc = gnutls_x509_crt_set_key(crt, w->key);
    if (rc < 0) {
        return rc;
    }
    rc = set_usage(crt, o, !w->ca_crt);
    if (rc < 0) {
        return rc;
    }
    return set_key_ids(w);
}

static int export(struct cert_builder *w, struct cert_pair *ret, struct hk_err *err)
{
    gnutls_datum_t cert = {0}, key = {0};
    int rc = gnutls_x509_crt_export2(w->crt, GNUTLS_X509_FMT_PEM, &cert);

    if (rc == 0) {
        rc = gnutls_x509_privkey_export2_pkcs8(w->key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN,
                                               &key);
    }
    if (rc == 0) {
        ret->cert_pem = hk_strndup((char *)cert.data, cert.size);
        ret->key_pem = hk_strndup((char *)key.data, key.size);
        gnutls_memset(key.data, 0, key.size);
    }
    gnutls_free(cert.data);
    gnutls_free(key.data);
    return rc < 0 ? cert_fail_gnutls(err, "write the certificate", rc) : 0;
}

static int cert_make_pair(struct cert_builder *w, const struct cert_opts *o, struct cert_pair *ret,
                          struct hk_err *err)
{
    int rc = gnutls_x509_privkey_init(&w->key);

    if (rc == 0) {
        rc = gnutls_x509_privkey_generate(w->key, GNUTLS_PK_ECDSA,
                                          GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    }
    if (rc < 0) {
        return cert_fail_gnutls(err, "make a key", rc);
    }
    rc = gnutls_x509_crt_init(&w->crt);
    if (rc == 0) {
        rc = cert_fill_fields(w, o);
    }
    if (rc == 0) {
        rc = gnutls_x509_crt_sign2(w->crt, w->ca_crt ? w->ca_crt : w->crt,
                                   w->ca_key ? w->ca_key : w->key, GNUTLS_DIG_SHA256, 0);
    }
    return rc < 0 ? cert_fail_gnutls(err, "make a certificate", rc) : export(w, ret, err);
}

int cert_make_ca(const struct cert_opts *o, struct cert_pair *ret, struct hk_err *err)
{
    HK_AUTO(cert_builder_fini) struct cert_builder w = {0};

    return cert_make_pair(&w, o, ret, err);
}

int cert_make(const struct cert_opts *o, const struct cert_pair *ca, struct cert_pair *ret,
              struct hk_err *err)
{
    HK_AUTO(cert_builder_fini) struct cert_builder w = {0};
    const int rc = import_ca(&w, ca, err);

    if (rc < 0) {
        return rc;
    }
    return cert_make_pair(&w, o, ret, err);
}

int cert_expiry(const char *cert_pem, int64_t *ret_s, struct hk_err *err)
{
    HK_AUTO(cert_builder_fini) struct cert_builder w = {0};
    const int rc = import_crt(cert_pem, &w.crt);

    if (rc < 0) {
        return cert_fail_gnutls(err, "read the certificate", rc);
    }
    *ret_s = gnutls_x509_crt_get_expiration_time(w.crt);
    return 0;
}

bool cert_serves(const char *cert_pem, const char *ca_pem, const char *name)
{
    HK_AUTO(cert_builder_fini) struct cert_builder w = {0};

    return import_crt(cert_pem, &w.crt) == 0 && import_crt(ca_pem, &w.ca_crt) == 0 &&
           gnutls_x509_crt_check_issuer(w.crt, w.ca_crt) != 0 &&
           gnutls_x509_crt_check_hostname(w.crt, name) != 0;
}

size_t cert_first(const char *pem)
{
    static const char foot[] = "-----END CERTIFICATE-----";
    const char *end = strstr(pem, foot);

    return end ? (size_t)(end - pem) + sizeof(foot) - 1 : 0;
}

void cert_write_base64(const char *pem, struct hk_buf *out)
{
    const gnutls_datum_t text = {(unsigned char *)pem, (unsigned)strlen(pem)};
    gnutls_datum_t coded = {0};

    hk_assert(gnutls_base64_encode2(&text, &coded) == 0);
    hk_buf_add(out, coded.data, coded.size);
    gnutls_free(coded.data);
}

int cert_read_base64(struct hk_str coded, struct hk_buf *out, struct hk_err *err)
{
    const gnutls_datum_t text = {(unsigned char *)coded.s, (unsigned)coded.n};
    gnutls_datum_t plain = {0};

    if (coded.n > INT32_MAX || gnutls_base64_decode2(&text, &plain) != 0) {
        return hk_fail(err, HK_EINVAL, "not base64");
    }
    hk_buf_add(out, plain.data, plain.size);
    gnutls_free(plain.data);
    return 0;
}

/* ---- the peer ---- */

void cert_subject_fini(struct cert_subject *s)
{
    for (uint32_t k = 0; k < s->norgs; k++) {
        hk_free(s->orgs[k]);
    }
    hk_free(s->orgs);
    hk_free(s->cn);
    *s = (struct cert_subject){0};
}

/* NULL if there is no such part. */
static char *subject_part(gnutls_x509_crt_t crt, const char *oid, unsigned at)
{
    char text[256];
    size_t n = sizeof(text);

    if (gnutls_x509_crt_get_dn_by_oid(crt, oid, at, 0, text, &n) < 0 || strlen(text) != n) {
        return NULL; /* with a NUL inside, one name could pass for another */
    }
    return hk_strndup(text, n);
}

static bool verified(gnutls_session_t session)
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned status = 0;

    return gnutls_certificate_verify_peers(session, &purpose, 1, &status) == 0 && status == 0;
}

void cert_peer(void *session, struct cert_subject *ret)
{
    HK_AUTO(cert_builder_fini) struct cert_builder w = {0};
    HK_VEC(char *) orgs = {0};
    unsigned n = 0;

    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n);
    if (!chain || n == 0 || !verified(session) || gnutls_x509_crt_init(&w.crt) < 0 ||
        gnutls_x509_crt_import(w.crt, &chain[0], GNUTLS_X509_FMT_DER) < 0) {
        return;
    }
    ret->cn = subject_part(w.crt, GNUTLS_OID_X520_COMMON_NAME, 0);
    if (!ret->cn) {
        return;
    }
    for (char *org; (org = subject_part(w.crt, GNUTLS_OID_X520_ORGANIZATION_NAME, orgs.len));) {
        hk_vec_push(&orgs, org);
    }
    ret->orgs = orgs.at;
    ret->norgs = orgs.len;
}
