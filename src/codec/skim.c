// SPDX-License-Identifier: Apache-2.0
// Skips over JSON text by counting brackets (skim.h).
#include "codec/skim.h"

#include "base/err.h"

static void skim_skip_blanks(struct skim *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t')) {
        s->p++;
    }
}

bool skim_take(struct skim *s, char c)
{
    skim_skip_blanks(s);
    if (s->p == s->end || *s->p != c) {
        return false;
    }
    s->p++;
    return true;
}

/* Skips to the quote with an even number of backslashes before it. */
static bool skip_string(struct skim *s)
{
    const char *from = s->p + 1, *p = from;

    while ((p = memchr(p, '"', (size_t)(s->end - p)))) {
        const char *slash = p;
        while (slash > from && slash[-1] == '\\') {
            slash--;
        }
        p++;
        if ((p - slash) % 2 == 1) {
            s->p = p;
            return true;
        }
    }
    s->p = s->end;
    return false;
}

static bool skip_container(struct skim *s)
{
    uint32_t depth = 0;

    while (s->p < s->end) {
        const char c = *s->p;
        if (c == '"') {
            if (!skip_string(s)) {
                return false;
            }
            continue;
        }
        s->p++;
        if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            return true;
        }
    }
    return false;
}

static bool skip_scalar(struct skim *s)
{
    static const char ends[] = {',', ']', '}', ' ', '\n', '\r', '\t'};
    const char *from = s->p;

    while (s->p < s->end && !memchr(ends, *s->p, sizeof(ends))) {
        s->p++;
    }
    return s->p > from;
}

bool skim_value(struct skim *s, struct hk_str *ret)
{
    skim_skip_blanks(s);
    if (s->p == s->end) {
        return false;
    }
    const char *from = s->p;
    const bool ok = *from == '"'                   ? skip_string(s)
                    : *from == '{' || *from == '[' ? skip_container(s)
                                                   : skip_scalar(s);
    *ret = (struct hk_str){from, (size_t)(s->p - from)};
    return ok;
}

/* 1: another element starts. 0: the container ended. Negative: not JSON. *first: without comma. */
static int skim_next(struct skim *s, char close, bool *first)
{
    if (skim_take(s, close)) {
        return 0;
    }
    if (!*first && !skim_take(s, ',')) {
        return -HK_EINVAL;
    }
    *first = false;
    return 1;
}

int skim_key(struct skim *s, bool *first, struct hk_str *ret)
{
    const int more = skim_next(s, '}', first);
    struct hk_str key;

    if (more != 1) {
        return more;
    }
    if (!skim_value(s, &key) || key.n < 2 || key.s[0] != '"' || !skim_take(s, ':')) {
        return -HK_EINVAL;
    }
    *ret = (struct hk_str){key.s + 1, key.n - 2};
    return 1;
}

int skim_members(struct hk_str text, const char *const *names, struct hk_str *values, size_t n)
{
    struct skim s = {text.s, text.s + text.n};
    struct hk_str key, value;
    bool first = true;
    size_t found = 0;
    int more = skim_take(&s, '{') ? 1 : -HK_EINVAL;

    for (size_t i = 0; i < n; i++) {
        values[i] = (struct hk_str){"", 0};
    }
    while (more == 1 && found < n) {
        more = skim_key(&s, &first, &key);
        if (more == 1 && !skim_value(&s, &value)) {
            more = -HK_EINVAL;
        }
        for (size_t i = 0; more == 1 && i < n; i++) {
            if (hk_str_is(key, names[i])) {
                found += values[i].n == 0;
                values[i] = value;
            }
        }
    }
    return more < 0 ? more : 0;
}
