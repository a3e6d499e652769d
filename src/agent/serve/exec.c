// SPDX-License-Identifier: Apache-2.0
// pods/exec: runs a command in a container and connects its streams (pipes or a terminal) to the
// channels of a connection. Everything runs on the loop; a slow side makes the other one wait.
//
//     WAITING --client listens--> RUNNING --end, output read--> CLOSING --client closes--> gone
//                                    '--client hangs up--> LEFT --command ends--> gone
#include "agent/serve/exec.h"

#include "agent/serve/stream_session.h"
#include "agent/serve/target.h"
#include "net/node_api.h"
#include "net/query.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { READ_BYTES = 32 << 10 };
#define GRACE_NS (5 * SECOND_NS) /* between SIGTERM or SIGHUP and SIGKILL */

enum stage { WAITING, RUNNING, CLOSING, LEFT };

/* stdout or stderr of the command. */
struct output {
    struct pod_exec *x;
    enum channel channel;
    int fd; /* -1: none, or at its end */
    struct net_watch *watch;
};

struct pod_exec {
    struct stream_session session;
    struct host *host;
    struct hk_arena mem;
    const char *const *argv;
    uint64_t container, id; /* ids in the runtime; id 0: no command runs */
    uint8_t stage;
    bool ended;
    struct net_timer *timer;
    struct output out[2];
    struct hk_buf status; /* the exit status, for the client */
};

static struct pod_exec *pod_exec_of(struct stream_session *s)
{
    return (struct pod_exec *)s;
}

/* ---- descriptors ---- */

static void close_output(struct output *o)
{
    net_watch_del(o->watch);
    o->watch = NULL;
    if (o->fd >= 0) {
        close(o->fd);
    }
    o->fd = -1;
}

static void close_streams(struct pod_exec *x)
{
    stdin_pipe_fini(&x->session.in);
    close_output(&x->out[0]);
    close_output(&x->out[1]);
}

static void pod_exec_free(struct pod_exec *x)
{
    close_streams(x);
    stream_session_fini(&x->session);
    net_timer_free(x->timer);
    hk_buf_fini(&x->status);
    hk_arena_fini(&x->mem);
    hk_free(x);
}

/* ---- the end ---- */

static void pod_exec_write_status(int code, struct hk_str message, struct hk_buf *out)
{
    if (code == 0) {
        hk_buf_adds(out, "{\"metadata\":{},\"status\":\"Success\"}");
        return;
    }
    hk_buf_adds(out, "{\"metadata\":{},\"status\":\"Failure\",\"message\":");
    json_write_str(message, out);
    hk_buf_addf(out,
                ",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\","
                "\"message\":\"%d\"}]}}",
                code);
}

/* Grace period is over: send SIGKILL. */
static void pod_exec_on_kill_timer(void *ctx)
{
    struct pod_exec *x = ctx;
    struct runtime *r = x->host->o.runtime;

    r->ops->kill(r, x->id, SIGKILL);
}

static void pod_exec_close(struct pod_exec *x)
{
    close_streams(x);
    stream_session_end(&x->session, hk_buf_str(&x->status));
    x->stage = CLOSING;
}

/* The client is gone: end the command. */
static void pod_exec_on_gone(struct stream_session *s)
{
    struct pod_exec *x = pod_exec_of(s);
    struct runtime *r = x->host->o.runtime;

    channels_fini(&s->channels);
    if (x->stage != RUNNING || x->ended) {
        pod_exec_free(x);
        return;
    }
    x->stage = LEFT;
    close_streams(x);
    r->ops->kill(r, x->id, s->tty ? SIGHUP : SIGTERM);
    net_timer_at(x->timer, net_loop_now_ns(x->host->o.loop) + GRACE_NS);
}

/* ---- output ---- */

/* Returns false if no output is available now. */
static bool read_output(struct output *o)
{
    char buf[READ_BYTES];
    ssize_t n;

    do {
        n = read(o->fd, buf, sizeof(buf));
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        channels_send(&o->x->session.channels, o->channel, (struct hk_str){buf, (size_t)n});
        return true;
    }
    if (n == 0 || errno != EAGAIN) {
        close_output(o); /* EIO: all users of the terminal have closed it */
    }
    return false;
}

static void on_output(void *ctx, uint32_t events);

/* Returns true when all available output is read. While the peer accepts nothing there is no watch,
 * because a watch always reports hangups. */
static bool pump_output(struct output *o)
{
    bool room = true;

    while (o->fd >= 0 && (room = channels_room(&o->x->session.channels)) && read_output(o)) {
    }
    if (o->fd < 0) {
        return true;
    }
    if (!room) {
        net_watch_del(o->watch);
        o->watch = NULL;
    } else if (!o->watch) {
        o->watch = net_watch_add(o->x->host->o.loop, o->fd, EPOLLIN, on_output, o);
    }
    return room;
}

