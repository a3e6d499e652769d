// SPDX-License-Identifier: Apache-2.0
// hekla agent: runs this machine as a node of a cluster, or simulated nodes, or both, with any
// Kubernetes-style API server. Takes the place of a kubelet: it registers the node, sends
// heartbeats, runs the pods bound to it, and serves their logs and commands.
#include "agent/serve/kubelet.h"
#include "base/crumb.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/notify.h"
#include "daemon/where.h"
#include "host/agent_certs.h"
#include "host/host.h"
#include "host/node.h"
#include "host/sim_nodes.h"
#include "net/cert_files.h"
#include "net/reach.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPONENT "hekla-agent"
#define LISTEN_PORT "10250"
#define LISTEN "127.0.0.1:" LISTEN_PORT
#define QPS "2000"
#define S_NS ((int64_t)1000 * 1000 * 1000)
#define CLEAR_AGAIN_NS ((int64_t)20 * 1000 * 1000)

struct agent_verb_opts {
    struct daemon_opts daemon;
    struct node_flags node;
    struct sim_nodes_opts sim;
    const char *dir;       /* NULL: not given */
    const char *address;   /* of the node; NULL: detected */
    const char *client_ca; /* or NULL */
    const char *listen;    /* NULL: not given */
    int64_t lease_ns;
};

static const struct option_row options[] = {
    DAEMON_OPTIONS_API(struct agent_verb_opts, daemon, QPS, QPS),
    ROW_TEXT_OR('d', "data-dir", "DIR", struct agent_verb_opts, dir,
                "/var/lib/hekla-agent for root, else hekla-agent in $XDG_STATE_HOME or "
                "~/.local/state",
                "The directory for the volumes and logs of pods and the certificate of the node. "
                "It is created, with access for its owner only, when it does not exist. One agent "
                "at a time can use it."),
    NODE_OPTIONS(struct agent_verb_opts, node, " For simulated nodes alone."),
    ROW_TEXT_OR(0, "address", "IP", struct agent_verb_opts, address,
                "the address this machine has on the way to the API server",
                "The address at which others reach this machine. The agent listens there, unless "
                "--listen is given too."),
    ROW_TEXT_OR('l', "listen", "ADDR:PORT", struct agent_verb_opts, listen,
                LISTEN ", or port " LISTEN_PORT " of --address",
                "The address on which to answer for pods, over TLS. An API server on another "
                "machine must reach it for kubectl logs and exec. Without ADDR the agent listens "
                "on every address; port 0 takes a free port. The status of the node names the "
                "port."),
    ROW_DURATION(0, "node-lease-duration", struct agent_verb_opts, lease_ns, S_NS, "40s",
                 "How long the lease of the node lasts; it is renewed four times in that time. Set "
                 "it no longer than the server waits for nodes."),
    ROW_TEXT_OR(0, "tls-cert-file", "FILE", struct agent_verb_opts, daemon.cert_file,
                "a certificate that the agent makes and keeps in its data directory",
                "The serving certificate, PEM. It is read again when it changes."),
    ROW_TEXT(0, "tls-private-key-file", "FILE", struct agent_verb_opts, daemon.key_file, NULL,
             "The key of the serving certificate, PEM."),
    ROW_TEXT(
        0, "client-ca-file", "FILE", struct agent_verb_opts, client_ca, NULL,
        "Accept client certificates of this authority instead of a token. The API server "
        "needs one to read logs: 'hekla up' shows one of DIR/ca.crt, kube-apiserver the one of "
        "--kubelet-client-certificate."),
    ROW_INCLUDE(struct agent_verb_opts, sim, sim_nodes_options),
    ROW_INCLUDE(struct agent_verb_opts, daemon, daemon_log_options),
    ROW_END,
};

