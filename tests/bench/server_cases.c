// SPDX-License-Identifier: Apache-2.0
// The cases about requests: writes beside etcd, reads, memory, restart, and a long mix. Those about
// watches are in server_watch.c.
#include "bench/server.h"

#include "base/arena.h"

#include <stdio.h>

enum { MANY = 64 };

static const char pods_path[] = "/api/v1/namespaces/default/pods";

/* ---- creates ---- */

struct creates {
    double *ours, *theirs, *ratio, *p50, *p99, *per_commit, *cpu, *their_cpu, *self;
    uint32_t n;
};

static void one_round(struct server_bench *b, struct server_proc *hekla,
                      const struct server_proc *etcd, uint32_t clients, struct creates *c)
{
    const double seconds = b->quick ? 1 : 4;
    const uint32_t k = c->n++;
    struct server_phase p;

    const double commits = server_metric(b, hekla, "hekla_store_commits_total");
    server_phase_pods(b, hekla, clients, 0, seconds, &p);
    const double took = server_metric(b, hekla, "hekla_store_commits_total") - commits;
    c->ours[k] = server_phase_rate(&p);
    c->p50[k] = report_percentile(p.ms.at, p.ms.len, 0.5);
    c->p99[k] = report_percentile(p.ms.at, p.ms.len, 0.99);
    c->per_commit[k] = (double)p.answered / took;
    c->cpu[k] = p.server_cpu / (double)p.answered * 1e6;
    c->self[k] = p.self_cpu / (p.ended - p.began) * 100;
    server_phase_fini(&p);
    if (etcd->pid > 0) {
        server_phase_puts(b, etcd, clients, seconds, &p);
        c->theirs[k] = server_phase_rate(&p);
        c->ratio[k] = c->ours[k] / c->theirs[k];
        c->their_cpu[k] = p.server_cpu / (double)p.answered * 1e6;
        server_phase_fini(&p);
    }
}

static void report_creates(struct server_bench *b, const char *id, uint32_t clients,
                           struct creates *c, bool etcd)
{
    char name[32];

    snprintf(name, sizeof(name), "%s-%u", id, clients);
    server_report_all(b, name, "pods", "1/s", NULL, c->ours, c->n);
    if (etcd) {
        server_report_all(b, name, "etcd puts", "1/s", NULL, c->theirs, c->n);
        server_report_all(b, name, "of etcd's rate", "times", clients == MANY ? "C1 >= 1" : NULL,
                          c->ratio, c->n);
        server_report_all(b, name, "etcd cpu", "us/put", NULL, c->their_cpu, c->n);
    }
    server_report_all(b, name, "p50", "ms", NULL, c->p50, c->n);
    server_report_all(b, name, "p99", "ms", NULL, c->p99, c->n);
    server_report_all(b, name, "per commit", "writes", NULL, c->per_commit, c->n);
    server_report_all(b, name, "server cpu", "us/write", NULL, c->cpu, c->n);
    server_report_all(b, name, "generator", "% of a core", NULL, c->self, c->n);
    if (clients == MANY) {
        server_check(b, c->per_commit[0] > 1, name, "writes share commits", c->per_commit[0]);
    }
}

/* Ours and theirs take turns, so that both meet the same weather on a shared machine. */
static void measure_creates(struct server_bench *b, const char *id)
{
    static const uint32_t clients[] = {1, 16, MANY};
    struct server_proc hekla = {0}, etcd = {0};
    double room[9][32];
    char dir[256];

    server_start(b, id, &hekla);
    server_case_dir(b, "etcd", dir);
    if (!b->quick && !server_proc_etcd(&etcd, dir, &hekla)) {
        printf("%-18s etcd is not installed (Debian: etcd-server): no comparison\n", id);
    }
    for (uint32_t k = b->quick ? HK_LEN(clients) - 1 : 0; k < HK_LEN(clients); k++) {
        struct creates c = {room[0], room[1], room[2], room[3], room[4],
                            room[5], room[6], room[7], room[8], 0};
        for (uint32_t run = 0; run < HK_MIN(b->runs, (uint32_t)HK_LEN(room[0])); run++) {
            one_round(b, &hekla, &etcd, clients[k], &c);
        }
        report_creates(b, id, clients[k], &c, etcd.pid > 0);
    }
    server_proc_kill(&etcd);
    server_proc_stop(&hekla);
    server_remove_tree(dir);
}

/* ---- reads ---- */

struct reads {
    uint64_t pods;
    const char *path, *media; /* of a list */
    bool chunked;
    char cont[MANY][512]; /* per client: where its list goes on */
};

static void ask_one(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    const struct reads *r = p->ctx;
    char path[96];

    snprintf(path, sizeof(path), "%s/pod-%08llu", pods_path,
             (unsigned long long)(k * 7919 % r->pods));
    server_request(p->proc, "GET", path, "", "", HK_STR(""), out);
}

static void ask_list(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    const struct reads *r = p->ctx;
    char path[768];

    snprintf(path, sizeof(path), "%s%s%s%s", pods_path, r->path,
             r->cont[client][0] ? "&continue=" : "", r->cont[client]);
    server_request(p->proc, "GET", path, r->media, "", HK_STR(""), out);
}

