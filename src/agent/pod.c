// SPDX-License-Identifier: Apache-2.0
// The life of a pod on its node. Everything is level-triggered: news are noted on the pod, and
// pod_step looks at all of it and does what can be done now.
//
//   LIVE --containers ended for good, init failed, deadline, deletion--> STOPPING
//   STOPPING --nothing runs any more--> ENDED --final status told--> the runtime is cleaned, and
//   the
//                                             pod deleted when the API wants it gone
//
// While LIVE the pod is prepared (ConfigMaps and Secrets asked for, volumes filled; what is missing
// is asked for again, later each time, and so is what has become old), then its containers are
// started: init containers one after the other, then the rest together. Each container:
//
//   WAITING --due--> RUNNING --ended--> WAITING (to be started again, after a growing pause)
//                                   '-> ENDED   (the restart policy is satisfied)
#include "agent/agent_priv.h"

#include "base/log.h"
#include "codec/timefmt.h"

#include <signal.h>

#define BACKOFF_FIRST_NS (10 * SECOND_NS)
#define BACKOFF_LAST_NS (300 * SECOND_NS)
#define BACKOFF_RESET_NS (600 * SECOND_NS)
#define HELD_FIRST_NS SECOND_NS
#define HELD_LAST_NS (10 * SECOND_NS)
/* After the runtime was told to end a pod. */
#define VANISH_WAIT_NS (10 * SECOND_NS)
#define KILL_AGAIN_NS (10 * SECOND_NS)
#define GRACE_DEFAULT_S 30
#define CODE_CANNOT_RUN 128

void pod_note(const struct pod *p, bool warning, const char *reason, const char *message)
{
    recorder_note(p->a->recorder,
                  &(struct recorder_about){api_kind(API_POD), p->ns, p->name, p->uid}, warning,
                  reason, hk_str(message));
}

static void wake_at(struct pod *p, int64_t at_ns)
{
    p->due_ns = HK_MIN(p->due_ns, at_ns);
}

static void wait_for(struct container *c, const char *why, const char *text)
{
    hk_free(c->why_text);
    c->why = why;
    c->why_text = text ? hk_strdup(text) : NULL;
}

/* ---- containers ---- */

