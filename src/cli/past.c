// SPDX-License-Identifier: Apache-2.0
// Reads the history of a job, and writes it as rows, pages and JSON.
#include "cli/past.h"

#include "cli/progress.h"
#include "cli/show_priv.h"
#include "codec/timefmt.h"

#include <stdlib.h>
#include <time.h>

#define S_NS ((int64_t)1000 * 1000 * 1000)

/* ---- reading ---- */

static int64_t time_at(const struct json *obj, const char *path)
{
    int64_t ns = 0;
    const struct hk_str text = json_str_at(obj, path);

    return text.n > 0 && time_parse(text, &ns, NULL) == 0 ? ns : 0;
}

/* The first time the job ran: from its first attempt, else from its phases. */
static int64_t first_start(const struct json *job)
{
    const struct json *attempts = json_list_at(job, "status.attempts");
    const struct json *phases = json_list_at(job, "status.conditions");
    int64_t first = 0;

    for (uint32_t i = 0; i < attempts->len; i++) {
        const int64_t ns = time_at(&attempts->items[i], "startTime");
        first = ns > 0 && (first == 0 || ns < first) ? ns : first;
    }
    for (uint32_t i = 0; i < phases->len; i++) {
        if (hk_str_is(json_str_field(&phases->items[i], "status"), "Running")) {
            const int64_t ns = time_at(&phases->items[i], "lastTransitionTime");
            first = ns > 0 && (first == 0 || ns < first) ? ns : first;
        }
    }
    return first;
}

static bool is_eviction(const struct json *attempt)
{
    const struct hk_str reason = json_str_field(attempt, "reason");

    return hk_str_is(reason, "Preempted") || hk_str_is(reason, "Evicted");
}

static int64_t count_evictions(const struct json *job)
{
    const struct json *attempts = json_list_at(job, "status.attempts");
    int64_t n = 0;

    for (uint32_t i = 0; i < attempts->len; i++) {
        n += is_eviction(&attempts->items[i]);
    }
    return n;
}

struct past past_of(const struct api_object *job, int64_t now_ns)
{
    const struct json *root = &job->root;
    struct past p = {.job = job,
                     .queued_ns = time_at(root, "metadata.creationTimestamp"),
                     .started_ns = first_start(root),
                     .retries = progress_retries(job),
                     .evictions = count_evictions(root),
                     .over = progress_is_over(job)};

    p.ended_ns = p.over ? time_at(root, "status.state.lastTransitionTime") : 0;
    p.exit_code = p.over ? progress_exit_code(job) : 0;
    const int64_t last = p.ended_ns > 0 ? p.ended_ns : now_ns;
    p.waited_ns = HK_MAX((p.started_ns > 0 ? p.started_ns : last) - p.queued_ns, 0);
    p.ran_ns = p.started_ns > 0 ? HK_MAX(last - p.started_ns, 0) : -1;
    return p;
}

/* ---- formatting ---- */

/* "2026-11-15 16:52:29" in the local zone; "" if there is none. */
static void write_time(int64_t ns, struct hk_buf *out)
{
    const time_t s = (time_t)(ns / S_NS);
    char text[32];
    struct tm tm;

    if (ns > 0 && localtime_r(&s, &tm)) {
        hk_buf_add(out, text, strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm));
    }
}

static void add_time(int64_t ns, struct grid *g)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    write_time(ns, &text);
    grid_add(g, hk_buf_str(&text));
}

static void add_span(int64_t ns, struct grid *g)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (ns >= 0) {
        duration_write_human(ns, &text);
    }
    grid_add(g, hk_buf_str(&text));
}

static void add_code(bool known, int64_t code, struct grid *g)
{
    if (known) {
        grid_addf(g, "%lld", (long long)code);
        grid_hue(g, code != 0 ? TERM_BAD : TERM_PLAIN);
    } else {
        grid_add(g, HK_STR(""));
    }
}

/* ---- rows ---- */

