// SPDX-License-Identifier: Apache-2.0
// The case about the admission server: jobs as people send them, reviewed as fast as 64 clients are
// answered, in a cluster with many queues.
#include "bench/server.h"

enum { CLIENTS = 64, QUEUES = 1000, TASKS = 3 };

static const char queues_path[] = "/apis/scheduling.volcano.sh/v1beta1/queues";

/* ---- the cluster ---- */

static void ask_queue(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_addf(&body,
                "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"Queue\",\"metadata\":"
                "{\"name\":\"queue-%04llu\"},\"spec\":{\"parent\":\"root\",\"weight\":1,"
                "\"reclaimable\":true,\"capability\":{\"cpu\":\"64\",\"memory\":\"256Gi\"}}}",
                (unsigned long long)k);
    server_request(p->proc, "POST", queues_path, "", "application/json", hk_buf_str(&body), out);
}

/* No controller does it here. */
static void open_queue(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/queue-%04llu/status", queues_path, (unsigned long long)k);
    server_request(p->proc, "PATCH", path, "", "application/merge-patch+json",
                   HK_STR("{\"status\":{\"state\":\"Open\"}}"), out);
}

static void make_queues(struct server_bench *b, const struct server_proc *api)
{
    struct server_phase make = {.b = b,
                                .proc = api,
                                .clients = CLIENTS,
                                .count = QUEUES,
                                .want = 201,
                                .request = ask_queue};
    struct server_phase open = make;

    open.want = 200;
    open.request = open_queue;
    server_phase_run(&make);
    server_phase_run(&open);
    server_phase_fini(&make);
    server_phase_fini(&open);
}

/* ---- reviews ---- */

struct reviews {
    const char *path;
    uint64_t unexpected; /* answers */
    const char *want;    /* what an answer holds */
};

static void write_task(struct hk_buf *out, unsigned i)
{
    static const char *const names[TASKS] = {"master", "worker", "evaluator"};

    hk_buf_addf(out,
                "%s{\"name\":\"%s\",\"replicas\":%u,\"policies\":[{\"event\":\"TaskCompleted\","
                "\"action\":\"CompleteJob\"}],\"template\":{\"metadata\":{\"labels\":{\"app\":"
                "\"train\",\"role\":\"%s\"}},\"spec\":{\"restartPolicy\":\"OnFailure\","
                "\"containers\":[{\"name\":\"main\",\"image\":\"registry.example/train:1.4.2\","
                "\"command\":[\"python3\",\"train.py\",\"--epochs\",\"90\"],\"ports\":[{\"name\":"
                "\"nccl\",\"containerPort\":2222}],\"resources\":{\"requests\":{\"cpu\":\"500m\","
                "\"memory\":\"2Gi\",\"nvidia.com/gpu\":\"1\"},\"limits\":{\"cpu\":\"2\","
                "\"memory\":\"4Gi\",\"nvidia.com/gpu\":\"1\"}},\"volumeMounts\":[{\"name\":"
                "\"data\",\"mountPath\":\"/data\"}],\"env\":[{\"name\":\"NCCL_DEBUG\",\"value\":"
                "\"INFO\"},{\"name\":\"ROLE\",\"value\":\"%s\"}]}],\"volumes\":[{\"name\":\"data\","
                "\"emptyDir\":{}}]}}}",
                i > 0 ? "," : "", names[i], i * 4 + 1, names[i], names[i]);
}

static void write_review(uint64_t k, struct hk_buf *out)
{
    hk_buf_addf(out,
                "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
                "\"uid\":\"%016llx\",\"kind\":{\"group\":\"batch.volcano.sh\",\"version\":"
                "\"v1alpha1\",\"kind\":\"Job\"},\"resource\":{\"group\":\"batch.volcano.sh\","
                "\"version\":\"v1alpha1\",\"resource\":\"jobs\"},\"name\":\"train-%llu\","
                "\"namespace\":\"default\",\"operation\":\"CREATE\",\"userInfo\":{\"username\":"
                "\"admin\",\"groups\":[\"system:masters\"]},\"object\":{\"apiVersion\":"
                "\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"train-"
                "%llu\",\"namespace\":\"default\"},\"spec\":{\"schedulerName\":\"volcano\","
                "\"minAvailable\":3,\"queue\":\"queue-%04llu\",\"plugins\":{\"env\":[],\"svc\":[],"
                "\"ssh\":[]},\"policies\":[{\"event\":\"PodEvicted\",\"action\":\"RestartJob\"},"
                "{\"event\":\"PodFailed\",\"action\":\"RestartJob\"}],\"tasks\":[",
                (unsigned long long)k, (unsigned long long)k, (unsigned long long)k,
                (unsigned long long)(k % QUEUES));
    for (unsigned i = 0; i < TASKS; i++) {
        write_task(out, i);
    }
    hk_buf_adds(out, "]}},\"oldObject\":null,\"dryRun\":false,\"options\":null}}");
}

static void ask_review(struct server_phase *p, uint64_t k, uint32_t client, struct hk_buf *out)
{
    const struct reviews *r = p->ctx;
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    write_review(k, &body);
    server_request(p->proc, "POST", r->path, "", "application/json", hk_buf_str(&body), out);
}

static void look_review(struct server_phase *p, uint32_t client, struct hk_str body)
{
    struct reviews *r = p->ctx;

    r->unexpected += !hk_str_contains(body, r->want);
}

static void measure(struct server_bench *b, const char *id, const struct server_proc *webhooks,
                    struct reviews *r)
{
    struct server_phase p = {.b = b,
                             .proc = webhooks,
                             .clients = CLIENTS,
                             .seconds = b->quick ? 0.5 : 4,
                             .want = 200,
                             .request = ask_review,
                             .look = look_review,
                             .ctx = r};

    server_phase_run(&p);
    server_report(b, id, "reviews", "1/s", NULL, server_phase_rate(&p));
    server_report(b, id, "per core", "1/s", "W1 >= 2000", (double)p.answered / p.server_cpu);
    server_report(b, id, "p50", "ms", NULL, report_percentile(p.ms.at, p.ms.len, 0.5));
    server_report(b, id, "p99", "ms", "W2 < 10", report_percentile(p.ms.at, p.ms.len, 0.99));
    server_report(b, id, "generator", "% of a core", NULL, p.self_cpu / (p.ended - p.began) * 100);
    server_check(b, r->unexpected == 0, id, "every review is answered as it should be",
                 (double)r->unexpected);
    server_phase_fini(&p);
}

void server_case_reviews(struct server_bench *b, const char *id)
{
    struct server_proc api = {0}, webhooks = {0};
    struct reviews validate = {.path = "/jobs/validate", .want = "\"allowed\":true}"};
    struct reviews mutate = {.path = "/jobs/mutate", .want = "\"patchType\":\"JSONPatch\""};

    server_start(b, id, &api);
    make_queues(b, &api);
    server_proc_webhooks(&webhooks, b->hekla, &api);
    measure(b, "reviews-validate", &webhooks, &validate);
    measure(b, "reviews-mutate", &webhooks, &mutate);
    server_proc_stop(&webhooks);
    server_proc_stop(&api);
}
