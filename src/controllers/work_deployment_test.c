// SPDX-License-Identifier: Apache-2.0
#include "controllers/work_rig_test.h"

static const char web[] = "apiVersion: apps/v1\n"
                          "kind: Deployment\n"
                          "metadata:\n"
                          "  name: web\n"
                          "  namespace: d\n"
                          "  generation: 1\n"
                          "  annotations: {scheduling.volcano.sh/group-min-member: '2'}\n"
                          "spec:\n"
                          "  replicas: 4\n"
                          "  selector: {matchLabels: {app: web}}\n"
                          "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, "
                          "maxUnavailable: 25%}}\n"
                          "  template:\n"
                          "    metadata: {labels: {app: web}}\n"
                          "    spec: {containers: [{name: main, image: 'a:1'}]}\n";

#define TEMPLATE(image) "spec: {template: {spec: {containers: [{name: main, image: '" image "'}]}}}"

static void expect_sizes(struct rig *r, const char *set, const char *spec, const char *ready)
{
    rig_expect(r, API_REPLICA_SET, set, "spec.replicas", spec);
    rig_expect(r, API_REPLICA_SET, set, "status.readyReplicas", ready);
}

static void a_new_deployment_has_one_set_of_its_revision(void **state)
{
    struct rig r;
    const char *set;
    const struct json *root;

    work_rig(&r);
    rig_put(&r, web);
    rig_run(&r);
    assert_int_equal(rig_count(&r, API_REPLICA_SET), 1);
    set = work_nth(&r, API_REPLICA_SET, 0);
    expect_sizes(&r, set, "4", "4");
    root = rig_get(&r, API_REPLICA_SET, set);
    assert_string_equal(rig_at(&r, API_REPLICA_SET, set, "metadata.annotations"),
                        "{\"scheduling.volcano.sh/group-min-member\":\"2\","
                        "\"deployment.kubernetes.io/desired-replicas\":\"4\","
                        "\"deployment.kubernetes.io/max-replicas\":\"5\","
                        "\"deployment.kubernetes.io/revision\":\"1\"}");
    assert_true(json_equal(json_at(root, "spec.selector.matchLabels"),
                           json_at(root, "spec.template.metadata.labels")));
    rig_expect(&r, API_DEPLOYMENT, "web", "status.replicas", "4");
    rig_expect(&r, API_DEPLOYMENT, "web", "status.updatedReplicas", "4");
    rig_expect(&r, API_DEPLOYMENT, "web", "status.availableReplicas", "4");
    rig_expect(&r, API_DEPLOYMENT, "web", "status.unavailableReplicas", "");
    rig_expect(&r, API_DEPLOYMENT, "web", "status.observedGeneration", "1");
    work_expect_condition(&r, API_DEPLOYMENT, "web", "Available", "True MinimumReplicasAvailable");
    work_expect_condition(&r, API_DEPLOYMENT, "web", "Progressing", "True NewReplicaSetAvailable");
    rig_fini(&r);
}

/* Between two steps there are never more than replicas + maxSurge pods, nor fewer ready ones than
 * replicas - maxUnavailable. */
static void a_new_template_is_rolled_out_within_its_bounds(void **state)
{
    struct rig r;
    char old[300];

    work_rig(&r);
    rig_put(&r, web);
    rig_run(&r);
    snprintf(old, sizeof(old), "%s", work_nth(&r, API_REPLICA_SET, 0));
    rig_patch(&r, API_DEPLOYMENT, "web", TEMPLATE("a:2"));
    for (int i = 0; i < 20; i++) {
        int64_t wanted = 0, ready = 0;

        rig_settle(&r);
        for (uint32_t k = 0; k < rig_count(&r, API_REPLICA_SET); k++) {
            const struct json *set = rig_get(&r, API_REPLICA_SET, work_nth(&r, API_REPLICA_SET, k));

            wanted += json_int(json_at(set, "spec.replicas"), 0);
            ready += json_int(json_at(set, "status.readyReplicas"), 0);
        }
        assert_in_range(wanted, 3, 5);
        assert_in_range(ready, 3, 5);
        rig_reap(&r);
        rig_run(&r);
    }
    assert_int_equal(rig_count(&r, API_REPLICA_SET), 2);
    expect_sizes(&r, old, "0", "");
    expect_sizes(&r, work_nth(&r, API_REPLICA_SET, 1), "4", "4");
    assert_int_equal(rig_count(&r, API_POD), 4);
    work_expect_condition(&r, API_DEPLOYMENT, "web", "Progressing", "True NewReplicaSetAvailable");
    rig_fini(&r);
}

