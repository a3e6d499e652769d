// SPDX-License-Identifier: Apache-2.0
// hekla controller-manager: runs the controllers against any API server, in place of
// vc-controller-manager.
#include "base/log.h"
#include "controllers/ctl.h"
#include "controllers/metrics.h"
#include "daemon/daemon.h"
#include "daemon/gates.h"
#include "daemon/prober.h"

#define COMPONENT "vc-controller-manager"
#define HEALTHZ_ADDRESS ":11251"
#define LISTEN_ADDRESS ":8081"

enum { MAX_WORKERS = 100000 };

/* The words of --controllers. */
struct controller_words {
    struct hk_str *at;
    uint32_t len, cap;
};

struct cm_opts {
    struct daemon_opts daemon;
    struct gates gates;
    struct controller_words controllers;
    struct option_list scheduler_names;
    int64_t max_requeue;
    bool inherit_owner_annotations;
};

/* ---- options ---- */

/* The next word of a list; skips empty ones. */
static bool controller_manager_next_word(struct hk_str *rest, struct hk_str *word)
{
    while (hk_str_cut(rest, ',', word)) {
        *word = hk_str_trim(*word);
        if (word->n > 0) {
            return true;
        }
    }
    return false;
}

static struct hk_str bare(struct hk_str word)
{
    const bool signed_ = word.n > 0 && (word.s[0] == '-' || word.s[0] == '+');

    return signed_ ? (struct hk_str){word.s + 1, word.n - 1} : word;
}

static int controllers_parse(void *at, const struct option_row *row, const char *value,
                             struct hk_err *err)
{
    struct controller_words *all = at;
    struct hk_str rest = hk_str(value), word;

    while (controller_manager_next_word(&rest, &word)) {
        for (uint32_t i = 0; i < all->len && !hk_str_is(word, "*"); i++) {
            if (hk_str_eq(bare(all->at[i]), bare(word))) {
                return hk_fail(err, HK_EINVAL,
                               "controllers option %.*s cannot have both '-' and '+' prefixes",
                               HK_FMT(word));
            }
        }
        hk_vec_push(all, word);
    }
    return 0;
}

static const struct option_row options[] = {
    DAEMON_OPTIONS_API(struct cm_opts, daemon, "50", "100"),
    ROW_CALL_OR(0, "controllers", "LIST", struct cm_opts, controllers, controllers_parse,
                "*,-sharding-controller",
                "The controllers to run: '*' means all, NAME or +NAME means this one, -NAME means "
                "not this one. The first mention of a name counts."),
    ROW_LIST(0, "scheduler-name", "NAME", struct cm_opts, scheduler_names, "volcano",
             "Make PodGroups for pods of this scheduler that have none. May be given more than "
             "once."),
    ROW_INT(0, "max-requeue-num", "N", struct cm_opts, max_requeue, INT32_MIN, INT32_MAX, "15",
            "Retry a failing object N times before giving up; a negative N never gives up."),
    ROW_BOOL("inherit-owner-annotations", struct cm_opts, inherit_owner_annotations, "true",
             "Copy annotations of a pod's owner to the PodGroup made for the pod."),
    ROW_CALL_OR(0, "feature-gates", "LIST", struct cm_opts, gates, gates_parse, "true for each",
                "NAME=BOOL pairs. CronVolcanoJobSupport, PriorityClass, QueueCommandSync, "
                "VolcanoJobSupport and WorkLoadSupport have an effect here."),
    DAEMON_OPTIONS_ELECTION(struct cm_opts, daemon, COMPONENT),
    DAEMON_OPTIONS_HTTP(struct cm_opts, daemon, HEALTHZ_ADDRESS, LISTEN_ADDRESS),
    ROW_IGNORED_INT("worker-threads", 1, MAX_WORKERS),
    ROW_IGNORED_INT("worker-threads-for-cronjob", 1, MAX_WORKERS),
    ROW_IGNORED_INT("worker-threads-for-podgroup", 1, MAX_WORKERS),
    ROW_IGNORED_INT("worker-threads-for-queue", 1, MAX_WORKERS),
    ROW_IGNORED_INT("worker-threads-for-gc", 1, MAX_WORKERS),
    ROW_IGNORED(OPTION_TEXT, "scheduler-configs", "LIST"),
    ROW_IGNORED(OPTION_TEXT, "shard-sync-period", "DURATION"),
    ROW_IGNORED(OPTION_BOOL, "enable-node-event-trigger", "BOOL"),
    ROW_IGNORED(OPTION_TEXT, "sharding-configmap", "NAME"),
    ROW_IGNORED(OPTION_TEXT, "sharding-configmap-namespace", "NAMESPACE"),
    ROW_INCLUDE(struct cm_opts, daemon, daemon_log_options),
    ROW_ARGUMENTS_CALL("2>&1", daemon_accept_word),
    ROW_END,
};

