// SPDX-License-Identifier: Apache-2.0
// Statuses: the phase, counters and conditions of PodGroups, the PodScheduled condition of pods,
// what queues hold. Written when they differ from what the API is known to say, which is learned
// from its events and kept as hashes. A write under way counts as known; the next one of the same
// object waits for it.
#include "api/podgroup.h"
#include "api/queue.h"
#include "base/log.h"
#include "scheduler/emit_priv.h"

static const struct {
    const char *type, *reason;
} cond_words[COND_N] = {
    [COND_UNSCHEDULABLE] = {"Unschedulable", "NotEnoughResources"},
    [COND_SCHEDULED] = {"Scheduled", "tasks in gang are ready to be scheduled"},
};

static const char *const cond_status_words[] = {[COND_TRUE] = "True", [COND_FALSE] = "False"};

#define NEED_ROW(vec, i)                                                                           \
    while ((vec)->len <= (i)) {                                                                    \
        hk_vec_push(vec, ((__typeof__((vec)->at[0])){0}));                                         \
    }

static uint64_t hash2(struct hk_str a, struct hk_str b)
{
    return emit_hash(emit_hash(1, a), b) | 1; /* 0 is unknown */
}

static uint64_t hash3(struct hk_str a, struct hk_str b, struct hk_str c)
{
    return emit_hash(emit_hash(emit_hash(1, a), b), c) | 1;
}

/* ---- rows ---- */

static struct pod_known *pod_row(struct emit *e, task_id t)
{
    const uint32_t uid = model_task(e->o.m, t)->uid;
    struct pod_known *k;

    NEED_ROW(&e->pods, t.i);
    k = &e->pods.at[t.i];
    if (k->uid != uid) {
        *k = (struct pod_known){.uid = uid};
    }
    return k;
}

static void group_clear(struct group_known *k)
{
    hk_free(k->others);
    hk_free(k->message);
    *k = (struct group_known){0};
}

static struct group_known *group_row(struct emit *e, job_id j)
{
    const uint32_t uid = model_job(e->o.m, j)->uid;
    struct group_known *k;

    NEED_ROW(&e->groups, j.i);
    k = &e->groups.at[j.i];
    if (k->uid != uid) {
        group_clear(k);
        k->uid = uid;
    }
    return k;
}

static struct queue_known *queue_row(struct emit *e, queue_id q)
{
    const uint32_t name = model_queue(e->o.m, q)->name;
    struct queue_known *k;

    NEED_ROW(&e->queues, q.i);
    k = &e->queues.at[q.i];
    if (k->name != name) {
        *k = (struct queue_known){.name = name};
    }
    return k;
}

/* ---- transitionIDs ---- */

static void id_make(uint64_t run, uint64_t session, uint64_t ret[2])
{
    ret[0] = hk_mix(run + session * 0x9e3779b97f4a7c15ULL);
    ret[1] = hk_mix(ret[0] ^ session);
    ret[0] = (ret[0] & ~0xf000ULL) | 0x4000;          /* version 4 */
    ret[1] = (ret[1] & ~(3ULL << 62)) | (2ULL << 62); /* its variant */
}

static char *id_text(struct emit *e, const uint64_t id[2])
{
    return hk_arena_printf(&e->mem, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(id[0] >> 32),
                           (unsigned)(id[0] >> 16) & 0xffff, (unsigned)id[0] & 0xffff,
                           (unsigned)(id[1] >> 48), (unsigned long long)id[1] & 0xffffffffffffULL);
}

/* What is no UUID gets one that stands for it. */
static void id_parse(struct hk_str s, uint64_t ret[2])
{
    unsigned a, b, c, d;
    unsigned long long f;
    char text[40] = "";

    if (s.n == 36) {
        memcpy(text, s.s, 36);
    }
    if (sscanf(text, "%8x-%4x-%4x-%4x-%12llx", &a, &b, &c, &d, &f) == 5) {
        ret[0] = (uint64_t)a << 32 | (uint64_t)b << 16 | c;
        ret[1] = (uint64_t)d << 48 | f;
    } else {
        id_make(emit_hash(1, s), 0, ret);
    }
}

