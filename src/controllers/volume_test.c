// SPDX-License-Identifier: Apache-2.0
// Claims and volumes: which claim gets which volume, which volumes are created, and their end.
#include "controllers/work_rig_test.h"

#define CLASSES                                                                                    \
    "apiVersion: storage.k8s.io/v1\n"                                                              \
    "kind: StorageClass\n"                                                                         \
    "metadata: {name: standard}\n"                                                                 \
    "provisioner: hekla.io/local\n"                                                                \
    "reclaimPolicy: Delete\n"                                                                      \
    "volumeBindingMode: WaitForFirstConsumer\n"                                                    \
    "---\n"                                                                                        \
    "apiVersion: storage.k8s.io/v1\n"                                                              \
    "kind: StorageClass\n"                                                                         \
    "metadata: {name: now}\n"                                                                      \
    "provisioner: hekla.io/local\n"                                                                \
    "reclaimPolicy: Retain\n"                                                                      \
    "volumeBindingMode: Immediate\n"                                                               \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: Node\n"                                                                                 \
    "metadata:\n"                                                                                  \
    "  name: n1\n"                                                                                 \
    "  labels: {kubernetes.io/hostname: n1}\n"                                                     \
    "  annotations: {hekla.io/volumes-dir: /data/volumes}\n"                                       \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: Node\n"                                                                                 \
    "metadata: {name: bare, labels: {kubernetes.io/hostname: bare}}\n"

static void put_claim(struct rig *r, const char *name, const char *spec)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text,
                "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s, namespace: d}\n"
                "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, %s}\n"
                "status: {phase: Pending}\n",
                name, spec);
    rig_put(r, text.data);
    rig_settle(r);
}

static void put_volume(struct rig *r, const char *name, const char *size, const char *spec)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text,
                "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: %s}\n"
                "spec: {accessModes: [ReadWriteOnce], capacity: {storage: %s}, "
                "persistentVolumeReclaimPolicy: Retain, hostPath: {path: /v}, %s}\n"
                "status: {phase: Pending}\n",
                name, size, spec);
    rig_put(r, text.data);
    rig_settle(r);
}

static void begin(struct rig *r)
{
    work_rig(r);
    rig_put(r, CLASSES);
    rig_settle(r);
}

static void a_claim_that_waits_gets_a_directory_of_the_node_it_is_needed_on(void **state)
{
    struct rig r;

    begin(&r);
    put_claim(&r, "c", "storageClassName: standard");
    assert_int_equal(rig_count(&r, API_PV), 0);
    rig_expect(&r, API_PVC, "c", "status.phase", "\"Pending\"");

    rig_patch(&r, API_PVC, "c",
              "metadata: {annotations: {volume.kubernetes.io/selected-node: n1}}");
    rig_settle(&r);
    rig_expect(&r, API_PVC, "c", "spec.volumeName", "\"pvc-u-c\"");
    rig_expect(&r, API_PVC, "c", "status.phase", "\"Bound\"");
    rig_expect(&r, API_PVC, "c", "status.capacity", "{\"storage\":\"1Gi\"}");
    rig_expect(&r, API_PV, "pvc-u-c", "status.phase", "\"Bound\"");
    rig_expect(&r, API_PV, "pvc-u-c", "spec.local.path", "\"/data/volumes/pvc-u-c\"");
    rig_expect(&r, API_PV, "pvc-u-c", "spec.nodeAffinity.required.nodeSelectorTerms",
               "[{\"matchExpressions\":[{\"key\":\"kubernetes.io/hostname\",\"operator\":\"In\","
               "\"values\":[\"n1\"]}]}]");
    rig_expect(&r, API_PV, "pvc-u-c", "metadata.finalizers", "[\"hekla.io/volume-directory\"]");

    rig_remove(&r, API_PVC, "c");
    rig_settle(&r);
    assert_int_equal(rig_count(&r, API_PV), 0);
    rig_fini(&r);
}

