// SPDX-License-Identifier: Apache-2.0
// Translates an RE2 pattern into PCRE2's syntax. Most syntax has the same meaning in both and is
// copied. Syntax that only PCRE2 has is refused, so that a pattern is valid exactly if Kubernetes
// accepts it; the few escapes with another meaning are rewritten.
//
// Written here, because the RE2 library is C++, and no C library has its syntax. The matching itself
// is PCRE2's.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "codec/re2.h"

#include "base/mem.h"

#include <pcre2.h>

enum {
    PATTERN_MAX = 4096,
    REPEAT_MAX = 1000, /* product of all counts in a pattern: RE2's limit on expansion */
    WORKSPACE = 1000,  /* states of the matcher that fit on the stack; PCRE2 needs at least 20 */
    WORKSPACE_MAX = WORKSPACE << 6,
    STEPS_MAX = 100000, /* of a search that goes back: about a millisecond */
    HEAP_MAX_KIB = 16 << 10,
};

struct re2 {
    pcre2_code *code;
};

struct rewrite {
    struct hk_str in;
    size_t at;
    uint64_t repeats;
    /* Whether "$" also matches at the end of a line, for each open group and outside all groups. */
    bool multiline[PATTERN_MAX + 1];
    size_t depth;
    struct hk_buf *out;
    struct hk_err *err;
};

static int rewrite_refuse(const struct rewrite *w, const char *what)
{
    return hk_fail(w->err, HK_EINVAL, "pattern '%.*s': %s", HK_FMT(w->in), what);
}

static int rewrite_peek(const struct rewrite *w, size_t ahead)
{
    return w->at + ahead < w->in.n ? (unsigned char)w->in.s[w->at + ahead] : -1;
}

static void rewrite_copy(struct rewrite *w, size_t n)
{
    hk_buf_add(w->out, w->in.s + w->at, n);
    w->at += n;
}

