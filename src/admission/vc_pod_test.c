// SPDX-License-Identifier: Apache-2.0
// Pods: resource groups from the configuration file, the queue's gate, disruption budgets; and the
// queue that PodGroups get from their namespace.
#include "admission/vc_rig_test.h"

#define POD(ns, notes, spec)                                                                       \
    "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: " ns ", annotations: {" notes      \
    "}}, spec: " spec "}"
#define GATE "scheduling.volcano.sh/queue-allocation-gate"

static const char conf_text[] =
    "resourceGroups:\n"
    "- resourceGroup: management\n"
    "  object: {key: namespace, value: [infra, monitoring]}\n"
    "  schedulerName: default-scheduler\n"
    "  labels: {volcano.sh/nodetype: management}\n"
    "  tolerations:\n"
    "  - {key: dedicated, operator: Equal, value: management, effect: NoSchedule}\n"
    "  - {key: slow, operator: Exists, effect: NoExecute, tolerationseconds: 30}\n"
    "- resourceGroup: cpu\n"
    "  object: {key: annotation, value: ['volcano.sh/resource-group: cpu']}\n"
    "  schedulerName: volcano\n"
    "  labels: {volcano.sh/nodetype: cpu}\n"
    "- resourceGroup: gpu\n"
    "  schedulerName: volcano\n"
    "  affinity: '{\"nodeAffinity\":{}}'\n"
    "- resourceGroup: broken\n"
    "  object: {key: moon, value: [full]}\n"
    "  affinity: '{'\n";

static void groups_place_pods(void **state)
{
    struct rig r = {0};
    const struct json *conf = rig_parse(&r, conf_text, 0);
    const struct volcano_options opts = {.conf = conf};
    const struct volcano_options gated = {.conf = conf, .gate_queue_admission = true};
    const struct volcano_options no_conf = {.gate_queue_admission = true};
    const struct review cases[] = {
        REVIEW(
            "by namespace", "/pods/mutate",
            POD("infra", "",
                "{nodeSelector: {volcano.sh/nodetype: x, zone: a}, tolerations: [{key: own}]}"),
            "[{\"op\":\"add\",\"path\":\"/spec/nodeSelector\",\"value\":{\"volcano.sh/nodetype\":"
            "\"management\",\"zone\":\"a\"}},{\"op\":\"add\",\"path\":\"/spec/"
            "tolerations\",\"value\":"
            "[{\"key\":\"own\"},{\"key\":\"dedicated\",\"operator\":\"Equal\",\"value\":"
            "\"management\","
            "\"effect\":\"NoSchedule\"},{\"key\":\"slow\",\"operator\":\"Exists\",\"effect\":"
            "\"NoExecute\",\"tolerationSeconds\":30}]},{\"op\":\"add\",\"path\":"
            "\"/spec/schedulerName\",\"value\":\"default-scheduler\"}]",
            .opts = &opts),
        REVIEW(
            "by a listed annotation", "/pods/mutate",
            POD("ns", "volcano.sh/resource-group: cpu", "{}"),
            "[{\"op\":\"add\",\"path\":\"/spec/nodeSelector\",\"value\":{\"volcano.sh/nodetype\":"
            "\"cpu\"}},{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":\"volcano\"}]",
            .opts = &opts),
        REVIEW("by the group's name", "/pods/mutate",
               POD("ns", "volcano.sh/resource-group: gpu", "{}"),
               "[{\"op\":\"add\",\"path\":\"/spec/affinity\",\"value\":{\"nodeAffinity\":{}}},"
               "{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":\"volcano\"}]",
               .opts = &opts),
        REVIEW("an affinity of its own stays", "/pods/mutate",
               POD("ns", "volcano.sh/resource-group: gpu", "{affinity: {podAffinity: {}}}"),
               "[{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":\"volcano\"}]",
               .opts = &opts),
        REVIEW("no group", "/pods/mutate", POD("ns", "volcano.sh/resource-group: broken", "{}"),
               "[]", .opts = &opts),
        REVIEW("the gate", "/pods/mutate", POD("ns", GATE ": \"true\"", "{}"),
               "[{\"op\":\"add\",\"path\":\"/spec/schedulingGates\",\"value\":[{\"name\":\"" GATE
               "\"}]}]",
               .opts = &gated),
        REVIEW("the gate beside others", "/pods/mutate",
               POD("ns", GATE ": \"true\"", "{schedulingGates: [{name: a}]}"),
               "[{\"op\":\"add\",\"path\":\"/spec/schedulingGates/-\",\"value\":{\"name\":\"" GATE
               "\"}}]",
               .opts = &gated),
        REVIEW("the gate is there", "/pods/mutate",
               POD("ns", GATE ": \"true\"", "{schedulingGates: [{name: " GATE "}]}"), "[]",
               .opts = &gated),
        REVIEW("nobody asks for the gate", "/pods/mutate", POD("ns", GATE ": \"yes\"", "{}"), "[]",
               .opts = &gated),
        REVIEW("the gate is off", "/pods/mutate", POD("ns", GATE ": \"true\"", "{}"), "[]",
               .opts = &opts),
        REVIEW("without a file nothing happens", "/pods/mutate",
               POD("infra", GATE ": \"true\"", "{}"), "[]", .opts = &no_conf),
    };

    review_check(cases, HK_LEN(cases));
    rig_fini(&r);
}

