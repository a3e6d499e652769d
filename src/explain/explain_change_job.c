// SPDX-License-Identifier: Apache-2.0
// Changes that the job's owner can make: fewer pods at once, smaller requests, fewer constraints.
#include "explain/explain_change_priv.h"

#include "api/names.h"
#include "controllers/expand.h"

static struct json group_copy(struct explainer *x)
{
    return json_clone(&x->group, x->a);
}

static bool is_waiting(const struct json *pod)
{
    return json_str_at(pod, "spec.nodeName").n == 0;
}

static struct hk_str task_of(const struct json *pod)
{
    const struct hk_str none = HK_STR("");
    const struct json *note = json_get(json_at(pod, "metadata.annotations"), API_KEY_TASK_SPEC);

    return json_str(note ? note : json_get(json_at(pod, "metadata.labels"), API_KEY_TASK_SPEC),
                    none);
}

/* Calls fn on a copy of each waiting pod (of the task, unless that is "") and adds it to the
 * edits. */
typedef bool pod_edit(struct explainer *x, const void *ctx, struct json *pod);

static void edit_pods(struct explainer *x, struct hk_str task, pod_edit *fn, const void *ctx,
                      struct explain_edits *e)
{
    for (uint32_t k = 0; k < x->pods.len; k++) {
        if (is_waiting(&x->pods.at[k]) &&
            (task.n == 0 || hk_str_eq(task_of(&x->pods.at[k]), task))) {
            struct json pod = json_clone(&x->pods.at[k], x->a);
            if (fn(x, ctx, &pod)) {
                explain_edit_put(e, API_POD, pod);
            }
        }
    }
}

/* Computes the group's minResources from the changed job. */
static void follow_job(struct explainer *x, const struct json *job_doc, struct json *group)
{
    struct api_job job;

    if (api_job_decode(job_doc, x->a, &job, NULL) == 0) {
        json_set(json_need(group, x->a, "spec", JSON_OBJECT), x->a, "minResources",
                 expand_min_resources(&job, explain_priority, x, x->a));
    }
}

/* ---- fewer at once ---- */

static void make_minimum(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    struct json group = group_copy(x);

    json_set_int(json_need(&group, x->a, "spec", JSON_OBJECT), x->a, "minMember", v);
    if (x->job_obj) {
        struct json job = json_clone(&x->job_obj->root, x->a);
        json_set_int(json_need(&job, x->a, "spec", JSON_OBJECT), x->a, "minAvailable", v);
        follow_job(x, &job, &group);
    }
    explain_edit_put(e, API_PODGROUP, group);
}

static void fewer(struct explainer *x)
{
    const int64_t min = json_int_at(&x->view, "gang.minimum");
    const int64_t ready = json_int_at(&x->view, "gang.ready");
    const int64_t fit = json_int_at(&x->view, "gang.fit");
    struct json d = json_make_object();
    struct tested t = {0};

    if (!change_largest(x, make_minimum, NULL, (struct change_range){1, min - 1, ready + fit},
                        &t)) {
        return;
    }
    json_set_int(&d, x->a, "minAvailable", t.v);
    explain_claim(
        x, "minAvailable",
        explain_text(x, "minAvailable is %lld instead of %lld", (long long)t.v, (long long)min), d,
        &t.e, &t.o);
}

/* ---- smaller ---- */

struct smaller {
    struct hk_str task, resource;
    uint32_t dim;
    struct hk_str amount; /* in this try */
};

static bool ask_less(struct explainer *x, const void *ctx, struct json *pod)
{
    const struct smaller *s = ctx;

    return explain_edit_request(pod, s->resource, s->amount, x->a);
}

static void follow_request(struct explainer *x, const struct smaller *s, struct explain_edits *e)
{
    struct json job = json_clone(&x->job_obj->root, x->a), group = group_copy(x);
    const struct json *tasks = json_at(&job, "spec.tasks");

    for (uint32_t k = 0; k < json_len(tasks); k++) {
        struct json *template = (struct json *)json_get(&tasks->items[k], "template");
        if (template && hk_str_eq(json_str_field(&tasks->items[k], "name"), s->task)) {
            explain_edit_request(template, s->resource, s->amount, x->a);
        }
    }
    follow_job(x, &job, &group);
    explain_edit_put(e, API_PODGROUP, group);
}

