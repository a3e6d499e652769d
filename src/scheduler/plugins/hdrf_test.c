// SPDX-License-Identifier: Apache-2.0
// hdrf: clusters filled one task at a time, always from the queue that goes first.
#include "scheduler/plugins/rig_test.h"
#include "scheduler/stmt.h"

extern const struct plugin plugin_drf;

enum { NQUEUE = 5, NTASK = 30 };

struct entry {
    const char *path, *weights, *req;
    unsigned ntask, want; /* tasks requested and placed */
};

static const struct {
    const char *about, *node;
    struct entry at[NQUEUE];
} cases[] = {
    {"a branch blocked on one resource does not hold back its sibling's share",
     "cpu=10 mem=10 pods=50",
     {
         {"root/sci", "100/50", "cpu=1 mem=1", 10, 5},
         {"root/eng/dev", "100/50/50", "cpu=1", 10, 5},
         {"root/eng/prod", "100/50/50", "mem=1", 10, 5},
     }},
    {"queues that want memory go on when cpu is gone",
     "cpu=30 mem=30 pods=500",
     {
         {"root/pg1", "100/25", "cpu=1", 30, 10},
         {"root/pg2", "100/25", "cpu=1", 30, 10},
         {"root/pg3/pg31", "100/25/50", "cpu=1", 30, 10},
         {"root/pg3/pg32", "100/25/50", "mem=1", 30, 15},
         {"root/pg4", "100/25", "mem=1", 30, 15},
     }},
    {"weights that are missing or no numbers are 1",
     "cpu=12 pods=50",
     {
         {"root/a", "1/2", "cpu=1", 12, 6},
         {"root/b", "1/many", "cpu=1", 12, 3},
         {"root/c", "", "cpu=1", 12, 3},
     }},
};

struct filler {
    struct rig r;
    node_id node;
    queue_id queue[NQUEUE];
    task_id task[NQUEUE][NTASK];
    unsigned n, placed[NQUEUE];
    bool over[NQUEUE];
};

static void filler_init(struct filler *f, const char *node, const struct entry *at)
{
    *f = (struct filler){0};
    rig_init(&f->r);
    f->node = rig_node(&f->r, "n", node);
    for (; f->n < NQUEUE && at[f->n].path; f->n++) {
        char name[16];

        snprintf(name, sizeof(name), "q%u", f->n);
        f->queue[f->n] = rig_queue(&f->r, name, .path = at[f->n].path, .weights = at[f->n].weights);
        rig_job(&f->r, name, name);
        for (unsigned k = 0; k < at[f->n].ntask; k++) {
            char task[32];
            snprintf(task, sizeof(task), "%s-%u", name, k);
            f->task[f->n][k] = rig_task(&f->r, name, task, .req = at[f->n].req);
        }
    }
    rig_open(&f->r, "drf", "    enableHierarchy: true\n");
}

static void filler_fini(struct filler *f)
{
    rig_fini(&f->r);
}

static int order(struct filler *f, unsigned a, unsigned b)
{
    return plugin_drf.queue_order(&f->r.ssn, rig_self(&f->r), f->queue[a], f->queue[b]);
}

/* The first queue among those with tasks left, NQUEUE when all are done. */
static unsigned first_queue(struct filler *f)
{
    unsigned best = NQUEUE;

    for (unsigned k = 0; k < f->n; k++) {
        if (!f->over[k] && (best == NQUEUE || order(f, k, best) < 0)) {
            best = k;
        }
    }
    return best;
}

