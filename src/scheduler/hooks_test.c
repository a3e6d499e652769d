// SPDX-License-Identifier: Apache-2.0
// The combination rules other than orders.
#include "scheduler/hooks_rig_test.h"

static void every_kind_is_named_and_found_in_the_plugin(void **state)
{
    static const struct plugin none = {.name = "none"};

    for (int k = 0; k < HOOK_N; k++) {
        assert_non_null(hook_name((enum hook_kind)k));
        assert_true(plugin_has_hook(&fake_plugin, (enum hook_kind)k));
        assert_false(plugin_has_hook(&none, (enum hook_kind)k));
    }
    assert_string_equal(hook_switch(HOOK_FILTER), "enablePredicate");
    assert_string_equal(hook_switch(HOOK_SUB_ORDER), "enabledSubJobOrder");
    assert_null(hook_switch(HOOK_VICTIM_QUEUE_ORDER));
    assert_null(hook_switch(HOOK_JOB_VALID));
    assert_null(hook_switch(HOOK_EVICTABLE));
    assert_null(hook_switch(HOOK_ALLOCATE));
}

/* ---- victims ---- */

/* A tier digit for each plugin, then their answers: "0" abstains, "-" vetoes, letters name
 * victims. */
struct narrow_case {
    const char *tiers;
    const char *answers[NHOOK];
    const char *want;
};

static const struct narrow_case narrow_cases[] = {
    {"11", {"ab", "bc"}, "b"},           /* answers of one tier are intersected */
    {"11", {"0", "a"}, "a"},             /* an abstention is skipped */
    {"112", {"-", "a", "a"}, "a"},       /* from tier 2 */
    {"", {0}, ""},                       /* no plugin, no victim */
    {"1", {"0"}, ""},                    /* only abstentions */
    {"112", {"cba", "abc", "d"}, "cba"}, /* order of the first list; tier 2 is not asked */
    {"12", {"a", "-"}, "a"},             /* a later tier is not asked, so its veto has no effect */
    {"112", {"a", "-", "c"}, "c"},       /* a veto ends only its own tier */
    {"112", {"a", "-", "-"}, ""},
    {"111", {"a", "b", "ab"}, ""}, /* no victim in common is a veto (upstream: "ab") */
    {"112", {"a", "b", "c"}, "c"}, /* and the next tier decides */
    {"1111", {"abcd", "bcd", "0", "dc"}, "cd"},
};

static void narrow_answer(struct fake *f, const char *answer)
{
    f->vote = *answer == '0' ? ABSTAIN : PERMIT;
    f->names = strchr("0-", *answer) ? (*answer == '0' ? "h" : "") : answer;
}

static void assert_tasks(const task_id *at, uint32_t n, const char *want, size_t k)
{
    char got[NTASK + 1] = {0};

    hk_assert(n <= NTASK);
    for (uint32_t i = 0; i < n; i++) {
        got[i] = (char)('a' + at[i].i);
    }
    if (strcmp(got, want) != 0 || (n == 0) != (at == NULL)) {
        fail_msg("case %zu: got \"%s\", want \"%s\"", k, got, want);
    }
}

static void victims_narrow_tier_by_tier(void **state)
{
    static const enum hook_kind which[] = {HOOK_PREEMPTABLE, HOOK_RECLAIMABLE, HOOK_EVICTABLE};
    struct world *w = *state;
    task_id in[NTASK];

    for (uint32_t i = 0; i < NTASK; i++) {
        in[i] = (task_id){i};
    }
    for (size_t kind = 0; kind < HK_LEN(which); kind++) {
        for (size_t k = 0; k < HK_LEN(narrow_cases); k++) {
            const struct narrow_case *c = &narrow_cases[k];
            struct fake *f = arrange(w, which[kind], c->tiers);
            task_id *got = in;
            uint32_t n = 0;
            for (uint32_t i = 0; i < strlen(c->tiers); i++) {
                narrow_answer(&f[i], c->answers[i]);
            }
            switch (which[kind]) {
            case HOOK_PREEMPTABLE:
                n = hooks_preemptable(&w->ssn, NO_TASK, in, NTASK, &got);
                break;
            case HOOK_RECLAIMABLE:
                n = hooks_reclaimable(&w->ssn, NO_TASK, in, NTASK, &got);
                break;
            default:
                n = hooks_evictable(&w->ssn, EVICT_GANG_RECLAIM, (job_id){1}, (hyper_id){7}, in,
                                    NTASK, &got);
            }
            assert_tasks(got, n, c->want, k);
            for (uint32_t i = 0; i < strlen(c->tiers); i++) {
                assert_true(f[i].calls == 0 || f[i].seen == NTASK); /* the full list */
            }
        }
    }
}

