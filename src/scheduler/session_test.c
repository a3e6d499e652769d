// SPDX-License-Identifier: Apache-2.0
// A session: the journal, the choice of nodes, phases and messages at the end, and reservations.
#include "scheduler/actions/cycle_test.h"
#include "scheduler/close.h"
#include "scheduler/reserve.h"
#include "scheduler/select.h"
#include "scheduler/stmt.h"

#define GANG "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"
#define IDLE "actions: shuffle\ntiers:\n- plugins:\n  - name: gang\n"
#define PLAIN "actions: allocate\ntiers:\n- plugins:\n  - name: predicates\n"

/* ---- journal ---- */

static void what_is_rewound_leaves_no_trace(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 3, .phase = PG_INQUEUE);
    const node_id n = rig_node(&r, "n", "cpu=4 pods=10");
    const task_id a = rig_task(&r, "j", "a", .req = "cpu=1"),
                  b = rig_task(&r, "j", "b", .req = "cpu=1");
    const task_id old = rig_task(&r, "j", "old", .req = "cpu=1", .status = TASK_BOUND, .node = "n");

    rig_open_at(&r, GANG, 0);
    const stmt_mark_t mark = stmt_mark(&r.ssn);
    assert_true(stmt_allocate(&r.ssn, a, n));
    const stmt_mark_t inner = stmt_mark(&r.ssn);
    stmt_evict(&r.ssn, old, "preempt", NO_JOB);
    assert_true(stmt_pipeline(&r.ssn, b, n, true));
    assert_int_equal(r.m.nodes.idle.col[DIM_CPU][n.i], 2000);
    assert_int_equal(r.m.nodes.future.col[DIM_CPU][n.i], 2000);
    stmt_rewind(&r.ssn, inner);
    assert_int_equal(model_task(&r.m, old)->status, TASK_BOUND); /* upstream makes it Running */
    assert_int_equal(model_task(&r.m, b)->status, TASK_PENDING);
    assert_int_equal(r.ssn.last[b.i].status, TASK_PIPELINED);
    assert_int_equal(model_task(&r.m, a)->status, TASK_ALLOCATED);
    stmt_rewind(&r.ssn, mark);
    assert_int_equal(r.m.nodes.idle.col[DIM_CPU][n.i], 3000);
    assert_int_equal(r.ssn.decisions.len, 0);
    cycle_end(&r);
}

static void what_is_committed_is_sent_and_pipelines_are_held(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
    const node_id n = rig_node(&r, "n", "cpu=4 pods=10");
    const task_id a = rig_task(&r, "j", "a", .req = "cpu=1"),
                  b = rig_task(&r, "j", "b", .req = "cpu=1");
    const task_id old =
        rig_task(&r, "j", "old", .req = "cpu=2", .status = TASK_RUNNING, .node = "n");

    rig_open_at(&r, GANG, 0);
    stmt_evict(&r.ssn, old, "preempt", NO_JOB);
    stmt_allocate(&r.ssn, a, n);
    stmt_pipeline(&r.ssn, b, n, true);
    stmt_commit(&r.ssn, 0);
    assert_int_equal(model_task(&r.m, a)->status, TASK_BINDING);
    assert_bound(&r, "a@n");
    assert_evicted(&r, "old@n");
    assert_pipelined(&r, "b@n");
    cycle_end(&r);
    assert_int_equal(model_task(&r.m, b)->status, TASK_PENDING);
    assert_true(id_eq(task_nominated(&r.m, b), n));
    assert_int_equal(model_task(&r.m, old)->status, TASK_RELEASING);
}

static void a_saved_statement_replays(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
    const node_id n = rig_node(&r, "n", "cpu=4 pods=10");
    const task_id a = rig_task(&r, "j", "a", .req = "cpu=1");

    rig_open_at(&r, GANG, 0);
    stmt_pipeline(&r.ssn, a, n, true);
    const struct saved_ops saved = stmt_save(&r.ssn, 0);
    stmt_rewind(&r.ssn, 0);
    assert_true(stmt_replay(&r.ssn, &saved));
    assert_true(r.ssn.ops.at[0].evicted_for);
    assert_pipelined(&r, "a@n");
    stmt_unpipeline(&r.ssn, a);
    assert_int_equal(model_task(&r.m, a)->status, TASK_PENDING);
    cycle_end(&r);
}

