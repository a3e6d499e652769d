// SPDX-License-Identifier: Apache-2.0
// The book of APIServices that name a Service, and the forwarding of their requests. The book is
// compared with the store when the store has changed, so an entry keeps its state while its object
// keeps its meaning. Upstream: kube-aggregator's handler_proxy.go.
#include "apiserver/aggregate_priv.h"

#include "apiserver/server_priv.h"
#include "apiserver/subproxy.h"
#include "codec/base64.h"
#include "net/forward.h"

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define GROUP "apiregistration.k8s.io"

enum {
    TICK_MS = 1000,
    WAKE_MS = 50,
    MAX_SERVICES = 256,    /* APIServices that are acted on */
    MAX_FORWARDED = 256,   /* requests of one of them at a time */
    ANSWER_MS = 60 * 1000, /* until the answer begins */
    FIXED_HEADERS = 2,     /* X-Remote-User, X-Remote-Uid */
};

/* ---- entries ---- */

static void aggregate_service_free(struct aggregate_service *s)
{
    fetch_free(s->fetch);
    hk_arena_fini(&s->mem);
    hk_free(s->name);
    hk_free(s->group);
    hk_free(s->version);
    hk_free(s->svc_ns);
    hk_free(s->svc_name);
    hk_free(s->server_name);
    hk_free(s->ca_pem);
    hk_free(s);
}

static char *copy_field(const struct json *obj, const char *key)
{
    const struct hk_str s = json_str_field(obj, key);

    return hk_strndup(s.n > 0 ? s.s : "", s.n);
}

static char *read_bundle(const struct json *spec)
{
    HK_AUTO(hk_buf_fini) struct hk_buf pem = {0};
    const struct hk_str coded = json_str_field(spec, "caBundle");

    return coded.n > 0 && base64_read(coded, &pem) ? hk_strndup(hk_buf_str(&pem).s, pem.len) : NULL;
}

static struct aggregate_service *aggregate_service_new(struct aggregate *a, struct hk_str name,
                                                       const struct json *spec)
{
    struct aggregate_service *s = hk_zalloc(sizeof(*s));
    HK_AUTO(hk_buf_fini) struct hk_buf server_name = {0};
    const struct json *svc = json_get(spec, "service");

    *s = (struct aggregate_service){
        .a = a,
        .name = hk_strndup(name.s, name.n),
        .group = copy_field(spec, "group"),
        .version = copy_field(spec, "version"),
        .svc_ns = copy_field(svc, "namespace"),
        .svc_name = copy_field(svc, "name"),
        .port = json_int(json_get(svc, "port"), AGGREGATE_HTTPS_PORT),
        .insecure = json_is(json_get(spec, "insecureSkipTLSVerify"), JSON_BOOL) &&
                    json_get(spec, "insecureSkipTLSVerify")->b,
        .ca_pem = read_bundle(spec),
        .group_priority = json_int_at(spec, "groupPriorityMinimum"),
        .version_priority = json_int_at(spec, "versionPriority"),
        .seen = true,
        .stale = true,
    };
    hk_buf_addf(&server_name, "%s.%s.svc", s->svc_name, s->svc_ns);
    s->server_name = hk_strdup(server_name.data);
    return s;
}

/* By the preference of the group, then its name, then the preference of the version. */
static bool comes_before(const struct aggregate_service *a, const struct aggregate_service *b)
{
    const int order = strcmp(a->group, b->group);

    if (a->group_priority != b->group_priority) {
        return a->group_priority > b->group_priority;
    }
    return order != 0                                   ? order < 0
           : a->version_priority != b->version_priority ? a->version_priority > b->version_priority
                                                        : strcmp(a->version, b->version) < 0;
}

static void add_entry(struct aggregate *a, struct aggregate_service *s)
{
    hk_vec_push(&a->all, s);
    for (uint32_t k = a->all.len - 1; k > 0 && comes_before(s, a->all.at[k - 1]); k--) {
        a->all.at[k] = a->all.at[k - 1];
        a->all.at[k - 1] = s;
    }
}

/* Frees what is gone and not in use. */
static void sweep_entries(struct aggregate *a)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < a->all.len; k++) {
        struct aggregate_service *s = a->all.at[k];
        if (s->gone && s->forwarded == 0) {
            aggregate_service_free(s);
        } else {
            a->all.at[n++] = s;
        }
    }
    a->all.len = n;
}

/* ---- the book ---- */

static bool is_same(const struct aggregate_service *s, const struct aggregate_service *t)
{
    return strcmp(s->name, t->name) == 0 && strcmp(s->svc_ns, t->svc_ns) == 0 &&
           strcmp(s->svc_name, t->svc_name) == 0 && s->port == t->port &&
           s->insecure == t->insecure && s->group_priority == t->group_priority &&
           s->version_priority == t->version_priority &&
           strcmp(s->ca_pem ? s->ca_pem : "", t->ca_pem ? t->ca_pem : "") == 0;
}

