// SPDX-License-Identifier: Apache-2.0
// The page that `hekla explain` prints: the state in one sentence, then the reasons, the jobs
// ahead, and possible fixes.
#include "cli/show_explain.h"

#include "api/vcjob.h"
#include "base/clock.h"
#include "cli/show_priv.h"
#include "codec/timefmt.h"

enum { NAMES_SHOWN = 5, LABEL = 9 };

struct page {
    const struct json *doc;
    const struct term *t;
    struct hk_buf *out;
};

static const struct hk_str none = {"", 0};

static void paint(struct page *p, enum term_hue hue, const char *text)
{
    term_paint(p->t, hue, hk_str(text), p->out);
}

static void show_explain_write_heading(struct page *p, const char *text)
{
    hk_buf_addc(p->out, '\n');
    paint(p, TERM_BOLD, text);
    hk_buf_addc(p->out, '\n');
}

static void show_explain_write_label(struct page *p, const char *text)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    hk_buf_addf(&b, "  %-*s", LABEL, text);
    paint(p, TERM_DIM, b.data);
}

/* ---- parts ---- */

/* "cpu 2, memory 4Gi"; skips zero amounts. */
static void show_explain_write_amounts(const struct json *list, struct hk_buf *out)
{
    bool any = false;

    for (uint32_t k = 0; json_is(list, JSON_OBJECT) && k < list->len; k++) {
        const struct hk_str v = json_str(&list->members[k].value, none);
        if (v.n > 0 && !hk_str_is(v, "0")) {
            hk_buf_addf(out, "%s%.*s %.*s", any ? ", " : "", HK_FMT(list->members[k].key),
                        HK_FMT(v));
            any = true;
        }
    }
    hk_buf_adds(out, any ? "" : "nothing");
}

static void seconds(int64_t s, struct hk_buf *out)
{
    duration_write_human(hk_seconds_ns(s), out);
}

/* "a, b, c and 4 more" */
static void show_explain_write_names(const struct json *list, struct hk_buf *out)
{
    for (uint32_t k = 0; k < list->len && k < NAMES_SHOWN; k++) {
        hk_buf_addf(out, "%s%.*s", k ? ", " : "", HK_FMT(json_str(&list->items[k], none)));
    }
    if (list->len > NAMES_SHOWN) {
        hk_buf_addf(out, " and %u more", list->len - NAMES_SHOWN);
    }
}

static enum term_hue state_hue(struct hk_str state)
{
    static const struct {
        const char *state;
        enum term_hue hue;
    } rows[] = {{"waiting", TERM_WAIT}, {"blocked", TERM_WAIT}, {"suspended", TERM_WAIT},
                {"running", TERM_GOOD}, {"open", TERM_GOOD},    {"starting", TERM_GOOD},
                {"closed", TERM_BAD},   {"ending", TERM_WAIT},  {"ended", TERM_INFO}};

    for (size_t k = 0; k < HK_LEN(rows); k++) {
        if (hk_str_is(state, rows[k].state)) {
            return rows[k].hue;
        }
    }
    return TERM_PLAIN;
}

static bool runs(const struct page *p)
{
    return hk_str_is(json_str_field(p->doc, "state"), "running");
}

/* ---- the sentence ---- */

static void show_explain_write_summary(struct page *p)
{
    HK_AUTO(hk_buf_fini) struct hk_buf name = {0};
    const struct hk_str ns = json_str_field(p->doc, "namespace");
    const bool failed = hk_str_is(json_str_field(p->doc, "phase"), "Failed");

    hk_buf_addf(&name, "%.*s%s%.*s", HK_FMT(ns), ns.n > 0 ? "/" : "",
                HK_FMT(json_str_field(p->doc, "name")));
    term_paint(p->t, TERM_BOLD, hk_buf_str(&name), p->out);
    hk_buf_addc(p->out, ' ');
    term_paint(p->t, failed ? TERM_BAD : state_hue(json_str_field(p->doc, "state")),
               json_str_field(p->doc, "summary"), p->out);
    hk_buf_adds(p->out, ".\n");
}

/* ---- facts ---- */

static void queue_line(struct page *p, const struct json *q)
{
    const struct json *capability = json_get(q, "capability"), *deserved = json_get(q, "deserved");

    show_explain_write_label(p, "queue");
    hk_buf_addf(p->out, "%.*s (weight %lld", HK_FMT(json_str_field(q, "name")),
                (long long)json_int_at(q, "weight"));
    const struct hk_str state = json_str_field(q, "state");
    if (state.n > 0) {
        hk_buf_addf(p->out, ", %.*s", HK_FMT(state));
    }
    hk_buf_adds(p->out, ") holds ");
    show_explain_write_amounts(json_get(q, "allocated"), p->out);
    if (deserved) {
        hk_buf_adds(p->out, "; deserves ");
        show_explain_write_amounts(deserved, p->out);
    }
    if (capability) {
        hk_buf_adds(p->out, "; at most ");
        show_explain_write_amounts(capability, p->out);
    }
    hk_buf_addc(p->out, '\n');
}

