// SPDX-License-Identifier: Apache-2.0
// The tables: adding and removing rows, sums, and shared interned objects.
#include "scheduler/model/model_priv.h"
#include "scheduler/plugins/rig_test.h"

static void assert_books(struct rig *r)
{
    struct hk_err err = {0};

    if (model_check(&r->m, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static void which_names_count(void **state)
{
    static const struct {
        const char *name;
        bool counts;
    } cases[] = {
        {"cpu", true},
        {"memory", true},
        {"pods", true},
        {"ephemeral-storage", true},
        {"hugepages-2Mi", true},
        {"nvidia.com/gpu", true},
        {"attachable-volumes-csi-x", true},
        {"node.kubernetes.io/thing", true},
        {"count/pods", false},
        {"requests.nvidia.com/gpu", false},
        {"requests.cpu", false},
        {"storage", false},
        {"", false},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        if (dims_counts(hk_str(cases[k].name)) != cases[k].counts) {
            fail_msg("'%s': expected %d", cases[k].name, cases[k].counts);
        }
    }
}

static void a_task_moves_and_the_books_follow(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE);
    const node_id n1 = rig_node(&r, "n1", "cpu=4 mem=8 pods=10");
    const task_id t = rig_task(&r, "j", "t", .req = "cpu=1 mem=2");
    const struct queue *q = model_queue(&r.m, model_queue_find(&r.m, HK_STR("q")));
    static const struct {
        enum task_status status;
        bool on;
        int64_t idle, future, queue;
    } steps[] = {
        {TASK_ALLOCATED, true, 3000, 3000, 1000}, {TASK_BINDING, true, 3000, 3000, 1000},
        {TASK_RUNNING, true, 3000, 3000, 1000},   {TASK_RELEASING, true, 3000, 4000, 0},
        {TASK_PENDING, false, 4000, 4000, 0},     {TASK_PIPELINED, true, 4000, 3000, 0},
        {TASK_SUCCEEDED, true, 4000, 4000, 0},
    };

    for (size_t k = 0; k < HK_LEN(steps); k++) {
        model_task_move(&r.m, t, steps[k].status, steps[k].on ? n1 : NO_NODE);
        assert_int_equal(r.m.nodes.idle.col[DIM_CPU][n1.i], steps[k].idle);
        assert_int_equal(r.m.nodes.future.col[DIM_CPU][n1.i], steps[k].future);
        assert_int_equal(q->allocated[DIM_CPU], steps[k].queue);
        assert_books(&r);
    }
}

static void a_pod_may_come_before_its_node_and_group(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    rig_task(&r, "j", "t", .req = "cpu=1", .status = TASK_RUNNING, .node = "n1");
    const node_id n1 = model_node_find(&r.m, HK_STR("n1"));

    assert_false(id_none(n1));
    assert_int_equal(r.m.nodes.live, 0);
    assert_int_equal(r.m.nodes.future.col[DIM_CPU][n1.i], -1000); /* no task fits */
    rig_node(&r, "n1", "cpu=4 pods=10");
    assert_int_equal(r.m.nodes.idle.col[DIM_CPU][n1.i], 3000);
    assert_int_equal(r.m.queues.at[0].allocated[DIM_CPU], 0);
    rig_job(&r, "j", "q", .min = 1);
    assert_int_equal(r.m.queues.at[0].allocated[DIM_CPU], 1000);
    assert_books(&r);
}

static void a_node_leaves_a_placeholder_until_its_pods_are_gone(void **state)
{
    RIG(r);
    rig_node(&r, "n1", "cpu=4 pods=10");
    const task_id t = rig_task(&r, NULL, "t", .req = "cpu=1", .status = TASK_RUNNING, .node = "n1");
    const node_id n1 = model_node_find(&r.m, HK_STR("n1"));

    model_node_del(&r.m, n1);
    assert_int_equal(r.m.total[DIM_CPU], 0);
    assert_true(id_eq(model_node_find(&r.m, HK_STR("n1")), n1));
    assert_books(&r);
    model_task_del(&r.m, t);
    assert_true(id_none(model_node_find(&r.m, HK_STR("n1"))));
    assert_books(&r);
}

static void a_reference_does_not_outlive_its_pod_or_node(void **state)
{
    RIG(r);
    const node_id n1 = rig_node(&r, "n1", "cpu=4 pods=10");
    const task_id a = rig_task(&r, NULL, "a", .req = "cpu=1");
    const task_ref pod = model_task_ref(&r.m, a);
    const node_ref node = model_node_ref(&r.m, n1);

    assert_true(id_eq(model_task_of(&r.m, pod), a));
    assert_true(id_eq(model_node_of(&r.m, node), n1));
    model_task_del(&r.m, a);
    model_node_del(&r.m, n1);
    assert_true(id_none(model_task_of(&r.m, pod)));
    assert_true(id_none(model_node_of(&r.m, node)));
    assert_true(id_eq(rig_task(&r, NULL, "b", .req = "cpu=1"), a)); /* the same row again */
    assert_true(id_eq(rig_node(&r, "n2", "cpu=4 pods=10"), n1));
    assert_true(id_none(model_task_of(&r.m, pod)));
    assert_true(id_none(model_node_of(&r.m, node)));
    assert_true(id_none(model_task_of(&r.m, (task_ref){0})));
    assert_true(id_none(model_node_of(&r.m, model_node_ref(&r.m, NO_NODE))));
}

/* The node is deleted and its row reused for another node: the pod is nominated to neither. */
static void a_nomination_ends_with_its_node(void **state)
{
    RIG(r);
    const node_id n1 = rig_node(&r, "n1", "cpu=4 pods=10");
    const task_id t = rig_task(&r, NULL, "t", .req = "cpu=1");

    model_task_nominate(&r.m, t, n1);
    assert_true(id_eq(task_nominated(&r.m, t), n1));
    model_node_del(&r.m, n1);
    assert_true(id_eq(rig_node(&r, "n2", "cpu=4 pods=10"), n1));
    assert_true(id_none(task_nominated(&r.m, t)));
}

static void an_event_older_than_our_bind_changes_nothing(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 1);
    const node_id n1 = rig_node(&r, "n1", "cpu=4 pods=10");
    const task_id t = rig_task(&r, "j", "t", .req = "cpu=1");

    model_task_move(&r.m, t, TASK_BINDING, n1);
    rig_task(&r, "j", "t", .req = "cpu=1");
    assert_int_equal(model_task(&r.m, t)->status, TASK_BINDING);
    rig_task(&r, "j", "t", .req = "cpu=1", .status = TASK_BOUND, .node = "n1");
    assert_int_equal(model_task(&r.m, t)->status, TASK_BOUND);
    assert_books(&r);
}

static void equal_requests_share_a_shape_until_the_last_one_goes(void **state)
{
    RIG(r);
    const task_id a = rig_task(&r, NULL, "a", .req = "cpu=1 mem=2");
    const task_id b = rig_task(&r, NULL, "b", .req = "mem=2 cpu=1");
    const task_id c = rig_task(&r, NULL, "c", .req = "cpu=1");

    assert_true(id_eq(model_task(&r.m, a)->shape, model_task(&r.m, b)->shape));
    assert_false(id_eq(model_task(&r.m, a)->shape, model_task(&r.m, c)->shape));
    assert_int_equal(task_shape(&r.m, a)->refs, 2);
    model_task_del(&r.m, a);
    model_task_del(&r.m, b);
    assert_int_equal(r.m.shapes.free.len, 1);
}

static void a_job_goes_with_its_last_pod_when_the_group_is_gone(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    const job_id j = rig_job(&r, "j", "q", .min = 1, .phase = PG_INQUEUE, .minres = "cpu=2");
    const task_id t = rig_task(&r, "j", "t", .req = "cpu=1");

    model_settle(&r.m);
    assert_int_equal(r.m.queues.at[0].inqueue[DIM_CPU], 2000);
    assert_int_equal(r.m.active.len, 1);
    model_job_del(&r.m, j);
    assert_int_equal(r.m.active.len, 0);
    assert_int_equal(r.m.queues.at[0].inqueue[DIM_CPU], 0);
    model_task_del(&r.m, t);
    assert_true(id_none(model_job_find(&r.m, HK_STR("ns"), HK_STR("j"))));
    model_settle(&r.m);
    assert_int_equal(r.m.over_inqueue[DIM_CPU], 0);
    assert_books(&r);
}

static void a_queue_may_come_after_its_jobs_and_go_before_them(void **state)
{
    RIG(r);
    const job_id j = rig_job(&r, "j", "late", .min = 1);

    rig_task(&r, "j", "t", .req = "cpu=1", .status = TASK_RUNNING, .node = "n1");
    assert_true(id_none(model_job(&r.m, j)->queue));
    const queue_id q = rig_queue(&r, "late");
    assert_int_equal(model_queue(&r.m, q)->allocated[DIM_CPU], 1000);
    assert_int_equal(model_queue(&r.m, q)->njobs, 1);
    model_queue_del(&r.m, q);
    assert_true(id_none(model_job(&r.m, j)->queue));
    assert_books(&r);
}

static void what_pods_hold_outlives_their_podgroup(void **state)
{
    RIG(r);
    queue_id q = rig_queue(&r, "q");
    rig_node(&r, "n1", "cpu=4 pods=10");
    const job_id j = rig_job(&r, "j", "q", .min = 1, .phase = PG_RUNNING);
    const task_id t = rig_task(&r, "j", "t", .req = "cpu=1", .status = TASK_RUNNING, .node = "n1");
    rig_task(&r, "j", "waits", .req = "cpu=2");

    model_job_del(&r.m, j);
    model_settle(&r.m);
    assert_true(id_none(model_job(&r.m, j)->queue));
    assert_int_equal(model_queue(&r.m, q)->njobs, 0);
    assert_int_equal(model_queue(&r.m, q)->allocated[DIM_CPU], 1000);
    assert_int_equal(model_queue(&r.m, q)->request[DIM_CPU], 1000); /* no pod requests the rest */
    assert_int_equal(model_queue(&r.m, q)->elastic[DIM_CPU], 0);    /* not evictable */
    assert_books(&r);

    model_queue_del(&r.m, q);
    q = rig_queue(&r, "q");
    assert_int_equal(model_queue(&r.m, q)->allocated[DIM_CPU], 1000);
    model_task_move(&r.m, t, TASK_RELEASING, model_task(&r.m, t)->node);
    assert_int_equal(model_queue(&r.m, q)->allocated[DIM_CPU], 0);
    assert_int_equal(model_queue(&r.m, q)->leaving[DIM_CPU], 1000);
    assert_books(&r);

    const queue_id other = rig_queue(&r, "other");
    rig_job(&r, "j", "other", .min = 1);
    assert_int_equal(model_queue(&r.m, q)->leaving[DIM_CPU], 0);
    assert_int_equal(model_queue(&r.m, other)->leaving[DIM_CPU], 1000);
    assert_int_equal(model_queue(&r.m, other)->request[DIM_CPU], 2000);
    assert_books(&r);

    model_job_del(&r.m, model_job_find(&r.m, HK_STR("ns"), HK_STR("j")));
    model_task_del(&r.m, t);
    assert_int_equal(model_queue(&r.m, other)->leaving[DIM_CPU], 0);
    assert_int_equal(model_queue(&r.m, other)->request[DIM_CPU], 0);
    assert_books(&r);
}

static void what_a_running_job_holds_beyond_its_minimum_is_elastic(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 1, .phase = PG_RUNNING, .minres = "cpu=1");
    rig_task(&r, "j", "a", .req = "cpu=1", .status = TASK_RUNNING, .node = "n");
    rig_task(&r, "j", "b", .req = "cpu=2", .status = TASK_RUNNING, .node = "n");
    model_settle(&r.m);
    assert_int_equal(r.m.queues.at[0].elastic[DIM_CPU], 2000);
    assert_int_equal(r.m.queues.at[0].inqueue[DIM_CPU], 0);
}

