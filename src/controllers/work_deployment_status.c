// SPDX-License-Identifier: Apache-2.0
// The status of a deployment: sums over its ReplicaSets, whether enough pods are available, and
// whether the rollout progresses. `kubectl rollout status` reads these fields.
#include "controllers/work_deployment_priv.h"

static const struct hk_str none = {"", 0};

struct totals {
    int64_t wanted, there, updated, ready, available;
};

static struct totals sum(const struct rollout *r)
{
    struct totals n = {.updated = r->fresh ? r->fresh->there : 0};

    for (uint32_t i = 0; i < r->nset; i++) {
        n.wanted += r->sets[i].replicas;
        n.there += r->sets[i].there;
        n.ready += r->sets[i].ready;
        n.available += r->sets[i].available;
    }
    return n;
}

static struct totals told(const struct json *status)
{
    return (struct totals){.there = json_int(json_get(status, "replicas"), 0),
                           .updated = json_int(json_get(status, "updatedReplicas"), 0),
                           .ready = json_int(json_get(status, "readyReplicas"), 0),
                           .available = json_int(json_get(status, "availableReplicas"), 0)};
}

static bool is_complete(const struct rollout *r, struct totals n)
{
    return n.updated == r->replicas && n.there == r->replicas && n.available == r->replicas;
}

bool rollout_is_complete(const struct rollout *r)
{
    return is_complete(r, told(json_get(r->root, "status")));
}

/* ---- conditions ---- */

static void deployment_status_set_condition(struct rollout *r, struct json *status,
                                            const char *type, const char *value, const char *reason,
                                            const char *message)
{
    work_set_condition(r->t, status,
                       &(struct work_condition){.type = type,
                                                .status = value,
                                                .reason = reason,
                                                .message = hk_str(message),
                                                .stamp = "lastUpdateTime"});
}

static void put_available(struct rollout *r, struct json *status, struct totals n)
{
    if (n.available >= r->replicas - r->max_unavailable) {
        deployment_status_set_condition(r, status, "Available", "True", "MinimumReplicasAvailable",
                                        "Deployment has minimum availability.");
    } else {
        deployment_status_set_condition(r, status, "Available", "False",
                                        "MinimumReplicasUnavailable",
                                        "Deployment does not have minimum availability.");
    }
}

static bool has_moved(struct totals old, struct totals now)
{
    return now.updated > old.updated || now.there - now.updated < old.there - old.updated ||
           now.ready > old.ready || now.available > old.available;
}

static struct hk_str deployment_status_reason(const struct json *cond)
{
    return json_str(json_get(cond, "reason"), none);
}

static void put_progress(struct rollout *r, struct json *status, const char *value,
                         const char *reason, const char *format)
{
    char *message = hk_arena_printf(r->t->mem, format, HK_FMT(r->fresh->name));

    deployment_status_set_condition(r, status, "Progressing", value, reason, message);
}

/* Updates the time even if the message stays: the deadline counts from the last progress. */
static void note_move(struct rollout *r, struct json *status)
{
    struct json *cond;

    put_progress(r, status, "True", "ReplicaSetUpdated", "ReplicaSet \"%.*s\" is progressing.");
    cond = (struct json *)work_condition(status, "Progressing");
    json_set_time(cond, r->t->mem, "lastUpdateTime", r->t->now_ns);
}

static void check_deadline(struct rollout *r, struct json *status, int64_t deadline_s)
{
    const struct json *cond = work_condition(status, "Progressing");
    const int64_t end_ns =
        work_time_of(json_get(cond, "lastUpdateTime")) + hk_seconds_ns(deadline_s);

    if (hk_str_is(deployment_status_reason(cond), "ProgressDeadlineExceeded")) {
        return;
    }
    if (r->t->now_ns >= end_ns) {
        put_progress(r, status, "False", "ProgressDeadlineExceeded",
                     "ReplicaSet \"%.*s\" has timed out progressing.");
    } else {
        pass_again_at(r->t, end_ns);
    }
}

/* True when the condition is missing or is about another ReplicaSet. */
static bool is_begun(const struct rollout *r, const struct json *cond)
{
    char *quoted = hk_arena_printf(r->t->mem, "\"%.*s\"", HK_FMT(r->fresh->name));

    return !cond || !hk_str_contains(json_str(json_get(cond, "message"), none), quoted);
}

static void put_progressing(struct rollout *r, struct json *status, struct totals now)
{
    const struct totals old = told(json_get(r->root, "status"));
    const struct json *cond = work_condition(status, "Progressing");
    const int64_t deadline_s = json_int(json_at(r->root, "spec.progressDeadlineSeconds"), 600);

    if (deadline_s == INT32_MAX) { /* means no deadline */
        work_drop_condition(r->t, status, "Progressing");
        return;
    }
    if (r->paused) {
        deployment_status_set_condition(r, status, "Progressing", "Unknown", "DeploymentPaused",
                                        "Deployment is paused");
        return;
    }
    if (!r->fresh) {
        return;
    }
    if (is_complete(r, now)) {
        put_progress(r, status, "True", "NewReplicaSetAvailable",
                     "ReplicaSet \"%.*s\" has successfully progressed.");
    } else if (is_begun(r, cond)) {
        const bool again = kinds_annotation(&r->fresh->root, ANN_HISTORY) != NULL;

        put_progress(r, status, "True", again ? "FoundNewReplicaSet" : "NewReplicaSetCreated",
                     again ? "Found new replica set \"%.*s\"" : "Created new replica set \"%.*s\"");
        check_deadline(r, status, deadline_s);
    } else if (hk_str_is(deployment_status_reason(cond), "NewReplicaSetAvailable") &&
               now.there == now.updated) {
        return; /* rollout finished; pods that fail or are added later do not change that */
    } else if (has_moved(old, now)) {
        note_move(r, status);
        check_deadline(r, status, deadline_s);
    } else {
        check_deadline(r, status, deadline_s);
    }
}

static void put_failure(struct rollout *r, struct json *status)
{
    const struct json *cond =
        r->fresh ? work_condition(json_get(&r->fresh->root, "status"), "ReplicaFailure") : NULL;

    for (uint32_t i = 0; i < r->nset && !cond; i++) {
        cond = work_condition(json_get(&r->sets[i].root, "status"), "ReplicaFailure");
    }
    if (!cond) {
        work_drop_condition(r->t, status, "ReplicaFailure");
        return;
    }
    deployment_status_set_condition(
        r, status, "ReplicaFailure", "True",
        hk_arena_str(r->t->mem, deployment_status_reason(cond)).s,
        hk_arena_str(r->t->mem, json_str(json_get(cond, "message"), none)).s);
}

bool rollout_write_status(struct rollout *r)
{
    struct hk_arena *a = r->t->mem;
    struct json status = work_status(r->t, r->root);
    const struct totals n = sum(r);

    work_set_observed_generation(r->t, r->root, &status);
    json_set_int_or_del(&status, a, "replicas", n.there);
    json_set_int_or_del(&status, a, "updatedReplicas", n.updated);
    json_set_int_or_del(&status, a, "readyReplicas", n.ready);
    json_set_int_or_del(&status, a, "availableReplicas", n.available);
    json_set_int_or_del(&status, a, "unavailableReplicas", HK_MAX(n.wanted - n.available, 0));
    put_available(r, &status, n);
    put_progressing(r, &status, n);
    put_failure(r, &status);
    return work_write_status(r->t, API_DEPLOYMENT, r->root, status);
}
