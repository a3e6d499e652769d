// SPDX-License-Identifier: Apache-2.0
// mpi: gives the master the addresses of the workers and exposes the sshd port of every pod. The
// ssh plugin provides the keys, svc the names; admission adds both plugins.
#include "controllers/jobplugin.h"

struct mpi_opts {
    struct hk_str master, worker;
    int64_t port;
};

static const struct job_opt opts[] = {
    {"master", JOB_OPT_STRING, offsetof(struct mpi_opts, master), "master",
     "name of the task that starts mpirun"},
    {"worker", JOB_OPT_STRING, offsetof(struct mpi_opts, worker), "worker",
     "name of the task whose pods do the work"},
    {"port", JOB_OPT_INT, offsetof(struct mpi_opts, port), "22", "port of sshd"},
    {0},
};

struct mpi_add {
    struct hk_arena *a;
    const struct mpi_opts *o;
    struct hk_str hosts; /* s NULL: no variable */
};

static void mpi_add_to_container(void *ctx, struct json *container)
{
    const struct mpi_add *m = ctx;

    if (m->hosts.s) {
        job_add_env(container, m->a, "MPI_HOST", m->hosts);
    }
    job_add_port(container, m->a, "mpijob-port", m->o->port);
}

static struct hk_str worker_hosts(const struct job_plugin_use *use,
                                  const struct api_job_task *workers)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (int32_t i = 0; i < job_hosts(workers); i++) {
        hk_buf_adds(&text, i > 0 ? "," : "");
        hk_buf_addstr(&text, job_address(use, workers, i));
    }
    return hk_arena_str(use->a, hk_buf_str(&text));
}

static int mpi_pod(const struct job_plugin_use *use, const struct api_job_task *task, int32_t index,
                   struct json *pod, struct hk_err *err)
{
    struct mpi_add m = {.a = use->a, .o = use->opts};
    const struct api_job_task *workers = api_job_task_find(use->job, m.o->worker);

    if (hk_str_eq(task->name, m.o->master)) {
        if (!workers) {
            return 0;
        }
        m.hosts = worker_hosts(use, workers);
    }
    job_each_container(pod, true, mpi_add_to_container, &m);
    return 0;
}

const struct job_plugin job_plugin_mpi = {
    .name = "mpi",
    .about = "tells the master of an MPI job where its workers are",
    .opts = opts,
    .opts_size = sizeof(struct mpi_opts),
    .pod = mpi_pod,
};