static void a_reject_with_victims_counts_like_a_permit(void **state)
{
    struct world *w = *state;
    const task_id in[] = {{0}, {1}};
    task_id *got;
    struct fake *f = arrange(w, HOOK_PREEMPTABLE, "1");

    f->vote = REJECT;
    f->names = "b";
    const uint32_t n = hooks_preemptable(&w->ssn, NO_TASK, in, 2, &got);
    assert_tasks(got, n, "b", 0);
}

static void shuffle_victims_are_the_union_of_the_first_tier_with_any(void **state)
{
    static const struct narrow_case cases[] = {
        {"112", {"ba", "ac", "d"}, "bac"},
        {"112", {"", "", "d"}, "d"},
        {"12", {"", ""}, ""},
        {"", {0}, ""},
    };
    struct world *w = *state;
    task_id in[NTASK], *got;

    for (uint32_t i = 0; i < NTASK; i++) {
        in[i] = (task_id){i};
    }
    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct fake *f = arrange(w, HOOK_VICTIM_TASKS, cases[k].tiers);
        for (uint32_t i = 0; i < strlen(cases[k].tiers); i++) {
            f[i].names = cases[k].answers[i];
        }
        const uint32_t n = hooks_victim_tasks(&w->ssn, in, NTASK, &got);
        assert_tasks(got, n, cases[k].want, k);
    }
}

/* ---- yes or no ---- */

static bool ask_yes(struct world *w, enum hook_kind kind)
{
    struct session *ssn = &w->ssn;
    const queue_id q = {0};
    const task_id t = {0};
    struct reason why = {0};

    switch (kind) {
    case HOOK_PRE_PREDICATE:
        return hooks_pre_predicate(ssn, t, &why);
    case HOOK_OVERUSED:
        return hooks_overused(ssn, q);
    case HOOK_PREEMPTIVE:
        return hooks_preemptive(ssn, q, &t, 1);
    case HOOK_ALLOCATABLE:
        return hooks_allocatable(ssn, q, t);
    case HOOK_BINDABLE:
        return hooks_bindable(ssn, q, t);
    case HOOK_JOB_READY:
        return hooks_job_ready(ssn, (job_id){0});
    case HOOK_SUB_READY:
        return hooks_sub_ready(ssn, (sub_id){0});
    default:
        fail_msg("no yes-no question: %s", hook_name(kind));
        return false;
    }
}

static void all_must_agree_and_the_first_no_ends_it(void **state)
{
    static const enum hook_kind which[] = {HOOK_PRE_PREDICATE, HOOK_PREEMPTIVE, HOOK_ALLOCATABLE,
                                           HOOK_BINDABLE,      HOOK_JOB_READY,  HOOK_SUB_READY};
    struct world *w = *state;

    w->jobs[0].policies.len = 1;
    for (size_t k = 0; k < HK_LEN(which); k++) {
        assert_true(ask_yes(w, which[k]));
        struct fake *f = arrange(w, which[k], "122");
        f[0].yes = f[1].yes = f[2].yes = true;
        assert_true(ask_yes(w, which[k]));
        assert_int_equal(f[2].calls, 1);
        f[1].yes = false;
        assert_false(ask_yes(w, which[k]));
        assert_int_equal(f[2].calls, 1);
    }
}

static void the_refusing_plugin_gives_the_reason(void **state)
{
    struct world *w = *state;
    struct reason why = {0};
    struct fake *f = arrange(w, HOOK_PRE_PREDICATE, "12");

    f[0].yes = true;
    f[1].seen = 42;
    assert_false(hooks_pre_predicate(&w->ssn, (task_id){0}, &why));
    assert_int_equal(why.code, REASON_TEXT);
    assert_int_equal(why.arg, 42);
}

