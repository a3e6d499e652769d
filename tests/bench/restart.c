// SPDX-License-Identifier: Apache-2.0
// P6, the engine's part of a restart: every object arrives as JSON text, as a list from the API
// server would bring it, is parsed, decoded and taken into the model; then the first cycle must
// bind the one gang that waits. Making the texts is not timed.
#include "bench/bench.h"
#include "codec/json.h"
#include "scheduler/ingest.h"

enum { PODS_OF_GROUP = 2, GANG = 8 };

struct texts {
    struct hk_buf all;
    HK_VEC(size_t) end; /* of each object */
    HK_VEC(enum api_kind_id) kind;
};

static void add(struct texts *t, enum api_kind_id kind)
{
    hk_vec_push(&t->end, t->all.len);
    hk_vec_push(&t->kind, kind);
}

static void add_node(struct texts *t, uint32_t k)
{
    hk_buf_addf(
        &t->all,
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-%u\",\"uid\":"
        "\"00000000-0000-4000-8000-%012u\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
        "\"labels\":{\"kubernetes.io/arch\":\"amd64\",\"kubernetes.io/hostname\":\"node-%u\","
        "\"kubernetes.io/os\":\"linux\",\"topology.kubernetes.io/zone\":\"zone-%u\"}},\"spec\":{},"
        "\"status\":{\"allocatable\":{\"cpu\":\"64\",\"ephemeral-storage\":\"200Gi\",\"memory\":"
        "\"256Gi\",\"pods\":\"110\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
        "\"reason\":\"KubeletReady\",\"message\":\"kubelet is posting ready status\"}]}}",
        k, k, k, k % 3);
    add(t, API_NODE);
}

static void add_group(struct texts *t, uint32_t k, uint32_t min, const char *phase)
{
    hk_buf_addf(
        &t->all,
        "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"PodGroup\",\"metadata\":{"
        "\"namespace\":\"team-%u\",\"name\":\"job-%u\",\"uid\":\"10000000-0000-4000-8000-%012u\","
        "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"minMember\":%u,\"queue\":"
        "\"default\",\"minResources\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}},\"status\":{\"phase\":"
        "\"%s\",\"running\":%u}}",
        k % 100, k, k, min, phase, min);
    add(t, API_PODGROUP);
}

static void add_pod(struct texts *t, uint32_t k, uint32_t group, const char *place)
{
    hk_buf_addf(
        &t->all,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"team-%u\",\"name\":"
        "\"job-%u-worker-%u\",\"uid\":\"20000000-0000-4000-8000-%012u\",\"creationTimestamp\":"
        "\"2026-01-01T00:00:00Z\",\"annotations\":{\"scheduling.k8s.io/group-name\":\"job-%u\","
        "\"volcano.sh/task-spec\":\"worker\"},\"labels\":{\"volcano.sh/job-name\":\"job-%u\","
        "\"volcano.sh/job-namespace\":\"team-%u\",\"volcano.sh/task-spec\":\"worker\"},"
        "\"ownerReferences\":[{\"apiVersion\":\"batch.volcano.sh/"
        "v1alpha1\",\"kind\":\"Job\",\"name\":"
        "\"job-%u\",\"uid\":\"30000000-0000-4000-8000-%012u\",\"controller\":true}]},\"spec\":{"
        "\"schedulerName\":\"volcano\",\"priority\":0,\"containers\":[{\"name\":\"main\",\"image\":"
        "\"registry.example/"
        "train:v1\",\"command\":[\"python\",\"train.py\",\"--rank\",\"0\"],\"env\":[{"
        "\"name\":\"VC_TASK_INDEX\",\"value\":\"0\"}],\"resources\":{\"requests\":{\"cpu\":"
        "\"500m\","
        "\"memory\":\"512Mi\"}}}],\"tolerations\":[{\"key\":\"node.kubernetes.io/not-ready\","
        "\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}]%s}}",
        group % 100, group, k, k, group, group, group % 100, group, group, place);
    add(t, API_POD);
}

static void make_texts(struct texts *t, const struct bench *b)
{
    const uint32_t groups = b->running;
    uint32_t pod = 0;

    for (uint32_t k = 0; k < b->nodes; k++) {
        add_node(t, k);
    }
    for (uint32_t k = 0; k < groups; k++) {
        add_group(t, k, 1, "Running");
    }
    for (; pod < b->pods; pod++) {
        char place[96];
        snprintf(place, sizeof(place),
                 ",\"nodeName\":\"node-%u\"},\"status\":{\"phase\":\"Running\"", pod % b->nodes);
        add_pod(t, pod, pod / PODS_OF_GROUP % groups, place);
    }
    add_group(t, groups, GANG, "Pending");
    for (uint32_t k = 0; k < GANG; k++) {
        add_pod(t, pod + k, groups, "");
    }
}

static void take_in(struct ingest *in, const struct texts *t)
{
    struct hk_arena mem = {0};
    struct hk_err err = {0};
    size_t from = 0;

    for (uint32_t k = 0; k < t->end.len; k++) {
        struct json doc;
        hk_arena_clear(&mem);
        hk_assert(json_parse((struct hk_str){t->all.data + from, t->end.at[k] - from}, 0, &mem,
                             &doc, &err) == 0);
        hk_assert(ingest_put(in, api_kind(t->kind.at[k]), &doc, NULL, &err) == 0);
        from = t->end.at[k];
    }
    hk_arena_fini(&mem);
}

void measure_restart(struct bench *b, struct sink *out)
{
    const struct ingest_opts opts = {.make_queues = true};
    struct texts t = {0};
    struct ingest *in = ingest_new(&b->w.m, &opts);

    make_texts(&t, b);
    const double before = bench_now();
    take_in(in, &t);
    ingest_settle(in);
    const double taken = bench_now();
    bench_cycle(b);
    const double bound = bench_now();

    bench_emit(out, b, "first bind", "ms", b->spec->bar, (bound - before) * 1e3);
    bench_emit(out, b, "taking in", "ms", NULL, (taken - before) * 1e3);
    bench_emit(out, b, "objects", "", NULL, t.end.len);
    bench_emit(out, b, "decided", "pods", NULL, b->ssn.decisions.len);
    hk_assert(b->ssn.decisions.len == GANG);
    ingest_free(in);
    hk_buf_fini(&t.all);
    hk_vec_fini(&t.end);
    hk_vec_fini(&t.kind);
}
