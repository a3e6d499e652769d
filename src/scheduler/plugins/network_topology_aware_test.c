// SPDX-License-Identifier: Apache-2.0
// Domains and scores in the tree s3, s4 under s1; s5, s6 under s2; s1, s2 under s0. The virtual
// root is tier 4.
#include "scheduler/plugins/rig_test.h"
#include "scheduler/stmt.h"

#include "scheduler/hooks.h"

#include <math.h>

static const char *const leaf_nodes[] = {"n3a", "n3b", "n4a", "n4b", "n5a", "n5b", "n6a", "n6b"};

struct tree {
    const char *amounts[4]; /* of the two nodes in s3, s4, s5, s6 each */
};

static struct hyper_member member(struct rig *r, bool is_hyper, const char *name)
{
    return (struct hyper_member){is_hyper, hk_intern(&r->m.str, hk_str(name))};
}

static void tree(struct rig *r, struct tree t)
{
    static const char *const names[] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6"};
    static const int32_t tiers[] = {3, 2, 2, 1, 1, 1, 1};
    struct hyper_member at[7][2];
    struct hyper_desc d[7];

    for (uint32_t i = 0; i < 8; i++) {
        rig_node(r, leaf_nodes[i], t.amounts[i / 2]);
        at[3 + i / 2][i % 2] = member(r, false, leaf_nodes[i]);
    }
    for (uint32_t i = 1; i < 7; i++) {
        at[(i - 1) / 2][(i - 1) % 2] = member(r, true, names[i]);
    }
    for (uint32_t i = 0; i < 7; i++) {
        d[i] = (struct hyper_desc){
            .name = hk_str(names[i]), .tier = tiers[i], .members = at[i], .nmember = 2};
    }
    assert_true(model_hyper_rebuild(&r->m, d, 7, NULL));
    rig_queue(r, "q");
}

static const struct tree even = {
    {"cpu=2 mem=4 pods=10", "cpu=2 mem=4 pods=10", "cpu=2 mem=4 pods=10", "cpu=2 mem=4 pods=10"}};

static hyper_id hyper(struct rig *r, const char *name)
{
    const hyper_id h = model_hyper_find(&r->m, hk_str(name));

    assert_false(id_none(h));
    return h;
}

static job_id job(struct rig *r, int32_t tier, const char *minres)
{
    const job_id j = rig_job(r, "j", "q", .min = 1, .phase = PG_INQUEUE, .minres = minres);

    model_job(&r->m, j)->topo =
        (struct topo_spec){.mode = TOPO_HARD, .has_tier = true, .tier = tier};
    return j;
}

static sub_id sub(struct rig *r, job_id j)
{
    const sub_id s = model_job(&r->m, j)->first_sub;

    model_sub(&r->m, s)->topo = model_job(&r->m, j)->topo;
    return s;
}

static void open_with(struct rig *r, const char *arguments)
{
    rig_open(r, "network-topology-aware", arguments);
}

static double score(struct rig *r, task_id t, const char *name)
{
    node_id nodes[HK_LEN(leaf_nodes)];
    double got[HK_LEN(leaf_nodes)];
    uint32_t n = 0, want = HK_NONE;

    for (uint32_t i = 0; i < HK_LEN(leaf_nodes); i++) {
        nodes[n] = model_node_find(&r->m, hk_str(leaf_nodes[i]));
        want = strcmp(leaf_nodes[i], name) == 0 ? n : want;
        n++;
    }
    assert_int_equal(hooks_score(&r->ssn, t, nodes, n, got), 0);
    return got[want];
}

#define assert_near(got, want)                                                                     \
    do {                                                                                           \
        const double g_ = (got);                                                                   \
        if (fabs(g_ - (want)) > 0.05) {                                                            \
            fail_msg("expected %g, got %g", (double)(want), g_);                                   \
        }                                                                                          \
    } while (0)

static void nodes_near_the_job_score_higher(void **state)
{
    static const struct {
        const char *arguments;
        double near, next, far;
    } cases[] = {
        {"", 100, 66.7, 33.3},
        {"    arguments:\n      weight: 2\n", 200, 133.3, 66.7},
        {"    arguments:\n      weight: 0\n", 0, 0, 0},
        {"    arguments:\n      weight: -1\n", 100, 66.7, 33.3},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        RIG(r);
        tree(&r, even);
        const job_id j = job(&r, 3, NULL);
        const task_id t = rig_task(&r, "j", "p", .req = "cpu=1");
        const sub_id s = sub(&r, j);
        open_with(&r, cases[i].arguments);
        assert_near(score(&r, t, "n3a"), 0); /* not placed yet */
        model_sub(&r.m, s)->mark = hyper(&r, "s3");
        assert_near(score(&r, t, "n3a"), cases[i].near);
        assert_near(score(&r, t, "n4b"), cases[i].next);
        assert_near(score(&r, t, "n5a"), cases[i].far);
        assert_int_equal(hooks_score_local(&r.ssn, t), cases[i].near == 0);
    }
}

