// SPDX-License-Identifier: Apache-2.0
// Long lists, in every format, are written while the client reads them, one slice at a time,
// directly from shared objects. A full copy would take longer than sending, use memory as long as a
// slow client reads, and block the loop.
//
// Indented JSON and YAML are for people: each object is parsed and written separately, and the text
// before and after the objects comes from the same list without objects.
#include "apiserver/server_priv.h"

#include "codec/yaml.h"

enum {
    LONG_LIST_BYTES = 64 * 1024,
    /* Bytes of objects to process before other requests get a turn: tables show little of each. */
    SLICE_BYTES = 256 * 1024,
    PARSED_SLICE_BYTES = 64 * 1024, /* the same if each is parsed and written again */
    INDENT = 2,
};

struct list_stream {
    struct exchange *x;
    struct hk_str head, tail;
    struct api_object **items; /* holds references to items[at] and later */
    uint32_t n, at;
    struct hk_buf text;   /* of the current object, if it is parsed */
    struct hk_arena tree; /* also */
};

bool list_is_long(const struct port_msg *m)
{
    size_t bytes = 0;

    for (uint32_t k = 0; k < m->nitems; k++) {
        bytes += m->items[k]->text.n;
    }
    return bytes > LONG_LIST_BYTES;
}

static bool is_for_people(const struct exchange *x)
{
    return x->accept.yaml || x->accept.pretty;
}

/* ---- objects ---- */

static void stream_write_parsed(struct list_stream *l, struct api_object *o, struct hk_buf *out)
{
    struct json v;

    hk_buf_clear(&l->text);
    hk_arena_clear(&l->tree);
    list_write_item(l->x, o, &l->text);
    if (json_parse(hk_buf_str(&l->text), 0, &l->tree, &v, NULL) < 0) {
        v = json_make_object(); /* cannot happen: stored text is valid */
    }
    if (l->x->accept.yaml) {
        const struct json one = {.type = JSON_ARRAY, .len = 1, .items = &v};
        yaml_write(&one, out);
    } else {
        hk_buf_addf(out, "%s\n%*s", l->at > 0 ? "," : "", 2 * INDENT, "");
        json_write_pretty_at(&v, INDENT, 2, out);
    }
}

static void stream_write_next(struct list_stream *l, struct hk_buf *out)
{
    struct api_object *o = l->items[l->at];

    if (is_for_people(l->x)) {
        stream_write_parsed(l, o, out);
    } else {
        hk_buf_adds(out, l->at > 0 ? "," : "");
        list_write_item(l->x, o, out);
    }
    api_object_unref(o);
    l->at++;
}

/* ---- the stream ---- */

static bool stream_pull(void *ctx, struct hk_buf *out, size_t room)
{
    struct list_stream *l = ctx;
    struct counters *c = &l->x->server->counters;
    const bool parsed = is_for_people(l->x) || l->x->accept.form == FORM_METADATA;
    const size_t slice = parsed ? PARSED_SLICE_BYTES : SLICE_BYTES;
    size_t looked_at = 0;

    if (l->at == 0) {
        hk_buf_addstr(out, l->head);
    }
    while (l->at < l->n && out->len < room && looked_at < slice) {
        looked_at += l->items[l->at]->text.n;
        stream_write_next(l, out);
    }
    if (l->at == l->n) {
        hk_buf_addstr(out, l->tail);
    }
    c->list_slices++;
    c->list_slice_bytes_max = HK_MAX(c->list_slice_bytes_max, looked_at);
    return l->at < l->n;
}

static void stream_ended(void *ctx)
{
    struct list_stream *l = ctx;

    while (l->at < l->n) {
        api_object_unref(l->items[l->at++]);
    }
    hk_buf_fini(&l->text);
    hk_arena_fini(&l->tree);
    exchange_free(l->x);
}

/* ---- text before and after the objects ---- */

/* The position after the empty list, the only member without indentation that has one. */
static size_t find_empty_list(struct hk_str yaml)
{
    static const char *const lists[] = {"\nitems: []\n", "\nrows: []\n"};

    for (size_t k = 0; k < HK_LEN(lists); k++) {
        const char *at = memmem(yaml.s, yaml.n, lists[k], strlen(lists[k]));
        if (at) {
            return (size_t)(at - yaml.s) + strlen(lists[k]);
        }
    }
    return 0;
}

/* text is the list without objects, compact. Its items come last, but YAML sorts members. */
static void stream_frame(struct list_stream *l, struct hk_str text)
{
    HK_AUTO(hk_buf_fini) struct hk_buf whole = {0}, head = {0};
    struct hk_arena *mem = &l->x->mem;
    struct json v;

    if (!is_for_people(l->x) || json_parse(text, 0, mem, &v, NULL) < 0) {
        l->head = hk_arena_str(mem, (struct hk_str){text.s, text.n - strlen("]}")});
        l->tail = HK_STR("]}");
        return;
    }
    if (!l->x->accept.yaml) {
        json_write_pretty(&v, INDENT, &whole);
        l->head = hk_arena_str(mem, (struct hk_str){whole.data, whole.len - strlen("]\n}\n")});
        l->tail = HK_STR("\n  ]\n}\n");
        return;
    }
    yaml_write(&v, &whole);
    const size_t at = find_empty_list(hk_buf_str(&whole));
    hk_assert(at > 0);
    hk_buf_add(&head, whole.data, at - strlen(" []\n"));
    hk_buf_addc(&head, '\n');
    l->head = hk_arena_str(mem, hk_buf_str(&head));
    l->tail = hk_arena_str(mem, (struct hk_str){whole.data + at, whole.len - at});
}

void list_stream_begin(struct exchange *x, const struct port_msg *m, struct http_header *headers,
                       uint32_t n)
{
    HK_AUTO(hk_buf_fini) struct hk_buf empty = {0};
    struct list_stream *l = hk_arena_zalloc(&x->mem, sizeof(*l));
    const char *type = x->accept.yaml ? "application/yaml" : "application/json";

    list_write_head(x, m, &empty);
    hk_buf_adds(&empty, "]}");
    l->x = x;
    stream_frame(l, hk_buf_str(&empty));
    l->items = hk_arena_array(&x->mem, m->nitems, sizeof(struct api_object *));
    l->n = m->nitems;
    for (uint32_t k = 0; k < m->nitems; k++) {
        l->items[k] = api_object_ref(m->items[k]);
    }
    headers[n++] = (struct http_header){HK_STR("Content-Type"), hk_str(type)};
    headers[n++] = (struct http_header){HK_STR("Cache-Control"), HK_STR("no-cache, private")};
    x->server->counters.requests[2]++;
    exchange_settle(x);
    http_reply_stream(x->http, 200, headers, n,
                      &(struct http_stream){
                          .pull = stream_pull, .ended = stream_ended, .ctx = l, .finite = true});
}