static void one_yes_makes_a_queue_overused(void **state)
{
    struct world *w = *state;

    assert_false(ask_yes(w, HOOK_OVERUSED));
    struct fake *f = arrange(w, HOOK_OVERUSED, "123");
    assert_false(ask_yes(w, HOOK_OVERUSED));
    f[1].yes = true;
    assert_true(ask_yes(w, HOOK_OVERUSED));
    assert_int_equal(f[2].calls, 1);
}

static void starving_is_decided_by_the_first_tier_that_asks(void **state)
{
    struct world *w = *state;
    const job_id j = {0};

    assert_false(hooks_job_starving(&w->ssn, j));
    struct fake *f = arrange(w, HOOK_JOB_STARVING, "223");
    f[0].yes = f[1].yes = true;
    assert_true(hooks_job_starving(&w->ssn, j)); /* tier 3 is not asked */
    assert_int_equal(f[2].calls, 0);
    f[1].yes = false;
    f[2].yes = true;
    assert_false(hooks_job_starving(&w->ssn, j));
}

static void the_first_failing_validity_is_returned(void **state)
{
    struct world *w = *state;
    const job_id j = {0};

    assert_null(hooks_job_valid(&w->ssn, j));
    struct fake *f = arrange(w, HOOK_JOB_VALID, "123");
    assert_null(hooks_job_valid(&w->ssn, j));
    f[1].invalid = "too few";
    f[2].invalid = "too late";
    assert_string_equal(hooks_job_valid(&w->ssn, j), "too few");
    assert_int_equal(f[2].calls, 1);
}

/* ---- votes ---- */

static void votes_are_counted_tier_by_tier(void **state)
{
    static const struct {
        const char *tiers;
        enum vote vote[NHOOK];
        bool want;
        uint32_t asked; /* plugins called */
    } cases[] = {
        {"", {0}, true, 0},
        {"12", {ABSTAIN, ABSTAIN}, true, 2},
        {"11", {PERMIT, REJECT}, false, 2}, /* a reject wins over a permit of its tier */
        {"12", {PERMIT, REJECT}, true, 1},  /* but not one of an earlier tier */
        {"12", {REJECT, PERMIT}, false, 1},
        {"1122", {ABSTAIN, ABSTAIN, PERMIT, REJECT}, false, 4},
        {"1122", {PERMIT, ABSTAIN, REJECT, REJECT}, true, 2},
        {"11", {ABSTAIN, PERMIT}, true, 2},
    };
    static const enum hook_kind which[] = {HOOK_JOB_PIPELINED, HOOK_JOB_ENQUEUEABLE,
                                           HOOK_SUB_PIPELINED};
    struct world *w = *state;

    w->jobs[0].policies.len = 1;
    for (size_t kind = 0; kind < HK_LEN(which); kind++) {
        for (size_t k = 0; k < HK_LEN(cases); k++) {
            struct fake *f = arrange(w, which[kind], cases[k].tiers);
            uint32_t asked = 0;
            for (uint32_t i = 0; i < NHOOK; i++) {
                f[i].vote = cases[k].vote[i];
            }
            const bool got =
                which[kind] == HOOK_JOB_PIPELINED     ? hooks_job_pipelined(&w->ssn, (job_id){0})
                : which[kind] == HOOK_JOB_ENQUEUEABLE ? hooks_job_enqueueable(&w->ssn, (job_id){0})
                                                      : hooks_sub_pipelined(&w->ssn, (sub_id){0});
            for (uint32_t i = 0; i < NHOOK; i++) {
                asked += f[i].calls;
            }
            if (got != cases[k].want || asked != cases[k].asked) {
                fail_msg("%s case %zu: got %d after %u, want %d after %u", hook_name(which[kind]),
                         k, got, asked, cases[k].want, cases[k].asked);
            }
        }
    }
}

