// SPDX-License-Identifier: Apache-2.0
// A server in front of a node, both on one loop: clients talk to the front over plain HTTP, the
// front relays to the node over TLS. Pods and nodes are in a port for tests.
#pragma once

#include "api/port_mem.h"
#include "net/cert.h"
#include "net/http_rig_test.h"
#include "relay/node_proxy.h"

#include <stdio.h>
#include <sys/epoll.h>

enum { POLL_MS = 1 };

struct rig {
    struct fixture http; /* loop and front */
    struct hk_rand rand;
    struct port_mem *mem;
    struct net_timer *poll;
    struct cert_pair ca, serving;
    struct node_proxy *proxy;
    struct hk_err err;

    struct http_server *node;
    void (*serve)(struct rig *g, struct http_request *q); /* what the node does with a request */
    struct hk_buf asked;         /* requests to the node: "GET /path?query by CN,ORG\n" */
    struct http_request *tunnel; /* open at the node; NULL: none */
    uint32_t cut;                /* tunnels that the front ended */
};

/* ---- the front ---- */

/* "/NAMESPACE/POD/SUB?QUERY" */
static inline void rig_handle(void *ctx, struct http_request *q)
{
    struct rig *g = ctx;
    const struct node_api *api = node_proxy_api(g->proxy);
    struct hk_str rest = {q->path.s + 1, q->path.n - 1};
    struct node_call call = {.query = q->query, .http = q, .container = HK_STR("")};

    hk_str_cut(&rest, '/', &call.ns);
    hk_str_cut(&rest, '/', &call.pod);
    call.sub = rest;
    api->serve(api->ctx, &call);
}

static inline void rig_refusal(void *ctx, int status, struct hk_buf *body)
{
    hk_buf_addf(body, "{\"refused\":%d}", status);
}

static inline void rig_poll(void *ctx)
{
    struct rig *g = ctx;

    port_poll(port_mem_port(g->mem), UINT32_MAX);
    net_timer_at(g->poll, net_loop_now_ns(g->http.loop) + POLL_MS * (int64_t)1000000);
}

/* ---- the node ---- */

static inline void rig_on_node_request(void *ctx, struct http_request *q)
{
    struct rig *g = ctx;

    hk_buf_addf(&g->asked, "%.*s %.*s?%.*s by %s", HK_FMT(q->method), HK_FMT(q->path),
                HK_FMT(q->query), q->client_cert_cn ? q->client_cert_cn : "nobody");
    for (uint32_t i = 0; i < q->nclient_cert_orgs; i++) {
        hk_buf_addf(&g->asked, ",%s", q->client_cert_orgs[i]);
    }
    hk_buf_addc(&g->asked, '\n');
    g->serve(g, q);
}

static inline void rig_start_server(struct rig *g, bool node, struct http_server **ret)
{
    const struct http_opts o = {
        .addr = HK_STR("127.0.0.1"),
        .cert_pem = node ? g->serving.cert_pem : NULL,
        .key_pem = node ? g->serving.key_pem : NULL,
        .client_ca_pem = node ? g->ca.cert_pem : NULL,
        .max_body = MAX_BODY,
        .max_bodies = MAX_BODIES,
        .max_connections = MAX_CONNECTIONS,
        .idle_timeout_ms = 60000,
        .header_timeout_ms = 60000,
        .handle = node ? rig_on_node_request : rig_handle,
        .refusal = rig_refusal,
        .ctx = g,
    };

    if (http_server_new(g->http.loop, &o, ret, &g->err) < 0) {
        fail_msg("%s", g->err.text);
    }
}

/* ---- both ---- */

