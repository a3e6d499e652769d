// SPDX-License-Identifier: Apache-2.0
// Certificate chains and keys, parsed once per change instead of once per handshake.
#include "net/identity.h"

#include "base/str.h"

enum { MAX_CHAIN = 16 };

struct identity {
    uint32_t refs; /* used by the loop's thread only */
    gnutls_pcert_st chain[MAX_CHAIN];
    unsigned nchain;
    gnutls_privkey_t key;
};

static gnutls_datum_t datum(const char *pem)
{
    return (gnutls_datum_t){(unsigned char *)pem, (unsigned)strlen(pem)};
}

static int identity_import_pair(struct identity *id, const char *cert_pem, const char *key_pem,
                                struct hk_err *err)
{
    const gnutls_datum_t cert = datum(cert_pem), key = datum(key_pem);
    unsigned n = MAX_CHAIN;
    int rc = gnutls_pcert_list_import_x509_raw(id->chain, &n, &cert, GNUTLS_X509_FMT_PEM, 0);

    if (rc < 0 || n == 0) {
        return hk_fail(err, HK_EINVAL, "cannot read the certificate: %s", gnutls_strerror(rc));
    }
    id->nchain = n;
    rc = gnutls_privkey_init(&id->key);
    if (rc == 0) {
        rc = gnutls_privkey_import_x509_raw(id->key, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
    }
    if (rc < 0) {
        return hk_fail(err, HK_EINVAL, "cannot read the key: %s", gnutls_strerror(rc));
    }
    return 0;
}

/* Signs with one and verifies with the other: works for every kind of key. */
static bool belong_together(const struct identity *id)
{
    const gnutls_datum_t text = datum("hekla");
    gnutls_datum_t signature = {0};
    const int bits = gnutls_privkey_sign_data(id->key, GNUTLS_DIG_SHA256, 0, &text, &signature);
    gnutls_sign_algorithm_t with = GNUTLS_SIGN_UNKNOWN;
    bool ok = false;

    if (bits >= 0) {
        with = gnutls_pk_to_sign(gnutls_privkey_get_pk_algorithm(id->key, NULL), GNUTLS_DIG_SHA256);
        ok = gnutls_pubkey_verify_data2(id->chain[0].pubkey, with, 0, &text, &signature) >= 0;
    }
    gnutls_free(signature.data);
    return ok;
}

int identity_new(const char *cert_pem, const char *key_pem, struct identity **ret,
                 struct hk_err *err)
{
    struct identity *id = hk_zalloc(sizeof(*id));
    int rc;

    id->refs = 1;
    rc = identity_import_pair(id, cert_pem, key_pem, err);
    if (rc == 0 && !belong_together(id)) {
        rc = hk_fail(err, HK_EINVAL, "the key does not belong to the certificate");
    }
    if (rc < 0) {
        identity_unref(id);
        return rc;
    }
    *ret = id;
    return 0;
}

struct identity *identity_ref(struct identity *id)
{
    id->refs++;
    return id;
}

void identity_unref(struct identity *id)
{
    if (!id || --id->refs > 0) {
        return;
    }
    for (unsigned i = 0; i < id->nchain; i++) {
        gnutls_pcert_deinit(&id->chain[i]);
    }
    gnutls_privkey_deinit(id->key);
    hk_free(id);
}

void identity_show(struct identity *id, gnutls_pcert_st **chain, unsigned *n, gnutls_privkey_t *key)
{
    *chain = id->chain;
    *n = id->nchain;
    *key = id->key;
}
