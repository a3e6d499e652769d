// SPDX-License-Identifier: Apache-2.0
// Reads protobuf objects by the table of types. Go writes every field that is not a pointer, even
// if empty. JSON omits empty fields, and so does this file, except those that JSON always shows.
//
// No type contains itself, so the table limits the depth. Values are counted, because a list of
// empty messages needs only two bytes per element.
#include "api/proto.h"

#include "api/type.h"
#include "codec/protobuf.h"

enum { VALUES_MAX = 500000 };

static const struct hk_str MAGIC = {"k8s\0", 4};

struct reader {
    struct hk_arena *a;
    struct hk_err *err;
    uint32_t values;
};

static int read_message(struct reader *r, const struct api_type *type, struct hk_str bytes,
                        struct json *obj);

static int api_proto_fail_field(const struct reader *r, const struct api_field *f, const char *why)
{
    return hk_fail(r->err, HK_EINVAL, "protobuf: field '%s': %s", f->name, why);
}

static struct json null_value(void)
{
    return (struct json){.type = JSON_NULL};
}

/* ---- values ---- */

/* The last field of each number below four in a small message; absent ones are zero. */
static int read_small(const struct reader *r, struct hk_str bytes, struct protobuf_field small[4])
{
    struct protobuf_field w;
    int rc;

    memset(small, 0, 4 * sizeof(small[0]));
    while ((rc = protobuf_next(&bytes, &w, r->err)) > 0) {
        if (w.number < 4) {
            small[w.number] = w;
        }
    }
    return rc;
}

static int api_proto_read_text(const struct reader *r, const struct api_field *f,
                               struct hk_str bytes, struct json *ret)
{
    if (!protobuf_is_text(bytes)) {
        return api_proto_fail_field(r, f, "string is not UTF-8");
    }
    *ret = json_make_str(bytes.s ? bytes : HK_STR(""));
    return 0;
}

static struct json make_base64(const struct reader *r, struct hk_str in)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t n = (in.n + 2) / 3 * 4;
    char *out = hk_arena_alloc(r->a, n + 1);
    char *p = out;

    for (size_t i = 0; i < in.n; i += 3) {
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++) {
            v = v << 8 | (i + k < in.n ? (unsigned char)in.s[i + k] : 0u);
        }
        for (size_t k = 0; k < 4; k++) {
            *p++ = i + k > in.n ? '=' : digits[v >> (18 - 6 * k) & 63];
        }
    }
    *p = '\0';
    return json_make_str((struct hk_str){out, n});
}

static int api_proto_read_time(const struct reader *r, const struct api_field *f,
                               struct hk_str bytes, struct json *ret)
{
    enum { NANO = 1000000000 };
    struct protobuf_field small[4];
    const int rc = read_small(r, bytes, small);
    int64_t ns;

    *ret = null_value();
    if (rc < 0 || bytes.n == 0) {
        return rc;
    }
    const int64_t nanos = (int64_t)small[2].value;
    if (__builtin_mul_overflow((int64_t)small[1].value, NANO, &ns) || nanos < 0 || nanos >= NANO ||
        __builtin_add_overflow(ns, nanos, &ns)) {
        return api_proto_fail_field(r, f, "time is out of range");
    }
    *ret = f->form == API_MICRO_TIME ? json_make_micro_time(ns, r->a)
                                     : json_make_time(ns - nanos, r->a);
    return 0;
}

static int read_int_or_string(const struct reader *r, const struct api_field *f,
                              struct hk_str bytes, struct json *ret)
{
    struct protobuf_field small[4];
    const int rc = read_small(r, bytes, small);

    if (rc < 0) {
        return rc;
    }
    if (small[1].value == 1) {
        return api_proto_read_text(r, f, small[3].bytes, ret);
    }
    *ret = json_make_int((int64_t)small[2].value);
    return 0;
}

static int read_raw(const struct reader *r, const struct api_field *f, struct hk_str bytes,
                    struct json *ret)
{
    struct protobuf_field small[4];
    const int rc = read_small(r, bytes, small);

    *ret = null_value();
    if (rc < 0 || small[1].bytes.n == 0) {
        return rc;
    }
    return json_parse(small[1].bytes, 0, r->a, ret, r->err);
}

static int read_quantity(const struct reader *r, const struct api_field *f, struct hk_str bytes,
                         struct json *ret)
{
    struct protobuf_field small[4];
    const int rc = read_small(r, bytes, small);

    if (rc < 0) {
        return rc;
    }
    return api_proto_read_text(r, f, small[1].bytes.n > 0 ? small[1].bytes : HK_STR("0"), ret);
}

