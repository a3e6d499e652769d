// SPDX-License-Identifier: Apache-2.0
// pytorch: sets the variables of torch.distributed and, on request, adds an init container that
// holds workers back until the master listens.
#include "controllers/jobplugin.h"

struct pytorch_opts {
    struct hk_str master, worker, wait_image;
    int64_t port, wait_timeout_s;
    bool wait;
};

static const struct job_opt opts[] = {
    {"master", JOB_OPT_STRING, offsetof(struct pytorch_opts, master), "master",
     "name of the master task"},
    {"worker", JOB_OPT_STRING, offsetof(struct pytorch_opts, worker), "worker",
     "name of the worker task"},
    {"port", JOB_OPT_INT, offsetof(struct pytorch_opts, port), "23456", "port of the master"},
    {"wait-master-enabled", JOB_OPT_BOOL, offsetof(struct pytorch_opts, wait), NULL,
     "workers wait until the master listens"},
    {"wait-master-timeout", JOB_OPT_INT, offsetof(struct pytorch_opts, wait_timeout_s), "300",
     "how many seconds they wait"},
    {"wait-master-image", JOB_OPT_STRING, offsetof(struct pytorch_opts, wait_image),
     "busybox:1.36.1", "image of the container that waits"},
    {0},
};

struct pytorch_add {
    struct hk_arena *a;
    struct hk_str master, port, world, rank; /* rank "": none */
    int64_t port_number;
};

static void pytorch_add_to_container(void *ctx, struct json *container)
{
    const struct pytorch_add *p = ctx;

    job_add_port(container, p->a, "pytorchjob-port", p->port_number);
    job_add_env(container, p->a, "MASTER_ADDR", p->master);
    job_add_env(container, p->a, "MASTER_PORT", p->port);
    job_add_env(container, p->a, "WORLD_SIZE", p->world);
    if (p->rank.n > 0) {
        job_add_env(container, p->a, "RANK", p->rank);
    }
}

static struct hk_str pytorch_format_int(struct hk_arena *a, int64_t n)
{
    return hk_str(hk_arena_printf(a, "%lld", (long long)n));
}

/* Every master has rank 0, as upstream: more than one master is not supported. */
static struct hk_str pytorch_task_rank(const struct job_plugin_use *use,
                                       const struct api_job_task *task, int32_t index)
{
    const struct pytorch_opts *o = use->opts;

    if (hk_str_eq(task->name, o->master)) {
        return HK_STR("0");
    }
    return hk_str_eq(task->name, o->worker) ? pytorch_format_int(use->a, (int64_t)index + 1)
                                            : HK_STR("");
}

static bool has_container(const struct json *list, const char *name)
{
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        if (hk_str_is(json_str(json_get(&list->items[i], "name"), HK_STR("")), name)) {
            return true;
        }
    }
    return false;
}

static void add_wait(const struct job_plugin_use *use, const struct pytorch_add *p,
                     struct json *pod)
{
    const struct pytorch_opts *o = use->opts;
    struct json *spec = (struct json *)json_get(pod, "spec");
    struct json *inits = json_need(spec, use->a, "initContainers", JSON_ARRAY);
    struct json c = json_make_object(), command = json_make_array();
    char *script;

    if (has_container(inits, "wait-for-master")) {
        return;
    }
    script = hk_arena_printf(
        use->a,
        "end=$(( $(date +%%s) + %lld )); "
        "until nc -z %.*s %.*s 2>/dev/null || "
        "(command -v bash >/dev/null && bash -c '</dev/tcp/%.*s/%.*s' 2>/dev/null); do "
        "[ $(date +%%s) -lt $end ] || { echo \"no master at %.*s:%.*s\" >&2; exit 1; }; "
        "sleep 2; done",
        (long long)o->wait_timeout_s, HK_FMT(p->master), HK_FMT(p->port), HK_FMT(p->master),
        HK_FMT(p->port), HK_FMT(p->master), HK_FMT(p->port));
    json_push(&command, use->a, json_make_str(HK_STR("sh")));
    json_push(&command, use->a, json_make_str(HK_STR("-c")));
    json_push(&command, use->a, json_make_str(hk_str(script)));
    json_set_cstr(&c, use->a, "name", "wait-for-master");
    json_set_str(&c, use->a, "image", o->wait_image);
    json_set(&c, use->a, "command", command);
    json_push(inits, use->a, c);
}

static int pytorch_pod(const struct job_plugin_use *use, const struct api_job_task *task,
                       int32_t index, struct json *pod, struct hk_err *err)
{
    const struct pytorch_opts *o = use->opts;
    const struct api_job_task *master = api_job_task_find(use->job, o->master);
    const struct api_job_task *worker = api_job_task_find(use->job, o->worker);
    struct pytorch_add p = {.a = use->a, .port_number = o->port};

    if (!master) {
        return 0;
    }
    p.master = job_address(use, master, 0);
    p.port = pytorch_format_int(use->a, o->port);
    p.world =
        pytorch_format_int(use->a, (int64_t)master->replicas + (worker ? worker->replicas : 0));
    p.rank = pytorch_task_rank(use, task, index);
    job_each_container(pod, false, pytorch_add_to_container, &p);
    if (o->wait && hk_str_eq(task->name, o->worker)) {
        add_wait(use, &p, pod);
    }
    return 0;
}

const struct job_plugin job_plugin_pytorch = {
    .name = "pytorch",
    .about = "sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK",
    .opts = opts,
    .opts_size = sizeof(struct pytorch_opts),
    .pod = pytorch_pod,
};
