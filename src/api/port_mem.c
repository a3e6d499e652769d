// SPDX-License-Identifier: Apache-2.0
// The port for tests: objects in rows that are never reused, the verbs, and a log of changes for
// watches that start in the past. Single-threaded.
#include "api/patch.h"
#include "api/port_mem_priv.h"

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

/* Gives the tree the next revision and makes it the state of its row; doc is in a. */
static int port_mem_commit(struct port_mem *m, uint32_t row, const struct api_kind *kind,
                           struct json *doc, bool deleted, struct hk_arena *a, struct hk_err *err)
{
    struct json *meta = json_need(doc, a, "metadata", JSON_OBJECT);
    struct change c = {.old = m->rows.at[row], .deleted = deleted};
    int rc;

    json_set_cstr(meta, a, "resourceVersion",
                  hk_arena_printf(a, "%llu", (unsigned long long)m->rv + 1));
    rc = api_object_new(kind, doc, &c.obj, err);
    if (rc < 0) {
        return rc;
    }
    m->rv++;
    m->rows.at[row] = deleted ? NULL : api_object_ref(c.obj);
    hk_vec_push(&m->changes, c); /* takes the row's old reference */
    mem_queue_change(m, &c);
    return 0;
}

static int remove_row(struct port_mem *m, uint32_t row, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct api_object *o = m->rows.at[row];
    struct json doc = json_clone(&o->root, &a);

    return port_mem_commit(m, row, o->kind, &doc, true, &a, err);
}

/* True if they differ only in the revision. */
static bool unchanged(const struct api_object *old, struct json *doc, struct hk_arena *a)
{
    const struct json *rv = json_at(&old->root, "metadata.resourceVersion");

    json_set(json_need(doc, a, "metadata", JSON_OBJECT), a, "resourceVersion", *rv);
    return json_equal(&old->root, doc);
}

