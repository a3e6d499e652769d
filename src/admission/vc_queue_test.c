// SPDX-License-Identifier: Apache-2.0
// Queues: defaults, the hierarchy and its sums, and options that change which queues may be
// deleted. apiserver/volcano_test.c tests single errors.
#include "admission/vc_rig_test.h"

#define QUEUE(name, spec, status)                                                                  \
    "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: " name         \
    "}, spec: " spec ", status: " status "}\n"
#define Q(spec) QUEUE("q", spec, "{}")
#define SHARES(parent, cpu, memory, more)                                                          \
    "{parent: " parent ", deserved: {cpu: " cpu ", memory: " memory more                           \
    "}, guarantee: {resource: {cpu: " cpu ", memory: " memory "}}}"

static void mutation_fills_in(void **state)
{
    static const struct review cases[] = {
        REVIEW("an empty queue", "/queues/mutate", Q("{}"),
               "[{\"op\":\"add\",\"path\":\"/spec/reclaimable\",\"value\":true},"
               "{\"op\":\"add\",\"path\":\"/spec/weight\",\"value\":1}]"),
        REVIEW("a queue without spec", "/queues/mutate",
               "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}}",
               "[{\"op\":\"add\",\"path\":\"/spec\",\"value\":{}},"
               "{\"op\":\"add\",\"path\":\"/spec/reclaimable\",\"value\":true},"
               "{\"op\":\"add\",\"path\":\"/spec/weight\",\"value\":1}]"),
        REVIEW("what is said stays", "/queues/mutate", Q("{reclaimable: false, weight: 3}"), "[]"),
        REVIEW(
            "a path gets its root", "/queues/mutate",
            "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q, "
            "annotations: "
            "{volcano.sh/hierarchy: a/b, volcano.sh/hierarchy-weights: 2/3}}, spec: {reclaimable: "
            "true, weight: 1}}",
            "[{\"op\":\"add\",\"path\":\"/metadata/annotations/volcano.sh~1hierarchy\",\"value\":"
            "\"root/a/b\"},{\"op\":\"add\",\"path\":"
            "\"/metadata/annotations/volcano.sh~1hierarchy-weights\",\"value\":\"1/2/3\"}]"),
        REVIEW("an update", "/queues/mutate", Q("{}"),
               "invalid operation `UPDATE`, expect operation to be `CREATE`", .old = Q("{}")),
    };

    review_check(cases, HK_LEN(cases));
}

static void amounts_make_sense(void **state)
{
    static const struct review cases[] = {
        REVIEW("half a thing", "/queues/validate", Q("{capability: {nvidia.com/gpu: 1500m}}"),
               "requestBody.spec.capability.nvidia.com/gpu: Invalid value: \"1500m\": must be an "
               "integer"),
        REVIEW("half a processor", "/queues/validate", Q("{capability: {cpu: 1500m}}"), "[]"),
        REVIEW("deserved without limit", "/queues/validate",
               Q("{deserved: {cpu: 2}, capability: {memory: 1Gi}}"), "[]"),
        REVIEW("a state of the controller's", "/queues/validate",
               QUEUE("q", "{}", "{state: Closing}"),
               "requestBody.spec.state: Invalid value: \"Closing\": queue state must be in [Open "
               "Closed]",
               .old = QUEUE("q", "{weight: 2}", "{state: Open}")),
        REVIEW("a change while closing", "/queues/validate",
               QUEUE("q", "{weight: 3}", "{state: Closing}"), "[]",
               .old = QUEUE("q", "{weight: 2}", "{state: Closing}")),
        REVIEW("a change in an unknown state", "/queues/validate",
               QUEUE("q", "{weight: 3}", "{state: Unknown}"), "[]",
               .old = QUEUE("q", "{weight: 2}", "{state: Unknown}")),
        REVIEW("a weight without path", "/queues/validate",
               "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q, "
               "annotations: "
               "{volcano.sh/hierarchy-weights: 1e999}}}",
               "requestBody.metadata.annotations: Invalid value: \"1e999\": 1e999 in the 1e999 is "
               "invalid "
               "number: strconv.ParseFloat: parsing \"1e999\": value out of range"),
    };

    review_check(cases, HK_LEN(cases));
}

