// SPDX-License-Identifier: Apache-2.0
// Which pods a node accepts. It has 4 CPUs, 8Gi of memory and room for 110 pods.
#include "agent/rig_test.h"

#define WORK(requests)                                                                             \
    "  restartPolicy: Never\n  containers:\n  - {name: c, image: i, command: [work], resources: "  \
    "{requests: {" requests "}}}\n"

static void test_what_does_not_fit_fails_as_on_a_kubelet(void **state)
{
    static const struct {
        const char *spec, *reason, *message;
    } cases[] = {
        {WORK("cpu: 4, memory: 8Gi"), "", ""},
        {WORK("cpu: 4001m"), "OutOfcpu",
         "Pod was rejected: Node didn't have enough resource: cpu, requested: 4001, used: 0, "
         "capacity: 4000"},
        {WORK("memory: 9Gi"), "OutOfmemory",
         "Pod was rejected: Node didn't have enough resource: memory, requested: 9663676416, used: "
         "0, capacity: 8589934592"},
        {WORK("example.com/unknown: 3"), "", ""}, /* not a resource of the node */
        {WORK("cpu: '99999999999999999999'"), "OutOfcpu",
         "Pod was rejected: Node didn't have enough resource: cpu, requested: 9223372036854775807, "
         "used: 0, capacity: 4000"},
        {"  initContainers:\n  - {name: i, image: i, command: [work], resources: {requests: {cpu: "
         "5}}}\n" WORK("cpu: 1"),
         "OutOfcpu",
         "Pod was rejected: Node didn't have enough resource: cpu, requested: 5000, used: 0, "
         "capacity: 4000"},
        {"  initContainers:\n"
         "  - {name: s, image: i, command: [work], restartPolicy: Always, resources: {requests: "
         "{cpu: 2}}}\n"
         "  - {name: i, image: i, command: [work], resources: {requests: {cpu: 2}}}\n" WORK(
             "cpu: 2"),
         "", ""},
        {"  initContainers:\n"
         "  - {name: s, image: i, command: [work], restartPolicy: Always, resources: {requests: "
         "{cpu: 2}}}\n"
         "  - {name: i, image: i, command: [work], resources: {requests: {cpu: 3}}}\n" WORK(
             "cpu: 2"),
         "OutOfcpu",
         "Pod was rejected: Node didn't have enough resource: cpu, requested: 5000, used: 0, "
         "capacity: 4000"},
        {"  overhead: {cpu: 500m}\n" WORK("cpu: 3600m"), "OutOfcpu",
         "Pod was rejected: Node didn't have enough resource: cpu, requested: 4100, used: 0, "
         "capacity: 4000"},
        {"  resources: {requests: {cpu: 1}}\n" WORK("cpu: 1"), "", ""},
        {"  nodeSelector: {kubernetes.io/hostname: n1}\n" WORK("cpu: 1"), "", ""},
        {"  nodeSelector: {kubernetes.io/hostname: n2}\n" WORK("cpu: 1"), "NodeAffinity",
         "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node "
         "affinity/selector"},
        {"  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
         "{nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: Exists}]}]}}}\n" WORK(
             "cpu: 1"),
         "NodeAffinity",
         "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node "
         "affinity/selector"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig r;

        rig_init(&r);
        rig_pod(&r, "a", cases[i].spec);
        assert_pod(&r, "a", "reason", cases[i].reason);
        assert_pod(&r, "a", "message", cases[i].message);
        if (cases[i].reason[0]) {
            assert_pod(&r, "a", "phase", "Failed");
            assert_null(rig_container(&r, "c"));
        } else {
            assert_string_not_equal(rig_at(&r, API_POD, "a", "status.phase"), "Failed");
        }
        rig_fini(&r);
    }
}

static void test_taints_count_when_they_execute(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_put(&r,
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: {taints: [{key: a, effect: "
            "NoSchedule}, {key: b, effect: NoExecute}]}\n");
    rig_pod(&r, "a", WORK("cpu: 1"));
    assert_pod(&r, "a", "reason", "TaintToleration");
    rig_pod(&r, "b", "  tolerations: [{key: b, operator: Exists}]\n" WORK("cpu: 1"));
    assert_pod(&r, "b", "phase", "Running");
    rig_fini(&r);
}

static void test_the_room_of_a_pod_is_free_when_it_has_ended(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", WORK("cpu: 3"));
    rig_pod(&r, "b", WORK("cpu: 2"));
    assert_pod(&r, "b", "reason", "OutOfcpu");
    rig_end(&r, "c", 0);
    assert_pod(&r, "a", "phase", "Succeeded");
    rig_pod(&r, "d", WORK("cpu: 4"));
    assert_pod(&r, "d", "phase", "Running");
    assert_pod(&r, "b", "phase", "Failed"); /* permanently */
    rig_fini(&r);
}

static void test_places_count_too(void **state)
{
    struct rig r;
    char name[8];

    rig_init(&r);
    for (int i = 0; i < 111; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        rig_pod(&r, name, WORK(""));
    }
    assert_pod(&r, "p109", "phase", "Running");
    assert_pod(&r, "p110", "reason", "OutOfpods");
    rig_fini(&r);
}

/* The API drops a pod before its processes are gone, and the scheduler reuses its resources. */
static void test_who_comes_for_the_room_of_one_that_ends_waits(void **state)
{
    for (int how = 0; how < 2; how++) {
        struct rig r;

        rig_init(&r);
        rig_pod(&r, "a", WORK("cpu: 3"));
        r.fake.deaf = true;
        if (how == 0) {
            assert_true(port_mem_remove(r.mem, api_kind(API_POD), HK_STR("d"), HK_STR("a")));
            rig_settle(&r);
        } else {
            rig_delete(&r, "a", 2);
        }
        rig_pod(&r, "b", WORK("cpu: 4"));
        rig_pass(&r, 5);
        assert_string_not_equal(rig_at(&r, API_POD, "b", "status.phase"), "Failed");
        assert_int_equal(r.fake.all.len, 1);
        rig_pod(&r, "big", WORK("cpu: 5"));
        assert_pod(&r, "big", "reason", "OutOfcpu"); /* ending pods would not help */
        fake_tell(&r, 1, 137, 9);
        rig_pass(&r, 1);
        assert_pod(&r, "b", "phase", "Running");
        rig_fini(&r);
    }
}

static void test_what_runs_comes_first_and_then_the_oldest(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a", WORK("cpu: 2"));
    rig_down(&r);
    rig_put_idle(&r, "young", "2026-01-02T09:00:03Z", WORK("cpu: 1"));
    rig_put_idle(&r, "old", "2026-01-02T09:00:01Z", WORK("cpu: 1"));
    rig_put_idle(&r, "between", "2026-01-02T09:00:02Z", WORK("cpu: 1"));
    rig_up(&r);
    assert_pod(&r, "a", "phase", "Running");
    assert_pod(&r, "old", "phase", "Running");
    assert_pod(&r, "between", "phase", "Running");
    assert_pod(&r, "young", "reason", "OutOfcpu");
    rig_fini(&r);
}

/* Ends a pod: deleted by a user, force-deleted, or finished. */
static void churn_end(struct rig *r, const char *name, uint64_t container, uint32_t how)
{
    if (how == 0) {
        rig_delete(r, name, 1);
    } else if (how == 1) {
        port_mem_remove(r->mem, api_kind(API_POD), HK_STR("d"), hk_str(name));
    } else {
        fake_tell(r, container, 0, 0);
    }
    rig_settle(r);
}

/* Pods end or are deleted while others take their resources. A scheduler counts a pod until the API
 * drops it; the node refuses no pod that such a scheduler has bound. */
static void test_churn(void **state)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct hk_rand rand;
        struct rig r;
        char name[16];
        int next = 0, live[4] = {-1, -1, -1, -1};

        hk_rand_seed(&rand, seed);
        rig_init(&r);
        for (int i = 0; i < 40; i++) {
            const uint32_t slot = hk_rand_below(&rand, 4);

            r.fake.deaf = hk_rand_below(&rand, 3) == 0;
            r.fake.stubborn = hk_rand_below(&rand, 2) == 0;
            if (live[slot] >= 0) {
                snprintf(name, sizeof(name), "p%d", live[slot]);
                if (rig_peek(&r, API_POD, name)) {
                    churn_end(&r, name, (uint64_t)live[slot] + 1, hk_rand_below(&rand, 3));
                }
                if (!rig_peek(&r, API_POD, name) ||
                    strcmp(rig_at(&r, API_POD, name, "status.phase"), "Succeeded") == 0) {
                    live[slot] = -1;
                }
            }
            if (live[slot] < 0 && r.fake.all.len == (uint32_t)next) {
                live[slot] = next;
                snprintf(name, sizeof(name), "p%d", next++);
                rig_pod(&r, name, WORK("cpu: 1"));
            }
            r.fake.deaf = false;
            for (uint32_t k = 0; k < r.fake.all.len; k++) { /* ends reported late */
                if (!r.fake.all.at[k]->ended && !rig_peek(&r, API_POD, r.fake.all.at[k]->pod + 2)) {
                    fake_tell(&r, k + 1, 137, 9);
                }
            }
            rig_pass(&r, 2);
        }
        for (int i = 0; i < next; i++) {
            snprintf(name, sizeof(name), "p%d", i);
            assert_string_not_equal(rig_at(&r, API_POD, name, "status.reason"), "OutOfcpu");
        }
        rig_fini(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_does_not_fit_fails_as_on_a_kubelet),
        cmocka_unit_test(test_taints_count_when_they_execute),
        cmocka_unit_test(test_the_room_of_a_pod_is_free_when_it_has_ended),
        cmocka_unit_test(test_places_count_too),
        cmocka_unit_test(test_who_comes_for_the_room_of_one_that_ends_waits),
        cmocka_unit_test(test_what_runs_comes_first_and_then_the_oldest),
        cmocka_unit_test(test_churn),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("agent/pod_fit", tests, NULL, NULL);
}
