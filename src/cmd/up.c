// SPDX-License-Identifier: Apache-2.0
// hekla up: runs API server, admission, controllers, scheduler and this machine as a node, in one
// process around one store. The parts do not use HTTP between them: all share the store's port. One
// thread runs the loop; after each iteration every part that got messages continues its work.
#include "agent/serve/kubelet.h"
#include "api/names.h"
#include "api/services.h"
#include "base/log.h"
#include "controllers/ctl.h"
#include "controllers/metrics.h"
#include "daemon/conf_map.h"
#include "daemon/detach.h"
#include "daemon/prober.h"
#include "host/cluster_dns.h"
#include "host/host.h"
#include "host/node.h"
#include "host/sim_nodes.h"
#include "net/files.h"
#include "net/node_api.h"
#include "proxy/proxy.h"
#include "scheduler/loop.h"

#include <unistd.h>

#define S_NS ((int64_t)1000 * 1000 * 1000)
#define CLEAR_AGAIN_NS ((int64_t)20 * 1000 * 1000)

/* With --detach: the shortest time that the parent waits for an early exit, and the longest that it
 * waits for the controllers to become idle. */
#define SETTLE_MIN_NS ((int64_t)500 * 1000 * 1000)
#define SETTLE_MAX_NS ((int64_t)5 * 1000 * 1000 * 1000)
#define SETTLE_AGAIN_NS ((int64_t)50 * 1000 * 1000)

/* Events of one cause arrive in one loop iteration here: one iteration without events is enough. */
#define QUIET_NS 1
#define REASON_WAIT_NS ((int64_t)100 * 1000 * 1000)

struct up_opts {
    struct host_opts host;
    const char *conf;
    struct node_flags node;
    struct sim_nodes_opts sim;
    struct cluster_dns_opts dns;
    struct option_list scheduler_names; /* empty: default_scheduler_names */
    int64_t node_grace_ns, pod_gc_quarantine_ns;
    int64_t finished_pods_max; /* 0: keep all */
    bool detach;
    bool trust_all; /* a client that may create pods may become root on this machine */
};

struct up {
    struct host host;
    struct prober *prober;
    struct manager *controllers;
    struct metrics *controller_metrics;
    struct loop *scheduler;
    struct services *services;
    struct proxy *proxy;
    struct dns *dns; /* NULL: none */
    struct hk_err dns_off;
    struct spawner *spawner;
    struct net_files *conf_file; /* NULL: no file */
    struct conf_map conf_map;
    HK_VEC(struct hk_str) scheduler_names;
    struct node node;
    struct sim_nodes sim;
    struct node_api node_api;
    struct server_metrics metrics;
    bool clearing; /* the node's pods were asked to end */
    int parent;    /* descriptor of the parent that waits for the start; -1: none */
    int64_t ready_ns;
};

/* No other scheduler runs here unless somebody starts one, and most programs name none. */
static const struct hk_str default_scheduler_names[] = {
    {API_SCHEDULER_NAME, sizeof(API_SCHEDULER_NAME) - 1},
    {API_SCHEDULER_NAME_DEFAULT, sizeof(API_SCHEDULER_NAME_DEFAULT) - 1},
};

