// SPDX-License-Identifier: Apache-2.0
// Allocation in topology domains. A small test plugin makes the gradients: domains below the start,
// by tier, that keep the job within its limit.
#include "scheduler/actions/domain.h"

#include "scheduler/actions/cycle_test.h"

static const char conf[] =
    "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n";

static bool below(const struct model *m, hyper_id h, hyper_id top)
{
    return id_eq(model_hyper_lca(m, h, top), top);
}

static bool gradients(struct session *ssn, const struct topo_spec *topo, hyper_id mark,
                      hyper_id start, struct gradients *ret)
{
    const struct model *m = ssn->m;
    const int32_t top = m->hypers.at[HYPER_ROOT.i].tier;
    const int32_t limit = topo->eff_mode == TOPO_HARD ? topo->eff_tier : top;

    ret->n = 0;
    ret->at = hk_arena_zalloc(ssn->mem, (size_t)(top + 1) * sizeof(ret->at[0]));
    if (topo->eff_mode != TOPO_HARD) {
        ret->at[0] = (struct gradient){hk_arena_alloc(ssn->mem, sizeof(hyper_id)), 1};
        ret->at[0].at[0] = start;
        ret->n = 1;
        return true;
    }
    for (int32_t tier = 1; tier <= limit; tier++) {
        struct gradient *g = &ret->at[ret->n];
        g->at = hk_arena_array(ssn->mem, m->hypers.len, sizeof(g->at[0]));
        for (uint32_t i = 0; i < m->hypers.len; i++) {
            const hyper_id h = {i}, both = model_hyper_lca(m, mark, h);
            if (m->hypers.at[i].tier == tier && below(m, h, start) &&
                m->hypers.at[both.i].tier <= limit) {
                g->at[g->n++] = h;
            }
        }
        ret->n += g->n > 0;
    }
    return true;
}

static bool for_job(struct session *ssn, void *self, job_id j, hyper_id start,
                    enum gradient_purpose why, struct gradients *ret)
{
    const struct job *job = model_job(ssn->m, j);

    return gradients(ssn, &job->topo, job->mark, start, ret);
}

static bool for_sub(struct session *ssn, void *self, sub_id s, hyper_id start,
                    enum gradient_purpose why, struct gradients *ret)
{
    const struct sub_job *sub = model_sub(ssn->m, s);

    return gradients(ssn, &sub->topo, sub->mark, start, ret);
}

static int order(struct session *ssn, void *self, sub_id s, const hyper_id *at, uint32_t n,
                 double *score)
{
    return 0;
}

static const struct plugin plugin_tiers = {
    .name = "tiers", .gradient_job = for_job, .gradient_sub = for_sub, .hyper_order = order};

/* s0 = {n1, n2}, s1 = {n3, n4} of tier 1 under s2 of tier 2. One pod fills a node. */
static void tree(struct rig *r)
{
    static const char *const nodes[] = {"n1", "n2", "n3", "n4"};
    struct hyper_member leaf[4], child[2];

    for (uint32_t i = 0; i < 4; i++) {
        rig_node(r, nodes[i], "cpu=2 pods=10");
        leaf[i] = (struct hyper_member){.name = hk_intern(&r->m.str, hk_str(nodes[i]))};
    }
    child[0] = (struct hyper_member){true, hk_intern(&r->m.str, HK_STR("s0"))};
    child[1] = (struct hyper_member){true, hk_intern(&r->m.str, HK_STR("s1"))};
    const struct hyper_desc d[] = {
        {.name = HK_STR("s0"), .tier = 1, .members = leaf, .nmember = 2},
        {.name = HK_STR("s1"), .tier = 1, .members = leaf + 2, .nmember = 2},
        {.name = HK_STR("s2"), .tier = 2, .members = child, .nmember = 2},
    };
    assert_true(model_hyper_rebuild(&r->m, d, 3, NULL));
    rig_queue(r, "q");
}

static void run(struct rig *r)
{
    rig_open_at(r, conf, 0);
    const struct hook h = {.p = &plugin_tiers};
    for (uint32_t k = 0; k < HOOK_N; k++) {
        if (plugin_has_hook(&plugin_tiers, k)) {
            r->ssn.hooks[k].at[r->ssn.hooks[k].n++] = h;
        }
    }
    session_run(&r->ssn);
}

static void hard(struct rig *r, job_id j, int32_t tier)
{
    const struct topo_spec topo = {.mode = TOPO_HARD, .has_tier = true, .tier = tier};

    model_job(&r->m, j)->topo = topo;
    for (sub_id s = model_job(&r->m, j)->first_sub; !id_none(s); s = model_sub(&r->m, s)->next) {
        model_sub(&r->m, s)->topo = topo;
    }
}