static int read_strings(struct reader *r, const struct api_field *f, struct hk_str bytes,
                        struct json *ret)
{
    struct protobuf_field w;
    int rc;

    *ret = json_make_array();
    while ((rc = protobuf_next(&bytes, &w, r->err)) > 0) {
        struct json one;
        rc = w.number == 1 ? api_proto_read_text(r, f, w.bytes, &one) : 0;
        if (rc < 0) {
            return rc;
        }
        if (w.number == 1) {
            json_push(ret, r->a, one);
        }
    }
    return rc;
}

static bool is_varint(const struct api_field *f)
{
    return f->form == API_INT || f->form == API_BOOL;
}

/* One value: a single one, an element of a list, or a value of a map. */
static int read_value(struct reader *r, const struct api_field *f, const struct protobuf_field *w,
                      struct json *ret)
{
    if (++r->values > VALUES_MAX) {
        return hk_fail(r->err, HK_ELIMIT, "protobuf: more than %d values", VALUES_MAX);
    }
    if (w->wire != (is_varint(f) ? PROTOBUF_VARINT : PROTOBUF_BYTES)) {
        return api_proto_fail_field(r, f, "wrong wire type");
    }
    switch ((enum api_form)f->form) {
    case API_INT:
        *ret = json_make_int((int64_t)w->value);
        return 0;
    case API_BOOL:
        *ret = json_make_bool(w->value != 0);
        return 0;
    case API_STRING:
        return api_proto_read_text(r, f, w->bytes, ret);
    case API_BYTES:
        *ret = make_base64(r, w->bytes);
        return 0;
    case API_QUANTITY:
        return read_quantity(r, f, w->bytes, ret);
    case API_INT_OR_STRING:
        return read_int_or_string(r, f, w->bytes, ret);
    case API_TIME:
    case API_MICRO_TIME:
        return api_proto_read_time(r, f, w->bytes, ret);
    case API_RAW:
        return read_raw(r, f, w->bytes, ret);
    case API_STRINGS:
        return read_strings(r, f, w->bytes, ret);
    case API_MESSAGE:
        *ret = json_make_object();
        return read_message(r, f->type, w->bytes, ret);
    }
    return api_proto_fail_field(r, f, "unknown form");
}

static bool api_proto_is_zero(const struct json *v, const struct api_field *f)
{
    switch (v->type) {
    case JSON_BOOL:
        return !v->b;
    case JSON_INT:
        return v->i == 0;
    case JSON_STRING:
        return v->len == 0 ||
               (f->form == API_QUANTITY && hk_str_is((struct hk_str){v->s, v->len}, "0"));
    case JSON_ARRAY:
    case JSON_OBJECT:
        return v->len == 0;
    default:
        return v->type == JSON_NULL;
    }
}

/* ---- fields ---- */

/* The list or map of the field. Creates a missing one. */
static struct json *collection(struct reader *r, const struct api_field *f, struct json *obj)
{
    struct json *v = (struct json *)json_get(obj, f->name);

    if (v) {
        return v;
    }
    return json_set(obj, r->a, f->name,
                    f->flags & API_MAP ? json_make_object() : json_make_array());
}

static int read_packed(struct reader *r, const struct api_field *f, struct hk_str bytes,
                       struct json *list)
{
    struct protobuf_field w = {.wire = PROTOBUF_VARINT};
    int rc;

    while ((rc = protobuf_next_varint(&bytes, &w.value, r->err)) > 0) {
        struct json v;
        rc = read_value(r, f, &w, &v);
        if (rc < 0) {
            return rc;
        }
        json_push(list, r->a, v);
    }
    return rc;
}

static int read_element(struct reader *r, const struct api_field *f, const struct protobuf_field *w,
                        struct json *list)
{
    struct json v;

    if (is_varint(f) && w->wire == PROTOBUF_BYTES) {
        return read_packed(r, f, w->bytes, list);
    }
    const int rc = read_value(r, f, w, &v);
    if (rc == 0) {
        json_push(list, r->a, v);
    }
    return rc;
}

/* Map entries stay in the order of arrival; a duplicate key keeps its last value. */
static int read_entry(struct reader *r, const struct api_field *f, const struct protobuf_field *w,
                      struct json *map)
{
    struct protobuf_field small[4];
    struct json key, value;
    int rc;

