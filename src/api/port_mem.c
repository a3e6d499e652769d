// SPDX-License-Identifier: Apache-2.0
// The port of tests: objects in rows that keep their place for ever, a log of changes for watches
// that start in the past, and one queue of messages that port_poll empties. Single-threaded.
#include "api/port_mem.h"

#include "api/patch.h"
#include "api/selector.h"
#include "base/map.h"
#include "base/vec.h"
#include "codec/timefmt.h"

/* One change. A creation has no old state; a deletion keeps its last in obj, under the revision of
 * the deletion. */
struct change {
    struct api_object *old, *obj;
    bool deleted;
};

/* What a list or watch selects; its strings live in the arena. */
struct filter {
    struct hk_arena arena;
    const struct api_kind *kind;
    struct hk_str ns;
    struct api_selector labels;
    struct api_field_selector fields;
};

struct watch {
    uint64_t call;
    struct port_sink sink;
    struct filter filter;
    bool bookmarks;
};

/* A message in the queue: the public one, with what it points to owned here. */
struct message {
    struct port_msg msg;
    struct port_sink sink;
    struct hk_err *err;
    struct api_object **items;
    char *cont;
};

struct fault {
    enum port_verb verb;
    uint32_t left;
    enum hk_code code;
};

struct port_mem {
    struct port port;
    uint64_t rv, compacted, last_call;
    int64_t now_ns;
    struct hk_intern keys;            /* "plural.group/ns/name" to row */
    HK_VEC(struct api_object *) rows; /* NULL where there is none now */
    HK_VEC(struct change) changes;    /* since the last compaction, oldest first */
    HK_VEC(struct watch *) watches;
    HK_VEC(struct message) queue;
    uint32_t queue_at; /* the next to deliver */
    HK_VEC(struct fault) faults;
    struct hk_buf log;
};

/* A call on its way through. */
struct call {
    struct port_mem *m;
    const struct port_request *req;
    uint64_t id;
    struct hk_arena arena; /* scratch trees */
    struct hk_err err;
};

static uint32_t row_of(struct port_mem *m, const struct api_kind *kind, struct hk_str ns,
                       struct hk_str name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf key = {0};

    hk_buf_addf(&key, "%s.%s/%.*s/%.*s", kind->plural, kind->group, HK_FMT(ns), HK_FMT(name));
    const uint32_t row = hk_intern(&m->keys, hk_buf_str(&key));
    while (m->rows.len <= row) {
        hk_vec_push(&m->rows, NULL);
    }
    return row;
}

static bool filter_init(struct filter *f, const struct port_request *req, struct hk_err *err)
{
    f->kind = req->kind;
    f->ns = hk_arena_str(&f->arena, req->ns);
    return api_selector_parse(hk_arena_str(&f->arena, req->label_selector), &f->arena, &f->labels,
                              err) == 0 &&
           api_field_selector_parse(req->field_selector, &f->arena, &f->fields, err) == 0;
}

static bool filter_match(const struct filter *f, const struct api_object *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    struct api_meta meta;

    if (!o || o->kind != f->kind || (f->ns.n > 0 && !hk_str_eq(o->ns, f->ns))) {
        return false;
    }
    if (f->labels.len > 0 && (api_meta_decode(&o->root, &scratch, &meta, NULL) < 0 ||
                              !api_selector_match(&f->labels, &meta.labels))) {
        return false;
    }
    return api_field_selector_match(&f->fields, &o->root);
}

static void watch_free(struct watch *w)
{
    hk_arena_fini(&w->filter.arena);
    hk_free(w);
}

static void message_fini(struct message *q)
{
    api_object_unref(q->msg.obj);
    for (uint32_t i = 0; i < q->msg.nitems; i++) {
        api_object_unref(q->items[i]);
    }
    hk_free(q->items);
    hk_free(q->err);
    hk_free(q->cont);
}

