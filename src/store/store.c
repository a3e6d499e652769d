// SPDX-License-Identifier: Apache-2.0
// The owner side of the store: objects, the staged heads that writes are checked against,
// publishing, and the ring of recent events. It runs on one thread; the log's thread sees only
// immutable objects. At start the rows of the file are published one by one through the same code,
// which restores index, ring and list of dead rows.
//
// A write gets its revision when it is staged and keeps it. When the disk fails, all staged writes
// fail, and later writes are refused until a probe has been committed. Revisions of failed writes
// are never reused.
#include "base/log.h"
#include "base/map.h"
#include "store/store_files.h"
#include "store/store_priv.h"

#include <inttypes.h>
#include <poll.h>

enum {
    RING_EVENTS = 100 * 1000,
    RING_BYTES = 256 << 20,
    COMPACT_ROWS = 200,     /* in one transaction: about 7 ms in which no write commits */
    FIRST_RV = 1,           /* of the empty store: for clients 0 means "any" */
    RING_SHARE = 8,         /* history may use memory / RING_SHARE, */
    RING_SHORT = 8,         /* and that / RING_SHORT when memory is short */
    VITAL_BYTES = 16 << 10, /* growth allowed for a vital write when memory is short */
    /* Memory for an object besides its text, and the factor for its text: watchers in this process
     * keep trees of it. */
    OBJECT_COST = 1024,
    TEXT_COST = 4,
};

struct resource {
    struct store_index index;
    struct hk_intern namespaces; /* one reference per object, from its staging on */
    uint64_t last_rv;            /* of its newest event: lets watchers of quiet resources advance */
};

struct hook {
    void (*fn)(void *ctx);
    void *ctx;
};

struct store {
    struct store_log *log;
    bool durable; /* the store has a file */

    struct hk_intern names; /* "plural.group"; the ids are the resource numbers */
    HK_VEC(struct resource) res;
    uint64_t rv;      /* newest published */
    uint64_t last_rv; /* newest assigned */
    uint64_t nstaged, nfinished;
    struct store_heads heads;
    struct store_stage *spare;
    struct store_ring ring;
    size_t ring_bytes; /* its limit while memory is not short */
    HK_VEC(struct hook) hooks;
    uint64_t told_rv; /* the hooks have seen everything up to here; UINT64_MAX: no hooks yet */

    /* Rows that can no longer be read, in an order of safe deletion: an object's older rows come
     * before the row that deleted it. */
    HK_VEC(uint64_t) dead;
    uint32_t dead_first;
    uint64_t slice[COMPACT_ROWS]; /* those being deleted now */
    struct store_log_item compact, probe;
    bool compacting, probing;

    bool broken;
    struct hk_err err; /* why the store is broken */
    struct hk_budget *budget;

    struct store_damaged damaged; /* damaged rows found when the file was read */

    struct hk_arena scratch;
    struct hk_buf text;
};

static struct store_key obj_key(const struct store_obj *o)
{
    return (struct store_key){o->ns, o->name};
}

static bool is_current(const struct store *s, const struct store_obj *o)
{
    return store_index_get(&s->res.at[o->res].index, obj_key(o)) == o;
}

/* Earlier rows of the object are dead, and so is the row of a deletion. */
static void store_mark_rows_dead(struct store *s, enum store_event_type type,
                                 const struct store_obj *obj, const struct store_obj *prev)
{
    if (!s->durable) {
        return;
    }
    if (prev) {
        hk_vec_push(&s->dead, prev->rv);
    }
    if (type == STORE_DELETED) {
        hk_vec_push(&s->dead, obj->rv);
    }
}

static void ring_drop(struct store *s)
{
    const struct store_event *e = store_ring_at(&s->ring, 0);
    const bool replaced = e->type != STORE_DELETED && !is_current(s, e->obj);

    store_mark_rows_dead(s, e->type, e->obj, e->prev);
    store_ring_shift(&s->ring, replaced);
}

/* ---- publishing ---- */

/* Returns the earlier state; the caller gets the index's reference to it. */
static const struct store_obj *index_apply(struct resource *res, enum store_event_type type,
                                           const struct store_obj *obj)
{
    if (type == STORE_DELETED) {
        return store_index_del(&res->index, obj_key(obj));
    }
    return store_index_put(&res->index, store_obj_ref(obj));
}