static void duration_line(struct page *p, const char *key, const char *name)
{
    const struct json *v = json_get(p->doc, key);

    if (v) {
        show_explain_write_label(p, name);
        seconds(json_int(v, 0), p->out);
        hk_buf_addc(p->out, '\n');
    }
}

static void failure_line(struct page *p)
{
    const struct json *bad = json_get(p->doc, "failure");

    if (bad) {
        show_explain_write_label(p, "failure");
        hk_buf_addf(p->out, "pod %.*s of task %.*s: ", HK_FMT(json_str_field(bad, "pod")),
                    HK_FMT(json_str_field(bad, "task")));
        api_job_write_end(bad, p->out);
        hk_buf_addc(p->out, '\n');
    }
    if (json_int_at(p->doc, "retries") > 0) {
        show_explain_write_label(p, "retries");
        hk_buf_addf(p->out, "%lld of %lld\n", (long long)json_int_at(p->doc, "retries"),
                    (long long)json_int_at(p->doc, "maxRetry"));
    }
}

static void facts(struct page *p)
{
    const struct json *wants = json_get(p->doc, "wants");
    const bool waits = json_get(p->doc, "reasons") != NULL;

    if (json_get(p->doc, "queue")) {
        queue_line(p, json_get(p->doc, "queue"));
    }
    duration_line(p, "waitedSeconds", "waited");
    duration_line(p, "ranSeconds", "ran");
    duration_line(p, "tookSeconds", "took");
    failure_line(p);
    if (waits && json_int_at(p->doc, "gang.waiting") > 0 && json_is(wants, JSON_OBJECT)) {
        show_explain_write_label(p, "wants");
        show_explain_write_amounts(wants, p->out);
        hk_buf_addf(p->out, ", %s; priority %lld\n", runs(p) ? "for one more pod" : "to start",
                    (long long)json_int_at(p->doc, "priority"));
    }
    const struct json *evicts = json_list_at(p->doc, "evicts");
    if (evicts->len > 0) {
        show_explain_write_label(p, "evicts");
        show_explain_write_names(evicts, p->out);
        hk_buf_addc(p->out, '\n');
    }
    const struct hk_str told = json_str_field(p->doc, "waitedFor");
    if (told.n > 0) {
        show_explain_write_label(p, "waited for");
        hk_buf_addf(p->out, "%.*s\n", HK_FMT(told));
    }
}

/* ---- reasons ---- */

static void refusal_line(struct page *p, const struct json *part, const struct json *r)
{
    const struct hk_str most = json_str_field(r, "mostFree");
    const int64_t nodes = json_int_at(part, "nodes");

    hk_buf_addf(p->out, "    %lld of %lld node%s: %.*s", (long long)json_int_at(r, "nodes"),
                (long long)nodes, nodes == 1 ? "" : "s", HK_FMT(json_str_field(r, "text")));
    if (json_get(r, "wants")) {
        hk_buf_addf(p->out, " (a pod wants %.*s", HK_FMT(json_str_field(r, "wants")));
        if (hk_str_is(most, "0")) {
            hk_buf_adds(p->out, ", nothing is free now");
        } else if (most.n > 0) {
            hk_buf_addf(p->out, ", at most %.*s is free now, on %.*s", HK_FMT(most),
                        HK_FMT(json_str_field(r, "mostFreeOn")));
        }
        hk_buf_addc(p->out, ')');
    }
    hk_buf_addc(p->out, '\n');
}

static void part_lines(struct page *p, const struct json *part)
{
    const struct json *list = json_list_at(part, "refusals");
    const struct hk_str task = json_str_field(part, "task"), text = json_str_field(part, "text");
    const int64_t pods = json_int_at(part, "pods"), fit = json_int_at(part, "fit");

    hk_buf_addf(p->out, "  %s%.*s: %lld pod%s", task.n > 0 ? "task " : "pods like ",
                HK_FMT(task.n > 0 ? task : json_str_field(part, "example")), (long long)pods,
                pods == 1 ? "" : "s");
    if (fit > 0) {
        hk_buf_addf(p->out, ", %lld would find a place%s", (long long)fit,
                    list->len > 0 ? ", then no more:" : "");
    }
    hk_buf_addc(p->out, '\n');
    if (list->len == 0 && text.n > 0) {
        hk_buf_addf(p->out, "    %.*s\n", HK_FMT(text));
    }
    for (uint32_t k = 0; k < list->len; k++) {
        refusal_line(p, part, &list->items[k]);
    }
}