static void the_old_template_wakes_the_old_set_as_a_new_revision(void **state)
{
    struct rig r;
    char old[300];

    work_rig(&r);
    rig_put(&r, web);
    rig_run(&r);
    snprintf(old, sizeof(old), "%s", work_nth(&r, API_REPLICA_SET, 0));
    rig_patch(&r, API_DEPLOYMENT, "web", TEMPLATE("a:2"));
    work_go_on(&r);
    rig_patch(&r, API_DEPLOYMENT, "web", TEMPLATE("a:1"));
    work_go_on(&r);
    assert_int_equal(rig_count(&r, API_REPLICA_SET), 2);
    expect_sizes(&r, old, "4", "4");
    assert_string_equal(
        json_str(json_get(json_at(rig_get(&r, API_REPLICA_SET, old), "metadata.annotations"),
                          "deployment.kubernetes.io/revision"),
                 HK_STR(""))
            .s,
        "3");
    assert_string_equal(
        json_str(json_get(json_at(rig_get(&r, API_DEPLOYMENT, "web"), "metadata.annotations"),
                          "deployment.kubernetes.io/revision"),
                 HK_STR(""))
            .s,
        "3");
    rig_fini(&r);
}

static void recreate_waits_for_the_last_old_pod(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, web);
    rig_patch(&r, API_DEPLOYMENT, "web", "spec: {strategy: {type: Recreate, rollingUpdate: null}}");
    rig_run(&r);
    rig_patch(&r, API_DEPLOYMENT, "web", TEMPLATE("a:2"));
    rig_settle(&r);
    assert_int_equal(rig_count(&r, API_REPLICA_SET), 1); /* its pods are still terminating */
    rig_reap(&r);
    assert_int_equal(rig_count(&r, API_REPLICA_SET), 2);
    rig_run(&r);
    expect_sizes(&r, work_nth(&r, API_REPLICA_SET, 1), "4", "4");
    rig_fini(&r);
}

static void a_paused_deployment_scales_but_does_not_roll(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, web);
    rig_run(&r);
    rig_patch(&r, API_DEPLOYMENT, "web", "spec: {paused: true, replicas: 6}");
    rig_patch(&r, API_DEPLOYMENT, "web", TEMPLATE("a:2"));
    work_go_on(&r);
    assert_int_equal(rig_count(&r, API_REPLICA_SET), 1);
    assert_int_equal(rig_count(&r, API_POD), 6);
    work_expect_condition(&r, API_DEPLOYMENT, "web", "Progressing", "Unknown DeploymentPaused");
    rig_patch(&r, API_DEPLOYMENT, "web", "spec: {paused: false}");
    work_go_on(&r);
    expect_sizes(&r, work_nth(&r, API_REPLICA_SET, 1), "6", "6");
    rig_fini(&r);
}

static void scaling_during_a_rollout_keeps_the_shares(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, web);
    rig_patch(&r, API_DEPLOYMENT, "web",
              "spec: {replicas: 10, strategy: {rollingUpdate: {maxSurge: 3, maxUnavailable: 2}}}");
    rig_run(&r);
    rig_patch(&r, API_DEPLOYMENT, "web", TEMPLATE("a:2"));
    rig_settle(&r);
    rig_reap(&r); /* the new pods never start */
    rig_expect(&r, API_REPLICA_SET, work_nth(&r, API_REPLICA_SET, 0), "spec.replicas", "8");
    rig_expect(&r, API_REPLICA_SET, work_nth(&r, API_REPLICA_SET, 1), "spec.replicas", "5");
    rig_patch(&r, API_DEPLOYMENT, "web", "spec: {replicas: 15}");
    rig_settle(&r);
    /* The example from Kubernetes' documentation. */
    rig_expect(&r, API_REPLICA_SET, work_nth(&r, API_REPLICA_SET, 0), "spec.replicas", "11");
    rig_expect(&r, API_REPLICA_SET, work_nth(&r, API_REPLICA_SET, 1), "spec.replicas", "7");
    rig_fini(&r);
}