/* ---- PodGroups ---- */

static void push_group(struct emit *e, job_id j)
{
    const struct job *job = model_job(e->o.m, j);
    struct group_known *k = &e->groups.at[j.i];

    if (k->busy) {
        k->again = true;
    } else if (!k->queued) {
        k->queued = true;
        emit_push(e, LANE_STATUS,
                  (struct write){.kind = WRITE_GROUP,
                                 .about = API_PODGROUP,
                                 .row = j.i,
                                 .ns = job->ns,
                                 .name = job->name,
                                 .uid = job->uid});
    }
}

static bool set_condition(struct emit *e, const struct session *ssn, struct group_known *k,
                          enum cond_type type, enum cond_status status, const char *message)
{
    const uint64_t said = hash2(hk_str(cond_words[type].reason), hk_str(message));
    struct cond_known *c = &k->cond[type];

    if (c->status == status && c->said == said) {
        return false;
    }
    if (c->status != status) {
        c->changed_ns = ssn->now_ns;
    }
    c->status = (uint8_t)status;
    c->said = said;
    id_make(e->o.run, ssn->uid, c->id);
    return true;
}

/* Upstream leaves the opposite condition True for ever (8.3 #9). */
static bool deny_condition(struct emit *e, const struct session *ssn, struct group_known *k,
                           enum cond_type type)
{
    return k->cond[type].status == COND_TRUE && set_condition(e, ssn, k, type, COND_FALSE, "");
}

static bool set_conditions(struct emit *e, const struct session *ssn, struct group_known *k,
                           const struct job_note *n)
{
    bool changed = false;

    if (n->condition == NOTE_UNSCHEDULABLE) {
        changed = set_condition(e, ssn, k, COND_UNSCHEDULABLE, COND_TRUE, n->message);
        changed |= deny_condition(e, ssn, k, COND_SCHEDULED);
        if (changed) {
            hk_free(k->message);
            k->message = hk_strdup(n->message);
        }
    } else if (n->condition == NOTE_SCHEDULED) {
        changed = set_condition(e, ssn, k, COND_SCHEDULED, COND_TRUE, "");
        changed |= deny_condition(e, ssn, k, COND_UNSCHEDULABLE);
    }
    return changed;
}

static bool set_counters(struct group_known *k, const struct job_note *n)
{
    const bool changed = k->phase != n->phase || k->running != n->running ||
                         k->failed != n->failed || k->succeeded != n->succeeded;

    k->phase = n->phase;
    k->running = n->running;
    k->failed = n->failed;
    k->succeeded = n->succeeded;
    return changed;
}

/* The same words about the same group again are only counted, also when the ring has forgotten
 * them. */
static void tell_once(struct emit *e, job_id j, uint64_t *last, bool warning, const char *text)
{
    const uint64_t said = emit_hash(1, hk_str(text)) | 1;

    if (*last != said) {
        *last = said;
        emit_event_group(e, j, warning, "Unschedulable", text);
    }
}

static void note_group(struct emit *e, const struct session *ssn, const struct job_note *n)
{
    struct group_known *k = group_row(e, n->job);
    const char *refusal = ssn->job_msg[n->job.i];
    bool changed = set_counters(k, n);

    changed |= set_conditions(e, ssn, k, n);
    if (changed) {
        push_group(e, n->job);
    }
    if (refusal) {
        tell_once(e, n->job, &k->refusal, false, refusal);
    }
    if (n->event) {
        tell_once(e, n->job, &k->event, true, n->event);
    } else if (changed && (n->phase == PG_RUNNING || n->phase == PG_COMPLETED)) {
        emit_event_group(e, n->job, false, "Scheduled", "pod group is ready");
        k->event = k->refusal = 0;
    }
}

