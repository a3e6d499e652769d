// SPDX-License-Identifier: Apache-2.0
// Metrics of the controllers (docs/reference/controllers.md section 7). An object keeps its mirror
// row for life, so data about a job or flow is stored by row.
#include "controllers/metrics.h"

#include "base/prom.h"
#include "codec/timefmt.h"
#include "controllers/ctl.h"
#include "controllers/kinds.h"

#define PREFIX "volcano_"

struct job_row {
    uint32_t queue; /* string id */
    uint32_t completed, failed;
    int64_t created_ns;
};

enum flow_end { FLOW_SUCCEED, FLOW_FAILED, FLOW_NENDS, FLOW_GOES_ON = FLOW_NENDS };

/* Flows that ended, by namespace. */
struct flow_count {
    uint32_t ns; /* string id */
    uint64_t ended[FLOW_NENDS];
};

struct metrics {
    struct manager *mgr;
    struct mirror *jobs, *groups, *queues;
    struct hk_intern str;
    HK_VEC(struct job_row) job_rows;
    HK_VEC(uint8_t) flow_rows; /* enum flow_end */
    HK_VEC(struct flow_count) flows;
    struct hk_hist latency_ms;
};

/* ---- listeners ---- */

static struct job_row *job_row(struct metrics *x, uint32_t row)
{
    while (x->job_rows.len <= row) {
        hk_vec_push(&x->job_rows, (struct job_row){0});
    }
    return &x->job_rows.at[row];
}

static void on_job(void *ctx, const struct mirror_change *ch)
{
    struct metrics *x = ctx;
    const struct job_digest *old = ch->old, *now = ch->now;
    struct job_row *row = job_row(x, ch->row);
    const struct json *created;

    if (!now) {
        *row = (struct job_row){0};
        return;
    }
    if (!old) {
        created = json_at(ch->root, "metadata.creationTimestamp");
        if (time_parse(json_str(created, HK_STR("")), &row->created_ns, NULL) < 0) {
            row->created_ns = INT64_MAX; /* later phases then have a delay of zero */
        }
        row->queue = hk_intern(&x->str, json_str(json_at(ch->root, "spec.queue"), HK_STR("")));
        return;
    }
    row->completed += now->phase == API_JOB_COMPLETED && old->phase != API_JOB_COMPLETED;
    row->failed += now->phase == API_JOB_FAILED && old->phase != API_JOB_FAILED;
}

static void metrics_on_pod_change(void *ctx, const struct mirror_change *ch)
{
    struct metrics *x = ctx;
    const struct pod_digest *d = ch->now;
    int64_t latency_ns;
    uint32_t row;

    if (!d || ch->old || ch->initial || !d->of_job) {
        return;
    }
    row = mirror_find(x->jobs, mirror_ns(ch->mirror, ch->row), hk_str(d->job));
    if (row != HK_NONE) {
        latency_ns =
            HK_MAX(d->created_ns, job_row(x, row)->created_ns) - job_row(x, row)->created_ns;
        hk_hist_add(&x->latency_ms, (double)latency_ns / 1e6);
    }
}

static enum flow_end flow_end_of(const struct json *flow)
{
    const struct hk_str phase = json_str(json_at(flow, "status.state.phase"), HK_STR(""));

    if (hk_str_is(phase, "Succeed")) {
        return FLOW_SUCCEED;
    }
    return hk_str_is(phase, "Failed") ? FLOW_FAILED : FLOW_GOES_ON;
}

static void count_flow(struct metrics *x, struct hk_str ns, enum flow_end end)
{
    const uint32_t id = hk_intern(&x->str, ns);
    uint32_t k = 0;

    while (k < x->flows.len && x->flows.at[k].ns != id) {
        k++;
    }
    if (k == x->flows.len) {
        hk_vec_push(&x->flows, (struct flow_count){.ns = id});
    }
    x->flows.at[k].ended[end]++;
}

