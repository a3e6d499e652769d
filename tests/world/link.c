// SPDX-License-Identifier: Apache-2.0
// Calls on their way to the server, and messages on their way back.
#include "world/link.h"

#define LINK_MS ((int64_t)1000 * 1000)

const char *link_fault_name(enum link_fault f)
{
    static const char *const names[LINK_NFAULTS] = {"passes", "refused", "lost", "raced", "late"};

    return names[f];
}

static bool link_chance(struct link *l, uint32_t per_mille)
{
    return per_mille > 0 && hk_rand_below(l->o.rand, 1000) < per_mille;
}

static int64_t link_now(const struct link *l)
{
    return l->o.clock->mono_ns(l->o.clock);
}

/* ---- calls ---- */

static struct link_call *link_call_find(const struct link *l, uint64_t id, uint32_t *ret_at)
{
    for (uint32_t i = 0; i < l->calls.len; i++) {
        if (l->calls.at[i]->id == id) {
            *ret_at = i;
            return l->calls.at[i];
        }
    }
    return NULL;
}

static void link_call_end(struct link *l, uint64_t id)
{
    uint32_t at;
    struct link_call *c = link_call_find(l, id, &at);

    if (c) {
        hk_vec_swap_remove(&l->calls, at);
        hk_free(c);
    }
}

/* ---- messages ---- */

static void link_msg_free(struct link_msg *m)
{
    api_object_unref(m->msg.obj);
    for (uint32_t i = 0; i < m->msg.nitems; i++) {
        api_object_unref(m->msg.items[i]);
    }
    hk_arena_fini(&m->mem);
    hk_free(m);
}

static const char *link_copy_text(struct hk_arena *a, const char *s)
{
    return s ? hk_arena_strndup(a, s, strlen(s)) : NULL;
}

static void link_copy_status(struct link_msg *to, const struct port_status *s)
{
    struct hk_arena *a = &to->mem;

    to->status = *s;
    to->status.reason = link_copy_text(a, s->reason);
    to->status.message = link_copy_text(a, s->message);
    to->status.name = link_copy_text(a, s->name);
    to->status.group = link_copy_text(a, s->group);
    to->status.kind = link_copy_text(a, s->kind);
    to->status.uid = link_copy_text(a, s->uid);
    to->status.cont = link_copy_text(a, s->cont);
    to->status.causes = NULL;
    to->status.ncauses = 0;
    to->msg.status = &to->status;
}

static struct link_msg *link_msg_new(const struct link_call *c, const struct port_msg *m)
{
    struct link_msg *to = hk_zalloc(sizeof(*to));
    struct api_object **items;

    to->call = c->id;
    to->msg = *m;
    to->msg.call = c->id;
    to->msg.obj = m->obj ? api_object_ref(m->obj) : NULL;
    items = hk_arena_array(&to->mem, m->nitems + 1, sizeof(*items));
    for (uint32_t i = 0; i < m->nitems; i++) {
        items[i] = api_object_ref(m->items[i]);
    }
    to->msg.items = items;
    to->msg.cont = hk_arena_str(&to->mem, m->cont);
    to->msg.warnings = NULL;
    to->msg.nwarnings = 0;
    if (m->err) {
        to->err = *m->err;
        to->msg.err = &to->err;
    }
    if (m->status) {
        link_copy_status(to, m->status);
    }
    return to;
}

static void link_send(struct link *l, struct link_call *c, const struct port_msg *m)
{
    struct link_msg *on_way = link_msg_new(c, m);

    if (link_chance(l, l->o.slow)) {
        c->not_before_ns =
            HK_MAX(c->not_before_ns, link_now(l) + (1 + hk_rand_below(l->o.rand, 5000)) * LINK_MS);
    }
    on_way->due_ns = HK_MAX(link_now(l), c->not_before_ns);
    hk_vec_push(&l->inbox, on_way);
}

static void link_send_failure(struct link *l, struct link_call *c, enum hk_code code,
                              const char *why)
{
    struct hk_err err = {0};

    hk_err_set(&err, code, "injected: %s", why);
    link_send(l, c, &(struct port_msg){.type = PORT_DONE, .rc = -(int)code, .err = &err});
}

