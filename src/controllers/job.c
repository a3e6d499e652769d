// SPDX-License-Identifier: Apache-2.0
// The job controller: which changes concern a job, and one pass over it. A pass handles the first
// of these: a Command; a request for which a policy has an action; else the next step of the phase.
// An action is one status write with the new phase and the action's target; later passes delete the
// pods (job_kill.c).
#include "api/names.h"
#include "codec/timefmt.h"
#include "controllers/job_priv.h"
#include "controllers/table.h"

static const struct hk_str none = {"", 0};

struct job_state {
    HK_VEC(struct job_mem *) mems;
    HK_VEC(uint32_t) vacant;
    struct hk_map at;        /* names to mem */
    struct hk_map queueless; /* names of jobs whose queue does not exist yet */
};

/* ---- memory ---- */

static void mem_clear(struct job_mem *mem)
{
    uint32_t nplugin;

    for (uint32_t i = 0; i < mem->requests.len; i++) {
        job_request_fini(&mem->requests.at[i]);
    }
    for (uint32_t i = 0; i < mem->delays.len; i++) {
        job_request_fini(&mem->delays.at[i].r);
    }
    for (uint32_t i = 0; i < mem->ended.len; i++) {
        job_attempt_fini(&mem->ended.at[i]);
    }
    (void)job_plugins(&nplugin);
    for (uint32_t i = 0; mem->objects && i < nplugin * JOB_OBJECTS_MAX; i++) {
        ensured_fini(&mem->objects[i]);
    }
    for (uint32_t i = 0; i < mem->nclaim; i++) {
        ensured_fini(&mem->claims[i]);
    }
    hk_vec_fini(&mem->requests);
    hk_vec_fini(&mem->delays);
    hk_vec_fini(&mem->ended);
    hk_free(mem->objects);
    hk_free(mem->claims);
    hk_free(mem->uid);
    *mem = (struct job_mem){.ns = mem->ns, .name = mem->name};
}

static uint64_t job_intern_key(uint32_t ns, uint32_t name)
{
    return (uint64_t)ns << 32 | name;
}

static struct job_mem *mem_find(struct ctl *c, struct hk_str ns, struct hk_str name)
{
    const struct job_state *s = c->state;
    const uint32_t a = hk_intern_find(ctl_strings(c), ns), b = hk_intern_find(ctl_strings(c), name);
    const uint32_t at =
        a == HK_NONE || b == HK_NONE ? HK_NONE : hk_map_get(&s->at, job_intern_key(a, b));

    return at == HK_NONE ? NULL : s->mems.at[at];
}

static struct job_mem *mem_get(struct ctl *c, struct hk_str ns, struct hk_str name)
{
    struct job_state *s = c->state;
    struct job_mem *mem = mem_find(c, ns, name);
    uint32_t at;

    if (mem) {
        return mem;
    }
    mem = hk_zalloc(sizeof(*mem));
    mem->ns = hk_intern_hold(ctl_strings(c), ns);
    mem->name = hk_intern_hold(ctl_strings(c), name);
    if (s->vacant.len > 0) {
        at = hk_vec_pop(&s->vacant);
        s->mems.at[at] = mem;
    } else {
        at = s->mems.len;
        hk_vec_push(&s->mems, mem);
    }
    hk_map_put(&s->at, job_intern_key(mem->ns, mem->name), at);
    return mem;
}

static void mem_forget(struct ctl *c, struct job_mem *mem)
{
    struct job_state *s = c->state;
    const uint64_t key = job_intern_key(mem->ns, mem->name);
    const uint32_t at = hk_map_get(&s->at, key);

    hk_map_del(&s->at, key);
    (void)hk_map_del(&s->queueless, key);
    s->mems.at[at] = NULL;
    hk_vec_push(&s->vacant, at);
    mem_clear(mem);
    hk_intern_drop(ctl_strings(c), mem->ns);
    hk_intern_drop(ctl_strings(c), mem->name);
    hk_free(mem);
}

static void job_close(struct ctl *c)
{
    struct job_state *s = c->state;

    for (uint32_t i = 0; i < s->mems.len; i++) {
        if (s->mems.at[i]) {
            mem_forget(c, s->mems.at[i]);
        }
    }
    hk_vec_fini(&s->mems);
    hk_vec_fini(&s->vacant);
    hk_map_fini(&s->queueless);
    hk_map_fini(&s->at);
}

