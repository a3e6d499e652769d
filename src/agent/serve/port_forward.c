// SPDX-License-Identifier: Apache-2.0
// A client that forwards ports of a pod, over one connection (forward_wire.h) that carries many. For
// each connection to the pod:
//
//   WAITING --data and error stream are open--> DIALLING --> OPEN --the program closes--> LEFT
//      '-- 30 s --> over                           '--nothing listens--> over              |
//                                                                     over <--client ends--'
//
// Kubernetes connects to localhost in the pod's network. Here all pods share the machine's network:
// the connection goes to the socket that a process of this pod listens on, at the pod's own address
// or on loopback, and never to other programs of the machine.
#include "agent/serve/port_forward.h"

#include "agent/serve/forward_wire.h"
#include "agent/serve/target.h"
#include "net/dial.h"
#include "net/node_api.h"
#include "net/query.h"

#include <ctype.h>
#include <errno.h>
#include <sys/epoll.h>

enum {
    READ_BYTES = 32 << 10,
    WAITING_BYTES = 128 << 10,   /* limit for one program that does not read */
    ALL_WAITING_BYTES = 1 << 20, /* and for all of a client */
    FORWARDS_MAX = 512,          /* connections of one client */
    NODE_FORWARDS_MAX = 2048,    /* and of all clients */
    CLIENTS_MAX = 256,
    PORTS_MAX = 64, /* that a request with channels may name */
};
#define PAIR_NS (30 * SECOND_NS) /* for the client to open the second stream */

/* A connection to the pod. */
struct forward {
    struct port_forward *client;
    uint32_t data, error; /* streams; 0: not open yet */
    char *request;        /* the id that both streams name; NULL: channels */
    uint16_t port;
    int64_t patience_ns;   /* when to give up waiting for the second stream; 0: both are there */
    bool due;              /* to be connected by the dialler */
    struct net_dial *dial; /* NULL: not begun, or closed */
    bool open;             /* connected */
    bool input_ended;      /* the client sends no more */
    bool output_ended;     /* both streams have ended for the client */
    struct hk_buf waiting; /* from the client, for the program: [at, waiting.len) */
    size_t at;
};

/* A socket of the pod that was found before. */
struct forward_listener {
    uint16_t port;
    struct runtime_listener at;
};

struct port_forward {
    struct serve *serve;
    struct http_request *http; /* valid until opened; then the wire owns it */
    bool opened, paused;
    bool ending; /* the pod is over: close the connection after the last output */
    struct forward_wire wire;
    char *uid, *pod; /* pod: its name */
    HK_VEC(struct forward *) all;
    HK_VEC(uint16_t) ports; /* of channels */
    HK_VEC(struct forward_listener) known;
    struct net_timer *timer;   /* for patience_ns */
    bool timed;                /* it is set */
    struct net_timer *dialler; /* connects those that are due */
};

/* ---- ends ---- */

static size_t forward_waiting_bytes(const struct forward *f)
{
    return f->waiting.len - f->at;
}

static void forward_free(struct forward *f)
{
    net_dial_free(f->dial);
    hk_buf_fini(&f->waiting);
    hk_free(f->request);
    hk_free(f);
}

static void forward_remove(struct forward *f)
{
    struct port_forward *c = f->client;

    for (uint32_t k = 0; k < c->all.len; k++) {
        if (c->all.at[k] == f) {
            hk_vec_swap_remove(&c->all, k);
            break;
        }
    }
    c->serve->nforward--;
    forward_free(f);
    if ((c->ending || forward_wire_has_channels(&c->wire)) && c->all.len == 0) {
        forward_wire_close(&c->wire, WS_CLOSE_NORMAL, "");
    }
}

/* Ends both streams, the error stream with a message unless it is "". */
static void forward_end_output(struct forward *f, const char *message)
{
    struct forward_wire *w = &f->client->wire;

    if (!f->output_ended) {
        f->output_ended = true;
        forward_wire_send(w, f->error, hk_str(message), true);
        forward_wire_send(w, f->data, HK_STR(""), true);
    }
}

static void forward_drop_dial(struct forward *f)
{
    net_dial_free(f->dial);
    f->dial = NULL;
    hk_buf_clear(&f->waiting);
    f->at = 0;
}

