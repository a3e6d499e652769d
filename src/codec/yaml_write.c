// SPDX-License-Identifier: Apache-2.0
// Writes a JSON tree as YAML, as sigs.k8s.io/yaml does: go-yaml's emitter is a port of libyaml's, so
// libyaml does the layout. This file adds what go-yaml decides before its emitter: the order of
// keys, and which strings must be quoted because a reader would take them for something else. Where
// go-yaml would write text that reads back differently, this file quotes it: "<<" as a key, line ends
// of Unicode, and malformed UTF-8, which becomes U+FFFD. Lines are never wrapped.

#include "codec/yaml_priv.h"

#include <yaml.h>

static void yaml_write_value(yaml_emitter_t *e, const struct json *v);

static bool yaml_write_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- strings ---- */

/* Base 60 numbers of YAML 1.1, 12:30:45. We read them as strings, other readers do not:
 * [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)? */
static bool is_base60(struct hk_str s)
{
    size_t i = s.s[0] == '-' || s.s[0] == '+';
    bool parts = false;

    if (i == s.n || !yaml_write_is_digit(s.s[i])) {
        return false;
    }
    while (i < s.n && (yaml_write_is_digit(s.s[i]) || s.s[i] == '_')) {
        i++;
    }
    while (i + 1 < s.n && s.s[i] == ':' && yaml_write_is_digit(s.s[i + 1])) {
        const bool two = i + 2 < s.n && s.s[i + 1] <= '5' && yaml_write_is_digit(s.s[i + 2]);
        i += two ? 3 : 2;
        parts = true;
    }
    if (i < s.n && s.s[i] == '.') {
        i++;
        while (i < s.n && (yaml_write_is_digit(s.s[i]) || s.s[i] == '_')) {
            i++;
        }
    }
    return parts && i == s.n;
}

static bool reads_as_other(struct hk_str s, bool is_key)
{
    return yaml_scalar_plain(s).type != JSON_STRING || yaml_scalar_is_time(s) || is_base60(s) ||
           (is_key && hk_str_is(s, "<<"));
}

/* Line ends beyond ASCII: libyaml would write them as such, and readers would fold them. */
static bool has_unicode_line_end(struct hk_str s)
{
    static const struct hk_str ends[] = {{"\xc2\x85", 2}, {"\xe2\x80\xa8", 3}, {"\xe2\x80\xa9", 3}};

    for (size_t i = 0; s.n > 0 && i < HK_LEN(ends); i++) {
        if (memmem(s.s, s.n, ends[i].s, ends[i].n)) {
            return true;
        }
    }
    return false;
}

static yaml_scalar_style_t style_of(struct hk_str s, bool is_key)
{
    if (s.n == 0 || has_unicode_line_end(s)) {
        return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    }
    if (memchr(s.s, '\n', s.n)) {
        return YAML_LITERAL_SCALAR_STYLE;
    }
    return reads_as_other(s, is_key) ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;
}

/* Copies s with U+FFFD for malformed bytes. Returns false, with nothing written, if all is well. */
static bool repair_utf8(struct hk_str s, struct hk_buf *out)
{
    bool bad = false;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < s.n;) {
            uint32_t c;
            const unsigned len = yaml_utf8_next((struct hk_str){s.s + i, s.n - i}, &c);
            bad |= len == 0;
            if (pass == 1) {
                hk_buf_addstr(out, len ? (struct hk_str){s.s + i, len} : HK_STR("\xef\xbf\xbd"));
            }
            i += HK_MAX(len, 1U);
        }
        if (!bad) {
            return false;
        }
    }
    return true;
}

/* ---- order of keys ---- */

/* Bytes of longer UTF-8 characters count as letters: byte order is code point order. */
static bool is_letter(char c)
{
    const char low = (char)(c | 0x20);

    return (low >= 'a' && low <= 'z') || ((unsigned char)c & 0x80) != 0;
}

static uint64_t yaml_write_parse_digits(struct hk_str s, uint64_t start, size_t *at)
{
    uint64_t n = start;

    for (; *at < s.n && yaml_write_is_digit(s.s[*at]); (*at)++) {
        n = n * 10 + (uint64_t)(s.s[*at] - '0');
    }
    return n;
}

/* A non-zero digit just before i means that zeros from i on are part of a number. */
static bool inside_number(struct hk_str s, size_t i)
{
    while (i > 0 && yaml_write_is_digit(s.s[i - 1])) {
        if (s.s[--i] != '0') {
            return true;
        }
    }
    return false;
}

/* a and b first differ at i, where neither has a letter or ends. */
static int cmp_numbers(struct hk_str a, struct hk_str b, size_t i)
{
    const bool zero = a.s[i] == '0' || b.s[i] == '0';
    const uint64_t start = zero && inside_number(a, i);
    size_t a_end = i, b_end = i;
    const uint64_t an = yaml_write_parse_digits(a, start, &a_end);
    const uint64_t bn = yaml_write_parse_digits(b, start, &b_end);

    if (an != bn) {
        return an < bn ? -1 : 1;
    }
    if (a_end != b_end) {
        return a_end < b_end ? -1 : 1;
    }
    return (unsigned char)a.s[i] < (unsigned char)b.s[i] ? -1 : 1;
}

