// SPDX-License-Identifier: Apache-2.0
// SHA-256 digests, by which images and layers are known.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum { IMAGE_HEX = 64 };

/* "" means: none. */
struct image_digest {
    char hex[IMAGE_HEX + 1];
};

/* Parses "sha256:" and 64 lower-case hexadecimal digits. */
bool image_digest_parse(struct hk_str text, struct image_digest *ret);
/* The same without "sha256:". */
bool image_digest_parse_hex(struct hk_str text, struct image_digest *ret);
bool image_digest_is(const struct image_digest *a, const struct image_digest *b);
struct image_digest image_digest_of(struct hk_str text);

/* The digest of bytes that arrive in parts. Zero it to initialise. */
struct image_hash {
    void *handle;
};
void image_hash_add(struct image_hash *h, const void *p, size_t n);
/* Returns the digest of what was added, and frees the state. */
struct image_digest image_hash_end(struct image_hash *h);
