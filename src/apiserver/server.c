// SPDX-License-Identifier: Apache-2.0
// The server: connects loop, HTTP and port, and dispatches each request to the file that answers
// it. Reads are answered before the handler returns, writes when they are durable.
#include "apiserver/server_priv.h"

#include "apiserver/access.h"
#include "apiserver/account.h"
#include "apiserver/aggregate.h"
#include "apiserver/discovery.h"
#include "apiserver/openapi.h"
#include "apiserver/signer.h"
#include "apiserver/subproxy.h"
#include "base/log.h"
#include "net/cert_request.h"
#include "net/forward.h"

#include <sys/epoll.h>
#include <sys/resource.h>

/* Limits on what clients may use. */
enum {
    MAX_BODY_BYTES = 3 * 1024 * 1024,
    MAX_BODIES_BYTES = 128 * 1024 * 1024, /* of all unanswered requests */
    SPARE_DESCRIPTORS = 64,               /* of the process limit, kept for the store and pods */
    LAST_DESCRIPTORS = 32,      /* never used by connections, however many files others have open */
    MAX_UNREAD_BYTES = 1 << 30, /* answers that clients have not read: 429 beyond */
    MAX_IN_FLIGHT = 2048,       /* the same */
    SHORT_IN_FLIGHT = 32,       /* the same when memory is short */
    MAX_FORWARDS = 1024,        /* requests that other servers answer */
    /* With limited memory: requests in flight, bodies, answers, connections. */
    REQUEST_COST = 3 * 1024 * 1024,
    BODIES_SHARE = 16,
    UNREAD_SHARE = 8,
    CONNECTIONS_SHARE = 4,
    CONNECTION_COST = 96 * 1024,
    LARGE_BODY_BYTES = 64 * 1024, /* refused before reading when memory is short */
    MEMORY_MS = 1000,
    READ_TIMEOUT_S = 60,
    WRITE_TIMEOUT_S = 34,
    POLL_MESSAGES = 1024,
    COMPACT_MS = 10 * 1000,
};

#define TOO_MANY "Too many requests, please try again later."

/* ---- exchanges ---- */

static int refuse_path(struct exchange *x)
{
    return exchange_refuse(x, 404, "NotFound", "the server could not find the requested resource");
}

/* ---- calls of the port ---- */

static void schedule_tick(struct server *s)
{
    const int64_t next = rest_next_ns(s->opts.rest);

    if (next == INT64_MAX) {
        net_timer_off(s->tick);
    } else {
        net_timer_at(s->tick, next);
    }
}

/* Logs once when memory gets short, once when there is enough again. */
static void log_memory(struct server *s)
{
    const struct hk_err *why = hk_budget_failure(s->opts.budget);

    if (why && !s->memory_failed) {
        hk_log(HK_LOG_ERROR, "memory is short, refusing to create or enlarge objects",
               "used_bytes=%llu limit_bytes=%llu error=\"%s\"",
               (unsigned long long)hk_budget_used(s->opts.budget),
               (unsigned long long)hk_budget_limit(s->opts.budget), why->text);
    } else if (!why && s->memory_failed) {
        hk_log(HK_LOG_INFO, "there is enough memory again, accepting all writes",
               "used_bytes=%llu limit_bytes=%llu",
               (unsigned long long)hk_budget_used(s->opts.budget),
               (unsigned long long)hk_budget_limit(s->opts.budget));
    }
    s->memory_failed = why != NULL;
}

/* Logs once when the disk starts to fail, once when it works again. */
static void log_disk(struct server *s)
{
    const struct hk_err *why = store_disk_failure(s->opts.store);

    if (why && why->code == HK_EFULL && s->disk_failed != HK_EFULL) {
        hk_log(HK_LOG_ERROR, "the disk is full, accepting only deletions until there is room",
               NULL);
    } else if (why && why->code != HK_EFULL && !s->disk_failed) {
        hk_log(HK_LOG_ERROR, "the disk fails, refusing writes until it recovers", "error=\"%s\"",
               why->text);
    } else if (!why && s->disk_failed) {
        hk_log(HK_LOG_INFO, "the disk has recovered, accepting writes again", NULL);
    }
    s->disk_failed = why ? why->code : 0;
}