static const struct option_row options[] = {
    HOST_OPTION_DATA_DIR(struct up_opts, host, WHERE_DEFAULT_TEXT),
    ROW_INCLUDE(struct up_opts, host, host_listen_options),
    ROW_FLAG(0, "trust-all-users", struct up_opts, trust_all,
             "Let root serve other machines and run pods: every user of the API who may create a "
             "pod or a job is then root on this machine."),
    ROW_FLAG('D', "detach", struct up_opts, detach,
             "Continue in the background. The command returns when the server is ready and has "
             "done the work of its start, or has failed. The log goes to DIR/hekla.log; 'hekla "
             "down' ends the server."),
    ROW_TEXT_OR('c', "conf", "FILE", struct up_opts, conf, "the built-in configuration",
                "The configuration of the scheduler, in the form of vc-scheduler's file. It is "
                "read again when it changes; an invalid one is reported and the last valid one "
                "stays in force. The one in force is in the ConfigMap " CONF_MAP_NS
                "/" CONF_MAP_NAME "."),
    ROW_LIST(0, "scheduler-name", "NAME", struct up_opts, scheduler_names,
             API_SCHEDULER_NAME ", " API_SCHEDULER_NAME_DEFAULT,
             "Schedule the pods that name this scheduler. May be given more than once. Pods that "
             "name none are pods of " API_SCHEDULER_NAME_DEFAULT
             ": leave that name out when another scheduler places them."),
    NODE_OPTIONS(struct up_opts, node, " Agents on other machines may register through the API."),
    ROW_INCLUDE(struct up_opts, sim, sim_nodes_options),
    ROW_DURATION(0, "node-monitor-grace-period", struct up_opts, node_grace_ns, S_NS, "40s",
                 "How long a node of another machine may go without renewing its lease. After that "
                 "it is unreachable: no pods are placed on it, and its pods are evicted when they "
                 "no longer tolerate that. Agents renew the lease four times in their "
                 "--node-lease-duration."),
    ROW_INCLUDE(struct up_opts, host, host_toleration_options),
    ROW_DURATION(0, "pod-gc-quarantine", struct up_opts, pod_gc_quarantine_ns, S_NS, "40s",
                 "Remove pods of a node that no longer exists after this time."),
    ROW_INT(0, "terminated-pod-gc-threshold", "N", struct up_opts, finished_pods_max, 0, INT32_MAX,
            "12500",
            "How many finished pods to keep; 0 keeps all. The oldest beyond that are deleted, "
            "except those of unfinished jobs."),
    ROW_INCLUDE(struct up_opts, host, host_service_options),
    ROW_INCLUDE(struct up_opts, dns, cluster_dns_options),
    ROW_INCLUDE(struct up_opts, host, host_store_options),
    ROW_INCLUDE(struct up_opts, host, host_limit_options),
    ROW_END,
};

/* ---- running ---- */

static bool is_own_node(void *ctx, struct hk_str name)
{
    const struct up *u = ctx;

    return (u->node.agent && agent_has_node(u->node.agent, name)) ||
           (u->sim.agent && agent_has_node(u->sim.agent, name));
}

/* Volcano's controllers, and those of kube-controller-manager that a cluster needs. */
static struct manager *start_controllers(struct up *u, const struct up_opts *o)
{
    const struct ctl_type *const *(*const lists[])(uint32_t * ret_n) = {
        manager_types, manager_workload_types, manager_node_types, manager_service_types};
    const struct ctl_type *all[32];
    uint32_t n = 0;

    for (size_t i = 0; i < HK_LEN(lists); i++) {
        uint32_t more;
        const struct ctl_type *const *types = lists[i](&more);

        hk_assert(n + more <= HK_LEN(all));
        memcpy(all + n, types, more * sizeof(all[0]));
        n += more;
    }
    return manager_new(&(struct manager_opts){
        .port = rest_port(u->host.rest),
        .clock = u->host.clock,
        .rand = &u->host.rand,
        .conf = {.scheduler_names = u->scheduler_names.at,
                 .nscheduler_name = u->scheduler_names.len,
                 .prober = u->prober,
                 .local_zone = "Local",
                 .node_grace_ns = o->node_grace_ns,
                 .pod_gc_quarantine_ns = o->pod_gc_quarantine_ns,
                 .finished_pods_max = o->finished_pods_max == 0 ? -1 : o->finished_pods_max,
                 .is_own_node = is_own_node,
                 .own_nodes = u,
                 .api_address = host_address(&o->host),
                 .api_port = server_port(u->host.server),
                 .dns = u->dns ? dns_address(u->dns) : NULL},
        .types = all,
        .ntype = n,
        .shared_port = true});
}

static void write_metrics(void *ctx, struct hk_buf *out)
{
    struct up *u = ctx;

    loop_write_metrics(u->scheduler, out);
    metrics_write(u->controller_metrics, out);
}

static void up_on_conf(void *ctx)
{
    struct up *u = ctx;

    loop_reload_conf(u->scheduler);
}

static int watch_conf(struct up *u, const char *path, struct hk_err *err)
{
    return net_files_new(
        &(struct net_files_opts){
            .loop = u->host.loop, .paths = &path, .npaths = 1, .changed = up_on_conf, .ctx = u},
        &u->conf_file, err);
}