static bool port_forward_overfull(const struct port_forward *c, size_t one, size_t all)
{
    size_t sum = 0, most = 0;

    for (uint32_t k = 0; k < c->all.len; k++) {
        const size_t n = forward_waiting_bytes(c->all.at[k]);
        sum += n;
        most = HK_MAX(most, n);
    }
    return most > one || sum > all;
}

/* SPDY as Kubernetes speaks it has no flow control: a program that does not read makes the whole
 * client wait. */
static void port_forward_update_pause(struct port_forward *c)
{
    if (!c->paused && port_forward_overfull(c, WAITING_BYTES, ALL_WAITING_BYTES)) {
        c->paused = true;
        forward_wire_pause(&c->wire);
    } else if (c->paused && !port_forward_overfull(c, WAITING_BYTES / 2, ALL_WAITING_BYTES / 2)) {
        c->paused = false;
        forward_wire_resume(&c->wire);
    }
}

/* Nothing is left to do in one direction, or both. */
static void forward_settle(struct forward *f)
{
    struct port_forward *c = f->client;

    if (f->output_ended && (!f->dial || (f->input_ended && forward_waiting_bytes(f) == 0))) {
        forward_remove(f);
    }
    port_forward_update_pause(c);
}

static void forward_fail(struct forward *f, const char *why)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct port_forward *c = f->client;

    hk_buf_addf(&text, "error forwarding port %u to pod %s, uid %s: %s", f->port, c->pod, c->uid,
                why);
    forward_drop_dial(f);
    forward_end_output(f, text.data);
    forward_settle(f);
}

/* ---- the program ---- */

/* Writes what waits; false: the program reads no more. */
static bool forward_write_program(struct forward *f)
{
    while (forward_waiting_bytes(f) > 0) {
        const ssize_t n =
            net_dial_write(f->dial, f->waiting.data + f->at, forward_waiting_bytes(f));
        if (n < 0 && errno != EINTR) {
            return errno == EAGAIN;
        }
        f->at += n > 0 ? (size_t)n : 0;
    }
    hk_buf_clear(&f->waiting);
    f->at = 0;
    if (f->input_ended) {
        net_dial_end_writing(f->dial);
    }
    return true;
}

static void forward_push_input(struct forward *f)
{
    if (!forward_write_program(f)) {
        f->input_ended = true;
        hk_buf_clear(&f->waiting);
        f->at = 0;
    }
}

/* Reads once, so that other connections get their turn. */
static void forward_pull_output(struct forward *f)
{
    char part[READ_BYTES];
    const ssize_t n = net_dial_read(f->dial, part, sizeof(part));

    if (n > 0) {
        forward_wire_send(&f->client->wire, f->data, (struct hk_str){part, (size_t)n}, false);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        forward_end_output(f, "");
        if (n < 0 || forward_wire_has_channels(&f->client->wire)) {
            forward_drop_dial(f); /* channels cannot end in one direction only */
        }
    }
}

static void forward_watch(struct forward *f)
{
    const bool reads = !f->output_ended && forward_wire_room(&f->client->wire);
    const bool writes = forward_waiting_bytes(f) > 0;

    if (reads || writes) {
        net_dial_want(f->dial, (reads ? EPOLLIN : 0) | (writes ? EPOLLOUT : 0));
    } else {
        net_dial_rest(f->dial); /* it would report a hangup again and again */
    }
}

static void forward_on_ready(void *ctx, uint32_t events)
{
    struct forward *f = ctx;

    if (events & (EPOLLOUT | EPOLLERR) && forward_waiting_bytes(f) > 0) {
        forward_push_input(f);
    }
    if (!f->output_ended && forward_wire_room(&f->client->wire)) {
        forward_pull_output(f);
    }
    if (f->dial) {
        forward_watch(f);
    }
    forward_settle(f);
}

static void forward_dial_message(const struct forward_listener *to, const char *why,
                                 struct hk_buf *out)
{
    const bool v6 = strchr(to->at.address, ':') != NULL;

    hk_buf_addf(out, "dial tcp%c %s%s%s:%u: connect: %c%s", v6 ? '6' : '4', v6 ? "[" : "",
                to->at.address, v6 ? "]" : "", to->port, tolower((unsigned char)why[0]), why + 1);
}