static bool is_ascii_alnum(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* At "\Q": everything up to "\E" or the end is literal. */
static void rewrite_literal(struct rewrite *w)
{
    const struct hk_str rest = {w->in.s + w->at, w->in.n - w->at};
    const char *end = memmem(rest.s, rest.n, "\\E", 2);

    rewrite_copy(w, end ? (size_t)(end + 2 - rest.s) : rest.n);
}

/* At "\p" or "\x", with or without braces. PCRE2 reports errors in a name or number. */
static void rewrite_braced(struct rewrite *w)
{
    const struct hk_str rest = {w->in.s + w->at, w->in.n - w->at};
    const char *end = rewrite_peek(w, 2) == '{' ? memchr(rest.s, '}', rest.n) : NULL;

    rewrite_copy(w, end ? (size_t)(end + 1 - rest.s) : 2);
}

/* At a backslash. PCRE2's \s includes the vertical tab, and its \v is a class. */
static int rewrite_escape(struct rewrite *w, bool in_class)
{
    const int c = rewrite_peek(w, 1);

    if (c == 's' || c == 'S') {
        hk_buf_adds(w->out, in_class && c == 's' ? "\\t\\n\\f\\r "
                            : in_class           ? "\\S\\x0b"
                            : c == 's'           ? "[\\t\\n\\f\\r ]"
                                                 : "[^\\t\\n\\f\\r ]");
        w->at += 2;
    } else if (c == 'v') {
        hk_buf_adds(w->out, "\\x0b");
        w->at += 2;
    } else if (c == 'Q') {
        rewrite_literal(w);
    } else if (c == 'p' || c == 'P' || c == 'x') {
        rewrite_braced(w);
    } else if ((c > 0 && strchr("dDwWafnrt", c)) || (!in_class && c > 0 && strchr("AzbB", c)) ||
               (c > 0 && c < 0x80 && !is_ascii_alnum(c))) {
        rewrite_copy(w, 2);
    } else {
        return rewrite_refuse(w, "invalid escape sequence");
    }
    return 0;
}

/* Copies "[:alpha:]"; at its first bracket. */
static int copy_named_class(struct rewrite *w)
{
    const struct hk_str rest = {w->in.s + w->at, w->in.n - w->at};
    const char *end = memmem(rest.s, rest.n, ":]", 2);

    if (!end) {
        return rewrite_refuse(w, "missing closing ]");
    }
    rewrite_copy(w, (size_t)(end + 2 - rest.s));
    return 0;
}

static int rewrite_class(struct rewrite *w)
{
    int rc = 0;

    rewrite_copy(w, rewrite_peek(w, 1) == '^' ? 2 : 1);
    /* A closing bracket in first place is a member. */
    for (bool first = true; rc == 0 && (first || rewrite_peek(w, 0) != ']'); first = false) {
        const int c = rewrite_peek(w, 0);
        if (c < 0) {
            return rewrite_refuse(w, "missing closing ]");
        }
        if (c == '\\') {
            rc = rewrite_escape(w, true);
        } else if (c == '[' && rewrite_peek(w, 1) == ':') {
            rc = copy_named_class(w);
        } else if (c == '[') { /* "[." and "[=" would be errors in PCRE2 */
            hk_buf_adds(w->out, "\\[");
            w->at++;
        } else {
            rewrite_copy(w, 1);
        }
    }
    if (rc == 0) {
        rewrite_copy(w, 1);
    }
    return rc;
}

static void rewrite_open_group(struct rewrite *w)
{
    w->multiline[w->depth + 1] = w->multiline[w->depth];
    w->depth++;
}

static void rewrite_close_group(struct rewrite *w)
{
    w->depth -= w->depth > 0; /* PCRE2 reports an extra parenthesis */
    rewrite_copy(w, 1);
}

/* PCRE2's "$" also matches before a line break at the end of the text. */
static void rewrite_dollar(struct rewrite *w)
{
    hk_buf_adds(w->out, w->multiline[w->depth] ? "$" : "\\z");
    w->at++;
}

/* At "(?": a name "(?P<n>" or "(?<n>", or flags "(?i)", "(?i-s:". Both syntaxes agree on these. */
static int rewrite_special_group(struct rewrite *w)
{
    const bool python = rewrite_peek(w, 2) == 'P';
    const size_t name = python ? 4 : 3;
    bool multiline = w->multiline[w->depth], off = false;
    size_t n = 2;

    if (rewrite_peek(w, name - 1) == '<') {
        if (!is_ascii_alnum(rewrite_peek(w, name)) && rewrite_peek(w, name) != '_') {
            return rewrite_refuse(w, "invalid named capture"); /* look-behind, too */
        }
        rewrite_open_group(w);
        rewrite_copy(w, name);
        return 0;
    }
    for (; rewrite_peek(w, n) > 0 && strchr("imsU-", rewrite_peek(w, n)); n++) {
        off |= rewrite_peek(w, n) == '-';
        multiline = rewrite_peek(w, n) == 'm' ? !off : multiline;
    }
    if (rewrite_peek(w, n) == ':') {
        rewrite_open_group(w);
    } else if (rewrite_peek(w, n) != ')' || n == 2) {
        return rewrite_refuse(w, "invalid or unsupported Perl syntax");
    }
    w->multiline[w->depth] = multiline;
    rewrite_copy(w, n + 1);
    return 0;
}

static int rewrite_group(struct rewrite *w)
{
    if (rewrite_peek(w, 1) == '?') {
        return rewrite_special_group(w);
    }
    if (rewrite_peek(w, 1) == '*') { /* PCRE2 would read it as a verb */
        return rewrite_refuse(w, "missing argument to repetition operator: *");
    }
    rewrite_open_group(w);
    rewrite_copy(w, 1);
    return 0;
}

/* After a repetition: "?" makes it lazy; RE2 refuses a second repetition. */
static int rewrite_after_repeat(struct rewrite *w)
{
    if (rewrite_peek(w, 0) == '?') {
        rewrite_copy(w, 1);
    }
    return rewrite_peek(w, 0) > 0 && strchr("*+?", rewrite_peek(w, 0))
               ? rewrite_refuse(w, "invalid nested repetition operator")
               : 0;
}

/* "{3}", "{3,}" and "{3,5}" repeat; RE2 treats any other brace as a character. */
static int rewrite_repeat(struct rewrite *w)
{
    const struct hk_str rest = {w->in.s + w->at, w->in.n - w->at};
    HK_AUTO(hk_freep) char *text = hk_strndup(rest.s, rest.n);
    unsigned lo, hi;
    int used = 0;

    if (sscanf(text, "{%4u,%4u}%n", &lo, &hi, &used) < 2 || used == 0) {
        used = 0;
        if ((sscanf(text, "{%4u,}%n", &lo, &used) < 1 || used == 0) &&
            (sscanf(text, "{%4u}%n", &lo, &used) < 1 || used == 0)) {
            hk_buf_adds(w->out, "\\{");
            w->at++;
            return 0;
        }
        hi = lo;
    }
    w->repeats *= HK_MAX(HK_MAX(lo, hi), 1);
    if (w->repeats > REPEAT_MAX) {
        return rewrite_refuse(w, "invalid repeat count");
    }
    rewrite_copy(w, (size_t)used);
    return rewrite_after_repeat(w);
}

static int rewrite_next(struct rewrite *w)
{
    switch (rewrite_peek(w, 0)) {
    case '\\':
        return rewrite_escape(w, false);
    case '[':
        return rewrite_class(w);
    case '(':
        return rewrite_group(w);
    case ')':
        rewrite_close_group(w);
        return 0;
    case '$':
        rewrite_dollar(w);
        return 0;
    case '{':
        return rewrite_repeat(w);
    case '*':
    case '+':
    case '?':
        rewrite_copy(w, 1);
        return rewrite_after_repeat(w);
    default:
        rewrite_copy(w, 1);
        return 0;
    }
}

static int compile_code(const struct rewrite *w, pcre2_code **ret)
{
    const struct hk_str text = hk_buf_str(w->out);
    const uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    PCRE2_UCHAR why[128];
    PCRE2_SIZE where;
    int code;

    hk_assert(context);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    *ret = pcre2_compile((PCRE2_SPTR)text.s, text.n, options, &code, &where, context);
    pcre2_compile_context_free(context);
    if (!*ret) {
        pcre2_get_error_message(code, why, sizeof(why));
        return rewrite_refuse(w, (const char *)why);
    }
    return 0;
}

int re2_compile(struct hk_str pattern, struct re2 **ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct rewrite w = {.in = pattern, .repeats = 1, .out = &out, .err = err};
    pcre2_code *code;
    int rc;

    if (pattern.n > PATTERN_MAX) {
        return hk_fail(err, HK_ELIMIT, "pattern of %zu bytes, want at most %d", pattern.n,
                       PATTERN_MAX);
    }
    while (w.at < pattern.n) {
        rc = rewrite_next(&w);
        if (rc < 0) {
            return rc;
        }
    }
    rc = compile_code(&w, &code);
    if (rc < 0) {
        return rc;
    }
    *ret = hk_alloc(sizeof(**ret));
    (*ret)->code = code;
    return 0;
}

void re2_free(struct re2 *re)
{
    if (re) {
        pcre2_code_free(re->code);
        hk_free(re);
    }
}

void re2_freep(struct re2 **re)
{
    re2_free(*re);
}

bool re2_matches(const struct re2 *re, struct hk_str text)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    int small[WORKSPACE], *space = small;
    int rc;

    hk_assert(data);
    for (size_t n = WORKSPACE;; n *= 4) {
        rc = pcre2_dfa_match(re->code, (PCRE2_SPTR)(text.s ? text.s : ""), text.n, 0,
                             PCRE2_DFA_SHORTEST, data, NULL, space, n);
        if (space != small) {
            hk_free(space);
        }
        if (rc != PCRE2_ERROR_DFA_WSSIZE || n >= WORKSPACE_MAX) {
            break;
        }
        space = hk_alloc(n * 4 * sizeof(*space));
    }
    pcre2_match_data_free(data);
    return rc >= 0;
}

