// SPDX-License-Identifier: Apache-2.0
// The report for people: queues, nodes before and after, what was placed, what waits and why.
// report_json.c writes the one for programs.
#include "sim/report.h"

#include "sim/table.h"

#include "api/names.h"
#include "codec/quantity.h"

enum { SHOWN_DIMS = 3 }; /* cpu, memory, pods */

void report_before(struct report_before *b, const struct cluster *c)
{
    const struct node_table *t = &c->m.nodes;

    hk_vec_clear(&b->used);
    for (uint32_t n = 0; n < t->len; n++) {
        for (uint32_t d = 0; d < SHOWN_DIMS; d++) {
            hk_vec_push(&b->used, t->used.col[d][n]);
        }
    }
}

void report_before_fini(struct report_before *b)
{
    hk_vec_fini(&b->used);
}

bool report_has_problems(const struct cluster *c)
{
    uint32_t n;

    ingest_problems(c->in, &n);
    return n > 0 || c->problems.len > 0;
}

/* ---- amounts ---- */

void report_amount(const struct model *m, uint32_t dim, double v, struct hk_buf *out)
{
    const int64_t whole = (int64_t)(v < 0 ? v - 0.5 : v + 0.5);
    const enum quantity_format f = m->dims.unit[dim] == DIM_WHOLE && dim != DIM_PODS
                                       ? QUANTITY_BINARY_SI
                                       : QUANTITY_DECIMAL_SI;

    quantity_write(
        m->dims.unit[dim] == DIM_MILLI ? quantity_of_milli(whole, f) : quantity_of(whole, f), out);
}

/* "3.3", "1.5Gi": rounded for reading. */
static struct hk_str human(const struct model *m, uint32_t dim, double v, struct hk_arena *a)
{
    static const char *const suffix[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    uint32_t k = 0;
    char text[48];
    int n;

    if (v >= RVEC_HUGE / 2) {
        return HK_STR("unlimited");
    }
    if (m->dims.unit[dim] == DIM_MILLI) {
        v /= 1000;
    } else if (dim != DIM_PODS) {
        for (; k + 1 < HK_LEN(suffix) && v >= 1024; k++) {
            v /= 1024;
        }
    }
    n = snprintf(text, sizeof(text), "%.2f", v);
    while (n > 0 && text[n - 1] == '0') {
        n--;
    }
    n -= n > 0 && text[n - 1] == '.';
    return hk_str(hk_arena_printf(a, "%.*s%s", n, text, suffix[k]));
}

/* "cpu 2, memory 4Gi"; pods are left out. */
static struct hk_str report_amounts_text(const struct model *m, const double *v, uint64_t mask,
                                         struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    RVEC_EACH(d, mask & ~(1ULL << DIM_PODS))
    {
        if (v[d] > 0) {
            hk_buf_addf(&b, "%s%.*s %.*s", b.len > 0 ? ", " : "", HK_FMT(m->dims.text[d]),
                        HK_FMT(human(m, (uint32_t)d, v[d], a)));
        }
    }
    return b.len > 0 ? hk_arena_str(a, hk_buf_str(&b)) : HK_STR("-");
}

static struct hk_str dense_amounts(const struct model *m, const int64_t *v, struct hk_arena *a)
{
    double d[DIM_MAX] = {0};