static void a_sub_job_without_policies_answers_as_its_job(void **state)
{
    struct world *w = *state;
    const sub_id s = {0};

    arrange(w, HOOK_JOB_READY, "1")[0].yes = false;
    assert_false(hooks_sub_ready(&w->ssn, s));
    w->jobs[0].policies.len = 1;
    assert_true(hooks_sub_ready(&w->ssn, s));
    arrange(w, HOOK_JOB_PIPELINED, "1")[0].vote = REJECT;
    assert_true(hooks_sub_pipelined(&w->ssn, s));
    w->jobs[0].policies.len = 0;
    assert_false(hooks_sub_pipelined(&w->ssn, s));
}

/* ---- nodes ---- */

static void filters_run_in_turn_on_what_is_left(void **state)
{
    struct world *w = *state;
    node_id nodes[] = {{2}, {0}, {1}};
    struct fake *f = arrange(w, HOOK_FILTER, "123");

    f[0].drop = 0;
    f[1].drop = 2;
    f[2].drop = ID_NONE;
    assert_int_equal(hooks_filter(&w->ssn, (task_id){0}, FILTER_PLACE, nodes, 3, NULL), 1);
    assert_int_equal(nodes[0].i, 1);
    assert_int_equal(f[1].seen, 2);
    assert_int_equal(f[2].seen, 1);

    f[0].drop = 1;
    assert_int_equal(hooks_filter(&w->ssn, (task_id){0}, FILTER_PLACE, nodes, 1, NULL), 0);
    assert_int_equal(f[1].calls, 1); /* no node left to filter */
}

static void one_far_looking_plugin_makes_filters_and_scores_not_local(void **state)
{
    struct world *w = *state;
    const task_id t = {0};

    assert_true(hooks_filter_local(&w->ssn, t));
    assert_true(hooks_score_local(&w->ssn, t));
    struct fake *f = arrange(w, HOOK_FILTER, "12");
    assert_true(hooks_filter_local(&w->ssn, t));
    f[1].not_local = true;
    assert_false(hooks_filter_local(&w->ssn, t));
    f = arrange(w, HOOK_SCORE, "12");
    assert_true(hooks_score_local(&w->ssn, t));
    f[0].not_local = true;
    assert_false(hooks_score_local(&w->ssn, t));
}

/* A plugin without a *_local hook may depend on any node. */
static void silent_plugins_are_not_local(void **state)
{
    static const struct plugin silent = {
        .name = "silent", .filter = fake_filter, .score = fake_score};
    struct world *w = *state;

    arrange(w, HOOK_FILTER, "1");
    w->ssn.hooks[HOOK_FILTER].at[0].p = &silent;
    assert_false(hooks_filter_local(&w->ssn, (task_id){0}));
    arrange(w, HOOK_SCORE, "1");
    w->ssn.hooks[HOOK_SCORE].at[0].p = &silent;
    assert_false(hooks_score_local(&w->ssn, (task_id){0}));
}

static void scores_add_up_and_an_error_ends_them(void **state)
{
    struct world *w = *state;
    const node_id nodes[] = {{0}, {3}};
    double score[2] = {7, 7};

    assert_int_equal(hooks_score(&w->ssn, (task_id){0}, nodes, 2, score), 0);
    assert_true(score[0] == 0 && score[1] == 0);
    struct fake *f = arrange(w, HOOK_SCORE, "12");
    f[0].add = 1.5;
    f[1].add = 10;
    assert_int_equal(hooks_score(&w->ssn, (task_id){0}, nodes, 2, score), 0);
    assert_true(score[0] == 11.5 && score[1] == 46);
    f[0].add = -1;
    assert_true(hooks_score(&w->ssn, (task_id){0}, nodes, 2, score) < 0);
    assert_int_equal(f[1].calls, 1);
}

static void the_first_plugin_that_names_a_best_node_chooses(void **state)
{
    struct world *w = *state;
    const node_id nodes[] = {{4}, {5}};
    const double score[] = {1, 2};

    assert_true(id_none(hooks_best_node(&w->ssn, (task_id){0}, nodes, 2, score)));
    struct fake *f = arrange(w, HOOK_BEST_NODE, "123");
    f[0].best = ID_NONE;
    f[1].best = 4;
    f[2].best = 5;
    assert_int_equal(hooks_best_node(&w->ssn, (task_id){0}, nodes, 2, score).i, 4);
}

