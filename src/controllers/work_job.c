// SPDX-License-Identifier: Apache-2.0
// batch/v1 Jobs: runs pods until enough have succeeded or too many have failed. A pass performs the
// first of these steps that has something to do:
//
//   remove finalizers of pods whose end is recorded -> delete or create pods -> write the status
//
// A job that ends first gets a condition (SuccessCriteriaMet, FailureTarget), then loses its
// remaining pods, and is Complete or Failed when the last pod is gone and counted. A large job
// creates its pods as they can be placed (pod_window.h).
#include "controllers/keymem.h"
#include "controllers/table.h"
#include "controllers/work_job_priv.h"

static const struct hk_str none = {"", 0};

#define BACKOFF_NS (10 * WORK_SECOND_NS)
#define BACKOFF_MAX_NS (360 * WORK_SECOND_NS)

static void batch_job_on_pod_change(struct ctl *c, const struct mirror_change *ch)
{
    work_pod_changed(c, ch, API_BATCH_JOB);
}

static void bjob_group_changed(struct ctl *c, const struct mirror_change *ch)
{
    work_group_changed(c, ch, API_BATCH_JOB);
}

/* ---- success and failure ---- */

static int64_t start_ns(const struct bjob_pass *p)
{
    return work_time_of(json_get(p->status, "startTime"));
}

static bool is_past_deadline(struct bjob_pass *p)
{
    const int64_t deadline_s = json_int(json_get(p->spec, "activeDeadlineSeconds"), -1);
    const int64_t end_ns = start_ns(p) + hk_seconds_ns(deadline_s);

    if (deadline_s < 0 || p->suspended || start_ns(p) == 0) {
        return false;
    }
    if (p->t->now_ns < end_ns) {
        pass_again_at(p->t, end_ns);
        return false;
    }
    return true;
}

static bool is_past_backoff(const struct bjob_pass *p)
{
    const int64_t limit = json_int(json_get(p->spec, "backoffLimit"), 6);
    int64_t restarts = 0;

    if (p->failed > limit) {
        return true;
    }
    if (!hk_str_is(json_str(json_at(p->spec, "template.spec.restartPolicy"), none), "OnFailure")) {
        return false;
    }
    for (uint32_t i = 0; i < p->pods.len; i++) {
        restarts += p->states[i] == BJOB_POD_ACTIVE ? p->pods.at[i].d->restarts : 0;
    }
    return limit == 0 ? restarts > 0 : restarts >= limit;
}

static bool is_enough(const struct bjob_pass *p)
{
    return p->completions < 0 ? p->succeeded > 0 && p->active == 0 : p->succeeded >= p->completions;
}

/* An earlier verdict, from the conditions, is final. */
static bool recorded_verdict(struct bjob_pass *p)
{
    const bool failed = work_condition_is(p->status, "FailureTarget", "True");
    const struct json *cond =
        work_condition(p->status, failed ? "FailureTarget" : "SuccessCriteriaMet");

    if (!failed && !work_condition_is(p->status, "SuccessCriteriaMet", "True")) {
        return false;
    }
    p->verdict = (struct bjob_verdict){
        .failed = failed,
        .reason = hk_arena_str(p->t->mem, json_str(json_get(cond, "reason"), none)).s,
        .message = json_str(json_get(cond, "message"), none)};
    return true;
}

static void batch_job_check_finished(struct bjob_pass *p)
{
    if (p->verdict.reason) {
        return; /* set by the failure policy */
    }
    if (is_past_backoff(p)) {
        p->verdict = (struct bjob_verdict){true, "BackoffLimitExceeded",
                                           HK_STR("Job has reached the specified backoff limit")};
    } else if (is_past_deadline(p)) {
        p->verdict = (struct bjob_verdict){true, "DeadlineExceeded",
                                           HK_STR("Job was active longer than specified deadline")};
    } else if (is_enough(p) && !p->suspended) {
        p->verdict = (struct bjob_verdict){false, "CompletionsReached",
                                           HK_STR("Reached expected number of succeeded pods")};
    }
}

/* ---- pods to delete ---- */

/* A pod deleted here must not count as failed: first remove its finalizer, then delete it. */
static void batch_job_release_or_delete(struct bjob_pass *p, const struct work_pod *pod)
{
    if (pod->d->tracked) {
        bjob_release_pod(p->t, work_pod_name(p->t, pod));
    } else {
        (void)work_delete_pod(p->t, p->root, pod);
    }
}

