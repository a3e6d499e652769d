// SPDX-License-Identifier: Apache-2.0
// hekla explain does not make things up: in random clusters every change that it claims would let a
// job start is made to the objects, the engine is loaded with them from nothing, and must start it.
// Nor may the job start without.
#include "explain/explain.h"
#include "base/clock.h"

#include <stdio.h>

enum { DEFAULT_SEEDS = 500, BATCH = 100, ASKED = 3, CYCLES = 3 };

struct cluster_case {
    struct hk_rand rand;
    struct conf *conf;
    HK_VEC(struct api_object *) objects;
    uint32_t nnode, nqueue, njob;
    int64_t free[16]; /* thousandths of cpu left on each node */
};

static uint32_t below(struct cluster_case *c, uint32_t n)
{
    return hk_rand_below(&c->rand, n);
}

static bool chance(struct cluster_case *c, uint32_t percent)
{
    return below(c, 100) < percent;
}

/* ---- objects ---- */

static void add(struct cluster_case *c, const char *fmt, ...) HK_PRINTF(2, 3);
static void add(struct cluster_case *c, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct api_object *o = NULL;
    struct hk_err err = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    if (api_object_parse(NULL, hk_buf_str(&text), &o, &err) < 0) {
        fprintf(stderr, "%s\n%s\n", text.data, err.text);
    }
    hk_assert(o);
    hk_vec_push(&c->objects, o);
}

static void add_node(struct cluster_case *c)
{
    const uint32_t i = c->nnode++, cpu = 1 + below(c, 6);

    c->free[i] = cpu * 1000;
    add(c,
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n%u\",\"labels\":{"
        "\"disk\":\"%s\",\"kubernetes.io/hostname\":\"n%u\"}},\"spec\":{%s},\"status\":{"
        "\"allocatable\":{\"cpu\":\"%u\",\"memory\":\"16Gi\",\"pods\":\"%u\"}}}",
        i, chance(c, 50) ? "ssd" : "old", i,
        chance(c, 20)   ? "\"taints\":[{\"key\":\"only\",\"value\":\"some\",\"effect\":"
                          "\"NoSchedule\"}]"
        : chance(c, 10) ? "\"unschedulable\":true"
                        : "",
        cpu, 4 + below(c, 20));
}

static void add_queue(struct cluster_case *c)
{
    const uint32_t i = c->nqueue++;
    HK_AUTO(hk_buf_fini) struct hk_buf cap = {0};

    if (chance(c, 50)) {
        hk_buf_addf(&cap, ",\"capability\":{\"cpu\":\"%u\"}", 1 + below(c, 6));
    }
    add(c,
        "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"Queue\",\"metadata\":{"
        "\"name\":\"q%u\"},\"spec\":{\"weight\":%u,\"reclaimable\":true%s},\"status\":{\"state\":"
        "\"%s\"}}",
        i, 1 + below(c, 4), hk_buf_str(&cap).s, chance(c, 90) ? "Open" : "Closed");
}

static void add_class(struct cluster_case *c, const char *name, uint32_t value)
{
    add(c,
        "{\"apiVersion\":\"scheduling.k8s.io/v1\",\"kind\":\"PriorityClass\",\"metadata\":{"
        "\"name\":\"%s\"},\"value\":%u}",
        name, value);
}

/* What the pods of one job have in common. */
struct job_case {
    uint32_t number, cpu;
    const char *class, *wishes;
    uint32_t priority;
};

static bool place(struct cluster_case *c, uint32_t cpu, uint32_t *ret)
{
    for (uint32_t k = 0, i = below(c, c->nnode); k < c->nnode; k++, i = (i + 1) % c->nnode) {
        if (c->free[i] >= cpu) {
            c->free[i] -= cpu;
            *ret = i;
            return true;
        }
    }
    return false;
}

static void add_pod(struct cluster_case *c, const struct job_case *j, uint32_t i, const char *node)
{
    add(c,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"j%u-w-%u\",\"namespace\":"
        "\"x\",\"creationTimestamp\":\"2026-01-01T00:00:%02uZ\",\"annotations\":{\"scheduling.k8s."
        "io/group-name\":\"j%u\",\"volcano.sh/task-spec\":\"w\"}},\"spec\":{\"schedulerName\":"
        "\"volcano\",\"priority\":%u,\"priorityClassName\":\"%s\"%s%s%s%s,\"containers\":[{"
        "\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%um\"}}}]},\"status\":{\"phase\":"
        "\"%s\"}}",
        j->number, i, j->number, j->number, j->priority, j->class, j->wishes,
        node ? ",\"nodeName\":\"" : "", node ? node : "", node ? "\"" : "", j->cpu,
        node ? "Running" : "Pending");
}