/* ---- which keys a change concerns ---- */

static void job_on_job_change(struct ctl *c, const struct mirror_change *ch)
{
    ctl_add(c, mirror_ns(ch->mirror, ch->row), mirror_name(ch->mirror, ch->row));
}

/* The first pass over a new job finds its pods, so earlier changes are not recorded. */
static void job_on_pod_change(struct ctl *c, const struct mirror_change *ch)
{
    const struct pod_digest *d = ch->now ? ch->now : ch->old;
    const struct hk_str ns = mirror_ns(ch->mirror, ch->row);
    struct mirror *jobs = ctl_mirror(c, API_JOB);
    struct job_mem *mem;
    uint32_t row;

    if (!d->of_job) {
        return;
    }
    row = mirror_find(jobs, ns, hk_str(d->job));
    mem = mem_find(c, ns, hk_str(d->job));
    if (row != HK_NONE && mem && mem->met && hk_str_is(mirror_uid(jobs, row), d->owner)) {
        job_record_pod(mem, ch, ctl_now(c));
        job_event_pod(mem, mirror_digest(jobs, row), ch, ctl_now(c));
    }
    ctl_add(c, ns, hk_str(d->job));
}

static void job_on_group_change(struct ctl *c, const struct mirror_change *ch)
{
    const struct podgroup_digest *old = ch->old, *now = ch->now;
    const struct json *owner = ch->root ? kinds_controller(ch->root) : NULL;
    const struct hk_str ns = mirror_ns(ch->mirror, ch->row);
    const struct hk_str name = json_str(json_get(owner, "name"), none);
    struct mirror *jobs = ctl_mirror(c, API_JOB);
    const uint32_t row = mirror_find(jobs, ns, name);
    struct job_mem *mem = mem_find(c, ns, name);
    const struct job_digest *jd;

    if (!hk_str_is(json_str(json_get(owner, "kind"), none), "Job") || row == HK_NONE) {
        return;
    }
    jd = mirror_digest(jobs, row);
    if (mem && mem->met && now && now->phase == API_PODGROUP_UNKNOWN &&
        (!old || old->phase != now->phase) &&
        (jd->events & (1u << API_EVENT_UNKNOWN | 1u << API_EVENT_ANY))) {
        hk_vec_push(&mem->requests,
                    job_request_copy(&(struct job_request){.event = API_EVENT_UNKNOWN,
                                                           .version = INT32_MAX,
                                                           .at_ns = ctl_now(c),
                                                           JOB_REQUEST_NO_POD}));
    }
    ctl_add(c, ns, name);
}

static bool is_for_job(const struct json *command)
{
    const struct json *target = json_get(command, "target");

    return hk_str_is(json_str(json_get(target, "kind"), none), "Job") &&
           hk_str_is(json_str(json_get(target, "apiVersion"), none), "batch.volcano.sh/v1alpha1");
}

static void command_changed(struct ctl *c, const struct mirror_change *ch)
{
    if (ch->root && is_for_job(ch->root) && !ctl_conf(c)->no_queue_command_sync) {
        ctl_add(c, mirror_ns(ch->mirror, ch->row),
                json_str(json_at(ch->root, "target.name"), none));
    }
}

static void queue_changed(struct ctl *c, const struct mirror_change *ch)
{
    struct job_state *s = c->state;

    for (uint32_t i = 0; !ch->old && i < s->queueless.cap; i++) {
        const uint64_t key = s->queueless.keys[i];

        if (key != UINT64_MAX) {
            ctl_add(c, hk_intern_str(ctl_strings(c), (uint32_t)(key >> 32)),
                    hk_intern_str(ctl_strings(c), (uint32_t)key));
        }
    }
}

/* ---- iterating over pods ---- */

static uint32_t of_job_from(const struct job_pass *p, uint32_t row)
{
    while (row != HK_NONE && !((const struct pod_digest *)mirror_digest(p->pods, row))->of_job) {
        row = mirror_next(p->pods, PODS_BY_CONTROLLER, row);
    }
    return row;
}

uint32_t job_first_pod(const struct job_pass *p)
{
    return of_job_from(p, mirror_first(p->pods, PODS_BY_CONTROLLER, p->job.meta.uid));
}

uint32_t job_next_pod(const struct job_pass *p, uint32_t row)
{
    return of_job_from(p, mirror_next(p->pods, PODS_BY_CONTROLLER, row));
}

