// SPDX-License-Identifier: Apache-2.0
// Usage of ResourceQuotas: for each quota a book of what its namespace uses, including staged
// writes. So admission does not count objects again for every create, and two creates of one commit
// cannot use the same remainder. Staging a write updates the books; status.hard and status.used
// follow the books, one write at a time per quota.
//
//   write staged -> books of its namespace charged, dirty -> [poll] -> status differs: written
//
// A book that cannot be updated (a new quota, changed hard limits, a failed disk, the end of a
// pod's grace period, which causes no write) is counted from the objects when it is next needed.
#include "codec/timefmt.h"
#include "store/rest_priv.h"

#define QUOTA_RETRY_NS (1 * REST_SECOND)

struct quota_line {
    struct hk_str resource;
    struct quantity used;
    enum quantity_format format; /* of the limit: the format in which zero is written */
};

struct quota_book {
    struct hk_arena mem;
    struct hk_str ns, name;
    struct json quota; /* newest state */
    struct quota_line *lines;
    uint32_t nlines;
    bool recount;       /* the lines are out of date */
    bool dirty;         /* the status may be out of date */
    uint64_t call;      /* the call that writes the status; 0: none */
    int64_t recount_ns; /* monotonic: when the lines become out of date by themselves; 0: never */
};

/* ---- books, in order of (namespace, name) ---- */

static int book_cmp(const struct quota_book *b, struct hk_str ns, struct hk_str name)
{
    const int by_ns = hk_str_cmp(b->ns, ns);

    return by_ns != 0 ? by_ns : hk_str_cmp(b->name, name);
}

/* The index of the first book that is not before the key. */
static uint32_t book_place(const struct rest *r, struct hk_str ns, struct hk_str name)
{
    uint32_t from = 0, to = r->quotas.len;

    while (from < to) {
        const uint32_t mid = from + (to - from) / 2;
        if (book_cmp(r->quotas.at[mid], ns, name) < 0) {
            from = mid + 1;
        } else {
            to = mid;
        }
    }
    return from;
}

static struct quota_book *book_find(const struct rest *r, struct hk_str ns, struct hk_str name)
{
    const uint32_t i = book_place(r, ns, name);

    return i < r->quotas.len && book_cmp(r->quotas.at[i], ns, name) == 0 ? r->quotas.at[i] : NULL;
}

static void book_free(struct quota_book *b)
{
    if (b) {
        hk_arena_fini(&b->mem);
        hk_free(b);
    }
}

static void soil(struct rest *r, struct quota_book *b)
{
    b->dirty = true;
    if (!r->quotas_dirty) {
        r->quotas_dirty = true;
        rest_request_poll(r);
    }
}

static struct quota_book *book_new(struct hk_str ns, struct hk_str name, const struct json *quota)
{
    struct quota_book *b = hk_zalloc(sizeof(*b));
    const struct json *hard;

    b->ns = hk_arena_str(&b->mem, ns);
    b->name = hk_arena_str(&b->mem, name);
    b->quota = json_clone(quota, &b->mem);
    hard = json_at(&b->quota, "spec.hard");
    b->nlines = json_is(hard, JSON_OBJECT) ? hard->len : 0;
    b->lines = hk_arena_array(&b->mem, b->nlines, sizeof(*b->lines));
    for (uint32_t i = 0; i < b->nlines; i++) {
        struct quantity limit = {0};
        (void)!quantity_parse(json_str(&hard->members[i].value, HK_STR("0")), &limit, NULL);
        b->lines[i] = (struct quota_line){.resource = hard->members[i].key, .format = limit.format};
    }
    b->recount = true;
    return b;
}

/* Adds or updates the book of a quota; if the spec is unchanged, the lines stay valid. */
static void book_put(struct rest *r, struct hk_str ns, struct hk_str name, const struct json *quota)
{
    const uint32_t i = book_place(r, ns, name);
    struct quota_book *had = book_find(r, ns, name);

    if (had && json_equal(json_get(&had->quota, "spec"), json_get(quota, "spec"))) {
        soil(r, had);
        return;
    }
    struct quota_book *b = book_new(ns, name, quota);
    if (had) {
        b->call = had->call;
        book_free(had);
    } else {
        hk_vec_push(&r->quotas, NULL);
        memmove(r->quotas.at + i + 1, r->quotas.at + i,
                (r->quotas.len - 1 - i) * sizeof(*r->quotas.at));
    }
    r->quotas.at[i] = b;
    soil(r, b);
}

