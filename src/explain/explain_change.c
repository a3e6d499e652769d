// SPDX-License-Identifier: Apache-2.0
// Chooses which single changes to try, from what the engine reports as missing. First come changes
// that happen by themselves, then those of the job's owner, the queue's admin and the cluster's
// admin. The answer lists only changes with which the job started in the trial.
#include "explain/explain_change_priv.h"

#include "api/names.h"

/* ---- hints ---- */

bool change_is_due_to(const struct explainer *x, const char *code)
{
    const struct json *parts = json_get(&x->view, "reasons");

    for (uint32_t k = 0; k < json_len(parts); k++) {
        const struct json *list = json_get(&parts->items[k], "refusals");
        for (uint32_t i = 0; i < json_len(list); i++) {
            if (hk_str_is(json_str_field(&list->items[i], "code"), code)) {
                return true;
            }
        }
    }
    return false;
}

bool change_is_limited(const struct explainer *x)
{
    return json_get(&x->view, "refusal") || json_bool(json_get(&x->view, "overused"), false);
}

int64_t change_units(const struct model *m, uint32_t dim, const struct json *amount)
{
    struct quantity q;

    if (quantity_parse(json_str(amount, HK_STR("")), &q, NULL) < 0) {
        return 0;
    }
    return m->dims.unit[dim] == DIM_MILLI ? quantity_milli(q) : quantity_value(q);
}

/* ---- tries ---- */

bool change_test(struct explainer *x, change_make *make, const void *ctx, int64_t v,
                 struct tested *ret)
{
    const struct hk_arena_mark mark = hk_arena_mark(x->a);
    struct tested t = {.v = v};

    make(x, ctx, v, &t.e);
    if (t.e.len > 0 && explain_try(x, &t.e, &t.o) && t.o.started) {
        hk_vec_fini(&ret->e);
        *ret = t;
        return true;
    }
    hk_vec_fini(&t.e);
    hk_arena_rewind(x->a, mark);
    return false;
}

bool change_largest(struct explainer *x, change_make *make, const void *ctx, struct change_range r,
                    struct tested *ret)
{
    bool found = false;

    if (r.lo > r.hi) {
        return false;
    }
    if (r.hint > r.lo && r.hint <= r.hi) {
        found = change_test(x, make, ctx, r.hint, ret);
        r.hi = found ? r.hi : r.hint - 1;
    }
    if (!found && !change_test(x, make, ctx, r.lo, ret)) {
        return false;
    }
    for (r.lo = ret->v; r.lo < r.hi && !x->cut;) {
        const int64_t mid = r.lo + (r.hi - r.lo + 1) / 2;
        if (change_test(x, make, ctx, mid, ret)) {
            r.lo = mid;
        } else {
            r.hi = mid - 1;
        }
    }
    return true;
}

bool change_smallest(struct explainer *x, change_make *make, const void *ctx, struct change_range r,
                     struct tested *ret)
{
    int64_t v = r.lo;

    while (v <= r.hi && !x->cut && !change_test(x, make, ctx, v, ret)) {
        r.lo = v + 1;
        v *= 2;
    }
    if (v > r.hi || x->cut) {
        return false;
    }
    for (r.hi = v - 1; r.lo <= r.hi && !x->cut;) {
        const int64_t mid = r.lo + (r.hi - r.lo) / 2;
        if (change_test(x, make, ctx, mid, ret)) {
            r.hi = mid - 1;
        } else {
            r.lo = mid + 1;
        }
    }
    return true;
}

/* ---- room from other jobs ---- */

enum { ENDS_TRIED = 8, ENDS_LARGEST = 2, ENDS_WANTED = 2, AHEAD_TRIED = 3 };

struct holder {
    job_id job;
    int64_t held;
    bool near; /* in the same queue, when a limit refuses the job */
};

static void make_end(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    const struct model *m = &x->c.m;
    const job_id j = *(const job_id *)ctx;
    const struct job *row = model_job(m, j);

    for (int pass = 0; pass < 2; pass++) {
        for (task_id t = pass ? row->others : row->pending; !id_none(t);
             t = model_task(m, t)->job_next) {
            explain_edit_gone(e, API_POD, model_str(m, row->ns),
                              model_str(m, model_task(m, t)->name), x->a);
        }
    }
    explain_edit_gone(e, API_PODGROUP, model_str(m, row->ns), model_str(m, row->name), x->a);
}

static struct hk_str explain_change_job_name(struct explainer *x, job_id j)
{
    const struct model *m = &x->c.m;

    return explain_owner(x, model_str(m, model_job(m, j)->ns), model_str(m, model_job(m, j)->name),
                         x->a);
}

/* How much is missing, from a limit or from a refusal of nodes. */
static int64_t short_of_limit(const struct model *m, uint32_t dim, const struct json *l)
{
    return change_units(m, dim, json_get(l, "holds")) + change_units(m, dim, json_get(l, "wants")) -
           change_units(m, dim, json_get(l, "most"));
}

