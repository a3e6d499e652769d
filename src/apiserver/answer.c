// SPDX-License-Identifier: Apache-2.0
// Outcomes as bodies: Status objects, single objects and lists, the latter two from the bytes the
// store keeps, without encoding them again unless the client wants another form.
#include "apiserver/server_priv.h"

#include "apiserver/printer.h"
#include "codec/yaml.h"

/* ---- Status ---- */

static void write_member(const char *key, const char *value, bool *comma, struct hk_buf *out)
{
    if (!value || value[0] == '\0') {
        return;
    }
    hk_buf_addf(out, "%s\"%s\":", *comma ? "," : "", key);
    json_write_str(hk_str(value), out);
    *comma = true;
}

static void write_causes(const struct port_status *s, bool *comma, struct hk_buf *out)
{
    if (s->ncauses == 0) {
        return;
    }
    hk_buf_addf(out, "%s\"causes\":[", *comma ? "," : "");
    for (uint32_t k = 0; k < s->ncauses; k++) {
        bool inner = false;
        hk_buf_adds(out, k > 0 ? ",{" : "{");
        write_member("reason", s->causes[k].reason, &inner, out);
        write_member("message", s->causes[k].message, &inner, out);
        write_member("field", s->causes[k].field, &inner, out);
        hk_buf_addc(out, '}');
    }
    hk_buf_addc(out, ']');
    *comma = true;
}

static void write_details(const struct port_status *s, struct hk_buf *out)
{
    bool comma = false;

    /* Of what is invalid kubectl prints the message only where it finds details, if empty ones. */
    if (!s->name && !s->group && !s->kind && !s->uid && s->ncauses == 0 && s->retry_after_s == 0 &&
        !(s->reason && !strcmp(s->reason, "Invalid"))) {
        return;
    }
    hk_buf_adds(out, ",\"details\":{");
    write_member("name", s->name, &comma, out);
    write_member("group", s->group, &comma, out);
    write_member("kind", s->kind, &comma, out);
    write_member("uid", s->uid, &comma, out);
    write_causes(s, &comma, out);
    if (s->retry_after_s != 0) {
        hk_buf_addf(out, "%s\"retryAfterSeconds\":%d", comma ? "," : "", s->retry_after_s);
    }
    hk_buf_addc(out, '}');
}

