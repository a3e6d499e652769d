// SPDX-License-Identifier: Apache-2.0
// A port with faults in front of another one: one fault at the n-th call, or several chosen by a
// seed. Lists, watches and events have no faults and are not counted.
#pragma once

#include "api/port.h"
#include "base/vec.h"

enum fault {
    FAULT_NONE,
    FAULT_REFUSED,     /* no effect, an I/O error or "try again" */
    FAULT_LOST,        /* takes effect, the answer is a failure */
    FAULT_SILENT,      /* takes effect, and no answer ever comes */
    FAULT_SWALLOWED,   /* no effect, and no answer ever comes */
    FAULT_TWICE,       /* two answers */
    FAULT_LATE,        /* the answer waits until nothing else happens */
    FAULT_REVERSED,    /* the answers of this and the next calls come last to first */
    FAULT_WATCHES_END, /* every watch is too old for the history */
    FAULT_DEAD_BEFORE, /* the caller's process ends before the call */
    FAULT_DEAD_AFTER,  /* the caller's process ends before the answer */
    FAULT_NKINDS,
};

static const char *const fault_names[FAULT_NKINDS] = {
    "none", "refused",  "lost",        "silent",      "swallowed",  "twice",
    "late", "reversed", "watches-end", "dead-before", "dead-after",
};

struct fault_port;

struct fault_call {
    struct fault_port *port;
    struct port_sink sink;
    uint64_t id, under; /* under 0: never passed on */
    enum fault fault;
    enum port_verb verb;
};

/* An answer that waits. */
struct fault_answer {
    struct port_sink sink;
    struct port_msg msg;
    struct hk_err err;
    bool late;
};

struct fault_port {
    struct port port;
    struct port *under;
    enum fault fault;
    uint32_t at;    /* the call with the fault, counted from 1; 0: by the seed */
    uint32_t seed;  /* 0: none */
    uint32_t ncall; /* calls so far */
    bool dead;      /* no call passes until fault_port_restart_caller */
    uint64_t last_id;
    struct hk_buf log; /* the calls with faults, and which */
    HK_VEC(struct fault_call *) calls;
    HK_VEC(struct fault_answer) held;
    bool watches_paused; /* events are held until fault_port_resume_watches */
    HK_VEC(struct fault_answer) held_events;
};

/* With a seed one call in eight has a fault, but none of the later ones, so that the story can
 * end. */
static inline enum fault fault_of(const struct fault_port *p, uint32_t n)
{
    enum { LAST_FAULT_CALL = 80 };
    const uint64_t h = hk_mix(((uint64_t)p->seed << 32) + n);

    if (p->seed > 0) {
        return h % 8 == 0 && n < LAST_FAULT_CALL ? FAULT_NONE + 1 + (h >> 8) % (FAULT_NKINDS - 1)
                                                 : FAULT_NONE;
    }
    if (p->fault == FAULT_REVERSED) {
        return n >= p->at && n < p->at + 4 ? FAULT_REVERSED : FAULT_NONE;
    }
    return n == p->at ? p->fault : FAULT_NONE;
}

static inline void fault_answer_free(struct fault_answer *an)
{
    api_object_unref(an->msg.obj);
}

static inline struct fault_answer fault_copy(const struct fault_call *c, const struct port_msg *m)
{
    struct fault_answer an = {.sink = c->sink, .msg = *m, .late = c->fault == FAULT_LATE};

    an.msg.call = c->id;
    an.msg.obj = m->obj ? api_object_ref(m->obj) : NULL;
    an.msg.status = NULL;
    if (m->err) {
        an.err = *m->err;
    }
    return an;
}

static inline void fault_hold(struct fault_port *p, const struct fault_call *c,
                              const struct port_msg *m)
{
    hk_vec_push(&p->held, fault_copy(c, m));
}

