// SPDX-License-Identifier: Apache-2.0
// PodGroups for pods that have none (docs/reference/controllers.md section 5.3).
#include "base/log.h"
#include "controllers/fault_rig_test.h"
#include "controllers/table.h"

static const struct ctl_type *const types[] = {&ctl_podgroup};

static struct rig rig;

#define POD(name, meta, scheduler, more)                                                           \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: Pod\n"                                                                                  \
    "metadata: {name: " name ", namespace: d" meta "}\n"                                           \
    "spec:\n"                                                                                      \
    "  schedulerName: " scheduler "\n"                                                             \
    "  containers: [{name: main, image: i, resources: {requests: {nvidia.com/gpu: 1}}}]\n" more

#define OWNED(kind, name)                                                                          \
    ", ownerReferences: [{apiVersion: apps/v1, kind: " kind ", name: " name ", uid: u-" name       \
    ", controller: true}]"

#define SET(kind, name, notes, replicas)                                                           \
    "---\n"                                                                                        \
    "apiVersion: apps/v1\n"                                                                        \
    "kind: " kind "\n"                                                                             \
    "metadata: {name: " name ", namespace: d, annotations: {" notes "}}\n"                         \
    "spec: {replicas: " replicas "}\n"

static int setup(void **state)
{
    rig_init(&rig, types, HK_LEN(types));
    rig_manager(&rig);
    return 0;
}

static int teardown(void **state)
{
    rig_fini(&rig);
    return 0;
}

static void put(const char *yaml)
{
    rig_put(&rig, yaml);
    rig_settle(&rig);
}

#define group(name, path, want) rig_expect(&rig, API_PODGROUP, name, path, want)
#define pod(name, path, want) rig_expect(&rig, API_POD, name, path, want)
#define groups(want) assert_string_equal(rig_names(&rig, API_PODGROUP), want)
#define IN(name) "{\"scheduling.k8s.io/group-name\":\"" name "\"}"

static const struct ctl_metrics *metrics(void)
{
    return manager_metrics(rig.m);
}

static void a_bare_pod_gets_a_group_of_its_own_37(void **state)
{
    put(POD("p", "", "volcano", "  priorityClassName: high\n"));
    groups("podgroup-u-p");
    group("podgroup-u-p", "metadata.ownerReferences",
          "[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"u-p\",\"controller\":"
          "true,\"blockOwnerDeletion\":true}]");
    group("podgroup-u-p", "spec",
          "{\"minMember\":1,\"minResources\":{\"pods\":\"1\",\"count/pods\":\"1\",\"nvidia.com/"
          "gpu\":\"1\",\"requests.nvidia.com/gpu\":\"1\"},\"priorityClassName\":\"high\"}");
    group("podgroup-u-p", "status", "{\"phase\":\"Pending\"}");
    pod("p", "metadata.annotations", IN("podgroup-u-p"));
    assert_int_equal(metrics()->writes[PORT_CREATE], 1);
    assert_int_equal(metrics()->writes[PORT_PATCH], 1);
}

static void pods_of_a_set_share_a_group_37(void **state)
{
    put(SET("ReplicaSet", "r", "scheduling.volcano.sh/group-min-member: '2'", "2")
            POD("a", OWNED("ReplicaSet", "r"), "volcano", "")
                POD("b", OWNED("ReplicaSet", "r"), "volcano", ""));
    groups("podgroup-u-r");
    group("podgroup-u-r", "spec.minMember", "2");
    group("podgroup-u-r", "spec.minResources",
          "{\"pods\":\"2\",\"count/pods\":\"2\",\"nvidia.com/gpu\":\"2\",\"requests.nvidia.com/"
          "gpu\":\"2\"}");
    group("podgroup-u-r", "metadata.annotations", "");
    group("podgroup-u-r", "metadata.ownerReferences",
          "[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"r\",\"uid\":\"u-r\","
          "\"controller\":true}]");
    pod("a", "metadata.annotations", IN("podgroup-u-r"));
    pod("b", "metadata.annotations", IN("podgroup-u-r"));
    assert_int_equal(metrics()->writes[PORT_CREATE], 1);
    assert_int_equal(metrics()->writes[PORT_UPDATE], 0);
    assert_int_equal(metrics()->writes[PORT_PATCH], 2);
}

