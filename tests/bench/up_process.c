// SPDX-License-Identifier: Apache-2.0
// The cases where pods are processes of this machine, and the one where nothing happens.
#include "bench/up.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 16, IDLE_S = 10, STARTS_PAUSE_US = 20000 };

static const char jobs_watch[] =
    "/apis/batch.volcano.sh/v1alpha1/jobs?watch=1&sendInitialEvents=true&"
    "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";

void up_start(struct server_bench *b, const char *id, struct server_proc *p)
{
    static const char *const options[] = {NULL};
    char dir[256];

    server_case_dir(b, id, dir);
    server_proc_up(p, b->hekla, dir, options);
}

/* ---- P4b: jobs of one process that ends at once ---- */

/* The first event in which a job has ended. */
static bool has_ended(struct up_watch *w, struct hk_str line)
{
    const char *name = memmem(line.s, line.n, "\"name\":\"j-", 10);
    uint8_t *ended = w->ctx;
    uint64_t k;

    if (!name || !memmem(line.s, line.n, "\"state\":{\"phase\":\"Completed\"", 28)) {
        return false;
    }
    k = strtoul(name + 10, NULL, 10);
    if (k >= w->want || ended[k]) {
        return false;
    }
    ended[k] = 1;
    return true;
}

static double one_round(struct server_bench *b, const struct server_proc *proc, uint32_t n,
                        double *ret_cpu, double *ret_writes)
{
    struct up_jobs jobs = {.prefix = "j", .gang = 1, .n = n, .cpu = "1m"};
    struct up_watch w = {.b = b,
                         .proc = proc,
                         .path = jobs_watch,
                         .counts = has_ended,
                         .want = n,
                         .ctx = hk_zalloc(n)};
    const double cpu = server_proc_cpu(proc);
    const double writes = server_metric(b, proc, "hekla_store_revision");
    struct server_phase posted;
    double began;

    up_watch_open(&w);
    up_jobs_post(b, proc, &jobs, CLIENTS, &posted);
    began = posted.began;
    up_watch_wait(&w);
    *ret_cpu = (server_proc_cpu(proc) - cpu) / n * 1e6;
    *ret_writes = (server_metric(b, proc, "hekla_store_revision") - writes) / n;
    server_phase_fini(&posted);
    up_watch_close(&w);
    hk_free(w.ctx);
    return n / (w.last - began);
}

/* ---- the same jobs, given to Slurm ---- */

enum { SLURM_MISSING = 77 };
#define SLURM "tests/bench/slurm.sh"

/* Jobs per second; 0: it is not there. Its daemons leave their children to whoever takes them. */
static double slurm_round(const struct server_bench *b, uint32_t n)
{
    char command[512];
    double rate = 0;
    FILE *out;
    int status;

    if (access(SLURM, X_OK) < 0) {
        return 0;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    snprintf(command, sizeof(command), SLURM " %s/slurm %u %d", b->dir, n, CLIENTS);
    out = popen(command, "re");
    hk_assert(out);
    if (fscanf(out, "%lf", &rate) != 1) {
        rate = 0;
    }
    status = pclose(out);
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    if (rate == 0 && WEXITSTATUS(status) == SLURM_MISSING) {
        printf("# no Slurm to compare with: apt-get install slurmctld slurmd slurm-client munge\n");
    }
    return rate;
}

/* With fewer jobs: it is slower. */
static void compare(struct server_bench *b, const char *id, const double *ours)
{
    double rate[32], ratio[32];

    for (uint32_t k = 0; k < b->runs; k++) {
        rate[k] = slurm_round(b, 500);
        if (rate[k] == 0) {
            return;
        }
        ratio[k] = ours[k] / rate[k];
    }
    server_report_all(b, id, "slurm", "jobs/s", NULL, rate, b->runs);
    server_report_all(b, id, "of slurm's rate", "times", NULL, ratio, b->runs);
}

void up_case_processes(struct server_bench *b, const char *id)
{
    const uint32_t n = b->quick ? 40 : 3000;
    double rate[32], cpu[32], writes[32], rss[32];

    for (uint32_t k = 0; k < b->runs; k++) {
        struct server_proc proc = {0};

        up_start(b, id, &proc);
        rate[k] = one_round(b, &proc, n, &cpu[k], &writes[k]);
        rss[k] = report_rss_mb(proc.pid);
        server_proc_stop(&proc);
        server_remove_tree(proc.dir);
    }
    server_report_all(b, id, "finished", "jobs/s", "P4b >= 500", rate, b->runs);
    if (!b->quick) {
        compare(b, id, rate);
    }
    server_report_all(b, id, "cpu", "us/job", NULL, cpu, b->runs);
    server_report_all(b, id, "api writes", "per job", NULL, writes, b->runs);
    server_report_all(b, id, "memory", "MB", NULL, rss, b->runs);
    server_check(b, writes[b->runs - 1] < 20, id, "writes per job are bounded",
                 writes[b->runs - 1]);
}

/* ---- from submission to the start of the process, with nothing else to do ---- */

static double wall_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void ask_start(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    const char *file = p->ctx;

    hk_buf_addf(&body,
                "{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\",\"metadata\":{"
                "\"generateName\":\"start-\"},\"spec\":{\"minAvailable\":1,\"tasks\":[{\"name\":"
                "\"w\",\"replicas\":1,\"template\":{\"spec\":{\"restartPolicy\":\"Never\","
                "\"containers\":[{\"name\":\"main\",\"image\":\"none\",\"command\":[\"/bin/sh\","
                "\"-c\",\"exec date +%%s.%%N >%s\"]}]}}}]}}",
                file);
    server_request(p->proc, "POST", UP_JOBS, "", "application/json", hk_buf_str(&body), out);
}

/* When the process says that it began: the line is written at once. */
static double read_start(const char *file)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (int tries = 0; tries < 10000 && text.len == 0; tries++) {
        usleep(1000);
        if (hk_read_file(file, 64, &text, NULL) < 0) {
            hk_buf_clear(&text);
        }
    }
    if (text.len == 0) {
        fprintf(stderr, "hekla-bench-up: the process never started\n");
        _Exit(1);
    }
    unlink(file);
    return strtod(text.data, NULL);
}