    for (uint32_t k = 0; k < m->dims.n; k++) {
        d[k] = (double)v[k];
    }
    return report_amounts_text(m, d, m->dims.n < 64 ? (1ULL << m->dims.n) - 1 : UINT64_MAX, a);
}

/* ---- tables ---- */

static void report_write_heading(const char *text, bool colour, struct hk_buf *out)
{
    hk_buf_adds(out, out->len > 0 ? "\n" : "");
    table_style_on(TABLE_BOLD, colour, out);
    hk_buf_adds(out, text);
    table_style_off(TABLE_BOLD, colour, out);
    hk_buf_addc(out, '\n');
}

/* Hides `root` and an unused `default`, which exist in every cluster. */
bool report_shows_queue(const struct model *m, uint32_t q)
{
    const struct queue *queue = &m->queues.at[q];
    const struct hk_str name = model_str(m, queue->name);

    return queue->used && (queue->njobs > 0 || !(hk_str_is(name, API_QUEUE_NAME_ROOT) ||
                                                 hk_str_is(name, API_QUEUE_NAME_DEFAULT)));
}

void report_queues(const struct cluster *c, bool colour, struct hk_buf *out)
{
    HK_AUTO(table_fini) struct table t = {0};
    const struct model *m = &c->m;

    report_write_heading("Queues", colour, out);
    table_init(&t, "NAME WEIGHT STATE JOBS ALLOCATED DESERVED");
    for (uint32_t q = 0; q < m->queues.len; q++) {
        static const char *const states[] = {"Open", "Closed", "Closing", "Unknown", "-"};
        const struct queue *queue = &m->queues.at[q];
        const struct rvec *deserved = report_deserved(c, q);
        if (!report_shows_queue(m, q)) {
            continue;
        }
        table_add(&t, TABLE_PLAIN, "%.*s", HK_FMT(model_str(m, queue->name)));
        table_add(&t, TABLE_PLAIN, "%d", queue->weight);
        table_add(&t,
                  queue->state == QUEUE_CLOSED || queue->state == QUEUE_CLOSING ? TABLE_BAD
                                                                                : TABLE_PLAIN,
                  "%s", states[queue->state]);
        table_add(&t, TABLE_PLAIN, "%u", queue->njobs);
        table_add(&t, TABLE_PLAIN, "%.*s", HK_FMT(dense_amounts(m, queue->allocated, &t.mem)));
        table_add(
            &t, TABLE_PLAIN, "%.*s",
            HK_FMT(deserved ? report_amounts_text(m, deserved->v, deserved->has | RVEC_BASE, &t.mem)
                            : HK_STR("-")));
    }
    table_write(&t, colour, out);
}

static void node_cell(struct table *t, const struct cluster *c, const struct report_before *b,
                      uint32_t n, uint32_t d)
{
    const struct model *m = &c->m;
    const int64_t used = m->nodes.used.col[d][n], alloc = m->nodes.alloc.col[d][n];
    const size_t at = (size_t)n * SHOWN_DIMS + d;
    const int64_t before = b && at < b->used.len ? b->used.at[at] : used;
    const struct hk_str now = human(m, d, (double)used, &t->mem);
    const struct hk_str of = human(m, d, (double)alloc, &t->mem);

    if (before == used) {
        table_add(t, TABLE_PLAIN, "%.*s / %.*s", HK_FMT(now), HK_FMT(of));
    } else {
        table_add(t, used > before ? TABLE_GOOD : TABLE_BAD, "%.*s -> %.*s / %.*s",
                  HK_FMT(human(m, d, (double)before, &t->mem)), HK_FMT(now), HK_FMT(of));
    }
}

/* Current amounts of resources other than cpu, memory and pods. */
static struct hk_str other_amounts(const struct model *m, uint32_t n, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    for (uint32_t d = SHOWN_DIMS; d < m->dims.n; d++) {
        if (m->nodes.alloc.col[d][n] > 0) {
            hk_buf_addf(&b, "%s%.*s %.*s / %.*s", b.len > 0 ? ", " : "", HK_FMT(m->dims.text[d]),
                        HK_FMT(human(m, d, (double)m->nodes.used.col[d][n], a)),
                        HK_FMT(human(m, d, (double)m->nodes.alloc.col[d][n], a)));
        }
    }
    return hk_arena_str(a, hk_buf_str(&b));
}

void report_nodes(const struct cluster *c, const struct report_before *b, bool colour,
                  struct hk_buf *out)
{
    HK_AUTO(table_fini) struct table t = {0};
    const struct model *m = &c->m;

