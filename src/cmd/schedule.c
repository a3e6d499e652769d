// SPDX-License-Identifier: Apache-2.0
// hekla schedule: manifests in, decisions out, nothing touched.
#include "cmd/verb.h"

#include "api/names.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/vec.h"
#include "codec/timefmt.h"
#include "sim/report.h"

#include <unistd.h>

enum { MAX_INPUT_BYTES = 1 << 30, MAX_CYCLES = 1000000 };

struct request {
    HK_VEC(const char *) files;
    const char *conf; /* NULL: built in */
    int64_t cycles;
    int64_t now_ns;
    uint64_t seed;
    enum shard_mode shard_mode;
    const char *shard_name;
    bool json;
};

static const struct option_row options[] = {
    {'f', "filename", "FILE", NULL,
     "Read objects from FILE, '-' for standard input. May be given many times; a file may hold "
     "many "
     "YAML documents, JSON values and lists, such as 'kubectl get -o yaml' prints."},
    {0, "conf", "FILE", NULL,
     "The scheduler configuration, the same file vc-scheduler reads with --scheduler-conf. Without "
     "it the built-in default is used: enqueue, allocate, backfill."},
    {0, "cycles", "N", NULL,
     "Run N scheduling cycles (default 1). Between two of them bound pods start to run, evicted "
     "pods go away and a second passes."},
    {0, "now", "TIME", NULL,
     "Pretend it is TIME, such as 2026-01-02T15:04:05Z. The default is the current time. Give it "
     "for "
     "reports that can be compared."},
    {0, "seed", "N", NULL, "Seed of the scheduler's few random choices (default 1)."},
    {0, "scheduler-sharding-mode", "MODE", "none hard soft",
     "Whether the scheduler shares the nodes with others: none (default) is alone, hard uses the "
     "nodes "
     "of its NodeShard only, soft prefers them."},
    {0, "scheduler-sharding-name", "NAME", NULL,
     "The NodeShard of this scheduler (default volcano)."},
    {'o', "output", "FORMAT", "text json", "text for people (default) or json for programs."},
};

static int take_number(const char *value, const char *what, int64_t min, int64_t max, int64_t *ret,
                       struct hk_err *err)
{
    if (!hk_str_int(hk_str(value), ret) || *ret < min || *ret > max) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want %lld to %lld", what, value,
                       (long long)min, (long long)max);
    }
    return 0;
}

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct request *q = ctx;
    int64_t n;
    int rc = 0;

    if (!row) {
        return hk_fail(err, HK_EINVAL, "unexpected '%s', files are given with -f", value);
    }
    if (strcmp(row->name, "filename") == 0) {
        hk_vec_push(&q->files, value);
    } else if (strcmp(row->name, "conf") == 0) {
        q->conf = value;
    } else if (strcmp(row->name, "cycles") == 0) {
        rc = take_number(value, row->name, 1, MAX_CYCLES, &q->cycles, err);
    } else if (strcmp(row->name, "now") == 0) {
        rc = time_parse(hk_str(value), &q->now_ns, err);
        rc = rc < 0 ? hk_wrap(err, rc, "option --now") : 0;
    } else if (strcmp(row->name, "seed") == 0) {
        rc = take_number(value, row->name, 0, INT64_MAX, &n, err);
        q->seed = rc == 0 ? (uint64_t)n : 0;
    } else if (strcmp(row->name, "scheduler-sharding-mode") == 0) {
        q->shard_mode = strcmp(value, "hard") == 0   ? SHARD_HARD
                        : strcmp(value, "soft") == 0 ? SHARD_SOFT
                                                     : SHARD_NONE;
    } else if (strcmp(row->name, "scheduler-sharding-name") == 0) {
        q->shard_name = value;
    } else {
        q->json = strcmp(value, "json") == 0;
    }
    return rc;
}

static int read_conf(const struct request *q, struct conf **ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int rc;

    if (!q->conf) {
        return conf_parse(hk_str(conf_default_text), ret, err);
    }
    rc = hk_read_file(q->conf, MAX_INPUT_BYTES, &text, err);
    if (rc < 0) {
        return rc;
    }
    rc = conf_parse(hk_buf_str(&text), ret, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "%s", q->conf);
    }
    for (uint32_t k = 0; k < (*ret)->warnings.len; k++) {
        verb_complain("warning: %s: line %u: %s", q->conf, (*ret)->warnings.at[k].line,
                      (*ret)->warnings.at[k].text);
    }
    return 0;
}