void past_heads(bool namespaces, struct grid *g)
{
    if (namespaces) {
        grid_head(g, "NAMESPACE", false);
    }
    grid_head(g, "NAME", false);
    grid_head(g, "QUEUE", false);
    grid_head(g, "PHASE", false);
    grid_head(g, "QUEUED", false);
    grid_head(g, "STARTED", false);
    grid_head(g, "ENDED", false);
    grid_head(g, "WAITED", false);
    grid_head(g, "RAN", false);
    grid_head(g, "TASKS", true);
    grid_head(g, "RETRIES", true);
    grid_head(g, "EVICTED", true);
    grid_head(g, "EXIT", true);
}

void past_row(const struct past *p, bool namespaces, struct grid *g)
{
    const struct hk_str phase = progress_phase(p->job);

    if (namespaces) {
        grid_add(g, p->job->ns);
    }
    grid_add(g, p->job->name);
    grid_add(g, json_str_at(&p->job->root, "spec.queue"));
    grid_add(g, phase);
    grid_hue(g, term_phase_hue(phase));
    add_time(p->queued_ns, g);
    add_time(p->started_ns, g);
    add_time(p->ended_ns, g);
    add_span(p->waited_ns, g);
    add_span(p->ran_ns, g);
    grid_addf(g, "%lld", (long long)progress_total(p->job));
    grid_addf(g, "%lld", (long long)p->retries);
    grid_addf(g, "%lld", (long long)p->evictions);
    add_code(p->over, p->exit_code, g);
}

/* ---- the page ---- */

static void write_summary(const struct past *p, const struct term *t, struct hk_buf *out)
{
    HK_AUTO(grid_fini) struct grid g = {0};

    past_heads(true, &g);
    past_row(p, true, &g);
    for (uint32_t k = 0; k < g.ncolumns; k++) {
        hk_buf_addf(out, "%-10s ", g.heads[k]);
        term_paint(t, g.cells[k].hue, g.cells[k].text, out);
        hk_buf_addc(out, '\n');
    }
}

static void write_title(const char *title, const struct term *t, struct hk_buf *out)
{
    hk_buf_addc(out, '\n');
    term_paint(t, TERM_BOLD, hk_str(title), out);
    hk_buf_addc(out, '\n');
}

static void write_phase(int64_t at_ns, struct hk_str phase, const struct term *t,
                        struct hk_buf *out)
{
    write_time(at_ns, out);
    hk_buf_adds(out, "  ");
    term_paint(t, term_phase_hue(phase), phase, out);
    hk_buf_addc(out, '\n');
}

static void write_condition(const struct json *condition, const struct term *t, struct hk_buf *out)
{
    write_phase(time_at(condition, "lastTransitionTime"), json_str_field(condition, "status"), t,
                out);
}

/* When a run began, and when its last attempt ended; 0: no attempt of it is known. */
static void find_run(const struct json *job, int64_t retry, int64_t *ret_start, int64_t *ret_end)
{
    const struct json *attempts = json_list_at(job, "status.attempts");

    *ret_start = *ret_end = 0;
    for (uint32_t i = 0; i < attempts->len; i++) {
        const struct json *a = &attempts->items[i];
        const int64_t start = time_at(a, "startTime"), end = time_at(a, "endTime");

        if (json_int_at(a, "retry") == retry && start > 0) {
            *ret_start = *ret_start == 0 ? start : HK_MIN(*ret_start, start);
            *ret_end = HK_MAX(*ret_end, end);
        }
    }
}

/* Writes a phase that the conditions do not have. */
static void write_earlier(const struct past *p, int64_t at_ns, struct hk_str phase,
                          const struct term *t, struct hk_buf *out)
{
    const struct json *known = json_list_at(&p->job->root, "status.conditions");

    for (uint32_t i = 0; i < known->len; i++) {
        if (hk_str_eq(json_str_field(&known->items[i], "status"), phase) &&
            time_at(&known->items[i], "lastTransitionTime") == at_ns) {
            return;
        }
    }
    if (at_ns > 0) {
        write_phase(at_ns, phase, t, out);
    }
}