static void clusters_fill_as_the_tree_says(void **state)
{
    for (size_t c = 0; c < HK_LEN(cases); c++) {
        HK_AUTO(filler_fini) struct filler f;

        filler_init(&f, cases[c].node, cases[c].at);
        print_message("# case %zu: %s\n", c, cases[c].about);
        for (unsigned q = first_queue(&f); q != NQUEUE; q = first_queue(&f)) {
            const task_id t = f.task[q][f.placed[q]];

            if (model_fits_idle(&f.r.m, task_shape(&f.r.m, t), f.node)) {
                assert_true(stmt_allocate(&f.r.ssn, t, f.node));
                f.placed[q]++;
                f.over[q] = f.placed[q] == cases[c].at[q].ntask;
            } else {
                f.over[q] = true;
            }
        }
        for (unsigned q = 0; q < f.n; q++) {
            print_message("# case %zu: %s: %u of %u\n", c, cases[c].at[q].path, f.placed[q],
                          cases[c].at[q].want);
            assert_int_equal(f.placed[q], cases[c].at[q].want);
        }
    }
}

static void a_queue_without_a_path_compares_equal(void **state)
{
    static const struct entry at[NQUEUE] = {{"", "", "cpu=1", 1, 0},
                                            {"root/a", "1/1", "cpu=1", 1, 0}};
    HK_AUTO(filler_fini) struct filler f;

    filler_init(&f, "cpu=4 pods=10", at);
    assert_true(stmt_allocate(&f.r.ssn, f.task[1][0], f.node));
    assert_int_equal(order(&f, 0, 1), 0);
    assert_int_equal(order(&f, 1, 0), 0);
}

static void what_is_rewound_leaves_no_trace(void **state)
{
    static const struct entry at[NQUEUE] = {{"root/a", "1/1", "cpu=1", 4, 0},
                                            {"root/b", "1/1", "cpu=1", 4, 0}};
    HK_AUTO(filler_fini) struct filler f;

    filler_init(&f, "cpu=10 pods=20", at);
    const stmt_mark_t mark = stmt_mark(&f.r.ssn);
    assert_true(stmt_allocate(&f.r.ssn, f.task[0][0], f.node));
    assert_true(stmt_pipeline(&f.r.ssn, f.task[0][1], f.node, false));
    assert_true(stmt_allocate(&f.r.ssn, f.task[1][0], f.node));
    assert_true(order(&f, 1, 0) < 0);
    stmt_rewind(&f.r.ssn, mark);
    assert_int_equal(order(&f, 0, 1), 0);
}

/* Each candidate is checked by itself: a victim if the reclaimer's queue would still be behind. */
static void reclaim_takes_from_queues_ahead(void **state)
{
    static const struct entry at[NQUEUE] = {{"root/a", "1/1", "cpu=1", 8, 0},
                                            {"root/b", "1/1", "cpu=1", 8, 0}};
    HK_AUTO(filler_fini) struct filler f;

    filler_init(&f, "cpu=10 pods=100", at);
    for (unsigned k = 0; k < 4; k++) {
        assert_true(stmt_allocate(&f.r.ssn, f.task[0][k], f.node));
    }
    assert_true(stmt_allocate(&f.r.ssn, f.task[1][0], f.node));

    RIG_VICTIMS(v, f.task[0][0], f.task[0][1], f.task[1][0]);
    assert_int_equal(plugin_drf.reclaimable(&f.r.ssn, rig_self(&f.r), f.task[1][1], &v), PERMIT);
    assert_string_equal(rig_names(&f.r, &v), "q0-0 q0-1"); /* 2 against 3, not its own */

    assert_true(stmt_allocate(&f.r.ssn, f.task[1][1], f.node));
    v.nout = 0;
    assert_int_equal(plugin_drf.reclaimable(&f.r.ssn, rig_self(&f.r), f.task[1][2], &v), PERMIT);
    assert_string_equal(rig_names(&f.r, &v), ""); /* 3 against 3 */
    assert_true(order(&f, 1, 0) < 0);             /* 2 against 4: the check changed nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clusters_fill_as_the_tree_says),
        cmocka_unit_test(a_queue_without_a_path_compares_equal),
        cmocka_unit_test(what_is_rewound_leaves_no_trace),
        cmocka_unit_test(reclaim_takes_from_queues_ahead),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