static void put_count(struct emit *e, struct json *status, const char *key, uint32_t n)
{
    /* Zero is left out, as Volcano's own writes leave it out. */
    json_put(status, &e->mem, hk_str(key), n > 0 ? json_make_int(n) : (struct json){0});
}

static struct json condition_list(struct emit *e, const struct group_known *k)
{
    struct json list = json_make_array();
    struct json others;

    for (unsigned i = 0; i < COND_N; i++) {
        const struct cond_known *known = &k->cond[i];
        if (known->status == COND_ABSENT) {
            continue;
        }
        const bool told = i == COND_UNSCHEDULABLE && known->status == COND_TRUE && k->message;
        struct json c =
            emit_condition(e, cond_words[i].type, cond_status_words[known->status],
                           hk_str(cond_words[i].reason), hk_str(told ? k->message : ""));
        if (!told) {
            json_del(&c, "message");
        }
        emit_put_str(e, &c, "transitionID", hk_str(id_text(e, known->id)));
        emit_put_time(e, &c, "lastTransitionTime", known->changed_ns);
        json_push(&list, &e->mem, c);
    }
    if (k->others && json_parse(hk_str(k->others), 0, &e->mem, &others, NULL) == 0) {
        for (uint32_t i = 0; i < others.len; i++) {
            json_push(&list, &e->mem, others.items[i]);
        }
    }
    return list;
}

static bool group_request(struct emit *e, const struct write *w, struct port_request *req,
                          struct json *body)
{
    struct group_known *k = &e->groups.at[w->row];
    const struct hk_str uid = emit_uid(e, w->uid);
    struct json *status;

    if (k->uid != w->uid) {
        return false;
    }
    k->queued = false;
    k->busy = true;
    req->verb = PORT_PATCH;
    req->patch = PORT_PATCH_MERGE;
    if (uid.n > 0) {
        emit_put_str(e, emit_put_obj(e, body, "metadata"), "uid", uid);
    }
    status = emit_put_obj(e, body, "status");
    emit_put_str(e, status, "phase", hk_str(pg_phase_name(k->phase)));
    put_count(e, status, "running", k->running);
    put_count(e, status, "succeeded", k->succeeded);
    put_count(e, status, "failed", k->failed);
    json_put(status, &e->mem, HK_STR("conditions"), condition_list(e, k));
    return true;
}

static bool passes(int rc)
{
    return rc == -HK_EIO || rc == -HK_ETIMEOUT || rc == -HK_EBUSY || rc == -HK_ECONFLICT;
}

static void complain(struct emit *e, const struct write *w, const struct port_msg *m)
{
    hk_log(m->rc == -HK_ENOTFOUND ? HK_LOG_DEBUG : HK_LOG_WARN, "status write failed",
           "kind=%s namespace=%.*s name=%.*s err=\"%s\"", api_kind(w->about)->singular,
           HK_FMT(emit_str(e, w->ns)), HK_FMT(emit_str(e, w->name)), m->err->text);
}

static void group_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    struct group_known *k = &e->groups.at[w->row];

    if (k->uid != w->uid) {
        return;
    }
    k->busy = false;
    if (m->rc == 0) {
        k->rv = m->rv;
        if (k->again) {
            k->again = false;
            push_group(e, (job_id){w->row});
        } else {
            hk_free(k->message);
            k->message = NULL;
        }
        return;
    }
    complain(e, w, m);
    k->again = false;
    if (passes(m->rc)) {
        k->queued = true;
        emit_retry(e, *w);
    } else {
        k->phase = PG_NONE; /* unknown: written again with the next note */
    }
}

/* Conditions other than ours, to be written back as they are. */
static void learn_others(struct emit *e, struct group_known *k, const struct json *list)
{
    bool any = false;

    hk_buf_clear(&e->text);
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct hk_str type = json_str(json_get(&list->items[i], "type"), HK_STR(""));
        if (!hk_str_is(type, cond_words[COND_UNSCHEDULABLE].type) &&
            !hk_str_is(type, cond_words[COND_SCHEDULED].type)) {
            hk_buf_addc(&e->text, any ? ',' : '[');
            json_write(&list->items[i], &e->text);
            any = true;
        }
    }
    hk_free(k->others);
    k->others = NULL;
    if (any) {
        hk_buf_addc(&e->text, ']');
        k->others = hk_strdup(e->text.data);
    }
}