/* The conditions keep only the last time of each phase: what a restarted job did before is known from
 * its attempts. Its last restart is among the conditions. */
static void write_earlier_phases(const struct past *p, const struct term *t, struct hk_buf *out)
{
    for (int64_t retry = 0; retry < p->retries; retry++) {
        int64_t start, end;

        find_run(&p->job->root, retry, &start, &end);
        write_earlier(p, start, HK_STR("Running"), t, out);
        if (retry + 1 < p->retries) {
            write_earlier(p, end, HK_STR("Restarting"), t, out);
        }
    }
}

static bool was_pending_first(const struct past *p, const struct json *condition)
{
    return hk_str_is(json_str_field(condition, "status"), "Pending") &&
           (p->started_ns == 0 || time_at(condition, "lastTransitionTime") <= p->started_ns);
}

static void write_phases(const struct past *p, const struct term *t, struct hk_buf *out)
{
    const struct json *phases = json_list_at(&p->job->root, "status.conditions");
    uint32_t known = 0; /* how many conditions are from before the first start */

    if (phases->len == 0) {
        return;
    }
    write_title("PHASES", t, out);
    if (was_pending_first(p, &phases->items[0])) {
        write_condition(&phases->items[known++], t, out);
    } else {
        write_phase(p->queued_ns, HK_STR("Pending"), t, out);
    }
    write_earlier_phases(p, t, out);
    if (known == 0 && p->retries == 0 && p->started_ns > 0 &&
        p->started_ns < time_at(&phases->items[0], "lastTransitionTime")) {
        write_phase(p->started_ns, HK_STR("Running"), t, out);
    }
    for (uint32_t i = known; i < phases->len; i++) {
        write_condition(&phases->items[i], t, out);
    }
}

static void add_attempt(const struct json *a, struct grid *g)
{
    const int64_t start = time_at(a, "startTime"), end = time_at(a, "endTime");
    const struct hk_str reason = json_str_field(a, "reason");

    grid_addf(g, "%lld", (long long)json_int_at(a, "retry"));
    grid_addf(g, "%.*s-%lld", HK_FMT(json_str_field(a, "task")),
              (long long)json_int_at(a, "index"));
    grid_add(g, json_str_field(a, "node"));
    add_time(start, g);
    add_span(start > 0 && end > 0 ? HK_MAX(end - start, 0) : -1, g);
    add_code(end > 0, json_int_at(a, "exitCode"), g);
    grid_add(g, reason);
    grid_hue(g, is_eviction(a) ? TERM_WAIT : TERM_PLAIN);
    grid_add(g, json_str_field(a, "message"));
}

static void write_attempts(const struct json *job, const struct term *t, struct hk_buf *out)
{
    HK_AUTO(grid_fini) struct grid g = {0};
    const struct json *attempts = json_list_at(job, "status.attempts");

    if (attempts->len == 0) {
        return;
    }
    grid_head(&g, "RETRY", true);
    grid_head(&g, "TASK", false);
    grid_head(&g, "NODE", false);
    grid_head(&g, "STARTED", false);
    grid_head(&g, "RAN", false);
    grid_head(&g, "EXIT", true);
    grid_head(&g, "REASON", false);
    grid_head(&g, "MESSAGE", false);
    for (uint32_t i = 0; i < attempts->len; i++) {
        add_attempt(&attempts->items[i], &g);
    }
    write_title("ATTEMPTS", t, out);
    grid_write(&g, t, out);
}

