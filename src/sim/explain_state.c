// SPDX-License-Identifier: Apache-2.0
// The state of a job in one sentence, and the parts of the answer that come from objects alone.
#include "sim/explain_priv.h"

#include "api/names.h"
#include "codec/timefmt.h"

static const struct hk_str none = {"", 0};

static void put(struct explainer *x, const char *key, struct json v)
{
    explain_put(x, &x->answer, key, v);
}

static void say(struct explainer *x, const char *state, struct json sentence)
{
    put(x, "state", json_make_str(hk_str(state)));
    put(x, "summary", sentence);
}

static bool stamp(const struct json *v, int64_t *ret)
{
    return json_is(v, JSON_STRING) && time_parse(json_str(v, none), ret, NULL) == 0;
}

static void put_time(struct explainer *x, const char *key, int64_t ns)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    time_write(ns, &b);
    put(x, key, explain_text(x, "%s", b.data));
}

static const struct json *subject_meta(const struct explainer *x)
{
    return json_get(x->job_obj ? &x->job_obj->root : &x->group, "metadata");
}

static void put_since_creation(struct explainer *x, const char *key)
{
    int64_t at;

    if (stamp(json_get(subject_meta(x), "creationTimestamp"), &at)) {
        put_time(x, "since", at);
        put(x, key, json_make_int(HK_MAX(x->o->now_ns - at, 0) / 1000000000));
    }
}

/* ---- ended, ending ---- */

/* The attempt that ended last, and badly. */
static const struct json *last_failure(const struct explainer *x)
{
    const struct json *list = json_at(&x->job_obj->root, "status.attempts"), *found = NULL;

    for (uint32_t k = 0; json_is(list, JSON_ARRAY) && k < list->len; k++) {
        if (json_int(json_get(&list->items[k], "exitCode"), 0) != 0) {
            found = &list->items[k];
        }
    }
    return found;
}

static void put_ended(struct explainer *x)
{
    const struct api_job *job = &x->job;
    const struct json *bad = last_failure(x);
    int64_t created;

    put(x, "phase", json_make_str(hk_str(api_job_phase_name(job->phase))));
    if (job->reason.n > 0) {
        put(x, "reason", json_make_str(job->reason));
    }
    if (job->message.n > 0) {
        put(x, "message", json_make_str(job->message));
    }
    put(x, "retries", json_make_int(job->retry_count));
    put(x, "maxRetry", json_make_int(job->max_retry));
    put(x, "succeeded", json_make_int(job->succeeded));
    put(x, "failed", json_make_int(job->failed));
    if (bad) {
        put(x, "lastFailure", *bad);
    }
    if (job->last_transition_ns > 0) {
        put_time(x, "since", job->last_transition_ns);
        if (stamp(json_get(subject_meta(x), "creationTimestamp"), &created)) {
            put(x, "tookSeconds",
                json_make_int(HK_MAX(job->last_transition_ns - created, 0) / 1000000000));
        }
    }
}

static const char *ending_words(enum api_job_phase p)
{
    switch (p) {
    case API_JOB_ABORTING:
        return "is being suspended: its pods end first";
    case API_JOB_RESTARTING:
        return "is being restarted: its pods end first";
    case API_JOB_COMPLETING:
        return "is being completed: its pods end first";
    case API_JOB_TERMINATING:
        return "is being terminated: its pods end first";
    default:
        return NULL;
    }
}

static struct json ended_sentence(struct explainer *x)
{
    const struct api_job *job = &x->job;
    const char *how = job->phase == API_JOB_COMPLETED ? "has completed"
                      : job->phase == API_JOB_FAILED  ? "has failed"
                                                      : "was terminated";
    const struct hk_str why = job->message.n > 0 ? job->message : job->reason;

    return explain_text(x, "%s: %d pods succeeded, %d failed%s%.*s", how, (int)job->succeeded,
                        (int)job->failed, why.n > 0 ? "; " : "", HK_FMT(why));
}