static void make_smaller(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    struct smaller s = *(const struct smaller *)ctx;

    const struct json amount = explain_amount(&x->c.m, s.dim, (double)v, x->a);
    s.amount = json_str(&amount, HK_STR("0"));
    edit_pods(x, s.task, ask_less, &s, e);
    if (e->len > 0 && x->job_obj) {
        follow_request(x, &s, e);
    }
}

/* A step of round numbers, at most a twentieth of the request. */
static int64_t step_of(const struct model *m, uint32_t dim, int64_t want)
{
    const int64_t base = m->dims.unit[dim] == DIM_MILLI ? 10 : 2;
    int64_t step = 1;

    while (step * base <= want / 20) {
        step *= base;
    }
    return step;
}

struct stepped {
    const struct smaller *s;
    int64_t step;
};

static void make_stepped(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    const struct stepped *p = ctx;

    make_smaller(x, p->s, v * p->step, e);
}

/* most: the largest request that can fit. */
static void smaller(struct explainer *x, const struct json *part, struct hk_str resource,
                    int64_t most)
{
    const struct model *m = &x->c.m;
    struct smaller s = {.task = json_str_field(part, "task"),
                        .resource = resource,
                        .dim = dims_find(&m->dims, resource)};
    struct json d = json_make_object();
    struct tested t = {0};

    if (s.dim == HK_NONE || s.dim == DIM_PODS) {
        return;
    }
    const struct json *asked = json_get_str(json_get(part, "asks"), resource);
    const int64_t want = change_units(m, s.dim, asked);
    const struct stepped p = {&s, step_of(m, s.dim, want)};
    bool found = most > 0 && most < want && change_test(x, make_smaller, &s, most, &t);
    if (!found &&
        change_largest(x, make_stepped, &p,
                       (struct change_range){1, HK_MIN(most, want - 1) / p.step, 0}, &t)) {
        found = true;
        t.v *= p.step;
    }
    if (!found) {
        return;
    }
    const struct json now = explain_amount(m, s.dim, (double)t.v, x->a);
    const struct hk_str was = json_str(asked, HK_STR(""));
    json_set_str(&d, x->a, "task", s.task);
    json_set_str(&d, x->a, "resource", s.resource);
    json_set(&d, x->a, "request", now);
    explain_claim(x, "request",
                  explain_text(x, "%s%.*s asks for %.*s %.*s instead of %.*s per pod",
                               s.task.n > 0 ? "task " : "it", HK_FMT(s.task), HK_FMT(s.resource),
                               HK_FMT(json_str(&now, HK_STR(""))), HK_FMT(was)),
                  d, &t.e, &t.o);
}

static void each_lack(struct explainer *x, const struct json *part)
{
    enum { TRIED = 2 };
    const struct json *list = json_get(part, "refusals");
    uint32_t tried = 0;

    for (uint32_t i = 0; i < json_len(list) && tried < TRIED; i++) {
        const struct hk_str resource = json_str_field(&list->items[i], "resource");
        const uint32_t dim = dims_find(&x->c.m.dims, resource);
        if (dim != HK_NONE) {
            tried++;
            smaller(x, part, resource,
                    change_units(&x->c.m, dim, json_get(&list->items[i], "mostFree")));
        }
    }
}

/* All of the task's pods share what is left below a limit. */
static void each_limit(struct explainer *x, const struct json *part)
{
    const struct model *m = &x->c.m;
    const struct json *list = json_get(&x->view, "limits");
    const int64_t pods = HK_MAX(json_int(json_get(part, "pods"), 1), 1);

    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct json *l = &list->items[i];
        const struct hk_str resource = json_str_field(l, "resource");
        const uint32_t dim = dims_find(&m->dims, resource);
        if (dim == HK_NONE) {
            continue;
        }
        const int64_t left = change_units(m, dim, json_get(l, "most")) -
                             change_units(m, dim, json_get(l, "holds")) -
                             change_units(m, dim, json_get(l, "promised"));
        if (left / pods > 0) {
            smaller(x, part, resource, left / pods);
        }
    }
}

static void each_part(struct explainer *x)
{
    enum { TRIED = 4 };
    const struct json *parts = json_get(&x->view, "reasons");

    for (uint32_t k = 0; k < json_len(parts) && k < TRIED; k++) {
        each_lack(x, &parts->items[k]);
        each_limit(x, &parts->items[k]);
    }
}

