// SPDX-License-Identifier: Apache-2.0
// hekla-bench-controllers: how fast Jobs become pods, and what that costs the API. The controllers
// run in this process on a durable store with admission, as the embedded mode has them, only
// without HTTP; a stand-in for the scheduler lets every PodGroup into its queue as soon as it
// appears. All clients reach the store through ports that count, so that each write has an author:
// the counts fail the program, times never do.
//
//   hekla-bench-controllers [--only ID]... [--runs N] [--out FILE] [--dir DIR]
//                                     in full; writes build/bench-controllers.json
//   hekla-bench-controllers --quick   small sizes, one TAP point per counter
//   hekla-bench-controllers --list    what there is
//
// The store is below DIR (default /var/tmp), which should be on a real disk: commits are synced.
#include "apiserver/bootstrap.h"
#include "base/clock.h"
#include "base/vec.h"
#include "bench/report.h"
#include "controllers/ctl.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_RUNS = 3,
    MAX_ONLY = 8,
    MAX_RUNS = 32,
    POLL_MAX = 4096,
    SUBMIT_WINDOW = 512, /* requests a submitting client has under way */
    /* One write for the phase Pending, one when all pods are there to be counted. */
    STATUS_WRITES_PENDING = 2,
    JOBS_CHECKS = 8, /* TAP points of a case */
    RESTART_CHECKS = 2,
};

#define NS "bench"

static const struct bench_case {
    const char *id, *about;
    uint32_t jobs, pods;             /* of each job */
    uint32_t quick_jobs, quick_pods; /* with --quick */
    bool restart;
} cases[] = {
    {"jobs-10000x1", "10,000 jobs of one pod", 10000, 1, 40, 1, false},
    {"jobs-500x20", "500 jobs of 20 pods", 500, 20, 10, 8, false},
    {"jobs-20x500", "20 jobs of 500 pods", 20, 500, 3, 40, false},
    {"jobs-1x10000", "one job of 10,000 pods", 1, 10000, 1, 600, false},
    {"restart", "the controllers begin anew over 20,000 jobs with 100,000 running pods", 20000, 5,
     20, 5, true},
};

struct options {
    bool quick, list;
    int64_t runs;
    const char *out, *dir;
    const char *only[MAX_ONLY];
    uint32_t nonly;
};

struct controllers_bench {
    const struct options *o;
    char dir[256];
    int out; /* where results go: a case runs in a process of its own, for its memory's sake */
    uint32_t points;
    bool failed;
};

/* ---- a port that counts ---- */

enum { OF_POD, OF_GROUP, OF_JOB, OF_EVENT, OF_OTHER, NOF };

struct tally {
    uint64_t create[NOF], status[NOF], other[NOF];
};

struct counting_port {
    struct port port;
    struct port *to;
    struct tally n;
};

static unsigned of_kind(const struct api_kind *kind)
{
    switch (kind->id) {
    case API_POD:
        return OF_POD;
    case API_PODGROUP:
        return OF_GROUP;
    case API_JOB:
        return OF_JOB;
    case API_EVENT:
        return OF_EVENT;
    default:
        return OF_OTHER;
    }
}

static void count(struct tally *n, const struct port_request *req)
{
    const unsigned of = of_kind(req->kind);

    if (req->verb == PORT_CREATE && !req->subresource) {
        n->create[of]++;
    } else if (req->verb >= PORT_CREATE && req->subresource &&
               strcmp(req->subresource, "status") == 0) {
        n->status[of]++;
    } else if (req->verb >= PORT_CREATE) {
        n->other[of]++;
    }
}

static uint64_t tally_all(const struct tally *n)
{
    uint64_t sum = 0;

    for (unsigned k = 0; k < NOF; k++) {
        sum += n->create[k] + n->status[k] + n->other[k];
    }
    return sum;
}

static uint64_t counting_submit(struct port *p, const struct port_request *req,
                                struct port_sink sink)
{
    struct counting_port *c = (struct counting_port *)p;

    count(&c->n, req);
    return port_submit(c->to, req, sink);
}

static void counting_cancel(struct port *p, uint64_t call)
{
    port_cancel(((struct counting_port *)p)->to, call);
}

/* The world polls the port underneath, for everybody. */
static uint32_t counting_poll(struct port *p, uint32_t max)
{
    return 0;
}