/* Trims the ring to its limits, but keeps events that the hooks have not seen: a batch may be
 * larger than the whole history. When memory is short the limit is small, because the ring also
 * holds deleted objects. */
static void ring_trim(struct store *s)
{
    const bool is_short = hk_budget_room(s->budget) != HK_ROOM_ENOUGH;

    s->ring.max_bytes = is_short ? s->ring_bytes / RING_SHORT : s->ring_bytes;
    while (store_ring_over(&s->ring) && store_ring_at(&s->ring, 0)->rv <= s->told_rv) {
        ring_drop(s);
    }
}

void store_shed(struct store *s)
{
    ring_trim(s);
}

/* ---- objects of a namespace ---- */

static void count_object(struct store *s, const struct store_obj *o)
{
    if (o->ns.n > 0) {
        (void)hk_intern_hold(&s->res.at[o->res].namespaces, o->ns);
    }
}

static void uncount_object(struct store *s, const struct store_obj *o)
{
    struct hk_intern *t = &s->res.at[o->res].namespaces;

    if (o->ns.n > 0) {
        hk_intern_drop(t, hk_intern_find(t, o->ns));
    }
}

uint32_t store_count_in(const struct store *s, uint32_t res, struct hk_str ns)
{
    const struct hk_intern *t = &s->res.at[res].namespaces;
    const uint32_t id = ns.n > 0 ? hk_intern_find(t, ns) : HK_NONE;

    return id == HK_NONE ? 0 : hk_intern_refs(t, id);
}

/* ---- outcomes of writes ---- */

static void store_publish(struct store *s, enum store_event_type type, const struct store_obj *obj)
{
    struct resource *res = &s->res.at[obj->res];
    const struct store_obj *prev = index_apply(res, type, obj);

    res->last_rv = s->rv = obj->rv;
    store_ring_push(&s->ring, &(struct store_event){type, obj->rv, store_obj_ref(obj), prev});
    ring_trim(s);
}

static void stage_free(struct store *s, struct store_stage *st)
{
    store_obj_unref(st->item.obj);
    st->chain = s->spare;
    s->spare = st;
}

static void finish_write(struct store *s, struct store_stage *st)
{
    const int rc = st->item.rc;

    if (st->in_heads) {
        store_heads_del(&s->heads, st);
    }
    s->nfinished++;
    /* A creation counts from its staging on. */
    if (st->item.type == (rc == 0 ? STORE_DELETED : STORE_ADDED)) {
        uncount_object(s, st->item.obj);
    }
    if (rc == 0) {
        store_publish(s, st->item.type, st->item.obj);
    } else {
        s->broken = true;
    }
    if (st->done) {
        st->done(st->ctx, rc, rc == 0 ? st->item.obj : NULL, rc == 0 ? NULL : &s->err);
    }
    stage_free(s, st);
}

/* ---- maintenance of the file ---- */

static void start_probe(struct store *s)
{
    if (!s->probing) {
        s->probing = true;
        s->probe.kind = STORE_LOG_PROBE;
        s->probe.mark = s->last_rv;
        store_log_push(s->log, &s->probe);
    }
}

static uint32_t dead_left(const struct store *s)
{
    return s->dead.len - s->dead_first;
}

static void start_compact(struct store *s)
{
    const uint32_t n = HK_MIN(dead_left(s), (uint32_t)COMPACT_ROWS);

    if (s->compacting || n == 0) {
        return;
    }
    s->compacting = true;
    memcpy(s->slice, s->dead.at + s->dead_first, n * sizeof(s->slice[0]));
    s->compact.kind = STORE_LOG_COMPACT;
    s->compact.revs = s->slice;
    s->compact.nrevs = n;
    s->compact.mark = s->ring.oldest_rv;
    store_log_push(s->log, &s->compact);
}

/* On a full disk, drop history so that rows of deleted objects can be removed. Watches had the time
 * between two calls of store_compact to read it. */
static void drop_history(struct store *s)
{
    while (s->ring.len > 0) {
        ring_drop(s);
    }
}

void store_compact(struct store *s)
{
    if (s->broken || store_log_is_short(s->log)) {
        start_probe(s);
    }
    if (!s->broken) {
        if (store_log_is_short(s->log)) {
            drop_history(s);
        }
        start_compact(s);
    }
}