static bool on_api_service(void *ctx, const struct store_obj *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct aggregate *a = ctx;
    struct json doc;

    if (json_parse(hk_arena_str(&mem, o->text), 0, &mem, &doc, NULL) < 0 ||
        !json_is(json_at(&doc, "spec.service"), JSON_OBJECT)) {
        return true;
    }
    struct aggregate_service *s = aggregate_service_new(a, o->name, json_get(&doc, "spec"));
    for (uint32_t k = 0; k < a->all.len; k++) {
        struct aggregate_service *old = a->all.at[k];
        if (!old->gone && is_same(old, s)) {
            old->seen = true;
            aggregate_service_free(s);
            return true;
        }
    }
    if (a->all.len < MAX_SERVICES && s->group[0] != '\0' && strcmp(s->group, GROUP) != 0) {
        add_entry(a, s);
    } else {
        aggregate_service_free(s);
    }
    return true;
}

bool aggregate_has_changed(const struct aggregate *a, uint32_t res, uint64_t since)
{
    struct store_event ev;
    uint64_t rv = since;

    return store_next(a->o.store, res, HK_STR(""), &rv, &ev) != STORE_NEXT_NONE;
}

static bool targets_have_changed(const struct aggregate *a)
{
    return aggregate_has_changed(a, a->services_res, a->targets_rv) ||
           aggregate_has_changed(a, a->endpoints_res, a->targets_rv) ||
           aggregate_has_changed(a, a->slices_res, a->targets_rv);
}

void aggregate_refresh(struct aggregate *a)
{
    if (a->read && !aggregate_has_changed(a, a->res, a->rv)) {
        return;
    }
    a->read = true;
    a->rv = store_rv(a->o.store);
    for (uint32_t k = 0; k < a->all.len; k++) {
        a->all.at[k]->seen = false;
    }
    if (a->o.client) {
        store_scan(a->o.store, a->res, HK_STR(""), HK_STR(""), HK_STR(""), on_api_service, a);
    }
    for (uint32_t k = 0; k < a->all.len; k++) {
        a->all.at[k]->gone |= !a->all.at[k]->seen;
    }
    a->local_due = true;
    aggregate_wake(a);
}

struct aggregate_service *aggregate_find(struct aggregate *a, struct hk_str group,
                                         struct hk_str version)
{
    aggregate_refresh(a);
    for (uint32_t k = 0; k < a->all.len; k++) {
        struct aggregate_service *s = a->all.at[k];
        if (!s->gone && hk_str_is(group, s->group) && hk_str_is(version, s->version)) {
            return s;
        }
    }
    return NULL;
}

bool aggregate_view(const struct aggregate *a, uint32_t i, struct discovery_foreign *ret)
{
    for (uint32_t k = 0; k < a->all.len; k++) {
        const struct aggregate_service *s = a->all.at[k];
        if (s->gone || i-- > 0) {
            continue;
        }
        *ret = (struct discovery_foreign){.group = s->group,
                                          .version = s->version,
                                          .resources = s->has_resources ? &s->resources : NULL,
                                          .stale = s->stale || !s->available};
        return true;
    }
    return false;
}

const struct json *aggregate_read(const struct aggregate *a, uint32_t res, struct hk_str ns,
                                  struct hk_str name, struct hk_arena *mem)
{
    const struct store_obj *o = store_get(a->o.store, res, ns, name);
    struct json *doc = hk_arena_zalloc(mem, sizeof(*doc));

    return o && json_parse(hk_arena_str(mem, o->text), 0, mem, doc, NULL) == 0 ? doc : NULL;
}

/* ---- forwarding ---- */

/* In the words of kube-aggregator, which writes plain text. */
static void aggregate_refuse(struct http_request *q, int status, const char *why)
{
    static const struct http_header text[] = {
        {HK_STR("Content-Type"), HK_STR("text/plain; charset=utf-8")},
        {HK_STR("X-Content-Type-Options"), HK_STR("nosniff")}};
    struct hk_buf body = {0};

    if (status == 504) {
        subproxy_refuse(q, status, why);
        return;
    }
    hk_buf_addf(&body, "%s\n", why);
    http_reply(q, status, text, HK_LEN(text), &body);
}

static void aggregate_on_ended(void *ctx)
{
    struct aggregate_service *s = ctx;

    s->forwarded--;
    if (s->gone && s->forwarded == 0) {
        aggregate_wake(s->a);
    }
}

static bool is_header_text(const char *s)
{
    for (; *s; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f) {
            return false;
        }
    }
    return true;
}

/* The identity of the user, as a request header authenticator reads it; false: it cannot be
 * written. */
