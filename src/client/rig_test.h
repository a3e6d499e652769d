// SPDX-License-Identifier: Apache-2.0
// A real server over TLS and a client of it on one loop, and the functions that tests of the client
// use. The server can be stopped and started again, under the same address and store.
#pragma once

#include "apiserver/server.h"
#include "client/client.h"
#include "net/cert.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { RIG_PATIENCE_MS = 60000 };

struct rig {
    struct hk_rand rand;
    struct net_loop *loop;
    struct store *store;
    struct rest *rest;
    struct auth *auth;
    struct server *server;
    uint16_t tcp_port;
    struct cert_pair ca, serving;
    struct client *client; /* NULL: the test makes its own */
    struct port *port;
    struct hk_arena mem;
};

static inline int64_t rig_now_s(void)
{
    return hk_clock_system()->wall_ns(hk_clock_system()) / 1000000000;
}

static inline void rig_start_server(struct rig *g)
{
    const struct server_opts o = {
        .loop = g->loop,
        .rest = g->rest,
        .store = g->store,
        .clock = hk_clock_system(),
        .rand = &g->rand,
        .addr = HK_STR("127.0.0.1"),
        .port = g->tcp_port,
        .cert_pem = g->serving.cert_pem,
        .key_pem = g->serving.key_pem,
        .client_ca_pem = g->ca.cert_pem,
        .auth = g->auth,
    };
    struct hk_err err = {0};

    if (server_new(&o, &g->server, &err) < 0) {
        fail_msg("%s", err.text);
    }
    g->tcp_port = server_port(g->server);
}

static inline void rig_stop_server(struct rig *g)
{
    server_free(g->server);
    g->server = NULL;
}

static inline void rig_make_certs(struct rig *g)
{
    const char *const names[] = {"127.0.0.1", "kubernetes.default"};
    const struct cert_opts ca = {.cn = "ca", .now_s = rig_now_s(), .days = 1};
    const struct cert_opts serving = {.cn = "server",
                                      .names = names,
                                      .nnames = 2,
                                      .server = true,
                                      .now_s = rig_now_s(),
                                      .days = 1};

    assert_int_equal(cert_make_ca(&ca, &g->ca, NULL), 0);
    assert_int_equal(cert_make(&serving, &g->ca, &g->serving, NULL), 0);
}

/* A configuration for this server. cluster and user are further lines of these entries, NULL: the
 * usual ones. */
static inline struct kubeconfig rig_config(struct rig *g, const char *cluster, const char *user)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct kubeconfig k = {0};
    struct hk_err err = {0};

    hk_buf_addf(&text,
                "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                "clusters:\n- name: k\n  cluster:\n    server: https://127.0.0.1:%u\n",
                g->tcp_port);
    if (cluster) {
        hk_buf_adds(&text, cluster);
    } else {
        hk_buf_adds(&text, "    certificate-authority-data: ");
        cert_write_base64(g->ca.cert_pem, &text);
    }
    hk_buf_addf(&text, "\nusers:\n- name: u\n  user:\n%s\n", user ? user : "    token: secret");
    if (kubeconfig_parse(hk_buf_str(&text), "/", &(struct kubeconfig_opts){0}, &k, &err) < 0) {
        fail_msg("%s in\n%s", err.text, text.data);
    }
    return k;
}

/* Options of a client with short pauses and timeouts. */
static inline struct client_opts rig_client_opts(struct rig *g)
{
    return (struct client_opts){
        .loop = g->loop,
        .clock = hk_clock_system(),
        .rand = &g->rand,
        .qps = -1,
        .retry_first_ms = 1,
        .retry_last_ms = 20,
    };
}

static inline struct port *rig_client(struct rig *g, const struct client_opts *o,
                                      struct kubeconfig config)
{
    struct hk_err err = {0};

    if (client_new(o, &config, &g->client, &err) < 0) {
        fail_msg("%s", err.text);
    }
    g->port = client_port(g->client);
    return g->port;
}

static inline void rig_open(struct rig *g, uint32_t ring_events)
{
    hk_rand_seed(&g->rand, 1);
    g->loop = net_loop_new(hk_clock_system());
    assert_int_equal(store_open(&(struct store_opts){.ring_events = ring_events}, &g->store, NULL),
                     0);
    assert_int_equal(
        auth_parse(HK_STR("secret,admin,1,system:masters\nother,root,2,system:masters\n"), &g->auth,
                   NULL),
        0);
    g->rest = rest_new(
        &(struct rest_opts){.store = g->store, .clock = hk_clock_system(), .rand = &g->rand});
    rig_make_certs(g);
    rig_start_server(g);
}

static inline void rig_close(struct rig *g)
{
    port_free(g->port);
    server_free(g->server);
    rest_free(g->rest);
    store_close(g->store);
    auth_free(g->auth);
    cert_pair_fini(&g->ca);
    cert_pair_fini(&g->serving);
    net_loop_free(g->loop);
    hk_arena_fini(&g->mem);
}

