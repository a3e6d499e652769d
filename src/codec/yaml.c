// SPDX-License-Identifier: Apache-2.0
// Reads a stream of YAML documents into JSON trees: processes libyaml's events with a stack of open
// nodes. Handles anchors, merge keys, duplicate keys and all limits; yaml_scalar.c determines the
// type of scalars. A stream that is JSON goes to the JSON reader, value by value.
//
// Memory is linear in the input: an alias shares the tree of its anchor. The size of a full
// expansion is counted and limited, because printing or walking the tree costs that much.

#include "codec/yaml_priv.h"

#include "base/map.h"
#include "base/vec.h"

#include <yaml.h>

enum {
    ALIAS_BUDGET = 10 << 20, /* bytes; a large input may use ALIAS_RATIO times its size */
    ALIAS_RATIO = 10,
    NODE_WEIGHT = sizeof(struct json_member),
    MAX_TAG_DIRECTIVES = 64, /* libyaml compares each with all others, and each tag with all */
    ANCHOR_SHOWN = 80,       /* bytes of a name in a message; libyaml accepts only ASCII */
    FIRST_SLOTS = 256,
};

/* A member of an open map, or an item of an open list with an empty key. */
struct slot {
    struct json_member m;
    uint32_t line, column; /* position of the key */
    bool merged;           /* added by "<<" */
    bool lost;             /* a later member has the same key */
};

/* An open map or list. Its members are the slots from first on. */
struct frame {
    bool is_map, has_key, merge;
    uint32_t first;
    uint32_t anchor; /* 0 for none */
    uint32_t height;
    uint64_t weight_before;
    yaml_mark_t start;
    struct hk_str key;
    yaml_mark_t key_at;
};

/* The value of an anchor name. Names are kept between documents, their values are not. */
struct anchor {
    uint32_t doc;
    bool open; /* its node is not complete */
    uint32_t height;
    uint64_t weight;
    struct json v;
};

struct reader {
    yaml_parser_t parser;
    struct hk_str text;
    struct hk_arena *arena;
    struct hk_err *err;
    unsigned flags;

    struct frame frames[YAML_MAX_DEPTH];
    uint32_t depth;
    HK_VEC(struct slot) slots;
    HK_VEC(struct slot *) sorted;

    struct hk_intern names;
    HK_VEC(struct anchor) anchors; /* by name id */
    uint64_t weight;               /* of everything so far, with aliases expanded */
    uint64_t aliased;              /* the part from aliases and merges */

    uint32_t doc;
    struct json root;
    HK_VEC(struct json) docs;
};

static void reader_fini(struct reader *r)
{
    yaml_parser_delete(&r->parser);
    hk_vec_fini(&r->slots);
    hk_vec_fini(&r->sorted);
    hk_vec_fini(&r->anchors);
    hk_vec_fini(&r->docs);
    hk_intern_fini(&r->names);
}

static int wrap_at(struct reader *r, yaml_mark_t at, int rc)
{
    return hk_wrap(r->err, rc, "line %zu, column %zu", at.line + 1, at.column + 1);
}

/* Line and column of a byte, both from 0. */
static yaml_mark_t mark_of(struct hk_str text, size_t offset)
{
    yaml_mark_t at = {.index = offset};

    for (size_t i = 0; i < HK_MIN(offset, text.n); i++) {
        if (text.s[i] == '\n') {
            at.line++;
            at.column = 0;
        } else {
            at.column += ((unsigned char)text.s[i] & 0xc0) != 0x80;
        }
    }
    return at;
}

static int fail_syntax(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const bool reading = p->error == YAML_READER_ERROR; /* these errors have only an offset */
    const yaml_mark_t at = reading ? mark_of(r->text, p->problem_offset) : p->problem_mark;

    hk_assert(p->error != YAML_MEMORY_ERROR);
    return wrap_at(r, at, hk_fail(r->err, HK_EINVAL, "%s", p->problem));
}

static struct frame *top(struct reader *r)
{
    return r->depth > 0 ? &r->frames[r->depth - 1] : NULL;
}

static bool awaits_key(const struct frame *f)
{
    return f && f->is_map && !f->has_key;
}

/* Counts the size that aliases and merges add to the written text. */
static int yaml_count_aliased(struct reader *r, uint64_t weight)
{
    r->aliased += weight;
    if (r->aliased > HK_MAX((uint64_t)ALIAS_BUDGET, (uint64_t)r->text.n * ALIAS_RATIO)) {
        return hk_fail(r->err, HK_ELIMIT, "document contains excessive aliasing");
    }
    return 0;
}

