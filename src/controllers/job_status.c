// SPDX-License-Identifier: Apache-2.0
// The status of a job: counts its pods, and writes the status only when something in it changes.
#include "controllers/job_priv.h"

#include "codec/timefmt.h"

static const struct hk_str none = {"", 0};

void job_count(const struct job_pass *p, struct job_counts *ret)
{
    int32_t by_phase[POD_NPHASES] = {0};

    *ret = (struct job_counts){0};
    ret->tasks = hk_arena_zalloc(p->t->mem, p->job.tasks.len * sizeof(ret->tasks[0]) + 1);
    for (uint32_t r = job_first_pod(p); r != HK_NONE; r = job_next_pod(p, r)) {
        const struct pod_digest *d = job_pod(p, r);
        const struct api_job_task *task = api_job_task_find(&p->job, hk_str(d->task));

        if (d->terminating || job_pod_must_go(p, r)) {
            ret->terminating++;
        } else if (task) {
            by_phase[d->phase]++;
            ret->tasks[task - p->job.tasks.at][d->phase]++;
        }
    }
    ret->pending =
        by_phase[POD_PENDING] + (job_is_live(p->job.phase) ? job_window_held_back(p) : 0);
    ret->running = by_phase[POD_RUNNING];
    ret->succeeded = by_phase[POD_SUCCEEDED];
    ret->failed = by_phase[POD_FAILED];
    ret->unknown = by_phase[POD_UNKNOWN];
}

/* ---- building ---- */

/* Leaves out zeros, as upstream does. */
static void job_status_set_int(struct json *obj, struct hk_arena *a, const char *key, int64_t n)
{
    if (n != 0) {
        json_put(obj, a, hk_str(key), json_make_int(n));
    } else {
        json_del(obj, key);
    }
}

static void job_status_set_str(struct json *obj, struct hk_arena *a, const char *key,
                               struct hk_str s)
{
    if (s.n > 0) {
        json_put(obj, a, hk_str(key), json_make_str(s));
    } else {
        json_del(obj, key);
    }
}

static struct json time_json(int64_t ns, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    time_write(ns, &text);
    return json_make_str(hk_arena_str(a, hk_buf_str(&text)));
}

/* Sets the member unless it would be empty. */
static void put_filled(struct json *obj, struct hk_arena *a, const char *key, struct json v)
{
    if (v.len > 0) {
        json_put(obj, a, hk_str(key), v);
    } else {
        json_del(obj, key);
    }
}

static void put_counts(const struct job_pass *p, struct json *status, const struct job_counts *n)
{
    struct hk_arena *a = p->t->mem;
    struct json tasks = json_make_object();

    job_status_set_int(status, a, "pending", n->pending);
    job_status_set_int(status, a, "running", n->running);
    job_status_set_int(status, a, "succeeded", n->succeeded);
    job_status_set_int(status, a, "failed", n->failed);
    job_status_set_int(status, a, "terminating", n->terminating);
    job_status_set_int(status, a, "unknown", n->unknown);
    for (uint32_t i = 0; i < p->job.tasks.len; i++) {
        struct json phases = json_make_object(), task = json_make_object();

        for (unsigned k = 0; k < POD_NPHASES; k++) {
            job_status_set_int(&phases, a, pod_phase_name(k), n->tasks[i][k]);
        }
        if (phases.len > 0) {
            json_put(&task, a, HK_STR("phase"), phases);
            json_put(&tasks, a, p->job.tasks.at[i].name, task);
        }
    }
    put_filled(status, a, "taskStatusCount", tasks);
}

/* One condition per phase, the newest last. */
static void put_condition(const struct pass *t, struct json *status, const char *phase)
{
    struct hk_arena *a = t->mem;
    const struct json *old = json_get(status, "conditions");
    struct json list = json_make_array(), cond = json_make_object();

    for (uint32_t i = 0; json_is(old, JSON_ARRAY) && i < old->len; i++) {
        if (!hk_str_is(json_str(json_get(&old->items[i], "status"), none), phase)) {
            json_push(&list, a, old->items[i]);
        }
    }
    json_put(&cond, a, HK_STR("status"), json_make_str(hk_str(phase)));
    json_put(&cond, a, HK_STR("lastTransitionTime"), time_json(t->now_ns, a));
    json_push(&list, a, cond);
    json_put(status, a, HK_STR("conditions"), list);
}

