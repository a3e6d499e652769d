// SPDX-License-Identifier: Apache-2.0
// Pods that no other controller removes:
//
//   bound to a node that does not exist       removed after a quarantine
//   Terminating on a node that is not Ready
//   and has the taint out-of-service          removed at once: an administrator says that it is off
//   Terminating and never bound               removed at once
//   finished, beyond the number to be kept    the oldest are deleted
//
// The removal has no grace period, since no node is left to confirm the end of the processes.
// Before it, the pod gets the condition DisruptionTarget, and the phase Failed if a batch/v1 Job
// must count it. (Kubernetes sets every such pod to Failed; a Volcano Job of one pod would then
// fail instead of getting another pod.) Finished pods of a Volcano Job that is not finished are
// kept, as the job would run them again.
//
// A pod's key is its namespace and name; the key of all finished pods has no namespace.
#include "api/names.h"
#include "controllers/keymem.h"
#include "controllers/kinds.h"
#include "controllers/pass.h"
#include "controllers/table.h"

#include <stdlib.h>

#define SECOND_NS ((int64_t)1000000000)
#define QUARANTINE_NS (40 * SECOND_NS)
#define FINISHED_MAX 12500
#define PERIOD_NS (20 * SECOND_NS) /* between two checks of finished pods, or of a pod that stays */
#define FINISHED_KEY "finished"

static const struct hk_str none = {"", 0};

enum podgc_reason { PODGC_NONE, PODGC_NODE_GONE, PODGC_OUT_OF_SERVICE, PODGC_UNBOUND };

struct podgc_pod {
    int64_t since_ns;   /* monotonic: without its node since; 0: not seen */
    int64_t removed_ns; /* monotonic: removal requested; 0: not yet */
    uint64_t uid;       /* hash; another pod of that name starts from zero */
};

struct podgc {
    struct keymem pods;
    int64_t nfinished;
    int64_t finished_ns; /* monotonic: next check of finished pods */
};

static int64_t podgc_quarantine_ns(const struct ctl *c)
{
    const int64_t ns = ctl_conf(c)->pod_gc_quarantine_ns;

    return ns > 0 ? ns : QUARANTINE_NS;
}

static int64_t podgc_finished_max(const struct ctl *c)
{
    const int64_t max = ctl_conf(c)->finished_pods_max;

    return max == 0 ? FINISHED_MAX : max < 0 ? INT64_MAX : max;
}

/* Why to remove the pod. */
static enum podgc_reason podgc_check(struct ctl *c, const struct pod_digest *d)
{
    const struct mirror *nodes = ctl_mirror(c, API_NODE);
    const struct node_digest *node;
    uint32_t row;

    if (!d) {
        return PODGC_NONE;
    }
    if (!d->node[0]) {
        return d->terminating ? PODGC_UNBOUND : PODGC_NONE;
    }
    row = mirror_find(nodes, none, hk_str(d->node));
    if (row == HK_NONE) {
        return PODGC_NODE_GONE;
    }
    node = mirror_digest(nodes, row);
    return d->terminating && node->out_of_service && !node->ready ? PODGC_OUT_OF_SERVICE
                                                                  : PODGC_NONE;
}

/* ---- which keys a change concerns ---- */

static bool podgc_is_finished(const struct pod_digest *d)
{
    return d && pod_has_ended(d) && !d->terminating;
}

static void podgc_pod_changed(struct ctl *c, const struct mirror_change *ch)
{
    struct podgc *g = c->state;
    const struct hk_str ns = mirror_ns(ch->mirror, ch->row),
                        name = mirror_name(ch->mirror, ch->row);

    g->nfinished += podgc_is_finished(ch->now) - podgc_is_finished(ch->old);
    if (g->nfinished > podgc_finished_max(c)) {
        ctl_add(c, none, HK_STR(FINISHED_KEY));
    }
    if (podgc_check(c, ch->now) != PODGC_NONE || keymem_find(&g->pods, ns, name)) {
        ctl_add(c, ns, name);
    }
}

static void podgc_node_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct node_digest *old = ch->old, *now = ch->now;
    const struct mirror *pods = ctl_mirror(c, API_POD);
    const struct hk_str node = mirror_name(ch->mirror, ch->row);

    if (old && now && old->ready == now->ready && old->out_of_service == now->out_of_service) {
        return;
    }
    for (uint32_t r = mirror_first(pods, PODS_BY_NODE, node); r != HK_NONE;
         r = mirror_next(pods, PODS_BY_NODE, r)) {
        ctl_add(c, mirror_ns(pods, r), mirror_name(pods, r));
    }
}

/* ---- one pod ---- */

static void podgc_mark(struct pass *t, const struct pod_digest *d, struct hk_str uid)
{
    struct json body =
        kinds_pod_patch(t->mem, uid,
                        &(struct kinds_condition){"DisruptionTarget", "True", "DeletionByPodGC",
                                                  "PodGC: node no longer exists"},
                        t->now_ns);

    if (d->tracked) {
        json_set_str_copy(json_need(&body, t->mem, "status", JSON_OBJECT), t->mem, "phase",
                          HK_STR("Failed"));
    }
    pass_patch(t, &(struct pass_patch){.kind = api_kind(API_POD),
                                       .ns = t->ns,
                                       .name = t->name,
                                       .subresource = "status",
                                       .type = PORT_PATCH_STRATEGIC,
                                       .body = &body});
}

