// SPDX-License-Identifier: Apache-2.0
// The cases about `hekla up` as a whole: from a Job over HTTPS to pods with nodes, and to processes
// that have ended, with every acknowledged write on disk.
#include "bench/up.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_S = 600, CLIENTS = 16, NODES = 1000, QUICK_NODES = 50 };

/* ---- watching ---- */

static bool ask_watch(void *ctx, uint32_t i, struct hk_buf *out)
{
    struct up_watch *w = ctx;

    if (w->asked) {
        return false;
    }
    w->asked = true;
    server_request(w->proc, "GET", w->path, "", "", HK_STR(""), out);
    return true;
}

static void on_end(void *ctx, uint32_t i, int status, struct hk_str body)
{
    fprintf(stderr, "hekla-bench-up: the watch ended, status %d: %.*s\n", status,
            (int)HK_MIN(body.n, (size_t)400), body.s);
    _Exit(1);
}

static void take_line(struct up_watch *w, struct hk_str line)
{
    if (memmem(line.s, line.n, "k8s.io/initial-events-end", 25)) {
        w->open = true;
    } else if (w->open && w->counts(w, line)) {
        w->seen++;
        w->last = server_wall();
        w->done = w->seen >= w->want;
    }
}

static void on_piece(void *ctx, uint32_t i, struct hk_str data)
{
    struct up_watch *w = ctx;
    const char *end;

    while (data.n > 0 && (end = memchr(data.s, '\n', data.n))) {
        const size_t n = (size_t)(end - data.s) + 1;

        if (w->line.len > 0) {
            hk_buf_add(&w->line, data.s, n);
            take_line(w, hk_buf_str(&w->line));
            hk_buf_clear(&w->line);
        } else {
            take_line(w, (struct hk_str){data.s, n});
        }
        data.s += n;
        data.n -= n;
    }
    hk_buf_add(&w->line, data.s, data.n);
}

void up_watch_open(struct up_watch *w)
{
    static const struct load_ops ops = {.next = ask_watch, .answer = on_end, .piece = on_piece};

    w->load = load_new(w->b->loop, w->proc->port, 1, &ops, w);
    load_kick_all(w->load);
    if (!load_wait(w->b->loop, &w->open, WAIT_S)) {
        fprintf(stderr, "hekla-bench-up: the watch never began\n");
        _Exit(1);
    }
}

void up_watch_wait(struct up_watch *w)
{
    if (!load_wait(w->b->loop, &w->done, WAIT_S)) {
        fprintf(stderr, "hekla-bench-up: %llu of %llu in %d s\n", (unsigned long long)w->seen,
                (unsigned long long)w->want, WAIT_S);
        _Exit(1);
    }
}

void up_watch_close(struct up_watch *w)
{
    load_free(w->load);
    hk_buf_fini(&w->line);
}

bool up_is_added(struct up_watch *w, struct hk_str line)
{
    return hk_str_starts(line, "{\"type\":\"ADDED\"");
}

/* ---- jobs ---- */

void up_job_request(const struct server_proc *proc, const struct up_jobs *j, uint64_t number,
                    struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_addf(&body,
                "{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\",\"metadata\":{"
                "\"name\":\"%s-%llu\"},\"spec\":{\"minAvailable\":%u,\"tasks\":[{\"name\":\"w\","
                "\"replicas\":%u,\"template\":{\"spec\":{\"restartPolicy\":\"Never\","
                "\"containers\":[{\"name\":\"main\",\"image\":\"none\",\"command\":[\"/bin/true\"],"
                "\"resources\":{\"requests\":{\"cpu\":\"%s\"}}}]}}}]}}",
                j->prefix, (unsigned long long)number, j->gang, j->gang, j->cpu);
    server_request(proc, "POST", UP_JOBS, "", "application/json", hk_buf_str(&body), out);
}

static void ask_job(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    const struct up_jobs *j = p->ctx;

    up_job_request(p->proc, j, j->first + k, out);
}

void up_jobs_post(struct server_bench *b, const struct server_proc *proc, struct up_jobs *j,
                  uint32_t clients, struct server_phase *ret)
{
    *ret = (struct server_phase){.b = b,
                                 .proc = proc,
                                 .clients = HK_MIN(clients, j->n),
                                 .count = j->n,
                                 .want = 201,
                                 .request = ask_job,
                                 .ctx = j};
    server_phase_run(ret);
    j->first += j->n;
}

/* ---- P4: a Job with gangs, until all its pods have nodes ---- */

