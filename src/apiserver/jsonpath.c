// SPDX-License-Identifier: Apache-2.0
// JSONPath evaluation without compiling or allocating: each step cuts itself off the path and
// evaluates the rest for every value it selects.
#include "apiserver/jsonpath.h"

/* The recursion is as deep as the path is long. */
enum { MAX_BYTES = 1024 };

struct walk {
    jsonpath_fn *fn;
    void *ctx;
};

static void jsonpath_walk(const struct walk *w, const struct json *v, struct hk_str rest);

static struct hk_str jsonpath_skip(struct hk_str s, size_t n)
{
    return (struct hk_str){s.s + n, s.n - n};
}

/* The end of a name after a dot. */
static size_t name_end(struct hk_str s)
{
    size_t n = 0;

    while (n < s.n && s.s[n] != '.' && s.s[n] != '[') {
        n++;
    }
    return n;
}

static void each_child(const struct walk *w, const struct json *v, struct hk_str rest)
{
    for (uint32_t k = 0; k < json_len(v); k++) {
        jsonpath_walk(w, &v->items[k], rest);
    }
    for (uint32_t k = 0; json_is(v, JSON_OBJECT) && k < v->len; k++) {
        jsonpath_walk(w, &v->members[k].value, rest);
    }
}

/* ---- filters ---- */

struct filter {
    struct hk_str path, literal;
    bool equal, hit;
};

static bool is_quoted(struct hk_str s)
{
    return s.n >= 2 && (s.s[0] == '"' || s.s[0] == '\'') && s.s[s.n - 1] == s.s[0];
}

static void on_candidate(void *ctx, const struct json *v)
{
    struct filter *f = ctx;
    int64_t number;
    bool same = false;

    if (is_quoted(f->literal)) {
        same =
            json_is(v, JSON_STRING) &&
            hk_str_eq(json_str(v, HK_STR("")), (struct hk_str){f->literal.s + 1, f->literal.n - 2});
    } else if (json_is(v, JSON_BOOL)) {
        same = hk_str_is(f->literal, v->b ? "true" : "false");
    } else if (json_is(v, JSON_INT) && hk_str_int(f->literal, &number)) {
        same = v->i == number;
    }
    f->hit |= same == f->equal;
}

/* Reads the inner part of "?(@.a=='b')". */
static bool read_filter(struct hk_str s, struct filter *ret)
{
    if (!hk_str_starts(s, "?(@") || !hk_str_ends(s, ")")) {
        return false;
    }
    s = (struct hk_str){s.s + 3, s.n - 4};
    for (size_t k = 0; k + 1 < s.n; k++) {
        if ((s.s[k] == '=' || s.s[k] == '!') && s.s[k + 1] == '=') {
            *ret = (struct filter){.path = hk_str_trim((struct hk_str){s.s, k}),
                                   .literal = hk_str_trim(jsonpath_skip(s, k + 2)),
                                   .equal = s.s[k] == '='};
            return true;
        }
    }
    return false;
}

static void each_match(const struct walk *w, const struct json *v, const struct filter *f,
                       struct hk_str rest)
{
    for (uint32_t k = 0; k < json_len(v); k++) {
        struct filter test = *f;
        jsonpath_each(&v->items[k], test.path, on_candidate, &test);
        if (test.hit) {
            jsonpath_walk(w, &v->items[k], rest);
        }
    }
}

/* ---- steps ---- */

/* Length of "[...]", 0 if it does not end; brackets inside quotes are text. */
static size_t bracket_len(struct hk_str s)
{
    char quote = '\0';

    for (size_t k = 1; k < s.n; k++) {
        if (quote != '\0') {
            quote = s.s[k] == quote ? '\0' : quote;
        } else if (s.s[k] == '"' || s.s[k] == '\'') {
            quote = s.s[k];
        } else if (s.s[k] == ']') {
            return k + 1;
        }
    }
    return 0;
}

/* Reads one part of "[start:end:step]"; an empty one keeps the default. */
static bool read_bound(struct hk_str *rest, int64_t *at)
{
    struct hk_str part;

    if (!hk_str_cut(rest, ':', &part)) {
        return true;
    }
    part = hk_str_trim(part);
    return part.n == 0 || hk_str_int(part, at);
}

/* Selects what client-go's jsonpath does: negative bounds count from the end, the end is left out,
 * and a step is positive. */
static void each_of_slice(const struct walk *w, const struct json *v, struct hk_str in,
                          struct hk_str rest)
{
    const int64_t len = json_len(v);
    int64_t start = 0, end = len, step = 1;

    if (!read_bound(&in, &start) || !read_bound(&in, &end) || !read_bound(&in, &step) || in.s ||
        step < 1) {
        return;
    }
    start += start < 0 ? len : 0;
    end += end < 0 ? len : 0;
    if (start < 0) {
        return;
    }
    end = HK_MIN(end, len);
    for (; start < end; start += HK_MIN(step, len)) {
        jsonpath_walk(w, &v->items[start], rest);
    }
}

static void step_bracket(const struct walk *w, const struct json *v, struct hk_str path)
{
    const size_t n = bracket_len(path);
    struct filter filter;
    int64_t index;

    if (n < 3) {
        return;
    }
    const struct hk_str in = hk_str_trim((struct hk_str){path.s + 1, n - 2});
    const struct hk_str rest = jsonpath_skip(path, n);
    if (hk_str_is(in, "*")) {
        each_child(w, v, rest);
    } else if (is_quoted(in)) {
        jsonpath_walk(w, json_get_str(v, (struct hk_str){in.s + 1, in.n - 2}), rest);
    } else if (read_filter(in, &filter)) {
        each_match(w, v, &filter, rest);
    } else if (json_is(v, JSON_ARRAY) && memchr(in.s, ':', in.n)) {
        each_of_slice(w, v, in, rest);
    } else if (json_is(v, JSON_ARRAY) && hk_str_int(in, &index)) {
        index += index < 0 ? (int64_t)v->len : 0;
        if (index >= 0 && index < (int64_t)v->len) {
            jsonpath_walk(w, &v->items[index], rest);
        }
    }
}

static void jsonpath_walk(const struct walk *w, const struct json *v, struct hk_str rest)
{
    if (!v) {
        return;
    }
    if (rest.n == 0) {
        w->fn(w->ctx, v);
        return;
    }
    if (rest.s[0] == '[') {
        step_bracket(w, v, rest);
    } else if (rest.s[0] == '.') {
        const struct hk_str tail = jsonpath_skip(rest, 1);
        const size_t n = name_end(tail);
        if (n == 0) {
            jsonpath_walk(w, v, tail);
        } else if (n == 1 && tail.s[0] == '*') {
            each_child(w, v, jsonpath_skip(tail, n));
        } else {
            jsonpath_walk(w, json_get_str(v, (struct hk_str){tail.s, n}), jsonpath_skip(tail, n));
        }
    }
}

void jsonpath_each(const struct json *root, struct hk_str path, jsonpath_fn *fn, void *ctx)
{
    const struct walk w = {fn, ctx};

    path = hk_str_trim(path);
    if (hk_str_starts(path, "{") && hk_str_ends(path, "}")) {
        path = (struct hk_str){path.s + 1, path.n - 2};
    }
    if (hk_str_starts(path, "$")) {
        path = jsonpath_skip(path, 1);
    }
    if (path.n <= MAX_BYTES) {
        jsonpath_walk(&w, root, path);
    }
}
