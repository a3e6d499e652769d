// SPDX-License-Identifier: Apache-2.0
// Request bodies: JSON, YAML or protobuf, all as one tree.
#include "apiserver/server_priv.h"

#include "api/proto.h"
#include "codec/yaml.h"

#include <strings.h>

#define BODY_TYPES "application/json, application/yaml, application/vnd.kubernetes.protobuf"

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
    return refuse(x, 415, "UnsupportedMediaType",
                  "the body of the request was in an unknown format - accepted media types "
                  "include: %s",
                  accepted);
}

/* ---- bodies ---- */

static int refuse_body(struct exchange *x, const char *must_be, const struct hk_err *err)
{
    return refuse(x, 400, "BadRequest",
                  "the object provided is unrecognized (must be of type %s): %s", must_be,
                  err->text);
}

static int decode_json(struct exchange *x, const char *must_be, struct json *ret)
{
    struct hk_err err = {0};

    if (json_parse(x->http->body, 0, &x->mem, ret, &err) < 0) {
        return refuse_body(x, must_be, &err);
    }
    struct json again;
    if (x->req.validate == PORT_VALIDATE_STRICT &&
        json_parse(x->http->body, JSON_DUP_REJECT, &x->mem, &again, &err) < 0) {
        return refuse(x, 400, "BadRequest", "%s cannot be handled: strict decoding error: %s",
                      must_be, err.text);
    }
    return 0;
}

int body_decode_yaml(struct exchange *x, const char *must_be, struct json *ret)
{
    const unsigned flags = x->req.validate == PORT_VALIDATE_STRICT ? YAML_DUP_REJECT : 0;
    struct yaml_docs docs = {0};
    struct hk_err err = {0};

    if (yaml_parse(x->http->body, flags, &x->mem, &docs, &err) < 0) {
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
    const int rc = api_proto_decode(x->http->body, &x->mem, ret, &err);

    if (rc == -HK_EUNSUP) {
        return body_refuse_type(x, "application/json, application/yaml");
    }
    return rc < 0 ? refuse_body(x, must_be, &err) : 0;
}

int body_decode(struct exchange *x, const char *must_be, struct json *ret)
{
    const struct hk_str type = body_type(x);

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