static void on_port(void *ctx, uint32_t events)
{
    struct server *s = ctx;

    port_poll(s->port, POLL_MESSAGES);
    log_disk(s);
    log_memory(s);
    schedule_tick(s);
}

static void on_tick(void *ctx)
{
    struct server *s = ctx;

    rest_tick(s->opts.rest);
    schedule_tick(s);
}

static void on_compact(void *ctx)
{
    struct server *s = ctx;

    store_compact(s->opts.store);
    net_timer_at(s->compact, net_loop_now_ns(s->opts.loop) + (int64_t)COMPACT_MS * 1000000);
}

static void on_memory(void *ctx)
{
    struct server *s = ctx;

    rest_watch_memory(s->opts.rest);
    log_memory(s);
    net_timer_at(s->memory, net_loop_now_ns(s->opts.loop) + (int64_t)MEMORY_MS * 1000000);
}

static void server_on_done(void *ctx, const struct port_msg *m)
{
    answer_done(ctx, m);
}

static void on_deadline(void *ctx)
{
    struct exchange *x = ctx;

    port_cancel(x->server->port, x->call);
    exchange_refuse(x, 504, "Timeout",
                    "Timeout: request did not complete within the allotted timeout");
    answer_refusal(x);
}

static void submit_call_to(struct exchange *x, void (*done)(void *ctx, const struct port_msg *m))
{
    struct server *s = x->server;
    const bool read = x->req.verb == PORT_GET || x->req.verb == PORT_LIST;
    const int64_t limit_s = read ? READ_TIMEOUT_S : WRITE_TIMEOUT_S;

    x->deadline = net_timer_new(s->opts.loop, on_deadline, x);
    net_timer_at(x->deadline, net_loop_now_ns(s->opts.loop) + limit_s * 1000000000);
    x->call = port_submit(s->port, &x->req, (struct port_sink){done, x});
    x->req.body = NULL;
    hk_arena_pool_give(&s->mem, &x->body_mem); /* thousands of calls may wait for the disk */
    exchange_wait(x);
    if (read) {
        rest_deliver(s->opts.rest, POLL_MESSAGES); /* saves one turn of the loop */
    }
}

/* ---- resources ---- */

/* Whether not the store answers, but the pod or its node. */
static bool pod_answers(const struct exchange *x)
{
    static const char *const subs[] = {"log", "exec", "attach", "portforward", "proxy"};

    for (uint32_t k = 0; k < HK_LEN(subs); k++) {
        if (hk_str_is(x->route.sub, subs[k])) {
            return x->kind->kind->id == API_POD;
        }
    }
    return false;
}

static void answer_from_node(struct exchange *x, struct hk_str query)
{
    const struct node_api *api = x->server->opts.node_api;

    if (!api) {
        exchange_refuse(x, 501, "NotImplemented", "the server does not serve %s of pods yet",
                        hk_str_is(x->route.sub, "log") ? "logs" : x->route.sub.s);
        answer_refusal(x);
        return;
    }
    api->serve(api->ctx, &(struct node_call){.ns = x->route.ns,
                                             .pod = x->route.name,
                                             .sub = x->route.sub,
                                             .query = query,
                                             .http = x->http});
    exchange_free(x);
}

static void answer_connected(struct exchange *x, struct hk_str query)
{
    if (subproxy_matches(&x->route)) {
        subproxy_serve(x);
    } else {
        answer_from_node(x, query);
    }
}

static void on_connect_done(void *ctx, const struct port_msg *m)
{
    struct exchange *x = ctx;

    if (m->rc < 0) {
        answer_done(x, m);
        return;
    }
    exchange_settle(x);
    answer_connected(x, m->obj ? request_connect_query(x, &m->obj->root) : x->http->query);
}