/* Starts the next slice unless a write would have to wait for it. */
static void finish_compact(struct store *s)
{
    s->compacting = false;
    if (s->compact.rc < 0) {
        s->broken = true;
        return;
    }
    s->dead_first += s->compact.nrevs;
    if (s->dead_first > s->dead.len / 2) {
        s->dead.len -= s->dead_first;
        memmove(s->dead.at, s->dead.at + s->dead_first, s->dead.len * sizeof(s->dead.at[0]));
        s->dead_first = 0;
    }
    if (s->nstaged == s->nfinished) {
        start_compact(s);
    }
}

static void finish_probe(struct store *s)
{
    s->probing = false;
    s->broken = s->probe.rc < 0;
}

static void finish_item(struct store *s, struct store_log_item *item)
{
    switch (item->kind) {
    case STORE_LOG_WRITE:
        finish_write(s, (struct store_stage *)item);
        break;
    case STORE_LOG_COMPACT:
        finish_compact(s);
        break;
    case STORE_LOG_PROBE:
        finish_probe(s);
        break;
    }
}

uint32_t store_poll(struct store *s)
{
    const uint64_t before = s->nfinished, rv = s->rv;
    struct store_log_item *item = store_log_take(s->log, &s->err);
    struct store_log_item *next;

    for (; item; item = next) {
        next = item->next;
        finish_item(s, item);
    }
    store_log_send(s->log); /* the writes that the callers just submitted */
    for (uint32_t i = 0; s->rv != rv && i < s->hooks.len; i++) {
        s->hooks.at[i].fn(s->hooks.at[i].ctx);
    }
    s->told_rv = s->rv;
    ring_trim(s);
    return (uint32_t)(s->nfinished - before);
}

void store_flush(struct store *s)
{
    const uint64_t target = s->nstaged;

    while (s->nfinished < target) {
        struct pollfd p = {.fd = store_fd(s), .events = POLLIN};
        (void)poll(&p, 1, -1);
        store_poll(s);
    }
}

int store_fd(const struct store *s)
{
    return store_log_fd(s->log);
}

void store_on_publish(struct store *s, void (*fn)(void *ctx), void *ctx)
{
    hk_vec_push(&s->hooks, (struct hook){fn, ctx});
}

/* Keeps the order of the other hooks. */
void store_off_publish(struct store *s, void (*fn)(void *ctx), void *ctx)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < s->hooks.len; i++) {
        if (s->hooks.at[i].fn != fn || s->hooks.at[i].ctx != ctx) {
            s->hooks.at[kept++] = s->hooks.at[i];
        }
    }
    s->hooks.len = kept;
}

/* ---- resources ---- */

static struct resource *res_at(struct store *s, uint32_t id)
{
    while (s->res.len <= id) {
        hk_vec_push(&s->res, (struct resource){0});
    }
    return &s->res.at[id];
}

uint32_t store_res(struct store *s, struct hk_str group, struct hk_str plural)
{
    struct hk_str name;
    uint32_t id;

    hk_buf_clear(&s->text);
    hk_buf_addstr(&s->text, plural);
    if (group.n > 0) {
        hk_buf_addc(&s->text, '.');
        hk_buf_addstr(&s->text, group);
    }
    name = hk_buf_str(&s->text);
    id = hk_intern_find(&s->names, name);
    if (id == HK_NONE) {
        id = hk_intern(&s->names, name);
        (void)res_at(s, id);
        store_log_add_res(s->log, id, hk_intern_str(&s->names, id));
    }
    return id;
}

/* ---- reading ---- */

uint64_t store_rv(const struct store *s)
{
    return s->rv;
}

uint64_t store_commits(const struct store *s)
{
    return store_log_commits(s->log);
}

const struct hk_err *store_disk_failure(const struct store *s)
{
    static const struct hk_err full = {
        HK_EFULL, "the disk is full: only deletions are accepted until there is room again"};

    if (s->broken) {
        return &s->err;
    }
    return store_log_is_short(s->log) ? &full : NULL;
}

const struct hk_err *store_failure(const struct store *s)
{
    const struct hk_err *disk = store_disk_failure(s);

    return disk ? disk : hk_budget_failure(s->budget);
}

uint64_t store_oldest_rv(const struct store *s)
{
    return s->ring.oldest_rv;
}