/* A pod that no PodGroup keeps from starting: somebody else's, or it has a node already. */
static bool pod_is_others(struct explainer *x, const struct explain_subject *s)
{
    const struct api_object *pod = explain_find(x, API_POD, s->ns, s->name);
    const struct hk_str scheduler = json_str(json_at(&pod->root, "spec.schedulerName"), none);
    const struct hk_str node = json_str(json_at(&pod->root, "spec.nodeName"), none);
    const struct hk_str phase = json_str(json_at(&pod->root, "status.phase"), HK_STR("Pending"));
    const struct hk_str group = explain_pod_group(&pod->root);

    if (node.n > 0) {
        say(x, hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed") ? "ended" : "running",
            explain_text(x, "is %.*s on node %.*s", HK_FMT(phase), HK_FMT(node)));
        put(x, "node", json_make_str(node));
        return true;
    }
    if (!hk_str_is(scheduler, API_SCHEDULER_NAME)) {
        say(x, "foreign", explain_text(x, "is for the scheduler '%.*s'", HK_FMT(scheduler)));
        return true;
    }
    if (x->group_name.n == 0) {
        say(x, "blocked",
            group.n > 0
                ? explain_text(x, "waits: its PodGroup '%.*s' does not exist", HK_FMT(group))
                : explain_text(x, "waits: it belongs to no PodGroup yet"));
        return true;
    }
    return false;
}

/* Jobs that no scheduler of ours has heard of. */
static bool say_unmade(struct explainer *x)
{
    const struct api_job *job = &x->job;

    if (job->scheduler_name.n > 0 && !hk_str_is(job->scheduler_name, API_SCHEDULER_NAME)) {
        say(x, "foreign",
            explain_text(x, "is for the scheduler '%.*s'", HK_FMT(job->scheduler_name)));
        return true;
    }
    if (!x->has_group && job->phase != API_JOB_ABORTED) {
        const struct hk_str why = job->message.n > 0 ? job->message : job->reason;
        say(x, "blocked",
            explain_text(x, "waits: its controller has made no PodGroup for it%s%.*s",
                         why.n > 0 ? ": " : " yet", HK_FMT(why)));
        return true;
    }
    return false;
}

bool explain_state_early(struct explainer *x, const struct explain_subject *s)
{
    if (s->kind == API_POD && pod_is_others(x, s)) {
        return true;
    }
    if (!x->job_obj) {
        return false;
    }
    if (api_job_is_finished(x->job.phase)) {
        put_ended(x);
        say(x, "ended", ended_sentence(x));
        return true;
    }
    const char *ending = ending_words(x->job.phase);
    if (ending) {
        put_ended(x);
        say(x, "ending",
            explain_text(x, "%s (%d running, %d terminating; retry %d of %d)", ending,
                         (int)x->job.running, (int)x->job.terminating, (int)x->job.retry_count,
                         (int)x->job.max_retry));
        return true;
    }
    return say_unmade(x);
}

/* ---- running ---- */

/* When the first pod got its node. */
static bool first_start(const struct explainer *x, int64_t *ret)
{
    bool found = false;

    for (uint32_t k = 0; k < x->pods.len; k++) {
        int64_t at;
        if (stamp(json_at(&x->pods.at[k], "status.startTime"), &at) && (!found || at < *ret)) {
            *ret = at;
            found = true;
        }
    }
    return found;
}

/* What its PodGroup was last told while it waited. */
static void put_waited_for(struct explainer *x)
{
    const struct json *list = json_at(&x->group, "status.conditions");

    for (uint32_t k = 0; json_is(list, JSON_ARRAY) && k < list->len; k++) {
        const struct json *message = json_get(&list->items[k], "message");
        if (hk_str_is(json_str(json_get(&list->items[k], "type"), none), "Unschedulable") &&
            json_str(message, none).n > 0) {
            put(x, "waitedFor", *message);
        }
    }
}

static void put_running(struct explainer *x)
{
    int64_t created, started = 0;

    if (!first_start(x, &started)) {
        return;
    }
    put_time(x, "since", started);
    put(x, "ranSeconds", json_make_int(HK_MAX(x->o->now_ns - started, 0) / 1000000000));
    if (stamp(json_get(subject_meta(x), "creationTimestamp"), &created)) {
        put(x, "waitedSeconds", json_make_int(HK_MAX(started - created, 0) / 1000000000));
    }
    put_waited_for(x);
}

/* ---- waiting ---- */