static void the_tree_adds_up(void **state)
{
    static const char family[] =
        QUEUE("p", SHARES("root", "8", "16Gi", ", nvidia.com/gpu: 4"), "{}")
            QUEUE("a", SHARES("p", "4", "8Gi", ", nvidia.com/gpu: 3"), "{}");
    static const char limits[] =
        QUEUE("top", "{capability: {cpu: 10, memory: 10Gi, nvidia.com/gpu: 4, pods: 7}}", "{}")
            QUEUE("mid", "{parent: top, capability: {memory: 4Gi}}", "{}")
                QUEUE("low", "{parent: mid, capability: {cpu: 6, nvidia.com/gpu: 2}}", "{}");
    static const struct review cases[] = {
        REVIEW(
            "deserved shares too many", "/queues/validate",
            Q(SHARES("p", "4", "8Gi", ", nvidia.com/gpu: 2")),
            "parent queue p validation failed: sum of children's deserved (cpu 8000.00, memory "
            "17179869184.00, nvidia.com/gpu 5000.00) exceeds parent's deserved limit (cpu 8000.00, "
            "memory 17179869184.00, nvidia.com/gpu 4000.00)",
            .state = family),
        REVIEW(
            "a share of what the parent has not", "/queues/validate",
            Q("{parent: p, deserved: {example.com/x: 0}}"),
            "parent queue p validation failed: sum of children's deserved (cpu 4000.00, memory "
            "8589934592.00, example.com/x 0.00, nvidia.com/gpu 3000.00) exceeds parent's deserved "
            "limit (cpu 8000.00, memory 17179869184.00, nvidia.com/gpu 4000.00)",
            .state = family),
        REVIEW("shares that fit", "/queues/validate",
               Q(SHARES("p", "4", "8Gi", ", nvidia.com/gpu: 1")), "[]", .state = family),
        REVIEW("its own stored shares do not count", "/queues/validate",
               QUEUE("a", SHARES("p", "8", "16Gi", ""), "{}"), "[]", .state = family,
               .old = QUEUE("a", SHARES("p", "4", "8Gi", ", nvidia.com/gpu: 3"), "{}")),
        REVIEW(
            "a parent that shrinks", "/queues/validate",
            QUEUE("p", SHARES("root", "2", "16Gi", ", nvidia.com/gpu: 4"), "{}"),
            "queue p validation failed: sum of children's guarantee (cpu 4000.00, memory "
            "8589934592.00) exceeds parent's guarantee limit (cpu 2000.00, memory 17179869184.00)",
            .state = family,
            .old = QUEUE("p", SHARES("root", "8", "16Gi", ", nvidia.com/gpu: 4"), "{}")),
        REVIEW("a parent whose amounts stay is not judged", "/queues/validate",
               QUEUE("p", "{weight: 3}", "{}"), "[]", .state = family,
               .old = QUEUE("p", "{weight: 2}", "{}")),
        REVIEW("children of the root are not summed", "/queues/validate",
               Q(SHARES("root", "99", "99Gi", "")), "[]",
               .state = QUEUE("root", "{deserved: {cpu: 1}}", "{}")),
        REVIEW("the nearest limit above", "/queues/validate",
               Q("{parent: low, capability: {memory: 5Gi}}"),
               "queue q capability[memory]=5Gi exceeds its ancestor's capability=4Gi",
               .state = limits),
        REVIEW(
            "a limit further above", "/queues/validate",
            Q("{parent: mid, capability: {nvidia.com/gpu: 5}}"),
            "queue q capability[nvidia.com/gpu]=5000.00 exceeds its ancestor's capability=4000.00",
            .state = limits),
        REVIEW("pods are counted whole", "/queues/validate",
               Q("{parent: low, capability: {pods: 8}}"),
               "queue q capability[pods]=8.00 exceeds its ancestor's capability=7.00",
               .state = limits),
        REVIEW("a branch counts with its topmost limit", "/queues/validate",
               QUEUE("top", "{capability: {cpu: 5, memory: 10Gi, nvidia.com/gpu: 4}}", "{}"),
               "queue top capability[cpu]=5 is smaller than its descendants' max capability=6",
               .state = limits, .old = QUEUE("top", "{}", "{}")),
        REVIEW("quotas on counts are nobody's", "/queues/validate",
               Q("{parent: p, deserved: {count/jobs.batch: 5}}"), "[]", .state = family),
        REVIEW("a parent that has gone", "/queues/validate",
               Q("{parent: gone, capability: {cpu: 1}}"),
               "parent queue gone not found: queue.scheduling.volcano.sh \"gone\" not found",
               .state = limits, .old = Q("{parent: gone}")),
        REVIEW("parents in a circle", "/queues/validate", Q("{parent: a}"),
               "queue q exceeds the maximum allowed depth of 5",
               .state = QUEUE("a", "{parent: b}", "{}") QUEUE("b", "{parent: a}", "{}")),
        REVIEW("its own child", "/queues/validate", Q("{parent: a}"),
               "queue q cannot have the parent a, which is below it: queues must not form a circle",
               .old = Q("{}"), .state = Q("{}") QUEUE("a", "{parent: q}", "{}")),
        REVIEW("its grandchild's child", "/queues/validate", Q("{parent: c}"),
               "queue q cannot have the parent c, which is below it: queues must not form a circle",
               .old = Q("{parent: root}"),
               .state = Q("{}") QUEUE("a", "{parent: q}", "{}") QUEUE("b", "{parent: a}", "{}")
                   QUEUE("c", "{parent: b}", "{}")),
        REVIEW("itself", "/queues/validate", Q("{parent: q}"),
               "queue q cannot use itself as parent", .old = Q("{}"), .state = Q("{}")),
        REVIEW("above the root", "/queues/validate", QUEUE("root", "{parent: a}", "{}"),
               "queue root cannot have the parent a: it is above all queues",
               .old = QUEUE("root", "{}", "{}"), .state = QUEUE("a", "{parent: root}", "{}")),
        REVIEW("out of a circle", "/queues/validate", Q("{parent: root}"), "[]",
               .old = Q("{parent: a}"), .state = Q("{parent: a}") QUEUE("a", "{parent: q}", "{}")),
        REVIEW("a change within a circle", "/queues/validate", Q("{parent: a, weight: 2}"), "[]",
               .old = Q("{parent: a}"), .state = Q("{parent: a}") QUEUE("a", "{parent: q}", "{}")),
        REVIEW("amounts within a circle", "/queues/validate",
               Q("{parent: a, capability: {cpu: 4}}"), "[]", .old = Q("{parent: a}"),
               .state = Q("{parent: a}") QUEUE("a", "{parent: b}", "{}")
                   QUEUE("b", "{parent: q}", "{}")),
        REVIEW("a queue of a circle goes", "/queues/validate", NULL, "[]", .old = Q("{parent: a}"),
               .state = Q("{parent: b}") QUEUE("a", "{parent: q}", "{}")
                   QUEUE("b", "{parent: a}", "{}")),
        REVIEW("its own parent goes", "/queues/validate", NULL, "[]", .old = Q("{parent: q}"),
               .state = Q("{parent: q}")),
        REVIEW("not with others below it", "/queues/validate", NULL,
               "queue q can not be deleted because it has 1 child queues: c",
               .old = Q("{parent: a}"),
               .state = Q("{parent: a}") QUEUE("a", "{parent: q}", "{}")
                   QUEUE("c", "{parent: q}", "{}")),
        REVIEW("a limit below what a child is guaranteed", "/queues/validate",
               QUEUE("p",
                     "{parent: root, capability: {cpu: 3, memory: 16Gi}, deserved: {cpu: 8, "
                     "memory: 16Gi}, guarantee: {resource: {cpu: 8, memory: 16Gi}}}",
                     "{}"),
               "requestBody.spec.deserved.cpu: Invalid value: \"8\": deserved[cpu]=8 must be <= "
               "capability[cpu]=3",
               .state = family,
               .old = QUEUE("p", SHARES("root", "8", "16Gi", ", nvidia.com/gpu: 4"), "{}")),
        REVIEW("a parent that has children may run pods", "/queues/validate", Q("{parent: a}"),
               "[]",
               .state = QUEUE("a", "{}", "{allocated: {pods: 2}}") QUEUE("b", "{parent: a}", "{}")),
    };

    review_check(cases, HK_LEN(cases));
}

