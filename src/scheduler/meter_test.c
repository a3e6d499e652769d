// SPDX-License-Identifier: Apache-2.0
// The metrics of a running scheduler.
#include "scheduler/loop_rig_test.h"
#include "scheduler/plugin.h"

static const char *scrape(struct rig *r, struct hk_buf *out)
{
    hk_buf_clear(out);
    hk_buf_addc(out, '\n');
    loop_write_metrics(r->l, out);
    return out->data;
}

static void expect(struct rig *r, const char *line)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0}, whole = {0};

    hk_buf_addf(&whole, "\n%s\n", line);
    if (!strstr(scrape(r, &out), whole.data)) {
        fail_msg("expected the line: %s\ngot:%s", line, out.data);
    }
}

static void expect_none(struct rig *r, const char *part)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    if (strstr(scrape(r, &out), part)) {
        fail_msg("not expected: %s\ngot:%s", part, out.data);
    }
}

/* ---- text ---- */

static uint32_t count_lines(struct hk_str text, struct hk_str line)
{
    struct hk_str one;
    uint32_t n = 0;

    while (hk_str_cut(&text, '\n', &one)) {
        n += hk_str_eq(one, line);
    }
    return n;
}

/* Prometheus refuses a scrape with a duplicate series or header. */
static void no_line_is_there_twice(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct rig *r = rig_new(NULL);
    struct hk_str rest, line;

    rig_small_cluster(r);
    for (int i = 0; i < 3; i++) { /* the same names in several namespaces */
        rig_put(r,
                "{'apiVersion':'scheduling.volcano.sh/v1beta1','kind':'PodGroup','metadata':{"
                "'name':'g','namespace':'n%d','uid':'g%d'},'spec':{'minMember':1,'queue':'q'}}",
                i, i);
        rig_put(r,
                "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','namespace':'n%d',"
                "'uid':'p%d','annotations':{'scheduling.k8s.io/group-name':'g'}},'spec':{"
                "'schedulerName':'volcano','containers':[{'name':'c','resources':{'requests':{"
                "'cpu':'3'}}}]},'status':{'phase':'Pending'}}",
                i, i);
    }
    rig_run(r);
    rest = hk_str(scrape(r, &out));
    while (hk_str_cut(&rest, '\n', &line)) {
        const char *space = line.n > 0 ? memrchr(line.s, ' ', line.n) : NULL;
        const struct hk_str text = hk_buf_str(&out);

        if (line.n == 0 || line.s[0] == '#') {
            assert_true(line.n == 0 || count_lines(text, line) == 1);
            continue;
        }
        assert_non_null(space);
        struct hk_str other = text, one;
        const struct hk_str series = {line.s, (size_t)(space - line.s) + 1};
        uint32_t n = 0;
        while (hk_str_cut(&other, '\n', &one)) {
            n += one.n >= series.n && memcmp(one.s, series.s, series.n) == 0;
        }
        if (n != 1) {
            fail_msg("%u times: %.*s", n, HK_FMT(line));
        }
    }
    rig_free(r);
}

static void before_the_first_session_there_is_nothing_but_zeros(void **state)
{
    struct rig *r = rig_new(NULL);

    expect(r, "volcano_e2e_scheduling_latency_milliseconds_count 0");
    expect(r, "volcano_schedule_attempts_total{result=\"scheduled\"} 0");
    expect(r, "volcano_unschedule_job_count 0");
    expect_none(r, "queue_name");
    rig_free(r);
}

/* ---- counters ---- */

