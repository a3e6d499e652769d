// SPDX-License-Identifier: Apache-2.0
// Text forms: label selectors as in kubectl -l, and field selectors. Both come from query strings
// of clients, so every byte is checked.
#include "api/field_priv.h"
#include "api/selector.h"

struct lexer {
    struct hk_str text; /* the whole selector, for messages */
    size_t at;          /* where the search for the next token starts */
    struct hk_str tok;  /* the current token, empty at the end */
    size_t tok_at;
    struct hk_arena *a;
    struct hk_err *err;
};

static bool selector_text_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_special(char c)
{
    return c != '\0' && strchr("=!(),<>", c) != NULL;
}

static size_t special_len(const struct lexer *lx)
{
    const char *s = lx->text.s + lx->at;
    const bool pair = lx->at + 1 < lx->text.n && (s[0] == '=' || s[0] == '!') && s[1] == '=';
    return pair ? 2 : 1;
}

static void lex_next(struct lexer *lx)
{
    const struct hk_str t = lx->text;
    size_t end;

    while (lx->at < t.n && selector_text_is_blank(t.s[lx->at])) {
        lx->at++;
    }
    end = lx->at;
    if (end < t.n && is_special(t.s[end])) {
        end += special_len(lx);
    } else {
        while (end < t.n && !selector_text_is_blank(t.s[end]) && !is_special(t.s[end])) {
            end++;
        }
    }
    lx->tok_at = lx->at;
    lx->tok = (struct hk_str){t.s + lx->at, end - lx->at};
    lx->at = end;
}

static bool tok_is(const struct lexer *lx, const char *s)
{
    return hk_str_is(lx->tok, s);
}

static bool tok_word(const struct lexer *lx)
{
    return lx->tok.n > 0 && !is_special(lx->tok.s[0]);
}

static int lex_fail(const struct lexer *lx, const char *want)
{
    if (lx->tok.n == 0) {
        return hk_fail(lx->err, HK_EINVAL, "column %zu: want %s, have end of selector",
                       lx->tok_at + 1, want);
    }
    return hk_fail(lx->err, HK_EINVAL, "column %zu: want %s, have '%.*s'", lx->tok_at + 1, want,
                   HK_FMT(lx->tok));
}

static int parse_key(struct lexer *lx, struct hk_str *ret)
{
    if (!tok_word(lx)) {
        return lex_fail(lx, "a label key");
    }
    if (!api_label_key_valid(lx->tok)) {
        return hk_fail(lx->err, HK_EINVAL, "column %zu: bad label key '%.*s'", lx->tok_at + 1,
                       HK_FMT(lx->tok));
    }
    *ret = lx->tok;
    lex_next(lx);
    return 0;
}

/* A missing value is "". */
static int parse_value(struct lexer *lx, struct hk_str *ret)
{
    if (!tok_word(lx)) {
        *ret = HK_STR("");
        return 0;
    }
    if (!api_label_value_valid(lx->tok)) {
        return hk_fail(lx->err, HK_EINVAL, "column %zu: bad label value '%.*s'", lx->tok_at + 1,
                       HK_FMT(lx->tok));
    }
    *ret = lx->tok;
    lex_next(lx);
    return 0;
}

static uint32_t sort_unique(struct hk_str *at, uint32_t len)
{
    uint32_t kept = 0;

    qsort(at, len, sizeof(*at), field_str_cmp);
    for (uint32_t i = 0; i < len; i++) {
        if (kept == 0 || !hk_str_eq(at[kept - 1], at[i])) {
            at[kept++] = at[i];
        }
    }
    return kept;
}

static int parse_set(struct lexer *lx, struct api_strs *ret)
{
    uint32_t cap = 1;
    uint32_t len = 0;
    int rc;

    if (!tok_is(lx, "(")) {
        return lex_fail(lx, "'('");
    }
    /* Every comma in the rest may separate two values. */
    for (size_t i = lx->at; i < lx->text.n && lx->text.s[i] != ')'; i++) {
        cap += lx->text.s[i] == ',';
    }
    struct hk_str *at = hk_arena_array(lx->a, cap, sizeof(*at));
    do {
        lex_next(lx);
        rc = parse_value(lx, &at[len++]);
        if (rc < 0) {
            return rc;
        }
    } while (tok_is(lx, ","));
    if (!tok_is(lx, ")")) {
        return lex_fail(lx, "',' or ')'");
    }
    lex_next(lx);
    *ret = (struct api_strs){at, sort_unique(at, len)};
    return 0;
}

