// SPDX-License-Identifier: Apache-2.0
// JobFlows: steps that wait for one another, each a job from a JobTemplate. A pass examines every
// step: one without a known job whose dependencies are met gets its job. The status remembers
// completed jobs, so that they do not run again after they are deleted.
#include "controllers/jobflow_priv.h"

#include "api/names.h"
#include "controllers/keymem.h"
#include "controllers/table.h"

#define FLOW_VERSION "flow.volcano.sh/v1alpha1"

/* ---- memory ---- */

static void lost_fini(struct flow_lost *l)
{
    hk_free(l->name);
    hk_free(l->text);
}

static void drop_mem(void *block)
{
    struct flow_mem *mem = block;

    for (uint32_t i = 0; i < mem->lost.len; i++) {
        lost_fini(&mem->lost.at[i]);
    }
    hk_vec_fini(&mem->lost);
    flow_probes_fini(mem);
}

static void jobflow_open(struct ctl *c)
{
    keymem_init(c->state, c, sizeof(struct flow_mem), drop_mem);
}

static void jobflow_close(struct ctl *c)
{
    keymem_fini(c->state);
}

static void keep_lost(struct flow_mem *mem, const struct mirror_change *ch)
{
    const struct hk_str name = mirror_name(ch->mirror, ch->row);
    struct hk_buf text = {0};

    json_write(ch->root, &text);
    hk_vec_push(&mem->lost, (struct flow_lost){hk_strndup(name.s, name.n), text.data});
}

/* ---- which keys a change concerns ---- */

static void flow_changed(struct ctl *c, const struct mirror_change *ch)
{
    ctl_add(c, mirror_ns(ch->mirror, ch->row), mirror_name(ch->mirror, ch->row));
}

static void jobflow_on_job_change(struct ctl *c, const struct mirror_change *ch)
{
    const struct json *owner = kinds_controller(ch->root);
    const struct hk_str ns = mirror_ns(ch->mirror, ch->row);
    const struct hk_str name = json_str(json_get(owner, "name"), flow_none);
    const struct job_digest *old = ch->old;

    if (!hk_str_is(json_str(json_get(owner, "kind"), flow_none), "JobFlow") ||
        !hk_str_is(json_str(json_get(owner, "apiVersion"), flow_none), FLOW_VERSION)) {
        return;
    }
    if (!ch->now && old->phase == API_JOB_COMPLETED) {
        keep_lost(keymem_get(c->state, ns, name), ch);
    }
    ctl_add(c, ns, name);
}

static bool uses_template(const struct json *flow, struct hk_str name)
{
    const struct json *steps = json_at(flow, "spec.flows");

    for (uint32_t i = 0; json_is(steps, JSON_ARRAY) && i < steps->len; i++) {
        if (hk_str_eq(json_str(json_get(&steps->items[i], "name"), flow_none), name)) {
            return true;
        }
    }
    return false;
}

/* Queues flows that may wait for the new template. Steps with a job ignore template changes. */
static void template_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct mirror *flows = ctl_mirror(c, API_JOBFLOW);
    const struct hk_str ns = mirror_ns(ch->mirror, ch->row);

    if (ch->initial || ch->old || !ch->now) {
        return;
    }
    for (uint32_t r = mirror_scan(flows, HK_NONE); r != HK_NONE; r = mirror_scan(flows, r)) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};

        if (hk_str_eq(mirror_ns(flows, r), ns)) {
            const struct json flow = mirror_read(flows, r, &a);
            if (uses_template(&flow, mirror_name(ch->mirror, ch->row))) {
                ctl_add(c, ns, mirror_name(flows, r));
            }
        }
    }
}

/* ---- existing and missing jobs ---- */

static struct json *new_tree(struct flow_pass *p, struct json v)
{
    struct json *at = hk_arena_alloc(p->t->mem, sizeof(*at));

    *at = v;
    return at;
}

static const struct json *record_of(const struct flow_pass *p, struct hk_str name)
{
    const struct json *list = json_at(&p->root, "status.jobStatusList");

    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        if (hk_str_eq(json_str(json_get(&list->items[i], "name"), flow_none), name)) {
            return &list->items[i];
        }
    }
    return NULL;
}