static void totals_past_the_limit_are_refused_and_change_nothing(void **state)
{
    RIG(r);
    struct amount huge[] = {{DIM_CPU, DIM_LIMIT + 1}};
    struct node_desc d = {.name = HK_STR("n"), .alloc = huge, .nalloc = 1};
    struct hk_err err = {0};
    node_id n;

    assert_int_equal(model_node_put(&r.m, &d, &n, &err), -HK_EINVAL);
    assert_true(id_none(model_node_find(&r.m, HK_STR("n"))));
    huge[0].v = -1;
    assert_int_equal(model_node_put(&r.m, &d, &n, &err), -HK_EINVAL);
    assert_int_equal(r.m.total[DIM_CPU], 0);
}

static void more_resource_names_than_room_are_refused(void **state)
{
    RIG(r);
    struct hk_err err = {0};
    uint32_t d;

    for (uint32_t k = r.m.dims.n; k < DIM_MAX; k++) {
        char name[32];
        snprintf(name, sizeof(name), "example.com/r%u", k);
        assert_int_equal(model_dim(&r.m, hk_str(name), &d, &err), 0);
        assert_int_equal(d, k);
    }
    assert_int_equal(model_dim(&r.m, HK_STR("example.com/last"), &d, &err), -HK_ELIMIT);
    assert_int_equal(model_dim(&r.m, HK_STR("example.com/r10"), &d, &err), 0);
    rig_node(&r, "n", "cpu=1 mem=1 pods=3");
    rig_task(&r, NULL, "t", .req = "cpu=1", .status = TASK_RUNNING, .node = "n");
    assert_books(&r);
}

