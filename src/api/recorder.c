// SPDX-License-Identifier: Apache-2.0
// Records Events. A ring remembers the latest ones, so that a repeated Event is counted instead of
// created again; an Event that has left the ring is created again. The numbers of writes in flight
// and waiting are limited.
#include "api/recorder.h"

#include "base/log.h"
#include "base/map.h"
#include "base/vec.h"

#define RING_LEN 4096u
#define BACKLOG_MAX 16384u
/* When thousands of operations succeed at once, their Events have little value and would compete
 * for the disk. So normal Events are dropped earlier than warnings, and few are in flight. */
#define BACKLOG_NORMAL_MAX 512u
#define FLIGHT_MAX 8u
#define COUNT_EVERY_NS ((int64_t)5 * 60 * 1000 * 1000 * 1000)
#define MESSAGE_MAX 1024u

struct slot {
    uint64_t key; /* 0: unused */
    uint64_t stamp;
    uint32_t count;
    bool busy;          /* its write waits or is in flight */
    int64_t written_ns; /* wall */
};

/* One pending write. Owns its strings. */
struct note {
    uint32_t slot;
    uint64_t key; /* of the slot when the note was created */
    bool first;   /* creates the event, else updates its count */
    bool warning;
    const struct api_kind *kind;
    char *ns, *name, *uid, *reason, *message;
};

struct recorder {
    struct port *port;
    struct hk_clock *clock;
    char *component;
    struct slot *ring;
    uint32_t next;
    struct hk_map at; /* from key to slot */
    uint64_t stamp;
    HK_VEC(struct note) waiting;
    uint32_t head; /* index of the first waiting note */
    uint32_t busy; /* number of flights in use */
    struct note flights[FLIGHT_MAX];
    uint64_t calls[FLIGHT_MAX]; /* 0: free */
    struct hk_arena mem;        /* for one body */
};

static void note_fini(struct note *n)
{
    hk_free(n->ns);
    hk_free(n->name);
    hk_free(n->uid);
    hk_free(n->reason);
    hk_free(n->message);
    *n = (struct note){0};
}

static uint64_t recorder_note_key(const struct recorder_about *a, bool warning, const char *reason,
                                  struct hk_str message)
{
    uint64_t h = hk_hash(a->ns.s, a->ns.n, 17 + a->kind->id);

    h = hk_hash(a->name.s, a->name.n, h);
    h = hk_hash(a->uid.s, a->uid.n, h);
    h = hk_hash(reason, strlen(reason), h + warning);
    return hk_hash(message.s, message.n, h) >> 1 | 1; /* not 0, nor the map's reserved key */
}

static uint32_t new_slot(struct recorder *r, uint64_t key)
{
    const uint32_t at = r->next;
    struct slot *s = &r->ring[at];

    r->next = (at + 1) % RING_LEN;
    if (s->key && hk_map_get(&r->at, s->key) == at) {
        hk_map_del(&r->at, s->key);
    }
    *s = (struct slot){.key = key, .stamp = (uint64_t)r->clock->wall_ns(r->clock) + ++r->stamp};
    hk_map_put(&r->at, key, at);
    return at;
}

/* ---- bodies ---- */

static void put_about(struct recorder *r, const struct note *n, struct json *body)
{
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};
    struct json *about = json_set_object(body, &r->mem, "involvedObject");

    api_kind_write_version(n->kind, &version);
    json_set_cstr(about, &r->mem, "kind", n->kind->kind);
    if (n->ns[0]) {
        json_set_cstr(about, &r->mem, "namespace", n->ns);
    }
    json_set_cstr(about, &r->mem, "name", n->name);
    if (n->uid[0]) {
        json_set_cstr(about, &r->mem, "uid", n->uid);
    }
    json_set_str_copy(about, &r->mem, "apiVersion", hk_buf_str(&version));
}

static struct hk_str event_name(struct recorder *r, const struct note *n)
{
    return hk_str(
        hk_arena_printf(&r->mem, "%s.%llx", n->name, (unsigned long long)r->ring[n->slot].stamp));
}

/* Events about cluster-scoped objects are in "default", as in Kubernetes. */
static struct hk_str event_ns(const struct note *n)
{
    return n->ns[0] ? hk_str(n->ns) : HK_STR("default");
}

static void put_body(struct recorder *r, const struct note *n, struct json *body, int64_t now_ns)
{
    struct json *meta;

    json_set_cstr(body, &r->mem, "apiVersion", "v1");
    json_set_cstr(body, &r->mem, "kind", "Event");
    meta = json_set_object(body, &r->mem, "metadata");
    json_set_str(meta, &r->mem, "name", event_name(r, n));
    json_set_str(meta, &r->mem, "namespace", event_ns(n));
    put_about(r, n, body);
    json_set_cstr(body, &r->mem, "type", n->warning ? "Warning" : "Normal");
    json_set_cstr(body, &r->mem, "reason", n->reason);
    json_set_cstr(body, &r->mem, "message", n->message);
    json_set_cstr(json_set_object(body, &r->mem, "source"), &r->mem, "component", r->component);
    json_set_cstr(body, &r->mem, "reportingComponent", r->component);
    json_set_cstr(body, &r->mem, "reportingInstance", "");
    json_set_time(body, &r->mem, "firstTimestamp", now_ns);
}

/* ---- sending ---- */

static void send_more(struct recorder *r);