/* ---- every plugin is called ---- */

static void everyone_hears_even_after_a_refusal(void **state)
{
    struct world *w = *state;

    assert_true(hooks_allocate(&w->ssn, (task_id){0}));
    struct fake *f = arrange(w, HOOK_ALLOCATE, "123");
    f[0].yes = f[2].yes = true;
    assert_false(hooks_allocate(&w->ssn, (task_id){0}));
    assert_int_equal(f[0].calls + f[1].calls + f[2].calls, 3);
    f[1].yes = true;
    assert_true(hooks_allocate(&w->ssn, (task_id){0}));

    f = arrange(w, HOOK_DEALLOCATE, "12");
    hooks_deallocate(&w->ssn, (task_id){0});
    assert_int_equal(f[0].calls + f[1].calls, 2);
    f = arrange(w, HOOK_JOB_ENQUEUED, "12");
    hooks_job_enqueued(&w->ssn, (job_id){0});
    assert_int_equal(f[0].calls + f[1].calls, 2);
}

/* ---- hyperNodes ---- */

static void hyper_scores_add_up_and_an_error_ends_them(void **state)
{
    struct world *w = *state;
    const hyper_id at[] = {{1}, {2}};
    double score[2] = {7, 7};
    struct fake *f = arrange(w, HOOK_HYPER_ORDER, "12");

    f[0].add = 1;
    f[1].add = 2;
    assert_true(hooks_hyper_order(&w->ssn, (sub_id){0}, at, 2, score));
    assert_true(score[0] == 6 && score[1] == 9);
    f[1].add = -1;
    assert_false(hooks_hyper_order(&w->ssn, (sub_id){0}, at, 2, score));
}

static bool ask_gradients(struct world *w, enum hook_kind kind, struct gradients *g)
{
    const hyper_id start = {5};

    return kind == HOOK_GRADIENT_JOB
               ? hooks_gradient_job(&w->ssn, (job_id){0}, start, GRADIENT_ALLOCATE, g)
               : hooks_gradient_sub(&w->ssn, (sub_id){0}, start, GRADIENT_EVICT, g);
}

static void the_first_plugin_alone_decides_on_gradients(void **state)
{
    static const enum hook_kind which[] = {HOOK_GRADIENT_JOB, HOOK_GRADIENT_SUB};
    struct world *w = *state;
    struct gradients g;

    for (size_t k = 0; k < HK_LEN(which); k++) {
        assert_true(ask_gradients(w, which[k], &g));
        assert_int_equal(g.n, 1);
        assert_int_equal(g.at[0].n, 1);
        assert_int_equal(g.at[0].at[0].i, 5);

        struct fake *f = arrange(w, which[k], "12");
        f[1].yes = true;
        assert_false(ask_gradients(w, which[k], &g));
        f[0].yes = true;
        assert_true(ask_gradients(w, which[k], &g));
        assert_int_equal(g.n, 0);
        assert_int_equal(f[1].calls, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind_is_named_and_found_in_the_plugin),
        TEST(victims_narrow_tier_by_tier),
        TEST(a_reject_with_victims_counts_like_a_permit),
        TEST(shuffle_victims_are_the_union_of_the_first_tier_with_any),
        TEST(all_must_agree_and_the_first_no_ends_it),
        TEST(the_refusing_plugin_gives_the_reason),
        TEST(one_yes_makes_a_queue_overused),
        TEST(starving_is_decided_by_the_first_tier_that_asks),
        TEST(the_first_failing_validity_is_returned),
        TEST(votes_are_counted_tier_by_tier),
        TEST(a_sub_job_without_policies_answers_as_its_job),
        TEST(filters_run_in_turn_on_what_is_left),
        TEST(one_far_looking_plugin_makes_filters_and_scores_not_local),
        TEST(silent_plugins_are_not_local),
        TEST(scores_add_up_and_an_error_ends_them),
        TEST(the_first_plugin_that_names_a_best_node_chooses),
        TEST(everyone_hears_even_after_a_refusal),
        TEST(hyper_scores_add_up_and_an_error_ends_them),
        TEST(the_first_plugin_alone_decides_on_gradients),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
