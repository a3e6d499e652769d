// SPDX-License-Identifier: Apache-2.0
// hekla up: API server, admission, controllers, scheduler and this machine as a node, in one
// process around one store. Nothing here speaks HTTP to itself: everybody holds the store's own
// port. One thread turns the loop; after each turn whoever got messages goes on with its work.
#include "cmd/host.h"

#include "cmd/conf_map.h"
#include "cmd/daemon.h"
#include "cmd/detach.h"
#include "cmd/node.h"
#include "cmd/prober.h"
#include "cmd/sim_nodes.h"
#include "controllers/ctl.h"
#include "controllers/metrics.h"
#include "net/files.h"
#include "net/node_api.h"
#include "scheduler/loop.h"

#define CLEAR_AGAIN_NS ((int64_t)20 * 1000 * 1000)

/* Events of one cause come in one turn here: one without any is pause enough. */
#define QUIET_NS 1
#define REASON_WAIT_NS ((int64_t)100 * 1000 * 1000)

struct up_opts {
    struct host_opts host;
    const char *conf;
    struct node_flags node;
    struct sim_nodes_opts sim;
    bool detach;
};

struct up {
    struct host host;
    struct prober *prober;
    struct manager *controllers;
    struct metrics *controller_metrics;
    struct loop *scheduler;
    struct nursery *nursery;
    struct net_files *conf_file; /* NULL without one */
    struct conf_map conf_map;
    struct node node;
    struct sim_nodes sim;
    struct node_api node_api;
    struct server_metrics metrics;
    bool clearing; /* the node's pods have been told to end */
};

static const struct option_row options[] = {
    HOST_OPTION_DATA_DIR(" " WHERE_DEFAULT_TEXT),
    HOST_OPTION_LISTEN,
    {'D', "detach", NULL, NULL,
     "Go on in the background and return when the server is ready, or has failed to start. What it "
     "has to say then goes to DIR/hekla.log. 'hekla down' ends it."},
    {'c', "conf", "FILE", NULL,
     "The scheduler's configuration, in the form of vc-scheduler's file. It is read again when it "
     "changes; a bad one is reported and the last good one stays in force. The one in force can be "
     "read from the ConfigMap " CONF_MAP_NS "/" CONF_MAP_NAME "."},
    NODE_OPTIONS(" Agents elsewhere may register through the API."),
    SIM_NODES_OPTIONS,
    HOST_OPTION_LIMITS,
};

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct up_opts *o = ctx;
    int rc;

    if (row && strcmp(row->name, "conf") == 0) {
        o->conf = value;
        return 0;
    }
    if (row && strcmp(row->name, "detach") == 0) {
        o->detach = true;
        return 0;
    }
    if (!row || (!node_take(&o->node, row, value, &rc, err) &&
                 !sim_nodes_take(&o->sim, row, value, &rc, err) &&
                 !host_take(&o->host, row, value, &rc, err))) {
        return hk_fail(err, HK_EINVAL, "unexpected '%s'", value);
    }
    return rc;
}

/* ---- running ---- */

/* Volcano's controllers, and those of the workloads that a cluster would bring along. */
static struct manager *start_controllers(struct up *u)
{
    const struct ctl_type *all[32];
    const struct ctl_type *const *types;
    uint32_t n, more;

    types = manager_types(&n);
    hk_assert(n <= HK_LEN(all));
    memcpy(all, types, n * sizeof(all[0]));
    types = manager_workload_types(&more);
    hk_assert(n + more <= HK_LEN(all));
    memcpy(all + n, types, more * sizeof(all[0]));
    return manager_new(&(struct manager_opts){.port = rest_port(u->host.rest),
                                              .clock = u->host.clock,
                                              .rand = &u->host.rand,
                                              .conf = {.prober = u->prober, .local_zone = "Local"},
                                              .types = all,
                                              .ntype = n + more,
                                              .shared_port = true});
}

static void write_metrics(void *ctx, struct hk_buf *out)
{
    struct up *u = ctx;

    loop_write_metrics(u->scheduler, out);
    metrics_write(u->controller_metrics, out);
}

static void on_conf(void *ctx)
{
    struct up *u = ctx;

    loop_reload_conf(u->scheduler);
}

static int watch_conf(struct up *u, const char *path, struct hk_err *err)
{
    return net_files_new(
        &(struct net_files_opts){
            .loop = u->host.loop, .paths = &path, .npaths = 1, .changed = on_conf, .ctx = u},
        &u->conf_file, err);
}

