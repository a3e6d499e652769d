// SPDX-License-Identifier: Apache-2.0
// Object metadata: identity, creation and deletion time, and generation. Only this file sets the
// fields that the server owns; values from clients are ignored or refused.
#include "codec/timefmt.h"
#include "store/rest_priv.h"

enum {
    NAME_MAX_GENERATED = 63,
    NAME_RANDOM = 5,
};

static int check_kind(struct rest_call *c, const struct json *doc)
{
    HK_AUTO(hk_buf_fini) struct hk_buf want = {0};
    const struct hk_str version = json_str(json_get(doc, "apiVersion"), HK_STR(""));
    const struct hk_str kind = json_str(json_get(doc, "kind"), HK_STR(""));
    const struct api_kind *k = c->k->kind;

    api_kind_write_version(k, &want);
    if (version.n > 0 && !hk_str_eq(version, hk_buf_str(&want))) {
        return rest_fail_bad(c,
                             "the API version in the data (%.*s) does not match the expected API "
                             "version (%s)",
                             HK_FMT(version), want.data);
    }
    if (kind.n > 0 && !hk_str_is(kind, k->kind)) {
        return rest_fail_bad(c, "%.*s in version \"%s\" cannot be handled as a %s: want kind %s",
                             HK_FMT(kind), k->version, k->kind, k->kind);
    }
    return 0;
}

int rest_check_identity(struct rest_call *c, const struct json *doc)
{
    const struct json *meta = json_get(doc, "metadata");
    const struct hk_str name = rest_meta_str(doc, "name");
    const struct hk_str ns = rest_meta_str(doc, "namespace");

    if (!json_is(doc, JSON_OBJECT) || (meta && !json_is(meta, JSON_OBJECT))) {
        return rest_fail_bad(c, "%s in version \"%s\" cannot be handled as a %s: want an object",
                             c->k->kind->kind, c->k->kind->version, c->k->kind->kind);
    }
    if (check_kind(c, doc) < 0) {
        return c->rc;
    }
    if (c->name.n > 0 && name.n > 0 && !hk_str_eq(name, c->name)) {
        return rest_fail_bad(
            c, "the name of the object (%.*s) does not match the name on the URL (%.*s)",
            HK_FMT(name), HK_FMT(c->name));
    }
    if (c->k->kind->namespaced && ns.n > 0 && !hk_str_eq(ns, c->ns)) {
        return rest_fail_bad(c, "the namespace of the provided object does not match the namespace "
                                "sent on the request");
    }
    return 0;
}

void rest_write_uid(struct rest *r, char out[REST_UID])
{
    const uint64_t a = hk_rand_u64(r->rand);
    const uint64_t b = hk_rand_u64(r->rand);

    /* Version 4, variant 1: random. */
    snprintf(out, REST_UID, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
             (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff,
             0x8000 | ((unsigned)(b >> 48) & 0x3fff), (unsigned long long)b & 0xffffffffffffULL);
}

const char *rest_new_uid(struct rest_call *c)
{
    char uid[REST_UID];

    rest_write_uid(c->r, uid);
    return hk_arena_strndup(&c->mem, uid, strlen(uid));
}

/* Members that are ignored in the body of a create. */
static void wipe_system(struct json *meta)
{
    static const char *const wiped[] = {
        "uid",      "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
        "selfLink", "generation",        "resourceVersion",   "managedFields",
    };

    for (size_t i = 0; i < HK_LEN(wiped); i++) {
        json_del(meta, wiped[i]);
    }
}

void rest_generate_name(struct rest_call *c, struct json *doc)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    struct json *meta = rest_edit(doc, &c->mem, "metadata");
    struct hk_str prefix = rest_meta_str(doc, "generateName");
    char tail[NAME_RANDOM];

    prefix.n = HK_MIN(prefix.n, NAME_MAX_GENERATED - NAME_RANDOM);
    for (int i = 0; i < NAME_RANDOM; i++) {
        tail[i] = letters[hk_rand_below(c->r->rand, sizeof(letters) - 1)];
    }
    c->name = hk_str(hk_arena_printf(&c->mem, "%.*s%.*s", HK_FMT(prefix), (int)sizeof(tail), tail));
    json_set_str(meta, &c->mem, "name", c->name);
}

void rest_set_kind(struct rest_call *c, struct json *doc)
{
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};
    const struct api_kind *k =
        c->k->conversion ? c->k->kind : rest_kind_by_res(c->r, c->k->res)->kind;

    api_kind_write_version(k, &version);
    json_set_cstr(doc, &c->mem, "kind", k->kind);
    json_set_str(doc, &c->mem, "apiVersion", hk_arena_str(&c->mem, hk_buf_str(&version)));
}