static int load(struct cluster *c, const struct request *q, struct hk_err *err)
{
    for (uint32_t k = 0; k < q->files.len; k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        const char *path = q->files.at[k];
        int rc = hk_read_file(path, MAX_INPUT_BYTES, &text, err);
        if (rc == 0) {
            rc = cluster_load(c, hk_buf_str(&text), strcmp(path, "-") == 0 ? "stdin" : path, err);
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int work(const struct request *q, struct cluster *c, struct hk_err *err)
{
    HK_AUTO(report_before_fini) struct report_before before = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    int rc = load(c, q, err);

    report_before(&before, c);
    for (int64_t k = 0; k < q->cycles && rc == 0; k++) {
        rc = cluster_cycle(c, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (q->json) {
        report_json(c, &out);
    } else {
        report_text(c, &before, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"), &out);
    }
    return verb_print(&out) == EXIT_OK ? 0 : -HK_EIO;
}

static int schedule(const struct request *q)
{
    struct cluster_opts o = {
        .now_ns = q->now_ns,
        .step_ns = 1000000000,
        .seed = q->seed,
        .shard_mode = q->shard_mode,
        .shard_name = q->shard_mode == SHARD_NONE ? HK_STR("") : hk_str(q->shard_name),
    };
    struct conf *conf = NULL;
    struct hk_err err = {0};
    struct cluster c;
    int status = EXIT_OK;

    if (read_conf(q, &conf, &err) < 0) {
        return verb_complain("%s", err.text);
    }
    cluster_init(&c, conf, &o);
    if (work(q, &c, &err) < 0) {
        status = err.text[0] != '\0' ? verb_complain("%s", err.text) : EXIT_BAD;
    } else if (report_has_problems(&c)) {
        status = EXIT_PROBLEMS;
    }
    cluster_fini(&c);
    conf_free(conf);
    return status;
}

static int run(const struct verb *v, int argc, char **argv)
{
    struct request q = {.cycles = 1, .seed = 1, .shard_name = API_SCHEDULER_NAME};
    int status;

    q.now_ns = hk_clock_system()->wall_ns(hk_clock_system());
    const int rc = verb_parse(v, argc, argv, take, &q);
    if (rc != 0) {
        status = rc < 0 ? EXIT_BAD : EXIT_OK;
    } else if (q.files.len == 0) {
        status = verb_complain("schedule: no input, want -f FILE (see 'hekla help schedule')");
    } else {
        status = schedule(&q);
    }
    hk_vec_fini(&q.files);
    return status;
}

const struct verb verb_schedule = {
    .name = "schedule",
    .args = "-f FILE",
    .about = "show what the scheduler would do with a set of manifests",
    .options = options,
    .noption = HK_LEN(options),
    .text =
        "The dry run that Volcano users have always wished for: takes nodes, queues, PodGroups and "
        "pods from files, runs the real scheduler over them, and tells which pod would go to which "
        "node, who would be evicted for whom, and why everyone else waits. No cluster is needed "
        "and "
        "nothing is changed anywhere. The same input gives the same answer on any machine.\n"
        "Pods are considered when their schedulerName is volcano; others only fill their nodes. A "
        "pod that names no PodGroup gets one of minMember 1, called podgroup-UID or podgroup-NAME, "
        "as the PodGroup controller would make it. Volcano Jobs are not expanded into pods: they "
        "are listed as ignored.\n"
        "An object that cannot be taken is reported with file and line, and everything else is "
        "scheduled without it.",
    .rest =
        "OUTPUT\n"
        "       With -o json one object with these keys, lists all:\n"
        "\n"
        "       binds       pod, node, cycle\n"
        "       evictions   pod, for (the PodGroup it makes room for), action, cycle\n"
        "       pipelined   pod, node: waits for room that is being released\n"
        "       podGroups   name, phase, conditions\n"
        "       queues      name, allocated, deserved\n"
        "       pending     pod, reason, message\n"
        "       problems    object, file, line, message\n"
        "       ignored     object, file, line, message\n"
        "\n"
        "       Pods and PodGroups are written namespace/name.\n"
        "\n"
        "EXIT STATUS\n"
        "       0  everything was read and scheduled, or waits for a reason that is told\n"
        "       1  bad usage, or input that cannot be read; one line on standard error says why\n"
        "       2  some objects were refused, the rest was scheduled\n"
        "\n"
        "EXAMPLES\n"
        "       Would this job start right now?\n"
        "           kubectl get nodes,pods,podgroups,queues -A -o yaml >cluster.yaml\n"
        "           hekla schedule -f cluster.yaml -f new-job.yaml\n"
        "\n"
        "       What would a configuration with preemption do?\n"
        "           hekla schedule -f cluster.yaml --conf preempt.yaml --cycles 3\n"
        "\n"
        "       Which pods wait, and why?\n"
        "           hekla schedule -f - -o json <cluster.yaml | jq -r '.pending[].message'\n",
    .run = run,
};
