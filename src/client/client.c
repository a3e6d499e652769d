// SPDX-License-Identifier: Apache-2.0
// The client as a port: the table of calls, the line in which they wait, and the queue of messages
// that port_poll empties. Callbacks run only from port_poll, never inside libcurl, so a callback
// may submit and cancel calls.
#include "client/client_priv.h"

#include <stdarg.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- messages ---- */

struct message *client_message(struct call *k, enum port_msg_type type)
{
    struct message *m = hk_zalloc(sizeof(*m));

    m->msg.type = type;
    m->msg.call = k->id;
    m->msg.cont = HK_STR("");
    return m;
}

struct message *client_failure(struct call *k, enum hk_code code, const char *fmt, ...)
{
    struct message *m = client_message(k, PORT_DONE);
    char text[sizeof(m->err.text)];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    m->msg.rc = hk_fail(&m->err, code, "%s", text);
    return m;
}

void client_message_free(struct message *m)
{
    if (!m) {
        return;
    }
    api_object_unref(m->msg.obj);
    for (uint32_t i = 0; i < m->msg.nitems; i++) {
        api_object_unref(m->msg.items[i]);
    }
    hk_arena_fini(&m->mem);
    hk_free(m);
}

static void client_wake_loop(struct client *c)
{
    const uint64_t one = 1;

    if (!c->event_set) {
        c->event_set = write(c->event_fd, &one, sizeof(one)) == (ssize_t)sizeof(one);
    }
}

static void hush(struct client *c)
{
    uint64_t n;

    if (c->event_set) {
        c->event_set = read(c->event_fd, &n, sizeof(n)) < 0;
    }
}

void client_send(struct client *c, struct message *m)
{
    m->bytes = sizeof(*m) + (m->msg.obj ? m->msg.obj->text.n : 0);
    for (uint32_t i = 0; i < m->msg.nitems; i++) {
        m->bytes += m->msg.items[i]->text.n;
    }
    c->waiting_bytes += m->bytes;
    hk_vec_push(&c->queue, m);
    client_wake_loop(c);
}

void client_finish(struct call *k, struct message *m)
{
    if (k->attempts > 0 && !call_is_stream(k)) {
        meter_end(k);
    }
    k->state = CALL_DONE;
    client_send(k->c, m);
}

/* ---- calls ---- */

static struct call *call_find(const struct client *c, uint64_t id)
{
    const uint32_t slot = hk_map_get(&c->slots, id);

    return slot == HK_NONE ? NULL : c->calls.at[slot];
}

static void call_enter(struct client *c, struct call *k)
{
    if (c->free_slots.len > 0) {
        k->slot = hk_vec_pop(&c->free_slots);
        c->calls.at[k->slot] = k;
    } else {
        k->slot = c->calls.len;
        hk_vec_push(&c->calls, k);
    }
    hk_map_put(&c->slots, k->id, k->slot);
}

static void line_remove(struct call *k)
{
    struct call_list *l = &k->c->line[k->rank];

    *(k->prev ? &k->prev->next : &l->head) = k->next;
    *(k->next ? &k->next->prev : &l->tail) = k->prev;
    k->prev = k->next = NULL;
}

void client_queue(struct call *k, bool front)
{
    struct call_list *l = &k->c->line[k->rank];

    k->state = CALL_QUEUED;
    k->queued_ns = net_loop_now_ns(k->c->o.loop);
    k->prev = front ? NULL : l->tail;
    k->next = front ? l->head : NULL;
    *(k->prev ? &k->prev->next : &l->head) = k;
    *(k->next ? &k->next->prev : &l->tail) = k;
    client_pump_soon(k->c);
}