static void send_event(struct port_mem *m, const struct watch *w, enum port_msg_type type,
                       struct api_object *obj, uint64_t rv)
{
    struct message q = {.sink = w->sink, .msg = {.type = type, .call = w->call, .rv = rv}};

    q.msg.obj = obj ? api_object_ref(obj) : NULL;
    hk_vec_push(&m->queue, q);
}

/* What one watch sees of a change: an object may also enter or leave its selection. */
static void tell(struct port_mem *m, const struct watch *w, const struct change *c)
{
    const bool was = filter_match(&w->filter, c->old);
    const bool is = !c->deleted && filter_match(&w->filter, c->obj);

    if (was || is) {
        send_event(m, w, !is ? PORT_DELETED : was ? PORT_MODIFIED : PORT_ADDED, c->obj, c->obj->rv);
    }
}

static void send_done(struct port_mem *m, uint64_t call, struct port_sink sink, int rc,
                      const struct hk_err *err, struct message q)
{
    q.sink = sink;
    q.msg.type = PORT_DONE;
    q.msg.call = call;
    q.msg.rc = rc;
    if (rc < 0) {
        q.err = hk_alloc(sizeof(*q.err));
        *q.err = *err;
    }
    hk_vec_push(&m->queue, q);
}

static void put_str(struct json *obj, struct hk_arena *a, const char *key, struct hk_str value)
{
    json_put(obj, a, hk_str(key), json_make_str(value));
}

static void put_time(struct json *obj, struct hk_arena *a, const char *key, int64_t ns)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    time_write(ns, &text);
    put_str(obj, a, key, hk_arena_str(a, hk_buf_str(&text)));
}

/* The member as an object that may be edited, made when absent. */
static struct json *edit(struct json *obj, struct hk_arena *a, const char *key)
{
    const struct json *v = json_get(obj, key);
    return json_put(obj, a, hk_str(key), json_is(v, JSON_OBJECT) ? *v : json_make_object());
}

/* Gives the tree the next revision and makes it the state of its row; doc lives in a. */
static int commit(struct port_mem *m, uint32_t row, const struct api_kind *kind, struct json *doc,
                  bool deleted, struct hk_arena *a, struct hk_err *err)
{
    struct json *meta = edit(doc, a, "metadata");
    struct change c = {.old = m->rows.at[row], .deleted = deleted};
    int rc;

    put_str(meta, a, "resourceVersion",
            hk_str(hk_arena_printf(a, "%llu", (unsigned long long)m->rv + 1)));
    rc = api_object_new(kind, doc, &c.obj, err);
    if (rc < 0) {
        return rc;
    }
    m->rv++;
    m->rows.at[row] = deleted ? NULL : api_object_ref(c.obj);
    hk_vec_push(&m->changes, c); /* takes the row's old reference */
    for (uint32_t i = 0; i < m->watches.len; i++) {
        tell(m, m->watches.at[i], &c);
    }
    return 0;
}

static int remove_row(struct port_mem *m, uint32_t row, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct api_object *o = m->rows.at[row];
    struct json doc = json_clone(&o->root, &a);

    return commit(m, row, o->kind, &doc, true, &a, err);
}

/* The same but for the revision. */
static bool unchanged(const struct api_object *old, struct json *doc, struct hk_arena *a)
{
    const struct json *rv = json_at(&old->root, "metadata.resourceVersion");

    json_put(edit(doc, a, "metadata"), a, HK_STR("resourceVersion"), *rv);
    return json_equal(&old->root, doc);
}

static int replace(struct call *c, uint32_t row, struct json *doc)
{
    struct api_object *old = c->m->rows.at[row];

    if (c->req->dry_run || unchanged(old, doc, &c->arena)) {
        return 0;
    }
    return commit(c->m, row, old->kind, doc, false, &c->arena, &c->err);
}