/* ---- fewer constraints ---- */

/* Constraints that can be left out as a whole. */
static const struct {
    const char *code, *under, *field, *text;
} wishes[] = {
    {"nodeAffinity", "spec.affinity", "nodeAffinity", "its pods have no nodeAffinity"},
    {"podAntiAffinity", "spec.affinity", "podAntiAffinity", "its pods have no podAntiAffinity"},
    {"podAffinity", "spec.affinity", "podAffinity", "its pods have no podAffinity"},
    {"spread", "spec", "topologySpreadConstraints", "its pods have no topologySpreadConstraints"},
    {"spreadLabel", "spec", "topologySpreadConstraints",
     "its pods have no topologySpreadConstraints"},
};

struct dropped {
    const char *under, *field;
};

static bool drop_field(struct explainer *x, const void *ctx, struct json *pod)
{
    const struct dropped *d = ctx;
    struct json *under = (struct json *)json_at(pod, d->under);

    return under && json_is(under, JSON_OBJECT) && json_del(under, d->field);
}

static void make_dropped(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    edit_pods(x, HK_STR(""), drop_field, ctx, e);
}

static void change_job_try_drop_field(struct explainer *x, const char *kind, struct dropped what,
                                      struct json text)
{
    struct json d = json_make_object();
    struct tested t = {0};

    if (change_test(x, make_dropped, &what, 0, &t)) {
        json_set_cstr(&d, x->a, "field", what.field);
        explain_claim(x, kind, text, d, &t.e, &t.o);
    }
}

static void change_job_try_selectors(struct explainer *x)
{
    enum { TRIED = 4 };
    const struct json *labels =
        x->pods.len > 0 ? json_at(&x->pods.at[0], "spec.nodeSelector") : NULL;

    for (uint32_t k = 0; json_is(labels, JSON_OBJECT) && k < labels->len && k < TRIED; k++) {
        const struct hk_str key = hk_arena_str(x->a, labels->members[k].key);
        const struct hk_str value = json_str(&labels->members[k].value, HK_STR(""));
        const struct dropped what = {"spec.nodeSelector", key.s};
        const struct json text = explain_text(x, "its pods do not ask for node label %.*s=%.*s",
                                              HK_FMT(key), HK_FMT(value));
        change_job_try_drop_field(x, "nodeSelector", what, text);
    }
}

static bool change_job_add_toleration(struct explainer *x, const void *ctx, struct json *pod)
{
    json_push(json_need_at(pod, x->a, "spec.tolerations", JSON_ARRAY), x->a,
              *(const struct json *)ctx);
    return true;
}

static void make_tolerant(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    edit_pods(x, HK_STR(""), change_job_add_toleration, ctx, e);
}

static struct json toleration_of(struct explainer *x, const struct json *taint)
{
    struct json t = json_make_object();
    const struct json *value = json_get(taint, "value"), *effect = json_get(taint, "effect");

    json_set(&t, x->a, "key", json_shallow(json_get(taint, "key"), x->a));
    json_set_cstr(&t, x->a, "operator", value ? "Equal" : "Exists");
    if (value) {
        json_set(&t, x->a, "value", *value);
    }
    if (effect) {
        json_set(&t, x->a, "effect", *effect);
    }
    return t;
}

static void try_taint(struct explainer *x, const struct json *taint)
{
    const struct json toleration = toleration_of(x, taint);
    const struct hk_str value = json_str_field(taint, "value");
    struct json d = json_make_object();
    struct tested t = {0};

    if (change_test(x, make_tolerant, &toleration, 0, &t)) {
        json_set(&d, x->a, "toleration", toleration);
        explain_claim(x, "toleration",
                      explain_text(x, "its pods tolerate the taint %.*s%s%.*s:%.*s",
                                   HK_FMT(json_str_field(taint, "key")), value.n > 0 ? "=" : "",
                                   HK_FMT(value), HK_FMT(json_str_field(taint, "effect"))),
                      d, &t.e, &t.o);
    }
}