const struct pod_digest *job_pod(const struct job_pass *p, uint32_t row)
{
    return mirror_digest(p->pods, row);
}

int32_t job_priority(void *pass, struct hk_str name)
{
    const struct job_pass *p = pass;
    const struct mirror *classes = ctl_mirror(p->t->c, API_PRIORITY_CLASS);
    const uint32_t row = mirror_find(classes, none, name);

    return row == HK_NONE ? 0
                          : ((const struct priority_digest *)mirror_digest(classes, row))->value;
}

/* ---- Events ---- */

void job_note_pending_group(struct job_pass *p, const struct json *group)
{
    const struct json *conds = json_at(group, "status.conditions"), *newest = NULL;
    struct hk_str type;
    char *lower;

    for (uint32_t i = 0; json_is(conds, JSON_ARRAY) && i < conds->len; i++) {
        const struct json *c = &conds->items[i];

        if (hk_str_is(json_str(json_get(c, "status"), none), "True") &&
            (!newest || hk_str_cmp(json_str(json_get(c, "lastTransitionTime"), none),
                                   json_str(json_get(newest, "lastTransitionTime"), none)) >= 0)) {
            newest = c;
        }
    }
    type = json_str(json_get(newest, "type"), none);
    if (!newest || hk_str_is(type, "Scheduled")) {
        return;
    }
    lower = hk_arena_strndup(p->t->mem, type.s, type.n);
    for (char *at = lower; *at; at++) {
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    }
    pass_event(p->t, p->root, true, "PodGroupPending", "PodGroup %.*s:%.*s %s, reason: %.*s",
               HK_FMT(p->job.meta.ns), HK_FMT(p->job.meta.name), lower,
               HK_FMT(json_str(json_get(newest, "message"), none)));
}

static const char *job_error_reason(const struct pass_error *e)
{
    if (e->verb == PORT_NVERBS) {
        return NULL; /* from pass_fail: no API call failed */
    }
    switch (e->kind->id) {
    case API_POD:
        return e->verb == PORT_DELETE || e->verb == PORT_PATCH ? "FailedDelete" : "FailedCreate";
    case API_PODGROUP:
        return "PodGroupError";
    case API_PVC:
        return "PVCError";
    case API_JOB:
        return "JobStatusError";
    default:
        return "PluginError";
    }
}

static const char *const texts[][2] = {
    {"FailedDelete", "Error deleting pods: [%s]"},
    {"FailedCreate", "Error creating pods: [%s]"},
    {"PodGroupError", "Failed to create PodGroup, err: %s"},
    {"PVCError", "Failed to create PVC, err: %s"},
    {"JobStatusError", "Failed to initialize job status, err: %s"},
    {"PluginError", "Execute plugin when job add failed, err: %s"},
};

/* Conflicts are not reported: the next pass sees the newer state. */
static void report_errors(struct job_pass *p)
{
    for (uint32_t i = 0; i < p->t->nerror; i++) {
        const struct pass_error *e = &p->t->errors[i];
        const char *reason = job_error_reason(e);

        for (unsigned k = 0; reason && e->rc != -HK_ECONFLICT && k < HK_LEN(texts); k++) {
            if (strcmp(reason, texts[k][0]) == 0) {
                HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

                hk_buf_addf(&text, texts[k][1], e->text);
                pass_event(p->t, p->root, true, reason, "%s", text.data);
                break;
            }
        }
    }
}

/* The API keeps refusing a request as invalid: waiting does not help. */
static bool is_hopeless(const struct job_pass *p)
{
    if (p->t->failures < pass_patience(p->t)) {
        return false;
    }
    for (uint32_t i = 0; i < p->t->nerror; i++) {
        if (p->t->errors[i].rc == -HK_EINVAL) {
            return true;
        }
    }
    return false;
}

/* ---- actions ---- */

