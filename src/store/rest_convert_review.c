// SPDX-License-Identifier: Apache-2.0
// ConversionReviews: writes what a webhook is asked, and reads and checks what it answers. The form is
// that of apiextensions.k8s.io/v1, which v1beta1 shares. Checks and messages are those of
// kube-apiserver's webhookConverter.
#include "store/rest_convert_priv.h"

#define REVIEW_GROUP "apiextensions.k8s.io/"

/* ---- the question ---- */

/* The object as kube-apiserver keeps it: without its revision. */
static void write_plain(const struct conversion *v, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;

    hk_assert(json_parse(hk_buf_str(&v->text), 0, &mem, &doc, NULL) == 0);
    json_del(rest_edit(&doc, &mem, "metadata"), "resourceVersion");
    json_write(&doc, out);
}

void conversion_write_review(const struct conversion_batch *b, const char *uid, struct hk_buf *out)
{
    hk_buf_addf(out,
                "{\"kind\":\"ConversionReview\",\"apiVersion\":\"" REVIEW_GROUP
                "%s\",\"request\":{\"uid\":\"%s\",\"desiredAPIVersion\":\"%s/%s\",\"objects\":[",
                b->how->hook.version, uid, b->to->kind->group, b->to->kind->version);
    for (uint32_t i = 0; i < b->at.len; i++) {
        hk_buf_adds(out, i > 0 ? "," : "");
        write_plain(b->at.at[i], out);
    }
    hk_buf_adds(out, "]}}\n");
}

/* ---- the answer ---- */

static int check_review(const struct conversion_batch *b, const char *uid, const struct json *doc,
                        struct hk_err *err)
{
    const struct hk_str version = json_str_field(doc, "apiVersion");
    const struct hk_str kind = json_str_field(doc, "kind");
    const struct json *response = json_get(doc, "response");
    const struct hk_str have = json_str_field(response, "uid");
    const struct hk_str status = json_str_at(response, "result.status");
    const struct hk_str message = json_str_at(response, "result.message");
    char want[64];

    snprintf(want, sizeof(want), REVIEW_GROUP "%s", b->how->hook.version);
    if (!hk_str_is(version, want) || !hk_str_is(kind, "ConversionReview")) {
        return hk_fail(err, HK_EINVAL,
                       "expected webhook response of %s, Kind=ConversionReview, got %.*s, "
                       "Kind=%.*s",
                       want, HK_FMT(hk_str_head(version, 64)), HK_FMT(hk_str_head(kind, 64)));
    }
    if (!json_is(response, JSON_OBJECT)) {
        return hk_fail(err, HK_EINVAL, "no response provided");
    }
    if (strcmp(b->how->hook.version, "v1") == 0 && !hk_str_is(have, uid)) {
        return hk_fail(err, HK_EINVAL, "expected response.uid=\"%s\", got \"%.*s\"", uid,
                       HK_FMT(hk_str_head(have, 64)));
    }
    if (!hk_str_is(status, "Success")) {
        return message.n > 0
                   ? hk_fail(err, HK_EIO, "%.*s", HK_FMT(hk_str_head(message, 400)))
                   : hk_fail(err, HK_EIO, "response.result.status was '%.*s', expected 'Success'",
                             HK_FMT(hk_str_head(status, 64)));
    }
    return 0;
}

/* Puts `conversion webhook for GV, Kind=K` in front. */
static int name_failure(const struct conversion_batch *b, int rc, const char *said,
                        struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf kind = {0};
    const struct hk_err why = *err;

    conversion_write_kind(b->at.at[0], &kind);
    return hk_fail(err, -rc, "conversion webhook for %s %s%s", kind.data, said, why.text);
}

int conversion_read_review(const struct conversion_batch *b, const char *uid, struct hk_str body,
                           struct hk_arena *mem, const struct json **ret, struct hk_err *err)
{
    struct json *doc = hk_arena_alloc(mem, sizeof(*doc));
    int rc = json_parse(hk_arena_str(mem, body), 0, mem, doc, err);

    if (rc == 0) {
        rc = check_review(b, uid, doc, err);
    }
    if (rc < 0) {
        return name_failure(b, rc, "failed: ", err);
    }
    *ret = json_at(doc, "response.convertedObjects");
    if (json_len(*ret) != b->at.len) {
        hk_fail(err, HK_EINVAL, "%u objects, expected %u", json_len(*ret), b->at.len);
        return name_failure(b, -HK_EINVAL, "returned ", err);
    }
    return 0;
}

/* ---- one object ---- */

static int check_same(const struct json *in, const struct json *out, const char *path,
                      const char *what, struct hk_err *err)
{
    const struct hk_str a = json_str_at(in, path), b = json_str_at(out, path);

    return hk_str_eq(a, b)
               ? 0
               : hk_fail(err, HK_EINVAL, "invalid object: must have the same %s: %.*s != %.*s",
                         what, HK_FMT(hk_str_head(a, 128)), HK_FMT(hk_str_head(b, 128)));
}

