// SPDX-License-Identifier: Apache-2.0
// Writes a JSON tree as YAML, in the layout of sigs.k8s.io/yaml: block style, keys in go-yaml's
// natural order, lists at the indentation of their key, and for each string the style of go-yaml's
// emitter. Lines are never wrapped.

#include "codec/yaml_priv.h"

enum {
    INDENT = 2,
    SIMPLE_KEY_MAX = 128, /* bytes; longer or multi-line keys are written "? key" */
};

enum style { STYLE_PLAIN, STYLE_SINGLE, STYLE_DOUBLE, STYLE_LITERAL };

static void yaml_write_value(const struct json *v, unsigned indent, bool after_key,
                             struct hk_buf *out);

static void pad(unsigned n, struct hk_buf *out)
{
    hk_buf_reserve(out, n);
    for (unsigned i = 0; i < n; i++) {
        hk_buf_addc(out, ' ');
    }
}

static bool yaml_write_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Characters that go-yaml's emitter does not escape. Tabs and everything beyond the basic plane are
 * escaped, and so are the Unicode line ends, because readers fold them. */
static bool is_printable(uint32_t c)
{
    return c == '\n' || (c >= 0x20 && c <= 0x7e) ||
           (c >= 0xa0 && c <= 0xfffd && c != 0xfeff && c != 0x2028 && c != 0x2029);
}

static bool all_printable(struct hk_str s)
{
    for (size_t i = 0; i < s.n;) {
        uint32_t c;
        const unsigned len = yaml_utf8_next((struct hk_str){s.s + i, s.n - i}, &c);
        if (len == 0 || !is_printable(c)) {
            return false;
        }
        i += len;
    }
    return true;
}

/* Blank or end. */
static bool blank_at(struct hk_str s, size_t i)
{
    return i >= s.n || s.s[i] == ' ' || s.s[i] == '\n';
}

/* Starts with or contains text that has a special meaning in block context. */
static bool has_indicator(struct hk_str s)
{
    if (hk_str_starts(s, "---") || hk_str_starts(s, "...") || strchr("#,[]{}&*!|>'\"%@`", s.s[0]) ||
        (strchr("-?:", s.s[0]) && blank_at(s, 1))) {
        return true;
    }
    for (size_t i = 1; i < s.n; i++) {
        if ((s.s[i] == ':' && blank_at(s, i + 1)) || (s.s[i] == '#' && blank_at(s, i - 1))) {
            return true;
        }
    }
    return false;
}

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

static enum style style_of(struct hk_str s, bool is_key)
{
    if (s.n == 0 || !all_printable(s)) {
        return STYLE_DOUBLE;
    }
    if (memchr(s.s, '\n', s.n)) {
        const bool blank_line_end = s.s[s.n - 1] == ' ' || memmem(s.s, s.n, " \n", 2);
        return blank_line_end ? STYLE_DOUBLE : STYLE_LITERAL;
    }
    if (reads_as_other(s, is_key)) {
        return STYLE_DOUBLE;
    }
    return s.s[0] == ' ' || s.s[s.n - 1] == ' ' || has_indicator(s) ? STYLE_SINGLE : STYLE_PLAIN;
}

static void write_single(struct hk_str s, struct hk_buf *out)
{
    hk_buf_addc(out, '\'');
    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] == '\'') {
            hk_buf_addc(out, '\'');
        }
        hk_buf_addc(out, s.s[i]);
    }
    hk_buf_addc(out, '\'');
}

static char escape_letter(uint32_t c)
{
    static const char letters[] = {
        ['\0'] = '0', ['\a'] = 'a', ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n',  ['\v'] = 'v',
        ['\f'] = 'f', ['\r'] = 'r', [0x1b] = 'e', ['"'] = '"',  ['\\'] = '\\',
    };

    switch (c) {
    case 0x85:
        return 'N';
    case 0x2028:
        return 'L';
    case 0x2029:
        return 'P';
    default:
        return c < sizeof(letters) ? letters[c] : '\0';
    }
}

static void write_escape(uint32_t c, struct hk_buf *out)
{
    const char letter = escape_letter(c);

    if (letter) {
        hk_buf_addf(out, "\\%c", letter);
    } else if (c <= 0xff) {
        hk_buf_addf(out, "\\x%02X", c);
    } else if (c <= 0xffff) {
        hk_buf_addf(out, "\\u%04X", c);
    } else {
        hk_buf_addf(out, "\\U%08X", c);
    }
}

/* A malformed byte becomes U+FFFD: the output is always UTF-8. */
static void yaml_write_double_quoted(struct hk_str s, struct hk_buf *out)
{
    hk_buf_addc(out, '"');
    for (size_t i = 0; i < s.n;) {
        uint32_t c = 0xfffd;
        const unsigned len = yaml_utf8_next((struct hk_str){s.s + i, s.n - i}, &c);
        if (is_printable(c) && c != '\n' && c != '"' && c != '\\') {
            char utf8[4];
            hk_buf_add(out, utf8, yaml_utf8_put(c, utf8));
        } else {
            write_escape(c, out);
        }
        i += HK_MAX(len, 1U);
    }
    hk_buf_addc(out, '"');
}

