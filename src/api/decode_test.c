// SPDX-License-Identifier: Apache-2.0
// Every decoder: results for valid manifests, defaults, and the exact messages for invalid ones.
#include "api/names.h"
#include "api/node.h"
#include "api/nodeshard.h"
#include "api/pod.h"
#include "api/podgroup.h"
#include "api/policy.h"
#include "api/queue.h"
#include "api/storage.h"
#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct hk_arena arena;

static int teardown(void **state)
{
    hk_arena_fini(&arena);
    return 0;
}

static const struct json *doc(const char *yaml)
{
    struct yaml_docs docs = {0};
    struct hk_err err = {0};

    if (yaml_parse(hk_str(yaml), 0, &arena, &docs, &err) < 0) {
        fail_msg("test manifest: %s", err.text);
    }
    assert_int_equal(docs.len, 1);
    return &docs.at[0];
}

#define assert_str(actual, expected)                                                               \
    do {                                                                                           \
        const struct hk_str s_ = (actual);                                                         \
        assert_string_equal(hk_arena_strndup(&arena, s_.n > 0 ? s_.s : "", s_.n), (expected));     \
    } while (0)

#define decode(kind, yaml, ret)                                                                    \
    do {                                                                                           \
        struct hk_err err_ = {0};                                                                  \
        if (api_##kind##_decode(doc(yaml), &arena, (ret), &err_) < 0) {                            \
            fail_msg("decode: %s", err_.text);                                                     \
        }                                                                                          \
    } while (0)

/* "name=milli" pairs in order. */
static const char *resources(const struct api_resources *r)
{
    struct hk_buf out = {0};
    const char *text;

    for (uint32_t i = 0; i < r->len; i++) {
        hk_buf_addf(&out, "%s%.*s=%lld", i > 0 ? " " : "", HK_FMT(r->at[i].name),
                    (long long)quantity_milli(r->at[i].q));
    }
    text = hk_arena_strndup(&arena, out.len > 0 ? out.data : "", out.len);
    hk_buf_fini(&out);
    return text;
}

static void meta_is_read_in_full(void **state)
{
    struct api_pod p;

    decode(pod,
           "\nmetadata:\n  name: a\n  namespace: ns1\n  uid: u1\n  generateName: g-\n"
           "  resourceVersion: '17'\n  creationTimestamp: 2024-01-02T03:04:05Z\n"
           "  deletionTimestamp: 2024-01-02T03:04:06Z\n  labels: {b: '2', a: '1'}\n"
           "  annotations: {scheduling.k8s.io/group-name: pg}\n"
           "  ownerReferences:\n  - {apiVersion: v1, kind: X, name: x, uid: ux}\n"
           "  - {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j, uid: uj,"
           " controller: true}\n",
           &p);
    assert_str(p.meta.name, "a");
    assert_str(p.meta.ns, "ns1");
    assert_str(p.meta.uid, "u1");
    assert_str(p.meta.generate_name, "g-");
    assert_str(p.meta.resource_version, "17");
    assert_int_equal(p.meta.creation_ns, 1704164645LL * 1000000000);
    assert_int_equal(p.meta.deletion_ns, 1704164646LL * 1000000000);
    assert_int_equal(p.meta.labels.len, 2);
    assert_str(p.meta.labels.at[0].key, "a");
    assert_str(*api_map_get(&p.meta.labels, HK_STR("b")), "2");
    assert_null(api_map_get(&p.meta.labels, HK_STR("c")));
    assert_str(*api_map_get(&p.meta.annotations, HK_STR(API_ANN_GROUP_NAME)), "pg");
    assert_str(api_meta_controller(&p.meta)->name, "j");
    assert_int_equal(p.meta.line, 2);
    assert_non_null(p.raw);
}

static void meta_alone_is_read_from_any_kind(void **state)
{
    struct api_meta m;

    decode(meta, "{kind: Whatever, metadata: {name: w, creationTimestamp: null}}", &m);
    assert_str(m.name, "w");
    assert_int_equal(m.creation_ns, 0);
    assert_null(api_meta_controller(&m));
}

static void empty_pod_gets_the_defaults(void **state)
{
    struct api_pod p;

    decode(pod, "{spec: {}, status: null}", &p);
    assert_str(p.scheduler_name, "default-scheduler");
    assert_false(p.has_priority);
    assert_int_equal(p.preemption, API_PREEMPT_LOWER_PRIORITY);
    assert_int_equal(p.phase, API_POD_PENDING);
    assert_false(p.node_affinity.required.present);
    assert_false(p.resize_infeasible);
    assert_int_equal(p.start_ns, 0);
}

