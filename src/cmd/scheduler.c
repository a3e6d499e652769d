// SPDX-License-Identifier: Apache-2.0
// hekla scheduler: the scheduler against any API server, in the place of vc-scheduler.
#include "cmd/daemon.h"
#include "cmd/gates.h"

#include "base/file.h"
#include "base/log.h"
#include "net/files.h"
#include "scheduler/conf.h"
#include "scheduler/loop.h"

#include <signal.h>

#define COMPONENT "volcano" /* the lease's name, as vc-scheduler computes it */
#define HEALTHZ_ADDRESS ":11251"
#define LISTEN_ADDRESS ":8080"
#define QPS 2000
#define SHARD_NAME "volcano"
/* Gangs whose pods are still being made need no words. */
#define REASON_WAIT_NS ((int64_t)1000 * 1000 * 1000)
/* A session that takes longer goes on after what came in has been heard and the lease renewed. */
#define SESSION_BUDGET_NS ((int64_t)1000 * 1000 * 1000)

enum { MAX_NODES = 1000000 };

struct scheduler_opts {
    struct daemon_opts daemon;
    struct gates gates;
    HK_VEC(struct hk_str) scheduler_names;
    HK_VEC(struct loop_label) node_labels;
    const char *conf, *default_queue, *shard_name, *dump_dir;
    struct session_opts session;
    bool no_default_conf, no_dump;
};

static const struct option_row options[] = {
    DAEMON_OPTIONS_API("2000", "2000"),
    {0, "scheduler-conf", "FILE", NULL,
     "Actions, plugins and their arguments. It is read again when something changes in its "
     "directory; a bad one is reported and the last good one stays in force."},
    {0, "disable-default-scheduler-config", "[BOOL]", NULL,
     "End when the configuration is missing or bad at the start, instead of working by the "
     "built-in one."},
    {0, "scheduler-name", "NAME", NULL,
     "Pods that name this scheduler are ours (default volcano). May be given more than once."},
    {0, "default-queue", "NAME", NULL,
     "The queue of groups that name none; made when it is missing (default default)."},
    {0, "node-selector", "LIST", NULL,
     "key:value pairs: only nodes with one of these labels are used. May be given more than once."},
    {0, "minimum-feasible-nodes", "N", NULL,
     "How many nodes that fit are enough to choose from (default 100)."},
    {0, "minimum-percentage-nodes-to-find", "N", NULL,
     "At least this part of the nodes is looked at, in percent (default 5)."},
    {0, "percentage-nodes-to-find", "N", NULL,
     "Exactly this part of the nodes; 0 or less: fewer the more nodes there are, 100: all (default "
     "0)."},
    {0, "scheduler-sharding-mode", "MODE", "none hard soft",
     "Whether nodes outside our NodeShard are never used, or second choice (default none)."},
    {0, "scheduler-sharding-name", "NAME", NULL, "Our NodeShard (default " SHARD_NAME ")."},
    {0, "feature-gates", "LIST", NULL,
     "NAME=BOOL pairs: SchedulingGatesQueueAdmission matters here, and is off unless said "
     "otherwise."},
    {0, "cache-dumper", "[BOOL]", NULL,
     "SIGUSR1 writes what is known of the cluster to a file, SIGUSR2 the sums of it to the log "
     "(default true)."},
    {0, "cache-dump-dir", "DIR", NULL,
     "Where that file, snapshot-<seconds since 1970>.json, is made (default /tmp)."},
    DAEMON_OPTIONS_ELECTION(COMPONENT),
    DAEMON_OPTIONS_HTTP(HEALTHZ_ADDRESS, LISTEN_ADDRESS),
    {0, "schedule-period", "DURATION", NULL,
     "This and the next ones are taken for Volcano's sake: the scheduler works when something "
     "happens, on one thread, and hears of everything by watching."},
    {0, "resync-period", "DURATION", NULL, "As above."},
    {0, "resource-sync-timeout", "DURATION", NULL, "As above."},
    {0, "node-worker-threads", "N", NULL, "As above."},
    {0, "gate-removal-worker-num", "N", NULL, "As above."},
    {0, "priority-class", "[BOOL]", NULL, "As above."},
    {0, "csi-storage", "[BOOL]", NULL, "As above."},
    {0, "enable-pprof", "[BOOL]", NULL, "As above."},
    {0, "plugins-dir", "DIR", NULL,
     "As above, with a warning: plugins written in Go cannot be loaded."},
    {0, "ignored-provisioners", "LIST", NULL, "As above."},
    DAEMON_OPTIONS_LOG,
};

