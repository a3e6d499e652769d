// SPDX-License-Identifier: Apache-2.0
// Expectations: each compares a line with the cluster after the last cycle, and reports any
// difference.
#include "sim/scn_priv.h"

#include "sim/report.h"

#include "codec/quantity.h"

#include <math.h>

/* ---- references ---- */

static const struct scn_word *scn_expect_word(const struct scn_run *r, uint32_t k)
{
    return &r->line->words[k];
}

/* The value of key=value from word `from` on; s is NULL when missing. */
static struct hk_str option(const struct scn_run *r, uint32_t from, const char *key)
{
    for (uint32_t k = from; k < r->line->n; k++) {
        if (hk_str_is(scn_expect_word(r, k)->key, key) && scn_expect_word(r, k)->value.s) {
            return scn_expect_word(r, k)->value;
        }
    }
    return (struct hk_str){0};
}

/* Refuses options that are not in the list (separated by blanks); plain words pass. */
static int only_options(const struct scn_run *r, uint32_t from, const char *options,
                        struct hk_err *err)
{
    for (uint32_t k = from; k < r->line->n; k++) {
        struct hk_str rest = hk_str(options), part;
        bool known = !scn_expect_word(r, k)->value.s;
        while (!known && hk_str_cut(&rest, ' ', &part)) {
            known = hk_str_eq(part, scn_expect_word(r, k)->key);
        }
        if (!known) {
            return scn_fail(r, err, "expect %.*s knows no '%.*s='",
                            HK_FMT(scn_expect_word(r, 1)->key), HK_FMT(scn_expect_word(r, k)->key));
        }
    }
    return 0;
}

/* Whether the text contains the wanted part, if there is one. */
static bool says(struct scn_run *r, struct hk_str text, struct hk_str want)
{
    return !want.s || hk_str_contains(text, hk_arena_strndup(&r->mem, want.s, want.n));
}

static int scn_expect_parse_count(const struct scn_run *r, struct hk_str text, int64_t *ret,
                                  struct hk_err *err)
{
    return hk_str_int(text, ret) ? 0
                                 : scn_fail(r, err, "count '%.*s', want a number", HK_FMT(text));
}

struct ref {
    const struct scn_object *o;
    struct hk_str name; /* as written */
};

struct refs {
    struct ref *at; /* in the run's arena */
    uint32_t n, cap;
};

static void refs_push(struct scn_run *r, struct refs *refs, struct hk_str name,
                      const struct scn_object *o)
{
    if (refs->n == refs->cap) {
        const uint32_t cap = refs->cap * 2 + 8;
        struct ref *at = hk_arena_array(&r->mem, cap, sizeof(*at));
        for (uint32_t k = 0; k < refs->n; k++) {
            at[k] = refs->at[k];
        }
        refs->at = at;
        refs->cap = cap;
    }
    refs->at[refs->n++] = (struct ref){o, name};
}

/* Tasks whose reference begins with "JOB/". */
static void tasks_of_job(struct scn_run *r, struct hk_str job, struct refs *ret)
{
    for (uint32_t id = 1; id < r->objects.len; id++) {
        struct hk_str key = hk_intern_str(&r->refs, id), kind, owner;
        const struct hk_str ref = {key.s + 5, key.n - HK_MIN(key.n, 5)};
        struct hk_str rest = ref;
        hk_str_cut(&key, ' ', &kind);
        hk_str_cut(&rest, '/', &owner);
        if (hk_str_is(kind, "task") && rest.s && hk_str_eq(owner, job)) {
            refs_push(r, ret, ref, &r->objects.at[id]);
        }
    }
}

/* Adds a task, a range of tasks, or every task of a job. */
static int scn_expect_resolve_refs(struct scn_run *r, struct hk_str text, struct refs *ret,
                                   struct hk_err *err)
{
    struct scn_names names;
    const int rc = scn_expand(r, text, &names, err);

