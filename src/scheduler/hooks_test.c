// SPDX-License-Identifier: Apache-2.0
// The combination rules, asked of plugins that answer as each case tells them to.

#include "scheduler/hooks.h"

#include "scheduler/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- a plugin that answers whatever its state says ---- */

struct fake {
    int order;         /* answer of every comparison for (0, 1); its negative for (1, 0) */
    enum vote vote;    /* of votes and victim lists */
    bool yes;          /* of yes-no questions, allocate, gradients */
    const char *names; /* victims, one letter each: 'a' is task 0 */
    double add;        /* to every score; negative refuses to score */
    uint32_t drop;     /* filter: the node it lets not pass */
    uint32_t best;     /* best node */
    const char *invalid;
    bool not_local;
    uint32_t calls;
    uint32_t seen; /* candidates shown at the last call */
};

static int fake_cmp(void *self, uint32_t a, uint32_t b)
{
    struct fake *f = self;

    f->calls++;
    return a < b ? f->order : -f->order;
}

static int fake_job_order(struct session *ssn, void *self, job_id a, job_id b)
{
    return fake_cmp(self, a.i, b.i);
}

static int fake_queue_order(struct session *ssn, void *self, queue_id a, queue_id b)
{
    return fake_cmp(self, a.i, b.i);
}

static int fake_victim_queue_order(struct session *ssn, void *self, queue_id a, queue_id b,
                                   queue_id preemptor)
{
    ((struct fake *)self)->seen = preemptor.i;
    return fake_cmp(self, a.i, b.i);
}

static int fake_task_order(struct session *ssn, void *self, task_id a, task_id b)
{
    return fake_cmp(self, a.i, b.i);
}

static int fake_sub_order(struct session *ssn, void *self, sub_id a, sub_id b)
{
    return fake_cmp(self, a.i, b.i);
}

static bool fake_yes(void *self)
{
    struct fake *f = self;

    f->calls++;
    return f->yes;
}

static enum vote fake_vote(void *self)
{
    struct fake *f = self;

    f->calls++;
    return f->vote;
}

static bool fake_pre_predicate(struct session *ssn, void *self, task_id t, struct reason *why)
{
    if (!fake_yes(self)) {
        *why = (struct reason){.code = REASON_TEXT, .arg = ((struct fake *)self)->seen};
        return false;
    }
    return true;
}

static uint32_t fake_filter(struct session *ssn, void *self, task_id t, enum filter_mode mode,
                            node_id *nodes, uint32_t n, struct fit_log *log)
{
    struct fake *f = self;
    uint32_t kept = 0;

    f->calls++;
    f->seen = n;
    for (uint32_t i = 0; i < n; i++) {
        if (nodes[i].i != f->drop) {
            nodes[kept++] = nodes[i];
        }
    }
    return kept;
}

static bool fake_local(struct session *ssn, void *self, task_id t)
{
    return !((struct fake *)self)->not_local;
}

static int fake_score(struct session *ssn, void *self, task_id t, const node_id *nodes, uint32_t n,
                      double *score)
{
    struct fake *f = self;

    f->calls++;
    for (uint32_t i = 0; i < n; i++) {
        score[i] += f->add * (nodes[i].i + 1);
    }
    return f->add < 0 ? -1 : 0;
}

static node_id fake_best_node(struct session *ssn, void *self, task_id t, const node_id *nodes,
                              uint32_t n, const double *score)
{
    return (node_id){((struct fake *)self)->best};
}

static int fake_hyper_order(struct session *ssn, void *self, sub_id s, const hyper_id *at,
                            uint32_t n, double *score)
{
    struct fake *f = self;

    for (uint32_t i = 0; i < n; i++) {
        score[i] += f->add * (at[i].i + 1);
    }
    return f->add < 0 ? -1 : 0;
}

static bool fake_gradients(struct session *ssn, void *self, struct gradients *ret)
{
    struct fake *f = self;

    f->calls++;
    *ret = (struct gradients){0};
    return f->yes;
}