/* The watch ends as connections, servers and histories make it end. */
static void link_cut_watch(struct link *l, struct link_call *c)
{
    port_cancel(l->o.under, c->under);
    c->under = 0;
    switch (hk_rand_below(l->o.rand, 3)) {
    case 0:
        link_send(l, c, &(struct port_msg){.type = PORT_DONE});
        break;
    case 1:
        link_send_failure(l, c, HK_EIO, "the connection broke");
        break;
    default:
        link_send_failure(l, c, HK_EGONE, "too old resource version");
        break;
    }
}

static void link_on_msg(void *ctx, const struct port_msg *m)
{
    struct link_call *c = ctx;
    struct link *l = c->link;

    if (l->o.is_dead(l->o.ctx)) {
        return;
    }
    l->o.on_answer(l->o.ctx, c, m);
    if (m->type == PORT_DONE) {
        c->under = 0;
    }
    if (l->o.drop && l->o.drop(l->o.ctx, c, m)) {
        return;
    }
    if (m->type == PORT_DONE && c->fault == LINK_LOST) {
        link_send_failure(l, c, HK_ETIMEOUT, "the answer was lost");
        return;
    }
    link_send(l, c, m);
    if (m->type != PORT_DONE && link_chance(l, l->o.cut)) {
        link_cut_watch(l, c);
    }
}

/* ---- the port ---- */

static void link_fail_unreachable(struct link *l, struct link_call *c)
{
    const int64_t wait_ms = l->silent_ms > 0 ? 1 + hk_rand_below(l->o.rand, l->silent_ms) : 0;

    c->not_before_ns = HK_MAX(c->not_before_ns, link_now(l) + wait_ms * LINK_MS);
    link_send_failure(l, c, l->silent_ms > 0 ? HK_ETIMEOUT : HK_EIO, "the server is not reached");
}

static enum link_fault link_draw(struct link *l, const struct port_request *req)
{
    const bool write = req->verb >= PORT_CREATE;
    const bool changes = req->verb == PORT_UPDATE || req->verb == PORT_PATCH;

    if (!l->o.under || !link_chance(l, l->o.faults)) {
        return LINK_PASSES;
    }
    switch (hk_rand_below(l->o.rand, 4)) {
    case 0:
        return LINK_REFUSED;
    case 1:
        return write ? LINK_LOST : LINK_REFUSED;
    case 2:
        return changes ? LINK_RACED : LINK_LATE;
    default:
        return LINK_LATE;
    }
}

static uint64_t link_submit(struct port *p, const struct port_request *req, struct port_sink sink)
{
    static const enum hk_code passing[] = {HK_EIO, HK_EBUSY, HK_ETIMEOUT};
    struct link *l = (struct link *)p;
    struct link_call *c;

    if (l->dead) {
        return ++l->last_id;
    }
    c = hk_zalloc(sizeof(*c));
    *c = (struct link_call){.link = l,
                            .id = ++l->last_id,
                            .sink = sink,
                            .verb = req->verb,
                            .kind = req->kind,
                            .fault = link_draw(l, req)};
    hk_vec_push(&l->calls, c);
    l->o.on_call(l->o.ctx, req, c->fault);
    if (!l->o.under) {
        link_fail_unreachable(l, c);
        return c->id;
    }
    if (c->fault == LINK_REFUSED) {
        link_send_failure(l, c, passing[hk_rand_below(l->o.rand, HK_LEN(passing))], "try again");
        return c->id;
    }
    if (c->fault == LINK_LATE) {
        c->not_before_ns = link_now(l) + (1 + hk_rand_below(l->o.rand, 20000)) * LINK_MS;
    }
    if (c->fault == LINK_RACED) {
        l->o.race(l->o.ctx, req);
    }
    c->under = port_submit(l->o.under, req, (struct port_sink){link_on_msg, c});
    return c->id;
}

static void link_drop_messages(struct link *l, uint64_t call)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < l->inbox.len; i++) {
        if (l->inbox.at[i]->call == call) {
            link_msg_free(l->inbox.at[i]);
        } else {
            l->inbox.at[kept++] = l->inbox.at[i];
        }
    }
    l->inbox.len = kept;
}

static void link_cancel(struct port *p, uint64_t id)
{
    struct link *l = (struct link *)p;
    uint32_t at;
    const struct link_call *c = link_call_find(l, id, &at);

    if (!c) {
        return;
    }
    if (c->under) {
        port_cancel(l->o.under, c->under);
    }
    link_drop_messages(l, id);
    link_call_end(l, id);
}