/* Writes the action into the status. False when the action has no effect in this phase. */
static bool job_execute_action(struct job_pass *p, enum api_job_action action,
                               const struct job_request *r)
{
    const struct job_cell *cell = job_cell(p->job.phase, action);
    struct job_change ch = {.phase = cell->next, .action = action, .request = r};

    pass_event(p->t, p->root, false, "ExecuteAction", "Start to execute action %s ",
               api_job_action_name(action));
    job_delay_done(p->mem, action, r);
    if (cell->op == JOB_SYNC) {
        return false;
    }
    if (cell->op == JOB_KILL_TARGET && (cell->next == API_JOB_NO_PHASE || r->preempted)) {
        job_mark(p, action, r); /* the marks on the pods are the record */
    }
    if (cell->next == API_JOB_NO_PHASE) {
        if (cell->op != JOB_KILL_ALL) {
            return p->t->ncall > 0;
        }
        ch.phase = p->job.phase;
    }
    ch.new_generation = cell->op == JOB_KILL_ALL || cell->op == JOB_KILL_ACTIVE;
    ch.retry = cell->retry && !r->preempted;
    return job_write_status(p, &ch);
}

/* A Command is recorded in the status, then deleted, then executed. So a crash at any point loses
 * no Command, and each is executed once. */
static bool take_command(struct job_pass *p)
{
    const struct hk_str noted = json_str(json_at(p->root, "status.action.command"), none);
    struct mirror *commands = ctl_mirror(p->t->c, API_COMMAND);

    for (uint32_t r = mirror_first(commands, COMMANDS_BY_TARGET, p->job.meta.name); r != HK_NONE;
         r = mirror_next(commands, COMMANDS_BY_TARGET, r)) {
        const struct json command = mirror_read(commands, r, p->t->mem);
        const struct hk_str uid = mirror_uid(commands, r);
        const struct hk_str word = json_str(json_get(&command, "action"), none);
        const enum api_job_action action =
            word.n > 0 ? api_job_action_find(word) : API_ACTION_SYNC_JOB;
        const struct job_request rq = {.event = API_EVENT_COMMAND_ISSUED, JOB_REQUEST_NO_POD};

        if (!hk_str_eq(mirror_ns(commands, r), p->job.meta.ns) || !is_for_job(&command)) {
            continue;
        }
        if (action != API_ACTION_SYNC_JOB && !hk_str_eq(noted, uid)) {
            pass_event(p->t, p->root, false, "CommandIssued",
                       "Start to execute command %.*s, and clean it up to make sure executed not "
                       "more than once.",
                       HK_FMT(word));
            return job_write_status(
                p, &(struct job_change){.phase = p->job.phase,
                                        .action = action,
                                        .request = &rq,
                                        .command = hk_arena_strndup(p->t->mem, uid.s, uid.n)});
        }
        pass_delete(p->t, api_kind(API_COMMAND), p->job.meta.ns, mirror_name(commands, r), uid,
                    PORT_PROPAGATE_DEFAULT);
        return true;
    }
    return false;
}

/* Executes a Command that was recorded and deleted. */
static bool run_command(struct job_pass *p)
{
    struct job_request r = {.event = API_EVENT_COMMAND_ISSUED, .forced = true, JOB_REQUEST_NO_POD};

    if (!json_at(p->root, "status.action.command")) {
        return false;
    }
    r.action = p->action;
    if (job_execute_action(p, r.action, &r)) {
        return true;
    }
    /* The Command has no effect in this phase: remove its record. */
    return job_write_status(p, &(struct job_change){.phase = p->job.phase, .done = true});
}

static bool job_start_delay(struct job_pass *p, const struct job_request *r, struct job_verdict v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const int64_t passed_ns = HK_MAX(p->t->now_ns - r->at_ns, 0); /* the clock may be set back */
    const int64_t left_ns = HK_MAX(v.delay_ns - passed_ns, 0);

    pass_again_at(p->t, p->t->now_ns + left_ns);
    if (job_delay_arm(p->mem, r, v, ctl_mono(p->t->c) + left_ns)) {
        duration_write(v.delay_ns, &text);
        pass_event(p->t, p->root, false, "ExecuteAction", "Execute action %s after %s",
                   api_job_action_name(v.action), text.data);
    }
    return false;
}

/* True when the request led to an action in this pass. */
static bool job_handle_request(struct job_pass *p, struct job_request *r)
{
    struct job_verdict v;

    r->version = HK_MIN(r->version, p->job.version); /* PodGroup requests have no version */
    v = job_choose_action(&p->job, r);
    if (v.action == API_ACTION_SYNC_JOB || !job_event_holds(p, r)) {
        return false;
    }
    return v.delayed && !r->forced ? job_start_delay(p, r, v) : job_execute_action(p, v.action, r);
}