static void pod_scalars_are_read(void **state)
{
    struct api_pod p;

    decode(pod,
           "spec:\n  schedulerName: volcano\n  nodeName: n1\n  priority: -5\n"
           "  priorityClassName: low\n  preemptionPolicy: Never\n"
           "  schedulingGates: [{name: g1}, {name: g2}]\n  nodeSelector: {disk: ssd}\n"
           "  overhead: {cpu: 10m}\n  resources: {requests: {cpu: 1}, limits: {cpu: 2}}\n"
           "  resourceClaims: [{name: c, resourceClaimTemplateName: t}]\n"
           "status:\n  phase: Running\n  nominatedNodeName: n2\n  qosClass: Burstable\n"
           "  startTime: 2024-01-02T03:04:05Z\n"
           "  resourceClaimStatuses: [{name: c, resourceClaimName: c-1}]\n"
           "  conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable,"
           " message: m, lastTransitionTime: 2024-01-02T03:04:05Z}]\n",
           &p);
    assert_str(p.scheduler_name, "volcano");
    assert_str(p.node_name, "n1");
    assert_true(p.has_priority);
    assert_int_equal(p.priority, -5);
    assert_str(p.priority_class_name, "low");
    assert_int_equal(p.preemption, API_PREEMPT_NEVER);
    assert_int_equal(p.gates.len, 2);
    assert_str(p.gates.at[1], "g2");
    assert_str(*api_map_get(&p.node_selector, HK_STR("disk")), "ssd");
    assert_string_equal(resources(&p.overhead), "cpu=10");
    assert_string_equal(resources(&p.requests), "cpu=1000");
    assert_string_equal(resources(&p.limits), "cpu=2000");
    assert_str(p.claims.at[0].template_name, "t");
    assert_str(p.claim_statuses.at[0].claim_name, "c-1");
    assert_int_equal(p.phase, API_POD_RUNNING);
    assert_string_equal(api_pod_phase_name(p.phase), "Running");
    assert_str(p.nominated_node, "n2");
    assert_str(p.qos_class, "Burstable");
    assert_int_equal(p.start_ns, 1704164645LL * 1000000000);
    assert_str(api_condition_get(&p.conditions, HK_STR("PodScheduled"))->reason, "Unschedulable");
    assert_null(api_condition_get(&p.conditions, HK_STR("Ready")));
}

static void pod_containers_are_read(void **state)
{
    struct api_pod p;

    decode(pod,
           "spec:\n  containers:\n  - name: main\n    image: i\n"
           "    resources: {requests: {memory: 1Gi, cpu: 0.5},"
           " limits: {cpu: 1, nvidia.com/gpu: '2'}}\n"
           "    ports: [{containerPort: 80, hostPort: 8080},"
           " {containerPort: 53, hostPort: 53, protocol: UDP, hostIP: 10.0.0.1}]\n"
           "  initContainers: [{name: side, restartPolicy: Always}, {name: init}]\n",
           &p);
    const struct api_container *c = &p.containers.at[0];
    assert_str(c->name, "main");
    assert_str(c->image, "i");
    assert_string_equal(resources(&c->requests),
                        "cpu=500 memory=1073741824000 nvidia.com/gpu=2000");
    assert_string_equal(resources(&c->limits), "cpu=1000 nvidia.com/gpu=2000");
    assert_int_equal(quantity_value(*api_resources_get(&c->limits, HK_STR("nvidia.com/gpu"))), 2);
    assert_null(api_resources_get(&c->limits, HK_STR("memory")));
    assert_str(c->ports.at[0].host_ip, "0.0.0.0");
    assert_int_equal(c->ports.at[0].protocol, API_TCP);
    assert_int_equal(c->ports.at[0].host_port, 8080);
    assert_str(c->ports.at[1].host_ip, "10.0.0.1");
    assert_int_equal(c->ports.at[1].protocol, API_UDP);
    assert_true(p.init_containers.at[0].restart_always);
    assert_false(p.init_containers.at[1].restart_always);
}

static void pod_affinity_is_read(void **state)
{
    struct api_pod p;

    decode(pod,
           "spec:\n  affinity:\n    nodeAffinity:\n"
           "      requiredDuringSchedulingIgnoredDuringExecution:\n        nodeSelectorTerms:\n"
           "        - matchExpressions: [{key: zone, operator: In, values: [b, a]}]\n"
           "        - matchFields: [{key: metadata.name, operator: In, values: [n1]}]\n"
           "      preferredDuringSchedulingIgnoredDuringExecution:\n"
           "      - weight: 7\n"
           "        preference: {matchExpressions: [{key: gen, operator: Gt, values: ['3']}]}\n"
           "    podAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n"
           "      - {topologyKey: host, labelSelector: {matchLabels: {app: x}}}\n"
           "    podAntiAffinity:\n      preferredDuringSchedulingIgnoredDuringExecution:\n"
           "      - weight: 100\n        podAffinityTerm:\n          topologyKey: zone\n"
           "          namespaces: [q]\n          namespaceSelector: {}\n",
           &p);
    assert_true(p.node_affinity.required.present);
    assert_int_equal(p.node_affinity.required.len, 2);
    assert_str(p.node_affinity.required.at[0].exprs.at[0].values.at[0], "a");
    assert_int_equal(p.node_affinity.required.at[1].fields.len, 1);
    assert_int_equal(p.node_affinity.preferred.at[0].weight, 7);
    assert_int_equal(p.node_affinity.preferred.at[0].exprs.at[0].operand, 3);
    assert_str(p.affinity.required.at[0].topology_key, "host");
    assert_int_equal(p.affinity.required.at[0].labels.len, 1);
    assert_false(p.affinity.required.at[0].namespace_selector.present);
    const struct api_pod_term *anti = &p.anti_affinity.preferred.at[0];
    assert_int_equal(anti->weight, 100);
    assert_str(anti->namespaces.at[0], "q");
    assert_false(anti->labels.present);
    assert_true(anti->namespace_selector.present);
    assert_int_equal(anti->namespace_selector.len, 0);
}