/* The place of the message that arrives next: the first of its call among those that are due. */
static uint32_t link_pick(struct link *l)
{
    const int64_t now_ns = link_now(l);
    uint32_t due = 0, nth;

    for (uint32_t i = 0; i < l->inbox.len; i++) {
        due += l->inbox.at[i]->due_ns <= now_ns;
    }
    if (due == 0) {
        return HK_NONE;
    }
    nth = l->o.shuffle ? hk_rand_below(l->o.rand, due) : 0;
    for (uint32_t i = 0; i < l->inbox.len; i++) {
        if (l->inbox.at[i]->due_ns > now_ns || nth-- > 0) {
            continue;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (l->inbox.at[k]->call == l->inbox.at[i]->call) {
                return k;
            }
        }
        return i;
    }
    return HK_NONE;
}

static void link_deliver(struct link *l, uint32_t at)
{
    struct link_msg *m = l->inbox.at[at];
    struct link_call call;
    uint32_t where;

    memmove(l->inbox.at + at, l->inbox.at + at + 1, (l->inbox.len - at - 1) * sizeof(*l->inbox.at));
    l->inbox.len--;
    call = *link_call_find(l, m->call, &where);
    if (m->msg.type == PORT_DONE) {
        link_call_end(l, m->call);
    }
    l->o.on_deliver(l->o.ctx, &call, &m->msg);
    if (call.sink.on_msg) {
        call.sink.on_msg(call.sink.ctx, &m->msg);
    }
    link_msg_free(m);
}

static uint32_t link_poll(struct port *p, uint32_t max)
{
    struct link *l = (struct link *)p;
    uint32_t n = 0, at;

    while (n < max && l->allowance > 0 && (at = link_pick(l)) != HK_NONE) {
        l->allowance--;
        link_deliver(l, at);
        n++;
    }
    return n;
}

static int link_fd(struct port *p)
{
    return -1;
}

static void link_free(struct port *p)
{
    link_fini((struct link *)p);
}

static const struct port_ops link_ops = {
    .name = "link",
    .submit = link_submit,
    .cancel = link_cancel,
    .poll = link_poll,
    .fd = link_fd,
    .free = link_free,
};

/* ---- for the world ---- */

void link_init(struct link *l, const struct link_opts *o)
{
    *l = (struct link){.port.ops = &link_ops, .o = *o};
}

void link_fini(struct link *l)
{
    for (uint32_t i = 0; i < l->inbox.len; i++) {
        link_msg_free(l->inbox.at[i]);
    }
    for (uint32_t i = 0; i < l->calls.len; i++) {
        if (l->calls.at[i]->under) {
            port_cancel(l->o.under, l->calls.at[i]->under);
        }
        hk_free(l->calls.at[i]);
    }
    hk_vec_fini(&l->inbox);
    hk_vec_fini(&l->calls);
}

int64_t link_next_ns(const struct link *l)
{
    int64_t next_ns = INT64_MAX;

    for (uint32_t i = 0; i < l->inbox.len; i++) {
        next_ns = HK_MIN(next_ns, l->inbox.at[i]->due_ns);
    }
    return next_ns;
}

uint32_t link_calls(const struct link *l, enum port_verb verb)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < l->calls.len; i++) {
        n += l->calls.at[i]->verb == verb;
    }
    return n;
}

void link_disconnect(struct link *l, uint32_t silent_ms)
{
    l->silent_ms = silent_ms;
    for (uint32_t i = 0; i < l->calls.len; i++) {
        struct link_call *c = l->calls.at[i];
        if (c->under) {
            port_cancel(l->o.under, c->under);
            c->under = 0;
            link_fail_unreachable(l, c);
        }
    }
    l->o.under = NULL;
}

void link_connect(struct link *l, struct port *under)
{
    l->o.under = under;
}

bool link_is_connected(const struct link *l)
{
    return l->o.under != NULL;
}

void link_calm(struct link *l)
{
    l->o.faults = l->o.cut = l->o.slow = 0;
    for (uint32_t i = 0; i < l->inbox.len; i++) {
        l->inbox.at[i]->due_ns = HK_MIN(l->inbox.at[i]->due_ns, link_now(l));
    }
}
