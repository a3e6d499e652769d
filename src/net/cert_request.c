// SPDX-License-Identifier: Apache-2.0
// Certificate requests through GnuTLS.
#include "net/cert_request.h"

#include "base/vec.h"

#include <gnutls/crypto.h>
#include <gnutls/x509.h>

#define PEM_HEAD "-----BEGIN CERTIFICATE REQUEST-----"
#define NOT_A_REQUEST "PEM block type must be CERTIFICATE REQUEST"

enum {
    MAX_NAME = 1024,
    MAX_PARTS = 64,
    MAX_KEY_BITS = 8192, /* the time to verify a signature grows with the cube */
};

/* The uses in the order of enum. The first ones are bits of the key usage. */
const char *const cert_usages[] = {
    "signing",
    "digital signature",
    "content commitment",
    "key encipherment",
    "key agreement",
    "data encipherment",
    "cert sign",
    "crl sign",
    "encipher only",
    "decipher only",
    "any",
    "server auth",
    "client auth",
    "code signing",
    "email protection",
    "s/mime",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "timestamping",
    "ocsp signing",
    "microsoft sgc",
    "netscape sgc",
    NULL,
};

/* By position in cert_usages: a bit of the key usage, or the purpose of an extended one. */
static const struct {
    unsigned bit;
    const char *oid;
} usage_meanings[] = {
    {GNUTLS_KEY_DIGITAL_SIGNATURE, NULL},
    {GNUTLS_KEY_DIGITAL_SIGNATURE, NULL},
    {GNUTLS_KEY_NON_REPUDIATION, NULL},
    {GNUTLS_KEY_KEY_ENCIPHERMENT, NULL},
    {GNUTLS_KEY_KEY_AGREEMENT, NULL},
    {GNUTLS_KEY_DATA_ENCIPHERMENT, NULL},
    {GNUTLS_KEY_KEY_CERT_SIGN, NULL},
    {GNUTLS_KEY_CRL_SIGN, NULL},
    {GNUTLS_KEY_ENCIPHER_ONLY, NULL},
    {GNUTLS_KEY_DECIPHER_ONLY, NULL},
    {0, GNUTLS_KP_ANY},
    {0, GNUTLS_KP_TLS_WWW_SERVER},
    {0, GNUTLS_KP_TLS_WWW_CLIENT},
    {0, GNUTLS_KP_CODE_SIGNING},
    {0, GNUTLS_KP_EMAIL_PROTECTION},
    {0, GNUTLS_KP_EMAIL_PROTECTION},
    {0, "1.3.6.1.5.5.7.3.5"},
    {0, "1.3.6.1.5.5.7.3.6"},
    {0, "1.3.6.1.5.5.7.3.7"},
    {0, GNUTLS_KP_TIME_STAMPING},
    {0, GNUTLS_KP_OCSP_SIGNING},
    {0, "1.3.6.1.4.1.311.10.3.3"},
    {0, "2.16.840.1.113730.4.1"},
};

static int fail_gnutls(struct hk_err *err, const char *what, int rc)
{
    return hk_fail(err, HK_EINVAL, "cannot %s: %s", what, gnutls_strerror(rc));
}

/* ---- reading ---- */

static int open_request(struct hk_str pem, gnutls_x509_crq_t *ret, struct hk_err *err)
{
    const gnutls_datum_t text = {(unsigned char *)pem.s, (unsigned)pem.n};
    unsigned bits = 0;

    if (pem.n > INT32_MAX || !hk_str_contains(pem, PEM_HEAD)) {
        return hk_fail(err, HK_EINVAL, NOT_A_REQUEST);
    }
    int rc = gnutls_x509_crq_init(ret);
    if (rc < 0) {
        return fail_gnutls(err, "read the request", rc);
    }
    rc = gnutls_x509_crq_import(*ret, &text, GNUTLS_X509_FMT_PEM);
    if (rc == 0) {
        rc = gnutls_x509_crq_get_pk_algorithm(*ret, &bits);
    }
    if (rc >= 0 && bits > MAX_KEY_BITS) {
        return hk_fail(err, HK_ELIMIT, "the key of the request has %u bits: at most %d are allowed",
                       bits, MAX_KEY_BITS);
    }
    if (rc >= 0) {
        rc = gnutls_x509_crq_verify(*ret, 0);
    }
    return rc < 0 ? fail_gnutls(err, "read the request", rc) : 0;
}

/* One part of the subject, NULL after the last. A NUL inside could make one name pass for
 * another. */