/* Policies and webhooks may refuse a stream to a pod before it begins. */
static void answer_connect(struct exchange *x)
{
    const struct api_kind *kind = rest_connect_kind(x->route.sub.s);

    if (!kind || !x->server->opts.node_api || !rest_connect_asks(x->server->opts.rest)) {
        answer_connected(x, x->http->query);
        return;
    }
    request_build_connect(x, kind->kind);
    http_body_hold(x->http);
    access_lend_rights(x);
    submit_call_to(x, on_connect_done);
}

/* Pods are bound by a subresource or by this path, where the body has the name. */
static int redirect_binding(struct exchange *x)
{
    struct route *r = &x->route;

    if (r->group.n > 0 || !hk_str_is(r->plural, "bindings") || r->name.n > 0 ||
        !hk_str_is(x->http->method, "POST")) {
        return 0;
    }
    struct json body;
    const int rc = body_decode(x, "Binding", &body);
    r->plural = HK_STR("pods");
    r->sub = HK_STR("binding");
    r->name = rc < 0 ? HK_STR("") : hk_arena_str(&x->mem, json_str_at(&body, "metadata.name"));
    if (rc == 0 && r->name.n == 0) {
        return exchange_refuse(x, 400, "BadRequest", "a Binding names its pod in metadata.name");
    }
    return rc;
}

static int find_kind(struct exchange *x)
{
    const struct route *r = &x->route;

    x->kind = rest_kind_find(x->server->opts.rest, r->group, r->version, r->plural);
    if (!x->kind) {
        return refuse_path(x);
    }
    const bool namespaced = x->kind->kind->namespaced;
    if ((!namespaced && r->ns.n > 0) || (namespaced && r->ns.n == 0 && r->name.n > 0)) {
        return refuse_path(x);
    }
    if (r->sub.n > 0 && !pod_answers(x) && !rest_kind_has(x->kind, r->sub.s)) {
        return refuse_path(x);
    }
    return 0;
}

static int check_form(struct exchange *x)
{
    const bool list = x->req.verb == PORT_LIST;

    if (x->accept.form == FORM_METADATA && x->req.verb != PORT_WATCH && list != x->accept.list) {
        return exchange_refuse(x, 406, "NotAcceptable",
                               "only the following media types are accepted: application/json, "
                               "application/yaml");
    }
    return 0;
}

static void answer_resource(struct exchange *x)
{
    if (review_answer(x)) {
        return;
    }
    if (subproxy_matches(&x->route) && !hk_str_is(x->route.plural, "pods")) {
        subproxy_serve(x);
        return;
    }
    if (redirect_binding(x) < 0 || find_kind(x) < 0) {
        answer_refusal(x);
    } else if (pod_answers(x)) {
        answer_connect(x);
    } else if (request_build(x) < 0 || check_form(x) < 0) {
        answer_refusal(x);
    } else if (x->req.verb == PORT_WATCH) {
        watch_stream_begin(x);
    } else {
        access_lend_rights(x);
        submit_call_to(x, server_on_done);
    }
}

/* ---- everything else ---- */

static bool answer_discovery(struct exchange *x, struct hk_buf *body, const char **type)
{
    const struct server *s = x->server;
    HK_VEC(struct discovery_foreign) foreign = {0};
    struct discovery_foreign one;

    aggregate_refresh(s->aggregate);
    while (aggregate_view(s->aggregate, foreign.len, &one)) {
        hk_vec_push(&foreign, one);
    }
    const struct discovery_input in = {s->opts.rest, foreign.at, foreign.len};
    const bool answered =
        discovery_answer(&in, x->route.path, http_request_header(x->http, "Accept"), body, type);
    hk_vec_fini(&foreign);
    return answered;
}

