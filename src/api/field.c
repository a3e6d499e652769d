// SPDX-License-Identifier: Apache-2.0
// The field readers behind every decoder, and their error messages. Each kind's own file has the
// table of its fields.
#include "api/field_priv.h"

#include "codec/timefmt.h"

enum { VALUE_SHOWN_MAX = 64 }; /* bytes of a bad value shown in messages */

static void path_write(const struct field_path *p, struct hk_buf *out)
{
    if (!p) {
        return;
    }
    path_write(p->up, out);
    if (p->key) {
        hk_buf_addf(out, "%s%s", out->len > 0 ? "." : "", p->key);
    } else if (!p->map_key.s) {
        hk_buf_addf(out, "[%lld]", (long long)p->index);
    } else if (memchr(p->map_key.s, '.', p->map_key.n)) {
        hk_buf_addf(out, "[%.*s]", HK_FMT(p->map_key));
    } else {
        hk_buf_addf(out, "%s%.*s", out->len > 0 ? "." : "", HK_FMT(p->map_key));
    }
}

void field_fail(struct field_reader *r, const struct field_path *p, const struct json *v,
                const char *fmt, ...)
{
    if (r->rc < 0) {
        return;
    }
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    va_list ap;

    path_write(p, &path);
    if (v && v->line > 0) {
        hk_buf_addf(&text, "line %u: ", v->line);
    }
    if (path.len > 0) {
        hk_buf_addf(&text, "%s: ", path.data);
    }
    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    r->rc = hk_fail(r->err, HK_EINVAL, "%s", text.data);
}

bool field_want(struct field_reader *r, const struct field_path *p, const struct json *v,
                enum json_type type)
{
    if (v->type == type) {
        return true;
    }
    if (v->type == JSON_ARRAY || v->type == JSON_OBJECT || v->type == JSON_NULL) {
        field_fail(r, p, v, "want %s, have %s", json_type_name(type), json_type_name(v->type));
        return false;
    }
    HK_AUTO(hk_buf_fini) struct hk_buf seen = {0};
    json_write(v, &seen);
    field_fail(r, p, v, "want %s, have %s %.*s", json_type_name(type), json_type_name(v->type),
               (int)HK_MIN(seen.len, VALUE_SHOWN_MAX), seen.data);
    return false;
}

static struct hk_str shown(struct hk_str s)
{
    return (struct hk_str){s.s, HK_MIN(s.n, VALUE_SHOWN_MAX)};
}

static void *field_member_address(void *base, const struct field *f)
{
    return (char *)base + f->off;
}

/* All API_LISTs start with pointer and length; memcpy because their pointer types differ. */
static void list_set(void *list, void *at, uint32_t len)
{
    memcpy(list, &at, sizeof(at));
    memcpy((char *)list + sizeof(at), &len, sizeof(len));
}

void field_str(struct field_reader *r, const struct field_path *p, const struct json *v,
               const struct field *f, void *base)
{
    if (field_want(r, p, v, JSON_STRING)) {
        *(struct hk_str *)field_member_address(base, f) = (struct hk_str){v->s, v->len};
    }
}

void field_bool(struct field_reader *r, const struct field_path *p, const struct json *v,
                const struct field *f, void *base)
{
    if (field_want(r, p, v, JSON_BOOL)) {
        *(bool *)field_member_address(base, f) = v->b;
    }
}

void field_present(struct field_reader *r, const struct field_path *p, const struct json *v,
                   const struct field *f, void *base)
{
    *(bool *)field_member_address(base, f) = true;
}

static bool int_within(struct field_reader *r, const struct field_path *p, const struct json *v,
                       int64_t min, int64_t max)
{
    if (v->type == JSON_UINT) {
        field_fail(r, p, v, "value %llu, want %lld to %lld", (unsigned long long)v->u,
                   (long long)min, (long long)max);
        return false;
    }
    if (!field_want(r, p, v, JSON_INT)) {
        return false;
    }
    if (v->i < min || v->i > max) {
        field_fail(r, p, v, "value %lld, want %lld to %lld", (long long)v->i, (long long)min,
                   (long long)max);
        return false;
    }
    return true;
}

void field_i32(struct field_reader *r, const struct field_path *p, const struct json *v,
               const struct field *f, void *base)
{
    if (int_within(r, p, v, f->min, f->max)) {
        *(int32_t *)field_member_address(base, f) = (int32_t)v->i;
    }
}

void field_i64(struct field_reader *r, const struct field_path *p, const struct json *v,
               const struct field *f, void *base)
{
    if (int_within(r, p, v, f->min, f->max)) {
        *(int64_t *)field_member_address(base, f) = v->i;
    }
}