static int read_part(gnutls_x509_crq_t crq, const char *oid, unsigned at, struct hk_arena *mem,
                     const char **ret, struct hk_err *err)
{
    char text[MAX_NAME];
    size_t n = sizeof(text);
    const int rc = gnutls_x509_crq_get_dn_by_oid(crq, oid, at, 0, text, &n);

    *ret = NULL;
    if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) {
        return 0;
    }
    if (rc < 0) {
        return fail_gnutls(err, "read the subject of the request", rc);
    }
    if (memchr(text, '\0', n)) {
        return hk_fail(err, HK_EINVAL, "the subject of the request contains a NUL");
    }
    *ret = hk_arena_strndup(mem, text, n);
    return 0;
}

static int read_subject(gnutls_x509_crq_t crq, struct hk_arena *mem, struct cert_request *ret,
                        struct hk_err *err)
{
    const char **orgs = hk_arena_array(mem, MAX_PARTS, sizeof(*orgs));
    int rc = read_part(crq, GNUTLS_OID_X520_COMMON_NAME, 0, mem, &ret->cn, err);

    if (rc < 0) {
        return rc;
    }
    ret->cn = ret->cn ? ret->cn : "";
    ret->orgs = orgs;
    for (;;) {
        const char *org;
        rc = read_part(crq, GNUTLS_OID_X520_ORGANIZATION_NAME, ret->norgs, mem, &org, err);
        if (rc < 0 || !org) {
            return rc;
        }
        if (ret->norgs == MAX_PARTS) {
            return hk_fail(err, HK_ELIMIT, "the request names more than %d organizations",
                           MAX_PARTS);
        }
        orgs[ret->norgs++] = org;
    }
}

typedef int alternative_fn(void *ctx, unsigned type, const char *name, size_t n);

/* Calls fn for each alternative name until it fails. */
static int each_alternative(gnutls_x509_crq_t crq, alternative_fn *fn, void *ctx,
                            struct hk_err *err)
{
    for (unsigned i = 0;; i++) {
        char name[MAX_NAME];
        size_t n = sizeof(name);
        unsigned type = 0;
        int rc = gnutls_x509_crq_get_subject_alt_name(crq, i, name, &n, &type, NULL);
        if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) {
            return 0;
        }
        if (rc >= 0 && i == CERT_REQUEST_MAX_NAMES) {
            return hk_fail(err, HK_ELIMIT, "the request has more than %d alternative names",
                           CERT_REQUEST_MAX_NAMES);
        }
        rc = rc < 0 ? rc : fn(ctx, type, name, n);
        if (rc < 0) {
            return fail_gnutls(err, "read the alternative names of the request", rc);
        }
    }
}

static int count_alternative(void *ctx, unsigned type, const char *name, size_t n)
{
    struct cert_request *q = ctx;

    q->ndns += type == GNUTLS_SAN_DNSNAME;
    q->nips += type == GNUTLS_SAN_IPADDRESS;
    q->nemails += type == GNUTLS_SAN_RFC822NAME;
    q->nuris += type == GNUTLS_SAN_URI;
    return 0;
}

int cert_request_read(struct hk_str pem, struct hk_arena *mem, struct cert_request *ret,
                      struct hk_err *err)
{
    gnutls_x509_crq_t crq = NULL;
    int rc = open_request(pem, &crq, err);

    *ret = (struct cert_request){.cn = ""};
    if (rc == 0) {
        rc = read_subject(crq, mem, ret, err);
    }
    if (rc == 0) {
        rc = each_alternative(crq, count_alternative, ret, err);
    }
    gnutls_x509_crq_deinit(crq);
    return rc;
}

/* ---- signing ---- */

struct signing {
    gnutls_x509_crq_t crq;
    gnutls_x509_crt_t crt, ca;
    gnutls_x509_privkey_t key;
};

static void signing_fini(struct signing *s)
{
    gnutls_x509_crq_deinit(s->crq);
    gnutls_x509_crt_deinit(s->crt);
    gnutls_x509_crt_deinit(s->ca);
    gnutls_x509_privkey_deinit(s->key);
}

static int open_authority(struct signing *s, const struct cert_pair *ca, struct hk_err *err)
{
    const gnutls_datum_t cert = {(unsigned char *)ca->cert_pem, (unsigned)strlen(ca->cert_pem)};
    const gnutls_datum_t key = {(unsigned char *)ca->key_pem, (unsigned)strlen(ca->key_pem)};
    int rc = gnutls_x509_crt_init(&s->ca);

    if (rc == 0) {
        rc = gnutls_x509_crt_import(s->ca, &cert, GNUTLS_X509_FMT_PEM);
    }
    if (rc == 0) {
        rc = gnutls_x509_privkey_init(&s->key);
    }
    if (rc == 0) {
        rc = gnutls_x509_privkey_import(s->key, &key, GNUTLS_X509_FMT_PEM);
    }
    return rc < 0 ? fail_gnutls(err, "read the authority", rc) : 0;
}

