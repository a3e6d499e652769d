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

/* Pods of a job that has ended may be deleted, by a drain for instance; what they did still counts. */
static int64_t keep_count(const struct job_pass *p, const struct json *status, const char *key,
                          int64_t now)
{
    const int64_t before = json_int(json_get(status, key), 0);

    return api_job_is_finished(p->job.phase) ? HK_MAX(before, now) : now;
}

static void put_counts(const struct job_pass *p, struct json *status, const struct job_counts *n)
{
    struct hk_arena *a = p->t->mem;
    struct json tasks = json_make_object();

    json_set_int_or_del(status, a, "pending", n->pending);
    json_set_int_or_del(status, a, "running", n->running);
    json_set_int_or_del(status, a, "succeeded", keep_count(p, status, "succeeded", n->succeeded));
    json_set_int_or_del(status, a, "failed", keep_count(p, status, "failed", n->failed));
    json_set_int_or_del(status, a, "terminating", n->terminating);
    json_set_int_or_del(status, a, "unknown", n->unknown);
    for (uint32_t i = 0; i < p->job.tasks.len; i++) {
        struct json phases = json_make_object(), task = json_make_object();

        for (unsigned k = 0; k < POD_NPHASES; k++) {
            json_set_int_or_del(&phases, a, pod_phase_name(k), n->tasks[i][k]);
        }
        if (phases.len > 0) {
            json_set(&task, a, "phase", phases);
            json_put(&tasks, a, p->job.tasks.at[i].name, task);
        }
    }
    json_set_or_del(status, a, "taskStatusCount", tasks);
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
    json_set_cstr(&cond, a, "status", phase);
    json_set_time(&cond, a, "lastTransitionTime", t->now_ns);
    json_push(&list, a, cond);
    json_set(status, a, "conditions", list);
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
    json_set_str_or_del(state, a, "reason", json_str(json_get(old, "reason"), none));
    json_set_str_or_del(state, a, "message", json_str(json_get(old, "message"), none));
}

static struct json new_state(const struct pass *t, const char *phase)
{
    struct json state = json_make_object();

    json_set_cstr(&state, t->mem, "phase", phase);
    json_set_time(&state, t->mem, "lastTransitionTime", t->now_ns);
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
        json_set_str_or_del(&state, a, "reason", hk_str(api_job_action_name(ch->action)));
        json_set_str_or_del(&state, a, "message", message_of(p, ch->request));
    } else if (is_at_rest(ch->phase)) {
        keep_reason(&state, a, old);
    }
    json_set(status, a, "state", state);
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
    json_set_str_or_del(&action, a, "name", hk_str(api_job_action_name(ch->action)));
    if (ch->request) {
        json_set_str_or_del(&action, a, "task", hk_str(ch->request->task));
        json_set_str_or_del(&action, a, "pod", hk_str(ch->request->pod));
        json_set_str_or_del(&action, a, "partition", hk_str(ch->request->partition));
    }
    if (ch->command) {
        json_set_str_or_del(&action, a, "command", hk_str(ch->command));
    }
    json_set(status, a, "action", action);
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
            json_set_cstr(&map, a, key, plugin->name);
        } else if (!plugin->objects || job_is_torn_down(p, i)) {
            json_del(&map, key);
        }
    }
    for (uint32_t i = 0; i < p->job.volumes.len; i++) {
        const struct hk_str claim = p->job.volumes.at[i].claim_name;

        if (claim.n > 0) {
            json_set_str(&map, a, hk_arena_printf(a, "volume-pvc-%.*s", HK_FMT(claim)), claim);
        }
    }
    json_set_or_del(status, a, "controlledResources", map);
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
    json_set_str_copy(status, p->t->mem, "runningDuration", hk_buf_str(&text));
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
        state = json_set(&status, a, "state", new_state(t, api_job_phase_name(API_JOB_PENDING)));
    }
    json_set_str_or_del(state, a, "reason", HK_STR(JOB_REFUSED));
    json_set_str_or_del(state, a, "message", hk_str(why));
    if (!json_equal(&status, old)) {
        json_set(&obj, a, "status", status);
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
    json_set_int(&status, a, "minAvailable", p->job.min_available);
    put_counts(&after, &status, &n);
    json_set_int_or_del(&status, a, "version", after.job.version);
    json_set_int_or_del(&status, a, "retryCount", after.job.retry_count);
    put_duration(p, &status, ch->phase);
    put_controlled(p, &status, ch->phase);
    json_set_or_del(&status, a, "attempts",
                    job_record_merge(&after, json_get(&status, "attempts")));
    if (json_equal(&status, old)) {
        return false;
    }
    obj = json_shallow(p->root, a);
    json_set(&obj, a, "status", status);
    pass_update_status(p->t, api_kind(API_JOB), &obj);
    return true;
}
