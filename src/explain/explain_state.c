// SPDX-License-Identifier: Apache-2.0
// The state of a job in one sentence, and the parts of the answer that need only objects.
#include "explain/explain_priv.h"

#include "api/names.h"
#include "codec/timefmt.h"

static const struct hk_str none = {"", 0};

static void explain_state_set_state(struct explainer *x, const char *state, struct json sentence)
{
    json_set_cstr(&x->answer, x->a, "state", state);
    json_set(&x->answer, x->a, "summary", sentence);
}

static bool stamp(const struct json *v, int64_t *ret)
{
    return json_is(v, JSON_STRING) && time_parse(json_str(v, none), ret, NULL) == 0;
}

static const struct json *subject_meta(const struct explainer *x)
{
    return json_get(x->job_obj ? &x->job_obj->root : &x->group, "metadata");
}

static void put_since_creation(struct explainer *x, const char *key)
{
    int64_t at;

    if (stamp(json_get(subject_meta(x), "creationTimestamp"), &at)) {
        json_set_time(&x->answer, x->a, "since", at);
        json_set_int(&x->answer, x->a, key, HK_MAX(x->o->now_ns - at, 0) / 1000000000);
    }
}

/* ---- ended, ending ---- */

static void put_ended(struct explainer *x)
{
    const struct api_job *job = &x->job;
    const struct json *bad = api_job_first_failure(&x->job_obj->root);
    int64_t created;

    json_set_cstr(&x->answer, x->a, "phase", api_job_phase_name(job->phase));
    if (job->reason.n > 0) {
        json_set_str(&x->answer, x->a, "reason", job->reason);
    }
    if (job->message.n > 0) {
        json_set_str(&x->answer, x->a, "message", job->message);
    }
    json_set_int(&x->answer, x->a, "retries", job->retry_count);
    json_set_int(&x->answer, x->a, "maxRetry", job->max_retry);
    json_set_int(&x->answer, x->a, "succeeded", job->succeeded);
    json_set_int(&x->answer, x->a, "failed", job->failed);
    if (bad) {
        json_set(&x->answer, x->a, "failure", *bad);
    }
    if (job->last_transition_ns > 0) {
        json_set_time(&x->answer, x->a, "since", job->last_transition_ns);
        if (stamp(json_get(subject_meta(x), "creationTimestamp"), &created)) {
            json_set_int(&x->answer, x->a, "tookSeconds",
                         HK_MAX(job->last_transition_ns - created, 0) / 1000000000);
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

    return explain_text(x, "%s: %d pod%s succeeded, %d failed%s%.*s", how, (int)job->succeeded,
                        job->succeeded == 1 ? "" : "s", (int)job->failed, why.n > 0 ? "; " : "",
                        HK_FMT(why));
}

/* The scheduler of `hekla up` also takes pods of default-scheduler; its controller has made the
 * PodGroup that they name. In a cluster where another scheduler takes them, they have none. */
static bool is_own_scheduler(struct hk_str scheduler, struct hk_str group)
{
    return hk_str_is(scheduler, API_SCHEDULER_NAME) ||
           (hk_str_is(scheduler, API_SCHEDULER_NAME_DEFAULT) && group.n > 0);
}

/* Handles a pod that waits for no existing PodGroup: it has a node, another scheduler, or no
 * group. */
static bool pod_is_others(struct explainer *x, const struct explain_subject *s)
{
    const struct api_object *pod = explain_find(x, API_POD, s->ns, s->name);
    const struct hk_str scheduler = json_str_at(&pod->root, "spec.schedulerName");
    const struct hk_str node = json_str_at(&pod->root, "spec.nodeName");
    const struct hk_str phase = json_str(json_at(&pod->root, "status.phase"), HK_STR("Pending"));
    const struct hk_str group = explain_pod_group(&pod->root);

    if (node.n > 0) {
        explain_state_set_state(
            x, hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed") ? "ended" : "running",
            explain_text(x, "is %.*s on node %.*s", HK_FMT(phase), HK_FMT(node)));
        json_set_str(&x->answer, x->a, "node", node);
        return true;
    }
    if (!is_own_scheduler(scheduler, group)) {
        explain_state_set_state(x, "foreign",
                                explain_text(x, "is for the scheduler '%.*s'", HK_FMT(scheduler)));
        return true;
    }
    if (x->group_name.n == 0) {
        explain_state_set_state(
            x, "blocked",
            group.n > 0
                ? explain_text(x, "waits: its PodGroup '%.*s' does not exist", HK_FMT(group))
                : explain_text(x, "waits: it belongs to no PodGroup yet"));
        return true;
    }
    return false;
}

/* Handles a job of another scheduler, or one without a PodGroup. */
static bool say_unmade(struct explainer *x)
{
    const struct api_job *job = &x->job;

    if (job->scheduler_name.n > 0 && !is_own_scheduler(job->scheduler_name, job->meta.name)) {
        explain_state_set_state(
            x, "foreign",
            explain_text(x, "is for the scheduler '%.*s'", HK_FMT(job->scheduler_name)));
        return true;
    }
    if (!x->has_group && job->phase != API_JOB_ABORTED) {
        const struct hk_str why = job->message.n > 0 ? job->message : job->reason;
        explain_state_set_state(
            x, "blocked",
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
        explain_state_set_state(x, "ended", ended_sentence(x));
        return true;
    }
    const char *ending = ending_words(x->job.phase);
    if (ending) {
        put_ended(x);
        explain_state_set_state(x, "ending",
                                explain_text(x, "%s (%d running, %d terminating; retry %d of %d)",
                                             ending, (int)x->job.running, (int)x->job.terminating,
                                             (int)x->job.retry_count, (int)x->job.max_retry));
        return true;
    }
    return say_unmade(x);
}

/* ---- running ---- */

/* The time when the first pod got its node. */
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

/* The PodGroup's last message while it waited. */
static void put_waited_for(struct explainer *x)
{
    const struct json *list = json_at(&x->group, "status.conditions");

    for (uint32_t k = 0; k < json_len(list); k++) {
        const struct json *message = json_get(&list->items[k], "message");
        if (hk_str_is(json_str_field(&list->items[k], "type"), "Unschedulable") &&
            json_str(message, none).n > 0) {
            json_set(&x->answer, x->a, "waitedFor", *message);
        }
    }
}

static void put_running(struct explainer *x)
{
    int64_t created, started = 0;

    if (!first_start(x, &started)) {
        return;
    }
    json_set_time(&x->answer, x->a, "since", started);
    json_set_int(&x->answer, x->a, "ranSeconds", HK_MAX(x->o->now_ns - started, 0) / 1000000000);
    if (stamp(json_get(subject_meta(x), "creationTimestamp"), &created)) {
        json_set_int(&x->answer, x->a, "waitedSeconds", HK_MAX(started - created, 0) / 1000000000);
    }
    put_waited_for(x);
}

/* ---- waiting ---- */

static bool was_searched(const struct explainer *x)
{
    const struct json *parts = json_get(&x->view, "reasons");

    for (uint32_t k = 0; k < json_len(parts); k++) {
        const struct json *list = json_get(&parts->items[k], "refusals");
        if (json_is(list, JSON_ARRAY) && list->len > 0) {
            return true;
        }
    }
    return false;
}

/* Whether all waiting pods are best-effort and no backfill action is configured to place them. */
static bool is_nobodys(const struct explainer *x)
{
    const struct conf *c = x->o->conf;

    for (uint32_t k = 0; k < c->actions.len; k++) {
        if (strcmp(c->actions.at[k].a->name, "backfill") == 0) {
            return false;
        }
    }
    return json_int_at(&x->view, "gang.bestEffort") > 0 &&
           json_int_at(&x->view, "gang.bestEffort") == json_int_at(&x->view, "gang.waiting");
}

static struct json waiting_sentence(struct explainer *x, const char *name)
{
    const struct hk_str refusal = json_str_field(&x->view, "refusal");
    const struct hk_str queue = json_str_at(&x->view, "queue.name");
    const int64_t min = json_int_at(&x->view, "gang.minimum");
    const int64_t pods = json_int_at(&x->view, "gang.pods");
    const int64_t ready = json_int_at(&x->view, "gang.ready");
    const int64_t fit = json_int_at(&x->view, "gang.fit");

    if (queue.n == 0) {
        const struct hk_str wanted =
            json_str(json_at(&x->group, "spec.queue"), HK_STR(API_QUEUE_NAME_DEFAULT));
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
        return explain_text(x, "%s: it has %lld pod%s and needs %lld at once", name,
                            (long long)pods, pods == 1 ? "" : "s", (long long)min);
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
    return explain_text(x, "%s: the scheduler has not tried it yet", name);
}

static bool has_pod_of(const struct explainer *x, struct hk_str task)
{
    for (uint32_t k = 0; k < x->pods.len; k++) {
        if (hk_str_eq(
                json_str_field(json_at(&x->pods.at[k], "metadata.annotations"), API_KEY_TASK_SPEC),
                task)) {
            return true;
        }
    }
    return false;
}

/* Lists tasks whose pods wait for other tasks. */
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
        json_set_str(&entry, x->a, "task", task->name);
        json_set(&entry, x->a, "dependsOn", on);
        json_push(&list, x->a, entry);
    }
    if (list.len > 0) {
        json_set(&x->answer, x->a, "blockedTasks", list);
    }
}

/* Copies the view's keys that are part of the answer. */
static void copy_view(struct explainer *x)
{
    static const char *const keys[] = {"priority", "queue",   "gang",   "nodes",   "admitted",
                                       "wants",    "refusal", "limits", "reasons", "ahead"};

    for (size_t k = 0; k < HK_LEN(keys); k++) {
        const struct json *v = json_get(&x->view, keys[k]);
        if (v) {
            json_set(&x->answer, x->a, keys[k], *v);
        }
    }
}

/* Removes the keys that do not apply to a job that waits for nothing. */
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
        explain_state_set_state(
            x, "suspended", explain_text(x, "is suspended, and would start if it were resumed"));
        explain_claim(x, "resumed", explain_text(x, "it is resumed"), json_make_object(), &nothing,
                      &o);
    } else {
        const struct json why = waiting_sentence(x, "would wait");
        explain_state_set_state(
            x, "suspended",
            explain_text(x, "is suspended; resumed, it %.*s", HK_FMT(json_str(&why, none))));
    }
}