static int cmd_agent_check(const struct agent_verb_opts *o, struct hk_err *err)
{
    unsigned char address[sizeof(struct in6_addr)];
    char host[64];
    uint16_t port;

    if (!o->daemon.cert_file != !o->daemon.key_file) {
        return hk_fail(err, HK_EINVAL,
                       "--tls-cert-file and --tls-private-key-file must be given together");
    }
    if (o->listen && daemon_split_address(o->listen, host, sizeof(host), &port) < 0) {
        return hk_fail(err, HK_EINVAL, "option --listen is '%s', want ADDR:PORT", o->listen);
    }
    if (o->address && inet_pton(AF_INET, o->address, address) != 1 &&
        inet_pton(AF_INET6, o->address, address) != 1) {
        return hk_fail(err, HK_EINVAL, "option --address is '%s', want an IP address", o->address);
    }
    if (o->node.no_node && o->sim.fleet.n == 0) {
        return hk_fail(err, HK_EINVAL, "--no-node needs --sim-nodes: else there is no node to run");
    }
    return node_check(&o->node, err);
}

/* ---- the parts ---- */

struct agent_verb {
    const struct agent_verb_opts *o;
    struct hk_arena mem;
    struct daemon daemon;
    const char *dir, *name;
    int claim; /* lock on the directory; -1: none */
    struct reach api;
    char address[64];
    struct spawner *spawner;
    struct cert_files *certs;
    struct node_api node_api;
    struct kubelet *kubelet;
    struct node node;
    struct sim_nodes sim;
    bool clearing; /* SIGUSR1 arrived */
    bool cleared;  /* the pods were asked to end */
};

/* Passes the call to the agent that has the pod. */
static void cmd_agent_serve(void *ctx, const struct node_call *call)
{
    struct agent_verb *v = ctx;
    const bool sim =
        !v->node.agent || (v->sim.agent && agent_has(v->sim.agent, call->ns, call->pod));

    agent_serve(sim ? v->sim.agent : v->node.agent, call);
}

static void write_pods(void *ctx, struct hk_buf *out)
{
    const struct agent_verb *v = ctx;

    if (v->node.agent) {
        agent_write_pods(v->node.agent, out);
    }
    if (v->sim.agent) {
        agent_write_pods(v->sim.agent, out);
    }
}

static int open_dir(struct agent_verb *v, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf own = {0};
    int rc = 0;

    v->dir = v->o->dir;
    if (!v->dir) {
        rc = where_default(&own, err);
        v->dir = rc < 0 ? NULL : hk_arena_printf(&v->mem, "%s-agent", own.data);
    }
    if (rc < 0) {
        return rc;
    }
    rc = where_make(v->dir, err);
    return rc < 0 ? rc : where_claim(v->dir, &v->claim, err);
}

/* Finds the API's address, for pods, and the node's own address, for the API. */
static int find_ways(struct agent_verb *v, struct hk_err *err)
{
    const int rc = reach_parse(client_config(v->daemon.client)->server, &v->api, err);

    if (rc == 0 && v->o->address) {
        snprintf(v->address, sizeof(v->address), "%s", v->o->address);
    } else if (rc == 0) {
        reach_from(&v->api, v->address, sizeof(v->address));
    }
    return rc;
}

static void cmd_agent_on_certs(void *ctx)
{
    struct agent_verb *v = ctx;
    const struct cert_pair *pair = &cert_files_now(v->certs)->pair;
    struct hk_err err = {0};

    if (kubelet_become(v->kubelet, pair->cert_pem, pair->key_pem, &err) < 0) {
        hk_log(HK_LOG_ERROR, "the new certificate is not used", "err=\"%s\"", err.text);
    }
}

static int open_certs(struct agent_verb *v, struct hk_err *err)
{
    const char *const names[] = {v->name, v->address, "localhost", "127.0.0.1"};
    HK_AUTO(hk_buf_fini) struct hk_buf cert = {0}, key = {0};
    struct cert_files_opts o = {.loop = v->daemon.loop,
                                .cert_file = v->o->daemon.cert_file,
                                .key_file = v->o->daemon.key_file,
                                .ca_file = v->o->client_ca,
                                .changed = cmd_agent_on_certs,
                                .ctx = v};
    int rc = 0;

    if (!o.cert_file) {
        rc = agent_certs_keep(
            &(struct agent_certs_opts){.dir = v->dir,
                                       .names = names,
                                       .nnames = HK_LEN(names),
                                       .now_s = v->daemon.clock->wall_ns(v->daemon.clock) /
                                                (1000 * 1000 * 1000)},
            &cert, &key, err);
        o.cert_file = hk_arena_str(&v->mem, hk_buf_str(&cert)).s;
        o.key_file = hk_arena_str(&v->mem, hk_buf_str(&key)).s;
    }
    if (rc == 0) {
        rc = cert_files_new(&o, &v->certs, err);
    }
    if (rc == 0 && v->o->client_ca && cert_first(cert_files_now(v->certs)->ca_pem) == 0) {
        return hk_fail(err, HK_EINVAL, "option --client-ca-file: no certificate in '%s'",
                       v->o->client_ca);
    }
    return rc;
}