const struct store_obj *store_get(const struct store *s, uint32_t res, struct hk_str ns,
                                  struct hk_str name)
{
    return store_index_get(&s->res.at[res].index, (struct store_key){ns, name});
}

uint32_t store_count(const struct store *s, uint32_t res)
{
    return s->res.at[res].index.len;
}

static bool copy_object(void *ctx, const struct store_obj *o)
{
    struct store_copy *c = ctx;

    hk_vec_push(&c->objs, store_obj_ref(o));
    return true;
}

void store_copy_open(const struct store *s, struct store_copy *ret)
{
    *ret = (struct store_copy){.identity = store_log_identity(s->log), .rev = s->rv};
    for (uint32_t i = 1; i < s->res.len; i++) {
        const uint32_t id = hk_intern(&ret->names, hk_intern_str(&s->names, i));

        hk_assert(id == i);
        store_index_scan(&s->res.at[i].index, (struct store_key){0}, copy_object, ret);
    }
}

struct ns_scan {
    struct hk_str ns;
    store_scan_fn *fn;
    void *ctx;
};

static bool scan_in_ns(void *ctx, const struct store_obj *o)
{
    const struct ns_scan *scan = ctx;

    return hk_str_eq(o->ns, scan->ns) && scan->fn(scan->ctx, o);
}

void store_scan(const struct store *s, uint32_t res, struct hk_str ns, struct hk_str after_ns,
                struct hk_str after_name, store_scan_fn *fn, void *ctx)
{
    const struct store_index *index = &s->res.at[res].index;
    struct store_key after = {after_ns, after_name};
    struct ns_scan scan = {ns, fn, ctx};

    if (ns.n == 0) {
        store_index_scan(index, after, fn, ctx);
        return;
    }
    if (hk_str_cmp(after_ns, ns) < 0) {
        after = (struct store_key){.ns = ns}; /* sorts before every name in it */
    }
    store_index_scan(index, after, scan_in_ns, &scan);
}

/* ---- watching ---- */

enum store_next store_next(const struct store *s, uint32_t res, struct hk_str ns, uint64_t *rv,
                           struct store_event *ret)
{
    const struct store_ring *r = &s->ring;

    if (*rv < r->oldest_rv) {
        return STORE_NEXT_GONE;
    }
    for (uint32_t i = s->res.at[res].last_rv > *rv ? store_ring_find(r, *rv) : r->len; i < r->len;
         i++) {
        const struct store_event *e = store_ring_at(r, i);
        if (e->obj->res == res && (ns.n == 0 || hk_str_eq(e->obj->ns, ns))) {
            *rv = e->rv;
            *ret = *e;
            return STORE_NEXT_EVENT;
        }
    }
    *rv = HK_MAX(*rv, s->rv);
    return STORE_NEXT_NONE;
}

/* ---- writing ---- */

/* The newest state, staged or not; NULL if there is none. */
static const struct store_obj *find_head(const struct store *s, uint32_t res, struct store_key key,
                                         struct store_stage **ret_stage)
{
    struct store_stage *st = store_heads_find(&s->heads, store_key_hash(res, key), res, key);

    *ret_stage = st;
    if (!st) {
        return store_index_get(&s->res.at[res].index, key);
    }
    return st->item.type == STORE_DELETED ? NULL : st->item.obj;
}

const struct store_obj *store_head(const struct store *s, uint32_t res, struct hk_str ns,
                                   struct hk_str name, bool *ret_staged)
{
    struct store_stage *st;
    const struct store_obj *head = find_head(s, res, (struct store_key){ns, name}, &st);

    *ret_staged = st != NULL;
    return head;
}

static int check_head(const struct store *s, const struct store_write *w,
                      const struct store_obj *head, struct hk_err *err)
{
    const struct hk_str res = hk_intern_str(&s->names, w->res);

    if (w->verb == STORE_CREATE) {
        return !head ? 0
                     : hk_fail(err, HK_EEXIST, "%.*s '%.*s' already exists", HK_FMT(res),
                               HK_FMT(w->name));
    }
    if (!head) {
        return hk_fail(err, HK_ENOTFOUND, "%.*s '%.*s' not found", HK_FMT(res), HK_FMT(w->name));
    }
    if (w->expect_rv != 0 && w->expect_rv != head->rv) {
        return hk_fail(err, HK_ECONFLICT, "%.*s '%.*s': revision %" PRIu64 ", want %" PRIu64,
                       HK_FMT(res), HK_FMT(w->name), head->rv, w->expect_rv);
    }
    return 0;
}

