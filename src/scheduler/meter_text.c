// SPDX-License-Identifier: Apache-2.0
// Prints the metrics: what meter.c counted, and what the model and the last session's plugins
// report about jobs and queues. Names, labels and buckets are Volcano's.
#include "scheduler/meter_priv.h"

#define PREFIX "volcano_"

/* ---- histograms ---- */

static void write_hist(struct hk_buf *out, const char *name, const char *help,
                       const struct hk_hist *h)
{
    hk_prom_head(out, name, "histogram", help);
    hk_prom_hist(out, name, "", h);
}

/* Leaves out empty histograms, as client libraries do. */
static void write_labelled(struct hk_buf *out, const char *name, const struct hk_hist *h,
                           const char *labels)
{
    if (hk_hist_count(h) > 0) {
        hk_prom_hist(out, name, labels, h);
    }
}

static void write_plugins(const struct meter *x, struct hk_buf *out)
{
    static const char name[] = PREFIX "plugin_scheduling_latency_milliseconds";
    char labels[96];

    hk_prom_head(out, name, "histogram", "Time a plugin takes to open and close a session.");
    for (uint32_t k = 0; k < x->nplugin; k++) {
        const struct meter_plugin *p = &x->plugins[k];

        snprintf(labels, sizeof(labels), "plugin=\"%s\",OnSession=\"OnSessionOpen\"", p->p->name);
        write_labelled(out, name, &p->open, labels);
        snprintf(labels, sizeof(labels), "plugin=\"%s\",OnSession=\"OnSessionClose\"", p->p->name);
        write_labelled(out, name, &p->close, labels);
    }
}

static void write_sessions(const struct meter *x, struct hk_buf *out)
{
    static const char action[] = PREFIX "action_scheduling_latency_milliseconds";
    char labels[96];

    write_hist(out, PREFIX "e2e_scheduling_latency_milliseconds",
               "Duration of a scheduling session.", &x->session);
    write_hist(out, PREFIX "open_session_duration_milliseconds", "Time to open a session.",
               &x->open);
    write_plugins(x, out);
    hk_prom_head(out, action, "histogram", "Time an action takes in a session.");
    for (uint32_t k = 0; k < x->naction; k++) {
        snprintf(labels, sizeof(labels), "action=\"%s\"", x->actions[k].a->name);
        write_labelled(out, action, &x->actions[k].run, labels);
    }
}

static void write_tasks(const struct meter *x, struct hk_buf *out)
{
    static const char *const points[METER_NPOINTS] = {"Watched", "Assumed", "PreBound", "Bound"};
    static const char *const stages[METER_NSTAGES] = {"Predicate", "Scoring", "PreBind", "Bind"};
    static const char point[] = PREFIX "task_scheduling_latency_milliseconds";
    static const char stage[] = PREFIX "scheduling_stage_duration_milliseconds";
    char labels[96];

    write_hist(out, PREFIX "e2e_job_scheduling_latency_milliseconds",
               "Time from the creation of a job until a task of it is placed.", &x->job);
    hk_prom_head(out, point, "histogram",
                 "Time from the creation of a task until it reaches a stage of scheduling.");
    for (unsigned k = 0; k < METER_NPOINTS; k++) {
        snprintf(labels, sizeof(labels), "stage=\"%s\"", points[k]);
        write_labelled(out, point, &x->points[k], labels);
    }
    hk_prom_head(out, stage, "histogram", "Time the scheduler works on a task, by stage.");
    for (unsigned k = 0; k < METER_NSTAGES; k++) {
        snprintf(labels, sizeof(labels), "stage=\"%s\"", stages[k]);
        write_labelled(out, stage, &x->stages[k], labels);
    }
}

