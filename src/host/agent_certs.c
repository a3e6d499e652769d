// SPDX-License-Identifier: Apache-2.0
// Creates and keeps the serving certificate. The CA signs once, and its key is discarded.
#include "host/agent_certs.h"

#include "base/file.h"
#include "net/cert.h"

enum { DAYS = 3650, SOON_S = 30 * 86400, MAX_PEM_BYTES = 1 << 20 };

static bool agent_certs_is_good(const struct agent_certs_opts *o, const char *cert_path,
                                const char *key_path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf cert = {0}, key = {0};
    int64_t end_s;

    if (hk_read_file(cert_path, MAX_PEM_BYTES, &cert, NULL) < 0 ||
        hk_read_file(key_path, MAX_PEM_BYTES, &key, NULL) < 0 || cert_first(cert.data) == 0 ||
        cert_expiry(cert.data, &end_s, NULL) < 0 || end_s < o->now_s + SOON_S) {
        return false;
    }
    for (uint32_t i = 0; i < o->nnames; i++) {
        if (!cert_serves(cert.data, cert.data + cert_first(cert.data), o->names[i])) {
            return false;
        }
    }
    return true;
}

/* A pair for the node, signed by an authority that nothing else has. */
static int agent_certs_sign(const struct agent_certs_opts *o, struct cert_pair *ret_ca,
                            struct cert_pair *ret_pair, struct hk_err *err)
{
    static const char *const group = "system:nodes";
    HK_AUTO(hk_buf_fini) struct hk_buf who = {0};

    hk_buf_addf(&who, "system:node:%s", o->names[0]);
    const int rc = cert_make_ca(
        &(struct cert_opts){.cn = who.data, .now_s = o->now_s, .days = DAYS}, ret_ca, err);
    if (rc < 0) {
        return rc;
    }
    return cert_make(&(struct cert_opts){.cn = who.data,
                                         .orgs = &group,
                                         .norgs = 1,
                                         .names = o->names,
                                         .nnames = o->nnames,
                                         .server = true,
                                         .now_s = o->now_s,
                                         .days = DAYS},
                     ret_ca, ret_pair, err);
}

static int agent_certs_make(const struct agent_certs_opts *o, const char *cert_path,
                            const char *key_path, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf chain = {0};
    HK_AUTO(cert_pair_fini) struct cert_pair ca = {0}, pair = {0};
    int rc = agent_certs_sign(o, &ca, &pair, err);

    if (rc < 0) {
        return rc;
    }
    hk_buf_addf(&chain, "%s%s", pair.cert_pem, ca.cert_pem);
    rc = hk_write_file(key_path, hk_str(pair.key_pem), err);
    if (rc < 0) {
        return rc;
    }
    return hk_write_file(cert_path, hk_buf_str(&chain), err);
}

int agent_certs_keep(const struct agent_certs_opts *o, struct hk_buf *ret_cert,
                     struct hk_buf *ret_key, struct hk_err *err)
{
    hk_buf_addf(ret_cert, "%s/kubelet.crt", o->dir);
    hk_buf_addf(ret_key, "%s/kubelet.key", o->dir);
    return agent_certs_is_good(o, ret_cert->data, ret_key->data)
               ? 0
               : agent_certs_make(o, ret_cert->data, ret_key->data, err);
}
