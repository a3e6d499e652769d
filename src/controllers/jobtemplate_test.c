// SPDX-License-Identifier: Apache-2.0
// JobTemplates: the jobs in their status.
#include "controllers/rig_test.h"
#include "controllers/table.h"

static const struct ctl_type *const types[] = {&ctl_jobtemplate};

#define TEMPLATE(name)                                                                             \
    "apiVersion: flow.volcano.sh/v1alpha1\n"                                                       \
    "kind: JobTemplate\n"                                                                          \
    "metadata: {name: " name ", namespace: d}\n"
#define JOB_OF(name, template)                                                                     \
    "apiVersion: batch.volcano.sh/v1alpha1\n"                                                      \
    "kind: Job\n"                                                                                  \
    "metadata: {name: " name ", namespace: d, labels: {volcano.sh/createdByJobTemplate: "          \
    "'" template "'}}\n"

static void the_status_names_the_jobs_there_are(void **state)
{
    struct rig r;

    rig_init(&r, types, HK_LEN(types));
    rig_put(&r, TEMPLATE("t") "---\n" JOB_OF("b", "d.t") "---\n" JOB_OF("a", "d.t") "---\n" JOB_OF(
                    "c", "d.other"));
    rig_manager(&r);
    rig_settle(&r);
    rig_expect(&r, API_JOBTEMPLATE, "t", "status.jobDependsOnList", "[\"a\",\"b\"]");
    assert_int_equal(manager_metrics(r.m)->writes[PORT_UPDATE], 1);
    rig_remove(&r, API_JOB, "a");
    rig_settle(&r);
    rig_expect(&r, API_JOBTEMPLATE, "t", "status.jobDependsOnList", "[\"b\"]");
    rig_remove(&r, API_JOB, "b");
    rig_settle(&r);
    rig_expect(&r, API_JOBTEMPLATE, "t", "status", "{}");
    rig_fini(&r);
}

static void a_template_without_jobs_is_left_alone(void **state)
{
    struct rig r;

    rig_init(&r, types, HK_LEN(types));
    rig_put(&r, TEMPLATE("t"));
    rig_manager(&r);
    rig_settle(&r);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_UPDATE], 0);
    rig_fini(&r);
}

static void names_may_have_dots(void **state)
{
    struct rig r;

    rig_init(&r, types, HK_LEN(types));
    rig_put(&r, TEMPLATE("t.v2"));
    rig_manager(&r);
    rig_settle(&r);
    rig_put(&r, JOB_OF("a", "d.t.v2"));
    rig_settle(&r);
    rig_expect(&r, API_JOBTEMPLATE, "t.v2", "status.jobDependsOnList", "[\"a\"]");
    rig_fini(&r);
}

static void a_write_that_fails_is_tried_again(void **state)
{
    struct rig r;

    rig_init(&r, types, HK_LEN(types));
    rig_put(&r, TEMPLATE("t") "---\n" JOB_OF("a", "d.t"));
    port_mem_fail(r.mem, PORT_UPDATE, 1, HK_EBUSY);
    rig_manager(&r);
    rig_pass(&r, 1);
    rig_expect(&r, API_JOBTEMPLATE, "t", "status.jobDependsOnList", "[\"a\"]");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_status_names_the_jobs_there_are),
        cmocka_unit_test(a_template_without_jobs_is_left_alone),
        cmocka_unit_test(names_may_have_dots),
        cmocka_unit_test(a_write_that_fails_is_tried_again),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