static void pod_exec_pump(struct pod_exec *x)
{
    if (x->stage != RUNNING) {
        return;
    }
    const bool all = pump_output(&x->out[0]);
    if (pump_output(&x->out[1]) && all && x->ended) {
        pod_exec_close(x);
    }
}

static void on_output(void *ctx, uint32_t events)
{
    struct output *o = ctx;

    pod_exec_pump(o->x);
}

static void pod_exec_on_room(struct stream_session *s)
{
    pod_exec_pump(pod_exec_of(s));
}

/* ---- input ---- */

/* On a terminal, end of input is a key (^D); a command in raw mode does not notice it. */
static void pod_exec_on_input_end(struct stream_session *s)
{
    static const char end_of_file = 4;

    if (s->tty) {
        stdin_pipe_write(&s->in, (struct hk_str){&end_of_file, 1});
    }
    stdin_pipe_end(&s->in);
}

static void pod_exec_on_size(struct stream_session *s, uint16_t columns, uint16_t rows)
{
    const struct pod_exec *x = pod_exec_of(s);

    if (x->out[0].fd >= 0) {
        ioctl(x->out[0].fd, TIOCSWINSZ, &(struct winsize){.ws_row = rows, .ws_col = columns});
    }
}

/* ---- starting ---- */

/* Both ends of one stream; ours does not block. */
struct ends {
    int ours, theirs;
};

static int open_pipe(bool in, struct ends *ret, struct hk_err *err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0) {
        return hk_fail(err, HK_EIO, "cannot make a pipe: %m");
    }
    *ret = (struct ends){fds[in], fds[!in]};
    fcntl(ret->ours, F_SETFL, O_NONBLOCK);
    return 0;
}

static int open_terminal(struct ends *ret, struct hk_err *err)
{
    const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    int locked = 0, peer = -1;

    if (master >= 0 && ioctl(master, TIOCSPTLCK, &locked) == 0) {
        peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    }
    if (peer < 0) {
        const int rc = hk_fail(err, HK_EIO, "cannot open a terminal: %m");
        if (master >= 0) {
            close(master);
        }
        return rc;
    }
    *ret = (struct ends){master, peer};
    return 0;
}

/* Opens the requested streams. */
static int open_streams(const struct pod_exec *x, struct ends ends[3], struct hk_err *err)
{
    static const enum channel channels[] = {CHANNEL_STDIN, CHANNEL_STDOUT, CHANNEL_STDERR};
    int rc = 0;

    if (x->session.tty) {
        rc = open_terminal(&ends[0], err);
        ends[1] = ends[2] = ends[0];
        return rc;
    }
    for (int k = 0; k < 3 && rc == 0; k++) {
        if (stream_session_wants(&x->session, channels[k])) {
            rc = open_pipe(k == 0, &ends[k], err);
        }
    }
    return rc;
}

static void close_ends(const struct pod_exec *x, const struct ends ends[3], bool ours)
{
    for (int k = 0; k < (x->session.tty ? 1 : 3); k++) {
        if (ends[k].theirs >= 0) {
            close(ends[k].theirs);
        }
        if (ours && ends[k].ours >= 0) {
            close(ends[k].ours);
        }
    }
}

static int run_command(struct pod_exec *x, struct hk_err *err)
{
    struct runtime *r = x->host->o.runtime;
    struct ends ends[3] = {{-1, -1}, {-1, -1}, {-1, -1}};
    int rc = open_streams(x, ends, err);

    if (rc == 0) {
        rc = r->ops->exec(r, x->container, x->argv, ends[0].theirs, ends[1].theirs, ends[2].theirs,
                          &x->id, err);
    }
    close_ends(x, ends, rc < 0);
    if (rc < 0) {
        return rc;
    }
    /* A terminal carries both directions; each needs its own descriptor to watch. */
    stream_session_open_input(&x->session, x->session.tty ? fcntl(ends[0].ours, F_DUPFD_CLOEXEC, 3)
                                                          : ends[0].ours);
    x->out[0].fd = ends[1].ours;
    x->out[1].fd = x->session.tty ? -1 : ends[2].ours;
    return 0;
}

static void pod_exec_on_begun(struct stream_session *s)
{
    struct pod_exec *x = pod_exec_of(s);
    struct hk_err err = {0};

    if (run_command(x, &err) < 0) {
        serve_status(500, "InternalError", err.text, &x->status);
        pod_exec_close(x);
        return;
    }
    x->stage = RUNNING;
    pod_exec_pump(x);
}

