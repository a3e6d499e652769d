// SPDX-License-Identifier: Apache-2.0
// Writes protobuf objects by the table of types. A message is written at the end of the buffer, and its
// length inserted in front of it.
#include "api/proto_write.h"

#include "codec/base64.h"
#include "codec/timefmt.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, VARINT_MAX = 10, NANO = 1000000000 };

static const struct json nothing = {.type = JSON_NULL};

/* ---- the types outside the table ---- */

#define STRING_FIELD(number, name)                                                                 \
    {                                                                                              \
        number, 0, API_STRING, name, NULL, NULL                                                    \
    }

static const struct api_field cause_fields[] = {
    STRING_FIELD(1, "reason"), STRING_FIELD(2, "message"), STRING_FIELD(3, "field")};
static const struct api_type cause_type = {
    .name = "StatusCause", .fields = cause_fields, .nfields = HK_LEN(cause_fields)};
static const struct api_field details_fields[] = {
    STRING_FIELD(1, "name"),
    STRING_FIELD(2, "group"),
    STRING_FIELD(3, "kind"),
    {4, API_LIST, API_MESSAGE, "causes", &cause_type, NULL},
    {5, 0, API_INT, "retryAfterSeconds", NULL, NULL},
    STRING_FIELD(6, "uid"),
};
static const struct api_type details_type = {
    .name = "StatusDetails", .fields = details_fields, .nfields = HK_LEN(details_fields)};
static const struct api_field list_meta_fields[] = {
    STRING_FIELD(1, "selfLink"),
    STRING_FIELD(2, "resourceVersion"),
    STRING_FIELD(3, "continue"),
    {4, API_PTR, API_INT, "remainingItemCount", NULL, NULL},
};
static const struct api_type list_meta_type = {
    .name = "ListMeta", .fields = list_meta_fields, .nfields = HK_LEN(list_meta_fields)};
static const struct api_field status_fields[] = {
    {1, 0, API_MESSAGE, "metadata", &list_meta_type, NULL},
    STRING_FIELD(2, "status"),
    STRING_FIELD(3, "message"),
    STRING_FIELD(4, "reason"),
    {5, API_PTR, API_MESSAGE, "details", &details_type, NULL},
    {6, 0, API_INT, "code", NULL, NULL},
};
const struct api_type api_type_status = {
    .name = "Status", .fields = status_fields, .nfields = HK_LEN(status_fields)};

/* ---- bytes ---- */

static size_t put_varint(uint64_t v, unsigned char out[VARINT_MAX])
{
    size_t n = 0;

    do {
        out[n++] = (unsigned char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v > 0);
    return n;
}

static void write_varint(uint64_t v, struct hk_buf *out)
{
    unsigned char bytes[VARINT_MAX];

    hk_buf_add(out, bytes, put_varint(v, bytes));
}

static void write_tag(uint32_t number, unsigned wire, struct hk_buf *out)
{
    write_varint((uint64_t)number << 3 | wire, out);
}

static void write_int(uint32_t number, int64_t v, struct hk_buf *out)
{
    write_tag(number, WIRE_VARINT, out);
    write_varint((uint64_t)v, out);
}

static void write_bytes(uint32_t number, struct hk_str s, struct hk_buf *out)
{
    write_tag(number, WIRE_BYTES, out);
    write_varint(s.n, out);
    hk_buf_addstr(out, s);
}

/* Begins a message; write_end inserts its length. */
static size_t write_begin(uint32_t number, struct hk_buf *out)
{
    write_tag(number, WIRE_BYTES, out);
    return out->len;
}

static void write_end(size_t from, struct hk_buf *out)
{
    unsigned char length[VARINT_MAX];
    const size_t bytes = out->len - from;
    const size_t n = put_varint(bytes, length);

    hk_buf_add(out, length, n); /* makes room */
    memmove(out->data + from + n, out->data + from, bytes);
    memcpy(out->data + from, length, n);
}

/* ---- values ---- */

static void write_time(const struct api_field *f, uint32_t number, const struct json *v,
                       struct hk_buf *out)
{
    const size_t from = write_begin(number, out);
    int64_t ns;

    if (json_is(v, JSON_STRING) && time_parse(json_str(v, HK_STR("")), &ns, NULL) == 0) {
        const int64_t rest = (ns % NANO + NANO) % NANO;
        write_int(1, (ns - rest) / NANO, out);
        write_int(2, f->form == API_MICRO_TIME ? rest / 1000 * 1000 : 0, out);
    }
    write_end(from, out);
}

static void write_int_or_string(uint32_t number, const struct json *v, struct hk_buf *out)
{
    const size_t from = write_begin(number, out);

    write_int(1, json_is(v, JSON_STRING), out);
    write_int(2, json_int(v, 0), out);
    write_bytes(3, json_str(v, HK_STR("")), out);
    write_end(from, out);
}

static void write_raw(uint32_t number, const struct json *v, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const size_t from = write_begin(number, out);

    if (!json_is(v, JSON_NULL)) {
        json_write(v, &text);
        write_bytes(1, hk_buf_str(&text), out);
    }
    write_end(from, out);
}

static void write_base64(uint32_t number, const struct json *v, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf plain = {0};

    if (json_is(v, JSON_STRING) && base64_read(json_str(v, HK_STR("")), &plain)) {
        write_bytes(number, hk_buf_str(&plain), out);
    }
}

/* Quantities may be numbers in JSON. */
static void write_quantity(uint32_t number, const struct json *v, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const size_t from = write_begin(number, out);
    const struct hk_str s = json_str(v, HK_STR(""));

    if (s.n == 0 && !json_is(v, JSON_NULL) && !json_is(v, JSON_STRING)) {
        json_write(v, &text);
    }
    write_bytes(1, s.n > 0 ? s : text.len > 0 ? hk_buf_str(&text) : HK_STR("0"), out);
    write_end(from, out);
}

static void write_strings(uint32_t number, const struct json *v, struct hk_buf *out)
{
    const size_t from = write_begin(number, out);

    for (uint32_t i = 0; i < json_len(v); i++) {
        write_bytes(1, json_str(&v->items[i], HK_STR("")), out);
    }
    write_end(from, out);
}

/* One value: a single one, an element of a list, or the value of a map. */
static void write_value(const struct api_field *f, uint32_t number, const struct json *v,
                        struct hk_buf *out)
{
    size_t from;

    switch ((enum api_form)f->form) {
    case API_INT:
        write_int(number, json_int(v, 0), out);
        return;
    case API_BOOL:
        write_int(number, json_bool(v, false), out);
        return;
    case API_STRING:
        write_bytes(number, json_str(v, HK_STR("")), out);
        return;
    case API_BYTES:
        write_base64(number, v, out);
        return;
    case API_QUANTITY:
        write_quantity(number, v, out);
        return;
    case API_INT_OR_STRING:
        write_int_or_string(number, v, out);
        return;
    case API_TIME:
    case API_MICRO_TIME:
        write_time(f, number, v, out);
        return;
    case API_RAW:
        write_raw(number, v, out);
        return;
    case API_STRINGS:
        write_strings(number, v, out);
        return;
    case API_MESSAGE:
        from = write_begin(number, out);
        api_proto_write(f->type, v, out);
        write_end(from, out);
        return;
    }
}

/* ---- fields ---- */

static int compare_members(const void *a, const void *b)
{
    const struct json_member *const *x = a;
    const struct json_member *const *y = b;

    return hk_str_cmp((*x)->key, (*y)->key);
}

/* Go sorts the keys. */
static void write_map(const struct api_field *f, const struct json *map, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const uint32_t n = json_is(map, JSON_OBJECT) ? map->len : 0;
    const struct json_member **sorted = hk_arena_array(&mem, n, sizeof(*sorted));

    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = &map->members[i];
    }
    if (n > 1) {
        qsort(sorted, n, sizeof(*sorted), compare_members);
    }
    for (uint32_t i = 0; i < n; i++) {
        const size_t from = write_begin(f->number, out);
        write_bytes(1, sorted[i]->key, out);
        write_value(f, 2, &sorted[i]->value, out);
        write_end(from, out);
    }
}