static struct json *set_revision(struct json *root, struct hk_arena *mem, uint64_t rv)
{
    struct json *meta = (struct json *)json_get(root, "metadata");
    char *text = hk_arena_printf(mem, "%" PRIu64, rv);

    if (!json_is(meta, JSON_OBJECT)) {
        meta = json_set_object(root, mem, "metadata");
    }
    json_set_cstr(meta, mem, "resourceVersion", text);
    return meta;
}

static enum store_event_type event_of(enum store_verb verb)
{
    return verb == STORE_CREATE   ? STORE_ADDED
           : verb == STORE_UPDATE ? STORE_MODIFIED
                                  : STORE_DELETED;
}

/* A deletion without its own state shows that of the head, read into *last. */
static int check_root(struct store *s, const struct store_write *w, const struct store_obj *head,
                      struct json *last, struct hk_err *err)
{
    hk_arena_clear(&s->scratch);
    if (!w->root) {
        hk_assert(w->verb == STORE_DELETE);
        return json_parse(head->text, 0, &s->scratch, last, err);
    }
    if (!json_is(w->root, JSON_OBJECT)) {
        return hk_fail(err, HK_EINVAL, "an object is a JSON object, not %s",
                       json_type_name(w->root->type));
    }
    return 0;
}

/* Writes the object with the next revision into s->text; its strings point there and into root. */
static struct store_obj write_obj(struct store *s, const struct store_write *w,
                                  const struct store_obj *head, struct json *root)
{
    const uint64_t rv = s->last_rv + 1;
    struct json *meta = set_revision(root, w->root ? w->mem : &s->scratch, rv);

    hk_buf_clear(&s->text);
    json_write(root, &s->text);
    return (struct store_obj){
        .res = w->res,
        .ns = w->ns,
        .name = w->name,
        .uid = json_str(json_get(meta, "uid"), HK_STR("")),
        .rv = rv,
        .created_rv = head ? head->created_rv : rv,
        .text = hk_buf_str(&s->text),
    };
}

/* The length of the text without its revision, whose number of digits grows. */
static size_t size_of(const struct store_obj *o)
{
    return o->text.n - (size_t)snprintf(NULL, 0, "%" PRIu64, o->rv);
}

/* A deletion, or an update of an object that is being deleted (grace period, finalizers). */
static bool makes_room(const struct store_write *w)
{
    return w->verb == STORE_DELETE ||
           (w->verb == STORE_UPDATE && json_at(w->root, "metadata.deletionTimestamp") != NULL);
}

/* Whether memory allows the write. Deletions and updates that do not grow always pass. */
static int check_memory(struct store *s, const struct store_write *w, const struct store_obj *head,
                        const struct store_obj *obj, struct hk_err *err)
{
    const size_t had = w->verb == STORE_UPDATE ? size_of(head) : 0, has = size_of(obj);

    hk_budget_spend(s->budget, TEXT_COST * obj->text.n + OBJECT_COST);
    const enum hk_room room = hk_budget_room(s->budget);
    if (room == HK_ROOM_ENOUGH || makes_room(w) || (w->verb == STORE_UPDATE && has <= had)) {
        return 0;
    }
    if (room == HK_ROOM_SHORT && w->verb == STORE_UPDATE && w->vital && has <= had + VITAL_BYTES) {
        return 0;
    }
    *err = *hk_budget_failure(s->budget);
    return -HK_EFULL;
}

static struct store_stage *stage_new(struct store *s)
{
    struct store_stage *st = s->spare;

    if (!st) {
        return hk_alloc(sizeof(*st));
    }
    s->spare = st->chain;
    return st;
}

int store_submit(struct store *s, const struct store_write *w, store_done_fn *done, void *ctx,
                 struct hk_err *err)
{
    const struct store_key key = {w->ns, w->name};
    struct store_stage *older, *st;
    const struct store_obj *head, *obj;
    struct store_obj written;
    struct json last;
    int rc;