static int port_mem_update_row(struct call *c, uint32_t row, struct json *doc)
{
    struct api_object *old = c->m->rows.at[row];

    if (c->req->dry_run || unchanged(old, doc, &c->arena)) {
        return 0;
    }
    return port_mem_commit(c->m, row, old->kind, doc, false, &c->arena, &c->err);
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

/* Sets name, namespace, uid and creation time of a new object. */
static struct hk_str new_identity(struct call *c, struct json *doc)
{
    struct hk_arena *a = &c->arena;
    struct json *meta = json_need(doc, a, "metadata", JSON_OBJECT);
    struct hk_str name = json_str_field(meta, "name");
    const struct hk_str prefix = json_str_field(meta, "generateName");
    const unsigned long long next = c->m->rv + 1;

    if (name.n == 0 && prefix.n > 0) {
        name = hk_str(hk_arena_printf(a, "%.*s%05llu", HK_FMT(prefix), next));
        json_set_str(meta, a, "name", name);
    }
    if (c->req->kind->namespaced) {
        json_set_str(meta, a, "namespace", c->req->ns);
    }
    json_set_cstr(meta, a, "uid", hk_arena_printf(a, "00000000-0000-0000-0000-%012llx", next));
    json_set_time(meta, a, "creationTimestamp", c->m->now_ns);
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
    return req->dry_run ? 0
                        : port_mem_commit(c->m, *row, req->kind, &doc, false, &c->arena, &c->err);
}

static int do_bind(struct call *c, uint32_t row)
{
    const struct api_object *pod = c->m->rows.at[row];
    struct hk_arena *a = &c->arena;
    const struct hk_str node = json_str_at(c->req->body, "target.name");
    const struct json *notes = json_at(c->req->body, "metadata.annotations");

    if (node.n == 0) {
        return hk_fail(&c->err, HK_EINVAL, "target.name: missing");
    }
    const struct hk_str bound = json_str_at(&pod->root, "spec.nodeName");
    if (bound.n > 0) {
        return hk_fail(&c->err, HK_ECONFLICT, "pod '%.*s' is already assigned to node '%.*s'",
                       HK_FMT(pod->name), HK_FMT(bound));
    }
    struct json doc = json_clone(&pod->root, a);
    json_set_str(json_need(&doc, a, "spec", JSON_OBJECT), a, "nodeName", node);
    if (json_is(notes, JSON_OBJECT)) {
        api_patch_merge(
            json_need(json_need(&doc, a, "metadata", JSON_OBJECT), a, "annotations", JSON_OBJECT),
            notes, a);
    }
    return port_mem_update_row(c, row, &doc);
}

static bool lingers(const struct api_object *o, const struct port_request *req)
{
    const struct hk_str phase = json_str(json_at(&o->root, "status.phase"), HK_STR("Pending"));
    const bool bound = json_str_at(&o->root, "spec.nodeName").n > 0;
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
    json_set_time(json_need(&doc, &c->arena, "metadata", JSON_OBJECT), &c->arena,
                  "deletionTimestamp", c->m->now_ns);
    return port_mem_update_row(c, row, &doc);
}

/* The new tree of a write: identity stays, and only the part of the (sub)resource changes. */
static struct json port_mem_merge_body(struct call *c, const struct api_object *old,
                                       const struct json *body)
{
    static const char *const kept[] = {"name", "namespace", "uid", "creationTimestamp"};
    struct hk_arena *a = &c->arena;
    const bool status = c->req->subresource != NULL;
    struct json doc = json_clone(status ? &old->root : body, a);
    const struct json *from = json_get(status ? body : &old->root, "status");

    for (size_t i = 0; i < HK_LEN(kept) && !status; i++) {
        const struct json *v = json_get(json_get(&old->root, "metadata"), kept[i]);
        if (v) {
            json_set(json_need(&doc, a, "metadata", JSON_OBJECT), a, kept[i], *v);
        }
    }
    if (!old->kind->status && !status) {
        return doc;
    }
    json_del(&doc, "status");
    if (from) {
        json_set(&doc, a, "status", json_clone(from, a));
    }
    return doc;
}

static int do_update(struct call *c, uint32_t row, const struct json *body)
{
    const struct api_object *old = c->m->rows.at[row];
    const struct hk_str rv = json_str_at(body, "metadata.resourceVersion");
    int64_t n;

    if (rv.n > 0 && (!hk_str_int(rv, &n) || (uint64_t)n != old->rv)) {
        return hk_fail(&c->err, HK_ECONFLICT,
                       "%s '%.*s': the object has been modified: have revision %llu, want '%.*s'",
                       c->req->kind->plural, HK_FMT(old->name), (unsigned long long)old->rv,
                       HK_FMT(rv));
    }
    struct json doc = port_mem_merge_body(c, old, body);
    return port_mem_update_row(c, row, &doc);
}

/* A uid in the patch must match the object. */
static int port_mem_check_uid(struct call *c, const struct api_object *o)
{
    const struct hk_str uid = json_str(json_at(c->req->body, "metadata.uid"), o->uid);

    if (hk_str_eq(uid, o->uid)) {
        return 0;
    }
    return hk_fail(&c->err, HK_ECONFLICT, "%s '%.*s': uid is '%.*s', want '%.*s'",
                   c->req->kind->plural, HK_FMT(o->name), HK_FMT(o->uid), HK_FMT(uid));
}

static int do_patch(struct call *c, uint32_t row)
{
    const struct api_object *old = c->m->rows.at[row];
    struct json doc = json_clone(&old->root, &c->arena);
    int rc = port_mem_check_uid(c, old);

    if (rc < 0) {
        return rc;
    }
    if (c->req->patch == PORT_PATCH_JSON) {
        rc = api_patch_json(&doc, c->req->body, &c->arena, &c->err);
    } else if (c->req->patch == PORT_PATCH_STRATEGIC) {
        rc = api_patch_strategic(&doc, c->req->body, c->req->kind, &c->arena, &c->err);
    } else {
        api_patch_merge(&doc, c->req->body, &c->arena);
    }
    if (rc < 0) {
        return rc;
    }
    return do_update(c, row, &doc);
}

/* Whether the verb supports the subresource. */
static bool subresource_known(const struct port_request *req)
{
    const char *sub = req->subresource;

    if (!sub || req->verb == PORT_GET) {
        return true;
    }
    if (req->verb == PORT_CREATE && req->kind->id == API_SERVICE_ACCOUNT) {
        return !strcmp(sub, "token");
    }
    if (req->verb == PORT_CREATE) {
        return req->kind->id == API_POD && (!strcmp(sub, "binding") || !strcmp(sub, "eviction"));
    }
    return (req->verb == PORT_UPDATE || req->verb == PORT_PATCH) && req->kind->status &&
           !strcmp(sub, "status");
}

static int do_token(struct call *c, uint32_t row)
{
    struct hk_arena *a = &c->arena;
    struct json doc = json_clone(&c->m->rows.at[row]->root, a);
    const char *token = hk_arena_printf(a, "token-%llu", (unsigned long long)c->m->rv);
    const struct json *spec = json_get(c->req->body, "spec");

    json_set(&doc, a, "spec", json_clone_as(spec, JSON_OBJECT, a));
    json_set_cstr(json_need(&doc, a, "status", JSON_OBJECT), a, "token", token);
    return port_mem_update_row(c, row, &doc);
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
    if (strcmp(sub, "token") == 0) {
        return do_token(c, *row);
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

/* Each call counts down the faults of its verb; the first that reaches zero fails the call. */
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
    const bool list = req->verb == PORT_PATCH && req->patch == PORT_PATCH_JSON;

    if (write && !json_is(req->body, list ? JSON_ARRAY : JSON_OBJECT)) {
        return hk_fail(&c->err, HK_EINVAL, "%s needs %s as body", port_verb_name(req->verb),
                       list ? "a list" : "an object");
    }
    if (req->verb == PORT_DELETE_COLLECTION) {
        return hk_fail(&c->err, HK_EUNSUP, "%s of %s", port_verb_name(req->verb),
                       req->kind->plural);
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

/* The same answer as kube-apiserver's. */
static int refuse_ending(struct call *c, struct message *q)
{
    static const struct port_cause cause = {.reason = "NamespaceTerminating",
                                            .field = "metadata.namespace"};
    static const struct port_status status = {
        .code = 403, .reason = "Forbidden", .causes = &cause, .ncauses = 1};

    if (c->req->verb != PORT_CREATE || c->m->ending[0] == '\0' || c->req->kind->id == API_EVENT ||
        !hk_str_is(c->req->ns, c->m->ending)) {
        return 0;
    }
    q->msg.status = &status;
    return hk_fail(&c->err, HK_EDENIED,
                   "%s is forbidden: unable to create new content in "
                   "namespace %s because it is being terminated",
                   c->req->kind->plural, c->m->ending);
}

static int do_call(struct call *c, struct port_sink sink, struct message *q)
{
    uint32_t row;
    int rc = strike(c);

    if (rc == 0) {
        rc = check_request(c);
    }
    if (rc == 0) {
        rc = refuse_ending(c, q);
    }
    if (rc < 0) {
        return rc;
    }
    if (c->req->verb == PORT_LIST) {
        return mem_list(c, q);
    }
    if (c->req->verb == PORT_WATCH) {
        return mem_watch(c, sink);
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
        mem_done(m, c.id, sink, rc, &c.err, q);
    }
    hk_arena_fini(&c.arena);
    return c.id;
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
    mem_watches_fini(m);
    hk_vec_fini(&m->changes);
    hk_vec_fini(&m->rows);
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
    return port_mem_commit(m, row_of(m, o->kind, o->ns, o->name), o->kind, &copy, false, &a, err);
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
    const uint32_t row = row_of(m, kind, ns, name);

    return m->rows.at[row];
}

void port_mem_each(struct port_mem *m, const struct api_kind *kind,
                   void (*fn)(void *ctx, const struct api_object *o), void *ctx)
{
    for (uint32_t i = 0; i < m->rows.len; i++) {
        struct api_object *o = m->rows.at[i];

        if (o && o->kind == kind) {
            api_object_ref(o);
            fn(ctx, o);
            api_object_unref(o);
        }
    }
}

uint64_t port_mem_rv(const struct port_mem *m)
{
    return m->rv;
}

void port_mem_fail(struct port_mem *m, enum port_verb verb, uint32_t nth, enum hk_code code)
{
    hk_vec_push(&m->faults, (struct fault){verb, nth, code});
}

void port_mem_end_namespace(struct port_mem *m, const char *ns)
{
    snprintf(m->ending, sizeof(m->ending), "%s", ns);
}

void port_mem_compact(struct port_mem *m)
{
    changes_drop(m);
    m->compacted = m->rv;
}

struct hk_str port_mem_log(const struct port_mem *m)
{
    return hk_buf_str(&m->log);
}

void port_mem_log_clear(struct port_mem *m)
{
    hk_buf_clear(&m->log);
}
