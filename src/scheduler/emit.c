// SPDX-License-Identifier: Apache-2.0
// Binds, evictions and removed gates, and the transport of all writes: lanes by urgency, a limit on
// requests in flight, retries for writes that must succeed eventually. emit_status.c, emit_group.c,
// emit_shard.c and emit_volume.c make the other writes; the recorder sends events.
#include "api/port_status.h"
#include "base/log.h"
#include "scheduler/emit_priv.h"

#define IN_FLIGHT_DEFAULT 64u
#define RETRY_FIRST_NS ((int64_t)100 * 1000 * 1000)
#define RETRY_LAST_NS ((int64_t)30 * 1000 * 1000 * 1000)

struct hk_str emit_str(const struct emit *e, uint32_t id)
{
    return model_str(e->o.m, id);
}

/* In the model, objects without uid have "ns/name" instead. */
struct hk_str emit_uid(const struct emit *e, uint32_t uid)
{
    const struct hk_str s = model_str(e->o.m, uid);

    return s.n > 0 && !memchr(s.s, '/', s.n) ? s : HK_STR("");
}

/* ---- bodies ---- */

struct json emit_condition(struct emit *e, const char *type, const char *status,
                           struct hk_str reason, struct hk_str message)
{
    struct json c = json_make_object();

    json_set_cstr(&c, &e->mem, "type", type);
    json_set_cstr(&c, &e->mem, "status", status);
    json_set_str(&c, &e->mem, "reason", reason);
    json_set_str(&c, &e->mem, "message", message);
    return c;
}

struct json *emit_put_uid(struct emit *e, struct json *body, const struct write *w)
{
    const struct hk_str uid = emit_uid(e, w->uid);
    struct json *meta = json_set_object(body, &e->mem, "metadata");

    if (uid.n > 0) {
        json_set_str(meta, &e->mem, "uid", uid);
    }
    return meta;
}

static void bind_request(struct emit *e, const struct write *w, struct port_request *req,
                         struct json *body)
{
    struct json *meta, *target;

    req->verb = PORT_CREATE;
    req->subresource = "binding";
    json_set_cstr(body, &e->mem, "apiVersion", "v1");
    json_set_cstr(body, &e->mem, "kind", "Binding");
    meta = json_set_object(body, &e->mem, "metadata");
    json_set_str(meta, &e->mem, "name", req->name);
    json_set_str(meta, &e->mem, "namespace", req->ns);
    if (emit_uid(e, w->uid).n > 0) {
        json_set_str(meta, &e->mem, "uid", emit_uid(e, w->uid));
    }
    target = json_set_object(body, &e->mem, "target");
    json_set_cstr(target, &e->mem, "apiVersion", "v1");
    json_set_cstr(target, &e->mem, "kind", "Node");
    json_set_str(target, &e->mem, "name", emit_str(e, w->node));
}

/* The conditions a pod gets before its eviction: not ready, and the preemptor. */
static void mark_request(struct emit *e, const struct write *w, struct port_request *req,
                         struct json *body)
{
    const int64_t now_ns = e->o.clock->wall_ns(e->o.clock);
    struct json list = json_make_array();
    struct json c = emit_condition(
        e, "Ready", "False", HK_STR("Evict"),
        hk_str(hk_arena_printf(&e->mem, "Pod is evicted, because of %s", w->reason)));

    req->verb = PORT_PATCH;
    req->patch = PORT_PATCH_STRATEGIC;
    req->subresource = "status";
    json_set_time(&c, &e->mem, "lastTransitionTime", now_ns);
    json_push(&list, &e->mem, c);
    c = emit_condition(
        e, "DisruptionTarget", "True", HK_STR("PreemptionByScheduler"),
        hk_str(hk_arena_printf(&e->mem, "%s: preempting to accommodate a higher priority pod",
                               e->component)));
    json_set_time(&c, &e->mem, "lastTransitionTime", now_ns);
    json_push(&list, &e->mem, c);
    emit_put_uid(e, body, w);
    json_set(json_set_object(body, &e->mem, "status"), &e->mem, "conditions", list);
}

