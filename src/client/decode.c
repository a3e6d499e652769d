// SPDX-License-Identifier: Apache-2.0
// Reads answers. The outer shell of a list or an event is skimmed: members are found by counting
// brackets, without a tree, and only the parts that matter are parsed. What is skimmed wrongly
// because it is no JSON fails in the parser that gets the part.
#include "client/decode.h"

#include "api/port_status.h"
#include "base/vec.h"

/* ---- skimming ---- */

struct skim {
    const char *p, *end;
};

static void skip_blanks(struct skim *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t')) {
        s->p++;
    }
}

static bool take(struct skim *s, char c)
{
    skip_blanks(s);
    if (s->p == s->end || *s->p != c) {
        return false;
    }
    s->p++;
    return true;
}

/* To the quote with an even number of backslashes before it. */
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

static bool take_value(struct skim *s, struct hk_str *ret)
{
    skip_blanks(s);
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

/* 1: another element begins. 0: the container ended. Negative: no JSON. first tells whether a comma
 * must come before. */
static int take_next(struct skim *s, char close, bool *first)
{
    if (take(s, close)) {
        return 0;
    }
    if (!*first && !take(s, ',')) {
        return -HK_EINVAL;
    }
    *first = false;
    return 1;
}

/* The same, with the key of the member that begins. */
static int take_key(struct skim *s, bool *first, struct hk_str *ret)
{
    const int more = take_next(s, '}', first);
    struct hk_str key;

    if (more != 1) {
        return more;
    }
    if (!take_value(s, &key) || key.n < 2 || key.s[0] != '"' || !take(s, ':')) {
        return -HK_EINVAL;
    }
    *ret = (struct hk_str){key.s + 1, key.n - 2};
    return 1;
}

static int fail_shape(struct hk_err *err)
{
    return hk_fail(err, HK_EINVAL, "the answer is no JSON object");
}

/* The values of the named members, "" where absent. Looks no further than the last of them. */
static int skim_members(struct hk_str text, const char *const *names, struct hk_str *values,
                        size_t n, struct hk_err *err)
{
    struct skim s = {text.s, text.s + text.n};
    struct hk_str key, value;
    bool first = true;
    size_t found = 0;
    int more = take(&s, '{') ? 1 : -HK_EINVAL;

    for (size_t i = 0; i < n; i++) {
        values[i] = (struct hk_str){"", 0};
    }
    while (more == 1 && found < n) {
        more = take_key(&s, &first, &key);
        if (more == 1 && !take_value(&s, &value)) {
            more = -HK_EINVAL;
        }
        for (size_t i = 0; more == 1 && i < n; i++) {
            if (hk_str_is(key, names[i])) {
                found += values[i].n == 0;
                values[i] = value;
            }
        }
    }
    return more < 0 ? fail_shape(err) : 0;
}

/* ---- objects ---- */

static int parse_part(struct hk_str text, struct hk_arena *a, struct json *ret, struct hk_err *err)
{
    if (text.n == 0) {
        *ret = (struct json){0};
        return 0;
    }
    return json_parse(text, 0, a, ret, err);
}

static int read_rv(const struct json *meta, uint64_t *ret, struct hk_err *err)
{
    const struct hk_str rv = json_str(json_get(meta, "resourceVersion"), HK_STR(""));
    int64_t n = 0;

    if (rv.n > 0 && (!hk_str_int(rv, &n) || n < 0)) {
        return hk_fail(err, HK_EINVAL, "metadata.resourceVersion: bad value '%.*s'", HK_FMT(rv));
    }
    *ret = (uint64_t)n;
    return 0;
}

/* Without a tree the names have to be found by themselves; they live in the object's arena. */
static int name_object(struct api_object *o, struct hk_str metadata, struct hk_err *err)
{
    struct json meta;
    const int rc = parse_part(metadata, &o->arena, &meta, err);

    if (rc < 0) {
        return rc;
    }
    o->ns = json_str(json_get(&meta, "namespace"), HK_STR(""));
    o->name = json_str(json_get(&meta, "name"), HK_STR(""));
    o->uid = json_str(json_get(&meta, "uid"), HK_STR(""));
    return read_rv(&meta, &o->rv, err);
}

/* Takes the buffer. */
static int object_of(const struct api_kind *kind, struct hk_buf *text, bool text_only,
                     struct api_object **ret, struct hk_err *err)
{
    static const char *const names[] = {"metadata"};
    struct hk_str meta;
    struct api_object *o = NULL;
    const struct hk_str bytes = hk_buf_str(text);

    int rc = api_object_borrow(kind, bytes, !text_only, text->data, hk_free, &o, err);
    *text = (struct hk_buf){0};
    if (rc == 0 && text_only) {
        rc = skim_members(bytes, names, &meta, 1, err);
        rc = rc < 0 ? rc : name_object(o, meta, err);
    }
    if (rc < 0) {
        if (o) {
            api_object_unref(o);
        }
        return rc;
    }
    *ret = o;
    return 0;
}

int decode_object(const struct api_kind *kind, struct hk_str text, bool text_only,
                  struct api_object **ret, struct hk_err *err)
{
    struct hk_buf copy = {0};

    hk_buf_reserve(&copy, text.n);
    hk_buf_addstr(&copy, text);
    return object_of(kind, &copy, text_only, ret, err);
}

/* ---- objects in passing ---- */

/* Where the object's text says who set which field, with the comma that goes with it. */
static struct hk_str managers_in(struct hk_str object)
{
    static const char *const names[] = {"metadata"};
    const struct hk_str none = {object.s + object.n, 0};
    struct hk_str meta, key, value;
    bool first = true;

    if (skim_members(object, names, &meta, 1, NULL) < 0) {
        return none;
    }
    struct skim s = {meta.s, meta.s + meta.n};
    bool ok = take(&s, '{');
    while (ok) {
        const char *from = s.p;
        const bool leads = first;

        ok = take_key(&s, &first, &key) == 1 && take_value(&s, &value);
        if (ok && hk_str_is(key, "managedFields")) {
            (void)(leads && take(&s, ','));
            return (struct hk_str){from, (size_t)(s.p - from)};
        }
    }
    return none;
}

/* What comes by the thousand comes without its managers: they take much of an object, and are of
 * interest to nobody here. An update that does not name them leaves them as they are. The first
 * bytes are left out as well. */
static void add_passing(struct hk_str text, size_t skip, bool text_only, struct hk_buf *out)
{
    const char *end = text.s + text.n;
    const struct hk_str cut = text_only ? (struct hk_str){end, 0} : managers_in(text);

    hk_buf_add(out, text.s + skip, (size_t)(cut.s - text.s) - skip);
    hk_buf_add(out, cut.s + cut.n, (size_t)(end - cut.s) - cut.n);
}

/* ---- refusals ---- */

bool decode_is_status(struct hk_str text)
{
    static const char *const names[] = {"kind", "apiVersion"};
    struct hk_str values[2];

    return skim_members(text, names, values, 2, NULL) == 0 && hk_str_is(values[0], "\"Status\"") &&
           hk_str_is(values[1], "\"v1\"");
}

/* Something that is no Status: a proxy's page, or the plain words of an overloaded server. */
static void status_of_text(struct hk_str text, int http, struct hk_arena *mem,
                           struct port_status *ret)
{
    enum { SHOWN = 200 };
    const struct hk_str words = hk_str_trim(text);

    ret->reason = hk_code_reason((int)port_status_code(HK_STR(""), http));
    ret->message = words.n > 0
                       ? hk_arena_strndup(mem, words.s, HK_MIN(words.n, (size_t)SHOWN))
                       : hk_arena_printf(mem, "the server answered with HTTP code %d", http);
}

void decode_status(struct hk_str text, int http, struct hk_arena *mem, struct port_status *ret)
{
    struct json doc;

    *ret = (struct port_status){0};
    if (decode_is_status(text) && json_parse(text, 0, mem, &doc, NULL) == 0) {
        port_status_read(&doc, mem, ret);
        ret->code = ret->code > 0 ? ret->code : http;
    } else {
        ret->code = http;
        status_of_text(text, http, mem, ret);
    }
    if (!ret->success && !ret->message) {
        ret->message = hk_arena_printf(mem, "the server refused with code %d", ret->code);
    }
}

/* ---- lists ---- */

/* Whoever writes JSON from Go has kind and apiVersion in front of the metadata or not at all; of
 * anything else all members are looked at. */
static int lacks_kind(struct hk_str text, bool *ret, struct hk_err *err)
{
    static const char *const names[] = {"kind", "apiVersion"};
    struct hk_str values[2];

    *ret = hk_str_starts(text, "{\"metadata\":");
    if (*ret || hk_str_starts(text, "{\"kind\":") || hk_str_starts(text, "{\"apiVersion\":")) {
        return 0;
    }
    const int rc = skim_members(text, names, values, 2, err);
    *ret = values[0].n == 0 || values[1].n == 0;
    return rc;
}

static int decode_item(const struct api_kind *kind, struct hk_str text, bool text_only,
                       struct api_object **ret, struct hk_err *err)
{
    struct hk_buf whole = {0};
    bool lacking;
    const int rc = lacks_kind(text, &lacking, err);

    if (rc < 0) {
        return rc;
    }
    hk_buf_reserve(&whole, text.n + 128);
    if (lacking) {
        struct skim s = {text.s + 1, text.s + text.n};
        hk_buf_addf(&whole, "{\"kind\":\"%s\",\"apiVersion\":\"", kind->kind);
        api_kind_write_version(kind, &whole);
        hk_buf_adds(&whole, take(&s, '}') ? "\"" : "\",");
    }
    add_passing(text, lacking, text_only, &whole);
    return object_of(kind, &whole, text_only, ret, err);
}

/* A list on its way through the reader. */
struct lister {
    const struct api_kind *kind;
    bool text_only;
    struct skim s;
    HK_VEC(struct api_object *) items;
    struct hk_str metadata;
};

static int read_items(struct lister *l, struct hk_err *err)
{
    struct hk_str value;
    bool first = true;
    int more = take(&l->s, '[') ? 1 : -HK_EINVAL;

    while (more == 1 && (more = take_next(&l->s, ']', &first)) == 1) {
        struct api_object *o = NULL;
        if (!take_value(&l->s, &value)) {
            more = -HK_EINVAL;
            break;
        }
        const int rc = decode_item(l->kind, value, l->text_only, &o, err);
        if (rc < 0) {
            return hk_wrap(err, rc, "items[%u]", l->items.len);
        }
        hk_vec_push(&l->items, o);
    }
    return more < 0 ? hk_fail(err, HK_EINVAL, "the items of the list are no JSON array") : 0;
}

static int read_list_member(struct lister *l, struct hk_str key, struct hk_err *err)
{
    struct hk_str value;

    skip_blanks(&l->s);
    if (hk_str_is(key, "items") && l->s.p < l->s.end && *l->s.p != 'n') { /* null */
        return read_items(l, err);
    }
    if (!take_value(&l->s, &value)) {
        return fail_shape(err);
    }
    if (hk_str_is(key, "metadata")) {
        l->metadata = value;
    }
    return 0;
}

static int read_list(struct lister *l, struct hk_err *err)
{
    struct hk_str key;
    bool first = true;
    int more = take(&l->s, '{') ? 1 : -HK_EINVAL, rc = 0;

    while (rc == 0 && more == 1 && (more = take_key(&l->s, &first, &key)) == 1) {
        rc = read_list_member(l, key, err);
    }
    return more < 0 ? fail_shape(err) : rc;
}

/* Strings come out of the text, which the caller gives up. */
static int read_list_meta(const struct lister *l, struct hk_arena *mem, struct decode_list *ret,
                          struct hk_err *err)
{
    struct json meta;
    const int rc = parse_part(l->metadata, mem, &meta, err);

    if (rc < 0) {
        return rc;
    }
    ret->cont = hk_arena_str(mem, json_str(json_get(&meta, "continue"), HK_STR("")));
    ret->remaining = json_int(json_get(&meta, "remainingItemCount"), 0);
    return read_rv(&meta, &ret->rv, err);
}

int decode_list(const struct api_kind *kind, struct hk_str text, bool text_only,
                struct hk_arena *mem, struct decode_list *ret, struct hk_err *err)
{
    struct lister l = {
        .kind = kind, .text_only = text_only, .s = {text.s, text.s + text.n}, .metadata = {"", 0}};

    *ret = (struct decode_list){.cont = HK_STR("")};
    int rc = read_list(&l, err);
    rc = rc < 0 ? rc : read_list_meta(&l, mem, ret, err);
    for (uint32_t i = 0; rc < 0 && i < l.items.len; i++) {
        api_object_unref(l.items.at[i]);
    }
    if (rc == 0 && l.items.len > 0) {
        ret->items = hk_arena_array(mem, l.items.len, sizeof(*ret->items));
        memcpy(ret->items, l.items.at, l.items.len * sizeof(*l.items.at));
        ret->nitems = l.items.len;
    }
    hk_vec_fini(&l.items);
    return rc;
}

/* ---- events ---- */

static int decode_bookmark(struct hk_str object, struct hk_arena *mem, struct decode_event *ret,
                           struct hk_err *err)
{
    struct json doc;
    const int rc = parse_part(object, mem, &doc, err);

    if (rc < 0) {
        return rc;
    }
    const struct json *meta = json_get(&doc, "metadata");
    const struct json *mark = json_get(json_get(meta, "annotations"), "k8s.io/initial-events-end");
    ret->initial_end = hk_str_is(json_str(mark, HK_STR("")), "true");
    return read_rv(meta, &ret->rv, err);
}

int decode_event(const struct api_kind *kind, struct hk_str text, bool text_only,
                 struct hk_arena *mem, struct decode_event *ret, struct hk_err *err)
{
    static const char *const names[] = {"type", "object"};
    static const struct {
        const char *word;
        enum port_msg_type type;
    } types[] = {
        {"\"ADDED\"", PORT_ADDED},     {"\"MODIFIED\"", PORT_MODIFIED},
        {"\"DELETED\"", PORT_DELETED}, {"\"BOOKMARK\"", PORT_BOOKMARK},
        {"\"ERROR\"", PORT_DONE},
    };
    struct hk_buf whole = {0};
    struct hk_str values[2];
    size_t i = 0;

    *ret = (struct decode_event){0};
    int rc = skim_members(text, names, values, 2, err);
    if (rc < 0) {
        return rc;
    }
    while (i < HK_LEN(types) && !hk_str_is(values[0], types[i].word)) {
        i++;
    }
    if (i == HK_LEN(types) || values[1].n == 0) {
        return hk_fail(err, HK_EINVAL, "an event of type %.*s", HK_FMT(values[0]));
    }
    ret->type = types[i].type;
    if (ret->type == PORT_DONE) {
        decode_status(values[1], 500, mem, &ret->status);
        return 0;
    }
    if (ret->type == PORT_BOOKMARK) {
        return decode_bookmark(values[1], mem, ret, err);
    }
    hk_buf_reserve(&whole, values[1].n);
    add_passing(values[1], 0, text_only, &whole);
    rc = object_of(kind, &whole, text_only, &ret->obj, err);
    ret->rv = rc == 0 ? ret->obj->rv : 0;
    return rc;
}