void up_case_start(struct server_bench *b, const char *id)
{
    const uint32_t n = b->quick ? 5 : 100;
    struct server_proc proc = {0};
    double *ms = hk_zalloc_array(n, sizeof(*ms));
    char file[300];

    up_start(b, id, &proc);
    snprintf(file, sizeof(file), "%s.started", proc.dir);
    for (uint32_t k = 0; k < n; k++) {
        double began;
        struct server_phase p = {.b = b,
                                 .proc = &proc,
                                 .clients = 1,
                                 .count = 1,
                                 .want = 201,
                                 .request = ask_start,
                                 .ctx = file};

        server_phase_run(&p);
        began = wall_now() - (server_wall() - p.began); /* the connection is open by then */
        server_phase_fini(&p);
        ms[k] = (read_start(file) - began) * 1e3;
        usleep(STARTS_PAUSE_US); /* until it is idle again */
    }
    server_report(b, id, "submit -> started, p50", "ms", "P4b < 20", report_percentile(ms, n, 0.5));
    server_report(b, id, "submit -> started, p99", "ms", NULL, report_percentile(ms, n, 0.99));
    server_proc_stop(&proc);
    server_remove_tree(proc.dir);
    hk_free(ms);
}

/* ---- nothing ---- */

void up_case_idle(struct server_bench *b, const char *id)
{
    const unsigned seconds = b->quick ? 2 : IDLE_S;
    double cold[32], rss[32], sleeps[32], cpu[32];

    for (uint32_t k = 0; k < b->runs; k++) {
        struct server_proc proc = {0};
        const double began = server_wall();

        up_start(b, id, &proc);
        cold[k] = (server_wall() - began) * 1e3;
        server_await_rest(b, &proc);
        rss[k] = report_rss_mb(proc.pid);
        cpu[k] = server_proc_cpu(&proc);
        sleeps[k] = (double)server_proc_sleeps(&proc);
        sleep(seconds);
        cpu[k] = (server_proc_cpu(&proc) - cpu[k]) / seconds * 100;
        sleeps[k] = ((double)server_proc_sleeps(&proc) - sleeps[k]) / seconds;
        server_check(b, sleeps[k] < 5, id, "an idle system sleeps, wakeups per second", sleeps[k]);
        server_proc_stop(&proc);
        server_remove_tree(proc.dir);
    }
    server_report_all(b, id, "cold start", "ms", NULL, cold, b->runs);
    server_report_all(b, id, "memory", "MB", "< 30", rss, b->runs);
    server_report_all(b, id, "processor", "%", NULL, cpu, b->runs);
    server_report_all(b, id, "wakeups", "1/s", NULL, sleeps, b->runs);
}