int rest_meta_create(struct rest_call *c, struct json *doc)
{
    rest_set_kind(c, doc);
    struct json *meta = rest_edit(doc, &c->mem, "metadata");
    const struct hk_str name = rest_meta_str(doc, "name");

    if (rest_meta_str(doc, "resourceVersion").n > 0) {
        return rest_fail_bad(c, "resourceVersion should not be set on objects to be created");
    }
    wipe_system(meta);
    if (c->k->kind->namespaced) {
        json_set_str(meta, &c->mem, "namespace", c->ns);
    } else {
        json_del(meta, "namespace");
    }
    if (name.n > 0) {
        c->name = name;
    } else if (rest_meta_str(doc, "generateName").n > 0) {
        rest_generate_name(c, doc);
    } else {
        rest_field_error(c, "FieldValueRequired", "metadata.name",
                         "Required value: name or generateName is required");
        return rest_fail_invalid(c);
    }
    meta = rest_edit(doc, &c->mem, "metadata");
    json_set_cstr(meta, &c->mem, "uid", rest_new_uid(c));
    json_set_time(meta, &c->mem, "creationTimestamp", rest_now(c->r));
    if (c->k->flags & REST_GENERATION) {
        json_set_int(meta, &c->mem, "generation", 1);
    }
    if (c->managed) {
        json_set(meta, &c->mem, "managedFields", *c->managed);
    }
    return 0;
}

static int check_revision(struct rest_call *c, const struct json *doc, const struct json *old)
{
    const struct hk_str have = rest_meta_str(old, "resourceVersion");
    const struct hk_str want = rest_meta_str(doc, "resourceVersion");
    int64_t n;

    if (want.n == 0 || hk_str_is(want, "0")) {
        if (c->k->flags & REST_NEED_RV) {
            rest_field_error(c, "FieldValueInvalid", "metadata.resourceVersion",
                             "Invalid value: 0: must be specified for an update");
            return rest_fail_invalid(c);
        }
        return 0;
    }
    if (!hk_str_int(want, &n) || n < 0) {
        rest_field_error(c, "FieldValueInvalid", "metadata.resourceVersion",
                         "Invalid value: \"%.*s\": must be an unsigned integer", HK_FMT(want));
        return rest_fail_invalid(c);
    }
    return hk_str_eq(want, have) ? 0 : rest_fail_modified(c);
}

static int rest_meta_check_uid(struct rest_call *c, const struct json *doc, const struct json *old)
{
    const struct hk_str want = rest_meta_str(doc, "uid");
    const struct hk_str have = rest_meta_str(old, "uid");

    if (want.n == 0 || hk_str_eq(want, have)) {
        return 0;
    }
    return rest_fail_conflict(
        c, "Precondition failed: UID in precondition: %.*s, UID in object meta: %.*s", HK_FMT(want),
        HK_FMT(have));
}

int rest_meta_update(struct rest_call *c, struct json *doc, const struct json *old)
{
    static const char *const kept[] = {
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
        "managedFields",
    };
    const struct json *was = json_get(old, "metadata");

    if (check_revision(c, doc, old) < 0 || rest_meta_check_uid(c, doc, old) < 0) {
        return c->rc;
    }
    rest_set_kind(c, doc);
    struct json *meta = rest_edit(doc, &c->mem, "metadata");
    json_del(meta, "selfLink");
    for (size_t i = 0; i < HK_LEN(kept); i++) {
        const struct json *v = json_get(was, kept[i]);
        if (v) {
            json_set(meta, &c->mem, kept[i], *v);
        } else {
            json_del(meta, kept[i]);
        }
    }
    if (c->managed) {
        json_set(meta, &c->mem, "managedFields", *c->managed);
    }
    return 0;
}

/* Whether a change of that member increments the generation. The status counts only for kinds
 * without a status subresource. */
static bool counts(const struct rest_kind *k, struct hk_str key)
{
    if (hk_str_is(key, "status")) {
        return (k->flags & REST_CUSTOM) && !k->kind->status;
    }
    return !hk_str_is(key, "metadata") && !hk_str_is(key, "kind") && !hk_str_is(key, "apiVersion");
}

/* Compares the members of a with those of b. */
static bool content_differs(const struct rest_kind *k, const struct json *a, const struct json *b)
{
    for (uint32_t i = 0; i < a->len; i++) {
        const struct json_member *m = &a->members[i];
        const struct json *other = json_get_str(b, m->key);
        if (counts(k, m->key) && (!other || !json_equal(&m->value, other))) {
            return true;
        }
    }
    return false;
}

static void generation_next(struct rest_call *c, struct json *doc)
{
    struct json *meta = rest_edit(doc, &c->mem, "metadata");
    const int64_t n = json_int(json_get(meta, "generation"), 0);

    json_set_int(meta, &c->mem, "generation", n + 1);
}

void rest_meta_generation(struct rest_call *c, struct json *doc, const struct json *old)
{
    if ((c->k->flags & REST_GENERATION) &&
        (content_differs(c->k, doc, old) || content_differs(c->k, old, doc))) {
        generation_next(c, doc);
    }
}

void rest_meta_delete(struct rest_call *c, struct json *doc, int64_t at_ns, int64_t grace_s)
{
    const bool begins = !rest_deleting(doc);
    struct json *meta = rest_edit(doc, &c->mem, "metadata");

    json_set_time(meta, &c->mem, "deletionTimestamp", at_ns);
    json_set_int(meta, &c->mem, "deletionGracePeriodSeconds", grace_s);
    if (begins && json_int(json_get(meta, "generation"), 0) > 0) {
        generation_next(c, doc);
    }
}

void rest_condition(struct rest_call *c, struct json *doc, const char *type, const char *status,
                    const char *reason, const char *message)
{
    rest_condition_put(doc, &c->mem, rest_now(c->r), type, status, reason, message);
}