static void answer_document(struct exchange *x)
{
    const char *type = "application/json";
    struct hk_buf body = {0};

    if (!hk_str_is(x->http->method, "GET") && !hk_str_is(x->http->method, "HEAD")) {
        exchange_refuse(x, 405, "MethodNotAllowed",
                        "the server does not allow this method on the requested resource");
        answer_refusal(x);
    } else if (hk_str_is(x->route.path, "/metrics")) {
        health_metrics(x);
    } else if (openapi_serve(x) || backup_serve(x)) {
        return;
    } else if (answer_discovery(x, &body, &type)) {
        if (x->accept.pretty && strcmp(type, "application/json") == 0) {
            answer_json(x, 200, &body);
        } else {
            answer_text(x, 200, type, &body);
        }
    } else {
        refuse_path(x);
        answer_refusal(x);
    }
}

/* ---- from a request to its answer ---- */

/* Discovery of a group version is answered by its server, too. */
static bool answer_aggregated(struct exchange *x)
{
    const struct route *r = &x->route;
    struct hk_str rest = r->path, part, group = r->group, version = r->version;

    if (!r->resource) {
        hk_str_cut(&rest, '/', &part);
        hk_str_cut(&rest, '/', &part);
        if (!hk_str_is(part, "apis") || !hk_str_cut(&rest, '/', &group) ||
            !hk_str_cut(&rest, '/', &version) || rest.s) {
            return false;
        }
    }
    struct aggregate_service *s =
        group.n > 0 ? aggregate_find(x->server->aggregate, group, version) : NULL;
    if (s) {
        aggregate_serve(x, s);
    }
    return s != NULL;
}

static bool reads_people(const struct exchange *x)
{
    const struct hk_str agent = http_request_header(x->http, "User-Agent");

    if (query_has(&x->query, "pretty")) {
        return query_bool(&x->query, "pretty");
    }
    return hk_str_starts(agent, "curl") || hk_str_starts(agent, "Wget") ||
           hk_str_starts(agent, "Mozilla/5.0");
}

static int read_target(struct exchange *x)
{
    struct hk_err err = {0};
    int rc = route_parse(x->http->path, &x->mem, &x->route, &err);

    if (rc == -HK_ENOTFOUND) {
        return refuse_path(x);
    }
    if (rc == 0 && !subproxy_matches(&x->route)) { /* that query is for another server */
        rc = query_parse(x->http->query, &x->mem, &x->query, &err);
    }
    if (rc < 0) {
        return exchange_refuse(x, 400, "BadRequest", "%s", err.text);
    }
    x->accept.pretty = reads_people(x);
    return 0;
}

/* Custom resources exist in JSON only, except for their metadata and their Scale. */
static enum accept_proto proto_of(const struct exchange *x)
{
    const struct route *r = &x->route;
    const struct rest_kind *k =
        r->resource ? rest_kind_find(x->server->opts.rest, r->group, r->version, r->plural) : NULL;

    return !k || hk_str_is(r->sub, "scale") || proto_has(k->kind) ? ACCEPT_PROTO
                                                                  : ACCEPT_PROTO_METADATA;
}

static int read_accept(struct exchange *x)
{
    const struct hk_str include = query_get(&x->query, "includeObject");
    const struct hk_str header = http_request_header(x->http, "Accept");
    const enum accept_proto proto =
        hk_str_contains(header, "protobuf") ? proto_of(x) : ACCEPT_NO_PROTO;

    x->accept.include = include.n > 0 ? include.s : "Metadata";
    if (accept_parse(header, proto, &x->accept) < 0) {
        return exchange_refuse(x, 406, "NotAcceptable",
                               "only the following media types are accepted: application/json, "
                               "application/yaml%s",
                               proto == ACCEPT_PROTO ? ", application/vnd.kubernetes.protobuf"
                                                     : "");
    }
    if (x->accept.form == FORM_TABLE && include.n > 0 && !hk_str_is(include, "Metadata") &&
        !hk_str_is(include, "Object") && !hk_str_is(include, "None")) {
        return exchange_refuse(x, 400, "BadRequest",
                               "Unable to convert to Table as requested: includeObject: Invalid "
                               "value: \"%.*s\": must be 'Metadata', 'Object', 'None', or empty",
                               HK_FMT(include));
    }
    return 0;
}