/* If the job failed, its active pods count as failed too, so they keep their finalizers. */
static void delete_active(struct bjob_pass *p)
{
    for (uint32_t i = 0; i < p->pods.len; i++) {
        if (p->states[i] != BJOB_POD_ACTIVE) {
            continue;
        }
        if (p->verdict.reason && p->verdict.failed) {
            (void)work_delete_pod(p->t, p->root, &p->pods.at[i]);
        } else {
            batch_job_release_or_delete(p, &p->pods.at[i]);
        }
    }
}

/* Deletes active pods without the finalizer, whoever removed it. */
static void delete_dismissed(struct bjob_pass *p)
{
    for (uint32_t i = 0; i < p->pods.len; i++) {
        if (p->states[i] == BJOB_POD_ACTIVE && !p->pods.at[i].d->tracked) {
            (void)work_delete_pod(p->t, p->root, &p->pods.at[i]);
        }
    }
}

/* Keeps one active pod per wanted index and deletes the others. */
static void delete_surplus_indexes(struct bjob_pass *p)
{
    bool *seen = hk_arena_zalloc(p->t->mem, (size_t)p->completions + 1);

    for (uint32_t i = 0; i < p->pods.len; i++) {
        const int32_t index = p->pods.at[i].d->index;

        if (p->states[i] != BJOB_POD_ACTIVE) {
            continue;
        }
        if (index < 0 || index >= p->completions || p->done[index] || seen[index]) {
            batch_job_release_or_delete(p, &p->pods.at[i]);
        } else {
            seen[index] = true;
        }
    }
}

static void delete_surplus(struct bjob_pass *p, int64_t less)
{
    struct work_pods active = {.at = hk_arena_array(p->t->mem, p->pods.len, sizeof(*active.at))};

    for (uint32_t i = 0; i < p->pods.len; i++) {
        if (p->states[i] == BJOB_POD_ACTIVE) {
            active.at[active.len++] = p->pods.at[i];
        }
    }
    work_pods_rank(&active);
    for (int64_t i = 0; i < less; i++) {
        batch_job_release_or_delete(p, &active.at[i]);
    }
}

/* ---- pods to create ---- */

/* When this controller noticed the last failure. The time in the pod may come from another
 * machine's clock, or from before a change of ours. */
struct bjob_notice {
    int64_t end_ns;     /* the time in the pod */
    int64_t noticed_ns; /* monotonic */
};

struct bjob_state {
    struct keymem notices;
};

static int64_t bjob_since_failure_ns(const struct bjob_pass *p, int64_t end_ns)
{
    struct bjob_state *s = p->t->c->state;
    struct bjob_notice *n = keymem_get(&s->notices, p->t->ns, p->t->name);
    const int64_t told_ns = p->t->now_ns - end_ns;

    if (n->end_ns != end_ns) {
        *n = (struct bjob_notice){.end_ns = end_ns, .noticed_ns = ctl_mono(p->t->c)};
    }
    return HK_MAX(told_ns, ctl_mono(p->t->c) - n->noticed_ns);
}

/* The delay doubles with each failure after the last success. */
static bool is_backing_off(struct bjob_pass *p)
{
    int64_t last_success_ns = 0, last_ns = 0, wait_ns = BACKOFF_NS / 2;

    for (uint32_t i = 0; i < p->pods.len; i++) {
        if (p->states[i] == BJOB_POD_SUCCEEDED) {
            last_success_ns = HK_MAX(last_success_ns, p->pods.at[i].d->end_ns);
        }
    }
    for (uint32_t i = 0; i < p->pods.len; i++) {
        const struct pod_digest *d = p->pods.at[i].d;

        if (p->states[i] == BJOB_POD_FAILED && d->end_ns > last_success_ns) {
            wait_ns = HK_MIN(2 * wait_ns, BACKOFF_MAX_NS);
            last_ns = HK_MAX(last_ns, d->end_ns);
        }
    }
    if (last_ns == 0) {
        return false;
    }
    wait_ns -= bjob_since_failure_ns(p, last_ns);
    if (wait_ns <= 0) {
        return false;
    }
    pass_again_at(p->t, p->t->now_ns + wait_ns);
    return true;
}

static void put_tracking(struct json *pod, struct hk_arena *a)
{
    struct json *meta = json_need(pod, a, "metadata", JSON_OBJECT);

    json_push(json_need(meta, a, "finalizers", JSON_ARRAY), a,
              json_make_str(HK_STR(API_JOB_TRACKING)));
}

