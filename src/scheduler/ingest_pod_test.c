// SPDX-License-Identifier: Apache-2.0
// Pods to tasks: each case is a small manifest and the expected row.
#include "scheduler/ingest_fixture_test.h"

/* ---- requests ---- */

static void requests_follow_containers_sidecars_init_and_overhead(void **state)
{
    static const struct {
        const char *about, *spec;
        int64_t cpu, mem, nz_cpu, nz_mem;
    } cases[] = {
        {"sum of containers",
         "containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Ki}}},"
         " {name: b, resources: {requests: {cpu: 500m, memory: 1Ki}}}]",
         1500, 2048, 1500, 2048},
        {"nothing asked", "containers: [{name: a}]", 0, 0, 100, 200 << 20},
        {"an explicit zero is no guess",
         "containers: [{name: a, resources: {requests: {cpu: 0, memory: 0}}}]", 0, 0, 0, 0},
        {"init container larger than the sum",
         "initContainers: [{name: i, resources: {requests: {cpu: 3}}}],"
         " containers: [{name: a, resources: {requests: {cpu: 1, memory: 5}}}]",
         3000, 5, 3000, 200 << 20},
        {"sidecars run beside containers and later init containers",
         "initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}},"
         " {name: i, resources: {requests: {cpu: 3}}}],"
         " containers: [{name: a, resources: {requests: {cpu: 1}}}]",
         4000, 0, 4000, 400 << 20},
        {"a sidecar after the init container does not add to it",
         "initContainers: [{name: i, resources: {requests: {cpu: 3}}},"
         " {name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}],"
         " containers: [{name: a, resources: {requests: {cpu: 1}}}]",
         3000, 0, 3000, 400 << 20},
        {"pod level replaces, overhead adds",
         "resources: {requests: {cpu: 2}}, overhead: {cpu: 250m, memory: 10},"
         " containers: [{name: a, resources: {requests: {cpu: 1, memory: 7}}}]",
         2250, 17, 2250, 17},
        {"a limit stands in for the request",
         "containers: [{name: a, resources: {limits: {cpu: 2}}}]", 2000, 0, 2000, 200 << 20},
    };

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        WORLD(w);
        HK_AUTO(hk_buf_fini) struct hk_buf y = {0};
        hk_buf_addf(&y,
                    "{apiVersion: v1, kind: Pod, metadata: {name: p},"
                    " spec: {schedulerName: volcano, %s}}",
                    cases[k].spec);
        load_fine(&w, y.data);

        const struct shape *s = task_shape(&w.m, task_at(&w, "p"));
        if (shape_req(s, DIM_CPU) != cases[k].cpu || shape_req(s, DIM_MEM) != cases[k].mem ||
            s->nz_cpu != cases[k].nz_cpu || s->nz_mem != cases[k].nz_mem ||
            shape_req(s, DIM_PODS) != 1) {
            fail_msg("%s: have %lld/%lld, non-zero %lld/%lld, want %lld/%lld, %lld/%lld",
                     cases[k].about, (long long)shape_req(s, DIM_CPU),
                     (long long)shape_req(s, DIM_MEM), (long long)s->nz_cpu, (long long)s->nz_mem,
                     (long long)cases[k].cpu, (long long)cases[k].mem, (long long)cases[k].nz_cpu,
                     (long long)cases[k].nz_mem);
        }
    }
}

static void a_resize_counts_the_larger_size_until_it_is_through(void **state)
{
    static const char pod[] =
        POD("p") "spec:\n" OURS "  nodeName: n0\n"
                 "  containers: [{name: a, resources: {requests: {cpu: 3}}}]\n"
                 "status:\n  phase: Running\n%s"
                 "  containerStatuses: [{name: a, allocatedResources: {cpu: 1}, resources: "
                 "{requests: {cpu: 2}}}]\n";
    static const struct {
        const char *resize;
        int64_t cpu;
    } cases[] = {{"", 3000}, {"  resize: Infeasible\n", 2000}};

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        WORLD(w);
        HK_AUTO(hk_buf_fini) struct hk_buf y = {0};
        hk_buf_addf(&y, pod, cases[k].resize);
        load_fine(&w, y.data);
        assert_int_equal(request(&w, "p", "cpu"), cases[k].cpu);
    }
}