static bool fake_gradient_job(struct session *ssn, void *self, job_id j, hyper_id start,
                              enum gradient_purpose why, struct gradients *ret)
{
    return fake_gradients(ssn, self, ret);
}

static bool fake_gradient_sub(struct session *ssn, void *self, sub_id s, hyper_id start,
                              enum gradient_purpose why, struct gradients *ret)
{
    return fake_gradients(ssn, self, ret);
}

static enum vote fake_victims(void *self, struct victims *v)
{
    struct fake *f = self;

    f->seen = v->n;
    for (const char *c = f->names ? f->names : ""; *c; c++) {
        v->out[v->nout++] = (task_id){(uint32_t)(*c - 'a')};
    }
    return fake_vote(self);
}

static enum vote fake_preemptable(struct session *ssn, void *self, task_id preemptor,
                                  struct victims *v)
{
    return fake_victims(self, v);
}

static enum vote fake_evictable(struct session *ssn, void *self, enum evict_kind kind, job_id job,
                                hyper_id domain, struct victims *v)
{
    assert_int_equal(kind, EVICT_GANG_RECLAIM);
    assert_int_equal(job.i, 1);
    assert_int_equal(domain.i, 7);
    return fake_victims(self, v);
}

static void fake_victim_tasks(struct session *ssn, void *self, struct victims *v)
{
    fake_victims(self, v);
}

static bool fake_queue_yes(struct session *ssn, void *self, queue_id q)
{
    return fake_yes(self);
}

static bool fake_preemptive(struct session *ssn, void *self, queue_id q, const task_id *t,
                            uint32_t n)
{
    return fake_yes(self);
}

static bool fake_allocatable(struct session *ssn, void *self, queue_id q, task_id t)
{
    return fake_yes(self);
}

static bool fake_job_yes(struct session *ssn, void *self, job_id j)
{
    return fake_yes(self);
}

static enum vote fake_job_vote(struct session *ssn, void *self, job_id j)
{
    return fake_vote(self);
}

static bool fake_sub_ready(struct session *ssn, void *self, sub_id s)
{
    return fake_yes(self);
}

static enum vote fake_sub_pipelined(struct session *ssn, void *self, sub_id s)
{
    return fake_vote(self);
}

static const char *fake_job_valid(struct session *ssn, void *self, job_id j)
{
    ((struct fake *)self)->calls++;
    return ((struct fake *)self)->invalid;
}

static void fake_job_enqueued(struct session *ssn, void *self, job_id j)
{
    ((struct fake *)self)->calls++;
}

static bool fake_allocate(struct session *ssn, void *self, task_id t)
{
    return fake_yes(self);
}

static void fake_deallocate(struct session *ssn, void *self, task_id t)
{
    ((struct fake *)self)->calls++;
}

static const struct plugin fake_plugin = {
    .name = "fake",
    .job_order = fake_job_order,
    .queue_order = fake_queue_order,
    .victim_queue_order = fake_victim_queue_order,
    .task_order = fake_task_order,
    .sub_order = fake_sub_order,
    .pre_predicate = fake_pre_predicate,
    .filter = fake_filter,
    .filter_local = fake_local,
    .score = fake_score,
    .score_local = fake_local,
    .best_node = fake_best_node,
    .hyper_order = fake_hyper_order,
    .gradient_job = fake_gradient_job,
    .gradient_sub = fake_gradient_sub,
    .preemptable = fake_preemptable,
    .reclaimable = fake_preemptable,
    .evictable = fake_evictable,
    .victim_tasks = fake_victim_tasks,
    .overused = fake_queue_yes,
    .preemptive = fake_preemptive,
    .allocatable = fake_allocatable,
    .job_ready = fake_job_yes,
    .job_pipelined = fake_job_vote,
    .sub_ready = fake_sub_ready,
    .sub_pipelined = fake_sub_pipelined,
    .job_valid = fake_job_valid,
    .job_starving = fake_job_yes,
    .job_enqueueable = fake_job_vote,
    .job_enqueued = fake_job_enqueued,
    .allocate = fake_allocate,
    .deallocate = fake_deallocate,
};

