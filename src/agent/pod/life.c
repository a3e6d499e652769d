// SPDX-License-Identifier: Apache-2.0
// The life of a pod on its node. Everything is level-triggered: events only set fields of the pod,
// and pod_step looks at the whole state and does what is possible now.
//
//   LIVE --containers ended for good, init failed, deadline, deletion--> STOPPING
//   STOPPING --no process is left--> ENDED --final status written--> the runtime is cleaned, and
//                                            the pod deleted if the API marked it for deletion
//
// A LIVE pod is prepared first: the agent reads its ConfigMaps and Secrets and fills its volumes.
// It reads missing ones again with a growing delay, and refreshes old ones. Then the containers
// start (container.c): init containers one after the other, then the others together.
#include "agent/pod/life.h"

#include "agent/pod/container.h"
#include "agent/pod/ephemeral.h"
#include "agent/pod/fit.h"
#include "agent/pod/hosts.h"
#include "agent/pod/image.h"
#include "agent/pod/message.h"
#include "agent/pod/source.h"
#include "agent/pod/start.h"
#include "agent/pod/status.h"
#include "agent/pod/volume.h"
#include "agent/pod/volume_dir.h"
#include "base/log.h"
#include "codec/timefmt.h"

#define REMOVE_AGAIN_NS (10 * SECOND_NS)
/* Wait after the runtime was asked to end a pod. */
#define VANISH_WAIT_NS (10 * SECOND_NS)

/* ---- containers ---- */

static bool mains_ended(const struct pod *p)
{
    for (uint32_t i = p->ninit; i < p->ncontainer; i++) {
        if (p->containers[i].state != CONTAINER_ENDED) {
            return false;
        }
    }
    return true;
}

static bool any_runs(const struct pod *p)
{
    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        if (pod_container_at(p, i)->state == CONTAINER_RUNNING) {
            return true;
        }
    }
    return false;
}

static bool mains_run(const struct pod *p)
{
    for (uint32_t i = p->ninit; i < p->ncontainer; i++) {
        if (p->containers[i].state == CONTAINER_RUNNING) {
            return true;
        }
    }
    return false;
}

/* ---- stopping ---- */

static void stop_pod(struct pod *p, int64_t stop_ns)
{
    if (p->stage == POD_LIVE) {
        p->stage = POD_STOPPING;
        p->stop_ns = stop_ns;
    } else {
        p->stop_ns = HK_MIN(p->stop_ns, stop_ns);
    }
}

void pod_evict(struct pod *p, const char *message, int64_t now_ns)
{
    hk_free(p->disk.message);
    p->disk.message = hk_strdup(message);
    p->reason = "Evicted";
    p->message = p->disk.message;
    pod_note(p, true, p->reason, p->message);
    stop_pod(p, now_ns + HK_MIN(pod_grace_ns(p), SECOND_NS));
    pod_touch(p);
}

/* Stops sidecars after the containers they serve. */
static void step_stopping(struct pod *p, int64_t now_ns)
{
    const bool mains = mains_run(p);

    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        struct container *c = pod_container_at(p, i);

        c->kill_ns = p->stop_ns;
        if (!c->sidecar || !mains || p->stop_ns <= now_ns) {
            container_stop_on(c, now_ns);
        }
    }
    if (mains && p->stop_ns > now_ns) {
        pod_wake_at(p, p->stop_ns);
    }
    if (!any_runs(p)) {
        p->stage = POD_ENDED;
        pod_fit_release(p);
        for (uint32_t i = 0; i < p->refs.len; i++) {
            source_drop(p, &p->refs.at[i]);
        }
    }
}

/* ---- preparing ---- */

static bool refs_answered(const struct pod *p)
{
    for (uint32_t i = 0; i < p->refs.len; i++) {
        if (p->refs.at[i].call) {
            return false;
        }
    }
    return true;
}

