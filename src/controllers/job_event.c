// SPDX-License-Identifier: Apache-2.0
// Turns changes of pods into actions on the job: which event a change is, which action the policies
// choose for it, and delayed actions (docs/reference/controllers.md sections 1, 2 and 2.1). An
// event becomes a request only when a policy of the job names it; any other change only queues a
// pass over the job.
#include "controllers/job_priv.h"

#include "codec/timefmt.h"

#define TASK_RETRY_DEFAULT 3

static char *job_event_copy_str(struct hk_str s)
{
    return hk_strndup(s.s ? s.s : "", s.n);
}

void job_request_fini(struct job_request *r)
{
    hk_free((void *)r->task);
    hk_free((void *)r->pod);
    hk_free((void *)r->pod_uid);
    hk_free((void *)r->partition);
    hk_free((void *)r->owner);
}

struct job_request job_request_copy(const struct job_request *r)
{
    struct job_request copy = *r;

    copy.task = hk_strdup(r->task);
    copy.pod = hk_strdup(r->pod);
    copy.pod_uid = hk_strdup(r->pod_uid);
    copy.partition = hk_strdup(r->partition);
    copy.owner = hk_strdup(r->owner);
    return copy;
}

/* ---- policies ---- */

static bool is_internal(enum api_job_event event)
{
    return event == API_EVENT_OUT_OF_SYNC || event == API_EVENT_COMMAND_ISSUED ||
           event == API_EVENT_POD_RUNNING;
}

static bool job_event_policy_matches(const struct api_job_policy *policy,
                                     const struct job_request *r)
{
    const uint32_t wanted = 1u << r->event | 1u << API_EVENT_ANY;

    if (r->event != API_EVENT_NONE && (policy->events & wanted) &&
        (r->event != API_EVENT_POD_PENDING || policy->has_timeout)) {
        return true;
    }
    return policy->has_exit_code && policy->exit_code == r->exit_code;
}

static bool choose_action_by(const struct api_job_policy *policies, uint32_t n,
                             const struct job_request *r, struct job_verdict *ret)
{
    for (uint32_t i = 0; i < n; i++) {
        if (job_event_policy_matches(&policies[i], r)) {
            *ret = (struct job_verdict){api_job_action_find(policies[i].action),
                                        policies[i].timeout_ns != 0, policies[i].timeout_ns};
            return true;
        }
    }
    return false;
}

struct job_verdict job_choose_action(const struct api_job *job, const struct job_request *r)
{
    const struct api_job_task *task = api_job_task_find(job, hk_str(r->task));
    struct job_verdict v = {.action = API_ACTION_SYNC_JOB};

    if ((r->owner[0] && !hk_str_is(job->meta.uid, r->owner)) || r->version < job->version) {
        return v; /* from an earlier job of that name, or from an old generation */
    }
    if (r->forced) {
        v.action = r->action;
    } else if (is_internal(r->event)) {
        return v;
    } else if (!task || !choose_action_by(task->policies.at, task->policies.len, r, &v)) {
        (void)choose_action_by(job->policies.at, job->policies.len, r, &v);
    }
    return v;
}

/* ---- delayed actions ---- */

bool job_delay_arm(struct job_mem *mem, const struct job_request *r, struct job_verdict v,
                   int64_t due_ns)
{
    struct job_delay d = {.due_ns = due_ns};

    for (uint32_t i = 0; i < mem->delays.len; i++) {
        struct job_delay *old = &mem->delays.at[i];

        if (strcmp(old->r.pod, r->pod) != 0) {
            continue;
        }
        if (old->r.action == v.action) {
            return false;
        }
        job_request_fini(&old->r);
        hk_vec_swap_remove(&mem->delays, i);
        break;
    }
    d.r = job_request_copy(r);
    d.r.action = v.action;
    d.r.forced = true;
    hk_vec_push(&mem->delays, d);
    return true;
}

static void disarm(struct job_mem *mem, uint32_t i)
{
    job_request_fini(&mem->delays.at[i].r);
    hk_vec_swap_remove(&mem->delays, i);
}

