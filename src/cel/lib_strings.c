// SPDX-License-Identifier: Apache-2.0
// The strings extension: positions count characters, not bytes.
#include "cel/cel_priv.h"

static int strings_out_of_range(struct cel_run *r, int64_t i)
{
    return cel_error(r, "index out of range: %lld", (long long)i);
}

/* The byte offset of the i-th character; false if there are fewer than i. */
static bool strings_offset(struct hk_str s, int64_t i, size_t *ret)
{
    size_t at = 0, len;

    if (i < 0 || (uint64_t)i > s.n) {
        return false;
    }
    for (; i > 0 && at < s.n; i--, at += len) {
        text_decode(s, at, &len);
    }
    *ret = at;
    return i == 0;
}

static int strings_char_at(struct cel_run *r, const struct cel_value *v, uint32_t n,
                           struct cel_value *ret)
{
    const struct hk_str s = v[0].s;
    size_t at, len = 0;

    if (!strings_offset(s, v[1].i, &at)) {
        return strings_out_of_range(r, v[1].i);
    }
    if (at < s.n) {
        text_decode(s, at, &len);
    }
    *ret = cel_of_str((struct hk_str){s.s + at, len});
    return 0;
}

/* The character position of a byte offset. */
static int64_t strings_position(struct hk_str s, size_t at)
{
    return (int64_t)text_count((struct hk_str){s.s, at});
}

static int strings_index_of(struct cel_run *r, const struct cel_value *v, uint32_t n,
                            struct cel_value *ret)
{
    const struct hk_str s = v[0].s, part = v[1].s;
    size_t from = 0;

    if (n > 2 && !strings_offset(s, v[2].i, &from)) {
        return strings_out_of_range(r, v[2].i);
    }
    const char *hit = part.n == 0 ? s.s + from : memmem(s.s + from, s.n - from, part.s, part.n);
    *ret = cel_of_int(hit ? strings_position(s, (size_t)(hit - s.s)) : -1);
    return 0;
}

static int strings_last_index_of(struct cel_run *r, const struct cel_value *v, uint32_t n,
                                 struct cel_value *ret)
{
    const struct hk_str s = v[0].s, part = v[1].s;
    size_t from = s.n;

    if (n > 2 && !strings_offset(s, v[2].i, &from)) {
        return strings_out_of_range(r, v[2].i);
    }
    *ret = cel_of_int(-1);
    if (part.n > s.n) {
        return 0;
    }
    for (size_t at = HK_MIN(from, s.n - part.n) + 1; at > 0; at--) {
        if (hk_str_eq((struct hk_str){s.s + at - 1, part.n}, part)) {
            *ret = cel_of_int(strings_position(s, at - 1));
            break;
        }
    }
    return 0;
}

/* ---- case and space ---- */

static struct cel_value strings_map_ascii(struct hk_arena *a, struct hk_str s, char first,
                                          char last, int shift)
{
    char *out = hk_arena_strndup(a, s.s, s.n);

    for (size_t i = 0; i < s.n; i++) {
        if (out[i] >= first && out[i] <= last) {
            out[i] = (char)(out[i] + shift);
        }
    }
    return cel_of_str((struct hk_str){out, s.n});
}

static int strings_lower(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    *ret = strings_map_ascii(r->a, v[0].s, 'A', 'Z', 'a' - 'A');
    return 0;
}

static int strings_upper(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    *ret = strings_map_ascii(r->a, v[0].s, 'a', 'z', 'A' - 'a');
    return 0;
}