static struct hk_str message_of(const struct job_pass *p, const struct job_request *r)
{
    struct hk_arena *a = p->t->mem;
    const char *event = r ? api_job_event_name(r->event) : "";

    if (!r || event[0] == '\0') {
        return none;
    }
    if (r->event == API_EVENT_POD_FAILED && r->exit_code != 0) {
        return hk_str(hk_arena_printf(a, "%s: pod %s, exit code %d", event, r->pod, r->exit_code));
    }
    if (r->event == API_EVENT_TASK_COMPLETED || r->event == API_EVENT_TASK_FAILED) {
        return hk_str(hk_arena_printf(a, "%s: task %s", event, r->task));
    }
    if (r->pod[0]) {
        return hk_str(
            hk_arena_printf(a, "%s: pod %s%s", event, r->pod, r->preempted ? ", preempted" : ""));
    }
    return hk_str(hk_arena_printf(a, "%s", event));
}

static bool is_at_rest(enum api_job_phase phase)
{
    return api_job_is_finished(phase) || phase == API_JOB_ABORTED;
}

/* A job that has ended keeps the reason for its end. */
static void keep_reason(struct json *state, struct hk_arena *a, const struct json *old)
{
    job_status_set_str(state, a, "reason", json_str(json_get(old, "reason"), none));
    job_status_set_str(state, a, "message", json_str(json_get(old, "message"), none));
}

static struct json new_state(const struct pass *t, const char *phase)
{
    struct json state = json_make_object();

    json_put(&state, t->mem, HK_STR("phase"), json_make_str(hk_str(phase)));
    json_put(&state, t->mem, HK_STR("lastTransitionTime"), time_json(t->now_ns, t->mem));
    return state;
}

static void put_state(const struct job_pass *p, struct json *status, const struct job_change *ch)
{
    struct hk_arena *a = p->t->mem;
    const char *phase = api_job_phase_name(ch->phase);
    struct json *old = (struct json *)json_get(status, "state");
    struct json state;

    if (ch->phase == p->job.phase) {
        if (hk_str_is(p->job.reason, JOB_REFUSED)) {
            json_del(old, "reason");
            json_del(old, "message");
        }
        return;
    }
    state = new_state(p->t, phase);
    if (ch->action != API_ACTION_SYNC_JOB) {
        job_status_set_str(&state, a, "reason", hk_str(api_job_action_name(ch->action)));
        job_status_set_str(&state, a, "message", message_of(p, ch->request));
    } else if (is_at_rest(ch->phase)) {
        keep_reason(&state, a, old);
    }
    json_put(status, a, HK_STR("state"), state);
    put_condition(p->t, status, phase);
}

/* Records the action in progress, so that a later pass or another process can continue it. */
static void put_action(const struct job_pass *p, struct json *status, const struct job_change *ch)
{
    struct hk_arena *a = p->t->mem;
    struct json action = json_make_object();

    if (ch->action == API_ACTION_SYNC_JOB) {
        if (ch->phase != p->job.phase || ch->done) {
            json_del(status, "action");
        }
        return;
    }
    job_status_set_str(&action, a, "name", hk_str(api_job_action_name(ch->action)));
    if (ch->request) {
        job_status_set_str(&action, a, "task", hk_str(ch->request->task));
        job_status_set_str(&action, a, "pod", hk_str(ch->request->pod));
        job_status_set_str(&action, a, "partition", hk_str(ch->request->partition));
    }
    if (ch->command) {
        job_status_set_str(&action, a, "command", hk_str(ch->command));
    }
    json_put(status, a, HK_STR("action"), action);
}

/* Lists plugins with objects until the objects are removed, other plugins until the job is at
 * rest. */