static void of_equally_near_nodes_those_with_company_are_better(void **state)
{
    RIG(r);
    tree(&r, even);
    const job_id j = job(&r, 3, NULL);
    rig_task(&r, "j", "a", .req = "cpu=1", .status = TASK_RUNNING, .node = "n3a");
    rig_task(&r, "j", "b", .req = "cpu=1", .status = TASK_RUNNING, .node = "n3b");
    const task_id c = rig_task(&r, "j", "c", .req = "cpu=1");
    const task_id t = rig_task(&r, "j", "p", .req = "cpu=1");
    const sub_id s = sub(&r, j);
    open_with(&r, "");
    model_sub(&r.m, s)->mark = hyper(&r, "s1");
    assert_near(score(&r, t, "n4a"), 66.7);
    const stmt_mark_t mark = stmt_mark(&r.ssn);
    assert_true(stmt_allocate(&r.ssn, c, model_node_find(&r.m, HK_STR("n4a"))));
    assert_near(score(&r, t, "n3a"), 116.7);
    assert_near(score(&r, t, "n4b"), 91.7);
    assert_near(score(&r, t, "n5a"), 33.3);
    stmt_rewind(&r.ssn, mark);
    assert_near(score(&r, t, "n4b"), 66.7);
}

static void pods_without_topology_fill_hypernodes_up(void **state)
{
    static const struct {
        const char *arguments;
        double want;
    } cases[] = {
        /* (0.5 + 0.8 * 0.2083 + 0.64 * 0.0833 + 0.512 * 0.0833) / 2.952 */
        {"", 25.8},
        {"    arguments:\n      hypernode.binpack.normal-pod.fading: 0\n", 50},
        {"    arguments:\n      hypernode.binpack.normal-pod.fading: -3\n", 25.8},
        {"    arguments:\n      hypernode.binpack.normal-pod.enable: false\n", 0},
        {"    arguments:\n      hypernode.binpack.memory: 0\n", 24.7},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        RIG(r);
        /* s3 has 4 cpu and 8 of memory, s1 12 and 16, s0 24 and 48. */
        tree(&r, (struct tree){{"cpu=2 mem=4 pods=9", "cpu=4 mem=4 pods=9", "cpu=3 mem=8 pods=9",
                                "cpu=3 mem=8 pods=9"}});
        rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
        const task_id t = rig_task(&r, "j", "p", .req = "cpu=2 mem=4");
        open_with(&r, cases[i].arguments);
        assert_near(score(&r, t, "n3a"), cases[i].want);
        assert_int_equal(hooks_score_local(&r.ssn, t), cases[i].want == 0);
    }
}

static void a_node_outside_scores_in_full(void **state)
{
    RIG(r);
    tree(&r, even);
    const node_id out = rig_node(&r, "out", "cpu=2 mem=4 pods=10");
    rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
    const task_id t = rig_task(&r, "j", "p", .req = "cpu=2 mem=4");
    double got;

    open_with(&r, "    arguments:\n      hypernode.binpack.normal-pod.fading: 0\n");
    assert_int_equal(hooks_score(&r.ssn, t, &out, 1, &got), 0);
    assert_near(got, 100);
    assert_near(score(&r, t, "n3a"), 50);
}

static void fuller_domains_score_higher(void **state)
{
    static const char *const names[] = {"s3", "s4", "s6"};
    static const double want[] = {0, 100, 75}; /* s3 is too small */
    RIG(r);
    tree(&r, (struct tree){{"cpu=2 mem=4 pods=9", "cpu=4 mem=4 pods=9", "cpu=4 mem=4 pods=9",
                            "cpu=4 mem=8 pods=9"}});
    const job_id j = job(&r, 1, NULL);
    const task_id a = rig_task(&r, "j", "a", .req = "cpu=4 mem=4");
    rig_task(&r, "j", "b", .req = "cpu=4 mem=4");
    const sub_id s = sub(&r, j);
    double got[3];
    hyper_id at[3];

    open_with(&r, "");
    for (uint32_t i = 0; i < 3; i++) {
        at[i] = hyper(&r, names[i]);
    }
    assert_true(hooks_hyper_order(&r.ssn, s, at, 3, got));
    for (uint32_t i = 0; i < 3; i++) {
        assert_near(got[i], want[i]);
    }
    /* Used amounts count in addition to the whole sub-job. */
    const stmt_mark_t mark = stmt_mark(&r.ssn);
    assert_true(stmt_allocate(&r.ssn, a, model_node_find(&r.m, HK_STR("n4a"))));
    assert_true(hooks_hyper_order(&r.ssn, s, at, 3, got));
    assert_near(got[1], 0);
    stmt_rewind(&r.ssn, mark);
    assert_true(hooks_hyper_order(&r.ssn, s, at, 3, got));
    assert_near(got[1], 100);
}

