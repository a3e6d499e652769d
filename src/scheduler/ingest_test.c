// SPDX-License-Identifier: Apache-2.0
// Manifests of all kinds except pods become rows, and refused ones become problems.
#include "scheduler/ingest_fixture_test.h"
#include "scheduler/model/volumes.h"

/* ---- nodes ---- */

static void oversubscription_adds_to_what_volcano_counts_only(void **state)
{
    WORLD(w);
    load_fine(
        &w, "apiVersion: v1\nkind: Node\nmetadata:\n  name: n0\n"
            "  labels: {volcano.sh/oversubscription: 'true', zone: a}\n"
            "  annotations: {volcano.sh/oversubscription-cpu: '1500',"
            " volcano.sh/oversubscription-memory: '100', volcano.sh/offline-job-evicting: 'true'}\n"
            "spec: {unschedulable: true, taints: [{key: k, value: v, effect: PreferNoSchedule}]}\n"
            "status: {allocatable: {cpu: 4, memory: 1Ki, pods: 110, odd: 3},"
            " images: [{names: [app:v1, 'app@sha256:00'], sizeBytes: 50}]}\n");
    const node_id n = model_node_find(&w.m, HK_STR("n0"));
    const struct node_table *t = &w.m.nodes;
    assert_int_equal(t->alloc.col[DIM_CPU][n.i], 5500);
    assert_int_equal(t->kalloc.col[DIM_CPU][n.i], 4000);
    assert_int_equal(t->alloc.col[DIM_MEM][n.i], 1124);
    assert_int_equal(t->alloc.col[DIM_PODS][n.i], 110);
    assert_int_equal(t->flags[n.i],
                     NODE_KNOWN | NODE_UNSCHEDULABLE | NODE_OVERSUBSCRIBED | NODE_OFFLINE_EVICTING);
    assert_int_equal(t->ntaint[n.i], 1);
    assert_int_equal(t->taints[n.i][0].effect, EFFECT_PREFER_NO_SCHEDULE);
    assert_int_equal(t->images[n.i].len, 2);
    assert_int_equal(t->images[n.i].at[1].size, 50);
    uint32_t zone = 0;
    assert_true(labels_get(t->labels[n.i], id(&w, "zone"), &zone));
    assert_string_equal(text(&w, zone), "a");
}

/* ---- groups and queues ---- */

static void a_podgroup_becomes_a_job(void **state)
{
    WORLD(w);
    load_fine(&w,
              "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata:\n  name: g\n"
              "  labels: {volcano.sh/preemptable: 'true'}\n"
              "  annotations: {sla-waiting-time: 1h30m, volcano.sh/jdb-max-unavailable: '2'}\n"
              "spec:\n  minMember: 3\n  queue: q\n"
              "  minTaskMember: {worker: 2, master: 1}\n"
              "  minResources: {cpu: 3, requests.cpu: 3, nvidia.com/gpu: 1}\n"
              "  networkTopology: {mode: soft, highestTierAllowed: 2}\n"
              "  subGroupPolicy:\n"
              "  - {name: s, subGroupSize: 2, minSubGroups: 1, matchLabelKeys: [idx],"
              " labelSelector: {matchLabels: {a: b}}, networkTopology: {highestTierName: rack}}\n"
              "status: {phase: Inqueue}\n");
    const job_id id_g = model_job_find(&w.m, HK_STR("default"), HK_STR("g"));
    const struct job *j = job(&w, "g");
    assert_int_equal(j->min, 3);
    assert_string_equal(text(&w, j->queue_name), "q");
    assert_int_equal(j->phase, PG_INQUEUE);
    assert_int_equal(j->preemptable, TRI_TRUE);
    assert_int_equal(j->waiting_ns, 5400LL * 1000000000);
    assert_int_equal(j->budget_min, 0);
    assert_string_equal(text(&w, j->budget_max_unavailable), "2");
    assert_int_equal(j->role_min_total, 3);
    assert_true(j->has_minres);
    assert_int_equal(job_vec(&w.m, id_g, JV_MINRES)[DIM_CPU], 3000);
    assert_int_equal(j->min_items.len, 3);
    assert_int_equal(j->topo.mode, TOPO_SOFT);
    assert_true(j->topo.has_tier && j->topo.tier == 2);
    assert_int_equal(j->policies.len, 1);
    assert_true(j->policies.at[0].has_sel);
    assert_int_equal(j->policies.at[0].topo.mode, TOPO_HARD);
    assert_string_equal(text(&w, j->policies.at[0].topo.tier_name), "rack");
}