struct p4 {
    double *rate, *cpu, *writes, *per_commit, *rss;
    uint32_t n;
};

void up_start_simulated(struct server_bench *b, const char *id, struct server_proc *p,
                        uint32_t nodes)
{
    char dir[256], count[16];
    const char *const options[] = {
        "--no-node",  "--sim-nodes", count,         "--sim-cpu",        "256",
        "--sim-pods", "1000",        "--sim-model", "duration=forever", NULL};
    struct up_watch w = {.b = b,
                         .proc = p,
                         .path = "/api/v1/nodes?watch=1&resourceVersion=0&sendInitialEvents=true&"
                                 "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
                         .counts = up_is_added,
                         .open = true,
                         .want = nodes};

    snprintf(count, sizeof(count), "%u", nodes);
    server_case_dir(b, id, dir);
    server_proc_up(p, b->hekla, dir, options);
    up_watch_open(&w);
    up_watch_wait(&w);
    up_watch_close(&w);
}

static void one_p4(struct server_bench *b, const char *id, uint32_t gang, uint32_t pods,
                   struct p4 *r)
{
    struct up_jobs jobs = {.prefix = "j", .gang = gang, .n = pods / gang, .cpu = "100m"};
    struct server_proc proc = {0};
    struct server_phase posted;
    struct up_watch w = {.b = b,
                         .proc = &proc,
                         .path = UP_BOUND_PODS,
                         .counts = up_is_added,
                         .want = (uint64_t)jobs.n * gang};
    double commits, writes, cpu;

    up_start_simulated(b, id, &proc, b->quick ? QUICK_NODES : NODES);
    up_watch_open(&w);
    commits = server_metric(b, &proc, "hekla_store_commits_total");
    writes = server_metric(b, &proc, "hekla_store_revision");
    cpu = server_proc_cpu(&proc);
    up_jobs_post(b, &proc, &jobs, CLIENTS, &posted);
    up_watch_wait(&w);
    r->rate[r->n] = (double)w.want / (w.last - posted.began);
    r->cpu[r->n] = (server_proc_cpu(&proc) - cpu) / (double)w.want * 1e6;
    writes = server_metric(b, &proc, "hekla_store_revision") - writes;
    commits = server_metric(b, &proc, "hekla_store_commits_total") - commits;
    r->writes[r->n] = writes / (double)w.want;
    r->per_commit[r->n] = writes / commits;
    r->rss[r->n++] = report_rss_mb(proc.pid);
    server_phase_fini(&posted);
    up_watch_close(&w);
    server_proc_stop(&proc);
    server_remove_tree(proc.dir);
}

/* The gang's size is behind the dash. */
static void case_p4(struct server_bench *b, const char *id)
{
    const uint32_t gang = (uint32_t)strtoul(strchr(id, '-') + 1, NULL, 10);
    const uint32_t pods = b->quick ? HK_MAX(200, gang) : gang == 1 ? 10000 : 20000;
    double v[5][32];
    struct p4 r = {v[0], v[1], v[2], v[3], v[4], 0};

    for (uint32_t k = 0; k < b->runs; k++) {
        one_p4(b, id, gang, pods, &r);
    }
    server_report_all(b, id, "bound", "pods/s", "P4 >= 5000", r.rate, r.n);
    server_report_all(b, id, "cpu", "us/pod", NULL, r.cpu, r.n);
    server_report_all(b, id, "api writes", "per pod", NULL, r.writes, r.n);
    server_report_all(b, id, "writes", "per commit", NULL, r.per_commit, r.n);
    server_report_all(b, id, "memory", "MB", NULL, r.rss, r.n);
    server_check(b, r.writes[r.n - 1] < 5 + 10.0 / gang, id, "writes per pod are bounded",
                 r.writes[r.n - 1]);
}

const struct server_case server_cases[] = {
    {"P4-1", "jobs of one pod on simulated nodes: created -> all pods bound", case_p4},
    {"P4-8", "the same, gangs of 8", case_p4},
    {"P4-64", "the same, gangs of 64", case_p4},
    {"P4-1000", "the same, gangs of 1000", case_p4},
    {"P5-up", "jobs of one pod at a steady rate on 10,000 nodes: submitted -> bound",
     up_case_steady},
    {"P4b", "jobs of one process that ends at once: submitted -> finished", up_case_processes},
    {"P4b-start", "one such job on an idle system: submitted -> process started", up_case_start},
    {"up-idle", "cold start, memory and wakeups of a system with nothing to do", up_case_idle},
};
const uint32_t nserver_case = HK_LEN(server_cases);
