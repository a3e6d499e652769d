// SPDX-License-Identifier: Apache-2.0
// One call from its request to its outcome: its memory, the writes it sends to the store, and the
// object it answers with. The other rest files implement the verbs and call this one; rest.c
// dispatches to them.
#include "store/rest_priv.h"

struct rest_call *rest_call_new(struct rest *r, const struct port_request *req,
                                struct port_sink sink)
{
    struct rest_call *c = hk_zalloc(sizeof(*c));

    c->r = r;
    c->mem = hk_arena_pool_take(&r->mem);
    c->id = ++r->last_call;
    c->sink = sink;
    c->req = req;
    c->text_only = req->text_only;
    c->vital = req->subresource != NULL;
    c->ns = hk_arena_str(&c->mem, req->ns);
    c->name = hk_arena_str(&c->mem, req->name);
    c->adm.mem = &c->mem;
    c->slot = r->calls.len;
    hk_vec_push(&r->calls, c);
    return c;
}

void rest_call_release(struct rest_call *c)
{
    for (uint32_t i = 0; i < c->held.len; i++) {
        store_obj_unref(c->held.at[i]);
    }
    hk_vec_fini(&c->held);
    for (uint32_t i = 0; i < c->borrowed.len; i++) {
        api_object_unref(c->borrowed.at[i]);
    }
    hk_vec_fini(&c->borrowed);
    hk_arena_pool_give(&c->r->mem, &c->mem);
}

void rest_call_reset(struct rest_call *c, const struct port_request *req)
{
    rest_call_release(c);
    c->mem = hk_arena_pool_take(&c->r->mem);
    api_object_unref(hk_take(c->obj));
    hk_vec_clear(&c->causes);
    admission_request_fini(&c->adm);
    c->adm = (struct admission_request){.mem = &c->mem};
    c->status = (struct port_status){0};
    c->err = (struct hk_err){0};
    c->has_status = c->created = c->deletes = false;
    c->finish = NULL;
    c->managed = NULL;
    c->rc = 0;
    c->req = req;
    c->ns = hk_arena_str(&c->mem, req->ns);
    c->name = hk_arena_str(&c->mem, req->name);
}

/* Frees the trees: a call that waits for the disk needs only its names. Thousands of calls may
 * wait, and the next call reuses memory that is still in the CPU cache. */
void rest_call_wait(struct rest_call *c)
{
    if (c->rc < 0 || c->has_status || c->items.len > 0 || c->adm.warnings.len > 0) {
        return;
    }
    c->names = hk_alloc(c->ns.n + c->name.n + 1);
    memcpy(c->names, c->ns.s, c->ns.n);
    memcpy(c->names + c->ns.n, c->name.s, c->name.n);
    c->ns.s = c->names;
    c->name.s = c->names + c->ns.n;
    rest_call_release(c);
}

/* The outcome is known: queues the call for port_poll. */
void rest_call_end(struct rest_call *c)
{
    c->next = NULL;
    *c->r->last = c;
    c->r->last = &c->next;
    c->r->poll_requested_for_outcomes |= !c->r->poll_requested;
    rest_wake(c->r);
}

void rest_succeed_deletion(struct rest_call *c, struct hk_str name, struct hk_str uid)
{
    rest_succeed(c, 200);
    c->status.name = hk_arena_str(&c->mem, name).s;
    c->status.group = c->k->kind->group[0] != '\0' ? c->k->kind->group : NULL;
    c->status.kind = c->k->kind->plural;
    c->status.uid = hk_arena_str(&c->mem, uid).s;
}

static void stored_object(struct rest_call *c, const struct store_obj *o)
{
    if (!c->sink.on_msg || o->res != c->k->res || c->items.len > 0) {
        return;
    }
    api_object_unref(c->obj);
    c->obj = rest_convert_answer(c, o);
    c->rv = o->rv;
    if (c->deletes && !c->has_status && (c->k->flags & REST_DELETE_STATUS)) {
        rest_succeed_deletion(c, o->name, o->uid);
    }
}