static void evict_request(struct emit *e, const struct write *w, struct port_request *req)
{
    req->verb = PORT_DELETE;
    req->if_uid = emit_uid(e, w->uid);
}

/* Deletes our scheduling gate by its name; other gates stay. */
static bool gate_request(struct emit *e, const struct write *w, struct port_request *req,
                         struct json *body)
{
    const task_id t = emit_task(e, w);
    struct json list = json_make_array();
    struct json gate = json_make_object();

    if (id_none(t) || !(model_task(e->o.m, t)->flags & TASK_GATED)) {
        return false;
    }
    req->verb = PORT_PATCH;
    req->patch = PORT_PATCH_STRATEGIC;
    json_set_cstr(&gate, &e->mem, "$patch", "delete");
    json_set_cstr(&gate, &e->mem, "name", API_QUEUE_ALLOCATION_GATE);
    json_push(&list, &e->mem, gate);
    emit_put_uid(e, body, w);
    json_set(json_set_object(body, &e->mem, "spec"), &e->mem, "schedulingGates", list);
    return true;
}

/* False when the object of the write is gone. */
static bool fill_request(struct emit *e, struct write *w, struct port_request *req,
                         struct json *body)
{
    req->kind = api_kind(w->about);
    req->ns = emit_str(e, w->ns);
    req->name = emit_str(e, w->name);
    switch ((enum write_kind)w->kind) {
    case WRITE_BIND:
        bind_request(e, w, req, body);
        return true;
    case WRITE_EVICT_MARK:
        mark_request(e, w, req, body);
        return true;
    case WRITE_EVICT:
        evict_request(e, w, req);
        return true;
    case WRITE_VOLUME:
        return emit_volume_request(e, w, req, body);
    case WRITE_GATE:
        return gate_request(e, w, req, body);
    default:
        return emit_status_request(e, w, req, body);
    }
}

/* ---- sending ---- */

void emit_write_keep(struct emit *e, const struct write *w)
{
    const uint32_t ids[] = {w->ns, w->name, w->uid, w->node};

    for (size_t k = 0; k < HK_LEN(ids); k++) {
        hk_intern_keep(&e->o.m->str, ids[k]);
    }
}

void emit_write_fini(struct emit *e, struct write *w)
{
    const uint32_t ids[] = {w->ns, w->name, w->uid, w->node};

    for (size_t k = 0; k < HK_LEN(ids); k++) {
        hk_intern_drop(&e->o.m->str, ids[k]);
    }
    hk_free(w->text);
    *w = (struct write){0};
}

/* Puts a write that holds its references into a lane and clears *w. */
static void lane_put(struct lane *l, struct write *w)
{
    hk_vec_push(&l->q, *w);
    *w = (struct write){0};
}

void emit_push(struct emit *e, unsigned lane, struct write w)
{
    emit_write_keep(e, &w);
    lane_put(&e->lanes[lane], &w);
}

void emit_put_off(struct emit *e, struct write *w)
{
    w->due_ns = e->o.clock->mono_ns(e->o.clock) + e->o.reason_wait_ns;
    lane_put(&e->reasons, w);
}

void emit_push_reason(struct emit *e, struct write w)
{
    emit_write_keep(e, &w);
    if (e->o.reason_wait_ns > 0 && !e->hurry) {
        emit_put_off(e, &w);
    } else {
        lane_put(&e->lanes[LANE_STATUS], &w);
    }
}

static bool lane_take(struct lane *l, struct write *ret)
{
    if (l->head == l->q.len) {
        return false;
    }
    *ret = l->q.at[l->head++];
    if (l->head == l->q.len) {
        hk_vec_clear(&l->q);
        l->head = 0;
    } else if (l->head >= 1024 && l->head > l->q.len / 2) {
        memmove(l->q.at, l->q.at + l->head, (l->q.len - l->head) * sizeof(l->q.at[0]));
        l->q.len -= l->head;
        l->head = 0;
    }
    return true;
}