static void pods_of_others_are_left_alone_37(void **state)
{
    put(POD("p", "", "default-scheduler", "") POD("q", "", "other", "")
            POD("g", ", annotations: {scheduling.k8s.io/group-name: mine}", "volcano", ""));
    groups("");
    assert_int_equal(metrics()->writes[PORT_PATCH], 0);
}

static void the_schedulers_can_be_named(void **state)
{
    static const struct hk_str names[] = {{"one", 3}, {"two", 3}};

    rig.conf.scheduler_names = names;
    rig.conf.nscheduler_name = 2;
    rig_restart(&rig);
    put(POD("p", "", "two", "") POD("q", "", "volcano", ""));
    groups("podgroup-u-p");
}

static void default_scheduler_can_be_one_of_them(void **state)
{
    static const struct hk_str names[] = {{"volcano", 7}, {"default-scheduler", 17}};

    rig.conf.scheduler_names = names;
    rig.conf.nscheduler_name = 2;
    rig_restart(&rig);
    put(POD("p", "", "default-scheduler", "") POD("q", "", "other", ""));
    groups("podgroup-u-p");
}

#define JDB_SET                                                                                    \
    SET("ReplicaSet", "r",                                                                         \
        "volcano.sh/jdb-min-available: '2', volcano.sh/custom-key: x, other: y, "                  \
        "scheduling.volcano.sh/group-min-member: '3'",                                             \
        "3")
#define JDB_POD                                                                                    \
    POD("a", OWNED("ReplicaSet", "r") ", annotations: {volcano.sh/jdb-min-available: '1'}",        \
        "volcano", "")

static void annotations_of_the_owner_are_inherited_38(void **state)
{
    put(JDB_SET JDB_POD);
    group("podgroup-u-r", "metadata.annotations",
          "{\"volcano.sh/jdb-min-available\":\"1\",\"volcano.sh/custom-key\":\"x\"}");
    group("podgroup-u-r", "spec.minMember", "3");
}

static void unless_that_is_switched_off_38(void **state)
{
    rig.conf.no_inherit_owner_annotations = true;
    rig_restart(&rig);
    put(JDB_SET JDB_POD);
    group("podgroup-u-r", "metadata.annotations", "{\"volcano.sh/jdb-min-available\":\"1\"}");
    group("podgroup-u-r", "spec.minMember", "1");
}

static void annotations_of_a_pod_are_copied_to_its_group(void **state)
{
    static const struct {
        const char *yaml, *path, *want;
    } cases[] = {
        {POD("p", ", annotations: {scheduling.volcano.sh/queue-name: q1}", "volcano", ""),
         "spec.queue", "\"q1\""},
        {POD("p",
             ", annotations: {volcano.sh/preemptable: 'true', volcano.sh/cooldown-time: 10m, "
             "volcano.sh/revocable-zone: z, other: x}",
             "volcano", ""),
         "metadata.annotations",
         "{\"volcano.sh/preemptable\":\"true\",\"volcano.sh/cooldown-time\":\"10m\",\"volcano.sh/"
         "revocable-zone\":\"z\"}"},
        {POD("p", ", labels: {volcano.sh/preemptable: 'true', app: x}", "volcano", ""),
         "metadata.labels", "{\"volcano.sh/preemptable\":\"true\"}"},
        {POD("p", ", annotations: {volcano.sh/jdb-max-unavailable: '1'}", "volcano", ""),
         "metadata.annotations", "{\"volcano.sh/jdb-max-unavailable\":\"1\"}"},
        {POD("p",
             ", annotations: {volcano.sh/network-topology-mode: Soft, "
             "volcano.sh/network-topology-highest-tier: '2'}",
             "volcano", ""),
         "spec.networkTopology", "{\"mode\":\"soft\",\"highestTierAllowed\":2}"},
        {POD("p", ", annotations: {volcano.sh/network-topology-highest-tier: two}", "volcano", ""),
         "spec.networkTopology", "{\"mode\":\"hard\"}"},
        {POD("p", ", annotations: {volcano.sh/network-topology-mode: odd}", "volcano", ""),
         "spec.networkTopology", "{\"mode\":\"hard\"}"},
        {POD("p", "", "volcano", "status: {phase: Succeeded}\n"), "spec.minResources",
         "{\"count/pods\":\"1\"}"},
    };

    for (unsigned k = 0; k < HK_LEN(cases); k++) {
        teardown(state);
        setup(state);
        put(cases[k].yaml);
        group("podgroup-u-p", cases[k].path, cases[k].want);
    }
}