static void add_job(struct cluster_case *c)
{
    static const char *const wishes[] = {
        "",
        "",
        "",
        ",\"nodeSelector\":{\"disk\":\"ssd\"}",
        ",\"nodeSelector\":{\"disk\":\"none\"}",
        ",\"tolerations\":[{\"key\":\"only\",\"operator\":\"Exists\"}]",
        (",\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":\"disk\","
         "\"whenUnsatisfiable\":\"DoNotSchedule\",\"labelSelector\":{}}]")};
    const bool high = chance(c, 25);
    struct job_case j = {.number = c->njob++,
                         .cpu = 250 * (1 + below(c, 12)),
                         .class = high ? "high" : "low",
                         .priority = high ? 100 : 10,
                         .wishes = wishes[below(c, HK_LEN(wishes))]};
    const uint32_t pods = 1 + below(c, 5), min = 1 + below(c, pods);
    const bool runs = chance(c, 50);
    uint32_t placed = 0, node;

    for (uint32_t i = 0; i < pods; i++) {
        char name[16] = "";
        const bool here = runs && place(c, j.cpu, &node);
        snprintf(name, sizeof(name), "n%u", here ? node : 0);
        add_pod(c, &j, i, here ? name : NULL);
        placed += here;
    }
    add(c,
        "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":\"PodGroup\",\"metadata\":{"
        "\"name\":\"j%u\",\"namespace\":\"x\",\"creationTimestamp\":\"2026-01-01T00:00:%02uZ\"},"
        "\"spec\":{\"minMember\":%u,\"queue\":\"q%u\",\"priorityClassName\":\"%s\","
        "\"minResources\":{\"cpu\":\"%um\"}},\"status\":{\"phase\":\"%s\"}}",
        j.number, j.number, placed > 0 ? HK_MIN(min, placed) : min, below(c, c->nqueue), j.class,
        min * j.cpu,
        placed > 0      ? "Running"
        : chance(c, 50) ? "Inqueue"
                        : "Pending");
}

static const char *const confs[] = {
    "actions: \"enqueue, allocate, backfill\"\ntiers:\n- plugins:\n  - name: priority\n  - name: "
    "gang\n  - name: conformance\n- plugins:\n  - name: overcommit\n  - name: drf\n  - name: "
    "predicates\n  - name: proportion\n  - name: nodeorder\n",
    "actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  - name: "
    "binpack\n",
    "actions: \"enqueue, allocate, preempt, reclaim\"\ntiers:\n- plugins:\n  - name: priority\n  - "
    "name: gang\n  - name: conformance\n- plugins:\n  - name: predicates\n  - name: proportion\n",
    "actions: \"enqueue, allocate, reclaim\"\ntiers:\n- plugins:\n  - name: priority\n  - name: "
    "gang\n- plugins:\n  - name: predicates\n  - name: capacity\n  - name: nodeorder\n",
};

static void case_init(struct cluster_case *c, uint64_t seed)
{
    int rc;

    *c = (struct cluster_case){0};
    hk_rand_seed(&c->rand, seed);
    rc = conf_parse(hk_str(confs[below(c, HK_LEN(confs))]), &c->conf, NULL);
    hk_assert(rc == 0);
    add_class(c, "low", 10);
    add_class(c, "high", 100);
    for (uint32_t n = 1 + below(c, 6); n > 0; n--) {
        add_node(c);
    }
    for (uint32_t n = 1 + below(c, 3); n > 0; n--) {
        add_queue(c);
    }
    for (uint32_t n = 2 + below(c, 7); n > 0; n--) {
        add_job(c);
    }
}

static void case_fini(struct cluster_case *c)
{
    for (uint32_t k = 0; k < c->objects.len; k++) {
        api_object_unref(c->objects.at[k]);
    }
    hk_vec_fini(&c->objects);
    conf_free(c->conf);
}

/* ---- the check ---- */

static bool is_about(const struct explain_edit *e, const struct api_object *o)
{
    return e->kind == o->kind &&
           hk_str_eq(json_str(json_at(&e->doc, "metadata.name"), HK_STR("")), o->name) &&
           hk_str_eq(json_str(json_at(&e->doc, "metadata.namespace"), HK_STR("")), o->ns);
}

static const struct explain_edit *edit_of(const struct explain_edit *e, uint32_t n,
                                          const struct api_object *o)
{
    for (uint32_t k = 0; k < n; k++) {
        if (is_about(&e[k], o)) {
            return &e[k];
        }
    }
    return NULL;
}

/* Whether the job gets pods bound and has its minimum, in a world made from nothing. */
static bool starts(const struct cluster_case *c, const struct explain_edit *e, uint32_t n,
                   struct hk_str job)
{
    const struct cluster_opts o = {
        .now_ns = 1767225700LL * 1000000000, .step_ns = 1000000000, .seed = 1};
    struct cluster w;
    bool started = false;