static void book_drop(struct rest *r, struct hk_str ns, struct hk_str name)
{
    const uint32_t i = book_place(r, ns, name);
    struct quota_book *b = book_find(r, ns, name);

    if (b) {
        r->quotas.len--;
        memmove(r->quotas.at + i, r->quotas.at + i + 1,
                (r->quotas.len - i) * sizeof(*r->quotas.at));
        book_free(b);
    }
}

/* ---- lines ---- */

/* A terminating pod counts until its grace period is over. */
static void note_grace(const struct rest *r, struct quota_book *b, const struct json *pod)
{
    int64_t end_ns;

    if (time_parse(rest_meta_str(pod, "deletionTimestamp"), &end_ns, NULL) < 0 ||
        end_ns < rest_now(r)) {
        return;
    }
    /* Timestamps have whole seconds: a pod's grace period ends with the second. */
    end_ns = rest_mono(r) + end_ns + REST_SECOND - rest_now(r);
    b->recount_ns = b->recount_ns == 0 ? end_ns : HK_MIN(b->recount_ns, end_ns);
}

struct grace_walk {
    const struct rest *r;
    struct quota_book *book;
};

static bool rest_quota_on_pod(void *arg, const struct json *pod)
{
    const struct grace_walk *w = arg;

    note_grace(w->r, w->book, pod);
    return true;
}

static void book_count(struct rest *r, struct quota_book *b)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct grace_walk walk = {r, b};

    if (!b->recount) {
        return;
    }
    const struct json used = admission_quota_usage(
        &r->lookup, b->ns, json_at(&b->quota, "spec.hard"), &b->quota, rest_now(r), &mem);
    for (uint32_t i = 0; i < b->nlines; i++) {
        const struct json *v = json_get_str(&used, b->lines[i].resource);
        if (quantity_parse(json_str(v, HK_STR("0")), &b->lines[i].used, NULL) < 0) {
            b->lines[i].used = (struct quantity){0};
        }
    }
    b->recount = false;
    b->recount_ns = 0;
    r->lookup.each(r, r->pods->kind, b->ns, rest_quota_on_pod, &walk);
}

static struct quantity rest_quota_object_cost(const struct rest *r, const struct quota_book *b,
                                              uint32_t line, const struct rest_kind *k,
                                              const struct json *obj)
{
    if (!obj) {
        return (struct quantity){0};
    }
    return admission_quota_cost(&b->quota, b->lines[line].resource, k->kind, obj, rest_now(r));
}

static void book_charge(struct rest *r, struct quota_book *b, const struct rest_kind *k,
                        const struct json *old, const struct json *new)
{
    if (b->recount) {
        soil(r, b);
        return;
    }
    for (uint32_t i = 0; i < b->nlines; i++) {
        const struct quantity more = quantity_sub(rest_quota_object_cost(r, b, i, k, new),
                                                  rest_quota_object_cost(r, b, i, k, old));
        if (more.nano != 0) {
            b->lines[i].used = quantity_add(b->lines[i].used, more);
            soil(r, b);
        }
    }
    if (new &&k == r->pods) {
        note_grace(r, b, new);
    }
}

bool rest_quota_watches(const struct rest *r, const struct rest_kind *k, struct hk_str ns)
{
    const uint32_t i = book_place(r, ns, HK_STR(""));

    return r->admission && k->kind->namespaced &&
           (k == r->resource_quotas || (i < r->quotas.len && hk_str_eq(r->quotas.at[i]->ns, ns)));
}

void rest_quota_charge(struct rest *r, const struct rest_kind *k, struct hk_str ns,
                       struct hk_str name, const struct json *old, const struct json *new)
{
    for (uint32_t i = book_place(r, ns, HK_STR(""));
         i < r->quotas.len && hk_str_eq(r->quotas.at[i]->ns, ns); i++) {
        book_charge(r, r->quotas.at[i], k, old, new);
    }
    if (k != r->resource_quotas) {
        return;
    }
    if (new) {
        book_put(r, ns, name, new);
    } else {
        book_drop(r, ns, name);
    }
}