/* Listens on loopback unless the administrator names an address. */
static const char *agent_listen(struct agent_verb *v)
{
    const char *address = v->o->address;

    if (v->o->listen) {
        return v->o->listen;
    }
    if (!address) {
        return LISTEN;
    }
    return hk_arena_printf(&v->mem, strchr(address, ':') ? "[%s]:%s" : "%s:%s", address,
                           LISTEN_PORT);
}

/* Warns if the address in the node's status does not accept connections from the API server. */
static void agent_warn_unreachable(const struct agent_verb *v, const char *host)
{
    if (strncmp(host, "127.", 4) == 0 && strncmp(v->address, "127.", 4) != 0 &&
        strcmp(v->address, "::1") != 0) {
        hk_log(HK_LOG_WARN,
               "the API server cannot ask this node for logs and commands of pods: the agent "
               "listens on loopback only; start it with --listen ADDR:PORT or --address IP",
               "address=%s", v->address);
    }
}

static int open_kubelet(struct agent_verb *v, struct hk_err *err)
{
    const struct cert_set *certs = cert_files_now(v->certs);
    const char *listen = agent_listen(v);
    char host[64];
    uint16_t port;
    int rc = daemon_split_address(listen, host, sizeof(host), &port);

    hk_assert(rc == 0);
    agent_warn_unreachable(v, host);
    v->node_api = (struct node_api){.serve = cmd_agent_serve, .ctx = v};
    rc = kubelet_new(&(struct kubelet_opts){.loop = v->daemon.loop,
                                            .clock = v->daemon.clock,
                                            .port = v->daemon.port,
                                            .addr = hk_str(host),
                                            .tcp_port = port,
                                            .cert_pem = certs->pair.cert_pem,
                                            .key_pem = certs->pair.key_pem,
                                            .client_ca_pem = certs->ca_pem,
                                            .node = v->o->node.no_node ? "" : v->name,
                                            .api = &v->node_api,
                                            .write_pods = write_pods,
                                            .ctx = v},
                     &v->kubelet, err);
    return rc < 0 ? hk_wrap(err, rc, "--listen %s", listen) : 0;
}

static int open_nodes(struct agent_verb *v, struct hk_err *err)
{
    const struct daemon *d = &v->daemon;
    struct sim_nodes_opts sim = v->o->sim;
    int rc = 0;

    if (!v->o->node.no_node) {
        rc = node_start(&v->node,
                        &(struct node_opts){.loop = d->loop,
                                            .spawner = v->spawner,
                                            .port = d->port,
                                            .clock = d->clock,
                                            .rand = &v->daemon.rand,
                                            .api_host = v->api.host,
                                            .api_port = v->api.port,
                                            .dir = v->dir,
                                            .flags = &v->o->node,
                                            .address = v->address,
                                            .serve_port = kubelet_port(v->kubelet),
                                            .lease_ns = v->o->lease_ns,
                                            .credentials = v->o->daemon.kubeconfig},
                        err);
    }
    if (rc == 0) {
        sim.fleet.beats = true;
        sim.address = v->address;
        sim.serve_port = kubelet_port(v->kubelet);
        sim.lease_ns = v->o->lease_ns;
        sim_nodes_start(&v->sim, &sim, d->port, d->clock, &v->daemon.rand);
    }
    return rc;
}

/* ---- working ---- */

static void cmd_agent_work_start(void *ctx)
{
    notify("READY=1");
}

