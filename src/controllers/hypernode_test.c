// SPDX-License-Identifier: Apache-2.0
// HyperNodes: the number of their nodes, and those created from labels.
#include "base/log.h"
#include "controllers/fault_rig_test.h"
#include "controllers/table.h"

static const struct ctl_type *const types[] = {&ctl_hypernode};

static struct rig rig;

#define NODE(name, labels)                                                                         \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: Node\n"                                                                                 \
    "metadata: {name: " name ", labels: {" labels "}}\n"

#define HYPER(name, tier, members)                                                                 \
    "---\n"                                                                                        \
    "apiVersion: topology.volcano.sh/v1alpha1\n"                                                   \
    "kind: HyperNode\n"                                                                            \
    "metadata: {name: " name "}\n"                                                                 \
    "spec: {tier: " tier ", members: [" members "]}\n"

#define EXACT(type, name) "{type: " type ", selector: {exactMatch: {name: " name "}}}"

#define CONFIG(text)                                                                               \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: ConfigMap\n"                                                                            \
    "metadata: {name: volcano-controller-configmap, namespace: volcano-system}\n"                  \
    "data: {volcano-controller.conf: '" text "'}\n"

#define DISCOVER(enabled, types)                                                                   \
    CONFIG("networkTopologyDiscovery: [{source: label, enabled: " enabled                          \
           ", interval: 10m, config: {networkTopologyTypes: {" types "}}}]")

#define IB "ib: [{nodeLabel: zone}, {nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]"

static int setup(void **state)
{
    rig_init(&rig, types, HK_LEN(types));
    rig_manager(&rig);
    return 0;
}

static int teardown(void **state)
{
    rig_fini(&rig);
    return 0;
}

/* Puts the objects and waits: other HyperNodes follow a change after a pause. */
static void put(const char *yaml)
{
    rig_put(&rig, yaml);
    rig_settle(&rig);
    rig_pass(&rig, 1);
}

static void count(const char *name, const char *want)
{
    rig_expect(&rig, API_HYPERNODE, name, "status.nodeCount", want);
}

/* The name of the HyperNode for a label value, "" none. */
struct search {
    const char *key, *value;
    char name[100];
    unsigned found;
};

static void search_one(void *ctx, const struct api_object *o)
{
    struct search *s = ctx;
    const struct json *labels = json_at(&o->root, "metadata.labels");

    if (hk_str_is(json_str(json_get(labels, s->key), HK_STR("")), s->value)) {
        snprintf(s->name, sizeof(s->name), "%.*s", HK_FMT(o->name));
        s->found++;
    }
}

static const char *named(const char *key, const char *value)
{
    static struct search s;

    s = (struct search){.key = key, .value = value};
    port_mem_each(rig.mem, api_kind(API_HYPERNODE), search_one, &s);
    assert_true(s.found <= 1);
    return s.name;
}

/* ---- counting ---- */

static void nodes_are_counted_however_they_are_picked(void **state)
{
    static const struct {
        const char *members, *want;
    } cases[] = {
        {EXACT("Node", "n1") ", " EXACT("Node", "n2"), "2"},
        {EXACT("Node", "n1") ", " EXACT("Node", "n1"), "1"},
        {EXACT("Node", "n1") ", " EXACT("Node", "gone"), "1"}, /* only existing nodes */
        {"{type: Node, selector: {regexMatch: {pattern: ^n}}}", "3"},
        {"{type: Node, selector: {regexMatch: {pattern: \"^n[12]$\"}}}, " EXACT("Node", "n2"), "2"},
        {"{type: Node, selector: {labelMatch: {matchLabels: {gpu: a}}}}", "2"},
        {"{type: Node, selector: {labelMatch: {}}}", "0"},
        {EXACT("HyperNode", "leaf") ", " EXACT("Node", "n3"), "2"},
        {EXACT("HyperNode", "nobody"), "0"},
        {EXACT("HyperNode", "h"), "0"}, /* member of itself */
    };
    char yaml[900];

    for (unsigned k = 0; k < HK_LEN(cases); k++) {
        teardown(state);
        setup(state);
        put(NODE("n1", "gpu: a") NODE("n2", "gpu: b") NODE("n3", "gpu: a") NODE("m1", "")
                HYPER("leaf", "1", EXACT("Node", "n1")));
        snprintf(yaml, sizeof(yaml), HYPER("h", "2", "%s"), cases[k].members);
        put(yaml);
        count("h", cases[k].want);
    }
}

static void the_count_follows_nodes_and_members(void **state)
{
    put(HYPER("leaf", "1", "{type: Node, selector: {labelMatch: {matchLabels: {gpu: a}}}}")
            HYPER("top", "2", EXACT("HyperNode", "leaf")));
    count("leaf", "0");
    count("top", "0");
    put(NODE("n1", "gpu: a"));
    put(NODE("n2", "gpu: b"));
    count("leaf", "1");
    count("top", "1");
    rig_patch(&rig, API_NODE, "n2", "metadata: {labels: {gpu: a}}");
    rig_pass(&rig, 1);
    count("top", "2");
    rig_remove(&rig, API_NODE, "n1");
    rig_pass(&rig, 1);
    count("leaf", "1");
    count("top", "1");
    rig_remove(&rig, API_HYPERNODE, "leaf");
    rig_pass(&rig, 1);
    count("top", "0");
}

