// SPDX-License-Identifier: Apache-2.0
// What a node finds on its machine: CPUs, memory, GPUs, and resources that run low.
#include "agent/rig_test.h"

#include <unistd.h>

#define GPU(minor, uuid)                                                                           \
    "Model: \t\t NVIDIA A100-SXM4-40GB\n"                                                          \
    "IRQ:   \t\t 35\n"                                                                             \
    "GPU UUID: \t " uuid "\n"                                                                      \
    "Device Minor: \t " minor "\n"

static void put_gpus(struct rig *r)
{
    rig_machine_file(r, "/proc/driver/nvidia/gpus/0000:3b:00.0/information", GPU("1", "GPU-bb"));
    rig_machine_file(r, "/proc/driver/nvidia/gpus/0000:1a:00.0/information", GPU("0", "GPU-aa"));
    rig_machine_file(r, "/proc/driver/nvidia/gpus/0000:5e:00.0/information", GPU("2", "GPU-??"));
    rig_machine_file(r, "/dev/nvidia0", "");
    rig_machine_file(r, "/dev/nvidia1", "");
    rig_machine_file(r, "/dev/nvidia2", "");
}

static const char *text_of(struct rig *r, const struct json *v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    json_write(v, &out);
    return hk_arena_str(&r->text, hk_buf_str(&out)).s;
}

static void test_capacity_is_what_the_kernel_tells(void **state)
{
    struct rig r;
    struct json has;

    rig_init(&r);
    rig_machine_file(&r, "/proc/meminfo", "MemTotal:  4096 kB\nMemAvailable: 1024 kB\n");
    rig_machine_file(&r, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "3\n");
    rig_machine_file(&r, "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n");
    has = machine_capacity(&r.machine, &r.text);
    assert_string_equal(json_str(json_get(&has, "memory"), HK_STR("")).s, "4096Ki");
    assert_string_equal(json_str(json_get(&has, "pods"), HK_STR("")).s, "500");
    assert_string_equal(json_str(json_get(&has, "hugepages-2Mi"), HK_STR("")).s, "6Mi");
    assert_string_equal(json_str(json_get(&has, "hugepages-1Gi"), HK_STR("")).s, "0");
    assert_null(json_get(&has, "nvidia.com/gpu"));
    assert_null(json_get(&has, "ephemeral-storage"));

    rig_machine_file(&r, "/sys/fs/cgroup/memory.max", "1048576\n");
    put_gpus(&r);
    r.machine.dir = r.dir;
    has = machine_capacity(&r.machine, &r.text);
    assert_string_equal(json_str(json_get(&has, "memory"), HK_STR("")).s, "1024Ki");
    assert_string_equal(json_str(json_get(&has, "nvidia.com/gpu"), HK_STR("")).s, "3");
    assert_non_null(json_get(&has, "ephemeral-storage"));
    rig_fini(&r);
}

static void test_labels_and_topology_tell_sockets_cores_and_numa_nodes(void **state)
{
    struct rig r;
    struct json labels, spec;

    rig_init(&r);
    put_gpus(&r);
    r.machine.synthetic = "pack:2 [numa] core:2 pu:2";
    labels = machine_labels(&r.machine, &r.text);
    assert_string_equal(text_of(&r, &labels),
                        "{\"hekla.io/cpu-sockets\":\"2\",\"hekla.io/cpu-cores\":\"4\","
                        "\"hekla.io/numa-nodes\":\"2\","
                        "\"nvidia.com/gpu.product\":\"NVIDIA-A100-SXM4-40GB\","
                        "\"nvidia.com/gpu.count\":\"3\"}");
    spec = machine_topology(&r.machine, &r.text);
    assert_string_equal(text_of(&r, json_get(&spec, "numares")),
                        "{\"cpu\":{\"allocatable\":\"0-7\",\"capacity\":8}}");
    assert_string_equal(text_of(&r, json_get(json_get(&spec, "cpuDetail"), "0")),
                        "{\"numa\":0,\"socket\":0,\"core\":0}");
    assert_string_equal(text_of(&r, json_get(json_get(&spec, "cpuDetail"), "7")),
                        "{\"numa\":1,\"socket\":1,\"core\":3}");
    rig_fini(&r);
}

