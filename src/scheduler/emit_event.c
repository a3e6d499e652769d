// SPDX-License-Identifier: Apache-2.0
// Events. One that says what an earlier one of the same object said is not written again: it is
// counted, and the count written now and then. The memory for that is a ring; whoever falls out of
// it starts a new event. Events are courtesy: those that cannot be sent are dropped.
#include "base/log.h"
#include "scheduler/emit_priv.h"

#define RING_LEN 4096u
#define BACKLOG_MAX 16384u
#define COUNT_EVERY_NS ((int64_t)5 * 60 * 1000 * 1000 * 1000)
#define MESSAGE_MAX 1024u

static uint64_t key_of(struct event_about a, bool warning, const char *reason, const char *message)
{
    uint64_t h = hk_mix(((uint64_t)a.ns << 32 | a.name) ^ hk_mix((uint64_t)a.uid << 8 | a.kind));

    h = emit_hash(h + warning, hk_str(reason));
    return emit_hash(h, hk_str(message)) >> 1; /* the largest key is the map's own */
}

static void slot_clear(struct emit *e, struct event_slot *s)
{
    emit_set_id(e, &s->ns, 0);
    emit_set_id(e, &s->name, 0);
    emit_set_id(e, &s->uid, 0);
}

static uint32_t new_slot(struct emit *e, uint64_t key)
{
    const uint32_t at = e->ring_next;
    struct event_slot *s;

    if (!e->ring) {
        e->ring = hk_zalloc_array(RING_LEN, sizeof(*e->ring));
    }
    s = &e->ring[at];
    e->ring_next = (at + 1) % RING_LEN;
    if (s->count > 0 && hk_map_get(&e->ring_at, s->key) == at) {
        hk_map_del(&e->ring_at, s->key);
    }
    slot_clear(e, s);
    hk_map_put(&e->ring_at, key, at);
    return at;
}

/* Never cuts a character in two. */
static char *message_dup(const char *s)
{
    size_t n = strlen(s);

    if (n > MESSAGE_MAX) {
        n = MESSAGE_MAX;
        while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80) {
            n--;
        }
    }
    return hk_strndup(s, n);
}

static bool count_again(struct emit *e, uint64_t key, struct write w)
{
    const uint32_t at = hk_map_get(&e->ring_at, key);
    const int64_t now_ns = e->o.clock->wall_ns(e->o.clock);
    struct event_slot *s;

    if (at == HK_NONE) {
        return false;
    }
    s = &e->ring[at];
    s->count++;
    if (!s->busy && now_ns - s->written_ns >= COUNT_EVERY_NS) {
        s->busy = true;
        w.kind = WRITE_EVENT_COUNT;
        w.slot = at;
        emit_push(e, LANE_EVENTS, w);
    }
    return true;
}

void emit_event(struct emit *e, struct event_about about, bool warning, const char *reason,
                const char *message)
{
    const uint64_t key = key_of(about, warning, reason, message);
    struct write w = {.kind = WRITE_EVENT,
                      .about = API_EVENT,
                      .warning = warning,
                      .row = about.kind,
                      .ns = about.ns,
                      .name = about.name,
                      .uid = about.uid,
                      .reason = reason,
                      .said = key};

    if (count_again(e, key, w) ||
        e->lanes[LANE_EVENTS].q.len - e->lanes[LANE_EVENTS].head >= BACKLOG_MAX) {
        return;
    }
    w.slot = new_slot(e, key);
    w.text = message_dup(message);
    hk_intern_keep(&e->o.m->str, about.ns);
    hk_intern_keep(&e->o.m->str, about.name);
    hk_intern_keep(&e->o.m->str, about.uid);
    e->ring[w.slot] = (struct event_slot){
        .key = key,
        .ns = about.ns,
        .name = about.name,
        .uid = about.uid,
        .count = 1,
        .busy = true,
        .stamp = (uint64_t)e->o.clock->wall_ns(e->o.clock) + ++e->stamp,
    };
    emit_push(e, LANE_EVENTS, w);
}