static int fail_missing(struct call *c)
{
    return hk_fail(&c->err, HK_ENOTFOUND, "%s '%.*s' not found", c->req->kind->plural,
                   HK_FMT(c->req->name));
}

static int do_get(struct call *c, uint32_t row)
{
    return c->m->rows.at[row] ? 0 : fail_missing(c);
}

/* Name, namespace, uid and birth of a new object. */
static struct hk_str new_identity(struct call *c, struct json *doc)
{
    struct hk_arena *a = &c->arena;
    struct json *meta = edit(doc, a, "metadata");
    struct hk_str name = json_str(json_get(meta, "name"), HK_STR(""));
    const struct hk_str prefix = json_str(json_get(meta, "generateName"), HK_STR(""));
    const unsigned long long next = c->m->rv + 1;

    if (name.n == 0 && prefix.n > 0) {
        name = hk_str(hk_arena_printf(a, "%.*s%05llu", HK_FMT(prefix), next));
        put_str(meta, a, "name", name);
    }
    if (c->req->kind->namespaced) {
        put_str(meta, a, "namespace", c->req->ns);
    }
    put_str(meta, a, "uid", hk_str(hk_arena_printf(a, "00000000-0000-0000-0000-%012llx", next)));
    put_time(meta, a, "creationTimestamp", c->m->now_ns);
    return name;
}

static int do_new(struct call *c, uint32_t *row)
{
    const struct port_request *req = c->req;
    struct json doc = json_clone(req->body, &c->arena);
    const struct hk_str name = new_identity(c, &doc);

    if (name.n == 0) {
        return hk_fail(&c->err, HK_EINVAL, "%s: name or generateName is required",
                       req->kind->plural);
    }
    if (req->kind->status) {
        json_del(&doc, "status");
    }
    *row = row_of(c->m, req->kind, req->ns, name);
    if (c->m->rows.at[*row]) {
        return hk_fail(&c->err, HK_EEXIST, "%s '%.*s' already exists", req->kind->plural,
                       HK_FMT(name));
    }
    return req->dry_run ? 0 : commit(c->m, *row, req->kind, &doc, false, &c->arena, &c->err);
}

static int do_bind(struct call *c, uint32_t row)
{
    const struct api_object *pod = c->m->rows.at[row];
    struct hk_arena *a = &c->arena;
    const struct hk_str node = json_str(json_at(c->req->body, "target.name"), HK_STR(""));
    const struct json *notes = json_at(c->req->body, "metadata.annotations");

    if (node.n == 0) {
        return hk_fail(&c->err, HK_EINVAL, "target.name: missing");
    }
    const struct hk_str bound = json_str(json_at(&pod->root, "spec.nodeName"), HK_STR(""));
    if (bound.n > 0) {
        return hk_fail(&c->err, HK_ECONFLICT, "pod '%.*s' is already assigned to node '%.*s'",
                       HK_FMT(pod->name), HK_FMT(bound));
    }
    struct json doc = json_clone(&pod->root, a);
    put_str(edit(&doc, a, "spec"), a, "nodeName", node);
    if (json_is(notes, JSON_OBJECT)) {
        api_patch_merge(edit(edit(&doc, a, "metadata"), a, "annotations"), notes, a);
    }
    return replace(c, row, &doc);
}

static bool lingers(const struct api_object *o, const struct port_request *req)
{
    const struct hk_str phase = json_str(json_at(&o->root, "status.phase"), HK_STR("Pending"));
    const bool bound = json_str(json_at(&o->root, "spec.nodeName"), HK_STR("")).n > 0;
    const bool finished = hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed");

    return o->kind->id == API_POD && bound && !finished && !(req->has_grace && req->grace_s == 0);
}