static void a_minimum_that_is_no_number_is_one(void **state)
{
    static const struct {
        const char *value, *want;
    } cases[] = {{"0", "0"}, {"4", "4"}, {"-1", "1"}, {"many", "1"}, {"99999999999", "1"}};
    char yaml[300];

    for (unsigned k = 0; k < HK_LEN(cases); k++) {
        teardown(state);
        setup(state);
        snprintf(yaml, sizeof(yaml),
                 SET("DaemonSet", "r", "scheduling.volcano.sh/group-min-member: '%s'", "1"),
                 cases[k].value);
        put(yaml);
        put(POD("a", OWNED("DaemonSet", "r"), "volcano", ""));
        group("podgroup-u-r", "spec.minMember", cases[k].want);
        if (strcmp(cases[k].want, "0") == 0) {
            group("podgroup-u-r", "spec.minResources", "{}");
        }
    }
}

static void the_group_waits_for_an_owner_not_seen_yet(void **state)
{
    put(POD("a", OWNED("ReplicaSet", "r"), "volcano", ""));
    groups("");
    put(SET("ReplicaSet", "r", "scheduling.volcano.sh/group-min-member: '2'", "2"));
    group("podgroup-u-r", "spec.minMember", "2");
    pod("a", "metadata.annotations", IN("podgroup-u-r"));
}

static void but_not_for_ever(void **state)
{
    put(POD("a", OWNED("ReplicaSet", "r"), "volcano", ""));
    rig_pass(&rig, 10);
    group("podgroup-u-r", "spec.minMember", "1");
    pod("a", "metadata.annotations", IN("podgroup-u-r"));
}

static void owners_of_other_kinds_say_nothing(void **state)
{
    put(POD("a",
            ", ownerReferences: [{apiVersion: x.io/v1, kind: StatefulSet, name: s, uid: u-s, "
            "controller: true}]",
            "volcano", ""));
    group("podgroup-u-s", "spec.minMember", "1");
}

/* ---- workloads that change ---- */

static void at_zero_replicas_the_group_is_deleted(void **state)
{
    put(SET("ReplicaSet", "r", "", "1") POD("a", OWNED("ReplicaSet", "r"), "volcano", ""));
    groups("podgroup-u-r");
    rig_patch(&rig, API_REPLICA_SET, "r", "spec: {replicas: 0}");
    rig_settle(&rig);
    groups("podgroup-u-r"); /* the pod is still alive */
    rig_patch(&rig, API_POD, "a", "metadata: {deletionTimestamp: '2026-01-02T10:00:01Z'}");
    rig_settle(&rig);
    groups("");
    assert_int_equal(metrics()->writes[PORT_DELETE], 1);
    rig_remove(&rig, API_POD, "a");
    rig_patch(&rig, API_REPLICA_SET, "r", "spec: {replicas: 1}");
    put(POD("b", OWNED("ReplicaSet", "r"), "volcano", ""));
    groups("podgroup-u-r");
    pod("b", "metadata.annotations", IN("podgroup-u-r"));
}