void field_time(struct field_reader *r, const struct field_path *p, const struct json *v,
                const struct field *f, void *base)
{
    int64_t ns;

    if (!field_want(r, p, v, JSON_STRING)) {
        return;
    }
    const struct hk_str s = {v->s, v->len};
    if (time_parse(s, &ns, NULL) < 0) {
        field_fail(r, p, v, "bad time '%.*s'", HK_FMT(shown(s)));
        return;
    }
    /* Zero means unset, so time 0 (1970) is stored as 1 ns. */
    *(int64_t *)field_member_address(base, f) = ns == 0 ? 1 : ns;
}

void field_duration(struct field_reader *r, const struct field_path *p, const struct json *v,
                    const struct field *f, void *base)
{
    int64_t ns;

    if (!field_want(r, p, v, JSON_STRING)) {
        return;
    }
    const struct hk_str s = {v->s, v->len};
    if (duration_parse(s, &ns, NULL) < 0) {
        field_fail(r, p, v, "bad duration '%.*s'", HK_FMT(shown(s)));
        return;
    }
    *(int64_t *)field_member_address(base, f) = ns;
}

/* Manifests write quantities as strings or numbers; null is zero, as upstream reads it. */
static void quantity_read(struct field_reader *r, const struct field_path *p, const struct json *v,
                          struct quantity *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf number = {0};
    struct hk_str text = HK_STR("0");
    struct quantity q;

    if (v->type == JSON_STRING) {
        text = hk_str_trim((struct hk_str){v->s, v->len});
    } else if (v->type == JSON_INT || v->type == JSON_UINT || v->type == JSON_DOUBLE) {
        json_write(v, &number);
        text = hk_buf_str(&number);
    } else if (v->type != JSON_NULL) {
        field_fail(r, p, v, "want quantity, have %s", json_type_name(v->type));
        return;
    }
    if (quantity_parse(text, &q, NULL) < 0) {
        field_fail(r, p, v, "bad quantity '%.*s'", HK_FMT(shown(text)));
    } else if (q.nano < 0) {
        field_fail(r, p, v, "negative quantity '%.*s'", HK_FMT(shown(text)));
    } else {
        *ret = q;
    }
}

void field_quantity(struct field_reader *r, const struct field_path *p, const struct json *v,
                    const struct field *f, void *base)
{
    quantity_read(r, p, v, field_member_address(base, f));
}

int field_str_cmp(const void *a, const void *b)
{
    return hk_str_cmp(*(const struct hk_str *)a, *(const struct hk_str *)b);
}

/* For arrays of structs that start with their hk_str key. */
int field_kv_cmp(const void *a, const void *b)
{
    return field_str_cmp(a, b);
}

void field_resources(struct field_reader *r, const struct field_path *p, const struct json *v,
                     const struct field *f, void *base)
{
    if (!field_want(r, p, v, JSON_OBJECT)) {
        return;
    }
    struct api_resource *at = hk_arena_array(r->a, v->len, sizeof(*at));
    for (uint32_t i = 0; i < v->len && r->rc == 0; i++) {
        const struct json_member *m = &v->members[i];
        const struct field_path step = {.up = p, .map_key = m->key};
        at[i].name = m->key;
        quantity_read(r, &step, &m->value, &at[i].q);
    }
    if (r->rc == 0) {
        qsort(at, v->len, sizeof(*at), field_kv_cmp);
        *(struct api_resources *)field_member_address(base, f) =
            (struct api_resources){at, v->len, true};
    }
}

void field_map(struct field_reader *r, const struct field_path *p, const struct json *v,
               const struct field *f, void *base)
{
    if (!field_want(r, p, v, JSON_OBJECT)) {
        return;
    }
    struct api_kv *at = hk_arena_array(r->a, v->len, sizeof(*at));
    for (uint32_t i = 0; i < v->len; i++) {
        const struct json_member *m = &v->members[i];
        const struct field_path step = {.up = p, .map_key = m->key};
        /* A null value reads as "", as in Go maps. */
        if (m->value.type != JSON_NULL && !field_want(r, &step, &m->value, JSON_STRING)) {
            return;
        }
        at[i] = (struct api_kv){m->key, json_str(&m->value, HK_STR(""))};
    }
    qsort(at, v->len, sizeof(*at), field_kv_cmp);
    *(struct api_map *)field_member_address(base, f) = (struct api_map){at, v->len};
}

void field_strs(struct field_reader *r, const struct field_path *p, const struct json *v,
                const struct field *f, void *base)
{
    if (!field_want(r, p, v, JSON_ARRAY)) {
        return;
    }
    struct hk_str *at = hk_arena_array(r->a, v->len, sizeof(*at));
    for (uint32_t i = 0; i < v->len; i++) {
        const struct field_path step = {.up = p, .index = i};
        if (!field_want(r, &step, &v->items[i], JSON_STRING)) {
            return;
        }
        at[i] = (struct hk_str){v->items[i].s, v->items[i].len};
    }
    *(struct api_strs *)field_member_address(base, f) = (struct api_strs){at, v->len};
}

