// SPDX-License-Identifier: Apache-2.0
// P5 on simulated nodes: jobs that arrive at a steady rate, while many run already; from the
// submission of each to the moment a watcher sees its pod on a node.
#include "bench/up.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONNECTIONS = 8, TICK_NS = 10 * 1000 * 1000, WAIT_S = 300 };

struct steady {
    struct server_bench *b;
    const struct server_proc *proc;
    struct net_timer *timer;
    struct load *load;
    double rate, began; /* jobs per second, and since when */
    uint32_t n, asked, answered;
    double *sent, *ms; /* per job */
    uint32_t nms;
    bool done;
};

/* ---- arrivals ---- */

static bool is_due(const struct steady *s)
{
    return s->asked < s->n && s->asked < (server_wall() - s->began) * s->rate;
}

static bool next(void *ctx, uint32_t conn, struct hk_buf *out)
{
    struct steady *s = ctx;

    if (!is_due(s)) {
        return false;
    }
    s->sent[s->asked] = server_wall();
    up_job_request(s->proc, &(struct up_jobs){.prefix = "j", .gang = 1, .cpu = "100m"}, s->asked++,
                   out);
    return true;
}

static void on_answer(void *ctx, uint32_t conn, int status, struct hk_str body)
{
    struct steady *s = ctx;

    if (status != 201) {
        fprintf(stderr, "hekla-bench-up: status %d: %.*s\n", status,
                (int)HK_MIN(body.n, (size_t)400), body.s);
        _Exit(1);
    }
    s->answered++;
}

static void on_tick(void *ctx)
{
    struct steady *s = ctx;

    load_kick_all(s->load);
    if (s->asked < s->n) {
        net_timer_at(s->timer, net_loop_now_ns(s->b->loop) + TICK_NS);
    }
}

/* ---- binds ---- */

static bool is_bound(struct up_watch *w, struct hk_str line)
{
    struct steady *s = w->ctx;
    const char *name = memmem(line.s, line.n, "\"name\":\"j-", 10);
    const uint64_t k = name ? strtoul(name + 10, NULL, 10) : UINT64_MAX;

    if (!up_is_added(w, line) || k >= s->n) {
        return false;
    }
    s->ms[s->nms++] = (server_wall() - s->sent[k]) * 1e3;
    return true;
}

void up_case_steady(struct server_bench *b, const char *id)
{
    struct server_proc proc = {0};
    struct steady s = {
        .b = b, .proc = &proc, .rate = b->quick ? 50 : 500, .n = b->quick ? 50 : 5000};
    struct up_watch w = {
        .b = b, .proc = &proc, .path = UP_BOUND_PODS, .counts = is_bound, .want = s.n, .ctx = &s};
    static const struct load_ops ops = {.next = next, .answer = on_answer};

    s.sent = hk_zalloc_array(s.n, sizeof(*s.sent));
    s.ms = hk_zalloc_array(s.n, sizeof(*s.ms));
    up_start_simulated(b, id, &proc, b->quick ? 50 : 10000);
    up_watch_open(&w);
    s.load = load_new(b->loop, proc.port, CONNECTIONS, &ops, &s);
    s.timer = net_timer_new(b->loop, on_tick, &s);
    s.began = server_wall();
    on_tick(&s);
    up_watch_wait(&w);
    server_report(b, id, "arrived", "jobs/s", NULL, s.n / (w.last - s.began));
    server_report(b, id, "submit -> bound, p50", "ms", NULL, report_percentile(s.ms, s.nms, 0.5));
    server_report(b, id, "submit -> bound, p99", "ms", NULL, report_percentile(s.ms, s.nms, 0.99));
    server_check(b, s.nms == s.n, id, "every pod was bound once", s.nms);
    net_timer_free(s.timer);
    load_free(s.load);
    up_watch_close(&w);
    server_proc_stop(&proc);
    server_remove_tree(proc.dir);
    hk_free(s.sent);
    hk_free(s.ms);
}
