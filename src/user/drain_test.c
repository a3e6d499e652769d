// SPDX-License-Identifier: Apache-2.0
// Draining a node: which pods are evicted, which stay, what is refused, and how it ends.
#include "user/drain.h"

#include "user/rig_test.h"

#define NODE "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n---\n"
#define POD(name, meta, status)                                                                    \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name ", namespace: d" meta                     \
    "}, spec: {nodeName: n1}, status: {phase: " status "}}\n---\n"
#define OWNED(kind) ", ownerReferences: [{kind: " kind ", name: o, controller: true}]"
#define JOB_POD(name) POD(name, OWNED("Job"), "Running")

struct drained {
    int rc, status;
};

static struct drained drain(struct rig *g, const struct drain_opts *o)
{
    struct drained d = {.status = -1};

    capture_begin(&g->printed);
    d.rc = drain_node(&g->user, o, &d.status, &g->err);
    capture_end(&g->printed);
    return d;
}

static const struct drain_opts plain = {.node = "n1", .grace_s = -1};

/* The calls that changed something. */
static const char *writes(struct rig *g)
{
    static char text[512];
    struct hk_str rest = port_mem_log(g->mem), line;
    size_t n = 0;

    text[0] = '\0';
    while (hk_str_cut(&rest, '\n', &line)) {
        if (hk_str_starts(line, "create") || hk_str_starts(line, "patch")) {
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s\n", HK_FMT(line));
        }
    }
    return text;
}

/* What the node does with evicted pods. */
static void end_pod(struct rig *g)
{
    rig_remove(g, API_POD, "a");
}

static void evicted_pods_are_waited_for(void **state)
{
    struct rig *g = *state;

    rig_put(g, NODE JOB_POD("a"));
    rig_later(g, 10, end_pod);
    const struct drained d = drain(g, &plain);
    assert_int_equal(d.rc, 0);
    assert_int_equal(d.status, USER_OK);
    assert_string_equal(g->printed.out,
                        "n1 cordoned\nd/a evicted\nn1 drained: 1 pod has left it\n");
    assert_string_equal(writes(g), "patch nodes n1\ncreate pods/eviction d/a\n");
    const struct api_object *node =
        port_mem_peek(g->mem, api_kind(API_NODE), HK_STR(""), HK_STR("n1"));
    assert_true(json_bool(json_at(&node->root, "spec.unschedulable"), false));
}

static void finished_pods_and_those_of_daemonsets_stay(void **state)
{
    struct rig *g = *state;

    rig_put(g,
            NODE POD("done", OWNED("Job"), "Succeeded") POD("agent", OWNED("DaemonSet"), "Running")
                POD("mirror", ", annotations: {kubernetes.io/config.mirror: x}", "Running"));
    const struct drained d = drain(g, &plain);
    assert_int_equal(d.rc, 0);
    assert_int_equal(d.status, USER_OK);
    assert_string_equal(g->printed.out,
                        "n1 cordoned\nn1: leaving 1 finished and 2 of DaemonSets pods\n"
                        "n1 drained: 0 pods have left it\n");
    assert_string_equal(writes(g), "patch nodes n1\n");
}

static void a_pod_that_nothing_creates_again_needs_force(void **state)
{
    struct rig *g = *state;

    rig_put(g, NODE JOB_POD("b") POD("a", "", "Running"));
    const struct drained d = drain(g, &plain);
    assert_int_equal(d.rc, -HK_EINVAL);
    assert_string_equal(g->err.text, "no pod was evicted: 1 pod has no controller that would "
                                     "create it again (d/a); --force deletes it");
    assert_string_equal(writes(g), "patch nodes n1\n");
}

static void force_evicts_it(void **state)
{
    const struct drain_opts force = {.node = "n1", .grace_s = -1, .force = true};
    struct rig *g = *state;

    rig_put(g, NODE POD("a", "", "Running"));
    rig_later(g, 10, end_pod);
    assert_int_equal(drain(g, &force).status, USER_OK);
    assert_string_equal(writes(g), "patch nodes n1\ncreate pods/eviction d/a\n");
}

static void a_dry_run_names_pods_and_changes_nothing(void **state)
{
    const struct drain_opts dry = {.node = "n1", .grace_s = -1, .dry_run = true};
    struct rig *g = *state;

    rig_put(g, NODE JOB_POD("a")
                   POD("b", OWNED("Job") ", deletionTimestamp: '2026-01-01T00:00:00Z'", "Running"));
    assert_int_equal(drain(g, &dry).status, USER_OK);
    assert_string_equal(g->printed.out,
                        "d/a would be evicted (dry run)\n"
                        "d/b is being deleted (dry run)\nn1 would be drained (dry run)\n");
    assert_string_equal(writes(g), "");
}

