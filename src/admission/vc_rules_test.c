// SPDX-License-Identifier: Apache-2.0
// The table of rules: which operations each refuses, which rules run in process, and the small
// kinds (CronJob, JobFlow, HyperNode).
#include "admission/vc_rig_test.h"

static void wrong_operations_are_refused(void **state)
{
    static const struct {
        const char *path, *operation, *want; /* "": allowed */
    } cases[] = {
        {"/jobs/mutate", "CONNECT", "expect operation to be 'CREATE' "},
        {"/pods/mutate", "DELETE", "expect operation to be 'CREATE' "},
        {"/jobs/validate", "DELETE", "expect operation to be 'CREATE' or 'UPDATE'"},
        {"/cronjobs/validate", "CONNECT", "expect operation to be 'CREATE' or 'UPDATE'"},
        {"/jobflows/validate", "DELETE", "expect operation to be 'CREATE' or 'UPDATE'"},
        {"/pods/validate", "UPDATE", "expect operation to be 'CREATE'"},
        {"/podgroups/validate", "UPDATE", "unsupported operation UPDATE"},
        {"/podgroups/mutate", "UPDATE",
         "invalid operation `UPDATE`, expect operation to be `CREATE`"},
        {"/queues/mutate", "DELETE", "invalid operation `DELETE`, expect operation to be `CREATE`"},
        {"/queues/validate", "CONNECT",
         "invalid operation `CONNECT`, expect operation to be `CREATE`, `UPDATE` or `DELETE`"},
        {"/queues/validate", "DELETE", ""},
        {"/hypernodes/validate", "DELETE", ""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf why = {0};
        const bool refused = volcano_refuses_operation(volcano_rule_find(hk_str(cases[i].path)),
                                                       hk_str(cases[i].operation), &why);
        assert_string_equal(hk_buf_str(&why).s, cases[i].want);
        assert_int_equal(refused, *cases[i].want != '\0');
    }
}

static void rules_are_switched_by_path(void **state)
{
    uint32_t disabled = 0;
    struct hk_err err = {0};

    assert_int_equal(
        volcano_parse_enabled(HK_STR(" /jobs/mutate,, /jobs/validate "), &disabled, &err), 0);
    for (uint32_t i = 0; volcano_rules[i].path; i++) {
        const bool job = volcano_rules[i].kind == API_JOB;
        assert_int_equal(!(disabled & 1U << i), job);
    }
    assert_int_equal(volcano_parse_enabled(HK_STR(""), &disabled, &err), 0);
    assert_int_equal(volcano_parse_enabled(HK_STR("/jobs/eat"), &disabled, &err), -HK_EINVAL);
    assert_string_equal(err.text,
                        "enabled admission /jobs/eat not found on the admission registered map");
}

static void disabled_rules_let_pass(void **state)
{
    static const char text[] = "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: "
                               "{name: j, namespace: ns}, spec: {}}";
    struct volcano_options opts = {0};
    struct rig on = {0};
    struct rig off = {0};

    rig_run(&on, NULL, NULL, text, NULL);
    assert_int_equal(on.rc, -HK_EINVAL);
    assert_string_equal(on.q.denial, "admission webhook \"validatejob.volcano.sh\" denied the "
                                     "request: No task specified in job spec");
    assert_string_equal(on.err.text, on.q.denial);

    assert_int_equal(volcano_parse_enabled(HK_STR("/queues/validate"), &opts.disabled, NULL), 0);
    off.q.volcano = &opts;
    rig_run(&off, NULL, NULL, text, NULL);
    assert_string_equal(rig_outcome(&off), "");
    assert_null(json_at(off.q.obj, "spec.queue"));
    rig_fini(&on);
    rig_fini(&off);
}

#define CRON(name, schedule, zone)                                                                 \
    "{apiVersion: batch.volcano.sh/v1alpha1, kind: CronJob, metadata: {name: " name                \
    "}, spec: {schedule: '" schedule "', timeZone: " zone "}}"
#define FLOW(flows)                                                                                \
    "{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow, metadata: {name: f}, spec: {flows: "    \
    "[" flows "]}}"
#define PATTERN(p)                                                                                 \
    "{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, metadata: {name: h}, spec: "      \
    "{members: [{selector: {regexMatch: {pattern: '" p "'}}}]}}"
#define BAD(p, why)                                                                                \
    "[].spec.members.selector.regexMatch.pattern: Invalid value: \"" p                             \
    "\": member regexMatch pattern is invalid: error parsing regexp: " why

static void small_kinds_are_judged(void **state)
{
    static const struct review cases[] = {
        REVIEW("a zone of three parts", "/cronjobs/validate",
               CRON("c", "@every 1h30m", "America/Indiana/Knox"), "[]"),
        REVIEW("findings without a separator", "/cronjobs/validate", CRON("c", "@never", "a!/-b"),
               "schedule is not a valid cron expression unknown timeZone unknown timeZone invalid "
               "timeZone"),
        REVIEW("a zone in capitals", "/cronjobs/validate", CRON("c", "@daily", "LOCAL"),
               "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"),
        REVIEW("a part of dots", "/cronjobs/validate", CRON("c", "@daily", "../UTC"),
               "unknown timeZone invalid timeZone"),
        REVIEW("no zone", "/cronjobs/validate", CRON("c", "@daily", "null"), "[]"),
        REVIEW("an odd name", "/cronjobs/validate", CRON("-", "@daily", "UTC"),
               "invalid cronJob name \"-\": name part must consist of alphanumeric characters, "
               "'-', '_' "
               "or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
               "'my.name',  or '123-abc', regex used for validation is "
               "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
        REVIEW(
            "a chain of steps", "/jobflows/validate",
            FLOW(
                "{name: c, dependsOn: {targets: [a, b, a]}}, {name: b, dependsOn: {targets: [a]}}, "
                "{name: a}"),
            "[]"),
        REVIEW("of equal names the last counts", "/jobflows/validate",
               FLOW("{name: a, dependsOn: {targets: [a, x]}}, {name: a}"), "[]"),
        REVIEW("a longer circle", "/jobflows/validate",
               FLOW("{name: a, dependsOn: {targets: [c]}}, {name: b, dependsOn: {targets: [a]}}, "
                    "{name: "
                    "c, dependsOn: {targets: [b]}}"),
               "jobflow Flow is not DAG"),
        REVIEW("no steps", "/jobflows/validate", FLOW(""), "[]"),
        REVIEW("a good pattern", "/hypernodes/validate", PATTERN("^node-\\d+(-[ab]|[)(])$"), "[]"),
        REVIEW("a group too many", "/hypernodes/validate", PATTERN("a)b"),
               BAD("a)b", "unexpected ): `a)b`")),
        REVIEW("brackets that do not close", "/hypernodes/validate", PATTERN("a[b"),
               BAD("a[b", "missing closing ]: `[b`")),
    };

    review_check(cases, HK_LEN(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_operations_are_refused),
        cmocka_unit_test(rules_are_switched_by_path),
        cmocka_unit_test(disabled_rules_let_pass),
        cmocka_unit_test(small_kinds_are_judged),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