static struct forward_listener *port_forward_known(struct port_forward *c, uint16_t port)
{
    for (uint32_t k = 0; k < c->known.len; k++) {
        if (c->known.at[k].port == port) {
            return &c->known.at[k];
        }
    }
    if (c->known.len == PORTS_MAX) {
        c->known.at[0] = (struct forward_listener){.port = port};
        return &c->known.at[0];
    }
    hk_vec_push(&c->known, (struct forward_listener){.port = port});
    return &c->known.at[c->known.len - 1];
}

static void forward_on_opened(void *ctx, const char *why)
{
    struct forward *f = ctx;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (why) {
        forward_dial_message(port_forward_known(f->client, f->port), why, &text);
        forward_fail(f, text.data);
        return;
    }
    f->open = true;
    forward_push_input(f);
    forward_watch(f);
    forward_settle(f);
}

/* The pod, while it runs. */
static struct pod *port_forward_pod(const struct port_forward *c)
{
    struct pod *p = pods_find(c->serve->pods, hk_str(c->uid));

    return p && !p->gone && p->stage != POD_ENDED ? p : NULL;
}

static int forward_find(struct forward *f, struct forward_listener **ret, struct hk_err *err)
{
    struct port_forward *c = f->client;
    struct runtime *r = c->serve->host->o.runtime;
    const struct pod *p = port_forward_pod(c);

    if (!p) {
        return hk_fail(err, HK_ENOTFOUND, "pod %s is not running", c->pod);
    }
    if (c->serve->nforward > NODE_FORWARDS_MAX) {
        return hk_fail(err, HK_EBUSY, "at most %d connections are forwarded by a node",
                       NODE_FORWARDS_MAX);
    }
    *ret = port_forward_known(c, f->port);
    return r->ops->find_listener(r, c->uid, p->address[0] ? p->address : NULL, f->port, &(*ret)->at,
                                 err);
}

/* Names the address where Kubernetes would have tried. */
static void forward_refuse(struct forward *f)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct pod *p = port_forward_pod(f->client);
    struct forward_listener at = {.port = f->port};

    snprintf(at.at.address, sizeof(at.at.address), "%s",
             p && p->address[0] ? p->address : "127.0.0.1");
    forward_dial_message(&at, "connection refused (no process of the pod listens on this port)",
                         &text);
    forward_fail(f, text.data);
}

static void forward_dial(struct forward *f)
{
    struct forward_listener *to;
    struct hk_err err = {0};
    const int rc = forward_find(f, &to, &err);

    if (rc == -HK_ENOTFOUND && port_forward_pod(f->client)) {
        forward_refuse(f);
        return;
    }
    if (rc < 0) {
        forward_fail(f, err.text);
        return;
    }
    f->dial = net_dial_new(f->client->serve->host->o.loop,
                           &(struct net_dial_opts){.host = hk_str(to->at.address),
                                                   .port = f->port,
                                                   .opened = forward_on_opened,
                                                   .ready = forward_on_ready,
                                                   .ctx = f});
}

/* To find a socket can mean to look at all processes: do it once per turn of the loop, so that a
 * client that asks for many does not hold up the server. */
static void port_forward_on_dialler(void *ctx)
{
    struct port_forward *c = ctx;
    struct forward *f = NULL;
    uint32_t ndue = 0;

    for (uint32_t k = c->all.len; k-- > 0;) {
        f = c->all.at[k]->due ? c->all.at[k] : f;
        ndue += c->all.at[k]->due;
    }
    if (ndue > 1) {
        net_timer_at(c->dialler, net_loop_now_ns(c->serve->host->o.loop));
    }
    if (f) {
        f->due = false;
        forward_dial(f);
    }
}

static void forward_dial_soon(struct forward *f)
{
    const struct port_forward *c = f->client;

    f->due = true;
    f->patience_ns = 0;
    net_timer_at(c->dialler, net_loop_now_ns(c->serve->host->o.loop));
}

static struct forward *forward_new(struct port_forward *c, uint16_t port)
{
    struct forward *f = hk_zalloc(sizeof(*f));

    *f = (struct forward){.client = c, .port = port};
    c->serve->nforward++;
    hk_vec_push(&c->all, f);
    return f;
}