static void limit_line(struct page *p, const struct json *l)
{
    const struct hk_str of = json_str_field(l, "limit"), promised = json_str_field(l, "promised");

    hk_buf_addf(p->out, "  %.*s: it wants %.*s, ", HK_FMT(json_str_field(l, "resource")),
                HK_FMT(json_str_field(l, "wants")));
    if (hk_str_is(of, "cluster")) {
        hk_buf_addf(p->out, "and of %.*s in the cluster %.*s is taken",
                    HK_FMT(json_str_field(l, "most")), HK_FMT(json_str_field(l, "holds")));
    } else {
        hk_buf_addf(
            p->out, "and the queue holds %.*s of %s%.*s%s", HK_FMT(json_str_field(l, "holds")),
            hk_str_is(of, "capability") ? "at most " : "", HK_FMT(json_str_field(l, "most")),
            hk_str_is(of, "deserved") ? " that it deserves" : "");
    }
    if (!hk_str_is(promised, "0")) {
        hk_buf_addf(p->out, ", %.*s is promised", HK_FMT(promised));
    }
    hk_buf_addc(p->out, '\n');
}

static bool has_reasons(const struct page *p)
{
    const struct json *parts = json_list_at(p->doc, "reasons");

    for (uint32_t k = 0; k < parts->len; k++) {
        if (json_list_at(&parts->items[k], "refusals")->len > 0 ||
            json_str_field(&parts->items[k], "text").n > 0) {
            return true;
        }
    }
    return false;
}

static void why(struct page *p)
{
    const struct json *parts = json_list_at(p->doc, "reasons");
    const struct json *blocked = json_list_at(p->doc, "blockedTasks");
    const struct json *limits = json_list_at(p->doc, "limits");

    if (has_reasons(p) || limits->len > 0) {
        show_explain_write_heading(p, "Why");
    }
    for (uint32_t k = 0; k < limits->len; k++) {
        limit_line(p, &limits->items[k]);
    }
    if (has_reasons(p)) {
        for (uint32_t k = 0; k < parts->len; k++) {
            part_lines(p, &parts->items[k]);
        }
    }
    for (uint32_t k = 0; k < blocked->len; k++) {
        hk_buf_addf(p->out, "%s  task %.*s has no pods yet: it depends on ", k ? "" : "\n",
                    HK_FMT(json_str_field(&blocked->items[k], "task")));
        show_explain_write_names(json_list_at(&blocked->items[k], "dependsOn"), p->out);
        hk_buf_addc(p->out, '\n');
    }
}

/* ---- steps of a flow ---- */

static void target_lines(struct page *p, const struct json *step)
{
    const struct json *list = json_list_at(step, "waitsFor");

    for (uint32_t k = 0; k < list->len; k++) {
        const struct json *probes = json_list_at(&list->items[k], "probes");
        hk_buf_addf(p->out, "%s%.*s (%.*s", k ? ", " : "waits for ",
                    HK_FMT(json_str_field(&list->items[k], "step")),
                    HK_FMT(json_str_field(&list->items[k], "phase")));
        if (probes->len > 0) {
            hk_buf_adds(p->out, "; until done or ");
            show_explain_write_names(probes, p->out);
        }
        hk_buf_addc(p->out, ')');
    }
    hk_buf_adds(p->out, list->len == 0 ? "starts next" : "");
}

static void steps(struct page *p)
{
    const struct json *list = json_list_at(p->doc, "steps");
    size_t width = 0;

    for (uint32_t k = 0; k < list->len; k++) {
        width = HK_MAX(width, json_str_field(&list->items[k], "step").n);
    }
    for (uint32_t k = 0; k < list->len; k++) {
        const struct hk_str phase = json_str_field(&list->items[k], "phase");
        hk_buf_adds(p->out, "  ");
        show_cell(json_str_field(&list->items[k], "step"), width + 2, p->out);
        if (phase.n > 0) {
            term_paint(p->t, term_phase_hue(phase), phase, p->out);
            hk_buf_addf(p->out, " (job %.*s)", HK_FMT(json_str_field(&list->items[k], "job")));
        } else {
            target_lines(p, &list->items[k]);
        }
        hk_buf_addc(p->out, '\n');
    }
    if (json_str_field(p->doc, "problem").n > 0) {
        hk_buf_addf(p->out, "\nFailed so far\n  %.*s\n", HK_FMT(json_str_field(p->doc, "problem")));
    }
}

/* ---- jobs ahead ---- */