static bool answer_requests(struct job_pass *p)
{
    struct job_mem *mem = p->mem;
    uint32_t used = 0;
    bool acted = false;

    while (used < mem->requests.len && !acted) {
        acted = job_handle_request(p, &mem->requests.at[used]);
        /* A request stays on the list until its action is in the status, as the write may fail.
         * Then its generation or attempt is over, and the request is dropped. */
        if (!acted) {
            used++;
        }
    }
    for (uint32_t i = 0; i < used; i++) {
        job_request_fini(&mem->requests.at[i]);
    }
    if (used > 0) {
        memmove(mem->requests.at, mem->requests.at + used,
                (mem->requests.len - used) * sizeof(mem->requests.at[0]));
        mem->requests.len -= used;
    }
    return acted;
}

/* A delayed policy about a lost pod concerns the pod's index. A new pod there that does not run yet
 * (job_delay_pod_moved) has not fixed the problem, so the action targets the new pod. */
static void aim_at_successor(const struct job_pass *p, struct job_request *r)
{
    const uint32_t row = mirror_find(p->pods, p->job.meta.ns, hk_str(r->pod));

    if (row != HK_NONE && (r->event == API_EVENT_POD_FAILED || r->event == API_EVENT_POD_EVICTED)) {
        const struct hk_str uid = mirror_uid(p->pods, row);

        hk_free((char *)r->pod_uid);
        r->pod_uid = hk_strndup(uid.s, uid.n);
    }
}

/* Turns delayed actions that are due into requests. */
static void ring_delays(struct job_pass *p)
{
    for (uint32_t i = p->mem->delays.len; i-- > 0;) {
        struct job_delay *d = &p->mem->delays.at[i];

        const int64_t left_ns = d->due_ns - ctl_mono(p->t->c);

        if (left_ns > 0) {
            pass_again_at(p->t, p->t->now_ns + left_ns);
            continue;
        }
        aim_at_successor(p, &d->r);
        hk_vec_push(&p->mem->requests, d->r);
        hk_vec_swap_remove(&p->mem->delays, i);
    }
}

/* ---- one pass ---- */

static bool find_queue(struct job_pass *p)
{
    struct mirror *queues = ctl_mirror(p->t->c, API_QUEUE);
    const struct hk_str name = p->job.queue.n > 0 ? p->job.queue : HK_STR(API_QUEUE_NAME_DEFAULT);
    const uint32_t row = mirror_find(queues, none, name);
    struct job_state *s = p->t->c->state;

    if (row == HK_NONE) {
        hk_map_put(&s->queueless, job_intern_key(p->mem->ns, p->mem->name), 1);
        pass_fail(p->t, HK_ENOTFOUND, "queue '%.*s' not found", HK_FMT(name));
        return false;
    }
    (void)hk_map_del(&s->queueless, job_intern_key(p->mem->ns, p->mem->name));
    p->forwarding = ((const struct queue_digest *)mirror_digest(queues, row))->forwarding;
    return true;
}

static void job_apply_phase(struct job_pass *p)
{
    struct job_change ch = {.phase = p->job.phase};
    struct job_counts n;
    bool quiet = true;

    job_count(p, &n);
    ch.phase = job_next_phase(&p->job, &n);
    if (p->job.phase == API_JOB_NO_PHASE || (job_is_live(p->job.phase) && !job_is_live(ch.phase))) {
        (void)job_write_status(p, &ch); /* end the job before anything else */
        return;
    }
    if (job_is_live(p->job.phase)) {
        quiet = find_queue(p) && job_sync(p);
    } else {
        job_teardown(p);
        quiet = !job_kill(p);
    }
    /* Write counts only when no requested write is missing in them. */
    if (quiet || p->unrecorded || ch.phase != p->job.phase) {
        (void)job_write_status(p, &ch);
    }
}

/* Reads the known plugins of the job, in the order in which their hooks run. */
static void read_plugins(struct job_pass *p)
{
    uint32_t n;
    const struct job_plugin *const *all = job_plugins(&n);

    p->uses.at = hk_arena_array(p->t->mem, p->job.plugins.len, sizeof(p->uses.at[0]));
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < p->job.plugins.len; i++) {
            if (hk_str_is(p->job.plugins.at[i].name, all[k]->name)) {
                job_plugin_use(&p->uses.at[p->uses.len++], all[k], &p->job, &p->job.plugins.at[i],
                               p->t->mem, NULL);
            }
        }
    }
}