/* Who has the pod answers for it. */
static void serve(void *ctx, const struct node_call *call)
{
    struct up *u = ctx;
    const bool sim =
        !u->node.agent || (u->sim.agent && agent_has(u->sim.agent, call->ns, call->pod));

    agent_serve(sim ? u->sim.agent : u->node.agent, call);
}

static bool has(void *ctx, struct hk_str ns, struct hk_str pod)
{
    const struct up *u = ctx;

    return (u->node.agent && agent_has(u->node.agent, ns, pod)) ||
           (u->sim.agent && agent_has(u->sim.agent, ns, pod));
}

static int start(struct up *u, const struct up_opts *o, struct hk_err *err)
{
    struct host_opts host = o->host;
    int rc;

    u->metrics = (struct server_metrics){write_metrics, u};
    host.metrics = &u->metrics;
    u->node_api = (struct node_api){.serve = serve, .has = has, .ctx = u};
    host.node_api = o->node.no_node && o->sim.fleet.n == 0 ? NULL : &u->node_api;
    u->host.has_pods = !o->node.no_node;
    rc = o->node.no_node ? 0 : nursery_new(&u->nursery, err); /* before there is anything to copy */
    rc = rc < 0 ? rc : host_open(&u->host, &host, err);
    if (rc < 0) {
        return rc;
    }
    u->prober = cmd_prober_new(u->host.loop);
    u->controllers = start_controllers(u);
    u->controller_metrics = metrics_new(u->controllers);
    rc = loop_new(&(struct loop_opts){.port = rest_port(u->host.rest),
                                      .clock = u->host.clock,
                                      .conf_path = o->conf,
                                      .quiet_ns = QUIET_NS,
                                      .reason_wait_ns = REASON_WAIT_NS,
                                      .session = SESSION_OPTS_DEFAULT},
                  &u->scheduler, err);
    if (rc == 0 && o->conf) {
        rc = watch_conf(u, o->conf, err);
    }
    if (rc == 0 && !o->node.no_node) {
        rc = node_start(&u->node,
                        &(struct node_opts){.loop = u->host.loop,
                                            .nursery = u->nursery,
                                            .port = rest_port(u->host.rest),
                                            .clock = u->host.clock,
                                            .rand = &u->host.rand,
                                            .api_host = host_address(&o->host),
                                            .api_port = server_port(u->host.server),
                                            .dir = o->host.dir,
                                            .flags = &o->node},
                        err);
    }
    if (rc == 0) {
        sim_nodes_start(&u->sim, &o->sim, rest_port(u->host.rest), u->host.clock, &u->host.rand);
    }
    return rc;
}

/* Ends the pods, and then the server. Meanwhile nothing new is placed. */
static int64_t step_clearing(struct up *u)
{
    if (!u->clearing && agent_ready(u->node.agent)) {
        u->clearing = true;
        agent_clear(u->node.agent);
        return 0; /* the outcome comes with the next turn */
    }
    if (u->clearing && agent_is_clear(u->node.agent)) {
        host_stop(&u->host);
    }
    return CLEAR_AGAIN_NS; /* groups and mounts go without telling */
}

/* Lets everybody work; how long nothing will happen unless the loop brings news. */
static int64_t step(struct up *u)
{
    int64_t next_ns = manager_run(u->controllers), at_ns, now_ns, wait_ns;

    if (u->node.agent) {
        at_ns = agent_run(u->node.agent);
        next_ns = HK_MIN(next_ns, at_ns);
    }
    at_ns = sim_nodes_run(&u->sim);
    next_ns = HK_MIN(next_ns, at_ns);
    if (u->host.clearing) {
        wait_ns = step_clearing(u);
    } else {
        loop_step(u->scheduler, &wait_ns);
    }
    next_ns = HK_MIN(next_ns, conf_map_keep(&u->conf_map, rest_port(u->host.rest), u->host.clock,
                                            loop_conf_text(u->scheduler)));
    now_ns = net_loop_now_ns(u->host.loop);
    if (next_ns == INT64_MAX) {
        return wait_ns;
    }
    return HK_MIN(wait_ns, HK_MAX(next_ns - now_ns, 0));
}

/* Rounded up: a turn that ends too early would be followed by another at once. */
static int to_ms(int64_t ns)
{
    if (ns == INT64_MAX) {
        return -1;
    }
    return (int)HK_MIN((ns + 999999) / 1000000, 3600 * 1000);
}

