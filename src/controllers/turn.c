// SPDX-License-Identifier: Apache-2.0
// One pass over one key: the writes it asks for, their answers, and what becomes of the key then.
// A pass that asked for nothing is the last; after any other there is one more, since the world has
// changed. After a failure that waits.
#include "controllers/ctl_priv.h"

#include "base/log.h"

/* Somebody lost the answer. Whether the write took effect, the watch or the next try will tell. */
#define CALL_TIMEOUT_NS ((int64_t)60 * 1000 * 1000 * 1000)
#define ERRORS_MAX 16u
#define LOUD_FAILURES 5u
#define REQUEUE_DEFAULT 15u

struct seat *ctl_seat(struct ctl *c)
{
    return (struct seat *)((char *)c - offsetof(struct seat, ctl));
}

void turn_error_fini(struct turn_error *e)
{
    hk_free(e->name);
    hk_free(e->text);
    hk_free(e->reason);
}

static struct pass *pass_of(struct ctl *c, uint32_t key)
{
    return &ctl_seat(c)->passes.at[key];
}

static void forget_errors(struct pass *p)
{
    for (uint32_t i = 0; i < p->errors.len; i++) {
        turn_error_fini(&p->errors.at[i]);
    }
    p->errors.len = 0;
}

static void add_error(struct pass *p, struct turn_error e)
{
    p->failed = true;
    if (p->errors.len < ERRORS_MAX) {
        hk_vec_push(&p->errors, e);
    } else {
        turn_error_fini(&e);
    }
}

/* ---- the end of a pass ---- */

/* A few failures are what conflicts and restarts of others bring; what goes on is worth a line, and
 * so is its end. */
static void tell_failures(const struct manager *m, const struct ctl *c, uint32_t key,
                          const struct pass *p)
{
    const struct workq_key *k = &c->q.keys.at[key];
    const struct hk_str ns = hk_intern_str(&m->str, k->ns), name = hk_intern_str(&m->str, k->name);
    const char *slash = ns.n > 0 ? "/" : "";

    if (p->failed && k->failures == LOUD_FAILURES && p->errors.len > 0) {
        hk_log(HK_LOG_WARN, "goes on failing", "controller=%s object=%.*s%s%.*s err=\"%s\"",
               c->type->name, HK_FMT(ns), slash, HK_FMT(name), p->errors.at[0].text);
    } else if (!p->failed && k->failures >= LOUD_FAILURES) {
        hk_log(HK_LOG_INFO, "works again", "controller=%s object=%.*s%s%.*s", c->type->name,
               HK_FMT(ns), slash, HK_FMT(name));
    }
}

/* Failures are counted until there is nothing left to do: a step that works before one that does
 * not is no reason to try again in haste. */
static void end_pass(struct manager *m, struct ctl *c, uint32_t key, bool again)
{
    struct pass *p = pass_of(c, key);

    if (p->failed) {
        m->metrics.failures++;
        workq_failed(&c->q, key, m->o.clock->mono_ns(m->o.clock));
        tell_failures(m, c, key, p);
        return;
    }
    forget_errors(p);
    if (again) {
        workq_again(&c->q, key);
    } else {
        tell_failures(m, c, key, p);
        workq_done(&c->q, key);
    }
}

static void call_ended(struct manager *m, struct call *call)
{
    struct ctl *c = call->c;
    const uint32_t key = call->key;

    hk_map_del(&m->call_at, call->id);
    hk_free(call->ns);
    hk_free(call->name);
    hk_free(call->uid);
    *call = (struct call){0};
    hk_vec_push(&m->vacant, (uint32_t)(call - m->calls.at));
    if (--pass_of(c, key)->nflight == 0) {
        end_pass(m, c, key, true);
    }
}

/* ---- answers ---- */

static void call_failed(struct manager *m, struct call *call, int rc, const char *text,
                        const char *reason)
{
    if (call->memo) {
        call->memo->state = ENSURED_UNKNOWN;
    }
    add_error(pass_of(call->c, call->key),
              (struct turn_error){.verb = call->verb,
                                  .kind = call->kind,
                                  .name = hk_strdup(call->name),
                                  .rc = rc,
                                  .text = hk_strdup(text),
                                  .reason = reason ? hk_strdup(reason) : NULL});
    hk_log(HK_LOG_DEBUG, "call failed", "controller=%s verb=%s kind=%s name=%s/%s err=\"%s\"",
           call->c->type->name, port_verb_name(call->verb), call->kind->plural, call->ns,
           call->name, text);
}

static void memo_read(struct ensured *memo, struct api_object *found)
{
    api_object_unref(memo->found);
    memo->found = found ? api_object_ref(found) : NULL;
    memo->state = found ? ENSURED_FOUND : ENSURED_ABSENT;
}

/* What was to be created is there already. Reading it tells whose it is; one that was known before
 * is in the way. */
