// SPDX-License-Identifier: Apache-2.0
// ray: the head starts a Ray cluster, the workers join it, and a Service exposes it.
#include "api/names.h"
#include "controllers/jobplugin.h"

struct ray_opts {
    struct hk_str head, head_container, worker, worker_container;
    int64_t port, dashboard_port, client_port;
};

static const struct job_opt opts[] = {
    {"head", JOB_OPT_STRING, offsetof(struct ray_opts, head), "head", "name of the head task"},
    {"headContainer", JOB_OPT_STRING, offsetof(struct ray_opts, head_container), "head",
     "its container that runs ray"},
    {"worker", JOB_OPT_STRING, offsetof(struct ray_opts, worker), "worker",
     "name of the worker task"},
    {"workerContainer", JOB_OPT_STRING, offsetof(struct ray_opts, worker_container), "worker",
     "its container that runs ray"},
    {"port", JOB_OPT_INT, offsetof(struct ray_opts, port), "6379", "port of the control store"},
    {"dashboardPort", JOB_OPT_INT, offsetof(struct ray_opts, dashboard_port), "8265",
     "port of the dashboard"},
    {"clientPort", JOB_OPT_INT, offsetof(struct ray_opts, client_port), "10001",
     "port for clients"},
    {0},
};

struct ray_add {
    const struct job_plugin_use *use;
    struct hk_str container; /* its command is replaced */
    bool head;
    char *command;
};

static void ray_add_to_container(void *ctx, struct json *container)
{
    const struct ray_add *r = ctx;
    const struct ray_opts *o = r->use->opts;
    struct hk_arena *a = r->use->a;
    struct json command = json_make_array();

    if (!hk_str_eq(json_str(json_get(container, "name"), HK_STR("")), r->container)) {
        return;
    }
    if (r->head) {
        job_add_port(container, a, "gcs", o->port);
        job_add_port(container, a, "dashboard", o->dashboard_port);
        job_add_port(container, a, "client-server", o->client_port);
    }
    json_push(&command, a, json_make_str(HK_STR("sh")));
    json_push(&command, a, json_make_str(HK_STR("-c")));
    json_push(&command, a, json_make_str(hk_str(r->command)));
    json_set(container, a, "command", command);
}

static int ray_pod(const struct job_plugin_use *use, const struct api_job_task *task, int32_t index,
                   struct json *pod, struct hk_err *err)
{
    const struct ray_opts *o = use->opts;
    const struct api_job_task *head = api_job_task_find(use->job, o->head);
    struct ray_add r = {.use = use};

    if (!head) {
        return hk_fail(err, HK_EINVAL, "the head task '%.*s' does not exist", HK_FMT(o->head));
    }
    if (task == head) {
        r.head = true;
        r.container = o->head_container;
        r.command = hk_arena_printf(use->a,
                                    "ray start --head --block --dashboard-host=0.0.0.0 --port=%lld "
                                    "--dashboard-port=%lld --ray-client-server-port=%lld",
                                    (long long)o->port, (long long)o->dashboard_port,
                                    (long long)o->client_port);
    } else if (hk_str_eq(task->name, o->worker)) {
        r.container = o->worker_container;
        r.command = hk_arena_printf(use->a, "ray start --block --address=%.*s:%lld",
                                    HK_FMT(job_address(use, head, 0)), (long long)o->port);
    } else {
        return 0;
    }
    job_each_container(pod, false, ray_add_to_container, &r);
    return 0;
}

/* ---- the Service ---- */

static void add_service_port(const struct job_plugin_use *use, struct json *ports, const char *name,
                             int64_t port)
{
    struct json v = json_make_object();

    json_set_cstr(&v, use->a, "name", name);
    json_set_int(&v, use->a, "port", port);
    json_set_cstr(&v, use->a, "protocol", "TCP");
    json_set_cstr(&v, use->a, "targetPort", name);
    json_push(ports, use->a, v);
}

static void make_service(const struct job_plugin_use *use, struct json *body)
{
    const struct ray_opts *o = use->opts;
    struct json ports = json_make_array(), selector = json_make_object();
    struct json *spec = json_set_object(body, use->a, "spec");

    json_set_str(&selector, use->a, API_KEY_JOB_NAME, use->job->meta.name);
    json_set_str(&selector, use->a, API_KEY_JOB_NAMESPACE, use->job->meta.ns);
    json_set_str(&selector, use->a, API_KEY_TASK_SPEC, o->head);
    add_service_port(use, &ports, "gcs", o->port);
    add_service_port(use, &ports, "dashboard", o->dashboard_port);
    add_service_port(use, &ports, "client-server", o->client_port);
    json_set_cstr(spec, use->a, "type", "ClusterIP");
    json_set(spec, use->a, "selector", selector);
    json_set(spec, use->a, "ports", ports);
}

static uint32_t ray_objects(const struct job_plugin_use *use, struct job_object *ret)
{
    ret[0] = (struct job_object){
        API_SERVICE, hk_str(hk_arena_printf(use->a, "%.*s-head-svc", HK_FMT(use->job->meta.name))),
        1, make_service, NULL};
    return 1;
}

const struct job_plugin job_plugin_ray = {
    .name = "ray",
    .about = "starts a Ray cluster: a head, workers that join it, and a Service",
    .opts = opts,
    .opts_size = sizeof(struct ray_opts),
    .objects = ray_objects,
    .pod = ray_pod,
};
