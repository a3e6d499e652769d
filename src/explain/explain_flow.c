// SPDX-License-Identifier: Apache-2.0
// A JobFlow: which steps are done, which run, and what the others wait for. Only objects are read;
// for a step with a job, ask about the job.
#include "explain/explain_priv.h"

static const struct hk_str none = {"", 0};

static const struct json *step_of(const struct json *flow, struct hk_str name)
{
    const struct json *list = json_at(flow, "spec.flows");

    for (uint32_t k = 0; k < json_len(list); k++) {
        if (hk_str_eq(json_str_field(&list->items[k], "name"), name)) {
            return &list->items[k];
        }
    }
    return NULL;
}

/* The job of a step, NULL when it has none yet. */
static const struct api_object *job_of(struct explainer *x, const struct api_object *flow,
                                       struct hk_str step)
{
    const char *name = hk_arena_printf(x->a, "%.*s-%.*s", HK_FMT(flow->name), HK_FMT(step));

    return explain_find(x, API_JOB, flow->ns, hk_str(name));
}

static struct hk_str explain_flow_job_phase(const struct api_object *job)
{
    return job ? json_str(json_at(&job->root, "status.state.phase"), HK_STR("Pending")) : none;
}

/* ---- probes ---- */

static struct json port_text(struct explainer *x, const struct json *spec)
{
    const struct json *port = json_get(spec, "port");

    return json_is(port, JSON_INT) ? explain_text(x, "%lld", (long long)port->i)
                                   : explain_text(x, "%.*s", HK_FMT(json_str(port, HK_STR("?"))));
}

static void add_probes(struct explainer *x, const struct json *probe, const char *key,
                       struct json *ret)
{
    const struct json *list = json_get(probe, key);

    for (uint32_t k = 0; k < json_len(list); k++) {
        const struct json *spec = &list->items[k];
        const struct hk_str task = json_str(json_get(spec, "taskName"), HK_STR("any task"));
        const struct json port = port_text(x, spec);
        const struct hk_str at = json_str(&port, none);
        json_push(ret, x->a,
                  strcmp(key, "httpGetList") == 0
                      ? explain_text(x, "http %.*s:%.*s%.*s", HK_FMT(task), HK_FMT(at),
                                     HK_FMT(json_str(json_get(spec, "path"), HK_STR("/"))))
                  : strcmp(key, "tcpSocketList") == 0
                      ? explain_text(x, "tcp %.*s:%.*s", HK_FMT(task), HK_FMT(at))
                      : explain_text(x, "%.*s %.*s", HK_FMT(task),
                                     HK_FMT(json_str(json_get(spec, "phase"), HK_STR("?")))));
    }
}

/* ---- steps ---- */

static struct json waits_for(struct explainer *x, const struct api_object *flow,
                             const struct json *step)
{
    const struct json *targets = json_at(step, "dependsOn.targets");
    const struct json *probe = json_at(step, "dependsOn.probe");
    struct json list = json_make_array();

    for (uint32_t k = 0; k < json_len(targets); k++) {
        const struct hk_str name = json_str(&targets->items[k], none);
        const struct hk_str phase = explain_flow_job_phase(job_of(x, flow, name));
        struct json o = json_make_object(), probes = json_make_array();
        if (hk_str_is(phase, "Completed")) {
            continue;
        }
        add_probes(x, probe, "httpGetList", &probes);
        add_probes(x, probe, "tcpSocketList", &probes);
        add_probes(x, probe, "taskStatusList", &probes);
        json_set_str(&o, x->a, "step", name);
        json_set_str(&o, x->a, "phase",
                     !step_of(&flow->root, name) ? HK_STR("no such step")
                     : phase.n > 0               ? phase
                                                 : HK_STR("not begun"));
        json_set(&o, x->a, "probes", probes);
        json_push(&list, x->a, o);
    }
    return list;
}

struct flow_count {
    uint32_t steps, done;
    struct hk_str first; /* step that waits for others */
    struct hk_str busy;  /* job that the others wait for */
    bool may_begin;      /* a step waits for nothing, and has no job */
};

static struct json step_entry(struct explainer *x, const struct api_object *flow,
                              const struct json *step, struct flow_count *n)
{
    const struct hk_str name = json_str_field(step, "name");
    const struct api_object *job = job_of(x, flow, name);
    const struct hk_str phase = explain_flow_job_phase(job);
    struct json o = json_make_object();

    n->steps++;
    n->done += hk_str_is(phase, "Completed");
    json_set_str(&o, x->a, "step", name);
    if (job) {
        json_set_str(&o, x->a, "job", job->name);
        json_set_str(&o, x->a, "phase", phase);
        if (!hk_str_is(phase, "Completed") && n->busy.n == 0) {
            n->busy = job->name;
        }
    } else {
        const struct json waits = waits_for(x, flow, step);

        n->may_begin |= waits.len == 0;
        json_set(&o, x->a, "waitsFor", waits);
        n->first = n->first.n > 0 ? n->first : name;
    }
    return o;
}

/* The newest event about a step that could not begin; NULL: none. */
static const struct json *explain_flow_problem(struct explainer *x, const struct api_object *flow)
{
    const struct json *newest = NULL;

    for (uint32_t k = 0; k < x->o->n; k++) {
        const struct api_object *o = x->o->objects[k];
        const struct json *about = json_get(&o->root, "involvedObject");

        if (o->kind->id != API_EVENT || !hk_str_eq(o->ns, flow->ns) ||
            !hk_str_eq(json_str_field(about, "uid"), flow->uid) ||
            !hk_str_is(json_str_field(&o->root, "reason"), "FailedStep")) {
            continue;
        }
        if (!newest || hk_str_cmp(json_str_field(&o->root, "lastTimestamp"),
                                  json_str_field(newest, "lastTimestamp")) >= 0) {
            newest = &o->root;
        }
    }
    return newest;
}

int explain_flow(struct explainer *x, const struct explain_subject *s, struct hk_err *err)
{
    const struct api_object *flow = explain_find(x, API_JOBFLOW, s->ns, s->name);
    const struct json *list = flow ? json_at(&flow->root, "spec.flows") : NULL;
    struct json steps = json_make_array(), text;
    struct flow_count n = {0};

    if (!flow) {
        return hk_fail(err, HK_ENOTFOUND, "there is no jobflow '%.*s' in namespace '%.*s'",
                       HK_FMT(s->name), HK_FMT(s->ns));
    }
    for (uint32_t k = 0; k < json_len(list); k++) {
        json_push(&steps, x->a, step_entry(x, flow, &list->items[k], &n));
    }
    const bool over = n.done == n.steps;
    text = explain_text(
        x, "%s: %u of %u step%s done%s%.*s%s%s", over ? "has ended" : "is in progress", n.done,
        n.steps, n.steps == 1 ? "" : "s", n.busy.n > 0 ? ", job '" : "", HK_FMT(n.busy),
        n.busy.n > 0 ? "' has not ended" : "", n.first.n > 0 ? ", the rest wait" : "");
    json_set_cstr(&x->answer, x->a, "state", over ? "ended" : "running");
    json_set_str(&x->answer, x->a, "phase", json_str_at(&flow->root, "status.state.phase"));
    json_set(&x->answer, x->a, "summary", text);
    json_set(&x->answer, x->a, "steps", steps);
    const struct json *problem = n.may_begin ? explain_flow_problem(x, flow) : NULL;
    if (problem) {
        json_set_str(&x->answer, x->a, "problem", json_str_field(problem, "message"));
    }
    return 0;
}