static void bounds_as_large_as_numbers_go(void **state)
{
    static const char *const bounds[] = {
        "maxSurge: 9223372036854775807, maxUnavailable: 9223372036854775807",
        "maxSurge: '9223372036854775807%', maxUnavailable: '9223372036854775807%'",
        "maxSurge: -9223372036854775808, maxUnavailable: -9223372036854775808",
        "maxSurge: '-9223372036854775808%', maxUnavailable: 1",
    };

    for (size_t i = 0; i < HK_LEN(bounds); i++) {
        struct rig r;
        char patch[256];

        work_rig(&r);
        rig_put(&r, web);
        snprintf(patch, sizeof(patch), "spec: {strategy: {rollingUpdate: {%s}}}", bounds[i]);
        rig_patch(&r, API_DEPLOYMENT, "web", patch);
        rig_run(&r);
        rig_patch(&r, API_DEPLOYMENT, "web", TEMPLATE("a:2"));
        work_go_on(&r);
        rig_expect(&r, API_DEPLOYMENT, "web", "spec.replicas", "4");
        rig_fini(&r);
    }
}

static void a_rollout_that_does_not_move_exceeds_its_deadline(void **state)
{
    struct rig r;

    work_rig(&r);
    rig_put(&r, web);
    rig_patch(&r, API_DEPLOYMENT, "web", "spec: {progressDeadlineSeconds: 60}");
    rig_settle(&r);
    work_expect_condition(&r, API_DEPLOYMENT, "web", "Available",
                          "False MinimumReplicasUnavailable");
    work_expect_condition(&r, API_DEPLOYMENT, "web", "Progressing", "True ReplicaSetUpdated");
    rig_pass(&r, 61);
    work_expect_condition(&r, API_DEPLOYMENT, "web", "Progressing",
                          "False ProgressDeadlineExceeded");
    rig_run(&r);
    work_expect_condition(&r, API_DEPLOYMENT, "web", "Progressing", "True NewReplicaSetAvailable");
    rig_fini(&r);
}

static void no_more_old_sets_are_kept_than_the_limit(void **state)
{
    struct rig r;
    static const char *const templates[] = {TEMPLATE("a:2"), TEMPLATE("a:3"), TEMPLATE("a:4"),
                                            TEMPLATE("a:5")};

    work_rig(&r);
    rig_put(&r, web);
    rig_patch(&r, API_DEPLOYMENT, "web", "spec: {revisionHistoryLimit: 2}");
    for (uint32_t i = 0; i < HK_LEN(templates); i++) {
        work_go_on(&r);
        rig_patch(&r, API_DEPLOYMENT, "web", templates[i]);
    }
    work_go_on(&r);
    assert_int_equal(rig_count(&r, API_REPLICA_SET), 3);
    rig_fini(&r);
}

static void a_name_that_is_taken_leads_to_another(void **state)
{
    struct rig r;
    char taken[300], yaml[400];

    work_rig(&r);
    rig_put(&r, web);
    rig_settle(&r);
    snprintf(taken, sizeof(taken), "%s", work_nth(&r, API_REPLICA_SET, 0));
    rig_fini(&r);

    work_rig(&r);
    snprintf(yaml, sizeof(yaml),
             "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: %s, namespace: d}\n"
             "spec: {replicas: 0}\n",
             taken);
    rig_put(&r, yaml);
    rig_put(&r, web);
    rig_settle(&r);
    rig_expect(&r, API_DEPLOYMENT, "web", "status.collisionCount", "1");
    assert_int_equal(rig_count(&r, API_POD), 4);
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_deployment_has_one_set_of_its_revision),
        cmocka_unit_test(a_new_template_is_rolled_out_within_its_bounds),
        cmocka_unit_test(the_old_template_wakes_the_old_set_as_a_new_revision),
        cmocka_unit_test(recreate_waits_for_the_last_old_pod),
        cmocka_unit_test(a_paused_deployment_scales_but_does_not_roll),
        cmocka_unit_test(scaling_during_a_rollout_keeps_the_shares),
        cmocka_unit_test(bounds_as_large_as_numbers_go),
        cmocka_unit_test(a_rollout_that_does_not_move_exceeds_its_deadline),
        cmocka_unit_test(no_more_old_sets_are_kept_than_the_limit),
        cmocka_unit_test(a_name_that_is_taken_leads_to_another),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/work-deployment", tests, NULL, NULL);
}