static bool fetch_existing(struct manager *m, struct call *call)
{
    const struct mirror *mirror = m->mirrors[call->kind->id];
    struct call fetch = *call;
    uint32_t slot = (uint32_t)(call - m->calls.at);

    if (!mirror || mirror_find(mirror, hk_str(call->ns), hk_str(call->name)) != HK_NONE) {
        return false;
    }
    hk_map_del(&m->call_at, call->id);
    fetch.fetch = true;
    fetch.verb = PORT_GET;
    fetch.id = port_get(m->o.port, call->kind, hk_str(call->ns), hk_str(call->name),
                        (struct port_sink){turn_on_msg, m});
    m->calls.at[slot] = fetch;
    hk_map_put(&m->call_at, fetch.id, slot);
    return true;
}

static void memo_wrote(struct call *call, const struct port_msg *msg)
{
    struct ensured *memo = call->memo;

    switch (call->verb) {
    case PORT_GET:
        memo_read(memo, msg->rc == 0 ? msg->obj : NULL);
        break;
    case PORT_DELETE:
        memo->state = ENSURED_REMOVED;
        break;
    default:
        memo->state = msg->rc == 0 ? ENSURED_DONE : ENSURED_UNKNOWN;
        break;
    }
}

static void mirror_answer(struct manager *m, const struct call *call, const struct port_msg *msg)
{
    struct mirror *mirror = m->mirrors[call->kind->id];

    if (!mirror) {
        return;
    }
    if (msg->rc == 0 && msg->obj &&
        (call->verb != PORT_DELETE || json_at(&msg->obj->root, "metadata.deletionTimestamp"))) {
        mirror_wrote(mirror, msg->obj);
    } else if (call->verb != PORT_CREATE) {
        mirror_gone(mirror, hk_str(call->ns), hk_str(call->name), hk_str(call->uid));
    }
}

/* Answers that leave the world as it was wanted, whatever they are called. */
static bool is_fine(const struct call *call, int rc)
{
    switch (call->verb) {
    case PORT_CREATE:
        return rc == 0 || (rc == -HK_EEXIST && call->memo);
    case PORT_DELETE: /* with another uid it is not the one we meant */
        return rc == 0 || rc == -HK_ENOTFOUND || (rc == -HK_ECONFLICT && call->uid[0] != '\0');
    default:
        return rc == 0 || rc == -HK_ENOTFOUND;
    }
}

void turn_on_msg(void *manager, const struct port_msg *msg)
{
    struct manager *m = manager;
    const uint32_t slot = hk_map_get(&m->call_at, msg->call);
    struct call *call;

    if (slot == HK_NONE || msg->type != PORT_DONE) {
        return; /* given up before, or told twice */
    }
    call = &m->calls.at[slot];
    if (call->verb == PORT_CREATE && msg->rc == -HK_EEXIST && !call->memo &&
        fetch_existing(m, call)) {
        return;
    }
    if (!is_fine(call, msg->rc)) {
        call_failed(m, call, msg->rc, msg->err ? msg->err->text : "",
                    msg->status ? msg->status->reason : NULL);
    } else {
        if (call->memo) {
            memo_wrote(call, msg);
        }
        mirror_answer(m, call, msg);
    }
    call_ended(m, call);
}

void turn_expire(struct manager *m, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    if (now_ns < m->deadline_ns) {
        return;
    }
    for (uint32_t i = 0; i < m->calls.len; i++) {
        struct call *call = &m->calls.at[i];

        if (call->id == 0) {
            continue;
        }
        if (call->deadline_ns > now_ns) {
            next_ns = HK_MIN(next_ns, call->deadline_ns);
            continue;
        }
        port_cancel(m->o.port, call->id);
        call_failed(m, call, -HK_ETIMEOUT, "no answer from the API server", "Timeout");
        call_ended(m, call);
    }
    m->deadline_ns = next_ns;
}

/* ---- asking ---- */

static bool is_full(struct turn *t)
{
    t->full = t->full || t->ncall >= TURN_CALLS_MAX;
    return t->full;
}

static void submit(struct turn *t, struct call call, const struct port_request *req)
{
    struct manager *m = t->c->mgr;
    const int64_t now_ns = m->o.clock->mono_ns(m->o.clock);
    uint32_t slot;

    call.c = t->c;
    call.key = t->key;
    call.verb = req->verb;
    call.kind = req->kind;
    call.deadline_ns = now_ns + CALL_TIMEOUT_NS;
    call.id = port_submit(m->o.port, req, (struct port_sink){turn_on_msg, m});
    if (m->vacant.len > 0) {
        slot = hk_vec_pop(&m->vacant);
        m->calls.at[slot] = call;
    } else {
        slot = m->calls.len;
        hk_vec_push(&m->calls, call);
    }
    hk_map_put(&m->call_at, call.id, slot);
    m->deadline_ns = HK_MIN(m->deadline_ns, call.deadline_ns);
    m->metrics.writes[req->verb]++;
    pass_of(t->c, t->key)->nflight++;
    t->ncall++;
}