static struct ref *pod_finish_ref_call(struct pod *p, const struct port_msg *m)
{
    for (uint32_t i = 0; i < p->refs.len; i++) {
        if (p->refs.at[i].call == m->call) {
            p->refs.at[i].call = 0;
            pod_touch(p);
            return &p->refs.at[i];
        }
    }
    return NULL;
}

static void pod_save_answer(struct api_object **to, const struct port_msg *m)
{
    api_object_unref(*to);
    *to = m->rc == 0 ? api_object_ref(m->obj) : NULL;
}

static void on_volume(void *ctx, const struct port_msg *m)
{
    struct ref *r = pod_finish_ref_call(ctx, m);

    if (r) {
        pod_save_answer(&r->volume, m);
    }
}

static void on_ref(void *ctx, const struct port_msg *m)
{
    struct pod *p = ctx;
    struct ref *r = pod_finish_ref_call(p, m);
    struct hk_str volume;

    if (!r) {
        return;
    }
    pod_save_answer(&r->obj, m);
    volume = json_str(json_at(r->obj ? &r->obj->root : NULL, "spec.volumeName"), HK_STR(""));
    if (r->kind == API_PVC && volume.n > 0) {
        r->call = port_get(p->host->o.port, api_kind(API_PV), HK_STR(""), volume,
                           (struct port_sink){on_volume, p});
    }
}

static void ask_refs(struct pod *p)
{
    p->prep = PREP_ASKED;
    p->refs_added = false;
    for (uint32_t i = 0; i < p->refs.len; i++) {
        struct ref *r = &p->refs.at[i];

        r->call = ref_ask(p, r, (struct port_sink){on_ref, p});
    }
}

static void pod_prepare(struct pod *p, int64_t now_ns)
{
    struct hk_err err = {0};

    if (p->prep == PREP_DONE) {
        pod_wake_at(p, p->renew_ns);
        p->prep = p->renew_ns <= now_ns || p->refs_added ? PREP_NOT : PREP_DONE;
    }
    if (p->prep == PREP_NOT || (p->prep == PREP_HELD && p->held_until_ns <= now_ns)) {
        ask_refs(p);
    }
    if (p->prep == PREP_HELD) {
        pod_wake_at(p, p->held_until_ns);
    }
    if (p->prep != PREP_ASKED || !refs_answered(p)) {
        return;
    }
    for (uint32_t i = 0; i < p->refs.len; i++) {
        source_watch(p, &p->refs.at[i]);
    }
    if (pod_settle_in(p, &err) < 0 || volume_prepare(p, &err) < 0) {
        pod_hold(p, "CreateContainerConfigError", &err, now_ns);
        return;
    }
    p->prep = p->refs_added ? PREP_NOT : PREP_DONE; /* one was added meanwhile: ask for it */
    if (p->refs_added) {
        pod_touch(p);
    }
    p->files_stale = false;
    p->renew_ns = ref_renew_ns(p);
    pod_wake_at(p, p->renew_ns);
}

/* If the new files are not available, containers keep the old ones. */
static void pod_refresh_files(struct pod *p)
{
    struct hk_err err = {0};

    if (p->prep == PREP_DONE && p->files_stale) {
        p->files_stale = false;
        if (volume_refresh(p, &err) < 0) {
            pod_note(p, true, "FailedMount", err.text);
        }
    }
}

/* ---- running ---- */

/* Returns true if the regular containers may start. */
static bool step_init(struct pod *p, int64_t now_ns)
{
    for (uint32_t i = 0; i < p->ninit && p->stage == POD_LIVE; i++) {
        struct container *c = &p->containers[i];

        container_try(c, now_ns);
        if (c->state == CONTAINER_ENDED && c->end.code != 0) {
            stop_pod(p, now_ns + pod_grace_ns(p)); /* no restart will follow */
            return false;
        }
        if (!container_is_initialized(c) && !(c->sidecar && mains_run(p))) {
            return false;
        }
    }
    return p->stage == POD_LIVE;
}