/* ---- streams of SPDY ---- */

static bool port_forward_is_port(struct hk_str text, uint16_t *ret)
{
    int64_t n;

    if (!hk_str_int(text, &n) || n < 1 || n > UINT16_MAX) {
        return false;
    }
    *ret = (uint16_t)n;
    return true;
}

/* Clients that name no request number their streams: the data stream follows the error stream. */
static void forward_request_id(const struct forward_wire *w, uint32_t stream, bool error,
                               struct hk_buf *out)
{
    const struct hk_str id = forward_wire_header(w, "requestid");

    if (id.n > 0) {
        hk_buf_addstr(out, id);
    } else {
        hk_buf_addf(out, "%u", error ? stream : stream - 2);
    }
}

static struct forward *forward_of_request(const struct port_forward *c, const char *request)
{
    for (uint32_t k = 0; k < c->all.len; k++) {
        if (strcmp(c->all.at[k]->request, request) == 0) {
            return c->all.at[k];
        }
    }
    return NULL;
}

static struct forward *forward_of_stream(const struct port_forward *c, uint32_t stream)
{
    for (uint32_t k = 0; k < c->all.len; k++) {
        if (c->all.at[k]->data == stream || c->all.at[k]->error == stream) {
            return c->all.at[k];
        }
    }
    return NULL;
}

/* The connection that the stream belongs to; NULL: refuse the stream. */
static struct forward *forward_for_stream(struct port_forward *c, uint32_t stream, bool error,
                                          uint16_t port)
{
    HK_AUTO(hk_buf_fini) struct hk_buf request = {0};
    struct forward *f;

    forward_request_id(&c->wire, stream, error, &request);
    f = forward_of_request(c, request.data);
    if (f) {
        return (error ? f->error : f->data) == 0 ? f : NULL;
    }
    if (c->all.len >= FORWARDS_MAX) {
        return NULL;
    }
    f = forward_new(c, port);
    f->request = hk_strdup(request.data);
    f->patience_ns = net_loop_now_ns(c->serve->host->o.loop) + PAIR_NS;
    if (!c->timed) {
        c->timed = true;
        net_timer_at(c->timer, f->patience_ns);
    }
    return f;
}

static void port_forward_on_stream(void *ctx, uint32_t stream)
{
    struct port_forward *c = ctx;
    const struct hk_str type = forward_wire_header(&c->wire, "streamtype");
    const bool error = hk_str_is(type, "error");
    struct forward *f = NULL;
    uint16_t port = 0;

    if ((error || hk_str_is(type, "data")) && !forward_of_stream(c, stream) &&
        port_forward_is_port(forward_wire_header(&c->wire, "port"), &port)) {
        f = forward_for_stream(c, stream, error, port);
    }
    if (!f) {
        forward_wire_cancel(&c->wire, stream);
        return;
    }
    *(error ? &f->error : &f->data) = stream;
    f->port = error ? f->port : port;
    if (f->error != 0 && f->data != 0) {
        forward_dial_soon(f);
    }
}

/* Gives up on connections whose second stream never came. */
static void port_forward_on_timer(void *ctx)
{
    struct port_forward *c = ctx;
    const int64_t now_ns = net_loop_now_ns(c->serve->host->o.loop);
    int64_t next_ns = INT64_MAX;

    for (uint32_t k = c->all.len; k-- > 0;) {
        struct forward *f = c->all.at[k];

        if (f->patience_ns != 0 && f->patience_ns <= now_ns) {
            forward_wire_cancel(&c->wire, f->data ? f->data : f->error);
            forward_remove(f);
        } else if (f->patience_ns != 0) {
            next_ns = HK_MIN(next_ns, f->patience_ns);
        }
    }
    c->timed = next_ns != INT64_MAX;
    if (c->timed) {
        net_timer_at(c->timer, next_ns);
    }
}

/* ---- the client ---- */

static void port_forward_on_data(void *ctx, uint32_t stream, struct hk_str bytes)
{
    struct port_forward *c = ctx;
    struct forward *f = forward_of_stream(c, stream);

    /* Clients write nothing to the error stream, and may write after the end of a connection. */
    if (!f || f->data != stream || f->input_ended) {
        return;
    }
    hk_buf_addstr(&f->waiting, bytes);
    if (f->open && f->dial) {
        forward_push_input(f);
        forward_watch(f);
    }
    forward_settle(f);
}