    for (uint32_t k = 0; rc == 0 && k < names.n; k++) {
        const struct scn_object *o = scn_task_find(r, names.at[k]);
        if (o) {
            refs_push(r, ret, names.at[k], o);
        } else if (scn_job_find(r, names.at[k])) {
            tasks_of_job(r, names.at[k], ret);
        } else {
            return scn_fail(r, err, "no task or job '%.*s'", HK_FMT(names.at[k]));
        }
    }
    return rc;
}

/* Resolves the tasks named on an expect line, which may have only these options besides. */
static int resolve_line(struct scn_run *r, const char *options, struct refs *ret,
                        struct hk_err *err)
{
    int rc = only_options(r, 2, options, err);

    for (uint32_t k = 2; k < r->line->n && rc == 0; k++) {
        if (!scn_expect_word(r, k)->value.s) {
            rc = scn_expect_resolve_refs(r, scn_expect_word(r, k)->key, ret, err);
        }
    }
    return rc;
}

/* Whether the pod "namespace/name" is the object. */
static bool same_pod(const struct scn_object *o, struct hk_str pod)
{
    return pod.n == o->ns.n + 1 + o->name.n && memcmp(pod.s, o->ns.s, o->ns.n) == 0 &&
           memcmp(pod.s + o->ns.n + 1, o->name.s, o->name.n) == 0;
}

static int find_job(struct scn_run *r, struct hk_str ref, job_id *ret, struct hk_err *err)
{
    const struct scn_object *o = scn_job_find(r, ref);

    *ret = o ? model_job_find(&r->c.m, o->ns, o->name) : NO_JOB;
    return id_none(*ret) ? scn_fail(r, err, "no job '%.*s'", HK_FMT(ref)) : 0;
}

/* ---- where tasks are ---- */

static task_id task_of(const struct scn_run *r, const struct scn_object *o)
{
    return model_task_find(&r->c.m, o->ns, o->name);
}

static bool is_bound(const struct scn_run *r, task_id t)
{
    const unsigned bound =
        STATUS_BIT(TASK_BINDING) | STATUS_BIT(TASK_BOUND) | STATUS_BIT(TASK_RUNNING);

    return !id_none(t) && status_in(model_task(&r->c.m, t)->status, bound);
}

/* "Running on n1", "Pending", "gone" */
static const char *whereabouts(struct scn_run *r, task_id t)
{
    if (id_none(t)) {
        return "gone";
    }
    const struct task *task = model_task(&r->c.m, t);
    if (id_none(task->node)) {
        return task_status_name(task->status);
    }
    return hk_arena_printf(&r->mem, "%s on %.*s", task_status_name(task->status),
                           HK_FMT(model_str(&r->c.m, r->c.m.nodes.name[task->node.i])));
}

/* "n1" or "n1|n2" */
static bool scn_expect_matches_choice(struct hk_str choices, struct hk_str name)
{
    struct hk_str part;

    while (hk_str_cut(&choices, '|', &part)) {
        if (hk_str_eq(part, name)) {
            return true;
        }
    }
    return false;
}

static int bound_word(struct scn_run *r, const struct scn_word *w, uint32_t *n, struct hk_err *err)
{
    struct refs refs = {0};
    const int rc = scn_expect_resolve_refs(r, w->key, &refs, err);
    const bool counting = option(r, 2, "count").s != NULL;

    for (uint32_t k = 0; rc == 0 && k < refs.n; k++) {
        const task_id t = task_of(r, refs.at[k].o);
        const bool ok = is_bound(r, t);
        *n += ok;
        if (counting && !w->value.s) {
            continue;
        }
        if (!ok || (w->value.s &&
                    !scn_expect_matches_choice(
                        w->value,
                        model_str(&r->c.m, r->c.m.nodes.name[model_task(&r->c.m, t)->node.i])))) {
            return scn_fail(r, err, "expected %.*s bound%s%.*s, it is %s", HK_FMT(refs.at[k].name),
                            w->value.s ? " to " : "", HK_FMT(w->value.s ? w->value : HK_STR("")),
                            whereabouts(r, t));
        }
    }
    return rc;
}