/* ---- a model by hand: only what the fallbacks read ---- */

enum { NTASK = 8, NJOB = 4, NQUEUE = 3, NSUB = 3, NHOOK = 4 };

struct world {
    struct model m;
    struct session ssn;
    struct hk_arena mem;
    struct task tasks[NTASK];
    struct job jobs[NJOB];
    struct queue queues[NQUEUE];
    struct sub_job subs[NSUB];
    struct fake fakes[NHOOK];
    struct hook hooks[HOOK_N][NHOOK];
};

static uint32_t text(struct world *w, const char *s)
{
    return hk_intern(&w->m.str, hk_str(s));
}

static int setup(void **state)
{
    struct world *w = hk_zalloc(sizeof(*w));

    w->m.tasks.at = w->tasks;
    w->m.tasks.len = NTASK;
    w->m.jobs.at = w->jobs;
    w->m.jobs.len = NJOB;
    w->m.queues.at = w->queues;
    w->m.queues.len = NQUEUE;
    w->m.subs.at = w->subs;
    w->m.subs.len = NSUB;
    for (uint32_t i = 0; i < NTASK; i++) {
        w->tasks[i] = (struct task){.index = ID_NONE, .job = {0}, .used = true};
    }
    for (uint32_t i = 0; i < NJOB; i++) {
        w->jobs[i].has_pg = true;
    }
    w->ssn.m = &w->m;
    w->ssn.mem = &w->mem;
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hk_arena_fini(&w->mem);
    hk_intern_fini(&w->m.str);
    hk_free(w);
    return 0;
}

/* Lists fakes 0..n under the kind, in the tiers given as digits: "112" puts two in tier 1. */
static struct fake *arrange(struct world *w, enum hook_kind kind, const char *tiers)
{
    struct hook_list *list = &w->ssn.hooks[kind];

    memset(w->fakes, 0, sizeof(w->fakes));
    list->at = w->hooks[kind];
    list->n = (uint32_t)strlen(tiers);
    assert_true(list->n <= NHOOK);
    for (uint32_t i = 0; i < list->n; i++) {
        list->at[i] = (struct hook){&fake_plugin, &w->fakes[i], (uint32_t)(tiers[i] - '0')};
    }
    return w->fakes;
}

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

static void first_non_zero_comparison_wins(void **state)
{
    struct world *w = *state;
    const job_id a = {0}, b = {1};
    struct fake *f = arrange(w, HOOK_JOB_ORDER, "123");

    w->jobs[0].creation_ns = 9;
    f[1].order = 5;
    f[2].order = -1;
    assert_int_equal(hooks_job_order(&w->ssn, a, b), 5);
    assert_int_equal(hooks_job_order(&w->ssn, b, a), -5);
    assert_int_equal(f[2].calls, 0);
    assert_int_equal(hooks_job_order_plugins(&w->ssn, a, b), 5);
}

static void equal_jobs_go_by_age_then_by_key(void **state)
{
    struct world *w = *state;
    const job_id a = {0}, b = {1};

    arrange(w, HOOK_JOB_ORDER, "1");
    w->jobs[0] = (struct job){.ns = text(w, "team"), .name = text(w, "x"), .creation_ns = 2};
    w->jobs[1] = (struct job){.ns = text(w, "team"), .name = text(w, "y"), .creation_ns = 1};
    assert_true(hooks_job_order(&w->ssn, a, b) > 0);
    assert_int_equal(hooks_job_order_plugins(&w->ssn, a, b), 0);
    w->jobs[1].creation_ns = 2;
    assert_true(hooks_job_order(&w->ssn, a, b) < 0);
    /* "team-a/y" comes before "team/x": the keys are compared as whole texts. */
    w->jobs[1].ns = text(w, "team-a");
    assert_true(hooks_job_order(&w->ssn, a, b) > 0);
    assert_true(hooks_job_order(&w->ssn, b, a) < 0);
    w->jobs[1].ns = text(w, "teams");
    assert_true(hooks_job_order(&w->ssn, a, b) < 0);
    w->jobs[1].ns = text(w, "beta");
    assert_true(hooks_job_order(&w->ssn, a, b) > 0);
    assert_int_equal(hooks_job_order(&w->ssn, a, a), 0);
}

