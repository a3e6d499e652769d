// SPDX-License-Identifier: Apache-2.0
// Objects of CustomResourceDefinitions whose versions a webhook converts. Requests are served in their
// own version: what they read is converted to it, and what they write is converted to the storage
// version, at the very end, and back for the answer. Every stored state says its version itself, so a
// definition may change its storage version at any time.
//
// The loop never blocks. A call that needs a conversion stops, and starts again when it is there, as
// with admission webhooks (rest_webhook.c); a list or a watch goes on where it was. A conversion lives
// as long as somebody needs it, and some time longer in a cache, since consecutive readers want the
// same states.
#include "store/rest_convert_priv.h"

/* ---- conversions ---- */

/* The row of the version that the state is stored in; NULL: it is gone. */
static const struct rest_kind *stored_row(const struct rest *r, const struct store_obj *o)
{
    for (uint32_t i = 0; i < rest_kinds(r); i++) {
        const struct rest_kind *k = rest_kind_at(r, i);
        if (k->res == o->res && k->crd && conversion_has_version(k->kind, o->text)) {
            return k;
        }
    }
    return NULL;
}

/* The state as its own version shows it now. */
static void write_state(struct rest *r, const struct store_obj *o, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const struct rest_kind *row = stored_row(r, o);
    struct json doc;

    if (!row || !rest_schema_outdated(row, o) || json_parse(o->text, 0, &mem, &doc, NULL) < 0) {
        hk_buf_addstr(out, o->text);
        return;
    }
    rest_schema_refresh(row, &doc, &mem);
    json_write(&doc, out);
}

/* A reference to the conversion of the state. */
static struct conversion *of_state(struct rest *r, const struct rest_kind *k,
                                   const struct store_obj *o)
{
    struct conversion *v = conversion_find(k, o, r->converter);

    if (v) {
        return conversion_ref(v);
    }
    v = conversion_new(r, k);
    write_state(r, o, &v->text);
    conversion_publish(v, conversion_key(k, o));
    conversion_queue(v);
    return v;
}

static struct conversion *of_doc(struct rest *r, const struct rest_kind *to, const struct json *doc)
{
    struct conversion *v = conversion_new(r, to);

    json_write(doc, &v->text);
    conversion_queue(v);
    return v;
}

/* ---- calls ---- */

static int fail_converting(struct rest_call *c, const struct conversion *v)
{
    return rest_fail_webhook(c, 500, NULL, v->why);
}

/* Stops the call until its conversions have ended. */
static int wait_for_conversions(struct rest_call *c)
{
    if (c->r->webhook_waiting >= WEBHOOK_MAX_WAITING || c->r->webhook_bytes >= WEBHOOK_MAX_BYTES) {
        c->status.retry_after_s = 1;
        return rest_fail(c, 429, HK_EBUSY, "TooManyRequests",
                         "too many requests wait for conversion webhooks, please try again later");
    }
    if (!c->asking) {
        return rest_fail_webhook(c, 500, NULL, "this program calls no conversion webhooks");
    }
    hk_vec_push(&c->r->converter->waiters, c);
    return rest_webhook_wait(c);
}

void rest_convert_forget(struct rest_call *c)
{
    for (uint32_t i = 0; i < c->conversions.len; i++) {
        conversion_unref(c->conversions.at[i]);
    }
    hk_vec_clear(&c->conversions);
}

void rest_convert_free(struct rest_call *c)
{
    struct converter *t = c->r->converter;

    for (uint32_t i = 0; t && i < t->waiters.len; i++) {
        if (t->waiters.at[i] == c) {
            hk_vec_swap_remove(&t->waiters, i);
            break;
        }
    }
    rest_convert_forget(c);
    hk_vec_fini(&c->conversions);
    conversion_unref(hk_take(c->to_store));
    conversion_unref(hk_take(c->to_answer));
}

int rest_convert_state(struct rest_call *c, const struct store_obj *o)
{
    struct conversion *v = NULL;

    if (!o || !rest_convert_needed(c->k, o)) {
        return 0;
    }
    for (uint32_t i = 0; i < c->conversions.len && !v; i++) {
        v = c->conversions.at[i]->key == conversion_key(c->k, o) ? c->conversions.at[i] : NULL;
    }
    if (!v) {
        rest_webhook_prepare(c);
        v = of_state(c->r, c->k, o);
        hk_vec_push(&c->conversions, v);
    }
    return v->state == CONVERSION_DONE     ? 0
           : v->state == CONVERSION_FAILED ? fail_converting(c, v)
                                           : wait_for_conversions(c);
}

int rest_convert_head(struct rest_call *c, struct hk_str ns, struct hk_str name)
{
    bool staged;

    return c->k->conversion
               ? rest_convert_state(c, store_head(c->r->store, c->k->res, ns, name, &staged))
               : 0;
}