static int merge_map(struct reader *r, const struct frame *f, const struct json *from)
{
    if (from->type != JSON_OBJECT) {
        return hk_fail(r->err, HK_EINVAL,
                       "map merge requires map or sequence of maps as the value");
    }
    for (uint32_t i = 0; i < from->len; i++) {
        hk_vec_push(&r->slots, (struct slot){
                                   .m = from->members[i],
                                   .line = (uint32_t)f->key_at.line,
                                   .column = (uint32_t)f->key_at.column,
                                   .merged = true,
                               });
    }
    return yaml_count_aliased(r, (uint64_t)from->len * NODE_WEIGHT);
}

/* "<<" takes a map or a list of maps, of which the first has priority. As in go-yaml v2 its
 * position matters: it overrides keys before it, and keys after it override. */
static int merge_value(struct reader *r, const struct frame *f, const struct json *v)
{
    int rc = 0;

    if (v->type != JSON_ARRAY) {
        return merge_map(r, f, v);
    }
    for (uint32_t i = v->len; i > 0 && rc == 0; i--) {
        rc = merge_map(r, f, &v->items[i - 1]);
    }
    return rc;
}

/* Adds a finished node to the innermost open one, as its key or as a value. */
static int yaml_add_node(struct reader *r, struct json v, uint32_t height, yaml_mark_t at)
{
    struct frame *f = top(r);
    int rc;

    if (awaits_key(f)) {
        rc = yaml_scalar_key(&v, r->arena, &f->key, r->err);
        f->has_key = true;
        f->key_at = at;
        return rc < 0 ? wrap_at(r, at, rc) : 0;
    }
    rc = yaml_scalar_settle(&v, r->err);
    if (rc < 0) {
        return wrap_at(r, at, rc);
    }
    v.line = (uint32_t)at.line + 1;
    if (!f) {
        r->root = v;
        return 0;
    }
    f->height = HK_MAX(f->height, height + 1);
    f->has_key = false;
    if (f->merge) {
        f->merge = false;
        rc = merge_value(r, f, &v);
        return rc < 0 ? wrap_at(r, at, rc) : 0;
    }
    hk_vec_push(&r->slots, (struct slot){
                               .m = {.key = f->key, .value = v},
                               .line = (uint32_t)f->key_at.line,
                               .column = (uint32_t)f->key_at.column,
                           });
    return 0;
}

static uint32_t anchor_id(struct reader *r, const yaml_char_t *name)
{
    if (!name) {
        return 0;
    }
    const uint32_t id = hk_intern(&r->names, hk_str((const char *)name));
    while (r->anchors.len <= id) {
        hk_vec_push(&r->anchors, (struct anchor){0});
    }
    return id;
}

static void anchor_set(struct reader *r, uint32_t id, struct anchor an)
{
    if (id != 0) {
        an.doc = r->doc;
        r->anchors.at[id] = an;
    }
}

static int take_alias(struct reader *r, const yaml_event_t *ev)
{
    const char *name = (const char *)ev->data.alias.anchor;
    const uint32_t id = anchor_id(r, ev->data.alias.anchor);
    const struct anchor an = r->anchors.at[id];
    const yaml_mark_t at = ev->start_mark;

    if (an.doc != r->doc) {
        return wrap_at(
            r, at,
            hk_fail(r->err, HK_EINVAL, "unknown anchor '%.*s' referenced", ANCHOR_SHOWN, name));
    }
    if (an.open) {
        return wrap_at(
            r, at,
            hk_fail(r->err, HK_EINVAL, "anchor '%.*s' value contains itself", ANCHOR_SHOWN, name));
    }
    if (r->depth + an.height > YAML_MAX_DEPTH) {
        return wrap_at(r, at,
                       hk_fail(r->err, HK_ELIMIT, "nested deeper than %d levels", YAML_MAX_DEPTH));
    }
    r->weight += an.weight;
    const int rc = yaml_count_aliased(r, an.weight);
    if (rc < 0) {
        return wrap_at(r, at, rc);
    }
    return yaml_add_node(r, an.v, an.height, at);
}