static void resource_names_become_dimensions_in_their_units(void **state)
{
    WORLD(w);
    load_fine(
        &w,
        POD("p") "spec:\n" OURS "  containers:\n  - name: a\n    resources:\n      requests:\n"
                 "        nvidia.com/gpu: 2\n        hugepages-2Mi: 4Mi\n"
                 "        ephemeral-storage: 1Gi\n        count/x: 5\n        requests.cpu: 4\n");
    assert_int_equal(request(&w, "p", "nvidia.com/gpu"), 2000);
    assert_int_equal(request(&w, "p", "hugepages-2Mi"), 4 << 20);
    assert_int_equal(request(&w, "p", "ephemeral-storage"), 1 << 30);
    assert_int_equal(request(&w, "p", "count/x"), -1);
    assert_int_equal(request(&w, "p", "requests.cpu"), -1);
    assert_false(task(&w, "p")->flags & TASK_BEST_EFFORT);
}

/* ---- task fields ---- */

static void states_follow_phase_node_and_deletion(void **state)
{
    static const struct {
        const char *phase, *node, *deleted;
        enum task_status want;
    } cases[] = {
        {"Running", "n0", "2026-01-01T00:00:00Z", TASK_RELEASING},
        {"Running", "n0", NULL, TASK_RUNNING},
        {"Pending", "n0", "2026-01-01T00:00:00Z", TASK_RELEASING},
        {"Pending", NULL, "2026-01-01T00:00:00Z", TASK_RELEASING},
        {"Pending", NULL, NULL, TASK_PENDING},
        {"Pending", "n0", NULL, TASK_BOUND},
        {"Succeeded", "n0", NULL, TASK_SUCCEEDED},
        {"Failed", "n0", "2026-01-01T00:00:00Z", TASK_FAILED},
        {"Unknown", "n0", NULL, TASK_UNKNOWN},
        {"Odd", "n0", NULL, TASK_UNKNOWN},
    };

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        WORLD(w);
        HK_AUTO(hk_buf_fini) struct hk_buf y = {0};
        hk_buf_addf(&y,
                    "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations:"
                    " {scheduling.k8s.io/group-name: g}%s%s%s},"
                    " spec: {schedulerName: volcano%s%s}, status: {phase: %s}}",
                    cases[k].deleted ? ", deletionTimestamp: '" : "",
                    cases[k].deleted ? cases[k].deleted : "", cases[k].deleted ? "'" : "",
                    cases[k].node ? ", nodeName: " : "", cases[k].node ? cases[k].node : "",
                    cases[k].phase);
        load_fine(&w, y.data);
        assert_string_equal(task_status_name(task(&w, "p")->status),
                            task_status_name(cases[k].want));
        assert_int_equal(!!(task(&w, "p")->flags & TASK_TERMINATING), cases[k].deleted != NULL);
    }
}

static void flags_follow_annotations_labels_gates_and_classes(void **state)
{
    static const unsigned seen = TASK_PREEMPTABLE | TASK_GATED | TASK_GATE_OURS_ONLY |
                                 TASK_GATE_OPT_IN | TASK_NEVER_PREEMPTS | TASK_CRITICAL |
                                 TASK_REVOCABLE | TASK_NO_LABELS | TASK_PREEMPT_VICTIM;
    static const struct {
        const char *meta, *spec, *status;
        unsigned want;
    } cases[] = {
        {"", "", "", TASK_PREEMPTABLE | TASK_NO_LABELS},
        {", labels: {volcano.sh/preemptable: 'false'}", "", "", 0},
        {", annotations: {volcano.sh/preemptable: 'maybe'}", "", "", TASK_NO_LABELS},
        {", labels: {volcano.sh/preemptable: 'false'},"
         " annotations: {volcano.sh/preemptable: 'true'}",
         "", "", TASK_PREEMPTABLE | TASK_REVOCABLE},
        {", labels: {a: b}, annotations: {volcano.sh/revocable-zone: '*'}", "", "",
         TASK_PREEMPTABLE | TASK_REVOCABLE},
        {", labels: {a: b}, annotations: {volcano.sh/revocable-zone: z1}", "", "",
         TASK_PREEMPTABLE},
        {", labels: {a: b}", ", schedulingGates: [{name: x}]", "", TASK_PREEMPTABLE | TASK_GATED},
        {", labels: {a: b}, annotations: {scheduling.volcano.sh/queue-allocation-gate: 'true'}",
         ", schedulingGates: [{name: scheduling.volcano.sh/queue-allocation-gate}]", "",
         TASK_PREEMPTABLE | TASK_GATED | TASK_GATE_OURS_ONLY | TASK_GATE_OPT_IN},
        {", labels: {a: b}", ", preemptionPolicy: Never", "",
         TASK_PREEMPTABLE | TASK_NEVER_PREEMPTS},
        {", labels: {a: b}", ", priorityClassName: system-node-critical", "",
         TASK_PREEMPTABLE | TASK_CRITICAL},
        {", labels: {a: b}", ", priorityClassName: system-node-critical-2", "", TASK_PREEMPTABLE},
        {", labels: {a: b}", "",
         "conditions: [{type: DisruptionTarget, status: 'True', reason: PreemptionByScheduler}]",
         TASK_PREEMPTABLE | TASK_PREEMPT_VICTIM},
    };

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        WORLD(w);
        HK_AUTO(hk_buf_fini) struct hk_buf y = {0};
        hk_buf_addf(&y,
                    "{apiVersion: v1, kind: Pod, metadata: {name: p%s},"
                    " spec: {schedulerName: volcano%s}, status: {%s}}",
                    cases[k].meta, cases[k].spec, cases[k].status);
        load_fine(&w, y.data);
        if ((task(&w, "p")->flags & seen) != cases[k].want) {
            fail_msg("case %u: flags %#x, want %#x", k, task(&w, "p")->flags & seen, cases[k].want);
        }
    }
}