static char *dup(struct hk_str s)
{
    return hk_strndup(s.s ? s.s : "", s.n);
}

/* The uid of the object as the mirror knows it. */
static struct hk_str known_uid(const struct turn *t, const struct port_request *req)
{
    const struct mirror *mirror = t->c->mgr->mirrors[req->kind->id];
    const uint32_t row = mirror ? mirror_find(mirror, req->ns, req->name) : HK_NONE;

    return row != HK_NONE ? mirror_uid(mirror, row) : HK_STR("");
}

static bool ask(struct turn *t, const struct port_request *req, struct ensured *memo)
{
    struct call call = {.memo = memo};

    if (is_full(t)) {
        return false;
    }
    call.ns = dup(req->ns);
    call.name = dup(req->name);
    call.uid = dup(req->if_uid.n > 0 ? req->if_uid : known_uid(t, req));
    submit(t, call, req);
    return true;
}

static bool write_body(struct turn *t, enum port_verb verb, const struct api_kind *kind,
                       const char *subresource, const struct json *body, struct ensured *memo)
{
    const struct json *meta = json_get(body, "metadata");

    return ask(t,
               &(struct port_request){.verb = verb,
                                      .kind = kind,
                                      .ns = json_str(json_get(meta, "namespace"), HK_STR("")),
                                      .name = json_str(json_get(meta, "name"), HK_STR("")),
                                      .subresource = subresource,
                                      .body = body,
                                      .text_only = true},
               memo);
}

bool turn_create(struct turn *t, const struct api_kind *kind, const struct json *body)
{
    return write_body(t, PORT_CREATE, kind, NULL, body, NULL);
}

bool turn_update(struct turn *t, const struct api_kind *kind, const struct json *body)
{
    return write_body(t, PORT_UPDATE, kind, NULL, body, NULL);
}

bool turn_update_status(struct turn *t, const struct api_kind *kind, const struct json *body)
{
    return write_body(t, PORT_UPDATE, kind, "status", body, NULL);
}

bool turn_patch(struct turn *t, const struct turn_patch *p)
{
    return ask(t,
               &(struct port_request){.verb = PORT_PATCH,
                                      .kind = p->kind,
                                      .ns = p->ns,
                                      .name = p->name,
                                      .subresource = p->subresource,
                                      .patch = p->type,
                                      .body = p->body,
                                      .text_only = true,
                                      .field_manager = p->field_manager,
                                      .force = p->force},
               NULL);
}

bool turn_delete(struct turn *t, const struct api_kind *kind, struct hk_str ns, struct hk_str name,
                 struct hk_str uid, enum port_propagation propagation)
{
    return ask(t,
               &(struct port_request){.verb = PORT_DELETE,
                                      .kind = kind,
                                      .ns = ns,
                                      .name = name,
                                      .if_uid = uid,
                                      .propagation = propagation},
               NULL);
}

void turn_fail(struct turn *t, enum hk_code code, const char *fmt, ...)
{
    struct hk_buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    t->failed = true;
    add_error(pass_of(t->c, t->key),
              (struct turn_error){
                  .verb = PORT_NVERBS, .name = dup(t->name), .rc = -(int)code, .text = text.data});
}

uint32_t turn_patience(const struct turn *t)
{
    const int32_t limit = t->c->mgr->o.conf.max_requeue;

    if (limit == 0) {
        return REQUEUE_DEFAULT;
    }
    return limit < 0 ? UINT32_MAX : (uint32_t)limit;
}

void turn_again_at(struct turn *t, int64_t at_ns)
{
    t->again_ns = HK_MIN(t->again_ns, at_ns);
}

void turn_event(struct turn *t, const struct json *obj, bool warning, const char *reason,
                const char *fmt, ...)
{
    const struct json *meta = json_get(obj, "metadata");
    const struct recorder_about about = {
        .kind = api_kind_find(json_str(json_get(obj, "apiVersion"), HK_STR("")),
                              json_str(json_get(obj, "kind"), HK_STR(""))),
        .ns = json_str(json_get(meta, "namespace"), HK_STR("")),
        .name = json_str(json_get(meta, "name"), HK_STR("")),
        .uid = json_str(json_get(meta, "uid"), HK_STR("")),
    };
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    va_list ap;

    hk_assert(about.kind);
    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    t->c->mgr->metrics.events++;
    recorder_note(t->c->mgr->recorder, &about, warning, reason, hk_buf_str(&text));
}

/* ---- objects that are not mirrored ---- */

void ensured_fini(struct ensured *e)
{
    api_object_unref(e->found);
    *e = (struct ensured){0};
}