static int outcome(struct rest_call *c, const struct conversion *v, struct json *ret)
{
    if (v->state == CONVERSION_WAITS) {
        return wait_for_conversions(c);
    }
    if (v->state == CONVERSION_FAILED) {
        return fail_converting(c, v);
    }
    hk_assert(json_parse(hk_arena_str(&c->mem, hk_buf_str(&v->text)), 0, &c->mem, ret, NULL) == 0);
    return 0;
}

int rest_convert_write(struct rest_call *c, struct json *root, uint64_t expect_rv)
{
    const struct rest_kind *kept = rest_kind_by_res(c->r, c->k->res);
    struct json stored, shown;

    if (!c->k->conversion || c->k == kept) {
        return 0;
    }
    if (c->to_store && c->to_store_rv != expect_rv) {
        conversion_unref(hk_take(c->to_store));
        conversion_unref(hk_take(c->to_answer));
        if (++c->convert_restarts > CONVERT_MAX_RESTARTS) {
            return rest_fail_modified(c);
        }
    }
    if (!c->to_store) {
        rest_webhook_prepare(c);
        c->to_store_rv = expect_rv;
        c->to_store = of_doc(c->r, kept, root);
    }
    if (outcome(c, c->to_store, &stored) < 0) {
        return c->rc;
    }
    rest_schema_refresh(kept, &stored, &c->mem);
    if (!c->to_answer) {
        c->to_answer = of_doc(c->r, c->k, &stored);
    }
    if (outcome(c, c->to_answer, &shown) < 0) {
        return c->rc;
    }
    *root = stored;
    c->name = hk_arena_str(&c->mem, rest_meta_str(&stored, "name"));
    return 0;
}

struct api_object *rest_convert_answer(struct rest_call *c, const struct store_obj *o)
{
    struct converter *t = c->r->converter;

    if (!c->to_answer || !rest_convert_needed(c->k, o)) {
        return rest_object(c->r, c->k, o, !c->text_only || c->finish);
    }
    if (!conversion_find(c->k, o, t)) {
        conversion_publish(c->to_answer, conversion_key(c->k, o));
        conversion_cache(c->to_answer);
    }
    return rest_converted_object(c->r, c->k, o);
}

/* ---- lists and watches ---- */

struct conversion *rest_conversion_begin(struct rest *r, const struct rest_kind *k,
                                         const struct store_obj *o)
{
    return of_state(r, k, o);
}

bool rest_conversion_waits(const struct conversion *v)
{
    return v->state == CONVERSION_WAITS;
}

const char *rest_conversion_failure(const struct conversion *v)
{
    return v->state == CONVERSION_FAILED ? v->why : NULL;
}

void rest_conversion_release(struct conversion *v)
{
    conversion_unref(v);
}

void rest_convert_hold(struct rest_call *c, struct conversion *v)
{
    hk_vec_push(&c->conversions, v);
}

int rest_convert_check(struct rest_call *c)
{
    bool waits = false;

    for (uint32_t i = 0; i < c->conversions.len; i++) {
        if (c->conversions.at[i]->state == CONVERSION_FAILED) {
            return fail_converting(c, c->conversions.at[i]);
        }
        waits = waits || rest_conversion_waits(c->conversions.at[i]);
    }
    return waits ? wait_for_conversions(c) : 0;
}

/* ---- the port's side ---- */

static bool still_waits(const struct rest_call *c)
{
    bool any = (c->to_store && rest_conversion_waits(c->to_store)) ||
               (c->to_answer && rest_conversion_waits(c->to_answer));

    for (uint32_t i = 0; i < c->conversions.len && !any; i++) {
        any = rest_conversion_waits(c->conversions.at[i]);
    }
    return any;
}

void rest_convert_run(struct rest *r)
{
    struct converter *t = r->converter;

    conversion_send(r);
    if (!t->finished) {
        return;
    }
    t->finished = false;
    for (uint32_t i = 0; i < t->waiters.len;) {
        struct rest_call *c = t->waiters.at[i];
        if (still_waits(c)) {
            i++;
            continue;
        }
        hk_vec_swap_remove(&t->waiters, i);
        rest_webhook_wake(c);
    }
    rest_watch_converted(r);
}

void rest_convert_init(struct rest *r)
{
    r->converter = hk_zalloc(sizeof(*r->converter));
}

void rest_convert_fini(struct rest *r)
{
    struct converter *t = r->converter;

    while (t->batches.len > 0) {
        conversion_batch_free(t->batches.at[0]);
    }
    for (uint32_t i = t->cache_at; i < t->cache.len; i++) {
        conversion_unref(t->cache.at[i]);
    }
    hk_assert(t->all.len == 0);
    hk_vec_fini(&t->all);
    hk_vec_fini(&t->batches);
    hk_vec_fini(&t->cache);
    hk_vec_fini(&t->waiters);
    hk_map_fini(&t->at);
    hk_free(t);
    r->converter = NULL;
}