static void write_list(const struct api_field *f, const struct json *list, struct hk_buf *out)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        write_value(f, f->number, &list->items[i], out);
    }
}

static void write_field(const struct api_field *f, const struct json *obj, struct hk_buf *out)
{
    const struct json *v = f->flags & API_INLINE ? obj : json_get(obj, f->name);

    v = v ? v : &nothing;
    if (f->flags & API_LIST) {
        write_list(f, v, out);
    } else if (f->flags & API_MAP) {
        write_map(f, v, out);
    } else if (!(f->flags & API_PTR) || !json_is(v, JSON_NULL)) {
        write_value(f, f->number, v, out);
    }
}

void api_proto_write(const struct api_type *t, const struct json *obj, struct hk_buf *out)
{
    for (uint32_t i = 0; i < t->nfields; i++) {
        write_field(&t->fields[i], obj, out);
    }
}

/* ---- envelope ---- */

void api_proto_write_head(struct hk_str api_version, struct hk_str kind, size_t bytes,
                          struct hk_buf *out)
{
    hk_buf_add(out, "k8s", 4); /* with its NUL */
    const size_t meta = write_begin(1, out);
    write_bytes(1, api_version, out);
    write_bytes(2, kind, out);
    write_end(meta, out);
    write_tag(2, WIRE_BYTES, out);
    write_varint(bytes, out);
}

void api_proto_write_tail(struct hk_buf *out)
{
    write_bytes(3, HK_STR(""), out);
    write_bytes(4, HK_STR(""), out);
}

void api_proto_encode(const struct api_type *t, struct hk_str api_version, struct hk_str kind,
                      const struct json *obj, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf bytes = {0};

    api_proto_write(t, obj, &bytes);
    api_proto_write_head(api_version, kind, bytes.len, out);
    hk_buf_addstr(out, hk_buf_str(&bytes));
    api_proto_write_tail(out);
}

/* ---- lists and watches ---- */

void api_proto_write_list_meta(const struct json *meta, struct hk_buf *out)
{
    const size_t from = write_begin(1, out);

    api_proto_write(&list_meta_type, meta, out);
    write_end(from, out);
}

void api_proto_write_item_head(size_t bytes, struct hk_buf *out)
{
    write_tag(2, WIRE_BYTES, out);
    write_varint(bytes, out);
}

void api_proto_write_event(const char *type, struct hk_str object, struct hk_buf *out)
{
    const size_t start = out->len;
    size_t raw;

    hk_buf_add(out, "\0\0\0\0", 4);
    write_bytes(1, hk_str(type), out);
    raw = write_begin(2, out);
    write_bytes(1, object, out);
    write_end(raw, out);
    const uint32_t n = __builtin_bswap32((uint32_t)(out->len - start - 4));
    memcpy(out->data + start, &n, 4);
}
