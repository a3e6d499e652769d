// SPDX-License-Identifier: Apache-2.0
// Certificate requests (PKCS#10), as PEM: what they ask for, and their signature by an authority.
#pragma once

#include "base/arena.h"
#include "net/cert.h"

enum { CERT_REQUEST_MAX_NAMES = 1000 }; /* alternative names of one request */

/* What a request asks for; all strings live in mem. */
struct cert_request {
    const char *cn; /* "": none */
    const char *const *orgs;
    uint32_t norgs;
    /* Numbers of alternative names by kind. */
    uint32_t ndns, nips, nemails, nuris;
};

/* Reads the first block of the text. Fails unless it is a request with a valid signature. */
int cert_request_read(struct hk_str pem, struct hk_arena *mem, struct cert_request *ret,
                      struct hk_err *err) HK_CHECKED;

/* Kubernetes' names of the uses of a key ("digital signature", "client auth", ...), NULL after the
 * last. */
extern const char *const cert_usages[];

struct cert_sign_opts {
    const char *const *usages; /* of cert_usages */
    uint32_t nusages;
    int64_t from_s, until_s; /* until_s is cut to the end of the authority */
};

/* Makes a certificate for the request's key, subject and alternative names; its other extensions are
 * ignored. *ret is PEM, the caller's. */
int cert_request_sign(struct hk_str pem, const struct cert_pair *ca, const struct cert_sign_opts *o,
                      char **ret, struct hk_err *err) HK_CHECKED;
