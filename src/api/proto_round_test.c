// SPDX-License-Identifier: Apache-2.0
// Every built-in kind, with every field set, survives the way from JSON to protobuf and back. The
// objects are made from the table of types; the encoder here is Go's: fields by rising number,
// lists of numbers one by one. Whether the numbers in the table are right is for the samples that
// Kubernetes publishes to say: with their directory in HEKLA_KUBE_SAMPLES (scripts/api-types
// --samples prints it), each kind is read from protobuf and compared with the same object in JSON.
#include "api/proto.h"
#include "api/proto_write.h"
#include "api/type.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* ---- objects with every field ---- */

static struct json sample_message(const struct api_type *t, struct hk_arena *a);

static struct json sample_value(const struct api_field *f, struct hk_arena *a)
{
    struct json v = json_make_object();

    switch ((enum api_form)f->form) {
    case API_STRING:
        return json_make_str(hk_str(hk_arena_printf(a, "a %s", f->name)));
    case API_INT:
        return json_make_int(f->flags & API_LONG ? -5000000000 : 1000 + f->number);
    case API_BOOL:
        return json_make_bool(true);
    case API_BYTES:
        return json_make_str(HK_STR("Ynl0ZXM="));
    case API_QUANTITY:
        return json_make_str(HK_STR("1500m"));
    case API_INT_OR_STRING:
        return f->number % 2 ? json_make_str(HK_STR("25%")) : json_make_int(25);
    case API_TIME:
        return json_make_str(HK_STR("2026-01-02T15:04:05Z"));
    case API_MICRO_TIME:
        return json_make_str(HK_STR("2026-01-02T15:04:05.000200Z"));
    case API_RAW:
        json_set_int(&v, a, "f:any", 1);
        return v;
    case API_STRINGS:
        v = json_make_array();
        json_push(&v, a, json_make_str(HK_STR("one")));
        json_push(&v, a, json_make_str(HK_STR("two")));
        return v;
    case API_MESSAGE:
        return sample_message(f->type, a);
    }
    return v;
}

static struct json sample_field(const struct api_field *f, struct hk_arena *a)
{
    struct json v;

    if (f->flags & API_LIST) {
        v = json_make_array();
        json_push(&v, a, sample_value(f, a));
        json_push(&v, a, sample_value(f, a));
    } else if (f->flags & API_MAP) {
        v = json_make_object();
        json_set(&v, a, "one", sample_value(f, a));
        json_set(&v, a, "two", sample_value(f, a));
    } else {
        v = sample_value(f, a);
    }
    return v;
}

static void sample_fields(const struct api_type *t, struct hk_arena *a, struct json *obj)
{
    for (uint32_t i = 0; i < t->nfields; i++) {
        const struct api_field *f = &t->fields[i];
        if (f->flags & API_INLINE) {
            sample_fields(f->type, a, obj);
        } else {
            json_set(obj, a, f->name, sample_field(f, a));
        }
    }
}

static struct json sample_message(const struct api_type *t, struct hk_arena *a)
{
    struct json obj = json_make_object();

    sample_fields(t, a, &obj);
    return obj;
}

/* ---- the encoder ---- */

static void put_varint(uint64_t v, struct hk_buf *out)
{
    for (; v >= 0x80; v >>= 7) {
        hk_buf_addc(out, (char)(v | 0x80));
    }
    hk_buf_addc(out, (char)v);
}

static void put_number(uint32_t number, uint64_t v, struct hk_buf *out)
{
    put_varint((uint64_t)number << 3, out);
    put_varint(v, out);
}

static void put_bytes(uint32_t number, struct hk_str bytes, struct hk_buf *out)
{
    put_varint((uint64_t)number << 3 | 2, out);
    put_varint(bytes.n, out);
    hk_buf_addstr(out, bytes);
}

static void put_message(const struct api_type *t, const struct json *obj, struct hk_buf *out);

static void put_time(const char *text, struct hk_buf *out)
{
    put_number(1, 1767366245, out); /* 2026-01-02T15:04:05Z, the only time in the samples */
    put_number(2, strchr(text, '.') ? 200000 : 0, out);
}

/* The content of a value that is a message on the wire. */
static void put_content(const struct api_field *f, const struct json *v, struct hk_buf *out)
{
    switch ((enum api_form)f->form) {
    case API_QUANTITY:
        put_bytes(1, json_str(v, HK_STR("")), out);
        break;
    case API_INT_OR_STRING:
        put_number(1, v->type == JSON_STRING, out);
        put_number(2, v->type == JSON_INT ? (uint64_t)v->i : 0, out);
        put_bytes(3, json_str(v, HK_STR("")), out);
        break;
    case API_TIME:
    case API_MICRO_TIME:
        put_time(json_str(v, HK_STR("")).s, out);
        break;
    case API_RAW:
        put_bytes(1, HK_STR("{\"f:any\":1}"), out);
        break;
    case API_STRINGS:
        for (uint32_t i = 0; i < v->len; i++) {
            put_bytes(1, json_str(&v->items[i], HK_STR("")), out);
        }
        break;
    case API_STRING:
        hk_buf_addstr(out, json_str(v, HK_STR("")));
        break;
    case API_BYTES:
        hk_buf_adds(out, "bytes");
        break;
    case API_MESSAGE:
        put_message(f->type, v, out);
        break;
    case API_INT:
    case API_BOOL:
        fail_msg("%s: a number has no content", f->name);
    }
}

static void put_value(const struct api_field *f, uint32_t number, const struct json *v,
                      struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf content = {0};

    if (f->form == API_INT || f->form == API_BOOL) {
        put_number(number, f->form == API_BOOL ? v->b : (uint64_t)v->i, out);
        return;
    }
    put_content(f, v, &content);
    put_bytes(number, hk_buf_str(&content), out);
}

