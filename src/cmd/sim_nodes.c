// SPDX-License-Identifier: Apache-2.0
// Simulated nodes: options into capacities, and the simulating runtime into an agent.
#include "cmd/sim_nodes.h"

#include "base/file.h"
#include "codec/json.h"
#include "codec/quantity.h"

enum { NODES_MAX = 100000, MODEL_MAX = 1 << 20 };

struct sim_nodes_opts sim_nodes_opts_default(void)
{
    struct sim_nodes_opts o = {
        .cpu = "32", .memory = "128Gi", .pods = 110, .model = simulate_model_default()};

    o.model.seed = 1;
    return o;
}

/* ---- options ---- */

static int take_number(const char *name, const char *value, int64_t min, int64_t max, int64_t *ret,
                       struct hk_err *err)
{
    if (!hk_str_int(hk_str(value), ret) || *ret < min || *ret > max) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want a number from %lld to %lld", name,
                       value, (long long)min, (long long)max);
    }
    return 0;
}

static int take_quantity(const char *name, const char *value, const char **ret, struct hk_err *err)
{
    struct quantity q;

    if (quantity_parse(hk_str(value), &q, NULL) < 0 || quantity_milli(q) <= 0) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want an amount like 32 or 128Gi", name,
                       value);
    }
    *ret = value;
    return 0;
}

/* A model has a '=' in it; names of files that have one can be written with a path, "./a=b". */
static int take_model(const char *value, struct simulate_model *m, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int rc;

    if (strchr(value, '=') && !strchr(value, '/')) {
        rc = simulate_model_read(hk_str(value), m, err);
        return rc < 0 ? hk_wrap(err, rc, "option --sim-model is '%s'", value) : 0;
    }
    rc = hk_read_file(value, MODEL_MAX, &text, err);
    rc = rc < 0 ? rc : simulate_model_read(hk_buf_str(&text), m, err);
    return rc < 0 ? hk_wrap(err, rc, "option --sim-model, file '%s'", value) : 0;
}

bool sim_nodes_take(struct sim_nodes_opts *o, const struct option_row *row, const char *value,
                    int *ret, struct hk_err *err)
{
    int64_t nodes = o->fleet.n, zones = o->fleet.zones, seed = (int64_t)o->model.seed;
    const struct {
        const char *name;
        int64_t min, max, *at;
    } numbers[] = {
        {"sim-nodes", 0, NODES_MAX, &nodes}, {"sim-zones", 0, NODES_MAX, &zones},
        {"sim-gpus", 0, 1 << 16, &o->gpus},  {"sim-pods", 1, 1 << 20, &o->pods},
        {"sim-seed", 0, INT64_MAX, &seed},
    };

    for (size_t i = 0; i < HK_LEN(numbers); i++) {
        if (strcmp(row->name, numbers[i].name) == 0) {
            *ret =
                take_number(row->name, value, numbers[i].min, numbers[i].max, numbers[i].at, err);
            o->fleet.n = (uint32_t)nodes;
            o->fleet.zones = (uint32_t)zones;
            o->model.seed = (uint64_t)seed;
            return true;
        }
    }
    if (strcmp(row->name, "sim-cpu") == 0) {
        *ret = take_quantity(row->name, value, &o->cpu, err);
    } else if (strcmp(row->name, "sim-memory") == 0) {
        *ret = take_quantity(row->name, value, &o->memory, err);
    } else if (strcmp(row->name, "sim-model") == 0) {
        *ret = take_model(value, &o->model, err);
    } else {
        return false;
    }
    return true;
}

/* ---- running ---- */

static void put(struct json *list, struct hk_arena *a, const char *name, const char *amount)
{
    json_put(list, a, hk_str(name), json_make_str(hk_str(amount)));
}

static struct json capacity(const struct sim_nodes_opts *o, struct hk_arena *a)
{
    struct json list = json_make_object();

    put(&list, a, "cpu", o->cpu);
    put(&list, a, "memory", o->memory);
    put(&list, a, "pods", hk_arena_printf(a, "%lld", (long long)o->pods));
    if (o->gpus > 0) {
        put(&list, a, "nvidia.com/gpu", hk_arena_printf(a, "%lld", (long long)o->gpus));
    }
    return list;
}

static void on_end(void *ctx, uint64_t container, const struct runtime_end *end)
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
                                                              .sink = {on_end, s},
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
    /* What the agent has started may end before anything else. */
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