static void equal_queues_go_by_age_then_by_name(void **state)
{
    struct world *w = *state;
    const queue_id a = {0}, b = {1};

    w->queues[0] = (struct queue){.name = text(w, "a"), .creation_ns = 2};
    w->queues[1] = (struct queue){.name = text(w, "b"), .creation_ns = 1};
    assert_true(hooks_queue_order(&w->ssn, a, b) > 0);
    w->queues[1].creation_ns = 2;
    assert_true(hooks_queue_order(&w->ssn, a, b) < 0);
    arrange(w, HOOK_QUEUE_ORDER, "1")->order = 1;
    assert_true(hooks_queue_order(&w->ssn, a, b) > 0);
}

static void victim_queues_reverse_the_queue_order_unless_a_plugin_decides(void **state)
{
    struct world *w = *state;
    const queue_id a = {0}, b = {1}, p = {2};

    w->queues[0] = (struct queue){.name = text(w, "a")};
    w->queues[1] = (struct queue){.name = text(w, "b")};
    assert_true(hooks_victim_queue_order(&w->ssn, a, b, p) > 0);
    struct fake *f = arrange(w, HOOK_VICTIM_QUEUE_ORDER, "1");
    f->order = -1;
    assert_true(hooks_victim_queue_order(&w->ssn, a, b, p) < 0);
    assert_int_equal(f->seen, p.i);
}

static void equal_tasks_go_by_index_then_age_then_uid(void **state)
{
    static const struct {
        uint32_t index[2];
        int64_t creation[2];
        const char *uid[2];
        int want;
    } cases[] = {
        {{1, 2}, {9, 1}, {"u", "u"}, -1},
        {{2, 2}, {9, 1}, {"u", "u"}, 1},
        {{ID_NONE, 2}, {1, 9}, {"u", "u"}, -1}, /* one without a number: age */
        {{ID_NONE, ID_NONE}, {3, 3}, {"v", "u"}, 1},
        {{0, 0}, {3, 3}, {"u", "v"}, -1},
        {{0, 0}, {3, 3}, {"", ""}, -1}, /* the name is the last resort */
    };
    struct world *w = *state;
    const task_id a = {0}, b = {1};

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        for (int i = 0; i < 2; i++) {
            w->tasks[i].index = cases[k].index[i];
            w->tasks[i].creation_ns = cases[k].creation[i];
            w->tasks[i].uid = text(w, cases[k].uid[i]);
            w->tasks[i].name = text(w, i ? "z" : "a");
        }
        const int got = hooks_task_order(&w->ssn, a, b);
        if ((got > 0) - (got < 0) != cases[k].want) {
            fail_msg("case %zu: got %d, want %d", k, got, cases[k].want);
        }
        assert_int_equal(hooks_task_order(&w->ssn, b, a) < 0, got > 0);
    }
}

static void equal_sub_jobs_go_by_match_index_then_id(void **state)
{
    struct world *w = *state;
    const sub_id a = {0}, b = {1};

    w->subs[0] = (struct sub_job){.match_index = 2, .id = text(w, "a")};
    w->subs[1] = (struct sub_job){.match_index = 1, .id = text(w, "b")};
    assert_true(hooks_sub_order(&w->ssn, a, b) > 0);
    w->subs[1].match_index = 2;
    assert_true(hooks_sub_order(&w->ssn, a, b) < 0);
    arrange(w, HOOK_SUB_ORDER, "1")->order = 1;
    assert_true(hooks_sub_order(&w->ssn, a, b) > 0);
}