static void on_flow(void *ctx, const struct mirror_change *ch)
{
    struct metrics *x = ctx;
    const enum flow_end end = ch->now ? flow_end_of(ch->root) : FLOW_GOES_ON;

    while (x->flow_rows.len <= ch->row) {
        hk_vec_push(&x->flow_rows, FLOW_GOES_ON);
    }
    if (ch->old && end != FLOW_GOES_ON && end != x->flow_rows.at[ch->row]) {
        count_flow(x, mirror_ns(ch->mirror, ch->row), end);
    }
    x->flow_rows.at[ch->row] = (uint8_t)end;
}

/* ---- writing ---- */

static void metrics_write_jobs(const struct metrics *x, const char *name, const char *help,
                               bool completed, struct hk_buf *out)
{
    hk_prom_head(out, name, "counter", help);
    for (uint32_t r = mirror_scan(x->jobs, HK_NONE); r != HK_NONE; r = mirror_scan(x->jobs, r)) {
        HK_AUTO(hk_buf_fini) struct hk_buf key = {0};
        const struct job_row *row = r < x->job_rows.len ? &x->job_rows.at[r] : NULL;
        const uint32_t n = !row ? 0 : completed ? row->completed : row->failed;

        if (n == 0) {
            continue;
        }
        hk_buf_addf(&key, "%.*s/%.*s", HK_FMT(mirror_ns(x->jobs, r)),
                    HK_FMT(mirror_name(x->jobs, r)));
        hk_buf_adds(out, name);
        hk_prom_label(out, "{", "job_name", hk_buf_str(&key));
        hk_prom_label(out, ",", "queue_name", hk_intern_str(&x->str, row->queue));
        hk_buf_addf(out, "} %u\n", n);
    }
}

#define LATENCY PREFIX "controller_job_to_pod_creation_latency_milliseconds"

static void write_latency(const struct metrics *x, struct hk_buf *out)
{
    hk_prom_head(out, LATENCY, "histogram",
                 "Milliseconds from the creation of a job to that of each of its pods.");
    hk_prom_hist(out, LATENCY, "", &x->latency_ms);
}

static uint32_t metrics_count_groups(const struct metrics *x, struct hk_str queue,
                                     enum api_podgroup_phase phase)
{
    uint32_t n = 0;

    for (uint32_t r = mirror_first(x->groups, PODGROUPS_BY_QUEUE, queue); r != HK_NONE;
         r = mirror_next(x->groups, PODGROUPS_BY_QUEUE, r)) {
        const struct podgroup_digest *d = mirror_digest(x->groups, r);

        /* A PodGroup without a phase counts as pending. */
        n += d->phase == phase ||
             (phase == API_PODGROUP_PENDING && d->phase == API_PODGROUP_NO_PHASE);
    }
    return n;
}

static void metrics_write_queues(const struct metrics *x, struct hk_buf *out)
{
    static const struct {
        enum api_podgroup_phase phase;
        const char *name, *help;
    } gauges[] = {
        {API_PODGROUP_PENDING, PREFIX "queue_pod_group_pending_count",
         "PodGroups of the queue that are Pending."},
        {API_PODGROUP_INQUEUE, PREFIX "queue_pod_group_inqueue_count",
         "PodGroups of the queue that are Inqueue."},
        {API_PODGROUP_RUNNING, PREFIX "queue_pod_group_running_count",
         "PodGroups of the queue that are Running."},
        {API_PODGROUP_UNKNOWN, PREFIX "queue_pod_group_unknown_count",
         "PodGroups of the queue that are Unknown."},
        {API_PODGROUP_COMPLETED, PREFIX "queue_pod_group_completed_count",
         "PodGroups of the queue that are Completed."},
    };

    for (size_t k = 0; k < HK_LEN(gauges); k++) {
        hk_prom_head(out, gauges[k].name, "gauge", gauges[k].help);
        for (uint32_t r = mirror_scan(x->queues, HK_NONE); r != HK_NONE;
             r = mirror_scan(x->queues, r)) {
            const struct hk_str queue = mirror_name(x->queues, r);

            hk_buf_adds(out, gauges[k].name);
            hk_prom_label(out, "{", "queue_name", queue);
            hk_buf_addf(out, "} %u\n", metrics_count_groups(x, queue, gauges[k].phase));
        }
    }
}

