// SPDX-License-Identifier: Apache-2.0
// Tokens of CEL: identifiers, numbers, strings and bytes with all their quotes, punctuation.
#include "cel/cel_priv.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

static int lex_peek(const struct cel_source *src, uint32_t at)
{
    return at < src->text.n ? (unsigned char)src->text.s[at] : -1;
}

static bool lex_is_word(int c)
{
    return c == '_' || (c > 0 && c < 0x80 && isalnum(c));
}

static void lex_skip_blanks(const struct cel_source *src, uint32_t *at)
{
    for (;;) {
        const int c = lex_peek(src, *at);
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
            ++*at;
        } else if (c == '/' && lex_peek(src, *at + 1) == '/') {
            while (*at < src->text.n && lex_peek(src, *at) != '\n') {
                ++*at;
            }
        } else {
            return;
        }
    }
}

/* ---- numbers ---- */

static uint32_t lex_digits(const struct cel_source *src, uint32_t at)
{
    while (lex_peek(src, at) >= '0' && lex_peek(src, at) <= '9') {
        at++;
    }
    return at;
}

/* The end of "e+10" at this place, or the place itself. */
static uint32_t lex_exponent(const struct cel_source *src, uint32_t at)
{
    uint32_t from = at + 1;

    if (lex_peek(src, at) != 'e' && lex_peek(src, at) != 'E') {
        return at;
    }
    if (lex_peek(src, from) == '+' || lex_peek(src, from) == '-') {
        from++;
    }
    const uint32_t end = lex_digits(src, from);
    return end > from ? end : at;
}

static int lex_double(struct cel_source *src, struct lex_token *t)
{
    const char *text = hk_arena_strndup(src->a, t->text.s, t->text.n);

    t->value = cel_of_double(strtod(text, NULL));
    return isinf(t->value.d) ? cel_issue(src, t->at, "invalid double literal") : 0;
}

static int lex_integer(struct cel_source *src, struct lex_token *t, bool is_unsigned)
{
    const bool hex = t->text.n > 2 && (t->text.s[1] == 'x' || t->text.s[1] == 'X');
    const char *text = hk_arena_strndup(src->a, t->text.s, t->text.n);
    char *end;

    errno = 0;
    const unsigned long long u = strtoull(hex ? text + 2 : text, &end, hex ? 16 : 10);
    /* 2^63 is read as a uint here; the parser accepts it behind a minus only. */
    if (errno != 0 || (!is_unsigned && u > (uint64_t)INT64_MAX + 1)) {
        return cel_issue(src, t->at, "invalid %s literal", is_unsigned ? "uint" : "int");
    }
    t->value = is_unsigned ? cel_of_uint(u) : cel_of_int((int64_t)u);
    return 0;
}

static int lex_number(struct cel_source *src, uint32_t *at, struct lex_token *t)
{
    const bool hex = lex_peek(src, *at) == '0' && (lex_peek(src, *at + 1) | 0x20) == 'x';
    uint32_t end = *at;
    bool fraction = false;

    if (hex) {
        for (end += 2; lex_peek(src, end) > 0 && isxdigit(lex_peek(src, end)); end++) {
        }
        if (end == *at + 2) {
            return cel_issue(src, *at, "invalid int literal");
        }
    } else {
        end = lex_digits(src, end);
        const uint32_t whole = end;
        if (lex_peek(src, end) == '.' && lex_digits(src, end + 1) > end + 1) {
            end = lex_digits(src, end + 1);
        }
        end = lex_exponent(src, end);
        fraction = end > whole;
    }
    t->kind = LEX_LITERAL;
    t->text = (struct hk_str){src->text.s + *at, end - *at};
    const bool is_unsigned = !fraction && (lex_peek(src, end) == 'u' || lex_peek(src, end) == 'U');
    *at = end + is_unsigned;
    if (lex_is_word(lex_peek(src, *at))) {
        return cel_issue(src, *at, "Syntax error: a number is followed by '%c'",
                         lex_peek(src, *at));
    }
    return fraction ? lex_double(src, t) : lex_integer(src, t, is_unsigned);
}

/* ---- strings ---- */

