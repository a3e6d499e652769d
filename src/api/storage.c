// SPDX-License-Identifier: Apache-2.0
// Decodes the storage kinds.
#include "api/storage.h"

#include "api/selector_priv.h"

static const char *const mode_names[] = {"Filesystem", "Block", NULL};
static const char *const claim_phase_names[] = {"Pending", "Bound", "Lost", NULL};
static const char *const pv_phase_names[] = {"Pending",  "Available", "Bound",
                                             "Released", "Failed",    NULL};
static const char *const binding_names[] = {"", "Immediate", "WaitForFirstConsumer", NULL};

static const struct field pvc_resources_fields[] = {
    FIELD("requests", field_resources, struct api_pvc, requests),
    {0},
};

static const struct field_record pvc_resources_record = {.fields = pvc_resources_fields};

static const struct field pvc_spec_fields[] = {
    FIELD("volumeName", field_str, struct api_pvc, volume_name),
    FIELD("storageClassName", field_str, struct api_pvc, class_name),
    FIELD("storageClassName", field_present, struct api_pvc, has_class),
    FIELD("volumeAttributesClassName", field_str, struct api_pvc, attributes_class),
    FIELD("volumeMode", field_enum, struct api_pvc, mode, .sub = mode_names),
    FIELD("accessModes", field_strs, struct api_pvc, access_modes),
    FIELD_IN("resources", &pvc_resources_record),
    FIELD("selector", selector_field, struct api_pvc, selector),
    {0},
};

static const struct field_record pvc_spec_record = {.fields = pvc_spec_fields};

static const struct field pvc_status_fields[] = {
    FIELD("phase", field_enum_lax, struct api_pvc, phase, .sub = claim_phase_names),
    {0},
};

static const struct field_record pvc_status_record = {.fields = pvc_status_fields};

static const struct field pvc_fields[] = {
    FIELD_META(struct api_pvc),
    FIELD_IN("spec", &pvc_spec_record),
    FIELD_IN("status", &pvc_status_record),
    {0},
};

static const struct field_record pvc_record = {sizeof(struct api_pvc), .fields = pvc_fields};

static const struct field claim_ref_fields[] = {
    FIELD("namespace", field_str, struct api_claim_ref, ns),
    FIELD("name", field_str, struct api_claim_ref, name),
    FIELD("uid", field_str, struct api_claim_ref, uid),
    {0},
};

static const struct field_record claim_ref_record = {sizeof(struct api_claim_ref),
                                                     .fields = claim_ref_fields};

static const struct field pv_csi_fields[] = {
    FIELD("driver", field_str, struct api_pv, csi_driver),
    FIELD("volumeHandle", field_str, struct api_pv, csi_handle),
    {0},
};

static const struct field_record pv_csi_record = {.fields = pv_csi_fields};

static const struct field pv_affinity_fields[] = {
    FIELD("required", selector_field_node, struct api_pv, node_affinity),
    {0},
};

static const struct field_record pv_affinity_record = {.fields = pv_affinity_fields};

static const struct field pv_spec_fields[] = {
    FIELD("capacity", field_resources, struct api_pv, capacity),
    FIELD("accessModes", field_strs, struct api_pv, access_modes),
    FIELD("storageClassName", field_str, struct api_pv, class_name),
    FIELD("volumeAttributesClassName", field_str, struct api_pv, attributes_class),
    FIELD("volumeMode", field_enum, struct api_pv, mode, .sub = mode_names),
    FIELD("claimRef", field_object, struct api_pv, claim, .sub = &claim_ref_record),
    FIELD("claimRef", field_present, struct api_pv, claim.present),
    FIELD_IN("nodeAffinity", &pv_affinity_record),
    FIELD_IN("csi", &pv_csi_record),
    {0},
};

static const struct field_record pv_spec_record = {.fields = pv_spec_fields};

static const struct field pv_status_fields[] = {
    FIELD("phase", field_enum_lax, struct api_pv, phase, .sub = pv_phase_names),
    {0},
};

static const struct field_record pv_status_record = {.fields = pv_status_fields};

static const struct field pv_fields[] = {
    FIELD_META(struct api_pv),
    FIELD_IN("spec", &pv_spec_record),
    FIELD_IN("status", &pv_status_record),
    {0},
};

static const struct field_record pv_record = {sizeof(struct api_pv), .fields = pv_fields};

static const struct field storage_class_fields[] = {
    FIELD_META(struct api_storage_class),
    FIELD("provisioner", field_str, struct api_storage_class, provisioner),
    FIELD("volumeBindingMode", field_enum, struct api_storage_class, mode, .sub = binding_names),
    FIELD("allowedTopologies", field_list, struct api_storage_class, topologies,
          .sub = &selector_topology_record),
    {0},
};

static const struct field_record storage_class_record = {sizeof(struct api_storage_class),
                                                         .fields = storage_class_fields};

static const struct field driver_limit_fields[] = {
    FIELD_COUNT("count", struct api_csi_node_driver, count),
    FIELD("count", field_present, struct api_csi_node_driver, has_count),
    {0},
};

static const struct field_record driver_limit_record = {.fields = driver_limit_fields};