/* Passes the call to the agent that has the pod. */
static void up_serve(void *ctx, const struct node_call *call)
{
    struct up *u = ctx;
    const bool sim =
        !u->node.agent || (u->sim.agent && agent_has(u->sim.agent, call->ns, call->pod));

    agent_serve(sim ? u->sim.agent : u->node.agent, call);
}

static void up_write_pods(void *ctx, struct hk_buf *out)
{
    agent_write_pods(ctx, out);
}

/* The API that a kubelet of the node would have. */
static void up_serve_node(void *ctx, struct hk_str name, struct http_request *q)
{
    struct up *u = ctx;
    const bool own = u->node.agent && agent_has_node(u->node.agent, name);

    kubelet_serve(&(struct kubelet_opts){.api = &u->node_api,
                                         .write_pods = up_write_pods,
                                         .ctx = own ? u->node.agent : u->sim.agent},
                  q);
}

static bool up_has_pod(void *ctx, struct hk_str ns, struct hk_str pod)
{
    const struct up *u = ctx;

    return (u->node.agent && agent_has(u->node.agent, ns, pod)) ||
           (u->sim.agent && agent_has(u->sim.agent, ns, pod));
}

static void up_name_schedulers(struct up *u, const struct option_list *given)
{
    for (uint32_t i = 0; i < given->len; i++) {
        hk_vec_push(&u->scheduler_names, hk_str(given->at[i]));
    }
    for (size_t i = 0; given->len == 0 && i < HK_LEN(default_scheduler_names); i++) {
        hk_vec_push(&u->scheduler_names, default_scheduler_names[i]);
    }
}

static struct hk_str up_pod_namespace(void *ctx, uint32_t address)
{
    const struct up *u = ctx;
    struct hk_str ns = {0};

    if (u->node.agent) {
        ns = agent_find_namespace(u->node.agent, address);
    }
    return ns.n == 0 && u->sim.agent ? agent_find_namespace(u->sim.agent, address) : ns;
}

static int up_start_dns(struct up *u, const struct up_opts *o, struct hk_err *err)
{
    return cluster_dns_start(&o->dns, u->host.services.range, u->host.loop,
                             &(struct dns_zone_opts){.services = u->services,
                                                     .pod_namespace = up_pod_namespace,
                                                     .ctx = u},
                             &u->dns, &u->dns_off, err);
}

static int up_open_parts(struct up *u, const struct up_opts *o, struct hk_err *err)
{
    struct host_opts host = o->host;
    int rc;

    u->metrics = (struct server_metrics){write_metrics, u};
    host.metrics = &u->metrics;
    host.cluster_domain = o->dns.domain;
    u->node_api = (struct node_api){.serve = up_serve,
                                    .has = up_has_pod,
                                    .has_node = is_own_node,
                                    .serve_node = up_serve_node,
                                    .ctx = u};
    host.node_api = o->node.no_node && o->sim.fleet.n == 0 ? NULL : &u->node_api;
    u->host.has_pods = !o->node.no_node;
    rc = o->node.no_node ? 0 : spawner_new(&u->spawner, err); /* fork while small */
    if (rc < 0) {
        return rc;
    }
    rc = host_open(&u->host, &host, err);
    if (rc < 0) {
        return rc;
    }
    u->services = services_new(rest_port(u->host.rest), u->host.clock);
    u->proxy = proxy_new(&(struct proxy_opts){.loop = u->host.loop, .services = u->services});
    rc = up_start_dns(u, o, err);
    if (rc < 0) {
        return rc;
    }
    u->prober = loop_prober_new(u->host.loop);
    u->controllers = start_controllers(u, o);
    u->controller_metrics = metrics_new(u->controllers);
    rc = loop_new(&(struct loop_opts){.port = rest_port(u->host.rest),
                                      .clock = u->host.clock,
                                      .conf_path = o->conf,
                                      .scheduler_names = u->scheduler_names.at,
                                      .nscheduler_name = u->scheduler_names.len,
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
                                            .spawner = u->spawner,
                                            .port = rest_port(u->host.rest),
                                            .clock = u->host.clock,
                                            .rand = &u->host.rand,
                                            .api_host = host_address(&o->host),
                                            .api_port = server_port(u->host.server),
                                            .dir = o->host.dir,
                                            .services = u->services,
                                            .dns = u->dns ? dns_address(u->dns) : NULL,
                                            .domain = o->dns.domain,
                                            .flags = &o->node},
                        err);
    }
    if (rc == 0) {
        sim_nodes_start(&u->sim, &o->sim, rest_port(u->host.rest), u->host.clock, &u->host.rand);
    }
    return rc;
}