static void a_pod_that_vanishes_is_noticed(void **state)
{
    put(SET("StatefulSet", "s", "", "1") POD("s-0", OWNED("StatefulSet", "s"), "volcano", ""));
    rig_patch(&rig, API_STATEFUL_SET, "s", "spec: {replicas: 0}");
    rig_settle(&rig);
    groups("podgroup-u-s");
    rig_remove(&rig, API_POD, "s-0");
    rig_settle(&rig);
    groups("");
}

static void a_new_process_finishes_the_scaling_down(void **state)
{
    put(SET("ReplicaSet", "r", "", "1") POD("a", OWNED("ReplicaSet", "r"), "volcano", ""));
    manager_free(rig.m);
    rig_remove(&rig, API_POD, "a");
    rig_patch(&rig, API_REPLICA_SET, "r", "spec: {replicas: 0}");
    rig_manager(&rig);
    rig_settle(&rig);
    groups("");
}

static void the_gate_leaves_sets_alone(void **state)
{
    rig.conf.no_workload_support = true;
    rig_restart(&rig);
    put(SET("ReplicaSet", "r", "", "1") POD("a", OWNED("ReplicaSet", "r"), "volcano", ""));
    rig_patch(&rig, API_REPLICA_SET, "r", "spec: {replicas: 0}");
    rig_remove(&rig, API_POD, "a");
    rig_settle(&rig);
    groups("podgroup-u-r");
}

static void a_new_revision_corrects_the_group(void **state)
{
    put(SET("StatefulSet", "s", "", "2")
            POD("s-0", OWNED("StatefulSet", "s") ", labels: {controller-revision-hash: one}",
                "volcano", ""));
    rig_patch(&rig, API_PODGROUP, "podgroup-u-s",
              "metadata: {annotations: {mine: x}}\n"
              "spec: {queue: default}\n"
              "status: {phase: Running}\n");
    rig_patch(&rig, API_STATEFUL_SET, "s", "status: {updateRevision: two}");
    rig_settle(&rig);
    assert_int_equal(metrics()->writes[PORT_UPDATE], 0);
    put(POD("s-1",
            OWNED("StatefulSet", "s") ", labels: {controller-revision-hash: two}, annotations: "
                                      "{volcano.sh/preemptable: 'true'}",
            "volcano", "  priorityClassName: high\n"));
    group("podgroup-u-s", "metadata.annotations",
          "{\"mine\":\"x\",\"volcano.sh/preemptable\":\"true\"}");
    group("podgroup-u-s", "spec.priorityClassName", "\"high\"");
    group("podgroup-u-s", "spec.queue", "\"default\"");
    group("podgroup-u-s", "status.phase", "\"Running\"");
    assert_int_equal(metrics()->writes[PORT_UPDATE], 1);
    assert_string_equal(rig_at(&rig, API_POD, "s-1", "metadata.annotations"),
                        "{\"volcano.sh/preemptable\":\"true\",\"scheduling.k8s.io/group-name\":"
                        "\"podgroup-u-s\"}");
}

/* ---- races and faults ---- */

static void an_existing_group_is_used(void **state)
{
    rig_put(&rig, "apiVersion: scheduling.volcano.sh/v1beta1\n"
                  "kind: PodGroup\n"
                  "metadata: {name: podgroup-u-p, namespace: d}\n"
                  "spec: {minMember: 7}\n");
    put(POD("p", "", "volcano", ""));
    group("podgroup-u-p", "spec", "{\"minMember\":7}");
    pod("p", "metadata.annotations", IN("podgroup-u-p"));
    assert_int_equal(metrics()->writes[PORT_CREATE], 0);
}

static void a_refused_group_is_reported_on_the_pod_and_created_later(void **state)
{
    rig_put(&rig, POD("p", "", "volcano", ""));
    port_mem_fail(rig.mem, PORT_CREATE, 1, HK_EDENIED);
    rig_settle(&rig);
    groups("");
    rig_pass(&rig, 1);
    groups("podgroup-u-p");
    rig_expect_events(&rig, "FailedCreatePodGroup", "Error creating: injected failure");
}