static void bad_files_are_reported(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"{}", ""},
        {"[]", "array, want object"},
        {"{resourceGroups: {}}", "resourceGroups: object, want array"},
        {"{resourceGroups: [a]}", "resourceGroups[0]: string, want object"},
        {"{resourceGroups: [{}, {labels: [a]}]}", "resourceGroups[1].labels: array, want object"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct rig r = {0};
        const int rc = volcano_check_conf(rig_parse(&r, cases[i].text, 0), &r.err);
        assert_string_equal(r.err.text, cases[i].want);
        assert_int_equal(rc, *cases[i].want ? -HK_EINVAL : 0);
        rig_fini(&r);
    }
}

#define BUDGET(min) POD("ns", "volcano.sh/jdb-min-available: " min, "{schedulerName: volcano}")

static void budgets_are_numbers_or_percentages(void **state)
{
    static const char *const names[] = {"other", NULL};
    static const struct volcano_options other = {.scheduler_names = names};
    static const struct review cases[] = {
        REVIEW("a number", "/pods/validate", BUDGET("\"3\""), "[]"),
        REVIEW("a percentage", "/pods/validate", BUDGET("50%"), "[]"),
        REVIEW("a percentage, sign first", "/pods/validate", BUDGET("\"%50\""), "[]"),
        REVIEW("no percent", "/pods/validate", BUDGET("0%"),
               "invalid value <\"0%\"> for volcano.sh/jdb-min-available, it must be a valid "
               "percentage "
               "which between 1% ~ 99%"),
        REVIEW(
            "a huge number", "/pods/validate", BUDGET("\"99999999999999999999\""),
            "invalid value strconv.Atoi: parsing \"99999999999999999999\": value out of range for "
            "volcano.sh/jdb-min-available"),
        REVIEW("nothing", "/pods/validate", BUDGET("\"\""),
               "invalid value strconv.Atoi: parsing \"\": invalid syntax for "
               "volcano.sh/jdb-min-available"),
        REVIEW("somebody else's pod", "/pods/validate", BUDGET("\"0\""), "[]", .opts = &other),
        REVIEW("an update", "/pods/validate", BUDGET("\"3\""), "expect operation to be 'CREATE'",
               .old = BUDGET("\"3\"")),
    };

    review_check(cases, HK_LEN(cases));
}

#define GROUP(spec)                                                                                \
    "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, namespace: "  \
    "ns}, spec: " spec "}"
#define NAMESPACE(notes)                                                                           \
    "{apiVersion: v1, kind: Namespace, metadata: {name: ns, annotations: {" notes "}}}"

static void groups_take_the_queue_of_their_namespace(void **state)
{
    static const struct review cases[] = {
        REVIEW("a namespace with a queue", "/podgroups/mutate", GROUP("{queue: default}"),
               "[{\"op\":\"add\",\"path\":\"/spec/queue\",\"value\":\"team\"}]",
               .state = NAMESPACE("scheduling.volcano.sh/queue-name: team")),
        REVIEW("a queue of its own", "/podgroups/mutate", GROUP("{queue: mine}"), "[]",
               .state = NAMESPACE("scheduling.volcano.sh/queue-name: team")),
        REVIEW("a namespace without", "/podgroups/mutate", GROUP("{queue: default}"), "[]",
               .state = NAMESPACE("")),
        REVIEW("an update", "/podgroups/validate", GROUP("{}"), "unsupported operation UPDATE",
               .old = GROUP("{}")),
        REVIEW(
            "both tiers in two places", "/podgroups/validate",
            GROUP("{networkTopology: {highestTierAllowed: 1, highestTierName: a}, subGroupPolicy: "
                  "[{name: s, networkTopology: {highestTierAllowed: 1, highestTierName: a}}]}"),
            "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology "
            "simultaneously. in subGroupPolicy 's': must not specify 'highestTierAllowed' and "
            "'highestTierName' in networkTopology simultaneously."),
    };

    review_check(cases, HK_LEN(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_place_pods),
        cmocka_unit_test(bad_files_are_reported),
        cmocka_unit_test(budgets_are_numbers_or_percentages),
        cmocka_unit_test(groups_take_the_queue_of_their_namespace),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