static void options_decide(void **state)
{
    static const struct volcano_options busy = {.refuse_busy_queues = true};
    static const struct volcano_options flat = {.max_queue_depth = 1};
    static const struct volcano_options free_root = {.change_root_queue = true};
    static const char pods[] = QUEUE("q", "{}", "{allocated: {pods: 1}}");
    static const struct review cases[] = {
        REVIEW("70: a queue with pods goes", "/queues/validate", NULL,
               "queue q cannot be deleted because it has allocated Pods: 1", .old = pods,
               .state = pods, .opts = &busy),
        REVIEW("one without pods goes", "/queues/validate", NULL, "[]", .old = Q("{}"),
               .state = Q("{}"), .opts = &busy),
        REVIEW("one that is not there goes", "/queues/validate", NULL,
               "queue.scheduling.volcano.sh \"q\" not found", .old = Q("{}"),
               .state = QUEUE("a", "{}", "{}")),
        REVIEW("children by name", "/queues/validate", NULL,
               "queue q can not be deleted because it has 2 child queues: a, b", .old = Q("{}"),
               .state = Q("{}") QUEUE("a", "{parent: q}", "{}") QUEUE("b", "{parent: q}", "{}")),
        REVIEW("a tree of one level", "/queues/validate", Q("{parent: a}"),
               "queue q exceeds the maximum allowed depth of 1", .state = QUEUE("a", "{}", "{}"),
               .opts = &flat),
        REVIEW("the root may change", "/queues/validate",
               QUEUE("root", "{capability: {cpu: 1}}", "{}"), "[]",
               .old = QUEUE("root", "{}", "{}"), .opts = &free_root),
        REVIEW("the root in other words", "/queues/validate",
               QUEUE("root", "{capability: {cpu: 1000m}}", "{}"), "[]",
               .old = QUEUE("root", "{capability: {cpu: 1}}", "{}")),
    };

    review_check(cases, HK_LEN(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutation_fills_in),
        cmocka_unit_test(amounts_make_sense),
        cmocka_unit_test(the_tree_adds_up),
        cmocka_unit_test(options_decide),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