static int64_t short_on_nodes(const struct explainer *x, uint32_t dim, const struct json *lack)
{
    const struct model *m = &x->c.m;
    const struct json *all = json_get_str(json_get(&x->view, "wants"), m->dims.text[dim]);
    const int64_t one = change_units(m, dim, json_get(lack, "wants")) -
                        change_units(m, dim, json_get(lack, "mostFree"));

    return HK_MAX(one, change_units(m, dim, all) - (m->total[dim] - m->used_total[dim]));
}

/* The missing resource, and at least how much: a job that holds less cannot help. Amounts promised
 * to others do not count here, since the promises may lapse. */
static uint32_t shortage(const struct explainer *x, int64_t *ret)
{
    const struct model *m = &x->c.m;
    const struct json *parts = json_get(&x->view, "reasons");
    const struct json *limit = json_item(json_get(&x->view, "limits"), 0);
    uint32_t dim = dims_find(&m->dims, json_str_field(limit, "resource"));

    *ret = 1;
    if (limit && dim != HK_NONE) {
        *ret = HK_MAX(short_of_limit(m, dim, limit), 1);
        return dim;
    }
    for (uint32_t k = 0; k < json_len(parts); k++) {
        const struct json *list = json_get(&parts->items[k], "refusals");
        for (uint32_t i = 0; i < json_len(list); i++) {
            const struct json *r = json_get(&list->items[i], "resource");
            dim = r ? dims_find(&m->dims, json_str(r, HK_STR(""))) : HK_NONE;
            if (dim != HK_NONE) {
                *ret = HK_MAX(short_on_nodes(x, dim, &list->items[i]), 1);
                return dim;
            }
        }
    }
    return DIM_CPU;
}

static int holder_cmp(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;

    if (x->near != y->near) {
        return y->near - x->near;
    }
    return x->held != y->held ? (x->held > y->held) - (x->held < y->held)
                              : (x->job.i > y->job.i) - (x->job.i < y->job.i);
}

static uint32_t list_holders(struct explainer *x, struct holder **ret)
{
    const struct model *m = &x->c.m;
    const job_id me = model_job_find(m, x->ns, x->group_name);
    struct holder *at = hk_arena_array(x->a, m->jobs.len + 1, sizeof(*at));
    int64_t least;
    const uint32_t dim = shortage(x, &least);
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->jobs.len; i++) {
        const job_id j = {i};
        const struct job *row = model_job(m, j);
        if (!row->used || !row->has_pg || id_eq(j, me) || tally_allocated(&row->tally) == 0) {
            continue;
        }
        const int64_t held = job_vec(m, j, JV_ALLOC)[dim];
        if (held >= least) {
            at[n++] = (struct holder){
                j, held, change_is_limited(x) && id_eq(row->queue, model_job(m, me)->queue)};
        }
    }
    qsort(at, n, sizeof(*at), holder_cmp);
    *ret = at;
    return n;
}

static bool try_end(struct explainer *x, job_id j, bool runs)
{
    struct tested t = {0};
    struct json d = json_make_object();

    if (!change_test(x, make_end, &j, 0, &t)) {
        return false;
    }
    const struct hk_str name = explain_change_job_name(x, j);
    json_set_str(&d, x->a, "job", name);
    explain_claim(x, runs ? "jobEnds" : "jobCancelled",
                  runs ? explain_text(x, "job %.*s ends", HK_FMT(name))
                       : explain_text(x, "job %.*s, which is ahead, is cancelled", HK_FMT(name)),
                  d, &t.e, &t.o);
    return true;
}

static void others_end(struct explainer *x)
{
    struct holder *at;
    const uint32_t n = list_holders(x, &at);
    uint32_t found = 0, tried = 0;

    for (uint32_t k = 0; k < n && found < ENDS_WANTED && !x->cut; k++) {
        if (k < ENDS_TRIED || (found == 0 && k + ENDS_LARGEST >= n)) {
            tried++;
            found += try_end(x, at[k].job, true);
        }
    }
    x->skipped |= tried < n;
}

static void those_ahead_go(struct explainer *x)
{
    const struct json *list = json_at(&x->view, "ahead.jobs");

    for (uint32_t k = 0; k < json_len(list) && k < AHEAD_TRIED; k++) {
        struct hk_str name = json_str_field(&list->items[k], "podGroup"), ns;
        hk_str_cut(&name, '/', &ns);
        const job_id j = model_job_find(&x->c.m, ns, name);
        if (!id_none(j) && tally_allocated(&model_job(&x->c.m, j)->tally) == 0 &&
            try_end(x, j, false)) {
            return;
        }
    }
}

/* ---- all changes ---- */

void explain_changes(struct explainer *x)
{
    change_gate(x);
    others_end(x);
    those_ahead_go(x);
    change_job(x);
    change_queue(x);
    change_nodes(x);
}
