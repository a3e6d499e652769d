// SPDX-License-Identifier: Apache-2.0
// Lives of jobs with faults. A story is a job and the actions of others. It runs once without
// faults, then again for every call of the controller and every way in which that call can fail.
// The final state of the cluster must always be the same.
#include "controllers/fault_rig_test.h"
#include "controllers/job_rig_test.h"

/* ---- actions of others ---- */

/* Done once, when the job has that phase, retryCount and number of running pods, and nothing else
 * is left to do. */
struct deed {
    int running; /* 0: any */
    const char *phase;
    int retry;
    void (*act)(struct rig *r, const char *what);
    const char *what;
};

static void fail_pod(struct rig *r, const char *what)
{
    rig_end_now(r, what, 3);
}

static void fail_w_0_and_1(struct rig *r, const char *what)
{
    rig_end_now(r, "j-w-0", 3);
    rig_end_now(r, "j-w-1", 3);
}

static void succeed_pod(struct rig *r, const char *what)
{
    rig_end_now(r, what, 0);
}

/* A pod that is gone at once, as when its node is lost. */
static void lose_pod(struct rig *r, const char *what)
{
    rig_remove(r, API_POD, what);
}

static void preempt_pod(struct rig *r, const char *what)
{
    rig_patch(r, API_POD, what,
              "metadata: {deletionTimestamp: '2026-01-02T10:00:01Z'}\n"
              "status: {conditions: [{type: DisruptionTarget, status: 'True'}]}\n");
}

static void put(struct rig *r, const char *what)
{
    rig_put(r, what);
}

static void change_job(struct rig *r, const char *what)
{
    rig_patch(r, API_JOB, "j", what);
}

struct story {
    const char *name;
    const char *unseen; /* prefix of lines that need a controller that saw the event, or NULL */
    const char *job;
    struct deed deeds[8];
};

#define TWO_TASKS "  tasks:\n" TASK("a", "1", "") TASK("b", "1", "")
#define PARTS TASK("w", "4", "    partitionPolicy: {totalPartitions: 2, partitionSize: 2}\n")