static void a_role_is_an_annotation_or_else_a_label(void **state)
{
    WORLD(w);
    load_fine(&w,
              "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {volcano.sh/task-spec: l},"
              " annotations: {volcano.sh/task-spec: r}}, spec: {schedulerName: volcano}}\n---\n"
              "{apiVersion: v1, kind: Pod, metadata: {name: b, labels: {volcano.sh/task-spec: l}},"
              " spec: {schedulerName: volcano}}\n---\n"
              "{apiVersion: v1, kind: Pod, metadata: {name: c}, spec: {schedulerName: volcano}}");
    assert_string_equal(text(&w, task(&w, "a")->role), "r");
    assert_string_equal(text(&w, task(&w, "b")->role), "l");
    assert_string_equal(text(&w, task(&w, "c")->role), "");
}

static void pods_of_others_count_when_bound_and_finished_pods_when_in_a_job(void **state)
{
    static const struct {
        const char *about, *meta, *spec, *phase;
        bool kept, in_job;
    } cases[] = {
        {"ours, waiting, no group", "", "schedulerName: volcano", "Pending", true, false},
        {"other's, waiting", "", "schedulerName: x", "Pending", false, false},
        {"other's by default, waiting", "", "", "Pending", false, false},
        {"other's, bound", "", "nodeName: n0", "Running", true, false},
        {"other's, bound, with a group", ", annotations: {scheduling.k8s.io/group-name: g}",
         "nodeName: n0", "Running", true, true},
        {"finished, no group", "", "schedulerName: volcano, nodeName: n0", "Succeeded", false,
         false},
        {"finished, in a group", ", annotations: {scheduling.k8s.io/group-name: g}",
         "schedulerName: volcano, nodeName: n0", "Failed", true, true},
    };

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        WORLD(w);
        HK_AUTO(hk_buf_fini) struct hk_buf y = {0};
        hk_buf_addf(&y,
                    "{apiVersion: v1, kind: Pod, metadata: {name: p%s},"
                    " spec: {%s}, status: {phase: %s}}",
                    cases[k].meta, cases[k].spec, cases[k].phase);
        load_fine(&w, y.data);
        const task_id t = model_task_find(&w.m, HK_STR("default"), HK_STR("p"));
        if (id_none(t) == cases[k].kept) {
            fail_msg("%s: kept %d, want %d", cases[k].about, !id_none(t), cases[k].kept);
        }
        if (cases[k].kept) {
            assert_int_equal(!id_none(model_task(&w.m, t)->job), cases[k].in_job);
        }
    }
}

/* A restarted scheduler finds pods whose PodGroup was deleted before: the pods name their queue. */
static void a_bound_pod_without_its_podgroup_counts_in_the_queue_it_names(void **state)
{
    static const struct {
        const char *about, *more;
        int64_t cpu;
    } cases[] = {
        {"of a Job", ", volcano.sh/queue-name: q", 1000},
        {"a plain one", ", scheduling.volcano.sh/queue-name: q", 1000},
        {"in another queue", ", volcano.sh/queue-name: other", 0},
        {"without a word", "", 0},
    };

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        WORLD(w);
        HK_AUTO(hk_buf_fini) struct hk_buf y = {0};
        hk_buf_addf(&y,
                    "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations:"
                    " {scheduling.k8s.io/group-name: g%s}},"
                    " spec: {schedulerName: volcano, nodeName: n1, containers:"
                    " [{name: a, resources: {requests: {cpu: 1}}}]}, status: {phase: Running}}",
                    cases[k].more);
        load_fine(&w, y.data);
        load_fine(&w, "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue,"
                      " metadata: {name: q}, spec: {weight: 1}}");

        const queue_id q = model_queue_find(&w.m, HK_STR("q"));
        if (model_queue(&w.m, q)->allocated[DIM_CPU] != cases[k].cpu) {
            fail_msg("%s: the queue holds %lldm cpu, want %lldm", cases[k].about,
                     (long long)model_queue(&w.m, q)->allocated[DIM_CPU], (long long)cases[k].cpu);
        }
    }
}