/* ---- victim order ---- */

/* Tasks 0 and 1 in jobs 0 and 1 of queues 0 and 1; task 2, the preemptor, in job 2 of queue 2. */
static void three_jobs(struct world *w)
{
    for (uint32_t i = 0; i < 3; i++) {
        w->queues[i] = (struct queue){.name = text(w, (const char *[]){"qa", "qb", "qc"}[i])};
        w->jobs[i] = (struct job){.has_pg = true, .queue = {i}, .name = i, .creation_ns = i};
        w->tasks[i] = (struct task){.job = {i}, .index = ID_NONE, .creation_ns = i};
    }
}

static void victims_of_one_job_go_in_reverse_task_order(void **state)
{
    struct world *w = *state;
    const task_id a = {0}, b = {1}, p = {2};

    three_jobs(w);
    w->tasks[1].job = w->tasks[0].job;
    assert_true(hooks_victim_before(&w->ssn, b, a, p)); /* the younger */
    assert_false(hooks_victim_before(&w->ssn, a, b, p));
    w->tasks[0].index = 3;
    w->tasks[1].index = 2;
    assert_true(hooks_victim_before(&w->ssn, a, b, p)); /* the higher number */
    arrange(w, HOOK_TASK_ORDER, "1")->order = -1;
    assert_true(hooks_victim_before(&w->ssn, b, a, p));
}

static void orphans_go_first(void **state)
{
    struct world *w = *state;
    const task_id a = {0}, b = {1}, p = {2};

    three_jobs(w);
    w->jobs[0].has_pg = false;
    assert_true(hooks_victim_before(&w->ssn, a, b, p));
    assert_false(hooks_victim_before(&w->ssn, b, a, p));
    w->jobs[0].has_pg = true;
    w->jobs[1].queue = NO_QUEUE;
    assert_true(hooks_victim_before(&w->ssn, b, a, p));
    w->tasks[0].job = NO_JOB;
    assert_true(hooks_victim_before(&w->ssn, b, a, p)); /* two orphans: the younger */
    assert_false(hooks_victim_before(&w->ssn, a, b, p));
}

static void victims_of_two_queues_go_by_queue_alone(void **state)
{
    struct world *w = *state;
    const task_id a = {0}, b = {1}, p = {2};

    three_jobs(w);
    arrange(w, HOOK_JOB_ORDER, "1")->order = 1; /* would say: a first */
    assert_true(hooks_victim_before(&w->ssn, b, a, p));
    assert_false(hooks_victim_before(&w->ssn, a, b, p));
}

static void without_the_preemptors_job_queues_do_not_count(void **state)
{
    struct world *w = *state;
    const task_id a = {0}, b = {1}, p = {2};

    three_jobs(w);
    arrange(w, HOOK_JOB_ORDER, "1")->order = 1;
    w->jobs[2].has_pg = false;
    assert_true(hooks_victim_before(&w->ssn, a, b, p));
    assert_true(hooks_victim_before(&w->ssn, a, b, NO_TASK));
    assert_false(hooks_victim_before(&w->ssn, b, a, NO_TASK));
}

/* Worked example 85: equal job order, so the task of lower priority goes although its job is older.
 */
static void task_order_decides_between_equal_jobs_of_a_queue_not_their_age(void **state)
{
    struct world *w = *state;
    const task_id high = {0}, low = {1}, p = {2};

    three_jobs(w);
    w->jobs[0].queue = w->jobs[1].queue = w->jobs[2].queue;
    w->jobs[0].creation_ns = 50;
    arrange(w, HOOK_TASK_ORDER, "1")->order = -1; /* high before low */
    assert_true(hooks_victim_before(&w->ssn, low, high, p));
    assert_false(hooks_victim_before(&w->ssn, high, low, p));
}