static int turn(struct up *u, struct hk_err *err)
{
    int rc = 0;

    while (rc == 0 && !u->host.stopping) {
        const int64_t wait_ns = step(u);

        rc = net_loop_turn(u->host.loop, to_ms(wait_ns), err);
    }
    return rc;
}

static int let_go(const struct up_opts *o, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf log = {0};

    hk_buf_addf(&log, "%s/hekla.log", o->host.dir);
    return o->detach ? detach_ready(log.data, err) : 0;
}

static int up(const struct up_opts *o)
{
    struct up u = {0};
    struct hk_err err = {0};
    int rc = start(&u, o, &err);

    rc = rc < 0 ? rc : host_announce(&u.host, &o->host, "up", &err);
    rc = rc < 0 ? rc : let_go(o, &err);
    rc = rc < 0 ? rc : turn(&u, &err);
    sim_nodes_end(&u.sim);
    node_end(&u.node);
    nursery_free(u.nursery);
    net_files_free(u.conf_file);
    loop_free(u.scheduler);
    manager_free(u.controllers);
    metrics_free(u.controller_metrics);
    cmd_prober_free(u.prober);
    host_close(&u.host);
    if (rc < 0) {
        verb_complain("up: %s", err.text);
    }
    return rc < 0 ? EXIT_BAD : EXIT_OK;
}

static int run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf dir = {0};
    struct up_opts o = {.host = host_opts_default(), .sim = sim_nodes_opts_default()};
    struct hk_err err = {0};
    const int rc = verb_parse(v, argc, argv, take, &o);
    int status;

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (where_settle(&o.host.dir, &dir, &err) < 0 || node_check(&o.node, &err) < 0) {
        return verb_complain("up: %s", err.text);
    }
    return o.detach && !detach(&status) ? status : up(&o);
}

const struct verb verb_up = {
    .name = "up",
    .args = "",
    .about = "run a complete batch system in one process, on this machine",
    .options = options,
    .noption = HK_LEN(options),
    .text =
        "An API server as 'hekla apiserver' runs it, Volcano's admission rules, its controllers "
        "and "
        "its scheduler, and this machine as the node, in one process and on one store. Jobs, "
        "queues, "
        "flows and cron jobs work as on a cluster, with the same manifests.\n"
        "Pods are processes of this machine. A container's command is run with its environment, "
        "volumes, limits and user as far as the kernel permits it here; its image is not used, "
        "unless --image-roots gives a root file system for it. Output is kept and shown by kubectl "
        "logs.\n"
        "Everything that was acknowledged survives a crash: started again, the process goes on "
        "where it was, and finds the processes that went on running.\n"
        "No privileges are needed. Without them containers run as the user of the server, in "
        "namespaces where the kernel lets users make them, and what cannot be enforced is told in "
        "the status of each pod.\n"
        "vcctl, its short forms and the verbs of this program find a server of the default "
        "directory by themselves; kubectl needs KUBECONFIG. 'hekla status' tells how the server "
        "is, 'hekla down' ends it.",
    .rest = SIM_NODES_HELP
    "SIGNALS\n"
    "       SIGTERM, SIGINT  end the server; pods go on running and are found again\n"
    "       SIGUSR1          ends the pods first, as 'hekla down --pods'\n"
    "\n"
    "ENVIRONMENT\n"
    "       NOTIFY_SOCKET    the socket of a service manager that wants to hear when the\n"
    "                        server is ready (Type=notify of systemd)\n"
    "\n"
    "EXIT STATUS\n"
    "       0  ended by a signal; pods go on. With --detach: the server is ready\n"
    "       1  could not start, or could not go on; one line on standard error says why\n"
    "\n"
    "EXAMPLES\n"
    "       In the background, in the default directory:\n"
    "           hekla up --detach\n"
    "           vcctl job list\n"
    "           hekla down\n"
    "\n"
    "       In a directory of its own and on a free port, with kubectl:\n"
    "           hekla up --data-dir /tmp/hekla --listen 127.0.0.1:0 --detach\n"
    "           export KUBECONFIG=/tmp/hekla/kubeconfig\n"
    "           kubectl apply -f examples/job.yaml\n"
    "           kubectl logs -l volcano.sh/job-name=train\n"
    "\n"
    "       A thousand nodes that only seem to run pods:\n"
    "           hekla up --data-dir /tmp/big --no-node --sim-nodes 1000 \\\n"
    "               --sim-model duration=exp:60s,fail=0.01\n",
    .run = run,
};