static bool identify_user(struct exchange *x, struct http_header **ret, uint32_t *ret_n)
{
    const struct auth_user *u = &x->user;
    struct http_header *h = hk_arena_array(&x->mem, u->ngroups + FIXED_HEADERS, sizeof(*h));
    uint32_t n = 0;

    h[n++] = (struct http_header){HK_STR("X-Remote-User"), hk_str(u->name)};
    if (u->uid && u->uid[0] != '\0') {
        h[n++] = (struct http_header){HK_STR("X-Remote-Uid"), hk_str(u->uid)};
    }
    for (uint32_t k = 0; k < u->ngroups; k++) {
        h[n++] = (struct http_header){HK_STR("X-Remote-Group"), hk_str(u->groups[k])};
    }
    for (uint32_t k = 0; k < n; k++) {
        if (!is_header_text(h[k].value.s)) {
            return false;
        }
    }
    *ret = h;
    *ret_n = n;
    return true;
}

static bool aggregate_forward(struct exchange *x, struct aggregate_service *s,
                              const struct aggregate_target *to)
{
    const struct cert_pair *client = s->a->o.client;
    const struct hk_str path = x->http->path, query = x->http->query;
    const bool v6 = memchr(to->host.s, ':', to->host.n) != NULL;
    struct http_header *headers;
    uint32_t nheaders;

    return s->forwarded < MAX_FORWARDED && identify_user(x, &headers, &nheaders) &&
           forwarder_start(
               x->server->forwarder,
               &(struct forward_opts){
                   .http = x->http,
                   .user = hk_str(x->user.name),
                   .host = to->host,
                   .port = to->port,
                   .tls = true,
                   .cert_pem = client->cert_pem,
                   .key_pem = client->key_pem,
                   .server_name = s->server_name,
                   .ca_pem = s->ca_pem,
                   .insecure = s->insecure,
                   .path = hk_str(hk_arena_printf(&x->mem, "%.*s%s%.*s", HK_FMT(path),
                                                  query.n > 0 ? "?" : "", HK_FMT(query))),
                   .host_header = hk_str(hk_arena_printf(&x->mem, v6 ? "[%.*s]:%u" : "%.*s:%u",
                                                         HK_FMT(to->host), to->port)),
                   .prefix = HK_STR(""),
                   .headers = headers,
                   .nheaders = nheaders,
                   .refuse_redirects = true,
                   .answer_ms = ANSWER_MS,
                   .refuse = aggregate_refuse,
                   .ended = aggregate_on_ended,
                   .ctx = s,
               });
}

void aggregate_serve(struct exchange *x, struct aggregate_service *s)
{
    struct aggregate_target to = {0};

    if (s->available) {
        aggregate_find_target(s, &x->mem, &to);
    }
    if (!s->available || to.reason || !aggregate_forward(x, s, &to)) {
        x->server->counters.requests[5]++;
        aggregate_refuse(x->http, 503, "service unavailable");
    } else {
        s->forwarded++;
    }
    exchange_free(x);
}

/* ---- the tick ---- */

static void aggregate_on_tick(void *ctx)
{
    struct aggregate *a = ctx;
    int64_t next_ns = net_loop_now_ns(a->o.loop) + TICK_MS * SECOND_NS / 1000;

    aggregate_refresh(a);
    sweep_entries(a);
    aggregate_publish(a);
    if (a->all.len > 0 && targets_have_changed(a)) {
        a->targets_rv = store_rv(a->o.store);
        for (uint32_t k = 0; k < a->all.len; k++) {
            aggregate_recheck(a->all.at[k]);
        }
    }
    for (uint32_t k = 0; k < a->all.len; k++) {
        if (!a->all.at[k]->gone) {
            next_ns = HK_MIN(next_ns, aggregate_check(a->all.at[k]));
        }
    }
    net_timer_at(a->tick, next_ns);
}

void aggregate_wake(struct aggregate *a)
{
    if (!a->o.client) {
        return; /* nothing is forwarded or published */
    }
    net_timer_at(a->tick, net_loop_now_ns(a->o.loop) + WAKE_MS * SECOND_NS / 1000);
}

static uint32_t res_of(const struct aggregate_opts *o, const char *group, const char *plural)
{
    return rest_kind_find(o->rest, hk_str(group), HK_STR("v1"), hk_str(plural))->res;
}

struct aggregate *aggregate_new(const struct aggregate_opts *o)
{
    struct aggregate *a = hk_zalloc(sizeof(*a));

    a->o = *o;
    a->res = res_of(o, GROUP, "apiservices");
    a->services_res = res_of(o, "", "services");
    a->endpoints_res = res_of(o, "", "endpoints");
    a->slices_res = res_of(o, "discovery.k8s.io", "endpointslices");
    a->config_res = res_of(o, "", "configmaps");
    a->roles_res = res_of(o, "rbac.authorization.k8s.io", "roles");
    a->tick = net_timer_new(o->loop, aggregate_on_tick, a);
    aggregate_wake(a);
    return a;
}

void aggregate_free(struct aggregate *a)
{
    if (!a) {
        return;
    }
    for (uint32_t k = 0; k < a->all.len; k++) {
        aggregate_service_free(a->all.at[k]);
    }
    hk_vec_fini(&a->all);
    net_timer_free(a->tick);
    hk_free(a);
}
