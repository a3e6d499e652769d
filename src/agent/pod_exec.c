// SPDX-License-Identifier: Apache-2.0
// pods/exec: runs a command in a container and connects its streams (pipes or a terminal) to the
// channels of a connection. Everything runs on the loop; a slow side makes the other one wait.
//
//     ASKED --101--> OPENED --peer listens--> RUNNING --end, output read--> CLOSING --peer
//                                                |                          closes--> gone
//                                                +--peer hangs up--> LEFT --command ends--> gone
#include "agent/agent_priv.h"
#include "agent/stdin_pipe.h"

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

enum stage { ASKED, OPENED, RUNNING, CLOSING, LEFT };

/* stdout or stderr of the command. */
struct output {
    struct pod_exec *x;
    enum channel channel;
    int fd; /* -1: none, or at its end */
    struct net_watch *watch;
};

struct pod_exec {
    struct agent *a;
    struct http_request *http; /* valid until opened; then the channels own it */
    struct hk_arena mem;
    const char *const *argv;
    bool tty, wants_in, wants_out, wants_err;
    uint64_t container, id; /* ids in the runtime; id 0: no command runs */
    uint8_t stage;
    bool ended;
    struct net_timer *timer;
    struct channels channels;
    struct output out[2];

    struct stdin_pipe in;
    struct hk_buf status; /* the exit status, for the peer */
};

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
    stdin_pipe_fini(&x->in);
    close_output(&x->out[0]);
    close_output(&x->out[1]);
}

static void exec_free(struct pod_exec *x)
{
    struct agent *a = x->a;

    for (uint32_t k = 0; k < a->execs.len; k++) {
        if (a->execs.at[k] == x) {
            hk_vec_swap_remove(&a->execs, k);
            break;
        }
    }
    close_streams(x);
    channels_fini(&x->channels);
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
    struct runtime *r = x->a->o.runtime;

    r->ops->kill(r, x->id, SIGKILL);
}

/* Sends the final status. A slow peer may take any time to read it. */
static void say_goodbye(struct pod_exec *x)
{
    close_streams(x);
    channels_send(&x->channels, CHANNEL_ERROR, hk_buf_str(&x->status));
    channels_close(&x->channels, WS_CLOSE_NORMAL, "");
    x->stage = CLOSING;
}

/* The client is gone: end the command. */
static void pod_exec_on_client_gone(struct pod_exec *x)
{
    struct runtime *r = x->a->o.runtime;

    channels_fini(&x->channels);
    if (x->stage != RUNNING || x->ended) {
        exec_free(x);
        return;
    }
    x->stage = LEFT;
    close_streams(x);
    r->ops->kill(r, x->id, x->tty ? SIGHUP : SIGTERM);
    net_timer_at(x->timer, net_loop_now_ns(x->a->o.loop) + GRACE_NS);
}

static void on_closed(void *ctx)
{
    pod_exec_on_client_gone(ctx);
}

static void on_cut(void *ctx)
{
    struct pod_exec *x = ctx;

    x->channels.http = NULL;
    pod_exec_on_client_gone(x);
}

static void pod_exec_on_ready(void *ctx, uint32_t events)
{
    struct pod_exec *x = ctx;

    channels_ready(&x->channels, events);
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
        channels_send(&o->x->channels, o->channel, (struct hk_str){buf, (size_t)n});
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

    while (o->fd >= 0 && (room = channels_room(&o->x->channels)) && read_output(o)) {
    }
    if (o->fd < 0) {
        return true;
    }
    if (!room) {
        net_watch_del(o->watch);
        o->watch = NULL;
    } else if (!o->watch) {
        o->watch = net_watch_add(o->x->a->o.loop, o->fd, EPOLLIN, on_output, o);
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
        say_goodbye(x);
    }
}

static void on_output(void *ctx, uint32_t events)
{
    struct output *o = ctx;

    pod_exec_pump(o->x);
}

static void on_room(void *ctx)
{
    pod_exec_pump(ctx);
}

/* ---- input ---- */

static void on_input(void *ctx, struct hk_str bytes)
{
    struct pod_exec *x = ctx;

    stdin_pipe_write(&x->in, bytes);
}

/* On a terminal, end of input is a key (^D); a command in raw mode does not notice it. */
static void on_input_end(void *ctx)
{
    static const char end_of_file = 4;
    struct pod_exec *x = ctx;

    if (x->tty) {
        stdin_pipe_write(&x->in, (struct hk_str){&end_of_file, 1});
    }
    stdin_pipe_end(&x->in);
}