static void on_stored(void *ctx, int rc, const struct store_obj *o, const struct hk_err *err)
{
    struct rest_call *c = ctx;

    c->writes--;
    *rest_unborn(c->r, c->k->res) -= c->created && c->writes == 0;
    if (rc < 0 && c->rc == 0) {
        c->err = *err;
        rest_fail_store(c, rc);
        rest_quota_load(c->r); /* the staged writes and their quota charges are undone */
        rest_service_reload(c->r);
    } else if (rc == 0 && c->rc == 0 && c->writes == 0) {
        stored_object(c, o);
        if (c->finish && c->obj) {
            c->finish(c);
        }
    }
    if (c->writes > 0) {
        return;
    }
    if (c->submitted) {
        rest_call_end(c);
    } else if (c->deleter && !rest_webhook_waits(c)) {
        hk_vec_push(&c->r->lists, c); /* its next slice runs later */
        rest_request_poll(c->r);
    }
}

void rest_drop_cache(struct rest *r)
{
    for (size_t i = 0; i < HK_LEN(r->cache); i++) {
        api_object_unref(hk_take(r->cache[i]));
    }
}

void rest_watch_memory(struct rest *r)
{
    r->memory_tried = false;
    if (hk_budget_measure(r->budget) != HK_ROOM_ENOUGH) {
        rest_drop_cache(r);
        store_shed(r->store);
        hk_budget_measure(r->budget);
    }
}

int rest_check_memory(struct rest_call *c)
{
    struct rest *r = c->r;

    if (hk_budget_room(r->budget) != HK_ROOM_ENOUGH && !r->memory_tried) {
        rest_watch_memory(r);
        r->memory_tried = true;
    }
    if (hk_budget_room(r->budget) == HK_ROOM_ENOUGH) {
        return 0;
    }
    c->err = *hk_budget_failure(c->r->budget);
    return rest_fail_store(c, -HK_EFULL);
}

static struct api_object *head_object(struct rest *r, const struct rest_kind *k, struct hk_str ns,
                                      struct hk_str name)
{
    bool staged;
    const struct store_obj *head = store_head(r->store, k->res, ns, name, &staged);

    if (head && rest_convert_needed(k, head)) { /* it only counts: any version will do */
        struct api_object *ret = NULL;
        return api_object_parse(k->kind, head->text, &ret, NULL) < 0 ? NULL : ret;
    }
    return head ? rest_object(r, k, head, true) : NULL;
}

int rest_store(struct rest_call *c, enum store_verb verb, const struct rest_kind *k,
               struct hk_str ns, struct hk_str name, struct json *root, uint64_t expect_rv)
{
    struct json converted;

    if (c->k->conversion && root && verb != STORE_DELETE && k == c->k) {
        converted = *root;
        root = &converted;
        if (rest_convert_write(c, root, expect_rv) < 0) {
            return c->rc;
        }
        name = verb == STORE_CREATE ? c->name : name;
    }
    const struct store_write w = {
        .verb = verb,
        .res = k->res,
        .ns = ns,
        .name = name,
        .root = root,
        .mem = &c->mem,
        .expect_rv = expect_rv,
        .vital = c->vital,
    };
    const struct rest_kind *kept = rest_kind_by_res(c->r, k->res);
    const bool charged = rest_quota_watches(c->r, kept, ns);
    const bool served = rest_service_watches(c->r, kept);
    struct api_object *old = charged || served ? head_object(c->r, kept, ns, name) : NULL;
    const int rc = store_submit(c->r->store, &w, on_stored, c, &c->err);

    if (rc == 0) {
        *rest_unborn(c->r, c->k->res) += c->created && c->writes == 0;
        c->writes++;
    }
    if (rc == 0 && charged) {
        rest_quota_charge(c->r, kept, ns, name, old ? &old->root : NULL,
                          verb == STORE_DELETE ? NULL : root);
    }
    if (rc == 0 && served) {
        rest_service_charge(c->r, old ? &old->root : NULL, verb == STORE_DELETE ? NULL : root);
    }
    api_object_unref(old);
    return rc < 0 ? rest_fail_store(c, rc) : 0;
}

int rest_answer_tree(struct rest_call *c, const struct api_kind *kind, const struct json *doc)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json shown;
    int rc;

    api_object_unref(c->obj);
    c->obj = NULL;
    if (kind == c->k->kind) {
        shown = json_clone(doc, &c->mem);
        rest_view_show(c->k, &shown, &c->mem);
        doc = &shown;
    }
    json_write(doc, &text);
    rc = api_object_parse(kind, hk_buf_str(&text), &c->obj, &c->err);
    if (rc < 0) {
        return rest_fail_bad(c, "%s", hk_arena_printf(&c->mem, "%s", c->err.text));
    }
    c->rv = c->obj->rv;
    return 0;
}