static void a_podgroup_without_words_gets_the_defaults(void **state)
{
    HK_AUTO(world_fini) struct world w;

    world_init(&w, &(struct ingest_opts){.default_queue = HK_STR("main"), .make_queues = true});
    load_fine(&w, "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g,"
                  " annotations: {volcano.sh/sla-waiting-time: soon}}}");
    const struct job *j = job(&w, "g");
    assert_string_equal(text(&w, j->queue_name), "main");
    assert_false(id_none(j->queue));
    assert_int_equal(j->phase, PG_NONE);
    assert_int_equal(j->preemptable, TRI_UNSET);
    assert_int_equal(j->waiting_ns, 0);
    assert_false(j->has_minres);
    assert_int_equal(j->topo.mode, TOPO_NONE);

    ingest_del(w.in, api_kind(API_PODGROUP), HK_STR("default"), HK_STR("g"));
    assert_true(id_none(model_job_find(&w.m, HK_STR("default"), HK_STR("g"))));
}

#define QUEUE(name, spec, state)                                                                   \
    "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: " name              \
    "}, spec: {" spec "}, status: {" state "}}\n---\n"

static const struct queue *queue(struct world *w, const char *name)
{
    const queue_id q = model_queue_find(&w->m, hk_str(name));

    return id_none(q) ? NULL : model_queue(&w->m, q);
}

static void queues_open_by_themselves_only_without_a_controller(void **state)
{
    for (uint32_t make = 0; make < 2; make++) {
        HK_AUTO(world_fini) struct world w;

        world_init(&w, &(struct ingest_opts){.make_queues = make});
        load_fine(&w, QUEUE("a", "", "") QUEUE("b", "", "state: Closed"));
        assert_int_equal(queue(&w, "a")->state, make ? QUEUE_OPEN : QUEUE_STATELESS);
        assert_int_equal(queue(&w, "b")->state, QUEUE_CLOSED);
        assert_int_equal(queue(&w, "default") != NULL, make);
        assert_int_equal(queue(&w, "root") != NULL, make);
        if (make) {
            assert_true(queue(&w, "default")->reclaimable);
            assert_false(queue(&w, "root")->reclaimable);
        }
    }
}

static void queue_amounts_keep_absent_apart_from_zero(void **state)
{
    WORLD(w);
    load_fine(&w,
              QUEUE("a",
                    "weight: 4, parent: nowhere, priority: 2, reclaimable: false,"
                    " capability: {cpu: 2, nvidia.com/gpu: 0}, guarantee: {resource: {memory: 5}}",
                    "state: Open"));
    const struct queue *q = queue(&w, "a");
    const uint32_t gpu = dims_find(&w.m.dims, HK_STR("nvidia.com/gpu"));
    assert_int_equal(q->weight, 4);
    assert_int_equal(q->priority, 2);
    assert_false(q->reclaimable);
    assert_string_equal(text(&w, q->parent_name), "nowhere");
    assert_true(q->has_capability && q->has_guarantee && !q->has_deserved);
    assert_true(q->capability.v[DIM_CPU] == 2000);
    assert_true((q->capability.has >> gpu) & 1);
    assert_true(q->guarantee.v[DIM_MEM] == 5);
}

