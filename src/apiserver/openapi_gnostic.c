// SPDX-License-Identifier: Apache-2.0
// Swagger 2.0 as protobuf: openapi.v2.Document of gnostic, which older kubectl versions request.
// The tables map keys of the JSON form to fields. Keys not in the tables are omitted; keys that
// start with "x-" become extensions whose value is JSON text (read as YAML).
#include "apiserver/openapi_priv.h"

enum form {
    STRING,
    STRINGS,
    BOOLEAN,
    INTEGER,
    DOUBLE,
    ANY,
    ANYS,
    MESSAGE,
    NAMED, /* an object of messages: a message of {1 name, 2 value} */
    TYPE,  /* one string, in a message */
    PARAMETERS,
};

struct field {
    const char *key;
    uint8_t number;
    enum form form;
    const struct message *type;
    uint8_t wraps; /* number of nested messages around each value, which is their field 1 */
    uint8_t entry; /* of NAMED: the number of its pairs */
};

struct message {
    const struct field *fields;
    size_t nfields;
    uint8_t extensions; /* number of the field for "x-..." keys; 0: none */
};

static const struct message schema;

static const struct field schema_fields[] = {
    {"$ref", 1, STRING, NULL, 0, 0},
    {"format", 2, STRING, NULL, 0, 0},
    {"title", 3, STRING, NULL, 0, 0},
    {"description", 4, STRING, NULL, 0, 0},
    {"default", 5, ANY, NULL, 0, 0},
    {"multipleOf", 6, DOUBLE, NULL, 0, 0},
    {"maximum", 7, DOUBLE, NULL, 0, 0},
    {"exclusiveMaximum", 8, BOOLEAN, NULL, 0, 0},
    {"minimum", 9, DOUBLE, NULL, 0, 0},
    {"exclusiveMinimum", 10, BOOLEAN, NULL, 0, 0},
    {"maxLength", 11, INTEGER, NULL, 0, 0},
    {"minLength", 12, INTEGER, NULL, 0, 0},
    {"pattern", 13, STRING, NULL, 0, 0},
    {"maxItems", 14, INTEGER, NULL, 0, 0},
    {"minItems", 15, INTEGER, NULL, 0, 0},
    {"uniqueItems", 16, BOOLEAN, NULL, 0, 0},
    {"maxProperties", 17, INTEGER, NULL, 0, 0},
    {"minProperties", 18, INTEGER, NULL, 0, 0},
    {"required", 19, STRINGS, NULL, 0, 0},
    {"enum", 20, ANYS, NULL, 0, 0},
    {"additionalProperties", 21, MESSAGE, &schema, 1, 0},
    {"type", 22, TYPE, NULL, 0, 0},
    {"items", 23, MESSAGE, &schema, 1, 0},
    {"properties", 25, NAMED, &schema, 0, 1},
};
static const struct message schema = {schema_fields, HK_LEN(schema_fields), 31};

static const struct field response_fields[] = {
    {"description", 1, STRING, NULL, 0, 0},
    {"schema", 2, MESSAGE, &schema, 1, 0},
};
static const struct message response = {response_fields, HK_LEN(response_fields), 5};

static const struct field body_fields[] = {
    {"description", 1, STRING, NULL, 0, 0}, {"name", 2, STRING, NULL, 0, 0},
    {"in", 3, STRING, NULL, 0, 0},          {"required", 4, BOOLEAN, NULL, 0, 0},
    {"schema", 5, MESSAGE, &schema, 0, 0},
};
static const struct message body_param = {body_fields, HK_LEN(body_fields), 0};

static const struct field query_fields[] = {
    {"required", 1, BOOLEAN, NULL, 0, 0},   {"in", 2, STRING, NULL, 0, 0},
    {"description", 3, STRING, NULL, 0, 0}, {"name", 4, STRING, NULL, 0, 0},
    {"type", 6, STRING, NULL, 0, 0},
};
static const struct message query_param = {query_fields, HK_LEN(query_fields), 0};

