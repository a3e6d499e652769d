// SPDX-License-Identifier: Apache-2.0
// pods/attach: streams the output of a running container, from now on, out of its log, and writes
// to its standard input if it has one. Clients cannot slow the container down, and it keeps running
// when they leave.
#include "agent/agent_priv.h"
#include "agent/stdin_pipe.h"

#include "net/node_api.h"
#include "net/query.h"

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { READ_BYTES = 32 << 10 };

struct pod_attach {
    struct agent *a;
    struct http_request *http; /* valid until opened; then the channels own it */
    bool opened, begun, over;
    bool wants_in, wants_out, wants_err, tty;
    bool once; /* stdinOnce: close the input when this client leaves */
    uint64_t container;
    struct channels channels;
    struct stdin_pipe in;
    struct pod_log *log;
    int notify; /* inotify: the log has changed */
    struct net_watch *watch;
};

static void attach_free(struct pod_attach *x)
{
    struct runtime *r = x->a->o.runtime;

    for (uint32_t k = 0; k < x->a->attached.len; k++) {
        if (x->a->attached.at[k] == x) {
            hk_vec_swap_remove(&x->a->attached, k);
            break;
        }
    }
    stdin_pipe_fini(&x->in);
    if (x->opened && x->wants_in && x->once) {
        r->ops->tell(r, x->container, RUNTIME_IN_ENDS, 0);
    }
    channels_fini(&x->channels);
    net_watch_del(x->watch);
    if (x->notify >= 0) {
        close(x->notify);
    }
    if (x->log) {
        pod_log_detach(x->log);
    }
    hk_free(x);
}

/* ---- output ---- */

static void send_if(struct pod_attach *x, bool wanted, enum channel to, const struct hk_buf *text)
{
    if (wanted && text->len > 0) {
        channels_send(&x->channels, to, hk_buf_str(text));
    }
}

static void pod_attach_pump(struct pod_attach *x)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0}, err = {0};
    bool lives = true;

    while (x->begun && !x->over && lives && channels_room(&x->channels)) {
        hk_buf_clear(&out);
        hk_buf_clear(&err);
        lives = pod_log_read(x->log, &out, &err, READ_BYTES);
        send_if(x, x->wants_out, CHANNEL_STDOUT, &out);
        send_if(x, x->wants_err, CHANNEL_STDERR, &err);
        if (lives && out.len + err.len == 0) {
            return;
        }
    }
    if (!lives) {
        x->over = true;
        channels_send(&x->channels, CHANNEL_ERROR,
                      HK_STR("{\"metadata\":{},\"status\":\"Success\"}"));
        channels_close(&x->channels, WS_CLOSE_NORMAL, "");
    }
}

static void on_news(void *ctx)
{
    pod_attach_pump(ctx);
}

static void on_notify(void *ctx, uint32_t events)
{
    struct pod_attach *x = ctx;
    char buf[4096];

    while (read(x->notify, buf, sizeof(buf)) > 0) {
    }
    pod_attach_pump(x);
}

/* Faster than pod_log_tick: the user types and expects an echo. */
static void watch_log(struct pod_attach *x, const struct container *c)
{
    const char *path = pod_log_path(c, c->attempt, &x->a->mem);
    const char *dir = hk_arena_strndup(&x->a->mem, path, (size_t)(strrchr(path, '/') - path));

    x->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (x->notify >= 0 && inotify_add_watch(x->notify, dir, IN_MODIFY) >= 0) {
        x->watch = net_watch_add(x->a->o.loop, x->notify, EPOLLIN, on_notify, x);
    }
}

/* ---- input ---- */

static void on_input(void *ctx, struct hk_str bytes)
{
    struct pod_attach *x = ctx;

    stdin_pipe_write(&x->in, bytes);
}

static void on_input_end(void *ctx)
{
    struct pod_attach *x = ctx;
    struct runtime *r = x->a->o.runtime;

    stdin_pipe_end(&x->in);
    if (x->once) {
        r->ops->tell(r, x->container, RUNTIME_IN_ENDS, 0);
    }
}

static void on_size(void *ctx, uint16_t columns, uint16_t rows)
{
    struct pod_attach *x = ctx;
    struct runtime *r = x->a->o.runtime;

    if (x->tty) {
        r->ops->tell(r, x->container, RUNTIME_RESIZE, (int)((uint32_t)columns << 16 | rows));
    }
}