void emit_event_pod(struct emit *e, task_id t, bool warning, const char *reason,
                    const char *message)
{
    const struct task *task = model_task(e->o.m, t);

    emit_event(e, (struct event_about){API_POD, task->ns, task->name, task->uid}, warning, reason,
               message);
}

void emit_event_group(struct emit *e, job_id j, bool warning, const char *reason,
                      const char *message)
{
    const struct job *job = model_job(e->o.m, j);

    emit_event(e, (struct event_about){API_PODGROUP, job->ns, job->name, job->uid}, warning, reason,
               message);
}

static void put_about(struct emit *e, const struct write *w, struct json *body)
{
    const struct api_kind *kind = api_kind(w->row);
    struct json *o = emit_put_obj(e, body, "involvedObject");

    hk_buf_clear(&e->text);
    api_kind_write_version(kind, &e->text);
    emit_put_str(e, o, "kind", hk_str(kind->kind));
    emit_put_str(e, o, "namespace", emit_str(e, w->ns));
    emit_put_str(e, o, "name", emit_str(e, w->name));
    if (emit_uid(e, w->uid).n > 0) {
        emit_put_str(e, o, "uid", emit_uid(e, w->uid));
    }
    emit_put_str(e, o, "apiVersion", hk_arena_str(&e->mem, hk_buf_str(&e->text)));
}

static void put_body(struct emit *e, const struct write *w, const struct event_slot *s,
                     struct json *body)
{
    struct json *meta;

    emit_put_str(e, body, "apiVersion", HK_STR("v1"));
    emit_put_str(e, body, "kind", HK_STR("Event"));
    meta = emit_put_obj(e, body, "metadata");
    emit_put_str(e, meta, "name",
                 hk_str(hk_arena_printf(&e->mem, "%.*s.%llx", HK_FMT(emit_str(e, s->name)),
                                        (unsigned long long)s->stamp)));
    emit_put_str(e, meta, "namespace", emit_str(e, s->ns));
    put_about(e, w, body);
    emit_put_str(e, body, "type", w->warning ? HK_STR("Warning") : HK_STR("Normal"));
    emit_put_str(e, body, "reason", hk_str(w->reason));
    emit_put_str(e, body, "message", hk_str(w->text));
    emit_put_str(e, emit_put_obj(e, body, "source"), "component", hk_str(e->component));
    emit_put_str(e, body, "reportingComponent", hk_str(e->component));
    emit_put_str(e, body, "reportingInstance", HK_STR(""));
    emit_put_time(e, body, "firstTimestamp", e->o.clock->wall_ns(e->o.clock));
}

bool emit_event_request(struct emit *e, struct write *w, struct port_request *req,
                        struct json *body)
{
    struct event_slot *s = &e->ring[w->slot];
    const int64_t now_ns = e->o.clock->wall_ns(e->o.clock);

    if (s->key != w->said) {
        return false; /* the ring came round before the event was sent */
    }
    req->name = hk_str(hk_arena_printf(&e->mem, "%.*s.%llx", HK_FMT(emit_str(e, s->name)),
                                       (unsigned long long)s->stamp));
    if (w->kind == WRITE_EVENT) {
        req->verb = PORT_CREATE;
        req->name = HK_STR("");
        put_body(e, w, s, body);
    } else {
        req->verb = PORT_PATCH;
        req->patch = PORT_PATCH_MERGE;
    }
    json_put(body, &e->mem, HK_STR("count"), json_make_int(s->count));
    emit_put_time(e, body, "lastTimestamp", now_ns);
    s->written_ns = now_ns;
    return true;
}

void emit_event_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    struct event_slot *s = &e->ring[w->slot];

    if (m->rc < 0) {
        hk_log(HK_LOG_DEBUG, "event dropped", "reason=%s err=\"%s\"", w->reason, m->err->text);
    }
    if (s->key != w->said) {
        return;
    }
    s->busy = false;
    if (m->rc < 0) {
        hk_map_del(&e->ring_at, s->key); /* the next one starts anew */
    }
}

void emit_events_fini(struct emit *e)
{
    for (uint32_t k = 0; e->ring && k < RING_LEN; k++) {
        slot_clear(e, &e->ring[k]);
    }
    hk_map_fini(&e->ring_at);
    hk_free(e->ring);
}