static inline void fault_forget(struct fault_port *p, const struct fault_call *c)
{
    for (uint32_t i = 0; i < p->calls.len; i++) {
        if (p->calls.at[i] == c) {
            hk_free(p->calls.at[i]);
            hk_vec_swap_remove(&p->calls, i);
            return;
        }
    }
}

static inline void fault_deliver(const struct fault_call *c, const struct port_msg *m)
{
    struct port_msg copy = *m;

    copy.call = c->id;
    if (c->sink.on_msg) {
        c->sink.on_msg(c->sink.ctx, &copy);
    }
}

static inline void fault_on_msg(void *ctx, const struct port_msg *m)
{
    struct fault_call *c = ctx;
    const struct fault_call call = *c;
    struct fault_port *p = c->port;
    struct hk_err err = {.code = HK_ETIMEOUT, .text = "injected: the answer was lost"};

    if (m->type != PORT_DONE && p->watches_paused) {
        hk_vec_push(&p->held_events, fault_copy(c, m));
        return;
    }
    if (m->type != PORT_DONE) {
        fault_deliver(&call, m);
        return;
    }
    if (c->fault == FAULT_SILENT) {
        return;
    }
    if (c->fault == FAULT_LATE || c->fault == FAULT_REVERSED) {
        fault_hold(p, c, m);
        return;
    }
    fault_forget(p, c);
    if (call.fault == FAULT_LOST) {
        fault_deliver(&call,
                      &(struct port_msg){.type = PORT_DONE, .rc = -HK_ETIMEOUT, .err = &err});
        return;
    }
    fault_deliver(&call, m);
    if (call.fault == FAULT_TWICE) {
        fault_deliver(&call, m);
    }
}

static inline void fault_end_watches(struct fault_port *p)
{
    struct hk_err err = {.code = HK_EGONE, .text = "injected: too old"};

    for (uint32_t i = p->calls.len; i-- > 0;) {
        struct fault_call *c = p->calls.at[i];

        if (c->verb == PORT_WATCH && c->under) {
            port_cancel(p->under, c->under);
            c->under = 0;
            fault_hold(p, c, &(struct port_msg){.type = PORT_DONE, .rc = -HK_EGONE, .err = &err});
        }
    }
}

static inline void fault_note(struct fault_port *p, const struct fault_call *c,
                              const struct port_request *req)
{
    hk_buf_addf(&p->log, "%s%s %s%s%s %.*s", p->log.len > 0 ? ", " : "", port_verb_name(req->verb),
                req->kind->plural, req->subresource ? "/" : "",
                req->subresource ? req->subresource : "", HK_FMT(req->name));
    hk_buf_addf(&p->log, " %s", fault_names[c->fault]);
}

static inline bool fault_is_counted(const struct port_request *req)
{
    return req->verb != PORT_LIST && req->verb != PORT_WATCH && req->kind->id != API_EVENT;
}

static inline void fault_refuse(struct fault_port *p, const struct fault_call *c, enum hk_code code)
{
    fault_hold(p, c, &(struct port_msg){.type = PORT_DONE, .rc = -(int)code});
    hk_err_set(&p->held.at[p->held.len - 1].err, code, "injected failure");
}

static inline uint64_t fault_submit(struct port *port, const struct port_request *req,
                                    struct port_sink sink)
{
    struct fault_port *p = (struct fault_port *)port;
    struct fault_call *c = hk_zalloc(sizeof(*c));

    *c = (struct fault_call){.port = p, .sink = sink, .id = ++p->last_id, .verb = req->verb};
    hk_vec_push(&p->calls, c);
    if (fault_is_counted(req)) {
        c->fault = fault_of(p, ++p->ncall);
    }
    if (c->fault && !p->dead) {
        fault_note(p, c, req);
    }
    p->dead = p->dead || c->fault == FAULT_DEAD_BEFORE;
    if (p->dead || c->fault == FAULT_SWALLOWED) {
        return c->id;
    }
    if (c->fault == FAULT_REFUSED) {
        fault_refuse(p, c, p->ncall % 2 ? HK_EBUSY : HK_EIO);
        return c->id;
    }
    c->under = port_submit(p->under, req, (struct port_sink){fault_on_msg, c});
    if (c->fault == FAULT_WATCHES_END) {
        fault_end_watches(p);
    }
    p->dead = c->fault == FAULT_DEAD_AFTER;
    return c->id;
}

