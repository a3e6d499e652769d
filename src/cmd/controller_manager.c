// SPDX-License-Identifier: Apache-2.0
// hekla controller-manager: the controllers against any API server, in the place of
// vc-controller-manager.
#include "cmd/daemon.h"
#include "cmd/gates.h"
#include "cmd/prober.h"

#include "base/log.h"
#include "controllers/ctl.h"
#include "controllers/metrics.h"

#define COMPONENT "vc-controller-manager"
#define HEALTHZ_ADDRESS ":11251"
#define LISTEN_ADDRESS ":8081"

enum { MAX_WORKERS = 100000 };

struct cm_opts {
    struct daemon_opts daemon;
    struct gates gates;
    HK_VEC(struct hk_str) controllers; /* the words of --controllers */
    HK_VEC(struct hk_str) scheduler_names;
    int64_t max_requeue;
    bool inherit_owner_annotations;
};

static const struct option_row options[] = {
    DAEMON_OPTIONS_API("50", "100"),
    {0, "controllers", "LIST", NULL,
     "Which controllers run: '*' all, NAME or +NAME this one, -NAME not this one; the first "
     "mention "
     "of a name decides (default *,-sharding-controller)."},
    {0, "scheduler-name", "NAME", NULL,
     "Pods of this scheduler get PodGroups when they have none (default volcano). May be given "
     "more than once."},
    {0, "max-requeue-num", "N", NULL,
     "How often something that fails is tried again before it is given up (default 15); negative: "
     "for ever."},
    {0, "inherit-owner-annotations", "[BOOL]", NULL,
     "PodGroups made for pods carry annotations of the pods' owner (default true)."},
    {0, "feature-gates", "LIST", NULL,
     "NAME=BOOL pairs: CronVolcanoJobSupport, PriorityClass, QueueCommandSync, VolcanoJobSupport "
     "and WorkLoadSupport matter here, and are on unless said otherwise."},
    DAEMON_OPTIONS_ELECTION(COMPONENT),
    DAEMON_OPTIONS_HTTP(HEALTHZ_ADDRESS, LISTEN_ADDRESS),
    {0, "worker-threads", "N", NULL,
     "This and the next ones are taken for Volcano's sake: one thread does all the work here."},
    {0, "worker-threads-for-cronjob", "N", NULL, "As above."},
    {0, "worker-threads-for-podgroup", "N", NULL, "As above."},
    {0, "worker-threads-for-queue", "N", NULL, "As above."},
    {0, "worker-threads-for-gc", "N", NULL, "As above."},
    {0, "scheduler-configs", "LIST", NULL,
     "This and the next ones are options of the sharding controller, which is not part of this "
     "program."},
    {0, "shard-sync-period", "DURATION", NULL, "As above."},
    {0, "enable-node-event-trigger", "[BOOL]", NULL, "As above."},
    {0, "sharding-configmap", "NAME", NULL, "As above."},
    {0, "sharding-configmap-namespace", "NAMESPACE", NULL, "As above."},
    DAEMON_OPTIONS_LOG,
};

/* ---- options ---- */

/* Words of a list; empty ones are left out. */
static bool next_word(struct hk_str *rest, struct hk_str *word)
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

static int take_controllers(struct cm_opts *o, const char *value, struct hk_err *err)
{
    struct hk_str rest = hk_str(value), word;

    while (next_word(&rest, &word)) {
        for (uint32_t i = 0; i < o->controllers.len && !hk_str_is(word, "*"); i++) {
            if (hk_str_eq(bare(o->controllers.at[i]), bare(word))) {
                return hk_fail(err, HK_EINVAL,
                               "controllers option %.*s cannot have both '-' and '+' prefixes",
                               HK_FMT(word));
            }
        }
        hk_vec_push(&o->controllers, word);
    }
    return 0;
}

static bool is_idle_option(const char *name)
{
    static const char *const names[] = {"scheduler-configs", "shard-sync-period",
                                        "enable-node-event-trigger", "sharding-configmap",
                                        "sharding-configmap-namespace"};

    for (size_t i = 0; i < HK_LEN(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct cm_opts *o = ctx;
    int64_t ignored;
    int rc;

    if (!row) {
        return daemon_take_word(value, err);
    }
    if (daemon_take(&o->daemon, row, value, &rc, err)) {
        return rc;
    }
    if (strcmp(row->name, "controllers") == 0) {
        return take_controllers(o, value, err);
    }
    if (strcmp(row->name, "feature-gates") == 0) {
        return gates_take(&o->gates, value, err);
    }
    if (strcmp(row->name, "scheduler-name") == 0) {
        hk_vec_push(&o->scheduler_names, hk_str(value));
        return 0;
    }
    if (strcmp(row->name, "max-requeue-num") == 0) {
        return daemon_take_int(row, value, INT32_MIN, INT32_MAX, &o->max_requeue, err);
    }
    if (strcmp(row->name, "inherit-owner-annotations") == 0) {
        return daemon_take_bool(row, value, &o->inherit_owner_annotations, err);
    }
    return is_idle_option(row->name) ? 0
                                     : daemon_take_int(row, value, 1, MAX_WORKERS, &ignored, err);
}

/* ---- which controllers ---- */

static bool is_named(const struct cm_opts *o, const char *name)
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

/* Gates without which a controller has nothing to do. */
static bool is_open(const struct cm_opts *o, const char *name)
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
        if (is_named(cm->o, all[i]->name) && is_open(cm->o, all[i]->name)) {
            hk_vec_push(&cm->types, all[i]);
        }
    }
}

