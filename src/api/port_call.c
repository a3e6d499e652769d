// SPDX-License-Identifier: Apache-2.0
// Waits for outcomes of calls: delivers messages, and lets the waiter wait while there are none.
#include "api/port_call.h"

#include <errno.h>
#include <poll.h>

#define MESSAGES_MAX 256u /* per turn, so that the waiter's other work gets its turn */

/* ---- turns ---- */

static int port_call_poll_fd(const struct port *p, int timeout_ms, struct hk_err *err)
{
    struct pollfd fd = {.fd = port_fd((struct port *)p), .events = POLLIN};

    if (fd.fd < 0 && timeout_ms < 0) {
        return hk_fail(err, HK_EIO, "cannot wait for the '%s' port: it has no descriptor",
                       p->ops->name);
    }
    if (poll(&fd, 1, timeout_ms) < 0 && errno != EINTR) {
        return hk_fail(err, HK_EIO, "poll: %m");
    }
    return 0;
}

int port_turn(const struct port_waiter *w, int timeout_ms, struct hk_err *err)
{
    if (port_poll(w->port, MESSAGES_MAX) > 0) {
        return 0;
    }
    const int rc =
        w->wait ? w->wait(w->ctx, timeout_ms, err) : port_call_poll_fd(w->port, timeout_ms, err);
    if (rc < 0) {
        return rc;
    }
    port_poll(w->port, MESSAGES_MAX);
    return 0;
}

/* ---- outcomes ---- */

void port_answer_fini(struct port_answer *a)
{
    for (uint32_t i = 0; i < a->objects.len; i++) {
        api_object_unref(a->objects.at[i]);
    }
    hk_vec_fini(&a->objects);
}

static void port_call_keep_objects(struct port_answer *a, const struct port_msg *m)
{
    if (m->obj) {
        hk_vec_push(&a->objects, api_object_ref(m->obj));
    }
    for (uint32_t i = 0; i < m->nitems; i++) {
        hk_vec_push(&a->objects, api_object_ref(m->items[i]));
    }
}

static void port_call_on_msg(void *ctx, const struct port_msg *m)
{
    struct port_outcome *o = ctx;

    if (m->type != PORT_DONE) {
        return;
    }
    o->done = true;
    o->rc = m->rc;
    if (m->rc < 0) {
        o->err = *m->err;
    } else if (o->answer) {
        port_call_keep_objects(o->answer, m);
    }
}

struct port_sink port_outcome_sink(struct port_outcome *o)
{
    return (struct port_sink){port_call_on_msg, o};
}

int port_await(const struct port_waiter *w, uint64_t call, struct port_outcome *o,
               struct hk_err *err)
{
    while (!o->done) {
        const int rc = port_turn(w, -1, err);
        if (rc < 0) {
            port_cancel(w->port, call);
            return rc;
        }
    }
    if (o->rc < 0 && err) {
        *err = o->err;
    }
    return o->rc;
}

int port_call(const struct port_waiter *w, const struct port_request *req, struct port_answer *ret,
              struct hk_err *err)
{
    struct port_outcome o = {.answer = ret};

    return port_await(w, port_submit(w->port, req, port_outcome_sink(&o)), &o, err);
}