static void port_forward_on_ended(void *ctx, uint32_t stream, bool cancelled)
{
    struct port_forward *c = ctx;
    struct forward *f = forward_of_stream(c, stream);

    if (!f || f->data != stream) {
        return; /* clients end the error stream at once */
    }
    if (cancelled) {
        forward_drop_dial(f);
        forward_end_output(f, "");
    }
    f->input_ended = true;
    if (f->open && f->dial) {
        forward_push_input(f);
    }
    forward_settle(f);
}

static void port_forward_on_room(void *ctx)
{
    struct port_forward *c = ctx;

    for (uint32_t k = 0; k < c->all.len; k++) {
        if (c->all.at[k]->open && c->all.at[k]->dial) {
            forward_watch(c->all.at[k]);
        }
    }
}

static void port_forward_free(struct port_forward *c)
{
    struct serve *s = c->serve;

    for (uint32_t k = 0; k < s->forwards.len; k++) {
        if (s->forwards.at[k] == c) {
            hk_vec_swap_remove(&s->forwards, k);
            break;
        }
    }
    for (uint32_t k = 0; k < c->all.len; k++) {
        s->nforward--;
        forward_free(c->all.at[k]);
    }
    hk_vec_fini(&c->all);
    hk_vec_fini(&c->ports);
    hk_vec_fini(&c->known);
    forward_wire_fini(&c->wire);
    net_timer_free(c->timer);
    net_timer_free(c->dialler);
    hk_free(c->uid);
    hk_free(c->pod);
    hk_free(c);
}

static void port_forward_on_closed(void *ctx)
{
    port_forward_free(ctx);
}

/* ---- the tunnel ---- */

/* The first message of each channel is its port, in two bytes, the lower one first. */
static void port_forward_open_channels(struct port_forward *c)
{
    for (uint32_t k = 0; k < c->ports.len; k++) {
        const uint16_t port = c->ports.at[k];
        const char bytes[] = {(char)(port & 0xff), (char)(port >> 8)};
        struct forward *f = forward_new(c, port);

        f->data = 2 * k + 1;
        f->error = 2 * k + 2;
        forward_wire_send(&c->wire, f->data, (struct hk_str){bytes, sizeof(bytes)}, false);
        forward_wire_send(&c->wire, f->error, (struct hk_str){bytes, sizeof(bytes)}, false);
    }
    for (uint32_t k = 0; k < c->all.len; k++) {
        forward_dial_soon(c->all.at[k]);
    }
}

static void port_forward_on_opened(void *ctx, struct hk_str early)
{
    static const struct forward_wire_ops ops = {.stream = port_forward_on_stream,
                                                .data = port_forward_on_data,
                                                .ended = port_forward_on_ended,
                                                .room = port_forward_on_room,
                                                .closed = port_forward_on_closed};
    struct port_forward *c = ctx;

    c->opened = true;
    forward_wire_open(&c->wire, c->serve->host->o.loop, c->http, early, &ops, c);
    if (forward_wire_has_channels(&c->wire)) {
        port_forward_open_channels(c);
    }
}

static void port_forward_on_ready(void *ctx, uint32_t events)
{
    struct port_forward *c = ctx;

    forward_wire_ready(&c->wire, events);
}

static void port_forward_on_cut(void *ctx)
{
    struct port_forward *c = ctx;

    c->wire.http = NULL;
    port_forward_free(c);
}

/* ---- the request ---- */

/* Adds the ports of one parameter, separated by commas. */
static int port_forward_add_ports(struct port_forward *c, const char *key, struct hk_str value,
                                  struct hk_err *err)
{
    struct hk_str one;
    uint16_t port;

    if (value.n == 0) {
        return hk_fail(err, HK_EINVAL, "query parameter \"%s\" cannot be empty", key);
    }
    while (hk_str_cut(&value, ',', &one)) {
        if (!port_forward_is_port(one, &port)) {
            return hk_fail(err, HK_EINVAL, "unable to parse \"%.*s\" as a port", HK_FMT(one));
        }
        if (c->ports.len == PORTS_MAX) {
            return hk_fail(err, HK_EINVAL, "at most %d ports can be forwarded", PORTS_MAX);
        }
        hk_vec_push(&c->ports, port);
    }
    return 0;
}