static void a_disruption_budget_delays_an_eviction(void **state)
{
    const struct drain_opts soon = {.node = "n1", .grace_s = -1, .timeout_ns = 50 * MS_NS};
    struct rig *g = *state;

    rig_put(g, NODE JOB_POD("a"));
    port_mem_fail(g->mem, PORT_CREATE, 1, HK_EBUSY);
    const struct drained d = drain(g, &soon);
    assert_int_equal(d.rc, 0);
    assert_int_equal(d.status, USER_TIMEOUT);
    assert_string_equal(g->printed.out, "n1 cordoned\nd/a waits for its disruption budget\n");
    assert_string_equal(g->printed.complaints, "hekla: drain: time is up, 1 of 1 pod of node 'n1' "
                                               "remains; the node stays cordoned\n");
}

static void it_is_tried_again_and_succeeds(void **state)
{
    struct rig *g = *state;

    rig_put(g, NODE JOB_POD("a"));
    port_mem_fail(g->mem, PORT_CREATE, 1, HK_EBUSY);
    rig_later(g, 1100, end_pod); /* the second attempt comes after a second */
    assert_int_equal(drain(g, &plain).status, USER_OK);
    assert_string_equal(g->printed.out,
                        "n1 cordoned\nd/a waits for its disruption budget\nd/a evicted\n"
                        "n1 drained: 1 pod has left it\n");
}

static void another_refusal_ends_the_drain(void **state)
{
    struct rig *g = *state;

    rig_put(g, NODE JOB_POD("a"));
    port_mem_fail(g->mem, PORT_CREATE, 1, HK_EDENIED);
    assert_int_equal(drain(g, &plain).rc, -HK_EDENIED);
    assert_string_equal(g->err.text, "injected failure");
}

static void interrupt(struct rig *g)
{
    g->user.interrupted = true;
}

static void an_interrupt_leaves_the_node_cordoned(void **state)
{
    struct rig *g = *state;

    rig_put(g, NODE JOB_POD("a") JOB_POD("b"));
    rig_later(g, 5, end_pod);
    rig_later(g, 20, interrupt);
    assert_int_equal(drain(g, &plain).status, 130);
    assert_string_equal(g->printed.complaints,
                        "hekla: drain: interrupted, 1 of 2 pods of node 'n1' "
                        "remains; the node stays cordoned\n");
}

/* ---- cordon ---- */

static int cordon(struct rig *g, const char *node, bool closed)
{
    capture_begin(&g->printed);
    const int rc = drain_cordon(&g->user, node, closed, &g->err);
    capture_end(&g->printed);
    return rc;
}

static void cordon_says_what_changed(void **state)
{
    struct rig *g = *state;

    rig_put(g, NODE);
    assert_int_equal(cordon(g, "n1", true), 0);
    assert_string_equal(g->printed.out, "n1 cordoned\n");
    assert_int_equal(cordon(g, "n1", true), 0);
    assert_string_equal(g->printed.out, "n1 already cordoned\n");
    assert_int_equal(cordon(g, "n1", false), 0);
    assert_string_equal(g->printed.out, "n1 uncordoned\n");
    const struct api_object *node =
        port_mem_peek(g->mem, api_kind(API_NODE), HK_STR(""), HK_STR("n1"));
    assert_null(json_at(&node->root, "spec.unschedulable")); /* removed, as kubectl does */
    assert_int_equal(cordon(g, "n2", true), -HK_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(evicted_pods_are_waited_for),
        RIG_TEST(finished_pods_and_those_of_daemonsets_stay),
        RIG_TEST(a_pod_that_nothing_creates_again_needs_force),
        RIG_TEST(force_evicts_it),
        RIG_TEST(a_dry_run_names_pods_and_changes_nothing),
        RIG_TEST(a_disruption_budget_delays_an_eviction),
        RIG_TEST(it_is_tried_again_and_succeeds),
        RIG_TEST(another_refusal_ends_the_drain),
        RIG_TEST(an_interrupt_leaves_the_node_cordoned),
        RIG_TEST(cordon_says_what_changed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/drain", tests, NULL, NULL);
}
