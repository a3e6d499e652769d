// SPDX-License-Identifier: Apache-2.0
// Watches as streams of JSON lines, or over a WebSocket (watch_socket.c). A stream holds only a
// position in the history. When the client can read more, the stream pulls as many events as fit one
// write, so a burst needs few writes and a slow client no memory. If its position expires, the
// stream ends with an ERROR event.
#include "apiserver/watch_socket.h"

#include "api/proto_write.h"

enum { DEFAULT_TIMEOUT_S = 1800, MAX_TIMEOUT_S = 86400 };

struct watch_stream {
    struct exchange *x;
    struct rest_watch *watch;
    struct net_timer *timer;
    struct watch_socket *socket; /* NULL: a stream of lines */
    bool expired;
};

static void on_wake(void *ctx)
{
    struct watch_stream *w = ctx;

    if (w->socket) {
        watch_socket_resume(w->socket);
    } else {
        http_resume(w->x->http);
    }
}

static void on_expired(void *ctx)
{
    struct watch_stream *w = ctx;

    w->expired = true;
    on_wake(w);
}

static void set_bookmark_meta(struct json *obj, uint64_t rv, bool initial_end, struct hk_arena *a)
{
    const struct json none = {.type = JSON_NULL};
    struct json *meta = json_set_object(obj, a, "metadata");

    json_set_cstr(meta, a, "resourceVersion", hk_arena_printf(a, "%llu", (unsigned long long)rv));
    json_set(meta, a, "creationTimestamp", none);
    if (initial_end) {
        struct json *notes = json_set_object(meta, a, "annotations");
        json_set_cstr(notes, a, "k8s.io/initial-events-end", "true");
    }
}

/* The structs of the one built-in kind that has no table of fields. */
static void fill_definition(struct json *obj, struct hk_arena *a)
{
    static const char text[] =
        "{\"spec\":{\"group\":\"\",\"names\":{\"plural\":\"\",\"kind\":\"\"},\"scope\":\"\","
        "\"versions\":null},\"status\":{\"conditions\":null,\"acceptedNames\":{\"plural\":\"\","
        "\"kind\":\"\"},\"storedVersions\":null}}";
    struct json empty;

    hk_assert(json_parse(hk_str(text), 0, a, &empty, NULL) == 0);
    for (uint32_t i = 0; i < empty.len; i++) {
        json_put(obj, a, empty.members[i].key, empty.members[i].value);
    }
}

/* The bookmark has the kind of the events in this form. In Go it is an object of that kind with only
 * a version, so it shows the structs that every object shows. */
static void write_bookmark(const struct exchange *x, uint64_t rv, bool initial_end,
                           struct hk_buf *out)
{
    static const char *const kinds[] = {
        [FORM_TABLE] = "Table", [FORM_METADATA] = "PartialObjectMetadata"};
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};
    const struct api_kind *kind = x->kind->kind;
    const bool plain = x->accept.form == FORM_OBJECT;
    struct json obj = json_make_object();

    if (plain) {
        api_kind_write_version(kind, &version);
    } else {
        hk_buf_addf(&version, "meta.k8s.io/%s", x->accept.version);
    }
    json_set_cstr(&obj, &a, "kind", plain ? kind->kind : kinds[x->accept.form]);
    json_set_str(&obj, &a, "apiVersion", hk_buf_str(&version));
    set_bookmark_meta(&obj, rv, initial_end, &a);
    if (plain && hk_str_is(hk_buf_str(&version), "apiextensions.k8s.io/v1")) {
        fill_definition(&obj, &a);
    } else if (plain) {
        (void)api_type_fill(api_type_of(kind), &a, &obj);
    }
    if (x->accept.protobuf) {
        HK_AUTO(hk_buf_fini) struct hk_buf envelope = {0};
        proto_write_tree(x, kind, &obj, &envelope);
        api_proto_write_event("BOOKMARK", hk_buf_str(&envelope), out);
        return;
    }
    hk_buf_adds(out, "{\"type\":\"BOOKMARK\",\"object\":");
    json_write(&obj, out);
    hk_buf_adds(out, "}\n");
}

static void write_event(struct exchange *x, const struct port_msg *m, struct hk_buf *out)
{
    static const char *const types[] = {
        [PORT_ADDED] = "ADDED", [PORT_MODIFIED] = "MODIFIED", [PORT_DELETED] = "DELETED"};

    if (m->type == PORT_BOOKMARK) {
        write_bookmark(x, m->rv, m->initial_end, out);
        return;
    }
    if (x->accept.protobuf) {
        HK_AUTO(hk_buf_fini) struct hk_buf envelope = {0};
        proto_write_object(x, m->obj, &envelope);
        api_proto_write_event(types[m->type], hk_buf_str(&envelope), out);
        return;
    }
    hk_buf_addf(out, "{\"type\":\"%s\",\"object\":", types[m->type]);
    object_write(x, m->obj, out);
    hk_buf_adds(out, "}\n");
}

