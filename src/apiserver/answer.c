// SPDX-License-Identifier: Apache-2.0
// Response bodies: Status objects, single objects and lists. Objects and lists use the bytes of the
// store, and are encoded again only if the client requests another format.
#include "apiserver/server_priv.h"

#include "apiserver/printer.h"
#include "codec/yaml.h"

/* ---- Status ---- */

static void answer_write_member(const char *key, const char *value, bool *comma, struct hk_buf *out)
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
        answer_write_member("reason", s->causes[k].reason, &inner, out);
        answer_write_member("message", s->causes[k].message, &inner, out);
        answer_write_member("field", s->causes[k].field, &inner, out);
        hk_buf_addc(out, '}');
    }
    hk_buf_addc(out, ']');
    *comma = true;
}

/* kube-apiserver sends details with these reasons, even empty ones. For Invalid kubectl prints the
 * message only if they exist. */
static bool reason_has_details(const char *reason)
{
    static const char *const reasons[] = {"Forbidden", "Invalid", "MethodNotAllowed",
                                          "NotAcceptable", "NotFound"};

    for (uint32_t k = 0; reason && k < HK_LEN(reasons); k++) {
        if (!strcmp(reason, reasons[k])) {
            return true;
        }
    }
    return false;
}

static void write_details(const struct port_status *s, struct hk_buf *out)
{
    bool comma = false;

    if (!s->name && !s->group && !s->kind && !s->uid && s->ncauses == 0 && s->retry_after_s == 0 &&
        !reason_has_details(s->reason)) {
        return;
    }
    hk_buf_adds(out, ",\"details\":{");
    answer_write_member("name", s->name, &comma, out);
    answer_write_member("group", s->group, &comma, out);
    answer_write_member("kind", s->kind, &comma, out);
    answer_write_member("uid", s->uid, &comma, out);
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
    answer_write_member("continue", s->cont, &comma, out);
    hk_buf_addf(out, "},\"status\":\"%s\"", s->success ? "Success" : "Failure");
    comma = true;
    answer_write_member("message", s->message, &comma, out);
    answer_write_member("reason", s->reason, &comma, out);
    write_details(s, out);
    if (!s->success || s->code != 200) { /* the Status of a deletion has no code */
        hk_buf_addf(out, ",\"code\":%d", s->code);
    }
    hk_buf_addc(out, '}');
}

/* ---- objects in the requested format ---- */

static void answer_write_object_text(const struct api_object *o, struct hk_buf *out)
{
    if (o->text.n > 0) {
        hk_buf_addstr(out, o->text);
    } else {
        json_write(&o->root, out);
    }
}

static void write_metadata(const struct exchange *x, const struct api_object *o, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    struct json tree = o->root;
    struct hk_err err = {0};

    if (o->text.n > 0 && json_parse(o->text, 0, &scratch, &tree, &err) < 0) {
        tree = json_make_object();
    }
    hk_buf_addf(out,
                "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/%s\","
                "\"metadata\":",
                x->accept.version);
    const struct json *meta = json_get(&tree, "metadata");
    if (meta) {
        json_write(meta, out);
    } else {
        hk_buf_adds(out, "{}");
    }
    hk_buf_addc(out, '}');
}

/* Table rows need a stored object; builds a temporary one. */
static void answer_write_row(struct exchange *x, const struct api_object *o, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_clock *clock = x->server->opts.clock;

    if (o->text.n == 0) {
        json_write(&o->root, &text);
    }
    const struct store_obj row = {
        .res = x->kind->res,
        .ns = o->ns,
        .name = o->name,
        .uid = o->uid,
        .rv = o->rv,
        .text = o->text.n > 0 ? o->text : hk_buf_str(&text),
    };
    printer_write_row(x->kind, &row,
                      &(struct printer_style){.version = x->accept.version,
                                              .include = x->accept.include,
                                              .now_ns = clock->wall_ns(clock)},
                      out);
}

void object_write(struct exchange *x, struct api_object *o, struct hk_buf *out)
{
    switch (x->accept.form) {
    case FORM_OBJECT:
        answer_write_object_text(o, out);
        break;
    case FORM_METADATA:
        write_metadata(x, o, out);
        break;
    case FORM_TABLE:
        printer_write_head(x->kind, &(struct printer_page){x->accept.version, .rv = o->rv}, out);
        answer_write_row(x, o, out);
        hk_buf_adds(out, "]}");
        break;
    }
}

/* ---- lists ---- */