static int enum_index(const char *const *names, struct hk_str s)
{
    for (int i = 0; names[i]; i++) {
        if (hk_str_is(s, names[i])) {
            return i;
        }
    }
    return -1;
}

/* Enum members are written as the unsigned int that gcc and clang give them. */
static void enum_set(void *at, int64_t value)
{
    const unsigned u = (unsigned)value;
    memcpy(at, &u, sizeof(u));
}

static void enum_fail(struct field_reader *r, const struct field_path *p, const struct json *v,
                      const char *const *names)
{
    HK_AUTO(hk_buf_fini) struct hk_buf want = {0};

    for (int i = 0; names[i]; i++) {
        if (names[i][0] != '\0') {
            hk_buf_addf(&want, "%s%s", want.len > 0 ? ", " : "", names[i]);
        }
    }
    field_fail(r, p, v, "unknown value '%.*s', want one of %s",
               HK_FMT(shown((struct hk_str){v->s, v->len})), want.data);
}

void field_enum(struct field_reader *r, const struct field_path *p, const struct json *v,
                const struct field *f, void *base)
{
    if (!field_want(r, p, v, JSON_STRING) || v->len == 0) {
        return;
    }
    const int i = enum_index(f->sub, (struct hk_str){v->s, v->len});
    if (i < 0) {
        enum_fail(r, p, v, f->sub);
        return;
    }
    enum_set(field_member_address(base, f), i);
}

void field_enum_lax(struct field_reader *r, const struct field_path *p, const struct json *v,
                    const struct field *f, void *base)
{
    if (!field_want(r, p, v, JSON_STRING) || v->len == 0) {
        return;
    }
    const int i = enum_index(f->sub, (struct hk_str){v->s, v->len});
    enum_set(field_member_address(base, f), i < 0 ? f->min : i);
}

void field_record(struct field_reader *r, const struct field_path *p, const struct json *v,
                  const struct field_record *rec, void *base)
{
    if (!field_want(r, p, v, JSON_OBJECT)) {
        return;
    }
    for (const struct field *f = rec->fields; f->key && r->rc == 0; f++) {
        const struct json *x = json_get(v, f->key);
        const struct field_path step = {.up = p, .key = f->key};
        if (x && x->type != JSON_NULL) {
            f->read(r, &step, x, f, base);
        } else if (f->required) {
            field_fail(r, &step, v, "missing");
        }
    }
    if (rec->check && r->rc == 0) {
        rec->check(r, p, v, base);
    }
}

void field_records(struct field_reader *r, const struct field_path *p, const struct json *v,
                   const struct field_record *rec, void *list)
{
    if (!field_want(r, p, v, JSON_ARRAY)) {
        return;
    }
    char *at = hk_arena_array(r->a, v->len, rec->size);
    for (uint32_t i = 0; i < v->len && r->rc == 0; i++) {
        const struct field_path step = {.up = p, .index = i};
        char *item = at + i * rec->size;
        if (rec->init) {
            memcpy(item, rec->init, rec->size);
        } else {
            memset(item, 0, rec->size);
        }
        field_record(r, &step, &v->items[i], rec, item);
    }
    list_set(list, at, v->len);
}

void field_object(struct field_reader *r, const struct field_path *p, const struct json *v,
                  const struct field *f, void *base)
{
    field_record(r, p, v, f->sub, field_member_address(base, f));
}

void field_in(struct field_reader *r, const struct field_path *p, const struct json *v,
              const struct field *f, void *base)
{
    field_record(r, p, v, f->sub, base);
}

void field_list(struct field_reader *r, const struct field_path *p, const struct json *v,
                const struct field *f, void *base)
{
    field_records(r, p, v, f->sub, field_member_address(base, f));
}

static const struct field condition_fields[] = {
    FIELD("type", field_str, struct api_condition, type),
    FIELD("status", field_str, struct api_condition, status),
    FIELD("reason", field_str, struct api_condition, reason),
    FIELD("message", field_str, struct api_condition, message),
    FIELD("transitionID", field_str, struct api_condition, transition_id),
    FIELD("lastTransitionTime", field_time, struct api_condition, last_transition_ns),
    {0},
};

static const struct field_record condition_record = {sizeof(struct api_condition),
                                                     .fields = condition_fields};

void field_conditions(struct field_reader *r, const struct field_path *p, const struct json *v,
                      const struct field *f, void *base)
{
    field_records(r, p, v, &condition_record, field_member_address(base, f));
}

int field_decode(const struct json *doc, const struct field_record *rec, struct hk_arena *a,
                 void *tmp, void *ret, struct hk_err *err)
{
    struct field_reader r = {a, err, 0};

    field_record(&r, NULL, doc, rec, tmp);
    if (r.rc == 0) {
        memcpy(ret, tmp, rec->size);
    }
    return r.rc;
}