void status_write(const struct port_status *s, struct hk_buf *out)
{
    bool comma = false;

    hk_buf_adds(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{");
    write_member("continue", s->cont, &comma, out);
    hk_buf_addf(out, "},\"status\":\"%s\"", s->success ? "Success" : "Failure");
    comma = true;
    write_member("message", s->message, &comma, out);
    write_member("reason", s->reason, &comma, out);
    write_details(s, out);
    hk_buf_addf(out, ",\"code\":%d}", s->code);
}

/* ---- objects in their forms ---- */

static void write_text(const struct api_object *o, struct hk_buf *out)
{
    if (o->text.n > 0) {
        hk_buf_addstr(out, o->text);
    } else {
        json_write(&o->root, out);
    }
}

static void write_metadata(const struct api_object *o, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    struct json tree = o->root;
    struct hk_err err = {0};

    if (o->text.n > 0 && json_parse(o->text, 0, &scratch, &tree, &err) < 0) {
        tree = json_make_object();
    }
    hk_buf_adds(out, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
                     "\"metadata\":");
    const struct json *meta = json_get(&tree, "metadata");
    if (meta) {
        json_write(meta, out);
    } else {
        hk_buf_adds(out, "{}");
    }
    hk_buf_addc(out, '}');
}

/* Rows are made from stored objects; these stand in for them. */
static void write_table(struct exchange *x, struct api_object *const *objs, uint32_t n,
                        const struct printer_page *page, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    struct store_obj *rows = hk_arena_array(&scratch, n, sizeof(*rows));
    const struct store_obj **at = hk_arena_array(&scratch, n, sizeof(*at));
    struct hk_clock *clock = x->server->opts.clock;

    for (uint32_t k = 0; k < n; k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct api_object *o = objs[k];
        if (o->text.n == 0) {
            json_write(&o->root, &text);
        }
        rows[k] = (struct store_obj){
            .res = x->kind->res,
            .ns = o->ns,
            .name = o->name,
            .uid = o->uid,
            .rv = o->rv,
            .text = o->text.n > 0 ? o->text : hk_arena_str(&scratch, hk_buf_str(&text)),
        };
        at[k] = &rows[k];
    }
    printer_write(x->kind, at, n, page, x->accept.include, clock->wall_ns(clock), out);
}

void object_write(struct exchange *x, struct api_object *o, struct hk_buf *out)
{
    switch (x->accept.form) {
    case FORM_OBJECT:
        write_text(o, out);
        break;
    case FORM_METADATA:
        write_metadata(o, out);
        break;
    case FORM_TABLE:
        write_table(x, &o, 1, &(struct printer_page){.rv = o->rv}, out);
        break;
    }
}

/* ---- lists ---- */

static void write_list_kind(const struct exchange *x, struct hk_buf *out)
{
    const struct api_kind *k = x->kind->kind;
    const struct hk_str named = json_str(json_get(x->kind->names, "listKind"), HK_STR(""));

    if (x->accept.form == FORM_METADATA) {
        hk_buf_adds(out,
                    "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\"");
        return;
    }
    hk_buf_adds(out, "{\"kind\":");
    if (named.n > 0) {
        json_write_str(named, out);
    } else {
        hk_buf_addf(out, "\"%sList\"", k->kind);
    }
    hk_buf_adds(out, ",\"apiVersion\":\"");
    api_kind_write_version(k, out);
    hk_buf_addc(out, '"');
}

/* Up to the first item. */
static void write_list_head(struct exchange *x, const struct port_msg *m, struct hk_buf *out)
{
    write_list_kind(x, out);
    hk_buf_addf(out, ",\"metadata\":{\"resourceVersion\":\"%llu\"", (unsigned long long)m->rv);
    if (m->cont.n > 0) {
        hk_buf_adds(out, ",\"continue\":");
        json_write_str(m->cont, out);
        if (m->remaining > 0) {
            hk_buf_addf(out, ",\"remainingItemCount\":%lld", (long long)m->remaining);
        }
    }
    hk_buf_adds(out, "},\"items\":[");
}

static void write_list(struct exchange *x, const struct port_msg *m, struct hk_buf *out)
{
    write_list_head(x, m, out);
    for (uint32_t k = 0; k < m->nitems; k++) {
        if (k > 0) {
            hk_buf_addc(out, ',');
        }
        object_write(x, m->items[k], out);
    }
    hk_buf_adds(out, "]}");
}

/* ---- long lists ---- */

/* A long list is written while the peer takes it, out of objects that are shared anyway: a copy of
 * it all would cost more time than sending, and memory for as long as a slow reader likes. */
enum { LONG_LIST_BYTES = 64 * 1024 };

struct list_stream {
    struct exchange *x;
    struct hk_str head;
    struct api_object **items; /* held from at on */
    uint32_t n, at;
};

static bool is_long_list(const struct exchange *x, const struct port_msg *m)
{
    size_t bytes = 0;

    for (uint32_t k = 0; k < m->nitems; k++) {
        bytes += m->items[k]->text.n;
    }
    return bytes > LONG_LIST_BYTES && !x->accept.pretty && !x->accept.yaml;
}

static bool list_pull(void *ctx, struct hk_buf *out, size_t room)
{
    struct list_stream *l = ctx;

    if (l->at == 0) {
        hk_buf_addstr(out, l->head);
    }
    while (l->at < l->n && out->len < room) {
        struct api_object *o = l->items[l->at];
        if (l->at > 0) {
            hk_buf_addc(out, ',');
        }
        object_write(l->x, o, out);
        api_object_unref(o);
        l->at++;
    }
    if (l->at == l->n) {
        hk_buf_adds(out, "]}");
    }
    return l->at < l->n;
}

static void list_ended(void *ctx)
{
    struct list_stream *l = ctx;

    while (l->at < l->n) {
        api_object_unref(l->items[l->at++]);
    }
    exchange_free(l->x);
}

/* Takes the place of send(). */
static void stream_list(struct exchange *x, const struct port_msg *m, struct http_header *headers,
                        uint32_t n)
{
    HK_AUTO(hk_buf_fini) struct hk_buf head = {0};
    struct list_stream *l = hk_arena_zalloc(&x->mem, sizeof(*l));

    write_list_head(x, m, &head);
    l->x = x;
    l->head = hk_arena_str(&x->mem, hk_buf_str(&head));
    l->items = hk_arena_array(&x->mem, m->nitems, sizeof(struct api_object *));
    l->n = m->nitems;
    for (uint32_t k = 0; k < m->nitems; k++) {
        l->items[k] = api_object_ref(m->items[k]);
    }
    headers[n++] = (struct http_header){HK_STR("Content-Type"), HK_STR("application/json")};
    headers[n++] = (struct http_header){HK_STR("Cache-Control"), HK_STR("no-cache, private")};
    x->server->counters.requests[2]++;
    exchange_settle(x);
    http_reply_stream(
        x->http, 200, headers, n,
        &(struct http_stream){.pull = list_pull, .ended = list_ended, .ctx = l, .finite = true});
}

/* ---- sending ---- */

enum { MAX_WARNINGS = 32, MAX_WARNING_BYTES = 4096, SHORT_WARNING_BYTES = 256 };

/* 299 - "text", as RFC 7234 has it; what cannot stand in a header becomes a blank. */
static struct hk_str warning_header(struct exchange *x, const char *text, size_t max)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    hk_buf_adds(&b, "299 - \"");
    for (size_t k = 0; text[k] != '\0' && k < max; k++) {
        const unsigned char c = (unsigned char)text[k];
        if (c == '"' || c == '\\') {
            hk_buf_addc(&b, '\\');
        }
        hk_buf_addc(&b, c < 0x20 || c == 0x7f ? ' ' : text[k]);
    }
    hk_buf_addc(&b, '"');
    return hk_arena_str(&x->mem, hk_buf_str(&b));
}

static uint32_t add_warnings(struct exchange *x, const struct port_msg *m,
                             struct http_header headers[MAX_WARNINGS])
{
    const uint32_t n = HK_MIN(m->nwarnings, (uint32_t)MAX_WARNINGS);
    size_t total = 0;

    for (uint32_t k = 0; k < n; k++) {
        total += strlen(m->warnings[k]);
    }
    for (uint32_t k = 0; k < n; k++) {
        headers[k].name = HK_STR("Warning");
        headers[k].value = warning_header(
            x, m->warnings[k], total > MAX_WARNING_BYTES ? SHORT_WARNING_BYTES : SIZE_MAX);
    }
    return n;
}

void answer_bytes(struct exchange *x, int code, const struct http_header *headers, uint32_t n,
                  struct hk_buf *body)
{
    x->server->counters.requests[code / 100 % 6]++;
    http_reply(x->http, code, headers, n, body);
    exchange_free(x);
}

/* headers has room for two more. */
static void send(struct exchange *x, int code, const char *type, struct http_header *headers,
                 uint32_t n, struct hk_buf *body)
{
    headers[n++] = (struct http_header){HK_STR("Content-Type"), hk_str(type)};
    headers[n++] = (struct http_header){HK_STR("Cache-Control"), HK_STR("no-cache, private")};
    answer_bytes(x, code, headers, n, body);
}

/* People read indented text, and some prefer YAML; programs get the bytes as they are. */
static const char *rewrite(struct exchange *x, struct hk_buf *body)
{
    struct json tree;
    struct hk_err err = {0};

    if ((!x->accept.yaml && !x->accept.pretty) ||
        json_parse(hk_buf_str(body), 0, &x->mem, &tree, &err) < 0) {
        return "application/json";
    }
    struct hk_buf other = {0};
    if (x->accept.yaml) {
        yaml_write(&tree, &other);
    } else {
        json_write_pretty(&tree, 2, &other);
    }
    hk_buf_fini(body);
    *body = other;
    return x->accept.yaml ? "application/yaml" : "application/json";
}

static void send_json(struct exchange *x, int code, struct http_header *headers, uint32_t n,
                      struct hk_buf *body)
{
    const char *type = rewrite(x, body);

    send(x, code, type, headers, n, body);
}

void answer_json(struct exchange *x, int code, struct hk_buf *body)
{
    struct http_header headers[2];

    send_json(x, code, headers, 0, body);
}

void answer_text(struct exchange *x, int code, const char *type, struct hk_buf *body)
{
    struct http_header headers[2];

    send(x, code, type, headers, 0, body);
}

void answer_status(struct exchange *x, const struct port_status *s)
{
    struct http_header headers[3];
    struct hk_buf body = {0};
    uint32_t n = 0;

    status_write(s, &body);
    if (s->retry_after_s > 0) { /* clients then repeat the request without telling anybody */
        const char *wait = hk_arena_printf(&x->mem, "%d", s->retry_after_s);
        headers[n++] = (struct http_header){HK_STR("Retry-After"), hk_str(wait)};
    }
    send_json(x, s->code, headers, n, &body);
}

void answer_refusal(struct exchange *x)
{
    answer_status(x, &x->refusal);
}

static void answer_failure(struct exchange *x, const struct port_msg *m)
{
    if (!m->status) {
        x->refusal = (struct port_status){.code = hk_code_http(m->rc),
                                          .reason = hk_code_reason(m->rc),
                                          .message = m->err ? m->err->text : NULL};
    }
    answer_status(x, m->status ? m->status : &x->refusal);
}

void answer_done(struct exchange *x, const struct port_msg *m)
{
    const bool list = x->req.verb == PORT_LIST || x->req.verb == PORT_DELETE_COLLECTION;
    const int code = m->created || x->req.verb == PORT_CREATE ? 201 : 200;
    struct http_header headers[MAX_WARNINGS + 2];
    struct hk_buf body = {0};

    if (m->rc < 0 || !(list || m->obj || m->status)) {
        answer_failure(x, m);
        return;
    }
    const uint32_t n = add_warnings(x, m, headers);
    if (m->status) {
        status_write(m->status, &body);
        send_json(x, m->status->code, headers, n, &body);
        return;
    }
    if (!list) {
        object_write(x, m->obj, &body);
    } else if (x->accept.form == FORM_TABLE) {
        const struct printer_page page = {m->rv, m->cont, m->remaining};
        write_table(x, m->items, m->nitems, &page, &body);
    } else if (is_long_list(x, m)) {
        stream_list(x, m, headers, n);
        return;
    } else {
        write_list(x, m, &body);
    }
    send_json(x, code, headers, n, &body);
}
