// SPDX-License-Identifier: Apache-2.0
// Splits scenario text into lines of words: quotes, comments, heredocs, and the bounds of
// scenarios. Other files interpret the words.
#include "sim/scn_priv.h"

struct parser {
    struct scn_file *f;
    struct hk_str rest;  /* text not yet read */
    struct hk_str now;   /* rest of the current line */
    uint32_t line;       /* its number */
    struct hk_str title; /* first comment of the file */
    HK_VEC(struct scn_word) words;
};

static int scn_parse_fail(const struct parser *p, struct hk_err *err, const char *what)
{
    return hk_fail(err, HK_EINVAL, "%s:%u: %s", p->f->path, p->line, what);
}

static bool next_line(struct parser *p)
{
    if (p->rest.n == 0) {
        return false;
    }
    hk_str_cut(&p->rest, '\n', &p->now);
    if (p->now.n > 0 && p->now.s[p->now.n - 1] == '\r') {
        p->now.n--;
    }
    p->line++;
    return true;
}

static void scn_parse_skip_blanks(struct parser *p)
{
    while (p->now.n > 0 && (p->now.s[0] == ' ' || p->now.s[0] == '\t')) {
        p->now.s++;
        p->now.n--;
    }
}

/* Cuts one word from the line. Quotes may occur anywhere in it; the first '=' outside of quotes
 * separates key and value. */
static int scn_parse_word(struct parser *p, struct scn_word *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    size_t eq = SIZE_MAX, i = 0;
    bool quoted = false;

    for (; i < p->now.n; i++) {
        const char c = p->now.s[i];
        if (c == '"') {
            quoted = !quoted;
        } else if (quoted && c == '\\' && i + 1 < p->now.n) {
            hk_buf_addc(&b, p->now.s[++i]);
        } else if (!quoted && (c == ' ' || c == '\t')) {
            break;
        } else {
            if (c == '=' && !quoted && eq == SIZE_MAX) {
                eq = b.len;
            }
            hk_buf_addc(&b, c);
        }
    }
    if (quoted) {
        return scn_parse_fail(p, err, "a quote is not closed");
    }
    const struct hk_str whole = hk_arena_str(&p->f->mem, hk_buf_str(&b));
    *ret = (struct scn_word){.key = whole};
    if (eq != SIZE_MAX) {
        *ret = (struct scn_word){{whole.s, eq}, {whole.s + eq + 1, whole.n - eq - 1}};
    }
    p->now.s += i;
    p->now.n -= i;
    return 0;
}

/* The text up to a line that contains only the mark. */
static int scn_parse_body(struct parser *p, struct hk_str mark, struct hk_str *ret,
                          struct hk_err *err)
{
    const uint32_t begin = p->line;
    const char *from = p->rest.n > 0 ? p->rest.s : "";

    while (next_line(p)) {
        if (hk_str_eq(hk_str_trim(p->now), mark)) {
            *ret = (struct hk_str){from, (size_t)(p->now.s - from)};
            p->now.n = 0;
            return 0;
        }
    }
    p->line = begin;
    return scn_parse_fail(p, err, "the text begun with << has no end");
}

static int take_words(struct parser *p, struct scn_line *line, struct hk_err *err)
{
    struct scn_word w = {0};
    int rc = 0;

    hk_vec_clear(&p->words);
    for (;;) {
        scn_parse_skip_blanks(p);
        if (p->now.n == 0 || p->now.s[0] == '#') {
            break;
        }
        rc = scn_parse_word(p, &w, err);
        if (rc < 0) {
            return rc;
        }
        if (hk_str_starts(w.key, "<<")) {
            const struct hk_str mark = {w.key.s + 2, w.key.n - 2};
            scn_parse_skip_blanks(p);
            if (mark.n == 0 || (p->now.n > 0 && p->now.s[0] != '#')) {
                return scn_parse_fail(p, err, "want the end of the line behind <<EOF");
            }
            rc = scn_parse_body(p, mark, &line->body, err);
            break;
        }
        hk_vec_push(&p->words, w);
    }
    line->n = p->words.len;
    line->words = hk_arena_array(&p->f->mem, line->n + 1, sizeof(*line->words));
    for (uint32_t k = 0; k < line->n; k++) {
        line->words[k] = p->words.at[k];
    }
    return rc;
}

static int begin_case(struct parser *p, const struct scn_line *line, struct hk_err *err)
{
    struct scn_file *f = p->f;

    if (line->n != 2 || line->words[1].value.s) {
        p->line = line->line;
        return scn_parse_fail(p, err, "want scenario \"name\"");
    }
    if (f->cases.len == 0) {
        f->preamble = f->lines.len;
    }
    hk_vec_push(
        &f->cases,
        ((struct scn_case){.name = line->words[1].key, .line = line->line, .first = f->lines.len}));
    return 0;
}

static int scn_parse_line(struct parser *p, struct hk_err *err)
{
    struct scn_line line = {.line = p->line};
    int rc;

    scn_parse_skip_blanks(p);
    if (p->now.n > 0 && p->now.s[0] == '#' && !p->title.s) {
        p->title = hk_str_trim((struct hk_str){p->now.s + 1, p->now.n - 1});
    }
    rc = take_words(p, &line, err);
    if (rc < 0 || (line.n == 0 && !line.body.s)) {
        return rc;
    }
    if (line.n == 0) {
        return scn_parse_fail(p, err, "text without a statement");
    }
    if (hk_str_is(line.words[0].key, "scenario")) {
        return begin_case(p, &line, err);
    }
    hk_vec_push(&p->f->lines, line);
    if (p->f->cases.len > 0) {
        p->f->cases.at[p->f->cases.len - 1].n++;
    }
    return 0;
}

/* A file without `scenario` lines is one scenario. */
static void whole_file(struct parser *p)
{
    struct scn_file *f = p->f;

    hk_vec_push(&f->cases, ((struct scn_case){.name = p->title.n > 0 ? p->title : hk_str(f->path),
                                              .line = 1,
                                              .n = f->lines.len}));
}

int scn_parse(struct scn_file *f, const char *path, struct hk_str text, struct hk_err *err)
{
    struct parser p = {.f = f, .rest = text};
    int rc = 0;

    *f = (struct scn_file){.path = path};
    if (text.n > SCN_MAX_BYTES) {
        return hk_fail(err, HK_ELIMIT, "%s: larger than %d bytes", path, SCN_MAX_BYTES);
    }
    while (rc == 0 && next_line(&p)) {
        rc = scn_parse_line(&p, err);
    }
    if (rc == 0 && f->cases.len == 0) {
        whole_file(&p);
    }
    hk_vec_fini(&p.words);
    return rc;
}

void scn_file_fini(struct scn_file *f)
{
    hk_vec_fini(&f->lines);
    hk_vec_fini(&f->cases);
    hk_arena_fini(&f->mem);
}
