// SPDX-License-Identifier: Apache-2.0
// Types of the variables "request" and "namespaceObject", as Kubernetes declares them: a reference
// to any other field of them does not compile.
#include "api/admit_expr_priv.h"

#define FIELD(name_, type_)                                                                        \
    {                                                                                              \
        .name = {name_, sizeof(name_) - 1}, .key = {name_, sizeof(name_) - 1}, .type = (type_)     \
    }
#define OBJECT(fields_)                                                                            \
    {                                                                                              \
        .kind = CEL_OBJECT, .fields = (fields_), .nfields = HK_LEN(fields_)                        \
    }

static const struct cel_type type_bool = {.kind = CEL_BOOL};
static const struct cel_type type_int = {.kind = CEL_INT};
static const struct cel_type type_text = {.kind = CEL_STRING};
static const struct cel_type type_time = {.kind = CEL_TIMESTAMP};
static const struct cel_type type_any = {.kind = CEL_DYN};
static const struct cel_type type_texts = {.kind = CEL_LIST, .elem = &type_text};
static const struct cel_type type_text_map = {.kind = CEL_MAP, .elem = &type_text};
static const struct cel_type type_texts_map = {.kind = CEL_MAP, .elem = &type_texts};

static const struct cel_field kind_fields[] = {
    FIELD("group", &type_text),
    FIELD("version", &type_text),
    FIELD("kind", &type_text),
};
static const struct cel_type type_kind = OBJECT(kind_fields);

static const struct cel_field resource_fields[] = {
    FIELD("group", &type_text),
    FIELD("version", &type_text),
    FIELD("resource", &type_text),
};
static const struct cel_type type_resource = OBJECT(resource_fields);

static const struct cel_field user_fields[] = {
    FIELD("username", &type_text),
    FIELD("uid", &type_text),
    FIELD("groups", &type_texts),
    FIELD("extra", &type_texts_map),
};
static const struct cel_type type_user = OBJECT(user_fields);

static const struct cel_field request_fields[] = {
    FIELD("kind", &type_kind),
    FIELD("resource", &type_resource),
    FIELD("subResource", &type_text),
    FIELD("requestKind", &type_kind),
    FIELD("requestResource", &type_resource),
    FIELD("requestSubResource", &type_text),
    FIELD("name", &type_text),
    FIELD("namespace", &type_text), /* Kubernetes' escaped name is below */
    {.name = {"__namespace__", 13}, .key = {"namespace", 9}, .type = &type_text},
    FIELD("operation", &type_text),
    FIELD("userInfo", &type_user),
    FIELD("dryRun", &type_bool),
    FIELD("options", &type_any),
};
static const struct cel_type type_request = OBJECT(request_fields);

static const struct cel_field condition_fields[] = {
    FIELD("status", &type_text),
    FIELD("type", &type_text),
    FIELD("lastTransitionTime", &type_time),
    FIELD("message", &type_text),
    FIELD("reason", &type_text),
};
static const struct cel_type type_condition = OBJECT(condition_fields);
static const struct cel_type type_conditions = {.kind = CEL_LIST, .elem = &type_condition};

static const struct cel_field spec_fields[] = {
    FIELD("finalizers", &type_texts),
};
static const struct cel_type type_spec = OBJECT(spec_fields);

static const struct cel_field status_fields[] = {
    FIELD("conditions", &type_conditions),
    FIELD("phase", &type_text),
};
static const struct cel_type type_status = OBJECT(status_fields);

static const struct cel_field meta_fields[] = {
    FIELD("name", &type_text),
    FIELD("generateName", &type_text),
    FIELD("namespace", &type_text),
    FIELD("labels", &type_text_map),
    FIELD("annotations", &type_text_map),
    {.name = {"UID", 3}, .key = {"uid", 3}, .type = &type_text},
    FIELD("creationTimestamp", &type_time),
    FIELD("deletionGracePeriodSeconds", &type_int),
    FIELD("deletionTimestamp", &type_time),
    FIELD("generation", &type_int),
    FIELD("resourceVersion", &type_text),
    FIELD("finalizers", &type_texts),
};
static const struct cel_type type_meta = OBJECT(meta_fields);

static const struct cel_field namespace_fields[] = {
    FIELD("metadata", &type_meta),
    FIELD("spec", &type_spec),
    FIELD("status", &type_status),
};
static const struct cel_type type_namespace = OBJECT(namespace_fields);

const struct cel_type *admit_type_request(void)
{
    return &type_request;
}

const struct cel_type *admit_type_namespace(void)
{
    return &type_namespace;
}