static inline void rig_make_certs(struct rig *g)
{
    const char *const names[] = {"127.0.0.1"};
    const int64_t now_s = hk_clock_system()->wall_ns(hk_clock_system()) / 1000000000;

    assert_int_equal(
        cert_make_ca(&(struct cert_opts){.cn = "ca", .now_s = now_s, .days = 1}, &g->ca, NULL), 0);
    assert_int_equal(cert_make(&(struct cert_opts){.cn = "node",
                                                   .names = names,
                                                   .nnames = 1,
                                                   .server = true,
                                                   .now_s = now_s,
                                                   .days = 1},
                               &g->ca, &g->serving, NULL),
                     0);
}

static inline void rig_make_proxy(struct rig *g, const struct node_api *local)
{
    const struct node_proxy_opts o = {.loop = g->http.loop,
                                      .clock = hk_clock_system(),
                                      .rand = &g->rand,
                                      .port = port_mem_port(g->mem),
                                      .ca = &g->ca,
                                      .local = local};

    assert_int_equal(node_proxy_new(&o, &g->proxy, &g->err), 0);
}

static inline int rig_setup(void **state)
{
    struct rig *g = hk_zalloc(sizeof(*g));

    hk_rand_seed(&g->rand, 1);
    g->mem = port_mem_new(0);
    g->http.loop = net_loop_new(hk_clock_system());
    g->poll = net_timer_new(g->http.loop, rig_poll, g);
    rig_poll(g);
    rig_make_certs(g);
    rig_start_server(g, false, &g->http.server);
    rig_start_server(g, true, &g->node);
    rig_make_proxy(g, NULL);
    *state = g;
    return 0;
}

static inline int rig_teardown(void **state)
{
    struct rig *g = *state;

    http_server_free(g->http.server);
    node_proxy_free(g->proxy);
    http_server_free(g->node);
    net_timer_free(g->poll);
    port_free(port_mem_port(g->mem));
    net_loop_free(g->http.loop);
    cert_pair_fini(&g->ca);
    cert_pair_fini(&g->serving);
    hk_buf_fini(&g->asked);
    hk_free(g);
    return 0;
}

/* ---- objects ---- */

static inline void rig_put(struct rig *g, const char *text)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;

    if (json_parse(hk_str(text), 0, &mem, &doc, &g->err) < 0 ||
        port_mem_put(g->mem, &doc, &g->err) < 0) {
        fail_msg("%s in %s", g->err.text, text);
    }
}

#define POD(name, node, containers)                                                                \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name                       \
    "\",\"namespace\":\"d\"},\"spec\":{" node "\"containers\":[" containers "]}}"
#define ON_N1 "\"nodeName\":\"n1\","
#define MAIN "{\"name\":\"main\"}"

/* Node n1, which serves at that port. */
static inline void rig_put_node(struct rig *g, uint16_t port)
{
    char text[512];

    snprintf(text, sizeof(text),
             "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"},\"status\":{"
             "\"addresses\":[{\"type\":\"Hostname\",\"address\":\"x\"},{\"type\":\"InternalIP\","
             "\"address\":\"127.0.0.1\"}],\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":%u}}}"
             "}",
             port);
    rig_put(g, text);
}

/* ---- clients ---- */

/* Sends a request to the front; the answer is read until the connection is closed. */
static inline const char *rig_ask(struct rig *g, const char *target)
{
    static char text[4096];
    HK_AUTO(hk_buf_fini) struct hk_buf request = {0}, in = {0};
    const int fd = dial(&g->http);

    hk_buf_addf(&request, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", target);
    say(fd, request.data);
    (void)read_until(&g->http, fd, &in, "\r\n\r\n\r\n\r\n"); /* never: until it is closed */
    close(fd);
    snprintf(text, sizeof(text), "%s", hk_buf_str(&in).s);
    return text;
}

static inline void expect_answer(struct rig *g, const char *target, const char *status,
                                 const char *part)
{
    const char *answer = rig_ask(g, target);

    if (strncmp(answer + strlen("HTTP/1.1 "), status, strlen(status)) != 0 ||
        !strstr(answer, part)) {
        fail_msg("%s: expected %s with '%s', was\n%s", target, status, part, answer);
    }
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