    report_write_heading("Nodes (used / allocatable)", colour, out);
    table_init(&t, "NAME CPU MEMORY PODS OTHER");
    for (uint32_t n = 0; n < m->nodes.len; n++) {
        if (!(m->nodes.flags[n] & NODE_KNOWN)) {
            continue;
        }
        table_add(&t, TABLE_PLAIN, "%.*s%s", HK_FMT(model_str(m, m->nodes.name[n])),
                  m->nodes.flags[n] & NODE_UNSCHEDULABLE ? " (cordoned)" : "");
        for (uint32_t d = 0; d < SHOWN_DIMS; d++) {
            node_cell(&t, c, b, n, d);
        }
        table_add(&t, TABLE_PLAIN, "%.*s", HK_FMT(other_amounts(m, n, &t.mem)));
    }
    table_write(&t, colour, out);
}

/* The job of the pod "ns/name"; NO_JOB when the pod is gone or has no job. */
static job_id job_of(const struct cluster *c, struct hk_str pod)
{
    struct hk_str ns;

    hk_str_cut(&pod, '/', &ns);
    const task_id t = model_task_find(&c->m, ns, pod);
    return id_none(t) ? NO_JOB : model_task(&c->m, t)->job;
}

static void job_row(struct table *t, const struct cluster *c, job_id id)
{
    const struct model *m = &c->m;
    const struct job *j = model_job(m, id);

    table_add(t, TABLE_PLAIN, "%.*s", HK_FMT(cluster_job_name(m, id, &t->mem)));
    table_add(t, TABLE_PLAIN, "%.*s", HK_FMT(model_str(m, j->queue_name)));
    table_add(t, TABLE_PLAIN, "%d", j->priority);
    table_add(t, TABLE_PLAIN, "%s", pg_phase_name(j->phase));
    table_add(t, TABLE_PLAIN, "%d", j->min);
    table_add(t, TABLE_PLAIN, "%u / %u", tally_ready(&j->tally), j->tally.total);
}

void report_jobs(const struct cluster *c, bool colour, struct hk_buf *out)
{
    HK_AUTO(table_fini) struct table t = {0};
    const struct model *m = &c->m;

    report_write_heading("Jobs", colour, out);
    table_init(&t, "NAME QUEUE PRIORITY PHASE MIN PLACED");
    for (uint32_t i = 0; i < m->jobs.len; i++) {
        if (m->jobs.at[i].used && m->jobs.at[i].has_pg) {
            job_row(&t, c, (job_id){i});
        }
    }
    table_write(&t, colour, out);
}

void report_tasks(const struct cluster *c, bool colour, struct hk_buf *out)
{
    HK_AUTO(table_fini) struct table t = {0};
    const struct model *m = &c->m;

    report_write_heading("Tasks", colour, out);
    table_init(&t, "NAME PRIORITY STATUS NODE REQUESTS");
    for (uint32_t i = 0; i < m->tasks.len; i++) {
        const struct task *task = &m->tasks.at[i];
        const struct shape *s = &m->shapes.at[task->shape.i];
        int64_t v[DIM_MAX] = {0};
        if (!task->used) {
            continue;
        }
        for (uint32_t k = 0; k < s->nreq; k++) {
            v[s->req[k].dim] = s->req[k].v;
        }
        table_add(&t, TABLE_PLAIN, "%.*s", HK_FMT(cluster_task_name(m, (task_id){i}, &t.mem)));
        table_add(&t, TABLE_PLAIN, "%d", task->priority);
        table_add(&t, TABLE_PLAIN, "%s", task_status_name(task->status));
        table_add(
            &t, TABLE_PLAIN, "%.*s",
            HK_FMT(id_none(task->node) ? HK_STR("-") : model_str(m, m->nodes.name[task->node.i])));
        table_add(&t, TABLE_PLAIN, "%.*s", HK_FMT(dense_amounts(m, v, &t.mem)));
    }
    table_write(&t, colour, out);
}

/* ---- results ---- */

/* By job row: "w-0 on n1, w-1 on n2", the pods bound in this run. */
static struct hk_buf *placements(const struct cluster *c)
{
    struct hk_buf *ret = hk_zalloc_array(c->m.jobs.len + 1, sizeof(*ret));

