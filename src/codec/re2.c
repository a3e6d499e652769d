// SPDX-License-Identifier: Apache-2.0
// Rewrites RE2 patterns as POSIX extended ones, a character at a time. The common part means the
// same in both; classes such as \d and groups (?:...) are spelled out.
#include "codec/re2.h"

enum {
    PATTERN_MAX = 4096,
    REPEAT_MAX = 1000, /* all counts of a pattern multiplied: RE2's bound on how far it unfolds */
};

struct rewrite {
    struct hk_str in;
    size_t at;
    uint64_t repeats;
    struct hk_buf *out;
    struct hk_err *err;
};

static int refuse(const struct rewrite *w, const char *what)
{
    return hk_fail(w->err, HK_EINVAL, "pattern '%.*s': %s", HK_FMT(w->in), what);
}

static int peek(const struct rewrite *w, size_t ahead)
{
    return w->at + ahead < w->in.n ? (unsigned char)w->in.s[w->at + ahead] : -1;
}

/* The members of \d, \s, \w inside brackets; NULL for other letters. */
static const char *class_members(int c)
{
    switch (c) {
    case 'd':
        return "0-9";
    case 's':
        return "\t\n\f\r ";
    case 'w':
        return "0-9A-Za-z_";
    default:
        return NULL;
    }
}

static bool is_alnum(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* At a backslash outside brackets. */
static int rewrite_escape(struct rewrite *w)
{
    const int c = peek(w, 1);
    const bool negated = c >= 'A' && c <= 'Z';
    const char *members = class_members(negated ? c - 'A' + 'a' : c);

    w->at += 2;
    if (members) {
        hk_buf_addf(w->out, "[%s%s]", negated ? "^" : "", members);
    } else if (c == 'A' || c == 'z') {
        hk_buf_addc(w->out, c == 'A' ? '^' : '$');
    } else if (c == 'b' || c == 'B' || (c > 0 && c < 0x80 && !is_alnum(c))) {
        hk_buf_addc(w->out, '\\');
        hk_buf_addc(w->out, (char)c);
    } else {
        return refuse(w, "escape is not supported");
    }
    return 0;
}

/* At a backslash inside brackets, where POSIX knows no escapes: only what needs none can be said,
 * and a dash, which is plain at the end. */
static int rewrite_member(struct rewrite *w, bool *dash)
{
    const int c = peek(w, 1);
    const char *members = class_members(c);

    w->at += 2;
    if (members) {
        hk_buf_adds(w->out, members);
    } else if (c == '-') {
        *dash = true;
    } else if (c > 0 && c < 0x80 && !is_alnum(c) && !strchr("]^[", c)) {
        hk_buf_addc(w->out, (char)c);
    } else {
        return refuse(w, "escape inside brackets is not supported");
    }
    return 0;
}

/* "[:alpha:]" as it stands; at its first bracket. */
static int copy_named_class(struct rewrite *w)
{
    const struct hk_str rest = {w->in.s + w->at, w->in.n - w->at};
    const char *end = memmem(rest.s, rest.n, ":]", 2);

    if (!end) {
        return refuse(w, "bracket is not closed");
    }
    hk_buf_add(w->out, rest.s, (size_t)(end + 2 - rest.s));
    w->at += (size_t)(end + 2 - rest.s);
    return 0;
}

static int rewrite_bracket(struct rewrite *w)
{
    bool dash = false;
    int rc = 0;

    hk_buf_addc(w->out, '[');
    w->at++;
    if (peek(w, 0) == '^') {
        hk_buf_addc(w->out, '^');
        w->at++;
    }
    /* A closing bracket right here is a member. */
    for (bool first = true; rc == 0 && (first || peek(w, 0) != ']'); first = false) {
        const int c = peek(w, 0);
        if (c < 0) {
            return refuse(w, "bracket is not closed");
        }
        if (c == '\\') {
            rc = rewrite_member(w, &dash);
        } else if (c == '[' && peek(w, 1) == ':') {
            rc = copy_named_class(w);
        } else if (c == '[' && (peek(w, 1) == '.' || peek(w, 1) == '=')) {
            rc = refuse(w, "'[' inside brackets is not supported here");
        } else {
            hk_buf_addc(w->out, (char)c);
            w->at++;
        }
    }
    hk_buf_adds(w->out, dash ? "-]" : "]");
    w->at++;
    return rc;
}

/* "(?:" is a plain group, since nobody asks what it held. */
static int rewrite_group(struct rewrite *w)
{
    hk_buf_addc(w->out, '(');
    w->at++;
    if (peek(w, 0) != '?') {
        return 0;
    }
    if (peek(w, 1) != ':') {
        return refuse(w, "flags and named groups are not supported");
    }
    w->at += 2;
    return 0;
}

/* "{3}", "{3,}" and "{3,5}" repeat; any other brace is a character, in RE2 as here. */
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
        return refuse(w, "repeat counts multiply to more than 1000");
    }
    hk_buf_add(w->out, rest.s, (size_t)used);
    w->at += (size_t)used;
    return 0;
}

static int rewrite_all(struct rewrite *w)
{
    int rc = 0;

    while (rc == 0 && w->at < w->in.n) {
        const char c = w->in.s[w->at];
        if (c == '\\') {
            rc = rewrite_escape(w);
        } else if (c == '[') {
            rc = rewrite_bracket(w);
        } else if (c == '(') {
            rc = rewrite_group(w);
        } else if (c == '{') {
            rc = rewrite_repeat(w);
        } else {
            hk_buf_addc(w->out, c);
            w->at++;
        }
    }
    return rc;
}

int re2_compile(struct hk_str pattern, regex_t *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf posix = {0};
    struct rewrite w = {.in = pattern, .repeats = 1, .out = &posix, .err = err};
    char why[128];
    int rc;

    if (pattern.n > PATTERN_MAX) {
        return hk_fail(err, HK_ELIMIT, "pattern of %zu bytes, want at most %d", pattern.n,
                       PATTERN_MAX);
    }
    rc = rewrite_all(&w);
    if (rc < 0) {
        return rc;
    }
    rc = regcomp(ret, hk_buf_str(&posix).s, REG_EXTENDED | REG_NOSUB);
    if (rc != 0) {
        regerror(rc, ret, why, sizeof(why));
        return refuse(&w, why);
    }
    return 0;
}

bool re2_matches(const regex_t *re, struct hk_str text)
{
    regmatch_t part = {.rm_so = 0, .rm_eo = (regoff_t)text.n};

    return regexec(re, text.s ? text.s : "", 1, &part, REG_STARTEND) == 0;
}
