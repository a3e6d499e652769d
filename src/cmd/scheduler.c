// SPDX-License-Identifier: Apache-2.0
// hekla scheduler: runs the scheduler against any API server, in place of vc-scheduler.
#include "base/file.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/gates.h"
#include "net/files.h"
#include "scheduler/conf.h"
#include "scheduler/loop.h"

#include <signal.h>

#define COMPONENT "volcano" /* the lease's name, as in vc-scheduler */
#define HEALTHZ_ADDRESS ":11251"
#define LISTEN_ADDRESS ":8080"
#define QPS "2000"
/* No condition earlier than this: the gang's pods may still be created. */
#define REASON_WAIT_NS ((int64_t)1000 * 1000 * 1000)
/* A longer session pauses to handle new events and renew the lease. */
#define SESSION_BUDGET_NS ((int64_t)1000 * 1000 * 1000)

enum { MAX_NODES = 1000000 };

struct scheduler_opts {
    struct daemon_opts daemon;
    struct gates gates;
    struct option_list scheduler_names;
    HK_VEC(struct loop_label) node_labels;
    const char *conf, *default_queue, *shard_name, *dump_dir;
    int64_t min_feasible, min_percentage, percentage;
    enum shard_mode shard_mode;
    bool no_default_conf, dump;
};

/* ---- options ---- */

/* Skips malformed entries, as vc-scheduler does. */
static int scheduler_parse_selector(void *at, const struct option_row *row, const char *value,
                                    struct hk_err *err)
{
    struct scheduler_opts *o = at;
    struct hk_str rest = hk_str(value), word, key;

    while (hk_str_cut(&rest, ',', &word)) {
        word = hk_str_trim(word);
        if (hk_str_cut(&word, ':', &key) && key.n > 0 && word.n > 0) {
            hk_vec_push(&o->node_labels, ((struct loop_label){key, word}));
        }
    }
    return 0;
}

static int scheduler_parse_plugins_dir(void *at, const struct option_row *row, const char *value,
                                       struct hk_err *err)
{
    if (*value) {
        hk_log(HK_LOG_WARN, "plugins written in Go cannot be loaded", "plugins-dir=%s", value);
    }
    return 0;
}

static const struct option_row options[] = {
    DAEMON_OPTIONS_API(struct scheduler_opts, daemon, QPS, QPS),
    ROW_TEXT_OR(0, "scheduler-conf", "FILE", struct scheduler_opts, conf,
                "the built-in configuration",
                "The configuration: actions, plugins and their arguments. It is read again when "
                "its directory changes; an invalid one is reported and the last valid one stays "
                "in force."),
    ROW_BOOL("disable-default-scheduler-config", struct scheduler_opts, no_default_conf, "false",
             "Exit if the configuration is missing or invalid at the start instead of using the "
             "built-in one."),
    ROW_LIST(0, "scheduler-name", "NAME", struct scheduler_opts, scheduler_names, "volcano",
             "Schedule the pods that name this scheduler. May be given more than once."),
    ROW_TEXT(0, "default-queue", "NAME", struct scheduler_opts, default_queue, "default",
             "The queue of PodGroups that name none. It is created when it is missing."),
    ROW_CALL_ALL(
        0, "node-selector", "LIST", scheduler_parse_selector, NULL,
        "Use only nodes with one of these labels, KEY:VALUE,KEY:VALUE. May be given more than "
        "once."),
    ROW_INT(0, "minimum-feasible-nodes", "N", struct scheduler_opts, min_feasible, 0, MAX_NODES,
            "100", "Choose among N nodes that fit; do not look for more."),
    ROW_INT(0, "minimum-percentage-nodes-to-find", "N", struct scheduler_opts, min_percentage, 0,
            MAX_NODES, "5", "Look at N percent of the nodes at least."),
    ROW_INT(0, "percentage-nodes-to-find", "N", struct scheduler_opts, percentage, INT32_MIN,
            MAX_NODES, "0",
            "Look at N percent of the nodes. With 0 or less the share shrinks as the cluster "
            "grows; 100 looks at all nodes."),
    ROW_CHOICE(0, "scheduler-sharding-mode", "MODE", struct scheduler_opts, shard_mode,
               "none hard soft", "none",
               "How to use nodes outside the own NodeShard: none ignores NodeShards, hard never "
               "uses such nodes, soft uses them as second choice."),
    ROW_TEXT(0, "scheduler-sharding-name", "NAME", struct scheduler_opts, shard_name, "volcano",
             "The name of the own NodeShard."),
    ROW_CALL_OR(0, "feature-gates", "LIST", struct scheduler_opts, gates, gates_parse,
                "SchedulingGatesQueueAdmission=false",
                "NAME=BOOL pairs. Only SchedulingGatesQueueAdmission has an effect here."),
    ROW_BOOL("cache-dumper", struct scheduler_opts, dump, "true",
             "SIGUSR1 writes the scheduler's view of the cluster to a file, SIGUSR2 writes its "
             "sums to the log."),
    ROW_TEXT(0, "cache-dump-dir", "DIR", struct scheduler_opts, dump_dir, "/tmp",
             "The directory for that file, snapshot-<seconds since 1970>.json."),
    DAEMON_OPTIONS_ELECTION(struct scheduler_opts, daemon, COMPONENT),
    DAEMON_OPTIONS_HTTP(struct scheduler_opts, daemon, HEALTHZ_ADDRESS, LISTEN_ADDRESS),
    ROW_CALL_ALL(0, "plugins-dir", "DIR", scheduler_parse_plugins_dir, NULL,
                 "No effect besides a warning: plugins written in Go cannot be loaded."),
    ROW_IGNORED(OPTION_DURATION, "schedule-period", "DURATION"),
    ROW_IGNORED(OPTION_DURATION, "resync-period", "DURATION"),
    ROW_IGNORED(OPTION_DURATION, "resource-sync-timeout", "DURATION"),
    ROW_IGNORED_INT("node-worker-threads", INT32_MIN, INT32_MAX),
    ROW_IGNORED_INT("gate-removal-worker-num", INT32_MIN, INT32_MAX),
    ROW_IGNORED(OPTION_BOOL, "priority-class", "BOOL"),
    ROW_IGNORED(OPTION_BOOL, "csi-storage", "BOOL"),
    ROW_IGNORED(OPTION_BOOL, "enable-pprof", "BOOL"),
    ROW_IGNORED(OPTION_TEXT, "ignored-provisioners", "LIST"),
    ROW_INCLUDE(struct scheduler_opts, daemon, daemon_log_options),
    ROW_ARGUMENTS_CALL("2>&1", daemon_accept_word),
    ROW_END,
};

