// SPDX-License-Identifier: Apache-2.0
// Pods whose volumes must be bound or provisioned first: the bind comes last, and fails with a
// message when the volumes do not arrive.
#include "scheduler/loop_rig_test.h"

#define SHORT_WAIT                                                                                 \
    "actions: \"enqueue, allocate, backfill\"\n"                                                   \
    "tiers:\n"                                                                                     \
    "- plugins:\n"                                                                                 \
    "  - name: gang\n"                                                                             \
    "  - name: predicates\n"                                                                       \
    "    arguments:\n"                                                                             \
    "      volumebinding.bindTimeoutSeconds: 5\n"

static void put_class(struct rig *r, const char *name, const char *provisioner)
{
    rig_put(r,
            "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'%s'},"
            "'provisioner':'%s','volumeBindingMode':'WaitForFirstConsumer'}",
            name, provisioner);
}

/* meta, spec: further members of the metadata and the spec, each beginning with a comma. */
static void put_claim(struct rig *r, const char *name, const char *class_, const char *meta,
                      const char *spec)
{
    rig_put(
        r,
        "{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'%s','namespace':'d',"
        "'uid':'c-%s'%s},'spec':{'storageClassName':'%s','accessModes':['ReadWriteOnce'],"
        "'resources':{'requests':{'storage':'1Gi'}}%s}}",
        name, name, meta, class_, spec);
}

static void put_volume(struct rig *r, const char *name, const char *spec)
{
    rig_put(r,
            "{'apiVersion':'v1','kind':'PersistentVolume','metadata':{'name':'%s','uid':'v-%s'},"
            "'spec':{'storageClassName':'local','accessModes':['ReadWriteOnce'],'capacity':{"
            "'storage':'1Gi'}%s},'status':{'phase':'Available'}}",
            name, name, spec);
}

static void put_pod(struct rig *r, const char *name, const char *group, const char *claim)
{
    HK_AUTO(hk_buf_fini) struct hk_buf more = {0};

    hk_buf_addf(&more, ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'%s'}}]",
                claim);
    rig_pod_of(r, name, group, "1", more.data);
}

static struct rig *rig_with_volumes_and(const char *conf, struct loop_opts o)
{
    struct rig *r = rig_new_with(conf, o);

    rig_small_cluster(r);
    put_class(r, "local", "kubernetes.io/no-provisioner");
    put_class(r, "cloud", "disks.example.com");
    rig_run(r);
    port_mem_log_clear(r->mem);
    return r;
}

static struct rig *rig_with_volumes(const char *conf)
{
    return rig_with_volumes_and(conf, (struct loop_opts){0});
}

/* A pod that waits for volume v to be bound to its claim. */
static struct rig *rig_waiting_for_bind(const char *conf)
{
    struct rig *r = rig_with_volumes(conf);

    put_volume(r, "v", "");
    put_claim(r, "c", "local", "", "");
    rig_group(r, "g", 1, "");
    put_pod(r, "a", "g", "c");
    rig_run(r);
    assert_string_equal(rig_field(r, API_PV, "v", "spec.claimRef.name"), "c");
    return r;
}

/* A pod that waits for a volume to be provisioned. */
static struct rig *rig_waiting_for_disk(const char *conf)
{
    struct rig *r = rig_with_volumes(conf);

    put_claim(r, "c", "cloud", "", "");
    rig_group(r, "g", 1, "");
    put_pod(r, "a", "g", "c");
    rig_run(r);
    return r;
}

/* Binds a claim, as the volume controller does. */
static void finish_claim(struct rig *r, const char *claim, const char *class_, const char *volume)
{
    HK_AUTO(hk_buf_fini) struct hk_buf spec = {0};

    hk_buf_addf(&spec, ",'volumeName':'%s'", volume);
    put_claim(r, claim, class_,
              ",'annotations':{'pv.kubernetes.io/bind-completed':'yes',"
              "'volume.kubernetes.io/selected-node':'n1'}",
              spec.data);
}

static const char *node_of(struct rig *r, const char *pod)
{
    return rig_field(r, API_POD, pod, "spec.nodeName");
}