static const struct field driver_fields[] = {
    FIELD("name", field_str, struct api_csi_node_driver, name),
    FIELD("nodeID", field_str, struct api_csi_node_driver, node_id),
    FIELD_IN("allocatable", &driver_limit_record),
    FIELD("topologyKeys", field_strs, struct api_csi_node_driver, topology_keys),
    {0},
};

static const struct field_record driver_record = {sizeof(struct api_csi_node_driver),
                                                  .fields = driver_fields};

static const struct field csi_node_spec_fields[] = {
    FIELD("drivers", field_list, struct api_csi_node, drivers, .sub = &driver_record),
    {0},
};

static const struct field_record csi_node_spec_record = {.fields = csi_node_spec_fields};

static const struct field csi_node_fields[] = {
    FIELD_META(struct api_csi_node),
    FIELD_IN("spec", &csi_node_spec_record),
    {0},
};

static const struct field_record csi_node_record = {sizeof(struct api_csi_node),
                                                    .fields = csi_node_fields};

static const struct field csi_driver_spec_fields[] = {
    FIELD("storageCapacity", field_bool, struct api_csi_driver, storage_capacity),
    FIELD("attachRequired", field_bool, struct api_csi_driver, attach_required),
    {0},
};

static const struct field_record csi_driver_spec_record = {.fields = csi_driver_spec_fields};

static const struct field csi_driver_fields[] = {
    FIELD_META(struct api_csi_driver),
    FIELD_IN("spec", &csi_driver_spec_record),
    {0},
};

static const struct field_record csi_driver_record = {sizeof(struct api_csi_driver),
                                                      .fields = csi_driver_fields};

static const struct field csi_capacity_fields[] = {
    FIELD_META(struct api_csi_capacity),
    FIELD("storageClassName", field_str, struct api_csi_capacity, class_name),
    FIELD("nodeTopology", selector_field, struct api_csi_capacity, node_topology),
    FIELD("capacity", field_quantity, struct api_csi_capacity, capacity),
    FIELD("capacity", field_present, struct api_csi_capacity, has_capacity),
    FIELD("maximumVolumeSize", field_quantity, struct api_csi_capacity, max_size),
    FIELD("maximumVolumeSize", field_present, struct api_csi_capacity, has_max_size),
    {0},
};

static const struct field_record csi_capacity_record = {sizeof(struct api_csi_capacity),
                                                        .fields = csi_capacity_fields};

static const struct field attachment_source_fields[] = {
    FIELD("persistentVolumeName", field_str, struct api_volume_attachment, pv_name),
    {0},
};

static const struct field_record attachment_source_record = {.fields = attachment_source_fields};

static const struct field attachment_spec_fields[] = {
    FIELD("attacher", field_str, struct api_volume_attachment, attacher),
    FIELD("nodeName", field_str, struct api_volume_attachment, node_name),
    FIELD_IN("source", &attachment_source_record),
    {0},
};

static const struct field_record attachment_spec_record = {.fields = attachment_spec_fields};

static const struct field attachment_status_fields[] = {
    FIELD("attached", field_bool, struct api_volume_attachment, attached),
    {0},
};

static const struct field_record attachment_status_record = {.fields = attachment_status_fields};

static const struct field attachment_fields[] = {
    FIELD_META(struct api_volume_attachment),
    FIELD_IN("spec", &attachment_spec_record),
    FIELD_IN("status", &attachment_status_record),
    {0},
};

static const struct field_record attachment_record = {sizeof(struct api_volume_attachment),
                                                      .fields = attachment_fields};

int api_pvc_decode(const struct json *doc, struct hk_arena *a, struct api_pvc *ret,
                   struct hk_err *err)
{
    struct api_pvc pvc = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &pvc_record, a, &pvc, ret, err);
}

int api_pv_decode(const struct json *doc, struct hk_arena *a, struct api_pv *ret,
                  struct hk_err *err)
{
    struct api_pv pv = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &pv_record, a, &pv, ret, err);
}

int api_storage_class_decode(const struct json *doc, struct hk_arena *a,
                             struct api_storage_class *ret, struct hk_err *err)
{
    struct api_storage_class sc = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &storage_class_record, a, &sc, ret, err);
}

int api_csi_node_decode(const struct json *doc, struct hk_arena *a, struct api_csi_node *ret,
                        struct hk_err *err)
{
    struct api_csi_node node = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &csi_node_record, a, &node, ret, err);
}

int api_csi_driver_decode(const struct json *doc, struct hk_arena *a, struct api_csi_driver *ret,
                          struct hk_err *err)
{
    struct api_csi_driver driver = {.raw = doc, .meta.line = doc->line, .attach_required = true};
    return field_decode(doc, &csi_driver_record, a, &driver, ret, err);
}

int api_csi_capacity_decode(const struct json *doc, struct hk_arena *a,
                            struct api_csi_capacity *ret, struct hk_err *err)
{
    struct api_csi_capacity cap = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &csi_capacity_record, a, &cap, ret, err);
}

int api_volume_attachment_decode(const struct json *doc, struct hk_arena *a,
                                 struct api_volume_attachment *ret, struct hk_err *err)
{
    struct api_volume_attachment va = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &attachment_record, a, &va, ret, err);
}
