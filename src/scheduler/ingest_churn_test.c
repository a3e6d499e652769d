// SPDX-License-Identifier: Apache-2.0
// Deleted objects leave nothing behind: after rounds of objects with new strings only, the string
// table is as large as before.

#include "scheduler/ingest_fixture_test.h"
#include "scheduler/model/topo.h"
#include "scheduler/model/volumes.h"

enum { ROUNDS = 20, PODS = 1000 };

/* An object in which every @ is replaced by the round's number and its own, every ' by ". */
struct pattern {
    enum api_kind_id kind;
    const char *ns, *name;
    const char *spec; /* after metadata.name */
    uint32_t every;   /* number of pods per object */
};

static const struct pattern patterns[] = {
    {API_NAMESPACE, "", "ns-@", "'labels': {'team': 'team-@'}}", 100},
    {API_PRIORITY_CLASS, "", "class-@", "}, 'value': 7", 100},
    {API_QUEUE, "", "queue-@",
     "'annotations': {'volcano.sh/hierarchy': 'root/queue-@'}}, 'spec': {'parent': 'up-@'}", 100},
    {API_NODE, "", "node-@",
     "'labels': {'zone': 'zone-@', 'kubernetes.io/hostname': 'node-@', 'only-@': 'x'}},"
     "'spec': {'taints': [{'key': 'taint', 'value': 'taint-@', 'effect': 'NoSchedule'}]},"
     "'status': {'allocatable': {'cpu': '64', 'memory': '64Gi', 'pods': '200'},"
     "'images': [{'names': ['image-@:1'], 'sizeBytes': 1000000}]}",
     50},
    {API_HYPERNODE, "", "hyper-@",
     "}, 'spec': {'tier': 1, 'tierName': 'tier-@', 'members': ["
     "{'type': 'Node', 'selector': {'exactMatch': {'name': 'node-@'}}},"
     "{'type': 'Node', 'selector': {'regexMatch': {'pattern': '^node-@$'}}},"
     "{'type': 'Node', 'selector': {'labelMatch': {'matchLabels': {'zone': 'zone-@'}}}}]}",
     250},
    {API_NODESHARD, "", "shard-@", "}, 'spec': {'nodesDesired': ['node-@']}", 250},
    {API_PDB, "ns-@", "pdb-@", "}, 'spec': {'selector': {'matchLabels': {'app': 'app-@'}}}", 100},
    {API_RESOURCE_QUOTA, "ns-@", "quota-@", "}, 'spec': {'hard': {'count/things-@': '3'}}", 100},
    {API_SERVICE, "default", "service-@", "}, 'spec': {'selector': {'service': 'service-@'}}", 50},
    {API_REPLICA_SET, "default", "set-@",
     "}, 'spec': {'selector': {'matchLabels': {'set': 'set-@'}}}", 50},
    {API_CSI_NODE, "", "node-@",
     "}, 'spec': {'drivers': [{'name': 'csi-@', 'nodeID': 'x', 'allocatable': {'count': 3}}]}", 50},
    {API_CSI_CAPACITY, "default", "capacity-@",
     "}, 'storageClassName': 'slow', 'capacity': '1Gi',"
     "'nodeTopology': {'matchLabels': {'zone': 'zone-@'}}",
     50},
    {API_VOLUME_ATTACHMENT, "", "attachment-@",
     "}, 'spec': {'attacher': 'csi', 'nodeName': 'node-@', 'source': {"
     "'persistentVolumeName': 'volume-@'}}",
     50},
    {API_PV, "", "volume-@",
     "'labels': {'volume': 'volume-@'}}, 'spec': {'capacity': {'storage': '1Gi'},"
     "'storageClassName': 'slow', 'csi': {'driver': 'csi', 'volumeHandle': 'handle-@'},"
     "'claimRef': {'namespace': 'default', 'name': 'claim-@', 'uid': 'claim-uid-@'},"
     "'nodeAffinity': {'required': {'nodeSelectorTerms': [{'matchExpressions': ["
     "{'key': 'zone', 'operator': 'In', 'values': ['zone-@']}]}]}}}",
     4},
    {API_PVC, "default", "claim-@",
     "'uid': 'claim-uid-@'}, 'spec': {'storageClassName': 'slow', 'volumeName': 'volume-@',"
     "'selector': {'matchLabels': {'volume': 'volume-@'}}}",
     2},
    {API_PODGROUP, "default", "group-@",
     "'uid': 'group-uid-@', 'annotations': {'volcano.sh/jdb-min-available': '@'}},"
     "'spec': {'minMember': 2, 'queue': 'queue-@', 'priorityClassName': 'class-@',"
     "'minTaskMember': {'role-@': 1}, 'minResources': {'cpu': '1', 'count/extra-@': '1'},"
     "'networkTopology': {'mode': 'hard', 'highestTierName': 'tier-@'},"
     "'subGroupPolicy': [{'name': 'policy-@', 'subGroupSize': 1, 'matchLabelKeys': ['index'],"
     "'labelSelector': {'matchExpressions': ["
     "{'key': 'index', 'operator': 'NotIn', 'values': ['none-@']}]}}]}",
     4},
    {API_POD, "default", "pod-@",
     "'uid': 'uid-@', 'annotations': {'scheduling.k8s.io/group-name': 'group-@',"
     "'volcano.sh/task-spec': 'role-@'},"
     "'labels': {'index': 'index-@', 'service': 'service-@', 'set': 'set-@', 'key-@': 'y'},"
     "'ownerReferences': [{'apiVersion': 'apps/v1', 'kind': 'ReplicaSet', 'name': 'set-@',"
     "'uid': 'set-uid-@', 'controller': true}]},"
     "'spec': {'schedulerName': 'volcano', 'priorityClassName': 'class-@',"
     "'nodeSelector': {'zone': 'zone-@'},"
     "'tolerations': [{'key': 'taint', 'value': 'taint-@'}],"
     "'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': {"
     "'nodeSelectorTerms': [{'matchFields': ["
     "{'key': 'metadata.name', 'operator': 'NotIn', 'values': ['bad-@']}]}]}},"
     "'podAntiAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': [{"
     "'labelSelector': {'matchLabels': {'index': 'index-@'}}, 'topologyKey': 'zone',"
     "'namespaces': ['ns-@'], 'namespaceSelector': {'matchLabels': {'team': 'team-@'}}}]}},"
     "'topologySpreadConstraints': [{'maxSkew': 1, 'topologyKey': 'zone',"
     "'whenUnsatisfiable': 'DoNotSchedule', 'labelSelector': {'matchLabels': {'set': 'set-@'}},"
     "'matchLabelKeys': ['index']}],"
     "'volumes': [{'name': 'v', 'persistentVolumeClaim': {'claimName': 'claim-@'}}],"
     "'containers': [{'name': 'c', 'image': 'image-@:1', 'resources': {'requests': {'cpu': '1'}},"
     "'ports': [{'containerPort': 1, 'hostPort': 80, 'hostIP': '10.@'}]}]}",
     1},
    {API_POD, "default", "spread-@", /* default spreading, by its service and controller */
     "'uid': 'spread-uid-@', 'annotations': {'scheduling.k8s.io/group-name': 'group-@'},"
     "'labels': {'service': 'service-@', 'set': 'set-@'},"
     "'ownerReferences': [{'apiVersion': 'apps/v1', 'kind': 'ReplicaSet', 'name': 'set-@',"
     "'uid': 'set-uid-@', 'controller': true}]},"
     "'spec': {'schedulerName': 'volcano', 'containers': []}",
     100},
    {API_POD, "ns-@", "lost-@", /* on an unknown node */
     "'uid': 'lost-uid-@', 'labels': {'app': 'app-@'}},"
     "'spec': {'schedulerName': 'volcano', 'nodeName': 'unknown-@', 'containers': []}",
     10},
};