static int copy_alternative(void *ctx, unsigned type, const char *name, size_t n)
{
    if (type != GNUTLS_SAN_DNSNAME && type != GNUTLS_SAN_IPADDRESS &&
        type != GNUTLS_SAN_RFC822NAME && type != GNUTLS_SAN_URI) {
        return 0;
    }
    return gnutls_x509_crt_set_subject_alt_name(ctx, type, name, (unsigned)n, GNUTLS_FSAN_APPEND);
}

static int copy_subject(struct signing *s, struct hk_err *err)
{
    gnutls_datum_t dn = {0};
    int rc = gnutls_x509_crq_get_dn2(s->crq, &dn);

    if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) {
        return 0; /* an empty subject */
    }
    if (rc == 0) {
        rc = gnutls_x509_crt_set_crq(s->crt, s->crq); /* subject and key */
    }
    gnutls_free(dn.data);
    return rc < 0 ? fail_gnutls(err, "copy the subject", rc) : 0;
}

static int cert_request_set_serial(gnutls_x509_crt_t crt)
{
    unsigned char serial[16];
    const int rc = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

    serial[0] = (unsigned char)((serial[0] & 0x7f) | 0x40); /* positive and not zero */
    return rc < 0 ? rc : gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
}

static int find_usage(const char *name)
{
    for (int i = 0; cert_usages[i]; i++) {
        if (strcmp(cert_usages[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static int set_usages(gnutls_x509_crt_t crt, const struct cert_sign_opts *o)
{
    unsigned bits = 0;
    int rc = 0;

    for (uint32_t i = 0; i < o->nusages && rc == 0; i++) {
        const int at = find_usage(o->usages[i]);
        if (at < 0) {
            return GNUTLS_E_INVALID_REQUEST;
        }
        bits |= usage_meanings[at].bit;
        if (usage_meanings[at].oid) {
            rc = gnutls_x509_crt_set_key_purpose_oid(crt, usage_meanings[at].oid, 0);
        }
    }
    if (rc == 0 && bits) {
        rc = gnutls_x509_crt_set_key_usage(crt, bits);
    }
    return rc < 0 ? rc : gnutls_x509_crt_set_basic_constraints(crt, 0, -1);
}

static int cert_request_set_times(struct signing *s, const struct cert_sign_opts *o)
{
    const int64_t end_s = gnutls_x509_crt_get_expiration_time(s->ca);
    const int rc = gnutls_x509_crt_set_activation_time(s->crt, o->from_s);

    return rc < 0 ? rc : gnutls_x509_crt_set_expiration_time(s->crt, HK_MIN(o->until_s, end_s));
}

static int set_authority_id(struct signing *s)
{
    unsigned char id[64];
    size_t n = sizeof(id);

    if (gnutls_x509_crt_get_subject_key_id(s->ca, id, &n, NULL) < 0) {
        return 0; /* an authority of a user may have none */
    }
    return gnutls_x509_crt_set_authority_key_id(s->crt, id, n);
}

static int fill_certificate(struct signing *s, const struct cert_sign_opts *o, struct hk_err *err)
{
    int rc = copy_subject(s, err);

    if (rc < 0) {
        return rc;
    }
    rc = each_alternative(s->crq, copy_alternative, s->crt, err);
    if (rc < 0) {
        return rc;
    }
    rc = gnutls_x509_crt_set_version(s->crt, 3);
    if (rc == 0) {
        rc = cert_request_set_serial(s->crt);
    }
    if (rc == 0) {
        rc = cert_request_set_times(s, o);
    }
    if (rc == 0) {
        rc = set_usages(s->crt, o);
    }
    if (rc == 0) {
        rc = set_authority_id(s);
    }
    if (rc == 0) {
        rc = gnutls_x509_crt_sign2(s->crt, s->ca, s->key, GNUTLS_DIG_SHA256, 0);
    }
    return rc < 0 ? fail_gnutls(err, "sign the certificate", rc) : 0;
}

int cert_request_sign(struct hk_str pem, const struct cert_pair *ca, const struct cert_sign_opts *o,
                      char **ret, struct hk_err *err)
{
    HK_AUTO(signing_fini) struct signing s = {0};
    gnutls_datum_t text = {0};
    int rc = open_request(pem, &s.crq, err);

    if (rc == 0) {
        rc = open_authority(&s, ca, err);
    }
    if (rc < 0) {
        return rc;
    }
    rc = gnutls_x509_crt_init(&s.crt);
    if (rc < 0) {
        return fail_gnutls(err, "make a certificate", rc);
    }
    rc = fill_certificate(&s, o, err);
    if (rc < 0) {
        return rc;
    }
    rc = gnutls_x509_crt_export2(s.crt, GNUTLS_X509_FMT_PEM, &text);
    if (rc < 0) {
        return fail_gnutls(err, "write the certificate", rc);
    }
    *ret = hk_strndup((char *)text.data, text.size);
    gnutls_free(text.data);
    return 0;
}