static int do_delete(struct call *c, uint32_t row)
{
    const struct port_request *req = c->req;
    const struct api_object *o = c->m->rows.at[row];

    if ((req->if_uid.n > 0 && !hk_str_eq(req->if_uid, o->uid)) ||
        (req->if_rv > 0 && req->if_rv != o->rv)) {
        return hk_fail(&c->err, HK_ECONFLICT, "%s '%.*s': precondition failed", req->kind->plural,
                       HK_FMT(o->name));
    }
    if (req->dry_run) {
        return 0;
    }
    if (!lingers(o, req)) {
        return remove_row(c->m, row, &c->err);
    }
    if (json_at(&o->root, "metadata.deletionTimestamp")) {
        return 0;
    }
    struct json doc = json_clone(&o->root, &c->arena);
    put_time(edit(&doc, &c->arena, "metadata"), &c->arena, "deletionTimestamp", c->m->now_ns);
    return replace(c, row, &doc);
}

/* The new tree of a write over the old one: identity stays, and of the rest only the part that the
 * resource or subresource stands for changes. */
static struct json overlay(struct call *c, const struct api_object *old, const struct json *body)
{
    static const char *const kept[] = {"name", "namespace", "uid", "creationTimestamp"};
    struct hk_arena *a = &c->arena;
    const bool status = c->req->subresource != NULL;
    struct json doc = json_clone(status ? &old->root : body, a);
    const struct json *from = json_get(status ? body : &old->root, "status");

    for (size_t i = 0; i < HK_LEN(kept) && !status; i++) {
        const struct json *v = json_get(json_get(&old->root, "metadata"), kept[i]);
        if (v) {
            json_put(edit(&doc, a, "metadata"), a, hk_str(kept[i]), *v);
        }
    }
    if (!old->kind->status && !status) {
        return doc;
    }
    json_del(&doc, "status");
    if (from) {
        json_put(&doc, a, HK_STR("status"), json_clone(from, a));
    }
    return doc;
}

static int do_update(struct call *c, uint32_t row, const struct json *body)
{
    const struct api_object *old = c->m->rows.at[row];
    const struct hk_str rv = json_str(json_at(body, "metadata.resourceVersion"), HK_STR(""));
    int64_t n;

    if (rv.n > 0 && (!hk_str_int(rv, &n) || (uint64_t)n != old->rv)) {
        return hk_fail(&c->err, HK_ECONFLICT,
                       "%s '%.*s': the object has been modified: have revision %llu, want '%.*s'",
                       c->req->kind->plural, HK_FMT(old->name), (unsigned long long)old->rv,
                       HK_FMT(rv));
    }
    struct json doc = overlay(c, old, body);
    return replace(c, row, &doc);
}

static int do_patch(struct call *c, uint32_t row)
{
    struct json doc = json_clone(&c->m->rows.at[row]->root, &c->arena);

    if (c->req->patch != PORT_PATCH_MERGE) {
        return hk_fail(&c->err, HK_EUNSUP, "patch type '%s'", port_patch_media(c->req->patch));
    }
    api_patch_merge(&doc, c->req->body, &c->arena);
    return do_update(c, row, &doc);
}

/* Which subresources a verb takes. */
static bool subresource_known(const struct port_request *req)
{
    const char *sub = req->subresource;

    if (!sub || req->verb == PORT_GET) {
        return true;
    }
    if (req->verb == PORT_CREATE) {
        return req->kind->id == API_POD && (!strcmp(sub, "binding") || !strcmp(sub, "eviction"));
    }
    return (req->verb == PORT_UPDATE || req->verb == PORT_PATCH) && req->kind->status &&
           !strcmp(sub, "status");
}

static int do_create(struct call *c, uint32_t *row)
{
    const char *sub = c->req->subresource;

    if (!sub) {
        return do_new(c, row);
    }
    if (!c->m->rows.at[*row]) {
        return fail_missing(c);
    }
    return strcmp(sub, "binding") == 0 ? do_bind(c, *row) : do_delete(c, *row);
}

