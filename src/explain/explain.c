// SPDX-License-Identifier: Apache-2.0
// Answers `hekla explain`: finds the subject and its pods, loads the whole cluster into the
// scheduler's engine, and calls the other files for the parts of the answer. explain_state.c writes
// the sentences.
#include "explain/explain_priv.h"

#include "controllers/expand.h"

static const struct hk_str none = {"", 0};

/* ---- the subject ---- */

static void take_group(struct explainer *x, const struct api_object *o)
{
    x->has_group = true;
    x->group = o->root;
    x->ns = o->ns;
    x->group_name = o->name;
    for (uint32_t k = 0; k < x->o->n; k++) {
        const struct api_object *pod = x->o->objects[k];
        if (pod->kind->id == API_POD && hk_str_eq(pod->ns, o->ns) &&
            hk_str_eq(explain_pod_group(&pod->root), o->name)) {
            hk_vec_push(&x->pods, pod->root);
        }
    }
}

static const struct api_object *group_of_job(const struct explainer *x,
                                             const struct api_object *job)
{
    for (uint32_t k = 0; k < x->o->n; k++) {
        const struct api_object *o = x->o->objects[k];
        if (o->kind->id == API_PODGROUP && hk_str_eq(o->ns, job->ns) &&
            hk_str_eq(json_str_field(explain_controller(&o->root), "uid"), job->uid) &&
            job->uid.n > 0) {
            return o;
        }
    }
    return NULL;
}

/* Whether the task's pods are created only after those of other tasks. */
static bool leans(const struct api_job *job, const struct api_job_task *task)
{
    for (uint32_t k = 0; k < task->depends_on.len; k++) {
        const struct api_job_task *on = api_job_task_find(job, task->depends_on.at[k]);
        if (on && on->has_min) {
            return true;
        }
    }
    return false;
}

enum { MADE_MAX = 20000 };

/* Makes the pods that the controller will create once the group is admitted. */
static void make_pods(struct explainer *x)
{
    for (uint32_t k = 0; k < x->job.tasks.len; k++) {
        const struct api_job_task *task = &x->job.tasks.at[k];
        for (int32_t i = 0; !leans(&x->job, task) && i < task->replicas && x->pods.len < MADE_MAX;
             i++) {
            hk_vec_push(&x->pods, expand_pod(&x->job, task, i, x->a));
            x->pods_made = true;
        }
    }
}

static void make_group(struct explainer *x)
{
    x->group = expand_group(&x->job, explain_priority, x, x->a);
    x->ns = x->job.meta.ns;
    x->group_name = json_str_at(&x->group, "metadata.name");
}

static int take_job(struct explainer *x, const struct api_object *o, struct hk_err *err)
{
    const int rc = api_job_decode(&o->root, x->a, &x->job, err);
    const struct api_object *group = group_of_job(x, o);

    if (rc < 0) {
        return rc;
    }
    x->job_obj = o;
    if (group) {
        take_group(x, group);
    } else {
        make_group(x);
    }
    if (x->pods.len == 0 && !api_job_is_finished(x->job.phase)) {
        make_pods(x);
    }
    return 0;
}

static const struct api_object *job_of_group(const struct explainer *x, const struct api_object *g)
{
    const struct json *owner = explain_controller(&g->root);
    const struct hk_str name = json_str_field(owner, "name");

    return hk_str_is(json_str_field(owner, "kind"), "Job") ? explain_find(x, API_JOB, g->ns, name)
                                                           : NULL;
}

static int take_subject(struct explainer *x, const struct explain_subject *s, struct hk_err *err)
{
    const struct api_object *o = explain_find(x, s->kind, s->ns, s->name);

    if (!o) {
        return hk_fail(err, HK_ENOTFOUND, "there is no %s '%.*s'%s%.*s%s",
                       api_kind(s->kind)->singular, HK_FMT(s->name),
                       s->ns.n > 0 ? " in namespace '" : "", HK_FMT(s->ns), s->ns.n > 0 ? "'" : "");
    }
    if (s->kind == API_JOB) {
        return take_job(x, o, err);
    }
    if (s->kind == API_POD) {
        const struct hk_str group = explain_pod_group(&o->root);
        o = group.n > 0 ? explain_find(x, API_PODGROUP, s->ns, group) : NULL;
        if (!o) {
            return 0; /* explain_state.c reports this */
        }
    }
    const struct api_object *job = job_of_group(x, o);
    if (job) {
        return take_job(x, job, err);
    }
    take_group(x, o);
    return 0;
}