static void pod_tolerations_and_spread_are_read(void **state)
{
    struct api_pod p;

    decode(pod,
           "spec:\n  tolerations:\n  - {key: a, value: b, effect: NoSchedule}\n"
           "  - {operator: Exists, tolerationSeconds: 0}\n"
           "  topologySpreadConstraints:\n"
           "  - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway,"
           " labelSelector: {}, minDomains: 3, nodeAffinityPolicy: Ignore,"
           " nodeTaintsPolicy: Honor, matchLabelKeys: [k]}\n"
           "  - {maxSkew: 1, topologyKey: host, whenUnsatisfiable: DoNotSchedule}\n",
           &p);
    assert_int_equal(p.tolerations.at[0].op, API_TOLERATE_EQUAL);
    assert_int_equal(p.tolerations.at[0].effect, API_EFFECT_NO_SCHEDULE);
    assert_false(p.tolerations.at[0].has_seconds);
    assert_int_equal(p.tolerations.at[1].op, API_TOLERATE_EXISTS);
    assert_int_equal(p.tolerations.at[1].effect, API_EFFECT_ANY);
    assert_true(p.tolerations.at[1].has_seconds);
    assert_int_equal(p.spread.at[0].max_skew, 2);
    assert_int_equal(p.spread.at[0].when, API_SCHEDULE_ANYWAY);
    assert_int_equal(p.spread.at[0].min_domains, 3);
    assert_true(p.spread.at[0].ignore_affinity);
    assert_true(p.spread.at[0].honor_taints);
    assert_str(p.spread.at[0].match_label_keys.at[0], "k");
    assert_true(p.spread.at[0].labels.present);
    assert_int_equal(p.spread.at[1].min_domains, 1);
    assert_false(p.spread.at[1].ignore_affinity);
    assert_false(p.spread.at[1].honor_taints);
    assert_false(p.spread.at[1].labels.present);
}

static void pod_volumes_are_read(void **state)
{
    struct api_pod p;

    decode(pod,
           "spec:\n  volumes:\n  - {name: a, persistentVolumeClaim: {claimName: c}}\n"
           "  - {name: b, ephemeral: {volumeClaimTemplate: {}}}\n"
           "  - {name: c, csi: {driver: d.io}}\n  - {name: d, emptyDir: {}}\n",
           &p);
    assert_int_equal(p.volumes.len, 4);
    assert_str(p.volumes.at[0].claim_name, "c");
    assert_str(p.volumes.at[0].type, "persistentVolumeClaim");
    assert_true(p.volumes.at[1].ephemeral);
    assert_str(p.volumes.at[2].csi_driver, "d.io");
    assert_str(p.volumes.at[3].type, "emptyDir");
    assert_false(p.volumes.at[3].ephemeral);
}

static void pod_resize_marks_are_read(void **state)
{
    static const struct {
        const char *yaml;
        bool infeasible;
    } cases[] = {
        {"{status: {resize: Infeasible}}", true},
        {"{status: {resize: Proposed}}", false},
        {"{status: {conditions: [{type: PodResizePending, status: 'True', reason: Infeasible}]}}",
         true},
        {"{status: {conditions: [{type: PodResizePending, status: 'True', reason: Deferred}]}}",
         false},
        {"{status: {conditions: [{type: PodResizePending, status: 'False', reason: Infeasible}]}}",
         false},
    };
    struct api_pod p;

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        decode(pod, cases[i].yaml, &p);
        if (p.resize_infeasible != cases[i].infeasible) {
            fail_msg("%s: expected %d, have %d", cases[i].yaml, cases[i].infeasible,
                     p.resize_infeasible);
        }
    }
    decode(pod,
           "status:\n  containerStatuses:\n  - name: a\n    allocatedResources: {cpu: 1}\n"
           "    resources: {requests: {cpu: 2}}\n",
           &p);
    assert_string_equal(resources(&p.statuses.at[0].allocated), "cpu=1000");
    assert_string_equal(resources(&p.statuses.at[0].requests), "cpu=2000");
}