/* Events of the job and its group, and warnings about its pods. */
static bool concerns(const struct json *event, const struct api_object *job)
{
    const struct hk_str kind = json_str_at(event, "involvedObject.kind");
    const struct hk_str name = json_str_at(event, "involvedObject.name");
    const struct hk_str head = {name.s, HK_MIN(name.n, job->name.n)};
    const bool ours =
        hk_str_eq(head, job->name) && (name.n == job->name.n || name.s[job->name.n] == '-');

    if (hk_str_is(kind, "Job")) {
        return hk_str_eq(name, job->name);
    }
    if (hk_str_is(kind, "PodGroup")) {
        return ours && name.n == job->name.n + 1 + job->uid.n;
    }
    return ours && hk_str_is(kind, "Pod") && hk_str_is(json_str_field(event, "type"), "Warning");
}

static int64_t event_time(const struct json *event)
{
    const int64_t last = time_at(event, "lastTimestamp");

    return last > 0 ? last : time_at(event, "eventTime");
}

static int by_time(const void *a, const void *b)
{
    const int64_t x = event_time(&(*(struct api_object *const *)a)->root);
    const int64_t y = event_time(&(*(struct api_object *const *)b)->root);

    return (x > y) - (x < y);
}

static void write_events(const struct past *p, const struct list_set *events, const struct term *t,
                         struct hk_buf *out)
{
    HK_AUTO(grid_fini) struct grid g = {0};
    struct api_object **at = hk_arena_array(&g.mem, events->n + 1, sizeof(struct api_object *));

    for (uint32_t i = 0; i < events->n; i++) {
        at[i] = events->at[i];
    }
    qsort(at, events->n, sizeof(struct api_object *), by_time);

    grid_head(&g, "LAST", false);
    grid_head(&g, "REASON", false);
    grid_head(&g, "ABOUT", false);
    grid_head(&g, "MESSAGE", false);
    for (uint32_t i = 0; i < events->n; i++) {
        const struct json *e = &at[i]->root;
        if (concerns(e, p->job)) {
            add_time(event_time(e), &g);
            grid_add(&g, json_str_field(e, "reason"));
            grid_add(&g, json_str_at(e, "involvedObject.kind"));
            grid_add(&g, hk_str_trim(json_str_field(e, "message")));
        }
    }
    if (grid_rows(&g) > 0) {
        write_title("EVENTS", t, out);
        grid_write(&g, t, out);
    }
}

void past_page(const struct past *p, const struct list_set *events, const struct term *t,
               struct hk_buf *out)
{
    write_summary(p, t, out);
    write_phases(p, t, out);
    write_attempts(&p->job->root, t, out);
    write_events(p, events, t, out);
}

/* ---- JSON ---- */

static void past_set_time_if_known(struct json *obj, struct hk_arena *a, const char *key,
                                   int64_t ns)
{
    if (ns > 0) {
        json_set_time(obj, a, key, ns);
    }
}

struct json past_json(const struct past *p, struct hk_arena *a)
{
    const struct json *root = &p->job->root, *attempts = json_at(root, "status.attempts");
    struct json v = json_make_object();

    json_set_str(&v, a, "name", p->job->name);
    json_set_str(&v, a, "namespace", p->job->ns);
    json_set_str(&v, a, "queue", json_str_at(root, "spec.queue"));
    json_set_str(&v, a, "phase", progress_phase(p->job));
    past_set_time_if_known(&v, a, "queued", p->queued_ns);
    past_set_time_if_known(&v, a, "started", p->started_ns);
    past_set_time_if_known(&v, a, "ended", p->ended_ns);
    json_set_int(&v, a, "waitedSeconds", p->waited_ns / S_NS);
    if (p->ran_ns >= 0) {
        json_set_int(&v, a, "ranSeconds", p->ran_ns / S_NS);
    }
    json_set_int(&v, a, "tasks", progress_total(p->job));
    json_set_int(&v, a, "retries", p->retries);
    json_set_int(&v, a, "evictions", p->evictions);
    if (p->over) {
        json_set_int(&v, a, "exitCode", p->exit_code);
    }
    json_set(&v, a, "attempts", attempts ? *attempts : json_make_array());
    return v;
}
