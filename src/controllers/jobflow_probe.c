// SPDX-License-Identifier: Apache-2.0
// Dependencies of a step. A target that is Completed is always met. Another target is met when the
// step has probes for its tasks and all succeed: taskStatus reads the job's counts; httpGet and
// tcpSocket probe each pod of the task in turn. A probe without taskName applies to every task. A
// target without probes must complete.
#include "controllers/jobflow_priv.h"
#include "controllers/prober.h"

#define NS ((int64_t)1000000000)
#define PROBE_TIMEOUT_NS (1 * NS)
#define PROBE_PERIOD_NS (2 * NS) /* after a failed probe */

/* One network probe for one task of one job. */
struct flow_probe {
    uint64_t what;  /* hash of job, task and probe */
    bool wanted;    /* used in this pass */
    uint32_t next;  /* all pods before this one succeeded */
    uint64_t call;  /* in flight, 0 none */
    int64_t due_ns; /* the next try, monotonic */
    struct ensured pod;
    struct ctl *c;
    char *ns, *flow;
};

/* ---- memory ---- */

static void probe_free(struct flow_probe *fp)
{
    if (fp->call) {
        struct prober *prober = ctl_conf(fp->c)->prober;
        prober->ops->cancel(prober, fp->call);
    }
    ensured_fini(&fp->pod);
    hk_free(fp->ns);
    hk_free(fp->flow);
    hk_free(fp);
}

void flow_probes_begin(struct flow_mem *mem)
{
    for (uint32_t i = 0; i < mem->probes.len; i++) {
        mem->probes.at[i]->wanted = false;
    }
}

void flow_probes_end(struct flow_mem *mem)
{
    for (uint32_t i = mem->probes.len; i-- > 0;) {
        if (!mem->probes.at[i]->wanted) {
            probe_free(mem->probes.at[i]);
            hk_vec_swap_remove(&mem->probes, i);
        }
    }
}

void flow_probes_fini(struct flow_mem *mem)
{
    for (uint32_t i = 0; i < mem->probes.len; i++) {
        probe_free(mem->probes.at[i]);
    }
    hk_vec_fini(&mem->probes);
}

static struct flow_probe *probe_get(struct flow_pass *p, uint64_t what)
{
    struct flow_probe *fp;

    for (uint32_t i = 0; i < p->mem->probes.len; i++) {
        if (p->mem->probes.at[i]->what == what) {
            return p->mem->probes.at[i];
        }
    }
    fp = hk_zalloc(sizeof(*fp));
    *fp = (struct flow_probe){.what = what,
                              .c = p->t->c,
                              .ns = hk_strndup(p->t->ns.s, p->t->ns.n),
                              .flow = hk_strndup(p->t->name.s, p->t->name.n)};
    hk_vec_push(&p->mem->probes, fp);
    return fp;
}

/* ---- probing pods ---- */

static void jobflow_probe_on_done(void *ctx, uint64_t id, bool good)
{
    struct flow_probe *fp = ctx;

    fp->call = 0;
    fp->next += good;
    fp->due_ns = good ? 0 : ctl_mono(fp->c) + PROBE_PERIOD_NS;
    ctl_add(fp->c, hk_str(fp->ns), hk_str(fp->flow));
}

static void try_later(struct flow_pass *p, struct flow_probe *fp)
{
    fp->due_ns = ctl_mono(fp->c) + PROBE_PERIOD_NS;
    pass_again_at(p->t, p->t->now_ns + PROBE_PERIOD_NS);
}

static void jobflow_probe_start(struct flow_pass *p, struct flow_probe *fp, const struct json *spec,
                                bool http, const struct api_object *pod)
{
    struct prober *prober = ctl_conf(p->t->c)->prober;
    const struct hk_str address =
        pod ? json_str(json_at(&pod->root, "status.podIP"), flow_none) : flow_none;

    if (!prober || address.n == 0) {
        try_later(p, fp);
        return;
    }
    fp->call =
        prober->ops->start(prober,
                           &(struct probe){
                               .host = address,
                               .port = (uint16_t)json_int(json_get(spec, "port"), 0),
                               .http = http,
                               .path = json_str(json_get(spec, "path"), HK_STR("/")),
                               .header = json_str(json_at(spec, "httpHeader.name"), flow_none),
                               .value = json_str(json_at(spec, "httpHeader.value"), flow_none),
                               .timeout_ns = PROBE_TIMEOUT_NS,
                           },
                           (struct prober_sink){jobflow_probe_on_done, fp});
}

