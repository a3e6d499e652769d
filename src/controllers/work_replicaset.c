// SPDX-License-Identifier: Apache-2.0
// ReplicaSets, and ReplicationControllers, which they came after: so many pods of one template.
// Pods that ended do not count and are left to others; of too many those go first that are missed
// least.
#include "controllers/table.h"
#include "controllers/work_priv.h"

static struct work_pods active_only(struct work_pods pods)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < pods.len; i++) {
        if (work_pod_is_active(pods.at[i].d)) {
            pods.at[n++] = pods.at[i];
        }
    }
    pods.len = n;
    return pods;
}

static void scale_up(struct turn *t, const struct json *root, int64_t more)
{
    const struct json *template = json_at(root, "spec.template");
    uint32_t n = 0;

    more = HK_MIN(more, work_create_limit(t));
    for (int64_t i = 0; i < more; i++) {
        const struct hk_str name = work_fresh_name(t, root, t->name, &n);
        const struct json pod = work_pod(t, root, template, name);

        if (!work_create_pod(t, root, &pod)) {
            return;
        }
    }
}

static void scale_down(struct turn *t, const struct json *root, struct work_pods pods, int64_t less)
{
    work_pods_rank(&pods);
    for (int64_t i = 0; i < less; i++) {
        if (!work_delete_pod(t, root, &pods.at[i])) {
            return;
        }
    }
}

static void put_failure(struct turn *t, struct json *status, const struct turn_error *e)
{
    if (e) {
        work_set_condition(t, status,
                           &(struct work_condition){.type = "ReplicaFailure",
                                                    .status = "True",
                                                    .reason = "FailedCreate",
                                                    .message = hk_str(e->text)});
    } else {
        work_drop_condition(t, status, "ReplicaFailure");
    }
}

static void write_status(struct turn *t, enum api_kind_id kind, struct json *root,
                         const struct work_pods *pods, const struct turn_error *e)
{
    const int64_t min_ready_s = json_int(json_at(root, "spec.minReadySeconds"), 0);
    struct json status = work_status(t, root);
    int64_t ready = 0, available = 0;

    for (uint32_t i = 0; i < pods->len; i++) {
        ready += pods->at[i].d->serving;
        available += work_pod_is_available(t, pods->at[i].d, min_ready_s);
    }
    json_put(&status, t->mem, HK_STR("replicas"), json_make_int(pods->len));
    work_put_int(&status, t->mem, "fullyLabeledReplicas", pods->len);
    work_put_int(&status, t->mem, "readyReplicas", ready);
    work_put_int(&status, t->mem, "availableReplicas", available);
    work_put_observed(t, root, &status);
    put_failure(t, &status, e);
    (void)work_write_status(t, kind, root, status);
}

static void reconcile(struct turn *t, enum api_kind_id kind)
{
    const struct turn_error *e;
    struct work_pods pods;
    struct json root;
    int64_t want;

    if (!work_find(t, kind, &root) || work_is_going(&root)) {
        return;
    }
    want = json_int(json_at(&root, "spec.replicas"), 1);
    e = work_report(t, &root);
    pods = active_only(work_pods(t, &root));
    if (pods.len < want) {
        scale_up(t, &root, want - pods.len);
    } else if (pods.len > want) {
        scale_down(t, &root, pods, pods.len - want);
    }
    /* What was asked for is counted when it is there, in the pass after this. */
    if (t->ncall == 0 || e) {
        write_status(t, kind, &root, &pods, e);
    }
}

/* ---- the two kinds ---- */

static void rs_pod_changed(struct ctl *c, const struct mirror_change *ch)
{
    work_pod_changed(c, ch, API_REPLICA_SET);
}

static void rs_reconcile(struct ctl *c, struct turn *t)
{
    reconcile(t, API_REPLICA_SET);
}

static const struct ctl_watch rs_watches[] = {
    {&mirror_replica_sets, work_changed}, {&mirror_pods, rs_pod_changed}, {0}};

const struct ctl_type ctl_replicaset = {.name = "replicaset-controller",
                                        .about = "keeps so many pods of a template",
                                        .watches = rs_watches,
                                        .reconcile = rs_reconcile};

static void rc_pod_changed(struct ctl *c, const struct mirror_change *ch)
{
    work_pod_changed(c, ch, API_REPLICATION_CONTROLLER);
}

static void rc_reconcile(struct ctl *c, struct turn *t)
{
    reconcile(t, API_REPLICATION_CONTROLLER);
}

static const struct ctl_watch rc_watches[] = {
    {&mirror_replication_controllers, work_changed}, {&mirror_pods, rc_pod_changed}, {0}};

const struct ctl_type ctl_replication = {.name = "replicationcontroller-controller",
                                         .about = "keeps so many pods of a template",
                                         .watches = rc_watches,
                                         .reconcile = rc_reconcile};