static void sub_groups_follow_labels_and_policies(void **state)
{
    RIG(r);
    const uint32_t key = hk_intern(&r.m.str, HK_STR("set"));
    const struct policy_desc policy = {
        .name = HK_STR("p"), .size = 2, .min_groups = 1, .keys = &key, .nkey = 1};
    const struct label one[] = {{key, hk_intern(&r.m.str, HK_STR("1"))}};
    const struct label two[] = {{key, hk_intern(&r.m.str, HK_STR("2"))}};

    rig_queue(&r, "q");
    rig_job(&r, "j", "q", .min = 1);
    const task_id a = rig_task(&r, "j", "a", .labels = one, .nlabel = 1);
    const task_id b = rig_task(&r, "j", "b", .labels = two, .nlabel = 1);
    const task_id c = rig_task(&r, "j", "c");
    assert_true(id_eq(model_task(&r.m, a)->sub, model_task(&r.m, b)->sub));

    rig_job(&r, "j", "q", .min = 1, .policies = &policy, .npolicy = 1);
    assert_false(id_eq(model_task(&r.m, a)->sub, model_task(&r.m, b)->sub));
    assert_int_equal(model_sub(&r.m, model_task(&r.m, a)->sub)->match_index, 1);
    assert_int_equal(model_sub(&r.m, model_task(&r.m, a)->sub)->min, 2);
    assert_int_equal(model_sub(&r.m, model_task(&r.m, c)->sub)->min, 1);
    assert_true(
        hk_str_is(model_str(&r.m, model_sub(&r.m, model_task(&r.m, b)->sub)->id), "ns/j/p-2"));
    model_task_del(&r.m, b);
    assert_int_equal(r.m.subs.free.len, 1);
    assert_books(&r);
}