static void sessions_actions_and_plugins_are_timed(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);
    char line[128];

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_run(r);
    snprintf(line, sizeof(line), "volcano_e2e_scheduling_latency_milliseconds_count %llu",
             (unsigned long long)rig_sessions(r));
    expect(r, line);
    snprintf(line, sizeof(line), "volcano_open_session_duration_milliseconds_count %llu",
             (unsigned long long)rig_sessions(r));
    expect(r, line);
    snprintf(line, sizeof(line),
             "volcano_action_scheduling_latency_milliseconds_count{action=\"allocate\"} %llu",
             (unsigned long long)rig_sessions(r));
    expect(r, line);
    snprintf(line, sizeof(line),
             "volcano_plugin_scheduling_latency_milliseconds_count{plugin=\"predicates\","
             "OnSession=\"OnSessionOpen\"} %llu",
             (unsigned long long)rig_sessions(r));
    expect(r, line);
    expect_none(r, "action=\"preempt\"");
    rig_free(r);
}

static void a_task_is_timed_from_its_creation_to_its_bind(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_run(r);
    rig_move_clock(r, 2 * SEC - (r->clock.now_ns - RIG_START));
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1"); /* created at RIG_START */
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    static const char *const stages[] = {"Watched", "Assumed", "PreBound", "Bound"};
    for (size_t k = 0; k < HK_LEN(stages); k++) {
        char line[128];
        snprintf(line, sizeof(line),
                 "volcano_task_scheduling_latency_milliseconds_count{stage=\"%s\"} 1", stages[k]);
        expect(r, line);
    }
    expect(r, "volcano_task_scheduling_latency_milliseconds_sum{stage=\"Watched\"} 2000");
    expect(r, "volcano_scheduling_stage_duration_milliseconds_count{stage=\"Bind\"} 1");
    expect(r, "volcano_schedule_attempts_total{result=\"scheduled\"} 1");
    expect(r, "volcano_e2e_job_scheduling_latency_milliseconds_count 1");
    expect(r, "volcano_e2e_job_scheduling_start_time{job_name=\"g\",queue=\"q\",job_namespace="
              "\"d\"} 1704164645");
    expect(r, "volcano_e2e_job_scheduling_last_time{job_name=\"g\",queue=\"q\",job_namespace="
              "\"d\"} 1704164647");
    rig_free(r);
}

static void pods_that_were_there_before_are_not_watched(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_run(r);
    expect_none(r, "stage=\"Watched\"");
    rig_free(r);
}