static void unknown_phases_are_tolerated(void **state)
{
    struct api_pod p;
    struct api_podgroup g;
    struct api_queue q;

    decode(pod, "{status: {phase: Levitating}}", &p);
    assert_int_equal(p.phase, API_POD_UNKNOWN);
    decode(podgroup, "{status: {phase: Levitating}}", &g);
    assert_int_equal(g.phase, API_PODGROUP_UNKNOWN);
    decode(queue, "{status: {state: Levitating}}", &q);
    assert_int_equal(q.state, API_QUEUE_UNKNOWN);
}

static void node_is_read(void **state)
{
    struct api_node n;

    decode(node,
           "metadata: {name: n1}\nspec:\n  unschedulable: true\n"
           "  taints: [{key: k, value: v, effect: NoExecute}]\n"
           "status:\n  capacity: {cpu: 4, memory: 8Gi}\n  allocatable: {cpu: 3500m, pods: '110'}\n"
           "  conditions: [{type: Ready, status: 'True'}]\n"
           "  images: [{names: [a:1, b], sizeBytes: 12}]\n",
           &n);
    assert_true(n.unschedulable);
    assert_int_equal(n.taints.at[0].effect, API_EFFECT_NO_EXECUTE);
    assert_string_equal(resources(&n.allocatable), "cpu=3500 pods=110000");
    assert_string_equal(resources(&n.capacity), "cpu=4000 memory=8589934592000");
    assert_str(n.conditions.at[0].status, "True");
    assert_str(n.images.at[0].names.at[1], "b");
    assert_int_equal(n.images.at[0].size_bytes, 12);
}

static void node_without_allocatable_offers_capacity(void **state)
{
    struct api_node n;

    decode(node, "{status: {capacity: {cpu: 4}}}", &n);
    assert_string_equal(resources(&n.allocatable), "cpu=4000");
}

static void hypernode_is_read(void **state)
{
    struct api_hypernode h;

    decode(hypernode,
           "spec:\n  tier: 2\n  tierName: rack\n  members:\n"
           "  - {type: Node, selector: {exactMatch: {name: n1}}}\n"
           "  - {type: Node, selector: {regexMatch: {pattern: 'n[0-9]+'}}}\n"
           "  - {type: Node, selector: {labelMatch: {matchLabels: {a: b}}}}\n"
           "  - {type: HyperNode, selector: {exactMatch: {name: s0}}}\n  - {type: Node}\n"
           "status: {nodeCount: 9}\n",
           &h);
    assert_int_equal(h.tier, 2);
    assert_str(h.tier_name, "rack");
    assert_int_equal(h.members.len, 5);
    assert_str(h.members.at[0].exact, "n1");
    assert_str(h.members.at[1].regex, "n[0-9]+");
    assert_true(h.members.at[2].labels.present);
    assert_int_equal(h.members.at[3].type, API_MEMBER_HYPERNODE);
    assert_int_equal(h.node_count, 9);
}

static void nodeshard_is_read(void **state)
{
    struct api_nodeshard s;

    decode(nodeshard,
           "spec: {nodesDesired: [n1, n2]}\n"
           "status: {nodesInUse: [n2], nodesToAdd: [n1], nodesToRemove: []}\n",
           &s);
    assert_int_equal(s.nodes_desired.len, 2);
    assert_str(s.nodes_desired.at[1], "n2");
    assert_int_equal(s.nodes_in_use.len, 1);
    assert_str(s.nodes_in_use.at[0], "n2");
}

static void podgroup_is_read(void **state)
{
    struct api_podgroup g;

    decode(podgroup,
           "spec:\n  minMember: 3\n  minTaskMember: {worker: 2, master: 1}\n  queue: q1\n"
           "  priorityClassName: high\n  minResources: {cpu: '3'}\n"
           "  networkTopology: {mode: soft, highestTierAllowed: 0}\n"
           "  subGroupPolicy:\n  - name: worker\n    subGroupSize: 4\n    minSubGroups: 2\n"
           "    networkTopology: {highestTierName: rack}\n"
           "    labelSelector: {matchLabels: {volcano.sh/task-spec: worker}}\n"
           "    matchLabelKeys: [volcano.sh/partition-id]\n"
           "status:\n  phase: Inqueue\n  running: 1\n  failed: 2\n  succeeded: 3\n"
           "  conditions: [{type: Unschedulable, status: 'True', transitionID: t1}]\n",
           &g);
    assert_int_equal(g.min_member, 3);
    assert_str(g.min_task_member.at[0].role, "master");
    assert_int_equal(g.min_task_member.at[1].min, 2);
    assert_str(g.queue, "q1");
    assert_str(g.priority_class_name, "high");
    assert_string_equal(resources(&g.min_resources), "cpu=3000");
    assert_true(g.topology.present);
    assert_int_equal(g.topology.mode, API_TOPOLOGY_SOFT);
    assert_true(g.topology.has_highest_tier);
    assert_int_equal(g.subgroups.at[0].size, 4);
    assert_int_equal(g.subgroups.at[0].min_groups, 2);
    assert_true(g.subgroups.at[0].topology.present);
    assert_false(g.subgroups.at[0].topology.has_highest_tier);
    assert_str(g.subgroups.at[0].topology.highest_tier_name, "rack");
    assert_str(g.subgroups.at[0].match_label_keys.at[0], "volcano.sh/partition-id");
    assert_int_equal(g.phase, API_PODGROUP_INQUEUE);
    assert_string_equal(api_podgroup_phase_name(g.phase), "Inqueue");
    assert_str(g.conditions.at[0].transition_id, "t1");
    assert_int_equal(g.running + 10 * g.failed + 100 * g.succeeded, 321);
}