static const struct story stories[] = {
    {"complete",
     NULL,
     JOB("  minAvailable: 2\n  tasks:\n" TASK("w", "2", "")),
     {{0, "Running", 0, succeed_pod, "j-w-0"}, {0, "Running", 0, succeed_pod, "j-w-1"}}},
    {"fail",
     NULL,
     JOB("  minAvailable: 2\n  tasks:\n" TASK("w", "2", "")),
     {{0, "Running", 0, succeed_pod, "j-w-0"}, {0, "Running", 0, fail_pod, "j-w-1"}}},
    {"restart until retries are used up",
     NULL,
     JOB_HEAD "  maxRetry: 2\n  minAvailable: 2\n"
              "  policies: [{event: PodFailed, action: RestartJob}]\n" TWO_TASKS,
     {{0, "Running", 0, fail_pod, "j-b-0"}, {0, "Running", 1, fail_pod, "j-b-0"}}},
    {"terminate",
     NULL,
     JOB("  minAvailable: 2\n  policies: [{event: PodFailed, action: TerminateJob}]\n" TWO_TASKS),
     {{0, "Running", 0, fail_pod, "j-b-0"}}},
    {"restart a pod",
     NULL,
     JOB("  minAvailable: 2\n  policies: [{event: PodFailed, action: RestartPod}]\n"
         "  tasks:\n" TASK("w", "2", "")),
     {{0, "Running", 0, fail_pod, "j-w-1"}}},
    {"restart a task",
     NULL,
     JOB("  minAvailable: 3\n  policies: [{event: PodFailed, action: RestartTask}]\n"
         "  tasks:\n" TASK("w", "2", "") TASK("x", "1", "")),
     {{0, "Running", 0, fail_pod, "j-w-1"}}},
    {"two pods of a task fail",
     NULL,
     JOB("  minAvailable: 3\n  policies: [{event: PodFailed, action: RestartTask}]\n"
         "  tasks:\n" TASK("w", "2", "") TASK("x", "1", "")),
     {{0, "Running", 0, fail_w_0_and_1, ""}}},
    {"two pods fail, each is restarted",
     NULL,
     JOB("  minAvailable: 2\n  policies: [{event: PodFailed, action: RestartPod}]\n"
         "  tasks:\n" TASK("w", "2", "")),
     {{0, "Running", 0, fail_w_0_and_1, ""}}},
    {"restart a partition",
     NULL,
     JOB("  minAvailable: 4\n  policies: [{event: PodFailed, action: RestartPartition}]\n"
         "  tasks:\n" PARTS),
     {{0, "Running", 0, fail_pod, "j-w-2"}}},
    {"a lost pod restarts the job",
     "jobs j.status.attempts[j-w-0 0]",
     JOB("  minAvailable: 2\n  policies: [{event: PodEvicted, action: RestartJob}]\n"
         "  tasks:\n" TASK("w", "2", "")),
     {{0, "Running", 0, lose_pod, "j-w-0"}}},
    {"a lost pod restarts its task",
     "jobs j.status.attempts[j-w-0 0]",
     JOB("  minAvailable: 3\n  policies: [{event: PodEvicted, action: RestartTask}]\n"
         "  tasks:\n" TASK("w", "2", "") TASK("x", "1", "")),
     {{0, "Running", 0, lose_pod, "j-w-0"}}},
    {"a completed task completes the job",
     NULL,
     JOB("  minAvailable: 3\n  policies: [{event: TaskCompleted, action: CompleteJob}]\n"
         "  tasks:\n" TASK("a", "2", "") TASK("b", "1", "")),
     {{0, "Running", 0, succeed_pod, "j-a-0"}, {0, "Running", 0, succeed_pod, "j-a-1"}}},
    {"suspend and resume",
     NULL,
     JOB("  minAvailable: 2\n  tasks:\n" TASK("w", "2", "")),
     {{0, "Running", 0, put, COMMAND("AbortJob")}, {0, "Aborted", 0, put, COMMAND("ResumeJob")}}},
    {"scale up and down",
     NULL,
     JOB("  minAvailable: 2\n  plugins: {svc: []}\n  tasks:\n" TASK("w", "2", "")),
     {{0, "Running", 0, change_job, "spec:\n  minAvailable: 3\n  tasks:\n" TASK("w", "3", "")},
      {3, "Running", 0, change_job, "spec:\n  minAvailable: 1\n  tasks:\n" TASK("w", "1", "")}}},
    {"dependencies",
     NULL,
     JOB("  minAvailable: 1\n  tasks:\n" TASK("a", "1", "")
             TASK("b", "1", "    dependsOn: {name: [a]}\n")),
     {{2, "Running", 0, succeed_pod, "j-a-0"}, {1, "Running", 0, succeed_pod, "j-b-0"}}},
    {"volumes",
     NULL,
     JOB("  minAvailable: 1\n"
         "  volumes:\n"
         "  - {mountPath: /a, volumeClaim: {accessModes: [ReadWriteOnce]}}\n"
         "  - {mountPath: /b, volumeClaim: {accessModes: [ReadWriteMany]}}\n"
         "  tasks:\n" TASK("w", "1", "")),
     {{0, "Running", 0, succeed_pod, "j-w-0"}}},
    {"plugins",
     NULL,
     JOB("  minAvailable: 1\n"
         "  policies: [{event: PodFailed, action: RestartJob}]\n"
         "  plugins: {svc: [], ssh: [--ssh-private-key=k, --ssh-public-key=p], env: []}\n"
         "  tasks:\n" TASK("w", "1", "")),
     {{0, "Running", 0, fail_pod, "j-w-0"}, {0, "Running", 1, succeed_pod, "j-w-0"}}},
    {"a preempted pod",
     NULL,
     JOB("  minAvailable: 1\n  policies: [{event: PodEvicted, action: RestartJob}]\n"
         "  tasks:\n" TASK("w", "1", "")),
     {{0, "Running", 0, preempt_pod, "j-w-0"}}},
};

/* ---- running a story ---- */

struct play {
    struct rig rig;
    struct fault_rig fault;
    const struct story *story;
    uint32_t deed;
};

static bool try_deed(struct play *p)
{
    const struct deed *d = &p->story->deeds[p->deed];
    const struct json *job = rig_get(&p->rig, API_JOB, "j");

    if (p->deed == HK_LEN(p->story->deeds) || !d->act ||
        !hk_str_is(json_str(json_at(job, "status.state.phase"), HK_STR("")), d->phase) ||
        json_int(json_at(job, "status.retryCount"), 0) != d->retry ||
        (d->running && json_int(json_at(job, "status.running"), 0) != d->running)) {
        return false;
    }
    p->deed++;
    d->act(&p->rig, d->what);
    return true;
}