void job_delay_pod_moved(struct job_mem *mem, enum api_job_event event, struct hk_str pod,
                         struct hk_str uid)
{
    for (uint32_t i = mem->delays.len; i-- > 0;) {
        const struct job_request *r = &mem->delays.at[i].r;
        const bool same_pod = hk_str_is(pod, r->pod);
        const bool same_uid = same_pod && hk_str_is(uid, r->pod_uid);

        if ((r->event == API_EVENT_POD_PENDING && same_uid && event != API_EVENT_POD_PENDING) ||
            ((r->event == API_EVENT_POD_FAILED || r->event == API_EVENT_POD_EVICTED) && same_pod &&
             event == API_EVENT_POD_RUNNING)) {
            disarm(mem, i);
        }
    }
}

static bool is_in_scope(enum api_job_action action, const struct job_request *done,
                        const struct job_request *r)
{
    switch (action) {
    case API_ACTION_RESTART_TASK:
        return strcmp(done->task, r->task) == 0;
    case API_ACTION_RESTART_POD:
        return strcmp(done->pod, r->pod) == 0;
    case API_ACTION_RESTART_PARTITION:
        return strcmp(done->task, r->task) == 0 && strcmp(done->partition, r->partition) == 0;
    default:
        return true;
    }
}

void job_delay_done(struct job_mem *mem, enum api_job_action action, const struct job_request *r)
{
    for (uint32_t i = mem->delays.len; i-- > 0;) {
        if (is_in_scope(action, r, &mem->delays.at[i].r)) {
            disarm(mem, i);
        }
    }
}

/* ---- events from changes ---- */

static bool job_event_has_policy(const struct job_digest *jd, enum api_job_event event)
{
    return (jd->events & (1u << event | 1u << API_EVENT_ANY)) != 0 ||
           (event == API_EVENT_POD_FAILED && jd->by_exit_code);
}

static void job_event_add_request(struct job_mem *mem, enum api_job_event event,
                                  const struct pod_digest *d, struct hk_str pod, struct hk_str uid,
                                  int64_t at_ns)
{
    hk_vec_push(&mem->requests,
                (struct job_request){.event = event,
                                     .preempted = d->evicted,
                                     .version = d->version,
                                     .exit_code = event == API_EVENT_POD_FAILED ? d->exit_code : 0,
                                     .at_ns = at_ns,
                                     .task = hk_strdup(d->task),
                                     .pod = job_event_copy_str(pod),
                                     .pod_uid = job_event_copy_str(uid),
                                     .partition = hk_strdup(d->partition),
                                     .owner = hk_strdup(d->owner)});
}

/* TaskCompleted and TaskFailed depend on the whole task: event_of returns them whenever they may be
 * true, and job_event_holds checks the rest. */
static enum api_job_event event_of(const struct pod_digest *old, const struct pod_digest *now)
{
    if (!now) {
        return old->out_of_sync ? API_EVENT_OUT_OF_SYNC : API_EVENT_POD_EVICTED;
    }
    if (now->out_of_sync) {
        return API_EVENT_OUT_OF_SYNC;
    }
    if (old && old->phase == now->phase) {
        return now->phase == POD_RUNNING || now->phase == POD_PENDING ? API_EVENT_TASK_FAILED
                                                                      : API_EVENT_OUT_OF_SYNC;
    }
    switch (now->phase) {
    case POD_FAILED:
        /* A pod can fail because it is being deleted: the deletion is the event. */
        return now->terminating ? API_EVENT_OUT_OF_SYNC : API_EVENT_POD_FAILED;
    case POD_SUCCEEDED:
        return API_EVENT_TASK_COMPLETED;
    case POD_RUNNING:
        return API_EVENT_POD_RUNNING;
    case POD_PENDING:
        return API_EVENT_POD_PENDING;
    default:
        return API_EVENT_OUT_OF_SYNC;
    }
}

/* A container restarted while the pod's phase changed: report a possible TaskFailed too. */
static bool hides_task_failure(enum api_job_event event, const struct pod_digest *old,
                               const struct pod_digest *now)
{
    return (event == API_EVENT_POD_RUNNING || event == API_EVENT_POD_PENDING) &&
           now->restarts > (old ? old->restarts : 0);
}