static void ahead_line(struct page *p, const struct json *j, size_t width)
{
    hk_buf_adds(p->out, "  ");
    show_cell(json_str_field(j, "name"), width + 2, p->out);
    hk_buf_addf(p->out, "%.*s; waits for ", HK_FMT(json_str_field(j, "why")));
    show_explain_write_amounts(json_get(j, "waitsFor"), p->out);
    const struct json *holds = json_get(j, "holds");
    if (json_is(holds, JSON_OBJECT) && holds->len > 0) {
        hk_buf_adds(p->out, ", holds ");
        show_explain_write_amounts(holds, p->out);
    }
    hk_buf_addc(p->out, '\n');
}

static void ahead(struct page *p)
{
    const struct json *list = json_list_at(p->doc, "ahead.jobs");
    const int64_t n = json_int_at(p->doc, "ahead.inCluster");
    HK_AUTO(hk_buf_fini) struct hk_buf head = {0};
    size_t width = 0;

    if (n == 0) {
        return;
    }
    for (uint32_t k = 0; k < list->len; k++) {
        width = HK_MAX(width, json_str_field(&list->items[k], "name").n);
    }
    hk_buf_addf(&head, "Ahead of it: %lld job%s, %lld in its queue", (long long)n,
                n == 1 ? "" : "s", (long long)json_int_at(p->doc, "ahead.inQueue"));
    show_explain_write_heading(p, head.data);
    for (uint32_t k = 0; k < list->len; k++) {
        ahead_line(p, &list->items[k], width);
    }
    if (n > list->len) {
        hk_buf_addf(p->out, "  and %lld more\n", (long long)n - list->len);
    }
}

/* ---- possible fixes ---- */

static void change_line(struct page *p, const struct json *c)
{
    const struct json *evicts = json_list_at(c, "evicts"), *delays = json_list_at(c, "delays");

    hk_buf_adds(p->out, "  - ");
    term_paint(p->t, TERM_INFO, json_str_field(c, "text"), p->out);
    if (evicts->len > 0) {
        hk_buf_adds(p->out, "; then evicted: ");
        show_explain_write_names(evicts, p->out);
    }
    if (delays->len > 0) {
        hk_buf_adds(p->out, "; then later: ");
        show_explain_write_names(delays, p->out);
    }
    hk_buf_addc(p->out, '\n');
}

static void tried_line(struct page *p, uint32_t found)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    const long long n = json_int_at(p->doc, "tried");

    if (n == 0) {
        return;
    }
    hk_buf_addf(&b, "%s%lld change%s tried in the scheduler, one at a time%s.",
                found > 0 ? "  "
                : runs(p) ? "\nNo single change lets more of it start: "
                          : "\nNo single change lets it start: ",
                n, n == 1 ? "" : "s",
                json_bool(json_get(p->doc, "cut"), false) ? "; there are more" : "");
    paint(p, found == 0 ? TERM_PLAIN : TERM_DIM, b.data);
    hk_buf_addc(p->out, '\n');
}

static void changes(struct page *p)
{
    const struct json *list = json_list_at(p->doc, "changes");

    if (list->len > 0) {
        show_explain_write_heading(p, runs(p) ? "More of it starts if one of these happens"
                                              : "It starts if one of these happens");
    }
    for (uint32_t k = 0; k < list->len; k++) {
        change_line(p, &list->items[k]);
    }
    tried_line(p, list->len);
}

static void advice(struct page *p)
{
    const struct json *lost = json_list_at(p->doc, "lostPods");
    const struct hk_str words = json_str_field(p->doc, "advice");

    if (lost->len > 1) {
        show_explain_write_heading(p, "Pods on lost nodes");
    }
    for (uint32_t k = 0; lost->len > 1 && k < lost->len && k < NAMES_SHOWN; k++) {
        const struct json *pod = &lost->items[k];

        hk_buf_addf(p->out, "  %.*s on node %.*s, which %.*s\n", HK_FMT(json_str_field(pod, "pod")),
                    HK_FMT(json_str_field(pod, "node")), HK_FMT(json_str_field(pod, "fault")));
    }
    if (words.n > 0) {
        hk_buf_addf(p->out, "\n%.*s\n", HK_FMT(words));
    }
}

void show_explain(const struct json *answer, const struct term *t, struct hk_buf *out)
{
    struct page p = {answer, t, out};

    show_explain_write_summary(&p);
    facts(&p);
    steps(&p);
    if (!hk_str_is(json_str_field(answer, "state"), "starting")) {
        why(&p);
        ahead(&p);
    }
    changes(&p);
    advice(&p);
    const struct json *notes = json_list_at(answer, "notes");
    for (uint32_t k = 0; k < notes->len; k++) {
        hk_buf_addf(out, "%snote: %.*s\n", k ? "" : "\n", HK_FMT(json_str(&notes->items[k], none)));
    }
}
