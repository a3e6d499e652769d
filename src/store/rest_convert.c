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
#include "codec/base64.h"
#include "codec/skim.h"
#include "store/rest_convert_priv.h"

/* ---- how a definition converts ---- */

static const char *choose_review_version(const struct json *webhook)
{
    static const char *const known[] = {"v1", "v1beta1"};
    const struct json *list = json_get(webhook, "conversionReviewVersions");

    for (uint32_t i = 0; i < json_len(list); i++) {
        for (size_t k = 0; k < HK_LEN(known); k++) {
            if (hk_str_is(json_str(&list->items[i], HK_STR("")), known[k])) {
                return known[k];
            }
        }
    }
    return NULL;
}

static void read_authority(struct rest_conversion *how)
{
    HK_AUTO(hk_buf_fini) struct hk_buf pem = {0};
    const struct hk_str coded = json_str_field(how->hook.client, "caBundle");

    if (coded.n > 0 && base64_read(coded, &pem)) {
        how->hook.ca_pem = hk_arena_strndup(&how->mem, pem.data, pem.len);
    } else if (coded.n > 0) {
        how->hook.bad = "clientConfig.caBundle is not base64";
    }
}

struct rest_conversion *rest_conversion_new(const struct json *crd, uint64_t rv)
{
    const struct json *webhook = json_at(crd, "spec.conversion.webhook");
    struct rest_conversion *how;

    if (!hk_str_is(json_str_at(crd, "spec.conversion.strategy"), "Webhook")) {
        return NULL;
    }
    how = hk_zalloc(sizeof(*how));
    how->refs = 1;
    how->rv = rv;
    struct json *client = hk_arena_alloc(&how->mem, sizeof(*client));
    *client = json_clone_as(json_get(webhook, "clientConfig"), JSON_OBJECT, &how->mem);
    how->hook = (struct webhook){.name = "conversion",
                                 .timeout_s = CONVERT_TIMEOUT_S,
                                 .version = choose_review_version(webhook),
                                 .client = client};
    read_authority(how);
    if (!how->hook.version) {
        how->hook.version = "v1";
        how->hook.bad = "webhook does not accept known ConversionReview versions (v1, v1beta1)";
    }
    return how;
}

struct rest_conversion *rest_conversion_ref(struct rest_conversion *how)
{
    if (how) {
        how->refs++;
    }
    return how;
}

void rest_conversion_unref(struct rest_conversion *how)
{
    if (how && --how->refs == 0) {
        hk_arena_fini(&how->mem);
        hk_free(how);
    }
}

/* ---- stored versions ---- */

/* Whether the text is an object of the kind's version. */
static bool has_version(const struct api_kind *k, struct hk_str text)
{
    static const char *const names[] = {"apiVersion"};
    struct hk_str v;
    const size_t group = strlen(k->group);

    return skim_members(text, names, &v, 1) == 0 && v.n == group + strlen(k->version) + 3 &&
           memcmp(v.s + 1, k->group, group) == 0 && v.s[1 + group] == '/' &&
           memcmp(v.s + group + 2, k->version, strlen(k->version)) == 0;
}

bool rest_stored_otherwise(const struct rest_kind *k, const struct store_obj *o)
{
    return k->many_versions && !has_version(k->kind, o->text);
}

bool rest_convert_needed(const struct rest_kind *k, const struct store_obj *o)
{
    return k->conversion && rest_stored_otherwise(k, o);
}

void conversion_write_kind(const struct conversion *v, struct hk_buf *out)
{
    static const char *const names[] = {"apiVersion"};
    struct hk_str version = HK_STR("");

    /* The text is that of the object before: the conversion is not done. */
    if (skim_members(hk_buf_str(&v->text), names, &version, 1) < 0 || version.n < 2) {
        version = HK_STR("\"\"");
    }
    hk_buf_addf(out, "%.*s, Kind=%s", (int)version.n - 2, version.s + 1, v->to->kind->kind);
}

/* ---- conversions ---- */

static uint64_t key_of(const struct rest_kind *k, const struct store_obj *o)
{
    return hk_mix(hk_mix(o->rv) ^ (uint64_t)(uintptr_t)k ^ hk_mix(k->conversion->rv)) & INT64_MAX;
}

struct conversion *conversion_ref(struct conversion *v)
{
    v->refs++;
    return v;
}

static void conversion_hide(struct conversion *v)
{
    if (v->keyed) {
        hk_map_del(&v->r->converter->at, v->key);
        v->keyed = false;
    }
}