static const struct field path_fields[] = {
    {"required", 1, BOOLEAN, NULL, 0, 0},   {"in", 2, STRING, NULL, 0, 0},
    {"description", 3, STRING, NULL, 0, 0}, {"name", 4, STRING, NULL, 0, 0},
    {"type", 5, STRING, NULL, 0, 0},
};
static const struct message path_param = {path_fields, HK_LEN(path_fields), 0};

static const struct field operation_fields[] = {
    {"description", 3, STRING, NULL, 0, 0},    {"operationId", 5, STRING, NULL, 0, 0},
    {"produces", 6, STRINGS, NULL, 0, 0},      {"consumes", 7, STRINGS, NULL, 0, 0},
    {"parameters", 8, PARAMETERS, NULL, 0, 0}, {"responses", 9, NAMED, &response, 1, 1},
};
static const struct message operation = {operation_fields, HK_LEN(operation_fields), 13};

static const struct field item_fields[] = {
    {"get", 2, MESSAGE, &operation, 0, 0},   {"put", 3, MESSAGE, &operation, 0, 0},
    {"post", 4, MESSAGE, &operation, 0, 0},  {"delete", 5, MESSAGE, &operation, 0, 0},
    {"patch", 8, MESSAGE, &operation, 0, 0}, {"parameters", 9, PARAMETERS, NULL, 0, 0},
};
static const struct message path_item = {item_fields, HK_LEN(item_fields), 10};

static const struct field info_fields[] = {
    {"title", 1, STRING, NULL, 0, 0},
    {"version", 2, STRING, NULL, 0, 0},
};
static const struct message info = {info_fields, HK_LEN(info_fields), 0};

static const struct field document_fields[] = {
    {"swagger", 1, STRING, NULL, 0, 0},
    {"info", 2, MESSAGE, &info, 0, 0},
    {"paths", 8, NAMED, &path_item, 0, 2},
    {"definitions", 9, NAMED, &schema, 0, 1},
};
static const struct message document = {document_fields, HK_LEN(document_fields), 0};

/* ---- the wire ---- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2 };

static void write_varint(uint64_t v, struct hk_buf *out)
{
    for (; v > 0x7f; v >>= 7) {
        hk_buf_addc(out, (char)(0x80 | (v & 0x7f)));
    }
    hk_buf_addc(out, (char)v);
}

static void openapi_gnostic_write_key(unsigned number, unsigned wire, struct hk_buf *out)
{
    write_varint(number << 3 | wire, out);
}

static void openapi_gnostic_write_bytes(unsigned number, struct hk_str bytes, struct hk_buf *out)
{
    openapi_gnostic_write_key(number, BYTES, out);
    write_varint(bytes.n, out);
    hk_buf_addstr(out, bytes);
}

static void openapi_gnostic_write_double(unsigned number, const struct json *v, struct hk_buf *out)
{
    const double d = v->type == JSON_INT      ? (double)v->i
                     : v->type == JSON_UINT   ? (double)v->u
                     : v->type == JSON_DOUBLE ? v->d
                                              : 0;
    uint64_t bits;

    memcpy(&bits, &d, sizeof(bits));
    openapi_gnostic_write_key(number, FIXED64, out);
    for (int i = 0; i < 8; i++) {
        hk_buf_addc(out, (char)(bits >> (8 * i) & 0xff));
    }
}

/* ---- values ---- */

static void write_message(const struct message *m, const struct json *v, struct hk_buf *out);

static void write_sub(unsigned number, const struct message *m, unsigned wraps,
                      const struct json *v, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf inner = {0};

    if (wraps > 0) {
        write_sub(1, m, wraps - 1, v, &inner);
    } else {
        write_message(m, v, &inner);
    }
    openapi_gnostic_write_bytes(number, hk_buf_str(&inner), out);
}

/* Any {2 yaml} */
static void write_any(unsigned number, const struct json *v, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf any = {0};

    json_write(v, &text);
    openapi_gnostic_write_bytes(2, hk_buf_str(&text), &any);
    openapi_gnostic_write_bytes(number, hk_buf_str(&any), out);
}

static void write_extension(unsigned number, const struct json_member *m, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf named = {0};

    openapi_gnostic_write_bytes(1, m->key, &named);
    write_any(2, &m->value, &named);
    openapi_gnostic_write_bytes(number, hk_buf_str(&named), out);
}

