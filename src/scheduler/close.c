// SPDX-License-Identifier: Apache-2.0
// The end of a session: phases, conditions and messages. Runs before tentative placements are
// undone, since the messages report them.
#include "scheduler/close.h"

#include "scheduler/session_priv.h"

/* ---- phase ---- */

static uint32_t releasing_on_node(const struct model *m, const struct job *j)
{
    uint32_t n = 0, left = j->tally.n[TASK_RELEASING];

    for (task_id t = j->others; left > 0 && !id_none(t); t = model_task(m, t)->job_next) {
        if (model_task(m, t)->status == TASK_RELEASING) {
            left--;
            n += !id_none(model_task(m, t)->node);
        }
    }
    return n;
}

static enum pg_phase close_job_phase(const struct model *m, const struct job *j, bool unschedulable)
{
    const struct tally *t = &j->tally;
    const int64_t completed = (int64_t)t->n[TASK_FAILED] + t->n[TASK_SUCCEEDED];
    const int64_t scheduled =
        completed + t->n[TASK_RUNNING] + t->n[TASK_BOUND] + releasing_on_node(m, j);

    if (t->n[TASK_RUNNING] > 0 && unschedulable) {
        return PG_UNKNOWN;
    }
    /* Upstream's getPodGroupPhase returns Completed for minMember 0 before any pod ran. */
    if (scheduled >= j->min && scheduled == completed && t->total > 0 && scheduled > 0) {
        return PG_COMPLETED;
    }
    if (scheduled >= j->min && scheduled > 0) {
        return PG_RUNNING;
    }
    return j->phase == PG_INQUEUE ? PG_INQUEUE : PG_PENDING;
}

/* ---- conditions ---- */

/* Terminating pods still hold their places and no pod waits: the gang is shutting down, not short
 * of members. */
static bool winding_down(const struct model *m, const struct job *j)
{
    const struct tally *t = &j->tally;
    const uint32_t leaving = releasing_on_node(m, j);
    const int64_t scheduled =
        (int64_t)t->n[TASK_RUNNING] + t->n[TASK_BOUND] + t->n[TASK_FAILED] + t->n[TASK_SUCCEEDED];

    return leaving > 0 && t->n[TASK_PENDING] == 0 && t->n[TASK_PIPELINED] == 0 &&
           scheduled + leaving >= j->min;
}

static enum note_condition condition_of(const struct session *ssn, const struct job *j)
{
    if (j->tally.total == 0) {
        return NOTE_NONE;
    }
    if (job_counts_ready(j)) {
        return NOTE_SCHEDULED;
    }
    return winding_down(ssn->m, j) ? NOTE_NONE : NOTE_UNSCHEDULABLE;
}

/* ---- messages ---- */

/* The state that the message reports: that of a discarded attempt, else the current one. */
static struct last_tx explained_by(const struct session *ssn, task_id t)
{
    const struct task *task = model_task(ssn->m, t);
    const uint32_t op = ssn->op_of[t.i];

    if (task->status == TASK_PENDING && ssn->last[t.i].status != TASK_PENDING) {
        return ssn->last[t.i];
    }
    return (struct last_tx){.status = task->status,
                            .evicted_for =
                                op && op <= ssn->ops.len && ssn->ops.at[op - 1].evicted_for,
                            .node = task->node};
}

static uint32_t nearly_placed(const struct session *ssn, const struct job *j)
{
    uint32_t n = 0;

    for (task_id t = j->pending; !id_none(t); t = model_task(ssn->m, t)->job_next) {
        n += status_in(ssn->last[t.i].status, STATUS_ALLOCATED);
    }
    return n;
}

struct words {
    char *at[TASK_NSTATUS + 1];
    uint32_t n;
};

static void close_add_count_text(struct session *ssn, struct words *w, uint32_t n, const char *what)
{
    w->at[w->n++] = hk_arena_printf(ssn->mem, "%u %s", n, what);
}