static void nothing_is_written_when_nothing_changes(void **state)
{
    put(NODE("n1", "gpu: a") HYPER("h", "1", EXACT("Node", "n1")));
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_UPDATE], 1);
    rig_patch(&rig, API_NODE, "n1", "status: {phase: Running}");
    rig_pass(&rig, 1);
    rig_restart(&rig);
    rig_pass(&rig, 1);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_UPDATE], 0);
}

/* ---- discovery ---- */

#define RACKS                                                                                      \
    NODE("n1", "zone: east, rack: r1")                                                             \
    NODE("n2", "zone: east, rack: r1")                                                             \
    NODE("n3", "zone: east, rack: r2")                                                             \
    NODE("n4", "rack: r3") NODE("n5", "zone: west")

static void labels_become_tiers(void **state)
{
    char r1[100], r2[100], want[600];

    put(RACKS DISCOVER("true", IB));
    assert_int_equal(rig_count(&rig, API_HYPERNODE), 4); /* r1 r2 r3 east: west has no rack */
    snprintf(r1, sizeof(r1), "%s", named("rack", "r1"));
    snprintf(r2, sizeof(r2), "%s", named("rack", "r2"));
    assert_int_equal(strncmp(r1, "hypernode-ib-tier1-", 19), 0);
    assert_int_equal(strlen(r1), 24);
    rig_expect(&rig, API_HYPERNODE, r1, "spec",
               "{\"tier\":1,\"tierName\":\"rack\",\"members\":[{\"type\":\"Node\",\"selector\":{"
               "\"exactMatch\":{\"name\":\"n1\"}}},{\"type\":\"Node\",\"selector\":{\"exactMatch\":"
               "{\"name\":\"n2\"}}}]}");
    rig_expect(&rig, API_HYPERNODE, r1, "metadata.labels",
               "{\"rack\":\"r1\",\"volcano.sh/network-topology-source\":\"label\"}");
    snprintf(want, sizeof(want),
             "[{\"type\":\"HyperNode\",\"selector\":{\"exactMatch\":{\"name\":\"%s\"}}},{\"type\":"
             "\"HyperNode\",\"selector\":{\"exactMatch\":{\"name\":\"%s\"}}}]",
             strcmp(r1, r2) < 0 ? r1 : r2, strcmp(r1, r2) < 0 ? r2 : r1);
    rig_expect(&rig, API_HYPERNODE, named("zone", "east"), "spec.members", want);
    rig_expect(&rig, API_HYPERNODE, named("zone", "east"), "spec.tier", "2");
    count(named("zone", "east"), "3");
    count(named("rack", "r3"), "1");
}

static void the_same_world_gets_the_same_names_and_no_writes(void **state)
{
    char before[400];

    put(RACKS DISCOVER("true", IB));
    snprintf(before, sizeof(before), "%s", rig_names(&rig, API_HYPERNODE));
    rig_restart(&rig);
    rig_pass(&rig, 1);
    assert_string_equal(rig_names(&rig, API_HYPERNODE), before);
    for (unsigned v = 0; v < PORT_NVERBS; v++) {
        assert_int_equal(manager_metrics(rig.m)->writes[v], 0);
    }
}

static void domains_follow_the_nodes(void **state)
{
    char r1[100];

    put(RACKS DISCOVER("true", IB));
    snprintf(r1, sizeof(r1), "%s", named("rack", "r1"));
    rig_patch(&rig, API_NODE, "n3", "metadata: {labels: {rack: r1}}");
    rig_pass(&rig, 1);
    assert_string_equal(named("rack", "r2"), ""); /* no node is left in it */
    assert_string_equal(named("rack", "r1"), r1);
    count(r1, "3");
    rig_remove(&rig, API_HYPERNODE, r1);
    rig_pass(&rig, 1);
    assert_string_equal(named("rack", "r1"), r1); /* created again */
    rig_patch(&rig, API_HYPERNODE, r1, "spec: {tier: 7}\nmetadata: {labels: {mine: x}}");
    rig_pass(&rig, 1);
    rig_expect(&rig, API_HYPERNODE, r1, "spec.tier", "1");
    rig_expect(&rig, API_HYPERNODE, r1, "metadata.labels.mine", "\"x\"");
}

static void hypernodes_of_others_are_left_alone(void **state)
{
    put(HYPER("mine", "1", EXACT("Node", "n1")) RACKS DISCOVER("true", IB));
    count("mine", "1");
    put(DISCOVER("true", "ib: [{nodeLabel: nowhere}, {nodeLabel: kubernetes.io/hostname}]"));
    assert_string_equal(rig_names(&rig, API_HYPERNODE), "mine");
}