static void on_size(void *ctx, uint16_t columns, uint16_t rows)
{
    struct pod_exec *x = ctx;

    if (x->tty && x->out[0].fd >= 0) {
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
    const bool wanted[] = {x->wants_in, x->wants_out, x->wants_err};
    int rc = 0;

    if (x->tty) {
        rc = open_terminal(&ends[0], err);
        ends[1] = ends[2] = ends[0];
        return rc;
    }
    for (int k = 0; k < 3 && rc == 0; k++) {
        rc = wanted[k] ? open_pipe(k == 0, &ends[k], err) : 0;
    }
    return rc;
}

static void close_ends(const struct pod_exec *x, const struct ends ends[3], bool ours)
{
    for (int k = 0; k < (x->tty ? 1 : 3); k++) {
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
    struct runtime *r = x->a->o.runtime;
    struct ends ends[3] = {{-1, -1}, {-1, -1}, {-1, -1}};
    int rc = open_streams(x, ends, err);

    rc = rc < 0 ? rc
                : r->ops->exec(r, x->container, x->argv, ends[0].theirs, ends[1].theirs,
                               ends[2].theirs, &x->id, err);
    close_ends(x, ends, rc < 0);
    if (rc == 0) {
        /* A terminal carries both directions; each needs its own descriptor to watch. */
        stdin_pipe_open(&x->in, x->a->o.loop, &x->channels,
                        x->tty ? fcntl(ends[0].ours, F_DUPFD_CLOEXEC, 3) : ends[0].ours);
        x->out[0].fd = ends[1].ours;
        x->out[1].fd = x->tty ? -1 : ends[2].ours;
    }
    return rc;
}

static void on_begun(void *ctx)
{
    struct pod_exec *x = ctx;
    struct hk_err err = {0};

    /* An empty message tells the client that the connection is open, as in Kubernetes. */
    channels_send(&x->channels, CHANNEL_STDOUT, HK_STR(""));
    if (run_command(x, &err) < 0) {
        serve_status(500, "InternalError", err.text, &x->status);
        say_goodbye(x);
        return;
    }
    x->stage = RUNNING;
    pod_exec_pump(x);
}

static void pod_exec_on_opened(void *ctx, struct hk_str early)
{
    static const struct channels_ops ops = {.begun = on_begun,
                                            .input = on_input,
                                            .input_end = on_input_end,
                                            .size = on_size,
                                            .room = on_room,
                                            .closed = on_closed};
    struct pod_exec *x = ctx;

    x->stage = OPENED;
    channels_open(&x->channels, x->a->o.loop, x->http, early, &ops, x);
}

static void tell_why_not(struct pod_exec *x, const char *message)
{
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};

    hk_buf_addf(&line, "%s%s", message, x->tty ? "\r\n" : "\n");
    channels_send(&x->channels, x->tty ? CHANNEL_STDOUT : CHANNEL_STDERR, hk_buf_str(&line));
}

bool pod_exec_on_end(struct agent *a, uint64_t id, const struct runtime_end *end)
{
    struct pod_exec *x = NULL;

    for (uint32_t k = 0; k < a->execs.len && !x; k++) {
        x = a->execs.at[k]->id == id ? a->execs.at[k] : NULL;
    }
    if (!x) {
        return false;
    }
    x->ended = true;
    if (x->stage != RUNNING) {
        exec_free(x);
        return true;
    }
    HK_AUTO(hk_buf_fini) struct hk_buf message = {0};
    hk_buf_addf(&message, "command terminated with non-zero exit code: exit status %d", end->code);
    pod_exec_write_status(end->code, hk_buf_str(&message), &x->status);
    if (end->never_ran) {
        tell_why_not(x, end->message);
    }
    pod_exec_pump(x);
    return true;
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
    if (!x->wants_in && !x->wants_out && !x->wants_err) {
        return hk_fail(err, HK_EINVAL, "you must specify at least 1 of stdin, stdout, stderr");
    }
    if (x->tty && x->wants_err) {
        return hk_fail(err, HK_EINVAL, "tty and stderr cannot both be true");
    }
    return 0;
}

static int read_question(struct pod_exec *x, const struct node_call *call, unsigned *ret_wants,
                         struct hk_err *err)
{
    struct container *c;
    struct query q;
    int rc = query_parse(call->query, &x->mem, &q, err);

    if (rc < 0) {
        return rc;
    }
    x->argv = command_of(&q, &x->mem);
    x->tty = query_bool(&q, "tty");
    *ret_wants = serve_wants(call, &q);
    x->wants_in = *ret_wants & 1u << CHANNEL_STDIN;
    x->wants_out = *ret_wants & 1u << CHANNEL_STDOUT;
    x->wants_err = *ret_wants & 1u << CHANNEL_STDERR;
    rc = serve_find_running(x->a, call, &q, &c, err);
    if (rc < 0) {
        return rc;
    }
    x->container = c->id;
    return pod_exec_check_options(x, err);
}

static struct pod_exec *exec_new(struct agent *a, struct http_request *http)
{
    struct pod_exec *x = hk_zalloc(sizeof(*x));

    *x = (struct pod_exec){.a = a, .http = http, .in = {.fd = -1}};
    x->out[0] = (struct output){.x = x, .channel = CHANNEL_STDOUT, .fd = -1};
    x->out[1] = (struct output){.x = x, .channel = CHANNEL_STDERR, .fd = -1};
    x->timer = net_timer_new(a->o.loop, pod_exec_on_kill_timer, x);
    hk_vec_push(&a->execs, x);
    return x;
}

int pod_exec_serve(struct agent *a, const struct node_call *call, struct hk_err *err)
{
    struct pod_exec *x = exec_new(a, call->http);
    unsigned wants = 0;
    int rc = read_question(x, call, &wants, err);

    rc = rc < 0 ? rc : channels_offer(&x->channels, call->http, wants, err);
    if (rc < 0) {
        exec_free(x);
        return rc;
    }
    channels_accept(
        &x->channels, call->http,
        &(struct http_tunnel){
            .opened = pod_exec_on_opened, .ready = pod_exec_on_ready, .cut = on_cut, .ctx = x});
    return 0;
}

void pod_exec_fini(struct agent *a)
{
    while (a->execs.len > 0) {
        struct pod_exec *x = a->execs.at[0];
        if (x->stage == ASKED) {
            http_tunnel_close(x->http);
        }
        exec_free(x);
    }
    hk_vec_fini(&a->execs);
}