static const char *filled(struct hk_buf *out, const char *pattern, const char *tag)
{
    for (const char *s = pattern; *s; s++) {
        if (*s == '@') {
            hk_buf_adds(out, tag);
        } else {
            hk_buf_addc(out, *s == '\'' ? '"' : *s);
        }
    }
    return out->data;
}

static void tag_of(char tag[16], uint32_t round, uint32_t number)
{
    snprintf(tag, 16, "%02u%04u", round, number);
}

static void put(struct world *w, const struct pattern *p, const char *tag)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const bool more = p->spec[0] == '\'';
    struct hk_err err = {0};
    struct json doc;

    filled(&text, "{'metadata': {'namespace': '", tag);
    filled(&text, p->ns, tag);
    filled(&text, "', 'name': '", tag);
    filled(&text, p->name, tag);
    filled(&text, more ? "', " : "'", tag);
    filled(&text, p->spec, tag);
    hk_buf_addc(&text, '}');
    if (json_parse(hk_buf_str(&text), 0, &w->text, &doc, &err) < 0 ||
        ingest_put(w->in, api_kind(p->kind), &doc, NULL, &err) < 0) {
        fail_msg("%s\n%s", text.data, err.text);
    }
    hk_arena_clear(&w->text);
}

static void del(struct world *w, const struct pattern *p, const char *tag)
{
    HK_AUTO(hk_buf_fini) struct hk_buf ns = {0}, name = {0};

    filled(&ns, p->ns, tag);
    filled(&name, p->name, tag);
    ingest_del(w->in, api_kind(p->kind), hk_buf_str(&ns), hk_buf_str(&name));
}