static bool was_searched(const struct explainer *x)
{
    const struct json *parts = json_get(&x->view, "reasons");

    for (uint32_t k = 0; json_is(parts, JSON_ARRAY) && k < parts->len; k++) {
        const struct json *list = json_get(&parts->items[k], "refusals");
        if (json_is(list, JSON_ARRAY) && list->len > 0) {
            return true;
        }
    }
    return false;
}

/* Pods without requests are placed by one action alone. */
static bool is_nobodys(const struct explainer *x)
{
    const struct conf *c = x->o->conf;

    for (uint32_t k = 0; k < c->actions.len; k++) {
        if (strcmp(c->actions.at[k].a->name, "backfill") == 0) {
            return false;
        }
    }
    return json_int(json_at(&x->view, "gang.bestEffort"), 0) > 0 &&
           json_int(json_at(&x->view, "gang.bestEffort"), 0) ==
               json_int(json_at(&x->view, "gang.waiting"), 0);
}

static struct json waiting_sentence(struct explainer *x, const char *name)
{
    const struct hk_str refusal = json_str(json_get(&x->view, "refusal"), none);
    const struct hk_str queue = json_str(json_at(&x->view, "queue.name"), none);
    const int64_t min = json_int(json_at(&x->view, "gang.minimum"), 0);
    const int64_t pods = json_int(json_at(&x->view, "gang.pods"), 0);
    const int64_t ready = json_int(json_at(&x->view, "gang.ready"), 0);
    const int64_t fit = json_int(json_at(&x->view, "gang.fit"), 0);

    if (queue.n == 0) {
        const struct hk_str wanted = json_str(json_at(&x->group, "spec.queue"), HK_STR("default"));
        return explain_text(x, "%s: its queue '%.*s' does not exist", name, HK_FMT(wanted));
    }
    if (refusal.n > 0) {
        const bool in = json_bool(json_get(&x->view, "admitted"), true);
        return explain_text(x, "%s%s: %.*s", name, in ? "" : " to be admitted", HK_FMT(refusal));
    }
    if (was_searched(x)) {
        return min > 1 ? explain_text(x,
                                      "%s: %lld of its pods must have a place at once, %lld would "
                                      "find one",
                                      name, (long long)min, (long long)ready + (long long)fit)
                       : explain_text(x, "%s: no node takes it", name);
    }
    if (pods < min) {
        return explain_text(x, "%s: it has %lld pods and needs %lld at once", name, (long long)pods,
                            (long long)min);
    }
    if (is_nobodys(x)) {
        return explain_text(x,
                            "%s: its pods ask for nothing, and the configuration has no action "
                            "'backfill', which places such pods",
                            name);
    }
    if (json_bool(json_get(&x->view, "overused"), false)) {
        return explain_text(x, "%s: its queue '%.*s' already holds its share", name, HK_FMT(queue));
    }
    return explain_text(x, "%s: the scheduler has not come to it", name);
}

static bool has_pod_of(const struct explainer *x, struct hk_str task)
{
    for (uint32_t k = 0; k < x->pods.len; k++) {
        if (hk_str_eq(json_str(json_get(json_at(&x->pods.at[k], "metadata.annotations"),
                                        API_KEY_TASK_SPEC),
                               none),
                      task)) {
            return true;
        }
    }
    return false;
}

/* Tasks whose pods wait for other tasks. */
static void put_blocked(struct explainer *x)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; x->job_obj && k < x->job.tasks.len; k++) {
        const struct api_job_task *task = &x->job.tasks.at[k];
        struct json entry = json_make_object(), on = json_make_array();
        if (task->depends_on.len == 0 || has_pod_of(x, task->name)) {
            continue;
        }
        for (uint32_t i = 0; i < task->depends_on.len; i++) {
            json_push(&on, x->a, json_make_str(task->depends_on.at[i]));
        }
        explain_put(x, &entry, "task", json_make_str(task->name));
        explain_put(x, &entry, "dependsOn", on);
        json_push(&list, x->a, entry);
    }
    if (list.len > 0) {
        put(x, "blockedTasks", list);
    }
}

/* Keys of the view that are part of the answer. */
static void copy_view(struct explainer *x)
{
    static const char *const keys[] = {"priority", "queue",   "gang",   "nodes",   "admitted",
                                       "wants",    "refusal", "limits", "reasons", "ahead"};

    for (size_t k = 0; k < HK_LEN(keys); k++) {
        const struct json *v = json_get(&x->view, keys[k]);
        if (v) {
            put(x, keys[k], *v);
        }
    }
}