static void a_bound_pod_makes_a_placeholder_of_its_unknown_node(void **state)
{
    WORLD(w);
    load_fine(&w, POD("p") "spec:\n  nodeName: n9\n"
                           "  containers: [{name: a, resources: {requests: {cpu: 2}}}]\n"
                           "status: {phase: Running}\n");
    const node_id n = model_node_find(&w.m, HK_STR("n9"));
    assert_false(id_none(n));
    assert_false(w.m.nodes.flags[n.i] & NODE_KNOWN);
    assert_int_equal(w.m.nodes.used.col[DIM_CPU][n.i], 2000);

    load_fine(&w, "{apiVersion: v1, kind: Node, metadata: {name: n9},"
                  " status: {allocatable: {cpu: 8}}}");
    assert_true(w.m.nodes.flags[n.i] & NODE_KNOWN);
    assert_int_equal(w.m.nodes.idle.col[DIM_CPU][n.i], 6000);

    ingest_del(w.in, api_kind(API_NODE), HK_STR(""), HK_STR("n9"));
    ingest_del(w.in, api_kind(API_POD), HK_STR("default"), HK_STR("p"));
    check_books(&w);
    assert_true(id_none(model_node_find(&w.m, HK_STR("n9"))));
}

static void a_second_document_of_the_same_name_replaces_the_first(void **state)
{
    WORLD(w);
    load_fine(&w, POD("p") "spec:\n" OURS
                           "  containers: [{name: a, resources: {requests: {cpu: 2}}}]\n---\n" POD(
                               "p") "spec:\n" OURS
                                    "  containers: [{name: a, resources: {requests: {cpu: 5}}}]\n");
    assert_int_equal(request(&w, "p", "cpu"), 5000);
    assert_int_equal(w.m.requested[DIM_CPU], 5000);
}

/* ---- priorities ---- */

#define CLASS(name, value, more)                                                                   \
    "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: " name               \
    "}, value: " value more "}\n---\n"

static void task_priority_is_annotation_then_spec_then_class(void **state)
{
    static const struct {
        const char *about, *meta, *spec;
        int32_t priority, pod_priority;
    } cases[] = {
        {"unset", "", "", 1, 0},
        {"spec", "", ", priority: 7", 7, 7},
        {"spec before class", "", ", priority: 7, priorityClassName: high", 7, 7},
        {"class", "", ", priorityClassName: high", 1000, 1000},
        {"unknown class", "", ", priorityClassName: nope", 1, 0},
        {"annotation", ", annotations: {volcano.sh/task-priority: '-3'}",
         ", priorityClassName: high", -3, 1000},
        {"annotation that is no number", ", annotations: {volcano.sh/task-priority: x}",
         ", priority: 4", 4, 4},
    };

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        for (uint32_t late = 0; late < 2; late++) {
            WORLD(w);
            HK_AUTO(hk_buf_fini) struct hk_buf y = {0};
            hk_buf_addf(&y,
                        "%s{apiVersion: v1, kind: Pod, metadata: {name: p%s},"
                        " spec: {schedulerName: volcano%s}}\n---\n%s",
                        late ? "" : CLASS("high", "1000", ""), cases[k].meta, cases[k].spec,
                        late ? CLASS("high", "1000", "") : "");
            load_fine(&w, y.data);
            const struct task *t = task(&w, "p");
            if (t->priority != cases[k].priority || t->pod_priority != cases[k].pod_priority) {
                fail_msg("%s, class %s: have %d and %d, want %d and %d", cases[k].about,
                         late ? "after" : "before", t->priority, t->pod_priority, cases[k].priority,
                         cases[k].pod_priority);
            }
        }
    }
}

