// SPDX-License-Identifier: Apache-2.0
// Cuts lists into items while they arrive. Interprets only brackets, strings and the name of the
// member "items"; the parsers of the parts detect other invalid JSON.
#include "client/list_reader.h"

enum {
    MAX_SHELL_BYTES = 1 << 20,
    OBJECT_BYTES = 256, /* memory of an object besides its text and its tree */
};

static int fail_items(struct hk_err *err)
{
    return hk_fail(err, HK_EINVAL, "the items of the list are not a JSON array");
}

static bool list_reader_is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Tracks strings and brackets for one byte. */
static void note_byte(struct list_reader *r, char c)
{
    if (r->in_string) {
        if (r->escaped) {
            r->escaped = false;
        } else if (c == '\\') {
            r->escaped = true;
        } else {
            r->in_string = c != '"';
        }
    } else if (c == '"') {
        r->in_string = true;
    } else if (c == '{' || c == '[') {
        r->depth++;
    } else if ((c == '}' || c == ']') && r->depth > 0) {
        r->depth--;
    }
}

/* ---- around the items ---- */

/* Whether the text so far ends with the key "items" and its colon. */
static bool is_items_key(const struct hk_buf *shell)
{
    static const char key[] = "\"items\"";
    const size_t len = sizeof(key) - 1;
    size_t n = shell->len;

    while (n > 0 && list_reader_is_blank(shell->data[n - 1])) {
        n--;
    }
    if (n == 0 || shell->data[--n] != ':') {
        return false;
    }
    while (n > 0 && list_reader_is_blank(shell->data[n - 1])) {
        n--;
    }
    return n >= len && memcmp(shell->data + n - len, key, len) == 0;
}

/* Handles one byte outside the items. */
static int take_shell(struct list_reader *r, char c, struct hk_err *err)
{
    const bool opens = !r->in_string && (c == '[' || c == '{');

    if (r->shell.len == 0 && c != '{') {
        return list_reader_is_blank(c) ? 0
                                       : hk_fail(err, HK_EINVAL, "the answer is not a JSON object");
    }
    if (r->shell.len == MAX_SHELL_BYTES) {
        return hk_fail(err, HK_ELIMIT, "the list without its items is larger than %d bytes",
                       MAX_SHELL_BYTES);
    }
    if (opens && r->depth == 1 && is_items_key(&r->shell)) {
        if (c == '{') {
            return fail_items(err);
        }
        r->in_items = r->separated = true;
    }
    note_byte(r, c);
    hk_buf_addc(&r->shell, c);
    return 0;
}

/* ---- items ---- */

static int add_item(struct list_reader *r, struct hk_str text, struct hk_err *err)
{
    struct api_object *o = NULL;
    const int rc = decode_item(r->kind, text, r->text_only, &o, err);

    if (rc < 0) {
        return hk_wrap(err, rc, "items[%u]", r->items.len);
    }
    const size_t bytes = OBJECT_BYTES + o->text.n + o->arena.total;
    r->held += bytes;
    *r->held_all += bytes;
    hk_vec_push(&r->items, o);
    if (r->held > r->max_held) {
        return hk_fail(err, HK_ELIMIT, "%u items take more than %zu bytes of memory", r->items.len,
                       r->max_held);
    }
    if (*r->held_all > r->max_held_all) {
        return hk_fail(err, HK_ELIMIT, "unfinished lists take more than %zu bytes of memory",
                       r->max_held_all);
    }
    return 0;
}

/* Handles a byte between two items; sets r->in_item if an item starts with it. */
static int take_gap(struct list_reader *r, char c, struct hk_err *err)
{
    if (list_reader_is_blank(c)) {
        return 0;
    }
    if (c == ']') {
        r->in_items = false;
        r->depth--;
        hk_buf_addc(&r->shell, c);
        return 0;
    }
    if (c == ',' && !r->separated) {
        r->separated = true;
        return 0;
    }
    if (!r->separated) {
        return fail_items(err);
    }
    if (c != '{') {
        return hk_fail(err, HK_EINVAL, "items[%u]: want an object, have '%c'", r->items.len, c);
    }
    r->in_item = true;
    return 0;
}

/* Skips bytes of an item, up to its end or that of the piece. Returns their number. */
static size_t walk_item(struct list_reader *r, struct hk_str bytes)
{
    enum { OUTSIDE = 2 }; /* the list's own brackets */
    size_t n = 0;

    while (n < bytes.n) {
        note_byte(r, bytes.s[n++]);
        if (r->depth == OUTSIDE && !r->in_string) {
            r->in_item = false;
            break;
        }
    }
    return n;
}

static int take_item(struct list_reader *r, struct hk_str part, struct hk_err *err)
{
    if (part.n > r->max_item - HK_MIN(r->item.len, r->max_item)) {
        return hk_fail(err, HK_ELIMIT, "items[%u] is larger than %zu bytes", r->items.len,
                       r->max_item);
    }
    if (!r->in_item && r->item.len == 0) {
        r->separated = false;
        return add_item(r, part, err);
    }
    hk_buf_addstr(&r->item, part);
    if (r->in_item) {
        return 0;
    }
    const int rc = add_item(r, hk_buf_str(&r->item), err);
    hk_buf_clear(&r->item);
    r->separated = false;
    return rc;
}

int list_reader_feed(struct list_reader *r, struct hk_str bytes, struct hk_err *err)
{
    size_t at = 0;
    int rc = 0;

    while (at < bytes.n && rc == 0) {
        if (r->in_item) {
            const struct hk_str rest = {bytes.s + at, bytes.n - at};
            const struct hk_str part = {rest.s, walk_item(r, rest)};
            at += part.n;
            rc = take_item(r, part, err);
        } else if (r->in_items) {
            rc = take_gap(r, bytes.s[at], err);
            at += !r->in_item; /* else the byte is the first of the item */
        } else {
            rc = take_shell(r, bytes.s[at++], err);
        }
    }
    return rc;
}

/* ---- finishing ---- */

int list_reader_finish(struct list_reader *r, struct hk_arena *mem, struct decode_list *ret,
                       struct hk_err *err)
{
    if (r->in_items) {
        return fail_items(err);
    }
    const int rc = decode_list_shell(hk_buf_str(&r->shell), mem, ret, err);
    if (rc == 0 && r->items.len > 0) {
        ret->items = hk_arena_array(mem, r->items.len, sizeof(*ret->items));
        memcpy(ret->items, r->items.at, r->items.len * sizeof(*r->items.at));
        ret->nitems = r->items.len;
        r->items.len = 0;
    }
    return rc;
}

void list_reader_fini(struct list_reader *r)
{
    for (uint32_t i = 0; i < r->items.len; i++) {
        api_object_unref(r->items.at[i]);
    }
    hk_vec_fini(&r->items);
    hk_buf_fini(&r->shell);
    hk_buf_fini(&r->item);
    *r->held_all -= r->held;
    r->held = 0;
}

void list_reader_clear(struct list_reader *r)
{
    list_reader_fini(r);
    *r = (struct list_reader){
        .kind = r->kind,
        .text_only = r->text_only,
        .max_item = r->max_item,
        .max_held = r->max_held,
        .held_all = r->held_all,
        .max_held_all = r->max_held_all,
    };
}