/* ---- options ---- */

/* Malformed entries are left out, as Volcano does it. */
static void take_node_selector(struct scheduler_opts *o, const char *value)
{
    struct hk_str rest = hk_str(value), word, key;

    while (hk_str_cut(&rest, ',', &word)) {
        word = hk_str_trim(word);
        if (hk_str_cut(&word, ':', &key) && key.n > 0 && word.n > 0) {
            hk_vec_push(&o->node_labels, ((struct loop_label){key, word}));
        }
    }
}

static enum shard_mode shard_mode(const char *value)
{
    return strcmp(value, "hard") == 0   ? SHARD_HARD
           : strcmp(value, "soft") == 0 ? SHARD_SOFT
                                        : SHARD_NONE;
}

static int take_count(const struct option_row *row, const char *value, int64_t min, uint32_t *ret,
                      struct hk_err *err)
{
    int64_t n = 0;
    const int rc = daemon_take_int(row, value, min, MAX_NODES, &n, err);

    *ret = (uint32_t)HK_MAX(n, 0);
    return rc;
}

/* Options that mean nothing here; their values have to be good all the same. */
static int take_idle(const struct option_row *row, const char *value, struct hk_err *err)
{
    int64_t n;
    bool on;

    if (strcmp(row->name, "plugins-dir") == 0 && *value) {
        hk_log(HK_LOG_WARN, "plugins written in Go cannot be loaded", "plugins-dir=%s", value);
    }
    if (strcmp(row->arg, "DURATION") == 0) {
        return daemon_take_duration(row, value, &n, err);
    }
    if (strcmp(row->arg, "N") == 0) {
        return daemon_take_int(row, value, INT32_MIN, INT32_MAX, &n, err);
    }
    return strcmp(row->arg, "[BOOL]") == 0 ? daemon_take_bool(row, value, &on, err) : 0;
}

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct scheduler_opts *o = ctx;
    const char *name = row ? row->name : "";
    const struct {
        const char *name, **at;
    } words[] = {{"scheduler-conf", &o->conf},
                 {"default-queue", &o->default_queue},
                 {"cache-dump-dir", &o->dump_dir},
                 {"scheduler-sharding-name", &o->shard_name}};
    const struct {
        const char *name;
        int64_t min;
        uint32_t *at;
    } counts[] = {{"minimum-feasible-nodes", 0, &o->session.min_feasible},
                  {"minimum-percentage-nodes-to-find", 0, &o->session.min_percentage},
                  {"percentage-nodes-to-find", INT32_MIN, &o->session.percentage}};
    int rc;

    if (!row) {
        return daemon_take_word(value, err);
    }
    if (daemon_take(&o->daemon, row, value, &rc, err)) {
        return rc;
    }
    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (strcmp(name, words[i].name) == 0) {
            *words[i].at = value;
            return 0;
        }
    }
    for (size_t i = 0; i < HK_LEN(counts); i++) {
        if (strcmp(name, counts[i].name) == 0) {
            return take_count(row, value, counts[i].min, counts[i].at, err);
        }
    }
    if (strcmp(name, "scheduler-name") == 0) {
        hk_vec_push(&o->scheduler_names, hk_str(value));
        return 0;
    }
    if (strcmp(name, "node-selector") == 0) {
        take_node_selector(o, value);
        return 0;
    }
    if (strcmp(name, "scheduler-sharding-mode") == 0) {
        o->session.shard_mode = shard_mode(value);
        return 0;
    }
    if (strcmp(name, "feature-gates") == 0) {
        return gates_take(&o->gates, value, err);
    }
    if (strcmp(name, "disable-default-scheduler-config") == 0) {
        return daemon_take_bool(row, value, &o->no_default_conf, err);
    }
    if (strcmp(name, "cache-dumper") == 0) {
        bool dump = true;

        rc = daemon_take_bool(row, value, &dump, err);
        o->no_dump = !dump;
        return rc;
    }
    return take_idle(row, value, err);
}