static const struct stream_session_ops pod_exec_ops;

static void tell_why_not(struct pod_exec *x, const char *message)
{
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};

    hk_buf_addf(&line, "%s%s", message, x->session.tty ? "\r\n" : "\n");
    channels_send(&x->session.channels, x->session.tty ? CHANNEL_STDOUT : CHANNEL_STDERR,
                  hk_buf_str(&line));
}

static struct pod_exec *pod_exec_find(const struct serve *s, uint64_t id)
{
    for (uint32_t k = 0; k < s->sessions.len; k++) {
        struct stream_session *one = s->sessions.at[k];

        if (one->ops == &pod_exec_ops && pod_exec_of(one)->id == id) {
            return pod_exec_of(one);
        }
    }
    return NULL;
}

void pod_exec_on_end(struct serve *s, uint64_t id, const struct runtime_end *end)
{
    struct pod_exec *x = pod_exec_find(s, id);

    if (!x) {
        return;
    }
    x->ended = true;
    if (x->stage != RUNNING) {
        pod_exec_free(x);
        return;
    }
    HK_AUTO(hk_buf_fini) struct hk_buf message = {0};
    hk_buf_addf(&message, "command terminated with non-zero exit code: exit status %d", end->code);
    pod_exec_write_status(end->code, hk_buf_str(&message), &x->status);
    if (end->never_ran) {
        tell_why_not(x, end->message);
    }
    pod_exec_pump(x);
}

/* ---- the request ---- */

static const char *const *command_of(const struct query *q, struct hk_arena *mem)
{
    const char **argv = hk_arena_alloc(mem, (q->len + 1) * sizeof(*argv));
    uint32_t n = 0;

    for (uint32_t k = 0; k < q->len; k++) {
        if (hk_str_is(q->at[k].key, "command")) {
            argv[n++] = hk_arena_str(mem, q->at[k].value).s;
        }
    }
    argv[n] = NULL;
    return argv;
}

/* The checks of PodExecOptions in Kubernetes. */
static int pod_exec_check_options(const struct pod_exec *x, struct hk_err *err)
{
    if (!x->argv[0]) {
        return hk_fail(err, HK_EINVAL, "you must specify a command");
    }
    if (!(x->session.wants & (1u << CHANNEL_STDIN | 1u << CHANNEL_STDOUT | 1u << CHANNEL_STDERR))) {
        return hk_fail(err, HK_EINVAL, "you must specify at least 1 of stdin, stdout, stderr");
    }
    if (x->session.tty && stream_session_wants(&x->session, CHANNEL_STDERR)) {
        return hk_fail(err, HK_EINVAL, "tty and stderr cannot both be true");
    }
    return 0;
}

static int read_question(struct pod_exec *x, const struct node_call *call, struct hk_err *err)
{
    struct container *c;
    struct query q;
    int rc = query_parse(call->query, &x->mem, &q, err);

    if (rc < 0) {
        return rc;
    }
    x->argv = command_of(&q, &x->mem);
    x->session.tty = query_bool(&q, "tty");
    x->session.wants = serve_wants(call, &q);
    rc = serve_find_running(x->session.serve, call, &q, &c, err);
    if (rc < 0) {
        return rc;
    }
    x->container = c->id;
    return pod_exec_check_options(x, err);
}

static void pod_exec_on_free(struct stream_session *s)
{
    pod_exec_free(pod_exec_of(s));
}

static const struct stream_session_ops pod_exec_ops = {.begun = pod_exec_on_begun,
                                                       .room = pod_exec_on_room,
                                                       .input_end = pod_exec_on_input_end,
                                                       .size = pod_exec_on_size,
                                                       .gone = pod_exec_on_gone,
                                                       .free = pod_exec_on_free};

static struct pod_exec *pod_exec_new(struct serve *s, struct http_request *http)
{
    struct pod_exec *x = hk_zalloc(sizeof(*x));

    x->host = s->host;
    x->out[0] = (struct output){.x = x, .channel = CHANNEL_STDOUT, .fd = -1};
    x->out[1] = (struct output){.x = x, .channel = CHANNEL_STDERR, .fd = -1};
    x->timer = net_timer_new(s->host->o.loop, pod_exec_on_kill_timer, x);
    stream_session_init(&x->session, &pod_exec_ops, s, http);
    return x;
}

int pod_exec_serve(struct serve *s, const struct node_call *call, struct hk_err *err)
{
    struct pod_exec *x = pod_exec_new(s, call->http);
    int rc = read_question(x, call, err);

    if (rc == 0) {
        rc = stream_session_accept(&x->session, err);
    }
    if (rc < 0) {
        pod_exec_free(x);
    }
    return rc;
}
