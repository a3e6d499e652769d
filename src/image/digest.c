// SPDX-License-Identifier: Apache-2.0
// SHA-256 of texts and streams, by GnuTLS.
#include "image/digest.h"

#include <gnutls/crypto.h>

#define PREFIX "sha256:"

bool image_digest_parse_hex(struct hk_str text, struct image_digest *ret)
{
    if (text.n != IMAGE_HEX) {
        return false;
    }
    for (size_t i = 0; i < text.n; i++) {
        const char c = text.s[i];

        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) {
            return false;
        }
    }
    memcpy(ret->hex, text.s, IMAGE_HEX);
    ret->hex[IMAGE_HEX] = '\0';
    return true;
}

bool image_digest_parse(struct hk_str text, struct image_digest *ret)
{
    const size_t n = sizeof(PREFIX) - 1;

    return hk_str_starts(text, PREFIX) &&
           image_digest_parse_hex((struct hk_str){text.s + n, text.n - n}, ret);
}

bool image_digest_is(const struct image_digest *a, const struct image_digest *b)
{
    return memcmp(a->hex, b->hex, IMAGE_HEX) == 0;
}

void image_hash_add(struct image_hash *h, const void *p, size_t n)
{
    gnutls_hash_hd_t state = h->handle;

    if (!state) {
        const int rc = gnutls_hash_init(&state, GNUTLS_DIG_SHA256);

        hk_assert(rc == 0);
        h->handle = state;
    }
    gnutls_hash(state, p, n);
}

struct image_digest image_hash_end(struct image_hash *h)
{
    struct image_digest digest = {0};
    unsigned char bytes[IMAGE_HEX / 2];

    image_hash_add(h, "", 0);
    gnutls_hash_deinit(h->handle, bytes);
    h->handle = NULL;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(digest.hex + 2 * i, 3, "%02x", bytes[i]);
    }
    return digest;
}

struct image_digest image_digest_of(struct hk_str text)
{
    struct image_hash h = {0};

    image_hash_add(&h, text.s, text.n);
    return image_hash_end(&h);
}
