// SPDX-License-Identifier: Apache-2.0
#include "controllers/work_rig_test.h"

static const char db[] = "apiVersion: apps/v1\n"
                         "kind: StatefulSet\n"
                         "metadata: {name: db, namespace: d, generation: 1}\n"
                         "spec:\n"
                         "  replicas: 3\n"
                         "  serviceName: dbs\n"
                         "  selector: {matchLabels: {app: db}}\n"
                         "  template:\n"
                         "    metadata: {labels: {app: db}}\n"
                         "    spec: {containers: [{name: main, image: 'a:1'}]}\n"
                         "  volumeClaimTemplates:\n"
                         "  - metadata: {name: data}\n"
                         "    spec: {resources: {requests: {storage: 1Gi}}}\n";

#define TEMPLATE(image) "spec: {template: {spec: {containers: [{name: main, image: '" image "'}]}}}"

static const char *image_of(struct rig *r, const char *pod)
{
    const struct json *list = json_at(rig_get(r, API_POD, pod), "spec.containers");
    static char text[64];

    snprintf(text, sizeof(text), "%.*s",
             HK_FMT(json_str(json_get(json_item(list, 0), "image"), HK_STR(""))));
    return text;
}

static void pods_are_made_one_after_the_other(void **state)
{
    struct rig r;
    char revision[300];

    work_rig(&r);
    rig_put(&r, db);
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_POD), "db-0");
    rig_run(&r);
    assert_string_equal(rig_names(&r, API_POD), "db-0 db-1");
    work_go_on(&r);
    assert_string_equal(rig_names(&r, API_POD), "db-0 db-1 db-2");
    assert_string_equal(rig_names(&r, API_PVC), "data-db-0 data-db-1 data-db-2");
    rig_expect(&r, API_STATEFUL_SET, "db", "status.readyReplicas", "3");
    rig_expect(&r, API_STATEFUL_SET, "db", "status.currentReplicas", "3");
    snprintf(revision, sizeof(revision), "\"%s\"", work_nth(&r, API_CONTROLLER_REVISION, 0));
    rig_expect(&r, API_STATEFUL_SET, "db", "status.currentRevision", revision);
    rig_expect(&r, API_STATEFUL_SET, "db", "status.updateRevision", revision);
    rig_fini(&r);
}

static void a_pod_knows_its_number_and_its_claims(void **state)
{
    struct rig r;
    const struct json *labels;

    work_rig(&r);
    rig_put(&r, db);
    rig_patch(&r, API_STATEFUL_SET, "db", "spec: {ordinals: {start: 5}}");
    rig_settle(&r);
    labels = json_at(rig_get(&r, API_POD, "db-5"), "metadata.labels");
    assert_string_equal(
        json_str(json_get(labels, "statefulset.kubernetes.io/pod-name"), HK_STR("")).s, "db-5");
    assert_string_equal(json_str(json_get(labels, "apps.kubernetes.io/pod-index"), HK_STR("")).s,
                        "5");
    rig_expect(&r, API_POD, "db-5", "spec.hostname", "\"db-5\"");
    rig_expect(&r, API_POD, "db-5", "spec.subdomain", "\"dbs\"");
    rig_expect(&r, API_POD, "db-5", "spec.volumes",
               "[{\"name\":\"data\",\"persistentVolumeClaim\":{\"claimName\":\"data-db-5\"}}]");
    rig_fini(&r);
}

static void parallel_pods_are_made_and_ended_at_once(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, db);
    rig_patch(&r, API_STATEFUL_SET, "db", "spec: {podManagementPolicy: Parallel}");
    rig_settle(&r);
    assert_string_equal(rig_names(&r, API_POD), "db-0 db-1 db-2");
    rig_run(&r);
    rig_patch(&r, API_STATEFUL_SET, "db", "spec: {replicas: 1}");
    rig_settle(&r);
    rig_reap(&r);
    assert_string_equal(rig_names(&r, API_POD), "db-0");
    rig_fini(&r);
}