void job_event_pod(struct job_mem *mem, const struct job_digest *jd, const struct mirror_change *ch,
                   int64_t now_ns)
{
    const struct pod_digest *now = ch->now, *d = now ? now : ch->old;
    const struct hk_str pod = mirror_name(ch->mirror, ch->row);
    const struct hk_str uid = mirror_uid(ch->mirror, ch->row);
    const enum api_job_event event = event_of(ch->old, now);

    if (event != API_EVENT_TASK_FAILED) {
        job_delay_pod_moved(mem, event, pod, uid);
    }
    if (!is_internal(event) && job_event_has_policy(jd, event)) {
        job_event_add_request(mem, event, d, pod, uid,
                              event == API_EVENT_POD_PENDING ? d->created_ns : now_ns);
    }
    if (hides_task_failure(event, ch->old, now) &&
        job_event_has_policy(jd, API_EVENT_TASK_FAILED)) {
        job_event_add_request(mem, API_EVENT_TASK_FAILED, d, pod, uid, now_ns);
    }
}

/* ---- in a pass ---- */

/* Sums over the pods of a task: succeeded pods, and container restarts of pods that have not
 * ended. */
struct task_sums {
    int32_t succeeded;
    int64_t restarts;
};

static struct task_sums sum_task(const struct job_pass *p, const char *task)
{
    struct task_sums s = {0};

    for (uint32_t r = job_first_pod(p); r != HK_NONE; r = job_next_pod(p, r)) {
        const struct pod_digest *d = job_pod(p, r);

        if (strcmp(d->task, task) == 0) {
            s.succeeded += d->phase == POD_SUCCEEDED;
            s.restarts += d->phase == POD_RUNNING || d->phase == POD_PENDING ? d->restarts : 0;
        }
    }
    return s;
}

static bool is_seen_to(const struct job_pass *p, const struct job_request *r)
{
    const uint32_t row = r->pod[0] ? mirror_find(p->pods, p->job.meta.ns, hk_str(r->pod)) : HK_NONE;

    return row != HK_NONE &&
           (!hk_str_is(mirror_uid(p->pods, row), r->pod_uid) || job_pod(p, row)->out_of_sync);
}

bool job_event_holds(const struct job_pass *p, const struct job_request *r)
{
    const struct api_job_task *task = api_job_task_find(&p->job, hk_str(r->task));

    if (is_seen_to(p, r)) {
        return false;
    }
    if (r->forced || (r->event != API_EVENT_TASK_COMPLETED && r->event != API_EVENT_TASK_FAILED)) {
        return true;
    }
    if (!task || task->replicas == 0) {
        return false;
    }
    if (r->event == API_EVENT_TASK_COMPLETED) {
        return sum_task(p, r->task).succeeded >= task->replicas;
    }
    return task->max_retry >= 0 && sum_task(p, r->task).restarts >=
                                       (task->max_retry > 0 ? task->max_retry : TASK_RETRY_DEFAULT);
}

static enum api_job_event event_of_state(const struct pod_digest *d)
{
    switch (d->phase) {
    case POD_FAILED:
        return API_EVENT_POD_FAILED;
    case POD_SUCCEEDED:
        return API_EVENT_TASK_COMPLETED;
    case POD_PENDING:
        return API_EVENT_POD_PENDING;
    default:
        return API_EVENT_TASK_FAILED;
    }
}

static void derive_pods(struct job_pass *p)
{
    for (uint32_t r = job_first_pod(p); r != HK_NONE; r = job_next_pod(p, r)) {
        const struct pod_digest *d = job_pod(p, r);

        if (!d->terminating && !d->out_of_sync && !job_pod_must_go(p, r)) {
            job_event_add_request(
                p->mem, event_of_state(d), d, mirror_name(p->pods, r), mirror_uid(p->pods, r),
                d->phase == POD_PENDING ? d->created_ns : HK_MAX(d->end_ns, d->created_ns));
        }
    }
}

/* Number of pods in the status that no longer exist: they went while no controller ran. */
static int64_t count_lost(const struct job_pass *p, const struct api_job_task *task)
{
    const struct json *phases =
        json_get(json_get_str(json_at(p->root, "status.taskStatusCount"), task->name), "phase");
    int64_t lost = 0;

    for (uint32_t i = 0; json_is(phases, JSON_OBJECT) && i < phases->len; i++) {
        lost += json_int(&phases->members[i].value, 0);
    }
    for (uint32_t r = job_first_pod(p); r != HK_NONE; r = job_next_pod(p, r)) {
        const struct pod_digest *d = job_pod(p, r);

        lost -= hk_str_is(task->name, d->task);
    }
    return lost;
}