static void learn_condition(struct group_known *k, enum cond_type type,
                            const struct api_conditions *list)
{
    const struct api_condition *c = api_condition_get(list, hk_str(cond_words[type].type));
    struct cond_known *known = &k->cond[type];

    *known = (struct cond_known){0};
    if (c) {
        known->status = hk_str_is(c->status, "True") ? COND_TRUE : COND_FALSE;
        known->said = hash2(c->reason, c->message);
        known->changed_ns = c->last_transition_ns;
        id_parse(c->transition_id, known->id);
    }
}

static void learn_group(struct emit *e, const struct api_object *o)
{
    const job_id j = model_job_find(e->o.m, o->ns, o->name);
    struct group_known *k;
    struct api_podgroup pg;

    if (id_none(j) || !model_job(e->o.m, j)->has_pg ||
        api_podgroup_decode(&o->root, &e->mem, &pg, NULL) < 0) {
        return;
    }
    k = group_row(e, j);
    if (emit_is_ahead(e, j, o->rv)) {
        return;
    }
    k->phase = (uint8_t)pg.phase; /* both enums follow Volcano's order */
    k->running = (uint32_t)pg.running;
    k->failed = (uint32_t)pg.failed;
    k->succeeded = (uint32_t)pg.succeeded;
    for (unsigned i = 0; i < COND_N; i++) {
        learn_condition(k, i, &pg.conditions);
    }
    learn_others(e, k, json_at(&o->root, "status.conditions"));
}

_Static_assert((int)API_PODGROUP_COMPLETED == (int)PG_COMPLETED &&
                   (int)API_PODGROUP_INQUEUE == (int)PG_INQUEUE &&
                   (int)API_PODGROUP_UNKNOWN == (int)PG_UNKNOWN &&
                   (int)API_PODGROUP_RUNNING == (int)PG_RUNNING,
               "phases of the API and of the model are the same");

bool emit_is_ahead(const struct emit *e, job_id j, uint64_t rv)
{
    const struct group_known *k;

    if (j.i >= e->groups.len || e->groups.at[j.i].uid != model_job(e->o.m, j)->uid) {
        return false;
    }
    k = &e->groups.at[j.i];
    return k->queued || k->busy || rv < k->rv;
}

/* ---- pods ---- */

void emit_pod_condition(struct emit *e, task_id t, const char *reason, const char *message,
                        node_id nominated)
{
    const struct model *m = e->o.m;
    const struct task *task = model_task(m, t);
    const uint64_t said = hash3(HK_STR("False"), hk_str(reason), hk_str(message));
    struct pod_known *k = pod_row(e, t);
    const uint32_t node = id_none(nominated) ? 0 : m->nodes.name[nominated.i];
    const bool news = k->said != said;

    if (!news && (node == 0 || node == k->nominated)) {
        return;
    }
    k->said = said;
    k->nominated = node ? node : k->nominated;
    emit_push(e, LANE_STATUS,
              (struct write){.kind = WRITE_CONDITION,
                             .about = API_POD,
                             .row = t.i,
                             .ns = task->ns,
                             .name = task->name,
                             .uid = task->uid,
                             .node = node,
                             .reason = reason,
                             .text = hk_strdup(message),
                             .said = said});
    if (news) {
        emit_event_pod(e, t, true, "FailedScheduling", message);
    }
}

static bool condition_request(struct emit *e, struct write *w, struct port_request *req,
                              struct json *body)
{
    struct pod_known *k = &e->pods.at[w->row];
    const struct hk_str uid = emit_uid(e, w->uid);
    struct json list = json_make_array();
    struct json c, *status;