static void write_counters(const struct meter *x, struct hk_buf *out)
{
    static const char *const results[METER_NRESULTS] = {"scheduled", "unschedulable", "error"};

    hk_prom_head(out, PREFIX "schedule_attempts_total", "counter",
                 "Attempts to schedule pods, by result; error: the bind failed.");
    for (unsigned k = 0; k < METER_NRESULTS; k++) {
        hk_buf_addf(out, PREFIX "schedule_attempts_total{result=\"%s\"} %llu\n", results[k],
                    (unsigned long long)x->attempts[k]);
    }
    hk_prom_single(out, PREFIX "pod_preemption_victims", "gauge",
                   "Number of pods selected as victims for the latest preemptor.", x->victims);
    hk_prom_single(out, PREFIX "total_preemption_attempts", "counter",
                   "Number of attempts to preempt.", (double)x->preempted);
    hk_prom_head(out, PREFIX "eviction_transactions_total", "counter",
                 "Number of sets of evictions carried out, by action.");
    for (unsigned k = 0; k < METER_NEVICTING; k++) {
        if (x->evicted[k] > 0) {
            hk_buf_addf(out, PREFIX "eviction_transactions_total{action=\"%s\"} %llu\n",
                        meter_evicting[k], (unsigned long long)x->evicted[k]);
        }
    }
}

/* ---- jobs ---- */

/* Returns true and the value when the job has the metric. */
typedef bool job_value(const struct model *m, job_id j, double *ret);

static bool job_start(const struct model *m, job_id j, double *ret)
{
    const int64_t at_s = model_job(m, j)->creation_ns / 1000000000;

    *ret = (double)at_s;
    return true;
}

static bool job_last(const struct model *m, job_id j, double *ret)
{
    const int64_t at_s = model_job(m, j)->meter.placed_ns / 1000000000;

    *ret = (double)at_s;
    return *ret > 0;
}

static bool job_duration(const struct model *m, job_id j, double *ret)
{
    const struct job *job = model_job(m, j);

    *ret = MS(HK_MAX(job->meter.placed_ns - job->creation_ns, 0));
    return job->meter.placed_ns > 0;
}

static bool job_missing(const struct model *m, job_id j, double *ret)
{
    *ret = model_job(m, j)->meter.missing;
    return model_job(m, j)->meter.looked;
}

static bool job_retries(const struct model *m, job_id j, double *ret)
{
    *ret = model_job(m, j)->meter.retries;
    return *ret > 0;
}

/* The job's dominant share of the cluster, computed as in drf. */
static bool job_share(const struct model *m, job_id j, double *ret)
{
    const int64_t *alloc = job_vec(m, j, JV_ALLOC);

    *ret = 0;
    for (uint32_t d = 0; d < m->dims.n; d++) {
        if (m->total[d] > 0) {
            *ret = HK_MAX(*ret, (double)alloc[d] / (double)m->total[d]);
        }
    }
    return true;
}

static void job_by_queue(const struct model *m, const struct job *j, struct hk_buf *out)
{
    hk_prom_label(out, "{", "job_name", model_str(m, j->name));
    hk_prom_label(out, ",", "queue", model_str(m, j->queue_name));
    hk_prom_label(out, ",", "job_namespace", model_str(m, j->ns));
}

/* Upstream omits the namespace in some metrics: jobs with the same name would share a line. */
static void job_by_name(const struct model *m, const struct job *j, struct hk_buf *out)
{
    hk_prom_label(out, "{", "job_ns", model_str(m, j->ns));
    hk_prom_label(out, ",", "job_id", model_str(m, j->name));
}

