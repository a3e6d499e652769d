// SPDX-License-Identifier: Apache-2.0
// Each local connection gets a stream of its own to the server: a slow program or a slow client
// delays no other connection. Everything happens in one loop around poll(2); only the handshake of a
// stream blocks.
#include "user/ports.h"

#include "base/vec.h"
#include "client/stream.h"
#include "client/target.h"
#include "net/listen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_BYTES = 32 << 10,
    OUT_BYTES = 256 << 10, /* limit of output for a slow local client */
    LINKS_MAX = 256,
    PORTS_MAX = 64,
    PING_MS = 20000,
    DATA = 0, /* channels */
    ERROR = 1,
};

struct ports_listener {
    int fd;
    uint16_t port; /* of the pod */
};

/* A local connection and its stream. */
struct ports_link {
    int fd;
    uint16_t port;
    struct stream *stream;
    struct hk_buf out;   /* for the local client: [at, out.len) */
    struct hk_buf error; /* message of the server */
    size_t at;
    uint8_t skip[2]; /* bytes of the port still to come, by channel */
    bool in_open;    /* the local client may send more */
    bool lingers;    /* its end could not be told to the server */
    bool over;       /* the server has closed the stream */
    bool lost;       /* free it */
};

struct ports {
    struct remote *remote;
    HK_VEC(struct ports_listener) listeners;
    HK_VEC(struct ports_link *) links;
    HK_VEC(struct pollfd) fds; /* of the listeners, then two for each link */
};

/* ---- options ---- */

static bool ports_number(struct hk_str text, uint16_t *ret)
{
    int64_t n;

    if (!hk_str_int(text, &n) || n < 1 || n > UINT16_MAX) {
        return false;
    }
    *ret = (uint16_t)n;
    return true;
}

int ports_parse(const char *text, uint16_t *ret_local, uint16_t *ret_port, struct hk_err *err)
{
    struct hk_str rest = hk_str(text), first;

    hk_str_cut(&rest, ':', &first);
    *ret_local = 0;
    if (!rest.s && ports_number(first, ret_port)) {
        *ret_local = *ret_port;
        return 0;
    }
    if (rest.s && (first.n == 0 || ports_number(first, ret_local)) &&
        ports_number(rest, ret_port)) {
        return 0;
    }
    return hk_fail(err, HK_EINVAL,
                   "port '%s', want PORT, LOCAL:PORT or :PORT, each from 1 to 65535", text);
}

/* ---- links ---- */

static size_t ports_unwritten(const struct ports_link *l)
{
    return l->out.len - l->at;
}

static void ports_complain(struct ports_link *l)
{
    if (l->error.len > 0) {
        fprintf(stderr, "hekla: port-forward: %s\n", l->error.data);
        hk_buf_clear(&l->error);
    }
}

static void ports_link_free(struct ports_link *l)
{
    ports_complain(l);
    stream_free(l->stream);
    close(l->fd);
    hk_buf_fini(&l->out);
    hk_buf_fini(&l->error);
    hk_free(l);
}

static void ports_on_data(void *ctx, uint8_t channel, struct hk_str bytes)
{
    struct ports_link *l = ctx;
    size_t skipped;

    if (channel > ERROR) {
        return;
    }
    skipped = HK_MIN((size_t)l->skip[channel], bytes.n);
    l->skip[channel] -= (uint8_t)skipped;
    bytes = (struct hk_str){bytes.s + skipped, bytes.n - skipped};
    hk_buf_addstr(channel == DATA ? &l->out : &l->error, bytes);
    if (ports_unwritten(l) >= OUT_BYTES) {
        stream_hold(l->stream, true);
    }
}