static void put_controlled(const struct job_pass *p, struct json *status, enum api_job_phase phase)
{
    struct hk_arena *a = p->t->mem;
    const struct json *old = json_get(status, "controlledResources");
    struct json map = json_clone_as(old, JSON_OBJECT, a);

    for (uint32_t i = 0; i < p->uses.len; i++) {
        const struct job_plugin *plugin = p->uses.at[i].plugin;
        const char *key = hk_arena_printf(a, "plugin-%s", plugin->name);

        if (plugin->unlisted) {
            continue;
        }
        if (!is_at_rest(phase)) {
            json_put(&map, a, hk_str(key), json_make_str(hk_str(plugin->name)));
        } else if (!plugin->objects || job_is_torn_down(p, i)) {
            json_del(&map, key);
        }
    }
    for (uint32_t i = 0; i < p->job.volumes.len; i++) {
        const struct hk_str claim = p->job.volumes.at[i].claim_name;

        if (claim.n > 0) {
            json_put(&map, a, hk_str(hk_arena_printf(a, "volume-pvc-%.*s", HK_FMT(claim))),
                     json_make_str(claim));
        }
    }
    put_filled(status, a, "controlledResources", map);
}

static void put_duration(const struct job_pass *p, struct json *status, enum api_job_phase phase)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (phase == p->job.phase || phase == API_JOB_RUNNING || phase == API_JOB_PENDING) {
        if (phase != p->job.phase) {
            json_del(status, "runningDuration");
        }
        return;
    }
    duration_write(p->t->now_ns / 1000000000 * 1000000000 - p->job.meta.creation_ns, &text);
    json_put(status, p->t->mem, HK_STR("runningDuration"),
             json_make_str(hk_arena_str(p->t->mem, hk_buf_str(&text))));
}

void job_write_refusal(struct pass *t, const struct json *root, const char *why)
{
    struct hk_arena *a = t->mem;
    const struct json *old = json_get(root, "status");
    struct json obj = json_clone(root, a);
    struct json status = json_clone_as(old, JSON_OBJECT, a);
    struct json *state = (struct json *)json_get(&status, "state");

    if (!json_is(state, JSON_OBJECT)) {
        put_condition(t, &status, api_job_phase_name(API_JOB_PENDING));
        state = json_put(&status, a, HK_STR("state"),
                         new_state(t, api_job_phase_name(API_JOB_PENDING)));
    }
    job_status_set_str(state, a, "reason", HK_STR(JOB_REFUSED));
    job_status_set_str(state, a, "message", hk_str(why));
    if (!json_equal(&status, old)) {
        json_put(&obj, a, HK_STR("status"), status);
        pass_update_status(t, api_kind(API_JOB), &obj);
    }
}

/* Other writers may have set the counter to its maximum. */
static int32_t count_up(int32_t n, bool once)
{
    return once && n < INT32_MAX ? n + 1 : n;
}

bool job_write_status(struct job_pass *p, const struct job_change *ch)
{
    struct hk_arena *a = p->t->mem;
    const struct json *old = json_get(p->root, "status");
    struct json status = json_clone_as(old, JSON_OBJECT, a);
    struct job_pass after = *p;
    struct job_counts n;
    struct json obj;

    /* Count the pods as they will be after this write. */
    after.job.phase = ch->phase;
    after.job.version = count_up(p->job.version, ch->new_generation);
    after.job.retry_count = count_up(p->job.retry_count, ch->retry);
    if (ch->action != API_ACTION_SYNC_JOB && ch->request) {
        after.action = ch->action;
        after.target_task = hk_str(ch->request->task);
        after.target_pod = hk_str(ch->request->pod);
        after.target_partition = hk_str(ch->request->partition);
    }
    job_count(&after, &n);

    put_state(p, &status, ch);
    put_action(p, &status, ch);
    json_put(&status, a, HK_STR("minAvailable"), json_make_int(p->job.min_available));
    put_counts(&after, &status, &n);
    job_status_set_int(&status, a, "version", after.job.version);
    job_status_set_int(&status, a, "retryCount", after.job.retry_count);
    put_duration(p, &status, ch->phase);
    put_controlled(p, &status, ch->phase);
    put_filled(&status, a, "attempts", job_record_merge(&after, json_get(&status, "attempts")));
    if (json_equal(&status, old)) {
        return false;
    }
    obj = json_shallow(p->root, a);
    json_put(&obj, a, HK_STR("status"), status);
    pass_update_status(p->t, api_kind(API_JOB), &obj);
    return true;
}