/* Where the installer put the configuration: it says so in the environment, as Volcano's does. */
static void find_config(struct cm *cm)
{
    const char *ns = getenv("KUBE_POD_NAMESPACE"), *release = getenv("HELM_RELEASE_NAME");

    if (release && *release) {
        hk_buf_addf(&cm->config_name, "%s-controller-configmap", release);
    }
    cm->config_ns = hk_str(ns ? ns : "");
}

static void work_start(void *ctx)
{
    struct cm *cm = ctx;
    const struct cm_opts *o = cm->o;
    const struct ctl_conf conf = {
        .scheduler_names = o->scheduler_names.at,
        .nscheduler_name = o->scheduler_names.len,
        /* Given up at the first failure; 0 is "not said" there. */
        .max_requeue = o->max_requeue == 0 ? 1 : (int32_t)o->max_requeue,
        .no_inherit_owner_annotations = !o->inherit_owner_annotations,
        .no_queue_command_sync = !o->gates.on[GATE_QUEUE_COMMAND_SYNC],
        .no_workload_support = !o->gates.on[GATE_WORKLOAD_SUPPORT],
        .local_zone = "Local",
        .prober = cm->prober = cmd_prober_new(cm->daemon.loop),
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

static int64_t work_run(void *ctx)
{
    return manager_run(((struct cm *)ctx)->manager);
}

static bool work_drain(void *ctx)
{
    struct cm *cm = ctx;

    manager_drain(cm->manager);
    return manager_drained(cm->manager);
}

static void work_end(void *ctx)
{
    struct cm *cm = ctx;

    manager_free(cm->manager);
    metrics_free(cm->metrics);
    cmd_prober_free(cm->prober);
}

static void work_metrics(void *ctx, struct hk_buf *out)
{
    metrics_write(((struct cm *)ctx)->metrics, out);
}

static int controller_manager(void *ctx, struct hk_err *err)
{
    const struct cm_opts *o = ctx;
    struct cm cm = {.o = o};
    const struct daemon_work work = {.start = work_start,
                                     .run = work_run,
                                     .drain = work_drain,
                                     .end = work_end,
                                     .write_metrics = work_metrics,
                                     .ctx = &cm};
    int rc;

    choose_types(&cm);
    find_config(&cm);
    rc = daemon_open(&cm.daemon, &o->daemon, &work, err);
    rc = rc < 0 ? rc : daemon_run(&cm.daemon, err);
    daemon_close(&cm.daemon);
    hk_vec_fini(&cm.types);
    hk_buf_fini(&cm.config_name);
    return rc;
}

static int run(const struct verb *v, int argc, char **argv)
{
    struct cm_opts o = {.daemon = daemon_opts_default(v->name, COMPONENT),
                        .gates = gates_default(),
                        .max_requeue = 15,
                        .inherit_owner_annotations = true};

    o.daemon.healthz_address = HEALTHZ_ADDRESS;
    o.daemon.listen_address = LISTEN_ADDRESS;
    const int status = daemon_verb(v, argc, argv, take, controller_manager, &o, &o.daemon);
    hk_vec_fini(&o.controllers);
    hk_vec_fini(&o.scheduler_names);
    return status;
}

const struct verb verb_controller_manager = {
    .name = "controller-manager",
    .args = "",
    .about = "run Volcano's controllers against an API server",
    .options = options,
    .noption = HK_LEN(options),
    .text =
        "Runs Jobs and keeps up all that belongs to them, in the place of vc-controller-manager: "
        "against hekla apiserver, or in any cluster with Volcano's definitions. Options, ports, "
        "the lease and the metrics are Volcano's, so it can take the other's place as it is; "
        "options that mean nothing here are taken and ignored. A boolean option is on when it "
        "stands alone, and its value may only follow behind '='.\n"
        "With leader election, which is the default, any number may run and one works. Whoever "
        "cannot renew the lease in time writes nothing more and exits; the others take over once "
        "the lease has stood still for as long as it says. Controllers keep nothing of their own: "
        "whoever takes over finds all there is to know in the objects.\n"
        "Health and metrics are served from the start, also while another leads. When they are, "
        "one line on standard output tells on which ports.\n"
        "The first SIGTERM or SIGINT lets the requests under way end, for three seconds at most, "
        "and gives the lease back; the second ends the program at once.",
    .rest =
        "ENVIRONMENT\n"
        "       KUBE_POD_NAMESPACE  where the ConfigMap with the configuration of HyperNode\n"
        "                           discovery is (default volcano-system)\n"
        "       HELM_RELEASE_NAME   its name is this and -controller-configmap (default volcano)\n"
        "\n"
        "EXIT STATUS\n"
        "       0  ended by a signal\n"
        "       1  could not start, lost the lease, or was told to end twice; one line on "
        "standard\n"
        "          error says why\n"
        "\n"
        "EXAMPLES\n"
        "       Beside an API server of this program:\n"
        "           hekla apiserver --data-dir /tmp/api --listen 127.0.0.1:0 &\n"
        "           hekla controller-manager --kubeconfig /tmp/api/kubeconfig\n"
        "\n"
        "       All but two of the controllers, with metrics:\n"
        "           hekla controller-manager --kubeconfig FILE --enable-metrics \\\n"
        "               --controllers=*,-gc-controller,-jobflow-controller\n",
    .run = run,
};
