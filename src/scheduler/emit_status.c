// SPDX-License-Identifier: Apache-2.0
// Statuses: the PodScheduled condition of pods and the allocation of queues; emit_group.c does
// PodGroups. A status is written when it differs from the API's, which is known from watch events
// and kept as hashes. A write in flight counts as known; the next one for the same object waits for
// it.
#include "base/log.h"
#include "scheduler/emit_priv.h"

enum { MAKING_WAITS = 10 }; /* times reason_wait_ns */

/* ---- failures ---- */

/* Whether the same write may succeed later. */
static bool emit_status_may_retry(int rc)
{
    return rc == -HK_EIO || rc == -HK_ETIMEOUT || rc == -HK_EBUSY || rc == -HK_ECONFLICT;
}

static void emit_status_log_failure(struct emit *e, const struct write *w, const struct port_msg *m)
{
    hk_log(m->rc == -HK_ENOTFOUND ? HK_LOG_DEBUG : HK_LOG_WARN, "status write failed",
           "kind=%s namespace=%.*s name=%.*s err=\"%s\"", api_kind(w->about)->singular,
           HK_FMT(emit_str(e, w->ns)), HK_FMT(emit_str(e, w->name)), m->err->text);
}

/* ---- one write at a time ---- */

void emit_turn_ask(struct emit *e, struct write_turn *t, struct write w)
{
    if (t->busy) {
        t->again = true;
    } else if (!t->queued || t->lazy) {
        t->queued = true;
        t->lazy = false;
        emit_push(e, LANE_STATUS, w);
    }
}

void emit_turn_ask_lazily(struct emit *e, struct write_turn *t, struct write w)
{
    if (t->busy) {
        t->again_lazily = true;
    } else if (!t->queued) {
        t->queued = true;
        t->lazy = true;
        emit_push_reason(e, w);
    }
}

bool emit_turn_begin(struct write_turn *t)
{
    if (!t->queued) {
        return false;
    }
    t->queued = false;
    t->lazy = false;
    t->busy = true;
    return true;
}

bool emit_turn_end(struct emit *e, struct write_turn *t, struct write *w, const struct port_msg *m)
{
    const struct write_turn was = *t;

    *t = (struct write_turn){0};
    if (m->rc == 0) {
        w->attempts = 0;
        if (was.again) {
            emit_turn_ask(e, t, *w);
        } else if (was.again_lazily) {
            emit_turn_ask_lazily(e, t, *w);
        }
        return true;
    }
    emit_status_log_failure(e, w, m);
    if (!emit_status_may_retry(m->rc)) {
        return false;
    }
    t->queued = true;
    emit_retry(e, w);
    return true;
}

/* ---- pods ---- */

void emit_pod_condition(struct emit *e, task_id t, const char *reason, const char *message,
                        node_id nominated)
{
    const struct model *m = e->o.m;
    const struct task *task = model_task(m, t);
    const uint64_t said = known_condition_hash(HK_STR("False"), hk_str(reason), hk_str(message));
    struct pod_known *k = known_pod(e->known, t);
    const node_id promised = id_none(nominated) ? task_nominated(m, t) : nominated;
    const uint32_t node = id_none(promised) ? 0 : m->nodes.name[promised.i];
    const bool news = k->said != said;

    if (!news && node == k->nominated) {
        return;
    }
    k->said = said;
    k->forgets = node == 0 && (k->forgets || k->nominated != 0);
    known_set_id(e->known, &k->nominated, node);
    k->waiting++;
    emit_push_reason(e, (struct write){.kind = WRITE_CONDITION,
                                       .about = API_POD,
                                       .task = model_task_ref(e->o.m, t),
                                       .ns = task->ns,
                                       .name = task->name,
                                       .uid = task->uid,
                                       .reason = reason,
                                       .text = hk_strdup(message),
                                       .said = said,
                                       .news = news});
}

/* Whether the message may still be true. That a bind failed stays true as long as the pod
 * exists. */