/* The token stands near the beginning. */
static void look_list(struct server_phase *p, uint32_t client, struct hk_str body)
{
    struct reads *r = p->ctx;
    const char *at = memmem(body.s, HK_MIN(body.n, (size_t)8192), "\"continue\":\"", 12);

    r->cont[client][0] = '\0';
    if (at && r->chunked) {
        hk_assert(sscanf(at + 12, "%511[^\"]", r->cont[client]) == 1);
    }
}

static void measure_list(struct server_bench *b, const char *id, const struct server_proc *proc,
                         struct reads *r, uint32_t clients, uint32_t items)
{
    struct server_phase p = {.b = b,
                             .proc = proc,
                             .clients = clients,
                             .seconds = b->quick ? 0.5 : 4,
                             .want = 200,
                             .request = ask_list,
                             .look = look_list,
                             .ctx = r};

    memset(r->cont, 0, sizeof(r->cont));
    server_phase_run(&p);
    server_report(b, id, "lists", "1/s", NULL, server_phase_rate(&p));
    server_report(b, id, "objects", "1/s", NULL, server_phase_rate(&p) * items);
    server_report(b, id, "bytes", "MB/s", NULL, (double)p.bytes / 1e6 / (p.ended - p.began));
    server_report(b, id, "server cpu", "us/object", NULL,
                  p.server_cpu / ((double)p.answered * items) * 1e6);
    server_phase_fini(&p);
}

static void measure_gets(struct server_bench *b, const char *id, const struct server_proc *proc,
                         struct reads *r, uint32_t clients)
{
    struct server_phase p = {.b = b,
                             .proc = proc,
                             .clients = clients,
                             .seconds = b->quick ? 0.5 : 4,
                             .want = 200,
                             .request = ask_one,
                             .ctx = r};
    char name[32];

    server_phase_run(&p);
    snprintf(name, sizeof(name), "%s-get-%u", id, clients);
    server_report(b, name, "gets", "1/s", NULL, server_phase_rate(&p));
    server_report(b, name, "p50", "ms", NULL, report_percentile(p.ms.at, p.ms.len, 0.5));
    server_report(b, name, "p99", "ms", NULL, report_percentile(p.ms.at, p.ms.len, 0.99));
    server_report(b, name, "server cpu", "us/get", NULL, p.server_cpu / (double)p.answered * 1e6);
    server_report(b, name, "generator", "% of a core", NULL,
                  p.self_cpu / (p.ended - p.began) * 100);
    server_phase_fini(&p);
}

static void measure_reads(struct server_bench *b, const char *id)
{
    static const char table[] = ";as=Table;v=v1;g=meta.k8s.io";
    struct server_proc proc = {0};
    struct server_phase p;
    struct reads r = {.pods = b->quick ? 1000 : 10000, .media = ""};
    const uint32_t all = (uint32_t)r.pods;

    b->npods = 0;
    server_start(b, id, &proc);
    server_phase_pods(b, &proc, MANY, r.pods, 0, &p);
    server_phase_fini(&p);
    measure_gets(b, id, &proc, &r, 1);
    measure_gets(b, id, &proc, &r, MANY);
    r.path = "?limit=500";
    r.chunked = true;
    measure_list(b, "list-chunks-of-500", &proc, &r, 4, 500);
    r.chunked = false;
    r.path = "";
    measure_list(b, "list-whole", &proc, &r, 2, all);
    r.path = "?resourceVersion=0";
    measure_list(b, "list-rv-0", &proc, &r, 2, all);
    r.path = "?limit=500";
    r.media = table;
    r.chunked = true;
    measure_list(b, "table-chunks-of-500", &proc, &r, 4, 500);
    server_proc_stop(&proc);
}

/* ---- memory and restart ---- */

static void measure_memory(struct server_bench *b, const char *id)
{
    const uint64_t pods = b->quick ? 2000 : 100000, more = pods / 2;
    struct server_proc proc = {0};
    struct server_phase p;

    server_start(b, id, &proc);
    const double empty = report_rss_mb(proc.pid);
    server_phase_pods(b, &proc, MANY, pods, 0, &p);
    server_phase_fini(&p);
    const double full = report_rss_mb(proc.pid);
    server_report(b, id, "empty", "MB", NULL, empty);
    server_report(b, id, b->quick ? "2,000 pods" : "100,000 pods", "MB", NULL, full);
    const double each = (full - empty) * 1024 * 1024 / (double)pods;
    server_report(b, id, "per pod", "bytes", NULL, each);
    if (!b->quick) {
        server_check(b, each < 2 * SERVER_POD_BYTES, id, "a pod takes less than twice its text",
                     each);
    }

    server_phase_pods(b, &proc, MANY, more, 0, &p);
    server_phase_fini(&p);
    server_proc_stop(&proc);
    const double began = server_wall();
    server_proc_hekla(&proc, b->hekla, proc.dir);
    server_report(b, "reopen", b->quick ? "3,000 pods" : "150,000 pods", "s", NULL,
                  server_wall() - began);
    server_report(b, "reopen", "cpu", "s", NULL, server_proc_cpu(&proc));
    server_report(b, "reopen", "memory", "MB", NULL, report_rss_mb(proc.pid));
    const double found = server_metric(b, &proc, "hekla_store_objects{resource=\"pods\"}");
    server_check(b, found == (double)(pods + more), "reopen", "every pod is there", found);
    server_proc_stop(&proc);
}