/* The longest match at the first place where there is one: 1, or 0. */
static int search_longest(const struct re2 *re, struct hk_str text, size_t from, struct hk_str *ret)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    int small[WORKSPACE], *space = small;
    int rc;

    hk_assert(data);
    for (size_t n = WORKSPACE;; n *= 4) {
        rc = pcre2_dfa_match(re->code, (PCRE2_SPTR)text.s, text.n, from, 0, data, NULL, space, n);
        if (space != small) {
            hk_free(space);
        }
        if (rc != PCRE2_ERROR_DFA_WSSIZE || n >= WORKSPACE_MAX) {
            break;
        }
        space = hk_alloc(n * 4 * sizeof(*space));
    }
    if (rc >= 0) {
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(data);
        *ret = (struct hk_str){text.s + at[0], at[1] - at[0]};
    }
    pcre2_match_data_free(data);
    return rc >= 0;
}

/* The first search never goes back over the text and finds the place; only the second one, which
 * knows that there is a match, weighs alternatives. */
int re2_search(const struct re2 *re, struct hk_str text, size_t from, struct hk_str *ret)
{
    const struct hk_str all = text.s ? text : HK_STR("");
    pcre2_match_context *context;
    pcre2_match_data *data;
    struct hk_str longest;

    if (!search_longest(re, all, from, &longest)) {
        return 0;
    }
    context = pcre2_match_context_create(NULL);
    data = pcre2_match_data_create(1, NULL);
    hk_assert(context && data);
    pcre2_set_match_limit(context, STEPS_MAX);
    pcre2_set_heap_limit(context, HEAP_MAX_KIB);
    const size_t start = (size_t)(longest.s - all.s);
    const int rc =
        pcre2_match(re->code, (PCRE2_SPTR)all.s, all.n, start, PCRE2_ANCHORED, data, context);
    if (rc >= 0) {
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(data);
        *ret = (struct hk_str){all.s + at[0], at[1] - at[0]};
    }
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    return rc >= 0 ? 1 : -HK_ELIMIT;
}
