// SPDX-License-Identifier: Apache-2.0
// The life of a container. Its pod (life.c) decides when it may run:
//
//   WAITING --due--> RUNNING --ended--> WAITING (restarts after a growing delay)
//                                   '-> ENDED   (the restart policy is satisfied)
//
// If a container cannot start for a temporary reason, the whole pod is held for a while.
#include "agent/pod/container.h"

#include "agent/pod/gpu.h"
#include "agent/pod/image.h"
#include "agent/pod/message.h"
#include "agent/pod/start.h"
#include "agent/pod/status.h"
#include "codec/timefmt.h"

#include <signal.h>

#define BACKOFF_FIRST_NS (10 * SECOND_NS)
#define BACKOFF_LAST_NS (300 * SECOND_NS)
#define BACKOFF_RESET_NS (600 * SECOND_NS)
#define HELD_FIRST_NS SECOND_NS
#define HELD_LAST_NS (10 * SECOND_NS)
#define KILL_AGAIN_NS (10 * SECOND_NS)
#define CODE_CANNOT_RUN 128

/* ---- ending ---- */

static bool policy_is(const struct pod *p, const char *policy)
{
    return hk_str_is(json_str(pod_spec(p, "restartPolicy"), HK_STR("Always")), policy);
}

static bool starts_again(const struct container *c)
{
    const struct pod *p = c->pod;

    if (p->stage != POD_LIVE || c->ephemeral) {
        return false;
    }
    if (c->sidecar) {
        return true;
    }
    if (c->init) {
        return c->end.code != 0 && !policy_is(p, "Never");
    }
    return policy_is(p, "Always") || (policy_is(p, "OnFailure") && c->end.code != 0);
}

/* The first restart is immediate, the next ones follow after 10 s, 20 s, ... */
static void pause_before_restart(struct container *c, int64_t now_ns)
{
    struct pod *p = c->pod;
    const int64_t wait_ns = c->end.end_ns - c->end.start_ns >= BACKOFF_RESET_NS ? 0 : c->backoff_ns;
    char *text;

    c->backoff_ns = wait_ns == 0 ? BACKOFF_FIRST_NS : HK_MIN(2 * wait_ns, BACKOFF_LAST_NS);
    c->due_ns = now_ns + wait_ns;
    c->state = CONTAINER_WAITING;
    if (p->prep == PREP_DONE && p->refs.len > 0) {
        p->prep = PREP_NOT; /* the restart reads its variables again */
    }
    if (wait_ns == 0) {
        return;
    }
    HK_AUTO(hk_buf_fini) struct hk_buf wait = {0};
    duration_write(wait_ns, &wait);
    text = hk_arena_printf(
        &p->host->mem, "back-off %s restarting failed container=%.*s pod=%.*s_%.*s(%.*s)",
        wait.data, HK_FMT(c->name), HK_FMT(p->name), HK_FMT(p->ns), HK_FMT(p->uid));
    container_wait(c, "CrashLoopBackOff", text);
    pod_note(p, true, "BackOff", text);
}

void container_settle(struct container *c, int64_t now_ns)
{
    c->id = 0;
    c->ready = c->started = false;
    c->stop = STOP_NOT;
    hook_end(c);
    probe_end(c);
    pod_touch(c->pod);
    if (starts_again(c)) {
        pause_before_restart(c, now_ns);
    } else {
        c->state = CONTAINER_ENDED;
    }
}

static const char *container_end_reason(const struct runtime_end *end)
{
    if (end->never_ran) {
        return "ContainerCannotRun";
    }
    if (end->oom) {
        return "OOMKilled";
    }
    return end->code == 0 ? "Completed" : "Error";
}

/* An ephemeral container waits alone: it must not disturb the others. */
static void container_hold(struct container *c, const char *why, const struct hk_err *err,
                           int64_t now_ns)
{
    if (!c->ephemeral) {
        pod_hold(c->pod, why, err, now_ns);
        return;
    }
    if (!c->why_text || strcmp(c->why_text, err->text) != 0) {
        pod_note(c->pod, true, "Failed", err->text);
    }
    container_wait(c, why, err->text);
    c->due_ns = now_ns + HELD_LAST_NS;
    c->stale = c->pod->refs.len > 0;
    pod_wake_at(c->pod, c->due_ns);
}

/* The attempt did not start: retry the same attempt after a delay. */
static void hold_attempt(struct container *c, const struct hk_err *err, int64_t now_ns)
{
    c->begun = false;
    c->id = 0;
    hook_end(c);
    c->state = CONTAINER_WAITING;
    c->stop = STOP_NOT;
    pod_touch(c->pod);
    probe_end(c);
    container_hold(c, "CreateContainerError", err, now_ns);
}