static void write_gone(const struct exchange *x, const struct port_status *s, struct hk_buf *out)
{
    static const struct port_status plain = {
        .code = 410, .reason = "Expired", .message = "too old resource version"};

    if (x->accept.protobuf) {
        HK_AUTO(hk_buf_fini) struct hk_buf envelope = {0};
        proto_write_status(s ? s : &plain, &envelope);
        api_proto_write_event("ERROR", hk_buf_str(&envelope), out);
        return;
    }
    hk_buf_adds(out, "{\"type\":\"ERROR\",\"object\":");
    status_write(s ? s : &plain, out);
    hk_buf_adds(out, "}\n");
}

static enum watch_step watch_stream_next(void *ctx, struct hk_buf *out)
{
    struct watch_stream *w = ctx;
    struct port_msg m = {0};

    switch (rest_watch_next(w->watch, &m)) {
    case REST_NEXT_GONE:
        write_gone(w->x, m.status, out);
        return WATCH_STEP_END;
    case REST_NEXT_NONE:
        if (w->expired && w->x->req.bookmarks) {
            write_bookmark(w->x, rest_watch_rv(w->watch), false, out);
        }
        return w->expired ? WATCH_STEP_END : WATCH_STEP_NONE;
    default:
        write_event(w->x, &m, out);
        w->x->server->counters.events_sent++;
        return WATCH_STEP_EVENT;
    }
}

static bool watch_stream_fill(void *ctx, struct hk_buf *out, size_t room)
{
    enum watch_step step = WATCH_STEP_EVENT;

    while (out->len < room && step == WATCH_STEP_EVENT) {
        step = watch_stream_next(ctx, out);
    }
    return step != WATCH_STEP_END;
}

static void watch_stream_on_end(void *ctx)
{
    struct watch_stream *w = ctx;

    w->x->server->counters.watches--;
    rest_watch_close(w->watch);
    net_timer_free(w->timer);
    exchange_free(w->x);
    hk_free(w);
}

/* Without a client's timeout, half an hour to an hour, so that streams do not end all at once. */
static int64_t timeout_s(const struct exchange *x)
{
    int64_t s = 0;

    if (hk_str_int(query_get(&x->query, "timeoutSeconds"), &s) && s > 0) {
        return HK_MIN(s, (int64_t)MAX_TIMEOUT_S);
    }
    return DEFAULT_TIMEOUT_S + hk_rand_below(x->server->opts.rand, DEFAULT_TIMEOUT_S);
}

static void watch_stream_answer(struct watch_stream *w)
{
    const struct http_header headers[] = {
        {HK_STR("Content-Type"), w->x->accept.protobuf
                                     ? HK_STR("application/vnd.kubernetes.protobuf;stream=watch")
                                     : HK_STR("application/json")},
        {HK_STR("Cache-Control"), HK_STR("no-cache, private")},
    };

    http_reply_stream(
        w->x->http, 200, headers, HK_LEN(headers),
        &(struct http_stream){.pull = watch_stream_fill, .ended = watch_stream_on_end, .ctx = w});
}

void watch_stream_begin(struct exchange *x)
{
    const bool socket = watch_socket_is_asked(x);
    struct server *s = x->server;
    struct watch_stream *w;

    x->accept.protobuf = x->accept.protobuf && !socket; /* its messages are text */
    if (socket && watch_socket_check(x) < 0) {
        answer_refusal(x);
        return;
    }
    w = hk_zalloc(sizeof(*w));
    w->x = x;
    if (rest_watch_open(s->opts.rest, &x->req, on_wake, w, &x->mem, &w->watch, &x->refusal) < 0) {
        hk_free(w);
        answer_refusal(x);
        return;
    }
    w->timer = net_timer_new(s->opts.loop, on_expired, w);
    net_timer_at(w->timer, net_loop_now_ns(s->opts.loop) + timeout_s(x) * 1000000000);
    s->counters.watches++;
    s->counters.requests[0]++;
    if (socket) {
        w->socket = watch_socket_begin(x, &(struct watch_source){.next = watch_stream_next,
                                                                 .ended = watch_stream_on_end,
                                                                 .ctx = w});
    } else {
        watch_stream_answer(w);
    }
}