static void a_bind_waits_for_its_volume(void **state)
{
    struct rig *r = rig_waiting_for_bind(RIG_PLAIN);

    assert_string_equal(rig_field(r, API_PV, "v", "spec.claimRef.namespace"), "d");
    assert_string_equal(rig_field(r, API_PV, "v", "spec.claimRef.uid"), "c-c");
    assert_string_equal(rig_field(r, API_PV, "v", "spec.claimRef.kind"), "PersistentVolumeClaim");
    const struct api_object *o = rig_peek(r, API_PV, "v");
    assert_true(hk_str_is(json_str(json_get(json_at(&o->root, "metadata.annotations"),
                                            "pv.kubernetes.io/bound-by-controller"),
                                   HK_STR("")),
                          "yes"));
    const uint64_t sessions = rig_sessions(r);
    port_mem_log_clear(r->mem);
    rig_run_for(r, 60 * SEC);
    assert_int_equal(port_mem_log(r->mem).n, 0); /* nothing is polled */
    assert_int_equal(rig_sessions(r), sessions);
    assert_string_equal(node_of(r, "a"), "-");

    finish_claim(r, "c", "local", "v");
    rig_run(r);
    assert_string_equal(node_of(r, "a"), "n1");
    assert_int_equal(loop_stats(r->l).backlog, 0);
    rig_free(r);
}

static void a_volume_is_made_where_the_pod_goes(void **state)
{
    struct rig *r = rig_waiting_for_disk(RIG_PLAIN);
    const struct api_object *o = rig_peek(r, API_PVC, "c");

    assert_true(hk_str_is(json_str(json_get(json_at(&o->root, "metadata.annotations"),
                                            "volume.kubernetes.io/selected-node"),
                                   HK_STR("")),
                          "n1"));
    assert_string_equal(node_of(r, "a"), "-");
    finish_claim(r, "c", "cloud", "disk");
    rig_run(r);
    assert_string_equal(node_of(r, "a"), "-"); /* the volume's event has not arrived */
    put_volume(r, "disk", "");
    rig_run(r);
    assert_string_equal(node_of(r, "a"), "n1");
    rig_free(r);
}

/* Written by another scheduler, or by this one before a restart. */
static void what_is_written_already_is_not_written_again(void **state)
{
    struct rig *r = rig_with_volumes(RIG_PLAIN);

    put_volume(r, "v",
               ",'claimRef':{'kind':'PersistentVolumeClaim','namespace':'d','name':'c','uid':'c-c'"
               "}");
    put_claim(r, "c", "local", "", "");
    put_claim(r, "d", "cloud", ",'annotations':{'volume.kubernetes.io/selected-node':'n1'}", "");
    rig_group(r, "g", 1, "");
    put_pod(r, "a", "g", "c");
    put_pod(r, "b", "g", "d");
    rig_run(r);
    assert_int_equal(rig_calls(r, "patch persistentvolume"), 0);
    finish_claim(r, "c", "local", "v");
    put_volume(r, "disk", "");
    finish_claim(r, "d", "cloud", "disk");
    rig_run(r);
    assert_string_equal(node_of(r, "a"), "n1");
    assert_string_equal(node_of(r, "b"), "n1");
    rig_free(r);
}

static void two_pods_share_a_claim(void **state)
{
    struct rig *r = rig_with_volumes(RIG_PLAIN);

    put_volume(r, "v", "");
    put_claim(r, "c", "local", "", "");
    rig_group(r, "g", 2, "");
    put_pod(r, "a", "g", "c");
    put_pod(r, "b", "g", "c");
    rig_run(r);
    finish_claim(r, "c", "local", "v");
    rig_run(r);
    assert_string_equal(node_of(r, "a"), "n1");
    assert_string_equal(node_of(r, "b"), "n1");
    assert_string_equal(rig_condition(r, API_POD, "b", "PodScheduled"), "-");
    rig_free(r);
}

#define FAILED(why)                                                                                \
    "False SchedulerError execute preBind for pod d/a failed: binding volumes: " why               \
    ", resync the task"