/* ---- working ---- */

struct scheduler {
    const struct scheduler_opts *o;
    HK_VEC(struct hk_str) names; /* of schedulers */
    struct daemon daemon;
    struct loop *loop;
    struct net_files *conf_file; /* NULL: no file */
};

static struct loop_opts loop_opts(const struct scheduler *s)
{
    const struct scheduler_opts *o = s->o;
    struct session_opts session = SESSION_OPTS_DEFAULT;

    session.min_feasible = (uint32_t)o->min_feasible;
    session.min_percentage = (uint32_t)o->min_percentage;
    session.percentage = (uint32_t)HK_MAX(o->percentage, 0);
    session.shard_mode = o->shard_mode;
    session.budget_ns = SESSION_BUDGET_NS;
    session.open_gates = o->gates.on[GATE_SCHEDULING_GATES_QUEUE_ADMISSION];
    return (struct loop_opts){
        .port = s->daemon.port,
        .clock = s->daemon.clock,
        .reason_wait_ns = REASON_WAIT_NS,
        .conf_path = o->conf,
        .scheduler_names = s->names.at,
        .nscheduler_name = s->names.len,
        .node_labels = o->node_labels.at,
        .nnode_label = o->node_labels.len,
        .default_queue = hk_str(o->default_queue),
        .shard_name = hk_str(session.shard_mode == SHARD_NONE ? "" : o->shard_name),
        .session = session,
    };
}

static void scheduler_on_conf(void *ctx)
{
    struct scheduler *s = ctx;

    loop_reload_conf(s->loop);
    daemon_wake(&s->daemon);
}

static void scheduler_work_start(void *ctx)
{
    struct scheduler *s = ctx;
    const struct loop_opts lo = loop_opts(s);
    struct hk_err err = {0};
    const int rc = loop_new(&lo, &s->loop, &err);

    hk_assert(rc == 0); /* can only fail with a record to open */
    if (s->o->conf && net_files_new(&(struct net_files_opts){.loop = s->daemon.loop,
                                                             .paths = &s->o->conf,
                                                             .npaths = 1,
                                                             .changed = scheduler_on_conf,
                                                             .ctx = s},
                                    &s->conf_file, &err) < 0) {
        hk_log(HK_LOG_WARN, "cannot watch the configuration file: changes have no effect",
               "err=\"%s\"", err.text);
    }
}

static int64_t scheduler_work_run(void *ctx)
{
    struct scheduler *s = ctx;
    int64_t wait_ns;

    loop_step(s->loop, &wait_ns);
    return wait_ns == INT64_MAX ? INT64_MAX : net_loop_now_ns(s->daemon.loop) + wait_ns;
}

static bool scheduler_work_drain(void *ctx)
{
    struct scheduler *s = ctx;

    loop_drain(s->loop);
    return loop_stats(s->loop).backlog == 0;
}

static void scheduler_work_end(void *ctx)
{
    struct scheduler *s = ctx;

    net_files_free(s->conf_file);
    loop_free(s->loop);
}

