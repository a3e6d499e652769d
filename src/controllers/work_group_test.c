// SPDX-License-Identifier: Apache-2.0
// Workloads for Volcano's scheduler get their PodGroups from the PodGroup controller
// (docs/reference/controllers.md section 5.3).
#include "controllers/work_rig_test.h"

#define TEMPLATE                                                                                   \
    "template: {metadata: {labels: {app: x}}, spec: {schedulerName: volcano, restartPolicy: "      \
    "Always, containers: [{name: main}]}}"

static const char objects[] =
    "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n---\n"
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: dep, namespace: d, annotations: "
    "{scheduling.volcano.sh/group-min-member: '2', volcano.sh/x: y}}, spec: {replicas: 2, "
    "selector: {matchLabels: {app: x}}, " TEMPLATE "}}\n---\n"
    "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: sts, namespace: d}, spec: "
    "{replicas: 2, podManagementPolicy: Parallel, selector: {matchLabels: {app: x}}, " TEMPLATE
    "}}\n---\n"
    "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: ds, namespace: d}, spec: {selector: "
    "{matchLabels: {app: x}}, " TEMPLATE "}}\n---\n"
    "{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: d, annotations: "
    "{scheduling.volcano.sh/group-min-member: '3'}}, spec: {parallelism: 3, completions: "
    "3, " TEMPLATE "}}\n";

static void begin(struct rig *r)
{
    static const struct ctl_type *types[16];
    uint32_t n;
    const struct ctl_type *const *workloads = manager_workload_types(&n);

    memcpy(types, workloads, n * sizeof(types[0]));
    types[n] = &ctl_podgroup;
    rig_init(r, types, n + 1);
    rig_manager(r);
    rig_put(r, objects);
    rig_settle(r);
}

/* Checks minMember of the PodGroup of that owner's pods. */
static void expect_group(struct rig *r, const char *uid, const char *min_member)
{
    char name[300];

    snprintf(name, sizeof(name), "podgroup-%s", uid);
    rig_expect(r, API_PODGROUP, name, "spec.minMember", min_member);
}

static void each_workload_is_one_group(void **state)
{
    struct rig r;
    char uid[300];
    struct hk_str set_uid;

    begin(&r);
    assert_int_equal(rig_count(&r, API_POD), 8);
    assert_int_equal(rig_count(&r, API_PODGROUP), 4);
    set_uid = json_str(
        json_at(rig_get(&r, API_REPLICA_SET, work_nth(&r, API_REPLICA_SET, 0)), "metadata.uid"),
        HK_STR(""));
    snprintf(uid, sizeof(uid), "%.*s", HK_FMT(set_uid));
    expect_group(&r, uid, "2");
    expect_group(&r, "u-sts", "1");
    expect_group(&r, "u-ds", "1");
    expect_group(&r, "u-job", "3");
    for (uint32_t i = 0; i < rig_count(&r, API_POD); i++) {
        const struct json *pod = rig_get(&r, API_POD, work_nth(&r, API_POD, i));

        assert_non_null(json_get(json_at(pod, "metadata.annotations"), API_ANN_GROUP_NAME));
    }
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_workload_is_one_group),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/work-group", tests, NULL, NULL);
}
