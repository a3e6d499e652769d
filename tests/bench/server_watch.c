// SPDX-License-Identifier: Apache-2.0
// The cases about watches. Every watcher checks for itself that it sees each event, once, and in
// the order of revisions: events are creations of numbered objects.
#include "bench/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    WAIT_S = 300,
    WRITERS = 8,
    IDLE_MAX_US = 5000, /* of processor time a second */
};

struct watcher {
    uint64_t rv;    /* of the last event */
    uint8_t *seen;  /* per number */
    uint32_t wrong; /* events out of order, twice or unknown */
    bool begun, stalled;
    struct hk_buf line; /* what came of the next event */
};

struct watchers {
    struct server_bench *b;
    const struct server_proc *proc;
    struct load *load;
    struct watcher *at;
    uint32_t n, expect; /* events per watcher */
    uint64_t seen, want;
    double last;
    bool open, done;
    uint32_t nopen;
};

/* ---- watching ---- */

static bool ask_watch(void *ctx, uint32_t i, struct hk_buf *out)
{
    struct watchers *w = ctx;

    if (w->at[i].begun) {
        return false;
    }
    w->at[i].begun = true;
    server_request(w->proc, "GET",
                   "/api/v1/namespaces/default/configmaps?watch=1&sendInitialEvents=true&"
                   "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
                   "", "", HK_STR(""), out);
    return true;
}

static void on_end(void *ctx, uint32_t i, int status, struct hk_str body)
{
    fprintf(stderr, "hekla-bench-server: watch %u ended, status %d: %.*s\n", i, status,
            (int)HK_MIN(body.n, (size_t)400), body.s);
    _Exit(1);
}

static void take_event(struct watchers *w, struct watcher *t, struct hk_str line)
{
    const char *name = memmem(line.s, line.n, "\"name\":\"event-", 14);

    if (!name) {
        const bool ready = memmem(line.s, line.n, "initial-events-end", 18);
        w->nopen += ready;
        w->open = w->nopen == w->n;
        return;
    }
    const uint64_t k = strtoul(name + 14, NULL, 10);
    const char *rv = memmem(line.s, line.n, "\"resourceVersion\":\"", 19);
    const uint64_t at = rv ? strtoul(rv + 19, NULL, 10) : 0;
    const bool wrong = at <= t->rv || k >= w->expect || t->seen[k] > 0;
    t->wrong += wrong;
    t->rv = at;
    if (!wrong) {
        t->seen[k] = 1;
        w->seen++;
    }
    w->done = w->seen == w->want;
    if (w->done) {
        w->last = server_wall();
    }
}

static void on_piece(void *ctx, uint32_t i, struct hk_str data)
{
    struct watchers *w = ctx;
    struct watcher *t = &w->at[i];
    const char *end;

    while (data.n > 0 && (end = memchr(data.s, '\n', data.n))) {
        const size_t n = (size_t)(end - data.s) + 1;
        if (t->line.len > 0) {
            hk_buf_add(&t->line, data.s, n);
            take_event(w, t, hk_buf_str(&t->line));
            hk_buf_clear(&t->line);
        } else {
            take_event(w, t, (struct hk_str){data.s, n});
        }
        data.s += n;
        data.n -= n;
    }
    hk_buf_add(&t->line, data.s, data.n);
}

/* Connects and waits until each has been told that it has seen what there is. */
static void watchers_open(struct watchers *w)
{
    static const struct load_ops ops = {.next = ask_watch, .answer = on_end, .piece = on_piece};

    w->at = hk_zalloc_array(w->n, sizeof(*w->at));
    for (uint32_t k = 0; k < w->n; k++) {
        w->at[k].seen = hk_zalloc(w->expect + 1);
    }
    w->load = load_new(w->b->loop, w->proc->port, w->n, &ops, w);
    load_kick_all(w->load);
    if (!load_wait(w->b->loop, &w->open, WAIT_S)) {
        fprintf(stderr, "hekla-bench-server: %u of %u watches began\n", w->nopen, w->n);
        _Exit(1);
    }
}

static void watchers_close(struct watchers *w)
{
    for (uint32_t k = 0; k < w->n; k++) {
        hk_buf_fini(&w->at[k].line);
        hk_free(w->at[k].seen);
    }
    load_free(w->load);
    hk_free(w->at);
}

/* ---- events ---- */

static void ask_event(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_addf(&body,
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                "\"event-%06llu\"},\"data\":{\"text\":\"%0768u\"}}",
                (unsigned long long)k, 0U);
    server_request(p->proc, "POST", "/api/v1/namespaces/default/configmaps", "", "application/json",
                   hk_buf_str(&body), out);
}

/* How one distribution went. */
struct spread {
    double seconds, cpu, self, rss_before, rss_after, write_p50;
    uint64_t missing, wrong;
};