    for (uint32_t k = 0; k < c->binds.len; k++) {
        const job_id j = job_of(c, c->binds.at[k].pod);
        struct hk_str name = c->binds.at[k].pod, ns;
        hk_str_cut(&name, '/', &ns);
        if (!id_none(j)) {
            hk_buf_addf(&ret[j.i], "%s%.*s on %.*s", ret[j.i].len > 0 ? ", " : "", HK_FMT(name),
                        HK_FMT(c->binds.at[k].node));
        }
    }
    return ret;
}

/* JOB QUEUE PHASE MIN PLACED, and a last column. */
static void outcome_row(struct table *t, const struct cluster *c, uint32_t job,
                        enum table_style style, struct hk_str last)
{
    const struct model *m = &c->m;
    const struct job *j = &m->jobs.at[job];

    table_add(t, style, "%.*s", HK_FMT(cluster_job_name(m, (job_id){job}, &t->mem)));
    table_add(t, TABLE_PLAIN, "%.*s",
              HK_FMT(j->has_pg ? model_str(m, j->queue_name) : HK_STR("-")));
    table_add(t, TABLE_PLAIN, "%s", j->has_pg ? pg_phase_name(j->phase) : "-");
    table_add(t, TABLE_PLAIN, "%d", j->min);
    table_add(t, TABLE_PLAIN, "%u / %u", tally_ready(&j->tally), j->tally.total);
    table_add(t, TABLE_PLAIN, "%.*s", HK_FMT(last));
}

static void table_or_none(const struct table *t, bool colour, struct hk_buf *out)
{
    if (t->cells.len == t->ncol) {
        hk_buf_adds(out, "  none\n");
    } else {
        table_write(t, colour, out);
    }
}

static void placed(const struct cluster *c, bool colour, struct hk_buf *out)
{
    HK_AUTO(table_fini) struct table t = {0};
    HK_AUTO(hk_freep) struct hk_buf *where = placements(c);

    table_init(&t, "JOB QUEUE PHASE MIN PLACED WHERE");
    for (uint32_t i = 0; i < c->m.jobs.len; i++) {
        if (where[i].len > 0) {
            outcome_row(&t, c, i, TABLE_GOOD, hk_buf_str(&where[i]));
        }
        hk_buf_fini(&where[i]);
    }
    report_write_heading("Jobs placed", colour, out);
    table_or_none(&t, colour, out);
}

/* By job row: 1 + the index in waits of its first waiting pod, 0 when none waits. */
static uint32_t *first_waits(const struct cluster *c)
{
    uint32_t *ret = hk_zalloc_array(c->m.jobs.len + 1, sizeof(*ret));

    for (uint32_t k = c->waits.len; k-- > 0;) {
        const job_id j = job_of(c, c->waits.at[k].pod);
        if (!id_none(j)) {
            ret[j.i] = k + 1;
        }
    }
    return ret;
}

/* The message about the group, else about one of its pods. */
static struct hk_str job_reason(const struct cluster *c, uint32_t job, uint32_t wait)
{
    const struct cluster_group *g = cluster_group(c, (job_id){job});

