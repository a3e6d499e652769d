// SPDX-License-Identifier: Apache-2.0
// OpenAPI documents on demand. A document is built at the first request (the index needs the hashes
// of all) and cached as bytes. When kinds change, documents with custom resources are dropped;
// built-in ones never change. The cache of texts is limited: hashes are small and stay, texts can
// be built again.
#include "apiserver/openapi_priv.h"

#include "apiserver/discovery.h"
#include "base/vec.h"

#include <stdio.h>

#define TYPE_JSON "application/json"
#define TYPE_V2_PROTO "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

enum { KEEP_BYTES = 16 * 1024 * 1024 };

/* Keys of documents that are not for one group version. */
#define KEY_V2_JSON "v2"
#define KEY_V2_PROTO "v2 protobuf"
#define KEY_INDEX "v3"

struct kept {
    char *key; /* "api/v1", "apis/apps/v1", or one of the above */
    struct hk_buf text;
    char tag[OPENAPI_TAG_SIZE]; /* "" if not known */
    bool custom;                /* contains custom resources */
};

struct openapi {
    struct rest *rest;
    uint64_t generation; /* of the kinds from which the cached documents were built */
    HK_VEC(struct kept *) kept;
};

/* ---- kinds ---- */

typedef void each_fn(void *ctx, const struct openapi_kind *k);

/* All served kinds: stored ones first, then those that are never stored. */
static void each_kind(const struct rest *r, each_fn *fn, void *ctx)
{
    const struct api_kind *transient;

    for (uint32_t i = 0; i < rest_kinds(r); i++) {
        const struct rest_kind *row = rest_kind_at(r, i);
        if (row->served) {
            fn(ctx, &(struct openapi_kind){row->kind, row});
        }
    }
    for (size_t i = 0; (transient = discovery_transient(i)); i++) {
        fn(ctx, &(struct openapi_kind){transient, NULL});
    }
}

/* "api/v1" or "apis/group/version". */
static void write_root(const struct api_kind *k, struct hk_buf *out)
{
    hk_buf_adds(out, k->group[0] == '\0' ? "api/" : "apis/");
    api_kind_write_version(k, out);
}

static bool is_under(const struct api_kind *k, const char *root)
{
    HK_AUTO(hk_buf_fini) struct hk_buf have = {0};

    write_root(k, &have);
    return hk_str_is(hk_buf_str(&have), root);
}

/* ---- building ---- */

struct build {
    struct openapi_doc doc;
    const char *root; /* NULL: all */
    uint32_t found;
    bool custom;
};

static void build_kind(void *ctx, const struct openapi_kind *k)
{
    struct build *b = ctx;

    if (!b->root || is_under(k->kind, b->root)) {
        b->found++;
        b->custom |= k->row && k->row->crd;
        openapi_add_kind(&b->doc, k);
        openapi_add_paths(&b->doc, k);
    }
}

static struct json build_info(struct openapi_doc *d)
{
    struct json info = json_make_object();

    json_set_cstr(&info, d->mem, "title", "Kubernetes");
    json_set_cstr(&info, d->mem, "version", "v1.32.0");
    return info;
}

static struct json build_v2(struct build *b)
{
    struct openapi_doc *d = &b->doc;
    struct json out = json_make_object();

    json_set_cstr(&out, d->mem, "swagger", "2.0");
    json_set(&out, d->mem, "info", build_info(d));
    json_set(&out, d->mem, "paths", d->paths);
    json_set(&out, d->mem, "definitions", d->schemas);
    return out;
}

static struct json build_v3(struct build *b)
{
    struct openapi_doc *d = &b->doc;
    struct json out = json_make_object();
    struct json components = json_make_object();

    json_set(&components, d->mem, "schemas", d->schemas);
    json_set_cstr(&out, d->mem, "openapi", "3.0.0");
    json_set(&out, d->mem, "info", build_info(d));
    json_set(&out, d->mem, "paths", d->paths);
    json_set(&out, d->mem, "components", components);
    return out;
}

/* False if there is no such group version. */
static bool openapi_build_document(const struct rest *r, const char *key, struct hk_buf *out,
                                   bool *custom)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const bool v2 = !strcmp(key, KEY_V2_JSON) || !strcmp(key, KEY_V2_PROTO);
    struct build b = {
        .doc = {&mem, v2, json_make_object(), json_make_object()},
        .root = v2 ? NULL : key,
    };

    each_kind(r, build_kind, &b);
    const struct json tree = v2 ? build_v2(&b) : build_v3(&b);
    if (!strcmp(key, KEY_V2_PROTO)) {
        openapi_gnostic_write(&tree, out);
    } else {
        json_write(&tree, out);
    }
    *custom = b.custom;
    return b.found > 0;
}

/* ---- the cache ---- */

static void kept_free(struct kept *k)
{
    hk_buf_fini(&k->text);
    hk_free(k->key);
    hk_free(k);
}

struct openapi *openapi_new(struct rest *r)
{
    struct openapi *o = hk_zalloc(sizeof(*o));

    o->rest = r;
    return o;
}

void openapi_free(struct openapi *o)
{
    if (!o) {
        return;
    }
    while (o->kept.len > 0) {
        kept_free(hk_vec_pop(&o->kept));
    }
    hk_vec_fini(&o->kept);
    hk_free(o);
}

struct custom_search {
    const char *root;
    bool found;
};

static void find_custom(void *ctx, const struct openapi_kind *k)
{
    struct custom_search *s = ctx;

    s->found = s->found || (k->row && k->row->crd && is_under(k->kind, s->root));
}

