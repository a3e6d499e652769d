// SPDX-License-Identifier: Apache-2.0
// Request bodies: parses JSON, YAML or protobuf into one kind of tree.
#include "apiserver/server_priv.h"

#include "api/proto.h"
#include "base/map.h"
#include "codec/yaml.h"

#include <strings.h>

#define BODY_TYPES "application/json, application/yaml, application/vnd.kubernetes.protobuf"

enum {
    MAX_TWINS = 100, /* most duplicates named in an answer */
    /* Memory that a body needs until it is stored: per byte, and per value. A creation needs up to
     * 150 bytes per value; updates also keep the old state. */
    BYTE_COST = 8,
    VALUE_COST = 400,
    SMALL_BODY = 64 << 10, /* not checked: memory always suffices for one */
};

/* ---- media types ---- */

struct hk_str body_type(const struct exchange *x)
{
    struct hk_str header = http_request_header(x->http, "Content-Type"), type;

    hk_str_cut(&header, ';', &type);
    return hk_str_trim(type);
}

bool body_type_is(struct hk_str type, const char *want)
{
    return type.n == strlen(want) && strncasecmp(type.s, want, type.n) == 0;
}

int body_refuse_type(struct exchange *x, const char *accepted)
{
    return exchange_refuse(
        x, 415, "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types "
        "include: %s",
        accepted);
}

/* ---- bodies ---- */

static int refuse_body(struct exchange *x, const char *must_be, const struct hk_err *err)
{
    return exchange_refuse(x, 400, "BadRequest",
                           "the object provided is unrecognized (must be of type %s): %s", must_be,
                           err->text);
}

/* ---- duplicate fields ---- */

struct twins {
    struct exchange *x;
    HK_VEC(const char *) at;
};

/* A position in the body, linked to its parent in the caller's stack frame and written out only for
 * a duplicate field. */
struct spot {
    const struct spot *up;
    struct hk_str key;
    uint32_t index; /* used if there is no key */
};

static void spot_write(const struct spot *s, struct hk_buf *out)
{
    if (s->up) {
        spot_write(s->up, out);
    }
    if (s->key.s) {
        hk_buf_addf(out, "%s%.*s", out->len > 0 ? "." : "", HK_FMT(s->key));
    } else {
        hk_buf_addf(out, "[%u]", s->index);
    }
}

static void note_twin(struct twins *t, const struct spot *at)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    spot_write(at, &path);
    hk_vec_push(&t->at, hk_arena_strndup(&t->x->mem, path.data, path.len));
}

static void find_twins(struct twins *t, const struct json *v, const struct spot *up)
{
    struct hk_intern seen = {0};

    for (uint32_t i = 0; v->type == JSON_OBJECT && i < v->len && t->at.len < MAX_TWINS; i++) {
        const struct json_member *m = &v->members[i];
        const struct spot here = {.up = up, .key = m->key};
        const uint32_t known = seen.live;
        hk_intern(&seen, m->key);
        if (seen.live == known && m->key.n > 0) {
            note_twin(t, &here);
        }
        find_twins(t, &m->value, &here);
    }
    for (uint32_t i = 0; v->type == JSON_ARRAY && i < v->len && t->at.len < MAX_TWINS; i++) {
        const struct spot here = {.up = up, .index = i};
        find_twins(t, &v->items[i], &here);
    }
    hk_intern_fini(&seen);
}

/* Parses the body again to name its duplicate fields. Called only if it has some. */
static void note_twins(struct exchange *x)
{
    struct twins t = {.x = x};
    struct json v;

    if (json_parse(x->http->body, JSON_DUP_KEEP, &x->body_mem, &v, NULL) < 0) {
        return;
    }
    find_twins(&t, &v, NULL);
    const char **list = hk_arena_array(&x->mem, t.at.len, sizeof(*list));
    for (uint32_t i = 0; i < t.at.len; i++) {
        list[i] = t.at.at[i];
    }
    x->req.duplicates = list;
    x->req.nduplicates = t.at.len;
    hk_vec_fini(&t.at);
}

int body_parse_json(struct exchange *x, struct json *ret, struct hk_err *err)
{
    int rc;

    if (x->req.validate != PORT_VALIDATE_IGNORE &&
        json_parse(x->http->body, JSON_DUP_REJECT, &x->body_mem, ret, NULL) == 0) {
        return 0;
    }
    rc = json_parse(x->http->body, 0, &x->body_mem, ret, err);
    if (rc == 0 && x->req.validate != PORT_VALIDATE_IGNORE) {
        note_twins(x);
    }
    return rc;
}

/* ---- memory ---- */

/* An upper bound of the number of values: counts separators, in any format. */
static size_t count_values(struct hk_str body)
{
    size_t n = 1;

    for (size_t i = 0; i < body.n; i++) {
        n += body.s[i] == ',' || body.s[i] == '{' || body.s[i] == '[' || body.s[i] == '\n';
    }
    return n;
}

/* A body of many small values temporarily needs a hundred times its size. */
int body_check_memory(struct exchange *x)
{
    struct hk_budget *b = x->server->opts.budget;
    const struct hk_str body = x->http->body;

    if (body.n <= SMALL_BODY || hk_budget_fits(b, body.n * (BYTE_COST + VALUE_COST / 2)) ||
        hk_budget_fits(b, body.n * BYTE_COST + count_values(body) * VALUE_COST)) {
        return 0;
    }
    return exchange_refuse(
        x, 507, "InsufficientStorage",
        "the server has not enough memory to read this request: send less at a time, or "
        "raise the limit of %llu MiB",
        (unsigned long long)(hk_budget_limit(b) >> 20));
}

/* ---- decoding ---- */

static int decode_json(struct exchange *x, const char *must_be, struct json *ret)
{
    struct hk_err err = {0};

    return body_parse_json(x, ret, &err) < 0 ? refuse_body(x, must_be, &err) : 0;
}

int body_decode_yaml(struct exchange *x, const char *must_be, struct json *ret)
{
    const unsigned flags = x->req.validate == PORT_VALIDATE_STRICT ? YAML_DUP_REJECT : 0;
    struct yaml_docs docs = {0};
    struct hk_err err = {0};

    if (yaml_parse(x->http->body, flags, &x->body_mem, &docs, &err) < 0) {
        return refuse_body(x, must_be, &err);
    }
    if (docs.len != 1) {
        hk_err_set(&err, HK_EINVAL, "%u YAML documents, want one", docs.len);
        return refuse_body(x, must_be, &err);
    }
    *ret = docs.at[0];
    return 0;
}

static int decode_proto(struct exchange *x, const char *must_be, struct json *ret)
{
    struct hk_err err = {0};
    const int rc = api_proto_decode(x->http->body, &x->body_mem, ret, &err);

    if (rc == -HK_EUNSUP) {
        return body_refuse_type(x, "application/json, application/yaml");
    }
    return rc < 0 ? refuse_body(x, must_be, &err) : 0;
}

int body_decode(struct exchange *x, const char *must_be, struct json *ret)
{
    const struct hk_str type = body_type(x);

    if (body_check_memory(x) < 0) {
        return -HK_EFULL;
    }
    if (type.n == 0 || body_type_is(type, "application/json")) {
        return decode_json(x, must_be, ret);
    }
    if (body_type_is(type, "application/yaml")) {
        return body_decode_yaml(x, must_be, ret);
    }
    if (body_type_is(type, "application/vnd.kubernetes.protobuf")) {
        return decode_proto(x, must_be, ret);
    }
    return body_refuse_type(x, BODY_TYPES);
}