void emit_retry(struct emit *e, struct write *w)
{
    const int64_t wait = RETRY_FIRST_NS << HK_MIN(w->attempts, 9);

    w->attempts = (uint8_t)HK_MIN(w->attempts + 1, 100);
    w->due_ns = e->o.clock->mono_ns(e->o.clock) + HK_MIN(wait, RETRY_LAST_NS);
    hk_vec_push(&e->later, *w);
    *w = (struct write){0};
}

/* Puts writes that are due back into their lane. Returns when the next one is due. */
static int64_t wake_later(struct emit *e)
{
    const int64_t now_ns = e->o.clock->mono_ns(e->o.clock);
    int64_t next_ns = INT64_MAX;
    uint32_t n = 0;

    for (uint32_t k = 0; k < e->later.len; k++) {
        struct write *w = &e->later.at[k];
        if (w->due_ns <= now_ns) {
            lane_put(&e->lanes[LANE_STATUS], w);
        } else {
            next_ns = HK_MIN(next_ns, w->due_ns);
            e->later.at[n++] = *w;
        }
    }
    e->later.len = n;
    return next_ns;
}

/* The same for reasons, which are sorted by due time. */
static int64_t wake_reasons(struct emit *e)
{
    const int64_t now_ns = e->o.clock->mono_ns(e->o.clock);
    struct lane *l = &e->reasons;
    struct write w;

    while (l->head < l->q.len && (e->hurry || l->q.at[l->head].due_ns <= now_ns) &&
           lane_take(l, &w)) {
        lane_put(&e->lanes[LANE_STATUS], &w);
    }
    return l->head < l->q.len ? l->q.at[l->head].due_ns : INT64_MAX;
}

task_id emit_task(const struct emit *e, const struct write *w)
{
    return model_task_of(e->o.m, w->task);
}

void emit_tell(struct emit *e, const struct write *w, enum emit_outcome what)
{
    const task_id t = emit_task(e, w);

    if (!id_none(t)) {
        hk_vec_push(&e->results, ((struct emit_result){w->task, what}));
    }
}

bool emit_has_result(const struct emit *e)
{
    return e->nread < e->results.len;
}

bool emit_next_result(struct emit *e, struct emit_result *ret)
{
    if (!emit_has_result(e)) {
        hk_vec_clear(&e->results);
        e->nread = 0;
        return false;
    }
    *ret = e->results.at[e->nread++];
    return true;
}

const char *emit_about(struct emit *e, const struct write *w)
{
    hk_buf_clear(&e->text);
    hk_buf_addf(&e->text, "%.*s/%.*s", HK_FMT(emit_str(e, w->ns)), HK_FMT(emit_str(e, w->name)));
    return e->text.data;
}

static void bind_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    const task_id t = emit_task(e, w);
    const struct hk_str node = emit_str(e, w->node);
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    meter_attempts(e->o.meter, m->rc == 0 ? METER_SCHEDULED : METER_ERROR, 1);
    if (m->rc == 0 && !id_none(t)) {
        meter_task(e->o.meter, METER_BOUND, model_task(e->o.m, t));
    }
    if (m->rc == 0) {
        hk_buf_addf(&text, "Successfully assigned %.*s/%.*s to %.*s", HK_FMT(emit_str(e, w->ns)),
                    HK_FMT(emit_str(e, w->name)), HK_FMT(node));
        emit_event(e, (struct event_about){API_POD, w->ns, w->name, w->uid}, false, "Scheduled",
                   text.data);
        emit_tell(e, w, EMIT_BOUND);
        return;
    }
    hk_log(HK_LOG_WARN, "bind failed", "pod=%s node=%.*s err=\"%s\"", emit_about(e, w),
           HK_FMT(node), m->err->text);
    if (!id_none(t) && m->rc != -HK_ENOTFOUND) {
        hk_buf_addf(&text, "failed to bind to node %.*s: %s", HK_FMT(node), m->err->text);
        emit_pod_condition(e, t, "SchedulerError", text.data, NO_NODE);
    }
    emit_tell(e, w, port_status_namespace_ends(m->status) ? EMIT_BIND_REFUSED : EMIT_BIND_FAILED);
}

/* Deletes the pod even if it had the conditions already. Upstream's Evict stops in that case, and
 * never deletes a pod whose first deletion failed. */