/* The message about missing volumes is sent a second later, when the pod may be gone. */
static void a_pod_may_go_after_its_volumes_are_given_up(void **state)
{
    for (int64_t ms = 4900; ms < 6200; ms += 50) {
        struct rig *r =
            rig_with_volumes_and(SHORT_WAIT, (struct loop_opts){.reason_wait_ns = 1000 * MSEC});

        put_claim(r, "c", "cloud", "", "");
        rig_group(r, "g", 1, "");
        put_pod(r, "a", "g", "c");
        rig_run_for(r, ms * MSEC);
        rig_remove(r, API_POD, "a");
        rig_run_for(r, 3 * SEC);
        assert_int_equal(loop_stats(r->l).backlog, 0);
        rig_check(r);
        rig_free(r);
    }
}

static void volumes_that_do_not_come_are_given_up(void **state)
{
    struct rig *r = rig_waiting_for_bind(SHORT_WAIT);

    rig_run_for(r, 4 * SEC);
    assert_string_equal(rig_condition(r, API_POD, "a", "PodScheduled"), "-");
    port_mem_log_clear(r->mem);
    rig_run_for(r, SEC);
    assert_string_equal(rig_condition(r, API_POD, "a", "PodScheduled"),
                        FAILED("context deadline exceeded"));
    assert_int_equal(rig_calls(r, "get pods d/a"), 1);
    rig_expect_event(r, "Warning a FailedScheduling: execute preBind for pod d/a failed: binding "
                        "volumes: context deadline exceeded, resync the task x1");
    finish_claim(r, "c", "local", "v"); /* the second try is waiting now */
    rig_run(r);
    assert_string_equal(node_of(r, "a"), "n1");
    rig_free(r);
}

static void failing_volumes_are_tried_less_and_less_often(void **state)
{
    struct rig *r = rig_with_volumes(RIG_PLAIN);

    for (uint32_t i = 1; i <= 200; i++) {
        port_mem_fail(r->mem, PORT_PATCH, i, HK_EDENIED);
    }
    put_claim(r, "c", "cloud", "", "");
    rig_group(r, "g", 1, "");
    put_pod(r, "a", "g", "c");
    rig_run_for(r, 2 * SEC);
    const uint32_t tries = rig_calls(r, "patch persistentvolumeclaims d/c");
    assert_in_range(tries, 8, 11);
    const task_id t = model_task_find(loop_model(r->l), HK_STR("d"), HK_STR("a"));
    assert_int_equal(model_task(loop_model(r->l), t)->status, TASK_PENDING);
    rig_free(r);
}

/* Events that make a bind fail, and their messages. */
static void reset_claim_ref(struct rig *r)
{
    put_volume(r, "v", "");
}

static void take_volume_away(struct rig *r)
{
    put_volume(r, "v",
               ",'claimRef':{'kind':'PersistentVolumeClaim','namespace':'d','name':'x','uid':'x'}");
}

static void remove_volume(struct rig *r)
{
    rig_remove(r, API_PV, "v");
}

static void remove_claim(struct rig *r)
{
    rig_remove(r, API_PVC, "c");
}

static void move_volume(struct rig *r)
{
    put_volume(r, "v",
               ",'claimRef':{'kind':'PersistentVolumeClaim','namespace':'d','name':'c','uid':'c-c'}"
               ",'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
               "'kubernetes.io/hostname','operator':'In','values':['n2']}]}]}}");
}

static void remove_node(struct rig *r)
{
    rig_remove(r, API_NODE, "n1");
}

static void deselect_node(struct rig *r)
{
    put_claim(r, "c", "cloud", "", "");
}

