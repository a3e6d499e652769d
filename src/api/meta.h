// SPDX-License-Identifier: Apache-2.0
// Shared by all decoded kinds: names, labels, owners, conditions, resource lists. Strings borrow
// from the JSON tree they were decoded from; arrays live in the decoder's arena. Both must outlive
// the decoded struct. Decoders fill plain structs and keep the tree as `raw`, so that unused fields
// survive: to encode, edit a copy of that tree with json_put.
//
// Every decoder fails with HK_EINVAL and a message of the form
// "line 12: spec.containers[0].resources.requests.cpu: negative quantity '-1'" (no line for trees
// built by hand), and then leaves *ret untouched. Unknown fields are ignored and null is absent.
#pragma once

#include "codec/json.h"
#include "codec/quantity.h"

/* A decoded array; zeroed means empty. */
#define API_LIST(type)                                                                             \
    struct {                                                                                       \
        type *at;                                                                                  \
        uint32_t len;                                                                              \
    }

struct api_strs {
    struct hk_str *at;
    uint32_t len;
};

struct api_kv {
    struct hk_str key, value;
};

/* String map sorted by key in byte order: labels, annotations, node selectors. */
struct api_map {
    struct api_kv *at;
    uint32_t len;
};

/* The value, or NULL: api_map_get(&pod.meta.annotations, HK_STR(API_ANN_GROUP_NAME)). */
const struct hk_str *api_map_get(const struct api_map *m, struct hk_str key);

struct api_resource {
    struct hk_str name;
    struct quantity q;
};

/* ResourceList sorted by name in byte order. */
struct api_resources {
    struct api_resource *at;
    uint32_t len;
    bool present; /* the field was present, even as {} */
};

/* The amount, or NULL. */
const struct quantity *api_resources_get(const struct api_resources *r, struct hk_str name);

struct api_owner {
    struct hk_str api_version, kind, name, uid;
    bool controller;
};

struct api_condition {
    struct hk_str type, status, reason, message;
    struct hk_str transition_id; /* PodGroups only */
    int64_t last_transition_ns;  /* 0 when unset */
};

struct api_conditions {
    struct api_condition *at;
    uint32_t len;
};

/* The first condition of that type, or NULL. */
const struct api_condition *api_condition_get(const struct api_conditions *c, struct hk_str type);

struct api_meta {
    struct hk_str ns, name, uid, generate_name, resource_version;
    int64_t creation_ns; /* 0 when unset */
    int64_t deletion_ns; /* 0 when not being deleted */
    struct api_map labels, annotations;
    API_LIST(struct api_owner) owners;
    uint32_t line; /* line of the object in its text; 0 when built by code */
};

/* The owner with controller=true, or NULL. */
const struct api_owner *api_meta_controller(const struct api_meta *m);

/* Decodes only doc.metadata, for code that handles all kinds alike. */
int api_meta_decode(const struct json *doc, struct hk_arena *a, struct api_meta *ret,
                    struct hk_err *err) HK_CHECKED;
