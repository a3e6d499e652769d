// SPDX-License-Identifier: Apache-2.0
// hekla schedule: reads manifests and prints scheduling decisions, without a cluster.
#include "api/names.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/vec.h"
#include "cli/verb.h"
#include "codec/timefmt.h"
#include "sim/report.h"

#include <unistd.h>

enum { MAX_INPUT_BYTES = 1 << 30, MAX_CYCLES = 1000000 };

struct request {
    struct option_list files;
    const char *conf; /* NULL: built in */
    int64_t cycles;
    int64_t now_ns;
    uint64_t seed;
    enum shard_mode shard_mode;
    const char *shard_name;
    struct verb_output output;
};

static int schedule_parse_now(void *at, const struct option_row *row, const char *value,
                              struct hk_err *err)
{
    const int rc = time_parse(hk_str(value), at, err);

    return rc < 0 ? hk_wrap(err, rc, "option --%s", row->name) : 0;
}

static const struct option_row options[] = {
    ROW_LIST('f', "filename", "FILE", struct request, files, NULL,
             "Read objects from FILE, - for standard input. May be given more than once. A file "
             "may hold many YAML documents, JSON values and lists, such as 'kubectl get -o yaml' "
             "prints."),
    ROW_TEXT_OR(0, "conf", "FILE", struct request, conf,
                "the built-in configuration with the actions enqueue, allocate and backfill",
                "The configuration of the scheduler, the file that vc-scheduler reads with "
                "--scheduler-conf."),
    ROW_INT(0, "cycles", "N", struct request, cycles, 1, MAX_CYCLES, "1",
            "Run N scheduling cycles. Between two of them bound pods start to run, evicted pods "
            "disappear and a second passes."),
    ROW_CALL_OR(0, "now", "TIME", struct request, now_ns, schedule_parse_now, "the current time",
                "Pretend that it is TIME, such as 2026-01-02T15:04:05Z, for reports that can be "
                "compared."),
    ROW_INT(0, "seed", "N", struct request, seed, 0, INT64_MAX, "1",
            "The seed of the scheduler's few random choices."),
    ROW_CHOICE(0, "scheduler-sharding-mode", "MODE", struct request, shard_mode, "none hard soft",
               "none",
               "How to use nodes outside the own NodeShard: none ignores NodeShards, hard never "
               "uses such nodes, soft uses them as second choice."),
    ROW_TEXT(0, "scheduler-sharding-name", "NAME", struct request, shard_name, API_SCHEDULER_NAME,
             "The name of the own NodeShard."),
    ROW_INCLUDE(struct request, output, verb_output_json_options),
    ROW_ARGUMENTS_CALL("FILE", verb_refuse_file),
    ROW_END,
};

static int schedule_read_conf(const struct request *q, struct conf **ret, struct hk_err *err)
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

static int schedule_load(struct cluster *c, const struct request *q, struct hk_err *err)
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

static int schedule_run_cycles(const struct request *q, struct cluster *c, struct hk_err *err)
{
    HK_AUTO(report_before_fini) struct report_before before = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    int rc = schedule_load(c, q, err);

    report_before(&before, c);
    for (int64_t k = 0; k < q->cycles && rc == 0; k++) {
        rc = cluster_cycle(c, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (q->output.as == OUTPUT_JSON) {
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

    if (schedule_read_conf(q, &conf, &err) < 0) {
        return verb_complain("%s", err.text);
    }
    cluster_init(&c, conf, &o);
    if (schedule_run_cycles(q, &c, &err) < 0) {
        status = err.text[0] != '\0' ? verb_complain("%s", err.text) : EXIT_BAD;
    } else if (report_has_problems(&c)) {
        status = EXIT_PROBLEMS;
    }
    cluster_fini(&c);
    conf_free(conf);
    return status;
}

static int schedule_run(const struct verb *v, int argc, char **argv)
{
    struct request q = {0};
    int status;

    q.now_ns = hk_clock_system()->wall_ns(hk_clock_system());
    const int rc = verb_parse(v, argc, argv, &q);
    if (rc != 0) {
        status = rc < 0 ? EXIT_BAD : EXIT_OK;
    } else if (q.files.len == 0) {
        status =
            verb_complain("schedule: no input, give it with -f FILE (see 'hekla help schedule')");
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
    .text = "A dry run of the scheduler: reads nodes, queues, PodGroups and pods from files, runs "
            "the real scheduler over them, and shows which pod would go to which node, which pods "
            "would be evicted for which, and why the others wait. No cluster is needed and "
            "nothing is changed anywhere. The same input gives the same answer on any machine.\n"
            "Pods are scheduled when their schedulerName is volcano; others only occupy their "
            "nodes. A pod that names no PodGroup gets one of minMember 1, named podgroup-UID or "
            "podgroup-NAME, as the PodGroup controller would create it. Volcano Jobs are not "
            "expanded into pods: they are listed as ignored.\n"
            "An object that cannot be read is reported with file and line, and everything else is "
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
        "       0  everything was read, and is scheduled or waits for a printed reason\n"
        "       1  bad usage, or input that cannot be read; one line on standard error says why\n"
        "       2  some objects were refused, the rest was scheduled\n"
        "\n"
        "EXAMPLES\n"
        "       Would this job start right now?\n"
        "           kubectl get nodes,pods,podgroups,queues -A -o yaml >cluster.yaml\n"
        "           hekla schedule -f cluster.yaml -f new-pods.yaml\n"
        "\n"
        "       What would a configuration with preemption do?\n"
        "           hekla schedule -f cluster.yaml --conf preempt.yaml --cycles 3\n"
        "\n"
        "       Which pods wait, and why?\n"
        "           hekla schedule -f - -o json <cluster.yaml | jq -r '.pending[].message'\n",
    .run = schedule_run,
};