typedef void each_fn(struct world *w, const struct pattern *p, const char *tag);

static void each(struct world *w, uint32_t kind, uint32_t round, each_fn *f)
{
    const struct pattern *p = &patterns[kind];
    char tag[16];

    for (uint32_t i = 0; i < PODS; i += p->every) {
        tag_of(tag, round, i);
        f(w, p, tag);
    }
}

static void settle(struct world *w)
{
    ingest_settle(w->in);
    model_settle(&w->m);
    check_books(w);
}

/* Creates counters and messages for all tasks, as sessions do. */
static void ask_everything(struct world *w)
{
    model_words_age(&w->m);
    for (uint32_t i = 0; i < w->m.tasks.len; i++) {
        const task_id t = {i};
        struct reason why = {0};
        if (w->m.tasks.at[i].used) {
            topo_plan(&w->m, t);
            topo_ident(&w->m, model_task(&w->m, t)->ident);
            volumes_pre_binding(&w->m, t, &why);
        }
    }
    check_books(w);
}

/* Puts objects forwards or backwards and deletes them in another order: an object may arrive or go
 * before those it refers to. */
static void churn(struct world *w, uint32_t round)
{
    const uint32_t n = HK_LEN(patterns);

    for (uint32_t k = 0; k < n; k++) {
        each(w, round % 2 ? k : n - 1 - k, round, put);
    }
    settle(w);
    ask_everything(w);
    for (uint32_t k = 0; k < n; k += 3) {
        each(w, k, round, put); /* no change */
    }
    settle(w);
    for (uint32_t k = 0; k < n; k++) {
        each(w, (k * 7 + round) % n, round, del);
    }
    settle(w);
    model_words_age(&w->m);
    model_words_age(&w->m);
}

static size_t text_bytes(const struct hk_intern *t)
{
    size_t n = 0;

    for (uint32_t k = 1; k < t->len; k++) {
        n += t->at[k].s ? t->at[k].n + 1 : 0;
    }
    return n;
}

static void print_strings(const struct hk_intern *t, uint32_t most)
{
    for (uint32_t k = 1; k < t->len && most > 0; k++) {
        if (t->at[k].s && hk_intern_refs(t, k) != UINT32_MAX) {
            print_message("# '%s' has %u references\n", t->at[k].s, hk_intern_refs(t, k));
            most--;
        }
    }
}

static void strings_go_with_what_they_named(void **state)
{
    HK_AUTO(world_fini) struct world w;
    uint32_t live = 0, len = 0;
    size_t bytes = 0;

    _Static_assert(HK_LEN(patterns) % 7 != 0, "every pattern must get its turn");
    world_init(&w, &(struct ingest_opts){.make_queues = true});
    for (uint32_t round = 0; round < ROUNDS; round++) {
        churn(&w, round);
        if (round < 2) { /* the first rounds, one of each order, add lasting strings */
            live = w.m.str.live;
            len = w.m.str.len;
            bytes = text_bytes(&w.m.str);
        }
        if (w.m.str.live != live) {
            print_strings(&w.m.str, 40);
        }
        assert_int_equal(w.m.str.live, live);
        assert_int_equal(text_bytes(&w.m.str), bytes);
        assert_int_equal(w.m.str.len, len);
    }
    assert_in_range(live, 1, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_go_with_what_they_named),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
