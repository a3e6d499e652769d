// SPDX-License-Identifier: Apache-2.0
// Encodings: base64.encode and base64.decode, and jsonpatch.escapeKey of mutating policies.
#include "cel/cel_priv.h"
#include "codec/base64.h"

static int base64_encode(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    base64_write(v[0].s, &text);
    *ret = text_value(&text, r->a);
    return cel_spend_text(r, text.len);
}

/* Padding at the end may be missing, as in cel-go. */
static int base64_decode(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, bytes = {0};

    hk_buf_addstr(&text, v[0].s);
    while (text.len % 4 != 0) {
        hk_buf_addc(&text, '=');
    }
    if (!base64_read(hk_buf_str(&text), &bytes)) {
        return cel_error(r, "illegal base64 data");
    }
    *ret = text_value(&bytes, r->a);
    ret->kind = CEL_BYTES;
    return 0;
}

/* RFC 6901: "~" is "~0", "/" is "~1". */
static int base64_escape_key(struct cel_run *r, const struct cel_value *v, uint32_t n,
                             struct cel_value *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (size_t i = 0; i < v[0].s.n; i++) {
        const char c = v[0].s.s[i];
        if (c == '~' || c == '/') {
            hk_buf_adds(&text, c == '~' ? "~0" : "~1");
        } else {
            hk_buf_addc(&text, c);
        }
    }
    *ret = text_value(&text, r->a);
    return 0;
}

static const struct cel_func base64_funcs[] = {
    {"base64.encode", "y:s", base64_encode, COST_TEXT},
    {"base64.decode", "s:y", base64_decode, COST_TEXT},
    {"jsonpatch.escapeKey", "s:s", base64_escape_key, COST_TEXT},
};

const struct cel_lib cel_lib_base64 = {base64_funcs, HK_LEN(base64_funcs)};