/* ---- the cluster ---- */

static void explain_load_objects(struct explainer *x)
{
    for (uint32_t k = 0; k < x->o->n; k++) {
        const struct api_object *o = x->o->objects[k];
        if (ingest_reads(o->kind)) {
            /* The scheduler does not see invalid objects either. */
            ingest_put(x->c.in, o->kind, &o->root, NULL, NULL);
        }
    }
    if (!x->has_group && x->job_obj) {
        ingest_put(x->c.in, api_kind(API_PODGROUP), &x->group, NULL, NULL);
    }
    for (uint32_t k = 0; x->pods_made && k < x->pods.len; k++) {
        ingest_put(x->c.in, api_kind(API_POD), &x->pods.at[k], NULL, NULL);
    }
    ingest_settle(x->c.in);
}

static void open_world(struct explainer *x, const struct explain_opts *o, struct hk_arena *a)
{
    const struct cluster_opts c = {
        .now_ns = o->now_ns, .step_ns = 1000000000, .seed = 1, .default_scheduler = true};

    *x = (struct explainer){
        .o = o, .a = a, .answer = json_make_object(), .changes = json_make_array()};
    cluster_init(&x->c, o->conf, &c);
    x->since_ns = o->budget_ns > 0 ? o->clock->mono_ns(o->clock) : 0;
}

static void close_world(struct explainer *x)
{
    for (uint32_t k = 0; k < x->claims.len; k++) {
        hk_vec_fini(&x->claims.at[k]);
    }
    hk_vec_fini(&x->claims);
    hk_vec_fini(&x->pods);
    cluster_fini(&x->c);
}

/* ---- the answer ---- */

static int answer_queue(struct explainer *x, const struct explain_subject *s, struct hk_err *err)
{
    if (!explain_find(x, API_QUEUE, none, s->name)) {
        return hk_fail(err, HK_ENOTFOUND, "there is no queue '%.*s'", HK_FMT(s->name));
    }
    explain_load_objects(x);
    const int rc = explain_queue_view(x, s->name, &x->view, err);
    if (rc == 0) {
        explain_state_queue(x);
    }
    return rc;
}

static int answer_group(struct explainer *x, const struct explain_subject *s, struct hk_err *err)
{
    int rc = take_subject(x, s, err);

    if (rc < 0 || explain_node_lost(x, s) || explain_state_early(x, s)) {
        return rc;
    }
    explain_load_objects(x);
    rc = explain_view(x, &x->view, err);
    if (rc == 0 && explain_state(x)) {
        explain_changes(x);
    }
    return rc;
}

static void keep_claims(struct explainer *x, struct explain_claims *ret)
{
    ret->at = hk_arena_array(x->a, x->claims.len + 1, sizeof(*ret->at));
    ret->len = x->claims.len;
    for (uint32_t k = 0; k < ret->len; k++) {
        const size_t size = x->claims.at[k].len * sizeof(struct explain_edit);
        ret->at[k].at = hk_arena_alloc(x->a, size + 1);
        ret->at[k].len = x->claims.at[k].len;
        if (size > 0) {
            memcpy(ret->at[k].at, x->claims.at[k].at, size);
        }
    }
}

int explain_with_claims(const struct explain_opts *o, const struct explain_subject *s,
                        struct hk_arena *a, struct json *ret, struct explain_claims *claims,
                        struct hk_err *err)
{
    struct explainer x;
    int rc;

    open_world(&x, o, a);
    json_set_cstr(&x.answer, x.a, "kind", api_kind(s->kind)->kind);
    if (s->ns.n > 0) {
        json_set_str(&x.answer, x.a, "namespace", s->ns);
    }
    json_set_str(&x.answer, x.a, "name", s->name);
    rc = s->kind == API_QUEUE     ? answer_queue(&x, s, err)
         : s->kind == API_JOBFLOW ? explain_flow(&x, s, err)
                                  : answer_group(&x, s, err);
    if (rc == 0) {
        explain_state_finish(&x);
        *ret = json_clone(&x.answer, a); /* includes strings owned by the model */
        keep_claims(&x, claims);
    }
    close_world(&x);
    return rc;
}

int explain(const struct explain_opts *o, const struct explain_subject *s, struct hk_arena *a,
            struct json *ret, struct hk_err *err)
{
    struct explain_claims claims;

    return explain_with_claims(o, s, a, ret, &claims, err);
}