/* JSON with single quotes. */
static inline const struct json *rig_json(struct hk_arena *mem, const char *text)
{
    struct json *v = hk_arena_alloc(mem, sizeof(*v));
    char *copy = hk_arena_strndup(mem, text, strlen(text));
    struct hk_err err = {0};

    for (char *p = copy; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(hk_str(copy), 0, mem, v, &err) < 0) {
        fail_msg("%s in %s", err.text, text);
    }
    return v;
}

/* The outcome of one call, copied out of its message. */
struct outcome {
    bool done;
    int rc, code; /* code: of the status */
    bool created;
    char reason[64], text[512], names[1024], cont[512];
    uint32_t nitems, nwarnings, ncauses;
    int32_t retry_after_s;
    uint64_t rv;
    struct api_object *obj;
};

static inline void outcome_on_msg(void *ctx, const struct port_msg *m)
{
    struct outcome *o = ctx;

    assert_int_equal(m->type, PORT_DONE);
    assert_false(o->done);
    assert_int_equal(m->rc < 0, m->err != NULL);
    o->done = true;
    o->rc = m->rc;
    o->rv = m->rv;
    o->created = m->created;
    o->nitems = m->nitems;
    o->nwarnings = m->nwarnings;
    snprintf(o->text, sizeof(o->text), "%s", m->err ? m->err->text : "");
    snprintf(o->cont, sizeof(o->cont), "%.*s", HK_FMT(m->cont));
    for (uint32_t i = 0; i < m->nitems; i++) {
        const size_t n = strlen(o->names);
        snprintf(o->names + n, sizeof(o->names) - n, "%s%.*s", i > 0 ? " " : "",
                 HK_FMT(m->items[i]->name));
    }
    if (m->status) {
        o->code = m->status->code;
        o->ncauses = m->status->ncauses;
        o->retry_after_s = m->status->retry_after_s;
        snprintf(o->reason, sizeof(o->reason), "%s", m->status->reason ? m->status->reason : "");
    }
    o->obj = m->obj ? api_object_ref(m->obj) : NULL;
}

static inline void rig_turn(struct rig *g)
{
    struct hk_err err = {0};

    assert_int_equal(net_loop_turn(g->loop, 2, &err), 0);
    port_poll(g->port, UINT32_MAX);
}

#define rig_until(g, cond)                                                                         \
    do {                                                                                           \
        const int64_t deadline_ = net_loop_now_ns((g)->loop) + (int64_t)RIG_PATIENCE_MS * 1000000; \
        while (!(cond)) {                                                                          \
            rig_turn(g);                                                                           \
            if (net_loop_now_ns((g)->loop) > deadline_) {                                          \
                fail_msg("never came true: %s", #cond);                                            \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static inline struct outcome rig_ask(struct rig *g, const struct port_request *req)
{
    struct outcome o = {0};

    port_submit(g->port, req, (struct port_sink){outcome_on_msg, &o});
    assert_false(o.done);
    rig_until(g, o.done);
    return o;
}

static inline void outcome_fini(struct outcome *o)
{
    api_object_unref(o->obj);
}

/* A value by dotted path as text, "-" when absent. */
static inline const char *rig_look(struct hk_arena *mem, const struct api_object *o,
                                   const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct json *v = o ? json_at(&o->root, path) : NULL;

    if (!v) {
        return "-";
    }
    if (v->type == JSON_STRING) {
        hk_buf_addstr(&text, json_str(v, HK_STR("")));
    } else {
        json_write(v, &text);
    }
    return hk_arena_str(mem, hk_buf_str(&text)).s;
}

/* What a watch reported, one word per event: "+a ~a -a" and "." for bookmarks, "!rc" at the end. */
struct heard {
    struct hk_buf text;
    uint64_t rv;
    bool done, initial_end;
    int rc;
    uint32_t events;
};

static inline void heard_on_msg(void *ctx, const struct port_msg *m)
{
    static const char signs[] = {
        [PORT_ADDED] = '+', [PORT_MODIFIED] = '~', [PORT_DELETED] = '-', [PORT_BOOKMARK] = '.'};
    struct heard *h = ctx;

    assert_false(h->done);
    if (m->type == PORT_DONE) {
        h->done = true;
        h->rc = m->rc;
        return;
    }
    h->events++;
    h->initial_end |= m->initial_end;
    h->rv = m->rv;
    hk_buf_addf(&h->text, "%s%c", h->text.len > 0 ? " " : "", signs[m->type]);
    if (m->obj) {
        hk_buf_addstr(&h->text, m->obj->name);
    }
}

static inline void heard_fini(struct heard *h)
{
    hk_buf_fini(&h->text);
}