static void write_named(const struct field *f, const struct json *v, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf all = {0};

    for (uint32_t i = 0; json_is(v, JSON_OBJECT) && i < v->len; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf pair = {0};
        openapi_gnostic_write_bytes(1, v->members[i].key, &pair);
        write_sub(2, f->type, f->wraps, &v->members[i].value, &pair);
        openapi_gnostic_write_bytes(f->entry, hk_buf_str(&pair), &all);
    }
    openapi_gnostic_write_bytes(f->number, hk_buf_str(&all), out);
}

/* ParametersItem {1 Parameter {1 body, or 2 NonBodyParameter {3 query, 4 path}}} */
static void write_parameter(unsigned number, const struct json *v, struct hk_buf *out)
{
    const struct hk_str in = json_str_field(v, "in");
    HK_AUTO(hk_buf_fini) struct hk_buf param = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf other = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf item = {0};

    if (hk_str_is(in, "body")) {
        write_sub(1, &body_param, 0, v, &param);
    } else {
        const bool query = hk_str_is(in, "query");
        write_sub(query ? 3 : 4, query ? &query_param : &path_param, 0, v, &other);
        openapi_gnostic_write_bytes(2, hk_buf_str(&other), &param);
    }
    openapi_gnostic_write_bytes(1, hk_buf_str(&param), &item);
    openapi_gnostic_write_bytes(number, hk_buf_str(&item), out);
}

static void write_each(const struct field *f, const struct json *v, struct hk_buf *out)
{
    for (uint32_t i = 0; i < json_len(v); i++) {
        const struct json *item = &v->items[i];
        if (f->form == STRINGS) {
            openapi_gnostic_write_bytes(f->number, json_str(item, HK_STR("")), out);
        } else if (f->form == ANYS) {
            write_any(f->number, item, out);
        } else {
            write_parameter(f->number, item, out);
        }
    }
}

static void write_type(const struct field *f, const struct json *v, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf inner = {0};

    openapi_gnostic_write_bytes(1, json_str(v, HK_STR("")), &inner);
    openapi_gnostic_write_bytes(f->number, hk_buf_str(&inner), out);
}

static void write_field(const struct field *f, const struct json *v, struct hk_buf *out)
{
    switch (f->form) {
    case STRING:
        openapi_gnostic_write_bytes(f->number, json_str(v, HK_STR("")), out);
        break;
    case BOOLEAN:
        openapi_gnostic_write_key(f->number, VARINT, out);
        write_varint(json_bool(v, false), out);
        break;
    case INTEGER:
        openapi_gnostic_write_key(f->number, VARINT, out);
        write_varint((uint64_t)json_int(v, 0), out);
        break;
    case DOUBLE:
        openapi_gnostic_write_double(f->number, v, out);
        break;
    case ANY:
        write_any(f->number, v, out);
        break;
    case MESSAGE:
        write_sub(f->number, f->type, f->wraps, v, out);
        break;
    case NAMED:
        write_named(f, v, out);
        break;
    case TYPE:
        write_type(f, v, out);
        break;
    case STRINGS:
    case ANYS:
    case PARAMETERS:
        write_each(f, v, out);
        break;
    }
}

static const struct field *find_field(const struct message *m, struct hk_str key)
{
    for (size_t i = 0; i < m->nfields; i++) {
        if (hk_str_is(key, m->fields[i].key)) {
            return &m->fields[i];
        }
    }
    return NULL;
}

static void write_message(const struct message *m, const struct json *v, struct hk_buf *out)
{
    for (uint32_t i = 0; json_is(v, JSON_OBJECT) && i < v->len; i++) {
        const struct json_member *member = &v->members[i];
        const struct field *f = find_field(m, member->key);
        if (f) {
            write_field(f, &member->value, out);
        } else if (m->extensions > 0 && hk_str_starts(member->key, "x-")) {
            write_extension(m->extensions, member, out);
        }
    }
}

void openapi_gnostic_write(const struct json *swagger, struct hk_buf *out)
{
    write_message(&document, swagger, out);
}