static void hyper_nodes_make_a_tree_or_say_why_not(void **state)
{
    RIG(r);
    struct hk_err err = {0};
    const node_id n1 = rig_node(&r, "n1", "cpu=1"), n2 = rig_node(&r, "n2", "cpu=1");
    const struct hyper_member leaf1[] = {{false, r.m.nodes.name[n1.i]}};
    const struct hyper_member leaf2[] = {{false, r.m.nodes.name[n2.i]}};
    const struct hyper_member up[] = {{true, hk_intern(&r.m.str, HK_STR("s1"))},
                                      {true, hk_intern(&r.m.str, HK_STR("s2"))}};
    struct hyper_desc tree[] = {
        {.name = HK_STR("top"), .tier = 2, .members = up, .nmember = 2},
        {.name = HK_STR("s1"), .tier = 1, .members = leaf1, .nmember = 1},
        {.name = HK_STR("s2"), .tier = 1, .members = leaf2, .nmember = 1},
    };

    assert_true(model_hyper_rebuild(&r.m, tree, 3, &err));
    model_hyper_root(&r.m);
    const hyper_id top = model_hyper_find(&r.m, HK_STR("top"));
    const hyper_id s1 = model_hyper_find(&r.m, HK_STR("s1")),
                   s2 = model_hyper_find(&r.m, HK_STR("s2"));
    assert_int_equal(r.m.hypers.at[top.i].nodes.len, 2);
    assert_true(id_eq(model_hyper_lca(&r.m, s1, s2), top));
    assert_true(id_eq(model_hyper_lca(&r.m, s1, NO_HYPER), s1));
    assert_int_equal(r.m.hypers.at[HYPER_ROOT.i].tier, 3);

    tree[0].tier = INT32_MAX; /* the API sets no limit */
    assert_true(model_hyper_rebuild(&r.m, tree, 3, &err));
    model_hyper_root(&r.m);
    assert_int_equal(r.m.hypers.at[HYPER_ROOT.i].tier, INT32_MAX);
    assert_int_equal(r.m.hypers.at[top.i].tier, INT32_MAX - 1);

    tree[0].tier = 1;
    assert_false(model_hyper_rebuild(&r.m, tree, 3, &err));
    assert_string_equal(err.text,
                        "hyperNode 'top' of tier 1 holds 's2' of tier 1, want a lower tier");
    assert_false(r.m.hyper_ready);
    tree[0].tier = 2;
    assert_true(model_hyper_rebuild(&r.m, tree + 1, 2, &err));
    assert_true(id_none(model_hyper_find(&r.m, HK_STR("top"))));
}

