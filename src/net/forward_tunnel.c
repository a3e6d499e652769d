// SPDX-License-Identifier: Apache-2.0
// Forwarded upgrades: after both sides have agreed, copies bytes both ways until one of them ends.
#include "net/forward_priv.h"

#include <errno.h>
#include <sys/epoll.h>

enum { TURNS = 16 }; /* chunks per call, so that others get their turn */

enum moved { NOTHING, SOMETHING, LOST };

static void hang_up_both(struct forward *f)
{
    http_tunnel_close(f->http);
    forward_finish(f);
}

static enum moved carry_there(struct forward *f)
{
    struct forward_way *w = &f->there;

    if (forward_left(w) == 0) {
        hk_buf_reserve(&w->buf, FORWARD_CHUNK);
        const ssize_t n = http_tunnel_read(f->http, w->buf.data, FORWARD_CHUNK);
        if (n <= 0) {
            return forward_must_wait(n) ? NOTHING : LOST;
        }
        w->buf.len = (size_t)n;
    }
    const struct hk_str rest = forward_bytes(w);
    const ssize_t n = net_dial_write(f->server, rest.s, rest.n);
    if (n >= 0) {
        forward_used(w, (size_t)n);
        return SOMETHING;
    }
    if (!forward_must_wait(n)) {
        forward_hear_out(f);
    }
    return NOTHING;
}

static enum moved carry_back(struct forward *f)
{
    if (forward_left(&f->back) == 0) {
        forward_fill(f);
    }
    const struct hk_str rest = forward_bytes(&f->back);
    if (rest.n == 0) {
        return NOTHING;
    }
    const ssize_t n = http_tunnel_write(f->http, rest.s, rest.n);
    if (n < 0) {
        return forward_must_wait(n) ? NOTHING : LOST;
    }
    forward_used(&f->back, (size_t)n);
    return SOMETHING;
}

/* more: data may be there without an event. */
static void forward_tunnel_watch(struct forward *f, bool more)
{
    http_tunnel_want(f->http, (f->server && forward_left(&f->there) == 0 ? EPOLLIN : 0) |
                                  (forward_left(&f->back) > 0 || more ? EPOLLOUT : 0));
    if (f->server) {
        forward_want(f, (forward_left(&f->back) == 0 ? EPOLLIN : 0) |
                            (forward_left(&f->there) > 0 ? EPOLLOUT : 0));
    }
}

void forward_tunnel_pump(struct forward *f)
{
    enum moved there = SOMETHING, back = SOMETHING;

    for (int k = 0; k < TURNS && (there == SOMETHING || back == SOMETHING); k++) {
        there = f->server ? carry_there(f) : NOTHING;
        back = there == LOST ? LOST : carry_back(f);
        if (back == LOST) {
            hang_up_both(f);
            return;
        }
    }
    if (!f->server && forward_left(&f->back) == 0) {
        hang_up_both(f);
        return;
    }
    forward_tunnel_watch(f, there == SOMETHING || back == SOMETHING);
}

static void forward_on_client_opened(void *ctx, struct hk_str early)
{
    struct forward *f = ctx;

    f->stage = OPEN;
    hk_buf_addstr(&f->there.buf, early);
    forward_tunnel_watch(f, true); /* cannot close from here */
}

static void forward_on_client_ready(void *ctx, uint32_t events)
{
    forward_tunnel_pump(ctx);
}

static void forward_on_client_cut(void *ctx)
{
    forward_finish(ctx);
}

void forward_tunnel_begin(struct forward *f, struct hk_str head)
{
    struct forward_headers h = {0};

    f->stage = AGREED;
    forward_headers_read(f, head, &h);
    forward_used(&f->back, head.n);
    if (f->server) {
        forward_want(f, 0);
    }
    http_reply_tunnel(f->http, h.list.at, h.list.len,
                      &(struct http_tunnel){.opened = forward_on_client_opened,
                                            .ready = forward_on_client_ready,
                                            .cut = forward_on_client_cut,
                                            .ctx = f});
    forward_headers_fini(&h);
}