static void empty_podgroup_gets_the_defaults(void **state)
{
    struct api_podgroup g;

    decode(podgroup, "{spec: {subGroupPolicy: [{name: a}]}}", &g);
    assert_str(g.queue, "default");
    assert_false(g.topology.present);
    assert_false(g.min_resources.present);
    assert_int_equal(g.subgroups.at[0].size, 1);
    assert_int_equal(g.phase, API_PODGROUP_NO_PHASE);
}

static void queue_is_read(void **state)
{
    struct api_queue q;

    decode(queue,
           "spec:\n  weight: 4\n  capability: {cpu: 10}\n  reclaimable: false\n"
           "  guarantee: {resource: {cpu: 1}}\n  deserved: {cpu: 5}\n  parent: root\n"
           "  priority: 7\n  dequeueStrategy: fifo\n  type: t\n"
           "  extendClusters: [{name: c, weight: 1, capacity: {cpu: 9}}]\n"
           "  affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [g]},"
           " nodeGroupAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [h]}}\n"
           "status: {state: Closing, allocated: {cpu: 2}}\n",
           &q);
    assert_int_equal(q.weight, 4);
    assert_string_equal(resources(&q.capability), "cpu=10000");
    assert_string_equal(resources(&q.guarantee), "cpu=1000");
    assert_string_equal(resources(&q.deserved), "cpu=5000");
    assert_string_equal(resources(&q.allocated), "cpu=2000");
    assert_false(q.reclaimable);
    assert_str(q.parent, "root");
    assert_int_equal(q.priority, 7);
    assert_int_equal(q.dequeue, API_DEQUEUE_FIFO);
    assert_str(q.extend_clusters.at[0].name, "c");
    assert_str(q.group_affinity.required.at[0], "g");
    assert_str(q.group_anti_affinity.preferred.at[0], "h");
    assert_int_equal(q.state, API_QUEUE_CLOSING);
    assert_string_equal(api_queue_state_name(q.state), "Closing");
}

static void empty_queue_gets_the_defaults(void **state)
{
    struct api_queue q;

    decode(queue, "{metadata: {name: q}}", &q);
    assert_int_equal(q.weight, 1);
    assert_true(q.reclaimable);
    assert_int_equal(q.dequeue, API_DEQUEUE_TRAVERSE);
    assert_int_equal(q.state, API_QUEUE_NO_STATE);
    assert_false(q.capability.present);
}

static void policy_kinds_are_read(void **state)
{
    struct api_priority_class pc;
    struct api_namespace ns;
    struct api_resource_quota quota;
    struct api_pdb pdb;

    decode(priority_class, "{value: 1000, globalDefault: true, preemptionPolicy: Never}", &pc);
    assert_int_equal(pc.value, 1000);
    assert_true(pc.global_default);
    assert_int_equal(pc.preemption, API_PREEMPT_NEVER);

    decode(namespace, "{metadata: {name: ns1}, status: {phase: Terminating}}", &ns);
    assert_true(ns.terminating);
    decode(namespace, "{metadata: {name: ns1}, status: {phase: Active}}", &ns);
    assert_false(ns.terminating);

    decode(resource_quota,
           "{spec: {hard: {cpu: 4}, scopes: [BestEffort]}, status: {hard: {cpu: 3},"
           " used: {cpu: 1}}}",
           &quota);
    assert_string_equal(resources(&quota.spec_hard), "cpu=4000");
    assert_string_equal(resources(&quota.hard), "cpu=3000");
    assert_string_equal(resources(&quota.used), "cpu=1000");
    assert_str(quota.scopes.at[0], "BestEffort");

    decode(pdb,
           "{spec: {selector: {matchLabels: {a: b}}}, status: {disruptionsAllowed: 2,"
           " disruptedPods: {p2: 2024-01-02T03:04:05Z, p1: 2024-01-02T03:04:05Z}}}",
           &pdb);
    assert_true(pdb.selector.present);
    assert_int_equal(pdb.disruptions_allowed, 2);
    assert_str(pdb.disrupted_pods.at[0], "p1");
}