static void a_parked_job_wakes_for_what_it_lacks(void **state)
{
    RIG(r);
    rig_queue(&r, "q");
    const job_id j = rig_job(&r, "j", "q", .min = 1);
    rig_node(&r, "n1", "cpu=4 mem=4 pods=10");
    const task_id big =
        rig_task(&r, NULL, "big", .req = "cpu=4", .status = TASK_RUNNING, .node = "n1");
    const task_id ram =
        rig_task(&r, NULL, "ram", .req = "mem=4", .status = TASK_RUNNING, .node = "n1");

    model_job_park(&r.m, j, 1ULL << DIM_CPU, WAKE_NODE, INT64_MAX);
    assert_false(model_job_awake(&r.m, j));
    model_task_del(&r.m, ram); /* it does not lack memory */
    assert_false(model_job_awake(&r.m, j));
    model_task_del(&r.m, big);
    assert_true(model_job_awake(&r.m, j));
    model_job_park(&r.m, j, 1ULL << DIM_CPU, WAKE_NODE, INT64_MAX);
    rig_node(&r, "n2", "mem=1");
    assert_true(model_job_awake(&r.m, j));
    model_job_park(&r.m, j, 0, 0, INT64_MAX);
    rig_task(&r, "j", "own", .req = "cpu=1");
    assert_true(model_job_awake(&r.m, j));
}

static void words_of_reasons_last_while_they_are_said(void **state)
{
    RIG(r);
    const struct hk_str text = HK_STR("claim \"c\" not found");
    const uint32_t live = r.m.str.live, word = model_word(&r.m, text);

    assert_int_equal(model_word(&r.m, text), word);
    for (uint32_t session = 0; session < 3; session++) {
        model_words_age(&r.m);
        const uint64_t calls = hk_alloc_calls();
        assert_int_equal(model_word(&r.m, text), word);
        assert_int_equal(hk_alloc_calls(), calls);
    }
    model_words_age(&r.m);
    assert_string_equal(model_str(&r.m, word).s, text.s);
    model_words_age(&r.m);
    assert_int_equal(hk_intern_find(&r.m.str, text), HK_NONE);
    assert_int_equal(r.m.str.live, live);
}