/* Scheduler and nodes act first; the story's actions wait until they are done. */
static bool others_act(void *ctx)
{
    struct play *p = ctx;
    const uint64_t before = port_mem_rv(p->rig.mem);

    port_mem_each(p->rig.mem, api_kind(API_PODGROUP), rig_enqueue_one, &p->rig);
    port_mem_each(p->rig.mem, api_kind(API_POD), rig_reap_one, &p->rig);
    port_mem_each(p->rig.mem, api_kind(API_POD), rig_run_one, &p->rig);
    return port_mem_rv(p->rig.mem) != before || try_deed(p);
}

static bool play_to_the_end(struct play *p)
{
    const int64_t late_ns = RIG_START_NS + (int64_t)3600 * 1000000000;

    for (int i = 0; i < 20000; i++) {
        int64_t next_ns;

        if (fault_rig_step(&p->fault, &next_ns)) {
            continue;
        }
        if (next_ns == INT64_MAX) {
            return true;
        }
        if (next_ns > late_ns) {
            return false;
        }
        rig_set_now(&p->rig, next_ns);
    }
    return false;
}

/* ---- comparing final states ---- */

/* The cluster as sorted lines "kind name path: value", without values that differ between runs. */
struct dump {
    HK_VEC(char *) lines;
    struct hk_str claims[4]; /* generated names */
    uint32_t nclaim;
};

static bool is_fleeting(struct hk_str key)
{
    return hk_str_is(key, "uid") || hk_str_is(key, "resourceVersion") ||
           hk_str_ends(key, "Timestamp") || hk_str_ends(key, "Time") ||
           hk_str_is(key, "runningDuration");
}

static void add_word(const struct dump *d, struct hk_str word, struct hk_buf *out)
{
    for (uint32_t i = 0; i < d->nclaim; i++) {
        if (hk_str_ends(word, d->claims[i].s)) {
            hk_buf_addf(out, "<claim %u>", i);
            return;
        }
    }
    hk_buf_addstr(out, word);
}

static void dump_value(struct dump *d, const char *path, const struct json *v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf at = {0};

    for (uint32_t i = 0; v->type == JSON_OBJECT && i < v->len; i++) {
        if (!is_fleeting(v->members[i].key)) {
            hk_buf_clear(&at);
            hk_buf_addf(&at, "%s.", path);
            add_word(d, v->members[i].key, &at);
            dump_value(d, at.data, &v->members[i].value);
        }
    }
    /* Attempts that end together are listed in any order. */
    for (uint32_t i = 0; v->type == JSON_ARRAY && i < v->len; i++) {
        const struct json *pod = json_get(&v->items[i], "pod");

        hk_buf_clear(&at);
        hk_buf_addf(&at, "%s[", path);
        if (pod) {
            hk_buf_addf(&at, "%.*s %d]", HK_FMT(json_str(pod, HK_STR(""))),
                        (int)json_int(json_get(&v->items[i], "retry"), -1));
        } else {
            hk_buf_addf(&at, "%u]", i);
        }
        dump_value(d, at.data, &v->items[i]);
    }
    if (v->type == JSON_OBJECT || v->type == JSON_ARRAY) {
        return;
    }
    hk_buf_addf(&at, "%s: ", path);
    if (v->type == JSON_STRING) {
        add_word(d, (struct hk_str){v->s, v->len}, &at);
    } else {
        json_write(v, &at);
    }
    hk_vec_push(&d->lines, hk_strdup(at.data));
}

static void dump_one(void *ctx, const struct api_object *o)
{
    struct dump *d = ctx;
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    hk_buf_addf(&path, "%s ", o->kind->plural);
    add_word(d, o->name, &path);
    dump_value(d, path.data, &o->root);
}

static int cmp_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void note_claims(struct dump *d, const struct json *volumes, struct hk_arena *a)
{
    for (uint32_t i = 0; json_is(volumes, JSON_ARRAY) && i < volumes->len; i++) {
        const struct hk_str name =
            json_str(json_get(&volumes->items[i], "volumeClaimName"), HK_STR("unnamed"));

        d->claims[d->nclaim++] = hk_str(hk_arena_strndup(a, name.s, name.n));
    }
}