/* Of a job that waits for nothing. */
static void drop_view(struct explainer *x)
{
    static const char *const keys[] = {"ahead", "limits", "refusal", "wants", "reasons"};

    for (size_t k = 0; k < HK_LEN(keys); k++) {
        json_del(&x->answer, keys[k]);
    }
}

static bool is_gated(const struct explainer *x)
{
    for (uint32_t k = 0; k < x->pods.len; k++) {
        const struct json *gates = json_at(&x->pods.at[k], "spec.schedulingGates");
        if (json_is(gates, JSON_ARRAY) && gates->len > 0) {
            return true;
        }
    }
    return false;
}

static void say_suspended(struct explainer *x, bool starts)
{
    if (starts) {
        const struct outcome o = {.evicted = *json_get(&x->view, "evicted"),
                                  .starts = *json_get(&x->view, "starts")};
        struct explain_edits nothing = {0};
        say(x, "suspended", explain_text(x, "is suspended, and would start if it were resumed"));
        explain_claim(x, "resumed", explain_text(x, "it is resumed"), json_make_object(), &nothing,
                      &o);
    } else {
        const struct json why = waiting_sentence(x, "would wait");
        say(x, "suspended",
            explain_text(x, "is suspended; resumed, it %.*s", HK_FMT(json_str(&why, none))));
    }
}

bool explain_state(struct explainer *x)
{
    const bool starts = json_bool(json_get(&x->view, "started"), false);
    const int64_t ready = json_int(json_at(&x->view, "gang.ready"), 0);
    const int64_t min = json_int(json_at(&x->view, "gang.minimum"), 0);
    const int64_t waiting = json_int(json_at(&x->view, "gang.waiting"), 0);
    const int64_t pipelined = json_int(json_at(&x->view, "gang.pipelined"), 0);

    copy_view(x);
    put_blocked(x);
    if (x->job_obj && x->job.phase == API_JOB_ABORTED) {
        say_suspended(x, starts);
        return false;
    }
    put_since_creation(x, "waitedSeconds");
    if (starts) {
        put(x, "evicts", *json_get(&x->view, "evicted"));
        say(x, "starting",
            explain_text(x, "has a place: it starts when the scheduler comes to it"));
        return false;
    }
    if (pipelined > 0 && ready + pipelined >= min) {
        say(x, "starting",
            explain_text(x, "has its room as soon as pods that are ending are gone"));
        return false;
    }
    if (ready > 0 && ready >= min && waiting == 0) {
        drop_view(x);
        put_running(x);
        say(x, "running",
            explain_text(x, "runs: %lld pod%s a place", (long long)ready,
                         ready == 1 ? " has" : "s have"));
        return false;
    }
    if (is_gated(x)) {
        say(x, "blocked", explain_text(x, "waits: its pods have scheduling gates"));
        return false;
    }
    if (ready > 0 && ready >= min) {
        put_running(x);
        say(x, "running",
            explain_text(x, "runs: %lld pod%s a place, %lld more wait%s for one", (long long)ready,
                         ready == 1 ? " has" : "s have", (long long)waiting,
                         waiting == 1 ? "s" : ""));
        return true;
    }
    say(x, "waiting", waiting_sentence(x, "waits"));
    return true;
}

void explain_state_queue(struct explainer *x)
{
    const struct hk_str state = json_str(json_get(&x->view, "state"), none);
    const int64_t waiting = json_int(json_get(&x->view, "waiting"), 0);

    put(x, "queue", x->view);
    say(x, hk_str_is(state, "Open") || state.n == 0 ? "open" : "closed",
        explain_text(x, "%s, and %lld of its %lld jobs wait",
                     hk_str_is(state, "Open") || state.n == 0 ? "is open" : "takes no jobs",
                     (long long)waiting, (long long)json_int(json_get(&x->view, "jobs"), 0)));
}

void explain_state_finish(struct explainer *x)
{
    put(x, "changes", x->changes);
    put(x, "tried", json_make_int(x->tried));
    put(x, "cut", json_make_bool(x->cut || x->skipped));
}