static int expect_bound(struct scn_run *r, struct hk_err *err)
{
    const struct hk_str count = option(r, 2, "count");
    int64_t want = 0;
    uint32_t n = 0;
    int rc = count.s ? scn_expect_parse_count(r, count, &want, err) : 0;

    for (uint32_t k = 2; k < r->line->n && rc == 0; k++) {
        if (!hk_str_is(scn_expect_word(r, k)->key, "count")) {
            rc = bound_word(r, scn_expect_word(r, k), &n, err);
        }
    }
    if (rc == 0 && count.s && n != want) {
        return scn_fail(r, err, "expected %lld bound, %u are", (long long)want, n);
    }
    return rc;
}

/* ---- reasons of waiting tasks ---- */

static const struct cluster_wait *wait_of(const struct scn_run *r, const struct scn_object *o)
{
    for (uint32_t k = 0; k < r->c.waits.len; k++) {
        if (same_pod(o, r->c.waits.at[k].pod)) {
            return &r->c.waits.at[k];
        }
    }
    return NULL;
}

/* All messages about the task and its job, one per line. */
static void reasons(struct scn_run *r, const struct scn_object *o, struct hk_buf *out)
{
    const struct cluster_wait *w = wait_of(r, o);
    const task_id t = task_of(r, o);
    const struct cluster_group *g = NULL;

    if (!id_none(t) && !id_none(model_task(&r->c.m, t)->job)) {
        g = cluster_group(&r->c, model_task(&r->c.m, t)->job);
    }
    if (w) {
        hk_buf_addf(out, "%.*s\n", HK_FMT(w->message));
    }
    if (g && g->message) {
        hk_buf_addf(out, "%s\n", g->message);
    }
    if (g && g->event) {
        hk_buf_addf(out, "%s\n", g->event);
    }
}

static int pending_task(struct scn_run *r, const struct scn_object *o, struct hk_str ref,
                        struct hk_str why, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf said = {0};
    const task_id t = task_of(r, o);

    if (id_none(t) || model_task(&r->c.m, t)->status != TASK_PENDING) {
        return scn_fail(r, err, "expected %.*s pending, it is %s", HK_FMT(ref), whereabouts(r, t));
    }
    if (!why.s) {
        return 0;
    }
    reasons(r, o, &said);
    if (!says(r, hk_buf_str(&said), why)) {
        return scn_fail(r, err, "expected %.*s to wait because \"%.*s\", what was said:\n%.*s",
                        HK_FMT(ref), HK_FMT(why), HK_FMT(hk_buf_str(&said)));
    }
    return 0;
}

static int expect_pending(struct scn_run *r, struct hk_err *err)
{
    const struct hk_str why = option(r, 2, "why");
    struct refs refs = {0};
    int rc = resolve_line(r, "why", &refs, err);

    for (uint32_t i = 0; i < refs.n && rc == 0; i++) {
        rc = pending_task(r, refs.at[i].o, refs.at[i].name, why, err);
    }
    return rc;
}

/* expect pod j/0 reason=Schedulable message="..." */
static int expect_pod(struct scn_run *r, struct hk_err *err)
{
    const struct hk_str reason = option(r, 2, "reason"), message = option(r, 2, "message");
    struct refs refs = {0};
    int rc = resolve_line(r, "reason message", &refs, err);

    for (uint32_t i = 0; i < refs.n && rc == 0; i++) {
        const struct cluster_wait *w = wait_of(r, refs.at[i].o);
        if (!w) {
            return scn_fail(r, err, "expected %.*s to wait, it is %s", HK_FMT(refs.at[i].name),
                            whereabouts(r, task_of(r, refs.at[i].o)));
        }
        if ((reason.s && !hk_str_eq(reason, w->reason)) || !says(r, w->message, message)) {
            return scn_fail(r, err, "%.*s waits otherwise than expected: %.*s: %.*s",
                            HK_FMT(refs.at[i].name), HK_FMT(w->reason), HK_FMT(w->message));
        }
    }
    return rc;
}

/* ---- what the last cycle did ---- */

static bool scn_expect_refs_have_pod(const struct scn_run *r, const struct refs *refs,
                                     struct hk_str pod)
{
    for (uint32_t k = 0; k < refs->n; k++) {
        if (same_pod(refs->at[k].o, pod)) {
            return true;
        }
    }
    return false;
}

