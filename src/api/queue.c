// SPDX-License-Identifier: Apache-2.0
// Decodes Queues, and describes the two that every cluster has.
#include "api/queue.h"

#include "api/field_priv.h"
#include "api/names.h"
#include "api/registry.h"

static const char *const dequeue_names[] = {"traverse", "fifo", NULL};
static const char *const state_names[] = {"", "Open", "Closed", "Closing", "Unknown", NULL};

const char *api_queue_state_name(enum api_queue_state state)
{
    return state_names[state];
}

static const struct field cluster_fields[] = {
    FIELD("name", field_str, struct api_extend_cluster, name),
    FIELD_COUNT("weight", struct api_extend_cluster, weight),
    FIELD("capacity", field_resources, struct api_extend_cluster, capacity),
    {0},
};

static const struct field_record cluster_record = {sizeof(struct api_extend_cluster),
                                                   .fields = cluster_fields};

static const struct field group_fields[] = {
    FIELD("requiredDuringSchedulingIgnoredDuringExecution", field_strs, struct api_group_affinity,
          required),
    FIELD("preferredDuringSchedulingIgnoredDuringExecution", field_strs, struct api_group_affinity,
          preferred),
    {0},
};

static const struct field_record group_record = {sizeof(struct api_group_affinity),
                                                 .fields = group_fields};

static const struct field affinity_fields[] = {
    FIELD("nodeGroupAffinity", field_object, struct api_queue, group_affinity,
          .sub = &group_record),
    FIELD("nodeGroupAntiAffinity", field_object, struct api_queue, group_anti_affinity,
          .sub = &group_record),
    {0},
};

static const struct field_record affinity_record = {.fields = affinity_fields};

static const struct field guarantee_fields[] = {
    FIELD("resource", field_resources, struct api_queue, guarantee),
    {0},
};

static const struct field_record guarantee_record = {.fields = guarantee_fields};

static const struct field spec_fields[] = {
    FIELD_I32("weight", struct api_queue, weight, 1, 65535),
    FIELD("capability", field_resources, struct api_queue, capability),
    FIELD_IN("guarantee", &guarantee_record),
    FIELD("deserved", field_resources, struct api_queue, deserved),
    FIELD("reclaimable", field_bool, struct api_queue, reclaimable),
    FIELD("parent", field_str, struct api_queue, parent),
    FIELD("type", field_str, struct api_queue, type),
    FIELD_COUNT("priority", struct api_queue, priority),
    FIELD("dequeueStrategy", field_enum, struct api_queue, dequeue, .sub = dequeue_names),
    FIELD_IN("affinity", &affinity_record),
    FIELD("extendClusters", field_list, struct api_queue, extend_clusters, .sub = &cluster_record),
    {0},
};

static const struct field_record spec_record = {.fields = spec_fields};

static const struct field status_fields[] = {
    FIELD("state", field_enum_lax, struct api_queue, state, .sub = state_names,
          .min = API_QUEUE_UNKNOWN),
    FIELD("allocated", field_resources, struct api_queue, allocated),
    {0},
};

static const struct field_record status_record = {.fields = status_fields};

static const struct field queue_fields[] = {
    FIELD_META(struct api_queue),
    FIELD_IN("spec", &spec_record),
    FIELD_IN("status", &status_record),
    {0},
};

static const struct field_record queue_record = {sizeof(struct api_queue), .fields = queue_fields};

int api_queue_decode(const struct json *doc, struct hk_arena *a, struct api_queue *ret,
                     struct hk_err *err)
{
    struct api_queue q = {.raw = doc, .meta.line = doc->line, .weight = 1, .reclaimable = true};
    return field_decode(doc, &queue_record, a, &q, ret, err);
}

const struct api_builtin_queue api_builtin_queues[API_NBUILTIN_QUEUES] = {
    [API_QUEUE_ROOT] = {API_QUEUE_NAME_ROOT, .weight = 1, .reclaimable = false},
    [API_QUEUE_DEFAULT] = {API_QUEUE_NAME_DEFAULT, .weight = 1, .reclaimable = true},
};

struct json api_builtin_queue_manifest(const struct api_builtin_queue *q, struct hk_str name,
                                       struct hk_arena *a)
{
    const struct api_kind *kind = api_kind(API_QUEUE);
    struct json doc = json_make_object();
    struct json *spec;

    json_set_cstr(&doc, a, "apiVersion", hk_arena_printf(a, "%s/%s", kind->group, kind->version));
    json_set_cstr(&doc, a, "kind", kind->kind);
    json_set_str(json_set_object(&doc, a, "metadata"), a, "name", name);
    spec = json_set_object(&doc, a, "spec");
    json_set_int(spec, a, "weight", q->weight);
    json_set_bool(spec, a, "reclaimable", q->reclaimable);
    return doc;
}