/* More nodes than the table's first size: every column grows with the rows, and starts as zero. */
static void columns_grow_with_the_nodes(void **state)
{
    RIG(r);
    struct hk_err err = {0};
    node_id n = NO_NODE;

    for (unsigned i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%u", i);
        const struct node_desc d = {.name = hk_str(name), .creation_ns = i};
        assert_int_equal(model_node_put(&r.m, &d, &n, &err), 0);
        assert_int_equal(r.m.nodes.npods[n.i], 0);
        assert_int_equal(r.m.nodes.idle.col[DIM_CPU][n.i], 0);
    }
    assert_int_equal(r.m.nodes.creation_ns[0], 0);
    assert_int_equal(r.m.nodes.creation_ns[n.i], 199);
    assert_int_equal(model_check(&r.m, &err), 0);
}

/* A fact is copied from the Node object, wakes jobs when it changes, and ends with the object. */
static void a_changed_fact_of_a_node_wakes_jobs(void **state)
{
    RIG(r);
    struct hk_err err = {0};
    struct node_desc d = {.name = HK_STR("n1"), .creation_ns = 5};
    node_id n;

    assert_int_equal(model_node_put(&r.m, &d, &n, &err), 0);
    assert_int_equal(r.m.nodes.creation_ns[n.i], 5);

    uint64_t woken = r.m.wake.node;
    assert_int_equal(model_node_put(&r.m, &d, &n, &err), 0);
    assert_int_equal(r.m.wake.node, woken);

    d.creation_ns = 6;
    assert_int_equal(model_node_put(&r.m, &d, &n, &err), 0);
    assert_int_equal(r.m.nodes.creation_ns[n.i], 6);
    assert_true(r.m.wake.node > woken);

    model_node_del(&r.m, n);
    assert_int_equal(r.m.nodes.creation_ns[n.i], 0);
}

static void the_books_miss_a_string_nobody_holds(void **state)
{
    RIG(r);
    struct hk_err err = {0};
    const task_id t = rig_task(&r, NULL, "lonely", .req = "cpu=1");
    const uint32_t name = model_task(&r.m, t)->name; /* the rig uses it as uid, too */

    assert_int_equal(model_check(&r.m, &err), 0);
    model_task(&r.m, t)->role = name;
    assert_int_equal(model_check(&r.m, &err), -HK_EINVAL);
    assert_non_null(strstr(err.text, "'lonely': 2 references, rows hold 3"));
    model_task(&r.m, t)->role = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_names_count),
        cmocka_unit_test(a_reference_does_not_outlive_its_pod_or_node),
        cmocka_unit_test(a_nomination_ends_with_its_node),
        cmocka_unit_test(a_task_moves_and_the_books_follow),
        cmocka_unit_test(a_pod_may_come_before_its_node_and_group),
        cmocka_unit_test(a_node_leaves_a_placeholder_until_its_pods_are_gone),
        cmocka_unit_test(an_event_older_than_our_bind_changes_nothing),
        cmocka_unit_test(equal_requests_share_a_shape_until_the_last_one_goes),
        cmocka_unit_test(a_job_goes_with_its_last_pod_when_the_group_is_gone),
        cmocka_unit_test(a_queue_may_come_after_its_jobs_and_go_before_them),
        cmocka_unit_test(what_pods_hold_outlives_their_podgroup),
        cmocka_unit_test(what_a_running_job_holds_beyond_its_minimum_is_elastic),
        cmocka_unit_test(totals_past_the_limit_are_refused_and_change_nothing),
        cmocka_unit_test(more_resource_names_than_room_are_refused),
        cmocka_unit_test(sub_groups_follow_labels_and_policies),
        cmocka_unit_test(hyper_nodes_make_a_tree_or_say_why_not),
        cmocka_unit_test(a_parked_job_wakes_for_what_it_lacks),
        cmocka_unit_test(words_of_reasons_last_while_they_are_said),
        cmocka_unit_test(columns_grow_with_the_nodes),
        cmocka_unit_test(a_changed_fact_of_a_node_wakes_jobs),
        cmocka_unit_test(the_books_miss_a_string_nobody_holds),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
