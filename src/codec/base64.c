// SPDX-License-Identifier: Apache-2.0
// Base64 in both alphabets: six bits at a time, most significant first.
#include "codec/base64.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const char common[] = LETTERS "+/";
static const char for_urls[] = LETTERS "-_";

static void base64_encode(const char *alphabet, struct hk_str in, struct hk_buf *out)
{
    uint32_t bits = 0;
    unsigned have = 0;

    hk_buf_reserve(out, (in.n + 2) / 3 * 4);
    for (size_t i = 0; i < in.n; i++) {
        bits = bits << 8 | (uint8_t)in.s[i];
        for (have += 8; have >= 6; have -= 6) {
            hk_buf_addc(out, alphabet[bits >> (have - 6) & 63]);
        }
    }
    if (have > 0) {
        hk_buf_addc(out, alphabet[bits << (6 - have) & 63]);
    }
}

void base64_write(struct hk_str in, struct hk_buf *out)
{
    base64_encode(common, in, out);
    for (size_t n = in.n; n % 3 != 0; n++) {
        hk_buf_addc(out, '=');
    }
}

void base64url_write(struct hk_str in, struct hk_buf *out)
{
    base64_encode(for_urls, in, out);
}

/* Adds six bits to the pending ones, and writes the byte if it is complete. */
static bool base64_decode_char(const char *alphabet, char c, uint32_t *bits, unsigned *have,
                               struct hk_buf *out)
{
    const char *at = c != '\0' ? strchr(alphabet, c) : NULL;

    if (!at) {
        return false;
    }
    *bits = *bits << 6 | (uint32_t)(at - alphabet);
    *have += 6;
    if (*have >= 8) {
        *have -= 8;
        hk_buf_addc(out, (char)(*bits >> *have & 255));
    }
    return true;
}

bool base64_read(struct hk_str in, struct hk_buf *out)
{
    uint32_t bits = 0;
    unsigned have = 0;
    size_t seen = 0, pad = 0;

    for (size_t i = 0; i < in.n; i++) {
        const char c = in.s[i];

        if (c == '\n' || c == '\r') {
            continue;
        }
        seen++;
        if (c == '=') {
            pad++;
        } else if (pad > 0 || !base64_decode_char(common, c, &bits, &have, out)) {
            return false;
        }
    }
    return seen % 4 == 0 && pad <= 2;
}

bool base64url_read(struct hk_str in, struct hk_buf *out)
{
    uint32_t bits = 0;
    unsigned have = 0;

    for (size_t i = 0; i < in.n; i++) {
        if (!base64_decode_char(for_urls, in.s[i], &bits, &have, out)) {
            return false;
        }
    }
    return true;
}