bool explain_state(struct explainer *x)
{
    const bool starts = json_bool(json_get(&x->view, "started"), false);
    const int64_t ready = json_int_at(&x->view, "gang.ready");
    const int64_t min = json_int_at(&x->view, "gang.minimum");
    const int64_t waiting = json_int_at(&x->view, "gang.waiting");
    const int64_t pipelined = json_int_at(&x->view, "gang.pipelined");

    copy_view(x);
    put_blocked(x);
    if (x->job_obj && x->job.phase == API_JOB_ABORTED) {
        say_suspended(x, starts);
        return false;
    }
    put_since_creation(x, "waitedSeconds");
    if (starts) {
        json_set(&x->answer, x->a, "evicts", *json_get(&x->view, "evicted"));
        explain_state_set_state(
            x, "starting", explain_text(x, "has a place: it starts in the next scheduling cycle"));
        return false;
    }
    if (pipelined > 0 && ready + pipelined >= min) {
        explain_state_set_state(
            x, "starting", explain_text(x, "gets its place when the pods that end there are gone"));
        return false;
    }
    if (ready > 0 && ready >= min && waiting == 0) {
        drop_view(x);
        put_running(x);
        explain_state_set_state(x, "running",
                                explain_text(x, "runs: %lld pod%s a place", (long long)ready,
                                             ready == 1 ? " has" : "s have"));
        return false;
    }
    if (is_gated(x)) {
        explain_state_set_state(x, "blocked",
                                explain_text(x, "waits: its pods have scheduling gates"));
        return false;
    }
    if (ready > 0 && ready >= min) {
        put_running(x);
        explain_state_set_state(x, "running",
                                explain_text(x,
                                             "runs: %lld pod%s a place, %lld more wait%s for one",
                                             (long long)ready, ready == 1 ? " has" : "s have",
                                             (long long)waiting, waiting == 1 ? "s" : ""));
        return true;
    }
    explain_state_set_state(x, "waiting", waiting_sentence(x, "waits"));
    return true;
}

void explain_state_queue(struct explainer *x)
{
    const struct hk_str state = json_str_field(&x->view, "state");
    const int64_t waiting = json_int(json_get(&x->view, "waiting"), 0);
    const int64_t jobs = json_int(json_get(&x->view, "jobs"), 0);

    json_set(&x->answer, x->a, "queue", x->view);
    explain_state_set_state(
        x, hk_str_is(state, "Open") || state.n == 0 ? "open" : "closed",
        explain_text(x, "%s, and %lld of its %lld job%s wait%s",
                     hk_str_is(state, "Open") || state.n == 0 ? "is open" : "takes no jobs",
                     (long long)waiting, (long long)jobs, jobs == 1 ? "" : "s",
                     waiting == 1 ? "s" : ""));
}

void explain_state_finish(struct explainer *x)
{
    json_set(&x->answer, x->a, "changes", x->changes);
    json_set_int(&x->answer, x->a, "tried", x->tried);
    json_set_bool(&x->answer, x->a, "cut", x->cut || x->skipped);
}