    cluster_init(&w, c->conf, &o);
    for (uint32_t k = 0; k < c->objects.len; k++) {
        const struct api_object *obj = c->objects.at[k];
        const struct explain_edit *edit = edit_of(e, n, obj);
        if (!edit || !edit->gone) {
            ingest_put(w.in, obj->kind, edit ? &edit->doc : &obj->root, NULL, NULL);
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        bool known = e[k].gone;
        for (uint32_t i = 0; i < c->objects.len && !known; i++) {
            known = is_about(&e[k], c->objects.at[i]);
        }
        if (!known) {
            ingest_put(w.in, e[k].kind, &e[k].doc, NULL, NULL);
        }
    }
    for (uint32_t k = 0; k < CYCLES && !started; k++) {
        struct hk_err err = {0};
        const int rc = cluster_cycle(&w, &err);
        hk_assert(rc == 0);
        const job_id j = model_job_find(&w.m, HK_STR("x"), job);
        bool placed = false;
        for (uint32_t b = 0; b < w.binds.len; b++) {
            struct hk_str pod = w.binds.at[b].pod, ns;
            hk_str_cut(&pod, '/', &ns);
            placed |= id_eq(model_task(&w.m, model_task_find(&w.m, ns, pod))->job, j);
        }
        started = placed && job_counts_ready(model_job(&w.m, j));
    }
    cluster_fini(&w);
    return started;
}

struct counts {
    uint64_t asked, claims;
};

static int check_job(const struct cluster_case *c, const struct api_object *job, bool verbose,
                     struct counts *n, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct explain_opts o = {.objects = c->objects.at,
                                   .n = c->objects.len,
                                   .conf = c->conf,
                                   .now_ns = 1767225700LL * 1000000000,
                                   .tries = 100};
    const struct explain_subject s = {API_PODGROUP, job->ns, job->name};
    struct explain_claims claims;
    struct json answer;
    const int rc = explain_with_claims(&o, &s, &a, &answer, &claims, err);

    if (rc < 0) {
        return rc;
    }
    if (verbose) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        json_write(&answer, &text);
        printf("# %s\n", text.data);
    }
    const bool waits = hk_str_is(json_str(json_get(&answer, "state"), HK_STR("")), "waiting");
    if (waits && starts(c, NULL, 0, job->name)) {
        return hk_fail(err, HK_EINVAL, "job '%.*s' is said to wait and starts", HK_FMT(job->name));
    }
    n->asked += waits;
    for (uint32_t k = 0; k < claims.len; k++) {
        const struct json *text = json_get(json_item(json_get(&answer, "changes"), k), "text");
        n->claims++;
        if (!starts(c, claims.at[k].at, claims.at[k].len, job->name)) {
            return hk_fail(err, HK_EINVAL, "job '%.*s' does not start although %.*s",
                           HK_FMT(job->name), HK_FMT(json_str(text, HK_STR("?"))));
        }
    }
    return 0;
}

static int try_seed(uint64_t seed, bool verbose, struct counts *n, struct hk_err *err)
{
    struct cluster_case c;
    uint32_t asked = 0;
    int rc = 0;

    case_init(&c, seed);
    for (uint32_t k = 0; k < c.objects.len && rc == 0 && asked < ASKED; k++) {
        const struct api_object *o = c.objects.at[k];
        if (o->kind->id == API_PODGROUP &&
            !hk_str_is(json_str(json_at(&o->root, "status.phase"), HK_STR("")), "Running")) {
            asked++;
            rc = check_job(&c, o, verbose, n, err);
        }
    }
    case_fini(&c);
    return rc;
}

/* ---- TAP ---- */

static bool batch(uint64_t from, uint64_t to, bool verbose, uint32_t point)
{
    struct counts n = {0};
    bool ok = true;

    for (uint64_t s = from; s < to; s++) {
        struct hk_err err = {0};
        if (try_seed(s, verbose, &n, &err) < 0) {
            printf("# seed %llu: %s\n", (unsigned long long)s, err.text);
            ok = false;
        }
    }
    printf("%sok %u - seeds %llu to %llu: %llu claims about %llu waiting jobs are true\n",
           ok ? "" : "not ", point, (unsigned long long)from, (unsigned long long)to - 1,
           (unsigned long long)n.claims, (unsigned long long)n.asked);
    fflush(stdout);
    return ok;
}

int main(int argc, char **argv)
{
    int64_t seeds = DEFAULT_SEEDS, from = 1;
    uint32_t points = 0, failed = 0;
    bool verbose;

    verbose = argc == 3 && strcmp(argv[1], "--seed") == 0;
    if (argc != 1 && (argc != 3 || (!verbose && strcmp(argv[1], "--seeds") != 0) ||
                      !hk_str_int(hk_str(argv[2]), verbose ? &from : &seeds))) {
        fprintf(stderr, "usage: hekla-property-explain [--seeds N | --seed S]\n");
        return 2;
    }
    seeds = verbose ? 1 : seeds;
    for (int64_t s = from; s < from + seeds; s += BATCH) {
        const int64_t end = HK_MIN(s + BATCH, from + seeds);
        failed += !batch((uint64_t)s, (uint64_t)end, verbose, ++points);
    }
    printf("1..%u\n", points);
    return failed > 0;
}