bool rest_quota_used(void *ctx, struct hk_str ns, struct hk_str quota, struct hk_str resource,
                     struct quantity *ret)
{
    struct rest *r = ctx;
    struct quota_book *b = book_find(r, ns, quota);

    for (uint32_t i = 0; b && i < b->nlines; i++) {
        if (hk_str_eq(b->lines[i].resource, resource)) {
            book_count(r, b);
            *ret = b->lines[i].used;
            return true;
        }
    }
    return false;
}

/* ---- the status ---- */

static struct json rest_quota_make_status(const struct quota_book *b, struct hk_arena *mem)
{
    const struct json *hard = json_at(&b->quota, "spec.hard");
    struct json used = json_make_object();
    struct json status = json_make_object();

    for (uint32_t i = 0; i < b->nlines; i++) {
        struct quantity v = b->lines[i].used;
        v.format = v.nano == 0 ? b->lines[i].format : v.format;
        json_put(&used, mem, b->lines[i].resource, json_make_quantity(v, mem));
    }
    if (b->nlines > 0) {
        json_set(&status, mem, "hard", *hard);
        json_set(&status, mem, "used", used);
    }
    return status;
}

static void rest_quota_on_written(void *ctx, const struct port_msg *m)
{
    struct rest *r = ctx;

    for (uint32_t i = 0; i < r->quotas.len; i++) {
        struct quota_book *b = r->quotas.at[i];
        if (b->call != m->call) {
            continue;
        }
        b->call = 0;
        if (m->rc < 0) {
            b->recount_ns = rest_mono(r) + QUOTA_RETRY_NS;
        } else if (b->dirty) {
            soil(r, b);
        }
    }
}

static void book_write(struct rest *r, struct quota_book *b)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;
    bool staged;
    const struct store_obj *head =
        store_head(r->store, r->resource_quotas->res, b->ns, b->name, &staged);

    b->dirty = false;
    if (!head || json_parse(head->text, 0, &mem, &doc, NULL) < 0) {
        return;
    }
    book_count(r, b);
    const struct json status = rest_quota_make_status(b, &mem);
    if (json_equal(&status, json_get(&doc, "status"))) {
        return;
    }
    json_set(&doc, &mem, "status", status);
    const struct port_request req = {
        .verb = PORT_UPDATE,
        .kind = r->resource_quotas->kind,
        .ns = b->ns,
        .name = b->name,
        .subresource = "status",
        .body = &doc,
    };
    b->call = port_submit(&r->port, &req, (struct port_sink){rest_quota_on_written, r});
    b->dirty = false; /* the write above makes the status current */
}

void rest_quota_run(struct rest *r)
{
    if (!r->quotas_dirty) {
        return;
    }
    r->quotas_dirty = false;
    for (uint32_t i = 0; i < r->quotas.len; i++) {
        struct quota_book *b = r->quotas.at[i];
        if (b->dirty && b->call == 0) {
            book_write(r, b);
        }
    }
}

/* ---- time ---- */

void rest_quota_tick(struct rest *r)
{
    const int64_t now = rest_mono(r);

    for (uint32_t i = 0; i < r->quotas.len; i++) {
        struct quota_book *b = r->quotas.at[i];
        if (b->recount_ns > 0 && b->recount_ns <= now) {
            b->recount_ns = 0;
            b->recount = true;
            soil(r, b);
        }
    }
}

int64_t rest_quota_next_ns(const struct rest *r)
{
    int64_t next = INT64_MAX;

    for (uint32_t i = 0; i < r->quotas.len; i++) {
        if (r->quotas.at[i]->recount_ns > 0) {
            next = HK_MIN(next, r->quotas.at[i]->recount_ns);
        }
    }
    return next;
}

/* ---- start and stop ---- */

static bool on_quota(void *ctx, const struct store_obj *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;

    if (json_parse(o->text, 0, &mem, &doc, NULL) == 0) {
        book_put(ctx, o->ns, o->name, &doc);
    }
    return true;
}

void rest_quota_load(struct rest *r)
{
    rest_quota_fini(r);
    if (r->admission) {
        store_scan(r->store, r->resource_quotas->res, HK_STR(""), HK_STR(""), HK_STR(""), on_quota,
                   r);
    }
}

void rest_quota_fini(struct rest *r)
{
    while (r->quotas.len > 0) {
        book_free(hk_vec_pop(&r->quotas));
    }
    hk_vec_fini(&r->quotas);
}
