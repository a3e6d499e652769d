// SPDX-License-Identifier: Apache-2.0
// hekla up: API server, admission, controllers, scheduler and this machine as a node, in one
// process around one store. Nothing here speaks HTTP to itself: everybody holds the store's own
// port. One thread turns the loop; after each turn whoever got messages goes on with its work.
#include "cmd/host.h"

#include "agent/process.h"
#include "cmd/node.h"
#include "cmd/prober.h"
#include "cmd/sim_nodes.h"
#include "controllers/ctl.h"
#include "net/node_api.h"
#include "scheduler/loop.h"

/* Events of one cause come in one turn here: one without any is pause enough. */
#define QUIET_NS 1
#define REASON_WAIT_NS ((int64_t)100 * 1000 * 1000)

struct up_opts {
    struct host_opts host;
    const char *conf;
    const char *node;        /* its name, NULL: the host's */
    const char *image_roots; /* or NULL */
    bool no_node;
    struct sim_nodes_opts sim;
};

struct up {
    struct host host;
    struct prober *prober;
    struct manager *controllers;
    struct loop *scheduler;
    struct process_nursery *nursery; /* of the node's processes, or NULL */
    struct node node;
    struct sim_nodes sim;
    struct node_api node_api;
};

static const struct option_row options[] = {
    HOST_OPTION_DATA_DIR,
    HOST_OPTION_LISTEN,
    {'c', "conf", "FILE", NULL,
     "The scheduler's configuration, in the form of vc-scheduler's file. It is read again when it "
     "changes; a bad one is reported and the last good one stays in force."},
    {'n', "node", "NAME", NULL, "The name of this machine as a node (default: its host name)."},
    {0, "no-node", NULL, NULL,
     "Run no pods on this machine. Agents elsewhere may register through the API."},
    {0, "image-roots", "FILE", NULL,
     "Root file systems for images: lines of an image and a directory. Containers of other images "
     "run in this machine's own."},
    SIM_NODES_OPTIONS,
    HOST_OPTION_LIMITS,
};

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct up_opts *o = ctx;
    const struct {
        const char *name, **at;
    } words[] = {{"conf", &o->conf}, {"node", &o->node}, {"image-roots", &o->image_roots}};
    int rc;

    if (row && strcmp(row->name, "no-node") == 0) {
        o->no_node = true;
        return 0;
    }
    for (size_t i = 0; row && i < HK_LEN(words); i++) {
        if (strcmp(row->name, words[i].name) == 0) {
            *words[i].at = value;
            return 0;
        }
    }
    if (!row || (!sim_nodes_take(&o->sim, row, value, &rc, err) &&
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

/* Who has the pod answers for it. */
static void serve(void *ctx, const struct node_call *call)
{
    struct up *u = ctx;
    const bool sim =
        !u->node.agent || (u->sim.agent && agent_has(u->sim.agent, call->ns, call->pod));

    agent_serve(sim ? u->sim.agent : u->node.agent, call);
}

static int start(struct up *u, const struct up_opts *o, struct hk_err *err)
{
    struct host_opts host = o->host;
    int rc;

    u->node_api = (struct node_api){.serve = serve, .ctx = u};
    host.node_api = o->no_node && o->sim.fleet.n == 0 ? NULL : &u->node_api;
    rc = host_open(&u->host, &host, err);
    if (rc < 0) {
        return rc;
    }
    u->prober = cmd_prober_new(u->host.loop);
    u->controllers = start_controllers(u);
    rc = loop_new(&(struct loop_opts){.port = rest_port(u->host.rest),
                                      .clock = u->host.clock,
                                      .conf_path = o->conf,
                                      .quiet_ns = QUIET_NS,
                                      .reason_wait_ns = REASON_WAIT_NS,
                                      .session = SESSION_OPTS_DEFAULT},
                  &u->scheduler, err);
    if (rc == 0 && !o->no_node) {
        rc = node_start(&u->node,
                        &(struct node_opts){.nursery = u->nursery,
                                            .loop = u->host.loop,
                                            .port = rest_port(u->host.rest),
                                            .clock = u->host.clock,
                                            .rand = &u->host.rand,
                                            .dir = o->host.dir,
                                            .name = o->node,
                                            .image_roots = o->image_roots},
                        err);
    }
    if (rc == 0) {
        sim_nodes_start(&u->sim, &o->sim, rest_port(u->host.rest), u->host.clock, &u->host.rand);
    }
    return rc;
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
    loop_step(u->scheduler, &wait_ns);
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

static int up(const struct up_opts *o)
{
    struct up u = {.nursery = o->no_node ? NULL : process_nursery_new()};
    struct hk_err err = {0};
    int rc = start(&u, o, &err);

    rc = rc < 0 ? rc : host_announce(&u.host, &o->host, "up", &err);
    rc = rc < 0 ? rc : turn(&u, &err);
    sim_nodes_end(&u.sim);
    node_end(&u.node);
    loop_free(u.scheduler);
    manager_free(u.controllers);
    cmd_prober_free(u.prober);
    host_close(&u.host);
    process_nursery_free(u.nursery);
    if (rc < 0) {
        verb_complain("up: %s", err.text);
    }
    return rc < 0 ? EXIT_BAD : EXIT_OK;
}

static int run(const struct verb *v, int argc, char **argv)
{
    struct up_opts o = {.host = host_opts_default(), .sim = sim_nodes_opts_default()};
    const int rc = verb_parse(v, argc, argv, take, &o);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (!o.host.dir) {
        return verb_complain("up: want --data-dir DIR (see 'hekla help up')");
    }
    return up(&o);
}

const struct verb verb_up = {
    .name = "up",
    .args = "--data-dir DIR",
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
        "where it was, and finds the processes that went on running.",
    .rest = SIM_NODES_HELP "EXAMPLES\n"
                           "           hekla up --data-dir /tmp/hekla --listen 127.0.0.1:0 &\n"
                           "           export KUBECONFIG=/tmp/hekla/kubeconfig\n"
                           "           kubectl apply -f examples/job.yaml\n"
                           "           kubectl logs -l volcano.sh/job-name=train\n\n"
                           "           hekla up --data-dir /tmp/big --no-node --sim-nodes 1000 \\\n"
                           "               --sim-model duration=exp:60s,fail=0.01\n",
    .run = run,
};