static void a_node_without_room_for_volumes_is_not_chosen_twice(void **state)
{
    struct rig r;

    begin(&r);
    put_claim(&r, "c", "storageClassName: standard");
    rig_patch(&r, API_PVC, "c",
              "metadata: {annotations: {volume.kubernetes.io/selected-node: bare}}");
    rig_settle(&r);
    assert_int_equal(rig_count(&r, API_PV), 0);
    rig_expect(&r, API_PVC, "c", "metadata.annotations", "{}");
    rig_fini(&r);
}

static void a_retained_volume_stays_when_its_claim_is_deleted(void **state)
{
    struct rig r;

    begin(&r);
    put_claim(&r, "c", "storageClassName: now");
    rig_expect(&r, API_PVC, "c", "status.phase", "\"Bound\"");
    rig_remove(&r, API_PVC, "c");
    rig_settle(&r);
    rig_expect(&r, API_PV, "pvc-u-c", "status.phase", "\"Released\"");
    rig_expect(&r, API_PV, "pvc-u-c", "metadata.deletionTimestamp", "");
    rig_fini(&r);
}

static void of_the_volumes_there_are_the_smallest_that_suits_is_taken(void **state)
{
    struct rig r;

    begin(&r);
    put_volume(&r, "small", "500Mi", "storageClassName: ''");
    put_volume(&r, "large", "9Gi", "storageClassName: ''");
    put_volume(&r, "right", "2Gi", "storageClassName: ''");
    put_volume(&r, "other", "1Gi", "storageClassName: other");
    rig_expect(&r, API_PV, "right", "status.phase", "\"Available\"");
    put_claim(&r, "c", "storageClassName: ''");
    rig_expect(&r, API_PVC, "c", "spec.volumeName", "\"right\"");
    rig_expect(&r, API_PVC, "c", "status.phase", "\"Bound\"");
    rig_expect(&r, API_PV, "right", "spec.claimRef.uid", "\"u-c\"");
    rig_expect(&r, API_PV, "right", "status.phase", "\"Bound\"");
    rig_remove(&r, API_PVC, "c");
    rig_settle(&r);
    rig_expect(&r, API_PV, "right", "status.phase", "\"Released\"");
    put_claim(&r, "e", "storageClassName: ''"); /* a Released volume is not reused */
    rig_expect(&r, API_PVC, "e", "spec.volumeName", "\"large\"");
    rig_fini(&r);
}

static void a_claim_waits_for_the_volume_it_names(void **state)
{
    struct rig r;

    begin(&r);
    put_claim(&r, "c", "storageClassName: '', volumeName: mine");
    rig_expect(&r, API_PVC, "c", "status.phase", "\"Pending\"");
    put_volume(&r, "mine", "1Gi", "storageClassName: ''");
    rig_expect(&r, API_PVC, "c", "status.phase", "\"Bound\"");
    put_claim(&r, "late", "storageClassName: '', volumeName: mine");
    rig_expect(&r, API_PVC, "late", "status.phase", "\"Pending\"");
    rig_remove(&r, API_PV, "mine");
    rig_settle(&r);
    rig_expect(&r, API_PVC, "c", "status.phase", "\"Lost\"");
    rig_fini(&r);
}

static void a_volume_promised_by_the_scheduler_is_bound(void **state)
{
    struct rig r;

    begin(&r);
    put_claim(&r, "c", "storageClassName: standard");
    put_volume(&r, "v", "1Gi",
               "storageClassName: standard, claimRef: {namespace: d, name: c, uid: u-c}");
    rig_expect(&r, API_PVC, "c", "spec.volumeName", "\"v\"");
    rig_expect(&r, API_PVC, "c", "status.phase", "\"Bound\"");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_that_waits_gets_a_directory_of_the_node_it_is_needed_on),
        cmocka_unit_test(a_node_without_room_for_volumes_is_not_chosen_twice),
        cmocka_unit_test(a_retained_volume_stays_when_its_claim_is_deleted),
        cmocka_unit_test(of_the_volumes_there_are_the_smallest_that_suits_is_taken),
        cmocka_unit_test(a_claim_waits_for_the_volume_it_names),
        cmocka_unit_test(a_volume_promised_by_the_scheduler_is_bound),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
