// SPDX-License-Identifier: Apache-2.0
// HyperNodes: they must have members, and their patterns must compile. For an unbalanced bracket,
// the most common mistake, the message is that of Go's regexp.
#include "admission/vc_priv.h"

#include "codec/re2.h"

/* Skips "[...]", whose first character may be a closing bracket; s->n when it is never closed. */
static size_t skip_brackets(struct hk_str s, size_t at)
{
    at += at + 1 < s.n && s.s[at + 1] == '^' ? 2 : 1;
    for (bool first = true; at < s.n && (first || s.s[at] != ']'); first = false) {
        at += s.s[at] == '\\' ? 2 : 1;
    }
    return HK_MIN(at, s.n);
}

/* Writes Go's message about an unbalanced bracket; false when there is none. */
static bool write_unbalanced(struct hk_str s, struct hk_buf *out)
{
    uint32_t depth = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] == '\\') {
            i++;
        } else if (s.s[i] == '[') {
            const size_t end = skip_brackets(s, i);
            if (end == s.n) {
                hk_buf_addf(out, "missing closing ]: `%.*s`", (int)(s.n - i), s.s + i);
                return true;
            }
            i = end;
        } else if (s.s[i] == '(') {
            depth++;
        } else if (s.s[i] == ')' && depth-- == 0) {
            hk_buf_addf(out, "unexpected ): `%.*s`", HK_FMT(s));
            return true;
        }
    }
    if (depth > 0) {
        hk_buf_addf(out, "missing closing ): `%.*s`", HK_FMT(s));
    }
    return depth > 0;
}

static void check_pattern(struct admission_request *scratch, const struct path *members,
                          struct hk_str pattern)
{
    const struct path selector = path_field(members, "selector");
    const struct path match = path_field(&selector, "regexMatch");
    const struct path p = path_field(&match, "pattern");
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};
    struct hk_err err = {0};
    struct re2 *re;

    if (!write_unbalanced(pattern, &why)) {
        if (re2_compile(pattern, &re, &err) == 0) {
            re2_free(re);
            return;
        }
        hk_buf_adds(&why, err.text);
    }
    cause_invalid_str(scratch, &p, pattern,
                      "member regexMatch pattern is invalid: error parsing regexp: %s", why.data);
}

void vc_hypernode_validate(struct vc *v)
{
    const struct json *list = json_at(v->q->obj, "spec.members");
    const struct path root = path_field(NULL, "[]");
    const struct path spec = path_field(&root, "spec");
    const struct path members = path_field(&spec, "members");
    struct admission_request scratch = vc_scratch(v);

    if (edit_len(list) == 0) {
        cause_invalid(&scratch, &members, NULL, "member must have at least one member");
    }
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct json *match = json_at(json_item(list, i), "selector.regexMatch");
        if (edit_has(match, "pattern")) {
            check_pattern(&scratch, &members, edit_str(match, "pattern"));
        }
    }
    vc_write_errors(v, &scratch);
    admission_request_fini(&scratch);
}
