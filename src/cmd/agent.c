// SPDX-License-Identifier: Apache-2.0
// hekla agent: this machine as a node of a cluster, or simulated nodes, or both, for any API server
// of Kubernetes' kind. What a kubelet is to others: it registers, says that it lives, runs the pods
// that are bound to it, and answers for their output.
#include "agent/kubelet.h"
#include "base/log.h"
#include "cmd/agent_certs.h"
#include "cmd/daemon.h"
#include "cmd/host.h"
#include "cmd/node.h"
#include "cmd/notify.h"
#include "cmd/reach.h"
#include "cmd/sim_nodes.h"
#include "cmd/where.h"
#include "net/cert_files.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPONENT "hekla-agent"
#define LISTEN ":10250"
#define QPS 2000
#define CLEAR_AGAIN_NS ((int64_t)20 * 1000 * 1000)

struct agent_verb_opts {
    struct daemon_opts daemon;
    struct node_flags node;
    struct sim_nodes_opts sim;
    const char *dir;       /* NULL: not given */
    const char *address;   /* of the node, NULL: found out */
    const char *client_ca; /* or NULL */
    const char *listen;
};

static const struct option_row options[] = {
    DAEMON_OPTIONS_API("2000", "2000"),
    {'d', "data-dir", "DIR", NULL,
     "Where pods have their volumes and logs, and the node its certificate. Made, with access for "
     "its owner only, when it does not exist. One agent at a time can use it. The default is "
     "/var/lib/hekla-agent for root and hekla-agent in $XDG_STATE_HOME or ~/.local/state for "
     "others."},
    NODE_OPTIONS(" For simulated nodes alone."),
    {0, "address", "IP", NULL,
     "The address others reach this machine at (default: the one it has on the way to the API "
     "server)."},
    {'l', "listen", "ADDR:PORT", NULL,
     "Where to answer for pods, over TLS (default " LISTEN "). Without ADDR on every address; port "
     "0 takes a free one. The port is told in the node's status."},
    {0, "tls-cert-file", "FILE", NULL,
     "The certificate to serve with, PEM; read again when it changes. Without it the agent makes "
     "one of its own and keeps it in the data directory."},
    {0, "tls-private-key-file", "FILE", NULL, "Its key."},
    {0, "client-ca-file", "FILE", NULL,
     "Who shows a certificate of this authority need not show a token: kube-apiserver with "
     "--kubelet-client-certificate."},
    SIM_NODES_OPTIONS,
    DAEMON_OPTIONS_LOG,
};

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct agent_verb_opts *o = ctx;
    const struct {
        const char *name, **at;
    } words[] = {{"data-dir", &o->dir},
                 {"address", &o->address},
                 {"client-ca-file", &o->client_ca},
                 {"listen", &o->listen}};
    int rc;

    if (!row) {
        return hk_fail(err, HK_EINVAL, "unexpected '%s'", value);
    }
    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (strcmp(row->name, words[i].name) == 0) {
            *words[i].at = value;
            return 0;
        }
    }
    const bool known = node_take(&o->node, row, value, &rc, err) ||
                       sim_nodes_take(&o->sim, row, value, &rc, err) ||
                       daemon_take(&o->daemon, row, value, &rc, err);
    hk_assert(known);
    return rc;
}

static int check(const struct agent_verb_opts *o, struct hk_err *err)
{
    unsigned char address[sizeof(struct in6_addr)];
    char host[64];
    uint16_t port;

    if (!o->daemon.cert_file != !o->daemon.key_file) {
        return hk_fail(err, HK_EINVAL,
                       "want both --tls-cert-file and --tls-private-key-file, or none");
    }
    if (daemon_split_address(o->listen, host, sizeof(host), &port) < 0) {
        return hk_fail(err, HK_EINVAL, "option --listen is '%s', want ADDR:PORT", o->listen);
    }
    if (o->address && inet_pton(AF_INET, o->address, address) != 1 &&
        inet_pton(AF_INET6, o->address, address) != 1) {
        return hk_fail(err, HK_EINVAL, "option --address is '%s', want an IP address", o->address);
    }
    if (o->node.no_node && o->sim.fleet.n == 0) {
        return hk_fail(err, HK_EINVAL, "--no-node without --sim-nodes leaves nothing to do");
    }
    return node_check(&o->node, err);
}

/* ---- the parts ---- */

