// SPDX-License-Identifier: Apache-2.0
// Deletion of finished jobs after ttlSecondsAfterFinished.
#include "base/log.h"
#include "controllers/fault_rig_test.h"
#include "controllers/table.h"

static const struct ctl_type *const types[] = {&ctl_gc};

static struct rig rig;

static int setup(void **state)
{
    rig_init(&rig, types, HK_LEN(types));
    return 0;
}

static int teardown(void **state)
{
    rig_fini(&rig);
    return 0;
}

static void put_job(const char *spec, const char *state)
{
    char yaml[500];

    snprintf(yaml, sizeof(yaml),
             "apiVersion: batch.volcano.sh/v1alpha1\n"
             "kind: Job\n"
             "metadata: {name: j, namespace: d}\n"
             "spec: {%s}\n"
             "status: {state: {%s}}\n",
             spec, state);
    rig_put(&rig, yaml);
}

static bool is_there(void)
{
    return rig_get(&rig, API_JOB, "j") != NULL;
}

#define AT_START ", lastTransitionTime: '2026-01-02T10:00:00Z'"

static void a_finished_job_is_deleted_after_its_time_42(void **state)
{
    static const char *const phases[] = {"phase: Completed" AT_START, "phase: Failed" AT_START,
                                         "phase: Terminated" AT_START};

    for (unsigned k = 0; k < HK_LEN(phases); k++) {
        teardown(state);
        setup(state);
        rig_manager(&rig);
        put_job("ttlSecondsAfterFinished: 10", phases[k]);
        rig_pass(&rig, 9);
        assert_true(is_there());
        rig_pass(&rig, 1);
        assert_false(is_there());
        assert_int_equal(manager_metrics(rig.m)->writes[PORT_DELETE], 1);
    }
}

/* A port that records deletions. */
static struct {
    struct port port;
    enum port_propagation propagation;
    char uid[64];
} spy;

static uint64_t spy_submit(struct port *p, const struct port_request *req, struct port_sink sink)
{
    if (req->verb == PORT_DELETE) {
        spy.propagation = req->propagation;
        snprintf(spy.uid, sizeof(spy.uid), "%.*s", HK_FMT(req->if_uid));
    }
    return port_submit(port_mem_port(rig.mem), req, sink);
}

static void spy_cancel(struct port *p, uint64_t call)
{
    port_cancel(port_mem_port(rig.mem), call);
}

static uint32_t spy_poll(struct port *p, uint32_t max)
{
    return port_poll(port_mem_port(rig.mem), max);
}

static void the_deletion_names_the_uid_and_deletes_pods_first(void **state)
{
    static const struct port_ops ops = {
        .name = "spy", .submit = spy_submit, .cancel = spy_cancel, .poll = spy_poll};

    spy.port.ops = &ops;
    rig.port = &spy.port;
    rig_manager(&rig);
    put_job("ttlSecondsAfterFinished: 0", "phase: Completed" AT_START);
    rig_settle(&rig);
    assert_int_equal(spy.propagation, PORT_PROPAGATE_FOREGROUND);
    assert_string_equal(spy.uid, "u-j");
}

static void jobs_without_an_expired_ttl_stay(void **state)
{
    static const struct {
        const char *spec, *state;
    } cases[] = {
        {"ttlSecondsAfterFinished: 10", "phase: Aborted" AT_START},
        {"ttlSecondsAfterFinished: 10", "phase: Running" AT_START},
        {"ttlSecondsAfterFinished: 10", "phase: Completing" AT_START},
        {"ttlSecondsAfterFinished: 10", "phase: Completed"}, /* no finish time */
        {"queue: q", "phase: Completed" AT_START},
    };

    rig_manager(&rig);
    for (unsigned k = 0; k < HK_LEN(cases); k++) {
        put_job(cases[k].spec, cases[k].state);
        rig_pass(&rig, 100);
        if (!is_there()) {
            fail_msg("gone: {%s} {%s}", cases[k].spec, cases[k].state);
        }
    }
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_DELETE], 0);
}

static void aborted_jobs_are_deleted_if_configured(void **state)
{
    rig.conf.gc_aborted = true;
    rig_manager(&rig);
    put_job("ttlSecondsAfterFinished: 10", "phase: Aborted" AT_START);
    rig_pass(&rig, 10);
    assert_false(is_there());
}

static void no_time_at_all_is_at_once(void **state)
{
    rig_manager(&rig);
    put_job("ttlSecondsAfterFinished: 0", "phase: Completed" AT_START);
    rig_settle(&rig);
    assert_false(is_there());
}

static void more_time_given_in_between_counts(void **state)
{
    rig_manager(&rig);
    put_job("ttlSecondsAfterFinished: 10", "phase: Completed" AT_START);
    rig_pass(&rig, 5);
    put_job("ttlSecondsAfterFinished: 20", "phase: Completed" AT_START);
    rig_pass(&rig, 14);
    assert_true(is_there());
    rig_pass(&rig, 1);
    assert_false(is_there());
}

static void a_new_process_takes_the_time_from_the_job(void **state)
{
    rig_manager(&rig);
    put_job("ttlSecondsAfterFinished: 10", "phase: Completed" AT_START);
    rig_pass(&rig, 5);
    rig_restart(&rig);
    rig_pass(&rig, 4);
    assert_true(is_there());
    rig_pass(&rig, 1);
    assert_false(is_there());
}

static void play(struct fault_rig *f)
{
    put_job("ttlSecondsAfterFinished: 10", "phase: Completed" AT_START);
    fault_rig_pass(f);
}

static void describe(struct hk_buf *out)
{
    hk_buf_addf(out, "%u jobs", rig_count(&rig, API_JOB));
}

static void with_any_fault_the_job_is_deleted(void **state)
{
    fault_rig_run_all_faults(&(struct fault_story){&rig, types, HK_LEN(types), play, describe},
                             "0 jobs");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_finished_job_is_deleted_after_its_time_42),
        TEST(the_deletion_names_the_uid_and_deletes_pods_first),
        TEST(jobs_without_an_expired_ttl_stay),
        TEST(aborted_jobs_are_deleted_if_configured),
        TEST(no_time_at_all_is_at_once),
        TEST(more_time_given_in_between_counts),
        TEST(a_new_process_takes_the_time_from_the_job),
        cmocka_unit_test(with_any_fault_the_job_is_deleted),
    };

    hk_log_set_level(HK_LOG_ERROR);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/gc", tests, NULL, NULL);
}
