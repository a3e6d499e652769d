// SPDX-License-Identifier: Apache-2.0
// Simulated nodes: options become the resources that the nodes report, and the nodes appear.
#include "host/sim_nodes.h"

#include "api/port_mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { WORDS_MAX = 8, TURNS = 50 };

struct fixture {
    struct port_mem *mem;
    struct hk_clock_manual clock;
    struct hk_rand rand;
    struct sim_nodes nodes;
    struct sim_nodes_opts o;
    struct hk_err err;
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    f->mem = port_mem_new(0);
    hk_clock_manual_init(&f->clock, (int64_t)1000000000 * 1000000000);
    hk_rand_seed(&f->rand, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    sim_nodes_end(&f->nodes);
    port_free(port_mem_port(f->mem));
    hk_free(f);
    return 0;
}

static int parse(struct fixture *f, const char *line)
{
    static char text[128];
    char *argv[WORDS_MAX], *rest = text;
    int argc = 0;

    snprintf(text, sizeof(text), "%s", line);
    for (char *word; (word = strsep(&rest, " ")) && argc < WORDS_MAX;) {
        argv[argc++] = word;
    }
    f->o = sim_nodes_opts_default();
    return option_parse(sim_nodes_options, argc, argv, &f->o, &f->err);
}

static void start(struct fixture *f, const char *line)
{
    if (parse(f, line) < 0) {
        fail_msg("%s", f->err.text);
    }
    f->o.lease_ns = (int64_t)40 * 1000000000;
    f->o.address = "127.0.0.1";
    sim_nodes_start(&f->nodes, &f->o, port_mem_port(f->mem), &f->clock.clock, &f->rand);
    for (int i = 0; i < TURNS && f->nodes.agent; i++) {
        sim_nodes_run(&f->nodes);
        port_poll(port_mem_port(f->mem), UINT32_MAX);
        f->clock.now_ns += 1000000;
    }
}

static const char *capacity(struct fixture *f, const char *node, const char *resource)
{
    static char text[64];
    const struct api_object *o =
        port_mem_peek(f->mem, api_kind(API_NODE), HK_STR(""), hk_str(node));

    assert_non_null(o);
    snprintf(
        text, sizeof(text), "%.*s",
        HK_FMT(json_str(json_get(json_at(&o->root, "status.capacity"), resource), HK_STR("none"))));
    return text;
}

static void nodes_report_what_the_options_say(void **state)
{
    struct fixture *f = *state;

    start(f, "--sim-nodes=2 --sim-cpu=1500m --sim-memory=64Gi --sim-gpus=4 --sim-pods=20");
    assert_string_equal(capacity(f, "sim-00002", "cpu"), "1500m");
    assert_string_equal(capacity(f, "sim-00002", "memory"), "64Gi");
    assert_string_equal(capacity(f, "sim-00002", "ephemeral-storage"), "1Ti");
    assert_string_equal(capacity(f, "sim-00002", "nvidia.com/gpu"), "4");
    assert_string_equal(capacity(f, "sim-00002", "pods"), "20");
    assert_null(port_mem_peek(f->mem, api_kind(API_NODE), HK_STR(""), HK_STR("sim-00003")));
}

static void without_gpus_there_is_no_such_resource(void **state)
{
    struct fixture *f = *state;

    start(f, "--sim-nodes=1");
    assert_string_equal(capacity(f, "sim-00001", "cpu"), "32");
    assert_string_equal(capacity(f, "sim-00001", "nvidia.com/gpu"), "none");
}

static void no_nodes_are_no_agent(void **state)
{
    struct fixture *f = *state;

    start(f, "--sim-nodes=0");
    assert_null(f->nodes.agent);
    assert_int_equal(sim_nodes_run(&f->nodes), INT64_MAX);
    assert_int_equal(port_mem_log(f->mem).n, 0);
}

static void a_bad_model_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_true(parse(f, "--sim-model=speed=1") < 0);
    assert_non_null(strstr(f->err.text, "option --sim-model is 'speed=1': "));
    assert_true(parse(f, "--sim-model=/no/such/file") < 0);
    assert_non_null(strstr(f->err.text, "option --sim-model, file '/no/such/file': "));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(nodes_report_what_the_options_say),
        TEST(without_gpus_there_is_no_such_resource),
        TEST(no_nodes_are_no_agent),
        TEST(a_bad_model_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("host/sim_nodes", tests, NULL, NULL);
}