/* A definition may also have added a kind to a built-in group version. */
static bool is_stale(const struct openapi *o, const struct kept *k)
{
    struct custom_search s = {k->key, k->custom || !strchr(k->key, '/')};

    each_kind(o->rest, find_custom, &s);
    return s.found;
}

static void drop_stale(struct openapi *o)
{
    const uint64_t now = rest_kinds_generation(o->rest);

    for (uint32_t i = o->kept.len; o->generation != now && i > 0; i--) {
        if (is_stale(o, o->kept.at[i - 1])) {
            kept_free(o->kept.at[i - 1]);
            hk_vec_swap_remove(&o->kept, i - 1);
        }
    }
    o->generation = now;
}

/* Drops other texts when the cache exceeds its limit. */
static void drop_texts(struct openapi *o, const struct kept *but)
{
    size_t total = 0;

    for (uint32_t i = 0; i < o->kept.len; i++) {
        total += o->kept.at[i]->text.cap;
    }
    for (uint32_t i = 0; total > KEEP_BYTES && i < o->kept.len; i++) {
        if (o->kept.at[i] != but) {
            hk_buf_fini(&o->kept.at[i]->text);
            o->kept.at[i]->text = (struct hk_buf){0};
        }
    }
}

static void write_tag(struct hk_str text, char tag[OPENAPI_TAG_SIZE])
{
    snprintf(tag, OPENAPI_TAG_SIZE, "%016llX%016llX",
             (unsigned long long)hk_hash(text.s, text.n, 1),
             (unsigned long long)hk_hash(text.s, text.n, 2));
}

static struct kept *kept_find(const struct openapi *o, const char *key)
{
    for (uint32_t i = 0; i < o->kept.len; i++) {
        if (!strcmp(o->kept.at[i]->key, key)) {
            return o->kept.at[i];
        }
    }
    return NULL;
}

static void write_index(struct openapi *o, struct hk_buf *out);

/* NULL if there is no such document. */
static struct kept *kept_get(struct openapi *o, const char *key, bool text)
{
    struct kept *k = kept_find(o, key);
    struct hk_buf fresh = {0};
    bool custom = false;

    if (k && (k->text.len > 0 || !text)) {
        return k;
    }
    if (!strcmp(key, KEY_INDEX)) {
        write_index(o, &fresh);
    } else if (!openapi_build_document(o->rest, key, &fresh, &custom)) {
        hk_buf_fini(&fresh);
        return NULL;
    }
    if (!k) {
        k = hk_zalloc(sizeof(*k));
        k->key = hk_strndup(key, strlen(key));
        hk_vec_push(&o->kept, k);
    }
    hk_buf_fini(&k->text);
    k->text = fresh;
    k->custom = custom;
    write_tag(hk_buf_str(&k->text), k->tag);
    drop_texts(o, k);
    return k;
}

/* ---- the index ---- */

struct roots {
    struct hk_arena *mem;
    struct json paths;
};

static void note_root(void *ctx, const struct openapi_kind *k)
{
    struct roots *s = ctx;
    HK_AUTO(hk_buf_fini) struct hk_buf root = {0};

    write_root(k->kind, &root);
    if (!json_get_str(&s->paths, hk_buf_str(&root))) {
        json_put(&s->paths, s->mem, hk_arena_str(s->mem, hk_buf_str(&root)), json_make_object());
    }
}

static void write_index(struct openapi *o, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct roots all = {&mem, json_make_object()};
    struct json index = json_make_object();

    each_kind(o->rest, note_root, &all);
    for (uint32_t i = 0; i < all.paths.len; i++) {
        struct json_member *m = &all.paths.members[i];
        const char *url = hk_arena_printf(&mem, "/openapi/v3/%.*s?hash=%s", HK_FMT(m->key),
                                          kept_get(o, m->key.s, false)->tag);
        json_set_cstr(&m->value, &mem, "serverRelativeURL", url);
    }
    json_set(&index, &mem, "paths", all.paths);
    json_write(&index, out);
}

/* ---- answers ---- */

/* The key of the requested document, NULL for other paths. */
static const char *find_key(const struct openapi_query *q, struct hk_arena *mem)
{
    static const char prefix[] = "/openapi/v3/";
    const size_t n = sizeof(prefix) - 1;

    if (hk_str_is(q->path, "/openapi/v2")) {
        return hk_str_contains(q->accept, "openapi.spec.v2@v1.0+protobuf") ? KEY_V2_PROTO
                                                                           : KEY_V2_JSON;
    }
    if (hk_str_is(q->path, "/openapi/v3")) {
        return KEY_INDEX;
    }
    if (!hk_str_starts(q->path, prefix) || !memchr(q->path.s + n, '/', q->path.n - n)) {
        return NULL;
    }
    return hk_arena_strndup(mem, q->path.s + n, q->path.n - n);
}

bool openapi_answer(struct openapi *o, const struct openapi_query *q, struct openapi_reply *ret)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const char *key = find_key(q, &mem);

    drop_stale(o);
    const struct kept *k = key ? kept_get(o, key, true) : NULL;
    if (!k) {
        return false;
    }
    const bool versioned = strchr(key, '/') != NULL && q->hash.n > 0;
    *ret = (struct openapi_reply){
        .code = 200,
        .type = !strcmp(key, KEY_V2_PROTO) ? TYPE_V2_PROTO : TYPE_JSON,
        .body = hk_buf_str(&k->text),
        .immutable = versioned && hk_str_is(q->hash, k->tag),
    };
    memcpy(ret->tag, k->tag, sizeof(ret->tag));
    if (versioned && !ret->immutable) {
        ret->code = 301;
        ret->body = HK_STR("");
    } else if (hk_str_contains(q->if_none_match, k->tag)) {
        ret->code = 304;
        ret->body = HK_STR("");
    }
    return true;
}