static void a_bind_that_fails_is_an_error(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_run(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    port_mem_fail(r->mem, PORT_CREATE, 1, HK_EIO);
    rig_run_for(r, 10 * SEC);
    expect(r, "volcano_schedule_attempts_total{result=\"error\"} 1");
    expect(r, "volcano_schedule_attempts_total{result=\"scheduled\"} 1");
    rig_free(r);
}

static void a_gang_that_is_short_is_counted_while_it_exists(void **state)
{
    struct rig *r = rig_new(RIG_PLAIN);

    rig_small_cluster(r);
    rig_group(r, "g", 3, "");
    rig_pod(r, "a", "g", "3");
    rig_pod(r, "b", "g", "3");
    rig_pod(r, "c", "g", "3");
    rig_run(r);
    expect(r, "volcano_unschedule_task_count{job_ns=\"d\",job_id=\"g\"} 2");
    expect(r, "volcano_unschedule_job_count 1");
    expect(r, "volcano_job_retry_counts{job_ns=\"d\",job_id=\"g\"} 1");
    rig_node(r, "n2", "4", "16Gi");
    rig_run(r);
    expect(r, "volcano_unschedule_task_count{job_ns=\"d\",job_id=\"g\"} 1");
    expect(r, "volcano_job_retry_counts{job_ns=\"d\",job_id=\"g\"} 2");
    rig_node(r, "n3", "4", "16Gi");
    rig_run(r);
    expect(r, "volcano_unschedule_task_count{job_ns=\"d\",job_id=\"g\"} 0");
    expect(r, "volcano_unschedule_job_count 0");
    rig_remove(r, API_PODGROUP, "g");
    rig_run(r);
    expect_none(r, "job_id=\"g\"");
    expect_none(r, "job_name=\"g\"");
    rig_group(r, "g", 1, ""); /* a new group of that name starts from zero */
    rig_run(r);
    expect_none(r, "volcano_job_retry_counts{");
    rig_free(r);
}

static void preemption_is_counted(void **state)
{
    struct rig *r = rig_new(RIG_PREEMPTING);

    rig_small_cluster(r);
    rig_put(r, "{'apiVersion':'scheduling.k8s.io/v1','kind':'PriorityClass','metadata':{'name':"
               "'high','uid':'h'},'value':1000}");
    rig_group(r, "low", 1, "");
    rig_pod_of(r, "a", "low", "3", ",'priority':1");
    rig_run(r);
    rig_start(r, "a");
    rig_put(r, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','namespace':'d','uid':'p-a',"
               "'labels':{'volcano.sh/preemptable':'true'},"
               "'annotations':{'scheduling.k8s.io/group-name':'low'}},'spec':{'nodeName':'n1',"
               "'schedulerName':'volcano','priority':1,'containers':[{'name':'c','resources':{"
               "'requests':{'cpu':'3','memory':'1Gi'}}}]},'status':{'phase':'Running'}}");
    rig_group(r, "high", 1, ",'priorityClassName':'high'");
    rig_pod_of(r, "b", "high", "3", ",'priority':1000,'priorityClassName':'high'");
    rig_run(r);
    expect(r, "volcano_total_preemption_attempts 1");
    expect(r, "volcano_pod_preemption_victims 1");
    expect(r, "volcano_eviction_transactions_total{action=\"preempt\"} 1");
    expect(r, "volcano_queue_evicted_pods_total{action=\"preempt\",queue_name=\"q\"} 1");
    expect(r, "volcano_queue_evictions_caused_total{action=\"preempt\",queue_name=\"q\"} 1");
    rig_free(r);
}

/* ---- queues ---- */

static void queues_show_what_they_hold_ask_for_and_deserve(void **state)
{
    struct rig *r = rig_new(NULL);

    rig_small_cluster(r);
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_pod(r, "b", "g", "100");
    rig_run(r);
    expect(r, "volcano_queue_allocated_milli_cpu{queue_name=\"q\"} 1000");
    expect(r, "volcano_queue_allocated_memory_bytes{queue_name=\"q\"} 1073741824");
    expect(r, "volcano_queue_allocated_scalar_resources{queue_name=\"q\",resource=\"pods\"} 1");
    expect(r, "volcano_queue_request_milli_cpu{queue_name=\"q\"} 101000");
    expect(r, "volcano_queue_deserved_milli_cpu{queue_name=\"q\"} 4000");
    expect(r, "volcano_queue_share{queue_name=\"q\"} 0.5");
    expect(r, "volcano_queue_weight{queue_name=\"q\"} 1");
    expect(r, "volcano_queue_overused{queue_name=\"q\"} 0");
    expect(r, "volcano_job_share{job_ns=\"d\",job_id=\"g\"} 0.25");
    expect_none(r, "volcano_queue_real_capacity_milli_cpu{");
    rig_queue(r, "late", ""); /* after the last session */
    rig_remove(r, API_QUEUE, "default");
    rig_run(r);
    expect(r, "volcano_queue_allocated_milli_cpu{queue_name=\"late\"} 0");
    expect_none(r, "queue_name=\"default\"");
    rig_free(r);
}

static void a_resource_once_shown_stays_as_zero(void **state)
{
    struct rig *r = rig_new(NULL);

    rig_small_cluster(r);
    rig_put(r, "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n1','uid':'n-n1'},'status':{"
               "'allocatable':{'cpu':'4','memory':'16Gi','pods':'10','x.com/gpu':'2'}}}");
    rig_group(r, "g", 1, "");
    rig_put(r, "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','namespace':'d','uid':'p-a',"
               "'annotations':{'scheduling.k8s.io/group-name':'g'}},'spec':{'schedulerName':"
               "'volcano','containers':[{'name':'c','resources':{'requests':{'x.com/gpu':'1'}}}]},"
               "'status':{'phase':'Pending'}}");
    rig_run(r);
    expect(r, "volcano_queue_allocated_scalar_resources{queue_name=\"q\",resource=\"x.com/gpu\"} "
              "1000");
    rig_remove(r, API_POD, "a");
    rig_run(r);
    expect(r,
           "volcano_queue_allocated_scalar_resources{queue_name=\"q\",resource=\"x.com/gpu\"} 0");
    rig_free(r);
}

static void a_tree_of_queues_adds_up(void **state)
{
    struct rig *r = rig_new("actions: \"enqueue, allocate\"\n"
                            "tiers:\n"
                            "- plugins:\n"
                            "  - name: gang\n"
                            "  - name: capacity\n"
                            "    enableHierarchy: true\n"
                            "  - name: predicates\n");

    rig_queue(r, "root", "");
    rig_queue(r, "default", ",'parent':'root'");
    rig_queue(r, "top", ",'parent':'root','capability':{'cpu':'3'}");
    rig_queue(r, "q", ",'parent':'top'");
    rig_node(r, "n1", "4", "16Gi");
    rig_group(r, "g", 1, "");
    rig_pod(r, "a", "g", "1");
    rig_run(r);
    assert_string_equal(rig_field(r, API_POD, "a", "spec.nodeName"), "n1");
    expect(r, "volcano_queue_allocated_milli_cpu{queue_name=\"q\"} 1000");
    expect(r, "volcano_queue_allocated_milli_cpu{queue_name=\"top\"} 1000");
    expect(r, "volcano_queue_request_milli_cpu{queue_name=\"root\"} 1000");
    expect(r, "volcano_queue_allocated_milli_cpu{queue_name=\"default\"} 0");
    expect(r, "volcano_queue_capacity_milli_cpu{queue_name=\"top\"} 3000");
    expect(r, "volcano_queue_real_capacity_milli_cpu{queue_name=\"top\"} 3000");
    rig_free(r);
}

/* Counting allocates no memory. */
static void counting_takes_no_memory(void **state)
{
    struct hk_clock_manual clock;
    struct meter *x;

    hk_clock_manual_init(&clock, RIG_START);
    x = meter_new(&clock.clock);
    const uint64_t before = hk_alloc_calls();
    meter_session(x, meter_start(x));
    meter_open(x, 0);
    meter_plugin(x, plugin_table[0], true, 0);
    meter_action(x, action_table[0], 0);
    meter_stage(x, METER_BIND, 0);
    meter_attempts(x, METER_ERROR, 1);
    meter_evicted(x, "preempt");
    assert_int_equal(hk_alloc_calls(), before);
    meter_free(x);
    meter_session(NULL, meter_start(NULL)); /* without a meter */
    meter_stage(NULL, METER_BIND, 0);
    meter_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_line_is_there_twice),
        cmocka_unit_test(before_the_first_session_there_is_nothing_but_zeros),
        cmocka_unit_test(sessions_actions_and_plugins_are_timed),
        cmocka_unit_test(a_task_is_timed_from_its_creation_to_its_bind),
        cmocka_unit_test(pods_that_were_there_before_are_not_watched),
        cmocka_unit_test(a_bind_that_fails_is_an_error),
        cmocka_unit_test(a_gang_that_is_short_is_counted_while_it_exists),
        cmocka_unit_test(preemption_is_counted),
        cmocka_unit_test(queues_show_what_they_hold_ask_for_and_deserve),
        cmocka_unit_test(a_resource_once_shown_stays_as_zero),
        cmocka_unit_test(a_tree_of_queues_adds_up),
        cmocka_unit_test(counting_takes_no_memory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("scheduler/meter", tests, NULL, NULL);
}
