// SPDX-License-Identifier: Apache-2.0
// hcclrank: sets the rank of a pod as an annotation, for Ascend's collective library. A RANK from
// the template or another plugin is used; otherwise masters come first, then workers.
#include "controllers/jobplugin.h"

struct hcclrank_opts {
    struct hk_str master, worker;
};

static const struct job_opt opts[] = {
    {"master", JOB_OPT_STRING, offsetof(struct hcclrank_opts, master), "master",
     "name of the master task"},
    {"worker", JOB_OPT_STRING, offsetof(struct hcclrank_opts, worker), "worker",
     "name of the worker task"},
    {0},
};

static void find_rank(void *ctx, struct json *container)
{
    struct hk_str *rank = ctx;
    const struct json *env = json_get(container, "env");

    for (uint32_t i = 0; rank->n == 0 && json_is(env, JSON_ARRAY) && i < env->len; i++) {
        if (hk_str_is(json_str(json_get(&env->items[i], "name"), HK_STR("")), "RANK")) {
            *rank = json_str(json_get(&env->items[i], "value"), HK_STR(""));
            return;
        }
    }
}

static struct hk_str rank_by_task(const struct job_plugin_use *use, const struct api_job_task *task,
                                  int32_t index)
{
    const struct hcclrank_opts *o = use->opts;
    const struct api_job_task *master = api_job_task_find(use->job, o->master);
    int64_t rank;

    if (hk_str_eq(task->name, o->master)) {
        rank = index;
    } else if (hk_str_eq(task->name, o->worker)) {
        rank = (int64_t)index + (master ? master->replicas : 0);
    } else {
        return HK_STR("");
    }
    return hk_str(hk_arena_printf(use->a, "%lld", (long long)rank));
}

static int hcclrank_pod(const struct job_plugin_use *use, const struct api_job_task *task,
                        int32_t index, struct json *pod, struct hk_err *err)
{
    struct json *meta = json_need(pod, use->a, "metadata", JSON_OBJECT);
    struct json *notes = json_need(meta, use->a, "annotations", JSON_OBJECT);
    struct hk_str rank = HK_STR("");

    if (json_str(json_get(notes, "hccl/rankIndex"), HK_STR("")).n > 0) {
        return 0;
    }
    job_each_container(pod, false, find_rank, &rank);
    if (rank.n == 0) {
        rank = rank_by_task(use, task, index);
    }
    if (rank.n > 0) {
        json_set_str(notes, use->a, "hccl/rankIndex", rank);
    }
    return 0;
}

const struct job_plugin job_plugin_hcclrank = {
    .name = "hcclrank",
    .about = "annotates pods with their rank",
    .opts = opts,
    .opts_size = sizeof(struct hcclrank_opts),
    .pod = hcclrank_pod,
    .unlisted = true,
};