static void mark_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    if (m->rc < 0) {
        hk_log(HK_LOG_WARN, "eviction failed", "pod=%s err=\"%s\"", emit_about(e, w), m->err->text);
        emit_tell(e, w, EMIT_EVICT_FAILED);
        return;
    }
    w->kind = WRITE_EVICT;
    lane_put(&e->lanes[LANE_PODS], w);
}

static void evict_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    if (m->rc < 0) {
        hk_log(HK_LOG_WARN, "eviction failed", "pod=%s err=\"%s\"", emit_about(e, w), m->err->text);
        emit_tell(e, w, EMIT_EVICT_FAILED);
    }
}

/* No retry here: the next session asks the queue again. */
static void gate_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    const task_id t = emit_task(e, w);

    if (m->rc < 0) {
        hk_log(HK_LOG_WARN, "scheduling gate not removed", "pod=%s err=\"%s\"", emit_about(e, w),
               m->err->text);
    }
    if (m->rc < 0 && !id_none(t)) {
        known_pod(e->known, t)->ungated = false;
    }
    emit_tell(e, w, m->rc < 0 ? EMIT_GATE_FAILED : EMIT_GATE_OPEN);
}

static void emit_on_done(void *ctx, const struct port_msg *m)
{
    static void (*const done[WRITE_NKINDS])(struct emit *, struct write *,
                                            const struct port_msg *) = {
        [WRITE_BIND] = bind_done,         [WRITE_EVICT_MARK] = mark_done,
        [WRITE_EVICT] = evict_done,       [WRITE_CONDITION] = emit_status_done,
        [WRITE_GROUP] = emit_status_done, [WRITE_QUEUE] = emit_status_done,
        [WRITE_SHARD] = emit_status_done, [WRITE_VOLUME] = emit_volume_done,
        [WRITE_GATE] = gate_done,
    };
    struct flight *f = ctx;
    struct write w = f->w;

    f->used = false;
    f->e->busy--;
    if (w.kind == WRITE_BIND && m->rc == 0) {
        meter_stage(f->e->o.meter, METER_BIND, f->since_ns);
    }
    done[w.kind](f->e, &w, m);
    emit_write_fini(f->e, &w);
}

static void emit_send_write(struct emit *e, struct write w)
{
    struct port_request req = {.field_manager = hk_str(e->component)};
    struct json body = json_make_object();
    struct flight *f = e->flights;

    if (!fill_request(e, &w, &req, &body)) {
        emit_write_fini(e, &w);
        hk_arena_clear(&e->mem);
        return;
    }
    while (f->used) {
        f++;
    }
    *f = (struct flight){.e = e, .w = w, .since_ns = meter_start(e->o.meter), .used = true};
    if (w.kind == WRITE_BIND && !id_none(emit_task(e, &w))) {
        meter_task(e->o.meter, METER_PREBOUND, model_task(e->o.m, emit_task(e, &w)));
    }
    e->busy++;
    req.body = req.verb == PORT_DELETE ? NULL : &body;
    f->call = port_submit(e->o.port, &req, (struct port_sink){emit_on_done, f});
    hk_arena_clear(&e->mem);
}

int64_t emit_pump(struct emit *e)
{
    const int64_t volume_ns = emit_volume_tick(e);
    const int64_t later_ns = wake_later(e), reason_ns = wake_reasons(e);
    const int64_t next_ns = HK_MIN(HK_MIN(later_ns, reason_ns), volume_ns);
    struct write w;

    for (unsigned lane = 0; lane < LANE_N; lane++) {
        while (e->busy < e->nflight && lane_take(&e->lanes[lane], &w)) {
            emit_send_write(e, w);
        }
    }
    return next_ns;
}

void emit_hurry(struct emit *e)
{
    e->hurry = true;
}

uint32_t emit_backlog(const struct emit *e)
{
    uint32_t n = e->busy + e->later.len + e->prebinds.len + recorder_len(e->recorder);

    n += e->reasons.q.len - e->reasons.head;
    for (unsigned lane = 0; lane < LANE_N; lane++) {
        n += e->lanes[lane].q.len - e->lanes[lane].head;
    }
    return n;
}

