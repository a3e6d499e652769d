// SPDX-License-Identifier: Apache-2.0
// The shortcuts of node selection against the plain loop. From one seed the same random cluster is
// made twice and driven for a few cycles, once as in production and once with every search
// evaluated in full: decisions, and the state they leave behind, must be equal. Beside that, what
// must hold of any cycle is checked: books balance, no node is overfilled, no gang is bound below
// its minimum, nothing is evicted by its equals or for a gang that does not get its place.
//
//   hekla-property [--seeds N] [--from S]   a TAP point per hundred seeds
//   hekla-property --seed S                 one seed, with cluster and both lists of decisions
#include "property/random_world.h"
#include "scheduler/model/topo.h"

#include <stdio.h>
#include <stdlib.h>

enum { CYCLES = 3, BATCH = 100, DEFAULT_SEEDS = 2000 };

struct run {
    struct random_world r;
    struct conf *conf;
    struct scheduler_mem *sm;
    struct session ssn;
};

static int run_init(struct run *run, uint64_t seed, bool plain, struct hk_err *err)
{
    random_world_init(&run->r, seed);
    run->r.opts.plain = plain;
    run->sm = scheduler_mem_new(seed);
    run->conf = NULL;
    return conf_parse(hk_buf_str(&run->r.conf), &run->conf, err);
}

static void run_fini(struct run *run)
{
    conf_free(run->conf);
    scheduler_mem_free(run->sm);
    random_world_fini(&run->r);
}

/* ---- what must hold of any cycle ---- */