static bool still_waits(const struct emit *e, const struct write *w)
{
    const task_id t = emit_task(e, w);

    if (id_none(t)) {
        return false;
    }
    return strcmp(w->reason, "SchedulerError") == 0 ||
           !status_in(model_task(e->o.m, t)->status,
                      STATUS_BIT(TASK_BINDING) | STATUS_BIT(TASK_BOUND) | STATUS_BIT(TASK_RUNNING));
}

/* Whether the gang's pods are still being created. With a slow API that takes seconds, and a status
 * write for each existing pod would make it slower. */
static bool is_in_the_making(const struct emit *e, const struct write *w)
{
    const task_id t = emit_task(e, w);
    const struct job *j;

    if (e->o.reason_wait_ns == 0 || id_none(t) || id_none(model_task(e->o.m, t)->job)) {
        return false;
    }
    j = model_job(e->o.m, model_task(e->o.m, t)->job);
    return w->waits < MAKING_WAITS && (int64_t)j->tally.total < j->min;
}

static bool condition_request(struct emit *e, struct write *w, struct port_request *req,
                              struct json *body)
{
    struct pod_known *k = &e->known->pods.at[w->task.row];
    struct json list = json_make_array();
    struct json c, *status;

    if (k->uid != w->uid) {
        return false;
    }
    if (k->said != w->said) {
        k->waiting--; /* a newer message follows */
        return false;
    }
    const bool early = is_in_the_making(e, w);
    if (!still_waits(e, w) || (early && e->hurry)) {
        k->waiting--;
        k->said = 0;
        return false;
    }
    if (early) {
        w->waits++;
        emit_put_off(e, w);
        return false;
    }
    if (k->busy) {
        emit_retry(e, w);
        return false;
    }
    k->busy = true;
    if (w->news) {
        w->news = false;
        emit_event_pod(e, emit_task(e, w), true, "FailedScheduling", w->text);
    }
    req->verb = PORT_PATCH;
    req->patch = PORT_PATCH_STRATEGIC;
    req->subresource = "status";
    c = emit_condition(e, "PodScheduled", "False", hk_str(w->reason), hk_str(w->text));
    if (!k->is_false) {
        json_set_time(&c, &e->mem, "lastTransitionTime", e->o.clock->wall_ns(e->o.clock));
    }
    json_push(&list, &e->mem, c);
    emit_put_uid(e, body, w);
    status = json_set_object(body, &e->mem, "status");
    json_set(status, &e->mem, "conditions", list);
    if (k->nominated) {
        json_set_str(status, &e->mem, "nominatedNodeName", emit_str(e, k->nominated));
    } else if (k->forgets) {
        /* A nomination left in the API would be restored by the next event of the pod. */
        json_set(status, &e->mem, "nominatedNodeName", (struct json){.type = JSON_NULL});
        w->forgets = true;
        k->forgets = false;
    }
    return true;
}

static void condition_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    struct pod_known *k = &e->known->pods.at[w->task.row];

    if (k->uid != w->uid) {
        return;
    }
    k->busy = false;
    k->waiting--;
    if (m->rc == 0) {
        k->is_false = true;
        return;
    }
    emit_status_log_failure(e, w, m);
    k->forgets = k->nominated == 0 && (k->forgets || w->forgets);
    if (k->said == w->said && emit_status_may_retry(m->rc)) {
        k->waiting++;
        emit_retry(e, w);
    } else if (k->said == w->said) {
        k->said = 0;
    }
}

/* ---- queues ---- */

/* Sums the amounts of each queue's tasks, for the queue and its ancestors up to `root`. */
static void sum_queues(struct emit *e)
{
    const struct model *m = e->o.m;
    const queue_id root = model_queue_find(m, HK_STR(API_QUEUE_NAME_ROOT));

    hk_vec_reserve(&e->sums, m->queues.len * DIM_MAX);
    e->sums.len = m->queues.len * DIM_MAX;
    if (e->sums.len > 0) {
        memset(e->sums.at, 0, e->sums.len * sizeof(e->sums.at[0]));
    }
    for (uint32_t i = 0; i < m->queues.len; i++) {
        queue_id q = {i};
        for (uint32_t depth = 0; m->queues.at[i].used && depth <= m->queues.len; depth++) {
            for (uint32_t d = 0; d < m->dims.n; d++) {
                e->sums.at[q.i * DIM_MAX + d] += m->queues.at[i].allocated[d];
            }
            if (id_none(root) || id_eq(q, root)) {
                break;
            }
            q = model_queue(m, q)->parent_name
                    ? model_queue_find(m, model_str(m, model_queue(m, q)->parent_name))
                    : root;
            if (id_none(q)) {
                break; /* upstream crashes on a missing parent */
            }
        }
    }
}