/* ---- choosing ---- */

static void how_many_nodes_are_enough(void **state)
{
    struct session_opts o = SESSION_OPTS_DEFAULT;

    assert_int_equal(select_want(&o, 10), 10);
    assert_int_equal(select_want(&o, 1000), 420);
    assert_int_equal(select_want(&o, 6000), 300);
    o.percentage = 40;
    assert_int_equal(select_want(&o, 1000), 400);
    assert_int_equal(select_want(&o, 6000), 2400);
    o.percentage = 100;
    assert_int_equal(select_want(&o, 6000), 6000);
}

static void room_that_is_free_goes_before_room_that_will_be(void **state)
{
    RIG(r);
    struct fit_log *log;
    node_id n;

    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
    rig_node(&r, "busy", "cpu=4 pods=10");
    rig_node(&r, "free", "cpu=1 pods=10");
    rig_task(&r, NULL, "old", .req = "cpu=4", .status = TASK_RELEASING, .node = "busy");
    const task_id a = rig_task(&r, "j", "a", .req = "cpu=1"),
                  b = rig_task(&r, "j", "b", .req = "cpu=1");

    rig_open_at(&r, PLAIN, 0);
    assert_int_equal(select_node(&r.ssn, a, &n, &log), PLACE_IDLE);
    assert_true(id_eq(n, model_node_find(&r.m, HK_STR("free"))));
    stmt_allocate(&r.ssn, a, n);
    assert_int_equal(select_node(&r.ssn, b, &n, &log), PLACE_FUTURE);
    assert_true(id_eq(n, model_node_find(&r.m, HK_STR("busy"))));
    cycle_end(&r);
}

static void reasons_are_counted_over_all_nodes(void **state)
{
    RIG(r);
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct fit_log *log;
    node_id n;

    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
    rig_node(&r, "small", "cpu=1 mem=4 pods=10");
    rig_node(&r, "poor", "cpu=4 mem=1 pods=10");
    rig_node(&r, "full", "cpu=4 mem=4 pods=0");
    const task_id a = rig_task(&r, "j", "a", .req = "cpu=2 mem=2");
    const task_id b = rig_task(&r, "j", "b", .req = "cpu=2 mem=2");

    rig_open_at(&r, PLAIN, 0);
    assert_int_equal(select_node(&r.ssn, a, &n, &log), PLACE_NONE);
    fit_log_write(&r.m, log, &text);
    assert_string_equal(text.data, "0/3 nodes are unavailable: 1 Insufficient cpu, 1 Insufficient "
                                   "memory, 1 Insufficient pods.");
    struct fit_log *again;
    assert_int_equal(select_node(&r.ssn, b, &n, &again), PLACE_NONE);
    assert_ptr_equal(again, log); /* the failure of the shape is remembered */
    cycle_end(&r);
}

static void a_failure_is_forgotten_when_the_journal_goes_back(void **state)
{
    RIG(r);
    struct fit_log *log;
    node_id n;

    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
    rig_node(&r, "n", "cpu=2 pods=10");
    const task_id a = rig_task(&r, "j", "a", .req = "cpu=2"),
                  b = rig_task(&r, "j", "b", .req = "cpu=1");

    rig_open_at(&r, PLAIN, 0);
    assert_int_equal(select_node(&r.ssn, b, &n, &log), PLACE_IDLE);
    stmt_allocate(&r.ssn, b, n);
    assert_int_equal(select_node(&r.ssn, a, &n, &log), PLACE_NONE);
    stmt_rewind(&r.ssn, 0);
    assert_int_equal(select_node(&r.ssn, a, &n, &log), PLACE_IDLE);
    cycle_end(&r);
}