static int do_one(struct call *c, uint32_t *row)
{
    const struct port_request *req = c->req;

    *row = row_of(c->m, req->kind, req->ns, req->name);
    if (req->verb == PORT_CREATE) {
        return do_create(c, row);
    }
    const int rc = do_get(c, *row);
    if (rc < 0 || req->verb == PORT_GET) {
        return rc;
    }
    switch (req->verb) {
    case PORT_UPDATE:
        return do_update(c, *row, req->body);
    case PORT_PATCH:
        return do_patch(c, *row);
    default:
        return do_delete(c, *row);
    }
}

static int do_list(struct call *c, struct message *q)
{
    struct port_mem *m = c->m;
    struct filter f = {0};
    HK_VEC(struct api_object *) items = {0};
    int64_t row = 0;
    int rc = 0;

    if (!filter_init(&f, c->req, &c->err)) {
        rc = -c->err.code;
    } else if (c->req->cont.n > 0 && !hk_str_int(c->req->cont, &row)) {
        rc = hk_fail(&c->err, HK_EINVAL, "bad continue token '%.*s'", HK_FMT(c->req->cont));
    }
    for (; rc == 0 && row < m->rows.len; row++) {
        if (!filter_match(&f, m->rows.at[row])) {
            continue;
        }
        if (c->req->limit > 0 && items.len == c->req->limit) {
            q->cont = hk_strdup(hk_arena_printf(&c->arena, "%lld", (long long)row));
            break;
        }
        hk_vec_push(&items, api_object_ref(m->rows.at[row]));
    }
    hk_arena_fini(&f.arena);
    q->items = items.at;
    q->msg.nitems = items.len;
    q->msg.rv = m->rv;
    return rc;
}

/* The past first, then what comes. From revision 0 the past is every object as it is now. */
static void watch_start(struct port_mem *m, struct watch *w, uint64_t rv)
{
    for (uint32_t i = 0; rv == 0 && i < m->rows.len; i++) {
        struct api_object *o = m->rows.at[i];
        if (filter_match(&w->filter, o)) {
            send_event(m, w, PORT_ADDED, o, o->rv);
        }
    }
    for (uint32_t i = 0; rv > 0 && i < m->changes.len; i++) {
        if (m->changes.at[i].obj->rv > rv) {
            tell(m, w, &m->changes.at[i]);
        }
    }
    hk_vec_push(&m->watches, w);
}

static int do_watch(struct call *c, struct port_sink sink)
{
    const struct port_request *req = c->req;
    struct watch *w;

    if (req->rv > 0 && req->rv < c->m->compacted) {
        return hk_fail(&c->err, HK_EGONE, "revision %llu is compacted, oldest is %llu",
                       (unsigned long long)req->rv, (unsigned long long)c->m->compacted);
    }
    w = hk_zalloc(sizeof(*w));
    w->call = c->id;
    w->sink = sink;
    w->bookmarks = req->bookmarks;
    if (!filter_init(&w->filter, req, &c->err)) {
        watch_free(w);
        return -c->err.code;
    }
    watch_start(c->m, w, req->rv);
    return 0;
}

/* Each call counts down the faults of its verb; the first to reach zero strikes. */
static int strike(struct call *c)
{
    struct port_mem *m = c->m;
    int rc = 0;

    for (uint32_t i = 0; i < m->faults.len;) {
        struct fault *f = &m->faults.at[i];
        if (f->verb != c->req->verb || --f->left > 0) {
            i++;
            continue;
        }
        rc = hk_fail(&c->err, f->code, "injected failure");
        hk_vec_swap_remove(&m->faults, i);
    }
    return rc;
}

static void log_call(struct port_mem *m, const struct port_request *req)
{
    hk_buf_addf(&m->log, "%s %s%s%s", port_verb_name(req->verb), req->kind->plural,
                req->subresource ? "/" : "", req->subresource ? req->subresource : "");
    if (req->ns.n + req->name.n > 0) {
        hk_buf_addf(&m->log, " %.*s%s%.*s", HK_FMT(req->ns), req->ns.n > 0 ? "/" : "",
                    HK_FMT(req->name));
    }
    hk_buf_addc(&m->log, '\n');
}