/* Too many requests are in flight, or too many answer bytes are unread. */
static bool is_busy(const struct server *s)
{
    const bool is_short = hk_budget_room(s->opts.budget) != HK_ROOM_ENOUGH;
    const uint32_t most = is_short ? SHORT_IN_FLIGHT : s->max_in_flight;

    return s->counters.in_flight - s->counters.watches > most ||
           http_server_unread(s->http) > s->max_unread;
}

static void refuse_busy(struct exchange *x, const char *why)
{
    exchange_refuse(x, 429, "TooManyRequests", "%s", why);
    x->refusal.retry_after_s = 1;
    answer_refusal(x);
}

static void server_on_request(void *ctx, struct http_request *q)
{
    struct server *s = ctx;
    struct exchange *x = hk_zalloc(sizeof(*x));

    x->server = s;
    x->http = q;
    x->mem = hk_arena_pool_take(&s->mem);
    s->counters.in_flight++;
    if (read_target(x) < 0) {
        answer_refusal(x);
        return;
    }
    if (!x->route.resource && health_answer(x)) {
        return;
    }
    (void)!read_accept(x); /* a refusal may come first, in the form asked for */
    if (access_check(x) < 0) {
        answer_refusal(x);
    } else if (!http_request_claim(q, hk_str(x->user.name))) {
        refuse_busy(x, "user has too many connections, please use fewer");
    } else if (is_busy(s)) {
        refuse_busy(x, TOO_MANY);
    } else if (answer_aggregated(x)) {
        return;
    } else if (!x->route.resource) {
        answer_document(x);
    } else if (read_accept(x) < 0) {
        answer_refusal(x);
    } else {
        answer_resource(x);
    }
}

/* A large POST when memory is short, or any large body when there is none left. */
static bool is_too_large(const struct server *s, const struct http_request *q)
{
    const enum hk_room room = hk_budget_room(s->opts.budget);
    int64_t n;

    return room != HK_ROOM_ENOUGH && (room == HK_ROOM_NONE || hk_str_is(q->method, "POST")) &&
           hk_str_int(http_request_header(q, "Content-Length"), &n) && n > LARGE_BODY_BYTES;
}

/* Unauthenticated clients must not use memory for bodies. */
static int on_body(void *ctx, const struct http_request *q)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct auth_user user;

    if (!access_identify(ctx, q, &mem, &user)) {
        return 401;
    }
    if (is_too_large(ctx, q)) {
        return 507;
    }
    return http_request_claim(q, hk_str(user.name)) ? 0 : 429;
}

/* Whether another server answers. */
static bool is_foreign(const struct server *s, const struct route *r)
{
    return subproxy_matches(r) ||
           (r->group.n > 0 && aggregate_find(s->aggregate, r->group, r->version));
}

/* Bodies for other servers are not held here. */
static bool server_streams_body(void *ctx, const struct http_request *q)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct route r;

    return route_parse(q->path, &mem, &r, NULL) == 0 && is_foreign(ctx, &r);
}

static void server_on_http_error(void *ctx, int status, struct hk_buf *body)
{
    static const struct port_status all[] = {
        {.code = 400, .reason = "BadRequest", .message = "the request is not proper HTTP/1.1"},
        {.code = 401, .reason = "Unauthorized", .message = "Unauthorized"},
        {.code = 413,
         .reason = "RequestEntityTooLarge",
         .message = "Request entity too large: limit is 3145728"},
        {.code = 414,
         .reason = "RequestURITooLong",
         .message = "the URL or the number of its parameters is too large"},
        {.code = 429, .reason = "TooManyRequests", .message = TOO_MANY, .retry_after_s = 1},
    };
    struct server *s = ctx;

    _Static_assert(MAX_BODY_BYTES == 3145728, "the message names the limit");
    s->counters.requests[status / 100 % 6]++;
    for (uint32_t k = 0; k < HK_LEN(all); k++) {
        if (all[k].code == status) {
            status_write(&all[k], body);
        }
    }
    if (status == 507) {
        const struct hk_err *why = hk_budget_failure(s->opts.budget);
        status_write(&(struct port_status){.code = 507,
                                           .reason = "InsufficientStorage",
                                           .message = why ? why->text : "memory is short"},
                     body);
    }
}

