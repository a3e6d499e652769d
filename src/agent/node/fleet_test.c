// SPDX-License-Identifier: Apache-2.0
// Many simulated nodes behind one agent: they register once, are silent afterwards, and simulate
// the pods bound to them, also after a restart.
#include "agent/rig_test.h"
#include "agent/simulate/model.h"

struct fleet_rig {
    struct rig rig; /* its agent runs the fleet */
    struct simulate_model model;
    struct runtime *runtime;
    bool beats; /* of the next agent */
};

static void on_end(void *ctx, uint64_t container, const struct runtime_end *end)
{
    struct fleet_rig *r = ctx;

    agent_on_end(r->rig.agent, container, end);
}

static void up(struct fleet_rig *r, uint32_t n)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json has;

    assert_int_equal(json_parse(HK_STR("{\"cpu\":\"4\",\"pods\":\"110\"}"), 0, &a, &has, NULL), 0);
    r->runtime = simulate_runtime_new(&(struct simulate_opts){.clock = &r->rig.clock.clock,
                                                              .rand = &r->rig.rand,
                                                              .sink = {on_end, r},
                                                              .fate = simulate_model_fate,
                                                              .ctx = &r->model});
    r->rig.agent = agent_new(&(struct agent_opts){.port = port_mem_port(r->rig.mem),
                                                  .clock = &r->rig.clock.clock,
                                                  .rand = &r->rig.rand,
                                                  .runtime = r->runtime,
                                                  .fleet = &(struct agent_fleet){n, 2, r->beats},
                                                  .capacity = &has});
    rig_settle(&r->rig);
}

static void down(struct fleet_rig *r)
{
    rig_down(&r->rig);
    r->runtime->ops->free(r->runtime);
}

static void init(struct fleet_rig *r, uint32_t n)
{
    *r = (struct fleet_rig){.model = simulate_model_default()};
    hk_clock_manual_init(&r->rig.clock, RIG_START_NS);
    hk_rand_seed(&r->rig.rand, 7);
    r->rig.mem = port_mem_new(RIG_START_NS);
    up(r, n);
}

static void fini(struct fleet_rig *r)
{
    down(r);
    port_free(port_mem_port(r->rig.mem));
    hk_arena_fini(&r->rig.text);
}

/* Advances the clock second by second and reports ends on time. */
static void pass(struct fleet_rig *r, int64_t s)
{
    for (int64_t i = 0; i < s; i++) {
        rig_set_now(&r->rig, r->rig.clock.now_ns + RIG_SECOND_NS);
        simulate_run(r->runtime);
        rig_settle(&r->rig);
    }
}

static void count(void *ctx, const struct api_object *o)
{
    ++*(uint32_t *)ctx;
}

static uint32_t nodes(struct fleet_rig *r)
{
    uint32_t n = 0;

    port_mem_each(r->rig.mem, api_kind(API_NODE), count, &n);
    return n;
}

/* Creates a pod on a node, with an annotation for the simulation. */
static void pod(struct fleet_rig *r, const char *name, const char *node, const char *key,
                const char *value)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text,
                "apiVersion: v1\nkind: Pod\n"
                "metadata: {namespace: d, name: %s, uid: u-%s, annotations: {" SIMULATE_ANN
                "%s: \"%s\"}}\n"
                "spec:\n  nodeName: %s\n  restartPolicy: Never\n  containers: [{name: c}]\n",
                name, name, key, value, node);
    rig_put(&r->rig, text.data);
}

static void test_a_fleet_registers_once_and_is_silent(void **state)
{
    struct fleet_rig r;

    init(&r, 700);
    assert_true(agent_ready(r.rig.agent));
    assert_int_equal(nodes(&r), 700);
    assert_string_equal(rig_at(&r.rig, API_NODE, "sim-00700", "status.allocatable.cpu"), "4");
    assert_string_equal(rig_at(&r.rig, API_NODE, "sim-00700", "metadata.labels.type"), "simulated");
    port_mem_log_clear(r.rig.mem);
    assert_int_equal(agent_run(r.rig.agent), INT64_MAX);
    rig_pass(&r.rig, 3600);
    assert_int_equal(port_mem_log(r.rig.mem).n, 0);
    /* The next process finds everything registered. */
    down(&r);
    up(&r, 700);
    assert_true(agent_ready(r.rig.agent));
    assert_int_equal(rig_calls(&r.rig, "create nodes sim-00001"), 0);
    assert_int_equal(rig_calls(&r.rig, "patch nodes/status sim-00001"), 0);
    fini(&r);
}

