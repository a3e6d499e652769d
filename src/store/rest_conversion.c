// SPDX-License-Identifier: Apache-2.0
// Conversions of single objects: how a definition wants them, whether a stored state needs one, and
// those that wait or are done. rest_convert.c serves calls with them.
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

bool conversion_has_version(const struct api_kind *k, struct hk_str text)
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
    return k->many_versions && !conversion_has_version(k->kind, o->text);
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

uint64_t conversion_key(const struct rest_kind *k, const struct store_obj *o)
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

struct conversion *conversion_new(struct rest *r, const struct rest_kind *to)
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

void conversion_publish(struct conversion *v, uint64_t key)
{
    v->key = key;
    v->keyed = true;
    hk_map_put(&v->r->converter->at, key, v->slot);
}

void conversion_cache(struct conversion *v)
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
        conversion_cache(v);
    }
    v->r->converter->finished = true;
    rest_request_poll(v->r);
}

struct conversion *conversion_find(const struct rest_kind *k, const struct store_obj *o,
                                   const struct converter *t)
{
    const uint32_t slot = hk_map_get(&t->at, conversion_key(k, o));

    return slot == HK_NONE ? NULL : t->all.at[slot];
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
    struct conversion *v = conversion_find(k, o, r->converter);

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