static int counting_fd(struct port *p)
{
    return -1;
}

static const struct port_ops counting_ops = {
    .name = "counting",
    .submit = counting_submit,
    .cancel = counting_cancel,
    .poll = counting_poll,
    .fd = counting_fd,
};

/* ---- the world ---- */

struct world {
    struct hk_clock *clock;
    struct hk_rand rand;
    char dir[320];
    struct store *store;
    struct rest *rest;
    struct port *port;
    struct counting_port by_controllers, by_others;
    struct manager *mgr;
    uint64_t watch;    /* of the stand-in for the scheduler */
    uint32_t inflight; /* calls of the others */
    uint32_t refused;
    uint32_t pods_res;
    struct hk_arena mem; /* bodies of the others */
    struct json job, let_in, running;
};

static void must(int rc, const struct hk_err *err)
{
    if (rc < 0) {
        fprintf(stderr, "hekla-bench-controllers: %s\n", err->text);
        abort();
    }
}

static struct json parse_text(struct world *w, const char *text)
{
    struct hk_err err = {0};
    struct json doc;

    must(json_parse(hk_str(hk_arena_printf(&w->mem, "%s", text)), 0, &w->mem, &doc, &err), &err);
    return doc;
}

static void on_answer(void *ctx, const struct port_msg *m)
{
    struct world *w = ctx;

    w->inflight--;
    w->refused += m->rc < 0;
    if (m->rc < 0) {
        fprintf(stderr, "# refused: %s\n", m->err->text);
    }
}

static void submit(struct world *w, const struct port_request *req)
{
    w->inflight++;
    port_submit(&w->by_others.port, req, (struct port_sink){on_answer, w});
}

static void patch(struct world *w, enum api_kind_id kind, struct hk_str name,
                  const char *subresource, const struct json *body)
{
    submit(w, &(struct port_request){.verb = PORT_PATCH,
                                     .kind = api_kind(kind),
                                     .ns = HK_STR(NS),
                                     .name = name,
                                     .subresource = subresource,
                                     .patch = PORT_PATCH_MERGE,
                                     .body = body,
                                     .text_only = true});
}

/* The stand-in for the scheduler. PodGroups have no status subresource. */
static void on_group(void *ctx, const struct port_msg *m)
{
    struct world *w = ctx;

    if (m->type == PORT_ADDED) {
        patch(w, API_PODGROUP, m->obj->name, NULL, &w->let_in);
    }
}

static void scheduler_start(struct world *w)
{
    const struct port_request req = {
        .verb = PORT_WATCH, .kind = api_kind(API_PODGROUP), .text_only = true};

    w->let_in = parse_text(w, "{\"status\":{\"phase\":\"Inqueue\"}}");
    w->watch = port_submit(w->port, &req, (struct port_sink){on_group, w});
}

/* All there are, as in the embedded mode. */
static void controllers_start(struct world *w)
{
    uint32_t n, nworkload;
    const struct ctl_type *const *types = manager_types(&n);
    const struct ctl_type *const *workloads = manager_workload_types(&nworkload);
    HK_VEC(const struct ctl_type *) all = {0};

    for (uint32_t i = 0; i < n + nworkload; i++) {
        hk_vec_push(&all, i < n ? types[i] : workloads[i - n]);
    }
    w->mgr = manager_new(&(struct manager_opts){.port = &w->by_controllers.port,
                                                .clock = w->clock,
                                                .rand = &w->rand,
                                                .types = all.at,
                                                .ntype = all.len,
                                                .shared_port = true});
    hk_vec_fini(&all);
}

/* One turn of the loop; false when there was nothing to do. */
static bool turn(struct world *w)
{
    const uint32_t n = port_poll(w->port, POLL_MAX);
    const int64_t next_ns = w->mgr ? manager_run(w->mgr) : INT64_MAX;

    if (rest_next_ns(w->rest) <= w->clock->mono_ns(w->clock)) {
        rest_tick(w->rest);
    }
    return n > 0 || next_ns == 0;
}

static void wait_for_news(struct world *w)
{
    struct pollfd p = {.fd = port_fd(w->port), .events = POLLIN};

    (void)poll(&p, 1, 1000);
}