static void small_tables_are_filled(void **state)
{
    WORLD(w);
    load_fine(
        &w,
        "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {cpu: 9}},"
        " status: {hard: {cpu: 2, pods: 10}, used: {cpu: 500m}}}\n---\n"
        "{apiVersion: v1, kind: ResourceQuota, metadata: {name: r}, spec: {hard: {cpu: 9}}}\n---\n"
        "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {selector:"
        " {matchLabels: {a: b}}}, status: {disruptionsAllowed: 1, disruptedPods:"
        " {p1: '2026-01-01T00:00:00Z'}}}\n---\n"
        "{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {a: b}}}\n");
    const struct quota *q = &w.m.quotas.at[0];
    assert_int_equal(q->items.len, 2);
    assert_int_equal(q->items.at[0].hard_milli, 2000);
    assert_int_equal(q->items.at[0].used_milli, 500);
    assert_true(q->items.at[1].has_hard && !q->items.at[1].has_used);
    assert_int_equal(w.m.quotas.at[1].items.at[0].hard_milli, 9000);
    assert_int_equal(w.m.pdbs.at[0].allowed, 1);
    assert_int_equal(w.m.pdbs.at[0].sel.n, 1);
    assert_int_equal(w.m.pdbs.at[0].disrupted.at[0], id(&w, "p1"));
    uint32_t val;
    assert_true(labels_get(model_namespace_labels(&w.m, id(&w, "team")),
                           id(&w, "kubernetes.io/metadata.name"), &val));
    assert_int_equal(val, id(&w, "team"));

    ingest_del(w.in, api_kind(API_RESOURCE_QUOTA), HK_STR("default"), HK_STR("q"));
    ingest_del(w.in, api_kind(API_PDB), HK_STR("default"), HK_STR("b"));
    ingest_del(w.in, api_kind(API_NAMESPACE), HK_STR(""), HK_STR("team"));
    assert_false(w.m.quotas.at[0].used || w.m.pdbs.at[0].used);
    assert_int_equal(model_namespace_labels(&w.m, id(&w, "team")).n, 0);
}

/* ---- hyperNodes ---- */

#define NODE(name, labels)                                                                         \
    "{apiVersion: v1, kind: Node, metadata: {name: " name ", labels: {" labels "}}}\n---\n"
#define HYPER(name, tier, members)                                                                 \
    "{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, metadata: {name: " name           \
    "}, spec: {tier: " tier ", members: [" members "]}}\n---\n"
#define REGEX(p) "{type: Node, selector: {regexMatch: {pattern: '" p "'}}}"
#define EXACT(type, n) "{type: " type ", selector: {exactMatch: {name: " n "}}}"

static uint32_t hyper_nodes(struct world *w, const char *name)
{
    const hyper_id h = model_hyper_find(&w->m, hk_str(name));

    return id_none(h) ? HK_NONE : w->m.hypers.at[h.i].nodes.len;
}

static void hypernode_members_are_found_by_name_pattern_and_label(void **state)
{
    WORLD(w);
    load_fine(&w,
              HYPER("exact", "1", EXACT("Node", "a1")) HYPER("regex", "1", REGEX("^b\\d+$"))
                  HYPER("label", "1", "{type: Node, selector: {labelMatch: {matchLabels: {r: x}}}}")
                      HYPER("empty", "1", "{type: Node, selector: {labelMatch: {}}}") HYPER(
                          "top", "2", EXACT("HyperNode", "exact") ", " EXACT("HyperNode", "regex"))
                          NODE("a1", "") NODE("b1", "") NODE("b22", "") NODE("bx", "r: x"));
    assert_int_equal(hyper_nodes(&w, "exact"), 1);
    assert_int_equal(hyper_nodes(&w, "regex"), 2);
    assert_int_equal(hyper_nodes(&w, "label"), 1);
    assert_int_equal(hyper_nodes(&w, "empty"), 0);
    assert_int_equal(hyper_nodes(&w, "top"), 3);

    load_fine(&w, NODE("b3", "") NODE("bx", "r: z"));
    ingest_del(w.in, api_kind(API_NODE), HK_STR(""), HK_STR("b1"));
    load_fine(&w, "");
    assert_int_equal(hyper_nodes(&w, "regex"), 2);
    assert_int_equal(hyper_nodes(&w, "label"), 0);

    ingest_del(w.in, api_kind(API_HYPERNODE), HK_STR(""), HK_STR("regex"));
    load_fine(&w, "");
    assert_int_equal(hyper_nodes(&w, "regex"), HK_NONE);
    assert_int_equal(hyper_nodes(&w, "top"), 1);
}