/* ---- working ---- */

struct scheduler {
    const struct scheduler_opts *o;
    struct daemon daemon;
    struct loop *loop;
    struct net_files *conf_file; /* NULL without one */
};

static struct loop_opts loop_opts(const struct scheduler *s)
{
    const struct scheduler_opts *o = s->o;
    struct session_opts session = o->session;

    session.budget_ns = SESSION_BUDGET_NS;
    session.open_gates = o->gates.on[GATE_SCHEDULING_GATES_QUEUE_ADMISSION];
    return (struct loop_opts){
        .port = s->daemon.port,
        .clock = s->daemon.clock,
        .reason_wait_ns = REASON_WAIT_NS,
        .conf_path = o->conf,
        .scheduler_names = o->scheduler_names.at,
        .nscheduler_name = o->scheduler_names.len,
        .node_labels = o->node_labels.at,
        .nnode_label = o->node_labels.len,
        .default_queue = hk_str(o->default_queue),
        .shard_name = hk_str(session.shard_mode == SHARD_NONE ? "" : o->shard_name),
        .session = session,
    };
}

static void on_conf(void *ctx)
{
    struct scheduler *s = ctx;

    loop_reload_conf(s->loop);
    daemon_wake(&s->daemon);
}

static void work_start(void *ctx)
{
    struct scheduler *s = ctx;
    const struct loop_opts lo = loop_opts(s);
    struct hk_err err = {0};
    const int rc = loop_new(&lo, &s->loop, &err);

    hk_assert(rc == 0); /* only a record could fail */
    if (s->o->conf && net_files_new(&(struct net_files_opts){.loop = s->daemon.loop,
                                                             .paths = &s->o->conf,
                                                             .npaths = 1,
                                                             .changed = on_conf,
                                                             .ctx = s},
                                    &s->conf_file, &err) < 0) {
        hk_log(HK_LOG_WARN, "changes of the configuration will not be seen", "err=\"%s\"",
               err.text);
    }
}

static int64_t work_run(void *ctx)
{
    struct scheduler *s = ctx;
    int64_t wait_ns;

    loop_step(s->loop, &wait_ns);
    return wait_ns == INT64_MAX ? INT64_MAX : net_loop_now_ns(s->daemon.loop) + wait_ns;
}

static bool work_drain(void *ctx)
{
    struct scheduler *s = ctx;

    loop_drain(s->loop);
    return loop_stats(s->loop).backlog == 0;
}

static void work_end(void *ctx)
{
    struct scheduler *s = ctx;

    net_files_free(s->conf_file);
    loop_free(s->loop);
}

static void work_metrics(void *ctx, struct hk_buf *out)
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
        hk_log(HK_LOG_ERROR, "no snapshot", "err=\"%s\"", err.text);
    } else {
        hk_log(HK_LOG_INFO, "snapshot written", "path=%s", path.data);
    }
}

static void work_show(void *ctx, int signo)
{
    struct scheduler *s = ctx;

    if (s->o->no_dump) {
        hk_log(HK_LOG_INFO, "--cache-dumper is off", "signal=%d", signo);
    } else if (signo == SIGUSR1) {
        dump(s);
    } else {
        loop_log_summary(s->loop);
    }
}