static void shrinking_goes_from_the_end_and_waits(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, db);
    work_go_on(&r);
    rig_patch(&r, API_STATEFUL_SET, "db", "spec: {replicas: 1}");
    rig_settle(&r);
    rig_expect(&r, API_POD, "db-1", "metadata.deletionTimestamp", "");
    rig_reap(&r);
    assert_string_equal(rig_names(&r, API_POD), "db-0 db-1"); /* the next pod is terminating */
    rig_reap(&r);
    assert_string_equal(rig_names(&r, API_POD), "db-0");
    assert_int_equal(rig_count(&r, API_PVC), 3);
    rig_fini(&r);
}

static void claims_go_with_their_pods_if_the_policy_says_so(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, db);
    rig_patch(&r, API_STATEFUL_SET, "db",
              "spec: {persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}");
    work_go_on(&r);
    rig_patch(&r, API_STATEFUL_SET, "db", "spec: {replicas: 1}");
    work_go_on(&r);
    assert_string_equal(rig_names(&r, API_PVC), "data-db-0");
    rig_fini(&r);
}

static void a_failed_pod_is_made_again_under_its_name(void **state)
{
    struct rig r;
    char uid[100];

    work_rig(&r);
    rig_put(&r, db);
    work_go_on(&r);
    snprintf(uid, sizeof(uid), "%s", rig_at(&r, API_POD, "db-1", "metadata.uid"));
    rig_end(&r, "db-1", 1);
    work_go_on(&r);
    assert_string_not_equal(rig_at(&r, API_POD, "db-1", "metadata.uid"), uid);
    rig_expect(&r, API_POD, "db-1", "status.phase", "\"Running\"");
    rig_fini(&r);
}

static void a_new_template_goes_from_the_end_down_to_the_partition(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, db);
    work_go_on(&r);
    rig_patch(&r, API_STATEFUL_SET, "db",
              "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}");
    rig_patch(&r, API_STATEFUL_SET, "db", TEMPLATE("a:2"));
    rig_settle(&r);
    rig_expect(&r, API_POD, "db-1", "metadata.deletionTimestamp", "");
    work_go_on(&r);
    assert_string_equal(image_of(&r, "db-0"), "a:1");
    assert_string_equal(image_of(&r, "db-1"), "a:2");
    assert_string_equal(image_of(&r, "db-2"), "a:2");
    rig_expect(&r, API_STATEFUL_SET, "db", "status.updatedReplicas", "2");
    rig_expect(&r, API_STATEFUL_SET, "db", "status.currentReplicas", "1");

    /* Below the partition a pod is recreated from the old template. */
    rig_remove(&r, API_POD, "db-0");
    work_go_on(&r);
    assert_string_equal(image_of(&r, "db-0"), "a:1");

    rig_patch(&r, API_STATEFUL_SET, "db",
              "spec: {updateStrategy: {rollingUpdate: {partition: 0}}}");
    work_go_on(&r);
    assert_string_equal(image_of(&r, "db-0"), "a:2");
    rig_expect(&r, API_STATEFUL_SET, "db", "status.currentReplicas", "3");
    rig_fini(&r);
}

static void with_on_delete_pods_change_when_they_are_made_again(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, db);
    work_go_on(&r);
    rig_patch(&r, API_STATEFUL_SET, "db", "spec: {updateStrategy: {type: OnDelete}}");
    rig_patch(&r, API_STATEFUL_SET, "db", TEMPLATE("a:2"));
    work_go_on(&r);
    assert_string_equal(image_of(&r, "db-2"), "a:1");
    rig_remove(&r, API_POD, "db-2");
    work_go_on(&r);
    assert_string_equal(image_of(&r, "db-2"), "a:2");
    assert_string_equal(image_of(&r, "db-1"), "a:1");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_made_one_after_the_other),
        cmocka_unit_test(a_pod_knows_its_number_and_its_claims),
        cmocka_unit_test(parallel_pods_are_made_and_ended_at_once),
        cmocka_unit_test(shrinking_goes_from_the_end_and_waits),
        cmocka_unit_test(claims_go_with_their_pods_if_the_policy_says_so),
        cmocka_unit_test(a_failed_pod_is_made_again_under_its_name),
        cmocka_unit_test(a_new_template_goes_from_the_end_down_to_the_partition),
        cmocka_unit_test(with_on_delete_pods_change_when_they_are_made_again),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/work-statefulset", tests, NULL, NULL);
}