    if (s->broken) {
        start_probe(s);
        return hk_fail(err, HK_EIO, "no writes until the disk recovers: %s", s->err.text);
    }
    head = find_head(s, w->res, key, &older);
    rc = check_head(s, w, head, err);
    if (rc < 0) {
        return rc;
    }
    rc = check_root(s, w, head, &last, err);
    if (rc < 0) {
        return rc;
    }
    if (store_log_is_short(s->log) && !makes_room(w)) {
        start_probe(s);
        return hk_fail(err, HK_EFULL, "%s", store_failure(s)->text);
    }

    written = write_obj(s, w, head, w->root ? w->root : &last);
    rc = check_memory(s, w, head, &written, err);
    if (rc < 0) {
        return rc;
    }
    obj = store_obj_new(&written);
    if (w->verb == STORE_CREATE) {
        count_object(s, obj);
    }
    st = stage_new(s);
    *st = (struct store_stage){
        .item = {.kind = STORE_LOG_WRITE, .type = event_of(w->verb), .obj = obj},
        .hash = store_key_hash(w->res, key),
        .done = done,
        .ctx = ctx,
    };
    if (older) {
        store_heads_del(&s->heads, older);
    }
    store_heads_add(&s->heads, st);
    s->last_rv = obj->rv;
    s->nstaged++;
    store_log_push(s->log, &st->item);
    return 0;
}

/* ---- opening and closing ---- */

static void read_marks(void *ctx, uint64_t compacted, uint64_t revision)
{
    struct store *s = ctx;

    s->ring.oldest_rv = HK_MAX(s->ring.oldest_rv, compacted);
    s->rv = s->last_rv = HK_MAX(HK_MAX(s->last_rv, compacted), revision);
}

static int read_res(void *ctx, uint32_t res, struct hk_str name, struct hk_err *err)
{
    struct store *s = ctx;

    if (hk_intern(&s->names, name) != res) {
        return hk_fail(err, HK_EIO, "resource '%.*s' has number %" PRIu32 ", out of order",
                       HK_FMT(name), res);
    }
    (void)res_at(s, res);
    return 0;
}

/* A row older than the history only sets the state of its object. */
static void replay_old(struct store *s, enum store_event_type type, const struct store_obj *obj)
{
    const struct store_obj *prev = index_apply(&s->res.at[obj->res], type, obj);

    store_mark_rows_dead(s, type, obj, prev);
    store_obj_unref(prev);
}

static int read_row(void *ctx, enum store_event_type type, const struct store_obj *row,
                    uint64_t sum, struct hk_err *err)
{
    struct store *s = ctx;
    struct store_obj *obj;
    bool had;
    const bool old = row->rv <= s->ring.oldest_rv;

    if (row->res == 0 || row->res >= s->res.len) {
        return hk_fail(err, HK_EIO, "revision %" PRIu64 " is of unknown resource %" PRIu32, row->rv,
                       row->res);
    }
    had = store_get(s, row->res, row->ns, row->name) != NULL;
    if (!old && s->damaged.rows.len == 0 && (type == STORE_ADDED) == had) {
        return hk_fail(err, HK_EIO,
                       "revision %" PRIu64 " does not follow from those before it; 'hekla check' "
                       "shows details, 'hekla check --salvage' copies the intact rest",
                       row->rv);
    }
    hk_budget_spend(s->budget, row->text.n + OBJECT_COST);
    if (hk_budget_room(s->budget) == HK_ROOM_NONE) {
        ring_trim(s);
        if (hk_budget_measure(s->budget) == HK_ROOM_NONE) {
            return hk_fail(err, HK_EFULL,
                           "not enough memory to read it: %" PRIu64 " MiB of %" PRIu64
                           " MiB are used; start the server with a higher limit",
                           hk_budget_used(s->budget) >> 20, hk_budget_limit(s->budget) >> 20);
        }
    }
    store_damaged_pass(&s->damaged, row);
    obj = store_obj_new(row);
    if (type == STORE_DELETED && had) {
        uncount_object(s, obj);
    } else if (type != STORE_DELETED && !had) {
        count_object(s, obj);
    }
    if (old) {
        replay_old(s, type, obj);
    } else {
        store_publish(s, type, obj);
    }
    s->last_rv = HK_MAX(s->last_rv, obj->rv);
    store_obj_unref(obj);
    return 0;
}

static int read_damaged(void *ctx, const struct store_obj *row, struct hk_err *err)
{
    struct store *s = ctx;

    store_damaged_add(&s->damaged, row);
    s->last_rv = HK_MAX(s->last_rv, row->rv);
    return 0;
}

