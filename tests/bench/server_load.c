// SPDX-License-Identifier: Apache-2.0
// Requests, and phases that ask them: what every case of the benchmark is made of.
#include "bench/server.h"

#include <stdio.h>
#include <stdlib.h>

enum { PHASE_LIMIT_S = 900, REST_S = 2 };

/* ---- what is asked ---- */

static void make_tail(struct hk_buf *b, size_t room)
{
    static const char head[] =
        "\",\"namespace\":\"default\",\"labels\":{\"app\":\"train\",\"tier\":\"batch\","
        "\"job-name\":\"resnet\",\"volcano.sh/task-spec\":\"worker\"},\"annotations\":{"
        "\"scheduling.k8s.io/group-name\":\"resnet\",\"volcano.sh/task-index\":\"0\"}},\"spec\":{"
        "\"schedulerName\":\"volcano\",\"restartPolicy\":\"OnFailure\",\"containers\":[{\"name\":"
        "\"main\",\"image\":\"registry.example/train:1.4.2\",\"command\":[\"python3\","
        "\"train.py\",\"--epochs\",\"90\"],\"ports\":[{\"name\":\"nccl\",\"containerPort\":2222}],"
        "\"resources\":{\"requests\":{\"cpu\":\"500m\",\"memory\":\"2Gi\",\"nvidia.com/gpu\":\"1\"}"
        ",\"limits\":{\"cpu\":\"2\",\"memory\":\"4Gi\",\"nvidia.com/gpu\":\"1\"}},\"env\":[";
    static const char foot[] = "\"}]}]}}";
    const char *comma = "";

    hk_buf_adds(b, head);
    for (uint32_t k = 0; b->len + 64 < room; k++) {
        hk_buf_addf(b, "%s{\"name\":\"VARIABLE_%02u\",\"value\":\"", comma, k);
        comma = "\"},";
        for (uint32_t n = 0; n < 24 && b->len + sizeof(foot) - 1 < room; n++) {
            hk_buf_addc(b, (char)('a' + (k + n) % 26));
        }
    }
    while (b->len + sizeof(foot) - 1 < room) {
        hk_buf_addc(b, '.');
    }
    hk_buf_adds(b, foot);
}

void server_pod(struct server_bench *b, const char *name, struct hk_buf *out)
{
    static const char head[] = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"";

    if (b->pod_tail.len == 0) {
        make_tail(&b->pod_tail, SERVER_POD_BYTES - sizeof(head) + 1 - strlen(name));
    }
    hk_buf_add(out, head, sizeof(head) - 1);
    hk_buf_adds(out, name);
    hk_buf_addstr(out, hk_buf_str(&b->pod_tail));
}

void server_request(const struct server_proc *p, const char *method, const char *path,
                    const char *media, const char *type, struct hk_str body, struct hk_buf *out)
{
    hk_buf_addf(out,
                "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                "Accept: application/json%s\r\n",
                method, path, p->token, media);
    if (body.n > 0) {
        hk_buf_addf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n", type, body.n);
    }
    hk_buf_adds(out, "\r\n");
    hk_buf_addstr(out, body);
}

/* ---- phases ---- */

static void begin(struct server_phase *p)
{
    p->sent = hk_zalloc_array(p->clients, sizeof(*p->sent));
    p->began = server_wall();
    p->self_cpu = server_self_cpu();
    p->server_cpu = server_proc_cpu(p->proc);
}

static void end(struct server_phase *p)
{
    p->ended = server_wall();
    p->self_cpu = server_self_cpu() - p->self_cpu;
    p->server_cpu = server_proc_cpu(p->proc) - p->server_cpu;
}

/* Whether a client may ask once more. */
static bool more(struct server_phase *p, uint32_t client)
{
    const double now = server_wall();

    p->stopped |= p->count > 0 ? p->asked == p->count : now >= p->began + p->seconds;
    p->done = p->stopped && p->answered == p->asked;
    p->sent[client] = now;
    return !p->stopped;
}

static bool next(void *ctx, uint32_t client, struct hk_buf *out)
{
    struct server_phase *p = ctx;

    if (!more(p, client)) {
        return false;
    }
    p->request(p, p->asked++, client, out);
    return true;
}

static void count_answer(struct server_phase *p, uint32_t client)
{
    p->answered++;
    hk_vec_push(&p->ms, (server_wall() - p->sent[client]) * 1e3);
}

static void on_answer(void *ctx, uint32_t client, int status, struct hk_str body)
{
    struct server_phase *p = ctx;

    if (status != p->want && p->want != 0) {
        fprintf(stderr, "hekla-bench-server: status %d, want %d: %.*s\n", status, p->want,
                (int)HK_MIN(body.n, (size_t)400), body.s);
        _Exit(1);
    }
    p->bytes += body.n;
    count_answer(p, client);
    if (p->look) {
        p->look(p, client, body);
    }
}