static void write_flows(const struct metrics *x, struct hk_buf *out)
{
    static const char *const names[FLOW_NENDS] = {PREFIX "jobflow_succeed_phase_count",
                                                  PREFIX "jobflow_failed_phase_count"};
    static const char *const helps[FLOW_NENDS] = {"JobFlows that succeeded.",
                                                  "JobFlows that failed."};

    for (unsigned end = 0; end < FLOW_NENDS; end++) {
        hk_prom_head(out, names[end], "counter", helps[end]);
        for (uint32_t k = 0; k < x->flows.len; k++) {
            const struct flow_count *f = &x->flows.at[k];

            if (f->ended[end] > 0) {
                hk_buf_adds(out, names[end]);
                hk_prom_label(out, "{", "jobflow_namespace", hk_intern_str(&x->str, f->ns));
                hk_buf_addf(out, "} %llu\n", (unsigned long long)f->ended[end]);
            }
        }
    }
}

static void write_frame(const struct metrics *x, struct hk_buf *out)
{
    const struct ctl_metrics *m = manager_metrics(x->mgr);

    hk_prom_head(
        out, "hekla_controller_requests_total", "counter",
        "Requests of the controllers to the API server, without lists, watches and Events.");
    for (unsigned verb = 0; verb < PORT_NVERBS; verb++) {
        if (m->writes[verb] > 0) {
            hk_buf_addf(out, "hekla_controller_requests_total{verb=\"%s\"} %llu\n",
                        port_verb_name(verb), (unsigned long long)m->writes[verb]);
        }
    }
    hk_prom_head(out, "hekla_controller_passes_total", "counter", "Passes over an object.");
    hk_buf_addf(out, "hekla_controller_passes_total %llu\n", (unsigned long long)m->passes);
    hk_prom_head(out, "hekla_controller_failures_total", "counter",
                 "Passes that failed and will be repeated.");
    hk_buf_addf(out, "hekla_controller_failures_total %llu\n", (unsigned long long)m->failures);
    hk_prom_head(out, "hekla_controller_events_total", "counter", "Events recorded.");
    hk_buf_addf(out, "hekla_controller_events_total %llu\n", (unsigned long long)m->events);
}

void metrics_write(const struct metrics *x, struct hk_buf *out)
{
    if (x->jobs) {
        metrics_write_jobs(x, PREFIX "job_completed_phase_count", "Jobs that completed.", true,
                           out);
        metrics_write_jobs(x, PREFIX "job_failed_phase_count", "Jobs that failed.", false, out);
        write_latency(x, out);
    }
    if (x->queues && x->groups) {
        metrics_write_queues(x, out);
    }
    if (manager_mirror(x->mgr, API_JOBFLOW)) {
        write_flows(x, out);
    }
    write_frame(x, out);
}

/* ---- open and close ---- */

static void hear_of(struct metrics *x, enum api_kind_id kind, mirror_listener *fn)
{
    struct mirror *m = manager_mirror(x->mgr, kind);

    if (m) {
        mirror_listen(m, fn, x);
    }
}

struct metrics *metrics_new(struct manager *m)
{
    struct metrics *x = hk_zalloc(sizeof(*x));

    x->mgr = m;
    x->jobs = manager_mirror(m, API_JOB);
    x->groups = manager_mirror(m, API_PODGROUP);
    x->queues = manager_mirror(m, API_QUEUE);
    hk_hist_init(&x->latency_ms, 50, 60000, 30);
    hear_of(x, API_JOB, on_job);
    if (x->jobs) {
        hear_of(x, API_POD, metrics_on_pod_change);
    }
    hear_of(x, API_JOBFLOW, on_flow);
    return x;
}

void metrics_free(struct metrics *x)
{
    if (!x) {
        return;
    }
    hk_intern_fini(&x->str);
    hk_vec_fini(&x->job_rows);
    hk_vec_fini(&x->flow_rows);
    hk_vec_fini(&x->flows);
    hk_free(x);
}