/* ---- the node ---- */

/* Restarts the agent, so that it reads the changed machine. */
static void again(struct rig *r)
{
    rig_down(r);
    rig_up(r);
}

static const char *condition(struct rig *r, const char *type, const char *key)
{
    const struct json *list = json_at(rig_peek(r, API_NODE, "n1"), "status.conditions");

    for (uint32_t i = 0; json_item(list, i); i++) {
        if (hk_str_is(json_str(json_get(json_item(list, i), "type"), HK_STR("")), type)) {
            return hk_arena_str(&r->text, json_str(json_get(json_item(list, i), key), HK_STR("")))
                .s;
        }
    }
    return "";
}

static void test_pressure_is_told_when_it_comes_and_when_it_goes(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_machine_file(&r, "/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n");
    rig_machine_file(&r, "/proc/loadavg", "0.20 0.18 0.12 1/80 11206\n");
    rig_machine_file(&r, "/proc/sys/kernel/pid_max", "1000\n");
    rig_machine_file(&r, "/etc/machine-id", "4711\n");
    again(&r);
    assert_string_equal(condition(&r, "MemoryPressure", "status"), "False");
    assert_string_equal(rig_at(&r, API_NODE, "n1", "status.nodeInfo.machineID"), "4711");
    rig_pass(&r, 60);
    rig_machine_file(&r, "/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable: 50000 kB\n");
    rig_pass(&r, 10);
    assert_string_equal(condition(&r, "MemoryPressure", "status"), "True");
    assert_string_equal(condition(&r, "MemoryPressure", "reason"), "KubeletHasInsufficientMemory");
    assert_string_equal(condition(&r, "PIDPressure", "status"), "False");
    assert_string_equal(condition(&r, "Ready", "status"), "True");
    rig_machine_file(&r, "/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n");
    rig_machine_file(&r, "/proc/loadavg", "0.20 0.18 0.12 1/980 11206\n");
    rig_pass(&r, 10);
    assert_string_equal(condition(&r, "MemoryPressure", "status"), "False");
    assert_string_equal(condition(&r, "PIDPressure", "status"), "True");
    rig_fini(&r);
}

static void test_times_of_conditions_outlive_the_agent(void **state)
{
    struct rig r;
    const char *since;

    rig_init(&r);
    since = condition(&r, "Ready", "lastTransitionTime");
    rig_pass(&r, 100);
    again(&r);
    assert_string_equal(condition(&r, "Ready", "lastTransitionTime"), since);
    assert_string_not_equal(condition(&r, "Ready", "lastHeartbeatTime"), since);
    rig_fini(&r);
}

static void test_nothing_is_written_while_nothing_changes(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_machine_file(&r, "/proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n");
    again(&r);
    port_mem_log_clear(r.mem);
    rig_pass(&r, 290);
    assert_int_equal(rig_calls(&r, "patch nodes/status n1"), 0);
    rig_pass(&r, 20);
    assert_int_equal(rig_calls(&r, "patch nodes/status n1"), 1);
    rig_fini(&r);
}

