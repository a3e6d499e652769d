// SPDX-License-Identifier: Apache-2.0
// Three bytes become four letters.
#include "codec/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_write(struct hk_str bytes, struct hk_buf *out)
{
    hk_buf_reserve(out, (bytes.n + 2) / 3 * 4);
    for (size_t i = 0; i < bytes.n; i += 3) {
        const size_t left = bytes.n - i;
        const uint32_t b = (uint32_t)(unsigned char)bytes.s[i] << 16 |
                           (left > 1 ? (uint32_t)(unsigned char)bytes.s[i + 1] << 8 : 0) |
                           (left > 2 ? (uint32_t)(unsigned char)bytes.s[i + 2] : 0);

        hk_buf_addc(out, letters[b >> 18]);
        hk_buf_addc(out, letters[b >> 12 & 63]);
        hk_buf_addc(out, left > 1 ? letters[b >> 6 & 63] : '=');
        hk_buf_addc(out, left > 2 ? letters[b & 63] : '=');
    }
}
