// SPDX-License-Identifier: Apache-2.0
// Object metadata, and lookups in the sorted arrays that all kinds use.
#include "api/field_priv.h"

static const struct field owner_fields[] = {
    FIELD("apiVersion", field_str, struct api_owner, api_version),
    FIELD("kind", field_str, struct api_owner, kind),
    FIELD("name", field_str, struct api_owner, name),
    FIELD("uid", field_str, struct api_owner, uid),
    FIELD("controller", field_bool, struct api_owner, controller),
    {0},
};

static const struct field_record owner_record = {sizeof(struct api_owner), .fields = owner_fields};

static const struct field meta_fields[] = {
    FIELD("name", field_str, struct api_meta, name),
    FIELD("namespace", field_str, struct api_meta, ns),
    FIELD("uid", field_str, struct api_meta, uid),
    FIELD("generateName", field_str, struct api_meta, generate_name),
    FIELD("resourceVersion", field_str, struct api_meta, resource_version),
    FIELD("creationTimestamp", field_time, struct api_meta, creation_ns),
    FIELD("deletionTimestamp", field_time, struct api_meta, deletion_ns),
    FIELD("labels", field_map, struct api_meta, labels),
    FIELD("annotations", field_map, struct api_meta, annotations),
    FIELD("ownerReferences", field_list, struct api_meta, owners, .sub = &owner_record),
    {0},
};

const struct field_record field_meta_record = {sizeof(struct api_meta), .fields = meta_fields};

static const struct field doc_fields[] = {
    FIELD_IN("metadata", &field_meta_record),
    {0},
};

static const struct field_record doc_record = {sizeof(struct api_meta), .fields = doc_fields};

int api_meta_decode(const struct json *doc, struct hk_arena *a, struct api_meta *ret,
                    struct hk_err *err)
{
    struct api_meta meta = {.line = doc->line};
    return field_decode(doc, &doc_record, a, &meta, ret, err);
}

const struct hk_str *api_map_get(const struct api_map *m, struct hk_str key)
{
    if (m->len == 0) {
        return NULL;
    }
    const struct api_kv *kv = bsearch(&key, m->at, m->len, sizeof(*m->at), field_kv_cmp);
    return kv ? &kv->value : NULL;
}

const struct quantity *api_resources_get(const struct api_resources *r, struct hk_str name)
{
    if (r->len == 0) {
        return NULL;
    }
    const struct api_resource *res = bsearch(&name, r->at, r->len, sizeof(*r->at), field_kv_cmp);
    return res ? &res->q : NULL;
}

const struct api_condition *api_condition_get(const struct api_conditions *c, struct hk_str type)
{
    for (uint32_t i = 0; i < c->len; i++) {
        if (hk_str_eq(c->at[i].type, type)) {
            return &c->at[i];
        }
    }
    return NULL;
}

const struct api_owner *api_meta_controller(const struct api_meta *m)
{
    for (uint32_t i = 0; i < m->owners.len; i++) {
        if (m->owners.at[i].controller) {
            return &m->owners.at[i];
        }
    }
    return NULL;
}