static void step_live(struct pod *p, int64_t now_ns)
{
    if (p->deadline_ns <= now_ns) {
        p->reason = "DeadlineExceeded";
        p->message = "Pod was active on the node longer than the specified deadline";
        stop_pod(p, now_ns + pod_grace_ns(p));
        return;
    }
    pod_wake_at(p, p->deadline_ns);
    if (!pod_fit_judge(p)) {
        if (p->fit == POD_FIT_REFUSED) {
            stop_pod(p, now_ns);
        }
        return;
    }
    pod_prepare(p, now_ns);
    pod_refresh_files(p);
    pod_ephemeral_try(p, now_ns);
    if (!step_init(p, now_ns)) {
        return;
    }
    for (uint32_t i = p->ninit; i < p->ncontainer; i++) {
        container_try(&p->containers[i], now_ns);
    }
    if (mains_ended(p)) {
        stop_pod(p, now_ns + pod_grace_ns(p));
    }
}

static void tick_containers(struct pod *p, int64_t now_ns)
{
    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        struct container *c = pod_container_at(p, i);

        if (c->state == CONTAINER_RUNNING) {
            pod_wake_at(p, probe_tick(c, now_ns));
            pod_wake_at(p, hook_tick(c, now_ns));
        }
        if (c->stop != STOP_NOT) {
            container_stop_on(c, now_ns);
        }
    }
}

static void on_removed(void *ctx, const struct port_msg *m)
{
    struct pod *p = ctx;

    p->removal = 0;
    pod_touch(p);
    /* The pod is gone; a watch event will report it. */
    if (m->rc == 0 || m->rc == -HK_ENOTFOUND) {
        p->deleted = true;
        return;
    }
    if (m->rc != -HK_ECONFLICT) { /* conflict: most likely another pod has the name now */
        hk_log(HK_LOG_WARN, "cannot delete pod", "pod=%.*s/%.*s err=\"%s\"", HK_FMT(p->ns),
               HK_FMT(p->name), m->err->text);
    }
    p->held_until_ns = host_mono_ns(p->host) + REMOVE_AGAIN_NS;
}

static void step_ended(struct pod *p, int64_t now_ns)
{
    struct runtime *r = p->host->o.runtime;

    if (!pod_status_told(p)) {
        return; /* keep the runtime's records until the API has the final status */
    }
    if (p->started && !p->stopped) {
        p->stopped = true;
        r->ops->pod_stop(r, hk_arena_str(&p->host->mem, p->uid).s);
        pod_hosts_remove(p);
        if (p->dir) {
            volume_unmount(p->dir);
        }
    }
    if (!p->deleting || p->deleted || p->removal) {
        return;
    }
    if (p->held_until_ns > now_ns) {
        pod_wake_at(p, p->held_until_ns);
        return;
    }
    p->removal = port_submit(p->host->o.port,
                             &(struct port_request){.verb = PORT_DELETE,
                                                    .kind = api_kind(API_POD),
                                                    .ns = p->ns,
                                                    .name = p->name,
                                                    .if_uid = p->uid,
                                                    .has_grace = true},
                             (struct port_sink){on_removed, p});
}

/* The pod is deleted: kills what still runs. Returns false when nothing is left. */
static bool step_gone(struct pod *p, int64_t now_ns)
{
    struct runtime *r = p->host->o.runtime;

    if (p->started && !p->stopped) {
        p->stopped = true;
        p->stop_ns = now_ns + VANISH_WAIT_NS;
        r->ops->pod_stop(r, hk_arena_str(&p->host->mem, p->uid).s);
    }
    if (any_runs(p) && p->stop_ns > now_ns) {
        pod_wake_at(p, p->stop_ns);
        return true;
    }
    if (p->dir) {
        pod_hosts_remove(p);
        for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
            pod_message_remove(pod_container_at(p, i));
        }
    }
    if (p->dir) {
        volume_unmount(p->dir);
    }
    if (p->dir && (!pod_image_remove(p->dir) || !volume_remove(p->dir))) {
        pod_wake_at(p, now_ns + REMOVE_AGAIN_NS);
        return true;
    }
    return false;
}

