// SPDX-License-Identifier: Apache-2.0
// Claims, volumes, classes and CSI objects: the input of volume binding, zones and attach limits.
#pragma once

#include "api/selector.h"

enum api_volume_mode { API_VOLUME_FILESYSTEM, API_VOLUME_BLOCK };

enum api_claim_phase { API_CLAIM_PENDING, API_CLAIM_BOUND, API_CLAIM_LOST };

struct api_pvc {
    const struct json *raw;
    struct api_meta meta;
    struct hk_str volume_name;
    struct hk_str class_name;
    bool has_class; /* storageClassName set, even to "" */
    struct hk_str attributes_class;
    enum api_volume_mode mode;
    struct api_strs access_modes;
    struct api_resources requests;
    struct api_selector selector; /* absent accepts any volume */
    enum api_claim_phase phase;
};

enum api_pv_phase {
    API_PV_PENDING,
    API_PV_AVAILABLE,
    API_PV_BOUND,
    API_PV_RELEASED,
    API_PV_FAILED,
};

struct api_claim_ref {
    bool present;
    struct hk_str ns, name, uid;
};

struct api_pv {
    const struct json *raw;
    struct api_meta meta;
    struct api_resources capacity;
    struct api_strs access_modes;
    struct hk_str class_name, attributes_class;
    enum api_volume_mode mode;
    struct api_claim_ref claim;
    struct api_node_selector node_affinity;
    struct hk_str csi_driver, csi_handle; /* "" when not a CSI volume */
    enum api_pv_phase phase;
};

enum api_binding_mode {
    API_BINDING_UNSET,
    API_BINDING_IMMEDIATE,
    API_BINDING_WAIT_FOR_FIRST_CONSUMER,
};

struct api_storage_class {
    const struct json *raw;
    struct api_meta meta;
    struct hk_str provisioner;
    enum api_binding_mode mode;
    API_LIST(struct api_selector) topologies; /* any must match; an empty one matches nothing */
};

struct api_csi_node_driver {
    struct hk_str name, node_id;
    bool has_count;
    int32_t count; /* volumes that can be attached */
    struct api_strs topology_keys;
};

struct api_csi_node {
    const struct json *raw;
    struct api_meta meta;
    API_LIST(struct api_csi_node_driver) drivers;
};

struct api_csi_driver {
    const struct json *raw;
    struct api_meta meta;
    bool storage_capacity;
    bool attach_required; /* true when unset */
};

struct api_csi_capacity {
    const struct json *raw;
    struct api_meta meta;
    struct hk_str class_name;
    struct api_selector node_topology; /* absent: no node */
    bool has_capacity, has_max_size;
    struct quantity capacity, max_size;
};

struct api_volume_attachment {
    const struct json *raw;
    struct api_meta meta;
    struct hk_str attacher, node_name, pv_name;
    bool attached;
};

int api_pvc_decode(const struct json *doc, struct hk_arena *a, struct api_pvc *ret,
                   struct hk_err *err) HK_CHECKED;
int api_pv_decode(const struct json *doc, struct hk_arena *a, struct api_pv *ret,
                  struct hk_err *err) HK_CHECKED;
int api_storage_class_decode(const struct json *doc, struct hk_arena *a,
                             struct api_storage_class *ret, struct hk_err *err) HK_CHECKED;
int api_csi_node_decode(const struct json *doc, struct hk_arena *a, struct api_csi_node *ret,
                        struct hk_err *err) HK_CHECKED;
int api_csi_driver_decode(const struct json *doc, struct hk_arena *a, struct api_csi_driver *ret,
                          struct hk_err *err) HK_CHECKED;
int api_csi_capacity_decode(const struct json *doc, struct hk_arena *a,
                            struct api_csi_capacity *ret, struct hk_err *err) HK_CHECKED;
int api_volume_attachment_decode(const struct json *doc, struct hk_arena *a,
                                 struct api_volume_attachment *ret, struct hk_err *err) HK_CHECKED;