void conversion_unref(struct conversion *v)
{
    if (!v || --v->refs > 0) {
        return;
    }
    struct converter *t = v->r->converter;
    conversion_hide(v);
    hk_vec_swap_remove(&t->all, v->slot);
    if (v->slot < t->all.len) {
        struct conversion *moved = t->all.at[v->slot];
        moved->slot = v->slot;
        if (moved->keyed) {
            hk_map_put(&t->at, moved->key, moved->slot);
        }
    }
    rest_conversion_unref(v->how);
    api_object_unref(v->shown);
    hk_buf_fini(&v->text);
    hk_free(v->why);
    hk_free(v);
}

static struct conversion *conversion_new(struct rest *r, const struct rest_kind *to)
{
    struct conversion *v = hk_zalloc(sizeof(*v));

    v->r = r;
    v->refs = 1;
    v->to = to;
    v->how = rest_conversion_ref(to->conversion);
    v->slot = r->converter->all.len;
    hk_vec_push(&r->converter->all, v);
    return v;
}

static void conversion_publish(struct conversion *v, uint64_t key)
{
    v->key = key;
    v->keyed = true;
    hk_map_put(&v->r->converter->at, key, v->slot);
}

/* Keeps it for the next reader; the oldest ones make room. */
static void cache_add(struct conversion *v)
{
    struct converter *t = v->r->converter;

    t->cache_bytes += v->text.len;
    hk_vec_push(&t->cache, conversion_ref(v));
    while (t->cache_bytes > CONVERT_MAX_CACHE) {
        struct conversion *old = t->cache.at[t->cache_at++];
        t->cache_bytes -= old->text.len;
        conversion_unref(old);
    }
    if (t->cache_at > t->cache.len / 2) {
        const uint32_t left = t->cache.len - t->cache_at;
        memmove(t->cache.at, t->cache.at + t->cache_at, left * sizeof(*t->cache.at));
        t->cache.len = left;
        t->cache_at = 0;
    }
}

void conversion_end(struct conversion *v, bool done)
{
    v->state = done ? CONVERSION_DONE : CONVERSION_FAILED;
    if (!done) {
        conversion_hide(v); /* the next one asks again */
    } else if (v->keyed) {
        cache_add(v);
    }
    v->r->converter->finished = true;
    rest_request_poll(v->r);
}

static struct conversion *find(const struct rest_kind *k, const struct store_obj *o,
                               const struct converter *t)
{
    const uint32_t slot = hk_map_get(&t->at, key_of(k, o));

    return slot == HK_NONE ? NULL : t->all.at[slot];
}

/* The row of the version that the state is stored in; NULL: it is gone. */
static const struct rest_kind *stored_row(const struct rest *r, const struct store_obj *o)
{
    for (uint32_t i = 0; i < rest_kinds(r); i++) {
        const struct rest_kind *k = rest_kind_at(r, i);
        if (k->res == o->res && k->crd && has_version(k->kind, o->text)) {
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
    struct conversion *v = find(k, o, r->converter);

    if (v) {
        return conversion_ref(v);
    }
    v = conversion_new(r, k);
    write_state(r, o, &v->text);
    conversion_publish(v, key_of(k, o));
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

/* ---- objects ---- */

/* Without what the schema of the version does not know. Its defaults are for those who write that
 * version; a stored object has those of the version that it is stored in. */
static struct api_object *make_object(const struct rest_kind *k, struct hk_str converted,
                                      uint64_t rv)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct api_object *ret = NULL;
    struct json doc;

    if (json_parse(converted, 0, &mem, &doc, NULL) < 0) {
        return NULL;
    }
    rest_schema_drop_unknown(k, &doc, &mem);
    json_set_cstr(rest_edit(&doc, &mem, "metadata"), &mem, "resourceVersion",
                  hk_arena_printf(&mem, "%llu", (unsigned long long)rv));
    json_write(&doc, &text);
    return api_object_parse(k->kind, hk_buf_str(&text), &ret, NULL) < 0 ? NULL : ret;
}

struct api_object *rest_converted_object(struct rest *r, const struct rest_kind *k,
                                         const struct store_obj *o)
{
    struct conversion *v = find(k, o, r->converter);

    if (!v || v->state != CONVERSION_DONE) {
        return NULL;
    }
    if (v->shown && v->shown_rv != k->schema_rv) {
        api_object_unref(hk_take(v->shown));
    }
    if (!v->shown) {
        v->shown = make_object(k, hk_buf_str(&v->text), o->rv);
        v->shown_rv = k->schema_rv;
    }
    return v->shown ? api_object_ref(v->shown) : NULL;
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
        v = c->conversions.at[i]->key == key_of(c->k, o) ? c->conversions.at[i] : NULL;
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
    if (!find(c->k, o, t)) {
        conversion_publish(c->to_answer, key_of(c->k, o));
        cache_add(c->to_answer);
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