    if (g && g->event) {
        return hk_str(g->event);
    }
    if (g && g->message && g->message[0] != '\0') {
        return hk_str(g->message);
    }
    return wait > 0 ? c->waits.at[wait - 1].message : HK_STR("");
}

static void report_write_waiting(const struct cluster *c, bool colour, struct hk_buf *out)
{
    HK_AUTO(table_fini) struct table t = {0};
    HK_AUTO(hk_freep) uint32_t *wait = first_waits(c);

    table_init(&t, "JOB QUEUE PHASE MIN PLACED WHY");
    for (uint32_t i = 0; i < c->m.jobs.len; i++) {
        const struct job *j = &c->m.jobs.at[i];
        if (j->used && j->tally.n[TASK_PENDING] > 0) {
            outcome_row(&t, c, i, TABLE_BAD, job_reason(c, i, wait[i]));
        }
    }
    report_write_heading("Jobs waiting", colour, out);
    table_or_none(&t, colour, out);
}

static void evicted(const struct cluster *c, bool colour, struct hk_buf *out)
{
    HK_AUTO(table_fini) struct table t = {0};

    if (c->evictions.len == 0) {
        return;
    }
    report_write_heading("Evictions", colour, out);
    table_init(&t, "POD FOR ACTION CYCLE");
    for (uint32_t k = 0; k < c->evictions.len; k++) {
        const struct cluster_eviction *e = &c->evictions.at[k];
        table_add(&t, TABLE_BAD, "%.*s", HK_FMT(e->pod));
        table_add(&t, TABLE_PLAIN, "%.*s", HK_FMT(e->group.n > 0 ? e->group : HK_STR("-")));
        table_add(&t, TABLE_PLAIN, "%.*s", HK_FMT(e->action));
        table_add(&t, TABLE_PLAIN, "%u", e->cycle);
    }
    table_write(&t, colour, out);
}

static void held(const struct cluster *c, bool colour, struct hk_buf *out)
{
    HK_AUTO(table_fini) struct table t = {0};

    if (c->pipelined.len == 0) {
        return;
    }
    report_write_heading("Waiting for room that is being released", colour, out);
    table_init(&t, "POD NODE");
    for (uint32_t k = 0; k < c->pipelined.len; k++) {
        table_add(&t, TABLE_PLAIN, "%.*s", HK_FMT(c->pipelined.at[k].pod));
        table_add(&t, TABLE_PLAIN, "%.*s", HK_FMT(c->pipelined.at[k].node));
    }
    table_write(&t, colour, out);
}

static void place_write(struct hk_str file, uint32_t line, struct hk_buf *out)
{
    if (file.n > 0) {
        hk_buf_addf(out, "%.*s:", HK_FMT(file));
    }
    if (line > 0) {
        hk_buf_addf(out, "%u:", line);
    }
    hk_buf_adds(out, file.n > 0 || line > 0 ? " " : "");
}

void report_problems(const struct cluster *c, bool colour, struct hk_buf *out)
{
    uint32_t n;
    const struct ingest_problem *p = ingest_problems(c->in, &n);

    if (!report_has_problems(c)) {
        return;
    }
    report_write_heading("Problems in the input (these objects were left out)", colour, out);
    for (uint32_t k = 0; k < c->problems.len; k++) {
        const struct cluster_problem *q = &c->problems.at[k];
        hk_buf_adds(out, "  ");
        place_write(q->file, q->line, out);
        hk_buf_addf(out, "%.*s\n", HK_FMT(q->text));
    }
    for (uint32_t k = 0; k < n; k++) {
        hk_buf_adds(out, "  ");
        place_write(hk_str(p[k].file), p[k].line, out);
        hk_buf_addf(out, "%s %s: %s\n", api_kind(p[k].kind)->kind, p[k].object, p[k].text);
    }
}

static void report_write_ignored(const struct cluster *c, bool colour, struct hk_buf *out)
{
    if (c->ignored.len == 0) {
        return;
    }
    report_write_heading("Ignored", colour, out);
    for (uint32_t k = 0; k < c->ignored.len; k++) {
        const struct cluster_ignored *i = &c->ignored.at[k];
        hk_buf_adds(out, "  ");
        place_write(i->file, i->line, out);
        hk_buf_addf(out, "%.*s: %s\n", HK_FMT(i->object), i->why);
    }
}

void report_text(const struct cluster *c, const struct report_before *b, bool colour,
                 struct hk_buf *out)
{
    report_queues(c, colour, out);
    report_nodes(c, b, colour, out);
    placed(c, colour, out);
    report_write_waiting(c, colour, out);
    evicted(c, colour, out);
    held(c, colour, out);
    report_problems(c, colour, out);
    report_write_ignored(c, colour, out);
}