static void workloads_pick_by_their_own_selector_form(void **state)
{
    struct api_workload w;

    decode(service, "{spec: {selector: {a: b}}}", &w);
    assert_true(w.selector.present);
    assert_int_equal(w.selector.len, 1);
    decode(service, "{spec: {selector: {}}}", &w);
    assert_false(w.selector.present);
    decode(service, "{spec: {}}", &w);
    assert_false(w.selector.present);
    decode(workload, "{spec: {selector: {matchLabels: {a: b}}}}", &w);
    assert_int_equal(w.selector.len, 1);
}

static void claims_and_volumes_are_read(void **state)
{
    struct api_pvc c;
    struct api_pv v;

    decode(pvc,
           "{spec: {volumeName: v, storageClassName: '', accessModes: [ReadWriteOnce],"
           " volumeMode: Block, resources: {requests: {storage: 1Gi}}}, status: {phase: Lost}}",
           &c);
    assert_true(c.has_class);
    assert_str(c.class_name, "");
    assert_int_equal(c.mode, API_VOLUME_BLOCK);
    assert_int_equal(c.phase, API_CLAIM_LOST);
    assert_string_equal(resources(&c.requests), "storage=1073741824000");
    assert_false(c.selector.present);
    decode(pvc, "{spec: {}}", &c);
    assert_false(c.has_class);
    assert_int_equal(c.mode, API_VOLUME_FILESYSTEM);

    decode(pv,
           "{spec: {capacity: {storage: 1Gi}, storageClassName: s, claimRef: {namespace: ns1,"
           " name: c, uid: u}, csi: {driver: d, volumeHandle: h}, nodeAffinity: {required:"
           " {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}},"
           " status: {phase: Available}}",
           &v);
    assert_true(v.claim.present);
    assert_str(v.claim.name, "c");
    assert_str(v.csi_driver, "d");
    assert_str(v.csi_handle, "h");
    assert_int_equal(v.node_affinity.len, 1);
    assert_int_equal(v.phase, API_PV_AVAILABLE);
}

static void csi_kinds_are_read(void **state)
{
    struct api_storage_class sc;
    struct api_csi_node node;
    struct api_csi_driver driver;
    struct api_csi_capacity cap;
    struct api_volume_attachment va;

    decode(storage_class,
           "{provisioner: p, volumeBindingMode: WaitForFirstConsumer, allowedTopologies:"
           " [{matchLabelExpressions: [{key: zone, values: [b, a]}]}, {}]}",
           &sc);
    assert_str(sc.provisioner, "p");
    assert_int_equal(sc.mode, API_BINDING_WAIT_FOR_FIRST_CONSUMER);
    assert_true(sc.topologies.at[0].present);
    assert_str(sc.topologies.at[0].at[0].values.at[0], "a");
    assert_false(sc.topologies.at[1].present);
    decode(storage_class, "{provisioner: p}", &sc);
    assert_int_equal(sc.mode, API_BINDING_UNSET);

    decode(csi_node,
           "{spec: {drivers: [{name: d, nodeID: i, allocatable: {count: 0}, topologyKeys: [k]},"
           " {name: e}]}}",
           &node);
    assert_true(node.drivers.at[0].has_count);
    assert_int_equal(node.drivers.at[0].count, 0);
    assert_false(node.drivers.at[1].has_count);

    decode(csi_driver, "{spec: {storageCapacity: true}}", &driver);
    assert_true(driver.storage_capacity);
    assert_true(driver.attach_required);

    decode(csi_capacity, "{storageClassName: s, nodeTopology: {}, maximumVolumeSize: 5Gi}", &cap);
    assert_true(cap.node_topology.present);
    assert_false(cap.has_capacity);
    assert_true(cap.has_max_size);
    assert_int_equal(quantity_value(cap.max_size), 5LL << 30);

    decode(volume_attachment,
           "{spec: {attacher: a, nodeName: n1, source: {persistentVolumeName: v}},"
           " status: {attached: true}}",
           &va);
    assert_str(va.pv_name, "v");
    assert_true(va.attached);
}

/* Wraps the decoders in one function type, for the table. */
#define WRAP(kind, type)                                                                           \
    static int try_##kind(const struct json *d, struct hk_err *err)                                \
    {                                                                                              \
        struct type untouched;                                                                     \
        struct type x;                                                                             \
        memset(&untouched, 0x5a, sizeof(untouched));                                               \
        memset(&x, 0x5a, sizeof(x));                                                               \
        const int rc = api_##kind##_decode(d, &arena, &x, err);                                    \
        assert_memory_equal(&x, &untouched, sizeof(x));                                            \
        return rc;                                                                                 \
    }
WRAP(pod, api_pod)
WRAP(node, api_node)
WRAP(podgroup, api_podgroup)
WRAP(queue, api_queue)
WRAP(hypernode, api_hypernode)
WRAP(nodeshard, api_nodeshard)
WRAP(pvc, api_pvc)
WRAP(priority_class, api_priority_class)
WRAP(pdb, api_pdb)

