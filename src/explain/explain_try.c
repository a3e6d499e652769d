// SPDX-License-Identifier: Apache-2.0
// Runs the changed cluster in a copy, and adds the change to the answer if the job starts.
#include "explain/explain_priv.h"
#include "sim/aside.h"

enum { NAMES_MAX = 1000 };

/* ---- run in the copy ---- */

static void explain_try_apply_edits(struct explainer *x, const struct explain_edits *e)
{
    for (uint32_t k = 0; k < e->len; k++) {
        const struct explain_edit *at = &e->at[k];
        const struct hk_str ns = json_str_at(&at->doc, "metadata.namespace");
        const struct hk_str name = json_str_at(&at->doc, "metadata.name");
        if (at->gone) {
            ingest_del(x->c.in, at->kind, ns, name);
        } else {
            /* A change that the engine refuses has no effect: nothing starts. */
            ingest_put(x->c.in, at->kind, &at->doc, NULL, NULL);
        }
    }
}

static job_id explain_try_find_pod_job(const struct cluster *c, struct hk_str pod)
{
    struct hk_str ns;
    const bool cut = hk_str_cut(&pod, '/', &ns);
    const task_id t = cut ? model_task_find(&c->m, ns, pod) : NO_TASK;

    return id_none(t) ? NO_JOB : model_task(&c->m, t)->job;
}

/* Whether pods of the job were bound and it has its minimum. A gang is bound whole, so the binds of
 * the last cycle are enough. */
static bool has_started(const struct explainer *x)
{
    const struct cluster *c = &x->c;
    const job_id j = model_job_find(&c->m, x->ns, x->group_name);
    bool placed = false;

    for (uint32_t k = c->first_bind; k < c->binds.len && !placed; k++) {
        const job_id b = explain_try_find_pod_job(c, c->binds.at[k].pod);
        placed = !id_none(b) && id_eq(b, j);
    }
    return placed && job_counts_ready(model_job(&c->m, j));
}

/* The groups whose pods were bound, each once. */
static struct json list_starts(struct explainer *x)
{
    const struct cluster *c = &x->c;
    bool *seen = hk_arena_zalloc(x->a, c->m.jobs.len + 1);
    struct json list = json_make_array();

    for (uint32_t k = 0; k < c->binds.len && list.len < NAMES_MAX; k++) {
        const job_id b = explain_try_find_pod_job(c, c->binds.at[k].pod);
        if (!id_none(b) && !seen[b.i]) {
            seen[b.i] = true;
            json_push(&list, x->a, json_make_str(cluster_job_name(&c->m, b, x->a)));
        }
    }
    return list;
}

static struct json list_evicted(struct explainer *x)
{
    struct json list = json_make_array();

    for (uint32_t k = 0; k < x->c.evictions.len && k < NAMES_MAX; k++) {
        json_push(&list, x->a, json_make_str(x->c.evictions.at[k].pod));
    }
    return list;
}

void explain_run(struct explainer *x, const struct explain_edits *e, struct hk_buf *out)
{
    struct json doc = json_make_object();
    bool started = false;
    int rc = 0;

    explain_try_apply_edits(x, e);
    for (uint32_t k = 0; k < EXPLAIN_CYCLES && rc == 0 && !started; k++) {
        rc = cluster_cycle(&x->c, NULL);
        started = rc == 0 && has_started(x);
    }
    json_set_bool(&doc, x->a, "started", started);
    json_set(&doc, x->a, "starts", list_starts(x));
    json_set(&doc, x->a, "evicted", list_evicted(x));
    json_write(&doc, out);
}

struct attempt {
    struct explainer *x;
    const struct explain_edits *e;
};

static void run_try(void *ctx, struct hk_buf *out)
{
    const struct attempt *t = ctx;

    explain_run(t->x, t->e, out);
}

/* ---- run in the original process ---- */

static bool is_time_up(struct explainer *x)
{
    const struct explain_opts *o = x->o;

    return o->budget_ns > 0 && o->clock->mono_ns(o->clock) - x->since_ns >= o->budget_ns;
}

bool explain_try(struct explainer *x, const struct explain_edits *e, struct outcome *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct attempt t = {x, e};
    struct json doc;

    *ret = (struct outcome){0};
    if (x->cut || x->tried >= x->o->tries || is_time_up(x)) {
        x->cut = true;
        return false;
    }
    x->tried++;
    if (aside_run(run_try, &t, &text, NULL) < 0 ||
        json_parse(hk_arena_str(x->a, hk_buf_str(&text)), 0, x->a, &doc, NULL) < 0) {
        return true; /* a failed try shows nothing */
    }
    const struct json *starts = json_get(&doc, "starts"), *evicted = json_get(&doc, "evicted");
    ret->started = json_bool(json_get(&doc, "started"), false);
    ret->starts = starts ? *starts : json_make_array();
    ret->evicted = evicted ? *evicted : json_make_array();
    return true;
}

static bool explain_try_list_has(const struct json *list, struct hk_str name)
{
    for (uint32_t k = 0; k < json_len(list); k++) {
        if (hk_str_eq(json_str(&list->items[k], HK_STR("")), name)) {
            return true;
        }
    }
    return false;
}

static bool is_removed(const struct explain_edits *e, struct hk_str pair)
{
    struct hk_str ns;

    if (!hk_str_cut(&pair, '/', &ns)) {
        return false;
    }
    for (uint32_t k = 0; k < e->len; k++) {
        if (e->at[k].gone && e->at[k].kind->id == API_PODGROUP &&
            hk_str_eq(json_str_at(&e->at[k].doc, "metadata.name"), pair) &&
            hk_str_eq(json_str_at(&e->at[k].doc, "metadata.namespace"), ns)) {
            return true;
        }
    }
    return false;
}

static struct json owner_of_pair(struct explainer *x, struct hk_str pair)
{
    struct hk_str ns;

    hk_str_cut(&pair, '/', &ns);
    return json_make_str(explain_owner(x, ns, pair, x->a));
}

/* Jobs that start in the unchanged cluster but not in the changed one. */
static struct json delayed(struct explainer *x, const struct explain_edits *e,
                           const struct outcome *o)
{
    const struct json *now = json_get(&x->view, "starts");
    struct json list = json_make_array();

    for (uint32_t k = 0; k < json_len(now); k++) {
        const struct hk_str pair = json_str(&now->items[k], HK_STR(""));
        if (!explain_try_list_has(&o->starts, pair) && !is_removed(e, pair)) {
            json_push(&list, x->a, owner_of_pair(x, pair));
        }
    }
    return list;
}

void explain_claim(struct explainer *x, const char *kind, struct json what, struct json details,
                   struct explain_edits *e, const struct outcome *o)
{
    struct json doc = json_make_object();

    json_set_cstr(&doc, x->a, "change", kind);
    json_set(&doc, x->a, "text", what);
    for (uint32_t k = 0; k < details.len; k++) {
        json_put(&doc, x->a, details.members[k].key, details.members[k].value);
    }
    json_set(&doc, x->a, "evicts", o->evicted);
    json_set(&doc, x->a, "delays", delayed(x, e, o));
    json_push(&x->changes, x->a, doc);
    hk_vec_push(&x->claims, *e);
    *e = (struct explain_edits){0};
}
