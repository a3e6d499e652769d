// SPDX-License-Identifier: Apache-2.0
// ReplicaSets and the older ReplicationControllers: a number of pods from one template. Finished
// pods do not count and are left to others; surplus pods are deleted in the order of
// work_pods_rank. A large set creates its pods as they can be placed (pod_window.h).
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

static void scale_up(struct pass *t, const struct json *root, int64_t more)
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

static void scale_down(struct pass *t, const struct json *root, struct work_pods pods, int64_t less)
{
    work_pods_rank(&pods);
    for (int64_t i = 0; i < less; i++) {
        if (!work_delete_pod(t, root, &pods.at[i])) {
            return;
        }
    }
}

static void put_failure(struct pass *t, struct json *status, const struct pass_error *e)
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

static void replicaset_write_status(struct pass *t, enum api_kind_id kind, struct json *root,
                                    const struct work_pods *pods, const struct pass_error *e)
{
    const int64_t min_ready_s = json_int(json_at(root, "spec.minReadySeconds"), 0);
    struct json status = work_status(t, root);
    int64_t ready = 0, available = 0;

    for (uint32_t i = 0; i < pods->len; i++) {
        ready += pods->at[i].d->serving;
        available += work_pod_is_available(t, pods->at[i].d, min_ready_s);
    }
    json_set_int(&status, t->mem, "replicas", pods->len);
    json_set_int_or_del(&status, t->mem, "fullyLabeledReplicas", pods->len);
    json_set_int_or_del(&status, t->mem, "readyReplicas", ready);
    json_set_int_or_del(&status, t->mem, "availableReplicas", available);
    work_set_observed_generation(t, root, &status);
    put_failure(t, &status, e);
    (void)work_write_status(t, kind, root, status);
}

static void replicaset_reconcile(struct pass *t, enum api_kind_id kind)
{
    const struct pass_error *e;
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
        scale_up(t, &root, work_window_room(t, &root, &pods, want, pods.len));
    } else if (pods.len > want) {
        scale_down(t, &root, pods, pods.len - want);
    }
    /* The next pass counts the pods that this pass requested. */
    if (t->ncall == 0 || e) {
        replicaset_write_status(t, kind, &root, &pods, e);
    }
}

/* ---- the two kinds ---- */

static void rs_pod_changed(struct ctl *c, const struct mirror_change *ch)
{
    work_pod_changed(c, ch, API_REPLICA_SET);
}

static void rs_group_changed(struct ctl *c, const struct mirror_change *ch)
{
    work_group_changed(c, ch, API_REPLICA_SET);
}

static void rs_reconcile(struct ctl *c, struct pass *t)
{
    replicaset_reconcile(t, API_REPLICA_SET);
}

static const struct ctl_watch rs_watches[] = {{&mirror_replica_sets, work_changed},
                                              {&mirror_pods, rs_pod_changed},
                                              {&mirror_podgroups, rs_group_changed},
                                              {0}};

const struct ctl_type ctl_work_replicaset = {.name = "replicaset-controller",
                                             .about = "keeps so many pods of a template",
                                             .watches = rs_watches,
                                             .reconcile = rs_reconcile};

static void rc_pod_changed(struct ctl *c, const struct mirror_change *ch)
{
    work_pod_changed(c, ch, API_REPLICATION_CONTROLLER);
}

static void rc_group_changed(struct ctl *c, const struct mirror_change *ch)
{
    work_group_changed(c, ch, API_REPLICATION_CONTROLLER);
}

static void rc_reconcile(struct ctl *c, struct pass *t)
{
    replicaset_reconcile(t, API_REPLICATION_CONTROLLER);
}

static const struct ctl_watch rc_watches[] = {{&mirror_replication_controllers, work_changed},
                                              {&mirror_pods, rc_pod_changed},
                                              {&mirror_podgroups, rc_group_changed},
                                              {0}};

const struct ctl_type ctl_work_replication = {.name = "replicationcontroller-controller",
                                              .about = "keeps so many pods of a template",
                                              .watches = rc_watches,
                                              .reconcile = rc_reconcile};