void container_ended(struct container *c, const struct runtime_end *end, int64_t now_ns)
{
    if (end->again && c->pod->stage == POD_LIVE) {
        struct hk_err err = {0};

        hk_err_set(&err, HK_EBUSY, "%s", end->message);
        hold_attempt(c, &err, now_ns);
        return;
    }
    c->pod->held_ns = 0;
    hk_free(c->end.message);
    c->end = (struct container_end){
        .is = true,
        .code = end->never_ran && end->code == 0 ? CODE_CANNOT_RUN : end->code,
        .signo = end->signo,
        .reason = container_end_reason(end),
        .start_ns = end->start_ns ? end->start_ns : c->start_ns,
        .end_ns = end->end_ns ? end->end_ns : host_wall_ns(c->pod->host),
    };
    if (end->never_ran) {
        pod_note(c->pod, true, "Failed", end->message);
        pod_start_log_failure(c, end->message);
    }
    if (end->message && end->message[0]) {
        pod_message_set(&c->end, hk_str(end->message));
    } else {
        pod_message_collect(c);
    }
    container_settle(c, now_ns);
}

static void cannot_run(struct container *c, const char *why, int64_t now_ns)
{
    const int64_t wall_ns = host_wall_ns(c->pod->host);

    container_ended(c,
                    &(struct runtime_end){.code = CODE_CANNOT_RUN,
                                          .never_ran = true,
                                          .message = why,
                                          .start_ns = wall_ns,
                                          .end_ns = wall_ns},
                    now_ns);
}

/* ---- starting ---- */

void pod_hold(struct pod *p, const char *why, const struct hk_err *err, int64_t now_ns)
{
    p->held_ns = p->held_ns == 0 ? HELD_FIRST_NS : HK_MIN(2 * p->held_ns, HELD_LAST_NS);
    p->held_until_ns = now_ns + p->held_ns;
    p->prep = PREP_HELD;
    pod_wake_at(p, p->held_until_ns);
    for (uint32_t i = 0; i < p->ncontainer; i++) {
        struct container *c = &p->containers[i];

        if (c->state == CONTAINER_WAITING && (i < p->ninit || pod_initialized(p))) {
            if (!c->why_text || strcmp(c->why_text, err->text) != 0) {
                pod_note(p, true, "Failed", err->text);
            }
            container_wait(c, why, err->text);
            break;
        }
    }
}

static void tell_image_ignored(struct pod *p)
{
    if (!p->image_told) {
        p->image_told = true;
        pod_note(p, false, "ImageIgnored",
                 "images are not run by this node: the command runs as a process of the machine");
    }
}

static void tell_caveats(struct pod *p)
{
    const char *text = pod_status_caveats(p);

    if (!p->caveats_told && text[0]) {
        p->caveats_told = true;
        pod_note(p, true, "LimitsNotEnforced", text);
    }
}

static void running(struct container *c, int64_t now_ns)
{
    c->state = CONTAINER_RUNNING;
    c->start_ns = host_wall_ns(c->pod->host);
    container_wait(c, NULL, NULL);
    probe_begin(c, now_ns);
    hook_begin(c, "postStart", now_ns);
}

/* The attempt that ended becomes lastState. */
static void next_attempt(struct container *c)
{
    if (!c->begun) {
        c->begun = true;
        return;
    }
    hk_free(c->last.message);
    c->last = c->end;
    c->end = (struct container_end){0};
    c->attempt++;
}

static int container_make_launch(struct container *c, struct env *env,
                                 struct runtime_container *ret, struct hk_err *err)
{
    struct hk_arena *mem = &c->pod->host->mem;
    int rc = pod_gpu_assign(c, err);

    if (rc < 0) {
        return rc;
    }
    if (c->image) {
        pod_image_env(c->image, env, mem);
    }
    rc = env_make(c->pod, c->spec, mem, env, err);
    if (rc < 0) {
        return rc;
    }
    pod_gpu_env(c, env, mem);
    return pod_start_describe(c, env, ret, err);
}

/* A runtime that runs nothing needs no preparation. */
static void start_nominal(struct container *c, int64_t now_ns)
{
    struct hk_err err = {0};

    if (pod_start_pod(c->pod, &err) < 0) {
        pod_hold(c->pod, "CreateContainerError", &err, now_ns);
        return;
    }
    if (!c->delayed) {
        c->delayed = true;
        c->due_ns = now_ns + pod_start_delay(c);
        if (c->due_ns > now_ns) {
            return;
        }
    }
    next_attempt(c);
    if (pod_start_nominal(c, 0, &err) < 0) {
        cannot_run(c, err.text, now_ns);
        return;
    }
    running(c, now_ns);
}

/* Why a container cannot be started, or NULL. */
static const char *container_obstacle(const struct container *c, const struct runtime_container *rc)
{
    if (!rc->argv && c->image) {
        return "no command specified";
    }
    if (!rc->argv) {
        return c->ephemeral ? "image is not run here: give a command, as in 'kubectl debug "
                              "-it POD --image=IMAGE -- sh'"
                            : "image is not run here: give a command";
    }
    if (rc->target && json_item(json_get(c->spec, "volumeMounts"), 0)) {
        return "volumeMounts cannot be combined with targetContainerName on this node: the "
               "container sees the files of its target";
    }
    return NULL;
}