static void priorities_follow_classes_as_they_change(void **state)
{
    static const char group[] =
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\n"
        "spec: {minMember: 1%s}\n---\n";
    WORLD(w);
    HK_AUTO(hk_buf_fini) struct hk_buf y = {0};

    hk_buf_addf(&y, group, "a", ", priorityClassName: high");
    hk_buf_addf(&y, group, "b", "");
    hk_buf_addf(&y, group, "c", ", priorityClassName: nope");
    hk_buf_adds(&y, "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec:"
                    " {nodeName: n0, priorityClassName: high}, status: {phase: Running}}");
    load_fine(&w, y.data);
    assert_int_equal(job(&w, "a")->priority, 0);

    load_fine(&w, CLASS("high", "9", ", preemptionPolicy: Never")
                      CLASS("base", "5", ", globalDefault: true"));
    assert_int_equal(job(&w, "a")->priority, 9);
    assert_int_equal(job(&w, "b")->priority, 5);
    assert_int_equal(job(&w, "c")->priority, 5);
    assert_int_equal(task(&w, "p")->priority, 9);
    assert_true(task(&w, "p")->flags & TASK_NEVER_PREEMPTS);
    assert_int_equal(task(&w, "p")->status, TASK_RUNNING);

    ingest_del(w.in, api_kind(API_PRIORITY_CLASS), HK_STR(""), HK_STR("base"));
    load_fine(&w, CLASS("high", "11", ""));
    assert_int_equal(job(&w, "a")->priority, 11);
    assert_int_equal(job(&w, "b")->priority, 0);
    assert_int_equal(task(&w, "p")->pod_priority, 11);
    assert_false(task(&w, "p")->flags & TASK_NEVER_PREEMPTS);
}

/* ---- constraints ---- */

static void a_pod_that_asks_for_nothing_has_no_constraints(void **state)
{
    WORLD(w);
    load_fine(&w, POD("p") "spec:\n" OURS "  containers: [{name: a}]\n");
    assert_null(cons(&w, "p"));
}

static void equal_constraints_share_a_row(void **state)
{
    WORLD(w);
    load_fine(&w,
              POD("a") "spec:\n" OURS "  nodeSelector: {x: a, z: w}\n---\n" POD(
                  "b") "spec:\n" OURS
                       "  nodeSelector: {z: w, x: a}\n---\n" POD("c") "spec:\n" OURS
                                                                      "  nodeSelector: {x: a}\n");
    assert_int_equal(task(&w, "a")->shape.i, task(&w, "b")->shape.i);
    assert_int_not_equal(task(&w, "a")->shape.i, task(&w, "c")->shape.i);
}

static void node_terms_and_preferences_are_taken_over(void **state)
{
    WORLD(w);
    load_fine(&w,
              POD("p") "spec:\n" OURS "  affinity:\n    nodeAffinity:\n"
                       "      requiredDuringSchedulingIgnoredDuringExecution:\n        "
                       "nodeSelectorTerms:\n"
                       "        - matchExpressions:\n"
                       "          - {key: zone, operator: In, values: [b, a]}\n"
                       "          - {key: mem, operator: Gt, values: ['32']}\n"
                       "        - matchFields: [{key: metadata.name, operator: In, values: [n1]}]\n"
                       "        - {}\n"
                       "        - matchExpressions: [{key: mem, operator: Gt, values: [x]}]\n"
                       "      preferredDuringSchedulingIgnoredDuringExecution:\n"
                       "      - {weight: 0, preference: {matchExpressions: [{key: a, operator: "
                       "Exists}]}}\n"
                       "      - {weight: 7, preference: {matchExpressions: [{key: a, operator: "
                       "Exists}]}}\n");
    const struct cons *c = cons(&w, "p");
    assert_true(c->has_terms);
    assert_int_equal(c->nterm, 4);
    assert_int_equal(c->term[0].nreq, 2);
    assert_int_equal(c->term[0].req[0].n, 2);
    assert_int_equal(c->term[0].req[1].num, 32);
    assert_int_equal(c->term[1].field[0].vals[0], id(&w, "n1"));
    assert_true(c->term[2].never && c->term[3].never);
    assert_int_equal(c->npref, 1);
    assert_int_equal(c->pref[0].weight, 7);
    assert_false(c->pref_error || c->name_conflict);
}