/* Whether the plugin has a say before any other tier may decide. */
static bool rules_first(const struct session *ssn, const char *plugin, enum hook_kind kind)
{
    const struct hook_list *l = &ssn->hooks[kind];

    for (uint32_t k = 0; k < l->n && l->at[k].tier == l->at[0].tier; k++) {
        if (strcmp(l->at[k].p->name, plugin) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether no victim is chosen against the plugin's will. Three voices in a tier are too many: an
 * empty intersection of two lets the third start over (hooks.c). */
static bool rules_every_tier(const struct session *ssn, const char *plugin, enum hook_kind kind)
{
    const struct hook_list *l = &ssn->hooks[kind];

    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t voices = 0;
        bool found = false;
        for (uint32_t i = 0; i < l->n; i++) {
            voices += l->at[i].tier == l->at[k].tier;
            found |= l->at[i].tier == l->at[k].tier && strcmp(l->at[i].p->name, plugin) == 0;
        }
        if (!found || voices > 2) {
            return false;
        }
    }
    return true;
}

static bool was_evicted_from(const struct session *ssn, job_id j)
{
    for (uint32_t k = 0; k < ssn->decisions.len; k++) {
        const struct decision *d = &ssn->decisions.at[k];
        if (d->kind == OP_EVICT && id_eq(model_task(ssn->m, d->task)->job, j)) {
            return true;
        }
    }
    return false;
}

/* A best-effort member counts as ready while it waits, and goes on counting when it is pipelined.
 */
static int64_t members_ready(const struct model *m, const struct job *j)
{
    int64_t n = (int64_t)tally_ready(&j->tally) + j->tally.pending_be;

    for (task_id t = j->others; !id_none(t); t = model_task(m, t)->job_next) {
        const struct task *task = model_task(m, t);
        n += task->status == TASK_PIPELINED && (task->flags & TASK_BEST_EFFORT);
    }
    return n;
}

static int check_bind(const struct session *ssn, const struct decision *d, struct hk_err *err)
{
    const struct model *m = ssn->m;
    const struct task *t = model_task(m, d->task);
    const struct shape *s = task_shape(m, d->task);
    const struct job *j = model_job(m, t->job);

    for (uint32_t k = 0; k < s->nreq; k++) {
        if (m->nodes.idle.col[s->req[k].dim][d->node.i] < 0) {
            return hk_fail(err, HK_EINVAL, "bind of task %u overfills node %u in dimension %u",
                           d->task.i, d->node.i, s->req[k].dim);
        }
    }
    if (rules_first(ssn, "gang", HOOK_JOB_READY) && !was_evicted_from(ssn, t->job) &&
        members_ready(m, j) < j->min) {
        return hk_fail(err, HK_EINVAL, "job %u is bound below its minimum: %lld ready, min %d",
                       t->job.i, (long long)members_ready(m, j), j->min);
    }
    return 0;
}

/* Inside a job it is the task that gets a place that must rank higher. */
static bool outranks(const struct model *m, job_id a, const struct task *victim)
{
    if (!id_eq(a, victim->job)) {
        return model_job(m, a)->priority > model_job(m, victim->job)->priority;
    }
    for (task_id t = model_job(m, a)->others; !id_none(t); t = model_task(m, t)->job_next) {
        const struct task *task = model_task(m, t);
        if (task->status == TASK_PIPELINED && task->priority > victim->priority) {
            return true;
        }
    }
    return false;
}

static int check_evict(const struct session *ssn, const struct decision *d, struct hk_err *err)
{
    const struct model *m = ssn->m;
    const struct task *victim = model_task(m, d->task);

    if (id_none(d->for_job)) {
        return 0;
    }
    const bool within = id_eq(d->for_job, victim->job);
    if (strcmp(d->reason, "preempt") == 0 && !outranks(m, d->for_job, victim) &&
        (within || rules_every_tier(ssn, "priority", HOOK_PREEMPTABLE))) {
        return hk_fail(err, HK_EINVAL, "job %u evicts task %u of job %u, which ranks no lower",
                       d->for_job.i, d->task.i, victim->job.i);
    }
    if (rules_first(ssn, "gang", HOOK_JOB_PIPELINED) && !was_evicted_from(ssn, d->for_job) &&
        !job_counts_pipelined(model_job(m, d->for_job))) {
        return hk_fail(err, HK_EINVAL,
                       "task %u is evicted (%s) for job %u, whose gang has no place", d->task.i,
                       d->reason, d->for_job.i);
    }
    return 0;
}

static int check_decisions(const struct session *ssn, struct hk_err *err)
{
    int rc = 0;

    for (uint32_t k = 0; rc == 0 && k < ssn->decisions.len; k++) {
        const struct decision *d = &ssn->decisions.at[k];
        rc = d->kind == OP_EVICT ? check_evict(ssn, d, err) : check_bind(ssn, d, err);
    }
    return rc;
}

/* Before the session is closed: pipelined tasks still show. */
static int cycle(struct run *run, struct hk_err *err)
{
    struct model *m = &run->r.w.m;
    int rc;

    session_open(&run->ssn, m, run->conf, &run->r.opts, run->sm);
    session_run(&run->ssn);
    rc = check_decisions(&run->ssn, err);
    session_close(&run->ssn);
    if (rc == 0) {
        rc = model_check(m, err);
    }
    return rc == 0 ? topo_check(m, err) : rc;
}

/* ---- the two runs side by side ---- */

static void write_decision(const struct session *ssn, uint32_t k, struct hk_buf *out)
{
    if (k >= ssn->decisions.len) {
        hk_buf_adds(out, "none");
        return;
    }
    const struct decision *d = &ssn->decisions.at[k];
    const struct model *m = ssn->m;
    hk_buf_addf(out, "%s %.*s on %.*s%s%s", d->kind == OP_EVICT ? "evict" : "bind",
                HK_FMT(model_str(m, model_task(m, d->task)->name)),
                HK_FMT(model_str(m, m->nodes.name[d->node.i])), d->reason ? " by " : "",
                d->reason ? d->reason : "");
}

static bool same_decision(const struct decision *a, const struct decision *b)
{
    return a->kind == b->kind && id_eq(a->task, b->task) && id_eq(a->node, b->node) &&
           id_eq(a->for_job, b->for_job);
}

static int compare_decisions(const struct session *a, const struct session *b, struct hk_err *err)
{
    const uint32_t n = HK_MAX(a->decisions.len, b->decisions.len);

    for (uint32_t k = 0; k < n; k++) {
        if (k < a->decisions.len && k < b->decisions.len &&
            same_decision(&a->decisions.at[k], &b->decisions.at[k])) {
            continue;
        }
        HK_AUTO(hk_buf_fini) struct hk_buf fast = {0}, plain = {0};
        write_decision(a, k, &fast);
        write_decision(b, k, &plain);
        return hk_fail(err, HK_EINVAL, "decision %u: fast '%s', plain '%s'", k, fast.data,
                       plain.data);
    }
    return 0;
}

static int compare_state(const struct model *a, const struct model *b, struct hk_err *err)
{
    if (a->jobs.len != b->jobs.len || a->tasks.len != b->tasks.len) {
        return hk_fail(err, HK_EINVAL, "rows: fast %u jobs and %u tasks, plain %u and %u",
                       a->jobs.len, a->tasks.len, b->jobs.len, b->tasks.len);
    }
    for (uint32_t i = 0; i < a->jobs.len; i++) {
        if (a->jobs.at[i].phase != b->jobs.at[i].phase) {
            return hk_fail(err, HK_EINVAL, "job %u: phase fast '%s', plain '%s'", i,
                           pg_phase_name(a->jobs.at[i].phase), pg_phase_name(b->jobs.at[i].phase));
        }
    }
    for (uint32_t i = 0; i < a->tasks.len; i++) {
        const struct task *x = &a->tasks.at[i], *y = &b->tasks.at[i];
        const node_id x_waits = model_node_of(a, x->nominated);
        const node_id y_waits = model_node_of(b, y->nominated);
        if (x->status != y->status || !id_eq(x->node, y->node) || !id_eq(x_waits, y_waits)) {
            return hk_fail(err, HK_EINVAL,
                           "task %u: fast %s on %d nominated %d, plain %s on %d nominated %d", i,
                           task_status_name(x->status), (int)x->node.i, (int)x_waits.i,
                           task_status_name(y->status), (int)y->node.i, (int)y_waits.i);
        }
    }
    return 0;
}

static void print_decisions(const char *which, const struct session *ssn)
{
    printf("# %s: %u decisions\n", which, ssn->decisions.len);
    for (uint32_t k = 0; k < ssn->decisions.len; k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        write_decision(ssn, k, &text);
        printf("#   %s\n", text.data);
    }
}

static int drive(struct run *fast, struct run *plain, bool verbose, uint64_t *decisions,
                 struct hk_err *err)
{
    for (uint32_t c = 0; c < CYCLES; c++) {
        if (verbose) {
            printf("# ---- cycle %u ----\n", c);
            random_world_print(&fast->r);
        }
        int rc = cycle(fast, err);
        if (rc < 0) {
            return hk_wrap(err, rc, "cycle %u, fast", c);
        }
        rc = cycle(plain, err);
        if (rc < 0) {
            return hk_wrap(err, rc, "cycle %u, plain", c);
        }
        if (verbose) {
            print_decisions("fast", &fast->ssn);
            print_decisions("plain", &plain->ssn);
        }
        rc = compare_decisions(&fast->ssn, &plain->ssn, err);
        if (rc == 0) {
            rc = compare_state(&fast->r.w.m, &plain->r.w.m, err);
        }
        if (rc < 0) {
            return hk_wrap(err, rc, "cycle %u", c);
        }
        *decisions += fast->ssn.decisions.len;
        random_world_step(&fast->r);
        random_world_step(&plain->r);
    }
    return 0;
}

static int try_seed(uint64_t seed, bool verbose, uint64_t *decisions, struct hk_err *err)
{
    struct run fast, plain;
    int rc = run_init(&fast, seed, false, err);

    if (verbose) {
        printf("# %s\n", fast.r.conf.data);
    }
    const int rc_plain = run_init(&plain, seed, true, err);
    rc = rc < 0 ? rc : rc_plain;
    if (rc == 0) {
        rc = drive(&fast, &plain, verbose, decisions, err);
    }
    run_fini(&fast);
    run_fini(&plain);
    return rc;
}

/* ---- TAP ---- */

static bool batch(uint64_t from, uint64_t n, uint32_t point)
{
    uint64_t decisions = 0;
    bool ok = true;

    for (uint64_t s = from; s < from + n; s++) {
        struct hk_err err = {0};
        if (try_seed(s, false, &decisions, &err) < 0) {
            printf("# seed %llu: %s\n", (unsigned long long)s, err.text);
            ok = false;
        }
    }
    printf("%sok %u - seeds %llu to %llu decide alike (%llu decisions)\n", ok ? "" : "not ", point,
           (unsigned long long)from, (unsigned long long)(from + n - 1),
           (unsigned long long)decisions);
    fflush(stdout);
    return ok;
}

static int one(uint64_t seed)
{
    uint64_t decisions = 0;
    struct hk_err err = {0};
    const bool ok = try_seed(seed, true, &decisions, &err) == 0;

    if (!ok) {
        printf("# %s\n", err.text);
    }
    printf("%sok 1 - seed %llu decides alike\n1..1\n", ok ? "" : "not ", (unsigned long long)seed);
    return !ok;
}

static int many(uint64_t from, uint64_t n)
{
    const uint64_t end = from + n;
    uint32_t points = 0, failed = 0;

    while (from < end) {
        const uint64_t size = HK_MIN(end - from, (uint64_t)BATCH);
        failed += !batch(from, size, ++points);
        from += size;
    }
    printf("1..%u\n", points);
    return failed > 0;
}

int main(int argc, char **argv)
{
    int64_t seeds = DEFAULT_SEEDS, from = 1, seed = -1;
    const struct {
        const char *name;
        int64_t *to;
    } options[] = {{"--seeds", &seeds}, {"--from", &from}, {"--seed", &seed}};

    for (int i = 1; i < argc; i += 2) {
        size_t k = 0;
        while (k < HK_LEN(options) && strcmp(argv[i], options[k].name) != 0) {
            k++;
        }
        if (k == HK_LEN(options) || i + 1 == argc ||
            !hk_str_int(hk_str(argv[i + 1]), options[k].to) || *options[k].to < 0) {
            fprintf(stderr, "usage: hekla-property [--seeds N] [--from S] [--seed S]\n");
            return 2;
        }
    }
    return seed >= 0 ? one((uint64_t)seed) : many((uint64_t)from, (uint64_t)seeds);
}
