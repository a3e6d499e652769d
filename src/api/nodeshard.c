// SPDX-License-Identifier: Apache-2.0
// Decodes NodeShards.
#include "api/nodeshard.h"

#include "api/field_priv.h"

static const struct field spec_fields[] = {
    FIELD("nodesDesired", field_strs, struct api_nodeshard, nodes_desired),
    {0},
};

static const struct field_record spec_record = {.fields = spec_fields};

static const struct field status_fields[] = {
    FIELD("nodesInUse", field_strs, struct api_nodeshard, nodes_in_use),
    {0},
};

static const struct field_record status_record = {.fields = status_fields};

static const struct field nodeshard_fields[] = {
    FIELD_META(struct api_nodeshard),
    FIELD_IN("spec", &spec_record),
    FIELD_IN("status", &status_record),
    {0},
};

static const struct field_record nodeshard_record = {sizeof(struct api_nodeshard),
                                                     .fields = nodeshard_fields};

int api_nodeshard_decode(const struct json *doc, struct hk_arena *a, struct api_nodeshard *ret,
                         struct hk_err *err)
{
    struct api_nodeshard shard = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &nodeshard_record, a, &shard, ret, err);
}