static bool policy_is(const struct pod *p, const char *policy)
{
    return hk_str_is(json_str(pod_spec(p, "restartPolicy"), HK_STR("Always")), policy);
}

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
    for (uint32_t i = 0; i < p->ncontainer; i++) {
        if (p->containers[i].state == CONTAINER_RUNNING) {
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

static bool starts_again(const struct container *c)
{
    const struct pod *p = c->pod;

    if (p->stage != POD_LIVE) {
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

/* The first restart comes at once, the next ones after 10 s, 20 s, ... */
static void pause_before_restart(struct container *c, int64_t now_ns)
{
    struct pod *p = c->pod;
    const int64_t wait_ns = c->end.end_ns - c->end.start_ns >= BACKOFF_RESET_NS ? 0 : c->backoff_ns;
    char *text;

    c->backoff_ns = wait_ns == 0 ? BACKOFF_FIRST_NS : HK_MIN(2 * wait_ns, BACKOFF_LAST_NS);
    c->due_ns = now_ns + wait_ns;
    c->state = CONTAINER_WAITING;
    if (p->prep == PREP_DONE && p->refs.len > 0) {
        p->prep = PREP_NOT; /* variables are as they are when it starts again */
    }
    if (wait_ns == 0) {
        return;
    }
    HK_AUTO(hk_buf_fini) struct hk_buf wait = {0};
    duration_write(wait_ns, &wait);
    text = hk_arena_printf(
        &p->a->mem, "back-off %s restarting failed container=%.*s pod=%.*s_%.*s(%.*s)", wait.data,
        HK_FMT(c->name), HK_FMT(p->name), HK_FMT(p->ns), HK_FMT(p->uid));
    wait_for(c, "CrashLoopBackOff", text);
    pod_note(p, true, "BackOff", text);
}

void pod_settle(struct container *c, int64_t now_ns)
{
    c->id = 0;
    c->ready = c->started = false;
    c->stop = STOP_NOT;
    hook_end(c);
    probe_end(c);
    agent_touch(c->pod);
    if (starts_again(c)) {
        pause_before_restart(c, now_ns);
    } else {
        c->state = CONTAINER_ENDED;
    }
}

static const char *reason_of(const struct runtime_end *end)
{
    if (end->never_ran) {
        return "ContainerCannotRun";
    }
    if (end->oom) {
        return "OOMKilled";
    }
    return end->code == 0 ? "Completed" : "Error";
}

/* The attempt did not come to be, and is made again after a pause. */
static void hold_attempt(struct container *c, const struct hk_err *err, int64_t now_ns)
{
    c->begun = false;
    c->id = 0;
    hook_end(c);
    c->state = CONTAINER_WAITING;
    c->stop = STOP_NOT;
    agent_touch(c->pod);
    probe_end(c);
    pod_hold(c->pod, "CreateContainerError", err, now_ns);
}

static void container_ended(struct container *c, const struct runtime_end *end, int64_t now_ns)
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
        .reason = reason_of(end),
        .start_ns = end->start_ns ? end->start_ns : c->start_ns,
        .end_ns = end->end_ns ? end->end_ns : agent_wall(c->pod->a),
    };
    if (end->never_ran) {
        pod_note(c->pod, true, "Failed", end->message);
    }
    if (end->message && end->message[0]) {
        pod_message_set(&c->end, hk_str(end->message));
    } else {
        pod_message_collect(c);
    }
    pod_settle(c, now_ns);
}

static void cannot_run(struct container *c, const char *why, int64_t now_ns)
{
    const int64_t wall_ns = agent_wall(c->pod->a);

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
    wake_at(p, p->held_until_ns);
    for (uint32_t i = 0; i < p->ncontainer; i++) {
        struct container *c = &p->containers[i];

        if (c->state == CONTAINER_WAITING && (i < p->ninit || pod_initialized(p))) {
            if (!c->why_text || strcmp(c->why_text, err->text) != 0) {
                pod_note(p, true, "Failed", err->text);
            }
            wait_for(c, why, err->text);
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
    c->start_ns = agent_wall(c->pod->a);
    wait_for(c, NULL, NULL);
    probe_begin(c, now_ns);
    hook_begin(c, "postStart", now_ns);
}

/* The attempt that ended becomes the last one. */
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

static int describe(struct container *c, struct env *env, struct runtime_container *ret,
                    struct hk_err *err)
{
    struct hk_arena *mem = &c->pod->a->mem;
    int rc = pod_gpu_assign(c, err);

    rc = rc < 0 ? rc : env_make(c->pod, c->spec, mem, env, err);
    if (rc < 0) {
        return rc;
    }
    pod_gpu_env(c, env, mem);
    return pod_start_describe(c, env, ret, err);
}

/* Where nothing is run there is nothing to prepare. */
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

static void start_container(struct container *c, int64_t now_ns)
{
    HK_AUTO(env_fini) struct env env = {0};
    struct pod *p = c->pod;
    struct runtime_container rc;
    struct hk_err err = {0};
    int ret;

    if (describe(c, &env, &rc, &err) < 0) {
        pod_hold(p, "CreateContainerConfigError", &err, now_ns);
        return;
    }
    if (pod_start_pod(p, &err) < 0) {
        pod_hold(p, "CreateContainerError", &err, now_ns);
        return;
    }
    next_attempt(c);
    rc.attempt = c->attempt;
    rc.log = pod_log_path(c, c->attempt, &p->a->mem);
    if (!rc.argv) {
        cannot_run(c, "image is not run here: give a command", now_ns);
        return;
    }
    if (!rc.root) {
        tell_image_ignored(p);
    }
    tell_caveats(p);
    ret = pod_start_launch(c, &rc, &err);
    if (ret == -HK_EIO || ret == -HK_EBUSY) {
        hold_attempt(c, &err, now_ns);
    } else if (ret < 0) {
        cannot_run(c, err.text, now_ns);
    } else {
        running(c, now_ns);
    }
}

/* Starts it if its time has come. */
static void try_start(struct container *c, int64_t now_ns)
{
    if (c->state != CONTAINER_WAITING || c->pod->prep != PREP_DONE) {
        return;
    }
    if (c->due_ns > now_ns) {
        wake_at(c->pod, c->due_ns);
        return;
    }
    if (c->pod->a->o.runtime->ops->hollow) {
        start_nominal(c, now_ns);
    } else {
        start_container(c, now_ns);
    }
    if (c->state == CONTAINER_WAITING && c->pod->prep == PREP_DONE) {
        wake_at(c->pod, c->due_ns); /* it could not run, and is to be tried again */
    }
}

/* ---- stopping ---- */

static void terminate(struct container *c)
{
    struct runtime *r = c->pod->a->o.runtime;

    c->stop = STOP_TERM;
    r->ops->kill(r, c->id, SIGTERM);
}

static int64_t grace_ns(const struct pod *p)
{
    return json_int(pod_spec(p, "terminationGracePeriodSeconds"), GRACE_DEFAULT_S) * SECOND_NS;
}

/* preStop, SIGTERM, SIGKILL: whichever is next. */
static void stop_on(struct container *c, int64_t now_ns)
{
    struct runtime *r = c->pod->a->o.runtime;

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
    wake_at(c->pod, hook_tick(c, now_ns));
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
    wake_at(c->pod, c->stop == STOP_KILL ? c->killed_ns + KILL_AGAIN_NS : c->kill_ns);
}

void pod_stop_container(struct container *c, int64_t now_ns, int64_t grace_s)
{
    if (c->state == CONTAINER_RUNNING && c->stop == STOP_NOT) {
        c->kill_ns = now_ns + (grace_s < 0 ? grace_ns(c->pod) : grace_s * SECOND_NS);
        agent_touch(c->pod);
        pod_note(c->pod, false, "Killing",
                 hk_arena_printf(&c->pod->a->mem, "Stopping container %.*s", HK_FMT(c->name)));
        stop_on(c, now_ns);
    }
}

static void stop_pod(struct pod *p, int64_t stop_ns)
{
    if (p->stage == POD_LIVE) {
        p->stage = POD_STOPPING;
        p->stop_ns = stop_ns;
    } else {
        p->stop_ns = HK_MIN(p->stop_ns, stop_ns);
    }
}

/* Sidecars go when those they serve are gone. */
static void step_stopping(struct pod *p, int64_t now_ns)
{
    const bool mains = mains_run(p);

    for (uint32_t i = 0; i < p->ncontainer; i++) {
        struct container *c = &p->containers[i];

        c->kill_ns = p->stop_ns;
        if (!c->sidecar || !mains || p->stop_ns <= now_ns) {
            stop_on(c, now_ns);
        }
    }
    if (mains && p->stop_ns > now_ns) {
        wake_at(p, p->stop_ns);
    }
    if (!any_runs(p)) {
        p->stage = POD_ENDED;
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

void pod_ref_changed(struct pod *p, struct ref *r, struct api_object *o)
{
    if (r->obj && hk_str_eq(r->obj->uid, o->uid) && r->obj->rv == o->rv) {
        return;
    }
    api_object_unref(r->obj);
    r->obj = api_object_ref(o);
    p->files_stale = true;
    agent_touch(p);
    if (p->prep == PREP_HELD) { /* perhaps that is what was missing */
        p->held_until_ns = agent_mono(p->a);
    }
}

static struct ref *asked(struct pod *p, const struct port_msg *m)
{
    for (uint32_t i = 0; i < p->refs.len; i++) {
        if (p->refs.at[i].call == m->call) {
            p->refs.at[i].call = 0;
            agent_touch(p);
            return &p->refs.at[i];
        }
    }
    return NULL;
}

static void answer(struct api_object **to, const struct port_msg *m)
{
    api_object_unref(*to);
    *to = m->rc == 0 ? api_object_ref(m->obj) : NULL;
}

static void on_volume(void *ctx, const struct port_msg *m)
{
    struct ref *r = asked(ctx, m);

    if (r) {
        answer(&r->volume, m);
    }
}

static void on_ref(void *ctx, const struct port_msg *m)
{
    struct pod *p = ctx;
    struct ref *r = asked(p, m);
    struct hk_str volume;

    if (!r) {
        return;
    }
    answer(&r->obj, m);
    volume = json_str(json_at(r->obj ? &r->obj->root : NULL, "spec.volumeName"), HK_STR(""));
    if (r->kind == API_PVC && volume.n > 0) {
        r->call = port_get(p->a->o.port, api_kind(API_PV),
                           HK_STR(""), volume, (struct port_sink){on_volume, p});
    }
}

static void ask_refs(struct pod *p)
{
    p->prep = PREP_ASKED;
    for (uint32_t i = 0; i < p->refs.len; i++) {
        struct ref *r = &p->refs.at[i];

        r->call = ref_ask(p, r, (struct port_sink){on_ref, p});
    }
}

static void prepare(struct pod *p, int64_t now_ns)
{
    struct hk_err err = {0};

    if (p->prep == PREP_DONE) {
        wake_at(p, p->renew_ns);
        p->prep = p->renew_ns <= now_ns ? PREP_NOT : PREP_DONE;
    }
    if (p->prep == PREP_NOT || (p->prep == PREP_HELD && p->held_until_ns <= now_ns)) {
        ask_refs(p);
    }
    if (p->prep == PREP_HELD) {
        wake_at(p, p->held_until_ns);
    }
    if (p->prep != PREP_ASKED || !refs_answered(p)) {
        return;
    }
    for (uint32_t i = 0; i < p->refs.len; i++) {
        source_take(p, &p->refs.at[i]);
    }
    if (pod_settle_in(p, &err) < 0 || volume_prepare(p, &err) < 0) {
        pod_hold(p, "CreateContainerConfigError", &err, now_ns);
        return;
    }
    p->prep = PREP_DONE;
    p->files_stale = false;
    p->renew_ns = ref_renew_ns(p);
    wake_at(p, p->renew_ns);
}

/* What runs goes on with the old files when the new ones cannot be had. */
static void refresh(struct pod *p)
{
    struct hk_err err = {0};

    if (p->prep == PREP_DONE && p->files_stale) {
        p->files_stale = false;
        if (volume_refresh(p, &err) < 0) {
            pod_note(p, true, "FailedMount", err.text);
        }
    }
}

/* ---- living ---- */

static bool init_done(const struct container *c)
{
    if (c->sidecar) {
        return c->state == CONTAINER_RUNNING && c->started;
    }
    return c->state == CONTAINER_ENDED && c->end.code == 0;
}

bool pod_initialized(const struct pod *p)
{
    for (uint32_t i = 0; i < p->ninit; i++) {
        const struct container *c = &p->containers[i];

        /* A sidecar that comes back does not undo what was begun. */
        if (!init_done(c) && !(c->sidecar && c->begun)) {
            return false;
        }
    }
    return true;
}

/* True when the containers proper may start. */
static bool step_init(struct pod *p, int64_t now_ns)
{
    for (uint32_t i = 0; i < p->ninit && p->stage == POD_LIVE; i++) {
        struct container *c = &p->containers[i];

        try_start(c, now_ns);
        if (c->state == CONTAINER_ENDED && c->end.code != 0) {
            stop_pod(p, now_ns + grace_ns(p)); /* it will not be tried again */
            return false;
        }
        if (!init_done(c) && !(c->sidecar && mains_run(p))) {
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
        stop_pod(p, now_ns + grace_ns(p));
        return;
    }
    wake_at(p, p->deadline_ns);
    prepare(p, now_ns);
    refresh(p);
    if (!step_init(p, now_ns)) {
        return;
    }
    for (uint32_t i = p->ninit; i < p->ncontainer; i++) {
        try_start(&p->containers[i], now_ns);
    }
    if (mains_ended(p)) {
        stop_pod(p, now_ns + grace_ns(p));
    }
}

static void tick_containers(struct pod *p, int64_t now_ns)
{
    for (uint32_t i = 0; i < p->ncontainer; i++) {
        struct container *c = &p->containers[i];

        if (c->state == CONTAINER_RUNNING) {
            wake_at(p, probe_tick(c, now_ns));
            wake_at(p, hook_tick(c, now_ns));
        }
        if (c->stop != STOP_NOT) {
            stop_on(c, now_ns);
        }
    }
}

static void on_removed(void *ctx, const struct port_msg *m)
{
    struct pod *p = ctx;

    p->removal = 0;
    agent_touch(p);
    /* Ours is gone, and we shall hear so. */
    if (m->rc == 0 || m->rc == -HK_ENOTFOUND) {
        p->deleted = true;
        return;
    }
    if (m->rc != -HK_ECONFLICT) { /* else most likely it is gone, and another has its name */
        hk_log(HK_LOG_WARN, "cannot delete pod", "pod=%.*s/%.*s err=\"%s\"", HK_FMT(p->ns),
               HK_FMT(p->name), m->err->text);
    }
    p->held_until_ns = agent_mono(p->a) + HELD_LAST_NS;
}

static void step_ended(struct pod *p, int64_t now_ns)
{
    struct runtime *r = p->a->o.runtime;

    if (!pod_status_told(p)) {
        return; /* the runtime's records are the only ones so far */
    }
    if (p->started && !p->stopped) {
        p->stopped = true;
        r->ops->pod_stop(r, hk_arena_str(&p->a->mem, p->uid).s);
        pod_hosts_remove(p);
    }
    if (!p->deleting || p->deleted || p->removal) {
        return;
    }
    if (p->held_until_ns > now_ns) {
        wake_at(p, p->held_until_ns);
        return;
    }
    p->removal = port_submit(p->a->o.port,
                             &(struct port_request){.verb = PORT_DELETE,
                                                    .kind = api_kind(API_POD),
                                                    .ns = p->ns,
                                                    .name = p->name,
                                                    .if_uid = p->uid,
                                                    .has_grace = true},
                             (struct port_sink){on_removed, p});
}

/* Nobody wants it any more: ends at once what still runs. False when it is over. */
static bool step_gone(struct pod *p, int64_t now_ns)
{
    struct runtime *r = p->a->o.runtime;

    if (p->started && !p->stopped) {
        p->stopped = true;
        p->stop_ns = now_ns + VANISH_WAIT_NS;
        r->ops->pod_stop(r, hk_arena_str(&p->a->mem, p->uid).s);
    }
    if (any_runs(p) && p->stop_ns > now_ns) {
        wake_at(p, p->stop_ns);
        return true;
    }
    if (p->dir) {
        pod_hosts_remove(p);
        for (uint32_t i = 0; i < p->ncontainer; i++) {
            pod_message_remove(&p->containers[i]);
        }
    }
    if (p->dir && !volume_remove(p->dir)) {
        wake_at(p, now_ns + HELD_LAST_NS);
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
    wake_at(p, pod_status_report(p, now_ns));
    return true;
}

bool pod_rests(const struct pod *p)
{
    return p->stage == POD_ENDED && !p->dirty && p->due_ns == INT64_MAX && !p->gone &&
           !p->deleting && !p->patch && !p->removal && refs_answered(p);
}

/* ---- news ---- */

void pod_hook_ended(struct container *c, bool good, int64_t now_ns)
{
    agent_touch(c->pod);
    if (!good && c->stop == STOP_NOT) {
        pod_note(c->pod, true, "FailedPostStartHook", "PostStartHook failed");
        pod_stop_container(c, now_ns, -1);
    } else if (!good) {
        pod_note(c->pod, true, "FailedPreStopHook", "PreStopHook failed");
    }
}

bool pod_on_end(struct pod *p, uint64_t id, const struct runtime_end *end)
{
    const int64_t now_ns = agent_mono(p->a);

    for (uint32_t i = 0; i < p->ncontainer; i++) {
        struct container *c = &p->containers[i];

        if (c->state == CONTAINER_RUNNING && c->id == id) {
            container_ended(c, end, now_ns);
            return true;
        }
        if (hook_on_end(c, id, end->code == 0 && !end->never_ran)) {
            return true;
        }
        if (probe_on_end(c, id, end->code == 0 && !end->never_ran)) {
            agent_touch(p);
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

void pod_changed(struct pod *p, struct api_object *o)
{
    const int64_t now_ns = agent_mono(p->a), wall_ns = agent_wall(p->a);
    const int64_t deletion_ns = time_at(&o->root, "metadata.deletionTimestamp");
    const int64_t active_s = json_int(json_at(&o->root, "spec.activeDeadlineSeconds"), -1);

    if (p->now != o) {
        p->files_stale = !json_equal(json_at(&p->now->root, "metadata.labels"),
                                     json_at(&o->root, "metadata.labels")) ||
                         !json_equal(json_at(&p->now->root, "metadata.annotations"),
                                     json_at(&o->root, "metadata.annotations")) ||
                         p->files_stale;
        if (p->files_stale) {
            agent_touch(p);
        }
        api_object_unref(p->now);
        p->now = api_object_ref(o);
    }
    if (!p->known) {
        /* From here on by the clock that nobody sets. */
        p->since_ns = now_ns - HK_MAX(wall_ns - p->start_ns, 0);
    }
    p->deadline_ns = active_s < 0 ? INT64_MAX : p->since_ns + active_s * SECOND_NS;
    if (active_s >= 0 || deletion_ns != 0) {
        agent_touch(p);
    }
    if (deletion_ns == 0) {
        return;
    }
    p->deleting = true;
    if (p->stage != POD_ENDED) {
        const int64_t grace_s =
            json_int(json_at(&o->root, "metadata.deletionGracePeriodSeconds"), GRACE_DEFAULT_S);
        /* An earlier agent has seen some of it pass. The timestamp has lost its fraction. */
        const int64_t left_ns = p->known ? INT64_MAX : HK_MAX(deletion_ns + SECOND_NS - wall_ns, 0);

        stop_pod(p, now_ns + HK_MIN(left_ns, grace_s * SECOND_NS));
    }
}

void pod_vanished(struct pod *p)
{
    p->gone = true;
    agent_touch(p);
    pod_hosts_changed(p);
}