/* ---- which controllers ---- */

static bool controller_manager_is_named(const struct cm_opts *o, const char *name)
{
    bool all = o->controllers.len == 0;

    for (uint32_t i = 0; i < o->controllers.len; i++) {
        const struct hk_str word = o->controllers.at[i];

        if (hk_str_is(word, "*")) {
            all = true;
        } else if (hk_str_is(bare(word), name)) {
            return word.s[0] != '-';
        }
    }
    return all;
}

/* Whether the feature gates that the controller needs are on. */
static bool controller_manager_is_open(const struct cm_opts *o, const char *name)
{
    static const struct {
        const char *name;
        enum gate gate;
    } needs[] = {
        {"job-controller", GATE_VOLCANO_JOB_SUPPORT},
        {"cronjob-controller", GATE_VOLCANO_JOB_SUPPORT},
        {"cronjob-controller", GATE_CRON_VOLCANO_JOB_SUPPORT},
    };

    for (size_t i = 0; i < HK_LEN(needs); i++) {
        if (strcmp(name, needs[i].name) == 0 && !o->gates.on[needs[i].gate]) {
            return false;
        }
    }
    return true;
}

/* ---- working ---- */

struct cm {
    const struct cm_opts *o;
    struct daemon daemon;
    HK_VEC(const struct ctl_type *) types;
    HK_VEC(struct hk_str) names; /* of schedulers */
    struct hk_str config_ns;
    struct hk_buf config_name;
    struct prober *prober;
    struct manager *manager;
    struct metrics *metrics;
};