static void change_job_try_tolerations(struct explainer *x)
{
    enum { TRIED = 4 };
    const struct json *seen[TRIED];
    uint32_t n = 0;

    for (uint32_t k = 0; k < x->o->n && n < TRIED; k++) {
        const struct api_object *o = x->o->objects[k];
        const struct json *list = o->kind->id == API_NODE ? json_at(&o->root, "spec.taints") : NULL;
        for (uint32_t i = 0; i < json_len(list) && n < TRIED; i++) {
            const struct json *taint = &list->items[i];
            bool known = !json_is(json_get(taint, "key"), JSON_STRING) ||
                         hk_str_is(json_str_field(taint, "effect"), "PreferNoSchedule");
            for (uint32_t s = 0; s < n && !known; s++) {
                known = json_equal(seen[s], taint);
            }
            if (!known) {
                seen[n++] = taint;
                try_taint(x, taint);
            }
        }
    }
}

static void make_soft(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    struct json group = group_copy(x);

    json_set_cstr(json_need_at(&group, x->a, "spec.networkTopology", JSON_OBJECT), x->a, "mode",
                  "soft");
    explain_edit_put(e, API_PODGROUP, group);
}

static void change_job_try_soft_topology(struct explainer *x)
{
    const struct json *topo = json_at(&x->group, "spec.networkTopology");
    struct tested t = {0};

    if (json_is(topo, JSON_OBJECT) &&
        !hk_str_is(json_str(json_get(topo, "mode"), HK_STR("hard")), "soft") &&
        change_test(x, make_soft, NULL, 0, &t)) {
        explain_claim(x, "networkTopology",
                      explain_text(x, "its network topology is soft instead of hard"),
                      json_make_object(), &t.e, &t.o);
    }
}

/* ---- higher priority ---- */

static bool raise(struct explainer *x, const void *ctx, struct json *pod)
{
    const struct json *class = ctx;
    struct json *spec = json_need(pod, x->a, "spec", JSON_OBJECT);

    json_set(spec, x->a, "priorityClassName", json_shallow(json_at(class, "metadata.name"), x->a));
    json_set(spec, x->a, "priority", json_shallow(json_get(class, "value"), x->a));
    return true;
}

static void make_priority(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    struct json group = group_copy(x);

    json_set(json_need(&group, x->a, "spec", JSON_OBJECT), x->a, "priorityClassName",
             json_shallow(json_at(ctx, "metadata.name"), x->a));
    explain_edit_put(e, API_PODGROUP, group);
    edit_pods(x, HK_STR(""), raise, ctx, e);
}

/* The class with the lowest value above the priority, NULL when there is none. */
static const struct json *class_above(const struct explainer *x, int64_t priority)
{
    const struct json *best = NULL;

    for (uint32_t k = 0; k < x->o->n; k++) {
        const struct api_object *o = x->o->objects[k];
        const int64_t v = json_int(json_get(&o->root, "value"), INT64_MIN);
        if (o->kind->id == API_PRIORITY_CLASS && v > priority &&
            !hk_str_starts(o->name, "system-") &&
            (!best || v < json_int(json_get(best, "value"), 0))) {
            best = &o->root;
        }
    }
    return best;
}

static void priority(struct explainer *x)
{
    enum { TRIED = 3 };
    int64_t above = json_int(json_get(&x->view, "priority"), 0);

    for (uint32_t k = 0; k < TRIED && !x->cut; k++) {
        const struct json *class = class_above(x, above);
        struct json d = json_make_object();
        struct tested t = {0};
        if (!class) {
            return;
        }
        above = json_int(json_get(class, "value"), 0);
        if (change_test(x, make_priority, class, 0, &t)) {
            const struct json *name = json_at(class, "metadata.name");
            json_set(&d, x->a, "priorityClass", *name);
            explain_claim(x, "priority",
                          explain_text(x, "it has priority class %.*s (%lld)",
                                       HK_FMT(json_str(name, HK_STR(""))), (long long)above),
                          d, &t.e, &t.o);
            return;
        }
    }
}

void change_job(struct explainer *x)
{
    fewer(x);
    each_part(x);
    if (change_is_due_to(x, "nodeAffinity")) {
        change_job_try_selectors(x);
    }
    for (size_t k = 0; k < HK_LEN(wishes); k++) {
        if (change_is_due_to(x, wishes[k].code)) {
            change_job_try_drop_field(x, "constraint",
                                      (struct dropped){wishes[k].under, wishes[k].field},
                                      json_make_str(hk_str(wishes[k].text)));
        }
    }
    if (change_is_due_to(x, "taint")) {
        change_job_try_tolerations(x);
    }
    change_job_try_soft_topology(x);
    priority(x);
}