/* Two indicators in front: the indentation if the first line does not show it, and the handling of
 * final line ends ('-': none, '+': keep all). */
static void write_literal(struct hk_str s, unsigned indent, struct hk_buf *out)
{
    const bool ended = s.s[s.n - 1] == '\n';
    struct hk_str line;

    hk_buf_addc(out, '|');
    if (s.s[0] == ' ' || s.s[0] == '\n') {
        hk_buf_addf(out, "%d", INDENT);
    }
    if (!ended) {
        hk_buf_addc(out, '-');
    } else if (s.n == 1 || s.s[s.n - 2] == '\n') {
        hk_buf_addc(out, '+');
    }
    s.n -= ended;
    while (hk_str_cut(&s, '\n', &line)) {
        hk_buf_addc(out, '\n');
        if (line.n > 0) {
            pad(indent, out);
            hk_buf_addstr(out, line);
        }
    }
}

/* indent is the start of a literal's lines. Writes no line end. */
static void write_string(struct hk_str s, bool is_key, unsigned indent, struct hk_buf *out)
{
    switch (style_of(s, is_key)) {
    case STYLE_PLAIN:
        hk_buf_addstr(out, s);
        break;
    case STYLE_SINGLE:
        write_single(s, out);
        break;
    case STYLE_DOUBLE:
        yaml_write_double_quoted(s, out);
        break;
    case STYLE_LITERAL:
        write_literal(s, indent, out);
        break;
    }
}

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

static void yaml_write_member(const struct json_member *m, unsigned indent, struct hk_buf *out)
{
    const bool simple =
        m->key.n <= SIMPLE_KEY_MAX && !(m->key.n > 0 && memchr(m->key.s, '\n', m->key.n));

    if (simple) {
        write_string(m->key, true, indent, out);
        hk_buf_addc(out, ':');
        yaml_write_value(&m->value, indent, true, out);
        return;
    }
    hk_buf_adds(out, "? ");
    write_string(m->key, true, indent + INDENT, out);
    hk_buf_addc(out, '\n');
    pad(indent, out);
    hk_buf_adds(out, ": ");
    yaml_write_value(&m->value, indent, false, out);
}

/* The first member starts at the current output position, the others on new lines. */
static void write_map(const struct json *v, unsigned indent, struct hk_buf *out)
{
    HK_AUTO(hk_freep)
    const struct json_member **order =
        hk_realloc_array(NULL, v->len, sizeof(const struct json_member *));

    for (uint32_t i = 0; i < v->len; i++) {
        order[i] = &v->members[i];
    }
    qsort(order, v->len, sizeof(const struct json_member *), cmp_members);
    for (uint32_t i = 0; i < v->len; i++) {
        pad(i > 0 ? indent : 0, out);
        yaml_write_member(order[i], indent, out);
    }
}

static void yaml_write_list(const struct json *v, unsigned indent, struct hk_buf *out)
{
    for (uint32_t i = 0; i < v->len; i++) {
        pad(i > 0 ? indent : 0, out);
        hk_buf_adds(out, "- ");
        yaml_write_value(&v->items[i], indent, false, out);
    }
}

static void write_container(const struct json *v, unsigned indent, struct hk_buf *out)
{
    if (v->type == JSON_OBJECT) {
        write_map(v, indent, out);
    } else {
        yaml_write_list(v, indent, out);
    }
}

static bool is_block(const struct json *v)
{
    return (v->type == JSON_OBJECT || v->type == JSON_ARRAY) && v->len > 0;
}

/* Writes a whole double as an integer with all digits exact: JSON's shortest form is exact only if
 * read as a double again. */
static void write_other(const struct json *v, struct hk_buf *out)
{
    struct json settled = *v;

    json_write(yaml_scalar_settle(&settled, NULL) == 0 ? &settled : v, out);
}

/* Writes v for the entry at indent, including the line end: after "key:", or after "- " and ": ",
 * where a container starts on the same line. */
static void yaml_write_value(const struct json *v, unsigned indent, bool after_key,
                             struct hk_buf *out)
{
    if (is_block(v)) {
        const unsigned inner = after_key && v->type == JSON_ARRAY ? indent : indent + INDENT;
        if (after_key) {
            hk_buf_addc(out, '\n');
            pad(inner, out);
        }
        write_container(v, inner, out);
        return;
    }
    if (after_key) {
        hk_buf_addc(out, ' ');
    }
    if (v->type == JSON_STRING) {
        write_string((struct hk_str){v->s, v->len}, false, indent + INDENT, out);
    } else {
        write_other(v, out);
    }
    hk_buf_addc(out, '\n');
}

void yaml_write(const struct json *v, struct hk_buf *out)
{
    if (is_block(v)) {
        write_container(v, 0, out);
    } else {
        yaml_write_value(v, 0, false, out);
    }
}