static int word_cmp(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void words_write(struct words *w, struct hk_buf *out)
{
    qsort(w->at, w->n, sizeof(w->at[0]), word_cmp);
    for (uint32_t k = 0; k < w->n; k++) {
        hk_buf_addf(out, "%s%s", k ? ", " : "", w->at[k]);
    }
}

static void write_pending(struct session *ssn, const struct job *j, struct hk_buf *out)
{
    const uint32_t ok = nearly_placed(ssn, j);
    struct words w = {0};

    if (j->tally.n[TASK_PENDING] == 0) {
        return;
    }
    if (ok > 0) {
        close_add_count_text(ssn, &w, ok, "Schedulable");
    }
    if (j->tally.n[TASK_PENDING] > ok) {
        close_add_count_text(ssn, &w, j->tally.n[TASK_PENDING] - ok, "Unschedulable");
    }
    hk_buf_adds(out, "; Pending: ");
    words_write(&w, out);
}

/* The job reports the reasons of its first task in order that has node errors. */
static task_id spokesman(struct session *ssn, const struct job *j)
{
    task_id first = NO_TASK;

    for (task_id t = j->pending; !id_none(t); t = model_task(ssn->m, t)->job_next) {
        if (ssn->fit[t.i] && (id_none(first) || hooks_task_order(ssn, t, first) < 0)) {
            first = t;
        }
    }
    return first;
}

/* JobInfo.FitError; the refusal of a queue or quota replaces upstream's job-level error. */
static void write_job_fit(struct session *ssn, job_id id, struct hk_buf *out)
{
    const struct job *j = model_job(ssn->m, id);
    const task_id t = spokesman(ssn, j);
    struct words w = {0};

    hk_buf_addf(out, "pod group is %s, ", job_counts_ready(j) ? "ready" : "not ready");
    for (uint32_t s = 0; s < TASK_NSTATUS; s++) {
        if (j->tally.n[s] > 0) {
            close_add_count_text(ssn, &w, j->tally.n[s], task_status_name(s));
        }
    }
    w.at[w.n++] = hk_arena_printf(ssn->mem, "%d minAvailable", j->min);
    words_write(&w, out);
    write_pending(ssn, j, out);
    if (ssn->job_msg[id.i]) {
        hk_buf_addf(out, ". Origin reason is: %s", ssn->job_msg[id.i]);
    } else if (!id_none(t)) {
        hk_buf_addf(out, ". Origin reason is %.*s: ",
                    HK_FMT(model_str(ssn->m, model_task(ssn->m, t)->name)));
        fit_log_write(ssn->m, ssn->fit[t.i], out);
    }
}

static char *gang_text(struct session *ssn, job_id id, int64_t count, struct hk_str fit)
{
    return hk_arena_printf(ssn->mem, "%lld/%u tasks in gang unschedulable: %.*s", (long long)count,
                           model_job(ssn->m, id)->tally.total, HK_FMT(fit));
}

static void write_texts(struct session *ssn, struct job_note *n)
{
    HK_AUTO(hk_buf_fini) struct hk_buf fit = {0};
    const struct job *j = model_job(ssn->m, n->job);

    write_job_fit(ssn, n->job, &fit);
    if (n->condition == NOTE_UNSCHEDULABLE) {
        n->missing = j->min - ((int64_t)tally_ready(&j->tally) + nearly_placed(ssn, j));
        n->message = gang_text(ssn, n->job, n->missing, hk_buf_str(&fit));
    } else {
        n->message = "";
    }
    /* Upstream also warns about groups that only wait for watch events of their binds, and about
     * groups without pods. */
    if ((n->phase == PG_UNKNOWN || n->phase == PG_PENDING || n->phase == PG_INQUEUE) &&
        j->tally.total > 0 && !job_counts_ready(j)) {
        n->event = gang_text(ssn, n->job, j->tally.n[TASK_PENDING], hk_buf_str(&fit));
    }
}

/* ---- pods ---- */

static void pod_text(struct session *ssn, task_id t, const char *job_fit)
{
    const struct model *m = ssn->m;
    const struct task *task = model_task(m, t);
    const struct last_tx by = explained_by(ssn, t);
    const struct hk_str ns = model_str(m, task->ns), name = model_str(m, task->name);
    struct pod_note n = {.task = t, .reason = "Unschedulable", .nominated = NO_NODE};

    if (by.status == TASK_ALLOCATED) {
        n.reason = "Schedulable";
        n.message = hk_arena_printf(
            ssn->mem,
            "Pod %.*s/%.*s can possibly be assigned to %.*s, once minAvailable is satisfied",
            HK_FMT(ns), HK_FMT(name), HK_FMT(model_str(m, m->nodes.name[by.node.i])));
    } else if (by.status == TASK_PIPELINED) {
        n.nominated = by.evicted_for ? by.node : NO_NODE;
        n.message = hk_arena_printf(
            ssn->mem,
            "Pod %.*s/%.*s can possibly be assigned to %.*s, once resource is "
            "released and minAvailable is satisfied",
            HK_FMT(ns), HK_FMT(name), HK_FMT(model_str(m, m->nodes.name[by.node.i])));
    } else if (ssn->fit[t.i]) {
        HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
        fit_log_write(m, ssn->fit[t.i], &b);
        n.message = hk_arena_strndup(ssn->mem, b.data, b.len);
    } else {
        n.message = job_fit;
    }
    ssn->pod_notes.at[ssn->pod_notes.n++] = n;
}

static void note_list(struct session *ssn, task_id head, const char *job_fit)
{
    for (task_id t = head; !id_none(t); t = model_task(ssn->m, t)->job_next) {
        const struct task *task = model_task(ssn->m, t);
        const unsigned waiting =
            STATUS_BIT(TASK_PENDING) | STATUS_BIT(TASK_ALLOCATED) | STATUS_BIT(TASK_PIPELINED);
        /* A held pod keeps the condition that explains why its bind failed. */
        if (status_in(task->status, waiting) && !(task->flags & (TASK_GATED | TASK_HELD))) {
            pod_text(ssn, t, job_fit);
        }
    }
}

static void note_pods(struct session *ssn, job_id id)
{
    HK_AUTO(hk_buf_fini) struct hk_buf fit = {0};
    const struct job *j = model_job(ssn->m, id);

    write_job_fit(ssn, id, &fit);
    const char *text = hk_arena_strndup(ssn->mem, fit.data, fit.len);
    note_list(ssn, j->pending, text);
    note_list(ssn, j->others, text);
}

static uint32_t waiting_tasks(const struct job *j)
{
    return j->tally.n[TASK_PENDING] + j->tally.n[TASK_ALLOCATED] + j->tally.n[TASK_PIPELINED];
}

/* ---- which jobs ---- */

static void close_set_job_bit(uint64_t *bits, job_id j)
{
    bits[j.i / 64] |= 1ULL << (j.i % 64);
}

/* Jobs of this session, jobs that changed before it and jobs that changed in it, without parked
 * jobs, whose last message is still true. */
static uint32_t jobs_to_note(struct session *ssn, job_id **ret)
{
    const struct model *m = ssn->m;
    const uint32_t words = m->jobs.len / 64 + 1;
    uint64_t *bits = hk_arena_zalloc(ssn->mem, words * sizeof(*bits));
    uint32_t n = 0, max = ssn->njob + ssn->nchanged + m->dirty_jobs.len;
    job_id *out = hk_arena_array(ssn->mem, max + 1, sizeof(*out));

    for (uint32_t k = 0; k < ssn->njob; k++) {
        close_set_job_bit(bits, ssn->jobs[k]);
    }
    for (uint32_t k = 0; k < ssn->nchanged; k++) {
        close_set_job_bit(bits, ssn->changed[k]);
    }
    for (uint32_t k = 0; k < m->dirty_jobs.len; k++) {
        close_set_job_bit(bits, m->dirty_jobs.at[k]);
    }
    for (uint32_t w = 0; w < words; w++) {
        for (uint64_t b = bits[w]; b; b &= b - 1) {
            const job_id id = {w * 64 + (uint32_t)__builtin_ctzll(b)};
            const struct job *j = &m->jobs.at[id.i]; /* a changed job may have been deleted */
            if (j->used && j->has_pg && !id_none(j->queue) &&
                (j->active_pos == ID_NONE || session_is_awake(ssn, id))) {
                out[n++] = id;
            }
        }
    }
    *ret = out;
    return n;
}

/* ---- parking ---- */

static void wake_for(const struct fit_log *log, uint64_t *dims, uint8_t *why)
{
    for (uint32_t k = 0; k < log->n; k++) {
        *why |= WAKE_NODE;
        switch (log->at[k].why.code) {
        case REASON_INSUFFICIENT:
            *dims |= 1ULL << log->at[k].why.arg;
            break;
        case REASON_POD_NUMBER:
            *dims |= 1ULL << DIM_PODS;
            break;
        case REASON_UNSCHEDULABLE:
        case REASON_NODE_AFFINITY:
        case REASON_TAINT:
        case REASON_SHARD:
            break;
        default:
            *why |= WAKE_PODS | WAKE_VOLUME;
        }
    }
    if (log->n == 0) {
        *why |= WAKE_NODE | WAKE_PODS | WAKE_VOLUME;
    }
}

static bool placed_any(const struct session *ssn, const struct job *j)
{
    return j->tally.n[TASK_ALLOCATED] + j->tally.n[TASK_PIPELINED] + j->tally.n[TASK_BINDING] > 0;
}

/* Whether some action considered this job. */
static bool was_seen(const struct session *ssn, job_id id)
{
    const struct job *j = model_job(ssn->m, id);
    bool seen = ssn->job_msg[id.i] != NULL || placed_any(ssn, j);

    for (task_id t = j->pending; !seen && !id_none(t); t = model_task(ssn->m, t)->job_next) {
        seen = ssn->fit[t.i] != NULL || ssn->last[t.i].status != TASK_PENDING;
    }
    return seen;
}

/* Admitted by an action that runs after those that place tasks. */
static bool was_left_over(const struct session *ssn, job_id id, const struct job_note *n)
{
    return ((ssn->was_pending[id.i / 64] >> (id.i % 64)) & 1) && n->phase == PG_INQUEUE &&
           model_job(ssn->m, id)->tally.n[TASK_PENDING] > 0 && !was_seen(ssn, id);
}

/* The next time at which the clock alone can change an answer. Past times have had their effect. */
static int64_t due_ns(struct session *ssn, job_id id)
{
    int64_t first_ns = INT64_MAX;

    for (uint32_t k = 0; k < ssn->nopened; k++) {
        const struct hook *h = &ssn->opened[k];
        const int64_t at_ns = h->p->job_due ? h->p->job_due(ssn, h->self, id) : INT64_MAX;
        first_ns = at_ns > ssn->now_ns ? HK_MIN(first_ns, at_ns) : first_ns;
    }
    return first_ns;
}

/* Parks a job that got nothing until an event that could change the answer. Its tasks' reasons say
 * which; without any reason, every event wakes the job. */
static void park(struct session *ssn, job_id id, const struct job_note *n)
{
    const struct job *j = model_job(ssn->m, id);
    uint64_t dims = 0;
    uint8_t why = ssn->parks_on;

    if (placed_any(ssn, j) || (ssn->over_budget && !was_seen(ssn, id))) {
        return;
    }
    if ((n->phase == PG_PENDING && n->prev_phase != PG_PENDING) || was_left_over(ssn, id, n)) {
        ssn->again = true; /* the next session admits or places it */
        return;
    }
    if (ssn->job_msg[id.i]) {
        why |= WAKE_QUEUE | WAKE_NODE;
        dims = UINT64_MAX;
    }
    for (task_id t = j->pending; !id_none(t); t = model_task(ssn->m, t)->job_next) {
        if (ssn->fit[t.i]) {
            wake_for(ssn->fit[t.i], &dims, &why);
        } else if (ssn->last[t.i].status != TASK_PENDING) {
            why |= WAKE_NODE;
            dims |= shape_dims(task_shape(ssn->m, t));
        }
    }
    if (j->policies.len > 0 || job_has_topology(ssn->m, id)) {
        /* These are the reasons of the last domain tried; other domains may have other reasons. */
        dims = UINT64_MAX;
        why |= WAKE_NODE | WAKE_PODS | WAKE_VOLUME;
    }
    if (dims == 0 && !(why & (WAKE_NODE | WAKE_PODS))) {
        dims = UINT64_MAX;
        why |= WAKE_NODE | WAKE_PODS | WAKE_QUEUE | WAKE_VOLUME;
    }
    model_job_park(ssn->m, id, dims, why, due_ns(ssn, id));
}

static void note_job(struct session *ssn, job_id id, bool gang)
{
    struct job *j = model_job(ssn->m, id);
    struct job_note n = {.job = id,
                         .prev_phase = j->phase,
                         .condition = gang ? (uint8_t)condition_of(ssn, j) : NOTE_NONE,
                         .running = j->tally.n[TASK_RUNNING],
                         .failed = j->tally.n[TASK_FAILED],
                         .succeeded = j->tally.n[TASK_SUCCEEDED]};

    n.phase = (uint8_t)close_job_phase(ssn->m, j, n.condition == NOTE_UNSCHEDULABLE);
    if (ssn->over_budget && waiting_tasks(j) > 0 && !was_seen(ssn, id)) {
        n.condition = NOTE_NONE; /* no action considered the job */
    } else if (ssn->opts.texts) {
        write_texts(ssn, &n);
        if (waiting_tasks(j) > 0) {
            note_pods(ssn, id);
        }
    }
    if (n.condition != NOTE_NONE) {
        meter_gang(ssn->opts.meter, j, n.missing);
    }
    model_job_set_phase(ssn->m, id, n.phase);
    park(ssn, id, &n);
    ssn->notes.at[ssn->notes.n++] = n;
}

static bool has_plugin(const struct session *ssn, const char *name)
{
    for (uint32_t k = 0; k < ssn->nopened; k++) {
        if (strcmp(ssn->opened[k].p->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* What wakes every parked job with this configuration: where actions evict, new victims and changes
 * of other queues. */
static uint8_t parks_on(const struct session *ssn)
{
    uint8_t why = 0;

    for (uint32_t k = 0; k < ssn->conf->actions.len; k++) {
        if (ssn->conf->actions.at[k].a->evicts) {
            why |= WAKE_VICTIM | WAKE_QUEUE;
        }
    }
    return why;
}

void close_jobs(struct session *ssn)
{
    const bool gang = has_plugin(ssn, "gang");
    job_id *jobs;
    const uint32_t n = jobs_to_note(ssn, &jobs);
    uint32_t pods = 0;

    for (uint32_t k = 0; ssn->opts.texts && k < n; k++) {
        pods += waiting_tasks(model_job(ssn->m, jobs[k]));
    }
    ssn->parks_on = parks_on(ssn);
    ssn->notes.at = hk_arena_array(ssn->mem, n + 1, sizeof(*ssn->notes.at));
    ssn->pod_notes.at = hk_arena_array(ssn->mem, pods + 1, sizeof(*ssn->pod_notes.at));
    for (uint32_t k = 0; k < n; k++) {
        note_job(ssn, jobs[k], gang);
    }
}
