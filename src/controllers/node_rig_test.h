// SPDX-License-Identifier: Apache-2.0
// Nodes, leases and pods on them, for the tests of the controllers that look after nodes, and the
// set-up of these: one rig per test, with two nodes that are ready and no manager yet.
#pragma once

#include "controllers/rig_test.h"
#include "controllers/table.h"

static inline void node_rig_condition(struct rig *r, const char *node, const char *type,
                                      const char *status)
{
    char yaml[300];

    snprintf(yaml, sizeof(yaml),
             "status: {conditions: [{type: %s, status: '%s', lastHeartbeatTime: "
             "'2026-01-02T10:00:00Z', lastTransitionTime: '2026-01-02T10:00:00Z'}]}",
             type, status);
    rig_patch(r, API_NODE, node, yaml);
}

/* A node that is ready. */
static inline void node_rig_node(struct rig *r, const char *name)
{
    char yaml[200];

    snprintf(yaml, sizeof(yaml), "{apiVersion: v1, kind: Node, metadata: {name: %s}}", name);
    rig_put(r, yaml);
    node_rig_condition(r, name, "Ready", "True");
}

static struct rig rig;

static inline int node_rig_setup(const struct ctl_type *const *types, uint32_t ntype)
{
    rig_init(&rig, types, ntype);
    node_rig_node(&rig, "n1");
    node_rig_node(&rig, "n2");
    return 0;
}

static inline int node_rig_teardown(void **state)
{
    rig_fini(&rig);
    return 0;
}

/* The node renews its lease; its time has no meaning, but must differ from the last one. */
static inline void node_rig_renew(struct rig *r, const char *node)
{
    static unsigned n;
    char yaml[300];

    snprintf(
        yaml, sizeof(yaml),
        "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s, namespace: "
        "kube-node-lease}, spec: {holderIdentity: %s, renewTime: '1999-01-01T00:00:00.%06uZ'}}",
        node, node, n++ % 1000000);
    rig_put(r, yaml);
}

/* A pod that runs on the node; further fields of its spec, each followed by a comma. */
static inline void node_rig_pod(struct rig *r, const char *name, const char *node, const char *more)
{
    char yaml[800];

    snprintf(
        yaml, sizeof(yaml),
        "{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: d}, spec: {%s nodeName: "
        "'%s', containers: [{name: main}]}, status: {phase: Running, conditions: [{type: Ready, "
        "status: 'True'}]}}",
        name, more, node);
    rig_put(r, yaml);
}

/* Time passes; the node n2 renews its lease meanwhile. */
static inline void node_rig_pass_with_n2(int64_t s)
{
    for (int64_t i = 0; i < s; i++) {
        if (i % 10 == 0) {
            node_rig_renew(&rig, "n2");
        }
        rig_pass(&rig, 1);
    }
}

/* For a pod's spec: it tolerates an unreachable node for that many seconds. */
#define NODE_RIG_TOLERATES(s)                                                                      \
    "tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, "    \
    "tolerationSeconds: " s "}],"

/* The value at a path of each condition of that type. */
static inline const struct json *node_rig_find(const struct json *root, const char *type)
{
    const struct json *list = json_at(root, "status.conditions");

    for (uint32_t i = 0; json_item(list, i); i++) {
        if (hk_str_is(json_str(json_get(json_item(list, i), "type"), HK_STR("")), type)) {
            return json_item(list, i);
        }
    }
    return NULL;
}

static inline void node_rig_expect_condition(struct rig *r, enum api_kind_id kind, const char *name,
                                             const char *type, const char *status,
                                             const char *reason)
{
    const struct json *c = node_rig_find(rig_get(r, kind, name), type);
    HK_AUTO(hk_buf_fini) struct hk_buf have = {0}, want = {0};

    hk_buf_addf(&have, "%s %s %.*s %.*s", name, type,
                HK_FMT(json_str(json_get(c, "status"), HK_STR("none"))),
                HK_FMT(json_str(json_get(c, "reason"), HK_STR(""))));
    hk_buf_addf(&want, "%s %s %s %s", name, type, status, reason);
    assert_string_equal(have.data, want.data);
}

/* "key:effect" of its taints, one blank apart. */
static inline void node_rig_taints(struct rig *r, const char *node, struct hk_buf *out)
{
    const struct json *list = json_at(rig_get(r, API_NODE, node), "spec.taints");

    for (uint32_t i = 0; json_item(list, i); i++) {
        struct hk_str key = json_str(json_get(json_item(list, i), "key"), HK_STR(""));
        const char *slash = memchr(key.s, '/', key.n);

        if (slash) {
            key = (struct hk_str){slash + 1, key.n - (size_t)(slash + 1 - key.s)};
        }
        hk_buf_addf(out, "%s%.*s:%.*s", out->len > 0 ? " " : "", HK_FMT(key),
                    HK_FMT(json_str(json_get(json_item(list, i), "effect"), HK_STR(""))));
    }
}

static inline void node_rig_expect_taints(struct rig *r, const char *node, const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf have = {0};

    hk_buf_adds(&have, "");
    node_rig_taints(r, node, &have);
    assert_string_equal(have.data ? have.data : "", want);
}

static inline bool node_rig_is_terminating(struct rig *r, const char *pod)
{
    return json_at(rig_get(r, API_POD, pod), "metadata.deletionTimestamp") != NULL;
}