static void push_queue(struct emit *e, queue_id q)
{
    struct queue_known *k = &e->known->queues.at[q.i];

    emit_turn_ask_lazily(
        e, &k->turn,
        (struct write){.kind = WRITE_QUEUE, .about = API_QUEUE, .row = q.i, .name = k->name});
}

static void note_queues(struct emit *e)
{
    const struct model *m = e->o.m;

    sum_queues(e);
    for (uint32_t i = 0; i < m->queues.len; i++) {
        if (!m->queues.at[i].used) {
            continue;
        }
        struct queue_known *k = known_queue(e->known, (queue_id){i});
        const uint64_t said = known_amounts_hash(m, &e->sums.at[i * DIM_MAX]);
        if (k->said != said) {
            k->said = said;
            push_queue(e, (queue_id){i});
        }
    }
}

static struct quantity emit_status_amount_quantity(const struct model *m, uint32_t d, int64_t v)
{
    if (m->dims.unit[d] == DIM_MILLI) {
        return quantity_of_milli(v, QUANTITY_DECIMAL_SI);
    }
    return quantity_of(v, d == DIM_MEM ? QUANTITY_BINARY_SI : QUANTITY_DECIMAL_SI);
}

static bool queue_request(struct emit *e, const struct write *w, struct port_request *req,
                          struct json *body)
{
    const struct model *m = e->o.m;
    struct queue_known *k = &e->known->queues.at[w->row];
    const int64_t *v = &e->sums.at[w->row * DIM_MAX];
    struct json *list;

    if (k->name != w->name || !emit_turn_begin(&k->turn)) {
        return false;
    }
    req->verb = PORT_PATCH;
    req->patch = PORT_PATCH_MERGE;
    req->subresource = "status";
    list = json_set_object(json_set_object(body, &e->mem, "status"), &e->mem, "allocated");
    for (uint32_t d = 0; d < m->dims.n; d++) {
        struct json value = {0}; /* null deletes an old amount */
        if (known_amount_is_shown(d, v[d])) {
            value = json_make_quantity(emit_status_amount_quantity(m, d, v[d]), &e->mem);
        }
        json_put(list, &e->mem, m->dims.text[d], value);
    }
    return true;
}

static void queue_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    struct queue_known *k = &e->known->queues.at[w->row];

    if (k->name == w->name && !emit_turn_end(e, &k->turn, w, m)) {
        k->said = 0;
    }
}

/* ---- entry points ---- */

void emit_status_session(struct emit *e, const struct session *ssn)
{
    for (uint32_t k = 0; k < ssn->notes.n; k++) {
        emit_note_group(e, ssn, &ssn->notes.at[k]);
    }
    for (uint32_t k = 0; k < ssn->pod_notes.n; k++) {
        const struct pod_note *n = &ssn->pod_notes.at[k];
        emit_pod_condition(e, n->task, n->reason, n->message, n->nominated);
    }
    note_queues(e);
}

bool emit_status_request(struct emit *e, struct write *w, struct port_request *req,
                         struct json *body)
{
    switch (w->kind) {
    case WRITE_GROUP:
        return emit_group_request(e, w, req, body);
    case WRITE_QUEUE:
        return queue_request(e, w, req, body);
    case WRITE_SHARD:
        return emit_shard_request(e, req, body);
    default:
        return condition_request(e, w, req, body);
    }
}

void emit_status_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    switch (w->kind) {
    case WRITE_GROUP:
        emit_group_done(e, w, m);
        break;
    case WRITE_QUEUE:
        queue_done(e, w, m);
        break;
    case WRITE_SHARD:
        emit_shard_done(e, w, m);
        break;
    default:
        condition_done(e, w, m);
    }
}
