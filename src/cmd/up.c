// SPDX-License-Identifier: Apache-2.0
// hekla up: API server, admission, controllers and scheduler in one process, around one store.
// Nothing here speaks HTTP to itself: controllers and scheduler hold the store's own port. One
// thread turns the loop; after each turn whoever got messages goes on with its work.
#include "cmd/host.h"

#include "cmd/prober.h"
#include "controllers/ctl.h"
#include "scheduler/loop.h"

struct up_opts {
    struct host_opts host;
    const char *conf;
};

struct up {
    struct host host;
    struct prober *prober;
    struct manager *controllers;
    struct loop *scheduler;
};

static const struct option_row options[] = {
    HOST_OPTION_DATA_DIR,
    HOST_OPTION_LISTEN,
    {'c', "conf", "FILE", NULL,
     "The scheduler's configuration, in the form of vc-scheduler's file. It is read again when it "
     "changes; a bad one is reported and the last good one stays in force."},
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
    if (!row || !host_take(&o->host, row, value, &rc, err)) {
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

static int start(struct up *u, const struct up_opts *o, struct hk_err *err)
{
    const int rc = host_open(&u->host, &o->host, err);

    if (rc < 0) {
        return rc;
    }
    u->prober = cmd_prober_new(u->host.loop);
    u->controllers = start_controllers(u);
    return loop_new(&(struct loop_opts){.port = rest_port(u->host.rest),
                                        .clock = u->host.clock,
                                        .conf_path = o->conf,
                                        .session = SESSION_OPTS_DEFAULT},
                    &u->scheduler, err);
}

/* Lets everybody work; how long nothing will happen unless the loop brings news. */
static int64_t step(struct up *u)
{
    const int64_t next_ns = manager_run(u->controllers);
    const int64_t now_ns = net_loop_now_ns(u->host.loop);
    int64_t wait_ns;

    loop_step(u->scheduler, &wait_ns);
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
    struct up u = {0};
    struct hk_err err = {0};
    int rc = start(&u, o, &err);

    rc = rc < 0 ? rc : host_announce(&u.host, &o->host, "up", &err);
    rc = rc < 0 ? rc : turn(&u, &err);
    loop_free(u.scheduler);
    manager_free(u.controllers);
    cmd_prober_free(u.prober);
    host_close(&u.host);
    if (rc < 0) {
        verb_complain("up: %s", err.text);
    }
    return rc < 0 ? EXIT_BAD : EXIT_OK;
}

static int run(const struct verb *v, int argc, char **argv)
{
    struct up_opts o = {.host = host_opts_default()};
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
    .about = "run the API, the controllers and the scheduler in one process",
    .options = options,
    .noption = HK_LEN(options),
    .text =
        "Everything but the nodes: an API server as 'hekla apiserver' runs it, Volcano's admission "
        "rules, its controllers and its scheduler, in one process and on one store. Jobs, queues, "
        "flows and cron jobs work as on a cluster; pods are bound to the Node objects there are. "
        "Running them is the nodes' work: agents register through the API.\n"
        "Everything that was acknowledged survives a crash: started again, the process goes on "
        "where it was.",
    .rest = "EXAMPLES\n"
            "           hekla up --data-dir /tmp/hekla --listen 127.0.0.1:0 &\n"
            "           export KUBECONFIG=/tmp/hekla/kubeconfig\n"
            "           kubectl apply -f examples/job.yaml\n",
    .run = run,
};