static void put_env(struct json *container, struct hk_arena *a)
{
    struct json *env = json_need(container, a, "env", JSON_ARRAY);
    struct json ref = json_make_object(), from = json_make_object(), var = json_make_object();

    for (uint32_t i = 0; i < env->len; i++) {
        if (hk_str_is(json_str(json_get(&env->items[i], "name"), none), "JOB_COMPLETION_INDEX")) {
            return;
        }
    }
    json_set_cstr(&ref, a, "fieldPath", "metadata.labels['" API_KEY_COMPLETION_INDEX "']");
    json_set(&from, a, "fieldRef", ref);
    json_set_cstr(&var, a, "name", "JOB_COMPLETION_INDEX");
    json_set(&var, a, "valueFrom", from);
    json_push(env, a, var);
}

static void put_index(struct bjob_pass *p, struct json *pod, int64_t index)
{
    static const char *const lists[] = {"containers", "initContainers"};
    struct hk_arena *a = p->t->mem;
    const struct hk_str text = hk_str(hk_arena_printf(a, "%lld", (long long)index));
    struct json *spec = (struct json *)json_get(pod, "spec");

    work_label(pod, a, API_KEY_COMPLETION_INDEX, text);
    work_annotate(pod, a, API_KEY_COMPLETION_INDEX, text);
    json_set_cstr(spec, a, "hostname",
                  hk_arena_printf(a, "%.*s-%lld", HK_FMT(p->t->name), (long long)index));
    for (uint32_t k = 0; k < HK_LEN(lists); k++) {
        const struct json *list = json_get(spec, lists[k]);

        for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
            put_env(&list->items[i], a);
        }
    }
}

static bool create_pod(struct bjob_pass *p, int64_t index, uint32_t *n)
{
    struct hk_arena *a = p->t->mem;
    struct hk_str base = p->t->name;
    struct json pod;

    if (p->indexed) {
        base = hk_str(hk_arena_printf(a, "%.*s-%lld", HK_FMT(base), (long long)index));
    }
    pod = work_pod(p->t, p->root, json_get(p->spec, "template"),
                   work_fresh_name(p->t, p->root, base, n));
    work_label(&pod, a, API_KEY_BATCH_JOB_NAME, p->t->name);
    work_label(&pod, a, "job-name", p->t->name);
    work_label(&pod, a, "batch.kubernetes.io/controller-uid", work_uid(p->root));
    work_label(&pod, a, "controller-uid", work_uid(p->root));
    put_tracking(&pod, a);
    if (p->indexed) {
        put_index(p, &pod, index);
    }
    return work_create_pod(p->t, p->root, &pod);
}

static void create_indexes(struct bjob_pass *p, int64_t more)
{
    bool *taken = hk_arena_zalloc(p->t->mem, (size_t)p->completions + 1);

    for (uint32_t i = 0; i < p->pods.len; i++) {
        const int32_t index = p->pods.at[i].d->index;
        const bool waits = p->states[i] == BJOB_POD_ENDING && p->replaces_failed_only;

        if ((p->states[i] == BJOB_POD_ACTIVE || waits) && index >= 0 && index < p->completions) {
            taken[index] = true;
        }
    }
    for (int64_t i = 0; i < p->completions && more > 0; i++) {
        uint32_t n = (uint32_t)i << 8; /* so that the name suffixes differ too */

        if (!p->done[i] && !taken[i]) {
            if (!create_pod(p, i, &n)) {
                return;
            }
            more--;
        }
    }
}

static void create_pods(struct bjob_pass *p, int64_t more)
{
    uint32_t n = 0;

    more = HK_MIN(more, work_create_limit(p->t));
    if (more <= 0 || is_backing_off(p)) {
        return;
    }
    if (p->indexed) {
        create_indexes(p, more);
        return;
    }
    for (int64_t i = 0; i < more; i++) {
        if (!create_pod(p, 0, &n)) {
            return;
        }
    }
}

/* Without completions, the first success means that the work is done: no more pods are created, not
 * even those held back by the window. */
static int64_t want_active(const struct bjob_pass *p)
{
    if (p->completions < 0) {
        return p->succeeded > 0 ? HK_MIN(p->active, p->parallelism) : p->parallelism;
    }
    return HK_MIN(p->parallelism, HK_MAX(p->completions - p->succeeded, 0));
}