/* Leases renewed since the log was cleared. */
static uint32_t renewals(struct fleet_rig *r)
{
    struct hk_str rest = port_mem_log(r->rig.mem), line;
    uint32_t n = 0;

    while (hk_str_cut(&rest, '\n', &line)) {
        n += hk_str_starts(line, "patch leases kube-node-lease/sim-");
    }
    return n;
}

static void test_nodes_that_have_to_say_that_they_live_do_so_evenly(void **state)
{
    struct fleet_rig r;

    init(&r, 0);
    down(&r);
    r.beats = true;
    up(&r, 200);
    assert_true(agent_ready(r.rig.agent));
    rig_pass(&r.rig, 10);
    assert_string_equal(rig_at(&r.rig, API_LEASE, "sim-00200", "spec.holderIdentity"), "sim-00200");
    assert_string_equal(rig_at(&r.rig, API_LEASE, "sim-00200", "metadata.ownerReferences.0.uid"),
                        rig_at(&r.rig, API_NODE, "sim-00200", "metadata.uid"));
    for (int i = 0; i < 20; i++) {
        port_mem_log_clear(r.rig.mem);
        rig_pass(&r.rig, 1);
        assert_in_range(renewals(&r), 19, 21);
    }
    /* The nodes also report every few minutes, not all at once. */
    rig_pass(&r.rig, 260);
    assert_int_equal(rig_calls(&r.rig, "patch nodes/status sim-00001"), 0);
    assert_int_equal(rig_calls(&r.rig, "patch nodes/status sim-00200"), 1);
    rig_pass(&r.rig, 50);
    assert_int_equal(rig_calls(&r.rig, "patch nodes/status sim-00001"), 1);
    assert_true(agent_ready(r.rig.agent));
    fini(&r);
}

static void test_after_a_pause_nothing_is_made_up_for(void **state)
{
    struct fleet_rig r;

    init(&r, 0);
    down(&r);
    r.beats = true;
    up(&r, 100);
    rig_pass(&r.rig, 20);
    port_mem_log_clear(r.rig.mem);
    rig_set_now(&r.rig, r.rig.clock.now_ns + 600 * RIG_SECOND_NS);
    rig_settle(&r.rig);
    assert_in_range(renewals(&r), 1, 10);
    fini(&r);
}

static void test_a_node_that_was_given_up_on_comes_back(void **state)
{
    struct fleet_rig r;

    init(&r, 2);
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json doc = json_clone(rig_peek(&r.rig, API_NODE, "sim-00002"), &a);
    struct json *ready = (struct json *)json_item(json_at(&doc, "status.conditions"), 3);

    json_put(ready, &a, HK_STR("status"), json_make_str(HK_STR("Unknown")));
    assert_int_equal(port_mem_put(r.rig.mem, &doc, NULL), 0);
    rig_settle(&r.rig);
    assert_string_equal(rig_at(&r.rig, API_NODE, "sim-00002", "status.conditions.3.status"),
                        "True");
    fini(&r);
}

static void test_what_is_missing_is_made_and_what_is_too_much_removed(void **state)
{
    struct fleet_rig r;

    init(&r, 10);
    assert_true(port_mem_remove(r.rig.mem, api_kind(API_NODE), HK_STR(""), HK_STR("sim-00003")));
    rig_settle(&r.rig);
    assert_int_equal(nodes(&r), 10);
    down(&r);
    up(&r, 4);
    assert_int_equal(nodes(&r), 4);
    assert_true(agent_ready(r.rig.agent));
    fini(&r);
}