static bool jobflow_owns_job(const struct flow_pass *p, const struct json *job)
{
    return hk_str_eq(json_str(json_get(kinds_controller(job), "uid"), flow_none),
                     json_str(json_at(&p->root, "metadata.uid"), flow_none));
}

/* The last known version of a deleted job that completed before the status recorded it. Frees
 * entries that are no longer needed. */
static const struct json *find_lost(struct flow_pass *p, const struct flow_job *j)
{
    const struct json *found = NULL;

    for (uint32_t i = p->mem->lost.len; i-- > 0;) {
        struct flow_lost *l = &p->mem->lost.at[i];
        struct json root;

        if (!hk_str_is(j->name, l->name)) {
            continue;
        }
        if (j->row == HK_NONE && !j->known &&
            json_parse(hk_str(l->text), 0, p->t->mem, &root, NULL) == 0 &&
            jobflow_owns_job(p, &root)) {
            /* The text may be freed before the tree. */
            found = new_tree(p, json_clone(&root, p->t->mem));
        } else {
            lost_fini(l);
            hk_vec_swap_remove(&p->mem->lost, i);
        }
    }
    return found;
}

static void look_at(struct flow_pass *p, struct flow_job *j)
{
    const struct json *lost;

    j->row = mirror_find(p->jobs, p->t->ns, j->name);
    j->record = record_of(p, j->name);
    if (j->row != HK_NONE) {
        const struct job_digest *d = mirror_digest(p->jobs, j->row);

        j->root = new_tree(p, mirror_read(p->jobs, j->row, p->t->mem));
        j->foreign = !jobflow_owns_job(p, j->root);
        j->phase = j->foreign ? API_JOB_NO_PHASE : d->phase;
        j->known = true;
    } else {
        j->known = hk_str_is(json_str(json_get(j->record, "state"), flow_none), "Completed");
    }
    lost = find_lost(p, j);
    if (lost) {
        j->root = lost;
        j->known = true;
    }
    if (j->row == HK_NONE && j->known) {
        j->phase = API_JOB_COMPLETED;
    }
}

const struct flow_job *flow_step(const struct flow_pass *p, struct hk_str name)
{
    for (uint32_t i = 0; i < p->nstep; i++) {
        if (hk_str_eq(json_str(json_get(p->at[i].step, "name"), flow_none), name)) {
            return &p->at[i];
        }
    }
    return NULL;
}

/* Jobs without a step are never created again, so their entries are not needed. */
static void forget_strangers(struct flow_pass *p)
{
    for (uint32_t i = p->mem->lost.len; i-- > 0;) {
        uint32_t k = 0;

        while (k < p->nstep && !hk_str_is(p->at[k].name, p->mem->lost.at[i].name)) {
            k++;
        }
        if (k == p->nstep) {
            lost_fini(&p->mem->lost.at[i]);
            hk_vec_swap_remove(&p->mem->lost, i);
        }
    }
}

static void collect_steps(struct flow_pass *p, const struct json *steps, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct json *step = &steps->items[i];
        const struct hk_str name = json_str(json_get(step, "name"), flow_none);

        if (flow_step(p, name)) {
            continue; /* duplicate name: runs once */
        }
        p->at[p->nstep++] = (struct flow_job){
            .name =
                hk_str(hk_arena_printf(p->t->mem, "%.*s-%.*s", HK_FMT(p->t->name), HK_FMT(name))),
            .step = step,
            .row = HK_NONE,
        };
        look_at(p, &p->at[p->nstep - 1]);
    }
    p->len = p->nstep;
}

static int jobflow_compare_names(const void *a, const void *b)
{
    return hk_str_cmp(((const struct flow_job *)a)->name, ((const struct flow_job *)b)->name);
}