static void call_free(struct call *k)
{
    struct client *c = k->c;

    if (k->state == CALL_QUEUED) {
        line_remove(k);
    }
    call_release(k);
    hk_map_del(&c->slots, k->id);
    c->calls.at[k->slot] = NULL;
    hk_vec_push(&c->free_slots, k->slot);
    net_timer_free(k->timer);
    target_fini(&k->target);
    hk_buf_fini(&k->answer);
    list_reader_fini(&k->list);
    for (uint32_t i = 0; i < k->warnings.len; i++) {
        hk_free(k->warnings.at[i]);
    }
    hk_vec_fini(&k->warnings);
    frame_fini(&k->frame);
    client_message_free(k->last);
    hk_free(k);
}

/* Leases first among queued calls: a lease expires while its renewal waits behind slow calls. Then
 * binds, for which users wait; events last. */
static enum call_rank client_request_rank(const struct port_request *req)
{
    if (req->verb == PORT_WATCH) {
        return RANK_AT_ONCE;
    }
    if (req->kind->id == API_LEASE) {
        return RANK_LEASE;
    }
    if (req->subresource && strcmp(req->subresource, "binding") == 0) {
        return RANK_HIGH;
    }
    return req->kind->id == API_EVENT ? RANK_LOW : RANK_NORMAL;
}

struct call *client_call(struct client *c, const struct port_request *req, struct port_sink sink)
{
    struct call *k = hk_zalloc(sizeof(*k));

    k->c = c;
    k->id = ++c->last_call;
    k->sink = sink;
    k->kind = req->kind;
    k->verb = (uint8_t)req->verb;
    k->rank = (uint8_t)client_request_rank(req);
    k->text_only = req->text_only;
    k->bookmarks = req->bookmarks;
    k->initial_mark = req->initial == PORT_INITIAL_SEND;
    k->eviction = req->subresource && strcmp(req->subresource, "eviction") == 0;
    k->frame.max = c->o.max_event_bytes;
    k->list = (struct list_reader){
        .kind = req->kind,
        .text_only = req->text_only,
        .max_item = c->o.max_event_bytes,
        .max_held = req->limit > 0 ? c->o.max_page_bytes : c->o.max_lists_bytes,
        .held_all = &c->list_bytes,
        .max_held_all = c->o.max_lists_bytes,
    };
    k->asked_ns = net_loop_now_ns(c->o.loop);
    call_enter(c, k);
    return k;
}

/* ---- the line ---- */

void client_pump_soon(struct client *c)
{
    net_timer_at(c->pump, net_loop_now_ns(c->o.loop));
}

static void refill(struct client *c)
{
    const int64_t now = net_loop_now_ns(c->o.loop);

    c->tokens += (double)(now - c->tokens_ns) / 1e9 * c->o.qps;
    c->tokens = HK_MIN(c->tokens, (double)c->o.burst);
    c->tokens_ns = now;
}

/* Whether the rate limit allows one more call; if not, a timer checks the line again. */
static bool take_token(struct client *c)
{
    if (c->o.qps < 0) {
        return true;
    }
    if (c->tokens < 1) {
        refill(c);
    }
    if (c->tokens < 1) {
        const double wait_ns = (1 - c->tokens) / c->o.qps * 1e9;
        net_timer_at(c->pump, c->tokens_ns + (int64_t)HK_MIN(wait_ns, 60e9) + 1);
        return false;
    }
    c->tokens -= 1;
    return true;
}

/* The caller may lose the right to write (its leadership) while the call waits. */
static bool is_barred(const struct call *k)
{
    const struct client_opts *o = &k->c->o;

    return k->verb >= PORT_CREATE && k->kind->id != API_LEASE && o->may_write &&
           !o->may_write(o->ctx);
}

static void start_head(struct client *c, enum call_rank rank)
{
    struct call *k = c->line[rank].head;

    line_remove(k);
    if (is_barred(k)) {
        client_finish(k, client_failure(k, HK_EDENIED, "this process may no longer write"));
        return;
    }
    if (rank > RANK_LEASE) {
        meter_turn(k);
    }
    call_start(k);
}

static bool line_empty(const struct client *c)
{
    for (int rank = 0; rank < NRANKS; rank++) {
        if (c->line[rank].head) {
            return false;
        }
    }
    return true;
}