static void test_a_node_that_is_not_as_it_should_be_is_mended(void **state)
{
    struct fleet_rig r;

    init(&r, 2);
    down(&r);
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json doc = json_clone(rig_peek(&r.rig, API_NODE, "sim-00002"), &a);

    json_put((struct json *)json_at(&doc, "status.allocatable"), &a, HK_STR("cpu"),
             json_make_str(HK_STR("99")));
    assert_int_equal(port_mem_put(r.rig.mem, &doc, NULL), 0);
    up(&r, 2);
    assert_string_equal(rig_at(&r.rig, API_NODE, "sim-00002", "status.allocatable.cpu"), "4");
    assert_true(agent_ready(r.rig.agent));
    fini(&r);
}

static void test_pods_of_the_fleet_run_and_others_are_left_alone(void **state)
{
    struct fleet_rig r;

    init(&r, 3);
    pod(&r, "a", "sim-00001", "duration", "5s");
    pod(&r, "b", "sim-00003", "exit-code", "3");
    pod(&r, "c", "sim-00002", "duration", "forever");
    pod(&r, "d", "elsewhere", "duration", "5s");
    pod(&r, "e", "sim-00004", "duration", "5s");
    pod(&r, "f", "sim-00002", "delay", "3s");
    assert_pod(&r.rig, "a", "phase", "Running");
    assert_pod(&r.rig, "f", "phase", "Pending");
    assert_pod(&r.rig, "f", "containerStatuses.0.state.waiting.reason", "ContainerCreating");
    assert_pod(&r.rig, "d", "phase", "");
    assert_pod(&r.rig, "e", "phase", "");
    pass(&r, 5);
    assert_pod(&r.rig, "a", "phase", "Succeeded");
    assert_pod(&r.rig, "b", "phase", "Running");
    assert_pod(&r.rig, "f", "phase", "Running");
    pass(&r, 20);
    assert_pod(&r.rig, "b", "phase", "Failed");
    assert_pod(&r.rig, "b", "containerStatuses.0.state.terminated.exitCode", "3");
    assert_pod(&r.rig, "c", "phase", "Running");
    assert_pod(&r.rig, "f", "phase", "Succeeded");
    /* Two patches each: running, and ended. */
    assert_int_equal(rig_calls(&r.rig, "patch pods/status d/a"), 2);
    rig_delete(&r.rig, "c", 30);
    pass(&r, 1);
    assert_int_equal(rig_calls(&r.rig, "delete pods d/c"), 1);
    fini(&r);
}

static void test_a_restart_takes_nothing_from_the_time_that_has_passed(void **state)
{
    struct fleet_rig r;

    init(&r, 2);
    pod(&r, "a", "sim-00001", "duration", "60s");
    pass(&r, 20);
    down(&r);
    rig_set_now(&r.rig, r.rig.clock.now_ns + 30 * RIG_SECOND_NS);
    up(&r, 2);
    assert_pod(&r.rig, "a", "phase", "Running");
    pass(&r, 9);
    assert_pod(&r.rig, "a", "phase", "Running");
    pass(&r, 1);
    assert_pod(&r.rig, "a", "phase", "Succeeded");
    assert_pod(&r.rig, "a", "containerStatuses.0.state.terminated.startedAt",
               "2026-01-02T10:00:00Z");
    assert_pod(&r.rig, "a", "containerStatuses.0.state.terminated.finishedAt",
               "2026-01-02T10:01:00Z");
    fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fleet_registers_once_and_is_silent),
        cmocka_unit_test(test_nodes_that_have_to_say_that_they_live_do_so_evenly),
        cmocka_unit_test(test_after_a_pause_nothing_is_made_up_for),
        cmocka_unit_test(test_a_node_that_was_given_up_on_comes_back),
        cmocka_unit_test(test_what_is_missing_is_made_and_what_is_too_much_removed),
        cmocka_unit_test(test_a_node_that_is_not_as_it_should_be_is_mended),
        cmocka_unit_test(test_pods_of_the_fleet_run_and_others_are_left_alone),
        cmocka_unit_test(test_a_restart_takes_nothing_from_the_time_that_has_passed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