static int port_forward_read_ports(struct port_forward *c, const struct node_call *call,
                                   struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const char *key = call->kubelet ? "port" : "ports";
    struct query q;
    int rc = query_parse(call->query, &mem, &q, err);

    for (uint32_t k = 0; rc == 0 && k < q.len; k++) {
        if (hk_str_is(q.at[k].key, key)) {
            rc = port_forward_add_ports(c, key, q.at[k].value, err);
        }
    }
    if (rc == 0 && c->ports.len == 0) {
        return hk_fail(err, HK_EINVAL, "query parameter \"%s\" is required", key);
    }
    return rc;
}

static int port_forward_find_pod(struct port_forward *c, const struct node_call *call,
                                 struct hk_err *err)
{
    const struct pod *p = pods_find_named(c->serve->pods, call->ns, call->pod);

    if (!p || p->gone) {
        return hk_fail(err, HK_ENOTFOUND, "pods \"%.*s\" not found on this node",
                       HK_FMT(call->pod));
    }
    c->uid = hk_strndup(p->uid.s, p->uid.n);
    if (!port_forward_pod(c)) {
        return hk_fail(err, HK_EINVAL, "pod %s is not running", c->pod);
    }
    return 0;
}

static int port_forward_check(struct port_forward *c, const struct node_call *call,
                              struct hk_err *err)
{
    int rc;

    if (!c->serve->host->o.runtime->ops->find_listener) {
        return hk_fail(err, HK_EUNSUP, "this node does not offer portforward of pods");
    }
    if (c->serve->forwards.len > CLIENTS_MAX) {
        return hk_fail(err, HK_EBUSY, "at most %d clients can forward ports of a node",
                       CLIENTS_MAX);
    }
    rc = port_forward_find_pod(c, call, err);
    if (rc < 0) {
        return rc;
    }
    rc = forward_wire_offer(&c->wire, call->http, err);
    if (rc < 0) {
        return rc;
    }
    return forward_wire_has_channels(&c->wire) ? port_forward_read_ports(c, call, err) : 0;
}

int port_forward_serve(struct serve *s, const struct node_call *call, struct hk_err *err)
{
    struct port_forward *c = hk_zalloc(sizeof(*c));
    int rc;

    *c = (struct port_forward){
        .serve = s, .http = call->http, .pod = hk_strndup(call->pod.s, call->pod.n)};
    c->timer = net_timer_new(s->host->o.loop, port_forward_on_timer, c);
    c->dialler = net_timer_new(s->host->o.loop, port_forward_on_dialler, c);
    hk_vec_push(&s->forwards, c);
    rc = port_forward_check(c, call, err);
    if (rc < 0) {
        port_forward_free(c);
        return rc;
    }
    forward_wire_accept(&c->wire, call->http,
                        &(struct http_tunnel){.opened = port_forward_on_opened,
                                              .ready = port_forward_on_ready,
                                              .cut = port_forward_on_cut,
                                              .ctx = c});
    return 0;
}

/* Programs of a pod that is over have ended; what they wrote last may still be on its way. */
static void port_forward_end(struct port_forward *c)
{
    c->ending = true;
    if (c->all.len == 0) {
        forward_wire_close(&c->wire, WS_CLOSE_NORMAL, "");
        return;
    }
    for (uint32_t k = c->all.len; k-- > 0;) {
        struct forward *f = c->all.at[k];

        f->input_ended = true;
        if (f->output_ended || f->patience_ns != 0) {
            forward_remove(f);
        }
    }
}

void port_forward_tick(struct serve *s)
{
    for (uint32_t k = 0; k < s->forwards.len; k++) {
        struct port_forward *c = s->forwards.at[k];

        if (c->opened && !c->ending && !port_forward_pod(c)) {
            port_forward_end(c);
        }
    }
}

void port_forward_end_all(struct serve *s)
{
    while (s->forwards.len > 0) {
        struct port_forward *c = s->forwards.at[0];

        if (!c->opened) {
            http_tunnel_close(c->http);
        }
        port_forward_free(c);
    }
    hk_vec_fini(&s->forwards);
}