static void ask_lost(struct job_pass *p, const struct api_job_task *task, int32_t index,
                     bool preempted)
{
    const struct hk_str name = job_pod_name(&p->job, task, index, p->t->mem);
    char partition[16] = "";

    if (task->partition.present) {
        snprintf(partition, sizeof(partition), "%d",
                 task->partition.size > 0 ? index / task->partition.size : 0);
    }
    hk_vec_push(&p->mem->requests,
                (struct job_request){.event = API_EVENT_POD_EVICTED,
                                     .preempted = preempted,
                                     .version = p->job.version,
                                     .at_ns = p->t->now_ns,
                                     .task = job_event_copy_str(task->name),
                                     .pod = job_event_copy_str(name),
                                     .pod_uid = hk_strdup(""),
                                     .partition = hk_strdup(partition),
                                     .owner = job_event_copy_str(p->job.meta.uid)});
}

/* Another party was deleting the pod when the status was written, and now it is gone. */
static void derive_taken(struct job_pass *p, const struct json *attempt)
{
    const struct hk_str reason = json_str(json_get(attempt, "reason"), HK_STR(""));
    const struct api_job_task *task =
        api_job_task_find(&p->job, json_str(json_get(attempt, "task"), HK_STR("")));

    if (task && job_record_is_lost(p, attempt) && !hk_str_is(reason, "Stopped")) {
        ask_lost(p, task, (int32_t)json_int(json_get(attempt, "index"), 0),
                 hk_str_is(reason, "Preempted"));
    }
}

/* A deleted pod was created again and does not run yet: a delayed policy continues to wait, from
 * the end of the first pod. A new pod created after the delay means that the policy has already
 * acted. */
static void derive_wait(struct job_pass *p, const struct json *attempt)
{
    const struct hk_str reason = json_str(json_get(attempt, "reason"), HK_STR(""));
    const struct hk_str pod = json_str(json_get(attempt, "pod"), HK_STR(""));
    const uint32_t row = mirror_find(p->pods, p->job.meta.ns, pod);
    const struct pod_digest *d = row != HK_NONE ? job_pod(p, row) : NULL;
    struct job_request r = {.event = API_EVENT_POD_EVICTED};
    struct job_verdict v;

    if (!d || !d->of_job || d->phase != POD_PENDING || d->terminating ||
        time_parse(json_str(json_get(attempt, "endTime"), HK_STR("")), &r.at_ns, NULL) < 0 ||
        json_int(json_get(attempt, "version"), -1) != d->version ||
        (!hk_str_is(reason, "Preempted") && !hk_str_is(reason, "Deleted"))) {
        return;
    }
    r.version = d->version;
    r.task = d->task;
    r.owner = d->owner;
    v = job_choose_action(&p->job, &r);
    if (v.delayed && d->created_ns < r.at_ns + v.delay_ns) {
        job_event_add_request(p->mem, r.event, d, pod, mirror_uid(p->pods, row), r.at_ns);
        p->mem->requests.at[p->mem->requests.len - 1].preempted = hk_str_is(reason, "Preempted");
    }
}

static void derive_lost(struct job_pass *p, const struct api_job_task *task)
{
    int64_t lost = count_lost(p, task);

    for (int32_t i = 0; i < task->replicas && lost > 0; i++) {
        const struct hk_str name = job_pod_name(&p->job, task, i, p->t->mem);

        if (mirror_find(p->pods, p->job.meta.ns, name) == HK_NONE) {
            ask_lost(p, task, i, false);
            lost--;
        }
    }
}

void job_event_derive(struct job_pass *p)
{
    const enum api_job_phase phase = p->job.phase;
    const struct json *attempts = json_at(p->root, "status.attempts");

    if (phase != API_JOB_PENDING && phase != API_JOB_RUNNING && phase != API_JOB_RESTARTING) {
        return;
    }
    derive_pods(p);
    if (phase == API_JOB_RESTARTING) {
        return; /* missing pods were deleted on purpose */
    }
    for (uint32_t i = 0; json_is(attempts, JSON_ARRAY) && i < attempts->len; i++) {
        derive_taken(p, &attempts->items[i]);
        derive_wait(p, &attempts->items[i]);
    }
    for (uint32_t i = 0; i < p->job.tasks.len; i++) {
        derive_lost(p, &p->job.tasks.at[i]);
    }
}