void client_fail_line(struct client *c, const struct hk_err *err)
{
    for (int rank = 0; rank < NRANKS; rank++) {
        while (c->line[rank].head) {
            struct call *k = c->line[rank].head;
            line_remove(k);
            client_finish(k, client_failure(k, HK_EIO, "no credentials: %s", err->text));
        }
    }
}

static void on_pump(void *ctx)
{
    struct client *c = ctx;
    struct hk_err err = {0};

    if (line_empty(c)) {
        return;
    }
    const enum auth_ready ready = auth_ready(c, &err);
    if (ready == AUTH_FAILED) {
        client_fail_line(c, &err);
    }
    if (ready != AUTH_READY) {
        return;
    }
    while (c->line[RANK_AT_ONCE].head) {
        start_head(c, RANK_AT_ONCE);
    }
    while (c->line[RANK_LEASE].head && c->leases < c->o.connections) {
        start_head(c, RANK_LEASE);
    }
    for (int rank = RANK_HIGH; rank < NRANKS; rank++) {
        while (c->line[rank].head) {
            if (c->active >= c->o.connections || !take_token(c)) {
                return;
            }
            start_head(c, (enum call_rank)rank);
        }
    }
}

/* ---- the port ---- */

static struct client *client_of(struct port *p)
{
    return (struct client *)p;
}

/* The same range as in client-go, so that streams do not end all at once. */
static uint32_t watch_timeout_s(struct client *c)
{
    return 300 + hk_rand_below(c->o.rand, 300);
}

static uint64_t client_submit(struct port *p, const struct port_request *req, struct port_sink sink)
{
    struct client *c = client_of(p);
    struct call *k = client_call(c, req, sink);
    const uint32_t timeout_s = req->verb == PORT_WATCH ? watch_timeout_s(c) : 0;
    struct hk_err err = {0};

    if (target_make(req, timeout_s, &k->target, &err) < 0) {
        client_finish(k, client_failure(k, (enum hk_code)err.code, "%s", err.text));
    } else {
        client_queue(k, false);
    }
    return k->id;
}

/* Messages of a call that left the table are dropped on delivery. */
static void client_cancel(struct port *p, uint64_t call)
{
    struct call *k = call_find(client_of(p), call);

    if (k) {
        call_free(k);
    }
}

/* True if a callback got the message. */
static bool client_deliver_message(struct client *c, struct message *m)
{
    struct call *k = call_find(c, m->msg.call);

    if (!k) {
        return false;
    }
    const struct port_sink sink = k->sink;
    if (m->msg.type == PORT_DONE) {
        call_free(k);
    }
    if (m->msg.rc < 0) {
        m->msg.err = &m->err;
    }
    if (sink.on_msg) {
        sink.on_msg(sink.ctx, &m->msg);
    }
    return true;
}

/* Moves the remaining messages to the front. */
static void queue_compact(struct client *c)
{
    c->queue.len -= c->queue_at;
    if (c->queue.len > 0) {
        memmove(c->queue.at, c->queue.at + c->queue_at, c->queue.len * sizeof(*c->queue.at));
    }
    c->queue_at = 0;
}

static uint32_t client_poll(struct port *p, uint32_t max)
{
    struct client *c = client_of(p);
    uint32_t n = 0;

    while (n < max && c->queue_at < c->queue.len) {
        struct message *m = c->queue.at[c->queue_at++];
        c->waiting_bytes -= m->bytes;
        n += client_deliver_message(c, m);
        client_message_free(m);
    }
    if (c->queue_at == c->queue.len) {
        hush(c);
    }
    if (c->queue_at * 2 >= c->queue.len) {
        queue_compact(c);
    }
    if (c->waiting_bytes < c->o.max_waiting_bytes / 2) {
        watch_resume(c);
    }
    return n;
}

static int client_fd(struct port *p)
{
    return client_of(p)->event_fd;
}