static void dump_world(struct rig *r, const char *unseen, struct hk_buf *out)
{
    static const enum api_kind_id kinds[] = {
        API_JOB,     API_POD,    API_PODGROUP, API_COMMAND,        API_CONFIGMAP,
        API_SERVICE, API_SECRET, API_PVC,      API_NETWORK_POLICY,
    };
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct dump d = {0};

    note_claims(&d, json_at(rig_get(r, API_JOB, "j"), "spec.volumes"), &a);
    for (unsigned k = 0; k < HK_LEN(kinds); k++) {
        port_mem_each(r->mem, api_kind(kinds[k]), dump_one, &d);
    }
    qsort(d.lines.at, d.lines.len, sizeof(d.lines.at[0]), cmp_lines);
    for (uint32_t i = 0; i < d.lines.len; i++) {
        if (!unseen || !hk_str_starts(hk_str(d.lines.at[i]), unseen)) {
            hk_buf_addf(out, "%s\n", d.lines.at[i]);
        }
        hk_free(d.lines.at[i]);
    }
    hk_vec_fini(&d.lines);
}

/* ---- the tests ---- */

/* Returns the number of calls; out gets the final state. seed: for many faults, else 0. */
static uint32_t play(const struct story *story, enum fault fault, uint32_t at, uint32_t seed,
                     struct hk_buf *out, struct hk_buf *struck)
{
    struct play p = {.story = story};
    uint32_t n;

    p.fault = (struct fault_rig){.rig = &p.rig, .others = others_act, .ctx = &p};
    fault_rig_open(&p.fault, job_rig_types, HK_LEN(job_rig_types), fault, at);
    p.fault.port.seed = seed;
    rig_put(&p.rig, QUEUE);
    rig_manager(&p.rig);
    rig_put(&p.rig, story->job);
    if (play_to_the_end(&p)) {
        dump_world(&p.rig, story->unseen, out);
    } else {
        hk_buf_addf(out, "never at rest: %s\n", rig_at(&p.rig, API_JOB, "j", "status"));
    }
    hk_buf_addstr(struck, hk_buf_str(&p.fault.port.log));
    n = p.fault.port.ncall;
    fault_rig_close(&p.fault);
    return n;
}

/* Prints the lines of `from` that `in` lacks. */
static void print_lines_missing(const char *title, const char *from, const char *in)
{
    while (*from) {
        const char *end = strchr(from, '\n');
        char *line = hk_strndup(from, (size_t)(end - from) + 1);

        if (!strstr(in, line)) {
            print_message("#   %s %s", title, line);
        }
        hk_free(line);
        from = end + 1;
    }
}

static uint32_t compare(const struct story *story, enum fault fault, uint32_t at, uint32_t seed,
                        const struct hk_buf *peace)
{
    HK_AUTO(hk_buf_fini) struct hk_buf world = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf struck = {0};

    (void)play(story, fault, at, seed, &world, &struck);
    if (strcmp(world.data, peace->data) == 0) {
        return 0;
    }
    print_message("# %s: call %u, seed %u: %s\n", story->name, at, seed,
                  struck.data ? struck.data : "");
    print_lines_missing("expected", peace->data, world.data);
    print_lines_missing("actual  ", world.data, peace->data);
    return 1;
}

static void test_story(void **state)
{
    enum { SEEDS = 6 };
    const struct story *story = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf peace = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf struck = {0};
    const uint32_t n = play(story, FAULT_NONE, 0, 0, &peace, &struck);
    uint32_t bad = 0;

    assert_false(hk_str_starts(hk_buf_str(&peace), "never"));
    for (uint32_t at = 1; at <= n; at++) {
        for (enum fault fault = FAULT_NONE + 1; fault < FAULT_NKINDS; fault++) {
            bad += compare(story, fault, at, 0, &peace);
        }
    }
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        bad += compare(story, FAULT_NONE, 0, seed, &peace);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    struct CMUnitTest tests[HK_LEN(stories)];

    for (unsigned i = 0; i < HK_LEN(stories); i++) {
        tests[i] = (struct CMUnitTest){
            .name = stories[i].name, .test_func = test_story, .initial_state = (void *)&stories[i]};
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/job-fault", tests, NULL, NULL);
}
