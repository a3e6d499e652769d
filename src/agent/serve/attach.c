// SPDX-License-Identifier: Apache-2.0
// pods/attach: streams the output of a running container, from now on, out of its log, and writes
// to its standard input if it has one. Clients cannot slow the container down, and it keeps running
// when they leave.
#include "agent/serve/attach.h"

#include "agent/serve/log.h"
#include "agent/serve/stream_session.h"
#include "agent/serve/target.h"
#include "net/node_api.h"
#include "net/query.h"

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { READ_BYTES = 32 << 10 };

struct pod_attach {
    struct stream_session session;
    struct host *host;
    bool begun, over;
    bool once; /* stdinOnce: close the input when this client leaves */
    uint64_t container;
    struct pod_log *log;
    int notify; /* inotify: the log has changed */
    struct net_watch *watch;
};

static struct pod_attach *pod_attach_of(struct stream_session *s)
{
    return (struct pod_attach *)s;
}

static void pod_attach_free(struct stream_session *s)
{
    struct pod_attach *x = pod_attach_of(s);
    struct runtime *r = x->host->o.runtime;

    stdin_pipe_fini(&s->in);
    if (s->opened && stream_session_wants(s, CHANNEL_STDIN) && x->once) {
        r->ops->tell(r, x->container, RUNTIME_IN_ENDS, 0);
    }
    stream_session_fini(s);
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

static void send_if_wanted(struct pod_attach *x, enum channel to, const struct hk_buf *text)
{
    if (stream_session_wants(&x->session, to) && text->len > 0) {
        channels_send(&x->session.channels, to, hk_buf_str(text));
    }
}

static void pod_attach_pump(struct pod_attach *x)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0}, err = {0};
    bool lives = true;

    while (x->begun && !x->over && lives && channels_room(&x->session.channels)) {
        hk_buf_clear(&out);
        hk_buf_clear(&err);
        lives = pod_log_read(x->log, &out, &err, READ_BYTES);
        send_if_wanted(x, CHANNEL_STDOUT, &out);
        send_if_wanted(x, CHANNEL_STDERR, &err);
        if (lives && out.len + err.len == 0) {
            return;
        }
    }
    if (!lives) {
        x->over = true;
        stream_session_end(&x->session, HK_STR("{\"metadata\":{},\"status\":\"Success\"}"));
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
    const char *path = pod_log_path(c, c->attempt, &x->host->mem);
    const char *dir = hk_arena_strndup(&x->host->mem, path, (size_t)(strrchr(path, '/') - path));

    x->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (x->notify >= 0 && inotify_add_watch(x->notify, dir, IN_MODIFY) >= 0) {
        x->watch = net_watch_add(x->host->o.loop, x->notify, EPOLLIN, on_notify, x);
    }
}

/* ---- input ---- */

static void pod_attach_on_input_end(struct stream_session *s)
{
    struct pod_attach *x = pod_attach_of(s);
    struct runtime *r = x->host->o.runtime;

    stdin_pipe_end(&s->in);
    if (x->once) {
        r->ops->tell(r, x->container, RUNTIME_IN_ENDS, 0);
    }
}

static void pod_attach_on_size(struct stream_session *s, uint16_t columns, uint16_t rows)
{
    struct pod_attach *x = pod_attach_of(s);
    struct runtime *r = x->host->o.runtime;

    r->ops->tell(r, x->container, RUNTIME_RESIZE, (int)((uint32_t)columns << 16 | rows));
}

/* ---- the session ---- */

static void pod_attach_on_room(struct stream_session *s)
{
    pod_attach_pump(pod_attach_of(s));
}

static void pod_attach_on_begun(struct stream_session *s)
{
    struct pod_attach *x = pod_attach_of(s);

    x->begun = true;
    pod_attach_pump(x);
}

static const struct stream_session_ops pod_attach_ops = {.begun = pod_attach_on_begun,
                                                         .room = pod_attach_on_room,
                                                         .input_end = pod_attach_on_input_end,
                                                         .size = pod_attach_on_size,
                                                         .gone = pod_attach_free,
                                                         .free = pod_attach_free};

/* ---- the request ---- */

static int open_input(struct pod_attach *x, const struct container *c, struct hk_err *err)
{
    struct runtime *r = x->host->o.runtime;
    int fd, rc;

    if (!stream_session_wants(&x->session, CHANNEL_STDIN)) {
        return 0;
    }
    if (!json_bool(json_get(c->spec, "stdin"), false)) {
        return hk_fail(err, HK_EINVAL,
                       "container %.*s was not given a standard input (stdin: true)",
                       HK_FMT(c->name));
    }
    rc = r->ops->open_in(r, c->id, &fd, err);
    if (rc < 0) {
        return rc;
    }
    stream_session_open_input(&x->session, fd);
    return 0;
}

static int open_attach(struct pod_attach *x, const struct node_call *call, struct hk_err *err)
{
    struct serve *s = x->session.serve;
    struct runtime *r = x->host->o.runtime;
    struct container *c;
    struct query q;
    int rc = query_parse(call->query, &x->host->mem, &q, err);

    if (rc < 0) {
        return rc;
    }
    rc = serve_find_running(s, call, &q, &c, err);
    if (rc < 0) {
        return rc;
    }
    if (!r->ops->open_in || !c->pod->dir) {
        return hk_fail(err, HK_EUNSUP, "this node does not offer attach of pods");
    }
    x->container = c->id;
    x->session.wants = serve_wants(call, &q);
    x->session.tty = json_bool(json_get(c->spec, "tty"), false);
    x->once = json_bool(json_get(c->spec, "stdinOnce"), false);
    rc = open_input(x, c, err);
    if (rc < 0) {
        return rc;
    }
    x->log = pod_log_attach(s, c, on_news, x);
    watch_log(x, c);
    return 0;
}

int pod_attach_serve(struct serve *s, const struct node_call *call, struct hk_err *err)
{
    struct pod_attach *x = hk_zalloc(sizeof(*x));
    int rc;

    x->host = s->host;
    x->notify = -1;
    stream_session_init(&x->session, &pod_attach_ops, s, call->http);
    rc = open_attach(x, call, err);
    if (rc == 0) {
        rc = stream_session_accept(&x->session, err);
    }
    if (rc < 0) {
        pod_attach_free(&x->session);
    }
    return rc;
}