/* True when every pod of the task has answered; else probes the next one. */
static bool pods_answer(struct flow_pass *p, struct flow_probe *fp, const struct json *spec,
                        bool http, const struct api_job *job, const struct api_job_task *task)
{
    HK_AUTO(api_object_unrefp) struct api_object *pod = NULL;
    struct hk_str name;

    if (fp->next >= (uint32_t)HK_MAX(task->replicas, 0)) {
        return true;
    }
    if (fp->call) {
        return false;
    }
    if (ctl_mono(fp->c) < fp->due_ns) {
        pass_again_at(p->t, p->t->now_ns + (fp->due_ns - ctl_mono(fp->c)));
        return false;
    }
    name = hk_str(hk_arena_printf(p->t->mem, "%.*s-%.*s-%u", HK_FMT(job->meta.name),
                                  HK_FMT(task->name), fp->next));
    if (pass_read(p->t, &fp->pod, api_kind(API_POD), p->t->ns, name, &pod)) {
        jobflow_probe_start(p, fp, spec, http, pod);
    }
    return false;
}

/* ---- probes of a target ---- */

/* Number of the task's pods in that phase. For Running, Succeeded pods count too. */
static int64_t pods_in_phase(const struct json *job, const struct api_job_task *task,
                             struct hk_str phase)
{
    const struct json *state =
        json_get(json_get_str(json_at(job, "status.taskStatusCount"), task->name), "phase");
    int64_t n = json_int(json_get_str(state, phase), 0);

    if (hk_str_is(phase, "Running")) {
        n += json_int(json_get(state, "Succeeded"), 0);
    }
    return n;
}

/* A target being checked. */
struct target {
    struct flow_pass *p;
    const struct json *root;
    struct api_job job;
    uint32_t nprobe; /* for its tasks */
    bool met;
};

enum probe_kind { PROBE_HTTP, PROBE_TCP, PROBE_STATUS };

static uint64_t jobflow_probe_hash_target(const struct target *tg, const struct api_job_task *task,
                                          enum probe_kind kind, const struct json *spec)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text, "%.*s/%.*s/%d/%d/", HK_FMT(tg->job.meta.uid), HK_FMT(task->name),
                tg->job.version, (int)kind);
    json_write(spec, &text);
    return hk_hash(text.data, text.len, 0);
}

static bool probe_succeeds(struct target *tg, const struct api_job_task *task, enum probe_kind kind,
                           const struct json *spec)
{
    struct flow_probe *fp;

    if (kind == PROBE_STATUS) {
        return pods_in_phase(tg->root, task, json_str(json_get(spec, "phase"), flow_none)) >=
               api_job_task_min(task);
    }
    fp = probe_get(tg->p, jobflow_probe_hash_target(tg, task, kind, spec));
    fp->wanted = true;
    return pods_answer(tg->p, fp, spec, kind == PROBE_HTTP, &tg->job, task);
}

/* Evaluates all probes even after a failure, so that they run in parallel. */
static void check_probes(struct target *tg, const struct json *list, enum probe_kind kind)
{
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct hk_str name = json_str(json_get(&list->items[i], "taskName"), flow_none);

        for (uint32_t k = 0; k < tg->job.tasks.len; k++) {
            const struct api_job_task *task = &tg->job.tasks.at[k];

            if (name.n == 0 || hk_str_eq(name, task->name)) {
                tg->nprobe++;
                tg->met = probe_succeeds(tg, task, kind, &list->items[i]) && tg->met;
            }
        }
    }
}

static bool target_is_met(struct flow_pass *p, const struct json *probe, struct hk_str name)
{
    const struct flow_job *fj = flow_step(p, name);
    struct target tg = {.p = p, .met = true};
    struct hk_err err = {0};

    if (fj && fj->phase == API_JOB_COMPLETED) {
        return true;
    }
    if (!probe || !fj || fj->row == HK_NONE || fj->foreign || api_job_is_finished(fj->phase)) {
        return false;
    }
    tg.root = fj->root;
    if (api_job_decode(fj->root, p->t->mem, &tg.job, &err) < 0) {
        pass_fail(p->t, HK_EINVAL, "job '%.*s': %s", HK_FMT(fj->name), err.text);
        return false;
    }
    check_probes(&tg, json_get(probe, "httpGetList"), PROBE_HTTP);
    check_probes(&tg, json_get(probe, "tcpSocketList"), PROBE_TCP);
    check_probes(&tg, json_get(probe, "taskStatusList"), PROBE_STATUS);
    return tg.nprobe > 0 && tg.met;
}

bool flow_may_start(struct flow_pass *p, const struct flow_job *job)
{
    const struct json *targets = json_at(job->step, "dependsOn.targets");
    const struct json *probe = json_at(job->step, "dependsOn.probe");
    bool met = true;

    for (uint32_t i = 0; json_is(targets, JSON_ARRAY) && i < targets->len; i++) {
        met = target_is_met(p, probe, json_str(&targets->items[i], flow_none)) && met;
    }
    return met;
}