/* A turn, or a pause where there is nothing to do; false when nobody has anything under way. */
static bool go_on(struct world *w)
{
    if (turn(w)) {
        return true;
    }
    if (w->inflight == 0 && (!w->mgr || (manager_idle(w->mgr) && !manager_rests(w->mgr)))) {
        return false;
    }
    wait_for_news(w);
    return true;
}

static void settle(struct world *w)
{
    while (go_on(w)) {
    }
}

static void world_open(struct world *w, const struct controllers_bench *b, const char *id)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct hk_err err = {0};
    struct json ns;

    *w = (struct world){.clock = hk_clock_system()};
    hk_rand_seed(&w->rand, 7);
    snprintf(w->dir, sizeof(w->dir), "%s/%s", b->dir, id);
    hk_buf_addf(&path, "%s.db", w->dir);
    must(store_open(&(struct store_opts){.path = path.data}, &w->store, &err), &err);
    w->rest = rest_new(&(struct rest_opts){.store = w->store, .clock = w->clock, .rand = &w->rand});
    w->port = rest_port(w->rest);
    must(bootstrap_crds(w->rest, &err), &err);
    must(bootstrap_objects(w->rest, &err), &err);
    w->by_controllers = (struct counting_port){.port.ops = &counting_ops, .to = w->port};
    w->by_others = (struct counting_port){.port.ops = &counting_ops, .to = w->port};
    w->pods_res = store_res(w->store, HK_STR(""), HK_STR("pods"));
    ns = parse_text(w, "{\"metadata\":{\"name\":\"" NS "\"}}");
    submit(w, &(struct port_request){
                  .verb = PORT_CREATE, .kind = api_kind(API_NAMESPACE), .body = &ns});
    scheduler_start(w);
    controllers_start(w);
    settle(w);
    w->by_controllers.n = w->by_others.n = (struct tally){0};
}

static void world_close(struct world *w)
{
    static const char *const tails[] = {"", "-wal", "-shm", "-journal"};

    manager_free(w->mgr);
    port_cancel(w->port, w->watch);
    rest_free(w->rest);
    store_close(w->store);
    hk_arena_fini(&w->mem);
    for (size_t i = 0; i < HK_LEN(tails); i++) {
        char path[352];

        snprintf(path, sizeof(path), "%s.db%s", w->dir, tails[i]);
        (void)unlink(path);
    }
}

/* ---- jobs ---- */

/* A usual training job; only the names differ. */
static void prepare_jobs(struct world *w, uint32_t pods)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(
        &text,
        "{\"metadata\":{\"namespace\":\"" NS "\",\"labels\":{\"team\":"
        "\"research\"}},\"spec\":{\"minAvailable\":%u,\"schedulerName\":\"volcano\","
        "\"queue\":\"default\",\"policies\":[{\"event\":\"PodEvicted\",\"action\":"
        "\"RestartJob\"}],\"tasks\":[{\"name\":\"worker\",\"replicas\":%u,\"policies\":[{"
        "\"event\":\"TaskCompleted\",\"action\":\"CompleteJob\"}],\"template\":{\"metadata\":"
        "{\"labels\":{\"app\":\"train\"}},\"spec\":{\"restartPolicy\":\"OnFailure\","
        "\"containers\":[{\"name\":\"main\",\"image\":\"registry.example/train:v1\","
        "\"command\":[\"python\",\"train.py\",\"--epochs\",\"10\"],\"env\":[{\"name\":"
        "\"DATA\",\"value\":\"/data\"}],\"resources\":{\"requests\":{\"cpu\":\"500m\","
        "\"memory\":\"512Mi\"},\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}},"
        "\"volumeMounts\":[{\"name\":\"scratch\",\"mountPath\":\"/data\"}]}],\"volumes\":[{"
        "\"name\":\"scratch\",\"emptyDir\":{}}]}}}]}}",
        pods, pods);
    w->job = parse_text(w, text.data);
}

static void submit_job(struct world *w, uint32_t k)
{
    struct json *meta = (struct json *)json_get(&w->job, "metadata");
    char name[32];

    snprintf(name, sizeof(name), "train-%u", k);
    json_put(meta, &w->mem, HK_STR("name"), json_make_str(hk_str(name)));
    submit(w, &(struct port_request){.verb = PORT_CREATE,
                                     .kind = api_kind(API_JOB),
                                     .ns = HK_STR(NS),
                                     .body = &w->job,
                                     .text_only = true});
}

