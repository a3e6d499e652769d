// SPDX-License-Identifier: Apache-2.0
// Reads Status objects. The reasons of our own codes come from base/err.c, so that the server's
// answer for a code reads back as that code. The table here adds reasons that only other servers
// use.
#include "api/port_status.h"

static const struct {
    const char *reason;
    enum hk_code code;
} foreign[] = {
    {"BadRequest", HK_EINVAL},        {"Gone", HK_EGONE},
    {"Unauthorized", HK_EDENIED},     {"ServerTimeout", HK_EBUSY}, /* "please try again" */
    {"ServiceUnavailable", HK_EBUSY}, {"StorageReadError", HK_EIO},
    {"NotAcceptable", HK_EUNSUP},     {"UnsupportedMediaType", HK_EUNSUP},
};

static const struct {
    int http;
    enum hk_code code;
} by_http[] = {
    {400, HK_EINVAL}, {401, HK_EDENIED}, {406, HK_EUNSUP}, {408, HK_ETIMEOUT},
    {415, HK_EUNSUP}, {501, HK_EUNSUP},  {502, HK_EBUSY},  {503, HK_EBUSY},
};

enum hk_code port_status_code(struct hk_str reason, int http)
{
    for (int code = HK_EINVAL; reason.n > 0 && code < HK_NCODES; code++) {
        if (hk_str_is(reason, hk_code_reason(code))) {
            return (enum hk_code)code;
        }
    }
    for (size_t i = 0; i < HK_LEN(foreign); i++) {
        if (hk_str_is(reason, foreign[i].reason)) {
            return foreign[i].code;
        }
    }
    for (size_t i = 0; i < HK_LEN(by_http); i++) {
        if (by_http[i].http == http) {
            return by_http[i].code;
        }
    }
    if (http == hk_code_http(HK_ECONFLICT)) {
        return HK_ECONFLICT; /* "exists" has the same HTTP code */
    }
    for (int code = HK_EINVAL; code < HK_NCODES; code++) {
        if (hk_code_http(code) == http) {
            return (enum hk_code)code;
        }
    }
    return http >= 400 && http < 500 ? HK_EINVAL : HK_EIO;
}

static const char *port_status_copy_str(const struct json *obj, const char *key, struct hk_arena *a)
{
    const struct hk_str s = json_str_field(obj, key);

    return s.n > 0 ? hk_arena_str(a, s).s : NULL;
}

static void read_causes(const struct json *causes, struct hk_arena *a, struct port_status *ret)
{
    if (!json_is(causes, JSON_ARRAY) || causes->len == 0) {
        return;
    }
    struct port_cause *at = hk_arena_array(a, causes->len, sizeof(*at));
    for (uint32_t i = 0; i < causes->len; i++) {
        const struct json *cause = json_item(causes, i);
        at[i] = (struct port_cause){port_status_copy_str(cause, "reason", a),
                                    port_status_copy_str(cause, "field", a),
                                    port_status_copy_str(cause, "message", a)};
    }
    ret->causes = at;
    ret->ncauses = causes->len;
}

bool port_status_has_cause(const struct port_status *s, const char *reason)
{
    for (uint32_t i = 0; s && i < s->ncauses; i++) {
        if (s->causes[i].reason && strcmp(s->causes[i].reason, reason) == 0) {
            return true;
        }
    }
    return false;
}

bool port_status_namespace_ends(const struct port_status *s)
{
    return port_status_has_cause(s, "NamespaceTerminating");
}

void port_status_read(const struct json *doc, struct hk_arena *a, struct port_status *ret)
{
    const struct json *details = json_get(doc, "details");
    const int64_t code = json_int(json_get(doc, "code"), 0);
    const int64_t wait_s = json_int(json_get(details, "retryAfterSeconds"), 0);

    *ret = (struct port_status){
        .code = code >= 100 && code < 600 ? (int)code : 0,
        .success = hk_str_is(json_str_field(doc, "status"), "Success"),
        .reason = port_status_copy_str(doc, "reason", a),
        .message = port_status_copy_str(doc, "message", a),
        .name = port_status_copy_str(details, "name", a),
        .group = port_status_copy_str(details, "group", a),
        .kind = port_status_copy_str(details, "kind", a),
        .uid = port_status_copy_str(details, "uid", a),
        .retry_after_s = wait_s > 0 && wait_s <= INT32_MAX ? (int32_t)wait_s : 0,
        .cont = port_status_copy_str(json_get(doc, "metadata"), "continue", a),
    };
    read_causes(json_get(details, "causes"), a, ret);
}