/* A server of its own for each: n watchers, some of which never read, and the events. */
static struct spread spread_events(struct server_bench *b, const char *id, uint32_t n,
                                   uint32_t stalled, uint32_t events)
{
    struct server_proc proc = {0};
    struct watchers w = {.b = b, .proc = &proc, .n = n, .expect = events};
    struct spread out = {0};

    server_start(b, id, &proc);
    watchers_open(&w);
    for (uint32_t k = 0; k < stalled; k++) {
        w.at[k].stalled = true;
        load_stall(w.load, k);
    }
    w.want = (uint64_t)(n - stalled) * events;
    out.rss_before = report_rss_mb(proc.pid);
    struct server_phase p = {.b = b,
                             .proc = &proc,
                             .clients = WRITERS,
                             .count = events,
                             .want = 201,
                             .request = ask_event};
    const double cpu = server_proc_cpu(&proc), self = server_self_cpu();
    server_phase_run(&p);
    (void)load_wait(b->loop, &w.done, WAIT_S);
    out.seconds = (w.done ? w.last : server_wall()) - p.began;
    out.cpu = server_proc_cpu(&proc) - cpu;
    out.self = server_self_cpu() - self;
    out.rss_after = report_rss_mb(proc.pid);
    out.write_p50 = report_percentile(p.ms.at, p.ms.len, 0.5);
    out.missing = w.want - w.seen;
    for (uint32_t k = 0; k < n; k++) {
        out.wrong += w.at[k].wrong;
    }
    server_phase_fini(&p);
    watchers_close(&w);
    server_proc_stop(&proc);
    server_remove_tree(proc.dir);
    return out;
}

/* ---- the cases ---- */

static void check_spread(struct server_bench *b, const char *id, const struct spread *s)
{
    server_check(b, s->missing == 0, id, "every watcher got every event", (double)s->missing);
    server_check(b, s->wrong == 0, id, "each once and in order", (double)s->wrong);
}

void server_case_fanout(struct server_bench *b, const char *id)
{
    const uint32_t n = b->quick ? 200 : 2000, events = b->quick ? 200 : 1000;
    const struct spread s = spread_events(b, id, n, 0, events);
    const double all = (double)n * events;

    server_report(b, id, "delivered", "events", NULL, all - (double)s.missing);
    server_report(b, id, "rate", "events/s", NULL, all / s.seconds);
    server_report(b, id, "whole", "s", NULL, s.seconds);
    server_report(b, id, "server cpu", "us/event", NULL, s.cpu / all * 1e6);
    server_report(b, id, "generator", "% of a core", NULL, s.self / s.seconds * 100);
    server_report(b, id, "memory before", "MB", NULL, s.rss_before);
    server_report(b, id, "memory after", "MB", NULL, s.rss_after);
    check_spread(b, id, &s);
}

void server_case_stalled(struct server_bench *b, const char *id)
{
    const uint32_t n = b->quick ? 50 : 500, idle = b->quick ? 5 : 50;
    const uint32_t events = b->quick ? 200 : 2000, runs = b->quick ? 1 : b->runs;
    double with[32], without[32], ratio[32], more_mb[32];
    uint32_t k = 0;

    for (; k < HK_MIN(runs, (uint32_t)HK_LEN(with)); k++) {
        const struct spread alone = spread_events(b, id, n, 0, events);
        const struct spread beside = spread_events(b, id, n + idle, idle, events);
        without[k] = (double)n * events / alone.seconds;
        with[k] = (double)n * events / beside.seconds;
        ratio[k] = with[k] / without[k];
        more_mb[k] = beside.rss_after - beside.rss_before - (alone.rss_after - alone.rss_before);
        check_spread(b, id, &beside);
    }
    server_report_all(b, id, "without", "events/s", NULL, without, k);
    server_report_all(b, id, "with", "events/s", NULL, with, k);
    server_report_all(b, id, "with of without", "times", NULL, ratio, k);
    server_report_all(b, id, "more memory", "MB", NULL, more_mb, k);
}

static void measure_idle(struct server_bench *b, const char *id, uint32_t n, double seconds)
{
    struct server_proc proc = {0};
    struct watchers w = {.b = b, .proc = &proc, .n = n};
    const bool never = false;
    char metric[24];

    server_start(b, id, &proc);
    if (n > 0) {
        watchers_open(&w);
    }
    server_await_rest(b, &proc);
    const double cpu = server_proc_cpu(&proc);
    (void)load_wait(b->loop, &never, seconds);
    const double used = (server_proc_cpu(&proc) - cpu) / seconds * 1e6;
    snprintf(metric, sizeof(metric), "%u watchers", n);
    server_report(b, id, metric, "us/s", NULL, used);
    server_report(b, id, "memory", "MB", NULL, report_rss_mb(proc.pid));
    server_check(b, used < IDLE_MAX_US, id, "an idle server uses hardly any processor time (us/s)",
                 used);
    if (n > 0) {
        watchers_close(&w);
    }
    server_proc_stop(&proc);
    server_remove_tree(proc.dir);
}

void server_case_idle(struct server_bench *b, const char *id)
{
    measure_idle(b, id, 0, b->quick ? 2 : 10);
    measure_idle(b, id, b->quick ? 100 : 1000, b->quick ? 2 : 10);
}