/* With --disable-default-scheduler-config there has to be a good one. */
static int check_conf(const struct scheduler_opts *o, struct hk_err *err)
{
    struct conf_file file = {0};
    int rc;

    if (!o->no_default_conf) {
        return 0;
    }
    if (!o->conf) {
        return hk_fail(err, HK_EINVAL,
                       "want --scheduler-conf FILE with --disable-default-scheduler-config");
    }
    rc = conf_file_open(&file, o->conf, err);
    conf_file_fini(&file);
    return rc;
}

static int scheduler(void *ctx, struct hk_err *err)
{
    const struct scheduler_opts *o = ctx;
    struct scheduler s = {.o = o};
    const struct daemon_work work = {.start = work_start,
                                     .run = work_run,
                                     .drain = work_drain,
                                     .end = work_end,
                                     .write_metrics = work_metrics,
                                     .show = work_show,
                                     .ctx = &s};
    int rc = check_conf(o, err);

    rc = rc < 0 ? rc : daemon_open(&s.daemon, &o->daemon, &work, err);
    rc = rc < 0 ? rc : daemon_run(&s.daemon, err);
    daemon_close(&s.daemon);
    return rc;
}

static int run(const struct verb *v, int argc, char **argv)
{
    struct scheduler_opts o = {.daemon = daemon_opts_default(v->name, COMPONENT),
                               .gates = gates_default(),
                               .default_queue = "",
                               .shard_name = SHARD_NAME,
                               .dump_dir = "/tmp",
                               .session = SESSION_OPTS_DEFAULT};

    o.daemon.qps = QPS;
    o.daemon.burst = QPS;
    o.daemon.healthz_address = HEALTHZ_ADDRESS;
    o.daemon.listen_address = LISTEN_ADDRESS;
    const int status = daemon_verb(v, argc, argv, take, scheduler, &o, &o.daemon);
    hk_vec_fini(&o.scheduler_names);
    hk_vec_fini(&o.node_labels);
    return status;
}

const struct verb verb_scheduler = {
    .name = "scheduler",
    .args = "",
    .about = "run Volcano's scheduler against an API server",
    .options = options,
    .noption = HK_LEN(options),
    .text =
        "Places pods on nodes, in the place of vc-scheduler: against hekla apiserver, or in any "
        "cluster with Volcano's definitions. The configuration file, options, ports, the lease and "
        "the metrics are Volcano's, so it can take the other's place as it is; options that mean "
        "nothing here are taken and ignored. A boolean option is on when it stands alone, and its "
        "value may only follow behind '='.\n"
        "It works when something happens that could matter to a job that waits, and not every "
        "second. With leader election, which is the default, any number may run and one works. "
        "Whoever cannot renew the lease in time writes nothing more and exits; who takes over "
        "finds all there is to know in the objects, and completes or takes back gangs that were "
        "left half bound.\n"
        "Health and metrics are served from the start, also while another leads. When they are, "
        "one line on standard output tells on which ports.\n"
        "SIGUSR1 and SIGUSR2 show what is known of the cluster, see --cache-dumper. The first "
        "SIGTERM or SIGINT lets the requests under way end, for three seconds at most, "
        "and gives the lease back; the second ends the program at once.",
    .rest = "EXIT STATUS\n"
            "       0  ended by a signal\n"
            "       1  could not start, lost the lease, or was told to end twice; one line on "
            "standard\n"
            "          error says why\n"
            "\n"
            "EXAMPLES\n"
            "       Beside an API server and the controllers of this program:\n"
            "           hekla apiserver --data-dir /tmp/api --listen 127.0.0.1:0 &\n"
            "           hekla controller-manager --kubeconfig /tmp/api/kubeconfig &\n"
            "           hekla scheduler --kubeconfig /tmp/api/kubeconfig\n",
    .run = run,
};