/* Ends the pods, then the agent. */
static int64_t clear(struct agent_verb *v)
{
    if (!v->cleared && agent_ready(v->node.agent)) {
        v->cleared = true;
        agent_clear(v->node.agent);
    } else if (v->cleared && agent_is_clear(v->node.agent)) {
        v->clearing = false;
        daemon_stop(&v->daemon);
    }
    return net_loop_now_ns(v->daemon.loop) + CLEAR_AGAIN_NS; /* unmounts send no event */
}

static int64_t cmd_agent_work_run(void *ctx)
{
    struct agent_verb *v = ctx;
    int64_t next_ns = sim_nodes_run(&v->sim), at_ns;

    if (v->node.agent) {
        at_ns = agent_run(v->node.agent);
        next_ns = HK_MIN(next_ns, at_ns);
    }
    if (v->clearing) {
        at_ns = clear(v);
        next_ns = HK_MIN(next_ns, at_ns);
    }
    return next_ns;
}

static bool cmd_agent_work_drain(void *ctx)
{
    return true; /* the next agent reports what is left */
}

static void cmd_agent_work_end(void *ctx)
{
    struct agent_verb *v = ctx;

    kubelet_free(hk_take(v->kubelet));
    sim_nodes_end(&v->sim);
    v->sim = (struct sim_nodes){0};
    node_end(&v->node);
}

static void cmd_agent_work_metrics(void *ctx, struct hk_buf *out)
{
}

static void cmd_agent_work_show(void *ctx, int signo)
{
    struct agent_verb *v = ctx;

    if (signo != SIGUSR1) {
        return;
    }
    hk_log(HK_LOG_INFO, "ending the pods", "signal=%d", signo);
    v->clearing = v->node.agent != NULL;
    if (!v->clearing) {
        daemon_stop(&v->daemon);
    }
}

static void work_describe(void *ctx, struct hk_buf *out)
{
    const struct agent_verb *v = ctx;

    if (!v->o->node.no_node) {
        hk_buf_addf(out, ", node %s", v->name);
    }
    if (v->o->sim.fleet.n > 0) {
        hk_buf_addf(out, ", %u simulated node%s", v->o->sim.fleet.n,
                    v->o->sim.fleet.n == 1 ? "" : "s");
    }
    hk_buf_addf(out, ", pods on port %u", kubelet_port(v->kubelet));
}

static int open_parts(struct agent_verb *v, struct hk_err *err)
{
    const struct daemon *d = &v->daemon;
    int rc = find_ways(v, err);

    if (rc < 0) {
        return rc;
    }
    rc = open_certs(v, err);
    if (rc < 0) {
        return rc;
    }
    rc = open_kubelet(v, err);
    if (rc < 0) {
        return rc;
    }
    rc = open_nodes(v, err);
    return rc < 0 ? rc
                  : where_tell(v->claim, "agent", client_config(d->client)->server,
                               d->clock->wall_ns(d->clock), err);
}

static int agent_open_and_run(struct agent_verb *v, const struct daemon_work *work,
                              struct hk_err *err)
{
    int rc = daemon_open(&v->daemon, &v->o->daemon, work, err);

    if (rc < 0) {
        return rc;
    }
    rc = open_parts(v, err);
    if (rc < 0) {
        return rc;
    }
    return daemon_run(&v->daemon, err);
}

static int agent_run_node(struct agent_verb *v, const struct daemon_work *work, struct hk_err *err)
{
    host_open_crumbs(v->dir);
    const int rc = agent_open_and_run(v, work, err);
    cmd_agent_work_end(v);
    cert_files_free(v->certs);
    daemon_close(&v->daemon);
    return rc;
}

static int agent(void *ctx, struct hk_err *err)
{
    const struct agent_verb_opts *o = ctx;
    struct agent_verb v = {.o = o, .claim = -1};
    const struct daemon_work work = {.start = cmd_agent_work_start,
                                     .run = cmd_agent_work_run,
                                     .drain = cmd_agent_work_drain,
                                     .end = cmd_agent_work_end,
                                     .write_metrics = cmd_agent_work_metrics,
                                     .show = cmd_agent_work_show,
                                     .describe = work_describe,
                                     .every_turn = true,
                                     .ctx = &v};
    int rc = cmd_agent_check(o, err);

    if (rc < 0) {
        return rc;
    }
    umask(077); /* files here hold secrets */
    v.name = node_name(&o->node, &v.mem);
    rc = o->node.no_node ? 0 : spawner_new(&v.spawner, err); /* fork while small */
    host_raise_limits();
    if (rc == 0) {
        rc = open_dir(&v, err);
    }
    if (rc == 0) {
        rc = agent_run_node(&v, &work, err);
    }
    spawner_free(v.spawner);
    hk_crumb_close();
    if (v.claim >= 0) {
        close(v.claim);
    }
    hk_arena_fini(&v.mem);
    return rc;
}

