// SPDX-License-Identifier: Apache-2.0
// Decodes an object as a typed API server does, using the shapes of api/type.h. Values of the wrong
// type are refused with the messages of Go's decoder. Unknown fields, nulls and omitted zero values
// are removed; quantities and times get their canonical form. Equal objects then have equal trees.
#include "admission/admission_priv.h"
#include "api/type.h"
#include "codec/timefmt.h"

struct walk {
    struct admission_request *q;
    struct hk_err *err;
};

/* The position of a value: its field, the type that has the field, and the path to it. */
struct spot {
    const struct api_type *in;
    const struct api_field *field;
    const struct path *path;
};

/* ---- errors ---- */

static int admission_decode_fail(const struct walk *w, const char *why)
{
    const struct api_kind *k = w->q->kind;

    return hk_fail(w->err, HK_EINVAL, "%s in version \"%s\" cannot be handled as a %s: %s", k->kind,
                   k->version, k->kind, why);
}

/* Go's messages give the path as dotted names without indices. */
static void admission_decode_write_path(const struct path *p, struct hk_buf *out)
{
    if (p->up) {
        admission_decode_write_path(p->up, out);
    }
    if (p->form == PATH_FIELD) {
        hk_buf_addf(out, "%s%.*s", out->len > 0 ? "." : "", HK_FMT(p->key));
    }
}

static void write_go_type(const struct api_field *f, unsigned flags, struct hk_buf *out)
{
    static const char *const plain[] = {
        [API_STRING] = "string",
        [API_BOOL] = "bool",
        [API_BYTES] = "[]uint8",
        [API_QUANTITY] = "resource.Quantity",
        [API_INT_OR_STRING] = "intstr.IntOrString",
        [API_TIME] = "v1.Time",
        [API_MICRO_TIME] = "v1.MicroTime",
        [API_RAW] = "runtime.RawExtension",
        [API_STRINGS] = "[]string",
    };

    hk_buf_adds(out, flags & API_LIST ? "[]" : "");
    hk_buf_adds(out, flags & API_MAP ? "map[string]" : "");
    if (f->form == API_MESSAGE) {
        hk_buf_addf(out, "v1.%s", f->type->name);
    } else if (f->form == API_INT) {
        hk_buf_adds(out, f->flags & API_LONG ? "int64" : "int32");
    } else {
        hk_buf_adds(out, plain[f->form]);
    }
}

static void write_seen(const struct json *v, struct hk_buf *out)
{
    switch (v->type) {
    case JSON_INT:
    case JSON_UINT:
    case JSON_DOUBLE:
        hk_buf_adds(out, "number");
        break;
    case JSON_BOOL:
        hk_buf_adds(out, "bool");
        break;
    default:
        hk_buf_adds(out, json_type_name(v->type));
    }
}

/* flags: whether the value is the whole list or map, or an element of it. */
static int mismatch(const struct walk *w, const struct spot *s, const struct json *v,
                    unsigned flags)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf names = {0};
    const bool number = v->type == JSON_INT || v->type == JSON_UINT || v->type == JSON_DOUBLE;

    hk_buf_adds(&why, "json: cannot unmarshal ");
    write_seen(v, &why);
    if (number && s->field->form == API_INT && flags == 0) {
        hk_buf_addc(&why, ' ');
        json_write(v, &why);
    }
    admission_decode_write_path(s->path, &names);
    hk_buf_addf(&why, " into Go struct field %s.%s of type ", s->in->name, names.data);
    write_go_type(s->field, flags, &why);
    return admission_decode_fail(w, why.data);
}

/* ---- plain values ---- */

static int read_int(const struct walk *w, const struct spot *s, struct json *v)
{
    if (v->type == JSON_DOUBLE && v->d >= -9e15 && v->d <= 9e15 && v->d == (double)(int64_t)v->d) {
        *v = json_make_int((int64_t)v->d);
    }
    const bool narrow = !(s->field->flags & API_LONG);
    if (v->type != JSON_INT || (narrow && (v->i > INT32_MAX || v->i < INT32_MIN))) {
        return mismatch(w, s, v, 0);
    }
    return 0;
}

/* Go's error for such a field does not name the field. */
static int read_int_or_string(const struct walk *w, const struct spot *s, const struct json *v)
{
    if (v->type != JSON_STRING && v->type != JSON_INT) {
        return mismatch(w, s, v, 0);
    }
    if (v->type == JSON_INT && (v->i > INT32_MAX || v->i < INT32_MIN)) {
        return admission_decode_fail(
            w, hk_arena_printf(w->q->mem,
                               "json: cannot unmarshal number %lld into Go value of type "
                               "int32",
                               (long long)v->i));
    }
    return 0;
}