static void write_list_kind(const struct exchange *x, struct hk_buf *out)
{
    const struct api_kind *k = x->kind->kind;
    const struct hk_str named = json_str_field(x->kind->names, "listKind");

    if (x->accept.form == FORM_METADATA) {
        hk_buf_addf(out,
                    "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/%s\"",
                    x->accept.version);
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

void list_write_head(struct exchange *x, const struct port_msg *m, struct hk_buf *out)
{
    if (x->accept.form == FORM_TABLE) {
        printer_write_head(
            x->kind, &(struct printer_page){x->accept.version, m->rv, m->cont, m->remaining}, out);
        return;
    }
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

void list_write_item(struct exchange *x, struct api_object *o, struct hk_buf *out)
{
    if (x->accept.form == FORM_TABLE) {
        answer_write_row(x, o, out);
    } else {
        object_write(x, o, out);
    }
}

static void answer_write_list(struct exchange *x, const struct port_msg *m, struct hk_buf *out)
{
    list_write_head(x, m, out);
    for (uint32_t k = 0; k < m->nitems; k++) {
        hk_buf_adds(out, k > 0 ? "," : "");
        list_write_item(x, m->items[k], out);
    }
    hk_buf_adds(out, "]}");
}

/* ---- sending ---- */

enum { MAX_WARNINGS = 32, MAX_WARNING_BYTES = 4096, SHORT_WARNING_BYTES = 256 };

/* 299 - "text", as in RFC 7234; characters not allowed in headers become blanks. */
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

/* headers must have space for three more. Browsers must not guess the type of text, or of a refusal
 * that repeats names of the request. */
static void answer_send(struct exchange *x, int code, const char *type, struct http_header *headers,
                        uint32_t n, struct hk_buf *body)
{
    if (!strncmp(type, "text/plain", strlen("text/plain")) || x->refusal.code == 403) {
        headers[n++] = (struct http_header){HK_STR("X-Content-Type-Options"), HK_STR("nosniff")};
    }
    headers[n++] = (struct http_header){HK_STR("Content-Type"), hk_str(type)};
    headers[n++] = (struct http_header){HK_STR("Cache-Control"), HK_STR("no-cache, private")};
    answer_bytes(x, code, headers, n, body);
}

/* Rewrites the body as indented JSON or YAML if the client wants that. */
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

static void send_proto(struct exchange *x, int code, struct http_header *headers, uint32_t n,
                       struct hk_buf *body)
{
    answer_send(x, code, "application/vnd.kubernetes.protobuf", headers, n, body);
}

static void send_json(struct exchange *x, int code, struct http_header *headers, uint32_t n,
                      struct hk_buf *body)
{
    const char *type = rewrite(x, body);

    answer_send(x, code, type, headers, n, body);
}

void answer_json(struct exchange *x, int code, struct hk_buf *body)
{
    struct http_header headers[3];

    send_json(x, code, headers, 0, body);
}

void answer_text(struct exchange *x, int code, const char *type, struct hk_buf *body)
{
    struct http_header headers[3];

    answer_send(x, code, type, headers, 0, body);
}

static void send_status(struct exchange *x, const struct port_status *s,
                        struct http_header *headers, uint32_t n)
{
    struct hk_buf body = {0};

    if (x->accept.protobuf) {
        proto_write_status(s, &body);
        send_proto(x, s->code, headers, n, &body);
        return;
    }
    status_write(s, &body);
    send_json(x, s->code, headers, n, &body);
}

void answer_status(struct exchange *x, const struct port_status *s)
{
    struct http_header headers[4];
    uint32_t n = 0;

    if (s->retry_after_s > 0) { /* clients then retry without showing an error */
        const char *wait = hk_arena_printf(&x->mem, "%d", s->retry_after_s);
        headers[n++] = (struct http_header){HK_STR("Retry-After"), hk_str(wait)};
    }
    send_status(x, s, headers, n);
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
    struct http_header headers[MAX_WARNINGS + 3];
    struct hk_buf body = {0};

    if (m->rc < 0 || !(list || m->obj || m->status)) {
        answer_failure(x, m);
        return;
    }
    const uint32_t n = add_warnings(x, m, headers);
    if (m->status) {
        send_status(x, m->status, headers, n);
        return;
    }
    if (x->accept.protobuf &&
        (list || x->accept.form == FORM_METADATA || proto_has(m->obj->kind))) {
        if (!list) {
            proto_write_object(x, m->obj, &body);
        } else if (proto_answer_list(x, m, headers, n, &body)) {
            return;
        }
        send_proto(x, code, headers, n, &body);
        return;
    }
    if (!list) {
        object_write(x, m->obj, &body);
    } else if (list_is_long(m)) {
        list_stream_begin(x, m, headers, n);
        return;
    } else {
        answer_write_list(x, m, &body);
    }
    send_json(x, code, headers, n, &body);
}