    if (w->wire != PROTOBUF_BYTES) {
        return api_proto_fail_field(r, f, "wrong wire type");
    }
    rc = read_small(r, w->bytes, small);
    if (rc < 0) {
        return rc;
    }
    if (small[2].number == 0) {
        small[2].wire = is_varint(f) ? PROTOBUF_VARINT : PROTOBUF_BYTES;
    }
    rc = api_proto_read_text(r, f, small[1].bytes, &key);
    if (rc == 0) {
        rc = read_value(r, f, &small[2], &value);
    }
    if (rc == 0) {
        json_put(map, r->a, (struct hk_str){key.s, key.len}, value);
    }
    return rc;
}

static int read_single(struct reader *r, const struct api_field *f, const struct protobuf_field *w,
                       struct json *obj)
{
    struct json v;
    const int rc = read_value(r, f, w, &v);

    if (rc < 0) {
        return rc;
    }
    const unsigned shown = v.type == JSON_NULL ? API_KEEP : API_PTR | API_KEEP;
    if (api_proto_is_zero(&v, f) && !(f->flags & shown)) {
        json_del(obj, f->name);
    } else {
        json_set(obj, r->a, f->name, v);
    }
    return 0;
}

static int api_proto_read_field(struct reader *r, const struct api_field *f,
                                const struct protobuf_field *w, struct json *obj)
{
    if (f->flags & API_INLINE) {
        if (w->wire != PROTOBUF_BYTES) {
            return api_proto_fail_field(r, f, "wrong wire type");
        }
        return read_message(r, f->type, w->bytes, obj);
    }
    if (f->flags & API_LIST) {
        return read_element(r, f, w, collection(r, f, obj));
    }
    if (f->flags & API_MAP) {
        return read_entry(r, f, w, collection(r, f, obj));
    }
    return read_single(r, f, w, obj);
}

static int read_message(struct reader *r, const struct api_type *type, struct hk_str bytes,
                        struct json *obj)
{
    struct protobuf_field w;
    int rc;

    while ((rc = protobuf_next(&bytes, &w, r->err)) > 0) {
        const struct api_field *f = api_type_number(type, w.number);
        rc = f ? api_proto_read_field(r, f, &w, obj) : 0;
        if (rc < 0) {
            return rc;
        }
    }
    return rc;
}

/* ---- envelope ---- */

bool api_proto_is(struct hk_str body)
{
    return body.n >= MAGIC.n && memcmp(body.s, MAGIC.s, MAGIC.n) == 0;
}

static int read_envelope(struct reader *r, const struct protobuf_field unknown[4], struct json *ret)
{
    static const struct api_field word = {.name = "typeMeta", .form = API_STRING};
    struct protobuf_field meta[4];
    struct json version, kind;
    int rc;

    rc = read_small(r, unknown[1].bytes, meta);
    if (rc < 0) {
        return rc;
    }
    rc = api_proto_read_text(r, &word, meta[1].bytes, &version);
    if (rc < 0) {
        return rc;
    }
    rc = api_proto_read_text(r, &word, meta[2].bytes, &kind);
    if (rc < 0) {
        return rc;
    }
    const struct api_type *type =
        api_type_find((struct hk_str){version.s, version.len}, (struct hk_str){kind.s, kind.len});
    if (!type) {
        return hk_fail(r->err, HK_EUNSUP, "protobuf: no kind '%.*s' in '%.*s'", (int)kind.len,
                       kind.s, (int)version.len, version.s);
    }
    struct json obj = json_make_object();
    json_set(&obj, r->a, "apiVersion", version);
    json_set(&obj, r->a, "kind", kind);
    rc = read_message(r, type, unknown[2].bytes, &obj);
    if (rc < 0) {
        return rc;
    }
    if (!api_type_fill(type, r->a, &obj)) {
        return hk_fail(r->err, HK_ELIMIT, "protobuf: more than %d values are missing",
                       API_FILL_MAX);
    }
    *ret = obj;
    return 0;
}

int api_proto_decode(struct hk_str body, struct hk_arena *a, struct json *ret, struct hk_err *err)
{
    struct reader r = {.a = a, .err = err};
    struct protobuf_field unknown[4];
    int rc;

    if (!api_proto_is(body)) {
        return hk_fail(err, HK_EINVAL, "protobuf: body does not begin with 'k8s'");
    }
    rc = read_small(&r, (struct hk_str){body.s + MAGIC.n, body.n - MAGIC.n}, unknown);
    if (rc == 0 && unknown[3].bytes.n > 0) {
        return hk_fail(err, HK_EUNSUP, "protobuf: content encoding '%.*s'",
                       HK_FMT(unknown[3].bytes));
    }
    if (rc < 0) {
        return rc;
    }
    return read_envelope(&r, unknown, ret);
}