static int parse_single(struct lexer *lx, struct api_requirement *q)
{
    struct hk_str *value = hk_arena_alloc(lx->a, sizeof(*value));
    const size_t at = lx->tok_at;
    int rc;

    rc = parse_value(lx, value);
    if (rc < 0) {
        return rc;
    }
    q->values = (struct api_strs){value, 1};
    if ((q->op == API_OP_GT || q->op == API_OP_LT) && !hk_str_int(*value, &q->operand)) {
        return hk_fail(lx->err, HK_EINVAL, "column %zu: want an integer, have '%.*s'", at + 1,
                       HK_FMT(*value));
    }
    return 0;
}

static int parse_requirement(struct lexer *lx, struct api_requirement *q)
{
    static const struct {
        const char *text;
        enum api_op op;
        bool set;
    } ops[] = {
        {"=", API_OP_IN, false},        {"==", API_OP_IN, false}, {"!=", API_OP_NOT_IN, false},
        {">", API_OP_GT, false},        {"<", API_OP_LT, false},  {"in", API_OP_IN, true},
        {"notin", API_OP_NOT_IN, true},
    };
    int rc;

    *q = (struct api_requirement){.op = API_OP_EXISTS};
    if (tok_is(lx, "!")) {
        q->op = API_OP_NOT_EXISTS;
        lex_next(lx);
        return parse_key(lx, &q->key);
    }
    rc = parse_key(lx, &q->key);
    if (rc < 0 || lx->tok.n == 0 || tok_is(lx, ",")) {
        return rc;
    }
    for (size_t i = 0; i < HK_LEN(ops); i++) {
        if (tok_is(lx, ops[i].text)) {
            q->op = ops[i].op;
            lex_next(lx);
            return ops[i].set ? parse_set(lx, &q->values) : parse_single(lx, q);
        }
    }
    return lex_fail(lx, "an operator");
}

static int parse_all(struct lexer *lx, struct api_selector *s)
{
    int rc;

    lex_next(lx);
    if (lx->tok.n == 0) {
        return 0;
    }
    for (;;) {
        rc = parse_requirement(lx, &s->at[s->len++]);
        if (rc < 0 || lx->tok.n == 0) {
            return rc;
        }
        if (!tok_is(lx, ",")) {
            return lex_fail(lx, "','");
        }
        lex_next(lx);
    }
}

static uint32_t count_commas(struct hk_str text)
{
    uint32_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        n += text.s[i] == ',';
    }
    return n;
}

int api_selector_parse(struct hk_str text, struct hk_arena *a, struct api_selector *ret,
                       struct hk_err *err)
{
    struct lexer lx = {.text = text, .a = a, .err = err};
    struct api_selector s = {.present = true};
    int rc;

    s.at = hk_arena_array(a, (size_t)count_commas(text) + 1, sizeof(*s.at));
    rc = parse_all(&lx, &s);
    if (rc < 0) {
        return hk_wrap(err, rc, "selector '%.*s'", HK_FMT(text));
    }
    *ret = s;
    return 0;
}

static void write_set(const char *word, const struct api_requirement *q, struct hk_buf *out)
{
    hk_buf_addf(out, "%.*s %s (", HK_FMT(q->key), word);
    for (uint32_t i = 0; i < q->values.len; i++) {
        hk_buf_adds(out, i > 0 ? "," : "");
        hk_buf_addstr(out, q->values.at[i]);
    }
    hk_buf_addc(out, ')');
}

static void write_requirement(const struct api_requirement *q, struct hk_buf *out)
{
    static const struct {
        const char *single; /* operator between the key and a single value */
        const char *set;
    } words[] = {
        [API_OP_IN] = {"=", "in"}, [API_OP_NOT_IN] = {"!=", "notin"},  [API_OP_GT] = {">", NULL},
        [API_OP_LT] = {"<", NULL}, [API_OP_NOT_EXISTS] = {NULL, NULL},
    };

    if (q->op == API_OP_EXISTS || q->op == API_OP_NOT_EXISTS) {
        hk_buf_adds(out, q->op == API_OP_NOT_EXISTS ? "!" : "");
        hk_buf_addstr(out, q->key);
    } else if (q->values.len == 1) {
        hk_buf_addstr(out, q->key);
        hk_buf_adds(out, words[q->op].single);
        hk_buf_addstr(out, q->values.at[0]);
    } else {
        write_set(words[q->op].set, q, out);
    }
}