static int agent_verb_run(const struct verb *verb, int argc, char **argv)
{
    struct agent_verb_opts o = {.daemon = {.name = verb->name, .component = COMPONENT},
                                .sim = sim_nodes_opts_default()};

    return daemon_verb(verb, argc, argv, &o, &o.daemon, agent);
}

const struct verb verb_agent = {
    .name = "agent",
    .args = "",
    .about = "run this machine, or simulated ones, as nodes of a cluster",
    .options = options,
    .text = "Registers this machine as a node with an API server, hekla apiserver or that of a "
            "Kubernetes cluster, and runs the pods that are bound to it, as 'hekla up' does: a "
            "container is a process, with its environment, volumes, limits and user as far as the "
            "kernel permits. If 'hekla image' has brought its image to this machine, it runs in "
            "that image; otherwise it sees the files of the machine.\n"
            "To the cluster the agent is a kubelet: it renews a lease every ten seconds, reports "
            "its condition every five minutes and when it changes, refuses pods that do not fit, "
            "ends pods with their grace periods, reads ConfigMaps, Secrets and tokens of service "
            "accounts, and serves logs on its port. After an absence the node becomes ready again "
            "when the agent has ended what still runs for deleted pods.\n"
            "Pods continue without the agent and without the API server, and their outcome is "
            "reported when both are back. 'hekla down --data-dir DIR' ends the agent; with --pods "
            "it ends the pods first.\n"
            "Simulated nodes (--sim-nodes) run no processes; they are for trying schedulers on "
            "clusters that do not exist. One agent serves all of them and spreads their leases "
            "evenly.",
    .rest =
        "SERVING\n"
        "       The agent serves these on the port of --listen, over TLS, to users who may 'get'\n"
        "       nodes/proxy of this node:\n"
        "           /containerLogs/NAMESPACE/POD/CONTAINER   for kubectl logs\n"
        "           /exec/... and /attach/...                over WebSocket or SPDY\n"
        "           /portForward/NAMESPACE/POD               the same, for kubectl port-forward\n"
        "           /pods                                    the pods of this node, as a PodList\n"
        "           /healthz                                 ok\n"
        "       A request needs a client certificate of --client-ca-file or a bearer token. The\n"
        "       API server decides whose token it is and what that user may do (TokenReview,\n"
        "       SubjectAccessReview). Requests without credentials are refused.\n"
        "       kube-apiserver translates the requests of current kubectl to SPDY.\n"
        "\n" SIM_NODES_HELP "SIGNALS\n"
        "       SIGTERM, SIGINT  end the agent; pods continue to run and are found again\n"
        "       SIGUSR1          ends the pods first: they are deleted, with their grace periods\n"
        "\n"
        "ENVIRONMENT\n"
        "       NOTIFY_SOCKET    the socket of a service manager that is told when the agent\n"
        "                        is ready (Type=notify of systemd)\n"
        "\n"
        "EXIT STATUS\n"
        "       0  ended by a signal; pods continue to run\n"
        "       1  could not start, or got a second signal; one line on standard error says why\n"
        "\n"
        "EXAMPLES\n"
        "       This machine as a node of a cluster, its logs for kubectl:\n"
        "           hekla agent --kubeconfig /etc/hekla/agent.kubeconfig \\\n"
        "               --address 192.0.2.7 --client-ca-file /etc/kubernetes/pki/ca.crt\n"
        "\n"
        "       A thousand nodes with eight GPUs each that only seem to run pods:\n"
        "           hekla agent --kubeconfig ~/.kube/config --no-node \\\n"
        "               --sim-nodes 1000 --sim-gpus 8 --sim-model duration=exp:60s\n",
    .run = agent_verb_run,
};