/* go-yaml's keyList order: numbers in keys by value, letters after everything else, except that
 * directly after a digit they come first. */
static int cmp_keys(struct hk_str a, struct hk_str b)
{
    const size_t n = HK_MIN(a.n, b.n);
    size_t i = 0;

    while (i < n && a.s[i] == b.s[i]) {
        i++;
    }
    if (i == n) {
        return (a.n > b.n) - (a.n < b.n);
    }
    const bool al = is_letter(a.s[i]), bl = is_letter(b.s[i]);
    if (al && bl) {
        return (unsigned char)a.s[i] < (unsigned char)b.s[i] ? -1 : 1;
    }
    if (al || bl) {
        const bool after_digit = i > 0 && yaml_write_is_digit(a.s[i - 1]);
        return al == after_digit ? -1 : 1;
    }
    return cmp_numbers(a, b, i);
}

static int cmp_members(const void *a, const void *b)
{
    return cmp_keys((*(const struct json_member *const *)a)->key,
                    (*(const struct json_member *const *)b)->key);
}

/* ---- events ---- */

static void yaml_write_emit(yaml_emitter_t *e, int made, yaml_event_t *event)
{
    hk_assert(made && yaml_emitter_emit(e, event)); /* fails only without memory */
}

static void write_scalar(yaml_emitter_t *e, struct hk_str s, yaml_scalar_style_t style)
{
    yaml_event_t event;
    const int made = yaml_scalar_event_initialize(
        &event, NULL, NULL, (const yaml_char_t *)(s.n > 0 ? s.s : ""), (int)s.n, 1, 1, style);

    yaml_write_emit(e, made, &event);
}

static void write_string(yaml_emitter_t *e, struct hk_str s, bool is_key)
{
    HK_AUTO(hk_buf_fini) struct hk_buf repaired = {0};

    if (repair_utf8(s, &repaired)) {
        write_scalar(e, hk_buf_str(&repaired), YAML_DOUBLE_QUOTED_SCALAR_STYLE);
    } else {
        write_scalar(e, s, style_of(s, is_key));
    }
}

static void write_map(yaml_emitter_t *e, const struct json *v)
{
    HK_AUTO(hk_freep)
    const struct json_member **order =
        hk_realloc_array(NULL, HK_MAX(v->len, 1), sizeof(const struct json_member *));
    yaml_event_t event;

    for (uint32_t i = 0; i < v->len; i++) {
        order[i] = &v->members[i];
    }
    qsort(order, v->len, sizeof(const struct json_member *), cmp_members);
    yaml_write_emit(
        e, yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE),
        &event);
    for (uint32_t i = 0; i < v->len; i++) {
        write_string(e, order[i]->key, true);
        yaml_write_value(e, &order[i]->value);
    }
    yaml_write_emit(e, yaml_mapping_end_event_initialize(&event), &event);
}

static void yaml_write_list(yaml_emitter_t *e, const struct json *v)
{
    yaml_event_t event;

    yaml_write_emit(
        e, yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE),
        &event);
    for (uint32_t i = 0; i < v->len; i++) {
        yaml_write_value(e, &v->items[i]);
    }
    yaml_write_emit(e, yaml_sequence_end_event_initialize(&event), &event);
}

/* Writes a whole double as an integer with all digits exact: JSON's shortest form is exact only if
 * read as a double again. */
static void write_other(yaml_emitter_t *e, const struct json *v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json settled = *v;

    json_write(yaml_scalar_settle(&settled, NULL) == 0 ? &settled : v, &text);
    write_scalar(e, hk_buf_str(&text), YAML_PLAIN_SCALAR_STYLE);
}

static void yaml_write_value(yaml_emitter_t *e, const struct json *v)
{
    switch (v->type) {
    case JSON_OBJECT:
        write_map(e, v);
        break;
    case JSON_ARRAY:
        yaml_write_list(e, v);
        break;
    case JSON_STRING:
        write_string(e, (struct hk_str){v->s, v->len}, false);
        break;
    default:
        write_other(e, v);
    }
}

static int yaml_write_add(void *out, unsigned char *bytes, size_t n)
{
    hk_buf_add(out, (const char *)bytes, n);
    return 1;
}

/* The stream is not ended: that would add "..." behind a text that ends with empty lines. */
void yaml_write(const struct json *v, struct hk_buf *out)
{
    yaml_emitter_t e;
    yaml_event_t event;

    hk_assert(yaml_emitter_initialize(&e));
    yaml_emitter_set_output(&e, yaml_write_add, out);
    yaml_emitter_set_unicode(&e, 1);
    yaml_emitter_set_width(&e, -1);
    yaml_write_emit(&e, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
    yaml_write_emit(&e, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
    yaml_write_value(&e, v);
    yaml_write_emit(&e, yaml_document_end_event_initialize(&event, 1), &event);
    hk_assert(yaml_emitter_flush(&e));
    yaml_emitter_delete(&e);
}