static int read_quantity(const struct walk *w, const struct spot *s, struct json *v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_err why = {0};
    struct quantity amount;

    if (v->type == JSON_STRING) {
        hk_buf_addstr(&text, hk_str_trim(json_str(v, HK_STR(""))));
    } else if (v->type == JSON_INT || v->type == JSON_UINT || v->type == JSON_DOUBLE) {
        json_write(v, &text);
    } else {
        return mismatch(w, s, v, 0);
    }
    if (quantity_parse(hk_buf_str(&text), &amount, &why) < 0) {
        return admission_decode_fail(w, why.text);
    }
    *v = json_make_str(hk_str(amount_text(amount, w->q->mem)));
    return 0;
}

static int admission_decode_read_time(const struct walk *w, const struct spot *s, struct json *v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const bool micro = s->field->form == API_MICRO_TIME;
    const struct hk_str in = json_str(v, HK_STR(""));
    int64_t ns;

    if (v->type != JSON_STRING) {
        return mismatch(w, s, v, 0);
    }
    if (time_parse(in, &ns, NULL) < 0) {
        return admission_decode_fail(
            w, hk_arena_printf(w->q->mem,
                               "parsing time \"%.*s\" as "
                               "\"2006-01-02T15:04:05%sZ07:00\": cannot parse \"%.*s\"",
                               HK_FMT(in), micro ? ".000000" : "", HK_FMT(in)));
    }
    if (micro) {
        time_write_micro(ns, &text);
    } else {
        time_write(ns, &text);
    }
    if (!hk_str_eq(in, hk_buf_str(&text))) {
        *v = json_make_str_copy(hk_buf_str(&text), w->q->mem);
    }
    return 0;
}

/* Go's base64.StdEncoding: line ends are skipped, padding is wanted. */
static int read_bytes(const struct walk *w, const struct spot *s, const struct json *v)
{
    const struct hk_str in = json_str(v, HK_STR(""));
    size_t n = 0;
    size_t pad = 0;

    if (v->type != JSON_STRING) {
        return mismatch(w, s, v, 0);
    }
    for (size_t i = 0; i < in.n; i++) {
        const char c = in.s[i];
        const bool digit = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                           (c >= '0' && c <= '9') || c == '+' || c == '/';
        if (c == '\n' || c == '\r') {
            continue;
        }
        pad += c == '=';
        if ((digit && pad > 0) || (!digit && c != '=') || (c == '=' && (n & 3) < 2)) {
            return admission_decode_fail(
                w, hk_arena_printf(w->q->mem, "illegal base64 data at input byte %zu", i));
        }
        n++;
    }
    if (n & 3) {
        return admission_decode_fail(
            w, hk_arena_printf(w->q->mem, "illegal base64 data at input byte %zu", n & ~3UL));
    }
    return 0;
}

/* ---- structures ---- */

static int read_message(const struct walk *w, const struct api_type *t, struct json *obj,
                        const struct path *path, bool root);

/* Reads one value: an element, or a field that is neither a list nor a map. */
static int read_one(const struct walk *w, const struct spot *s, struct json *v)
{
    switch ((enum api_form)s->field->form) {
    case API_STRING:
        return v->type == JSON_STRING ? 0 : mismatch(w, s, v, 0);
    case API_INT:
        return read_int(w, s, v);
    case API_BOOL:
        return v->type == JSON_BOOL ? 0 : mismatch(w, s, v, 0);
    case API_BYTES:
        return read_bytes(w, s, v);
    case API_QUANTITY:
        return read_quantity(w, s, v);
    case API_INT_OR_STRING:
        return read_int_or_string(w, s, v);
    case API_TIME:
    case API_MICRO_TIME:
        return admission_decode_read_time(w, s, v);
    case API_RAW:
        return 0;
    case API_STRINGS:
        return v->type == JSON_ARRAY ? 0 : mismatch(w, s, v, 0);
    case API_MESSAGE:
        if (v->type != JSON_OBJECT) {
            return mismatch(w, s, v, 0);
        }
        return read_message(w, s->field->type, v, s->path, false);
    }
    return 0;
}

/* Go reads a null in a list as the zero value. */
static struct json zero_of(const struct api_field *f)
{
    switch ((enum api_form)f->form) {
    case API_INT:
    case API_INT_OR_STRING:
        return json_make_int(0);
    case API_BOOL:
        return json_make_bool(false);
    case API_QUANTITY:
        return json_make_str(HK_STR("0"));
    case API_MESSAGE:
        return json_make_object();
    default:
        return json_make_str(HK_STR(""));
    }
}