static bool was_evicted(const struct scn_run *r, const struct scn_object *o)
{
    for (uint32_t k = r->c.first_eviction; k < r->c.evictions.len; k++) {
        if (same_pod(o, r->c.evictions.at[k].pod)) {
            return true;
        }
    }
    return false;
}

static const char *evicted_text(struct scn_run *r)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    for (uint32_t k = r->c.first_eviction; k < r->c.evictions.len; k++) {
        hk_buf_addf(&b, "%s%.*s", b.len > 0 ? " " : "", HK_FMT(r->c.evictions.at[k].pod));
    }
    return b.len > 0 ? hk_arena_str(&r->mem, hk_buf_str(&b)).s : "none";
}

static int evicted_count(struct scn_run *r, struct hk_str count, struct hk_err *err)
{
    const struct hk_str of = option(r, 2, "of");
    struct refs refs = {0};
    int64_t want;
    uint32_t n = 0;
    int rc = scn_expect_parse_count(r, count, &want, err);

    if (rc == 0 && of.s) {
        rc = scn_expect_resolve_refs(r, of, &refs, err);
    }
    for (uint32_t k = r->c.first_eviction; rc == 0 && k < r->c.evictions.len; k++) {
        n += !of.s || scn_expect_refs_have_pod(r, &refs, r->c.evictions.at[k].pod);
    }
    if (rc == 0 && n != want) {
        return scn_fail(r, err, "expected %lld evicted, got %u: %s", (long long)want, n,
                        evicted_text(r));
    }
    return rc;
}

static int expect_evicted(struct scn_run *r, struct hk_err *err)
{
    const struct hk_str count = option(r, 2, "count");
    const uint32_t got = r->c.evictions.len - r->c.first_eviction;
    uint32_t want = 0;
    int rc = only_options(r, 2, "count of", err);

    if (rc == 0 && count.s) {
        return evicted_count(r, count, err);
    }
    for (uint32_t k = 2; k < r->line->n && rc == 0; k++) {
        struct refs refs = {0};
        if (hk_str_is(scn_expect_word(r, k)->key, "none")) {
            continue;
        }
        rc = scn_expect_resolve_refs(r, scn_expect_word(r, k)->key, &refs, err);
        for (uint32_t i = 0; i < refs.n && rc == 0; i++) {
            want++;
            if (!was_evicted(r, refs.at[i].o)) {
                return scn_fail(r, err, "expected %.*s evicted; evicted: %s",
                                HK_FMT(refs.at[i].name), evicted_text(r));
            }
        }
    }
    if (rc == 0 && got != want) {
        return scn_fail(r, err, "expected %u evicted, got %u: %s", want, got, evicted_text(r));
    }
    return rc;
}

static const char *pipelined_text(struct scn_run *r)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    for (uint32_t k = 0; k < r->c.pipelined.len; k++) {
        hk_buf_addf(&b, "%s%.*s=%.*s", b.len > 0 ? " " : "", HK_FMT(r->c.pipelined.at[k].pod),
                    HK_FMT(r->c.pipelined.at[k].node));
    }
    return b.len > 0 ? hk_arena_str(&r->mem, hk_buf_str(&b)).s : "none";
}

static bool is_pipelined(const struct scn_run *r, const struct scn_object *o, struct hk_str nodes)
{
    for (uint32_t k = 0; k < r->c.pipelined.len; k++) {
        if (same_pod(o, r->c.pipelined.at[k].pod)) {
            return !nodes.s || scn_expect_matches_choice(nodes, r->c.pipelined.at[k].node);
        }
    }
    return false;
}