static void test_the_topology_is_an_object_of_the_nodes_name(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_machine_file(&r, "/proc/meminfo", "");
    r.machine.synthetic = "pack:1 [numa] core:4 pu:1";
    again(&r);
    assert_string_equal(rig_at(&r, API_NUMATOPOLOGY, "n1", "spec.numares.cpu.capacity"), "4");
    assert_string_equal(rig_at(&r, API_NUMATOPOLOGY, "n1", "metadata.ownerReferences.0.kind"),
                        "Node");
    r.machine.synthetic = "pack:1 [numa] core:2 pu:1"; /* two CPUs were removed */
    again(&r);
    assert_string_equal(rig_at(&r, API_NUMATOPOLOGY, "n1", "spec.numares.cpu.capacity"), "2");
    assert_string_equal(rig_at(&r, API_NUMATOPOLOGY, "n1", "spec.cpuDetail"),
                        "{\"0\":{\"numa\":0,\"socket\":0,\"core\":0},"
                        "\"1\":{\"numa\":0,\"socket\":0,\"core\":1}}");
    rig_fini(&r);
}

/* ---- GPUs and pods ---- */

static void put_user(struct rig *r, const char *name, int n)
{
    rig_pod(r, name,
            hk_arena_printf(&r->text,
                            "  restartPolicy: Never\n"
                            "  containers:\n"
                            "  - name: %s\n"
                            "    image: i\n"
                            "    command: [work]\n"
                            "    env: [{name: CUDA_VISIBLE_DEVICES, value: '7'}]\n"
                            "    resources: {limits: {nvidia.com/gpu: %d}}\n",
                            name, n));
}

static void expect_env(struct rig *r, const char *container, const char *line)
{
    const struct fake_container *c = rig_container(r, container);

    if (!c || !strstr(c->env.data, hk_arena_printf(&r->text, "%s\n", line))) {
        fail_msg("want %s in %s", line, c ? c->env.data : "a container that never started");
    }
}

static bool is_covered(struct rig *r, const char *container, const char *device)
{
    return strstr(rig_container(r, container)->mounts.data,
                  hk_arena_printf(&r->text, "/dev/null -> %s\n", device)) != NULL;
}

static void test_containers_have_the_gpus_they_ask_for_and_no_others(void **state)
{
    struct rig r;

    rig_init(&r);
    put_gpus(&r);
    again(&r);
    put_user(&r, "one", 1);
    put_user(&r, "two", 2);
    expect_env(&r, "one", "CUDA_VISIBLE_DEVICES=GPU-aa");
    expect_env(&r, "one", "NVIDIA_VISIBLE_DEVICES=GPU-aa");
    expect_env(&r, "two", "CUDA_VISIBLE_DEVICES=1,2"); /* the UUID of the third is unknown */
    assert_false(is_covered(&r, "one", "/dev/nvidia0"));
    assert_true(is_covered(&r, "one", "/dev/nvidia1"));
    assert_true(is_covered(&r, "two", "/dev/nvidia0"));
    assert_false(is_covered(&r, "two", "/dev/nvidia2"));
    rig_pod(&r, "plain", "  containers: [{name: plain, image: i, command: [work]}]\n");
    expect_env(&r, "plain", "NVIDIA_VISIBLE_DEVICES=void");
    assert_true(is_covered(&r, "plain", "/dev/nvidia0"));

    put_user(&r, "late", 1);
    assert_pod(&r, "late", "containerStatuses.0.state.waiting.message",
               "1 of nvidia.com/gpu wanted, 0 free");
    again(&r); /* the assignment survives a restart */
    rig_pass(&r, 20);
    assert_null(rig_container(&r, "late"));
    rig_end(&r, "one", 0);
    rig_pass(&r, 20);
    expect_env(&r, "late", "CUDA_VISIBLE_DEVICES=GPU-aa");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capacity_is_what_the_kernel_tells),
        cmocka_unit_test(test_labels_and_topology_tell_sockets_cores_and_numa_nodes),
        cmocka_unit_test(test_pressure_is_told_when_it_comes_and_when_it_goes),
        cmocka_unit_test(test_times_of_conditions_outlive_the_agent),
        cmocka_unit_test(test_nothing_is_written_while_nothing_changes),
        cmocka_unit_test(test_the_topology_is_an_object_of_the_nodes_name),
        cmocka_unit_test(test_containers_have_the_gpus_they_ask_for_and_no_others),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