static void manage(struct bjob_pass *p)
{
    const int64_t want = want_active(p);

    if (p->suspended || p->verdict.reason) {
        delete_active(p);
        return;
    }
    delete_dismissed(p);
    if (p->t->ncall == 0 && p->indexed) {
        delete_surplus_indexes(p);
    }
    if (p->t->ncall > 0) {
        return;
    }
    if (p->active > want) {
        delete_surplus(p, p->active - want);
    } else {
        create_pods(p, work_window_room(p->t, p->root, &p->pods, want,
                                        p->active + (p->replaces_failed_only ? p->ending : 0)));
    }
}

/* ---- status ---- */

static void batch_job_set_condition(struct bjob_pass *p, struct json *status, const char *type,
                                    const char *value, const char *reason, struct hk_str message)
{
    work_set_condition(p->t, status,
                       &(struct work_condition){.type = type,
                                                .status = value,
                                                .reason = reason,
                                                .message = message,
                                                .stamp = "lastProbeTime"});
}

/* activeDeadlineSeconds counts from the resumption of a suspended job. */
static void put_suspension(struct bjob_pass *p, struct json *status)
{
    const bool was = work_condition_is(status, "Suspended", "True");

    if (p->suspended) {
        json_del(status, "startTime");
        batch_job_set_condition(p, status, "Suspended", "True", "JobSuspended",
                                HK_STR("Job suspended"));
    } else if (was) {
        batch_job_set_condition(p, status, "Suspended", "False", "JobResumed",
                                HK_STR("Job resumed"));
    }
    if (!p->suspended && !json_get(status, "startTime")) {
        json_set_time(status, p->t->mem, "startTime", p->t->now_ns);
    }
}

static bool batch_job_is_over(const struct bjob_pass *p)
{
    return p->verdict.reason && p->active == 0 && p->ending == 0 && p->left_failed.len == 0 &&
           p->left_succeeded.len == 0;
}

static void put_end(struct bjob_pass *p, struct json *status)
{
    const struct bjob_verdict *v = &p->verdict;

    if (!v->reason) {
        return;
    }
    batch_job_set_condition(p, status, v->failed ? "FailureTarget" : "SuccessCriteriaMet", "True",
                            v->reason, v->message);
    if (!batch_job_is_over(p)) {
        return;
    }
    batch_job_set_condition(p, status, v->failed ? "Failed" : "Complete", "True", v->reason,
                            v->message);
    if (!v->failed) {
        json_set_time(status, p->t->mem, "completionTime", p->t->now_ns);
    }
}

static void batch_job_report_events(struct bjob_pass *p, const struct json *old,
                                    const struct json *now)
{
    const bool is_suspended = work_condition_is(now, "Suspended", "True");

    if (is_suspended != work_condition_is(old, "Suspended", "True")) {
        pass_event(p->t, p->root, false, is_suspended ? "Suspended" : "Resumed", "Job %s",
                   is_suspended ? "suspended" : "resumed");
    }
    if (work_condition_is(now, "Complete", "True")) {
        pass_event(p->t, p->root, false, "Completed", "Job completed");
    } else if (work_condition_is(now, "Failed", "True")) {
        pass_event(p->t, p->root, true, p->verdict.reason, "%.*s", HK_FMT(p->verdict.message));
    }
}

static void batch_job_write_status(struct bjob_pass *p)
{
    const struct json old = work_status(p->t, p->root);
    struct json status = work_status(p->t, p->root);

    bjob_put_counts(p, &status);
    put_suspension(p, &status);
    put_end(p, &status);
    if (work_write_status(p->t, API_BATCH_JOB, p->root, status)) {
        batch_job_report_events(p, &old, &status);
    }
}

/* ---- finished jobs ---- */

/* Removes finalizers from pods that no job counts any more: pods of a deleted job of the same name
 * and, if this job has ended, its own ended pods. */
static void release_rest(struct pass *t, struct hk_str uid, bool has_ended)
{
    const struct mirror *m = ctl_mirror(t->c, API_POD);

    for (uint32_t r = mirror_first(m, PODS_BY_TRACKER, t->name); r != HK_NONE;
         r = mirror_next(m, PODS_BY_TRACKER, r)) {
        const struct pod_digest *d = mirror_digest(m, r);

        if (hk_str_eq(mirror_ns(m, r), t->ns) && d->workload == API_BATCH_JOB &&
            (!hk_str_is(uid, d->owner) || (has_ended && !work_pod_is_active(d)))) {
            bjob_release_pod(t, mirror_name(m, r));
        }
    }
}

