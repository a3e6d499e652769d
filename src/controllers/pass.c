// SPDX-License-Identifier: Apache-2.0
// One pass over one key: the writes it requests, their answers, and the next step for the key.
// After a pass that requested writes another one follows, after a pause if a write failed. A pass
// without writes is the last.
#include "controllers/ctl_priv.h"

#include "api/port_status.h"
#include "base/crumb.h"
#include "base/log.h"

/* The answer was lost. The watch or the next try shows whether the write took effect. */
#define CALL_TIMEOUT_NS ((int64_t)60 * 1000 * 1000 * 1000)
/* Pause between attempts to create objects in a namespace that is being deleted. */
#define ENDING_NS ((int64_t)10 * 1000 * 1000 * 1000)
/* A pass over a key with very many objects takes long, and each change of one of them queues
 * another pass. After a pass longer than REST_FROM_NS the key rests REST_FACTOR times as long, so
 * such keys use at most a quarter of the time. Each requested call takes CALL_EARNS_NS off the
 * measured time. */
#define REST_FROM_NS ((int64_t)2 * 1000 * 1000)
#define REST_MAX_NS ((int64_t)2 * 1000 * 1000 * 1000)
#define REST_FACTOR 3
#define CALL_EARNS_NS ((int64_t)100 * 1000)
#define ERRORS_MAX 16u
#define LOUD_FAILURES 5u
#define REQUEUE_DEFAULT 15u

struct ctl_state *ctl_state_of(struct ctl *c)
{
    return (struct ctl_state *)((char *)c - offsetof(struct ctl_state, ctl));
}

void pass_error_fini(struct pass_error *e)
{
    hk_free(e->name);
    hk_free(e->text);
    hk_free(e->reason);
}

static struct key_pass *key_pass_of(struct ctl *c, uint32_t key)
{
    return &ctl_state_of(c)->passes.at[key];
}

static void forget_errors(struct key_pass *p)
{
    for (uint32_t i = 0; i < p->errors.len; i++) {
        pass_error_fini(&p->errors.at[i]);
    }
    p->errors.len = 0;
}

static void add_error(struct key_pass *p, struct pass_error e)
{
    p->failed = true;
    if (p->errors.len < ERRORS_MAX) {
        hk_vec_push(&p->errors, e);
    } else {
        pass_error_fini(&e);
    }
}

/* ---- the end of a pass ---- */

/* Logs only lasting failures and their end: conflicts and restarts of other processes cause a few
 * failures. */
static void report_failures(const struct manager *m, const struct ctl *c, uint32_t key,
                            const struct key_pass *p)
{
    const struct workq_key *k = &c->q.keys.at[key];
    const struct hk_str ns = hk_intern_str(&m->str, k->ns), name = hk_intern_str(&m->str, k->name);
    const char *slash = ns.n > 0 ? "/" : "";

    if (p->failed && k->failures == LOUD_FAILURES && p->errors.len > 0) {
        hk_log(HK_LOG_WARN, "still failing", "controller=%s object=%.*s%s%.*s err=\"%s\"",
               c->type->name, HK_FMT(ns), slash, HK_FMT(name), p->errors.at[0].text);
    } else if (!p->failed && k->failures >= LOUD_FAILURES) {
        hk_log(HK_LOG_INFO, "recovered", "controller=%s object=%.*s%s%.*s", c->type->name,
               HK_FMT(ns), slash, HK_FMT(name));
    }
}

/* Failures are counted until nothing is left to do: success of an earlier step does not shorten the
 * pause after a failing one. */