/* Ends the pods, then the server. Schedules nothing in the meantime. */
static int64_t step_clearing(struct up *u)
{
    if (!u->clearing && agent_ready(u->node.agent)) {
        u->clearing = true;
        agent_clear(u->node.agent);
        return 0; /* the next step checks the result */
    }
    if (u->clearing && agent_is_clear(u->node.agent)) {
        host_stop(&u->host);
    }
    return CLEAR_AGAIN_NS; /* cgroups and mounts disappear without an event */
}

/* Runs all parts; returns the time until the next step, unless the loop has events earlier. */
static int64_t up_step(struct up *u)
{
    int64_t next_ns = manager_run(u->controllers), at_ns, now_ns, wait_ns;

    hk_log_tick();
    at_ns = services_tick(u->services, net_loop_now_ns(u->host.loop));
    next_ns = HK_MIN(next_ns, at_ns);
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

/* Rounds up: a wait that ends too early would be followed by another one at once. */
static int to_ms(int64_t ns)
{
    if (ns == INT64_MAX) {
        return -1;
    }
    return (int)HK_MIN((ns + 999999) / 1000000, 3600 * 1000);
}

/* Notifies the parent of a detached server after the start; returns the time until the next
 * check. */
static int64_t up_report_settled(struct up *u, int64_t wait_ns)
{
    const int64_t since_ns = net_loop_now_ns(u->host.loop) - u->ready_ns;

    if (u->parent < 0) {
        return wait_ns;
    }
    if (since_ns >= SETTLE_MAX_NS || (since_ns >= SETTLE_MIN_NS && manager_idle(u->controllers) &&
                                      !manager_rests(u->controllers))) {
        detach_settled(&u->parent);
    }
    return HK_MIN(wait_ns, SETTLE_AGAIN_NS);
}

static int up_loop_once(struct up *u, struct hk_err *err)
{
    int rc = 0;

    while (rc == 0 && !u->host.stopping) {
        const int64_t wait_ns = up_report_settled(u, up_step(u));

        rc = net_loop_turn(u->host.loop, to_ms(wait_ns), err);
    }
    return rc;
}

static void write_log_path(const struct up_opts *o, struct hk_buf *out)
{
    hk_buf_addf(out, "%s/hekla.log", o->host.dir);
}

static int up_release(struct up *u, const struct up_opts *o, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf log = {0};

    write_log_path(o, &log);
    u->ready_ns = net_loop_now_ns(u->host.loop);
    return o->detach ? detach_ready(log.data, &u->parent, err) : 0;
}

static int up_open_and_run(struct up *u, const struct up_opts *o, struct hk_err *err)
{
    int rc = up_open_parts(u, o, err);

    if (rc < 0) {
        return rc;
    }
    rc = host_announce(&u->host, &o->host, "up", err);
    if (rc < 0) {
        return rc;
    }
    rc = up_release(u, o, err);
    if (rc < 0) {
        return rc;
    }
    cluster_dns_log_off(&u->dns_off);
    return up_loop_once(u, err);
}

static int up(const struct up_opts *o)
{
    struct up u = {.parent = -1};
    struct hk_err err = {0};
    int rc;

    up_name_schedulers(&u, &o->scheduler_names);
    rc = up_open_and_run(&u, o, &err);
    detach_settled(&u.parent); /* a stop on request counts as success */
    sim_nodes_end(&u.sim);
    node_end(&u.node);
    spawner_free(u.spawner);
    net_files_free(u.conf_file);
    loop_free(u.scheduler);
    dns_free(u.dns);
    proxy_free(u.proxy);
    services_free(u.services);
    manager_free(u.controllers);
    metrics_free(u.controller_metrics);
    loop_prober_free(u.prober);
    host_close(&u.host);
    hk_vec_fini(&u.scheduler_names);
    if (rc < 0) {
        verb_complain("up: %s", err.text);
    }
    return rc < 0 ? EXIT_BAD : EXIT_OK;
}

/* Pods of a server of root run as root: a remote client that may create one controls the
 * machine. */
static int check_listen(const struct up_opts *o, struct hk_err *err)
{
    if (geteuid() != 0 || o->node.no_node || o->trust_all || host_is_loopback(&o->host)) {
        return 0;
    }
    return hk_fail(err, HK_EDENIED,
                   "refusing to listen on %s as root: pods run as root here, so whoever may create "
                   "a pod through this address owns the machine. Listen on 127.0.0.1, run the "
                   "server as another user, run no pods on it (--no-node), or say that every user "
                   "is trusted (--trust-all-users)",
                   o->host.addr);
}

static int up_run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf dir = {0}, log = {0};
    struct up_opts o = {.sim = sim_nodes_opts_default()};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &o);
    int status;

    if (rc != 0) {
        hk_vec_fini(&o.scheduler_names);
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (where_settle(&o.host.dir, &dir, &err) < 0 || node_check(&o.node, &err) < 0 ||
        check_listen(&o, &err) < 0 || cluster_dns_check(&o.dns, &err) < 0) {
        rc = verb_complain("up: %s", err.text);
    } else {
        write_log_path(&o, &log);
        rc = o.detach && !detach(log.data, &status) ? status : up(&o);
    }
    hk_vec_fini(&o.scheduler_names);
    return rc;
}