static bool is_merge_key(const yaml_event_t *ev)
{
    const char *tag = (const char *)ev->data.scalar.tag;
    const struct hk_str text = {(const char *)ev->data.scalar.value, ev->data.scalar.length};

    if (!hk_str_is(text, "<<")) {
        return false;
    }
    return tag ? strcmp(tag, "tag:yaml.org,2002:merge") == 0
               : ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static int take_scalar(struct reader *r, const yaml_event_t *ev)
{
    const struct hk_str text = {(const char *)ev->data.scalar.value, ev->data.scalar.length};
    const char *tag = (const char *)ev->data.scalar.tag;
    struct frame *f = top(r);
    struct json v = json_make_str(text);
    int rc;

    if (awaits_key(f) && is_merge_key(ev)) {
        f->has_key = f->merge = true;
        f->key_at = ev->start_mark;
        return 0;
    }
    if (tag) {
        rc = yaml_scalar_tagged(tag, text, r->arena, &v, r->err);
        if (rc < 0) {
            return wrap_at(r, ev->start_mark, rc);
        }
    } else if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        v = yaml_scalar_plain(text);
    }
    if (v.type == JSON_STRING && memchr(v.s, '\0', v.len)) {
        return wrap_at(r, ev->start_mark, hk_fail(r->err, HK_EINVAL, "NUL in a string"));
    }
    if (v.type == JSON_STRING && v.s == text.s) {
        v.s = hk_arena_strndup(r->arena, text.s, text.n);
    }
    const uint64_t weight = NODE_WEIGHT + text.n;
    r->weight += weight;
    anchor_set(r, anchor_id(r, ev->data.scalar.anchor), (struct anchor){.v = v, .weight = weight});
    return yaml_add_node(r, v, 0, ev->start_mark);
}

static int open_node(struct reader *r, const yaml_event_t *ev, const yaml_char_t *anchor)
{
    const bool is_map = ev->type == YAML_MAPPING_START_EVENT;
    const yaml_mark_t at = ev->start_mark;

    if (awaits_key(top(r))) {
        const char *what = is_map ? "map" : "list";
        return wrap_at(r, at, hk_fail(r->err, HK_EINVAL, "invalid map key: a %s", what));
    }
    if (r->depth == YAML_MAX_DEPTH) {
        return wrap_at(r, at,
                       hk_fail(r->err, HK_ELIMIT, "nested deeper than %d levels", YAML_MAX_DEPTH));
    }
    const uint32_t id = anchor_id(r, anchor);
    anchor_set(r, id, (struct anchor){.open = true});
    r->frames[r->depth++] = (struct frame){
        .is_map = is_map,
        .first = r->slots.len,
        .anchor = id,
        .height = 1,
        .weight_before = r->weight,
        .start = at,
    };
    r->weight += NODE_WEIGHT;
    return 0;
}

static int cmp_slots(const void *pa, const void *pb)
{
    const struct slot *a = *(struct slot *const *)pa, *b = *(struct slot *const *)pb;
    const int by_key = hk_str_cmp(a->m.key, b->m.key);

    return by_key ? by_key : (a > b) - (a < b);
}

static int fail_duplicate(struct reader *r, const struct slot *first, const struct slot *again)
{
    const struct hk_str key = yaml_scalar_shown(again->m.key);

    return hk_fail(r->err, HK_EINVAL,
                   "line %u, column %u: key \"%.*s\" already set in map on line %u",
                   again->line + 1, again->column + 1, HK_FMT(key), first->line + 1);
}

/* Marks all but the last slot of each key as lost. In strict mode a key written twice fails,
 * naming the first repetition in the text; merged keys may be overridden. */
static int settle_keys(struct reader *r, struct slot *at, uint32_t n)
{
    const struct slot *written = NULL, *first = NULL, *again = NULL;

    hk_vec_clear(&r->sorted);
    for (uint32_t i = 0; i < n; i++) {
        hk_vec_push(&r->sorted, &at[i]);
    }
    qsort(r->sorted.at, n, sizeof(*r->sorted.at), cmp_slots);
    for (uint32_t i = 0; i < n; i++) {
        struct slot *s = r->sorted.at[i];
        if (i > 0 && hk_str_eq(r->sorted.at[i - 1]->m.key, s->m.key)) {
            r->sorted.at[i - 1]->lost = true;
        } else {
            written = NULL;
        }
        if (s->merged) {
            continue;
        }
        if (written && (!again || s < again)) {
            first = written;
            again = s;
        }
        written = s;
    }
    return again && (r->flags & YAML_DUP_REJECT) ? fail_duplicate(r, first, again) : 0;
}

static int build_map(struct reader *r, struct slot *at, uint32_t n, struct json *ret)
{
    if (n > 1) {
        const int rc = settle_keys(r, at, n);
        if (rc < 0) {
            return rc;
        }
    }
    *ret = json_make_object();
    ret->members = hk_arena_array(r->arena, n, sizeof(*ret->members));
    for (uint32_t i = 0; i < n; i++) {
        if (!at[i].lost) {
            ret->members[ret->len++] = at[i].m;
        }
    }
    return 0;
}