/* Creates the jobs and runs until all their pods exist. */
static void make_jobs(struct world *w, uint32_t jobs, uint32_t pods)
{
    uint32_t sent = 0;

    do {
        while (sent < jobs && w->inflight < SUBMIT_WINDOW) {
            submit_job(w, sent++);
        }
    } while (go_on(w) && store_count(w->store, w->pods_res) < jobs * pods);
}

/* ---- a node that runs everything ---- */

struct names {
    struct hk_arena mem;
    HK_VEC(struct hk_str) at;
};

static bool add_name(void *ctx, const struct store_obj *o)
{
    struct names *n = ctx;

    hk_vec_push(&n->at, hk_arena_str(&n->mem, o->name));
    return true;
}

static void run_pods(struct world *w)
{
    struct names n = {0};

    w->running = parse_text(
        w, "{\"status\":{\"phase\":\"Running\",\"startTime\":\"2026-01-02T03:04:05Z\",\"podIP\":"
           "\"10.0.0.1\",\"containerStatuses\":[{\"name\":\"main\",\"ready\":true,\"restartCount\":"
           "0,\"image\":\"registry.example/train:v1\",\"imageID\":\"sha256:0\",\"state\":{"
           "\"running\":{\"startedAt\":\"2026-01-02T03:04:05Z\"}}}]}}");
    store_scan(w->store, w->pods_res, HK_STR(NS), HK_STR(""), HK_STR(""), add_name, &n);
    for (uint32_t i = 0; i < n.at.len; i++) {
        patch(w, API_POD, n.at.at[i], "status", &w->running);
        while (w->inflight >= SUBMIT_WINDOW) {
            (void)go_on(w);
        }
    }
    settle(w);
    hk_vec_fini(&n.at);
    hk_arena_fini(&n.mem);
}

/* ---- reporting ---- */

static void tell(struct controllers_bench *b, const char *id, const char *metric, const char *unit,
                 const char *bar, double *v, uint32_t n)
{
    const struct result r = report_median(id, metric, unit, bar, v, n);

    hk_assert(write(b->out, &r, sizeof(r)) == (ssize_t)sizeof(r));
    report_show(&r, b->o->quick ? "# " : "");
}

static void tell_one(struct controllers_bench *b, const char *id, const char *metric,
                     const char *unit, double v)
{
    tell(b, id, metric, unit, NULL, &v, 1);
}

static void check(struct controllers_bench *b, const char *id, const char *promise, uint64_t saw,
                  uint64_t want)
{
    const bool ok = saw == want;

    b->failed |= !ok;
    if (b->o->quick) {
        printf("%sok %u - %s: %s\n", ok ? "" : "not ", ++b->points, id, promise);
    }
    if (!ok || !b->o->quick) {
        printf("%s%-18s %s: %s (%llu, want %llu)\n", b->o->quick ? "# " : "", id, promise,
               ok ? "yes" : "NO", (unsigned long long)saw, (unsigned long long)want);
    }
    fflush(stdout);
}