/* Compares the shared window and its heap with the plain loop, step by step. */
static void a_gang_goes_where_the_plain_loop_would_send_it(void **state)
{
    static const char conf[] = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n"
                               "  - name: predicates\n  - name: nodeorder\n  - name: binpack\n";
    HK_AUTO(hk_buf_fini) struct hk_buf fast = {0}, plain = {0};

    for (uint32_t round = 0; round < 2; round++) {
        struct session_opts opts = SESSION_OPTS_DEFAULT;
        struct hk_buf *out = round ? &plain : &fast;
        RIG(r);

        rig_queue(&r, "q");
        rig_job(&r, "j", "q", .min = 200, .phase = PG_INQUEUE);
        for (uint32_t k = 0; k < 50; k++) {
            char name[16], alloc[48];
            snprintf(name, sizeof(name), "n%u", k);
            snprintf(alloc, sizeof(alloc), "cpu=%u mem=%u pods=10", 2 + k % 7, 3 + k % 5);
            rig_node(&r, name, alloc);
        }
        for (uint32_t k = 0; k < 200; k++) {
            char name[16];
            snprintf(name, sizeof(name), "t-%u", k);
            rig_task(&r, "j", name, .req = k % 3 ? "cpu=0.5 mem=1" : "cpu=1");
        }
        assert_int_equal(conf_parse(hk_str(conf), &r.conf, NULL), 0);
        opts.plain = round == 1;
        opts.min_feasible = 7;
        opts.percentage = 20;
        session_open(&r.ssn, &r.m, r.conf, &opts, r.sm);
        r.open = true;
        session_run(&r.ssn);
        for (uint32_t k = 0; k < r.ssn.ops.len; k++) {
            hk_buf_addf(out, "%u@%u ", r.ssn.ops.at[k].task.i, r.ssn.ops.at[k].node.i);
        }
        cycle_end(&r);
    }
    assert_true(fast.len > 0);
    assert_string_equal(fast.data, plain.data);
}

/* ---- the end of a session ---- */

static void phases_follow_the_table(void **state)
{
    static const struct {
        int32_t min;
        const char
            *tasks; /* R running, r releasing on a node, l releasing on none, P pending, S done */
        enum pg_phase now, want;
    } cases[] = {
        {1, "r", PG_RUNNING, PG_RUNNING},  {2, "Rr", PG_RUNNING, PG_RUNNING},
        {2, "lP", PG_PENDING, PG_PENDING}, {2, "SS", PG_RUNNING, PG_COMPLETED},
        {2, "r", PG_RUNNING, PG_PENDING},  {2, "RP", PG_RUNNING, PG_UNKNOWN},
        {0, "P", PG_INQUEUE, PG_INQUEUE},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        RIG(r);
        rig_queue(&r, "q");
        rig_node(&r, "n", "cpu=0 pods=10");
        const job_id j = rig_job(&r, "j", "q", .min = cases[k].min, .phase = cases[k].now);
        for (const char *c = cases[k].tasks; *c; c++) {
            const char name[] = {'t', (char)('0' + (c - cases[k].tasks)), 0};
            rig_task(&r, "j", name, .req = "cpu=1", .node = *c == 'R' || *c == 'r' ? "n" : NULL,
                     .status = *c == 'R'   ? TASK_RUNNING
                               : *c == 'r' ? TASK_RELEASING
                               : *c == 'l' ? TASK_RELEASING
                               : *c == 'S' ? TASK_SUCCEEDED
                                           : TASK_PENDING);
        }
        cycle_run(&r, IDLE);
        cycle_end(&r);
        if (model_job(&r.m, j)->phase != cases[k].want) {
            fail_msg("case %zu (%s): expected %s, is %s", k, cases[k].tasks,
                     pg_phase_name(cases[k].want), pg_phase_name(model_job(&r.m, j)->phase));
        }
    }
}