/* expect pipelined j/0=n1 j/1, none, or count=N. Tasks not named may be pipelined too. */
static int expect_pipelined(struct scn_run *r, struct hk_err *err)
{
    const struct hk_str count = option(r, 2, "count");
    int64_t want = -1;
    int rc = count.s ? scn_expect_parse_count(r, count, &want, err) : 0;

    for (uint32_t k = 2; k < r->line->n && rc == 0; k++) {
        const struct scn_word *w = scn_expect_word(r, k);
        struct refs refs = {0};
        if (hk_str_is(w->key, "count")) {
            continue;
        }
        if (hk_str_is(w->key, "none")) {
            want = 0;
            continue;
        }
        rc = scn_expect_resolve_refs(r, w->key, &refs, err);
        for (uint32_t i = 0; i < refs.n && rc == 0; i++) {
            if (!is_pipelined(r, refs.at[i].o, w->value)) {
                return scn_fail(r, err, "expected %.*s pipelined%s%.*s; pipelined: %s",
                                HK_FMT(refs.at[i].name), w->value.s ? " to " : "",
                                HK_FMT(w->value.s ? w->value : HK_STR("")), pipelined_text(r));
            }
        }
    }
    if (rc == 0 && want >= 0 && r->c.pipelined.len != want) {
        return scn_fail(r, err, "expected %lld pipelined, got %u: %s", (long long)want,
                        r->c.pipelined.len, pipelined_text(r));
    }
    return rc;
}

static int expect_binds(struct scn_run *r, struct hk_err *err)
{
    const struct hk_str count = option(r, 2, "count");
    const uint32_t got = r->c.binds.len - r->c.first_bind;
    int64_t want = 0;
    int rc;

    if (!count.s && !(r->line->n == 3 && hk_str_is(scn_expect_word(r, 2)->key, "none"))) {
        return scn_fail(r, err, "want expect binds count=N or none");
    }
    rc = count.s ? scn_expect_parse_count(r, count, &want, err) : 0;
    if (rc == 0 && got != want) {
        return scn_fail(r, err, "expected %lld binds in the last cycle, got %u", (long long)want,
                        got);
    }
    return rc;
}

/* Checks that the last cycle bound the line's tasks in this relative order. */
static int expect_order(struct scn_run *r, struct hk_err *err)
{
    uint32_t at = r->c.first_bind;
    int rc = only_options(r, 2, "", err);

    for (uint32_t k = 2; k < r->line->n && rc == 0; k++) {
        struct refs refs = {0};
        rc = scn_expect_resolve_refs(r, scn_expect_word(r, k)->key, &refs, err);
        for (uint32_t i = 0; i < refs.n && rc == 0; i++) {
            while (at < r->c.binds.len && !same_pod(refs.at[i].o, r->c.binds.at[at].pod)) {
                at++;
            }
            if (at == r->c.binds.len) {
                return scn_fail(r, err, "%.*s was not bound at this place in the order",
                                HK_FMT(refs.at[i].name));
            }
        }
    }
    return rc;
}

/* ---- amounts ---- */

/* Converts "2" or "4Gi" to the model's units; shares may need fractions of them. */
static int amount_of(struct scn_run *r, const struct scn_word *w, uint32_t *ret_dim, double *ret,
                     struct hk_err *err)
{
    const struct hk_str name = scn_resource(w->key);
    struct quantity q;

    *ret_dim = dims_find(&r->c.m.dims, name);
    if (*ret_dim == HK_NONE) {
        return scn_fail(r, err, "nobody here has or wants '%.*s'", HK_FMT(name));
    }
    if (!w->value.s || quantity_parse(w->value, &q, NULL) < 0) {
        return scn_fail(r, err, "'%.*s' wants an amount", HK_FMT(w->key));
    }
    *ret = (double)q.nano / (r->c.m.dims.unit[*ret_dim] == DIM_MILLI ? 1e6 : 1e9);
    return 0;
}

static const char *amount_text(struct scn_run *r, uint32_t dim, double v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    report_amount(&r->c.m, dim, v, &b);
    return hk_arena_str(&r->mem, hk_buf_str(&b)).s;
}

/* Scenarios write shares with two or three digits, so half a percent counts as equal. */
static bool close_to(double got, double want)
{
    return fabs(got - want) <= 1 + fabs(want) * 0.005;
}

