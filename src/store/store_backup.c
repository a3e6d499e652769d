// SPDX-License-Identifier: Apache-2.0
// Backups as text: writes a copy of a store as lines, and reads the lines into a copy.
#include "store/store_files.h"

#include "store/store_priv.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- writing ---- */

static struct hk_str or_dash(struct hk_str s)
{
    return s.n > 0 ? s : HK_STR("-");
}

/* "WORD SUM REST"; the checksum continues from the line before. */
static void store_backup_write_line(struct store_backup *b, const char *word, struct hk_str rest,
                                    struct hk_buf *out)
{
    b->sum = hk_hash(rest.s, rest.n, b->sum);
    hk_buf_addf(out, "%s %016" PRIx64 " ", word, b->sum);
    hk_buf_addstr(out, rest);
    hk_buf_addc(out, '\n');
}

static void write_object(struct store_backup *b, const struct store_obj *o, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf rest = {0};

    hk_buf_addf(&rest, "%" PRIu64 " %" PRIu64 " %s %.*s %.*s %.*s ", o->rv, o->created_rv,
                hk_intern_str(&b->copy->names, o->res).s, HK_FMT(or_dash(o->ns)), HK_FMT(o->name),
                HK_FMT(or_dash(o->uid)));
    hk_buf_addstr(&rest, o->text);
    store_backup_write_line(b, "object", hk_buf_str(&rest), out);
}

bool store_backup_write(struct store_backup *b, struct hk_buf *out, size_t room)
{
    const size_t end = out->len + room;
    char text[64];

    if (!b->begun) {
        b->begun = true;
        snprintf(text, sizeof(text), "%016" PRIx64 " %" PRIu64, b->copy->identity, b->copy->rev);
        store_backup_write_line(b, "store", hk_str(text), out);
    }
    while (b->next < b->copy->objs.len && out->len < end) {
        write_object(b, b->copy->objs.at[b->next++], out);
    }
    if (b->next < b->copy->objs.len) {
        return true;
    }
    snprintf(text, sizeof(text), "%" PRIu32, b->copy->objs.len);
    store_backup_write_line(b, "end", hk_str(text), out);
    return false;
}

/* ---- reading ---- */

static int not_written(struct hk_err *err, const char *why)
{
    return hk_fail(err, HK_EINVAL, "%s", why);
}

static bool read_u64(struct hk_str *rest, int base, uint64_t *ret)
{
    struct hk_str word;
    char text[32], *end;

    if (!hk_str_cut(rest, ' ', &word) || word.n == 0 || word.n >= sizeof(text)) {
        return false;
    }
    memcpy(text, word.s, word.n);
    text[word.n] = '\0';
    *ret = strtoull(text, &end, base);
    return *end == '\0';
}

static bool store_backup_read_word(struct hk_str *rest, struct hk_str *ret)
{
    if (!hk_str_cut(rest, ' ', ret) || ret->n == 0 || !rest->s) {
        return false;
    }
    *ret = hk_str_is(*ret, "-") ? HK_STR("") : *ret;
    return true;
}

static int read_store(struct store_backup_reader *r, struct hk_str rest, struct hk_err *err)
{
    if (r->begun || !read_u64(&rest, 16, &r->copy->identity) ||
        !read_u64(&rest, 10, &r->copy->rev)) {
        return not_written(err, "not the beginning of a store");
    }
    r->begun = true;
    return 0;
}

static int store_backup_read_object(struct store_backup_reader *r, struct hk_str rest,
                                    struct hk_err *err)
{
    struct store_obj o = {0};
    struct hk_str resource;

    if (!read_u64(&rest, 10, &o.rv) || !read_u64(&rest, 10, &o.created_rv) ||
        !store_backup_read_word(&rest, &resource) || !store_backup_read_word(&rest, &o.ns) ||
        !store_backup_read_word(&rest, &o.name) || !store_backup_read_word(&rest, &o.uid)) {
        return not_written(err, "not an object");
    }
    o.res = hk_intern(&r->copy->names, resource);
    o.text = rest;
    hk_vec_push(&r->copy->objs, store_obj_new(&o));
    return 0;
}

static int read_end(struct store_backup_reader *r, struct hk_str rest, struct hk_err *err)
{
    uint64_t n;

    if (!read_u64(&rest, 10, &n) || n != r->copy->objs.len) {
        return not_written(err, "objects are missing");
    }
    r->ended = true;
    return 0;
}

int store_backup_read(struct store_backup_reader *r, struct hk_str line, struct hk_err *err)
{
    static const struct {
        const char *word;
        int (*read)(struct store_backup_reader *r, struct hk_str rest, struct hk_err *err);
    } lines[] = {{"object", store_backup_read_object}, {"store", read_store}, {"end", read_end}};
    struct hk_str rest = line, word;
    uint64_t sum;

    if (r->ended || !hk_str_cut(&rest, ' ', &word) || !read_u64(&rest, 16, &sum) || !rest.s) {
        return not_written(err, "not a line of a backup");
    }
    r->sum = hk_hash(rest.s, rest.n, r->sum);
    if (r->sum != sum) {
        return not_written(err, "its checksum differs");
    }
    for (size_t i = 0; i < HK_LEN(lines); i++) {
        if (hk_str_is(word, lines[i].word) && (r->begun || lines[i].read == read_store)) {
            return lines[i].read(r, rest, err);
        }
    }
    return not_written(err, "not a line of a backup");
}