static void a_tree_that_is_none_is_reported_until_mended(void **state)
{
    WORLD(w);
    uint32_t n;

    load(&w, HYPER("a", "1", EXACT("Node", "n0")) HYPER("p", "2", EXACT("HyperNode", "a"))
                 HYPER("q", "2", EXACT("HyperNode", "a")));
    assert_false(w.m.hyper_ready);
    assert_string_equal(ingest_problems(w.in, &n)->text,
                        "hyperNode 'a' is a member of both 'p' and 'q'");
    load_fine(&w, HYPER("q", "2", EXACT("HyperNode", "x")));
    assert_true(w.m.hyper_ready);
}

/* ---- storage ---- */

#define CLAIMANT(name, claim)                                                                      \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name                                           \
    "}, spec: {schedulerName: volcano, volumes: [{name: d, persistentVolumeClaim: "                \
    "{claimName: " claim "}}]}}\n---\n"

static node_id node(struct world *w, const char *name)
{
    return model_node_find(&w->m, hk_str(name));
}

static void volumes_answer_from_what_was_loaded(void **state)
{
    struct reason why[4];
    struct reason pre;
    WORLD(w);

    load_fine(
        &w,
        NODE("a1", "zone: a") NODE("b1", "zone: b") CLAIMANT("bound", "c") CLAIMANT("late", "l")
            CLAIMANT(
                "lost",
                "x") "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c, annotations:"
                     " {pv.kubernetes.io/bind-completed: 'yes'}}\n"
                     "spec: {volumeName: v, storageClassName: s, resources: {requests: {storage: "
                     "1Gi}}}\n"
                     "---\n"
                     "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\n"
                     "spec:\n  capacity: {storage: 1Gi}\n  csi: {driver: d, volumeHandle: h}\n"
                     "  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions:"
                     " [{key: zone, operator: In, values: [a]}]}]}}\n---\n"
                     "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: l},"
                     " spec: {storageClassName: s, resources: {requests: {storage: 1Gi}}}}\n---\n"
                     "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: s},"
                     " provisioner: d, volumeBindingMode: WaitForFirstConsumer, allowedTopologies:"
                     " [{matchLabelExpressions: [{key: zone, values: [b]}]}]}\n---\n"
                     "{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: b1},"
                     " spec: {drivers: [{name: d, nodeID: x, allocatable: {count: 0}}]}}\n");

    assert_true(volumes_pre_binding(&w.m, task_at(&w, "bound"), &pre));
    assert_int_equal(volumes_filter_binding(&w.m, task_at(&w, "bound"), node(&w, "a1"), why), 0);
    assert_int_equal(volumes_filter_binding(&w.m, task_at(&w, "bound"), node(&w, "b1"), why), 1);
    assert_int_equal(why[0].code, REASON_VOLUME_AFFINITY);

    assert_true(volumes_pre_binding(&w.m, task_at(&w, "late"), &pre));
    assert_int_equal(volumes_filter_binding(&w.m, task_at(&w, "late"), node(&w, "b1"), why), 0);
    assert_int_equal(volumes_filter_binding(&w.m, task_at(&w, "late"), node(&w, "a1"), why), 1);
    assert_int_equal(why[0].code, REASON_VOLUME_BIND);
    assert_int_equal(volumes_filter_limits(&w.m, task_at(&w, "late"), node(&w, "b1")).code,
                     REASON_VOLUME_COUNT);

    assert_false(volumes_pre_binding(&w.m, task_at(&w, "lost"), &pre));
    ingest_del(w.in, api_kind(API_PVC), HK_STR("default"), HK_STR("c"));
    assert_false(volumes_pre_binding(&w.m, task_at(&w, "bound"), &pre));
}

/* ---- problems ---- */