static void a_pod_of_the_same_name_is_not_taken_for_the_old_one(void **state)
{
    rig_put(&rig, POD("p", "", "volcano", ""));
    while (!rig_get(&rig, API_PODGROUP, "podgroup-u-p")) {
        manager_run(rig.m);
    }
    rig_remove(&rig, API_POD, "p");
    rig_put(&rig, POD("p", ", uid: new", "volcano", ""));
    rig_pass(&rig, 1);
    pod("p", "metadata.annotations", IN("podgroup-new"));
}

/* Two workloads and a pod; one workload is scaled down, the other gets a pod of a new revision. */
static void play(struct fault_rig *f)
{
    rig_put(&rig,
            SET("ReplicaSet", "r", "scheduling.volcano.sh/group-min-member: '2'", "2")
                SET("StatefulSet", "s", "", "2") POD("a", OWNED("ReplicaSet", "r"), "volcano", "")
                    POD("b", OWNED("ReplicaSet", "r"), "volcano", "")
                        POD("s-0", OWNED("StatefulSet", "s"), "volcano", "")
                            POD("p", "", "volcano", ""));
    fault_rig_pass(f);
    rig_patch(&rig, API_REPLICA_SET, "r", "spec: {replicas: 0}");
    rig_remove(&rig, API_POD, "a");
    rig_remove(&rig, API_POD, "b");
    rig_put(&rig, POD("s-1", OWNED("StatefulSet", "s"), "volcano", "  priorityClassName: high\n"));
    fault_rig_pass(f);
}

static void describe_one(void *ctx, const struct api_object *o)
{
    struct hk_buf *out = ctx;
    const struct json *group =
        json_get(json_at(&o->root, "metadata.annotations"), API_ANN_GROUP_NAME);

    hk_buf_addf(out, "%.*s in %.*s, ", HK_FMT(o->name), HK_FMT(json_str(group, HK_STR("none"))));
}

static void describe(struct hk_buf *out)
{
    port_mem_each(rig.mem, api_kind(API_POD), describe_one, out);
    hk_buf_addf(out, "%u groups, ", rig_count(&rig, API_PODGROUP));
    hk_buf_addf(out, "s is %s",
                rig_at(&rig, API_PODGROUP, "podgroup-u-s", "spec.priorityClassName"));
}

static void with_any_fault_pods_are_grouped(void **state)
{
    fault_rig_run_all_faults(
        &(struct fault_story){&rig, types, HK_LEN(types), play, describe},
        "s-0 in podgroup-u-s, p in podgroup-u-p, s-1 in podgroup-u-s, 2 groups, s is "
        "\"high\"");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_bare_pod_gets_a_group_of_its_own_37),
        TEST(pods_of_a_set_share_a_group_37),
        TEST(pods_of_others_are_left_alone_37),
        TEST(the_schedulers_can_be_named),
        TEST(default_scheduler_can_be_one_of_them),
        TEST(annotations_of_the_owner_are_inherited_38),
        TEST(unless_that_is_switched_off_38),
        TEST(annotations_of_a_pod_are_copied_to_its_group),
        TEST(a_minimum_that_is_no_number_is_one),
        TEST(the_group_waits_for_an_owner_not_seen_yet),
        TEST(but_not_for_ever),
        TEST(owners_of_other_kinds_say_nothing),
        TEST(at_zero_replicas_the_group_is_deleted),
        TEST(a_pod_that_vanishes_is_noticed),
        TEST(a_new_process_finishes_the_scaling_down),
        TEST(the_gate_leaves_sets_alone),
        TEST(a_new_revision_corrects_the_group),
        TEST(an_existing_group_is_used),
        TEST(a_refused_group_is_reported_on_the_pod_and_created_later),
        TEST(a_pod_of_the_same_name_is_not_taken_for_the_old_one),
        cmocka_unit_test(with_any_fault_pods_are_grouped),
    };

    hk_log_set_level(HK_LOG_ERROR);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/podgroup", tests, NULL, NULL);
}