bool ensured_is_removed(const struct ensured *e)
{
    return e->state == ENSURED_REMOVED;
}

static struct json body_of(const struct ensure *e, struct hk_arena *a)
{
    struct json body = json_make_object();
    struct hk_buf version = {0};
    struct json *meta;

    api_kind_write_version(e->kind, &version);
    json_put(&body, a, HK_STR("apiVersion"), json_make_str(hk_arena_str(a, hk_buf_str(&version))));
    hk_buf_fini(&version);
    json_put(&body, a, HK_STR("kind"), json_make_str(hk_str(e->kind->kind)));
    meta = json_put(&body, a, HK_STR("metadata"), json_make_object());
    json_put(meta, a, HK_STR("name"), json_make_str(e->name));
    if (e->kind->namespaced) {
        json_put(meta, a, HK_STR("namespace"), json_make_str(e->ns));
    }
    e->make(e->ctx, a, &body);
    return body;
}

/* Compares what was found with what is wanted. */
static bool judge_found(struct turn *t, struct ensured *memo, const struct ensure *e)
{
    struct json obj = json_clone(&memo->found->root, t->mem);

    api_object_unref(memo->found);
    memo->found = NULL;
    memo->want = e->want;
    memo->state = ENSURED_DONE;
    if (e->mend && e->mend(e->ctx, t->mem, &obj)) {
        memo->state = ENSURED_UNKNOWN;
        write_body(t, PORT_UPDATE, e->kind, NULL, &obj, memo);
        return false;
    }
    return true;
}

bool turn_ensure(struct turn *t, struct ensured *memo, const struct ensure *e)
{
    struct json body;

    if (memo->state == ENSURED_DONE && memo->want == e->want) {
        return true;
    }
    if (is_full(t)) {
        return false;
    }
    switch (memo->state) {
    case ENSURED_FOUND:
        return judge_found(t, memo, e);
    case ENSURED_ABSENT:
        body = body_of(e, t->mem);
        memo->want = e->want;
        memo->state = ENSURED_UNKNOWN;
        write_body(t, PORT_CREATE, e->kind, NULL, &body, memo);
        return false;
    default:
        memo->state = ENSURED_UNKNOWN;
        ask(t,
            &(struct port_request){.verb = PORT_GET, .kind = e->kind, .ns = e->ns, .name = e->name},
            memo);
        return false;
    }
}

bool turn_remove(struct turn *t, struct ensured *memo, const struct api_kind *kind,
                 struct hk_str ns, struct hk_str name)
{
    if (memo->state == ENSURED_REMOVED) {
        return true;
    }
    ask(t, &(struct port_request){.verb = PORT_DELETE, .kind = kind, .ns = ns, .name = name}, memo);
    return false;
}

bool turn_read(struct turn *t, struct ensured *memo, const struct api_kind *kind, struct hk_str ns,
               struct hk_str name, struct api_object **ret)
{
    if (memo->state == ENSURED_FOUND || memo->state == ENSURED_ABSENT) {
        *ret = hk_take(memo->found);
        memo->state = ENSURED_UNKNOWN;
        return true;
    }
    ask(t, &(struct port_request){.verb = PORT_GET, .kind = kind, .ns = ns, .name = name}, memo);
    return false;
}

/* ---- running ---- */

void turn_run(struct manager *m, struct seat *s, uint32_t key)
{
    struct ctl *c = &s->ctl;
    const struct workq_key *k = &c->q.keys.at[key];
    HK_VEC(struct turn_error) before = {0};
    struct turn t = {.c = c,
                     .ns = hk_intern_str(&m->str, k->ns),
                     .name = hk_intern_str(&m->str, k->name),
                     .mem = &m->mem,
                     .now_ns = m->o.clock->wall_ns(m->o.clock),
                     .failures = k->failures,
                     .key = key,
                     .again_ns = INT64_MAX};
    struct pass *p;

    while (s->passes.len <= key) {
        hk_vec_push(&s->passes, (struct pass){0});
    }
    p = &s->passes.at[key];
    p->failed = false;
    before.at = p->errors.at;
    before.len = p->errors.len;
    before.cap = p->errors.cap;
    p->errors.at = NULL;
    p->errors.len = p->errors.cap = 0;
    t.errors = before.at;
    t.nerror = before.len;

    m->metrics.passes++;
    c->type->reconcile(c, &t);

    hk_arena_clear(&m->mem);
    for (uint32_t i = 0; i < before.len; i++) {
        turn_error_fini(&before.at[i]);
    }
    hk_vec_fini(&before);
    if (t.again_ns != INT64_MAX) {
        ctl_add_at(c, t.ns, t.name, t.again_ns);
    }
    if (t.ncall == 0) {
        end_pass(m, c, key, t.full);
    }
}