static void terms_that_name_different_nodes_conflict(void **state)
{
    static const struct {
        const char *terms;
        bool conflict;
    } cases[] = {
        {"[{matchFields: [{key: metadata.name, operator: In, values: [a]},"
         " {key: metadata.name, operator: In, values: [b]}]}]",
         true},
        {"[{matchFields: [{key: metadata.name, operator: In, values: [a]},"
         " {key: metadata.name, operator: In, values: [a]}]}]",
         false},
        {"[{matchFields: [{key: metadata.name, operator: In, values: [a]},"
         " {key: metadata.name, operator: In, values: [b]}]},"
         " {matchExpressions: [{key: z, operator: Exists}]}]",
         false},
        {"[]", false},
    };

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        WORLD(w);
        HK_AUTO(hk_buf_fini) struct hk_buf y = {0};
        hk_buf_addf(
            &y,
            "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {schedulerName: volcano,"
            " affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
            " {nodeSelectorTerms: %s}}}}}",
            cases[k].terms);
        load_fine(&w, y.data);
        assert_true(cons(&w, "p")->has_terms);
        assert_int_equal(cons(&w, "p")->name_conflict, cases[k].conflict);
    }
}

static void unknown_fields_read_as_empty(void **state)
{
    WORLD(w);
    load_fine(&w, "{apiVersion: v1, kind: Node, metadata: {name: n0}}\n---\n" POD(
                      "p") "spec:\n" OURS "  affinity:\n    nodeAffinity:\n"
                           "      requiredDuringSchedulingIgnoredDuringExecution:\n        "
                           "nodeSelectorTerms:\n"
                           "        - matchFields: [{key: odd, operator: In, values: [x]}]\n"
                           "        - matchFields: [{key: odd, operator: NotIn, values: [x]}]\n");
    const struct cons *c = cons(&w, "p");
    const struct labels none = {0};
    assert_false(node_term_match(&c->term[0], none, id(&w, "n0"), &w.m.str));
    assert_true(node_term_match(&c->term[1], none, id(&w, "n0"), &w.m.str));
}

static void tolerations_keep_operator_and_effect(void **state)
{
    WORLD(w);
    load_fine(&w, POD("p") "spec:\n" OURS "  tolerations:\n"
                           "  - {operator: Exists}\n"
                           "  - {key: k, value: v, effect: NoExecute, tolerationSeconds: 30}\n"
                           "  - {key: k, operator: Gt, value: '3', effect: NoSchedule}\n");
    const struct cons *c = cons(&w, "p");
    assert_int_equal(c->ntol, 3);
    assert_true(c->tol[0].exists && c->tol[0].any_effect && c->tol[0].key == 0);
    assert_int_equal(c->tol[1].effect, EFFECT_NO_EXECUTE);
    assert_false(c->tol[1].exists || c->tol[1].never || c->tol[1].any_effect);
    assert_true(c->tol[2].never);
}

static void host_ports_of_containers_and_sidecars_count(void **state)
{
    WORLD(w);
    load_fine(
        &w,
        POD("p") "spec:\n" OURS "  initContainers:\n"
                 "  - {name: i, ports: [{hostPort: 1, containerPort: 1}]}\n"
                 "  - {name: s, restartPolicy: Always, ports: [{hostPort: 2, hostIP: 10.0.0.1}]}\n"
                 "  containers:\n"
                 "  - {name: a, ports: [{containerPort: 80}, {hostPort: 8080, protocol: UDP}]}\n");
    const struct cons *c = cons(&w, "p");
    assert_int_equal(c->nport, 2);
    assert_string_equal(text(&w, c->port[0].ip), "0.0.0.0");
    assert_int_equal(c->port[0].port, 8080);
    assert_int_equal(c->port[0].proto, 1);
    assert_string_equal(text(&w, c->port[1].ip), "10.0.0.1");
}

static void pod_terms_know_their_namespaces(void **state)
{
    WORLD(w);
    load_fine(
        &w,
        POD("p") "spec:\n" OURS "  affinity:\n    podAffinity:\n      "
                 "requiredDuringSchedulingIgnoredDuringExecution:\n"
                 "      - {topologyKey: zone, labelSelector: {matchLabels: {app: web}}}\n"
                 "    podAntiAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n"
                 "      - {topologyKey: host, namespaces: [x, z]}\n"
                 "      - {topologyKey: host, labelSelector: {}, namespaceSelector: {}}\n"
                 "      preferredDuringSchedulingIgnoredDuringExecution:\n"
                 "      - {weight: 5, podAffinityTerm: {topologyKey: host, labelSelector: {}}}\n");
    const struct cons *c = cons(&w, "p");
    assert_int_equal(c->naff, 1);
    assert_int_equal(c->aff[0].nns, 1);
    assert_int_equal(c->aff[0].ns[0], id(&w, "default"));
    assert_int_equal(c->aff[0].sel.n, 1);
    assert_int_equal(c->nanti, 2);
    assert_int_equal(c->anti[0].nns, 2);
    assert_true(c->anti[0].sel.nothing);
    assert_false(c->anti[0].has_ns_sel);
    assert_int_equal(c->anti[1].nns, 0);
    assert_true(c->anti[1].has_ns_sel && !c->anti[1].sel.nothing && c->anti[1].sel.n == 0);
    assert_int_equal(c->npref_anti, 1);
    assert_int_equal(c->pref_anti[0].weight, 5);
}