static void no_two_victims_come_before_each_other(void **state)
{
    struct world *w = *state;

    three_jobs(w);
    for (uint32_t i = 0; i < NTASK; i++) {
        w->tasks[i].job = (job_id){i % 3};
        w->tasks[i].name = text(w, (const char *[]){"a", "b", "c", "d", "e", "f", "g", "h"}[i]);
        w->tasks[i].creation_ns = 0;
    }
    for (uint32_t i = 0; i < NTASK; i++) {
        for (uint32_t k = 0; k < NTASK; k++) {
            const task_id a = {i}, b = {k}, p = {2};
            const bool ab = hooks_victim_before(&w->ssn, a, b, p);
            const bool ba = hooks_victim_before(&w->ssn, b, a, p);
            assert_int_equal(ab + ba, i != k);
        }
    }
}

/* ---- victims ---- */

/* A tier digit, then each plugin's answer: "0" abstains, "-" vetoes, letters name victims. */
struct narrow_case {
    const char *tiers;
    const char *answers[NHOOK];
    const char *want;
};

static const struct narrow_case narrow_cases[] = {
    {"11", {"ab", "bc"}, "b"},           /* example 81 */
    {"11", {"0", "a"}, "a"},             /* 82 */
    {"112", {"-", "a", "a"}, "a"},       /* 83: from tier 2 */
    {"", {0}, ""},                       /* 84 */
    {"1", {"0"}, ""},                    /* only abstentions */
    {"112", {"cba", "abc", "d"}, "cba"}, /* order of the list that seeded; tier 2 is not asked */
    {"12", {"a", "-"}, "a"},             /* a veto in a later tier is never heard */
    {"112", {"a", "-", "c"}, "c"},       /* a veto binds its own tier */
    {"112", {"a", "-", "-"}, ""},
    {"111", {"a", "b", "ab"}, ""}, /* agreeing on nobody is a veto (upstream: "ab") */
    {"112", {"a", "b", "c"}, "c"}, /* and left empty hands over to the next tier */
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

/* ---- yes and no ---- */

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
                                           HOOK_JOB_READY, HOOK_SUB_READY};
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
    assert_true(hooks_job_starving(&w->ssn, j)); /* tier 3's no is not heard */
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
        uint32_t asked; /* plugins heard */
    } cases[] = {
        {"", {0}, true, 0},
        {"12", {ABSTAIN, ABSTAIN}, true, 2},
        {"11", {PERMIT, REJECT}, false, 2}, /* a reject beats a permit of its tier */
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
    assert_int_equal(f[1].calls, 1); /* nothing left to ask about */
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

/* ---- everyone hears ---- */

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

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind_is_named_and_found_in_the_plugin),
        TEST(first_non_zero_comparison_wins),
        TEST(equal_jobs_go_by_age_then_by_key),
        TEST(equal_queues_go_by_age_then_by_name),
        TEST(victim_queues_reverse_the_queue_order_unless_a_plugin_decides),
        TEST(equal_tasks_go_by_index_then_age_then_uid),
        TEST(equal_sub_jobs_go_by_match_index_then_id),
        TEST(victims_of_one_job_go_in_reverse_task_order),
        TEST(orphans_go_first),
        TEST(victims_of_two_queues_go_by_queue_alone),
        TEST(without_the_preemptors_job_queues_do_not_count),
        TEST(task_order_decides_between_equal_jobs_of_a_queue_not_their_age),
        TEST(no_two_victims_come_before_each_other),
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
        TEST(scores_add_up_and_an_error_ends_them),
        TEST(the_first_plugin_that_names_a_best_node_chooses),
        TEST(everyone_hears_even_after_a_refusal),
        TEST(hyper_scores_add_up_and_an_error_ends_them),
        TEST(the_first_plugin_alone_decides_on_gradients),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