static job_id pods(struct rig *r, int32_t min, uint32_t n, int32_t tier)
{
    const job_id j = rig_job(r, "j", "q", .min = min, .phase = PG_INQUEUE);

    for (uint32_t k = 0; k < n; k++) {
        const char name[] = {'p', (char)('1' + k), '\0'};
        rig_task(r, "j", name, .req = "cpu=2");
    }
    hard(r, j, tier);
    return j;
}

static void job_stays_within_its_tier(void **state)
{
    static const struct {
        int32_t min;
        uint32_t n;
        int32_t tier;
        const char *bound;
    } cases[] = {
        {3, 3, 1, ""},
        {3, 3, 2, "p1@n1 p2@n2 p3@n3"},
        {2, 2, 1, "p1@n1 p2@n2"},
        {1, 2, 1, "p1@n1 p2@n2"}, /* the second in a later turn, in the same domain */
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        RIG(r);
        tree(&r);
        const job_id j = pods(&r, cases[i].min, cases[i].n, cases[i].tier);
        run(&r);
        assert_int_equal(r.ssn.decisions.len, cases[i].bound[0] ? cases[i].n : 0);
        if (cases[i].tier == 1 && cases[i].bound[0]) {
            const hyper_id mark = model_job(&r.m, j)->mark;
            assert_false(id_none(mark));
            assert_int_equal(r.m.hypers.at[mark.i].tier, 1);
            for (uint32_t k = 0; k < r.ssn.decisions.len; k++) {
                const node_id n = r.ssn.decisions.at[k].node;
                assert_true((r.m.hypers.at[mark.i].bits[0] >> n.i) & 1);
            }
        }
        cycle_end(&r);
    }
}

static void later_members_stay_with_the_first(void **state)
{
    static const struct {
        int32_t tier;
        uint32_t bound;
    } cases[] = {{2, 1}, {1, 0}};

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        RIG(r);
        tree(&r);
        const job_id j = rig_job(&r, "j", "q", .min = 2, .phase = PG_INQUEUE);
        rig_task(&r, "j", "p1", .req = "cpu=2", .status = TASK_RUNNING, .node = "n1");
        rig_task(&r, "j", "p2", .req = "cpu=2", .status = TASK_RUNNING, .node = "n2");
        rig_task(&r, "j", "p3", .req = "cpu=2");
        hard(&r, j, cases[i].tier);
        run(&r);
        assert_int_equal(r.ssn.decisions.len, cases[i].bound);
        cycle_end(&r);
    }
}

/* One node of the first domain is in use: the job goes whole into the second domain. */
static void failed_domains_leave_no_trace(void **state)
{
    RIG(r);
    tree(&r);
    rig_job(&r, "other", "q", .min = 0, .phase = PG_RUNNING);
    rig_task(&r, "other", "o1", .req = "cpu=1", .status = TASK_RUNNING, .node = "n1");
    pods(&r, 2, 2, 1);
    run(&r);
    assert_bound(&r, "p1@n3 p2@n4");
    cycle_end(&r);
}

static void nomination_is_redeemed_or_dropped(void **state)
{
    for (int room = 0; room < 2; room++) {
        RIG(r);
        tree(&r);
        rig_job(&r, "other", "q", .min = 0, .phase = PG_RUNNING);
        if (!room) {
            rig_task(&r, "other", "o1", .req = "cpu=2", .status = TASK_RUNNING, .node = "n4");
        }
        const job_id j = pods(&r, 2, 2, 1);
        struct sub_job *sub = model_sub(&r.m, model_job(&r.m, j)->first_sub);
        sub->nominated = model_hyper_find(&r.m, HK_STR("s1"));
        uint32_t at = 2;
        for (uint32_t k = 0; k < r.m.tasks.len; k++) {
            if (id_eq(r.m.tasks.at[k].job, j)) {
                model_task_nominate(&r.m, (task_id){k}, (node_id){at++});
            }
        }
        run(&r);
        assert_bound(&r, room ? "p1@n3 p2@n4" : "p1@n1 p2@n2");
        assert_true(id_none(sub->nominated));
        cycle_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_stays_within_its_tier),
        cmocka_unit_test(later_members_stay_with_the_first),
        cmocka_unit_test(failed_domains_leave_no_trace),
        cmocka_unit_test(nomination_is_redeemed_or_dropped),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