static void bad_manifests_are_refused_in_these_words(void **state)
{
    static const struct {
        int (*try)(const struct json *d, struct hk_err *err);
        const char *yaml, *text;
    } cases[] = {
        {try_pod, "[]", "line 1: want object, have array"},
        {try_pod, "spec: 5", "line 1: spec: want object, have integer 5"},
        {try_pod, "metadata:\n  name: 7\n", "line 2: metadata.name: want string, have integer 7"},
        {try_pod, "metadata: {labels: {app: true}}",
         "line 1: metadata.labels.app: want string, have boolean true"},
        {try_pod, "metadata: {annotations: {volcano.sh/x: [a]}}",
         "line 1: metadata.annotations[volcano.sh/x]: want string, have array"},
        {try_pod, "metadata: {creationTimestamp: 'noon'}",
         "line 1: metadata.creationTimestamp: bad time 'noon'"},
        {try_pod, "metadata: {ownerReferences: [{controller: 'yes'}]}",
         "line 1: metadata.ownerReferences[0].controller: want boolean, have string \"yes\""},
        {try_pod,
         "spec:\n  containers:\n  - name: a\n    resources:\n      requests:\n"
         "        cpu: -1\n",
         "line 6: spec.containers[0].resources.requests.cpu: negative quantity '-1'"},
        {try_pod, "spec:\n  containers:\n  - {}\n  - resources: {limits: {nvidia.com/gpu: lots}}\n",
         "line 4: spec.containers[1].resources.limits[nvidia.com/gpu]: bad quantity 'lots'"},
        {try_pod, "spec: {overhead: {cpu: true}}",
         "line 1: spec.overhead.cpu: want quantity, have boolean"},
        {try_pod, "spec: {containers: {}}", "line 1: spec.containers: want array, have object"},
        {try_pod, "spec: {containers: [null]}",
         "line 1: spec.containers[0]: want object, have null"},
        {try_pod, "spec: {containers: [{ports: [{hostPort: 70000}]}]}",
         "line 1: spec.containers[0].ports[0].hostPort: value 70000, want 0 to 65535"},
        {try_pod, "spec: {containers: [{ports: [{protocol: ICMP}]}]}",
         "line 1: spec.containers[0].ports[0].protocol: unknown value 'ICMP', want one of TCP, "
         "UDP, SCTP"},
        {try_pod, "spec: {priority: 3000000000}",
         "line 1: spec.priority: value 3000000000, want -2147483648 to 2147483647"},
        {try_pod, "spec: {priority: 18446744073709551615}",
         "line 1: spec.priority: value 18446744073709551615, want -2147483648 to 2147483647"},
        {try_pod, "spec: {priority: 1.5}", "line 1: spec.priority: want integer, have number 1.5"},
        {try_pod, "spec: {tolerations: [{operator: Like}]}",
         "line 1: spec.tolerations[0].operator: unknown value 'Like', want one of Equal, Exists, "
         "Gt, Lt"},
        {try_pod, "spec: {tolerations: [{effect: Maybe}]}",
         "line 1: spec.tolerations[0].effect: unknown value 'Maybe', want one of NoSchedule, "
         "PreferNoSchedule, NoExecute"},
        {try_pod, "spec: {topologySpreadConstraints: [{maxSkew: 0}]}",
         "line 1: spec.topologySpreadConstraints[0].maxSkew: value 0, want 1 to 2147483647"},
        {try_pod, "spec: {topologySpreadConstraints: [{nodeTaintsPolicy: Obey}]}",
         "line 1: spec.topologySpreadConstraints[0].nodeTaintsPolicy: unknown value 'Obey', want "
         "one of Ignore, Honor"},
        {try_pod, "spec: {volumes: [{persistentVolumeClaim: {}}]}",
         "line 1: spec.volumes[0].persistentVolumeClaim.claimName: missing"},
        {try_pod,
         "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
         " {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Near}]}]}}}}",
         "line 1: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
         ".nodeSelectorTerms[0].matchExpressions[0].operator: unknown value 'Near', want one of "
         "In, NotIn, Exists, DoesNotExist, Gt, Lt"},
        {try_node, "spec: {taints: [{key: a}]}", "line 1: spec.taints[0].effect: missing"},
        {try_node, "status: {images: [{sizeBytes: -1}]}",
         "line 1: status.images[0].sizeBytes: value -1, want 0 to 9223372036854775807"},
        {try_podgroup, "spec: {minMember: -1}",
         "line 1: spec.minMember: value -1, want 0 to 2147483647"},
        {try_podgroup, "spec: {minTaskMember: {worker: many}}",
         "line 1: spec.minTaskMember.worker: want integer, have string \"many\""},
        {try_podgroup, "spec: {minTaskMember: {worker: many, master: 1, ps: 2}}",
         "line 1: spec.minTaskMember.worker: want integer, have string \"many\""},
        {try_podgroup, "spec: {networkTopology: {mode: firm}}",
         "line 1: spec.networkTopology.mode: unknown value 'firm', want one of hard, soft"},
        {try_podgroup, "spec: {subGroupPolicy: [{subGroupSize: 0}]}",
         "line 1: spec.subGroupPolicy[0].subGroupSize: value 0, want 1 to 2147483647"},
        {try_queue, "spec: {weight: 0}", "line 1: spec.weight: value 0, want 1 to 65535"},
        {try_queue, "spec: {capability: {memory: -1Gi}}",
         "line 1: spec.capability.memory: negative quantity '-1Gi'"},
        {try_queue, "spec: {dequeueStrategy: lifo}",
         "line 1: spec.dequeueStrategy: unknown value 'lifo', want one of traverse, fifo"},
        {try_hypernode, "spec: {}", "line 1: spec.tier: missing"},
        {try_nodeshard, "spec: {nodesDesired: n1}",
         "line 1: spec.nodesDesired: want array, have string \"n1\""},
        {try_hypernode, "spec: {tier: 1, members: [{type: Rack}]}",
         "line 1: spec.members[0].type: unknown value 'Rack', want one of Node, HyperNode"},
        {try_hypernode,
         "spec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: a}, labelMatch: "
         "{}}}]}",
         "line 1: spec.members[0].selector: want one of exactMatch, regexMatch, labelMatch"},
        {try_pvc, "spec: {volumeMode: Tape}",
         "line 1: spec.volumeMode: unknown value 'Tape', want one of Filesystem, Block"},
        {try_priority_class, "value: high", "line 1: value: want integer, have string \"high\""},
        {try_pdb, "spec: {selector: {matchExpressions: [{key: a, operator: In}]}}",
         "line 1: spec.selector.matchExpressions[0]: operator 'In' with 0 values"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_err err = {0};
        const int rc = cases[i].try(doc(cases[i].yaml), &err);
        if (rc != -HK_EINVAL || strcmp(err.text, cases[i].text) != 0) {
            fail_msg("%s\nexpected %d: %s\nhave     %d: %s", cases[i].yaml, -HK_EINVAL,
                     cases[i].text, rc, err.text);
        }
    }
}

static void long_bad_values_are_cut_short(void **state)
{
    struct hk_err err = {0};
    struct hk_buf yaml = {0};

    hk_buf_adds(&yaml, "spec: {overhead: {cpu: '");
    for (int i = 0; i < 3000; i++) {
        hk_buf_addc(&yaml, 'x');
    }
    hk_buf_adds(&yaml, "'}}");
    assert_int_equal(try_pod(doc(yaml.data), &err), -HK_EINVAL);
    assert_int_equal(strlen(err.text), strlen("line 1: spec.overhead.cpu: bad quantity ''") + 64);
    hk_buf_fini(&yaml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(meta_is_read_in_full, teardown),
        cmocka_unit_test_teardown(meta_alone_is_read_from_any_kind, teardown),
        cmocka_unit_test_teardown(empty_pod_gets_the_defaults, teardown),
        cmocka_unit_test_teardown(pod_scalars_are_read, teardown),
        cmocka_unit_test_teardown(pod_containers_are_read, teardown),
        cmocka_unit_test_teardown(pod_affinity_is_read, teardown),
        cmocka_unit_test_teardown(pod_tolerations_and_spread_are_read, teardown),
        cmocka_unit_test_teardown(pod_volumes_are_read, teardown),
        cmocka_unit_test_teardown(pod_resize_marks_are_read, teardown),
        cmocka_unit_test_teardown(unknown_phases_are_tolerated, teardown),
        cmocka_unit_test_teardown(node_is_read, teardown),
        cmocka_unit_test_teardown(node_without_allocatable_offers_capacity, teardown),
        cmocka_unit_test_teardown(hypernode_is_read, teardown),
        cmocka_unit_test_teardown(nodeshard_is_read, teardown),
        cmocka_unit_test_teardown(podgroup_is_read, teardown),
        cmocka_unit_test_teardown(empty_podgroup_gets_the_defaults, teardown),
        cmocka_unit_test_teardown(queue_is_read, teardown),
        cmocka_unit_test_teardown(empty_queue_gets_the_defaults, teardown),
        cmocka_unit_test_teardown(policy_kinds_are_read, teardown),
        cmocka_unit_test_teardown(workloads_pick_by_their_own_selector_form, teardown),
        cmocka_unit_test_teardown(claims_and_volumes_are_read, teardown),
        cmocka_unit_test_teardown(csi_kinds_are_read, teardown),
        cmocka_unit_test_teardown(bad_manifests_are_refused_in_these_words, teardown),
        cmocka_unit_test_teardown(long_bad_values_are_cut_short, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("api/decode", tests, NULL, NULL);
}