/* Finalizers may keep the pod for long, so the delete is repeated only rarely. */
static void podgc_remove(struct ctl *c, struct pass *t, struct podgc_pod *p,
                         const struct pod_digest *d, struct hk_str uid)
{
    const bool counted = !d->tracked || pod_has_ended(d);

    if (d->node[0] && !pod_has_ended(d) && (!d->evicted || !counted)) {
        podgc_mark(t, d, uid);
        return;
    }
    if (p->removed_ns == 0 || ctl_mono(c) - p->removed_ns >= PERIOD_NS) {
        p->removed_ns = ctl_mono(c);
        pass_delete_now(t, api_kind(API_POD), t->ns, t->name, uid);
    }
    pass_again_at(t, t->now_ns + PERIOD_NS);
}

static struct podgc_pod *podgc_memory_of(struct ctl *c, struct pass *t, struct hk_str uid)
{
    struct podgc *g = c->state;
    struct podgc_pod *p = keymem_get(&g->pods, t->ns, t->name);
    const uint64_t hash = hk_hash(uid.s, uid.n, 0);

    if (p->since_ns == 0 || p->uid != hash) {
        *p = (struct podgc_pod){.since_ns = ctl_mono(c), .uid = hash};
    }
    return p;
}

static void podgc_reconcile_pod(struct ctl *c, struct pass *t)
{
    const struct mirror *pods = ctl_mirror(c, API_POD);
    const uint32_t row = mirror_find(pods, t->ns, t->name);
    const struct pod_digest *d = row == HK_NONE ? NULL : mirror_digest(pods, row);
    const enum podgc_reason reason = podgc_check(c, d);
    struct podgc *g = c->state;
    struct podgc_pod *p;
    int64_t left_ns = 0;

    if (reason == PODGC_NONE) {
        keymem_forget(&g->pods, t->ns, t->name);
        return;
    }
    p = podgc_memory_of(c, t, mirror_uid(pods, row));
    if (t->nerror > 0) {
        p->removed_ns = 0; /* the requested write has failed */
    }
    if (reason == PODGC_NODE_GONE) {
        left_ns = p->since_ns + podgc_quarantine_ns(c) - ctl_mono(c);
    }
    if (left_ns > 0) {
        pass_again_at(t, t->now_ns + left_ns);
        return;
    }
    podgc_remove(c, t, p, d, mirror_uid(pods, row));
}

/* ---- finished pods ---- */

struct podgc_finished {
    int64_t created_ns;
    uint32_t row;
};

static int podgc_older_first(const void *a, const void *b)
{
    const struct podgc_finished *x = a, *y = b;

    if (x->created_ns != y->created_ns) {
        return x->created_ns < y->created_ns ? -1 : 1;
    }
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The pod's Volcano Job is not finished and would run the pod again. */
static bool podgc_is_needed(struct ctl *c, const struct mirror *pods, uint32_t row)
{
    const struct pod_digest *d = mirror_digest(pods, row);
    const struct mirror *jobs = ctl_mirror(c, API_JOB);
    const uint32_t job =
        d->of_job ? mirror_find(jobs, mirror_ns(pods, row), hk_str(d->job)) : HK_NONE;

    return job != HK_NONE &&
           !api_job_is_finished(((const struct job_digest *)mirror_digest(jobs, job))->phase);
}

static void podgc_reconcile_finished(struct ctl *c, struct pass *t)
{
    const struct mirror *pods = ctl_mirror(c, API_POD);
    struct podgc *g = c->state;
    HK_VEC(struct podgc_finished) old = {0};
    int64_t excess = g->nfinished - podgc_finished_max(c);

    if (excess <= 0) {
        return;
    }
    if (ctl_mono(c) < g->finished_ns) {
        pass_again_at(t, t->now_ns + (g->finished_ns - ctl_mono(c)));
        return;
    }
    for (uint32_t r = mirror_scan(pods, HK_NONE); r != HK_NONE; r = mirror_scan(pods, r)) {
        const struct pod_digest *d = mirror_digest(pods, r);

        if (podgc_is_finished(d) && !podgc_is_needed(c, pods, r)) {
            hk_vec_push(&old, ((struct podgc_finished){d->created_ns, r}));
        }
    }
    if (old.len > 0) {
        qsort(old.at, old.len, sizeof(*old.at), podgc_older_first);
    }
    for (uint32_t i = 0; i < old.len && excess > 0; i++, excess--) {
        const uint32_t r = old.at[i].row;

        if (!pass_delete(t, api_kind(API_POD), mirror_ns(pods, r), mirror_name(pods, r),
                         mirror_uid(pods, r), PORT_PROPAGATE_DEFAULT)) {
            break; /* the next pass continues */
        }
    }
    hk_vec_fini(&old);
    if (!t->full) {
        g->finished_ns = ctl_mono(c) + PERIOD_NS;
    }
}

/* ---- one pass ---- */

static void podgc_reconcile(struct ctl *c, struct pass *t)
{
    if (t->ns.n > 0) {
        podgc_reconcile_pod(c, t);
    } else {
        podgc_reconcile_finished(c, t);
    }
}

static void podgc_open(struct ctl *c)
{
    keymem_init(&((struct podgc *)c->state)->pods, c, sizeof(struct podgc_pod), NULL);
}

static void podgc_close(struct ctl *c)
{
    keymem_fini(&((struct podgc *)c->state)->pods);
}

static const struct ctl_watch watches[] = {{&mirror_pods, podgc_pod_changed},
                                           {&mirror_nodes, podgc_node_changed},
                                           {&mirror_jobs, NULL},
                                           {0}};

const struct ctl_type ctl_node_podgc = {
    .name = "pod-garbage-collector-controller",
    .about = "removes pods whose node is gone, and the oldest finished ones",
    .watches = watches,
    .state_size = sizeof(struct podgc),
    .open = podgc_open,
    .close = podgc_close,
    .reconcile = podgc_reconcile,
};