/* "s3 s4 | s1" */
static const char *words(struct rig *r, const struct gradients *g)
{
    const char *text = "";

    for (uint32_t i = 0; i < g->n; i++) {
        text = hk_arena_printf(r->ssn.mem, "%s%s", text, i ? " |" : "");
        for (uint32_t k = 0; k < g->at[i].n; k++) {
            const struct hk_str name = model_str(&r->m, r->m.hypers.at[g->at[i].at[k].i].name);
            text = hk_arena_printf(r->ssn.mem, "%s%s%.*s", text, i + k ? " " : "", HK_FMT(name));
        }
    }
    return text;
}

static void domains_keep_a_job_within_its_tier(void **state)
{
    static const struct {
        int32_t tier;
        const char *minres, *mark, *start, *want; /* NULL: refused */
    } cases[] = {
        {1, NULL, NULL, NULL, "s3 s4 s5 s6"},
        {2, NULL, NULL, NULL, "s3 s4 s5 s6 | s1 s2"},
        {2, NULL, NULL, "s1", "s3 s4 | s1"},
        {4, NULL, NULL, NULL, "s3 s4 s5 s6 | s1 s2 | s0 | <cluster-top-hypernode>"},
        {3, "cpu=5", NULL, NULL, "s1 s2 | s0"},
        {3, "cpu=9", NULL, NULL, "s0"},
        {3, "cpu=17", NULL, NULL, ""},
        {2, NULL, "s3", NULL, "s3 s4 | s1"},
        {1, NULL, "s3", NULL, "s3"},
        {2, NULL, "s3", "s4", "s4"},
        {2, "cpu=99", "s3", "s4", "s4"}, /* part of it runs: the rest must be near */
        {2, NULL, "s3", "s2", NULL},
        {1, NULL, "s1", NULL, NULL}, /* already spread too far */
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        RIG(r);
        tree(&r, even);
        const job_id j = job(&r, cases[i].tier, cases[i].minres);
        rig_task(&r, "j", "p", .req = "cpu=1");
        const hyper_id start = cases[i].start ? hyper(&r, cases[i].start) : HYPER_ROOT;
        struct gradients g = {0};
        open_with(&r, "");
        model_job(&r.m, j)->mark = cases[i].mark ? hyper(&r, cases[i].mark) : NO_HYPER;
        const bool ok = hooks_gradient_job(&r.ssn, j, start, GRADIENT_ALLOCATE, &g);
        assert_int_equal(ok, cases[i].want != NULL);
        if (ok) {
            assert_string_equal(words(&r, &g), cases[i].want);
        }
    }
}

static void without_topology_there_is_one_domain(void **state)
{
    RIG(r);
    tree(&r, even);
    const job_id j = rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
    rig_task(&r, "j", "p", .req = "cpu=1");
    struct gradients g = {0};

    open_with(&r, "");
    assert_true(hooks_gradient_job(&r.ssn, j, hyper(&r, "s1"), GRADIENT_ALLOCATE, &g));
    assert_string_equal(words(&r, &g), "s1");
    assert_true(hooks_gradient_sub(&r.ssn, model_job(&r.m, j)->first_sub, hyper(&r, "s2"),
                                   GRADIENT_EVICT, &g));
    assert_string_equal(words(&r, &g), "s2");
}