static void scheduler_work_metrics(void *ctx, struct hk_buf *out)
{
    loop_write_metrics(((struct scheduler *)ctx)->loop, out);
}

static void dump(struct scheduler *s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0}, path = {0};
    struct hk_err err = {0};
    const int64_t now_s = s->daemon.clock->wall_ns(s->daemon.clock) / (1000 * 1000 * 1000);

    hk_buf_addf(&path, "%s/snapshot-%lld.json", s->o->dump_dir, (long long)now_s);
    loop_dump(s->loop, &out);
    if (hk_write_file(path.data, hk_buf_str(&out), &err) < 0) {
        hk_log(HK_LOG_ERROR, "cannot write the snapshot", "err=\"%s\"", err.text);
    } else {
        hk_log(HK_LOG_INFO, "snapshot written", "path=%s", path.data);
    }
}

static void scheduler_work_show(void *ctx, int signo)
{
    struct scheduler *s = ctx;

    if (!s->o->dump) {
        hk_log(HK_LOG_INFO, "--cache-dumper is off", "signal=%d", signo);
    } else if (signo == SIGUSR1) {
        dump(s);
    } else {
        loop_log_summary(s->loop);
    }
}

/* With --disable-default-scheduler-config the file must be valid. */
static int check_conf(const struct scheduler_opts *o, struct hk_err *err)
{
    struct conf_file file = {0};
    int rc;

    if (!o->no_default_conf) {
        return 0;
    }
    if (!o->conf) {
        return hk_fail(err, HK_EINVAL,
                       "--disable-default-scheduler-config needs --scheduler-conf FILE");
    }
    rc = conf_file_open(&file, o->conf, err);
    conf_file_fini(&file);
    return rc;
}

static int scheduler(void *ctx, struct hk_err *err)
{
    const struct scheduler_opts *o = ctx;
    struct scheduler s = {.o = o};
    const struct daemon_work work = {.start = scheduler_work_start,
                                     .run = scheduler_work_run,
                                     .drain = scheduler_work_drain,
                                     .end = scheduler_work_end,
                                     .write_metrics = scheduler_work_metrics,
                                     .show = scheduler_work_show,
                                     .ctx = &s};
    int rc = check_conf(o, err);

    if (rc < 0) {
        return rc;
    }
    for (uint32_t i = 0; i < o->scheduler_names.len; i++) {
        hk_vec_push(&s.names, hk_str(o->scheduler_names.at[i]));
    }
    rc = daemon_open(&s.daemon, &o->daemon, &work, err);
    if (rc == 0) {
        rc = daemon_run(&s.daemon, err);
    }
    daemon_close(&s.daemon);
    hk_vec_fini(&s.names);
    return rc;
}

static int scheduler_run(const struct verb *v, int argc, char **argv)
{
    struct scheduler_opts o = {.daemon = {.name = v->name, .component = COMPONENT},
                               .gates = gates_default()};
    const int status = daemon_verb(v, argc, argv, &o, &o.daemon, scheduler);

    hk_vec_fini(&o.scheduler_names);
    hk_vec_fini(&o.node_labels);
    return status;
}

const struct verb verb_scheduler = {
    .name = "scheduler",
    .args = "",
    .about = "run the scheduler, in place of vc-scheduler",
    .options = options,
    .text = "Places pods on nodes, in place of vc-scheduler: with hekla apiserver, or in any "
            "cluster that has Volcano's custom resources. The configuration file, options, ports, "
            "lease and metrics are those of vc-scheduler, so the program can replace it without "
            "changes. A boolean option is true when it is given alone; its value can only follow "
            "'='.\n"
            "The scheduler works when an event may matter to a waiting job, not every second. "
            "With leader election, which is the default, several processes may run and one works. "
            "A leader that cannot renew the lease in time writes nothing more and exits. The new "
            "leader reads everything from the objects, and completes or takes back gangs that "
            "were left half bound.\n"
            "Health and metrics are served from the start, also by processes that do not lead. "
            "When both are served, one line on standard output names the ports.\n"
            "SIGUSR1 and SIGUSR2 show the scheduler's view of the cluster, see --cache-dumper. "
            "The first SIGTERM or SIGINT waits up to three seconds for requests in progress and "
            "then releases the lease; the second ends the program at once.",
    .rest = "EXIT STATUS\n"
            "       0  ended by a signal\n"
            "       1  could not start, lost the lease, or got a second signal; one line on\n"
            "          standard error says why\n"
            "\n"
            "EXAMPLES\n"
            "       Beside an API server and the controllers of this program:\n"
            "           hekla apiserver --data-dir /tmp/api --listen 127.0.0.1:0 &\n"
            "           hekla controller-manager --kubeconfig /tmp/api/kubeconfig &\n"
            "           hekla scheduler --kubeconfig /tmp/api/kubeconfig\n",
    .run = scheduler_run,
};
