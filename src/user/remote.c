// SPDX-License-Identifier: Apache-2.0
// Runs one command in a pod at a time, in a loop around poll(2): standard input may be a regular
// file, which epoll refuses. Output is written at once; while that blocks, the server waits, too.
#include "user/remote.h"

#include "api/names.h"
#include "client/stream.h"
#include "client/target.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

enum { READ_BYTES = 32 << 10, PING_MS = 20000 };
enum { STDIN = 0, STDOUT = 1, STDERR = 2, STATUS = 3, RESIZE = 4 }; /* channels */

/* ---- options ---- */

const struct option_row remote_options[] = {
    ROW_INCLUDE(struct remote_opts, user, user_namespace_options),
    ROW_TEXT_OR('c', "container", "CONTAINER", struct remote_opts, container,
                "the one that the pod's annotation kubectl.kubernetes.io/default-container names, "
                "else its first",
                "The container."),
    ROW_INCLUDE(struct remote_opts, user, user_server_options),
    ROW_END,
};

int remote_open(struct remote *r, const struct remote_opts *o, struct hk_err *err)
{
    *r = (struct remote){.wanted = o->container};
    return user_open(&r->user, &o->user, err);
}

void remote_close(struct remote *r)
{
    user_close(&r->user);
}

/* ---- which pod ---- */

static struct hk_str remote_label(const struct api_object *pod, const char *key)
{
    return json_str(json_get(json_at(&pod->root, "metadata.labels"), key), HK_STR(""));
}

static struct hk_str phase(const struct api_object *pod)
{
    return json_str(json_at(&pod->root, "status.phase"), HK_STR(""));
}

static int choose_container(struct remote *r, const struct api_object *pod, struct hk_err *err)
{
    const struct json *list = json_at(&pod->root, "spec.containers");
    struct hk_str name = json_str(json_get(json_at(&pod->root, "metadata.annotations"),
                                           "kubectl.kubernetes.io/default-container"),
                                  HK_STR(""));

    if (r->wanted) {
        name = hk_str(r->wanted);
    } else if (name.n == 0 && list && list->type == JSON_ARRAY && list->len > 0) {
        name = json_str(json_get(&list->items[0], "name"), HK_STR(""));
    }
    r->pod = hk_arena_str(&r->user.mem, pod->name).s;
    r->container = hk_arena_str(&r->user.mem, name).s;
    if (!hk_str_is(phase(pod), "Running") && !hk_str_is(phase(pod), "Pending")) {
        return hk_fail(err, HK_EINVAL, "pod '%s' has ended (%.*s)", r->pod, HK_FMT(phase(pod)));
    }
    return 0;
}

struct wanted {
    struct hk_str job, task, index; /* task and index: "" for any */
};

static bool remote_is_wanted(const struct api_object *pod, const struct wanted *w)
{
    return (w->task.n == 0 || hk_str_eq(remote_label(pod, API_KEY_TASK_SPEC), w->task)) &&
           (w->index.n == 0 || hk_str_eq(remote_label(pod, API_KEY_TASK_INDEX), w->index));
}

/* The first pod by name, of the running ones if there are any. */
static const struct api_object *best_of(const struct port_answer *pods, const struct wanted *w)
{
    const struct api_object *best = NULL;

    for (uint32_t k = 0; k < pods->objects.len; k++) {
        const struct api_object *p = pods->objects.at[k];
        if (!remote_is_wanted(p, w)) {
            continue;
        }
        const bool runs = hk_str_is(phase(p), "Running");
        const bool best_runs = best && hk_str_is(phase(best), "Running");
        if (!best || (runs && !best_runs) ||
            (runs == best_runs && hk_str_cmp(p->name, best->name) < 0)) {
            best = p;
        }
    }
    return best;
}

static int find_of_job(struct remote *r, const struct wanted *w, const char *typed,
                       struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer pods = {0};
    const char *selector =
        hk_arena_printf(&r->user.mem, API_KEY_JOB_NAME " in (%.*s)", HK_FMT(w->job));
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = api_kind(API_POD),
                                     .ns = hk_str(r->user.ns),
                                     .label_selector = hk_str(selector)};
    const int rc = ask(&r->user.ask, &req, &pods, err);

    if (rc < 0) {
        return rc;
    }
    const struct api_object *pod = best_of(&pods, w);
    if (!pod) {
        return hk_fail(err, HK_ENOTFOUND, "no pod '%s' and no pod of such a job in namespace '%s'",
                       typed, r->user.ns);
    }
    return choose_container(r, pod, err);
}

int remote_find(struct remote *r, const char *typed, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer pods = {0};
    struct hk_str rest = hk_str(typed);
    struct wanted w = {.task = HK_STR(""), .index = HK_STR("")};
    const struct port_request req = {.verb = PORT_GET,
                                     .kind = api_kind(API_POD),
                                     .ns = hk_str(r->user.ns),
                                     .name = hk_str(typed)};
    int rc = -HK_ENOTFOUND;

    if (hk_str_starts(rest, "pod/")) {
        return remote_find(r, typed + strlen("pod/"), err);
    }
    hk_str_cut(&rest, '/', &w.job);
    if (!rest.s) {
        rc = ask(&r->user.ask, &req, &pods, err);
    }
    if (rc == 0 && pods.objects.len > 0) {
        return choose_container(r, pods.objects.at[0], err);
    }
    if (rc < 0 && rc != -HK_ENOTFOUND) {
        return rc;
    }
    if (hk_str_cut(&rest, '/', &w.task) && rest.s) {
        w.index = rest;
    }
    return find_of_job(r, &w, typed, err);
}