bool pod_step(struct pod *p, int64_t now_ns)
{
    p->dirty = false;
    p->due_ns = INT64_MAX;
    if (p->gone) {
        return step_gone(p, now_ns);
    }
    if (p->stage == POD_LIVE) {
        step_live(p, now_ns);
        tick_containers(p, now_ns);
    }
    if (p->stage == POD_STOPPING) {
        step_stopping(p, now_ns);
    }
    if (p->stage == POD_ENDED) {
        step_ended(p, now_ns);
    }
    pod_wake_at(p, pod_status_report(p, now_ns));
    return true;
}

bool pod_rests(const struct pod *p)
{
    return p->stage == POD_ENDED && !p->dirty && p->due_ns == INT64_MAX && !p->gone &&
           !p->deleting && !p->patch && !p->removal && refs_answered(p);
}

/* ---- events ---- */

bool pod_on_end(struct pod *p, uint64_t id, const struct runtime_end *end)
{
    const int64_t now_ns = host_mono_ns(p->host);

    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        struct container *c = pod_container_at(p, i);

        if (c->state == CONTAINER_RUNNING && c->id == id) {
            container_ended(c, end, now_ns);
            return true;
        }
        if (hook_on_end(c, id, end->code == 0 && !end->never_ran)) {
            return true;
        }
        if (probe_on_end(c, id, end->code == 0 && !end->never_ran)) {
            pod_touch(p);
            return true;
        }
    }
    return false;
}

static int64_t time_at(const struct json *root, const char *path)
{
    int64_t ns;

    return time_parse(json_str(json_at(root, path), HK_STR("")), &ns, NULL) < 0 ? 0 : ns;
}

/* Compares the metadata that containers can read. */
static bool words_differ(const struct api_object *a, const struct api_object *b)
{
    return !json_equal(json_at(&a->root, "metadata.labels"),
                       json_at(&b->root, "metadata.labels")) ||
           !json_equal(json_at(&a->root, "metadata.annotations"),
                       json_at(&b->root, "metadata.annotations"));
}

void pod_changed(struct pod *p, struct api_object *o)
{
    const int64_t now_ns = host_mono_ns(p->host), wall_ns = host_wall_ns(p->host);
    const int64_t deletion_ns = time_at(&o->root, "metadata.deletionTimestamp");
    const int64_t active_s = json_int(json_at(&o->root, "spec.activeDeadlineSeconds"), -1);

    if (p->now != o && words_differ(p->now, o)) {
        api_object_unref(p->now);
        p->now = api_object_ref(o);
        p->files_stale = true;
        pod_touch(p);
    }
    pod_status_compare(p, o);
    pod_ephemeral_update(p, o);
    if (!p->known) {
        /* From here on use the monotonic clock. */
        p->since_ns = now_ns - HK_MAX(wall_ns - p->start_ns, 0);
    }
    p->deadline_ns = active_s < 0 ? INT64_MAX : p->since_ns + hk_seconds_ns(active_s);
    if (active_s >= 0 || deletion_ns != 0) {
        pod_touch(p);
    }
    if (deletion_ns == 0) {
        return;
    }
    p->deleting = true;
    if (p->stage != POD_ENDED) {
        const int64_t grace_s =
            json_int(json_at(&o->root, "metadata.deletionGracePeriodSeconds"), POD_GRACE_S);
        /* After a restart of the agent, only the rest of the grace period is left, plus the lost
         * fraction. */
        const int64_t left_ns = p->known ? INT64_MAX : HK_MAX(deletion_ns + SECOND_NS - wall_ns, 0);

        stop_pod(p, now_ns + HK_MIN(left_ns, hk_seconds_ns(grace_s)));
    }
}

void pod_vanished(struct pod *p)
{
    p->gone = true;
    pod_touch(p);
    pod_hosts_changed(p);
}