static int expect_idle(struct scn_run *r, struct hk_err *err)
{
    const node_id n =
        r->line->n > 2 ? model_node_find(&r->c.m, scn_expect_word(r, 2)->key) : NO_NODE;

    if (id_none(n)) {
        return scn_fail(r, err, "want expect idle NODE cpu=...");
    }
    for (uint32_t k = 3; k < r->line->n; k++) {
        uint32_t dim = 0;
        double want = 0;
        const int rc = amount_of(r, scn_expect_word(r, k), &dim, &want, err);
        if (rc < 0) {
            return rc;
        }
        const double got = (double)r->c.m.nodes.idle.col[dim][n.i];
        if (got != want) {
            return scn_fail(r, err, "expected %.*s=%.*s idle on %.*s, got %s",
                            HK_FMT(scn_expect_word(r, k)->key),
                            HK_FMT(scn_expect_word(r, k)->value),
                            HK_FMT(scn_expect_word(r, 2)->key), amount_text(r, dim, got));
        }
    }
    return 0;
}

static int queue_amount(struct scn_run *r, queue_id q, const struct scn_word *w, bool deserved,
                        struct hk_err *err)
{
    const struct rvec *part = report_deserved(&r->c, q.i);
    uint32_t dim = 0;
    double want = 0, got = 0;
    const int rc = amount_of(r, w, &dim, &want, err);

    if (rc < 0) {
        return rc;
    }
    if (deserved && !part) {
        return scn_fail(r, err, "no plugin says what the queue deserves");
    }
    got = deserved ? rvec_get(part, dim) : (double)model_queue(&r->c.m, q)->allocated[dim];
    if (deserved ? !close_to(got, want) : got != want) {
        return scn_fail(r, err, "expected %s %.*s=%.*s, got %s",
                        deserved ? "deserved" : "allocated", HK_FMT(w->key), HK_FMT(w->value),
                        amount_text(r, dim, got));
    }
    return 0;
}

static int queue_share(struct scn_run *r, queue_id q, struct hk_str value, struct hk_err *err)
{
    const bool known = q.i < r->c.shares.len && r->c.shares.at[q.i].known;
    char *end;
    const double want = strtod(hk_arena_strndup(&r->mem, value.s, value.n), &end);

    if (value.n == 0 || *end != '\0') {
        return scn_fail(r, err, "share '%.*s', want a number", HK_FMT(value));
    }
    if (!known || !(fabs(r->c.shares.at[q.i].share - want) <= 0.005)) {
        return scn_fail(r, err, "expected share %.*s, got %g", HK_FMT(value),
                        known ? r->c.shares.at[q.i].share : 0.0);
    }
    return 0;
}

/* expect queue q allocated cpu=2 deserved cpu=3.33 share=0.5 */
static int expect_queue(struct scn_run *r, struct hk_err *err)
{
    const queue_id q =
        r->line->n > 2 ? model_queue_find(&r->c.m, scn_expect_word(r, 2)->key) : NO_QUEUE;
    bool deserved = false;
    int rc = 0;

    if (id_none(q)) {
        return scn_fail(r, err, "want expect queue NAME, and that queue to exist");
    }
    for (uint32_t k = 3; k < r->line->n && rc == 0; k++) {
        const struct scn_word *w = scn_expect_word(r, k);
        if (!w->value.s && (hk_str_is(w->key, "allocated") || hk_str_is(w->key, "deserved"))) {
            deserved = hk_str_is(w->key, "deserved");
        } else if (hk_str_is(w->key, "share") && w->value.s) {
            rc = queue_share(r, q, w->value, err);
        } else {
            rc = queue_amount(r, q, w, deserved, err);
        }
    }
    return rc;
}

/* ---- PodGroups ---- */

static int expect_phase(struct scn_run *r, struct hk_err *err)
{
    job_id j = NO_JOB;
    int rc;

    if (r->line->n != 4) {
        return scn_fail(r, err, "want expect phase JOB PHASE");
    }
    rc = find_job(r, scn_expect_word(r, 2)->key, &j, err);
    if (rc == 0 &&
        !hk_str_is(scn_expect_word(r, 3)->key, pg_phase_name(model_job(&r->c.m, j)->phase))) {
        return scn_fail(r, err, "expected %.*s %.*s, it is %s", HK_FMT(scn_expect_word(r, 2)->key),
                        HK_FMT(scn_expect_word(r, 3)->key),
                        pg_phase_name(model_job(&r->c.m, j)->phase));
    }
    return rc;
}

