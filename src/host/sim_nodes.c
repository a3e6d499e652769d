// SPDX-License-Identifier: Apache-2.0
// Simulated nodes: turns options into capacities, and connects the simulated runtime to an agent.
#include "host/sim_nodes.h"

#include "base/file.h"
#include "codec/json.h"

enum { NODES_MAX = 100000, MODEL_MAX = 1 << 20 };

struct sim_nodes_opts sim_nodes_opts_default(void)
{
    return (struct sim_nodes_opts){.model = simulate_model_default()};
}

/* ---- options ---- */

/* A model contains '='; write the name of a file that contains one with a path, "./a=b". */
static int sim_parse_model(void *at, const struct option_row *row, const char *value,
                           struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int rc;

    if (strchr(value, '=') && !strchr(value, '/')) {
        rc = simulate_model_read(hk_str(value), at, err);
        return rc < 0 ? hk_wrap(err, rc, "option --%s is '%s'", row->name, value) : 0;
    }
    rc = hk_read_file(value, MODEL_MAX, &text, err);
    if (rc == 0) {
        rc = simulate_model_read(hk_buf_str(&text), at, err);
    }
    return rc < 0 ? hk_wrap(err, rc, "option --%s, file '%s'", row->name, value) : 0;
}

const struct option_row sim_nodes_options[] = {
    ROW_INT(0, "sim-nodes", "N", struct sim_nodes_opts, fleet.n, 0, NODES_MAX, "0",
            "Add N simulated nodes, which run no processes. Their names are sim-00001 and so on, "
            "and they have the label type=simulated. Nodes of an earlier, larger N are removed."),
    ROW_QUANTITY("sim-cpu", struct sim_nodes_opts, cpu, 1, "32",
                 "The processors of each simulated node."),
    ROW_QUANTITY("sim-memory", struct sim_nodes_opts, memory, 1, "128Gi",
                 "The memory of each simulated node."),
    ROW_QUANTITY("sim-ephemeral-storage", struct sim_nodes_opts, disk, 1, "1Ti",
                 "The ephemeral-storage of each simulated node."),
    ROW_INT(0, "sim-gpus", "N", struct sim_nodes_opts, gpus, 0, 1 << 16, "0",
            "How many nvidia.com/gpu each simulated node has."),
    ROW_INT(0, "sim-pods", "N", struct sim_nodes_opts, pods, 1, 1 << 20, "110",
            "How many pods each simulated node takes."),
    ROW_INT(0, "sim-zones", "N", struct sim_nodes_opts, fleet.zones, 0, NODES_MAX, "0",
            "Spread the simulated nodes over the zones zone-1 to zone-N, with the label "
            "topology.kubernetes.io/zone; 0 gives them no zone."),
    ROW_CALL(0, "sim-model", "SPEC", struct sim_nodes_opts, model, sim_parse_model, NULL,
             "What happens to simulated containers: KEY=VALUE pairs with commas between them, or "
             "the name of a file of such lines. See SIMULATED NODES."),
    ROW_INT(0, "sim-seed", "N", struct sim_nodes_opts, model.seed, 0, INT64_MAX, "1",
            "The seed of the model's random numbers. With the same seed, a pod of the same name "
            "always ends the same way."),
    ROW_END,
};

/* ---- running ---- */

static struct json capacity(const struct sim_nodes_opts *o, struct hk_arena *a)
{
    struct json list = json_make_object();

    json_set_quantity(&list, a, "cpu", o->cpu);
    json_set_quantity(&list, a, "memory", o->memory);
    json_set_quantity(&list, a, "ephemeral-storage", o->disk);
    json_set_cstr(&list, a, "pods", hk_arena_printf(a, "%lld", (long long)o->pods));
    if (o->gpus > 0) {
        json_set_cstr(&list, a, "nvidia.com/gpu", hk_arena_printf(a, "%lld", (long long)o->gpus));
    }
    return list;
}

static void sim_nodes_on_end(void *ctx, uint64_t container, const struct runtime_end *end)
{
    struct sim_nodes *s = ctx;

    agent_on_end(s->agent, container, end);
}

void sim_nodes_start(struct sim_nodes *s, const struct sim_nodes_opts *o, struct port *port,
                     struct hk_clock *clock, struct hk_rand *rand)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct json has = capacity(o, &a);

    if (o->fleet.n == 0) {
        return;
    }
    s->model = o->model;
    s->runtime = simulate_runtime_new(&(struct simulate_opts){.clock = clock,
                                                              .rand = rand,
                                                              .sink = {sim_nodes_on_end, s},
                                                              .fate = simulate_model_fate,
                                                              .ctx = &s->model});
    s->agent = agent_new(&(struct agent_opts){.port = port,
                                              .shared_port = true,
                                              .clock = clock,
                                              .rand = rand,
                                              .runtime = s->runtime,
                                              .fleet = &o->fleet,
                                              .address = o->address,
                                              .serve_port = o->serve_port,
                                              .lease_ns = o->lease_ns,
                                              .capacity = &has});
}

int64_t sim_nodes_run(struct sim_nodes *s)
{
    int64_t next_ns, at_ns;

    if (!s->agent) {
        return INT64_MAX;
    }
    simulate_run(s->runtime);
    next_ns = agent_run(s->agent);
    /* A container that the agent just started may be the next to end. */
    at_ns = simulate_run(s->runtime);
    return HK_MIN(next_ns, at_ns);
}

void sim_nodes_end(struct sim_nodes *s)
{
    agent_free(s->agent);
    if (s->runtime) {
        s->runtime->ops->free(s->runtime);
    }
}
