// SPDX-License-Identifier: Apache-2.0
// tensorflow: sets TF_CONFIG in every container: the cluster by roles, the pod's role and index.
#include "controllers/jobplugin.h"

enum { ROLE_PS, ROLE_WORKER, ROLE_CHIEF, ROLE_EVALUATOR, NROLES };
static const char *const role_names[NROLES] = {"ps", "worker", "chief", "evaluator"};

struct tensorflow_opts {
    struct hk_str tasks[NROLES];
    int64_t port;
};

#define ROLE(name, role, help)                                                                     \
    {                                                                                              \
        name, JOB_OPT_STRING, offsetof(struct tensorflow_opts, tasks[role]), name, help            \
    }

static const struct job_opt opts[] = {
    ROLE("ps", ROLE_PS, "name of the parameter server task"),
    ROLE("worker", ROLE_WORKER, "name of the worker task"),
    ROLE("chief", ROLE_CHIEF, "name of the chief task"),
    ROLE("evaluator", ROLE_EVALUATOR, "name of the evaluator task"),
    {"port", JOB_OPT_INT, offsetof(struct tensorflow_opts, port), "2222", "port of every pod"},
    {0},
};

static struct json role_addresses(const struct job_plugin_use *use, const struct api_job_task *task)
{
    const struct tensorflow_opts *o = use->opts;
    struct json list = json_make_array();

    for (int32_t i = 0; i < task->replicas; i++) {
        char *at = hk_arena_printf(use->a, "%.*s:%lld", HK_FMT(job_address(use, task, i)),
                                   (long long)o->port);

        json_push(&list, use->a, json_make_str(hk_str(at)));
    }
    return list;
}

static struct hk_str config(const struct job_plugin_use *use, const struct api_job_task *task,
                            int32_t index)
{
    const struct tensorflow_opts *o = use->opts;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json root = json_make_object(), cluster = json_make_object(), own = json_make_object();
    struct hk_str type = task->name;

    for (unsigned k = 0; k < NROLES; k++) {
        const struct api_job_task *role = api_job_task_find(use->job, o->tasks[k]);

        if (role && role->replicas > 0) {
            json_set(&cluster, use->a, role_names[k], role_addresses(use, role));
        }
        if (hk_str_eq(task->name, o->tasks[k])) {
            type = hk_str(role_names[k]);
        }
    }
    json_set_str(&own, use->a, "type", type);
    json_set_int(&own, use->a, "index", index);
    json_set(&root, use->a, "cluster", cluster);
    json_set(&root, use->a, "task", own);
    json_write(&root, &text);
    return hk_arena_str(use->a, hk_buf_str(&text));
}

struct config_env {
    struct hk_arena *a;
    struct hk_str text;
};

static void tensorflow_add_to_container(void *ctx, struct json *container)
{
    const struct config_env *e = ctx;

    job_add_env(container, e->a, "TF_CONFIG", e->text);
}

static int tensorflow_pod(const struct job_plugin_use *use, const struct api_job_task *task,
                          int32_t index, struct json *pod, struct hk_err *err)
{
    struct config_env e = {.a = use->a};

    if (use->job->tasks.len == 1 && use->job->tasks.at[0].replicas == 1) {
        return 0; /* no other pods */
    }
    e.text = config(use, task, index);
    job_each_container(pod, false, tensorflow_add_to_container, &e);
    return 0;
}

const struct job_plugin job_plugin_tensorflow = {
    .name = "tensorflow",
    .about = "sets TF_CONFIG in every container",
    .opts = opts,
    .opts_size = sizeof(struct tensorflow_opts),
    .pod = tensorflow_pod,
};
