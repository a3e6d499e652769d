// SPDX-License-Identifier: Apache-2.0
#include "net/resolv.h"

#include "base/file.h"

#define SIZE_MOST ((size_t)64 << 10)

static void resolv_clear_words(resolv_words *list)
{
    while (list->len > 0) {
        hk_free(hk_vec_pop(list));
    }
}

void resolv_fini(struct resolv *r)
{
    resolv_words *const lists[] = {&r->servers, &r->search, &r->options};

    for (size_t i = 0; i < HK_LEN(lists); i++) {
        resolv_clear_words(lists[i]);
        hk_vec_fini(lists[i]);
    }
}

void resolv_add(resolv_words *list, struct hk_str word)
{
    for (uint32_t i = 0; i < list->len; i++) {
        if (hk_str_is(word, list->at[i])) {
            return;
        }
    }
    hk_vec_push(list, hk_strndup(word.s, word.n));
}

/* Cuts the first word off; false: there is none. */
static bool resolv_cut_word(struct hk_str *line, struct hk_str *ret)
{
    *line = hk_str_trim(*line);
    for (ret->s = line->s, ret->n = 0; ret->n < line->n; ret->n++) {
        if (line->s[ret->n] == ' ' || line->s[ret->n] == '\t') {
            break;
        }
    }
    line->s += ret->n;
    line->n -= ret->n;
    return ret->n > 0;
}

/* "example.org." is the same as "example.org"; "." stays. */
static struct hk_str resolv_without_dot(struct hk_str word)
{
    word.n -= word.n > 1 && word.s[word.n - 1] == '.';
    return word;
}

static void resolv_parse_line(struct hk_str line, struct resolv *ret)
{
    struct hk_str key, word;

    if (!resolv_cut_word(&line, &key)) {
        return;
    }
    if (hk_str_is(key, "nameserver") && resolv_cut_word(&line, &word)) {
        resolv_add(&ret->servers, word);
    } else if (hk_str_is(key, "search")) {
        resolv_clear_words(&ret->search);
        while (resolv_cut_word(&line, &word)) {
            resolv_add(&ret->search, resolv_without_dot(word));
        }
    } else if (hk_str_is(key, "options")) {
        while (resolv_cut_word(&line, &word)) {
            resolv_add(&ret->options, word);
        }
    }
}

void resolv_parse(struct hk_str text, struct resolv *ret)
{
    struct hk_str line;

    while (hk_str_cut(&text, '\n', &line)) {
        resolv_parse_line(line, ret);
    }
}

void resolv_read(const char *path, struct resolv *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (hk_read_file(path, SIZE_MOST, &text, NULL) == 0) {
        resolv_parse(hk_buf_str(&text), ret);
    }
}

static void resolv_write_line(const char *key, const resolv_words *words, struct hk_buf *out)
{
    if (words->len == 0) {
        return;
    }
    hk_buf_adds(out, key);
    for (uint32_t i = 0; i < words->len; i++) {
        hk_buf_addf(out, " %s", words->at[i]);
    }
    hk_buf_addc(out, '\n');
}

void resolv_write(const struct resolv *r, struct hk_buf *out)
{
    resolv_write_line("search", &r->search, out);
    for (uint32_t i = 0; i < r->servers.len; i++) {
        hk_buf_addf(out, "nameserver %s\n", r->servers.at[i]);
    }
    resolv_write_line("options", &r->options, out);
}