static void a_name_that_is_in_use_is_reused(void **state)
{
    put("---\n"
        "apiVersion: topology.volcano.sh/v1alpha1\n"
        "kind: HyperNode\n"
        "metadata: {name: hypernode-ib-tier1-abcde, labels: {rack: r1, "
        "volcano.sh/network-topology-source: label}}\n"
        "spec: {tier: 1, tierName: rack, members: [" EXACT("Node", "old") "]}\n" RACKS DISCOVER(
            "true", IB));
    assert_string_equal(named("rack", "r1"), "hypernode-ib-tier1-abcde");
    count("hypernode-ib-tier1-abcde", "2");
}

static void types_share_domains_of_the_same_label(void **state)
{
    put(RACKS DISCOVER("true",
                       IB ", Eth_1: [{nodeLabel: zone}, {nodeLabel: rack}, {nodeLabel: host}], "
                          "a-name-of-over-20-characters: [{nodeLabel: zone}, {nodeLabel: host}], "
                          "twice: [{nodeLabel: zone}, {nodeLabel: zone}, {nodeLabel: host}]"));
    assert_int_equal(rig_count(&rig, API_HYPERNODE), 4);
}

static void names_are_made_of_what_is_allowed_in_them(void **state)
{
    put(RACKS DISCOVER("true", "Eth_1: [{nodeLabel: rack}, {nodeLabel: host}]"));
    assert_int_equal(strncmp(named("rack", "r1"), "hypernode-eth-1-tier1-", 22), 0);
}

static void nothing_is_made_without_being_asked_for(void **state)
{
    put(RACKS);
    put(DISCOVER("false", IB));
    assert_int_equal(rig_count(&rig, API_HYPERNODE), 0);
    rig_expect_events(&rig, "BadConfiguration", "");
}

static void hypernodes_stay_when_discovery_is_disabled(void **state)
{
    put(RACKS DISCOVER("true", IB));
    put(DISCOVER("false", IB));
    assert_int_equal(rig_count(&rig, API_HYPERNODE), 4);
}

static void a_bad_configuration_is_reported_and_changes_nothing(void **state)
{
    put(RACKS DISCOVER("true", IB));
    put(CONFIG("networkTopologyDiscovery: ["));
    assert_int_equal(rig_count(&rig, API_HYPERNODE), 4);
    put(CONFIG("networkTopologyDiscovery: [{source: ufm, enabled: true}]"));
    assert_int_equal(rig_count(&rig, API_HYPERNODE), 4);
    rig_expect_events(
        &rig, "BadConfiguration",
        "volcano-controller.conf: line 2, column 1: did not find expected node content; "
        "volcano-controller.conf: unsupported source 'ufm', want 'label'");
}

static void a_value_in_two_domains_is_reported(void **state)
{
    put(NODE("n1", "zone: east, rack: r1") NODE("n2", "zone: west, rack: r1") DISCOVER("true", IB));
    rig_expect_events(
        &rig, "BadConfiguration",
        "volcano-controller.conf: rack=r1 is in two domains, zone=east and zone=west");
}

/* Discovers racks; then a node moves to another rack and leaves its old one empty. */
static void play(struct fault_rig *f)
{
    rig_put(&rig, RACKS DISCOVER("true", IB));
    fault_rig_pass(f);
    rig_patch(&rig, API_NODE, "n3", "metadata: {labels: {rack: r1}}");
    fault_rig_pass(f);
}

static void describe(struct hk_buf *out)
{
    static const char *const domains[][2] = {{"rack", "r1"}, {"rack", "r3"}, {"zone", "east"}};

    hk_buf_addf(out, "%u domains", rig_count(&rig, API_HYPERNODE));
    for (unsigned i = 0; i < HK_LEN(domains); i++) {
        const char *name = named(domains[i][0], domains[i][1]);

        hk_buf_addf(out, ", %s: %s", domains[i][1],
                    rig_at(&rig, API_HYPERNODE, name, "status.nodeCount"));
    }
}

static void with_any_fault_the_domains_are_right(void **state)
{
    fault_rig_run_all_faults(&(struct fault_story){&rig, types, HK_LEN(types), play, describe},
                             "3 domains, r1: 3, r3: 1, east: 3");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nodes_are_counted_however_they_are_picked),
        TEST(the_count_follows_nodes_and_members),
        TEST(nothing_is_written_when_nothing_changes),
        TEST(labels_become_tiers),
        TEST(the_same_world_gets_the_same_names_and_no_writes),
        TEST(domains_follow_the_nodes),
        TEST(hypernodes_of_others_are_left_alone),
        TEST(a_name_that_is_in_use_is_reused),
        TEST(types_share_domains_of_the_same_label),
        TEST(names_are_made_of_what_is_allowed_in_them),
        TEST(nothing_is_made_without_being_asked_for),
        TEST(hypernodes_stay_when_discovery_is_disabled),
        TEST(a_bad_configuration_is_reported_and_changes_nothing),
        TEST(a_value_in_two_domains_is_reported),
        cmocka_unit_test(with_any_fault_the_domains_are_right),
    };

    hk_log_set_level(HK_LOG_ERROR);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/hypernode", tests, NULL, NULL);
}