    if (k->uid != w->uid || k->said != w->said) {
        return false; /* gone, or newer words follow */
    }
    if (k->busy) {
        struct write copy = *w;
        copy.text = hk_strdup(w->text);
        emit_retry(e, copy);
        return false;
    }
    k->busy = true;
    req->verb = PORT_PATCH;
    req->patch = PORT_PATCH_STRATEGIC;
    req->subresource = "status";
    c = emit_condition(e, "PodScheduled", "False", hk_str(w->reason), hk_str(w->text));
    if (!k->is_false) {
        emit_put_time(e, &c, "lastTransitionTime", e->o.clock->wall_ns(e->o.clock));
    }
    json_push(&list, &e->mem, c);
    if (uid.n > 0) {
        emit_put_str(e, emit_put_obj(e, body, "metadata"), "uid", uid);
    }
    status = emit_put_obj(e, body, "status");
    json_put(status, &e->mem, HK_STR("conditions"), list);
    if (w->node) {
        emit_put_str(e, status, "nominatedNodeName", emit_str(e, w->node));
    }
    return true;
}

static void condition_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    struct pod_known *k = &e->pods.at[w->row];

    if (k->uid != w->uid) {
        return;
    }
    k->busy = false;
    if (m->rc == 0) {
        k->is_false = true;
        return;
    }
    complain(e, w, m);
    if (k->said == w->said && passes(m->rc)) {
        emit_retry(e, *w);
        w->text = NULL; /* the retry owns it now */
    } else if (k->said == w->said) {
        k->said = 0;
    }
}

static void learn_pod(struct emit *e, const struct api_object *o)
{
    const task_id t = model_task_find(e->o.m, o->ns, o->name);
    const struct json *list = json_at(&o->root, "status.conditions");
    const struct hk_str none = HK_STR("");
    struct pod_known *k;

    if (id_none(t)) {
        return;
    }
    k = pod_row(e, t);
    if (k->busy) {
        return;
    }
    k->nominated =
        hk_intern(&e->o.m->str, json_str(json_at(&o->root, "status.nominatedNodeName"), none));
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct json *c = &list->items[i];
        if (hk_str_is(json_str(json_get(c, "type"), none), "PodScheduled")) {
            const struct hk_str status = json_str(json_get(c, "status"), none);
            k->said = hash3(status, json_str(json_get(c, "reason"), none),
                            json_str(json_get(c, "message"), none));
            k->is_false = hk_str_is(status, "False");
        }
    }
}

/* ---- queues ---- */

/* Every queue's own allocations, added to each of its ancestors up to `root` (1.7). */
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
                break; /* upstream dereferences the missing parent */
            }
        }
    }
}

/* cpu and memory always, the rest when there is some. */
static bool is_listed(uint32_t dim, int64_t v)
{
    return v != 0 || dim == DIM_CPU || dim == DIM_MEM;
}

static uint64_t sum_hash(const struct emit *e, const int64_t *v)
{
    uint64_t h = 1;

    for (uint32_t d = 0; d < e->o.m->dims.n; d++) {
        if (is_listed(d, v[d])) {
            h = hk_mix(hk_mix(h * 31 + d) + (uint64_t)v[d]);
        }
    }
    return h | 1;
}

static void push_queue(struct emit *e, queue_id q)
{
    struct queue_known *k = &e->queues.at[q.i];

    if (k->busy) {
        k->again = true;
    } else if (!k->queued) {
        k->queued = true;
        emit_push(
            e, LANE_STATUS,
            (struct write){.kind = WRITE_QUEUE, .about = API_QUEUE, .row = q.i, .name = k->name});
    }
}

static void note_queues(struct emit *e)
{
    const struct model *m = e->o.m;

    sum_queues(e);
    for (uint32_t i = 0; i < m->queues.len; i++) {
        if (!m->queues.at[i].used) {
            continue;
        }
        struct queue_known *k = queue_row(e, (queue_id){i});
        const uint64_t said = sum_hash(e, &e->sums.at[i * DIM_MAX]);
        if (k->said != said) {
            k->said = said;
            push_queue(e, (queue_id){i});
        }
    }
}