static int check_converted(const struct conversion *v, const struct json *in,
                           const struct json *out, struct hk_err *err)
{
    static const char *const same[][2] = {
        {"metadata.name", "name"}, {"metadata.namespace", "namespace"}, {"metadata.uid", "UID"}};
    const struct hk_str version = json_str_field(out, "apiVersion");
    const struct hk_str kind = json_str_field(out, "kind");
    char want[512];

    snprintf(want, sizeof(want), "%s/%s", v->to->kind->group, v->to->kind->version);
    if (!hk_str_is(version, want)) {
        return hk_fail(err, HK_EINVAL,
                       "invalid object at index 0: invalid groupVersion (expected %s, received "
                       "%.*s)",
                       want, HK_FMT(hk_str_head(version, 128)));
    }
    if (!hk_str_eq(kind, json_str_field(in, "kind"))) {
        return hk_fail(err, HK_EINVAL,
                       "invalid object at index 0: invalid kind (expected %.*s, received %.*s)",
                       HK_FMT(json_str_field(in, "kind")), HK_FMT(hk_str_head(kind, 128)));
    }
    for (size_t i = 0; i < HK_LEN(same); i++) {
        const int rc = check_same(in, out, same[i][0], same[i][1], err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Labels and annotations are those of the webhook. */
static int take_texts(struct json *meta, const struct json *given, const char *key,
                      struct hk_arena *mem, struct hk_err *err)
{
    const struct json *map = json_get(given, key);

    json_del(meta, key);
    if (!map || json_is(map, JSON_NULL)) {
        return 0;
    }
    if (!json_is(map, JSON_OBJECT)) {
        return hk_fail(err, HK_EINVAL,
                       "invalid metadata: invalid metadata.%s of type %s in converted object", key,
                       json_is(map, JSON_ARRAY) ? "[]interface {}" : "string");
    }
    for (uint32_t i = 0; i < map->len; i++) {
        if (!json_is(&map->members[i].value, JSON_STRING)) {
            return hk_fail(err, HK_EINVAL,
                           "invalid metadata: metadata.%s[%.*s] must be a string in converted "
                           "object",
                           key, HK_FMT(hk_str_head(map->members[i].key, 128)));
        }
    }
    if (map->len > 0) {
        json_set(meta, mem, key, json_clone(map, mem));
    }
    return 0;
}

/* The new labels and annotations obey the rules of every object. */
static int check_texts(const struct conversion *v, struct json *doc, struct hk_arena *mem,
                       struct hk_err *err)
{
    struct admission_request q = {
        .verb = ADMIT_CREATE, .kind = v->to->kind, .obj = doc, .mem = mem};
    const int rc = admission_check_labels(&q) ? 0 : -HK_EINVAL;

    if (rc < 0) {
        hk_fail(err, HK_EINVAL, "invalid metadata: %s: %s", q.errors.at[0].field,
                q.errors.at[0].message);
    }
    admission_request_fini(&q);
    return rc;
}

static int restore_metadata(const struct conversion *v, const struct json *in, struct json *out,
                            struct hk_arena *mem, struct hk_err *err)
{
    const struct json *given = json_get(out, "metadata");
    struct json meta = json_clone_as(json_get(in, "metadata"), JSON_OBJECT, mem);

    if (!given) {
        return hk_fail(err, HK_EINVAL, "invalid metadata: missing metadata in converted object");
    }
    if (!json_is(given, JSON_OBJECT)) {
        return hk_fail(err, HK_EINVAL,
                       "invalid metadata: invalid metadata in converted object: not an object");
    }
    int rc = take_texts(&meta, given, "labels", mem, err);
    if (rc == 0) {
        rc = take_texts(&meta, given, "annotations", mem, err);
    }
    if (rc == 0) {
        json_set(out, mem, "metadata", meta);
        rc = check_texts(v, out, mem, err);
    }
    return rc;
}

int conversion_accept(const struct conversion *v, const struct json *converted,
                      struct hk_arena *mem, struct json *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf kind = {0};
    struct json in;
    int rc;

    hk_assert(json_parse(hk_arena_str(mem, hk_buf_str(&v->text)), 0, mem, &in, NULL) == 0);
    *ret = json_clone_as(converted, JSON_OBJECT, mem);
    rc = check_converted(v, &in, ret, err);
    if (rc == 0) {
        rc = restore_metadata(v, &in, ret, mem, err);
    }
    if (rc < 0) {
        const struct hk_err why = *err;
        conversion_write_kind(v, &kind);
        return hk_fail(err, HK_EIO, "conversion webhook for %s returned %s", kind.data, why.text);
    }
    return 0;
}