static bool strings_is_space(uint32_t c)
{
    return (c >= '\t' && c <= '\r') || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

static int strings_trim(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    const struct hk_str s = v[0].s;
    size_t from = s.n, end = 0, len;

    for (size_t at = 0; at < s.n; at += len) {
        if (!strings_is_space(text_decode(s, at, &len))) {
            from = HK_MIN(from, at);
            end = at + len;
        }
    }
    *ret = cel_of_str(end > 0 ? (struct hk_str){s.s + from, end - from} : HK_STR(""));
    return 0;
}

static int strings_reverse(struct cel_run *r, const struct cel_value *v, uint32_t n,
                           struct cel_value *ret)
{
    const struct hk_str s = v[0].s;
    char *out = hk_arena_alloc(r->a, s.n + 1);
    size_t len;

    for (size_t at = 0; at < s.n; at += len) {
        text_decode(s, at, &len);
        memcpy(out + s.n - at - len, s.s + at, len);
    }
    *ret = cel_of_str((struct hk_str){out, s.n});
    return 0;
}

/* ---- parts ---- */

static int strings_substring(struct cel_run *r, const struct cel_value *v, uint32_t n,
                             struct cel_value *ret)
{
    const struct hk_str s = v[0].s;
    size_t from, end = s.n;

    if (!strings_offset(s, v[1].i, &from)) {
        return strings_out_of_range(r, v[1].i);
    }
    if (n > 2 && !strings_offset(s, v[2].i, &end)) {
        return strings_out_of_range(r, v[2].i);
    }
    if (from > end) {
        return cel_error(r, "invalid substring range. start: %lld, end: %lld", (long long)v[1].i,
                         (long long)v[2].i);
    }
    *ret = cel_of_str((struct hk_str){s.s + from, end - from});
    return 0;
}

/* The end of the piece that begins at `from`, and where the next one begins. An empty separator
 * ends a piece after each character. */
static size_t strings_piece_end(struct hk_str s, size_t from, struct hk_str separator, size_t *next)
{
    size_t len;

    if (separator.n == 0) {
        text_decode(s, from, &len);
        *next = from + len;
        return *next;
    }
    const char *hit = memmem(s.s + from, s.n - from, separator.s, separator.n);
    const size_t end = hit ? (size_t)(hit - s.s) : s.n;
    *next = hit ? end + separator.n : s.n;
    return end;
}

static int strings_split(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    const struct hk_str s = v[0].s, separator = v[1].s;
    const int64_t limit = n > 2 ? v[2].i : -1;
    HK_VEC(struct cel_value) pieces = {0};
    size_t from = 0, next = 0;
    bool more = limit != 0 && (s.n > 0 || separator.n > 0);
    int rc = 0;

    while (more && rc == 0) {
        size_t end = s.n;
        more = limit < 0 || pieces.len + 1 < limit;
        if (more && from < s.n) {
            end = strings_piece_end(s, from, separator, &next);
        }
        more = more && (end < s.n) && (separator.n > 0 || next < s.n);
        rc = cel_spend(r, 1);
        hk_vec_push(&pieces, cel_of_str((struct hk_str){s.s + from, end - from}));
        from = next;
    }
    struct cel_value *items = hk_arena_array(r->a, pieces.len, sizeof(*items));
    if (pieces.len > 0) {
        memcpy(items, pieces.at, pieces.len * sizeof(*items));
    }
    *ret = cel_of_list(items, pieces.len, r->a);
    hk_vec_fini(&pieces);
    return rc;
}

static int strings_replace(struct cel_run *r, const struct cel_value *v, uint32_t n,
                           struct cel_value *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct hk_str s = v[0].s, old = v[1].s;
    int64_t left = n > 3 ? v[3].i : -1;
    size_t at = 0;
    int rc = 0;

    while (rc == 0 && left != 0 && at <= s.n) {
        const char *hit = old.n == 0 ? s.s + at : memmem(s.s + at, s.n - at, old.s, old.n);
        if (!hit) {
            break;
        }
        size_t next = (size_t)(hit - s.s) + old.n, len = 0;
        rc = text_add(r, &out, (struct hk_str){s.s + at, (size_t)(hit - s.s) - at});
        if (rc == 0) {
            rc = text_add(r, &out, v[2].s);
        }
        if (old.n == 0 && next < s.n) {
            text_decode(s, next, &len);
            hk_buf_add(&out, s.s + next, len);
        }
        at = next + (old.n == 0 ? HK_MAX(len, 1) : 0);
        left -= left > 0;
    }
    if (rc == 0 && at < s.n) {
        rc = text_add(r, &out, (struct hk_str){s.s + at, s.n - at});
    }
    *ret = text_value(&out, r->a);
    return rc;
}

static int strings_join(struct cel_run *r, const struct cel_value *v, uint32_t n,
                        struct cel_value *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    int rc = 0;

    for (uint32_t i = 0; i < v[0].list->len && rc == 0; i++) {
        const struct cel_value item = cel_list_at(v[0].list, i, r->a);
        if (item.kind != CEL_STRING) {
            return cel_no_overload(r);
        }
        rc = i > 0 && n > 1 ? text_add(r, &out, v[1].s) : 0;
        if (rc == 0) {
            rc = text_add(r, &out, item.s);
        }
    }
    *ret = text_value(&out, r->a);
    return rc;
}

static void strings_quote_char(struct hk_str s, size_t at, size_t len, struct hk_buf *out)
{
    static const char special[] = "\a\b\f\n\r\t\v\\\"", letters[] = "abfnrtv\\\"";
    const char *found = s.s[at] != '\0' ? strchr(special, s.s[at]) : NULL;

    if (found) {
        hk_buf_addc(out, '\\');
        hk_buf_addc(out, letters[found - special]);
    } else if (len == 1 && (unsigned char)s.s[at] >= 0x80) {
        hk_buf_adds(out, "\xEF\xBF\xBD"); /* an invalid byte: U+FFFD */
    } else {
        hk_buf_add(out, s.s + at, len);
    }
}

static int strings_quote(struct cel_run *r, const struct cel_value *v, uint32_t n,
                         struct cel_value *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    size_t len;

    hk_buf_addc(&out, '"');
    for (size_t at = 0; at < v[0].s.n; at += len) {
        text_decode(v[0].s, at, &len);
        strings_quote_char(v[0].s, at, len, &out);
    }
    hk_buf_addc(&out, '"');
    *ret = text_value(&out, r->a);
    return 0;
}

static const struct cel_func strings_funcs[] = {
    {"charAt", "s.i:s", strings_char_at, COST_TEXT},
    {"indexOf", "s.s:i", strings_index_of, COST_PRODUCT},
    {"indexOf", "s.si:i", strings_index_of, COST_PRODUCT},
    {"lastIndexOf", "s.s:i", strings_last_index_of, COST_PRODUCT},
    {"lastIndexOf", "s.si:i", strings_last_index_of, COST_PRODUCT},
    {"lowerAscii", "s.:s", strings_lower, COST_TEXT},
    {"upperAscii", "s.:s", strings_upper, COST_TEXT},
    {"trim", "s.:s", strings_trim, COST_TEXT},
    {"reverse", "s.:s", strings_reverse, COST_TEXT},
    {"substring", "s.i:s", strings_substring, COST_TEXT},
    {"substring", "s.ii:s", strings_substring, COST_TEXT},
    {"split", "s.s:S", strings_split, COST_TEXT},
    {"split", "s.si:S", strings_split, COST_TEXT},
    {"replace", "s.ss:s", strings_replace, COST_TEXT},
    {"replace", "s.ssi:s", strings_replace, COST_TEXT},
    {"join", "L.:s", strings_join, COST_ITEMS},
    {"join", "L.s:s", strings_join, COST_ITEMS},
    {"strings.quote", "s:s", strings_quote, COST_TEXT},
};

const struct cel_lib cel_lib_strings = {strings_funcs, HK_LEN(strings_funcs)};