struct agent_verb {
    const struct agent_verb_opts *o;
    struct hk_arena mem;
    struct daemon daemon;
    const char *dir, *name;
    int claim; /* on the directory, -1: none */
    struct reach api;
    char address[64];
    struct nursery *nursery;
    struct cert_files *certs;
    struct node_api node_api;
    struct kubelet *kubelet;
    struct node node;
    struct sim_nodes sim;
    bool clearing; /* SIGUSR1 came */
    bool cleared;  /* and pods have been told to end */
};

/* Who has the pod answers for it. */
static void serve(void *ctx, const struct node_call *call)
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
    rc = rc < 0 ? rc : where_make(v->dir, err);
    return rc < 0 ? rc : where_claim(v->dir, &v->claim, err);
}

/* Where the API is, for pods, and where we are, for the API. */
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

static void on_certs(void *ctx)
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
                                .changed = on_certs,
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
    rc = rc < 0 ? rc : cert_files_new(&o, &v->certs, err);
    if (rc == 0 && v->o->client_ca && cert_first(cert_files_now(v->certs)->ca_pem) == 0) {
        return hk_fail(err, HK_EINVAL, "option --client-ca-file: no certificate in '%s'",
                       v->o->client_ca);
    }
    return rc;
}

static int open_kubelet(struct agent_verb *v, struct hk_err *err)
{
    const struct cert_set *certs = cert_files_now(v->certs);
    char host[64];
    uint16_t port;
    int rc = daemon_split_address(v->o->listen, host, sizeof(host), &port);

    hk_assert(rc == 0);
    v->node_api = (struct node_api){.serve = serve, .ctx = v};
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
    return rc < 0 ? hk_wrap(err, rc, "--listen %s", v->o->listen) : 0;
}

static int open_nodes(struct agent_verb *v, struct hk_err *err)
{
    const struct daemon *d = &v->daemon;
    struct sim_nodes_opts sim = v->o->sim;
    int rc = 0;

    if (!v->o->node.no_node) {
        rc = node_start(&v->node,
                        &(struct node_opts){.loop = d->loop,
                                            .nursery = v->nursery,
                                            .port = d->port,
                                            .clock = d->clock,
                                            .rand = &v->daemon.rand,
                                            .api_host = v->api.host,
                                            .api_port = v->api.port,
                                            .dir = v->dir,
                                            .flags = &v->o->node,
                                            .address = v->address,
                                            .serve_port = kubelet_port(v->kubelet)},
                        err);
    }
    if (rc == 0) {
        sim.fleet.beats = true;
        sim.address = v->address;
        sim.serve_port = kubelet_port(v->kubelet);
        sim_nodes_start(&v->sim, &sim, d->port, d->clock, &v->daemon.rand);
    }
    return rc;
}

/* ---- working ---- */

static void work_start(void *ctx)
{
    notify("READY=1");
}

/* Ends the pods, and then the agent. */
static int64_t clear(struct agent_verb *v)
{
    if (!v->cleared && agent_ready(v->node.agent)) {
        v->cleared = true;
        agent_clear(v->node.agent);
    } else if (v->cleared && agent_is_clear(v->node.agent)) {
        v->clearing = false;
        daemon_stop(&v->daemon);
    }
    return net_loop_now_ns(v->daemon.loop) + CLEAR_AGAIN_NS; /* mounts go without telling */
}

static int64_t work_run(void *ctx)
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

static bool work_drain(void *ctx)
{
    return true; /* whatever was not said, the next agent says */
}

static void work_end(void *ctx)
{
    struct agent_verb *v = ctx;

    kubelet_free(hk_take(v->kubelet));
    sim_nodes_end(&v->sim);
    v->sim = (struct sim_nodes){0};
    node_end(&v->node);
}

static void work_metrics(void *ctx, struct hk_buf *out)
{
}

static void work_show(void *ctx, int signo)
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

    rc = rc < 0 ? rc : open_certs(v, err);
    rc = rc < 0 ? rc : open_kubelet(v, err);
    rc = rc < 0 ? rc : open_nodes(v, err);
    return rc < 0 ? rc
                  : where_tell(v->claim, "agent", client_config(d->client)->server,
                               d->clock->wall_ns(d->clock), err);
}