void api_selector_write(const struct api_selector *s, struct hk_buf *out)
{
    for (uint32_t i = 0; i < s->len; i++) {
        hk_buf_adds(out, i > 0 ? "," : "");
        write_requirement(&s->at[i], out);
    }
}

/* The part before the next comma that is not escaped by a backslash. */
static struct hk_str field_part(struct hk_str *rest)
{
    size_t i = 0;

    while (i < rest->n && rest->s[i] != ',') {
        i += rest->s[i] == '\\' && i + 1 < rest->n ? 2 : 1;
    }
    const struct hk_str part = {rest->s, i};
    const size_t skip = HK_MIN(i + 1, rest->n);
    *rest = (struct hk_str){rest->s + skip, rest->n - skip};
    return part;
}

static int field_unescape(struct hk_str in, struct hk_arena *a, struct hk_str *ret,
                          struct hk_err *err)
{
    char *out = hk_arena_alloc(a, in.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < in.n; i++) {
        char c = in.s[i];
        if (c == '\\') {
            c = ++i < in.n ? in.s[i] : '\0';
            if (c != '\\' && c != ',' && c != '=') {
                return hk_fail(err, HK_EINVAL, "bad escape in value '%.*s'", HK_FMT(in));
            }
        } else if (c == '=') {
            return hk_fail(err, HK_EINVAL, "bare '=' in value '%.*s'", HK_FMT(in));
        }
        out[n++] = c;
    }
    *ret = (struct hk_str){out, n};
    return 0;
}

static int field_term(struct hk_str part, struct hk_arena *a, struct api_field_requirement *ret,
                      struct hk_err *err)
{
    size_t i = 0;
    size_t op_len = 1;

    while (i < part.n && part.s[i] != '=' &&
           !(part.s[i] == '!' && i + 1 < part.n && part.s[i + 1] == '=')) {
        i++;
    }
    if (i == part.n) {
        return hk_fail(err, HK_EINVAL, "want '=', '==' or '!=' in '%.*s'", HK_FMT(part));
    }
    if (i == 0) {
        return hk_fail(err, HK_EINVAL, "no field name in '%.*s'", HK_FMT(part));
    }
    ret->negate = part.s[i] == '!';
    if (i + 1 < part.n && part.s[i + 1] == '=') {
        op_len = 2;
    }
    ret->path = hk_arena_strndup(a, part.s, i);
    return field_unescape((struct hk_str){part.s + i + op_len, part.n - i - op_len}, a, &ret->value,
                          err);
}

int api_field_selector_parse(struct hk_str text, struct hk_arena *a, struct api_field_selector *ret,
                             struct hk_err *err)
{
    struct api_field_selector s = {0};
    struct hk_str rest = text;
    int rc;

    s.at = hk_arena_array(a, (size_t)count_commas(text) + 1, sizeof(*s.at));
    while (rest.n > 0) {
        const struct hk_str part = field_part(&rest);
        if (part.n == 0) {
            continue; /* upstream ignores extra commas here */
        }
        rc = field_term(part, a, &s.at[s.len++], err);
        if (rc < 0) {
            return hk_wrap(err, rc, "field selector '%.*s'", HK_FMT(text));
        }
    }
    *ret = s;
    return 0;
}

static bool scalar_is(const struct json *v, struct hk_str want)
{
    char number[32];

    if (!v || v->type == JSON_NULL) {
        return want.n == 0;
    }
    if (v->type == JSON_STRING) {
        return hk_str_eq((struct hk_str){v->s, v->len}, want);
    }
    if (v->type == JSON_BOOL) {
        return hk_str_is(want, v->b ? "true" : "false");
    }
    if (v->type == JSON_INT) {
        snprintf(number, sizeof(number), "%lld", (long long)v->i);
        return hk_str_is(want, number);
    }
    return false;
}

bool api_field_selector_match(const struct api_field_selector *s, const struct json *doc)
{
    for (uint32_t i = 0; i < s->len; i++) {
        const struct api_field_requirement *q = &s->at[i];
        if (scalar_is(json_at(doc, q->path), q->value) == q->negate) {
            return false;
        }
    }
    return true;
}
