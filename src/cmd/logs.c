// SPDX-License-Identifier: Apache-2.0
// hekla logs: shows the output of the pods of a job, or of one pod.
#include "user/logs.h"

#include <unistd.h>

struct logs_args {
    struct user_opts user;
    struct logs_opts logs;
    const char *name;
    int64_t since_ns; /* negative: all */
    bool follow, no_prefix;
};

static const struct option_row options[] = {
    ROW_FLAG('f', "follow", struct logs_args, follow,
             "Follow the output, also of pods that start later, until the job has ended."),
    ROW_TEXT('t', "task", "TASK", struct logs_args, logs.task, NULL, "Only the pods of this task."),
    ROW_INT('i', "index", "N", struct logs_args, logs.index, 0, INT64_MAX, NULL,
            "Only the pods of this index."),
    ROW_TEXT_OR('c', "container", "CONTAINER", struct logs_args, logs.container,
                "the first one of the pod", "The container."),
    ROW_INT(0, "tail", "N", struct logs_args, logs.tail, 0, INT64_MAX, NULL,
            "Only the last N lines of each pod."),
    ROW_DURATION(0, "since", struct logs_args, since_ns, 0, NULL,
                 "Only output that is not older than this time, such as 90s or 1h30m."),
    ROW_FLAG('p', "previous", struct logs_args, logs.previous,
             "The output of the container before its last restart."),
    ROW_FLAG(0, "timestamps", struct logs_args, logs.stamps, "Show when each line was written."),
    ROW_FLAG(0, "no-prefix", struct logs_args, no_prefix,
             "Do not show the pod in front of each line."),
    ROW_INCLUDE(struct logs_args, user, user_namespace_options),
    ROW_INCLUDE(struct logs_args, user, user_server_options),
    ROW_ARGUMENT("JOB|POD", struct logs_args, name),
    ROW_END,
};

static int logs_show(struct user *u, const struct verb *v, struct logs_args *a, struct hk_err *err)
{
    struct logs_target t = {0};
    bool many = false;
    int rc = logs_find(u, a->name, &t, &many, err);

    if (rc < 0) {
        return rc;
    }
    a->logs.how = (struct logline_how){
        .term = term_of(STDOUT_FILENO), .prefix = many && !a->no_prefix, .stamps = a->logs.stamps};
    if (!a->follow) {
        return logs_merge(u, v, &a->logs, &t, err);
    }
    return logs_follow(u, &a->logs, &t, NULL, err);
}

static int logs_run(const struct verb *v, int argc, char **argv)
{
    struct logs_args a = {.logs = LOGS_OPTS_DEFAULT, .since_ns = -1};
    struct user u;
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &a);

    if (rc != 0) {
        return user_parsed(rc);
    }
    if (!a.name) {
        verb_complain("logs: the name of a JOB or a POD is missing (see 'hekla jobs')");
        return USER_TROUBLE;
    }
    a.name = user_name(a.name);
    if (a.since_ns >= 0) { /* the API has whole seconds */
        a.logs.since_s = (a.since_ns + 999999999) / 1000000000;
    }
    rc = user_open(&u, &a.user, &err);
    if (rc == 0) {
        rc = logs_show(&u, v, &a, &err);
    }
    const int status = rc < 0 ? user_fail(v, rc, &err) : USER_OK;
    user_close(&u);
    return status;
}

const struct verb verb_logs = {
    .name = "logs",
    .args = "JOB|POD",
    .about = "show the output of the pods of a job",
    .options = options,
    .text = "Shows the output of all pods of the job in order of time, each line with the task "
            "and the index of its pod in front; on a terminal every pod has a colour. A job with "
            "a single pod, and a pod that is named itself, get no prefix.\n"
            "With --follow new output is shown as it is written; lines of different pods are "
            "ordered as far as they arrive within a moment of one another. It ends when the job "
            "has ended. Ctrl-C stops following; the job continues.",
    .rest = "EXAMPLES\n"
            "           hekla logs -f train\n"
            "           hekla logs train --index 3 --tail 20\n\n" USER_EXIT_STATUS,
    .run = logs_run,
};
