// SPDX-License-Identifier: Apache-2.0
// Kubernetes' library for JSON patches: the form of a key inside of a path.
#include "cel/cel_priv.h"

/* "/" is "~1" and "~" is "~0": RFC 6901. */
static int patch_escape_key(struct cel_run *r, const struct cel_value *v, uint32_t n,
                            struct cel_value *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    for (size_t i = 0; i < v[0].s.n; i++) {
        const char c = v[0].s.s[i];
        if (c == '~' || c == '/') {
            hk_buf_adds(&out, c == '~' ? "~0" : "~1");
        } else {
            hk_buf_addc(&out, c);
        }
    }
    *ret = text_value(&out, r->a);
    return 0;
}

static const struct cel_func patch_funcs[] = {
    {"jsonpatch.escapeKey", "s:s", patch_escape_key, COST_TEXT},
};

const struct cel_lib cel_lib_patch = {patch_funcs, HK_LEN(patch_funcs)};