static void put_map(const struct api_field *f, const struct json *v, struct hk_buf *out)
{
    for (uint32_t i = 0; i < v->len; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf entry = {0};
        put_bytes(1, v->members[i].key, &entry);
        put_value(f, 2, &v->members[i].value, &entry);
        put_bytes(f->number, hk_buf_str(&entry), out);
    }
}

static void put_message(const struct api_type *t, const struct json *obj, struct hk_buf *out)
{
    for (uint32_t i = 0; i < t->nfields; i++) {
        const struct api_field *f = &t->fields[i];
        const struct json *v = json_get(obj, f->name);
        if (f->flags & API_INLINE) {
            HK_AUTO(hk_buf_fini) struct hk_buf content = {0};
            put_message(f->type, obj, &content);
            put_bytes(f->number, hk_buf_str(&content), out);
        } else if (f->flags & API_LIST) {
            for (uint32_t k = 0; k < v->len; k++) {
                put_value(f, f->number, &v->items[k], out);
            }
        } else if (f->flags & API_MAP) {
            put_map(f, v, out);
        } else {
            put_value(f, f->number, v, out);
        }
    }
}

static void put_envelope(const struct api_root *root, const struct json *obj, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf meta = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf content = {0};

    hk_buf_add(out, "k8s\0", 4);
    put_bytes(1, hk_str(root->version), &meta);
    put_bytes(2, hk_str(root->kind), &meta);
    put_bytes(1, hk_buf_str(&meta), out);
    put_message(root->type, obj, &content);
    put_bytes(2, hk_buf_str(&content), out);
}

/* ---- tests ---- */

static void expect_equal(const struct api_root *root, struct hk_str body, const struct json *want)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf have_text = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf want_text = {0};
    struct hk_err err = {0};
    struct json have;

    if (api_proto_decode(body, &a, &have, &err) < 0) {
        fail_msg("%s %s: %s", root->version, root->kind, err.text);
    }
    if (!json_equal(&have, want)) {
        json_write(want, &want_text);
        json_write(&have, &have_text);
        fail_msg("%s %s\nexpected %s\ngot      %s", root->version, root->kind, want_text.data,
                 have_text.data);
    }
}

/* What this program writes is what Go writes, byte for byte. */
static void expect_written(const struct api_root *root, const struct json *obj, struct hk_str want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
    size_t same = 0;

    api_proto_encode(root->type, hk_str(root->version), hk_str(root->kind), obj, &have);
    if (hk_str_eq(hk_buf_str(&have), want)) {
        return;
    }
    while (same < want.n && same < have.len && want.s[same] == have.data[same]) {
        same++;
    }
    fail_msg("%s %s: expected %zu bytes, got %zu; the first %zu are the same", root->version,
             root->kind, want.n, have.len, same);
}

static void every_kind_survives_protobuf(void **state)
{
    const struct api_root *root;
    size_t kinds = 0;

    for (; (root = api_root(kinds)); kinds++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
        struct json obj = sample_message(root->type, &a);
        put_envelope(root, &obj, &body);
        json_set_cstr(&obj, &a, "apiVersion", root->version);
        json_set_cstr(&obj, &a, "kind", root->kind);
        expect_equal(root, hk_buf_str(&body), &obj);
        put_bytes(3, HK_STR(""), &body);
        put_bytes(4, HK_STR(""), &body);
        expect_written(root, &obj, hk_buf_str(&body));
    }
    assert_true(kinds > 60);
}

/* "core.v1.Pod" */
static void write_sample_name(const struct api_root *root, struct hk_buf *out)
{
    const char *slash = strchr(root->version, '/');

    if (slash) {
        hk_buf_addf(out, "%.*s.%s.%s", (int)(slash - root->version), root->version, slash + 1,
                    root->kind);
    } else {
        hk_buf_addf(out, "core.%s.%s", root->version, root->kind);
    }
}

/* False when there is no sample: other modules publish none. */
static bool read_sample(const char *dir, const char *name, const char *suffix, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    hk_buf_addf(&path, "%s/%s.%s", dir, name, suffix);
    return hk_read_file(path.data, 1 << 20, out, NULL) == 0;
}

/* Of an object without any field, everything that Go writes is there, and reads back as nothing but
 * what JSON always shows. */
static void empty_objects_survive_protobuf(void **state)
{
    const struct api_root *root;

    for (size_t i = 0; (root = api_root(i)); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
        struct json obj = json_make_object();
        json_set_cstr(&obj, &a, "apiVersion", root->version);
        json_set_cstr(&obj, &a, "kind", root->kind);
        assert_true(api_type_fill(root->type, &a, &obj));
        api_proto_encode(root->type, hk_str(root->version), hk_str(root->kind), &obj, &body);
        expect_equal(root, hk_buf_str(&body), &obj);
    }
}

static void samples_of_kubernetes_are_read(void **state)
{
    const char *dir = getenv("HEKLA_KUBE_SAMPLES");
    const struct api_root *root;
    size_t read = 0;

    if (!dir || !*dir) {
        skip();
    }
    for (size_t i = 0; (root = api_root(i)); i++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf name = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct json want;
        write_sample_name(root, &name);
        if (!read_sample(dir, name.data, "pb", &body) ||
            !read_sample(dir, name.data, "json", &text)) {
            continue;
        }
        assert_int_equal(json_parse(hk_buf_str(&text), 0, &a, &want, NULL), 0);
        expect_equal(root, hk_buf_str(&body), &want);
        expect_written(root, &want, hk_buf_str(&body));
        read++;
    }
    assert_true(read > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_survives_protobuf),
        cmocka_unit_test(empty_objects_survive_protobuf),
        cmocka_unit_test(samples_of_kubernetes_are_read),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