/* Everything about the container is known: it starts, or fails to. */
static void start_described(struct container *c, struct runtime_container *rc, int64_t now_ns)
{
    const char *obstacle = container_obstacle(c, rc);
    struct pod *p = c->pod;
    struct hk_err err = {0};
    int ret;

    next_attempt(c);
    rc->attempt = c->attempt;
    rc->log = pod_log_path(c, c->attempt, &p->host->mem);
    if (obstacle) {
        cannot_run(c, obstacle, now_ns);
        return;
    }
    if (!rc->root) {
        tell_image_ignored(p);
    }
    tell_caveats(p);
    ret = pod_start_launch(c, rc, &err);
    if (ret == -HK_EIO || ret == -HK_EBUSY) {
        hold_attempt(c, &err, now_ns);
    } else if (ret < 0) {
        cannot_run(c, err.text, now_ns);
    } else {
        running(c, now_ns);
    }
}

static void start_in_image(struct container *c, int64_t now_ns)
{
    HK_AUTO(env_fini) struct env env = {0};
    struct pod *p = c->pod;
    struct runtime_container rc;
    struct hk_err err = {0};

    if (container_make_launch(c, &env, &rc, &err) < 0) {
        container_hold(c, "CreateContainerConfigError", &err, now_ns);
        return;
    }
    if (pod_start_pod(p, &err) < 0) {
        pod_hold(p, "CreateContainerError", &err, now_ns);
        return;
    }
    start_described(c, &rc, now_ns);
}

static void start_container(struct container *c, int64_t now_ns)
{
    struct pod_image image;

    if (pod_image_choose(c, &image) < 0) {
        return; /* it waits */
    }
    c->image = image.root ? &image : NULL;
    start_in_image(c, now_ns);
    c->image = NULL;
    c->pulled = c->pulled && c->state == CONTAINER_WAITING && !c->end.is;
}

void container_try(struct container *c, int64_t now_ns)
{
    if (c->state != CONTAINER_WAITING || c->pod->prep != PREP_DONE) {
        return;
    }
    if (c->due_ns > now_ns) {
        pod_wake_at(c->pod, c->due_ns);
        return;
    }
    if (c->pod->host->o.runtime->ops->hollow) {
        start_nominal(c, now_ns);
    } else {
        start_container(c, now_ns);
    }
    if (c->state == CONTAINER_WAITING && c->pod->prep == PREP_DONE) {
        pod_wake_at(c->pod, c->due_ns); /* it could not run: retry */
    }
}

/* ---- stopping ---- */

static void terminate(struct container *c)
{
    struct runtime *r = c->pod->host->o.runtime;

    c->stop = STOP_TERM;
    r->ops->kill(r, c->id, SIGTERM);
}

void container_stop_on(struct container *c, int64_t now_ns)
{
    struct runtime *r = c->pod->host->o.runtime;

    if (c->state != CONTAINER_RUNNING) {
        return;
    }
    if (c->stop == STOP_NOT) {
        hook_end(c);
        c->stop = STOP_HOOK;
        if (c->kill_ns > now_ns) {
            hook_begin(c, "preStop", now_ns);
        }
    }
    pod_wake_at(c->pod, hook_tick(c, now_ns));
    if (c->stop == STOP_HOOK && !hook_runs(c)) {
        terminate(c);
    }
    if (c->stop != STOP_KILL && c->kill_ns <= now_ns) {
        c->stop = STOP_KILL;
        c->killed_ns = now_ns;
        r->ops->kill(r, c->id, SIGKILL);
    } else if (c->stop == STOP_KILL && c->killed_ns + KILL_AGAIN_NS <= now_ns) {
        c->killed_ns = now_ns;
        r->ops->kill(r, c->id, SIGKILL);
    }
    pod_wake_at(c->pod, c->stop == STOP_KILL ? c->killed_ns + KILL_AGAIN_NS : c->kill_ns);
}

/* A negative grace period means the pod's. */
static void container_stop(struct container *c, int64_t now_ns, int64_t grace_s)
{
    if (c->state == CONTAINER_RUNNING && c->stop == STOP_NOT) {
        c->kill_ns = now_ns + (grace_s < 0 ? pod_grace_ns(c->pod) : hk_seconds_ns(grace_s));
        pod_touch(c->pod);
        pod_note(c->pod, false, "Killing",
                 hk_arena_printf(&c->pod->host->mem, "Stopping container %.*s", HK_FMT(c->name)));
        container_stop_on(c, now_ns);
    }
}

static void container_on_hook_ended(struct container *c, bool good, int64_t now_ns)
{
    pod_touch(c->pod);
    if (!good && c->stop == STOP_NOT) {
        pod_note(c->pod, true, "FailedPostStartHook", "PostStartHook failed");
        container_stop(c, now_ns, -1);
    } else if (!good) {
        pod_note(c->pod, true, "FailedPreStopHook", "PreStopHook failed");
    }
}

const struct container_ops container_ops = {.unhealthy = container_stop,
                                            .hook_ended = container_on_hook_ended};