static void bad_objects_are_reported_and_others_taken(void **state)
{
    static const struct {
        const char *doc, *object, *text;
        uint32_t line;
    } cases[] = {
        {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  schedulerName: volcano\n"
         "  containers:\n  - name: a\n    resources:\n      requests: {cpu: 2e15}\n",
         "default/p",
         "spec.containers[0].resources: cpu: quantity '2P', want 0 to 1125899906842624"
         " thousandths",
         1},
        {"apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: x}\nspec:\n"
         "  containers:\n  - name: a\n    resources:\n      requests: {cpu: -1}\n",
         "x/p", "spec.containers[0].resources.requests.cpu: negative quantity '-1'", 8},
        {"apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n"
         "spec:\n  minMember: -1\n",
         "default/g", "spec.minMember: value -1, want 0 to 2147483647", 5},
        {"apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"
         "spec:\n  capability: {memory: 2Pi}\n",
         "q", "spec.capability: memory: quantity '2Pi', want 0 to 1125899906842624 units", 1},
        {"apiVersion: v1\nkind: Node\nmetadata: {name: n0}\nstatus:\n"
         "  allocatable: {cpu: 1e30}\n",
         "n0", NULL, 1},
        {"apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n", "(line 1)",
         "metadata.name: missing", 1},
        {HYPER("h", "1", REGEX("a(b")), "h", NULL, 1},
    };

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        WORLD(w);
        HK_AUTO(hk_buf_fini) struct hk_buf y = {0};
        const struct ingest_problem *p;
        uint32_t n;

        hk_buf_addf(&y, "%s\n---\n%s", cases[k].doc, NODE("fine", ""));
        load(&w, y.data);
        p = ingest_problems(w.in, &n);
        assert_int_equal(n, 1);
        assert_string_equal(p->object, cases[k].object);
        if (cases[k].text) {
            assert_string_equal(p->text, cases[k].text);
        }
        assert_string_equal(p->file, "test.yaml");
        assert_int_equal(p->line, cases[k].line);
        assert_false(id_none(model_node_find(&w.m, HK_STR("fine"))));
    }
}

static void a_problem_goes_with_a_better_version_or_the_object(void **state)
{
    static const char bad[] = POD("%s") "spec: {priority: high}\n---\n";
    WORLD(w);
    HK_AUTO(hk_buf_fini) struct hk_buf y = {0};
    uint32_t n;

    load_fine(&w, POD("a") "spec: {schedulerName: volcano, priority: 3}\n");
    hk_buf_addf(&y, bad, "a");
    hk_buf_addf(&y, bad, "b");
    hk_buf_addf(&y, bad, "c");
    load(&w, y.data);
    load(&w, y.data);
    ingest_problems(w.in, &n);
    assert_int_equal(n, 3);
    assert_int_equal(task(&w, "a")->priority, 3); /* the last valid version stays */

    load(&w, POD("a") "spec: {schedulerName: volcano, priority: 4}\n");
    ingest_del(w.in, api_kind(API_POD), HK_STR("default"), HK_STR("b"));
    assert_string_equal(ingest_problems(w.in, &n)->object, "default/c");
    assert_int_equal(n, 1);
    load_fine(&w, POD("c") "spec: {schedulerName: volcano}\n");
}

static void kinds_nobody_acts_on_are_ignored(void **state)
{
    WORLD(w);
    load_fine(&w, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}");
    ingest_del(w.in, api_kind(API_CONFIGMAP), HK_STR("default"), HK_STR("c"));
}

static void deleting_what_was_never_there_does_nothing(void **state)
{
    WORLD(w);
    for (uint32_t k = 0; k < API_NKINDS; k++) {
        ingest_del(w.in, api_kind((enum api_kind_id)k), HK_STR(""), HK_STR("x"));
    }
    check_books(&w);
    expect_no_problems(&w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(oversubscription_adds_to_what_volcano_counts_only),
        TEST(a_podgroup_becomes_a_job),
        TEST(a_podgroup_without_words_gets_the_defaults),
        TEST(queues_open_by_themselves_only_without_a_controller),
        TEST(queue_amounts_keep_absent_apart_from_zero),
        TEST(small_tables_are_filled),
        TEST(hypernode_members_are_found_by_name_pattern_and_label),
        TEST(a_tree_that_is_none_is_reported_until_mended),
        TEST(volumes_answer_from_what_was_loaded),
        TEST(bad_objects_are_reported_and_others_taken),
        TEST(a_problem_goes_with_a_better_version_or_the_object),
        TEST(kinds_nobody_acts_on_are_ignored),
        TEST(deleting_what_was_never_there_does_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