/* ---- decisions ---- */

static struct write pod_write(const struct emit *e, task_id t, enum write_kind kind)
{
    const struct task *task = model_task(e->o.m, t);

    return (struct write){.kind = (uint8_t)kind,
                          .about = API_POD,
                          .task = model_task_ref(e->o.m, t),
                          .ns = task->ns,
                          .name = task->name,
                          .uid = task->uid};
}

static void emit_push_bind(struct emit *e, const struct decision *d, int64_t volume_wait_ns)
{
    struct write w = pod_write(e, d->task, WRITE_BIND);

    w.node = e->o.m->nodes.name[d->node.i];
    if (!emit_prebind(e, &w, volume_wait_ns)) {
        emit_push(e, LANE_PODS, w);
    }
}

static void evict(struct emit *e, const struct decision *d)
{
    const job_id j = model_task(e->o.m, d->task)->job;
    struct write w = pod_write(e, d->task, WRITE_EVICT_MARK);
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    w.reason = d->reason;
    emit_push(e, LANE_PODS, w);
    hk_buf_addf(&text, "Pod is evicted, because of %s", d->reason);
    emit_event_pod(e, d->task, true, "Evict", text.data);
    if (!id_none(j) && model_job(e->o.m, j)->has_pg) {
        emit_event_group(e, j, false, "Evict", d->reason);
    }
}

static void ungate(struct emit *e, task_id t)
{
    struct pod_known *k = known_pod(e->known, t);

    if (!k->ungated) { /* stays set until the pod comes back without the gate */
        k->ungated = true;
        emit_push(e, LANE_PODS, pod_write(e, t, WRITE_GATE));
    }
}

void emit_session(struct emit *e, const struct session *ssn)
{
    for (uint32_t k = 0; k < ssn->decisions.len; k++) {
        const struct decision *d = &ssn->decisions.at[k];
        if (d->kind == OP_EVICT) {
            evict(e, d);
        } else {
            emit_push_bind(e, d, ssn->volume_wait_ns);
        }
    }
    for (uint32_t k = 0; k < ssn->gates.len; k++) {
        ungate(e, ssn->gates.at[k]);
    }
    emit_status_session(e, ssn);
    emit_pump(e);
}

/* ---- life cycle ---- */

struct emit *emit_new(const struct emit_opts *o)
{
    struct emit *e = hk_zalloc(sizeof(*e));

    e->o = *o;
    e->known = o->known;
    e->component = hk_strndup(o->component.s, o->component.n);
    e->prebind_due_ns = INT64_MAX;
    e->nflight = o->in_flight > 0 ? o->in_flight : IN_FLIGHT_DEFAULT;
    e->flights = hk_zalloc_array(e->nflight, sizeof(*e->flights));
    e->recorder = recorder_new(o->port, o->clock, o->component);
    return e;
}

void emit_free(struct emit *e)
{
    struct write w;

    if (!e) {
        return;
    }
    for (uint32_t k = 0; k < e->nflight; k++) {
        if (e->flights[k].used) {
            port_cancel(e->o.port, e->flights[k].call);
            emit_write_fini(e, &e->flights[k].w);
        }
    }
    for (unsigned lane = 0; lane < LANE_N; lane++) {
        while (lane_take(&e->lanes[lane], &w)) {
            emit_write_fini(e, &w);
        }
        hk_vec_fini(&e->lanes[lane].q);
    }
    while (lane_take(&e->reasons, &w)) {
        emit_write_fini(e, &w);
    }
    hk_vec_fini(&e->reasons.q);
    for (uint32_t k = 0; k < e->later.len; k++) {
        emit_write_fini(e, &e->later.at[k]);
    }
    hk_vec_fini(&e->later);
    emit_volume_fini(e);
    hk_vec_fini(&e->sums);
    hk_vec_fini(&e->results);
    recorder_free(e->recorder);
    hk_free(e->flights);
    hk_free(e->component);
    hk_arena_fini(&e->mem);
    hk_buf_fini(&e->text);
    hk_free(e);
}