static int check_request(struct call *c)
{
    const struct port_request *req = c->req;
    const bool write =
        req->verb == PORT_CREATE || req->verb == PORT_UPDATE || req->verb == PORT_PATCH;
    const bool many = req->verb == PORT_LIST || req->verb == PORT_WATCH;

    if (write && !json_is(req->body, JSON_OBJECT)) {
        return hk_fail(&c->err, HK_EINVAL, "%s needs an object as body", port_verb_name(req->verb));
    }
    if (!subresource_known(req)) {
        return hk_fail(&c->err, HK_EUNSUP, "%s of %s/%s", port_verb_name(req->verb),
                       req->kind->plural, req->subresource);
    }
    if (!many && req->kind->namespaced != (req->ns.n > 0)) {
        return hk_fail(&c->err, HK_EINVAL, "%s: namespace '%.*s'", req->kind->plural,
                       HK_FMT(req->ns));
    }
    return 0;
}

static int do_call(struct call *c, struct port_sink sink, struct message *q)
{
    uint32_t row;
    int rc = strike(c);

    if (rc == 0) {
        rc = check_request(c);
    }
    if (rc < 0) {
        return rc;
    }
    if (c->req->verb == PORT_LIST) {
        return do_list(c, q);
    }
    if (c->req->verb == PORT_WATCH) {
        return do_watch(c, sink);
    }
    rc = do_one(c, &row);
    if (rc == 0 && c->m->rows.at[row]) {
        q->msg.obj = api_object_ref(c->m->rows.at[row]);
        q->msg.rv = q->msg.obj->rv;
    }
    return rc;
}

static uint64_t mem_submit(struct port *p, const struct port_request *req, struct port_sink sink)
{
    struct port_mem *m = (struct port_mem *)p;
    struct call c = {.m = m, .req = req, .id = ++m->last_call};
    struct message q = {0};

    log_call(m, req);
    const int rc = do_call(&c, sink, &q);
    if (rc < 0 || req->verb != PORT_WATCH) {
        send_done(m, c.id, sink, rc, &c.err, q);
    }
    hk_arena_fini(&c.arena);
    return c.id;
}

static void mem_cancel(struct port *p, uint64_t call)
{
    struct port_mem *m = (struct port_mem *)p;

    for (uint32_t i = 0; i < m->watches.len; i++) {
        if (m->watches.at[i]->call == call) {
            watch_free(m->watches.at[i]);
            hk_vec_swap_remove(&m->watches, i);
            break;
        }
    }
    for (uint32_t i = m->queue_at; i < m->queue.len; i++) {
        if (m->queue.at[i].msg.call == call) {
            m->queue.at[i].sink.on_msg = NULL;
        }
    }
}

static uint32_t mem_poll(struct port *p, uint32_t max)
{
    struct port_mem *m = (struct port_mem *)p;
    uint32_t n = 0;

    while (n < max && m->queue_at < m->queue.len) {
        /* A copy: the callback may submit, and the queue move. */
        struct message q = m->queue.at[m->queue_at++];
        if (q.sink.on_msg) {
            q.msg.err = q.err;
            q.msg.items = q.items;
            q.msg.cont = hk_str(q.cont);
            q.sink.on_msg(q.sink.ctx, &q.msg);
            n++;
        }
        message_fini(&q);
    }
    if (m->queue_at == m->queue.len) {
        hk_vec_clear(&m->queue);
        m->queue_at = 0;
    }
    return n;
}

static int mem_fd(struct port *p)
{
    return -1;
}

