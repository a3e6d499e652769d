// SPDX-License-Identifier: Apache-2.0
// hekla jobs, pods, queues, nodes, flows: lists of objects.
#include "api/names.h"
#include "user/listing.h"

struct list_args {
    struct listing_opts list;
    const char *job;
};

static const struct option_row list_options[] = {
    ROW_CHOICE('o', "output", "FORMAT", struct list_args, list.format, "table wide json yaml name",
               "table",
               "Print a table, a table with more columns, the objects themselves, or their names."),
    ROW_FLAG('w', "watch", struct list_args, list.watch,
             "Follow changes: a terminal shows the table as it changes, a pipe gets each changed "
             "row."),
    ROW_TEXT('l', "selector", "SELECTOR", struct list_args, list.selector, NULL,
             "Only objects with these labels, such as app=train."),
    ROW_INCLUDE(struct list_args, list.user, user_server_options),
    ROW_END,
};

static const struct option_row job_options[] = {
    ROW_TEXT('q', "queue", "QUEUE", struct list_args, list.queue, NULL,
             "Only the jobs of this queue."),
    ROW_INCLUDE(struct list_args, list.user, user_namespace_options),
    ROW_INCLUDE(struct list_args, list.user, user_all_options),
    ROW_INCLUDE_SAME(list_options),
    ROW_ARGUMENTS("JOB", struct list_args, list.names),
    ROW_END,
};
static const struct option_row pod_options[] = {
    ROW_TEXT('j', "job", "JOB", struct list_args, job, NULL, "Only the pods of this job."),
    ROW_TEXT('q', "queue", "QUEUE", struct list_args, list.queue, NULL,
             "Only the pods of the jobs of this queue."),
    ROW_INCLUDE(struct list_args, list.user, user_namespace_options),
    ROW_INCLUDE(struct list_args, list.user, user_all_options),
    ROW_INCLUDE_SAME(list_options),
    ROW_ARGUMENTS("POD", struct list_args, list.names),
    ROW_END,
};
static const struct option_row flow_options[] = {
    ROW_INCLUDE(struct list_args, list.user, user_namespace_options),
    ROW_INCLUDE(struct list_args, list.user, user_all_options),
    ROW_INCLUDE_SAME(list_options),
    ROW_ARGUMENTS("FLOW", struct list_args, list.names),
    ROW_END,
};
static const struct option_row queue_options[] = {
    ROW_INCLUDE_SAME(list_options),
    ROW_ARGUMENTS("QUEUE", struct list_args, list.names),
    ROW_END,
};
static const struct option_row node_options[] = {
    ROW_INCLUDE_SAME(list_options),
    ROW_ARGUMENTS("NODE", struct list_args, list.names),
    ROW_END,
};

static int lists_print(const struct verb *v, struct list_args *a, struct hk_err *err)
{
    HK_AUTO(user_close) struct user u = {0};
    const int rc = user_open(&u, &a->list.user, err);

    if (rc < 0) {
        return rc;
    }
    if (a->job) {
        const char *more = a->list.selector;
        a->list.selector = hk_arena_printf(&u.mem, "%s%s" API_KEY_JOB_NAME "=%s", more ? more : "",
                                           more ? "," : "", user_name(a->job));
    }
    return listing_print(&u, v->name, &a->list, err);
}

static int lists_run(const struct verb *v, int argc, char **argv)
{
    struct list_args a = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &a), status;

    if (rc != 0) {
        status = user_parsed(rc);
    } else {
        user_names(&a.list.names);
        rc = lists_print(v, &a, &err);
        status = rc < 0 ? user_fail(v, rc, &err) : USER_OK;
    }
    hk_vec_fini(&a.list.names);
    return status;
}

const struct verb verb_jobs = {
    .name = "jobs",
    .args = "[NAME...]",
    .about = "list jobs: phase, tasks, and why they wait",
    .options = job_options,
    .text = "Lists the jobs, the newest last: how many of their tasks run (RUN), have succeeded "
            "(DONE) and failed (FAIL), of how many (ALL), and in short why a job waits or has "
            "failed.",
    .rest = USER_EXIT_STATUS,
    .run = lists_run,
};

const struct verb verb_pods = {
    .name = "pods",
    .args = "[NAME|JOB...]",
    .about = "list pods by job, task and index",
    .options = pod_options,
    .text = "Lists the pods with the job they belong to, their state, the exit code of those that "
            "have ended, and the node they are on. The name of a job stands for its pods.",
    .rest = USER_EXIT_STATUS,
    .run = lists_run,
};

const struct verb verb_queues = {
    .name = "queues",
    .args = "[NAME...]",
    .about = "list queues: limits, usage, and their jobs by state",
    .options = queue_options,
    .text = "Lists the queues below their parents. CPU and MEMORY show what the jobs of a queue "
            "hold and, behind the slash, the limit where there is one. Jobs are counted by the "
            "state of their PodGroups.",
    .rest = USER_EXIT_STATUS,
    .run = lists_run,
};

const struct verb verb_nodes = {
    .name = "nodes",
    .args = "[NAME...]",
    .about = "list nodes: what pods request, and what there is",
    .options = node_options,
    .text = "Lists the nodes with what the pods on them request and, behind the slash, what the "
            "node has. Actual usage is not shown: this API does not provide it.",
    .rest = USER_EXIT_STATUS,
    .run = lists_run,
};

const struct verb verb_flows = {
    .name = "flows",
    .args = "[NAME...]",
    .about = "list job flows",
    .options = flow_options,
    .text = "Lists the job flows, the newest last, with how many of their jobs run (RUN), are "
            "done (DONE) or have failed (FAIL), of how many (ALL).",
    .rest = USER_EXIT_STATUS,
    .run = lists_run,
};