static void give_up_unless(bool ok)
{
    if (!ok) {
        fprintf(stderr, "hekla-bench-server: no answer in %d s\n", PHASE_LIMIT_S);
        _Exit(1);
    }
}

void server_phase_run(struct server_phase *p)
{
    static const struct load_ops ops = {.next = next, .answer = on_answer};
    struct load *l = load_new(p->b->loop, p->proc->port, p->clients, &ops, p);

    begin(p);
    load_kick_all(l);
    give_up_unless(load_wait(p->b->loop, &p->done, PHASE_LIMIT_S));
    end(p);
    load_free(l);
}

static bool next_put(void *ctx, uint32_t client, struct hk_buf *key, struct hk_buf *value)
{
    struct server_phase *p = ctx;

    if (!more(p, client)) {
        return false;
    }
    hk_buf_addf(key, "/registry/pods/default/pod-%08llu", (unsigned long long)p->b->npods);
    p->request(p, p->asked++, client, value);
    return true;
}

static void on_put(void *ctx, uint32_t client)
{
    count_answer(ctx, client);
}

/* All on one connection, as kube-apiserver keeps one; with more of them etcd was slower. */
static void run_etcd(struct server_phase *p)
{
    static const struct load_grpc_ops ops = {.next = next_put, .answer = on_put};
    struct load_grpc *l = load_grpc_new(p->b->loop, p->proc->port, 1, p->clients, &ops, p);

    begin(p);
    load_grpc_kick_all(l);
    give_up_unless(load_wait(p->b->loop, &p->done, PHASE_LIMIT_S));
    end(p);
    load_grpc_free(l);
}

double server_phase_rate(const struct server_phase *p)
{
    return (double)p->answered / (p->ended - p->began);
}

void server_phase_fini(struct server_phase *p)
{
    hk_free(p->sent);
    hk_vec_fini(&p->ms);
    p->sent = NULL;
}

static void next_pod(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    char name[32];

    snprintf(name, sizeof(name), "pod-%08llu", (unsigned long long)p->b->npods++);
    server_pod(p->b, name, out);
}

static void ask_pod(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    next_pod(p, k, client, &body);
    server_request(p->proc, "POST", "/api/v1/namespaces/default/pods", "", "application/json",
                   hk_buf_str(&body), out);
}

void server_phase_pods(struct server_bench *b, const struct server_proc *proc, uint32_t clients,
                       uint64_t count, double seconds, struct server_phase *ret)
{
    *ret = (struct server_phase){.b = b,
                                 .proc = proc,
                                 .clients = clients,
                                 .count = count,
                                 .seconds = seconds,
                                 .want = 201,
                                 .request = ask_pod};
    server_phase_run(ret);
}

void server_phase_puts(struct server_bench *b, const struct server_proc *proc, uint32_t clients,
                       double seconds, struct server_phase *ret)
{
    *ret = (struct server_phase){
        .b = b, .proc = proc, .clients = clients, .seconds = seconds, .request = next_pod};
    run_etcd(ret);
}

/* ---- metrics ---- */

struct metric {
    const char *name;
    double sum;
};

static void ask_metrics(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    server_request(p->proc, "GET", "/metrics", "", "", HK_STR(""), out);
}

static void look_metrics(struct server_phase *p, uint32_t client, struct hk_str body)
{
    struct metric *m = p->ctx;
    struct hk_str line;

    while (hk_str_cut(&body, '\n', &line)) {
        const size_t n = strlen(m->name);
        if (hk_str_starts(line, m->name) && line.n > n && (line.s[n] == ' ' || line.s[n] == '{')) {
            const char *value = memrchr(line.s, ' ', line.n);
            m->sum += strtod(value, NULL);
        }
    }
}

double server_metric(struct server_bench *b, const struct server_proc *proc, const char *name)
{
    struct metric m = {.name = name};
    struct server_phase p = {.b = b,
                             .proc = proc,
                             .clients = 1,
                             .count = 1,
                             .want = 200,
                             .request = ask_metrics,
                             .look = look_metrics,
                             .ctx = &m};

    server_phase_run(&p);
    server_phase_fini(&p);
    return m.sum;
}

void server_await_rest(struct server_bench *b, const struct server_proc *proc)
{
    double before, now = server_metric(b, proc, "hekla_store_revision");
    const bool never = false;

    do {
        before = now;
        (void)load_wait(b->loop, &never, REST_S);
        now = server_metric(b, proc, "hekla_store_revision");
    } while (now != before);
}