static void client_free(struct port *p)
{
    struct client *c = client_of(p);

    for (uint32_t i = 0; i < c->calls.len; i++) {
        if (c->calls.at[i]) {
            call_free(c->calls.at[i]);
        }
    }
    for (uint32_t i = c->queue_at; i < c->queue.len; i++) {
        client_message_free(c->queue.at[i]);
    }
    multi_fini(c);
    auth_fini(c);
    meter_fini(c);
    net_timer_free(c->pump);
    if (c->event_fd >= 0) {
        close(c->event_fd);
    }
    hk_vec_fini(&c->calls);
    hk_vec_fini(&c->free_slots);
    hk_map_fini(&c->slots);
    hk_vec_fini(&c->queue);
    kubeconfig_fini(&c->config);
    hk_free(c);
}

/* ---- the client ---- */

/* A connection is made when all others are busy and a call waits. */
static uint32_t connections_for(double qps)
{
    const double slow_s = 0.03, least = 16, most = 64;

    return (uint32_t)(qps < 0 ? most : HK_MIN(HK_MAX(qps * slow_s, least), most));
}

static void set_defaults(struct client_opts *o)
{
    const struct client_opts usual = {
        .user_agent = "hekla/" HEKLA_VERSION,
        .qps = 50,
        .burst = 100,
        .request_timeout_ms = 60000,
        .connect_timeout_ms = 10000,
        .watch_stall_ms = 100000, /* servers send bookmarks every minute */
        .retry_first_ms = 250,
        .retry_last_ms = 8000,
        .retries = 6,
        .max_event_bytes = (size_t)16 << 20,
        .max_answer_bytes = (size_t)64 << 20,
        .max_page_bytes = (size_t)256 << 20,
        .max_lists_bytes = (size_t)1 << 30,
        .max_waiting_bytes = (size_t)64 << 20,
    };

#define OR_USUAL(field) (o->field = o->field ? o->field : usual.field)
    OR_USUAL(user_agent);
    o->qps = o->qps < 0 || o->qps > 0 ? o->qps : usual.qps;
    OR_USUAL(burst);
    o->connections = o->connections ? o->connections : connections_for(o->qps);
    OR_USUAL(request_timeout_ms);
    OR_USUAL(connect_timeout_ms);
    OR_USUAL(watch_stall_ms);
    OR_USUAL(retry_first_ms);
    OR_USUAL(retry_last_ms);
    OR_USUAL(retries);
    OR_USUAL(max_event_bytes);
    OR_USUAL(max_answer_bytes);
    OR_USUAL(max_page_bytes);
    OR_USUAL(max_lists_bytes);
    OR_USUAL(max_waiting_bytes);
#undef OR_USUAL
}

int client_new(const struct client_opts *o, struct kubeconfig *config, struct client **ret,
               struct hk_err *err)
{
    static const struct port_ops ops = {
        .name = "client",
        .submit = client_submit,
        .cancel = client_cancel,
        .poll = client_poll,
        .fd = client_fd,
        .free = client_free,
    };
    struct client *c = hk_zalloc(sizeof(*c));

    c->port.ops = &ops;
    c->o = *o;
    set_defaults(&c->o);
    c->config = *config;
    *config = (struct kubeconfig){0};
    c->tokens = c->o.burst;
    c->tokens_ns = net_loop_now_ns(o->loop);
    c->pump = net_timer_new(o->loop, on_pump, c);
    c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    auth_init(c);
    meter_init(c);
    int rc = c->event_fd < 0 ? hk_fail(err, HK_EIO, "cannot make an event descriptor: %m") : 0;
    if (rc == 0) {
        rc = auth_load(c, err);
    }
    if (rc == 0) {
        rc = multi_init(c, err);
    }
    if (rc < 0) {
        client_free(&c->port);
        return rc;
    }
    *ret = c;
    return 0;
}

struct port *client_port(struct client *c)
{
    return &c->port;
}

const struct kubeconfig *client_config(const struct client *c)
{
    return &c->config;
}