static int agent(void *ctx, struct hk_err *err)
{
    const struct agent_verb_opts *o = ctx;
    struct agent_verb v = {.o = o, .claim = -1};
    const struct daemon_work work = {.start = work_start,
                                     .run = work_run,
                                     .drain = work_drain,
                                     .end = work_end,
                                     .write_metrics = work_metrics,
                                     .show = work_show,
                                     .describe = work_describe,
                                     .every_turn = true,
                                     .ctx = &v};
    int rc = check(o, err);

    if (rc < 0) {
        return rc;
    }
    umask(077); /* everybody's secrets */
    v.name = node_name(&o->node, &v.mem);
    rc = o->node.no_node ? 0 : nursery_new(&v.nursery, err); /* before there is much to copy */
    host_raise_limits();
    rc = rc < 0 ? rc : open_dir(&v, err);
    if (rc == 0) {
        rc = daemon_open(&v.daemon, &o->daemon, &work, err);
        rc = rc < 0 ? rc : open_parts(&v, err);
        rc = rc < 0 ? rc : daemon_run(&v.daemon, err);
        work_end(&v);
        cert_files_free(v.certs);
        daemon_close(&v.daemon);
    }
    nursery_free(v.nursery);
    if (v.claim >= 0) {
        close(v.claim);
    }
    hk_arena_fini(&v.mem);
    return rc;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    struct agent_verb_opts o = {.daemon = daemon_opts_default(verb->name, COMPONENT),
                                .sim = sim_nodes_opts_default(),
                                .listen = LISTEN};

    o.daemon.elect = false;
    o.daemon.qps = QPS;
    o.daemon.burst = QPS;
    return daemon_verb(verb, argc, argv, take, agent, &o, &o.daemon);
}

const struct verb verb_agent = {
    .name = "agent",
    .args = "",
    .about = "run this machine, or simulated ones, as nodes of a cluster",
    .options = options,
    .noption = HK_LEN(options),
    .text =
        "Registers this machine as a node with an API server, hekla apiserver or a Kubernetes "
        "cluster's, and runs the pods that are bound to it, as 'hekla up' does: a container is a "
        "process, with its environment, volumes, limits and user as far as the kernel permits it; "
        "its image is not used, unless --image-roots gives a root file system for it.\n"
        "To the cluster it is as a kubelet: it renews a lease every ten seconds, reports its "
        "condition every five minutes and when it changes, ends pods with their grace periods, "
        "fetches ConfigMaps, Secrets and tokens of service accounts, and serves logs on its port. "
        "A node that was given up on while the agent was away is ready again once it is back.\n"
        "Pods do not depend on the agent, nor on the API server: they go on without them, and "
        "what became of them is told when both are there again. 'hekla down --data-dir DIR' ends "
        "the agent, with --pods its pods first.\n"
        "Simulated nodes (--sim-nodes) are nodes that only seem to run pods, for trying out "
        "schedulers on clusters one does not have. One agent speaks for all of them; their leases "
        "are spread evenly.",
    .rest =
        "SERVING\n"
        "       On the port of --listen, over TLS, who may 'get' nodes/proxy of this node gets\n"
        "           /containerLogs/NAMESPACE/POD/CONTAINER   what kubectl logs asks for\n"
        "           /exec/... and /attach/...                over WebSocket or SPDY\n"
        "           /pods                                    the pods here, as a PodList\n"
        "           /healthz                                 ok\n"
        "       Who asks shows a client certificate of --client-ca-file or a bearer token; the "
        "API\n"
        "       server says whose it is and what that user may do (TokenReview,\n"
        "       SubjectAccessReview). Nobody gets anything unnamed.\n"
        "       kube-apiserver turns what current kubectl asks of exec and attach into SPDY;\n"
        "       port-forward is not offered.\n"
        "\n" SIM_NODES_HELP "SIGNALS\n"
        "       SIGTERM, SIGINT  end the agent; pods go on running and are found again\n"
        "       SIGUSR1          ends the pods first: they are deleted, with their grace periods\n"
        "\n"
        "ENVIRONMENT\n"
        "       NOTIFY_SOCKET    the socket of a service manager that wants to hear when the\n"
        "                        agent is ready (Type=notify of systemd)\n"
        "\n"
        "EXIT STATUS\n"
        "       0  ended by a signal; pods go on\n"
        "       1  could not start, or was told to end twice; one line on standard error says why\n"
        "\n"
        "EXAMPLES\n"
        "       This machine as a node of a cluster, its logs for kubectl:\n"
        "           hekla agent --kubeconfig /etc/hekla/agent.kubeconfig \\\n"
        "               --client-ca-file /etc/kubernetes/pki/ca.crt\n"
        "\n"
        "       A thousand nodes with eight GPUs each that only seem to run pods:\n"
        "           hekla agent --kubeconfig ~/.kube/config --no-node \\\n"
        "               --sim-nodes 1000 --sim-gpus 8 --sim-model duration=exp:60s\n",
    .run = run,
};