static void changes_drop(struct port_mem *m)
{
    for (uint32_t i = 0; i < m->changes.len; i++) {
        api_object_unref(m->changes.at[i].old);
        api_object_unref(m->changes.at[i].obj);
    }
    hk_vec_clear(&m->changes);
}

static void mem_free(struct port *p)
{
    struct port_mem *m = (struct port_mem *)p;

    changes_drop(m);
    for (uint32_t i = 0; i < m->rows.len; i++) {
        api_object_unref(m->rows.at[i]);
    }
    for (uint32_t i = 0; i < m->watches.len; i++) {
        watch_free(m->watches.at[i]);
    }
    for (uint32_t i = m->queue_at; i < m->queue.len; i++) {
        message_fini(&m->queue.at[i]);
    }
    hk_vec_fini(&m->changes);
    hk_vec_fini(&m->rows);
    hk_vec_fini(&m->watches);
    hk_vec_fini(&m->queue);
    hk_vec_fini(&m->faults);
    hk_intern_fini(&m->keys);
    hk_buf_fini(&m->log);
    hk_free(m);
}

static const struct port_ops mem_ops = {
    .name = "mem",
    .submit = mem_submit,
    .cancel = mem_cancel,
    .poll = mem_poll,
    .fd = mem_fd,
    .free = mem_free,
};

struct port_mem *port_mem_new(int64_t now_ns)
{
    struct port_mem *m = hk_zalloc(sizeof(*m));

    m->port.ops = &mem_ops;
    m->now_ns = now_ns;
    return m;
}

struct port *port_mem_port(struct port_mem *m)
{
    return &m->port;
}

void port_mem_set_now(struct port_mem *m, int64_t now_ns)
{
    m->now_ns = now_ns;
}

int port_mem_put(struct port_mem *m, const struct json *doc, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(api_object_unrefp) struct api_object *o = NULL;
    const int rc = api_object_new(NULL, doc, &o, err);

    if (rc < 0) {
        return rc;
    }
    struct json copy = json_clone(doc, &a);
    return commit(m, row_of(m, o->kind, o->ns, o->name), o->kind, &copy, false, &a, err);
}

bool port_mem_remove(struct port_mem *m, const struct api_kind *kind, struct hk_str ns,
                     struct hk_str name)
{
    const uint32_t row = row_of(m, kind, ns, name);
    return m->rows.at[row] && remove_row(m, row, NULL) == 0;
}

const struct api_object *port_mem_peek(struct port_mem *m, const struct api_kind *kind,
                                       struct hk_str ns, struct hk_str name)
{
    return m->rows.at[row_of(m, kind, ns, name)];
}

uint64_t port_mem_rv(const struct port_mem *m)
{
    return m->rv;
}

void port_mem_fail(struct port_mem *m, enum port_verb verb, uint32_t nth, enum hk_code code)
{
    hk_vec_push(&m->faults, (struct fault){verb, nth, code});
}

void port_mem_compact(struct port_mem *m)
{
    changes_drop(m);
    m->compacted = m->rv;
}

void port_mem_end_watches(struct port_mem *m, enum hk_code code)
{
    struct hk_err err = {0};
    const int rc = hk_fail(&err, code, "watch ended");

    for (uint32_t i = 0; i < m->watches.len; i++) {
        struct watch *w = m->watches.at[i];
        send_done(m, w->call, w->sink, rc, &err, (struct message){0});
        watch_free(w);
    }
    hk_vec_clear(&m->watches);
}

void port_mem_bookmark(struct port_mem *m)
{
    for (uint32_t i = 0; i < m->watches.len; i++) {
        if (m->watches.at[i]->bookmarks) {
            send_event(m, m->watches.at[i], PORT_BOOKMARK, NULL, m->rv);
        }
    }
}

struct hk_str port_mem_log(const struct port_mem *m)
{
    return hk_buf_str(&m->log);
}

void port_mem_log_clear(struct port_mem *m)
{
    hk_buf_clear(&m->log);
}