/* Jobs of steps that are no longer part of the flow. */
static void collect_others(struct flow_pass *p, struct hk_str uid)
{
    for (uint32_t r = mirror_first(p->jobs, JOBS_BY_CONTROLLER, uid); r != HK_NONE;
         r = mirror_next(p->jobs, JOBS_BY_CONTROLLER, r)) {
        struct flow_job job = {.name = mirror_name(p->jobs, r), .row = r};
        uint32_t i = 0;

        while (i < p->nstep && p->at[i].row != r) {
            i++;
        }
        if (i == p->nstep && hk_str_eq(mirror_ns(p->jobs, r), p->t->ns)) {
            look_at(p, &job);
            p->at[p->len++] = job;
        }
    }
    if (p->len > p->nstep) {
        qsort(p->at + p->nstep, p->len - p->nstep, sizeof(*p->at), jobflow_compare_names);
    }
}

static void collect_jobs(struct flow_pass *p)
{
    const struct json *steps = json_at(&p->root, "spec.flows");
    const struct hk_str uid = json_str(json_at(&p->root, "metadata.uid"), flow_none);
    const uint32_t nstep = json_is(steps, JSON_ARRAY) ? steps->len : 0;
    uint32_t nowned = 0;

    for (uint32_t r = mirror_first(p->jobs, JOBS_BY_CONTROLLER, uid); r != HK_NONE;
         r = mirror_next(p->jobs, JOBS_BY_CONTROLLER, r)) {
        nowned++;
    }
    p->at = hk_arena_array(p->t->mem, (size_t)nstep + nowned, sizeof(*p->at));
    collect_steps(p, steps, nstep);
    forget_strangers(p);
    collect_others(p, uid);
}

/* ---- creating and deleting jobs ---- */

static void put_origin(struct json *meta, struct hk_arena *a, const char *where,
                       struct hk_str template, struct hk_str flow)
{
    struct json *map = json_set_object(meta, a, where);

    json_set_str(map, a, API_KEY_CREATED_BY_TEMPLATE, template);
    json_set_str(map, a, API_KEY_CREATED_BY_FLOW, flow);
}

static bool jobflow_create_job(struct flow_pass *p, const struct flow_job *j)
{
    struct hk_arena *a = p->t->mem;
    const struct hk_str name = json_str(json_get(j->step, "name"), flow_none);
    const uint32_t row = mirror_find(p->templates, p->t->ns, name);
    struct json body = json_make_object();
    struct hk_err err = {0};
    struct json template;
    struct json spec;
    struct json *meta;

    if (row == HK_NONE) {
        pass_fail(p->t, HK_ENOTFOUND, "jobtemplates.flow.volcano.sh \"%.*s\" not found",
                  HK_FMT(name));
        return false;
    }
    template = mirror_read(p->templates, row, a);
    if (flow_spec(json_get(&template, "spec"), j->step, a, &spec, &err) < 0) {
        pass_fail(p->t, HK_EINVAL, "patch of flow '%.*s': %s", HK_FMT(name), err.text);
        return false;
    }
    json_set_cstr(&body, a, "apiVersion", "batch.volcano.sh/v1alpha1");
    json_set_cstr(&body, a, "kind", "Job");
    meta = json_set_object(&body, a, "metadata");
    json_set_str(meta, a, "name", j->name);
    json_set_str(meta, a, "namespace", p->t->ns);
    for (unsigned i = 0; i < 2; i++) {
        put_origin(meta, a, i ? "annotations" : "labels",
                   hk_str(hk_arena_printf(a, "%.*s.%.*s", HK_FMT(p->t->ns), HK_FMT(name))),
                   hk_str(hk_arena_printf(a, "%.*s.%.*s", HK_FMT(p->t->ns), HK_FMT(p->t->name))));
    }
    json_set(&body, a, "spec", spec);
    kinds_own(&body, a, &p->root);
    return pass_create(p->t, api_kind(API_JOB), &body);
}

static bool lacks_template(const struct flow_pass *p, const struct flow_job *j)
{
    return mirror_find(p->templates, p->t->ns, json_str(json_get(j->step, "name"), flow_none)) ==
           HK_NONE;
}

/* Creates the job of every step that may start. Returns whether it requested any; *ret_missing: a
 * template does not exist. */