static void choose_types(struct cm *cm)
{
    uint32_t n;
    const struct ctl_type *const *all = manager_types(&n);

    for (uint32_t i = 0; i < cm->o->controllers.len; i++) {
        const struct hk_str word = cm->o->controllers.at[i];

        if (word.s[0] != '-' && !hk_str_is(word, "*") && !manager_type(bare(word))) {
            hk_log(HK_LOG_WARN, "no such controller here", "name=%.*s", HK_FMT(bare(word)));
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (controller_manager_is_named(cm->o, all[i]->name) &&
            controller_manager_is_open(cm->o, all[i]->name)) {
            hk_vec_push(&cm->types, all[i]);
        }
    }
}

/* The ConfigMap that the installer names in the environment, as Volcano's does. */
static void find_config(struct cm *cm)
{
    const char *ns = getenv("KUBE_POD_NAMESPACE"), *release = getenv("HELM_RELEASE_NAME");

    if (release && *release) {
        hk_buf_addf(&cm->config_name, "%s-controller-configmap", release);
    }
    cm->config_ns = hk_str(ns ? ns : "");
}

static void controller_manager_work_start(void *ctx)
{
    struct cm *cm = ctx;
    const struct cm_opts *o = cm->o;
    const struct ctl_conf conf = {
        .scheduler_names = cm->names.at,
        .nscheduler_name = cm->names.len,
        /* 0 means no retries on the command line, but the default in ctl_conf. */
        .max_requeue = o->max_requeue == 0 ? 1 : (int32_t)o->max_requeue,
        .no_inherit_owner_annotations = !o->inherit_owner_annotations,
        .no_queue_command_sync = !o->gates.on[GATE_QUEUE_COMMAND_SYNC],
        .no_workload_support = !o->gates.on[GATE_WORKLOAD_SUPPORT],
        .local_zone = "Local",
        .prober = cm->prober = loop_prober_new(cm->daemon.loop),
        .config_ns = cm->config_ns,
        .config_name = hk_buf_str(&cm->config_name),
    };

    cm->manager = manager_new(&(struct manager_opts){.port = cm->daemon.port,
                                                     .clock = cm->daemon.clock,
                                                     .rand = &cm->daemon.rand,
                                                     .conf = conf,
                                                     .types = cm->types.at,
                                                     .ntype = cm->types.len,
                                                     .component = HK_STR(COMPONENT),
                                                     .shared_port = true});
    cm->metrics = metrics_new(cm->manager);
}

static int64_t controller_manager_work_run(void *ctx)
{
    return manager_run(((struct cm *)ctx)->manager);
}

static bool controller_manager_work_drain(void *ctx)
{
    struct cm *cm = ctx;

    manager_drain(cm->manager);
    return manager_drained(cm->manager);
}

static void controller_manager_work_end(void *ctx)
{
    struct cm *cm = ctx;

    manager_free(cm->manager);
    metrics_free(cm->metrics);
    loop_prober_free(cm->prober);
}

static void controller_manager_work_metrics(void *ctx, struct hk_buf *out)
{
    metrics_write(((struct cm *)ctx)->metrics, out);
}

static int controller_manager(void *ctx, struct hk_err *err)
{
    const struct cm_opts *o = ctx;
    struct cm cm = {.o = o};
    const struct daemon_work work = {.start = controller_manager_work_start,
                                     .run = controller_manager_work_run,
                                     .drain = controller_manager_work_drain,
                                     .end = controller_manager_work_end,
                                     .write_metrics = controller_manager_work_metrics,
                                     .ctx = &cm};
    int rc;

    choose_types(&cm);
    for (uint32_t i = 0; i < o->scheduler_names.len; i++) {
        hk_vec_push(&cm.names, hk_str(o->scheduler_names.at[i]));
    }
    find_config(&cm);
    rc = daemon_open(&cm.daemon, &o->daemon, &work, err);
    if (rc == 0) {
        rc = daemon_run(&cm.daemon, err);
    }
    daemon_close(&cm.daemon);
    hk_vec_fini(&cm.types);
    hk_vec_fini(&cm.names);
    hk_buf_fini(&cm.config_name);
    return rc;
}

static int controller_manager_run(const struct verb *v, int argc, char **argv)
{
    struct cm_opts o = {.daemon = {.name = v->name, .component = COMPONENT},
                        .gates = gates_default()};
    const int status = daemon_verb(v, argc, argv, &o, &o.daemon, controller_manager);

    hk_vec_fini(&o.controllers);
    hk_vec_fini(&o.scheduler_names);
    return status;
}

const struct verb verb_controller_manager = {
    .name = "controller-manager",
    .args = "",
    .about = "run the controllers, in place of vc-controller-manager",
    .options = options,
    .text = "Creates and watches what belongs to Jobs, queues, flows and cron jobs, in place of "
            "vc-controller-manager: with hekla apiserver, or in any cluster that has Volcano's "
            "custom resources. Options, ports, lease and metrics are those of "
            "vc-controller-manager, so the program can replace it without changes. A boolean "
            "option is true when it is given alone; its value can only follow '='.\n"
            "With leader election, which is the default, several processes may run and one works. "
            "A leader that cannot renew the lease in time writes nothing more and exits. Another "
            "process takes over when the lease has expired, and reads everything from the "
            "objects: controllers keep no state of their own.\n"
            "Health and metrics are served from the start, also by processes that do not lead. "
            "When both are served, one line on standard output names the ports.\n"
            "The first SIGTERM or SIGINT waits up to three seconds for requests in progress and "
            "then releases the lease; the second ends the program at once.",
    .rest = "ENVIRONMENT\n"
            "       KUBE_POD_NAMESPACE  the namespace of the ConfigMap that configures HyperNode\n"
            "                           discovery (default volcano-system)\n"
            "       HELM_RELEASE_NAME   the name of that ConfigMap without -controller-configmap\n"
            "                           (default volcano)\n"
            "\n"
            "EXIT STATUS\n"
            "       0  ended by a signal\n"
            "       1  could not start, lost the lease, or got a second signal; one line on\n"
            "          standard error says why\n"
            "\n"
            "EXAMPLES\n"
            "       Beside an API server of this program:\n"
            "           hekla apiserver --data-dir /tmp/api --listen 127.0.0.1:0 &\n"
            "           hekla controller-manager --kubeconfig /tmp/api/kubeconfig\n"
            "\n"
            "       All but two of the controllers, with metrics:\n"
            "           hekla controller-manager --kubeconfig FILE --enable-metrics \\\n"
            "               --controllers=*,-gc-controller,-jobflow-controller\n",
    .run = controller_manager_run,
};
