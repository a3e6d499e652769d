// SPDX-License-Identifier: Apache-2.0
// ConfigMaps and Secrets: keys, sizes, types, immutability, and stringData, which only writers see.
#include "admission/admission_priv.h"

enum { MAX_BYTES = 1024 * 1024 };

/* ---- shared ---- */

static void check_keys(struct admission_request *q, const char *field)
{
    const struct json *data = json_get(q->obj, field);
    const struct path p = path_field(NULL, field);

    for (uint32_t i = 0; i < edit_size(data); i++) {
        const struct path at = path_key(&p, data->members[i].key);
        name_check(q, &at, data->members[i].key, NAME_CONFIG_KEY);
    }
}

/* Length of the decoded base64 text. */
static size_t decoded_len(struct hk_str text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        n += text.s[i] != '=' && text.s[i] != '\n' && text.s[i] != '\r';
    }
    return n * 3 / 4;
}

static size_t total_bytes(const struct json *data, bool base64)
{
    size_t total = 0;

    for (uint32_t i = 0; i < edit_size(data); i++) {
        const struct hk_str v = json_str(&data->members[i].value, HK_STR(""));
        total += base64 ? decoded_len(v) : v.n;
    }
    return total;
}

static bool admit_config_field_equal(const struct json *a, const struct json *b, const char *field)
{
    const uint32_t n = edit_size(json_get(a, field));
    const uint32_t m = edit_size(json_get(b, field));

    return n == m && (n == 0 || json_equal(json_get(a, field), json_get(b, field)));
}

static void check_immutable(struct admission_request *q)
{
    static const char *const fields[] = {"data", "binaryData"};
    const struct path p = path_field(NULL, "immutable");

    if (q->verb != ADMIT_UPDATE || !json_bool(json_get(q->old, "immutable"), false)) {
        return;
    }
    if (!json_bool(json_get(q->obj, "immutable"), false)) {
        cause_forbidden(q, &p, "field is immutable when `immutable` is set");
    }
    for (size_t i = 0; i < HK_LEN(fields); i++) {
        const struct path at = path_field(NULL, fields[i]);
        if (!admit_config_field_equal(q->obj, q->old, fields[i])) {
            cause_forbidden(q, &at, "field is immutable when `immutable` is set");
        }
    }
}

/* ---- ConfigMaps ---- */

void admit_configmap_validate(struct admission_request *q)
{
    const struct json *data = json_get(q->obj, "data");
    const struct json *binary = json_get(q->obj, "binaryData");
    const struct path root = path_field(NULL, "");
    const struct path p = path_field(NULL, "data");

    check_keys(q, "data");
    check_keys(q, "binaryData");
    for (uint32_t i = 0; i < edit_size(data); i++) {
        const struct path at = path_key(&p, data->members[i].key);
        if (json_get_str(binary, data->members[i].key)) {
            cause_invalid_str(q, &at, data->members[i].key,
                              "duplicate of key present in binaryData");
        }
    }
    if (total_bytes(data, false) + total_bytes(binary, true) > MAX_BYTES) {
        cause_too_long(q, &root, MAX_BYTES);
    }
    check_immutable(q);
}

/* ---- Secrets ---- */

static struct hk_str base64(struct hk_str in, struct hk_arena *a)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t len = (in.n + 2) / 3 * 4;
    char *out = hk_arena_alloc(a, len + 1);
    char *at = out;

    for (size_t i = 0; i < in.n; i += 3) {
        const size_t left = in.n - i;
        const uint32_t b = (uint32_t)(unsigned char)in.s[i] << 16 |
                           (left > 1 ? (uint32_t)(unsigned char)in.s[i + 1] << 8 : 0) |
                           (left > 2 ? (uint32_t)(unsigned char)in.s[i + 2] : 0);
        *at++ = digits[b >> 18];
        *at++ = digits[b >> 12 & 63];
        *at++ = left > 1 ? digits[b >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[b & 63] : '=';
    }
    *at = '\0';
    return (struct hk_str){out, len};
}

int admit_secret_default(struct admission_request *q, struct hk_err *err)
{
    const struct json *strings = json_get(q->obj, "stringData");

    edit_default_str(q->obj, q->mem, "type", "Opaque");
    if (edit_size(strings) > 0) {
        struct json copy = *json_get(q->obj, "stringData");
        struct json *data = json_need(q->obj, q->mem, "data", JSON_OBJECT);
        for (uint32_t i = 0; i < copy.len; i++) {
            const struct hk_str v = json_str(&copy.members[i].value, HK_STR(""));
            json_put(data, q->mem, copy.members[i].key, json_make_str(base64(v, q->mem)));
        }
    }
    json_del(q->obj, "stringData");
    return 0;
}

/* Keys that a Secret of each type must have. */
static const struct {
    const char *type, *key;
} secret_needs[] = {
    {"kubernetes.io/tls", "tls.crt"},
    {"kubernetes.io/tls", "tls.key"},
    {"kubernetes.io/dockercfg", ".dockercfg"},
    {"kubernetes.io/dockerconfigjson", ".dockerconfigjson"},
    {"kubernetes.io/ssh-auth", "ssh-privatekey"},
};

static void check_type(struct admission_request *q)
{
    const struct hk_str type = edit_str(q->obj, "type");
    const struct path data = path_field(NULL, "data");

    for (size_t i = 0; i < HK_LEN(secret_needs); i++) {
        const struct path p = path_key(&data, hk_str(secret_needs[i].key));
        if (hk_str_is(type, secret_needs[i].type) &&
            !json_get(json_get(q->obj, "data"), secret_needs[i].key)) {
            cause_required(q, &p, NULL);
        }
    }
}

void admit_secret_validate(struct admission_request *q)
{
    const struct path data = path_field(NULL, "data");

    check_keys(q, "data");
    if (total_bytes(json_get(q->obj, "data"), true) > MAX_BYTES) {
        cause_too_long(q, &data, MAX_BYTES);
    }
    check_type(q);
    if (q->verb == ADMIT_UPDATE) {
        cause_check_immutable(q, NULL, q->obj, q->old, "type");
    }
    check_immutable(q);
}