static int read_list(const struct walk *w, const struct spot *s, struct json *v)
{
    if (v->type != JSON_ARRAY) {
        return mismatch(w, s, v, API_LIST);
    }
    for (uint32_t i = 0; i < v->len; i++) {
        const struct path at = path_index(s->path, i);
        const struct spot item = {s->in, s->field, &at};
        if (v->items[i].type == JSON_NULL) {
            v->items[i] = zero_of(s->field);
        }
        const int rc = read_one(w, &item, &v->items[i]);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int read_map(const struct walk *w, const struct spot *s, struct json *v)
{
    if (v->type != JSON_OBJECT) {
        return mismatch(w, s, v, API_MAP);
    }
    for (uint32_t i = 0; i < v->len; i++) {
        const struct path at = path_key(s->path, v->members[i].key);
        const struct spot item = {s->in, s->field, &at};
        if (v->members[i].value.type == JSON_NULL) {
            v->members[i].value = zero_of(s->field);
        }
        const int rc = read_one(w, &item, &v->members[i].value);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int admission_decode_read_field(const struct walk *w, const struct spot *s, struct json *v)
{
    if (s->field->flags & API_LIST) {
        return read_list(w, s, v);
    }
    if (s->field->flags & API_MAP) {
        return read_map(w, s, v);
    }
    return read_one(w, s, v);
}

/* Whether omitempty removes the value. Objects stay, even empty ones, as in Go. */
static bool is_omitted(const struct api_field *f, const struct json *v)
{
    if (f->flags & (API_LIST | API_MAP)) {
        return v->len == 0 && !(f->flags & API_KEEP);
    }
    if (f->flags & (API_PTR | API_KEEP)) {
        return false;
    }
    switch ((enum api_form)f->form) {
    case API_STRING:
    case API_BYTES:
        return v->len == 0;
    case API_INT:
        return v->i == 0;
    case API_BOOL:
        return !v->b;
    default:
        return false;
    }
}

static void note_unknown(const struct walk *w, const struct path *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    path_write(path, &text);
    hk_vec_push(&w->q->unknown, hk_arena_strndup(w->q->mem, text.data, text.len));
}

/* The shapes do not contain apiVersion and kind. Every root has them, and so do claims inside
 * StatefulSets and DeleteOptions inside Evictions. */
static bool is_type_meta(const struct api_type *t, bool root, struct hk_str key)
{
    return (hk_str_is(key, "apiVersion") || hk_str_is(key, "kind")) &&
           (root || strcmp(t->name, "PersistentVolumeClaim") == 0 ||
            strcmp(t->name, "DeleteOptions") == 0);
}

static int read_message(const struct walk *w, const struct api_type *t, struct json *obj,
                        const struct path *path, bool root)
{
    const bool open = root && strcmp(t->name, "Object") == 0; /* a custom resource */
    uint32_t kept = 0;

    for (uint32_t i = 0; i < obj->len; i++) {
        struct json_member *m = &obj->members[i];
        const struct api_field *f = api_type_name(t, m->key);
        const struct path at = {.up = path, .key = m->key, .form = PATH_FIELD};
        const struct spot s = {t, f, &at};
        if (f) {
            if (m->value.type == JSON_NULL) {
                continue;
            }
            const int rc = admission_decode_read_field(w, &s, &m->value);
            if (rc < 0) {
                return rc;
            }
            if (is_omitted(f, &m->value)) {
                continue;
            }
        } else if (!open && !is_type_meta(t, root, m->key)) {
            note_unknown(w, &at);
            continue;
        }
        obj->members[kept++] = *m;
    }
    obj->len = kept;
    return 0;
}

/* Most subresources have their own kinds. */
static const struct api_type *shape_of(const struct admission_request *q)
{
    if (q->subresource && strcmp(q->subresource, "status") != 0) {
        return api_type_find(edit_str(q->obj, "apiVersion"), edit_str(q->obj, "kind"));
    }
    return api_type_of(q->kind);
}

int admission_decode(struct admission_request *q, struct hk_err *err)
{
    const struct walk w = {q, err};
    const struct api_type *t = q->obj ? shape_of(q) : NULL;

    if (!t) {
        return 0;
    }
    if (q->obj->type != JSON_OBJECT) {
        return admission_decode_fail(&w, "json: cannot unmarshal a value that is no object");
    }
    return read_message(&w, t, q->obj, NULL, true);
}