/* Only what is free at the time of the call counts. */
static void full_domains_are_left_out(void **state)
{
    RIG(r);
    tree(&r, even);
    const job_id j = job(&r, 1, NULL);
    rig_task(&r, "j", "a", .req = "cpu=2");
    rig_task(&r, "j", "b", .req = "cpu=2");
    const sub_id s = sub(&r, j);
    rig_job(&r, "other", "q", .phase = PG_INQUEUE);
    const task_id o = rig_task(&r, "other", "o", .req = "cpu=1");
    struct gradients g = {0};

    open_with(&r, "");
    const stmt_mark_t mark = stmt_mark(&r.ssn);
    assert_true(stmt_allocate(&r.ssn, o, model_node_find(&r.m, HK_STR("n4a"))));
    /* A job with minimum 1 may start in a domain without room for both tasks, as the last
     * choice. */
    assert_true(hooks_gradient_sub(&r.ssn, s, HYPER_ROOT, GRADIENT_ALLOCATE, &g));
    assert_string_equal(words(&r, &g), "s3 s5 s6 | s4");
    model_sub(&r.m, s)->min = 2;
    assert_true(hooks_gradient_sub(&r.ssn, s, HYPER_ROOT, GRADIENT_ALLOCATE, &g));
    assert_string_equal(words(&r, &g), "s3 s5 s6");
    /* For evictions only the domain's size counts. */
    assert_true(hooks_gradient_sub(&r.ssn, s, HYPER_ROOT, GRADIENT_EVICT, &g));
    assert_string_equal(words(&r, &g), "s3 s4 s5 s6");
    stmt_rewind(&r.ssn, mark);
    assert_true(hooks_gradient_sub(&r.ssn, s, HYPER_ROOT, GRADIENT_ALLOCATE, &g));
    assert_string_equal(words(&r, &g), "s3 s4 s5 s6");
}

static void evictors_get_wide_domains_first_and_few(void **state)
{
    static const struct {
        const char *max, *want;
    } cases[] = {
        {"3", "s1 s2 | s6"}, {"1", "s2"}, {"0", "s1 s2 | s3 s4 s5 s6"}, /* 8 */
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        RIG(r);
        tree(&r, even);
        const job_id j = job(&r, 2, NULL);
        rig_task(&r, "j", "p", .req = "cpu=1");
        struct gradients g = {0};
        char text[128];
        snprintf(text, sizeof(text),
                 "    arguments:\n      hypernode.gradient.evict.max-hypernodes: %s\n",
                 cases[i].max);
        open_with(&r, text);
        assert_true(hooks_gradient_job(&r.ssn, j, HYPER_ROOT, GRADIENT_EVICT, &g));
        assert_string_equal(words(&r, &g), cases[i].want);
    }
}

static void further_resources_are_listed(void **state)
{
    RIG(r);
    tree(&r, (struct tree){{"cpu=2 mem=4 gpu=4 pods=9", "cpu=2 mem=4 gpu=4 pods=9",
                            "cpu=2 mem=4 gpu=4 pods=9", "cpu=2 mem=4 gpu=4 pods=9"}});
    rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
    const task_id t = rig_task(&r, "j", "p", .req = "cpu=2 mem=4 gpu=8");

    open_with(&r, "    arguments:\n"
                  "      hypernode.binpack.normal-pod.fading: 0\n"
                  "      hypernode.binpack.resources: cpu, example.com/gpu, example.com/none\n"
                  "      hypernode.binpack.resources.cpu: 7\n"
                  "      hypernode.binpack.resources.example.com/gpu: 2\n");
    assert_near(score(&r, t, "n3a"), (0.5 + 0.5 + 2 * 1.0) / 4 * 100);
}

static void without_hypernodes_nothing_is_scored(void **state)
{
    RIG(r);
    rig_node(&r, "n3a", "cpu=2 mem=4 pods=10");
    rig_queue(&r, "q");
    const job_id j = job(&r, 1, NULL);
    const task_id t = rig_task(&r, "j", "p", .req = "cpu=1");
    const sub_id s = sub(&r, j);
    const node_id n = model_node_find(&r.m, HK_STR("n3a"));
    struct gradients g = {0};
    double got;

    open_with(&r, "");
    assert_true(hooks_score_local(&r.ssn, t));
    assert_int_equal(hooks_score(&r.ssn, t, &n, 1, &got), 0);
    assert_near(got, 0);
    assert_true(stmt_allocate(&r.ssn, t, n));
    stmt_rewind(&r.ssn, 0);
    assert_true(hooks_gradient_sub(&r.ssn, s, HYPER_ROOT, GRADIENT_ALLOCATE, &g));
    assert_string_equal(words(&r, &g), "<cluster-top-hypernode>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_near_the_job_score_higher),
        cmocka_unit_test(of_equally_near_nodes_those_with_company_are_better),
        cmocka_unit_test(pods_without_topology_fill_hypernodes_up),
        cmocka_unit_test(a_node_outside_scores_in_full),
        cmocka_unit_test(fuller_domains_score_higher),
        cmocka_unit_test(domains_keep_a_job_within_its_tier),
        cmocka_unit_test(without_topology_there_is_one_domain),
        cmocka_unit_test(full_domains_are_left_out),
        cmocka_unit_test(evictors_get_wide_domains_first_and_few),
        cmocka_unit_test(further_resources_are_listed),
        cmocka_unit_test(without_hypernodes_nothing_is_scored),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
