// SPDX-License-Identifier: Apache-2.0
// Manifests all the way: bytes to documents, lists flattened, and each object offered to every
// decoder, whatever its kind says, since the wrong decoder must refuse as calmly as the right one.
#include "api/nodeshard.h"
#include "api/object.h"
#include "api/podgroup.h"
#include "api/policy.h"
#include "api/queue.h"
#include "api/storage.h"
#include "codec/yaml.h"
#include "fuzz/fuzz.h"

#define TRY(kind, type)                                                                            \
    do {                                                                                           \
        struct type x;                                                                             \
        struct hk_err why = {0};                                                                   \
        hk_assert(api_##kind##_decode(obj, a, &x, &why) == 0 ||                                    \
                  (why.code == HK_EINVAL && why.text[0] != '\0'));                                 \
    } while (0)

static int offer(void *ctx, const struct api_kind *kind, const struct json *obj, struct hk_err *err)
{
    struct hk_arena *a = ctx;
    HK_AUTO(api_object_unrefp) struct api_object *o = NULL;

    TRY(pod, api_pod);
    TRY(node, api_node);
    TRY(hypernode, api_hypernode);
    TRY(nodeshard, api_nodeshard);
    TRY(podgroup, api_podgroup);
    TRY(queue, api_queue);
    TRY(priority_class, api_priority_class);
    TRY(namespace, api_namespace);
    TRY(resource_quota, api_resource_quota);
    TRY(pdb, api_pdb);
    TRY(service, api_workload);
    TRY(workload, api_workload);
    TRY(pvc, api_pvc);
    TRY(pv, api_pv);
    TRY(storage_class, api_storage_class);
    TRY(csi_node, api_csi_node);
    TRY(csi_driver, api_csi_driver);
    TRY(csi_capacity, api_csi_capacity);
    TRY(volume_attachment, api_volume_attachment);
    const int rc = api_object_new(kind, obj, &o, err);
    hk_assert(rc == 0 || rc == -HK_EINVAL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct yaml_docs docs = {0};
    struct hk_err err = {0};

    if (yaml_parse((struct hk_str){(const char *)data, size}, 0, &a, &docs, &err) < 0) {
        return 0;
    }
    for (uint32_t i = 0; i < docs.len; i++) {
        const int rc = api_list_each(&docs.at[i], offer, &a, &err);
        hk_assert(rc == 0 || rc == -HK_EINVAL);
    }
    return 0;
}