static void ports_write_local(struct ports_link *l)
{
    while (ports_unwritten(l) > 0 && !l->lost) {
        const ssize_t n =
            send(l->fd, l->out.data + l->at, ports_unwritten(l), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        l->lost = n < 0 && errno != EINTR;
        l->at += n > 0 ? (size_t)n : 0;
    }
    hk_buf_clear(&l->out);
    l->at = 0;
    stream_hold(l->stream, false);
}

static void ports_read_local(struct ports_link *l)
{
    char part[READ_BYTES];
    const ssize_t n = recv(l->fd, part, sizeof(part), MSG_DONTWAIT);

    if (n > 0) {
        stream_send(l->stream, DATA, (struct hk_str){part, (size_t)n});
    } else if (n == 0) {
        l->in_open = false;
        l->lingers = !stream_end_input(l->stream);
    } else {
        l->lost = errno != EAGAIN && errno != EINTR;
    }
}

static void ports_turn_stream(struct ports_link *l)
{
    struct hk_err err = {0};
    const int rc = l->over ? 1 : stream_turn(l->stream, &err);

    if (rc < 0) {
        hk_buf_clear(&l->error);
        hk_buf_adds(&l->error, err.text);
        l->lost = true;
    }
    l->over |= rc != 0;
}

/* Does what is possible without waiting. */
static void ports_turn_link(struct ports_link *l, short local)
{
    if (local & (POLLIN | POLLERR | POLLHUP) && l->in_open) {
        ports_read_local(l);
    }
    ports_turn_stream(l);
    ports_write_local(l);
    ports_turn_stream(l); /* it may have been held */
    if (l->over && ports_unwritten(l) == 0) {
        l->lost = true;
    }
}

/* ---- new connections ---- */

static void ports_write_path(const struct remote *r, uint16_t port, struct hk_buf *out)
{
    hk_buf_adds(out, "/api/v1/namespaces/");
    target_escape(hk_str(r->user.ns), out);
    hk_buf_adds(out, "/pods/");
    target_escape(hk_str(r->pod), out);
    hk_buf_addf(out, "/portforward?ports=%u", port);
}

static int ports_accept(struct ports *p, const struct ports_listener *from, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    const int fd = accept4(from->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ports_link *l;
    int rc;

    if (fd < 0) {
        return 0; /* the client has left already */
    }
    l = hk_zalloc(sizeof(*l));
    *l = (struct ports_link){.fd = fd, .port = from->port, .skip = {2, 2}, .in_open = true};
    ports_write_path(p->remote, from->port, &path);
    rc = stream_open(p->remote->user.ask.client,
                     &(struct stream_opts){.path = path.data, .data = ports_on_data, .ctx = l},
                     &l->stream, err);
    if (rc < 0) {
        ports_link_free(l);
        return rc;
    }
    hk_vec_push(&p->links, l);
    return 0;
}

static int ports_listen(struct ports *p, const char *text, struct hk_err *err)
{
    struct ports_listener one = {.fd = -1};
    uint16_t local, bound;
    int rc = ports_parse(text, &local, &one.port, err);

    if (rc < 0) {
        return rc;
    }
    rc = listen_on(HK_STR("127.0.0.1"), local, &one.fd, &bound, err);
    if (rc < 0) {
        return rc;
    }
    hk_vec_push(&p->listeners, one);
    printf("Forwarding from 127.0.0.1:%u -> %u\n", bound, one.port);
    fflush(stdout);
    return 0;
}

/* ---- the loop ---- */

static void ports_collect_fds(struct ports *p)
{
    const bool accepts = p->links.len < LINKS_MAX;

    p->fds.len = 0;
    for (uint32_t k = 0; k < p->listeners.len; k++) {
        hk_vec_push(&p->fds, (struct pollfd){accepts ? p->listeners.at[k].fd : -1, POLLIN, 0});
    }
    for (uint32_t k = 0; k < p->links.len; k++) {
        const struct ports_link *l = p->links.at[k];
        const short local = (short)((l->in_open && stream_room(l->stream) ? POLLIN : 0) |
                                    (ports_unwritten(l) > 0 ? POLLOUT : 0));

        hk_vec_push(&p->fds, (struct pollfd){l->over ? -1 : stream_fd(l->stream),
                                             stream_events(l->stream), 0});
        hk_vec_push(&p->fds, (struct pollfd){local ? l->fd : -1, local, 0});
    }
}

/* Nothing has happened for a while. */
static void ports_on_silence(struct ports *p)
{
    for (uint32_t k = 0; k < p->links.len; k++) {
        p->links.at[k]->lost |= p->links.at[k]->lingers;
        stream_ping(p->links.at[k]->stream);
    }
}

static void ports_turn_links(struct ports *p)
{
    for (uint32_t k = p->links.len; k-- > 0;) {
        const struct pollfd *fds = &p->fds.at[p->listeners.len + 2 * k];
        struct ports_link *l = p->links.at[k];

        if (fds[0].revents || fds[1].revents || stream_events(l->stream) & POLLOUT) {
            ports_turn_link(l, fds[1].revents);
        }
        if (l->lost) {
            ports_link_free(l);
            hk_vec_swap_remove(&p->links, k);
        }
    }
}

static int ports_run(struct ports *p, struct hk_err *err)
{
    for (;;) {
        ports_collect_fds(p);
        const int ready = poll(p->fds.at, p->fds.len, PING_MS);
        if (ready == 0) {
            ports_on_silence(p);
        }
        ports_turn_links(p);
        for (uint32_t k = 0; ready > 0 && k < p->listeners.len; k++) {
            const int rc = p->fds.at[k].revents ? ports_accept(p, &p->listeners.at[k], err) : 0;
            if (rc < 0) {
                return rc;
            }
        }
    }
}

static void ports_fini(struct ports *p)
{
    for (uint32_t k = 0; k < p->links.len; k++) {
        ports_link_free(p->links.at[k]);
    }
    for (uint32_t k = 0; k < p->listeners.len; k++) {
        close(p->listeners.at[k].fd);
    }
    hk_vec_fini(&p->links);
    hk_vec_fini(&p->listeners);
    hk_vec_fini(&p->fds);
}

int ports_forward(const struct ports_opts *o, struct hk_err *err)
{
    HK_AUTO(remote_close) struct remote r;
    HK_AUTO(ports_fini) struct ports p = {.remote = &r};
    int rc = remote_open(&r, &o->remote, err);

    if (rc < 0) {
        return rc;
    }
    if (o->wanted.len > PORTS_MAX) {
        return hk_fail(err, HK_EINVAL, "at most %d ports can be forwarded", PORTS_MAX);
    }
    rc = remote_find(&r, o->target, err);
    for (uint32_t k = 0; rc == 0 && k < o->wanted.len; k++) {
        rc = ports_listen(&p, o->wanted.at[k], err);
    }
    if (rc < 0) {
        return rc;
    }
    signal(SIGPIPE, SIG_IGN);
    return ports_run(&p, err);
}