/* ---- a long mix ---- */

/* Each client leads pods through their lives one after the other. */
static void ask_mix(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    enum { STEPS = 8 };
    uint64_t *turn = p->ctx;
    const uint64_t step = turn[client]++;
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    char name[48], path[128];

    snprintf(name, sizeof(name), "mix-%02u-%06llu", client % 100,
             (unsigned long long)(step / STEPS % 1000000));
    snprintf(path, sizeof(path), "%s/%s", pods_path, name);
    switch (step % STEPS) {
    case 0:
        server_pod(p->b, name, &body);
        server_request(p->proc, "POST", pods_path, "", "application/json", hk_buf_str(&body), out);
        return;
    case 2:
        server_request(p->proc, "GET", "/api/v1/namespaces/default/pods?limit=10", "", "",
                       HK_STR(""), out);
        return;
    case 3:
        server_request(p->proc, "PATCH", path, "", "application/merge-patch+json",
                       HK_STR("{\"metadata\":{\"labels\":{\"tier\":\"done\"}}}"), out);
        return;
    case 5:
        server_request(p->proc, "PATCH", path, "", "application/strategic-merge-patch+json",
                       HK_STR("{\"metadata\":{\"annotations\":{\"seen\":\"yes\"}}}"), out);
        return;
    case 6:
        server_request(p->proc, "GET", "/api/v1/namespaces/default/pods?limit=10",
                       ";as=Table;v=v1;g=meta.k8s.io", "", HK_STR(""), out);
        return;
    case 7:
        server_request(p->proc, "DELETE", path, "", "", HK_STR(""), out);
        return;
    default:
        server_request(p->proc, "GET", path, "", "", HK_STR(""), out);
    }
}

/* Memory grows until the history is full, which 20 % of the requests see to. */
static void measure_flat(struct server_bench *b, const char *id)
{
    enum { PARTS = 10, SETTLED = 1 };
    const uint64_t count = b->quick ? 10000 : 1000000;
    struct server_proc proc = {0};
    uint64_t turn[MANY] = {0};
    double rss[PARTS], rate[PARTS];

    server_start(b, id, &proc);
    for (uint32_t k = 0; k < PARTS; k++) {
        struct server_phase p = {.b = b,
                                 .proc = &proc,
                                 .clients = MANY,
                                 .count = count / PARTS,
                                 .request = ask_mix,
                                 .ctx = turn};
        server_phase_run(&p);
        rate[k] = server_phase_rate(&p);
        rss[k] = report_rss_mb(proc.pid);
        printf("%s%-18s %llu requests: %.1f MB, %.0f/s\n", b->quick ? "# " : "", id,
               (unsigned long long)(count / PARTS * (k + 1)), rss[k], rate[k]);
        fflush(stdout);
        server_phase_fini(&p);
    }
    const double refused = server_metric(b, &proc, "hekla_apiserver_requests_total{code=\"4xx\"}") +
                           server_metric(b, &proc, "hekla_apiserver_requests_total{code=\"5xx\"}");
    const double growth = rss[PARTS - 1] / rss[SETTLED];
    server_report_all(b, id, "requests", "1/s", NULL, rate, PARTS);
    server_report(b, id, "memory", "MB", NULL, rss[PARTS - 1]);
    server_report(b, id, "growth since 20 %", "times", b->quick ? NULL : "F1 <= 1.1", growth);
    server_check(b, refused == 0, id, "nothing was refused", refused);
    if (!b->quick) {
        server_check(b, growth < 1.1, id, "memory is flat once the history is full", growth);
    } else if (HK_ARENA_GAP == 0) { /* the sanitizer keeps what was freed */
        server_check(b, rss[PARTS - 1] < 256, id, "memory stays below 256 MB", rss[PARTS - 1]);
    }
    server_proc_stop(&proc);
}

const struct server_case server_cases[] = {
    {"creates", "durable creates of 4 KiB pods by 1, 16 and 64 clients, beside etcd",
     measure_creates},
    {"reads", "GET and LIST of 10,000 4 KiB pods", measure_reads},
    {"fanout", "1,000 events to 2,000 watchers", server_case_fanout},
    {"stalled", "the same beside 50 watchers that do not read", server_case_stalled},
    {"memory", "memory with 100,000 pods; reopening 150,000", measure_memory},
    {"idle", "processor time of an idle server, alone and with 1,000 watchers", server_case_idle},
    {"flat", "memory over a million requests", measure_flat},
};
const uint32_t nserver_case = HK_LEN(server_cases);