static void batch_job_delete_after_ttl(struct bjob_pass *p, const char *condition)
{
    const int64_t ttl_s = json_int(json_get(p->spec, "ttlSecondsAfterFinished"), -1);
    const struct json *cond = work_condition(p->status, condition);
    const int64_t at_ns = work_time_of(json_get(cond, "lastTransitionTime")) + hk_seconds_ns(ttl_s);

    if (ttl_s < 0) {
        return;
    }
    if (p->t->now_ns < at_ns) {
        pass_again_at(p->t, at_ns);
        return;
    }
    pass_delete(p->t, api_kind(API_BATCH_JOB), p->t->ns, p->t->name, work_uid(p->root),
                PORT_PROPAGATE_FOREGROUND);
}

/* ---- one pass ---- */

static void read_spec(struct bjob_pass *p)
{
    const struct json *replacement = json_get(p->spec, "podReplacementPolicy");

    p->parallelism = json_int(json_get(p->spec, "parallelism"), 1);
    p->completions = json_int(json_get(p->spec, "completions"), -1);
    if (p->completions < 0 && !json_get(p->spec, "parallelism")) {
        p->completions = 1;
    }
    p->indexed = p->completions >= 0 &&
                 hk_str_is(json_str(json_get(p->spec, "completionMode"), none), "Indexed");
    p->suspended = json_bool(json_get(p->spec, "suspend"), false);
    p->replaces_failed_only = replacement ? hk_str_is(json_str(replacement, none), "Failed")
                                          : json_get(p->spec, "podFailurePolicy") != NULL;
}

static bool is_managed_by_us(const struct json *spec)
{
    const struct hk_str by = json_str(json_get(spec, "managedBy"), none);

    return by.n == 0 || hk_str_is(by, "kubernetes.io/job-controller");
}

static void batch_job_reconcile(struct ctl *c, struct pass *t)
{
    struct json root;
    struct bjob_pass p = {.t = t, .root = &root};
    bool first;

    if (!work_find(t, API_BATCH_JOB, &root) || work_is_going(&root)) {
        keymem_forget(&((struct bjob_state *)c->state)->notices, t->ns, t->name);
        release_rest(t, none, true);
        return;
    }
    p.spec = json_get(&root, "spec");
    p.status = json_get(&root, "status");
    if (!is_managed_by_us(p.spec)) {
        return;
    }
    if (work_condition_is(p.status, "Complete", "True") ||
        work_condition_is(p.status, "Failed", "True")) {
        keymem_forget(&((struct bjob_state *)c->state)->notices, t->ns, t->name);
        release_rest(t, work_uid(&root), true);
        batch_job_delete_after_ttl(&p, work_condition_is(p.status, "Failed", "True") ? "Failed"
                                                                                     : "Complete");
        return;
    }
    read_spec(&p);
    p.pods = work_pods(t, &root);
    first = !recorded_verdict(&p);
    bjob_count(&p);
    batch_job_check_finished(&p);
    (void)work_report(t, &root);
    release_rest(t, work_uid(&root), false);
    if (bjob_release(&p)) {
        return;
    }
    /* First write the condition that the job ends, then delete its pods. */
    if (!p.verdict.reason || !first) {
        manage(&p);
    }
    if (t->ncall == 0 || t->nerror > 0) {
        batch_job_write_status(&p);
    }
}

static void bjob_open(struct ctl *c)
{
    keymem_init(&((struct bjob_state *)c->state)->notices, c, sizeof(struct bjob_notice), NULL);
}

static void bjob_close(struct ctl *c)
{
    keymem_fini(&((struct bjob_state *)c->state)->notices);
}

static const struct ctl_watch watches[] = {{&mirror_batch_jobs, work_changed},
                                           {&mirror_pods, batch_job_on_pod_change},
                                           {&mirror_podgroups, bjob_group_changed},
                                           {0}};

const struct ctl_type ctl_work_job = {.name = "batch-job-controller",
                                      .about = "runs pods to completion",
                                      .watches = watches,
                                      .state_size = sizeof(struct bjob_state),
                                      .open = bjob_open,
                                      .close = bjob_close,
                                      .reconcile = batch_job_reconcile};
