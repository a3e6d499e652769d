// SPDX-License-Identifier: Apache-2.0
// Reads answers. Skims the outer part of a list or an event and parses only the needed members. If
// the text is not JSON, skimming may go wrong, and the parser of the member fails.
#include "client/decode.h"

#include "api/port_status.h"
#include "codec/skim.h"

static int fail_shape(struct hk_err *err)
{
    return hk_fail(err, HK_EINVAL, "the answer is not a JSON object");
}

static int find_members(struct hk_str text, const char *const *names, struct hk_str *values,
                        size_t n, struct hk_err *err)
{
    return skim_members(text, names, values, n) < 0 ? fail_shape(err) : 0;
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
    const struct hk_str rv = json_str_field(meta, "resourceVersion");
    int64_t n = 0;

    if (rv.n > 0 && (!hk_str_int(rv, &n) || n < 0)) {
        return hk_fail(err, HK_EINVAL, "metadata.resourceVersion: bad value '%.*s'", HK_FMT(rv));
    }
    *ret = (uint64_t)n;
    return 0;
}

/* Without a tree the names are searched in the text; they are kept in the object's arena. */
static int name_object(struct api_object *o, struct hk_str metadata, struct hk_err *err)
{
    struct json meta;
    const int rc = parse_part(metadata, &o->arena, &meta, err);

    if (rc < 0) {
        return rc;
    }
    o->ns = json_str_field(&meta, "namespace");
    o->name = json_str_field(&meta, "name");
    o->uid = json_str_field(&meta, "uid");
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
        rc = find_members(bytes, names, &meta, 1, err);
        if (rc == 0) {
            rc = name_object(o, meta, err);
        }
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

/* ---- objects of lists and watches ---- */

/* The managedFields in the object's text, with the comma that belongs to them. */
static struct hk_str managers_in(struct hk_str object)
{
    static const char *const names[] = {"metadata"};
    const struct hk_str none = {object.s + object.n, 0};
    struct hk_str meta, key, value;
    bool first = true;

    if (find_members(object, names, &meta, 1, NULL) < 0) {
        return none;
    }
    struct skim s = {meta.s, meta.s + meta.n};
    bool ok = skim_take(&s, '{');
    while (ok) {
        const char *from = s.p;
        const bool leads = first;

        ok = skim_key(&s, &first, &key) == 1 && skim_value(&s, &value);
        if (ok && hk_str_is(key, "managedFields")) {
            (void)(leads && skim_take(&s, ','));
            return (struct hk_str){from, (size_t)(s.p - from)};
        }
    }
    return none;
}

/* Objects of lists and watches lose their managedFields, which are large and not used here. An
 * update without them leaves them unchanged on the server. Also omits the first `skip` bytes. */
static void add_passing(struct hk_str text, size_t skip, bool text_only, struct hk_buf *out)
{
    const char *end = text.s + text.n;
    const struct hk_str cut = text_only ? (struct hk_str){end, 0} : managers_in(text);

    hk_buf_add(out, text.s + skip, (size_t)(cut.s - text.s) - skip);
    hk_buf_add(out, cut.s + cut.n, (size_t)(end - cut.s) - cut.n);
}

/* ---- errors ---- */

bool decode_is_status(struct hk_str text)
{
    static const char *const names[] = {"kind", "apiVersion"};
    struct hk_str values[2];

    return find_members(text, names, values, 2, NULL) == 0 && hk_str_is(values[0], "\"Status\"") &&
           hk_str_is(values[1], "\"v1\"");
}

/* An answer that is not a Status: a proxy's page, or plain text of an overloaded server. */
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

/* JSON written by Go has kind and apiVersion before the metadata or not at all; in other texts all
 * members are searched. */
static int lacks_kind(struct hk_str text, bool *ret, struct hk_err *err)
{
    static const char *const names[] = {"kind", "apiVersion"};
    struct hk_str values[2];

    *ret = hk_str_starts(text, "{\"metadata\":");
    if (*ret || hk_str_starts(text, "{\"kind\":") || hk_str_starts(text, "{\"apiVersion\":")) {
        return 0;
    }
    const int rc = find_members(text, names, values, 2, err);
    *ret = values[0].n == 0 || values[1].n == 0;
    return rc;
}

int decode_item(const struct api_kind *kind, struct hk_str text, bool text_only,
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
        hk_buf_adds(&whole, skim_take(&s, '}') ? "\"" : "\",");
    }
    add_passing(text, lacking, text_only, &whole);
    return object_of(kind, &whole, text_only, ret, err);
}

int decode_list_shell(struct hk_str text, struct hk_arena *mem, struct decode_list *ret,
                      struct hk_err *err)
{
    static const char *const names[] = {"metadata", "items"};
    struct hk_str values[2];
    struct json meta;

    *ret = (struct decode_list){.cont = HK_STR("")};
    int rc = find_members(text, names, values, 2, err);
    if (rc < 0) {
        return rc;
    }
    rc = parse_part(values[0], mem, &meta, err);
    if (rc < 0) {
        return rc;
    }
    if (values[1].n > 0 && !hk_str_is(values[1], "null") && !hk_str_is(values[1], "[]")) {
        return hk_fail(err, HK_EINVAL, "the items of the list are not a JSON array");
    }
    ret->cont = hk_arena_str(mem, json_str_field(&meta, "continue"));
    ret->remaining = json_int(json_get(&meta, "remainingItemCount"), 0);
    return read_rv(&meta, &ret->rv, err);
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
    int rc = find_members(text, names, values, 2, err);
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