/* ---- the server ---- */

/* 1/parts of the memory limit, at most usual. */
static size_t memory_share(const struct hk_budget *b, size_t parts, size_t usual)
{
    const uint64_t limit = hk_budget_limit(b);

    return limit > 0 ? (size_t)HK_MIN(limit / parts, (uint64_t)usual) : usual;
}

/* The wanted number, within the limits of memory and descriptors. */
static uint32_t connection_limit(uint32_t wish, const struct hk_budget *b)
{
    const size_t memory = memory_share(b, CONNECTIONS_SHARE, SIZE_MAX) / CONNECTION_COST;
    const rlim_t want =
        wish > 0 ? wish : HK_MIN(HK_MAX(memory, (size_t)SPARE_DESCRIPTORS), SERVER_MAX_CONNECTIONS);
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < 2 * SPARE_DESCRIPTORS) {
        return (uint32_t)HK_MIN(want, (rlim_t)SPARE_DESCRIPTORS);
    }
    return (uint32_t)HK_MIN(files.rlim_cur - SPARE_DESCRIPTORS, want);
}

/* Connections whose descriptor has this number or a higher one are refused. */
static uint32_t descriptor_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < 2 * SPARE_DESCRIPTORS ||
        files.rlim_cur > UINT32_MAX) {
        return 0;
    }
    return (uint32_t)files.rlim_cur - LAST_DESCRIPTORS;
}

static int64_t or_usual(int64_t wish_ms, int64_t usual_s)
{
    return wish_ms > 0 ? wish_ms : usual_s * 1000;
}

static struct aggregate *server_make_aggregate(const struct server_opts *o)
{
    return aggregate_new(&(struct aggregate_opts){.loop = o->loop,
                                                  .rest = o->rest,
                                                  .store = o->store,
                                                  .clock = o->clock,
                                                  .rand = o->rand,
                                                  .nodes = o->node_api,
                                                  .client = o->front_client,
                                                  .front_ca_pem = o->front_ca_pem,
                                                  .client_ca_pem = o->client_ca_pem});
}

static int server_read_request(struct hk_str pem, struct hk_arena *mem,
                               const char *const **ret_orgs, uint32_t *ret_n, struct hk_err *err)
{
    struct cert_request q;
    const int rc = cert_request_read(pem, mem, &q, err);

    *ret_orgs = q.orgs;
    *ret_n = q.norgs;
    return rc;
}

static bool server_allows(void *ctx, const struct auth_user *u, const struct rbac_ask *ask)
{
    const struct server *s = ctx;

    return auth_is_admin(u) || rbac_allows(s->rbac, u, ask);
}

static void start_signer(struct server *s)
{
    const struct rest_kind *k = rest_kind_find(s->opts.rest, HK_STR("certificates.k8s.io"),
                                               HK_STR("v1"), HK_STR("certificatesigningrequests"));

    rest_read_requests(s->opts.rest, server_read_request);
    if (s->opts.ca) {
        s->signer = signer_new(&(struct signer_opts){.loop = s->opts.loop,
                                                     .clock = s->opts.clock,
                                                     .port = s->port,
                                                     .kind = k->kind,
                                                     .ca = s->opts.ca,
                                                     .allows = server_allows,
                                                     .ctx = s});
    }
}

