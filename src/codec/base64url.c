// SPDX-License-Identifier: Apache-2.0
// Six bits at a time, most significant first.
#include "codec/base64url.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_write(struct hk_str in, struct hk_buf *out)
{
    uint32_t bits = 0;
    unsigned have = 0;

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

bool base64url_read(struct hk_str in, struct hk_buf *out)
{
    uint32_t bits = 0;
    unsigned have = 0;

    for (size_t i = 0; i < in.n; i++) {
        const char *at = in.s[i] != '\0' ? strchr(alphabet, in.s[i]) : NULL;
        if (!at) {
            return false;
        }
        bits = bits << 6 | (uint32_t)(at - alphabet);
        have += 6;
        if (have >= 8) {
            have -= 8;
            hk_buf_addc(out, (char)(bits >> have & 255));
        }
    }
    return true;
}