static void vain_waiting_ends_at_once(void **state)
{
    static const struct {
        struct rig *(*start)(const char *conf);
        void (*spoil)(struct rig *r);
        const char *want;
    } cases[] = {
        {rig_waiting_for_bind, reset_claim_ref, FAILED("ClaimRef got reset for pv \"v\"")},
        {rig_waiting_for_bind, take_volume_away, FAILED("pv \"v\" belongs to another claim")},
        {rig_waiting_for_bind, remove_volume,
         FAILED("failed to check binding: could not find v1.PersistentVolume \"v\"")},
        {rig_waiting_for_bind, remove_claim,
         FAILED("failed to check binding: could not find v1.PersistentVolumeClaim \"d/c\"")},
        {rig_waiting_for_bind, move_volume,
         FAILED("pv \"v\" node affinity doesn't match node \"n1\": no matching NodeSelectorTerms")},
        {rig_waiting_for_bind, remove_node, FAILED("node \"n1\" not found")},
        {rig_waiting_for_disk, deselect_node, FAILED("provisioning failed for PVC \"c\"")},
        {rig_waiting_for_disk, remove_claim,
         FAILED("failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "
                "\"d/c\"")},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig *r = cases[i].start(RIG_PLAIN);
        HK_AUTO(hk_buf_fini) struct hk_buf event = {0};
        cases[i].spoil(r);
        rig_run(r);
        /* The event keeps the message; the condition may already describe the next try. */
        hk_buf_addf(&event, "Warning a FailedScheduling: %s x1\n",
                    cases[i].want + strlen("False SchedulerError "));
        if (!strstr(rig_events(r), event.data)) {
            fail_msg("case %zu: expected '%s' among\n%s", i, event.data, r->events.data);
        }
        assert_string_equal(node_of(r, "a"), "-");
        rig_free(r);
    }
}

/* Another client wrote to the volume: the scheduler waits for that version, then writes again. */
static void a_conflict_waits_for_the_newer_version(void **state)
{
    struct rig *r = rig_with_volumes(RIG_PLAIN);

    put_volume(r, "v", "");
    put_claim(r, "c", "local", "", "");
    rig_group(r, "g", 1, "");
    put_pod(r, "a", "g", "c");
    port_mem_fail(r->mem, PORT_PATCH, 1, HK_ECONFLICT);
    rig_run_for(r, SEC);
    assert_int_equal(rig_calls(r, "patch persistentvolumes v"), 1);
    put_volume(r, "v", ",'persistentVolumeReclaimPolicy':'Retain'");
    rig_run(r);
    assert_int_equal(rig_calls(r, "patch persistentvolumes v"), 2);
    assert_string_equal(rig_field(r, API_PV, "v", "spec.claimRef.uid"), "c-c");
    assert_string_equal(rig_field(r, API_PV, "v", "spec.persistentVolumeReclaimPolicy"), "Retain");
    finish_claim(r, "c", "local", "v");
    rig_run(r);
    assert_string_equal(node_of(r, "a"), "n1");
    rig_free(r);
}

static void a_volume_is_free_again_when_its_pod_is_gone(void **state)
{
    struct rig *r = rig_waiting_for_bind(RIG_PLAIN);

    assert_int_equal(loop_stats(r->l).backlog, 1);
    rig_remove(r, API_POD, "a");
    rig_run(r);
    assert_int_equal(loop_stats(r->l).backlog, 0);
    finish_claim(r, "c", "local", "v");
    rig_run(r);
    assert_int_equal(rig_calls(r, "create pods/binding"), 0);
    rig_free(r);
}

static void nothing_is_left_behind_when_the_scheduler_ends(void **state)
{
    rig_free(rig_waiting_for_bind(RIG_PLAIN));
    rig_free(rig_waiting_for_disk(RIG_PLAIN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bind_waits_for_its_volume),
        cmocka_unit_test(a_volume_is_made_where_the_pod_goes),
        cmocka_unit_test(what_is_written_already_is_not_written_again),
        cmocka_unit_test(two_pods_share_a_claim),
        cmocka_unit_test(volumes_that_do_not_come_are_given_up),
        cmocka_unit_test(failing_volumes_are_tried_less_and_less_often),
        cmocka_unit_test(vain_waiting_ends_at_once),
        cmocka_unit_test(a_conflict_waits_for_the_newer_version),
        cmocka_unit_test(a_pod_may_go_after_its_volumes_are_given_up),
        cmocka_unit_test(a_volume_is_free_again_when_its_pod_is_gone),
        cmocka_unit_test(nothing_is_left_behind_when_the_scheduler_ends),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("scheduler/emit_volume", tests, NULL, NULL);
}