const struct verb verb_up = {
    .name = "up",
    .args = "",
    .about = "run a complete batch system in one process on this machine",
    .options = options,
    .text = "Runs an API server as 'hekla apiserver' does, Volcano's admission rules, its "
            "controllers and its scheduler, and this machine as a node, in one process with one "
            "store. Jobs, queues, flows and cron jobs work as in a cluster, with the same "
            "manifests.\n"
            "Pods are processes of this machine. A container's command runs with its environment, "
            "volumes, limits and user as far as the kernel permits here. If 'hekla image' has "
            "brought its image to this machine, it runs in that image; otherwise it sees the files "
            "of the machine. 'kubectl logs' and 'hekla logs' show the output.\n"
            "Every acknowledged change survives a crash: after a restart the server continues "
            "where it was, and finds the processes that continued to run.\n"
            "When root runs the server, pods are root unless they name another user: everyone who "
            "may create a pod owns the machine. As root the server therefore listens on loopback "
            "addresses only, unless --trust-all-users is given. No container sees the data "
            "directory.\n"
            "No privileges are needed. Without them containers run as the user of the server, in "
            "namespaces where the kernel lets users create them, and the status of each pod says "
            "what cannot be enforced.\n"
            "The scheduler takes the pods of 'volcano' and of 'default-scheduler', so pods that "
            "name no scheduler start, too. See --scheduler-name.\n"
            "vcctl, its short forms and the verbs of this program find a server in the default "
            "directory without being told; kubectl needs KUBECONFIG. 'hekla status' shows the "
            "state of the server, 'hekla down' ends it.",
    .rest = SIM_NODES_HELP
    "SIGNALS\n"
    "       SIGTERM, SIGINT  end the server; pods continue to run and are found again\n"
    "       SIGUSR1          ends the pods first, as 'hekla down --pods'\n" HOST_SIGHUP "\n"
    "ENVIRONMENT\n"
    "       NOTIFY_SOCKET    the socket of a service manager that is told when the server\n"
    "                        is ready (Type=notify of systemd)\n"
    "\n"
    "EXIT STATUS\n"
    "       0  ended by a signal; pods continue to run. With --detach: the server is ready\n"
    "       1  could not start or continue; one line on standard error says why\n"
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
    "       A thousand simulated nodes:\n"
    "           hekla up --data-dir /tmp/big --no-node --sim-nodes 1000 \\\n"
    "               --sim-model duration=exp:60s,fail=0.01\n",
    .run = up_run,
};