int server_new(const struct server_opts *o, struct server **ret, struct hk_err *err)
{
    struct server *s = hk_zalloc(sizeof(*s));
    const int64_t idle_timeout_ms = or_usual(o->idle_timeout_ms, SERVER_IDLE_TIMEOUT_S);
    const uint32_t most = connection_limit(o->max_connections, o->budget);
    const size_t bodies =
        HK_MAX(memory_share(o->budget, BODIES_SHARE, MAX_BODIES_BYTES), 2 * (size_t)MAX_BODY_BYTES);
    const struct http_opts http = {
        .addr = o->addr,
        .port = o->port,
        .cert_pem = o->cert_pem,
        .key_pem = o->key_pem,
        .client_ca_pem = o->client_ca_pem,
        .max_body = MAX_BODY_BYTES,
        .max_bodies = bodies,
        .max_bodies_each = bodies / 2,
        .max_connections = most,
        .max_per_peer = HK_MAX(most / 2, 1),
        .max_per_user = HK_MAX(most / 2, 1),
        .max_descriptor = descriptor_limit(),
        .idle_timeout_ms = idle_timeout_ms,
        .header_timeout_ms = or_usual(o->header_timeout_ms, SERVER_HEADER_TIMEOUT_S),
        .admit = on_body,
        .streams = server_streams_body,
        .handle = server_on_request,
        .refusal = server_on_http_error,
        .ctx = s,
    };

    s->opts = *o;
    s->opts.idle_timeout_ms = idle_timeout_ms;
    s->max_unread = memory_share(o->budget, UNREAD_SHARE, MAX_UNREAD_BYTES);
    s->max_in_flight = (uint32_t)HK_MAX(
        HK_MIN(memory_share(o->budget, 1, SIZE_MAX) / REQUEST_COST, (size_t)MAX_IN_FLIGHT),
        (size_t)SHORT_IN_FLIGHT);
    s->port = rest_port(o->rest);
    s->rbac = rbac_new(o->rest, o->store);
    s->openapi = openapi_new(o->rest);
    s->forwarder = forwarder_new(o->loop, MAX_FORWARDS);
    s->aggregate = server_make_aggregate(o);
    s->started_ns = o->clock->mono_ns(o->clock);
    s->tick = net_timer_new(o->loop, on_tick, s);
    s->compact = net_timer_new(o->loop, on_compact, s);
    s->memory = net_timer_new(o->loop, on_memory, s);
    const int rc = http_server_new(o->loop, &http, &s->http, err);
    if (rc < 0) {
        server_free(s);
        return rc;
    }
    rest_authorize_by(o->rest, access_on_check, s);
    if (o->token_key.n > 0) {
        rest_sign_tokens(o->rest, account_sign, s);
    }
    start_signer(s);
    s->port_watch = net_watch_add(o->loop, port_fd(s->port), EPOLLIN, on_port, s);
    on_compact(s);
    on_memory(s);
    schedule_tick(s);
    *ret = s;
    return 0;
}

uint16_t server_port(const struct server *s)
{
    return http_server_port(s->http);
}

void server_stop(struct server *s, int64_t grace_ms)
{
    s->stopping = true;
    http_server_stop(s->http, grace_ms);
}

void server_free(struct server *s)
{
    if (!s) {
        return;
    }
    while (s->pending) {
        port_cancel(s->port, s->pending->call);
        exchange_free(s->pending);
    }
    signer_free(s->signer);
    rest_sign_tokens(s->opts.rest, NULL, NULL);
    rest_authorize_by(s->opts.rest, NULL, NULL);
    http_server_free(s->http);
    forwarder_free(s->forwarder);
    aggregate_free(s->aggregate);
    net_watch_del(s->port_watch);
    net_timer_free(s->tick);
    net_timer_free(s->compact);
    net_timer_free(s->memory);
    openapi_free(s->openapi);
    rbac_free(s->rbac);
    hk_arena_pool_fini(&s->mem);
    hk_free(s);
}