static const char *res_name(void *ctx, uint32_t res)
{
    const struct store *s = ctx;

    return res > 0 && res < s->res.len ? hk_intern_str(&s->names, res).s : "unknown";
}

/* Watches must start again where events are missing. */
static void cut_history(struct store *s, uint64_t rv)
{
    drop_history(s);
    s->ring.oldest_rv = s->rv = s->last_rv = rv;
}

static int settle_log(struct store *s, struct hk_err *err)
{
    HK_VEC(uint64_t) revs = {0};
    uint64_t generation;
    int rc;

    for (uint32_t i = 0; i < s->damaged.rows.len; i++) {
        hk_vec_push(&revs, s->damaged.rows.at[i].rv);
    }
    rc = store_log_settle(s->log, revs.at, revs.len, &generation, err);
    hk_vec_fini(&revs);
    if (rc == 0 && (generation != 0 || s->damaged.rows.len > 0)) {
        cut_history(s, HK_MAX(generation, s->last_rv));
    }
    if (rc == 0 && generation != 0) {
        hk_log(HK_LOG_WARN, "continuing without the missing data, as requested",
               "revision=%" PRIu64, generation);
    }
    return rc;
}

static int open_log(struct store *s, const struct store_opts *o, struct hk_err *err)
{
    const struct store_log_reader reader = {s, read_marks, read_res, read_row, read_damaged};
    int rc = store_log_open(o, &s->log, err);

    if (rc == 0) {
        rc = store_log_read(s->log, &reader, err);
    }
    if (rc == 0) {
        rc = store_damaged_check(&s->damaged, res_name, s, err);
    }
    if (rc == 0) {
        s->rv = s->told_rv = s->last_rv;
        rc = settle_log(s, err);
    }
    if (rc < 0) {
        return o->path ? hk_wrap(err, rc, "store '%s'", o->path) : rc;
    }
    return store_log_start(s->log, err);
}

static size_t ring_limit(const struct store_opts *o)
{
    const uint64_t limit = hk_budget_limit(o->budget);

    if (o->ring_bytes > 0) {
        return o->ring_bytes;
    }
    return limit > 0 ? HK_MIN((uint64_t)RING_BYTES, limit / RING_SHARE) : RING_BYTES;
}

int store_open(const struct store_opts *o, struct store **ret, struct hk_err *err)
{
    struct store *s = hk_zalloc(sizeof(*s));
    int rc;

    s->durable = o->path != NULL;
    s->ring.max_events = o->ring_events > 0 ? o->ring_events : RING_EVENTS;
    s->budget = o->budget;
    s->ring_bytes = s->ring.max_bytes = ring_limit(o);
    s->rv = s->last_rv = s->ring.oldest_rv = FIRST_RV;
    s->told_rv = UINT64_MAX;
    (void)res_at(s, 0); /* no resource has this number */
    rc = open_log(s, o, err);
    if (rc < 0) {
        store_close(s);
        return rc;
    }
    *ret = s;
    return 0;
}

static void free_items(struct store *s)
{
    struct hk_err err;
    struct store_log_item *next;

    for (struct store_log_item *item = store_log_take(s->log, &err); item; item = next) {
        next = item->next;
        if (item->kind == STORE_LOG_WRITE) {
            stage_free(s, (struct store_stage *)item);
        }
    }
}

static void free_spare(struct store_stage *st)
{
    struct store_stage *next;

    for (; st; st = next) {
        next = st->chain;
        hk_free(st);
    }
}

void store_close(struct store *s)
{
    if (!s) {
        return;
    }
    if (s->log) {
        store_log_stop(s->log);
        free_items(s);
        store_log_free(s->log);
    }
    store_ring_fini(&s->ring);
    for (uint32_t i = 0; i < s->res.len; i++) {
        store_index_fini(&s->res.at[i].index, store_obj_unref);
        hk_intern_fini(&s->res.at[i].namespaces);
    }
    free_spare(s->spare);
    hk_free(s->heads.slots);
    hk_vec_fini(&s->res);
    hk_vec_fini(&s->hooks);
    hk_vec_fini(&s->dead);
    store_damaged_fini(&s->damaged);
    hk_intern_fini(&s->names);
    hk_buf_fini(&s->text);
    hk_arena_fini(&s->scratch);
    hk_free(s);
}