static struct quantity amount(const struct model *m, uint32_t d, int64_t v)
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
    struct queue_known *k = &e->queues.at[w->row];
    const int64_t *v = &e->sums.at[w->row * DIM_MAX];
    struct json *list;

    if (k->name != w->name) {
        return false;
    }
    k->queued = false;
    k->busy = true;
    req->verb = PORT_PATCH;
    req->patch = PORT_PATCH_MERGE;
    req->subresource = "status";
    list = emit_put_obj(e, emit_put_obj(e, body, "status"), "allocated");
    for (uint32_t d = 0; d < m->dims.n; d++) {
        struct json value = {0}; /* null takes an old amount away */
        if (is_listed(d, v[d])) {
            hk_buf_clear(&e->text);
            quantity_write(amount(m, d, v[d]), &e->text);
            value = json_make_str(hk_arena_str(&e->mem, hk_buf_str(&e->text)));
        }
        json_put(list, &e->mem, m->dims.text[d], value);
    }
    return true;
}

static void queue_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    struct queue_known *k = &e->queues.at[w->row];

    if (k->name != w->name) {
        return;
    }
    k->busy = false;
    if (m->rc < 0) {
        complain(e, w, m);
    }
    if (m->rc < 0 && passes(m->rc)) {
        k->queued = true;
        k->again = false;
        emit_retry(e, *w);
    } else if (m->rc < 0) {
        k->said = 0;
    } else if (k->again) {
        k->again = false;
        push_queue(e, (queue_id){w->row});
    }
}

static void learn_queue(struct emit *e, const struct api_object *o)
{
    struct model *m = e->o.m;
    const queue_id q = model_queue_find(m, o->name);
    int64_t v[DIM_MAX] = {0};
    struct queue_known *k;
    struct api_queue api;
    bool strange = false;

    if (id_none(q) || api_queue_decode(&o->root, &e->mem, &api, NULL) < 0) {
        return;
    }
    k = queue_row(e, q);
    if (k->queued || k->busy) {
        return;
    }
    for (uint32_t i = 0; i < api.allocated.len; i++) {
        const uint32_t d = dims_find(&m->dims, api.allocated.at[i].name);
        if (d == HK_NONE) {
            strange = true;
        } else {
            v[d] = m->dims.unit[d] == DIM_MILLI ? quantity_milli(api.allocated.at[i].q)
                                                : quantity_value(api.allocated.at[i].q);
        }
    }
    k->said = strange || api.allocated.len == 0 ? 0 : sum_hash(e, v);
}

/* ---- doors ---- */

void emit_status_session(struct emit *e, const struct session *ssn)
{
    for (uint32_t k = 0; k < ssn->notes.n; k++) {
        note_group(e, ssn, &ssn->notes.at[k]);
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
        return group_request(e, w, req, body);
    case WRITE_QUEUE:
        return queue_request(e, w, req, body);
    default:
        return condition_request(e, w, req, body);
    }
}

void emit_status_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    switch (w->kind) {
    case WRITE_GROUP:
        group_done(e, w, m);
        break;
    case WRITE_QUEUE:
        queue_done(e, w, m);
        break;
    default:
        condition_done(e, w, m);
    }
}

void emit_learn(struct emit *e, const struct api_object *o)
{
    switch (o->kind->id) {
    case API_POD:
        learn_pod(e, o);
        break;
    case API_PODGROUP:
        learn_group(e, o);
        break;
    case API_QUEUE:
        learn_queue(e, o);
        break;
    default:
        break;
    }
    hk_arena_clear(&e->mem);
}

void emit_status_fini(struct emit *e)
{
    for (uint32_t k = 0; k < e->groups.len; k++) {
        group_clear(&e->groups.at[k]);
    }
    hk_vec_fini(&e->pods);
    hk_vec_fini(&e->groups);
    hk_vec_fini(&e->queues);
    hk_vec_fini(&e->sums);
}