static void lex_put_utf8(char *out, size_t *n, uint32_t c)
{
    if (c < 0x80) {
        out[(*n)++] = (char)c;
    } else if (c < 0x800) {
        out[(*n)++] = (char)(0xC0 | c >> 6);
        out[(*n)++] = (char)(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        out[(*n)++] = (char)(0xE0 | c >> 12);
        out[(*n)++] = (char)(0x80 | (c >> 6 & 0x3F));
        out[(*n)++] = (char)(0x80 | (c & 0x3F));
    } else {
        out[(*n)++] = (char)(0xF0 | c >> 18);
        out[(*n)++] = (char)(0x80 | (c >> 12 & 0x3F));
        out[(*n)++] = (char)(0x80 | (c >> 6 & 0x3F));
        out[(*n)++] = (char)(0x80 | (c & 0x3F));
    }
}

/* Reads exactly n digits of the base behind the escape's letter. */
static bool lex_code(struct hk_str raw, size_t *i, unsigned n, unsigned base, uint32_t *ret)
{
    uint32_t code = 0;

    for (unsigned k = 0; k < n; k++, ++*i) {
        const int c = *i < raw.n ? (unsigned char)raw.s[*i] : 0;
        const int digit = c >= '0' && c <= '9'      ? c - '0'
                          : c < 0x80 && isxdigit(c) ? tolower(c) - 'a' + 10
                                                    : 99;
        if (digit >= (int)base) {
            return false;
        }
        code = code * base + (unsigned)digit;
    }
    *ret = code;
    return true;
}

/* An escape that stands for a number; *i is at its letter. */
static bool lex_numeric_escape(struct hk_str raw, size_t *i, bool bytes, char *out, size_t *n)
{
    const char c = raw.s[*i];
    uint32_t code;

    if (c >= '0' && c <= '3') {
        if (!lex_code(raw, i, 3, 8, &code)) {
            return false;
        }
    } else {
        const unsigned digits = c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        ++*i;
        if (digits == 0 || (bytes && digits > 2) || !lex_code(raw, i, digits, 16, &code)) {
            return false;
        }
    }
    if (bytes) {
        out[(*n)++] = (char)code;
        return true;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
        return false;
    }
    lex_put_utf8(out, n, code);
    return true;
}

/* Decodes the inside of a string or bytes literal. */
static int lex_unescape(struct cel_source *src, uint32_t at, struct hk_str raw, bool bytes,
                        struct hk_str *ret)
{
    static const char letters[] = "abfnrtv\\?\"'`", meanings[] = "\a\b\f\n\r\t\v\\?\"'`";
    char *out = hk_arena_alloc(src->a, raw.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < raw.n;) {
        if (raw.s[i] != '\\') {
            out[n++] = raw.s[i++];
            continue;
        }
        i++;
        const char *plain = i < raw.n && raw.s[i] != '\0' ? strchr(letters, raw.s[i]) : NULL;
        if (plain) {
            out[n++] = meanings[plain - letters];
            i++;
        } else if (i >= raw.n || !lex_numeric_escape(raw, &i, bytes, out, &n)) {
            return cel_issue(src, at, "invalid escape sequence in a literal");
        }
    }
    out[n] = '\0';
    *ret = (struct hk_str){out, n};
    return 0;
}

/* The end of a literal whose content begins at `at`, or UINT32_MAX. */
static uint32_t lex_close(const struct cel_source *src, uint32_t at, char quote, unsigned quotes,
                          bool raw)
{
    const char close[3] = {quote, quote, quote};

    for (; at + quotes <= src->text.n; at++) {
        if (memcmp(src->text.s + at, close, quotes) == 0) {
            return at;
        }
        if (quotes == 1 && (src->text.s[at] == '\n' || src->text.s[at] == '\r')) {
            break;
        }
        at += !raw && src->text.s[at] == '\\';
    }
    return UINT32_MAX;
}

/* At the first quote; the prefix was read. */
static int lex_string(struct cel_source *src, uint32_t *at, bool raw, bool bytes,
                      struct lex_token *t)
{
    const char quote = src->text.s[*at];
    const bool triple = lex_peek(src, *at + 1) == quote && lex_peek(src, *at + 2) == quote;
    const unsigned quotes = triple ? 3 : 1;
    const uint32_t from = *at + quotes, end = lex_close(src, from, quote, quotes, raw);

    if (end == UINT32_MAX) {
        return cel_issue(src, t->at, "Syntax error: a string is not closed");
    }
    struct hk_str text = {src->text.s + from, end - from};
    *at = end + quotes;
    if (!raw && lex_unescape(src, t->at, text, bytes, &text) < 0) {
        return -HK_EINVAL;
    }
    t->kind = LEX_LITERAL;
    t->value = bytes ? cel_of_bytes(text) : cel_of_str(text);
    return 0;
}

/* Whether a string begins here, behind prefixes such as "rb". */
static bool lex_string_prefix(const struct cel_source *src, uint32_t *at, bool *raw, bool *bytes)
{
    uint32_t i = *at;

    *raw = *bytes = false;
    for (unsigned k = 0; k < 2; k++, i++) {
        const int c = lex_peek(src, i) | 0x20;
        if (c == 'r' && !*raw) {
            *raw = true;
        } else if (c == 'b' && !*bytes) {
            *bytes = true;
        } else {
            break;
        }
    }
    if (lex_peek(src, i) != '"' && lex_peek(src, i) != '\'') {
        return false;
    }
    *at = i;
    return true;
}

/* ---- the rest ---- */

static int lex_punctuation(struct cel_source *src, uint32_t *at, struct lex_token *t)
{
    static const char *const words[] = {"&&", "||", "==", "!=", "<=", ">=", "<", ">",
                                        "+",  "-",  "*",  "/",  "%",  "!",  "?", ":",
                                        "(",  ")",  "[",  "]",  "{",  "}",  ".", ","};
    const struct hk_str rest = {src->text.s + *at, src->text.n - *at};

    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (hk_str_starts(rest, words[i])) {
            t->kind = LEX_PUNCT;
            t->text = (struct hk_str){rest.s, strlen(words[i])};
            *at += (uint32_t)t->text.n;
            return 0;
        }
    }
    const struct hk_str odd = hk_str_head(rest, 4);
    return cel_issue(src, *at, "Syntax error: token recognition error at: '%.*s'",
                     (int)HK_MIN(odd.n, 1), odd.s);
}

int lex_next(struct cel_source *src, uint32_t *at, struct lex_token *ret)
{
    bool raw, bytes;

    lex_skip_blanks(src, at);
    const int c = lex_peek(src, *at);
    *ret = (struct lex_token){.at = *at, .text = {src->text.s + *at, 0}};
    if (c < 0) {
        return 0;
    }
    if (lex_string_prefix(src, at, &raw, &bytes)) {
        return lex_string(src, at, raw, bytes, ret);
    }
    if (isdigit(c) || (c == '.' && lex_digits(src, *at + 1) > *at + 1)) {
        return lex_number(src, at, ret);
    }
    if (!lex_is_word(c)) {
        return lex_punctuation(src, at, ret);
    }
    while (lex_is_word(lex_peek(src, *at))) {
        ++*at;
    }
    ret->kind = LEX_IDENT;
    ret->text.n = *at - ret->at;
    return 0;
}