static void a_gang_one_short_says_so(void **state)
{
    RIG(r);
    struct session_opts opts = SESSION_OPTS_DEFAULT;

    rig_queue(&r, "q");
    rig_node(&r, "n1", "cpu=2 pods=10");
    rig_job(&r, "j", "q", .min = 3, .phase = PG_INQUEUE);
    rig_task(&r, "j", "j-w-0", .req = "cpu=1");
    rig_task(&r, "j", "j-w-1", .req = "cpu=1");
    rig_task(&r, "j", "j-w-2", .req = "cpu=1");
    assert_int_equal(conf_parse(hk_str(GANG), &r.conf, NULL), 0);
    opts.texts = true;
    session_open(&r.ssn, &r.m, r.conf, &opts, r.sm);
    r.open = true;
    session_run(&r.ssn);
    session_close(&r.ssn);
    r.open = false;
    assert_int_equal(r.ssn.notes.n, 1);
    assert_int_equal(r.ssn.notes.at[0].condition, NOTE_UNSCHEDULABLE);
    assert_string_equal(
        r.ssn.notes.at[0].message,
        "1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 "
        "minAvailable; Pending: 1 Unschedulable, 2 Schedulable. Origin reason is j-w-2: "
        "0/1 nodes are unavailable: 1 Insufficient cpu.");
    assert_int_equal(r.ssn.pod_notes.n, 3);
    for (uint32_t k = 0; k < 3; k++) {
        const struct pod_note *n = &r.ssn.pod_notes.at[k];
        const struct hk_str name = model_str(&r.m, model_task(&r.m, n->task)->name);
        if (hk_str_is(name, "j-w-2")) {
            assert_string_equal(n->message, "0/1 nodes are unavailable: 1 Insufficient cpu.");
        } else {
            assert_string_equal(n->reason, "Schedulable");
        }
    }
}

/* ---- reservations ---- */

static void freed_room_is_kept_for_those_it_was_freed_for(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    const node_id n = rig_node(&r, "n", "cpu=2 pods=10");
    rig_job(&r, "thief", "q", .min = 1, .phase = PG_INQUEUE, .creation_ns = 1);
    rig_job(&r, "owner", "q", .min = 1, .phase = PG_INQUEUE, .creation_ns = 2);
    rig_task(&r, "thief", "t", .req = "cpu=2");
    const task_id o = rig_task(&r, "owner", "o", .req = "cpu=2");

    model_task_nominate(&r.m, o, n);
    cycle_run(&r, GANG);
    assert_bound(&r, "o@n");
    cycle_end(&r);
}

static void a_higher_priority_makes_reservations_yield(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    const node_id n = rig_node(&r, "n", "cpu=2 pods=10");
    rig_job(&r, "vip", "q", .min = 1, .phase = PG_INQUEUE, .priority = 10);
    rig_job(&r, "owner", "q", .min = 1, .phase = PG_INQUEUE);
    rig_task(&r, "vip", "v", .req = "cpu=2");
    const task_id o = rig_task(&r, "owner", "o", .req = "cpu=2");

    model_task_nominate(&r.m, o, n);
    cycle_run(&r, "actions: allocate\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n");
    assert_bound(&r, "v@n");
    cycle_end(&r);
}

static void a_broken_gang_gets_its_seat_before_fresh_work(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    rig_node(&r, "n", "cpu=2 pods=10");
    rig_job(&r, "fresh", "q", .min = 1, .phase = PG_INQUEUE, .creation_ns = 1);
    rig_job(&r, "broken", "q", .min = 2, .phase = PG_INQUEUE, .creation_ns = 2);
    rig_task(&r, "fresh", "f", .req = "cpu=1");
    rig_task(&r, "broken", "b1", .req = "cpu=1", .status = TASK_RUNNING, .node = "n");
    rig_task(&r, "broken", "b2", .req = "cpu=1");
    cycle_run(&r, GANG);
    assert_bound(&r, "b2@n");
    cycle_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_rewound_leaves_no_trace),
        cmocka_unit_test(what_is_committed_is_sent_and_pipelines_are_held),
        cmocka_unit_test(a_saved_statement_replays),
        cmocka_unit_test(how_many_nodes_are_enough),
        cmocka_unit_test(room_that_is_free_goes_before_room_that_will_be),
        cmocka_unit_test(reasons_are_counted_over_all_nodes),
        cmocka_unit_test(a_failure_is_forgotten_when_the_journal_goes_back),
        cmocka_unit_test(a_gang_goes_where_the_plain_loop_would_send_it),
        cmocka_unit_test(phases_follow_the_table),
        cmocka_unit_test(a_gang_one_short_says_so),
        cmocka_unit_test(freed_room_is_kept_for_those_it_was_freed_for),
        cmocka_unit_test(a_higher_priority_makes_reservations_yield),
        cmocka_unit_test(a_broken_gang_gets_its_seat_before_fresh_work),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