static void build_list(struct reader *r, const struct slot *at, uint32_t n, struct json *ret)
{
    *ret = json_make_array();
    ret->items = hk_arena_array(r->arena, n, sizeof(*ret->items));
    for (uint32_t i = 0; i < n; i++) {
        ret->items[ret->len++] = at[i].m.value;
    }
}

static int close_node(struct reader *r)
{
    const struct frame f = r->frames[--r->depth];
    struct slot *at = r->slots.at + f.first;
    const uint32_t n = r->slots.len - f.first;
    struct json v;

    if (f.is_map) {
        const int rc = build_map(r, at, n, &v);
        if (rc < 0) {
            return rc;
        }
    } else {
        build_list(r, at, n, &v);
    }
    r->slots.len = f.first;
    anchor_set(r, f.anchor,
               (struct anchor){
                   .v = v,
                   .height = f.height,
                   .weight = r->weight - f.weight_before,
               });
    return yaml_add_node(r, v, f.height, f.start);
}

static int take_event(struct reader *r, const yaml_event_t *ev)
{
    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        r->doc++;
        return 0;
    case YAML_DOCUMENT_END_EVENT:
        if (r->root.type != JSON_NULL) {
            hk_vec_push(&r->docs, r->root);
        }
        return 0;
    case YAML_SCALAR_EVENT:
        return take_scalar(r, ev);
    case YAML_ALIAS_EVENT:
        return take_alias(r, ev);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(r, ev, ev->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT:
        return open_node(r, ev, ev->data.mapping_start.anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_node(r);
    default:
        return 0;
    }
}

static int read_events(struct reader *r)
{
    for (bool more = true; more;) {
        yaml_event_t ev;
        if (!yaml_parser_parse(&r->parser, &ev)) {
            return fail_syntax(r);
        }
        const int rc = take_event(r, &ev);
        more = ev.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&ev);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static void keep_docs(const struct json *at, uint32_t n, struct hk_arena *a, struct yaml_docs *ret)
{
    struct json *kept = hk_arena_array(a, n, sizeof(*kept));

    if (n > 0) {
        memcpy(kept, at, n * sizeof(*kept));
    }
    *ret = (struct yaml_docs){.at = kept, .len = n, .cap = n};
}

static int read_yaml(struct hk_str text, unsigned flags, struct hk_arena *a, struct yaml_docs *ret,
                     struct hk_err *err)
{
    HK_AUTO(reader_fini) struct reader r = {.text = text, .arena = a, .err = err, .flags = flags};

    const int ready = yaml_parser_initialize(&r.parser);
    hk_assert(ready);
    hk_vec_reserve(&r.slots, FIRST_SLOTS);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text.s, text.n);
    const int rc = read_events(&r);
    if (rc < 0) {
        return rc;
    }
    keep_docs(r.docs.at, r.docs.len, a, ret);
    return 0;
}

static bool yaml_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t yaml_skip_blanks(struct hk_str text, size_t at)
{
    while (at < text.n && yaml_is_blank(text.s[at])) {
        at++;
    }
    return at;
}

/* The end of the JSON value whose opening bracket is at from, found by counting brackets; 0 if it
 * does not close or nests too deep. */
static size_t json_end(struct hk_str text, size_t from)
{
    unsigned depth = 0;
    bool quoted = false;

    for (size_t i = from; i < text.n; i++) {
        const char c = text.s[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            if (++depth > YAML_MAX_DEPTH) {
                return 0;
            }
        } else if ((c == '}' || c == ']') && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

static uint32_t count_lines(struct hk_str text, size_t from, size_t to)
{
    uint32_t n = 0;

    for (size_t i = from; i < to; i++) {
        n += text.s[i] == '\n';
    }
    return n;
}

/* The JSON reader counts lines from the start of its value. */
static void shift_lines(struct json *v, uint32_t by)
{
    v->line += by;
    for (uint32_t i = 0; i < v->len && v->type == JSON_ARRAY; i++) {
        shift_lines(&v->items[i], by);
    }
    for (uint32_t i = 0; i < v->len && v->type == JSON_OBJECT; i++) {
        shift_lines(&v->members[i].value, by);
    }
}

/* Reads one JSON value after another. On failure *ret_at is the start of the failed value. */
static int read_json(struct hk_str text, unsigned flags, struct hk_arena *a, struct yaml_docs *ret,
                     size_t *ret_at)
{
    HK_VEC(struct json) docs = {0};
    uint32_t line = 0;
    size_t end = 0;
    int rc = 0;

    for (size_t at = yaml_skip_blanks(text, 0); at < text.n; at = yaml_skip_blanks(text, end)) {
        struct json v;
        *ret_at = at;
        line += count_lines(text, end, at);
        const bool opens = text.s[at] == '{' || text.s[at] == '[';
        end = opens ? json_end(text, at) : 0;
        rc = end > 0 ? json_parse((struct hk_str){text.s + at, end - at}, flags, a, &v, NULL)
                     : -HK_EINVAL;
        if (rc < 0) {
            break;
        }
        if (line > 0) {
            shift_lines(&v, line);
        }
        line += count_lines(text, at, end);
        hk_vec_push(&docs, v);
    }
    if (rc == 0) {
        keep_docs(docs.at, docs.len, a, ret);
    }
    hk_vec_fini(&docs);
    return rc;
}

/* Flow YAML does not usually start with a double-quoted key. */
static bool looks_like_json(struct hk_str text)
{
    size_t i = 0;

    while (i < text.n && (yaml_is_blank(text.s[i]) || text.s[i] == '{' || text.s[i] == '[')) {
        i++;
    }
    return i < text.n && text.s[i] == '"';
}

/* Returns the JSON reader's error about the value at from. The text before it is blanked, so that
 * the position is right. Returns 0 if the JSON reader accepts it, as with duplicate keys: read_yaml
 * has the better message. */
static int complain_json(struct hk_str text, size_t from, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf blanked = {0};
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    const size_t end = json_end(text, from);
    struct json v;

    hk_buf_add(&blanked, text.s, end > 0 ? end : text.n);
    for (size_t i = 0; i < from; i++) {
        blanked.data[i] = blanked.data[i] == '\n' ? '\n' : ' ';
    }
    return json_parse(hk_buf_str(&blanked), 0, &scratch, &v, err);
}

/* libyaml reports most of these without a line. */
static int check_bytes(struct hk_str text, struct hk_err *err)
{
    for (size_t i = 0; i < text.n;) {
        uint32_t c;
        const unsigned len = yaml_utf8_next((struct hk_str){text.s + i, text.n - i}, &c);
        if (len == 0 || c == 0) {
            const yaml_mark_t at = mark_of(text, i);
            return hk_fail(err, HK_EINVAL, "line %zu, column %zu: %s", at.line + 1, at.column + 1,
                           len == 0 ? "invalid UTF-8" : "NUL in the text");
        }
        i += len;
    }
    return 0;
}

/* The last byte of any YAML 1.1 line end, including NEL and the Unicode ones. */
static bool ends_line(char c)
{
    return c != '\0' && strchr("\n\r\x85\xa8\xa9", c);
}

static int check_directives(struct hk_str text, struct hk_err *err)
{
    const char *end = text.s + text.n;
    unsigned seen = 0;

    for (const char *p = text.s; (p = memmem(p, (size_t)(end - p), "%TAG", 4)) != NULL; p++) {
        seen += p == text.s || ends_line(p[-1]);
        if (seen > MAX_TAG_DIRECTIVES) {
            const yaml_mark_t at = mark_of(text, (size_t)(p - text.s));
            return hk_fail(err, HK_ELIMIT, "line %zu, column %zu: more than %d %%TAG directives",
                           at.line + 1, at.column + 1, MAX_TAG_DIRECTIVES);
        }
    }
    return 0;
}

static int check_text(struct hk_str text, struct hk_err *err)
{
    if (text.n > INT32_MAX) {
        return hk_fail(err, HK_ELIMIT, "input of %zu bytes, want at most %d", text.n, INT32_MAX);
    }
    const int rc = check_bytes(text, err);
    if (rc < 0) {
        return rc;
    }
    return check_directives(text, err);
}

int yaml_parse(struct hk_str text, unsigned flags, struct hk_arena *a, struct yaml_docs *ret,
               struct hk_err *err)
{
    const unsigned json_flags = flags & YAML_DUP_REJECT ? JSON_DUP_REJECT : 0;
    size_t at = 0;

    if (text.n == 0) {
        text = HK_STR(""); /* libyaml does not accept NULL */
    }
    if (hk_str_starts(text, "\xef\xbb\xbf")) {
        text = (struct hk_str){text.s + 3, text.n - 3};
    }
    int rc = check_text(text, err);
    if (rc < 0) {
        return rc;
    }
    const size_t first = yaml_skip_blanks(text, 0);
    const bool sniffed = first < text.n && (text.s[first] == '{' || text.s[first] == '[');
    if (sniffed && read_json(text, json_flags, a, ret, &at) == 0) {
        return 0;
    }
    rc = read_yaml(text, flags, a, ret, err);
    if (rc < 0 && sniffed && looks_like_json(text)) {
        const int json_rc = complain_json(text, at, err);
        return json_rc < 0 ? json_rc : rc;
    }
    return rc;
}