static double now_s(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- jobs become pods ---- */

struct shown {
    struct hk_arena mem;
    uint32_t pods; /* of each job */
    uint32_t n;    /* jobs that count them all as pending */
};

static bool is_shown(void *ctx, const struct store_obj *o)
{
    struct shown *s = ctx;
    struct json doc;

    hk_arena_clear(&s->mem);
    s->n += json_parse(o->text, 0, &s->mem, &doc, NULL) == 0 &&
            hk_str_is(json_str(json_at(&doc, "status.state.phase"), HK_STR("")), "Pending") &&
            json_int(json_at(&doc, "status.pending"), 0) == s->pods;
    return true;
}

static uint32_t jobs_shown(struct world *w, uint32_t pods)
{
    struct shown s = {.pods = pods};

    store_scan(w->store, store_res(w->store, HK_STR("batch.volcano.sh"), HK_STR("jobs")),
               HK_STR(""), HK_STR(""), HK_STR(""), is_shown, &s);
    hk_arena_fini(&s.mem);
    return s.n;
}

static void check_writes(struct controllers_bench *b, const char *id, struct world *w,
                         uint32_t jobs, uint32_t pods)
{
    const struct tally *n = &w->by_controllers.n;

    check(b, id, "one create per pod", n->create[OF_POD], (uint64_t)jobs * pods);
    check(b, id, "no other write to pods", n->status[OF_POD] + n->other[OF_POD], 0);
    check(b, id, "one PodGroup per job", n->create[OF_GROUP], jobs);
    check(b, id, "no other write to PodGroups", n->status[OF_GROUP] + n->other[OF_GROUP], 0);
    check(b, id, "one status write per transition of a job", n->status[OF_JOB],
          (uint64_t)jobs * STATUS_WRITES_PENDING);
    check(b, id, "no other write to jobs", n->create[OF_JOB] + n->other[OF_JOB], 0);
    check(b, id, "every job tells of its pods", jobs_shown(w, pods), jobs);
    check(b, id, "nothing is refused", manager_metrics(w->mgr)->failures + w->refused, 0);
}

struct series {
    double rate[MAX_RUNS], cpu[MAX_RUNS], batch[MAX_RUNS], rss[MAX_RUNS];
};

static void run_jobs(struct controllers_bench *b, const struct bench_case *c, uint32_t run,
                     struct series *s)
{
    const uint32_t jobs = b->o->quick ? c->quick_jobs : c->jobs;
    const uint32_t pods = b->o->quick ? c->quick_pods : c->pods;
    const bool last = run + 1 == b->o->runs;
    struct world w;

    world_open(&w, b, c->id);
    prepare_jobs(&w, pods);
    const uint64_t commits = store_commits(w.store), rv = store_rv(w.store);
    const double begun = now_s(CLOCK_MONOTONIC), cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
    make_jobs(&w, jobs, pods);
    s->rate[run] = jobs * pods / (now_s(CLOCK_MONOTONIC) - begun);
    settle(&w);
    s->cpu[run] = (now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e6 / (jobs * pods);
    s->batch[run] = (double)(store_rv(w.store) - rv) / (double)(store_commits(w.store) - commits);
    s->rss[run] = report_rss_mb(getpid());
    if (last) {
        const struct tally *n = &w.by_controllers.n;

        tell(b, c->id, "rate", "pods/s", "M1 >= 5000", s->rate, run + 1);
        tell(b, c->id, "processor time", "us/pod", NULL, s->cpu, run + 1);
        tell(b, c->id, "writes per commit", "", NULL, s->batch, run + 1);
        tell(b, c->id, "memory", "MB", NULL, s->rss, run + 1);
        tell_one(b, c->id, "writes per pod", "", (double)n->create[OF_POD] / (jobs * pods));
        tell_one(b, c->id, "writes per job", "",
                 (double)(tally_all(n) - n->create[OF_POD] - n->create[OF_EVENT]) / jobs);
        tell_one(b, c->id, "events per job", "", (double)n->create[OF_EVENT] / jobs);
        tell_one(b, c->id, "passes per job", "", (double)manager_metrics(w.mgr)->passes / jobs);
        tell_one(b, c->id, "scheduler's writes", "", (double)w.by_others.n.other[OF_GROUP]);
        check_writes(b, c->id, &w, jobs, pods);
    }
    world_close(&w);
}

/* ---- restart ---- */

struct restart_series {
    double ready[MAX_RUNS], rss[MAX_RUNS];
};

static void restart_once(struct world *w, uint32_t run, struct restart_series *s)
{
    manager_free(w->mgr);
    w->mgr = NULL;
    settle(w);
    const double rss = report_rss_mb(getpid());
    const double begun = now_s(CLOCK_MONOTONIC);
    controllers_start(w);
    settle(w);
    s->ready[run] = now_s(CLOCK_MONOTONIC) - begun;
    s->rss[run] = report_rss_mb(getpid()) - rss;
}

static void run_restart(struct controllers_bench *b, const struct bench_case *c)
{
    const uint32_t jobs = b->o->quick ? c->quick_jobs : c->jobs;
    const uint32_t pods = b->o->quick ? c->quick_pods : c->pods;
    struct restart_series s;
    struct world w;

    world_open(&w, b, c->id);
    prepare_jobs(&w, pods);
    make_jobs(&w, jobs, pods);
    run_pods(&w);
    w.by_controllers.n = (struct tally){0};
    const uint64_t rv = store_rv(w.store);
    for (uint32_t run = 0; run < b->o->runs; run++) {
        restart_once(&w, run, &s);
    }
    tell(b, c->id, "ready", "s", "M2 <= 2", s.ready, (uint32_t)b->o->runs);
    tell(b, c->id, "memory it takes", "MB", NULL, s.rss, (uint32_t)b->o->runs);
    tell_one(b, c->id, "memory with store", "MB", report_rss_mb(getpid()));
    tell_one(b, c->id, "passes per job", "", (double)manager_metrics(w.mgr)->passes / jobs);
    check(b, c->id, "no write of any kind", tally_all(&w.by_controllers.n), 0);
    check(b, c->id, "the store stays as it was", store_rv(w.store), rv);
    world_close(&w);
}

/* ---- the whole ---- */

static bool is_wanted(const struct options *o, const char *id)
{
    for (uint32_t k = 0; k < o->nonly; k++) {
        if (strcmp(o->only[k], id) == 0) {
            return true;
        }
    }
    return o->nonly == 0;
}

static void run_case(struct controllers_bench *b, const struct bench_case *c)
{
    struct series s;

    if (c->restart) {
        run_restart(b, c);
        return;
    }
    for (uint32_t run = 0; run < b->o->runs; run++) {
        run_jobs(b, c, run, &s);
    }
}

/* False when a counter did not hold, or the child came to a bad end. */
static bool run_in_child(struct controllers_bench *b, const struct bench_case *c,
                         struct results *all)
{
    struct result r;
    int fd[2], status = 0;

    hk_assert(pipe(fd) == 0);
    fflush(stdout);
    const pid_t pid = fork();
    hk_assert(pid >= 0);
    if (pid == 0) {
        close(fd[0]);
        b->out = fd[1];
        run_case(b, c);
        _exit(b->failed);
    }
    close(fd[1]);
    while (read(fd[0], &r, sizeof(r)) == (ssize_t)sizeof(r)) {
        hk_vec_push(all, r);
    }
    close(fd[0]);
    b->points += c->restart ? RESTART_CHECKS : JOBS_CHECKS;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool run_all(struct controllers_bench *b, struct results *all)
{
    bool ok = true;

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        if (is_wanted(b->o, cases[k].id)) {
            ok &= run_in_child(b, &cases[k], all);
        }
    }
    if (b->o->quick) {
        printf("1..%u\n", b->points);
    }
    return ok;
}

static bool measure(const struct options *o)
{
    struct controllers_bench b = {.o = o};
    struct results all = {0};

    snprintf(b.dir, sizeof(b.dir), "%.200s/hekla-bench.XXXXXX", o->dir);
    if (!mkdtemp(b.dir)) {
        fprintf(stderr, "hekla-bench-controllers: cannot make a directory in '%s': %m\n", o->dir);
        return false;
    }
    bool ok = run_all(&b, &all);
    (void)rmdir(b.dir);
    if (!o->quick) {
        ok &= report_write_json(&all, o->out);
    }
    hk_vec_fini(&all);
    return ok;
}

static bool parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0) {
            o->quick = true;
            o->runs = 1;
        } else if (strcmp(argv[i], "--list") == 0) {
            o->list = true;
        } else if (more && strcmp(argv[i], "--only") == 0 && o->nonly < MAX_ONLY) {
            o->only[o->nonly++] = argv[++i];
        } else if (more && strcmp(argv[i], "--out") == 0) {
            o->out = argv[++i];
        } else if (more && strcmp(argv[i], "--dir") == 0) {
            o->dir = argv[++i];
        } else if (!more || strcmp(argv[i], "--runs") != 0 ||
                   !hk_str_int(hk_str(argv[++i]), &o->runs) || o->runs < 1 || o->runs > MAX_RUNS) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {
        .runs = DEFAULT_RUNS, .out = "build/bench-controllers.json", .dir = "/var/tmp"};

    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: hekla-bench-controllers [--quick] [--list] [--only ID]... "
                        "[--runs N] [--out FILE] [--dir DIR]\n");
        return 2;
    }
    for (size_t k = 0; o.list && k < HK_LEN(cases); k++) {
        printf("%-18s %s\n", cases[k].id, cases[k].about);
    }
    return o.list ? 0 : !measure(&o);
}