static void recorder_on_event_written(void *ctx, const struct port_msg *m)
{
    struct recorder *r = ctx;
    uint32_t k = 0;
    struct slot *s;

    while (k < FLIGHT_MAX && r->calls[k] != m->call) {
        k++;
    }
    if (k == FLIGHT_MAX) {
        return;
    }
    s = &r->ring[r->flights[k].slot];
    if (m->rc < 0) {
        hk_log(HK_LOG_DEBUG, "event dropped", "reason=%s err=\"%s\"", r->flights[k].reason,
               m->err->text);
    }
    if (s->key == r->flights[k].key) {
        s->busy = false;
        if (m->rc < 0) { /* the next such event is created again */
            hk_map_del(&r->at, s->key);
            s->key = 0;
        }
    }
    note_fini(&r->flights[k]);
    r->calls[k] = 0;
    r->busy--;
    send_more(r);
}

static void recorder_send_event(struct recorder *r, uint32_t k)
{
    const struct note *n = &r->flights[k];
    struct slot *s = &r->ring[n->slot];
    const int64_t now_ns = r->clock->wall_ns(r->clock);
    struct json body = json_make_object();
    struct port_request req = {.kind = api_kind(API_EVENT),
                               .verb = PORT_CREATE,
                               .ns = event_ns(n),
                               .body = &body,
                               .field_manager = hk_str(r->component)};

    if (n->first) {
        put_body(r, n, &body, now_ns);
    } else {
        req.verb = PORT_PATCH;
        req.patch = PORT_PATCH_MERGE;
        req.name = event_name(r, n);
    }
    json_set_int(&body, &r->mem, "count", s->count);
    json_set_time(&body, &r->mem, "lastTimestamp", now_ns);
    s->written_ns = now_ns;
    r->busy++;
    r->calls[k] = port_submit(r->port, &req, (struct port_sink){recorder_on_event_written, r});
    hk_arena_clear(&r->mem);
}

/* Moves waiting notes to the front once the used part before them is most of the vector, so that a
 * queue that is never empty does not grow without limit. */
static void close_up(struct recorder *r)
{
    if (r->head < r->waiting.len && (r->head < 1024 || r->head <= r->waiting.len / 2)) {
        return;
    }
    r->waiting.len -= r->head;
    if (r->waiting.len > 0) {
        memmove(r->waiting.at, r->waiting.at + r->head, r->waiting.len * sizeof(r->waiting.at[0]));
    }
    r->head = 0;
}

/* The next note whose event is still in the ring. */
static bool recorder_pop_note(struct recorder *r, struct note *ret)
{
    while (r->head < r->waiting.len) {
        struct note n = r->waiting.at[r->head++];

        if (r->ring[n.slot].key == n.key) {
            *ret = n;
            return true;
        }
        note_fini(&n); /* the slot was reused before it was sent */
    }
    return false;
}

static void send_more(struct recorder *r)
{
    for (uint32_t k = 0; k < FLIGHT_MAX && r->busy < FLIGHT_MAX; k++) {
        if (r->calls[k]) {
            continue;
        }
        if (!recorder_pop_note(r, &r->flights[k])) {
            break;
        }
        recorder_send_event(r, k);
    }
    close_up(r);
}

/* Counts an event in the ring; true: write its count now. */
static bool count_again(struct recorder *r, uint32_t at)
{
    struct slot *s = &r->ring[at];

    s->count++;
    if (s->busy || r->clock->wall_ns(r->clock) - s->written_ns < COUNT_EVERY_NS) {
        return false;
    }
    s->busy = true;
    return true;
}

void recorder_note(struct recorder *r, const struct recorder_about *about, bool warning,
                   const char *reason, struct hk_str message)
{
    const uint64_t key = recorder_note_key(about, warning, reason, message);
    uint32_t at = hk_map_get(&r->at, key);
    const bool first = at == HK_NONE;

    const uint32_t room = warning ? BACKLOG_MAX : BACKLOG_NORMAL_MAX;

    if (first ? r->waiting.len - r->head >= room : !count_again(r, at)) {
        return;
    }
    if (first) {
        at = new_slot(r, key);
        r->ring[at].busy = true;
        r->ring[at].count = 1;
    }
    hk_vec_push(
        &r->waiting,
        (struct note){.slot = at,
                      .key = key,
                      .first = first,
                      .warning = warning,
                      .kind = about->kind,
                      .ns = hk_strndup(about->ns.s ? about->ns.s : "", about->ns.n),
                      .name = hk_strndup(about->name.s, about->name.n),
                      .uid = hk_strndup(about->uid.s ? about->uid.s : "", about->uid.n),
                      .reason = hk_strdup(reason),
                      .message = hk_strndup(message.s, hk_str_head(message, MESSAGE_MAX).n)});
    send_more(r);
}

uint32_t recorder_len(const struct recorder *r)
{
    return r->busy + r->waiting.len - r->head;
}

struct recorder *recorder_new(struct port *port, struct hk_clock *clock, struct hk_str component)
{
    struct recorder *r = hk_zalloc(sizeof(*r));

    r->port = port;
    r->clock = clock;
    r->component = hk_strndup(component.s, component.n);
    r->ring = hk_zalloc_array(RING_LEN, sizeof(*r->ring));
    return r;
}

void recorder_free(struct recorder *r)
{
    if (!r) {
        return;
    }
    for (uint32_t k = 0; k < FLIGHT_MAX; k++) {
        if (r->calls[k]) {
            port_cancel(r->port, r->calls[k]);
            note_fini(&r->flights[k]);
        }
    }
    for (; r->head < r->waiting.len; r->head++) {
        note_fini(&r->waiting.at[r->head]);
    }
    hk_vec_fini(&r->waiting);
    hk_map_fini(&r->at);
    hk_arena_fini(&r->mem);
    hk_free(r->ring);
    hk_free(r->component);
    hk_free(r);
}