static int expect_condition(struct scn_run *r, struct hk_err *err)
{
    static const char *const names[] = {"none", "Unschedulable", "Scheduled"};
    const struct hk_str message = option(r, 2, "message");
    job_id j = NO_JOB;
    int rc = only_options(r, 2, "message", err);

    if (rc == 0 && r->line->n < 4) {
        return scn_fail(r, err, "want expect condition JOB TYPE");
    }
    if (rc == 0) {
        rc = find_job(r, scn_expect_word(r, 2)->key, &j, err);
    }
    if (rc < 0) {
        return rc;
    }
    const struct cluster_group *g = cluster_group(&r->c, j);
    const char *got = names[g ? g->condition : NOTE_NONE];
    const struct hk_str said = hk_str(g && g->message ? g->message : "");
    if (!hk_str_is(scn_expect_word(r, 3)->key, got) || !says(r, said, message)) {
        return scn_fail(r, err, "expected condition %.*s%s%.*s, got %s: %.*s",
                        HK_FMT(scn_expect_word(r, 3)->key), message.s ? ": " : "",
                        HK_FMT(message.s ? message : HK_STR("")), got, HK_FMT(said));
    }
    return 0;
}

/* ---- input ---- */

static int expect_problem(struct scn_run *r, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf all = {0};
    uint32_t n;

    if (r->line->n != 3) {
        return scn_fail(r, err, "want expect problem \"text\"");
    }
    const struct hk_str want = hk_str(
        hk_arena_strndup(&r->mem, scn_expect_word(r, 2)->key.s, scn_expect_word(r, 2)->key.n));
    ingest_settle(r->c.in);
    const struct ingest_problem *p = ingest_problems(r->c.in, &n);
    hk_vec_push(&r->known_problems, want);
    for (uint32_t k = 0; k < n; k++) {
        if (hk_str_contains(hk_str(p[k].text), want.s)) {
            return 0;
        }
        hk_buf_addf(&all, "\n%s: %s", p[k].object, p[k].text);
    }
    for (uint32_t k = 0; k < r->c.problems.len; k++) {
        if (hk_str_contains(r->c.problems.at[k].text, want.s)) {
            return 0;
        }
        hk_buf_addf(&all, "\n%.*s", HK_FMT(r->c.problems.at[k].text));
    }
    return scn_fail(r, err, "expected problem \"%.*s\", got:%.*s", HK_FMT(want),
                    HK_FMT(all.len > 0 ? hk_buf_str(&all) : HK_STR(" none")));
}

static const struct {
    const char *word;
    int (*check)(struct scn_run *r, struct hk_err *err);
} checks[] = {
    {"bound", expect_bound},     {"pending", expect_pending},     {"unbound", expect_pending},
    {"evicted", expect_evicted}, {"pipelined", expect_pipelined}, {"idle", expect_idle},
    {"phase", expect_phase},     {"condition", expect_condition}, {"pod", expect_pod},
    {"queue", expect_queue},     {"binds", expect_binds},         {"order", expect_order},
    {"problem", expect_problem},
};

int scn_expect_line(struct scn_run *r, struct hk_err *err)
{
    if (r->line->n < 2 || r->line->body.s) {
        return scn_fail(r, err, "want expect and what is expected");
    }
    for (size_t k = 0; k < HK_LEN(checks); k++) {
        if (hk_str_is(scn_expect_word(r, 1)->key, checks[k].word)) {
            if (r->line->n < 3) {
                return scn_fail(r, err, "expect %s of what?", checks[k].word);
            }
            return checks[k].check(r, err);
        }
    }
    return scn_fail(r, err, "nothing is expected by the word '%.*s'",
                    HK_FMT(scn_expect_word(r, 1)->key));
}