static void spread_rows_merge_label_keys_the_pod_has(void **state)
{
    WORLD(w);
    load_fine(
        &w, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {rev: '3'}}\nspec:\n" OURS
            "  topologySpreadConstraints:\n"
            "  - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3,\n"
            "     labelSelector: {}, matchLabelKeys: [rev, other], nodeTaintsPolicy: Honor}\n"
            "  - {maxSkew: 1, topologyKey: host, whenUnsatisfiable: ScheduleAnyway,\n"
            "     matchLabelKeys: [rev], nodeAffinityPolicy: Ignore}\n");
    const struct cons *c = cons(&w, "p");
    assert_int_equal(c->nspread, 2);
    assert_true(c->spread[0].hard && c->spread[0].honor_taints && c->spread[0].honor_affinity);
    assert_int_equal(c->spread[0].max_skew, 2);
    assert_int_equal(c->spread[0].min_domains, 3);
    assert_int_equal(c->spread[0].sel.n, 1);
    assert_int_equal(c->spread[0].sel.at[0].vals[0], id(&w, "3"));
    assert_false(c->spread[1].hard || c->spread[1].honor_affinity);
    assert_true(c->spread[1].sel.nothing);
}

static void claims_and_images_are_named_in_full(void **state)
{
    WORLD(w);
    load_fine(&w,
              POD("p") "spec:\n" OURS "  initContainers: [{name: i, image: registry:5000/tool}]\n"
                       "  containers: [{name: a, image: app}, {name: b, image: 'x/app:v2'},"
                       " {name: c, image: 'x/app@sha256:00'}]\n"
                       "  volumes:\n"
                       "  - {name: d, persistentVolumeClaim: {claimName: data}}\n"
                       "  - {name: s, ephemeral: {volumeClaimTemplate: {}}}\n"
                       "  - {name: m, image: {reference: model}}\n"
                       "  - {name: e, emptyDir: {}}\n"
                       "  - {name: v, csi: {driver: d}}\n");
    static const char *const images[] = {"registry:5000/tool:latest", "app:latest", "x/app:v2",
                                         "x/app@sha256:00", "model:latest"};
    const struct cons *c = cons(&w, "p");
    assert_int_equal(c->nclaim, 2);
    assert_string_equal(text(&w, c->claim[0]), "default/data");
    assert_string_equal(text(&w, c->claim[1]), "default/p-s");
    assert_true(!c->claim_ephemeral[0] && c->claim_ephemeral[1]);
    assert_true(c->inline_csi);
    assert_int_equal(c->nimage, HK_LEN(images));
    for (uint32_t k = 0; k < HK_LEN(images); k++) {
        assert_string_equal(text(&w, c->image[k]), images[k]);
    }
    assert_int_equal(c->nimage_containers, 4);
}

/* ---- default spread ---- */

#define SERVICE(name, sel)                                                                         \
    "{apiVersion: v1, kind: Service, metadata: {name: " name "}, spec: {selector: " sel "}}\n---"  \
    "\n"
#define WEB(name, more)                                                                            \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name                                           \
    ", labels: {app: web, tier: t}, annotations: {scheduling.k8s.io/group-name: g}" more           \
    "}, spec: {schedulerName: volcano, nodeSelector: {x: a}}}\n---\n"
#define OWNED_BY(version, kind)                                                                    \
    ", ownerReferences: [{apiVersion: " version ", kind: " kind ", name: o, controller: true}]"