static void end_pass(struct manager *m, struct ctl *c, uint32_t key, bool again)
{
    struct key_pass *p = key_pass_of(c, key);

    if (p->failed) {
        m->metrics.failures++;
        workq_failed(&c->q, key, m->o.clock->mono_ns(m->o.clock));
        report_failures(m, c, key, p);
        return;
    }
    forget_errors(p);
    if (again) {
        workq_again(&c->q, key);
    } else {
        report_failures(m, c, key, p);
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
    if (--key_pass_of(c, key)->nflight == 0) {
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
    add_error(key_pass_of(call->c, call->key),
              (struct pass_error){.verb = call->verb,
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

/* The object to create already exists: read it to learn its owner. If the mirror already has it,
 * the create failed. */
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
                        (struct port_sink){pass_on_msg, m});
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
        memo->ours = msg->rc == 0;
        memo->foreign = false;
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

/* True when the answer, error or not, means the wanted state. */
static bool is_fine(const struct call *call, int rc)
{
    switch (call->verb) {
    case PORT_CREATE:
        return rc == 0 || (rc == -HK_EEXIST && call->memo);
    case PORT_DELETE: /* a conflict means another uid: not the object to delete */
        return rc == 0 || rc == -HK_ENOTFOUND || (rc == -HK_ECONFLICT && call->uid[0] != '\0');
    default:
        return rc == 0 || rc == -HK_ENOTFOUND;
    }
}

/* ---- namespaces that are being deleted ---- */

static void note_ending(struct manager *m, const char *ns)
{
    const int64_t until_ns = m->o.clock->mono_ns(m->o.clock) + ENDING_NS;
    const uint32_t id = hk_intern_hold(&m->str, hk_str(ns));

    for (uint32_t i = 0; i < m->ending.len; i++) {
        if (m->ending.at[i].ns == id) {
            m->ending.at[i].until_ns = until_ns;
            hk_intern_drop(&m->str, id);
            return;
        }
    }
    hk_vec_push(&m->ending, ((struct ending_namespace){id, until_ns}));
}

/* How long to create nothing in the namespace; 0: it is not known to be ending. */
static int64_t ending_wait_ns(struct manager *m, struct hk_str ns)
{
    const int64_t now_ns = m->o.clock->mono_ns(m->o.clock);
    int64_t wait_ns = 0;

    for (uint32_t i = m->ending.len; i-- > 0;) {
        if (m->ending.at[i].until_ns <= now_ns) {
            hk_intern_drop(&m->str, m->ending.at[i].ns);
            hk_vec_swap_remove(&m->ending, i);
        } else if (hk_str_eq(hk_intern_str(&m->str, m->ending.at[i].ns), ns)) {
            wait_ns = m->ending.at[i].until_ns - now_ns;
        }
    }
    return wait_ns;
}

void pass_on_msg(void *manager, const struct port_msg *msg)
{
    struct manager *m = manager;
    const uint32_t slot = hk_map_get(&m->call_at, msg->call);
    struct call *call;

    if (slot == HK_NONE || msg->type != PORT_DONE) {
        return; /* canceled, or reported twice */
    }
    call = &m->calls.at[slot];
    if (call->verb == PORT_CREATE && msg->rc == -HK_EEXIST && !call->memo &&
        fetch_existing(m, call)) {
        return;
    }
    if (call->verb == PORT_CREATE && port_status_namespace_ends(msg->status)) {
        note_ending(m, call->ns);
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

void pass_expire(struct manager *m, int64_t now_ns)
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

/* ---- requests ---- */

static bool pass_is_full(struct pass *t)
{
    t->full = t->full || t->ncall >= TURN_CALLS_MAX;
    return t->full;
}

static void pass_submit_call(struct pass *t, struct call call, const struct port_request *req)
{
    struct manager *m = t->c->mgr;
    const int64_t now_ns = m->o.clock->mono_ns(m->o.clock);
    uint32_t slot;

    call.c = t->c;
    call.key = t->key;
    call.verb = req->verb;
    call.kind = req->kind;
    call.deadline_ns = now_ns + CALL_TIMEOUT_NS;
    call.id = port_submit(m->o.port, req, (struct port_sink){pass_on_msg, m});
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
    key_pass_of(t->c, t->key)->nflight++;
    t->ncall++;
}

static char *pass_copy_str(struct hk_str s)
{
    return hk_strndup(s.s ? s.s : "", s.n);
}

/* The object's uid in the mirror. */
static struct hk_str known_uid(const struct pass *t, const struct port_request *req)
{
    const struct mirror *mirror = t->c->mgr->mirrors[req->kind->id];
    const uint32_t row = mirror ? mirror_find(mirror, req->ns, req->name) : HK_NONE;

    return row != HK_NONE ? mirror_uid(mirror, row) : HK_STR("");
}

static bool pass_submit_request(struct pass *t, const struct port_request *req,
                                struct ensured *memo)
{
    struct call call = {.memo = memo};

    if (pass_is_full(t)) {
        return false;
    }
    call.ns = pass_copy_str(req->ns);
    call.name = pass_copy_str(req->name);
    call.uid = pass_copy_str(req->if_uid.n > 0 ? req->if_uid : known_uid(t, req));
    pass_submit_call(t, call, req);
    return true;
}

/* While a namespace is deleted, creates wait: every event there would repeat a refused create. */
static bool write_body(struct pass *t, enum port_verb verb, const struct api_kind *kind,
                       const char *subresource, const struct json *body, struct ensured *memo)
{
    const struct json *meta = json_get(body, "metadata");
    const struct hk_str ns = json_str(json_get(meta, "namespace"), HK_STR(""));
    const int64_t wait_ns = verb == PORT_CREATE ? ending_wait_ns(t->c->mgr, ns) : 0;

    if (wait_ns > 0) {
        pass_again_at(t, t->now_ns + wait_ns);
        return true;
    }

    return pass_submit_request(
        t,
        &(struct port_request){.verb = verb,
                               .kind = kind,
                               .ns = json_str(json_get(meta, "namespace"), HK_STR("")),
                               .name = json_str(json_get(meta, "name"), HK_STR("")),
                               .subresource = subresource,
                               .body = body,
                               .text_only = true},
        memo);
}

bool pass_create(struct pass *t, const struct api_kind *kind, const struct json *body)
{
    return write_body(t, PORT_CREATE, kind, NULL, body, NULL);
}

bool pass_update(struct pass *t, const struct api_kind *kind, const struct json *body)
{
    return write_body(t, PORT_UPDATE, kind, NULL, body, NULL);
}

bool pass_update_status(struct pass *t, const struct api_kind *kind, const struct json *body)
{
    return write_body(t, PORT_UPDATE, kind, "status", body, NULL);
}

bool pass_patch(struct pass *t, const struct pass_patch *p)
{
    return pass_submit_request(t,
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

bool pass_delete(struct pass *t, const struct api_kind *kind, struct hk_str ns, struct hk_str name,
                 struct hk_str uid, enum port_propagation propagation)
{
    return pass_submit_request(t,
                               &(struct port_request){.verb = PORT_DELETE,
                                                      .kind = kind,
                                                      .ns = ns,
                                                      .name = name,
                                                      .if_uid = uid,
                                                      .propagation = propagation},
                               NULL);
}

bool pass_delete_now(struct pass *t, const struct api_kind *kind, struct hk_str ns,
                     struct hk_str name, struct hk_str uid)
{
    return pass_submit_request(t,
                               &(struct port_request){.verb = PORT_DELETE,
                                                      .kind = kind,
                                                      .ns = ns,
                                                      .name = name,
                                                      .if_uid = uid,
                                                      .has_grace = true},
                               NULL);
}

void pass_fail(struct pass *t, enum hk_code code, const char *fmt, ...)
{
    struct hk_buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    t->failed = true;
    add_error(key_pass_of(t->c, t->key), (struct pass_error){.verb = PORT_NVERBS,
                                                             .name = pass_copy_str(t->name),
                                                             .rc = -(int)code,
                                                             .text = text.data});
}

uint32_t pass_patience(const struct pass *t)
{
    const int32_t limit = t->c->mgr->o.conf.max_requeue;

    if (limit == 0) {
        return REQUEUE_DEFAULT;
    }
    return limit < 0 ? UINT32_MAX : (uint32_t)limit;
}

void pass_again_at(struct pass *t, int64_t at_ns)
{
    t->again_ns = HK_MIN(t->again_ns, at_ns);
}

void pass_event(struct pass *t, const struct json *obj, bool warning, const char *reason,
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

bool ensured_is_foreign(const struct ensured *e)
{
    return e->foreign;
}

static struct json body_of(const struct ensure *e, struct hk_arena *a)
{
    struct json body = json_make_object();
    struct hk_buf version = {0};
    struct json *meta;

    api_kind_write_version(e->kind, &version);
    json_set_str_copy(&body, a, "apiVersion", hk_buf_str(&version));
    hk_buf_fini(&version);
    json_set_cstr(&body, a, "kind", e->kind->kind);
    meta = json_set_object(&body, a, "metadata");
    json_set_str(meta, a, "name", e->name);
    if (e->kind->namespaced) {
        json_set_str(meta, a, "namespace", e->ns);
    }
    e->make(e->ctx, a, &body);
    return body;
}

static bool is_owned_by(const struct json *obj, struct hk_str uid)
{
    const struct json *refs = json_at(obj, "metadata.ownerReferences");

    for (uint32_t i = 0; json_is(refs, JSON_ARRAY) && i < refs->len; i++) {
        if (hk_str_eq(json_str(json_get(&refs->items[i], "uid"), HK_STR("")), uid)) {
            return true;
        }
    }
    return false;
}

/* Removes the found object from the memo and returns a copy. */
static struct json pop_found(struct pass *t, struct ensured *memo)
{
    const struct json obj = json_clone(&memo->found->root, t->mem);

    api_object_unref(memo->found);
    memo->found = NULL;
    memo->state = ENSURED_UNKNOWN;
    return obj;
}

/* Compares the found object with the wanted one. */
static bool check_found(struct pass *t, struct ensured *memo, const struct ensure *e)
{
    struct json obj = pop_found(t, memo);

    memo->ours = e->owner_uid.n == 0 || is_owned_by(&obj, e->owner_uid);
    memo->foreign = !memo->ours;
    if (memo->foreign) {
        pass_fail(t, HK_ECONFLICT, "%s \"%.*s\" exists and has another owner", e->kind->singular,
                  HK_FMT(e->name));
        return false;
    }
    memo->want = e->want;
    memo->state = ENSURED_DONE;
    if (e->correct && e->correct(e->ctx, t->mem, &obj)) {
        memo->state = ENSURED_UNKNOWN;
        write_body(t, PORT_UPDATE, e->kind, NULL, &obj, memo);
        return false;
    }
    return true;
}

bool pass_ensure(struct pass *t, struct ensured *memo, const struct ensure *e)
{
    struct json body;

    if (memo->state == ENSURED_DONE && memo->want == e->want) {
        return true;
    }
    if (pass_is_full(t)) {
        return false;
    }
    switch (memo->state) {
    case ENSURED_FOUND:
        return check_found(t, memo, e);
    case ENSURED_ABSENT:
        body = body_of(e, t->mem);
        memo->want = e->want;
        memo->state = ENSURED_UNKNOWN;
        write_body(t, PORT_CREATE, e->kind, NULL, &body, memo);
        return false;
    default:
        memo->state = ENSURED_UNKNOWN;
        pass_submit_request(
            t,
            &(struct port_request){.verb = PORT_GET, .kind = e->kind, .ns = e->ns, .name = e->name},
            memo);
        return false;
    }
}

/* Deletes the found object if owner_uid owns it. Any other object stays and counts as removed. */
static bool remove_found(struct pass *t, struct ensured *memo, const struct api_kind *kind,
                         struct hk_str owner_uid)
{
    const struct json obj = pop_found(t, memo);
    const struct json *meta = json_get(&obj, "metadata");

    if (!is_owned_by(&obj, owner_uid)) {
        memo->state = ENSURED_REMOVED;
        return true;
    }
    pass_submit_request(
        t,
        &(struct port_request){.verb = PORT_DELETE,
                               .kind = kind,
                               .ns = json_str(json_get(meta, "namespace"), HK_STR("")),
                               .name = json_str(json_get(meta, "name"), HK_STR("")),
                               .if_uid = json_str(json_get(meta, "uid"), HK_STR(""))},
        memo);
    return false;
}

/* Deletes an object created by this process at once; others are read first to check the owner. */
bool pass_remove(struct pass *t, struct ensured *memo, const struct api_kind *kind,
                 struct hk_str ns, struct hk_str name, struct hk_str owner_uid)
{
    struct port_request req = {.verb = PORT_GET, .kind = kind, .ns = ns, .name = name};

    switch (memo->state) {
    case ENSURED_REMOVED:
        return true;
    case ENSURED_ABSENT:
        memo->state = ENSURED_REMOVED;
        return true;
    case ENSURED_FOUND:
        return remove_found(t, memo, kind, owner_uid);
    case ENSURED_DONE:
        req.verb = memo->ours ? PORT_DELETE : PORT_GET;
        break;
    default:
        break;
    }
    pass_submit_request(t, &req, memo);
    return false;
}

bool pass_read(struct pass *t, struct ensured *memo, const struct api_kind *kind, struct hk_str ns,
               struct hk_str name, struct api_object **ret)
{
    if (memo->state == ENSURED_FOUND || memo->state == ENSURED_ABSENT) {
        *ret = hk_take(memo->found);
        memo->state = ENSURED_UNKNOWN;
        return true;
    }
    pass_submit_request(
        t, &(struct port_request){.verb = PORT_GET, .kind = kind, .ns = ns, .name = name}, memo);
    return false;
}

/* ---- running a pass ---- */

/* The object of the key: from the first of the controller's mirrors that has one. */
static const struct mirror *find_named(const struct pass *t, struct recorder_about *ret,
                                       uint32_t *ret_row)
{
    for (const struct ctl_watch *w = t->c->type->watches; w->type; w++) {
        const struct mirror *m = t->c->mgr->mirrors[w->type->kind];

        *ret_row = mirror_find(m, t->ns, t->name);
        if (*ret_row != HK_NONE) {
            *ret = (struct recorder_about){.kind = api_kind(w->type->kind),
                                           .ns = t->ns,
                                           .name = t->name,
                                           .uid = mirror_uid(m, *ret_row)};
            return m;
        }
    }
    return NULL;
}

/* Whether this key crashed the process before; if so, it is skipped until its object changes. */
static bool pass_has_crashed_before(const struct pass *t)
{
    static const char advice[] = "not worked on: the server died of it twice. Change or delete it, "
                                 "and report the backtrace in the log";
    struct recorder_about about;
    uint32_t row;
    const struct mirror *m;
    bool news;

    if (!hk_crumb_any()) {
        return false;
    }
    m = find_named(t, &about, &row);
    if (!hk_crumb_skips(t->c->type->name, t->ns, t->name, m ? mirror_rv(m, row) : 0, &news)) {
        return false;
    }
    if (news) {
        hk_log(HK_LOG_ERROR, "skipping an object", "controller=%s object=%.*s%s%.*s why=\"%s\"",
               t->c->type->name, HK_FMT(t->ns), t->ns.n > 0 ? "/" : "", HK_FMT(t->name), advice);
    }
    if (news && m) {
        recorder_note(t->c->mgr->recorder, &about, true, "Quarantined", hk_str(advice));
    }
    return true;
}

static void rest_after(struct manager *m, const struct pass *t, int64_t begun_ns)
{
    const int64_t now_ns = m->o.clock->mono_ns(m->o.clock);
    const int64_t took_ns = now_ns - begun_ns - (int64_t)t->ncall * CALL_EARNS_NS;

    if (took_ns > REST_FROM_NS) {
        workq_rest(&t->c->q, t->key, now_ns + HK_MIN(REST_FACTOR * took_ns, REST_MAX_NS));
    }
}

void pass_run(struct manager *m, struct ctl_state *s, uint32_t key)
{
    const int64_t begun_ns = m->o.clock->mono_ns(m->o.clock);
    struct ctl *c = &s->ctl;
    const struct workq_key *k = &c->q.keys.at[key];
    HK_VEC(struct pass_error) before = {0};
    struct pass t = {.c = c,
                     .ns = hk_intern_str(&m->str, k->ns),
                     .name = hk_intern_str(&m->str, k->name),
                     .mem = &m->mem,
                     .now_ns = m->o.clock->wall_ns(m->o.clock),
                     .failures = k->failures,
                     .key = key,
                     .again_ns = INT64_MAX};
    struct key_pass *p;

    while (s->passes.len <= key) {
        hk_vec_push(&s->passes, (struct key_pass){0});
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
    if (!pass_has_crashed_before(&t)) {
        hk_crumb_enter(c->type->name, t.ns, t.name);
        c->type->reconcile(c, &t);
        hk_crumb_leave();
    }

    hk_arena_clear(&m->mem);
    for (uint32_t i = 0; i < before.len; i++) {
        pass_error_fini(&before.at[i]);
    }
    hk_vec_fini(&before);
    if (t.again_ns != INT64_MAX) {
        ctl_add_at(c, t.ns, t.name, t.again_ns);
    }
    rest_after(m, &t, begun_ns);
    if (t.ncall == 0) {
        end_pass(m, c, key, t.full);
    }
}