static inline void fault_cancel(struct port *port, uint64_t id)
{
    struct fault_port *p = (struct fault_port *)port;

    for (uint32_t i = p->held.len; i-- > 0;) {
        if (p->held.at[i].msg.call == id) {
            fault_answer_free(&p->held.at[i]);
            hk_vec_swap_remove(&p->held, i);
        }
    }
    for (uint32_t i = 0; i < p->calls.len; i++) {
        if (p->calls.at[i]->id == id) {
            if (p->calls.at[i]->under) {
                port_cancel(p->under, p->calls.at[i]->under);
            }
            fault_forget(p, p->calls.at[i]);
            return;
        }
    }
}

/* Delivers the answer that was held last; false when there is none. */
static inline bool fault_port_release(struct fault_port *p)
{
    struct fault_answer an;

    if (p->held.len == 0) {
        return false;
    }
    an = hk_vec_pop(&p->held);
    for (uint32_t i = 0; i < p->calls.len; i++) {
        if (p->calls.at[i]->id == an.msg.call) {
            fault_forget(p, p->calls.at[i]);
            break;
        }
    }
    an.msg.err = an.msg.rc < 0 ? &an.err : NULL;
    if (an.sink.on_msg) {
        an.sink.on_msg(an.sink.ctx, &an.msg);
    }
    fault_answer_free(&an);
    return true;
}

static inline uint32_t fault_poll(struct port *port, uint32_t max)
{
    struct fault_port *p = (struct fault_port *)port;
    const uint32_t n = p->dead ? 0 : port_poll(p->under, max);

    if (n == 0 && p->held.len > 0 && !p->held.at[p->held.len - 1].late) {
        return fault_port_release(p);
    }
    return n;
}

static inline int fault_fd(struct port *port)
{
    return -1;
}

static inline void fault_free(struct port *port)
{
    struct fault_port *p = (struct fault_port *)port;

    for (uint32_t i = 0; i < p->calls.len; i++) {
        hk_free(p->calls.at[i]);
    }
    for (uint32_t i = 0; i < p->held.len; i++) {
        fault_answer_free(&p->held.at[i]);
    }
    hk_vec_fini(&p->calls);
    for (uint32_t i = 0; i < p->held_events.len; i++) {
        fault_answer_free(&p->held_events.at[i]);
    }
    hk_vec_fini(&p->held);
    hk_vec_fini(&p->held_events);
    hk_buf_fini(&p->log);
}

static const struct port_ops fault_ops = {
    .name = "fault",
    .submit = fault_submit,
    .cancel = fault_cancel,
    .poll = fault_poll,
    .fd = fault_fd,
    .free = fault_free,
};

/* port_free on p->port frees it, but not the port under it. */
static inline void fault_port_init(struct fault_port *p, struct port *under, enum fault fault,
                                   uint32_t at)
{
    *p = (struct fault_port){.port.ops = &fault_ops, .under = under, .fault = fault, .at = at};
}

/* Delivers the held events; watches continue. */
static inline void fault_port_resume_watches(struct fault_port *p)
{
    p->watches_paused = false;
    for (uint32_t i = 0; i < p->held_events.len; i++) {
        struct fault_answer *an = &p->held_events.at[i];

        an->sink.on_msg(an->sink.ctx, &an->msg);
        fault_answer_free(an);
    }
    p->held_events.len = 0;
}

/* Another caller takes the place of the one that ended. */
static inline void fault_port_restart_caller(struct fault_port *p)
{
    p->dead = false;
}