/* ---- the command ---- */

struct session {
    const struct remote_command *c;
    struct stream *stream;
    struct hk_buf status;
    bool in_open;
    int signals;     /* signalfd; -1: none */
    int write_errno; /* of an output that failed */
    bool raw;        /* the terminal must be restored */
    struct termios before;
};

static void remote_write_all(struct session *s, int fd, struct hk_str bytes)
{
    while (bytes.n > 0 && fd >= 0 && s->write_errno == 0) {
        const ssize_t n = write(fd, bytes.s, bytes.n);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            poll(&p, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            s->write_errno = errno;
        }
        bytes.s += n > 0 ? n : 0;
        bytes.n -= n > 0 ? (size_t)n : 0;
    }
}

static void on_data(void *ctx, uint8_t channel, struct hk_str bytes)
{
    struct session *s = ctx;

    if (channel == STATUS) {
        hk_buf_addstr(&s->status, bytes);
    } else if (channel == STDOUT || channel == STDERR) {
        remote_write_all(s, channel == STDOUT ? s->c->out : s->c->err_out, bytes);
    }
}

static void send_size(struct session *s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct winsize size;

    if (s->c->tty && ioctl(s->c->in, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        hk_buf_addf(&text, "{\"Width\":%u,\"Height\":%u}", size.ws_col, size.ws_row);
        stream_send(s->stream, RESIZE, hk_buf_str(&text));
    }
}

/* Returns false on a signal to exit. */
static bool remote_read_signals(struct session *s)
{
    struct signalfd_siginfo info;

    while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo != SIGWINCH) {
            return false;
        }
        send_size(s);
    }
    return true;
}

static void remote_send_input(struct session *s)
{
    char buf[READ_BYTES];
    const ssize_t n = read(s->c->in, buf, sizeof(buf));

    if (n > 0) {
        stream_send(s->stream, STDIN, (struct hk_str){buf, (size_t)n});
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        s->in_open = false;
        stream_end_input(s->stream);
    }
}

/* Runs until the server closes the connection. */
static int converse(struct session *s, struct hk_err *err)
{
    int rc;

    while ((rc = stream_turn(s->stream, err)) == 0) {
        const bool reads = s->in_open && stream_room(s->stream);
        struct pollfd fds[] = {
            {.fd = stream_fd(s->stream), .events = stream_events(s->stream)},
            {.fd = reads ? s->c->in : -1, .events = POLLIN},
            {.fd = s->signals, .events = POLLIN},
        };
        if (s->write_errno != 0) {
            return hk_fail(err, HK_EIO, "cannot write: %s", strerror(s->write_errno));
        }
        const int ready = poll(fds, HK_LEN(fds), PING_MS);
        if (ready == 0) {
            stream_ping(s->stream);
        }
        if (ready > 0 && fds[1].revents) {
            remote_send_input(s);
        }
        if (ready > 0 && fds[2].revents && !remote_read_signals(s)) {
            return hk_fail(err, HK_EIO, "interrupted");
        }
    }
    return rc < 0 ? rc : stream_outcome(hk_buf_str(&s->status), err);
}

/* ---- the terminal ---- */

static void prepare_terminal(struct session *s)
{
    struct termios raw;
    sigset_t wanted;

    if (!s->c->tty) {
        return;
    }
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGWINCH);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGHUP);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    s->signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (tcgetattr(s->c->in, &s->before) == 0) {
        raw = s->before;
        cfmakeraw(&raw);
        s->raw = tcsetattr(s->c->in, TCSADRAIN, &raw) == 0;
    }
    send_size(s);
}

static void restore_terminal(struct session *s)
{
    if (s->raw) {
        tcsetattr(s->c->in, TCSADRAIN, &s->before);
    }
    if (s->signals >= 0) {
        close(s->signals);
    }
}

/* ---- running ---- */

static void remote_write_path(const struct remote *r, const struct remote_command *c,
                              struct hk_buf *out)
{
    hk_buf_adds(out, "/api/v1/namespaces/");
    target_escape(hk_str(r->user.ns), out);
    hk_buf_adds(out, "/pods/");
    target_escape(hk_str(r->pod), out);
    hk_buf_adds(out, "/exec?container=");
    target_escape(hk_str(r->container), out);
    hk_buf_addf(out, "&stdin=%s&stdout=%s&stderr=%s&tty=%s", c->in >= 0 ? "true" : "false",
                c->out >= 0 ? "true" : "false", c->err_out >= 0 && !c->tty ? "true" : "false",
                c->tty ? "true" : "false");
    for (const char *const *arg = c->argv; *arg; arg++) {
        hk_buf_adds(out, "&command=");
        target_escape(hk_str(*arg), out);
    }
}

int remote_run(struct remote *r, const struct remote_command *c, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct session s = {.c = c, .in_open = c->in >= 0, .signals = -1};

    signal(SIGPIPE, SIG_IGN);
    remote_write_path(r, c, &path);
    int rc = stream_open(r->user.ask.client,
                         &(struct stream_opts){.path = path.data, .data = on_data, .ctx = &s},
                         &s.stream, err);
    if (rc < 0) {
        return rc;
    }
    prepare_terminal(&s);
    rc = converse(&s, err);
    restore_terminal(&s);
    stream_free(s.stream);
    hk_buf_fini(&s.status);
    return rc;
}