static void services_and_controllers_spread_their_pods_by_default(void **state)
{
    static const char replica_set[] =
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: o},"
        " spec: {selector: {matchExpressions: [{key: rev, operator: Exists}]}}}\n---\n";
    static const char controller[] = "{apiVersion: v1, kind: ReplicationController,"
                                     " metadata: {name: o}, spec: {selector: {rc: a}}}\n---\n";
    static const struct {
        const char *about, *pickers, *pod;
        uint32_t nspread, nreq;
    } cases[] = {
        {"nothing picks it", "", WEB("p", ""), 0, 0},
        {"a service", SERVICE("s", "{app: web}"), WEB("p", ""), 2, 1},
        {"a service for others", SERVICE("s", "{app: db}"), WEB("p", ""), 0, 0},
        {"a service that asks for more", SERVICE("s", "{app: web, x: z}"), WEB("p", ""), 0, 0},
        {"a service without selector", SERVICE("s", "{}"), WEB("p", ""), 0, 0},
        {"two services", SERVICE("s", "{app: web}") SERVICE("t", "{tier: t, app: web}"),
         WEB("p", ""), 2, 2},
        {"a service elsewhere",
         "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: other},"
         " spec: {selector: {app: web}}}\n---\n",
         WEB("p", ""), 0, 0},
        {"its replica set", replica_set, WEB("p", OWNED_BY("apps/v1", "ReplicaSet")), 2, 1},
        {"somebody's replica set", replica_set, WEB("p", ""), 0, 0},
        {"another group's kind", replica_set, WEB("p", OWNED_BY("v1", "ReplicaSet")), 0, 0},
        {"its replication controller", controller,
         WEB("p", OWNED_BY("v1", "ReplicationController")), 2, 1},
    };

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        for (uint32_t late = 0; late < 2; late++) {
            WORLD(w);
            load_fine(&w, late ? cases[k].pod : cases[k].pickers);
            load_fine(&w, late ? cases[k].pickers : cases[k].pod);
            const struct cons *c = cons(&w, "p");
            if (c->nspread != cases[k].nspread) {
                fail_msg("%s, %s: %u rows, want %u", cases[k].about, late ? "after" : "before",
                         c->nspread, cases[k].nspread);
            }
            assert_int_equal(c->nsel, 1);
            for (uint32_t i = 0; i < c->nspread; i++) {
                assert_true(c->spread[i].system_default && !c->spread[i].hard);
                assert_int_equal(c->spread[i].sel.n, cases[k].nreq);
                assert_int_equal(c->spread[i].max_skew, i == 0 ? 3 : 5);
            }
        }
    }
}

static void default_spread_goes_when_the_service_does(void **state)
{
    WORLD(w);
    load_fine(&w, WEB("p", "") SERVICE("s", "{app: web}") SERVICE("t", "{tier: t}"));
    assert_int_equal(cons(&w, "p")->spread[0].sel.n, 2);

    ingest_del(w.in, api_kind(API_SERVICE), HK_STR("default"), HK_STR("t"));
    load_fine(&w, "");
    assert_int_equal(cons(&w, "p")->spread[0].sel.n, 1);

    load_fine(&w, SERVICE("s", "{app: db}"));
    assert_int_equal(cons(&w, "p")->nspread, 0);
}

static void explicit_spread_is_left_alone(void **state)
{
    WORLD(w);
    load_fine(&w, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {app: web},"
                  " annotations: {scheduling.k8s.io/group-name: g}}\nspec:\n" OURS
                  "  topologySpreadConstraints: [{topologyKey: z, whenUnsatisfiable: "
                  "ScheduleAnyway}]\n---\n" SERVICE("s", "{app: web}"));
    assert_int_equal(cons(&w, "p")->nspread, 1);
    assert_false(cons(&w, "p")->spread[0].system_default);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_follow_containers_sidecars_init_and_overhead),
        TEST(a_resize_counts_the_larger_size_until_it_is_through),
        TEST(resource_names_become_dimensions_in_their_units),
        TEST(states_follow_phase_node_and_deletion),
        TEST(flags_follow_annotations_labels_gates_and_classes),
        TEST(a_role_is_an_annotation_or_else_a_label),
        TEST(pods_of_others_count_when_bound_and_finished_pods_when_in_a_job),
        TEST(a_bound_pod_without_its_podgroup_counts_in_the_queue_it_names),
        TEST(a_bound_pod_makes_a_placeholder_of_its_unknown_node),
        TEST(a_second_document_of_the_same_name_replaces_the_first),
        TEST(task_priority_is_annotation_then_spec_then_class),
        TEST(priorities_follow_classes_as_they_change),
        TEST(a_pod_that_asks_for_nothing_has_no_constraints),
        TEST(equal_constraints_share_a_row),
        TEST(node_terms_and_preferences_are_taken_over),
        TEST(terms_that_name_different_nodes_conflict),
        TEST(unknown_fields_read_as_empty),
        TEST(tolerations_keep_operator_and_effect),
        TEST(host_ports_of_containers_and_sidecars_count),
        TEST(pod_terms_know_their_namespaces),
        TEST(spread_rows_merge_label_keys_the_pod_has),
        TEST(claims_and_images_are_named_in_full),
        TEST(services_and_controllers_spread_their_pods_by_default),
        TEST(default_spread_goes_when_the_service_does),
        TEST(explicit_spread_is_left_alone),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