static void write_job_metric(
    const struct model *m, const char *name, const char *type, const char *help, job_value *value,
    void (*labels)(const struct model *, const struct job *, struct hk_buf *), struct hk_buf *out)
{
    double v;

    hk_prom_head(out, name, type, help);
    for (uint32_t k = 0; k < m->jobs.len; k++) {
        const struct job *j = &m->jobs.at[k];
        if (j->used && j->has_pg && value(m, (job_id){k}, &v)) {
            hk_buf_adds(out, name);
            labels(m, j, out);
            hk_buf_adds(out, "} ");
            hk_prom_number(out, v);
            hk_buf_addc(out, '\n');
        }
    }
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

static void meter_text_write_jobs(const struct model *m, const struct session *ssn,
                                  struct hk_buf *out)
{
    uint32_t unscheduled = 0;

    for (uint32_t k = 0; k < m->jobs.len; k++) {
        const struct job *j = &m->jobs.at[k];
        unscheduled += j->used && j->has_pg && j->meter.missing > 0;
    }
    write_job_metric(m, PREFIX "e2e_job_scheduling_start_time", "gauge",
                     "Creation time of the job, in seconds since 1970.", job_start, job_by_queue,
                     out);
    write_job_metric(m, PREFIX "e2e_job_scheduling_last_time", "gauge",
                     "Time when a task of the job was last placed, in seconds since 1970.",
                     job_last, job_by_queue, out);
    write_job_metric(
        m, PREFIX "e2e_job_scheduling_duration", "gauge",
        "Milliseconds from the creation of the job until a task of it was last placed.",
        job_duration, job_by_queue, out);
    write_job_metric(m, PREFIX "unschedule_task_count", "gauge",
                     "Number of tasks of the job that cannot be placed.", job_missing, job_by_name,
                     out);
    hk_prom_single(out, PREFIX "unschedule_job_count", "gauge",
                   "Number of jobs that cannot be placed.", unscheduled);
    write_job_metric(m, PREFIX "job_retry_counts", "counter",
                     "Number of failed attempts to place the job.", job_retries, job_by_name, out);
    if (has_plugin(ssn, "drf")) {
        write_job_metric(m, PREFIX "job_share", "gauge",
                         "Dominant share of the job: the largest fraction of the cluster that it "
                         "holds of any resource.",
                         job_share, job_by_name, out);
    }
}

/* ---- queues ---- */

enum amounts { ALLOCATED, REQUEST, INQUEUE, DESERVED, CAPACITY, REAL_CAPACITY, NAMOUNTS };

struct queue_line {
    queue_id id;
    bool reported; /* some plugin reported it */
    struct queue_report report;
    struct rvec amounts[NAMOUNTS];
    bool has[NAMOUNTS];
};

/* Adds a queue's amounts to itself and, in a tree, to its ancestors. */
static void add_own(const struct model *m, struct queue_line *lines, uint32_t n, queue_id from)
{
    const struct queue *q = model_queue(m, from);
    struct rvec own[REQUEST + 2];

    rvec_from(&own[ALLOCATED], q->allocated, m->dims.n);
    rvec_from(&own[REQUEST], q->request, m->dims.n);
    rvec_from(&own[INQUEUE], q->inqueue, m->dims.n);
    for (queue_id at = from; !id_none(at) && at.i < n; at = lines[at.i].report.parent) {
        for (unsigned k = ALLOCATED; k <= INQUEUE; k++) {
            rvec_add(&lines[at.i].amounts[k], &own[k]);
        }
    }
}

static void ask_plugins(struct session *ssn, struct queue_line *l)
{
    l->report.parent = NO_QUEUE;
    for (uint32_t k = 0; k < ssn->nopened && !l->reported; k++) {
        const struct hook *h = &ssn->opened[k];
        l->reported = h->p->queue_report && h->p->queue_report(ssn, h->self, l->id, &l->report);
    }
    if (!l->reported) {
        l->report.parent = NO_QUEUE;
    }
}

/* Upstream keeps showing a resource that a queue once had, as 0. */
static void remember_dims(struct queue *q, const struct queue_line *l)
{
    for (unsigned k = 0; k < NAMOUNTS; k++) {
        q->metered |= l->has[k] ? l->amounts[k].has : 0;
    }
}

static struct queue_line *list_queues(struct model *m, struct session *ssn)
{
    const uint32_t n = m->queues.len;
    struct queue_line *lines = hk_zalloc_array(n + 1, sizeof(*lines));

    for (uint32_t k = 0; k < n; k++) {
        struct queue_line *l = &lines[k];
        const struct queue *q = &m->queues.at[k];
        l->id = (queue_id){k};
        l->report.parent = NO_QUEUE;
        if (!q->used) {
            continue;
        }
        ask_plugins(ssn, l);
        l->has[ALLOCATED] = l->has[REQUEST] = l->has[INQUEUE] = true;
        l->has[DESERVED] = l->reported;
        l->has[CAPACITY] = l->reported && l->report.capacity && q->has_capability;
        l->has[REAL_CAPACITY] = l->reported && l->report.capacity;
        l->amounts[DESERVED] = l->report.deserved;
        l->amounts[CAPACITY] = q->capability;
        l->amounts[REAL_CAPACITY] = l->report.limit;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (m->queues.at[k].used) {
            add_own(m, lines, n, (queue_id){k});
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        remember_dims(&m->queues.at[k], &lines[k]);
    }
    return lines;
}

static void meter_text_write_amount(const struct model *m, const struct queue *q,
                                    const struct queue_line *l, unsigned what, uint32_t dim,
                                    const char *name, struct hk_buf *out)
{
    hk_buf_adds(out, name);
    hk_prom_label(out, "{", "queue_name", model_str(m, q->name));
    if (dim != DIM_CPU && dim != DIM_MEM) {
        hk_prom_label(out, ",", "resource", m->dims.text[dim]);
    }
    hk_buf_adds(out, "} ");
    hk_prom_number(out, rvec_get(&l->amounts[what], dim) * m->dims.shown_scale[dim]);
    hk_buf_addc(out, '\n');
}

/* Writes only queues with evictions. */
static void write_evictions(const struct model *m, const char *name, const char *help,
                            const uint64_t *(*counts)(const struct queue *q), struct hk_buf *out)
{
    hk_prom_head(out, name, "counter", help);
    for (uint32_t i = 0; i < m->queues.len; i++) {
        const struct queue *q = &m->queues.at[i];
        for (unsigned k = 0; q->used && k < QUEUE_NEVICTING; k++) {
            if (counts(q)[k] > 0) {
                hk_buf_addf(out, "%s{action=\"%s\"", name, meter_evicting[k]);
                hk_prom_label(out, ",", "queue_name", model_str(m, q->name));
                hk_buf_addf(out, "} %llu\n", (unsigned long long)counts(q)[k]);
            }
        }
    }
}

static const uint64_t *pods_lost(const struct queue *q)
{
    return q->evicted;
}

static const uint64_t *pods_taken(const struct queue *q)
{
    return q->evictions;
}

static void write_queue_evictions(const struct model *m, struct hk_buf *out)
{
    write_evictions(m, PREFIX "queue_evicted_pods_total",
                    "Pods of the queue that were evicted, by action.", pods_lost, out);
    write_evictions(m, PREFIX "queue_evictions_caused_total",
                    "Pods that were evicted for jobs of the queue, by action.", pods_taken, out);
}

static void write_family(const struct model *m, const struct queue_line *lines, unsigned what,
                         const char *name, const char *help, uint64_t dims, struct hk_buf *out)
{
    hk_prom_head(out, name, "gauge", help);
    for (uint32_t k = 0; k < m->queues.len; k++) {
        const struct queue *q = &m->queues.at[k];
        if (!q->used || !lines[k].has[what]) {
            continue;
        }
        RVEC_EACH(d, dims & (q->metered | RVEC_BASE))
        {
            meter_text_write_amount(m, q, &lines[k], what, (uint32_t)d, name, out);
        }
    }
}

static void write_amounts(const struct model *m, const struct queue_line *lines, struct hk_buf *out)
{
    static const struct {
        const char *name, *help;
    } rows[NAMOUNTS] = {
        [ALLOCATED] = {"allocated", "Amount allocated to pods of the queue"},
        [REQUEST] = {"request", "Amount requested by pods of the queue, placed or waiting"},
        [INQUEUE] = {"inqueue", "Amount that admitted jobs of the queue still need"},
        [DESERVED] = {"deserved", "Amount the queue deserves"},
        [CAPACITY] = {"capacity", "Most that the spec of the queue allows it"},
        [REAL_CAPACITY] = {"real_capacity",
                           "Most that the queue can get beside the guarantees of other queues"},
    };
    static const struct {
        const char *name, *unit;
        uint64_t dims;
    } kinds[] = {
        {"milli_cpu", "milli-cores", 1ULL << DIM_CPU},
        {"memory_bytes", "bytes of memory", 1ULL << DIM_MEM},
        {"scalar_resources", "thousandths of other resources, pods whole", ~RVEC_BASE},
    };
    char name[96], help[128];

    for (unsigned what = 0; what < NAMOUNTS; what++) {
        for (size_t k = 0; k < HK_LEN(kinds); k++) {
            snprintf(name, sizeof(name), PREFIX "queue_%s_%s", rows[what].name, kinds[k].name);
            snprintf(help, sizeof(help), "%s, in %s.", rows[what].help, kinds[k].unit);
            write_family(m, lines, what, name, help, kinds[k].dims, out);
        }
    }
}

static void write_queue_number(const struct model *m, const char *name, uint32_t k, double v,
                               struct hk_buf *out)
{
    hk_buf_adds(out, name);
    hk_prom_label(out, "{", "queue_name", model_str(m, m->queues.at[k].name));
    hk_buf_adds(out, "} ");
    hk_prom_number(out, v);
    hk_buf_addc(out, '\n');
}

static void meter_text_write_queues(struct model *m, struct session *ssn, struct hk_buf *out)
{
    struct queue_line *lines = list_queues(m, ssn);

    write_amounts(m, lines, out);
    write_queue_evictions(m, out);
    hk_prom_head(out, PREFIX "queue_share", "gauge",
                 "Share of the queue: the amount it holds divided by the amount it deserves.");
    for (uint32_t k = 0; k < m->queues.len; k++) {
        if (lines[k].reported) {
            write_queue_number(m, PREFIX "queue_share", k, lines[k].report.share, out);
        }
    }
    hk_prom_head(out, PREFIX "queue_weight", "gauge", "Weight of the queue.");
    for (uint32_t k = 0; k < m->queues.len; k++) {
        if (m->queues.at[k].used) {
            write_queue_number(m, PREFIX "queue_weight", k, m->queues.at[k].weight, out);
        }
    }
    hk_prom_head(out, PREFIX "queue_overused", "gauge",
                 "1 if the queue holds more than it deserves, as computed by the plugin.");
    for (uint32_t k = 0; k < m->queues.len; k++) {
        if (lines[k].reported) {
            write_queue_number(m, PREFIX "queue_overused", k, lines[k].report.overused, out);
        }
    }
    hk_free(lines);
}

void meter_write(const struct meter *x, struct model *m, struct session *ssn, struct hk_buf *out)
{
    write_sessions(x, out);
    write_tasks(x, out);
    write_counters(x, out);
    meter_text_write_jobs(m, ssn, out);
    meter_text_write_queues(m, ssn, out);
}

/* ---- life cycle ---- */

static void list_tables(struct meter *x)
{
    x->nplugin = plugin_table_len;
    x->naction = action_table_len;
    x->plugins = hk_zalloc_array(x->nplugin, sizeof(*x->plugins));
    x->actions = hk_zalloc_array(x->naction, sizeof(*x->actions));
    for (uint32_t k = 0; k < x->nplugin; k++) {
        x->plugins[k].p = plugin_table[k];
        hk_hist_init(&x->plugins[k].open, 0.1, 100, 15);
        hk_hist_init(&x->plugins[k].close, 0.1, 100, 15);
    }
    for (uint32_t k = 0; k < x->naction; k++) {
        x->actions[k].a = action_table[k];
        hk_hist_init(&x->actions[k].run, 1, 2000, 20);
    }
}

struct meter *meter_new(struct hk_clock *clock)
{
    struct meter *x = hk_zalloc(sizeof(*x));

    x->clock = clock;
    hk_hist_init(&x->session, 1, 5000, 20);
    hk_hist_init(&x->open, 1, 5000, 20);
    hk_hist_init(&x->job, 100, 120000, 30);
    for (unsigned k = 0; k < METER_NPOINTS; k++) {
        hk_hist_init(&x->points[k], 50, 60000, 30);
    }
    for (unsigned k = 0; k < METER_NSTAGES; k++) {
        hk_hist_init(&x->stages[k], 0.1, 500, 20);
    }
    list_tables(x);
    return x;
}

void meter_free(struct meter *x)
{
    if (x) {
        hk_free(x->plugins);
        hk_free(x->actions);
        hk_free(x);
    }
}