/* ---- the connection ---- */

static void on_room(void *ctx)
{
    pod_attach_pump(ctx);
}

static void on_closed(void *ctx)
{
    attach_free(ctx);
}

static void on_cut(void *ctx)
{
    struct pod_attach *x = ctx;

    x->channels.http = NULL;
    attach_free(x);
}

static void pod_attach_on_ready(void *ctx, uint32_t events)
{
    struct pod_attach *x = ctx;

    channels_ready(&x->channels, events);
}

static void on_begun(void *ctx)
{
    struct pod_attach *x = ctx;

    x->begun = true;
    channels_send(&x->channels, CHANNEL_STDOUT, HK_STR("")); /* the connection is open */
    pod_attach_pump(x);
}

static void pod_attach_on_opened(void *ctx, struct hk_str early)
{
    static const struct channels_ops ops = {.begun = on_begun,
                                            .input = on_input,
                                            .input_end = on_input_end,
                                            .size = on_size,
                                            .room = on_room,
                                            .closed = on_closed};
    struct pod_attach *x = ctx;

    x->opened = true;
    channels_open(&x->channels, x->a->o.loop, x->http, early, &ops, x);
}

/* ---- the request ---- */

static int open_input(struct pod_attach *x, const struct container *c, struct hk_err *err)
{
    struct runtime *r = x->a->o.runtime;
    int fd, rc;

    if (!x->wants_in) {
        return 0;
    }
    if (!json_bool(json_get(c->spec, "stdin"), false)) {
        return hk_fail(err, HK_EINVAL,
                       "container %.*s was not given a standard input (stdin: true)",
                       HK_FMT(c->name));
    }
    rc = r->ops->open_in(r, c->id, &fd, err);
    if (rc == 0) {
        stdin_pipe_open(&x->in, x->a->o.loop, &x->channels, fd);
    }
    return rc;
}

static int open_attach(struct pod_attach *x, const struct node_call *call, unsigned *ret_wants,
                       struct hk_err *err)
{
    struct runtime *r = x->a->o.runtime;
    struct container *c;
    struct query q;
    int rc = query_parse(call->query, &x->a->mem, &q, err);

    rc = rc < 0 ? rc : serve_find_running(x->a, call, &q, &c, err);
    if (rc < 0) {
        return rc;
    }
    if (!r->ops->open_in || !c->pod->dir) {
        return hk_fail(err, HK_EUNSUP, "this node does not offer attach of pods");
    }
    x->container = c->id;
    *ret_wants = serve_wants(call, &q);
    x->wants_in = *ret_wants & 1u << CHANNEL_STDIN;
    x->wants_out = *ret_wants & 1u << CHANNEL_STDOUT;
    x->wants_err = *ret_wants & 1u << CHANNEL_STDERR;
    x->tty = json_bool(json_get(c->spec, "tty"), false);
    x->once = json_bool(json_get(c->spec, "stdinOnce"), false);
    rc = open_input(x, c, err);
    if (rc == 0) {
        x->log = pod_log_attach(c, on_news, x);
        watch_log(x, c);
    }
    return rc;
}

int pod_attach_serve(struct agent *a, const struct node_call *call, struct hk_err *err)
{
    struct pod_attach *x = hk_zalloc(sizeof(*x));
    unsigned wants = 0;

    *x = (struct pod_attach){.a = a, .http = call->http, .in = {.fd = -1}, .notify = -1};
    hk_vec_push(&a->attached, x);
    int rc = open_attach(x, call, &wants, err);
    rc = rc < 0 ? rc : channels_offer(&x->channels, call->http, wants, err);
    if (rc < 0) {
        attach_free(x);
        return rc;
    }
    channels_accept(
        &x->channels, call->http,
        &(struct http_tunnel){
            .opened = pod_attach_on_opened, .ready = pod_attach_on_ready, .cut = on_cut, .ctx = x});
    return 0;
}

void pod_attach_fini(struct agent *a)
{
    while (a->attached.len > 0) {
        struct pod_attach *x = a->attached.at[0];
        if (!x->opened) {
            http_tunnel_close(x->http);
        }
        attach_free(x);
    }
    hk_vec_fini(&a->attached);
}