static bool start_steps(struct flow_pass *p, bool *ret_missing)
{
    bool asked = false;

    *ret_missing = false;
    flow_probes_begin(p->mem);
    for (uint32_t i = 0; i < p->nstep; i++) {
        const struct flow_job *j = &p->at[i];

        if (j->foreign) {
            pass_fail(p->t, HK_EEXIST, "job '%.*s' exists and does not belong to this flow",
                      HK_FMT(j->name));
        } else if (!j->known && flow_may_start(p, j)) {
            *ret_missing |= lacks_template(p, j);
            asked = jobflow_create_job(p, j) || asked;
        }
    }
    flow_probes_end(p->mem);
    return asked;
}

static void delete_jobs(struct flow_pass *p)
{
    for (uint32_t i = 0; i < p->len; i++) {
        const struct flow_job *j = &p->at[i];

        if (j->row != HK_NONE && !j->foreign &&
            !((const struct job_digest *)mirror_digest(p->jobs, j->row))->terminating) {
            pass_delete(p->t, api_kind(API_JOB), p->t->ns, j->name, mirror_uid(p->jobs, j->row),
                        PORT_PROPAGATE_DEFAULT);
        }
    }
}

/* ---- one pass ---- */

static bool all_done(const struct flow_pass *p)
{
    for (uint32_t i = 0; i < p->nstep; i++) {
        if (p->at[i].phase != API_JOB_COMPLETED) {
            return false;
        }
    }
    return true;
}

static void jobflow_report_failure(struct pass *t, const struct json *root)
{
    if (t->nerror > 0 && t->failures == 1) { /* upstream reports only the last failure */
        const struct pass_error *e = &t->errors[0];

        if (e->kind == api_kind(API_JOB)) {
            pass_event(t, root, true, "FailedStep", "retrying job '%s': %s", e->name, e->text);
        } else {
            pass_event(t, root, true, "FailedStep", "retrying: %s", e->text);
        }
    }
    if (t->nerror > 0 && t->failures == pass_patience(t)) {
        pass_event(t, root, true, "SyncJobFlow", "SyncJobFlow JobFlow failed for %s",
                   t->errors[0].text);
    }
}

/* A flow without any started step has nothing to report, and its author may still be writing it. */
static bool has_begun(const struct flow_pass *p)
{
    for (uint32_t i = 0; i < p->len; i++) {
        if (p->at[i].known && !p->at[i].foreign) {
            return true;
        }
    }
    return json_get(&p->root, "status") != NULL;
}

static void jobflow_reconcile(struct ctl *c, struct pass *t)
{
    const struct mirror *flows = ctl_mirror(c, API_JOBFLOW);
    const uint32_t row = mirror_find(flows, t->ns, t->name);
    struct flow_pass p = {
        .t = t, .jobs = ctl_mirror(c, API_JOB), .templates = ctl_mirror(c, API_JOBTEMPLATE)};
    bool asked, missing;

    if (row == HK_NONE) {
        keymem_forget(c->state, t->ns, t->name);
        return;
    }
    p.root = mirror_read(flows, row, t->mem);
    if (json_at(&p.root, "metadata.deletionTimestamp") || flow_is_frozen(&p)) {
        keymem_forget(c->state, t->ns, t->name);
        return;
    }
    p.mem = keymem_get(c->state, t->ns, t->name);
    jobflow_report_failure(t, &p.root);
    collect_jobs(&p);
    if (flow_is_over(&p) && all_done(&p) &&
        hk_str_is(json_str(json_at(&p.root, "spec.jobRetainPolicy"), flow_none), "delete")) {
        delete_jobs(&p);
        return;
    }
    /* The status waits for jobs being created, unless a creation has failed. */
    asked = start_steps(&p, &missing);
    if ((!asked || t->failures > 0) && (!missing || has_begun(&p))) {
        flow_write_status(&p);
    }
}

static const struct ctl_watch watches[] = {
    {&mirror_jobflows, flow_changed},
    {&mirror_jobs, jobflow_on_job_change},
    {&mirror_jobtemplates, template_changed},
    {0},
};

const struct ctl_type ctl_jobflow = {
    .name = "jobflow-controller",
    .about = "runs the steps of JobFlows, each when those it waits for are done",
    .watches = watches,
    .state_size = sizeof(struct keymem),
    .open = jobflow_open,
    .close = jobflow_close,
    .reconcile = jobflow_reconcile,
};