static void read_action(struct job_pass *p)
{
    const struct json *action = json_at(p->root, "status.action");
    const struct hk_str name = json_str(json_get(action, "name"), none);

    if (action) {
        p->action = api_job_action_find(name);
    } else if (api_job_action_find(p->job.reason) != API_ACTION_OTHER) {
        p->action = api_job_action_find(p->job.reason);
    }
    p->target_task = json_str(json_get(action, "task"), none);
    p->target_pod = json_str(json_get(action, "pod"), none);
    p->target_partition = json_str(json_get(action, "partition"), none);
}

static void job_fail_retry_limit(struct job_pass *p)
{
    const struct job_request r = {
        .forced = true, .action = API_ACTION_TERMINATE_JOB, JOB_REQUEST_NO_POD};

    pass_event(p->t, p->root, false, "ExecuteAction",
               "Job failed on action %s for retry limit reached",
               api_job_action_name(API_ACTION_SYNC_JOB));
    (void)job_execute_action(p, API_ACTION_TERMINATE_JOB, &r);
}

/* The job stays as it is until a user changes it. */
static void job_reject(struct pass *t, const struct json *root, const char *why)
{
    pass_event(t, root, true, JOB_REFUSED, "%s", why);
    job_write_refusal(t, root, why);
}

/* Only new jobs need a check: later changes come from this controller or passed admission. */
static bool is_unchecked(const struct api_job *job)
{
    return job->phase == API_JOB_NO_PHASE || hk_str_is(job->reason, JOB_REFUSED);
}

static void job_reconcile_pass(struct job_pass *p)
{
    struct job_mem *mem = p->mem;
    struct hk_err err = {0};

    report_errors(p);
    read_action(p);
    read_plugins(p);
    p->group = job_group_find(p->groups, &p->job, p->t->mem);
    if (!mem->met) {
        mem->met = true;
        job_event_derive(p);
    }
    job_record_trim(p);
    ring_delays(p);
    if (job_is_live(p->job.phase) && is_hopeless(p)) {
        job_fail_retry_limit(p);
        return;
    }
    if (!job_kill_rests_on_record(p) && (take_command(p) || run_command(p))) {
        return;
    }
    if (answer_requests(p)) {
        return;
    }
    if (is_unchecked(&p->job) && job_check(p, &err) < 0) {
        job_reject(p->t, p->root, err.text);
        return;
    }
    job_apply_phase(p);
}

static void job_reconcile(struct ctl *c, struct pass *t)
{
    struct mirror *jobs = ctl_mirror(c, API_JOB);
    const uint32_t row = mirror_find(jobs, t->ns, t->name);
    struct job_pass p = {.t = t,
                         .pods = ctl_mirror(c, API_POD),
                         .groups = ctl_mirror(c, API_PODGROUP),
                         .group = HK_NONE};
    struct hk_err err = {0};
    struct json root;

    p.mem = row == HK_NONE ? mem_find(c, t->ns, t->name) : mem_get(c, t->ns, t->name);
    if (row == HK_NONE) {
        if (p.mem) {
            mem_forget(c, p.mem);
        }
        return;
    }
    if (p.mem->uid && !hk_str_is(mirror_uid(jobs, row), p.mem->uid)) {
        mem_clear(p.mem);
    }
    if (!p.mem->uid) {
        const struct hk_str uid = mirror_uid(jobs, row);

        p.mem->uid = hk_strndup(uid.s, uid.n);
    }
    root = mirror_read(jobs, row, t->mem);
    p.root = &root;
    if (api_job_decode(&root, t->mem, &p.job, &err) < 0) {
        job_reject(t, &root, err.text);
        return;
    }
    if (p.job.meta.deletion_ns == 0) {
        job_reconcile_pass(&p);
    }
}

static const struct ctl_watch watches[] = {
    {&mirror_jobs, job_on_job_change},
    {&mirror_pods, job_on_pod_change},
    {&mirror_podgroups, job_on_group_change},
    {&mirror_commands, command_changed},
    {&mirror_queues, queue_changed},
    {&mirror_priority_classes, NULL},
    {0},
};

const struct ctl_type ctl_job = {
    .name = "job-controller",
    .about = "runs the pods of Jobs and answers their events by policy",
    .watches = watches,
    .state_size = sizeof(struct job_state),
    .reconcile = job_reconcile,
    .close = job_close,
};
